//! Takes TSDUs apart (X.225 6.3.7, basic concatenation): the user information of a DT is handed on
//! as it arrives, every other SPDU is collected first.

use super::pdu::{Enclosure, Error, Place, Spdu, header_length, si};
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

/// Most octets of a TSDU without DT.
pub const LIMIT: usize = 64 * 1024;

/// Octets an ABORT may reflect (X.225 8.3.9.2).
const REFLECTED: usize = 9;

/// Octets of a TSDU kept to be reflected: a GT or PT without parameters may come first.
const FIRST: usize = 2 + REFLECTED;

/// What was found, in the order in which it is to be evaluated: of two concatenated SPDUs the
/// category 2 one comes before the tokens given or asked for with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An SPDU; of a DT the header.
    Spdu(Spdu),
    /// User information of the DT before it.
    Data {
        /// The octets; empty only at the end.
        bytes: Bytes,
        /// Whether they end the SSDU.
        last: bool,
    },
}

/// An SPDU in error, and how it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The fault of the SPDU.
    pub error: Error,
    /// Up to 9 octets of it.
    pub reflect: Bytes,
}

/// Items of one call.
pub type Items = SmallVec<[Item; 3]>;

/// The decoder of one transport connection.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    held: BytesMut,
    /// The first octets of the TSDU, for an ABORT to reflect.
    first: SmallVec<[u8; FIRST]>,
    /// It is a DT whose header they are.
    sealed: bool,
    /// The next octet begins a TSDU.
    ended: bool,
    inside: Inside,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Inside {
    /// Start of a TSDU, or of one that is being collected.
    #[default]
    Collecting,
    /// In the user information of a DT.
    Data { enclosure: Enclosure, prefix: Option<Spdu> },
    /// In a TSDU that was rejected.
    Skipping,
}

impl Decoder {
    /// Takes the next piece of a TSDU.
    ///
    /// # Errors
    /// [`Rejected`], once; the rest of the TSDU is passed over.
    pub fn push(&mut self, bytes: Bytes, last: bool) -> Result<Items, Rejected> {
        if std::mem::replace(&mut self.ended, last) {
            self.first.clear();
            self.sealed = false;
        }
        let room = if self.sealed { 0 } else { FIRST - self.first.len() };
        self.first.extend(bytes.iter().copied().take(room));
        let result = self.piece(bytes, last);
        if result.is_err() {
            self.held.clear();
            self.inside = Inside::Skipping;
        }
        if last {
            self.held.clear();
            self.inside = Inside::Collecting;
        }
        result
    }

