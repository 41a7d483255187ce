//! SPDUs (X.225 clause 8): encoding, decoding, and the parameter codec.
//!
//! References, selectors and user data are opaque octets. Parameters are read in any order, and
//! those not known here are ignored; they are written in the order of the standard's tables.

mod params;

pub use params::header_length;

use super::service::{ConnectionReference, ExceptionReason, Resume};
use bytes::Bytes;
use params::{Found, Params, pi, take};

/// SPDU identifiers (X.225 8.3). Some have two meanings, which the category distinguishes (6.3.7).
pub mod si {
    /// EXCEPTION REPORT.
    pub const ER: u8 = 0;
    /// GIVE TOKENS (category 0).
    pub const GT: u8 = 1;
    /// DATA TRANSFER (category 2).
    pub const DT: u8 = 1;
    /// PLEASE TOKENS.
    pub const PT: u8 = 2;
    /// FINISH.
    pub const FN: u8 = 9;
    /// DISCONNECT.
    pub const DN: u8 = 10;
    /// REFUSE.
    pub const RF: u8 = 12;
    /// CONNECT.
    pub const CN: u8 = 13;
    /// ACCEPT.
    pub const AC: u8 = 14;
    /// GIVE TOKENS CONFIRM.
    pub const GTC: u8 = 21;
    /// GIVE TOKENS ACK.
    pub const GTA: u8 = 22;
    /// ABORT (category 1).
    pub const AB: u8 = 25;
    /// ACTIVITY INTERRUPT (category 2).
    pub const AI: u8 = 25;
    /// ABORT ACCEPT (category 1).
    pub const AA: u8 = 26;
    /// ACTIVITY INTERRUPT ACK (category 2).
    pub const AIA: u8 = 26;
    /// ACTIVITY RESUME.
    pub const AR: u8 = 29;
    /// ACTIVITY END, and MAJOR SYNC POINT, which has a sync type item.
    pub const AE: u8 = 41;
    /// ACTIVITY END ACK.
    pub const AEA: u8 = 42;
    /// ACTIVITY START.
    pub const AS: u8 = 45;
    /// EXCEPTION DATA.
    pub const ED: u8 = 48;
    /// MINOR SYNC POINT.
    pub const MIP: u8 = 49;
    /// MINOR SYNC ACK.
    pub const MIA: u8 = 50;
    /// ACTIVITY DISCARD.
    pub const AD: u8 = 57;
    /// ACTIVITY DISCARD ACK.
    pub const ADA: u8 = 58;

    /// The SPDU's name; of two with one identifier the one that has parameters to get wrong.
    pub fn name(si: u8) -> &'static str {
        match si {
            ER => "EXCEPTION REPORT",
            DT => "GIVE TOKENS or DATA TRANSFER",
            PT => "PLEASE TOKENS",
            FN => "FINISH",
            DN => "DISCONNECT",
            RF => "REFUSE",
            CN => "CONNECT",
            AC => "ACCEPT",
            GTC => "GIVE TOKENS CONFIRM",
            GTA => "GIVE TOKENS ACK",
            AB => "ABORT or ACTIVITY INTERRUPT",
            AA => "ABORT ACCEPT or ACTIVITY INTERRUPT ACK",
            AR => "ACTIVITY RESUME",
            AE => "ACTIVITY END",
            AEA => "ACTIVITY END ACK",
            AS => "ACTIVITY START",
            ED => "EXCEPTION DATA",
            MIP => "MINOR SYNC POINT",
            MIA => "MINOR SYNC ACK",
            AD => "ACTIVITY DISCARD",
            ADA => "ACTIVITY DISCARD ACK",
            _ => "an unknown SPDU",
        }
    }
}

/// Most user data of an SPDU in version 2 (X.225 8.3.1.20); more would overflow a CN.
pub const MAX_USER_DATA: usize = 10_240;

/// Most user data in the ordinary parameter of a CN (X.225 8.3.1.19).
const MAX_ORDINARY_USER_DATA: usize = 512;

/// Highest serial number (X.225 8.3.20.3: six digits).
pub const MAX_SERIAL: u32 = 999_999;

/// Bit of protocol version 1 in the version number parameter.
pub const VERSION_1: u8 = 0x01;

/// Most user data of a CN, AC, RF, FN, DN or PT in version 1 (X.225 8.3.1.19).
pub const MAX_USER_DATA_1: usize = MAX_ORDINARY_USER_DATA;

