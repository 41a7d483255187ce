//! Reads the heading, text and files of a content while it is received.

use crate::extract::Files;
use crate::mailbox::content::{Front, MAX_DEPTH};
use anyhow::Result;
use p772::{Charset, ContentEvent, ContentParser, Heading, Notification, PartKind};

/// Bound of the text shown, in octets.
pub(crate) const MAX_TEXT: usize = 256;

/// A message: the content, or one that is forwarded in the one before.
struct Level {
    /// Of a forwarded one.
    front: Option<Front>,
    parser: ContentParser,
    opaque: bool,
}

/// The part of a content received so far.
pub(crate) struct Reading<'a> {
    /// The content, and the messages in each other of which octets come.
    levels: Vec<Level>,
    pub heading: Option<Box<Heading>>,
    /// The content is a notification instead of a message.
    pub notification: Option<Box<Notification>>,
    /// Octets of the body parts.
    pub size: u64,
    /// The beginning of the first text, undecoded: a piece may end within a character.
    text: Option<(Charset, Vec<u8>)>,
    in_text: bool,
    /// A file of this level comes.
    file_of: Option<usize>,
    /// The content has a type that xuxa cannot read; it is kept unread.
    pub opaque: bool,
    /// Destination of its files, with `--extract`.
    files: Option<Files<'a>>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(files: Option<Files<'a>>) -> Reading<'a> {
        Reading {
            levels: vec![Level { front: None, parser: ContentParser::new(), opaque: false }],
            heading: None,
            notification: None,
            size: 0,
            text: None,
            in_text: false,
            file_of: None,
            opaque: false,
            files,
        }
    }

    /// The files in it, once.
    pub(crate) fn files(&mut self) -> Option<Files<'a>> {
        self.files.take()
    }

    /// The beginning of the first text.
    pub(crate) fn text(&self) -> Option<String> {
        let (charset, octets) = self.text.as_ref()?;
        let mut whole = octets.as_slice();
        if *charset == Charset::Utf8 && octets.len() == MAX_TEXT {
            // The cut may be within a character.
            if let Err(error) = std::str::from_utf8(octets)
                && error.error_len().is_none()
            {
                whole = octets.get(..error.valid_up_to()).unwrap_or(octets);
            }
        }
        Some(charset.decode(whole))
    }

    /// Whether that is all of the body.
    pub(crate) fn text_is_all(&self) -> bool {
        self.text.as_ref().is_some_and(|(_, octets)| octets.len() as u64 == self.size)
    }

    /// The next octets.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn take(&mut self, octets: &[u8]) -> Result<()> {
        self.take_at(0, octets)?;
        self.opaque |= self.levels.first().is_some_and(|content| content.opaque);
        Ok(())
    }

    /// The next octets of the message at a level.
    fn take_at(&mut self, at: usize, octets: &[u8]) -> Result<()> {
        let mut rest = octets;
        loop {
            let Some(level) = self.levels.get_mut(at).filter(|level| !level.opaque) else {
                return Ok(());
            };
            // The MTA carries contents of any type: an unknown one is kept unread.
            let Ok(event) = level.parser.next(&mut rest) else {
                level.opaque = true;
                return Ok(());
            };
            match event {
                None => return Ok(()),
                Some(ContentEvent::PartBegin(kind)) => self.begin(at, kind)?,
                Some(ContentEvent::Data(data)) => self.data(at, &data)?,
                Some(ContentEvent::PartEnd) => {
                    self.in_text = false;
                    if self.file_of.take_if(|of| *of >= at).is_some()
                        && let Some(files) = &mut self.files
                    {
                        files.end();
                    }
                }
                Some(ContentEvent::Heading(heading)) if at == 0 => self.heading = Some(heading),
                Some(ContentEvent::Notification(octets)) if at == 0 => {
                    self.notification = Notification::parse(&octets).ok().map(Box::new);
                    self.opaque = self.notification.is_none();
                }
                Some(ContentEvent::Heading(_) | ContentEvent::Notification(_)) => {}
                Some(ContentEvent::End) => {}
            }
        }
    }

    /// Data of a body part.
    fn data(&mut self, at: usize, data: &[u8]) -> Result<()> {
        if at == 0 {
            self.size += data.len() as u64;
        }
        if let Some((_, text)) = self.text.as_mut().filter(|_| self.in_text) {
            let room = MAX_TEXT.saturating_sub(text.len()).min(data.len());
            text.extend_from_slice(data.get(..room).unwrap_or_default());
        }
        if self.file_of == Some(at) {
            return self.files.as_mut().map_or(Ok(()), |files| files.write(data));
        }
        let inner = self.levels.get_mut(at + 1).and_then(|inner| inner.front.as_mut());
        match inner.and_then(|front| front.take(data)) {
            Some(of_message) => self.take_at(at + 1, &of_message),
            None => Ok(()),
        }
    }

    /// A body part begins.
    fn begin(&mut self, at: usize, kind: PartKind) -> Result<()> {
        // What was in the part before is over, and a file in it that was cut off.
        self.levels.truncate(at + 1);
        if self.file_of.take().is_some()
            && let Some(files) = &mut self.files
        {
            files.end();
        }
        let front = Front::from_kind(&kind).filter(|_| at < MAX_DEPTH && self.files.is_some());
        if front.is_some() {
            self.levels.push(Level { front, parser: ContentParser::new(), opaque: false });
            return Ok(());
        }
        let name = match kind {
            PartKind::Text(charset) => {
                if self.text.is_none() && at == 0 {
                    self.in_text = true;
                    self.text = Some((charset, Vec::new()));
                }
                return Ok(());
            }
            PartKind::File { name } => name,
            PartKind::Binary => None,
            PartKind::Extended { .. } | PartKind::Other { .. } => return Ok(()),
        };
        self.file_of = Some(at);
        self.files.as_mut().map_or(Ok(()), |files| files.begin(name.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(charset: Charset, octets: &[u8]) -> Option<String> {
        let mut reading = Reading::new(None);
        reading.text = Some((charset, octets.to_vec()));
        reading.text()
    }

    #[test]
    fn text_is_read_in_its_own_characters_and_cut_between_them() {
        assert_eq!(text(Charset::Latin1, b"\xdcbung").as_deref(), Some("Übung"));
        assert_eq!(text(Charset::Utf8, "Übung".as_bytes()).as_deref(), Some("Übung"));
        let mut long = vec![b'x'; MAX_TEXT - 1];
        long.push(0xc3);
        assert_eq!(text(Charset::Utf8, &long), Some("x".repeat(MAX_TEXT - 1)));
        assert_eq!(Reading::new(None).text(), None);
    }
}
