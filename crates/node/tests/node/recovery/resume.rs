//! A transfer that is cut continues at its last confirmed checkpoint, whichever end opened the
//! association and whichever sends: counted in octets of content that are sent.

use base::{PeerId, Precedence};
use node::Input;
use node::changes::EdgeChanges;
use node::config::{Connection, NodeConfig, Resume, X410};
use node::event::Kind;
use osi::api::{Dialogue, RtseParameters};
use p1::flags::ReportRequest;
use std::time::Duration;
use testkit::build::content;
use testkit::{ACT, Delays, Delivered, Events, NAPLES, Network, Setup, address, five_channels};

/// Octets between checkpoints, and checkpoints in the window.
const CHECKPOINT: u64 = 4 * 1024;
const WINDOW: u64 = 3;
/// The largest number of octets that are sent again after a cut.
const AGAIN: u64 = (WINDOW + 1) * CHECKPOINT;
const SIZE: usize = 250_000;

fn rts(rts: &mut RtseParameters) {
    rts.dialogue = Dialogue::TwoWayAlternate;
    assert_eq!(
        (u64::from(rts.checkpoint_size) * 1024, u64::from(rts.window)),
        (CHECKPOINT, WINDOW)
    );
}

fn kept_open(config: &mut NodeConfig) {
    let peer = &mut config.peers[0];
    peer.channels[0].connection = Connection::Permanent;
    peer.channels[0].associations_max = 1;
    peer.addresses = vec!["192.0.2.1".parse().unwrap()];
}

/// As [`kept_open`], in X.410 mode.
fn kept_open_x410(config: &mut NodeConfig) {
    kept_open(config);
    config.peers[0].x410 = Some(X410 { protocol: 12, swapped: false });
}

fn either(config: &mut NodeConfig) {
    kept_open(config);
    config.peers[0].resume = Resume::Either;
}

/// Only this site may open connections.
fn only(network: &mut Network, opener: usize) {
    for (number, site) in network.sites.iter_mut().enumerate() {
        site.may_connect = number == opener;
    }
}

/// Two sites, one association that `opener` opened, and a long transfer on it from `sender`.
struct Case {
    network: Network,
    sender: usize,
    opener: usize,
    reader: usize,
    text: Vec<u8>,
}

impl Case {
    fn new(seed: u64, opener: usize, sender: usize, node: fn(&mut NodeConfig)) -> Case {
        let mut network = Network::pair(seed, Setup { rts, node });
        only(&mut network, opener);
        network.run_for(Duration::from_millis(100));
        network.cut();
        let from = network.user(sender, "OPS", false);
        let reader = network.user(1 - sender, "OPS", true);
        network.bind(from, sender);
        network.run_for(Duration::from_secs(3));
        assert!(network.is_joined(), "the opener keeps one open");
        let text = content(seed as usize, SIZE);
        let to = [address(1 - sender, "OPS")];
        network.submit(from, &to, Precedence::Routine, &text, "LONG", ReportRequest::None);
        Case { network, sender, opener, reader, text }
    }

    fn sent(&self) -> u64 {
        self.network.sites[self.sender].store.octets_read
    }

    /// Runs until this number of octets of content was sent, or the message has arrived.
    fn run_until_sent(&mut self, octets: u64) {
        for _ in 0..20_000 {
            if self.sent() >= octets || self.network.queued(self.sender) == 0 && self.sent() > 0 {
                return;
            }
            self.network.run_for(Duration::from_millis(1));
        }
        panic!("{} of {octets} octets were sent", self.sent());
    }

    /// Runs until there is a connection between the sites again.
    fn run_until_joined(&mut self) {
        for _ in 0..100_000 {
            if self.network.is_joined() {
                return;
            }
            self.network.run_for(Duration::from_millis(1));
        }
        panic!("no connection\n{}", self.log());
    }

    /// Runs to the end of the transfer. Returns the number of octets that were sent again.
    fn finish(&mut self) -> u64 {
        self.network.run_for(Duration::from_secs(150));
        // The reader takes it now; octets read for the delivery are not counted.
        let sent = self.sent();
        assert_eq!(self.network.queued(self.sender), 0, "{}", self.log());
        self.network.bind(self.reader, 1 - self.sender);
        self.network.run_for(Duration::from_secs(20));
        let got = &self.network.users[self.reader].delivered;
        let [Delivered::Message { content, .. }] = &got[..] else {
            panic!("{} deliveries\n{}", got.len(), self.log())
        };
        assert!(*content == self.text, "another content\n{}", self.log());
        self.network.run_for(Duration::from_secs(700));
        self.network.assert_empty();
        sent - SIZE as u64
    }

