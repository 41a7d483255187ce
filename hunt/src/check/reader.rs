//! What a user saw of his mailbox over P7: all that a mailbox promises, in the order in which he was answered.

use super::{Broken, Check};
use crate::world::What;
use base::{Instant, Precedence};
use engine::journal::{ItemId, MailboxId};
use mailbox::Item;
use std::collections::{BTreeMap, BTreeSet};
use testkit::build::name;
use testkit::{Row, Seen};

/// The local code of sequence-number-error (X.413 9).
const NO_SUCH_ENTRY: i64 = 28;

/// What he knows of an item.
#[derive(Clone, Debug)]
struct Known {
    row: Row,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is there.
    There,
    /// He asked for its end, and was not answered.
    InDoubt,
    /// It is gone, as he was answered.
    Gone,
}

/// What he knows of his mailbox.
#[derive(Debug, Default)]
struct Reading {
    items: BTreeMap<u32, Known>,
    /// The highest number that he has seen.
    last: u32,
    /// What the mailbox does not keep to, in words.
    broken: Vec<(Broken, String)>,
}

impl Reading {
    fn fail(&mut self, broken: Broken, what: String) {
        self.broken.push((broken, what));
    }

    fn take(&mut self, seen: &Seen) {
        match seen {
            Seen::Listed { from, next, items } => self.listed(*from, *next, items),
            Seen::Counted { count, span, kinds } => self.counted(*count, *span, *kinds),
            Seen::Fetched { row, octets, .. } => {
                self.row(row);
                if row.size.unwrap_or(0) != *octets as i64 {
                    self.fail(Broken::Altered, format!("{octets} octets of {row:?}"));
                }
            }
            Seen::Deleted(numbers) => self.set(numbers, State::Gone),
            Seen::Doubted(numbers) => self.set(numbers, State::InDoubt),
            Seen::Kept(numbers, NO_SUCH_ENTRY) => {
                // One of them is gone, so that nothing was deleted.
                if !numbers.iter().any(|number| self.state(*number) != Some(State::There)) {
                    self.fail(Broken::Lost, format!("no item of {numbers:?} to be deleted"));
                }
            }
            Seen::NotFetched(number, NO_SUCH_ENTRY) => {
                if self.state(*number) == Some(State::There) {
                    self.fail(Broken::Lost, format!("no item {number} to be fetched"));
                }
            }
            Seen::Unreadable(what) => self.fail(Broken::Altered, what.clone()),
            Seen::Kept(..) | Seen::NotFetched(..) | Seen::Refused(_) => {}
            Seen::Bound | Seen::GaveUp => {}
        }
    }

    fn state(&self, number: u32) -> Option<State> {
        self.items.get(&number).map(|known| known.state)
    }

    fn set(&mut self, numbers: &[u32], state: State) {
        for number in numbers {
            if let Some(known) = self.items.get_mut(number) {
                known.state = state;
            }
        }
    }

    /// What he sees is what he has seen.
    fn row(&mut self, row: &Row) {
        let Some(known) = self.items.get_mut(&row.number) else { return };
        let before = std::mem::replace(&mut known.row, row.clone());
        let same = Row { status: before.status, ..row.clone() };
        if same != before {
            self.fail(Broken::Mailbox, format!("{before:?} is {row:?} later"));
        }
        if row.status < before.status {
            self.fail(Broken::Mailbox, format!("{row:?} had status {}", before.status));
        }
    }

    fn listed(&mut self, from: u32, next: Option<u32>, items: &[Row]) {
        let end = next.unwrap_or(u32::MAX);
        let is_sorted = items.is_sorted_by(|a, b| a.number < b.number);
        if !is_sorted || items.iter().any(|item| !(from..end).contains(&item.number)) {
            self.fail(Broken::Mailbox, format!("a list from {from} to {next:?} has {items:?}"));
        }
        let highest = self.last;
        for row in items {
            self.last = self.last.max(row.number);
            match self.state(row.number) {
                Some(State::Gone) => {
                    self.fail(Broken::Ordered, format!("{row:?} is there again"));
                }
                Some(_) => self.row(row),
                None => {
                    if row.number <= highest {
                        self.fail(Broken::Mailbox, format!("{row:?} is new, after {highest}"));
                    }
                    let known = Known { row: row.clone(), state: State::There };
                    self.items.insert(row.number, known);
                }
            }
        }
        let listed: BTreeSet<u32> = items.iter().map(|item| item.number).collect();
        let mut lost = Vec::new();
        for (number, known) in self.items.range_mut(from..end) {
            match known.state {
                _ if listed.contains(number) => {}
                State::There => lost.push(known.row.clone()),
                // The delete was made.
                State::InDoubt => known.state = State::Gone,
                State::Gone => {}
            }
        }
        for row in lost {
            self.set(&[row.number], State::Gone);
            self.fail(Broken::Lost, format!("{row:?} is no longer there"));
        }
    }

