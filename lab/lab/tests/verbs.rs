//! The verbs `import-ios`, `export-ios` and `export-tc`, as they are called.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::path::Path;
use std::process::{Command, Output};

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab")).args(arguments).output().unwrap()
}

fn utf8(of: &[u8]) -> String {
    String::from_utf8_lossy(of).into_owned()
}

#[test]
fn import_ios_ends_with_what_it_could_do() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/ios");
    let paper = paper.join("isode-nato-2007.ios").display().to_string();
    let to = directory.path().join("policy.toml").display().to_string();

    let whole = lab(&["import-ios", &paper, "-o", &to]);
    assert_eq!(whole.status.code(), Some(0), "{}", utf8(&whole.stderr));
    assert_eq!((utf8(&whole.stdout).as_str(), utf8(&whole.stderr).as_str()), ("", ""));
    let written = translation::policy_file::PolicyFile::read(Path::new(&to)).unwrap();
    let steps = &written.policy().chains["MARK-BLAST"][..];
    let [router::policy::ChainStep::FirstMatch { classes }] = steps else { panic!("{steps:?}") };
    assert_eq!(classes.len(), 2);

    let part = file("part.ios", "class-map A\n match cos 5\ninterface E0\n");
    let part = lab(&["import-ios", &part, "--json"]);
    assert_eq!(part.status.code(), Some(3));
    assert!(utf8(&part.stderr).contains("part.ios:2"), "{}", utf8(&part.stderr));
    let json: serde_json::Value = serde_json::from_slice(&part.stdout).unwrap();
    let first = &json["unmapped"][0];
    assert_eq!((&first["line"], &first["text"]), (&1.into(), &"class-map A".into()));

    for wrong in [
        file("no.ios", "Dear all,\nno router here.\n"),
        "/nonexistent".to_owned(),
        "/dev/zero".to_owned(),
    ] {
        let none = lab(&["import-ios", &wrong]);
        assert_eq!((none.status.code(), utf8(&none.stdout).as_str()), (Some(2), ""));
        assert!(utf8(&none.stderr).contains(&wrong), "{}", utf8(&none.stderr));
    }
}

/// The answer of a router of the topology to a policy.
fn built(policy: router::policy::RouterPolicy, ports: &[&str]) -> Result<(), String> {
    let interface = |name: &&str| router::InterfaceSetup {
        name: (*name).to_owned(),
        addresses: Vec::new(),
        mtu: 1500,
        paced: true,
    };
    let interfaces = ports.iter().map(interface).collect();
    let setup = router::RouterSetup {
        name: "sar".into(),
        interfaces,
        policy,
        ..router::RouterSetup::default()
    };
    router::Router::new(&setup).map(drop).map_err(|wrong| wrong.to_string())
}

