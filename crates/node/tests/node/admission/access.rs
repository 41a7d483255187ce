//! Which connections and binds are accepted, the answers to refused ones, and their log lines; limits,
//! and the recovery from them. In virtual time.

use base::{AssociationId, Precedence};
use bytes::Bytes;
use node::ListenerId;
use node::config::{Channel, Limits, Listener, ListenerService};
use node::event::Kind;
use osi::api::{Payload, Request};
use p1::bind::{Credentials, MtaAuthentication};
use p1::names::{ORAddress, ORName};
use p1::p3::{MtsBind, ObjectName};
use std::collections::BTreeSet;
use std::time::Duration;
use testkit::bench::{ACT_FLASH, ACT_ROUTINE, Outcome, P3, ROME, two_peers};
use testkit::{Bench, Events};

/// CR of class 0, source reference 7.
const CR: [u8; 11] = [3, 0, 0, 11, 6, 0xE0, 0, 0, 0, 7, 0];
/// DR to reference 7, reason 1: congestion at TSAP (X.224 13.5.3), with its text.
const CONGESTION: &[u8] =
    b"\x03\x00\x00\x22\x1d\x80\x00\x07\x00\x00\x01\xe0\x15too many associations";
/// An address that the configuration does not name.
const STRANGER: &str = "203.0.113.9";
/// The address of peer `act`.
const ACT: &str = "192.0.2.10";

fn limits() -> Limits {
    Limits { half_open: 8, half_open_per_address: 4, ..Limits::default() }
}

fn authentication_error() -> Outcome {
    Outcome::Refused("authentication-error".to_owned())
}

fn busy() -> Outcome {
    Outcome::Refused("busy".to_owned())
}

// ----- security-context -------------------------------------------------------------------------

#[test]
fn a_security_context_is_refused_where_no_clearance_could_admit_it() {
    for (password, expected) in
        [("theirs", "unacceptable-security-context"), ("wrong", "authentication-error")]
    {
        let refused = || Outcome::Refused(expected.to_owned());
        let mut bench = two_peers(limits(), |_| {});
        let mut bind = MtaAuthentication::new("MTA-ACT", Credentials::simple(password));
        // [2] SET of a security label: a SET with a policy.
        bind.security_context = Some(Bytes::from_static(&[0xa2, 5, 0x31, 3, 6, 1, 42]));
        let id = bench.mta_with(ACT_FLASH, ACT, bind);
        assert_eq!(bench.outcome(id), refused());
        let user = bench.connect(P3, STRANGER);
        let name = ORName::from(testkit::bench::user_address("OPS").parse::<ORAddress>().unwrap());
        let password = if password == "theirs" { "secret" } else { "wrong" };
        let mut bind = MtsBind::new(ObjectName::UserAgent(name), Credentials::simple(password));
        bind.security_context = Some(Bytes::from_static(&[0xa3, 5, 0x31, 3, 6, 1, 42]));
        bench.user_with(user, &bind);
        assert_eq!(bench.outcome(user), refused());
        let log = bench.details(Kind::AssociationRefused);
        assert_eq!(log.len(), 2);
        let named = log.iter().filter(|line| line.contains("no clearance is configured")).count();
        assert_eq!(named, if password == "secret" { 2 } else { 0 }, "{log:?}");
    }
}

// ----- limits -----------------------------------------------------------------------------------

#[test]
fn a_new_connection_replaces_the_oldest_half_open_one_of_its_address() {
    let mut bench = two_peers(limits(), |_| {});
    let open = bench.mta(ACT_FLASH, ACT, "MTA-ACT", "theirs");
    let ids: Vec<AssociationId> = (0..10).map(|_| bench.connect(P3, STRANGER)).collect();
    assert_eq!(bench.dropped, ids[..6].iter().copied().collect());
    assert_eq!(bench.node.holds().associations, 5);
    bench.user_on(ids[9], "OPS", "secret");
    assert_eq!((bench.outcome(ids[9]), bench.outcome(open)), (Outcome::Open, Outcome::Open));
    let refusals = bench.details(Kind::AssociationRefused);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert!(refusals[0].contains("limits.half_open_per_address = 4"), "{refusals:?}");
}

