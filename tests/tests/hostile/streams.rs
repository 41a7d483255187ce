//! Whole associations: cut at every octet, replayed, in another order, slow, half open.

use super::case::{Case, Encounter, Hostile, play};
use super::octets::*;
use fuzz::targets::node::{self, Site};
use std::time::Duration;

/// What a good peer sent that transferred one message: CR, CN, the activity, FN; TPKT by TPKT.
fn recorded() -> Vec<Vec<u8>> {
    let mut peer = node::peer(&[fuzz::seeds::p1::message(43)]);
    let answer = Site::new().converse(0, &mut peer);
    assert_eq!(peer.count("TransferConfirmed"), 1, "{:?}", peer.observed);
    super::packets(&answer)
}

pub(super) fn cases() -> Vec<Case> {
    let recorded = recorded();
    let all = || recorded.clone();
    let slowly = |name: &str, pause: u64| {
        Case::peer(name).trickles(recorded.concat(), Duration::from_secs(pause))
    };
    let mut swapped = all();
    swapped.swap(2, 3);
    let mut doubled = all();
    doubled.insert(3, recorded[3].clone());
    let mut reversed = all();
    reversed.reverse();
    let at = |name: &str, n: usize| {
        let mut without = all();
        without.remove(n);
        Case::peer(name).sends_all(without)
    };
    let mut twice = all();
    twice.insert(2, recorded[1].clone());
    vec![
        Case::peer("stream: replayed behind itself")
            .sends_all(all())
            .sends_all(all())
            .must("open, AEA(1), DN RLRE, ER(2), closed", "received:"),
        Case::peer("stream: all at once")
            .sends(recorded.concat())
            .must("CC, AB(protocol error), closed", "unexpected As in Sta08 (X.225 A.4.1.2)"),
        Case::peer("stream: the bind a second time")
            .sends_all(twice)
            .must("open, AB(protocol error), closed", "unexpected Cn in Sta713 (X.225 A.4.1.2)"),
        Case::peer("stream: data before the activity")
            .sends_all(swapped)
            .must("open, AB(user) ARU ABRT(0) RTAB(4), closed", "Rttr in Sta11 (X.228 7.7.4)"),
        Case::peer("stream: data twice")
            .sends_all(doubled)
            .must("open, AB(user) ARU ABRT(0) RTAB(1), closed", "EXTERNAL: trailing octets"),
        Case::peer("stream: backwards")
            .sends_all(reversed)
            .must("ER(2), closed", "Dt in Closed (X.224 6.22)"),
        at("stream: without the CR", 0).must("ER(2), closed", "Dt in Closed (X.224 6.22)"),
        at("stream: without the bind", 1)
            .must("CC, closed", "As where a CONNECT is due (X.225 A.4.1.2)"),
        at("stream: without the activity's start", 2)
            .must("open, AB(user) ARU ABRT(0) RTAB(4), closed", "Rttr in Sta11 (X.228 7.7.4)"),
        at("stream: without the data", 3).must(
            "open, AB(user) ARU ABRT(0) RTAB(1), closed",
            "the activity ended within its EXTERNAL (X.228 7.3.5)",
        ),
        Case::peer("slow: a CR, an octet a second")
            .trickles(cr(), Duration::from_secs(1))
            .must("closed", "a CR did not come within the setup timeout (X.224 6.5)"),
        slowly("slow: a whole association, an octet a second", 1)
            .must("closed", "a CR did not come within the setup timeout (X.224 6.5)"),
        Case::open("slow: a message, an octet in ten seconds")
            .trickles(transfer(&message(&envelope(), b"content")).concat(), Duration::from_secs(10))
            .must(
                "open, AB(user) ARU ABRT(1), closed",
                "transport: a TPKT or TSDU begun by the peer did not end within",
            ),
        Case::peer("half open: a connection and silence")
            .waits(120)
            .must("closed", "a CR did not come within the setup timeout (X.224 6.5)"),
        Case::peer("half open: a CR and silence")
            .sends(cr())
            .waits(120)
            .must("CC, closed", "CONNECT did not come within the setup timeout (X.225 6.6)"),
        Case::peer("half open: half a CN and silence")
            .sends(cr())
            .sends(recorded[1][..40].to_vec())
            .waits(120)
            .must("CC, closed", "CONNECT did not come within the setup timeout (X.225 6.6)"),
        Case::peer("half open: CRs that go on coming")
            .sends_all(vec![cr(); 50])
            .waits(120)
            .must("CC, ER(2), closed", "Cr in Open (X.224 6.22)"),
    ]
}

