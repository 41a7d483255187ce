//! Steps of chains, driven as a router drives them.

mod any;
mod degeb;
mod shaper;

use super::build;
use crate::classify::FlowTables;
use crate::conditioner::{Conditioner, PacketVerdict};
use crate::count::{Amount, Cause, PacketCounters, PartCounters};
use crate::meter::came_with;
use crate::packet::{Colour, HeaderFields, Packet, udp};
use crate::policy::RouterPolicy;
use crate::time::Time;
use dscp::Dscp;

/// A chain of a policy, and the packets that passed it.
struct Run {
    steps: Vec<Box<dyn Conditioner>>,
    tables: FlowTables,
    /// Packets that passed, with the time.
    out: Vec<(Time, Packet)>,
    dropped: Vec<(Packet, Cause)>,
}

/// The chain `test` of a policy.
fn policy(text: &str) -> RouterPolicy {
    toml::from_str(text).unwrap()
}

impl Run {
    fn new(policy: &RouterPolicy) -> Run {
        Run::chain(policy, "test")
    }

    fn chain(policy: &RouterPolicy, name: &str) -> Run {
        let interfaces = ["lan".to_owned(), "wan".to_owned()];
        let path = format!("chains.{name}");
        let steps = build(policy, &interfaces, &policy.chains[name], &path).unwrap();
        let tables = FlowTables::new(policy, &interfaces).unwrap();
        Run { steps, tables, out: Vec::new(), dropped: Vec::new() }
    }

    fn text(text: &str) -> Run {
        Run::new(&policy(text))
    }

    /// Fetches all packets that are due before `now`, each when it is due; then offers this packet.
    fn take(&mut self, now: Time, packet: Packet) {
        self.advance(now);
        self.put(0, now, packet);
        self.fetch(now);
    }

    fn put(&mut self, first: usize, now: Time, mut packet: Packet) {
        for step in &mut self.steps[first..] {
            match step.take(now, packet, &self.tables) {
                PacketVerdict::Pass(on) => packet = on,
                PacketVerdict::Drop(packet, cause) => return self.dropped.push((packet, cause)),
                PacketVerdict::Hold => return,
            }
        }
        self.out.push((now, packet));
    }

    /// Fetches the packets that are due; returns how many left a step.
    fn fetch(&mut self, now: Time) -> usize {
        let mut fetched = 0;
        for place in 0..self.steps.len() {
            while let Some(packet) = self.steps[place].release(now) {
                self.put(place + 1, now, packet);
                fetched += 1;
            }
        }
        fetched
    }

    fn deadline(&self) -> Option<Time> {
        self.steps.iter().filter_map(|step| step.deadline()).min()
    }

    fn advance(&mut self, now: Time) {
        while let Some(due) = self.deadline().filter(|due| *due <= now) {
            assert!(self.fetch(due) > 0, "a deadline at which nothing comes");
        }
    }

    fn drain(&mut self) {
        self.advance(Time(u64::MAX));
        assert_eq!((self.held(), self.deadline()), (0, None));
    }

    fn held(&self) -> usize {
        self.steps.iter().map(|step| step.held()).sum()
    }

    fn counters(&self, step: usize) -> &PacketCounters {
        let mut parts = Vec::new();
        self.steps[step].report("x", &mut parts);
        assert_eq!(parts.len(), 1);
        parts[0].counters
    }

    /// The packets that entered a step, passed and were dropped, and the number of marked ones.
    fn sums(&self, step: usize) -> (Amount, Amount, Amount, u64) {
        let mut sums = (Amount::default(), Amount::default(), Amount::default(), 0);
        let add = |sum: &mut Amount, more: Amount| {
            sum.packets += more.packets;
            sum.octets += more.octets;
        };
        for (_, row) in self.counters(step).used() {
            add(&mut sums.0, row.came);
            add(&mut sums.1, row.went);
            add(&mut sums.2, row.dropped_in_all());
            sums.3 += row.marked;
        }
        sums
    }
}

