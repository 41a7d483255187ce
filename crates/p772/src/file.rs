//! The file transfer body part as it is read (X.420, IPMSFileTransferBodyPartType).

use crate::text::Charset;
use base::ber::{Element, Error, Fault, Field, Header, Tag, Token, universal as u};

/// Where we are in FileTransferData, a SEQUENCE OF EXTERNAL. Depths: 4 single-ASN1-type of the body
/// part's own EXTERNAL, 5 the SEQUENCE, 6 an EXTERNAL, 7 its members.
#[derive(Debug, Default)]
pub(crate) struct FileData {
    /// Within the encoding of an EXTERNAL: what comes is the file's.
    taking: bool,
    /// FileTransferData has ended.
    over: bool,
}

impl FileData {
    /// A token within the body part; the octets of the file in it, where it has some.
    pub(crate) fn step<'a>(&mut self, token: Token<'a>) -> Result<Option<&'a [u8]>, Error> {
        match token {
            Token::Begin { header, .. } if self.over => {
                Err(Fault::Unexpected(header.tag)).field("body part")
            }
            Token::Begin { header, depth } => self.begin(header, depth),
            Token::Data(data) => Ok(self.taking.then_some(data)),
            Token::End { depth } => {
                self.taking &= depth > 7;
                self.over |= depth <= 4;
                Ok(None)
            }
        }
    }

    fn begin<'a>(&mut self, header: Header, depth: usize) -> Result<Option<&'a [u8]>, Error> {
        let fits = match depth {
            5 => header.tag == u::SEQUENCE,
            6 => header.tag == u::EXTERNAL,
            // single-ASN1-type, whose one element is an OCTET STRING, and octet-aligned.
            7 => {
                self.taking = header.tag == Tag::context(0) || header.tag == Tag::context(1);
                header.tag != Tag::context(2)
            }
            8 => !self.taking || header.tag == u::OCTET_STRING,
            _ => true,
        };
        match fits {
            true => Ok(None),
            false => Err(Fault::Unexpected(header.tag)).field("file-transfer-data"),
        }
    }
}

/// The file's name in the body part's parameters, `[0]` EXTERNAL of FileTransferParameters: the last
/// part of the pathname, as it stands there. Parameters that cannot be read name nothing: the file is
/// there all the same.
pub(crate) fn name(parameters: &[u8]) -> Option<String> {
    let read = || -> Result<Option<String>, Error> {
        let mut external = Element::parse(parameters)?.children()?;
        external.require(u::OID)?;
        let mut members = external.require(Tag::context(0))?.only_child()?.children()?;
        while let Some(member) = members.next()? {
            if member.tag == Tag::context(4) {
                return pathname(&member);
            }
        }
        Ok(None)
    };
    read().ok().flatten().filter(|name| !name.is_empty())
}

/// The last part of file-attributes' pathname: incomplete `[0]` or complete `[23]`.
fn pathname(attributes: &Element<'_>) -> Result<Option<String>, Error> {
    let Some(first) = attributes.children()?.next()? else { return Ok(None) };
    if first.tag != Tag::context(0) && first.tag != Tag::context(23) {
        return Ok(None);
    }
    let mut parts = first.children()?;
    let mut last = None;
    while let Some(part) = parts.next()? {
        // A GraphicString is of any registered set; senders write what they do in teletex strings.
        last = Some(Charset::Ascii.decode(&part.octets()?));
    }
    Ok(last)
}
