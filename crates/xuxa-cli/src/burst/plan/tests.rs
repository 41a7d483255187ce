use super::*;
use crate::burst::schedule::messages;

/// A plan with one group: `above` before it and `within` in it.
fn plan(above: &str, within: &str) -> Result<BurstPlan> {
    let to = "to = \"/C=IT/ADMD=NET/PRMD=ACT/S=OPS\"";
    BurstPlan::read(&format!(
        "{to}\n{above}\n[[group]]\nname = \"a\"\nprecedence = \"flash\"\nsize = \"1kB\"\n{within}\n"
    ))
}

fn error_of(result: Result<BurstPlan>) -> String {
    format!("{:#}", result.unwrap_err())
}

#[test]
fn absent_keys_have_their_defaults() {
    let plan = plan("", "").unwrap();
    assert_eq!((plan.seed, plan.count()), (1, 1));
    assert_eq!((plan.deadline, plan.retry_for), (DEADLINE, RETRY_FOR));
    let group = &plan.groups[0];
    assert_eq!((group.parallel, group.associations, group.spacing), (1, 1, Spacing::None));
    assert_eq!((group.start, group.after, group.from.len()), (Duration::ZERO, None, 0));
}

#[test]
fn each_form_of_a_value_is_read() {
    let above = "receive = [\"a\", \"b\"]\nevents = \"e.jsonl\"\ndeadline = \"5min\"";
    let within = "count = 9\nspacing = { poisson = \"20ms\" }\nparallel = 3\nassociations = 4\n\
                  from = [\"x\", \"y\"]\nstart = \"2s\"";
    let read = plan(above, within).unwrap();
    assert_eq!((read.receive.len(), read.events.len()), (2, 1));
    let group = &read.groups[0];
    assert_eq!(group.spacing, Spacing::Poisson(Duration::from_millis(20)));
    assert_eq!((group.parallel, group.associations, group.count), (3, 4, 9));
    assert_eq!(group.from, ["x", "y"]);
    for (text, spacing) in [
        ("0", Spacing::None),
        ("0s", Spacing::None),
        ("3ms", Spacing::Fixed(Duration::from_millis(3))),
    ] {
        assert_eq!(plan("", &format!("spacing = \"{text}\"")).unwrap().groups[0].spacing, spacing);
    }
    let text = "to = \"/C=IT/ADMD=NET/S=A\"\n[[group]]\nname = \"a\"\nsize = { \"1kB\" = 9, \"1MB\" = 0 }\n\
                precedence = { flash = 1, routine = 9 }\n";
    let group = &BurstPlan::read(text).unwrap().groups[0];
    assert_eq!(group.precedence.total(), 10);
    assert_eq!(
        group.precedence.choices().collect::<Vec<_>>(),
        [Precedence::Routine, Precedence::Flash]
    );
    let Size::OneOf(sizes) = &group.size else { panic!("{:?}", group.size) };
    assert_eq!(sizes.choices().collect::<Vec<_>>(), [1_000]);
}

#[test]
fn errors_name_the_line_and_the_remedy() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("sed = 7", "", &["line 2", "sed", "seed"]),
        ("", "sizes = \"1kB\"", &["line 7", "sizes", "size"]),
        ("", "count = 0", &["line 7", "1 to 100000"]),
        ("", "count = 100001", &["line 7", "1 to 100000"]),
        ("", "count = -1", &["line 7"]),
        ("", "parallel = 0", &["line 7", "parallel"]),
        ("", "parallel = 3\nassociations = 2", &["line 7", "at most associations"]),
        ("", "associations = 1000", &["line 7", "256"]),
        ("", "spacing = \"100\"", &["line 7", "no unit"]),
        ("", "spacing = 100", &["line 7", "poisson"]),
        ("", "spacing = { poison = \"1s\" }", &["line 7", "poisson"]),
        ("", "spacing = { poisson = \"0s\" }", &["line 7", "above 0"]),
        ("", "start = \"2w\"", &["line 7", "unknown unit"]),
        ("", "to = []", &["line 7", "recipients"]),
        ("", "to = \"nobody\"", &["nobody", "O/R address"]),
        ("", "after = \"b\"", &["line 7", "no group \"b\""]),
        ("", "after = \"a\"", &["line 7", "before"]),
        ("", "after = { group = \"a\", stage = \"begun\" }", &["line 7", "started"]),
        ("", "after = { stage = \"started\" }", &["line 7", "group"]),
        ("", "after = { group = \"a\", x = 1 }", &["line 7", "\"x\""]),
        ("receive = [\"a\", \"a\"]", "", &["twice"]),
    ];
    for (above, within, expected) in cases {
        let text = error_of(plan(above, within));
        for part in *expected {
            assert!(text.contains(part), "{above:?} {within:?}: {part:?} is not in {text}");
        }
    }
    let sizes = [
        ("\"1 furlong\"", "unit"),
        ("\"2GB\"", "1000 MB"),
        ("{ from = \"1kB\" }", "weight of from"),
        ("{ from = \"2kB\", to = \"1kB\" }", "upward"),
        ("{ from = \"0\", to = \"1kB\" }", "upward"),
        ("{ \"1kB\" = -1 }", "whole number"),
        ("{ \"1kB\" = 0 }", "above 0"),
        ("{ \"1kB\" = 1000001 }", "up to 1000000"),
        ("{}", "above 0"),
        ("10", "a size as"),
    ];
    for (size, expected) in sizes {
        let text = format!(
            "to = \"/C=IT/ADMD=NET/S=A\"\n[[group]]\nname = \"a\"\nprecedence = \"flash\"\nsize = {size}\n"
        );
        let error = error_of(BurstPlan::read(&text));
        assert!(error.contains(expected) && error.contains("line 5"), "{size}: {error}");
    }
    let text = "to = \"/C=IT/ADMD=NET/S=A\"\n[[group]]\nname = \"a\"\nprecedence = \"urgent\"\nsize = \"1kB\"";
    assert!(error_of(BurstPlan::read(text)).contains("urgent"));
    assert!(error_of(BurstPlan::read("")).contains("[[group]]"));
    let nobody = "[[group]]\nname = \"a\"\nprecedence = \"flash\"\nsize = \"1kB\"\n";
    assert!(error_of(BurstPlan::read(nobody)).contains("to = "));
}

