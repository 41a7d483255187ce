//! MS-bind: how a user opens an association with its store (X.413 clause 7).
//!
//! The ROSE frame (argument 16, result 17, error 18) belongs to the layer below, as for P3.

use crate::entry::{EntryClass, SequenceNumber};
use crate::extension::{self, MsExtension};
use crate::limits::MAX_IDENTIFIERS;
use crate::named::named_numbers;
use crate::wire::{self, GENERAL_STRING, explicit, require};
use base::ber::{
    Element, Error, Fault, Field, Member, Oid, Tag, Writer, read_distinct_set, universal as u,
};
use bytes::Bytes;
use p1::wire::{keep, write_latin1};
use p1::{Credentials, ORName};

/// Restrictions: what the store does not return by fetch and list on this association. Absent lists
/// restrict nothing; so do empty ones, which the standard does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// allowed-content-types.
    pub allowed_content_types: Vec<Oid>,
    /// allowed-EITs.
    pub allowed_eits: Vec<Oid>,
    /// maximum-attribute-length, octets.
    pub maximum_attribute_length: Option<i64>,
}

/// MSBindArgument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MsBindArgument {
    /// initiator-name.
    pub initiator_name: ORName,
    /// initiator-credentials.
    pub initiator_credentials: Credentials,
    /// security-context: the whole element. The one implicit tag of the module.
    pub security_context: Option<Bytes>,
    /// fetch-restrictions.
    pub fetch_restrictions: Option<Restrictions>,
    /// ms-configuration-request: whether the result states what the store can do.
    pub ms_configuration_request: bool,
    /// ua-registration-identifier (1994).
    pub ua_registration_identifier: Option<String>,
    /// bind-extensions (1994).
    pub extensions: Vec<MsExtension>,
}

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

named_numbers! {
    /// BindProblem. The numbers are not those of MTSBindError.
    BindProblem {
        /// Name or credentials are wrong.
        AUTHENTICATION_ERROR = 0 "authentication-error";
        /// The security-context is not acceptable.
        UNACCEPTABLE_SECURITY_CONTEXT = 1 "unacceptable-security-context";
        /// The store cannot serve the user now.
        UNABLE_TO_ESTABLISH_ASSOCIATION = 2 "unable-to-establish-association";
        /// An extension cannot be satisfied (1994).
        BIND_EXTENSION_PROBLEM = 3 "bind-extension-problem";
        /// The connection below is not confidential enough (1994).
        INADEQUATE_ASSOCIATION_CONFIDENTIALITY = 4 "inadequate-association-confidentiality";
    }
}

/// MS-bind-error. The bare form is that of 1988.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MsBindError {
    /// unqualified-error.
    Unqualified(BindProblem),
    /// qualified-error (1994).
    Qualified {
        /// bind-problem.
        problem: BindProblem,
        /// supplementary-information.
        information: Option<String>,
        /// bind-extension-errors.
        extension_errors: Vec<Oid>,
    },
}

const CREDENTIALS: Tag = Tag::context(2);
const SECURITY_CONTEXT: Tag = Tag::context(3);
const FETCH_RESTRICTIONS: Tag = Tag::context(4);
const CONFIGURATION_REQUEST: Tag = Tag::context(5);
const UA_REGISTRATION: Tag = Tag::context(6);
const BIND_EXTENSIONS: Tag = Tag::context(7);

fn read_credentials(e: &Element<'_>) -> Result<Credentials, Error> {
    Credentials::read(&e.only_child()?)
}

fn write_credentials(w: &mut Writer, credentials: &Credentials) {
    explicit(w, 2, |w| p1::wire::encode(w, credentials));
}

impl Restrictions {
    fn read(e: &Element<'_>) -> Result<Restrictions, Error> {
        let mut types = Member::new("allowed-content-types");
        let mut eits = Member::new("allowed-EITs");
        let mut length = Member::new("maximum-attribute-length");
        read_distinct_set(&wire::inner(e, u::SET)?, |m| match m.tag.number {
            _ if m.tag != Tag::context(m.tag.number) => Ok(false),
            0 => types.once(m, |m| wire::oids(m, u::SET)),
            1 => eits.once(m, |m| wire::oids(m, u::SET)),
            2 => length.once(m, wire::integer),
            _ => Ok(false),
        })?;
        Ok(Restrictions {
            allowed_content_types: types.or_default(),
            allowed_eits: eits.or_default(),
            maximum_attribute_length: length.optional(),
        })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            wire::write_oids(w, 0, u::SET, &self.allowed_content_types);
            wire::write_oids(w, 1, u::SET, &self.allowed_eits);
            if let Some(length) = self.maximum_attribute_length {
                wire::write_integer(w, 2, length);
            }
        });
    }
}