#[test]
fn a_router_of_lan_and_wan_takes_what_import_ios_gives_these_names() {
    let directory = tempfile::tempdir().unwrap();
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/ios");
    let text = std::fs::read_to_string(paper.join("isode-nato-2007.ios")).unwrap();
    // One class looks at where packets come in, too.
    let text = text.replace(
        "match-all cs1-blast\n",
        "match-all cs1-blast\n match input-interface Ethernet0/0\n",
    );
    let from = directory.path().join("paper.ios");
    std::fs::write(&from, text).unwrap();
    let from = from.display().to_string();
    let to = directory.path().join("imported.toml");
    let import = |names: &[&str]| {
        let mut arguments = vec!["import-ios", &from, "-o", to.to_str().unwrap()];
        names.iter().for_each(|name| arguments.extend(["--interface", name]));
        lab(&arguments)
    };
    let read = || translation::policy_file::PolicyFile::read(&to).unwrap().into_policy();

    assert_eq!(import(&[]).status.code(), Some(0));
    let mistake = built(read(), &["lan", "wan"]).unwrap_err();
    assert!(mistake.contains("Ethernet0/0"), "{mistake}");
    let comments = std::fs::read_to_string(&to).unwrap();
    assert!(comments.contains("--interface NAME=PORT): Ethernet0/0, Ethernet0/1"), "{comments}");

    let done = import(&["Ethernet0/0=lan", "ethernet 0/1=wan"]);
    assert_eq!(done.status.code(), Some(0), "{}", utf8(&done.stderr));
    let policy = read();
    assert_eq!(policy.interfaces["wan"].queueing.as_deref(), Some("SHAPE-THREE-QUEUES"));
    assert_eq!(policy.interfaces["lan"].input, ["MARK-BLAST"]);
    let class = &policy.classes["cs1-blast"].matches;
    assert!(class.iter().all(|of| of.interface.as_deref() == Some("lan")), "{class:?}");
    built(policy, &["lan", "wan"]).unwrap();

    for (names, part) in [
        (&["Ethernet0/9=wan"][..], "it has: Ethernet0/0, Ethernet0/1"),
        (&["Ethernet0/0=wan", "Ethernet0/1=wan"], "two interfaces cannot both be"),
        (&["Ethernet0/0=lan", "Ethernet0/0=wan"], "given two ports"),
        (&["Ethernet0/0=l/n"], "invalid port name"),
        (&["Ethernet0/0"], "as in Ethernet0/1=wan"),
    ] {
        let refused = import(names);
        let complaint = utf8(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && complaint.contains(part),
            "{names:?}: {complaint}"
        );
    }
}

#[test]
fn export_ios_writes_what_import_ios_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/recommended.toml");
    let policy = policy.display().to_string();
    let names = ["--interface", "lan=FastEthernet0/0", "--interface", "wan=Serial0/0"];
    let exported = lab(&[&["export-ios", &policy, "-o", &file("r.ios")], &names[..]].concat());
    assert_eq!(exported.status.code(), Some(0), "{}", utf8(&exported.stderr));
    assert_eq!((utf8(&exported.stdout), utf8(&exported.stderr)), (String::new(), String::new()));
    let back = ["FastEthernet0/0=lan", "Serial0/0=wan"];
    let (from, to) = (file("r.ios"), file("r.toml"));
    let imported = ["import-ios", &from, "-o", &to, "--interface", back[0], "--interface", back[1]];
    let imported = lab(&imported);
    assert_eq!((imported.status.code(), utf8(&imported.stderr)), (Some(0), String::new()));
    let read = |path: &str| {
        let read = translation::policy_file::PolicyFile::read(Path::new(path)).unwrap();
        router::policy::RouterPolicy { about: String::new(), ..read.into_policy() }
    };
    assert_eq!(read(&to), read(&policy));

    // Without names it is written all the same, and they are asked for.
    let bare = lab(&["export-ios", &policy, "--json"]);
    assert_eq!(bare.status.code(), Some(0));
    assert!(utf8(&bare.stderr).ends_with("(give --interface PORT=IOS-NAME): lan, wan\n"));
    let json: serde_json::Value = serde_json::from_slice(&bare.stdout).unwrap();
    assert_eq!(json["unnamed"], serde_json::json!(["lan", "wan"]));
    assert!(json["configuration"].as_str().unwrap().contains("\ninterface wan\n"), "{json}");
}

