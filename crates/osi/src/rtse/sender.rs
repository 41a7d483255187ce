//! Transfer, as the end with the turn sees it (X.228 7.3, 7.7, 7.8).

use super::machine::{Rtse, With};
use super::outflow::{Outflow, Piece};
use super::pdu::{encode_integer, normalized};
use super::table::{Event, State};
use crate::api::{AbortReason, Indication, Payload, Request, ResumePoint};
use crate::presentation::service::Request as P;
use crate::session::service::{self as session, ExceptionReason};
use crate::stack::Below;
use crate::table::{Lacking, Performed};
use base::ber::{Header, Length, universal as u};
use bytes::Bytes;

/// Most octets filled in to complete an RTTR whose content is gone.
const MAX_FILLED: u64 = 1024 * 1024;

impl Rtse {
    /// RT-TRANSFER.request from the first octet.
    pub(super) fn start_activity(&mut self, below: &mut Below, with: With) -> Performed {
        let With::Request(Request::Transfer { payload, resume: None }) = with else {
            return Err(Lacking);
        };
        let activity = self.begin_outflow(below, &payload, None);
        below.pass(session::Request::ActivityStart { activity });
        self.origin = None;
        Ok(())
    }

    /// RT-TRANSFER.request that resumes an activity.
    pub(super) fn resume_activity(&mut self, below: &mut Below, with: With) -> Performed {
        let With::Request(Request::Transfer { payload, resume: Some(point) }) = with else {
            return Err(Lacking);
        };
        let activity = self.begin_outflow(below, &payload, Some(&point));
        below.pass(session::Request::ActivityResume(session::Resume {
            activity,
            old_activity: encode_integer(point.activity),
            serial: point.serial,
            old_reference: (normalized(&point.reference) != self.reference)
                .then(|| point.reference.clone()),
        }));
        self.origin = Some(point);
        Ok(())
    }

    /// The octets to be sent under the next activity identifier, which it gives.
    fn begin_outflow(
        &mut self,
        below: &Below,
        payload: &Payload,
        resume: Option<&ResumePoint>,
    ) -> Bytes {
        let activity = self.next_activity;
        self.next_activity += 1;
        let context = match below.is_x410() {
            true => None,
            false => Some(below.contexts().id_of(&self.user_syntax).unwrap_or_default()),
        };
        let indefinite = self.parameters.indefinite_lengths;
        let outflow = Outflow::new(activity, payload, context, self.checkpoint, indefinite, resume);
        self.outflow = Some(outflow);
        encode_integer(activity)
    }

    /// Sends as far as the window and the content at hand allow.
    pub(super) fn pump(&mut self, below: &mut Below) {
        while self.automaton.state() == State::Sta20 {
            let window = self.window;
            let Some(outflow) = &mut self.outflow else { return };
            if outflow.waiting.is_some() {
                return;
            }
            if outflow.end.is_none() {
                let holds = outflow.holds();
                if let Some(event) = self.between(window) {
                    self.on(below, event, With::Nothing);
                } else if holds {
                    return self.notify_pause();
                } else {
                    self.begin_rttr(below);
                }
                continue;
            }
            match outflow.piece() {
                Piece::Ready(bytes) => self.send(below, bytes),
                Piece::Pull { offset, max } => {
                    outflow.waiting = Some(max);
                    self.up.push_back(Indication::NeedContent { offset, max });
                    return;
                }
            }
        }
    }

    /// What is due between two RTTRs other than the next one.
    fn between(&self, window: usize) -> Option<Event> {
        let outflow = self.outflow.as_ref()?;
        if outflow.is_sent() {
            return Some(Event::AllSent);
        }
        let stop = outflow.interrupt && outflow.confirmed().is_some();
        match outflow.outstanding() {
            0 if stop => Some(Event::InterruptDue),
            0 => None,
            n if n >= window || outflow.interrupt || outflow.pause => Some(Event::Suspend),
            _ => None,
        }
    }

    fn begin_rttr(&mut self, below: &mut Below) {
        let context = self.context(below);
        let Some(outflow) = &mut self.outflow else { return };
        let octets = outflow.begin();
        if self.mode.is_x410() {
            // What is an RTTR in normal mode are the octets themselves here.
            return below.present(P::DataStart { context, length: Some(octets) });
        }
        let mut header = Vec::new();
        let length = if self.parameters.indefinite_lengths {
            Header::write(u::OCTET_STRING, true, Length::Indefinite, &mut header);
            None
        } else {
            Header::write(u::OCTET_STRING, false, Length::Definite(octets), &mut header);
            Some(header.len() as u64 + octets)
        };
        below.present(P::DataStart { context, length });
        below.present(P::Data { bytes: header.into(), last: false });
    }

    /// Sends octets of the RTTR, and the checkpoint that follows it.
    fn send(&mut self, below: &mut Below, bytes: Bytes) {
        if self.send_octets(below, bytes)
            && let Some(outflow) = self.outflow.as_mut().filter(|outflow| !outflow.is_sent())
        {
            outflow.checkpoint_set();
            below.pass(session::Request::MinorSync);
        }
    }

    /// Sends octets of the RTTR; whether they end it.
    fn send_octets(&mut self, below: &mut Below, bytes: Bytes) -> bool {
        let Some(outflow) = &mut self.outflow else { return false };
        let ended = outflow.sent(bytes.len());
        if self.parameters.indefinite_lengths && !self.mode.is_x410() {
            let mut header = Vec::new();
            let length = Length::Definite(bytes.len() as u64);
            Header::write(u::OCTET_STRING, false, length, &mut header);
            below.present(P::Data { bytes: header.into(), last: false });
            below.present(P::Data { bytes, last: false });
            if ended {
                below.present(P::Data { bytes: Bytes::from_static(&[0, 0]), last: true });
            }
        } else {
            below.present(P::Data { bytes, last: ended });
        }
        ended
    }

