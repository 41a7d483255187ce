//! What went in which order, and for how long what is urgent waited.

use super::calm::Calm;
use super::{Broken, Check, PREPARED};
use crate::world::{Kept, Link, SITES};
use base::{Instant, PeerId, Precedence};
use node::ChannelId;
use node::event::{Kind, LogEvent};
use scheduler::Hold;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A transfer that makes no progress for so long holds nothing (rule 1).
const STALL: Duration = Duration::from_secs(15);

/// A transfer of a site: from its start to its confirmation.
#[derive(Clone, Copy, Debug)]
struct Transfer<'a> {
    from: Instant,
    until: Instant,
    event: &'a LogEvent,
    /// When the message came first, and last before it started, if it could start since. Copies come by several paths, and
    /// an entry that starts again did not wait since then.
    came: Option<(Instant, Instant)>,
}

impl Transfer<'_> {
    fn channel(&self) -> Option<ChannelId> {
        self.event.channel
    }

    fn peer(&self) -> Option<PeerId> {
        self.channel().map(|channel| channel.peer)
    }

    fn message(&self) -> &str {
        self.event.message.as_deref().unwrap_or_default()
    }

    /// A rule that lets it pass is in its detail, and that it is resumed.
    fn may_pass(&self) -> bool {
        self.event.detail.contains("by rule") || self.is_resumed()
    }

    fn is_resumed(&self) -> bool {
        self.event.detail.starts_with("resumed")
    }

    /// Since when it could have started.
    fn ready(&self) -> Option<Instant> {
        self.came.map(|(_, last)| last + PREPARED)
    }
}

