//! Any policy that IOS has.

use super::*;
use dscp::Dscp;
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use router::policy::{
    Attachment, Branch, BranchShare, ChainStep, ClassSteps, Dropper, IpPrefix, IpProtocol, Match,
    MeterAction, MeterProfile, OctetSize, PacketClass, PortRange, QueueLimit, Span, WredLine,
};
use std::time::Duration;

const CLASSES: [&str; 4] = ["a", "b-1", "C", "d/2"];
const PORTS: [&str; 3] = ["lan", "wan", "p2"];

fn dscp() -> impl Strategy<Value = Dscp> {
    (0u8..64).prop_map(|number| Dscp::new(number).unwrap())
}

fn rate(kbit: std::ops::Range<u64>) -> impl Strategy<Value = Rate> {
    kbit.prop_map(|kbit| Rate::from_bits(kbit * 1_000).unwrap())
}

fn prefix(is_ipv4: bool) -> impl Strategy<Value = Option<IpPrefix>> {
    let most: u8 = if is_ipv4 { 32 } else { 128 };
    option::of((any::<u128>(), 0u8..=most).prop_map(move |(bits, length)| {
        let four = u32::try_from(bits >> 96).unwrap();
        let address = if is_ipv4 {
            std::net::Ipv4Addr::from(four).into()
        } else {
            std::net::Ipv6Addr::from(bits).into()
        };
        IpPrefix::new(address, length).unwrap()
    }))
}

fn ports() -> impl Strategy<Value = Option<PortRange>> {
    option::of(
        (any::<u16>(), any::<u16>())
            .prop_map(|(a, b)| PortRange { first: a.min(b), last: a.max(b) }),
    )
}

fn a_match() -> impl Strategy<Value = Match> {
    let codes = prop_oneof![3 => btree_set(dscp(), 0..4), 1 => btree_set(dscp(), 0..64)];
    let addresses = any::<bool>().prop_flat_map(|is_ipv4| (prefix(is_ipv4), prefix(is_ipv4)));
    let protocol = option::of(prop_oneof![Just(6u8), Just(17), Just(132), any::<u8>()]);
    (codes, addresses, protocol, ports(), ports()).prop_map(
        |(codes, (source, destination), protocol, source_port, destination_port)| {
            let with_ports = protocol.is_some_and(|of| [6, 17, 132].contains(&of));
            Match {
                dscp: codes.into_iter().collect(),
                source,
                destination,
                protocol: protocol.map(IpProtocol),
                source_port: source_port.filter(|_| with_ports),
                destination_port: destination_port.filter(|_| with_ports),
                ..Match::default()
            }
        },
    )
}

fn port() -> impl Strategy<Value = Option<String>> {
    prop::sample::select(&PORTS[..]).prop_map(|port| Some(port.to_owned()))
}

fn a_class() -> impl Strategy<Value = PacketClass> {
    let with_interface = (
        port(),
        prop_oneof![
            Just(Match::default()),
            dscp().prop_map(|dscp| Match { dscp: vec![dscp], ..Match::default() }),
            prefix(true).prop_map(|of| Match {
                source: of,
                protocol: of.map(|_| IpProtocol(6)),
                ..Match::default()
            }),
        ],
    );
    prop_oneof![
        4 => vec(a_match(), 1..4),
        1 => with_interface.prop_map(|(interface, of)| vec![Match { interface, ..of }]),
        1 => (port(), a_match()).prop_map(|(interface, of)| {
            vec![of, Match { interface, ..Match::default() }]
        }),
    ]
    .prop_map(|matches| PacketClass { matches })
}

fn action() -> impl Strategy<Value = MeterAction> {
    prop_oneof![
        Just(MeterAction::Pass),
        Just(MeterAction::Drop),
        dscp().prop_map(MeterAction::Mark)
    ]
}

fn octets() -> impl Strategy<Value = OctetSize> {
    (1_000u64..=512_000_000).prop_map(OctetSize)
}

fn meter() -> impl Strategy<Value = ChainStep> {
    let profile = prop_oneof![
        (rate(8..9_000), octets())
            .prop_map(|(rate, burst)| MeterProfile::TokenBucket { rate, burst }),
        (rate(8..9_000), octets(), octets()).prop_map(|(cir, cbs, ebs)| {
            MeterProfile::SingleRate { cir, cbs, ebs, colour_aware: false }
        }),
        (rate(8..9_000), octets(), rate(9_000..90_000), octets()).prop_map(
            |(cir, cbs, pir, pbs)| {
                MeterProfile::TwoRate { cir, cbs, pir, pbs, colour_aware: false }
            }
        ),
    ];
    (profile, action(), action(), action()).prop_map(|(meter, green, yellow, red)| {
        let has_yellow = !matches!(meter, MeterProfile::TokenBucket { .. });
        let yellow = if has_yellow { yellow } else { MeterAction::Pass };
        ChainStep::Meter { class: None, meter, green, yellow, red }
    })
}

