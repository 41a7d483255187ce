//! The sender: all UDP flows in one thread, in the order of their times; each TCP flow in its own.

pub(crate) mod pace;
pub(crate) mod stream;

use crate::clock::{self, LoadClock};
use crate::measure::{FlowKey, Measured, kbit_s};
use crate::plan::{FlowPlan, LoadPlan, Pacing, Transport};
use crate::receive::echo::Back;
use crate::receive::incoming::enable_tos_reports;
use crate::send::pace::Pace;
use crate::send::stream::Stream;
use anyhow::{Context as _, Result};
use load_header::{HEADER, LoadHeader};
use serde::Serialize;
use socket2::{Domain, Socket, Type};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use testbed::clock::is_interrupted;

/// How often the end of a UDP flow is sent, since it may be lost.
const ENDS: u32 = 10;
/// Between these.
const END_GAP: Duration = Duration::from_millis(50);
/// The longest sleep without a look whether we are to stop.
pub(super) const NAP: u64 = 50_000_000;

/// What one flow came to at the sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SentFlow {
    /// Packets or blocks handed to the system.
    pub sent: u64,
    /// Octets of payload.
    pub payload_octets: u64,
    /// What the system answered instead of sending, by the error's name: ECONNREFUSED, ENOBUFS.
    pub errors: BTreeMap<String, u64>,
    /// Nanoseconds of the schedule that were given up, the sender being later than `catch_up`.
    pub given_up: u64,
    /// The latest that anything was sent after its time, in nanoseconds.
    pub latest: u64,
    /// Nanoseconds of the schedule of UDP before the plan's end that were not sent, the sender being
    /// late when it came.
    pub cut: u64,
    /// When the first packet went, in nanoseconds since the start.
    pub first: u64,
    /// The time of the last packet, in nanoseconds since the start.
    pub last: u64,
}

impl SentFlow {
    fn went(&mut self, octets: u64, now: u64) {
        if self.sent == 0 {
            self.first = now;
        }
        self.last = now;
        self.sent += 1;
        self.payload_octets += octets;
    }

    /// Octets of payload after the first packet: all packets of a flow have the same size.
    fn after_first(&self) -> u64 {
        self.payload_octets - self.payload_octets.checked_div(self.sent).unwrap_or(0)
    }

    /// Payload in kbit/s from the first packet, not counted, to the last; 0 where there is one only.
    pub fn kbit_s(&self) -> f64 {
        kbit_s(self.after_first(), self.last.saturating_sub(self.first))
    }
}

/// What all flows came to at the sender.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sent {
    /// The run, as in the packets.
    pub run: u32,
    /// By flow, copies counted, in the plan's order.
    pub flows: Vec<SentFlow>,
    /// Nanoseconds from the start to the last packet.
    pub duration: u64,
    /// What came back of the flows that are sent back: delays are times there and back.
    pub back: Option<Measured>,
}

impl Sent {
    /// Payload of all flows in kbit/s from the first packet, not counted, to the last; 0 where there
    /// is one only.
    pub fn kbit_s(&self) -> f64 {
        let sending = || self.flows.iter().filter(|flow| flow.sent > 0);
        let Some(first) = sending().min_by_key(|flow| flow.first) else { return 0.0 };
        let all: u64 = sending().map(|flow| flow.payload_octets).sum();
        let last = sending().map(|flow| flow.last).max().unwrap_or(0);
        let head = first.payload_octets - first.after_first();
        kbit_s(all - head, last.saturating_sub(first.first))
    }
}

/// Sends by a plan.
#[derive(Debug)]
pub struct Sender {
    plan: LoadPlan,
    flows: Vec<OutgoingFlow>,
}

#[derive(Debug)]
struct OutgoingFlow {
    run: u32,
    number: u32,
    plan: FlowPlan,
    pace: Pace,
    start: u64,
    socket: Socket,
    result: SentFlow,
}

/// The state that all flows of a run share.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendRun {
    /// When it began, by CLOCK_MONOTONIC.
    pub(super) origin: u64,
    /// When it ends, in nanoseconds since then.
    pub(super) end: u64,
    pub(super) pacing: Pacing,
    pub(super) clock: LoadClock,
}

impl SendRun {
    /// Nanoseconds since it began.
    pub(super) fn now(&self) -> u64 {
        LoadClock::Monotonic.now().saturating_sub(self.origin)
    }

    /// Waits until then; false if it is to stop.
    pub(super) fn wait_until(&self, due: u64) -> Result<bool> {
        loop {
            let now = self.now();
            if now >= due {
                return Ok(!is_interrupted());
            }
            if is_interrupted() {
                return Ok(false);
            }
            match self.pacing {
                Pacing::Busy => std::hint::spin_loop(),
                Pacing::Sleep => {
                    clock::sleep_until(self.origin.saturating_add(due.min(now + NAP)))?;
                }
            }
        }
    }
}

