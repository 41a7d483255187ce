//! The loop: from one moment at which anything is due to the next.

pub(crate) mod agenda;
mod follow;
pub(crate) mod simulated_hosts;

use crate::load::bulk::Transfer;
use crate::load::content::Content;
use crate::load::message::Messages;
use crate::load::udp::Source;
use crate::outcome::probe::Recorder;
use crate::outcome::{SimulatedTimes, SimulationOutcome};
use crate::scenario::check::{self, Checked};
use crate::scenario::{ReceiverClock, Scenario, ScenarioError, SimulatedLoad, SubmissionStart};
use crate::sim::simulated_hosts::{Listening, ScheduledEvent, SimulatedCapture, SimulatedHosts};
use crate::station::Station;
use base::rng::Rng;
use network::{NetworkMachine, PortId};
use p1::names::{ORAddress, ORName};
use router::Time;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use virtual_tcp::TcpHost;

/// How long after a load of datagrams has ended its last ones may still come.
const STRAGGLERS: Duration = Duration::from_secs(2);

/// Runs a scenario to its end: until all messages are delivered and confirmed and all bounded TCP
/// loads received, and, without messages, what is sent for a time has been sent; without any of
/// these, until [`Scenario::until`].
///
/// # Errors
/// The scenario does not hold together, or a node asked its store for what makes no sense.
pub fn run(scenario: &Scenario) -> Result<SimulationOutcome, ScenarioError> {
    let mut sim = Sim::new(scenario)?;
    while sim.step()? {}
    Ok(sim.outcome())
}

/// A message as it comes to a user.
#[derive(Debug)]
struct Arriving {
    message: Option<(usize, Content)>,
    octets: u64,
    wrong: u64,
}

/// A scenario that runs.
pub struct Sim {
    simulated: SimulatedHosts,
    stations: Vec<Station>,
    messages: Messages,
    sources: Vec<Option<Source>>,
    transfers: BTreeMap<usize, Transfer>,
    recorders: Vec<Recorder>,
    events: Vec<(Duration, usize, node::event::LogEvent)>,
    arriving: BTreeMap<(usize, usize), Arriving>,
    recipients: Vec<ORName>,
    names: Vec<Vec<ORName>>,
    until: Time,
    steps: u64,
    over: bool,
}

impl Sim {
    /// A scenario at its beginning.
    ///
    /// # Errors
    /// It does not hold together.
    pub fn new(scenario: &Scenario) -> Result<Sim, ScenarioError> {
        let mut seeds = Rng::new(scenario.seed);
        let network = NetworkMachine::new(&scenario.topology, &scenario.policies, seeds.next_u64())
            .map_err(ScenarioError::Network)?;
        let Checked { hosts, users, loads } = check::check(scenario, network.plan())?;
        let tcp = &scenario.tcp;
        let simulated = network.plan().hosts().map(|(_, node)| {
            let addresses: Vec<IpAddr> =
                node.ports.iter().flat_map(|port| &port.addresses).map(|a| a.ip()).collect();
            let mtu = node.ports.iter().map(|port| port.mtu).max().unwrap_or(1_500);
            TcpHost::new(&node.name, &addresses, mtu, tcp, seeds.next_u64())
        });
        let simulated = simulated.collect();
        let mut simulated = SimulatedHosts::new(network, simulated);
        let mut stations = Vec::new();
        for (place, ((site, host), names)) in
            scenario.sites.iter().zip(hosts).zip(&users).enumerate()
        {
            stations.push(Station::new(place, site, names, host, scenario.disk));
        }
        for (station, site) in stations.iter_mut().zip(&scenario.sites) {
            station.start(&mut simulated, site);
        }
        let recipients = scenario.messages.iter().filter_map(|message| {
            // That they can be read was checked.
            message.to.parse::<ORAddress>().ok().map(ORName::from)
        });
        let mut sim = Sim {
            simulated,
            stations,
            messages: Messages::new(&scenario.messages, scenario.seed),
            sources: Vec::new(),
            transfers: BTreeMap::new(),
            recorders: scenario.probes.iter().map(Recorder::new).collect(),
            events: Vec::new(),
            arriving: BTreeMap::new(),
            recipients: recipients.collect(),
            names: users,
            until: Time::ZERO + scenario.until,
            steps: 0,
            over: false,
        };
        sim.enter(scenario, &loads, &mut seeds);
        sim.settle();
        Ok(sim)
    }

