//! The parameters of SPDUs (X.225 8.2): lengths in their short and long form, groups, and what each
//! parameter may hold.

use super::{AcceptSpdu, ConnectSpdu, DEFAULT_REQUIREMENTS, Enclosure, Error, Spdu, si};
use crate::session::service::{ConnectionReference, ExceptionReason, Resume, requirements};
use bytes::Bytes;
use smallvec::SmallVec;

/// Parameter and parameter group identifiers (X.225 8.3, annex C).
pub(super) mod pi {
    pub(in crate::session) const CONNECTION_IDENTIFIER: u8 = 1;
    pub(in crate::session) const CONNECT_ACCEPT: u8 = 5;
    pub(in crate::session) const CALLED_REFERENCE: u8 = 9;
    pub(in crate::session) const CALLING_REFERENCE: u8 = 10;
    pub(in crate::session) const COMMON_REFERENCE: u8 = 11;
    pub(in crate::session) const ADDITIONAL_REFERENCE: u8 = 12;
    pub(in crate::session) const SYNC_TYPE: u8 = 15;
    pub(in crate::session) const TOKEN: u8 = 16;
    pub(in crate::session) const TRANSPORT_DISCONNECT: u8 = 17;
    pub(in crate::session) const PROTOCOL_OPTIONS: u8 = 19;
    pub(in crate::session) const REQUIREMENTS: u8 = 20;
    pub(in crate::session) const TSDU_MAXIMUM: u8 = 21;
    pub(in crate::session) const VERSION: u8 = 22;
    pub(in crate::session) const INITIAL_SERIAL: u8 = 23;
    pub(in crate::session) const ENCLOSURE: u8 = 25;
    pub(in crate::session) const TOKEN_SETTING: u8 = 26;
    pub(in crate::session) const LINKING: u8 = 33;
    pub(in crate::session) const ACTIVITY: u8 = 41;
    pub(in crate::session) const SERIAL: u8 = 42;
    pub(in crate::session) const REFLECT: u8 = 49;
    pub(in crate::session) const REASON: u8 = 50;
    pub(in crate::session) const CALLING_SELECTOR: u8 = 51;
    pub(in crate::session) const CALLED_SELECTOR: u8 = 52;
    pub(in crate::session) const DATA_OVERFLOW: u8 = 60;
    pub(in crate::session) const USER_DATA: u8 = 193;
    pub(in crate::session) const EXTENDED_USER_DATA: u8 = 194;
}

/// The parameter's name.
pub(super) fn name(parameter: u8) -> &'static str {
    match parameter {
        pi::CONNECTION_IDENTIFIER => "connection identifier",
        pi::CONNECT_ACCEPT => "connect/accept item",
        pi::CALLED_REFERENCE => "called SS-user reference",
        pi::CALLING_REFERENCE => "calling SS-user reference",
        pi::COMMON_REFERENCE => "common reference",
        pi::ADDITIONAL_REFERENCE => "additional reference information",
        pi::SYNC_TYPE => "sync type item",
        pi::TOKEN => "token item",
        pi::TRANSPORT_DISCONNECT => "transport disconnect",
        pi::PROTOCOL_OPTIONS => "protocol options",
        pi::REQUIREMENTS => "session user requirements",
        pi::TSDU_MAXIMUM => "TSDU maximum size",
        pi::VERSION => "version number",
        pi::INITIAL_SERIAL => "initial serial number",
        pi::ENCLOSURE => "enclosure item",
        pi::TOKEN_SETTING => "token setting item",
        pi::LINKING => "linking information",
        pi::ACTIVITY => "activity identifier",
        pi::SERIAL => "serial number",
        pi::REFLECT => "reflect parameter values",
        pi::REASON => "reason code",
        pi::CALLING_SELECTOR => "calling session selector",
        pi::CALLED_SELECTOR => "called session selector",
        pi::DATA_OVERFLOW => "data overflow",
        pi::USER_DATA => "user data",
        pi::EXTENDED_USER_DATA => "extended user data",
        _ => UNKNOWN,
    }
}

const UNKNOWN: &str = "a parameter";

/// Whether the parameter is one of this edition.
fn is_known(parameter: u8) -> bool {
    name(parameter) != UNKNOWN
}

