//! A mailbox against a naive model: a list of items.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where it fails, in helpers too"
)]

mod common;

use base::Precedence;
use base::ber::universal as u;
use common::{ID, World, counts, filtered, open};
use engine::journal::ItemId;
use mailbox::query::MAX_LISTED;
use mailbox::{Item, Mailbox, Quota, Status};
use p7::attributes as a;
use p7::filter::Assertion;
use p7::operation::{DeleteArgument, DeleteItems, FetchArgument, FetchItem, ListArgument};
use p7::{Filter, FilterItem, Range, Selector, SequenceNumber, Value};
use proptest::prelude::*;
use std::sync::Arc;
use store::{LogStore, ModelStore, Options, QueueStore};

#[derive(Clone, Debug)]
enum Test {
    Level(u8),
    AtLeast(u8),
    Subject(u8),
    Status(u8),
    Report,
    Not(Box<Test>),
    And(Vec<Test>),
    Or(Vec<Test>),
}

#[derive(Clone, Debug)]
struct Choice {
    test: Option<Test>,
    from: u32,
    to: Option<u32>,
    limit: Option<u8>,
}

#[derive(Clone, Debug)]
enum Action {
    Deliver {
        level: u8,
        subject: u8,
        octets: u16,
    },
    Report {
        level: u8,
    },
    /// A delivery whose commit fails.
    Lost {
        level: u8,
    },
    List(Choice),
    Fetch(u32),
    Search(Choice),
    Delete(Vec<u32>),
    DeleteSome(Choice),
    Quota(Option<u8>),
    Open,
}

fn test() -> impl Strategy<Value = Test> {
    let one = prop_oneof![
        (0..6_u8).prop_map(Test::Level),
        (0..6_u8).prop_map(Test::AtLeast),
        (0..3_u8).prop_map(Test::Subject),
        (0..3_u8).prop_map(Test::Status),
        Just(Test::Report),
    ];
    one.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| Test::Not(Box::new(one))),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Test::And),
            prop::collection::vec(inner, 0..3).prop_map(Test::Or),
        ]
    })
}

fn choice() -> impl Strategy<Value = Choice> {
    let limit = prop::option::of(1..5_u8);
    (prop::option::of(test()), 0..20_u32, prop::option::of(20..40_u32), limit)
        .prop_map(|(test, from, to, limit)| Choice { test, from, to, limit })
}

fn action() -> impl Strategy<Value = Action> {
    let number = 1..40_u32;
    prop_oneof![
        8 => (0..6_u8, 0..3_u8, 0..200_u16)
            .prop_map(|(level, subject, octets)| Action::Deliver { level, subject, octets }),
        1 => (0..6_u8).prop_map(|level| Action::Report { level }),
        1 => (0..6_u8).prop_map(|level| Action::Lost { level }),
        3 => choice().prop_map(Action::List),
        2 => number.clone().prop_map(Action::Fetch),
        2 => choice().prop_map(Action::Search),
        1 => prop::collection::vec(number, 0..3).prop_map(Action::Delete),
        1 => choice().prop_map(Action::DeleteSome),
        1 => prop::option::of(0..40_u8).prop_map(Action::Quota),
        1 => Just(Action::Open),
    ]
}

/// An item of the model.
#[derive(Clone, Debug)]
struct Known {
    number: u32,
    level: u8,
    subject: Option<u8>,
    status: u8,
    octets: usize,
}

#[derive(Default)]
struct Model {
    items: Vec<Known>,
    last: u32,
    quota: Option<u8>,
}

const SUBJECTS: [&str; 3] = ["Convoy", "Weather", "Supplies"];

impl Test {
    fn filter(&self) -> Filter {
        let integer = |value: &u8| Value::from_integer(i64::from(*value));
        match self {
            Test::Level(level) => Filter::equality(a::PRIMARY_PRECEDENCE.oid(), integer(level)),
            Test::AtLeast(level) => Filter::Item(FilterItem::GreaterOrEqual(Assertion {
                attribute_type: a::PRIMARY_PRECEDENCE.oid(),
                value: integer(level),
            })),
            Test::Subject(subject) => {
                let text = SUBJECTS[usize::from(*subject)];
                Filter::equality(a::SUBJECT.oid(), Value::from_text(u::TELETEX_STRING, text))
            }
            Test::Status(status) => Filter::equality(a::RETRIEVAL_STATUS.oid(), integer(status)),
            Test::Report => Filter::equality(a::ENTRY_TYPE.oid(), Value::from_integer(1)),
            Test::Not(one) => Filter::Not(Box::new(one.filter())),
            Test::And(all) => Filter::And(all.iter().map(Test::filter).collect()),
            Test::Or(all) => Filter::Or(all.iter().map(Test::filter).collect()),
        }
    }

