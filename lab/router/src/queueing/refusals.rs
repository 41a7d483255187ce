//! Faults of the queueing in a policy, and their messages.

use super::tests::tree;
use super::*;
use crate::policy::OctetSize;

fn refusal(queueing: &str) -> String {
    tree(queueing).err().unwrap_or_else(|| panic!("built: {queueing}")).to_string()
}

#[test]
fn what_is_out_of_range_is_refused_with_its_path() {
    for (queueing, message) in [
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
        assert!(refused.contains(message), "{queueing}: {refused}");
    }
}

#[test]
fn a_tree_is_neither_too_deep_nor_too_large() {
    let fifo = Queueing::default();
    let deep = (1..MAX_DEPTH).fold(fifo.clone(), |child, _| Queueing::Shaper {
        rate: Rate::from_bits(1_000).unwrap(),
        burst: OctetSize(0),
        interval: None,
        overhead: 0,
        child: Box::new(child),
    });
    let branch = |queueing| Branch { class: None, share: BranchShare::None, queueing };
    let deeper = Queueing::Priority { branches: vec![branch(deep.clone())] };
    let build = |queueing| build(&RouterPolicy::default(), &[], queueing, "q", 1);
    assert!(build(&deep).is_ok());
    assert!(build(&deeper).unwrap_err().what.contains("more than 16"));
    let wide = Queueing::Priority { branches: vec![branch(fifo); MAX_PARTS] };
    assert!(build(&wide).is_err());
}

#[test]
fn keys_that_are_not_known_are_refused() {
    for (queueing, message) in [
        (
            "kind = 'class-based'\nrate = '1Mbit'\nbranches = [{ class = 'EF', \
             share = { priority = { rate = '1kbit', brust = 2000 } } }]",
            "brust",
        ),
        ("kind = 'fifo'\ndropper = { kind = 'tail', packets = 9 }", "packets"),
        ("kind = 'fifo'\ndropper = { kind = 'push-out', lowest = ['CS0'] }", "lowest"),
        ("kind = 'fifo'\nlimits = { packets = 9 }", "limits"),
    ] {
        let text = format!("[queueings.wan]\n{queueing}");
        let refused = toml::from_str::<RouterPolicy>(&text).unwrap_err().to_string();
        assert!(refused.contains("unknown field") && refused.contains(message), "{refused}");
    }
    let tail = "[queueings.wan]\nkind = 'fifo'\ndropper = { kind = 'tail' }";
    assert!(toml::from_str::<RouterPolicy>(tail).is_ok());
}

#[test]
fn what_cannot_be_is_refused() {
    let shaped = |child: &str| {
        format!("kind = 'shaper'\nrate = '1Mbit'\nburst = 0\n[queueings.wan.child]\n{child}")
    };
    for (queueing, message) in [
        (
            shaped("kind = 'class-based'\nrate = '2Mbit'\nbranches = []"),
            "queueings.wan.child.rate: 2Mbit: the shaper above lets 1Mbit pass",
        ),
        (
            "kind = 'shaper'\nrate = '1Mbit'\nburst = 12499\ninterval = '100ms'\nchild = { kind = 'fifo' }"
                .to_owned(),
            "queueings.wan.burst: 12499 octets: an interval grants 12500 at once",
        ),
        (
            "kind = 'class-based'\nrate = '1Mbit'\nbranches = [{ class = 'EF', \
             share = { priority = { rate = '1kbit', burst = 1499 } } }]"
                .to_owned(),
            "queueings.wan.branches[0].share.priority.burst: 1499 octets: must be 1500 to",
        ),
        (
            "kind = 'priority'\nbranches = [{ class = 'EF', queueing = { kind = 'fair-flows', \
             queues = 40000 } }, { queueing = { kind = 'fair-flows', queues = 25537 } }]"
                .to_owned(),
            "branches[1].queueing.queues: 65537 queues with those before: at one interface 65536",
        ),
        (
            "kind = 'fifo'\ndropper = { kind = 'trio', green = { from = 0, all = 1, most = 0 }, \
             yellow = { from = 0, all = 1 }, red = { from = 0, all = 1 } }"
                .to_owned(),
            "queueings.wan.dropper.green.most: 0: must be above 0, up to 1",
        ),
    ] {
        let refused = refusal(&queueing);
        assert!(refused.contains(message), "{queueing}: {refused}");
    }
    assert!(tree(&shaped("kind = 'class-based'\nrate = '1Mbit'\nbranches = []")).is_ok());
}

#[test]
fn shares_that_do_not_go_together_are_refused() {
    let class_based = |rate: &str, branches: &str| {
        format!("kind = 'class-based'\n{rate}\nbranches = [{branches}]")
    };
    let rate = "rate = '1Mbit'";
    for (queueing, message) in [
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
            "queueings.wan.branches[0].share: weight 0: must be 0.000001 to 1,000,000",
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
        assert!(refused.contains(message), "{queueing}: {refused}");
    }
    let exact = "{ class = 'EF', share = { percent = 33.3 } }, { class = 'CS1', share = { percent = \
                 66.7 } }";
    assert!(tree(&class_based("", exact)).is_ok());
}

#[test]
fn droppers_out_of_range_are_refused() {
    let fifo = |rest: &str| format!("kind = 'fifo'\n{rest}");
    for (queueing, message) in [
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
        assert!(refused.contains(message), "{queueing}: {refused}");
    }
}
