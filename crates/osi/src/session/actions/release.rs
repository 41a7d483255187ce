//! Orderly release (X.225 7.6, 7.7).

use crate::session::machine::{Machine, Output, With};
use crate::session::pdu::Spdu;
use crate::session::service::{Indication, Request};
use crate::table::{Lacking, Performed};

impl Machine {
    pub(super) fn send_finish(&mut self, with: With) -> Performed {
        let With::Request(Request::Release { user_data }) = with else { return Err(Lacking) };
        self.send(&Spdu::Finish { keep: false, user_data });
        Ok(())
    }

    pub(super) fn send_finish_in_collision(&mut self, with: With) -> Performed {
        let With::Request(Request::Release { user_data }) = with else { return Err(Lacking) };
        self.variables.vcoll = true;
        self.send(&Spdu::Finish { keep: false, user_data });
        Ok(())
    }

    pub(super) fn release_indication(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::Finish { user_data, .. }) = with else { return Err(Lacking) };
        self.indicate(Indication::Release { user_data });
        Ok(())
    }

    pub(super) fn release_collision(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::Finish { user_data, .. }) = with else { return Err(Lacking) };
        self.variables.vcoll = true;
        self.indicate(Indication::Release { user_data });
        Ok(())
    }

    pub(super) fn send_disconnect(&mut self, with: With) -> Performed {
        let With::Request(Request::ReleaseResponse { user_data }) = with else {
            return Err(Lacking);
        };
        self.send(&Spdu::Disconnect { user_data });
        Ok(())
    }

    pub(super) fn hold_disconnect(&mut self, with: With) -> Performed {
        let With::Request(Request::ReleaseResponse { user_data }) = with else {
            return Err(Lacking);
        };
        self.variables.answered = true;
        self.response = user_data;
        Ok(())
    }

    pub(super) fn released(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::Disconnect { user_data }) = with else { return Err(Lacking) };
        self.indicate(Indication::Released { user_data });
        self.out.push_back(Output::DisconnectTransport);
        Ok(())
    }

    pub(super) fn released_in_collision(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::Disconnect { user_data }) = with else { return Err(Lacking) };
        self.variables.vdnr = true;
        self.indicate(Indication::Released { user_data });
        Ok(())
    }

    pub(super) fn released_then_disconnect(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::Disconnect { user_data }) = with else { return Err(Lacking) };
        self.variables.vdnr = true;
        let response = std::mem::take(&mut self.response);
        self.send(&Spdu::Disconnect { user_data: response });
        self.indicate(Indication::Released { user_data });
        Ok(())
    }
}
