//! When a node opens associations: how many at once, which first, what follows a refusal, and the
//! hours of scheduled channels. One node, and at the other end of each channel a stack that accepts,
//! refuses, or a connection that never comes.

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
use base::rng::Rng;
use base::{AssociationId, EntryId, Instant, Now, PeerId, Precedence, Utc};
use bytes::Bytes;
use node::changes::EdgeChanges;
use node::config::{
    Channel, Connection, Hold, HoldPolicy, Limits, Listener, ListenerService, NodeConfig, Peer,
    Reopen,
};
use node::connect::Connected;
use node::event::{Event, Kind, Level};
use node::status::ChannelStatus;
use node::{ChannelId, Input, ListenerId, Node, Output, Secret};
use osi::api::{Dialogue, Indication, RefuseReason, Request, Role, RtseParameters, Selectors};
use osi::profiles;
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use p1::bind::{Credentials, MtaAuthentication, MtaBindArgument, MtaBindError, MtaBindResult};
use p1::names::{GlobalDomainId, MtaName};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// What a connection to nobody takes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Octets of a message that is queued.
const LENGTH: u64 = 1_000_000;
/// Thursday, 1 January 2026.
const NEW_YEAR: u64 = 1_767_225_600_000_000;

/// What becomes of a try to open a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Accept,
    /// Nobody is there.
    Nothing,
    Refuse(MtaBindError),
    /// The session layer refuses, with this reason.
    Session(u8),
    /// Any dialogue mode but this one.
    Only(Dialogue),
}

struct Switchboard {
    node: Node,
    now: Instant,
    /// The wall clock was set forward by so much.
    step: Duration,
    answers: Vec<Answer>,
    /// Tries: when and on which channel.
    tries: Vec<(Instant, u32)>,
    /// Connections that do not come, and when they are given up.
    silent: BTreeMap<AssociationId, Instant>,
    channel_of: BTreeMap<AssociationId, u32>,
    /// Who connected last.
    admitted: Option<AssociationId>,
    peers: BTreeMap<AssociationId, Association>,
    proposed: Vec<Dialogue>,
    /// How often we asked for a recovery.
    recoveries: usize,
    opening: BTreeSet<AssociationId>,
    most_opening: usize,
    config: NodeConfig,
    /// What operators were answered.
    connected: Vec<(u64, Connected)>,
    /// What is queued, and how many pieces of contents the disk gives before it hangs.
    record: Option<engine::Record>,
    pieces: usize,
    unread: Option<Input>,
    events: Vec<(Instant, Event)>,
}

fn channel(index: u32, precedence: Precedence, connection: Connection) -> Channel {
    Channel {
        index,
        name: format!("channel-{index}"),
        precedences: vec![precedence],
        fallback: Vec::new(),
        dscp: dscp::Dscp::CS0,
        connection,
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
        checkpoint_adapts: false,
        setup_timeout: 10 * SECOND,
    }
}

fn scheduled(windows: &str) -> Connection {
    Connection::Scheduled { windows: windows.parse().unwrap() }
}

impl Switchboard {
    fn new(channels: Vec<Channel>, answers: Vec<Answer>, opening: usize) -> Switchboard {
        Switchboard::queued(channels, answers, opening, &[])
    }

