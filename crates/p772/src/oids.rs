//! Object identifiers of STANAG 4406 (arc 1.3.26.0.4406.0) and of X.420 body parts (arc 2.6.1),
//! as the content octets they have on the wire.

use base::ber::{Tag, Writer, universal as u};

/// 1.3.26.0.4406.0.
const MMHS: [u8; 6] = [0x2b, 26, 0, 0xa2, 0x36, 0];

/// 1.0.8571.2.4: the abstract syntax of unstructured binary files (ISO 8571).
pub(crate) const UNSTRUCTURED_BINARY: [u8; 5] = [0x28, 0xc2, 0x7b, 2, 4];

/// GraphicString.
pub(crate) const GRAPHIC_STRING: Tag = Tag::universal(25);

/// Writes the heading extension type 1.3.26.0.4406.0.2.`n`, `n` below 128.
pub(crate) fn write_heading_extension(w: &mut Writer, n: u8) {
    w.primitive(u::OID, &[&MMHS[..], &[2, n]].concat());
}

/// `n` of a heading extension 1.3.26.0.4406.0.2.n, or `None` for any other identifier.
pub(crate) fn heading_extension_number(content: &[u8]) -> Option<u8> {
    match content.strip_prefix(&MMHS)? {
        [2, n] if *n < 0x80 => Some(*n),
        _ => None,
    }
}

/// Writes the civil heading extension type `id-hex-…` 2.6.1.5.`n` (X.420 Annex C).
pub(crate) fn write_civil_extension(w: &mut Writer, n: u8) {
    w.primitive(u::OID, &[0x56, 1, 5, n]);
}

/// `n` of a civil heading extension 2.6.1.5.n, or `None` for any other identifier.
pub(crate) fn civil_extension_number(content: &[u8]) -> Option<u8> {
    match content {
        [0x56, 1, 5, n] if *n < 0x80 => Some(*n),
        _ => None,
    }
}

/// Writes `id-et-…`, which names the data of an extended body part: 2.6.1.4.`n` (X.420 Annex C).
pub(crate) fn write_extended_data(w: &mut Writer, tag: Tag, n: u8) {
    w.primitive(tag, &[0x56, 1, 4, n]);
}

/// Writes `id-ep-…`, which names the parameters of an extended body part: 2.6.1.11.`n`.
pub(crate) fn write_extended_parameters(w: &mut Writer, tag: Tag, n: u8) {
    w.primitive(tag, &[0x56, 1, 11, n]);
}

/// `n` of an `id-et-…`, or `None` for any other identifier.
pub(crate) fn extended_data_number(content: &[u8]) -> Option<u8> {
    match content {
        [0x56, 1, 4, n] if *n < 0x80 => Some(*n),
        _ => None,
    }
}

/// The content octets of 1.3.26.0.4406.0.7.`n`, `n` below 128: types of body parts.
pub(crate) fn body_part(n: u8) -> Vec<u8> {
    [&MMHS[..], &[7, n]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ber::Element;

    #[test]
    fn octets_are_those_of_the_arcs() {
        let written = |write: &dyn Fn(&mut Writer)| {
            let mut w = Writer::new();
            write(&mut w);
            Element::parse(w.as_slice()).unwrap().oid().unwrap().to_string()
        };
        assert_eq!(written(&|w| write_heading_extension(w, 6)), "1.3.26.0.4406.0.2.6");
        assert_eq!(written(&|w| write_extended_data(w, u::OID, 11)), "2.6.1.4.11");
        assert_eq!(written(&|w| write_civil_extension(w, 1)), "2.6.1.5.1");
        assert_eq!(civil_extension_number(&[0x56, 1, 5, 2]), Some(2));
        assert_eq!(written(&|w| write_extended_parameters(w, u::OID, 11)), "2.6.1.11.11");
        assert_eq!(written(&|w| w.primitive(u::OID, &UNSTRUCTURED_BINARY)), "1.0.8571.2.4");
        assert_eq!(heading_extension_number(&[0x2b, 26, 0, 0xa2, 0x36, 0, 2, 13]), Some(13));
        assert_eq!(heading_extension_number(&[0x2b, 26, 0, 0xa2, 0x36, 0, 4, 1]), None);
    }
}
