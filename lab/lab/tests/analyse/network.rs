//! A network that loses packets and marks others anew, captured at both sides of the loss.

use crate::judge::{self, Found, ask};
use crate::support::{As, Up, skip, skipped, text};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};

/// Three of a hundred packets are lost behind the router, in each direction.
const TOPOLOGY: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24", "fd00:1::2/64"]
[hosts.b.ports.eth0]
addresses = ["10.0.2.2/24", "fd00:2::2/64"]
[routers.r]
policy = "mark"
ports.left = { addresses = ["10.0.1.1/24", "fd00:1::1/64"] }
ports.right = { addresses = ["10.0.2.1/24", "fd00:2::1/64"] }
[[links]]
ends = ["a.eth0", "r.left"]
delay = "2ms"
[[links]]
ends = ["r.right", "b.eth0"]
rate = "10Mbit"
delay = "8ms"
loss = 0.03
"#;

/// A running capture, and its standard error, which must stay open.
type Capture = (Child, BufReader<ChildStderr>);

/// Begins to capture at a port.
fn capture(up: &Up, port: &str, file: &Path) -> Capture {
    let name = file.to_str().unwrap();
    let mut command = up.command(&["capture", "--lab", &up.name, port, name, "--for", "9s"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("capturing"), "{line}");
    (child, stderr)
}

/// Code points of TCP as fast as it may, and of many connections with long pauses between segments.
const FAST: u64 = 10;
const THIN: u64 = 18;

/// Load of four kinds at once: TCP of both kinds, UDP that is marked anew, UDP over IPv6.
fn load(up: &Up) {
    let mut receive = up.command(&["exec", "--lab", &up.name, "b"]);
    receive.arg(env!("CARGO_BIN_EXE_lab"));
    receive.args(["load", "receive", "5000", "--for", "8s", "--flows", "43"]);
    let mut receive = receive.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(receive.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("listening"), "{line}");
    let lab = env!("CARGO_BIN_EXE_lab");
    let send = |to: &str, more: &str| {
        let mut command = up.command(&["exec", "--lab", &up.name, "a", lab, "load", "send", to]);
        command.args(more.split_whitespace()).args(["--for", "4s"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let senders = [
        send("10.0.2.2:5000", "--tcp --rate 8Mbit --size 1400 --dscp AF11 --run 5"),
        send("10.0.2.2:5000", "--tcp --rate 20kbit --flows 40 --size 600 --dscp AF21 --run 6"),
        send("10.0.2.2:5000", "--rate 400kbit --size 500 --dscp CS3 --run 7"),
        send("[fd00:2::2]:5000", "--rate 200kbit --size 200 --dscp EF --run 8"),
    ];
    for sender in senders {
        let output = sender.wait_with_output().unwrap();
        assert_ne!(output.status.code(), Some(2), "{}", text(&output));
    }
    receive.wait().unwrap();
}

/// What we find, of a file or several.
fn analyse(up: &Up, files: &[&Path]) -> Value {
    let mut command = up.command(&["analyse", "--json"]);
    let output = command.args(files).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows<'a>(of: &'a Value, key: &str) -> &'a Vec<Value> {
    of[key].as_array().unwrap()
}

/// The same numbers as the judge gives.
fn ours(of: &Value) -> Found {
    let mut found = Found::default();
    for row in rows(of, "dscp") {
        let number = |key: &str| row[key].as_u64().unwrap();
        let volume = (number("packets"), number("ip_size"), number("frame_size"));
        found.volumes.insert(number("dscp"), volume);
        let tcp = |key: &str| row["tcp"][key].as_u64().unwrap();
        found.retransmissions.insert(number("dscp"), tcp("retransmissions"));
        found.out_of_order.insert(number("dscp"), tcp("out_of_order"));
    }
    found
}

/// Within 5 %, rounded up.
fn within(ours: u64, theirs: u64, what: &str) {
    let most = (theirs * 5).div_ceil(100);
    assert!(ours.abs_diff(theirs) <= most, "{what}: ours {ours}, theirs {theirs}");
}

/// Segments that the kernel of host `a` has sent again.
fn sent_again(up: &Up) -> u64 {
    let output = up.exec("a", &["cat", "/proc/net/snmp"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:")).map(str::split_whitespace);
    let (names, mut values) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.into_iter().position(|name| name == "RetransSegs").unwrap();
    values.nth(place).unwrap().parse().unwrap()
}

#[test]
fn our_numbers_are_those_of_tshark() {
    let test = "our_numbers_are_those_of_tshark";
    if skipped(test, As::Own) {
        return;
    }
    if !judge::is_there() {
        return skip(test, "tshark is not installed");
    }
    let up = Up::new(As::Own, TOPOLOGY, &["--seed", "5"]);
    let directory = tempfile::tempdir().unwrap();
    let files = ["left", "right"].map(|name| directory.path().join(format!("{name}.pcapng")));
    let [left, right] = &files;
    let captures = [capture(&up, "r.left", left), capture(&up, "b.eth0", right)];
    load(&up);
    for (mut capture, _stderr) in captures {
        assert!(capture.wait().unwrap().success());
    }
    // What passes again within the first round-trip time after what went on is out of order to
    // tshark, even where it saw these octets before (docs/analyse.md): so what we call sent again is
    // what it calls so, or out of order. Before the loss the sender's kernel is the judge.
    let again = sent_again(&up);
    for file in [left, right] {
        let (ours, theirs) = (ours(&analyse(&up, &[file])), ask(file));
        assert_eq!(ours.volumes, theirs.volumes, "{}", file.display());
        assert!(ours.volumes.len() >= 5, "{ours:?}");
        for dscp in [THIN, FAST] {
            within(ours.either(dscp), theirs.either(dscp), "sent again or out of order");
            let (fewest, most) = (theirs.retransmitted(dscp), theirs.either(dscp));
            let count = ours.retransmitted(dscp);
            within(count.clamp(fewest, most), count, "retransmissions, but for those out of order");
        }
        // Where segments are far apart, few are.
        let (count, fewest) = (ours.retransmitted(THIN), theirs.retransmitted(THIN));
        assert!(count <= fewest + fewest / 4 + 2, "ours {count}, tshark {fewest}");
        if file == left {
            let all = ours.retransmitted(THIN) + ours.retransmitted(FAST);
            within(all, again, "retransmissions by the kernel");
            assert!(ours.retransmitted(THIN) >= 5, "too little was lost: {ours:?}");
        }
    }
    check_path(&analyse(&up, &[left, right]));
}

/// From one point to the other: the router's mark, the loss of the line, its delay.
fn check_path(both: &Value) {
    let hops = rows(both, "hops");
    let from_a = |dscp: u64| {
        let of =
            |hop: &&Value| hop["dscp"] == dscp && hop["from"].as_str().unwrap().contains("left");
        hops.iter().find(of).unwrap_or_else(|| panic!("{hops:?}"))
    };
    let remarked = from_a(24);
    assert_eq!(remarked["remarked"][0]["dscp"], 34, "CS3 becomes AF41");
    assert_eq!(remarked["remarked"][0]["packets"], remarked["packets"]);
    assert_eq!(from_a(46)["remarked"].as_array().unwrap().len(), 0);
    for hop in [24, 46, 10].map(from_a) {
        let (packets, lost) = (hop["packets"].as_u64().unwrap(), hop["lost"].as_u64().unwrap());
        assert!(packets > 100, "{hop}");
        assert!(lost > 0 && lost < packets / 10, "{hop}");
        assert!(hop["delay"]["min_ms"].as_f64().unwrap() >= 8.0, "{}", hop["delay"]);
    }
    // The load's own numbers agree with the two captures.
    let flows = rows(both, "flows");
    let load = |flow: &&Value| {
        flow["application"] == "lab-load"
            && flow["point"].as_str().unwrap().contains("right")
            && flow["marks"][0]["dscp"] == 34
    };
    let flow = flows.iter().find(load).unwrap();
    let lost = flow["numbered"]["lost"].as_u64().unwrap();
    assert!(lost.abs_diff(remarked["lost"].as_u64().unwrap()) <= 2, "{flow} {remarked}");
}

#[test]
fn an_interface_is_listened_to_inside_a_host() {
    let test = "an_interface_is_listened_to_inside_a_host";
    if skipped(test, As::Own) {
        return;
    }
    let up = Up::new(As::Own, TOPOLOGY, &[]);
    let lab = env!("CARGO_BIN_EXE_lab");
    let listen = ["exec", "--lab", &up.name, "a", lab, "analyse", "--live", "eth0", "--json"];
    let mut command = up.command(&listen);
    let listener = command.args(["--for", "6s"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let listener = listener.spawn().unwrap();
    // Longer than it takes to begin to listen.
    let load =
        ["load", "send", "10.0.2.2:5000", "--rate", "100kbit", "--dscp", "EF", "--for", "5s"];
    up.exec("a", &[&[lab][..], &load].concat());
    let output = listener.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = rows(&found, "dscp").iter().find(|row| row["dscp"] == 46).unwrap();
    assert_eq!(row["point"], "eth0");
    assert!(row["packets"].as_u64().unwrap() > 3, "{row}");
}
