use super::*;
use crate::classify::Tables;
use crate::discipline::Ready;
use crate::policy::Octets;
use crate::testing::{number, packet};
use crate::time::Time;
use dscp::Dscp;

/// A policy with a class for each of some code points, and this queueing.
fn policy(queueing: &str) -> Policy {
    let mut text = String::new();
    for name in ["EF", "CS0", "CS1", "CS2", "CS3", "CS6", "AF11", "AF21", "AF31", "AF41"] {
        text += &format!("[classes.{name}]\nmatch = [{{ dscp = [\"{name}\"] }}]\n");
    }
    toml::from_str(&format!("{text}\n[queueings.wan]\n{queueing}")).unwrap()
}

fn tree(queueing: &str) -> Result<Box<dyn Discipline>, Wrong> {
    let policy = policy(queueing);
    build(&policy, &[], &policy.queueings["wan"], "queueings.wan", 1)
}

fn refusal(queueing: &str) -> String {
    tree(queueing).err().unwrap_or_else(|| panic!("built: {queueing}")).to_string()
}

#[test]
fn strict_priority_sends_the_first_branch_first() {
    let mut tree = tree(
        "kind = 'priority'\n[[queueings.wan.branches]]\nclass = 'EF'\n\
         [[queueings.wan.branches]]\nclass = 'CS6'",
    )
    .unwrap();
    let now = Time::ZERO;
    for (number, dscp) in [Dscp::CS0, Dscp::CS6, Dscp::EF, Dscp::CS6, Dscp::EF].iter().enumerate() {
        let packet = packet(*dscp, 100, 1, number as u64);
        tree.push(now, packet, &Tables::default(), &mut Vec::new());
    }
    let sent: Vec<_> = std::iter::from_fn(|| tree.pop(now)).map(|packet| number(&packet)).collect();
    assert_eq!(sent, [2, 4, 1, 3, 0], "the last branch is the implied one");
    assert_eq!(tree.ready(now), Ready::Empty);
    let mut parts = Vec::new();
    tree.report("wan/output", &mut parts);
    let paths: Vec<_> = parts.iter().map(|part| (part.path.as_str(), part.kind)).collect();
    assert_eq!(
        paths,
        [
            ("wan/output", "priority"),
            ("wan/output/EF", "fifo"),
            ("wan/output/CS6", "fifo"),
            ("wan/output/others", "fifo")
        ]
    );
}

#[test]
fn what_is_out_of_range_is_refused_with_its_path() {
    for (queueing, said) in [
        ("kind = 'fifo'\nlimit = { packets = 0 }", "queueings.wan.limit.packets: 0 packets"),
        ("kind = 'fifo'\nlimit = { packets = 1000001 }", "1000001 packets: must be 1 to 1000000"),
        (
            "kind = 'fifo'\nlimit = { octets = '2000MB' }",
            "queueings.wan.limit.octets: 2000000000 octets: must be",
        ),
        (
            "kind = 'fifo'\nlimit = { delay = ['1us', '1Mbit'] }",
            "wan.limit.delay: 0 octets: must be",
        ),
        (
            "kind = 'shaper'\nrate = '1Mbit'\nburst = 1\ninterval = '0s'\nchild = { kind = 'fifo' }",
            "queueings.wan.interval: must be above 0",
        ),
        (
            "kind = 'priority'\nbranches = [{ class = 'EF', share = { weight = 2.0 } }]",
            "queueings.wan.branches[0].share: branches of \"priority\" have no share",
        ),
        (
            "kind = 'priority'\nbranches = [{ class = 'EF' }, { class = 'EF' }]",
            "queueings.wan.branches[1].class: \"EF\" has a branch already",
        ),
        ("kind = 'priority'\nbranches = [{}, {}]", "branches[1].class: two branches without"),
        ("kind = 'priority'\nbranches = [{ class = 'no' }]", "wan.branches: no class \"no\""),
    ] {
        let refused = refusal(queueing);
        assert!(refused.contains(said), "{queueing}: {refused}");
    }
}

