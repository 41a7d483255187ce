//! `xuxa burst` between two daemons: its results for each message are correct.

use super::{SOON, print_line};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use testbed::clock::Deadline;
use testbed::{Pair, PeerSettings, ProgramOutput, Site};

/// Two sites that log their events; `xuxa` at naples knows both users.
fn pair() -> Pair {
    let builder = Pair::builder(PeerSettings::per_precedence()).unwrap();
    let pair = builder.each(|site| site.set("events.file", "events.jsonl")).start().unwrap();
    let profile = |name: &str, site: &Site| {
        format!(
            "[profile.{name}]\nmta = \"{}\"\nuser = \"{}\"\npassword = {{ file = {:?} }}\n\
             inbox = {:?}\n",
            site.p3(),
            site.address("OPS"),
            site.password_file("OPS"),
            site.path().join("inbox-of-a-burst"),
        )
    };
    let profiles = profile("OPS", &pair.naples) + &profile("act", &pair.act);
    std::fs::write(pair.naples.profiles(), profiles).unwrap();
    pair
}

/// Writes a plan whose messages go to the user at act; `above` stands before the groups.
fn plan(pair: &Pair, above: &str, groups: &str) -> PathBuf {
    let path = pair.naples.path().join("plan.toml");
    let to = pair.act.address("OPS");
    std::fs::write(&path, format!("to = {to:?}\n{above}\n{groups}")).unwrap();
    path
}

fn burst(pair: &Pair, arguments: &[&str]) -> ProgramOutput {
    pair.naples.xuxa("OPS", &[&["burst"], arguments].concat()).unwrap()
}

/// The event logs of both, as a plan names them.
fn events(pair: &Pair) -> String {
    let logs = [&pair.naples, &pair.act].map(|site| site.path().join("data/events.jsonl"));
    format!("events = [{:?}, {:?}]", logs[0], logs[1])
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count"))
}

const THREE: &str = r#"
    [[group]]
    name = "backlog"
    precedence = "routine"
    size = { from = "200B", to = "50kB" }
    count = 24
    parallel = 4

    [[group]]
    name = "spaced"
    precedence = { priority = 1, flash = 1 }
    size = "2kB"
    count = 12
    spacing = { poisson = "5ms" }

    [[group]]
    name = "last"
    precedence = "flash"
    size = "1kB"
    after = "backlog"
"#;

#[test]
fn every_message_is_timed_at_each_step_and_arrives_as_it_was() {
    let pair = pair();
    let path = plan(&pair, &format!("seed = 7\nreceive = \"act\"\n{}", events(&pair)), THREE);
    let plan = path.to_str().unwrap();
    let histograms = pair.naples.path().join("histograms");
    let arguments = ["--json", plan, "--histograms", histograms.to_str().unwrap()];
    let run = burst(&pair, &arguments);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    let report: Value = run.json().unwrap();
    let counts = &report["counts"];
    for what in ["planned", "submitted", "accepted", "delivered"] {
        assert_eq!(count(&counts[what]), 37, "{what} of {counts}");
    }
    for what in ["in_doubt", "refused", "not_sent", "in_transfer", "altered", "delivered_again"] {
        assert_eq!(count(&counts[what]), 0, "{what} of {counts}");
    }
    assert_eq!(count(&report["out_of_order"]), 0);
    assert_eq!(count(&report["observed"]["lines_skipped"]), 0);

    let messages = report["messages"].as_array().unwrap();
    let identifiers: BTreeSet<_> = messages.iter().map(|m| m["mts_identifier"].as_str()).collect();
    assert_eq!((messages.len(), identifiers.len()), (37, 37));
    let order =
        ["submission_at", "accepted_at", "transfer_started_at", "received_at", "delivered_at"];
    for message in messages {
        let at = |name: &str| message[name].as_str().unwrap_or_else(|| panic!("{name}: {message}"));
        let times = order.map(at);
        assert!(times.is_sorted(), "{message}");
        assert!(at("received_at") <= at("transfer_confirmed_at"), "{message}");
        assert!(at("submission_at") <= at("answered_at"), "{message}");
        if let Some(planned) = message["planned_at"].as_str() {
            assert!(planned <= at("submission_at"), "{message}");
        }
        assert_eq!(message["outcome"], "delivered");
    }
    // The last begins when all of the backlog are accepted.
    let of = |group: &'static str| messages.iter().filter(move |m| m["group"] == group);
    let last = of("last").next().unwrap()["submission_at"].as_str().unwrap().to_owned();
    assert!(of("backlog").all(|m| m["answered_at"].as_str().unwrap() <= last.as_str()));

    let mut sums = BTreeMap::new();
    for line in report["precedences"].as_array().unwrap() {
        let planned = count(&line["planned"]);
        *sums.entry("planned").or_insert(0) += planned;
        for stretch in ["acceptance_ms", "waiting_ms", "transfer_ms", "delivery_ms"] {
            assert_eq!(count(&line[stretch]["count"]), planned, "{stretch} of {line}");
        }
        let q = &line["delivery_ms"];
        let quantiles = ["p50", "p90", "p99", "max"].map(|name| q[name].as_f64().unwrap());
        assert!(quantiles.is_sorted() && quantiles[0] > 0.0, "{q}");
    }
    assert_eq!(sums["planned"], 37);
    assert!(histograms.join("routine-delivery.hgrm").is_file());

    // The submitted messages are those of the list.
    let run = burst(&pair, &["--json", "--list", plan]);
    let list: Value = run.json().unwrap();
    let what = |list: &Value| -> Vec<_> {
        let messages = list["messages"].as_array().unwrap().iter();
        messages.map(|m| (m["precedence"].clone(), m["size"].clone(), m["group"].clone())).collect()
    };
    assert_eq!(what(&list), what(&report));
    print_line(&run.stderr);
}

