//! A message is delivered once, by whichever route its copies arrive. Three MTAs in virtual time: two
//! lose their connection while a transfer is in doubt, and reach each other through the third.

use base::Precedence;
use node::changes::EdgeChanges;
use node::config::{NodeConfig, Target};
use node::event::Kind;
use p1::flags::ReportRequest;
use std::time::Duration;
use testkit::build::canonical;
use testkit::{
    ACT, Death, Delivered, Events, NAPLES, NOTHING, Network, Pair, RELAY, address, route,
};

/// Three sites with three users.
struct Relayed {
    network: Network,
    /// OPS in Naples, OPS and LOG in Act.
    users: [usize; 3],
}

impl Relayed {
    fn new(seed: u64) -> Relayed {
        let mut network = Network::with_relay(seed, NOTHING);
        let users = [(NAPLES, "OPS"), (ACT, "OPS"), (ACT, "LOG")]
            .map(|(site, name)| (network.user(site, name, true), site));
        for (user, site) in users {
            network.bind(user, site);
        }
        network.run_for(Duration::from_secs(1));
        Relayed { network, users: users.map(|(user, _)| user) }
    }

    fn submit(&mut self, to: &[(usize, &str)], text: &[u8], report: ReportRequest) {
        let to: Vec<String> = to.iter().map(|(site, name)| address(*site, name)).collect();
        self.network.submit(self.users[0], &to, Precedence::Flash, text, "MESSAGE", report);
    }

    fn count(&self, site: usize, kind: Kind) -> usize {
        self.network.sites[site].count(kind)
    }

    fn details(&self, site: usize, kind: Kind) -> Vec<&str> {
        self.network.sites[site].details(kind)
    }

    /// Runs until a site has committed this number of arrivals, and cuts all pipes between sites: the
    /// sender of the last one gets no confirm.
    fn cut_after_arrival(&mut self, site: usize, count: usize) {
        for _ in 0..100_000 {
            if self.count(site, Kind::Received) >= count {
                return self.network.cut();
            }
            self.network.run_for(Duration::from_micros(500));
        }
        panic!("nothing arrives at {site}");
    }

    fn configure(&mut self, site: usize, change: impl FnOnce(&mut NodeConfig)) {
        self.network.configure(site, change, EdgeChanges::default());
    }

    /// From now on this site reaches the other one through the relay.
    fn route_through_relay(&mut self, site: usize) {
        let other = 1 - site;
        self.configure(site, |config| {
            config.peers.remove(0);
            let relay = Target::Peer(config.peers[0].id());
            config.routes.truncate(1);
            config.routes.push(route(other, relay));
        });
    }

    fn messages(&self, user: usize) -> Vec<&[u8]> {
        let taken = self.network.users[self.users[user]].delivered.iter();
        taken
            .filter_map(|d| match d {
                Delivered::Message { content, .. } => Some(&content[..]),
                Delivered::Report { .. } => None,
            })
            .collect()
    }

    fn reports(&self, user: usize) -> Vec<bool> {
        let taken = self.network.users[self.users[user]].delivered.iter();
        taken
            .filter_map(|d| match d {
                Delivered::Report { delivered, .. } => Some(*delivered),
                Delivered::Message { .. } => None,
            })
            .collect()
    }

    fn at_rest(&mut self) {
        self.network.run_for(Duration::from_secs(120));
        for (site, s) in self.network.sites.iter().enumerate() {
            assert!(s.store.entries.is_empty(), "entries left at {site}");
            assert!(s.store.bodies.is_empty(), "contents left at {site}");
            let held = s.node.holds();
            assert_eq!((held.arrivals, held.pending, held.keys), (0, 0, 0), "{site}: {held:?}");
        }
    }
}

/// A user binds, and its client ends at once during the delivery.
fn bind_and_close(relayed: &mut Relayed, user: usize, site: usize) {
    relayed.network.users[user].silent = true;
    relayed.network.bind(user, site);
    relayed.network.run_for(Duration::from_millis(500));
    let end = relayed.network.users[user].end;
    relayed.network.close(end);
    relayed.network.run_for(Duration::from_millis(500));
}

#[test]
fn a_broken_delivery_is_repeated_at_once_when_the_user_binds_again() {
    let mut relayed = Relayed::new(3);
    let user = relayed.users[1];
    let end = relayed.network.users[user].end;
    relayed.network.close(end);
    relayed.submit(&[(ACT, "OPS")], b"flash", ReportRequest::None);
    relayed.network.run_for(Duration::from_secs(2));
    for _ in 0..3 {
        bind_and_close(&mut relayed, user, ACT);
    }
    relayed.network.users[user].silent = false;
    relayed.network.bind(user, ACT);
    relayed.network.run_for(Duration::from_millis(500));
    assert_eq!(relayed.messages(1), [b"flash"], "at once");
}