    /// With a message of each of these precedences, none of which holds another.
    fn queued(
        channels: Vec<Channel>,
        answers: Vec<Answer>,
        opening: usize,
        queued: &[Precedence],
    ) -> Switchboard {
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
            resume: node::config::Resume::Initiator,
            content_max: None,
            message_aborts: node::config::MESSAGE_ABORTS,
            channels,
        };
        let config = NodeConfig {
            mta: MtaName("MTA-HERE".to_owned()),
            domain: GlobalDomainId::new("XX", "NATO", Some("HERE")),
            peers: vec![peer],
            listeners: vec![Listener {
                id: ListenerId(0),
                service: ListenerService::P1 { peer: PeerId::of_name("act"), channel: 0 },
            }],
            routes: Vec::new(),
            mailboxes: Vec::new(),
            classify: engine::classify::Policy::default(),
            hold: HoldPolicy { hold: Hold::Off, ..HoldPolicy::default() },
            times: node::config::Times::default(),
            minimize: None,
            limits: Limits { opening, ..Limits::default() },
            seed: 7,
            epoch: 1,
        };
        let mut board = Switchboard {
            node: Node::new(config.clone()),
            config,
            connected: Vec::new(),
            now: Instant(0),
            step: Duration::ZERO,
            answers,
            tries: Vec::new(),
            silent: BTreeMap::new(),
            channel_of: BTreeMap::new(),
            admitted: None,
            peers: BTreeMap::new(),
            proposed: Vec::new(),
            recoveries: 0,
            opening: BTreeSet::new(),
            most_opening: 0,
            record: None,
            pieces: 0,
            unread: None,
            events: Vec::new(),
        };
        if !queued.is_empty() {
            let mut record = world::queued_record();
            record.next_hop = engine::NextHop::Peer(PeerId::of_name("act"));
            (record.size, record.not_before) = (LENGTH, None);
            (record.accepted, record.first_arrival) = (board.utc(), board.utc());
            board.record = Some(record);
        }
        for (id, precedence) in (1..).map(EntryId).zip(queued) {
            let record = board.record_of(*precedence);
            board.feed(Input::Recovered { precedence: *precedence, id, record });
        }
        board.feed(Input::Started);
        board
    }

    fn record_of(&self, precedence: Precedence) -> Bytes {
        let record = self.record.clone().unwrap();
        engine::Record { precedence, ..record }.encode()
    }

    /// The disk gives so many pieces more.
    fn give(&mut self, pieces: usize) {
        self.pieces = pieces;
        if let Some(input) = self.unread.take() {
            self.feed(input);
        }
    }

    fn one(answer: Answer) -> Switchboard {
        let only = channel(0, Precedence::Routine, Connection::Permanent);
        Switchboard::new(vec![only], vec![answer], 8)
    }

    fn utc(&self) -> Utc {
        Utc(NEW_YEAR + self.now.0) + self.step
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
                self.tries.push((self.now, channel.index));
                self.channel_of.insert(association, channel.index);
                self.opening.insert(association);
                self.most_opening = self.most_opening.max(self.opening.len());
                if self.answers[channel.index as usize] == Answer::Nothing {
                    self.silent.insert(association, self.now + CONNECT_TIMEOUT);
                } else {
                    let reference = ConnectionReference {
                        user: Bytes::new(),
                        common: Bytes::new(),
                        additional: Bytes::new(),
                    };
                    let config =
                        profiles::p1(Selectors::default(), Selectors::default(), reference);
                    self.peers.insert(association, Association::new(config, Role::Responder));
                    inputs.push_back(Input::Connected { association });
                }
            }
            Output::Admitted { connection: _, association } => self.admitted = association,
            Output::Write { association, bytes } => {
                let channel = self.channel_of[&association];
                let Some(peer) = self.peers.get_mut(&association) else { return };
                peer.handle(self.now, osi::api::Input::Bytes(&bytes));
                let answer = self.answers[channel as usize];
                while let Some(output) = peer.poll() {
                    let asks = matches!(
                        output,
                        osi::api::Output::Indication(Indication::RecoverAsked { .. })
                    );
                    self.recoveries += usize::from(asks);
                    match output {
                        osi::api::Output::Send(bytes) => {
                            inputs.push_back(Input::Bytes { association, bytes });
                        }
                        osi::api::Output::Close => {
                            inputs.push_back(Input::Closed { association, error: None });
                        }
                        osi::api::Output::Indication(
                            Indication::Open { .. } | Indication::RecoverAsked { .. },
                        ) if matches!(answer, Answer::Session(_)) => {
                            let Answer::Session(reason) = answer else { continue };
                            // TPKT, DT, and RF with its transport disconnect.
                            let rf = [12, 6, 17, 1, 1, 50, 1, reason];
                            let bytes = [&[3, 0, 0, 15, 2, 0xf0, 0x80][..], &rf].concat().into();
                            inputs.push_back(Input::Bytes { association, bytes });
                        }
                        osi::api::Output::Indication(Indication::Open { dialogue, .. }) => {
                            self.proposed.push(dialogue);
                            let request = answer_to(answer, dialogue);
                            peer.handle(self.now, osi::api::Input::Request(request));
                        }
                        osi::api::Output::Indication(indication) => {
                            if let Some(request) = transfer(answer, &indication) {
                                peer.handle(self.now, osi::api::Input::Request(request));
                            }
                        }
                    }
                }
            }
            Output::Measure { .. } => {} // nothing waits in a connection here
            Output::Close { association } => {
                self.opening.remove(&association);
                self.silent.remove(&association);
                self.peers.remove(&association);
                inputs.push_back(Input::Closed { association, error: None });
            }
            Output::Drop { association } => {
                self.opening.remove(&association);
                self.silent.remove(&association);
                self.peers.remove(&association);
            }
            Output::Verify { token, .. } => {
                inputs.push_back(Input::Verified { token, right: true });
            }
            Output::Event(event) => {
                let over = matches!(
                    event.kind,
                    Kind::AssociationOpened
                        | Kind::AssociationLost
                        | Kind::AssociationRefused
                        | Kind::AssociationReleased
                );
                if let Some(id) = event.association.filter(|_| over) {
                    self.opening.remove(&id);
                }
                self.events.push((self.now, event));
            }
            Output::ChannelConnected { request, outcome } => {
                self.connected.push((request, outcome));
            }
            Output::Commit { token, .. } => {
                inputs.push_back(Input::Committed { token, result: Ok(()) });
            }
            Output::ForgetSeen { token, .. } => {
                inputs.push_back(Input::Forgot { token, result: Ok(false) });
            }
            Output::Load { token, precedence, .. } => {
                let result = Ok(Some(self.record_of(precedence)));
                inputs.push_back(Input::Loaded { token, result });
            }
            Output::ReadContent { token, len, .. } => {
                let input = Input::Content { token, result: Ok(Bytes::from(vec![1; len])) };
                match self.pieces.checked_sub(1) {
                    Some(left) => {
                        self.pieces = left;
                        inputs.push_back(input);
                    }
                    None => self.unread = Some(input),
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Time passes.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let tick = self.node.deadline();
            let failed = self.silent.values().min().copied();
            let Some(at) = [tick, failed].into_iter().flatten().min().filter(|at| *at <= until)
            else {
                break;
            };
            self.now = self.now.max(at);
            let due: Vec<AssociationId> =
                self.silent.iter().filter(|(_, at)| **at <= self.now).map(|(id, _)| *id).collect();
            for association in due {
                self.silent.remove(&association);
                let error = "no answer within 10s".to_owned();
                self.feed(Input::ConnectFailed { association, error });
            }
            if tick.is_some_and(|at| at <= self.now) {
                self.feed(Input::Tick);
            }
        }
        self.now = until;
    }

    fn status(&self) -> Vec<ChannelStatus> {
        let now = Now { mono: self.now, utc: self.utc() };
        self.node.status(now).peers.remove(0).channels
    }

    fn is_open(&self, channel: usize) -> bool {
        self.status()[channel].associations.iter().any(|a| a.state == "idle")
    }

    /// Cuts what is open on a channel.
    fn cut(&mut self, channel: u32) {
        let of = self.channel_of.iter().filter(|(_, c)| **c == channel);
        for association in of.map(|(id, _)| *id).collect::<Vec<_>>() {
            if self.peers.remove(&association).is_some() {
                let error = Some("connection reset".to_owned());
                self.feed(Input::Closed { association, error });
            }
        }
    }

    /// The configuration is read again, and perhaps is another one.
    fn reload(&mut self, change: impl FnOnce(&mut NodeConfig)) {
        change(&mut self.config);
        let config = Box::new(self.config.clone());
        self.feed(Input::Configure { config, edge: EdgeChanges::default() });
    }

    fn connect(&mut self, request: u64, channel: u32) {
        let channel = ChannelId { peer: PeerId::of_name("act"), index: channel };
        self.feed(Input::ConnectChannel { request, channel });
    }

    fn answered(&mut self) -> Connected {
        assert_eq!(self.connected.len(), 1, "{:?}", self.connected);
        self.connected.remove(0).1
    }

    /// The peer binds to us on channel 0.
    fn peer_binds(&mut self) {
        let reference = ConnectionReference {
            user: Bytes::from_static(b"\x04\x01a"),
            common: Bytes::from_static(b"\x17\x0D260102030405Z"),
            additional: Bytes::new(),
        };
        let config = profiles::p1(Selectors::default(), Selectors::default(), reference);
        let mut stack = Association::new(config, Role::Initiator);
        let mut writer = Writer::new();
        let who = MtaAuthentication::new("MTA-ACT", Credentials::simple("theirs"));
        MtaBindArgument::Authenticated(who).write(&mut writer);
        let bind = writer.into_vec().into();
        stack.handle(self.now, osi::api::Input::Request(Request::Open { bind }));
        let remote = "192.0.2.10".parse().unwrap();
        self.feed(Input::Accepted { connection: 0, listener: ListenerId(0), remote });
        let association = self.admitted.take().unwrap();
        self.channel_of.insert(association, 0);
        let Some(osi::api::Output::Send(bytes)) = stack.poll() else { panic!() };
        self.peers.insert(association, stack);
        self.feed(Input::Bytes { association, bytes });
    }

    fn tries_of(&self, channel: u32) -> Vec<Instant> {
        self.tries.iter().filter(|(_, c)| *c == channel).map(|(at, _)| *at).collect()
    }

    fn count(&self, kind: Kind) -> usize {
        self.events.iter().filter(|(_, e)| e.kind == kind).count()
    }

    fn last(&self, kind: Kind) -> &Event {
        &self.events.iter().rfind(|(_, e)| e.kind == kind).unwrap().1
    }
}

