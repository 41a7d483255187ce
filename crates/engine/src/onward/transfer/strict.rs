//! A strict decoder of MTS-APDUs for tests, independent of the codec: it accepts the tags of X.411
//! and the extension-type of one edition, and rejects everything else.

/// The edition of extension-type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edition {
    /// `[0]` explicit, around an INTEGER: `A0 03 02 01 26`.
    Of1988,
    /// `[0]` or `[3]` implicit: `80 01 26`, `83 ...`.
    Of1994,
    /// No extensions, content types by number alone, and reports without content type and encoded information types.
    Of1984,
}

/// An extension: its place, the octets of its type without tag and length, and its value.
pub(crate) type Found = (&'static str, Vec<u8>, Vec<u8>);

/// Why octets are not an MTS-APDU of one edition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StrictError {
    #[error("cut short")]
    ShortLength,
    #[error("cut short: {0:02X?}")]
    Short(Vec<u8>),
    #[error("a long tag {0:02X}")]
    LongTag(u8),
    #[error("no end-of-contents")]
    Endless,
    /// What is wrong with an extension field, and its octets.
    #[error("{0} in extension {1:02X?}")]
    Extension(&'static str, Vec<u8>),
    /// An error at this place.
    #[error("{0}: {1}")]
    At(&'static str, Box<StrictError>),
    #[error("{place}: no SET: {tag:02X}")]
    NoSet { place: &'static str, tag: u8 },
    #[error("{place}: unknown member {tag:02X}")]
    UnknownMember { place: &'static str, tag: u8 },
    #[error("more than an APDU")]
    MoreThanOne,
    #[error("no envelope and content")]
    NoMessage,
    #[error("no report")]
    NoReport,
    #[error("no MTS-APDU: {0:02X}")]
    NoApdu(u8),
}

/// Identifier octet, contents and the whole encoding.
#[derive(Clone, Copy)]
struct Tlv<'a> {
    tag: u8,
    content: &'a [u8],
    raw: &'a [u8],
}

/// All elements of these contents.
fn elements(mut rest: &[u8]) -> Result<Vec<Tlv<'_>>, StrictError> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let e = first(rest)?;
        rest = &rest[e.raw.len()..];
        all.push(e);
    }
    Ok(all)
}

fn first(octets: &[u8]) -> Result<Tlv<'_>, StrictError> {
    let [tag, length, ..] = *octets else { return Err(StrictError::Short(octets.to_vec())) };
    if tag & 0x1f == 0x1f {
        return Err(StrictError::LongTag(tag));
    }
    let (start, end, size) = match length {
        0x80 => {
            // The indefinite form, as a relayed field may have it.
            let mut at = 2;
            while octets.get(at..at + 2) != Some(&[0, 0]) {
                at += first(octets.get(at..).ok_or(StrictError::Endless)?)?.raw.len();
            }
            (2, at, at + 2)
        }
        0..0x80 => (2, 2 + usize::from(length), 2 + usize::from(length)),
        long => {
            let start = 2 + usize::from(long & 0x7f);
            let length = octets.get(2..start).ok_or(StrictError::ShortLength)?;
            let length = length.iter().fold(0, |n, o| n << 8 | usize::from(*o));
            (start, start + length, start + length)
        }
    };
    let content = octets.get(start..end).ok_or_else(|| StrictError::Short(octets.to_vec()))?;
    Ok(Tlv { tag, content, raw: &octets[..size] })
}

/// One field of a SET OF ExtensionField.
fn extension(field: Tlv<'_>, edition: Edition) -> Result<(Vec<u8>, Vec<u8>), StrictError> {
    let bad = |what| Err(StrictError::Extension(what, field.raw.to_vec()));
    if field.tag != 0x30 {
        return bad("no SEQUENCE");
    }
    let members = elements(field.content)?;
    let Some((kind, rest)) = members.split_first() else { return bad("nothing") };
    let number = match (edition, kind.tag) {
        (Edition::Of1988, 0xa0) => match elements(kind.content)?[..] {
            [Tlv { tag: 2, content, .. }] => content,
            _ => return bad("no INTEGER"),
        },
        (Edition::Of1994, 0x80 | 0x83) => kind.content,
        _ => return bad("extension-type of another edition"),
    };
    let value = match rest {
        [] | [Tlv { tag: 0x81, .. }] => &[5, 0][..],
        [value] | [Tlv { tag: 0x81, .. }, value] if value.tag == 0xa2 => value.content,
        _ => return bad("another member"),
    };
    if elements(value)?.len() != 1 {
        return bad("no single value");
    }
    Ok((number.to_vec(), value.to_vec()))
}

