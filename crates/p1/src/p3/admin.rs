//! change-credentials (X.411 8.4.1.2).

use super::AccessError;
use crate::bind::Credentials;
use crate::wire;
use base::ber::{Element, Error, Member, Tag, Writer, read_distinct_set};
use rasn::{AsnType, Encode, Encoder as _};

/// ChangeCredentialsArgument (X.411 8.4.1.2).
#[derive(Clone, Debug, PartialEq, Eq, AsnType, Encode)]
#[rasn(set)]
pub struct ChangeCredentials {
    /// old-credentials.
    #[rasn(tag(explicit(0)))]
    pub old: Credentials,
    /// new-credentials.
    #[rasn(tag(explicit(1)))]
    pub new: Credentials,
}

const OLD: Tag = Tag::context(0);
const NEW: Tag = Tag::context(1);

impl ChangeCredentials {
    /// The octets of both passwords.
    ///
    /// # Errors
    /// What a user is answered whose credentials are not simple.
    pub fn passwords(&self) -> Result<(&[u8], &[u8]), AccessError> {
        match (&self.old, &self.new) {
            (Credentials::Simple(old), Credentials::Simple(new)) => {
                Ok((old.octets(), new.octets()))
            }
            (Credentials::Simple(_), _) => Err(AccessError::NewCredentialsUnacceptable),
            _ => Err(AccessError::OldCredentialsIncorrectlySpecified),
        }
    }

    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or either is missing; the field is named.
    pub fn read(e: &Element<'_>) -> Result<ChangeCredentials, Error> {
        let (mut old, mut new) = (Member::new("old-credentials"), Member::new("new-credentials"));
        let value = |m: &Element<'_>| Credentials::read(&m.only_child()?);
        read_distinct_set(e, |m| match m.tag {
            OLD => old.once(m, value),
            NEW => new.once(m, value),
            _ => Ok(false),
        })?;
        Ok(ChangeCredentials { old: old.required(OLD)?, new: new.required(NEW)? })
    }

    /// Appends the SET. Credentials is a CHOICE, which makes both tags explicit.
    pub fn write(&self, w: &mut Writer) {
        wire::encode(w, self);
    }
}
