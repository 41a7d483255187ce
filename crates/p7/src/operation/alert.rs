//! alert: the store reports a new entry to the user.

use crate::entry::EntryInformation;
use crate::registration::number;
use crate::wire::{self, explicit, require};
use base::ber::{Element, Error, Field, Member, Tag, Writer, read_set, universal as u};

/// AlertArgument. The result is [`super::EMPTY_RESULT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertArgument {
    /// alert-registration-identifier: of the registration of auto-alert that the entry matches.
    pub registration_identifier: i64,
    /// new-entry: what the registration asks for.
    pub new_entry: Option<EntryInformation>,
}

const IDENTIFIER: Tag = Tag::context(0);

impl AlertArgument {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no identifier; the field is named.
    pub fn read(e: &Element<'_>) -> Result<AlertArgument, Error> {
        let mut identifier = Member::new("alert-registration-identifier");
        let mut entry = Member::new("new-entry");
        let members = read_set(require(e, u::SET).field("AlertArgument")?, |m| match number(m) {
            0 => identifier.once(m, wire::integer),
            2 => entry.once(m, |m| EntryInformation::read(&m.only_child()?)),
            _ => Ok(false),
        });
        members.field("AlertArgument")?;
        Ok(AlertArgument {
            registration_identifier: identifier.required(IDENTIFIER)?,
            new_entry: entry.optional(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            wire::write_integer(w, 0, self.registration_identifier);
            if let Some(entry) = &self.new_entry {
                explicit(w, 2, |w| entry.write(w));
            }
        });
    }
}
