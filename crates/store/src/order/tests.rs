use super::*;
use base::precedence_queue::SHARE;
use bytes::Bytes;
use engine::journal::QueueId;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn put(precedence: Precedence, n: u64) -> Op {
    Op::PutEntry { precedence, id: EntryId(n), queue: QueueId(1), record: Bytes::from_static(b"x") }
}

fn delete(precedence: Precedence, n: u64) -> Op {
    Op::DeleteEntry { precedence, id: EntryId(n) }
}

fn body(n: u64) -> Op {
    Op::PutBody { id: BodyId(n), source: BodySource::Octets(Bytes::from_static(b"body")) }
}

fn changes(ops: &[Op]) -> Changes {
    Changes::from_batch(&ops.to_vec())
}

/// All groups, until nothing waits.
fn groups(order: &mut Order<u64>) -> Vec<Vec<u64>> {
    std::iter::from_fn(|| Some(order.take()).filter(|group| !group.is_empty())).collect()
}

const ROUTINE: Precedence = Precedence::Routine;
const FLASH: Precedence = Precedence::Flash;

#[test]
fn a_high_one_goes_before_what_waits_and_alone() {
    let mut order = Order::default();
    for n in 0..10 {
        order.push(ROUTINE, changes(&[put(ROUTINE, n)]), 1_000, n);
    }
    order.push(FLASH, changes(&[put(FLASH, 10)]), 1_000, 10);
    order.push(Precedence::Override, changes(&[put(Precedence::Override, 11)]), 1_000, 11);
    assert_eq!(order.highest(), Some(Precedence::Override));
    assert_eq!(groups(&mut order), [vec![11], vec![10], (0..10).collect()]);
}

#[test]
fn groups_are_bounded_by_number_and_by_octets() {
    let mut order = Order::default();
    for n in 0..200 {
        order.push(ROUTINE, changes(&[put(ROUTINE, n)]), 10, n);
        order.push(FLASH, changes(&[put(FLASH, n)]), 10, 1_000 + n);
    }
    for group in groups(&mut order) {
        let most = if group[0] >= 1_000 { URGENT_GROUP.batches } else { GROUP.batches };
        assert!(group.len() <= most, "{group:?}");
    }
    for n in 0..5 {
        order.push(ROUTINE, changes(&[body(n)]), GROUP.octets / 2, n);
    }
    order.push(ROUTINE, changes(&[body(5)]), 10 * GROUP.octets, 5);
    assert_eq!(groups(&mut order), [vec![0, 1], vec![2, 3], vec![4], vec![5]]);
}

#[test]
fn what_a_high_one_has_to_follow_goes_before_it_and_nothing_else_does() {
    let mut order = Order::default();
    order.push(ROUTINE, changes(&[put(ROUTINE, 1)]), 1, 1);
    order.push(ROUTINE, changes(&[put(ROUTINE, 2), put(ROUTINE, 3)]), 1, 2);
    order.push(ROUTINE, changes(&[delete(ROUTINE, 3), put(ROUTINE, 4)]), 1, 3);
    order.push(FLASH, changes(&[delete(ROUTINE, 4)]), 1, 4);
    assert_eq!(groups(&mut order), [vec![2, 3, 4], vec![1]]);
}

#[test]
fn one_group_of_eight_is_for_the_longest_wait() {
    let mut order = Order::default();
    order.push(ROUTINE, changes(&[put(ROUTINE, 0)]), 1, 0);
    order.push(ROUTINE, changes(&[put(ROUTINE, 1)]), 1, 1);
    for n in 2..200 {
        order.push(FLASH, changes(&[put(FLASH, n)]), 1, n);
    }
    let taken = groups(&mut order);
    let at = taken.iter().position(|group| group.contains(&0)).unwrap();
    assert_eq!((at + 1, taken[at].clone()), (SHARE as usize, vec![0, 1]));
}

#[test]
fn a_key_is_not_remembered_again_before_it_is_forgotten() {
    let key = Digest([7; 32]);
    let remember =
        |until| Op::PutSeen { key, until: Utc(until), record: Bytes::new(), absent: false };
    for (first, second) in [
        (Op::ForgetSeen { before: Utc(9), most: usize::MAX }, remember(5)),
        (remember(5), Op::ForgetSeen { before: Utc(9), most: usize::MAX }),
    ] {
        let mut order = Order::default();
        order.push(ROUTINE, changes(&[first]), 1, 1);
        order.push(FLASH, changes(&[second]), 1, 2);
        assert_eq!(groups(&mut order), [vec![1, 2]]);
    }
    let mut order = Order::default();
    order.push(ROUTINE, changes(&[Op::ForgetSeen { before: Utc(9), most: usize::MAX }]), 1, 1);
    order.push(FLASH, changes(&[remember(9)]), 1, 2);
    assert_eq!(groups(&mut order), [vec![2], vec![1]], "it is not forgotten by that");
}