    /// How the SPDU that gave the last item begins, up to 9 octets: without the GT or PT before it
    /// that only heralds it.
    pub fn reflected(&self) -> Bytes {
        let spdu = match &*self.first {
            [si::GT | si::PT, 0, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        Bytes::copy_from_slice(spdu.get(..spdu.len().min(REFLECTED)).unwrap_or_default())
    }

    /// Octets held of a TSDU that is being collected.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    fn piece(&mut self, mut bytes: Bytes, last: bool) -> Result<Items, Rejected> {
        let mut items = Items::new();
        if self.inside == Inside::Collecting {
            if !self.held.is_empty() || dt_header(&bytes).is_none() {
                self.held.extend_from_slice(&bytes);
                bytes = self.held.split().freeze();
            }
            match dt_header(&bytes) {
                Some(length) => {
                    // User information is not shown: its length here depends on TCP.
                    self.first.truncate(length);
                    self.sealed = true;
                    let header = bytes.split_to(length);
                    let (enclosure, prefix) = data_header(&header).map_err(reject(&header))?;
                    items.push(Item::Spdu(Spdu::Data(enclosure)));
                    if bytes.is_empty() && last {
                        items.push(Item::Data { bytes: Bytes::new(), last: enclosure.end });
                    }
                    self.inside = Inside::Data { enclosure, prefix };
                }
                None if last => return collected(&bytes).map_err(reject(&bytes)),
                None if bytes.len() > LIMIT => return Err(reject(&bytes)(Error::TooLong(LIMIT))),
                None => {
                    self.held = BytesMut::from(bytes);
                    return Ok(items);
                }
            }
        }
        if let Inside::Data { enclosure, prefix } = &mut self.inside {
            let end = last && enclosure.end;
            let has_data = matches!(items.last(), Some(Item::Data { .. }));
            if !has_data && (!bytes.is_empty() || end) {
                items.push(Item::Data { bytes, last: end });
            }
            if last {
                items.extend(prefix.take().map(Item::Spdu));
            }
        }
        Ok(items)
    }
}

fn reject(octets: &[u8]) -> impl FnOnce(Error) -> Rejected + use<> {
    let shown = octets.get(..octets.len().min(REFLECTED)).unwrap_or_default();
    let reflect = Bytes::copy_from_slice(shown);
    move |error| Rejected { error, reflect }
}

/// Octets before the user information, where `octets` begins with a category 0 SPDU and the whole
/// header of a DT.
fn dt_header(octets: &[u8]) -> Option<usize> {
    if !matches!(octets.first(), Some(&(si::GT | si::PT))) {
        return None;
    }
    let prefix = header_length(octets)?;
    let second = octets.get(prefix..)?;
    if second.first() != Some(&si::DT) {
        return None;
    }
    Some(prefix + header_length(second)?)
}

fn data_header(header: &[u8]) -> Result<(Enclosure, Option<Spdu>), Error> {
    let (prefix, second) = Spdu::decode(header, Place::Alone)?;
    match Spdu::decode(second, Place::Concatenated)? {
        (Spdu::Data(enclosure), _) => Ok((enclosure, tokens(prefix))),
        _ => Err(Error::Identifier(si::DT)),
    }
}

/// A GT or PT that names no token only heralds the SPDU after it (X.225 A.4, note 2).
fn tokens(prefix: Spdu) -> Option<Spdu> {
    match prefix {
        Spdu::GiveTokens(0) | Spdu::PleaseTokens { tokens: 0, .. } => None,
        other => Some(other),
    }
}

/// A whole TSDU without DT.
fn collected(octets: &[u8]) -> Result<Items, Error> {
    let mut items = Items::new();
    let (first, rest) = Spdu::decode(octets, Place::Alone)?;
    if !matches!(first, Spdu::GiveTokens(_) | Spdu::PleaseTokens { .. }) {
        if !rest.is_empty() {
            return Err(Error::Trailing);
        }
        items.push(Item::Spdu(first));
        return Ok(items);
    }
    if !rest.is_empty() {
        let (spdu, after) = Spdu::decode(rest, Place::Concatenated)?;
        if matches!(spdu, Spdu::Data(_)) {
            return Err(Error::Identifier(si::DT));
        }
        // Extended concatenation is never agreed on (protocol options 0).
        if !after.is_empty() {
            return Err(Error::Trailing);
        }
        items.push(Item::Spdu(spdu));
    }
    items.extend(tokens(first).map(Item::Spdu));
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::service::ExceptionReason;
    use proptest::prelude::*;

    /// Items of one TSDU cut at `cuts`, data joined.
    fn items(tsdu: &[u8], cuts: &[usize]) -> Result<Vec<Item>, Rejected> {
        let mut decoder = Decoder::default();
        let mut out: Vec<Item> = Vec::new();
        let mut from = 0;
        for to in cuts.iter().copied().chain([tsdu.len()]) {
            let bytes = Bytes::copy_from_slice(&tsdu[from..to]);
            from = to;
            for item in decoder.push(bytes, to == tsdu.len() && from == to)? {
                if let (Some(Item::Data { bytes: a, last: l }), Item::Data { bytes, last }) =
                    (out.last_mut(), &item)
                {
                    *a = [a.as_ref(), bytes.as_ref()].concat().into();
                    *l = *last;
                    continue;
                }
                out.push(item);
            }
            if to == tsdu.len() {
                break;
            }
        }
        Ok(out)
    }

    fn all_cuts_agree(tsdu: &[u8]) -> Vec<Item> {
        let whole = items(tsdu, &[]).unwrap();
        for a in 0..tsdu.len() {
            for b in a..tsdu.len() {
                assert_eq!(items(tsdu, &[a, b]).unwrap(), whole, "cuts {a} {b} of {tsdu:02X?}");
            }
        }
        whole
    }

    fn data(bytes: &'static [u8], last: bool) -> Item {
        Item::Data { bytes: Bytes::from_static(bytes), last }
    }

    #[test]
    fn data_behind_an_empty_give_tokens() {
        assert_eq!(
            all_cuts_agree(&[1, 0, 1, 0, 0x61, 0x80, 0, 0]),
            [Item::Spdu(Spdu::Data(Enclosure::WHOLE)), data(&[0x61, 0x80, 0, 0], true)]
        );
    }

    #[test]
    fn data_is_handed_on_before_its_tsdu_ends() {
        let mut decoder = Decoder::default();
        let first = decoder.push(Bytes::from_static(&[1, 0, 1, 0, 7]), false).unwrap();
        assert_eq!(first.last(), Some(&data(&[7], false)));
        let rest = decoder.push(Bytes::from(vec![8; 2 * LIMIT]), false).unwrap();
        assert!(
            matches!(&rest[..], [Item::Data { bytes, last: false }] if bytes.len() == 2 * LIMIT)
        );
        assert_eq!(decoder.push(Bytes::new(), true).unwrap()[..], [data(&[], true)]);
    }

    #[test]
    fn segments_of_an_ssdu_end_with_the_marked_one() {
        assert_eq!(
            all_cuts_agree(&[1, 0, 1, 3, 0x19, 1, 1, 9]),
            [Item::Spdu(Spdu::Data(Enclosure { begin: true, end: false })), data(&[9], false)]
        );
        assert_eq!(all_cuts_agree(&[1, 0, 1, 3, 0x19, 1, 2]).last(), Some(&data(&[], true)));
    }

    #[test]
    fn a_token_given_with_data_is_evaluated_after_it() {
        assert_eq!(
            all_cuts_agree(&[1, 3, 0x10, 1, 0x15, 1, 0, 5]),
            [
                Item::Spdu(Spdu::Data(Enclosure::WHOLE)),
                data(&[5], true),
                Item::Spdu(Spdu::GiveTokens(0x15)),
            ]
        );
    }

    #[test]
    fn both_basic_concatenations() {
        assert_eq!(
            all_cuts_agree(&[1, 0, 0x2D, 5, 0x29, 3, 2, 1, 1]),
            [Item::Spdu(Spdu::ActivityStart(Bytes::from_static(&[2, 1, 1])))]
        );
        assert_eq!(
            all_cuts_agree(&[2, 0, 0x2A, 3, 0x2A, 1, b'1']),
            [Item::Spdu(Spdu::ActivityEndAck(1))]
        );
    }

    #[test]
    fn place_distinguishes_abort_from_interrupt() {
        assert!(matches!(
            all_cuts_agree(&[25, 3, 0x11, 1, 3])[..],
            [Item::Spdu(Spdu::Abort { disconnect: 3, .. })]
        ));
        assert_eq!(
            all_cuts_agree(&[1, 0, 25, 3, 0x32, 1, 5]),
            [Item::Spdu(Spdu::ActivityInterrupt(ExceptionReason::LocalError))]
        );
        assert_eq!(all_cuts_agree(&[26, 0]), [Item::Spdu(Spdu::AbortAccept)]);
        assert_eq!(all_cuts_agree(&[2, 0, 26, 0]), [Item::Spdu(Spdu::ActivityInterruptAck)]);
    }

    #[test]
    fn tokens_alone() {
        assert_eq!(all_cuts_agree(&[1, 3, 0x10, 1, 0x15]), [Item::Spdu(Spdu::GiveTokens(0x15))]);
        assert_eq!(
            all_cuts_agree(&[2, 8, 0x10, 1, 0x15, 0xC1, 3, 2, 1, 0]),
            [Item::Spdu(Spdu::PleaseTokens {
                tokens: 0x15,
                user_data: Bytes::from_static(&[2, 1, 0])
            })]
        );
        assert_eq!(all_cuts_agree(&[1, 0]), []);
    }

    #[test]
    fn what_is_collected_is_limited() {
        let mut decoder = Decoder::default();
        assert!(decoder.push(Bytes::from(vec![13; LIMIT]), false).is_ok());
        let error = decoder.push(Bytes::from_static(&[13]), false).unwrap_err();
        assert_eq!(error.error, Error::TooLong(LIMIT));
        assert_eq!(error.reflect.len(), REFLECTED);
        // The rest of that TSDU is passed over, the next one is read.
        assert_eq!(decoder.push(Bytes::from_static(&[1]), true).unwrap().len(), 0);
        assert_eq!(decoder.push(Bytes::from_static(&[26, 0]), true).unwrap().len(), 1);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |tsdu: &[u8]| items(tsdu, &[]).unwrap_err().error;
        assert_eq!(error(&[26, 0, 0]), Error::Trailing);
        assert_eq!(error(&[99, 0]), Error::Identifier(99));
        assert_eq!(error(&[1, 0, 0x2D, 9]), Error::Truncated);
        assert_eq!(error(&[]), Error::Truncated);
        assert_eq!(error(&[1, 0, 0x2D, 0]), Error::Missing { si: 45, parameter: 41 });
        assert_eq!(error(&[1, 0, 0x31, 3, 0x2A, 1, b'x']), Error::Value { si: 49, parameter: 42 });
    }

    proptest! {
        #[test]
        fn garbage_never_panics_and_cuts_do_not_matter(
            start in proptest::sample::select(vec![&[1u8, 0][..], &[2, 0], &[1, 3, 0x10, 1, 4], &[]]),
            octets in proptest::collection::vec(any::<u8>(), 1..80),
            cut in 0usize..80,
        ) {
            let tsdu = [start, &octets].concat();
            let whole = items(&tsdu, &[]);
            let cut = items(&tsdu, &[cut.min(tsdu.len() - 1)]);
            match (whole, cut) {
                (Ok(whole), Ok(cut)) => prop_assert_eq!(whole, cut),
                (whole, cut) => prop_assert_eq!(whole.is_err(), cut.is_err()),
            }
        }
    }
}
