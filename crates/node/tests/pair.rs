//! Two whole MTAs in virtual time: nothing lost, nothing twice, whatever happens on the way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "shared with other tests")]
mod world;

use base::{AssociationId, Precedence};
use dscp::Dscp;
use node::Input;
use node::event::Kind;
use p1::flags::ReportRequest;
use std::collections::BTreeMap;
use std::time::Duration;
use world::{ACT, Delivered, NAPLES, Setup, World, address, five_channels};

fn content(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|n| (n.wrapping_mul(31) ^ seed.wrapping_mul(7)) as u8).collect()
}

fn to_ops() -> Vec<String> {
    vec![address(ACT, "OPS")]
}

/// Messages a user got, by MTS identifier, with how often.
fn messages(world: &World, user: usize) -> BTreeMap<String, (usize, Vec<u8>)> {
    let mut found: BTreeMap<String, (usize, Vec<u8>)> = BTreeMap::new();
    for delivered in &world.users[user].delivered {
        if let Delivered::Message { identifier, content } = delivered {
            let slot = found.entry(identifier.clone()).or_insert((0, content.clone()));
            slot.0 += 1;
            assert_eq!(&slot.1, content, "a repetition of the same content");
        }
    }
    found
}

#[test]
fn messages_of_every_size_and_precedence_arrive_once_and_whole() {
    let mut world = World::new(1, |_| {});
    let sender = world.user(NAPLES, "OPS", false);
    let reader = world.user(ACT, "OPS", true);
    world.bind(sender, NAPLES);
    world.bind(reader, ACT);
    let sizes = [0, 1, 100, 4_096, 10_000, 100_000, 1_000_000];
    for (n, size) in sizes.into_iter().enumerate() {
        let precedence = Precedence::ALL[n % 6];
        let id = format!("MESSAGE {n}");
        world.submit(sender, &to_ops(), precedence, &content(n, size), &id, ReportRequest::None);
    }
    world.run_for(Duration::from_secs(60));
    let answers: Vec<&String> =
        world.users[sender].answers.iter().map(|a| a.as_ref().unwrap()).collect();
    assert_eq!(answers.len(), sizes.len());
    let got = messages(&world, reader);
    assert_eq!(got.len(), sizes.len());
    for (n, size) in sizes.into_iter().enumerate() {
        assert_eq!(got[answers[n]], (1, content(n, size)), "message of {size}");
    }
    assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0));
    assert!(world.sites.iter().all(|s| s.store.bodies.is_empty() && s.store.spools.is_empty()));
}

#[test]
fn a_resubmission_is_answered_with_the_first_identifier() {
    let mut world = World::new(2, |_| {});
    let sender = world.user(NAPLES, "OPS", false);
    let reader = world.user(ACT, "OPS", true);
    world.bind(sender, NAPLES);
    world.bind(reader, ACT);
    for _ in 0..3 {
        let to = to_ops();
        world.submit(sender, &to, Precedence::Flash, b"hello", "SAME", ReportRequest::None);
        world.run_for(Duration::from_secs(5));
    }
    world.submit(sender, &to_ops(), Precedence::Flash, b"other", "SAME", ReportRequest::None);
    world.run_for(Duration::from_secs(5));
    let answers: Vec<_> = world.users[sender].answers.iter().map(|a| a.clone().unwrap()).collect();
    assert_eq!((&answers[0], &answers[0]), (&answers[1], &answers[2]));
    assert_ne!(answers[0], answers[3], "another content is another message");
    assert_eq!(messages(&world, reader).len(), 2);
}

#[test]
fn a_submission_is_remembered_for_ten_days_whoever_dies_and_no_longer() {
    let mut world = World::new(2, |_| {});
    let sender = world.user(NAPLES, "OPS", false);
    let day = Duration::from_hours(24);
    for pause in [9 * day, 2 * day, 11 * day] {
        if !world.is_bound(sender) {
            world.bind(sender, NAPLES);
        }
        world.submit(sender, &to_ops(), Precedence::Flash, b"hello", "SAME", ReportRequest::None);
        world.run_for(Duration::from_secs(5));
        world.crash(NAPLES);
        world.run_for(pause);
    }
    let answers: Vec<_> = world.users[sender].answers.iter().map(|a| a.as_ref().unwrap()).collect();
    assert_eq!((answers.len(), answers[0]), (3, answers[1]), "the second time after nine days");
    assert_ne!(answers[1], answers[2], "the third time after eleven");
    assert!(world.sites.iter().all(|s| s.store.seen.is_empty()), "and all is forgotten in time");
}

