use crate::bind::Credentials;
use crate::extension::Extensions;
use crate::names::{MtaName, ORName};
use crate::wire::{self, tag};
use base::ber::universal as u;
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_distinct_set, read_set};
use bytes::Bytes;

/// ObjectName: who binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectName {
    /// user-agent.
    UserAgent(ORName),
    /// mTA.
    Mta(MtaName),
    /// message-store.
    MessageStore(ORName),
}

/// DeliveryQueue: what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryQueue {
    /// messages.
    pub messages: i64,
    /// octets of content.
    pub octets: Option<i64>,
}

/// MessagesWaiting for the one addressed, by priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessagesWaiting {
    /// urgent.
    pub urgent: DeliveryQueue,
    /// normal.
    pub normal: DeliveryQueue,
    /// non-urgent.
    pub non_urgent: DeliveryQueue,
}

/// MTSBindArgument and MTSBindResult, which have the same form (X.411 8.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MtsBind {
    /// initiator-name or responder-name.
    pub name: ObjectName,
    /// messages-waiting.
    pub messages_waiting: Option<MessagesWaiting>,
    /// initiator-credentials or responder-credentials.
    pub credentials: Credentials,
    /// security-context of an argument, the whole element.
    pub security_context: Option<Bytes>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

const MTA: Tag = Tag::context(0);
const MESSAGES_WAITING: Tag = Tag::context(1);
const CREDENTIALS: Tag = Tag::context(2);
const SECURITY_CONTEXT: Tag = Tag::context(3);
const MESSAGE_STORE: Tag = Tag::context(4);
const EXTENSIONS: Tag = Tag::context(5);

fn user_agent(e: &Element<'_>) -> Result<ObjectName, Error> {
    ORName::read(e).map(ObjectName::UserAgent)
}

fn message_store(e: &Element<'_>) -> Result<ObjectName, Error> {
    ORName::read(e).map(ObjectName::MessageStore)
}

impl MtsBind {
    /// A bind of this name and these credentials, and nothing else.
    pub fn new(name: ObjectName, credentials: Credentials) -> MtsBind {
        MtsBind {
            name,
            messages_waiting: None,
            credentials,
            security_context: None,
            extensions: Extensions::default(),
            unknown: Vec::new(),
        }
    }

    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no name or credentials; the field is named.
    pub fn read(e: &Element<'_>) -> Result<MtsBind, Error> {
        if e.tag != u::SET {
            return Err(Fault::Unexpected(e.tag)).field("MTSBindArgument");
        }
        let (mut name, mut waiting) =
            (Member::new("initiator-name"), Member::new("messages-waiting"));
        let (mut credentials, mut context) =
            (Member::new("credentials"), Member::new("security-context"));
        let mut extensions = Member::new("extensions");
        // The alternatives of the name are of one CHOICE: the last counts.
        let unknown = read_distinct_set(e, |m| match m.tag {
            tag::OR_NAME => name.last(m, |m| user_agent(m).field("user-agent")),
            MTA => name.last(m, |m| Ok(ObjectName::Mta(MtaName(m.text().field("mTA")?)))),
            MESSAGES_WAITING => waiting.once(m, |m| MessagesWaiting::read(&m.only_child()?)),
            CREDENTIALS => credentials.once(m, |m| Credentials::read(&m.only_child()?)),
            SECURITY_CONTEXT => context.once(m, |m| Ok(wire::keep(m))),
            MESSAGE_STORE => name.last(m, |m| message_store(m).field("message-store")),
            EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        })?;
        Ok(MtsBind {
            name: name.required(tag::OR_NAME)?,
            messages_waiting: waiting.optional(),
            credentials: credentials.required(CREDENTIALS)?,
            security_context: context.optional(),
            extensions: extensions.or_default(),
            unknown: wire::keep_all(&unknown),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            match &self.name {
                ObjectName::UserAgent(name) => name.write(w),
                ObjectName::Mta(name) => w.string(Tag::context(0), &name.0),
                ObjectName::MessageStore(name) => name.write_as(w, Tag::context(4)),
            }
            if let Some(waiting) = &self.messages_waiting {
                w.constructed(Tag::context(1), |w| waiting.write(w));
            }
            w.constructed(Tag::context(2), |w| self.credentials.write(w));
            if let Some(context) = &self.security_context {
                w.raw(context);
            }
            self.extensions.write_as(w, Tag::context(5));
            wire::write_kept(w, &self.unknown);
        });
    }
}

