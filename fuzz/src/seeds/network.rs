//! Networks as text, without their comments; packets for a gateway.

use super::{Seed, named};
use dscp::Dscp;
use router::packet::{HeaderFields, udp};
use std::net::IpAddr;
use std::path::Path;

/// A file of the laboratory's, without its comments.
fn bare(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/lab");
    let text = std::fs::read_to_string(directory.join(name)).expect("a file of ours");
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim_end());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    (lines.join("\n") + "\n").into_bytes()
}

/// Topologies: three that are shipped, and one with every key.
pub fn topologies() -> Vec<Seed> {
    named(&[
        ("pair", bare("topologies/pair.toml")),
        ("nato", bare("topologies/nato.toml")),
        ("degeb", bare("topologies/degeb.toml")),
        ("crypto", CRYPTO.into()),
    ])
}

/// The shipped policies, their interfaces named as the target's router has them.
pub fn policies() -> Vec<Seed> {
    let names = [
        "bern-ef-af",
        "bern-interior",
        "degeb-core",
        "degeb-edge",
        "nato-single-queue-ordered",
        "nato-single-queue-wred",
        "nato-three-queues",
        "plain",
    ];
    named(&names.map(|name| {
        let text = String::from_utf8(bare(&format!("policies/{name}.toml"))).expect("UTF-8");
        (name, text.replace("[interfaces.access]", "[interfaces.lan]").into_bytes())
    }))
}

const CRYPTO: &str = r#"about = "two sites behind gateways"
[hosts.a]
congestion_control = "cubic"
sysctls = { "net.ipv4.tcp_sack" = 0 }
routes = [{ to = "10.9.0.0/16", via = "eth0" }]
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24", "fd00:1::2/64"]
queue = 5
[hosts.b.ports.eth0]
addresses = ["10.0.2.2/24", "fd00:2::2/64"]
[gateways.ga]
peers = ["gb"]
outer = "v6"
overhead = 24
dscp = { fixed = "CS1" }
ecn = "compatibility"
red.addresses = ["10.0.1.1/24", "fd00:1::1/64"]
black.addresses = ["192.168.1.1/30", "fd09:1::1/64"]
[gateways.gb]
red.addresses = ["10.0.2.1/24", "fd00:2::1/64"]
black.addresses = ["192.168.2.1/30", "fd09:2::1/64"]
[routers.w]
policy = "plain"
routes = [{ to = "fd09:2::1/128", via = "b" }]
[routers.w.ports]
a.addresses = ["192.168.1.2/30", "fd09:1::2/64"]
b.addresses = ["192.168.2.2/30", "fd09:2::2/64"]
[[links]]
ends = ["a.eth0", "ga.red"]
[[links]]
ends = ["ga.black", "w.a"]
rate = "512kbit"
overhead = 14
delay = "25ms"
jitter = "3ms"
reorder = true
loss = 0.1
mtu = 1600
duplex = "half"
[[links]]
ends = ["w.b", "gb.black"]
[[links]]
ends = ["gb.red", "b.eth0"]
"#;

/// Packets that a gateway hides, and some it has hidden.
pub fn packets() -> Vec<Seed> {
    let packet = |source: &str, destination: &str, length| {
        let [source, destination]: [IpAddr; 2] =
            [source, destination].map(|text| text.parse().expect("an address"));
        let fields =
            HeaderFields { source, destination, protocol: 17, dscp: Dscp::CS3, ecn: 2, ttl: 64 };
        udp(&fields, (5_003, 5_003), length).expect("a packet")
    };
    let four = packet("10.0.1.2", "10.0.2.2", 100);
    let six = packet("fd00:1::2", "fd00:2::2", 120);
    let hidden = |octets: &[u8]| crate::targets::network::hidden(octets.to_vec()).expect("sent");
    named(&[
        ("four", four.clone()),
        ("six", six.clone()),
        ("long", packet("10.0.1.2", "10.0.2.2", 1_500)),
        ("hidden-four", hidden(&four)),
        ("hidden-six", hidden(&six)),
    ])
}