/// A UDP packet from 10.0.0.`host`:5000 to 10.0.1.1:6000 with a number in its payload.
fn packet(number: u32, host: u8, dscp: Dscp, length: usize) -> Packet {
    let fields = HeaderFields {
        source: [10, 0, 0, host].into(),
        destination: [10, 0, 1, 1].into(),
        protocol: 17,
        dscp,
        ecn: 2,
        ttl: 64,
    };
    let mut octets = udp(&fields, (5_000, 6_000), length.max(32)).unwrap();
    octets[28..32].copy_from_slice(&number.to_be_bytes());
    Packet::read(octets, 0, Time::ZERO).unwrap()
}

/// The number in the payload.
fn number(packet: &Packet) -> u32 {
    u32::from_be_bytes(*packet.octets()[28..].first_chunk().unwrap())
}

/// The last octet of the source address.
fn host(packet: &Packet) -> u8 {
    packet.octets()[15]
}

#[test]
fn what_is_not_there_is_refused_with_its_path() {
    for (step, path, what) in [
        ("kind='mark', class='gold', dscp='EF'", "chains.test[0].class", "no class"),
        ("kind='mark-flows', table='t'", "chains.test[0].table", "no table"),
        ("kind='shape', rate='1Mbit', burst=1500, limit=0", "chains.test[0].limit", "0 packets"),
        (
            "kind='meter', meter={kind='token-bucket', rate='1Mbit', burst=0}",
            "chains.test[0].meter.burst",
            "0 octets",
        ),
        (
            "kind='meter', meter={kind='token-bucket', rate='1Mbit', burst=1500}, yellow='drop'",
            "chains.test[0].yellow",
            "a token bucket finds nothing yellow",
        ),
        ("kind='first-match', classes=[]", "chains.test[0].classes", "none"),
        (
            "kind='first-match', classes=[{}, {}]",
            "chains.test[0].classes[1].class",
            "two without a class",
        ),
        ("kind='first-match', classes=[{class='c'}]", "chains.test[0].classes", "no class \"c\""),
        (
            "kind='first-match', classes=[{steps=[{kind='shape', rate='1Mbit', burst=1, limit=1}]}]",
            "chains.test[0].classes[0].steps[0]",
            "no shaper can stand",
        ),
        (
            "kind='demote', af_class=5, rates=['1Mbit','1Mbit','1Mbit'], burst=1500",
            "chains.test[0].af_class",
            "5 is not",
        ),
    ] {
        let policy = policy(&format!("[chains]\ntest = [{{{step}}}]"));
        let wrong = build(&policy, &[], &policy.chains["test"], "chains.test").unwrap_err();
        assert_eq!(wrong.path, path);
        assert!(wrong.what.starts_with(what), "{wrong}");
    }
}

#[test]
fn markers_and_policers_touch_their_class_alone() {
    let mut run = Run::text(
        r#"
        [classes.voice]
        match = [{ source = "10.0.0.1" }]
        [classes.bad]
        match = [{ source = "10.0.0.2" }]
        [tables.premium]
        flows = [{ name = "a", match = { source = "10.0.0.3" }, mark = "AF41" },
                 { name = "b", match = { source = "10.0.0.4" } }]
        [chains]
        test = [{ kind = "mark", class = "voice", dscp = "EF" },
                { kind = "drop", class = "bad" },
                { kind = "mark-flows", table = "premium" }]
        "#,
    );
    for host in 1..=5 {
        run.take(Time::ZERO, packet(host.into(), host, Dscp::CS1, 100));
    }
    run.take(Time::ZERO, packet(6, 1, Dscp::EF, 100));
    let out: Vec<_> = run.out.iter().map(|(_, is)| (number(is), is.dscp().to_string())).collect();
    let text = [(1, "EF"), (3, "AF41"), (4, "CS1"), (5, "CS1"), (6, "EF")];
    assert_eq!(out, text.map(|(number, dscp)| (number, dscp.to_owned())));
    assert!(matches!(run.dropped.as_slice(), [(_, Cause::Refused)]));
    // Two packets entered the marker; one had the code point already.
    let (came, went, _, marked) = run.sums(0);
    assert_eq!((came.packets, went.packets, marked), (2, 2, 1));
    assert_eq!(run.counters(1).row(Dscp::CS1).dropped[Cause::Refused as usize].packets, 1);
    assert_eq!(run.sums(2).3, 1);
}

