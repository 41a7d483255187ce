//! The virtual environment: the same router and the same node, TCP in this program, and no clock.

mod loads;
mod passed;
mod probed;

use super::sites::{Sites, USER, end};
use crate::testbed_run::OnStage;
use anyhow::{Context as _, Result, bail};
use sim::{
    BulkLoad, Congestion, InterfaceProbe, MessageStage, Scenario, Sim, SimulatedLoad,
    SimulatedMessage, SimulatedSite, SimulationOutcome, SiteUser, SubmissionStart, TcpSettings,
    UdpLoad, UserId,
};
use testbed::clock::is_interrupted;
use testbed::config;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use study::measured::{
    Environment, LoadMeasured, Measured, MessageTimes, PortSeries, PortSteps, Progress, TcpCount,
};
use study::skew::Skew;
use study::{Planned, file};
use toml::{Table, Value};

/// The port of the first load's first flow.
const PORT: u16 = 7_000;
/// Most steps of a series.
const STEPS: u32 = 1_200;
/// Shortest step of a series.
const STEP: Duration = Duration::from_millis(100);
/// Virtual time between two checks for an interrupt.
const SLICE: Duration = Duration::from_secs(5);
/// The duration of a sync of a site's store.
const DISK: Duration = Duration::from_micros(500);

/// Before the first message the channels are open, as on the testbed, which waits for them.
const OPEN: Duration = Duration::from_secs(5);

/// What a run measures begins here: when all is open, and probed.
fn begin(planned: &Planned) -> Duration {
    planned.probing() + if planned.mail.is_some() { OPEN } else { Duration::ZERO }
}

/// Makes a run.
///
/// # Errors
/// The simulation cannot do what the run requires, or the user interrupts it.
pub(super) fn measure(planned: &Planned, seed: u64, on_stage: OnStage<'_>) -> Result<Measured> {
    let scenario = scenario(planned, seed)?;
    let mut sim = Sim::new(&scenario)?;
    let skews = probed::find(planned, &mut sim)?;
    let begin = begin(planned);
    sim.run_until(begin)?;
    let mut passed = passed::Tapped::new(planned, &mut sim)?;
    let mut progress = vec![Progress::default(); planned.messages.len()];
    let step = if planned.messages.is_empty() { SLICE } else { step(planned) };
    let (mut until, mut slice) = (begin + step, begin + SLICE);
    while sim.run_until(until)? {
        passed.take(&mut sim);
        let at = until.saturating_sub(begin).as_secs_f64();
        for (progress, octets) in progress.iter_mut().zip(sim.transferred()) {
            if let Some(octets) = octets {
                progress.seen(at, octets);
            }
        }
        if until >= slice {
            if is_interrupted() {
                bail!("interrupted");
            }
            on_stage(&format!("{} s of at most {} s", until.as_secs(), planned.limit.as_secs()));
            slice += SLICE;
        }
        until += step;
    }
    passed.take(&mut sim);
    let outcome = sim.outcome();
    let mut measured = measured(planned, &scenario, &outcome, seed, &skews)?;
    measured.passed = passed.finish(&outcome, begin);
    for (message, progress) in measured.messages.iter_mut().zip(progress) {
        message.progress = progress;
    }
    Ok(measured)
}

/// Whether the simulation can do what the run requires.
///
/// # Errors
/// What it cannot do.
pub(super) fn check(planned: &Planned, seed: u64) -> Result<()> {
    scenario(planned, seed).map(|_| ())
}

fn scenario(planned: &Planned, seed: u64) -> Result<Scenario> {
    let sites = match Sites::from_planned(planned)? {
        Some(sites) => all_sites(&sites)?,
        None => Vec::new(),
    };
    let mut loads = Vec::new();
    for (place, load) in planned.loads.iter().enumerate() {
        loads.extend(flows(planned, load, place)?);
    }
    loads.extend(probed::loads(planned)?);
    Ok(Scenario {
        topology: planned.topology.clone(),
        policies: planned.policies.clone(),
        messages: messages(planned, &sites)?,
        sites,
        loads,
        tcp: tcp(planned)?,
        disk: DISK,
        seed,
        until: until(planned),
        probes: probes(planned),
    })
}

