use crate::bind::Credentials;
use crate::extension::Extensions;
use crate::names::{MtaName, ORName};
use crate::wire::{self, Kept, tag};
use base::ber::universal as u;
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_distinct_set, read_set};
use bytes::Bytes;
use rasn::types::OctetString;
use rasn::{AsnType, Encode};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AsnType, Encode)]
#[rasn(set)]
pub struct DeliveryQueue {
    /// messages.
    #[rasn(tag(0))]
    pub messages: i64,
    /// octets of content.
    #[rasn(tag(1))]
    pub octets: Option<i64>,
}

/// MessagesWaiting for the one addressed, by priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AsnType, Encode)]
#[rasn(set)]
pub struct MessagesWaiting {
    /// urgent.
    #[rasn(tag(0))]
    pub urgent: DeliveryQueue,
    /// normal.
    #[rasn(tag(1))]
    pub normal: DeliveryQueue,
    /// non-urgent.
    #[rasn(tag(2))]
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

/// The SET as it is written: a derived one would sort the members.
#[derive(AsnType, Encode)]
#[rasn(delegate, tag(universal, 17))]
struct BindMembers(Vec<BindMember>);

#[derive(AsnType, Encode)]
#[rasn(choice)]
enum BindMember {
    #[rasn(tag(0))]
    Mta(OctetString),
    #[rasn(tag(explicit(1)))]
    Waiting(MessagesWaiting),
    #[rasn(tag(explicit(2)))]
    Credentials(Credentials),
    Kept(Kept),
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
        let kept = |octets| BindMember::Kept(Kept(octets));
        let mut members = vec![match &self.name {
            ObjectName::UserAgent(name) => kept(wire::written(|w| name.write(w))),
            ObjectName::Mta(name) => BindMember::Mta(name.0.clone().into_bytes().into()),
            ObjectName::MessageStore(name) => {
                kept(wire::written(|w| name.write_as(w, MESSAGE_STORE)))
            }
        }];
        members.extend(self.messages_waiting.map(BindMember::Waiting));
        members.push(BindMember::Credentials(self.credentials.clone()));
        members.extend(self.security_context.clone().map(kept));
        members.push(kept(wire::written(|w| self.extensions.write_as(w, EXTENSIONS))));
        members.extend(self.unknown.iter().cloned().map(kept));
        wire::encode(w, &BindMembers(members));
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
                MESSAGES => self.messages = wire::integer(m)?,
                OCTETS => self.octets = Some(wire::integer(m)?),
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
        if e.tag != u::INTEGER {
            return Err(Fault::Unexpected(e.tag)).field("mts-bind-error");
        }
        Ok(match wire::integer(e).field("mts-bind-error")? {
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
        wire::encode(w, &self.number());
    }
}
