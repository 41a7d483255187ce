//! MTA-bind: how two MTAs introduce themselves (X.411 12.1.1).
//!
//! Members are found by tag here, so that unknown ones are kept and errors name a field. Their values are
//! read, and the whole is written, by rasn.

use crate::names::MtaName;
use crate::wire::{self, Kept, keep, keep_all, latin1_octets};
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_set, universal};
use bytes::Bytes;
use rasn::types::{Constraints, Identifier, OctetString};
use rasn::{AsnType, Decode, Encode, Encoder};

/// A password, compared in constant time and never shown.
#[derive(Clone, AsnType, Decode, Encode)]
#[rasn(delegate)]
pub struct Password(Simple);

/// An IA5String may hold any octets here, as peers have passwords beyond ASCII; rasn's may not.
#[derive(Clone, AsnType, Decode, Encode)]
#[rasn(choice)]
enum Simple {
    #[rasn(tag(universal, 22))]
    Ia5(OctetString),
    Octets(OctetString),
}

/// Which alternative of simple credentials carries a password: both are sent in the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PasswordForm {
    /// IA5String.
    #[default]
    Ia5,
    /// OCTET STRING.
    Octets,
}

impl Password {
    /// From its octets.
    pub fn new(octets: impl Into<Bytes>, form: PasswordForm) -> Password {
        let octets = OctetString::from(octets.into());
        Password(match form {
            PasswordForm::Ia5 => Simple::Ia5(octets),
            PasswordForm::Octets => Simple::Octets(octets),
        })
    }

    fn read(e: &Element<'_>) -> Result<Password, Error> {
        // rasn takes no segments of the string's own type, as encoders by X.409 make them.
        let form = match e.tag {
            universal::IA5_STRING if e.constructed => PasswordForm::Ia5,
            universal::OCTET_STRING if e.constructed => PasswordForm::Octets,
            _ => return wire::decode(e),
        };
        Ok(Password::new(e.octets()?.into_owned(), form))
    }

    /// Its octets. Never to be logged or shown.
    pub fn octets(&self) -> &[u8] {
        match &self.0 {
            Simple::Ia5(octets) | Simple::Octets(octets) => octets,
        }
    }

    /// Which alternative it came as, or goes as.
    pub fn form(&self) -> PasswordForm {
        match self.0 {
            Simple::Ia5(_) => PasswordForm::Ia5,
            Simple::Octets(_) => PasswordForm::Octets,
        }
    }

    /// Whether the passwords are the same, in whichever form; takes the same time wherever they differ.
    pub fn matches(&self, octets: &[u8]) -> bool {
        let own = self.octets();
        let differ = own.iter().zip(octets).fold(0u8, |d, (a, b)| d | (a ^ b));
        own.len() == octets.len() && differ == 0
    }
}

impl PartialEq for Password {
    fn eq(&self, other: &Password) -> bool {
        self.matches(other.octets()) && self.form() == other.form()
    }
}

impl Eq for Password {}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(hidden)")
    }
}

/// Credentials.
#[derive(Clone, Debug, PartialEq, Eq, AsnType, Encode)]
#[rasn(choice)]
pub enum Credentials {
    /// simple: a password.
    Simple(Password),
    /// strong: the whole element. Not supported, so an authentication failure.
    #[rasn(tag(0))]
    Strong(Kept),
    /// protected: the whole element. Not supported, so an authentication failure.
    #[rasn(tag(1))]
    Protected(Kept),
}

/// The authenticated form of both bind argument and bind result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MtaAuthentication {
    /// initiator-name or responder-name.
    pub name: MtaName,
    /// initiator-credentials or responder-credentials.
    pub credentials: Credentials,
    /// security-context of an argument, the whole element.
    pub security_context: Option<Bytes>,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// MTABindArgument.
#[derive(Clone, Debug, PartialEq, Eq, AsnType, Encode)]
#[rasn(choice)]
pub enum MtaBindArgument {
    /// unauthenticated: NULL.
    Unauthenticated,
    /// authenticated.
    #[rasn(tag(1))]
    Authenticated(MtaAuthentication),
}

/// MTABindResult.
#[derive(Clone, Debug, PartialEq, Eq, AsnType, Encode)]
#[rasn(choice)]
pub enum MtaBindResult {
    /// unauthenticated: NULL.
    Unauthenticated,
    /// authenticated.
    #[rasn(tag(1))]
    Authenticated(MtaAuthentication),
}

