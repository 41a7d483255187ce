//! register: what a user registers with the MTS for all later deliveries (X.411 8.4.1.1).

use super::controls::{content_types, refused_extension};
use super::{Controls, RefusedArgument};
use crate::content_type::ContentType;
use crate::extension::Extensions;
use crate::names::ORName;
use crate::wire::{self, bound, tag};
use base::ber::universal as u;
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_distinct_set};

/// ub-content-length: a limit of this length lifts it.
pub const MAX_CONTENT_LENGTH: i64 = 2_147_483_647;

/// RegisterArgument, in the form of 1988 and in that of 1994. What is absent stays registered as it was;
/// `Some(None)` is registered as nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisterArgument {
    /// deliverable-maximum-content-length in octets, or that of the deliverable-class.
    pub max_content_length: Option<Option<i64>>,
    /// deliverable-content-types, or those of the deliverable-class.
    pub content_types: Option<Option<Vec<ContentType>>>,
    /// default-delivery-controls.
    pub default_controls: Option<Controls>,
    /// recipient-assigned-alternate-recipient, without label or class.
    pub alternate: Option<Option<ORName>>,
    /// The first of what is to be registered and has no meaning here: operation-refused names it.
    pub undone: Option<RefusedArgument>,
}

const USER_ADDRESS: Tag = Tag::context(0);
const LENGTH: Tag = Tag::context(1);
const DEFAULT_CONTROLS: Tag = Tag::context(2);
/// deliverable-content-types in 1988, redirections in 1994.
const TYPES_OR_REDIRECTIONS: Tag = Tag::context(3);
/// labels-and-redirections in 1988, restricted-delivery in 1994.
const LABELS_OR_RESTRICTED: Tag = Tag::context(4);
const RETRIEVE: Tag = Tag::context(5);
const EXTENSIONS: Tag = Tag::context(6);

/// MessageClass.
const CLASS_TYPES: Tag = Tag::context(0);
const CLASS_LENGTH: Tag = Tag::context(1);
const CLASS_EITS: Tag = Tag::context(2);
const CLASS_LABELS: Tag = Tag::context(3);

/// LabelAndRedirection and RecipientRedirection: the label or the classes, and the alternate.
const LABEL_OR_CLASSES: Tag = Tag::context(0);
const ALTERNATE: Tag = Tag::context(1);

impl RegisterArgument {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or a member that neither edition has; the field is named.
    pub fn read(e: &Element<'_>) -> Result<RegisterArgument, Error> {
        if e.tag != u::SET {
            return Err(Fault::Unexpected(e.tag)).field("RegisterArgument");
        }
        let mut read = Reading::default();
        let mut length = Member::new("deliverable-maximum-content-length");
        let mut controls = Member::new("default-delivery-controls");
        let mut extensions = Member::new("extensions");
        let unknown = read_distinct_set(e, |m| match m.tag {
            tag::OR_NAME => Ok(read.undone(RefusedArgument::USER_NAME)),
            USER_ADDRESS => Ok(read.undone(RefusedArgument::USER_ADDRESS)),
            tag::EITS => Ok(read.undone(RefusedArgument::DELIVERABLE_EITS)),
            u::SET => read.class(m).field("deliverable-class"),
            LENGTH => length.once(m, |m| m.only_child()?.integer()),
            DEFAULT_CONTROLS => controls.once(m, |m| Controls::read(&m.only_child()?)),
            TYPES_OR_REDIRECTIONS => read.types_or_redirections(m),
            LABELS_OR_RESTRICTED => read.labels_or_restricted(m),
            RETRIEVE => Ok(read.undone(RefusedArgument::RETRIEVE_REGISTRATIONS)),
            EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        })?;
        if let Some(member) = unknown.first() {
            return Err(Fault::Unexpected(member.tag)).field("RegisterArgument");
        }
        let mut argument = read.argument;
        if let Some(length) = length.optional() {
            argument.max_content_length = Some(Some(length));
        }
        argument.default_controls = controls.optional();
        let of_controls = match &argument.default_controls {
            Some(controls) => controls.undone().field("default-delivery-controls")?,
            None => None,
        };
        let of_extensions = refused_extension(&extensions.or_default());
        argument.undone = argument.undone.or(of_controls).or(of_extensions);
        Ok(argument)
    }

    /// Appends the SET in the form of 1988, with a deliverable-class of 1994 where a limit is lifted, for
    /// which 1988 has no form. What is not registered is not written.
    pub fn write(&self, w: &mut Writer) {
        let lifts = self.max_content_length == Some(None) || self.content_types == Some(None);
        w.constructed(u::SET, |w| {
            if lifts {
                w.constructed(u::SET, |w| w.constructed(u::SET, |w| self.write_class(w)));
            } else if let Some(Some(length)) = self.max_content_length {
                w.constructed(LENGTH, |w| w.integer(u::INTEGER, length));
            }
            if let Some(controls) = &self.default_controls {
                w.constructed(DEFAULT_CONTROLS, |w| controls.write(w));
            }
            if let (Some(Some(types)), false) = (&self.content_types, lifts) {
                w.constructed(TYPES_OR_REDIRECTIONS, |w| types.iter().for_each(|t| t.write(w)));
            }
            if let Some(alternate) = &self.alternate {
                w.constructed(LABELS_OR_RESTRICTED, |w| write_alternate(w, alternate.as_ref()));
            }
        });
    }