    /// A summary agrees with what was listed before it; there may be more.
    fn counted(&mut self, count: i64, span: Option<(u32, u32)>, kinds: [i64; 2]) {
        let there = |state: State| self.items.values().filter(move |known| known.state == state);
        let (sure, doubted) = (there(State::There).count(), there(State::InDoubt).count());
        let (sure, doubted) = (sure as i64, doubted as i64);
        let last = span.map_or(0, |(_, highest)| highest);
        let since = i64::from(last.saturating_sub(self.last));
        let lowest = there(State::There).map(|known| known.row.number).min();
        let is_less = lowest.is_some_and(|lowest| span.is_none_or(|(first, _)| first > lowest));
        if count < sure || count > sure + doubted + since || is_less || kinds[0] + kinds[1] != count
        {
            let what = format!(
                "a summary has {count} items, {kinds:?}, in {span:?}; there are {sure}, and perhaps {doubted}, up to {}",
                self.last
            );
            self.fail(Broken::Mailbox, what);
        }
    }
}

impl Check<'_> {
    /// What the user of a mailbox saw of it is true, and agrees with what is in the store at the end. Gives the messages
    /// that he fetched, and those that are there still.
    pub(super) fn reader(
        &mut self,
        user: usize,
        accepted: &BTreeMap<String, usize>,
    ) -> BTreeSet<usize> {
        let mut came = self.mailbox(user, accepted);
        came.extend(self.messages(user, accepted));
        let who = self.world.user_name(user);
        let Some(reader) = &self.play.network.users[user].reader else { return came };
        let mut reading = Reading::default();
        let address = name(&self.world.address(user)).to_string();
        for (_, at, seen) in &reader.journal {
            let before = reading.broken.len();
            reading.take(seen);
            for (_, what) in &mut reading.broken[before..] {
                *what = format!("{who} at {at:?}: {what}");
            }
            if let Seen::Fetched { row, recipient: Some(recipient), .. } = seen
                && *recipient != address
            {
                let what = format!("{who} at {at:?}: {row:?} is for {recipient}");
                reading.broken.push((Broken::Altered, what));
            }
        }
        let before = reading.broken.len();
        let stored = self.stored(user);
        reading.listed(1, None, &stored);
        for (_, what) in &mut reading.broken[before..] {
            *what = format!("{who} at the end: {what}");
        }
        let mut copies: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for known in reading.items.values().filter(|known| !known.row.is_report) {
            if let Some(number) = accepted.get(&known.row.identifier) {
                copies.entry(*number).or_default().push(known.row.number);
            }
        }
        for (number, copies) in copies {
            if copies.len() > self.copies(self.message(number), user) {
                let what = format!("message {number} is in items {copies:?} of {who}");
                reading.broken.push((Broken::Twice, what));
            }
        }
        if let Some(at) = self.stopped_reading(user) {
            reading.broken.push((Broken::Stuck, format!("{who} is not answered from {at:?} on")));
        }
        reading.broken.into_iter().for_each(|(broken, what)| self.fail(broken, what));
        came
    }

    /// What is in his mailbox, read from the store.
    fn stored(&self, user: usize) -> Vec<Row> {
        let Some(store) = self.play.network.sites[user / 2].store.opened() else {
            return Vec::new();
        };
        let Some(id): Option<MailboxId> = super::arrived::mailbox_of(store) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        for level in Precedence::ALL {
            for entry in store.items(id, level, 0, 9_999).unwrap_or_default() {
                let Some(id) = ItemId::of_entry(entry.id) else { continue };
                let Ok(item) = Item::decode(id, level, &entry.record) else { continue };
                let is_report = item.kind == mailbox::Kind::Report;
                rows.push(Row {
                    number: id.number,
                    is_report,
                    identifier: item.identifier,
                    size: (!is_report || item.size > 0).then_some(item.size as i64),
                    status: item.status.number(),
                });
            }
        }
        rows.sort_by_key(|row| row.number);
        rows
    }

    /// Once all is well a user is answered.
    fn stopped_reading(&self, user: usize) -> Option<Instant> {
        let reader = self.play.network.users[user].reader.as_ref()?;
        let last = self.world.events.iter().map(|event| event.at + lasts(&event.what)).max();
        let well = Instant(0) + last.unwrap_or_default() + super::SETTLED;
        let gave_up = |(_, at, seen): &&(u32, Instant, Seen)| *seen == Seen::GaveUp && *at > well;
        // A minute before, all was well already.
        reader.journal.iter().find(gave_up).map(|(_, at, _)| *at)
    }
}

/// How long what goes wrong may last.
fn lasts(what: &What) -> std::time::Duration {
    let minutes = if matches!(what, What::Disk(..)) { 4 } else { 2 };
    std::time::Duration::from_secs(minutes * 60)
}
