//! Two associations with a pipe between them that delays, cuts and closes, in virtual time.

use base::Instant;
use bytes::Bytes;
use osi::api::{Config, Indication, Input, Output, Payload, Request, Role, Selectors};
use osi::profiles;
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use std::collections::VecDeque;
use std::time::Duration;

/// Bind elements, as the user hands them in.
pub(crate) const ARGUMENT: &[u8] = &[0xa1, 5, 0x80, 3, b'o', b'n', b'e'];
pub(crate) const RESULT: &[u8] = &[0xa1, 5, 0x80, 3, b't', b'w', b'o'];

/// One octet of the pulled content.
pub(crate) fn content_octet(offset: u64) -> u8 {
    (offset.wrapping_mul(2_654_435_761) >> 16) as u8
}

/// A unit as a user of RTSE or ROSE has it: a constructed element around an OCTET STRING whose
/// contents are pulled.
pub(crate) fn unit(content: u64) -> Payload {
    let mut inner = Vec::new();
    let length = base::ber::Length::Definite(content);
    base::ber::Header::write(base::ber::universal::OCTET_STRING, false, length, &mut inner);
    let mut head = Vec::new();
    let length = base::ber::Length::Definite(inner.len() as u64 + content + 2);
    base::ber::Header::write(base::ber::Tag::context(0), true, length, &mut head);
    head.extend(inner);
    Payload { head: head.into(), content_length: content, tail: Bytes::from_static(&[5, 0]) }
}

/// Octet `at` of a unit.
pub(crate) fn unit_octet(unit: &Payload, at: u64) -> u8 {
    let head = unit.head.len() as u64;
    if at < head {
        unit.head[at as usize]
    } else if at < head + unit.content_length {
        content_octet(at - head)
    } else {
        unit.tail[(at - head - unit.content_length) as usize]
    }
}

/// The indications of a side, data joined.
#[derive(Clone, Debug)]
pub(crate) enum Notified {
    Indication(Indication),
    /// Octets since the last other indication but for checkpoints, and whether the last was among
    /// them.
    Data {
        octets: Vec<u8>,
        last: bool,
    },
}

/// One end: its association and a user with a few habits.
pub(crate) struct Side {
    pub(crate) stack: Association,
    pub(crate) indicated: Vec<Notified>,
    pub(crate) closed: bool,
    /// Answers `Open` by itself.
    pub(crate) accepts: bool,
    /// Answers checkpoints and ends by itself.
    pub(crate) stores: bool,
    /// Answers `NeedContent` by itself.
    pub(crate) supplies: bool,
    /// Keeps data; else only counts and checks it against this unit.
    pub(crate) expects: Option<Payload>,
    pub(crate) received: u64,
    pub(crate) pulled: Vec<(u64, usize)>,
    /// At the last checkpoint it answered: octets, and what survives the end of its process.
    pub(crate) noted: Option<(u64, Vec<u8>)>,
    waiting: VecDeque<Request>,
}

impl Side {
    pub(crate) fn new(config: Config, role: Role) -> Side {
        Side {
            stack: Association::new(config, role),
            indicated: Vec::new(),
            closed: false,
            accepts: true,
            stores: true,
            supplies: true,
            expects: None,
            received: 0,
            pulled: Vec::new(),
            noted: None,
            waiting: VecDeque::new(),
        }
    }

    fn receive(&mut self, indication: Indication) {
        let answer = self.answer(indication);
        self.waiting.extend(answer);
    }

    /// Takes an indication; what its user requests then.
    pub(crate) fn answer(&mut self, indication: Indication) -> Option<Request> {
        let answer = match &indication {
            Indication::Open { .. } if self.accepts => {
                Some(Request::Accept { bind: Bytes::from_static(RESULT) })
            }
            Indication::NeedContent { offset, max } => {
                self.pulled.push((*offset, *max));
                let end = offset + *max as u64;
                let content: Vec<u8> = (*offset..end).map(content_octet).collect();
                self.supplies.then(|| Request::Content(content.into()))
            }
            Indication::Checkpoint { octets } if self.stores => {
                let state = self.stack.at_checkpoint(*octets);
                self.noted = state.map(|state| (*octets, state.encode()));
                Some(Request::Stored { octets: *octets })
            }
            Indication::TransferEnd if self.stores => Some(Request::TransferSecured),
            _ => None,
        };
        match indication {
            Indication::Data { bytes, last } => self.data(&bytes, last),
            Indication::NeedContent { .. } => {}
            other => self.indicated.push(Notified::Indication(other)),
        }
        answer
    }

