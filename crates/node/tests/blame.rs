//! A peer aborts in the middle of transfers: whose fault that is, what follows for the message, for
//! the others and for the channel. One node in virtual time; at the other end of each channel a stack
//! that aborts, cuts or takes what it is sent, message by message.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, unused_imports, reason = "shared with other tests")]
mod world;

use base::ber::Writer;
use base::{AssociationId, EntryId, Instant, Now, PeerId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, Op};
use node::changes::EdgeChanges;
use node::config::{Channel, Connection, Hold, HoldPolicy, Limits, NodeConfig, Peer, Reopen};
use node::event::{Event, Kind};
use node::{Input, Node, Output, Secret};
use osi::api::{
    AbortReason, Dialogue, Indication, RefuseReason, Request, Role, RtseParameters, Selectors,
};
use osi::profiles;
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use p1::bind::{Credentials, MtaAuthentication, MtaBindResult};
use p1::names::{GlobalDomainId, MtaName};
use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const NEW_YEAR: u64 = 1_767_225_600_000_000;
const FLASH: Precedence = Precedence::Flash;
const ROUTINE: Precedence = Precedence::Routine;

/// What the peer does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Take,
    Abort(AbortReason),
    /// Refuses it, and the association lives on.
    Refuse(AbortReason),
    /// The connection goes.
    Cut,
}

const BAD: Does = Does::Abort(AbortReason::ProtocolError);

struct Bench {
    node: Node,
    config: NodeConfig,
    now: Instant,
    /// What it does with an entry, beside all others.
    does: BTreeMap<EntryId, Does>,
    others: Does,
    /// Octets that its transport is said to have taken before a cut, and more before the next.
    taken: Option<u64>,
    /// Channels to which no connection can be made.
    dead: Vec<u32>,
    precedences: BTreeMap<EntryId, Precedence>,
    channel_of: BTreeMap<AssociationId, u32>,
    sends: BTreeMap<AssociationId, EntryId>,
    peers: BTreeMap<AssociationId, Association>,
    connects: Vec<(Instant, u32)>,
    commits: Vec<Batch>,
    events: Vec<(Instant, Event)>,
    record: engine::Record,
}

fn channel(index: u32, precedences: &[Precedence]) -> Channel {
    Channel {
        index,
        name: format!("channel-{index}"),
        precedences: precedences.to_vec(),
        fallback: Vec::new(),
        dscp: dscp::Dscp::CS0,
        connection: Connection::Permanent,
        reopen: Reopen::default(),
        minimize: None,
        associations_max: 1,
        grow_at: 1,
        associations_keep: 10 * SECOND,
        rts: RtseParameters {
            checkpoint_size: 4,
            window: 3,
            dialogue: Dialogue::TwoWayAlternate,
            indefinite_lengths: false,
            transfer_timeout: 30 * SECOND,
            longest_pause: Duration::ZERO,
        },
        setup_timeout: 10 * SECOND,
        checkpoint_adapts: false,
    }
}

impl Bench {
    fn new(others: Does) -> Bench {
        Bench::with(vec![channel(0, &Precedence::ALL)], others, 1_000)
    }

    fn with(channels: Vec<Channel>, others: Does, size: u64) -> Bench {
        let peer = Peer {
            name: "act".to_owned(),
            mta: MtaName("MTA-ACT".to_owned()),
            own_name: MtaName("MTA-HERE".to_owned()),
            own_password: Secret(Bytes::from_static(b"ours")),
            octet_credentials: false,
            from: Vec::new(),
            addresses: Vec::new(),
            dialect: p1::Dialect::Modern,
            local: Selectors::default(),
            remote: Selectors::default(),
            tpdu_size: None,
            content_max: None,
            message_aborts: node::config::MESSAGE_ABORTS,
            resume: Default::default(),
            channels,
        };
        let config = NodeConfig {
            mta: MtaName("MTA-HERE".to_owned()),
            domain: GlobalDomainId::new("XX", "NATO", Some("HERE")),
            peers: vec![peer],
            listeners: Vec::new(),
            routes: Vec::new(),
            mailboxes: Vec::new(),
            classify: engine::classify::Policy::default(),
            hold: HoldPolicy { hold: Hold::Off, ..HoldPolicy::default() },
            times: node::config::Times::default(),
            minimize: None,
            limits: Limits::default(),
            seed: 7,
            epoch: 1,
        };
        static RECORD: OnceLock<engine::Record> = OnceLock::new();
        let mut record = RECORD.get_or_init(world::queued_record).clone();
        record.next_hop = engine::NextHop::Peer(PeerId::of_name("act"));
        (record.size, record.not_before) = (size, None);
        let mut bench = Bench {
            node: Node::new(config.clone()),
            config,
            now: Instant(0),
            does: BTreeMap::new(),
            others,
            taken: None,
            dead: Vec::new(),
            precedences: BTreeMap::new(),
            channel_of: BTreeMap::new(),
            sends: BTreeMap::new(),
            peers: BTreeMap::new(),
            connects: Vec::new(),
            commits: Vec::new(),
            events: Vec::new(),
            record,
        };
        (bench.record.accepted, bench.record.first_arrival) = (bench.utc(), bench.utc());
        bench.feed(Input::Started);
        bench
    }