/// Steps of a case, with at most two more levels of cases inside.
fn steps() -> BoxedStrategy<Vec<ChainStep>> {
    let mark = dscp().prop_map(|dscp| ChainStep::Mark { class: None, dscp });
    let plain = prop_oneof![
        1 => Just(vec![ChainStep::Drop { class: None }]),
        4 => (option::of(mark), option::of(meter())).prop_map(|(mark, meter)| {
            mark.into_iter().chain(meter).collect()
        }),
    ];
    plain
        .prop_recursive(2, 8, 3, |inner: BoxedStrategy<Vec<ChainStep>>| {
            (cases(inner.clone()), inner).prop_map(|(classes, after)| {
                let after = after.into_iter().filter(|step| {
                    matches!(step, ChainStep::Mark { .. } | ChainStep::Meter { .. })
                });
                std::iter::once(ChainStep::FirstMatch { classes }).chain(after).collect()
            })
        })
        .boxed()
}

fn cases(steps: BoxedStrategy<Vec<ChainStep>>) -> impl Strategy<Value = Vec<ClassSteps>> {
    (subsequence(&CLASSES[..], 1..4), vec(steps, 4), any::<bool>(), any::<Index>()).prop_map(
        |(named, mut steps, with_default, place)| {
            let named = named.into_iter().map(|name| Some(name.to_owned()));
            let mut classes: Vec<ClassSteps> = named
                .map(|class| ClassSteps { class, steps: steps.pop().unwrap_or_default() })
                .collect();
            if with_default {
                let default = ClassSteps { class: None, steps: steps.pop().unwrap_or_default() };
                classes.insert(place.index(classes.len() + 1), default);
            }
            classes
        },
    )
}

fn line() -> impl Strategy<Value = WredLine> {
    (0u32..50, 1u32..50, 1u32..100).prop_map(|(min, more, denominator)| WredLine {
        min,
        max: min + more,
        denominator,
    })
}

fn dropper() -> impl Strategy<Value = Dropper> {
    let exponent = || option::of(1u8..17);
    let red = (line(), exponent(), any::<bool>())
        .prop_map(|(line, weight_exponent, ecn)| Dropper::Red { line, weight_exponent, ecn });
    let lines = prop::collection::btree_map(dscp(), line(), 0..5);
    let wred = (lines, line(), exponent(), any::<bool>());
    let wred = wred.prop_map(|(lines, others, weight_exponent, ecn)| Dropper::Wred {
        lines,
        others: Some(others),
        weight_exponent,
        ecn,
    });
    prop_oneof![3 => Just(Dropper::Tail {}), 1 => red, 2 => wred]
}

fn fifo(dropper: impl Strategy<Value = Dropper>) -> impl Strategy<Value = Queueing> {
    let limit = prop_oneof![
        Just(QueueLimit::default()),
        (1usize..1_000_000)
            .prop_map(|packets| QueueLimit { packets: Some(packets), ..QueueLimit::default() }),
        octets().prop_map(|octets| QueueLimit { octets: Some(octets), ..QueueLimit::default() }),
    ];
    (limit, dropper).prop_map(|(limit, dropper)| {
        // A limit in octets has no early drops beside it.
        let limit = match dropper {
            Dropper::Tail {} => limit,
            _ => QueueLimit { octets: None, ..limit },
        };
        Queueing::Fifo { limit, dropper }
    })
}

fn leaf() -> impl Strategy<Value = Queueing> {
    let flows = (
        option::of((4u32..=12).prop_map(|power| 1usize << power)),
        option::of(1usize..900),
        prop_oneof![Just(None), Just(Some(true))],
        dropper(),
    );
    prop_oneof![
        2 => fifo(dropper()),
        1 => flows.prop_map(|(queues, limit, by_precedence, dropper)| {
            Queueing::FairFlows { queues, limit, by_precedence, dropper }
        }),
    ]
}

/// A shaper above any queueing that needs no rate of its own.
fn shaper(child: BoxedStrategy<Queueing>) -> impl Strategy<Value = Queueing> {
    (512_000u64..2_000_000_000, 2u64..500, 0u64..5_000, child).prop_map(
        |(bits, ms, more, child)| {
            let committed = bits * ms / 1_000 + more % 7;
            let nanos =
                u64::try_from(u128::from(committed) * 1_000_000_000 / u128::from(bits)).unwrap();
            Queueing::Shaper {
                rate: Rate::from_bits(bits).unwrap(),
                burst: OctetSize(committed.div_ceil(8) + more),
                interval: Some(Span(Duration::from_nanos(nanos))),
                overhead: 0,
                child: Box::new(child),
            }
        },
    )
}