    /// The events of both sites, for a test that fails.
    fn log(&self) -> String {
        let mut all: Vec<String> = Vec::new();
        for (site, name) in [(NAPLES, "naples"), (ACT, "act")] {
            for (at, event) in &self.network.sites[site].events {
                let what = format!("{:?} {:?}", event.kind, event.detail);
                all.push(format!("{:>12.6} {name:6} {what}", at.0 as f64 / 1e6));
            }
        }
        all.sort();
        format!("opened by {}, sent by {}\n{}", self.opener, self.sender, all.join("\n"))
    }
}

const ALL: [(usize, usize); 4] = [(NAPLES, NAPLES), (NAPLES, ACT), (ACT, NAPLES), (ACT, ACT)];

#[test]
fn after_a_cut_at_most_the_window_is_sent_again_whichever_end_opened() {
    for seed in 0..8 {
        for (opener, sender) in ALL {
            let node = if seed % 2 == 0 { kept_open } else { kept_open_x410 };
            let mut case = Case::new(seed, opener, sender, node);
            let cut_at = case.network.rng.below(SIZE as u64 + 4_000);
            case.run_until_sent(cut_at);
            // The cut may fall into the confirm of the end.
            let more = Duration::from_micros(case.network.rng.below(30_000));
            case.network.run_for(more);
            case.network.cut();
            let again = case.finish();
            assert!(again <= AGAIN, "seed {seed}, cut at {cut_at}: {again} again\n{}", case.log());
        }
    }
}

#[test]
fn after_cuts_during_the_recovery_at_most_the_window_is_sent_again_for_each() {
    for seed in 100..106 {
        for (opener, sender) in ALL {
            let node = if seed % 2 == 0 { kept_open } else { kept_open_x410 };
            let mut case = Case::new(seed, opener, sender, node);
            let cut_at = case.network.rng.below(SIZE as u64);
            case.run_until_sent(cut_at);
            let mut cuts = 1;
            case.network.cut();
            for _ in 0..1 + case.network.rng.below(3) {
                case.run_until_joined();
                let more = Duration::from_micros(case.network.rng.below(120_000));
                case.network.run_for(more);
                case.network.cut();
                cuts += 1;
            }
            let again = case.finish();
            assert!(
                again <= AGAIN * cuts,
                "seed {seed}, {cuts} cuts from {cut_at} on: {again} again\n{}",
                case.log()
            );
        }
    }
}

#[test]
fn after_a_cut_that_one_end_does_not_notice_at_most_the_window_is_sent_again() {
    // One end recovers, or waits, while the association still exists for the other end.
    for seed in 200..203 {
        for (opener, sender) in ALL {
            for blind in [NAPLES, ACT] {
                let mut case = Case::new(seed, opener, sender, kept_open);
                let cut_at = case.network.rng.below(SIZE as u64);
                case.run_until_sent(cut_at);
                case.network.cut_unnoticed_by(blind);
                let again = case.finish();
                assert!(again <= AGAIN, "seed {seed}: {again} again\n{}", case.log());
            }
        }
    }
}

#[test]
fn with_resume_either_the_sender_recovers_an_association_that_the_peer_opened() {
    for (seed, sender) in [(300, NAPLES), (301, ACT)] {
        let opener = 1 - sender;
        for (node, continues) in [(either as fn(&mut NodeConfig), true), (kept_open, false)] {
            let mut case = Case::new(seed, opener, sender, node);
            case.run_until_sent(200_000);
            // From now on only the sender can connect.
            only(&mut case.network, sender);
            case.network.cut();
            let before = case.sent();
            case.network.run_for(Duration::from_secs(4));
            assert_eq!(case.sent(), before, "it waits for the peer, and does not begin again");
            let again = case.finish();
            assert_eq!(again <= AGAIN, continues, "{again} again\n{}", case.log());
        }
    }
}

