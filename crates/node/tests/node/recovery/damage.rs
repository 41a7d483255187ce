//! A disk that changes records and contents: what is damaged is reported or set aside, and nothing waits for
//! it.

use base::Precedence::{Flash, Routine};
use node::Input;
use node::event::Kind;
use p1::flags::ReportRequest;
use testkit::{ACT, Delivered, NAPLES, NOTHING, Network, Pair, address};

/// Three messages wait at ACT for a user who is not bound.
struct Waiting {
    pair: Pair,
    user: usize,
}

impl Waiting {
    fn new() -> Waiting {
        let mut network = Network::pair(5, NOTHING);
        let user = network.user(ACT, "LOG", true);
        let mut pair = Pair::join(network, true);
        pair.report = ReportRequest::NonDelivery;
        pair.run(1);
        for (precedence, size) in [(Routine, 400), (Flash, 700), (Routine, 90_000)] {
            pair.submit_to(&address(ACT, "LOG"), precedence, size);
        }
        pair.run(20);
        assert_eq!(pair.queued(ACT), 3, "{}", pair.transfers());
        Waiting { pair, user }
    }

    fn bind(&mut self) {
        self.pair.network.bind(self.user, ACT);
        self.pair.run(600);
    }

    fn delivered(&self) -> usize {
        self.pair.users[self.user].delivered.len()
    }
}

fn reports(pair: &Pair) -> usize {
    let failed = |d: &&Delivered| matches!(d, Delivered::Report { delivered: false, .. });
    pair.users[pair.sender].delivered.iter().filter(failed).count()
}

#[test]
fn a_damaged_content_is_reported_and_the_others_are_delivered() {
    let mut waiting = Waiting::new();
    let body = *waiting.pair.sites[ACT].store.bodies.keys().nth(1).unwrap();
    waiting.pair.sites[ACT].store.damaged.1.insert(body);
    waiting.bind();
    // The delivery that was begun could be ended only by an abort.
    assert_eq!((waiting.delivered(), reports(&waiting.pair)), (1, 1));
    waiting.bind();
    assert_eq!((waiting.delivered(), reports(&waiting.pair)), (2, 1));
    assert!(waiting.pair.count(ACT, Kind::Damaged) > 0);
    waiting.pair.assert_empty();
}

#[test]
fn a_damaged_record_is_set_aside_with_its_content() {
    let mut waiting = Waiting::new();
    let (_, entry) = *waiting.pair.sites[ACT].store.entries.keys().next().unwrap();
    waiting.pair.sites[ACT].store.damaged.0.insert(entry);
    waiting.bind();
    assert_eq!((waiting.delivered(), reports(&waiting.pair)), (2, 0));
    assert_eq!(waiting.pair.count(ACT, Kind::Damaged), 1, "not again and again");
    let left = &waiting.pair.sites[ACT].store;
    assert_eq!((left.entries.len(), left.bodies.len()), (1, 1));
    // What comes later is delivered.
    waiting.pair.submit_to(&address(ACT, "LOG"), Routine, 300);
    waiting.pair.run(20);
    assert_eq!(waiting.delivered(), 3);
}

/// Before a transfer as before a delivery.
#[test]
fn a_content_that_is_damaged_before_its_transfer_is_reported() {
    let mut pair = Pair::with_reports(5, NOTHING);
    pair.sites[NAPLES].store.all_damaged = true;
    for precedence in [Routine, Flash, Routine] {
        pair.submit(precedence, 5_000);
    }
    pair.run(600);
    assert_eq!((pair.delivered().len(), reports(&pair)), (0, 3));
    pair.assert_empty();
    pair.sites[NAPLES].store.all_damaged = false;
    pair.submit(Flash, 5_000);
    pair.run(20);
    assert_eq!(pair.delivered(), [4]);
}

/// What a read or a check of the store finds is reported before anybody asks for it, each once.
#[test]
fn what_the_edge_finds_damaged_is_reported_at_once() {
    let mut waiting = Waiting::new();
    let store = &waiting.pair.sites[ACT].store;
    let entries: Vec<_> = store.entries.keys().copied().collect();
    let body = *store.bodies.keys().next().unwrap();
    waiting.pair.sites[ACT].store.damaged.1.insert(body);
    waiting.pair.sites[ACT].store.damaged.0.insert(entries[0].1);
    let gone = (Flash, base::EntryId(3));
    for _ in 0..2 {
        let (records, contents) = (vec![entries[0], gone], [body].into());
        waiting.pair.network.feed(ACT, Input::Damaged { records, contents });
        waiting.pair.run(60);
        let found: Vec<_> = waiting.pair.timed(ACT, Kind::Damaged).collect();
        assert_eq!(reports(&waiting.pair), 1, "nobody has bound: {found:?}");
        assert_eq!(waiting.pair.count(ACT, Kind::Damaged), 3);
    }
    waiting.bind();
    assert_eq!(waiting.delivered(), 1);
}
