//! What register-MS keeps of a mailbox (X.413 8.6): defaults of list and fetch, and auto-actions.

use crate::attributes::{Attributes, Selected, available, unavailable};
use crate::query::check_filter;
use crate::totals::ValueError;
use base::ber::{Element, Oid, Writer};
use bytes::Bytes;
use engine::journal::{MailboxId, Op};
use p7::auto_action::{AutoActionKind, AutoActionRegistration, AutoAlert};
use p7::auto_forward::AutoForward;
use p7::error::{AutoActionRequestProblem, RegistrationProblem, ServiceProblem};
use p7::operation::{AlertArgument, RegisterMsArgument, RegisterMsResult, RegisteredInformation};
use p7::registration::RegistrationTypes;
use p7::{Filter, MsError, matching};

/// Version of the encoding, in its first octet.
const VERSION: u8 = 1;

/// Most auto-actions of a mailbox.
pub const MAX_ACTIONS: usize = 32;
/// Largest registration-identifier (ub-ua-registrations-identifier; from the dissector of another make, *unproven*).
pub const MAX_IDENTIFIER: i64 = 32_767;
/// Most octets of all that is registered.
pub const MAX_OCTETS: usize = 64 << 10;

/// What is registered. Auto-actions are in the order of their types and identifiers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registrations(RegisteredInformation);

/// Bits of RegistrationTypes.
const ACTIONS: u32 = 1;
const LIST_DEFAULTS: u32 = 1 << 1;
const FETCH_DEFAULTS: u32 = 1 << 2;

impl Registrations {
    /// The name under which the store has the value of a mailbox.
    #[must_use]
    pub fn name(mailbox: MailboxId) -> String {
        format!("mailbox/{}/registrations", mailbox.0)
    }

    /// Of the value that the store has; nothing is registered without one.
    ///
    /// # Errors
    /// Another version, or malformed.
    pub fn decode(value: Option<&[u8]>) -> Result<Registrations, ValueError> {
        let Some(value) = value else { return Ok(Registrations::default()) };
        let (version, octets) = value.split_first().ok_or(ValueError::Empty)?;
        if *version != VERSION {
            return Err(ValueError::Version(*version));
        }
        let element = Element::parse(octets)?;
        match RegisterMsResult::read(&element)? {
            RegisterMsResult::Registered(information) => Ok(Registrations(information)),
            RegisterMsResult::NoStatusInformation => Ok(Registrations::default()),
        }
    }