#[test]
fn strangers_do_not_keep_a_configured_address_out() {
    let mut bench = two_peers(limits(), |_| {});
    // These bind late, but come from a configured address.
    let act: Vec<_> = (0..2).map(|_| bench.connect(ACT_FLASH, ACT)).collect();
    for n in 0..1_000u32 {
        bench.connect(ACT_FLASH, &format!("203.0.113.{}", n % 250));
    }
    assert!(act.iter().all(|id| !bench.dropped.contains(id)));
    assert_eq!(bench.node.holds().associations, 8);
    // Two more: connections of strangers are dropped for them.
    let more: Vec<_> = (0..2).map(|_| bench.mta(ACT_FLASH, ACT, "MTA-ACT", "theirs")).collect();
    assert!(more.iter().all(|id| bench.outcome(*id) == Outcome::Open));
    for id in act {
        assert_eq!(bench.send(id, &CR)[5], 0xd0, "a CC");
    }
}

#[test]
fn a_connection_whose_password_is_being_checked_is_not_dropped_for_another() {
    let mut bench = two_peers(limits(), |_| {});
    bench.verifies = false;
    let checked: Vec<_> = (0..4).map(|_| bench.user(STRANGER, "OPS", "secret")).collect();
    assert_eq!(bench.passwords.len(), 2, "two hashes at once");
    let late = bench.connect(P3, STRANGER);
    assert!(bench.dropped.is_empty());
    assert_eq!(bench.send(late, &CR), CONGESTION);
    let refusals = bench.details(Kind::AssociationRefused).join("\n");
    assert!(
        refusals.contains("203.0.113.9: congestion (X.224 6.6)")
            && refusals.contains("limits.half_open_per_address"),
        "{refusals}"
    );
    let elsewhere = bench.connect(P3, "203.0.113.10");
    assert_eq!(bench.send(elsewhere, &CR)[5], 0xd0, "a CC");
    bench.verifies = true;
    bench.settle();
    assert!(checked.iter().all(|id| bench.outcome(*id) == Outcome::Open));
    // The refused connection ends by its own timer.
    assert_eq!(bench.node.holds().associations, 6);
    bench.pass(Duration::from_secs(6));
    assert!(bench.closed.contains(&late));
}

#[test]
fn a_quarter_of_the_half_open_connections_is_reserved_for_configured_addresses() {
    let mut bench = two_peers(limits(), |_| {});
    bench.verifies = false;
    // None of them can be dropped: each waits for its password hash.
    for n in 0..6 {
        bench.user(&format!("203.0.113.{n}"), "OPS", "secret");
    }
    let late = bench.connect(ACT_FLASH, "203.0.113.99");
    assert_eq!(bench.send(late, &CR), CONGESTION);
    assert!(
        bench.details(Kind::AssociationRefused)[0].contains("limits.half_open = 8"),
        "{:?}",
        bench.details(Kind::AssociationRefused)
    );
    for _ in 0..2 {
        let act = bench.connect(ACT_FLASH, ACT);
        assert_eq!(bench.send(act, &CR)[5], 0xd0, "a CC");
    }
    assert!(bench.dropped.is_empty());
}

#[test]
fn a_connection_of_the_address_with_the_most_is_dropped() {
    let mut bench = two_peers(limits(), |_| {});
    let honest = bench.connect(P3, "203.0.113.1");
    let flood: Vec<_> = (0..4).map(|_| bench.connect(P3, STRANGER)).collect();
    let also = bench.connect(P3, "203.0.113.2");
    bench.connect(P3, "203.0.113.3");
    assert_eq!(bench.dropped, [flood[0]].into());
    for id in [honest, also] {
        bench.user_on(id, "OPS", "secret");
        assert_eq!(bench.outcome(id), Outcome::Open);
    }
}

#[test]
fn connections_of_one_address_are_limited_before_and_after_the_bind() {
    let mut bench = two_peers(Limits { associations_per_address: 3, ..limits() }, |_| {});
    for _ in 0..3 {
        let id = bench.user(STRANGER, "OPS", "secret");
        assert_eq!(bench.outcome(id), Outcome::Open);
    }
    let late = bench.connect(ACT_FLASH, STRANGER);
    assert_eq!(bench.send(late, &CR), CONGESTION);
    assert!(
        bench.details(Kind::AssociationRefused)[0].contains("limits.associations_per_address = 3")
    );
    // Addresses of one /64 count as one.
    for n in 1..=3 {
        bench.user(&format!("2001:db8::{n}"), "OPS", "secret");
    }
    let late = bench.connect(P3, "2001:db8::ffff:1");
    assert_eq!(bench.send(late, &CR), CONGESTION);
    let other = bench.user("2001:db8:0:1::1", "OPS", "secret");
    assert_eq!(bench.outcome(other), Outcome::Open);
}

