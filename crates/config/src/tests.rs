//! Messages for wrong files, and checks of the shipped files.

mod channels;
mod engine;
mod profiles;

use super::*;
use crate::section::store::engine::StoreEngine;
use base::Precedence;
use std::os::unix::fs::PermissionsExt;

const GOOD: &str = r#"
[mta]
name = "MTA-NAPLES"
country = "IT"
admd = "NET"
prmd = "NAPLES"
data_dir = "/var/lib/mta"

[p3]
listen = ["127.0.0.1:5010", "[::1]:5010"]

[[route]]
address = "/C=IT/ADMD=NET/PRMD=ACT"
via = "act"

[[peer]]
name = "act"
mta_name = "MTA-ACT"
password = { env = "OURS" }
expect = { env = "THEIRS" }

[[peer.channel]]
name = "slow"
precedences = ["deferred", "routine", "priority"]
remote = "127.0.0.1:5100"
listen = "127.0.0.1:5000"

[[peer.channel]]
name = "fast"
precedences = ["immediate", "flash", "override"]
dscp = 46
remote = "act.example.org:5101"
listen = "127.0.0.1:5001"
connection = "on-demand"
idle_close = "2min"
rts = { checkpoint = "2KiB", window = 3 }

[[route]]
address = "/C=IT/ADMD=NET/PRMD=NAPLES"
via = "local"
"#;

fn environment(name: &str) -> Option<String> {
    match name {
        "OURS" | "MTA_PASSWORD_NAPLES" => Some("vesuvio".to_owned()),
        "THEIRS" | "MTA_PASSWORD_ACT" => Some("etna".to_owned()),
        "MTA_PASSWORD_DATABASE" => Some("a third".to_owned()),
        _ => None,
    }
}

fn check_in(base: &Path, text: &str) -> (Option<Site>, Findings) {
    check_after(base, text, &Numbering::default())
}

fn check_after(base: &Path, text: &str, running: &Numbering) -> (Option<Site>, Findings) {
    parse(
        "site.toml",
        text,
        &secret::Source { base, environment: &environment, directory: &|_| None },
        running,
    )
}

/// The messages for [`GOOD`] with one part replaced.
fn seen(part: &str, by: &str) -> String {
    assert!(part.is_empty() || GOOD.contains(part), "{part}");
    let (site, report) = check_in(Path::new("/nowhere"), &GOOD.replacen(part, by, 1));
    assert_eq!(site.is_none(), report.any_fatal());
    report.render(false)
}

#[test]
fn a_good_file_is_understood() {
    let (site, report) = check_in(Path::new("/nowhere"), GOOD);
    assert_eq!(report.render(false), "");
    let site = site.unwrap();
    assert_eq!(site.paths.admin_socket, Path::new("/var/lib/mta/admin.sock"));
    let peer = &site.node.peers[0];
    assert_eq!(
        (peer.own_name.0.as_str(), &peer.own_password.0[..]),
        ("MTA-NAPLES", &b"vesuvio"[..])
    );
    assert_eq!(site.expected[&PeerId::of_name("act")].0, "etna");
    let fast = &site.channels[&ChannelId { peer: PeerId::of_name("act"), index: 1 }];
    assert_eq!(
        (fast.remote.to_string().as_str(), fast.tcp.dscp.number()),
        ("act.example.org:5101", 46)
    );
    let slow = &site.channels[&ChannelId { peer: PeerId::of_name("act"), index: 0 }];
    assert_eq!(slow.tcp.dscp, dscp::Plan::Paper.dscp(Precedence::Priority));
    assert_eq!(peer.channels[1].rts.checkpoint_size, 2);
    let idle_close = Duration::from_secs(120);
    assert_eq!(peer.channels[1].connection, node::config::Connection::OnDemand { idle_close });
    let listeners: Vec<String> =
        site.listeners.iter().map(|l| format!("{} {}", l.address, l.label)).collect();
    let expected = [
        "127.0.0.1:5010 p3",
        "[::1]:5010 p3",
        "127.0.0.1:5000 act/slow",
        "127.0.0.1:5001 act/fast",
    ];
    assert_eq!(listeners, expected);
    assert_eq!(site.node.listeners.len(), 4);
}