/// It recovers nothing there, and perhaps never calls this node again.
#[test]
fn what_waits_for_a_peer_to_recover_it_begins_again_soon_after_the_peer_has_bound_to_another_node()
{
    for (seed, sender) in [(310, NAPLES), (311, ACT)] {
        let opener = 1 - sender;
        for binds in [false, true] {
            let mut case = Case::new(seed, opener, sender, kept_open);
            case.run_until_sent(200_000);
            only(&mut case.network, sender);
            case.network.cut();
            case.network.run_for(Duration::from_secs(1));
            let before = case.sent();
            if binds {
                let peer = PeerId::of_name(["act", "naples"][sender]);
                case.network.feed(sender, Input::PeerBoundElsewhere(peer));
            }
            case.network.run_for(Duration::from_secs(15));
            assert_eq!(case.sent() > before, binds, "{}", case.log());
            case.finish();
        }
    }
}

#[test]
fn both_ends_may_ask_for_recovery_at_the_same_time() {
    let mut collisions = [0; 2];
    for seed in 400..424 {
        for (opener, sender) in [(NAPLES, ACT), (ACT, NAPLES)] {
            let mut case = Case::new(seed, opener, sender, either);
            let cut_at = case.network.rng.below(SIZE as u64);
            case.run_until_sent(cut_at);
            case.network.sites.iter_mut().for_each(|site| site.may_connect = true);
            case.network.line_up = false;
            case.network.cut();
            // With this latency an end asks before it receives the request of the other end.
            case.network.latency = Duration::from_millis(1_500);
            let down = case.network.rng.below(9_000);
            case.network.run_for(Duration::from_millis(down));
            case.network.line_up = true;
            let again = case.finish();
            assert!(again <= AGAIN, "seed {seed}: {again} again\n{}", case.log());
            let log = case.log();
            collisions[0] += usize::from(log.contains("busy: we ask"));
            collisions[1] += usize::from(log.contains("the peer recovers the association itself"));
        }
    }
    assert!(collisions.iter().all(|c| *c > 0), "{collisions:?}");
}

#[test]
fn after_a_restart_of_either_end_the_transfer_begins_again_and_arrives_once() {
    for seed in 500..503 {
        for (opener, sender) in ALL {
            for dies in [NAPLES, ACT] {
                let mut case = Case::new(seed, opener, sender, kept_open);
                let cut_at = case.network.rng.below(SIZE as u64);
                case.run_until_sent(cut_at);
                case.network.crash(dies);
                // [`Case::finish`] asserts that it arrives complete, and once.
                let again = case.finish();
                assert!(again <= SIZE as u64, "seed {seed}: {again} again\n{}", case.log());
            }
        }
    }
}

/// The line is so slow that the transfer takes more than a second.
#[test]
fn after_a_restart_of_either_end_at_most_the_window_is_sent_again() {
    for seed in 510..513 {
        for (opener, sender) in ALL {
            for dies in [NAPLES, ACT] {
                let mut case = Case::new(seed, opener, sender, kept_open);
                case.network.latency = Duration::from_millis(100);
                let cut_at = SIZE as u64 / 2 + case.network.rng.below(SIZE as u64 / 2 - 9_000);
                case.run_until_sent(cut_at);
                case.network.crash(dies);
                let again = case.finish();
                // What was confirmed while the value that the sender stores was being written may count.
                let most = AGAIN + if dies == sender { CHECKPOINT } else { 0 };
                assert!(again <= most, "seed {seed}, {dies} dies: {again} again\n{}", case.log());
            }
        }
    }
}

#[test]
fn after_restarts_of_both_ends_at_most_the_window_is_sent_again_for_each() {
    for seed in 520..523 {
        for (opener, sender) in ALL {
            let mut case = Case::new(seed, opener, sender, kept_open);
            case.network.latency = Duration::from_millis(100);
            for (count, dies) in [(3, NAPLES), (4, ACT), (5, ACT), (6, NAPLES)] {
                case.run_until_sent(SIZE as u64 * count / 8);
                case.network.crash(dies);
            }
            let again = case.finish();
            assert!(
                again <= 4 * (AGAIN + CHECKPOINT),
                "seed {seed}: {again} again\n{}",
                case.log()
            );
        }
    }
}

