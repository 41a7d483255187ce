//! Transfer, as the end without the turn sees it (X.228 7.3, 7.6, 7.8).

use super::inflow::{Form, Inflow};
use super::interrupted::{Confirmed, InterruptedReceive, Names};
use super::machine::{Rtse, With};
use super::pdu::{decode_activity, normalized};
use crate::api::{AbortReason, Indication, Request};
use crate::raw::{Contents, RawReader};
use crate::session::service::{self as session, ExceptionReason};
use crate::stack::Below;
use crate::table::{Lacking, Performed};
use base::ber::{Error, Fault, Field, universal as u};
use bytes::Bytes;
use std::collections::VecDeque;

/// Most interrupted transfers kept for one association.
const MAX_INTERRUPTED: usize = 4;
/// How many checkpoints beyond the window may await our confirm: fielded senders count one more.
const SLACK: usize = 16;
/// Most confirmed checkpoints remembered; the sender may have missed as many confirms.
pub(super) const MAX_CONFIRMED: usize = 256;

/// Of those, how many are in what [`Rtse::at_checkpoint`] gives: it is stored for each checkpoint.
const MAX_NOTED: usize = 128;

/// A checkpoint that awaits our confirm.
#[derive(Clone, Debug)]
struct Pending {
    checkpoint: Confirmed,
    /// Octets the user had been given.
    user: u64,
    /// The transfer as it was then.
    inflow: Inflow,
}

/// A transfer being received.
#[derive(Clone, Debug)]
pub(super) struct Receiving {
    names: Names,
    inflow: Inflow,
    /// The RTTR that is open: its reader, and whether its header was read.
    rttr: Option<(RawReader, bool)>,
    pending: VecDeque<Pending>,
    confirmed: VecDeque<Confirmed>,
    /// It is beyond a limit of ours: what still comes is thrown away.
    faulty: bool,
}

impl Receiving {
    /// What is kept of it when it is cut off.
    pub(super) fn interrupted(self) -> InterruptedReceive {
        InterruptedReceive {
            names: self.names,
            confirmed: self.confirmed,
            inflow: self.inflow,
            completed: false,
        }
    }

    /// What it is at the last checkpoint before so many octets of the user's, as if all were confirmed up
    /// to there; `None` where no checkpoint awaits its confirm there.
    fn at_checkpoint(&self, octets: u64) -> Option<InterruptedReceive> {
        let reached = || self.pending.iter().take_while(|checkpoint| checkpoint.user <= octets);
        let last = reached().last()?;
        let mut names = self.names.clone();
        names.settle();
        let new = reached().map(|pending| pending.checkpoint);
        let mut confirmed: VecDeque<_> = self.confirmed.iter().copied().chain(new).collect();
        confirmed.drain(..confirmed.len().saturating_sub(MAX_NOTED));
        Some(InterruptedReceive { names, confirmed, inflow: last.inflow.clone(), completed: false })
    }

    /// Octets held besides its fixed size.
    pub(super) fn held(&self) -> usize {
        self.names.held()
            + self.pending.len() * size_of::<Pending>()
            + self.confirmed.len() * size_of::<Confirmed>()
    }

    /// Whether our user has confirmed all checkpoints.
    pub(super) fn is_confirmed(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether it is behind a checkpoint that we confirmed: where a sender may pause.
    pub(super) fn is_at_checkpoint(&self) -> bool {
        self.rttr.is_none() && self.is_confirmed() && !self.confirmed.is_empty()
    }

    /// Whether an RTTR is open, for tests.
    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.rttr.is_some()
    }