#[test]
fn clearances_are_of_peers_and_users() {
    let own = "clearance = [\"1.2.3/secret +1.2.4\", \"unlabelled\"]\nmta_name";
    let users = "[[clearance]]\naddress = \"/C=IT/ADMD=NET/PRMD=NAPLES\"\nlabels = \"/2\"\n[p3]";
    let text = GOOD.replace("mta_name", own).replace("[p3]", users);
    let (site, report) = check_in(Path::new("/nowhere"), &text);
    assert_eq!(report.render(false), "");
    let cleared = site.unwrap().node.clearances;
    let text = |clearance: &Clearance| -> Vec<String> {
        clearance.0.iter().map(ToString::to_string).collect()
    };
    let act = &cleared.peers[&PeerId::of_name("act")];
    assert_eq!(text(act), ["1.2.3/secret +1.2.4", "unlabelled"]);
    let [(prefix, users)] = &cleared.users[..] else { panic!("{cleared:?}") };
    assert_eq!(*prefix, "/C=IT/ADMD=NET/PRMD=NAPLES".parse().unwrap());
    assert_eq!(text(users), ["/restricted"]);
    assert!(!cleared.open_contents);
    let text = GOOD.replace("[p3]", "[security]\nopen_contents = true\n[p3]");
    let (site, report) = check_in(Path::new("/nowhere"), &text);
    assert_eq!(report.render(false), "");
    assert!(site.unwrap().node.clearances.open_contents);
}

/// Read again in another order, with another name and another mark.
#[test]
fn what_stays_keeps_its_number() {
    let numbers = |site: &Site| -> Vec<(String, u32)> {
        let channels = site.node.peers[0].channels.iter().map(|c| (c.name.clone(), c.index));
        let sockets = site.listeners.iter().map(|l| (l.address.to_string(), l.id.0));
        channels.chain(sockets).collect()
    };
    let check = |text: &str, running: &Numbering| {
        let (site, report) = check_after(Path::new("/nowhere"), text, running);
        assert_eq!(report.render(false), "");
        site.unwrap()
    };
    let (head, channels) = GOOD.split_once("[[peer.channel]]").unwrap();
    let (slow, fast) = channels.split_once("[[peer.channel]]").unwrap();
    let first = check(GOOD, &Numbering::default());
    let swapped =
        check(&format!("{head}[[peer.channel]]{fast}[[peer.channel]]{slow}"), &first.numbering);
    let expected = |list: &[(&str, u32)]| -> Vec<(String, u32)> {
        list.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
    };
    let (p3, p3_v6) = (("127.0.0.1:5010", 0), ("[::1]:5010", 1));
    assert_eq!(
        numbers(&swapped),
        expected(&[
            ("fast", 1),
            ("slow", 0),
            p3,
            p3_v6,
            ("127.0.0.1:5001", 3),
            ("127.0.0.1:5000", 2)
        ])
    );
    let service = |site: &Site, id| site.node.listener(node::ListenerId(id)).cloned().unwrap();
    assert_eq!(format!("{:?}", service(&swapped, 3)), format!("{:?}", service(&first, 3)));

    // The socket of a renamed channel stays; one with another mark is a new one.
    let changed = GOOD.replace("name = \"slow\"", "name = \"bulk\"").replace("46", "34");
    let changed = check(&changed, &swapped.numbering);
    assert_eq!(
        numbers(&changed),
        expected(&[
            ("bulk", 2),
            ("fast", 1),
            p3,
            p3_v6,
            ("127.0.0.1:5000", 2),
            ("127.0.0.1:5001", 4)
        ])
    );
    assert_eq!(numbers(&check(GOOD, &changed.numbering))[0], ("slow".to_owned(), 3));
}

#[test]
fn a_country_is_taken_in_either_case_and_sent_in_capitals() {
    let with = |country: &str| {
        let text = GOOD.replace("country = \"IT\"", &format!("country = \"{country}\""));
        let (site, report) = check_in(Path::new("/nowhere"), &text);
        site.unwrap_or_else(|| panic!("{}", report.render(false))).node.domain
    };
    for (country, sent) in [("IT", "IT"), ("gb", "GB"), ("Gb", "GB"), ("222", "222")] {
        let domain = with(country);
        assert_eq!(domain.country.value, sent);
        assert!(domain.same_as(&GlobalDomainId { country: country.into(), ..domain.clone() }));
    }
}

#[test]
fn passwords_show_nowhere() {
    let (site, _) = check_in(Path::new("/nowhere"), GOOD);
    let dump = format!("{site:?}");
    assert!(!dump.contains("vesuvio") && !dump.contains("etna"), "{dump}");
}

