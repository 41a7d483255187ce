//! Channels: their connections, times, checkpoints and what stands in for them.

use super::*;

#[test]
fn hold_and_fallback() {
    let text = GOOD
        .replace("[p3]", "[precedence]\nhold = \"strict\"\nstall = \"20s\"\n[p3]")
        .replace("dscp = 46", "fallback = [\"routine\", \"priority\"]");
    let (site, report) = check_in(Path::new("/nowhere"), &text);
    assert_eq!(report.render(false), "");
    let node = site.unwrap().node;
    let hold = node::config::Hold::Strict;
    let stall = Duration::from_secs(20);
    assert_eq!(node.hold, node::config::HoldPolicy { hold, stall, ..Default::default() });
    let channels = &node.peers[0].channels;
    assert_eq!(channels[0].fallback, []);
    assert_eq!(channels[1].fallback, [Precedence::Routine, Precedence::Priority]);
}

#[test]
fn half_open_connections_that_could_take_all_places_are_noted() {
    let check = |limits: &str| {
        let file = format!("{}/../../config/sites/act.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).unwrap();
        let text = text.replacen("[limits]", &format!("[limits]\n{limits}\n#"), 1);
        let (site, report) = check_in(Path::new("/nowhere"), &text);
        assert!(site.is_some());
        report.problems.iter().map(|p| p.message.clone()).collect::<Vec<_>>()
    };
    for good in ["half_open = 512", "associations = 512", "associations = 10\nhalf_open = 5"] {
        assert_eq!(check(good), [""; 0], "{good}");
    }
    for bad in ["half_open = 513", "associations = 100", "associations = 10\nhalf_open = 6"] {
        let messages = check(bad);
        assert!(messages.len() == 1 && messages[0].contains("half_open"), "{messages:?}");
    }
}

#[test]
fn a_checkpoint_follows_the_rate_unless_it_is_configured_and_one_for_fast_lines_is_noted() {
    let with = |rts: &str| {
        let text = GOOD.replace("rts = { checkpoint = \"2KiB\", window = 3 }", rts);
        let (site, report) = check_in(Path::new("/nowhere"), &text);
        let channel = site.unwrap().node.peers.remove(0).channels.remove(1);
        let messages: Vec<String> = report.problems.iter().map(|p| p.message.clone()).collect();
        (channel.rts.checkpoint_size, channel.checkpoint_adapts, messages.join("; "))
    };
    for auto in ["", "rts = { window = 3 }", "rts = { checkpoint = \"auto\" }"] {
        assert_eq!(with(auto), (64, true, String::new()), "{auto}");
    }
    let fits = ["\"32KiB\"", "\"35KiB\"", "0", "\"64KiB\" }\ntimeouts = { transfer = \"219s\""];
    for (fit, size) in fits.into_iter().zip([32, 35, 0, 64]) {
        assert_eq!(with(&format!("rts = {{ checkpoint = {fit} }}")), (size, false, String::new()));
    }
    for (large, slowest) in [
        ("rts = { checkpoint = \"36KiB\" }", "2.5 kbit/s"),
        ("rts = { checkpoint = \"64KiB\" }", "4.4 kbit/s"),
        ("rts = { checkpoint = \"1MiB\" }\ntimeouts = { transfer = \"10s\" }", "838.9 kbit/s"),
    ] {
        let (_, adapts, messages) = with(large);
        assert!(!adapts && messages.contains(&format!("slower than {slowest}")), "{messages}");
    }
}

#[test]
fn waiting_is_set_by_precedence() {
    let with = |keys: &str| {
        let text = format!("{GOOD}\n[precedence]\n{keys}\n");
        check_in(Path::new("/nowhere"), &text)
    };
    let (site, report) = with(
        "expire = { flash = \"2h\" }\nalert = { routine = \"10min\" }\n\
         retry = { deferred = { first = \"5min\" } }\nminimum_share = 20\npreempt = true\n\
         pause_max = \"5min\"\n\
         minimize = { floor = \"flash\", windows = [\"mon-fri 22:00-06:00\"] }",
    );
    assert_eq!(report.render(false), "");
    let node = site.unwrap().node;
    let seconds = |p| (node.times.expire.0.get(p).as_secs(), node.times.alert.0.get(p).as_secs());
    assert_eq!(seconds(Precedence::Flash), (7_200, 60));
    assert_eq!(seconds(Precedence::Routine), (36 * 3_600, 600));
    let retry = node.hold.retry.map(|r| (r.first.as_secs(), r.longest.as_secs()));
    assert_eq!((retry[0], retry[1], retry[5]), ((300, 1_800), (60, 1_800), (10, 600)));
    assert_eq!((node.hold.share, node.hold.preempt), (Some(20), true));
    let pause = |node: &NodeConfig| node.peers[0].channels[0].rts.longest_pause;
    assert_eq!(pause(&node), Duration::from_mins(5));
    let pauses = |keys: &str| pause(&with(keys).0.unwrap().node);
    assert_eq!(pauses("preempt = true"), Duration::from_mins(15));
    assert_eq!(pauses("pause_max = \"5min\""), Duration::ZERO, "nobody pauses");
    let minimize = node.minimize.unwrap();
    assert_eq!(minimize.floor, Precedence::Flash);
    assert_eq!(minimize.windows.to_string(), "mon-fri 22:00-06:00");

    let wrong = [
        ("expire = { flash = \"217h\" }", "write a duration from 1 s to 216 h"),
        ("expire = { urgent = \"2h\" }", "urgent"),
        ("alert = { flash = \"500ms\" }", "write a duration from 1 s to 168 h"),
        ("retry = { flash = { first = \"1h\" } }", "first is longer than longest"),
        ("pause_max = \"25h\"", "write a duration from 1 s to 24 h"),
        ("minimum_share = 51", "write a whole number from 0 to 50"),
        ("minimize = { floor = \"flash\" }", "windows = [\"mon-fri 22:00-06:00\"]"),
        ("minimize = { windows = [\"22:00-06:00\"] }", "write floor"),
        ("minimize = { floor = \"flash\", windows = [\"25:00-06:00\"] }", "not a time of the day"),
    ];
    for (keys, expected) in wrong {
        let (site, report) = with(keys);
        let shown = report.render(false);
        assert!(site.is_none() && shown.contains(expected), "{keys}: {shown}");
    }
    assert_eq!(with("minimum_share = 0").0.unwrap().node.hold.share, None);
    let (site, report) = check_in(
        Path::new("/nowhere"),
        &GOOD.replacen("name = \"act\"\n", "name = \"act\"\ncontent_max = \"10MB\"\n", 1),
    );
    assert_eq!(report.render(false), "");
    assert_eq!(site.unwrap().node.peers[0].content_max, Some(10_000_000));
}

#[test]
fn a_peer_s_message_aborts() {
    let with = |key: &str| {
        let peer = format!("name = \"act\"\n{key}\n");
        check_in(Path::new("/nowhere"), &GOOD.replacen("name = \"act\"\n", &peer, 1))
    };
    for (key, most) in [("", 4), ("message_aborts = 0", 0), ("message_aborts = 1000", 1_000)] {
        assert_eq!(with(key).0.unwrap().node.peers[0].message_aborts, most, "{key}");
    }
    for wrong in ["message_aborts = -1", "message_aborts = 1001", "message_aborts = \"4\""] {
        let (site, report) = with(wrong);
        let shown = report.render(false);
        assert!(site.is_none() && shown.contains("1000"), "{wrong}: {shown}");
    }
}

#[test]
fn connection_and_its_times() {
    let check = |by: &str| {
        let on_demand = "connection = \"on-demand\"\nidle_close = \"2min\"";
        let (site, report) = check_in(Path::new("/nowhere"), &GOOD.replacen(on_demand, by, 1));
        let messages: Vec<String> = report.problems.iter().map(|p| p.message.clone()).collect();
        (site.map(|s| s.node.peers[0].channels[1].clone()), messages.join("\n"))
    };
    let (channel, messages) =
        check("connection = \"scheduled\"\nwindows = \"mon-fri 06:00-18:00\"");
    assert_eq!(messages, "");
    let windows = "mon-fri 06:00-18:00".parse().unwrap();
    assert_eq!(channel.unwrap().connection, node::config::Connection::Scheduled { windows });
    let (channel, messages) =
        check("reopen = { first = \"2s\", longest = \"2s\", refused = \"1h\" }");
    assert_eq!(messages, "");
    let reopen = channel.unwrap().reopen;
    let seconds = [reopen.first, reopen.longest, reopen.refused].map(|d| d.as_secs());
    assert_eq!(seconds, [2, 2, 3_600]);
    for (wrong, message) in [
        ("connection = \"scheduled\"", "is scheduled but lacks windows"),
        ("windows = [\"06:00-18:00\"]", "without connection = \"scheduled\""),
        ("connection = \"scheduled\"\nwindows = [\"6-18\"]", "\"6\" is not a time of the day"),
        ("connection = \"scheduled\"\nwindows = []", "never open"),
        ("reopen = { first = \"2min\" }", "first of reopen"),
    ] {
        let (channel, messages) = check(wrong);
        assert!(channel.is_none() && messages.contains(message), "{wrong}: {messages}");
        assert_eq!(messages.lines().count(), 1, "{messages}");
    }
}

#[test]
fn dead_after_is_both_the_user_timeout_and_half_of_it_until_the_first_probe() {
    let check = |timeouts: &str| {
        let text = GOOD.replace("dscp = 46", &format!("timeouts = {timeouts}"));
        let (site, report) = check_in(Path::new("/nowhere"), &text);
        assert_eq!(report.render(false), "");
        let site = site.unwrap();
        let socket = &site.channels[&ChannelId { peer: PeerId::of_name("act"), index: 1 }];
        (socket.tcp.user_timeout.as_secs(), socket.tcp.keepalive.as_secs())
    };
    assert_eq!(check("{}"), (60, 30));
    assert_eq!(check("{ dead_after = \"10s\" }"), (10, 5));
    assert_eq!(check("{ dead_after = \"10s\", keepalive = \"2s\" }"), (10, 2));
    assert_eq!(check("{ unacknowledged = \"20s\" }"), (20, 30));
}

#[test]
fn the_edition_of_a_peer_and_the_form_of_a_common_name() {
    use p1::extension::{CommonName, Dialect};
    let with = |key: &str| {
        let text = GOOD.replacen("name = \"act\"\n", &format!("name = \"act\"\n{key}\n"), 1);
        let (site, report) = check_in(Path::new("/nowhere"), &text);
        let dialect = site.map(|site| site.node.peers[0].form.dialect);
        (dialect, report.problems.iter().map(|p| p.message.clone()).collect::<Vec<_>>())
    };
    let of_1984 = Dialect::RedBook1984;
    for (key, dialect) in [
        ("", Dialect::Modern),
        ("extensions = \"1988\"", Dialect::BlueBook1988),
        ("extensions = \"1984\"", of_1984(CommonName::NoForm)),
        ("extensions = \"1984\"\ncommon_name = \"none\"", of_1984(CommonName::NoForm)),
        ("extensions = \"1984\"\ncommon_name = \"dda\"", of_1984(CommonName::DomainDefined)),
    ] {
        assert_eq!(with(key), (Some(dialect), vec![]), "{key}");
    }
    let (dialect, problems) = with("common_name = \"dda\"");
    assert_eq!(dialect, Some(Dialect::Modern));
    assert_eq!(problems, ["common_name without extensions = \"1984\" has no effect"]);
    assert_eq!(with("extensions = \"1992\"").0, None);
}

/// A peer with so many channels, each with these lines.
fn peer_of(count: usize, lines: &str) -> String {
    let (head, rest) = GOOD.split_once("[[peer.channel]]").unwrap();
    let (_, local) = rest.rsplit_once("[[route]]").unwrap();
    let channel = |n: usize| {
        format!(
            "[[peer.channel]]\nname = \"c{n}\"\nremote = \"127.0.0.1:51{n:02}\"\nprecedences = [\"deferred\", \
             \"routine\", \"priority\", \"immediate\", \"flash\", \"override\"]\n{lines}\n"
        )
    };
    let channels: String = (1..=count).map(channel).collect();
    format!("{head}{channels}\n[[route]]{local}")
}

fn rendered(base: &Path, text: &str) -> String {
    let (site, report) = check_in(base, text);
    assert!(site.is_some(), "{}", report.render(false));
    report.render(false)
}

#[test]
fn a_warning_that_is_the_same_for_several_channels_is_shown_once() {
    let there = tempfile::tempdir().unwrap();
    let named = "\"c1\", \"c2\", \"c3\", \"c4\", \"c5\", \"c6\", \"c7\", \"c8\" of peer \"act\"";
    // In each channel, and in a profile for all of them.
    let each = peer_of(8, "rts = { checkpoint = \"64KiB\" }");
    let profile = "[channel]\nrts = { checkpoint = \"64KiB\" }\n";
    std::fs::write(there.path().join("ours.toml"), profile).unwrap();
    let all = peer_of(8, "").replace("name = \"act\"", "name = \"act\"\nprofile = \"ours.toml\"");
    for text in [&each, &all] {
        let shown = rendered(there.path(), text);
        let flat =
            shown.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert_eq!(shown.matches("help:").count(), 1, "{shown}");
        assert!(
            flat.contains(&format!("checkpoint of rts of channels {named}: on a line")),
            "{shown}"
        );
    }
    let (_, report) = check_in(there.path(), &each);
    assert_eq!(report.to_json().len(), 8, "a program gets each");
    let shown = rendered(there.path(), &each);
    assert!(shown.contains("(also in lines "), "{shown}");
    // What differs stays.
    let other =
        each.replacen("64KiB", "128KiB", 1).replacen("checkpoint = \"64", "checkpoint = \"256", 1);
    assert_eq!(rendered(there.path(), &other).matches("help:").count(), 3);
    let idle = rendered(there.path(), &peer_of(2, "idle_close = \"2min\""));
    assert!(
        idle.contains("idle_close of channels \"c1\", \"c2\" of peer \"act\" has no effect"),
        "{idle}"
    );
    // One address for all, and each listens.
    let one = (1..=8).fold(peer_of(8, ""), |text, n| {
        let own = format!("remote = \"127.0.0.1:51{n:02}\"");
        text.replace(&own, &format!("remote = \"127.0.0.1:5100\"\nlisten = \"127.0.0.1:50{n:02}\""))
    });
    let shown = rendered(there.path(), &one);
    assert_eq!(shown.matches("help:").count(), 1, "{shown}");
    assert!(shown.contains("8 channels of peer \"act\" connect to 127.0.0.1:5100"), "{shown}");
}

#[test]
fn a_peer_may_be_in_several_places() {
    let places = |remote: &str| {
        let text = GOOD.replacen("remote = \"127.0.0.1:5100\"", &format!("remote = {remote}"), 1);
        assert_ne!(text, GOOD);
        let (site, report) = check_in(Path::new("/nowhere"), &text);
        let first = |site: Site| {
            let socket = &site.channels[&ChannelId { peer: PeerId::of_name("act"), index: 0 }];
            socket.remotes().map(ToString::to_string).collect::<Vec<_>>()
        };
        site.map(first).ok_or_else(|| report.render(false))
    };
    assert_eq!(places("\"[::1]:5\"").unwrap(), ["[::1]:5"]);
    assert_eq!(places("[\"one:5\", \"two:5\"]").unwrap(), ["one:5", "two:5"]);
    for (wrong, expected) in
        [("[]", "no place"), ("[\"one:5\", \"one:5\"]", "twice"), ("[\"one\"]", "nowhere")]
    {
        let shown = places(wrong).unwrap_err();
        assert!(shown.contains(expected), "{wrong}: {shown}");
    }
}