#[test]
fn an_unknown_recipient_is_reported_and_the_others_are_served() {
    let mut world = World::new(3, |_| {});
    let sender = world.user(NAPLES, "OPS", true);
    let ops = world.user(ACT, "OPS", true);
    let log = world.user(ACT, "LOG", true);
    let local = world.user(NAPLES, "LOG", true);
    for (user, site) in [(sender, NAPLES), (ops, ACT), (log, ACT), (local, NAPLES)] {
        world.bind(user, site);
    }
    let to: Vec<String> = [
        address(ACT, "OPS"),
        address(ACT, "LOG"),
        address(NAPLES, "LOG"),
        address(ACT, "NOBODY"),
        address(NAPLES, "NOBODY"),
        "/C=ZZ/ADMD=NONE/S=X".to_owned(),
    ]
    .to_vec();
    world.submit(sender, &to, Precedence::Immediate, b"to many", "MANY", ReportRequest::Report);
    world.run_for(Duration::from_secs(30));
    for user in [ops, log, local] {
        assert_eq!(messages(&world, user).len(), 1, "user {user}");
    }
    let reports: Vec<bool> = world.users[sender]
        .delivered
        .iter()
        .filter_map(|d| match d {
            Delivered::Report { subject, delivered } => {
                assert_eq!(Ok(subject), world.users[sender].answers[0].as_ref());
                Some(*delivered)
            }
            Delivered::Message { .. } => None,
        })
        .collect();
    assert_eq!(reports.iter().filter(|d| **d).count(), 3, "delivery reports");
    assert_eq!(reports.iter().filter(|d| !**d).count(), 3, "non-delivery reports");
    assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0));
}

#[test]
fn a_wrong_password_is_refused() {
    let mut world = World::new(4, |_| {});
    let user = world.user(NAPLES, "OPS", true);
    world.users[user].password = "guess";
    world.bind(user, NAPLES);
    world.run_for(Duration::from_secs(5));
    assert!(world.users[user].refused && !world.is_bound(user));
}

#[test]
fn a_transfer_that_was_cut_goes_on_at_its_checkpoint() {
    let mut world = World::new(5, |_| {});
    let sender = world.user(NAPLES, "OPS", false);
    let reader = world.user(ACT, "OPS", true);
    world.bind(sender, NAPLES);
    world.bind(reader, ACT);
    let size = 2_000_000;
    world.submit(
        sender,
        &to_ops(),
        Precedence::Routine,
        &content(9, size),
        "LONG",
        ReportRequest::None,
    );
    // Cut once a good part has been carried.
    while world.carried < 1_200_000 {
        world.run_for(Duration::from_millis(20));
    }
    world.cut();
    world.run_for(Duration::from_secs(60));
    let got = messages(&world, reader);
    assert_eq!(got.len(), 1);
    assert_eq!(got.values().next().unwrap(), &(1, content(9, size)));
    let again = world.carried as usize - size;
    assert!(again < 200_000, "{again} octets beyond one whole transfer: it began again");
    let recovered = |e: &&(base::Instant, node::event::Event)| e.1.detail.contains("recovered");
    assert_eq!(world.sites[ACT].events.iter().filter(recovered).count(), 1);
}

/// Cuts, refused connections and crashes at random moments, by seed.
fn turmoil(seed: u64, rts: fn(&mut osi::api::RtseParameters)) {
    turmoil_with(seed, Setup { rts, node: |_| {} });
}