/// The sender has forgotten where it was, and begins again: what is left of the first try takes no room.
#[test]
fn what_was_received_is_given_up_when_the_message_has_arrived_otherwise() {
    let mut case = restarted(532);
    case.network.line_up = false;
    case.network.crash(ACT);
    case.network.crash(NAPLES);
    case.network.sites[NAPLES].store.meta.remove(node::SENDING);
    case.network.crash(NAPLES);
    case.network.line_up = true;
    assert_eq!(case.network.sites[ACT].store.spools.len(), 1);
    case.network.run_for(Duration::from_secs(60));
    assert!(case.network.sites[ACT].store.spools.is_empty(), "{}", case.log());
    assert!(case.finish() > AGAIN, "it began again");
}

/// The middle of a transfer to Act.
fn restarted(seed: u64) -> Case {
    let mut case = Case::new(seed, NAPLES, NAPLES, kept_open);
    case.network.latency = Duration::from_millis(100);
    case.run_until_sent(SIZE as u64 / 2);
    case
}

#[test]
fn what_was_received_before_a_restart_is_given_up_in_time() {
    let mut case = restarted(530);
    case.network.line_up = false;
    case.network.crash(ACT);
    case.network.run_for(Duration::from_secs(500));
    let spools = |case: &Case| case.network.sites[ACT].store.spools.len();
    assert_eq!(spools(&case), 1);
    // A further restart begins the time anew.
    case.network.crash(ACT);
    case.network.run_for(Duration::from_secs(500));
    assert_eq!(spools(&case), 1);
    case.network.run_for(Duration::from_secs(150));
    assert_eq!((spools(&case), case.network.sites[ACT].node.holds().arrivals), (0, 0));
    case.network.line_up = true;
    case.finish();
}

#[test]
fn what_was_received_on_a_channel_that_is_gone_is_given_up_at_the_start() {
    let mut case = restarted(531);
    case.network.line_up = false;
    let renamed = |config: &mut NodeConfig| config.peers[0].channels[0].name = "other".to_owned();
    renamed(&mut case.network.sites[ACT].config);
    case.network.crash(ACT);
    assert!(case.network.sites[ACT].store.spools.is_empty());
    let given_up = case.network.sites[ACT].events.iter().any(|(_, event)| {
        event.kind == Kind::ReceiveFailed && event.detail.contains("channel is not configured")
    });
    assert!(given_up, "{}", case.log());
}

#[test]
fn a_reload_during_a_recovery_keeps_it_unless_the_octets_would_differ() {
    type Change = fn(&mut NodeConfig);
    let changes: [(Change, bool); 5] = [
        (|config| config.peers[0].channels[0].grow_at = 9, true),
        // A transfer that has begun in one form continues in it.
        (|config| config.peers[0].form.dialect = p1::Dialect::BlueBook1988, true),
        (|config| config.peers[0].form.explicit_defaults = false, true),
        (|config| config.peers[0].form.qualifier = p1::Qualifier::Omit, true),
        (|config| config.peers[0].channels[0].rts.indefinite_lengths = true, false),
    ];
    for (n, (change, continues)) in changes.into_iter().enumerate() {
        for (opener, sender) in ALL {
            let mut case = Case::new(600 + n as u64, opener, sender, kept_open);
            case.run_until_sent(200_000);
            case.network.line_up = false;
            case.network.cut();
            for site in [NAPLES, ACT] {
                case.network.configure(site, change, EdgeChanges::default());
            }
            case.network.line_up = true;
            let again = case.finish();
            assert_eq!(again <= AGAIN, continues, "change {n}: {again} again\n{}", case.log());
        }
    }
}

/// The form is kept with the place at which the transfer goes on: a restart with another one changes nothing.
#[test]
fn a_transfer_keeps_its_form_over_a_restart_with_another() {
    let mut case = restarted(533);
    case.network.line_up = false;
    let form = p1::Form {
        explicit_defaults: false,
        qualifier: p1::Qualifier::Omit,
        dialect: p1::Dialect::BlueBook1988,
    };
    case.network.sites[NAPLES].config.peers[0].form = form;
    case.network.crash(NAPLES);
    case.network.line_up = true;
    let again = case.finish();
    assert!(again <= AGAIN, "{again} again\n{}", case.log());
}

