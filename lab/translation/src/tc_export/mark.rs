//! Chains of conditioners as nft(8) rules, in a table for each device.

use super::filter::is_of;
use super::{NoScript, ScriptBuilder};
use router::policy::{ChainStep, ClassSteps, Match, MeterAction, MeterProfile, Name};

/// Nested first-match steps at most, as in a router.
const MAX_DEPTH: usize = 8;

impl ScriptBuilder<'_> {
    /// Adds the chains of one direction: `hook` of nft, and the interface name that it matches.
    pub(super) fn chains(
        &mut self,
        hook: &str,
        looks_at: &str,
        names: &[Name],
    ) -> Result<(), NoScript> {
        let policy = self.policy;
        let steps: Vec<&ChainStep> =
            names.iter().filter_map(|name| policy.chains.get(name)).flatten().collect();
        if steps.is_empty() {
            return Ok(());
        }
        let table = format!("lab-{}", self.dev);
        self.run(&format!("nft add table inet {table}"), None)?;
        self.undo(&format!("nft delete table inet {table}"));
        let base = format!("{{ type filter hook {hook} priority mangle ; }}");
        self.nft(hook, "chain", &[base.as_str()])?;
        for step in steps {
            if let Some(chain) = self.step(step, 0)? {
                self.nft(hook, "rule", &[looks_at, self.dev, "jump", &chain])?;
            }
        }
        Ok(())
    }

    fn nft(&mut self, chain: &str, what: &str, rest: &[&str]) -> Result<(), NoScript> {
        let table = format!("lab-{}", self.dev);
        let start = ["nft", "add", what, "inet", &table, chain];
        let words = start.iter().chain(rest).map(|word| (*word).to_owned()).collect();
        self.run_words(words, None)
    }

    /// Adds a chain of these rules and returns its name; `None` without rules.
    fn chain(&mut self, kind: &str, rules: &[String]) -> Result<Option<String>, NoScript> {
        if rules.is_empty() {
            return Ok(None);
        }
        let chain = format!("{kind}{}", self.number()?);
        self.nft(&chain, "chain", &[])?;
        for rule in rules {
            let words: Vec<&str> = rule.split_whitespace().collect();
            self.nft(&chain, "rule", &words)?;
        }
        Ok(Some(chain))
    }

    fn matches(&mut self, class: Option<&str>) -> Vec<Match> {
        let Some(name) = class else { return vec![Match::default()] };
        let found = self.policy.classes.get(name);
        let matches = found.map(|class| class.matches.as_slice()).unwrap_or_default();
        matches.iter().flat_map(|of| self.without_table(of, name)).collect()
    }

    /// Adds the chain of a step; `None` if it does nothing, or nft has no counterpart. At its end
    /// and at `return`, packets continue after the `jump` that led to it.
    fn step(&mut self, step: &ChainStep, depth: usize) -> Result<Option<String>, NoScript> {
        let rules: Vec<String> = match step {
            ChainStep::Mark { class, dscp } => {
                let matches = self.matches(class.as_deref());
                matches.iter().flat_map(|of| rules(of, Some(dscp.number()), "return")).collect()
            }
            ChainStep::Drop { class } => {
                let matches = self.matches(class.as_deref());
                matches.iter().flat_map(|of| rules(of, None, "drop")).collect()
            }
            ChainStep::MarkFlows { table } => {
                let found = self.policy.tables.get(table);
                let flows = found.map(|table| table.flows.as_slice()).unwrap_or_default();
                self.leave_out(format!("changes of the table {table} while it runs"));
                flows
                    .iter()
                    .flat_map(|flow| rules(&flow.matches, flow.mark.map(|d| d.number()), "return"))
                    .collect()
            }
            ChainStep::Meter {
                class,
                meter: MeterProfile::TokenBucket { rate, burst },
                green,
                red,
                ..
            } => {
                let (octets, burst) = (rate.bits().div_ceil(8), burst.0.max(1));
                let bucket = format!("limit rate over {octets} bytes/second burst {burst} bytes");
                let metered = self.bucket(&bucket, *green, *red)?;
                return self.led(class.as_deref(), metered);
            }
            ChainStep::Meter { .. } => {
                self.leave_out("meters of three colours");
                Vec::new()
            }
            ChainStep::Demote(_) => {
                self.leave_out("demotion by drop precedence");
                Vec::new()
            }
            ChainStep::MeterFlows { table, .. } | ChainStep::ShapeFlows { table, .. } => {
                self.leave_out(format!("meters or shapers of each flow of the table {table}"));
                Vec::new()
            }
            ChainStep::FirstMatch { classes } => self.first_match(classes, depth)?,
            ChainStep::Shape { .. } => {
                self.leave_out("shaping in a chain: the kernel shapes where packets are queued");
                Vec::new()
            }
        };
        self.chain("step", &rules)
    }

    /// Rules that lead packets to the steps of their first class: `goto` does not return.
    fn first_match(
        &mut self,
        classes: &[ClassSteps],
        depth: usize,
    ) -> Result<Vec<String>, NoScript> {
        if depth >= MAX_DEPTH {
            self.leave_out(format!("more than {MAX_DEPTH} first-match steps inside one another"));
            return Ok(Vec::new());
        }
        let (named, others): (Vec<_>, Vec<_>) = classes.iter().partition(|of| of.class.is_some());
        let (mut found, mut idle) = (Vec::new(), true);
        for ClassSteps { class, steps } in named.into_iter().chain(others) {
            let mut done = Vec::new();
            for step in steps {
                done.extend(self.step(step, depth + 1)?);
            }
            idle &= done.is_empty();
            let verdict = match &done[..] {
                [] => "return".to_owned(),
                [only] => format!("goto {only}"),
                several => {
                    let jumps: Vec<_> = several.iter().map(|step| format!("jump {step}")).collect();
                    let case = self.chain("case", &jumps)?;
                    case.map_or_else(|| "return".to_owned(), |case| format!("goto {case}"))
                }
            };
            let matches = self.matches(class.as_deref());
            found.extend(matches.iter().flat_map(|of| rules(of, None, &verdict)));
        }
        Ok(if idle { Vec::new() } else { found })
    }

    /// Adds the chain of a token bucket, one for all packets that reach it; `None` if it changes
    /// nothing.
    fn bucket(
        &mut self,
        bucket: &str,
        green: MeterAction,
        red: MeterAction,
    ) -> Result<Option<String>, NoScript> {
        if [green, red].contains(&MeterAction::DropPrecedence) {
            self.leave_out("meters that set the drop precedence");
            return Ok(None);
        }
        let done = |action: MeterAction| match action {
            MeterAction::Drop => vec!["drop".to_owned()],
            MeterAction::Mark(dscp) => rules(&Match::default(), Some(dscp.number()), "return"),
            MeterAction::Pass | MeterAction::DropPrecedence => Vec::new(),
        };
        let above = match red {
            _ if green == red => Vec::new(),
            MeterAction::Pass => vec![format!("{bucket} return")],
            MeterAction::Drop => vec![format!("{bucket} drop")],
            _ => {
                let red = self.chain("red", &done(red))?;
                red.iter().map(|red| format!("{bucket} goto {red}")).collect()
            }
        };
        if !above.is_empty() {
            self.leave_out("a bucket of its burst alone: nft's holds what a second brings besides");
        }
        let rules: Vec<String> = above.into_iter().chain(done(green)).collect();
        self.chain("bucket", &rules)
    }

    /// Adds a chain that leads the packets of a class to another one; without a class, that one is
    /// returned.
    fn led(
        &mut self,
        class: Option<&str>,
        chain: Option<String>,
    ) -> Result<Option<String>, NoScript> {
        let (Some(name), Some(to)) = (class, &chain) else { return Ok(chain) };
        let verdict = format!("goto {to}");
        let matches = self.matches(Some(name));
        let rules: Vec<String> = matches.iter().flat_map(|of| rules(of, None, &verdict)).collect();
        self.chain("step", &rules)
    }
}

/// The rules for a match, one for each family: conditions, mark, verdict.
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