#[test]
fn a_tree_is_neither_too_deep_nor_too_large() {
    let fifo = Queueing::default();
    let deep = (1..MAX_DEPTH).fold(fifo.clone(), |child, _| Queueing::Shaper {
        rate: Rate::from_bits(1_000).unwrap(),
        burst: Octets(0),
        interval: None,
        overhead: 0,
        child: Box::new(child),
    });
    let branch = |queueing| Branch { class: None, share: Share::None, queueing };
    let deeper = Queueing::Priority { branches: vec![branch(deep.clone())] };
    let build = |queueing| build(&Policy::default(), &[], queueing, "q", 1);
    assert!(build(&deep).is_ok());
    assert!(build(&deeper).unwrap_err().what.contains("more than 16"));
    let wide = Queueing::Priority { branches: vec![branch(fifo); MAX_PARTS] };
    assert!(build(&wide).is_err());
}

/// Keeps so many packets of each code point waiting, and gives the octets of each in so many packets
/// sent, in the order of `of`.
fn shares(tree: &mut dyn Discipline, of: &[(Dscp, usize)], packets: usize) -> Vec<usize> {
    let mut sent = vec![0; of.len()];
    let mut waiting = vec![0; of.len()];
    let now = Time::ZERO;
    for made in 0..packets {
        for (place, (dscp, length)) in of.iter().enumerate() {
            while waiting[place] < 3 {
                waiting[place] += 1;
                let mut discarded = Vec::new();
                let packet = packet(*dscp, *length, 1, made as u64);
                tree.push(now, packet, &Tables::default(), &mut discarded);
                assert!(discarded.is_empty());
            }
        }
        let packet = tree.pop(now).unwrap();
        let place = of.iter().position(|(dscp, _)| *dscp == packet.dscp()).unwrap();
        sent[place] += packet.length();
        waiting[place] -= 1;
    }
    sent
}

/// The Bern study's order: expedited forwarding, then network control, then the AF classes and best
/// effort by weights.
const BERN: &str = "
kind = 'priority'
[[queueings.wan.branches]]
class = 'EF'
queueing = { kind = 'fifo', limit = { delay = ['25ms', '5Mbit'] } }
[[queueings.wan.branches]]
class = 'CS6'
[[queueings.wan.branches]]
[queueings.wan.branches.queueing]
kind = 'weighted-fair'
branches = [
    { class = 'AF11', share = { weight = 40 }, queueing = { kind = 'fifo', limit = { packets = 200 }, dropper = { kind = 'trio', green = { from = 80, all = 100 }, yellow = { from = 20, all = 80 }, red = { from = 0, all = 20 } } } },
    { class = 'AF21', share = { weight = 20 } },
    { class = 'AF31', share = { weight = 20 } },
    { class = 'AF41', share = { weight = 10 } },
    { share = { weight = 10 } },
]
";

#[test]
fn the_order_of_bern_is_priority_over_weighted_fair() {
    let mut tree = tree(BERN).unwrap();
    let af = |class| (Dscp::assured(class, 1).unwrap(), 1_000);
    let assured = [af(1), af(2), af(3), af(4), (Dscp::CS0, 500)];
    let sent = shares(&mut *tree, &assured, 6_000);
    let whole: usize = sent.iter().sum();
    for (octets, percent) in sent.iter().zip([40.0, 20.0, 20.0, 10.0, 10.0]) {
        let share = *octets as f64 * 100.0 / whole as f64;
        assert!((share - percent).abs() < 0.1, "{sent:?}");
    }
    for dscp in [Dscp::CS6, Dscp::EF] {
        tree.push(Time::ZERO, packet(dscp, 100, 1, 1), &Tables::default(), &mut Vec::new());
    }
    let next = [(); 3].map(|()| tree.pop(Time::ZERO).unwrap().dscp());
    assert_eq!(next[..2], [Dscp::EF, Dscp::CS6]);
}