#[test]
fn a_bind_beyond_the_limit_of_channel_or_peer_is_refused_as_busy() {
    let limits = Limits { associations_per_channel: 2, associations_per_peer: 3, ..limits() };
    let mut bench = two_peers(limits, |_| {});
    let mut bind = |listener| {
        let id = bench.mta(listener, ACT, "MTA-ACT", "theirs");
        bench.outcome(id)
    };
    let outcomes = [ACT_FLASH, ACT_FLASH, ACT_FLASH, ACT_ROUTINE, ACT_ROUTINE].map(&mut bind);
    assert_eq!(outcomes, [Outcome::Open, Outcome::Open, busy(), Outcome::Open, busy()]);
    let refusals = bench.details(Kind::AssociationRefused).join("\n");
    assert!(refusals.contains("bind from 192.0.2.10: busy (X.411 12.1.1)"), "{refusals}");
    assert!(refusals.contains("limits.associations_per_channel = 2"), "{refusals}");
    assert!(refusals.contains("limits.associations_per_peer = 3"), "{refusals}");
    let rome = bench.mta(ROME, "198.51.100.7", "MTA-ROME", "theirs");
    assert_eq!(bench.outcome(rome), Outcome::Open, "another peer");
}

/// Peer `act` with a channel and a listener for each of these levels.
fn levelled(levels: &[Precedence], limits: Limits) -> Bench {
    two_peers(limits, |config| {
        config.peers.truncate(1);
        let act = &mut config.peers[0];
        let model = act.channels[0].clone();
        act.channels = (0..)
            .zip(levels)
            .map(|(index, level)| Channel {
                index,
                name: format!("{level}-{index}"),
                precedences: vec![*level],
                ..model.clone()
            })
            .collect();
        let peer = act.id();
        config.listeners = (0..levels.len() as u32)
            .map(|n| Listener {
                id: ListenerId(10 + n),
                service: ListenerService::P1 { peer, channel: n },
            })
            .collect();
    })
}

#[test]
fn four_low_channels_do_not_keep_the_higher_ones_out() {
    use Precedence::{Deferred, Flash, Immediate, Override, Priority, Routine};
    for low in [[Deferred, Routine, Priority, Immediate], [Routine; 4]] {
        let levels: Vec<Precedence> = low.into_iter().chain([Flash, Override]).collect();
        let mut bench = levelled(&levels, Limits { associations: 4_096, ..Limits::default() });
        let mut open = [0; 6];
        for n in 0..4 {
            for _ in 0..64 {
                let id = bench.mta(ListenerId(10 + n), ACT, "MTA-ACT", "theirs");
                open[n as usize] += usize::from(bench.outcome(id) == Outcome::Open);
            }
        }
        for (n, level) in [(4, Flash), (5, Override)] {
            for _ in 0..32 {
                let id = bench.mta(ListenerId(10 + n), ACT, "MTA-ACT", "theirs");
                assert_eq!(bench.outcome(id), Outcome::Open, "{level}, beside {open:?}");
            }
        }
        assert_eq!(open.iter().sum::<usize>(), 256 - 64, "{open:?}");
        assert!(
            bench.details(Kind::AssociationRefused)[0].contains("kept for higher ones"),
            "{:?}",
            bench.details(Kind::AssociationRefused)
        );
    }
}

#[test]
fn low_channels_do_not_take_all_associations_of_the_mta() {
    let levels = [Precedence::Routine, Precedence::Flash];
    let limits = Limits { associations: 64, ..Limits::default() };
    let mut bench = levelled(&levels, limits);
    let mut open = 0;
    for _ in 0..64 {
        let id = bench.mta(ListenerId(10), ACT, "MTA-ACT", "theirs");
        open += usize::from(bench.outcome(id) == Outcome::Open);
    }
    assert_eq!(open, 60, "a sixteenth is reserved");
    for _ in 0..4 {
        let id = bench.mta(ListenerId(11), ACT, "MTA-ACT", "theirs");
        assert_eq!(bench.outcome(id), Outcome::Open);
    }
    let id = bench.mta(ListenerId(11), ACT, "MTA-ACT", "theirs");
    assert!(matches!(bench.outcome(id), Outcome::RefusedBelow(_)));
}

#[test]
fn half_open_connections_do_not_count_for_a_channel_nor_users_for_peers() {
    let limits = Limits { associations: 8, associations_per_channel: 2, ..limits() };
    let mut bench = two_peers(limits, |_| {});
    for n in 0..6 {
        let id = bench.user(&format!("203.0.113.{n}"), "OPS", "secret");
        assert_eq!(bench.outcome(id), Outcome::Open);
    }
    let late = bench.connect(P3, STRANGER);
    assert_eq!(bench.send(late, &CR), CONGESTION);
    assert!(bench.details(Kind::AssociationRefused)[0].contains("limits.associations = 8"));
    for _ in 0..20 {
        bench.connect(ACT_FLASH, STRANGER);
    }
    for _ in 0..2 {
        let id = bench.mta(ACT_FLASH, "192.0.2.77", "MTA-ACT", "theirs");
        assert_eq!(bench.outcome(id), Outcome::Open);
    }
    let late = bench.connect(ACT_FLASH, STRANGER);
    assert_eq!(bench.send(late, &CR), CONGESTION, "all associations are bound");
}

