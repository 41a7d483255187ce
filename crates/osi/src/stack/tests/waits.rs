//! Every wait for the peer ends: whole conversations, cut off after each step of theirs. Where a
//! layer waits for the peer there is a deadline; silence from then on ends the association, and its
//! user gets one indication.

use super::{BIND, p1, p3};
use crate::api::{
    AbortReason, Config, Indication, Input, Output, Payload, RefuseReason, Request, Role, Service,
};
use crate::profiles::abstract_syntax::msse;
use crate::stack::{Association, least_progress};
use base::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

const A: usize = 0;
const B: usize = 1;
const SETUP: Duration = Duration::from_secs(30);
const TRANSFER: Duration = Duration::from_secs(120);

/// States in which the next step is the peer's, in the layers' own tables. Not among them: the
/// transfer states of a receiver with pending confirms, what waits for our own user, and the idle
/// association (RTSE without the turn: the turn is the node's to wait for).
const WAITS: &[&str] = &[
    "cotp Wfcc",
    "cotp Closing",
    "session Sta01B",
    "session Sta01C",
    "session Sta02A",
    "session Sta03",
    "session Sta04B",
    "session Sta05B",
    "session Sta05C",
    "session Sta16",
    "session Sta18",
    "session Sta19",
    "acse Sta1",
    "acse Sta3",
    "acse Sta7",
    "rtse Sta01",
    "rtse Sta20",
    "rtse Sta21",
    "rtse Sta22",
    "rtse Sta23",
    "rtse Sta24",
    "rtse Sta30",
    "rtse Sta32",
    "rtse Sta40",
    "rose Sta01",
    "rose Sta10 answer",
    "rose Sta10 answer sends",
    "rose Sta10 receives",
    "rose Sta20",
    "rose Sta21",
];

struct End {
    stack: Association,
    indicated: Vec<Indication>,
    closed: bool,
    inbox: VecDeque<Option<Bytes>>,
    asked: VecDeque<Request>,
    /// Octets it has written.
    written: u64,
}

/// What the users do by themselves.
#[derive(Clone, Copy)]
struct Habits {
    accepts: bool,
    supplies: bool,
    stores: bool,
}

const WILLING: Habits = Habits { accepts: true, supplies: true, stores: true };

struct World {
    ends: [End; 2],
    now: Instant,
    /// Steps until everything stops.
    left: usize,
    habits: Habits,
}

impl World {
    fn new(config: &Config, left: usize) -> World {
        let end = |role| End {
            stack: Association::new(config.clone(), role),
            indicated: Vec::new(),
            closed: false,
            inbox: VecDeque::new(),
            asked: VecDeque::new(),
            written: 0,
        };
        let ends = [end(Role::Initiator), end(Role::Responder)];
        let mut world = World { ends, now: Instant(1_000_000), left, habits: WILLING };
        world.handle(B, Input::Tick);
        world
    }

    fn step(&mut self) -> bool {
        let goes_on = self.left > 0;
        self.left = self.left.saturating_sub(1);
        goes_on
    }

    fn ask(&mut self, side: usize, request: Request) {
        if self.step() {
            self.handle(side, Input::Request(request));
        }
    }

    /// Delivers until nothing is in transit.
    fn run(&mut self) {
        while let Some(side) = [A, B].into_iter().find(|s| !self.ends[*s].inbox.is_empty()) {
            if !self.step() {
                return;
            }
            self.deliver(side);
        }
    }

    fn deliver(&mut self, side: usize) {
        match self.ends[side].inbox.pop_front() {
            Some(Some(bytes)) => self.handle(side, Input::Bytes(&bytes)),
            Some(None) => self.handle(side, Input::Eof),
            None => {}
        }
    }

