//! Messages over the plain pair: they arrive as they were, in the order of their precedences, and
//! the same seed gives the same outcome.

use crate::setting::*;
use base::Precedence;
use sim::{Congestion, MessageStage, SubmissionStart, run};
use std::time::Duration;

#[test]
fn a_message_arrives_as_it_was_and_the_seed_decides_everything() {
    let mut scenario = pair("512kbit", 10);
    let at = SubmissionStart::At(seconds(2));
    scenario.messages.push(message(Precedence::Flash, 100_000, at));
    scenario.topology.links[1].loss = 0.02;
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        scenario.tcp.congestion = congestion;
        let outcome = run(&scenario).unwrap();
        let times = &outcome.messages[0];
        assert!(outcome.complete, "{outcome:?}");
        assert!(times.intact && times.deliveries == 1, "{times:?}");
        assert_eq!(times.associations.len(), 1);
        // Its transfer starts once it is durable, before its user receives the answer.
        let moments = [times.submitted, times.started, times.accepted, times.delivered];
        let moments = moments.map(Option::unwrap);
        assert!(moments.is_sorted(), "{moments:?}");
        assert_eq!(moments[0], seconds(2));
        assert!(moments[1] - moments[0] < Duration::from_millis(10), "{moments:?}");
        assert!(times.confirmed.unwrap() > moments[3] - seconds(1));
        // 100 kB at 512 kbit/s take 1.56 s and the headers; some is lost.
        let took = moments[3] - moments[1];
        assert!(took > Duration::from_millis(1_600) && took < seconds(20), "{took:?}");
        let resent: u64 = outcome.tcp.iter().map(|one| one.sent.resent_octets).sum();
        assert!(resent > 0, "something was lost");
        assert_eq!(run(&scenario).unwrap(), outcome);
        scenario.seed += 1;
        let other = run(&scenario).unwrap();
        assert!(other.messages[0].intact);
        assert_ne!(other.messages[0].delivered, times.delivered);
    }
}

#[test]
fn each_channel_has_its_mark_both_ways() {
    let mut scenario = pair("2Mbit", 1);
    for precedence in Precedence::ALL {
        scenario.messages.push(message(precedence, 5_000, SubmissionStart::At(seconds(2))));
    }
    let outcome = run(&scenario).unwrap();
    assert!(outcome.complete && outcome.messages.iter().all(|one| one.intact));
    let site = &scenario.sites[NAPLES];
    for (id, to) in &site.connects {
        let dscp = site.config.channel(*id).unwrap().1.dscp;
        let ends: Vec<_> = outcome
            .tcp
            .iter()
            .filter(|one| one.local.port() == to.port() || one.remote.port() == to.port())
            .collect();
        assert!(ends.len() >= 4, "both sites connect: {ends:?}");
        assert!(ends.iter().all(|one| one.dscp == dscp && one.sent.segments >= 3), "{ends:?}");
    }
    let mismatched =
        outcome.events.iter().any(|(_, _, event)| event.kind == node::event::Kind::MarkMismatch);
    assert!(!mismatched);
}

#[test]
fn what_waits_goes_strictly_by_precedence() {
    let mut scenario = pair("512kbit", 5);
    // All at one moment, the lowest first; one of each precedence goes beside the others, which
    // hold the lower ones.
    for precedence in Precedence::ALL.into_iter().chain(Precedence::ALL) {
        scenario.messages.push(message(precedence, 50_000, SubmissionStart::At(seconds(2))));
    }
    // While this one takes the line, all come in.
    let first =
        message(Precedence::Override, 200_000, SubmissionStart::At(Duration::from_millis(1_990)));
    scenario.messages.push(first);
    let outcome = run(&scenario).unwrap();
    assert!(outcome.complete && outcome.messages.iter().all(|one| one.intact));
    let mut order: Vec<_> = (0..12).collect();
    order.sort_by_key(|number| outcome.messages[*number].started);
    let precedences: Vec<_> = order.iter().map(|n| scenario.messages[*n].precedence).collect();
    let mut right = precedences.clone();
    right.sort_by(|a, b| b.cmp(a));
    assert_eq!(precedences, right);
}

#[test]
fn a_flash_starts_at_once_beside_a_large_routine() {
    let mut scenario = pair("512kbit", 5);
    scenario.messages.push(message(
        Precedence::Routine,
        10_000_000,
        SubmissionStart::At(seconds(2)),
    ));
    let start =
        SubmissionStart::After { message: 0, stage: MessageStage::Started, delay: seconds(20) };
    scenario.messages.push(message(Precedence::Flash, 1_000_000, start));
    let outcome = run(&scenario).unwrap();
    let [routine, flash] = &outcome.messages[..] else { panic!() };
    assert!(outcome.complete && routine.intact && flash.intact);
    assert_eq!(flash.submitted.unwrap(), routine.started.unwrap() + seconds(20));
    let waited = flash.started.unwrap() - flash.submitted.unwrap();
    assert!(waited < Duration::from_millis(20), "{waited:?}");
    assert!(flash.delivered < routine.delivered);
    assert_ne!(flash.associations, routine.associations);
    // 10 MB at 512 kbit/s take 156 s, 1 MB 16 s more; all headers are 5 %.
    let took = routine.delivered.unwrap() - routine.started.unwrap();
    assert!(took > seconds(172) && took < seconds(200), "{took:?}");
}

#[test]
fn octets_transferred_at_the_end_are_reported() {
    let mut scenario = pair("512kbit", 5);
    scenario.messages.push(message(
        Precedence::Routine,
        10_000_000,
        SubmissionStart::At(seconds(2)),
    ));
    scenario.until = seconds(82);
    let outcome = run(&scenario).unwrap();
    let times = &outcome.messages[0];
    assert!(!outcome.complete && times.delivered.is_none() && times.confirmed.is_none());
    assert_eq!((times.started, times.associations.len()), (times.started_last, 1));
    // Half of it, but for what is not confirmed: 16 checkpoints of 64 KiB.
    let transferred = times.transferred.unwrap();
    assert!((3_700_000..5_000_000).contains(&transferred), "{transferred}");
}
