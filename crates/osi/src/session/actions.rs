//! What the cells of the state table do: SPDUs sent, primitives indicated, variables set.

use super::machine::{Machine, Output, Receiving, SUPPORTED, With, primitive};
use super::pdu::{AcceptSpdu, ConnectSpdu, Enclosure, Error, Spdu, VERSION_2, disconnect};
use super::service::{Accept, Connect, Indication as I, Refuse, Request as R};
use super::table::{Action, Event, State, Table};
use super::tsdu::Rejected;
use crate::table::Entered;
use base::time::Instant;
use bytes::Bytes;

impl Machine {
    /// Performs the action of a cell.
    pub(super) fn perform(
        &mut self,
        now: Instant,
        entered: &Entered<Table>,
        action: Action,
        with: With,
    ) {
        use Action as A;
        use With::{Lost, Request, Spdu as Received};
        match (action, with) {
            // Connection and abort.
            (A::ConnectTransport, Request(R::Connect(connect))) => {
                self.request = Some(connect);
                self.out.push_back(Output::ConnectTransport);
            }
            (A::DisconnectTransport, with) => self.disconnect_transport(entered, &with),
            (A::SendConnect, _) => self.send_connect(now),
            (A::ConnectIndication, Received(Spdu::Connect(c))) => self.connect_indication(c),
            (A::SendAccept, Request(R::Accept(accept))) => self.send_accept(accept),
            (A::RefuseByProvider, Received(Spdu::Connect(c))) => self.refuse_by_provider(&c),
            (A::SendRefuse, Request(R::Refuse(refuse))) => self.send_refuse(refuse),
            (A::Accepted, Received(Spdu::Accept(accept))) => self.accepted(accept),
            (A::Refused, Received(Spdu::Refuse { reason, user_data, .. })) => {
                self.refused(reason, user_data);
            }
            (A::ConnectFailed, Lost { refused, detail }) => self.connect_failed(refused, detail),
            (A::SendAbort, Request(R::Abort { user_data })) => {
                self.send_abort(disconnect::USER, Bytes::new(), user_data);
            }
            (A::AbortIndication, Received(Spdu::Abort { disconnect, reflect, user_data })) => {
                self.abort_indication(disconnect, &reflect, user_data);
            }
            (A::TransportLost, Lost { detail, .. }) => {
                self.indicate(I::ProviderAbort { reason: detail });
            }
            (A::KeepReason, Lost { detail, .. }) => {
                self.detail.get_or_insert(detail);
            }
            (A::TimedOut, _) => self.timed_out(entered),
            (A::AbortProvider, With::Fault(reason)) => {
                self.send_abort(disconnect::NO_REASON, Bytes::new(), Bytes::new());
                self.indicate(I::ProviderAbort { reason });
            }
            // Data and tokens.
            (A::SendData, Request(R::Data { bytes, last })) => self.send_data(bytes, last),
            // The user information follows piece by piece.
            (A::DataIndication, _) => self.receiving = Receiving::Deliver,
            (A::SendGiveTokens, _) => self.send_give_tokens(),
            (A::TokensGiven, Received(Spdu::GiveTokens(tokens))) => {
                self.variables.owned |= tokens;
                self.indicate(I::TokensGiven { all: self.owns_tokens() });
            }
            (A::SendPleaseTokens, Request(R::PleaseTokens { user_data })) => {
                self.send_please_tokens(user_data);
            }
            (A::HoldPleaseTokens, Request(R::PleaseTokens { user_data })) => {
                self.please = Some(user_data);
            }
            (A::TokensPlease, Received(Spdu::PleaseTokens { user_data, .. })) => {
                self.indicate(I::TokensPlease { user_data });
            }
            (A::SendGiveControl, _) => {
                self.variables.owned = 0;
                self.send(&Spdu::GiveControl);
            }
            (A::ControlGiven, _) => self.control_given(),
            (A::ControlTaken, _) => {
                if let Some(user_data) = self.please.take() {
                    self.send_please_tokens(user_data);
                }
            }
            // Activities, checkpoints and exceptions.
            (A::SendActivityStart, Request(R::ActivityStart { activity })) => {
                self.variables.activity_begins(None);
                self.send(&Spdu::ActivityStart(activity));
            }
            (A::ActivityStarted, Received(Spdu::ActivityStart(activity))) => {
                self.variables.activity_begins(None);
                self.indicate(I::ActivityStart { activity });
            }
            (A::SendActivityResume, Request(R::ActivityResume(resume))) => {
                self.variables.activity_begins(Some(resume.serial));
                self.send(&Spdu::ActivityResume(resume));
            }
            (A::ActivityResumed, Received(Spdu::ActivityResume(resume))) => {
                self.variables.activity_begins(Some(resume.serial));
                self.indicate(I::ActivityResume(resume));
            }
            (A::SendInterrupt, Request(R::ActivityInterrupt(reason))) => {
                self.send(&Spdu::ActivityInterrupt(reason));
            }
            (A::Interrupted, Received(Spdu::ActivityInterrupt(reason))) => {
                self.indicate(I::ActivityInterrupt(reason));
            }
            (A::SendInterruptAck, _) => {
                self.variables.activity_stops(false);
                self.send(&Spdu::ActivityInterruptAck);
            }
            (A::InterruptConfirmed, _) => {
                self.variables.activity_stops(true);
                self.indicate(I::ActivityInterruptConfirm);
            }
            (A::SendDiscard, Request(R::ActivityDiscard(reason))) => {
                self.send(&Spdu::ActivityDiscard(reason));
            }
            (A::Discarded, Received(Spdu::ActivityDiscard(reason))) => {
                self.indicate(I::ActivityDiscard(reason));
            }
            (A::SendDiscardAck, _) => {
                self.variables.activity_stops(false);
                self.send(&Spdu::ActivityDiscardAck);
            }
            (A::DiscardConfirmed, _) => {
                self.variables.activity_stops(true);
                self.indicate(I::ActivityDiscardConfirm);
            }
            (A::SendActivityEnd, _) => {
                self.send(&Spdu::ActivityEnd(self.variables.vm));
                self.variables.point_sent();
            }
            (A::ActivityEnded, Received(Spdu::ActivityEnd(serial))) => {
                self.variables.end_received();
                self.indicate(I::ActivityEnd { serial });
            }
            (A::SendActivityEndAck, _) => {
                self.send(&Spdu::ActivityEndAck(self.variables.vm.saturating_sub(1)));
                self.variables.activity_ends();
            }
            (A::ActivityEndConfirmed, _) => {
                self.variables.activity_ends();
                self.indicate(I::ActivityEndConfirm);
            }
            (A::SendMinorSync, _) => {
                self.send(&Spdu::MinorSync { serial: self.variables.vm, explicit: true });
                self.variables.point_sent();
            }
            (A::MinorSync, Received(Spdu::MinorSync { serial, .. })) => {
                self.variables.minor_received();
                self.indicate(I::MinorSync { serial });
            }
            (A::SendMinorSyncAck, Request(R::MinorSyncResponse { serial })) => {
                self.variables.va = serial + 1;
                self.send(&Spdu::MinorSyncAck(serial));
            }
            (A::MinorSyncConfirmed, Received(Spdu::MinorSyncAck(serial))) => {
                self.variables.va = serial + 1;
                self.indicate(I::MinorSyncConfirm { serial });
            }
            (A::CountMinorSync, _) => self.variables.minor_received(),
            (A::CountActivityEnd, _) => self.variables.end_received(),
            (A::CountMinorSyncAck, Received(Spdu::MinorSyncAck(serial))) => {
                self.variables.va = serial + 1;
            }
            (A::SendException, Request(R::ExceptionReport(reason))) => {
                self.send(&Spdu::ExceptionData(reason));
            }
            (A::UserException, Received(Spdu::ExceptionData(reason))) => {
                self.indicate(I::ExceptionReport(reason));
            }
            (A::ProviderException, _) => self.indicate(I::ProviderException),
            // Release.
            (A::SendFinish, Request(R::Release { user_data })) => {
                self.send(&Spdu::Finish { keep: false, user_data });
            }
            (A::SendFinishInCollision, Request(R::Release { user_data })) => {
                self.variables.vcoll = true;
                self.send(&Spdu::Finish { keep: false, user_data });
            }
            (A::ReleaseIndication, Received(Spdu::Finish { user_data, .. })) => {
                self.indicate(I::Release { user_data });
            }
            (A::ReleaseCollision, Received(Spdu::Finish { user_data, .. })) => {
                self.variables.vcoll = true;
                self.indicate(I::Release { user_data });
            }
            (A::SendDisconnect, Request(R::ReleaseResponse { user_data })) => {
                self.send(&Spdu::Disconnect { user_data });
            }
            (A::HoldDisconnect, Request(R::ReleaseResponse { user_data })) => {
                self.variables.answered = true;
                self.response = user_data;
            }
            (A::Released, Received(Spdu::Disconnect { user_data })) => {
                self.indicate(I::Released { user_data });
                self.out.push_back(Output::DisconnectTransport);
            }
            (A::ReleasedInCollision, Received(Spdu::Disconnect { user_data })) => {
                self.variables.vdnr = true;
                self.indicate(I::Released { user_data });
            }
            (A::ReleasedThenDisconnect, Received(Spdu::Disconnect { user_data })) => {
                self.variables.vdnr = true;
                let response = std::mem::take(&mut self.response);
                self.send(&Spdu::Disconnect { user_data: response });
                self.indicate(I::Released { user_data });
            }
            (
                A::ConnectTransport
                | A::ConnectIndication
                | A::SendAccept
                | A::RefuseByProvider
                | A::SendRefuse
                | A::Accepted
                | A::Refused
                | A::ConnectFailed
                | A::SendData
                | A::TokensGiven
                | A::SendPleaseTokens
                | A::HoldPleaseTokens
                | A::TokensPlease
                | A::SendActivityStart
                | A::ActivityStarted
                | A::SendActivityResume
                | A::ActivityResumed
                | A::SendInterrupt
                | A::Interrupted
                | A::SendDiscard
                | A::Discarded
                | A::ActivityEnded
                | A::MinorSync
                | A::SendMinorSyncAck
                | A::MinorSyncConfirmed
                | A::CountMinorSyncAck
                | A::SendException
                | A::UserException
                | A::SendFinish
                | A::SendFinishInCollision
                | A::ReleaseIndication
                | A::ReleaseCollision
                | A::Released
                | A::ReleasedInCollision
                | A::ReleasedThenDisconnect
                | A::HoldDisconnect
                | A::SendDisconnect
                | A::SendAbort
                | A::AbortIndication
                | A::TransportLost
                | A::AbortProvider
                | A::KeepReason,
                _,
            ) => self.fail(now, entered.fault()),
        }
    }