/// The NATO study's three queues.
const THREE: &str = "
kind = 'shaper'
rate = '512kbit'
burst = '512kbit'
[queueings.wan.child]
kind = 'class-based'
branches = [
    { class = 'CS1', share = { percent = 50 } },
    { class = 'CS2', share = { percent = 50 } },
    { share = { percent = 0 } },
]
";

/// The same without its shaper.
fn three() -> String {
    THREE[THREE.find("kind = 'class").unwrap()..].to_owned()
}

#[test]
fn what_is_not_used_goes_to_the_others_by_their_reservations() {
    let of = |dscps: &[Dscp]| {
        let of: Vec<_> = dscps.iter().map(|dscp| (*dscp, 1_000)).collect();
        let sent = shares(&mut *tree(&three()).unwrap(), &of, 5_000);
        let whole: usize = sent.iter().sum();
        sent.into_iter().map(|octets| octets as f64 / whole as f64).collect::<Vec<_>>()
    };
    let all = of(&[Dscp::CS1, Dscp::CS2, Dscp::CS0]);
    let expected = [50.0 / 101.0, 50.0 / 101.0, 1.0 / 101.0];
    assert!(all.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3), "{all:?}");
    let two = of(&[Dscp::CS1, Dscp::CS0]);
    assert!((two[0] - 50.0 / 51.0).abs() < 1e-3, "{two:?}");
    assert_eq!(of(&[Dscp::CS0]), [1.0]);
    assert!(tree(THREE).is_ok());
}

/// EF is first, and may have 1 Mbit/s of 4.
const LOW_LATENCY: &str = "
kind = 'class-based'
rate = '4Mbit'
branches = [
    { class = 'EF', share = { priority = { rate = '1Mbit', burst = 2000 } } },
    { class = 'CS1', share = { percent = 25 } },
    { share = { weight = 3 } },
]
";

#[test]
fn low_latency_is_first_and_policed_while_others_wait() {
    let run = |others: bool| {
        let mut tree = tree(LOW_LATENCY).unwrap();
        let (mut accepted, mut discarded) = (0, Vec::new());
        // 2 Mbit/s of EF for a second: a packet of 250 octets each millisecond.
        for ms in 0..1_000 {
            let now = Time(ms * 1_000_000);
            if others {
                let other = packet(Dscp::CS1, 1_000, 2, ms);
                tree.push(now, other, &Tables::default(), &mut Vec::new());
            }
            let dropped = discarded.len();
            tree.push(now, packet(Dscp::EF, 250, 1, ms), &Tables::default(), &mut discarded);
            if discarded.len() == dropped {
                accepted += 250;
                assert_eq!(tree.pop(now).unwrap().dscp(), Dscp::EF, "before all others");
            }
        }
        assert!(discarded.iter().all(|(_, cause)| *cause == crate::count::Cause::Policed));
        accepted
    };
    assert_eq!(run(false), 250_000, "alone it has all");
    let allowed = 125_000 + 2_000;
    assert!((allowed - 500..=allowed).contains(&run(true)), "{}", run(true));
}

#[test]
fn what_priority_leaves_is_shared() {
    // CS1 has 25 % of 4 Mbit/s; what is left, 2 Mbit/s, goes to the others.
    let of = [(Dscp::CS1, 1_000), (Dscp::CS0, 1_000)];
    let sent = shares(&mut *tree(LOW_LATENCY).unwrap(), &of, 3_000);
    assert!(sent[0].abs_diff(1_000_000) <= 2_000, "{sent:?}");
}

