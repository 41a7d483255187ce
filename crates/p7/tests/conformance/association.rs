//! An association of two ends of our own stack, whose octets are kept as they passed.

use base::Instant;
use base::ber::{Oid, Writer};
use bytes::Bytes;
use osi::api::{
    Config, Context, Indication, Input, Output, Payload, RefuseReason, Request, Role, Selectors,
    Service,
};
use osi::stack::Association;
use std::collections::VecDeque;
use std::time::Duration;

fn syntax(n: u64) -> Oid {
    Oid::from_arcs(&[2, 6, 0, 2, n]).unwrap()
}

/// ms-access-88: contexts 1 ACSE, 3 ms-88, 5 mrse-88.
fn config() -> Config {
    let syntaxes = ["2.2.1.0.1".parse().unwrap(), syntax(9), syntax(5)];
    let contexts = (0..).zip(syntaxes);
    Config {
        mode: osi::api::Mode::Normal,
        local: Selectors::default(),
        remote: Selectors::default(),
        service: Service::Rose,
        application_contexts: vec![Oid::from_arcs(&[2, 6, 0, 1, 4]).unwrap()],
        contexts: contexts
            .map(|(n, abstract_syntax)| Context { id: 2 * n + 1, abstract_syntax })
            .collect(),
        bind_syntax: syntax(9),
        other_bind_syntaxes: Vec::new(),
        transfer_syntax_owner: syntax(9),
        tpdu_size: None,
        setup_timeout: Duration::from_secs(30),
        operation_timeout: Duration::from_secs(30),
        reference: Default::default(),
        turn_away: false,
    }
}

pub(crate) fn written(write: impl FnOnce(&mut Writer)) -> Bytes {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec().into()
}

/// How the store answers.
#[derive(Clone)]
pub(crate) enum Answer {
    Result(Bytes),
    Error(i64, Bytes),
}

/// One association: the bind, its answer, and operations of the user with the answers of the store.
pub(crate) struct Script {
    pub(crate) bind: Bytes,
    pub(crate) bind_answer: Result<Bytes, Bytes>,
    pub(crate) operations: VecDeque<(i64, Bytes, Answer)>,
}

impl Script {
    /// The requests that an indication leads to.
    fn react(
        &mut self,
        indication: &Indication,
        answers: &mut VecDeque<Answer>,
    ) -> Option<Request> {
        match *indication {
            Indication::Open { .. } => Some(match &self.bind_answer {
                Ok(result) => Request::Accept { bind: result.clone() },
                Err(error) => {
                    Request::Refuse { reason: RefuseReason::Bind, bind_error: Some(error.clone()) }
                }
            }),
            Indication::Invoked { invoke, operation } => Some(match answers.pop_front()? {
                Answer::Result(octets) => {
                    Request::Result { invoke, operation, result: Payload::whole(octets) }
                }
                Answer::Error(error, parameter) => Request::Error { invoke, error, parameter },
            }),
            Indication::Opened { .. } => Some(self.next(answers)),
            Indication::Data { last: true, .. } if answers.is_empty() => Some(self.next(answers)),
            _ => None,
        }
    }

    fn next(&mut self, answers: &mut VecDeque<Answer>) -> Request {
        let Some((operation, argument, answer)) = self.operations.pop_front() else {
            return Request::Release;
        };
        answers.push_back(answer);
        let argument = Payload::whole(argument);
        let invoke = self.operations.len() as i64 + 1;
        Request::Invoke { invoke, syntax: syntax(5), operation, argument }
    }
}

/// Plays the script; gives the octets as they passed, with who sent them: the user is `true`.
pub(crate) fn play(mut script: Script) -> Vec<(bool, Bytes)> {
    let mut ends = [Role::Initiator, Role::Responder].map(|role| Association::new(config(), role));
    let mut passed = Vec::new();
    let mut answers = VecDeque::new();
    let mut inputs = VecDeque::from([(0, Err(Request::Open { bind: script.bind.clone() }))]);
    let mut responded = false;
    let is_used = !script.operations.is_empty();
    while let Some((end, input)) = inputs.pop_front() {
        let stack = &mut ends[end];
        match input {
            Ok(octets) => {
                let octets: Bytes = octets;
                stack.handle(Instant(0), Input::Bytes(&octets));
            }
            Err(request) => stack.handle(Instant(0), Input::Request(request)),
        }
        while let Some(output) = ends[end].poll() {
            match output {
                Output::Send(octets) => {
                    passed.push((end == 0, octets.clone()));
                    inputs.push_back((1 - end, Ok(octets)));
                }
                Output::Close => {}
                // The store answers an invocation once its argument is whole.
                Output::Indication(Indication::Invoked { invoke, operation }) => {
                    let invoked = Indication::Invoked { invoke, operation };
                    responded = true;
                    if let Some(request) = script.react(&invoked, &mut answers) {
                        inputs.push_back((end, Err(request)));
                    }
                }
                Output::Indication(Indication::Data { last: true, .. }) if end == 1 => {}
                Output::Indication(indication) => {
                    if let Some(request) = script.react(&indication, &mut answers) {
                        inputs.push_back((end, Err(request)));
                    }
                }
            }
        }
    }
    assert!(responded || !is_used || script.bind_answer.is_err());
    assert!(script.operations.is_empty() || script.bind_answer.is_err());
    passed
}
