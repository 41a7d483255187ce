//! The queue at the start: its first part is read before the daemon serves, the rest by a thread while it
//! does, the highest precedences first.

use crate::driver::inbox::Inbox;
use crate::driver::{Driver, DriverAnswer, DriverError};
use base::{BodyId, Precedence};
use engine::registered::Registration;
use node::Input;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use store::{Entry, EntryKey, KeptSpool, QueueStore, StoreError};

/// Most entries that are read before the daemon serves: some 10 ms.
const FIRST: usize = 4096;
/// Most entries, or contents, of a later part: other work waits while the node takes it up.
const PART: usize = 256;
/// Entries per progress line in the log.
const LINE: u64 = 100_000;

/// A part of the queue that a thread has read.
pub(crate) enum QueuePart {
    /// Entries of earlier starts.
    Entries(Vec<Entry>),
    /// Contents in the store; all come after the last entry.
    Bodies(Vec<BodyId>),
    /// All is read.
    End,
}

/// What is read of the queue.
pub(crate) struct QueueReader {
    /// Asks for the next part; dropped, it ends the thread.
    next: SyncSender<()>,
    /// Entries so far, and all of them.
    read: u64,
    of: u64,
}

impl Driver {
    /// Passes what earlier starts left to the node; if it is much, only the first part of it. Returns the
    /// number of entries.
    pub(in crate::driver) fn recover(
        &mut self,
        store: &Arc<dyn QueueStore>,
    ) -> Result<u64, DriverError> {
        if let Some(value) = store.meta(node::operator::HELD)? {
            self.input(Input::RecoveredHolds(value));
        }
        if let Some(value) = store.meta(node::channel_order::DISABLED)? {
            self.input(Input::RecoveredDisabled(value));
        }
        if let Some(value) = store.meta(node::site_orders::MINIMIZED)? {
            self.input(Input::RecoveredMinimize(value));
        }
        if self.member.is_none() {
            if let Some(value) = store.meta(node::wall::CLOCK)? {
                self.input(Input::RecoveredClock(value));
            }
            if let Some(value) = store.meta(node::SENDING)? {
                self.input(Input::RecoveredSends(value));
            }
        }
        if let Some(value) = store.meta(node::lists::LISTS)? {
            self.input(Input::RecoveredLists(value));
        }
        if let Some(value) = store.meta(node::mailbox::machine::NAMES)? {
            self.input(Input::RecoveredMailboxes(value));
        }
        for mailbox in self.verifier.addresses() {
            if let Some(value) = store.meta(&Registration::name(&mailbox))? {
                self.input(Input::RecoveredRegistration { mailbox, value });
            }
        }
        for KeptSpool { id, length, notes } in store.contents().take_kept() {
            self.disk.spool_left(id);
            self.input(Input::RecoveredReception { spool: id, length, notes });
        }
        if self.member.is_some() {
            // The entries of its shards come when it has them.
            self.begin_as_member();
            self.input(Input::Started);
            return Ok(0);
        }
        let of = store.entry_count()?;
        let first = store.entries(None, FIRST)?;
        let after = first.last().map(Entry::key);
        let (next, turns) = sync_channel(1);
        self.reading = Some(QueueReader { next, read: 0, of });
        self.take_up(first);
        let own = (self.node.first_entry(), self.node.first_body());
        let parts = Parts { store: Arc::clone(store), inbox: Arc::clone(&self.inbox), turns, own };
        let thread = std::thread::Builder::new().name("queue reader".to_owned());
        let started = thread.spawn(move || parts.read(after));
        started.map_err(|e| DriverError::Broken(format!("cannot start a thread: {e}")))?;
        Ok(of)
    }

    /// Serves, as soon as the first part of the queue is known. A short queue is known as a whole.
    pub(in crate::driver) fn begin_to_serve(&mut self) {
        self.ask_for_part();
        self.input(Input::Serve);
    }

    /// Takes up a part that the thread has read.
    pub(in crate::driver) fn queue_part(&mut self, part: QueuePart) {
        match part {
            // What is not taken up now is at the next start.
            _ if self.stopping => self.reading = None,
            QueuePart::Entries(entries) => {
                self.take_up(entries);
                self.ask_for_part();
                self.input(Input::Serve);
            }
            QueuePart::Bodies(bodies) => {
                self.input(Input::RecoveredBodies(bodies));
                self.ask_for_part();
            }
            QueuePart::End => {
                self.input(Input::Started);
                let entries = self.reading.take().map_or(0, |reading| reading.read);
                tracing::info!(entries, "all of the queue is read");
            }
        }
    }

    fn take_up(&mut self, entries: Vec<Entry>) {
        for Entry { precedence, id, record } in entries {
            self.input(Input::Recovered { precedence, id, record });
            let Some(reading) = &mut self.reading else { continue };
            reading.read += 1;
            if reading.read % LINE == 0 {
                tracing::info!(recovered = reading.read, of = reading.of, "reading the queue");
            }
        }
    }

    fn ask_for_part(&self) {
        if let Some(reading) = &self.reading {
            // One is asked for at a time, so that there is room.
            let _ = reading.next.try_send(());
        }
    }
}

/// The thread.
struct Parts {
    store: Arc<dyn QueueStore>,
    inbox: Arc<Inbox>,
    turns: Receiver<()>,
    /// Entries and bodies of this start have numbers from here on: the node has them already.
    own: (u64, u64),
}

impl Parts {
    fn read(self, after: Option<EntryKey>) {
        let read = self.entries(after).and_then(|ended| if ended { Ok(()) } else { self.bodies() });
        match read {
            Ok(()) => _ = self.give(Precedence::Routine, QueuePart::End),
            Err(StoreError::Closed) => {}
            Err(error) => {
                self.inbox.answer(Precedence::Override, DriverAnswer::Fatal(error.to_string()));
            }
        }
    }

    /// Gives a part when it is asked for; false if nothing more is wanted.
    fn give(&self, level: Precedence, part: QueuePart) -> bool {
        let is_wanted = self.turns.recv().is_ok();
        if is_wanted {
            self.inbox.answer(level, DriverAnswer::QueuePart(part));
        }
        is_wanted
    }

    /// Whether it ended early.
    fn entries(&self, mut after: Option<EntryKey>) -> Result<bool, StoreError> {
        loop {
            let mut part = self.store.entries(after, PART)?;
            let Some(last) = part.last() else { return Ok(false) };
            let level = last.precedence;
            after = Some(last.key());
            part.retain(|entry| entry.id.0 < self.own.0);
            if !part.is_empty() && !self.give(level, QueuePart::Entries(part)) {
                return Ok(true);
            }
        }
    }

    fn bodies(&self) -> Result<(), StoreError> {
        let damage = self.store.damage();
        if damage.batches > 0 || !damage.entries.is_empty() {
            // A content may belong to one of them.
            tracing::error!(
                records = damage.entries.len(),
                changes = damage.batches,
                "records of the queue are damaged: contents without a queue entry are kept"
            );
            return Ok(());
        }
        let mut after = None;
        loop {
            let part = self.store.bodies(after, PART)?;
            let Some(last) = part.last() else { return Ok(()) };
            if last.0 >= self.own.1 {
                // They are in order of their numbers.
                self.give(Precedence::Routine, QueuePart::Bodies(part));
                return Ok(());
            }
            after = Some(*last);
            if !self.give(Precedence::Routine, QueuePart::Bodies(part)) {
                return Ok(());
            }
        }
    }
}
