use crate::bind::Credentials;
use crate::extension::Extensions;
use crate::names::{MtaName, ORName};
use crate::wire::{self, tag};
use base::ber::{Element, Error, Fault, Field, Tag, Writer, universal as u};
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
        let (mut name, mut messages_waiting, mut credentials) = (None, None, None);
        let (mut security_context, mut extensions) = (None, Extensions::default());
        let mut unknown = Vec::new();
        let mut members = wire::members(e)?;
        while let Some(member) = members.next()? {
            match member.tag {
                tag::OR_NAME => {
                    name = Some(ObjectName::UserAgent(ORName::read(&member).field("user-agent")?));
                }
                tag if tag == Tag::context(0) => {
                    name = Some(ObjectName::Mta(MtaName(member.text().field("mTA")?)));
                }
                tag if tag == Tag::context(1) => {
                    let waiting = member.only_child().and_then(|e| MessagesWaiting::read(&e));
                    messages_waiting = Some(waiting.field("messages-waiting")?);
                }
                tag if tag == Tag::context(2) => {
                    let value = member.only_child().and_then(|e| Credentials::read(&e));
                    credentials = Some(value.field("credentials")?);
                }
                tag if tag == Tag::context(3) => {
                    security_context = Some(wire::keep(&member));
                }
                tag if tag == Tag::context(4) => {
                    let store = ORName::read(&member).field("message-store")?;
                    name = Some(ObjectName::MessageStore(store));
                }
                tag if tag == Tag::context(5) => {
                    extensions = Extensions::read(&member).field("extensions")?;
                }
                _ => unknown.push(wire::keep(&member)),
            }
        }
        let no_credentials = Fault::Missing(Tag::context(2));
        Ok(MtsBind {
            name: name.ok_or(Fault::Missing(tag::OR_NAME)).field("initiator-name")?,
            messages_waiting,
            credentials: credentials.ok_or(no_credentials).field("credentials")?,
            security_context,
            extensions,
            unknown,
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

impl MessagesWaiting {
    fn read(e: &Element<'_>) -> Result<MessagesWaiting, Error> {
        let mut waiting = MessagesWaiting::default();
        let mut members = e.children()?;
        while let Some(member) = members.next()? {
            let queue = match member.tag {
                tag if tag == Tag::context(0) => &mut waiting.urgent,
                tag if tag == Tag::context(1) => &mut waiting.normal,
                tag if tag == Tag::context(2) => &mut waiting.non_urgent,
                _ => continue,
            };
            let mut counts = member.children()?;
            while let Some(count) = counts.next()? {
                match count.tag {
                    tag if tag == Tag::context(0) => queue.messages = count.integer()?,
                    tag if tag == Tag::context(1) => queue.octets = Some(count.integer()?),
                    _ => {}
                }
            }
        }
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