    fn holds(&self, item: &Known) -> bool {
        match self {
            Test::Level(level) => item.level == *level,
            Test::AtLeast(level) => item.level >= *level,
            Test::Subject(subject) => item.subject == Some(*subject),
            Test::Status(status) => item.status == *status,
            Test::Report => item.subject.is_none(),
            Test::Not(one) => !one.holds(item),
            Test::And(all) => all.iter().all(|one| one.holds(item)),
            Test::Or(all) => all.iter().any(|one| one.holds(item)),
        }
    }
}

impl Choice {
    fn selector(&self) -> Selector {
        let range = Range::SequenceNumber {
            from: Some(SequenceNumber(self.from)),
            to: self.to.map(SequenceNumber),
        };
        let filter = self.test.as_ref().map(Test::filter);
        let limit = self.limit.map(i64::from);
        Selector { range: Some(range), filter, limit, ..Selector::default() }
    }

    fn numbers(&self, model: &Model) -> Vec<u32> {
        let fits = |item: &&Known| {
            item.number >= self.from
                && self.to.is_none_or(|to| item.number <= to)
                && self.test.as_ref().is_none_or(|test| test.holds(item))
        };
        model.items.iter().filter(fits).map(|item| item.number).collect()
    }

    fn limit(&self) -> usize {
        self.limit.map_or(MAX_LISTED, usize::from)
    }
}

impl Model {
    fn raise(&mut self, numbers: &[u32], status: u8) {
        for item in self.items.iter_mut().filter(|item| numbers.contains(&item.number)) {
            item.status = item.status.max(status);
        }
    }

    fn has_room(&self) -> bool {
        self.quota.is_none_or(|quota| self.items.len() < usize::from(quota))
    }

    fn quota(&self) -> Quota {
        Quota { items: self.quota.map(u64::from), ..Quota::default() }
    }
}

fn level(number: u8) -> Precedence {
    Precedence::ALL[usize::from(number)]
}

fn deliver(world: &mut World, model: &mut Model, at: u8, subject: Option<u8>, octets: usize) {
    let copy = match subject {
        Some(subject) => world.copy(level(at), SUBJECTS[usize::from(subject)], octets),
        None => {
            let copy = world.copies.report(world.now(), level(at)).unwrap();
            world.commit(copy.put());
            copy
        }
    };
    let delivered = world.deliver_copy(&copy);
    assert_eq!(delivered.is_ok(), model.has_room());
    let queued = world.store.entry((level(at), copy.entry)).unwrap();
    assert_eq!(queued.is_some(), delivered.is_err());
    let Ok(delivered) = delivered else { return };
    model.last += 1;
    let number = model.last;
    assert_eq!(delivered.item.id, ItemId { mailbox: ID, number });
    let octets = copy.content.len();
    model.items.push(Known { number, level: at, subject, status: 0, octets });
}

fn act(world: &mut World, model: &mut Model, action: &Action) {
    match action {
        Action::Deliver { level, subject, octets } => {
            deliver(world, model, *level, Some(*subject), usize::from(*octets));
        }
        Action::Report { level } => deliver(world, model, *level, None, 0),
        Action::Lost { level: at } => {
            let copy = world.copies.message(world.now(), level(*at), "Lost", 5).unwrap();
            let now = world.now();
            if let Ok(delivered) = world.mailbox.deliver(now, &copy.arriving()) {
                world.mailbox.not_delivered(&delivered);
                model.last += 1;
                // As the next commit of a mailbox does.
                let put = world.mailbox.put_totals();
                world.commit(vec![put]);
            }
        }
        Action::List(choice) => list(world, model, choice),
        Action::Fetch(number) => {
            let fetched = world.fetch(&FetchArgument::precise(SequenceNumber(*number), vec![]));
            let known = model.items.iter().any(|item| item.number == *number);
            assert_eq!(fetched.is_ok(), known);
            model.raise(&[*number], 2);
        }
        Action::Search(choice) => search(world, model, choice),
        Action::Delete(numbers) => {
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let all = numbers.iter().map(|number| SequenceNumber(*number)).collect();
            let deleted = world.delete(&DeleteArgument::new(all));
            let known = |n: &u32| model.items.iter().any(|item| item.number == *n);
            assert_eq!(deleted.is_ok(), sorted.iter().all(known));
            if let Ok(deleted) = deleted {
                assert_eq!(deleted, sorted);
                model.items.retain(|item| !sorted.contains(&item.number));
            }
        }
        Action::DeleteSome(choice) => {
            let items = DeleteItems::Selector(choice.selector());
            let argument = DeleteArgument { items, ..DeleteArgument::new(vec![]) };
            let mut expected = choice.numbers(model);
            expected.truncate(choice.limit());
            assert_eq!(world.delete(&argument), Ok(expected.clone()));
            model.items.retain(|item| !expected.contains(&item.number));
        }
        Action::Quota(quota) => {
            model.quota = *quota;
            world.mailbox.set_quota(model.quota());
        }
        Action::Open => world.mailbox = open(&*world.store, model.quota()),
    }
}

