//! When nothing goes wrong at a site: only then transfers are in the order that the rules of the scheduler have.

use super::Check;
use crate::world::{What, World};
use base::Instant;
use node::ChannelId;
use node::event::{Kind, LogEvent};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::real::Fault;

/// For so long after what makes a line slow its channels are not calm.
const SLOW: Duration = Duration::from_secs(60);

/// The moments of a site at which something goes wrong, and the times in which it is not well.
#[derive(Debug, Default)]
pub(super) struct Calm {
    /// In order of time.
    troubles: Vec<Instant>,
    /// For each channel, when it had no association because the last one was lost, or refused.
    lost: BTreeMap<ChannelId, Vec<(Instant, Instant)>>,
    /// When lines are slower than they are built.
    slow: Vec<(Instant, Instant)>,
}

impl Calm {
    /// Whether nothing goes wrong from one moment to another, and these channels are well at its beginning.
    pub(super) fn lasts(&self, from: Instant, until: Instant, channels: &[ChannelId]) -> bool {
        let next = self.troubles.partition_point(|at| *at < from);
        let is_lost = |channel: &ChannelId| {
            let times = self.lost.get(channel).into_iter().flatten();
            times.into_iter().any(|(lost, opened)| *lost <= from && from < *opened)
        };
        self.troubles.get(next).is_none_or(|at| *at > until) && !channels.iter().any(is_lost)
    }

    /// Whether no line is slower than usual.
    pub(super) fn is_fast(&self, from: Instant, until: Instant) -> bool {
        !self.slow.iter().any(|(slow, fast)| *slow <= until && from <= *fast)
    }

    fn add(&mut self, at: Instant, event: &LogEvent) {
        if let Some(channel) = event.channel {
            let lost = self.lost.entry(channel).or_default();
            match event.kind {
                Kind::AssociationLost | Kind::AssociationRefused => {
                    lost.push((at, Instant(u64::MAX)));
                }
                Kind::AssociationOpened => {
                    lost.iter_mut().for_each(|(_, opened)| *opened = (*opened).min(at));
                }
                _ => {}
            }
        }
        if is_trouble(event.kind) {
            self.troubles.push(at);
        }
    }
}

/// What changes the order in which messages may start.
fn is_trouble(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::AssociationLost
            | Kind::AssociationRefused
            | Kind::TransferFailed
            | Kind::MessageBlamed
            | Kind::ChannelBlamed
            | Kind::ChannelOrdered
            | Kind::ClockSet
            | Kind::ClockDoubted
            | Kind::ClockTrusted
            | Kind::Held
            | Kind::OperatorHeld
            | Kind::OperatorReleased
            | Kind::OperatorRetried
            | Kind::OperatorRerouted
            | Kind::OperatorExpired
            | Kind::OperatorDeleted
            | Kind::Reconfigured
            | Kind::Rerouted
            | Kind::StoreFailed
            | Kind::SpaceLow
            | Kind::Damaged
    )
}

impl Check<'_> {
    /// When a site was calm; never after its disk or its clock goes wrong, which lasts.
    pub(super) fn calm(&self, site: usize) -> Calm {
        let s = &self.play.network.sites[site];
        let mut calm = Calm::default();
        s.events.iter().for_each(|(at, event)| calm.add(*at, event));
        calm.troubles.extend(&s.deaths);
        if self.world.has(|what| lasts(what, site)) {
            let first = s.events.first().map(|(at, _)| *at);
            calm.troubles.extend(first);
            calm.troubles.extend(s.events.iter().map(|(at, _)| *at));
        }
        for (at, event) in self.play.happened.iter().zip(&self.world.events) {
            let time = slows(self.world, &event.what, site);
            calm.slow.extend(time.map(|time| (*at, *at + time + SLOW)));
        }
        calm.troubles.sort();
        calm
    }
}

/// Whether it goes wrong for the rest of the time, or has other rules.
fn lasts(what: &What, of: usize) -> bool {
    match *what {
        What::Disk(site, _, Fault::Kill | Fault::Power { .. }) if site == of => false,
        What::Disk(site, ..)
        | What::Clock(site, _)
        | What::Drifts(site, _)
        | What::Reload(site) => site == of,
        _ => false,
    }
}

/// For how long it makes a line of this site slower than it is built.
fn slows(world: &World, what: &What, of: usize) -> Option<Duration> {
    let has = |link: usize| world.links_of(of).any(|(number, _)| number == link);
    match *what {
        What::Slow(link, _, time) | What::Stalled(link, time) => has(link).then_some(time),
        What::Lossy(link, _, time) | What::Late(link, _, time) => has(link).then_some(time),
        What::HalfOpen(link, _) | What::Lies(link, _) | What::Corrupt(link) => {
            has(link).then_some(Duration::ZERO)
        }
        // Of the peers, too: they answer later.
        What::Hangs(_, time) | What::Distrusts(_, time) | What::Partition(_, time) => Some(time),
        What::Dies(..) | What::Restart(_) | What::Disk(..) => Some(Duration::ZERO),
        _ => None,
    }
}