#[test]
fn groups_have_names_of_their_own_and_wait_for_what_is_seen() {
    let two = |second: &str| {
        let text =
            format!("[[group]]\nname = \"b\"\nprecedence = \"flash\"\nsize = \"1kB\"\n{second}");
        plan("", &text)
    };
    assert!(
        error_of(two("[[group]]\nname = \"a\"\nprecedence = \"flash\"\nsize = \"1kB\""))
            .contains("same name")
    );
    assert_eq!(two("after = \"a\"").unwrap().groups[1].after, Some((0, Stage::Accepted)));
    let started = "after = { group = \"a\", stage = \"started\" }";
    assert!(error_of(two(started)).contains("event logs in events"));
    let delivered = "after = { group = \"a\", stage = \"delivered\" }";
    assert!(error_of(two(delivered)).contains("or the recipients in receive"));
    let again =
        format!("[[group]]\nname = \"b\"\nprecedence = \"flash\"\nsize = \"1kB\"\n{started}");
    let plan = plan("events = \"e.jsonl\"", &again).unwrap();
    assert_eq!(plan.groups[1].after, Some((0, Stage::Started)));
}

#[test]
fn what_a_plan_comes_to_is_bounded() {
    let group = |n: u32, rest: &str| {
        format!("[[group]]\nname = \"b{n}\"\nprecedence = \"flash\"\n{rest}\n")
    };
    let many = |count: u32, rest: &str| -> String {
        let groups: String = (0..count).map(|n| group(n, rest)).collect();
        error_of(BurstPlan::read(&format!("to = \"/C=IT/ADMD=NET/S=A\"\n{groups}")).and_then(
            |plan| {
                messages(&plan)?;
                Ok(plan)
            },
        ))
    };
    assert!(many(65, "size = \"1kB\"").contains("at most 64"));
    assert!(many(2, "size = \"1kB\"\ncount = 60000").contains("at most 100000"));
    assert!(many(5, "size = \"1kB\"\nparallel = 60\ncount = 60").contains("at most 256"));
    assert!(many(1, "size = \"1GB\"\ncount = 101").contains("at most 100 GB"));
    assert!(many(1, "size = \"1kB\"\ncount = 3\nspacing = \"10000min\"").contains("over a day"));
}

#[test]
fn the_shipped_plans_match_the_study() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/bursts");
    let mut names = Vec::new();
    for file in std::fs::read_dir(&directory).unwrap() {
        let path = file.unwrap().path();
        let plan = BurstPlan::load(&path).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(!messages(&plan).unwrap().is_empty());
        assert_eq!((plan.events.len(), plan.receive.len()), (2, 1), "{path:?}");
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, ["mix.toml", "overlap.toml", "parallel.toml"]);

    // All start at the same moment, the lowest precedence first.
    let plan = BurstPlan::load(&directory.join("parallel.toml")).unwrap();
    let all = messages(&plan).unwrap();
    assert!(all.iter().all(|message| message.size == 10_000_000));
    assert!(all.windows(2).all(|w| w[0].precedence < w[1].precedence && w[0].start < w[1].start));
    assert!(all.last().unwrap().start.unwrap() < Duration::from_millis(100));

    // A Flash of 1 MB while the Routine of 10 MB is in transfer.
    let plan = BurstPlan::load(&directory.join("overlap.toml")).unwrap();
    let all = messages(&plan).unwrap();
    let [outer, inner] = &all[..] else { panic!("{all:?}") };
    assert_eq!((outer.precedence, outer.size), (Precedence::Routine, 10_000_000));
    assert_eq!((inner.precedence, inner.size), (Precedence::Flash, 1_000_000));
    assert_eq!(plan.groups[inner.group].after, Some((outer.group, Stage::Started)));
    assert!(plan.events[0].ends_with("sites/data/naples/events.jsonl"));
}
