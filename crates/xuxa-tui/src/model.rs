//! What the interface shows: rows of a mailbox, an opened message, sent items, the address book.

use base::{PerPrecedence, Precedence, Utc};

/// Sequence number of an entry of the message store (X.413 6.3).
pub type Number = u64;

/// What an entry of the mailbox is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message.
    Message,
    /// A report that was not opened: of deliveries, non-deliveries or both.
    Report,
    /// A report that confirms a delivery.
    Delivery,
    /// A report of a non-delivery.
    NonDelivery,
    /// A notification of another user: read, or not read.
    Notification,
}

/// A row of the mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its sequence number.
    pub number: Number,
    /// What it is.
    pub kind: Kind,
    /// Its precedence; of a report, that of its subject.
    pub precedence: Precedence,
    /// Nobody has fetched it yet: its status is new or listed.
    pub is_unread: bool,
    /// The originator, as short as it is clear: from the address book, else of the address.
    pub from: String,
    /// The subject line.
    pub subject: String,
    /// The delivery time.
    pub time: Utc,
    /// Octets of the content.
    pub size: u64,
}

/// The order of the mailbox's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The highest precedence first; of one precedence the newest first.
    #[default]
    Precedence,
    /// The newest first.
    Arrival,
}

impl Order {
    /// Whether `a` stands above `b`.
    pub fn is_above(self, a: &Row, b: &Row) -> bool {
        match self {
            Order::Precedence => (a.precedence, a.number) > (b.precedence, b.number),
            Order::Arrival => a.number > b.number,
        }
    }
}

/// Which rows are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Their order.
    pub order: Order,
    /// Only unread ones.
    pub unread_only: bool,
    /// Only those of this precedence or a higher one.
    pub least: Option<Precedence>,
    /// Only those with this text in originator or subject, in either case; empty: all.
    pub search: String,
}

impl Query {
    /// Whether a row is one of them.
    pub fn matches(&self, row: &Row) -> bool {
        let wanted = self.search.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let is_least = self.least.is_none_or(|least| row.precedence >= least);
        is_least && (!self.unread_only || row.is_unread) && (has(&row.from) || has(&row.subject))
    }
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// At the first row.
    Top,
    /// After this row, downward.
    After(Row),
    /// The rows just above this one.
    Before(Row),
    /// At the last row, upward.
    Bottom,
}

/// A part of the mailbox, in display order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The rows.
    pub rows: Vec<Row>,
    /// In the direction of the request there are no others.
    pub is_last: bool,
}

/// How many messages the mailbox has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub total: u64,
    /// The unread ones.
    pub unread: u64,
    /// The unread ones of each precedence, where the store can count them.
    pub unread_by_precedence: Option<PerPrecedence<u64>>,
}

/// A file in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name; not yet safe as a name on this machine.
    pub name: String,
    /// Its octets.
    pub size: u64,
}

/// A message that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its row, read from now on.
    pub row: Row,
    /// The heading: label and value, in the order to show.
    pub fields: Vec<(String, String)>,
    /// The text of the body, or its beginning.
    pub text: String,
    /// Octets of text that are not in `text`, because it is long.
    pub text_left: u64,
    /// The files in it.
    pub files: Vec<File>,
    /// Whom an answer goes to: an O/R address or a name of the address book.
    pub answer_to: Vec<String>,
    /// The other recipients for action, without us.
    pub others_to: Vec<String>,
    /// The recipients for information, without us.
    pub others_copy: Vec<String>,
    /// The notification of receipt.
    pub receipt: Receipt,
}

/// The notification of receipt for a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Receipt {
    /// The originator did not ask us for one.
    #[default]
    NotAsked,
    /// The originator asked for one, and none was sent.
    Asked,
    /// It was sent, here or by another client of this user.
    Sent,
}

/// What is known of a message to one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentState {
    /// The MTA accepted it.
    Accepted,
    /// It was transferred towards the recipient.
    Transferred,
    /// A report confirms the delivery.
    Delivered,
    /// A notification confirms that it was read.
    Read,
    /// The answer to the submission was lost: the MTA has it or not.
    InDoubt,
    /// It was not accepted, or not delivered: the reason in words.
    Failed(String),
}

impl SentState {
    /// One word for it.
    pub fn word(&self) -> &'static str {
        match self {
            SentState::Accepted => "accepted",
            SentState::Transferred => "transferred",
            SentState::Delivered => "delivered",
            SentState::Read => "read",
            SentState::InDoubt => "IN DOUBT",
            SentState::Failed(_) => "FAILED",
        }
    }

    /// What asks for attention first, then what is least far.
    fn rank(&self) -> u8 {
        match self {
            SentState::Failed(_) => 0,
            SentState::InDoubt => 1,
            SentState::Accepted => 2,
            SentState::Transferred => 3,
            SentState::Delivered => 4,
            SentState::Read => 5,
        }
    }
}

/// A message that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its content identifier, which names it.
    pub identifier: String,
    /// Its precedence.
    pub precedence: Precedence,
    /// Its subject line.
    pub subject: String,
    /// When it was submitted.
    pub time: Utc,
    /// Octets of the content.
    pub size: u64,
    /// Each recipient, and what is known of its copy.
    pub recipients: Vec<(String, SentState)>,
}

impl Sent {
    /// The state to show for all recipients: a failure, else the one that is least far.
    pub fn state(&self) -> SentState {
        let states = self.recipients.iter().map(|(_, state)| state);
        states.min_by_key(|state| state.rank()).cloned().unwrap_or(SentState::Accepted)
    }
}

/// A name of the address book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookEntry {
    /// The short name.
    pub name: String,
    /// Its O/R address, or the names of a group's members.
    pub addresses: Vec<String>,
    /// A group of several.
    pub is_group: bool,
}

/// Who uses the interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// The profile's name.
    pub profile: String,
    /// The O/R address in its text form.
    pub user: String,
    /// Host and port of the message store.
    pub server: String,
}