/// One wrong file each; the snapshots are the messages.
#[test]
fn single_mistakes() {
    let cases = [
        ("not_toml", "[p3]", "[p3"),
        ("unknown_key", "precedences = [\"imm", "precedence = [\"imm"),
        ("unknown_section", "[p3]", "[p4]"),
        ("unknown_peer", "via = \"act\"", "via = \"atc\""),
        ("bad_address", "/C=IT/ADMD=NET/PRMD=ACT", "/C=IT/ADMD=NET/PRDM=ACT"),
        ("bad_dscp", "dscp = 46", "dscp = \"CS9\""),
        ("duplicate_listener", "127.0.0.1:5001", "0.0.0.0:5000"),
        ("duplicate_channel", "name = \"fast\"", "name = \"slow\""),
        ("duplicate_remote", "act.example.org:5101", "127.0.0.1:5100"),
        ("uncovered", "\"immediate\", \"flash\", ", "\"flash\", "),
        ("unset_secret", "\"OURS\"", "\"HIS\""),
        ("literal_secret", "{ env = \"OURS\" }", "\"vesuvio\""),
        ("absent_secret_file", "{ env = \"OURS\" }", "{ file = \"act.secret\" }"),
        ("checkpoint", "2KiB", "1500B"),
        ("large_checkpoint", "2KiB", "64KiB"),
        ("duration", "\"2min\"", "120"),
        ("idle_close_of_permanent", "connection = \"on-demand\"", "connection = \"permanent\""),
        ("country", "\"IT\"", "\"Italy\""),
        ("missing_key", "mta_name = \"MTA-ACT\"\n", ""),
        ("duplicate_peer", "[[peer]]", "[[peer]]\nname = \"act\"\n[[peer]]"),
        ("hold", "[p3]", "[precedence]\nhold = \"always\"\n[p3]"),
        ("stall", "[p3]", "[precedence]\nstall = 15\n[p3]"),
        ("own_fallback", "dscp = 46", "fallback = [\"flash\", \"routine\"]"),
        ("unknown_fallback", "dscp = 46", "fallback = [\"urgent\"]"),
        ("own_events", "[p3]", "[events]\nfile = \"users.toml\"\n[p3]"),
        ("events", "[p3]", "[events]\nsize = 1000\nkeep = 0\n[p3]"),
        ("metrics", "[p3]", "[metrics]\nlisten = \"0.0.0.0:9464\"\n[p3]"),
        ("metrics_twice", "[p3]", "[metrics]\nlisten = \"127.0.0.1:5010\"\n[p3]"),
        ("peer_named_local", "name = \"act\"", "name = \"local\""),
        ("bad_clearance", "mta_name", "clearance = [\"secret\", \"/2 +x\"]\nmta_name"),
        ("open_contents", "[p3]", "[security]\nopen_contents = \"yes\"\n[p3]"),
        ("user_clearance", "[p3]", "[[clearance]]\naddress = \"/C=IT/S=A\"\n[p3]"),
    ];
    for (name, part, by) in cases {
        insta::assert_snapshot!(name, seen(part, by));
    }
}

#[test]
fn memory_must_hold_an_envelope() {
    let with = |limits: &str| seen("[p3]", &format!("[limits]\n{limits}\n[p3]"));
    assert_eq!(with("memory_per_peer = \"2 MiB\"\nenvelope = \"2 MiB\""), "");
    let shown = with("memory_per_peer = \"2 MiB\"\nenvelope = \"3 MiB\"");
    assert!(shown.contains("memory_per_peer of limits, 2097152 octets"), "{shown}");
    assert!(shown.contains("make memory_per_peer 3145728 octets or more"), "{shown}");
    assert!(!with("memory = \"2 MiB\"\nenvelope = \"3 MiB\"").is_empty());
}

#[test]
fn a_peer_without_channels() {
    let (head, _) = GOOD.split_once("[[peer.channel]]").unwrap();
    let (_, report) = check_in(Path::new("/nowhere"), head);
    insta::assert_snapshot!("empty_channel_list", report.render(false));
}

#[test]
fn every_mistake_is_reported_and_in_the_order_of_the_file() {
    let bad = GOOD
        .replace("name = \"MTA-NAPLES\"\n", "")
        .replace("127.0.0.1:5010", "localhost:5010")
        .replace("via = \"act\"", "via = \"nobody-known\"")
        .replace("\"THEIRS\"", "\"UNSET\"")
        .replace("window = 3", "window = 0, size = 1")
        .replace("dscp = 46", "dscp = 64")
        .replace("\"routine\", ", "\"urgent\", ");
    let (site, report) = check_in(Path::new("/nowhere"), &bad);
    assert!(site.is_none());
    let lines: Vec<String> = report
        .to_json()
        .iter()
        .map(|p| format!("{}:{} {} {}", p.line, p.column, p.severity, p.message))
        .collect();
    insta::assert_snapshot!("many", lines.join("\n"));
}

