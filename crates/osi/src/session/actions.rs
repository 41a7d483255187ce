//! What the cells of the state table do: SPDUs sent, primitives indicated, variables set.

use super::machine::{Machine, Output, SUPPORTED, With, primitive};
use super::pdu::{AcceptSpdu, ConnectSpdu, Enclosure, Error, Spdu, VERSION_2, disconnect};
use super::service::{Accept, Connect, Indication, Refuse, Request};
use super::table::{Action, Arm, Event, State};
use super::tsdu::Rejected;
use bytes::Bytes;

impl Machine {
    /// Performs the action of `arm`. `before` is the state in which `event` came.
    pub(super) fn perform(&mut self, arm: &Arm, before: State, event: Event, with: With) {
        match (arm.action, with) {
            (Action::Discard, With::Lost { detail, .. }) => {
                // There is nobody to tell yet: kept for the log.
                self.detail.get_or_insert(detail);
            }
            (Action::Discard | Action::Misuse, _) => {}
            (Action::DisconnectTransport, with) => {
                if before == State::Sta01C && event != Event::Suabreq {
                    self.detail = Some(not_connected(event, &with, arm.clause));
                }
                self.out.push_back(Output::DisconnectTransport);
            }
            (Action::TimedOut, _) => self.timed_out(before, arm.clause),
            (Action::ProtocolError, with) => self.protocol_error(arm, before, event, with),
            (Action::ControlTaken, _) => {
                if let Some(user_data) = self.please.take() {
                    let tokens = self.variables.available();
                    self.send(&Spdu::PleaseTokens { tokens, user_data });
                }
            }
            (Action::SendConnect, _) => self.send_connect(),
            (_, With::Request(request)) => self.requested(arm.action, request),
            (_, With::Spdu(spdu)) => self.received(arm.action, spdu),
            (action, With::Lost { refused, detail }) => self.lost(action, refused, detail),
            (action, With::Nothing | With::Rejected(_)) => {
                debug_assert!(false, "{event:?} came without what {action:?} needs");
            }
        }
    }

    fn requested(&mut self, action: Action, request: Request) {
        match (action, request) {
            (Action::ConnectTransport, Request::Connect(connect)) => {
                self.request = Some(connect);
                self.out.push_back(Output::ConnectTransport);
            }
            (Action::SendAccept, Request::Accept(accept)) => self.send_accept(accept),
            (Action::SendRefuse, Request::Refuse(refuse)) => {
                let user_data = if refuse.reason == 2 { refuse.user_data } else { Bytes::new() };
                self.refuse(refuse.reason, user_data);
            }
            (Action::SendData, Request::Data { bytes, last }) => {
                if !self.sending {
                    let header = Spdu::Data(Enclosure::WHOLE).encode_tsdu();
                    self.out.push_back(Output::Data { bytes: header.into(), last: false });
                }
                self.sending = !last;
                self.out.push_back(Output::Data { bytes, last });
            }
            (Action::SendGiveTokens, _) => {
                let tokens = self.variables.available();
                self.variables.owned = 0;
                self.send(&Spdu::GiveTokens(tokens));
            }
            (Action::SendGiveControl, _) => {
                self.variables.owned = 0;
                self.send(&Spdu::GiveControl);
            }
            (Action::SendPleaseTokens, Request::PleaseTokens { user_data }) => {
                let tokens = self.variables.available();
                self.send(&Spdu::PleaseTokens { tokens, user_data });
            }
            (Action::HoldPleaseTokens, Request::PleaseTokens { user_data }) => {
                self.please = Some(user_data);
            }
            (Action::SendFinish, Request::Release { user_data }) => {
                self.send(&Spdu::Finish { keep: false, user_data });
            }
            (Action::SendFinishInCollision, Request::Release { user_data }) => {
                self.variables.vcoll = true;
                self.send(&Spdu::Finish { keep: false, user_data });
            }
            (Action::SendDisconnect, Request::ReleaseResponse { user_data }) => {
                self.send(&Spdu::Disconnect { user_data });
            }
            (Action::HoldDisconnect, Request::ReleaseResponse { user_data }) => {
                self.variables.answered = true;
                self.response = user_data;
            }
            (Action::SendAbort, Request::Abort { user_data }) => self.send(&Spdu::Abort {
                disconnect: disconnect::RELEASED | disconnect::USER,
                reflect: Bytes::new(),
                user_data,
            }),
            (action, request) => self.requested_in_activity(action, request),
        }
    }