/// Most user data of an AB in version 1 (X.225 8.3.9.3).
pub const MAX_ABORT_DATA_1: usize = 9;

/// Bit of protocol version 2 in the version number parameter.
pub const VERSION_2: u8 = 0x02;

/// Functional units a CN without the parameter proposes (X.225 8.3.1.16): half-duplex, minor
/// synchronize, activity management, capability data, exceptions.
pub const DEFAULT_REQUIREMENTS: u16 = 0x0349;

/// Bits of the transport disconnect parameter (X.225 8.3.9.1).
pub mod disconnect {
    /// The transport connection is released.
    pub const RELEASED: u8 = 0x01;
    /// User abort.
    pub const USER: u8 = 0x02;
    /// Protocol error.
    pub const PROTOCOL_ERROR: u8 = 0x04;
    /// No reason.
    pub const NO_REASON: u8 = 0x08;
}

/// Bits of a token item (X.225 8.3.16.1).
pub mod token {
    /// Data token.
    pub const DATA: u8 = 0x01;
    /// Synchronize-minor token.
    pub const MINOR: u8 = 0x04;
    /// Major/activity token.
    pub const MAJOR: u8 = 0x10;
}

/// The fault of an SPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A length goes beyond what holds it.
    #[error("a parameter is longer than its SPDU (X.225 8.2)")]
    Truncated,
    /// An SPDU identifier that is unknown here, or wrong in its place.
    #[error("SPDU identifier {0} unknown or out of place (X.225 6.3.7, 8.3)")]
    Identifier(u8),
    /// A parameter value out of range.
    #[error("{} of {} out of range (X.225 8.3)", params::name(*parameter), si::name(*si))]
    Value {
        /// The SPDU.
        si: u8,
        /// The parameter.
        parameter: u8,
    },
    /// A mandatory parameter is missing.
    #[error("{} of {} is missing (X.225 8.3)", params::name(*parameter), si::name(*si))]
    Missing {
        /// The SPDU.
        si: u8,
        /// The parameter.
        parameter: u8,
    },
    /// A parameter that comes once comes again.
    #[error("{} of {} comes twice (X.225 8.2)", params::name(*parameter), si::name(*si))]
    Twice {
        /// The SPDU.
        si: u8,
        /// The parameter.
        parameter: u8,
    },
    /// Octets after an SPDU that stands alone (category 1), or after the second of a TSDU.
    #[error("octets after the last SPDU of basic concatenation (X.225 6.3.7)")]
    Trailing,
    /// Longer than the limit of this implementation.
    #[error("an SPDU other than DT has more than {0} octets, our limit (X.225 6.3.7)")]
    TooLong(usize),
}

/// CONNECT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectSpdu {
    /// Calling reference (the called one is not sent).
    pub reference: ConnectionReference,
    /// Protocol versions proposed: a bit each.
    pub versions: u8,
    /// TSDU maximum size from and to the initiator; zero is unlimited.
    pub tsdu_maximum: Option<(u16, u16)>,
    /// Two bits a token from the data token up: 0 initiator's, 1 responder's, 2 the called user's
    /// choice.
    pub token_setting: u8,
    /// Functional units.
    pub requirements: u16,
    /// Calling session selector.
    pub calling: Option<Bytes>,
    /// Called session selector.
    pub called: Option<Bytes>,
    /// Whether more user data is to follow in CDOs.
    pub overflow: bool,
    /// User data.
    pub user_data: Bytes,
}

/// ACCEPT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptSpdu {
    /// The reference of the CN, echoed.
    pub reference: ConnectionReference,
    /// The version chosen, as a bit; `None` where absent.
    pub version: Option<u8>,
    /// TSDU maximum size; absent means no segmenting.
    pub tsdu_maximum: Option<(u16, u16)>,
    /// Where the tokens left to the called user's choice are.
    pub token_setting: Option<u8>,
    /// Tokens the responder asks for.
    pub please: u8,
    /// Functional units.
    pub requirements: u16,
    /// Responding session selector.
    pub responding: Option<Bytes>,
    /// User data.
    pub user_data: Bytes,
}

/// Segmenting of SSDUs (X.225 8.3.11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enclosure {
    /// Whether the SPDU begins the SSDU.
    pub begin: bool,
    /// Whether it ends it.
    pub end: bool,
}

impl Enclosure {
    /// An SSDU in one SPDU.
    pub const WHOLE: Enclosure = Enclosure { begin: true, end: true };
}