    /// Schedules what the scenario begins with.
    fn enter(&mut self, scenario: &Scenario, loads: &[(usize, usize, IpAddr)], seeds: &mut Rng) {
        for (message, one) in scenario.messages.iter().enumerate() {
            if let SubmissionStart::At(after) = one.start {
                self.simulated.later(after, ScheduledEvent::Submit { message });
            }
        }
        for (place, (load, (from, to, address))) in scenario.loads.iter().zip(loads).enumerate() {
            let mut source = None;
            match load {
                SimulatedLoad::Udp(load) => {
                    source = Source::new(load, place, (*from, *to), *address, seeds.next_u64());
                    if let Some(at) = source.as_mut().and_then(Source::next) {
                        self.simulated.agenda.enter(at, ScheduledEvent::Datagram { load: place });
                    }
                }
                SimulatedLoad::Tcp(load) => {
                    let content = Content::new(!scenario.seed, place);
                    let transfer = Transfer::new(load, place, (*from, *to), *address, content);
                    let listening = Listening::Bulk { load: place };
                    self.simulated.listening.insert((*to, load.to.port()), listening);
                    if let Some(host) = self.simulated.host(*to) {
                        host.listen(load.to.port(), load.dscp);
                    }
                    self.simulated.later(load.start, ScheduledEvent::Begin { load: place });
                    if let Some(stop) = load.stop {
                        self.simulated.later(stop, ScheduledEvent::Stop { load: place });
                    }
                    self.transfers.insert(place, transfer);
                }
            }
            self.sources.push(source);
        }
        for (probe, one) in scenario.probes.iter().enumerate() {
            self.simulated.later(one.interval, ScheduledEvent::Probe { probe });
        }
    }

    /// The time since the beginning.
    pub fn now(&self) -> Duration {
        self.simulated.since()
    }

    /// Copies what passes this port from now on, written as in a topology: `naples-sar.wan`. `None`
    /// where there is no such port. What is copied waits for [`Sim::captured`], so it is to be taken
    /// after every few steps.
    pub fn tap(&mut self, port: &str) -> Option<PortId> {
        let port = self.simulated.network.plan().port(port)?;
        let on = network::Input::Tap { port, on: true };
        self.simulated.network.handle(self.simulated.now, on);
        Some(port)
    }

    /// The next packet that passed a tapped port, in the order of time at each port; `None` once
    /// there is none.
    pub fn captured(&mut self) -> Option<SimulatedCapture> {
        self.simulated.captured.pop_front()
    }

    /// Whether nothing more will happen.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Messages delivered so far, or refused.
    pub fn settled_messages(&self) -> usize {
        let times = self.messages.times.iter();
        times.filter(|one| one.delivered.is_some() || one.refused.is_some()).count()
    }

