//! What stands in files, and lines of the admin socket.

use super::{Seed, hex, named};
use mta::admin::{Answer, Request};
use node::status::Status;
use std::path::Path;

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("values of ours")
}

/// Requests and answers.
pub fn admin() -> Vec<Seed> {
    let status = Status { mta: "MTA-HERE".to_owned(), ..Status::default() };
    named(&[
        ("ask-status", json(&Request::Status)),
        ("ask-reload", json(&Request::ReloadUsers)),
        ("ask-stop", json(&Request::Stop)),
        ("status", json(&Answer::Status(Box::new(status)))),
        ("done", json(&Answer::Done(Request::Stop))),
        ("error", json(&Answer::Error("not understood: \"x\"\u{e6}".to_owned()))),
    ])
}

/// The sites' files, without comments; and a small one with every optional key.
pub fn configs() -> Vec<Seed> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/sites");
    let bare = |name: &str| {
        let text = std::fs::read_to_string(directory.join(name)).expect("a file of ours");
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim_end());
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        (lines.join("\n") + "\n").into_bytes()
    };
    named(&[("naples", bare("naples.toml")), ("act", bare("act.toml")), ("full", FULL.into())])
}

const FULL: &str = r#"[mta]
name = "MTA-HERE"
country = "IT"
admd = " "
data_dir = "data"
admin_socket = "admin.sock"
stop_timeout = "20s"
[limits]
envelope = "1MiB"
content = "4GiB"
associations = 1024
bind_timeout = "30s"
[precedence]
plan = "rfc4594"
hold = "strict"
stall = "15s"
peek_content = true
report_precedence = "immediate"
no_qualifier = { urgent = "flash", normal = "priority", non-urgent = "routine" }
[p3]
listen = ["127.0.0.1:5010", "[::1]:5010"]
tsel = "P3"
ssel = { hex = "00ff" }
psel = "P3"
dscp = "CS0"
[[route]]
address = "/C=IT/ADMD= /PRMD=HERE"
via = "local"
[[route]]
address = "/C=IT"
via = "there"
[[peer]]
name = "there"
mta_name = "MTA-THERE"
own_name = "MTA-HERE"
password = { env = "OURS" }
expect = { env = "THEIRS" }
credentials = "octet"
extensions = "1988"
from = ["127.0.0.1", "::1"]
tsel = "P1"
own_psel = { hex = "01" }
tpdu_size = 8192
[[peer.channel]]
name = "low"
precedences = ["deferred", "routine", "priority"]
fallback = []
dscp = 10
remote = "127.0.0.1:5100"
listen = "127.0.0.1:5000"
connection = "on-demand"
idle_close = "300s"
associations = { max = 4, grow_at = 8 }
rts = { checkpoint = "64KiB", window = 16, dialogue = "monologue", indefinite = true }
congestion = "cubic"
timeouts = { connect = "10s", setup = "30s", transfer = "120s", dead_after = "60s", unacknowledged = "60s", keepalive = "30s" }
[[peer.channel]]
name = "high"
precedences = ["immediate", "flash", "override"]
fallback = ["priority"]
dscp = "EF"
remote = "127.0.0.1:5101"
"#;

/// Users' files.
pub fn users() -> Vec<Seed> {
    let line = |name: &str| {
        format!(
            "[[user]]\naddress = \"/C=IT/ADMD=NET/PRMD=HERE/S={name}\"\n\
             password = \"$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$\
             X0Zh3TRDXDQqg2T4nFAbRw2Z0NBwbpK0gGQ2qk4DPVE\"\n"
        )
    };
    let file = |names: &[&str]| names.iter().map(|name| line(name)).collect::<String>();
    named(&[
        ("none", Vec::new()),
        ("one", file(&["OPS"]).into_bytes()),
        ("two", file(&["OPS", "LOG"]).into_bytes()),
    ])
}