fn turmoil_with(seed: u64, setup: Setup) {
    let mut world = World::with(seed, setup);
    // On odd seeds the disk now and then takes longer than anyone waits.
    world.slow = Duration::from_secs((seed % 2) * 45);
    // On every third one contents are read so slowly that their transfer may be over.
    if seed % 3 == 2 {
        world.reading = Duration::from_millis(300);
    }
    let sender = world.user(NAPLES, "OPS", false);
    let reader = world.user(ACT, "OPS", true);
    let count = 12;
    for n in 0..count {
        let size = [50, 3_000, 20_000, 200_000][world.rng.below(4) as usize];
        let precedence = Precedence::ALL[world.rng.below(6) as usize];
        let id = format!("MESSAGE {n}");
        world.submit(sender, &to_ops(), precedence, &content(n, size), &id, ReportRequest::None);
    }
    for _ in 0..25 {
        for (user, site) in [(sender, NAPLES), (reader, ACT)] {
            if !world.is_bound(user) {
                world.bind(user, site);
            }
        }
        let pause = Duration::from_millis(world.rng.below(3_000));
        world.run_for(pause);
        match world.rng.below(6) {
            0 | 1 => world.cut(),
            2 => world.crash(NAPLES),
            3 => world.crash(ACT),
            4 => world.link_up = !world.link_up,
            _ if !world.blocked.is_empty() => world.blocked.clear(),
            _ if world.channels() > 1 => {
                let channel = world.rng.below(world.channels().into()) as u32;
                world.block(channel);
            }
            _ => {}
        }
    }
    world.link_up = true;
    world.blocked.clear();
    for _ in 0..20 {
        for (user, site) in [(sender, NAPLES), (reader, ACT)] {
            if !world.is_bound(user) {
                world.bind(user, site);
            }
        }
        world.run_for(Duration::from_secs(120));
    }
    world.slow = Duration::ZERO;
    for _ in 0..3 {
        for (user, site) in [(sender, NAPLES), (reader, ACT)] {
            if !world.is_bound(user) {
                world.bind(user, site);
            }
        }
        world.run_for(Duration::from_secs(650));
    }
    let answers: Vec<&String> =
        world.users[sender].answers.iter().map(|a| a.as_ref().unwrap()).collect();
    assert_eq!(answers.len(), count, "seed {seed}: every submission was answered");
    let got = messages(&world, reader);
    for (n, answer) in answers.iter().enumerate() {
        let (_, content) = got.get(*answer).unwrap_or_else(|| panic!("seed {seed}: {n} lost"));
        assert_eq!(content[..], self::content(n, content.len())[..], "seed {seed}: {n} whole");
    }
    // P3 has no replay key: the reader may hear of one message twice, never of another one.
    assert_eq!(got.len(), count, "seed {seed}: no message under two identifiers");
    assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0), "seed {seed}");
    assert!(world.sites.iter().all(|s| s.store.bodies.is_empty()), "seed {seed}: bodies left");
    assert!(world.sites.iter().all(|s| s.store.spools.is_empty()), "seed {seed}: spools left");
    for site in &world.sites {
        let held = site.node.holds();
        assert_eq!((held.arrivals, held.pending, held.keys), (0, 0, 0), "seed {seed}: {held:?}");
    }
}

#[test]
fn nothing_is_lost_or_doubled_in_turmoil() {
    for seed in 100..140 {
        turmoil(seed, |_| {});
    }
}

#[test]
fn nor_without_checkpoints_nor_with_indefinite_lengths_nor_in_turns() {
    for seed in 200..215 {
        turmoil(seed, |rts| rts.checkpoint_size = 0);
        turmoil(seed, |rts| rts.indefinite_lengths = true);
        turmoil(seed, |rts| rts.dialogue = osi::api::Dialogue::TwoWayAlternate);
    }
}

#[test]
fn nor_over_five_channels_that_come_and_go_with_a_fallback() {
    let rts = |_: &mut osi::api::RtseParameters| {};
    for seed in 300..315 {
        turmoil_with(seed, Setup { rts, node: five_channels });
        let node = |config: &mut node::config::NodeConfig| {
            five_channels(config);
            config.hold.hold = node::config::Hold::Strict;
            config.peers[0].channels[0].fallback = Precedence::ALL[2..].to_vec();
        };
        turmoil_with(seed, Setup { rts, node });
    }
}

#[test]
fn a_stop_releases_everything_and_forgets_nothing() {
    let mut world = World::new(6, |_| {});
    let sender = world.user(NAPLES, "OPS", false);
    world.bind(sender, NAPLES);
    let text = content(3, 3_000_000);
    world.submit(sender, &to_ops(), Precedence::Routine, &text, "LONG", ReportRequest::None);
    while world.carried < 500_000 {
        world.run_for(Duration::from_millis(20));
    }
    world.feed(NAPLES, Input::Stop);
    world.run_for(Duration::from_secs(10));
    assert!(world.sites[NAPLES].stopped, "bounded in time");
    assert!((world.carried as usize) < text.len(), "the long transfer was interrupted");
    assert_eq!(world.queued(NAPLES), 1, "and is still queued");
    world.crash(NAPLES);
    let reader = world.user(ACT, "OPS", true);
    world.bind(reader, ACT);
    world.run_for(Duration::from_secs(120));
    assert_eq!(messages(&world, reader).values().next().unwrap(), &(1, text));
}

