//! The administration and delivery ports of P3: register, change-credentials and delivery-control.

use crate::submit::{Answer, NotAccepted, accepted, invoke_on};
use crate::user::User;
use anyhow::{Result, bail};
use base::ber::{Element, Oid, Writer};
use osi::api::{Payload, Request};
use osi::profiles::abstract_syntax;
use p1::bind::{Credentials, Password};
use p1::p3::{
    AccessError, ChangeCredentials, Controls, RefusedArgument, RegisterArgument, operation,
};

impl User {
    /// Registers what is to be delivered to this user from now on (X.411 8.4.1.1). What is absent stays
    /// registered as it was. All of it is registered, or nothing.
    ///
    /// # Errors
    /// [`NotAccepted`] with the MTA's error in words, or [`crate::Lost`].
    pub async fn register(&mut self, argument: &RegisterArgument) -> Result<()> {
        let mut w = Writer::new();
        argument.write(&mut w);
        let (port, operation) = (abstract_syntax::mase_88(), operation::REGISTER);
        self.administer(port, operation, w.into_vec()).await
    }

    /// Changes the password of this user (X.411 8.4.1.2). The association stays.
    ///
    /// # Errors
    /// [`NotAccepted`] with the MTA's error in words, or [`crate::Lost`].
    pub async fn change_password(&mut self, old: &Password, new: &Password) -> Result<()> {
        let change = ChangeCredentials {
            old: Credentials::Simple(old.clone()),
            new: Credentials::Simple(new.clone()),
        };
        let mut w = Writer::new();
        change.write(&mut w);
        let (port, operation) = (abstract_syntax::mase_88(), operation::CHANGE_CREDENTIALS);
        self.administer(port, operation, w.into_vec()).await
    }

    async fn administer(&mut self, port: Oid, operation: i64, argument: Vec<u8>) -> Result<()> {
        let (answer, octets) = invoke_on(self, port, operation, argument).await?;
        match answer {
            Answer::Result => Ok(()),
            Answer::Error(10) => bail!(NotAccepted(
                "register-rejected: the values contradict each other or what is registered, or are too many"
                    .to_owned()
            )),
            Answer::Error(16) => {
                let parameter = Element::parse(&octets).ok();
                let refused = AccessError::read(16, parameter.as_ref());
                let error = refused.map_err(|error| NotAccepted(format!("error 16: {error}")))?;
                bail!(NotAccepted(format!("{error}{}", advice(&error))))
            }
            answer => accepted(answer, &octets).map(drop),
        }
    }

    /// Asks the MTA to hold back what these controls do not permit, until this user unbinds (X.411
    /// 8.3.1.3). The answer is an indication as deliveries are, with the same invoke identifier; a
    /// delivery that the MTA has begun may come before it.
    pub fn request_controls(&mut self, invoke: i64, controls: &Controls) {
        let mut w = Writer::new();
        controls.write(&mut w);
        self.request(Request::Invoke {
            invoke,
            syntax: abstract_syntax::mdse_88(),
            operation: operation::DELIVERY_CONTROL,
            argument: Payload::whole(w.into_vec()),
        });
    }
}

/// What to do about an argument that was refused; empty where nobody knows.
fn advice(error: &AccessError) -> &'static str {
    match error {
        AccessError::OperationRefused { argument, reason: 2 } => match *argument {
            RefusedArgument::REDIRECTIONS => {
                ": the alternate must be somebody else, and one whom the MTA can reach: a user or a list of it, \
                 or an address to which it has a route"
            }
            RefusedArgument::DELIVERABLE_MAX_CONTENT_LENGTH
            | RefusedArgument::PERMISSIBLE_MAX_CONTENT_LENGTH => ": give a length of 0 or more",
            RefusedArgument::DELIVERABLE_CONTENT_TYPES => ": name at least one content type",
            _ => ": give another value",
        },
        AccessError::OperationRefused { reason: 0, .. } => ": this MTA does not offer it",
        AccessError::OperationRefused { reason: 1, .. } => {
            ": it is not offered to this user: ask the operator of the MTA"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_argument_is_named_and_there_is_something_to_do() {
        let text = |error: AccessError| format!("{error}{}", advice(&error));
        let to_himself = text(RefusedArgument::REDIRECTIONS.unacceptable());
        let names = "operation-refused: recipient-assigned-redirections, parameter-unacceptable: the alternate";
        assert!(to_himself.starts_with(names), "{to_himself}");
        let labels = text(RefusedArgument::DELIVERABLE_SECURITY_LABELS.unavailable());
        assert_eq!(
            labels,
            "operation-refused: deliverable-security-labels, facility-unavailable: this MTA does not offer it"
        );
        for number in (0..=8).chain(10..=16) {
            assert!(!text(RefusedArgument::BuiltIn(number).unavailable()).contains("built-in"));
        }
        let other =
            AccessError::OperationRefused { argument: RefusedArgument::BuiltIn(9), reason: 7 };
        assert_eq!(text(other), "operation-refused: built-in-argument 9, refusal-reason 7");
    }
}