/// An SPDU; of a DT only the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spdu {
    /// CN.
    Connect(ConnectSpdu),
    /// AC.
    Accept(AcceptSpdu),
    /// RF.
    Refuse {
        /// The reference, where echoed.
        reference: ConnectionReference,
        /// Functional units that the responder wants, if present.
        requirements: Option<u16>,
        /// Reason code (8.3.5.10).
        reason: u8,
        /// User data, with reason 2.
        user_data: Bytes,
    },
    /// FN.
    Finish {
        /// Whether the transport connection may be reused.
        keep: bool,
        /// User data.
        user_data: Bytes,
    },
    /// DN.
    Disconnect {
        /// User data.
        user_data: Bytes,
    },
    /// AB.
    Abort {
        /// See [`disconnect`].
        disconnect: u8,
        /// The start of the SPDU in error, up to 9 octets.
        reflect: Bytes,
        /// User data.
        user_data: Bytes,
    },
    /// AA.
    AbortAccept,
    /// DT.
    Data(Enclosure),
    /// GT.
    GiveTokens(u8),
    /// PT.
    PleaseTokens {
        /// Tokens wanted.
        tokens: u8,
        /// User data.
        user_data: Bytes,
    },
    /// GTC.
    GiveControl,
    /// GTA.
    GiveControlAck,
    /// MIP.
    MinorSync {
        /// Serial number.
        serial: u32,
        /// Whether the sender insists on an answer.
        explicit: bool,
    },
    /// MIA.
    MinorSyncAck(u32),
    /// AS.
    ActivityStart(Bytes),
    /// AR.
    ActivityResume(Resume),
    /// AI.
    ActivityInterrupt(ExceptionReason),
    /// AIA.
    ActivityInterruptAck,
    /// AD.
    ActivityDiscard(ExceptionReason),
    /// ADA.
    ActivityDiscardAck,
    /// AE.
    ActivityEnd(u32),
    /// AEA.
    ActivityEndAck(u32),
    /// ED.
    ExceptionData(ExceptionReason),
    /// ER.
    ExceptionReport,
}

/// Where an SPDU stands: after a GT or PT, or alone. It settles what AB and AI share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// First of its TSDU, nothing concatenated.
    Alone,
    /// After a category 0 SPDU.
    Concatenated,
}

impl Spdu {
    /// The TSDU (of a DT, its start): with the category 0 SPDU before it where basic concatenation
    /// asks for one (X.225 6.3.7). Requests are preceded by GT, answers and exceptions by PT.
    pub fn encode_tsdu(&self) -> Vec<u8> {
        let prefix: &[u8] = match self {
            Spdu::Data(_)
            | Spdu::MinorSync { .. }
            | Spdu::ActivityStart(_)
            | Spdu::ActivityResume(_)
            | Spdu::ActivityInterrupt(_)
            | Spdu::ActivityDiscard(_)
            | Spdu::ActivityEnd(_) => &[si::GT, 0],
            Spdu::MinorSyncAck(_)
            | Spdu::ActivityInterruptAck
            | Spdu::ActivityDiscardAck
            | Spdu::ActivityEndAck(_)
            | Spdu::ExceptionData(_)
            | Spdu::ExceptionReport => &[si::PT, 0],
            _ => &[],
        };
        let mut tsdu = prefix.to_vec();
        tsdu.extend_from_slice(&self.encode());
        tsdu
    }

