//! What must hold after each run.

use crate::orders::Certainty;
use crate::plan::{CANCELLED, DELETED, EXPIRED, HELD, LISTED, LONG, Planned, USERS};
use crate::scenario::{Case, Scenario};
use base::Precedence;
use engine::journal::{ItemId, MailboxId};
use mailbox::machine::NAMES;
use mailbox::{Item, Totals};
use node::event::Kind;
use node::mailbox;
use p1::flags::ReportRequest;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use store::Disk;
use testkit::build::{content, name};
use testkit::{ACT, Delivered, Events, NAPLES, address};

/// How a promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Broken {
    /// An acknowledged message did not arrive.
    Lost,
    /// It arrived with other octets, or at somebody else's.
    Altered,
    /// Somebody got it twice, or it was accepted twice.
    Twice,
    /// A report is missing, or contradicts a delivery.
    Report,
    /// Something waits for ever.
    Stuck,
    /// Something is left in a store, or in memory.
    Orphaned,
    /// The store takes an interruption for damage.
    Damaged,
    /// A full disk refuses what it has a reserve for.
    Refused,
    /// What an operator held went, or what was deferred went before its time.
    Held,
    /// What an operator or an originator ordered was not done, although the answer was that it was.
    Ordered,
    /// The program failed.
    Panicked,
}

/// What was broken, and how.
pub(crate) type Failure = (Broken, String);

/// The time after which a delivery that was taken is surely deleted, where the disk is sound.
const SETTLED: Duration = Duration::from_secs(1);

/// The longest time for which octets are in transit.
const IN_TRANSIT: Duration = Duration::from_millis(10);

/// Checks a run that was played to the end.
pub(crate) fn check(scenario: &Scenario, case: &Case) -> Vec<Failure> {
    let mut check = Check { scenario, failures: Vec::new() };
    let accepted = check.answers();
    for (user, (site, name)) in USERS.into_iter().enumerate() {
        if case.has_mailboxes() && name == "LOG" {
            check.mailbox(site, &accepted);
        } else {
            check.messages(user, &accepted);
            check.reports(user, &accepted);
        }
    }
    check.ends(case.has_mailboxes());
    let is_open = |at: &Certainty| *at == Certainty::Open;
    if case.faults.is_empty() && scenario.ordered.values().any(is_open) {
        check.fail(Broken::Ordered, format!("without a fault: {:?}", scenario.ordered));
    }
    if case.faults.is_empty() && case.has_orders() && !scenario.has_list {
        check.fail(Broken::Ordered, "without a fault there is no list".to_owned());
    }
    if scenario.held_went {
        check.fail(Broken::Held, format!("message {HELD} went while it was held"));
    }
    if case.rots() && check.noticed() {
        // What a disk has destroyed is gone. Nobody gets something else for it.
        check.failures.retain(|(broken, _)| *broken == Broken::Altered);
    }
    check.failures
}

struct Check<'a> {
    scenario: &'a Scenario,
    failures: Vec<Failure>,
}

