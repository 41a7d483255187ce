use super::*;
use crate::burst::value::Weights;
use p1::names::ORName;
use proptest::prelude::*;

/// Groups as TOML, so that what is read is what is expanded.
fn text(seed: u64, groups: &[(String, String)]) -> String {
    let mut text = format!("seed = {seed}\nto = \"/C=IT/ADMD=NET/S=A\"\n");
    for (name, keys) in groups {
        text += &format!("[[group]]\nname = \"{name}\"\n{keys}\n");
    }
    text
}

prop_compose! {
    fn group()(
        precedence in prop_oneof![
            Just("\"flash\"".to_owned()),
            (1..9u32, 0..9u32).prop_map(|(a, b)| format!("{{ flash = {a}, routine = {b} }}")),
        ],
        size in prop_oneof![
            (1..5_000u32).prop_map(|n| format!("\"{n}\"")),
            (1..500u32, 500..90_000u32)
                .prop_map(|(a, b)| format!("{{ from = \"{a}\", to = \"{b}\" }}")),
            (1..9u32).prop_map(|a| format!("{{ \"1kB\" = {a}, \"10kB\" = 1, \"7kB\" = 0 }}")),
        ],
        spacing in prop_oneof![
            Just("\"0\"".to_owned()),
            (1..500u32).prop_map(|n| format!("\"{n}ms\"")),
            (1..500u32).prop_map(|n| format!("{{ poisson = \"{n}ms\" }}")),
        ],
        (count, parallel, start) in (1..60u32, 1..5u32, 0..5_000u32),
    ) -> String {
        format!(
            "precedence = {precedence}\nsize = {size}\nspacing = {spacing}\ncount = {count}\n\
             parallel = {parallel}\nstart = \"{start}ms\""
        )
    }
}

fn groups() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec(group(), 1..5).prop_map(|groups| {
        groups.into_iter().enumerate().map(|(n, keys)| (format!("g{n}"), keys)).collect()
    })
}

fn expand(seed: u64, groups: &[(String, String)]) -> (BurstPlan, Vec<Planned>) {
    let plan = BurstPlan::read(&text(seed, groups)).unwrap();
    let all = messages(&plan).unwrap();
    (plan, all)
}

/// Without what depends on where a group stands.
fn of_group(all: &[Planned], group: usize) -> Vec<(Precedence, u64, Option<Duration>)> {
    let of_group = all.iter().filter(|message| message.group == group);
    of_group.map(|m| (m.precedence, m.size, m.start)).collect()
}

proptest! {
    #[test]
    fn the_same_plan_gives_the_same_messages_within_its_bounds(
        seed: u64, groups in groups()
    ) {
        let (plan, all) = expand(seed, &groups);
        prop_assert_eq!(&all, &messages(&plan).unwrap());
        prop_assert_eq!(all.len() as u64, plan.count());
        for (number, message) in all.iter().enumerate() {
            prop_assert_eq!(message.number as usize, number);
            let group = &plan.groups[message.group];
            prop_assert!(group.precedence.choices().any(|p| p == message.precedence));
            match &group.size {
                Size::OneOf(sizes) => prop_assert!(sizes.choices().any(|s| s == message.size)),
                Size::Range { from, to } => prop_assert!((*from..=*to).contains(&message.size)),
            }
        }
        for (index, group) in plan.groups.iter().enumerate() {
            let messages = of_group(&all, index);
            prop_assert_eq!(messages.len() as u64, group.count);
            for (within, (_, _, start)) in messages.iter().enumerate() {
                let batch = within as u64 / group.parallel;
                match (group.spacing, start) {
                    (_, Some(at)) if batch == 0 => prop_assert_eq!(*at, group.start),
                    (Spacing::None, start) => prop_assert_eq!(*start, None),
                    (Spacing::Fixed(gap), start) => {
                        prop_assert_eq!(*start, Some(group.start + gap * batch as u32));
                    }
                    (Spacing::Poisson(_), start) => prop_assert!(start.is_some()),
                }
            }
            // Those of one batch start together, and none before one that stands before it.
            let starts: Vec<_> = messages.iter().filter_map(|m| m.2).collect();
            prop_assert!(starts.windows(2).all(|w| w[0] <= w[1]));
            for batch in messages.chunks(group.parallel as usize) {
                prop_assert!(batch.iter().all(|m| m.2 == batch[0].2));
            }
        }
    }

    #[test]
    fn a_group_stays_as_it_is_when_others_come_and_go(
        seed: u64, groups in groups(), other in group()
    ) {
        let (_, before) = expand(seed, &groups);
        let mut with = vec![("other".to_owned(), other)];
        with.extend(groups.iter().cloned());
        let (_, after) = expand(seed, &with);
        for index in 0..groups.len() {
            prop_assert_eq!(of_group(&before, index), of_group(&after, index + 1));
        }
    }

    #[test]
    fn times_change_neither_precedences_nor_sizes(seed: u64, groups in groups()) {
        let (_, before) = expand(seed, &groups);
        let changed: Vec<_> = groups
            .iter()
            .map(|(name, keys)| {
                let keys = keys.lines().filter(|line| !line.starts_with("spacing"));
                let keys: Vec<_> = keys.collect();
                (name.clone(), keys.join("\n") + "\nspacing = { poisson = \"3ms\" }")
            })
            .collect();
        let (_, after) = expand(seed, &changed);
        let what = |all: &[Planned]| -> Vec<_> {
            all.iter().map(|m| (m.precedence, m.size)).collect()
        };
        prop_assert_eq!(what(&before), what(&after));
    }
}

