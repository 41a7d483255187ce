//! The node's light index of the durable queue: what waits for whom, and which content is still
//! needed. Records stay on disk until they are sent.

use base::Instant;
use base::{BodyId, EntryId, Now, Precedence, Utc};
use engine::journal::Op;
use scheduler::{ChannelRules, Destination, Item, NEVER, Policy, Scheduler};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub precedence: Precedence,
    /// A peer, or a mailbox by its number in [`Queue::mailboxes`].
    pub destination: Destination,
    pub body: Option<BodyId>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    pub scheduler: Scheduler,
    entries: BTreeMap<EntryId, Entry>,
    /// How many entries need each content.
    bodies: BTreeMap<BodyId, u32>,
    mailbox_numbers: BTreeMap<String, u32>,
    mailbox_names: Vec<String>,
}

impl Queue {
    pub(crate) fn new(rules: Vec<ChannelRules>, policy: Policy) -> Queue {
        Queue {
            scheduler: Scheduler::new(rules, policy),
            entries: BTreeMap::new(),
            bodies: BTreeMap::new(),
            mailbox_numbers: BTreeMap::new(),
            mailbox_names: Vec::new(),
        }
    }

    /// The number that stands for a mailbox, given out on first use.
    pub(crate) fn mailbox(&mut self, address: &str) -> u32 {
        if let Some(number) = self.mailbox_numbers.get(address) {
            return *number;
        }
        let number = u32::try_from(self.mailbox_names.len()).unwrap_or(u32::MAX);
        self.mailbox_names.push(address.to_owned());
        self.mailbox_numbers.insert(address.to_owned(), number);
        number
    }

    /// The number of a mailbox for which there was something once.
    pub(crate) fn mailbox_number(&self, address: &str) -> Option<u32> {
        self.mailbox_numbers.get(address).copied()
    }

    pub(crate) fn mailboxes(&self) -> impl Iterator<Item = (u32, &str)> {
        self.mailbox_names.iter().zip(0..).map(|(name, number)| (number, name.as_str()))
    }

    /// Takes up an entry that is durable.
    pub(crate) fn insert(
        &mut self,
        now: Now,
        id: EntryId,
        entry: Entry,
        size: u64,
        accepted: Utc,
        not_before: Option<Utc>,
    ) {
        if self.entries.insert(id, entry).is_some() {
            return;
        }
        if let Some(body) = entry.body {
            *self.bodies.entry(body).or_default() += 1;
        }
        let not_before = match not_before {
            Some(at) if at > now.utc => now.mono + at.since(now.utc),
            _ => Instant(0),
        };
        let Entry { precedence, destination, body } = entry;
        let (expires, alert_at) = (NEVER, NEVER);
        let item = Item {
            id,
            destination,
            precedence,
            size,
            accepted,
            not_before,
            expires,
            alert_at,
            body,
        };
        self.scheduler.insert(now.mono, item);
    }

    pub(crate) fn get(&self, id: EntryId) -> Option<Entry> {
        self.entries.get(&id).copied()
    }

    /// Forgets an entry: the durable changes that do so, and its content where other copies need
    /// it still. A content goes with its last copy, in the same commit; of copies confirmed at the
    /// same time none is the last, and [`Queue::release`] says when it is time.
    pub(crate) fn forget(&mut self, id: EntryId) -> (Vec<Op>, Vec<BodyId>) {
        let Some(entry) = self.entries.remove(&id) else { return Default::default() };
        self.scheduler.finished(id);
        let mut ops = vec![Op::DeleteEntry { precedence: entry.precedence, id }];
        let Some(body) = entry.body else { return (ops, Vec::new()) };
        if self.bodies.get(&body).is_some_and(|copies| *copies > 1) {
            return (ops, vec![body]);
        }
        self.bodies.remove(&body);
        ops.push(Op::DeleteBody { id: body });
        (ops, Vec::new())
    }

    /// Whether a copy needs this content, or it is held.
    pub(crate) fn needs(&self, body: BodyId) -> bool {
        self.bodies.contains_key(&body)
    }

    /// Keeps a content from going with an entry's copy, until [`Queue::release`].
    pub(crate) fn hold(&mut self, body: BodyId) {
        *self.bodies.entry(body).or_default() += 1;
    }

    /// A copy is durably forgotten: what drops its content, if no other copy needs it.
    pub(crate) fn release(&mut self, body: BodyId) -> Option<Op> {
        let copies = self.bodies.get_mut(&body)?;
        *copies -= 1;
        if *copies > 0 {
            return None;
        }
        self.bodies.remove(&body);
        Some(Op::DeleteBody { id: body })
    }
}
