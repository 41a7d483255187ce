//! ROSE APDUs as they arrive (X.229 9.1): the members before an argument, result or parameter are
//! collected, the rest is handed on.

use super::pdu::problem;
use crate::api::Problem;
use crate::presentation::integer;
use crate::raw::{BerEvent, Contents, RawReader};
use base::ber::{Class, Fault, Header, Tag, universal as u};
use bytes::Bytes;
use smallvec::SmallVec;

/// The kind of an APDU, reported once all members before the streamed one are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// ROIV.
    Invoke { invoke: i64, linked: Option<i64>, operation: i64 },
    /// RORS.
    Result { invoke: i64 },
    /// ROER.
    Error { invoke: i64, error: i64 },
    /// RORJ.
    Reject { invoke: Option<i64>, problem: Problem },
    /// Octets of the argument, result or parameter.
    Data { bytes: Bytes, last: bool },
    /// An invalid APDU; the rest of it is ignored.
    Bad { invoke: Option<i64>, problem: Problem },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Invoke,
    Result,
    Error,
    Reject,
}

/// The member being collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    InvokeId,
    LinkedId,
    /// Operation or error value; whether it is local (an INTEGER).
    Code {
        local: bool,
    },
    Problem {
        kind: u8,
    },
}

#[derive(Clone, Debug)]
enum At {
    Start,
    /// Between members.
    Between,
    Collect(Member, SmallVec<[u8; 8]>),
    /// Inside what is streamed, up to the end of the element at this depth.
    Stream(usize),
    /// All is reported; the rest has no meaning.
    Done,
}

/// One APDU.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    reader: RawReader,
    pub(super) context: i64,
    kind: Kind,
    at: At,
    /// Depth of the next member: 2 inside the SEQUENCE of a result.
    depth: usize,
    invoke: Option<i64>,
    linked: Option<i64>,
    invoke_seen: bool,
    /// [`Found::Invoke`] was indicated.
    indicated: bool,
}

impl Incoming {
    pub(super) fn new(context: i64) -> Incoming {
        Incoming {
            reader: RawReader::new(),
            context,
            kind: Kind::Invoke,
            at: At::Start,
            depth: 1,
            invoke: None,
            linked: None,
            invoke_seen: false,
            indicated: false,
        }
    }

    /// Takes octets of the APDU.
    pub(super) fn push(&mut self, mut input: Bytes, out: &mut impl FnMut(Found)) {
        loop {
            let step = match self.at {
                At::Done => return,
                At::Stream(depth) => self.stream(depth, &mut input, out),
                _ => match self.reader.next(&mut input) {
                    Ok(None) => return,
                    Ok(Some(event)) => self.event(event, out),
                    Err(_) => Err(problem::MISTYPED_APDU),
                },
            };
            match step {
                Ok(true) => {}
                Ok(false) => return,
                Err(problem) => {
                    self.at = At::Done;
                    out(Found::Bad { invoke: self.invoke, problem });
                }
            }
        }
    }

    /// The invocation that was indicated and whose argument has not ended.
    pub(super) fn invoked(&self) -> Option<i64> {
        self.invoke.filter(|_| self.indicated)
    }

