//! What tests here start from.

use crate::{Config, Content, Engine, Route, RouteTarget, canonical, classify::Policy};
use base::{PeerId, Utc};
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};

/// An address from its text form.
pub(crate) fn address(text: &str) -> ORAddress {
    text.parse().unwrap()
}

/// A name from the text form of its address.
pub(crate) fn name(text: &str) -> ORName {
    ORName { address: address(text), directory_name: None }
}

/// 2026-01-02T03:04:05Z and so many seconds.
pub(crate) fn at(seconds: u64) -> Utc {
    Utc((1_767_323_045 + seconds) * 1_000_000)
}

/// `alpha`, with the mailboxes of Smith and Jones; `beta` is peer 0, `gamma` peer 1.
pub(crate) fn engine() -> Engine {
    engine_of("alpha", "mta1", &["Smith", "Jones"], &[("beta", 0), ("gamma", 1)])
}

/// An MTA of PRMD `own` with these surnames as mailboxes and these PRMDs behind peers.
pub(crate) fn engine_of(own: &str, mta: &str, users: &[&str], peers: &[(&str, u32)]) -> Engine {
    let prefix = |prmd: &str| address(&format!("C=XX;ADMD=;PRMD={prmd}"));
    let mut routes = vec![Route { prefix: prefix(own), to: RouteTarget::Local }];
    for (prmd, peer) in peers {
        routes.push(Route { prefix: prefix(prmd), to: RouteTarget::Peer(PeerId(*peer)) });
    }
    let mailbox = |user: &&str| canonical(&address(&format!("C=XX;ADMD=;PRMD={own};S={user}")));
    Engine::new(Config {
        mta: MtaName(mta.to_owned()),
        domain: GlobalDomainId::new("XX", " ", Some(own)),
        routes,
        mailboxes: users.iter().map(mailbox).collect(),
        classify: Policy::default(),
        epoch: 1,
    })
}

/// A content of so many octets.
pub(crate) fn content(length: u64) -> Content {
    Content { length, digest: [7; 32], ..Content::default() }
}
