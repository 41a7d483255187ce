//! The configuration changes while the daemons run.

use super::SOON;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use testbed::answer::{AssociationStatus, MtaStatus};
use testbed::clock::Deadline;
use testbed::{Pair, PeerSettings, Site};

fn pair() -> Pair {
    Pair::builder(PeerSettings::per_precedence())
        .unwrap()
        .each(|site| site.run_with(&["--log-format", "json"]))
        .start()
        .unwrap()
}

/// Replaces part of a site's configuration file.
fn edit(site: &Site, part: &str, by: &str) {
    let text = fs::read_to_string(site.config()).unwrap();
    assert!(text.contains(part), "{part} is not in\n{text}");
    fs::write(site.config(), text.replacen(part, by, 1)).unwrap();
}

fn of_channel<'s>(
    status: &'s MtaStatus,
    name: &str,
) -> impl Iterator<Item = &'s AssociationStatus> {
    let found = status.peers.iter().flat_map(|p| &p.channels).find(|c| c.name == name);
    found.into_iter().flat_map(|c| &c.associations)
}

/// The identifiers of the associations of a channel, ours and the peer's.
fn ids(status: &MtaStatus, name: &str) -> Vec<String> {
    of_channel(status, name).map(|a| a.id.clone()).collect()
}

/// Waits until every channel has an association from each side, and gives the status.
fn settled(site: &Site) -> MtaStatus {
    site.wait_until("two idle associations a channel", SOON, |status| {
        let channels = status.peers.iter().flat_map(|p| &p.channels);
        channels.clone().count() >= 5
            && channels.into_iter().all(|c| {
                c.associations.len() == 2 && c.associations.iter().all(|a| a.state == "idle")
            })
    })
    .unwrap()
}

/// Nobody lost an association.
fn same(pair: &Pair, before: &MtaStatus, why: &str) {
    let after = pair.naples.status().unwrap();
    for channel in ["routine", "priority", "immediate", "flash", "override"] {
        assert_eq!(ids(&after, channel), ids(before, channel), "{why}: {channel}");
    }
}

fn effect(reported: &Value, channel: &str) -> String {
    let channels = reported["changes"]["peers"][0]["channels"].as_array().unwrap();
    let found = channels.iter().find(|c| c["name"] == channel).unwrap();
    found["effect"].as_str().unwrap().to_owned()
}

#[test]
fn a_new_mark_is_on_new_connections_and_the_other_channels_stay() {
    let mut pair = pair();
    let (before, theirs) = (settled(&pair.naples), settled(&pair.act));
    for site in [&pair.naples, &pair.act] {
        edit(site, "name = \"flash\"\n", "name = \"flash\"\ndscp = \"EF\"\n");
    }
    let run = pair.naples.mta(&["reload", "--json"]).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let reported: Value = run.json().unwrap();
    assert_eq!(
        (effect(&reported, "flash"), effect(&reported, "routine")),
        ("reopened".into(), "kept".into())
    );
    // The other one by its signal.
    pair.act.signal(Signal::SIGHUP).unwrap();

    let marked = |status: &MtaStatus| {
        let seen: Vec<_> = of_channel(status, "flash").collect();
        let theirs = |a: &&&AssociationStatus| a.role == "responder" && a.dscp_seen == Some(46);
        seen.len() == 2
            && seen.iter().all(|a| a.state == "idle" && a.dscp_expected == Some(46))
            && seen.iter().filter(theirs).count() == 1
    };
    for (site, before) in [(&pair.naples, &before), (&pair.act, &theirs)] {
        let after = site.wait_until("the new mark", SOON, marked).unwrap();
        for channel in ["routine", "priority", "immediate", "override"] {
            assert_eq!(ids(&after, channel), ids(before, channel), "{channel}");
        }
        assert!(ids(&after, "flash").iter().all(|id| !ids(before, "flash").contains(id)));
    }
    let to = pair.act.address("OPS");
    pair.naples.send("OPS", &["--to", &to, "--precedence", "flash", "--size", "1kB"]).unwrap();
    assert_eq!(pair.act.receive("OPS", 1).unwrap().messages().count(), 1);
}

