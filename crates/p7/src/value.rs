//! A value of any type, kept as its octets, and what it holds.

use base::Utc;
use base::ber::{Element, Error, Fault, Oid, Tag, Writer, universal as u};
use bytes::Bytes;
use p1::{MtsIdentifier, ORName, Time, wire};

/// A value of an attribute: one BER element, octet for octet as it came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Value(Bytes);

impl Value {
    /// The value that `write` writes, which must be one element.
    ///
    /// # Errors
    /// It is not one element.
    pub fn new(write: impl FnOnce(&mut Writer)) -> Result<Value, Error> {
        let mut w = Writer::new();
        write(&mut w);
        Value::from_octets(w.into_vec())
    }

    /// From the octets of one element.
    ///
    /// # Errors
    /// It is not one element.
    pub fn from_octets(octets: impl Into<Bytes>) -> Result<Value, Error> {
        let octets = octets.into();
        Element::parse(&octets)?;
        Ok(Value(octets))
    }

    /// What `write` writes, which is one element by construction.
    pub(crate) fn written(write: impl FnOnce(&mut Writer)) -> Value {
        let mut w = Writer::new();
        write(&mut w);
        Value(w.into_vec().into())
    }

    /// The whole element, kept.
    pub(crate) fn keep(e: &Element<'_>) -> Result<Value, Error> {
        Ok(Value(wire::keep(e)))
    }

    /// The element under an explicit tag, kept.
    pub(crate) fn keep_inner(e: &Element<'_>) -> Result<Value, Error> {
        Value::keep(&e.only_child()?)
    }

    /// Appends the element.
    pub fn write(&self, w: &mut Writer) {
        w.raw(&self.0);
    }

    /// The octets of the element.
    pub fn octets(&self) -> &Bytes {
        &self.0
    }

    /// The element.
    ///
    /// # Errors
    /// Nested deeper than a reader allows.
    pub fn element(&self) -> Result<Element<'_>, Error> {
        Element::parse(&self.0)
    }

    fn of_tag(&self, tag: Tag) -> Result<Element<'_>, Error> {
        let e = self.element()?;
        if e.tag == tag { Ok(e) } else { Err(Fault::Unexpected(e.tag).into()) }
    }

    /// An INTEGER.
    pub fn from_integer(value: i64) -> Value {
        Value::written(|w| w.integer(u::INTEGER, value))
    }

    /// An ENUMERATED.
    pub fn from_enumerated(value: i64) -> Value {
        Value::written(|w| w.integer(u::ENUMERATED, value))
    }

    /// A BOOLEAN.
    pub fn from_boolean(value: bool) -> Value {
        Value::written(|w| w.boolean(u::BOOLEAN, value))
    }

    /// An OBJECT IDENTIFIER.
    pub fn from_oid(value: &Oid) -> Value {
        Value::written(|w| w.oid(u::OID, value))
    }

    /// A UTCTime, to the second.
    pub fn from_utc(value: Utc) -> Value {
        Value::written(|w| w.utc_time(u::UTC_TIME, value))
    }

    /// A UTCTime, as it came.
    pub fn from_time(value: &Time) -> Value {
        Value::written(|w| value.write_as(w, u::UTC_TIME))
    }

    /// An OCTET STRING.
    pub fn from_octet_string(value: &[u8]) -> Value {
        Value::written(|w| w.string(u::OCTET_STRING, value))
    }

    /// A character string of this type.
    pub fn from_text(tag: Tag, text: &str) -> Value {
        Value::written(|w| wire::write_latin1(w, tag, text))
    }

    /// An ORName.
    pub fn from_or_name(value: &ORName) -> Value {
        Value::written(|w| value.write(w))
    }

    /// An INTEGER or ENUMERATED; also a Priority, which is one under a tag of its own.
    ///
    /// # Errors
    /// Another type, or malformed.
    pub fn integer(&self) -> Result<i64, Error> {
        let e = self.element()?;
        match e.tag {
            u::INTEGER | u::ENUMERATED | wire::tag::PRIORITY => e.integer(),
            other => Err(Fault::Unexpected(other).into()),
        }
    }

    /// A BOOLEAN.
    ///
    /// # Errors
    /// Another type, or malformed.
    pub fn boolean(&self) -> Result<bool, Error> {
        self.of_tag(u::BOOLEAN)?.boolean()
    }

    /// An OBJECT IDENTIFIER.
    ///
    /// # Errors
    /// Another type, or malformed.
    pub fn oid(&self) -> Result<Oid, Error> {
        self.of_tag(u::OID)?.oid()
    }

    /// A UTCTime.
    ///
    /// # Errors
    /// Another type, or a malformed constructed string. A time that is not of the calendar is read.
    pub fn time(&self) -> Result<Time, Error> {
        Time::read(&self.of_tag(u::UTC_TIME)?)
    }

    /// The octets of an OCTET STRING.
    ///
    /// # Errors
    /// Another type, or malformed.
    pub fn octet_string(&self) -> Result<Bytes, Error> {
        Ok(self.of_tag(u::OCTET_STRING)?.octets()?.into_owned().into())
    }

    /// A character string of any type, also a ContentIdentifier; octets above 127 as in
    /// [`Element::text`].
    ///
    /// # Errors
    /// Another type, or malformed.
    pub fn text(&self) -> Result<String, Error> {
        let e = self.element()?;
        match is_text(e.tag) {
            true => e.text(),
            false => Err(Fault::Unexpected(e.tag).into()),
        }
    }

    /// An ORName.
    ///
    /// # Errors
    /// Another type, or malformed.
    pub fn or_name(&self) -> Result<ORName, Error> {
        ORName::read(&self.of_tag(wire::tag::OR_NAME)?)
    }

    /// An MTSIdentifier.
    ///
    /// # Errors
    /// Another type, or malformed.
    pub fn mts_identifier(&self) -> Result<MtsIdentifier, Error> {
        MtsIdentifier::read(&self.of_tag(wire::tag::MTS_IDENTIFIER)?)
    }
}

/// Whether a tag is that of a character string, or of a ContentIdentifier, which is one.
pub(crate) fn is_text(tag: Tag) -> bool {
    let time = tag == u::UTC_TIME || tag == u::GENERALIZED_TIME;
    tag.is_character_string() && !time || tag == wire::tag::CONTENT_IDENTIFIER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_what_they_are() {
        assert_eq!(Value::from_integer(-3).integer(), Ok(-3));
        assert_eq!(Value::from_enumerated(2).octets().as_ref(), [0x0a, 1, 2]);
        assert_eq!(Value::from_octets(&[0x47, 1, 2][..]).unwrap().integer(), Ok(2));
        assert_eq!(Value::from_boolean(true).boolean(), Ok(true));
        assert_eq!(Value::from_octet_string(b"ab").octet_string().unwrap().as_ref(), b"ab");
        assert_eq!(Value::from_text(u::IA5_STRING, "ab").text().unwrap(), "ab");
        assert_eq!(Value::from_octets(&[0x4a, 1, b'R'][..]).unwrap().text().unwrap(), "R");
        assert!(Value::from_boolean(true).integer().is_err());
        assert!(Value::from_integer(3).text().is_err());
        assert!(Value::from_integer(3).time().is_err());
    }

    #[test]
    fn a_value_is_one_element() {
        for bad in [&[][..], &[2, 1], &[2, 1, 0, 0], &[0x30, 0x80]] {
            assert!(Value::from_octets(bad).is_err());
        }
        assert!(Value::new(|_| {}).is_err());
    }
}
