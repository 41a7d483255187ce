//! Networks in virtual time are recorded, and their recordings give the same outputs.

use super::records;
use base::Precedence;
use node::event::Kind;
use record::format::Shown;
use record::player::{Played, Player};
use record::strip::Stripper;
use record::{Decoder, Record};
use testkit::{ACT, NAPLES, NOTHING, Pair, Setup, assert_replays, five_channels, record_nodes};

/// Two sites and their users, with everything that goes wrong: recordings of all processes.
fn played(seed: u64) -> Vec<Vec<u8>> {
    record_nodes(true);
    let mut pair = Pair::with_reports(seed, Setup { node: five_channels, ..NOTHING });
    for precedence in Precedence::ALL {
        pair.submit(precedence, 20_000 + 1_000 * seed as usize);
    }
    pair.run(1);
    pair.cut();
    pair.crash(if seed.is_multiple_of(2) { NAPLES } else { ACT });
    pair.bind_all();
    pair.submit(Precedence::Flash, 300_000);
    pair.run(60);
    assert!(pair.count(ACT, Kind::Received) > 0);
    let recordings = pair.sites.iter_mut().flat_map(|site| site.take_recordings()).collect();
    record_nodes(false);
    recordings
}

#[test]
fn a_replay_equals_the_run() {
    for seed in 0..12 {
        let recordings = played(seed);
        assert!(recordings.len() >= 3, "two sites, and one died: {}", recordings.len());
        let steps: u64 = recordings.iter().map(|recording| assert_replays(recording)).sum();
        assert!(steps > 100);
        for recording in &recordings {
            for secret in [&b"secret"[..], b"password"] {
                let found = recording.windows(secret.len()).any(|window| window == secret);
                assert!(!found, "{}", String::from_utf8_lossy(secret));
            }
        }
    }
}

/// The step at which a recording differs whose inputs are changed so.
fn differs(recording: &[u8], change: impl Fn(u64, Record) -> Option<Record>) -> Option<u64> {
    let mut decoder = Decoder::default();
    decoder.push(recording);
    let Ok(Some(Record::Header(header))) = decoder.next() else { panic!("no header") };
    let mut player = Player::new(&header).unwrap();
    let mut number = 0;
    while let Some(record) = decoder.next().unwrap() {
        number += u64::from(matches!(record, Record::Input(..)));
        let Some(record) = change(number, record) else { continue };
        if let Played::Differs(difference) = player.record(record).unwrap() {
            return Some(difference.step);
        }
    }
    None
}

#[test]
fn a_run_that_was_another_is_noticed() {
    let recording = &played(3)[0];
    assert_eq!(differs(recording, |_, record| Some(record)), None);
    // An hour more at step 40: messages have other times.
    let late = differs(recording, |number, record| match record {
        Record::Input(mut now, input) if number >= 40 => {
            now.utc.0 += 3_600_000_000;
            Some(Record::Input(now, input))
        }
        record => Some(record),
    });
    assert!(late.is_some_and(|step| step >= 40), "{late:?}");
    // The node gave out more than the run.
    let fewer = differs(recording, |number, record| match record {
        Record::Outputs(mut outputs) if number >= 20 && !outputs.is_empty() => {
            outputs.pop();
            Some(Record::Outputs(outputs))
        }
        record => Some(record),
    });
    assert!(fewer.is_some_and(|step| step >= 20), "{fewer:?}");
}

#[test]
fn what_was_overwritten_is_named_where_the_replay_differs() {
    let mut recorder = super::recorder(u64::MAX);
    let bytes = bytes::Bytes::from_static(b"no TPKT at all");
    let association = base::AssociationId(1);
    recorder.input(super::moment(1), &node::Input::Bytes { association, bytes });
    recorder.output(&node::Output::Stopped);
    recorder.step_ended();
    let (all, _) = records(&super::made(&mut recorder));
    assert!(matches!(all[1], Record::Blanked(14)), "{:?}", all[1]);
    let mut player = Player::new(&super::header()).unwrap();
    let played: Vec<Played> =
        all.into_iter().skip(1).take(3).map(|record| player.record(record).unwrap()).collect();
    let Played::Differs(difference) = &played[2] else { panic!("{played:?}") };
    let text = difference.to_string();
    assert!(text.contains("14 octets of the input of step 1 were overwritten"), "{text}");
}

#[test]
fn a_copy_without_contents_is_for_reading_only() {
    record_nodes(true);
    let mut pair = Pair::with_reports(5, NOTHING);
    pair.submit(Precedence::Immediate, 50_000);
    pair.run(30);
    let recording = pair.sites[NAPLES].take_recordings().remove(0);
    record_nodes(false);
    let mut decoder = Decoder::default();
    decoder.push(&recording);
    let Ok(Some(Record::Header(header))) = decoder.next() else { panic!("no header") };
    let mut stripper = Stripper::new(&header).unwrap();
    while let Some(record) = decoder.next().unwrap() {
        stripper.record(record).unwrap();
    }
    let mut copy = Vec::new();
    stripper.take(&mut copy);
    assert!(copy.len() < recording.len() / 2, "{} of {}", copy.len(), recording.len());
    let (all, rest) = records(&copy);
    assert_eq!(rest, Ok(0));
    let Record::Header(stripped) = &all[0] else { panic!("no header") };
    assert!(stripped.stripped && Player::new(stripped).is_err());
    let events: Vec<&str> = all.iter().flat_map(events).collect();
    assert!(events.iter().any(|event| event.starts_with("submitted")), "{events:?}");
    assert!(events.iter().any(|event| event.contains(" entry e")), "{events:?}");
    let inputs = all.iter().filter_map(|record| match record {
        Record::Shown(_, step) => Some(step),
        _ => None,
    });
    let named = |step: &Shown| {
        step.input.contains("(act/") || step.outputs.iter().any(|output| output.contains(" act/"))
    };
    assert!(inputs.clone().any(named), "{inputs:?}");
}

fn events(record: &Record) -> Vec<&str> {
    match record {
        Record::Shown(_, Shown { events, .. }) => events.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}
