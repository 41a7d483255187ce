//! The hunt itself: worlds that broke once, mixed peers under cuts, and what the checkers notice.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use hunt::{Broken, Kind, Profile, Reads, Size, World, draw, draw_of, run, shrink};
use std::collections::BTreeSet;
use testkit::real::{Lie, Mutant};

/// Worlds that broke once, and what they found.
const KEPT: &[(&str, &str)] = &[
    (
        "filled-rttr",
        "a checkpoint behind the zeros that fill up an RTTR: both ends lose their power before the discard is durable, the \
         activity is resumed behind them, and an altered message is delivered",
    ),
    (
        "filled-then-cut",
        "an RTTR is filled up with zeros, the line is cut before the discard, the activity is resumed at the checkpoint \
         before them, and the receiver keeps the zeros: an altered message is delivered",
    ),
    (
        "cancelled-after-clock-step",
        "one copy of a deferred message is delivered at its time; then the clock is set, and the originator is answered \
         that the message is cancelled",
    ),
    (
        "cancelled-after-doubted-restart",
        "one copy of a deferred message is delivered; the process is killed, and does not trust the clock, so that the other \
         copy counts as deferred again; the originator is answered that the message is cancelled",
    ),
    (
        "cancelled-after-reroute",
        "after a restart one of two copies that may not be cancelled is rerouted: what it became was cancelled alone, and \
         the other one was delivered",
    ),
    (
        "two-copies-after-a-death",
        "a recipient is due two copies, directly and by a redirection; both come, no delete of them is durable before the \
         process dies, and both come again: a checker that counted pairs took it for a message delivered twice",
    ),
];

/// Worlds that break still, and how: who mends one moves its file.
const OPEN: &[(&str, Broken)] = &[];

#[test]
fn what_is_open_breaks_still() {
    // There is no folder if there are none.
    let files = std::fs::read_dir(format!("{}/open", env!("CARGO_MANIFEST_DIR")));
    assert_eq!(files.map_or(0, Iterator::count), OPEN.len(), "each file is in the table");
    for (name, broken) in OPEN {
        let failures = run(&read("open", name), None, false).failures;
        assert!(failures.iter().any(|failure| failure.broken == *broken), "{name}: {failures:?}");
    }
}

fn kept(name: &str) -> World {
    read("worlds", name)
}

