//! A content while it is fetched: its heading and texts are kept, the rest is counted.

use base::ber::{Header, Length, Tag};
use p1::cms::SignedReader;
use p772::{Charset, ContentEvent, ContentParser, Heading, PartKind};
use std::borrow::Cow;
use std::io::{self, Write};

/// Most octets of text of one content that are kept.
pub(crate) const MAX_TEXT: usize = 1 << 20;
/// A forwarded message among body parts (X.420 7.3.8).
const MESSAGE: Tag = Tag::context(7);
/// Messages in messages are read so deep.
pub(crate) const MAX_DEPTH: usize = 8;
/// Octets of a SEQUENCE's tag, and of that of an IPM in a content.
const SEQUENCE: u8 = 0x30;
const IPM: u8 = 0xa0;
/// Most octets of the parameters before a forwarded message.
const MAX_FRONT: usize = 256 << 10;

/// What a body part is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text in this character set, as far as it is kept.
    Text(Charset, Vec<u8>),
    /// A file, and its name as it was sent.
    File(Option<String>),
    /// Octets of any kind.
    Binary,
    /// A forwarded message, as far as it could be read.
    Message(Box<Forwarded>),
    /// A forwarded message in more than [`MAX_DEPTH`] others, which is not read.
    TooDeep,
    /// Another type, by its identifier or tag.
    Other(String),
}

/// One body part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// What it is.
    pub form: Form,
    /// Its octets of data.
    pub size: u64,
}

impl Seen {
    /// Its text, if it is one.
    pub(crate) fn text(&self) -> Option<String> {
        let Form::Text(charset, octets) = &self.form else { return None };
        // The cut may be within a character.
        let whole = match std::str::from_utf8(octets) {
            Err(error) if *charset == Charset::Utf8 && error.error_len().is_none() => {
                octets.get(..error.valid_up_to()).unwrap_or(octets)
            }
            _ => octets,
        };
        Some(charset.decode(whole))
    }

    /// Octets of the text that are not kept.
    pub(crate) fn missing(&self) -> u64 {
        match &self.form {
            Form::Text(_, octets) => self.size.saturating_sub(octets.len() as u64),
            _ => 0,
        }
    }
}

/// What is before a forwarded message in its body part: its parameters, if they are there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Front {
    /// The octets, until it is known where the message begins; `None` from then on.
    octets: Option<Vec<u8>>,
    /// Parameters are before the message.
    has_parameters: bool,
    /// Where it begins cannot be known.
    pub is_lost: bool,
}

impl Front {
    /// Of a body part of this kind; `None` if it is not a forwarded message.
    pub(crate) fn from_kind(kind: &PartKind) -> Option<Front> {
        let has_parameters = match kind {
            PartKind::Extended { data, .. } if data.content() == p772::mm_message() => false,
            PartKind::Other { header } if header.tag == MESSAGE => true,
            _ => return None,
        };
        Some(Front { octets: Some(Vec::new()), has_parameters, is_lost: false })
    }

    /// Takes the next octets of the body part; returns those that are of the message, as a content has them.
    pub(crate) fn take<'a>(&mut self, octets: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if self.is_lost {
            return None;
        }
        let Some(front) = &mut self.octets else { return Some(Cow::Borrowed(octets)) };
        front.extend_from_slice(octets);
        let skipped = match self.has_parameters {
            false => Some(0),
            true => match Header::parse(front) {
                Ok(Some(Header { size, length: Length::Definite(length), .. })) => {
                    usize::try_from(length).ok().map(|length| length.saturating_add(size))
                }
                Ok(None) => return None,
                // Indefinite, or not a header at all.
                _ => None,
            },
        };
        match skipped {
            Some(skipped) if front.len() > skipped => {
                let mut message = front.split_off(skipped);
                self.octets = None;
                // An IPM is a SEQUENCE here; as a content it has the tag of its choice.
                if let Some(first) = message.first_mut().filter(|first| **first == SEQUENCE) {
                    *first = IPM;
                }
                Some(Cow::Owned(message))
            }
            Some(_) if front.len() <= MAX_FRONT => None,
            _ => {
                (self.octets, self.is_lost) = (None, true);
                None
            }
        }
    }
}

/// A forwarded message as it comes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Forwarded {
    front: Front,
    /// The message.
    pub message: Reader,
}

impl Forwarded {
    fn new(front: Front, room: usize, depth: usize) -> Forwarded {
        Forwarded { front, message: Reader { room, depth, ..Reader::default() } }
    }

    fn take(&mut self, octets: &[u8]) {
        if let Some(of_message) = self.front.take(octets) {
            self.message.take_octets(&of_message);
        }
        self.message.opaque |= self.front.is_lost;
    }
}

/// Takes a content as it is written.
#[derive(Debug)]
pub(crate) struct Reader {
    parser: ContentParser,
    /// The labels inside it, if it is signed.
    pub signed: SignedReader,
    /// The heading, once it came.
    pub heading: Option<Box<Heading>>,
    /// The body parts.
    pub parts: Vec<Seen>,
    /// The content is a notification: all of it.
    pub notification: Option<Vec<u8>>,
    /// It cannot be read as P22 or P772.
    pub opaque: bool,
    room: usize,
    /// Messages around it, of which it is a part.
    depth: usize,
}

/// Readers of the same message have the same parts.
impl PartialEq for Reader {
    fn eq(&self, other: &Reader) -> bool {
        self.heading == other.heading && self.parts == other.parts
    }
}