    /// Takes octets of an RTTR.
    fn take(
        &mut self,
        mut input: Bytes,
        contexts: &crate::presentation::service::Contexts,
        up: &mut VecDeque<Indication>,
    ) -> Result<(), Error> {
        if self.faulty {
            return Ok(());
        }
        let Some(first) = input.first() else { return Ok(()) };
        let (reader, begun) = self.rttr.get_or_insert_with(|| (RawReader::new(), false));
        if !self.inflow.is_wrapped(*first) {
            return self.inflow.push(input, contexts, |bytes, last| {
                up.push_back(Indication::Data { bytes, last });
            });
        }
        if !*begun {
            match reader.next(&mut input).field("RTTR")? {
                None => return Ok(()),
                Some(crate::raw::BerEvent::Begin { header, .. })
                    if header.tag == u::OCTET_STRING =>
                {
                    *begun = true;
                }
                Some(crate::raw::BerEvent::Begin { header, .. }) => {
                    return Err(Fault::Unexpected(header.tag)).field("RTTR");
                }
                Some(_) => return Err(Fault::Truncated).field("RTTR"),
            }
        }
        let (inflow, mut result) = (&mut self.inflow, Ok(()));
        if reader.is_done() {
            return if input.is_empty() { Ok(()) } else { Err(Fault::Trailing).field("RTTR") };
        }
        let ended = reader
            .contents(0, Contents::OctetString, &mut input, |octets| {
                if result.is_ok() {
                    result = inflow.push(octets, contexts, |bytes, last| {
                        up.push_back(Indication::Data { bytes, last });
                    });
                }
            })
            .field("RTTR")?;
        if result.is_ok() && ended && !input.is_empty() {
            return Err(Fault::Trailing).field("RTTR");
        }
        result
    }
}

/// Octets of one transfer kept, besides its fixed size.
const MAX_KEPT: usize = Names::MAX_HELD + MAX_CONFIRMED * size_of::<Confirmed>();

impl Rtse {
    /// The transfer that is being received, at the last checkpoint before so many octets of the user's.
    pub(crate) fn at_checkpoint(&self, octets: u64) -> Option<InterruptedReceive> {
        self.receiving.as_ref().filter(|receiving| !receiving.faulty)?.at_checkpoint(octets)
    }

    /// Octets held on behalf of the peer.
    pub(crate) fn held(&self) -> usize {
        let kept = self.interrupted.iter().chain(&self.completed);
        let kept: usize = kept.map(|i| size_of::<InterruptedReceive>() + i.held()).sum();
        kept + self.receiving.as_ref().map_or(0, |r| size_of::<Receiving>() + r.held())
    }

    /// Most octets [`Rtse::held`] ever gives, with this window in force.
    pub(crate) const fn most_held(window: usize) -> usize {
        // The interrupted, one more that a recovery brings, the completed.
        let kept = (MAX_INTERRUPTED + 2) * (size_of::<InterruptedReceive>() + MAX_KEPT);
        let pending = (window + SLACK) * size_of::<Pending>();
        kept + size_of::<Receiving>() + MAX_KEPT + pending
    }

    /// P-ACTIVITY-START.indication.
    pub(super) fn activity_start(&mut self, with: With) -> Performed {
        let With::Activity(activity) = with else { return Err(Lacking) };
        // A sender that starts anew knows how its last transfer ended.
        self.completed = None;
        let activity = decode_activity(&activity);
        let form = if self.mode.is_x410() { Form::Apdu } else { Form::External };
        self.receiving = Some(Receiving {
            names: Names::new(self.reference.clone(), activity),
            inflow: Inflow::new(form),
            rttr: None,
            pending: VecDeque::new(),
            confirmed: VecDeque::new(),
            faulty: false,
        });
        self.up.push_back(Indication::TransferStart { activity });
        Ok(())
    }

    /// P-ACTIVITY-RESUME.indication.
    pub(super) fn activity_resume(&mut self, below: &mut Below, with: With) -> Performed {
        let With::Resume(resume) = with else { return Err(Lacking) };
        self.resume(below, &resume);
        Ok(())
    }

