//! register (X.411 8.4.1.1): durable before it is answered, or nothing of it is registered.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::api::operator::{ActError, Operator};
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::error::CommitError;
use crate::operations::Operations;
use crate::operations::registrations::{Registering, Registrar};
use base::ber::Element;
use base::{AssociationId, Precedence};
use bytes::Bytes;
use engine::journal::Op;
use engine::registered::Registration;
use p1::p3::{AccessError, RegisterArgument};

/// How an invocation of register ended.
#[derive(Debug)]
pub(crate) enum Registered {
    /// It is registered.
    Done(AssociationId, i64),
    /// Nothing is.
    Refused(AssociationId, i64, AccessError),
    /// The store could not take it.
    NotStored(AssociationId, i64),
}

impl Operations {
    /// What a user has registered, found at the start.
    pub(crate) fn recovered_registration(&self, cx: &mut Context, mailbox: &str, value: &[u8]) {
        match Registration::decode(value) {
            Ok(registration) => cx.engine.set_registration(mailbox, registration),
            Err(error) => {
                let detail = format!("what {mailbox} has registered cannot be read: {error}");
                cx.event(LogLevel::Error, Kind::StoreFailed, detail);
            }
        }
    }

    /// A user invoked register. False if the argument is not one.
    pub(crate) fn register(
        &mut self,
        cx: &mut Context,
        id: AssociationId,
        invoke: i64,
        argument: &[u8],
    ) -> bool {
        let argument = Element::parse(argument).and_then(|e| RegisterArgument::read(&e));
        let mailbox = cx.associations.get(&id).and_then(|a| a.mailbox().map(str::to_owned));
        let (Ok(argument), Some(mailbox)) = (argument, mailbox) else { return false };
        let by = Registrar::User(id, invoke);
        self.registrations.waiting.push_back(Registering { by, mailbox, argument });
        true
    }

    /// An operator removes all that a user has registered.
    pub(crate) fn unregister(
        &mut self,
        cx: &mut Context,
        request: u64,
        mailbox: String,
        by: Operator,
    ) {
        if !cx.config.mailboxes.contains(&mailbox) && cx.engine.registration(&mailbox).is_none() {
            let result = Err(ActError::NoUser(mailbox));
            return cx.output(Output::Operated { request, result });
        }
        let argument = RegisterArgument::default();
        let by = Registrar::Operator(request, by);
        self.registrations.waiting.push_back(Registering { by, mailbox, argument });
    }

    /// Makes what waits, until one is being committed. Gives how the others ended.
    pub(crate) fn next_registrations(&mut self, cx: &mut Context) -> Vec<Registered> {
        let mut ended = Vec::new();
        while self.registrations.current.is_none()
            && let Some(next) = self.registrations.waiting.pop_front()
        {
            let before = cx.engine.registration(&next.mailbox).cloned().unwrap_or_default();
            let after = match &next.by {
                Registrar::Operator(..) => Ok(Registration::default()),
                Registrar::User(..) => cx.engine.register(&next.mailbox, next.argument.clone()),
            };
            match after {
                Ok(after) if after == before => ended.extend(log_end(cx, next, Ok(()))),
                Ok(after) => {
                    let op = put(&next.mailbox, &after);
                    self.registrations.current = Some((next, after));
                    cx.commit_for(Precedence::Immediate, vec![op], PendingAnswer::Registration);
                }
                Err(error) => {
                    let detail = format!("{} may not register it: {error}", next.mailbox);
                    cx.event(LogLevel::Warning, Kind::SubmissionRefused, detail);
                    if let Registrar::User(id, invoke) = next.by {
                        ended.push(Registered::Refused(id, invoke, error));
                    }
                }
            }
        }
        ended
    }

    /// A registration is durable, or not.
    pub(crate) fn registration_committed(
        &mut self,
        cx: &mut Context,
        result: Result<(), CommitError>,
    ) -> Vec<Registered> {
        let mut ended = Vec::new();
        if let Some((registering, after)) = self.registrations.current.take() {
            if result.is_ok() {
                cx.engine.set_registration(&registering.mailbox, after);
            }
            ended.extend(log_end(cx, registering, result));
        }
        ended.extend(self.next_registrations(cx));
        ended
    }

    /// These are the users from now on: what others have registered is forgotten, so that nobody who gets
    /// such an address later has it.
    pub(crate) fn forget_registrations(&self, cx: &mut Context, is_user: impl Fn(&str) -> bool) {
        let gone = cx.engine.registered().map(|(mailbox, _)| mailbox).filter(|m| !is_user(m));
        let gone: Vec<String> = gone.map(str::to_owned).collect();
        for mailbox in gone {
            cx.engine.set_registration(&mailbox, Registration::default());
            let batch = vec![put(&mailbox, &Registration::default())];
            let retry = PendingRetry::alone(batch);
            cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
        }
    }
}

fn put(mailbox: &str, registration: &Registration) -> Op {
    let value = Bytes::from(registration.encode());
    Op::PutMeta { name: Registration::name(mailbox), value }
}

/// Logs and answers the end of a registration; users are answered by the caller.
fn log_end(
    cx: &mut Context,
    registering: Registering,
    result: Result<(), CommitError>,
) -> Option<Registered> {
    let Registering { by, mailbox, .. } = registering;
    match &result {
        Ok(()) => {
            let detail = match &by {
                Registrar::User(..) => format!("{mailbox} registered what he takes"),
                Registrar::Operator(_, by) => format!("{by} removed what {mailbox} registered"),
            };
            cx.event(LogLevel::Info, Kind::Reconfigured, detail);
        }
        Err(error) => drop(cx.event(LogLevel::Error, Kind::StoreFailed, error.to_string())),
    }
    match (by, result) {
        (Registrar::User(id, invoke), Ok(())) => Some(Registered::Done(id, invoke)),
        (Registrar::User(id, invoke), Err(_)) => Some(Registered::NotStored(id, invoke)),
        (Registrar::Operator(request, _), result) => {
            let result = result.map(|()| Vec::new());
            let result = result.map_err(|error| ActError::NotStored(error.into()));
            cx.output(Output::Operated { request, result });
            None
        }
    }
}