    /// Goes on to the next moment at which something is due. `false` where there is none: everything
    /// awaited has happened, or the time is over.
    ///
    /// # Errors
    /// A node asked its store for what makes no sense.
    pub fn step(&mut self) -> Result<bool, ScenarioError> {
        if self.over {
            return Ok(false);
        }
        let stations = self.stations.iter().filter_map(Station::deadline).min();
        let next = [self.simulated.deadline(), stations].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= self.until) else {
            self.simulated.now = self.until;
            self.over = true;
            return Ok(false);
        };
        self.steps += 1;
        self.simulated.now = self.simulated.now.max(next);
        let now = self.simulated.now;
        if self.simulated.network.deadline().is_some_and(|due| due <= now) {
            self.simulated.network.handle(now, network::Input::Tick);
        }
        while let Some(what) = self.simulated.agenda.due(now) {
            self.happen(what);
        }
        for station in &mut self.stations {
            if station.deadline().is_some_and(|due| due <= now) {
                station.tick(&mut self.simulated);
            }
        }
        self.settle();
        for station in &self.stations {
            station.check()?;
        }
        self.over = self.is_complete() && self.has_an_end() && self.are_sent();
        Ok(!self.over)
    }

    /// Goes on until this time since the beginning, or the end. Whether there is more.
    ///
    /// # Errors
    /// As [`Sim::step`].
    pub fn run_until(&mut self, time: Duration) -> Result<bool, ScenarioError> {
        while self.simulated.since() < time {
            if !self.step()? {
                return Ok(false);
            }
        }
        Ok(!self.over)
    }

    /// Whether anything is awaited that ends a run before its time.
    fn has_an_end(&self) -> bool {
        let bounded = |one: &Transfer| one.load.octets.is_some();
        !self.messages.times.is_empty()
            || self.transfers.values().any(bounded)
            || self.sources.iter().flatten().any(|source| source.stop().is_some())
    }

    fn is_complete(&self) -> bool {
        self.messages.are_done() && !self.transfers.values().any(Transfer::is_awaited)
    }

    /// Without messages, the loads that have an end are awaited, and their packets in transit.
    fn are_sent(&self) -> bool {
        let now = self.simulated.since();
        let sources = self.sources.iter().flatten().filter_map(Source::stop);
        let transfers = self.transfers.values().filter_map(|one| one.load.stop);
        let mut stops = sources.chain(transfers);
        !self.messages.times.is_empty() || stops.all(|stop| now >= stop + STRAGGLERS)
    }

    /// When each datagram of a UDP load that keeps them came so far, and how long it took by the clocks
    /// of both ends, in nanoseconds.
    pub fn samples(&self, load: usize) -> &[(Duration, i64)] {
        match self.sources.get(load) {
            Some(Some(source)) => source.samples(),
            _ => &[],
        }
    }

    /// From now on this is taken off the clock of a UDP load's receiver.
    pub fn correct(&mut self, load: usize, clock: ReceiverClock) {
        if let Some(Some(source)) = self.sources.get_mut(load) {
            source.correct(clock);
        }
    }

    /// How much of each message the next MTA has confirmed, envelope included, where it is in transfer
    /// now.
    pub fn transferred(&self) -> Vec<Option<u64>> {
        let mut all = vec![None; self.messages.times.len()];
        for (site, station) in self.stations.iter().enumerate() {
            let is_sent = |number: usize, times: &SimulatedTimes| {
                let from =
                    self.messages.get(number).is_some_and(|message| message.from.site == site);
                from && times.started.is_some() && times.confirmed.is_none()
            };
            let mut times = self.messages.times.iter().enumerate();
            if !times.any(|(number, times)| is_sent(number, times)) {
                continue; // its status would take time, and show nothing
            }
            let sends = station.transferred(&self.simulated);
            for ((number, times), octets) in self.messages.times.iter().enumerate().zip(&mut all) {
                let identifier = times.identifier.as_ref().filter(|_| is_sent(number, times));
                *octets = octets.or_else(|| sends.get(identifier?).copied());
            }
        }
        all
    }

    /// The results so far.
    pub fn outcome(&self) -> SimulationOutcome {
        let loads = self.sources.iter().enumerate().map(|(place, source)| match source {
            Some(source) => source.count(),
            None => {
                self.transfers.get(&place).map(|one| one.count(&self.simulated)).unwrap_or_default()
            }
        });
        let mut messages = self.messages.times.clone();
        for (times, transferred) in messages.iter_mut().zip(self.transferred()) {
            times.transferred = transferred;
        }
        SimulationOutcome {
            messages,
            loads: loads.collect(),
            series: self.recorders.iter().map(|recorder| recorder.series.clone()).collect(),
            events: self.events.clone(),
            tcp: self.simulated.hosts.iter().flat_map(TcpHost::usage).collect(),
            ended: self.simulated.since(),
            complete: self.is_complete(),
            steps: self.steps,
        }
    }
}
