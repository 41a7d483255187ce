mod conditions;
mod defaults;

use super::*;
use crate::policy_file::PolicyFile;
use router::policy::{BranchShare, ChainStep, ClassSteps, Dropper, MeterAction, Queueing};

fn imported(text: &str) -> Imported {
    let imported = import("test.ios", text).unwrap();
    // Every result can be written as a file with the same policy.
    let written = to_toml(&imported.policy, &[]).unwrap();
    let again =
        PolicyFile::parse("again.toml", &written).unwrap_or_else(|e| panic!("{e}\n{written}"));
    assert_eq!(again.policy(), &imported.policy, "{written}");
    // And a router accepts it.
    let interfaces: Vec<String> = imported.interfaces.iter().cloned().collect();
    imported.policy.check(&interfaces).unwrap_or_else(|e| panic!("{e}\n{written}"));
    imported
}

fn whole(text: &str) -> RouterPolicy {
    let imported = imported(text);
    assert_eq!(imported.unmapped, []);
    imported.policy
}

fn reasons(text: &str) -> Vec<(usize, String)> {
    imported(text).unmapped.into_iter().map(|one| (one.line, one.reason)).collect()
}

#[test]
fn the_paper_s_configuration_is_imported_whole() {
    let text = include_str!("../../../../config/lab/ios/isode-nato-2007.ios");
    let policy = whole(text);
    insta::assert_snapshot!("isode_nato_2007", to_toml(&policy, &[]).unwrap());
}

#[test]
fn access_lists_become_matches() {
    let policy = whole(
        "access-list 10 permit 10.1.0.0 0.0.255.255\n\
         access-list 10 permit host 10.2.0.1\naccess-list 10 permit 10.2.0.2\n\
         access-list 10 remark what this is for\n\
         ip access-list extended WEB\n 10 permit tcp any host 10.0.0.1 eq www 443\n\
         \x20permit udp 10.3.0.0 0.0.0.255 range 5000 5004 any gt 1023 dscp ef log\n\
         ipv6 access-list SIX\n permit ipv6 fd00::/8 any sequence 10\n\
         class-map match-any ALL\n match access-group 10\n match access-group name WEB\n",
    );
    let toml = to_toml(&policy, &[]).unwrap();
    for part in [
        "source = \"10.1.0.0/16\"",
        "source = \"10.2.0.1/32\"",
        "source = \"10.2.0.2/32\"",
        "destination = \"10.0.0.1/32\"\ndestination_port = \"80\"\nprotocol = \"tcp\"\n",
        "destination_port = \"443\"",
        "destination_port = \"1024-65535\"",
        "dscp = [\"EF\"]",
        "source_port = \"5000-5004\"",
    ] {
        assert!(toml.contains(part), "{part}\n{toml}");
    }
    assert_eq!(policy.classes["ALL"].matches.len(), 6);
}

#[test]
fn what_is_denied_is_taken_out_of_what_is_permitted() {
    let policy = whole(
        "access-list 101 deny ip host 10.0.0.1 any\naccess-list 101 permit ip 10.0.0.0 0.0.0.3 any\n\
         class-map C\n match access-group 101\n match not dscp ef\n",
    );
    let matches = &policy.classes["C"].matches;
    let sources: Vec<String> = matches.iter().map(|m| m.source.unwrap().to_string()).collect();
    assert_eq!(sources, ["10.0.0.2/31", "10.0.0.0/32"]);
    assert!(matches.iter().all(|m| m.dscp.len() == 63));
}

