//! register-MS: what the store does and returns until it is registered otherwise.

use crate::auto_action::{AutoActionDeregistration, AutoActionRegistration};
use crate::extension::{self, MsExtension};
use crate::limits::{MAX_GROUPS, MAX_LABELS, MAX_REGISTRATIONS};
use crate::registration::{
    MessageGroup, MessageGroupRegistration, RegistrationTypes, SubmissionOptions, UaRegistration,
    number, write_defaults,
};
use crate::wire::{self, explicit, require};
use base::ber::{Element, Error, Fault, Field, Member, Oid, Tag, Writer, read_set, universal as u};
use bytes::Bytes;
use p1::Credentials;
use p1::p3::ChangeCredentials;

/// Register-MSArgument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisterMsArgument {
    /// auto-action-registrations.
    pub auto_action_registrations: Vec<AutoActionRegistration>,
    /// auto-action-deregistrations.
    pub auto_action_deregistrations: Vec<AutoActionDeregistration>,
    /// list-attribute-defaults; an empty list removes them.
    pub list_attribute_defaults: Option<Vec<Oid>>,
    /// fetch-attribute-defaults; an empty list removes them.
    pub fetch_attribute_defaults: Option<Vec<Oid>>,
    /// change-credentials: a SEQUENCE here, and a SET in P3.
    pub change_credentials: Option<ChangeCredentials>,
    /// user-security-labels, as whole elements.
    pub user_security_labels: Vec<Bytes>,
    /// ua-registrations (1994).
    pub ua_registrations: Vec<UaRegistration>,
    /// submission-defaults (1994).
    pub submission_defaults: Option<SubmissionOptions>,
    /// message-group-registrations (1994).
    pub message_group_registrations: Vec<MessageGroupRegistration>,
    /// registration-status-request (1994).
    pub registration_status_request: Option<RegistrationTypes>,
    /// register-ms-extensions (1994).
    pub extensions: Vec<MsExtension>,
}

/// Register-MSResult.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterMsResult {
    /// no-status-information: the form of 1988.
    NoStatusInformation,
    /// registered-information (1994).
    Registered(RegisteredInformation),
}

/// What is registered, as far as it was asked for (1994).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisteredInformation {
    /// auto-action-registrations.
    pub auto_action_registrations: Vec<AutoActionRegistration>,
    /// list-attribute-defaults.
    pub list_attribute_defaults: Vec<Oid>,
    /// fetch-attribute-defaults.
    pub fetch_attribute_defaults: Vec<Oid>,
    /// ua-registrations.
    pub ua_registrations: Vec<UaRegistration>,
    /// submission-defaults.
    pub submission_defaults: Option<SubmissionOptions>,
    /// message-group-registrations.
    pub message_group_registrations: Vec<MessageGroup>,
    /// register-ms-result-extensions.
    pub extensions: Vec<MsExtension>,
}

const OLD: Tag = Tag::context(0);
const NEW: Tag = Tag::context(1);

/// `[4]` around SEQUENCE of old and new credentials.
fn read_change(e: &Element<'_>) -> Result<ChangeCredentials, Error> {
    let mut members = wire::inner(e, u::SEQUENCE)?.children()?;
    let mut next = |tag| Credentials::read(&members.require(tag)?.only_child()?);
    let old = next(OLD).field("old-credentials")?;
    let new = next(NEW).field("new-credentials")?;
    members.finish()?;
    Ok(ChangeCredentials { old, new })
}

fn write_change(change: &ChangeCredentials, w: &mut Writer) {
    w.constructed(u::SEQUENCE, |w| {
        explicit(w, 0, |w| p1::wire::encode(w, &change.old));
        explicit(w, 1, |w| p1::wire::encode(w, &change.new));
    });
}

fn registrations(e: &Element<'_>) -> Result<Vec<AutoActionRegistration>, Error> {
    wire::list(e, u::SET, MAX_REGISTRATIONS, AutoActionRegistration::read)
}

fn deregistrations(e: &Element<'_>) -> Result<Vec<AutoActionDeregistration>, Error> {
    wire::list(e, u::SET, MAX_REGISTRATIONS, AutoActionDeregistration::read)
}

fn user_agents(e: &Element<'_>) -> Result<Vec<UaRegistration>, Error> {
    wire::list(e, u::SET, MAX_REGISTRATIONS, UaRegistration::read)
}

fn labels(e: &Element<'_>) -> Result<Vec<Bytes>, Error> {
    wire::list(e, u::SET, MAX_LABELS, |label| Ok(p1::wire::keep(require(label, u::SET)?)))
}

fn group_registrations(e: &Element<'_>) -> Result<Vec<MessageGroupRegistration>, Error> {
    wire::list(e, u::SEQUENCE, MAX_GROUPS, MessageGroupRegistration::read)
}

