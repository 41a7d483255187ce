//! Whether a scenario holds together, before anything is built from it.

use crate::load::udp;
use crate::path;
use crate::scenario::{
    BulkLoad, InterfaceProbe, Scenario, ScenarioError, SimulatedLoad, SimulatedMessage,
    SimulatedSite, SubmissionStart, UdpLoad,
};
use network::NetworkPlan;
use node::config::ListenerService;
use p1::names::{ORAddress, ORName};
use router::policy::KeyFault;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use virtual_tcp::TcpSettings;

/// Most addresses of a host, as smoltcp is built.
const MAX_ADDRESSES: usize = 8;
/// Most octets of a message's content: all of it is in memory several times.
const MAX_SIZE: u64 = 1 << 30;
/// Most bits a second of a load.
const MAX_RATE: u64 = 100_000_000_000;
const BUFFERS: std::ops::RangeInclusive<usize> = 4 << 10..=16 << 20;
const LONGEST: Duration = Duration::from_secs(1_000 * 24 * 3_600);

/// What follows from a scenario that holds.
pub(crate) struct Checked {
    /// The hosts of sites.
    pub(crate) hosts: Vec<usize>,
    /// The names of their users.
    pub(crate) users: Vec<Vec<ORName>>,
    /// Of each load, the host it comes from and the one it goes to, and its source address.
    pub(crate) loads: Vec<(usize, usize, IpAddr)>,
}

fn wrong<T>(path: impl Into<String>, what: impl Into<String>) -> Result<T, ScenarioError> {
    Err(ScenarioError::Scenario(KeyFault::at(path, what)))
}

pub(crate) fn check(scenario: &Scenario, plan: &NetworkPlan) -> Result<Checked, ScenarioError> {
    tcp(&scenario.tcp)?;
    if scenario.until > LONGEST {
        return wrong("until", "more than 1,000 days");
    }
    let mut taken = BTreeSet::new();
    let (mut hosts, mut users) = (Vec::new(), Vec::new());
    for (_, node) in plan.hosts() {
        let count = node.ports.iter().map(|port| port.addresses.len()).sum::<usize>();
        if count > MAX_ADDRESSES {
            let what = format!("{count} addresses; {MAX_ADDRESSES} at most are simulated");
            return wrong(format!("topology.hosts.{}", node.name), what);
        }
    }
    for (number, one) in scenario.sites.iter().enumerate() {
        let (host, names) = site(&format!("sites[{number}]"), one, plan, &mut taken)?;
        hosts.push(host);
        users.push(names);
    }
    for (number, one) in scenario.messages.iter().enumerate() {
        message(&format!("messages[{number}]"), one, scenario)?;
    }
    let mut loads = Vec::new();
    for (number, load) in scenario.loads.iter().enumerate() {
        let path = format!("loads[{number}]");
        loads.push(match load {
            SimulatedLoad::Udp(load) => datagrams(&path, number, load, plan)?,
            SimulatedLoad::Tcp(load) => bulk(&path, load, plan, &mut taken)?,
        });
    }
    for (number, one) in scenario.probes.iter().enumerate() {
        probe(&format!("probes[{number}]"), one, plan)?;
    }
    Ok(Checked { hosts, users, loads })
}

fn tcp(tcp: &TcpSettings) -> Result<(), ScenarioError> {
    for (name, octets) in [("send_buffer", tcp.send_buffer), ("receive_buffer", tcp.receive_buffer)]
    {
        if !BUFFERS.contains(&octets) {
            return wrong(format!("tcp.{name}"), format!("{octets} octets; from 4 KiB to 16 MiB"));
        }
    }
    if !(1_500..=tcp.send_buffer).contains(&tcp.not_sent) {
        let what = format!("{} octets; from 1,500 to the send buffer", tcp.not_sent);
        return wrong("tcp.not_sent", what);
    }
    for (name, time) in [("connect_timeout", tcp.connect_timeout), ("dead_after", tcp.dead_after)] {
        if time < Duration::from_secs(1) || time > LONGEST {
            return wrong(format!("tcp.{name}"), format!("{time:?}; from 1 s to 1,000 days"));
        }
    }
    Ok(())
}

