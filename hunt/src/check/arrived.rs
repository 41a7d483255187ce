//! What users took, and what their mailboxes have.

use super::{Broken, Check, IN_TRANSIT, SETTLED};
use crate::world::What;
use base::{Instant, Precedence};
use engine::journal::{ItemId, MailboxId};
use mailbox::machine::NAMES as NUMBERS;
use mailbox::{Item, Totals};
use std::collections::{BTreeMap, BTreeSet};
use store::QueueStore;
use testkit::Delivered;
use testkit::build::content;

impl Check<'_> {
    /// The messages that a user took over P3.
    pub(super) fn messages(
        &mut self,
        user: usize,
        accepted: &BTreeMap<String, usize>,
    ) -> BTreeSet<usize> {
        let u = &self.play.network.users[user];
        let mut copies: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, delivered) in u.delivered.iter().enumerate() {
            let Delivered::Message { identifier, content: octets } = delivered else { continue };
            let Some(&number) = accepted.get(identifier) else {
                let who = self.world.user_name(user);
                let what = format!("{who} got {identifier}, which nobody was answered");
                self.fail(Broken::Twice, what);
                continue;
            };
            self.whole(number, user, octets);
            self.in_time(number, user, at);
            copies.entry(number).or_default().push(at);
        }
        for (number, copies) in &copies {
            let entitled = self.copies(self.message(*number), user);
            self.at_most(entitled, user, &format!("message {number}"), copies);
        }
        copies.into_keys().collect()
    }

    pub(super) fn whole(&mut self, number: usize, user: usize, octets: &[u8]) {
        let message = self.message(number);
        let (size, is_meant) = (message.size, self.copies(message, user) > 0);
        if !is_meant && *octets == content(number, size) {
            let who = self.world.user_name(user);
            self.fail(Broken::Twice, format!("message {number} at {who}, who is not to get it"));
        } else if !is_meant || *octets != content(number, size) {
            let who = self.world.user_name(user);
            let meant = content(number, size);
            let both = 0..octets.len().min(size);
            let differ: Vec<usize> = both.filter(|at| octets[*at] != meant[*at]).collect();
            let first = differ.first().map(|at| &octets[*at..(*at + 16).min(octets.len())]);
            let what = format!(
                "{number} at {who}: {} octets of {size}, {} differ, from {:?} to {:?}: {first:02x?}",
                octets.len(),
                differ.len(),
                differ.first(),
                differ.last()
            );
            self.fail(Broken::Altered, what);
        }
    }

    /// A message comes with the priority that it was given, and not before the time to which it was deferred.
    pub(super) fn in_time(&mut self, number: usize, user: usize, at: usize) {
        let (message, u) = (self.message(number), &self.play.network.users[user]);
        let (priority, _) = p1::grade::split(message.precedence);
        let (given, took) = (u.priorities[at], u.took[at].1);
        let who = self.world.user_name(user);
        let due = message.deferred.map(|by| Instant(0) + message.at + by);
        if given.is_some_and(|given| given != priority) {
            let what = format!("{number} at {who} has priority {given:?} instead of {priority:?}");
            self.fail(Broken::Altered, what);
        }
        // Clocks that are set move the end of a deferral.
        let is_right = !self.world.has(|what| matches!(what, What::Clock(..) | What::Drifts(..)));
        if let Some(due) = due.filter(|due| is_right && took < *due) {
            let what = format!("{number} at {who} came at {took:?}, deferred until {due:?}");
            self.fail(Broken::Ordered, what);
        }
    }

    /// Deliveries come so often; again only if the process died before a delete was durable.
    ///
    /// Each death that explains a repetition allows all copies once more.
    pub(super) fn at_most(&mut self, entitled: usize, user: usize, what: &str, copies: &[usize]) {
        let (u, s) = (&self.play.network.users[user], &self.play.network.sites[user / 2]);
        let is_one_run = |first: &usize, next: &usize| {
            let ((bind, at), (again, _)) = (u.took[*first], u.took[*next]);
            // Where the disk fails for long, the delete is tried until it is well again.
            let healed = s.store.healed().unwrap_or(at).max(at);
            let in_doubt =
                |death: &Instant| *death + IN_TRANSIT >= at && *death <= healed + SETTLED;
            // An item of a mailbox is there once, whatever died.
            bind == again || u.reader.is_some() || !s.deaths.iter().any(in_doubt)
        };
        if copies.chunk_by(is_one_run).any(|run| run.len() > entitled.max(1)) {
            let who = self.world.user_name(user);
            let times: Vec<_> = copies.iter().map(|at| u.took[*at]).collect();
            self.fail(Broken::Twice, format!("{what} for {who} at {times:?}"));
        }
    }

    /// A mailbox has each message once and whole, and its totals are those of its items.
    pub(super) fn mailbox(
        &mut self,
        user: usize,
        accepted: &BTreeMap<String, usize>,
    ) -> BTreeSet<usize> {
        let (site, who) = (user / 2, self.world.user_name(user));
        let mut got: BTreeMap<usize, u32> = BTreeMap::new();
        let Some(store) = self.play.network.sites[site].store.opened() else {
            return BTreeSet::new();
        };
        let Some(id) = mailbox_of(store) else { return BTreeSet::new() };
        let (mut counts, mut last) = ([0; 6], 0);
        for (count, level) in counts.iter_mut().zip(Precedence::ALL) {
            for entry in store.items(id, level, 0, 999).unwrap_or_default() {
                let Some(id) = ItemId::of_entry(entry.id) else { continue };
                (*count, last) = (*count + 1, last.max(id.number));
                let item = match Item::decode(id, level, &entry.record) {
                    Ok(item) => item,
                    Err(error) => {
                        self.fail(Broken::Damaged, format!("item {id:?} of {who}: {error}"));
                        continue;
                    }
                };
                if item.kind == mailbox::Kind::Report {
                    continue;
                }
                let Some(&number) = accepted.get(&item.identifier) else {
                    let what = format!("{who} has {}, unanswered", item.identifier);
                    self.fail(Broken::Twice, what);
                    continue;
                };
                match store.body(id.body(), 0, 1 << 20) {
                    Ok(octets) => self.whole(number, user, &octets.unwrap_or_default()),
                    Err(error) => {
                        self.fail(Broken::Damaged, format!("content of {id:?}: {error}"));
                    }
                }
                *got.entry(number).or_default() += 1;
            }
        }
        for (number, times) in &got {
            if *times as usize > self.copies(self.message(*number), user) {
                self.fail(Broken::Twice, format!("{number} {times} times in the mailbox of {who}"));
            }
        }
        let totals = store.meta(&Totals::name(id)).ok().flatten();
        // A mailbox that was only opened has none.
        let totals = totals.map_or(Some(Totals::default()), |value| Totals::decode(&value).ok());
        let held = totals.map(|totals| Precedence::ALL.map(|level| totals.level(level).items));
        if held != Some(counts) || totals.is_none_or(|totals| totals.last < last) {
            let what = format!("{who} has {counts:?} items, the last is {last}: {totals:?}");
            self.fail(Broken::Orphaned, what);
        }
        got.into_keys().collect()
    }
}

/// The number of the only mailbox of a site.
pub(super) fn mailbox_of(store: &dyn QueueStore) -> Option<MailboxId> {
    let value = store.meta(NUMBERS).ok().flatten()?;
    let mut mailboxes = mailbox::Mailboxes::default();
    mailboxes.recovered(&value).ok()?;
    mailboxes.numbers().next()
}