/// Length of a parameter or SPDU field: one octet, or 255 and two (X.225 8.2.5).
fn put_length(octets: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short < u8::MAX => octets.push(short),
        _ => {
            octets.push(u8::MAX);
            octets.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
}

/// Splits an identifier, its length and its value off.
pub(super) fn take(octets: &[u8]) -> Result<(u8, &[u8], &[u8]), Error> {
    let (identifier, length, start) = match octets {
        [identifier, u8::MAX, high, low, ..] => {
            (*identifier, usize::from(u16::from_be_bytes([*high, *low])), 4)
        }
        [_, u8::MAX, ..] => return Err(Error::Truncated),
        [identifier, length, ..] => (*identifier, usize::from(*length), 2),
        _ => return Err(Error::Truncated),
    };
    let rest = octets.get(start..).unwrap_or_default();
    let (value, rest) = rest.split_at_checked(length).ok_or(Error::Truncated)?;
    Ok((identifier, value, rest))
}

/// Octets of an SPDU's header (identifier, length, parameters) at the start of `octets`, if they are
/// all there.
pub fn header_length(octets: &[u8]) -> Option<usize> {
    let (length, start) = match octets {
        [_, u8::MAX, high, low, ..] => (usize::from(u16::from_be_bytes([*high, *low])), 4),
        [_, u8::MAX, ..] => return None,
        [_, length, ..] => (usize::from(*length), 2),
        _ => return None,
    };
    (octets.len() >= start + length).then_some(start + length)
}

#[derive(Default)]
pub(super) struct Params(pub(super) Vec<u8>);

impl Params {
    pub(super) fn put(mut self, identifier: u8, value: &[u8]) -> Params {
        self.0.push(identifier);
        put_length(&mut self.0, value.len());
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn some(self, identifier: u8, value: Option<&[u8]>) -> Params {
        match value {
            Some(value) => self.put(identifier, value),
            None => self,
        }
    }

    /// Written unless empty, as optional references and user data are.
    pub(super) fn filled(self, identifier: u8, value: &[u8]) -> Params {
        if value.is_empty() { self } else { self.put(identifier, value) }
    }

    pub(super) fn serial(self, serial: u32) -> Params {
        self.put(pi::SERIAL, serial.to_string().as_bytes())
    }

    pub(super) fn spdu(self, identifier: u8) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.0.len() + 4);
        octets.push(identifier);
        put_length(&mut octets, self.0.len());
        octets.extend_from_slice(&self.0);
        octets
    }
}

/// All parameters this codec knows, as found in one SPDU.
pub(super) struct Found<'a> {
    pub(super) si: u8,
    pub(super) reference: ConnectionReference,
    pub(super) versions: Option<u8>,
    pub(super) tsdu_maximum: Option<(u16, u16)>,
    pub(super) token_setting: Option<u8>,
    pub(super) requirements: Option<u16>,
    pub(super) calling: Option<Bytes>,
    pub(super) called: Option<Bytes>,
    pub(super) overflow: bool,
    pub(super) disconnect: Option<u8>,
    pub(super) reflect: &'a [u8],
    pub(super) reason: Option<&'a [u8]>,
    pub(super) enclosure: Enclosure,
    pub(super) tokens: u8,
    pub(super) serial: Option<u32>,
    pub(super) explicit: bool,
    pub(super) sync_type: bool,
    pub(super) activity: Option<&'a [u8]>,
    pub(super) linking: Option<Box<Found<'a>>>,
    pub(super) user_data: [&'a [u8]; 2],
    /// The known parameters there were.
    seen: SmallVec<[u8; 16]>,
}

