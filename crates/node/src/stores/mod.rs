//! The message store: mailboxes, the deliveries into them, and what their users ask.

pub(crate) mod deliveries;
mod forwards;
pub(crate) mod sessions;

use crate::config::StoreConfig;
use crate::context::Context;
use base::{EntryId, Instant, Now, Precedence};
use deliveries::Storing;
use engine::journal::MailboxId;
use mailbox::Mailboxes;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often the rules of retention are applied.
const RETAIN_EVERY: Duration = Duration::from_secs(600);

/// The message store.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    pub(crate) mailboxes: Mailboxes,
    /// Copies that are being delivered into a mailbox.
    storing: BTreeMap<EntryId, Storing>,
    /// Mailboxes of the queue with deliveries that wait for others.
    waiting: BTreeSet<u32>,
    /// Copies that found no room, the highest first.
    without_room: BTreeMap<MailboxId, BTreeSet<(Reverse<Precedence>, EntryId)>>,
    /// When the rules of retention are applied next.
    retain_at: Option<Instant>,
}

impl Stores {
    pub(crate) fn new(config: &StoreConfig) -> Stores {
        let mut stores = Stores::default();
        stores.mailboxes.configure(config.settings.clone());
        stores
    }

    /// The settings changed.
    pub(crate) fn configure(&mut self, config: &StoreConfig) {
        self.mailboxes.configure(config.settings.clone());
    }

    /// It serves from now on: rules of retention hold for mailboxes that nobody opens, too.
    pub(crate) fn start(&mut self, cx: &Context, now: Now) {
        if cx.config.store.settings.rules != mailbox::Rules::default() {
            self.mailboxes.open_all();
        }
        self.retain_at = Some(now.mono + RETAIN_EVERY);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.retain_at
    }

    /// Deletes what the rules of retention give up, from time to time; not by a clock that is doubted.
    pub(crate) fn retain(&mut self, cx: &Context, now: Now) {
        if self.retain_at.is_none_or(|at| at > now.mono) {
            return;
        }
        self.retain_at = Some(now.mono + RETAIN_EVERY);
        if !cx.queue.wall.is_doubted() {
            self.mailboxes.retain(now);
        }
    }

    /// Mailboxes of the queue whose deliveries may go on.
    pub(crate) fn take_waiting(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.waiting)
    }

    /// Whether it has something to be carried out.
    pub(crate) fn has_outputs(&self) -> bool {
        self.mailboxes.has_outputs()
    }
}