#[test]
fn a_cut_transfer_that_an_operator_holds_waits_until_its_release() {
    for (opener, sender) in ALL {
        let mut case = Case::new(700, opener, sender, kept_open);
        case.run_until_sent(200_000);
        case.network.line_up = false;
        case.network.cut();
        let entries: Vec<_> =
            case.network.sites[sender].store.entries.keys().map(|(_, id)| *id).collect();
        let hold = |hold| Input::Operate {
            request: 1,
            entries: entries.clone(),
            act: node::operator::Act::holding(hold),
            by: node::operator::Operator::default(),
        };
        case.network.feed(sender, hold(true));
        case.network.line_up = true;
        let before = case.sent();
        case.network.run_for(Duration::from_secs(100));
        assert_eq!((case.sent(), case.network.queued(sender)), (before, 1), "held\n{}", case.log());
        case.network.feed(sender, hold(false));
        case.finish();
    }
}

#[test]
fn a_cut_transfer_whose_peer_is_removed_is_routed_again_and_reported() {
    let mut case = Case::new(800, ACT, NAPLES, kept_open);
    case.run_until_sent(200_000);
    case.network.line_up = false;
    case.network.cut();
    let change = |config: &mut NodeConfig| {
        config.peers.clear();
        config.routes.truncate(1);
    };
    case.network.configure(NAPLES, change, EdgeChanges::default());
    case.network.run_for(Duration::from_secs(20));
    assert_eq!(case.network.sites[NAPLES].count(Kind::Rerouted), 1, "{}", case.log());
}

/// Five channels without a hold, so that transfers on all of them go on at once.
fn beside_each_other(config: &mut NodeConfig) {
    five_channels(config);
    config.hold.hold = scheduler::Hold::Off;
    config.peers[0].addresses = vec!["192.0.2.1".parse().unwrap()];
}

#[test]
fn after_a_stop_all_transfers_that_it_interrupted_are_resumed() {
    (0..8).for_each(|moment| stopped_at(Duration::from_millis(moment * 25)));
}

fn stopped_at(moment: Duration) {
    let mut network = Network::pair(540, Setup { rts, node: beside_each_other });
    only(&mut network, NAPLES);
    let from = network.user(NAPLES, "OPS", false);
    network.bind(from, NAPLES);
    network.run_for(Duration::from_secs(3));
    network.latency = Duration::from_millis(100);
    let to = [address(1 - NAPLES, "OPS")];
    for (number, precedence) in
        [Precedence::Routine, Precedence::Priority, Precedence::Immediate].into_iter().enumerate()
    {
        let text = content(number, SIZE);
        let id = format!("LONG {number}");
        network.submit(from, &to, precedence, &text, &id, ReportRequest::None);
    }
    let of = |network: &Network, kind| {
        network.sites[NAPLES].events.iter().filter(|(_, event)| event.kind == kind).count()
    };
    for _ in 0..600 {
        network.run_for(Duration::from_millis(100));
        if of(&network, Kind::TransferStarted) == 3
            && network.sites[NAPLES].store.octets_read > 300_000
        {
            break;
        }
    }
    network.run_for(moment);
    network.feed(NAPLES, Input::Stop);
    network.run_for(Duration::from_secs(5));
    assert!(network.sites[NAPLES].stopped);
    network.sites[NAPLES].events.clear();
    network.crash_as(NAPLES, testkit::Death::Process, 0);
    network.run_for(Duration::from_secs(60));
    let all = network.sites[NAPLES].events.iter().map(|(_, event)| event);
    let started = all.filter(|event| event.kind == Kind::TransferStarted);
    let started: Vec<String> = started.map(|event| event.detail.clone()).collect();
    assert_eq!(started.len(), 3, "{started:?}");
    assert!(started.iter().all(|detail| detail.starts_with("resumed after")), "{started:?}");
    assert_eq!(network.queued(NAPLES), 0);
}

/// The peer opened the association, and does not come back: once the transfer begins again, a restart must
/// not wait for the peer a second time.
#[test]
fn a_transfer_that_was_given_up_does_not_wait_again_after_a_restart() {
    let mut case = Case::new(541, ACT, NAPLES, kept_open);
    case.network.latency = Duration::from_millis(100);
    case.run_until_sent(SIZE as u64 / 2);
    case.network.line_up = false;
    case.network.cut();
    let stored = |case: &Case| case.network.sites[NAPLES].store.meta[node::SENDING].len();
    case.network.run_for(Duration::from_secs(10));
    assert!(stored(&case) > 50);
    case.network.run_for(Duration::from_secs(100));
    assert!(stored(&case) < 10, "it began again");
    case.network.line_up = true;
    case.finish();
}