impl Check<'_> {
    /// The transfers of a site, in the order of their starts.
    fn transfers(&self, site: usize, accepted: &BTreeMap<String, usize>) -> Vec<Transfer<'_>> {
        let deferred = |id: &str| {
            accepted.get(id).is_some_and(|number| self.message(*number).deferred.is_some())
        };
        let mut came: BTreeMap<&str, (Instant, Instant)> = BTreeMap::new();
        let mut all: Vec<Transfer<'_>> = Vec::new();
        for (at, event) in &self.play.network.sites[site].events {
            let Some(message) = event.message.as_deref() else { continue };
            match event.kind {
                Kind::Submitted | Kind::Received if !deferred(message) => {
                    came.entry(message).or_insert((*at, *at)).1 = *at;
                }
                Kind::OperatorRerouted | Kind::Rerouted => {
                    came.insert(message, (*at, *at));
                }
                Kind::TransferStarted => {
                    let again =
                        all.iter().any(|other: &Transfer<'_>| other.event.entry == event.entry);
                    let came = came.get(message).copied().filter(|_| !again);
                    all.push(Transfer { from: *at, until: Instant(u64::MAX), event, came });
                }
                Kind::TransferConfirmed | Kind::TransferFailed => {
                    let is_it = |t: &&mut Transfer<'_>| t.event.entry == event.entry;
                    if let Some(transfer) = all.iter_mut().rev().find(is_it) {
                        transfer.until = transfer.until.min(*at);
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// While nothing goes wrong: rules 1 and 3 of the scheduler, and a bound for what is urgent.
    pub(super) fn order(&mut self, site: usize, accepted: &BTreeMap<String, usize>) {
        let calm = &self.calm(site);
        let transfers = self.transfers(site, accepted);
        let mut failures = Vec::new();
        for (nth, first) in transfers.iter().enumerate() {
            for then in &transfers[nth + 1..] {
                failures.extend(self.overtook(site, first, then, calm));
            }
            for higher in &transfers {
                failures.extend(self.beside(site, first, higher, calm));
            }
            failures.extend(self.waited(site, first, &transfers, calm));
        }
        let name = SITES[site];
        failures
            .into_iter()
            .for_each(|what| self.fail(Broken::Ordered, format!("at {name}: {what}")));
    }

    /// The first one started although the other one, which is higher or came before, waited for long.
    fn overtook(
        &self,
        site: usize,
        first: &Transfer<'_>,
        then: &Transfer<'_>,
        calm: &Calm,
    ) -> Option<String> {
        let same = match self.world.sites[site].hold {
            Hold::Off => first.channel() == then.channel(),
            Hold::Conserving | Hold::Strict => first.peer() == then.peer(),
        };
        // What falls back on another channel waited for its own.
        if first.may_pass() || then.may_pass() || !same || then.ready()? >= first.from {
            return None;
        }
        let (high, low) = (then.event.precedence?, first.event.precedence?);
        let before = high == low
            && first.channel() == then.channel()
            && first.came.zip(then.ready()).is_some_and(|((came, _), other)| other < came);
        let (one, other) = (first.message(), then.message());
        if !calm.lasts(then.came?.0, first.from, &[first.channel()?, then.channel()?]) {
            return None;
        }
        (high > low || before).then(|| format!("{one} at {:?} before {other}", first.from))
    }

    /// A lower one starts beside a higher one in transfer. Its start is logged once its record is read.
    fn beside(
        &self,
        site: usize,
        low: &Transfer<'_>,
        high: &Transfer<'_>,
        calm: &Calm,
    ) -> Option<String> {
        let held = self.world.sites[site].hold != Hold::Off && low.peer() == high.peer();
        let is_higher = high.event.precedence? > low.event.precedence?;
        let is_beside = high.from + PREPARED < low.from
            && low.from < high.until
            && low.from < high.from + STALL;
        let broken = held && is_higher && is_beside && !low.may_pass();
        let broken = broken && calm.lasts(high.from, low.from, &[]);
        broken.then(|| format!("{} starts beside {}", low.message(), high.message()))
    }

    /// An urgent message waits for no lower one longer than an association takes.
    fn waited(
        &self,
        site: usize,
        one: &Transfer<'_>,
        all: &[Transfer<'_>],
        calm: &Calm,
    ) -> Option<String> {
        let precedence = one.event.precedence.filter(|level| *level >= Precedence::Flash)?;
        let link = self.link_of(site, one.peer()?)?;
        let opens = link.only_caller.is_none_or(|caller| caller == site);
        if !opens || matches!(link.kept, Kept::Scheduled(_)) || self.world.sites[site].slow_disk {
            return None;
        }
        let ready = one.ready().filter(|_| !one.is_resumed())?;
        let came = one.came?.0;
        if !calm.lasts(came, one.from, &[one.channel()?]) || !calm.is_fast(came, one.from) {
            return None;
        }
        // One association is kept for what is above all in transfer. Where that has begun, something still higher waits.
        let in_transfer = all.iter().filter(|other| {
            other.channel() == one.channel() && other.from <= ready && ready < other.until
        });
        if in_transfer.count() > link.associations as usize {
            return None;
        }
        // Equals go in their order, and what is higher first: with rule 1 also on another channel.
        let holds = self.world.sites[site].hold != Hold::Off;
        let goes_first = |other: &&Transfer<'_>| match other.channel() == one.channel() {
            true => other.event.precedence >= Some(precedence),
            false => {
                holds && other.peer() == one.peer() && other.event.precedence > Some(precedence)
            }
        };
        let mut busy: Vec<(Instant, Instant)> = (all.iter())
            .filter(goes_first)
            .map(|other| (other.from.max(ready), other.until.min(one.from)))
            .filter(|(from, until)| from < until)
            .collect();
        busy.sort();
        let (mut free, mut at) = (0, ready);
        for (from, until) in busy {
            free += from.0.saturating_sub(at.0);
            at = at.max(until);
        }
        free += one.from.0.saturating_sub(at.0);
        let bound = setup(link);
        (free > bound.as_micros() as u64).then(|| {
            let (id, free) = (one.message(), Duration::from_micros(free));
            format!("{id} waited {free:?} for what is lower, {bound:?} is the bound")
        })
    }

    pub(super) fn link_of(&self, site: usize, peer: PeerId) -> Option<&Link> {
        let config = &self.play.network.sites[site].config;
        let index = config.peers.iter().position(|one| one.id() == peer)?;
        let (link, _) = self.world.links_of(site).nth(index)?;
        self.world.links.get(link)
    }

    /// What an operator ended is never sent or delivered later.
    pub(super) fn ended(&mut self) {
        let mut failures = BTreeSet::new();
        for ((site, entry), ended) in &self.play.ended {
            let later = self.play.network.sites[*site].events.iter().filter(|(at, event)| {
                at > ended
                    && event.entry == Some(*entry)
                    && matches!(event.kind, Kind::TransferStarted | Kind::Delivered)
            });
            failures.extend(later.map(|(at, event)| {
                let kind = event.kind.name();
                format!("at {}: {kind} of {entry:?} at {at:?}, ended at {ended:?}", SITES[*site])
            }));
        }
        failures.into_iter().for_each(|what| self.fail(Broken::Ordered, what));
    }
}

/// The time in which an association is opened over a line, and a transfer ends that is nearly over.
fn setup(link: &Link) -> Duration {
    let octets = Duration::from_micros(6_000 * 1_000_000 / link.rate.max(1));
    octets + link.latency * 16 + Duration::from_secs(3)
}
