//! UTCTime as peers send it.

use base::Utc;
use base::ber::{Element, Error, Tag, Writer};
use bytes::Bytes;

/// A UTCTime, kept as it came: a bad time must not lose a message.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Time {
    /// The string's octets, passed on unchanged.
    pub raw: Bytes,
    /// The time; `None` if they are not a time.
    pub utc: Option<Utc>,
}

impl From<Utc> for Time {
    /// To the second, `YYMMDDhhmmssZ`.
    fn from(utc: Utc) -> Time {
        let whole = Utc(utc.0 - utc.0 % 1_000_000);
        Time { raw: Bytes::from(utc.to_utc_time()), utc: Some(whole) }
    }
}

impl std::fmt::Debug for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.utc {
            Some(utc) => write!(f, "{utc}"),
            None => write!(f, "bad time {:?}", self.raw),
        }
    }
}

impl Time {
    /// Reads a UTCTime, good or bad, under whichever tag.
    ///
    /// # Errors
    /// A malformed constructed string.
    pub fn read(e: &Element<'_>) -> Result<Time, Error> {
        let octets = e.octets()?;
        let utc = Utc::from_utc_time(&octets);
        Ok(Time { raw: Bytes::from(octets.into_owned()), utc })
    }

    /// Writes it under `tag`, as it came.
    pub fn write_as(&self, w: &mut Writer, tag: Tag) {
        w.string(tag, &self.raw);
    }
}
