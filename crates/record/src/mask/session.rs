//! SPDUs: the user data of a CONNECT and an ACCEPT, and on associations with users that of a DATA TRANSFER.

use super::Masked;
use super::cipher::Cipher;
use super::scan::{Scan, What};

/// Identifiers of SPDUs (X.225 8.3), and of their user data.
const CONNECT: u8 = 13;
const ACCEPT: u8 = 14;
/// CONNECT DATA OVERFLOW and OVERFLOW ACCEPT: what was too long for a CONNECT.
const OVERFLOW: [u8; 2] = [15, 16];
/// GIVE TOKENS and, after it, DATA TRANSFER.
const DATA: u8 = 1;
const USER_DATA: [u8; 2] = [193, 194];

/// Where in a TSDU the next octet is.
#[derive(Debug)]
enum Place {
    /// The SPDU's identifier.
    Start,
    /// Its length indicator.
    Length(Length),
    /// The identifier of a parameter.
    Parameter,
    /// Its length indicator.
    ParameterLength { code: u8, length: Length },
    /// Its value.
    Value { code: u8, left: usize },
    /// The identifier of the SPDU after GIVE TOKENS.
    Second,
    /// Its length indicator, or that of the first, whose parameters are passed over.
    DataLength { second: bool, length: Length },
    /// Parameters of one of the two.
    Passing { second: bool, left: usize },
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
    /// A CONNECT or an ACCEPT was read.
    connected: bool,
    done: bool,
    place: Place,
    scan: Option<Scan>,
}

impl Session {
    pub(super) fn new(of_user: bool) -> Session {
        Session { of_user, connected: false, done: false, place: Place::Start, scan: None }
    }

    /// Whether no later octet matters.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// The TSDU ends.
    pub(super) fn end(&mut self) {
        self.place = Place::Start;
        self.scan = None;
    }

    /// Reads octets of a TSDU; they are at `base` of what `masked` is about.
    pub(super) fn read(
        &mut self,
        octets: &[u8],
        base: usize,
        cipher: &Cipher,
        masked: &mut Masked,
    ) {
        let mut at = 0;
        while let Some(rest) = octets.get(at..).filter(|rest| !rest.is_empty()) {
            match &mut self.place {
                Place::Value { code, left } => {
                    let taken = rest.len().min(*left);
                    *left -= taken;
                    let (code, over) = (*code, *left == 0);
                    if over {
                        self.place = Place::Parameter;
                    }
                    if USER_DATA.contains(&code) {
                        let scan = self.scan.get_or_insert_with(|| Scan::new(What::Bind));
                        let data = rest.get(..taken).unwrap_or_default();
                        scan.read(data, base + at, cipher, masked);
                    }
                    at += taken;
                }
                Place::Data => {
                    let scan = self.scan.get_or_insert_with(|| Scan::new(What::Operation));
                    scan.read(rest, base + at, cipher, masked);
                    if scan.is_done() {
                        self.place = Place::Rest;
                    }
                    return;
                }
                Place::Passing { second, left } => {
                    let taken = rest.len().min(*left);
                    *left -= taken;
                    if *left == 0 {
                        self.place = if *second { Place::Data } else { Place::Second };
                    }
                    at += taken;
                }
                Place::Rest => return,
                Place::Lost => return masked.blank(base + at, rest.len()),
                _ => {
                    let Some(octet) = rest.first() else { return };
                    self.octet(*octet);
                    if self.done {
                        return;
                    }
                    // An octet of what is lost as a whole is overwritten too.
                    if !matches!(self.place, Place::Lost) {
                        at += 1;
                    }
                }
            }
        }
    }

    /// One octet before user data.
    fn octet(&mut self, octet: u8) {
        match &mut self.place {
            Place::Start => self.place = self.start(octet),
            Place::Length(length) => {
                if length.take(octet).is_some() {
                    self.place = Place::Parameter;
                }
            }
            Place::Parameter => {
                self.place = Place::ParameterLength { code: octet, length: Length::default() };
            }
            Place::ParameterLength { code, length } => match length.take(octet) {
                Some(0) => self.place = Place::Parameter,
                Some(left) => self.place = Place::Value { code: *code, left },
                None => {}
            },
            Place::Second if octet == DATA => {
                self.place = Place::DataLength { second: true, length: Length::default() };
            }
            Place::Second => self.place = Place::Rest,
            Place::DataLength { second, length } => match length.take(octet) {
                Some(0) => self.place = if *second { Place::Data } else { Place::Second },
                Some(left) => self.place = Place::Passing { second: *second, left },
                None => {}
            },
            Place::Value { .. } | Place::Passing { .. } => {}
            Place::Data | Place::Rest | Place::Lost => {}
        }
    }

    /// Where the first octet of a TSDU leads.
    fn start(&mut self, identifier: u8) -> Place {
        match identifier {
            CONNECT | ACCEPT => {
                self.connected = true;
                Place::Length(Length::default())
            }
            _ if OVERFLOW.contains(&identifier) => Place::Lost,
            DATA if self.of_user => Place::DataLength { second: false, length: Length::default() },
            _ => {
                // An MTA shows its password only when it binds.
                self.done = self.connected && !self.of_user;
                Place::Rest
            }
        }
    }
}
