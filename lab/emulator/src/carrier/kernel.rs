//! The kernel's own routers: a namespace for each, with forwarding and htb. They do less than a policy
//! defines; what they leave out is reported. They serve as a comparison, and for rates beyond those of
//! our routers.

use crate::TimeOrigin;
use crate::carrier::hosts::{Hosts, lines};
use crate::carrier::interfaces::{self, Interface};
use crate::carrier::kind::DataPathKind;
use crate::carrier::path::DataPath;
use crate::carrier::taps::Taps;
use crate::control::ask::{Ask, Asked, Questions, Reply};
use crate::control::status::{CarriedTraffic, NetworkStatus, NodeStatus, PartStatus, TrafficCount};
use crate::files::Files;
use anyhow::{Context, Result};
use network::plan::{NetworkPlan, NodeKind, PlanLink, PlanNode, PortId};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd as _;
use std::time::Duration;
use testbed::batch;
use testbed::clock;
use testbed::netns::Netns;
use testbed::probe::{MachineProbe, run_here};
use text::UsageError;
use translation::tc_export::{Command, Qdiscs, ScriptLine, script};

/// The longest sleep.
const SLEEP: Duration = Duration::from_millis(500);
/// Packets that wait for a link with a rate, as in a router without a policy.
const QUEUE: usize = 100;

/// Routers in namespaces of their own, joined by veth pairs with each other and with the hosts.
pub(crate) struct Kernel {
    routers: BTreeMap<String, Netns>,
    at_hosts: BTreeSet<(String, String)>,
    taps: Taps,
    origin: TimeOrigin,
}