impl Check<'_> {
    fn fail(&mut self, broken: Broken, what: String) {
        self.failures.push((broken, what));
    }

    /// The identifiers of the messages: each was accepted, and once.
    fn answers(&mut self) -> BTreeMap<String, usize> {
        let mut accepted = BTreeMap::new();
        let mut ids: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (user, submitted) in self.scenario.submitted.iter().enumerate() {
            let u = &self.scenario.network.users[user];
            for (tag, answer) in u.answered.iter().zip(&u.answers) {
                if let Ok(id) = answer {
                    accepted.insert(id.clone(), submitted[*tag]);
                    ids.entry(submitted[*tag]).or_default().insert(id.clone());
                }
            }
        }
        for n in self.scenario.meant() {
            match ids.get(&n).map_or(0, BTreeSet::len) {
                0 => self.fail(Broken::Stuck, format!("submission {n} was never accepted")),
                1 => {}
                times => self.fail(Broken::Twice, format!("{n} was accepted {times} times")),
            }
        }
        accepted
    }

    fn messages(&mut self, user: usize, accepted: &BTreeMap<String, usize>) {
        let place = USERS[user];
        let u = &self.scenario.network.users[user];
        let mut copies: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, delivered) in u.delivered.iter().enumerate() {
            let Delivered::Message { identifier, content: octets } = delivered else { continue };
            let Some(&n) = accepted.get(identifier) else {
                let what = format!("{place:?} got {identifier}, which nobody was answered");
                self.fail(Broken::Twice, what);
                continue;
            };
            if !self.scenario.plan[n].to.contains(&place)
                || *octets != content(n, self.scenario.plan[n].size)
            {
                self.fail(Broken::Altered, format!("{n} at {place:?}"));
            }
            if n == CANCELLED && self.scenario.deferral.is_none_or(|time| u.took[at].1 < time) {
                self.fail(Broken::Held, format!("{n} before its time, at {:?}", u.took[at]));
            }
            copies.entry(n).or_default().push(at);
        }
        let meant = |planned: &Planned| planned.to.contains(&place);
        for n in self.scenario.meant().filter(|n| meant(&self.scenario.plan[*n])) {
            match (copies.contains_key(&n), self.given_up(n)) {
                (false, None) => self.fail(Broken::Lost, format!("{n} for {place:?}")),
                (true, Some(Certainty::Done)) => {
                    self.fail(Broken::Ordered, format!("{n} came to {place:?}"));
                }
                _ => {}
            }
        }
        for (n, copies) in copies {
            self.once(user, &format!("message {n}"), &copies);
        }
    }

    /// Whether an operator had a message deleted or expired, or its originator had it cancelled.
    fn given_up(&self, n: usize) -> Option<Certainty> {
        let ordered = self.scenario.ordered.get(&n).copied();
        ordered.filter(|_| [DELETED, EXPIRED, CANCELLED].contains(&n))
    }

    /// Whether a message was expired: by an order that was not answered, if it did not arrive.
    fn is_expired(&self, n: usize, accepted: &BTreeMap<String, usize>) -> bool {
        let mut taken = self.scenario.network.users.iter().flat_map(|user| &user.delivered);
        let came = taken.any(|taken| {
            matches!(taken, Delivered::Message { identifier, .. } if accepted.get(identifier) == Some(&n))
        });
        n == EXPIRED
            && match self.given_up(n) {
                None => false,
                Some(Certainty::Done) => true,
                Some(Certainty::Open) => !came,
            }
    }

    /// The mailbox of the user LOG has each message for him, once and whole, and its totals are those of its items.
    fn mailbox(&mut self, site: usize, accepted: &BTreeMap<String, usize>) {
        let place = (site, "LOG");
        let Some(store) = self.scenario.network.sites[site].store.opened() else { return };
        let value = |name: &str| store.meta(name).ok().flatten();
        let id = value(NAMES).and_then(|names| numbers(&names).first().copied());
        let mut got: BTreeMap<usize, u32> = BTreeMap::new();
        let (mut counts, mut last) = ([0; 6], 0);
        for (count, level) in counts.iter_mut().zip(Precedence::ALL) {
            let items = id.map(|id| store.items(id, level, 0, 99).unwrap_or_default());
            for entry in items.into_iter().flatten() {
                let Some(id) = ItemId::of_entry(entry.id) else { continue };
                (*count, last) = (*count + 1, last.max(id.number));
                let item = match Item::decode(id, level, &entry.record) {
                    Ok(item) => item,
                    Err(error) => {
                        self.fail(Broken::Damaged, format!("item {id:?}: {error}"));
                        continue;
                    }
                };
                let Some(&n) = accepted.get(&item.identifier) else {
                    let what = format!("{place:?} has {}, unanswered", item.identifier);
                    self.fail(Broken::Twice, what);
                    continue;
                };
                let octets = match store.body(id.body(), 0, 1 << 20) {
                    Ok(octets) => octets.unwrap_or_default(),
                    Err(error) => {
                        self.fail(Broken::Damaged, format!("the content of {id:?}: {error}"));
                        *got.entry(n).or_default() += 1;
                        continue;
                    }
                };
                if !self.scenario.plan[n].to.contains(&place)
                    || octets != content(n, self.scenario.plan[n].size)
                {
                    self.fail(Broken::Altered, format!("{n} in the mailbox at {place:?}"));
                }
                *got.entry(n).or_default() += 1;
            }
        }
        for n in self.scenario.meant().filter(|n| self.scenario.plan[*n].to.contains(&place)) {
            match got.get(&n) {
                None => self.fail(Broken::Lost, format!("{n} for the mailbox of {place:?}")),
                Some(1) => {}
                Some(times) => {
                    self.fail(Broken::Twice, format!("{n} {times} times in a mailbox"));
                }
            }
        }
        let Some(id) = id else { return };
        let totals = value(&Totals::name(id)).and_then(|value| Totals::decode(&value).ok());
        let held = totals.map(|totals| Precedence::ALL.map(|level| totals.level(level).items));
        if held != Some(counts) || totals.is_none_or(|totals| totals.last < last) {
            let what = format!("a mailbox with {counts:?}, last {last}: {totals:?}");
            self.fail(Broken::Stuck, what);
        }
    }

    /// A delivery may come again only if the process died before its delete was durable.
    fn once(&mut self, user: usize, what: &str, copies: &[usize]) {
        let (site, _) = USERS[user];
        let (u, s) = (&self.scenario.network.users[user], &self.scenario.network.sites[site]);
        for pair in copies.windows(2) {
            let ((bind, at), (again, _)) = (u.took[pair[0]], u.took[pair[1]]);
            // Where the disk fails for long, the delete is tried until it is well again.
            let healed = s.store.healed().unwrap_or(at).max(at);
            // What was written before the death still arrives.
            let in_doubt =
                |death: &base::Instant| *death + IN_TRANSIT >= at && *death <= healed + SETTLED;
            if bind == again || !s.deaths.iter().any(in_doubt) {
                self.fail(Broken::Twice, format!("{what} for {:?} at {:?}", USERS[user], u.took));
            }
        }
    }

    fn reports(&mut self, user: usize, accepted: &BTreeMap<String, usize>) {
        let u = &self.scenario.network.users[user];
        let mut found: BTreeMap<(usize, String, bool), Vec<usize>> = BTreeMap::new();
        for (at, (delivered, recipient)) in u.delivered.iter().zip(&u.reported).enumerate() {
            let Delivered::Report { subject, delivered } = delivered else { continue };
            let recipient = recipient.clone().unwrap_or_default();
            match accepted.get(subject) {
                Some(n) if self.scenario.plan[*n].from == user => {
                    found.entry((*n, recipient, *delivered)).or_default().push(at);
                }
                _ => self.fail(Broken::Report, format!("a report about {subject}")),
            }
        }
        let mut expected = BTreeSet::new();
        for (n, planned) in
            self.scenario.plan.iter().enumerate().filter(|(_, planned)| planned.from == user)
        {
            for (site, user) in planned.to {
                let exists = USERS.contains(&(*site, *user));
                let arrives = exists && !self.is_expired(n, accepted);
                let reports = match planned.report {
                    ReportRequest::Report => true,
                    ReportRequest::NonDelivery => !arrives,
                    _ => false,
                };
                if reports {
                    expected.insert((n, name(&address(*site, user)).to_string(), arrives));
                }
            }
        }
        for key in expected.iter().filter(|key| !found.contains_key(key)) {
            self.failures.push((Broken::Report, format!("no report {key:?}")));
        }
        for (key, copies) in found {
            if !expected.contains(&key) {
                self.fail(Broken::Report, format!("a report {key:?}"));
            }
            self.once(user, &format!("report {key:?}"), &copies);
        }
    }

    /// Nothing is left at any site, on the disk or in memory.
    fn ends(&mut self, has_mailboxes: bool) {
        for site in [NAPLES, ACT] {
            let s = &self.scenario.network.sites[site];
            let left = self.scenario.queued(site).len();
            if s.is_down || left > 0 {
                let what = format!("site {site} is down: {}, {left} entries", s.is_down);
                self.fail(Broken::Stuck, what);
            }
            let held = s.node.holds();
            if (held.arrivals, held.pending, held.keys) != (0, 0, 0) {
                self.fail(Broken::Stuck, format!("at {site}: {held:?}"));
            }
            for refused in &s.store.refused {
                self.fail(Broken::Refused, format!("at {site}: {refused}"));
            }
            for problem in &s.store.problems {
                self.fail(Broken::Damaged, format!("at {site}: {problem}"));
            }
            if s.count(Kind::Damaged) > 0 {
                self.fail(Broken::Damaged, format!("at {site}: {:?}", s.details(Kind::Damaged)));
            }
            let Some(store) = s.store.opened() else { continue };
            let bodies = store.bodies(None, 99).map_or(99, |bodies| bodies.len());
            let mut files = s.store.disk.list(Path::new("bodies")).unwrap_or_default();
            // One content of the long message stays with its item, and one of the list's where memory was short.
            let kept = [LONG, LISTED].map(|n| self.scenario.plan.get(n).map(|p| p.size as u64));
            for length in kept.into_iter().flatten().filter(|_| has_mailboxes) {
                if let Some(at) = files.iter().position(|(_, of)| *of == length) {
                    files.remove(at);
                }
            }
            let in_memory = store.contents().memory_held();
            if bodies > 0 || !files.is_empty() || in_memory > 0 {
                let what = format!("at {site}: {bodies} contents, {files:?}, {in_memory} octets");
                self.fail(Broken::Orphaned, what);
            }
            if !store.damage().is_none() {
                self.fail(Broken::Damaged, format!("at {site}: {:?}", store.damage()));
            }
        }
    }

    /// Whether the product has noticed damage.
    fn noticed(&self) -> bool {
        self.failures.iter().any(|(broken, _)| *broken == Broken::Damaged)
    }
}

/// The numbers in the value of [`NAMES`].
fn numbers(value: &[u8]) -> Vec<MailboxId> {
    let mut mailboxes = mailbox::Mailboxes::default();
    mailboxes.recovered(value).expect("the numbers of mailboxes");
    mailboxes.numbers().collect()
}
