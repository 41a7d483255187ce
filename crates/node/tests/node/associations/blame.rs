//! A peer aborts in the middle of transfers: whose fault that is, what follows for the message, for
//! the others and for the channel. One node in virtual time; at the other end of each channel a stack
//! that aborts, cuts or takes what it is sent, message by message.

use base::{EntryId, Instant, Precedence};
use node::Input;
use node::config::{Channel, Limits};
use node::event::Kind;
use osi::api::AbortReason;
use std::time::Duration;
use testkit::bench::{Answer, Disposition, facing};
use testkit::build::permanent;
use testkit::{Bench, Events};

const SECOND: Duration = Duration::from_secs(1);
const FLASH: Precedence = Precedence::Flash;
const ROUTINE: Precedence = Precedence::Routine;

const BAD: Disposition = Disposition::Abort(AbortReason::ProtocolError);

/// A node with one channel, whose peer does this with messages.
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

/// Queues a message now; it has nothing to do with how it got there.
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

/// When it was confirmed, after this moment.
fn took(bench: &Bench, entry: EntryId, from: Instant) -> Duration {
    bench.times(Kind::TransferConfirmed, entry)[0].since(from)
}

fn status(bench: &Bench) -> node::status::ChannelStatus {
    bench.node.status(bench.clock()).peers.remove(0).channels.remove(0)
}

/// A new Flash is not to wait for those before it that the peer cannot read.
#[test]
fn a_new_flash_goes_at_once_past_three_messages_that_the_peer_aborts() {
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
                // A link that is lost is a link, once for each of them.
                let most = if does == Disposition::Cut { 9 } else { 0 };
                bench.pass(10 * SECOND);
                assert!(through(&bench, flash), "{level} {wait} {does:?}");
                let took = took(&bench, flash, from);
                assert!(took <= most * SECOND, "{level} {wait} {does:?}: {took:?}");
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
        assert_eq!(bench.script.connects.len(), 2, "{reason:?}: opened again in the same moment");
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
fn other_reasons_and_lost_connections_are_the_link_s() {
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
        // At the same place again: the message's.
        assert_eq!(
            (bench.script.connects.len(), bench.count(Kind::MessageBlamed)),
            (3, 1),
            "{does:?}"
        );
    }
}

#[test]
fn after_so_many_aborts_a_message_is_reported_and_others_are_not() {
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
    // No more of it, ever.
    bench.pass(3_600 * SECOND);
    assert_eq!(bench.times(Kind::TransferStarted, bad).len(), 4);
}

/// What the peer says that it will never take is not tried until it expires.
#[test]
fn a_message_that_the_peer_refuses_for_good_is_reported_and_what_it_cannot_take_now_is_not() {
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
        let says = match starts {
            Some(_) => "unrecoverable procedural error (6)",
            None => "receiving ability jeopardized (1)",
        };
        assert!(failed.1.detail.contains(says), "{}", failed.1.detail);
    }
}

#[test]
fn as_many_aborts_as_are_configured_and_none_with_0() {
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
fn a_peer_that_aborts_everything_bounces_nothing_and_is_asked_less_and_less() {
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
        // Some trials, then at most one every half minute, and one for what is new.
        let connects = bench.script.connects.len();
        assert!(connects < 30 + 60 * 2 + 60, "{does:?}: {connects} in an hour");
        // It is mended: all go, soon.
        bench.script.others = Disposition::Take;
        bench.pass(180 * SECOND);
        let left = (1..=100).filter(|id| !through(&bench, EntryId(*id))).count();
        assert_eq!(left, 0, "{does:?}");
        assert_eq!(bench.count(Kind::GivenUp), 0);
    }
}

#[test]
fn one_message_alone_is_not_given_up_before_another_one_got_through() {
    let mut bench = bench(Disposition::Take);
    let bad = bad_one(&mut bench, 1, FLASH);
    bench.pass(3_600 * SECOND);
    assert!(bench.times(Kind::TransferStarted, bad).len() > 10);
    assert!(bench.is_queued(bad));
    let good = queue(&mut bench, 2, FLASH);
    assert!(through(&bench, good));
    assert!(bench.is_queued(bad), "not for that: perhaps the peer has been mended");
    bench.pass(601 * SECOND);
    assert!(!bench.is_queued(bad), "but at the next abort");
}

#[test]
fn several_bad_messages_among_good_ones_are_all_reported() {
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
fn many_bad_ones_before_a_good_one_do_not_keep_it_for_ever() {
    let mut bench = bench(Disposition::Take);
    for id in 1..=40 {
        bad_one(&mut bench, id, ROUTINE);
    }
    let good = queue(&mut bench, 99, ROUTINE);
    // Sixteen at once, then one with each wait of the channel.
    bench.pass(2_000 * SECOND);
    assert!(through(&bench, good));
    let flash = queue(&mut bench, 100, FLASH);
    assert!(through(&bench, flash), "what is higher needs no turn");
}

#[test]
fn a_transfer_that_was_cut_off_elsewhere_goes_on_and_is_blamed_on_nobody() {
    let mut bench = bench_with(vec![permanent(0, &Precedence::ALL)], Disposition::Cut, 100_000);
    queue(&mut bench, 1, ROUTINE);
    assert_eq!(bench.count(Kind::MessageBlamed), 0);
    bench.script.others = Disposition::Take;
    bench.pass(2 * SECOND);
    assert!(through(&bench, EntryId(1)));
}

#[test]
fn another_channel_carries_what_waits_for_one_at_fault() {
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
fn a_reload_lets_all_be_tried_again_at_once() {
    let mut bench = bench(BAD);
    let all: Vec<EntryId> = (1..=20).map(|id| queue(&mut bench, id, ROUTINE)).collect();
    bench.pass(600 * SECOND);
    bench.script.others = Disposition::Take;
    bench.reload(|config| config.peers[0].dialect = p1::Dialect::BlueBook1988);
    assert!(all.iter().all(|entry| through(&bench, *entry)), "in the same moment");
}

/// Whatever it is that cuts it, the link or what stands in it: nobody said that it is the message.
#[test]
fn a_message_that_is_cut_off_each_time_goes_through_in_the_end_and_is_not_reported() {
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
    assert!(bench.count(Kind::MessageBlamed) > 1, "but it waited alone");
}

#[test]
fn losses_do_not_add_to_what_the_peer_says_of_a_message() {
    let mut bench = bench(Disposition::Take);
    let bad = bad_one(&mut bench, 1, FLASH);
    for id in 10..400 {
        queue(&mut bench, id, ROUTINE);
        bench.pass(10 * SECOND);
        let tried = bench.times(Kind::TransferStarted, bad).len();
        // Said three times, then lost three times, then said once more.
        bench
            .script
            .dispositions
            .insert(bad, if (3..6).contains(&tried) { Disposition::Cut } else { BAD });
        assert_eq!(bench.is_queued(bad), tried < 7, "{tried}");
    }
    assert!(!bench.is_queued(bad));
}

/// What was read ahead is the same each time; what the peer has had of it is not.
#[test]
fn a_loss_after_more_was_taken_is_not_at_the_same_place() {
    let mut bench = bench(Disposition::Cut);
    bench.script.taken = Some(1_000);
    queue(&mut bench, 1, ROUTINE);
    for _ in 0..4 {
        bench.pass(90 * SECOND);
    }
    assert!(bench.times(Kind::TransferStarted, EntryId(1)).len() > 3);
    assert_eq!(bench.count(Kind::MessageBlamed), 0);
}