    fn utc(&self) -> Utc {
        Utc(NEW_YEAR + self.now.0)
    }

    /// Queues a message now; it has nothing to do with how it got there.
    fn queue(&mut self, id: u64, precedence: Precedence) -> EntryId {
        let entry = EntryId(id);
        self.precedences.insert(entry, precedence);
        let record = self.record_of(entry);
        self.feed(Input::Recovered { precedence, id: entry, record });
        self.feed(Input::Tick);
        entry
    }

    fn bad(&mut self, id: u64, precedence: Precedence) -> EntryId {
        self.queue_that(id, precedence, BAD)
    }

    fn queue_that(&mut self, id: u64, precedence: Precedence, does: Does) -> EntryId {
        self.does.insert(EntryId(id), does);
        self.queue(id, precedence)
    }

    fn record_of(&self, entry: EntryId) -> Bytes {
        let precedence = self.precedences[&entry];
        let message = format!("[/C=XX/;{entry}]");
        engine::Record { precedence, message, ..self.record.clone() }.encode()
    }

    fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.node.handle(Now { mono: self.now, utc: self.utc() }, input);
            while let Some(output) = self.node.poll() {
                self.carry_out(output, &mut inputs);
            }
        }
    }

    fn carry_out(&mut self, output: Output, inputs: &mut VecDeque<Input>) {
        match output {
            Output::Connect { association, channel } => {
                self.connects.push((self.now, channel.index));
                self.channel_of.insert(association, channel.index);
                if self.dead.contains(&channel.index) {
                    let error = "no route".to_owned();
                    return inputs.push_back(Input::ConnectFailed { association, error });
                }
                let reference = ConnectionReference {
                    user: Bytes::new(),
                    common: Bytes::new(),
                    additional: Bytes::new(),
                };
                let config = profiles::p1(Selectors::default(), Selectors::default(), reference);
                self.peers.insert(association, Association::new(config, Role::Responder));
                inputs.push_back(Input::Connected { association });
            }
            Output::Write { association, bytes } => self.arrives(association, &bytes, inputs),
            Output::Close { association } => {
                if self.peers.remove(&association).is_some() {
                    inputs.push_back(Input::Closed { association, error: None });
                }
            }
            Output::Drop { association } => drop(self.peers.remove(&association)),
            Output::Verify { token, .. } => {
                inputs.push_back(Input::Verified { token, right: true });
            }
            Output::Event(event) => {
                if let (Kind::TransferStarted, Some(id), Some(entry)) =
                    (event.kind, event.association, event.entry)
                {
                    self.sends.insert(id, entry);
                }
                self.events.push((self.now, event));
            }
            Output::Commit { token, batch, .. } => {
                self.commits.push(batch);
                inputs.push_back(Input::Committed { token, result: Ok(()) });
            }
            Output::ForgetSeen { token, .. } => {
                inputs.push_back(Input::Forgot { token, result: Ok(false) });
            }
            Output::Load { token, id, .. } => {
                let result = Ok(Some(self.record_of(id)));
                inputs.push_back(Input::Loaded { token, result });
            }
            Output::ReadContent { token, len, .. } => {
                let result = Ok(Bytes::from(vec![1; len]));
                inputs.push_back(Input::Content { token, result });
            }
            other => panic!("{other:?}"),
        }
    }

    /// Octets reach the peer, which does with them what it does.
    fn arrives(&mut self, id: AssociationId, bytes: &Bytes, inputs: &mut VecDeque<Input>) {
        let entry = self.sends.get(&id).copied();
        let does = entry.and_then(|e| self.does.get(&e)).copied().unwrap_or(self.others);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.handle(self.now, osi::api::Input::Bytes(bytes));
        let mut cut = false;
        while let Some(output) = peer.poll() {
            let indication = match output {
                osi::api::Output::Send(bytes) => {
                    inputs.push_back(Input::Bytes { association: id, bytes });
                    continue;
                }
                osi::api::Output::Close => {
                    inputs.push_back(Input::Closed { association: id, error: None });
                    continue;
                }
                osi::api::Output::Indication(indication) => indication,
            };
            let request = match (indication, does) {
                (Indication::Open { .. }, _) => accept(),
                (Indication::RecoverAsked { .. }, _) => {
                    let reason = RefuseReason::CannotRecover;
                    Request::Refuse { reason, bind_error: None }
                }
                (Indication::Checkpoint { octets }, _) => Request::Stored { octets },
                (Indication::TransferEnd, Does::Take) => Request::TransferSecured,
                (Indication::TransferEnd, Does::Abort(reason)) => Request::Abort(reason),
                (Indication::TransferEnd, Does::Refuse(reason)) => Request::TransferRefused(reason),
                (Indication::TransferEnd, Does::Cut) => {
                    cut = true;
                    continue;
                }
                _ => continue,
            };
            peer.handle(self.now, osi::api::Input::Request(request));
        }
        if cut {
            self.peers.remove(&id);
            let taken = self.taken.map(|octets| Input::Taken { association: id, octets });
            inputs.extend(taken);
            self.taken = self.taken.map(|octets| octets + 50);
            let error = Some("connection reset".to_owned());
            inputs.push_back(Input::Closed { association: id, error });
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.node.deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.feed(Input::Tick);
        }
        self.now = until;
    }

    fn configure(&mut self, change: impl FnOnce(&mut NodeConfig)) {
        change(&mut self.config);
        let config = Box::new(self.config.clone());
        self.feed(Input::Configure { config, edge: EdgeChanges::default() });
    }

    fn times(&self, kind: Kind, entry: EntryId) -> Vec<Instant> {
        let of = self.events.iter().filter(|(_, e)| e.kind == kind && e.entry == Some(entry));
        of.map(|(at, _)| *at).collect()
    }

    fn count(&self, kind: Kind) -> usize {
        self.events.iter().filter(|(_, e)| e.kind == kind).count()
    }

    fn through(&self, entry: EntryId) -> bool {
        !self.times(Kind::TransferConfirmed, entry).is_empty()
    }

    /// When it was confirmed, after this moment.
    fn took(&self, entry: EntryId, from: Instant) -> Duration {
        self.times(Kind::TransferConfirmed, entry)[0].since(from)
    }

    fn is_queued(&self, entry: EntryId) -> bool {
        let gone = |op: &Op| matches!(op, Op::DeleteEntry { id, .. } if *id == entry);
        !self.commits.iter().flatten().any(gone)
    }

    fn status(&self) -> node::status::ChannelStatus {
        let now = Now { mono: self.now, utc: self.utc() };
        self.node.status(now).peers.remove(0).channels.remove(0)
    }
}