struct Walk {
    edition: Edition,
    found: Vec<Found>,
}

impl Walk {
    fn extensions(&mut self, place: &'static str, set: Tlv<'_>) -> Result<(), StrictError> {
        for field in elements(set.content)? {
            let (kind, value) =
                extension(field, self.edition).map_err(|e| StrictError::At(place, Box::new(e)))?;
            self.found.push((place, kind, value));
        }
        Ok(())
    }

    /// The members of a SET: extensions are collected; others must have these tags.
    fn set(
        &mut self,
        place: &'static str,
        set: Tlv<'_>,
        extensions: u8,
        others: &[u8],
    ) -> Result<(), StrictError> {
        if set.tag & 0x20 == 0 {
            return Err(StrictError::NoSet { place, tag: set.tag });
        }
        for member in elements(set.content)? {
            if member.tag == extensions && self.edition != Edition::Of1984 {
                self.extensions(place, member)?;
            } else if !others.contains(&member.tag) {
                return Err(StrictError::UnknownMember { place, tag: member.tag });
            }
        }
        Ok(())
    }

    fn recipients(
        &mut self,
        place: &'static str,
        of: Tlv<'_>,
        tag: u8,
        extensions: u8,
        others: &[u8],
    ) -> Result<(), StrictError> {
        for list in elements(of.content)?.into_iter().filter(|e| e.tag == tag) {
            for recipient in elements(list.content)? {
                self.set(place, recipient, extensions, others)?;
            }
        }
        Ok(())
    }
}

const RECIPIENT: &[u8] = &[0x60, 0x80, 0x81, 0x82];

/// Decodes a whole APDU, with its content; returns all extensions in it.
pub(crate) fn walk(apdu: &[u8], edition: Edition) -> Result<Vec<Found>, StrictError> {
    let mut walk = Walk { edition, found: Vec::new() };
    let [apdu] = elements(apdu)?[..] else { return Err(StrictError::MoreThanOne) };
    // Members of both message and probe envelopes, with the recipient list.
    let mut common = vec![0x64, 0x60, 0x65, 0x46, 0x06, 0x4a, 0x48, 0x80, 0xa1, 0xa2, 0x69];
    let mut of_report = vec![0x64, 0x69, 0x65, 0x46, 0x06, 0x4a, 0x81, 0xa2, 0xa0];
    if edition == Edition::Of1984 {
        common.retain(|tag| *tag != 0x06);
        of_report.retain(|tag| ![0x65, 0x46, 0x06].contains(tag));
    }
    match apdu.tag {
        0xa0 => {
            let parts = elements(apdu.content)?;
            let [envelope, Tlv { tag: 0x04, .. }] = parts[..] else {
                return Err(StrictError::NoMessage);
            };
            let others = [&common[..], &[0x47]].concat();
            walk.set("message", envelope, 0xa3, &others)?;
            walk.recipients("message recipient", envelope, 0xa2, 0xa3, RECIPIENT)?;
        }
        0xa2 => {
            walk.set("probe", apdu, 0xa3, &common)?;
            walk.recipients("probe recipient", apdu, 0xa2, 0xa3, RECIPIENT)?;
        }
        0xa1 => {
            let parts = elements(apdu.content)?;
            let [envelope, content] = parts[..] else { return Err(StrictError::NoReport) };
            walk.set("report", envelope, 0xa1, &[0x64, 0x60, 0x69])?;
            walk.set("report content", content, 0xa3, &of_report)?;
            let others = [0xa0, 0x81, 0x82, 0xa3, 0xa4, 0x85];
            walk.recipients("report recipient", content, 0xa0, 0xa6, &others)?;
        }
        other => return Err(StrictError::NoApdu(other)),
    }
    Ok(walk.found)
}