/// What a peer says in a transfer, or where one is to be recovered.
fn transfer(answer: Answer, indication: &Indication) -> Option<Request> {
    match indication {
        Indication::Checkpoint { octets } => Some(Request::Stored { octets: *octets }),
        Indication::TransferEnd => Some(Request::TransferSecured),
        Indication::RecoverAsked { .. } => Some(match answer {
            Answer::Refuse(_) => answer_to(answer, Dialogue::TwoWayAlternate),
            _ => Request::Refuse { reason: RefuseReason::CannotRecover, bind_error: None },
        }),
        _ => None,
    }
}

fn answer_to(answer: Answer, dialogue: Dialogue) -> Request {
    let refusal = match answer {
        Answer::Refuse(error) => Some(error),
        Answer::Only(mode) if mode != dialogue => Some(MtaBindError::UnacceptableDialogueMode),
        _ => None,
    };
    let mut writer = Writer::new();
    match refusal {
        Some(error) => {
            error.write(&mut writer);
            let bind_error = Some(Bytes::from(writer.into_vec()));
            Request::Refuse { reason: RefuseReason::Bind, bind_error }
        }
        None => {
            let who = MtaAuthentication::new("MTA-ACT", Credentials::simple("theirs"));
            MtaBindResult::Authenticated(who).write(&mut writer);
            Request::Accept { bind: writer.into_vec().into() }
        }
    }
}