impl Kernel {
    /// Makes all routers and links.
    ///
    /// # Errors
    /// The topology has gateways, which the kernel does not have; or a command fails.
    pub(crate) fn new(plan: &NetworkPlan, hosts: &Hosts, files: &Files) -> Result<Kernel> {
        if let Some(gateway) = plan.nodes.iter().find(|node| node.kind == NodeKind::Gateway) {
            return Err(UsageError::error(format!(
                "gateways.{}: the data path tc has no gateways; take tun or packet",
                gateway.name
            )));
        }
        let mut routers = BTreeMap::new();
        for node in plan.nodes.iter().filter(|node| node.kind == NodeKind::Router) {
            let namespace = Netns::new()?;
            namespace.prepare()?;
            for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                let done = namespace.set(setting, "1");
                // A machine may have no IPv6.
                if setting.starts_with("ipv4") {
                    done?;
                }
            }
            routers.insert(node.name.clone(), namespace);
        }
        let origin = TimeOrigin::now();
        let taps = Taps::new(ports(plan, hosts, &routers)?, origin);
        let kernel = Kernel { routers, at_hosts: at_hosts(plan), taps, origin };
        for (number, wire) in plan.links.iter().enumerate() {
            kernel.join(plan, hosts, number, wire)?;
        }
        // Frames with the address of both ends need no address resolution.
        hosts.configure(plan, &["arp off"])?;
        for node in plan.nodes.iter().filter(|node| node.kind == NodeKind::Router) {
            let Some(namespace) = kernel.routers.get(&node.name) else { continue };
            let lines = lines(node, &["arp off"]);
            namespace.ip(&lines).with_context(|| format!("router {}", node.name))?;
        }
        let mut left_out = left_out(plan);
        // Ports whose policy's queueing keeps to the rate of their link.
        let mut queued = Vec::new();
        for (number, node) in plan.nodes.iter().enumerate() {
            if node.kind == NodeKind::Router {
                left_out.extend(kernel.policy(number, node, plan, files, &mut queued)?);
            }
        }
        for wire in &plan.links {
            kernel.shape(plan, hosts, wire, &queued)?;
        }
        for line in left_out {
            eprintln!("not with the data path tc: {line}");
        }
        Ok(kernel)
    }

    /// Configures a router's ports with the kernel's nearest equivalent of their policy; returns what
    /// that leaves out. Ports that have their policy's queueing are added to `queued`.
    ///
    /// # Errors
    /// The kernel refuses a command.
    fn policy(
        &self,
        number: usize,
        node: &PlanNode,
        plan: &NetworkPlan,
        files: &Files,
        queued: &mut Vec<PortId>,
    ) -> Result<Vec<String>> {
        let named = files.topology().routers.get(&node.name);
        let policy = named.and_then(|router| files.policies.get(router.policy.as_ref()?));
        let (Some(policy), Some(namespace)) = (policy, self.routers.get(&node.name)) else {
            return Ok(Vec::new());
        };
        let probe = MachineProbe::of_qdiscs(namespace);
        let has = probe.iter().filter(|(_, finding)| finding.works);
        let qdiscs = Qdiscs::from_names(has.map(|(name, _)| name.as_str()));
        let nft = namespace.within(|| run_here(&["nft", "list", "tables"]));
        let mut left_out = Vec::new();
        for (place, port) in node.ports.iter().enumerate() {
            let of = policy.interfaces.get(&port.name).or_else(|| policy.interfaces.get("*"));
            let Some(of) = of else { continue };
            let name = format!("{}.{}", node.name, port.name);
            let link = plan.links.get(port.link).map(|wire| &wire.link);
            let line = link
                .and_then(|link| Some(ScriptLine { rate: link.rate?, overhead: link.overhead }));
            let script = match script(policy, &port.name, &port.name, &qdiscs, line) {
                Ok(script) => script,
                Err(why) => {
                    left_out.push(format!("{name}: {why}"));
                    continue;
                }
            };
            if of.queueing.is_some() {
                queued.push(PortId { node: number, port: place });
            }
            let is_nft =
                |command: &Command| command.words.first().is_some_and(|word| word == "nft");
            if let (Err(why), true) = (&nft, script.commands.iter().any(is_nft)) {
                left_out.push(format!("{name}: all that nft would do: {why:#}"));
            }
            for command in script.commands.iter().filter(|of| nft.is_ok() || !is_nft(of)) {
                let shown = command.words.join(" ");
                namespace
                    .within(|| run_here(&command.words))
                    .with_context(|| format!("{name}: {shown}"))?;
                left_out.extend(
                    command.about.as_ref().map(|about| format!("{name}: {shown}: {about}")),
                );
            }
            left_out.extend(script.left_out.iter().map(|what| format!("{name}: {what}")));
        }
        Ok(left_out)
    }

    fn end<'a>(
        &'a self,
        plan: &'a NetworkPlan,
        hosts: &'a Hosts,
        id: PortId,
    ) -> Result<(&'a Netns, &'a str)> {
        end(plan, hosts, &self.routers, id)
    }

    fn join(
        &self,
        plan: &NetworkPlan,
        hosts: &Hosts,
        number: usize,
        wire: &PlanLink,
    ) -> Result<()> {
        let [one, other] = wire.ends;
        let (a, a_name) = self.end(plan, hosts, one)?;
        let (b, b_name) = self.end(plan, hosts, other)?;
        let mtu = wire.link.mtu;
        let [.., high, low] = number.to_be_bytes();
        let mac = format!("02:00:00:00:{high:02x}:{low:02x}");
        a.ip(&[format!(
            "link add {a_name} mtu {mtu} type veth peer name {b_name} mtu {mtu} netns {}",
            b.path()
        )])?;
        for (namespace, name) in [(a, a_name), (b, b_name)] {
            namespace.within(|| batch::without_offloads(name))?;
            namespace.ip(&[format!("link set dev {name} address {mac}")])?;
        }
        Ok(())
    }

    /// Gives both ends of a link its rate, but for those that have queueing already.
    fn shape(
        &self,
        plan: &NetworkPlan,
        hosts: &Hosts,
        wire: &PlanLink,
        queued: &[PortId],
    ) -> Result<()> {
        let Some(rate) = wire.link.rate else { return Ok(()) };
        for id in wire.ends.into_iter().filter(|id| !queued.contains(id)) {
            let (namespace, name) = self.end(plan, hosts, id)?;
            let rate = rate.bits();
            let overhead = wire.link.overhead;
            namespace.tc(&[
                format!("qdisc replace dev {name} root handle 1: htb default 1"),
                format!(
                    "class replace dev {name} parent 1: classid 1:1 htb rate {rate}bit overhead \
                     {overhead}"
                ),
                format!("qdisc replace dev {name} parent 1:1 pfifo limit {QUEUE}"),
            ])?;
        }
        Ok(())
    }

    fn counters(&self) -> Result<NetworkStatus> {
        let mut carried =
            CarriedTraffic { captures_missed: self.taps.missed(), ..CarriedTraffic::default() };
        let mut routers = Vec::new();
        for (name, namespace) in &self.routers {
            let all = namespace.within(|| interfaces::read(&mut interfaces::open()?))?;
            for Interface { name: port, total, .. } in &all {
                if self.at_hosts.contains(&(name.clone(), port.clone())) {
                    carried.from_hosts.add_all(total.came);
                    carried.to_hosts.add_all(total.went);
                }
            }
            let parts = all.into_iter().map(part).collect();
            routers.push(NodeStatus { name: name.clone(), parts });
        }
        Ok(NetworkStatus::new(DataPathKind::Tc, self.origin.time(), carried, routers))
    }
}

