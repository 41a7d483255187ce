use super::delivery::MessageDeliveryEnvelope;
use super::submission::MessageSubmissionEnvelope;
use base::ber::{
    Error, Fault, Field, Header, Length, Limits, Reader, Token, Tokenizer, universal as u,
};

/// Longest envelope, octets.
pub(super) const MAX_ENVELOPE: usize = 1 << 20;

/// What stands before the content in an argument that carries one.
pub trait ArgumentHead: Sized {
    /// Name of the envelope in the standard's terms.
    const NAME: &'static str;
    /// Whether it is the MTA's, which accepted its names before: see [`base::ber::Element::is_accepted`].
    const IS_ACCEPTED: bool = false;

    /// Reads the elements before the content.
    ///
    /// # Errors
    /// Malformed, or a member that must be there is missing; the field is named.
    fn read_head(members: Reader<'_>) -> Result<Self, Error>;
}

/// A message-submission argument.
pub type SubmissionParser = ArgumentParser<MessageSubmissionEnvelope>;
/// A message-delivery argument.
pub type DeliveryParser = ArgumentParser<MessageDeliveryEnvelope>;

/// One step of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentEvent<'a, T> {
    /// The envelope.
    Envelope(Box<T>),
    /// Octets of the content as they arrive, its segments put together; never empty.
    Content(&'a [u8]),
    /// The argument ends.
    End,
}

/// Takes an argument SEQUENCE of envelope and content in slices of any size. Holds the envelope, at
/// most 1 MiB where nothing else is asked for, and nothing of the content.
///
/// Cutting the argument at any octet gives the same events, but for how the content is divided.
#[derive(Debug)]
pub struct ArgumentParser<T> {
    tokenizer: Tokenizer,
    state: State,
    envelope: Vec<u8>,
    envelope_limit: usize,
    /// Octets of content so far, and the most there may be.
    content: u64,
    content_limit: u64,
    head: std::marker::PhantomData<fn() -> T>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    Envelope,
    Content,
    AfterContent,
    Ended,
}

impl<T: ArgumentHead> Default for ArgumentParser<T> {
    fn default() -> ArgumentParser<T> {
        ArgumentParser::new(Limits::default())
    }
}

impl<T: ArgumentHead> ArgumentParser<T> {
    /// For one argument within these limits, of which `octets` bounds the whole.
    pub fn new(limits: Limits) -> ArgumentParser<T> {
        ArgumentParser {
            tokenizer: Tokenizer::new(limits),
            state: State::Fresh,
            envelope: Vec::new(),
            envelope_limit: MAX_ENVELOPE,
            content: 0,
            content_limit: u64::MAX,
            head: std::marker::PhantomData,
        }
    }

    /// With an envelope of at most `limit` octets.
    #[must_use]
    pub fn envelope_limit(mut self, limit: usize) -> ArgumentParser<T> {
        self.envelope_limit = limit;
        self
    }

    /// With a content of at most `limit` octets. One whose length is announced is refused before its first octet.
    #[must_use]
    pub fn content_limit(mut self, limit: u64) -> ArgumentParser<T> {
        self.content_limit = limit;
        self
    }

    /// Whether the argument has ended; one cut short never does.
    pub fn is_done(&self) -> bool {
        self.state == State::Ended
    }

    /// The next event, taking what it needs from the front of `input`; `None` where `input` is used
    /// up or the argument has ended.
    ///
    /// # Errors
    /// Malformed BER, another structure than X.411's, or a limit passed. The parser is of no use
    /// afterwards.
    pub fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
    ) -> Result<Option<ArgumentEvent<'a, T>>, Error> {
        loop {
            let before = *input;
            let token = self.tokenizer.next(input)?;
            let taken = before.get(..before.len() - input.len()).unwrap_or_default();
            if matches!(self.state, State::Fresh | State::Envelope) {
                self.keep(taken)?;
            }
            let Some(token) = token else { return Ok(None) };
            if let Some(event) = self.step(token)? {
                return Ok(Some(event));
            }
        }
    }

    fn keep(&mut self, octets: &[u8]) -> Result<(), Error> {
        if self.envelope.len() + octets.len() > self.envelope_limit {
            return Err(Fault::TooLong(self.envelope_limit as u64)).field(T::NAME);
        }
        self.envelope.extend_from_slice(octets);
        Ok(())
    }

    /// A content, or a segment of one, of this header begins.
    fn announced(&self, header: &Header) -> Result<(), Error> {
        match header.length {
            Length::Definite(length) if !header.constructed => self.within(length),
            _ => Ok(()),
        }
    }

    /// Whether so many more octets of content are within the limit.
    fn within(&self, more: u64) -> Result<(), Error> {
        match self.content.saturating_add(more) <= self.content_limit {
            true => Ok(()),
            false => Err(Fault::TooLong(self.content_limit)).field("content"),
        }
    }

    fn step<'a>(&mut self, token: Token<'a>) -> Result<Option<ArgumentEvent<'a, T>>, Error> {
        match (self.state, token) {
            (State::Fresh, Token::Begin { header, .. }) => {
                if header.tag != u::SEQUENCE || !header.constructed {
                    return Err(Fault::Unexpected(header.tag)).field("argument");
                }
                self.envelope.clear();
                self.state = State::Envelope;
                Ok(None)
            }
            (State::Envelope, Token::Begin { header, depth: 1 })
                if header.tag == u::OCTET_STRING =>
            {
                // The content's own header was kept with the rest.
                let envelope = std::mem::take(&mut self.envelope);
                let length = envelope.len().saturating_sub(header.size);
                let envelope = envelope.get(..length).unwrap_or_default();
                let members = match T::IS_ACCEPTED {
                    true => Reader::of_accepted(envelope),
                    false => Reader::new(envelope),
                };
                let head = Box::new(T::read_head(members).field(T::NAME)?);
                self.announced(&header)?;
                self.state = State::Content;
                Ok(Some(ArgumentEvent::Envelope(head)))
            }
            (State::Envelope, Token::End { depth: 0 }) => {
                Err(Fault::Missing(u::OCTET_STRING)).field("content")
            }
            (State::Content, Token::Data(octets)) => {
                let length = octets.len() as u64;
                self.within(length)?;
                self.content = self.content.saturating_add(length);
                Ok(Some(ArgumentEvent::Content(octets)))
            }
            (State::Content, Token::Begin { header, .. }) if header.tag != u::OCTET_STRING => {
                // X.690 8.7.3.2: segments of an OCTET STRING are OCTET STRINGs.
                Err(Fault::Unexpected(header.tag)).field("content")
            }
            (State::Content, Token::Begin { header, .. }) => self.announced(&header).map(|()| None),
            (State::Content, Token::End { depth: 1 }) => {
                self.state = State::AfterContent;
                Ok(None)
            }
            (State::AfterContent, Token::Begin { header, .. }) => {
                Err(Fault::Unexpected(header.tag)).field("argument")
            }
            (State::AfterContent, Token::End { .. }) => {
                self.state = State::Ended;
                Ok(Some(ArgumentEvent::End))
            }
            _ => Ok(None),
        }
    }
}
