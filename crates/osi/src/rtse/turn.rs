//! The turn (X.228 7.4, 7.5).

use super::machine::{Rtse, With};
use super::pdu;
use super::table::Event;
use crate::api::{AbortReason, Dialogue, Indication, Request};
use crate::presentation::service::{self as presentation, Value};
use crate::shown;
use crate::stack::Below;
use crate::table::{Lacking, Performed};

impl Rtse {
    /// RT-TURN-PLEASE.request.
    pub(super) fn send_rttp(&mut self, below: &mut Below, with: &With) -> Performed {
        let With::Request(Request::TurnPlease(priority)) = *with else { return Err(Lacking) };
        if self.dialogue == Dialogue::TwoWayAlternate {
            let octets = pdu::encode_integer(priority);
            let value = Value { context: self.context(below), octets };
            below.present(presentation::Request::PleaseTokens(value));
        }
        Ok(())
    }

    /// P-TOKEN-PLEASE.indication, with the RTTP or without.
    pub(super) fn turn_asked(&mut self, below: &mut Below, values: &[Value]) {
        let value = values.iter().find(|v| v.context == self.context(below));
        let priority = match value.map(|v| pdu::decode_rttp(&v.octets)) {
            // Without an RTTP the priority is not known: the lowest that is usual.
            None => 0,
            Some(Ok(priority)) => priority,
            Some(Err(e)) => {
                let octets = value.map(|v| shown::octets(&v.octets)).unwrap_or_default();
                let what = format!("{e}: {octets}");
                return self.invalid(below, AbortReason::InvalidParameter, what);
            }
        };
        self.on(below, Event::Rttp, With::Priority(priority));
    }

    /// RT-TURN-PLEASE.indication.
    pub(super) fn turn_please_indication(&mut self, with: &With) -> Performed {
        let With::Priority(priority) = *with else { return Err(Lacking) };
        self.up.push_back(Indication::TurnPlease(priority));
        Ok(())
    }
}