impl Sender {
    /// Checks the plan and opens a marked socket for each UDP flow; TCP flows connect when they
    /// start.
    ///
    /// # Errors
    /// A plan that cannot be carried out, by its key; a socket that cannot be had.
    pub fn new(plan: LoadPlan) -> Result<Sender> {
        plan.check()?;
        let mut flows = Vec::new();
        for of in &plan.flows {
            for copy in 0..of.copies {
                let number = u32::try_from(flows.len()).unwrap_or(u32::MAX);
                let seed = plan.seed ^ u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let octets = of.counted_octets();
                let pace = Pace::new(octets, of.rate.bits(), of.jitter, seed, plan.catch_up.0);
                // Flows that are alike would all send at once.
                let interval = of.rate.nanos_for(octets);
                let spread = u128::from(interval) * copy as u128 / of.copies as u128;
                let start = u64::try_from(of.start.0.as_nanos() + spread).unwrap_or(u64::MAX);
                let socket = open(of).with_context(|| format!("a flow to {}", of.to))?;
                let result = SentFlow::default();
                let (run, plan) = (plan.run, of.clone());
                flows.push(OutgoingFlow { run, number, plan, pace, start, socket, result });
            }
        }
        Ok(Sender { plan, flows })
    }

    /// Sends until the time is over, all packets are sent, or the program is interrupted.
    ///
    /// # Errors
    /// Only what is not the network's: errors of sending are counted.
    pub fn run(mut self) -> Result<Sent> {
        let end = u64::try_from(self.plan.time.0.as_nanos()).unwrap_or(u64::MAX);
        let LoadPlan { pacing, clock, .. } = self.plan;
        let run = SendRun { origin: LoadClock::Monotonic.now(), end, pacing, clock };
        let back = Back::new();
        let echoes: Vec<(Socket, FlowKey)> =
            self.flows.iter().filter_map(OutgoingFlow::echo).collect::<io::Result<_>>()?;
        let done = std::thread::scope(|scope| -> Result<u64> {
            let listening: Vec<_> = echoes
                .iter()
                .map(|(socket, flow)| scope.spawn(|| back.listen(socket, flow.source)))
                .collect();
            let (udp, tcp): (Vec<&mut OutgoingFlow>, Vec<&mut OutgoingFlow>) =
                self.flows.iter_mut().partition(|f| f.plan.transport == Transport::Udp);
            let streams: Vec<_> =
                tcp.into_iter().map(|flow| scope.spawn(move || flow.stream(&run))).collect();
            let mut last = datagrams(udp, &run);
            back.stop();
            for one in listening {
                one.join().unwrap_or_else(|_| anyhow::bail!("a flow's thread died"))?;
            }
            for stream in streams {
                let ended = stream.join().unwrap_or_else(|_| anyhow::bail!("a flow's thread died"));
                last = last.and_then(|last| Ok(last.max(ended?)));
            }
            last
        });
        let duration = done?;
        let flows: Vec<SentFlow> = self.flows.into_iter().map(|flow| flow.result).collect();
        let sent = |key: &FlowKey| flows.get(key.flow as usize).map_or(0, |flow| flow.sent);
        let sent: Vec<(FlowKey, u64)> = echoes.iter().map(|(_, key)| (*key, sent(key))).collect();
        let back = (!sent.is_empty()).then(|| back.measured(&sent));
        Ok(Sent { run: self.plan.run, flows, duration, back })
    }
}

fn open(flow: &FlowPlan) -> Result<Socket> {
    let kind = match flow.transport {
        Transport::Udp => Type::DGRAM,
        Transport::Tcp => Type::STREAM,
    };
    let socket = Socket::new(Domain::for_address(flow.to), kind, None)?;
    dscp::socket::mark(&socket, flow.dscp).context("its mark")?;
    if let Some(from) = flow.from {
        socket.bind(&SocketAddr::new(from, 0).into()).with_context(|| format!("from {from}"))?;
    }
    if let Some(congestion) = &flow.congestion {
        socket
            .set_tcp_congestion(congestion.as_bytes())
            .with_context(|| format!("congestion control {congestion:?}"))?;
    }
    if let Some(octets) = flow.segment {
        socket.set_tcp_mss(octets).with_context(|| format!("segments of {octets} octets"))?;
    }
    if flow.transport == Transport::Udp {
        // The system reports a full queue, and the sender counts it.
        enable_tos_reports(&socket, flow.to.is_ipv4(), flow.to.is_ipv6());
        socket.connect(&flow.to.into())?;
        socket.set_nonblocking(true)?;
    }
    Ok(socket)
}