// ----- how many at once ---------------------------------------------------------------------------

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn never_more_than_the_limit_and_all_open_at_last(
        limit in 1usize..10,
        channels in proptest::collection::vec((any::<bool>(), 0usize..6), 1..40),
        cuts in proptest::collection::vec((0u32..40, 1u64..60), 0..8),
    ) {
        let configs = (0..).zip(&channels).map(|(index, (_, level))| {
            channel(index, Precedence::ALL[*level], Connection::Permanent)
        });
        let answers = channels.iter().map(|(dead, _)| match dead {
            true => Answer::Nothing,
            false => Answer::Accept,
        });
        let mut board = Switchboard::new(configs.collect(), answers.collect(), limit);
        for (channel, seconds) in cuts {
            board.pass(Duration::from_secs(seconds));
            board.cut(channel % channels.len() as u32);
        }
        board.pass(1_800 * SECOND);
        prop_assert!(board.most_opening <= limit, "{} of {limit}", board.most_opening);
        for (n, (dead, _)) in channels.iter().enumerate() {
            prop_assert_eq!(board.is_open(n), !dead, "channel {}", n);
            // Those that matter less have their turn, too.
            prop_assert!(board.tries_of(n as u32).len() > if *dead { 3 } else { 0 }, "channel {}", n);
        }
    }

    #[test]
    fn waits_double_to_the_longest_and_keep_half_of_it_to_chance(
        first in 1u64..5_000,
        longest in 5_000u64..100_000,
        seed in any::<u64>(),
    ) {
        let mut only = channel(0, Precedence::Routine, Connection::Permanent);
        let (first, longest) = (Duration::from_millis(first), Duration::from_millis(longest));
        only.reopen = Reopen { first, longest, ..Reopen::default() };
        let mut board = Switchboard::new(vec![only], vec![Answer::Nothing], 8);
        // Another point in the node's random sequence.
        for _ in 0..Rng::new(seed).below(3) {
            board.pass(CONNECT_TIMEOUT);
        }
        board.pass(1_000 * SECOND);
        let tries = board.tries_of(0);
        for (n, pair) in tries.windows(2).enumerate() {
            let wait = pair[1].since(pair[0] + CONNECT_TIMEOUT);
            let whole = (first * 2u32.saturating_pow(n as u32)).min(longest);
            prop_assert!(wait >= whole / 2 && wait <= whole, "try {}: {:?} of {:?}", n, wait, whole);
        }
        prop_assert!(tries.len() > 5);
    }
}