const URGENT: Tag = Tag::context(0);
const NORMAL: Tag = Tag::context(1);
const NON_URGENT: Tag = Tag::context(2);
const MESSAGES: Tag = Tag::context(0);
const OCTETS: Tag = Tag::context(1);

impl DeliveryQueue {
    /// Takes in what one element has of it.
    fn take(&mut self, e: &Element<'_>) -> Result<bool, Error> {
        read_set(e, |m| {
            match m.tag {
                MESSAGES => self.messages = m.integer()?,
                OCTETS => self.octets = Some(m.integer()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(true)
    }
}

impl MessagesWaiting {
    fn read(e: &Element<'_>) -> Result<MessagesWaiting, Error> {
        let mut waiting = MessagesWaiting::default();
        read_set(e, |m| match m.tag {
            URGENT => waiting.urgent.take(m),
            NORMAL => waiting.normal.take(m),
            NON_URGENT => waiting.non_urgent.take(m),
            _ => Ok(false),
        })?;
        Ok(waiting)
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            for (n, queue) in [(0, self.urgent), (1, self.normal), (2, self.non_urgent)] {
                w.constructed(Tag::context(n), |w| {
                    w.integer(Tag::context(0), queue.messages);
                    if let Some(octets) = queue.octets {
                        w.integer(Tag::context(1), octets);
                    }
                });
            }
        });
    }
}

/// MTSBindError: why a bind is refused (X.411 8.1.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum MtsBindError {
    /// busy, 0.
    #[error("busy")]
    Busy,
    /// authentication-error, 2.
    #[error("authentication-error")]
    AuthenticationError,
    /// unacceptable-dialogue-mode, 3.
    #[error("unacceptable-dialogue-mode")]
    UnacceptableDialogueMode,
    /// unacceptable-security-context, 4.
    #[error("unacceptable-security-context")]
    UnacceptableSecurityContext,
    /// inadequate-association-confidentiality, 5.
    #[error("inadequate-association-confidentiality")]
    InadequateAssociationConfidentiality,
    /// A number X.411 does not give.
    #[error("bind error {0}")]
    Other(i64),
}

impl MtsBindError {
    /// The error's number.
    pub fn number(self) -> i64 {
        match self {
            MtsBindError::Busy => 0,
            MtsBindError::AuthenticationError => 2,
            MtsBindError::UnacceptableDialogueMode => 3,
            MtsBindError::UnacceptableSecurityContext => 4,
            MtsBindError::InadequateAssociationConfidentiality => 5,
            MtsBindError::Other(number) => number,
        }
    }

    /// Reads the INTEGER.
    ///
    /// # Errors
    /// No INTEGER.
    pub fn read(e: &Element<'_>) -> Result<MtsBindError, Error> {
        Ok(match e.integer().field("mts-bind-error")? {
            0 => MtsBindError::Busy,
            2 => MtsBindError::AuthenticationError,
            3 => MtsBindError::UnacceptableDialogueMode,
            4 => MtsBindError::UnacceptableSecurityContext,
            5 => MtsBindError::InadequateAssociationConfidentiality,
            number => MtsBindError::Other(number),
        })
    }

    /// Appends the INTEGER.
    pub fn write(self, w: &mut Writer) {
        w.integer(u::INTEGER, self.number());
    }
}
