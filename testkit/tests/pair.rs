//! A pair over each wire, and twice with the same seed.

#![allow(clippy::indexing_slicing, reason = "a test fails by panicking")]

use base::{Instant, Precedence};
use node::event::Kind;
use std::time::Duration;
use testkit::{
    Delayed, Direct, Events, NAPLES, NOTHING, Network, Paced, Pair, Setup, VirtualTcp, Wire,
    five_channels,
};

const SIZE: usize = 100_000;

/// When a message is confirmed over such wires.
fn confirmed(wire: fn() -> Box<dyn Wire>) -> Duration {
    let mut network = Network::pair(1, NOTHING);
    network.wire = wire;
    let mut pair = Pair::join(network, false);
    pair.submit(Precedence::Routine, SIZE);
    pair.until(Kind::TransferConfirmed, 1);
    let (at, _) = pair.sites[NAPLES].first(Kind::TransferConfirmed);
    pair.finish(120);
    at.since(Instant(0))
}

#[test]
fn a_message_goes_over_every_wire_as_fast_as_the_wire_carries() {
    let direct = confirmed(|| Box::<Direct>::default());
    let delayed = confirmed(|| Box::<Delayed>::default());
    let paced = confirmed(|| Box::new(Paced::new(64_000)));
    let tcp = confirmed(|| Box::new(VirtualTcp::new(64_000, Duration::from_millis(5), 0.0)));
    let lossy = confirmed(|| Box::new(VirtualTcp::new(64_000, Duration::from_millis(5), 0.02)));
    assert!(direct < delayed && delayed < Duration::from_secs(2), "{direct:?} {delayed:?}");
    // The submission and the transfer take 12.5 s each.
    assert!(paced >= Duration::from_secs(25) && paced < Duration::from_secs(30), "{paced:?}");
    assert!(tcp > paced && tcp < Duration::from_secs(35), "{tcp:?}");
    assert!(lossy > tcp && lossy < Duration::from_secs(60), "{lossy:?}");
}

#[test]
fn the_same_seed_gives_the_same_events_at_the_same_times() {
    let run = |seed| {
        let mut pair = Pair::with_reports(seed, Setup { node: five_channels, ..NOTHING });
        for precedence in Precedence::ALL {
            pair.submit(precedence, SIZE);
        }
        pair.run(1);
        pair.cut();
        pair.crash(NAPLES);
        pair.bind_all();
        pair.run(60);
        pair.sites.iter().map(|site| site.events.clone()).collect::<Vec<_>>()
    };
    assert!(run(3) == run(3));
    assert!(run(3) != run(4));
}

#[test]
fn four_sites_in_a_row_know_their_neighbours_only() {
    let network = Network::new(4, &[(0, 1), (1, 2), (2, 3)], 1, NOTHING);
    let peers = |site: usize| -> Vec<&str> {
        network.sites[site].config.peers.iter().map(|peer| peer.name.as_str()).collect()
    };
    assert_eq!(
        (0..4).map(peers).collect::<Vec<_>>(),
        [vec!["act"], vec!["naples", "relay"], vec!["act", "rome"], vec!["relay"]]
    );
}
