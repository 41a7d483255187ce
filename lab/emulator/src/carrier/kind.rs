//! The choice of the data path.

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use testbed::probe::MachineProbe;
use text::UsageError;

/// How packets get from a host's kernel to the routers and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum DataPathKind {
    /// Over a TUN device in each host: our routers, least overhead.
    Tun,
    /// Over a packet socket at the far end of a veth pair: our routers, where /dev/net/tun cannot
    /// be opened.
    Packet,
    /// The kernel's own forwarding and queueing disciplines, in a namespace for each router.
    Tc,
}

impl fmt::Display for DataPathKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataPathKind::Tun => "tun",
            DataPathKind::Packet => "packet",
            DataPathKind::Tc => "tc",
        })
    }
}

impl DataPathKind {
    /// The requested one, or the first that works: TUN, then packet sockets. The kernel's
    /// forwarding does not implement policies, and so is taken only on request.
    ///
    /// # Errors
    /// It does not work here; why.
    pub fn choose(wanted: Option<DataPathKind>, probe: &MachineProbe) -> Result<DataPathKind> {
        let kinds = wanted.map_or(vec![DataPathKind::Tun, DataPathKind::Packet], |kind| vec![kind]);
        let mut against = Vec::new();
        for kind in kinds {
            let needs = match kind {
                DataPathKind::Tun => vec![&probe.namespaces, &probe.tun],
                DataPathKind::Packet => vec![&probe.namespaces, &probe.veth, &probe.packet_socket],
                DataPathKind::Tc => vec![&probe.namespaces, &probe.veth],
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
        Err(UsageError::error(format!("{what}: {against} (see `lab doctor`)")))
    }
}
