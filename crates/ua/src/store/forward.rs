//! auto-forward: what the store submits by itself when a message comes (X.413 13.1).

use super::call::Call;
use super::{Store, StoreError};
use base::ber::Element;
use p1::flags::ReportRequest;
use p1::names::ORName;
use p1::p3::PerRecipientSubmissionFields;
use p7::Filter;
use p7::auto_action::{AutoActionDeregistration, AutoActionKind, AutoActionRegistration};
use p7::auto_forward::{AutoForward, AutoForwardArguments};
use p7::operation::{REGISTER_MS, RegisterMsArgument, RegisterMsResult};
use p7::registration::RegistrationTypes;

impl Store {
    /// Lets the store forward every new message that matches the filter, all without one, to these users, in the name of
    /// this one; reports of non-delivery come into the mailbox. With `delete_after` there is no entry. It replaces the registration of the same number, 1 or
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
            report_request: ReportRequest::NonDelivery,
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

    /// What is registered: the number of each auto-forward, and what it does. Only the protocol of 1994 has the
    /// request, and a store of 1988 may refuse it.
    ///
    /// # Errors
    /// [`StoreError::Operation`], or an answer that cannot be read.
    pub async fn registered_forwards(&mut self) -> Result<Vec<(i64, AutoForward)>, StoreError> {
        let types = RegistrationTypes { registrations: Some(1), ..RegistrationTypes::default() };
        let argument = RegisterMsArgument {
            registration_status_request: Some(types),
            ..RegisterMsArgument::default()
        };
        let call = Call::retrieval("register-MS", REGISTER_MS, |w| argument.write(w));
        let octets = self.call(call).await?;
        let malformed = StoreError::malformed("register-MS");
        let result = Element::parse(&octets).and_then(|e| RegisterMsResult::read(&e));
        let RegisterMsResult::Registered(information) = result.map_err(malformed)? else {
            return Ok(Vec::new());
        };
        let actions = information.auto_action_registrations;
        let forward = |action: &AutoActionRegistration| {
            Some((action.identifier, AutoForward::from_registration(action).ok()?))
        };
        Ok(actions.iter().filter_map(forward).collect())
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
