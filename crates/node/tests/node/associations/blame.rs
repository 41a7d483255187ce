//! A peer aborts during transfers: whether message, connection or channel is charged, and what follows
//! for the message, for others and for the channel. One node in virtual time. At the other end of each
//! channel a stack aborts, cuts or accepts each message, as the test states.

use base::{EntryId, Instant, PeerId, Precedence};
use node::config::{Channel, Limits};
use node::event::Kind;
use node::operator::{Act, Operator};
use node::{ChannelId, Input};
use osi::api::AbortReason;
use std::time::Duration;
use testkit::bench::{Answer, Disposition, facing};
use testkit::build::permanent;
use testkit::{Bench, Events};

const SECOND: Duration = Duration::from_secs(1);
const FLASH: Precedence = Precedence::Flash;
const ROUTINE: Precedence = Precedence::Routine;

const BAD: Disposition = Disposition::Abort(AbortReason::ProtocolError);

/// A node with one channel. Its peer treats messages like this.
fn bench(others: Disposition) -> Bench {
    bench_with(vec![permanent(0, &Precedence::ALL)], others, 1_000)
}

/// The same with these channels and messages of this size.
fn bench_with(channels: Vec<Channel>, others: Disposition, size: u64) -> Bench {
    let mut bench = facing(channels, Limits::default());
    bench.script.others = others;
    bench.queue_for("act", size);
    bench.start();
    bench
}

/// Queues a message now.
fn queue(bench: &mut Bench, id: u64, precedence: Precedence) -> EntryId {
    let entry = EntryId(id);
    bench.queue(entry, precedence);
    bench.feed(Input::Tick);
    entry
}

fn bad_one(bench: &mut Bench, id: u64, precedence: Precedence) -> EntryId {
    queue_with(bench, id, precedence, BAD)
}

fn queue_with(
    bench: &mut Bench,
    id: u64,
    precedence: Precedence,
    disposition: Disposition,
) -> EntryId {
    bench.script.dispositions.insert(EntryId(id), disposition);
    queue(bench, id, precedence)
}

/// Whether it was confirmed.
fn through(bench: &Bench, entry: EntryId) -> bool {
    !bench.times(Kind::TransferConfirmed, entry).is_empty()
}

/// The time from this moment until it was confirmed.
fn took(bench: &Bench, entry: EntryId, from: Instant) -> Duration {
    bench.times(Kind::TransferConfirmed, entry)[0].since(from)
}

fn status(bench: &Bench) -> status::ChannelStatus {
    bench.node.status(bench.clock()).peers.remove(0).channels.remove(0)
}

/// A new Flash does not wait for earlier messages that the peer cannot read.
#[test]
fn a_new_flash_starts_at_once_behind_three_messages_that_the_peer_aborts() {
    for level in [ROUTINE, FLASH] {
        for wait in [0, 1, 5, 20, 65, 300] {
            for does in [BAD, Disposition::Abort(AbortReason::UserError), Disposition::Cut] {
                let mut bench = bench(Disposition::Take);
                for id in 1..=3 {
                    bench.script.dispositions.insert(EntryId(id), does);
                    queue(&mut bench, id, level);
                }
                bench.pass(wait * SECOND);
                let (from, flash) = (bench.now, queue(&mut bench, 9, FLASH));
                // A lost connection is charged to the connection, once for each message.
                let limit = if does == Disposition::Cut { 9 } else { 0 };
                bench.pass(10 * SECOND);
                assert!(through(&bench, flash), "{level} {wait} {does:?}");
                let took = took(&bench, flash, from);
                assert!(took <= limit * SECOND, "{level} {wait} {does:?}: {took:?}");
            }
        }
    }
}

#[test]
fn an_aborted_message_waits_alone_and_its_association_is_opened_again_at_once() {
    for reason in
        [AbortReason::InvalidParameter, AbortReason::ProtocolError, AbortReason::UserError]
    {
        let mut bench = bench(Disposition::Take);
        let bad = EntryId(1);
        bench.script.dispositions.insert(bad, Disposition::Abort(reason));
        queue(&mut bench, 1, ROUTINE);
        assert_eq!(bench.script.connects.len(), 2, "{reason:?}: opened again at once");
        assert_eq!(bench.count(Kind::MessageBlamed), 1);
        assert_eq!(status(&bench).associations[0].state, "idle");
        let next = queue(&mut bench, 2, ROUTINE);
        assert!(through(&bench, next));
        assert_eq!(bench.script.connects.len(), 2);
        // Its own delay: 60 s, less up to a fifth.
        bench.pass(47 * SECOND);
        assert_eq!(bench.times(Kind::TransferStarted, bad).len(), 1);
        bench.pass(14 * SECOND);
        assert_eq!(bench.times(Kind::TransferStarted, bad).len(), 2);
    }
}

