//! X.410 (1984) mode: what RTSE stands on where there is neither ACSE nor presentation. Its APDUs are user data of the
//! session's primitives: in the mode parameters of CP and CPA, bare in the others (X.226 8.2, X.228 annex on the mode).
//!
//! It has no states of its own. The tables of session and RTSE, between which it stands, have them; only the end is
//! kept here, after which nothing passes.

use crate::acse;
use crate::api::{Config, Role, Selectors};
use crate::presentation::service::{Contexts, Indication, Request, Value};
use crate::profiles::application_context;
use crate::session::service::{self as session, ConnectionReference};
use crate::session::{is_congestion, refusal};
use crate::shown;
use crate::stack::Above;
use base::ber::{Element, Error, Fault, Field, Header, Reader, Tag, Writer, universal as u};
use bytes::Bytes;
use std::collections::VecDeque;

/// Tags of RTSE's APDUs in normal mode, which are those in which they go through here (X.228 9).
const RTORQ: Tag = Tag::context(16);
const RTOAC: Tag = Tag::context(17);
const RTORJ: Tag = Tag::context(18);
const RTAB: Tag = Tag::context(22);

/// Reason of an S-CONNECT response: rejected by the called SS-user (X.225 8.3.5.10).
const BY_USER: u8 = 2;
/// refuseReason validationFailure (X.228 9).
const VALIDATION_FAILURE: i64 = 2;

/// What stands between session and RTSE.
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    role: Role,
    local: Selectors,
    remote: Selectors,
    /// Those of normal mode: they distinguish RTSE's own APDUs from the user's.
    contexts: Contexts,
    /// That of RTSE's own APDUs.
    context: i64,
    /// An S-DATA has begun to come.
    receiving: bool,
    /// The connection has ended, or was given up.
    over: bool,
    pub(crate) down: VecDeque<session::Request>,
    up: VecDeque<Above>,
}

/// Whether the user data of an S-CONNECT asks for normal mode: a CP with another mode-selector than 0. A CP with 0 is
/// the PConnect of X.410 (1984) octet for octet. The selector is enough, whatever follows it.
pub(crate) fn asks_for_normal_mode(user_data: &[u8]) -> bool {
    let selector = |octets: &[u8]| -> Result<i64, Error> {
        let set = Header::parse(octets)?.ok_or(Fault::Truncated)?;
        let mut members = Reader::new(octets.get(set.size..).unwrap_or_default());
        while let Some(member) = members.next()? {
            if member.tag == Tag::context(0) {
                return member.only_child()?.integer();
            }
        }
        Err(Fault::Missing(Tag::context(0)).into())
    };
    selector(user_data).is_ok_and(|selector| selector != 0)
}

/// The members of an APDU under another tag.
fn tagged(tag: Tag, apdu: &[u8]) -> Result<Bytes, Error> {
    let e = Element::parse(apdu)?;
    let mut w = Writer::new();
    w.constructed(tag, |w| w.raw(e.content));
    Ok(w.into_vec().into())
}

/// CP or CPA: the mode-selector, and the members of an RTORQ or RTOAC as x410-mode-parameters.
fn write_connect(apdu: &[u8]) -> Result<Bytes, Error> {
    let parameters = tagged(Tag::context(1), apdu)?;
    let mut w = Writer::new();
    w.constructed(u::SET, |w| {
        w.constructed(Tag::context(0), |w| w.integer(Tag::context(0), 0));
        w.raw(&parameters);
    });
    Ok(w.into_vec().into())
}

/// The APDU in a CP or CPA of this mode.
fn read_connect(user_data: &[u8], tag: Tag) -> Result<Bytes, Error> {
    let set = Element::parse(user_data)?;
    if set.tag != u::SET {
        return Err(Fault::Unexpected(set.tag).into());
    }
    let mut members = set.children()?;
    while let Some(member) = members.next()? {
        if member.tag == Tag::context(1) {
            return tagged(tag, member.raw);
        }
    }
    Err(Fault::Missing(Tag::context(1))).field("x410-mode-parameters")
}