/// A port's namespace and name.
fn end<'a>(
    plan: &'a NetworkPlan,
    hosts: &'a Hosts,
    routers: &'a BTreeMap<String, Netns>,
    id: PortId,
) -> Result<(&'a Netns, &'a str)> {
    let node = plan.nodes.get(id.node).context("a node that is not in the plan")?;
    let port = node.ports.get(id.port).context("a port that is not in the plan")?;
    let namespace = hosts.namespace(id.node).or_else(|| routers.get(&node.name));
    Ok((namespace.context("a node without a namespace")?, &port.name))
}

/// All ports by their names.
fn ports(
    plan: &NetworkPlan,
    hosts: &Hosts,
    routers: &BTreeMap<String, Netns>,
) -> Result<BTreeMap<String, (Netns, String)>> {
    let all = plan.links.iter().flat_map(|wire| wire.ends);
    let one = |id| {
        let (namespace, name) = end(plan, hosts, routers, id)?;
        Ok((plan.port_name(id), (namespace.another()?, name.to_owned())))
    };
    all.map(one).collect()
}

/// Routers with their ports at whose other end a host is. What hosts send each other without a
/// router between them passes none.
fn at_hosts(plan: &NetworkPlan) -> BTreeSet<(String, String)> {
    let ends = plan.links.iter().flat_map(|wire| {
        let [one, other] = wire.ends;
        [(one, other), (other, one)]
    });
    let near = ends.filter_map(|(near, far)| {
        let (near_node, far_node) = (plan.nodes.get(near.node)?, plan.nodes.get(far.node)?);
        let port = near_node.ports.get(near.port)?;
        let kinds = (near_node.kind, far_node.kind);
        (kinds == (NodeKind::Router, NodeKind::Host))
            .then(|| (near_node.name.clone(), port.name.clone()))
    });
    near.collect()
}

fn part(of: Interface) -> PartStatus {
    PartStatus {
        part: of.name,
        kind: "interface".to_owned(),
        queue: TrafficCount::default(),
        queue_most: 0,
        queue_average: 0.0,
        rows: Vec::new(),
        total: Some(of.total),
    }
}

/// What of the links the kernel does not do.
fn left_out(plan: &NetworkPlan) -> Vec<String> {
    let mut left_out = Vec::new();
    for wire in &plan.links {
        let ends = wire.ends.map(|end| plan.port_name(end)).join(" - ");
        let link = &wire.link;
        let lacking = [
            ("delay", !link.delay.0.is_zero()),
            ("jitter", !link.jitter.0.is_zero()),
            ("loss", link.loss > 0.0),
            ("half duplex", link.duplex == network::topology::Duplex::Half),
        ];
        let lacking: Vec<&str> =
            lacking.iter().filter(|(_, lacks)| *lacks).map(|(what, _)| *what).collect();
        if !lacking.is_empty() {
            left_out.push(format!("link {ends}: {}", lacking.join(", ")));
        }
    }
    left_out
}

impl DataPath for Kernel {
    fn run(&mut self, questions: &mut Questions) -> Result<()> {
        while !clock::is_interrupted() {
            let mut watched = [PollFd::new(questions.wake.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut watched, Some(TimeSpec::from_duration(SLEEP)), None) {
                Ok(0) | Err(Errno::EINTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error).context("ppoll(2)"),
            }
            questions.woken();
            while let Some(Asked { ask, answer }) = questions.next() {
                let reply = match ask {
                    Ask::Status => self.counters().map(|status| Reply::Status(Box::new(status))),
                    Ask::Sweep => Ok(Reply::Done),
                    Ask::Flow { .. } => Err(UsageError::error(
                        "the data path tc has no tables of flows: the kernel forwards",
                    )),
                    Ask::Flood(_) | Ask::Floods => Err(UsageError::error(
                        "the data path tc makes no packets itself: the kernel forwards",
                    )),
                    Ask::Listen { port, to } => self.taps.listen(&port, to).map(|()| Reply::Done),
                };
                let _ = answer.send(reply.map_err(|error| format!("{error:#}")));
            }
        }
        Ok(())
    }

    fn status(&mut self) -> Result<NetworkStatus> {
        self.counters()
    }
}