#[test]
fn other_reasons_and_lost_connections_are_charged_to_the_connection_first() {
    for does in [
        Disposition::Abort(AbortReason::LocalSystemProblem),
        Disposition::Abort(AbortReason::TemporaryProblem),
        Disposition::Cut,
    ] {
        let mut bench = bench(does);
        queue(&mut bench, 1, ROUTINE);
        assert_eq!(
            (bench.script.connects.len(), bench.count(Kind::MessageBlamed)),
            (1, 0),
            "{does:?}"
        );
        bench.pass(SECOND);
        // Lost again at the same place: charged to the message.
        assert_eq!(
            (bench.script.connects.len(), bench.count(Kind::MessageBlamed)),
            (3, 1),
            "{does:?}"
        );
    }
}

#[test]
fn after_message_aborts_a_message_is_reported_and_others_are_not() {
    let mut bench = bench(Disposition::Take);
    let bad = bad_one(&mut bench, 1, FLASH);
    for id in 10..200 {
        bench.pass(5 * SECOND);
        let good = queue(&mut bench, id, ROUTINE);
        assert!(through(&bench, good), "{id}");
    }
    assert_eq!(bench.times(Kind::TransferStarted, bad).len(), 4);
    assert!(!bench.is_queued(bad));
    let (_, event) = bench.events.iter().find(|(_, e)| e.kind == Kind::GivenUp).unwrap();
    assert_eq!(event.entry, Some(bad));
    for part in ["4 transfers", "peer act", "extensions = \"1988\"", "message_aborts"] {
        assert!(event.detail.contains(part), "{part} in {}", event.detail);
    }
    assert_eq!(bench.count(Kind::ReportMade), 1);
    // It is never sent again.
    bench.pass(3_600 * SECOND);
    assert_eq!(bench.times(Kind::TransferStarted, bad).len(), 4);
}

/// A message that the peer refuses for good is not tried until it expires.
#[test]
fn a_message_refused_for_good_is_reported_and_one_refused_for_now_is_not() {
    for (reason, starts) in
        [(AbortReason::PermanentProblem, Some(4)), (AbortReason::LocalSystemProblem, None)]
    {
        let mut bench = bench(Disposition::Take);
        let refused = queue_with(&mut bench, 1, FLASH, Disposition::Refuse(reason));
        for id in 10..200 {
            bench.pass(5 * SECOND);
            let good = queue(&mut bench, id, ROUTINE);
            assert!(through(&bench, good), "{id}");
        }
        assert_eq!(bench.is_queued(refused), starts.is_none());
        let tries = bench.times(Kind::TransferStarted, refused).len();
        assert_eq!(tries, starts.unwrap_or(tries));
        assert_eq!(bench.count(Kind::ReportMade), usize::from(starts.is_some()));
        assert_eq!(bench.count(Kind::AssociationLost), 0);
        let failed = bench.events.iter().find(|(_, e)| e.kind == Kind::TransferFailed).unwrap();
        let reason = match starts {
            Some(_) => "unrecoverable procedural error (6)",
            None => "receiving ability jeopardized (1)",
        };
        assert!(failed.1.detail.contains(reason), "{}", failed.1.detail);
    }
}

#[test]
fn message_aborts_is_the_number_of_tries_and_0_never_gives_up() {
    for (most, tries) in [(1, 2), (2, 2), (7, 7), (0, 30)] {
        let mut bench = bench(Disposition::Take);
        bench.reload(|config| config.peers[0].message_aborts = most);
        let bad = bad_one(&mut bench, 1, FLASH);
        let mut id = 10;
        while bench.is_queued(bad) && bench.now < Instant(0) + 3 * 3_600 * SECOND {
            bench.pass(5 * SECOND);
            queue(&mut bench, id, ROUTINE);
            id += 1;
        }
        let tried = bench.times(Kind::TransferStarted, bad).len();
        assert_eq!(bench.is_queued(bad), most == 0, "{most}");
        assert!(if most == 0 { tried >= 15 } else { tried == tries }, "{most}: {tried}");
    }
}

