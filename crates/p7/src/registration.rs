//! What register-MS keeps since 1994: defaults of submissions, registrations of user agents, message
//! groups, and the request for what is registered (X.413 8.6).

use crate::entry::EntryClass;
use crate::extension::{self, MsExtension};
use crate::limits::MAX_GROUPS;
use crate::wire::{self, GENERAL_STRING, explicit, require};
use base::ber::{Element, Error, Fault, Member, Oid, Tag, Writer, read_set, universal as u};
use p1::wire::{latin1, write_latin1};

/// The number of a member with a context tag; no member for any other.
pub(crate) fn number(m: &Element<'_>) -> u32 {
    if m.tag == Tag::context(m.tag.number) { m.tag.number } else { u32::MAX }
}

/// MessageGroupName: the names from the outermost group inwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessageGroupName(pub Vec<String>);

impl MessageGroupName {
    /// Reads the SEQUENCE OF GeneralString.
    ///
    /// # Errors
    /// Malformed, or too many names.
    pub fn read(e: &Element<'_>) -> Result<MessageGroupName, Error> {
        let part = |e: &Element<'_>| latin1(require(e, GENERAL_STRING)?);
        p1::wire::list(require(e, u::SEQUENCE)?, MAX_GROUPS, part).map(MessageGroupName)
    }

    /// Appends it.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            self.0.iter().for_each(|part| write_latin1(w, GENERAL_STRING, part));
        });
    }

    pub(crate) fn read_inner(e: &Element<'_>) -> Result<MessageGroupName, Error> {
        MessageGroupName::read(&e.only_child()?)
    }
}

/// MSSubmissionOptions: what the store does with a submission (1994).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubmissionOptions {
    /// object-entry-class: where the submission is stored.
    pub object_entry_class: Option<EntryClass>,
    /// disable-auto-modify.
    pub disable_auto_modify: bool,
    /// add-message-group-names.
    pub add_message_group_names: Vec<MessageGroupName>,
    /// ms-submission-extensions.
    pub extensions: Vec<MsExtension>,
}

impl SubmissionOptions {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<SubmissionOptions, Error> {
        let mut class = Member::new("object-entry-class");
        let mut disable = Member::new("disable-auto-modify");
        let mut groups = Member::new("add-message-group-names");
        let mut extensions = Member::new("ms-submission-extensions");
        read_set(require(e, u::SET)?, |m| match number(m) {
            0 => class.once(m, EntryClass::read_inner),
            1 => disable.once(m, wire::boolean),
            2 => groups.once(m, |m| wire::list(m, u::SET, MAX_GROUPS, MessageGroupName::read)),
            3 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        })?;
        Ok(SubmissionOptions {
            object_entry_class: class.optional(),
            disable_auto_modify: disable.or_default(),
            add_message_group_names: groups.or_default(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if let Some(class) = self.object_entry_class {
                wire::write_integer(w, 0, class.0);
            }
            wire::write_boolean(w, 1, self.disable_auto_modify, false);
            let groups = &self.add_message_group_names;
            wire::write_some(w, 2, u::SET, groups, MessageGroupName::write);
            extension::write_all(w, 3, &self.extensions);
        });
    }

    pub(crate) fn read_inner(e: &Element<'_>) -> Result<SubmissionOptions, Error> {
        SubmissionOptions::read(&e.only_child()?)
    }
}

/// UARegistration: defaults of one of the user's agents, by its name (1994).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UaRegistration {
    /// ua-registration-identifier: PrintableString.
    pub identifier: String,
    /// ua-list-attribute-defaults.
    pub list_attribute_defaults: Option<Vec<Oid>>,
    /// ua-fetch-attribute-defaults.
    pub fetch_attribute_defaults: Option<Vec<Oid>>,
    /// ua-submission-defaults.
    pub submission_defaults: Option<SubmissionOptions>,
    /// content-specific-defaults.
    pub content_specific_defaults: Vec<MsExtension>,
}

impl UaRegistration {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no identifier; the field is named.
    pub fn read(e: &Element<'_>) -> Result<UaRegistration, Error> {
        let mut identifier = Member::new("ua-registration-identifier");
        let mut list = Member::new("ua-list-attribute-defaults");
        let mut fetch = Member::new("ua-fetch-attribute-defaults");
        let mut submission = Member::new("ua-submission-defaults");
        let mut specific = Member::new("content-specific-defaults");
        read_set(require(e, u::SET)?, |m| match number(m) {
            0 => identifier.once(m, |m| wire::text(m, u::PRINTABLE_STRING)),
            1 => list.once(m, |m| wire::oids(m, u::SET)),
            2 => fetch.once(m, |m| wire::oids(m, u::SET)),
            3 => submission.once(m, SubmissionOptions::read_inner),
            4 => specific.once(m, extension::read_all),
            _ => Ok(false),
        })?;
        Ok(UaRegistration {
            identifier: identifier.required(Tag::context(0))?,
            list_attribute_defaults: list.optional(),
            fetch_attribute_defaults: fetch.optional(),
            submission_defaults: submission.optional(),
            content_specific_defaults: specific.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            wire::write_text(w, 0, u::PRINTABLE_STRING, &self.identifier);
            write_defaults(w, 1, self.list_attribute_defaults.as_ref());
            write_defaults(w, 2, self.fetch_attribute_defaults.as_ref());
            if let Some(options) = &self.submission_defaults {
                explicit(w, 3, |w| options.write(w));
            }
            extension::write_all(w, 4, &self.content_specific_defaults);
        });
    }
}