fn list(world: &mut World, model: &mut Model, choice: &Choice) {
    let mut expected = choice.numbers(model);
    let next = expected.get(choice.limit()).copied();
    expected.truncate(choice.limit());
    assert_eq!(world.numbers(choice.selector()), (expected.clone(), next));
    model.raise(&expected, 1);
}

fn search(world: &mut World, model: &mut Model, choice: &Choice) {
    let expected = choice.numbers(model);
    let item = FetchItem::Search(choice.selector());
    let argument = FetchArgument { item, ..FetchArgument::precise(SequenceNumber(1), vec![]) };
    let result = world.fetch(&argument).unwrap().result;
    let first = result.entry_information.map(|entry| entry.sequence_number.0);
    let others = result.list.iter().map(|number| number.0);
    let found: Vec<_> = first.into_iter().chain(others).collect();
    assert_eq!(found, expected.iter().copied().take(choice.limit()).collect::<Vec<_>>());
    assert_eq!(result.next.map(|next| next.0), expected.get(choice.limit()).copied());
    model.raise(&first.into_iter().collect::<Vec<_>>(), 2);
}

/// What the store and the mailbox have is what the model has.
fn compare(world: &World, model: &Model) {
    let mailbox: &Mailbox = &world.mailbox;
    assert!(mailbox.agrees(counts(&*world.store)));
    assert_eq!(mailbox.totals().last, model.last);
    for known in &model.items {
        let id = ItemId { mailbox: ID, number: known.number };
        let precedence = level(known.level);
        let record = world.store.entry((precedence, id.entry())).unwrap().unwrap();
        let item = Item::decode(id, precedence, &record).unwrap();
        let status = [Status::New, Status::Listed, Status::Processed][usize::from(known.status)];
        assert_eq!(item.status, status);
        let length = world.store.body_length(id.body()).unwrap();
        assert_eq!(length.unwrap_or_default(), known.octets as u64);
    }
    assert_eq!(mailbox.totals().all().items, model.items.len() as u64);
}

fn run(world: &mut World, actions: &[Action]) -> Model {
    let mut model = Model::default();
    for action in actions {
        world.now += 1;
        act(world, &mut model, action);
    }
    compare(world, &model);
    let everything = Choice { test: None, from: 0, to: None, limit: None };
    list(world, &mut model, &everything);
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_mailbox_is_a_list_of_items(actions in prop::collection::vec(action(), 0..60)) {
        let mut world = World::new(Arc::new(ModelStore::default()));
        run(&mut world, &actions);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_mailbox_outlives_its_store(actions in prop::collection::vec(action(), 40..80)) {
        let directory = tempfile::tempdir().unwrap();
        let open_store = || -> Arc<dyn QueueStore> {
            Arc::new(LogStore::open(directory.path(), Options::default()).unwrap())
        };
        let mut world = World::new(open_store());
        let mut model = run(&mut world, &actions);
        world.store.close();
        drop(world);
        let mut world = World::new(open_store());
        world.mailbox.set_quota(model.quota());
        compare(&world, &model);
        let new = Choice { test: Some(Test::Status(0)), from: 0, to: None, limit: None };
        list(&mut world, &mut model, &new);
        deliver(&mut world, &mut model, 4, Some(0), 50);
        compare(&world, &model);
        world.store.close();
    }
}

#[test]
fn an_empty_filter_lists_all_and_none() {
    let mut world = World::new(Arc::new(ModelStore::default()));
    world.deliver(Precedence::Flash, "Convoy", 1);
    assert_eq!(world.numbers(filtered(Filter::And(vec![]))), (vec![1], None));
    assert_eq!(world.numbers(filtered(Filter::Or(vec![]))), (vec![], None));
    assert!(world.list(&ListArgument::default()).unwrap().next.is_none());
}