impl RegisterMsArgument {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<RegisterMsArgument, Error> {
        let mut actions = Member::new("auto-action-registrations");
        let mut removed = Member::new("auto-action-deregistrations");
        let (mut list, mut fetch) =
            (Member::new("list-attribute-defaults"), Member::new("fetch-attribute-defaults"));
        let (mut change, mut security) =
            (Member::new("change-credentials"), Member::new("user-security-labels"));
        let (mut agents, mut submission) =
            (Member::new("ua-registrations"), Member::new("submission-defaults"));
        let mut groups = Member::new("message-group-registrations");
        let mut request = Member::new("registration-status-request");
        let mut extensions = Member::new("register-ms-extensions");
        let set = require(e, u::SET).field("Register-MSArgument")?;
        let members = read_set(set, |m| match number(m) {
            0 => actions.once(m, registrations),
            1 => removed.once(m, deregistrations),
            2 => list.once(m, |m| wire::oids(m, u::SET)),
            3 => fetch.once(m, |m| wire::oids(m, u::SET)),
            4 => change.once(m, read_change),
            5 => security.once(m, labels),
            6 => agents.once(m, user_agents),
            7 => submission.once(m, SubmissionOptions::read_inner),
            8 => groups.once(m, group_registrations),
            9 => request.once(m, RegistrationTypes::read_inner),
            10 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("Register-MSArgument")?;
        Ok(RegisterMsArgument {
            auto_action_registrations: actions.or_default(),
            auto_action_deregistrations: removed.or_default(),
            list_attribute_defaults: list.optional(),
            fetch_attribute_defaults: fetch.optional(),
            change_credentials: change.optional(),
            user_security_labels: security.or_default(),
            ua_registrations: agents.or_default(),
            submission_defaults: submission.optional(),
            message_group_registrations: groups.or_default(),
            registration_status_request: request.optional(),
            extensions: extensions.or_default(),
        })
    }

    /// Whether it has members that were added in 1994.
    pub fn is_of_1994(&self) -> bool {
        !self.ua_registrations.is_empty()
            || self.submission_defaults.is_some()
            || !self.message_group_registrations.is_empty()
            || self.registration_status_request.is_some()
            || !self.extensions.is_empty()
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        let removed = &self.auto_action_deregistrations;
        let groups = &self.message_group_registrations;
        w.constructed(u::SET, |w| {
            let actions = &self.auto_action_registrations;
            wire::write_some(w, 0, u::SET, actions, AutoActionRegistration::write);
            wire::write_some(w, 1, u::SET, removed, AutoActionDeregistration::write);
            write_defaults(w, 2, self.list_attribute_defaults.as_ref());
            write_defaults(w, 3, self.fetch_attribute_defaults.as_ref());
            if let Some(change) = &self.change_credentials {
                explicit(w, 4, |w| write_change(change, w));
            }
            wire::write_some(w, 5, u::SET, &self.user_security_labels, |label, w| w.raw(label));
            wire::write_some(w, 6, u::SET, &self.ua_registrations, UaRegistration::write);
            if let Some(options) = &self.submission_defaults {
                explicit(w, 7, |w| options.write(w));
            }
            wire::write_some(w, 8, u::SEQUENCE, groups, MessageGroupRegistration::write);
            if let Some(request) = &self.registration_status_request {
                explicit(w, 9, |w| request.write(w));
            }
            extension::write_all(w, 10, &self.extensions);
        });
    }
}

impl RegisterMsResult {
    /// Reads either form.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<RegisterMsResult, Error> {
        match e.tag {
            u::NULL => Ok(RegisterMsResult::NoStatusInformation),
            u::SET => RegisteredInformation::read(e).map(RegisterMsResult::Registered),
            other => Err(Fault::Unexpected(other).into()),
        }
        .field("Register-MSResult")
    }

    /// Appends it.
    pub fn write(&self, w: &mut Writer) {
        match self {
            RegisterMsResult::NoStatusInformation => w.null(u::NULL),
            RegisterMsResult::Registered(information) => information.write(w),
        }
    }
}

impl RegisteredInformation {
    fn read(e: &Element<'_>) -> Result<RegisteredInformation, Error> {
        let mut actions = Member::new("auto-action-registrations");
        let (mut list, mut fetch) =
            (Member::new("list-attribute-defaults"), Member::new("fetch-attribute-defaults"));
        let (mut agents, mut submission) =
            (Member::new("ua-registrations"), Member::new("submission-defaults"));
        let mut groups = Member::new("message-group-registrations");
        let mut extensions = Member::new("register-ms-result-extensions");
        read_set(e, |m| match number(m) {
            0 => actions.once(m, registrations),
            1 => list.once(m, |m| wire::oids(m, u::SET)),
            2 => fetch.once(m, |m| wire::oids(m, u::SET)),
            3 => agents.once(m, user_agents),
            4 => submission.once(m, SubmissionOptions::read_inner),
            5 => groups.once(m, |m| wire::list(m, u::SET, MAX_GROUPS, MessageGroup::read)),
            6 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        })?;
        Ok(RegisteredInformation {
            auto_action_registrations: actions.or_default(),
            list_attribute_defaults: list.or_default(),
            fetch_attribute_defaults: fetch.or_default(),
            ua_registrations: agents.or_default(),
            submission_defaults: submission.optional(),
            message_group_registrations: groups.or_default(),
            extensions: extensions.or_default(),
        })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            let actions = &self.auto_action_registrations;
            wire::write_some(w, 0, u::SET, actions, AutoActionRegistration::write);
            wire::write_oids(w, 1, u::SET, &self.list_attribute_defaults);
            wire::write_oids(w, 2, u::SET, &self.fetch_attribute_defaults);
            wire::write_some(w, 3, u::SET, &self.ua_registrations, UaRegistration::write);
            if let Some(options) = &self.submission_defaults {
                explicit(w, 4, |w| options.write(w));
            }
            let groups = &self.message_group_registrations;
            wire::write_some(w, 5, u::SET, groups, MessageGroup::write);
            extension::write_all(w, 6, &self.extensions);
        });
    }
}