    fn handle(&mut self, side: usize, input: Input<'_>) {
        self.ends[side].stack.handle(self.now, input);
        loop {
            while let Some(output) = self.ends[side].stack.poll() {
                assert!(!self.ends[side].closed, "{output:?} after Close");
                match output {
                    Output::Send(bytes) => {
                        self.ends[side].written += bytes.len() as u64;
                        self.ends[1 - side].inbox.push_back(Some(bytes));
                    }
                    Output::Close => {
                        self.ends[side].closed = true;
                        self.ends[1 - side].inbox.push_back(None);
                    }
                    Output::Indication(indication) => {
                        let answer = self.answer(&indication);
                        self.ends[side].asked.extend(answer);
                        self.ends[side].indicated.push(indication);
                    }
                }
            }
            let Some(request) = self.ends[side].asked.pop_front() else { return };
            self.ends[side].stack.handle(self.now, Input::Request(request));
        }
    }

    fn answer(&self, indication: &Indication) -> Option<Request> {
        let Habits { accepts, supplies, stores } = self.habits;
        match indication {
            Indication::Open { .. } if accepts => Some(Request::Accept { bind: BIND.into() }),
            Indication::NeedContent { max, .. } if supplies => {
                Some(Request::Content(vec![7; *max].into()))
            }
            Indication::Checkpoint { octets } if stores => {
                Some(Request::Stored { octets: *octets })
            }
            Indication::TransferEnd if stores => Some(Request::TransferSecured),
            _ => None,
        }
    }

    fn open(&mut self) {
        self.ask(A, Request::Open { bind: BIND.into() });
        self.run();
    }

    /// Silence: only time passes. Whether this end waits for its peer, and what it waits in.
    fn check(&mut self, side: usize, steps: usize, visited: &mut BTreeSet<String>) {
        if self.ends[side].closed {
            return;
        }
        let states = self.ends[side].stack.states();
        let called = side == B && states[0] == "cotp Closed";
        let waits = called || states.iter().any(|s| WAITS.contains(&s.as_str()));
        visited.extend(states.iter().cloned());
        if !waits {
            return;
        }
        let place = format!("side {side} after step {steps} in {states:?}");
        assert!(self.ends[side].stack.deadline().is_some(), "no deadline: {place}");
        let start = self.now;
        let most = SETUP + SETUP + TRANSFER;
        for _ in 0..8 {
            let Some(at) = self.ends[side].stack.deadline() else { break };
            self.now = self.now.max(at);
            assert!(self.now <= start + most, "too long: {place}");
            self.handle(side, Input::Tick);
        }
        let end = &self.ends[side];
        assert!(end.closed, "not closed: {place} {:?}", end.stack.states());
        let over = |i: &&Indication| {
            matches!(
                i,
                Indication::Aborted { .. } | Indication::Refused { .. } | Indication::Released
            )
        };
        assert_eq!(end.indicated.iter().filter(over).count(), 1, "{place}: {:?}", end.indicated);
        if let Some(Indication::Aborted { detail, .. }) = end.indicated.iter().find(over) {
            assert!(detail.contains("X.2"), "no clause: {place}: {detail}");
        }
        self.now = start;
    }
}

fn transfer(content_length: u64) -> Request {
    let head = match content_length {
        0 => Bytes::from_static(&[0x80, 0]),
        n => [&[0x80, 0x84][..], &u32::try_from(n).unwrap().to_be_bytes()].concat().into(),
    };
    let payload = Payload { head, content_length, tail: Bytes::new() };
    Request::Transfer { payload, resume: None }
}

fn invoke(invoke: i64) -> Request {
    let argument = Payload {
        head: Bytes::from_static(&[0x04, 0x84, 0, 2, 0, 0]),
        content_length: 0x2_0000,
        tail: Bytes::new(),
    };
    Request::Invoke { invoke, syntax: msse(), operation: 3, argument }
}

