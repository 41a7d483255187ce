//! What is delivered once stays so, whichever way a copy of it comes: three MTAs in virtual time, of
//! which two lose each other while a transfer is in doubt, and reach each other by the third.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "shared with other tests")]
mod world;

use base::Precedence;
use node::changes::EdgeChanges;
use node::config::{NodeConfig, Target};
use node::event::Kind;
use p1::flags::ReportRequest;
use std::time::Duration;
use world::{ACT, Death, Delivered, NAPLES, RELAY, Setup, World, address, route};

const PLAIN: Setup = Setup { rts: |_| {}, node: |_| {} };

struct Run {
    world: World,
    /// OPS in Naples, OPS and LOG in Act.
    users: [usize; 3],
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut world = World::with_relay(seed, PLAIN);
        let users = [(NAPLES, "OPS"), (ACT, "OPS"), (ACT, "LOG")]
            .map(|(site, name)| (world.user(site, name, true), site));
        for (user, site) in users {
            world.bind(user, site);
        }
        world.run_for(Duration::from_secs(1));
        Run { world, users: users.map(|(user, _)| user) }
    }

    fn submit(&mut self, to: &[(usize, &str)], text: &[u8], report: ReportRequest) {
        let to: Vec<String> = to.iter().map(|(site, name)| address(*site, name)).collect();
        self.world.submit(self.users[0], &to, Precedence::Flash, text, "MESSAGE", report);
    }

    fn count(&self, site: usize, kind: Kind) -> usize {
        self.world.sites[site].events.iter().filter(|(_, e)| e.kind == kind).count()
    }

    fn details(&self, site: usize, kind: Kind) -> Vec<&str> {
        let events = self.world.sites[site].events.iter().filter(|(_, e)| e.kind == kind);
        events.map(|(_, e)| e.detail.as_str()).collect()
    }

    /// Runs until a site has committed so many arrivals, and cuts all pipes between sites: whoever
    /// sent the last one does not know of it.
    fn cut_after_arrival(&mut self, site: usize, count: usize) {
        for _ in 0..100_000 {
            if self.count(site, Kind::Received) >= count {
                return self.world.cut();
            }
            self.world.run_for(Duration::from_micros(500));
        }
        panic!("nothing arrives at {site}");
    }

    fn configure(&mut self, site: usize, change: impl FnOnce(&mut NodeConfig)) {
        self.world.configure(site, change, EdgeChanges::default());
    }

    /// From now on this site reaches the other one by the relay.
    fn go_round(&mut self, site: usize) {
        let other = 1 - site;
        self.configure(site, |config| {
            config.peers.remove(0);
            let relay = Target::Peer(config.peers[0].id());
            config.routes.truncate(1);
            config.routes.push(route(other, relay));
        });
    }

    fn messages(&self, user: usize) -> Vec<&[u8]> {
        let taken = self.world.users[self.users[user]].delivered.iter();
        taken
            .filter_map(|d| match d {
                Delivered::Message { content, .. } => Some(&content[..]),
                Delivered::Report { .. } => None,
            })
            .collect()
    }

    fn reports(&self, user: usize) -> Vec<bool> {
        let taken = self.world.users[self.users[user]].delivered.iter();
        taken
            .filter_map(|d| match d {
                Delivered::Report { delivered, .. } => Some(*delivered),
                Delivered::Message { .. } => None,
            })
            .collect()
    }

    fn at_rest(&mut self) {
        self.world.run_for(Duration::from_secs(120));
        for (site, s) in self.world.sites.iter().enumerate() {
            assert!(s.store.entries.is_empty(), "entries left at {site}");
            assert!(s.store.bodies.is_empty(), "contents left at {site}");
            let held = s.node.holds();
            assert_eq!((held.arrivals, held.pending, held.keys), (0, 0, 0), "{site}: {held:?}");
        }
    }
}

/// A user whose client dies over each delivery, at once, and binds again.
fn binds_and_dies(run: &mut Run, user: usize, site: usize) {
    run.world.users[user].silent = true;
    run.world.bind(user, site);
    run.world.run_for(Duration::from_millis(500));
    let end = run.world.users[user].end;
    run.world.close(end);
    run.world.run_for(Duration::from_millis(500));
}

