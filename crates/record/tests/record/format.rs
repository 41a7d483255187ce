//! What a reader makes of a file that is cut off, damaged, of another version or hostile.

use super::{header, made, moment, recorder, records};
use bytes::Bytes;
use node::Input;
use record::format::{FRAME, PREAMBLE};
use record::player::PlayError;
use record::{Decoder, End, FormatError, MAX_RECORD, Player, Record};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A recording of three inputs.
fn sample() -> Vec<u8> {
    let mut recorder = recorder(u64::MAX);
    for n in 1..=3 {
        recorder.input(moment(n), &Input::Tick);
        recorder.step_ended();
    }
    recorder.end(End::Stopped);
    made(&mut recorder)
}

#[test]
fn all_records_come_back_in_whatever_pieces_they_are_read() {
    let octets = sample();
    let (all, rest) = records(&octets);
    assert_eq!(rest, Ok(0));
    assert_eq!(all.len(), 8, "header, three inputs with outputs, end");
    assert!(matches!(&all[7], Record::End(End::Stopped)));
    let mut decoder = Decoder::default();
    let mut count = 0;
    for octet in &octets {
        decoder.push(&[*octet]);
        while decoder.next().unwrap().is_some() {
            count += 1;
        }
    }
    assert_eq!((count, decoder.left()), (8, 0));
}

#[test]
fn a_file_that_was_cut_off_is_read_to_its_last_whole_record() {
    let octets = sample();
    let (all, _) = records(&octets);
    for cut in 0..octets.len() {
        let (some, rest) = records(&octets[..cut]);
        assert!(some.len() < all.len());
        assert!(rest.is_ok_and(|left| left < octets.len()), "cut at {cut}");
    }
}

#[test]
fn an_octet_that_changed_is_noticed() {
    let octets = sample();
    let (all, _) = records(&octets);
    for at in 0..octets.len() {
        let mut wrong = octets.clone();
        wrong[at] ^= 0x10;
        let (some, rest) = records(&wrong);
        // Not even a length that grew looks like a file that was cut off.
        assert!(rest.is_err(), "changed at {at}: {rest:?}");
        assert!(some.len() < all.len(), "changed at {at}");
    }
}

#[test]
fn another_version_and_another_file_are_refused() {
    let mut octets = sample();
    octets[8] = 200;
    assert_eq!(records(&octets).1, Err(FormatError::Version(200)));
    octets[0] = b'Y';
    assert_eq!(records(&octets).1, Err(FormatError::Magic));
    assert_eq!(records(b"").1, Ok(0));
}

#[test]
fn a_length_is_never_believed() {
    let octets = sample();
    let head = |length: u32| {
        let length = length.to_le_bytes();
        let check = xxh3_64_with_seed(&length, 0).to_le_bytes();
        [&octets[..PREAMBLE], &length, &check[..4]].concat()
    };
    assert_eq!(records(&head(u32::MAX)).1, Err(FormatError::Long(0, u64::from(u32::MAX))));
    // One that may be waits for its octets, and takes no memory before they are there.
    let waits = [head(u32::try_from(MAX_RECORD).unwrap()), vec![0; 8]].concat();
    assert_eq!(records(&waits).1, Ok(FRAME));
}

#[test]
fn records_in_a_wrong_place_are_refused() {
    let (all, _) = records(&sample());
    let mut player = Player::new(&header()).unwrap();
    let mut of = |n: usize| {
        let (mut again, _) = records(&sample());
        player.record(again.swap_remove(n))
    };
    assert!(matches!(of(2), Err(PlayError::Order(0))), "outputs before an input");
    assert!(of(1).is_ok());
    assert!(matches!(of(1), Err(PlayError::Order(1))), "an input after an input");
    assert!(of(2).is_ok());
    assert!(of(7).is_ok());
    assert!(matches!(of(3), Err(PlayError::Order(1))), "an input after the end");
    assert_eq!(all.len(), 8);
    // A record in the place of another has wrong checks.
    let octets = sample();
    let first = PREAMBLE + FRAME + u32::from_le_bytes(octets[10..14].try_into().unwrap()) as usize;
    let twice = [&octets[..first], &octets[PREAMBLE..first]].concat();
    assert_eq!(records(&twice).1, Err(FormatError::Length(1)));
}

#[test]
fn a_recording_ends_at_its_limit() {
    let small = sample().len() as u64;
    let mut recorder = recorder(small + 1_000);
    let mut made_before = 0;
    for n in 0..100 {
        let content = Input::RecoveredClock(Bytes::from(vec![7; 100]));
        recorder.input(moment(n), &content);
        recorder.step_ended();
        if recorder.ended().is_some() {
            made_before = n;
            break;
        }
    }
    assert!(made_before > 0);
    assert_eq!(recorder.ended(), Some(&End::Limit(small + 1_000)));
    let octets = made(&mut recorder);
    assert!(octets.len() as u64 <= small + 1_000);
    let (all, rest) = records(&octets);
    assert_eq!(rest, Ok(0));
    assert!(matches!(all.last(), Some(Record::End(End::Limit(_)))));
    recorder.input(moment(200), &Input::Tick);
    assert!(made(&mut recorder).is_empty());
}
