//! What must hold once a world was played.

use crate::play::Play;
use crate::world::{Message, Profile, SITES, What, World};
use base::{Instant, Precedence};
use engine::journal::{ItemId, MailboxId};
use mailbox::machine::NAMES as NUMBERS;
use mailbox::{Item, Totals};
use node::event::{Kind, LogEvent};
use p1::flags::ReportRequest;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::time::Duration;
use store::Disk;
use testkit::build::{content, name};
use testkit::real::Fault;
use testkit::{Delivered, Events};

/// How a promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// An acknowledged message neither arrived nor was reported.
    Lost,
    /// It arrived with other octets, or at somebody else's.
    Altered,
    /// Somebody got it twice, or it was accepted twice.
    Twice,
    /// A report is missing, untrue, or one too many.
    Report,
    /// A message was given up without a reason.
    GivenUp,
    /// It arrived although it was deleted, or before its time, went although an operator held it, or overtook what
    /// is higher.
    Ordered,
    /// Something waits for ever.
    Stuck,
    /// Something is left in a store, or in memory.
    Orphaned,
    /// A store takes an interruption for damage.
    Damaged,
    /// A full disk refuses what it has a reserve for.
    Refused,
    /// A password is in an event.
    Secret,
    /// The program failed.
    Panicked,
}

/// What was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The promise.
    pub broken: Broken,
    /// In words.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.broken, self.what)
    }
}

/// The outcome of a message for one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Delivery,
    NonDelivery,
    Either,
    /// Also neither, without a report.
    Anything,
}

/// The time after which a delivery that was taken is surely deleted, where the disk is sound: it may be slow, and fail
/// once.
const SETTLED: Duration = Duration::from_secs(5);

/// The longest time from the arrival of a message until it may start: its record is read from a disk.
const PREPARED: Duration = Duration::from_secs(5);

/// The longest time for which octets between a user and his MTA are in transit.
const IN_TRANSIT: Duration = Duration::from_millis(10);

/// Checks a world that was played.
pub(crate) fn check(play: &Play<'_>) -> Vec<Failure> {
    let mut check = Check { play, world: play.world, failures: Vec::new() };
    let accepted = check.answers();
    let mut came = BTreeMap::new();
    for user in 0..check.world.users() {
        let copies = match user % 2 == 1 && check.world.sites[user / 2].has_mailbox {
            true => check.mailbox(user, &accepted),
            false => check.messages(user, &accepted),
        };
        came.insert(user, copies);
    }
    let reported = check.reports(&accepted);
    check.account(&came, &reported);
    for site in 0..check.world.sites.len() {
        check.site(site);
        if check.world.events.is_empty() {
            check.order(site, &accepted);
        }
    }
    for went in &play.went {
        check.fail(Broken::Ordered, went.clone());
    }
    for waits in play.waits.iter().filter(|_| !may_stay_half_open(play.world)) {
        check.fail(Broken::Stuck, waits.clone());
    }
    for left in &play.left {
        check.fail(Broken::Orphaned, left.clone());
    }
    check.secrets();
    check.cancelled();
    if check.world.has(|what| matches!(what, What::Corrupt(_))) {
        // TCP has checksums. What gets through may be any other message.
        let stays = [Broken::Panicked, Broken::Stuck, Broken::Orphaned, Broken::Secret];
        check.failures.retain(|failure| stays.contains(&failure.broken));
    }
    if check.world.has(may_damage) && check.has(Broken::Damaged) {
        // What a disk has destroyed is gone. Nobody gets something else for it.
        check.failures.retain(|failure| failure.broken == Broken::Altered);
    }
    check.failures
}

/// Whether the one that calls may believe for ever that it has an association: TCP finds out (keepalive), which is not here.
fn may_stay_half_open(world: &World) -> bool {
    let breaks = |what: &What| {
        let power = matches!(
            what,
            What::Dies(_, testkit::Death::Power) | What::Disk(_, _, Fault::Power { .. })
        );
        power || matches!(what, What::HalfOpen(..))
    };
    world.links.iter().any(|link| link.only_caller.is_some()) && world.has(breaks)
}

/// Whether it may destroy what is stored.
fn may_damage(what: &What) -> bool {
    matches!(what, What::Disk(_, _, Fault::Rot(_) | Fault::UnreadableOnce | Fault::Unreadable(_)))
}

