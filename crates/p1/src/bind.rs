//! MTA-bind: how two MTAs introduce themselves (X.411 12.1.1).

use crate::names::MtaName;
use bytes::Bytes;

/// A password, compared in constant time and never shown.
#[derive(Clone)]
pub struct Password {
    octets: Bytes,
    form: PasswordForm,
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
        Password { octets: octets.into(), form }
    }

    /// Its octets. Never to be logged or shown.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Which alternative it came as, or goes as.
    pub fn form(&self) -> PasswordForm {
        self.form
    }

    /// Whether the passwords are the same, in whichever form; takes the same time wherever they differ.
    pub fn matches(&self, octets: &[u8]) -> bool {
        let differ = self.octets.iter().zip(octets).fold(0u8, |d, (a, b)| d | (a ^ b));
        self.octets.len() == octets.len() && differ == 0
    }
}

impl PartialEq for Password {
    fn eq(&self, other: &Password) -> bool {
        self.matches(&other.octets) && self.form == other.form
    }
}

impl Eq for Password {}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(hidden)")
    }
}

/// Credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// simple: a password.
    Simple(Password),
    /// strong: the whole element. Not supported, so an authentication failure.
    Strong(Bytes),
    /// protected: the whole element. Not supported, so an authentication failure.
    Protected(Bytes),
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MtaBindArgument {
    /// unauthenticated: NULL.
    Unauthenticated,
    /// authenticated.
    Authenticated(MtaAuthentication),
}

/// MTABindResult.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MtaBindResult {
    /// unauthenticated: NULL.
    Unauthenticated,
    /// authenticated.
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