    fn data(&mut self, bytes: &[u8], last: bool) {
        if let Some(unit) = &self.expects {
            for octet in bytes {
                assert_eq!(*octet, unit_octet(unit, self.received), "at {}", self.received);
                self.received += 1;
            }
            if last {
                assert_eq!(self.received, unit.length());
            }
            return;
        }
        self.received += bytes.len() as u64;
        let open = self.indicated.iter_mut().rev().find_map(|t| match t {
            Notified::Indication(Indication::Checkpoint { .. }) => None,
            other => Some(other),
        });
        if let Some(Notified::Data { octets, last: ended @ false }) = open {
            octets.extend_from_slice(bytes);
            *ended = last;
        } else {
            self.indicated.push(Notified::Data { octets: bytes.to_vec(), last });
        }
    }

    /// Whether there was such an indication.
    pub(crate) fn has_indication(&self, wanted: impl Fn(&Indication) -> bool) -> bool {
        self.find(wanted).is_some()
    }

    /// The last indication like this.
    pub(crate) fn find(&self, wanted: impl Fn(&Indication) -> bool) -> Option<Indication> {
        self.indicated.iter().rev().find_map(|t| match t {
            Notified::Indication(i) if wanted(i) => Some(i.clone()),
            _ => None,
        })
    }

    pub(crate) fn count(&self, wanted: impl Fn(&Indication) -> bool) -> usize {
        self.indicated.iter().filter(|t| matches!(t, Notified::Indication(i) if wanted(i))).count()
    }

    /// All data indicated, joined.
    pub(crate) fn all_data(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for indicated in &self.indicated {
            if let Notified::Data { octets, .. } = indicated {
                all.extend(octets);
            }
        }
        all
    }
}

/// Octets in transit to one side.
#[derive(Default)]
struct Wire {
    queue: VecDeque<(Instant, Option<Vec<u8>>)>,
    carried: u64,
}

/// The behaviour of the pipe between the two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pipe {
    pub(crate) delay: Duration,
    /// Largest piece delivered at once.
    pub(crate) piece: usize,
    /// The connection is lost after so many octets, both directions counted.
    pub(crate) lost_after: Option<u64>,
}

impl Default for Pipe {
    fn default() -> Pipe {
        Pipe { delay: Duration::from_millis(20), piece: usize::MAX, lost_after: None }
    }
}

pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) pipe: Pipe,
    /// Initiator and responder.
    pub(crate) sides: [Side; 2],
    wires: [Wire; 2],
    carried: u64,
    lost: bool,
    /// What was delivered: to which side, which octets.
    pub(crate) transcript: Vec<(usize, Vec<u8>)>,
    pub(crate) record: bool,
    /// Octet number so and so to this side gets this value.
    pub(crate) damage: Option<(usize, usize, u8)>,
}

pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;

pub(crate) fn reference(name: &[u8]) -> ConnectionReference {
    let mut user = vec![4, name.len() as u8];
    user.extend_from_slice(name);
    ConnectionReference {
        user: user.into(),
        common: Bytes::from_static(b"\x17\x0d260102030405Z"),
        additional: Bytes::new(),
    }
}

pub(crate) fn p1() -> Config {
    let config = profiles::p1(Selectors::default(), Selectors::default(), reference(b"assoc-1"));
    Config { mode: crate::MODE, ..config }
}

pub(crate) fn p3() -> Config {
    profiles::p3(Selectors::default(), Selectors::default(), reference(b"assoc-1"))
}

/// Changes the RTSE parameters of a configuration.
pub(crate) fn rtse(
    mut config: Config,
    change: impl FnOnce(&mut osi::api::RtseParameters),
) -> Config {
    if let osi::api::Service::Rtse(parameters) = &mut config.service {
        change(parameters);
    }
    config
}

impl Pair {
    pub(crate) fn new(initiator: Config, responder: Config) -> Pair {
        Pair {
            now: Instant(1_000_000),
            pipe: Pipe::default(),
            sides: [Side::new(initiator, Role::Initiator), Side::new(responder, Role::Responder)],
            wires: [Wire::default(), Wire::default()],
            carried: 0,
            lost: false,
            transcript: Vec::new(),
            record: false,
            damage: None,
        }
    }

