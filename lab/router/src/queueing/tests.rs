use super::*;
use crate::classify::FlowTables;
use crate::discipline::Readiness;
use crate::testing::{number, packet};
use crate::time::Time;
use dscp::Dscp;

/// A policy with a class for each of some code points, and this queueing.
fn policy(queueing: &str) -> RouterPolicy {
    let mut text = String::new();
    for name in ["EF", "CS0", "CS1", "CS2", "CS3", "CS6", "AF11", "AF21", "AF31", "AF41"] {
        text += &format!("[classes.{name}]\nmatch = [{{ dscp = [\"{name}\"] }}]\n");
    }
    toml::from_str(&format!("{text}\n[queueings.wan]\n{queueing}")).unwrap()
}

pub(super) fn tree(queueing: &str) -> Result<Box<dyn Discipline>, KeyFault> {
    let policy = policy(queueing);
    build(&policy, &[], &policy.queueings["wan"], "queueings.wan", 1)
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
        tree.push(now, packet, &FlowTables::default(), &mut Vec::new());
    }
    let sent: Vec<_> = std::iter::from_fn(|| tree.pop(now)).map(|packet| number(&packet)).collect();
    assert_eq!(sent, [2, 4, 1, 3, 0], "the last branch is the implied one");
    assert_eq!(tree.ready(now), Readiness::Empty);
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

/// Keeps packets of each code point waiting while `packets` packets are sent. Returns the octets
/// sent of each code point, in the order of `of`.
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
                tree.push(now, packet, &FlowTables::default(), &mut discarded);
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

/// The shipped order of the Bern study: expedited forwarding, then network control, then the AF
/// classes and best effort by weights.
fn bern() -> Box<dyn Discipline> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/lab/policies/bern-ef-af.toml");
    let policy: RouterPolicy = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    build(&policy, &[], &policy.queueings["link"], "queueings.link", 1).unwrap()
}

#[test]
fn the_order_of_bern_is_priority_over_weighted_fair() {
    let mut tree = bern();
    let af = |class| (Dscp::assured(class, 1).unwrap(), 1_000);
    let assured = [af(1), af(2), af(3), af(4), (Dscp::CS0, 500)];
    let sent = shares(&mut *tree, &assured, 6_000);
    let whole: usize = sent.iter().sum();
    for (octets, percent) in sent.iter().zip([40.0, 20.0, 15.0, 15.0, 10.0]) {
        let share = *octets as f64 * 100.0 / whole as f64;
        assert!((share - percent).abs() < 0.1, "{sent:?}");
    }
    for dscp in [Dscp::CS6, Dscp::EF] {
        tree.push(Time::ZERO, packet(dscp, 100, 1, 1), &FlowTables::default(), &mut Vec::new());
    }
    let next = [(); 3].map(|()| tree.pop(Time::ZERO).unwrap().dscp());
    assert_eq!(next[..2], [Dscp::EF, Dscp::CS6]);
}

