//! Building a content: the heading, then body parts, of which the last may be of any size and is
//! never held.

use crate::heading::{Heading, InvalidHeading};
use crate::oids;
use crate::text::{self, Charset};
use base::ber::{Header, Length, Tag, Writer, universal as u};

/// `id-et-general-text` and `id-ep-general-text` (X.420 Annex C).
pub(crate) const GENERAL_TEXT: u8 = 11;
/// `id-et-file-transfer` and `id-ep-file-transfer` (X.420 Annex C).
pub(crate) const FILE_TRANSFER: u8 = 12;
/// Longest file name sent, octets: what file systems have.
pub const MAX_FILE_NAME: usize = 255;

const IA5_TEXT: Tag = Tag::context(0);
const BILATERALLY_DEFINED: Tag = Tag::context(14);
pub(crate) const EXTENDED: Tag = Tag::context(15);
/// single-ASN1-type of EXTERNAL.
pub(crate) const SINGLE_ASN1_TYPE: Tag = Tag::context(0);
/// octet-aligned of EXTERNAL.
const OCTET_ALIGNED: Tag = Tag::context(1);

/// What the octets of a body part are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartForm {
    /// Text: an ia5-text body part in ASCII, a general text one in the other sets.
    Text(Charset),
    /// Octets of any kind: a bilaterally-defined body part, which is an OCTET STRING that readers
    /// can save without knowing what it is.
    Binary,
    /// A file with its name: a file transfer body part (X.420 annex for it, from 1992 on) of the
    /// unstructured binary type. Without a name, readers choose one.
    File {
        /// The name alone, without directories; beyond [`MAX_FILE_NAME`] octets its end is left out.
        name: Option<String>,
    },
}

/// A content without the data of its last body part: send `head`, then the data.
/// All lengths are definite, so nothing follows the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framing {
    /// All octets before the data.
    pub head: Vec<u8>,
    /// How many octets of data complete the content.
    pub data_length: u64,
}

impl Framing {
    /// Length of the whole content, octets.
    pub fn content_length(&self) -> u64 {
        self.data_length.saturating_add(self.head.len() as u64)
    }
}

/// Builds a content: P22, or P772 where the heading has military extensions.
#[derive(Debug)]
pub struct ContentBuilder {
    heading: Vec<u8>,
    parts: Vec<u8>,
}

impl ContentBuilder {
    /// Begins with the heading.
    ///
    /// # Errors
    /// As [`Heading::validate`].
    pub fn new(heading: &Heading) -> Result<ContentBuilder, InvalidHeading> {
        heading.validate()?;
        let mut w = Writer::new();
        heading.encode(&mut w);
        Ok(ContentBuilder { heading: w.into_vec(), parts: Vec::new() })
    }

    /// Adds a text body part in the simplest character set that holds it.
    #[must_use]
    pub fn text(self, text: &str) -> ContentBuilder {
        let charset = Charset::for_text(text);
        self.part(&PartForm::Text(charset), &charset.encode(text))
    }

    /// Adds a body part.
    #[must_use]
    pub fn part(mut self, form: &PartForm, data: &[u8]) -> ContentBuilder {
        self.parts.extend(part_head(form, data.len() as u64));
        self.parts.extend_from_slice(data);
        self
    }

    /// Adds a body part that is encoded already, such as one kept from another message.
    #[must_use]
    pub fn encoded(mut self, body_part: &[u8]) -> ContentBuilder {
        self.parts.extend_from_slice(body_part);
        self
    }

    /// The whole content, of the body parts added so far.
    pub fn finish(self) -> Vec<u8> {
        self.frame(&[], 0).head
    }

    /// A content whose last body part has `data_length` octets of data that the caller sends itself.
    pub fn finish_with(self, form: &PartForm, data_length: u64) -> Framing {
        self.frame(&part_head(form, data_length), data_length)
    }

    /// A content whose last body parts have data that the caller sends itself: for each one, in their
    /// order, the octets before its data. After the last one's data nothing follows.
    pub fn finish_with_all(self, parts: &[(PartForm, u64)]) -> Vec<Vec<u8>> {
        let mut heads: Vec<Vec<u8>> =
            parts.iter().map(|(form, length)| part_head(form, *length)).collect();
        let before: u64 = heads.iter().skip(1).map(|head| head.len() as u64).sum();
        let data = parts.iter().fold(before, |sum, (_, length)| sum.saturating_add(*length));
        match heads.first_mut() {
            Some(first) => *first = self.frame(first, data).head,
            None => heads.push(self.finish()),
        }
        heads
    }

