//! A connection that lives while nothing passes: its transfer is shown as stalled, and one that is urgent is tried
//! again where another association is free.

use base::{EntryId, Instant, PeerId, Precedence};
use bytes::Bytes;
use engine::NextHop;
use node::channel_order::{ChannelOrder, ChannelOutcome};
use node::config::NodeConfig;
use node::event::Kind;
use node::listing::{QueueRequest, QueueRow};
use node::operator::Operator;
use node::{ChannelId, Input};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use testkit::{
    Bench, Direct, Events, NAPLES, Wire, WireArrival, WireMoment, five_channels, node_config,
};

const SECOND: Duration = Duration::from_secs(1);
const STALL: Duration = Duration::from_secs(15);
const TRANSFER: Duration = Duration::from_secs(120);
const FLASH: u32 = 3;

/// Its far end takes everything. Once so many octets have passed, some pass nothing more.
#[derive(Debug)]
struct Swallowing {
    inner: Direct,
    taken: u64,
    /// How many wires are still to hang.
    left: Rc<Cell<usize>>,
    hangs: bool,
}

/// So many octets pass: an association opens, and a part of the message passes.
const PASSES: u64 = 20_000;

impl Wire for Swallowing {
    fn write(&mut self, moment: WireMoment<'_>, octets: Bytes) {
        let before = self.taken;
        self.taken += octets.len() as u64;
        if before <= PASSES && self.taken > PASSES && self.left.get() > 0 {
            self.left.set(self.left.get() - 1);
            self.hangs = true;
        }
        if !self.hangs {
            self.inner.write(moment, octets);
        }
    }

    fn close(&mut self, moment: WireMoment<'_>) {
        self.inner.close(moment);
    }

    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }

    fn poll(&mut self, now: Instant) -> Option<WireArrival> {
        self.inner.poll(now)
    }

    fn measure(&mut self) -> Option<u64> {
        Some(self.taken)
    }
}

fn separate(config: &mut NodeConfig) {
    five_channels(config);
    for channel in &mut config.peers[0].channels {
        channel.rts.transfer_timeout = TRANSFER;
        (channel.rts.checkpoint_size, channel.rts.window) = (64, 16);
    }
}

/// Each of the two highest channels carries both precedences, and Routine too.
fn shared(config: &mut NodeConfig) {
    separate(config);
    for channel in &mut config.peers[0].channels[FLASH as usize..] {
        channel.precedences = vec![Precedence::Routine, Precedence::Flash, Precedence::Override];
    }
    config.peers[0].channels[0].precedences = vec![Precedence::Deferred];
}

/// A node of which so many connections hang, and a message of 50,000 octets.
fn behind(config: fn(&mut NodeConfig), hung: usize, precedence: Precedence) -> Bench {
    let mut bench = Bench::new(node_config(NAPLES, config));
    let left = Rc::new(Cell::new(hung));
    bench.wire = Box::new(move || {
        let (inner, left) = (Direct::default(), left.clone());
        Box::new(Swallowing { inner, taken: 0, left, hangs: false })
    });
    bench.queue_for("act", 50_000);
    bench.queue_to(EntryId(1), NextHop::Peer(PeerId::of_name("act")), precedence);
    bench.start();
    bench
}

fn row(bench: &Bench) -> QueueRow {
    let asked = QueueRequest { entry: Some(EntryId(1)), limit: 1, ..QueueRequest::default() };
    bench.node.queue_page(bench.clock(), &asked).unwrap().describe(|_| None).entries.remove(0)
}

/// The channels of these events.
fn channels(bench: &Bench, kind: Kind) -> Vec<u32> {
    bench.timed(kind).filter_map(|(_, event)| Some(event.channel?.index)).collect()
}

/// When the first of these events was.
fn first(bench: &Bench, kind: Kind) -> Duration {
    bench.first(kind).0.since(Instant(0))
}

/// A look at what the peer took counts as progress: it is some seconds after the start.
fn is_stall(time: Duration) -> bool {
    time >= STALL && time < STALL + 5 * SECOND
}

fn disconnect(bench: &mut Bench, at_once: bool) -> ChannelOutcome {
    let channel = ChannelId { peer: PeerId::of_name("act"), index: FLASH };
    let by = Operator { uid: 1_000, name: Some("alice".to_owned()) };
    let order = ChannelOrder::Disconnect;
    bench.feed(Input::OrderChannel { request: 7, channel, order, at_once, by });
    bench.ordered.pop().unwrap().1.unwrap()
}

