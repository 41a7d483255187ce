//! The precedences of a message, from the first octets of its content.

use crate::military::MmhsPrecedence;
use crate::oids;
use base::Precedence;
use base::ber::{Element, Fault, Limits, Tag, Token, Tokenizer, universal as u};

/// How much of a content is looked at, at most: headings are far smaller.
pub const PEEK_OCTETS: usize = 1 << 20;

/// Precedences found in a heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadingPrecedence {
    /// primary-precedence.
    pub primary: Option<MmhsPrecedence>,
    /// copy-precedence.
    pub copy: Option<MmhsPrecedence>,
}

impl HeadingPrecedence {
    /// The level the message is to be handled at: the primary precedence, else the copy precedence
    /// (a message for information only). `None` for national values.
    pub fn level(&self) -> Option<Precedence> {
        self.primary.or(self.copy).and_then(MmhsPrecedence::level)
    }
}

/// Reads the precedences from the front of a content; `None` if `prefix` has none, ends too
/// early, or is not a message of X.420.
///
/// Looks at [`PEEK_OCTETS`] at most and stops as soon as both are known or the heading ends.
pub fn peek_precedence(prefix: &[u8]) -> Option<HeadingPrecedence> {
    let input = prefix.get(..PEEK_OCTETS).unwrap_or(prefix);
    let mut peek = Peek::default();
    // What was found before a fault or the end counts.
    let _ = peek.run(input);
    (peek.found != HeadingPrecedence::default()).then_some(peek.found)
}

#[derive(Default)]
struct Peek {
    found: HeadingPrecedence,
    in_extensions: bool,
    /// Number of the extension that is open, where it is one of the two.
    extension: Option<u8>,
    /// Tag of the primitive being read in it, and its contents so far.
    value: Option<(Tag, Vec<u8>)>,
}

/// Depths: 0 InformationObject, 1 Heading, 2 its members, 3 an IPMSExtension, 4 its type and value.
impl Peek {
    fn run(&mut self, mut input: &[u8]) -> Result<(), Fault> {
        let mut tokenizer = Tokenizer::new(Limits::default());
        while let Some(token) = tokenizer.next(&mut input)? {
            match token {
                Token::Begin { header, depth } => {
                    let fits = match depth {
                        0 => header.tag == Tag::context(0),
                        1 => header.tag == u::SET,
                        _ => true,
                    };
                    if !fits {
                        return Ok(());
                    }
                    match depth {
                        2 => self.in_extensions = header.tag == Tag::context(15),
                        3 => self.extension = None,
                        4 if self.in_extensions => self.value = Some((header.tag, Vec::new())),
                        _ => {}
                    }
                }
                Token::Data(data) => {
                    if let Some((_, value)) = &mut self.value
                        && value.len() < 64
                    {
                        value.extend_from_slice(data);
                    }
                }
                Token::End { depth: 4 } => self.end_value(),
                Token::End { depth: 1 } => return Ok(()),
                Token::End { .. } => {}
            }
            if self.found.primary.is_some() && self.found.copy.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn end_value(&mut self) {
        let Some((tag, value)) = self.value.take() else { return };
        if tag == u::OID {
            self.extension = oids::heading_extension_number(&value);
            return;
        }
        let slot = match self.extension {
            Some(0) => &mut self.found.primary,
            Some(1) => &mut self.found.copy,
            _ => return,
        };
        if tag == u::INTEGER && slot.is_none() {
            *slot = integer(&value).and_then(MmhsPrecedence::new);
        }
    }
}

fn integer(content: &[u8]) -> Option<i64> {
    let length = u8::try_from(content.len()).ok().filter(|n| *n < 0x80)?;
    let octets = [&[2, length], content].concat();
    Element::parse(&octets).and_then(|e| e.integer()).ok()
}