    /// The octets of the SPDU alone.
    pub fn encode(&self) -> Vec<u8> {
        let params = Params::default();
        match self {
            Spdu::Connect(connect) => connect.encode(),
            Spdu::Accept(accept) => accept.encode(),
            Spdu::Refuse { reference, requirements, reason, user_data } => params
                .filled(
                    pi::CONNECTION_IDENTIFIER,
                    &encode_reference(pi::CALLED_REFERENCE, reference).0,
                )
                .put(pi::TRANSPORT_DISCONNECT, &[disconnect::RELEASED])
                .some(pi::REQUIREMENTS, requirements.map(u16::to_be_bytes).as_ref().map(|r| &r[..]))
                .put(pi::REASON, &[&[*reason], user_data.as_ref()].concat())
                .spdu(si::RF),
            Spdu::Finish { keep, user_data } => params
                .put(pi::TRANSPORT_DISCONNECT, &[if *keep { 0 } else { disconnect::RELEASED }])
                .filled(pi::USER_DATA, user_data)
                .spdu(si::FN),
            Spdu::Disconnect { user_data } => params.filled(pi::USER_DATA, user_data).spdu(si::DN),
            Spdu::Abort { disconnect, reflect, user_data } => params
                .put(pi::TRANSPORT_DISCONNECT, &[*disconnect])
                .filled(pi::REFLECT, reflect)
                .filled(pi::USER_DATA, user_data)
                .spdu(si::AB),
            Spdu::AbortAccept => params.spdu(si::AA),
            Spdu::Data(Enclosure::WHOLE) => params.spdu(si::DT),
            Spdu::Data(enclosure) => {
                let item = u8::from(enclosure.begin) | u8::from(enclosure.end) << 1;
                params.put(pi::ENCLOSURE, &[item]).spdu(si::DT)
            }
            Spdu::GiveTokens(tokens) => params.put(pi::TOKEN, &[*tokens]).spdu(si::GT),
            Spdu::PleaseTokens { tokens, user_data } => {
                params.put(pi::TOKEN, &[*tokens]).filled(pi::USER_DATA, user_data).spdu(si::PT)
            }
            Spdu::GiveControl => params.spdu(si::GTC),
            Spdu::GiveControlAck => params.spdu(si::GTA),
            Spdu::MinorSync { serial, explicit } => params
                .some(pi::SYNC_TYPE, (!explicit).then_some(&[1]))
                .serial(*serial)
                .spdu(si::MIP),
            Spdu::MinorSyncAck(serial) => params.serial(*serial).spdu(si::MIA),
            Spdu::ActivityStart(activity) => params.put(pi::ACTIVITY, activity).spdu(si::AS),
            Spdu::ActivityResume(resume) => encode_resume(resume),
            Spdu::ActivityInterrupt(reason) => {
                params.put(pi::REASON, &[*reason as u8]).spdu(si::AI)
            }
            Spdu::ActivityInterruptAck => params.spdu(si::AIA),
            Spdu::ActivityDiscard(reason) => params.put(pi::REASON, &[*reason as u8]).spdu(si::AD),
            Spdu::ActivityDiscardAck => params.spdu(si::ADA),
            Spdu::ActivityEnd(serial) => params.serial(*serial).spdu(si::AE),
            Spdu::ActivityEndAck(serial) => params.serial(*serial).spdu(si::AEA),
            Spdu::ExceptionData(reason) => params.put(pi::REASON, &[*reason as u8]).spdu(si::ED),
            Spdu::ExceptionReport => params.spdu(si::ER),
        }
    }

    /// Reads one SPDU and gives what follows it.
    ///
    /// # Errors
    /// [`Error`] names the parameter.
    pub fn decode(octets: &[u8], place: Place) -> Result<(Spdu, &[u8]), Error> {
        let (identifier, parameters, rest) = take(octets)?;
        let found = Found::read(identifier, parameters)?;
        let enclosure = found.enclosure;
        let spdu = match (identifier, place) {
            (si::CN, Place::Alone) => Spdu::Connect(found.connect()?),
            (si::AC, Place::Alone) => Spdu::Accept(found.accept()?),
            (si::RF, Place::Alone) => found.refuse(),
            (si::FN, Place::Alone) => Spdu::Finish {
                keep: found.disconnect.is_some_and(|bits| bits & disconnect::RELEASED == 0),
                user_data: found.user_data(),
            },
            (si::DN, Place::Alone) => Spdu::Disconnect { user_data: found.user_data() },
            (si::AB, Place::Alone) => Spdu::Abort {
                disconnect: found.disconnect.unwrap_or(disconnect::RELEASED),
                reflect: Bytes::copy_from_slice(found.reflect),
                user_data: found.user_data(),
            },
            (si::AA, Place::Alone) => Spdu::AbortAccept,
            (si::GTC, _) => Spdu::GiveControl,
            (si::GTA, _) => Spdu::GiveControlAck,
            (si::GT, Place::Alone) => Spdu::GiveTokens(found.tokens),
            (si::PT, Place::Alone) => {
                Spdu::PleaseTokens { tokens: found.tokens, user_data: found.user_data() }
            }
            (si::DT, Place::Concatenated) => Spdu::Data(found.enclosure),
            (si::AI, Place::Concatenated) => Spdu::ActivityInterrupt(found.reason()),
            (si::AIA, Place::Concatenated) => Spdu::ActivityInterruptAck,
            (si::MIP, _) => Spdu::MinorSync { serial: found.serial()?, explicit: found.explicit },
            (si::MIA, _) => Spdu::MinorSyncAck(found.serial()?),
            (si::AS, _) => Spdu::ActivityStart(found.activity()?),
            (si::AR, _) => Spdu::ActivityResume(found.resume()?),
            (si::AD, _) => Spdu::ActivityDiscard(found.reason()),
            (si::ADA, _) => Spdu::ActivityDiscardAck,
            (si::AE, _) if !found.sync_type => Spdu::ActivityEnd(found.serial()?),
            (si::AEA, _) => Spdu::ActivityEndAck(found.serial()?),
            (si::ED, _) => Spdu::ExceptionData(found.reason()),
            (si::ER, _) => Spdu::ExceptionReport,
            _ => return Err(Error::Identifier(identifier)),
        };
        // Only DTs are put together again; nothing else is segmented unless we agree to it.
        if !matches!(spdu, Spdu::Data(_)) && enclosure != Enclosure::WHOLE {
            return Err(Error::Value { si: identifier, parameter: pi::ENCLOSURE });
        }
        Ok((spdu, rest))
    }
}