/// MTABindError.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MtaBindError {
    /// busy, 0.
    Busy,
    /// authentication-error, 2.
    AuthenticationError,
    /// unacceptable-dialogue-mode, 3.
    UnacceptableDialogueMode,
    /// unacceptable-security-context, 4.
    UnacceptableSecurityContext,
    /// inadequate-association-confidentiality, 5.
    InadequateAssociationConfidentiality,
    /// A number X.411 does not give.
    Other(i64),
}

impl Credentials {
    /// A password as an IA5String.
    pub fn simple(password: impl Into<Bytes>) -> Credentials {
        Credentials::Simple(Password::new(password, PasswordForm::Ia5))
    }

    /// Reads the alternative inside an explicit tag.
    ///
    /// # Errors
    /// Another tag, or malformed.
    pub fn read(e: &Element<'_>) -> Result<Credentials, Error> {
        match e.tag {
            STRONG => Ok(Credentials::Strong(Kept(keep(e)))),
            PROTECTED => Ok(Credentials::Protected(Kept(keep(e)))),
            _ => Ok(Credentials::Simple(Password::read(e).field("credentials")?)),
        }
    }
}

const STRONG: Tag = Tag::context(0);
const PROTECTED: Tag = Tag::context(1);
const AUTHENTICATED: Tag = Tag::context(1);
const NAME: Tag = Tag::context(0);
const CREDENTIALS: Tag = Tag::context(1);
const SECURITY_CONTEXT: Tag = Tag::context(2);

/// A member of the SET of an authenticated bind, as it is written.
#[derive(AsnType, Encode)]
#[rasn(choice)]
enum BindMember {
    #[rasn(tag(0))]
    Name(OctetString),
    #[rasn(tag(explicit(1)))]
    Credentials(Credentials),
    Kept(Kept),
}

impl MtaAuthentication {
    /// A name and a password.
    pub fn new(name: impl Into<MtaName>, credentials: Credentials) -> MtaAuthentication {
        let name = name.into();
        MtaAuthentication { name, credentials, security_context: None, unknown: Vec::new() }
    }

    fn read(e: &Element<'_>) -> Result<MtaAuthentication, Error> {
        let (mut name, mut credentials) = (Member::new("mta-name"), Member::new("credentials"));
        let mut context = Member::new("security-context");
        let unknown = read_set(e, |m| match m.tag {
            NAME => name.once(m, MtaName::read).field("mta-name"),
            CREDENTIALS => {
                credentials.once(m, |m| Credentials::read(&m.only_child()?)).field("credentials")
            }
            SECURITY_CONTEXT => context.once(m, |m| Ok(keep(m))).field("security-context"),
            _ => Ok(false),
        });
        Ok(MtaAuthentication {
            unknown: keep_all(&unknown.field("mta-bind")?),
            name: name.required(NAME)?,
            credentials: credentials.required(CREDENTIALS)?,
            security_context: context.optional(),
        })
    }

    fn members(&self) -> Vec<BindMember> {
        let known = [
            BindMember::Name(latin1_octets(&self.name.0).into()),
            BindMember::Credentials(self.credentials.clone()),
        ];
        let kept = self.security_context.iter().chain(&self.unknown).cloned();
        known.into_iter().chain(kept.map(|octets| BindMember::Kept(Kept(octets)))).collect()
    }
}

impl AsnType for MtaAuthentication {
    const TAG: rasn::types::Tag = rasn::types::Tag::SET;
}

/// The members keep their order: a derived SET would sort them.
impl Encode for MtaAuthentication {
    fn encode_with_tag_and_constraints<'e, E: Encoder<'e>>(
        &self,
        encoder: &mut E,
        tag: rasn::types::Tag,
        constraints: &Constraints,
        identifier: Identifier,
    ) -> Result<(), E::Error> {
        encoder.encode_sequence_of(tag, &self.members(), constraints, identifier).map(drop)
    }
}

/// Argument and result have the same two alternatives.
fn read_bind(e: &Element<'_>) -> Result<Option<MtaAuthentication>, Error> {
    match e.tag {
        universal::NULL => Ok(None),
        AUTHENTICATED => MtaAuthentication::read(e).map(Some),
        other => Err(Fault::Unexpected(other)).field("mta-bind"),
    }
}

impl MtaBindArgument {
    /// Reads it.
    ///
    /// # Errors
    /// Malformed, or a mandatory member missing.
    pub fn read(e: &Element<'_>) -> Result<MtaBindArgument, Error> {
        let all = read_bind(e)?;
        Ok(all.map_or(MtaBindArgument::Unauthenticated, MtaBindArgument::Authenticated))
    }

    /// Writes it.
    pub fn write(&self, w: &mut Writer) {
        wire::encode(w, self);
    }
}