#[test]
fn waits_are_spread_over_their_range() {
    let only = channel(0, Precedence::Routine, Connection::Permanent);
    let mut board = Switchboard::new(vec![only], vec![Answer::Nothing], 8);
    board.pass(100_000 * SECOND);
    let waits: Vec<f64> = board
        .tries_of(0)
        .windows(2)
        .skip(6)
        .map(|pair| pair[1].since(pair[0] + CONNECT_TIMEOUT).as_secs_f64())
        .collect();
    assert!(waits.len() > 1_000);
    for quarter in 0..4 {
        let (from, until) = (30.0 + 7.5 * f64::from(quarter), 37.5 + 7.5 * f64::from(quarter));
        let share = waits.iter().filter(|w| (from..until).contains(*w)).count() * 100 / waits.len();
        assert!((20..30).contains(&share), "{share} % from {from} s");
    }
}

#[test]
fn eight_dead_routine_channels_do_not_keep_a_flash_out() {
    let mut channels: Vec<Channel> =
        (0..12).map(|n| channel(n, Precedence::Routine, Connection::Permanent)).collect();
    channels.push(channel(12, Precedence::Flash, Connection::Permanent));
    let mut answers = vec![Answer::Nothing; 12];
    answers.push(Answer::Accept);
    let mut board = Switchboard::new(channels, answers, 8);
    assert_eq!(board.tries[0], (Instant(0), 12), "the highest is first");
    assert!(board.is_open(12));
    for _ in 0..30 {
        board.pass(SECOND * 13);
        board.cut(12);
        let full = board.opening.len();
        board.pass(SECOND);
        assert!(board.is_open(12), "its own wait of a second is all, {full} being opened");
    }
    assert_eq!(board.most_opening, 8);
}

// ----- refusals -----------------------------------------------------------------------------------

#[test]
fn what_a_message_waits_for_is_opened_first_then_by_precedence() {
    let levels = [1, 2, 3, 4, 5].map(|level: usize| Precedence::ALL[level]);
    let channels = (0..).zip(levels).map(|(index, p)| channel(index, p, Connection::Permanent));
    let waiting = [Precedence::Routine, Precedence::Priority];
    let mut board = Switchboard::queued(channels.collect(), vec![Answer::Nothing; 5], 2, &waiting);
    let order = |board: &Switchboard| board.tries.iter().map(|(_, c)| *c).collect::<Vec<_>>();
    assert_eq!(order(&board), [1, 0], "Priority, then Routine");
    // Nobody answers; while those two wait to be tried again, the highest of the others.
    board.pass(CONNECT_TIMEOUT);
    assert_eq!(order(&board)[2..], [4, 3]);
    // Once is no sign: what a message waits for has the places again.
    board.pass(SECOND);
    let mut again = order(&board)[4..].to_vec();
    again.sort_unstable();
    assert_eq!(again, [0, 1]);
    // They failed twice: now the others.
    board.pass(CONNECT_TIMEOUT);
    assert_eq!(order(&board)[6..], [4, 3]);
    assert_eq!(board.most_opening, 2);
}

#[test]
fn a_busy_peer_is_asked_again_soon() {
    let mut board = Switchboard::one(Answer::Refuse(MtaBindError::Busy));
    let event = board.last(Kind::AssociationRefused);
    assert_eq!(event.level, Level::Warning);
    assert!(event.detail.starts_with("refused: busy"), "{}", event.detail);
    board.pass(SECOND);
    assert_eq!(board.tries.len(), 2);
    board.answers[0] = Answer::Accept;
    board.pass(3 * SECOND);
    assert!(board.is_open(0));
}