fn accept() -> Request {
    let mut writer = Writer::new();
    let who = MtaAuthentication::new("MTA-ACT", Credentials::simple("theirs"));
    MtaBindResult::Authenticated(who).write(&mut writer);
    Request::Accept { bind: writer.into_vec().into() }
}

/// A new Flash is not to wait for those before it that the peer cannot read.
#[test]
fn a_new_flash_goes_at_once_past_three_messages_that_the_peer_aborts() {
    for level in [ROUTINE, FLASH] {
        for wait in [0, 1, 5, 20, 65, 300] {
            for does in [BAD, Does::Abort(AbortReason::UserError), Does::Cut] {
                let mut bench = Bench::new(Does::Take);
                for id in 1..=3 {
                    bench.does.insert(EntryId(id), does);
                    bench.queue(id, level);
                }
                bench.pass(wait * SECOND);
                let (from, flash) = (bench.now, bench.queue(9, FLASH));
                // A link that is lost is a link, once for each of them.
                let most = if does == Does::Cut { 9 } else { 0 };
                bench.pass(10 * SECOND);
                assert!(bench.through(flash), "{level} {wait} {does:?}");
                let took = bench.took(flash, from);
                assert!(took <= most * SECOND, "{level} {wait} {does:?}: {took:?}");
            }
        }
    }
}