/// The host of this name, and whether the address is one of its own.
fn host(plan: &NetworkPlan, path: &str, name: &str) -> Result<usize, ScenarioError> {
    match plan.hosts().find(|(_, node)| node.name == name) {
        Some((place, _)) => Ok(place),
        None => {
            let known: Vec<&str> = plan.hosts().map(|(_, node)| node.name.as_str()).collect();
            wrong(path, format!("there is no host {name:?}; there are: {}", known.join(", ")))
        }
    }
}

fn has(plan: &NetworkPlan, host: usize, address: IpAddr) -> bool {
    path::host_of(plan, address) == Some(host)
}

fn site(
    path: &str,
    site: &SimulatedSite,
    plan: &NetworkPlan,
    taken: &mut BTreeSet<(usize, u16)>,
) -> Result<(usize, Vec<ORName>), ScenarioError> {
    let place = host(plan, &format!("{path}.host"), &site.host)?;
    if !has(plan, place, site.address) {
        let what = format!("{} is not an address of host {}", site.address, site.host);
        return wrong(format!("{path}.address"), what);
    }
    for (id, to) in &site.connects {
        if site.config.channel(*id).is_none() {
            return wrong(format!("{path}.connects"), format!("{id:?} is not configured"));
        }
        reachable(plan, place, site.address, to.ip(), &format!("{path}.connects"))?;
    }
    for (id, port) in &site.listens {
        let service = site.config.listener(*id).map(|listener| &listener.service);
        let Some(ListenerService::P1 { .. }) = service else {
            return wrong(format!("{path}.listens"), format!("invalid P1 listener {id:?}"));
        };
        listen(taken, place, *port, &format!("{path}.listens"))?;
    }
    let p3 = |l: &node::config::Listener| matches!(l.service, ListenerService::P3 { .. });
    if !site.users.is_empty() && !site.config.listeners.iter().any(p3) {
        return wrong(format!("{path}.users"), "the MTA has no listener of P3 for them");
    }
    let mut names = Vec::new();
    for (number, user) in site.users.iter().enumerate() {
        let path = format!("{path}.users[{number}].address");
        names.push(ORName::from(or_address(&path, &user.address)?));
    }
    Ok((place, names))
}

fn or_address(path: &str, text: &str) -> Result<ORAddress, ScenarioError> {
    let parsed = text.parse::<ORAddress>();
    parsed.or_else(|error| wrong(path, format!("invalid O/R address {text:?}: {error}")))
}

fn listen(
    taken: &mut BTreeSet<(usize, u16)>,
    host: usize,
    port: u16,
    path: &str,
) -> Result<(), ScenarioError> {
    if port == 0 || !taken.insert((host, port)) {
        return wrong(path, format!("port {port} of that host is zero or taken"));
    }
    Ok(())
}

/// An address that a packet from this host can reach.
fn reachable(
    plan: &NetworkPlan,
    from: usize,
    source: IpAddr,
    to: IpAddr,
    path: &str,
) -> Result<usize, ScenarioError> {
    if source.is_ipv4() != to.is_ipv4() {
        return wrong(path, format!("{source} and {to} are of different families"));
    }
    match path::host_of(plan, to) {
        Some(place) if path::mtu(plan, from, to).is_some() => Ok(place),
        _ => wrong(path, format!("no path leads to {to}, or no host has it")),
    }
}

fn message(
    path: &str,
    message: &SimulatedMessage,
    scenario: &Scenario,
) -> Result<(), ScenarioError> {
    let user = scenario.sites.get(message.from.site).map(|site| site.users.get(message.from.user));
    if user.flatten().is_none() {
        return wrong(format!("{path}.from"), format!("{:?} is not there", message.from));
    }
    or_address(&format!("{path}.to"), &message.to)?;
    if message.size == 0 || message.size > MAX_SIZE {
        return wrong(format!("{path}.size"), format!("{}; from 1 octet to 1 GiB", message.size));
    }
    if let SubmissionStart::After { message: before, .. } = message.start
        && before >= scenario.messages.len()
    {
        return wrong(format!("{path}.start"), format!("there is no message {before}"));
    }
    Ok(())
}