#[test]
fn shares_that_do_not_go_together_are_refused() {
    let class_based = |rate: &str, branches: &str| {
        format!("kind = 'class-based'\n{rate}\nbranches = [{branches}]")
    };
    let rate = "rate = '1Mbit'";
    for (queueing, said) in [
        (
            class_based(
                "",
                "{ class = 'EF', share = { percent = 60 } }, { share = { percent = 41 } }",
            ),
            "queueings.wan.branches: 101 percent are reserved in all",
        ),
        (
            class_based(
                rate,
                "{ class = 'EF', share = { bandwidth = '900kbit' } }, { share = { percent = 11 } }",
            ),
            "queueings.wan.branches: 1010kbit are reserved in all, of 1Mbit",
        ),
        (
            class_based(rate, "{ class = 'EF', share = { priority = { rate = '1001kbit' } } }"),
            "1001kbit are reserved in all, of 1Mbit",
        ),
        (
            class_based("", "{ class = 'EF', share = { bandwidth = '900kbit' } }"),
            "queueings.wan.branches[0].share: what is shared is not known: give \"rate\"",
        ),
        (
            class_based(rate, "{ share = { percent = -1 } }"),
            "queueings.wan.branches[0].share: -1 percent: must be 0 to 100",
        ),
        (
            class_based(rate, "{ class = 'EF', share = { weight = 0 } }"),
            "queueings.wan.branches[0].share: weight 0: must be above 0",
        ),
        (
            "kind = 'weighted-fair'\nbranches = [{ share = { percent = 5 } }]".to_owned(),
            "queueings.wan.branches[0].share: branches of \"weighted-fair\" have weights",
        ),
        (
            "kind = 'round-robin'\nquantum = 0\nbranches = [{}]".to_owned(),
            "queueings.wan.quantum: 0 octets: must be 1 to",
        ),
    ] {
        let refused = refusal(&queueing);
        assert!(refused.contains(said), "{queueing}: {refused}");
    }
    let exact = "{ class = 'EF', share = { percent = 33.3 } }, { class = 'CS1', share = { percent = \
                 66.7 } }";
    assert!(tree(&class_based("", exact)).is_ok());
}

#[test]
fn droppers_out_of_range_are_refused() {
    let fifo = |rest: &str| format!("kind = 'fifo'\n{rest}");
    for (queueing, said) in [
        (
            fifo("dropper = { kind = 'red', line = { min = 9, max = 8, denominator = 1 } }"),
            "queueings.wan.dropper.line.min: 9 packets: must be 0 to 8",
        ),
        (
            fifo(
                "dropper = { kind = 'wred', lines = { CS1 = { min = 1, max = 8, denominator = 0 } } }",
            ),
            "queueings.wan.dropper.lines.CS1.denominator: 0: must be 1 to 65536",
        ),
        (
            fifo("dropper = { kind = 'wred', lines = {}, weight_exponent = 17 }"),
            "queueings.wan.dropper.weight_exponent: 17: must be 1 to 16",
        ),
        (
            fifo(
                "limit = { octets = 9000 }\ndropper = { kind = 'trio', green = { from = 0, all = 1 }, \
                 yellow = { from = 0, all = 1 }, red = { from = 0, all = 1 } }",
            ),
            "queueings.wan.dropper: needs a limit in packets",
        ),
        (
            fifo(
                "dropper = { kind = 'trio', green = { from = 2, all = 1 }, \
                 yellow = { from = 0, all = 1 }, red = { from = 0, all = 1 } }",
            ),
            "queueings.wan.dropper.green: from 2 to 1 percent",
        ),
        (
            fifo("dropper = { kind = 'push-out', lowest_first = ['CS0', 'CS0'] }"),
            "queueings.wan.dropper.lowest_first: CS0 stands there twice",
        ),
        (
            "kind = 'fair-flows'\ndropper = { kind = 'push-out' }".to_owned(),
            "queueings.wan.dropper: push-out is for a single queue",
        ),
        ("kind = 'fair-flows'\nqueues = 0".to_owned(), "wan.queues: 0 queues: must be 1 to 65536"),
        ("kind = 'fair-flows'\nlimit = 0".to_owned(), "wan.limit: 0 packets: must be 1 to"),
    ] {
        let refused = refusal(&queueing);
        assert!(refused.contains(said), "{queueing}: {refused}");
    }
}
