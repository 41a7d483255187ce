//! fetch: attributes of one entry, which becomes processed.

use crate::attributes;
use crate::entry::{EntryClass, EntryInformation, SequenceNumber};
use crate::extension::{self, MsExtension};
use crate::operation::{numbers, write_numbers};
use crate::registration::number;
use crate::selector::{self, AttributeSelection, Selector};
use crate::wire::{explicit, require};
use base::ber::{Element, Error, Field, Length, Member, Tag, Writer, read_set, universal as u};

/// Which entry is fetched: item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchItem {
    /// search, 1: the first of the selected entries.
    Search(Selector),
    /// precise, 2: the entry of this number.
    Precise(SequenceNumber),
}

/// FetchArgument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchArgument {
    /// entry-class.
    pub entry_class: EntryClass,
    /// item.
    pub item: FetchItem,
    /// requested-attributes; the registered defaults where it is absent.
    pub requested_attributes: Option<Vec<AttributeSelection>>,
    /// fetch-extensions (1994).
    pub extensions: Vec<MsExtension>,
}

/// FetchResult.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResult {
    /// entry-information; absent where a search found none.
    pub entry_information: Option<EntryInformation>,
    /// list: the other entries that the search found.
    pub list: Vec<SequenceNumber>,
    /// next: the first entry beyond the limit of the selector.
    pub next: Option<SequenceNumber>,
    /// fetch-result-extensions (1994).
    pub extensions: Vec<MsExtension>,
}

const SEARCH: Tag = Tag::context(1);
const ENTRY_INFORMATION: Tag = Tag::context(0);

impl FetchArgument {
    /// Fetches these attributes of one entry of the class delivery.
    pub fn precise(entry: SequenceNumber, attributes: Vec<AttributeSelection>) -> FetchArgument {
        FetchArgument {
            entry_class: EntryClass::DELIVERY,
            item: FetchItem::Precise(entry),
            requested_attributes: Some(attributes),
            extensions: Vec::new(),
        }
    }

    /// Reads the SET. Of two items the last counts.
    ///
    /// # Errors
    /// Malformed BER, or no item; the field is named.
    pub fn read(e: &Element<'_>) -> Result<FetchArgument, Error> {
        let (mut class, mut item) = (Member::new("entry-class"), Member::new("item"));
        let mut requested = Member::new("requested-attributes");
        let mut extensions = Member::new("fetch-extensions");
        let set = require(e, u::SET).field("FetchArgument")?;
        let members = read_set(set, |m| match number(m) {
            0 => class.once(m, EntryClass::read_inner),
            1 => item.last(m, |m| Selector::read_inner(m).map(FetchItem::Search)),
            2 => item.last(m, |m| SequenceNumber::read_inner(m).map(FetchItem::Precise)),
            3 => requested.once(m, selector::read_selection),
            4 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("FetchArgument")?;
        Ok(FetchArgument {
            entry_class: class.or_default(),
            item: item.required(SEARCH)?,
            requested_attributes: requested.optional(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.entry_class.write_default(w);
            match &self.item {
                FetchItem::Search(selector) => explicit(w, 1, |w| selector.write(w)),
                FetchItem::Precise(number) => number.write_as(w, 2),
            }
            selector::write_selection(w, 3, self.requested_attributes.as_ref());
            extension::write_all(w, 4, &self.extensions);
        });
    }
}

impl FetchResult {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<FetchResult, Error> {
        let (mut entry, mut list) = (Member::new("entry-information"), Member::new("list"));
        let (mut next, mut extensions) =
            (Member::new("next"), Member::new("fetch-result-extensions"));
        let set = require(e, u::SET).field("FetchResult")?;
        let members = read_set(set, |m| match number(m) {
            0 => entry.once(m, |m| EntryInformation::read(&m.only_child()?)),
            1 => list.once(m, |m| numbers(m, u::SEQUENCE)),
            2 => next.once(m, SequenceNumber::read_inner),
            3 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("FetchResult")?;
        Ok(FetchResult {
            entry_information: entry.optional(),
            list: list.or_default(),
            next: next.optional(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if let Some(entry) = &self.entry_information {
                explicit(w, 0, |w| entry.write(w));
            }
            self.write_others(w);
        });
    }

    fn write_others(&self, w: &mut Writer) {
        write_numbers(w, 1, u::SEQUENCE, &self.list);
        SequenceNumber::write_option(self.next, w, 2);
        extension::write_all(w, 3, &self.extensions);
    }

    /// The octets of this result up to those of the content, which is its last attribute: exactly
    /// `content_length` octets follow, and end the result. So a store never holds the content whole.
    /// The entry must have no content attribute of its own; value-count-exceeded, which would come
    /// after the content, is left out.
    pub fn head(&self, content_length: u64) -> Vec<u8> {
        let entry = self.entry_information.clone().unwrap_or_default();
        let written = |write: &dyn Fn(&mut Writer)| {
            let mut w = Writer::new();
            write(&mut w);
            w.into_vec()
        };
        // From the inside out: the tag of each level, and what precedes the level within.
        let levels = [
            (u::SEQUENCE, Vec::new()),
            (u::SEQUENCE, written(&|w| attributes::CONTENT.write_type(w))),
            (u::SET, written(&|w| entry.attributes.iter().for_each(|a| a.write(w)))),
            (u::SEQUENCE, written(&|w| entry.sequence_number.write(w))),
            (ENTRY_INFORMATION, Vec::new()),
            (u::SET, written(&|w| self.write_others(w))),
        ];
        let string =
            written(&|w| w.header(u::OCTET_STRING, false, Length::Definite(content_length)));
        levels.into_iter().fold(string, |within, (tag, before)| {
            let length = (before.len() + within.len()) as u64 + content_length;
            written(&|w| {
                w.header(tag, true, Length::Definite(length));
                w.raw(&before);
                w.raw(&within);
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn a_head_and_the_content_are_a_result() {
        let status = attributes::RETRIEVAL_STATUS.single(Value::from_integer(1));
        let entry = EntryInformation {
            sequence_number: SequenceNumber(300),
            attributes: vec![status.clone()],
            value_count_exceeded: Vec::new(),
        };
        let result = FetchResult {
            entry_information: Some(entry.clone()),
            next: Some(SequenceNumber(4)),
            ..FetchResult::default()
        };
        for length in [0, 1, 127, 128, 300, 70_000] {
            let content = vec![7; length];
            let octets = [result.head(length as u64), content.clone()].concat();
            let read = FetchResult::read(&Element::parse(&octets).unwrap()).unwrap();
            let value = Value::from_octet_string(&content);
            let mut expected = result.clone();
            let with_content = vec![status.clone(), attributes::CONTENT.single(value)];
            expected.entry_information =
                Some(EntryInformation { attributes: with_content, ..entry.clone() });
            assert_eq!(read, expected);
        }
    }
}
