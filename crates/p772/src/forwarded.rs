//! A message among the body parts of another one: forwarded, with the envelope of its delivery.

use crate::encode::{ContentBuilder, EXTENDED, Framing, SINGLE_ASN1_TYPE, around};
use crate::oids;
use base::ber::{Element, Error, Fault, Header, Tag, Writer, universal as u};

/// message (X.420 7.3.8).
const MESSAGE: Tag = Tag::context(7);
/// InformationObject of a message, whose contents are those of an IPM.
const IPM: Tag = Tag::context(0);
/// `n` of 1.3.26.0.4406.0.7.n: mm-message, and its parameters.
const MM_MESSAGE: u8 = 9;
/// Longest envelope that is forwarded with a message, octets: readers bound parameters.
const MAX_ENVELOPE: usize = 32 << 10;

/// What kind of message is forwarded, and how it was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// P772: an mm-message body part (STANAG 4406); else the message body part of X.420.
    pub military: bool,
    /// MessageDeliveryEnvelope, a whole SEQUENCE: its time and other fields go into the parameters. One that is
    /// malformed, or longer than 32 KiB, is left out.
    pub delivery: Option<Vec<u8>>,
}

/// The identifier of the data of an mm-message body part.
pub fn mm_message() -> Vec<u8> {
    oids::body_part(MM_MESSAGE)
}

/// The header that a content begins with, if `front`, its first octets, has it: what follows it is forwarded.
/// The header's length is indefinite where two octets at the end of the content belong to it.
///
/// # Errors
/// It is a notification, or no content of P22 or P772.
pub fn content_header(front: &[u8]) -> Result<Option<Header>, Error> {
    match Header::parse(front)? {
        Some(header) if header.tag != IPM || !header.constructed => {
            Err(Fault::Unexpected(header.tag).into())
        }
        header => Ok(header),
    }
}

impl ContentBuilder {
    /// A content whose last body part is a forwarded message: `length` octets follow, which are the contents of its
    /// InformationObject (heading and body, without the outer header, see [`content_header`]).
    pub fn finish_forwarding(self, forwarded: &Forwarded, length: u64) -> Framing {
        self.frame(&forwarded.head(length), length)
    }
}

impl Forwarded {
    /// Everything of the body part before heading and body.
    fn head(&self, length: u64) -> Vec<u8> {
        let mut parameters = Writer::new();
        parameters.constructed(u::SET, |w| {
            if let Some(Ok(fields)) = self.delivery.as_deref().map(delivery_fields) {
                w.raw(&fields);
            }
        });
        let parameters = parameters.into_vec();
        if !self.military {
            let levels = [(u::SEQUENCE, true, parameters), (MESSAGE, true, vec![])];
            return around(vec![], length, &levels);
        }
        let mut before = Writer::new();
        before.constructed(Tag::context(0), |w| {
            w.primitive(u::OID, &oids::body_part(MM_MESSAGE + 1));
            w.constructed(SINGLE_ASN1_TYPE, |w| w.raw(&parameters));
        });
        let mut reference = Writer::new();
        reference.primitive(u::OID, &oids::body_part(MM_MESSAGE));
        let levels = [
            (u::SEQUENCE, true, vec![]),
            (SINGLE_ASN1_TYPE, true, reference.into_vec()),
            (u::EXTERNAL, true, before.into_vec()),
            (EXTENDED, true, vec![]),
        ];
        around(vec![], length, &levels)
    }
}