    fn disconnect_transport(&mut self, entered: &Entered<Table>, with: &With) {
        if let With::Fault(detail) = with {
            self.detail = Some(detail.clone());
        } else if entered.before == State::Sta01C && entered.event != Event::Suabreq {
            self.detail = Some(not_connected(entered.event, with, entered.clause));
        }
        self.out.push_back(Output::DisconnectTransport);
    }

    fn send_refuse(&mut self, refuse: Refuse) {
        let user_data = if refuse.reason == 2 { refuse.user_data } else { Bytes::new() };
        self.refuse(refuse.reason, user_data);
    }

    fn refuse_by_provider(&mut self, connect: &ConnectSpdu) {
        self.remember(connect);
        let reason = self.refusal;
        self.detail = Some(refusal(reason));
        self.refuse(reason, Bytes::new());
    }

    fn refused(&mut self, reason: u8, user_data: Bytes) {
        self.detail = Some(refusal(reason));
        self.indicate(I::Refused(Refuse { reason, user_data }));
        self.out.push_back(Output::DisconnectTransport);
    }

    fn send_data(&mut self, bytes: Bytes, last: bool) {
        if !self.sending {
            let header = Spdu::Data(Enclosure::WHOLE).encode_tsdu();
            self.out.push_back(Output::Data { bytes: header.into(), last: false });
        }
        self.sending = !last;
        self.out.push_back(Output::Data { bytes, last });
    }

