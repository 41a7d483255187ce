//! What an operator orders of the queue, with the real programs: conditions, trials, exit codes, the log.

use super::SOON;
use serde_json::Value;
use testbed::{Pair, PeerSettings, Site};

/// The entries that `mta queue list` finds, by size.
fn entries(site: &Site, conditions: &[&str]) -> Vec<String> {
    let run = site.mta(&[&["queue", "list", "--json"][..], conditions].concat()).unwrap();
    assert_eq!(run.code, 0, "{conditions:?}: {}", run.stderr);
    let page: Value = serde_json::from_str(&run.stdout).unwrap();
    let mut rows: Vec<(u64, String)> = page["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["size"].as_u64().unwrap(), row["entry"].as_str().unwrap().to_owned()))
        .collect();
    rows.sort_unstable();
    rows.into_iter().map(|(_, entry)| entry).collect()
}

/// The exit code and the output of an order.
fn order(site: &Site, arguments: &[&str]) -> (i32, String) {
    let run = site.mta(&[&["queue"][..], arguments].concat()).unwrap();
    (run.code, run.stdout + &run.stderr)
}

#[test]
fn every_message_ends_as_an_operator_ordered_and_the_log_has_who_did() {
    let mut pair = Pair::start(PeerSettings::default()).unwrap();
    pair.act.kill().unwrap();
    let to = pair.act.address("OPS");
    for (size, precedence) in
        [("1kB", "routine"), ("2kB", "routine"), ("3kB", "flash"), ("4kB", "routine")]
    {
        let arguments = ["--to", &to, "--size", size, "--precedence", precedence];
        pair.naples.send("OPS", &arguments).unwrap();
    }
    let site = &pair.naples;
    let all = entries(site, &[]);
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|entry| entry.len() < 6), "numbers that people can type: {all:?}");
    let [kept, held, flash, deleted] = &all[..] else { panic!("{all:?}") };

    // Conditions.
    assert_eq!(entries(site, &["--precedence", "flash"]), std::slice::from_ref(flash));
    assert_eq!(
        entries(site, &["--min-size", "3500", "--peer", "act"]),
        std::slice::from_ref(deleted)
    );
    assert_eq!(entries(site, &["--recipient", &to, "--originator", "ops"]), all);
    assert!(entries(site, &["--recipient", "NOBODY"]).is_empty());
    assert!(entries(site, &["--older", "1h"]).is_empty());

    // Trials and wrong usage change nothing.
    let (code, text) = order(site, &["delete", "--precedence", "routine", "--dry-run"]);
    assert!(code == 0 && text.contains("3 entries; nothing was done"), "{text}");
    assert_eq!(order(site, &["delete", deleted]).0, 2, "nobody can be asked");
    assert_eq!(order(site, &["delete"]).0, 2, "which?");
    for everything in [["--identifier", ""], ["--originator", "S="], ["--recipient", ""]] {
        let condition = [&["delete", "--yes"][..], &everything].concat();
        assert_eq!(order(site, &condition).0, 2, "{everything:?}");
    }
    assert_eq!(entries(site, &["--recipient", "s=ops", "--originator", "PRMD=NAPLES"]), all);
    assert!(entries(site, &["--recipient", "S=OPS;PRMD=NAPLES"]).is_empty());
    assert_eq!(order(site, &["hold", held, "--peer", "act"]).0, 2, "both");
    let (code, text) = order(site, &["expire", "e99999", "--yes"]);
    assert!(code == 1 && text.contains("not in the queue"), "{text}");
    assert_eq!(entries(site, &[]), all);

    assert_eq!(order(site, &["hold", held]), (0, format!("{held} held\n")));
    assert_eq!(order(site, &["delete", deleted, "--yes"]), (0, format!("{deleted} deleted\n")));
    let (code, text) = order(site, &["expire", "--precedence", "flash", "--yes"]);
    assert!(code == 0 && text.contains("its originator gets a report"), "{text}");
    let run = site.mta(&["queue", "show", held]).unwrap();
    for part in
        ["recipients", "(waiting)", "held_by_operator", "an operator holds it", "channel all:"]
    {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert_eq!(site.receive("OPS", 1).unwrap().reports().count(), 1, "of the one that expired");

    assert_eq!(site.mta(&["channel", "disable", "act/all"]).unwrap().code, 0);
    let (code, text) = order(site, &["retry", kept]);
    let disabled = "its channel act/all is disabled: `mta channel enable act/all`";
    assert!(code == 0 && text.contains(disabled), "{text}");
    assert_eq!(site.mta(&["channel", "enable", "act/all"]).unwrap().code, 0);
    assert_eq!(order(site, &["retry", kept]), (0, format!("{kept} is tried again\n")));
    pair.act.start().unwrap();
    let site = &pair.naples;
    let got = pair.act.receive("OPS", 1).unwrap();
    assert_eq!(got.messages().count(), 1);
    assert_eq!(entries(site, &["--state", "held-by-operator"]), std::slice::from_ref(held));
    assert_eq!(order(site, &["release", "--all"]).0, 0);
    assert_eq!(pair.act.receive("OPS", 1).unwrap().messages().count(), 1);
    site.wait_until("nothing is queued", SOON, |s| s.waiting() == 0).unwrap();

    let gone = site.mta(&["trace", deleted]).unwrap().stdout;
    assert!(gone.contains("Known here: deleted by "), "{gone}");

    let log = std::fs::read_to_string(site.log()).unwrap();
    let orders: Vec<&str> =
        log.lines().filter(|line| line.contains("event=\"operator_order\"")).collect();
    for order in [
        format!("delete {deleted}: 1 done"),
        format!("hold {held}: 1 done"),
        "expire e99999: 1 not in the queue".to_owned(),
    ] {
        assert!(orders.iter().any(|line| line.contains(&order)), "{order}: {orders:?}");
    }
    assert!(orders.iter().all(|line| line.contains("(uid ")), "who it was: {orders:?}");
}