/// The MTAs, by their names; the same configuration as on the testbed.
fn all_sites(sites: &Sites<'_>) -> Result<Vec<SimulatedSite>> {
    sites.all().map(|(name, host, ip)| site(sites, name, host, ip)).collect()
}

fn site(sites: &Sites<'_>, name: &str, host: &str, ip: IpAddr) -> Result<SimulatedSite> {
    let secret = |from: &str, to: &str| {
        let mut table = Table::new();
        table.insert("env".to_owned(), format!("{from} to {to}").into());
        table
    };
    let mut table = config::site(name, SocketAddr::new(ip, 5010))?;
    for (path, value) in sites.keys(name, &secret)? {
        toml_path::set(&mut table, &path, value)?;
    }
    let text = toml::to_string(&Value::Table(table))?;
    let environment = |name: &str| Some(name.to_owned());
    let (read, report) = ::config::read(name, &text, Path::new("."), &environment);
    let read = read.with_context(|| format!("{name}: {}", report.render(false)))?;
    let mut node = read.node;
    let user = format!("{}/S={USER}", config::domain(name));
    node.mailboxes = vec![::config::canonical_address(&user).map_err(|e| anyhow::anyhow!("{e}"))?];
    let mut connects = BTreeMap::new();
    for (id, socket) in &read.channels {
        let remote: SocketAddr =
            socket.remote.to_string().parse().context("an address to connect to")?;
        connects.insert(*id, remote);
    }
    let p1 = read.listeners.iter().filter(|listener| listener.label != "p3");
    Ok(SimulatedSite {
        host: host.to_owned(),
        address: ip,
        config: node,
        connects,
        listens: p1.map(|listener| (listener.id, listener.address.port())).collect(),
        users: vec![SiteUser { address: user, delivery: true }],
    })
}

fn messages(planned: &Planned, sites: &[SimulatedSite]) -> Result<Vec<SimulatedMessage>> {
    let Some(mail) = &planned.mail else { return Ok(Vec::new()) };
    let place = |site: &String| mail.sites.keys().position(|name| name == site);
    let from = UserId { site: place(&mail.from).context("no such site")?, user: 0 };
    let to = place(&mail.to).and_then(|place| sites.get(place)).context("no such site")?;
    let to = to.users.first().context("no user")?.address.clone();
    let number = |name: &str| planned.messages.iter().position(|message| message.name == name);
    let all = planned.messages.iter().map(|message| {
        let start = match &message.start {
            file::StudyStart::At(at) => SubmissionStart::At(begin(planned) + at.0),
            file::StudyStart::After(after) => SubmissionStart::After {
                message: number(&after.after).context("no such message")?,
                stage: match after.stage {
                    file::StudyStage::Accepted => MessageStage::Accepted,
                    file::StudyStage::Started => MessageStage::Started,
                    file::StudyStage::Delivered => MessageStage::Delivered,
                },
                delay: after.delay.0,
            },
        };
        Ok(SimulatedMessage {
            name: message.name.clone(),
            from,
            to: to.clone(),
            precedence: message.precedence,
            size: message.size.0,
            start,
        })
    });
    all.collect()
}

/// The end of a run: its limit. Without messages: when all loads have ended and arrived, if earlier.
fn until(planned: &Planned) -> Duration {
    const IN_TRANSIT: Duration = Duration::from_secs(1);
    let ends = planned.loads.iter().filter_map(|load| match load.octets {
        Some(_) => Some(planned.limit),
        None => Some(load.start.0 + load.time?.0 + IN_TRANSIT),
    });
    let end = ends.max().filter(|_| planned.messages.is_empty()).unwrap_or(planned.limit);
    begin(planned) + end.min(planned.limit)
}

/// Whether its limit came before the end of a load that has one.
fn is_cut(planned: &Planned, outcome: &SimulationOutcome) -> bool {
    let ends = planned.loads.iter().filter_map(|load| Some(load.start.0 + load.time?.0));
    !outcome.complete || ends.max().is_some_and(|end| end > planned.limit)
}

