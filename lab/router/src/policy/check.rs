//! Checks a whole policy, also the parts that no interface uses.

use super::{ChainStep, KeyFault, Match, MeterProfile, Name, OctetSize, RouterPolicy};
use crate::classify::{Classifier, FlowTables};
use crate::{condition, queueing};
use std::collections::BTreeSet;

/// The longest packet of most lines in octets, used in warnings.
const PACKET: u64 = 1_500;
/// Protocols whose packets have ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

impl RouterPolicy {
    /// Builds every part of the policy, also those that no interface uses. `interfaces` are the
    /// router's interfaces, by position.
    ///
    /// # Errors
    /// The first fault: an unknown name, a number out of range, a class that no packet can match.
    pub fn check(&self, interfaces: &[Name]) -> Result<(), KeyFault> {
        for (name, class) in &self.classes {
            if class.matches.is_empty() {
                let what = "empty: nothing belongs to this class; one empty match, {}, takes all";
                return Err(KeyFault::at(format!("classes.{name}.match"), what));
            }
            Classifier::new(self, interfaces, &[Some(name)], &format!("classes.{name}"))?;
        }
        FlowTables::new(self, interfaces)?;
        for (name, steps) in &self.chains {
            condition::build(self, interfaces, steps, &format!("chains.{name}"))?;
        }
        for (name, of) in &self.queueings {
            queueing::build(self, interfaces, of, &format!("queueings.{name}"), 0)?;
        }
        for (name, attached) in &self.interfaces {
            for (key, chains) in [("input", &attached.input), ("output", &attached.output)] {
                if let Some(chain) = chains.iter().find(|name| !self.chains.contains_key(*name)) {
                    let what = format!("no chain {chain:?}: write one under [chains]");
                    return Err(KeyFault::at(format!("interfaces.{name}.{key}"), what));
                }
            }
            let mut named = attached.queueing.iter();
            if let Some(of) = named.find(|name| !self.queueings.contains_key(*name)) {
                let what = format!("no queueing {of:?}: write one under [queueings]");
                return Err(KeyFault::at(format!("interfaces.{name}.queueing"), what));
            }
        }
        Ok(())
    }

    /// Parts that are valid but probably a mistake: chains and queueings that no interface uses,
    /// and meters whose bursts are too small for any packet of 1,500 octets.
    pub fn warnings(&self) -> Vec<KeyFault> {
        let mut warnings = Vec::new();
        let used = self.interfaces.values();
        let chains: BTreeSet<_> = used.flat_map(|is| is.input.iter().chain(&is.output)).collect();
        let used = self.interfaces.values();
        let queueings: BTreeSet<_> = used.filter_map(|is| is.queueing.as_ref()).collect();
        let unused = |kind: &str, name: &Name| {
            KeyFault::at(
                format!("{kind}.{name}"),
                "no interface uses it: name it under [interfaces]",
            )
        };
        let all = self.chains.keys().filter(|name| !chains.contains(name));
        warnings.extend(all.map(|name| unused("chains", name)));
        let all = self.queueings.keys().filter(|name| !queueings.contains(name));
        warnings.extend(all.map(|name| unused("queueings", name)));
        for (name, steps) in &self.chains {
            small_bursts(self, steps, &format!("chains.{name}"), &mut warnings);
        }
        warnings
    }
}

/// Meters in these steps for which every packet of 1,500 octets is red or dropped.
fn small_bursts(policy: &RouterPolicy, steps: &[ChainStep], path: &str, into: &mut Vec<KeyFault>) {
    let mut look = |path: String, burst: OctetSize| {
        if burst.0 < PACKET {
            let what = format!(
                "{} octets: no packet of {PACKET} octets is ever within it, whatever the rate; take \
                 at least {PACKET}",
                burst.0
            );
            into.push(KeyFault::at(path, what));
        }
    };
    for (number, step) in steps.iter().enumerate() {
        let path = format!("{path}[{number}]");
        match step {
            ChainStep::Meter { meter, .. } => match *meter {
                MeterProfile::TokenBucket { burst, .. } => {
                    look(format!("{path}.meter.burst"), burst);
                }
                MeterProfile::SingleRate { cbs, ebs, .. } => {
                    look(format!("{path}.meter.cbs"), OctetSize(cbs.0.max(ebs.0)));
                }
                MeterProfile::TwoRate { cbs, pbs, .. } => {
                    look(format!("{path}.meter.cbs"), cbs);
                    look(format!("{path}.meter.pbs"), pbs);
                }
            },
            ChainStep::Demote(demotion) => look(format!("{path}.burst"), demotion.burst),
            ChainStep::MeterFlows { table, .. } => {
                let flows = policy.tables.get(table).into_iter().flat_map(|table| &table.flows);
                for (number, flow) in flows.enumerate() {
                    if let Some(burst) = flow.burst.filter(|_| flow.rate.is_some()) {
                        look(format!("tables.{table}.flows[{number}].burst"), burst);
                    }
                }
            }
            ChainStep::FirstMatch { .. }
            | ChainStep::Mark { .. }
            | ChainStep::Drop { .. }
            | ChainStep::MarkFlows { .. }
            | ChainStep::ShapeFlows { .. }
            | ChainStep::Shape { .. } => {}
        }
    }
    for (number, step) in steps.iter().enumerate() {
        let ChainStep::FirstMatch { classes } = step else { continue };
        for (case, of) in classes.iter().enumerate() {
            let path = format!("{path}[{number}].classes[{case}].steps");
            small_bursts(policy, &of.steps, &path, into);
        }
    }
}