#[test]
fn export_ios_lists_all_that_ios_has_not_and_writes_nothing() {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/policies");
    let of = |name: &str| policies.join(name).display().to_string();
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept.ios");
    std::fs::write(&kept, "as it was").unwrap();
    let wrong = lab(&["export-ios", &of("bern-ef-af.toml"), "-o", &kept.display().to_string()]);
    assert_eq!((wrong.status.code(), utf8(&wrong.stdout).as_str()), (Some(2), ""));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "as it was");
    let what = utf8(&wrong.stderr);
    let file = of("bern-ef-af.toml");
    let at: Vec<usize> = what
        .lines()
        .filter_map(|line| line.strip_prefix(&format!("{file}:"))?.split(':').next()?.parse().ok())
        .collect();
    assert!(at.len() > 10 && at.is_sorted(), "{what}");
    assert!(
        what.starts_with(&format!("lab: {} parts of it are not for IOS\n", at.len())),
        "{what}"
    );
    assert!(what.contains("queueings.link.kind: IOS has no scheduler \"priority\""), "{what}");

    let json = lab(&["export-ios", &of("plain.toml"), "--json"]);
    assert_eq!(json.status.code(), Some(2));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["faults"].as_array().map(Vec::len), Some(1), "{json}");

    // A policy is not written over by its own configuration.
    let own = directory.path().join("own.toml").display().to_string();
    std::fs::write(&own, "[queueings.q]\nkind = 'fifo'\n").unwrap();
    for (arguments, part) in [
        (&[own.as_str(), "-o", &own][..], "would be written over"),
        (&["/nonexistent.toml"], "/nonexistent.toml"),
        (&["/dev/zero"], "/dev/zero"),
        (&[&of("plain.toml"), "--interface", "wan"], "as in wan=Serial0/0"),
        (&[&of("plain.toml"), "--interface", "wan=Serial0/0"], "no interface wan in it"),
    ] {
        let wrong = lab(&[&["export-ios"], arguments].concat());
        assert_eq!((wrong.status.code(), utf8(&wrong.stdout).as_str()), (Some(2), ""));
        assert!(utf8(&wrong.stderr).contains(part), "{}", utf8(&wrong.stderr));
    }
    assert!(std::fs::read_to_string(&own).unwrap().starts_with("[queueings.q]"));
}

#[test]
fn export_tc_prints_a_script_or_reports_what_is_missing() {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/policies");
    let of = |name: &str| policies.join(name).display().to_string();
    let script = lab(&["export-tc", &of("nato-three-queues.toml"), "--dev", "eth7"]);
    assert_eq!(script.status.code(), Some(0), "{}", utf8(&script.stderr));
    let printed = utf8(&script.stdout);
    assert!(printed.starts_with("#!/bin/sh\n# Not here"), "{printed}");
    assert!(
        printed.contains("\nrun tc qdisc replace dev eth7 root handle 1: htb default 0\n"),
        "{printed}"
    );
    // The script ends at the first command that is refused, and names it.
    let refused = "tc() { [ $1 != class ]; }\nnft() { echo not reached; }\n";
    let run = Command::new("sh").arg("-c").arg(format!("{refused}{printed}")).output();
    let run = run.unwrap();
    let what = utf8(&run.stderr);
    assert!(what.starts_with("refused: tc class add dev eth7 parent 1: classid 1:1 "), "{what}");
    assert_eq!(
        (run.status.code(), what.lines().count(), utf8(&run.stdout)),
        (Some(1), 1, "".into())
    );
    for (arguments, part) in [
        (vec!["plain.toml"], "--dev"),
        (vec!["degeb-edge.toml"], "--interface, of those with a queueing: *, access"),
        (vec!["nato-three-queues.toml", "--dev", "a b"], "invalid device name"),
        (vec!["nothing.toml"], "nothing.toml"),
        (vec!["nato-three-queues.toml", "--qdiscs", "htp"], "\"htp\" is none"),
        (vec!["nato-three-queues.toml", "--interface", "dmz"], "it has lan, wan"),
    ] {
        let file = of(arguments[0]);
        let wrong = lab(&[&["export-tc", &file], &arguments[1..]].concat());
        assert_eq!((wrong.status.code(), utf8(&wrong.stdout).as_str()), (Some(2), ""));
        assert!(utf8(&wrong.stderr).contains(part), "{}", utf8(&wrong.stderr));
    }
}

#[test]
fn export_tc_refuses_what_a_router_would() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("p.toml");
    let text =
        "[chains]\nc = [\n  { kind = 'drop', class = 'x' },\n]\n[interfaces.wan]\ninput = ['c']\n";
    std::fs::write(&file, text).unwrap();
    let wrong = lab(&["export-tc", &file.display().to_string(), "--interface", "wan"]);
    assert_eq!((wrong.status.code(), utf8(&wrong.stdout).as_str()), (Some(2), ""));
    let what = utf8(&wrong.stderr);
    assert!(what.contains("p.toml:3:") && what.contains("no class \"x\""), "{what}");
}