struct Check<'a> {
    play: &'a Play<'a>,
    world: &'a World,
    failures: Vec<Failure>,
}

/// Number of the message, recipient, and whether it is a delivery report.
type Reported = BTreeMap<(usize, usize), BTreeSet<bool>>;

impl Check<'_> {
    fn fail(&mut self, broken: Broken, what: String) {
        self.failures.push(Failure { broken, what });
    }

    fn has(&self, broken: Broken) -> bool {
        self.failures.iter().any(|failure| failure.broken == broken)
    }

    fn message(&self, number: usize) -> &Message {
        let mut all = self.world.messages.iter();
        all.find(|message| message.number == number).expect("a message of the world")
    }

    /// The identifiers of the messages: each was accepted, and once.
    fn answers(&mut self) -> BTreeMap<String, usize> {
        let mut accepted = BTreeMap::new();
        let mut ids: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (user, submitted) in self.play.submitted.iter().enumerate() {
            let u = &self.play.network.users[user];
            for (tag, answer) in u.answered.iter().zip(&u.answers) {
                if let Ok(id) = answer {
                    let number = self.world.messages[submitted[*tag]].number;
                    accepted.insert(id.clone(), number);
                    ids.entry(number).or_default().insert(id.clone());
                }
            }
        }
        for message in &self.world.messages {
            let number = message.number;
            match ids.get(&number).map_or(0, BTreeSet::len) {
                0 => self.fail(Broken::Stuck, format!("message {number} was never accepted")),
                1 => {}
                times => self.fail(Broken::Twice, format!("{number} was accepted {times} times")),
            }
        }
        accepted
    }

    /// The outcome of a message for a recipient: a user, or one who does not exist.
    fn due(&self, message: &Message, to: usize) -> Due {
        let acted = self.play.acted.contains(&message.number);
        if self.play.deletes(message.number) {
            return Due::Anything;
        }
        let due = match to >= self.world.users() {
            true => Due::NonDelivery,
            false => self.over(message, message.from / 2, to / 2),
        };
        if acted { Due::Either } else { due }
    }

    /// The outcome of the way from one site to another.
    fn over(&self, message: &Message, from: usize, to: usize) -> Due {
        let way = self.world.way(from, to);
        let is_1984 = |link: &usize| self.world.links[*link].profile == Profile::P1Of1984;
        let has_no_form = !message.is_p2 && way.iter().any(is_1984);
        if has_no_form { Due::NonDelivery } else { Due::Delivery }
    }

    /// The outcomes of a message for those to whom it is not addressed, but who get it: the members of its lists, and its
    /// alternate recipient.
    fn indirect(&self, message: &Message) -> Vec<(usize, Due)> {
        let acted = self.play.acted.contains(&message.number);
        let mut all = Vec::new();
        for (at, members) in message.to.iter().filter_map(|to| {
            let (_, list) = self.world.list(*to)?;
            Some((list.site, &list.members))
        }) {
            all.extend(members.iter().map(|member| (at, *member)));
        }
        let nobody = self.world.site_of(self.world.users());
        all.extend(message.alternate.map(|user| (nobody, user)));
        let due = |(at, user): (usize, usize)| {
            let is_1984 = |link: &usize| self.world.links[*link].profile == Profile::P1Of1984;
            // P1 of 1984 has neither histories nor alternates.
            let passes_1984 = self.world.way(message.from / 2, at).iter().any(is_1984)
                || self.world.way(at, user / 2).iter().any(is_1984);
            let due = match (self.play.deletes(message.number), acted || passes_1984) {
                (true, _) => Due::Anything,
                (_, true) => Due::Either,
                (false, false) => Due::Delivery,
            };
            (user, due)
        };
        all.into_iter().map(due).collect()
    }

    /// How many copies of a message a user is entitled to.
    fn copies(&self, message: &Message, user: usize) -> usize {
        let direct = message.to.iter().filter(|to| **to == user).count();
        direct + self.indirect(message).iter().filter(|(who, _)| *who == user).count()
    }

    /// Whether reports about a message are not checked: of lists and alternates.
    fn is_indirect(&self, message: &Message) -> bool {
        message.alternate.is_some() || message.to.iter().any(|to| self.world.list(*to).is_some())
    }

    /// The messages that a user took over P3.
    fn messages(&mut self, user: usize, accepted: &BTreeMap<String, usize>) -> BTreeSet<usize> {
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

    fn whole(&mut self, number: usize, user: usize, octets: &[u8]) {
        let message = self.message(number);
        let (size, is_meant) = (message.size, self.copies(message, user) > 0);
        if !is_meant || *octets != content(number, size) {
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
    fn in_time(&mut self, number: usize, user: usize, at: usize) {
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
        let is_right = !self.world.has(|what| matches!(what, What::Clock(..)));
        if let Some(due) = due.filter(|due| is_right && took < *due) {
            let what = format!("{number} at {who} came at {took:?}, deferred until {due:?}");
            self.fail(Broken::Ordered, what);
        }
    }

    /// Deliveries come so often; again only if the process died before a delete was durable.
    fn at_most(&mut self, entitled: usize, user: usize, what: &str, copies: &[usize]) {
        let (u, s) = (&self.play.network.users[user], &self.play.network.sites[user / 2]);
        let is_again = |pair: &&[usize]| {
            let ((bind, at), (again, _)) = (u.took[pair[0]], u.took[pair[1]]);
            // Where the disk fails for long, the delete is tried until it is well again.
            let healed = s.store.healed().unwrap_or(at).max(at);
            let in_doubt =
                |death: &Instant| *death + IN_TRANSIT >= at && *death <= healed + SETTLED;
            bind == again || !s.deaths.iter().any(in_doubt)
        };
        if copies.windows(2).filter(is_again).count() >= entitled.max(1) {
            let who = self.world.user_name(user);
            let times: Vec<_> = copies.iter().map(|at| u.took[*at]).collect();
            self.fail(Broken::Twice, format!("{what} for {who} at {times:?}"));
        }
    }

    /// A mailbox has each message once and whole, and its totals are those of its items.
    fn mailbox(&mut self, user: usize, accepted: &BTreeMap<String, usize>) -> BTreeSet<usize> {
        let (site, who) = (user / 2, self.world.user_name(user));
        let mut got: BTreeMap<usize, u32> = BTreeMap::new();
        let Some(store) = self.play.network.sites[site].store.opened() else {
            return BTreeSet::new();
        };
        let value = |name: &str| store.meta(name).ok().flatten();
        let Some(id) = value(NUMBERS).and_then(|names| numbers(&names).first().copied()) else {
            return BTreeSet::new();
        };
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
        let totals = value(&Totals::name(id)).and_then(|value| Totals::decode(&value).ok());
        let held = totals.map(|totals| Precedence::ALL.map(|level| totals.level(level).items));
        if held != Some(counts) || totals.is_none_or(|totals| totals.last < last) {
            let what = format!("{who} has {counts:?} items, the last is {last}: {totals:?}");
            self.fail(Broken::Orphaned, what);
        }
        got.into_keys().collect()
    }

    /// The reports that users took: none that is foreign, and each once.
    fn reports(&mut self, accepted: &BTreeMap<String, usize>) -> Reported {
        let mut reported = Reported::new();
        let addresses: BTreeMap<String, usize> = (0..=self.world.users())
            .map(|user| (name(&self.world.address(user)).to_string(), user))
            .collect();
        for user in 0..self.world.users() {
            let u = &self.play.network.users[user];
            let mut found: BTreeMap<(usize, usize, bool), Vec<usize>> = BTreeMap::new();
            for (at, (delivered, recipient)) in u.delivered.iter().zip(&u.reported).enumerate() {
                let Delivered::Report { subject, delivered } = delivered else { continue };
                let about = accepted.get(subject).filter(|n| self.message(**n).from == user);
                let to = recipient.as_ref().and_then(|recipient| addresses.get(recipient));
                let is_indirect = |number: &&usize| self.is_indirect(self.message(**number));
                if about.is_some_and(|number| is_indirect(&number)) {
                    continue;
                }
                match about.zip(to) {
                    Some((number, to)) if self.message(*number).to.contains(to) => {
                        found.entry((*number, *to, *delivered)).or_default().push(at);
                    }
                    _ => {
                        let what = format!("a report about {subject} for {recipient:?}");
                        self.fail(Broken::Report, what);
                    }
                }
            }
            for ((number, to, delivered), copies) in found {
                let who = self.world.user_name(to);
                let what = format!("the report of {number} for {who}");
                // A copy that is expired while its transfer is in doubt is reported by both sides.
                if !self.play.acted.contains(&number) {
                    self.at_most(1, user, &what, &copies);
                }
                reported.entry((number, to)).or_default().insert(delivered);
            }
        }
        reported
    }

    /// Every message is accounted for, for each of its recipients.
    fn account(&mut self, came: &BTreeMap<usize, BTreeSet<usize>>, reported: &Reported) {
        let none = BTreeSet::new();
        let world = self.world;
        for message in &world.messages {
            // The reports to the user of a mailbox are items there.
            let sees_reports =
                !(message.from % 2 == 1 && world.sites[message.from / 2].has_mailbox);
            let indirect = self.indirect(message);
            for (user, due) in &indirect {
                if *due == Due::Delivery
                    && !came.get(user).is_some_and(|c| c.contains(&message.number))
                {
                    let who = world.user_name(*user);
                    let what =
                        format!("message {} for {who}, by a list or as alternate", message.number);
                    self.fail(Broken::Lost, what);
                }
            }
            for to in message.to.iter().filter(|to| world.list(**to).is_none()) {
                let number = message.number;
                let what = format!("message {number} for {}", world.user_name(*to));
                let arrived = came.get(to).is_some_and(|came| came.contains(&number));
                let reports = reported.get(&(number, *to)).unwrap_or(&none);
                let due = self.due(message, *to);
                let acted = self.play.acted.contains(&number);
                let asks = |delivered: bool| match message.report {
                    ReportRequest::Report => true,
                    ReportRequest::NonDelivery => !delivered,
                    _ => false,
                };
                if arrived && due == Due::NonDelivery && indirect.iter().all(|(user, _)| user != to)
                {
                    self.fail(Broken::Ordered, format!("{what} arrived"));
                }
                if !arrived && due == Due::Delivery {
                    let (broken, how) = match reports.contains(&false) {
                        true => (Broken::GivenUp, "reported as not delivered"),
                        false => (Broken::Lost, "did not arrive"),
                    };
                    self.fail(broken, format!("{what}: {how}"));
                }
                if !sees_reports || self.is_indirect(message) {
                    continue;
                }
                for delivered in reports {
                    // A copy that is expired while its transfer is in doubt is reported, and may have arrived.
                    let in_doubt = acted && !*delivered;
                    if *delivered != arrived && !in_doubt || !asks(*delivered) {
                        let kind = if *delivered { "delivery" } else { "non-delivery" };
                        let what = format!("{what}: a {kind} report, and arrived is {arrived}");
                        self.fail(Broken::Report, what);
                    }
                }
                let missing = asks(arrived) && !reports.contains(&arrived);
                if missing && due != Due::Anything {
                    self.fail(Broken::Report, format!("{what}: no report, arrived is {arrived}"));
                }
            }
        }
    }

    /// No event has a password.
    fn secrets(&mut self) {
        let mut passwords: Vec<String> = SITES.iter().map(|site| format!("from-{site}")).collect();
        passwords.extend(self.play.network.users.iter().map(|user| user.password.to_owned()));
        for (name, site) in SITES.iter().zip(&self.play.network.sites) {
            for (_, event) in &site.events {
                if passwords.iter().any(|password| event.detail.contains(password)) {
                    self.fail(Broken::Secret, format!("at {name}: {}", event.detail));
                }
            }
        }
    }

    /// What was cancelled, as its originator was answered, never arrives.
    fn cancelled(&mut self) {
        let mut cancelled = BTreeSet::new();
        for user in &self.play.network.users {
            let done = user.cancelled.iter().filter(|(_, answer)| answer.is_ok());
            cancelled.extend(done.map(|(identifier, _)| identifier.clone()));
        }
        for user in &self.play.network.users {
            for delivered in &user.delivered {
                if let Delivered::Message { identifier, .. } = delivered
                    && cancelled.contains(identifier)
                {
                    self.fail(Broken::Ordered, format!("{identifier} arrived, and was cancelled"));
                }
            }
        }
    }

    /// Where nothing goes wrong, nothing starts on a channel while something higher has waited for it for long.
    fn order(&mut self, site: usize, accepted: &BTreeMap<String, usize>) {
        let s = &self.play.network.sites[site];
        let deferred = |id: &str| {
            accepted.get(id).is_some_and(|number| self.message(*number).deferred.is_some())
        };
        let mut came: BTreeMap<&str, Instant> = BTreeMap::new();
        let mut started: Vec<(Instant, &LogEvent)> = Vec::new();
        for (at, event) in &s.events {
            let Some(message) = event.message.as_deref() else { continue };
            match event.kind {
                Kind::Submitted | Kind::Received if !deferred(message) => {
                    came.insert(message, *at);
                }
                Kind::TransferStarted => started.push((*at, event)),
                _ => {}
            }
        }
        let mut failures = Vec::new();
        for (nth, (at, lower)) in started.iter().enumerate() {
            // A rule that lets it pass is in its detail, and that it goes on.
            if lower.detail.contains("by rule") || lower.detail.starts_with("resumed") {
                continue;
            }
            for (_, higher) in &started[nth + 1..] {
                let waited = higher.message.as_deref().and_then(|id| came.get(id));
                let waited = waited.is_some_and(|came| *came + PREPARED < *at);
                let same = higher.channel == lower.channel;
                if waited && same && higher.precedence > lower.precedence {
                    let (before, after) = (&lower.message, &higher.message);
                    let name = SITES[site];
                    failures.push(format!("at {name}: {before:?} at {at:?} before {after:?}"));
                }
            }
        }
        failures.into_iter().for_each(|what| self.fail(Broken::Ordered, what));
    }

    /// Nothing is left at a site, on the disk or in memory.
    fn site(&mut self, site: usize) {
        let s = &self.play.network.sites[site];
        let name = SITES[site];
        let left = self.play.queued(site);
        if s.is_down || !left.is_empty() {
            self.fail(Broken::Stuck, format!("{name} is down: {}, left: {left:?}", s.is_down));
        }
        let files = s.store.disk.list(Path::new("bodies")).unwrap_or_default();
        // A part that was taken up after the loss of power waits on its association, until the next transfer on it or its
        // end.
        let kept = files.iter().filter(|(name, _)| name.ends_with(".notes")).count();
        let held = s.node.holds();
        if (held.arrivals, held.pending, held.keys) != (kept, 0, 0) {
            self.fail(Broken::Stuck, format!("at {name}: {held:?}"));
        }
        for refused in &s.store.refused {
            self.fail(Broken::Refused, format!("at {name}: {refused}"));
        }
        for problem in &s.store.problems {
            self.fail(Broken::Damaged, format!("at {name}: {problem}"));
        }
        if s.count(Kind::Damaged) > 0 {
            self.fail(Broken::Damaged, format!("at {name}: {:?}", s.details(Kind::Damaged)));
        }
        let Some(store) = s.store.opened().filter(|_| left.is_empty()) else { return };
        let bodies = store.bodies(None, 99).map_or(99, |bodies| bodies.len());
        let has_items = self.world.sites[site].has_mailbox;
        if bodies > 0 || store.contents().memory_held() > 0 || files.len() > 2 * kept && !has_items
        {
            let what = format!("at {name}: {bodies} contents, files {files:?}");
            self.fail(Broken::Orphaned, what);
        }
        if !store.damage().is_none() {
            self.fail(Broken::Damaged, format!("at {name}: {:?}", store.damage()));
        }
    }
}

impl Play<'_> {
    /// Whether an operator may have deleted a message, or its originator cancelled it.
    fn deletes(&self, number: usize) -> bool {
        let deletes = |what: &What| matches!(what, What::Delete(_) | What::Cancel(_));
        self.acted.contains(&number) && self.world.has(deletes)
    }
}

/// The numbers in the value of [`NUMBERS`].
fn numbers(value: &[u8]) -> Vec<MailboxId> {
    let mut mailboxes = mailbox::Mailboxes::default();
    match mailboxes.recovered(value) {
        Ok(()) => mailboxes.numbers().collect(),
        Err(_) => Vec::new(),
    }
}