#[test]
fn an_aborted_message_waits_alone_and_its_association_is_opened_again_at_once() {
    for reason in
        [AbortReason::InvalidParameter, AbortReason::ProtocolError, AbortReason::UserError]
    {
        let mut bench = Bench::new(Does::Take);
        let bad = EntryId(1);
        bench.does.insert(bad, Does::Abort(reason));
        bench.queue(1, ROUTINE);
        assert_eq!(bench.connects.len(), 2, "{reason:?}: opened again in the same moment");
        assert_eq!(bench.count(Kind::MessageBlamed), 1);
        assert_eq!(bench.status().associations[0].state, "idle");
        let next = bench.queue(2, ROUTINE);
        assert!(bench.through(next));
        assert_eq!(bench.connects.len(), 2);
        // Its own delay: 60 s, less up to a fifth.
        bench.pass(47 * SECOND);
        assert_eq!(bench.times(Kind::TransferStarted, bad).len(), 1);
        bench.pass(14 * SECOND);
        assert_eq!(bench.times(Kind::TransferStarted, bad).len(), 2);
    }
}

#[test]
fn other_reasons_and_lost_connections_are_the_link_s() {
    for does in [
        Does::Abort(AbortReason::LocalSystemProblem),
        Does::Abort(AbortReason::TemporaryProblem),
        Does::Cut,
    ] {
        let mut bench = Bench::new(does);
        bench.queue(1, ROUTINE);
        assert_eq!((bench.connects.len(), bench.count(Kind::MessageBlamed)), (1, 0), "{does:?}");
        bench.pass(SECOND);
        // At the same place again: the message's.
        assert_eq!((bench.connects.len(), bench.count(Kind::MessageBlamed)), (3, 1), "{does:?}");
    }
}

#[test]
fn after_so_many_aborts_a_message_is_reported_and_others_are_not() {
    let mut bench = Bench::new(Does::Take);
    let bad = bench.bad(1, FLASH);
    for id in 10..200 {
        bench.pass(5 * SECOND);
        let good = bench.queue(id, ROUTINE);
        assert!(bench.through(good), "{id}");
    }
    assert_eq!(bench.times(Kind::TransferStarted, bad).len(), 4);
    assert!(!bench.is_queued(bad));
    let (_, event) = bench.events.iter().find(|(_, e)| e.kind == Kind::GivenUp).unwrap();
    assert_eq!(event.entry, Some(bad));
    for part in ["4 transfers", "peer act", "extensions = \"1988\"", "message_aborts"] {
        assert!(event.detail.contains(part), "{part} in {}", event.detail);
    }
    assert_eq!(bench.count(Kind::ReportMade), 1);
    // No more of it, ever.
    bench.pass(3_600 * SECOND);
    assert_eq!(bench.times(Kind::TransferStarted, bad).len(), 4);
}

/// What the peer says that it will never take is not tried until it expires.
#[test]
fn a_message_that_the_peer_refuses_for_good_is_reported_and_what_it_cannot_take_now_is_not() {
    for (reason, starts) in
        [(AbortReason::PermanentProblem, Some(4)), (AbortReason::LocalSystemProblem, None)]
    {
        let mut bench = Bench::new(Does::Take);
        let refused = bench.queue_that(1, FLASH, Does::Refuse(reason));
        for id in 10..200 {
            bench.pass(5 * SECOND);
            let good = bench.queue(id, ROUTINE);
            assert!(bench.through(good), "{id}");
        }
        assert_eq!(bench.is_queued(refused), starts.is_none());
        let tries = bench.times(Kind::TransferStarted, refused).len();
        assert_eq!(tries, starts.unwrap_or(tries));
        assert_eq!(bench.count(Kind::ReportMade), usize::from(starts.is_some()));
        assert_eq!(bench.count(Kind::AssociationLost), 0);
        let failed = bench.events.iter().find(|(_, e)| e.kind == Kind::TransferFailed).unwrap();
        let says = match starts {
            Some(_) => "unrecoverable procedural error (6)",
            None => "receiving ability jeopardized (1)",
        };
        assert!(failed.1.detail.contains(says), "{}", failed.1.detail);
    }
}

