//! Marks, meters and drops: packets are classified once, as they arrived.

use super::*;

/// The cases of the chain `name`, which has a single step.
fn cases<'p>(policy: &'p RouterPolicy, name: &str) -> &'p [ClassSteps] {
    let [ChainStep::FirstMatch { classes }] = &policy.chains[name][..] else {
        panic!("{policy:?}")
    };
    classes
}

fn names(cases: &[ClassSteps]) -> Vec<&str> {
    cases.iter().map(|case| case.class.as_deref().unwrap_or("-")).collect()
}

fn mark(code: &str) -> ChainStep {
    ChainStep::Mark { class: None, dscp: code.parse().unwrap() }
}

#[test]
fn police_and_set_are_done_to_the_first_class_that_matches() {
    let policy = whole(
        "access-list 1 permit 10.0.0.0 0.0.0.255\n\
         class-map A\n match dscp af11\nclass-map B\n match access-group 1\n\
         policy-map IN\n class Class-Default\n  drop\n \
         class A\n  police cir 1000000 bc 4000 pir 2000000 be 8000 conform-action transmit \
         exceed-action set-dscp-transmit af12 violate-action drop\n \
         class B\n  set dscp cs1\n  police 64000 2000\n   conform-action transmit\n   exceed-action set-dscp-transmit 0\n\
         interface E0\n service-policy input IN\n",
    );
    let classes = cases(&policy, "IN");
    assert_eq!(names(classes), ["-", "A", "B"], "what is of no class is so wherever it stands");
    assert_eq!(classes[0].steps, [ChainStep::Drop { class: None }]);
    let [ChainStep::Meter { class: None, green, yellow, red, .. }] = &classes[1].steps[..] else {
        panic!("{classes:?}")
    };
    let of = |code: &str| MeterAction::Mark(code.parse().unwrap());
    assert_eq!((*green, *yellow, *red), (MeterAction::Pass, of("AF12"), MeterAction::Drop));
    let [set, ChainStep::Meter { class: None, green, red, .. }] = &classes[2].steps[..] else {
        panic!("{classes:?}")
    };
    assert_eq!((set, *green, *red), (&mark("CS1"), MeterAction::Pass, of("CS0")));
}

#[test]
fn classes_do_not_see_each_other_s_marks() {
    // A and B each would match what the other has marked; C has no steps, but keeps its packets.
    let policy = whole(
        "class-map A\n match dscp ef\nclass-map B\n match dscp cs1\nclass-map C\n match dscp cs2\n\
         class-map match-any D\n match dscp cs2 cs3\n match access-group 100\n\
         access-list 100 permit udp any any\nclass-map E\n match dscp cs4\n\
         policy-map IN\n class A\n  police 8000 conform-action set-dscp-transmit cs1\n \
         class B\n  set dscp ef\n class C\n class D\n  drop\n class E\n\
         interface E0\n service-policy input IN\n",
    );
    let classes = cases(&policy, "IN");
    assert_eq!(names(classes), ["A", "B", "C", "D"], "E keeps nothing from anything");
    let steps: Vec<_> = classes.iter().map(|case| case.steps.len()).collect();
    assert_eq!(steps, [1, 1, 0, 1]);
}

#[test]
fn a_policy_inside_a_class_conditions_what_is_of_the_class() {
    let text = |of_top: &str, direction: &str| {
        format!(
            "class-map A\n match dscp ef\nclass-map B\n match dscp cs1\n\
             policy-map IN\n class B\n  set dscp cs2\n class class-default\n  set dscp cs3\n\
             policy-map TOP\n class A\n class class-default\n  {of_top}\n  service-policy IN\n\
             interface Serial0\n service-policy {direction} TOP\n"
        )
    };
    for (of_top, last) in [("set dscp cs4", Some("CS4")), ("police 8000", None)] {
        let policy = whole(&text(of_top, "input"));
        let top = cases(&policy, "TOP");
        assert_eq!(names(top), ["A", "-"], "{of_top}");
        let [ChainStep::FirstMatch { classes }, own] = &top[1].steps[..] else { panic!("{top:?}") };
        assert_eq!(names(classes), ["B", "-"]);
        assert_eq!(
            (&classes[0].steps, &classes[1].steps),
            (&vec![mark("CS2")], &vec![mark("CS3")])
        );
        let is_meter = matches!(own, ChainStep::Meter { .. });
        assert!(last.map(mark).map_or(is_meter, |mark| mark == *own), "{own:?}");
    }
    // If nothing in the class waits, it has no queue.
    assert!(whole(&text("set dscp cs4", "output")).queueings.is_empty());
    let policy = whole(&text("shape average 64000 64000 0", "output"));
    assert_eq!(policy.interfaces["Serial0"].output, ["TOP"]);
    let Queueing::Shaper { child, .. } = &policy.queueings["TOP"] else { panic!("a shaper") };
    assert!(matches!(**child, Queueing::Fifo { .. }), "{child:?}");
    // At the input nothing waits.
    let [(13, reason)] = &reasons(&text("shape average 64000 64000 0", "input"))[..] else {
        panic!("{:?}", reasons(&text("shape average 64000 64000 0", "input")))
    };
    assert!(reason.contains("nothing waits at the input"), "{reason}");
}

