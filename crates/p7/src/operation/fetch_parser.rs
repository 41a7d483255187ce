//! A fetch result taken in slices of any size, so that a client never holds a content whole.

use crate::attributes;
use crate::operation::fetch::FetchResult;
use base::ber::{
    Element, Error, Fault, Field, Header, Length, Limits, Tag, Token, Tokenizer, Writer,
    universal as u,
};

/// Octets of a result without its content that are held, unless another limit is asked for.
const MAX_HELD: usize = 1 << 20;

const ENTRY_INFORMATION: Tag = Tag::context(0);

/// Depths in a FetchResult: 0 SET, 1 `[0]`, 2 EntryInformation, 3 its attributes, 4 an Attribute, 5 its type and
/// its values, 6 a value.
const MEMBER: usize = 1;
const ATTRIBUTES: usize = 3;
const ATTRIBUTE: usize = 4;
const TYPE_OR_VALUES: usize = 5;
const VALUE: usize = 6;

/// One step of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchEvent<'a> {
    /// Octets of the content as they arrive, its segments put together; never empty.
    Content(&'a [u8]),
    /// The result ends. It is whole but for the content attribute, which it does not have.
    End(Box<FetchResult>),
}

/// Takes a FetchResult (X.413 8.2.5) in slices of any size. Holds all of it but the content, at most 1 MiB where
/// nothing else is asked for.
///
/// Cutting the result at any octet gives the same events, but for how the content is divided.
#[derive(Debug)]
pub struct FetchResultParser {
    tokenizer: Tokenizer,
    /// The result without the octets of the content. What is open around the content has an indefinite length
    /// here, all else is as it came.
    held: Writer,
    limit: usize,
    /// What was taken since the last token.
    raw: Vec<u8>,
    /// At each depth above that of a value, whether the open element may be around the content.
    around: [bool; VALUE],
    /// The contents of the attribute type that is open or was read last.
    attribute_type: Vec<u8>,
    reads_type: bool,
    content: Content,
    is_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// None came yet.
    Awaited,
    /// It arrives.
    Open,
    /// It has ended.
    Ended,
}

impl Default for FetchResultParser {
    fn default() -> FetchResultParser {
        FetchResultParser::new(Limits::default())
    }
}

impl FetchResultParser {
    /// For one result within these limits, of which `octets` bounds the whole.
    pub fn new(limits: Limits) -> FetchResultParser {
        FetchResultParser {
            tokenizer: Tokenizer::new(limits),
            held: Writer::new(),
            limit: MAX_HELD,
            raw: Vec::new(),
            around: [false; VALUE],
            attribute_type: Vec::new(),
            reads_type: false,
            content: Content::Awaited,
            is_done: false,
        }
    }

    /// Holding at most so many octets.
    #[must_use]
    pub fn held_limit(mut self, limit: usize) -> FetchResultParser {
        self.limit = limit;
        self
    }

    /// Whether the result has ended; one cut short never does.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The next event, taking what it needs from the front of `input`; `None` where `input` is used up or the
    /// result has ended.
    ///
    /// # Errors
    /// Malformed BER, another structure than X.413's, two contents, or a limit passed. The parser is of no use
    /// afterwards.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<FetchEvent<'a>>, Error> {
        loop {
            let before = *input;
            let token = self.tokenizer.next(input)?;
            if self.content != Content::Open {
                let taken = before.get(..before.len() - input.len()).unwrap_or_default();
                self.raw.extend_from_slice(taken);
            }
            if self.held.as_slice().len() + self.raw.len() > self.limit {
                return Err(Fault::TooLong(self.limit as u64)).field("FetchResult");
            }
            let Some(token) = token else { return Ok(None) };
            let event = match self.content {
                Content::Open => self.content_step(token)?,
                Content::Awaited | Content::Ended => self.step(token)?,
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    fn content_step<'a>(&mut self, token: Token<'a>) -> Result<Option<FetchEvent<'a>>, Error> {
        match token {
            Token::Data(octets) => return Ok(Some(FetchEvent::Content(octets))),
            // X.690 8.7.3.2: segments of an OCTET STRING are OCTET STRINGs.
            Token::Begin { header, .. } if header.tag != u::OCTET_STRING => {
                return Err(Fault::Unexpected(header.tag)).field("content");
            }
            Token::End { depth: VALUE } => self.content = Content::Ended,
            Token::Begin { .. } | Token::End { .. } => {}
        }
        Ok(None)
    }