/// Limits that hold for each part and not for the whole: one warning each, and the site is usable.
#[test]
fn what_contradicts_itself_is_warned_of() {
    let warned = |text: &str| {
        let (site, report) = check_in(Path::new("/nowhere"), text);
        assert!(site.is_some(), "{}", report.render(false));
        let json = report.to_json();
        assert!(json.iter().all(|p| p.severity == "warning"));
        json.iter().map(|p| format!("{}:{} {}\n", p.line, p.column, p.message)).collect::<String>()
    };
    let local = "[[route]]\naddress = \"/C=IT/ADMD=NET/PRMD=NAPLES\"\nvia = \"local\"\n";
    let cases = [
        GOOD.replace(local, ""),
        GOOD.replace("via = \"act\"", "via = \"local\""),
        GOOD.replace("MTA-ACT", "mta-naples"),
        GOOD.replace("mta_name = \"MTA-ACT\"", "mta_name = \"MTA-ACT\"\nown_name = \"MTA-ACT\""),
        format!("{GOOD}\n[precedence]\nalert = {{ flash = \"5h\", override = \"4h\" }}\n"),
        format!("{GOOD}\n[precedence]\nexpire = {{ flash = \"30s\" }}\n"),
    ];
    insta::assert_snapshot!("contradictions", cases.map(|text| warned(&text)).join("---\n"));
}

#[test]
fn one_mistake_is_shown_in_one_place() {
    let misspelled = seen("country", "cuntry");
    assert_eq!(misspelled.matches("help:").count(), 1, "{misspelled}");
    assert!(misspelled.contains("did you mean country?"), "{misspelled}");
    // A missing key and an unrelated unknown one are two errors.
    assert_eq!(seen("country", "language").matches("help:").count(), 2);
    // A related position far away is given as a line number.
    let far = GOOD.replacen("name = \"fast\"", "name = \"slow\"", 1);
    let shown = check_in(Path::new("/nowhere"), &far).1.render(false);
    assert_eq!((shown.matches("─[").count(), shown.lines().count()), (1, 10), "{shown}");
    assert!(shown.contains("again (first here: line 23)"), "{shown}");
    // Errors that follow a syntax error are its consequences.
    let shown = seen("[mta]", "[mta");
    assert_eq!(shown.matches("not TOML").count(), 1, "{shown}");
}

#[test]
fn a_directory_that_cannot_hold_the_files() {
    let unfit = |_: &Path| {
        Some(Unfit { why: "it is a file".to_owned(), remedy: "name a directory".to_owned() })
    };
    let (base, environment) = (Path::new("/nowhere"), &environment);
    let source = secret::Source { base, environment, directory: &unfit };
    let (site, report) = parse("site.toml", GOOD, &source, &Numbering::default());
    assert!(site.is_none());
    insta::assert_snapshot!("unfit_directory", report.render(false));
}

#[test]
fn when_a_clock_is_believed() {
    let rules = |text: &str| {
        let (site, report) = check_in(Path::new("/nowhere"), &format!("{GOOD}\n{text}"));
        (site.map(|site| site.node.times.clock), report.render(false))
    };
    let default = node::config::ClockRules::default();
    assert_eq!(rules("").0, Some(default));
    let (set, _) = rules("[clock]\nstep = \"5s\"\nsteady = \"1h\"");
    let set = set.unwrap();
    assert_eq!((set.step.as_secs(), set.steady.as_secs()), (5, 3_600));
    for (wrong, messages) in [
        ("step = \"1s\"", "write a duration from 3 s to 24 h"),
        ("steady = \"500ms\"", "write a duration from 1 s to 168 h"),
        ("steep = \"1h\"", "steep"),
    ] {
        let (site, shown) = rules(&format!("[clock]\n{wrong}"));
        assert!(site.is_none() && shown.contains(messages), "{shown}");
    }
}

