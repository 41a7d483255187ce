//! What RTTR APDUs of one activity hold: an EXTERNAL, whose APDU goes to the user as it comes; or the APDU itself, in
//! X.410 mode.

use crate::presentation::service::Contexts;
use crate::raw::{BerEvent, Contents, RawReader};
use base::ber::{Class, Error, Fault, Field, Header, Tag, universal as u};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Where in the EXTERNAL (X.690 8.18) we are.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum At {
    /// Before it, or between members before the encoding.
    Members,
    /// Inside the direct reference or the descriptor, which are not used here.
    Skipped,
    /// Inside the indirect reference.
    Identifier(SmallVec<[u8; 8]>),
    /// Inside the encoding.
    Value(Contents),
    /// After it.
    Tail,
}

/// How a transfer goes in its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Form {
    /// In normal mode: an EXTERNAL, cut into OCTET STRINGs.
    External,
    /// In X.410 mode: the APDU, before its first octet has come.
    Apdu,
    /// The APDU, cut.
    Bare,
    /// The APDU, cut into OCTET STRINGs.
    Wrapped,
}

/// A transfer that is being received.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Inflow {
    form: Form,
    /// Reads the EXTERNAL, or the APDU.
    external: RawReader,
    at: At,
    /// Octets taken in all, over all attempts.
    received: u64,
    /// Offset of the next octet to come: less than `received` while a resumed sender repeats itself.
    position: u64,
    /// Sum of the octets taken in all.
    sum: u32,
    /// Sum of the octets before `position`, while a resumed sender repeats itself.
    again: u32,
    /// Octets the user was given.
    user: u64,
    /// Whether the user was given the last.
    ended: bool,
}

impl Inflow {
    pub(super) fn new(form: Form) -> Inflow {
        Inflow {
            form,
            external: RawReader::new(),
            at: At::Members,
            received: 0,
            position: 0,
            sum: 0,
            again: 0,
            user: 0,
            ended: false,
        }
    }

    /// Whether what comes is cut into OCTET STRINGs. The first octet of an APDU is another tag, and shows which
    /// of the two a peer sends in X.410 mode.
    pub(super) fn is_wrapped(&mut self, first: u8) -> bool {
        if self.form == Form::Apdu {
            self.form = if matches!(first, 0x04 | 0x24) { Form::Wrapped } else { Form::Bare };
        }
        self.form != Form::Bare
    }

    /// Whether there is an EXTERNAL: in normal mode.
    pub(super) fn is_framed(&self) -> bool {
        self.form == Form::External
    }

    /// Whether its octets come as they are.
    pub(super) fn is_bare(&self) -> bool {
        self.form == Form::Bare
    }

    /// Offset of the next octet to come.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Octets the user was given.
    pub(super) fn user_octets(&self) -> u64 {
        self.user
    }

    /// Octets taken in all.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Sum of the octets before the next one to come.
    pub(super) fn sum(&self) -> u32 {
        if self.position < self.received { self.again } else { self.sum }
    }

    /// The sender goes on from `offset`, before which all octets have this sum: what was taken beyond it comes again and
    /// is dropped.
    pub(super) fn rewind(&mut self, offset: u64, sum: u32) {
        (self.position, self.again) = (offset, sum);
    }

    /// Whether all that came again so far was as before: a sender whose content cannot be read fills up what it has
    /// announced, and may be cut off before it discards the activity.
    pub(super) fn is_as_before(&self) -> bool {
        self.position != self.received || self.again == self.sum
    }

