//! Refusals, releases, aborts, and waits that end.

use super::*;

#[test]
fn where_there_is_no_room_a_connect_request_is_answered_with_congestion() {
    let config = Config { turn_away: true, ..config(None) };
    let mut lower = Lower::new(&config, Role::Responder);
    // CR, source reference 7, class 0; called selector of somebody else.
    lower.bytes(T0, &[3, 0, 0, 15, 10, 0xE0, 0, 0, 0, 7, 0, 0xC2, 2, b'x', b'y']);
    let Some(LowerOutput::Send(octets)) = lower.poll() else { panic!() };
    // DR to reference 7, reason 1: congestion at TSAP (X.224 13.5.3).
    assert_eq!(octets[5..11], [0x80, 0, 7, 0, 0, 1]);
    assert!(octets.ends_with(b"too many associations"));
}

#[test]
fn releases_that_collide_end_at_both_ends() {
    for acceptor_first in [false, true] {
        let mut pair = Pair::connected([None, None], &[3], DUPLEX);
        let release = || Request::Release { user_data: Bytes::new() };
        let response = || Request::ReleaseResponse { user_data: Bytes::new() };
        pair.a.ask(release());
        pair.b.ask(release());
        pair.run();
        for end in [&mut pair.a, &mut pair.b] {
            assert_eq!(end.indicated(), [Indication::Release { user_data: Bytes::new() }]);
        }
        if acceptor_first {
            pair.b.ask(response());
            pair.run();
            pair.a.ask(response());
        } else {
            pair.a.ask(response());
            pair.run();
            pair.b.ask(response());
        }
        pair.run();
        for end in [&mut pair.a, &mut pair.b] {
            assert_eq!(end.indicated(), [Indication::Released { user_data: Bytes::new() }]);
        }
        assert!(pair.over());
    }
}

#[test]
fn a_user_aborts_inside_an_ssdu() {
    let mut pair = Pair::connected([Some(128), None], &[11], RTSE);
    pair.a_then_b(Request::ActivityStart { activity: activity() });
    pair.a.ask(Request::Data { bytes: bytes(&[9; 700]), last: false });
    pair.a.ask(Request::Abort { user_data: bytes(b"ABRT") });
    pair.run();
    assert_eq!(
        pair.b.indicated().last(),
        Some(&Indication::UserAbort { user_data: bytes(b"ABRT") })
    );
    assert!(pair.over());
    assert_eq!(pair.a.indicated(), []);
}

#[test]
fn refusals() {
    // By the user, with data.
    let mut pair = Pair::new([None, None], &[4]);
    pair.a.ask(connect(RTSE, b"hello"));
    pair.run();
    pair.b.indicated();
    let refuse = Refuse { reason: 2, user_data: bytes(b"CPR") };
    assert_eq!(pair.b_then_a(Request::Refuse(refuse.clone())), [Indication::Refused(refuse)]);
    assert!(pair.over());

    // By the session provider: another selector.
    let mut pair = Pair::new([None, None], &[4]);
    let Request::Connect(mut request) = connect(RTSE, b"hello") else { unreachable!() };
    request.called_selector = Some(bytes(b"T"));
    pair.a.ask(Request::Connect(request));
    pair.run();
    let refuse = Refuse { reason: 129, user_data: Bytes::new() };
    assert_eq!(pair.a.indicated(), [Indication::Refused(refuse)]);
    assert!(pair.a.lower.refusal_detail().unwrap().contains("selector unknown"));
    assert_eq!(pair.b.indicated(), []);
    assert!(pair.over());

    // By the transport layer: another selector there.
    let mut pair = Pair::new([None, None], &[4]);
    let mut other = config(None);
    other.local.transport = Some(bytes(b"592"));
    pair.b.lower = Lower::new(&other, Role::Responder);
    pair.a.ask(connect(RTSE, b"hello"));
    pair.run();
    let refuse = Refuse { reason: 129, user_data: Bytes::new() };
    assert_eq!(pair.a.indicated(), [Indication::Refused(refuse)]);
    assert!(pair.a.lower.refusal_detail().unwrap().contains("address unknown"));
    assert!(pair.over());
}

#[test]
fn our_own_mistakes_are_errors_not_panics() {
    let mut pair = Pair::new([None, None], &[99]);
    assert_eq!(pair.a.refused(data(b"early")).why, "state Sta01");
    assert_eq!(pair.a.refused(connect(RTSE | DUPLEX, b"")).clause, "X.225 7.4.2");
    let mut pair = Pair::rtse();
    assert_eq!(pair.b.refused(data(b"no token")).request, "S-DATA.request");
    assert_eq!(pair.a.refused(Request::MinorSync).why, "state Sta713");
    assert_eq!(pair.a.refused(Request::ActivityEndResponse).clause, "X.225 A.4.1.1");
    let long = Request::ActivityStart { activity: bytes(&[0; 7]) };
    assert_eq!(pair.a.refused(long).why, "activity identifier out of range");
}

#[test]
fn a_lost_connection_is_indicated_once() {
    let mut pair = Pair::rtse();
    pair.b.lower.eof(T0);
    pair.b.drain();
    assert!(matches!(&pair.b.indicated()[..], [Indication::ProviderAbort { .. }]) && pair.b.closed);
    pair.b.lower.eof(T0);
    pair.b.receive(&[1, 2, 3]);
    assert_eq!(pair.b.indicated(), []);
}

#[test]
fn every_wait_for_the_peer_ends() {
    // TCP is there, nothing comes.
    let mut silent = End::new(Role::Responder, None);
    assert_eq!(silent.lower.deadline(), Some(Instant(0)), "asks for a call at once");
    silent.lower.tick(T0);
    assert_eq!(silent.lower.deadline(), Some(T0 + SETUP));
    silent.lower.tick(T0 + SETUP);
    silent.drain();
    assert!(silent.closed && silent.indicated.is_empty());

    // No CC.
    let mut caller = End::new(Role::Initiator, None);
    assert_eq!(caller.lower.deadline(), None);
    caller.ask(connect(RTSE, b""));
    caller.lower.tick(T0 + SETUP);
    caller.drain();
    assert!(matches!(&caller.indicated[..], [Indication::ProviderAbort { .. }]) && caller.closed);

    // CC, but no AC: an abort, and a bounded wait for its effect.
    let mut caller = End::new(Role::Initiator, None);
    caller.ask(connect(RTSE, b""));
    caller.receive(&[3, 0, 0, 11, 6, 0xD0, 0, 1, 0, 2, 0]);
    caller.sent();
    caller.lower.tick(T0 + SETUP);
    caller.drain();
    assert_eq!(caller.sent(), [3, 0, 0, 12, 2, 0xF0, 0x80, 0x19, 3, 0x11, 1, 9]);
    assert!(matches!(&caller.indicated[..], [Indication::ProviderAbort { .. }]) && !caller.closed);
    caller.lower.tick(T0 + SETUP + SETUP);
    caller.drain();
    assert!(caller.closed);

    // CR, but no CN.
    let mut called = End::new(Role::Responder, None);
    called.receive(CR);
    assert_eq!(called.lower.deadline(), Some(T0 + SETUP));
    called.lower.tick(T0 + SETUP);
    called.drain();
    assert!(called.closed && called.indicated.is_empty());
}