#[test]
fn half_open_connections_of_strangers_do_not_keep_a_user_out() {
    let mut bench = two_peers(Limits { associations: 100, ..Limits::default() }, |_| {});
    let silent: Vec<_> = (0..75).map(|_| bench.connect(P3, "203.0.113.2")).collect();
    let ops = bench.user(STRANGER, "OPS", "secret");
    assert_eq!(bench.outcome(ops), Outcome::Open);
    assert_eq!(bench.dropped, [silent[0]].into());
    // Where users have reached their limit, only a half-open connection of P3 is dropped for a user.
    let mut bench = two_peers(Limits { associations: 8, ..limits() }, |_| {});
    let peers: Vec<_> = (0..2).map(|_| bench.connect(ACT_FLASH, "203.0.113.2")).collect();
    let silent = bench.connect(P3, "203.0.113.3");
    for n in 4..9 {
        bench.user(&format!("203.0.113.{n}"), "OPS", "secret");
    }
    let ops = bench.user(STRANGER, "OPS", "secret");
    assert_eq!((bench.outcome(ops), &bench.dropped), (Outcome::Open, &[silent].into()));
    // No connection is dropped for one that is refused.
    let late = bench.connect(P3, "203.0.113.2");
    assert_eq!(bench.send(late, &CR), CONGESTION);
    assert!(peers.iter().all(|id| !bench.dropped.contains(id)));
}

#[test]
fn associations_of_one_user_are_limited() {
    let mut bench = two_peers(Limits { associations_per_user: 2, ..limits() }, |_| {});
    let [one, two, three] = ["203.0.113.1"; 3].map(|from| bench.user(from, "OPS", "secret"));
    assert_eq!([one, two].map(|id| bench.outcome(id)), [Outcome::Open, Outcome::Open]);
    assert_eq!(bench.outcome(three), busy());
    assert!(
        bench.details(Kind::AssociationRefused)[0].contains("limits.associations_per_user = 2"),
        "{:?}",
        bench.details(Kind::AssociationRefused)
    );
    let other = bench.user(STRANGER, "OPS2", "secret");
    assert_eq!(bench.outcome(other), Outcome::Open);
    bench.close(one);
    let again = bench.user(STRANGER, "OPS", "secret");
    assert_eq!(bench.outcome(again), Outcome::Open);
}

#[test]
fn a_peer_is_not_counted_with_strangers_in_its_ipv6_prefix() {
    let mut bench = two_peers(limits(), |_| {});
    // A configured address that binds late. Its connection is older than those of all strangers.
    let act = bench.connect(ACT_FLASH, "2001:db8:0:9::10");
    for n in 0..20 {
        bench.connect(ACT_FLASH, &format!("2001:db8:0:9::{:x}", 0x100 + n));
    }
    assert!(!bench.dropped.contains(&act) && bench.dropped.len() == 16);
    assert_eq!(bench.send(act, &CR)[5], 0xd0, "a CC");
}

#[test]
fn a_small_half_open_limit_still_reserves_some_for_configured_addresses() {
    for (half_open, strangers) in [(1, 1), (2, 1), (5, 4), (10, 8)] {
        let mut bench =
            two_peers(Limits { half_open, half_open_per_address: 1, ..limits() }, |_| {});
        (0..20).for_each(|n| assert!(bench.connect(P3, &format!("203.0.113.{n}")).0 > 0));
        assert_eq!(bench.node.holds().associations, strangers, "of {half_open}");
    }
}

#[test]
fn refused_connections_are_limited_and_without_a_socket_a_connection_ends_at_once() {
    let mut bench =
        two_peers(Limits { associations_per_address: 1, sockets: 70, ..limits() }, |_| {});
    bench.user(STRANGER, "OPS", "secret");
    let refused: Vec<_> = (0..70).map(|_| bench.connect(P3, STRANGER)).collect();
    assert_eq!(bench.dropped, refused[..6].iter().copied().collect::<BTreeSet<_>>());
    assert_eq!(bench.node.holds().associations, 65);
    for n in 0..5 {
        bench.connect(P3, &format!("203.0.113.{n}"));
    }
    assert_eq!(bench.admit(P3, STRANGER), None);
    bench.feed(node::Input::Tick);
    assert!(
        bench
            .details(Kind::AssociationRefused)
            .last()
            .unwrap()
            .contains("closed at once: no socket is free (most 70")
    );
}

