//! Whatever a user asks for, an operation ends with a result or an error, in a bounded number of steps.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where it fails, in helpers too"
)]

mod common;

use base::Precedence;
use common::World;
use mailbox::attributes::AVAILABLE;
use mailbox::testing::at;
use p7::auto_action::AutoAlert;
use p7::filter::{Assertion, Substring};
use p7::operation::{
    DeleteArgument, DeleteItems, FetchArgument, FetchItem, ListArgument, RegisterMsArgument,
    SummarizeArgument,
};
use p7::testing::{class, numbers, value};
use p7::{AttributeSelection, EntryClass, Filter, FilterItem, Range, Selector, SequenceNumber};
use proptest::prelude::*;
use std::sync::Arc;
use store::ModelStore;

/// More steps than pages of a small mailbox.
const MAX_STEPS: usize = 400;

fn world() -> World {
    let mut world = World::new(Arc::new(ModelStore::default()));
    for (level, octets) in Precedence::ALL.into_iter().zip([0, 1, 10, 100, 1000, 10_000]) {
        world.now += 1;
        world.deliver(level, "Convoy", octets);
        let report = world.copies.report(world.now(), level).unwrap();
        world.commit(report.put());
        let _ = world.deliver_copy(&report).unwrap();
    }
    world
}

/// A filter of attribute types that the store has, with values that mostly do not fit them.
fn available_filter() -> impl Strategy<Value = Filter> {
    let item = (0..AVAILABLE.len(), value().boxed(), 0..4).prop_map(|(kind, value, form)| {
        let attribute_type = AVAILABLE[kind].oid();
        let assertion = Assertion { attribute_type: attribute_type.clone(), value: value.clone() };
        Filter::Item(match form {
            0 => FilterItem::Present(attribute_type),
            1 => FilterItem::Equality(assertion),
            2 => FilterItem::LessOrEqual(assertion),
            _ => FilterItem::Substrings { attribute_type, strings: vec![Substring::Any(value)] },
        })
    });
    item.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::And),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::Or),
            inner.prop_map(|one| Filter::Not(Box::new(one))),
        ]
    })
}

/// A selector with such a filter, and any range and limit.
fn any_selector() -> impl Strategy<Value = Selector> {
    let end = || prop::option::of(prop_oneof![0..20_u32, any::<u32>()]);
    let filter = prop::option::of(available_filter().boxed());
    (filter, end(), end(), any::<bool>(), prop::option::of(prop_oneof![-1..5_i64, any::<i64>()]))
        .prop_map(|(filter, from, to, times, limit)| {
            let time = |end: Option<u32>| end.map(|seconds| p1::Time::from(at(u64::from(seconds))));
            let range = match times {
                true => Range::CreationTime { from: time(from), to: time(to) },
                false => Range::SequenceNumber {
                    from: from.map(SequenceNumber),
                    to: to.map(SequenceNumber),
                },
            };
            Selector { range: Some(range), filter, limit, ..Selector::default() }
        })
}

/// Attributes that the store has.
fn any_selection() -> impl Strategy<Value = Vec<AttributeSelection>> {
    let number = || prop::option::of(any::<i64>());
    let one = (0..AVAILABLE.len(), number(), number()).prop_map(|(kind, from, count)| {
        AttributeSelection { attribute_type: AVAILABLE[kind].oid(), from, count }
    });
    prop::collection::vec(one, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn operations_end(
        entry_class in prop_oneof![4 => Just(EntryClass::DELIVERY), 1 => class()],
        selector in any_selector().boxed(),
        selection in prop::option::of(any_selection()).boxed(),
        numbers in numbers(),
        is_1994 in any::<bool>(),
    ) {
        let mut world = world();
        world.access.is_1994 = is_1994;
        let list = ListArgument {
            entry_class,
            selector: selector.clone(),
            requested_attributes: selection.clone(),
            extensions: vec![],
        };
        let _ = world.list(&list);
        let fetch = FetchArgument {
            entry_class,
            item: FetchItem::Search(selector.clone()),
            requested_attributes: selection.clone(),
            extensions: vec![],
        };
        if let Ok(fetched) = world.fetch(&fetch) {
            world.octets(&fetched);
        }
        let types = selection.unwrap_or_default();
        let summary_requests = types.into_iter().map(|one| one.attribute_type).collect();
        let summarize = SummarizeArgument {
            entry_class,
            selector: selector.clone(),
            summary_requests,
            extensions: vec![],
        };
        let _ = world.summarize(&summarize);
        for items in [DeleteItems::SequenceNumbers(numbers), DeleteItems::Selector(selector)] {
            let _ = world.delete(&DeleteArgument { entry_class, items, extensions: vec![] });
        }
        prop_assert!(world.steps < MAX_STEPS, "{} steps", world.steps);
        prop_assert!(world.mailbox.agrees(common::counts(&*world.store)));
    }

    #[test]
    fn any_filter_of_available_types_is_evaluated(filter in available_filter().boxed()) {
        let mut world = world();
        let selector = common::filtered(filter.clone());
        let listed = world.list(&ListArgument { selector, ..ListArgument::default() });
        let alert = AutoAlert { filter: Some(filter), ..AutoAlert::default() };
        let argument = RegisterMsArgument {
            auto_action_registrations: vec![alert.registration(1)],
            ..RegisterMsArgument::default()
        };
        // What no list takes would never raise an alert.
        let registered = world.registrations.register(&argument);
        prop_assert_eq!(registered.is_ok(), listed.is_ok());
        let Ok((registrations, _)) = registered else { return Ok(()) };
        let copy = world.copy(Precedence::Flash, "Convoy", 10);
        let delivered = world.deliver_copy(&copy).unwrap();
        let item = delivered.attributes().unwrap();
        prop_assert!(registrations.alerts(&item).len() <= 1);
    }
}