    /// Appends the SET in the form of 1994.
    pub fn write_1994(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if self.max_content_length.is_some() || self.content_types.is_some() {
                w.constructed(u::SET, |w| w.constructed(u::SET, |w| self.write_class(w)));
            }
            if let Some(controls) = &self.default_controls {
                w.constructed(DEFAULT_CONTROLS, |w| controls.write(w));
            }
            if let Some(alternate) = &self.alternate {
                w.constructed(TYPES_OR_REDIRECTIONS, |w| write_alternate(w, alternate.as_ref()));
            }
        });
    }

    fn write_class(&self, w: &mut Writer) {
        if let Some(Some(types)) = &self.content_types {
            w.constructed(CLASS_TYPES, |w| types.iter().for_each(|t| t.write(w)));
        }
        if let Some(Some(length)) = self.max_content_length {
            w.integer(CLASS_LENGTH, length);
        }
    }
}

/// One LabelAndRedirection, or one RecipientRedirection: both are of these octets.
fn write_alternate(w: &mut Writer, alternate: Option<&ORName>) {
    w.constructed(u::SET, |w| {
        if let Some(name) = alternate {
            name.write_as(w, ALTERNATE);
        }
    });
}

/// An argument as it is read.
#[derive(Debug, Default)]
struct Reading {
    argument: RegisterArgument,
}

impl Reading {
    /// Notes what is not done. Always `true`, for [`read_distinct_set`].
    fn undone(&mut self, argument: RefusedArgument) -> bool {
        self.argument.undone.get_or_insert(argument);
        true
    }

    /// deliverable-class: one class, of content types and a length.
    fn class(&mut self, e: &Element<'_>) -> Result<bool, Error> {
        let classes = wire::list(e, bound::CLASSES, |class| {
            let mut types = Member::new("content-types");
            let mut length = Member::new("maximum-content-length");
            let mut other = None;
            let unknown = read_distinct_set(class, |m| match m.tag {
                CLASS_TYPES => types.once(m, content_types),
                CLASS_LENGTH => length.once(m, Element::integer),
                _ => Ok(false),
            })?;
            for member in unknown {
                other.get_or_insert(match member.tag {
                    CLASS_EITS => RefusedArgument::DELIVERABLE_EITS,
                    CLASS_LABELS => RefusedArgument::DELIVERABLE_SECURITY_LABELS,
                    // Priority, objects and restrictions are absent in a deliverable-class.
                    _ => RefusedArgument::DELIVERABLE_CONTENT_TYPES,
                });
            }
            Ok((types.optional(), length.optional(), other))
        })?;
        let mut classes = classes.into_iter();
        let (Some((types, length, other)), None) = (classes.next(), classes.next()) else {
            return Ok(self.undone(RefusedArgument::DELIVERABLE_CONTENT_TYPES));
        };
        self.argument.content_types = Some(types);
        self.argument.max_content_length = Some(length);
        Ok(other.is_none_or(|other| self.undone(other)))
    }

    /// Content types of 1988 or redirections of 1994, which are distinguished by what is inside.
    fn types_or_redirections(&mut self, e: &Element<'_>) -> Result<bool, Error> {
        if e.children()?.peek() == Some(u::SET) {
            return self.alternates(e, RefusedArgument::REDIRECTIONS).field("redirections");
        }
        let types = content_types(e).field("deliverable-content-types")?;
        self.argument.content_types = Some(Some(types));
        Ok(true)
    }

    /// Labels and redirections of 1988 or restricted-delivery of 1994.
    fn labels_or_restricted(&mut self, e: &Element<'_>) -> Result<bool, Error> {
        let mut members = e.children().field("labels-and-redirections")?;
        while let Some(member) = members.next().field("labels-and-redirections")? {
            let mut inner = member.children().field("labels-and-redirections")?;
            while let Some(part) = inner.next().field("labels-and-redirections")? {
                if [u::BOOLEAN, u::BIT_STRING].contains(&part.tag) {
                    return Ok(self.undone(RefusedArgument::RESTRICTED_DELIVERY));
                }
            }
        }
        let label = RefusedArgument::DELIVERABLE_SECURITY_LABELS;
        self.alternates(e, label).field("labels-and-redirections")
    }

    /// One alternate for everything: with a label or classes it is `refused`, and so are more.
    fn alternates(&mut self, e: &Element<'_>, refused: RefusedArgument) -> Result<bool, Error> {
        let mut is_for_some = false;
        let all = wire::list(e, bound::REDIRECTIONS, |one| {
            let mut alternate = Member::new("recipient-assigned-alternate-recipient");
            let others = read_distinct_set(one, |m| match m.tag {
                ALTERNATE => alternate.once(m, ORName::read),
                _ => Ok(false),
            })?;
            if let Some(other) = others.iter().find(|m| m.tag != LABEL_OR_CLASSES) {
                return Err(Fault::Unexpected(other.tag).into());
            }
            Ok((alternate.optional(), !others.is_empty()))
        })?;
        is_for_some |= all.iter().any(|(_, has_label)| *has_label);
        let mut all = all.into_iter();
        match (all.next(), all.next()) {
            (Some((alternate, _)), None) if !is_for_some => {
                self.argument.alternate = Some(alternate);
                Ok(true)
            }
            (None, _) => Err(Fault::Truncated.into()),
            _ => Ok(self.undone(refused)),
        }
    }
}