/// The first address of a host that is of the same family.
fn source(
    plan: &NetworkPlan,
    host: usize,
    to: IpAddr,
    path: &str,
) -> Result<IpAddr, ScenarioError> {
    let node = plan.nodes.get(host);
    let ports = node.map(|node| node.ports.iter()).unwrap_or_default();
    let mut own = ports.flat_map(|port| &port.addresses).map(|address| address.ip());
    match own.find(|own| own.is_ipv4() == to.is_ipv4()) {
        Some(own) => Ok(own),
        None => wrong(path, format!("the host has no address of the family of {to}")),
    }
}

fn datagrams(
    path: &str,
    number: usize,
    load: &UdpLoad,
    plan: &NetworkPlan,
) -> Result<(usize, usize, IpAddr), ScenarioError> {
    let from = host(plan, &format!("{path}.from"), &load.from)?;
    let own = source(plan, from, load.to.ip(), &format!("{path}.to"))?;
    let source = load.source.unwrap_or(own);
    let to = reachable(plan, from, source, load.to.ip(), &format!("{path}.to"))?;
    if load.rate == 0 || load.rate > MAX_RATE {
        return wrong(format!("{path}.rate"), "from 1 bit/s to 100 Gbit/s");
    }
    let (length, most) = (udp::length(load), path::mtu(plan, from, load.to.ip()).unwrap_or(0));
    if load.payload < udp::MIN_PAYLOAD || length > most {
        let least = udp::MIN_PAYLOAD;
        let what = format!("{} octets; at least {least}, and packets up to {most}", load.payload);
        return wrong(format!("{path}.payload"), what);
    }
    if !(0.0..=0.5).contains(&load.jitter) {
        return wrong(format!("{path}.jitter"), format!("{}; from 0 to 0.5", load.jitter));
    }
    if load.echo && path::mtu(plan, to, source).is_none_or(|most| length > most) {
        let what = format!("no path leads back to {source}, or not for packets of {length} octets");
        return wrong(format!("{path}.to"), what);
    }
    if number >= udp::MAX_UDP {
        return wrong("loads", format!("at most {} are simulated", udp::MAX_UDP));
    }
    Ok((from, to, source))
}

fn bulk(
    path: &str,
    load: &BulkLoad,
    plan: &NetworkPlan,
    taken: &mut BTreeSet<(usize, u16)>,
) -> Result<(usize, usize, IpAddr), ScenarioError> {
    let from = host(plan, &format!("{path}.from"), &load.from)?;
    let source = source(plan, from, load.to.ip(), &format!("{path}.to"))?;
    let to = reachable(plan, from, source, load.to.ip(), &format!("{path}.to"))?;
    listen(taken, to, load.to.port(), &format!("{path}.to"))?;
    if load.rate == Some(0) || load.rate > Some(MAX_RATE) {
        return wrong(format!("{path}.rate"), "from 1 bit/s to 100 Gbit/s");
    }
    Ok((from, to, source))
}

fn probe(path: &str, probe: &InterfaceProbe, plan: &NetworkPlan) -> Result<(), ScenarioError> {
    if probe.interval < Duration::from_millis(1) {
        return wrong(format!("{path}.interval"), format!("{:?}; 1 ms or longer", probe.interval));
    }
    let node = plan.node(&probe.router).and_then(|place| plan.nodes.get(place));
    let node = node.filter(|node| node.kind == network::NodeKind::Router);
    if !node.is_some_and(|node| node.ports.iter().any(|port| port.name == probe.interface)) {
        let what = format!("no router {:?} with a port {:?}", probe.router, probe.interface);
        return wrong(path, what);
    }
    Ok(())
}
