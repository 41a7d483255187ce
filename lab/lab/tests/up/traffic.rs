//! What real programs in the hosts see, over each data path.

use crate::support::{As, MARKING, PAIR, PATIENCE, Up, directory, skip, skipped, text};
use nix::sys::signal::Signal;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use testbed::clock::Deadline;

/// The code points of the echo requests of a capture, and whether each came in; so far, where it is
/// still written.
fn requests(file: &Path) -> Vec<(u8, bool)> {
    let mut requests = Vec::new();
    let Ok(mut reader) = PcapNgReader::new(File::open(file).unwrap()) else { return requests };
    while let Some(Ok(block)) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block else { continue };
        let dscp = match packet.data.as_ref() {
            // ICMP echo, RFC 792; ICMPv6 echo, RFC 4443 4.1.
            [0x45, ds, rest @ ..] if rest[7] == 1 && rest[18] == 8 => ds >> 2,
            [first, second, rest @ ..] if first >> 4 == 6 && rest[4] == 58 && rest[38] == 128 => {
                (first & 0x0f) << 2 | second >> 6
            }
            _ => continue,
        };
        let inbound = packet.options.contains(&EnhancedPacketOption::Flags(1));
        requests.push((dscp, inbound));
    }
    requests
}

/// The code points alone.
fn marks(file: &Path) -> Vec<u8> {
    requests(file).into_iter().map(|(dscp, _)| dscp).collect()
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

/// The same where the kernel forwards, and sends packets of its own: until four requests were
/// seen, of which all went in the same direction. Returns whether it was inbound.
fn seen_by_the_kernel(up: &Up, port: &str, dscp: u8) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.pcapng");
    let mut command = up.command(&["capture", "--lab", &up.name, port, "-"]);
    let to = File::create(&file).unwrap();
    let mut capture = command.stdout(to).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = std::io::BufReader::new(capture.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.contains("capturing"), "{line}");
    let tos = (dscp << 2).to_string();
    up.assert_ping("a", "10.0.2.2", &["-Q", &tos]);
    up.assert_ping("a", "fd00:2::2", &["-Q", &tos]);
    let all = Deadline::after(PATIENCE)
        .wait_for("four requests", || Ok((requests(&file).len() >= 4).then_some(())));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(capture.id() as i32), Signal::SIGINT)
        .unwrap();
    assert!(capture.wait().unwrap().success());
    all.unwrap();
    let requests = requests(&file);
    let inbound = requests[0].1;
    assert_eq!(requests, [(dscp, inbound); 4], "{port}");
    inbound
}