/// A load's flows.
fn flows(planned: &Planned, load: &file::StudyLoad, place: usize) -> Result<Vec<SimulatedLoad>> {
    let to = end(planned, load)?;
    let each = |flow: u16| -> Result<SimulatedLoad> {
        // Loads have ports far from each other: each may have many flows.
        let far = u16::try_from(place)?.checked_mul(512).context("too many loads")?;
        let port = load
            .port
            .or(PORT.checked_add(far))
            .and_then(|port| port.checked_add(flow))
            .context("too many flows for the ports there are")?;
        let (name, from) = (format!("{}-{flow}", load.name), load.from.clone());
        let start = begin(planned) + load.start.0;
        let stop = load.time.map(|time| start + time.0);
        let flows = u64::from(load.flows.max(1));
        let rate = load.rate.map(|rate| rate.bits() / flows);
        let to = SocketAddr::new(to, port);
        Ok(match load.protocol {
            file::Protocol::Udp | file::Protocol::Echo => SimulatedLoad::Udp(UdpLoad {
                name,
                from,
                source: load.source,
                to,
                rate: rate.context("UDP has a rate")?,
                payload: load.payload.into(),
                dscp: load.dscp,
                start,
                stop,
                jitter: f64::from(load.jitter_percent.min(50)) / 100.0,
                echo: load.protocol == file::Protocol::Echo,
                clock: probed::clock(load),
                keeps: false,
            }),
            file::Protocol::Tcp => SimulatedLoad::Tcp(BulkLoad {
                name,
                from,
                to,
                dscp: load.dscp,
                octets: load.octets.map(|octets| octets.0.div_ceil(flows)),
                rate,
                segment: load.segment.map(|segment| segment.max(file::MIN_SEGMENT)),
                start,
                stop,
            }),
        })
    };
    (0..load.flows).map(each).collect()
}

fn tcp(planned: &Planned) -> Result<TcpSettings> {
    let mut tcp = TcpSettings::default();
    for host in planned.topology.hosts.values() {
        match host.congestion_control.as_deref() {
            None => {}
            Some("reno") => tcp.congestion = Congestion::Reno,
            Some("cubic") => tcp.congestion = Congestion::Cubic,
            Some(other) => bail!("in the simulation there is no congestion control {other}"),
        }
        // The last of three is the most.
        let most =
            |name: &str| host.sysctls.get(name)?.0.split_whitespace().last()?.parse::<usize>().ok();
        if let Some(most) = most("net.ipv4.tcp_rmem") {
            tcp.receive_buffer = most.clamp(4 << 10, 16 << 20);
        }
        if let Some(most) = most("net.ipv4.tcp_wmem") {
            tcp.send_buffer = most.clamp(4 << 10, 16 << 20);
        }
    }
    tcp.not_sent = tcp.not_sent.min(tcp.send_buffer);
    tcp.nagle = planned.tcp.nagle.unwrap_or(tcp.nagle);
    if let Some(delay) = planned.tcp.delayed_ack {
        tcp.delayed_ack = Some(delay.0).filter(|delay| !delay.is_zero());
    }
    // A transfer that is starved is waited for, as on the testbed.
    tcp.dead_after = Duration::from_secs(3_600);
    Ok(tcp)
}

/// How long the steps of what is seen over time are.
fn step(planned: &Planned) -> Duration {
    (planned.limit / STEPS).max(STEP)
}

fn probes(planned: &Planned) -> Vec<InterfaceProbe> {
    let interval = step(planned);
    let routers = planned.topology.routers.iter().filter(|(_, router)| router.policy.is_some());
    let ports =
        routers.flat_map(|(name, router)| router.ports.keys().map(move |port| (name, port)));
    ports
        .map(|(router, port)| InterfaceProbe {
            router: router.clone(),
            interface: port.clone(),
            interval,
        })
        .collect()
}