    fn step<'a>(&mut self, token: Token<'a>) -> Result<Option<FetchEvent<'a>>, Error> {
        let raw = std::mem::take(&mut self.raw);
        match token {
            Token::Begin { header, depth } => self.begin(header, depth, &raw)?,
            Token::Data(octets) => {
                if self.reads_type {
                    self.attribute_type.extend_from_slice(octets);
                }
                self.held.raw(&raw);
            }
            Token::End { depth } => return self.end(depth, &raw),
        }
        Ok(None)
    }

    fn begin(&mut self, header: Header, depth: usize, raw: &[u8]) -> Result<(), Error> {
        let outer = depth.checked_sub(1).and_then(|outer| self.around.get(outer)).copied();
        let is_within = outer.unwrap_or(depth == 0);
        if depth == VALUE && is_within && self.is_content() {
            if self.content == Content::Ended || header.tag != u::OCTET_STRING {
                return Err(Fault::Unexpected(header.tag)).field("content");
            }
            self.content = Content::Open;
            self.held.header(u::OCTET_STRING, false, Length::Definite(0));
            return Ok(());
        }
        let may_be_around = match depth {
            MEMBER => header.tag == ENTRY_INFORMATION,
            ATTRIBUTES => header.tag == u::SET,
            TYPE_OR_VALUES => header.tag == u::SEQUENCE,
            _ => true,
        };
        let is_around = is_within && header.constructed && may_be_around;
        if let Some(around) = self.around.get_mut(depth) {
            *around = is_around;
        }
        match depth {
            ATTRIBUTE => self.attribute_type.clear(),
            TYPE_OR_VALUES => self.reads_type = is_within && header.tag == u::OID,
            _ => {}
        }
        match is_around && depth < VALUE {
            true => self.held.header(header.tag, true, Length::Indefinite),
            false => self.held.raw(raw),
        }
        Ok(())
    }

    fn is_content(&self) -> bool {
        let (arc, number) = (attributes::CONTENT.arc, [attributes::CONTENT.number]);
        self.attribute_type.strip_prefix(arc) == Some(&number)
    }

    fn end<'a>(&mut self, depth: usize, raw: &[u8]) -> Result<Option<FetchEvent<'a>>, Error> {
        match self.around.get_mut(depth).is_some_and(std::mem::take) {
            true => self.held.end_of_contents(),
            false => self.held.raw(raw),
        }
        match depth {
            TYPE_OR_VALUES => self.reads_type = false,
            0 => return self.result().map(|result| Some(FetchEvent::End(Box::new(result)))),
            _ => {}
        }
        Ok(None)
    }

    fn result(&mut self) -> Result<FetchResult, Error> {
        self.is_done = true;
        let held = std::mem::take(&mut self.held).into_vec();
        let mut result = FetchResult::read(&Element::parse(&held)?)?;
        if let Some(entry) = &mut result.entry_information {
            entry.attributes.retain(|of| !attributes::CONTENT.is(&of.attribute_type));
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{EntryInformation, SequenceNumber};
    use crate::value::Value;

    fn result() -> FetchResult {
        let status = attributes::RETRIEVAL_STATUS.single(Value::from_integer(1));
        let kind = attributes::CONTENT_LENGTH.single(Value::from_integer(5));
        let entry = EntryInformation {
            sequence_number: SequenceNumber(300),
            attributes: vec![status, kind],
            value_count_exceeded: Vec::new(),
        };
        FetchResult {
            entry_information: Some(entry),
            list: vec![SequenceNumber(4), SequenceNumber(7)],
            next: Some(SequenceNumber(9)),
            extensions: Vec::new(),
        }
    }

    /// What slices of so many octets give: the content, and the result.
    fn parsed(octets: &[u8], slice: usize) -> Result<(Vec<u8>, Option<FetchResult>), Error> {
        let (mut parser, mut content, mut result) =
            (FetchResultParser::default(), Vec::new(), None);
        for mut part in octets.chunks(slice) {
            while let Some(event) = parser.next(&mut part)? {
                match event {
                    FetchEvent::Content(octets) => content.extend_from_slice(octets),
                    FetchEvent::End(end) => result = Some(*end),
                }
            }
        }
        assert_eq!(parser.is_done(), result.is_some());
        Ok((content, result))
    }

    #[test]
    fn a_content_of_any_length_comes_in_parts_and_the_rest_at_the_end() {
        for length in [0usize, 1, 127, 128, 5_000] {
            let content: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let octets = [result().head(length as u64), content.clone()].concat();
            for slice in [1, 2, 7, 1_000, octets.len()] {
                let found = parsed(&octets, slice).unwrap();
                assert_eq!(found, (content.clone(), Some(result())), "{length} by {slice}");
            }
            for cut in (0..octets.len()).step_by(1 + octets.len() / 60) {
                assert_eq!(parsed(&octets[..cut], 3).unwrap().1, None, "{cut}");
            }
        }
    }

    #[test]
    fn a_result_without_a_content_is_read_too() {
        let mut w = Writer::new();
        result().write(&mut w);
        assert_eq!(parsed(&w.into_vec(), 4).unwrap(), (Vec::new(), Some(result())));
        let mut w = Writer::new();
        FetchResult::default().write(&mut w);
        assert_eq!(parsed(&w.into_vec(), 1).unwrap().1, Some(FetchResult::default()));
    }

    #[test]
    fn a_content_in_segments_and_indefinite_lengths_is_put_together() {
        let oid = attributes::CONTENT.oid();
        let mut w = Writer::new();
        let opens = [u::SET, ENTRY_INFORMATION, u::SEQUENCE];
        opens.iter().for_each(|tag| w.header(*tag, true, Length::Indefinite));
        w.integer(u::INTEGER, 5);
        [u::SET, u::SEQUENCE].iter().for_each(|tag| w.header(*tag, true, Length::Indefinite));
        w.oid(u::OID, &oid);
        w.header(u::SEQUENCE, true, Length::Indefinite);
        w.header(u::OCTET_STRING, true, Length::Indefinite);
        w.string(u::OCTET_STRING, b"one ");
        w.string(u::OCTET_STRING, b"two");
        (0..7).for_each(|_| w.end_of_contents());
        let (content, result) = parsed(&w.into_vec(), 5).unwrap();
        assert_eq!(content, b"one two");
        let entry = result.unwrap().entry_information.unwrap();
        assert_eq!((entry.sequence_number, entry.attributes), (SequenceNumber(5), Vec::new()));
    }

    #[test]
    fn two_contents_and_too_much_beside_it_are_refused() {
        let value = || attributes::CONTENT.single(Value::from_octet_string(b"x"));
        let mut twice = result();
        twice.entry_information.as_mut().unwrap().attributes.extend([value(), value()]);
        let mut w = Writer::new();
        twice.write(&mut w);
        assert!(parsed(&w.into_vec(), 9).unwrap_err().to_string().contains("content"));
        let octets = result().head(0);
        let mut parser = FetchResultParser::default().held_limit(20);
        let error = parser.next(&mut &octets[..]).unwrap_err();
        assert!(error.to_string().contains("FetchResult"), "{error}");
    }
}