impl Eq for Reader {}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            parser: ContentParser::new(),
            signed: SignedReader::default(),
            heading: None,
            parts: Vec::new(),
            notification: None,
            opaque: false,
            room: MAX_TEXT,
            depth: 0,
        }
    }
}

impl Reader {
    fn take(&mut self, event: ContentEvent<'_>) {
        match event {
            ContentEvent::Heading(heading) => self.heading = Some(heading),
            ContentEvent::Notification(octets) => self.notification = Some(octets),
            ContentEvent::PartBegin(kind) => {
                let form = form(kind, self.room, self.depth);
                self.parts.push(Seen { form, size: 0 });
            }
            ContentEvent::Data(octets) => {
                let Some(part) = self.parts.last_mut() else { return };
                part.size += octets.len() as u64;
                match &mut part.form {
                    Form::Text(_, text) => {
                        let kept = octets.get(..octets.len().min(self.room)).unwrap_or_default();
                        text.extend_from_slice(kept);
                        self.room -= kept.len();
                    }
                    Form::Message(message) => {
                        message.take(&octets);
                        // One bound for all texts.
                        self.room = message.message.room;
                    }
                    Form::File(_) | Form::Binary | Form::TooDeep | Form::Other(_) => {}
                }
            }
            ContentEvent::PartEnd | ContentEvent::End => {}
        }
    }
}

impl Reader {
    fn take_octets(&mut self, octets: &[u8]) {
        let mut rest = octets;
        while !self.opaque {
            match self.parser.next(&mut rest) {
                Ok(Some(event)) => self.take(event),
                Ok(None) => break,
                // The MTS carries contents of any type.
                Err(_) => self.opaque = true,
            }
        }
    }
}

impl Write for Reader {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.signed.take(octets);
        self.take_octets(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn form(kind: PartKind, room: usize, depth: usize) -> Form {
    match (Front::from_kind(&kind), kind) {
        (Some(front), _) if depth < MAX_DEPTH => {
            Form::Message(Box::new(Forwarded::new(front, room, depth + 1)))
        }
        (Some(_), _) => Form::TooDeep,
        (None, PartKind::Text(charset)) => Form::Text(charset, Vec::new()),
        (None, PartKind::Binary) => Form::Binary,
        (None, PartKind::File { name }) => Form::File(name),
        (None, PartKind::Extended { data, .. }) => Form::Other(data.to_string()),
        (None, PartKind::Other { header }) => Form::Other(header.tag.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p772::{ContentBuilder, IpmIdentifier, PartForm};

    #[test]
    fn heading_texts_and_sizes_are_kept_however_the_content_is_cut() {
        let heading = Heading {
            this_ipm: IpmIdentifier { user: None, local: "1".to_owned() },
            subject: Some("Fire".to_owned()),
            ..Heading::default()
        };
        let name = Some("../x".to_owned());
        let content = ContentBuilder::new(&heading)
            .unwrap()
            .text("Übung")
            .part(&PartForm::File { name: name.clone() }, &[7; 1_000])
            .part(&PartForm::Binary, &[1, 2])
            .finish();
        for slice in [1, 7, 5_000] {
            let mut reader = Reader::default();
            content.chunks(slice).for_each(|piece| reader.write_all(piece).unwrap());
            assert_eq!(reader.heading.as_ref().unwrap().subject.as_deref(), Some("Fire"));
            let sizes: Vec<u64> = reader.parts.iter().map(|part| part.size).collect();
            assert_eq!(sizes[1..], [1_000, 2]);
            assert_eq!(reader.parts[0].text().as_deref(), Some("Übung"));
            assert_eq!(reader.parts[1].form, Form::File(name.clone()));
            assert!(!reader.opaque && reader.parts[2].text().is_none());
        }
        let mut reader = Reader::default();
        reader.write_all(b"no content at all").unwrap();
        assert!(reader.opaque);
    }

    #[test]
    fn a_forwarded_message_is_read_in_both_forms_however_it_is_cut() {
        let heading = |subject: &str| Heading {
            this_ipm: IpmIdentifier { user: None, local: "1".to_owned() },
            subject: Some(subject.to_owned()),
            ..Heading::default()
        };
        let inner = ContentBuilder::new(&heading("Inner")).unwrap().text("the text").finish();
        let header = p772::content_header(&inner).unwrap().unwrap();
        let rest = &inner[header.size..];
        for military in [false, true] {
            let forwarded = p772::Forwarded { military, delivery: None };
            let outer = ContentBuilder::new(&heading("Outer")).unwrap().text("see below");
            let head = outer.finish_forwarding(&forwarded, rest.len() as u64).head;
            let content = [head, rest.to_vec()].concat();
            for slice in [1, 3, 5_000] {
                let mut reader = Reader::default();
                content.chunks(slice).for_each(|piece| reader.write_all(piece).unwrap());
                let Form::Message(inner) = &reader.parts[1].form else { panic!("{reader:?}") };
                let message = &inner.message;
                assert_eq!(message.heading.as_ref().unwrap().subject.as_deref(), Some("Inner"));
                assert_eq!(message.parts[0].text().as_deref(), Some("the text"), "{military}");
                assert!(!message.opaque && !reader.opaque);
            }
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let form = Form::Text(Charset::Utf8, b"x\xc3".to_vec());
        let part = Seen { form, size: 9 };
        assert_eq!((part.text().as_deref(), part.missing()), (Some("x"), 7));
    }
}
