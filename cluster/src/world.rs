//! The site of several nodes, the foreign sites, and what is between them.

use crate::client::Clients;
use crate::fault::Network;
use crate::message::Place;
use anyhow::{Context as _, Result};
use database::{Relay, Trio};
use std::net::SocketAddr;
use std::path::PathBuf;
use testbed::Site;

/// A node of the site.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) site: Site,
    /// The message store.
    pub(crate) p7: SocketAddr,
    /// What the foreign sites connect to, by site and channel.
    pub(crate) inward: Vec<Vec<Relay>>,
    /// What the node connects to, by site and channel.
    pub(crate) outward: Vec<Vec<Relay>>,
    /// What it connects to in place of each server of the database.
    pub(crate) database: Vec<Relay>,
}

impl Node {
    /// Where a foreign site connects to reach this node.
    pub(crate) fn inward_at(&self, foreign: usize, channel: usize) -> Option<SocketAddr> {
        Some(self.inward.get(foreign)?.get(channel)?.address())
    }

    /// Cuts the node from the foreign sites.
    pub(crate) fn isolate(&self, network: Network) {
        cut(self.to_peers(), network);
    }

    /// Loses what the network holds of a node that is dead: it must not arrive as if the node had sent it.
    pub(crate) fn forget(&self) {
        self.to_peers().for_each(Relay::cut);
    }

    /// Connects it with them again.
    pub(crate) fn join(&self) {
        self.to_peers().for_each(Relay::resume);
    }

    fn to_peers(&self) -> impl Iterator<Item = &Relay> {
        self.inward.iter().chain(&self.outward).flatten()
    }

    /// Cuts the node from the database.
    pub(crate) fn cut_database(&self, network: Network) {
        cut(self.database.iter(), network);
    }

    /// Connects it with the database again.
    pub(crate) fn join_database(&self) {
        self.database.iter().for_each(Relay::resume);
    }
}

fn cut<'a>(relays: impl Iterator<Item = &'a Relay>, network: Network) {
    relays.for_each(|relay| match network {
        Network::Resets => relay.cut(),
        Network::Silent => relay.silence(),
    });
}

/// Everything that runs in a trial but the clients. Dropped, all of it ends.
#[derive(Debug)]
pub struct World {
    pub(crate) nodes: Vec<Node>,
    /// In the order of `East` and `West`.
    pub(crate) foreign: Vec<Site>,
    pub(crate) trio: Option<Trio>,
    pub(crate) clients: Clients,
    /// In front of all nodes, where the daemon knows no list of addresses.
    pub(crate) fronts: Vec<Relay>,
}

impl World {
    /// Starts all daemons and waits until they answer.
    ///
    /// # Errors
    /// One does not start; with the end of its log.
    pub(crate) fn start(&mut self) -> Result<()> {
        for site in self.foreign.iter_mut().chain(self.nodes.iter_mut().map(|node| &mut node.site))
        {
            site.start()?;
        }
        Ok(())
    }

    /// The daemons of a site, each of which its users can bind to.
    pub(crate) fn sites_of(&self, place: Place) -> Vec<&Site> {
        match place {
            Place::Hq => self.nodes.iter().map(|node| &node.site).collect(),
            Place::East => self.foreign.first().into_iter().collect(),
            Place::West => self.foreign.get(1).into_iter().collect(),
        }
    }

    pub(crate) fn node(&mut self, number: usize) -> Result<&mut Node> {
        self.nodes.get_mut(number).with_context(|| format!("no node {number}"))
    }

    pub(crate) fn trio(&mut self) -> Result<&mut Trio> {
        self.trio.as_mut().context("a fault of the database without a database")
    }

    /// How the foreign sites reach the nodes.
    pub(crate) fn entrance(&self) -> &'static str {
        if self.fronts.is_empty() { "a list of addresses" } else { "a relay before all nodes" }
    }

    /// Transfers that a foreign site recognised as those of a message that it had, over all its lives.
    pub(crate) fn duplicates_dropped(&self) -> usize {
        let of_site = |site: &Site| {
            let events = site.events().unwrap_or_default();
            events.iter().filter(|event| event.event == "duplicate_dropped").count()
        };
        self.foreign.iter().map(of_site).sum()
    }

    /// Leaves all directories when it is dropped; their paths.
    pub(crate) fn keep(&mut self) -> Vec<PathBuf> {
        let mut kept = Vec::new();
        for site in self.foreign.iter_mut().chain(self.nodes.iter_mut().map(|node| &mut node.site))
        {
            kept.push(site.keep());
        }
        for number in 0..3 {
            let server = self.trio.as_mut().and_then(|trio| trio.server(number).ok());
            kept.extend(server.map(|server| server.keep()));
        }
        kept
    }
}