#[test]
fn a_refused_password_waits_long_and_names_what_to_check() {
    for error in [
        MtaBindError::AuthenticationError,
        MtaBindError::UnacceptableSecurityContext,
        MtaBindError::InadequateAssociationConfidentiality,
    ] {
        let mut board = Switchboard::one(Answer::Refuse(error));
        let event = board.last(Kind::AssociationRefused);
        assert_eq!(event.level, Level::Error);
        for part in ["\"MTA-HERE\"", "password", "own_name", "\"act\"", "600s"] {
            assert!(event.detail.contains(part), "{part} in {}", event.detail);
        }
        let shown = board.status()[0].last_error.clone().unwrap();
        assert!(shown.contains(&error.to_string()), "{shown}");
        board.pass(299 * SECOND);
        assert_eq!(board.tries.len(), 1);
        board.answers[0] = Answer::Accept;
        board.pass(302 * SECOND);
        assert_eq!(board.tries.len(), 2);
        assert!(board.is_open(0));
        assert_eq!(board.status()[0].last_error, None);
        // It works now: a loss is a loss again.
        board.pass(60 * SECOND);
        board.cut(0);
        board.pass(SECOND);
        assert!(board.is_open(0));
    }
}

#[test]
fn a_password_refused_during_a_recovery_waits_long_and_then_all_is_sent_again() {
    let mut board = Switchboard::queued(
        vec![channel(0, Precedence::Routine, Connection::Permanent)],
        vec![Answer::Accept],
        8,
        &[Precedence::Routine],
    );
    board.give(10);
    assert_eq!(board.count(Kind::TransferStarted), 1);
    board.answers[0] = Answer::Refuse(MtaBindError::AuthenticationError);
    board.cut(0);
    board.pass(5 * SECOND);
    assert_eq!((board.tries.len(), board.count(Kind::TransferStarted)), (2, 1));
    let refused = board.last(Kind::AssociationRefused);
    assert!(refused.detail.contains("check password and own_name"), "{}", refused.detail);
    assert_eq!(refused.level, Level::Error);
    // A fresh association would be refused as well: none is tried before the long wait is over.
    board.pass(290 * SECOND);
    assert_eq!(board.tries.len(), 2);
    board.answers[0] = Answer::Accept;
    board.give(usize::MAX);
    board.pass(320 * SECOND);
    assert_eq!((board.tries.len(), board.count(Kind::TransferConfirmed)), (3, 1));
    let started = &board.last(Kind::TransferStarted).detail;
    assert!(started.starts_with("1000000 octets"), "from its beginning: {started}");
}

#[test]
fn what_a_busy_peer_does_not_recover_now_is_kept_and_asked_for_again() {
    // Reasons 1 and 131 are congestion; 133 says nothing, and is asked a few times.
    for (answer, tries) in [
        (Answer::Refuse(MtaBindError::Busy), 9),
        (Answer::Session(1), 9),
        (Answer::Session(131), 9),
        (Answer::Session(133), 4),
    ] {
        let mut board = Switchboard::queued(
            vec![channel(0, Precedence::Routine, Connection::Permanent)],
            vec![Answer::Accept],
            8,
            &[Precedence::Routine],
        );
        board.give(10);
        board.answers[0] = answer;
        board.cut(0);
        while board.tries.len() < tries + 1 {
            board.pass(SECOND / 10);
        }
        let waits: Vec<_> = board.tries.windows(2).skip(1).map(|w| w[1].0.since(w[0].0)).collect();
        assert!(waits[0] >= SECOND / 2 && waits[2] >= 2 * SECOND, "{answer:?}: {waits:?}");
        assert_eq!(board.recoveries, tries, "{answer:?}: each asked for it");
        assert_eq!(board.count(Kind::TransferStarted), 1);
    }
}

#[test]
fn the_other_dialogue_mode_is_tried_at_once_and_remembered() {
    use Dialogue::{Monologue, TwoWayAlternate};
    let mut board = Switchboard::one(Answer::Only(Monologue));
    assert!(board.is_open(0), "without any wait");
    assert_eq!(board.proposed, [TwoWayAlternate, Monologue]);
    let event = board.last(Kind::AssociationRefused);
    assert_eq!(event.level, Level::Warning);
    assert!(event.detail.ends_with("two-way-alternate was proposed, next is monologue"));
    board.pass(60 * SECOND);
    board.cut(0);
    board.pass(SECOND);
    assert_eq!(board.proposed, [TwoWayAlternate, Monologue, Monologue]);
    // The peer is configured anew.
    board.answers[0] = Answer::Only(TwoWayAlternate);
    board.pass(60 * SECOND);
    board.cut(0);
    board.pass(SECOND);
    assert!(board.is_open(0));
    assert_eq!(board.proposed[3..], [Monologue, TwoWayAlternate]);
}

