//! Chains of conditioners as rules of nft(8), in a table of the device's own.

use super::filter::is_of;
use super::{Builder, NoScript};
use router::policy::{Action, Match, Meter, Name, Step};

impl Builder<'_> {
    /// The chains of one direction: a hook of nft, and which name of an interface it looks at.
    pub(super) fn chains(
        &mut self,
        hook: &str,
        looks_at: &str,
        names: &[Name],
    ) -> Result<(), NoScript> {
        let policy = self.policy;
        let steps: Vec<&Step> =
            names.iter().filter_map(|name| policy.chains.get(name)).flatten().collect();
        if steps.is_empty() {
            return Ok(());
        }
        let table = format!("lab-{}", self.dev);
        self.run(&format!("nft add table inet {table}"), None)?;
        let base = format!("{{ type filter hook {hook} priority mangle ; }}");
        self.nft(&table, hook, "chain", &[base.as_str()])?;
        for step in steps {
            let chain = format!("step{}", self.number()?);
            let rules = self.rules(step);
            if rules.is_empty() {
                continue;
            }
            self.nft(&table, &chain, "chain", &[])?;
            for rule in rules {
                let words: Vec<&str> = rule.split_whitespace().collect();
                self.nft(&table, &chain, "rule", &words)?;
            }
            self.nft(&table, hook, "rule", &[looks_at, self.dev, "jump", &chain])?;
        }
        Ok(())
    }

    fn nft(&mut self, table: &str, chain: &str, what: &str, rest: &[&str]) -> Result<(), NoScript> {
        let start = ["nft", "add", what, "inet", table, chain];
        let words = start.iter().chain(rest).map(|word| (*word).to_owned()).collect();
        self.run_words(words, None)
    }

    fn matches(&mut self, class: Option<&str>) -> Vec<Match> {
        let Some(name) = class else { return vec![Match::default()] };
        let found = self.policy.classes.get(name);
        let matches = found.map(|class| class.matches.as_slice()).unwrap_or_default();
        matches.iter().flat_map(|of| self.without_table(of, name)).collect()
    }

    /// The rules of a step; none where it has no counterpart.
    fn rules(&mut self, step: &Step) -> Vec<String> {
        match step {
            Step::Mark { class, dscp } => {
                let matches = self.matches(class.as_deref());
                matches.iter().flat_map(|of| rules(of, Some(dscp.number()), "return")).collect()
            }
            Step::Drop { class } => {
                let matches = self.matches(class.as_deref());
                matches.iter().flat_map(|of| rules(of, None, "drop")).collect()
            }
            Step::MarkFlows { table } => {
                let found = self.policy.tables.get(table);
                let flows = found.map(|table| table.flows.as_slice()).unwrap_or_default();
                self.leave_out(format!("changes of the table {table} while it runs"));
                flows
                    .iter()
                    .flat_map(|flow| rules(&flow.matches, flow.mark.map(|d| d.number()), "return"))
                    .collect()
            }
            Step::Meter {
                class,
                meter: Meter::TokenBucket { rate, burst },
                green: Action::Pass,
                red: Action::Drop,
                ..
            } => {
                let matches = self.matches(class.as_deref());
                if matches.len() > 1 {
                    self.leave_out("one bucket for all matches of a class: each has its own");
                }
                let (octets, burst) = (rate.bits().div_ceil(8), burst.0.max(1));
                let verdict =
                    format!("limit rate over {octets} bytes/second burst {burst} bytes drop");
                matches.iter().flat_map(|of| rules(of, None, &verdict)).collect()
            }
            Step::Meter { .. } => {
                self.leave_out("meters with more than pass and drop");
                Vec::new()
            }
            Step::Demote(_) => {
                self.leave_out("demotion by drop precedence");
                Vec::new()
            }
            Step::MeterFlows { table, .. } | Step::ShapeFlows { table, .. } => {
                self.leave_out(format!("meters or shapers of each flow of the table {table}"));
                Vec::new()
            }
            Step::FirstMatch { .. } => {
                self.leave_out("steps of the first of several classes");
                Vec::new()
            }
            Step::Shape { .. } => {
                self.leave_out("shaping in a chain: the kernel shapes where packets are queued");
                Vec::new()
            }
        }
    }
}

/// Rules for a match, by family: what it looks for, the mark it gives, what then.
fn rules(of: &Match, mark: Option<u8>, verdict: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (is_ipv4, ip, family) in [(true, "ip", "ipv4"), (false, "ip6", "ipv6")] {
        if !is_of(of, is_ipv4) {
            continue;
        }
        let mut rule = format!("meta nfproto {family}");
        let mut add = |words: String| rule.push_str(&format!(" {words}"));
        if !of.dscp.is_empty() {
            let codes: Vec<String> = of.dscp.iter().map(|dscp| dscp.number().to_string()).collect();
            add(format!("{ip} dscp {{ {} }}", codes.join(", ")));
        }
        of.source.into_iter().for_each(|prefix| add(format!("{ip} saddr {prefix}")));
        of.destination.into_iter().for_each(|prefix| add(format!("{ip} daddr {prefix}")));
        of.protocol.into_iter().for_each(|protocol| add(format!("meta l4proto {}", protocol.0)));
        of.source_port.into_iter().for_each(|ports| add(format!("th sport {ports}")));
        of.destination_port.into_iter().for_each(|ports| add(format!("th dport {ports}")));
        mark.into_iter().for_each(|mark| add(format!("{ip} dscp set {mark}")));
        add(verdict.to_owned());
        found.push(rule);
    }
    found
}