#[test]
fn colours_choose_what_is_done() {
    let mut run = Run::text(
        r#"
        [[chains.test]]
        kind = "meter"
        meter = { kind = "two-rate", cir = "8kbit", cbs = 200, pir = "16kbit", pbs = 300 }
        yellow = { mark = "CS1" }
        red = "drop"
        [[chains.test]]
        kind = "meter"
        meter = { kind = "single-rate", cir = "1Gbit", cbs = 9000, ebs = 9000, colour_aware = true }
        green = "drop-precedence"
        yellow = "drop-precedence"
        "#,
    );
    let af31 = Dscp::assured(3, 1).unwrap();
    for n in 0..4 {
        run.take(Time::ZERO, packet(n, 1, af31, 100));
    }
    let out: Vec<_> = run.out.iter().map(|(_, is)| is.dscp().to_string()).collect();
    // The third is yellow, marked CS1, and has no drop precedence any more; the fourth is red.
    assert_eq!(out, ["AF31", "AF31", "CS1"]);
    assert!(matches!(run.dropped.as_slice(), [(_, Cause::Policed)]));
    assert_eq!(run.out[2].1.colour, Some(Colour::Yellow));
    assert_eq!((run.out[2].1.header().ecn, run.sums(0).3), (2, 1));
}

#[test]
fn drop_precedence_follows_the_colour() {
    let mut run = Run::text(
        r#"
        [[chains.test]]
        kind = "meter"
        meter = { kind = "single-rate", cir = "8kbit", cbs = 100, ebs = 100, colour_aware = true }
        green = "drop-precedence"
        yellow = "drop-precedence"
        red = "drop-precedence"
        "#,
    );
    let af = |drop| Dscp::assured(2, drop).unwrap();
    // The second of two green packets is yellow; a red packet remains red although there are
    // tokens.
    for (n, drop) in [(0, 3), (1, 1), (2, 1), (3, 1)] {
        run.take(Time::ZERO, packet(n, 1, af(drop), 100));
    }
    let out: Vec<_> = run.out.iter().map(|(_, is)| is.dscp().to_string()).collect();
    assert_eq!(out, ["AF23", "AF21", "AF22", "AF23"]);
}

#[test]
fn each_flow_has_its_own_meter() {
    let mut run = Run::text(
        r#"
        [tables.t]
        flows = [{ name = "a", match = { source = "10.0.0.1" }, rate = "8kbit", burst = 200 },
                 { name = "b", match = { source = "10.0.0.2" }, rate = "8kbit", burst = 100 },
                 { name = "c", match = { source = "10.0.0.3" } }]
        [chains]
        test = [{ kind = "meter-flows", table = "t", green = { mark = "EF" }, red = "drop" }]
        "#,
    );
    for n in 0..9u8 {
        run.take(Time::ZERO, packet(n.into(), 1 + n % 3, Dscp::CS0, 100));
    }
    let passed = |of| run.out.iter().filter(|(_, is)| host(is) == of).count();
    assert_eq!([passed(1), passed(2), passed(3)], [2, 1, 3]);
    assert_eq!(run.sums(0).0.packets, 6, "what has no rate is not touched");
    // A flow that is removed and added again is a new flow with a full bucket.
    let flow = run.tables.remove("t", "b").unwrap();
    run.tables.add("t", flow).unwrap();
    run.take(Time(1), packet(9, 2, Dscp::CS0, 100));
    assert_eq!(run.out.last().map(|(_, is)| number(is)), Some(9));
    // A replaced flow keeps its bucket, which is empty and fills at the new rate.
    let mut flow = run.tables.remove("t", "a").unwrap();
    run.tables.add("t", flow.clone()).unwrap();
    for n in 10..13 {
        run.take(Time(1), packet(n, 1, Dscp::CS0, 100));
    }
    flow.rate = crate::Rate::from_bits(800_000);
    run.tables.replace("t", flow).unwrap();
    run.take(Time(2), packet(13, 1, Dscp::CS0, 100));
    run.take(Time(1_000_002), packet(14, 1, Dscp::CS0, 100));
    run.take(Time(1_000_003), packet(15, 1, Dscp::CS0, 100));
    let out: Vec<_> = run.out.iter().map(|(_, is)| number(is)).filter(|n| *n > 9).collect();
    assert_eq!(out, [10, 11, 14]);
}

