//! Disks of 64 MB that Routine fills, at the sender and at the receiver: Flash passes, and all that was
//! accepted arrives once.

use super::super::{SOON, assert_arrived, print_line};
use super::SmallDisk;
use testbed::answer::{MtaStatus, SendOutput, SubmittedMessage};
use testbed::{Pair, PairBuilder, PeerSettings, Site};

const MEGABYTES: u32 = 64;

/// More than the disk holds, in contents that lie in the log and in files of their own.
fn more_than_fits() -> String {
    let sizes = (0..80).map(|n| if n % 16 == 15 { "3MB" } else { "700kB" });
    sizes.collect::<Vec<_>>().join(",")
}

/// Two sites that try again soon, `small` with its data on a small disk; `None` where we may not mount.
fn pair(small: &str, reserve: Option<&str>) -> Option<(Pair, SmallDisk)> {
    let Some(disk) = SmallDisk::mount(MEGABYTES) else {
        print_line("    SKIPPED a disk that Routine fills: mounting a small disk needs root");
        return None;
    };
    let data = disk.path().join("data").display().to_string();
    let builder = Pair::builder(PeerSettings::per_precedence()).unwrap().each(|site| {
        site.users(&["OPS", "DUTY"])
            .set("precedence.retry.routine.first", "1s")
            .set("precedence.retry.routine.longest", "3s")
    });
    let change = |site: testbed::SiteBuilder| {
        let site = site.set("mta.data_dir", data);
        reserve.into_iter().fold(site, |site, reserve| site.set("mta.disk_reserve", reserve))
    };
    let builder: PairBuilder =
        if small == "naples" { builder.naples(change) } else { builder.act(change) };
    Some((builder.build().unwrap(), disk))
}

fn submit(from: &Site, to: &str, precedence: &str, sizes: &str) -> SendOutput {
    let arguments = ["--json", "send", "--to", to, "--precedence", precedence, "--size", sizes];
    from.xuxa("OPS", &arguments).unwrap().json_anyway().unwrap()
}

/// Flash is taken, whatever else is not.
fn submit_flash(from: &Site, to: &str) -> Vec<SubmittedMessage> {
    let sent = submit(from, to, "flash", "1kB,10kB,100kB,1kB,10kB");
    assert_eq!(sent.messages.len(), 5, "{sent:?}");
    sent.messages
}

fn refuses(status: &MtaStatus) -> bool {
    status.disk.as_ref().is_some_and(|disk| disk.refused.is_some())
}

/// It refuses, or the store itself had no room.
fn is_short(status: &MtaStatus) -> bool {
    status.disk.as_ref().is_some_and(|disk| disk.refused.is_some() || disk.no_room_for.is_some())
}

fn fill_the_sender(reserve: Option<&str>) {
    let Some((mut pair, _disk)) = pair("naples", reserve) else { return };
    pair.naples.start().unwrap();
    let to = pair.act.address("OPS");
    let routine = submit(&pair.naples, &to, "routine", &more_than_fits());
    assert!(routine.messages.len() > 20, "{routine:?}");
    assert!(!routine.refused.is_empty() && routine.not_sent.is_empty(), "{routine:?}");
    pair.naples.wait_until("it refuses", SOON, is_short).unwrap();
    let mut sent = [routine.messages, submit_flash(&pair.naples, &to)].concat();
    assert_eq!(pair.naples.stop().unwrap().code(), Some(0));
    pair.naples.start().unwrap();
    sent.extend(submit_flash(&pair.naples, &to));

    pair.act.start().unwrap();
    assert_arrived(&sent, &pair.act.receive("OPS", sent.len()).unwrap());
    let is_over = |status: &MtaStatus| status.queued() + status.waiting() == 0 && !refuses(status);
    pair.naples.wait_until("there is room", SOON, is_over).unwrap();
    let again = submit(&pair.naples, &to, "routine", "700kB,3MB").messages;
    assert_arrived(&again, &pair.act.receive("OPS", 2).unwrap());
    assert_eq!(pair.act.receive_waiting("OPS").unwrap().deliveries.len(), 0, "nothing came twice");
}

