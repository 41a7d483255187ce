//! Two ends, the octets between them, and all that can happen to both.

use crate::fingerprint::{digest, fingerprint, states};
use crate::search::Model;
use base::Instant;
use std::fmt::Debug;
use std::rc::Rc;

/// Most steps until both ends are over, once one aborts or the connection is cut.
const MAX_STEPS: usize = 64;

/// Whom an end waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// For nobody: something may begin, or all is over.
    Nobody,
    /// For its own user.
    User,
    /// For the other end.
    Peer,
}

/// One end: a machine with its user.
pub trait End: Clone + Debug {
    /// A request of the user.
    type Act: Clone + Debug + PartialEq;
    /// The layers whose automata its text has, from the outside in.
    const LAYERS: &'static [&'static str];

    /// What the user may request.
    fn acts(&self) -> Vec<Self::Act>;
    /// The user requests; `false` where the machine forbids it.
    fn act(&mut self, now: Instant, act: &Self::Act) -> bool;
    /// Whether the request may end the association other than by a release.
    fn is_disturbing(act: &Self::Act) -> bool;
    /// The request that aborts.
    const ABORT: Self::Act;
    /// Octets arrive.
    fn bytes(&mut self, now: Instant, octets: &[u8]);
    /// The connection is at its end.
    fn eof(&mut self, now: Instant);
    /// The deadline passed.
    fn tick(&mut self, now: Instant);
    /// The deadline.
    fn deadline(&self) -> Option<Instant>;
    /// Takes the octets that it writes.
    fn written(&mut self) -> Vec<u8>;
    /// Whether it closed the connection.
    fn closed(&self) -> bool;
    /// Whether its user knows that all is over.
    fn ended(&self) -> bool;
    /// Whether its user knows of the connection.
    fn begun(&self) -> bool {
        true
    }
    /// Whether its user knows that it was released in order.
    fn released(&self) -> bool;
    /// Whom it waits for.
    fn waits(&self) -> Waits;
    /// What its user found wrong.
    fn fault(&self) -> Option<String>;
    /// Octets held, and the most that it may hold in any state.
    fn held(&self) -> usize;
    /// The most.
    fn most_held(&self) -> usize;
    /// Successes that its user was given, and successes that its user gave the other's.
    fn successes(&self) -> (usize, usize) {
        (0, 0)
    }
    /// What can go on once both ends are over, on another connection.
    fn again(&self) -> Option<Self> {
        None
    }
    /// The same for ends that behave in the same way.
    fn fingerprint(&self, now: Instant) -> u128 {
        fingerprint(self, now)
    }
    /// Named states beside those of the automata.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A fault that is put in, to prove that it is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// Packets to this end that have these octets vanish.
    Lost(usize, &'static [u8]),
    /// The timers of this end never expire.
    Stopped(usize),
    /// This end takes no abort, and does not see the end of the connection.
    Deaf(usize),
}

#[derive(Clone, Debug)]
struct Side<E> {
    end: E,
    now: Instant,
    /// Its digest, where that is known.
    print: Option<u128>,
}

/// Octets in transit to one end.
#[derive(Clone, Debug, Default)]
struct Wire {
    octets: Vec<u8>,
    /// After them, the connection ends.
    ends: bool,
}

/// A state: both ends and all octets between them.
#[derive(Clone, Debug)]
pub struct Pair<E> {
    sides: [Rc<Side<E>>; 2],
    wires: [Rc<Wire>; 2],
    cut: bool,
    /// Something other than a release may end it.
    troubled: bool,
    /// Garbage may still come.
    garbage: bool,
    /// Further connections that may be made.
    further: usize,
    /// No deadline passes and no garbage comes.
    calm: bool,
    planted: Planted,
}

/// A move.
#[derive(Clone, Debug, PartialEq)]
pub enum Move<A> {
    /// The user of this end requests.
    Act(usize, A),
    /// The next packet arrives at this end, or the end of the connection.
    Deliver(usize),
    /// This end's deadline passes.
    Tick(usize),
    /// The connection is cut: what is in flight is lost.
    Cut,
    /// This end notices the cut.
    Notice(usize),
    /// An SPDU that nobody knows arrives at this end.
    Garbage(usize),
    /// Both ends are over and go on, on another connection.
    Again,
}

/// A TPKT with a DT of X.224 whose SPDU has an unknown identifier.
const GARBAGE: &[u8] = &[3, 0, 0, 9, 2, 0xF0, 0x80, 0xFF, 0];