#[test]
fn a_peer_that_takes_neither_dialogue_mode_is_left_alone() {
    use Dialogue::{Monologue, TwoWayAlternate};
    let mut board = Switchboard::one(Answer::Refuse(MtaBindError::UnacceptableDialogueMode));
    assert_eq!(board.proposed, [TwoWayAlternate, Monologue]);
    let event = board.last(Kind::AssociationRefused);
    assert_eq!(event.level, Level::Error);
    assert!(event.detail.contains("neither"), "{}", event.detail);
    board.pass(299 * SECOND);
    assert_eq!(board.tries.len(), 2);
    board.pass(302 * SECOND);
    assert_eq!(board.proposed[2..], [TwoWayAlternate, Monologue], "once each in a long wait");
    board.answers[0] = Answer::Only(Monologue);
    board.pass(602 * SECOND);
    assert_eq!(board.proposed[4..], [TwoWayAlternate, Monologue]);
    assert!(board.is_open(0), "what was changed at the peer is found");
}

// ----- what ends a wait ----------------------------------------------------------------------------

/// A channel that waits for up to ten minutes: the peer refused our password, which then is mended.
fn refused_and_mended() -> Switchboard {
    let mut board = Switchboard::one(Answer::Refuse(MtaBindError::AuthenticationError));
    board.pass(20 * SECOND);
    assert_eq!(board.tries.len(), 1);
    board.answers[0] = Answer::Accept;
    board
}

#[test]
fn busy_after_a_refused_password_says_what_it_may_be_until_one_is_taken() {
    let mut board = Switchboard::one(Answer::Refuse(MtaBindError::AuthenticationError));
    board.answers[0] = Answer::Refuse(MtaBindError::Busy);
    board.reload(|config| config.peers[0].own_password = Secret(Bytes::from_static(b"new")));
    board.pass(SECOND);
    let detail = board.last(Kind::AssociationRefused).detail.clone();
    for part in
        ["refused: busy", "it refused our name or password before", "`mta reload` at the peer"]
    {
        assert!(detail.contains(part), "{part} in {detail}");
    }
    board.answers[0] = Answer::Accept;
    board.pass(20 * SECOND);
    assert!(board.is_open(0));
    board.answers[0] = Answer::Refuse(MtaBindError::Busy);
    board.cut(0);
    board.pass(SECOND);
    let detail = &board.last(Kind::AssociationRefused).detail;
    assert!(detail.contains("busy") && !detail.contains("before"), "{detail}");
}

#[test]
fn a_reload_ends_the_wait_after_a_refused_password() {
    let mut board = refused_and_mended();
    board.reload(|_| {});
    assert!(board.is_open(0), "at once, though nothing of it changed");
    assert_eq!(board.last(Kind::WaitEnded).level, Level::Info);
}

#[test]
fn a_changed_reopen_shortens_a_wait_under_way() {
    let mut board = Switchboard::one(Answer::Refuse(MtaBindError::AuthenticationError));
    board.pass(20 * SECOND);
    board.reload(|config| config.peers[0].channels[0].reopen.refused = 10 * SECOND);
    board.pass(100 * SECOND);
    let tries = board.tries_of(0);
    assert!(tries.windows(2).skip(1).all(|t| t[1].since(t[0]) <= 10 * SECOND), "{tries:?}");
    assert!(tries.len() > 10);
}

#[test]
fn a_bind_of_the_peer_ends_the_wait() {
    let mut board = refused_and_mended();
    board.peer_binds();
    assert_eq!(board.count(Kind::AssociationOpened), 2, "its own, and then ours");
    assert_eq!(board.tries.len(), 2);
    // A link that is down, too.
    let mut board = Switchboard::one(Answer::Nothing);
    board.pass(200 * SECOND);
    while board.opening.len() == 1 {
        board.pass(SECOND);
    }
    board.answers[0] = Answer::Accept;
    board.peer_binds();
    assert!(board.is_open(0));
}

