//! What this machine permits a process to do, found by trying it in a temporary namespace.

use crate::net::netns::{Netns, Rights};
use crate::net::ns::search_path;
use crate::net::packet_socket::PacketSocket;
use crate::net::tun;
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Whether something works; where not, why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Whether it works.
    pub works: bool,
    /// The error; absent where it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Finding {
    fn new<T>(done: Result<T>) -> Finding {
        let why = done.err().map(|error| format!("{error:#}"));
        Finding { works: why.is_none(), why }
    }
}

/// What works with the rights of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MachineProbe {
    /// Network namespaces.
    pub namespaces: Finding,
    /// A TUN device in one.
    pub tun: Finding,
    /// A veth pair between two.
    pub veth: Finding,
    /// A packet socket on it.
    pub packet_socket: Finding,
    /// Queueing disciplines of the kernel, by name.
    pub qdiscs: BTreeMap<String, Finding>,
    /// Congestion controls that a host may use.
    pub congestion: Vec<String>,
}

/// Queueing disciplines that the data path `tc` uses, or that users ask about, each with its
/// arguments for tc(8).
const QDISCS: [(&str, &str); 10] = [
    ("htb", "htb default 1"),
    ("gred", "gred setup DPs 3 default 1"),
    ("red", "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 10mbit"),
    ("netem", "netem delay 1ms"),
    ("tbf", "tbf rate 1mbit burst 10kb limit 30kb"),
    ("prio", "prio"),
    ("pfifo", "pfifo limit 10"),
    ("bfifo", "bfifo limit 10000"),
    ("sfq", "sfq"),
    ("fq_codel", "fq_codel"),
];

impl MachineProbe {
    /// With the rights that this process has acquired, or the reason why it has none.
    pub fn with(rights: Result<Rights>) -> MachineProbe {
        let nothing =
            |error: &anyhow::Error| Finding { works: false, why: Some(format!("{error:#}")) };
        let both = rights.and_then(|_| Ok((Netns::new()?, Netns::new()?)));
        let (one, other) = match both {
            Ok(both) => both,
            Err(error) => {
                let qdiscs = QDISCS.iter().map(|(name, _)| ((*name).to_owned(), nothing(&error)));
                return MachineProbe {
                    namespaces: nothing(&error),
                    tun: nothing(&error),
                    veth: nothing(&error),
                    packet_socket: nothing(&error),
                    qdiscs: qdiscs.collect(),
                    congestion: Vec::new(),
                };
            }
        };
        let veth = veth(&one, &other);
        MachineProbe {
            namespaces: Finding { works: true, why: None },
            tun: Finding::new(one.within(|| tun::open("probe"))),
            packet_socket: Finding::new(
                one.within(|| PacketSocket::open("near", Duration::ZERO).map(drop)),
            ),
            veth: Finding::new(veth),
            qdiscs: MachineProbe::of_qdiscs(&one),
            congestion: congestion(&one),
        }
    }
}

impl MachineProbe {
    /// The queueing disciplines that work in a namespace. They are tried on its loopback, which is
    /// left without any.
    pub fn of_qdiscs(namespace: &Netns) -> BTreeMap<String, Finding> {
        let qdisc = |(name, arguments): &(&str, &str)| {
            let line = format!("tc qdisc replace dev lo root {arguments}");
            let words: Vec<&str> = line.split_whitespace().collect();
            let tried = namespace.within(|| {
                run_here(&words)?;
                run_here(&["tc", "qdisc", "delete", "dev", "lo", "root"])
            });
            ((*name).to_owned(), Finding::new(tried))
        };
        QDISCS.iter().map(qdisc).collect()
    }
}

fn veth(one: &Netns, other: &Netns) -> Result<()> {
    one.ip(&[format!("link add near type veth peer name far netns {}", other.path())])
}

/// Runs a program with its arguments in the network namespace of this thread; an error has the
/// first line of its standard error.
pub fn run_here<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Result<()> {
    let Some((program, arguments)) = words.split_first() else { bail!("no program") };
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", search_path());
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{}", stderr.lines().next().unwrap_or("it failed").trim_start_matches("Error: "));
    }
    Ok(())
}

/// The congestion controls that can be set in a namespace.
fn congestion(namespace: &Netns) -> Vec<String> {
    let available = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = std::fs::read_to_string(available).unwrap_or_default();
    let mut controls: Vec<String> = available.split_whitespace().map(str::to_owned).collect();
    controls.retain(|control| namespace.set("ipv4/tcp_congestion_control", control).is_ok());
    controls
}