/// A DT of X.224 with the ABORT SPDU.
const ABORT: &[u8] = &[2, 0xF0, 0x80, 0x19];

impl<E: End> Pair<E> {
    /// Two ends on a connection just made.
    pub fn new(initiator: E, responder: E) -> Pair<E> {
        let side = |end: E| {
            let now = Instant(1_000_000);
            Rc::new(Side { end, now, print: None })
        };
        Pair {
            sides: [side(initiator), side(responder)],
            wires: [Rc::default(), Rc::default()],
            cut: false,
            troubled: false,
            garbage: true,
            further: 0,
            calm: false,
            planted: Planted::Nothing,
        }
    }

    /// Without moves of timers and without garbage.
    #[must_use]
    pub fn calm(mut self) -> Pair<E> {
        (self.calm, self.garbage) = (true, false);
        self
    }

    /// With so many further connections once both ends are over.
    #[must_use]
    pub fn further(mut self, further: usize) -> Pair<E> {
        self.further = further;
        self
    }

    /// With a fault put in.
    #[must_use]
    pub fn planted(mut self, planted: Planted) -> Pair<E> {
        self.planted = planted;
        self
    }

    /// After these moves, in which nothing is broken.
    ///
    /// # Errors
    /// What is broken on the path, or a move that cannot be made.
    pub fn played(mut self, moves: &[Move<E::Act>]) -> Result<Pair<E>, String> {
        for step in moves {
            if !self.moves().contains(step) {
                return Err(format!("{step:?} cannot be made: {:?}", self.moves()));
            }
            self = self.after(step).ok_or_else(|| format!("{step:?} is not allowed"))?;
            self.check()?;
        }
        Ok(self)
    }

    /// After this, and what it leads to on its own.
    ///
    /// # Errors
    /// As [`Pair::played`].
    pub fn settled(self, step: Move<E::Act>) -> Result<Pair<E>, String> {
        let mut pair = self.played(&[step])?;
        while let Some(side) = [0, 1].into_iter().find(|side| pair.arrives(*side)) {
            pair = pair.played(&[Move::Deliver(side)])?;
        }
        Ok(pair)
    }

    /// The machine and user of an end.
    pub fn end(&self, side: usize) -> &E {
        &self.sides[side].end
    }

    /// An end takes something; what it writes is in transit then.
    fn touch(&mut self, side: usize, what: impl FnOnce(&mut E, Instant) -> bool) -> bool {
        let this = Rc::make_mut(&mut self.sides[side]);
        let allowed = what(&mut this.end, this.now);
        let written = this.end.written();
        this.print = None;
        let closed = this.end.closed();
        let lost = self.cut || self.sides[1 - side].end.closed();
        if !lost && !written.is_empty() {
            Rc::make_mut(&mut self.wires[1 - side]).octets.extend(written);
        }
        if closed {
            self.wires[side] = Rc::default();
            if !lost {
                Rc::make_mut(&mut self.wires[1 - side]).ends = true;
            }
        }
        allowed
    }

    /// Keeps the digests of the ends.
    fn digested(&mut self) {
        for side in self.sides.iter_mut().filter(|side| side.print.is_none()) {
            let side = Rc::make_mut(side);
            side.print = Some(side.end.fingerprint(side.now));
        }
    }

    /// Whether something arrives at this end.
    fn arrives(&self, side: usize) -> bool {
        !self.wires[side].octets.is_empty() || self.wires[side].ends
    }

    fn deliver(&mut self, side: usize) {
        let wire = Rc::make_mut(&mut self.wires[side]);
        if wire.octets.is_empty() {
            wire.ends = false;
            if self.planted == Planted::Deaf(side) {
                return;
            }
            self.touch(side, |end, now| {
                end.eof(now);
                true
            });
            return;
        }
        let length = match wire.octets.get(2..4) {
            Some(length) => usize::from(u16::from_be_bytes([length[0], length[1]])),
            None => wire.octets.len(),
        };
        let rest = wire.octets.split_off(length.clamp(1, wire.octets.len()));
        let packet = std::mem::replace(&mut wire.octets, rest);
        let lost = match self.planted {
            Planted::Lost(to, octets) if to == side => Some(octets),
            Planted::Deaf(to) if to == side => Some(ABORT),
            _ => None,
        };
        if let Some(octets) = lost
            && packet.windows(octets.len()).any(|part| part == octets)
        {
            return;
        }
        self.touch(side, |end, now| {
            end.bytes(now, &packet);
            true
        });
    }

