mod any;
mod refused;

use super::*;
use crate::ios::{Imported, Renamed, import};
use crate::policy_file::PolicyFile;
use std::path::{Path, PathBuf};

fn config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab")
}

fn read(text: &str) -> RouterPolicy {
    PolicyFile::parse("p.toml", text).unwrap_or_else(|e| panic!("{e}")).into_policy()
}

/// The configuration, and what is read back of it; nothing may be noted.
fn through_ios(policy: &RouterPolicy, named: &[&str]) -> (String, Imported) {
    let named: Vec<Named> = named.iter().map(|named| named.parse().unwrap()).collect();
    let names = InterfaceNames::new(policy, &named).unwrap();
    let text = export(policy, "p.toml", &names).unwrap_or_else(|e| panic!("{e:#?}"));
    let mut back = import("p.ios", &text).unwrap();
    assert_eq!(back.unmapped, [], "{text}");
    // An interface without a policy is not in the configuration.
    let ports = named.into_iter().map(|Named { port, interface }| Renamed { interface, port });
    let ports: Vec<Renamed> = ports.filter(|of| back.interfaces.contains(&of.interface)).collect();
    back.rename(&ports).unwrap();
    (text, back)
}

fn without_about(policy: &RouterPolicy) -> RouterPolicy {
    RouterPolicy { about: String::new(), ..policy.clone() }
}

/// Not only the same in what it does: what is written is the same.
#[test]
fn the_recommended_policy_comes_back_as_it_is() {
    let policy = PolicyFile::read(&config().join("recommended.toml")).unwrap().into_policy();
    for names in [&[][..], &["lan=FastEthernet0/0", "wan=Serial0/0"]] {
        let (text, back) = through_ios(&policy, names);
        assert_eq!(without_about(&back.policy), without_about(&policy), "{text}");
    }
}

#[test]
fn the_paper_s_configuration_comes_back_as_it_was_imported() {
    let text = std::fs::read_to_string(config().join("ios/isode-nato-2007.ios")).unwrap();
    let imported = import("isode-nato-2007.ios", &text).unwrap();
    let (text, back) = through_ios(&imported.policy, &[]);
    // The lists of its functions are shorter there than those of the defaults of IOS.
    assert!(
        text.contains("  random-detect dscp default 15 20 10\n  random-detect dscp cs1 30 40 10\n"),
        "{text}"
    );
    assert!(!text.contains("dscp af11"), "{text}");
    assert_eq!(normal::normal(&back.policy), normal::normal(&imported.policy), "{text}");
    assert_eq!(without_about(&back.policy), without_about(&imported.policy), "{text}");
}

/// A policy with each kind of line.
const SAMPLE: &str = r#"
about = "Voice first,\nthen the rest"
[classes]
voice = { match = [{ dscp = ["EF", "CS5"] }, { source = "0.0.0.0/0", dscp = ["AF41"] }] }
mail = { match = [{ protocol = "tcp", dscp = ["CS3", "AF11", 44], destination_port = 102 }] }
lan-only = { match = [{ interface = "lan", source = "10.0.0.0/9", destination = "10.1.2.3", protocol = "udp", source_port = "5000-5004" }] }
six = { match = [{ source = "fd00::/8", protocol = "icmpv6" }, { destination = "fd00::1", protocol = 103 }] }
any = { match = [{}] }

[[chains.edge]]
kind = "first-match"
[[chains.edge.classes]]
class = "voice"
steps = [
    { kind = "first-match", classes = [{ class = "lan-only", steps = [{ kind = "drop" }] }] },
    { kind = "mark", dscp = "EF" },
    { kind = "meter", meter = { kind = "two-rate", cir = "1Mbit", cbs = 4000, pir = "2Mbit", pbs = 8000 }, yellow = { mark = "AF12" }, red = "drop" },
]
[[chains.edge.classes]]
class = "six"
[[chains.edge.classes]]
steps = [{ kind = "meter", meter = { kind = "single-rate", cir = "64kbit", cbs = 1500, ebs = 3000 }, yellow = { mark = 0 }, red = "drop" }]