    fn requested_in_activity(&mut self, action: Action, request: Request) {
        match (action, request) {
            (Action::SendActivityStart, Request::ActivityStart { activity }) => {
                self.variables.activity_begins(None);
                self.send(&Spdu::ActivityStart(activity));
            }
            (Action::SendActivityResume, Request::ActivityResume(resume)) => {
                self.variables.activity_begins(Some(resume.serial));
                self.send(&Spdu::ActivityResume(resume));
            }
            (Action::SendInterrupt, Request::ActivityInterrupt(reason)) => {
                self.send(&Spdu::ActivityInterrupt(reason));
            }
            (Action::SendDiscard, Request::ActivityDiscard(reason)) => {
                self.send(&Spdu::ActivityDiscard(reason));
            }
            (Action::SendInterruptAck, _) => {
                self.variables.activity_stops(false);
                self.send(&Spdu::ActivityInterruptAck);
            }
            (Action::SendDiscardAck, _) => {
                self.variables.activity_stops(false);
                self.send(&Spdu::ActivityDiscardAck);
            }
            (Action::SendMinorSync, _) => {
                self.send(&Spdu::MinorSync { serial: self.variables.vm, explicit: true });
                self.variables.point_sent();
            }
            (Action::SendMinorSyncAck, Request::MinorSyncResponse { serial }) => {
                self.variables.va = serial + 1;
                self.send(&Spdu::MinorSyncAck(serial));
            }
            (Action::SendActivityEnd, _) => {
                self.send(&Spdu::ActivityEnd(self.variables.vm));
                self.variables.point_sent();
            }
            (Action::SendActivityEndAck, _) => {
                self.send(&Spdu::ActivityEndAck(self.variables.vm.saturating_sub(1)));
                self.variables.activity_ends();
            }
            (Action::SendException, Request::ExceptionReport(reason)) => {
                self.send(&Spdu::ExceptionData(reason));
            }
            (action, request) => debug_assert!(false, "{action:?} does not fit {request:?}"),
        }
    }

    fn received(&mut self, action: Action, spdu: Spdu) {
        match (action, spdu) {
            (Action::ConnectIndication, Spdu::Connect(connect)) => {
                self.connect_indication(connect);
            }
            (Action::RefuseByProvider, Spdu::Connect(connect)) => {
                self.remember(&connect);
                let reason = self.refusal;
                self.detail = Some(refusal(reason));
                self.refuse(reason, Bytes::new());
            }
            (Action::Accepted, Spdu::Accept(accept)) => self.accepted(accept),
            (Action::Refused, Spdu::Refuse { reason, user_data, .. }) => {
                self.detail = Some(refusal(reason));
                self.indicate(Indication::Refused(Refuse { reason, user_data }));
                self.out.push_back(Output::DisconnectTransport);
            }
            // The user information follows piece by piece.
            (Action::DataIndication, Spdu::Data(_)) => {}
            (Action::TokensGiven, Spdu::GiveTokens(tokens)) => {
                self.variables.owned |= tokens;
                self.indicate(Indication::TokensGiven { all: self.owns_tokens() });
            }
            (Action::TokensPlease, Spdu::PleaseTokens { user_data, .. }) => {
                self.indicate(Indication::TokensPlease { user_data });
            }
            (Action::ControlGiven, _) => {
                self.variables.owned = self.variables.available();
                self.send(&Spdu::GiveControlAck);
                self.indicate(Indication::ControlGiven);
            }
            (Action::ReleaseIndication, Spdu::Finish { user_data, .. }) => {
                self.indicate(Indication::Release { user_data });
            }
            (Action::ReleaseCollision, Spdu::Finish { user_data, .. }) => {
                self.variables.vcoll = true;
                self.indicate(Indication::Release { user_data });
            }
            (Action::Released, Spdu::Disconnect { user_data }) => {
                self.indicate(Indication::Released { user_data });
                self.out.push_back(Output::DisconnectTransport);
            }
            (Action::ReleasedInCollision, Spdu::Disconnect { user_data }) => {
                self.variables.vdnr = true;
                self.indicate(Indication::Released { user_data });
            }
            (Action::ReleasedThenDisconnect, Spdu::Disconnect { user_data }) => {
                self.variables.vdnr = true;
                let response = std::mem::take(&mut self.response);
                self.send(&Spdu::Disconnect { user_data: response });
                self.indicate(Indication::Released { user_data });
            }
            (Action::AbortIndication, Spdu::Abort { disconnect: bits, reflect, user_data }) => {
                self.abort_indication(bits, &reflect, user_data);
            }
            (action, spdu) => self.received_in_activity(action, spdu),
        }
    }