/// Configurations of Cisco IOS: the study's, and one with a line of each form.
pub fn ios() -> Vec<Seed> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/lab/ios");
    let text = std::fs::read_to_string(directory.join("isode-nato-2007.ios"));
    let text = text.expect("a file of ours");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('!')).collect();
    let forms = "access-list 10 deny host 10.0.0.1\naccess-list 10 permit 10.0.0.0 0.0.0.255\n\
        ip access-list extended E\n permit tcp any eq www host 10.0.0.2 range 5000 5004 dscp ef\n \
        deny udp 10.1.0.0 0.0.255.255 any gt 1023\n permit ip any any\n\
        ipv6 access-list S\n permit udp fd00::/8 any eq domain\n\
        class-map match-any A\n match access-group 10\n match not ip dscp af11 af12\n\
        class-map match-all B\n match access-group name E\n match class-map A\n match any\n\
        policy-map IN\n class A\n  police cir 64000 bc 2000 pir 128000 be 4000 conform-action transmit \
        exceed-action set-dscp-transmit af12 violate-action drop\n class B\n  set precedence flash\n \
        class class-default\n  drop\npolicy-map OUT\n class A\n  priority percent 10 2000\n class B\n  \
        bandwidth remaining percent 40\n  queue-limit 40 packets\n  random-detect ecn\n  \
        random-detect precedence 3 20 40\n class class-default\n  fair-queue 64\n  shape average 64000 8000\n\
        interface Serial0/0\n bandwidth 128\n service-policy input IN\n service-policy output OUT\n";
    named(&[("paper", (lines.join("\n") + "\n").into_bytes()), ("forms", forms.into())])
}

/// TCP over Ethernet, with IPv4 and IPv6.
pub fn frames() -> Vec<Seed> {
    let tcp = "12 34 13 8b 00000001 00000000 50 02 0100 dead 0000 \"ab\"";
    let v4 = format!(
        "0000000000000000 00000000 0800 45 62 002a 0001 0000 40 06 0000 7f000001 7f000002 {tcp} \
         ffffffff"
    );
    let v6 = format!(
        "0000000000000000 00000000 86dd 66 2a bcde 0016 06 40 {one} {one} {tcp}",
        one = "00000000000000000000000000000001"
    );
    named(&[("ipv4", hex(&v4)), ("ipv6", hex(&v6))])
}

/// Captures: pcapng with two interfaces and a resolution, pcap of Ethernet.
pub fn captures() -> Vec<Seed> {
    let packets = super::packets::packets();
    let mut pcapng = hex("0a0d0d0a 1c000000 4d3c2b1a 01000000 ffffffffffffffff 1c000000");
    pcapng.extend(hex(
        "01000000 24000000 65000000 00000000 02000400 65746830 09000100 09000000 24000000",
    ));
    pcapng.extend(hex("01000000 14000000 65000000 00000000 14000000"));
    let mut pcap = hex("d4c3b2a1 02000400 00000000 00000000 ffff0000 01000000");
    for (number, (_, octets)) in (0u32..).zip(&packets) {
        // Both interfaces see it, a millisecond apart.
        for interface in 0..2u32 {
            let size = octets.len() as u32;
            let padded = octets.len().next_multiple_of(4);
            let stamp = if interface == 0 { 1_000_000 } else { 1_000 } * (number + 2 * interface);
            let total = padded as u32 + 32;
            for word in [6, total, interface, 0, stamp, size, size] {
                pcapng.extend(word.to_le_bytes());
            }
            pcapng.extend(octets);
            pcapng.resize(pcapng.len() + padded - octets.len(), 0);
            pcapng.extend(total.to_le_bytes());
        }
        let six = octets.first().is_some_and(|first| first >> 4 == 6);
        let frame =
            [hex("020000000001020000000002 81000005"), hex(if six { "86dd" } else { "0800" })];
        let size = (18 + octets.len()) as u32;
        for word in [number, 5, size, size] {
            pcap.extend(word.to_le_bytes());
        }
        pcap.extend(frame.concat());
        pcap.extend(octets);
    }
    named(&[("pcapng", pcapng), ("pcap", pcap)])
}
