//! A message, probe or report that arrives over P1, or a P3 submission. Its envelope is parsed, its
//! content goes to a spool, as the octets come.

use crate::commits::pending::SyncFor;
use base::ber::{Error, Fault, Field};
use base::{AssociationId, Precedence};
use bytes::Bytes;
use engine::journal::{Digest, SpoolId};
use engine::{ContentNotes, Preparation};
use guard::Limits;
use guard::memory::MemoryCharge;
use p1::SecurityContext;
use p1::apdu::MtsApduHead;
use p1::p3::{ArgumentEvent, MessageSubmissionEnvelope, SubmissionParser};
use p1::{ApduParser, Event};
use scheduler::ChannelId;

/// Octets of memory a recipient takes once parsed, however few it took on the wire: its fields,
/// and each string of its address apart. Measured at 890 in submissions of 15,000 recipients.
const RECIPIENT: usize = 1 << 10;

/// What is being parsed.
#[derive(Debug)]
pub(crate) enum Parsing {
    /// An MTS-APDU.
    Transfer(ApduParser),
    /// A message-submission.
    Submission(SubmissionParser),
    /// Another operation's argument, kept whole up to a limit.
    Operation(Vec<u8>),
    /// Refused already: octets that still come are discarded.
    Ignoring,
}

/// The envelope, once it is complete.
#[derive(Debug)]
pub(crate) enum ArrivalHead {
    Transfer(Box<MtsApduHead>),
    Submission(Box<MessageSubmissionEnvelope>),
}