[queueings.line]
kind = "class-based"
rate = "2Mbit"
[[queueings.line.branches]]
class = "voice"
share = { priority-percent = { percent = 20, burst = 4000 } }
queueing = { kind = "fifo", limit = { octets = 20000 } }
[[queueings.line.branches]]
class = "mail"
share = { percent = 40 }
[queueings.line.branches.queueing]
kind = "shaper"
rate = "500kbit"
burst = 3000
interval = "20ms"
[queueings.line.branches.queueing.child]
kind = "class-based"
[[queueings.line.branches.queueing.child.branches]]
class = "six"
share = { weight = 3 }
queueing = { kind = "fair-flows", queues = 16 }
[[queueings.line.branches]]
share = { percent = 10 }
queueing = { kind = "fifo", limit = { packets = 64 }, dropper = { kind = "red", ecn = true, weight_exponent = 6, line = { min = 10, max = 30, denominator = 5 } } }

[interfaces.lan]
input = ["edge"]
[interfaces.wan]
queueing = "line"
"#;

#[test]
fn a_configuration_is_as_an_engineer_writes_it() {
    let policy = read(SAMPLE);
    let (text, back) = through_ios(&policy, &["lan=GigabitEthernet 0/1", "wan=Serial0/0"]);
    assert_eq!(normal::normal(&back.policy), normal::normal(&policy), "{text}");
    insta::assert_snapshot!("a_configuration", text);
}

/// In IOS a class is marked and queued in one policy map.
#[test]
fn a_chain_and_a_queueing_of_one_name_are_one_policy_map() {
    let text = r#"
        [classes]
        a = { match = [{ source = "10.0.0.0/8" }] }
        b = { match = [{ source = "11.0.0.0/8" }] }
        [[chains.out]]
        kind = "first-match"
        classes = [{ class = "a", steps = [{ kind = "mark", dscp = "EF" }] }]
        [queueings.out]
        kind = "class-based"
        branches = [{ class = "a", share = { weight = 5 } }, { class = "b", share = { weight = 3 } }]
        [interfaces.wan]
        output = ["out"]
        queueing = "out"
    "#;
    let (text, back) = through_ios(&read(text), &[]);
    assert!(
        text.contains(
            " class a\n  bandwidth remaining ratio 5\n  set dscp ef\n  queue-limit 100 packets\n"
        ),
        "{text}"
    );
    assert_eq!(normal::normal(&back.policy), normal::normal(&read(&text_of(&back))), "{text}");
}

fn text_of(imported: &Imported) -> String {
    crate::ios::to_toml(&imported.policy, &[]).unwrap()
}

#[test]
fn names_of_interfaces_are_checked() {
    let policy =
        read("[queueings.q]\nkind = 'fifo'\n[interfaces]\nlan = {}\nwan = { queueing = 'q' }\n");
    let given = |named: &[&str]| {
        let named: Result<Vec<Named>, String> = named.iter().map(|one| one.parse()).collect();
        named.and_then(|named| InterfaceNames::new(&policy, &named))
    };
    for (named, part) in [
        (&["wan"][..], "as in wan=Serial0/0"),
        (&["wan="], "1 to 40 printable"),
        (&["dmz=Serial0/0"], "no interface dmz in it; it has: lan, wan (write PORT=IOS-NAME)"),
        (&["wan=Serial0/0", "wan=Serial0/1"], "wan is given two names"),
        (&["wan=Serial0/0", "lan=serial 0/0"], "lan and wan cannot both be Serial0/0"),
        (&["wan=LAN"], "lan and wan cannot both be"),
    ] {
        let error = given(named).unwrap_err();
        assert!(error.contains(part), "{named:?}: {error}");
    }
    assert_eq!(given(&["wan=Serial0/0"]).unwrap().unnamed(&policy), ["lan"]);
}