    fn deadline(&self, side: usize) -> Option<Instant> {
        let end = &self.sides[side].end;
        end.deadline().filter(|_| !end.closed() && self.planted != Planted::Stopped(side))
    }

    fn tick(&mut self, side: usize) {
        let Some(at) = self.deadline(side) else { return };
        let this = Rc::make_mut(&mut self.sides[side]);
        this.now = this.now.max(at);
        self.touch(side, |end, now| {
            end.tick(now);
            true
        });
    }

    fn cut(&mut self) {
        self.cut = true;
        self.wires = [Rc::default(), Rc::default()];
    }

    fn notices(&self, side: usize) -> bool {
        self.cut && !self.sides[side].end.closed()
    }

    fn notice(&mut self, side: usize) {
        self.touch(side, |end, now| {
            end.eof(now);
            true
        });
    }

    fn is_over(&self) -> bool {
        self.sides.iter().all(|side| side.end.closed())
    }

    /// The state in which all goes on, once both ends are over.
    fn again(&self) -> Option<Pair<E>> {
        let further = self.further.checked_sub(1).filter(|_| self.is_over())?;
        let [a, b] = [self.end(0).again()?, self.end(1).again()?];
        let mut pair = Pair::new(a, b).further(further).planted(self.planted);
        (pair.troubled, pair.garbage, pair.calm) = (true, false, self.calm);
        Some(pair)
    }

    /// All that is in flight arrives, and nothing else happens. Whether that ends.
    fn settle(&mut self) -> bool {
        for _ in 0..MAX_STEPS {
            match [0, 1].into_iter().find(|side| self.arrives(*side)) {
                Some(side) => self.deliver(side),
                None => return true,
            }
        }
        false
    }

    /// Everything arrives, every cut is noticed and every deadline passes. Whether all comes to rest.
    fn run_out(&mut self) -> bool {
        for _ in 0..MAX_STEPS {
            let side = |is: &dyn Fn(usize) -> bool| [0, 1].into_iter().find(|side| is(*side));
            if let Some(side) = side(&|side| self.arrives(side)) {
                self.deliver(side);
            } else if let Some(side) = side(&|side| self.notices(side)) {
                self.notice(side);
            } else if let Some(side) = side(&|side| self.deadline(side).is_some()) {
                self.tick(side);
            } else {
                return true;
            }
        }
        false
    }
}

// What has to hold.
impl<E: End> Pair<E> {
    /// What holds in the state by itself.
    fn check_here(&self) -> Result<(), String> {
        for (side, name) in ["A", "B"].into_iter().enumerate() {
            let end = self.end(side);
            if let Some(fault) = end.fault() {
                return Err(format!("{name}: {fault}"));
            }
            if end.closed() && end.begun() && !end.ended() {
                return Err(format!("{name} closed the connection, and its user knows no end"));
            }
            if end.held() > end.most_held() {
                return Err(format!("{name} holds {} octets", end.held()));
            }
            let (given, _) = end.successes();
            let (_, gave) = self.end(1 - side).successes();
            if given > gave {
                return Err(format!("{name} has {given} successes, and the other gave {gave}"));
            }
        }
        let released = self.sides.iter().all(|side| side.end.released());
        if self.is_over() && !self.troubled && !released {
            return Err("nothing but a release, and not both were released".to_owned());
        }
        Ok(())
    }

    /// As long as nothing disturbs, nobody needs a timer: all that is awaited comes.
    fn check_undisturbed(&self) -> Result<(), String> {
        let mut pair = self.clone();
        if !pair.settle() {
            return Err("packets without end".to_owned());
        }
        pair.check_here()?;
        for (side, name) in ["A", "B"].into_iter().enumerate() {
            let (this, other) = (pair.end(side), pair.end(1 - side));
            if this.waits() == Waits::Peer && other.waits() != Waits::User {
                return Err(format!("{name} waits for its peer, and nothing of the peer is due"));
            }
        }
        Ok(())
    }

    /// With a peer that does nothing more, timers end every wait.
    fn check_alone(&self, side: usize) -> Result<(), String> {
        let mut pair = self.clone();
        pair.cut();
        let mut ticks = 0;
        while pair.deadline(side).is_some() && ticks < MAX_STEPS {
            pair.tick(side);
            ticks += 1;
        }
        pair.check_here()?;
        let name = ["A", "B"][side];
        if pair.deadline(side).is_some() {
            return Err(format!("{name} alone: deadlines without end"));
        }
        if pair.end(side).waits() == Waits::Peer {
            return Err(format!("{name} waits for a peer that is gone, and has no deadline"));
        }
        if pair.end(side).ended() && !pair.end(side).closed() {
            return Err(format!("{name} is at its end, and its connection stays"));
        }
        Ok(())
    }