#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    let mut world = World::new(8, |_| {});
    let sender = world.user(NAPLES, "OPS", false);
    let reader = world.user(ACT, "OPS", true);
    world.bind(sender, NAPLES);
    world.bind(reader, ACT);
    world.disk_full[NAPLES] = true;
    let text = content(1, 50_000);
    world.submit(sender, &to_ops(), Precedence::Flash, &text, "FIRST", ReportRequest::None);
    world.run_for(Duration::from_secs(5));
    // A reject, resource limitation: nothing was accepted, and the association goes on.
    assert_eq!(world.users[sender].answers, [Err(-1)]);
    world.disk_full = [false, true];
    world.submit(sender, &to_ops(), Precedence::Flash, &text, "FIRST", ReportRequest::None);
    world.run_for(Duration::from_secs(30));
    assert!(world.users[sender].answers[1].is_ok());
    assert_eq!(
        (messages(&world, reader).len(), world.queued(NAPLES)),
        (0, 1),
        "kept by its sender"
    );
    world.disk_full = [false; 2];
    world.run_for(Duration::from_secs(600));
    assert_eq!(messages(&world, reader).values().next().unwrap(), &(1, text));
    assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0));
    assert!(world.sites.iter().all(|s| s.store.bodies.is_empty() && s.store.spools.is_empty()));
}

#[test]
fn a_site_that_cannot_connect_sends_in_its_turn() {
    let mut world = World::new(9, |rts| rts.dialogue = osi::api::Dialogue::TwoWayAlternate);
    world.may_connect = [true, false];
    let naples = world.user(NAPLES, "OPS", true);
    let act = world.user(ACT, "OPS", true);
    world.bind(naples, NAPLES);
    world.bind(act, ACT);
    let to_naples = vec![address(NAPLES, "OPS")];
    for n in 0..6 {
        let (id, text) = (format!("MESSAGE {n}"), content(n, 20_000));
        world.submit(naples, &to_ops(), Precedence::Routine, &text, &id, ReportRequest::None);
        world.submit(act, &to_naples, Precedence::Flash, &text, &id, ReportRequest::None);
    }
    world.run_for(Duration::from_secs(120));
    assert_eq!(messages(&world, act).len(), 6, "from the end that connects");
    assert_eq!(messages(&world, naples).len(), 6, "from the end that cannot");
    assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0));
}

#[test]
fn a_commit_slower_than_the_peer_waits_confirms_nothing_else() {
    // The sender gives the first transfer up while its commit is under way and sends again: the
    // late commit may confirm neither the repetition nor another message.
    for seed in 300..330 {
        let mut world = World::new(seed, |rts| rts.transfer_timeout = Duration::from_secs(10));
        world.slow = Duration::from_secs(40);
        let sender = world.user(NAPLES, "OPS", false);
        let reader = world.user(ACT, "OPS", true);
        world.bind(reader, ACT);
        for n in 0..4 {
            let (id, text) = (format!("MESSAGE {n}"), content(n, 30_000));
            world.submit(sender, &to_ops(), Precedence::Flash, &text, &id, ReportRequest::None);
        }
        for _ in 0..40 {
            for (user, site) in [(sender, NAPLES), (reader, ACT)] {
                if !world.is_bound(user) {
                    world.bind(user, site);
                }
            }
            world.run_for(Duration::from_secs(60));
        }
        world.slow = Duration::ZERO;
        world.run_for(Duration::from_secs(1_200));
        assert_eq!(world.users[sender].answers.len(), 4, "seed {seed}");
        let got = messages(&world, reader);
        assert_eq!(got.len(), 4, "seed {seed}");
        assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0), "seed {seed}");
    }
}

