//! What the codecs here share: values under explicit tags, and lists of them.

use base::ber::{Element, Error, Fault, Oid, Tag, Writer, universal as u};
use p1::Time;
use p1::wire::{latin1, write_latin1};

/// GeneralString.
pub(crate) const GENERAL_STRING: Tag = Tag::universal(27);

/// Checks the tag of an element.
pub(crate) fn require<'a, 'e>(e: &'e Element<'a>, tag: Tag) -> Result<&'e Element<'a>, Error> {
    if e.tag == tag { Ok(e) } else { Err(Fault::Unexpected(e.tag).into()) }
}

/// The element under an explicit tag, which must have this one.
pub(crate) fn inner<'a>(e: &Element<'a>, tag: Tag) -> Result<Element<'a>, Error> {
    let child = e.only_child()?;
    require(&child, tag)?;
    Ok(child)
}

/// `[n] INTEGER`.
pub(crate) fn integer(e: &Element<'_>) -> Result<i64, Error> {
    inner(e, u::INTEGER)?.integer()
}

/// `[n] BOOLEAN`.
pub(crate) fn boolean(e: &Element<'_>) -> Result<bool, Error> {
    inner(e, u::BOOLEAN)?.boolean()
}

/// `[n] OBJECT IDENTIFIER`.
pub(crate) fn oid(e: &Element<'_>) -> Result<Oid, Error> {
    inner(e, u::OID)?.oid()
}

/// `[n] BIT STRING`, bit `n` as `1 << n`.
pub(crate) fn bits(e: &Element<'_>) -> Result<u32, Error> {
    p1::wire::bits(&inner(e, u::BIT_STRING)?)
}

/// `[n] UTCTime`.
pub(crate) fn time(e: &Element<'_>) -> Result<Time, Error> {
    Time::read(&inner(e, u::UTC_TIME)?)
}

/// `[n]` of a string of this type, each octet as the character of the same code.
pub(crate) fn text(e: &Element<'_>, tag: Tag) -> Result<String, Error> {
    latin1(&inner(e, tag)?)
}

/// An OBJECT IDENTIFIER of its own.
pub(crate) fn bare_oid(e: &Element<'_>) -> Result<Oid, Error> {
    require(e, u::OID)?.oid()
}

/// `[n]` of a SET OF or SEQUENCE OF, at most `most` of them.
pub(crate) fn list<T>(
    e: &Element<'_>,
    tag: Tag,
    most: usize,
    read: impl Fn(&Element<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    p1::wire::list(&inner(e, tag)?, most, read)
}

/// `[n] SET OF OBJECT IDENTIFIER`, or a SEQUENCE OF.
pub(crate) fn oids(e: &Element<'_>, tag: Tag) -> Result<Vec<Oid>, Error> {
    list(e, tag, crate::limits::MAX_IDENTIFIERS, bare_oid)
}

/// Writes an explicit tag around what `body` writes.
pub(crate) fn explicit(w: &mut Writer, n: u32, body: impl FnOnce(&mut Writer)) {
    w.constructed(Tag::context(n), body);
}

/// Writes `[n] INTEGER`.
pub(crate) fn write_integer(w: &mut Writer, n: u32, value: i64) {
    explicit(w, n, |w| w.integer(u::INTEGER, value));
}

/// Writes `[n] BOOLEAN`, unless it is the default.
pub(crate) fn write_boolean(w: &mut Writer, n: u32, value: bool, default: bool) {
    if value != default {
        explicit(w, n, |w| w.boolean(u::BOOLEAN, value));
    }
}

/// Writes `[n] OBJECT IDENTIFIER`.
pub(crate) fn write_oid(w: &mut Writer, n: u32, value: &Oid) {
    explicit(w, n, |w| w.oid(u::OID, value));
}

/// Writes `[n] BIT STRING`.
pub(crate) fn write_bits(w: &mut Writer, n: u32, bits: u32) {
    explicit(w, n, |w| p1::wire::write_bits(w, u::BIT_STRING, bits, 1));
}

/// Writes `[n]` of a string.
pub(crate) fn write_text(w: &mut Writer, n: u32, tag: Tag, text: &str) {
    explicit(w, n, |w| write_latin1(w, tag, text));
}

/// Writes `[n]` of a SET OF or SEQUENCE OF, empty ones too.
pub(crate) fn write_list<T>(
    w: &mut Writer,
    n: u32,
    tag: Tag,
    all: &[T],
    write: impl Fn(&T, &mut Writer),
) {
    explicit(w, n, |w| w.constructed(tag, |w| all.iter().for_each(|one| write(one, w))));
}

/// Writes `[n]` of a SET OF or SEQUENCE OF that has a member at least; an empty one is absent.
pub(crate) fn write_some<T>(
    w: &mut Writer,
    n: u32,
    tag: Tag,
    all: &[T],
    write: impl Fn(&T, &mut Writer),
) {
    if !all.is_empty() {
        write_list(w, n, tag, all, write);
    }
}

/// Writes an OBJECT IDENTIFIER of its own.
pub(crate) fn write_bare_oid(value: &Oid, w: &mut Writer) {
    w.oid(u::OID, value);
}

/// Writes `[n] SET OF OBJECT IDENTIFIER`, unless it is empty.
pub(crate) fn write_oids(w: &mut Writer, n: u32, tag: Tag, all: &[Oid]) {
    write_some(w, n, tag, all, write_bare_oid);
}
