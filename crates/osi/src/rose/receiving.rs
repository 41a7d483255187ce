//! APDUs received: invocations, answers and rejects (X.229 7.1 to 7.5).

use super::incoming::{Found, Incoming};
use super::machine::{MAX_INVOCATIONS, Rose, With};
use super::pdu::{self, problem};
use super::table::{Event, State};
use crate::api::{Indication, Payload, Problem};
use crate::presentation::service as presentation;
use crate::stack::Below;
use crate::table::{Lacking, Performed};
use base::time::Instant;

impl Rose {
    /// Something from the presentation.
    pub(crate) fn presentation(
        &mut self,
        now: Instant,
        below: &mut Below,
        indication: presentation::Indication,
    ) {
        use presentation::Indication as P;
        let progress = matches!(indication, P::ValueData(_));
        match indication {
            P::ValueStart { context } => {
                if below.contexts().id_of(&crate::profiles::acse()) == Some(context) {
                    let why = "P-DATA in the context of ACSE".to_owned();
                    self.on(below, Event::Invalid, With::Why(why));
                }
                self.discarding = false;
                let open = self.automaton.state() != State::Sta00;
                self.incoming = open.then(|| Incoming::new(context));
            }
            P::ValueData(bytes) => {
                let mut found = Vec::new();
                if let Some(incoming) = &mut self.incoming {
                    incoming.push(bytes, &mut |f| found.push(f));
                }
                for found in found {
                    self.found(below, found);
                }
            }
            P::ValueEnd => {
                let whole = self.incoming.as_ref().is_none_or(Incoming::is_whole);
                if !whole && !self.discarding {
                    self.abandon();
                    self.bad(below, None, problem::MISTYPED_APDU);
                }
                self.incoming = None;
            }
            P::PleaseTokens(_) => {
                let why = "unexpected P-TOKEN-PLEASE".to_owned();
                self.on(below, Event::Invalid, With::Why(why));
            }
            P::Pass(other) => {
                self.on(below, Event::Invalid, With::Why(format!("unexpected {other:?}")));
            }
            P::Connect { .. }
            | P::Accepted { .. }
            | P::Refused { .. }
            | P::Release(_)
            | P::Released(_)
            | P::UserAbort(_)
            | P::ProviderAbort { .. } => {
                self.fail(below, "rose: internal error: a primitive of ACSE".to_owned());
            }
        }
        self.pump(below);
        self.rearm(now, progress);
    }

    fn found(&mut self, below: &mut Below, found: Found) {
        match found {
            Found::Invoke { invoke, linked, operation } => {
                self.invoked(below, invoke, linked, operation);
            }
            Found::Result { invoke } => {
                let indication = Indication::Returned { invoke };
                self.answered(below, invoke, indication, problem::RESULT_UNRECOGNISED);
            }
            Found::Error { invoke, error } => {
                let indication = Indication::ReturnedError { invoke, error };
                self.answered(below, invoke, indication, problem::ERROR_UNRECOGNISED);
            }
            Found::Reject { invoke, problem } => {
                self.on(below, Event::Rorj, With::Rejected { invoke, problem });
            }
            Found::Data { bytes, last } => {
                if !self.discarding {
                    self.up.push_back(Indication::Data { bytes, last });
                }
            }
            Found::Bad { invoke, problem } => {
                self.abandon();
                self.bad(below, invoke, problem);
            }
        }
    }

    /// The incoming APDU breaks off: if its invocation was already indicated, the reject
    /// is its answer, and its identifier is free again (X.229 7.5.1).
    fn abandon(&mut self) {
        if let (false, Some(incoming)) = (self.discarding, &self.incoming)
            && let Some(invoke) = incoming.invoked()
        {
            self.theirs.remove(&invoke);
        }
    }

    fn invoked(&mut self, below: &mut Below, invoke: i64, linked: Option<i64>, operation: i64) {
        let problem = if let Some(linked) = linked {
            // No operation of the message transfer system has child operations.
            if self.ours.contains_key(&linked) {
                problem::LINKED_RESPONSE_UNEXPECTED
            } else {
                problem::UNRECOGNISED_LINKED_ID
            }
        } else if self.theirs.contains_key(&invoke) {
            problem::DUPLICATE_INVOCATION
        } else if self.theirs.len() >= MAX_INVOCATIONS {
            problem::RESOURCE_LIMITATION
        } else {
            self.discarding = true;
            return self.on(below, Event::Roiv, With::Invoked { invoke, operation });
        };
        self.bad(below, Some(invoke), problem);
    }

    fn answered(
        &mut self,
        below: &mut Below,
        invoke: i64,
        indication: Indication,
        unknown: Problem,
    ) {
        if self.ours.remove(&invoke).is_none() {
            return self.bad(below, Some(invoke), unknown);
        }
        self.discarding = true;
        self.on(below, Event::Answer, With::Answered(indication));
    }

    /// Rejects the APDU that is arriving.
    fn bad(&mut self, below: &mut Below, invoke: Option<i64>, problem: Problem) {
        self.discarding = true;
        self.on(below, Event::BadApdu, With::Rejected { invoke, problem });
    }

    /// RORJ for the APDU that is arriving. Not through `send_reject`: an earlier invocation of this
    /// identifier stays answerable.
    pub(super) fn send_rorj(&mut self, below: &mut Below, with: &With) -> Performed {
        let With::Rejected { invoke, problem } = *with else { return Err(Lacking) };
        let context = self.incoming.as_ref().map(|i| i.context).unwrap_or_default();
        let head = pdu::reject(invoke, problem);
        let name = problem::name(problem);
        let of = invoke.map(|invoke| format!(" of invocation {invoke}")).unwrap_or_default();
        let detail = format!("rose: RORJ {name} to the peer's APDU{of} (X.229 7.5.1, 9.1)");
        self.up.push_back(Indication::Faulty { invoke, problem, detail });
        self.enqueue(below, context, None, &head, &Payload::default());
        Ok(())
    }

    /// RO-INVOKE.indication.
    pub(super) fn invoke_indication(&mut self, with: &With) -> Performed {
        let With::Invoked { invoke, operation } = *with else { return Err(Lacking) };
        let context = self.incoming.as_ref().map(|i| i.context).unwrap_or_default();
        self.theirs.insert(invoke, context);
        self.discarding = false;
        self.up.push_back(Indication::Invoked { invoke, operation });
        Ok(())
    }

    /// RO-RESULT.indication or RO-ERROR.indication.
    pub(super) fn answer_indication(&mut self, with: With) -> Performed {
        let With::Answered(indication) = with else { return Err(Lacking) };
        self.discarding = false;
        self.up.push_back(indication);
        Ok(())
    }

    /// RO-REJECT-U.indication or RO-REJECT-P.indication.
    pub(super) fn reject_indication(&mut self, with: &With) -> Performed {
        let With::Rejected { invoke, problem } = *with else { return Err(Lacking) };
        if let Some(invoke) = invoke.filter(|_| problem.kind < 2) {
            self.ours.remove(&invoke);
        }
        self.up.push_back(Indication::Rejected { invoke, problem });
        Ok(())
    }
}