#[test]
fn a_report_whose_commit_failed_is_sent_when_there_is_room() {
    let mut world = World::new(10, |_| {});
    let sender = world.user(NAPLES, "OPS", true);
    let reader = world.user(ACT, "OPS", true);
    world.bind(sender, NAPLES);
    world.submit(sender, &to_ops(), Precedence::Flash, b"hello", "HELLO", ReportRequest::Report);
    world.run_for(Duration::from_secs(10));
    world.bind(reader, ACT);
    world.disk_full[ACT] = true;
    world.run_for(Duration::from_secs(10));
    assert_eq!(messages(&world, reader).len(), 1);
    world.disk_full[ACT] = false;
    world.run_for(Duration::from_secs(60));
    let report = |d: &&Delivered| matches!(d, Delivered::Report { delivered: true, .. });
    assert_eq!(world.users[sender].delivered.iter().filter(report).count(), 1);
    assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0));
}

#[test]
fn a_user_that_cannot_take_a_message_ends_in_a_report() {
    let mut world = World::new(11, |_| {});
    let sender = world.user(NAPLES, "OPS", true);
    let reader = world.user(ACT, "OPS", true);
    // unsupported-critical-function.
    world.users[reader].refuses = Some(13);
    world.bind(sender, NAPLES);
    world.bind(reader, ACT);
    world.submit(sender, &to_ops(), Precedence::Flash, b"x", "X", ReportRequest::NonDelivery);
    world.run_for(Duration::from_secs(30));
    let reports = &world.users[sender].delivered;
    assert!(matches!(reports[..], [Delivered::Report { delivered: false, .. }]), "{reports:?}");
    assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0));
    assert!(world.sites.iter().all(|s| s.store.bodies.is_empty()));
}

#[test]
fn what_waits_for_a_renamed_peer_is_routed_again() {
    let mut world = World::new(12, |_| {});
    world.link_up = false;
    let sender = world.user(NAPLES, "OPS", false);
    let reader = world.user(ACT, "OPS", true);
    world.bind(sender, NAPLES);
    let text = content(4, 40_000);
    world.submit(sender, &to_ops(), Precedence::Flash, &text, "X", ReportRequest::None);
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.queued(NAPLES), 1);
    world.suffix = "-renamed";
    world.crash(NAPLES);
    world.link_up = true;
    world.bind(reader, ACT);
    world.run_for(Duration::from_secs(120));
    assert_eq!(messages(&world, reader).values().next(), Some(&(1, text)));
    assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0));
    assert!(world.sites.iter().all(|s| s.store.bodies.is_empty()));
}

#[test]
fn a_mark_changed_on_the_way_is_shown_and_told_once() {
    let mut world = World::new(1, |_| {});
    let sender = world.user(NAPLES, "OPS", false);
    world.bind(sender, NAPLES);
    world.submit(sender, &to_ops(), Precedence::Flash, &content(0, 9), "M", ReportRequest::None);
    world.run_for(Duration::from_secs(5));
    let seen_at = |world: &World, site: usize| {
        let status = world.sites[site].node.status(world.clock());
        let [association] = &status.peers[0].channels[0].associations[..] else { panic!() };
        let a = association.clone();
        assert_eq!((a.dscp_expected.number(), a.dscp_expected_name.as_str()), (24, "CS3"));
        (a.dscp_seen, a.dscp_seen_name)
    };
    let told = |world: &World| -> Vec<String> {
        let events = world.sites[ACT].events.iter().filter(|(_, e)| e.kind == Kind::MarkMismatch);
        events.map(|(_, e)| e.detail.clone()).collect()
    };
    assert_eq!(seen_at(&world, ACT), (None, None), "null as long as nothing was seen");

    let see = |world: &mut World, dscp| {
        world.feed(ACT, Input::MarkSeen { association: AssociationId(1), dscp });
    };
    see(&mut world, Dscp::CS0);
    see(&mut world, Dscp::CS0);
    assert_eq!(seen_at(&world, ACT), (Some(Dscp::CS0), Some("CS0".to_owned())));
    assert_eq!(told(&world), ["the peer's handshake came with CS0, not with CS3"]);
    let json = serde_json::to_value(world.sites[ACT].node.status(world.clock())).unwrap();
    let a = &json["peers"][0]["channels"][0]["associations"][0];
    assert_eq!((&a["dscp_expected"], &a["dscp_seen"]), (&24.into(), &0.into()));

    // The other end saw nothing, and a right mark is no event.
    assert_eq!(seen_at(&world, NAPLES), (None, None));
    world.sites[ACT].events.clear();
    world.run_for(Duration::from_secs(120));
    world.submit(sender, &to_ops(), Precedence::Flash, &content(1, 9), "N", ReportRequest::None);
    world.run_for(Duration::from_secs(5));
    world.feed(ACT, Input::MarkSeen { association: AssociationId(2), dscp: Dscp::CS3 });
    assert_eq!(seen_at(&world, ACT).0, Some(Dscp::CS3));
    assert_eq!(told(&world), Vec::<String>::new());
}

