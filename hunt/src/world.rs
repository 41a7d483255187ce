//! A world: a network, its traffic and all that goes wrong, as data. What is taken out of it leaves a world, so that
//! one that fails can be made smaller.

use base::Precedence;
use p1::flags::ReportRequest;
use scheduler::Hold;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use testkit::Death;
use testkit::real::Fault;

/// The users of each site: the second one may have a mailbox in the message store.
pub(crate) const NAMES: [&str; 2] = ["OPS", "LOG"];

/// Sites have these names in stories.
pub(crate) const SITES: [&str; 6] = ["naples", "act", "relay", "rome", "oslo", "izmir"];

/// A world.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct World {
    /// The seed that it was drawn from, and what is left to chance while it is played.
    pub seed: u64,
    /// Its sites, 2 to 6.
    pub sites: Vec<Site>,
    /// The links between them, over which all can reach all.
    pub links: Vec<Link>,
    /// Distribution lists.
    #[serde(default)]
    pub lists: Vec<List>,
    /// Users whose messages are redirected, and to whom.
    #[serde(default)]
    pub redirected: Vec<(usize, usize)>,
    /// What users submit, in order of time.
    pub messages: Vec<Message>,
    /// What goes wrong, and what operators do, in order of time.
    pub events: Vec<Event>,
}

/// A site.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Site {
    /// Rules 1 and 2 of the scheduler.
    #[serde(with = "crate::remote::Hold")]
    pub hold: Hold,
    /// Rule 8.
    pub preempt: bool,
    /// Rule 7, in percent.
    pub share: Option<u8>,
    /// Whether its user LOG has a mailbox.
    pub has_mailbox: bool,
    /// Whether he reads it over P7.
    #[serde(default)]
    pub reads: Reads,
    /// From this minute of the day on, and for two, only what is urgent goes out.
    pub minimize: Option<u64>,
    /// Whether its disk takes its time.
    pub slow_disk: bool,
}

/// Whether the user of a mailbox reads it over P7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reads {
    /// Nobody reads it.
    #[default]
    Never,
    /// He lists and fetches, with lists of so many items at most.
    Fetches(Option<i64>),
    /// He also deletes some of what he has.
    Deletes(Option<i64>),
}

/// The kind of a peer, as the profiles of `config/peers` have it; both ends of a link have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Profile {
    /// `modern`.
    Modern,
    /// `x400-1988`.
    X400Of1988,
    /// `x410-1984`: P1 of 1988 in X.410 mode.
    X410,
    /// `x410-1984` with P1 of 1984.
    P1Of1984,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 4] =
        [Profile::Modern, Profile::X400Of1988, Profile::X410, Profile::P1Of1984];
}

/// The channels of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// One for all precedences.
    One,
    /// One for what is urgent, which the other falls back on.
    Two,
    /// One for each precedence, Deferred with Routine.
    Five,
}

/// When associations of a link exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kept {
    /// Always.
    Permanent,
    /// Opened by traffic, and released after so many seconds without any.
    OnDemand(u64),
    /// As permanent, but for this minute of the day and the next.
    Scheduled(u64),
}

/// A link between two sites.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Link {
    /// Its sites.
    pub ends: (usize, usize),
    /// What they speak.
    pub profile: Profile,
    /// Its channels.
    pub layout: Layout,
    /// When its associations exist.
    pub kept: Kept,
    /// Only this one calls.
    pub only_caller: Option<usize>,
    /// Checkpoint size in units of 1,024 octets.
    pub checkpoint: u32,
    /// RTS window.
    pub window: u32,
    /// Whether the turn goes both ways.
    pub two_way: bool,
    /// Most associations of a channel.
    pub associations: u32,
    /// Either end may ask for the recovery.
    pub either: bool,
    /// The priority-level-qualifier is left out.
    #[serde(default)]
    pub omits_qualifier: bool,
    /// Members that have the value of their DEFAULT are left out.
    #[serde(default)]
    pub omits_defaults: bool,
    /// Associations are ended by closing the connection.
    #[serde(default)]
    pub closes: bool,
    /// Delay of its line.
    pub latency: Duration,
    /// Rate of its line in octets a second.
    pub rate: u64,
}

/// A distribution list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct List {
    /// Its site.
    pub site: usize,
    /// The users that it has for members, and lists, by the numbers that recipients have.
    pub members: Vec<usize>,
}