#[test]
fn a_user_who_binds_again_gets_at_once_what_broke_off() {
    let mut run = Run::new(3);
    let user = run.users[1];
    let end = run.world.users[user].end;
    run.world.close(end);
    run.submit(&[(ACT, "OPS")], b"flash", ReportRequest::None);
    run.world.run_for(Duration::from_secs(2));
    for _ in 0..3 {
        binds_and_dies(&mut run, user, ACT);
    }
    run.world.users[user].silent = false;
    run.world.bind(user, ACT);
    run.world.run_for(Duration::from_millis(500));
    assert_eq!(run.messages(1), [b"flash"], "without any wait");
}

#[test]
fn what_a_user_s_client_dies_of_time_after_time_waits_alone() {
    let mut run = Run::new(3);
    let user = run.users[1];
    let end = run.world.users[user].end;
    run.world.close(end);
    run.submit(&[(ACT, "OPS")], b"poison", ReportRequest::None);
    run.world.run_for(Duration::from_secs(2));
    for _ in 0..6 {
        binds_and_dies(&mut run, user, ACT);
    }
    run.submit(&[(ACT, "OPS")], b"other", ReportRequest::None);
    run.world.run_for(Duration::from_secs(2));
    run.world.users[user].silent = false;
    run.world.bind(user, ACT);
    run.world.run_for(Duration::from_millis(500));
    assert_eq!(run.messages(1), [b"other"]);
    run.world.run_for(Duration::from_secs(60));
    assert_eq!(run.messages(1), [&b"other"[..], b"poison"]);
}

#[test]
fn a_transfer_in_doubt_that_goes_round_is_delivered_once() {
    for seed in 0..8 {
        let mut run = Run::new(seed);
        run.submit(&[(ACT, "OPS")], &[7; 5_000], ReportRequest::None);
        run.cut_after_arrival(ACT, 1);
        assert_eq!(run.count(NAPLES, Kind::TransferConfirmed), 0, "it is in doubt");
        run.go_round(NAPLES);
        run.at_rest();
        assert_eq!(run.count(NAPLES, Kind::Rerouted), 1);
        assert_eq!(run.count(RELAY, Kind::Received), 1);
        assert_eq!(run.count(RELAY, Kind::TransferConfirmed), 1, "the relay is rid of it");
        assert_eq!(run.messages(1), [&[7; 5_000][..]]);
        let dropped = run.details(ACT, Kind::DuplicateDropped);
        assert_eq!(dropped, ["1 of 1 taken before, 1 of them delivered already"]);
        assert_eq!(run.count(ACT, Kind::ReportMade), 0);
    }
}

#[test]
fn nor_does_a_death_in_between_double_it() {
    for (seed, death) in [(1, Death::Power), (2, Death::Process)] {
        let mut run = Run::new(seed);
        run.submit(&[(ACT, "OPS")], &[7; 5_000], ReportRequest::Report);
        run.cut_after_arrival(ACT, 1);
        // It is in the mailbox, and perhaps with its user, whose answer is lost: P3 has no key.
        run.world.run_for(Duration::from_secs(1));
        run.world.crash_as(ACT, death, usize::MAX);
        run.go_round(NAPLES);
        for _ in 0..3 {
            if !run.world.is_bound(run.users[1]) {
                run.world.bind(run.users[1], ACT);
            }
            run.world.run_for(Duration::from_secs(10));
        }
        assert_eq!(run.messages(1).len(), 1);
        assert_eq!(run.count(ACT, Kind::DuplicateDropped), 1);
    }
}

#[test]
fn what_was_delivered_of_it_is_dropped_and_the_rest_goes_on() {
    let mut run = Run::new(3);
    // LOG has no mailbox when the first copy comes: reported, and not delivered.
    run.world.feed(
        ACT,
        node::Input::Mailboxes {
            addresses: vec![engine::canonical(&address(ACT, "OPS").parse().unwrap())],
            changed: Vec::new(),
        },
    );
    run.submit(&[(ACT, "OPS"), (ACT, "LOG")], b"two", ReportRequest::None);
    run.cut_after_arrival(ACT, 1);
    let both = ["OPS", "LOG"].map(|s| engine::canonical(&address(ACT, s).parse().unwrap()));
    let addresses = both.to_vec();
    run.world.feed(ACT, node::Input::Mailboxes { addresses, changed: Vec::new() });
    run.go_round(NAPLES);
    run.world.run_for(Duration::from_secs(60));
    assert_eq!((run.messages(1), run.messages(2)), (vec![&b"two"[..]], vec![&b"two"[..]]));
    let dropped = run.details(ACT, Kind::DuplicateDropped);
    assert_eq!(dropped, ["1 of 2 taken before, 1 of them delivered already"]);
}