    fn received_in_activity(&mut self, action: Action, spdu: Spdu) {
        match (action, spdu) {
            (Action::ActivityStarted, Spdu::ActivityStart(activity)) => {
                self.variables.activity_begins(None);
                self.indicate(Indication::ActivityStart { activity });
            }
            (Action::ActivityResumed, Spdu::ActivityResume(resume)) => {
                self.variables.activity_begins(Some(resume.serial));
                self.indicate(Indication::ActivityResume(resume));
            }
            (Action::Interrupted, Spdu::ActivityInterrupt(reason)) => {
                self.indicate(Indication::ActivityInterrupt(reason));
            }
            (Action::Discarded, Spdu::ActivityDiscard(reason)) => {
                self.indicate(Indication::ActivityDiscard(reason));
            }
            (Action::InterruptConfirmed, _) => {
                self.variables.activity_stops(true);
                self.indicate(Indication::ActivityInterruptConfirm);
            }
            (Action::DiscardConfirmed, _) => {
                self.variables.activity_stops(true);
                self.indicate(Indication::ActivityDiscardConfirm);
            }
            (Action::MinorSync, Spdu::MinorSync { serial, .. }) => {
                self.variables.minor_received();
                self.indicate(Indication::MinorSync { serial });
            }
            (Action::MinorSyncConfirmed, Spdu::MinorSyncAck(serial)) => {
                self.variables.va = serial + 1;
                self.indicate(Indication::MinorSyncConfirm { serial });
            }
            (Action::CountMinorSync, _) => self.variables.minor_received(),
            (Action::CountActivityEnd, _) => self.variables.end_received(),
            (Action::CountMinorSyncAck, Spdu::MinorSyncAck(serial)) => {
                self.variables.va = serial + 1;
            }
            (Action::ActivityEnded, Spdu::ActivityEnd(serial)) => {
                self.variables.end_received();
                self.indicate(Indication::ActivityEnd { serial });
            }
            (Action::ActivityEndConfirmed, _) => {
                self.variables.activity_ends();
                self.indicate(Indication::ActivityEndConfirm);
            }
            (Action::UserException, Spdu::ExceptionData(reason)) => {
                self.indicate(Indication::ExceptionReport(reason));
            }
            (Action::ProviderException, _) => self.indicate(Indication::ProviderException),
            (action, spdu) => debug_assert!(false, "{action:?} does not fit {spdu:?}"),
        }
    }

    fn lost(&mut self, action: Action, refused: Option<u8>, detail: String) {
        match (action, refused) {
            (Action::ConnectFailed, Some(reason)) => {
                self.detail = Some(detail);
                let reason = match reason {
                    1 | 129 => 131,
                    2 => 130,
                    3 => 129,
                    _ => 133,
                };
                self.indicate(Indication::Refused(Refuse { reason, user_data: Bytes::new() }));
            }
            (Action::ConnectFailed | Action::TransportLost, _) => {
                self.indicate(Indication::ProviderAbort { reason: detail });
            }
            (action, _) => debug_assert!(false, "{action:?} does not fit a lost transport"),
        }
    }

    fn send_connect(&mut self) {
        let Some(request) = self.request.take() else {
            debug_assert!(false, "no S-CONNECT.request in STA01B");
            return;
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
        self.indicate(Indication::Connect(Connect {
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
        self.indicate(Indication::Accepted(Accept {
            responding_selector: accept.responding,
            requirements: units,
            user_data: accept.user_data,
        }));
        // A token item counts as a PLEASE TOKENS after the ACCEPT (X.225 A.2, note 1).
        if accept.please & self.variables.available() != 0 {
            self.indicate(Indication::TokensPlease { user_data: Bytes::new() });
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
            self.indicate(Indication::UserAbort { user_data });
        } else {
            let why =
                if bits & disconnect::PROTOCOL_ERROR != 0 { "protocol error" } else { "no reason" };
            let reason = format!(
                "session: aborted by the peer's provider: {why}, reflected {reflect:02X?} (X.225 7.9.3)"
            );
            self.indicate(Indication::ProviderAbort { reason });
        }
        self.out.push_back(Output::DisconnectTransport);
    }

    fn timed_out(&mut self, before: State, clause: &'static str) {
        self.send(&Spdu::Abort {
            disconnect: disconnect::RELEASED | disconnect::NO_REASON,
            reflect: Bytes::new(),
            user_data: Bytes::new(),
        });
        let awaited = match before {
            State::Sta02A => "ACCEPT or REFUSE",
            State::Sta03 => "DISCONNECT",
            State::Sta18 => "GIVE TOKENS ACK",
            _ => "an answer",
        };
        let reason = format!("session: {awaited} did not come within the setup timeout ({clause})");
        self.indicate(Indication::ProviderAbort { reason });
    }

    fn protocol_error(&mut self, arm: &Arm, before: State, event: Event, with: With) {
        let (what, reflect) = match with {
            With::Rejected(Rejected { error, reflect }) => (error.to_string(), reflect),
            With::Spdu(_) => {
                let what = match self.unacceptable.filter(|_| event == Event::Ac) {
                    Some(field) => {
                        format!("ACCEPT: {field} is not what was proposed (X.225 7.4.3)")
                    }
                    None => format!("unexpected {event:?} in {before:?} ({})", arm.clause),
                };
                (what, self.decoder.reflected())
            }
            With::Nothing | With::Request(_) | With::Lost { .. } => {
                (Error::Truncated.to_string(), Bytes::new())
            }
        };
        self.send(&Spdu::Abort {
            disconnect: disconnect::RELEASED | disconnect::PROTOCOL_ERROR,
            reflect,
            user_data: Bytes::new(),
        });
        self.indicate(Indication::ProviderAbort {
            reason: format!("session: protocol error: {what}"),
        });
    }

    /// Sends an SPDU other than DT; an SSDU under way ends before its time.
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

/// Whether a refusal says that it may be different soon.
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
