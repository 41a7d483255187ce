//! A content taken in pieces: the heading whole, the body parts as they come.

use crate::encode::{FILE_TRANSFER, GENERAL_TEXT};
use crate::file::FileData;
use crate::heading::Heading;
use crate::oids;
use crate::text::Charset;
use base::ber::{Element, Error, Fault, Field, Header, Limits, Oid, Tag, Token, Tokenizer};
use base::ber::{MAX_HEADER_OCTETS, universal as u};
use std::borrow::Cow;

/// Longest heading or notification, octets.
pub const MAX_HEADING: usize = 1 << 20;
/// Longest parameters of an extended body part, octets.
pub const MAX_PARAMETERS: usize = 1 << 16;
/// Most body parts.
pub const MAX_BODY_PARTS: usize = 4096;

/// The type of a body part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// ia5-text or general text. `Data` is its octets, in this character set.
    Text(Charset),
    /// Bilaterally defined. `Data` is its octets.
    Binary,
    /// File transfer. `Data` is the file's octets.
    File {
        /// The last part of its pathname as the sender wrote it: to be made harmless before a file is
        /// called so.
        name: Option<String>,
    },
    /// Any other extended body part. `Data` is the encoding of its value.
    Extended {
        /// The type of its data.
        data: Oid,
        /// Its parameters, as they came.
        parameters: Option<Vec<u8>>,
    },
    /// Any other basic body part. `Data` is the contents of the element that begins with `header`,
    /// without its end-of-contents octets.
    Other {
        /// Tag, form and length of the body part.
        header: Header,
    },
}

/// One step of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentEvent<'a> {
    /// The heading.
    Heading(Box<Heading>),
    /// The content is a notification instead of a message: all of it; the last event.
    Notification(Vec<u8>),
    /// A body part begins.
    PartBegin(PartKind),
    /// The open body part's data, as it arrives; never empty.
    Data(Cow<'a, [u8]>),
    /// The open body part ends.
    PartEnd,
    /// The content ends.
    End,
}

/// Takes a content in slices of any size and gives its [`ContentEvent`]s. Holds the heading, at most
/// [`MAX_HEADING`], and nothing of the body parts' data.
///
/// Cutting the content at any octet gives the same events, but for how `Data` is divided.
#[derive(Debug)]
pub struct ContentParser {
    tokenizer: Tokenizer,
    state: State,
    /// Octets of an incomplete header.
    held: Vec<u8>,
    parts: usize,
}

#[derive(Debug)]
enum State {
    /// Before InformationObject.
    Fresh,
    /// In it; what is due next.
    Message(Due),
    Heading(Vec<u8>),
    Notification(Vec<u8>),
    /// Between body parts.
    Body,
    Part(Part),
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Heading,
    Body,
    Nothing,
}

/// Where in a body part we are (its own element is at depth 2).
#[derive(Debug)]
enum Part {
    /// ia5-text: before its string.
    Ia5Text,
    /// The string at `depth`, whose octets are the data; `over` once it ended.
    Octets { depth: usize, over: bool },
    /// The contents of the element at `depth` are the data, as encoded; `over` once it ended.
    Encoding { depth: usize, over: bool },
    /// ExtendedBodyPart: before its value.
    Extended(Extended),
    /// The FileTransferData of one.
    File(FileData),
}

#[derive(Debug, Default)]
struct Extended {
    parameters: Option<Vec<u8>>,
    reference: Vec<u8>,
    within: Within,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Nothing,
    Parameters,
    External,
    Reference,
}

fn keep(buffer: &mut Vec<u8>, octets: &[u8], limit: usize) -> Result<(), Error> {
    if buffer.len() + octets.len() > limit {
        return Err(Fault::TooLong(limit as u64).into());
    }
    buffer.extend_from_slice(octets);
    Ok(())
}

impl Default for ContentParser {
    fn default() -> ContentParser {
        ContentParser::new()
    }
}

impl ContentParser {
    /// For one content of type P2, P22 or P772.
    pub fn new() -> ContentParser {
        ContentParser {
            tokenizer: Tokenizer::new(Limits::default()),
            state: State::Fresh,
            held: Vec::with_capacity(MAX_HEADER_OCTETS),
            parts: 0,
        }
    }