/// Writes attribute defaults, of which an empty list is not the same as none.
pub(crate) fn write_defaults(w: &mut Writer, n: u32, defaults: Option<&Vec<Oid>>) {
    if let Some(defaults) = defaults {
        wire::write_list(w, n, u::SET, defaults, wire::write_bare_oid);
    }
}

/// MessageGroupNameAndDescriptor (1994).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessageGroup {
    /// message-group-name.
    pub name: MessageGroupName,
    /// message-group-descriptor.
    pub descriptor: Option<String>,
}

impl MessageGroup {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no name; the field is named.
    pub fn read(e: &Element<'_>) -> Result<MessageGroup, Error> {
        let mut name = Member::new("message-group-name");
        let mut descriptor = Member::new("message-group-descriptor");
        read_set(require(e, u::SET)?, |m| match number(m) {
            0 => name.once(m, MessageGroupName::read_inner),
            1 => descriptor.once(m, |m| wire::text(m, GENERAL_STRING)),
            _ => Ok(false),
        })?;
        let name = name.required(Tag::context(0))?;
        Ok(MessageGroup { name, descriptor: descriptor.optional() })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            explicit(w, 0, |w| self.name.write(w));
            if let Some(descriptor) = &self.descriptor {
                wire::write_text(w, 1, GENERAL_STRING, descriptor);
            }
        });
    }
}

/// One of MessageGroupRegistrations (1994).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MessageGroupRegistration {
    /// register-group, 0.
    Register(MessageGroup),
    /// deregister-group, 1.
    Deregister(MessageGroupName),
    /// change-descriptors, 2.
    ChangeDescriptors(MessageGroup),
}

impl MessageGroupRegistration {
    /// Reads the CHOICE.
    ///
    /// # Errors
    /// Another tag, or malformed.
    pub fn read(e: &Element<'_>) -> Result<MessageGroupRegistration, Error> {
        let inner = e.only_child()?;
        match number(e) {
            0 => MessageGroup::read(&inner).map(MessageGroupRegistration::Register),
            1 => MessageGroupName::read(&inner).map(MessageGroupRegistration::Deregister),
            2 => MessageGroup::read(&inner).map(MessageGroupRegistration::ChangeDescriptors),
            _ => Err(Fault::Unexpected(e.tag).into()),
        }
    }

    /// Appends the CHOICE.
    pub fn write(&self, w: &mut Writer) {
        match self {
            MessageGroupRegistration::Register(group) => explicit(w, 0, |w| group.write(w)),
            MessageGroupRegistration::Deregister(name) => explicit(w, 1, |w| name.write(w)),
            MessageGroupRegistration::ChangeDescriptors(group) => {
                explicit(w, 2, |w| group.write(w));
            }
        }
    }
}

/// RegistrationTypes: which registrations a request or an error is about (1994).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistrationTypes {
    /// registrations, bit `n` as `1 << n`: auto-action-registrations 0, list-attribute-defaults 1,
    /// fetch-attribute-defaults 2, ua-registrations 3, submission-defaults 4,
    /// message-group-registrations 5.
    pub registrations: Option<u32>,
    /// extended-registrations.
    pub extended: Vec<Oid>,
    /// restrict-message-groups.
    pub restrict_message_groups: Option<MessageGroupsRestriction>,
}

/// MessageGroupsRestriction (1994).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageGroupsRestriction {
    /// parent-group.
    pub parent_group: Option<MessageGroupName>,
    /// immediate-descendants-only.
    pub immediate_descendants_only: bool,
    /// omit-descriptors.
    pub omit_descriptors: bool,
}

impl RegistrationTypes {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<RegistrationTypes, Error> {
        let mut registrations = Member::new("registrations");
        let mut extended = Member::new("extended-registrations");
        let mut restrict = Member::new("restrict-message-groups");
        read_set(require(e, u::SET)?, |m| match number(m) {
            0 => registrations.once(m, wire::bits),
            1 => extended.once(m, |m| wire::oids(m, u::SET)),
            2 => restrict.once(m, |m| MessageGroupsRestriction::read(&m.only_child()?)),
            _ => Ok(false),
        })?;
        Ok(RegistrationTypes {
            registrations: registrations.optional(),
            extended: extended.or_default(),
            restrict_message_groups: restrict.optional(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if let Some(bits) = self.registrations {
                wire::write_bits(w, 0, bits);
            }
            wire::write_oids(w, 1, u::SET, &self.extended);
            if let Some(restriction) = &self.restrict_message_groups {
                explicit(w, 2, |w| restriction.write(w));
            }
        });
    }

    pub(crate) fn read_inner(e: &Element<'_>) -> Result<RegistrationTypes, Error> {
        RegistrationTypes::read(&e.only_child()?)
    }
}

impl MessageGroupsRestriction {
    fn read(e: &Element<'_>) -> Result<MessageGroupsRestriction, Error> {
        let mut parent = Member::new("parent-group");
        let mut immediate = Member::new("immediate-descendants-only");
        let mut omit = Member::new("omit-descriptors");
        read_set(require(e, u::SET)?, |m| match number(m) {
            0 => parent.once(m, MessageGroupName::read_inner),
            1 => immediate.once(m, wire::boolean),
            2 => omit.once(m, wire::boolean),
            _ => Ok(false),
        })?;
        Ok(MessageGroupsRestriction {
            parent_group: parent.optional(),
            immediate_descendants_only: immediate.optional().unwrap_or(true),
            omit_descriptors: omit.optional().unwrap_or(true),
        })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if let Some(parent) = &self.parent_group {
                explicit(w, 0, |w| parent.write(w));
            }
            wire::write_boolean(w, 1, self.immediate_descendants_only, true);
            wire::write_boolean(w, 2, self.omit_descriptors, true);
        });
    }
}