#[test]
fn associations_out_of_order_and_slow() {
    play(&cases());
}

/// Every prefix of an association, on a connection each, then the end of the connection or silence.
fn every_prefix(end: impl Fn(&mut Encounter)) {
    let stream = recorded().concat();
    let mut encounter = Encounter::new(Hostile::Peer);
    for length in 0..=stream.len() {
        encounter.accept(0);
        encounter.send_by_packet(&stream[..length]);
        end(&mut encounter);
    }
    // From the octet on that ended the activity the message was here, and once only.
    assert_eq!(encounter.taken("THERE.9.17"), 1, "{:?}", encounter.site.records());
    encounter.must_go_on();
}

#[test]
fn every_prefix_of_an_association_then_the_end() {
    every_prefix(|encounter| encounter.hang_up());
}

#[test]
fn every_prefix_of_an_association_then_silence() {
    every_prefix(|encounter| {
        encounter.site.wait(Duration::from_secs(31));
        if !encounter.is_closed() {
            // Bound: that peer may be silent as long as it likes.
            encounter.hang_up();
        }
    });
}

/// Every prefix of a called peer's answers, in a call each: the message stays ours until the whole
/// of them is there.
fn every_prefix_of_the_answers(end: impl Fn(&mut Encounter)) {
    let answers = super::called::good();
    let stream = answers.concat();
    for length in 0..stream.len() {
        let mut encounter = Encounter::new(Hostile::Called);
        encounter.send_by_packet(&stream[..length]);
        end(&mut encounter);
        assert_eq!(encounter.site.waiting(), 1, "after {length} of {} octets", stream.len());
        if length % 40 == 0 {
            encounter.must_go_on();
        }
    }
}

#[test]
fn every_prefix_of_the_answers_then_the_end() {
    every_prefix_of_the_answers(|encounter| encounter.hang_up());
}

#[test]
fn every_prefix_of_the_answers_then_silence() {
    every_prefix_of_the_answers(|encounter| {
        // The timer of 30 s begins anew at the first look at what the peer's transport took, a
        // quarter of it later; behind it comes the wait for the end of an abort.
        encounter.site.wait(Duration::from_secs(60));
        assert!(encounter.is_closed(), "silence is waited for without end: {}", encounter.logged());
    });
}

/// A recorded association again, on connections of its own: the message is taken once.
#[test]
fn a_replayed_association_is_taken_once() {
    let stream = recorded();
    let mut encounter = Encounter::new(Hostile::Peer);
    for _ in 0..20 {
        encounter.accept(0);
        for packet in &stream {
            encounter.send(packet);
        }
        encounter.hang_up();
    }
    assert_eq!(encounter.taken("THERE.9.17"), 1, "{:?}", encounter.site.records());
    let dropped = encounter.site.events();
    let dropped = dropped.filter(|e| e.kind == ::node::event::Kind::DuplicateDropped).count();
    assert_eq!(dropped, 19, "each repetition is logged as one");
    encounter.must_go_on();
}

/// A thousand connections of both kinds that never bind: after the bind timeout none is left, and
/// a good peer's association, opened before, works all the time.
#[test]
fn a_thousand_half_open_connections() {
    let mut encounter = Encounter::new(Hostile::Peer);
    let opened: Vec<_> = (0..1_000)
        .map(|n| {
            let association = encounter.accept(n % 2);
            if n % 3 > 0 {
                encounter.send(&cr());
            }
            association
        })
        .collect();
    let refused = opened.iter().filter(|id| encounter.site.is_closed(**id)).count();
    assert!(refused > 0, "a thousand are not too many");
    encounter.site.wait(Duration::from_secs(61));
    let left = opened.iter().filter(|id| !encounter.site.is_closed(**id)).count();
    assert_eq!(left, 0, "half-open connections are left");
    encounter.must_go_on();
}
