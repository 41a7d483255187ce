//! The variables of a session connection (X.225 A.5.4) and the predicates over them.

use super::pdu::token;
use super::predicates::When;
use super::service::requirements;

/// What an event brings that predicates ask for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    /// Serial number of the SPDU or primitive.
    pub(super) serial: u32,
    /// Tokens given or asked for.
    pub(super) tokens: u8,
    /// Outcome of the checks of a CN or AC.
    pub(super) acceptable: bool,
}

/// Variables, with the names of X.225 A.5.4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Variables {
    /// Whether we accepted the transport connection: Vtca.
    pub(super) vtca: bool,
    /// FU(f): functional units in force, see [`requirements`].
    pub(super) fu: u16,
    /// Tokens that are ours, see [`token`].
    pub(super) owned: u8,
    /// Inside an activity.
    pub(super) vact: bool,
    /// The other end confirms minor synchronization points: false after we sent one.
    pub(super) vsc: bool,
    /// Lowest serial number not confirmed.
    pub(super) va: u32,
    /// Next serial number.
    pub(super) vm: u32,
    /// Lowest serial number to which resynchronization may go back.
    pub(super) vr: u32,
    /// Collision of releases.
    pub(super) vcoll: bool,
    /// The DISCONNECT has come in a collision of releases.
    pub(super) vdnr: bool,
    /// Our user has answered in a collision of releases.
    pub(super) answered: bool,
}

impl Variables {
    /// Whether the functional unit is in force.
    pub(super) fn unit(&self, unit: u16) -> bool {
        self.fu & unit != 0
    }

    /// AV(t) for all tokens: those the functional units make available.
    pub(super) fn available(&self) -> u8 {
        let bit = |unit, token| if self.unit(unit) { token } else { 0 };
        bit(requirements::HALF_DUPLEX, token::DATA)
            | bit(requirements::MINOR_SYNC, token::MINOR)
            | bit(requirements::ACTIVITY, token::MAJOR)
    }

    /// I(t) for each token of the set: not available, or ours.
    fn i(&self, tokens: u8) -> bool {
        tokens & self.available() & !self.owned == 0
    }

    /// A(t) for each token of the set: not available, or the peer's.
    fn a(&self, tokens: u8) -> bool {
        tokens & self.available() & self.owned == 0
    }

    /// II(t) for each token of the set: available and ours.
    fn ii(&self, tokens: u8) -> bool {
        tokens & !(self.available() & self.owned) == 0
    }

    /// AA(t) for each token of the set: available and the peer's.
    fn aa(&self, tokens: u8) -> bool {
        tokens & !(self.available() & !self.owned) == 0
    }

    /// Whether the predicate holds.
    pub(super) fn holds(&self, when: When, facts: &Facts) -> bool {
        const ALL: u8 = token::DATA | token::MINOR | token::MAJOR;
        let (dk, mi, ma) = (token::DATA, token::MINOR, token::MAJOR);
        let duplex = self.unit(requirements::DUPLEX);
        let act = self.unit(requirements::ACTIVITY);
        let exceptions = self.unit(requirements::EXCEPTIONS);
        let working = !act || self.vact;
        let outside = act && !self.vact;
        let some = facts.tokens != 0;
        match when {
            When::P01 => !self.vtca,
            When::P03 => self.i(dk),
            When::P04 => duplex && !self.vcoll,
            When::P05 => self.a(dk),
            When::P10 => !self.vcoll,
            When::P11 => self.ii(ma),
            When::P14 => working && self.a(dk) && self.aa(mi),
            When::P15 => working && self.i(dk) && self.ii(mi),
            When::P17 => working && self.unit(requirements::MINOR_SYNC) && !self.vsc,
            When::P18 => working && self.unit(requirements::MINOR_SYNC) && self.vsc,
            When::P19 => facts.serial == self.vm,
            When::P20 => facts.serial.checked_add(1) == Some(self.vm),
            When::NotP20 => facts.serial.checked_add(1) != Some(self.vm),
            When::P21 => (self.va..self.vm).contains(&facts.serial),
            When::P34 => act,
            When::P39 => self.vact && self.ii(ma),
            When::P40 => self.aa(ma),
            When::P44 => outside && self.a(ALL),
            When::P45 => outside && self.i(ALL),
            When::P48 => exceptions && self.unit(requirements::HALF_DUPLEX),
            When::P50 => exceptions && working && self.aa(dk),
            When::P51 => exceptions && working && self.ii(dk),
            When::P52 => exceptions && !act && self.ii(dk),
            When::P53 => facts.tokens & self.available() != 0,
            When::P54 => some && self.ii(facts.tokens),
            When::P55 => outside && self.i(ALL),
            When::P58 => some && self.ii(facts.tokens) && facts.tokens & dk != 0,
            When::P59 => some && self.aa(facts.tokens),
            When::P60 => some && self.aa(facts.tokens) && facts.tokens & dk == 0,
            When::P61 => some && self.aa(facts.tokens) && facts.tokens & dk != 0,
            When::P62 => outside && self.a(ALL),
            When::P63 => self.i(ALL) && !self.vact,
            When::NotP65 => self.available() == 0,
            When::P68 => self.a(ALL) && !self.vact,
            When::P69 => self.vcoll,
            When::P70 => duplex,
            When::P71 => act && self.vact && self.i(dk | mi) && self.ii(ma),
            When::P72 => act && self.vact && self.a(dk | mi) && self.aa(ma),
            When::P75 => !self.vcoll || self.vdnr,
            When::P76 => !facts.acceptable,
            When::Acceptable => facts.acceptable,
            When::Answered => self.answered,
        }
    }

