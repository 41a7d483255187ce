//! The same policy and the same load over our router and over the kernel's htb: what each class gets.

use crate::support::{As, Up, directory, lacks_htb, skip, skipped, text};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;

const TOPOLOGY: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24", "fd00:1::2/64"]
[hosts.b.ports.eth0]
addresses = ["10.0.2.2/24", "fd00:2::2/64"]
[routers.r]
policy = "shares"
ports.left = { addresses = ["10.0.1.1/24", "fd00:1::1/64"] }
ports.right = { addresses = ["10.0.2.1/24", "fd00:2::1/64"] }
[[links]]
ends = ["a.eth0", "r.left"]
[[links]]
ends = ["r.right", "b.eth0"]
"#;

const POLICY: &str = r#"
[classes.cs3]
match = [{ dscp = ["CS3"] }]
[classes.cs2]
match = [{ dscp = ["CS2"] }]
[classes.cs1]
match = [{ dscp = ["CS1"] }]

[queueings.wan]
kind = "shaper"
rate = "2Mbit"
burst = "3000B"
[queueings.wan.child]
kind = "class-based"
branches = [
    { class = "cs3", share = { percent = 50 }, queueing = { kind = "fifo", limit = { packets = 20 } } },
    { class = "cs2", share = { percent = 30 }, queueing = { kind = "fifo", limit = { packets = 20 } } },
    { class = "cs1", share = { percent = 15 }, queueing = { kind = "fifo", limit = { packets = 20 } } },
]

[interfaces.right]
queueing = "wan"
"#;

/// Each class offers as much as the whole link takes.
const LOAD: &str = r#"
time = "3s"
[[flows]]
to = "10.0.2.2:5000"
rate = "2Mbit"
size = 472
dscp = "CS3"
[[flows]]
to = "10.0.2.2:5000"
rate = "2Mbit"
size = 472
dscp = "CS2"
[[flows]]
to = "10.0.2.2:5000"
rate = "2Mbit"
size = 472
dscp = "CS1"
"#;

/// The share of what arrived, by code point, in percent.
type Shares = BTreeMap<u64, f64>;

/// What each class gets over a data path; `None` where the machine is too busy to offer all of the
/// load, time and again.
fn shares(path: Option<&str>, rate: &str) -> Option<Shares> {
    (0..3).find_map(|_| once(path, rate))
}

fn once(path: Option<&str>, rate: &str) -> Option<Shares> {
    let topology = format!("{TOPOLOGY}{rate}");
    let files = directory(&[("shares.toml", POLICY), ("net.toml", &topology), ("load.toml", LOAD)]);
    let topology = files.path().join("net.toml");
    let load = files.path().join("load.toml").to_string_lossy().into_owned();
    let arguments: Vec<&str> = path.iter().flat_map(|path| ["--path", path]).collect();
    let up = Up::of_file(As::Own, &topology, &arguments, files);
    up.is_up();
    let lab = env!("CARGO_BIN_EXE_lab");
    let inside = ["exec", "--lab", &up.name, "b", lab, "load", "receive", "5000"];
    let more = ["--flows", "3", "--for", "30s", "--json"];
    let mut command = up.command(&[&inside[..], &more].concat());
    let receiver = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // UDP that nobody listens for is lost: the sender begins once the receiver has its port.
    let listening = |up: &Up| text(&up.exec("b", &["cat", "/proc/net/udp6"])).contains(":1388 ");
    let deadline = testbed::clock::Deadline::after(crate::support::PATIENCE);
    let there = deadline.wait_for("the receiver", || Ok(listening(&up).then_some(())));
    assert!(there.is_ok(), "{there:?}");
    let sent = up.exec("a", &[lab, "load", "send", "--plan", &load, "--json"]);
    const IN_PART: i32 = 3;
    if sent.status.code() == Some(IN_PART) {
        drop(up);
        let _ = receiver.wait_with_output();
        return None;
    }
    assert!(sent.status.success(), "{}", text(&sent));
    let received = receiver.wait_with_output().unwrap();
    let json = serde_json::from_slice(&received.stdout);
    let json: serde_json::Value =
        json.unwrap_or_else(|error| panic!("{error}: {}", text(&received)));
    let mut octets = Shares::new();
    for flow in json["flows"].as_array().unwrap() {
        let dscp = flow["dscp_seen"][0]["dscp"].as_u64().unwrap();
        octets.insert(dscp, flow["received"].as_u64().unwrap() as f64);
    }
    let all: f64 = octets.values().sum();
    Some(octets.into_iter().map(|(dscp, got)| (dscp, got * 100.0 / all)).collect())
}

#[test]
fn classes_get_the_same_order_of_shares_from_our_router_and_from_htb() {
    const TEST: &str = "classes_get_the_same_order_of_shares";
    if skipped(TEST, As::Own) {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        return skip(TEST, "a kernel may load htb for root only");
    }
    if let Some(why) = lacks_htb() {
        return skip(TEST, &why);
    }
    // The line to b has a rate, or has none: the policy's shaper is the narrower one in any case.
    let tc = Some("tc");
    let measured = (shares(None, ""), shares(tc, ""), shares(tc, "rate = \"10Mbit\"\n"));
    let (Some(ours), Some(htb), Some(rated)) = measured else {
        return skip(TEST, "this machine is too busy to offer 6 Mbit/s");
    };
    let of = |shares: &Shares, dscp: u64| shares.get(&dscp).copied().unwrap_or_default();
    let mut table =
        "    percent   reserved   our router   kernel htb   htb, 10 Mbit/s line\n".to_owned();
    for (name, dscp, reserved) in [("CS3", 24, 50), ("CS2", 16, 30), ("CS1", 8, 15)] {
        let [ours, htb, rated] = [&ours, &htb, &rated].map(|shares| of(shares, dscp));
        let row =
            format!("    {name}       {reserved:>8}   {ours:>10.1}   {htb:>10.1}   {rated:>19.1}");
        table.push_str(&row);
        table.push('\n');
    }
    // Not by eprintln!, which the harness keeps to itself where a test passes.
    let _ = std::io::stderr().lock().write_all(table.as_bytes());
    for shares in [&ours, &htb, &rated] {
        assert!(of(shares, 24) > of(shares, 16), "{shares:?}");
        assert!(of(shares, 16) > of(shares, 8), "{shares:?}");
        assert!(of(shares, 8) > 0.0, "{shares:?}");
    }
}