#[test]
fn secrets_from_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("act.secret");
    let text = GOOD.replace("{ env = \"OURS\" }", "{ file = \"act.secret\" }");
    let write = |content: &[u8], mode| {
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        check_in(dir.path(), &text)
    };
    let (site, report) = write(b"vesuvio\r\n", 0o600);
    assert_eq!(report.render(false), "");
    assert_eq!(site.unwrap().node.peers[0].own_password.0, "vesuvio");

    let (site, report) = write(b"vesuvio", 0o644);
    assert!(site.is_none());
    insta::assert_snapshot!("secret_readable_by_others", report.render(false));

    for unusable in [&b"\n"[..], &[b'x'; 63], &[0xff]] {
        let (site, report) = write(unusable, 0o600);
        assert!(site.is_none());
        assert!(report.problems[0].message.contains("cannot be sent"));
    }
}

/// The shipped files are valid, and so is every key in their comments.
#[test]
fn shipped_sites() {
    for name in ["naples", "act"] {
        let file = format!("{}/../../config/sites/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).unwrap();
        let (site, report) = check_in(Path::new("/nowhere"), &text);
        assert_eq!(report.render(false), "", "{name}");
        let site = site.unwrap();
        assert_eq!((site.node.peers[0].channels.len(), site.listeners.len()), (5, 7));

        // The same with all optional keys, at the defaults the comments give.
        let is_key = |line: &&str| line.contains(" = ") || line.starts_with('[');
        let key = |line: &str| line.strip_prefix("# ").filter(is_key).map(str::to_owned);
        let optional = text.lines().filter_map(key).count();
        assert!(optional > 25, "{optional} keys in comments");
        let full: Vec<String> =
            text.lines().map(|line| key(line).unwrap_or_else(|| line.to_owned())).collect();
        // Windows are an example that is valid with one kind of connection only.
        let (permanent, scheduled) = ("connection = \"permanent\"", "connection = \"scheduled\"");
        let full = full.join("\n").replace(permanent, scheduled);
        let (full_site, report) = check_in(Path::new("/nowhere"), &full);
        assert!(!report.any_fatal(), "{}", report.render(false));
        let (mut full_site, mut site) = (full_site.unwrap(), site);
        let path = Path::new("/nowhere").join(format!("data/{name}/events.jsonl"));
        assert_eq!(full_site.events.take(), Some(EventLog { path, size: 64 << 20, keep: 4 }));
        assert_eq!(full_site.metrics.take(), Some("127.0.0.1:9464".parse().unwrap()));
        assert!(full_site.node.alternate_recipient.take().is_some());
        let engine = std::mem::take(&mut full_site.engine);
        assert_eq!(matches!(engine, StoreEngine::Postgres(_)), name == "naples");
        // Selectors and other keys without a default are examples.
        for peer in full_site.node.peers.iter_mut().chain(&mut site.node.peers) {
            (peer.local, peer.remote, peer.tpdu_size, peer.content_max) = Default::default();
            for channel in &mut peer.channels {
                channel.minimize = None;
                channel.connection = node::config::Connection::Permanent;
            }
        }
        for channel in full_site.channels.values_mut() {
            channel.tcp.congestion = None;
        }
        for listener in &mut full_site.listeners {
            listener.tcp.congestion = None;
        }
        full_site.node.minimize = None;
        let cleared = std::mem::take(&mut full_site.node.clearances);
        assert_eq!((cleared.peers.len(), cleared.users.len()), (1, 1));
        // Bounds and rules of the message store have no defaults.
        let store = &mut full_site.node.store.settings;
        assert!(store.quota.items.is_some() && store.quota.octets.is_some());
        (store.quota.items, store.quota.octets) = (None, None);
        assert_ne!(std::mem::take(&mut store.rules), Default::default());
        full_site.node.listeners.clear();
        site.node.listeners.clear();
        (full_site.numbering, site.numbering) = Default::default();
        assert_eq!(format!("{full_site:#?}"), format!("{site:#?}"), "{name}");
    }
}

#[test]
fn an_alternate_recipient_has_a_route() {
    let with = |address: &str| {
        let key = format!("[mta]\nalternate_recipient = {address:?}");
        check_in(Path::new("/nowhere"), &GOOD.replacen("[mta]", &key, 1))
    };
    for address in ["/C=IT/ADMD=NET/PRMD=NAPLES/S=POST", "/C=IT/ADMD=NET/PRMD=ACT/S=POST"] {
        let site = with(address).0.unwrap();
        let alternate = site.node.alternate_recipient.unwrap();
        assert_eq!(alternate.address, address.parse().unwrap());
    }
    let (site, findings) = with("/C=FR/ADMD=NET/S=POST");
    assert!(site.is_none());
    let text = findings.render(false);
    assert!(text.contains("no route leads to alternate_recipient /"), "{text}");
    assert!(with("POST").0.is_none());
}
