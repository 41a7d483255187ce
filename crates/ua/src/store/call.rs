//! One invocation and its answer, with the alerts that come meanwhile.

use super::alert::MAX_ALERTS;
use super::{BadAnswer, Store, StoreError};
use crate::connection::describe;
use crate::content::Content;
use crate::login::Edition;
use base::ber::{Element, Oid, Writer};
use bytes::Bytes;
use osi::api::{Indication, Payload, Problem, Request};
use osi::profiles::abstract_syntax;
use p7::MsError;
use p7::operation::{ALERT, EMPTY_RESULT};
use std::time::Duration;

/// Most octets of an answer that is held whole. A store of ours sends at most 4 MiB of a list.
const MAX_ANSWER: u64 = 32 << 20;
/// Most octets of the argument of an alert, and of the parameter of an error.
const MAX_SMALL: usize = 1 << 20;
/// ROSE invoke problems (X.229 9.4).
const UNRECOGNISED_OPERATION: Problem = Problem { kind: 1, value: 1 };
const MISTYPED_ARGUMENT: Problem = Problem { kind: 1, value: 2 };

/// A port of the store: in each edition an abstract syntax of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Port {
    Submission,
    Retrieval,
}

impl Port {
    fn syntax(self, edition: Edition) -> Oid {
        match (self, edition) {
            (Port::Submission, Edition::Of1988) => abstract_syntax::msse(),
            (Port::Submission, Edition::Of1994) => abstract_syntax::ms_msse(),
            (Port::Retrieval, Edition::Of1988) => abstract_syntax::mrse_88(),
            (Port::Retrieval, Edition::Of1994) => abstract_syntax::mrse_94(),
        }
    }
}

/// What is invoked.
pub(super) struct Call<'a> {
    /// Its name, for errors.
    pub(super) name: &'static str,
    /// Local operation code.
    pub(super) operation: i64,
    /// The port that has it.
    pub(super) port: Port,
    /// The argument, or what is before the content.
    pub(super) argument: Vec<u8>,
    /// A content whose body ends the argument; its head is in `argument`.
    pub(super) content: Option<&'a Content>,
}

impl Call<'_> {
    /// An operation of the retrieval port.
    pub(super) fn retrieval(
        name: &'static str,
        operation: i64,
        write: impl FnOnce(&mut Writer),
    ) -> Call<'static> {
        let mut w = Writer::new();
        write(&mut w);
        Call { name, operation, port: Port::Retrieval, argument: w.into_vec(), content: None }
    }
}

/// The APDU of the store that is arriving: of which the next data is. It outlives a future that is dropped.
#[derive(Debug)]
pub(super) enum Incoming {
    /// None.
    None,
    /// An answer; an error has its code, and the parameter as far as it came.
    Answer { invoke: i64, error: Option<(i64, Vec<u8>)> },
    /// An invocation of the store's, and its argument as far as it came.
    Invocation { invoke: i64, operation: i64, argument: Vec<u8> },
}

/// What an operation in progress has to know.
pub(super) enum Event {
    /// The stack asks for the content.
    NeedContent { offset: u64, max: usize },
    /// Octets of a result.
    Data { invoke: i64, bytes: Bytes, last: bool },
    /// An error, whole.
    Error { invoke: i64, error: MsError },
    /// The store rejected an invocation.
    Rejected { invoke: Option<i64>, problem: Problem },
    /// An alert was put into the queue.
    Alerted,
}

impl Store {
    /// Invokes, and collects the result.
    pub(super) async fn call(&mut self, call: Call<'_>) -> Result<Vec<u8>, StoreError> {
        let operation = call.name;
        let mut octets = Vec::new();
        self.call_with(call, &mut |piece| {
            if octets.len() as u64 + piece.len() as u64 > MAX_ANSWER {
                return Err(BadAnswer::TooLong { operation, limit: MAX_ANSWER }.into());
            }
            octets.extend_from_slice(piece);
            Ok(())
        })
        .await?;
        Ok(octets)
    }

    /// Invokes, and passes each piece of the result on as it arrives.
    pub(super) async fn call_with(
        &mut self,
        call: Call<'_>,
        each: &mut (dyn FnMut(&[u8]) -> Result<(), StoreError> + Send),
    ) -> Result<(), StoreError> {
        let invoke = self.invoke(&call);
        loop {
            match self.event(None).await? {
                Some(Event::Data { invoke: of, bytes, last }) if of == invoke => {
                    each(&bytes)?;
                    if last {
                        return Ok(());
                    }
                }
                Some(Event::Error { invoke: of, error }) if of == invoke => {
                    return Err(StoreError::Operation(error));
                }
                Some(Event::Rejected { invoke: of, problem })
                    if of.is_none_or(|of| of == invoke) =>
                {
                    return Err(StoreError::Rejected(problem));
                }
                Some(Event::NeedContent { offset, max }) => {
                    self.send_content(call.content, offset, max)?;
                }
                // An alert waits in the queue; all else is the answer to an operation that was abandoned.
                Some(_) => {}
                None => return Err(StoreError::Interrupted),
            }
        }
    }

    fn invoke(&mut self, call: &Call<'_>) -> i64 {
        self.invoked += 1;
        let invoke = self.invoked;
        self.unanswered.insert(invoke);
        let content_length = call.content.map_or(0, |content| content.source.len());
        let argument =
            Payload { head: call.argument.clone().into(), content_length, tail: Bytes::new() };
        let (operation, syntax) = (call.operation, call.port.syntax(self.edition));
        self.connection.request(Request::Invoke { invoke, syntax, operation, argument });
        invoke
    }