/// Sends all UDP flows; gives when the last packet went, in nanoseconds since the start.
fn datagrams(mut flows: Vec<&mut OutgoingFlow>, run: &SendRun) -> Result<u64> {
    let longest = flows.iter().map(|flow| flow.plan.size as usize).max().unwrap_or(0);
    let mut payload = vec![0; longest.max(HEADER)];
    let mut last = 0;
    // (due, the flow's number, when it was due on the flow's own schedule)
    let mut due: BinaryHeap<Reverse<(u64, usize, u64)>> = BinaryHeap::new();
    for (number, flow) in flows.iter_mut().enumerate() {
        let at = flow.pace.next_due();
        due.push(Reverse((at.saturating_add(flow.start), number, at)));
    }
    while let Some(Reverse((at, number, of_flow))) = due.pop() {
        let Some(flow) = flows.get_mut(number) else { continue };
        if at >= run.end || flow.plan.packets.is_some_and(|most| flow.result.sent >= most) {
            continue;
        }
        if !run.wait_until(at)? {
            break;
        }
        let now = run.now();
        // A flow that cannot keep up must not go on after the plan's end.
        if now >= run.end.saturating_add(flow.plan_interval()) {
            flow.result.cut = run.end - at;
            continue;
        }
        flow.result.latest = flow.result.latest.max(now - at);
        flow.result.given_up += flow.pace.late(of_flow, now.saturating_sub(flow.start));
        flow.datagram(&mut payload, run, false);
        last = now;
        let next = flow.pace.next_due();
        due.push(Reverse((next.saturating_add(flow.start), number, next)));
    }
    for _ in 0..ENDS {
        if flows.is_empty() || is_interrupted() {
            break;
        }
        for flow in &mut flows {
            flow.datagram(&mut payload, run, true);
        }
        let until = run.now() + END_GAP.as_nanos() as u64;
        SendRun { pacing: Pacing::Sleep, ..*run }.wait_until(until)?;
    }
    Ok(last)
}

impl OutgoingFlow {
    /// The socket at which what is sent back comes, and whose it is.
    fn echo(&self) -> Option<io::Result<(Socket, FlowKey)>> {
        let key = FlowKey { run: self.run, flow: self.number, source: self.plan.to };
        self.plan.echo.then(|| Ok((self.socket.try_clone()?, key)))
    }

    fn plan_interval(&self) -> u64 {
        self.plan.rate.nanos_for(self.plan.counted_octets())
    }

    fn header(&self, run: &SendRun, end: bool) -> LoadHeader {
        LoadHeader {
            run: self.run,
            flow: self.number,
            sequence: self.result.sent,
            sent: run.clock.now(),
            realtime: run.clock == LoadClock::Realtime,
            length: self.plan.size,
            end,
        }
    }

    fn datagram(&mut self, payload: &mut [u8], run: &SendRun, end: bool) {
        let length = if end { HEADER } else { self.plan.size as usize };
        let header = self.header(run, end).write();
        let Some(packet) = payload.get_mut(..length) else { return };
        packet.iter_mut().zip(header).for_each(|(to, from)| *to = from);
        let mut sent = self.socket.send(packet);
        if let Err(error) = &sent
            && error.kind() == io::ErrorKind::ConnectionRefused
        {
            // That was the answer to an earlier packet; this one has not been sent yet.
            self.count(error, end);
            sent = self.socket.send(packet);
        }
        match sent {
            Ok(_) if !end => {
                self.result.went(length as u64, run.now());
            }
            Ok(_) => {}
            Err(error) => self.count(&error, end),
        }
    }

    fn count(&mut self, error: &io::Error, end: bool) {
        // An end that nothing receives is not an error of the load.
        if !end {
            *self.result.errors.entry(name(error)).or_default() += 1;
        }
    }

    /// Sends a TCP flow; gives when its last block went.
    fn stream(&mut self, run: &SendRun) -> Result<u64> {
        let mut last = 0;
        if !run.wait_until(self.start)? {
            return Ok(last);
        }
        let mut stream = match Stream::connect(&self.socket, self.plan.to, run) {
            Ok(stream) => stream,
            Err(error) => {
                *self.result.errors.entry(name(&error)).or_default() += 1;
                return Ok(last);
            }
        };
        let mut block = vec![0; self.plan.size as usize];
        loop {
            let due = self.pace.next_due();
            let at = due.saturating_add(self.start);
            let enough = self.plan.packets.is_some_and(|most| self.result.sent >= most);
            if at >= run.end || enough || !run.wait_until(at)? || run.now() >= run.end {
                break;
            }
            let now = run.now();
            self.result.latest = self.result.latest.max(now - at);
            self.result.given_up += self.pace.late(due, now.saturating_sub(self.start));
            let header = self.header(run, false).write();
            block.iter_mut().zip(header).for_each(|(to, from)| *to = from);
            match stream.write(&block, run) {
                Ok(true) => {}
                Ok(false) => return Ok(last),
                Err(error) => {
                    *self.result.errors.entry(name(&error)).or_default() += 1;
                    return Ok(last);
                }
            }
            last = run.now();
            self.result.went(u64::from(self.plan.size), last);
        }
        let header = LoadHeader { length: HEADER as u32, ..self.header(run, true) }.write();
        if let Err(error) = stream.finish(&header, run) {
            *self.result.errors.entry(name(&error)).or_default() += 1;
        }
        Ok(last)
    }
}

/// The error's name as in errno(3), where it has one.
fn name(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => format!("{:?}", nix::errno::Errno::from_raw(number)),
        None => error.to_string(),
    }
}
