//! Operations on a mailbox over the model of a store.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where it fails, in helpers too"
)]

mod common;

use base::Precedence;
use base::ber::{Element, universal as u};
use common::{World, counts, filtered, open};
use mailbox::testing::at;
use mailbox::{
    Access, Answer, Full, NotDelivered, Outcome, Query, Quota, Rule, Rules, Status, Step,
};
use p7::attributes as a;
use p7::operation::{
    DeleteArgument, DeleteItems, FetchArgument, FetchItem, FetchResult, ListArgument, Span,
    SummarizeArgument,
};
use p7::{
    AttributeSelection, EntryClass, Filter, FilterItem, Range, Restrictions, Selector,
    SequenceNumber, Value,
};
use std::sync::Arc;
use std::time::Duration;
use store::ModelStore;

fn world() -> World {
    World::new(Arc::new(ModelStore::default()))
}

fn equal(kind: a::AttributeType, value: i64) -> Filter {
    Filter::equality(kind.oid(), Value::from_integer(value))
}

fn numbers(from: u32, to: u32) -> Option<Range> {
    Some(Range::SequenceNumber { from: Some(SequenceNumber(from)), to: Some(SequenceNumber(to)) })
}

/// 30 items of all levels in turn, with two subjects, one each second.
fn filled() -> World {
    let mut world = world();
    for n in 0..30_u32 {
        world.now += 1;
        let level = Precedence::ALL[n as usize % 6];
        let subject = if n % 2 == 0 { "Convoy" } else { "Weather" };
        assert_eq!(world.deliver(level, subject, 10), n + 1);
    }
    world
}

#[test]
fn a_list_ascends_and_makes_items_listed() {
    let mut world = filled();
    let listed = equal(a::RETRIEVAL_STATUS, 1);
    assert_eq!(world.numbers(filtered(listed.clone())), (vec![], None));
    let limited = Selector { limit: Some(4), ..Selector::default() };
    assert_eq!(world.numbers(limited), (vec![1, 2, 3, 4], Some(5)));
    assert_eq!(world.numbers(filtered(listed)), (vec![1, 2, 3, 4], None));
    let all = world.numbers(Selector::default());
    assert_eq!(all, ((1..=30).collect(), None));
    let last = Selector { range: numbers(29, 99), ..Selector::default() };
    assert_eq!(world.numbers(last), (vec![29, 30], None));
    assert_eq!(counts(&*world.store), [5; 6]);
}

#[test]
fn a_list_has_the_requested_attributes_or_the_registered_ones() {
    let mut world = filled();
    let requested = vec![AttributeSelection::new(a::SUBJECT.oid())];
    let selector = Selector { limit: Some(1), ..Selector::default() };
    let mut argument =
        ListArgument { selector, requested_attributes: Some(requested), ..ListArgument::default() };
    let entry = world.list(&argument).unwrap().requested.remove(0);
    assert_eq!(entry.attributes.len(), 1);
    assert_eq!(entry.attributes[0].values[0].text().unwrap(), "Convoy");
    argument.requested_attributes = None;
    assert!(world.list(&argument).unwrap().requested[0].attributes.is_empty());
    let register = p7::operation::RegisterMsArgument {
        list_attribute_defaults: Some(vec![a::PRIMARY_PRECEDENCE.oid()]),
        ..Default::default()
    };
    world.registrations = world.registrations.register(&register).unwrap().0;
    let entry = world.list(&argument).unwrap().requested.remove(0);
    assert_eq!(entry.attributes, [a::primary_precedence(Precedence::Deferred)]);
    argument.requested_attributes = Some(vec![AttributeSelection::new(a::CONTENT.oid())]);
    assert_eq!(world.list(&argument).unwrap_err().code(), 21);
}

#[test]
fn a_filter_of_one_level_reads_that_level_alone() {
    let mut world = filled();
    world.read = 0;
    let flash = filtered(equal(a::PRIMARY_PRECEDENCE, 4));
    assert_eq!(world.numbers(flash), (vec![5, 11, 17, 23, 29], None));
    assert_eq!(world.read, 5);
    let convoy = Value::from_text(u::TELETEX_STRING, "convoy");
    let convoy = Filter::equality(a::SUBJECT.oid(), convoy);
    let both = Filter::And(vec![convoy, equal(a::PRIMARY_PRECEDENCE, 2)]);
    assert_eq!(world.numbers(filtered(both)), (vec![3, 9, 15, 21, 27], None));
}