#[test]
fn bern_drops_red_before_yellow_before_green() {
    let mut tree = bern();
    let mut lost = [0; 3];
    // Six packets arrive for each three that leave.
    for round in 0..3_000_u64 {
        let now = Time(round * 1_000_000);
        for (place, lost) in lost.iter_mut().enumerate() {
            let dscp = Dscp::assured(1, place as u8 + 1).unwrap();
            let mut discarded = Vec::new();
            tree.push(now, packet(dscp, 500, 1, round), &FlowTables::default(), &mut discarded);
            // Until the averages have grown, the full queue drops packets of any colour.
            *lost += if round < 1_000 { 0 } else { discarded.len() };
        }
        for _ in 0..=round % 2 {
            tree.pop(now).unwrap();
        }
    }
    let [green, yellow, red] = lost;
    assert_eq!(green, 0, "there is room for green and half of yellow");
    assert!(yellow < red && red > 1_900, "{lost:?}");
    let mut parts = Vec::new();
    tree.report("q", &mut parts);
    let af1 = parts.iter().find(|part| part.path.ends_with("/af1")).unwrap().counters;
    let [green, yellow, red] = *af1.averages() else { panic!("three averages") };
    assert!(green < yellow && yellow <= red && red < 200.0, "{green} {yellow} {red}");
    assert_eq!(af1.depth_of(Dscp::AF13).unwrap().now().packets, 0);
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

/// The same without the shaper.
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

/// EF has priority, up to 1 Mbit/s of 4.
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
                tree.push(now, other, &FlowTables::default(), &mut Vec::new());
            }
            let dropped = discarded.len();
            tree.push(now, packet(Dscp::EF, 250, 1, ms), &FlowTables::default(), &mut discarded);
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
fn excess_priority_does_not_wait_ahead_of_the_others() {
    // A shaper of 512 kbit/s, 128 kbit/s of priority, 1 Mbit/s of EF, and a CS1 packet now and
    // then.
    let mut tree = tree(
        "kind = 'shaper'\nrate = '512kbit'\nburst = 0\n[queueings.wan.child]\nkind = 'class-based'\n\
         branches = [{ class = 'EF', share = { priority = { rate = '128kbit', burst = 3200 } } }]",
    )
    .unwrap();
    let mut longest = 0;
    for tick in 0..8_000_u64 {
        let now = Time(tick * 1_000_000);
        if tick % 4 == 0 {
            tree.push(now, packet(Dscp::EF, 500, 1, tick), &FlowTables::default(), &mut Vec::new());
        }
        if tick % 4_000 == 2_000 {
            tree.push(
                now,
                packet(Dscp::CS1, 500, 2, tick),
                &FlowTables::default(),
                &mut Vec::new(),
            );
        }
        while let Some(packet) = tree.pop(now) {
            if packet.dscp() == Dscp::CS1 {
                longest = longest.max(tick - number(&packet));
            }
        }
    }
    // The burst, the arrivals in the meantime at 128 kbit/s, and two packets: 3,200 + 1,000 octets
    // at 384.
    assert!((1..=90).contains(&longest), "{longest} ms");
}

#[test]
fn what_the_child_drops_does_not_count_against_the_priority_rate() {
    let mut tree = tree(
        "kind = 'class-based'\nrate = '1Mbit'\nbranches = [{ class = 'EF', \
         share = { priority = { rate = '8bit', burst = 1500 } }, \
         queueing = { kind = 'fifo', limit = { octets = 500 } } }]",
    )
    .unwrap();
    let mut discarded = Vec::new();
    for number in 0..5 {
        let came = packet(Dscp::EF, 500, 1, number);
        tree.push(Time::ZERO, came, &FlowTables::default(), &mut discarded);
    }
    assert!(
        discarded.iter().all(|(_, cause)| *cause == crate::count::Cause::Tail),
        "{discarded:?}"
    );
    assert_eq!((discarded.len(), tree.backlog().packets), (4, 1));
}

#[test]
fn priority_may_be_a_part_of_what_is_shared() {
    let of = |share: &str| {
        tree(&format!(
            "kind = 'class-based'\nrate = '4Mbit'\nbranches = [{{ class = 'EF', share = {share} }}, \
             {{ share = {{ percent = 75 }} }}]"
        ))
    };
    let mut accepted = Vec::new();
    for share in [
        "{ priority = { rate = '1Mbit', burst = 3000 } }",
        "{ priority-percent = { percent = 25, burst = 3000 } }",
    ] {
        let mut tree = of(share).unwrap();
        let mut discarded = Vec::new();
        for ms in 0..1_000 {
            let now = Time(ms * 1_000_000);
            for (dscp, length) in [(Dscp::CS0, 1_000), (Dscp::EF, 250)] {
                tree.push(now, packet(dscp, length, 1, ms), &FlowTables::default(), &mut discarded);
            }
            tree.pop(now);
        }
        accepted.push(discarded.iter().filter(|(packet, _)| packet.dscp() == Dscp::EF).count());
    }
    assert_eq!(accepted[0], accepted[1]);
    assert!(accepted[0] > 400);
    let refused = of("{ priority-percent = { percent = 26 } }").unwrap_err().to_string();
    assert!(refused.contains("4040kbit are reserved in all, of 4Mbit"), "{refused}");
}