    /// Whether the content has ended; a content cut short never does.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// The next event, taking what it needs from the front of `input`; `None` where `input` is used
    /// up or the content has ended.
    ///
    /// # Errors
    /// Malformed BER, another structure than X.420's, or a limit passed. The parser is of no use
    /// afterwards.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<ContentEvent<'a>>, Error> {
        loop {
            let before: &'a [u8] = input;
            let token = self.tokenizer.next(input)?;
            let taken = before.get(..before.len() - input.len()).unwrap_or_default();
            let Some(token) = token else {
                self.held.extend_from_slice(taken);
                return Ok(None);
            };
            let raw = if self.held.is_empty() {
                Cow::Borrowed(taken)
            } else {
                self.held.extend_from_slice(taken);
                Cow::Owned(std::mem::take(&mut self.held))
            };
            if let Some(event) = self.step(token, raw)? {
                return Ok(Some(event));
            }
        }
    }

    /// One token, and the octets it took.
    fn step<'a>(
        &mut self,
        token: Token<'a>,
        raw: Cow<'a, [u8]>,
    ) -> Result<Option<ContentEvent<'a>>, Error> {
        match &mut self.state {
            State::Fresh | State::Message(_) | State::Body => self.between(token, &raw),
            State::Heading(buffer) => {
                keep(buffer, &raw, MAX_HEADING).field("heading")?;
                if token != (Token::End { depth: 1 }) {
                    return Ok(None);
                }
                let heading = Element::parse(buffer).and_then(|e| Heading::decode(&e));
                let heading = Box::new(heading.field("heading")?);
                self.state = State::Message(Due::Body);
                Ok(Some(ContentEvent::Heading(heading)))
            }
            State::Notification(buffer) => {
                keep(buffer, &raw, MAX_HEADING).field("ipn")?;
                if token != (Token::End { depth: 0 }) {
                    return Ok(None);
                }
                let whole = std::mem::take(buffer);
                self.state = State::Ended;
                Ok(Some(ContentEvent::Notification(whole)))
            }
            State::Part(_) if token == (Token::End { depth: 2 }) => self.end_part(),
            State::Part(part) => part.step(token, raw),
            State::Ended => Ok(None),
        }
    }

    /// A token outside heading and body parts.
    fn between<'a>(
        &mut self,
        token: Token<'a>,
        raw: &[u8],
    ) -> Result<Option<ContentEvent<'a>>, Error> {
        let (state, event) = match (&self.state, token) {
            (State::Fresh, Token::Begin { header, .. }) if header.constructed => match header.tag {
                tag if tag == Tag::context(0) => (State::Message(Due::Heading), None),
                tag if tag == Tag::context(1) => (State::Notification(raw.to_vec()), None),
                tag => return Err(Fault::Unexpected(tag)).field("InformationObject"),
            },
            (State::Message(Due::Heading), Token::Begin { header, .. })
                if header.tag == u::SET && header.constructed =>
            {
                (State::Heading(raw.to_vec()), None)
            }
            (State::Message(Due::Body), Token::Begin { header, .. })
                if header.tag == u::SEQUENCE && header.constructed =>
            {
                (State::Body, None)
            }
            (State::Message(Due::Nothing), Token::End { .. }) => {
                (State::Ended, Some(ContentEvent::End))
            }
            (State::Message(due), Token::End { .. }) => {
                let field = if *due == Due::Heading { "heading" } else { "body" };
                return Err(Fault::Truncated).field(field);
            }
            (State::Body, Token::Begin { header, .. }) => {
                self.parts += 1;
                if self.parts > MAX_BODY_PARTS {
                    return Err(Fault::TooMany(MAX_BODY_PARTS as u64)).field("body");
                }
                let (part, event) = Part::begin(header);
                (State::Part(part), event)
            }
            (State::Body, Token::End { .. }) => (State::Message(Due::Nothing), None),
            (_, Token::Begin { header, .. }) => {
                return Err(Fault::Unexpected(header.tag)).field("InformationObject");
            }
            // A primitive outermost element: refused where it began.
            (_, Token::Data(_) | Token::End { .. }) => {
                return Err(Fault::Value("InformationObject")).field("InformationObject");
            }
        };
        self.state = state;
        Ok(event)
    }

    fn end_part<'a>(&mut self) -> Result<Option<ContentEvent<'a>>, Error> {
        let begun = matches!(
            &self.state,
            State::Part(Part::Octets { .. } | Part::Encoding { .. } | Part::File(_))
        );
        self.state = State::Body;
        if begun {
            Ok(Some(ContentEvent::PartEnd))
        } else {
            Err(Fault::Truncated).field("body part")
        }
    }
}

