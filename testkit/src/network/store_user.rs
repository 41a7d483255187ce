//! A user of the message store at the end of a P7 association, as one machine: he binds, and asks one thing after
//! another.

use base::Instant;
use base::ber::Writer;
use bytes::Bytes;
use osi::api::{Indication, Input, Output, Payload, Request, Role, Selectors};
use osi::profiles::{self, abstract_syntax};
use osi::stack::Association;
use p1::bind::Credentials;
use p1::names::ORName;
use p7::operation::{
    DELETE, DeleteArgument, FETCH, FetchArgument, LIST, ListArgument, SUMMARIZE, SummarizeArgument,
};
use p7::{MsBindArgument, SequenceNumber};
use sim::UserSubmission;
use std::collections::VecDeque;

/// What he asks of the store.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    List(ListArgument),
    Summarize(SummarizeArgument),
    Fetch(FetchArgument),
    Delete(Vec<u32>),
    Submit(UserSubmission),
}

/// What it was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A result, whole.
    Result(Vec<u8>),
    /// An error of this code; -1: a reject.
    Error(i64),
    /// The association ended before.
    Lost,
}

/// What he wants of his connection, or what happened.
#[derive(Debug)]
pub(super) enum StoreEvent {
    Write(Bytes),
    Close,
    Bound,
    /// Of the content of the submission in progress: from here on, so many octets at most.
    NeedContent {
        tag: usize,
        offset: u64,
        max: usize,
    },
    Answered(Asked, Answer),
}

/// The user.
pub(super) struct StoreUser {
    name: ORName,
    password: &'static str,
    stack: Option<Association>,
    bound: bool,
    asked: Option<Asked>,
    invokes: i64,
    /// The code of an error, while its parameter arrives.
    error: Option<i64>,
    octets: Vec<u8>,
    events: VecDeque<StoreEvent>,
}

impl StoreUser {
    pub(super) fn new(name: ORName, password: &'static str) -> StoreUser {
        StoreUser {
            name,
            password,
            stack: None,
            bound: false,
            asked: None,
            invokes: 0,
            error: None,
            octets: Vec::new(),
            events: VecDeque::new(),
        }
    }

    pub(super) fn is_bound(&self) -> bool {
        self.bound
    }

    /// Nothing that he asked is unanswered.
    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_none()
    }

    pub(super) fn poll(&mut self) -> Option<StoreEvent> {
        self.events.pop_front()
    }

    /// A new connection is there: he binds.
    pub(super) fn connected(&mut self, now: Instant) {
        self.closed();
        let mut config =
            profiles::p7(Selectors::default(), Selectors::default(), Default::default());
        config.reference.user = "user".into();
        config.reference.common = "260101000000Z".into();
        self.stack = Some(Association::new(config, Role::Initiator));
        let bind = MsBindArgument::new(self.name.clone(), Credentials::simple(self.password));
        let bind = written(|w| bind.write(w)).into();
        self.request(now, Request::Open { bind });
    }

    pub(super) fn bytes(&mut self, now: Instant, bytes: &[u8]) {
        if let Some(stack) = &mut self.stack {
            stack.handle(now, Input::Bytes(bytes));
        }
        self.drain();
    }

    /// The connection is gone.
    pub(super) fn closed(&mut self) {
        (self.stack, self.bound, self.error) = (None, false, None);
        self.octets.clear();
        self.answered(Answer::Lost);
    }

    /// Asks; only where nothing is unanswered.
    pub(super) fn ask(&mut self, now: Instant, asked: Asked) {
        self.invokes += 1;
        let retrieval = |operation, argument| (abstract_syntax::mrse_88(), operation, argument);
        let (syntax, operation, argument) = match &asked {
            Asked::List(list) => retrieval(LIST, written(|w| list.write(w))),
            Asked::Summarize(all) => retrieval(SUMMARIZE, written(|w| all.write(w))),
            Asked::Fetch(fetch) => retrieval(FETCH, written(|w| fetch.write(w))),
            Asked::Delete(numbers) => {
                let numbers = numbers.iter().copied().map(SequenceNumber).collect();
                retrieval(DELETE, written(|w| DeleteArgument::new(numbers).write(w)))
            }
            Asked::Submit(submission) => {
                let head = submission.envelope.argument_head(submission.size);
                (abstract_syntax::msse(), p1::p3::operation::MESSAGE_SUBMISSION, head)
            }
        };
        let argument = match &asked {
            Asked::Submit(submission) => Payload {
                head: argument.into(),
                content_length: submission.size,
                tail: Bytes::new(),
            },
            _ => Payload::whole(argument),
        };
        self.asked = Some(asked);
        let invoke = self.invokes;
        self.request(now, Request::Invoke { invoke, syntax, operation, argument });
    }

    /// Octets of content, as asked for.
    pub(super) fn content(&mut self, now: Instant, octets: Bytes) {
        self.request(now, Request::Content(octets));
    }

    fn request(&mut self, now: Instant, request: Request) {
        if let Some(stack) = &mut self.stack {
            stack.handle(now, Input::Request(request));
        }
        self.drain();
    }

    fn answered(&mut self, answer: Answer) {
        if let Some(asked) = self.asked.take() {
            self.events.push_back(StoreEvent::Answered(asked, answer));
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.stack.as_mut().and_then(Association::poll) {
            match output {
                Output::Send(bytes) => self.events.push_back(StoreEvent::Write(bytes)),
                Output::Close => self.events.push_back(StoreEvent::Close),
                Output::Indication(indication) => self.indicated(indication),
            }
        }
    }

    fn indicated(&mut self, indication: Indication) {
        match indication {
            Indication::Opened { .. } => {
                self.bound = true;
                self.events.push_back(StoreEvent::Bound);
            }
            Indication::NeedContent { offset, max } => {
                if let Some(Asked::Submit(UserSubmission { tag, .. })) = self.asked {
                    self.events.push_back(StoreEvent::NeedContent { tag, offset, max });
                }
            }
            Indication::ReturnedError { error, .. } => self.error = Some(error),
            Indication::Rejected { .. } => self.answered(Answer::Error(-1)),
            Indication::Data { bytes, last } => {
                self.octets.extend_from_slice(&bytes);
                if last {
                    let octets = std::mem::take(&mut self.octets);
                    let answer = self.error.take().map_or(Answer::Result(octets), Answer::Error);
                    self.answered(answer);
                }
            }
            _ => {}
        }
    }
}

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    write(&mut writer);
    writer.into_vec()
}
