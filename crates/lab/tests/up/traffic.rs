//! What real programs in the hosts see, over each data path.

use crate::support::{As, MARKING, PAIR, Up, directory, skip, skipped, text};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

/// The code points of the echo requests of a capture.
fn marks(file: &Path) -> Vec<u8> {
    let mut reader = PcapNgReader::new(File::open(file).unwrap()).unwrap();
    let mut marks = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        match packet.data.as_ref() {
            // ICMP echo, RFC 792; ICMPv6 echo, RFC 4443 4.1.
            [0x45, ds, rest @ ..] if rest[7] == 1 && rest[18] == 8 => marks.push(ds >> 2),
            [first, second, rest @ ..] if first >> 4 == 6 && rest[4] == 58 && rest[38] == 128 => {
                marks.push((first & 0x0f) << 2 | second >> 6);
            }
            _ => {}
        }
    }
    marks
}

/// What four echo requests, two of each version, with a DS field of `tos` have at `port`.
fn seen(up: &Up, port: &str, tos: u8) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.pcapng");
    let mut command =
        up.command(&["capture", "--lab", &up.name, port, "-", "--count", "8", "--for", "30s"]);
    let mut capture =
        command.stdout(File::create(&file).unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = std::io::BufReader::new(capture.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.contains("capturing"), "{line}");
    let tos = tos.to_string();
    up.assert_ping("a", "10.0.2.2", &["-Q", &tos]);
    up.assert_ping("a", "fd00:2::2", &["-Q", &tos]);
    // Two requests and two answers of each version.
    assert!(capture.wait().unwrap().success());
    marks(&file)
}

fn carries(who: As, path: &str, arguments: &[&str]) {
    let up = Up::start(who, PAIR, arguments);
    let said = up.is_up();
    assert!(said.contains(&format!("data path {path}")), "{said}");
    up.assert_ping("a", "10.0.2.2", &[]);
    up.assert_ping("b", "fd00:1::2", &[]);
    if path == "tc" {
        return;
    }
    const EF: u8 = 46;
    const CS3: u8 = 24;
    const AF41: u8 = 34;
    assert_eq!(seen(&up, "b.eth0", EF << 2), [EF; 4], "as it was sent");
    assert_eq!(seen(&up, "r.left", CS3 << 2), [CS3; 4], "before it is marked");
    assert_eq!(seen(&up, "b.eth0", CS3 << 2), [AF41; 4], "as the policy marks it");
    let flow = ["router", "--lab", &up.name, "r", "flow"];
    let add = ["add", "flows", "all", "--source", "10.0.1.2", "--mark", "CS5"];
    let added = up.run(&[&flow[..], &add].concat());
    assert!(added.status.success(), "{}", text(&added));
    let mut changed = seen(&up, "b.eth0", EF << 2);
    changed.sort_unstable();
    assert_eq!(changed, [40, 40, EF, EF], "IPv4 has another mark from now on");
    let deleted = up.run(&[&flow[..], &["delete", "flows", "all"]].concat());
    assert!(deleted.status.success(), "{}", text(&deleted));
    assert_eq!(seen(&up, "b.eth0", EF << 2), [EF; 4], "and no longer");
}

/// Whether programs that are no part of the project are there.
fn lacks_ping(test: &str) -> bool {
    let found = std::process::Command::new("ping").arg("-V").output().is_ok();
    if !found {
        skip(test, "no ping (iputils-ping)");
    }
    !found
}

