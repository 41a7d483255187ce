use super::{Header, Length, Oid, Tag};
use crate::Utc;

/// Appends BER elements to a buffer, with definite, shortest lengths unless asked otherwise.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// An empty writer.
    pub fn new() -> Writer {
        Writer::default()
    }

    /// The octets written, complete.
    pub fn into_vec(self) -> Vec<u8> {
        self.out
    }

    /// The octets written so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.out
    }

    /// A header alone; its contents are written by the caller, or streamed elsewhere.
    pub fn header(&mut self, tag: Tag, constructed: bool, length: Length) {
        Header::write(tag, constructed, length, &mut self.out);
    }

    /// End-of-contents, for an element opened with [`Length::Indefinite`].
    pub fn end_of_contents(&mut self) {
        self.out.extend_from_slice(&[0, 0]);
    }

    /// Octets that are BER already.
    pub fn raw(&mut self, octets: &[u8]) {
        self.out.extend_from_slice(octets);
    }

    /// As [`Writer::raw`], of a buffer. A writer that holds nothing takes it over, which saves a copy.
    pub fn append(&mut self, octets: Vec<u8>) {
        match self.out.is_empty() {
            true => self.out = octets,
            false => self.raw(&octets),
        }
    }

    /// A primitive element.
    pub fn primitive(&mut self, tag: Tag, content: &[u8]) {
        self.header(tag, false, Length::Definite(content.len() as u64));
        self.raw(content);
    }

    /// A constructed element around what `body` writes.
    pub fn constructed(&mut self, tag: Tag, body: impl FnOnce(&mut Writer)) {
        let start = self.out.len();
        body(self);
        let length = Length::Definite((self.out.len() - start) as u64);
        let mut header = Vec::with_capacity(super::MAX_HEADER_OCTETS);
        Header::write(tag, true, length, &mut header);
        self.out.splice(start..start, header);
    }

    /// INTEGER or ENUMERATED contents under `tag` (X.690 8.3).
    pub fn integer(&mut self, tag: Tag, value: i64) {
        self.primitive(tag, asn1_rs::Integer::from(value).as_ref());
    }

    /// BOOLEAN.
    pub fn boolean(&mut self, tag: Tag, value: bool) {
        self.primitive(tag, &[if value { 0xff } else { 0 }]);
    }

    /// NULL.
    pub fn null(&mut self, tag: Tag) {
        self.primitive(tag, &[]);
    }

    /// OBJECT IDENTIFIER.
    pub fn oid(&mut self, tag: Tag, oid: &Oid) {
        self.primitive(tag, oid.content());
    }

    /// A character string's or OCTET STRING's contents, primitive.
    pub fn string(&mut self, tag: Tag, text: impl AsRef<[u8]>) {
        self.primitive(tag, text.as_ref());
    }

    /// UTCTime, `YYMMDDhhmmssZ`.
    pub fn utc_time(&mut self, tag: Tag, time: Utc) {
        self.string(tag, time.to_utc_time());
    }

    /// A BIT STRING of the given octets, the last `unused` bits not part of it (0 to 7).
    pub fn bits(&mut self, tag: Tag, octets: &[u8], unused: u8) {
        self.header(tag, false, Length::Definite(octets.len() as u64 + 1));
        self.out.push(if octets.is_empty() { 0 } else { unused & 7 });
        self.raw(octets);
    }

    /// A BIT STRING with these bits set, bit 0 first, of at least `least` bits.
    pub fn named_bits(&mut self, tag: Tag, set: &[u32], least: u32) {
        let count = set.iter().map(|b| b + 1).max().unwrap_or(0).max(least);
        let mut octets = vec![0u8; count.div_ceil(8) as usize];
        for bit in set {
            if let Some(octet) = octets.get_mut((bit / 8) as usize) {
                *octet |= 0x80 >> (bit % 8);
            }
        }
        self.bits(tag, &octets, ((8 - count % 8) % 8) as u8);
    }
}