/// SS-user references are T61Strings in this mode (X.410 1984 4.4.1), OCTET STRINGs inside (X.228 7.1.1.6).
pub(crate) fn in_teletex(reference: &ConnectionReference) -> ConnectionReference {
    let octets = Element::parse(&reference.user).and_then(|e| e.octets());
    let mut w = Writer::new();
    w.string(u::TELETEX_STRING, octets.as_deref().unwrap_or(&reference.user));
    ConnectionReference { user: w.into_vec().into(), ..reference.clone() }
}

impl Direct {
    pub(crate) fn new(config: &Config, role: Role) -> Direct {
        let contexts = config.contexts.iter().map(|c| (c.id, c.abstract_syntax.clone()));
        let contexts = Contexts(contexts.collect());
        Direct {
            role,
            local: config.local.clone(),
            remote: config.remote.clone(),
            context: contexts.id_of(&config.bind_syntax).unwrap_or_default(),
            contexts,
            receiving: false,
            over: false,
            down: VecDeque::new(),
            up: VecDeque::new(),
        }
    }

    pub(crate) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The next thing for RTSE.
    pub(crate) fn poll_up(&mut self) -> Option<Above> {
        self.up.pop_front()
    }

    fn associated(&mut self, indication: acse::Indication) {
        self.up.push_back(Above::Association(indication));
    }

    fn presented(&mut self, indication: Indication) {
        self.up.push_back(Above::Presentation(indication));
    }

    fn value(&self, octets: Bytes) -> Value {
        Value { context: self.context, octets }
    }

    /// What is an A- primitive in normal mode.
    pub(crate) fn associate(&mut self, request: acse::Request) {
        use acse::Request as A;
        if self.over {
            return;
        }
        let down = match request {
            A::Associate { reference, requirements, value } => {
                write_connect(&value.octets).map(|user_data| {
                    session::Request::Connect(session::Connect {
                        calling_selector: self.local.session.clone(),
                        called_selector: self.remote.session.clone(),
                        reference: in_teletex(&reference),
                        requirements,
                        user_data,
                    })
                })
            }
            A::Accept { requirements, value } => write_connect(&value.octets).map(|user_data| {
                session::Request::Accept(session::Accept {
                    responding_selector: self.local.session.clone(),
                    requirements,
                    user_data,
                })
            }),
            A::Reject { value, .. } => {
                self.over = true;
                let value = value.map(|value| value.octets).unwrap_or_default();
                tagged(u::SET, &value).map(|user_data| {
                    session::Request::Refuse(session::Refuse { reason: BY_USER, user_data })
                })
            }
            A::Release => Ok(session::Request::Release { user_data: Bytes::new() }),
            A::ReleaseResponse => {
                self.over = true;
                Ok(session::Request::ReleaseResponse { user_data: Bytes::new() })
            }
            A::Abort(value) => {
                self.over = true;
                let value = value.map(|value| value.octets).unwrap_or_default();
                let user_data = tagged(u::SET, &value).unwrap_or_default();
                Ok(session::Request::Abort { user_data })
            }
        };
        match down {
            Ok(request) => self.down.push_back(request),
            Err(error) => self.fail(format!("rtse: internal error: {error}")),
        }
    }

    /// What is a P- primitive in normal mode. A value of P-DATA is the user data of an S-DATA.
    pub(crate) fn present(&mut self, request: Request) {
        if self.over {
            return;
        }
        match request {
            Request::Data { bytes, last } => {
                if last || !bytes.is_empty() {
                    self.down.push_back(session::Request::Data { bytes, last });
                }
            }
            Request::PleaseTokens(value) => {
                self.down.push_back(session::Request::PleaseTokens { user_data: value.octets });
            }
            Request::Pass(session::Request::ActivityResume(resume)) => {
                let old_reference = resume.old_reference.as_ref().map(in_teletex);
                let resume = session::Resume { old_reference, ..resume };
                self.down.push_back(session::Request::ActivityResume(resume));
            }
            Request::Pass(request) => self.down.push_back(request),
            // The session knows where an SSDU ends, and that one was cut short.
            Request::DataStart { .. } | Request::DataCut => {}
            Request::Connect { .. }
            | Request::Accept { .. }
            | Request::Refuse { .. }
            | Request::Release(_)
            | Request::ReleaseResponse(_)
            | Request::Abort(_) => {
                self.fail("rtse: internal error: a primitive of ACSE".to_owned());
            }
        }
    }