#[test]
fn as_many_aborts_as_are_configured_and_none_with_0() {
    for (most, tries) in [(1, 2), (2, 2), (7, 7), (0, 30)] {
        let mut bench = Bench::new(Does::Take);
        bench.configure(|config| config.peers[0].message_aborts = most);
        let bad = bench.bad(1, FLASH);
        let mut id = 10;
        while bench.is_queued(bad) && bench.now < Instant(0) + 3 * 3_600 * SECOND {
            bench.pass(5 * SECOND);
            bench.queue(id, ROUTINE);
            id += 1;
        }
        let tried = bench.times(Kind::TransferStarted, bad).len();
        assert_eq!(bench.is_queued(bad), most == 0, "{most}");
        assert!(if most == 0 { tried >= 15 } else { tried == tries }, "{most}: {tried}");
    }
}

#[test]
fn a_peer_that_aborts_everything_bounces_nothing_and_is_asked_less_and_less() {
    for does in [BAD, Does::Cut, Does::Abort(AbortReason::TemporaryProblem)] {
        let mut bench = Bench::new(does);
        for id in 1..=40 {
            let level = Precedence::ALL[id as usize % 6];
            bench.queue(id, level);
        }
        for id in 41..=100 {
            bench.pass(60 * SECOND);
            bench.queue(id, ROUTINE);
        }
        assert_eq!((bench.count(Kind::GivenUp), bench.count(Kind::ReportMade)), (0, 0), "{does:?}");
        assert!((1..=100).all(|id| bench.is_queued(EntryId(id))), "{does:?}");
        // Some trials, then at most one every half minute, and one for what is new.
        let connects = bench.connects.len();
        assert!(connects < 30 + 60 * 2 + 60, "{does:?}: {connects} in an hour");
        // It is mended: all go, soon.
        bench.others = Does::Take;
        bench.pass(180 * SECOND);
        let left = (1..=100).filter(|id| !bench.through(EntryId(*id))).count();
        assert_eq!(left, 0, "{does:?}");
        assert_eq!(bench.count(Kind::GivenUp), 0);
    }
}

#[test]
fn one_message_alone_is_not_given_up_before_another_one_got_through() {
    let mut bench = Bench::new(Does::Take);
    let bad = bench.bad(1, FLASH);
    bench.pass(3_600 * SECOND);
    assert!(bench.times(Kind::TransferStarted, bad).len() > 10);
    assert!(bench.is_queued(bad));
    let good = bench.queue(2, FLASH);
    assert!(bench.through(good));
    assert!(bench.is_queued(bad), "not for that: perhaps the peer has been mended");
    bench.pass(601 * SECOND);
    assert!(!bench.is_queued(bad), "but at the next abort");
}

#[test]
fn several_bad_messages_among_good_ones_are_all_reported() {
    let mut bench = Bench::new(Does::Take);
    let bad = [1, 2, 3].map(|id| bench.bad(id, FLASH));
    for id in 10..1_000 {
        bench.pass(7 * SECOND);
        let from = bench.now;
        let good = bench.queue(id, FLASH);
        assert!(bench.through(good) && bench.took(good, from) == Duration::ZERO, "{id}");
        if bad.iter().all(|bad| !bench.is_queued(*bad)) {
            break;
        }
    }
    assert!(bad.iter().all(|bad| !bench.is_queued(*bad)));
    assert_eq!(bench.count(Kind::GivenUp), 3);
    assert_eq!(bench.count(Kind::ReportMade), 3);
}

#[test]
fn many_bad_ones_before_a_good_one_do_not_keep_it_for_ever() {
    let mut bench = Bench::new(Does::Take);
    for id in 1..=40 {
        bench.bad(id, ROUTINE);
    }
    let good = bench.queue(99, ROUTINE);
    // Sixteen at once, then one with each wait of the channel.
    bench.pass(2_000 * SECOND);
    assert!(bench.through(good));
    let flash = bench.queue(100, FLASH);
    assert!(bench.through(flash), "what is higher needs no turn");
}

