//! Encoded information types (X.411 8.5.4).

use crate::wire::{bits, keep_all, list, tag, write_bits, write_kept};
use base::ber::{Element, Error, Field, Member, Oid, Tag, Writer, read_set, universal};
use bytes::Bytes;

/// EncodedInformationTypes: what a content is made of. Facsimile and teletex parameters are kept as
/// elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EncodedInformationTypes {
    /// built-in-encoded-information-types; bit `n` of the BIT STRING is `1 << n`, see the constants.
    pub built_in: u32,
    /// extended-encoded-information-types.
    pub extended: Vec<Oid>,
    /// All other members (non-basic parameters and unknown ones), as whole elements.
    pub other: Vec<Bytes>,
}

const BUILT_IN: Tag = Tag::context(0);
const EXTENDED: Tag = Tag::context(4);

impl EncodedInformationTypes {
    /// unknown.
    pub const UNKNOWN: u32 = 1;
    /// ia5-text.
    pub const IA5_TEXT: u32 = 1 << 2;
    /// g3-facsimile.
    pub const G3_FACSIMILE: u32 = 1 << 3;
    /// voice.
    pub const VOICE: u32 = 1 << 7;

    /// Reads them, under whichever tag.
    ///
    /// # Errors
    /// Malformed, or a member twice.
    pub fn read(e: &Element<'_>) -> Result<EncodedInformationTypes, Error> {
        let name = "encoded-information-types";
        let (mut built_in, mut extended) = (Member::new(name), Member::new(name));
        let other = read_set(e, |m| match m.tag {
            BUILT_IN => built_in.once(m, bits),
            EXTENDED => extended.once(m, |m| list(m, usize::MAX, |oid| oid.oid())),
            _ => Ok(false),
        });
        Ok(EncodedInformationTypes {
            other: keep_all(&other.field(name)?),
            built_in: built_in.or_default(),
            extended: extended.or_default(),
        })
    }

    /// Writes them.
    pub fn write(&self, w: &mut Writer) {
        self.write_as(w, tag::EITS);
    }

    /// Writes them under `tag`, where an implicit one takes the place of their own.
    pub fn write_as(&self, w: &mut Writer, tag: Tag) {
        w.constructed(tag, |w| {
            write_bits(w, BUILT_IN, self.built_in, 0);
            if !self.extended.is_empty() {
                w.constructed(EXTENDED, |w| {
                    self.extended.iter().for_each(|oid| w.oid(universal::OID, oid));
                });
            }
            write_kept(w, &self.other);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_bit_string_and_parameters_pass() {
        // [0] empty, [1] G3 parameters, [4] one OID, [9] unknown to X.411
        let octets =
            [0x65, 17, 0x80, 1, 0, 0xa4, 4, 0x06, 2, 0x51, 1, 0x81, 3, 7, 0, 0x80, 0x89, 1, 7];
        let eits = EncodedInformationTypes::read(&Element::parse(&octets).unwrap()).unwrap();
        assert_eq!((eits.built_in, eits.extended.len(), eits.other.len()), (0, 1, 2));
        let mut w = Writer::new();
        eits.write(&mut w);
        assert_eq!(w.as_slice(), octets);
    }
}
