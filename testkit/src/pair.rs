//! Two sites: OPS in Naples submits, OPS in Act takes delivery.

use crate::build::{content, number_of};
use crate::events::Events;
use crate::network::{Delivered, Network};
use crate::sites::{ACT, NAPLES, Setup, address};
use base::{Instant, Precedence};
use node::event::{Kind, LogEvent};
use p1::flags::ReportRequest;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A network of two sites with a sender and a reader.
pub struct Pair {
    /// The sites.
    pub network: Network,
    /// OPS in Naples.
    pub sender: usize,
    /// OPS in Act.
    pub reader: usize,
    /// Messages submitted with [`Pair::submit`]: the numbers of their contents begin with 1.
    pub submitted: usize,
    /// The reports that the sender asks for.
    pub report: ReportRequest,
}

impl Deref for Pair {
    type Target = Network;

    fn deref(&self) -> &Network {
        &self.network
    }
}

impl DerefMut for Pair {
    fn deref_mut(&mut self) -> &mut Network {
        &mut self.network
    }
}

impl Pair {
    /// Both users bind, and a second passes. The sender takes no deliveries.
    pub fn new(seed: u64, setup: Setup) -> Pair {
        let mut pair = Pair::join(Network::pair(seed, setup), false);
        pair.run(1);
        pair
    }

    /// The same; the sender takes deliveries and asks for non-delivery reports.
    pub fn with_reports(seed: u64, setup: Setup) -> Pair {
        let mut pair = Pair::join(Network::pair(seed, setup), true);
        pair.report = ReportRequest::NonDelivery;
        pair.run(1);
        pair
    }

    /// Both users are about to bind.
    pub fn join(mut network: Network, sender_takes: bool) -> Pair {
        let sender = network.user(NAPLES, "OPS", sender_takes);
        let reader = network.user(ACT, "OPS", true);
        network.bind(sender, NAPLES);
        network.bind(reader, ACT);
        Pair { network, sender, reader, submitted: 0, report: ReportRequest::None }
    }

    /// Binds the users that are not bound.
    pub fn bind_all(&mut self) {
        for (user, site) in [(self.sender, NAPLES), (self.reader, ACT)] {
            if !self.network.is_bound(user) {
                self.network.bind(user, site);
            }
        }
    }

    /// Submits the next message, of so many octets, to the reader.
    pub fn submit(&mut self, precedence: Precedence, size: usize) {
        self.submit_to(&address(ACT, "OPS"), precedence, size);
    }

    /// Submits the next message, of so many octets.
    pub fn submit_to(&mut self, to: &str, precedence: Precedence, size: usize) {
        self.submitted += 1;
        let id = format!("MESSAGE {}", self.submitted);
        let (to, octets) = ([to.to_owned()], content(self.submitted, size));
        self.network.submit(self.sender, &to, precedence, &octets, &id, self.report);
    }

    /// Runs for so many seconds.
    pub fn run(&mut self, seconds: u64) {
        self.network.run_for(Duration::from_secs(seconds));
    }

    /// Runs until so many events of this kind have happened in Naples.
    pub fn until(&mut self, kind: Kind, count: usize) {
        for _ in 0..100_000 {
            if self.count(NAPLES, kind) >= count {
                return;
            }
            self.network.run_for(Duration::from_millis(5));
        }
        panic!("no {count} events {}: {:?}", kind.name(), self.transfers());
    }

    /// Runs until so many octets were written between the sites.
    pub fn until_carried(&mut self, octets: u64) {
        for _ in 0..100_000 {
            if self.network.carried >= octets {
                return;
            }
            self.network.run_for(Duration::from_millis(5));
        }
        panic!("{} octets carried", self.network.carried);
    }

    /// How many events of a kind a site had.
    pub fn count(&self, site: usize, kind: Kind) -> usize {
        self.network.sites[site].count(kind)
    }

    /// The events of a kind in Naples.
    pub fn events(&self, kind: Kind) -> impl Iterator<Item = &LogEvent> {
        self.network.sites[NAPLES].of_kind(kind)
    }

    /// The events of a kind at a site, with their times.
    pub fn timed(&self, site: usize, kind: Kind) -> impl Iterator<Item = (Instant, &LogEvent)> {
        self.network.sites[site].timed(kind)
    }

    /// Transfers begun `+` and confirmed `-` in Naples, in order.
    pub fn transfers(&self) -> String {
        let signs = [(Kind::TransferStarted, '+'), (Kind::TransferConfirmed, '-')];
        self.network.sites[NAPLES].order(&signs)
    }

    /// The messages that the reader has, whole, by number and in order.
    pub fn delivered(&self) -> Vec<usize> {
        self.contents().into_iter().map(number_of).collect()
    }

    /// The octets of the messages that the reader has, in order.
    pub fn contents(&self) -> Vec<&[u8]> {
        let taken = self.network.users[self.reader].delivered.iter();
        let octets = taken.map(|delivered| match delivered {
            Delivered::Message { content, .. } => &content[..],
            Delivered::Report { .. } => panic!("{delivered:?}"),
        });
        octets.collect()
    }

    /// Everything arrives within so many seconds, once and whole.
    pub fn finish(mut self, seconds: u64) {
        self.run(seconds);
        let mut numbers = self.delivered();
        numbers.sort_unstable();
        let all: Vec<usize> = (1..=self.submitted).collect();
        assert_eq!(numbers, all, "{}", self.transfers());
        assert_eq!(self.network.queued(NAPLES), 0);
    }
}