fn read(folder: &str, name: &str) -> World {
    let file = format!("{}/{folder}/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(file).expect("a world")).expect("a world")
}

#[test]
fn what_broke_once_holds() {
    let files = std::fs::read_dir(format!("{}/worlds", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert_eq!(files.count(), KEPT.len(), "each file is in the table");
    for (name, found) in KEPT {
        let outcome = run(&kept(name), None, true);
        assert!(
            outcome.failures.is_empty(),
            "{name} ({found}): {:?}\n{}",
            outcome.failures,
            outcome.story
        );
    }
}

/// Networks of peers of every profile, whose lines are cut, half-open, slow and stalled.
#[test]
fn peers_of_every_profile_lose_nothing_while_their_lines_fail() {
    let (mut profiles, mut together) = (BTreeSet::new(), 0);
    for seed in 1..=24 {
        let world = draw_of(seed, Size::NETWORK, Kind::LINES);
        let here: BTreeSet<Profile> = world.links.iter().map(|link| link.profile).collect();
        together += usize::from(here.len() > 1);
        profiles.extend(here);
        let outcome = run(&world, None, false);
        assert!(outcome.failures.is_empty(), "seed {seed}: {:?}", outcome.failures);
        assert!(outcome.deliveries > 0, "seed {seed}");
    }
    assert_eq!(profiles, BTreeSet::from(Profile::ALL));
    assert!(together >= 6, "{together} worlds mix them");
}

#[test]
fn worlds_with_all_that_goes_wrong_hold() {
    // Each run of CI plays others besides, for a minute.
    for seed in 1..=16 {
        let outcome = run(&draw(seed, Size::NETWORK), None, false);
        assert!(outcome.failures.is_empty(), "seed {seed}: {:?}", outcome.failures);
    }
}

/// Users read their mailboxes over P7, through kills, losses of power and failing disks, and submit through them.
#[test]
fn mailboxes_that_are_read_over_p7_keep_what_they_showed() {
    let (mut fetched, mut deleted, mut in_doubt) = (0, 0, 0);
    for seed in 1..=12 {
        let mut world = draw_of(seed, Size::PAIR, DEATHS);
        for site in &mut world.sites {
            (site.has_mailbox, site.reads) = (true, Reads::Deletes(Some(3)));
        }
        let outcome = run(&world, None, true);
        assert!(outcome.failures.is_empty(), "seed {seed}: {:?}", outcome.failures);
        let count = |what: &str| outcome.story.matches(what).count();
        fetched += count("over P7) fetches");
        deleted += count("over P7) deleted");
        in_doubt += count("is not answered whether");
    }
    assert!(fetched > 100 && deleted > 20 && in_doubt > 0, "{fetched} {deleted} {in_doubt}");
}

/// What ends processes, and fails disks.
const DEATHS: &[Kind] = &[Kind::Killed, Kind::NoPower, Kind::Restart, Kind::Disk];

#[test]
fn a_seed_is_the_same_world_and_the_same_story() {
    for seed in [3, 8] {
        let [one, other] = [(); 2].map(|()| run(&draw(seed, Size::NETWORK), None, true));
        assert!(one.story.lines().count() > 100);
        assert!(one.story == other.story, "seed {seed}");
    }
}

/// A store that answers before its commits are made is found, and its world made small.
#[test]
fn a_planted_fault_is_found_and_its_world_made_small() {
    let mutant = Some(Mutant::Lies(Lie::AnswersEarly));
    let is_broken = |seed: &u64| !run(&draw(*seed, Size::PAIR), mutant, false).failures.is_empty();
    let seed = (1..100).find(is_broken).expect("found within 100 seeds");
    let world = draw(seed, Size::PAIR);
    let small = shrink(&world, mutant, 60);
    assert!(small.messages.len() < world.messages.len() && small.events.len() < world.events.len());
    let outcome = run(&small, mutant, true);
    let lost = |broken| {
        matches!(
            broken,
            Broken::Lost
                | Broken::Twice
                | Broken::Report
                | Broken::GivenUp
                | Broken::Stuck
                | Broken::Orphaned
                | Broken::Mailbox
        )
    };
    assert!(outcome.failures.iter().any(|f| lost(f.broken)), "{:?}", outcome.failures);
    assert!(outcome.story.contains("submits message"));
    assert!(run(&small, None, false).failures.is_empty(), "without the fault it holds");
}

#[test]
fn a_world_is_the_same_after_it_was_written_and_read() {
    for seed in 1..20 {
        let world = draw(seed, Size::NETWORK);
        let text = serde_json::to_string(&world).unwrap();
        let read: World = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{world}"), format!("{read}"));
    }
}

/// A found seed and a recording are the same kind of thing: each process of each site runs again from its recording.
#[test]
fn what_was_recorded_of_a_world_replays_as_it_ran() {
    let mut processes = 0;
    for seed in 1..=6 {
        testkit::record_nodes(true);
        // All kinds would have octets that change: those of a bind that cannot be read are zeros in a recording.
        let world = draw_of(seed, Size::NETWORK, &Kind::ALL[1..]);
        let outcome = run(&world, None, false);
        testkit::record_nodes(false);
        let recordings: Vec<&Vec<u8>> = outcome.recordings.iter().flatten().collect();
        assert_eq!(outcome.failures, Vec::new(), "seed {seed}");
        for recording in &recordings {
            testkit::assert_replays(recording);
        }
        processes += recordings.len();
    }
    assert!(processes > 12, "{processes}");
}