/// The confirm of the first checkpoint after a recovery is lost: its receiver names the transfer by the new association, its
/// sender by the old one.
#[test]
fn after_a_cut_before_the_first_confirm_of_a_recovery_the_transfer_goes_on() {
    for (opener, sender) in ALL {
        let mut case = Case::new(543, opener, sender, kept_open);
        case.network.latency = Duration::from_millis(100);
        case.run_until_sent(SIZE as u64 / 2);
        case.network.cut();
        let before = case.sent();
        case.run_until_sent(before + 1);
        // The peer has it after 100 ms, and its confirm takes as long.
        case.network.run_for(Duration::from_millis(150));
        case.network.cut();
        let again = case.finish();
        assert!(again <= 2 * AGAIN, "{again} again\n{}", case.log());
    }
}

#[test]
fn a_checkpoint_is_not_confirmed_before_its_octets_are_stored() {
    let mut case = Case::new(544, NAPLES, NAPLES, kept_open);
    let commit = Duration::from_secs(20);
    case.network.sites[ACT].delays = Some(Delays { commit, ..Delays::default() });
    case.network.run_for(commit - Duration::from_secs(1));
    let sent = case.sent();
    assert!((CHECKPOINT..=AGAIN).contains(&sent), "{sent}");
    case.network.sites[ACT].delays = None;
    case.finish();
}

fn with_a_short_wait_for_the_turn(config: &mut NodeConfig) {
    kept_open(config);
    config.peers[0].channels[0].setup_timeout = Duration::from_secs(10);
}

/// Both ends begin at once: the request for the turn crosses a transfer, and waits as long as that takes.
#[test]
fn a_transfer_may_take_longer_than_the_wait_for_the_turn() {
    let mut network = Network::pair(545, Setup { rts, node: with_a_short_wait_for_the_turn });
    only(&mut network, NAPLES);
    network.run_for(Duration::from_millis(100));
    network.cut();
    let users = [NAPLES, ACT].map(|site| network.user(site, "OPS", false));
    users.iter().zip([NAPLES, ACT]).for_each(|(user, site)| network.bind(*user, site));
    network.run_for(Duration::from_secs(3));
    network.sites.iter_mut().for_each(|site| site.events.clear());
    network.latency = Duration::from_secs(1);
    for (site, user) in [NAPLES, ACT].into_iter().zip(users) {
        let (to, text) = ([address(1 - site, "LOG")], content(site, SIZE));
        network.submit(user, &to, Precedence::Routine, &text, "LONG", ReportRequest::None);
    }
    network.run_for(Duration::from_secs(600));
    assert!(network.sites.iter().all(|site| site.count(Kind::TransferConfirmed) == 1));
    // The other one tries to open some, without success.
    assert_eq!(network.sites[NAPLES].count(Kind::AssociationLost), 0);
}

/// Only one end can open associations, and both send: the association that was recovered is kept for the
/// peer's transfer, although it is more than the channel needs.
#[test]
fn an_association_that_the_peer_has_to_resume_on_is_not_surplus() {
    (0..12).for_each(|moment| cut_with_traffic_back(Duration::from_millis(moment * 40)));
}

fn cut_with_traffic_back(moment: Duration) {
    let mut case = Case::new(542, NAPLES, ACT, |config| {
        kept_open(config);
        let channel = &mut config.peers[0].channels[0];
        channel.associations_max = 3;
        channel.grow_at = 1;
    });
    case.network.latency = Duration::from_millis(100);
    let back = case.network.user(NAPLES, "LOG", false);
    case.network.bind(back, NAPLES);
    case.network.run_for(Duration::from_secs(1));
    for number in 0..40 {
        let text = content(number, 20_000);
        let to = [address(ACT, "NOBODY")];
        let id = format!("SHORT {number}");
        case.network.submit(back, &to, Precedence::Routine, &text, &id, ReportRequest::None);
    }
    case.run_until_sent(SIZE as u64 / 2);
    case.network.run_for(moment);
    let before = case.sent();
    case.network.cut();
    case.network.run_for(Duration::from_secs(150));
    let again = case.sent() - before;
    assert!(again <= SIZE as u64 / 2 + 2 * AGAIN, "{again} octets after the cut\n{}", case.log());
}
