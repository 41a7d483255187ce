//! Files whose checks are right, and whose contents nobody made who means well.

use super::{header, moment, records};
use base::rng::Rng;
use base::{Instant, Now, Precedence, Utc};
use node::Input;
use node::operator::{Act, Operator};
use record::format::{MAGIC, framed};
use record::player::{PlayError, Player};
use record::strip::Stripper;
use record::{FORMAT, FormatError, Record};
use testkit::{NAPLES, NOTHING, Pair, record_nodes};

/// A file of these bodies.
fn file<'a>(bodies: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let preamble = [&MAGIC[..], &FORMAT.to_le_bytes()].concat();
    let bodies = (0..).zip(bodies).map(|(number, body)| framed(number, body));
    bodies.fold(preamble, |file, record| [file, record].concat())
}

fn body(record: &Record) -> Vec<u8> {
    postcard::to_allocvec(record).unwrap()
}

fn operate(act: Act) -> Vec<u8> {
    let by = Operator { uid: 5, name: None };
    body(&Record::Input(moment(1), Input::Operate { request: 1, entries: Vec::new(), act, by }))
}

#[test]
fn a_trial_in_a_trial_is_refused_however_deep() {
    let head = body(&Record::Header(Box::new(header())));
    let one = operate(Act::Trial(Box::new(Act::Expire)));
    assert_eq!(records(&file([&head[..], &one])).1, Ok(0));
    let two = operate(Act::Trial(Box::new(Act::Trial(Box::new(Act::Expire)))));
    assert!(matches!(records(&file([&head[..], &two])).1, Err(FormatError::Body(1, _))));
    let at = two.windows(2).position(|pair| pair == [6, 6]).unwrap();
    let deep = [&two[..at], &vec![6; 4 << 20], &two[at..]].concat();
    assert!(matches!(records(&file([&head[..], &deep])).1, Err(FormatError::Body(1, _))));
}

#[test]
fn a_time_that_no_clock_has_is_refused() {
    for now in [
        Now { mono: Instant(u64::MAX), utc: Utc(0) },
        Now { mono: Instant(0), utc: Utc(u64::MAX) },
        Now { mono: Instant(0), utc: Utc(253_402_300_800_000_001) },
    ] {
        let head = body(&Record::Header(Box::new(header())));
        let late = body(&Record::Input(now, Input::Tick));
        assert_eq!(records(&file([&head[..], &late])).1, Err(FormatError::Time(1)));
        let head = record::Header { began: now, ..header() };
        let head = body(&Record::Header(Box::new(head)));
        assert_eq!(records(&file([&head[..]])).1, Err(FormatError::Time(0)));
    }
}

/// A recording of a site that sends a message: the bodies.
fn bodies() -> Vec<Vec<u8>> {
    record_nodes(true);
    let mut pair = Pair::with_reports(5, NOTHING);
    pair.submit(Precedence::Immediate, 500);
    pair.run(5);
    let recording = pair.sites[NAPLES].take_recordings().remove(0);
    record_nodes(false);
    records(&recording).0.iter().map(body).collect()
}

/// The outcome of a file: steps that ran, and why it went no further.
fn play(octets: &[u8]) -> (u64, Option<PlayError>) {
    let mut all = records(octets).0.into_iter();
    let Some(Record::Header(header)) = all.next() else { return (0, None) };
    let (mut player, mut stripper) = match (Player::new(&header), Stripper::new(&header)) {
        (Ok(player), Ok(stripper)) => (player, stripper),
        (player, stripper) => {
            assert_eq!(player.is_err(), stripper.is_err());
            return (0, player.err());
        }
    };
    let again = records(octets).0.into_iter().skip(1);
    for (record, same) in all.zip(again) {
        let stripped = stripper.record(same).err();
        if let Err(error) = player.record(record) {
            // A copy has a panic in words.
            let is_panic = matches!(error, PlayError::Panic(..));
            assert_eq!(stripped, (!is_panic).then(|| error.clone()));
            return (player.steps(), Some(error));
        }
    }
    let _ = player.status(moment(9));
    (player.steps(), None)
}

#[test]
fn wrong_octets_in_a_header_or_a_record_end_in_words() {
    let right = bodies();
    let file_of = |bodies: &[Vec<u8>]| file(bodies.iter().map(Vec::as_slice));
    let (steps, error) = play(&file_of(&right));
    assert!(steps > 5 && error.is_none(), "{steps} steps, {error:?}");
    let mut rng = Rng::new(7);
    let mut below = |n: usize| usize::try_from(rng.below(n as u64)).unwrap();
    for round in 0..400 {
        let mut wrong = right.clone();
        // The header in half of the rounds.
        let which = if round % 2 == 0 { 0 } else { below(wrong.len()) };
        for _ in 0..=below(3) {
            let at = below(wrong[which].len());
            wrong[which][at] =
                [0, 1, 0x7F, 0x80, 0xFF, u8::try_from(below(256)).unwrap()][below(6)];
        }
        play(&file_of(&wrong));
    }
}