/// What is submitted once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// Its number, of which content and content-identifier are made.
    pub number: usize,
    /// When.
    pub at: Duration,
    /// By which user: two for each site.
    pub from: usize,
    /// To which users; the first number beyond them is of one who does not exist, at the last site, and those beyond it are
    /// of the lists.
    pub to: Vec<usize>,
    /// The user whom the originator requests as alternate recipient.
    #[serde(default)]
    pub alternate: Option<usize>,
    /// Its precedence.
    pub precedence: Precedence,
    /// Octets of content.
    pub size: usize,
    /// Which reports its originator wants.
    #[serde(with = "crate::remote::ReportRequest")]
    pub report: ReportRequest,
    /// Whether its content-type is P2, which P1 of 1984 has a form for, and else P22.
    pub is_p2: bool,
    /// Its deferred delivery is so long after its submission.
    pub deferred: Option<Duration>,
}

/// What a peer does that no peer should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lie {
    /// It aborts the session.
    Aborts,
    /// It confirms a checkpoint twice.
    Repeats,
    /// It confirms a checkpoint that it did not get yet.
    Ahead,
    /// It confirms one again that it confirmed long ago.
    Behind,
}

/// What happens once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Duration,
    /// What.
    pub what: What,
}

/// What goes wrong, or what an operator does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// The connections of a link are cut.
    Cut(usize),
    /// They are cut, and this site does not notice.
    HalfOpen(usize, usize),
    /// A link is down for so long.
    Down(usize, Duration),
    /// Its rate is so many octets a second for so long.
    Slow(usize, u64, Duration),
    /// Nothing arrives over it for so long, and then all.
    Stalled(usize, Duration),
    /// Of 100 packets so many are lost and sent again, for so long.
    Lossy(usize, u8, Duration),
    /// Everything arrives so much later, for so long: the peer answers late.
    Late(usize, Duration, Duration),
    /// A router on it removes the marks for so long.
    Bleached(usize, Duration),
    /// Instead of the next PDU over it that this fits, the peer sends something else.
    Lies(usize, Lie),
    /// A site is cut off from all others for so long.
    Partition(usize, Duration),
    /// A process dies, and is started again.
    Dies(usize, #[serde(with = "crate::remote::Death")] Death),
    /// A process ends in order, and is started again.
    Restart(usize),
    /// A fault of the disk, after so many operations.
    Disk(usize, u64, #[serde(with = "crate::remote::Fault")] Fault),
    /// A process hangs for so long.
    Hangs(usize, Duration),
    /// A site finds the passwords of all peers wrong for so long.
    Distrusts(usize, Duration),
    /// A wall clock is set by so many seconds.
    Clock(usize, i64),
    /// A wall clock gains so many microseconds a second from now on.
    Drifts(usize, i64),
    /// An operator has all that is queued held.
    Hold(usize),
    /// And released.
    Release(usize),
    /// And tried again.
    Retry(usize),
    /// A user cancels the deferred delivery of a message.
    Cancel(usize),
    /// A bit of the next octets over a link changes.
    Corrupt(usize),
    /// One entry is rerouted.
    Reroute(usize),
    /// One entry is expired.
    Expire(usize),
    /// One entry is deleted.
    Delete(usize),
    /// The configuration is reloaded, with other rules of the scheduler.
    Reload(usize),
}

impl World {
    /// The number of users.
    pub fn users(&self) -> usize {
        self.sites.len() * NAMES.len()
    }

    /// The address of a user, or of a list.
    pub fn address(&self, user: usize) -> String {
        match self.list(user) {
            Some((number, list)) => testkit::address(list.site, &format!("LIST{number}")),
            None if user < self.users() => testkit::address(user / 2, NAMES[user % 2]),
            None => testkit::address(self.sites.len() - 1, "NOBODY"),
        }
    }

    /// The list that a recipient is, if it is one, and its number.
    pub fn list(&self, to: usize) -> Option<(usize, &List)> {
        let number = to.checked_sub(self.users() + 1)?;
        Some((number, self.lists.get(number)?))
    }

    /// Whether what comes for a recipient goes to others instead.
    pub fn leads_on(&self, to: usize) -> bool {
        self.list(to).is_some() || self.redirected_to(to).is_some()
    }

    /// To whom what comes for a user is redirected.
    pub fn redirected_to(&self, user: usize) -> Option<usize> {
        self.redirected.iter().find(|(from, _)| *from == user).map(|(_, to)| *to)
    }

    /// The site of a recipient.
    pub fn site_of(&self, to: usize) -> usize {
        match self.list(to) {
            Some((_, list)) => list.site,
            None if to < self.users() => to / 2,
            None => self.sites.len() - 1,
        }
    }

    /// The links of a site: their numbers, and the other ends.
    pub fn links_of(&self, site: usize) -> impl Iterator<Item = (usize, usize)> {
        self.links.iter().enumerate().filter_map(move |(number, link)| match link.ends {
            (a, b) if a == site => Some((number, b)),
            (a, b) if b == site => Some((number, a)),
            _ => None,
        })
    }

    /// For each site the first link on a shortest way to this one.
    pub fn ways_to(&self, site: usize) -> Vec<Option<usize>> {
        let mut ways = vec![None; self.sites.len()];
        let mut reached = vec![site];
        let mut next = 0;
        while let Some(&near) = reached.get(next) {
            next += 1;
            for (link, far) in self.links_of(near) {
                if !reached.contains(&far) {
                    ways[far] = Some(link);
                    reached.push(far);
                }
            }
        }
        ways
    }

    /// The links that a message takes from one site to another, if nobody reroutes it.
    pub fn way(&self, from: usize, to: usize) -> Vec<usize> {
        let ways = self.ways_to(to);
        let (mut at, mut way) = (from, Vec::new());
        while let Some(link) = ways[at].filter(|_| at != to) {
            let (a, b) = self.links[link].ends;
            at = if at == a { b } else { a };
            way.push(link);
        }
        way
    }

    /// Whether a user reads his mailbox over P7.
    pub fn reads(&self, user: usize) -> bool {
        let site = &self.sites[user / 2];
        user % 2 == 1 && site.has_mailbox && site.reads != Reads::Never
    }

    /// Whether an operator does such a thing in it.
    pub fn has(&self, which: impl Fn(&What) -> bool) -> bool {
        self.events.iter().any(|event| which(&event.what))
    }

    /// The user in words.
    pub fn user_name(&self, user: usize) -> String {
        let site = SITES[self.site_of(user)];
        match self.list(user) {
            Some((number, _)) => format!("list {number} at {site}"),
            None if user < self.users() => format!("{} at {site}", NAMES[user % 2]),
            None => format!("nobody at {site}"),
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {} sites", self.seed, self.sites.len())?;
        for (name, site) in SITES.iter().zip(&self.sites) {
            writeln!(
                f,
                "  {name:8} hold {:?}, preempt {}, share {:?}, mailbox {}, read {:?}, MINIMIZE from {:?}, slow disk {}",
                site.hold,
                site.preempt,
                site.share,
                site.has_mailbox,
                site.reads,
                site.minimize,
                site.slow_disk
            )?;
        }
        for (number, link) in self.links.iter().enumerate() {
            let (a, b) = link.ends;
            writeln!(
                f,
                "  link {number}: {} - {}, {:?}, {:?}, {:?}, only {:?} calls, checkpoint {}, window {}, {}, {} associations, {}, \
                 {:?}, {} octets/s{}{}{}",
                SITES[a],
                SITES[b],
                link.profile,
                link.layout,
                link.kept,
                link.only_caller.map(|site| SITES[site]),
                link.checkpoint,
                link.window,
                if link.two_way { "two-way" } else { "monologue" },
                link.associations,
                if link.either { "either recovers" } else { "initiator recovers" },
                link.latency,
                link.rate,
                if link.omits_qualifier { ", no qualifier" } else { "" },
                if link.omits_defaults { ", no DEFAULTs" } else { "" },
                if link.closes { ", closes" } else { "" }
            )?;
        }
        for (number, list) in self.lists.iter().enumerate() {
            let members: Vec<String> = list.members.iter().map(|m| self.user_name(*m)).collect();
            writeln!(f, "  list {number} at {}: {}", SITES[list.site], members.join(", "))?;
        }
        for (from, to) in &self.redirected {
            let (from, to) = (self.user_name(*from), self.user_name(*to));
            writeln!(f, "  what comes for {from} is redirected to {to}")?;
        }
        for message in &self.messages {
            writeln!(
                f,
                "  {:>10.3?} message {}: {} to {}, {}, {} octets, {:?}, {}{}{}",
                message.at,
                message.number,
                self.user_name(message.from),
                message.to.iter().map(|to| self.user_name(*to)).collect::<Vec<_>>().join(", "),
                message.precedence,
                message.size,
                message.report,
                if message.is_p2 { "P2" } else { "P22" },
                message.deferred.map(|by| format!(", deferred by {by:?}")).unwrap_or_default(),
                message
                    .alternate
                    .map(|user| format!(", alternate {}", self.user_name(user)))
                    .unwrap_or_default()
            )?;
        }
        for event in &self.events {
            writeln!(f, "  {:>10.3?} {:?}", event.at, event.what)?;
        }
        Ok(())
    }
}