impl ArrivalHead {
    fn recipients(&self) -> usize {
        match self {
            ArrivalHead::Transfer(head) => match &**head {
                MtsApduHead::Message(envelope) => envelope.recipients.len(),
                MtsApduHead::Probe(envelope) => envelope.recipients.len(),
                MtsApduHead::Report(report) => report.content.recipients.len(),
            },
            ArrivalHead::Submission(envelope) => envelope.recipients.len(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct OpenArrival {
    /// The association it comes on; another one after a recovery.
    pub association: AssociationId,
    /// The channel, where it comes from a peer.
    pub channel: Option<ChannelId>,
    /// P3: invoke identifier and operation.
    pub invoke: i64,
    pub operation: i64,
    pub parsing: Parsing,
    pub spool: SpoolId,
    /// What is held in memory: all that came and is not content, and what it was parsed into.
    pub held: Option<MemoryCharge>,
    /// When it began, or was taken up.
    pub began: base::Instant,
    /// How much of the content's front the notes beside its content have; `None` where it has none.
    pub noted: Option<usize>,
    /// Until when it is kept for a recovery, since its last checkpoint.
    pub kept_until: Option<base::Instant>,
    /// Whether the edge was asked to begin the spool.
    pub spool_open: bool,
    pub head: Option<ArrivalHead>,
    /// Its precedence, as far as is known.
    pub level: Option<Precedence>,
    /// The security-context of the association that it began on.
    pub context: Option<SecurityContext>,
    /// What is noted of its content.
    pub notes: ContentNotes,
    /// The length at which its deadline is set again.
    pub paced: u64,
    /// What the sync in progress is for.
    pub syncing: Option<SyncFor>,
    /// The newest checkpoint that waits for the sync in progress.
    pub checkpoint_waiting: Option<u64>,
    /// The activity or argument has ended.
    pub ended: bool,
    /// After the end: the content is stored.
    pub stored: bool,
    /// After the end: the keys and routes of its recipients, so far.
    pub prepared: Option<Preparation>,
    /// After the end: the answer to the look-up.
    pub seen: Option<Vec<Option<Bytes>>>,
    /// The keys that the look-up did not find, in order.
    pub absent: Vec<Digest>,
    /// The keys looked up; reserved while `reserved`.
    pub keys: Vec<Digest>,
    /// Whether no other arrival may use the keys until this one is done with.
    pub reserved: bool,
}

impl OpenArrival {
    pub(crate) fn new(
        association: AssociationId,
        channel: Option<ChannelId>,
        parsing: Parsing,
        spool: SpoolId,
    ) -> OpenArrival {
        OpenArrival {
            association,
            channel,
            invoke: 0,
            operation: 0,
            parsing,
            spool,
            held: None,
            began: base::Instant(0),
            noted: None,
            kept_until: None,
            spool_open: false,
            head: None,
            level: None,
            context: None,
            notes: ContentNotes::default(),
            paced: 0,
            syncing: None,
            checkpoint_waiting: None,
            ended: false,
            stored: false,
            prepared: None,
            seen: None,
            absent: Vec::new(),
            keys: Vec::new(),
            reserved: false,
        }
    }

    /// What an earlier run had received of it.
    pub(crate) fn take_up(&mut self, envelope: MtsApduHead, notes: ContentNotes) {
        self.head = Some(ArrivalHead::Transfer(Box::new(envelope)));
        self.noted = Some(notes.front().len());
        self.notes = notes;
        self.spool_open = true;
    }

    /// Octets the parsed envelope takes, roughly and rather too many, and what is noted of the content.
    pub(crate) fn parsed_size(&self) -> usize {
        let recipients = self.head.as_ref().map_or(0, ArrivalHead::recipients);
        recipients * RECIPIENT + self.notes.held()
    }

    /// Whether what came so far was well formed and not refused.
    pub(crate) fn is_sound(&self) -> bool {
        !matches!(self.parsing, Parsing::Ignoring)
    }

    /// Parses a piece; gives the content octets in it.
    ///
    /// # Errors
    /// Malformed, a limit passed, or a content longer than the limits have it.
    pub(crate) fn take(&mut self, bytes: &Bytes, limits: &Limits) -> Result<Vec<Bytes>, Error> {
        let mut content = Vec::new();
        let mut rest: &[u8] = bytes;
        match &mut self.parsing {
            Parsing::Ignoring => {}
            Parsing::Operation(argument) => {
                if argument.len() + rest.len() > limits.envelope {
                    return Err(Fault::TooLong(limits.envelope as u64)).field("argument");
                }
                argument.extend_from_slice(rest);
            }
            Parsing::Transfer(parser) => {
                while let Some(event) = parser.next(&mut rest)? {
                    match event {
                        Event::Head(head) => {
                            self.head = Some(ArrivalHead::Transfer(Box::new(head)));
                        }
                        Event::Content(octets) => content.push(bytes.slice_ref(octets)),
                        Event::End => {}
                    }
                }
                trailing(rest)?;
            }
            Parsing::Submission(parser) => {
                while let Some(event) = parser.next(&mut rest)? {
                    match event {
                        ArgumentEvent::Envelope(head) => {
                            self.head = Some(ArrivalHead::Submission(head));
                        }
                        ArgumentEvent::Content(octets) => content.push(bytes.slice_ref(octets)),
                        ArgumentEvent::End => {}
                    }
                }
                trailing(rest)?;
            }
        }
        content.iter().for_each(|octets| self.notes.take(octets));
        if self.notes.length() > limits.content {
            return Err(Fault::TooLong(limits.content)).field("content");
        }
        Ok(content)
    }

    /// Whether the unit is complete, now that no more comes.
    ///
    /// # Errors
    /// It was cut short.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let done = match &self.parsing {
            Parsing::Transfer(parser) => parser.is_done(),
            Parsing::Submission(parser) => parser.is_done(),
            Parsing::Operation(_) | Parsing::Ignoring => true,
        };
        if done { Ok(()) } else { Err(Fault::Truncated).field("APDU") }
    }
}

fn trailing(rest: &[u8]) -> Result<(), Error> {
    if rest.is_empty() { Ok(()) } else { Err(Fault::Trailing).field("APDU") }
}
