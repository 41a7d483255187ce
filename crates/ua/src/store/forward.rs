//! auto-forward: what the store submits by itself when a message comes (X.413 13.1).

use super::{Store, StoreError};
use p1::names::ORName;
use p1::p3::PerRecipientSubmissionFields;
use p7::Filter;
use p7::auto_action::{AutoActionDeregistration, AutoActionKind};
use p7::auto_forward::{AutoForward, AutoForwardArguments};
use p7::operation::RegisterMsArgument;

impl Store {
    /// Lets the store forward every new message that matches the filter, all without one, to these users, in the name of
    /// this one. With `delete_after` the entry is deleted then. It replaces the registration of the same number, 1 or
    /// more, and lasts until it is deregistered.
    ///
    /// # Errors
    /// [`StoreError::Operation`]: the store does not have auto-forward, or an attribute of the filter.
    pub async fn register_forward(
        &mut self,
        registration: i64,
        filter: Option<Filter>,
        to: &[ORName],
        delete_after: bool,
    ) -> Result<(), StoreError> {
        let recipients = to.iter().map(|name| PerRecipientSubmissionFields {
            recipient: name.clone(),
            ..PerRecipientSubmissionFields::default()
        });
        let arguments = AutoForwardArguments {
            originator: self.name().clone(),
            recipients: recipients.collect(),
            ..AutoForwardArguments::default()
        };
        let forward = AutoForward { filter, arguments, delete_after, information: None };
        self.register(&RegisterMsArgument {
            auto_action_registrations: vec![forward.registration(registration)],
            ..RegisterMsArgument::default()
        })
        .await
    }

    /// Ends the registration of this number.
    ///
    /// # Errors
    /// [`StoreError::Operation`]: there is none.
    pub async fn deregister_forward(&mut self, registration: i64) -> Result<(), StoreError> {
        let auto_action_type = AutoActionKind::AutoForward.oid();
        let removed = AutoActionDeregistration { auto_action_type, identifier: registration };
        self.register(&RegisterMsArgument {
            auto_action_deregistrations: vec![removed],
            ..RegisterMsArgument::default()
        })
        .await
    }
}