#[test]
fn one_deadline_covers_the_whole_set_up() {
    let mut bench = two_peers(limits(), |_| {});
    let silent = bench.connect(ACT_FLASH, STRANGER);
    let slow = bench.connect(ACT_FLASH, STRANGER);
    // Each step is in time, but all of them together are not.
    bench.pass(Duration::from_secs(15));
    assert_eq!(bench.send(slow, &CR)[5], 0xd0);
    bench.pass(Duration::from_secs(14));
    assert!(!bench.closed.contains(&slow));
    bench.pass(Duration::from_secs(2));
    assert!(bench.closed.contains(&slow) && bench.closed.contains(&silent));
    bench.close(slow);
    let lost: Vec<&str> = bench.events.iter().map(|(_, e)| e.detail.as_str()).collect();
    let [detail] = lost[..] else { panic!("{lost:?}") };
    assert!(detail.starts_with("203.0.113.9, nobody had bound: "), "{detail}");
    assert!(detail.ends_with(": no association in time (limits.bind_timeout)"), "{detail}");
}

#[test]
fn a_flood_is_logged_once_with_a_count() {
    let mut bench = two_peers(limits(), |_| {});
    for _ in 0..1_000 {
        let id = bench.connect(ACT_FLASH, STRANGER);
        bench.feed(node::Input::MarkSeen { association: id, dscp: dscp::Dscp::CS0 });
        bench.close(id);
    }
    assert_eq!(bench.events.len(), 1, "{:?}", bench.events);
    bench.pass(Duration::from_secs(61));
    let last = &bench.events.last().unwrap().1.detail;
    assert!(
        last.starts_with("999 more of this kind from 203.0.113.9 in 60 s; the last: "),
        "{last}"
    );
    assert_eq!(bench.events.len(), 2);
    bench.pass(Duration::from_secs(600));
    assert_eq!(bench.events.len(), 2);
    assert_eq!(bench.node.holds(), status::Holds::default());
}

#[test]
fn each_reason_of_refusal_has_a_line_of_its_own() {
    let mut bench = two_peers(Limits { failures: 100, ..limits() }, |_| {});
    for _ in 0..3 {
        bench.mta(ACT_FLASH, ACT, "MTA-ACT", "guess");
        bench.mta(ACT_FLASH, ACT, "MTA-ACT-2", "theirs");
        bench.mta(ACT_FLASH, ACT, "MTA-ACT-3", "theirs");
    }
    let lines = bench.details(Kind::AssociationRefused);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("wrong password"), "{lines:?}");
    assert!(lines[1].contains("MTA-ACT-2"), "{lines:?}");
    bench.pass(Duration::from_secs(61));
    let lines = bench.details(Kind::AssociationRefused);
    assert!(lines[2].starts_with("2 more of this kind"), "{lines:?}");
    assert!(lines[3].starts_with("5 more of this kind"), "{lines:?}");
}

// ----- access -----------------------------------------------------------------------------------

#[test]
fn every_stranger_gets_the_same_answer_and_the_log_has_the_reason() {
    let mut bench = two_peers(limits(), |_| {});
    let open = bench.mta(ACT_FLASH, ACT, "MTA-ACT", "theirs");
    let mut answers = BTreeSet::new();
    for (listener, from, name, password, why) in [
        (ACT_FLASH, "203.0.113.1", "MTA-ACT", "guess", "initiator-credentials: wrong password"),
        (
            ACT_FLASH,
            "203.0.113.2",
            "MTA-NONE",
            "theirs",
            "mta-name: \"MTA-NONE\" is not peer act's",
        ),
        (ACT_FLASH, "203.0.113.3", "MTA-ROME", "theirs", "it is peer rome's"),
        (ROME, "203.0.113.4", "MTA-ROME", "theirs", "203.0.113.4 is not where peer rome connects"),
    ] {
        let id = bench.mta(listener, from, name, password);
        assert_eq!(bench.outcome(id), authentication_error(), "{name} from {from}");
        answers.insert(bench.written[&id].clone());
        let refusal = *bench.details(Kind::AssociationRefused).last().unwrap();
        let head = format!("bind from {from}: authentication-error (X.411 12.1.1): ");
        assert!(refusal.starts_with(&head) && refusal.contains(why), "{refusal}");
        assert!(!refusal.contains(password), "{refusal}");
    }
    assert_eq!(answers.len(), 1, "the answer does not show what was wrong");
    let rome = bench.mta(ROME, "198.51.100.200", "MTA-ROME", "theirs");
    assert_eq!((bench.outcome(rome), bench.outcome(open)), (Outcome::Open, Outcome::Open));
}

