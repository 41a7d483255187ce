//! SPDUs: the user data of a CONNECT, an ACCEPT and a REFUSE, and on associations with users that of a DATA TRANSFER.
//!
//! Until a bind was read, what is not known is overwritten: a parameter, another SPDU, what follows the SPDU. If
//! the bind cannot be read, all of its user data that the same input has is overwritten, and all user data after it.

use super::Masked;
use super::cipher::Cipher;
use super::scan::Scan;

/// Identifiers of SPDUs (X.225 8.3).
const REFUSE: u8 = 12;
const CONNECT: u8 = 13;
const ACCEPT: u8 = 14;
/// CONNECT DATA OVERFLOW and OVERFLOW ACCEPT: what was too long for a CONNECT.
const OVERFLOW: [u8; 2] = [15, 16];
/// GIVE TOKENS and DATA TRANSFER, PLEASE TOKENS.
const DATA: u8 = 1;
const PLEASE: u8 = 2;

/// Parameter groups: connection identifier, connect/accept item.
const IDENTIFIER: u8 = 1;
const GROUPS: [u8; 2] = [IDENTIFIER, 5];
/// Parameters.
const TOKEN: u8 = 16;
const ENCLOSURE: u8 = 25;
const REASON: u8 = 50;
const USER_DATA: [u8; 2] = [193, 194];

/// Most octets of the parameters of a bind that are harmless; `group` is the one around.
fn most(parameter: u8, group: Option<u8>) -> usize {
    match parameter {
        // References of the SS-users.
        9..=11 if group == Some(IDENTIFIER) => 66,
        12 if group == Some(IDENTIFIER) => 8,
        // Token item, transport disconnect, options, version, token setting, data overflow.
        16 | 17 | 19 | 22 | 26 | 60 => 1,
        20 => 2,
        // TSDU maximum size, initial serial number.
        21 => 4,
        23 => 6,
        49 => 9,
        // Selectors.
        51 | 52 => 16,
        _ => 0,
    }
}

/// What an SPDU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its parameters have user data: it may have a bind.
    Bind,
    /// The first of two.
    Tokens,
    /// User data follows it.
    Data,
}

/// Where in a TSDU the next octet is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The SPDU's identifier.
    Start,
    /// That of the SPDU after the first.
    Second,
    /// Its length indicator.
    Length(Kind, Length),
    /// The identifier of a parameter.
    Parameter(Kind),
    /// Its length indicator.
    ParameterLength { kind: Kind, code: u8, length: Length },
    /// Its value.
    Value { kind: Kind, code: u8, left: usize, is_read: bool },
    /// Behind an SPDU that nothing may follow.
    Behind,
    /// User data after a DATA TRANSFER.
    Data,
    /// Nothing in it matters.
    Rest,
    /// Nothing in it can be read.
    Lost,
}

/// A length indicator: one octet, or 255 and two (X.225 8.2.5).
#[derive(Clone, Copy, Debug, Default)]
struct Length {
    have: usize,
    value: usize,
}

impl Length {
    /// Takes an octet; gives the length once it is known.
    fn take(&mut self, octet: u8) -> Option<usize> {
        self.have += 1;
        match (self.have, octet) {
            (1, 255) => None,
            (1, _) => Some(usize::from(octet)),
            (2, _) => {
                self.value = usize::from(octet) << 8;
                None
            }
            _ => Some(self.value | usize::from(octet)),
        }
    }
}

/// One direction of a session connection.
#[derive(Debug)]
pub(super) struct Session {
    of_user: bool,
    /// A bind was read to its end.
    connected: bool,
    /// No user data can be read any more.
    lost: bool,
    place: Place,
    /// Octets left in the SPDU, and in the parameter group of this identifier.
    left: usize,
    group: usize,
    group_code: u8,
    scan: Option<Scan>,
    /// Where this input has octets of the TSDU: they are overwritten if it cannot be read.
    seen: Vec<(usize, usize)>,
}

impl Session {
    pub(super) fn new(of_user: bool) -> Session {
        Session {
            of_user,
            connected: false,
            lost: false,
            place: Place::Start,
            left: 0,
            group: 0,
            group_code: 0,
            scan: None,
            seen: Vec::new(),
        }
    }

    /// Another input begins.
    pub(super) fn input_begins(&mut self) {
        self.seen.clear();
    }

    /// The TSDU ends.
    pub(super) fn end(&mut self, masked: &mut Masked) {
        let is_whole = match self.place {
            Place::Start | Place::Second | Place::Rest | Place::Lost => true,
            Place::Behind => {
                let is_whole = self.scan.as_ref().is_none_or(Scan::is_done);
                self.connected |= is_whole;
                is_whole
            }
            Place::Data => self.scan.as_ref().is_some_and(Scan::is_done),
            _ => false,
        };
        if !is_whole {
            self.lose(masked);
        }
        self.place = Place::Start;
        self.scan = None;
        self.seen.clear();
    }

    /// No user data can be read any more.
    pub(super) fn lose(&mut self, masked: &mut Masked) {
        self.lost = true;
        self.overwrite(masked);
    }

    /// The TSDU cannot be read.
    fn overwrite(&mut self, masked: &mut Masked) {
        self.place = Place::Lost;
        for (from, length) in self.seen.drain(..) {
            masked.blank(from, length);
        }
    }

