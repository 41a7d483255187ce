//! list: attributes of the selected entries, which become listed.

use crate::entry::{EntryClass, EntryInformation, SequenceNumber};
use crate::extension::{self, MsExtension};
use crate::limits::MAX_ENTRIES;
use crate::registration::number;
use crate::selector::{self, AttributeSelection, Selector};
use crate::wire::{self, explicit, require};
use base::ber::{Element, Error, Field, Member, Tag, Writer, read_set, universal as u};

/// ListArgument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListArgument {
    /// entry-class.
    pub entry_class: EntryClass,
    /// selector.
    pub selector: Selector,
    /// requested-attributes; the registered defaults where it is absent.
    pub requested_attributes: Option<Vec<AttributeSelection>>,
    /// list-extensions (1994).
    pub extensions: Vec<MsExtension>,
}

/// ListResult.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListResult {
    /// next: the first entry beyond the limit of the selector.
    pub next: Option<SequenceNumber>,
    /// requested: the entries, in ascending order of their numbers; absent for none.
    pub requested: Vec<EntryInformation>,
    /// list-result-extensions (1994).
    pub extensions: Vec<MsExtension>,
}

const SELECTOR: Tag = Tag::context(1);

impl ListArgument {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no selector; the field is named.
    pub fn read(e: &Element<'_>) -> Result<ListArgument, Error> {
        let (mut class, mut selector) = (Member::new("entry-class"), Member::new("selector"));
        let mut requested = Member::new("requested-attributes");
        let mut extensions = Member::new("list-extensions");
        let set = require(e, u::SET).field("ListArgument")?;
        let members = read_set(set, |m| match number(m) {
            0 => class.once(m, EntryClass::read_inner),
            1 => selector.once(m, Selector::read_inner),
            3 => requested.once(m, selector::read_selection),
            4 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("ListArgument")?;
        Ok(ListArgument {
            entry_class: class.or_default(),
            selector: selector.required(SELECTOR)?,
            requested_attributes: requested.optional(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.entry_class.write_default(w);
            explicit(w, 1, |w| self.selector.write(w));
            selector::write_selection(w, 3, self.requested_attributes.as_ref());
            extension::write_all(w, 4, &self.extensions);
        });
    }
}

impl ListResult {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or more than [`MAX_ENTRIES`] entries; the field is named.
    pub fn read(e: &Element<'_>) -> Result<ListResult, Error> {
        let (mut next, mut requested) = (Member::new("next"), Member::new("requested"));
        let mut extensions = Member::new("list-result-extensions");
        let set = require(e, u::SET).field("ListResult")?;
        let members = read_set(set, |m| match number(m) {
            0 => next.once(m, SequenceNumber::read_inner),
            1 => requested
                .once(m, |m| wire::list(m, u::SEQUENCE, MAX_ENTRIES, EntryInformation::read)),
            2 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("ListResult")?;
        Ok(ListResult {
            next: next.optional(),
            requested: requested.or_default(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            SequenceNumber::write_option(self.next, w, 0);
            wire::write_some(w, 1, u::SEQUENCE, &self.requested, EntryInformation::write);
            extension::write_all(w, 2, &self.extensions);
        });
    }
}
