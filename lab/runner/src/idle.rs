//! Probes of idle paths, and what they take there.

use super::sites::end;
use anyhow::{Context as _, Result};
use network::plan::RouteNextHop;
use network::{NetworkPlan, PortId};
use std::time::Duration;
use study::Planned;
use study::file::StudyLoad;

/// Octets of a probe's payload.
pub(super) const PAYLOAD: u16 = 64;
/// Probes a second, where that is not too many in all.
const EACH_SECOND: u64 = 50;
/// Most probes of a path.
const MAX: u64 = 10_000;
/// More hops than any path has.
const MAX_HOPS: usize = 256;
/// Octets of UDP's header.
const UDP: usize = 8;

/// Octets of a probe from its IP header on.
fn octets(is_ipv4: bool) -> usize {
    usize::from(PAYLOAD) + UDP + if is_ipv4 { 20 } else { 40 }
}

/// Bits a second of probes for so long.
pub(super) fn rate(time: Duration, is_ipv4: bool) -> u64 {
    let each = EACH_SECOND.min(MAX / time.as_secs().max(1)).max(1);
    octets(is_ipv4) as u64 * 8 * each
}

/// What a probe takes over the idle path of a load: the lines it has to be written to, and what they
/// delay. What a router takes for it is no more than a part of a clock's offset.
pub(super) fn idle_ms(planned: &Planned, load: &StudyLoad) -> Result<f64> {
    let plan = NetworkPlan::new(&planned.topology)
        .map_err(|wrong| anyhow::anyhow!("the topology: {}: {}", wrong.path, wrong.what))?;
    let to = end(planned, load)?;
    let mut at = plan.node(&load.from).context("no such host")?;
    let last = plan.node(&load.to).context("no such host")?;
    let mut seconds = 0.0;
    for _ in 0..MAX_HOPS {
        if at == last {
            return Ok(seconds * 1e3);
        }
        let node = plan.nodes.get(at).context("no such node")?;
        let Some(RouteNextHop::Port(port)) = node.route(to) else { break };
        let port = PortId { node: at, port };
        let wire = node.ports.get(port.port).and_then(|port| plan.links.get(port.link));
        let link = &wire.context("no such link")?.link;
        let bits = (octets(to.is_ipv4()) + link.overhead as usize) as f64 * 8.0;
        // Jitter is a further delay of up to so much.
        seconds += link.delay.0.as_secs_f64() + link.jitter.0.as_secs_f64() / 2.0;
        seconds += link.rate.map_or(0.0, |rate| bits / rate.bits() as f64);
        at = plan.far_end(port).context("no such port")?.node;
    }
    anyhow::bail!("{} to {}: no path without tunnels, whose delay is known", load.from, load.to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_path_takes_what_its_lines_do() {
        let load = |from: &str, to: &str| -> StudyLoad {
            toml::from_str(&format!("name = 'x'\nfrom = '{from}'\nto = '{to}'")).unwrap()
        };
        let first = |study: &str| crate::find(study).unwrap().plan().unwrap().swap_remove(0);
        // 64 + 28 + 38 octets at 100 Mbit/s, four times.
        let idle = idle_ms(&first("bern-2002"), &load("a", "b")).unwrap();
        assert!((idle - 0.0416).abs() < 1e-9, "{idle}");
        // Tunnels add to packets what only the gateways know.
        assert!(idle_ms(&first("isode-nato-2007"), &load("naples", "act")).is_err());
    }

    #[test]
    fn probes_are_bounded_in_all() {
        assert_eq!(rate(Duration::from_secs(2), true), 92 * 8 * 50);
        assert_eq!(rate(Duration::from_secs(600), false), 112 * 8 * 16);
    }
}