#[test]
fn packets_queued_by_their_new_mark_are_noted() {
    let text = |of_a: &str, of_top: &str| {
        format!(
            "class-map A\n match dscp ef\nclass-map B\n match dscp cs1\n\
             policy-map IN\n class A\n  bandwidth percent 20\n  {of_a}\n class B\n  bandwidth percent 20\n\
             policy-map TOP\n class class-default\n  {of_top}\n  shape average 64000 64000 0\n  \
             service-policy IN\ninterface Serial0\n service-policy output TOP\n"
        )
    };
    let lines = |of_a, of_top| -> Vec<usize> {
        reasons(&text(of_a, of_top)).into_iter().map(|(line, _)| line).collect()
    };
    let nothing = "random-detect dscp-based";
    assert_eq!(lines("set dscp cs1", "queue-limit 20"), [8, 13], "and a limit without a queue");
    assert_eq!(lines("police 8000 exceed-action set-dscp-transmit cs2", nothing), [8, 13]);
    assert_eq!(lines("police 8000", "set dscp cs1"), [13]);
    assert_eq!(lines("police 8000", "police 16000 conform-action set-dscp-transmit cs1"), [13]);
    assert_eq!(lines("police 8000", "police 16000"), [0; 0]);
}

/// A router of two ports with the policy at its input: the dispositions of packets.
#[test]
fn a_router_does_to_each_packet_what_its_first_class_asks_for() {
    use router::packet::{HeaderFields, compose};
    use router::{FlowTables, Packet, PacketVerdict, Time, condition};
    use std::net::IpAddr;
    let policy = whole(
        "access-list 101 permit udp 10.0.0.0 0.0.0.255 any\n\
         class-map A\n match dscp ef\nclass-map B\n match dscp cs1\nclass-map U\n match access-group 101\n\
         policy-map IN\n class A\n  set dscp cs1\n class B\n  set dscp ef\n class U\n  \
         police 8000 1500 conform-action transmit exceed-action set-dscp-transmit cs1\n \
         class class-default\n  drop\n\
         interface E0\n service-policy input IN\n",
    );
    let mut chain =
        condition::build(&policy, &["E0".to_owned()], &policy.chains["IN"], "").unwrap();
    let tables = FlowTables::new(&policy, &["E0".to_owned()]).unwrap();
    let mut after = |code: &str, source: [u8; 4]| {
        let fields = HeaderFields {
            source: IpAddr::from(source),
            destination: IpAddr::from([10, 9, 9, 9]),
            protocol: 17,
            dscp: code.parse().unwrap(),
            ecn: 0,
            ttl: 64,
        };
        let octets = compose(&fields, &[0; 980]).unwrap();
        let mut packet = Packet::read(octets, 0, Time::ZERO).unwrap();
        for step in &mut chain {
            packet = match step.take(Time::ZERO, packet, &tables) {
                PacketVerdict::Pass(packet) => packet,
                _ => return "dropped".to_owned(),
            };
        }
        packet.dscp().to_string()
    };
    assert_eq!(after("EF", [10, 0, 0, 1]), "CS1");
    assert_eq!(after("CS1", [10, 1, 0, 1]), "EF");
    assert_eq!(after("AF11", [10, 0, 0, 1]), "AF11");
    assert_eq!(after("AF11", [10, 0, 0, 1]), "CS1", "1,500 octets at once conform");
    assert_eq!(after("AF11", [10, 1, 0, 1]), "dropped");
}
