//! Abort: by a user, by a provider, by the loss of the transport connection (X.225 7.9).

use crate::session::machine::{Machine, Output, With};
use crate::session::pdu::{Error, MAX_ABORT_DATA_1, Spdu, VERSION_1, disconnect};
use crate::session::service::{Indication, Request};
use crate::session::table::{Event, State, Table};
use crate::session::tsdu::Rejected;
use crate::table::{Entered, Lacking, Performed};
use bytes::Bytes;

impl Machine {
    pub(super) fn send_user_abort(&mut self, with: With) -> Performed {
        let With::Request(Request::Abort { user_data }) = with else { return Err(Lacking) };
        let fits = self.version != VERSION_1 || user_data.len() <= MAX_ABORT_DATA_1;
        let user_data = if fits { user_data } else { Bytes::new() };
        self.send_abort(disconnect::USER, Bytes::new(), user_data);
        Ok(())
    }

    pub(super) fn abort_indication(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::Abort { disconnect: bits, reflect, user_data }) = with else {
            return Err(Lacking);
        };
        if bits & disconnect::USER != 0 {
            self.indicate(Indication::UserAbort { user_data });
        } else {
            let why =
                if bits & disconnect::PROTOCOL_ERROR != 0 { "protocol error" } else { "no reason" };
            let octets = &*reflect;
            let reason = format!(
                "session: aborted by the peer's provider: {why}, reflected {octets:02X?} (X.225 7.9.3)"
            );
            self.indicate(Indication::ProviderAbort { reason });
        }
        self.out.push_back(Output::DisconnectTransport);
        Ok(())
    }

    pub(super) fn transport_lost_indication(&mut self, with: With) -> Performed {
        let With::Lost { detail, .. } = with else { return Err(Lacking) };
        self.indicate(Indication::ProviderAbort { reason: detail });
        Ok(())
    }

    pub(super) fn abort_provider(&mut self, with: With) -> Performed {
        let With::Fault(reason) = with else { return Err(Lacking) };
        self.send_abort(disconnect::NO_REASON, Bytes::new(), Bytes::new());
        self.indicate(Indication::ProviderAbort { reason });
        Ok(())
    }

    pub(super) fn timed_out(&mut self, entered: &Entered<Table>) {
        self.send_abort(disconnect::NO_REASON, Bytes::new(), Bytes::new());
        let awaited = match entered.before {
            State::Sta02A => "ACCEPT or REFUSE",
            State::Sta03 => "DISCONNECT",
            State::Sta18 => "GIVE TOKENS ACK",
            _ => "an answer",
        };
        let clause = entered.clause;
        let reason = format!("session: {awaited} did not come within the setup timeout ({clause})");
        self.indicate(Indication::ProviderAbort { reason });
    }

    /// AB with reflected octets, and the indication of it.
    pub(in crate::session) fn protocol_error(&mut self, entered: &Entered<Table>, with: With) {
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
        self.indicate(Indication::ProviderAbort { reason });
    }

    /// AB, which releases the transport connection.
    fn send_abort(&mut self, reason: u8, reflect: Bytes, user_data: Bytes) {
        let disconnect = disconnect::RELEASED | reason;
        self.send(&Spdu::Abort { disconnect, reflect, user_data });
    }
}