#[test]
fn tun_devices_carry_every_mark() {
    let test = "tun_devices_carry_every_mark";
    if skipped(test, As::Own) || lacks_ping(test) {
        return;
    }
    let doctor = As::Own.command().args(["doctor", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    if report["path"] != "tun" {
        return skip(test, &report["advice"].to_string());
    }
    carries(As::Own, "tun", &[]);
}

#[test]
fn packet_sockets_carry_every_mark() {
    let test = "packet_sockets_carry_every_mark";
    if !skipped(test, As::Own) && !lacks_ping(test) {
        carries(As::Own, "packet", &["--path", "packet"]);
    }
}

#[test]
fn without_the_tun_device_packet_sockets_are_taken() {
    let test = "without_the_tun_device_packet_sockets_are_taken";
    if !skipped(test, As::WithoutTun) && !lacks_ping(test) {
        carries(As::WithoutTun, "packet", &[]);
    }
}

#[test]
fn a_user_without_rights_has_a_network_too() {
    let test = "a_user_without_rights_has_a_network_too";
    if skipped(test, As::Nobody) || lacks_ping(test) {
        return;
    }
    let doctor = As::Nobody.command().args(["doctor", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    carries(As::Nobody, report["path"].as_str().unwrap(), &[]);
}

#[test]
fn the_kernel_forwards_too() {
    let test = "the_kernel_forwards_too";
    if !skipped(test, As::Own) && !lacks_ping(test) {
        carries(As::Own, "tc", &["--path", "tc"]);
    }
}

#[test]
fn the_counters_tell_routers_parts_and_code_points() {
    let test = "the_counters_tell_routers_parts_and_code_points";
    if skipped(test, As::Own) || lacks_ping(test) {
        return;
    }
    let up = Up::new(As::Own, PAIR, &[]);
    up.assert_ping("a", "10.0.2.2", &["-Q", "96"]);
    let output = up.run(&["status", &up.name, "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["name"], up.name.as_str());
    let nodes = status["nodes"].as_array().unwrap();
    let router = nodes.iter().find(|node| node["name"] == "r").unwrap();
    let parts = router["parts"].as_array().unwrap();
    let right = parts.iter().find(|part| part["part"] == "right").unwrap();
    let row = |name: &str| {
        right["rows"].as_array().unwrap().iter().find(|row| row["dscp_name"] == name).unwrap()
    };
    assert_eq!(row("AF41")["went"]["packets"], 2);
    assert_eq!(row("AF41")["dscp"], 34);
    let shown = text(&up.run(&["status", &up.name]));
    assert!(shown.contains("AF41") && shown.contains("right/queueing"), "{shown}");
}

#[test]
fn two_networks_of_one_file_do_not_hear_each_other() {
    let test = "two_networks_of_one_file_do_not_hear_each_other";
    if skipped(test, As::Own) || lacks_ping(test) {
        return;
    }
    let of = |arguments: &[&str]| {
        let directory = directory(&[("t.toml", PAIR), ("mark.toml", MARKING)]);
        let file = directory.path().join("t.toml");
        let up = Up::of_file(As::Own, &file, arguments, directory);
        up.is_up();
        up
    };
    let (one, other) = (of(&["--path", "packet"]), of(&["--path", "packet"]));
    one.assert_ping("a", "10.0.2.2", &[]);
    let output = other.run(&["status", &other.name, "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // What a host's kernel says by itself (IPv6 multicast) goes no further than the first router.
    assert_eq!(status["carried"]["to_hosts"]["packets"], 0, "{status}");
}

/// Naples, its router, the gateway's tunnel, the wide area, and back to another site.
#[test]
fn ping_crosses_the_nato_network() {
    let test = "ping_crosses_the_nato_network";
    if skipped(test, As::Own) || lacks_ping(test) {
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/topologies/nato.toml");
    let up = Up::of_file(As::Own, &file, &[], directory(&[]));
    up.is_up();
    let topology = network::Topology::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let plan = network::Plan::new(&topology).unwrap();
    let hosts: Vec<_> = plan.hosts().map(|(_, host)| host).collect();
    for from in &hosts {
        for to in hosts.iter().filter(|to| to.name != from.name) {
            for address in &to.ports[0].addresses {
                up.assert_ping(&from.name, &address.ip().to_string(), &[]);
            }
        }
    }
}
