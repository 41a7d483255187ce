//! Data transfer and tokens (X.225 7.11, 7.16 to 7.19).

use crate::session::machine::{Machine, Output, Receiving, With};
use crate::session::pdu::{Enclosure, Spdu};
use crate::session::service::{Indication, Request};
use crate::table::{Lacking, Performed};
use bytes::Bytes;

impl Machine {
    pub(super) fn send_data(&mut self, with: With) -> Performed {
        let With::Request(Request::Data { bytes, last }) = with else { return Err(Lacking) };
        if let Some(segments) = &mut self.segments {
            segments.push(&bytes, last, |header, octets| {
                self.out.push_back(Output::Data { bytes: header, last: octets.is_empty() });
                if !octets.is_empty() {
                    self.out.push_back(Output::Data { bytes: octets, last: true });
                }
            });
            self.sending = !last;
            return Ok(());
        }
        if !self.sending {
            let header = Spdu::Data(Enclosure::WHOLE).encode_tsdu();
            self.out.push_back(Output::Data { bytes: header.into(), last: false });
        }
        self.sending = !last;
        self.out.push_back(Output::Data { bytes, last });
        Ok(())
    }

    /// The user information follows piece by piece.
    pub(super) fn data_indication(&mut self) {
        self.receiving = Receiving::Deliver;
    }

    pub(super) fn send_give_tokens(&mut self) {
        let tokens = self.variables.available();
        self.variables.owned = 0;
        self.send(&Spdu::GiveTokens(tokens));
    }

    pub(super) fn tokens_given(&mut self, with: &With) -> Performed {
        let With::Spdu(Spdu::GiveTokens(tokens)) = *with else { return Err(Lacking) };
        self.variables.owned |= tokens;
        self.indicate(Indication::TokensGiven { all: self.owns_tokens() });
        Ok(())
    }

    pub(super) fn send_please_tokens(&mut self, with: With) -> Performed {
        let With::Request(Request::PleaseTokens { user_data }) = with else { return Err(Lacking) };
        self.please_tokens(user_data);
        Ok(())
    }

    pub(super) fn hold_please_tokens(&mut self, with: With) -> Performed {
        let With::Request(Request::PleaseTokens { user_data }) = with else { return Err(Lacking) };
        self.please = Some(user_data);
        Ok(())
    }

    pub(super) fn tokens_please(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::PleaseTokens { user_data, .. }) = with else { return Err(Lacking) };
        self.indicate(Indication::TokensPlease { user_data });
        Ok(())
    }

    pub(super) fn send_give_control(&mut self) {
        self.variables.owned = 0;
        self.send(&Spdu::GiveControl);
    }

    pub(super) fn control_given(&mut self) {
        self.variables.owned = self.variables.available();
        self.send(&Spdu::GiveControlAck);
        self.indicate(Indication::ControlGiven);
    }

    pub(super) fn control_taken(&mut self) {
        if let Some(user_data) = self.please.take() {
            self.please_tokens(user_data);
        }
    }

    fn please_tokens(&mut self, user_data: Bytes) {
        let tokens = self.variables.available();
        self.send(&Spdu::PleaseTokens { tokens, user_data });
    }
}