fn measured(
    planned: &Planned,
    scenario: &Scenario,
    outcome: &SimulationOutcome,
    seed: u64,
    skews: &[Option<Skew>],
) -> Result<Measured> {
    let begin = begin(planned);
    let seconds = |at: Option<Duration>| at.map(|at| at.saturating_sub(begin).as_secs_f64());
    let mut messages = Vec::new();
    for (message, times) in planned.messages.iter().zip(&outcome.messages) {
        if let Some(why) = &times.refused {
            bail!("{} was refused: {why}", message.name);
        }
        if times.delivered.is_some() && !times.intact {
            bail!("{} was delivered otherwise than it was submitted", message.name);
        }
        messages.push(MessageTimes {
            name: message.name.clone(),
            content: Some(message.size.0),
            submitted: seconds(times.submitted),
            accepted: seconds(times.accepted),
            started: seconds(times.started),
            confirmed: seconds(times.confirmed),
            delivered: seconds(times.delivered),
            transfers: u32::try_from(times.associations.len()).unwrap_or(u32::MAX),
            ..MessageTimes::default()
        });
    }
    let mut counts = outcome.loads.iter();
    let loads = planned.loads.iter().zip(skews).map(|(load, skew)| {
        let flows: Vec<_> = counts.by_ref().take(load.flows.into()).collect();
        let measured = loads::measured(load, &flows, begin, outcome.ended);
        LoadMeasured { skew: *skew, ..measured }
    });
    let control = match scenario.tcp.congestion {
        Congestion::Reno => "reno",
        Congestion::Cubic => "cubic",
    };
    let how = [("tcp", "smoltcp"), ("congestion_control", control), ("path", "in memory")];
    Ok(Measured {
        id: planned.id.clone(),
        environment: Environment::Simulation,
        scale: study::Scale::ONE,
        how: how.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        seed,
        loads: loads.collect(),
        series: outcome.series.iter().filter_map(|of| series(of, begin)).collect(),
        seconds: outcome.ended.saturating_sub(begin).as_secs_f64(),
        given_up: messages.iter().any(|message: &MessageTimes| message.delivered.is_none())
            || (messages.is_empty() && is_cut(planned, outcome)),
        messages,
        passed: Vec::new(),
        tcp: tcp_counts(&outcome.tcp),
        notes: Vec::new(),
    })
}

/// By the two addresses and the mark: the connections of one channel, or of one load, together.
fn tcp_counts(ends: &[sim::ConnectionCount]) -> Vec<TcpCount> {
    let mut counts: BTreeMap<(IpAddr, IpAddr, u8), (u64, u64)> = BTreeMap::new();
    let mut received: BTreeMap<(SocketAddr, SocketAddr), u64> = BTreeMap::new();
    for end in ends {
        *received.entry((end.remote, end.local)).or_default() += end.received_data_segments;
    }
    for end in ends {
        let flow = (end.local.ip(), end.remote.ip(), end.dscp.number());
        let (sent, came) = counts.entry(flow).or_default();
        *sent += end.sent.data_segments;
        // Several connections of one pair of ports, one after the other, are counted there as one.
        *came += received.remove(&(end.local, end.remote)).unwrap_or_default();
    }
    let counts = counts.into_iter().filter(|(_, (sent, _))| *sent > 0);
    counts
        .map(|((from, to, dscp), (sent, received))| TcpCount { from, to, dscp, sent, received })
        .collect()
}

/// None of a port that nothing passed after the beginning.
fn series(of: &sim::ProbeSeries, begin: Duration) -> Option<PortSeries> {
    let interval = of.interval.as_secs_f64();
    let nanos = of.interval.as_nanos().max(1);
    let mut rows: BTreeMap<u8, PortSteps> = BTreeMap::new();
    for row in of.rows.iter().filter(|row| row.at > begin) {
        // Whole numbers: a row at the end of a step is that step's.
        let at = row.at.saturating_sub(begin).as_nanos();
        let Ok(step) = usize::try_from(at.div_ceil(nanos)) else { continue };
        let steps = rows.entry(row.dscp.number()).or_default();
        let before = step.saturating_sub(1);
        steps.octets.resize(before, 0);
        steps.packets.resize(before, 0);
        steps.dropped.resize(before, 0);
        steps.waiting.resize(before, 0);
        steps.octets.push(row.sent.octets);
        steps.packets.push(row.sent.packets);
        steps.dropped.push(row.dropped.packets);
        steps.waiting.push(row.waiting.packets);
    }
    let port = format!("{}.{}", of.router, of.interface);
    (!rows.is_empty()).then_some(PortSeries { port, interval, rows })
}