    /// The APDU's octets have ended; whether it was whole.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.at, At::Done)
    }

    fn stream(
        &mut self,
        depth: usize,
        input: &mut Bytes,
        out: &mut impl FnMut(Found),
    ) -> Result<bool, Problem> {
        let mut kept: Option<Bytes> = None;
        let ended = self
            .reader
            .contents(depth, Contents::Elements, input, |piece| {
                if let Some(earlier) = kept.replace(piece) {
                    out(Found::Data { bytes: earlier, last: false });
                }
            })
            .map_err(|_: Fault| problem::MISTYPED_APDU)?;
        if ended {
            out(Found::Data { bytes: kept.unwrap_or_default(), last: true });
            self.at = At::Done;
        } else if let Some(bytes) = kept {
            out(Found::Data { bytes, last: false });
        }
        Ok(false)
    }

    fn event(&mut self, event: BerEvent, out: &mut impl FnMut(Found)) -> Result<bool, Problem> {
        match (event, &mut self.at) {
            (BerEvent::Begin { header, depth: 0 }, At::Start) => {
                self.kind = kind(&header)?;
                self.at = At::Between;
            }
            (BerEvent::Begin { header, depth }, At::Between) if depth == self.depth => {
                return self.member(&header);
            }
            (BerEvent::Data(data), At::Collect(member, octets)) => {
                let global = matches!(member, Member::Code { local: false });
                if !global && octets.len() + data.len() > 8 {
                    return Err(problem::MISTYPED_APDU);
                }
                if !global {
                    octets.extend_from_slice(&data);
                }
            }
            (BerEvent::End { .. }, At::Collect(member, octets)) => {
                let (member, octets) = (*member, std::mem::take(octets));
                self.at = At::Between;
                return self.collected(member, &octets, out);
            }
            // A result without operation value and result.
            (BerEvent::End { depth: 0 }, At::Between)
                if self.kind == Kind::Result && self.invoke_seen && self.depth == 1 =>
            {
                let invoke = self.invoke.ok_or(problem::MISTYPED_APDU)?;
                out(Found::Result { invoke });
                out(Found::Data { bytes: Bytes::new(), last: true });
                self.at = At::Done;
                return Ok(false);
            }
            _ => return Err(problem::MISTYPED_APDU),
        }
        Ok(true)
    }

    fn member(&mut self, header: &Header) -> Result<bool, Problem> {
        let collect = |member| At::Collect(member, SmallVec::new());
        self.at = match (header.tag, self.invoke_seen) {
            (u::INTEGER, false) => collect(Member::InvokeId),
            (u::NULL, false) if self.kind == Kind::Reject => collect(Member::InvokeId),
            (Tag { class: Class::Context, number: 0 }, true) if self.kind == Kind::Invoke => {
                collect(Member::LinkedId)
            }
            (Tag { class: Class::Context, number }, true) if self.kind == Kind::Reject => {
                let kind = u8::try_from(number).ok().filter(|k| *k < 4);
                collect(Member::Problem { kind: kind.ok_or(problem::MISTYPED_APDU)? })
            }
            (u::SEQUENCE, true) if self.kind == Kind::Result && self.depth == 1 => {
                self.depth = 2;
                At::Between
            }
            (u::INTEGER | u::OID, true) if self.kind != Kind::Reject => {
                if self.kind == Kind::Result && self.depth == 1 {
                    return Err(problem::MISTYPED_APDU);
                }
                collect(Member::Code { local: header.tag == u::INTEGER })
            }
            _ => return Err(problem::MISTYPED_APDU),
        };
        if header.constructed && !matches!(self.at, At::Between) {
            return Err(problem::MISTYPED_APDU);
        }
        Ok(true)
    }

    fn collected(
        &mut self,
        member: Member,
        octets: &[u8],
        out: &mut impl FnMut(Found),
    ) -> Result<bool, Problem> {
        let value = |octets| integer(octets).map_err(|_| problem::MISTYPED_APDU);
        match member {
            Member::InvokeId => {
                self.invoke_seen = true;
                // NULL has no contents; only a reject may have it.
                if !(self.kind == Kind::Reject && octets.is_empty()) {
                    self.invoke = Some(value(octets)?);
                }
            }
            Member::LinkedId => self.linked = Some(value(octets)?),
            Member::Code { local } => {
                let invoke = self.invoke.ok_or(problem::MISTYPED_APDU)?;
                let code = if local { Some(value(octets)?) } else { None };
                out(match (self.kind, code) {
                    (Kind::Invoke, Some(operation)) => {
                        Found::Invoke { invoke, linked: self.linked, operation }
                    }
                    (Kind::Invoke, None) => return Err(problem::UNRECOGNISED_OPERATION),
                    (Kind::Error, Some(error)) => Found::Error { invoke, error },
                    (Kind::Error, None) => return Err(problem::UNRECOGNISED_ERROR),
                    (Kind::Result | Kind::Reject, _) => Found::Result { invoke },
                });
                self.indicated = self.kind == Kind::Invoke;
                self.at = At::Stream(self.depth - 1);
            }
            Member::Problem { kind } => {
                let problem = Problem { kind, value: value(octets)? };
                out(Found::Reject { invoke: self.invoke, problem });
                self.at = At::Done;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn kind(header: &Header) -> Result<Kind, Problem> {
    match (header.tag, header.constructed) {
        (Tag { class: Class::Context, number: 1 }, true) => Ok(Kind::Invoke),
        (Tag { class: Class::Context, number: 2 }, true) => Ok(Kind::Result),
        (Tag { class: Class::Context, number: 3 }, true) => Ok(Kind::Error),
        (Tag { class: Class::Context, number: 4 }, true) => Ok(Kind::Reject),
        _ => Err(problem::UNRECOGNISED_APDU),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What comes of the pieces, the data put together.
    fn found(pieces: &[&[u8]]) -> (Vec<Found>, Vec<u8>, usize) {
        let (mut all, mut data, mut ends) = (Vec::new(), Vec::new(), 0);
        let mut incoming = Incoming::new(3);
        for piece in pieces {
            incoming.push(Bytes::copy_from_slice(piece), &mut |f| match f {
                Found::Data { bytes, last } => {
                    data.extend_from_slice(&bytes);
                    ends += usize::from(last);
                }
                other => all.push(other),
            });
        }
        (all, data, ends)
    }

    #[test]
    fn every_apdu_at_every_cut() {
        let reject = Problem { kind: 2, value: 1 };
        let cases: [(&[u8], Found, &[u8], usize); 7] = [
            (
                &[0xa1, 0x80, 2, 1, 5, 0x80, 1, 4, 2, 1, 3, 0x30, 0x80, 0, 0, 0, 0],
                Found::Invoke { invoke: 5, linked: Some(4), operation: 3 },
                &[0x30, 0x80, 0, 0],
                1,
            ),
            (
                &[0xa1, 6, 2, 1, 5, 2, 1, 3],
                Found::Invoke { invoke: 5, linked: None, operation: 3 },
                &[],
                1,
            ),
            (&[0xa2, 10, 2, 1, 5, 0x30, 5, 2, 1, 3, 5, 0], Found::Result { invoke: 5 }, &[5, 0], 1),
            (&[0xa2, 3, 2, 1, 5], Found::Result { invoke: 5 }, &[], 1),
            (&[0xa3, 8, 2, 1, 5, 2, 1, 7, 5, 0], Found::Error { invoke: 5, error: 7 }, &[5, 0], 1),
            (
                &[0xa4, 6, 2, 1, 5, 0x82, 1, 1],
                Found::Reject { invoke: Some(5), problem: reject },
                &[],
                0,
            ),
            (&[0xa4, 5, 5, 0, 0x82, 1, 1], Found::Reject { invoke: None, problem: reject }, &[], 0),
        ];
        for (wire, expected, data, ends) in cases {
            for cut in 0..=wire.len() {
                let got = found(&[&wire[..cut], &wire[cut..]]);
                assert_eq!(got, (vec![expected.clone()], data.to_vec(), ends), "cut at {cut}");
            }
        }
    }

    #[test]
    fn what_cannot_be_taken_is_named() {
        let bad = |wire: &[u8]| match &found(&[wire]).0[..] {
            [Found::Bad { invoke, problem }] => (*invoke, *problem),
            other => panic!("{other:?}"),
        };
        assert_eq!(bad(&[0xa5, 0]), (None, problem::UNRECOGNISED_APDU));
        assert_eq!(bad(&[0xa1, 3, 4, 1, 5]), (None, problem::MISTYPED_APDU));
        assert_eq!(bad(&[0xa1, 3, 2, 1, 5]), (Some(5), problem::MISTYPED_APDU));
        let global = [0xa1, 7, 2, 1, 5, 6, 2, 0x51, 1];
        assert_eq!(bad(&global), (Some(5), problem::UNRECOGNISED_OPERATION));
    }

    proptest! {
        #[test]
        fn any_octets_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            found(&[&bytes]);
        }
    }
}