#[test]
fn flash_passes_a_sender_that_routine_filled_to_its_mark() {
    fill_the_sender(None);
}

#[test]
fn flash_passes_a_sender_that_routine_filled_to_the_last_octet() {
    fill_the_sender(Some("0B"));
}

#[test]
fn the_routine_of_an_absent_user_does_not_stop_the_flash_of_another() {
    let Some((mut pair, _disk)) = pair("act", None) else { return };
    pair.act.start().unwrap();
    pair.naples.start().unwrap();
    let absent = pair.act.address("OPS");
    let routine = submit(&pair.naples, &absent, "routine", &more_than_fits());
    assert_eq!(routine.messages.len(), 80, "the sender has room: {routine:?}");
    let is_full = |status: &MtaStatus| refuses(status) && status.counters.received > 20;
    pair.act.wait_until("it refuses", SOON, is_full).unwrap();

    let flash = submit_flash(&pair.naples, &pair.act.address("DUTY"));
    assert_arrived(&flash, &pair.act.receive("DUTY", 5).unwrap());
    pair.naples.wait_until("it waits", SOON, |status| status.queued() > 5).unwrap();
    assert_eq!(pair.naples.status().unwrap().counters.reports_made, 0);

    // He comes back, and there is room again for the rest.
    assert_arrived(&routine.messages, &pair.act.receive("OPS", 80).unwrap());
    pair.naples.wait_until("nothing is left", SOON, |status| status.queued() == 0).unwrap();
    let is_over = |status: &MtaStatus| status.queued() + status.waiting() == 0 && !refuses(status);
    pair.act.wait_until("there is room", SOON, is_over).unwrap();
}

/// Flash of one user fills the disk, and deliveries that free no room take what is kept for deletes: other
/// copies need the contents. The site starts again all the same, and nothing comes twice.
#[test]
fn flash_that_fills_the_disk_leaves_a_site_that_starts() {
    let Some((mut pair, _disk)) = pair("naples", None) else { return };
    pair.naples.start().unwrap();
    let (to, copy) = (pair.act.address("OPS"), pair.naples.address("DUTY"));
    let mut sent = Vec::new();
    let mut send = |site: &Site, sizes: &[&str], times: usize| {
        let sizes = vec![sizes.join(","); times].join(",");
        let (to, copy) = (["--to", &to], ["--copy", &copy]);
        let with = ["--precedence", "flash", "--size", &sizes];
        let arguments = [&["--json", "send"], &to[..], &copy[..], &with[..]].concat();
        let run: SendOutput = site.xuxa("OPS", &arguments).unwrap().json_anyway().unwrap();
        assert!(run.in_doubt.is_empty() && run.not_sent.is_empty(), "{run:?}");
        sent.extend(run.messages);
        run.refused.len()
    };
    send(&pair.naples, &["1kB"], 400);
    send(&pair.naples, &["900kB"], 80);
    let mut received = Vec::new();
    for round in 0..3 {
        assert!(send(&pair.naples, &["100kB", "1kB"], 60) > 0, "round {round} was not refused");
        for _ in 0..5 {
            pair.naples.kill().unwrap();
            pair.naples.start().unwrap();
        }
        received.push(pair.naples.receive("DUTY", 100).unwrap());
    }
    assert_eq!(pair.naples.stop().unwrap().code(), Some(0));
    pair.naples.start().unwrap();
    received.push(pair.naples.receive("DUTY", sent.len() - 300).unwrap());
    let duplicates = received.iter().flat_map(|run| run.messages()).filter(|m| m.duplicate);
    assert_eq!(duplicates.count(), 0, "deliveries that were confirmed come again");
    assert_eq!(pair.naples.receive_waiting("DUTY").unwrap().deliveries.len(), 0);
    pair.act.start().unwrap();
    assert_arrived(&sent, &pair.act.receive("OPS", sent.len()).unwrap());
    let is_over = |status: &MtaStatus| status.queued() + status.waiting() == 0 && !refuses(status);
    pair.naples.wait_until("there is room", SOON, is_over).unwrap();
}