    /// Content that was asked for.
    pub(super) fn content(&mut self, below: &mut Below, with: With) -> Performed {
        let With::Request(Request::Content(bytes)) = with else { return Err(Lacking) };
        match self.outflow.as_mut().and_then(|outflow| outflow.waiting.take()) {
            None => {}
            // Content of another length than requested is invalid.
            Some(max) if bytes.is_empty() || bytes.len() > max => self.content_failed(below),
            Some(_) => self.send(below, bytes),
        }
        Ok(())
    }

    /// The content is gone: the RTTR, which has promised its length, is filled up, and the activity
    /// discarded; no checkpoint follows, behind which it could be resumed. Where too much is missing it is
    /// cut short, which fielded peers may abort for.
    pub(super) fn content_failed(&mut self, below: &mut Below) {
        let Some(outflow) = &mut self.outflow else { return };
        outflow.waiting = None;
        let left = outflow.left();
        match usize::try_from(left) {
            Ok(left) if left as u64 <= MAX_FILLED => {
                if left > 0 {
                    self.send_octets(below, vec![0; left].into());
                }
            }
            _ => below.present(P::DataCut),
        }
        self.on(below, Event::DiscardDue, With::Nothing);
    }

    pub(super) fn mark_interrupt(&mut self) {
        if let Some(outflow) = &mut self.outflow {
            outflow.interrupt = true;
        }
    }

    pub(super) fn mark_pause(&mut self, with: &With) -> Performed {
        let With::Request(Request::Pause(on)) = *with else { return Err(Lacking) };
        if let Some(outflow) = &mut self.outflow {
            outflow.pause = on;
            outflow.pause_indicated &= on;
        }
        Ok(())
    }

    fn notify_pause(&mut self) {
        if let Some(outflow) = self.outflow.as_mut().filter(|outflow| !outflow.pause_indicated) {
            outflow.pause_indicated = true;
            self.up.push_back(Indication::Paused);
        }
    }

    /// Where the transfer may go on. While nothing was confirmed of a resumed one, it is known to
    /// both ends by its old name only.
    fn resume_point(&self) -> Option<ResumePoint> {
        let outflow = self.outflow.as_ref()?;
        let (serial, octets) = outflow.confirmed()?;
        if let Some(origin) = &self.origin
            && origin.serial == serial
        {
            return Some(origin.clone());
        }
        let reference = self.reference.clone();
        Some(ResumePoint { reference, activity: outflow.activity, serial, octets })
    }

    pub(super) fn sync_confirmed(&mut self, below: &mut Below, with: &With) -> Performed {
        let With::Serial(serial) = *with else { return Err(Lacking) };
        let ours = self.outflow.as_mut().is_some_and(|o| o.confirm(serial));
        if !ours {
            let what = format!("P-SYNC-MINOR confirm of serial number {serial}");
            self.invalid(below, AbortReason::ProtocolError, what);
        } else if let Some(point) = self.resume_point() {
            self.up.push_back(Indication::Progress(point));
        }
        Ok(())
    }

    pub(super) fn end_confirmed(&mut self) {
        self.outflow = None;
        self.origin = None;
        self.up.push_back(Indication::TransferConfirmed);
    }

    /// The receiver, or the session provider (`None`), reports an exception (7.6).
    pub(super) fn exception(&mut self, below: &mut Below, with: &With) -> Performed {
        let With::Exception(reason) = *with else { return Err(Lacking) };
        below.present(P::DataCut);
        if let Some(outflow) = &mut self.outflow {
            outflow.waiting = None;
            outflow.exception = Some(reason);
        }
        let may_resume = matches!(
            reason,
            None | Some(ExceptionReason::NonSpecific | ExceptionReason::LocalError)
        );
        let confirmed = self.outflow.as_ref().is_some_and(|o| o.confirmed().is_some());
        let event = if may_resume && confirmed { Event::InterruptDue } else { Event::DiscardDue };
        self.on(below, event, With::Nothing);
        Ok(())
    }

    pub(super) fn interrupt_confirmed(&mut self) {
        let detail = self.after_exception("rtse: the activity was interrupted (X.228 7.7.1)");
        self.fail_transfer(&detail, true);
    }

    pub(super) fn discard_confirmed(&mut self) {
        let detail = self.after_exception("rtse: the activity was discarded (X.228 7.7.2)");
        self.fail_transfer(&detail, false);
    }

    /// This, and the exception that the receiver reported before.
    fn after_exception(&self, detail: &str) -> String {
        match self.outflow.as_ref().and_then(|outflow| outflow.exception) {
            Some(Some(reason)) => {
                format!("{detail}: the peer reported an exception, {reason} (X.228 7.6)")
            }
            Some(None) => format!("{detail}: the session provider reported an exception"),
            None => detail.to_owned(),
        }
    }

    /// RT-TRANSFER.confirm, negative, where there is a transfer.
    pub(super) fn fail_transfer(&mut self, detail: &str, may_resume: bool) {
        let resume = self.resume_point().filter(|_| may_resume);
        if let Some(outflow) = self.outflow.take() {
            let refused = outflow.exception == Some(Some(ExceptionReason::Unrecoverable));
            // Without an exception only the confirm is missing.
            let in_doubt = outflow.ended && outflow.exception.is_none();
            let detail = detail.to_owned();
            self.up.push_back(Indication::TransferFailed { resume, refused, in_doubt, detail });
        }
        self.origin = None;
    }
}