#[test]
fn a_range_of_times_reads_little() {
    let mut world = world();
    for n in 0..3000 {
        world.now = 10 * n;
        world.deliver(Precedence::Routine, "Convoy", 1);
    }
    world.read = 0;
    let time = |seconds| Some(p1::Time::from(at(seconds)));
    let range = Range::CreationTime { from: time(20_000), to: time(20_055) };
    let selector = Selector { range: Some(range), ..Selector::default() };
    assert_eq!(world.numbers(selector), ((2001..=2006).collect(), None));
    assert!(world.read < 200, "{} items read", world.read);
    world.read = 0;
    let range = Range::CreationTime { from: time(90_000), to: None };
    let selector = Selector { range: Some(range), ..Selector::default() };
    assert_eq!(world.numbers(selector), (vec![], None));
    assert!(world.read < 200, "{} items read", world.read);
}

#[test]
fn a_list_is_bounded() {
    let mut world = world();
    for _ in 0..=mailbox::query::MAX_LISTED {
        world.deliver(Precedence::Flash, "Convoy", 1);
    }
    let (found, next) = world.numbers(Selector::default());
    assert_eq!((found.len(), next), (1024, Some(1025)));
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let mut world = filled();
    let mut code = |selector: Selector, entry_class: EntryClass, is_1994: bool| {
        world.access = Access { is_1994, ..Access::default() };
        let argument = ListArgument { selector, entry_class, ..ListArgument::default() };
        world.list(&argument).map_or_else(|error| error.code(), |_| 0)
    };
    let delivery = EntryClass::DELIVERY;
    let reversed = Selector { range: numbers(3, 2), ..Selector::default() };
    assert_eq!(code(reversed.clone(), delivery, false), 25);
    assert_eq!(code(reversed, delivery, true), 29);
    let none = Selector { limit: Some(0), ..Selector::default() };
    assert_eq!(code(none, delivery, true), 29);
    assert_eq!(code(Selector::default(), EntryClass::DRAFT, true), 34);
    assert_eq!(code(Selector::default(), EntryClass::DRAFT, false), 29);
    assert_eq!(code(Selector::default(), EntryClass::STORED_MESSAGE, true), 0);
    let unknown = Filter::Item(FilterItem::Present(a::MESSAGE_NOTES.oid()));
    assert_eq!(code(filtered(unknown), delivery, true), 21);
    let wrong = Filter::equality(a::SEQUENCE_NUMBER.oid(), Value::from_boolean(true));
    assert_eq!(code(filtered(wrong), delivery, true), 21);
}

fn whole(number: u32) -> FetchArgument {
    let selection = [a::CONTENT, a::SUBJECT].map(|kind| AttributeSelection::new(kind.oid()));
    FetchArgument::precise(SequenceNumber(number), selection.to_vec())
}

#[test]
fn a_fetch_streams_the_content_and_makes_the_item_processed() {
    let mut world = world();
    let copy = world.copy(Precedence::Flash, "Convoy", 5000);
    let _ = world.deliver_copy(&copy).unwrap();
    let fetched = world.fetch(&whole(1)).unwrap();
    let octets = world.octets(&fetched);
    let result = FetchResult::read(&Element::parse(&octets).unwrap()).unwrap();
    let entry = result.entry_information.unwrap();
    assert_eq!(entry.sequence_number, SequenceNumber(1));
    assert_eq!(entry.attribute(&a::SUBJECT.oid()), Some(&a::subject("Convoy")));
    assert_eq!(entry.attribute(&a::CONTENT.oid()), Some(&a::content(&copy.content)));
    let processed = filtered(equal(a::RETRIEVAL_STATUS, 2));
    assert_eq!(world.numbers(processed), (vec![1], None));
    assert_eq!(world.fetch(&whole(2)).unwrap_err().code(), 28);
    assert_eq!(world.fetch(&whole(0)).unwrap_err().code(), 28);
}

#[test]
fn a_fetch_by_selector_names_the_other_items() {
    let mut world = filled();
    let selector = Selector { limit: Some(3), ..filtered(equal(a::PRIMARY_PRECEDENCE, 4)) };
    let argument = FetchArgument { item: FetchItem::Search(selector), ..whole(1) };
    let fetched = world.fetch(&argument).unwrap();
    let octets = world.octets(&fetched);
    let result = FetchResult::read(&Element::parse(&octets).unwrap()).unwrap();
    let entry = result.entry_information.unwrap();
    assert_eq!(entry.sequence_number, SequenceNumber(5));
    assert_eq!(result.list, [SequenceNumber(11), SequenceNumber(17)]);
    assert_eq!(result.next, Some(SequenceNumber(23)));
    let nothing = FetchItem::Search(filtered(equal(a::RETRIEVAL_STATUS, 7)));
    let fetched = world.fetch(&FetchArgument { item: nothing, ..whole(1) }).unwrap();
    assert_eq!(fetched.payload().head.as_ref(), [0x31, 0]);
}