    /// Whether the EXTERNAL is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.external.is_done() && self.position >= self.received && self.is_as_before()
    }

    /// Takes octets of an RTTR; `out` gets the user's, and whether they are the last.
    pub(super) fn push(
        &mut self,
        mut input: Bytes,
        contexts: &Contexts,
        mut out: impl FnMut(Bytes, bool),
    ) -> Result<(), Error> {
        if !self.is_as_before() {
            return Ok(());
        }
        let repeated = usize::try_from(self.received - self.position.min(self.received))
            .unwrap_or(usize::MAX)
            .min(input.len());
        let came_again = input.split_to(repeated);
        self.again = added(self.again, &came_again);
        self.position += repeated as u64;
        if !self.is_as_before() {
            return Ok(());
        }
        if !input.is_empty() {
            self.sum = added(self.sum, &input);
            self.again = self.sum;
        }
        self.position += input.len() as u64;
        self.received = self.received.max(self.position);
        if self.form != Form::External {
            return self.apdu(input, out).field("APDU");
        }
        loop {
            if let At::Value(contents) = self.at {
                let user = &mut self.user;
                // The last piece is passed on only once the end is known, so one piece is kept back.
                let mut kept: Option<Bytes> = None;
                let ended = self
                    .external
                    .contents(1, contents, &mut input, |piece| {
                        *user += piece.len() as u64;
                        if let Some(earlier) = kept.replace(piece) {
                            out(earlier, false);
                        }
                    })
                    .field("EXTERNAL")?;
                if ended {
                    self.ended = true;
                    out(kept.unwrap_or_default(), true);
                    self.at = At::Tail;
                } else {
                    if let Some(piece) = kept {
                        out(piece, false);
                    }
                    return Ok(());
                }
            }
            if self.external.is_done() && !input.is_empty() {
                return Err(Fault::Trailing).field("EXTERNAL");
            }
            match self.external.next(&mut input).field("EXTERNAL")? {
                None => return Ok(()),
                Some(event) => self.event(event, contexts).field("EXTERNAL")?,
            }
        }
    }

    /// Takes octets of an APDU, all of which are the user's.
    fn apdu(&mut self, mut input: Bytes, mut out: impl FnMut(Bytes, bool)) -> Result<(), Error> {
        let whole = input.clone();
        while !self.ended && !input.is_empty() {
            match self.at {
                At::Value(contents) => {
                    self.ended = self.external.contents(0, contents, &mut input, |_| ())?;
                }
                _ => match self.external.next(&mut input)? {
                    None => {}
                    Some(BerEvent::Begin { header, .. }) if header.constructed => {
                        self.at = At::Value(Contents::Elements);
                        // It may be empty.
                        self.ended =
                            self.external.contents(0, Contents::Elements, &mut input, |_| ())?;
                    }
                    Some(BerEvent::Begin { header, .. }) => {
                        return Err(Fault::Unexpected(header.tag).into());
                    }
                    Some(_) => return Err(Fault::Truncated.into()),
                },
            }
        }
        if !input.is_empty() {
            return Err(Fault::Trailing.into());
        }
        if !whole.is_empty() {
            self.user += whole.len() as u64;
            out(whole, self.ended);
        }
        Ok(())
    }

    fn event(&mut self, event: BerEvent, contexts: &Contexts) -> Result<(), Error> {
        match (event, &mut self.at) {
            (BerEvent::Begin { header, depth: 0 }, _) => {
                if header.tag != u::EXTERNAL || !header.constructed {
                    return Err(Fault::Unexpected(header.tag).into());
                }
            }
            (BerEvent::Begin { header, depth: 1 }, At::Members) => self.at = member(&header)?,
            (BerEvent::Data(data), At::Identifier(octets)) => {
                if octets.len() + data.len() > 8 {
                    return Err(Fault::Value("INTEGER")).field("indirect-reference");
                }
                octets.extend_from_slice(&data);
            }
            (BerEvent::End { depth: 1 }, At::Identifier(octets)) => {
                let id = crate::presentation::integer(octets).field("indirect-reference")?;
                if !contexts.contains(id) {
                    return Err(Fault::Value("a context not defined")).field("indirect-reference");
                }
                self.at = At::Members;
            }
            (BerEvent::Data(_), At::Skipped) => {}
            (BerEvent::End { depth: 1 }, At::Skipped) => self.at = At::Members,
            (BerEvent::End { depth: 0 }, At::Tail) => {}
            (BerEvent::Begin { header, .. }, _) => return Err(Fault::Unexpected(header.tag).into()),
            (BerEvent::Data(_) | BerEvent::End { .. }, _) => return Err(Fault::Truncated.into()),
        }
        Ok(())
    }
}

/// A sum with further octets.
fn added(sum: u32, octets: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(sum);
    hasher.update(octets);
    hasher.finalize()
}