fn carries(who: As, path: &str, arguments: &[&str]) {
    let up = Up::start(who, PAIR, arguments);
    let line = up.is_up();
    assert!(line.contains(&format!("data path {path}")), "{line}");
    up.assert_ping("a", "10.0.2.2", &[]);
    up.assert_ping("b", "fd00:1::2", &[]);
    if path == "tc" {
        let carried = &status(&up)["carried"];
        assert!(carried["from_hosts"]["packets"].as_u64().unwrap() >= 8, "{carried}");
        assert!(carried["to_hosts"]["packets"].as_u64().unwrap() >= 8, "{carried}");
        assert!(seen_by_the_kernel(&up, "r.left", 46), "in");
        assert!(!seen_by_the_kernel(&up, "r.right", 46), "out");
        assert!(seen_by_the_kernel(&up, "b.eth0", 0), "in");
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
    // The first one that matches is taken.
    let before = ["add", "flows", "first", "--source", "10.0.1.2", "--mark", "CS6"];
    let added = up.run(&[&flow[..], &before, &["--before", "all"]].concat());
    assert!(added.status.success(), "{}", text(&added));
    changed = seen(&up, "b.eth0", EF << 2);
    changed.sort_unstable();
    assert_eq!(changed, [EF, EF, 48, 48]);
    let replace = ["replace", "flows", "first", "--source", "10.0.1.2", "--mark", "CS7"];
    let replaced = up.run(&[&flow[..], &replace].concat());
    assert!(replaced.status.success(), "{}", text(&replaced));
    changed = seen(&up, "b.eth0", EF << 2);
    changed.sort_unstable();
    assert_eq!(changed, [EF, EF, 56, 56]);
    let listed = text(&up.run(&[&flow[..], &["list", "flows"]].concat()));
    assert!(listed.find("CS7") < listed.find("CS5"), "in their order: {listed}");
    let deleted = up.run(&[&flow[..], &["delete", "flows", "first"]].concat());
    assert!(deleted.status.success(), "{}", text(&deleted));
    let deleted = up.run(&[&flow[..], &["delete", "flows", "all"]].concat());
    assert!(deleted.status.success(), "{}", text(&deleted));
    assert_eq!(seen(&up, "b.eth0", EF << 2), [EF; 4], "and no longer");
}

fn status(up: &Up) -> serde_json::Value {
    let output = up.run(&["status", &up.name, "--json"]);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether programs from outside the project are installed.
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
fn the_counters_distinguish_routers_parts_and_code_points() {
    let test = "the_counters_distinguish_routers_parts_and_code_points";
    if skipped(test, As::Own) || lacks_ping(test) {
        return;
    }
    let up = Up::new(As::Own, PAIR, &[]);
    up.assert_ping("a", "10.0.2.2", &["-Q", "96"]);
    let status = status(&up);
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

/// A network that is stopped reads nothing: the kernel keeps so many packets, the rest is lost.
fn counts_what_is_lost(who: As, path: &str, count: u64, size: u64) {
    let up = Up::new(who, PAIR, &["--path", path]);
    assert_eq!(status(&up)["carried"]["not_read"], 0);
    // Nobody has this address: no answers are read.
    let ping = format!("ping -n -q -c {count} -l {count} -s {size} -W 1 10.0.2.9");
    let burst = format!("echo inside; read go; exec {ping}");
    let mut command = up.command(&["exec", "--lab", &up.name, "a", "sh", "-c", &burst]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    assert_eq!(line, "inside\n");
    up.signal(Signal::SIGSTOP);
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"go\n").unwrap();
    // It reports how much it sent when it ends.
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut rest).unwrap();
    up.signal(Signal::SIGCONT);
    child.wait().unwrap();
    assert!(rest.contains(&format!("{count} packets transmitted")), "{rest}");
    let mut counted = (0, 0);
    let all = Deadline::after(PATIENCE).wait_for("all packets", || {
        let carried = &status(&up)["carried"];
        let of = |count: &serde_json::Value| count.as_u64().unwrap();
        counted = (of(&carried["from_hosts"]["packets"]), of(&carried["not_read"]));
        Ok((counted.0 + counted.1 >= count).then_some(()))
    });
    assert!(all.is_ok(), "{counted:?}");
    let (read, lost) = counted;
    assert_eq!(read + lost, count, "{read} read, {lost} lost");
    assert!(read > 0 && lost > 0, "{read} read, {lost} lost");
}

#[test]
fn what_is_lost_before_it_is_read_is_counted() {
    let test = "what_is_lost_before_it_is_read_is_counted";
    if skipped(test, As::Own) || lacks_ping(test) {
        return;
    }
    let doctor = As::Own.command().args(["doctor", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    if report["path"] != "tun" {
        return skip(test, &report["advice"].to_string());
    }
    // A TUN device keeps 500 or its queue length: 1000.
    counts_what_is_lost(As::Own, "tun", 1_500, 8);
}

/// Root's packet sockets keep much more than a test should send; those of others as much as the
/// machine lets them.
#[test]
fn what_packet_sockets_of_a_user_lose_is_counted() {
    let test = "what_packet_sockets_of_a_user_lose_is_counted";
    if skipped(test, As::Nobody) || lacks_ping(test) {
        return;
    }
    let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
    // The kernel doubles it, and counts more for a packet than its octets.
    let count = 2 * most.trim().parse::<u64>().unwrap() / 1_400 + 100;
    if count > 10_000 {
        return skip(test, "net.core.rmem_max is more than a test should fill");
    }
    counts_what_is_lost(As::Nobody, "packet", count, 1_400);
}

#[test]
fn two_networks_of_one_file_do_not_receive_each_other() {
    let test = "two_networks_of_one_file_do_not_receive_each_other";
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
    let status = status(&other);
    // What a host's kernel sends by itself (IPv6 multicast) goes no further than the first router.
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
    let plan = network::NetworkPlan::new(&topology).unwrap();
    let hosts: Vec<_> = plan.hosts().map(|(_, host)| host).collect();
    for from in &hosts {
        for to in hosts.iter().filter(|to| to.name != from.name) {
            for address in &to.ports[0].addresses {
                up.assert_ping(&from.name, &address.ip().to_string(), &[]);
            }
        }
    }
}