    fn send_give_tokens(&mut self) {
        let tokens = self.variables.available();
        self.variables.owned = 0;
        self.send(&Spdu::GiveTokens(tokens));
    }

    fn send_please_tokens(&mut self, user_data: Bytes) {
        let tokens = self.variables.available();
        self.send(&Spdu::PleaseTokens { tokens, user_data });
    }

    fn control_given(&mut self) {
        self.variables.owned = self.variables.available();
        self.send(&Spdu::GiveControlAck);
        self.indicate(I::ControlGiven);
    }

    fn connect_failed(&mut self, refused: Option<u8>, detail: String) {
        let Some(reason) = refused else {
            return self.indicate(I::ProviderAbort { reason: detail });
        };
        self.detail = Some(detail);
        let reason = match reason {
            1 | 129 => 131,
            2 => 130,
            3 => 129,
            _ => 133,
        };
        self.indicate(I::Refused(Refuse { reason, user_data: Bytes::new() }));
    }

    /// AB, which releases the transport connection.
    fn send_abort(&mut self, reason: u8, reflect: Bytes, user_data: Bytes) {
        let disconnect = disconnect::RELEASED | reason;
        self.send(&Spdu::Abort { disconnect, reflect, user_data });
    }

    fn send_connect(&mut self, now: Instant) {
        let Some(request) = self.request.take() else {
            let detail = "session: internal error: no S-CONNECT.request in STA01B".to_owned();
            return self.fail(now, detail);
        };
        self.proposed = request.requirements;
        self.token_setting = 0;
        self.send(&Spdu::Connect(ConnectSpdu {
            reference: request.reference,
            versions: VERSION_2,
            tsdu_maximum: None,
            token_setting: 0,
            requirements: request.requirements,
            calling: request.calling_selector,
            called: request.called_selector,
            overflow: false,
            user_data: request.user_data,
        }));
    }

