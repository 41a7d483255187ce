//! A content while it is fetched: its heading and texts are kept, the rest is counted.

use base::ber::Tag;
use p772::{Charset, ContentEvent, ContentParser, Heading, PartKind};
use std::io::{self, Write};

/// Most octets of text of one content that are kept.
pub(crate) const MAX_TEXT: usize = 1 << 20;
/// A forwarded message among body parts (X.420 7.3.8).
const MESSAGE: Tag = Tag::context(7);

/// What a body part is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text in this character set, as far as it is kept.
    Text(Charset, Vec<u8>),
    /// A file, and its name as it was sent.
    File(Option<String>),
    /// Octets of any kind.
    Binary,
    /// A forwarded message.
    Message,
    /// Another type, by its identifier or tag.
    Other(String),
}

/// One body part.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Takes a content as it is written.
#[derive(Debug)]
pub(crate) struct Reader {
    parser: ContentParser,
    /// The heading, once it came.
    pub heading: Option<Box<Heading>>,
    /// The body parts.
    pub parts: Vec<Seen>,
    /// The content is a notification: all of it.
    pub notification: Option<Vec<u8>>,
    /// It cannot be read as P22 or P772.
    pub opaque: bool,
    room: usize,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            parser: ContentParser::new(),
            heading: None,
            parts: Vec::new(),
            notification: None,
            opaque: false,
            room: MAX_TEXT,
        }
    }
}

impl Reader {
    fn take(&mut self, event: ContentEvent<'_>) {
        match event {
            ContentEvent::Heading(heading) => self.heading = Some(heading),
            ContentEvent::Notification(octets) => self.notification = Some(octets),
            ContentEvent::PartBegin(kind) => self.parts.push(Seen { form: form(kind), size: 0 }),
            ContentEvent::Data(octets) => {
                let Some(part) = self.parts.last_mut() else { return };
                part.size += octets.len() as u64;
                if let Form::Text(_, text) = &mut part.form {
                    let kept = octets.get(..octets.len().min(self.room)).unwrap_or_default();
                    text.extend_from_slice(kept);
                    self.room -= kept.len();
                }
            }
            ContentEvent::PartEnd | ContentEvent::End => {}
        }
    }
}

impl Write for Reader {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let mut rest = octets;
        while !self.opaque {
            match self.parser.next(&mut rest) {
                Ok(Some(event)) => self.take(event),
                Ok(None) => break,
                // The MTS carries contents of any type.
                Err(_) => self.opaque = true,
            }
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn form(kind: PartKind) -> Form {
    match kind {
        PartKind::Text(charset) => Form::Text(charset, Vec::new()),
        PartKind::Binary => Form::Binary,
        PartKind::File { name } => Form::File(name),
        PartKind::Extended { data, .. } => Form::Other(data.to_string()),
        PartKind::Other { header } if header.tag == MESSAGE => Form::Message,
        PartKind::Other { header } => Form::Other(header.tag.to_string()),
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
    fn a_text_is_cut_between_characters() {
        let form = Form::Text(Charset::Utf8, b"x\xc3".to_vec());
        let part = Seen { form, size: 9 };
        assert_eq!((part.text().as_deref(), part.missing()), (Some("x"), 7));
    }
}
