//! The node's index of the durable queue: its entries, and how many of them need each content. Records
//! stay on disk until they are sent.

use crate::config::times::Times;
use crate::error::LoadError;
use base::{BodyId, EntryId, Instant, Now, Precedence};
use engine::journal::Op;
use engine::{Brief, Concluded, ContentCopies, NewEntry, NextHop, Record};
use node_api::hold_marks::HoldMarks;
use scheduler::deferred::Deferred;
use scheduler::wall::Wall;
use scheduler::{ChannelRules, Destination, Item, ItemState, NEVER, Policy, Scheduler};
use std::collections::{BTreeMap, BTreeSet};

/// Entries in one page of a list.
pub(crate) const IN_PAGE: usize = 256;

/// Neither in transfer nor handed out as expired: it may be taken out.
pub(crate) fn is_at_rest(at: ItemState) -> bool {
    !matches!(at, ItemState::InTransfer { .. } | ItemState::Expired)
}

#[derive(Debug)]
pub(crate) struct EntryQueue {
    /// The clock by which the times of all entries count.
    pub wall: Wall,
    /// It knows all entries.
    pub scheduler: Scheduler,
    /// Entries that an operator holds, some of them perhaps gone.
    pub held: HoldMarks,
    /// Records of entries that the current input queued: those that start at once are not read from
    /// disk.
    fresh: BTreeMap<EntryId, Record>,
    /// Entries that the current input concluded, where there are several nodes, and where they were to go.
    concluded: BTreeMap<EntryId, Destination>,
    /// Entries whose contents are damaged, and which are to be reported.
    pub damaged: BTreeSet<EntryId>,
    /// How many entries need each content.
    pub copies: ContentCopies,
    /// Entries whose deletion is being committed, because their originator cancelled them.
    pub cancelling: BTreeSet<EntryId>,
    /// Entries of which all was sent once, and whose confirm was lost.
    pub in_doubt: BTreeSet<EntryId>,
    /// Entries that wait for their deferred delivery time.
    pub deferred: Deferred,
    /// The destinations whose entries are this node's, where there are several nodes.
    owned: Option<BTreeSet<Destination>>,
    mailbox_numbers: BTreeMap<String, u32>,
    mailbox_names: Vec<String>,
}

impl EntryQueue {
    pub(crate) fn new(rules: Vec<ChannelRules>, policy: Policy) -> EntryQueue {
        EntryQueue {
            wall: Wall::default(),
            scheduler: Scheduler::new(rules, policy),
            held: HoldMarks::default(),
            fresh: BTreeMap::new(),
            concluded: BTreeMap::new(),
            damaged: BTreeSet::new(),
            copies: ContentCopies::default(),
            cancelling: BTreeSet::new(),
            in_doubt: BTreeSet::new(),
            deferred: Deferred::default(),
            owned: None,
            mailbox_numbers: BTreeMap::new(),
            mailbox_names: Vec::new(),
        }
    }

    /// The current input queued this entry: its record is not read from disk if it starts at once.
    pub(crate) fn keep_fresh(&mut self, id: EntryId, record: Record) {
        self.fresh.insert(id, record);
    }

    /// The record of an entry that the current input queued.
    pub(crate) fn take_fresh(&mut self, id: EntryId) -> Option<Record> {
        self.fresh.remove(&id)
    }

    /// Where an entry was to go that the current input concluded.
    pub(crate) fn concluded(&self, id: EntryId) -> Option<Destination> {
        self.concluded.get(&id).copied()
    }

    /// The current input is done with.
    pub(crate) fn forget_fresh(&mut self) {
        self.fresh.clear();
        self.concluded.clear();
    }

    /// There are several nodes: this one owns nothing until it gains something.
    pub(crate) fn own_nothing(&mut self) {
        self.owned = Some(BTreeSet::new());
        self.copies.are_counted_by_the_store();
    }

    /// This node owns the entries for a destination from now on, or no longer.
    pub(crate) fn own(&mut self, to: Destination, is_ours: bool) {
        let Some(owned) = &mut self.owned else { return };
        match is_ours {
            true => _ = owned.insert(to),
            false => _ = owned.remove(&to),
        }
    }