    /// The association ends for a reason that lies outside; the connection below is ended elsewhere.
    pub(crate) fn fail(&mut self, detail: String) {
        if !std::mem::replace(&mut self.over, true) {
            self.associated(acse::Indication::Abort { value: None, detail });
        }
    }

    /// As [`Direct::fail`], with an abort for the peer.
    fn abort(&mut self, detail: String) {
        if !self.over {
            self.down.push_back(session::Request::Abort { user_data: Bytes::new() });
        }
        self.fail(detail);
    }

    /// An S- indication or confirm.
    pub(crate) fn indication(&mut self, indication: session::Indication) {
        use session::Indication as S;
        if self.over {
            return;
        }
        match indication {
            S::Connect(connect) => self.connect(connect),
            S::Accepted(accept) => self.accepted(&accept),
            S::Refused(refuse) => self.refused(&refuse),
            S::Data { bytes, last } => self.data(bytes, last),
            S::TokensPlease { user_data } => {
                let values = (!user_data.is_empty()).then(|| self.value(user_data));
                self.presented(Indication::PleaseTokens(values.into_iter().collect()));
            }
            S::Release { .. } => self.associated(acse::Indication::Release),
            S::Released { .. } => {
                self.over = true;
                self.associated(acse::Indication::Released);
            }
            S::UserAbort { user_data } => self.user_abort(&user_data),
            S::ProviderAbort { reason } => self.fail(reason),
            other => {
                if matches!(other, S::ActivityDiscard(_) | S::ActivityInterrupt(_)) {
                    // They cut an S-DATA short.
                    self.receiving = false;
                }
                self.presented(Indication::Pass(other));
            }
        }
    }

    /// S-CONNECT.indication.
    fn connect(&mut self, connect: session::Connect) {
        let lacking = session::requirements::RTSE & !connect.requirements;
        let rtorq = match read_connect(&connect.user_data, RTORQ).field("CP PPDU") {
            Ok(rtorq) if lacking == 0 && self.role == Role::Responder => rtorq,
            Ok(_) if lacking != 0 => {
                return self.refuse(&format!("session requirements lack {lacking:#06x}"));
            }
            Ok(_) => return self.refuse("S-CONNECT indication to an initiator"),
            Err(error) => return self.refuse(&error.to_string()),
        };
        let value = Some(self.value(rtorq));
        self.associated(acse::Indication::Associate {
            // The only one that there is in this mode.
            application_context: application_context::mts_transfer(),
            session_selector: connect.calling_selector,
            presentation_selector: None,
            reference: connect.reference,
            syntaxes: self.contexts.0.iter().map(|(_, syntax)| syntax.clone()).collect(),
            value,
        });
    }

    fn refuse(&mut self, why: &str) {
        let mut w = Writer::new();
        w.constructed(u::SET, |w| w.integer(Tag::context(0), VALIDATION_FAILURE));
        let user_data = w.into_vec().into();
        self.down
            .push_back(session::Request::Refuse(session::Refuse { reason: BY_USER, user_data }));
        self.fail(format!("x410 mode: refused: {why} (X.226 6.2.5.1)"));
    }

