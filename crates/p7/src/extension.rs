//! MSExtensions: what later editions and private agreements add to P7 (X.413 MSExtensionItem, 1994).

use crate::limits::MAX_EXTENSIONS;
use crate::wire::{explicit, inner, require};
use base::ber::{Element, Error, Oid, Tag, Writer, universal as u};
use bytes::Bytes;
use p1::wire;

/// MSExtensionItem: INSTANCE OF, which has the form of an EXTERNAL with an identifier and a value
/// (X.681 Annex C), kept as it came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MsExtension(Bytes);

const VALUE: Tag = Tag::context(0);

impl MsExtension {
    /// An extension of this identifier, its value written by `value`.
    pub fn new(id: &Oid, value: impl FnOnce(&mut Writer)) -> MsExtension {
        let mut w = Writer::new();
        w.constructed(u::EXTERNAL, |w| {
            w.oid(u::OID, id);
            explicit(w, 0, value);
        });
        MsExtension(w.into_vec().into())
    }

    /// Reads it. What is inside is read by [`MsExtension::parts`].
    ///
    /// # Errors
    /// Another tag.
    pub fn read(e: &Element<'_>) -> Result<MsExtension, Error> {
        Ok(MsExtension(wire::keep(require(e, u::EXTERNAL)?)))
    }

    /// Appends it.
    pub fn write(&self, w: &mut Writer) {
        w.raw(&self.0);
    }

    /// Its identifier and the whole element of its value.
    ///
    /// # Errors
    /// It does not have the form of an INSTANCE OF.
    pub fn parts(&self) -> Result<(Oid, Bytes), Error> {
        let e = Element::parse(&self.0)?;
        let mut members = e.children()?;
        let id = members.require(u::OID)?.oid()?;
        let value = wire::keep_child(&members.require(VALUE)?)?;
        members.finish()?;
        Ok((id, value))
    }
}

/// `[n] MSExtensions`.
pub(crate) fn read_all(e: &Element<'_>) -> Result<Vec<MsExtension>, Error> {
    wire::list(&inner(e, u::SEQUENCE)?, MAX_EXTENSIONS, MsExtension::read)
}

/// Writes `[n] MSExtensions`, unless there are none.
pub(crate) fn write_all(w: &mut Writer, n: u32, all: &[MsExtension]) {
    crate::wire::write_some(w, n, u::SEQUENCE, all, MsExtension::write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_of_is_an_external_of_two_members() {
        let id: Oid = "2.6.4.9.3".parse().unwrap();
        let extension = MsExtension::new(&id, |w| w.null(u::NULL));
        let octets = [0x28, 10, 6, 4, 0x56, 4, 9, 3, 0xa0, 2, 5, 0];
        assert_eq!(extension.0.as_ref(), octets);
        assert_eq!(extension.parts(), Ok((id, Bytes::from_static(&[5, 0]))));
        let e = Element::parse(&octets).unwrap();
        assert_eq!(MsExtension::read(&e), Ok(extension));
        assert!(MsExtension::read(&Element::parse(&[5, 0]).unwrap()).is_err());
    }
}