impl<'a> Found<'a> {
    pub(super) fn read(si: u8, parameters: &'a [u8]) -> Result<Found<'a>, Error> {
        let mut found = Found {
            si,
            reference: ConnectionReference::default(),
            versions: None,
            tsdu_maximum: None,
            token_setting: None,
            requirements: None,
            calling: None,
            called: None,
            overflow: false,
            disconnect: None,
            reflect: &[],
            reason: None,
            enclosure: Enclosure::WHOLE,
            tokens: 0,
            serial: None,
            explicit: true,
            sync_type: false,
            activity: None,
            linking: None,
            user_data: [&[], &[]],
            seen: SmallVec::new(),
        };
        found.each(parameters, 0)?;
        Ok(found)
    }

    fn each(&mut self, mut parameters: &'a [u8], depth: u8) -> Result<(), Error> {
        while !parameters.is_empty() {
            let (identifier, value, rest) = take(parameters)?;
            parameters = rest;
            match identifier {
                pi::CONNECTION_IDENTIFIER | pi::CONNECT_ACCEPT if depth == 0 => {
                    self.once(identifier)?;
                    self.each(value, 1)?;
                }
                pi::LINKING if depth == 0 && self.si == si::AR => {
                    self.once(identifier)?;
                    // Read as an SPDU without groups of its own.
                    let mut linking = Found::read(si::AR, &[])?;
                    linking.each(value, 1)?;
                    self.linking = Some(Box::new(linking));
                }
                _ => self.one(identifier, value)?,
            }
        }
        Ok(())
    }

    /// A parameter comes once in an SPDU, user data in one of its two forms.
    fn once(&mut self, parameter: u8) -> Result<(), Error> {
        let twin = match parameter {
            pi::USER_DATA => pi::EXTENDED_USER_DATA,
            pi::EXTENDED_USER_DATA => pi::USER_DATA,
            other => other,
        };
        if self.seen.contains(&parameter) || self.seen.contains(&twin) {
            return Err(Error::Twice { si: self.si, parameter });
        }
        self.seen.push(parameter);
        Ok(())
    }

    fn one(&mut self, parameter: u8, value: &'a [u8]) -> Result<(), Error> {
        if !is_known(parameter) {
            // X.225 8.2.7: parameters from a later edition are passed over.
            return Ok(());
        }
        self.once(parameter)?;
        let wrong = Error::Value { si: self.si, parameter };
        let octet = || match value {
            [octet] => Ok(*octet),
            _ => Err(wrong),
        };
        let at_most = |most: usize| {
            if value.len() <= most { Ok(Bytes::copy_from_slice(value)) } else { Err(wrong) }
        };
        match parameter {
            pi::CALLING_REFERENCE => self.reference.user = at_most(64)?,
            pi::INITIAL_SERIAL => {
                // Of use without activities only, which number their points from 1.
                decode_serial(value).ok_or(wrong)?;
            }
            pi::CALLED_REFERENCE if self.reference.user.is_empty() => {
                self.reference.user = at_most(64)?;
            }
            pi::COMMON_REFERENCE => self.reference.common = at_most(64)?,
            pi::ADDITIONAL_REFERENCE => self.reference.additional = at_most(4)?,
            pi::SYNC_TYPE => {
                self.sync_type = true;
                self.explicit = octet()? & 1 == 0;
            }
            pi::TOKEN => self.tokens = octet()?,
            pi::TRANSPORT_DISCONNECT => self.disconnect = Some(octet()?),
            pi::REQUIREMENTS => {
                let bits = <[u8; 2]>::try_from(value).map_err(|_| wrong)?;
                self.requirements = Some(u16::from_be_bytes(bits));
            }
            pi::TSDU_MAXIMUM => {
                let [a, b, c, d] = <[u8; 4]>::try_from(value).map_err(|_| wrong)?;
                self.tsdu_maximum = Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])));
            }
            pi::VERSION => self.versions = Some(octet()?),
            pi::ENCLOSURE => {
                let item = octet()?;
                self.enclosure = Enclosure { begin: item & 1 != 0, end: item & 2 != 0 };
            }
            pi::TOKEN_SETTING => self.token_setting = Some(octet()?),
            pi::ACTIVITY if value.len() <= 6 => self.activity = Some(value),
            pi::ACTIVITY => return Err(wrong),
            pi::SERIAL => self.serial = Some(decode_serial(value).ok_or(wrong)?),
            pi::REFLECT => self.reflect = value,
            pi::REASON => self.reason = Some(value),
            pi::CALLING_SELECTOR => self.calling = Some(at_most(16)?),
            pi::CALLED_SELECTOR => self.called = Some(at_most(16)?),
            pi::DATA_OVERFLOW => self.overflow = true,
            pi::USER_DATA => self.user_data[0] = value,
            pi::EXTENDED_USER_DATA => self.user_data[1] = value,
            // The other reference of the two, and protocol options: nothing we use.
            _ => {}
        }
        Ok(())
    }

    pub(super) fn user_data(&self) -> Bytes {
        Bytes::from(self.user_data.concat())
    }

    fn missing(&self, parameter: u8) -> Error {
        Error::Missing { si: self.si, parameter }
    }

    pub(super) fn serial(&self) -> Result<u32, Error> {
        self.serial.ok_or(self.missing(pi::SERIAL))
    }

    pub(super) fn activity(&self) -> Result<Bytes, Error> {
        self.activity.map(Bytes::copy_from_slice).ok_or(self.missing(pi::ACTIVITY))
    }

    /// Absent or unknown codes count as non-specific.
    pub(super) fn reason(&self) -> ExceptionReason {
        match self.reason.and_then(<[u8]>::first) {
            Some(1) => ExceptionReason::ReceivingAbilityJeopardized,
            Some(3) => ExceptionReason::SequenceError,
            Some(5) => ExceptionReason::LocalError,
            Some(6) => ExceptionReason::Unrecoverable,
            Some(128) => ExceptionReason::DemandDataToken,
            _ => ExceptionReason::NonSpecific,
        }
    }

    /// The token setting, two bits a token that the functional units make available; those of others
    /// mean nothing. `most` is the highest value that is not reserved (X.225 8.3.1.13).
    fn token_setting(&self, most: u8) -> Result<Option<u8>, Error> {
        let units = self.requirements.unwrap_or(DEFAULT_REQUIREMENTS);
        let tokens = [
            (requirements::HALF_DUPLEX, 0),
            (requirements::MINOR_SYNC, 2),
            (requirements::ACTIVITY, 4),
        ];
        let setting = self.token_setting.unwrap_or(0);
        let reserved =
            |&(unit, shift): &(u16, u8)| units & unit != 0 && (setting >> shift) & 0b11 > most;
        if tokens.iter().any(reserved) {
            return Err(Error::Value { si: self.si, parameter: pi::TOKEN_SETTING });
        }
        Ok(self.token_setting)
    }

    pub(super) fn connect(self) -> Result<ConnectSpdu, Error> {
        Ok(ConnectSpdu {
            token_setting: self.token_setting(2)?.unwrap_or(0),
            user_data: self.user_data(),
            reference: self.reference,
            // X.225 8.3.1.10: version 1 by default.
            versions: self.versions.unwrap_or(1),
            tsdu_maximum: self.tsdu_maximum,
            requirements: self.requirements.unwrap_or(DEFAULT_REQUIREMENTS),
            calling: self.calling,
            called: self.called,
            overflow: self.overflow,
        })
    }

    pub(super) fn accept(self) -> Result<AcceptSpdu, Error> {
        Ok(AcceptSpdu {
            token_setting: self.token_setting(1)?,
            user_data: self.user_data(),
            reference: self.reference,
            version: self.versions,
            tsdu_maximum: self.tsdu_maximum,
            please: self.tokens,
            requirements: self.requirements.unwrap_or(DEFAULT_REQUIREMENTS),
            responding: self.called,
        })
    }

    pub(super) fn refuse(self) -> Spdu {
        let (reason, user_data) = match self.reason {
            Some([reason, user_data @ ..]) => (*reason, user_data),
            _ => (0, &[][..]),
        };
        Spdu::Refuse {
            reason,
            user_data: Bytes::copy_from_slice(user_data),
            reference: self.reference,
            requirements: self.requirements,
        }
    }

    pub(super) fn resume(self) -> Result<Resume, Error> {
        let activity = self.activity()?;
        let linking = self.linking.ok_or(Error::Missing { si: si::AR, parameter: pi::LINKING })?;
        let reference = linking.reference.clone();
        Ok(Resume {
            activity,
            old_activity: linking.activity()?,
            serial: linking.serial()?,
            old_reference: (reference != ConnectionReference::default()).then_some(reference),
        })
    }
}

/// A serial number: one to six ASCII digits (X.225 8.3.20.3).
fn decode_serial(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 6 {
        return None;
    }
    digits.iter().try_fold(0, |serial: u32, digit| {
        digit.is_ascii_digit().then(|| serial * 10 + u32::from(digit - b'0'))
    })
}