/// Shares of one unit, of which four reserve less than is there.
fn shares() -> impl Strategy<Value = Vec<BranchShare>> {
    let burst = || option::of((1_500u64..90_000).prop_map(OctetSize));
    let priority = move || {
        (1u32..10, burst()).prop_map(|(percent, burst)| BranchShare::PriorityPercent {
            percent: percent.into(),
            burst,
        })
    };
    let ratio = (1u32..1_001).prop_map(|ratio| BranchShare::Weight(ratio.into()));
    let percent = (1u32..10).prop_map(|percent| BranchShare::Percent(percent.into()));
    let kbit = rate(1..20).prop_map(BranchShare::Bandwidth);
    let fixed =
        (rate(1..20), burst()).prop_map(|(rate, burst)| BranchShare::Priority { rate, burst });
    prop_oneof![
        vec(prop_oneof![3 => ratio, 1 => Just(BranchShare::None), 1 => priority()], 5),
        vec(prop_oneof![3 => percent, 1 => Just(BranchShare::None)], 5),
        vec(prop_oneof![3 => kbit, 1 => fixed, 1 => Just(BranchShare::None)], 5),
    ]
}

fn class_based(child: BoxedStrategy<Queueing>) -> impl Strategy<Value = Queueing> {
    let queues = vec((child, fifo(Just(Dropper::Tail {}))), 5);
    (subsequence(&CLASSES[..], 1..4), shares(), queues, any::<bool>()).prop_map(
        |(named, mut shares, mut queues, with_default)| {
            let mut branch = |class: Option<&str>| {
                let share = shares.pop().unwrap_or_default();
                let (own, first) = queues.pop().unwrap_or_default();
                let is_first = matches!(
                    share,
                    BranchShare::Priority { .. } | BranchShare::PriorityPercent { .. }
                );
                let share = if is_first && class.is_none() { BranchShare::None } else { share };
                let queueing = if is_first { first } else { own };
                Branch { class: class.map(str::to_owned), share, queueing }
            };
            let mut branches: Vec<Branch> =
                named.into_iter().map(|name| branch(Some(name))).collect();
            branches.extend(with_default.then(|| branch(None)));
            Queueing::ClassBased { rate: None, branches }
        },
    )
}

/// A shaper on top makes every rate known; all below it have at least 512 kbit/s, or need no rate.
fn queueing() -> impl Strategy<Value = Queueing> {
    let inside = prop_oneof![2 => leaf(), 1 => shaper(leaf().boxed())].boxed();
    let shaped = shaper(prop_oneof![leaf().boxed(), class_based(inside).boxed()].boxed()).boxed();
    let nested = class_based(
        prop_oneof![3 => leaf().boxed(), 1 => shaper(class_based(leaf().boxed()).boxed()).boxed()]
            .boxed(),
    );
    prop_oneof![
        leaf().boxed(),
        shaped.clone(),
        shaper(shaped).boxed(),
        shaper(nested.boxed()).boxed(),
    ]
}

prop_compose! {
    fn a_policy()(
        classes in vec(a_class(), CLASSES.len()),
        chains in vec(cases(steps()), 1..3),
        queueings in vec(queueing(), 1..3),
        at in vec((any::<Index>(), any::<Index>(), any::<bool>(), any::<bool>()), PORTS.len()),
    ) -> RouterPolicy {
        let about = "any\n\u{7} one".to_owned();
        let mut policy = RouterPolicy { about, ..RouterPolicy::default() };
        let names = CLASSES.iter().map(|name| (*name).to_owned());
        policy.classes = names.zip(classes).collect();
        for (number, classes) in chains.into_iter().enumerate() {
            if !normal::without_effect(&classes) {
                let steps = vec![ChainStep::FirstMatch { classes }];
                policy.chains.insert(format!("chain-{number}"), steps);
            }
        }
        let named = queueings.into_iter().enumerate();
        policy.queueings = named.map(|(n, of)| (format!("queueing-{n}"), of)).collect();
        let chains: Vec<_> = policy.chains.keys().collect();
        let queueings: Vec<_> = policy.queueings.keys().collect();
        for (name, (chain, queueing, is_input, is_output)) in PORTS.iter().zip(at) {
            let mut attached = Attachment::default();
            if is_input && !chains.is_empty() {
                attached.input.push((*chain.get(&chains)).clone());
            }
            if is_output {
                attached.queueing = Some((*queueing.get(&queueings)).clone());
            }
            policy.interfaces.insert((*name).to_owned(), attached);
        }
        policy
    }
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn any_policy_of_ios_comes_back(policy in a_policy()) {
        let interfaces: Vec<String> = PORTS.iter().map(|name| (*name).to_owned()).collect();
        prop_assert_eq!(policy.check(&interfaces), Ok(()));
        let (text, back) = through_ios(&policy, &["wan=Tunnel7"]);
        prop_assert_eq!(normal::normal(&back.policy), normal::normal(&policy), "{}", text);
    }
}