#[test]
fn a_delivery_that_breaks_each_time_waits_and_others_do_not() {
    let mut relayed = Relayed::new(3);
    let user = relayed.users[1];
    let end = relayed.network.users[user].end;
    relayed.network.close(end);
    relayed.submit(&[(ACT, "OPS")], b"poison", ReportRequest::None);
    relayed.network.run_for(Duration::from_secs(2));
    for _ in 0..6 {
        bind_and_close(&mut relayed, user, ACT);
    }
    relayed.submit(&[(ACT, "OPS")], b"other", ReportRequest::None);
    relayed.network.run_for(Duration::from_secs(2));
    relayed.network.users[user].silent = false;
    relayed.network.bind(user, ACT);
    relayed.network.run_for(Duration::from_millis(500));
    assert_eq!(relayed.messages(1), [b"other"]);
    relayed.network.run_for(Duration::from_secs(60));
    assert_eq!(relayed.messages(1), [&b"other"[..], b"poison"]);
}

#[test]
fn a_transfer_in_doubt_that_is_repeated_through_the_relay_is_delivered_once() {
    for seed in 0..8 {
        let mut relayed = Relayed::new(seed);
        relayed.submit(&[(ACT, "OPS")], &[7; 5_000], ReportRequest::None);
        relayed.cut_after_arrival(ACT, 1);
        assert_eq!(relayed.count(NAPLES, Kind::TransferConfirmed), 0, "it is in doubt");
        relayed.route_through_relay(NAPLES);
        relayed.at_rest();
        assert_eq!(relayed.count(NAPLES, Kind::Rerouted), 1);
        assert_eq!(relayed.count(RELAY, Kind::Received), 1);
        assert_eq!(
            relayed.count(RELAY, Kind::TransferConfirmed),
            1,
            "the relay has transferred it"
        );
        assert_eq!(relayed.messages(1), [&[7; 5_000][..]]);
        let dropped = relayed.details(ACT, Kind::DuplicateDropped);
        assert_eq!(dropped, ["1 of 1 taken before, 1 of them delivered or in the mailbox already"]);
        assert_eq!(relayed.count(ACT, Kind::ReportMade), 0);
    }
}

#[test]
fn a_crash_before_the_repetition_does_not_deliver_it_twice() {
    for (seed, death) in [(1, Death::Power), (2, Death::Process)] {
        let mut relayed = Relayed::new(seed);
        relayed.submit(&[(ACT, "OPS")], &[7; 5_000], ReportRequest::Report);
        relayed.cut_after_arrival(ACT, 1);
        // It is in the mailbox, or its user has it and the answer is lost: P3 has no duplicate key.
        relayed.network.run_for(Duration::from_secs(1));
        relayed.network.crash_as(ACT, death, usize::MAX);
        relayed.route_through_relay(NAPLES);
        for _ in 0..3 {
            if !relayed.network.is_bound(relayed.users[1]) {
                relayed.network.bind(relayed.users[1], ACT);
            }
            relayed.network.run_for(Duration::from_secs(10));
        }
        assert_eq!(relayed.messages(1).len(), 1);
        assert_eq!(relayed.count(ACT, Kind::DuplicateDropped), 1);
    }
}

#[test]
fn recipients_already_delivered_are_dropped_and_the_others_are_delivered() {
    let mut relayed = Relayed::new(3);
    // LOG has no mailbox when the first copy arrives: it is reported, not delivered.
    relayed.network.feed(
        ACT,
        node::Input::Mailboxes {
            addresses: vec![canonical(&address(ACT, "OPS"))],
            stored: Default::default(),
            changed: Vec::new(),
        },
    );
    relayed.submit(&[(ACT, "OPS"), (ACT, "LOG")], b"two", ReportRequest::None);
    relayed.cut_after_arrival(ACT, 1);
    let both = ["OPS", "LOG"].map(|s| canonical(&address(ACT, s)));
    let addresses = both.to_vec();
    relayed.network.feed(
        ACT,
        node::Input::Mailboxes { addresses, stored: Default::default(), changed: Vec::new() },
    );
    relayed.route_through_relay(NAPLES);
    relayed.network.run_for(Duration::from_secs(60));
    assert_eq!((relayed.messages(1), relayed.messages(2)), (vec![&b"two"[..]], vec![&b"two"[..]]));
    let dropped = relayed.details(ACT, Kind::DuplicateDropped);
    assert_eq!(dropped, ["1 of 2 taken before, 1 of them delivered or in the mailbox already"]);
}