#[test]
fn a_user_that_does_not_answer_gives_the_message_to_another() {
    let mut world = World::new(13, |_| {});
    let sender = world.user(NAPLES, "OPS", false);
    let silent = world.user(ACT, "OPS", true);
    world.users[silent].silent = true;
    world.bind(sender, NAPLES);
    world.bind(silent, ACT);
    world.run_for(Duration::from_secs(1));
    world.submit(sender, &to_ops(), Precedence::Flash, b"x", "X", ReportRequest::None);
    world.run_for(Duration::from_secs(5));
    let reader = world.user(ACT, "OPS", true);
    world.bind(reader, ACT);
    world.run_for(Duration::from_secs(60));
    assert!(messages(&world, reader).is_empty(), "the silent one has it in hand");
    world.run_for(Duration::from_secs(120));
    assert_eq!(messages(&world, reader).len(), 1);
    assert!(!world.is_bound(silent), "its association was ended");
}

#[test]
fn a_peer_that_keeps_the_turn_and_hangs_is_left() {
    let mut world = World::new(14, |rts| rts.dialogue = osi::api::Dialogue::TwoWayAlternate);
    // Only naples connects, so act has the turn on the one association after it has sent.
    world.may_connect = [true, false];
    let naples = world.user(NAPLES, "OPS", true);
    let act = world.user(ACT, "OPS", true);
    world.bind(naples, NAPLES);
    world.bind(act, ACT);
    world.submit(naples, &to_ops(), Precedence::Routine, b"1", "1", ReportRequest::None);
    world.run_for(Duration::from_secs(5));
    let back = vec![address(NAPLES, "OPS")];
    world.submit(act, &back, Precedence::Routine, b"2", "2", ReportRequest::None);
    world.run_for(Duration::from_secs(5));
    assert_eq!(messages(&world, naples).len(), 1);
    world.frozen[ACT] = true;
    world.submit(naples, &to_ops(), Precedence::Flash, b"3", "3", ReportRequest::None);
    world.run_for(Duration::from_secs(30));
    let told = |(_, e): &&(base::Instant, node::event::Event)| e.detail.contains("give the turn");
    assert_eq!(world.sites[NAPLES].events.iter().filter(told).count(), 1);
    world.frozen[ACT] = false;
    world.run_for(Duration::from_secs(120));
    assert_eq!(messages(&world, act).len(), 2);
}

#[test]
fn a_flaky_link_makes_headway() {
    let mut world = World::new(15, |_| {});
    let sender = world.user(NAPLES, "OPS", false);
    let reader = world.user(ACT, "OPS", true);
    world.bind(sender, NAPLES);
    world.bind(reader, ACT);
    let text = content(5, 4_000_000);
    world.submit(sender, &to_ops(), Precedence::Routine, &text, "LONG", ReportRequest::None);
    for _ in 0..12 {
        let carried = world.carried;
        while world.carried < carried + 700_000 && world.queued(NAPLES) > 0 {
            world.run_for(Duration::from_millis(50));
        }
        world.cut();
    }
    world.run_for(Duration::from_secs(60));
    assert_eq!(messages(&world, reader).values().next(), Some(&(1, text.clone())));
    let more = world.carried as usize - text.len();
    assert!(more < 1_500_000, "{more} octets beyond one whole transfer");
}

#[test]
fn a_peer_whose_answer_is_wrong_is_left_alone_for_a_while() {
    let mut world = World::new(16, |_| {});
    world.distrusts[NAPLES] = true;
    let sender = world.user(NAPLES, "OPS", false);
    world.bind(sender, NAPLES);
    world.submit(sender, &to_ops(), Precedence::Flash, b"x", "X", ReportRequest::None);
    world.run_for(Duration::from_secs(1_200));
    let refused = |(_, e): &&(base::Instant, node::event::Event)| {
        e.kind == Kind::AssociationRefused && e.detail.contains("wrong password")
    };
    let times = world.sites[NAPLES].events.iter().filter(refused).count();
    assert!((2..=5).contains(&times), "{times} tries in twenty minutes");
    let status = world.sites[NAPLES].node.status(world.clock());
    assert_eq!(status.peers[0].channels[0].last_error.as_deref(), Some("wrong password"));
}