impl MtaBindResult {
    /// Reads it.
    ///
    /// # Errors
    /// Malformed, or a mandatory member missing.
    pub fn read(e: &Element<'_>) -> Result<MtaBindResult, Error> {
        let all = read_bind(e)?;
        Ok(all.map_or(MtaBindResult::Unauthenticated, MtaBindResult::Authenticated))
    }

    /// Writes it.
    pub fn write(&self, w: &mut Writer) {
        wire::encode(w, self);
    }
}

impl MtaBindError {
    /// The number.
    pub fn number(self) -> i64 {
        match self {
            MtaBindError::Busy => 0,
            MtaBindError::AuthenticationError => 2,
            MtaBindError::UnacceptableDialogueMode => 3,
            MtaBindError::UnacceptableSecurityContext => 4,
            MtaBindError::InadequateAssociationConfidentiality => 5,
            MtaBindError::Other(number) => number,
        }
    }

    /// The error of this number.
    pub fn from_number(number: i64) -> MtaBindError {
        match number {
            0 => MtaBindError::Busy,
            2 => MtaBindError::AuthenticationError,
            3 => MtaBindError::UnacceptableDialogueMode,
            4 => MtaBindError::UnacceptableSecurityContext,
            5 => MtaBindError::InadequateAssociationConfidentiality,
            other => MtaBindError::Other(other),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// No INTEGER.
    pub fn read(e: &Element<'_>) -> Result<MtaBindError, Error> {
        if e.tag != universal::INTEGER {
            return Err(Fault::Unexpected(e.tag)).field("mta-bind-error");
        }
        Ok(MtaBindError::from_number(wire::integer(e).field("mta-bind-error")?))
    }

    /// Writes it.
    pub fn write(self, w: &mut Writer) {
        wire::encode(w, &self.number());
    }
}

impl std::fmt::Display for MtaBindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MtaBindError::Busy => "busy",
            MtaBindError::AuthenticationError => "authentication-error",
            MtaBindError::UnacceptableDialogueMode => "unacceptable-dialogue-mode",
            MtaBindError::UnacceptableSecurityContext => "unacceptable-security-context",
            MtaBindError::InadequateAssociationConfidentiality => {
                "inadequate-association-confidentiality"
            }
            MtaBindError::Other(number) => return write!(f, "MTABindError {number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(octets: &[u8]) -> Result<MtaBindArgument, Error> {
        MtaBindArgument::read(&Element::parse(octets)?)
    }

    #[test]
    fn captured_shape_with_both_password_forms() {
        for (tag, form) in [(0x16, PasswordForm::Ia5), (0x04, PasswordForm::Octets)] {
            let octets = [
                0xa1, 0x0e, 0x80, 4, b'M', b'T', b'A', b'1', 0xa1, 6, tag, 4, b's', b'e', b'c',
                b'r',
            ];
            let MtaBindArgument::Authenticated(who) = argument(&octets).unwrap() else { panic!() };
            assert_eq!(who.name, MtaName::from("MTA1"));
            let Credentials::Simple(password) = &who.credentials else { panic!() };
            assert!(
                password.matches(b"secr")
                    && !password.matches(b"sec")
                    && !password.matches(b"secs")
            );
            assert_eq!(password.form(), form);
            let mut w = Writer::new();
            MtaBindResult::Authenticated(who).write(&mut w);
            assert_eq!(w.as_slice(), octets);
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        assert!(!format!("{:?}", Credentials::simple("geheim")).contains("geheim"));
    }

    #[test]
    fn null_and_strong_and_members_in_any_order() {
        assert_eq!(argument(&[5, 0]), Ok(MtaBindArgument::Unauthenticated));
        let strong = [0xa1, 10, 0xa1, 4, 0xa0, 2, 0x30, 0, 0x80, 2, b'M', b'2'];
        let MtaBindArgument::Authenticated(who) = argument(&strong).unwrap() else { panic!() };
        assert_eq!(who.credentials, Credentials::Strong(Kept(vec![0xa0, 2, 0x30, 0].into())));
        assert_eq!(
            argument(&[0xa1, 4, 0x80, 2, b'M', b'2']).unwrap_err().field,
            Some("credentials")
        );
        assert_eq!(argument(&[0xa2, 0]).unwrap_err().field, Some("mta-bind"));
    }

    #[test]
    fn errors_have_their_numbers() {
        let e = Element::parse(&[2, 1, 2]).unwrap();
        assert_eq!(MtaBindError::read(&e), Ok(MtaBindError::AuthenticationError));
        for n in -1..9 {
            assert_eq!(MtaBindError::from_number(n).number(), n);
        }
    }
}