    /// \[5\], \[11\]: a session connection begins. `setting` is the token setting of the CN, two bits
    /// a token; what is left to the called user goes to the calling one.
    pub(super) fn begin(&mut self, fu: u16, setting: u8) {
        let responders: u8 = [(0, token::DATA), (2, token::MINOR), (4, token::MAJOR)]
            .into_iter()
            .filter(|(shift, _)| (setting >> shift) & 0b11 == 1)
            .map(|(_, token)| token)
            .sum();
        *self = Variables { vtca: self.vtca, fu, ..Variables::default() };
        self.owned = self.available() & if self.vtca { responders } else { !responders };
    }

    /// \[23\]: a MINOR SYNC POINT came.
    pub(super) fn minor_received(&mut self) {
        if !self.vsc {
            self.va = self.vm;
        }
        self.vsc = true;
        self.vm += 1;
    }

    /// \[24\]: a MINOR SYNC POINT or ACTIVITY END left.
    pub(super) fn point_sent(&mut self) {
        if self.vsc {
            self.va = self.vm;
        }
        self.vsc = false;
        self.vm += 1;
    }

    /// \[31\]: an ACTIVITY END came.
    pub(super) fn end_received(&mut self) {
        if !self.vsc {
            self.va = self.vm;
        }
        self.vm += 1;
    }

    /// \[12\], \[26\] or \[27\]: an activity begins, or goes on after a confirmed point.
    pub(super) fn activity_begins(&mut self, confirmed: Option<u32>) {
        self.vact = true;
        self.vm = confirmed.map_or(1, |serial| serial + 1);
        self.va = self.vm;
        self.vr = 1;
    }

    /// \[14\], \[22\]: an activity ended.
    pub(super) fn activity_ends(&mut self) {
        self.vact = false;
        self.va = self.vm;
        self.vr = self.vm;
    }

    /// \[29\], \[30\]: an activity was interrupted or discarded by us, or by the peer.
    pub(super) fn activity_stops(&mut self, ours: bool) {
        self.vact = false;
        self.owned = if ours { self.available() } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::service::requirements::{DUPLEX, RTSE};

    #[test]
    fn the_token_setting_names_the_first_sender() {
        let mut initiator = Variables::default();
        let mut responder = Variables { vtca: true, ..Variables::default() };
        for (setting, first) in [(0, 0x15), (0b01_01_01, 0), (0b10_10_10, 0x15), (0b00_01_00, 0x11)]
        {
            initiator.begin(RTSE, setting);
            responder.begin(RTSE, setting);
            assert_eq!((initiator.owned, responder.owned), (first, 0x15 & !first), "{setting:b}");
        }
        initiator.begin(DUPLEX, 0);
        assert_eq!((initiator.available(), initiator.owned), (0, 0));
    }

    #[test]
    fn serial_numbers_of_an_activity() {
        let facts = |serial| Facts { serial, ..Facts::default() };
        let mut sender = Variables::default();
        sender.begin(RTSE, 0);
        sender.activity_begins(None);
        sender.point_sent();
        sender.point_sent();
        assert_eq!((sender.va, sender.vm), (1, 3));
        assert!(sender.holds(When::P21, &facts(2)) && sender.holds(When::P17, &facts(2)));
        assert!(!sender.holds(When::P21, &facts(3)));
        sender.va = 3;
        assert!(!sender.holds(When::P21, &facts(2)), "confirmed already");
        sender.activity_begins(Some(7));
        assert_eq!((sender.va, sender.vm, sender.vr), (8, 8, 1));
    }

    #[test]
    fn duplex_has_no_tokens() {
        let mut v = Variables::default();
        v.begin(DUPLEX, 0);
        let facts = Facts::default();
        for when in [When::P03, When::P05, When::P63, When::P68, When::NotP65] {
            assert!(v.holds(when, &facts), "{when:?}");
        }
        for when in [When::P15, When::P45, When::P50, When::P55, When::P39] {
            assert!(!v.holds(when, &facts), "{when:?}");
        }
    }
}