impl Match {
    /// Whether a packet can match it.
    ///
    /// # Errors
    /// No packet can.
    pub(crate) fn check(&self, path: &str) -> Result<(), KeyFault> {
        if let (Some(source), Some(destination)) = (self.source, self.destination)
            && source.address().is_ipv4() != destination.address().is_ipv4()
        {
            let what = format!("nothing goes from {source} to {destination}: one is IPv6");
            return Err(KeyFault::at(format!("{path}.destination"), what));
        }
        let ranges =
            [("source_port", self.source_port), ("destination_port", self.destination_port)];
        for (key, range) in ranges {
            let Some(range) = range else { continue };
            if range.first > range.last {
                return Err(KeyFault::at(
                    format!("{path}.{key}"),
                    format!("{range}: no port at all"),
                ));
            }
            if let Some(protocol) = self.protocol.filter(|is| !WITH_PORTS.contains(&is.0)) {
                let what = format!("packets of {protocol} have no ports: nothing matches this");
                return Err(KeyFault::at(format!("{path}.{key}"), what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InterfaceSetup, Router, RouterSetup};

    fn read(text: &str) -> RouterPolicy {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_value_of_another_type_is_described_in_the_words_of_a_policy() {
        let error = |text| toml::from_str::<RouterPolicy>(text).unwrap_err().message().to_owned();
        assert_eq!(
            error("classes.c = 3"),
            "invalid type: integer `3`, expected a table of a class"
        );
        assert_eq!(
            error("tables.t = 'x'"),
            "invalid type: string \"x\", expected a table of flows"
        );
    }

    /// A part that no interface uses is refused, also by a router.
    #[test]
    fn what_no_interface_uses_is_checked() {
        let lan = InterfaceSetup {
            name: "lan".to_owned(),
            addresses: vec![("10.0.0.1".parse().unwrap(), 24)],
            mtu: 1_500,
            paced: false,
        };
        for (text, path) in [
            ("[classes.a]\nmatch = []", "classes.a.match"),
            ("[classes.a]\nmatch = [{ table = 't' }]", "classes.a.match[0].table"),
            ("[classes.a]\nmatch = [{ interface = 'wan' }]", "classes.a.match[0].interface"),
            (
                "[classes.a]\nmatch = [{}, { source = '10.0.0.1', destination = '::/0' }]",
                "classes.a.match[1].destination",
            ),
            (
                "[classes.a]\nmatch = [{ protocol = 'icmp', source_port = 7 }]",
                "classes.a.match[0].source_port",
            ),
            (
                "[[tables.t.flows]]\nname = 'a'\nmatch = { protocol = 'esp', destination_port = 7 }",
                "tables.t.a.destination_port",
            ),
            ("[chains]\na = [{ kind = 'drop', class = 'b' }]", "chains.a[0].class"),
            (
                "[queueings.q]\nkind = 'priority'\nbranches = [{ class = 'b' }]",
                "queueings.q.branches",
            ),
            ("[interfaces.'*']\ninput = ['c']\n[interfaces.lan]", "interfaces.*.input"),
            ("[interfaces.'*']\nqueueing = 'c'\n[interfaces.lan]", "interfaces.*.queueing"),
        ] {
            let policy = read(text);
            assert_eq!(policy.check(&["lan".to_owned()]).unwrap_err().path, path, "{text}");
            let setup =
                RouterSetup { policy, interfaces: vec![lan.clone()], ..RouterSetup::default() };
            assert_eq!(Router::new(&setup).unwrap_err().path, path, "{text}");
        }
        let right = "[classes.a]\nmatch = [{ protocol = 'sctp', source_port = 7 }, {}]";
        assert_eq!(read(right).check(&[]), Ok(()));
    }

    /// The shipped policies have no faults and no warnings.
    #[test]
    fn shipped_policies_are_right() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/lab/policies");
        let mut read_ones = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let policy = read(&std::fs::read_to_string(&path).unwrap());
            let names: Vec<_> = policy.interfaces.keys().cloned().collect();
            assert_eq!(policy.check(&names), Ok(()), "{}", path.display());
            assert_eq!(policy.warnings(), [], "{}", path.display());
            read_ones += 1;
        }
        assert!(read_ones > 5, "{read_ones} in {folder}");
    }

    #[test]
    fn probable_mistakes_are_warned_of() {
        let policy = read(
            r#"
            [tables.t]
            flows = [{ name = "a", match = {}, rate = "1Mbit", burst = 1499 },
                     { name = "b", match = {}, burst = 1 },
                     { name = "c", match = {}, rate = "1Mbit", burst = 1500 }]
            [[chains.c]]
            kind = "meter"
            meter = { kind = "single-rate", cir = "1Mbit", cbs = 1, ebs = 1500 }
            [[chains.c]]
            kind = "demote"
            af_class = 1
            rates = ["1Mbit", "1Mbit", "1Mbit"]
            burst = 1000
            [[chains.d]]
            kind = "first-match"
            [[chains.d.classes]]
            steps = [{ kind = "meter", meter = { kind = "token-bucket", rate = "1Mbit", burst = 9 } },
                     { kind = "meter-flows", table = "t" }]
            [queueings.used]
            kind = "fifo"
            [queueings.unused]
            kind = "fifo"
            [interfaces.lan]
            input = ["c"]
            queueing = "used"
            "#,
        );
        policy.check(&["lan".to_owned()]).unwrap();
        let paths: Vec<_> = policy.warnings().into_iter().map(|warning| warning.path).collect();
        let expected = [
            "chains.d",
            "queueings.unused",
            "chains.c[1].burst",
            "chains.d[0].classes[0].steps[0].meter.burst",
            "tables.t.flows[0].burst",
        ];
        assert_eq!(paths, expected);
    }
}