#[test]
fn a_peer_that_aborts_everything_causes_no_report_and_is_tried_more_and_more_rarely() {
    for does in [BAD, Disposition::Cut, Disposition::Abort(AbortReason::TemporaryProblem)] {
        let mut bench = bench(does);
        for id in 1..=40 {
            let level = Precedence::ALL[id as usize % 6];
            queue(&mut bench, id, level);
        }
        for id in 41..=100 {
            bench.pass(60 * SECOND);
            queue(&mut bench, id, ROUTINE);
        }
        assert_eq!((bench.count(Kind::GivenUp), bench.count(Kind::ReportMade)), (0, 0), "{does:?}");
        assert!((1..=100).all(|id| bench.is_queued(EntryId(id))), "{does:?}");
        // Some tries, then at most one every half minute, and one for each new message.
        let connects = bench.script.connects.len();
        assert!(connects < 30 + 60 * 2 + 60, "{does:?}: {connects} in an hour");
        // The peer works again: all messages are transferred soon.
        bench.script.others = Disposition::Take;
        bench.pass(180 * SECOND);
        let left = (1..=100).filter(|id| !through(&bench, EntryId(*id))).count();
        assert_eq!(left, 0, "{does:?}");
        assert_eq!(bench.count(Kind::GivenUp), 0);
    }
}

#[test]
fn the_only_message_is_not_given_up_before_another_one_is_confirmed() {
    let mut bench = bench(Disposition::Take);
    let bad = bad_one(&mut bench, 1, FLASH);
    bench.pass(3_600 * SECOND);
    assert!(bench.times(Kind::TransferStarted, bad).len() > 10);
    assert!(bench.is_queued(bad));
    let good = queue(&mut bench, 2, FLASH);
    assert!(through(&bench, good));
    assert!(bench.is_queued(bad), "not yet: the peer may have been repaired");
    bench.pass(601 * SECOND);
    assert!(!bench.is_queued(bad), "but at the next abort");
}

#[test]
fn all_bad_messages_among_good_ones_are_reported() {
    let mut bench = bench(Disposition::Take);
    let bad = [1, 2, 3].map(|id| bad_one(&mut bench, id, FLASH));
    for id in 10..1_000 {
        bench.pass(7 * SECOND);
        let from = bench.now;
        let good = queue(&mut bench, id, FLASH);
        assert!(through(&bench, good) && took(&bench, good, from) == Duration::ZERO, "{id}");
        if bad.iter().all(|bad| !bench.is_queued(*bad)) {
            break;
        }
    }
    assert!(bad.iter().all(|bad| !bench.is_queued(*bad)));
    assert_eq!(bench.count(Kind::GivenUp), 3);
    assert_eq!(bench.count(Kind::ReportMade), 3);
}

#[test]
fn a_good_message_behind_many_bad_ones_is_transferred() {
    let mut bench = bench(Disposition::Take);
    for id in 1..=40 {
        bad_one(&mut bench, id, ROUTINE);
    }
    let good = queue(&mut bench, 99, ROUTINE);
    // Sixteen at once, then one after each wait of the channel.
    bench.pass(2_000 * SECOND);
    assert!(through(&bench, good));
    let flash = queue(&mut bench, 100, FLASH);
    assert!(through(&bench, flash), "a higher precedence does not wait for the others");
}

#[test]
fn a_transfer_cut_at_another_place_continues_and_its_message_is_not_charged() {
    let mut bench = bench_with(vec![permanent(0, &Precedence::ALL)], Disposition::Cut, 100_000);
    queue(&mut bench, 1, ROUTINE);
    assert_eq!(bench.count(Kind::MessageBlamed), 0);
    bench.script.others = Disposition::Take;
    bench.pass(2 * SECOND);
    assert!(through(&bench, EntryId(1)));
}

#[test]
fn another_channel_carries_the_messages_of_a_channel_at_fault() {
    let mut standby = permanent(1, &[ROUTINE]);
    standby.fallback = vec![FLASH];
    let mut bench = bench_with(vec![permanent(0, &[FLASH]), standby], Disposition::Take, 1_000);
    let flash: Vec<EntryId> = (1..=4)
        .map(|id| {
            bench.script.dispositions.insert(EntryId(id), BAD);
            queue(&mut bench, id, FLASH)
        })
        .collect();
    bench.pass(20 * SECOND);
    assert!(bench.count(Kind::ChannelBlamed) > 0);
    for entry in &flash {
        bench.script.dispositions.remove(entry);
    }
    bench.script.answers.insert(0, Answer::NoRoute);
    bench.pass(120 * SECOND);
    assert!(flash.iter().all(|entry| through(&bench, *entry)));
}