#[test]
fn a_bad_file_is_refused_whole() {
    let mut pair = pair();
    let before = settled(&pair.naples);
    let good = fs::read_to_string(pair.naples.config()).unwrap();

    // A mistake, beside a change that would be right.
    edit(&pair.naples, "name = \"flash\"\n", "name = \"flash\"\ndscp = \"EF\"\n");
    edit(&pair.naples, "via = \"act\"", "via = \"atc\"");
    let check = pair.naples.mta(&["check"]).unwrap();
    let run = pair.naples.mta(&["reload"]).unwrap();
    assert_eq!((run.code, check.code), (2, 2), "{}", run.stderr);
    assert!(run.stderr.starts_with(&check.stderr), "as in mta check:\n{}", run.stderr);
    assert!(run.stderr.contains("the running configuration is unchanged"), "{}", run.stderr);
    same(&pair, &before, "a mistake");
    pair.naples.signal(Signal::SIGHUP).unwrap();
    let refused = || {
        let events = fs::read_to_string(pair.naples.log())?;
        Ok((events.matches("the configuration stays as it was").count() == 2).then_some(()))
    };
    Deadline::after(SOON).wait_for("the refusal in the log", refused).unwrap();
    same(&pair, &before, "a mistake, by signal");

    // What only a restart changes.
    fs::write(pair.naples.config(), &good).unwrap();
    edit(&pair.naples, "MTA-NAPLES", "MTA-ROME");
    let run = pair.naples.mta(&["reload"]).unwrap();
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("only a restart changes mta.name"), "{}", run.stderr);
    same(&pair, &before, "a name");

    // A port that somebody else has: neither it nor what comes with it.
    fs::write(pair.naples.config(), &good).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    edit(&pair.naples, "name = \"flash\"\n", "name = \"flash\"\ndscp = \"EF\"\n");
    let p3 = format!("listen = \"{}\"", pair.naples.p3());
    edit(&pair.naples, &p3, &format!("listen = [\"{}\", \"{at}\"]", pair.naples.p3()));
    let run = pair.naples.mta(&["reload"]).unwrap();
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains(&format!("cannot listen on {at} for p3")), "{}", run.stderr);
    same(&pair, &before, "a port");

    // And then it holds.
    drop(taken);
    let run = pair.naples.mta(&["reload"]).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("p3 ") && run.stdout.contains("  changed\n"), "{}", run.stdout);
    pair.naples
        .wait_until("the other listener", SOON, |_| std::net::TcpStream::connect(at).is_ok())
        .unwrap();
}

/// "override" goes; "flash" takes its precedence.
fn without_override(site: &Site) {
    let mut file: toml::Table = fs::read_to_string(site.config()).unwrap().parse().unwrap();
    let channels = file["peer"][0]["channel"].as_array_mut().unwrap();
    channels.retain(|c| c["name"].as_str() != Some("override"));
    channels[3]["precedences"].as_array_mut().unwrap().push("override".into());
    fs::write(site.config(), toml::to_string(&file).unwrap()).unwrap();
    let run = site.mta(&["reload"]).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn a_peer_s_channels_come_and_go_under_traffic() {
    let mut pair = pair();
    let before = settled(&pair.naples);
    let to = pair.act.address("OPS");
    // A peer that stands still: what has begun is not over before the change.
    pair.act.signal(Signal::SIGSTOP).unwrap();
    pair.naples.send("OPS", &["--to", &to, "--precedence", "routine", "--size", "20MB"]).unwrap();
    let is_sending =
        |status: &MtaStatus| of_channel(status, "routine").any(|a| a.state == "sending");
    pair.naples.wait_until("a transfer", SOON, is_sending).unwrap();
    without_override(&pair.naples);
    assert!(is_sending(&pair.naples.status().unwrap()), "in the middle of a transfer");
    pair.act.signal(Signal::SIGCONT).unwrap();
    without_override(&pair.act);
    pair.naples.send("OPS", &["--to", &to, "--precedence", "override", "--size", "1kB"]).unwrap();
    assert_eq!(pair.act.receive("OPS", 2).unwrap().messages().count(), 2);
    let after = pair.naples.status().unwrap();
    assert_eq!(ids(&after, "routine"), ids(&before, "routine"), "the long one's, too");
    assert_eq!(after.counters.transferred, 2);
    assert!(ids(&after, "override").is_empty());
}