fn op() -> impl Strategy<Value = Op> {
    let level = prop::sample::select(Precedence::ALL.to_vec());
    let name = prop::sample::select(vec!["a", "b"]);
    prop_oneof![
        (level.clone(), 0u64..12).prop_map(|(level, n)| put(level, n)),
        (level, 0u64..12).prop_map(|(level, n)| delete(level, n)),
        (0u64..8).prop_map(body),
        (0u64..8).prop_map(|n| Op::DeleteBody { id: BodyId(n) }),
        (0u8..8, 0u64..20).prop_map(|(n, until)| Op::PutSeen {
            key: Digest([n; 32]),
            until: Utc(until),
            record: Bytes::new(),
            absent: false,
        }),
        (0u64..20).prop_map(|before| Op::ForgetSeen { before: Utc(before), most: usize::MAX }),
        name.prop_map(|name| Op::PutMeta { name: name.to_owned(), value: Bytes::new() }),
    ]
}

/// The data in a queue, each with the number of the batch that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    entries: BTreeMap<(Precedence, EntryId), u64>,
    bodies: BTreeMap<BodyId, u64>,
    seen: BTreeMap<Digest, (Utc, u64)>,
    meta: BTreeMap<String, u64>,
}

impl Model {
    fn apply(&mut self, batch: &Batch, by: u64) {
        for op in batch {
            match op {
                Op::PutEntry { precedence, id, .. } => {
                    self.entries.insert((*precedence, *id), by);
                }
                Op::DeleteEntry { precedence, id } => {
                    self.entries.remove(&(*precedence, *id));
                }
                Op::PutBody { id, .. } => {
                    self.bodies.insert(*id, by);
                }
                Op::DeleteBody { id } => {
                    self.bodies.remove(id);
                }
                Op::PutSeen { key, until, .. } => {
                    self.seen.insert(*key, (*until, by));
                }
                Op::ForgetSeen { before, .. } => {
                    self.seen.retain(|_, (until, _)| *until >= *before);
                }
                Op::PutMeta { name, .. } | Op::ReplaceMeta { name, .. } => {
                    self.meta.insert(name.clone(), by);
                }
            }
        }
    }
}

proptest! {
    /// For any arrivals, groups and failures: each batch is committed once; the store finally
    /// holds what it would hold if the batches had been committed as they came; and no batch is
    /// passed by more groups than its share permits.
    #[test]
    fn the_outcome_is_that_of_the_order_in_which_they_came(
        steps in prop::collection::vec(
            prop::option::weighted(
                0.75,
                (0usize..6, prop::collection::vec(op(), 1..4), 1usize..200_000, prop::bool::weighted(0.9)),
            ),
            1..120,
        )
    ) {
        let mut order = Order::default();
        let mut batches: Vec<(Batch, bool)> = Vec::new();
        let (mut made, mut taken) = (Model::default(), Vec::new());
        let mut passed_by: BTreeMap<u64, usize> = BTreeMap::new();
        let ends = steps.len();
        let all = steps.into_iter().map(Some).chain(std::iter::repeat_n(None, ends));
        for step in all {
            if let Some(Some((level, batch, octets, succeeds))) = step {
                let number = batches.len() as u64;
                passed_by.insert(number, (order.len() + 1) * SHARE as usize);
                order.push(Precedence::ALL[level], Changes::from_batch(&batch), octets, number);
                batches.push((batch, succeeds));
                continue;
            }
            let group = order.take();
            for number in &group {
                let (batch, succeeds) = &batches[*number as usize];
                if *succeeds {
                    made.apply(batch, *number);
                }
                passed_by.remove(number);
            }
            taken.extend(group);
            for left in passed_by.values_mut() {
                *left -= 1;
                prop_assert!(*left > 0, "passed too often");
            }
        }
        prop_assert_eq!(order.len(), 0);
        prop_assert!(order.last.is_empty() && order.levels.is_empty() && order.forgetting.is_empty());
        let each: BTreeSet<u64> = taken.iter().copied().collect();
        prop_assert_eq!((each.len(), taken.len()), (batches.len(), batches.len()));
        let mut as_they_came = Model::default();
        for (number, (batch, succeeds)) in batches.iter().enumerate() {
            if *succeeds {
                as_they_came.apply(batch, number as u64);
            }
        }
        prop_assert_eq!(made, as_they_came);
    }
}