fn one(spacing: Spacing, size: Size, count: u64) -> BurstPlan {
    let to: ORName = "/C=IT/ADMD=NET/S=A".parse().unwrap();
    let text = "to = \"/C=IT/ADMD=NET/S=A\"\n[[group]]\nname = \"a\"\nprecedence = \"flash\"\nsize = \"1\"";
    let mut plan = BurstPlan::read(text).unwrap();
    plan.groups[0] = Group {
        to: vec![to],
        precedence: Weights::one(Precedence::Flash),
        size,
        count,
        spacing,
        ..plan.groups[0].clone()
    };
    plan
}

#[test]
fn drawn_values_have_the_distribution_of_the_plan() {
    const COUNT: u64 = 20_000;
    let mean = Duration::from_millis(100);
    let plan = one(Spacing::Poisson(mean), Size::Range { from: 100, to: 1_000_000 }, COUNT);
    let all = messages(&plan).unwrap();
    let last = all.last().unwrap().start.unwrap().as_secs_f64();
    let expected = mean.as_secs_f64() * (COUNT - 1) as f64;
    assert!((last / expected - 1.0).abs() < 0.03, "{last} s, not {expected} s");
    // Of an exponential distribution 1/e is above the mean.
    let gaps = all.windows(2).map(|w| w[1].start.unwrap() - w[0].start.unwrap());
    let above = gaps.filter(|gap| *gap > mean).count() as f64 / COUNT as f64;
    assert!((above - (-1.0f64).exp()).abs() < 0.02, "{above}");
    // Half are below the geometric mean.
    let below = all.iter().filter(|m| m.size < 10_000).count() as f64 / COUNT as f64;
    assert!((below - 0.5).abs() < 0.02, "{below}");

    let text = text(
        7,
        &[(
            "a".to_owned(),
            format!("precedence = {{ flash = 1, routine = 9 }}\nsize = \"1\"\ncount = {COUNT}"),
        )],
    );
    let all = messages(&BurstPlan::read(&text).unwrap()).unwrap();
    let flash = all.iter().filter(|m| m.precedence == Precedence::Flash).count();
    assert!((flash as f64 / COUNT as f64 - 0.1).abs() < 0.01, "{flash}");
}

#[test]
fn seeds_and_names_make_other_messages() {
    let list = |seed: u64, name: &str| {
        let keys = "precedence = \"flash\"\nsize = { from = \"1\", to = \"1MB\" }\ncount = 20";
        of_group(&expand(seed, &[(name.to_owned(), keys.to_owned())]).1, 0)
    };
    assert_ne!(list(1, "a"), list(2, "a"));
    assert_ne!(list(1, "a"), list(1, "b"));
    assert_eq!(list(1, "a"), list(1, "a"));
}