    fn resume(&mut self, below: &mut Below, resume: &session::Resume) {
        let reference = match &resume.old_reference {
            Some(reference) => normalized(reference),
            None => self.reference.clone(),
        };
        let old = decode_activity(&resume.old_activity);
        let completed = self.completed.take();
        let known = |i: &InterruptedReceive| i.names.contains(&reference, old);
        if completed.as_ref().is_some_and(known)
            || self.interrupted.iter().any(|i| i.completed && known(i))
        {
            let detail = format!("rtse: activity {old} is complete already (X.228 7.8.1)");
            return self.fail(below, AbortReason::TransferCompleted, detail);
        }
        let at = self.interrupted.iter().position(known);
        let found = at.and_then(|at| self.interrupted.remove(at));
        // In the other mode its octets would be framed otherwise.
        let found = found.filter(|i| i.inflow.is_framed() != self.mode.is_x410());
        let found = found.and_then(|i| Some((i.checkpoint(resume.serial)?, i)));
        let Some((from, mut state)) = found else {
            let serial = resume.serial;
            let detail = format!(
                "rtse: no activity {old} with a confirmed checkpoint {serial} (X.228 7.8.1)"
            );
            return self.fail(below, AbortReason::UnrecognizedActivity, detail);
        };
        let activity = decode_activity(&resume.activity);
        state.names.add(self.reference.clone(), activity);
        state.confirmed.retain(|checkpoint| checkpoint.serial <= resume.serial);
        state.inflow.rewind(from.offset, from.sum);
        self.receiving = Some(Receiving {
            names: state.names,
            inflow: state.inflow,
            rttr: None,
            pending: VecDeque::new(),
            confirmed: state.confirmed,
            faulty: false,
        });
        self.up.push_back(Indication::TransferResumed { activity });
    }

    /// P-DATA.indication, or a piece of it.
    pub(super) fn data(&mut self, below: &mut Below, with: With) -> Performed {
        match with {
            With::ValueStart => self.value_start(),
            With::ValueData(bytes) => self.value_data(below, bytes),
            With::ValueEnd => self.value_end(below),
            _ => return Err(Lacking),
        }
        Ok(())
    }

    /// An S-DATA of X.410 mode has no RTTR if it has no octets.
    fn value_start(&mut self) {
        if let Some(receiving) = self.receiving.as_mut().filter(|r| r.inflow.is_framed()) {
            receiving.rttr = Some((RawReader::new(), false));
        }
    }

    fn value_data(&mut self, below: &mut Below, bytes: Bytes) {
        let Some(receiving) = &mut self.receiving else { return };
        match receiving.take(bytes, below.contexts(), &mut self.up) {
            Ok(()) if !receiving.inflow.is_as_before() => {
                self.receiving = None;
                let detail = "rtse: behind the checkpoint other octets came than before the transfer was cut off \
                              (X.228 7.8.1)";
                self.fail(below, AbortReason::UnrecognizedActivity, detail.to_owned());
            }
            Ok(()) => {}
            Err(e) if matches!(e.fault, Fault::TooDeep(_)) => {
                receiving.faulty = true;
                let detail = format!("rtse: {e} (X.228 7.6.1)");
                self.up.push_back(Indication::TransferFaulty { detail });
            }
            Err(e) => self.invalid(below, AbortReason::InvalidParameter, e.to_string()),
        }
    }

    fn value_end(&mut self, below: &mut Below) {
        let rttr = self.receiving.as_mut().and_then(|r| r.rttr.take());
        let is_bare = self.receiving.as_ref().is_some_and(|r| r.inflow.is_bare());
        if !is_bare && rttr.is_some_and(|(reader, _)| !reader.is_done()) && !self.is_faulty() {
            self.invalid(below, AbortReason::InvalidParameter, "RTTR: truncated".to_owned());
        }
    }

    /// P-SYNC-MINOR.indication.
    pub(super) fn sync(&mut self, below: &mut Below, with: &With) -> Performed {
        let With::Serial(serial) = *with else { return Err(Lacking) };
        let most = self.window + SLACK;
        let Some(receiving) = &mut self.receiving else { return Ok(()) };
        if receiving.pending.len() >= most {
            let what = format!("more than {most} checkpoints await our confirm (X.228 7.3.4)");
            self.invalid(below, AbortReason::ProtocolError, what);
            return Ok(());
        }
        // While a resumed sender repeats itself, this is more than lies before the checkpoint: it
        // is confirmed no sooner than what was received earlier is stored.
        let user = receiving.inflow.user_octets();
        let inflow = receiving.inflow.clone();
        let checkpoint = Confirmed { serial, offset: inflow.position(), sum: inflow.sum() };
        receiving.pending.push_back(Pending { checkpoint, user, inflow });
        self.up.push_back(Indication::Checkpoint { octets: user });
        Ok(())
    }