    /// The value.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut w = Writer::new();
        w.raw(&[VERSION]);
        RegisterMsResult::Registered(self.0.clone()).write(&mut w);
        w.into_vec().into()
    }

    /// The change that writes the value.
    #[must_use]
    pub fn put(&self, mailbox: MailboxId) -> Op {
        Op::PutMeta { name: Registrations::name(mailbox), value: self.encode() }
    }

    /// register-MS: what is registered after it, and its result, which is returned once [`Registrations::put`] is
    /// durable. Credentials are the caller's: it checks and changes them first.
    ///
    /// # Errors
    /// The argument registers what this store does not have, or too much.
    pub fn register(
        &self,
        argument: &RegisterMsArgument,
    ) -> Result<(Registrations, RegisterMsResult), MsError> {
        refuse_others(argument)?;
        let mut new = self.clone();
        let defaults = [&argument.list_attribute_defaults, &argument.fetch_attribute_defaults];
        let problems = defaults.into_iter().flatten().flatten();
        let problems: Vec<_> =
            problems.filter(|oid| available(oid).is_none()).map(unavailable).collect();
        if !problems.is_empty() {
            return Err(MsError::Attribute(problems));
        }
        if let Some(defaults) = &argument.list_attribute_defaults {
            new.0.list_attribute_defaults.clone_from(defaults);
        }
        if let Some(defaults) = &argument.fetch_attribute_defaults {
            new.0.fetch_attribute_defaults.clone_from(defaults);
        }
        new.deregister(argument)?;
        for action in &argument.auto_action_registrations {
            new.add(action)?;
        }
        let actions = new.0.auto_action_registrations.len();
        if actions > MAX_ACTIONS || new.encode().len() > MAX_OCTETS {
            return Err(MsError::service(ServiceProblem::UNWILLING_TO_PERFORM));
        }
        let result = match &argument.registration_status_request {
            None => RegisterMsResult::NoStatusInformation,
            Some(types) => RegisterMsResult::Registered(new.requested(types)),
        };
        Ok((new, result))
    }

    fn deregister(&mut self, argument: &RegisterMsArgument) -> Result<(), MsError> {
        for removed in &argument.auto_action_deregistrations {
            let is_other = |action: &AutoActionRegistration| {
                action.auto_action_type != removed.auto_action_type
                    || action.identifier != removed.identifier
            };
            let actions = &mut self.0.auto_action_registrations;
            let before = actions.len();
            actions.retain(is_other);
            if actions.len() == before {
                let problem = AutoActionRequestProblem::UNAVAILABLE_AUTO_ACTION_TYPE;
                let oid = removed.auto_action_type.clone();
                return Err(MsError::AutoActionRequest(vec![(problem, oid)]));
            }
        }
        Ok(())
    }

    /// Adds an auto-action, instead of one with the same type and identifier.
    fn add(&mut self, action: &AutoActionRegistration) -> Result<(), MsError> {
        if !(1..=MAX_IDENTIFIER).contains(&action.identifier) {
            return Err(MsError::InvalidParameters);
        }
        match AutoActionKind::from_oid(&action.auto_action_type) {
            Some(AutoActionKind::AutoAlert) => {
                let alert = AutoAlert::from_registration(action);
                let alert = alert.map_err(|_| MsError::InvalidParameters)?;
                alert.filter.as_ref().map_or(Ok(()), check_filter)?;
                let requested = alert.requested_attributes.unwrap_or_default();
                Selected::all(&requested).map_err(MsError::Attribute)?;
            }
            Some(AutoActionKind::AutoForward) => {
                let forward = AutoForward::from_registration(action);
                let forward = forward.map_err(|_| MsError::InvalidParameters)?;
                forward.filter.as_ref().map_or(Ok(()), check_filter)?;
            }
            _ => {
                let problem = AutoActionRequestProblem::UNAVAILABLE_AUTO_ACTION_TYPE;
                let oid = action.auto_action_type.clone();
                return Err(MsError::AutoActionRequest(vec![(problem, oid)]));
            }
        }
        let actions = &mut self.0.auto_action_registrations;
        let key =
            |action: &AutoActionRegistration| (action.auto_action_type.clone(), action.identifier);
        actions.retain(|other| key(other) != key(action));
        actions.push(action.clone());
        actions.sort_by_cached_key(key);
        Ok(())
    }

    /// What a status request asks for (1994).
    fn requested(&self, types: &RegistrationTypes) -> RegisteredInformation {
        let bits = types.registrations.unwrap_or_default();
        let mut information = RegisteredInformation::default();
        if bits & ACTIONS != 0 {
            information.auto_action_registrations.clone_from(&self.0.auto_action_registrations);
        }
        if bits & LIST_DEFAULTS != 0 {
            information.list_attribute_defaults.clone_from(&self.0.list_attribute_defaults);
        }
        if bits & FETCH_DEFAULTS != 0 {
            information.fetch_attribute_defaults.clone_from(&self.0.fetch_attribute_defaults);
        }
        information
    }

    /// What a list returns that requests no attributes.
    pub(crate) fn list_defaults(&self) -> Vec<Selected> {
        selected(&self.0.list_attribute_defaults)
    }

    /// What a fetch returns that requests no attributes.
    pub(crate) fn fetch_defaults(&self) -> Vec<Selected> {
        selected(&self.0.fetch_attribute_defaults)
    }

    /// The alerts that a new item raises: one for each registration whose filter it matches (X.413 13.2). The user
    /// gets them on an association; without one, see [`crate::Mailbox::set_alerted`].
    #[must_use]
    pub fn alerts(&self, item: &Attributes<'_>) -> Vec<AlertArgument> {
        let alert = |action: &AutoActionRegistration| {
            let alert = AutoAlert::from_registration(action).ok()?;
            matches(alert.filter.as_ref(), item).then(|| {
                let requested = alert.requested_attributes.as_deref();
                let requested = requested.map(|all| Selected::all(all).unwrap_or_default());
                AlertArgument {
                    registration_identifier: action.identifier,
                    new_entry: requested.map(|all| item.select(&all, false)),
                }
            })
        };
        self.actions(AutoActionKind::AutoAlert).filter_map(alert).collect()
    }

    /// Whether anything is forwarded.
    #[must_use]
    pub fn has_forwards(&self) -> bool {
        self.actions(AutoActionKind::AutoForward).next().is_some()
    }

    /// The registrations of auto-forward whose filter a new item matches, with their identifiers (X.413 13.1).
    #[must_use]
    pub fn forwards(&self, item: &Attributes<'_>) -> Vec<(i64, AutoForward)> {
        let forward = |action: &AutoActionRegistration| {
            let forward = AutoForward::from_registration(action).ok()?;
            matches(forward.filter.as_ref(), item).then_some((action.identifier, forward))
        };
        self.actions(AutoActionKind::AutoForward).filter_map(forward).collect()
    }

    fn actions(&self, kind: AutoActionKind) -> impl Iterator<Item = &AutoActionRegistration> {
        let actions = self.0.auto_action_registrations.iter();
        actions
            .filter(move |action| AutoActionKind::from_oid(&action.auto_action_type) == Some(kind))
    }
}

/// Refuses what this store does not register: user-security-labels, and what was added in 1994.
fn refuse_others(argument: &RegisterMsArgument) -> Result<(), MsError> {
    if !argument.user_security_labels.is_empty() {
        return Err(MsError::service(ServiceProblem::UNWILLING_TO_PERFORM));
    }
    let others = [
        (!argument.ua_registrations.is_empty(), 3),
        (argument.submission_defaults.is_some(), 4),
        (!argument.message_group_registrations.is_empty(), 5),
    ];
    let bits =
        others.iter().filter(|(is_there, _)| *is_there).fold(0, |bits, (_, n)| bits | 1 << n);
    if bits == 0 {
        return Ok(());
    }
    let types = RegistrationTypes { registrations: Some(bits), ..RegistrationTypes::default() };
    Err(MsError::RegisterMs { problem: RegistrationProblem::REGISTRATION_NOT_SUPPORTED, types })
}

/// A filter that does not fit the attributes matches nothing.
fn matches(filter: Option<&Filter>, item: &Attributes<'_>) -> bool {
    filter.is_none_or(|filter| matching::matches(filter, item).unwrap_or(false))
}

fn selected(defaults: &[Oid]) -> Vec<Selected> {
    defaults.iter().filter_map(available).map(Selected::new).collect()
}

#[cfg(test)]
mod tests;
