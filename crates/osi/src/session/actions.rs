//! What the cells of the state table do: SPDUs sent, primitives indicated, variables set. Each action
//! is a method, in the file of its phase: connection, data and tokens, activities, exceptions,
//! release, abort.

mod abort;
mod activity;
mod connection;
mod data;
mod exception;
mod release;

pub(crate) use connection::{is_congestion, refusal};

use super::machine::{Machine, Output, With, primitive};
use super::pdu::Spdu;
use super::service::Indication;
use super::table::{Action, Event, Table};
use crate::table::{Entered, Performed};
use base::time::Instant;

impl Machine {
    /// Performs the action of a cell.
    pub(super) fn perform(
        &mut self,
        now: Instant,
        entered: &Entered<Table>,
        action: Action,
        with: With,
    ) -> Performed {
        use Action as A;
        match action {
            // Connection.
            A::ConnectTransport => self.connect_transport(with)?,
            A::SendConnect => self.send_connect(now),
            A::ConnectIndication => self.connect_indication(with)?,
            A::SendAccept => self.send_accept(with)?,
            A::RefuseByProvider => self.refuse_by_provider(with)?,
            A::SendRefuse => self.send_refuse(with)?,
            A::Accepted => self.accepted(with)?,
            A::Refused => self.refused(with)?,
            A::ConnectFailed => self.connect_failed(with)?,
            A::DisconnectTransport => self.disconnect_transport(entered, &with),
            A::KeepReason => self.keep_reason(with)?,
            // Data and tokens.
            A::SendData => self.send_data(with)?,
            A::DataIndication => self.data_indication(),
            A::SendGiveTokens => self.send_give_tokens(),
            A::TokensGiven => self.tokens_given(&with)?,
            A::SendPleaseTokens => self.send_please_tokens(with)?,
            A::HoldPleaseTokens => self.hold_please_tokens(with)?,
            A::TokensPlease => self.tokens_please(with)?,
            A::SendGiveControl => self.send_give_control(),
            A::ControlGiven => self.control_given(),
            A::ControlTaken => self.control_taken(),
            // Activities and their checkpoints.
            A::SendActivityStart => self.send_activity_start(with)?,
            A::ActivityStarted => self.activity_started(with)?,
            A::SendActivityResume => self.send_activity_resume(with)?,
            A::ActivityResumed => self.activity_resumed(with)?,
            A::SendInterrupt => self.send_interrupt(&with)?,
            A::Interrupted => self.interrupted(&with)?,
            A::SendInterruptAck => self.send_interrupt_ack(),
            A::InterruptConfirmed => self.interrupt_confirmed(),
            A::SendDiscard => self.send_discard(&with)?,
            A::Discarded => self.discarded(&with)?,
            A::SendDiscardAck => self.send_discard_ack(),
            A::DiscardConfirmed => self.discard_confirmed(),
            A::SendActivityEnd => self.send_activity_end(),
            A::ActivityEnded => self.activity_ended(&with)?,
            A::SendActivityEndAck => self.send_activity_end_ack(),
            A::ActivityEndConfirmed => self.activity_end_confirmed(),
            A::SendMinorSync => self.send_minor_sync(),
            A::MinorSync => self.minor_sync(&with)?,
            A::SendMinorSyncAck => self.send_minor_sync_ack(&with)?,
            A::MinorSyncConfirmed => self.minor_sync_confirmed(&with)?,
            // Exceptions.
            A::SendException => self.send_exception(&with)?,
            A::UserException => self.user_exception(&with)?,
            A::ProviderException => self.indicate(Indication::ProviderException),
            A::CountMinorSync => self.variables.minor_received(),
            A::CountActivityEnd => self.variables.end_received(),
            A::CountMinorSyncAck => self.count_minor_sync_ack(&with)?,
            // Release.
            A::SendFinish => self.send_finish(with)?,
            A::SendFinishInCollision => self.send_finish_in_collision(with)?,
            A::ReleaseIndication => self.release_indication(with)?,
            A::ReleaseCollision => self.release_collision(with)?,
            A::SendDisconnect => self.send_disconnect(with)?,
            A::HoldDisconnect => self.hold_disconnect(with)?,
            A::Released => self.released(with)?,
            A::ReleasedInCollision => self.released_in_collision(with)?,
            A::ReleasedThenDisconnect => self.released_then_disconnect(with)?,
            // Abort.
            A::SendAbort => self.send_user_abort(with)?,
            A::AbortIndication => self.abort_indication(with)?,
            A::TransportLost => self.transport_lost_indication(with)?,
            A::TimedOut => self.timed_out(entered),
            A::AbortProvider => self.abort_provider(with)?,
        }
        Ok(())
    }

    /// Sends an SPDU other than DT; an SSDU in progress ends early.
    fn send(&mut self, spdu: &Spdu) {
        if std::mem::take(&mut self.sending) {
            match &mut self.segments {
                Some(segments) => segments.cut(),
                None => self.out.push_back(Output::Truncate),
            }
        }
        self.out.push_back(Output::Data { bytes: spdu.encode_tsdu().into(), last: true });
    }

    /// Whether the serial number of the next point can be written.
    pub(super) fn serial_fits(&self, event: Event) -> Result<(), crate::lower::Misuse> {
        let point = matches!(event, Event::Ssynmreq | Event::Sactereq);
        if point && self.variables.vm > super::pdu::MAX_SERIAL {
            return Err(crate::lower::Misuse {
                request: primitive(event),
                why: "serial number above 999999".to_owned(),
                clause: "X.225 8.3.20",
            });
        }
        Ok(())
    }
}