#[test]
fn lines_that_a_policy_cannot_express_are_listed() {
    let text = "access-list 10 permit 10.0.0.0 0.255.0.255\n\
        access-list 10 permit host 10.0.0.1\n\
        class-map match-any A\n match access-group 10\n match protocol http\n\
        class-map match-all B\n match dscp ef\n match cos 5\n\
        class-map match-all D\n match not access-group 10\n\
        policy-map P\n class B\n  bandwidth 64\n class A\n  bandwidth percent 10\n  queue-limit 10 ms\n  \
        shape peak 64000\n  blah\n class A7\n  bandwidth 1\n\
        interface Serial0\n service-policy output P\n service-policy input Q\n fair-queue\n";
    let found = reasons(text);
    let reason = |line: usize| {
        let of: Vec<&str> =
            found.iter().filter(|(at, _)| *at == line).map(|(_, why)| why.as_str()).collect();
        of.join("; ")
    };
    for (line, part) in [
        (1, "wildcard mask 0.255.0.255 is not a prefix"),
        (5, "NBAR"),
        (6, "line 8 has to match too"),
        (8, "no match for \"cos\""),
        (10, "a policy cannot express completely"),
        (12, "B is not there, or not mapped"),
        (16, "packets or bytes"),
        (17, "shape peak"),
        (18, "not known here"),
        (19, "A7 is not there"),
        (23, "no policy map Q"),
        (24, "without a policy map"),
    ] {
        assert!(reason(line).contains(part), "{line}: {:?} of {found:#?}", reason(line));
    }
    let one = &imported(text).unmapped[0];
    assert_eq!((one.file.as_str(), one.line), ("test.ios", 1));
    assert_eq!(one.text, "access-list 10 permit 10.0.0.0 0.255.0.255");
}

#[test]
fn queues_shares_and_shapers() {
    let policy = whole(
        "class-map VOICE\n match dscp ef\nclass-map match-any AF\n match ip dscp af11 af12\n match precedence 2\n\
         policy-map OUT\n class VOICE\n  priority percent 20 4000\n class AF\n  bandwidth remaining percent 50\n  \
         random-detect dscp-based\n  random-detect exponential-weighting-constant 6\n  random-detect ecn\n \
         class class-default\n  fair-queue 64\n  queue-limit 128 packets\n\
         policy-map TOP\n class class-default\n  shape average 1000000 8000 0\n  service-policy OUT\n\
         interface Serial0/0\n bandwidth 2000\n service-policy output TOP\n",
    );
    assert_eq!(policy.interfaces["Serial0/0"].queueing.as_deref(), Some("TOP"));
    let Queueing::Shaper { rate, burst, interval, child, .. } = &policy.queueings["TOP"] else {
        panic!("a shaper")
    };
    assert_eq!(
        (rate.bits(), burst.0, interval.unwrap().to_string()),
        (1_000_000, 1_000, "8ms".into())
    );
    let Queueing::ClassBased { rate: None, branches } = &**child else { panic!("{child:?}") };
    let burst = Some(router::policy::OctetSize(4_000));
    assert_eq!(branches[0].share, BranchShare::PriorityPercent { percent: 20.0, burst });
    // Half of the bandwidth that priority leaves.
    let BranchShare::Bandwidth(rate) = branches[1].share else { panic!("{:?}", branches[1].share) };
    assert_eq!(rate.bits(), 400_000);
    let Queueing::Fifo { dropper: Dropper::Wred { weight_exponent, ecn, lines, .. }, limit } =
        &branches[1].queueing
    else {
        panic!("WRED")
    };
    assert_eq!((*weight_exponent, *ecn, limit.packets), (Some(6), true, Some(64)));
    assert_eq!(lines[&"AF11".parse().unwrap()].min, 32, "IOS's own");
    let Queueing::FairFlows { queues, limit, .. } = &branches[2].queueing else { panic!("flows") };
    assert_eq!((*queues, *limit, &branches[2].class), (Some(64), Some(128), &None));
    assert_eq!(policy.classes["AF"].matches.len(), 2);
}