#[test]
fn an_unknown_user_and_a_wrong_password_get_the_same_answer() {
    let mut bench = two_peers(limits(), |_| {});
    let wrong = bench.user("203.0.113.1", "OPS", "guess");
    let unknown = bench.user("203.0.113.2", "NEMO", "guess");
    let other_s = bench.user("203.0.113.3", "LOG", "secret");
    assert_eq!(bench.verified, 3, "the same work for each");
    for id in [wrong, unknown, other_s] {
        assert_eq!(bench.outcome(id), authentication_error());
        assert_eq!(bench.written[&id], bench.written[&wrong]);
    }
    let refusals = bench.details(Kind::AssociationRefused).join("\n");
    assert!(
        refusals.contains("authentication-error (X.411 8.1.1): wrong password, or no such user")
    );
    assert!(!refusals.contains("guess") && !refusals.contains("secret"), "{refusals}");
}

#[test]
fn after_too_many_failures_a_bind_is_refused_as_busy_until_the_allowance_refills() {
    let mut bench = two_peers(limits(), |_| {});
    let guess = |bench: &mut Bench, password: &str| {
        let id = bench.mta(ACT_FLASH, STRANGER, "MTA-ACT", password);
        bench.outcome(id)
    };
    for n in 0..5 {
        // A wrong password that is repeated counts once.
        for _ in 0..if n < 4 { 3 } else { 1 } {
            assert_eq!(guess(&mut bench, &format!("guess {n}")), authentication_error());
        }
    }
    let checked = bench.verified;
    assert_eq!(guess(&mut bench, "theirs"), busy(), "the right password too");
    assert_eq!(bench.verified, checked, "no password was checked");
    let refusals = bench.details(Kind::AssociationRefused);
    let refusal = refusals.iter().find(|d| d.contains("busy")).unwrap();
    assert!(refusal.contains("as \"MTA-ACT\", where 5 binds failed lately"), "{refusal}");
    assert!(refusal.contains("limits.failures"), "{refusal}");
    // The peer itself may bind from its own address.
    let act = bench.mta(ACT_FLASH, ACT, "MTA-ACT", "theirs");
    assert_eq!(bench.outcome(act), Outcome::Open);
    bench.pass(Duration::from_secs(31));
    assert_eq!(guess(&mut bench, "another"), authentication_error());
    assert_eq!(guess(&mut bench, "yet another"), busy());
    bench.pass(Duration::from_secs(31));
    assert_eq!(guess(&mut bench, "theirs"), Outcome::Open);
}

#[test]
fn a_reload_clears_the_counts_of_failed_binds() {
    let mut bench = two_peers(limits(), |_| {});
    for n in 0..5 {
        let old = format!("old {n}");
        let (peer, user) =
            (bench.mta(ACT_FLASH, ACT, "MTA-ACT", &old), bench.user(STRANGER, "OPS", "guess"));
        assert_eq!(
            [peer, user].map(|id| bench.outcome(id)),
            [(); 2].map(|()| authentication_error())
        );
    }
    let id = bench.mta(ACT_FLASH, ACT, "MTA-ACT", "theirs");
    assert_eq!(bench.outcome(id), busy());
    bench.reload(|_| {});
    let peer = bench.mta(ACT_FLASH, ACT, "MTA-ACT", "theirs");
    let user = bench.user(STRANGER, "OPS", "secret");
    assert_eq!([peer, user].map(|id| bench.outcome(id)), [Outcome::Open, Outcome::Open]);
}

#[test]
fn parallel_binds_of_a_peer_share_one_allowance() {
    let mut bench = two_peers(Limits::default(), |_| {});
    for round in 0..2 {
        bench.verifies = false;
        let mut guess = |n| bench.mta(ACT_FLASH, STRANGER, "MTA-ACT", &format!("{round}, {n}"));
        let guesses: Vec<_> = (0..100).map(&mut guess).collect();
        bench.verifies = true;
        bench.settle();
        let failed = guesses.iter().filter(|id| bench.outcome(**id) == authentication_error());
        assert_eq!(failed.count(), if round == 0 { 5 } else { 1 });
        assert!(guesses.iter().all(|id| bench.outcome(*id) != Outcome::Nothing));
        bench.pass(Duration::from_secs(30));
    }
    // Binds with the right password are all accepted, however many come at once.
    bench.verifies = false;
    let right: Vec<_> = (0..20).map(|_| bench.mta(ACT_FLASH, ACT, "MTA-ACT", "theirs")).collect();
    bench.verifies = true;
    bench.settle();
    assert!(right.iter().all(|id| bench.outcome(*id) == Outcome::Open));
}