    /// Opened.
    pub(crate) fn open(initiator: Config, responder: Config) -> Pair {
        let mut pair = Pair::new(initiator, responder);
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run();
        assert!(
            pair.sides[A].has_indication(|i| matches!(i, Indication::Opened { .. })),
            "{}",
            pair.log()
        );
        pair
    }

    pub(crate) fn log(&self) -> String {
        format!("A: {:#?}\nB: {:#?}", self.sides[A].indicated, self.sides[B].indicated)
    }

    /// A request, and what it leads to at this side at once.
    pub(crate) fn ask(&mut self, side: usize, request: Request) {
        self.handle(side, Input::Request(request));
    }

    fn handle(&mut self, side: usize, input: Input<'_>) {
        let now = self.now;
        self.sides[side].stack.handle(now, input);
        loop {
            self.drain(side);
            let Some(request) = self.sides[side].waiting.pop_front() else { break };
            self.sides[side].stack.handle(now, Input::Request(request));
        }
    }

    fn drain(&mut self, side: usize) {
        while let Some(output) = self.sides[side].stack.poll() {
            match output {
                Output::Send(bytes) => self.send(side, &bytes),
                Output::Close => {
                    self.sides[side].closed = true;
                    self.wires[1 - side].queue.push_back((self.now + self.pipe.delay, None));
                }
                Output::Indication(indication) => self.sides[side].receive(indication),
            }
        }
    }

    fn send(&mut self, from: usize, bytes: &[u8]) {
        let room = self.pipe.lost_after.map_or(u64::MAX, |n| n - self.carried.min(n));
        let fits = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        let at = self.now + self.pipe.delay;
        let mut bytes = bytes.to_vec();
        if let Some((side, place, value)) = self.damage
            && side == 1 - from
            && let Some(octet) = (place as u64)
                .checked_sub(self.wires[side].carried)
                .and_then(|at| bytes.get_mut(at as usize))
        {
            *octet = value;
        }
        for piece in bytes[..fits].chunks(self.pipe.piece.max(1)) {
            self.wires[1 - from].queue.push_back((at, Some(piece.to_vec())));
        }
        self.wires[1 - from].carried += fits as u64;
        self.carried += fits as u64;
        if fits < bytes.len() && !self.lost {
            self.lost = true;
            self.wires[A].queue.push_back((at, None));
            self.wires[B].queue.push_back((at, None));
        }
    }

    /// Hands octets to a side at once.
    pub(crate) fn deliver_to(&mut self, side: usize, bytes: &[u8]) {
        self.handle(side, Input::Bytes(bytes));
    }

    /// Octets that went to this side.
    pub(crate) fn carried_to(&self, side: usize) -> u64 {
        self.wires[side].carried
    }

    /// Delivers until nothing is in transit. Timers do not run.
    pub(crate) fn run(&mut self) {
        while self.deliver() {}
    }

    fn deliver(&mut self) -> bool {
        let first = |w: &Wire| w.queue.front().map(|(at, _)| *at);
        let side = match (first(&self.wires[A]), first(&self.wires[B])) {
            (None, None) => return false,
            (Some(a), Some(b)) if a <= b => A,
            (Some(_), None) => A,
            _ => B,
        };
        let (at, piece) = self.wires[side].queue.pop_front().unwrap();
        self.now = self.now.max(at);
        if self.sides[side].closed {
            return true;
        }
        match piece {
            Some(bytes) => {
                if self.record {
                    self.transcript.push((side, bytes.clone()));
                }
                self.handle(side, Input::Bytes(&bytes));
            }
            None => self.handle(side, Input::Eof),
        }
        true
    }

    /// Delivers and lets timers run until both ends are at rest for good or `limit` has passed.
    pub(crate) fn run_for(&mut self, limit: Duration) {
        let end = self.now + limit;
        loop {
            self.run();
            let next = |s: &Side| s.stack.deadline();
            let due = [next(&self.sides[A]), next(&self.sides[B])].into_iter().flatten().min();
            let Some(due) = due.filter(|d| *d <= end) else { break };
            self.now = self.now.max(due);
            for side in [A, B] {
                if self.sides[side].stack.deadline().is_some_and(|d| d <= self.now) {
                    self.handle(side, Input::Tick);
                }
            }
        }
        self.now = self.now.max(end);
    }

    /// Cuts the connection now.
    pub(crate) fn lose(&mut self) {
        for wire in &mut self.wires {
            wire.queue.clear();
        }
        for side in [A, B] {
            self.handle(side, Input::Eof);
        }
    }
}
