//! What an operator orders of queued messages: retry, reroute, expire, delete.

use base::EntryId;
use base::Precedence::{Flash, Routine};
use node::Input;
use node::config::NodeConfig;
use node::event::Kind;
use node::listing::{QueueRequest, QueueRow};
use node::operator::{Act, ActError, ActOutcome, IN_DOUBT, MAX_ORDERED, Operator};
use testkit::{ACT, Events, NAPLES, NOTHING, Pair, Setup, five_channels};

/// Naples has a second peer, which is the same site by other channels: 10 to 14.
pub(super) fn two_ways(config: &mut NodeConfig) {
    five_channels(config);
    let mut spare = config.peers[0].clone();
    spare.name = "spare".to_owned();
    for channel in &mut spare.channels {
        channel.index += 10;
    }
    config.peers.push(spare);
}

fn joined() -> Pair {
    Pair::with_reports(31, Setup { node: two_ways, ..NOTHING })
}

pub(super) fn alice() -> Operator {
    Operator { uid: 1_000, name: Some("alice".to_owned()) }
}

pub(super) fn order(
    pair: &mut Pair,
    entries: &[EntryId],
    act: Act,
) -> Result<Vec<(EntryId, ActOutcome)>, ActError> {
    let entries = entries.to_vec();
    pair.feed(NAPLES, Input::Operate { request: 9, entries, act, by: alice() });
    pair.run(1);
    let (request, result) = pair.sites[NAPLES].operated.pop().expect("an answer");
    assert_eq!(request, 9);
    result
}

fn outcomes(pair: &mut Pair, entries: &[EntryId], act: Act) -> Vec<ActOutcome> {
    order(pair, entries, act).unwrap().into_iter().map(|(_, outcome)| outcome).collect()
}

fn rows(pair: &Pair, asked: &QueueRequest) -> Vec<QueueRow> {
    let entries = &pair.sites[NAPLES].store.entries;
    let page = pair.sites[NAPLES].node.queue_page(pair.clock(), asked).unwrap();
    page.describe(|key| entries.get(&key).cloned()).entries
}

fn all(pair: &Pair) -> Vec<EntryId> {
    let asked = QueueRequest { limit: 500, ..QueueRequest::default() };
    rows(pair, &asked).iter().map(|row| EntryId(row.entry[1..].parse().unwrap())).collect()
}

/// Messages for a peer that cannot be reached.
fn stuck(count: usize) -> (Pair, Vec<EntryId>) {
    let mut pair = joined();
    (0..5).for_each(|channel| pair.block(channel));
    (0..count).for_each(|n| pair.submit(Routine, 1_000 + n));
    pair.until(Kind::Submitted, count);
    pair.run(30);
    let entries = all(&pair);
    assert_eq!(entries.len(), count);
    (pair, entries)
}

fn reports(pair: &Pair) -> usize {
    pair.sites[NAPLES].count(Kind::ReportMade)
}

#[test]
fn what_is_deleted_is_gone_without_a_report_and_stays_so() {
    let (mut pair, entries) = stuck(3);
    let gone = EntryId(u64::MAX);
    assert_eq!(
        outcomes(&mut pair, &[entries[1], gone], Act::Delete),
        [ActOutcome::Done, ActOutcome::Unknown]
    );
    pair.crash(NAPLES);
    pair.run(5);
    assert_eq!(all(&pair), [entries[0], entries[2]]);
    pair.blocked.clear();
    pair.run(600);
    assert_eq!((pair.delivered(), reports(&pair)), (vec![1, 3], 0));
    pair.assert_empty();
    let events: Vec<_> = pair.events(Kind::OperatorDeleted).collect();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].operator.as_ref().unwrap().0, "alice (uid 1000)");
}

