//! Pages of the queue: what is asked for, and what is answered.

use crate::queue::filter::QueueFilter;
use crate::queue::row::QueueRow;
use base::{EntryId, PeerId, Precedence, Utc};
use scheduler::{Destination, Listed};
use serde::{Deserialize, Serialize};

/// Most rows of a page: each costs a look into the store.
pub const ROWS: usize = 500;

/// Which part of the queue is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueRequest {
    /// Only what goes to this peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Only what goes to this mailbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mailbox: Option<String>,
    /// Only this level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precedence: Option<Precedence>,
    /// Only this entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// Only what this channel carries, `PEER/CHANNEL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Further conditions.
    #[serde(default)]
    pub filter: QueueFilter,
    /// What follows the last row of another page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Most rows wanted, [`ROWS`] at most.
    pub limit: usize,
}

/// A place in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Of which list.
    pub to: RowDestination,
    /// At which level.
    pub precedence: Precedence,
    /// When it was accepted.
    pub accepted: Utc,
    /// Which.
    pub entry: EntryId,
}

impl Cursor {
    /// That of an entry.
    #[must_use]
    pub fn new(listed: &Listed) -> Cursor {
        let item = &listed.item;
        Cursor {
            to: match item.destination {
                Destination::Peer(peer) => RowDestination::Peer(peer),
                Destination::Mailbox(number) => RowDestination::Mailbox(number),
            },
            precedence: item.precedence,
            accepted: item.accepted,
            entry: item.id,
        }
    }
}

/// Where an entry goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowDestination {
    /// To a peer.
    Peer(PeerId),
    /// To a mailbox, by its number.
    Mailbox(u32),
}

/// Some rows of the queue: by peer in the order of the configuration, then by peer that was removed,
/// then by mailbox; of each the
/// highest precedence first, and within one those accepted first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueuePage {
    /// The rows.
    pub entries: Vec<QueueRow>,
    /// Where the next page begins; absent where this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Cursor>,
    /// Whether there are further rows, which were left out to keep it short.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Whether the queue is still being read after the start: entries are missing here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reading_queue: bool,
}