#[test]
fn nesting_without_end_and_limits_are_refused() {
    let found =
        reasons("policy-map P\n class class-default\n  shape average 64000\n  service-policy P\n");
    assert!(found.iter().any(|(_, why)| why.contains("stands in itself")), "{found:?}");
    let found = reasons("class-map A\n match class-map B\nclass-map B\n match class-map A\n");
    assert!(found.iter().any(|(_, why)| why.contains("8 deep, or in a circle")), "{found:?}");
    for (text, part) in [
        ("hello\nworld\n".to_owned(), "not an IOS configuration"),
        (String::new(), "not an IOS configuration"),
        ("\0\u{1}".to_owned(), "control characters"),
        ("!\n".repeat(MAX_LINES + 1), "more than 20000 lines"),
        ("x".repeat(MAX_LINE + 1), "more than 1000 octets"),
    ] {
        let error = import("f", &text).unwrap_err();
        assert!(error.what.contains(part), "{error}");
    }
}

/// Each of these would take hours, or all memory.
#[test]
fn a_few_lines_that_multiply_are_refused_or_cut() {
    let maps = |classes: usize, lines: usize| -> String {
        let map = |at: usize| {
            let line = match at + 1 == classes {
                true => " match dscp ef\n".to_owned(),
                false => format!(" match class-map C{}\n", at + 1),
            };
            format!("class-map match-any C{at}\n{}", line.repeat(lines))
        };
        (0..classes).map(map).collect()
    };
    let found = reasons(&maps(8, 30));
    assert!(found.iter().any(|(_, why)| why.contains("more than 256 matches")), "{found:?}");
    assert_eq!(whole(&maps(8, 2)).classes["C0"].matches.len(), 1, "256 times the same");
    assert!(reasons(&maps(9, 1))[0].1.contains("8 deep"), "one more is too deep");

    // Policies nested in themselves and in one another.
    let classes: String = (0..30).map(|n| format!("class-map A{n}\n match dscp {n}\n")).collect();
    let policy = |name: &str, inner: &str| -> String {
        let class = |n| format!(" class A{n}\n  bandwidth percent 1\n  service-policy {inner}\n");
        format!("policy-map {name}\n{}", (0..30).map(class).collect::<String>())
    };
    let found = reasons(&format!("{classes}{}", policy("P", "P")));
    assert!(found.iter().any(|(_, why)| why.contains("stands in itself")), "{found:?}");
    let nested: String = (0..7).map(|n| policy(&format!("P{n}"), &format!("P{}", n + 1))).collect();
    let error = import("f", &format!("{classes}{nested}policy-map P7\n")).unwrap_err();
    assert!(error.what.contains("takes too long"), "{error}");

    let entry = |what: &str, n: usize| {
        format!("access-list 100 {what} ip host 10.{}.{}.1 any\n", n / 250, n % 250)
    };
    let entries: String = (0..9_000).map(|n| entry("deny", n)).collect();
    let entries = entries + &(9_000..18_000).map(|n| entry("permit", n)).collect::<String>();
    let text = format!("{entries}class-map A\n match access-group 100\n");
    let error = import_within("f", &text, WorkBudget::new(work::MAX_UNITS / 10)).unwrap_err();
    assert!(error.what.contains("takes too long"), "{error}");
    // One policy at interfaces of many rates. Interfaces of one rate share its queueing.
    let at = |different: u32| -> String {
        let one = |n: u32| {
            let rate = 1_000 + n % different;
            format!("interface Serial{n}\n bandwidth {rate}\n service-policy output P\n")
        };
        (0..2_000).map(one).collect()
    };
    let branches = |inner| format!("{classes}{}policy-map Q\n", policy("P", inner));
    let found = imported(&format!("{}{}", branches("Q"), at(2)));
    assert_eq!(found.policy.queueings.len(), 2, "one for each rate");
    let error = import("f", &format!("{}{}", branches("Q"), at(2_000))).unwrap_err();
    assert!(error.what.contains("takes too long"), "{error}");
    // Entries that each result in a hundred matches.
    let text = " permit ipv6 any any\n".repeat(5_000);
    let text = format!("ipv6 access-list S\n deny ipv6 host fd00::1 any\n{text}");
    let found = reasons(&format!("{text}class-map A\n match access-group name S\n"));
    assert!(found.iter().any(|(_, why)| why.contains("permits more than 4096")), "{found:?}");
}