    /// An abort of either user, and a cut that both notice, end both.
    fn check_end(&self, what: &str, mut pair: Pair<E>) -> Result<(), String> {
        pair.troubled = true;
        if !pair.run_out() {
            return Err(format!("after {what}: steps without end"));
        }
        pair.check_here().map_err(|e| format!("after {what}: {e}"))?;
        if !pair.is_over() {
            let [a, b] = [0, 1].map(|side| pair.end(side).closed());
            return Err(format!("after {what}: A closed {a}, B closed {b}"));
        }
        Ok(())
    }
}

impl<E: End> Model for Pair<E> {
    type Move = Move<E::Act>;

    fn moves(&self) -> Vec<Self::Move> {
        let mut moves = Vec::new();
        if self.is_over() {
            return if self.further > 0 { vec![Move::Again] } else { moves };
        }
        for side in [0, 1] {
            let end = self.end(side);
            if end.closed() {
                continue;
            }
            if self.arrives(side) {
                moves.push(Move::Deliver(side));
            }
            if self.notices(side) {
                moves.push(Move::Notice(side));
            }
            if self.deadline(side).is_some() && !self.calm {
                moves.push(Move::Tick(side));
            }
            moves.extend(end.acts().into_iter().map(|act| Move::Act(side, act)));
            if self.garbage && !self.cut {
                moves.push(Move::Garbage(side));
            }
        }
        if !self.cut {
            moves.push(Move::Cut);
        }
        moves
    }

    fn after(&self, step: &Self::Move) -> Option<Self> {
        let mut pair = self.clone();
        match step {
            Move::Act(side, act) => {
                pair.troubled |= E::is_disturbing(act);
                if !pair.touch(*side, |end, now| end.act(now, act)) {
                    return None;
                }
            }
            Move::Deliver(side) => pair.deliver(*side),
            Move::Tick(side) => {
                pair.troubled = true;
                pair.tick(*side);
            }
            Move::Cut => {
                pair.troubled = true;
                pair.cut();
            }
            Move::Notice(side) => pair.notice(*side),
            Move::Garbage(side) => {
                (pair.troubled, pair.garbage) = (true, false);
                pair.touch(*side, |end, now| {
                    end.bytes(now, GARBAGE);
                    true
                });
            }
            Move::Again => pair = self.again()?,
        }
        pair.digested();
        Some(pair)
    }

    fn fingerprint(&self) -> u128 {
        let mut all = Vec::with_capacity(128);
        for side in [0, 1] {
            let this = &self.sides[side];
            let print = this.print.unwrap_or_else(|| this.end.fingerprint(this.now));
            all.extend(print.to_le_bytes());
            all.extend(digest(&self.wires[side].octets).to_le_bytes());
            all.push(u8::from(self.wires[side].ends));
        }
        all.extend([self.cut, self.troubled, self.garbage].map(u8::from));
        all.extend(self.further.to_le_bytes());
        digest(&all)
    }

    fn is_final(&self) -> bool {
        self.is_over()
    }

    fn is_ordinary(step: &Self::Move) -> bool {
        match step {
            Move::Act(_, act) => *act != E::ABORT,
            Move::Deliver(_) | Move::Tick(_) | Move::Notice(_) | Move::Again => true,
            Move::Cut | Move::Garbage(_) => false,
        }
    }

    fn check(&self) -> Result<(), String> {
        self.check_here()?;
        if self.is_over() {
            return Ok(());
        }
        if !self.troubled {
            self.check_undisturbed()?;
        }
        for side in [0, 1] {
            if self.end(side).closed() {
                continue;
            }
            self.check_alone(side)?;
            let mut pair = self.clone();
            if pair.touch(side, |end, now| end.act(now, &E::ABORT)) {
                self.check_end(["an abort of A", "an abort of B"][side], pair)?;
            }
        }
        let mut pair = self.clone();
        pair.cut();
        self.check_end("a cut", pair)
    }

    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for side in [0, 1] {
            let end = self.end(side);
            let found = states(end);
            names.extend(
                E::LAYERS.iter().zip(found).map(|(layer, state)| format!("{layer} {state}")),
            );
            names.extend(end.names());
        }
        names
    }
}