#[test]
fn an_operator_opens_a_channel_and_is_told_what_came_of_it() {
    let mut board = refused_and_mended();
    board.connect(1, 0);
    assert_eq!(board.answered(), Connected::Opened);
    board.connect(2, 0);
    assert_eq!(board.answered(), Connected::Open { associations: 1 });

    let mut board = Switchboard::one(Answer::Refuse(MtaBindError::AuthenticationError));
    board.pass(20 * SECOND);
    board.connect(3, 0);
    let Connected::Failed { reason } = board.answered() else { panic!() };
    assert!(reason.contains("authentication-error"), "{reason}");
    board.connect(4, 7);
    let Connected::Failed { reason } = board.answered() else { panic!() };
    assert!(reason.contains("no such channel"), "{reason}");
    board.answers[0] = Answer::Only(Dialogue::Monologue);
    board.connect(5, 0);
    assert_eq!(board.answered(), Connected::Opened, "the other mode is part of it");

    // Nobody there: the answer comes with the end of the try.
    let mut board = Switchboard::one(Answer::Nothing);
    board.pass(100 * SECOND);
    board.connect(6, 0);
    board.pass(CONNECT_TIMEOUT);
    let Connected::Failed { reason } = board.answered() else { panic!() };
    assert!(reason.contains("no answer within 10s"), "{reason}");

    let closed = channel(0, Precedence::Routine, scheduled("06:00-08:00"));
    let mut board = Switchboard::new(vec![closed], vec![Answer::Accept], 8);
    board.connect(7, 0);
    let Connected::Failed { reason } = board.answered() else { panic!() };
    assert!(reason.starts_with("outside its windows, opens at"), "{reason}");
    let on_demand = Connection::OnDemand { idle_close: 60 * SECOND };
    let quiet = channel(0, Precedence::Routine, on_demand);
    let mut board = Switchboard::new(vec![quiet], vec![Answer::Accept], 8);
    assert!(board.tries.is_empty());
    board.connect(8, 0);
    assert_eq!(board.answered(), Connected::Opened, "without traffic, too");
    board.connect(9, 0);
    board.reload(|config| config.peers.clear());
    board.pass(SECOND);
}

// ----- hours --------------------------------------------------------------------------------------

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn a_scheduled_channel_is_open_in_its_windows_only() {
    let only = channel(0, Precedence::Routine, scheduled("thu 06:00-08:00; 22:00-02:00"));
    let mut board = Switchboard::new(vec![only], vec![Answer::Accept], 8);
    assert!(board.is_open(0), "thursday, midnight");
    board.pass(2 * HOUR - SECOND);
    assert!(board.is_open(0));
    board.pass(SECOND);
    assert!(!board.is_open(0));
    assert_eq!(board.last(Kind::AssociationReleased).level, Level::Info);
    let told = "outside its windows, opens at 2026-01-01T06:00:00.000000Z";
    assert_eq!(board.status()[0].closed.as_deref(), Some(told));
    assert!(board.last(Kind::WindowChanged).detail.starts_with("outside its windows until"));
    board.pass(4 * HOUR - SECOND);
    assert_eq!(board.tries.len(), 1, "none is opened outside");
    board.pass(SECOND);
    assert!(board.is_open(0));
    assert_eq!(board.status()[0].closed, None);
    assert_eq!(board.tries.len(), 2);
    // Lost inside: opened again.
    board.cut(0);
    board.pass(SECOND);
    assert!(board.is_open(0));
    board.pass(2 * HOUR);
    assert!(!board.is_open(0));
}

#[test]
fn a_channel_that_is_being_opened_when_its_window_ends_is_given_up() {
    let only = channel(0, Precedence::Routine, scheduled("00:00-02:00; 06:00-07:00"));
    let mut board = Switchboard::new(vec![only], vec![Answer::Nothing], 8);
    board.pass(2 * HOUR);
    let before = board.tries.len();
    assert!(board.opening.is_empty() && before > 100);
    board.answers[0] = Answer::Accept;
    board.pass(4 * HOUR);
    assert_eq!(board.tries.len(), before + 1, "and at once when the next begins");
    assert!(board.is_open(0));
}

#[test]
fn a_wall_clock_that_is_set_is_noticed_within_a_minute() {
    let only = channel(0, Precedence::Routine, scheduled("06:00-08:00"));
    let mut board = Switchboard::new(vec![only], vec![Answer::Accept], 8);
    board.pass(HOUR);
    assert!(board.tries.is_empty());
    board.step = 6 * HOUR;
    board.pass(60 * SECOND);
    assert!(board.is_open(0));
    board.step = Duration::ZERO;
    board.pass(60 * SECOND);
    assert!(!board.is_open(0));
}