impl MsBindArgument {
    /// A bind of this name and these credentials, and nothing else.
    pub fn new(initiator_name: ORName, initiator_credentials: Credentials) -> MsBindArgument {
        MsBindArgument {
            initiator_name,
            initiator_credentials,
            security_context: None,
            fetch_restrictions: None,
            ms_configuration_request: false,
            ua_registration_identifier: None,
            extensions: Vec::new(),
        }
    }

    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no name or credentials; the field is named.
    pub fn read(e: &Element<'_>) -> Result<MsBindArgument, Error> {
        let (mut name, mut credentials) =
            (Member::new("initiator-name"), Member::new("initiator-credentials"));
        let (mut context, mut restrictions) =
            (Member::new("security-context"), Member::new("fetch-restrictions"));
        let (mut configuration, mut registration) =
            (Member::new("ms-configuration-request"), Member::new("ua-registration-identifier"));
        let mut extensions = Member::new("bind-extensions");
        let set = require(e, u::SET).field("MSBindArgument")?;
        let members = read_distinct_set(set, |m| match m.tag {
            p1::wire::tag::OR_NAME => name.once(m, ORName::read),
            CREDENTIALS => credentials.once(m, read_credentials),
            SECURITY_CONTEXT => context.once(m, |m| Ok(keep(m))),
            FETCH_RESTRICTIONS => restrictions.once(m, Restrictions::read),
            CONFIGURATION_REQUEST => configuration.once(m, wire::boolean),
            UA_REGISTRATION => registration.once(m, |m| wire::text(m, u::PRINTABLE_STRING)),
            BIND_EXTENSIONS => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("MSBindArgument")?;
        Ok(MsBindArgument {
            initiator_name: name.required(p1::wire::tag::OR_NAME)?,
            initiator_credentials: credentials.required(CREDENTIALS)?,
            security_context: context.optional(),
            fetch_restrictions: restrictions.optional(),
            ms_configuration_request: configuration.or_default(),
            ua_registration_identifier: registration.optional(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.initiator_name.write(w);
            write_credentials(w, &self.initiator_credentials);
            if let Some(context) = &self.security_context {
                w.raw(context);
            }
            if let Some(restrictions) = &self.fetch_restrictions {
                explicit(w, 4, |w| restrictions.write(w));
            }
            wire::write_boolean(w, 5, self.ms_configuration_request, false);
            if let Some(identifier) = &self.ua_registration_identifier {
                wire::write_text(w, 6, u::PRINTABLE_STRING, identifier);
            }
            extension::write_all(w, 7, &self.extensions);
        });
    }
}

impl AutoActionErrorIndication {
    /// Reads the CHOICE.
    ///
    /// # Errors
    /// Another tag, or malformed.
    pub fn read(e: &Element<'_>) -> Result<AutoActionErrorIndication, Error> {
        match e.tag.number {
            _ if e.tag != Tag::context(e.tag.number) => Err(Fault::Unexpected(e.tag).into()),
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
        let members = read_distinct_set(set, |m| match m.tag.number {
            _ if m.tag != Tag::context(m.tag.number) => Ok(false),
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

impl MsBindError {
    /// The problem, in either form.
    pub fn problem(&self) -> BindProblem {
        match self {
            MsBindError::Unqualified(problem) | MsBindError::Qualified { problem, .. } => *problem,
        }
    }

    /// Reads either form.
    ///
    /// # Errors
    /// Malformed BER, or no problem; the field is named.
    pub fn read(e: &Element<'_>) -> Result<MsBindError, Error> {
        match e.tag {
            u::ENUMERATED => {
                let problem = e.integer().field("bind-problem")?;
                Ok(MsBindError::Unqualified(BindProblem(problem)))
            }
            u::SET => read_qualified(e).field("qualified-error"),
            other => Err(Fault::Unexpected(other)).field("MS-bind-error"),
        }
    }

    /// Appends it.
    pub fn write(&self, w: &mut Writer) {
        match self {
            MsBindError::Unqualified(problem) => w.integer(u::ENUMERATED, problem.0),
            MsBindError::Qualified { problem, information, extension_errors } => {
                w.constructed(u::SET, |w| {
                    explicit(w, 0, |w| w.integer(u::ENUMERATED, problem.0));
                    if let Some(information) = information {
                        explicit(w, 1, |w| write_latin1(w, GENERAL_STRING, information));
                    }
                    wire::write_oids(w, 2, u::SET, extension_errors);
                });
            }
        }
    }
}

fn read_qualified(e: &Element<'_>) -> Result<MsBindError, Error> {
    let mut problem = Member::new("bind-problem");
    let mut information = Member::new("supplementary-information");
    let mut errors = Member::new("bind-extension-errors");
    read_distinct_set(e, |m| match m.tag.number {
        _ if m.tag != Tag::context(m.tag.number) => Ok(false),
        0 => problem.once(m, |m| wire::inner(m, u::ENUMERATED)?.integer().map(BindProblem)),
        1 => information.once(m, |m| wire::text(m, GENERAL_STRING)),
        2 => errors.once(m, |m| wire::oids(m, u::SET)),
        _ => Ok(false),
    })?;
    Ok(MsBindError::Qualified {
        problem: problem.required(Tag::context(0))?,
        information: information.optional(),
        extension_errors: errors.or_default(),
    })
}

/// The name of the problem.
impl std::fmt::Display for MsBindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.problem().fmt(f)
    }
}