    /// S-CONNECT.confirm, positive.
    fn accepted(&mut self, accept: &session::Accept) {
        let lacking = session::requirements::RTSE & !accept.requirements;
        if lacking != 0 {
            let what = "the peer did not accept requirements";
            return self.abort(format!("x410 mode: {what} {lacking:#06x} (X.226 6.2.5.1)"));
        }
        match read_connect(&accept.user_data, RTOAC).field("CPA PPDU") {
            Ok(rtoac) => {
                let value = Some(self.value(rtoac));
                self.associated(acse::Indication::Accepted(value));
            }
            Err(error) => self.abort(format!("x410 mode: {error} (X.226 6.2.5.1)")),
        }
    }

    /// S-CONNECT.confirm, negative: the members of an RTORJ, where the peer's RTSE refused.
    fn refused(&mut self, refuse: &session::Refuse) {
        self.over = true;
        let value = match &refuse.user_data {
            none if none.is_empty() => None,
            octets => Some(self.value(tagged(RTORJ, octets).unwrap_or_else(|_| octets.clone()))),
        };
        self.associated(acse::Indication::Rejected {
            transient: is_congestion(refuse.reason),
            diagnostic: None,
            value,
            detail: refusal(refuse.reason),
        });
    }

    /// S-DATA.indication, or a piece of it.
    fn data(&mut self, bytes: Bytes, last: bool) {
        if !std::mem::replace(&mut self.receiving, !last) {
            self.presented(Indication::ValueStart { context: self.context });
        }
        if !bytes.is_empty() {
            self.presented(Indication::ValueData(bytes));
        }
        if last {
            self.presented(Indication::ValueEnd);
        }
    }

    /// S-U-ABORT.indication: the members of an RTAB, where the peer's RTSE aborted.
    fn user_abort(&mut self, user_data: &Bytes) {
        self.over = true;
        let detail = match user_data {
            none if none.is_empty() => "session: S-U-ABORT without user data".to_owned(),
            octets => format!("session: S-U-ABORT with {}", shown::value(octets)),
        };
        let value = tagged(RTAB, user_data).ok().map(|rtab| self.value(rtab));
        self.associated(acse::Indication::Abort { value, detail });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The user data of a CONNECT of a foreign MTA.
    const CALL: &[u8] = &[
        0x31, 0x27, 0xA0, 3, 0x80, 1, 0, 0xA1, 0x20, 0x80, 1, 0x3F, 0x82, 1, 1, 0xA3, 0x14, 0xA0,
        0x12, 0xA1, 0x10, 0x80, 4, b'M', b'T', b'A', b'1', 0xA1, 8, 4, 6, b's', b'e', b'c', b'r',
        b'e', b't', 0x84, 2, 0x0C, 0,
    ];

    #[test]
    fn the_mode_is_that_of_the_selector() {
        assert!(asks_for_normal_mode(&[0x31, 5, 0xA0, 3, 0x80, 1, 1]));
        assert!(asks_for_normal_mode(&[0x31, 0x80, 0xA0, 3, 0x80, 1, 1, 0xA2]), "cut short");
        (0..CALL.len()).for_each(|end| assert!(!asks_for_normal_mode(&CALL[..end]), "{end}"));
    }

    #[test]
    fn the_parameters_are_an_rtorq_under_another_tag() {
        let rtorq = read_connect(CALL, RTORQ).unwrap();
        assert_eq!((rtorq[0], &rtorq[2..]), (0xB0, &CALL[9..]));
        assert_eq!(write_connect(&rtorq).unwrap(), CALL);
        let missing = read_connect(&CALL[..7], RTORQ);
        assert!(missing.is_err());
        let none = read_connect(&[0x31, 5, 0xA0, 3, 0x80, 1, 0], RTORQ).unwrap_err();
        assert_eq!(none.to_string(), "x410-mode-parameters: missing [1]");
    }

    #[test]
    fn references_are_teletex_strings() {
        let user = Bytes::from_static(&[4, 2, b'v', b'm']);
        let reference = ConnectionReference { user, ..Default::default() };
        assert_eq!(in_teletex(&reference).user[..], [0x14, 2, b'v', b'm']);
        assert_eq!(in_teletex(&in_teletex(&reference)).user[..], [0x14, 2, b'v', b'm']);
    }
}