#[test]
fn a_reservation_next_to_nothing_still_sends() {
    let mut tree = tree(
        "kind = 'class-based'\nrate = '1bit'\nbranches = [{ class = 'CS1', share = { percent = 5e-324 } }]",
    )
    .unwrap();
    tree.push(Time::ZERO, packet(Dscp::CS1, 100, 1, 1), &FlowTables::default(), &mut Vec::new());
    assert_eq!(tree.ready(Time::ZERO), Readiness::Now(100));
}

#[test]
fn marks_count_where_the_packet_stays() {
    let mut tree = tree(
        "kind = 'fifo'\nlimit = { packets = 20 }\n\
         dropper = { kind = 'red', line = { min = 1, max = 100, denominator = 1 }, weight_exponent = 1, ecn = true }",
    )
    .unwrap();
    let mut discarded = Vec::new();
    for number in 0..500 {
        let came = crate::testing::with_ecn(Dscp::CS0, 100, 1, number, 2);
        tree.push(Time::ZERO, came, &FlowTables::default(), &mut discarded);
        assert!(discarded.iter().all(|(packet, _)| packet.header().ecn == 2), "dropped unmarked");
        if number % 3 == 0 {
            tree.pop(Time::ZERO);
        }
    }
    assert!(!discarded.is_empty());
    let mut parts = Vec::new();
    tree.report("q", &mut parts);
    let marked = parts[0].counters.row(Dscp::CS0).congestion_marked;
    let kept = 500 - discarded.len() as u64;
    assert!((1..kept).contains(&marked), "{marked} of {kept}");
}

/// The NATO study's shaper grants 64,000 octets each second. Idle time counts by the shaper's rate.
#[test]
fn idle_time_under_a_shaper_by_intervals_counts_by_its_rate() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../config/lab/policies/nato-single-queue-wred.toml"
    );
    let policy: RouterPolicy = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut tree = build(&policy, &[], &policy.queueings["wan"], "q", 1).unwrap();
    let average = |tree: &dyn Discipline| {
        let mut parts = Vec::new();
        tree.report("q", &mut parts);
        parts[1].counters.averages()[0]
    };
    // Twice the rate of the shaper: packets of 1,500 octets, 23.4 ms each at 512 kbit/s.
    let mut now = Time::ZERO;
    for number in 0..4_000 {
        now = Time(number * 11_718_750);
        let came = packet(Dscp::CS6, 1_500, 1, number);
        tree.push(now, came, &FlowTables::default(), &mut Vec::new());
        while tree.pop(now).is_some() {}
    }
    while let Readiness::At(moment) = tree.ready(now) {
        now = moment;
        while tree.pop(now).is_some() {}
    }
    let before = average(&*tree);
    now = Time(now.0 + 12_000_000_000);
    tree.push(now, packet(Dscp::CS6, 100, 1, 1), &FlowTables::default(), &mut Vec::new());
    // 12 s are 512 packets: (1 - 1/512)^512.
    let left = average(&*tree) / before;
    assert!((0.34..0.40).contains(&left), "{left} of {before}");
}

#[test]
fn a_class_named_others_has_a_path_of_its_own() {
    let text = "[classes.others]\nmatch = [{ dscp = ['EF'] }]\n[queueings.wan]\nkind = 'priority'\n\
                branches = [{ class = 'others' }]";
    let policy: RouterPolicy = toml::from_str(text).unwrap();
    let tree = build(&policy, &[], &policy.queueings["wan"], "q", 1).unwrap();
    let mut parts = Vec::new();
    tree.report("q", &mut parts);
    let paths: Vec<_> = parts.iter().map(|part| part.path.as_str()).collect();
    assert_eq!(paths, ["q", "q/others", "q/others+"]);
}

#[test]
fn what_priority_leaves_is_shared() {
    // CS1 has 25 % of 4 Mbit/s; the rest, 2 Mbit/s, goes to the others.
    let of = [(Dscp::CS1, 1_000), (Dscp::CS0, 1_000)];
    let sent = shares(&mut *tree(LOW_LATENCY).unwrap(), &of, 3_000);
    assert!(sent[0].abs_diff(1_000_000) <= 2_000, "{sent:?}");
}