    fn remember(&mut self, connect: &ConnectSpdu) {
        self.proposed = connect.requirements;
        self.token_setting = connect.token_setting;
        self.reference = connect.reference.clone();
    }

    fn connect_indication(&mut self, connect: ConnectSpdu) {
        self.remember(&connect);
        self.indicate(I::Connect(Connect {
            calling_selector: connect.calling,
            called_selector: connect.called,
            reference: connect.reference,
            requirements: connect.requirements,
            user_data: connect.user_data,
        }));
    }

    /// AC: the version is 2, there is no segmenting (no TSDU maximum), and tokens left to our choice
    /// go to the initiator.
    fn send_accept(&mut self, accept: Accept) {
        let units = self.proposed & accept.requirements & SUPPORTED;
        let choice = (0..4).any(|token| (self.token_setting >> (2 * token)) & 0b11 == 2);
        self.variables.begin(units, self.token_setting);
        self.send(&Spdu::Accept(AcceptSpdu {
            reference: self.reference.clone(),
            version: Some(VERSION_2),
            tsdu_maximum: None,
            token_setting: choice.then_some(0),
            please: 0,
            requirements: units,
            responding: accept.responding_selector,
            user_data: accept.user_data,
        }));
    }

    fn accepted(&mut self, accept: AcceptSpdu) {
        let units = self.proposed & accept.requirements & SUPPORTED;
        self.variables.begin(units, self.token_setting);
        self.indicate(I::Accepted(Accept {
            responding_selector: accept.responding,
            requirements: units,
            user_data: accept.user_data,
        }));
        // A token item counts as a PLEASE TOKENS after the ACCEPT (X.225 A.2, note 1).
        if accept.please & self.variables.available() != 0 {
            self.indicate(I::TokensPlease { user_data: Bytes::new() });
        }
    }

