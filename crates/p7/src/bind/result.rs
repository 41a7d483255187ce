//! The bind result, and the members of it that were added in 1994.

use super::{read_credentials, write_credentials};
use crate::entry::{EntryClass, SequenceNumber};
use crate::extension::{self, MsExtension};
use crate::limits::MAX_IDENTIFIERS;
use crate::registration::number;
use crate::wire::{self, GENERAL_STRING, explicit, require};
use base::ber::{
    Element, Error, Fault, Field, Member, Oid, Tag, Writer, read_distinct_set, universal as u,
};
use p1::Credentials;

/// MSBindResult.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MsBindResult {
    /// responder-credentials.
    pub responder_credentials: Credentials,
    /// available-auto-actions.
    pub available_auto_actions: Vec<Oid>,
    /// available-attribute-types.
    pub available_attribute_types: Vec<Oid>,
    /// alert-indication: an alert took place since the last association ended.
    pub alert_indication: bool,
    /// content-types-supported.
    pub content_types_supported: Vec<Oid>,
    /// What was added in 1994. In a context of 1988 it is the default, which writes nothing.
    pub of_1994: MsBindResult1994,
}

/// The members of MSBindResult that were added in 1994.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MsBindResult1994 {
    /// entry-classes-supported.
    pub entry_classes_supported: Vec<EntryClass>,
    /// matching-rules-supported.
    pub matching_rules_supported: Vec<Oid>,
    /// bind-result-extensions.
    pub extensions: Vec<MsExtension>,
    /// message-group-depth.
    pub message_group_depth: Option<i64>,
    /// auto-action-error-indication.
    pub auto_action_error_indication: Option<AutoActionErrorIndication>,
    /// unsupported-extensions.
    pub unsupported_extensions: Vec<Oid>,
    /// ua-registration-id-unknown.
    pub ua_registration_id_unknown: bool,
    /// service-information.
    pub service_information: Option<String>,
}

/// AutoActionErrorIndication: an auto-action failed (1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AutoActionErrorIndication {
    /// indication-only, 0.
    IndicationOnly,
    /// auto-action-log-entry, 1.
    AutoActionLogEntry(SequenceNumber),
}

const CREDENTIALS: Tag = Tag::context(2);

impl AutoActionErrorIndication {
    /// Reads the CHOICE.
    ///
    /// # Errors
    /// Another tag, or malformed.
    pub fn read(e: &Element<'_>) -> Result<AutoActionErrorIndication, Error> {
        match number(e) {
            0 => wire::inner(e, u::NULL).map(|_| AutoActionErrorIndication::IndicationOnly),
            1 => SequenceNumber::read_inner(e).map(AutoActionErrorIndication::AutoActionLogEntry),
            _ => Err(Fault::Unexpected(e.tag).into()),
        }
    }

    /// Appends the CHOICE.
    pub fn write(self, w: &mut Writer) {
        match self {
            AutoActionErrorIndication::IndicationOnly => explicit(w, 0, |w| w.null(u::NULL)),
            AutoActionErrorIndication::AutoActionLogEntry(number) => number.write_as(w, 1),
        }
    }
}