#[test]
fn what_has_nothing_to_do_with_queues_is_passed_over() {
    whole(
        "version 12.4\nservice password-encryption\nhostname R\nenable secret 5 x\nbanner motd ^C\n\
         class of its own\n^C\naccess-list 1 permit any\ninterface Ethernet0\n ip address 10.0.0.1 255.0.0.0\n \
         no shutdown\n duplex auto\nrouter ospf 1\n network 10.0.0.0 0.0.0.255 area 0\nip route 0.0.0.0 0.0.0.0 10.0.0.2\n\
         line vty 0 4\n login\nend\n",
    );
}

#[test]
fn names_may_be_anything() {
    let odd = "x\"'`\\.\u{3}ü";
    let text = format!(
        "class-map {odd}\n match dscp ef\npolicy-map {odd}\n class {odd}\n  bandwidth 64\n  set dscp ef\n\
         interface {odd}\n bandwidth 1000\n service-policy output {odd}\n"
    );
    let policy = whole(&text);
    assert_eq!(policy.interfaces[odd].queueing.as_deref(), Some(odd));
}

/// Every form of line that is read, at least once.
const FORMS: &str = "access-list 10 deny host 10.0.0.1\naccess-list 10 permit 10.0.0.0 0.0.0.255\n\
    ip access-list extended E\n permit tcp any eq www host 10.0.0.2 range 5000 5004 dscp ef\n \
    deny udp 10.1.0.0 0.0.255.255 any gt 1023\n permit ip any any\n\
    ipv6 access-list S\n permit udp fd00::/8 any eq domain\n\
    class-map match-any A\n match access-group 10\n match not ip dscp af11 af12\n\
    class-map match-all B\n match access-group name E\n match class-map A\n match any\n\
    policy-map IN\n class A\n  police cir 64000 bc 2000 pir 128000 be 4000\n   \
    exceed-action set-dscp-transmit af12\n class B\n  set precedence flash\n \
    class class-default\n  drop\npolicy-map OUT\n class A\n  priority percent 10 2000\n class B\n  \
    bandwidth remaining percent 40\n  queue-limit 40 packets\n  random-detect ecn\n  \
    random-detect precedence 3 20 40\n class class-default\n  fair-queue 64\n  shape average 64000 8000\n  \
    service-policy IN\ninterface Serial0/0\n bandwidth 128\n service-policy input IN\n \
    service-policy output OUT\nbanner motd ^C\n";

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(1_000))]

    /// Lines in any order, with exchanged words: the import returns, and its result can be written
    /// and read.
    #[test]
    fn damaged_configurations_do_no_harm(
        lines in proptest::collection::vec(0usize..100, 0..60),
        words in proptest::collection::vec((0usize..100, 0usize..10, 0usize..200), 0..12),
    ) {
        let all: Vec<&str> = FORMS.lines().collect();
        let pool: Vec<&str> = FORMS.split_whitespace().chain(["99999999999999999999", "0", "-1"]).collect();
        let mut text: Vec<Vec<&str>> = lines
            .iter()
            .map(|line| all[line % all.len()].split_whitespace().collect())
            .collect();
        for (line, word, from) in words {
            let count = text.len().max(1);
            if let Some(slot) = text.get_mut(line % count).and_then(|line| line.get_mut(word)) {
                *slot = pool[from % pool.len()];
            }
        }
        let text: Vec<String> = text.iter().map(|words| words.join(" ")).collect();
        let text = text.join("\n");
        if import("test.ios", &text).is_ok() {
            let found = imported(&text);
            proptest::prop_assert!(found.unmapped.iter().all(|one| one.line <= text.lines().count()));
            // The policy is exported, or refused with a reason.
            let names = InterfaceNames::default();
            if let Err(faults) = export(&found.policy, "test.toml", &names) {
                proptest::prop_assert!(!faults.is_empty());
            }
        }
    }
}
