//! What must hold once a world was played.

mod arrived;
mod calm;
mod due;
mod line;
mod order;
mod reader;
mod reported;
mod site;

use crate::play::Play;
use crate::world::{Message, SITES, What, World};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;
use testkit::Delivered;
use testkit::real::Fault;

/// How a promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// An acknowledged message neither arrived nor was reported.
    Lost,
    /// It arrived with other octets.
    Altered,
    /// Somebody got it who is not to get it, or not again; or it was accepted twice.
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
    /// More went over a line than a cut costs.
    Wasted,
    /// A mailbox contradicts itself, or what its user was answered.
    Mailbox,
    /// A mark was taken for a wrong one.
    Marked,
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
            true if check.world.reads(user) => check.reader(user, &accepted),
            true => check.mailbox(user, &accepted),
            false => check.messages(user, &accepted),
        };
        came.insert(user, copies);
    }
    let reported = check.reports(&accepted);
    check.account(&came, &reported);
    for site in 0..check.world.sites.len() {
        check.site(site);
        check.marks(site);
        check.associations(site);
        check.order(site, &accepted);
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
    check.ended();
    check.octets();
    check.secrets();
    check.cancelled();
    let is_damaged =
        check.world.has(may_damage) && (check.has(Broken::Damaged) || may_seem_torn(play.world));
    if check.world.has(|what| matches!(what, What::Corrupt(_))) {
        // TCP has checksums. What gets through may be any other message.
        let stays = [Broken::Panicked, Broken::Stuck, Broken::Orphaned, Broken::Secret];
        check.failures.retain(|failure| stays.contains(&failure.broken));
    }
    if is_damaged {
        // What a disk has destroyed is gone. Nobody gets something else for it.
        let stays = [Broken::Panicked, Broken::Altered, Broken::Secret];
        check.failures.retain(|failure| stays.contains(&failure.broken));
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

/// Whether a bit may change in what was written last before a process ends: it looks like a write that was torn.
fn may_seem_torn(world: &World) -> bool {
    let rots = |site: usize| {
        world.has(|what| matches!(what, What::Disk(of, _, Fault::Rot(_)) if *of == site))
    };
    (0..world.sites.len()).any(rots)
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
}

impl Play<'_> {
    /// Whether an operator may have deleted a message, or its originator cancelled it.
    fn deletes(&self, number: usize) -> bool {
        let deletes = |what: &What| matches!(what, What::Delete(_) | What::Cancel(_));
        self.acted.contains(&number) && self.world.has(deletes)
    }
}
