//! An operator's day: 4,000 messages, with LONG=1 50,000, are queued for a peer that is dead. Each one's disposition is as
//! ordered.

use super::orders::{alice, order, two_ways};
use base::Precedence::{Priority, Routine};
use base::{EntryId, Precedence};
use node::event::Kind;
use node::filter::QueueFilter;
use node::listing::{QueueRequest, QueueRow};
use node::operator::{Act, ActOutcome, MAX_ORDERED};
use p1::flags::ReportRequest;
use std::collections::BTreeMap;
use std::env::var_os;
use testkit::build::content;
use testkit::{ACT, Delivered, NAPLES, NOTHING, Pair, Setup, address};

/// Messages of the day.
fn messages() -> usize {
    if var_os("LONG").is_some_and(|long| long == "1") { 50_000 } else { 4_000 }
}

/// The one that its originator wants back.
const REGRETTED: usize = 2_345;

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Disposition {
    /// By the peer that was dead.
    Delivered,
    /// By the other peer.
    Rerouted,
    /// The same, when it was released.
    ReroutedHeld,
    Expired,
    Deleted,
}

impl Disposition {
    fn for_number(n: usize) -> Disposition {
        match n {
            REGRETTED => Disposition::Deleted,
            n if n % 500 == 1 => Disposition::Expired,
            n if n % 10 == 0 => Disposition::ReroutedHeld,
            n if n % 2 == 0 => Disposition::Rerouted,
            _ => Disposition::Delivered,
        }
    }

    fn precedence(self) -> Precedence {
        if self == Disposition::ReroutedHeld { Priority } else { Routine }
    }

    fn size(self) -> usize {
        if matches!(self, Disposition::Rerouted | Disposition::ReroutedHeld) { 200 } else { 100 }
    }
}

/// How many messages have one of these dispositions.
fn count(dispositions: &[Disposition]) -> usize {
    (1..=messages()).filter(|n| dispositions.contains(&Disposition::for_number(*n))).count()
}

/// The rows that match, page by page.
fn find(pair: &Pair, asked: &QueueRequest) -> Vec<QueueRow> {
    let site = &pair.sites[NAPLES];
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let asked = QueueRequest { limit: 500, after: after.take(), ..asked.clone() };
        let page = site.node.queue_page(pair.clock(), &asked).unwrap();
        let page = page.describe(|key| site.store.entries.get(&key).cloned());
        rows.extend(page.entries);
        match page.next {
            Some(next) => after = Some(next),
            None => return rows,
        }
    }
}

/// Orders something of these rows, in parts; all of it is done.
fn have(pair: &mut Pair, rows: &[QueueRow], act: &Act) {
    let entries: Vec<EntryId> =
        rows.iter().map(|row| EntryId(row.entry[1..].parse().unwrap())).collect();
    for part in entries.chunks(MAX_ORDERED) {
        for (entry, outcome) in order(pair, part, act.clone()).unwrap() {
            let done = match act {
                Act::Reroute { .. } => matches!(outcome, ActOutcome::Became(_)),
                _ => outcome == ActOutcome::Done,
            };
            assert!(done, "{act:?} of {entry:?}: {outcome:?}");
        }
    }
}

/// What was delivered so far.
fn delivered(pair: &Pair) -> usize {
    pair.users[pair.reader].delivered.len()
}

fn by(filter: QueueFilter) -> QueueRequest {
    QueueRequest { filter, ..QueueRequest::default() }
}

/// All messages are submitted while the peer is dead. Gives their numbers, by MTS identifier.
fn submit_all(pair: &mut Pair, clerk: usize) -> BTreeMap<String, usize> {
    let to = [address(ACT, "OPS")];
    let mut sent: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for n in 1..=messages() {
        let disposition = Disposition::for_number(n);
        let user = if disposition == Disposition::Expired { clerk } else { pair.sender };
        let (octets, id) = (content(n, disposition.size()), format!("MESSAGE {n}"));
        sent.entry(user).or_default().push(n);
        pair.network.submit(
            user,
            &to,
            disposition.precedence(),
            &octets,
            &id,
            ReportRequest::NonDelivery,
        );
        if n % 1_000 == 0 {
            pair.run(60);
        }
    }
    for _ in 0..100 {
        let answered = pair.users.iter().map(|user| user.answers.len()).sum::<usize>();
        if answered == messages() {
            break;
        }
        pair.run(60);
    }
    let mut numbers = BTreeMap::new();
    for (user, sent) in sent {
        let user = &pair.users[user];
        let ids = user.answered.iter().zip(&user.answers);
        numbers.extend(ids.map(|(tag, id)| (id.clone().unwrap(), sent[*tag])));
    }
    assert_eq!(numbers.len(), messages());
    numbers
}