#[test]
fn a_fetch_keeps_to_the_restrictions_of_the_bind() {
    let mut world = filled();
    world.access.restrictions = Restrictions {
        allowed_content_types: vec!["2.6.1.10.1".parse().unwrap()],
        maximum_attribute_length: Some(3),
        ..Restrictions::default()
    };
    let error = world.fetch(&whole(1)).unwrap_err();
    assert_eq!(error.code(), 24);
    let overriding = p7::selector::OverrideRestrictions(0b101);
    let selector = Selector { override_restrictions: Some(overriding), ..Selector::default() };
    let argument = FetchArgument { item: FetchItem::Search(selector), ..whole(1) };
    assert!(world.fetch(&argument).is_ok());
}

#[test]
fn a_fetch_keeps_to_the_encoded_information_types_of_the_bind() {
    let mut world = filled();
    // ia5-text, as a bit of the built-in ones and by its object identifier.
    let eits: Vec<base::ber::Oid> = vec!["2.6.3.4.2".parse().unwrap()];
    let restrict = |allowed: Vec<base::ber::Oid>| Restrictions {
        allowed_eits: allowed,
        ..Restrictions::default()
    };
    world.access.restrictions = restrict(vec!["2.6.3.4.9".parse().unwrap()]);
    let p7::MsError::FetchRestriction(problems) = world.fetch(&whole(1)).unwrap_err() else {
        panic!("another error")
    };
    let others = p7::error::FetchRestriction::Eits(eits.clone());
    assert_eq!((problems[0].problem, &problems[0].restriction), (2, &others));
    world.access.restrictions = restrict(eits);
    assert!(world.fetch(&whole(1)).is_ok());
}

fn all(filter: Option<Filter>) -> DeleteArgument {
    let selector = Selector { filter, ..Selector::default() };
    DeleteArgument { items: DeleteItems::Selector(selector), ..DeleteArgument::new(vec![]) }
}

#[test]
fn deleted_items_are_gone_and_their_numbers_are_not_used_again() {
    let mut world = filled();
    let some =
        |numbers: &[u32]| DeleteArgument::new(numbers.iter().map(|n| SequenceNumber(*n)).collect());
    assert_eq!(world.delete(&some(&[30, 2, 2])), Ok(vec![2, 30]));
    let error = world.delete(&some(&[1, 2, 31])).unwrap_err();
    let missing =
        [2, 31].map(|n| (p7::error::SequenceNumberProblem::NO_SUCH_ENTRY, SequenceNumber(n)));
    assert_eq!(error, p7::MsError::SequenceNumber(missing.to_vec()));
    assert_eq!(world.numbers(Selector::default()).0.len(), 28);
    assert_eq!(world.deliver(Precedence::Flash, "Convoy", 1), 31);
    assert_eq!(world.delete(&all(Some(equal(a::PRIMARY_PRECEDENCE, 4)))).unwrap().len(), 6);
    assert_eq!(world.delete(&all(None)).unwrap().len(), 23);
    assert_eq!(world.mailbox.totals().all(), mailbox::Level::default());
    world.mailbox = open(&*world.store, Quota::default());
    assert_eq!(world.deliver(Precedence::Flash, "Convoy", 1), 32);
    assert!(world.mailbox.agrees(counts(&*world.store)));
}

#[test]
fn many_items_are_deleted_in_several_commits() {
    let mut world = world();
    let count = 2 * mailbox::query::MAX_DELETED as u32 + 10;
    for _ in 0..count {
        world.deliver(Precedence::Routine, "Convoy", 1);
    }
    let numbers = (1..=count).map(SequenceNumber).collect();
    assert_eq!(world.delete(&DeleteArgument::new(numbers)).unwrap().len(), count as usize);
    assert_eq!(counts(&*world.store), [0; 6]);
}

#[test]
fn a_commit_that_fails_deletes_nothing() {
    let mut world = filled();
    let before = *world.mailbox.totals();
    let argument = all(None);
    let mut query = Query::delete(&world.mailbox, &world.access, &argument).unwrap();
    let mut next = Answer::Start;
    let error = loop {
        next = match query.step(&mut world.mailbox, next) {
            Step::Ask(ask) => common::answer(&*world.store, ask),
            Step::Commit(_) => Answer::NotCommitted,
            Step::Error(error) => break error,
            Step::Done(outcome) => panic!("{outcome:?}"),
        };
    };
    assert_eq!(error.code(), 27);
    assert_eq!(*world.mailbox.totals(), before);
    let mut query = Query::delete(&world.mailbox, &world.access, &argument).unwrap();
    let _ = query.step(&mut world.mailbox, Answer::Start);
    assert!(matches!(query.step(&mut world.mailbox, Answer::Failed), Step::Error(_)));
}

