//! Evaluates the nft rules without a kernel, so that they are tested on kernels without nf_tables
//! too.

use super::*;
use dscp::Dscp;
use proptest::prelude::*;
use router::packet::{HeaderFields, compose};
use router::policy::{
    ChainStep, ClassSteps, Match, MeterAction, MeterProfile, OctetSize, PacketClass,
};
use router::{FlowTables, Packet, PacketVerdict, Rate, Time, condition};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The rules of each chain.
type Chains = BTreeMap<String, Vec<Vec<String>>>;

fn chains(script: &TcScript) -> Chains {
    let mut chains = Chains::new();
    for command in script.commands.iter().filter(|command| command.words[0] == "nft") {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        match &words[1..] {
            ["add", "table", "inet", "lab-eth0"] => {}
            ["add", "chain", "inet", "lab-eth0", name, ..] => {
                assert!(chains.insert((*name).to_owned(), Vec::new()).is_none(), "{command}");
            }
            ["add", "rule", "inet", "lab-eth0", name, rule @ ..] => {
                let rule: Vec<String> = rule.iter().map(|word| (*word).to_owned()).collect();
                let to = ["jump", "goto"].iter().find_map(|verb| {
                    let at = rule.iter().position(|word| word == verb)?;
                    rule.get(at + 1)
                });
                assert!(to.is_none_or(|to| chains.contains_key(to)), "not made yet: {command}");
                chains.get_mut(*name).unwrap().push(rule);
            }
            _ => panic!("{command}"),
        }
    }
    chains
}

/// An IPv4 packet: its code point, and whether the buckets are empty.
#[derive(Clone, Copy, Debug)]
struct Probe {
    is_ipv4: bool,
    dscp: u8,
    over: bool,
}

/// Passes a packet through a chain; `false` if it is dropped.
fn through(chains: &Chains, name: &str, probe: &mut Probe) -> bool {
    'rules: for rule in &chains[name] {
        let mut words: &[&str] = &rule.iter().map(String::as_str).collect::<Vec<_>>();
        loop {
            words = match words {
                [] => break,
                ["iifname" | "oifname", "eth0", rest @ ..] => rest,
                ["meta", "nfproto", family, rest @ ..] => {
                    if (*family == "ipv4") != probe.is_ipv4 {
                        continue 'rules;
                    }
                    rest
                }
                [ip @ ("ip" | "ip6"), "dscp", "set", code, rest @ ..] => {
                    assert_eq!(*ip == "ip", probe.is_ipv4, "{rule:?}");
                    probe.dscp = code.parse().unwrap();
                    rest
                }
                ["ip" | "ip6", "dscp", "{", rest @ ..] => {
                    let end = rest.iter().position(|word| *word == "}").unwrap();
                    let is = |code: &&str| code.trim_end_matches(',') == probe.dscp.to_string();
                    if !rest[..end].iter().any(is) {
                        continue 'rules;
                    }
                    &rest[end + 1..]
                }
                [ip @ ("ip" | "ip6"), "saddr", "0.0.0.0/0" | "::/0", rest @ ..] => {
                    assert_eq!(*ip == "ip", probe.is_ipv4, "{rule:?}");
                    rest
                }
                ["limit", "rate", "over", _, "bytes/second", "burst", _, "bytes", rest @ ..] => {
                    if !probe.over {
                        continue 'rules;
                    }
                    rest
                }
                ["return"] => return true,
                ["drop"] => return false,
                ["goto", to] => return through(chains, to, probe),
                ["jump", to] => {
                    if !through(chains, to, probe) {
                        return false;
                    }
                    &[]
                }
                other => panic!("{other:?} of {rule:?}"),
            };
        }
    }
    true
}