#[test]
fn a_bind_that_is_closed_before_the_answer_counts_as_failed() {
    let mut bench = two_peers(limits(), |_| {});
    for n in 0..5 {
        bench.verifies = false;
        let id = bench.mta(ACT_FLASH, STRANGER, "MTA-ACT", &format!("guess {n}"));
        bench.close(id);
        bench.verifies = true;
        bench.settle();
    }
    let id = bench.mta(ACT_FLASH, STRANGER, "MTA-ACT", "theirs");
    assert_eq!(bench.outcome(id), busy());
    // A bind that is closed while it waits for another one does not delay others.
    bench.verifies = false;
    let two = ["203.0.113.1"; 2].map(|from| bench.mta(ACT_FLASH, from, "MTA-ACT", "theirs"));
    bench.feed(node::Input::Closed { association: two[1], error: None });
    let third = bench.mta(ACT_FLASH, "203.0.113.1", "MTA-ACT", "theirs");
    bench.verifies = true;
    bench.settle();
    assert_eq!((bench.outcome(two[0]), bench.outcome(third)), (Outcome::Open, Outcome::Open));
}

#[test]
fn one_bad_client_does_not_lock_out_all_behind_its_gateway() {
    let mut bench = two_peers(Limits::default(), |_| {});
    let ops = bench.user(STRANGER, "OPS", "secret");
    for n in 0..60 {
        bench.user(STRANGER, &format!("U{n}"), "guess");
    }
    // A user who bound from this address before sends a wrong password, then the right one: no delay.
    let slip = bench.user(STRANGER, "OPS", "guess");
    let again = bench.user(STRANGER, "OPS", "secret");
    assert_eq!(
        [ops, slip, again].map(|id| bench.outcome(id)),
        [Outcome::Open, authentication_error(), Outcome::Open]
    );
    // A user who has not bound from this address waits for those before it.
    let new = bench.user(STRANGER, "OPS2", "secret");
    let elsewhere = bench.user("203.0.113.77", "OPS2", "secret");
    assert_eq!((bench.outcome(new), bench.outcome(elsewhere)), (Outcome::Nothing, Outcome::Open));
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.outcome(new), Outcome::Open);
    assert!(
        bench.details(Kind::AssociationRefused).iter().all(|line| !line.contains("busy")),
        "{:?}",
        bench.details(Kind::AssociationRefused)
    );
}

#[test]
fn binds_that_wait_for_others_are_dropped_for_new_connections() {
    for failed in [39, 40] {
        let mut bench = two_peers(limits(), |_| {});
        for n in 0..failed {
            let id = bench.user(STRANGER, &format!("U{n}"), "guess");
            bench.close(id);
        }
        bench.verifies = false;
        let ids: Vec<_> = (0..4).map(|n| bench.user(STRANGER, &format!("V{n}"), "guess")).collect();
        if failed < 40 {
            // They wait with the others until the first two have failed.
            for _ in 0..2 {
                let (token, ..) = bench.passwords.pop_front().unwrap();
                bench.feed(node::Input::Verified { token, right: false });
            }
            for id in &ids[..2] {
                bench.feed(node::Input::Closed { association: *id, error: None });
            }
            for _ in 0..2 {
                bench.connect(ACT_FLASH, STRANGER);
            }
        }
        // One is being checked; the oldest of the others is dropped.
        let oldest = if failed < 40 { 3 } else { 1 };
        bench.connect(ACT_FLASH, STRANGER);
        assert_eq!(bench.dropped, [ids[oldest]].into(), "{failed}");
    }
}