#[test]
fn without_event_logs_it_reports_what_is_not_observed_and_keeps_other_messages() {
    let pair = pair();
    let to = pair.act.address("OPS");
    // One of another's is waiting for the user that the burst binds as.
    let other = pair.naples.send("OPS", &["--to", &to, "--text", "NOT OF THE BURST"]).unwrap();
    let groups = "[[group]]\nname = \"a\"\nprecedence = \"flash\"\nsize = \"3MB\"\ncount = 3\n";
    let path = plan(&pair, "receive = [\"act\"]", groups);
    let output = pair.naples.path().join("burst.json");
    let run = burst(&pair, &[path.to_str().unwrap(), "--output", output.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("no event logs"), "{}", run.stderr);
    assert!(run.stdout.contains("submit to delivered"), "{}", run.stdout);
    let report: Value = serde_json::from_slice(&std::fs::read(output).unwrap()).unwrap();
    assert_eq!(
        (count(&report["counts"]["delivered"]), count(&report["counts"]["altered"])),
        (3, 0)
    );
    let line = &report["precedences"][0];
    assert!(line["waiting_ms"].is_null() && line["overtaken"].is_null(), "{line}");
    assert_eq!(count(&line["delivery_ms"]["count"]), 3);
    let message = &report["messages"][0];
    assert!(message.get("transfer_started_at").is_none(), "not known, so not there: {message}");

    let inbox = pair.act.path().join("inbox-of-a-burst");
    let log = std::fs::read_to_string(inbox.join("received.log")).unwrap();
    let line: Value = serde_json::from_str(&log).unwrap();
    assert_eq!(line["id"], other.messages[0].mts_identifier, "one line: {log}");
    let idle = |s: &testbed::answer::MtaStatus| s.queued() + s.waiting() == 0;
    pair.act.wait_until("nothing left", SOON, idle).unwrap();

    // Nobody takes them: acceptance is all there is to see.
    let path = plan(&pair, "", groups);
    let run = burst(&pair, &["--json", path.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("are not observed"), "{}", run.stderr);
    let report: Value = run.json().unwrap();
    assert!(report["precedences"][0]["delivery_ms"].is_null());
    assert_eq!(report["messages"][2]["outcome"], "accepted");
}

#[test]
fn interrupted_it_stops_submitting_and_reports_all_that_were_planned() {
    let pair = pair();
    let above = format!("receive = \"act\"\n{}", events(&pair));
    let groups = "[[group]]\nname = \"a\"\nprecedence = \"routine\"\nsize = \"1kB\"\ncount = 5000\n\
                  spacing = \"20ms\"\n[[group]]\nname = \"b\"\nprecedence = \"flash\"\n\
                  size = \"1kB\"\nafter = \"a\"\n";
    let path = plan(&pair, &above, groups);
    let arguments = ["--json", "burst", path.to_str().unwrap()];
    let mut client = pair.naples.xuxa_beside("OPS", &arguments).unwrap();
    let some = || Ok((pair.naples.status()?.counters.submitted >= 5).then_some(()));
    Deadline::after(SOON).wait_for("some submissions", some).unwrap();
    client.signal(Signal::SIGINT).unwrap();
    let run = client.wait(SOON).unwrap();
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    let counts = &report["counts"];
    let [planned, accepted, not_sent, in_doubt] =
        ["planned", "accepted", "not_sent", "in_doubt"].map(|what| count(&counts[what]));
    // One was perhaps in progress, and its answer late.
    assert!(in_doubt <= 1 && run.code == if in_doubt > 0 { 4 } else { 3 }, "{}", run.stderr);
    assert_eq!((planned, accepted + not_sent + in_doubt), (5_001, 5_001), "{counts}");
    let submitted = pair.naples.status().unwrap().counters.submitted;
    assert!(accepted >= 5, "{counts}");
    assert!((accepted..=accepted + in_doubt).contains(&submitted), "{submitted}: {counts}");
    let untried = report["messages"].as_array().unwrap().iter().rev().take(100);
    for message in untried {
        assert_eq!(message["outcome"], "not_sent", "{message}");
        assert!(message["reason"].as_str().unwrap().contains("interrupted"), "{message}");
    }
}

#[test]
fn impossible_plans_are_refused_before_anything_is_submitted() {
    let pair = pair();
    let group = "[[group]]\nname = \"a\"\nprecedence = \"flash\"\nsize = \"1kB\"\n";
    let cases = [
        ("", "[[group]]\nname = \"a\"\nprecedence = \"flash\"\nsize = \"1 furlong\"\n", "line 6"),
        ("from = \"nobody\"", group, "no profile \"nobody\""),
        ("receive = \"nobody\"", group, "no profile \"nobody\""),
        ("colour = 1", group, "colour"),
    ];
    for (above, groups, expected) in cases {
        let path = plan(&pair, above, groups);
        for option in [&[][..], &["--check"]] {
            let run = burst(&pair, &[option, &[path.to_str().unwrap()]].concat());
            assert_eq!(run.code, 2, "{above}: {}", run.stderr);
            assert!(run.stderr.contains(expected), "{above}: {}", run.stderr);
        }
    }
    let path = plan(&pair, "", group);
    let run = burst(&pair, &["--check", path.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("1 messages in 1 groups, 1 kB"), "{}", run.stdout);
    // The password of the other site's user, which naples refuses.
    let profiles = std::fs::read_to_string(pair.naples.profiles()).unwrap();
    let [ours, theirs] = [&pair.naples, &pair.act].map(|s| format!("{:?}", s.password_file("OPS")));
    std::fs::write(pair.naples.profiles(), profiles.replace(&ours, &theirs)).unwrap();
    let run = burst(&pair, &[path.to_str().unwrap()]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("group \"a\"") && run.stderr.contains("authentication error"));
    let missing = burst(&pair, &["no-such-plan.toml"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("cannot read the plan"), "{}", missing.stderr);
    assert_eq!(pair.naples.status().unwrap().counters.submitted, 0);
}

#[test]
fn an_mta_that_does_not_answer_leaves_one_in_doubt_and_the_rest_untried() {
    let mut pair = pair();
    let above = "answer_timeout = \"1s\"\nretry_for = \"0s\"";
    let groups = "[[group]]\nname = \"a\"\nprecedence = \"routine\"\nsize = \"1kB\"\ncount = 5000\n\
                  spacing = \"20ms\"\n";
    let path = plan(&pair, above, groups);
    let arguments = ["--json", "burst", path.to_str().unwrap()];
    let client = pair.naples.xuxa_beside("OPS", &arguments).unwrap();
    let some = || Ok((pair.naples.status()?.counters.submitted >= 5).then_some(()));
    Deadline::after(SOON).wait_for("some submissions", some).unwrap();
    pair.naples.signal(Signal::SIGSTOP).unwrap();
    // Were each message to wait for a bind, it would take a day.
    let run = client.wait(SOON);
    pair.naples.signal(Signal::SIGCONT).unwrap();
    let run = run.unwrap();
    assert_eq!(run.code, 4, "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let counts = &report["counts"];
    assert_eq!(count(&counts["in_doubt"]), 1, "{counts}");
    let of = |reason: &str| {
        let messages = report["messages"].as_array().unwrap().iter();
        messages.filter(|m| m["reason"].as_str().is_some_and(|r| r.contains(reason))).count()
    };
    assert_eq!(of("was not answered"), 1);
    let untried = of("not tried: ");
    assert!(untried > 4_000, "{untried}: {}", run.stderr);
}

#[test]
fn a_group_whose_wait_is_in_vain_is_given_up() {
    let pair = pair();
    // Nobody takes what the event logs are watched for.
    let above = format!("deadline = \"1s\"\n{}", events(&pair));
    let groups = "[[group]]\nname = \"a\"\nprecedence = \"routine\"\nsize = \"1kB\"\n[[group]]\n\
                  name = \"b\"\nprecedence = \"flash\"\nsize = \"1kB\"\ncount = 3\n\
                  after = { group = \"a\", stage = \"delivered\" }\n";
    let path = plan(&pair, &above, groups);
    let run = burst(&pair, &["--json", path.to_str().unwrap()]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.stderr.contains("3 not sent: not tried: not all of group \"a\""), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(count(&report["counts"]["accepted"]), 1);
    assert_eq!(count(&report["counts"]["not_sent"]), 3);
    // Without the logs nobody would ever see what is waited for.
    let path = plan(&pair, "receive = \"OPS\"", groups);
    let run = burst(&pair, &["--check", path.to_str().unwrap()]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("does not name all its recipients"), "{}", run.stderr);
}