/// The code point after a router's chain; `None` if it drops the packet.
fn routed(policy: &RouterPolicy, probe: Probe) -> Option<u8> {
    let mut chain = condition::build(policy, &[], &policy.chains["c"], "c").unwrap();
    let tables = FlowTables::new(policy, &[]).unwrap();
    let end: IpAddr =
        if probe.is_ipv4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    let dscp = Dscp::new(probe.dscp).unwrap();
    let fields = HeaderFields { source: end, destination: end, protocol: 17, dscp, ecn: 0, ttl: 9 };
    let mut packet = Packet::read(compose(&fields, &[0; 600]).unwrap(), 0, Time::ZERO).unwrap();
    for step in &mut chain {
        packet = match step.take(Time::ZERO, packet, &tables) {
            PacketVerdict::Pass(packet) => packet,
            PacketVerdict::Drop(..) => return None,
            PacketVerdict::Hold => panic!("nothing is held"),
        };
    }
    Some(packet.dscp().number())
}

/// The name of a class, `c0` to `c3`.
fn a_class() -> impl Strategy<Value = Option<String>> {
    prop::option::weighted(0.8, (0u8..4).prop_map(|number| format!("c{number}")))
}

fn an_action() -> impl Strategy<Value = MeterAction> {
    let code = (0u8..6).prop_map(|code| MeterAction::Mark(Dscp::new(code).unwrap()));
    prop_oneof![Just(MeterAction::Pass), Just(MeterAction::Drop), code]
}

/// Steps. The bucket of a meter has `burst` octets: too few for any packet, or enough.
fn a_step(burst: u64) -> impl Strategy<Value = ChainStep> {
    let meter = MeterProfile::TokenBucket {
        rate: Rate::from_bits(8_000).unwrap(),
        burst: OctetSize(burst),
    };
    let leaf = prop_oneof![
        4 => (a_class(), 0u8..6)
            .prop_map(|(class, code)| ChainStep::Mark { class, dscp: Dscp::new(code).unwrap() }),
        1 => a_class().prop_map(|class| ChainStep::Drop { class }),
        2 => (a_class(), an_action(), an_action()).prop_map(move |(class, green, red)| {
            ChainStep::Meter { class, meter: meter.clone(), green, yellow: MeterAction::Pass, red }
        }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let case = (a_class(), prop::collection::vec(inner, 0..3));
        prop::collection::vec(case, 1..4).prop_map(|cases| {
            let mut classes: Vec<ClassSteps> = Vec::new();
            for (class, steps) in cases {
                if classes.iter().all(|case| case.class != class) {
                    classes.push(ClassSteps { class, steps });
                }
            }
            ChainStep::FirstMatch { classes }
        })
    })
}

proptest! {
    #[test]
    fn rules_of_nft_do_what_the_chain_does(
        (over, steps) in any::<bool>().prop_flat_map(|over| {
            let step = a_step(if over { 1 } else { 1_000_000 });
            (Just(over), prop::collection::vec(step, 1..4))
        }),
        classes in prop::collection::vec((prop::collection::btree_set(0u8..6, 1..4), 0u8..3), 4),
    ) {
        let mut policy = RouterPolicy::default();
        for (number, (codes, family)) in classes.into_iter().enumerate() {
            let dscp: Vec<Dscp> = codes.into_iter().filter_map(Dscp::new).collect();
            let source = ["0.0.0.0/0", "::/0"].get(usize::from(family)).map(|p| p.parse().unwrap());
            let matches = vec![Match { dscp, source, ..Match::default() }];
            policy.classes.insert(format!("c{number}"), PacketClass { matches });
        }
        policy.chains.insert("c".to_owned(), steps);
        let attachment = Attachment { input: vec!["c".to_owned()], ..Attachment::default() };
        policy.interfaces.insert("eth0".to_owned(), attachment);
        let script = script(&policy, "eth0", "eth0", &Qdiscs::all(), None).unwrap();
        let chains = chains(&script);
        for (is_ipv4, dscp) in [true, false].into_iter().flat_map(|v4| (0..7).map(move |d| (v4, d))) {
            let mut probe = Probe { is_ipv4, dscp, over };
            let found = chains.is_empty() || through(&chains, "prerouting", &mut probe);
            let is = routed(&policy, Probe { is_ipv4, dscp, over });
            prop_assert_eq!(found.then_some(probe.dscp), is, "{} {}\n{}", is_ipv4, dscp, script);
        }
    }
}