#[test]
fn the_number_of_password_hashes_for_guesses_is_limited() {
    let mut bench = two_peers(Limits::default(), |_| {});
    let ops = bench.user(STRANGER, "OPS", "secret");
    assert_eq!(bench.outcome(ops), Outcome::Open);
    // A hundred at once under a name, then a thousand names.
    bench.verifies = false;
    let at_once: Vec<_> = (0..100).map(|_| bench.user(STRANGER, "LOG", "guess")).collect();
    assert_eq!(bench.passwords.len(), 2, "two hashes at once");
    bench.verifies = true;
    bench.settle();
    assert!(bench.verified <= 1 + 5 + 2, "{} hashes for one name", bench.verified);
    assert_eq!(
        at_once.iter().filter(|id| bench.outcome(**id) == busy()).count(),
        100 + 1 - bench.verified
    );
    for n in 0..1_000 {
        let id = bench.user(STRANGER, &format!("U{n}"), "guess");
        bench.close(id);
    }
    assert!(bench.verified <= 1 + 40 + 3, "{} hashes for all names", bench.verified);
    // A user who bound from there before may bind; so may all other users.
    for from in [STRANGER, "203.0.113.77"] {
        let id = bench.user(from, "OPS", "secret");
        assert_eq!(bench.outcome(id), Outcome::Open, "{from}");
    }
    let lines = bench.count(Kind::AssociationRefused);
    assert!(lines <= 4, "{lines} lines");
}

#[test]
fn memory_for_a_peer_s_envelopes_is_limited_and_the_peer_keeps_the_transfer() {
    let mut bench = two_peers(Limits { memory_per_peer: 10_000, ..limits() }, |_| {});
    let [one, two] = [ACT_FLASH, ACT_ROUTINE].map(|l| bench.mta(l, ACT, "MTA-ACT", "theirs"));
    let rome = bench.mta(ROME, "198.51.100.7", "MTA-ROME", "theirs");
    // The first 9,000 octets of an envelope that does not end.
    let mut begun = Vec::new();
    for (tag, length) in
        [(&[0xa0][..], 66_000u32 - 5), (&[0x31], 66_000 - 10), (&[0x9f, 0x7f], 66_000 - 16)]
    {
        begun.extend_from_slice(tag);
        begun.push(0x83);
        begun.extend_from_slice(&length.to_be_bytes()[1..]);
    }
    begun.resize(9_000, 0);
    let mut begin = |id| {
        let payload =
            Payload { head: begun.clone().into(), content_length: 57_000, tail: <_>::default() };
        bench.request(id, Request::Transfer { payload, resume: None });
        bench.node.holds().octets
    };
    let first = begin(one);
    assert!((4_000..10_000).contains(&first), "{first}");
    assert!(begin(rome) > first);
    begin(two);
    let failed: Vec<&str> = bench.details(Kind::ReceiveFailed);
    let [why] = failed[..] else { panic!("{:?}", bench.events) };
    assert!(why.contains("limits.memory_per_peer = 10000 octets"), "{why}");
    assert!(bench.has_failed(two), "the sender keeps it");
    assert!([one, rome].iter().all(|id| !bench.has_failed(*id)));
    for id in [one, two, rome] {
        bench.close(id);
    }
    bench.pass(Duration::from_secs(601));
    assert_eq!(bench.node.holds(), status::Holds::default());
}

#[test]
fn an_envelope_that_nests_too_deep_is_refused_and_the_association_continues() {
    let mut bench = two_peers(limits(), |_| {});
    let id = bench.mta(ACT_FLASH, ACT, "MTA-ACT", "theirs");
    // A message envelope with a member that nests deep, and a probe of nested elements only.
    let member = [&[0xbf, 0x7f, 0x80][..], &[0x30, 0x80].repeat(200), &[0, 0].repeat(201)].concat();
    let message = [&[0xa0, 0x80, 0x31, 0x80][..], &member, &[0; 4]].concat();
    let probe = [[0xa2, 0x80].repeat(200), [0, 0].repeat(200)].concat();
    for (n, apdu) in [message, probe].into_iter().enumerate() {
        let payload = Payload { head: apdu.into(), content_length: 0, tail: <_>::default() };
        bench.request(id, Request::Transfer { payload, resume: None });
        let failed: Vec<&str> = bench.details(Kind::ReceiveFailed);
        assert_eq!(failed.len(), n + 1, "{failed:?}");
        assert!(failed[n].ends_with("nested deeper than the limit of 32"), "{failed:?}");
        assert!(bench.has_failed(id), "the sender keeps it");
        assert_eq!(bench.outcome(id), Outcome::Open);
    }
    assert!(
        bench.events.iter().all(|(_, e)| e.kind != Kind::AssociationLost),
        "{:?}",
        bench.events
    );
}

#[test]
fn a_very_long_name_does_not_fill_the_log() {
    let mut bench = two_peers(limits(), |_| {});
    let long = "X".repeat(5_000);
    let id = bench.mta(ACT_FLASH, STRANGER, &long, "guess");
    assert_eq!(bench.outcome(id), authentication_error());
    assert!(
        bench.details(Kind::AssociationRefused).iter().all(|d| d.len() < 500),
        "{:?}",
        bench.details(Kind::AssociationRefused)
    );
}