#[test]
fn a_summary_counts_the_values_of_attributes() {
    let mut world = filled();
    let argument = SummarizeArgument {
        selector: Selector { range: numbers(2, 30), ..Selector::default() },
        summary_requests: vec![a::SUBJECT.oid(), a::RETRIEVAL_STATUS.oid(), a::REPLY_TIME.oid()],
        ..SummarizeArgument::default()
    };
    let result = world.summarize(&argument).unwrap();
    assert_eq!((result.count, result.next), (29, None));
    let span = Span { lowest: SequenceNumber(2), highest: SequenceNumber(30) };
    assert_eq!(result.span, Some(span));
    let counts = |at: usize| {
        let present = result.summaries[at].present.iter();
        present.map(|value| value.count).collect::<Vec<_>>()
    };
    assert_eq!((counts(0), counts(1), counts(2)), (vec![14, 15], vec![29], vec![]));
    assert_eq!(result.summaries[2].absent, Some(29));
    let none = SummarizeArgument { summary_requests: vec![a::CONTENT.oid()], ..argument };
    assert_eq!(world.summarize(&none).unwrap_err().code(), 21);
}

#[test]
fn a_delivery_without_room_changes_nothing() {
    let mut world = filled();
    world.mailbox.set_quota(Quota { items: Some(40), octets: None, reserve: 50 });
    let before = *world.mailbox.totals();
    let routine = world.copy(Precedence::Routine, "Convoy", 1);
    let full = NotDelivered::Full(Full::Items { held: 30, bound: 24 });
    assert_eq!(world.deliver_copy(&routine), Err(full));
    assert_eq!(*world.mailbox.totals(), before);
    assert_eq!(world.deliver(Precedence::Flash, "Convoy", 1), 31);
    let failed = world.copy(Precedence::Flash, "Convoy", 1);
    let delivered = world.mailbox.deliver(at(99), &failed.arriving()).unwrap();
    world.mailbox.not_delivered(&delivered);
    assert_eq!(world.deliver(Precedence::Flash, "Convoy", 1), 33);
    assert_eq!(world.mailbox.totals().all().items, 32);
}

#[test]
fn what_the_rules_give_up_is_deleted() {
    let mut world = filled();
    world.numbers(Selector { limit: Some(10), ..Selector::default() });
    let rules = vec![
        Rule { status: Some(Status::Listed), age: Duration::from_secs(20) },
        Rule { status: None, age: Duration::from_secs(60) },
    ];
    let rules = Rules::new(rules).unwrap();
    let retain = |world: &mut World, now: u64| {
        let query = Query::retain(&world.mailbox, rules.clone(), at(now));
        world.run(Ok(query)).unwrap()
    };
    // Item n is of second n; the first ten are listed.
    assert_eq!(retain(&mut world, 25), Outcome::Retained(5));
    assert_eq!(world.numbers(Selector::default()).0, (6..=30).collect::<Vec<_>>());
    assert_eq!(retain(&mut world, 61), Outcome::Retained(25));
    assert_eq!(world.mailbox.totals().all().items, 0);
    assert!(world.mailbox.agrees([0; 6]));
}

#[test]
fn all_items_are_counted_and_deleted_whatever_their_age() {
    let mut world = filled();
    let all = Rules::new(vec![Rule { status: None, age: Duration::ZERO }]).unwrap();
    // The clock went back before the first of them.
    let query = Query::count_due(&world.mailbox, all.clone(), at(0));
    assert_eq!(world.run(Ok(query)).unwrap(), Outcome::Retained(30));
    assert_eq!(world.mailbox.totals().all().items, 30);
    let query = Query::retain(&world.mailbox, all, at(0));
    assert_eq!(world.run(Ok(query)).unwrap(), Outcome::Retained(30));
    assert_eq!(world.mailbox.totals().all().items, 0);
}

