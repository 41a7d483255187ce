use super::*;
use crate::classify::Tables;
use crate::discipline::Ready;
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
        ("kind = 'fifo'\nlimit = { packets = 1000001 }", "1000001 packets: a queue holds 1 to"),
        ("kind = 'fifo'\nlimit = { octets = '2000MB' }", "queueings.wan.limit.octets: comes to 2"),
        ("kind = 'fifo'\nlimit = { delay = ['1us', '1Mbit'] }", "wan.limit.delay: comes to 0 oct"),
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