/// A colour-blind policer never gives a packet a better colour than its drop precedence. A marked
/// packet has the colour of its mark.
#[test]
fn no_meter_promotes_what_passes() {
    let blind = r#"
        [[chains.test]]
        kind = "meter"
        meter = { kind = "token-bucket", rate = "1Gbit", burst = 90000 }
        red = "drop"
        "#;
    let aware = r#"
        [[chains.test]]
        kind = "meter"
        meter = { kind = "two-rate", cir = "1Gbit", cbs = 9000, pir = "1Gbit", pbs = 9000, colour_aware = true }
        green = "drop-precedence"
        yellow = "drop-precedence"
        red = "drop-precedence"
        "#;
    let mark = "[[chains.test]]\nkind = 'mark'\ndscp = 'AF12'\n";
    let end = |text: &str, dscp: Dscp| {
        let mut run = Run::text(text);
        run.take(Time::ZERO, packet(0, 1, dscp, 100));
        let (_, packet) = run.out.pop().unwrap();
        (packet.dscp().to_string(), came_with(&packet))
    };
    let (green, yellow, red) = (Colour::Green, Colour::Yellow, Colour::Red);
    for (text, came, went) in [
        (blind.to_owned(), Dscp::AF13, ("AF13", red)),
        (blind.to_owned(), Dscp::AF11, ("AF11", green)),
        (format!("{blind}{aware}"), Dscp::AF13, ("AF13", red)),
        (format!("{blind}{blind}"), Dscp::AF12, ("AF12", yellow)),
        (format!("{blind}{mark}"), Dscp::CS0, ("AF12", yellow)),
        (format!("{blind}{mark}{aware}"), Dscp::CS0, ("AF12", yellow)),
        (blind.replace("90000", "50").replace("drop", "pass") + mark, Dscp::AF13, ("AF12", yellow)),
    ] {
        assert_eq!(end(&text, came), (went.0.to_owned(), went.1), "{text}");
    }
}

/// CS0 becomes CS1 and CS1 becomes CS2; neither case sees the mark of the other.
#[test]
fn of_several_classes_the_first_counts_alone() {
    let mut run = Run::text(
        r#"
        [classes]
        cs0.match = [{ dscp = ["CS0"] }]
        cs1.match = [{ dscp = ["CS1"] }]
        both.match = [{ dscp = ["CS0", "CS1", "EF"] }]
        [[chains.test]]
        kind = "first-match"
        [[chains.test.classes]]
        steps = [{ kind = "mark", dscp = "AF43" }]
        [[chains.test.classes]]
        class = "cs0"
        steps = [{ kind = "mark", dscp = "CS1" }]
        [[chains.test.classes]]
        class = "cs1"
        steps = [
            { kind = "meter", meter = { kind = "token-bucket", rate = "8kbit", burst = 150 }, red = "drop" },
            { kind = "mark", dscp = "CS2" },
        ]
        [[chains.test.classes]]
        class = "both"
        "#,
    );
    for (n, dscp) in ["CS0", "CS1", "EF", "CS7", "CS1"].into_iter().enumerate() {
        run.take(Time::ZERO, packet(n as u32, 1, dscp.parse().unwrap(), 100));
    }
    let out: Vec<_> = run.out.iter().map(|(_, is)| is.dscp().to_string()).collect();
    assert_eq!(out, ["CS1", "CS2", "EF", "AF43"]);
    assert!(matches!(run.dropped.as_slice(), [(_, Cause::Policed)]));
    let mut parts = Vec::new();
    run.steps[0].report("x", &mut parts);
    let paths: Vec<_> = parts.iter().map(|part| part.path.as_str()).collect();
    assert_eq!(paths, ["x", "x/others/0", "x/cs0/0", "x/cs1/0", "x/cs1/1"]);
    let count = |part: &PartCounters<'_>| {
        let rows = part.counters.used().map(|(_, row)| (row.came.packets, row.went.packets));
        rows.fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1))
    };
    let counts: Vec<_> = parts.iter().map(count).collect();
    assert_eq!(counts, [(5, 4), (1, 1), (1, 1), (2, 1), (1, 1)]);
}
