//! What the codecs here share: strings octet for octet, small bit strings, elements kept whole, and the
//! conversion to values that rasn reads and writes.

use base::ber::{Class, Element, Error, Fault, Reader, Tag, Writer, universal};
use bytes::Bytes;
use rasn::types::{Any, Constraints, Identifier, TagTree};
use rasn::{AsnType, Decode, Encode, Encoder};

/// Tags of X.411 that several types use.
pub mod tag {
    use super::Tag;
    /// ORName.
    pub const OR_NAME: Tag = Tag::application(0);
    /// CountryName.
    pub const COUNTRY: Tag = Tag::application(1);
    /// AdministrationDomainName.
    pub const ADMD: Tag = Tag::application(2);
    /// GlobalDomainIdentifier.
    pub const GLOBAL_DOMAIN: Tag = Tag::application(3);
    /// MTSIdentifier.
    pub const MTS_IDENTIFIER: Tag = Tag::application(4);
    /// EncodedInformationTypes.
    pub const EITS: Tag = Tag::application(5);
    /// BuiltInContentType.
    pub const CONTENT_TYPE: Tag = Tag::application(6);
    /// Priority.
    pub const PRIORITY: Tag = Tag::application(7);
    /// PerMessageIndicators.
    pub const PER_MESSAGE_INDICATORS: Tag = Tag::application(8);
    /// TraceInformation.
    pub const TRACE: Tag = Tag::application(9);
    /// ContentIdentifier.
    pub const CONTENT_IDENTIFIER: Tag = Tag::application(10);
}

/// Bounds of X.411 (MTSUpperBounds) that are enforced on input; what merely is longer than a name
/// should be passes, for a relay must not lose a message over it.
pub mod bound {
    /// ub-transfers: elements of a trace.
    pub const TRANSFERS: usize = 512;
    /// ub-redirections.
    pub const REDIRECTIONS: usize = 512;
    /// ub-dl-expansions.
    pub const DL_EXPANSIONS: usize = 512;
    /// ub-recipients.
    pub const RECIPIENTS: usize = 32_767;
}

/// A string's octets, each as the character of the same code: [`write_latin1`] gives them back.
///
/// # Errors
/// A malformed constructed string.
pub fn latin1(e: &Element<'_>) -> Result<String, Error> {
    Ok(e.octets()?.iter().map(|b| char::from(*b)).collect())
}

/// Octets of a string whose characters are codes 0 to 255; others, which no octet can stand for,
/// become `?`.
pub fn latin1_octets(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

/// Writes a string made by [`latin1`].
pub fn write_latin1(w: &mut Writer, tag: Tag, text: &str) {
    w.string(tag, latin1_octets(text));
}

/// A BIT STRING of named bits: bit `n` as `1 << n`, bits above 31 left out.
///
/// # Errors
/// A malformed BIT STRING.
pub fn bits(e: &Element<'_>) -> Result<u32, Error> {
    let bits = e.bits()?;
    Ok((0..32).filter(|n| bits.get(*n)).fold(0, |all, n| all | 1 << n))
}

/// Writes a BIT STRING of named bits, at least `least` of them.
pub fn write_bits(w: &mut Writer, tag: Tag, bits: u32, least: u32) {
    let set: Vec<u32> = (0..32).filter(|n| bits & 1 << n != 0).collect();
    w.named_bits(tag, &set, least);
}

/// The whole element, to be written again as it is.
pub fn keep(e: &Element<'_>) -> Bytes {
    Bytes::copy_from_slice(e.raw)
}

/// What `write` writes, to be kept.
pub(crate) fn written(write: impl FnOnce(&mut Writer)) -> Bytes {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec().into()
}

/// Whole elements, to be written again as they are.
pub fn keep_all(elements: &[Element<'_>]) -> Vec<Bytes> {
    elements.iter().map(keep).collect()
}

/// The one element inside an explicit tag, kept whole.
///
/// # Errors
/// None, or more than one.
pub fn keep_child(e: &Element<'_>) -> Result<Bytes, Error> {
    Ok(keep(&e.only_child()?))
}

/// Writes kept elements.
pub fn write_kept<'a>(w: &mut Writer, elements: impl IntoIterator<Item = &'a Bytes>) {
    for e in elements {
        w.raw(e);
    }
}

/// An element kept whole in a type that rasn derives, under whichever tag it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept(pub Bytes);

impl AsnType for Kept {
    const TAG: rasn::types::Tag = rasn::types::Tag::EOC;
    const TAG_TREE: TagTree = TagTree::Choice(&[]);
}

impl Encode for Kept {
    fn encode_with_tag_and_constraints<'e, E: Encoder<'e>>(
        &self,
        encoder: &mut E,
        _: rasn::types::Tag,
        _: &Constraints,
        identifier: Identifier,
    ) -> Result<(), E::Error> {
        encoder.encode_any(Self::TAG, &Any::new(self.0.to_vec()), identifier).map(drop)
    }
}

/// The value that rasn makes of an element. The caller has checked length, depth and form.
///
/// # Errors
/// The type has no such tag.
pub fn decode<T: Decode>(e: &Element<'_>) -> Result<T, Error> {
    rasn::ber::decode(e.raw).map_err(|_| Fault::Unexpected(e.tag).into())
}

/// An INTEGER that rasn reads, under whichever tag it came.
///
/// # Errors
/// As [`Element::check_integer`], which rasn would let pass in part.
pub fn integer<T: Decode>(e: &Element<'_>) -> Result<T, Error> {
    e.check_integer()?;
    // Under INTEGER's own tag: the caller has checked the tag, and rasn has no [UNIVERSAL 0].
    let mut w = Writer::new();
    w.primitive(universal::INTEGER, e.content);
    rasn::ber::decode(w.as_slice()).map_err(|_| Fault::Unexpected(e.tag).into())
}

/// Writes a value with rasn.
pub fn encode(w: &mut Writer, value: &impl Encode) {
    let octets = rasn::ber::encode(value);
    // It refuses values outside of constraints, and derived SETs with members without a tag.
    debug_assert!(octets.is_ok(), "no type here has a constraint or such a SET");
    w.append(octets.unwrap_or_default());
}

/// Every element inside, read by `read`, at most `most` of them.
///
/// # Errors
/// Of `read`; more than `most`.
pub fn list<T>(
    e: &Element<'_>,
    most: usize,
    read: impl Fn(&Element<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut children = e.children()?;
    let mut all = Vec::new();
    while let Some(child) = children.next()? {
        if all.len() == most {
            return Err(Fault::TooMany(most as u64).into());
        }
        all.push(read(&child)?);
    }
    Ok(all)
}

/// Whether a universal tag is a string type's: OCTET STRING, UTF8String and the character strings.
pub(crate) fn is_string(tag: Tag) -> bool {
    tag.class == Class::Universal && matches!(tag.number, 4 | 12 | 18..=22 | 25..=28 | 30)
}

/// The next element, which must be a universal string of any type.
///
/// # Errors
/// None, or something else.
pub(crate) fn next_string<'a>(reader: &mut Reader<'a>) -> Result<Element<'a>, Error> {
    match reader.next()? {
        Some(e) if is_string(e.tag) => Ok(e),
        Some(e) => Err(Fault::Unexpected(e.tag).into()),
        None => Err(Fault::Truncated.into()),
    }
}
