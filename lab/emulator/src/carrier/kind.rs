//! Which data path is taken.

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use testbed::probe::Probe;
use text::Usage;

/// How packets get from a host's kernel to the routers and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Over a TUN device in each host: our routers, least overhead.
    Tun,
    /// Over a packet socket at the far end of a veth pair: our routers, where /dev/net/tun cannot
    /// be opened.
    Packet,
    /// The kernel's own forwarding and queueing disciplines, in a namespace for each router.
    Tc,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Tun => "tun",
            Kind::Packet => "packet",
            Kind::Tc => "tc",
        })
    }
}

impl Kind {
    /// The one that is asked for, or the first that works: TUN, then packet sockets. The kernel's
    /// forwarding does not do what a policy says, and so is never taken without being asked for.
    ///
    /// # Errors
    /// It does not work here; why.
    pub fn choose(wanted: Option<Kind>, probe: &Probe) -> Result<Kind> {
        let kinds = wanted.map_or(vec![Kind::Tun, Kind::Packet], |kind| vec![kind]);
        let mut against = Vec::new();
        for kind in kinds {
            let needs = match kind {
                Kind::Tun => vec![&probe.namespaces, &probe.tun],
                Kind::Packet => vec![&probe.namespaces, &probe.veth, &probe.packet_socket],
                Kind::Tc => vec![&probe.namespaces, &probe.veth],
            };
            match needs.iter().find(|finding| !finding.works) {
                None => return Ok(kind),
                Some(lacking) => {
                    let why = lacking.why.as_deref().unwrap_or("it does not work");
                    against.push(format!("{kind}: {why}"));
                }
            }
        }
        let against = against.join("; ");
        let what = match wanted {
            Some(_) => "this data path does not work here",
            None => "no data path works here",
        };
        Err(Usage::error(format!("{what}: {against} (see `lab doctor`)")))
    }
}