#[test]
fn what_cannot_be_read_can_be_deleted() {
    let (mut pair, entries) = stuck(2);
    pair.sites[NAPLES].store.damaged.0.insert(entries[0]);
    assert_eq!(outcomes(&mut pair, &entries, Act::Delete), [ActOutcome::Done, ActOutcome::Done]);
    assert_eq!(all(&pair), []);
    let messages: Vec<bool> =
        pair.events(Kind::OperatorDeleted).map(|event| event.message.is_some()).collect();
    assert_eq!(messages, [true, false], "the one that could be read is named");
    pair.assert_empty();
}

#[test]
fn what_is_expired_is_reported() {
    let (mut pair, entries) = stuck(2);
    assert_eq!(outcomes(&mut pair, &entries[..1], Act::Expire), [ActOutcome::Done]);
    pair.blocked.clear();
    pair.run(600);
    assert_eq!((pair.delivered(), reports(&pair)), (vec![2], 1));
    pair.assert_empty();
}

#[test]
fn what_is_rerouted_goes_to_the_peer_that_is_named_and_is_delivered_once() {
    let (mut pair, entries) = stuck(4);
    let spare = Act::Reroute { to: Some("spare".to_owned()) };
    let held = &entries[..1];
    assert_eq!(outcomes(&mut pair, held, Act::Hold), [ActOutcome::Done]);
    let became = outcomes(&mut pair, &entries[..2], spare);
    let new: Vec<EntryId> = became
        .iter()
        .map(|outcome| match outcome {
            ActOutcome::Became(new) => new[0],
            other => panic!("{other:?}"),
        })
        .collect();
    pair.run(60);
    assert_eq!(pair.delivered(), [2], "the other stays held");
    let row = &rows(&pair, &QueueRequest { entry: Some(new[0]), ..QueueRequest::default() })[0];
    assert_eq!((row.peer.as_deref(), row.state.as_str()), (Some("spare"), "held_by_operator"));
    // The old number leads to the new one.
    assert_eq!(outcomes(&mut pair, held, Act::Release), [ActOutcome::Became(vec![new[0]])]);
    // Without a name it goes where it goes already.
    let refused = outcomes(&mut pair, &entries[2..3], Act::Reroute { to: None });
    assert_eq!(refused, [ActOutcome::Refused("it goes there already".to_owned())]);
    let error = order(&mut pair, &entries, Act::Reroute { to: Some("nobody".to_owned()) });
    assert_eq!(error, Err(ActError::NoPeer("nobody".to_owned())));
    pair.crash(NAPLES);
    assert_eq!(outcomes(&mut pair, &new[..1], Act::Release), [ActOutcome::Done]);
    pair.blocked.clear();
    pair.run(600);
    let mut delivered = pair.delivered();
    delivered.sort_unstable();
    assert_eq!((delivered, reports(&pair)), (vec![1, 2, 3, 4], 0));
    pair.assert_empty();
}

/// What waits for a user was accepted for him: its keys are its own, and make it no duplicate of itself.
#[test]
fn what_waits_for_a_user_is_not_rerouted_and_not_lost() {
    let mut pair = joined();
    let log = pair.network.user(NAPLES, "LOG", true);
    pair.submit_to(&testkit::address(NAPLES, "LOG"), Flash, 700);
    pair.submit_to(&testkit::address(ACT, "NOBODY"), Flash, 60);
    pair.until(Kind::Submitted, 2);
    // The report waits for a user who has gone.
    pair.network.close(pair.users[pair.sender].end);
    pair.run(30);
    let entries = all(&pair);
    assert_eq!(entries.len(), 2);
    for to in [None, Some("spare".to_owned())] {
        for outcome in outcomes(&mut pair, &entries, Act::Reroute { to: to.clone() }) {
            let ActOutcome::Refused(why) = outcome else { panic!("{outcome:?}") };
            assert!(why.contains("waits for a user of this MTA"), "{why}");
        }
    }
    pair.network.bind(log, NAPLES);
    pair.network.bind(pair.sender, NAPLES);
    pair.run(30);
    assert_eq!(pair.users[log].delivered.len(), 1);
    assert_eq!(pair.users[pair.sender].delivered.len(), 1, "the report");
    pair.assert_empty();
}

