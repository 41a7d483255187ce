//! Connection establishment (X.225 7.1 to 7.5).

use crate::session::machine::{Machine, Output, SUPPORTED, With};
use crate::session::pdu::{AcceptSpdu, ConnectSpdu, Spdu, VERSION_1, VERSION_2};
use crate::session::segments::Segments;
use crate::session::service::{Accept, Connect, Indication, Refuse, Request};
use crate::session::table::{Event, State, Table};
use crate::session::tsdu::Rejected;
use crate::table::{Entered, Lacking, Performed};
use base::time::Instant;
use bytes::Bytes;

impl Machine {
    pub(super) fn connect_transport(&mut self, with: With) -> Performed {
        let With::Request(Request::Connect(connect)) = with else { return Err(Lacking) };
        self.request = Some(connect);
        self.out.push_back(Output::ConnectTransport);
        Ok(())
    }

    pub(super) fn send_connect(&mut self, now: Instant) {
        let Some(request) = self.request.take() else {
            let detail = "session: internal error: no S-CONNECT.request in STA01B".to_owned();
            return self.fail(now, detail);
        };
        self.proposed = request.requirements;
        self.token_setting = 0;
        self.send(&Spdu::Connect(ConnectSpdu {
            reference: request.reference,
            versions: self.config.versions(),
            tsdu_maximum: None,
            token_setting: 0,
            requirements: request.requirements,
            calling: request.calling_selector,
            called: request.called_selector,
            overflow: false,
            user_data: request.user_data,
        }));
    }

    pub(super) fn connect_indication(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::Connect(connect)) = with else { return Err(Lacking) };
        self.remember(&connect);
        self.indicate(Indication::Connect(Connect {
            calling_selector: connect.calling,
            called_selector: connect.called,
            reference: connect.reference,
            requirements: connect.requirements,
            user_data: connect.user_data,
        }));
        Ok(())
    }

    /// AC: tokens left to our choice go to the initiator. There is no segmenting (no TSDU maximum), but with a peer
    /// that knows version 1 too: one of that age may have no room for more.
    pub(super) fn send_accept(&mut self, with: With) -> Performed {
        let With::Request(Request::Accept(accept)) = with else { return Err(Lacking) };
        let units = self.proposed & accept.requirements & SUPPORTED;
        let choice = (0..4).any(|token| (self.token_setting >> (2 * token)) & 0b11 == 2);
        self.variables.begin(units, self.token_setting);
        self.send(&Spdu::Accept(AcceptSpdu {
            reference: self.reference.clone(),
            version: Some(self.version),
            tsdu_maximum: self.tsdu_maximum,
            token_setting: choice.then_some(0),
            please: 0,
            requirements: units,
            responding: accept.responding_selector,
            user_data: accept.user_data,
        }));
        Ok(())
    }

    pub(super) fn accepted(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::Accept(accept)) = with else { return Err(Lacking) };
        let units = self.proposed & accept.requirements & SUPPORTED;
        self.variables.begin(units, self.token_setting);
        self.version = match accept.version {
            Some(version) if version & VERSION_2 != 0 => VERSION_2,
            None if !self.config.version_1 => VERSION_2,
            _ => VERSION_1,
        };
        // In normal mode none is proposed, and none is taken.
        let sizes = accept.tsdu_maximum.filter(|_| self.config.version_1);
        self.segments = sizes.and_then(|(from_us, _)| Segments::new(from_us));
        self.indicate(Indication::Accepted(Accept {
            responding_selector: accept.responding,
            requirements: units,
            user_data: accept.user_data,
        }));
        // A token item counts as a PLEASE TOKENS after the ACCEPT (X.225 A.2, note 1).
        if accept.please & self.variables.available() != 0 {
            self.indicate(Indication::TokensPlease { user_data: Bytes::new() });
        }
        Ok(())
    }

    pub(super) fn send_refuse(&mut self, with: With) -> Performed {
        let With::Request(Request::Refuse(refuse)) = with else { return Err(Lacking) };
        let user_data = if refuse.reason == 2 { refuse.user_data } else { Bytes::new() };
        self.refuse(refuse.reason, user_data);
        Ok(())
    }

    pub(super) fn refuse_by_provider(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::Connect(connect)) = with else { return Err(Lacking) };
        self.remember(&connect);
        let reason = self.refusal;
        self.detail = Some(refusal(reason));
        self.refuse(reason, Bytes::new());
        Ok(())
    }

    pub(super) fn refused(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::Refuse { reason, user_data, .. }) = with else { return Err(Lacking) };
        self.detail = Some(refusal(reason));
        self.indicate(Indication::Refused(Refuse { reason, user_data }));
        self.out.push_back(Output::DisconnectTransport);
        Ok(())
    }

    pub(super) fn connect_failed(&mut self, with: With) -> Performed {
        let With::Lost { refused, detail } = with else { return Err(Lacking) };
        let Some(reason) = refused else {
            self.indicate(Indication::ProviderAbort { reason: detail });
            return Ok(());
        };
        self.detail = Some(detail);
        let reason = match reason {
            1 | 129 => 131,
            2 => 130,
            3 => 129,
            _ => 133,
        };
        self.indicate(Indication::Refused(Refuse { reason, user_data: Bytes::new() }));
        Ok(())
    }

    pub(super) fn disconnect_transport(&mut self, entered: &Entered<Table>, with: &With) {
        if let With::Fault(detail) = with {
            self.detail = Some(detail.clone());
        } else if entered.before == State::Sta01C && entered.event != Event::Suabreq {
            self.detail = Some(not_connected(entered.event, with, entered.clause));
        }
        self.out.push_back(Output::DisconnectTransport);
    }

    pub(super) fn keep_reason(&mut self, with: With) -> Performed {
        let With::Lost { detail, .. } = with else { return Err(Lacking) };
        self.detail.get_or_insert(detail);
        Ok(())
    }

    fn remember(&mut self, connect: &ConnectSpdu) {
        self.proposed = connect.requirements;
        self.token_setting = connect.token_setting;
        self.version = if connect.versions & VERSION_2 != 0 {
            VERSION_2
        } else {
            connect.versions & VERSION_1
        };
        let is_old = connect.versions & self.config.versions() & VERSION_1 != 0;
        self.tsdu_maximum = connect.tsdu_maximum.filter(|_| is_old);
        self.segments = self.tsdu_maximum.and_then(|(_, to_peer)| Segments::new(to_peer));
        self.reference = connect.reference.clone();
    }

    fn refuse(&mut self, reason: u8, user_data: Bytes) {
        self.send(&Spdu::Refuse {
            reference: self.reference.clone(),
            requirements: Some(self.proposed & SUPPORTED),
            reason,
            user_data,
        });
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
