//! APDUs to be sent: invocations, answers and rejects, one after another.

use super::machine::{Rose, With};
use super::pdu::{self, problem};
use super::table::State;
use crate::acse;
use crate::api::{Indication, Payload, Problem, Request as R};
use crate::presentation::service as presentation;
use crate::rtse::{Piece, Pulled};
use crate::stack::Below;
use crate::table::{Lacking, Performed};
use base::ber::Oid;
use bytes::Bytes;

/// Most APDUs that wait behind the one being sent.
pub(super) const MAX_QUEUED: usize = 1024;

/// An APDU to be sent.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) context: i64,
    /// The invocation it makes, whose answer is awaited once it is sent.
    pub(super) invoke: Option<i64>,
    pub(super) octets: Pulled,
    /// Offset of the next octet; the P-DATA is begun once the first was asked for.
    pub(super) next: u64,
    pub(super) begun: bool,
    pub(super) waiting: Option<usize>,
}

impl Rose {
    /// A request that makes an APDU.
    pub(super) fn send_apdu(&mut self, below: &mut Below, with: With) -> Performed {
        let With::Request(request) = with else { return Err(Lacking) };
        match request {
            R::Invoke { invoke, syntax, operation, argument } => {
                self.invoke(below, invoke, &syntax, operation, &argument);
            }
            R::Result { invoke, operation, result } => {
                let head = pdu::result(invoke, operation, result.length());
                self.answer(below, invoke, &head, &result);
            }
            R::Error { invoke, error, parameter } => {
                let head = pdu::error(invoke, error, parameter.len() as u64);
                self.answer(below, invoke, &head, &Payload::whole(parameter));
            }
            R::Reject { invoke, problem } => self.send_reject(below, invoke, problem),
            _ => return Err(Lacking),
        }
        Ok(())
    }

    fn invoke(
        &mut self,
        below: &mut Below,
        invoke: i64,
        syntax: &Oid,
        operation: i64,
        argument: &Payload,
    ) {
        let problem = match below.contexts().id_of(syntax) {
            _ if self.ours.contains_key(&invoke) => problem::DUPLICATE_INVOCATION,
            // The peer cannot know an operation whose context it did not accept.
            None => problem::UNRECOGNISED_OPERATION,
            Some(context) => {
                self.ours.insert(invoke, None);
                let head = pdu::invoke(invoke, operation, argument.length());
                return self.enqueue(below, context, Some(invoke), &head, argument);
            }
        };
        self.up.push_back(Indication::Rejected { invoke: Some(invoke), problem });
    }

    /// A result or an error, in the context of its invocation.
    fn answer(&mut self, below: &mut Below, invoke: i64, head: &[u8], payload: &Payload) {
        match self.theirs.remove(&invoke) {
            Some(context) => self.enqueue(below, context, None, head, payload),
            None => self.fail(below, format!("rose: an answer to no invocation, {invoke}")),
        }
    }

    fn send_reject(&mut self, below: &mut Below, invoke: Option<i64>, problem: Problem) {
        let known = match (problem.kind, invoke) {
            (0 | 1, Some(invoke)) => self.theirs.remove(&invoke),
            _ => None,
        };
        let arriving = self.incoming.as_ref().map(|i| i.context);
        let context = known.or(arriving).unwrap_or_else(|| self.context(below));
        let head = pdu::reject(invoke, problem);
        self.enqueue(below, context, None, &head, &Payload::default());
    }

    pub(super) fn enqueue(
        &mut self,
        below: &mut Below,
        context: i64,
        invoke: Option<i64>,
        head: &[u8],
        payload: &Payload,
    ) {
        if self.queue.len() >= MAX_QUEUED {
            let detail = format!("rose: more than {MAX_QUEUED} APDUs wait to be sent");
            return self.fail(below, detail);
        }
        let octets = Pulled::new(head, payload, &[]);
        let (next, begun, waiting) = (0, false, None);
        self.queue.push_back(Outgoing { context, invoke, octets, next, begun, waiting });
    }

    /// Sends as far as the content at hand allows.
    pub(super) fn pump(&mut self, below: &mut Below) {
        while matches!(self.automaton.state(), State::Sta10 | State::Sta20) {
            let Some(first) = self.queue.front_mut() else { break };
            if first.waiting.is_some() {
                return;
            }
            let length = first.octets.length();
            if !std::mem::replace(&mut first.begun, true) {
                let (context, length) = (first.context, Some(length));
                below.present(presentation::Request::DataStart { context, length });
            }
            match first.octets.piece(first.next, length) {
                Piece::Ready(bytes) => self.send(below, bytes),
                Piece::Pull { offset, max } => {
                    first.waiting = Some(max);
                    self.up.push_back(Indication::NeedContent { offset, max });
                    return;
                }
            }
        }
        if self.queue.is_empty() && std::mem::take(&mut self.release_due) {
            below.associate(acse::Request::Release);
        }
    }

    fn send(&mut self, below: &mut Below, bytes: Bytes) {
        let Some(first) = self.queue.front_mut() else { return };
        first.next += bytes.len() as u64;
        let last = first.next >= first.octets.length();
        below.present(presentation::Request::Data { bytes, last });
        if last {
            self.invoked |= self.queue.pop_front().is_some_and(|sent| sent.invoke.is_some());
        }
    }

    /// Content that was asked for.
    pub(super) fn content(&mut self, below: &mut Below, with: With) -> Performed {
        let With::Request(R::Content(bytes)) = with else { return Err(Lacking) };
        let waiting = self.queue.front_mut().and_then(|o| o.waiting.take());
        match waiting {
            None => {}
            Some(max) if bytes.is_empty() || bytes.len() > max => {
                self.fail(below, "rose: the content given has not 1 to max octets".to_owned());
            }
            Some(_) => self.send(below, bytes),
        }
        Ok(())
    }
}