    /// Whether the entries for a next hop are this node's.
    pub(crate) fn owns(&self, hop: &NextHop) -> bool {
        let Some(owned) = &self.owned else { return true };
        self.destination_of(hop).is_some_and(|to| owned.contains(&to))
    }

    /// The destination that a next hop is to the scheduler.
    pub(crate) fn destination(&mut self, hop: &NextHop) -> Destination {
        match hop {
            NextHop::Peer(peer) => Destination::Peer(*peer),
            NextHop::Mailbox(address) => Destination::Mailbox(self.mailbox(address)),
        }
    }

    /// The same; `None` for a mailbox for which there was nothing yet.
    pub(crate) fn destination_of(&self, hop: &NextHop) -> Option<Destination> {
        match hop {
            NextHop::Peer(peer) => Some(Destination::Peer(*peer)),
            NextHop::Mailbox(address) => self.mailbox_number(address).map(Destination::Mailbox),
        }
    }

    /// Whether an entry for this destination is in transfer.
    pub(crate) fn is_in_transfer(&self, to: Option<Destination>) -> bool {
        let in_transfer =
            |to| self.scheduler.status_of(to).levels.iter().any(|l| l.in_transfer > 0);
        to.is_some_and(in_transfer)
    }

    /// Forgets an entry that another node has from now on. It stays in the store.
    pub(crate) fn leave_to_others(&mut self, id: EntryId) {
        self.scheduler.finished(id);
        self.deferred.remove(id);
        self.in_doubt.remove(&id);
        self.damaged.remove(&id);
    }