type Scenario = (&'static str, fn() -> Config, fn(&mut World));

/// A checkpoint of 1 KiB and a window of 2: a transfer has many steps.
fn small_steps() -> Config {
    let mut config = p1();
    if let Service::Rtse(rtse) = &mut config.service {
        rtse.checkpoint_size = 1;
        rtse.window = 2;
        rtse.transfer_timeout = TRANSFER;
    }
    config
}

fn access() -> Config {
    Config { operation_timeout: TRANSFER, ..p3() }
}

const SCENARIOS: &[Scenario] = &[
    ("transfer and release", small_steps, |w| {
        w.open();
        w.ask(A, transfer(6_000));
        w.run();
        w.ask(A, Request::Release);
        w.run();
    }),
    ("a slow user", small_steps, |w| {
        w.habits.accepts = false;
        w.open();
    }),
    ("a bind refused", small_steps, |w| {
        w.habits.accepts = false;
        w.open();
        w.ask(B, Request::Refuse { reason: RefuseReason::Busy, bind_error: None });
        w.run();
    }),
    ("content not taken", small_steps, |w| {
        w.habits.supplies = false;
        w.open();
        w.ask(A, transfer(6_000));
        w.run();
    }),
    ("nothing stored", small_steps, |w| {
        w.habits.stores = false;
        w.open();
        w.ask(A, transfer(6_000));
        w.run();
    }),
    ("an end not secured", small_steps, |w| {
        w.habits.stores = false;
        w.open();
        w.ask(A, transfer(0));
        w.run();
    }),
    ("interrupted", small_steps, |w| {
        w.habits.stores = false;
        w.open();
        w.ask(A, transfer(6_000));
        w.run();
        w.ask(A, Request::Interrupt);
        w.ask(B, Request::Stored { octets: 1_500 });
        w.run();
        w.ask(B, Request::Stored { octets: 6_000 });
        w.run();
    }),
    ("content lost", small_steps, |w| {
        w.habits.supplies = false;
        w.open();
        w.ask(A, transfer(6_000));
        w.run();
        w.ask(A, Request::ContentFailed);
        w.run();
    }),
    ("a transfer refused", small_steps, |w| {
        w.habits.stores = false;
        w.open();
        w.ask(A, transfer(6_000));
        w.run();
        w.ask(B, Request::TransferRefused(AbortReason::PermanentProblem));
        w.run();
    }),
    ("the turn", small_steps, |w| {
        w.open();
        w.ask(B, Request::TurnPlease(0));
        w.run();
        w.ask(A, Request::TurnGive);
        w.run();
        w.ask(B, transfer(2_000));
        w.run();
        w.ask(B, Request::Abort(AbortReason::UserError));
        w.run();
    }),
    ("nonsense to the responder", small_steps, |w| {
        w.open();
        w.ends[B].inbox.push_back(Some(Bytes::from_static(&[3, 0, 0, 8, 3, 0x33, 1, 2])));
        w.run();
    }),
    ("nonsense to the initiator", small_steps, |w| {
        w.open();
        w.ends[A].inbox.push_back(Some(Bytes::from_static(&[3, 0, 0, 9, 2, 0xF0, 0x80, 99, 0])));
        w.run();
    }),
    ("operations", access, |w| {
        w.open();
        w.ask(A, invoke(1));
        w.run();
        let result = Payload::whole(&[5u8, 0][..]);
        w.ask(B, Request::Result { invoke: 1, operation: 3, result });
        w.run();
        w.ask(A, Request::Release);
        w.run();
    }),
    ("an operation not taken", access, |w| {
        w.habits.supplies = false;
        w.open();
        w.ask(A, invoke(1));
        w.run();
    }),
    ("releases that cross", access, |w| {
        w.open();
        w.ask(A, Request::Release);
        w.ask(B, Request::Release);
        w.run();
    }),
    ("releases that cross, in the other direction", access, |w| {
        w.open();
        w.ask(A, Request::Release);
        w.ask(B, Request::Release);
        while !w.ends[B].inbox.is_empty() && w.step() {
            w.deliver(B);
        }
        w.run();
    }),
    ("a release behind an operation", access, |w| {
        w.habits.supplies = false;
        w.open();
        w.ask(A, invoke(1));
        w.ask(A, Request::Release);
        w.run();
    }),
];

#[test]
fn every_wait_for_the_peer_has_a_deadline_and_silence_ends_it() {
    let mut visited = BTreeSet::new();
    for (name, config, scenario) in SCENARIOS {
        let mut steps = 0;
        loop {
            let mut left = steps;
            for side in [A, B] {
                let mut world = World::new(&config(), steps);
                scenario(&mut world);
                left = world.left;
                world.check(side, steps, &mut visited);
            }
            if left > 0 {
                break;
            }
            steps += 1;
            assert!(steps < 1_000, "{name} does not end");
        }
    }
    let missing: Vec<_> = WAITS.iter().filter(|w| !visited.contains(**w)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}\nseen: {visited:#?}");
}

/// The set-up has one bound: a peer that comes with its next octet just before each timer would
/// expire does not get beyond it.
#[test]
fn a_set_up_that_trickles_has_one_bound() {
    let mut world = World::new(&small_steps(), usize::MAX);
    world.ask(A, Request::Open { bind: BIND.into() });
    let start = world.now;
    // Each octet comes late enough that all of them take longer than the bound.
    let mut octets = VecDeque::new();
    while !world.ends[B].closed {
        octets.extend(world.ends[B].inbox.drain(..).flatten().flat_map(|b| b.to_vec()));
        world.now = world.now + Duration::from_millis(500);
        if world.ends[B].stack.deadline().is_some_and(|at| at <= world.now) {
            world.handle(B, Input::Tick);
        } else if let Some(octet) = octets.pop_front() {
            world.handle(B, Input::Bytes(&[octet]));
        }
        while !world.ends[A].inbox.is_empty() {
            world.deliver(A);
        }
        assert!(world.now <= start + SETUP + Duration::from_secs(1));
    }
    assert!(world.now >= start + SETUP);
    let [Indication::Aborted { detail, .. }] = &world.ends[B].indicated[..] else {
        panic!("{:?}", world.ends[B].indicated)
    };
    assert!(detail.contains("setup timeout"), "{detail}");
}

/// On an idle association too what has begun must end: its octets do not move the bound.
#[test]
fn a_packet_half_received_has_one_bound() {
    // A TPKT header, a whole DT that does not end its TSDU.
    for begun in [&[3][..], &[3, 0], &[3, 0, 0, 8, 2, 0xf0, 0x00, 1]] {
        for (config, side) in [(small_steps(), A), (small_steps(), B), (access(), B)] {
            let mut world = World::new(&config, usize::MAX);
            world.open();
            assert_eq!(world.ends[side].stack.deadline(), None, "idle");
            let bound = world.now + TRANSFER;
            for octet in begun {
                world.handle(side, Input::Bytes(&[*octet]));
                assert_eq!(world.ends[side].stack.deadline(), Some(bound));
                world.now = world.now + Duration::from_secs(1);
            }
            world.now = bound;
            world.handle(side, Input::Tick);
            let Some(Indication::Aborted { detail, .. }) = world.ends[side].indicated.last() else {
                panic!("{:?}", world.ends[side].indicated)
            };
            assert!(detail.contains("begun by the peer did not end within 120s"), "{detail}");
        }
    }
}

#[test]
fn a_packet_that_comes_whole_ends_its_bound() {
    let mut world = World::new(&small_steps(), usize::MAX);
    world.open();
    // PLEASE TOKENS of the data token, which means nothing here, twice.
    let please = [3, 0, 0, 12, 2, 0xf0, 0x80, 2, 3, 0x10, 1, 1];
    let (front, back) = please.split_at(5);
    world.handle(B, Input::Bytes(front));
    let first = world.ends[B].stack.deadline();
    world.now = world.now + Duration::from_secs(5);
    world.handle(B, Input::Bytes(&[back, front].concat()));
    assert_eq!(world.ends[B].stack.deadline(), first.map(|at| at + Duration::from_secs(5)));
    world.handle(B, Input::Bytes(back));
    assert_eq!(world.ends[B].stack.deadline(), None);
}

/// The SPDUs after one in the same segment are processed after our user has its indication: else
/// we would send what the later one forbids, and count the fault as our own.
#[test]
fn a_confirm_and_an_exception_in_one_segment() {
    let mut world = World::new(&small_steps(), usize::MAX);
    world.open();
    world.habits.stores = false;
    world.ask(A, transfer(10_000));
    world.run();
    assert!(world.ends[A].stack.states().contains(&"rtse Sta21".to_owned()), "the window is full");
    let confirm = [3, 0, 0, 14, 2, 0xf0, 0x80, 2, 0, 0x32, 3, 0x2a, 1, b'1'];
    let exception = [3, 0, 0, 14, 2, 0xf0, 0x80, 2, 0, 0x30, 3, 0x32, 1, 1];
    world.handle(A, Input::Bytes(&[confirm, exception, exception].concat()));
    let states = world.ends[A].stack.states();
    assert!(
        states.contains(&"session Sta05C".to_owned()),
        "{states:?} {:?}",
        world.ends[A].indicated
    );
    let ended = |i: &Indication| matches!(i, Indication::Aborted { .. });
    assert!(!world.ends[A].indicated.iter().any(ended), "{:?}", world.ends[A].indicated);
}

/// Our user's abort ends what there is, however little that is.
#[test]
fn an_abort_ends_the_connection_at_every_step() {
    for config in [small_steps(), access()] {
        for steps in 0.. {
            let mut ended = 0;
            for side in [A, B] {
                let mut world = World::new(&config, steps);
                world.open();
                let over = world.left > 0;
                world.left = usize::MAX;
                world.ask(side, Request::Abort(AbortReason::TemporaryProblem));
                let end = &world.ends[side];
                let place = format!("side {side} after step {steps}: {:?}", end.indicated);
                let aborted = |i: &&Indication| matches!(i, Indication::Aborted { .. });
                assert_eq!(end.indicated.iter().filter(aborted).count(), 1, "{place}");
                assert!(end.closed || end.stack.deadline().is_some(), "{place}");
                world.run();
                assert!(world.ends[side].closed, "{place}");
                ended += usize::from(over);
            }
            if ended > 0 {
                break;
            }
        }
    }
}

/// Where a line is slow, what the window lets us send takes longer than the timer: the octets that
/// the peer's transport takes are progress, and those that wait are none.
#[test]
fn octets_that_the_peer_takes_are_progress_and_those_that_wait_are_none() {
    type Habit = fn(&mut World);
    let cases: [(&str, Habit); 5] = [
        ("Sta20", |w| w.habits.supplies = false),
        ("Sta21", |w| w.habits.stores = false),
        ("Sta22", |w| w.habits.stores = false),
        ("Sta23", |_| {}),
        ("Sta24", |w| w.habits.supplies = false),
    ];
    for (state, habit) in cases {
        let mut world = World::new(&small_steps(), usize::MAX);
        world.open();
        habit(&mut world);
        assert_eq!(world.ends[A].stack.outstanding(), 0, "nothing is sent yet");
        world.ask(A, transfer(if state == "Sta22" { 500 } else { 60_000 }));
        match state {
            "Sta23" => {
                world.ask(A, Request::Interrupt);
                // The answer to the interrupt does not come.
                while !world.ends[A].stack.states().contains(&"rtse Sta23".to_owned()) {
                    let side = [A, B].into_iter().find(|s| !world.ends[*s].inbox.is_empty());
                    world.deliver(side.unwrap());
                }
            }
            "Sta24" => world.ask(A, Request::ContentFailed),
            _ => {}
        }
        let states = world.ends[A].stack.states();
        assert!(states.contains(&format!("rtse {state}")), "{states:?}");
        assert!(world.ends[A].stack.outstanding() > 10, "{state}");
        let mut taken = world.ends[A].stack.outstanding();
        let all = taken;
        // What was written before the transfer was taken long since.
        let least = least_progress(TRANSFER);
        for _ in 0..5.min((taken - 100) / least) {
            world.now = world.now + Duration::from_secs(119);
            taken -= least;
            let written = written(&world) - taken;
            world.handle(A, Input::Taken(written));
            assert_eq!(world.ends[A].stack.outstanding(), taken, "{state}");
            assert_eq!(world.ends[A].stack.deadline(), Some(world.now + TRANSFER), "{state}");
        }
        let at = world.ends[A].stack.deadline().unwrap();
        for _ in 0..5 {
            world.now = world.now + Duration::from_secs(1);
            taken -= 10;
            let written = written(&world) - taken;
            world.handle(A, Input::Taken(written));
            assert_eq!(world.ends[A].stack.outstanding(), taken, "{state}");
            assert_eq!(world.ends[A].stack.deadline(), Some(at), "{state}: too few");
        }
        for _ in 0..5 {
            world.now = world.now + Duration::from_secs(20);
            let written = written(&world) - taken;
            world.handle(A, Input::Taken(written));
            assert_eq!(world.ends[A].stack.deadline(), Some(at), "{state}: they wait");
        }
        assert!(taken > 0 && taken < all);
        world.now = at;
        world.handle(A, Input::Tick);
        let Some(Indication::Aborted { detail, .. }) = world.ends[A].indicated.last() else {
            panic!("{state}: {:?}", world.ends[A].indicated)
        };
        assert!(detail.contains(&format!("Timeout in {state}")), "{detail}");
        assert_eq!(world.ends[A].stack.outstanding(), 0, "nothing is awaited any more");
    }
}

#[test]
fn the_least_progress_is_what_any_line_carries_and_few_octets_add_up_to_it() {
    let of = |seconds| least_progress(Duration::from_secs(seconds));
    assert_eq!([0, 1, 15, 30, 60, 120, 86_400].map(of), [1, 2, 35, 70, 140, 256, 256]);
    let mut world = World::new(&small_steps(), usize::MAX);
    world.open();
    world.habits.stores = false;
    world.ask(A, transfer(60_000));
    let all = written(&world);
    let start = all - world.ends[A].stack.outstanding();
    world.handle(A, Input::Taken(start));
    for (taken, progress) in [(100, false), (200, false), (256, true), (257, false), (511, false)] {
        world.now = world.now + Duration::from_secs(10);
        world.handle(A, Input::Taken(start + taken));
        let moved = world.ends[A].stack.deadline() == Some(world.now + TRANSFER);
        assert_eq!(moved, progress, "{taken}");
    }
    world.now = world.now + Duration::from_secs(10);
    world.handle(A, Input::Taken(all - 1));
    assert_eq!(world.ends[A].stack.deadline(), Some(world.now + TRANSFER));
    world.now = world.now + Duration::from_secs(10);
    world.handle(A, Input::Taken(all));
    assert_eq!(world.ends[A].stack.deadline(), Some(world.now + TRANSFER), "all there was");
}

/// Octets that this end has written in all.
fn written(world: &World) -> u64 {
    world.ends[A].written
}

/// What the peer takes of an operation puts the end of the wait for its answer off; what it takes of
/// our answers does not, or it could wait for ever.
#[test]
fn the_wait_for_an_answer_is_not_prolonged_by_other_octets() {
    let mut world = World::new(&access(), usize::MAX);
    world.open();
    world.ask(A, invoke(1));
    world.run();
    let all = written(&world);
    world.now = world.now + Duration::from_secs(100);
    world.handle(A, Input::Taken(all - 10));
    assert_eq!(world.ends[A].stack.outstanding(), 10);
    let at = world.now + TRANSFER;
    assert_eq!(world.ends[A].stack.deadline(), Some(at));
    world.ask(B, invoke(7));
    world.run();
    world
        .ask(A, Request::Result { invoke: 7, operation: 3, result: Payload::whole(&[5u8, 0][..]) });
    world.now = world.now + Duration::from_secs(10);
    let now = world.now;
    world.handle(A, Input::Taken(all));
    assert_eq!(world.ends[A].stack.deadline(), Some(now + TRANSFER), "the last of the argument");
    assert_eq!(world.ends[A].stack.outstanding(), 0);
    world.now = world.now + Duration::from_secs(10);
    assert!(written(&world) > all);
    let more = written(&world);
    world.handle(A, Input::Taken(more));
    assert_eq!(world.ends[A].stack.deadline(), Some(now + TRANSFER), "an answer of ours");
}

/// For peers that fail at a release: nothing is sent, and nothing taken any more.
#[test]
fn a_connection_is_closed_without_a_release() {
    let now = Instant(0);
    let mut association = Association::new(p1(), Role::Initiator);
    association.handle(now, Input::Request(Request::Close));
    assert!(matches!(association.poll(), Some(Output::Indication(Indication::Released))));
    assert!(matches!(association.poll(), Some(Output::Close)));
    association.handle(now, Input::Eof);
    assert!(association.poll().is_none() && association.deadline().is_none());
}
