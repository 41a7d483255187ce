mod mark;

use super::*;
use crate::policy_file::PolicyFile;
use std::io::Write as _;
use std::path::Path;
use testbed::{Entrance, Namespace};

fn shipped(name: &str) -> RouterPolicy {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/policies");
    PolicyFile::read(&path.join(format!("{name}.toml"))).unwrap().into_policy()
}

#[test]
fn the_three_queues_of_the_paper() {
    let script =
        script(&shipped("nato-three-queues"), "wan", "eth0", &Qdiscs::all(), None).unwrap();
    insta::assert_snapshot!("nato_three_queues", script.to_string());
    let lan =
        super::script(&shipped("nato-three-queues"), "lan", "eth1", &Qdiscs::all(), None).unwrap();
    insta::assert_snapshot!("nato_three_queues_lan", lan.to_string());
}

#[test]
fn every_shipped_policy_has_a_script() {
    for (name, interface) in [
        ("plain", "any"),
        ("nato-single-queue-ordered", "wan"),
        ("nato-single-queue-wred", "wan"),
        ("bern-ef-af", "out"),
        ("degeb-edge", "access"),
        ("degeb-core", "out"),
    ] {
        for kernel in [Qdiscs::all(), Qdiscs::from_names(["htb", "pfifo", "bfifo"])] {
            let script = script(&shipped(name), interface, "eth0", &kernel, None).unwrap();
            assert!(!script.commands.is_empty(), "{name}");
            for command in &script.commands {
                let has = |word: &str| command.words.iter().any(|w| w == word);
                for discipline in ["red", "gred", "sfq", "prio"] {
                    let is_qdisc = has("qdisc") && has(discipline);
                    assert!(!is_qdisc || kernel.has(discipline), "{command}");
                }
            }
        }
    }
}

#[test]
fn names_that_could_be_commands_are_refused() {
    let policy = shipped("nato-three-queues");
    for dev in ["", "eth0;reboot", "a b", "-x", "sixteen-letters-"] {
        let error = script(&policy, "wan", dev, &Qdiscs::all(), None).unwrap_err();
        assert_eq!(error, NoScript::Device(dev.to_owned()));
    }
    let error = script(&policy, "dmz", "eth0", &Qdiscs::all(), None).unwrap_err();
    assert!(error.to_string().contains("it has lan, wan"), "{error}");
}

/// Lets the kernel run a script, none of whose commands may be refused.
fn accepted(inside: &Entrance, script: &TcScript) -> usize {
    let mut classes = 0;
    for command in script.commands.iter().filter(|command| command.words[0] == "tc") {
        let arguments: Vec<&str> = command.words.iter().skip(1).map(String::as_str).collect();
        inside.run("tc", &arguments).unwrap_or_else(|e| panic!("{command}: {e:#}\n{script}"));
        classes += usize::from(arguments[0] == "class");
    }
    classes
}

#[test]
fn the_kernel_takes_what_it_has_the_disciplines_for() {
    let ready = || -> anyhow::Result<Namespace> {
        let namespace = Namespace::new()?;
        let inside = namespace.entrance();
        inside.run("ip", &["link", "add", "v0", "type", "veth", "peer", "name", "v1"])?;
        inside.run("tc", &["qdisc", "replace", "dev", "v0", "root", "htb", "default", "0"])?;
        inside.run("tc", &["qdisc", "delete", "dev", "v0", "root"])?;
        Ok(namespace)
    };
    let namespace = match ready() {
        Ok(namespace) => namespace,
        Err(why) => {
            let _ = writeln!(std::io::stderr().lock(), "    SKIPPED tc scripts: {why:#}");
            return;
        }
    };
    let inside = namespace.entrance();
    // The disciplines in addition to htb and its queues that this kernel lets us try.
    let tried = [
        ("prio", vec!["prio"]),
        ("sfq", vec!["sfq"]),
        ("gred", vec!["gred", "setup", "DPs", "3", "default", "1"]),
    ];
    let mut kernel = vec!["htb", "pfifo", "bfifo"];
    for (name, words) in &tried {
        let start = ["qdisc", "replace", "dev", "v0", "root"];
        if inside.run("tc", &[&start[..], words].concat()).is_ok() {
            inside.run("tc", &["qdisc", "delete", "dev", "v0", "root"]).unwrap();
            kernel.push(name);
        }
    }
    let kernel = Qdiscs::from_names(kernel);
    for (name, interface, classes) in [
        ("nato-three-queues", "wan", 4),
        ("nato-single-queue-ordered", "wan", 1),
        ("nato-single-queue-wred", "wan", 1),
        ("bern-ef-af", "out", 8),
        ("degeb-edge", "access", 6),
    ] {
        let script = script(&shipped(name), interface, "v0", &kernel, None).unwrap();
        assert!(accepted(inside, &script) >= classes, "{script}");
        let filters = script.commands.iter().filter(|c| c.words[1] == "filter").count();
        assert!(filters > 0, "{script}");
        inside.run("tc", &["qdisc", "delete", "dev", "v0", "root"]).unwrap();
    }
}

/// The gred commands and their notes: the default line, and the name and priority of each line.
fn gred(name: &str, interface: &str) -> (String, Vec<(String, String)>) {
    let script = script(&shipped(name), interface, "eth0", &Qdiscs::all(), None).unwrap();
    let after = |command: &Command, word: &str| {
        let mut words = command.words.iter().skip_while(|w| *w != word).skip(1);
        words.next().cloned()
    };
    let of_gred = || script.commands.iter().filter(|c| c.words.iter().any(|word| word == "gred"));
    let default = of_gred().find_map(|command| after(command, "default")).unwrap();
    let line = |command: &Command| {
        let about = command.about.as_deref()?.strip_prefix("the line of ")?;
        Some((about.split(',').next()?.to_owned(), after(command, "prio")?))
    };
    (default, of_gred().filter_map(line).collect())
}

#[test]
fn lines_of_wred_are_judged_by_the_whole_queue_and_colours_by_their_own() {
    let (default, lines) = gred("nato-single-queue-wred", "wan");
    let of = |name: &str| (name.to_owned(), "1".to_owned());
    assert_eq!(lines, ["CS0", "CS1", "CS2", "EF", "CS6"].map(of));
    assert_eq!(default, "0", "best effort, not the mildest line");
    let (default, lines) = gred("bern-ef-af", "out");
    let trio = [("green", "1"), ("yellow", "2"), ("red", "3")];
    assert_eq!(lines[..3], trio.map(|(name, prio)| (name.to_owned(), prio.to_owned())));
    assert_eq!(default, "2", "the strictest");
}

#[test]
fn a_line_with_a_rate_bounds_all_classes() {
    let line = ScriptLine { rate: "1Mbit".parse().unwrap(), overhead: 18 };
    for (name, interface) in
        [("nato-single-queue-wred", "wan"), ("bern-ef-af", "out"), ("plain", "any")]
    {
        let script = script(&shipped(name), interface, "eth0", &Qdiscs::all(), Some(line)).unwrap();
        let ceils = script.commands.iter().filter_map(|command| {
            let mut words = command.words.iter().skip_while(|word| *word != "ceil").skip(1);
            words.next()?.strip_suffix("bit")?.parse::<u64>().ok()
        });
        let ceils: Vec<u64> = ceils.collect();
        assert!(!ceils.is_empty(), "{script}");
        assert!(ceils.iter().all(|ceil| *ceil <= 1_000_000), "{script}");
        // A shaper counts other octets.
        let is_shaped = name == "nato-single-queue-wred";
        assert_eq!(script.to_string().contains(" overhead 18 "), !is_shaped, "{script}");
    }
}