#[test]
fn a_report_in_doubt_that_is_repeated_through_the_relay_is_delivered_once() {
    for seed in 0..8 {
        let mut relayed = Relayed::new(seed);
        relayed.submit(&[(ACT, "NOBODY")], b"nobody", ReportRequest::NonDelivery);
        relayed.cut_after_arrival(NAPLES, 1);
        assert_eq!(relayed.count(ACT, Kind::TransferConfirmed), 0, "it is in doubt");
        relayed.route_through_relay(ACT);
        relayed.at_rest();
        assert_eq!(relayed.reports(0), [false]);
        assert_eq!(relayed.count(NAPLES, Kind::DuplicateDropped), 1);
    }
}

/// Two copies arrive at the same time by two routes: the second waits for the outcome of the first.
#[test]
fn two_copies_that_arrive_at_the_same_time_are_delivered_once() {
    for seed in 0..20 {
        let mut relayed = Relayed::new(seed);
        relayed.submit(&[(ACT, "OPS")], &[9; 3_000], ReportRequest::None);
        // Act's store does not answer: the arrival is complete, but not committed.
        relayed.network.sites[ACT].store.stuck = true;
        relayed.network.run_for(Duration::from_secs(2));
        assert_eq!(relayed.count(ACT, Kind::Received), 0);
        relayed.network.cut();
        relayed.route_through_relay(NAPLES);
        relayed.network.run_for(Duration::from_secs(5));
        assert_eq!(relayed.count(RELAY, Kind::Received), 1, "the other copy is in transit");
        relayed.network.sites[ACT].store.stuck = false;
        relayed.at_rest();
        assert_eq!(relayed.messages(1), [&[9; 3_000][..]]);
    }
}

/// A message that waited for a peer is routed to a local mailbox, to which it was already delivered by
/// another route.
#[test]
fn a_copy_routed_to_a_mailbox_is_recognised_as_a_duplicate() {
    for known in [true, false] {
        let mut relayed = Relayed::new(5);
        // It waits for Act; later Naples serves the users of Act.
        let log = canonical(&address(ACT, "LOG"));
        relayed.submit(&[(ACT, "LOG")], b"moved", ReportRequest::None);
        relayed.network.sites[ACT].store.full = !known;
        if known {
            relayed.cut_after_arrival(ACT, 1);
        } else {
            relayed.network.run_for(Duration::from_secs(1));
        }
        relayed.network.sites[ACT].store.full = false;
        if known {
            // As if it had been delivered here by the other route: the key is stored.
            let seen = relayed.network.sites[ACT].store.seen.clone();
            relayed.network.sites[NAPLES].store.seen.extend(seen);
        }
        relayed.configure(NAPLES, |config| {
            config.peers.remove(0);
            config.routes.truncate(1);
            config.routes.push(route(ACT, Target::Local));
        });
        let mut addresses = relayed.network.sites[NAPLES].config.mailboxes.clone();
        addresses.push(log);
        relayed.network.feed(
            NAPLES,
            node::Input::Mailboxes { addresses, stored: Default::default(), changed: Vec::new() },
        );
        relayed.network.run_for(Duration::from_secs(30));
        assert_eq!(relayed.network.queued(NAPLES), usize::from(!known));
        let held = relayed.network.sites[NAPLES].node.holds();
        assert_eq!((held.pending, held.keys), (0, 0));
        assert_eq!(relayed.count(NAPLES, Kind::DuplicateDropped), usize::from(known));
    }
}

#[test]
fn a_transfer_in_doubt_that_is_repeated_is_delivered_once() {
    let mut relayed = Relayed::new(6);
    relayed.submit(&[(ACT, "OPS")], &[7; 5_000], ReportRequest::None);
    relayed.cut_after_arrival(ACT, 1);
    relayed.at_rest();
    assert_eq!(relayed.messages(1).len(), 1);
    assert_eq!(relayed.count(ACT, Kind::DuplicateDropped), 1);
}

/// The user has it, and the disk is full: the report is made with the delete, when there is room.
#[test]
fn the_report_of_a_delivery_follows_when_its_commit_was_made_at_last() {
    let mut pair = Pair::with_reports(21, NOTHING);
    pair.report = ReportRequest::Report;
    pair.submit(Precedence::Routine, 100);
    while pair.count(ACT, Kind::Received) == 0 {
        pair.run_for(Duration::from_millis(1));
    }
    pair.sites[ACT].store.full = true;
    pair.run(60);
    let sender = pair.sender;
    assert_eq!((pair.delivered(), pair.users[sender].delivered.len()), (vec![1], 0));
    pair.sites[ACT].store.full = false;
    pair.run(60);
    let reports = &pair.users[sender].delivered;
    assert!(matches!(reports[..], [Delivered::Report { delivered: true, .. }]), "{reports:?}");
    pair.network.assert_empty();
}