#[test]
fn what_was_read_for_a_transfer_that_failed_goes_into_no_other() {
    // One association, whose peer refuses the first transfer in the middle; the second one begins
    // on it while content for the first is still being read.
    let node =
        |config: &mut node::config::NodeConfig| config.peers[0].channels[0].associations_max = 1;
    let mut world = World::with(17, Setup { rts: |_| {}, node });
    world.reading = Duration::from_millis(700);
    let sender = world.user(NAPLES, "OPS", false);
    let reader = world.user(ACT, "OPS", true);
    world.bind(sender, NAPLES);
    world.bind(reader, ACT);
    let texts = [content(6, 400_000), content(7, 300_000)];
    for (n, text) in texts.iter().enumerate() {
        let id = format!("MESSAGE {n}");
        world.submit(sender, &to_ops(), Precedence::Routine, text, &id, ReportRequest::None);
    }
    while world.sites[ACT].store.spools.values().all(|spool| spool.len() < 10_000) {
        world.run_for(Duration::from_millis(10));
    }
    let spool = *world.sites[ACT].store.spools.keys().next().unwrap();
    world.feed(ACT, Input::SpoolFailed { spool, error: "a bad sector".to_owned() });
    world.run_for(Duration::from_secs(600));
    let events = &world.sites[NAPLES].events;
    let of = |kind| events.iter().filter(move |(_, e)| e.kind == kind);
    let failed: Vec<_> = of(Kind::TransferFailed).map(|(at, _)| *at).collect();
    assert_eq!(failed.len(), 1, "the first was refused");
    let next = of(Kind::TransferStarted).nth(1).unwrap().0;
    assert!(next < failed[0] + Duration::from_millis(100), "the second waits for nothing");
    let on: std::collections::BTreeSet<_> =
        of(Kind::TransferStarted).map(|(_, e)| e.association).collect();
    assert_eq!((of(Kind::TransferStarted).count(), on.len()), (3, 1), "all on one association");
    let got = messages(&world, reader);
    let answers = &world.users[sender].answers;
    for (answer, text) in answers.iter().zip(&texts) {
        assert!(got[answer.as_ref().unwrap()] == (1, text.clone()), "each with its own content");
    }
}

/// Its envelope is longer than what is decoded and sent in one step, its reports are several.
#[test]
fn a_message_to_thousands_is_delivered_once_and_reported_once_for_each_whatever_happens() {
    const OTHERS: usize = 2_500;
    for at in [0, 7, 11, 13, 20, 40] {
        let mut world = World::new(at, |_| {});
        let sender = world.user(NAPLES, "OPS", true);
        let reader = world.user(ACT, "OPS", true);
        world.bind(sender, NAPLES);
        world.bind(reader, ACT);
        let others = (0..OTHERS).map(|n| address(ACT, &format!("NOBODY{n}")));
        let to: Vec<String> = others.chain(to_ops()).collect();
        let (precedence, report) = (Precedence::Routine, ReportRequest::NonDelivery);
        world.submit(sender, &to, precedence, &content(1, 3_000), "MANY", report);
        world.run_for(Duration::from_millis(at));
        match at % 3 {
            0 => world.cut(),
            1 => world.crash(NAPLES),
            _ => world.crash(ACT),
        }
        for _ in 0..3 {
            world.run_for(Duration::from_secs(200));
            for (user, site) in [(sender, NAPLES), (reader, ACT)] {
                if !world.is_bound(user) {
                    world.bind(user, site);
                }
            }
        }
        world.run_for(Duration::from_secs(600));
        assert_eq!(messages(&world, reader).values().map(|(n, _)| *n).collect::<Vec<_>>(), [1]);
        let reports = &world.users[sender].delivered;
        assert!(reports.iter().all(|r| matches!(r, Delivered::Report { delivered: false, .. })));
        assert_eq!(reports.len(), OTHERS, "at {at} ms");
        assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0));
    }
}