#[test]
fn a_transfer_that_was_cut_off_elsewhere_goes_on_and_is_blamed_on_nobody() {
    let mut bench = Bench::with(vec![channel(0, &Precedence::ALL)], Does::Cut, 100_000);
    bench.queue(1, ROUTINE);
    assert_eq!(bench.count(Kind::MessageBlamed), 0);
    bench.others = Does::Take;
    bench.pass(2 * SECOND);
    assert!(bench.through(EntryId(1)));
}

#[test]
fn another_channel_carries_what_waits_for_one_at_fault() {
    let mut standby = channel(1, &[ROUTINE]);
    standby.fallback = vec![FLASH];
    let mut bench = Bench::with(vec![channel(0, &[FLASH]), standby], Does::Take, 1_000);
    let flash: Vec<EntryId> = (1..=4)
        .map(|id| {
            bench.does.insert(EntryId(id), BAD);
            bench.queue(id, FLASH)
        })
        .collect();
    bench.pass(20 * SECOND);
    assert!(bench.count(Kind::ChannelBlamed) > 0);
    for entry in &flash {
        bench.does.remove(entry);
    }
    bench.dead = vec![0];
    bench.pass(120 * SECOND);
    assert!(flash.iter().all(|entry| bench.through(*entry)));
}

#[test]
fn a_reload_lets_all_be_tried_again_at_once() {
    let mut bench = Bench::new(BAD);
    let all: Vec<EntryId> = (1..=20).map(|id| bench.queue(id, ROUTINE)).collect();
    bench.pass(600 * SECOND);
    bench.others = Does::Take;
    bench.configure(|config| config.peers[0].dialect = p1::Dialect::BlueBook1988);
    assert!(all.iter().all(|entry| bench.through(*entry)), "in the same moment");
}

/// Whatever it is that cuts it, the link or what stands in it: nobody said that it is the message.
#[test]
fn a_message_that_is_cut_off_each_time_goes_through_in_the_end_and_is_not_reported() {
    let mut bench = Bench::new(Does::Take);
    let entry = EntryId(1);
    bench.does.insert(entry, Does::Cut);
    bench.queue(1, FLASH);
    for id in 10..400 {
        let good = bench.queue(id, ROUTINE);
        bench.pass(10 * SECOND);
        assert!(bench.through(good), "{id}");
        if bench.times(Kind::TransferStarted, entry).len() >= 5 {
            bench.does.remove(&entry);
        }
    }
    assert_eq!((bench.count(Kind::GivenUp), bench.count(Kind::ReportMade)), (0, 0));
    assert!(bench.through(entry), "{:?}", bench.times(Kind::TransferStarted, entry));
    assert_eq!(bench.times(Kind::TransferStarted, entry).len(), 6);
    assert!(bench.count(Kind::MessageBlamed) > 1, "but it waited alone");
}

#[test]
fn losses_do_not_add_to_what_the_peer_says_of_a_message() {
    let mut bench = Bench::new(Does::Take);
    let bad = bench.bad(1, FLASH);
    for id in 10..400 {
        bench.queue(id, ROUTINE);
        bench.pass(10 * SECOND);
        let tried = bench.times(Kind::TransferStarted, bad).len();
        // Said three times, then lost three times, then said once more.
        bench.does.insert(bad, if (3..6).contains(&tried) { Does::Cut } else { BAD });
        assert_eq!(bench.is_queued(bad), tried < 7, "{tried}");
    }
    assert!(!bench.is_queued(bad));
}

/// What was read ahead is the same each time; what the peer has had of it is not.
#[test]
fn a_loss_after_more_was_taken_is_not_at_the_same_place() {
    let mut bench = Bench::new(Does::Cut);
    bench.taken = Some(1_000);
    bench.queue(1, ROUTINE);
    for _ in 0..4 {
        bench.pass(90 * SECOND);
    }
    assert!(bench.times(Kind::TransferStarted, EntryId(1)).len() > 3);
    assert_eq!(bench.count(Kind::MessageBlamed), 0);
}