    fn refuse(&mut self, reason: u8, user_data: Bytes) {
        self.send(&Spdu::Refuse {
            reference: self.reference.clone(),
            requirements: Some(self.proposed & SUPPORTED),
            reason,
            user_data,
        });
    }

    fn abort_indication(&mut self, bits: u8, reflect: &[u8], user_data: Bytes) {
        if bits & disconnect::USER != 0 {
            self.indicate(I::UserAbort { user_data });
        } else {
            let why =
                if bits & disconnect::PROTOCOL_ERROR != 0 { "protocol error" } else { "no reason" };
            let reason = format!(
                "session: aborted by the peer's provider: {why}, reflected {reflect:02X?} (X.225 7.9.3)"
            );
            self.indicate(I::ProviderAbort { reason });
        }
        self.out.push_back(Output::DisconnectTransport);
    }

    fn timed_out(&mut self, entered: &Entered<Table>) {
        self.send_abort(disconnect::NO_REASON, Bytes::new(), Bytes::new());
        let awaited = match entered.before {
            State::Sta02A => "ACCEPT or REFUSE",
            State::Sta03 => "DISCONNECT",
            State::Sta18 => "GIVE TOKENS ACK",
            _ => "an answer",
        };
        let clause = entered.clause;
        let reason = format!("session: {awaited} did not come within the setup timeout ({clause})");
        self.indicate(I::ProviderAbort { reason });
    }

    /// AB with reflected octets, and the indication of it.
    pub(super) fn protocol_error(&mut self, entered: &Entered<Table>, with: With) {
        let Entered { event, before, clause, .. } = entered;
        let (what, reflect) = match with {
            With::Rejected(Rejected { error, reflect }) => (error.to_string(), reflect),
            With::Spdu(_) => {
                let what = match self.unacceptable.filter(|_| *event == Event::Ac) {
                    Some(field) => {
                        format!("ACCEPT: {field} is not what was proposed (X.225 7.4.3)")
                    }
                    None => format!("unexpected {event:?} in {before:?} ({clause})"),
                };
                (what, self.decoder.reflected())
            }
            With::Nothing | With::Request(_) | With::Lost { .. } | With::Fault(_) => {
                (Error::Truncated.to_string(), Bytes::new())
            }
        };
        self.send_abort(disconnect::PROTOCOL_ERROR, reflect, Bytes::new());
        let reason = format!("session: protocol error: {what}");
        self.indicate(I::ProviderAbort { reason });
    }

    /// Sends an SPDU other than DT; an SSDU in progress ends early.
    fn send(&mut self, spdu: &Spdu) {
        if std::mem::take(&mut self.sending) {
            self.out.push_back(Output::Truncate);
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

/// What to log where a transport connection did not come to a session connection.
fn not_connected(event: Event, with: &With, clause: &str) -> String {
    match with {
        With::Rejected(Rejected { error, .. }) => format!("session: protocol error: {error}"),
        With::Nothing => {
            format!("session: CONNECT did not come within the setup timeout ({clause})")
        }
        _ => format!("session: protocol error: {event:?} where a CONNECT is due ({clause})"),
    }
}

/// Whether a refusal is temporary: congestion.
pub(crate) fn is_congestion(reason: u8) -> bool {
    matches!(reason, 1 | 131)
}

/// A refusal in words (X.225 8.3.5.10).
pub(crate) fn refusal(reason: u8) -> String {
    let name = match reason {
        0 => "reason not specified",
        1 => "temporary congestion",
        2 => "rejected by the called SS-user",
        129 => "session selector unknown",
        130 => "SS-user not attached to SSAP",
        131 => "SPM congestion at connect time",
        132 => "proposed protocol versions not supported",
        133 => "rejection by the SPM, reason not specified",
        134 => "rejection by the SPM, implementation restriction stated in the PICS",
        _ => "reserved reason",
    };
    format!("session: refused, reason {reason}: {name} (X.225 8.3.5.10)")
}