    /// Reads octets of a TSDU; they are at `base` of what `masked` is about.
    pub(super) fn read(
        &mut self,
        octets: &[u8],
        base: usize,
        cipher: &Cipher,
        masked: &mut Masked,
    ) {
        if self.lost {
            return masked.blank(base, octets.len());
        }
        if !matches!(self.place, Place::Rest) {
            self.seen.push((base, octets.len()));
        }
        let mut at = 0;
        while let Some(rest) = octets.get(at..).filter(|rest| !rest.is_empty()) {
            let base = base + at;
            match self.place {
                Place::Value { kind, code, left, is_read } => {
                    let taken = rest.len().min(left);
                    self.value(
                        rest.get(..taken).unwrap_or_default(),
                        code,
                        is_read,
                        base,
                        cipher,
                        masked,
                    );
                    self.count(taken);
                    self.place = match left - taken {
                        _ if self.is_scan_lost() => return self.lose(masked),
                        0 => self.after_parameter(kind),
                        left => {
                            Place::Value { kind, code, left, is_read: is_read || code == REASON }
                        }
                    };
                    at += taken;
                }
                Place::Data => {
                    let scan = self.scan.get_or_insert_with(Scan::of_data);
                    scan.read(rest, base, cipher, masked);
                    if scan.is_lost() {
                        return self.overwrite(masked);
                    }
                    if scan.passes() {
                        self.place = Place::Rest;
                    }
                    return;
                }
                Place::Rest => {
                    self.seen.clear();
                    return;
                }
                Place::Lost => return masked.blank(base, rest.len()),
                Place::Behind => return self.lose(masked),
                _ => {
                    let Some(octet) = rest.first() else { return };
                    match self.octet(*octet) {
                        Some(place) => self.place = place,
                        None => return self.lose(masked),
                    }
                    at += 1;
                }
            }
        }
    }

    fn is_scan_lost(&self) -> bool {
        self.scan.as_ref().is_some_and(Scan::is_lost)
    }

    /// Octets of the value of a parameter.
    fn value(
        &mut self,
        octets: &[u8],
        code: u8,
        is_read: bool,
        base: usize,
        cipher: &Cipher,
        masked: &mut Masked,
    ) {
        // The first octet of a REFUSE's reason is the reason.
        let skipped = usize::from(code == REASON && !is_read);
        if USER_DATA.contains(&code) || code == REASON {
            let data = octets.get(skipped..).unwrap_or_default();
            if !data.is_empty() {
                let scan = self.scan.get_or_insert_with(Scan::of_bind);
                scan.read(data, base + skipped, cipher, masked);
            }
        } else if !is_read {
            masked.blank(base, octets.len());
        }
    }

    /// Counts octets of an SPDU with parameters.
    fn count(&mut self, octets: usize) {
        self.left = self.left.saturating_sub(octets);
        self.group = self.group.saturating_sub(octets);
    }

    fn after_parameter(&self, kind: Kind) -> Place {
        if self.left > 0 {
            return Place::Parameter(kind);
        }
        match kind {
            Kind::Tokens => Place::Second,
            Kind::Data => Place::Data,
            Kind::Bind => Place::Behind,
        }
    }

    /// One octet before user data: where it leads. `None` if it cannot be there.
    fn octet(&mut self, octet: u8) -> Option<Place> {
        Some(match self.place {
            Place::Start => self.start(octet)?,
            Place::Second if octet == DATA => Place::Length(Kind::Data, Length::default()),
            Place::Length(kind, mut length) => match length.take(octet) {
                None => Place::Length(kind, length),
                Some(left) => {
                    (self.left, self.group) = (left, 0);
                    self.after_parameter(kind)
                }
            },
            Place::Parameter(kind) => {
                self.count(1);
                // Nothing follows user data, and a parameter has a length.
                if self.scan.is_some() || self.left == 0 {
                    return None;
                }
                Place::ParameterLength { kind, code: octet, length: Length::default() }
            }
            Place::ParameterLength { kind, code, mut length } => {
                self.count(1);
                match length.take(octet) {
                    None if self.left == 0 => return None,
                    None => Place::ParameterLength { kind, code, length },
                    Some(left) => self.parameter(kind, code, left)?,
                }
            }
            _ => return None,
        })
    }

    /// Where a parameter leads that has so many octets.
    fn parameter(&mut self, kind: Kind, code: u8, left: usize) -> Option<Place> {
        let in_group = self.group > 0;
        if left > self.left || (in_group && left > self.group) {
            return None;
        }
        if kind != Kind::Bind {
            // Tokens or an enclosure item, of an octet.
            let is_right = left == 1 && (code == TOKEN || code == ENCLOSURE);
            return is_right.then_some(Place::Value { kind, code, left, is_read: true });
        }
        if GROUPS.contains(&code) {
            if in_group {
                return None;
            }
            (self.group, self.group_code) = (left, code);
            return Some(self.after_parameter(kind));
        }
        if USER_DATA.contains(&code) && in_group {
            return None;
        }
        if left == 0 {
            return Some(self.after_parameter(kind));
        }
        let group = in_group.then_some(self.group_code);
        let is_read = left <= most(code, group) && code != REASON;
        Some(Place::Value { kind, code, left, is_read })
    }

    /// Where the first octet of a TSDU leads.
    fn start(&mut self, identifier: u8) -> Option<Place> {
        Some(match identifier {
            CONNECT | ACCEPT | REFUSE => Place::Length(Kind::Bind, Length::default()),
            _ if OVERFLOW.contains(&identifier) => return None,
            _ if !self.connected => Place::Length(Kind::Bind, Length::default()),
            // What MTAs send behind their bind has no passwords of theirs.
            _ if !self.of_user => Place::Rest,
            DATA | PLEASE => Place::Length(Kind::Tokens, Length::default()),
            _ => Place::Length(Kind::Bind, Length::default()),
        })
    }
}