    /// P-SYNC-MINOR.response for the last checkpoint before the octets stored.
    pub(super) fn confirm_checkpoint(&mut self, below: &mut Below, with: &With) -> Performed {
        let With::Request(Request::Stored { octets }) = *with else { return Err(Lacking) };
        if let Some(serial) = self.stored(octets) {
            below.pass(session::Request::MinorSyncResponse { serial });
        }
        Ok(())
    }

    /// As [`Rtse::confirm_checkpoint`], where the confirm of the end covers the checkpoint.
    pub(super) fn count_checkpoint(&mut self, with: &With) -> Performed {
        let With::Request(Request::Stored { octets }) = *with else { return Err(Lacking) };
        self.stored(octets);
        Ok(())
    }

    /// So many octets of the user's are stored: the serial number of the last checkpoint before
    /// them, if it was not confirmed yet.
    pub(super) fn stored(&mut self, octets: u64) -> Option<u32> {
        let receiving = self.receiving.as_mut()?;
        let mut last = None;
        while let Some(first) = receiving.pending.pop_front_if(|first| first.user <= octets) {
            receiving.confirmed.push_back(first.checkpoint);
            if receiving.confirmed.len() > MAX_CONFIRMED {
                receiving.confirmed.pop_front();
            }
            last = Some(first.checkpoint.serial);
        }
        if last.is_some() {
            receiving.names.settle();
        }
        last
    }

    pub(super) fn activity_end(&mut self, below: &mut Below) {
        if self.is_faulty() {
            return; // it is refused, not ended
        }
        if self.receiving.as_ref().is_some_and(|r| r.inflow.is_complete()) {
            self.up.push_back(Indication::TransferEnd);
        } else {
            let of = if self.mode.is_x410() { "APDU" } else { "EXTERNAL" };
            let what = format!("the activity ended within its {of} (X.228 7.3.5)");
            self.invalid(below, AbortReason::InvalidParameter, what);
        }
    }

    /// Whether our user is about to refuse what is being received.
    fn is_faulty(&self) -> bool {
        self.receiving.as_ref().is_some_and(|r| r.faulty)
    }

    /// The user has secured the APDU.
    pub(super) fn secured(&mut self, below: &mut Below) {
        below.pass(session::Request::ActivityEndResponse);
        self.completed = self.receiving.take().map(|r| {
            let mut state = r.interrupted();
            state.completed = true;
            state
        });
    }

    /// The user cannot take the APDU.
    pub(super) fn refuse_transfer(&mut self, below: &mut Below, with: &With) -> Performed {
        let With::Request(Request::TransferRefused(reason)) = *with else { return Err(Lacking) };
        let exception = match reason {
            AbortReason::LocalSystemProblem | AbortReason::TemporaryProblem => {
                ExceptionReason::ReceivingAbilityJeopardized
            }
            AbortReason::UnrecognizedActivity => ExceptionReason::SequenceError,
            AbortReason::InvalidParameter
            | AbortReason::ProtocolError
            | AbortReason::PermanentProblem
            | AbortReason::UserError => ExceptionReason::Unrecoverable,
            AbortReason::TransferCompleted => {
                let detail = "rtse: refused by us, the transfer is complete (X.228 7.8.1)";
                self.fail(below, reason, detail.to_owned());
                return Ok(());
            }
        };
        below.pass(session::Request::ExceptionReport(exception));
        Ok(())
    }

    pub(super) fn activity_interrupt(&mut self, below: &mut Below) {
        below.pass(session::Request::ActivityInterruptResponse);
        let state = self.receiving.take().map(Receiving::interrupted);
        let state = state.filter(|s| s.serial() > 0);
        let may_resume = state.is_some();
        self.interrupted.extend(state);
        if self.interrupted.len() > MAX_INTERRUPTED {
            self.interrupted.pop_front();
        }
        self.up.push_back(Indication::TransferStopped { may_resume });
    }

    pub(super) fn activity_discard(&mut self, below: &mut Below) {
        below.pass(session::Request::ActivityDiscardResponse);
        self.receiving = None;
        self.up.push_back(Indication::TransferStopped { may_resume: false });
    }
}