#[test]
fn a_trial_shows_the_outcomes_and_changes_nothing() {
    let (mut pair, entries) = stuck(2);
    let gone = EntryId(u64::MAX);
    let mut trial = |act: Act| {
        let asked = [entries[0], entries[1], gone];
        order(&mut pair, &asked, Act::Trial(Box::new(act)))
    };
    let would = |text: &str| ActOutcome::Would(text.to_owned());
    let to_spare = trial(Act::Reroute { to: Some("spare".to_owned()) }).unwrap();
    let ActOutcome::Would(how) = &to_spare[0].1 else { panic!("{to_spare:?}") };
    assert!(how == "would go to peer spare", "{how}");
    assert_eq!(to_spare[2].1, ActOutcome::Unknown);
    let there = trial(Act::Reroute { to: None }).unwrap();
    assert_eq!(there[1].1, ActOutcome::Refused("it goes there already".to_owned()));
    let nobody = trial(Act::Reroute { to: Some("nix".to_owned()) });
    assert!(matches!(nobody, Err(ActError::NoPeer(_))), "{nobody:?}");
    let given_up = trial(Act::Expire).unwrap();
    assert_eq!(given_up[0].1, would("would be given up, and its originator gets a report"));
    assert_eq!(trial(Act::Delete).unwrap()[1].1, would("would be deleted"));
    assert_eq!((all(&pair), reports(&pair)), (entries, 0));
    pair.blocked.clear();
    pair.run(120);
    assert_eq!(pair.delivered().len(), 2, "they start as before");
}

/// Who asked for no report gets none, and a report has none.
#[test]
fn an_expiry_without_a_report_is_answered_so() {
    let mut pair = joined();
    pair.report = p1::flags::ReportRequest::None;
    (0..5).for_each(|channel| pair.block(channel));
    pair.submit(Routine, 1_000);
    pair.until(Kind::Submitted, 1);
    pair.run(30);
    let entries = all(&pair);
    assert_eq!(outcomes(&mut pair, &entries, Act::Expire), [ActOutcome::Silent]);
    pair.blocked.clear();
    pair.run(60);
    assert!(pair.users[pair.sender].delivered.is_empty());
    pair.assert_empty();
}

#[test]
fn what_is_retried_does_not_wait() {
    let (mut pair, entries) = stuck(2);
    pair.run(2_000);
    pair.blocked.clear();
    assert_eq!(outcomes(&mut pair, &entries, Act::Retry), [ActOutcome::Done, ActOutcome::Done]);
    pair.run(10);
    assert_eq!(pair.delivered().len(), 2, "the channel was opened at once");
    assert_eq!(pair.events(Kind::OperatorRetried).count(), 2);
}

/// All octets of it went out, and no confirm came: the operator learns that it may have arrived.
#[test]
fn an_order_for_what_may_have_arrived_is_answered_so() {
    for act in [Act::Delete, Act::Expire] {
        let mut pair = joined();
        pair.submit(Routine, 10);
        pair.run(5);
        pair.sites[ACT].frozen = true;
        pair.submit(Routine, 1_000);
        pair.until(Kind::TransferStarted, 2);
        pair.run(2);
        (0..5).for_each(|channel| pair.block(channel));
        pair.run(5);
        let entries = all(&pair);
        let trial = outcomes(&mut pair, &entries, Act::Trial(Box::new(act.clone()))).remove(0);
        assert!(matches!(&trial, ActOutcome::Would(how) if how.contains(IN_DOUBT)), "{trial:?}");
        assert_eq!(outcomes(&mut pair, &entries, act), [ActOutcome::Doubted]);
    }
}

