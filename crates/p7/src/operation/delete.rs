//! delete: entries of a store, with their child entries.

use crate::entry::{EntryClass, SequenceNumber};
use crate::extension::{self, MsExtension};
use crate::operation::{numbers, write_numbers};
use crate::registration::number;
use crate::selector::Selector;
use crate::wire::{explicit, require};
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_set, universal as u};

/// Which entries are deleted: items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteItems {
    /// selector, 1.
    Selector(Selector),
    /// sequence-numbers, 2.
    SequenceNumbers(Vec<SequenceNumber>),
}

/// DeleteArgument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteArgument {
    /// entry-class.
    pub entry_class: EntryClass,
    /// items.
    pub items: DeleteItems,
    /// delete-extensions (1994).
    pub extensions: Vec<MsExtension>,
}

/// DeleteResult.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteResult {
    /// delete-result-88.
    Of1988,
    /// delete-result-94.
    Of1994 {
        /// entries-deleted.
        entries_deleted: Vec<SequenceNumber>,
        /// delete-result-extensions.
        extensions: Vec<MsExtension>,
    },
}

const SELECTOR: Tag = Tag::context(1);

impl DeleteArgument {
    /// Deletes these entries of the class delivery.
    pub fn new(entries: Vec<SequenceNumber>) -> DeleteArgument {
        DeleteArgument {
            entry_class: EntryClass::DELIVERY,
            items: DeleteItems::SequenceNumbers(entries),
            extensions: Vec::new(),
        }
    }

    /// Reads the SET. Of two items the last counts.
    ///
    /// # Errors
    /// Malformed BER, or no items; the field is named.
    pub fn read(e: &Element<'_>) -> Result<DeleteArgument, Error> {
        let (mut class, mut items) = (Member::new("entry-class"), Member::new("items"));
        let mut extensions = Member::new("delete-extensions");
        let set = require(e, u::SET).field("DeleteArgument")?;
        let members = read_set(set, |m| match number(m) {
            0 => class.once(m, EntryClass::read_inner),
            1 => items.last(m, |m| Selector::read_inner(m).map(DeleteItems::Selector)),
            2 => items.last(m, |m| numbers(m, u::SET).map(DeleteItems::SequenceNumbers)),
            3 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("DeleteArgument")?;
        Ok(DeleteArgument {
            entry_class: class.or_default(),
            items: items.required(SELECTOR)?,
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.entry_class.write_default(w);
            match &self.items {
                DeleteItems::Selector(selector) => explicit(w, 1, |w| selector.write(w)),
                DeleteItems::SequenceNumbers(all) => {
                    crate::wire::write_list(w, 2, u::SET, all, SequenceNumber::write);
                }
            }
            extension::write_all(w, 3, &self.extensions);
        });
    }
}

impl DeleteResult {
    /// Reads either form.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<DeleteResult, Error> {
        if e.tag == u::NULL {
            return Ok(DeleteResult::Of1988);
        }
        let mut deleted = Member::new("entries-deleted");
        let mut extensions = Member::new("delete-result-extensions");
        let members = match e.tag {
            u::SET => read_set(e, |m| match number(m) {
                0 => deleted.once(m, |m| numbers(m, u::SEQUENCE)),
                1 => extensions.once(m, extension::read_all),
                _ => Ok(false),
            }),
            other => Err(Fault::Unexpected(other).into()),
        };
        members.field("DeleteResult")?;
        Ok(DeleteResult::Of1994 {
            entries_deleted: deleted.or_default(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends it.
    pub fn write(&self, w: &mut Writer) {
        match self {
            DeleteResult::Of1988 => w.null(u::NULL),
            DeleteResult::Of1994 { entries_deleted, extensions } => w.constructed(u::SET, |w| {
                write_numbers(w, 0, u::SEQUENCE, entries_deleted);
                extension::write_all(w, 1, extensions);
            }),
        }
    }
}
