//! modify: attributes of entries (1994).

use crate::entry::{Attribute, EntryClass, SequenceNumber};
use crate::extension::{self, MsExtension};
use crate::limits::{MAX_MODIFICATIONS, MAX_VALUES};
use crate::operation::{numbers, write_numbers};
use crate::registration::number;
use crate::selector::Selector;
use crate::value::Value;
use crate::wire::{self, explicit, require};
use base::ber::{Element, Error, Field, Member, Oid, Tag, Writer, read_set, universal as u};

/// Which entries are modified: entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModifiedEntries {
    /// selector, 1.
    Selector(Selector),
    /// specific-entries, 2.
    Specific(Vec<SequenceNumber>),
}

/// ModifyArgument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifyArgument {
    /// entry-class.
    pub entry_class: EntryClass,
    /// entries.
    pub entries: ModifiedEntries,
    /// modifications, in the order in which they are made.
    pub modifications: Vec<EntryModification>,
    /// modify-extensions.
    pub extensions: Vec<MsExtension>,
}

/// EntryModification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryModification {
    /// strict: what is there already, or is missing, is an error.
    pub strict: bool,
    /// modification.
    pub modification: Modification,
}

/// What is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Modification {
    /// add-attribute, 1.
    AddAttribute(Attribute),
    /// remove-attribute, 2.
    RemoveAttribute(Oid),
    /// add-values, 3.
    AddValues(OrderedAttribute),
    /// remove-values, 4.
    RemoveValues(OrderedAttribute),
}

/// OrderedAttribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedAttribute {
    /// attribute-type.
    pub attribute_type: Oid,
    /// attribute-values.
    pub values: Vec<OrderedValue>,
}

/// A value, a position, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderedValue {
    /// value.
    pub value: Option<Value>,
    /// position, counted from 1.
    pub position: Option<i64>,
}

/// ModifyResult.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModifyResult {
    /// entries-modified.
    pub entries_modified: Vec<SequenceNumber>,
    /// modify-result-extensions.
    pub extensions: Vec<MsExtension>,
}

const SELECTOR: Tag = Tag::context(1);
const MODIFICATIONS: Tag = Tag::context(3);
const ADD_ATTRIBUTE: Tag = Tag::context(1);
const VALUE: Tag = Tag::context(0);
const POSITION: Tag = Tag::context(1);

impl ModifyArgument {
    /// Reads the SET. Of two kinds of entries the last counts.
    ///
    /// # Errors
    /// Malformed BER, or no entries or modifications; the field is named.
    pub fn read(e: &Element<'_>) -> Result<ModifyArgument, Error> {
        let (mut class, mut entries) = (Member::new("entry-class"), Member::new("entries"));
        let (mut modifications, mut extensions) =
            (Member::new("modifications"), Member::new("modify-extensions"));
        let most = MAX_MODIFICATIONS;
        let set = require(e, u::SET).field("ModifyArgument")?;
        let members = read_set(set, |m| match number(m) {
            0 => class.once(m, EntryClass::read_inner),
            1 => entries.last(m, |m| Selector::read_inner(m).map(ModifiedEntries::Selector)),
            2 => entries.last(m, |m| numbers(m, u::SEQUENCE).map(ModifiedEntries::Specific)),
            3 => {
                modifications.once(m, |m| wire::list(m, u::SEQUENCE, most, EntryModification::read))
            }
            4 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("ModifyArgument")?;
        Ok(ModifyArgument {
            entry_class: class.or_default(),
            entries: entries.required(SELECTOR)?,
            modifications: modifications.required(MODIFICATIONS)?,
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.entry_class.write_default(w);
            match &self.entries {
                ModifiedEntries::Selector(selector) => explicit(w, 1, |w| selector.write(w)),
                ModifiedEntries::Specific(all) => {
                    wire::write_list(w, 2, u::SEQUENCE, all, SequenceNumber::write);
                }
            }
            wire::write_list(w, 3, u::SEQUENCE, &self.modifications, EntryModification::write);
            extension::write_all(w, 4, &self.extensions);
        });
    }
}

impl EntryModification {
    fn read(e: &Element<'_>) -> Result<EntryModification, Error> {
        let (mut strict, mut modification) = (Member::new("strict"), Member::new("modification"));
        read_set(require(e, u::SET)?, |m| match number(m) {
            0 => strict.once(m, wire::boolean),
            1 => modification
                .last(m, |m| Attribute::read(&m.only_child()?).map(Modification::AddAttribute)),
            2 => modification.last(m, |m| wire::oid(m).map(Modification::RemoveAttribute)),
            3 => modification.last(m, |m| OrderedAttribute::read(m).map(Modification::AddValues)),
            4 => {
                modification.last(m, |m| OrderedAttribute::read(m).map(Modification::RemoveValues))
            }
            _ => Ok(false),
        })?;
        let modification = modification.required(ADD_ATTRIBUTE)?;
        Ok(EntryModification { strict: strict.or_default(), modification })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            wire::write_boolean(w, 0, self.strict, false);
            match &self.modification {
                Modification::AddAttribute(attribute) => explicit(w, 1, |w| attribute.write(w)),
                Modification::RemoveAttribute(oid) => wire::write_oid(w, 2, oid),
                Modification::AddValues(values) => explicit(w, 3, |w| values.write(w)),
                Modification::RemoveValues(values) => explicit(w, 4, |w| values.write(w)),
            }
        });
    }
}

impl OrderedAttribute {
    /// `[n] OrderedAttribute`.
    fn read(e: &Element<'_>) -> Result<OrderedAttribute, Error> {
        let mut members = wire::inner(e, u::SEQUENCE)?.children()?;
        let attribute_type =
            members.require(u::OID).and_then(|e| e.oid()).field("attribute-type")?;
        let values = members.require(u::SEQUENCE);
        let values = values.and_then(|e| p1::wire::list(&e, MAX_VALUES, OrderedValue::read));
        let values = values.field("attribute-values")?;
        members.finish()?;
        Ok(OrderedAttribute { attribute_type, values })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            w.oid(u::OID, &self.attribute_type);
            w.constructed(u::SEQUENCE, |w| self.values.iter().for_each(|value| value.write(w)));
        });
    }
}

impl OrderedValue {
    fn read(e: &Element<'_>) -> Result<OrderedValue, Error> {
        let mut members = require(e, u::SEQUENCE)?.children()?;
        let value = members.optional(VALUE)?;
        let value = value.map(|e| Value::keep_inner(&e)).transpose().field("value")?;
        let position = members.optional(POSITION)?;
        let position = position.map(|e| wire::integer(&e)).transpose().field("position")?;
        members.finish()?;
        Ok(OrderedValue { value, position })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            if let Some(value) = &self.value {
                explicit(w, 0, |w| value.write(w));
            }
            if let Some(position) = self.position {
                wire::write_integer(w, 1, position);
            }
        });
    }
}

impl ModifyResult {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<ModifyResult, Error> {
        let mut modified = Member::new("entries-modified");
        let mut extensions = Member::new("modify-result-extensions");
        let members = read_set(require(e, u::SET).field("ModifyResult")?, |m| match number(m) {
            0 => modified.once(m, |m| numbers(m, u::SEQUENCE)),
            1 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("ModifyResult")?;
        Ok(ModifyResult {
            entries_modified: modified.or_default(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            write_numbers(w, 0, u::SEQUENCE, &self.entries_modified);
            extension::write_all(w, 1, &self.extensions);
        });
    }
}
