use super::*;
use crate::burst::event::{EventKind, MessageEvent};
use crate::burst::plan::BurstPlan;
use crate::burst::schedule::messages;
use crate::burst::tally::Tally;

#[test]
fn quantiles_are_those_of_the_times() {
    let times = Times::from_micros((1..=1_000).rev().map(|n| n * 1_000));
    let q = times.quantiles();
    assert_eq!((q.count, q.max), (1_000, 1_000.0));
    for (got, expected) in [(q.p50, 500.0), (q.p90, 900.0), (q.p95, 950.0), (q.p99, 990.0)] {
        assert!((got / expected - 1.0).abs() <= 0.001, "{got}, not {expected}");
    }
    assert_eq!(Times::from_micros(std::iter::empty()).quantiles(), Quantiles::default());
    // A day of microseconds, and none at all.
    let q = Times::from_micros([0, 86_400_000_000].into_iter()).quantiles();
    assert_eq!((q.p50, q.max), (0.0, 86_400_000.0));
}

#[test]
fn a_histogram_is_written_to_its_last_time() {
    let times = Times::from_micros((1..=100).map(|n| n * 1_000));
    let mut text = Vec::new();
    times.write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let rows: Vec<Vec<&str>> =
        text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let (last, rows) = rows.split_last().unwrap();
    assert_eq!(last.last(), Some(&"100]"));
    let values: Vec<f64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(values.windows(2).all(|w| w[0] <= w[1]) && values.last() == Some(&100.0), "{values:?}");
    assert_eq!(rows.last().unwrap()[2], "100");
}

/// Rows of these precedences, each with its acceptance, its start and its peer.
fn rows(messages_of: &[(&str, u64, u64, &str)]) -> Vec<MessageRow> {
    let mut text = "to = \"/C=IT/ADMD=NET/S=A\"\n".to_owned();
    for (n, (precedence, ..)) in messages_of.iter().enumerate() {
        text +=
            &format!("[[group]]\nname = \"{n}\"\nprecedence = \"{precedence}\"\nsize = \"1kB\"\n");
    }
    let plan = BurstPlan::read(&text).unwrap();
    let mut tally = Tally::new(&plan, messages(&plan).unwrap(), Vec::new(), 0);
    for (n, (_, accepted, started, peer)) in messages_of.iter().enumerate() {
        let id = format!("m{n}");
        tally.begins(n, accepted - 1, 1);
        tally.accepted(n, accepted + 1, &id, 1);
        for (kind, time_us) in
            [(EventKind::Accepted, *accepted), (EventKind::TransferStarted, *started)]
        {
            tally.event(MessageEvent {
                recipient: None,
                time_us,
                mta: "A".to_owned(),
                kind,
                mts_identifier: id.clone(),
                entry: Some("1".to_owned()),
                peer: Some((*peer).to_owned()),
            });
        }
    }
    tally.rows
}

#[test]
fn those_that_start_while_a_higher_one_waits_are_counted() {
    let rows = rows(&[
        ("flash", 100, 200, "act"),
        ("routine", 10, 99, "act"),
        ("routine", 11, 101, "act"),
        ("priority", 12, 199, "act"),
        ("routine", 13, 201, "act"),
        // To another peer, and of the same or a higher precedence: these overtake nothing.
        ("routine", 14, 150, "other"),
        ("flash", 15, 150, "act"),
        ("override", 16, 150, "act"),
    ]);
    // The Priority waits from 12 to 199: the Routine at 99 and the one at 101 overtook it.
    assert_eq!(overtaken(&rows), [2, 0, 0, 2, 0, 0, 2, 2]);
}

#[test]
fn counts_add_up() {
    let rows = rows(&[("flash", 100, 200, "act"), ("routine", 10, 99, "act")]);
    let all = Counts::from_rows(rows.iter());
    let expected =
        Counts { planned: 2, submitted: 2, accepted: 2, in_transfer: 2, ..Counts::default() };
    assert_eq!(all, expected);
    assert_eq!(precedences(&rows), [Precedence::Flash, Precedence::Routine]);
    assert_eq!(Counts::from_rows(of_precedence(&rows, Precedence::Flash)).planned, 1);
    let stretch = |stretch: Stretch| stretch.duration(&rows[0]);
    assert_eq!(stretch(Stretch::Waiting), Some(100));
    assert_eq!(stretch(Stretch::Acceptance), Some(2));
    assert_eq!((stretch(Stretch::Transfer), stretch(Stretch::Delivery)), (None, None));
}