    /// Whether an entry that could not be read is there no longer, because another node has sent or removed it. Then it
    /// is forgotten here.
    pub(crate) fn went(&mut self, id: EntryId, error: &LoadError) -> bool {
        let went = self.owned.is_some() && matches!(error, LoadError::NoEntry);
        if went {
            self.leave_to_others(id);
        }
        went
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

    /// The address of a mailbox of this number.
    pub(crate) fn mailbox_name(&self, number: u32) -> Option<&str> {
        self.mailbox_names.get(usize::try_from(number).ok()?).map(String::as_str)
    }

    /// The number of a mailbox for which there was something once.
    pub(crate) fn mailbox_number(&self, address: &str) -> Option<u32> {
        self.mailbox_numbers.get(address).copied()
    }

    pub(crate) fn mailboxes(&self) -> impl Iterator<Item = (u32, &str)> {
        self.mailbox_names.iter().zip(0..).map(|(name, number)| (number, name.as_str()))
    }

    /// Takes up an entry that is durable. `precedence` is the one of its key.
    pub(crate) fn insert(
        &mut self,
        now: Now,
        id: EntryId,
        precedence: Precedence,
        brief: &Brief<'_>,
        times: &Times,
    ) {
        let item = self.item(id, precedence, brief, times);
        if item.not_before > now.mono {
            self.deferred.add(id, item.not_before, &brief.message);
        }
        if self.scheduler.insert(now.mono, item)
            && let Some(body) = item.body
        {
            self.copies.add(body);
        }
    }

    /// Takes up again an entry that the scheduler has given up, with the times configured now.
    pub(crate) fn begin_again(&mut self, now: Now, id: EntryId, record: &Record, times: &Times) {
        let Some(old) = self.scheduler.finished(id) else { return };
        let item = self.item(id, old.precedence, &record.brief(), times);
        self.scheduler.insert(now.mono, item);
    }

    fn item(
        &mut self,
        id: EntryId,
        precedence: Precedence,
        brief: &Brief<'_>,
        times: &Times,
    ) -> Item {
        let destination = self.destination(&brief.next_hop);
        let wall = &self.wall;
        let waits_from = brief.not_before.map_or(brief.accepted, |at| at.max(brief.accepted));
        Item {
            id,
            destination,
            precedence,
            size: brief.size,
            accepted: brief.accepted,
            not_before: brief.not_before.map_or(Instant(0), |at| wall.instant(at)),
            expires: brief.expires(&times.expire).map_or(NEVER, |at| wall.instant(at)),
            alert_at: wall.instant(waits_from + *times.alert.0.get(precedence)),
            body: brief.body,
        }
    }

    pub(crate) fn get(&self, id: EntryId) -> Option<Item> {
        self.scheduler.get(id)
    }

    /// Forgets an entry: the durable changes that do so, and its content where other copies need
    /// it still. A content goes with its last copy, in the same commit; of copies confirmed at the
    /// same time none is the last, and [`ContentCopies::release`] deletes the content.
    pub(crate) fn forget(&mut self, id: EntryId) -> (Vec<Op>, Vec<BodyId>) {
        self.deferred.remove(id);
        self.in_doubt.remove(&id);
        let Some(item) = self.scheduler.finished(id) else { return Default::default() };
        if self.owned.is_some() {
            self.held.note_gone(id);
            self.concluded.insert(id, item.destination);
        }
        let mut ops = vec![Op::DeleteEntry { precedence: item.precedence, id }];
        let Some(body) = item.body else { return (ops, Vec::new()) };
        let Some(delete) = self.copies.forget(body) else { return (ops, vec![body]) };
        ops.push(delete);
        (ops, Vec::new())
    }

    /// Forgets an entry, and queues these that follow from it: the durable changes. Copies for others and reports that
    /// return the content need it: it is held until they are counted, and is released with the others.
    pub(crate) fn forget_for(&mut self, id: EntryId, by: &[NewEntry]) -> (Vec<Op>, Vec<BodyId>) {
        let body = self.scheduler.get(id).and_then(|item| item.body);
        let needed = body.filter(|body| by.iter().any(|entry| entry.record.body == Some(*body)));
        if let Some(body) = needed {
            self.copies.add(body);
        }
        let (mut ops, mut bodies) = self.forget(id);
        bodies.extend(needed);
        ops.extend(engine::put_entries(by));
        (ops, bodies)
    }

    /// Forgets an entry that ended in reports, or in copies for alternates: the changes, and the contents to
    /// release, as [`EntryQueue::forget`] gives them.
    pub(crate) fn replace(
        &mut self,
        id: EntryId,
        record: &Record,
        concluded: &Concluded,
    ) -> (Vec<Op>, Vec<BodyId>) {
        let copies = concluded.entries.iter().filter(|e| e.record.kind() == record.kind());
        let copies: Vec<EntryId> = copies.map(|e| e.id).collect();
        let (mut batch, bodies) = self.forget_for(id, &concluded.entries);
        batch.extend(engine::put_seen(&concluded.seen));
        if !copies.is_empty() {
            batch.extend(self.held.pass_on(id, &copies));
        }
        (batch, bodies)
    }

    /// An entry whose content is damaged and which is in no transfer: it is to be reported.
    pub(crate) fn take_damaged(&mut self) -> Option<EntryId> {
        let id = *self.damaged.iter().find(|id| match self.scheduler.listed(**id) {
            Some(listed) => is_at_rest(listed.at),
            None => true,
        })?;
        self.damaged.remove(&id);
        Some(id)
    }

    /// Takes an entry out whose record is damaged. It stays in the store, with its content, for
    /// `mta store repair`; a start passes it over.
    pub(crate) fn set_aside(&mut self, id: EntryId) {
        self.scheduler.finished(id);
        self.held.mark(id, false);
    }

    /// Takes over the holds of the store: before the entries are recovered, or when another node has changed them.
    pub(crate) fn recovered_holds(&mut self, now: Instant, value: &[u8]) {
        let changed = self.held.recovered(value);
        for id in changed.held {
            self.scheduler.hold(id);
        }
        for id in changed.released {
            self.scheduler.release(now, id);
        }
    }

    /// Drops the marks of entries that went. Where there are several nodes, an entry that is not here may be another
    /// one's: then only those go that went here.
    pub(crate) fn drop_marks_of_gone(&mut self) {
        match self.owned {
            Some(_) => self.held.drop_gone(),
            None => self.held.drop_all_but(|id| self.scheduler.get(id).is_some()),
        }
    }
}
