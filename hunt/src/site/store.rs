//! The store of a site: that of a foreign MTA, which is its own, or that of a node.

use super::member::Member;
use base::rng::Rng;
use base::{Instant, Now};
use node::shards::PeerAssociations;
use node::{Input, Output};
use testkit::{Death, Delays, Durable, FaultyStore, Follow, Opened, Reply};

/// The store of a site.
#[derive(Debug)]
pub(super) enum SiteStore {
    Alone(Box<FaultyStore>),
    Member(Box<Member>),
}

impl SiteStore {
    pub(super) fn member(&mut self) -> Option<&mut Member> {
        match self {
            SiteStore::Alone(_) => None,
            SiteStore::Member(member) => Some(member),
        }
    }
}

macro_rules! with {
    ($store:expr, $one:ident => $does:expr) => {
        match $store {
            SiteStore::Alone($one) => $does,
            SiteStore::Member($one) => $does,
        }
    };
}

impl Durable for SiteStore {
    fn handle(
        &mut self,
        now: Now,
        delays: &Delays,
        rng: &mut Rng,
        output: Output,
    ) -> Result<Reply, Output> {
        with!(self, one => Durable::handle(&mut **one, now, delays, rng, output))
    }

    fn commit(&mut self, now: Now, rng: &mut Rng) -> Vec<Input> {
        with!(self, one => Durable::commit(&mut **one, now, rng))
    }

    fn die(&mut self, death: Death, made: usize, rng: &mut Rng) {
        with!(self, one => one.die(death, made, rng));
    }

    fn start(&mut self, now: Now) -> Result<Opened, String> {
        with!(self, one => one.start(now))
    }

    fn close(&mut self) {
        with!(self, one => one.close());
    }

    fn before(&mut self, now: Now, rng: &mut Rng) {
        with!(self, one => one.before(now, rng));
    }

    fn with_peers(&mut self, now: Now, found: PeerAssociations, rng: &mut Rng) {
        with!(self, one => Durable::with_peers(&mut **one, now, found, rng));
    }

    fn follow(&mut self) -> Option<Follow> {
        with!(self, one => one.follow())
    }

    fn deadline(&self) -> Option<Instant> {
        with!(self, one => Durable::deadline(&**one))
    }

    fn happen(&mut self, real: Instant, now: Now, number: u64, rng: &mut Rng) {
        with!(self, one => one.happen(real, now, number, rng));
    }

    fn is_for_process(&self, number: u64) -> bool {
        with!(self, one => one.is_for_process(number))
    }
}