#[test]
fn each_of_thousands_of_messages_ends_as_it_was_ordered() {
    let mut pair = Pair::with_reports(5, Setup { node: two_ways, ..NOTHING });
    let clerk = pair.network.user(NAPLES, "LOG", true);
    pair.network.bind(clerk, NAPLES);
    (0..5).for_each(|channel| pair.block(channel));
    pair.run(1);
    let numbers = submit_all(&mut pair, clerk);
    assert_eq!((find(&pair, &by(QueueFilter::default())).len(), delivered(&pair)), (messages(), 0));

    // What is of Priority is to wait. Half of all is to go by the other peer.
    let priority = find(&pair, &QueueRequest { precedence: Some(Priority), ..by(<_>::default()) });
    assert_eq!(priority.len(), count(&[Disposition::ReroutedHeld]));
    have(&mut pair, &priority, &Act::Hold);
    let half = find(&pair, &by(QueueFilter { min_size: Some(150), ..<_>::default() }));
    assert_eq!(half.len(), messages() / 2);
    have(&mut pair, &half, &Act::Reroute { to: Some("spare".to_owned()) });
    for _ in 0..100 {
        if delivered(&pair) >= count(&[Disposition::Rerouted]) {
            break;
        }
        pair.run(60);
    }
    assert_eq!(delivered(&pair), count(&[Disposition::Rerouted]), "what is held stays held");

    // The clerk's are given up, with reports; one is deleted, without.
    let clerks = QueueFilter { originator: Some("s=log".to_owned()), ..<_>::default() };
    let clerks = find(&pair, &by(clerks));
    assert_eq!(clerks.len(), count(&[Disposition::Expired]));
    have(&mut pair, &clerks, &Act::Expire);
    let regretted = format!("message {REGRETTED}");
    let one = find(&pair, &by(QueueFilter { identifier: Some(regretted), ..<_>::default() }));
    assert_eq!(one.len(), 1);
    have(&mut pair, &one, &Act::Delete);

    // The daemon is restarted. Then the peer is there again.
    pair.crash(NAPLES);
    pair.run(10);
    pair.bind_all();
    pair.network.bind(clerk, NAPLES);
    pair.blocked.clear();
    let waiting = find(&pair, &QueueRequest { peer: Some("act".to_owned()), ..by(<_>::default()) });
    assert!(!waiting.is_empty());
    pair.run(60);
    let by_peers = count(&[Disposition::Delivered, Disposition::Rerouted]);
    for _ in 0..100 {
        if delivered(&pair) >= by_peers {
            break;
        }
        pair.run(60);
    }
    assert_eq!(delivered(&pair), by_peers, "what is held stays held");
    let held = QueueFilter { state: Some("held_by_operator".to_owned()), ..<_>::default() };
    let held = find(&pair, &by(held));
    assert_eq!(held.len(), count(&[Disposition::ReroutedHeld]));
    have(&mut pair, &held, &Act::Release);
    for _ in 0..100 {
        if pair.queued(NAPLES) == 0 {
            break;
        }
        pair.run(60);
    }
    pair.assert_empty();

    assert_dispositions(&pair, clerk, &numbers);
}

/// Each message was delivered once, reported once, or is gone, as ordered; and the events show it.
fn assert_dispositions(pair: &Pair, clerk: usize, numbers: &BTreeMap<String, usize>) {
    let mut times = vec![(0, 0); messages() + 1];
    for user in [pair.reader, pair.sender, clerk] {
        for taken in &pair.users[user].delivered {
            match taken {
                Delivered::Message { identifier, content: octets } => {
                    let n = numbers[identifier];
                    assert_eq!(*octets, content(n, Disposition::for_number(n).size()));
                    times[n].0 += 1;
                }
                Delivered::Report { subject, delivered } => {
                    assert!(!delivered && user == clerk, "a report about {subject}");
                    times[numbers[subject]].1 += 1;
                }
            }
        }
    }
    for (n, times) in times.iter().enumerate().skip(1) {
        let expected = match Disposition::for_number(n) {
            Disposition::Delivered | Disposition::Rerouted | Disposition::ReroutedHeld => (1, 0),
            Disposition::Expired => (0, 1),
            Disposition::Deleted => (0, 0),
        };
        assert_eq!(*times, expected, "message {n}: {:?}", Disposition::for_number(n));
    }
    let acts = [
        (Kind::OperatorRerouted, &[Disposition::Rerouted, Disposition::ReroutedHeld][..]),
        (Kind::OperatorExpired, &[Disposition::Expired]),
        (Kind::OperatorDeleted, &[Disposition::Deleted]),
    ];
    for (kind, dispositions) in acts {
        let mut of = 0;
        for event in pair.events(kind) {
            let n = numbers[event.message.as_ref().expect("its message")];
            assert!(dispositions.contains(&Disposition::for_number(n)), "{kind:?} of message {n}");
            assert_eq!(event.operator.as_ref().unwrap().0, alice().to_string());
            of += 1;
        }
        assert_eq!(of, count(dispositions), "{kind:?}");
    }
}