#[test]
fn after_a_reload_all_messages_are_tried_at_once() {
    let mut bench = bench(BAD);
    let all: Vec<EntryId> = (1..=20).map(|id| queue(&mut bench, id, ROUTINE)).collect();
    bench.pass(600 * SECOND);
    bench.script.others = Disposition::Take;
    bench.reload(|config| config.peers[0].form.dialect = p1::Dialect::BlueBook1988);
    assert!(all.iter().all(|entry| through(&bench, *entry)), "at once");
}

/// A cut may come from the line or from a device on it. No peer reported a fault of the message.
#[test]
fn a_message_that_is_cut_several_times_is_transferred_at_last_and_not_reported() {
    let mut bench = bench(Disposition::Take);
    let entry = EntryId(1);
    bench.script.dispositions.insert(entry, Disposition::Cut);
    queue(&mut bench, 1, FLASH);
    for id in 10..400 {
        let good = queue(&mut bench, id, ROUTINE);
        bench.pass(10 * SECOND);
        assert!(through(&bench, good), "{id}");
        if bench.times(Kind::TransferStarted, entry).len() >= 5 {
            bench.script.dispositions.remove(&entry);
        }
    }
    assert_eq!((bench.count(Kind::GivenUp), bench.count(Kind::ReportMade)), (0, 0));
    assert!(through(&bench, entry), "{:?}", bench.times(Kind::TransferStarted, entry));
    assert_eq!(bench.times(Kind::TransferStarted, entry).len(), 6);
    assert!(bench.count(Kind::MessageBlamed) > 1, "and only this message waited");
}

#[test]
fn lost_connections_do_not_add_to_the_aborts_of_a_message() {
    let mut bench = bench(Disposition::Take);
    let bad = bad_one(&mut bench, 1, FLASH);
    for id in 10..400 {
        queue(&mut bench, id, ROUTINE);
        bench.pass(10 * SECOND);
        let tried = bench.times(Kind::TransferStarted, bad).len();
        // Three aborts, then three lost connections, then one more abort.
        bench
            .script
            .dispositions
            .insert(bad, if (3..6).contains(&tried) { Disposition::Cut } else { BAD });
        assert_eq!(bench.is_queued(bad), tried < 7, "{tried}");
    }
    assert!(!bench.is_queued(bad));
}

/// The node reads the same octets each time; how many the peer has taken differs.
#[test]
fn a_loss_after_more_octets_were_taken_is_at_another_place() {
    let mut bench = bench(Disposition::Cut);
    bench.script.taken = Some(1_000);
    queue(&mut bench, 1, ROUTINE);
    for _ in 0..4 {
        bench.pass(90 * SECOND);
    }
    assert!(bench.times(Kind::TransferStarted, EntryId(1)).len() > 3);
    assert_eq!(bench.count(Kind::MessageBlamed), 0);
}

/// Each abort of a message is counted, whatever its reason, and although an operator has it tried again in between.
#[test]
fn four_aborts_of_one_message_are_failures_one_to_four() {
    let reasons = [
        AbortReason::UserError,
        AbortReason::InvalidParameter,
        AbortReason::UserError,
        AbortReason::ProtocolError,
    ];
    let channel = ChannelId { peer: PeerId::of_name("act"), index: 0 };
    let wait = |bench: &mut Bench| bench.pass(3_600 * SECOND);
    let retry = |bench: &mut Bench| {
        let by = Operator { uid: 1_000, name: None };
        let entries = vec![EntryId(1)];
        bench.feed(Input::Operate { request: 1, entries, act: Act::Retry, by });
    };
    let connect = |bench: &mut Bench| bench.feed(Input::ConnectChannel { request: 2, channel });
    let orders: [&dyn Fn(&mut Bench); 3] = [&wait, &retry, &connect];
    for (order, act) in orders.into_iter().enumerate() {
        let mut bench = bench(Disposition::Take);
        for (number, reason) in (1..).zip(reasons) {
            bench.script.dispositions.insert(EntryId(1), Disposition::Abort(reason));
            match number {
                1 => _ = queue(&mut bench, 1, FLASH),
                _ => act(&mut bench),
            }
            bench.pass(SECOND);
            let event = bench.last(Kind::MessageBlamed);
            let counted = event.detail.starts_with(&format!("failure {number} of "));
            // An hour has more tries.
            assert!(counted || order == 0 && number > 1, "{number}: {}", event.detail);
        }
        // What the configuration was read again for may be the reason.
        bench.reload(|_| {});
        bench.pass(SECOND);
        let event = bench.last(Kind::MessageBlamed);
        assert!(event.detail.starts_with("failure 1 of 4"), "{}", event.detail);
    }
}