impl Part {
    /// A body part begins, at depth 2.
    fn begin<'a>(header: Header) -> (Part, Option<ContentEvent<'a>>) {
        match header.tag {
            tag if tag == Tag::context(0) && header.constructed => (Part::Ia5Text, None),
            tag if tag == Tag::context(14) => (
                Part::Octets { depth: 2, over: false },
                Some(ContentEvent::PartBegin(PartKind::Binary)),
            ),
            tag if tag == Tag::context(15) && header.constructed => {
                (Part::Extended(Extended::default()), None)
            }
            _ => {
                let kind = PartKind::Other { header };
                (Part::Encoding { depth: 2, over: false }, Some(ContentEvent::PartBegin(kind)))
            }
        }
    }

    /// A token within the body part's element.
    fn step<'a>(
        &mut self,
        token: Token<'a>,
        raw: Cow<'a, [u8]>,
    ) -> Result<Option<ContentEvent<'a>>, Error> {
        match self {
            Part::Ia5Text => match token {
                Token::Begin { header, depth: 3 } if header.tag != u::SET => {
                    *self = Part::Octets { depth: 3, over: false };
                    Ok(Some(ContentEvent::PartBegin(PartKind::Text(Charset::Ascii))))
                }
                _ => Ok(None),
            },
            Part::Octets { depth, over } => match token {
                // Segments are OCTET STRINGs, by X.409 of a character string's own type too.
                Token::Begin { header, depth: at }
                    if *over
                        || at < *depth
                        || !(header.tag == u::OCTET_STRING || header.tag.is_character_string()) =>
                {
                    Err(Fault::Unexpected(header.tag)).field("body part")
                }
                Token::Data(data) if !*over => Ok(Some(ContentEvent::Data(Cow::Borrowed(data)))),
                Token::End { depth: at } if at == *depth => {
                    *over = true;
                    Ok(None)
                }
                _ => Ok(None),
            },
            Part::Encoding { depth, over } => match token {
                Token::Begin { header, .. } if *over => {
                    Err(Fault::Unexpected(header.tag)).field("body part")
                }
                Token::End { depth: at } if at <= *depth => {
                    *over = true;
                    Ok(None)
                }
                _ if raw.is_empty() => Ok(None),
                _ => Ok(Some(ContentEvent::Data(raw))),
            },
            Part::File(file) => {
                let data = file.step(token)?.filter(|data| !data.is_empty());
                Ok(data.map(|data| ContentEvent::Data(Cow::Borrowed(data))))
            }
            Part::Extended(extended) => {
                let Some((part, event)) = extended.step(token, &raw)? else { return Ok(None) };
                *self = part;
                Ok(Some(event))
            }
        }
    }
}

impl Extended {
    /// A token before the value of an ExtendedBodyPart; gives what follows once the value begins.
    /// Depths: 3 parameters and data, 4 the members of the data's EXTERNAL, 5 the value.
    fn step<'a>(
        &mut self,
        token: Token<'a>,
        raw: &[u8],
    ) -> Result<Option<(Part, ContentEvent<'a>)>, Error> {
        match (self.within, token) {
            (Within::Nothing, Token::Begin { header, .. }) => match header.tag {
                tag if tag == Tag::context(0) && self.parameters.is_none() => {
                    self.parameters = Some(raw.to_vec());
                    self.within = Within::Parameters;
                }
                u::EXTERNAL => self.within = Within::External,
                tag => return Err(Fault::Unexpected(tag)).field("extended body part"),
            },
            (Within::Parameters, token) => {
                if let Some(parameters) = &mut self.parameters {
                    keep(parameters, raw, MAX_PARAMETERS).field("parameters")?;
                }
                if token == (Token::End { depth: 3 }) {
                    self.within = Within::Nothing;
                }
            }
            (Within::External, Token::Begin { header, depth: 4 }) => match header.tag {
                u::OID => self.within = Within::Reference,
                Tag { class: base::ber::Class::Context, number: 0..=2 } => {
                    return self.value(&header).map(Some);
                }
                _ => {}
            },
            (Within::Reference, Token::Data(data)) => {
                keep(&mut self.reference, data, 64).field("direct-reference")?;
            }
            (Within::Reference, Token::End { .. }) => self.within = Within::External,
            (Within::External, Token::End { depth: 3 }) => self.within = Within::Nothing,
            _ => {}
        }
        Ok(None)
    }

    /// The value's encoding (`[0]` single-ASN1-type, `[1]` octet-aligned, `[2]` arbitrary) begins.
    fn value<'a>(&mut self, encoding: &Header) -> Result<(Part, ContentEvent<'a>), Error> {
        let data = Oid::from_content(&self.reference).field("direct-reference")?;
        let parameters = self.parameters.take();
        let single = encoding.tag == Tag::context(0);
        let kind = match oids::extended_data_number(data.content()) {
            Some(0) if single => PartKind::Text(Charset::Ascii),
            Some(9) if single => PartKind::Binary,
            Some(FILE_TRANSFER) if single => {
                let name = parameters.as_deref().and_then(crate::file::name);
                let part = Part::File(FileData::default());
                return Ok((part, ContentEvent::PartBegin(PartKind::File { name })));
            }
            Some(GENERAL_TEXT) if single => PartKind::Text(charset(parameters.as_deref())),
            _ => {
                let part = Part::Encoding { depth: 4, over: false };
                return Ok((
                    part,
                    ContentEvent::PartBegin(PartKind::Extended { data, parameters }),
                ));
            }
        };
        Ok((Part::Octets { depth: 5, over: false }, ContentEvent::PartBegin(kind)))
    }
}

/// The character set named by general text's parameters, `[0]` EXTERNAL of a SET OF INTEGER.
fn charset(parameters: Option<&[u8]>) -> Charset {
    let numbers = parameters.map(|octets| -> Result<Vec<i64>, Error> {
        let mut external = Element::parse(octets)?.children()?;
        external.require(u::OID)?;
        let mut set = external.require(Tag::context(0))?.only_child()?.children()?;
        let mut numbers = Vec::new();
        while let Some(number) = set.next()? {
            numbers.push(number.integer()?);
        }
        Ok(numbers)
    });
    match numbers {
        Some(Ok(numbers)) => Charset::from_registrations(&numbers),
        _ => Charset::Other,
    }
}