fn member(header: &Header) -> Result<At, Error> {
    Ok(match (header.tag, header.constructed) {
        (u::OID | u::OBJECT_DESCRIPTOR, false) => At::Skipped,
        (u::INTEGER, false) => At::Identifier(SmallVec::new()),
        (Tag { class: Class::Context, number: 0 }, true) => At::Value(Contents::Elements),
        (Tag { class: Class::Context, number: 1 }, _) => At::Value(Contents::OctetString),
        (Tag { class: Class::Context, number: 2 }, _) => At::Value(Contents::BitString),
        (other, _) => return Err(Fault::Unexpected(other).into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts() -> Contexts {
        Contexts(vec![(5, crate::profiles::abstract_syntax::mtse())])
    }

    fn feed(inflow: &mut Inflow, octets: &[u8], got: &mut Vec<u8>) -> Result<bool, Error> {
        let mut ended = false;
        inflow.push(Bytes::copy_from_slice(octets), &contexts(), |b, last| {
            got.extend_from_slice(&b);
            ended |= last;
        })?;
        Ok(ended)
    }

    const APDU: [u8; 10] = [0xa0, 0x80, 0x31, 0x80, 0x05, 0, 0, 0, 0, 0];

    fn external(indefinite: bool) -> Vec<u8> {
        let mut wire = if indefinite {
            vec![0x28, 0x80, 6, 2, 0x51, 1, 2, 1, 5, 7, 1, b'x', 0xa0, 0x80]
        } else {
            vec![0x28, 15, 2, 1, 5, 0xa0, 10]
        };
        wire.extend(APDU);
        if indefinite {
            wire.extend([0; 4]);
        }
        wire
    }

    #[test]
    fn the_apdu_comes_out_at_every_cut() {
        for indefinite in [false, true] {
            let wire = external(indefinite);
            for cut in 0..=wire.len() {
                let (mut inflow, mut got) = (Inflow::new(Form::External), Vec::new());
                let first = feed(&mut inflow, &wire[..cut], &mut got).unwrap();
                let second = feed(&mut inflow, &wire[cut..], &mut got).unwrap();
                assert!(first ^ second, "cut at {cut}: the end is indicated once");
                assert!(inflow.is_complete() && inflow.ended);
                assert_eq!((got, inflow.user_octets()), (APDU.to_vec(), 10));
            }
        }
    }

    #[test]
    fn what_comes_again_otherwise_is_noticed_before_anything_new_is_taken() {
        let wire = external(false);
        let (received, confirmed) = (wire.len() - 1, 3);
        for at in confirmed..received {
            let (mut inflow, mut got) = (Inflow::new(Form::External), Vec::new());
            feed(&mut inflow, &wire[..received], &mut got).unwrap();
            inflow.rewind(confirmed as u64, added(0, &wire[..confirmed]));
            let mut other = wire.clone();
            other[at] ^= 1;
            let before = got.len();
            for octet in &other[confirmed..] {
                feed(&mut inflow, &[*octet], &mut got).unwrap();
            }
            assert!(!inflow.is_as_before() && !inflow.is_complete(), "{at}");
            assert_eq!(got.len(), before);
        }
    }

    #[test]
    fn what_a_resumed_sender_repeats_is_dropped() {
        let wire = external(true);
        for received in 0..=wire.len() {
            for confirmed in 0..=received {
                let (mut inflow, mut got) = (Inflow::new(Form::External), Vec::new());
                feed(&mut inflow, &wire[..received], &mut got).unwrap();
                inflow.rewind(confirmed as u64, added(0, &wire[..confirmed]));
                assert!(confirmed == received || !inflow.is_complete());
                for octet in &wire[confirmed..] {
                    feed(&mut inflow, &[*octet], &mut got).unwrap();
                }
                assert!(inflow.is_complete());
                assert_eq!(got, APDU);
            }
        }
    }

    #[test]
    fn a_bare_apdu_is_the_users_octet_for_octet() {
        for apdu in [&APDU[..], &[0xa1, 3, 0x31, 1, 0], &[0xa2, 0]] {
            for cut in 0..=apdu.len() {
                let (mut inflow, mut got) = (Inflow::new(Form::Apdu), Vec::new());
                assert!(!inflow.is_wrapped(apdu[0]));
                let first = feed(&mut inflow, &apdu[..cut], &mut got).unwrap();
                assert_eq!(inflow.is_complete(), first);
                let second = feed(&mut inflow, &apdu[cut..], &mut got).unwrap();
                assert!(first ^ second, "cut at {cut}: the end is indicated once");
                assert!(inflow.is_complete());
                assert_eq!((&got[..], inflow.user_octets()), (apdu, apdu.len() as u64));
                // A resumed sender repeats some.
                inflow.rewind(cut as u64, added(0, &apdu[..cut]));
                feed(&mut inflow, &apdu[cut..], &mut got).unwrap();
                assert!(inflow.is_complete() && got.len() == apdu.len());
            }
        }
        let mut inflow = Inflow::new(Form::Apdu);
        assert!(inflow.is_wrapped(0x04) && inflow.is_wrapped(0xa0), "the first octet decides");
        let wrong = |octets: &[u8]| {
            feed(&mut Inflow::new(Form::Bare), octets, &mut Vec::new()).unwrap_err().to_string()
        };
        assert_eq!(wrong(&[0xa0, 0, 0]), "APDU: trailing octets");
        assert_eq!(wrong(&[0x02, 1, 0]), "APDU: unexpected [UNIVERSAL 2]");
    }

    #[test]
    fn names_what_is_wrong() {
        let wrong = |octets: &[u8]| {
            feed(&mut Inflow::new(Form::External), octets, &mut Vec::new()).unwrap_err().to_string()
        };
        assert_eq!(wrong(&[0x28, 3, 2, 1, 9]), "indirect-reference: invalid a context not defined");
        assert_eq!(wrong(&[0x30, 0]), "EXTERNAL: unexpected [UNIVERSAL 16]");
        let mut long = external(false);
        long.push(0);
        assert_eq!(wrong(&long), "EXTERNAL: trailing octets");
        assert!(wrong(&[0x28, 3, 2, 1, 5]).contains("EXTERNAL"));
    }
}
