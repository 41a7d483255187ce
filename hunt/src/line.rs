//! The line of a link, which is slow or stalls where a world has it so.

use crate::lie::{self, Frames};
use crate::world::Lie;
use base::Instant;
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use testkit::{Wire, WireArrival, WireMoment};

/// The state of a line, which all its connections share.
#[derive(Debug)]
pub(crate) struct Line {
    /// Delay in each direction.
    pub(crate) latency: Duration,
    /// Octets a second in each direction of each connection.
    pub(crate) rate: u64,
    /// Nothing arrives before.
    pub(crate) stalled_until: Instant,
    /// Of 100 pieces so many are lost, and sent again.
    pub(crate) loss: u8,
    /// Of the next so many pieces a bit changes.
    pub(crate) corrupts: u32,
    /// The next PDUs that these fit are replaced.
    pub(crate) lies: VecDeque<Lie>,
    /// Octets written so far, in both directions.
    pub(crate) written: u64,
    /// Connections so far.
    pub(crate) made: u64,
}

impl Line {
    /// A line of this delay in each direction, and this rate in octets a second.
    pub(crate) fn new(latency: Duration, rate: u64) -> Line {
        let stalled_until = Instant(0);
        Line {
            latency,
            rate,
            stalled_until,
            loss: 0,
            corrupts: 0,
            lies: VecDeque::new(),
            written: 0,
            made: 0,
        }
    }
}

/// A line that connections share.
pub(crate) type Shared = Rc<RefCell<Line>>;

/// Most octets of one arrival.
const PIECE: usize = 1_400;

/// After so long TCP sends again what was lost (RFC 6298 has 1 s, Linux this); at most for so long here.
const RTO: Duration = Duration::from_millis(200);
const MAX_LATE: Duration = Duration::from_secs(20);

/// More content is read while fewer octets wait.
const ROOM: usize = 32 << 10;

/// One direction of a connection over a line.
#[derive(Debug)]
pub(crate) struct LineWire {
    line: Shared,
    waits: VecDeque<(Instant, WireArrival)>,
    octets: usize,
    /// When the line is free for the next octets.
    free: Instant,
    taken: u64,
    frames: Frames,
}

impl LineWire {
    /// A connection over this line.
    pub(crate) fn new(line: Shared) -> LineWire {
        line.borrow_mut().made += 1;
        LineWire {
            line,
            waits: VecDeque::new(),
            octets: 0,
            free: Instant(0),
            taken: 0,
            frames: Frames::default(),
        }
    }

    /// What goes out for these octets: mostly themselves, at once. While there are lies, only whole TPKTs.
    fn after_lies(&mut self, octets: &[u8]) -> Bytes {
        let mut all = Vec::new();
        for frame in self.frames.push(octets) {
            let mut line = self.line.borrow_mut();
            let other = line.lies.front().and_then(|lie| lie::instead(*lie, &frame));
            if other.is_some() {
                line.lies.pop_front();
            }
            all.push(other.unwrap_or(frame));
        }
        all.concat().into()
    }

    /// How much later a piece comes that is lost so often: TCP sends it again, each time after twice as long.
    fn lost(&self, moment: &mut WireMoment<'_>) -> Duration {
        let (loss, latency) = (self.line.borrow().loss, self.line.borrow().latency);
        let (mut late, mut again) = (Duration::ZERO, RTO.max(latency * 2));
        while loss > 0 && moment.rng.below(100) < u64::from(loss) && late < MAX_LATE {
            late += again;
            again *= 2;
        }
        late
    }

    fn push(&mut self, now: Instant, arrival: WireArrival, octets: u64) {
        let line = self.line.borrow();
        let takes = Duration::from_micros(octets * 1_000_000 / line.rate.max(1));
        self.free = self.free.max(now) + takes;
        let at = (self.free + line.latency).max(self.waits.back().map_or(now, |(at, _)| *at));
        drop(line);
        self.waits.push_back((at, arrival));
    }
}

impl Wire for LineWire {
    fn write(&mut self, moment: WireMoment<'_>, octets: Bytes) {
        let mut rest = self.after_lies(&octets);
        self.octets += rest.len();
        self.line.borrow_mut().written += rest.len() as u64;
        while !rest.is_empty() {
            let most = rest.len().min(PIECE) as u64;
            let cut = match moment.rng.below(4) {
                0 => 1 + moment.rng.below(most.min(40)) as usize,
                _ => most as usize,
            };
            let piece = rest.split_to(cut);
            let mut moment =
                WireMoment { now: moment.now, latency: moment.latency, rng: moment.rng };
            self.free = self.free.max(moment.now) + self.lost(&mut moment);
            self.push(moment.now, WireArrival::Octets(piece), cut as u64);
        }
    }

    fn close(&mut self, moment: WireMoment<'_>) {
        self.push(moment.now, WireArrival::End, 0);
    }

    fn deadline(&self) -> Option<Instant> {
        let stalled_until = self.line.borrow().stalled_until;
        self.waits.front().map(|(at, _)| (*at).max(stalled_until))
    }

    fn poll(&mut self, now: Instant) -> Option<WireArrival> {
        self.deadline().filter(|at| *at <= now)?;
        let (_, arrival) = self.waits.pop_front()?;
        let WireArrival::Octets(octets) = arrival else { return Some(arrival) };
        self.octets -= octets.len();
        self.taken += octets.len() as u64;
        let mut line = self.line.borrow_mut();
        if line.corrupts == 0 {
            return Some(WireArrival::Octets(octets));
        }
        line.corrupts -= 1;
        let mut changed = octets.to_vec();
        // Somewhere else each time.
        let place = self.taken.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let at = (place % changed.len() as u64) as usize;
        changed[at] ^= 1 << (place % 8);
        Some(WireArrival::Octets(changed.into()))
    }

    fn is_full(&self) -> bool {
        self.octets >= ROOM
    }

    fn measure(&mut self) -> Option<u64> {
        Some(self.taken)
    }
}