#[test]
fn a_stalled_transfer_is_shown_and_logged_once() {
    let mut bench = behind(separate, 1, Precedence::Flash);
    bench.pass(STALL - SECOND);
    assert_eq!(row(&bench).state, "in_transfer");
    assert_eq!(bench.count(Kind::TransferStalled), 0);
    bench.pass(6 * SECOND);
    let shown = row(&bench);
    assert_eq!(shown.state, "stalled");
    assert_eq!((shown.bytes_confirmed, shown.bytes_total.unwrap() > 50_000), (Some(0), true));
    assert!(shown.last_progress.is_some());
    assert!(
        shown.waits_for[0].contains("`mta channel disconnect act/flash --now`"),
        "{:?}",
        shown.waits_for
    );
    let status = bench.node.status(bench.clock());
    let association = &status.peers[0].channels[FLASH as usize].associations[0];
    assert_eq!(association.stalled_since, shown.last_progress);
    assert_eq!(association.entry.as_deref(), Some("e1"));
    assert_eq!(channels(&bench, Kind::TransferStalled), [FLASH]);
    assert!(is_stall(first(&bench, Kind::TransferStalled)), "{:?}", bench.events);
    let (_, event) = bench.first(Kind::TransferStalled);
    assert_eq!((event.entry, event.precedence), (Some(EntryId(1)), Some(Precedence::Flash)));
    // No other channel carries it: the timer of the transfer ends it.
    bench.pass_until(2 * TRANSFER, |bench| bench.count(Kind::AssociationLost) > 0);
    assert!(first(&bench, Kind::AssociationLost) >= TRANSFER, "{:?}", bench.events);
    bench.pass(60 * SECOND);
    assert_eq!(bench.count(Kind::TransferConfirmed), 1);
    assert_eq!(bench.count(Kind::TransferStalled), 1);
}

#[test]
fn an_urgent_transfer_that_stalls_takes_the_channel_that_is_free() {
    for precedence in [Precedence::Flash, Precedence::Override] {
        let mut bench = behind(shared, 1, precedence);
        bench.pass(STALL + 5 * SECOND);
        let started = channels(&bench, Kind::TransferStarted);
        assert_eq!(started.len(), 2, "{precedence}: {:?}", bench.events);
        assert_ne!(started[0], started[1], "{precedence}");
        assert_eq!(channels(&bench, Kind::AssociationLost), started[..1]);
        assert_eq!(channels(&bench, Kind::TransferConfirmed), started[1..]);
        assert!(is_stall(first(&bench, Kind::TransferConfirmed)), "{:?}", bench.events);
        let (_, lost) = bench.first(Kind::AssociationLost);
        assert!(lost.detail.contains("its urgent transfer stalled"), "{lost:?}");
        assert!(!bench.is_queued(EntryId(1)));
    }
}

#[test]
fn one_that_is_not_urgent_waits_for_its_timer() {
    let mut bench = behind(shared, 1, Precedence::Routine);
    bench.pass(TRANSFER - SECOND);
    assert_eq!(bench.count(Kind::TransferStalled), 1);
    assert_eq!(bench.count(Kind::AssociationLost), 0);
}

/// A line that carries nothing looks the same on each association: they are not ended one after the other.
#[test]
fn a_message_frees_itself_once() {
    let mut bench = behind(shared, 2, Precedence::Flash);
    bench.pass(TRANSFER);
    let started = channels(&bench, Kind::TransferStarted);
    assert_eq!(started.len(), 2, "{:?}", bench.events);
    assert_eq!(channels(&bench, Kind::TransferStalled), started);
    assert_eq!(channels(&bench, Kind::AssociationLost), started[..1]);
    bench.pass(3 * TRANSFER);
    assert_eq!(bench.count(Kind::TransferConfirmed), 1);
}

#[test]
fn a_disconnect_names_the_transfer_that_it_waits_for_and_one_at_once_frees_it() {
    let mut bench = behind(separate, 1, Precedence::Flash);
    bench.pass(STALL + 5 * SECOND);
    let since = row(&bench).last_progress;
    let outcome = disconnect(&mut bench, false);
    let [transfer] = &outcome.transfers[..] else { panic!("{outcome:?}") };
    assert_eq!(transfer.entry.as_deref(), Some("e1"));
    assert_eq!(transfer.stalled_since, since);
    bench.pass(5 * SECOND);
    assert_eq!(row(&bench).state, "stalled", "it is still there");
    disconnect(&mut bench, true);
    bench.pass(30 * SECOND);
    assert_eq!(bench.count(Kind::TransferConfirmed), 1);
}