    pub(crate) fn frame(self, last_head: &[u8], data_length: u64) -> Framing {
        let part_octets = (self.parts.len() + last_head.len()) as u64;
        let body_length = Length::Definite(part_octets.saturating_add(data_length));
        let body_head = Header::encoded_size(u::SEQUENCE, body_length) as u64;
        let total =
            (self.heading.len() as u64 + body_head + part_octets).saturating_add(data_length);
        let mut w = Writer::new();
        // InformationObject: ipm [0], which military messages use as well.
        w.header(Tag::context(0), true, Length::Definite(total));
        w.raw(&self.heading);
        w.header(u::SEQUENCE, true, body_length);
        w.raw(&self.parts);
        w.raw(last_head);
        Framing { head: w.into_vec(), data_length }
    }
}

/// Everything of a body part before its data.
fn part_head(form: &PartForm, data_length: u64) -> Vec<u8> {
    match form {
        PartForm::File { name } => file_head(name.as_deref(), data_length),
        PartForm::Binary => around(vec![], data_length, &[(BILATERALLY_DEFINED, false, vec![])]),
        PartForm::Text(Charset::Ascii) => {
            // Parameters: an empty SET, which means the IA5 repertoire.
            let parameters = vec![0x31, 0];
            let levels = [(u::IA5_STRING, false, parameters), (IA5_TEXT, true, vec![])];
            around(vec![], data_length, &levels)
        }
        PartForm::Text(charset) => general_text_head(*charset, data_length),
    }
}

/// ExtendedBodyPart of file transfer: FileTransferParameters with the pathname alone, for the type of
/// its contents is the default, unstructured binary; FileTransferData of one EXTERNAL, octet-aligned.
fn file_head(name: Option<&str>, data_length: u64) -> Vec<u8> {
    let mut parameters = Writer::new();
    parameters.constructed(Tag::context(0), |w| {
        oids::write_extended_parameters(w, u::OID, FILE_TRANSFER);
        w.constructed(SINGLE_ASN1_TYPE, |w| {
            w.constructed(u::SEQUENCE, |w| {
                let Some(name) = name else { return };
                // file-attributes, incomplete-pathname.
                w.constructed(Tag::context(4), |w| {
                    w.constructed(Tag::context(0), |w| {
                        let octets = text::teletex(shortened(name));
                        w.string(oids::GRAPHIC_STRING, octets);
                    });
                });
            });
        });
    });
    let mut reference = Writer::new();
    oids::write_extended_data(&mut reference, u::OID, FILE_TRANSFER);
    let mut syntax = Writer::new();
    syntax.primitive(u::OID, &oids::UNSTRUCTURED_BINARY);
    let levels = [
        (OCTET_ALIGNED, false, syntax.into_vec()),
        (u::EXTERNAL, true, vec![]),
        (u::SEQUENCE, true, vec![]),
        (SINGLE_ASN1_TYPE, true, reference.into_vec()),
        (u::EXTERNAL, true, parameters.into_vec()),
        (EXTENDED, true, vec![]),
    ];
    around(vec![], data_length, &levels)
}

/// The beginning of a name, up to [`MAX_FILE_NAME`] octets, cut between characters.
fn shortened(name: &str) -> &str {
    let fits = |end: &usize| name.is_char_boundary(*end);
    let end = (0..=name.len().min(MAX_FILE_NAME)).rev().find(fits);
    name.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// ExtendedBodyPart of general text: parameters `[0]` and data, each an EXTERNAL.
fn general_text_head(charset: Charset, data_length: u64) -> Vec<u8> {
    let mut parameters = Writer::new();
    parameters.constructed(Tag::context(0), |w| {
        oids::write_extended_parameters(w, u::OID, GENERAL_TEXT);
        w.constructed(SINGLE_ASN1_TYPE, |w| {
            w.constructed(u::SET, |w| {
                charset.registrations().iter().for_each(|n| w.integer(u::INTEGER, *n));
            });
        });
    });
    let mut reference = Writer::new();
    oids::write_extended_data(&mut reference, u::OID, GENERAL_TEXT);
    let levels = [
        (Tag::universal(27), false, vec![]),
        (SINGLE_ASN1_TYPE, true, reference.into_vec()),
        (u::EXTERNAL, true, parameters.into_vec()),
        (EXTENDED, true, vec![]),
    ];
    around(vec![], data_length, &levels)
}

/// Headers of nested elements around `data_length` octets that follow, innermost first; each level
/// comes with what precedes it inside the next.
pub(crate) fn around(
    mut head: Vec<u8>,
    data_length: u64,
    levels: &[(Tag, bool, Vec<u8>)],
) -> Vec<u8> {
    for (tag, constructed, before) in levels {
        let length = data_length.saturating_add(head.len() as u64);
        let mut level = before.clone();
        Header::write(*tag, *constructed, Length::Definite(length), &mut level);
        level.append(&mut head);
        head = level;
    }
    head
}