/// delivery-time `[0]` and delivery-envelope `[1]`, of a MessageDeliveryEnvelope.
fn delivery_fields(envelope: &[u8]) -> Result<Vec<u8>, Error> {
    if envelope.len() > MAX_ENVELOPE {
        return Err(Fault::TooLong(MAX_ENVELOPE as u64).into());
    }
    let element = Element::parse(envelope)?;
    let mut members = element.children()?;
    members.next()?;
    let time = members.require(u::UTC_TIME)?;
    let fields = members.require(u::SET)?;
    let mut w = Writer::new();
    w.string(Tag::context(0), time.octets()?);
    let mut inner = fields.children()?;
    w.constructed(Tag::context(1), |w| {
        while let Ok(Some(member)) = inner.next() {
            w.raw(member.raw);
        }
    });
    Ok(w.into_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContentEvent, ContentParser, Heading, IpmIdentifier, PartKind};

    fn heading(local: &str) -> Heading {
        Heading {
            this_ipm: IpmIdentifier { user: None, local: local.to_owned() },
            subject: Some(format!("subject of {local}")),
            ..Heading::default()
        }
    }

    /// The body parts of a content: kinds and data.
    fn parts(content: &[u8]) -> Vec<(PartKind, Vec<u8>)> {
        let (mut parser, mut rest, mut parts) = (ContentParser::new(), content, Vec::new());
        while let Some(event) = parser.next(&mut rest).unwrap() {
            match event {
                ContentEvent::PartBegin(kind) => parts.push((kind, Vec::new())),
                ContentEvent::Data(data) => parts.last_mut().unwrap().1.extend_from_slice(&data),
                _ => {}
            }
        }
        assert!(parser.is_done());
        parts
    }

    /// MessageDeliveryEnvelope { [APPLICATION 4] id, UTCTime, SET { [0] priority } }.
    const DELIVERY: [u8; 26] = [
        0x30, 24, 0x64, 2, 5, 0, 0x17, 13, b'2', b'6', b'0', b'1', b'0', b'2', b'0', b'3', b'0',
        b'4', b'0', b'5', b'Z', 0x31, 3, 0x80, 1, 2,
    ];

    #[test]
    fn a_message_is_forwarded_as_a_body_part() {
        let inner = ContentBuilder::new(&heading("inner")).unwrap().text("the text").finish();
        let header = content_header(&inner[..6]).unwrap().unwrap();
        let rest = &inner[header.size..];
        for military in [false, true] {
            let forwarded = Forwarded { military, delivery: Some(DELIVERY.to_vec()) };
            let builder = ContentBuilder::new(&heading("outer")).unwrap().text("see below");
            let framing = builder.finish_forwarding(&forwarded, rest.len() as u64);
            assert_eq!(framing.content_length(), (framing.head.len() + rest.len()) as u64);
            let content = [framing.head, rest.to_vec()].concat();
            let parts = parts(&content);
            assert_eq!(parts.len(), 2);
            let (kind, data) = &parts[1];
            // The IPM, whose outer tag is that of a SEQUENCE here.
            let message = match kind {
                PartKind::Other { header } => {
                    assert!(!military && header.tag == MESSAGE);
                    let parameters = Element::parse(&data[..22]).unwrap();
                    assert_eq!((parameters.tag, parameters.raw[2]), (u::SET, 0x80));
                    assert_eq!(parameters.raw[17..], [0xa1, 3, 0x80, 1, 2]);
                    &data[22..]
                }
                PartKind::Extended { data: oid, parameters } => {
                    assert!(military && oid.to_string() == "1.3.26.0.4406.0.7.9");
                    assert!(parameters.is_some());
                    &data[..]
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(message[0], 0x30);
            assert_eq!(&message[message.len() - rest.len()..], rest);
        }
    }

    #[test]
    fn what_is_no_message_is_not_forwarded() {
        assert_eq!(content_header(&[]), Ok(None));
        assert!(content_header(&[0xa1, 2, 5, 0]).is_err() && content_header(b"text").is_err());
        // A bad envelope costs nothing but itself.
        for bad in [&b"x"[..], &[0x30, 0], &vec![0; MAX_ENVELOPE + 1]] {
            let forwarded = Forwarded { military: false, delivery: Some(bad.to_vec()) };
            assert_eq!(forwarded.head(0), Forwarded::default().head(0));
        }
    }
}
