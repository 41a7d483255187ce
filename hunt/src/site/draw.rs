//! The world of a seed: nodes, messages, faults.

use base::Precedence;
use base::rng::Rng;
use std::time::Duration;

/// Messages and faults come before this.
pub(super) const BUSY: Duration = Duration::from_secs(70);
/// All is well from then on.
pub(super) const CALM: Duration = Duration::from_secs(90);

/// Who submits and takes deliveries: two users at the site, and two at each foreign one.
pub(super) const USERS: usize = 6;

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) at: Duration,
    pub(super) from: usize,
    /// Its recipients; `None` is nobody that the MTA of the user after it knows.
    pub(super) to: Vec<usize>,
    /// Somebody who is unknown at the MTA of this user.
    pub(super) unknown_at: Option<usize>,
    /// It asks for reports of delivery.
    pub(super) reports: bool,
    pub(super) precedence: Precedence,
    pub(super) size: usize,
}

/// What goes wrong with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Its process is killed.
    Kill,
    /// Its process is stopped, and continues.
    Hang,
    /// It does not reach the database.
    CutOff,
    /// It does not reach a foreign MTA.
    Line(usize),
    /// It is stopped in order.
    Drain,
    /// A foreign MTA is killed and started again.
    Foreign(usize),
    /// A user of the site binds to this node.
    Moves(usize),
}

/// A fault, and how long it lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) at: Duration,
    pub(super) node: usize,
    pub(super) fault: Fault,
    pub(super) lasts: Duration,
}

/// An operator holds what is queued, and releases it after a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) at: Duration,
    /// Orders are given at these nodes; who has the entry carries it out.
    pub(super) nodes: [usize; 2],
    pub(super) lasts: Duration,
}

/// The world of a seed.
#[derive(Clone, Debug)]
pub struct SiteWorld {
    pub(super) seed: u64,
    /// How many microseconds the clocks of each node gain in a second.
    pub(super) gains: Vec<i64>,
    /// Delay of every connection.
    pub(super) latency: Duration,
    /// A commit of a foreign MTA takes at most so much longer.
    pub(super) slow: Duration,
    /// One call of the database in so many is late.
    pub(super) late: u64,
    pub(super) messages: Vec<Message>,
    pub(super) troubles: Vec<Trouble>,
    pub(super) holds: Vec<Hold>,
}

impl SiteWorld {
    /// The world of this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> SiteWorld {
        let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5174);
        let nodes = 2 + rng.below(2) as usize;
        let gains = (0..nodes).map(|_| rng.below(80_001) as i64 - 40_000).collect();
        let latency = Duration::from_millis(1 + [3, 20, 150][rng.below(3) as usize]);
        let slow = Duration::from_millis([0, 300, 2_000][rng.below(3) as usize]);
        let late = [15, 30, 100][rng.below(3) as usize];
        let bursts: Vec<Duration> = (0..1 + rng.below(4)).map(|_| moment(&mut rng, BUSY)).collect();
        let messages = 6 + rng.below(24);
        let mut messages: Vec<Message> =
            (0..messages).map(|_| message(&mut rng, &bursts)).collect();
        messages.sort_by_key(|message| message.at);
        let troubles = 3 + rng.below(8);
        let mut troubles: Vec<Trouble> =
            (0..troubles).map(|_| trouble(&mut rng, nodes, &bursts)).collect();
        let holds = if rng.below(2) == 0 { 1 + rng.below(4) } else { 0 };
        let mut holds: Vec<Hold> = (0..holds).map(|_| hold(&mut rng, nodes, &bursts)).collect();
        holds.sort_by_key(|hold| hold.at);
        // Without this hardly anything waits when an operator comes.
        for hold in holds.iter().filter(|_| rng.below(2) == 0) {
            troubles.extend(all_lines(hold.at, nodes));
        }
        troubles.sort_by_key(|trouble| trouble.at);
        SiteWorld { seed, gains, latency, slow, late, messages, troubles, holds }
    }
}

fn moment(rng: &mut Rng, within: Duration) -> Duration {
    Duration::from_millis(rng.below(within.as_millis() as u64))
}

/// Mostly soon after one of these moments.
fn near(rng: &mut Rng, bursts: &[Duration]) -> Duration {
    match rng.below(3) {
        0 => moment(rng, BUSY),
        _ => {
            let burst = bursts[rng.below(bursts.len() as u64) as usize];
            burst + Duration::from_millis(rng.below(2_500))
        }
    }
}

fn message(rng: &mut Rng, bursts: &[Duration]) -> Message {
    let from = rng.below(USERS as u64) as usize;
    let mut to: Vec<usize> = (0..USERS).filter(|to| *to != from && rng.below(4) == 0).collect();
    let unknown_at = (rng.below(6) == 0).then(|| rng.below(USERS as u64) as usize);
    if to.is_empty() && unknown_at.is_none() {
        to.push((from + 1 + rng.below(USERS as u64 - 1) as usize) % USERS);
    }
    let precedence = Precedence::ALL[rng.below(6) as usize];
    let size = if rng.below(4) == 0 { 2_000 + rng.below(60_000) } else { 20 + rng.below(400) };
    Message {
        at: near(rng, bursts),
        from,
        to,
        unknown_at,
        reports: rng.below(2) == 0,
        precedence,
        size: size as usize,
    }
}

/// Soon after messages were submitted, so that some wait.
fn hold(rng: &mut Rng, nodes: usize, bursts: &[Duration]) -> Hold {
    let at = near(rng, bursts) + Duration::from_millis(rng.below(1_500));
    let nodes = [(); 2].map(|()| rng.below(nodes as u64) as usize);
    Hold { at, nodes, lasts: Duration::from_millis(3_000 + rng.below(30_000)) }
}

/// No node reaches a foreign MTA around this moment.
fn all_lines(at: Duration, nodes: usize) -> impl Iterator<Item = Trouble> {
    let at = at.saturating_sub(Duration::from_secs(4));
    let lasts = Duration::from_secs(8);
    (0..nodes).flat_map(move |node| {
        [1, 2].map(|foreign| Trouble { at, node, fault: Fault::Line(foreign), lasts })
    })
}

fn trouble(rng: &mut Rng, nodes: usize, bursts: &[Duration]) -> Trouble {
    let fault = match rng.below(12) {
        0..2 => Fault::Kill,
        2..4 => Fault::Hang,
        4..6 => Fault::CutOff,
        6..8 => Fault::Line(1 + rng.below(2) as usize),
        8..10 => Fault::Moves(rng.below(2) as usize),
        10 => Fault::Drain,
        _ => Fault::Foreign(1 + rng.below(2) as usize),
    };
    let node = rng.below(nodes as u64) as usize;
    let lasts = Duration::from_millis(300 + rng.below(12_000));
    Trouble { at: near(rng, bursts), node, fault, lasts }
}
