//! Defaults of IOS, and lines that undo others.

use super::*;

#[test]
fn interfaces_have_the_bandwidth_of_their_type() {
    let text = |interface: &str| {
        format!("class-map A\n match dscp ef\npolicy-map P\n class A\n  bandwidth 64\n{interface}")
    };
    for (name, bits) in [
        ("Ethernet0/0", 10_000_000),
        ("FastEthernet 0/1", 100_000_000),
        ("GigabitEthernet0/1.7", 1_000_000_000),
        ("serial0", 1_544_000),
    ] {
        let policy = whole(&text(&format!("interface {name}\n service-policy output P\n")));
        let Queueing::ClassBased { rate: Some(rate), .. } = &policy.queueings["P"] else {
            panic!("{:?}", policy.queueings)
        };
        assert_eq!(rate.bits(), bits, "{name}");
    }
    // Nothing can be reserved of an unknown rate.
    for nowhere in ["", "interface Dialer0\n service-policy output P\n"] {
        let found = imported(&text(nowhere));
        assert!(found.policy.queueings.is_empty() && found.unmapped.len() == 1, "{found:?}");
        let one = &found.unmapped[0];
        assert!(one.line == 3 && one.reason.contains("give the interface a bandwidth"), "{one:?}");
        assert!(found.policy.interfaces.values().all(|of| of.queueing.is_none()));
    }
}

#[test]
fn what_is_shaped_without_bursts_has_those_of_ios() {
    // The bucket has Bc and Be, and gets Bc each Tc.
    for (words, burst, interval) in [
        ("64000", 2_000, "125ms"),
        ("1000000", 6_250, "25ms"),
        ("512000 512000", 128_000, "1s"),
        ("512000 512000 8", 64_001, "1s"),
        ("512000 512000 0", 64_000, "1s"),
    ] {
        let policy =
            whole(&format!("policy-map P\n class class-default\n  shape average {words}\n"));
        let Queueing::Shaper { burst: octets, interval: every, .. } = &policy.queueings["P"] else {
            panic!("a shaper")
        };
        assert_eq!((octets.0, every.unwrap().to_string()), (burst, interval.to_owned()), "{words}");
    }
}

#[test]
fn the_rest_of_an_unknown_rate_is_in_percent_or_left_out() {
    let text = |first: &str| {
        format!(
            "class-map A\n match dscp ef\nclass-map B\n match dscp cs1\npolicy-map P\n class A\n  \
             {first}\n class B\n  bandwidth remaining percent 50\n"
        )
    };
    let policy = whole(&text("bandwidth percent 20"));
    let Queueing::ClassBased { branches, .. } = &policy.queueings["P"] else { panic!("classes") };
    assert_eq!(branches[1].share, BranchShare::Percent(40.0));
    let found = reasons(&text("priority 64"));
    assert!(found.iter().any(|(at, why)| *at == 9 && why.contains("what remains")), "{found:?}");
}

#[test]
fn a_class_without_a_queue_waits_with_class_default() {
    let text = |of_b: &str, code: &str| {
        format!(
            "class-map A\n match dscp cs1\nclass-map B\n match dscp {code}\npolicy-map P\n class B\n  \
             {of_b}\n class A\n  bandwidth percent 20\ninterface Serial0\n service-policy output P\n"
        )
    };
    let policy = whole(&text("set dscp cs2", "ef"));
    let Queueing::ClassBased { branches, .. } = &policy.queueings["P"] else { panic!("classes") };
    let classes: Vec<Option<&str>> = branches.iter().map(|b| b.class.as_deref()).collect();
    assert_eq!(classes, [Some("A"), None]);
    // Packets with this mark, or common to a later class, would be queued there.
    let [(7, reason)] = &reasons(&text("set dscp cs1", "ef"))[..] else { panic!("no note") };
    assert!(reason.contains("marked CS1 before it is queued"), "{reason}");
    let [(6, reason)] = &reasons(&text("police 8000", "cs1 ef"))[..] else { panic!("no note") };
    assert!(reason.contains("belong to A, too"), "{reason}");
}

#[test]
fn what_is_opened_again_or_taken_back() {
    let policy = whole(
        "class-map match-any V\n match dscp ef\nclass-map V\n match dscp cs5\n\
         ip access-list extended N\n permit ip host 10.0.0.1 any\nno ip access-list extended N\n\
         ip access-list extended N\n permit ip host 10.0.0.2 any\n\
         access-list 1 permit any\nno access-list 1\naccess-list 1 permit host 10.0.0.3\n\
         class-map N\n match access-group name N\nclass-map O\n match access-group 1\n\
         class-map match-any G\n match any\nno class-map match-any G\n\
         policy-map P\n class V\n  bandwidth percent 9\npolicy-map Q\nno policy-map Q\n\
         interface Serial0\n service-policy output P\n no service-policy output P\n",
    );
    assert_eq!(policy.classes["V"].matches[0].dscp.len(), 2);
    for (class, source) in [("N", "10.0.0.2/32"), ("O", "10.0.0.3/32")] {
        let matches = &policy.classes[class].matches;
        assert_eq!((matches.len(), matches[0].source.unwrap().to_string()), (1, source.into()));
    }
    assert!(!policy.classes.contains_key("G") && policy.interfaces.is_empty());
    let found = reasons(
        "ip access-list extended N\n permit ip any any\n no permit ip any any\n permit tcp any any eq x\n\
         class-map A\n match access-group name N\npolicy-map P\n class A\n  set dscp ef\n\
         interface Serial0\n hold-queue 40 out\n tx-ring-limit 3\n max-reserved-bandwidth 90\n \
         service-policy output P\n no service-policy output Q\n",
    );
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 4, 11, 12, 13, 15], "{found:?}");
}