#[test]
fn a_recount_corrects_the_totals() {
    let mut world = filled();
    let right = *world.mailbox.totals();
    let failed = world.copies.message(at(1), Precedence::Flash, "Convoy", 1).unwrap();
    // A delivery whose commit failed, counted in the value of the next.
    let _ = world.mailbox.deliver(at(40), &failed.arriving()).unwrap();
    assert!(!world.mailbox.agrees(counts(&*world.store)));
    let query = Query::recount(&world.mailbox);
    assert_eq!(world.run(Ok(query)), Ok(Outcome::Recounted));
    assert!(world.mailbox.agrees(counts(&*world.store)));
    assert_eq!(world.mailbox.totals().all(), right.all());
    assert_eq!(open(&*world.store, Quota::default()), world.mailbox);
}

#[test]
fn a_delivery_during_a_list_is_not_in_it() {
    let mut world = filled();
    let query =
        Query::list(&world.mailbox, &world.registrations, &world.access, &ListArgument::default());
    let mut query = query.unwrap();
    let mut next = Answer::Start;
    let result = loop {
        next = match query.step(&mut world.mailbox, next) {
            Step::Ask(ask) => common::answer(&*world.store, ask),
            Step::Commit(batch) => {
                world.commit(batch);
                Answer::Committed
            }
            Step::Done(Outcome::Listed(result)) => break result,
            other => panic!("{other:?}"),
        };
        world.deliver(Precedence::Override, "Convoy", 1);
    };
    assert_eq!(result.requested.len(), 30);
}

#[test]
fn a_delivery_during_a_recount_is_counted() {
    let mut world = filled();
    let mut query = Query::recount(&world.mailbox);
    let mut next = Answer::Start;
    loop {
        next = match query.step(&mut world.mailbox, next) {
            Step::Ask(ask) => common::answer(&*world.store, ask),
            Step::Commit(batch) => {
                world.commit(batch);
                Answer::Committed
            }
            Step::Done(outcome) => break assert_eq!(outcome, Outcome::Recounted),
            Step::Error(error) => panic!("{error}"),
        };
        if world.mailbox.totals().last < 33 {
            world.deliver(Precedence::Flash, "Convoy", 1);
        }
    }
    assert_eq!(world.mailbox.totals().all().items, 33);
    assert!(world.mailbox.agrees(counts(&*world.store)));
}

#[test]
fn creation_times_do_not_descend_when_the_clock_does() {
    let mut world = world();
    let mut created = |seconds| {
        world.now = seconds;
        let copy = world.copy(Precedence::Flash, "Convoy", 1);
        world.deliver_copy(&copy).unwrap().item.created
    };
    assert_eq!([created(50), created(20), created(60)], [at(50), at(50), at(60)]);
}

#[test]
fn an_alert_that_found_nobody_is_remembered() {
    let mut world = world();
    world.mailbox.set_alerted(true);
    world.deliver(Precedence::Flash, "Convoy", 1);
    assert!(open(&*world.store, Quota::default()).totals().alerted);
    world.mailbox.set_alerted(false);
    let put = world.mailbox.put_totals();
    world.commit(vec![put]);
    assert!(!open(&*world.store, Quota::default()).totals().alerted);
}

#[test]
fn a_record_that_cannot_be_read_is_passed_over_and_can_be_deleted() {
    let mut world = filled();
    let id = engine::journal::ItemId { mailbox: common::ID, number: 2 };
    world.commit(vec![mailbox::item::put(id, Precedence::Routine, vec![9, 9].into())]);
    assert_eq!(world.numbers(Selector::default()).0.len(), 29);
    assert_eq!(world.fetch(&whole(2)).unwrap_err().code(), 27);
    assert_eq!(world.delete(&DeleteArgument::new(vec![SequenceNumber(2)])), Ok(vec![2]));
    assert!(world.mailbox.agrees(counts(&*world.store)));
}

#[test]
fn a_filter_that_the_level_decides_reads_no_more_than_is_listed() {
    let mut world = world();
    for n in 0..300_u32 {
        let level = if n % 3 == 0 { Precedence::Flash } else { Precedence::Routine };
        world.deliver(level, "Convoy", 1);
    }
    world.read = 0;
    let flash = Selector { limit: Some(10), ..filtered(equal(a::PRIMARY_PRECEDENCE, 4)) };
    assert_eq!(world.numbers(flash), ((0..10).map(|n| 3 * n + 1).collect(), Some(31)));
    assert!(world.read < 20, "{} items read", world.read);
}

#[test]
fn a_user_of_1988_gets_the_forms_of_1988() {
    let mut world = filled();
    world.access = Access::default();
    let query = Query::delete(&world.mailbox, &world.access, &all(None));
    assert_eq!(world.run(query), Ok(Outcome::Deleted(p7::operation::DeleteResult::Of1988)));
    let none = SummarizeArgument::default();
    let result = world.summarize(&none).unwrap();
    assert_eq!((result.count, result.span), (0, None));
}
