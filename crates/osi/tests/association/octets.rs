//! Any size, any cut and damaged octets.

use crate::pair::{A, ARGUMENT, B, Notified, Pair, p1, rtse, unit};
use crate::transfer;
use bytes::Bytes;
use osi::api::{Indication, Input, Payload, Request};
use proptest::prelude::*;
use std::time::Duration;

/// 200 MB of content that exists nowhere: what is asked for and what is sent stays small.
#[test]
fn a_large_transfer_needs_no_memory() {
    for checkpoint in [0, 64] {
        let config = rtse(p1(), |p| p.checkpoint_size = checkpoint);
        let mut pair = Pair::open(config.clone(), config);
        let unit = unit(200_000_000);
        let largest = large(&mut pair, &unit);
        assert!(largest <= 70_000, "an output of {largest} octets");
        assert!(pair.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)));
        assert_eq!(pair.sides[B].received, unit.length());
    }
}

/// Carries a unit without recording it: every output goes over as it is made. The largest is given.
fn large(pair: &mut Pair, unit: &Payload) -> usize {
    use osi::api::Output;
    let (now, mut largest) = (pair.now, 0);
    let zeros = Bytes::from(vec![0; 64 * 1024]);
    let [a, b] = &mut pair.sides;
    a.stack.handle(now, Input::Request(transfer(unit.clone())));
    let mut received = 0;
    loop {
        let mut idle = true;
        while let Some(output) = a.stack.poll() {
            idle = false;
            match output {
                Output::Send(bytes) => {
                    largest = largest.max(bytes.len());
                    b.stack.handle(now, Input::Bytes(&bytes));
                }
                Output::Indication(Indication::NeedContent { max, .. }) => {
                    let content = zeros.slice(..max);
                    a.stack.handle(now, Input::Request(Request::Content(content)));
                }
                Output::Indication(i) => a.indicated.push(Notified::Indication(i)),
                Output::Close => panic!("closed"),
            }
        }
        while let Some(output) = b.stack.poll() {
            idle = false;
            let answer = match output {
                Output::Send(bytes) => {
                    a.stack.handle(now, Input::Bytes(&bytes));
                    None
                }
                Output::Indication(Indication::Data { bytes, .. }) => {
                    largest = largest.max(bytes.len());
                    received += bytes.len() as u64;
                    None
                }
                Output::Indication(Indication::Checkpoint { octets }) => {
                    Some(Request::Stored { octets })
                }
                Output::Indication(Indication::TransferEnd) => Some(Request::TransferSecured),
                Output::Indication(_) => None,
                Output::Close => panic!("closed"),
            };
            if let Some(request) = answer {
                b.stack.handle(now, Input::Request(request));
            }
        }
        if idle {
            break;
        }
    }
    b.received = received;
    largest
}

/// The octets of a whole association, replayed to one end with every delivery cut once more at
/// every place, give the same indications.
#[test]
fn every_cut_gives_the_same_indications() {
    for indefinite_lengths in [false, true] {
        let config = rtse(p1(), |p| {
            p.checkpoint_size = 1;
            p.indefinite_lengths = indefinite_lengths;
        });
        let mut pair = Pair::new(config.clone(), config.clone());
        pair.record = true;
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run();
        pair.ask(A, transfer(unit(1_500)));
        pair.run();
        pair.ask(B, Request::TurnPlease(2));
        pair.run();
        pair.ask(A, Request::Release);
        pair.run();
        let transcript = std::mem::take(&mut pair.transcript);
        let whole = format!("{:?}", pair.sides[B].indicated);
        assert!(whole.contains("Released"), "{whole}");
        let total: usize = transcript.iter().filter(|(s, _)| *s == B).map(|(_, b)| b.len()).sum();
        for cut in 1..total {
            assert_eq!(replay(&config, &transcript, cut), whole, "cut at {cut}");
        }
    }
}

/// Replays what was delivered to the responder, one delivery cut at octet `cut` of all.
fn replay(config: &osi::api::Config, transcript: &[(usize, Vec<u8>)], cut: usize) -> String {
    let mut pair = Pair::new(config.clone(), config.clone());
    let mut at = 0;
    for (_, bytes) in transcript.iter().filter(|(s, _)| *s == B) {
        let place = cut.checked_sub(at).filter(|c| *c < bytes.len()).unwrap_or(0);
        let (first, second) = bytes.split_at(place);
        for piece in [first, second] {
            if !piece.is_empty() {
                pair.deliver_to(B, piece);
            }
        }
        at += bytes.len();
    }
    format!("{:?}", pair.sides[B].indicated)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An association whose octets are changed somewhere ends or goes on; it never panics, and
    /// the indicated data of a confirmed unit are that unit.
    #[test]
    fn damaged_octets_do_no_harm(at in 0usize..4_000, value: u8, role: bool) {
        let config = rtse(p1(), |p| p.checkpoint_size = 1);
        let mut pair = Pair::new(config.clone(), config);
        pair.damage = Some((usize::from(role), at, value));
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run();
        if pair.sides[A].has_indication(|i| matches!(i, Indication::Opened { .. })) {
            pair.ask(A, transfer(unit(2_000)));
            pair.run();
        }
        pair.run_for(Duration::from_secs(1_000));
    }

    #[test]
    fn garbage_is_answered(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..8),
        role: bool,
    ) {
        let mut pair = Pair::new(p1(), p1());
        let side = usize::from(role);
        for piece in &pieces {
            pair.deliver_to(side, piece);
        }
        pair.run_for(Duration::from_secs(1_000));
        // An initiator that was asked nothing has nothing to wait for.
        prop_assert!(pair.sides[side].closed || side == A || pieces.concat().is_empty());
    }
}