impl ConnectSpdu {
    fn encode(&self) -> Vec<u8> {
        let sizes = self.tsdu_maximum.map(encode_sizes);
        let accept = Params::default()
            .put(pi::PROTOCOL_OPTIONS, &[0])
            .some(pi::TSDU_MAXIMUM, sizes.as_ref().map(|sizes| &sizes[..]))
            .put(pi::VERSION, &[self.versions])
            .put(pi::TOKEN_SETTING, &[self.token_setting]);
        let user_data = if self.user_data.len() <= MAX_ORDINARY_USER_DATA {
            pi::USER_DATA
        } else {
            pi::EXTENDED_USER_DATA
        };
        Params::default()
            .filled(
                pi::CONNECTION_IDENTIFIER,
                &encode_reference(pi::CALLING_REFERENCE, &self.reference).0,
            )
            .put(pi::CONNECT_ACCEPT, &accept.0)
            .put(pi::REQUIREMENTS, &self.requirements.to_be_bytes())
            .some(pi::CALLING_SELECTOR, self.calling.as_deref())
            .some(pi::CALLED_SELECTOR, self.called.as_deref())
            .some(pi::DATA_OVERFLOW, self.overflow.then_some(&[1][..]))
            .filled(user_data, &self.user_data)
            .spdu(si::CN)
    }
}

impl AcceptSpdu {
    fn encode(&self) -> Vec<u8> {
        let sizes = self.tsdu_maximum.map(encode_sizes);
        let accept = Params::default()
            .put(pi::PROTOCOL_OPTIONS, &[0])
            .some(pi::TSDU_MAXIMUM, sizes.as_ref().map(|sizes| &sizes[..]))
            .some(pi::VERSION, self.version.as_ref().map(std::slice::from_ref))
            .some(pi::TOKEN_SETTING, self.token_setting.as_ref().map(std::slice::from_ref));
        Params::default()
            .filled(
                pi::CONNECTION_IDENTIFIER,
                &encode_reference(pi::CALLED_REFERENCE, &self.reference).0,
            )
            .put(pi::CONNECT_ACCEPT, &accept.0)
            .some(pi::TOKEN, (self.please != 0).then_some(std::slice::from_ref(&self.please)))
            .put(pi::REQUIREMENTS, &self.requirements.to_be_bytes())
            .some(pi::CALLED_SELECTOR, self.responding.as_deref())
            .filled(pi::USER_DATA, &self.user_data)
            .spdu(si::AC)
    }
}

fn encode_sizes((from, to): (u16, u16)) -> [u8; 4] {
    let ([a, b], [c, d]) = (from.to_be_bytes(), to.to_be_bytes());
    [a, b, c, d]
}

fn encode_reference(user: u8, reference: &ConnectionReference) -> Params {
    Params::default()
        .filled(user, &reference.user)
        .filled(pi::COMMON_REFERENCE, &reference.common)
        .filled(pi::ADDITIONAL_REFERENCE, &reference.additional)
}

fn encode_resume(resume: &Resume) -> Vec<u8> {
    let linking = match &resume.old_reference {
        Some(reference) => encode_reference(pi::CALLING_REFERENCE, reference),
        None => Params::default(),
    };
    let linking = linking.put(pi::ACTIVITY, &resume.old_activity).serial(resume.serial);
    Params::default().put(pi::LINKING, &linking.0).put(pi::ACTIVITY, &resume.activity).spdu(si::AR)
}

#[cfg(test)]
mod tests;