    /// Answers the stack's question for the content. Without one it is that of an abandoned submission: the rest of it
    /// is not known here.
    pub(super) fn send_content(
        &mut self,
        content: Option<&Content>,
        offset: u64,
        max: usize,
    ) -> Result<(), StoreError> {
        // No more can be sent: the remaining input has the reason.
        if self.connection.is_over() {
            return Ok(());
        }
        // Before the last piece is sent, the store has not accepted the message.
        if self.connection.is_interrupted() {
            return Err(StoreError::Interrupted);
        }
        match content.map(|content| content.source.read(offset, max)) {
            Some(Ok(piece)) => self.connection.request(Request::Content(piece)),
            Some(Err(error)) => {
                self.connection.request(Request::ContentFailed);
                return Err(StoreError::Source(error.into()));
            }
            None => self.connection.request(Request::ContentFailed),
        }
        Ok(())
    }

    /// The next event; `None` if there was none within `wait`, or after an interrupt.
    pub(super) async fn event(
        &mut self,
        wait: Option<Duration>,
    ) -> Result<Option<Event>, StoreError> {
        loop {
            let Some(indication) = self.connection.next(wait).await? else { return Ok(None) };
            if let Some(event) = self.take(indication)? {
                if matches!(event, Event::Alerted) {
                    self.connection.flush().await?;
                }
                return Ok(Some(event));
            }
        }
    }

    fn take(&mut self, indication: Indication) -> Result<Option<Event>, StoreError> {
        match indication {
            Indication::NeedContent { offset, max } => {
                return Ok(Some(Event::NeedContent { offset, max }));
            }
            Indication::Returned { invoke } => self.answered(invoke, None)?,
            Indication::ReturnedError { invoke, error } => self.answered(invoke, Some(error))?,
            Indication::Invoked { invoke, operation } => {
                self.incoming = Incoming::Invocation { invoke, operation, argument: Vec::new() };
            }
            Indication::Data { bytes, last } => return self.data(bytes, last),
            Indication::Rejected { invoke, problem } => {
                if let Some(invoke) = invoke {
                    self.unanswered.remove(&invoke);
                }
                return Ok(Some(Event::Rejected { invoke, problem }));
            }
            Indication::Faulty { detail, .. } => return Err(BadAnswer::Apdu(detail).into()),
            Indication::Aborted { .. } => {
                return Err(StoreError::Lost(describe(Some(&indication))));
            }
            Indication::Released => {
                return Err(StoreError::Lost("the message store released it".to_owned()));
            }
            other => return Err(BadAnswer::OutOfPlace(other.name()).into()),
        }
        Ok(None)
    }

    fn answered(&mut self, invoke: i64, error: Option<i64>) -> Result<(), StoreError> {
        if !self.unanswered.contains(&invoke) {
            return Err(BadAnswer::InvokeId(invoke).into());
        }
        let error = error.map(|code| (code, Vec::new()));
        self.incoming = Incoming::Answer { invoke, error };
        Ok(())
    }

    fn data(&mut self, bytes: Bytes, last: bool) -> Result<Option<Event>, StoreError> {
        match &mut self.incoming {
            Incoming::None => return Err(BadAnswer::OutOfPlace("Data").into()),
            Incoming::Answer { invoke, error: None } => {
                let invoke = *invoke;
                if last {
                    self.unanswered.remove(&invoke);
                    self.incoming = Incoming::None;
                }
                return Ok(Some(Event::Data { invoke, bytes, last }));
            }
            Incoming::Answer { error: Some((_, octets)), .. }
            | Incoming::Invocation { argument: octets, .. } => {
                if octets.len() + bytes.len() > MAX_SMALL {
                    let limit = MAX_SMALL as u64;
                    return Err(BadAnswer::TooLong { operation: "an error or alert", limit }.into());
                }
                octets.extend_from_slice(&bytes);
            }
        }
        if !last {
            return Ok(None);
        }
        match std::mem::replace(&mut self.incoming, Incoming::None) {
            Incoming::Answer { invoke, error: Some((code, parameter)) } => {
                self.unanswered.remove(&invoke);
                let error = error(code, &parameter)?;
                Ok(Some(Event::Error { invoke, error }))
            }
            Incoming::Invocation { invoke, operation, argument } => {
                self.take_invocation(invoke, operation, &argument)
            }
            Incoming::None | Incoming::Answer { error: None, .. } => Ok(None),
        }
    }

    /// What the store invokes can only be an alert.
    fn take_invocation(
        &mut self,
        invoke: i64,
        operation: i64,
        argument: &[u8],
    ) -> Result<Option<Event>, StoreError> {
        let reject = |problem| Request::Reject { invoke: Some(invoke), problem };
        if operation != ALERT {
            self.connection.request(reject(UNRECOGNISED_OPERATION));
            return Ok(None);
        }
        if self.alerts.len() >= MAX_ALERTS {
            return Err(BadAnswer::TooManyAlerts(MAX_ALERTS).into());
        }
        match super::alert::read(argument) {
            Ok(alert) => {
                let result = Payload::whole(EMPTY_RESULT.to_vec());
                self.connection.request(Request::Result { invoke, operation, result });
                self.alerts.push_back(alert);
                Ok(Some(Event::Alerted))
            }
            Err(error) => {
                self.connection.request(reject(MISTYPED_ARGUMENT));
                Err(StoreError::malformed("alert")(error))
            }
        }
    }
}

/// The error of this code; the association continues after it.
fn error(code: i64, parameter: &[u8]) -> Result<MsError, StoreError> {
    let malformed = StoreError::malformed("error");
    let element = (!parameter.is_empty()).then(|| Element::parse(parameter)).transpose();
    MsError::read(code, element.map_err(&malformed)?.as_ref()).map_err(malformed)
}