#[test]
fn a_report_in_doubt_that_goes_round_is_delivered_once() {
    for seed in 0..8 {
        let mut run = Run::new(seed);
        run.submit(&[(ACT, "NOBODY")], b"nobody", ReportRequest::NonDelivery);
        run.cut_after_arrival(NAPLES, 1);
        assert_eq!(run.count(ACT, Kind::TransferConfirmed), 0, "it is in doubt");
        run.go_round(ACT);
        run.at_rest();
        assert_eq!(run.reports(0), [false]);
        assert_eq!(run.count(NAPLES, Kind::DuplicateDropped), 1);
    }
}

/// Two copies come at the same time by two ways: the second waits for the first, whatever its fate.
#[test]
fn two_copies_that_come_together_are_one_delivery() {
    for seed in 0..20 {
        let mut run = Run::new(seed);
        run.submit(&[(ACT, "OPS")], &[9; 3_000], ReportRequest::None);
        // Act's disk answers nothing: the arrival is whole, and not committed.
        run.world.disk_stuck[ACT] = true;
        run.world.run_for(Duration::from_secs(2));
        assert_eq!(run.count(ACT, Kind::Received), 0);
        run.world.cut();
        run.go_round(NAPLES);
        run.world.run_for(Duration::from_secs(5));
        assert_eq!(run.count(RELAY, Kind::Received), 1, "the other copy is on its way");
        run.world.disk_stuck[ACT] = false;
        run.at_rest();
        assert_eq!(run.messages(1), [&[9; 3_000][..]]);
    }
}

/// What waited for a peer is to be delivered here now: it was delivered already, by another way.
#[test]
fn a_copy_that_is_routed_to_a_mailbox_is_known_there() {
    for known in [true, false] {
        let mut run = Run::new(5);
        // It waits for Act, and Naples serves Act's users in the end.
        let log = engine::canonical(&address(ACT, "LOG").parse().unwrap());
        run.submit(&[(ACT, "LOG")], b"moved", ReportRequest::None);
        run.world.disk_full[ACT] = !known;
        if known {
            run.cut_after_arrival(ACT, 1);
        } else {
            run.world.run_for(Duration::from_secs(1));
        }
        run.world.disk_full[ACT] = false;
        if known {
            // As if the other way had brought it here: the key is remembered.
            let seen = run.world.sites[ACT].store.seen.clone();
            run.world.sites[NAPLES].store.seen.extend(seen);
        }
        run.configure(NAPLES, |config| {
            config.peers.remove(0);
            config.routes.truncate(1);
            config.routes.push(route(ACT, Target::Local));
        });
        let mut addresses = run.world.configs[NAPLES].mailboxes.clone();
        addresses.push(log);
        run.world.feed(NAPLES, node::Input::Mailboxes { addresses, changed: Vec::new() });
        run.world.run_for(Duration::from_secs(30));
        assert_eq!(run.world.queued(NAPLES), usize::from(!known));
        let held = run.world.sites[NAPLES].node.holds();
        assert_eq!((held.pending, held.keys), (0, 0));
        assert_eq!(run.count(NAPLES, Kind::DuplicateDropped), usize::from(known));
    }
}

#[test]
fn a_transfer_in_doubt_that_is_repeated_is_delivered_once() {
    let mut run = Run::new(6);
    run.submit(&[(ACT, "OPS")], &[7; 5_000], ReportRequest::None);
    run.cut_after_arrival(ACT, 1);
    run.at_rest();
    assert_eq!(run.messages(1).len(), 1);
    assert_eq!(run.count(ACT, Kind::DuplicateDropped), 1);
}
