//! Alerts: registered for once, then raised by the store as entries arrive.

use super::call::Call;
use super::entry::{self, Entry};
use super::{Store, StoreError};
use crate::store::call::Event;
use base::ber::{Element, Error};
use p7::Filter;
use p7::auto_action::{AutoActionDeregistration, AutoActionKind, AutoAlert};
use p7::operation::{AlertArgument, REGISTER_MS, RegisterMsArgument};
use std::time::Duration;

/// Most alerts that wait to be taken.
pub(super) const MAX_ALERTS: usize = 4_096;

/// A new entry of which the store alerts its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// The registration that raised it.
    pub registration: i64,
    /// The entry; `None` where the registration, one of another program, asks for no attributes.
    pub entry: Option<Entry>,
}

/// Reads the argument.
pub(super) fn read(argument: &[u8]) -> Result<Alert, Error> {
    let argument = AlertArgument::read(&Element::parse(argument)?)?;
    let entry = argument.new_entry.as_ref().map(Entry::read);
    Ok(Alert { registration: argument.registration_identifier, entry })
}

impl Store {
    /// Registers an alert for every new entry that matches the filter, all without one. It replaces the registration of
    /// the same number, 1 to [`p7::limits::MAX_ALERT_IDENTIFIER`], and lasts until it is deregistered, also when nobody is bound.
    ///
    /// # Errors
    /// [`StoreError::Operation`]: the store does not have auto-alert, or an attribute of the filter.
    pub async fn register_alert(
        &mut self,
        registration: i64,
        filter: Option<Filter>,
    ) -> Result<(), StoreError> {
        let requested_attributes = Some(entry::selection(|oid| self.has(oid)));
        let alert = AutoAlert { filter, requested_attributes, ..AutoAlert::default() };
        self.register(&RegisterMsArgument {
            auto_action_registrations: vec![alert.registration(registration)],
            ..RegisterMsArgument::default()
        })
        .await
    }

    /// Ends the registration of this number.
    ///
    /// # Errors
    /// [`StoreError::Operation`]: there is none.
    pub async fn deregister_alert(&mut self, registration: i64) -> Result<(), StoreError> {
        let auto_action_type = AutoActionKind::AutoAlert.oid();
        let removed = AutoActionDeregistration { auto_action_type, identifier: registration };
        self.register(&RegisterMsArgument {
            auto_action_deregistrations: vec![removed],
            ..RegisterMsArgument::default()
        })
        .await
    }

    /// register-MS as it is.
    pub(super) async fn register(
        &mut self,
        argument: &RegisterMsArgument,
    ) -> Result<(), StoreError> {
        let call = Call::retrieval("register-MS", REGISTER_MS, |w| argument.write(w));
        // The result of 1988 is NULL, that of 1994 what was asked for, which is nothing.
        self.call(call).await.map(drop)
    }

    /// The next alert, in the order of arrival; waits for one, for at most `wait`. `None` if none came, or after an
    /// interrupt. The future can be dropped, and no alert is lost.
    ///
    /// # Errors
    /// The association ended, or the store sent what it must not.
    pub async fn alert(&mut self, wait: Option<Duration>) -> Result<Option<Alert>, StoreError> {
        loop {
            if let Some(alert) = self.alerts.pop_front() {
                return Ok(Some(alert));
            }
            match self.event(wait).await? {
                None => return Ok(None),
                Some(Event::NeedContent { offset, max }) => self.send_content(None, offset, max)?,
                // An alert is in the queue now; all else is an answer to what was abandoned.
                Some(_) => {}
            }
        }
    }

    /// The alerts that wait to be taken, without waiting for more: those of the highest precedence first, and of one
    /// precedence in the order of arrival.
    pub fn take_alerts(&mut self) -> Vec<Alert> {
        let mut alerts: Vec<Alert> = self.alerts.drain(..).collect();
        let precedence = |alert: &Alert| alert.entry.as_ref().and_then(|entry| entry.precedence);
        alerts.sort_by_key(|alert| std::cmp::Reverse(precedence(alert)));
        alerts
    }
}
