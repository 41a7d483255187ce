//! Exceptions, and what is only counted after one (X.225 7.27, 7.28).

use crate::session::machine::{Machine, With};
use crate::session::pdu::Spdu;
use crate::session::service::{Indication, Request};
use crate::table::{Lacking, Performed};

impl Machine {
    pub(super) fn send_exception(&mut self, with: &With) -> Performed {
        let With::Request(Request::ExceptionReport(reason)) = *with else { return Err(Lacking) };
        self.send(&Spdu::ExceptionData(reason));
        Ok(())
    }

    pub(super) fn user_exception(&mut self, with: &With) -> Performed {
        let With::Spdu(Spdu::ExceptionData(reason)) = *with else { return Err(Lacking) };
        self.indicate(Indication::ExceptionReport(reason));
        Ok(())
    }

    pub(super) fn count_minor_sync_ack(&mut self, with: &With) -> Performed {
        let With::Spdu(Spdu::MinorSyncAck(serial)) = *with else { return Err(Lacking) };
        self.variables.va = serial + 1;
        Ok(())
    }
}