#[test]
fn a_transfer_is_left_alone_but_not_one_that_waits_to_be_resumed() {
    for act in [Act::Delete, Act::Expire, Act::Reroute { to: Some("spare".to_owned()) }] {
        let mut pair = joined();
        pair.submit(Routine, 3_000_000);
        pair.until(Kind::TransferStarted, 1);
        pair.until_carried(500_000);
        let entries = all(&pair);
        assert_eq!(outcomes(&mut pair, &entries, act.clone()), [ActOutcome::InTransfer], "{act:?}");
        pair.block(0);
        pair.run(5);
        let outcome = outcomes(&mut pair, &entries, act.clone()).remove(0);
        match act {
            Act::Reroute { .. } => assert!(matches!(outcome, ActOutcome::Became(_)), "{outcome:?}"),
            _ => assert_eq!(outcome, ActOutcome::Done, "{act:?}"),
        }
        pair.blocked.clear();
        pair.run(900);
        let expected = match act {
            Act::Delete => (0, 0),
            Act::Expire => (0, 1),
            _ => (1, 0),
        };
        assert_eq!((pair.delivered().len(), reports(&pair)), expected, "{act:?}");
        pair.assert_empty();
    }
}

#[test]
fn an_order_that_cannot_be_stored_is_made_later_or_after_a_crash_not_at_all() {
    for crash in [false, true] {
        let (mut pair, entries) = stuck(2);
        pair.sites[NAPLES].store.full = true;
        let input = Input::Operate {
            request: 1,
            entries: entries[..1].to_vec(),
            act: Act::Delete,
            by: alice(),
        };
        pair.feed(NAPLES, input);
        pair.run(20);
        assert!(pair.sites[NAPLES].operated.is_empty(), "it is not durable");
        if crash {
            pair.crash(NAPLES);
        }
        pair.sites[NAPLES].store.full = false;
        pair.run(20);
        assert_eq!(pair.sites[NAPLES].operated.len(), usize::from(!crash));
        pair.blocked.clear();
        pair.run(600);
        assert_eq!(pair.delivered().len(), if crash { 2 } else { 1 });
        pair.assert_empty();
    }
}

#[test]
fn an_order_is_bounded_and_names_an_entry_once() {
    let (mut pair, entries) = stuck(1);
    let many = vec![entries[0]; MAX_ORDERED + 1];
    assert_eq!(order(&mut pair, &many, Act::Delete), Err(ActError::TooLong));
    let twice = [entries[0], entries[0]];
    assert_eq!(outcomes(&mut pair, &twice, Act::Delete), [ActOutcome::Done]);
}

#[test]
fn all_that_is_known_of_an_entry_is_shown() {
    let mut pair = joined();
    pair.block(3);
    pair.submit(Flash, 2_000);
    pair.until(Kind::Submitted, 1);
    pair.run(100);
    let entry = all(&pair)[0];
    let row = &rows(&pair, &QueueRequest { entry: Some(entry), ..QueueRequest::default() })[0];
    assert_eq!(row.recipients.len(), 1);
    assert_eq!(row.recipients[0].state, "waiting");
    assert!(
        row.recipients[0].address.contains("ACT") || row.recipients[0].address.contains("act"),
        "{row:?}"
    );
    let [reason] = &row.waits_for[..] else { panic!("{:?}", row.waits_for) };
    assert!(
        reason.starts_with("channel flash: no connection: no route to host, since "),
        "{reason}"
    );
    assert!(reason.contains("next try at "), "{reason}");
    assert!(row.trace.len() == 1 && row.content_type.is_some(), "{row:?}");
    assert_eq!(outcomes(&mut pair, &[entry], Act::Hold), [ActOutcome::Done]);
    let row = &rows(&pair, &QueueRequest { entry: Some(entry), ..QueueRequest::default() })[0];
    assert!(row.waits_for[0].starts_with("an operator holds it"), "{:?}", row.waits_for);
}
