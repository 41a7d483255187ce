//! Activities and minor synchronization points (X.225 7.20, 7.21, 7.29 to 7.36).

use crate::session::machine::{Machine, With};
use crate::session::pdu::Spdu;
use crate::session::service::{Indication, Request};
use crate::table::{Lacking, Performed};

impl Machine {
    pub(super) fn send_activity_start(&mut self, with: With) -> Performed {
        let With::Request(Request::ActivityStart { activity }) = with else { return Err(Lacking) };
        self.variables.activity_begins(None);
        self.send(&Spdu::ActivityStart(activity));
        Ok(())
    }

    pub(super) fn activity_started(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::ActivityStart(activity)) = with else { return Err(Lacking) };
        self.variables.activity_begins(None);
        self.indicate(Indication::ActivityStart { activity });
        Ok(())
    }

    pub(super) fn send_activity_resume(&mut self, with: With) -> Performed {
        let With::Request(Request::ActivityResume(resume)) = with else { return Err(Lacking) };
        self.variables.activity_begins(Some(resume.serial));
        self.send(&Spdu::ActivityResume(resume));
        Ok(())
    }

    pub(super) fn activity_resumed(&mut self, with: With) -> Performed {
        let With::Spdu(Spdu::ActivityResume(resume)) = with else { return Err(Lacking) };
        self.variables.activity_begins(Some(resume.serial));
        self.indicate(Indication::ActivityResume(resume));
        Ok(())
    }

    pub(super) fn send_interrupt(&mut self, with: &With) -> Performed {
        let With::Request(Request::ActivityInterrupt(reason)) = *with else { return Err(Lacking) };
        self.send(&Spdu::ActivityInterrupt(reason));
        Ok(())
    }

    pub(super) fn interrupted(&mut self, with: &With) -> Performed {
        let With::Spdu(Spdu::ActivityInterrupt(reason)) = *with else { return Err(Lacking) };
        self.indicate(Indication::ActivityInterrupt(reason));
        Ok(())
    }

    pub(super) fn send_interrupt_ack(&mut self) {
        self.variables.activity_stops(false);
        self.send(&Spdu::ActivityInterruptAck);
    }

    pub(super) fn interrupt_confirmed(&mut self) {
        self.variables.activity_stops(true);
        self.indicate(Indication::ActivityInterruptConfirm);
    }

    pub(super) fn send_discard(&mut self, with: &With) -> Performed {
        let With::Request(Request::ActivityDiscard(reason)) = *with else { return Err(Lacking) };
        self.send(&Spdu::ActivityDiscard(reason));
        Ok(())
    }

    pub(super) fn discarded(&mut self, with: &With) -> Performed {
        let With::Spdu(Spdu::ActivityDiscard(reason)) = *with else { return Err(Lacking) };
        self.indicate(Indication::ActivityDiscard(reason));
        Ok(())
    }

    pub(super) fn send_discard_ack(&mut self) {
        self.variables.activity_stops(false);
        self.send(&Spdu::ActivityDiscardAck);
    }

    pub(super) fn discard_confirmed(&mut self) {
        self.variables.activity_stops(true);
        self.indicate(Indication::ActivityDiscardConfirm);
    }

    pub(super) fn send_activity_end(&mut self) {
        self.send(&Spdu::ActivityEnd(self.variables.vm));
        self.variables.point_sent();
    }

    pub(super) fn activity_ended(&mut self, with: &With) -> Performed {
        let With::Spdu(Spdu::ActivityEnd(serial)) = *with else { return Err(Lacking) };
        self.variables.end_received();
        self.indicate(Indication::ActivityEnd { serial });
        Ok(())
    }

    pub(super) fn send_activity_end_ack(&mut self) {
        self.send(&Spdu::ActivityEndAck(self.variables.vm.saturating_sub(1)));
        self.variables.activity_ends();
    }

    pub(super) fn activity_end_confirmed(&mut self) {
        self.variables.activity_ends();
        self.indicate(Indication::ActivityEndConfirm);
    }

    pub(super) fn send_minor_sync(&mut self) {
        self.send(&Spdu::MinorSync { serial: self.variables.vm, explicit: true });
        self.variables.point_sent();
    }

    pub(super) fn minor_sync(&mut self, with: &With) -> Performed {
        let With::Spdu(Spdu::MinorSync { serial, .. }) = *with else { return Err(Lacking) };
        self.variables.minor_received();
        self.indicate(Indication::MinorSync { serial });
        Ok(())
    }

    pub(super) fn send_minor_sync_ack(&mut self, with: &With) -> Performed {
        let With::Request(Request::MinorSyncResponse { serial }) = *with else {
            return Err(Lacking);
        };
        self.variables.va = serial + 1;
        self.send(&Spdu::MinorSyncAck(serial));
        Ok(())
    }

    pub(super) fn minor_sync_confirmed(&mut self, with: &With) -> Performed {
        let With::Spdu(Spdu::MinorSyncAck(serial)) = *with else { return Err(Lacking) };
        self.variables.va = serial + 1;
        self.indicate(Indication::MinorSyncConfirm { serial });
        Ok(())
    }
}