impl MsBindResult {
    /// A result of these credentials, and nothing else.
    pub fn new(responder_credentials: Credentials) -> MsBindResult {
        MsBindResult {
            responder_credentials,
            available_auto_actions: Vec::new(),
            available_attribute_types: Vec::new(),
            alert_indication: false,
            content_types_supported: Vec::new(),
            of_1994: MsBindResult1994::default(),
        }
    }

    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no credentials; the field is named.
    pub fn read(e: &Element<'_>) -> Result<MsBindResult, Error> {
        let mut credentials = Member::new("responder-credentials");
        let mut actions = Member::new("available-auto-actions");
        let mut attributes = Member::new("available-attribute-types");
        let mut alert = Member::new("alert-indication");
        let mut types = Member::new("content-types-supported");
        let mut later = Members1994::default();
        let set = require(e, u::SET).field("MSBindResult")?;
        let members = read_distinct_set(set, |m| match number(m) {
            2 => credentials.once(m, read_credentials),
            3 => actions.once(m, |m| wire::oids(m, u::SET)),
            4 => attributes.once(m, |m| wire::oids(m, u::SET)),
            5 => alert.once(m, wire::boolean),
            6 => types.once(m, |m| wire::oids(m, u::SET)),
            _ => later.take(m),
        });
        members.field("MSBindResult")?;
        Ok(MsBindResult {
            responder_credentials: credentials.required(CREDENTIALS)?,
            available_auto_actions: actions.or_default(),
            available_attribute_types: attributes.or_default(),
            alert_indication: alert.or_default(),
            content_types_supported: types.or_default(),
            of_1994: later.finish(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            write_credentials(w, &self.responder_credentials);
            wire::write_oids(w, 3, u::SET, &self.available_auto_actions);
            wire::write_oids(w, 4, u::SET, &self.available_attribute_types);
            wire::write_boolean(w, 5, self.alert_indication, false);
            wire::write_oids(w, 6, u::SET, &self.content_types_supported);
            self.of_1994.write(w);
        });
    }
}

/// The members of 1994 while they are read.
struct Members1994 {
    classes: Member<Vec<EntryClass>>,
    rules: Member<Vec<Oid>>,
    extensions: Member<Vec<MsExtension>>,
    depth: Member<i64>,
    indication: Member<AutoActionErrorIndication>,
    unsupported: Member<Vec<Oid>>,
    unknown: Member<bool>,
    information: Member<String>,
}

impl Default for Members1994 {
    fn default() -> Members1994 {
        Members1994 {
            classes: Member::new("entry-classes-supported"),
            rules: Member::new("matching-rules-supported"),
            extensions: Member::new("bind-result-extensions"),
            depth: Member::new("message-group-depth"),
            indication: Member::new("auto-action-error-indication"),
            unsupported: Member::new("unsupported-extensions"),
            unknown: Member::new("ua-registration-id-unknown"),
            information: Member::new("service-information"),
        }
    }
}

impl Members1994 {
    fn take(&mut self, m: &Element<'_>) -> Result<bool, Error> {
        let class = |e: &Element<'_>| require(e, u::INTEGER)?.integer().map(EntryClass);
        match m.tag.number {
            7 => self.classes.once(m, |m| wire::list(m, u::SET, MAX_IDENTIFIERS, class)),
            8 => self.rules.once(m, |m| wire::oids(m, u::SET)),
            9 => self.extensions.once(m, extension::read_all),
            10 => self.depth.once(m, wire::integer),
            11 => self.indication.once(m, |m| AutoActionErrorIndication::read(&m.only_child()?)),
            12 => self.unsupported.once(m, |m| wire::oids(m, u::SET)),
            13 => self.unknown.once(m, wire::boolean),
            14 => self.information.once(m, |m| wire::text(m, GENERAL_STRING)),
            _ => Ok(false),
        }
    }

    fn finish(self) -> MsBindResult1994 {
        MsBindResult1994 {
            entry_classes_supported: self.classes.or_default(),
            matching_rules_supported: self.rules.or_default(),
            extensions: self.extensions.or_default(),
            message_group_depth: self.depth.optional(),
            auto_action_error_indication: self.indication.optional(),
            unsupported_extensions: self.unsupported.or_default(),
            ua_registration_id_unknown: self.unknown.or_default(),
            service_information: self.information.optional(),
        }
    }
}

impl MsBindResult1994 {
    fn write(&self, w: &mut Writer) {
        wire::write_some(w, 7, u::SET, &self.entry_classes_supported, |class, w| {
            w.integer(u::INTEGER, class.0);
        });
        wire::write_oids(w, 8, u::SET, &self.matching_rules_supported);
        extension::write_all(w, 9, &self.extensions);
        if let Some(depth) = self.message_group_depth {
            wire::write_integer(w, 10, depth);
        }
        if let Some(indication) = self.auto_action_error_indication {
            explicit(w, 11, |w| indication.write(w));
        }
        wire::write_oids(w, 12, u::SET, &self.unsupported_extensions);
        wire::write_boolean(w, 13, self.ua_registration_id_unknown, false);
        if let Some(information) = &self.service_information {
            wire::write_text(w, 14, GENERAL_STRING, information);
        }
    }
}
