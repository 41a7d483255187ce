//! Classes as u32 filters.

use super::{NoScript, ScriptBuilder};
use router::policy::{IpPrefix, Match, PortRange};

/// Filters of one class, at most. A range of ports needs several.
const MAX_FILTERS: usize = 1_024;

impl ScriptBuilder<'_> {
    /// Adds filters that assign the packets of a class to `flow`. Returns the next priority of
    /// filters.
    pub(super) fn filters(
        &mut self,
        parent: &str,
        place: usize,
        class: &str,
        flow: &str,
    ) -> Result<usize, NoScript> {
        let Some(class_of) = self.policy.classes.get(class) else {
            self.leave_out(format!("the class {class} is not in the policy"));
            return Ok(place);
        };
        let mut matches = Vec::new();
        for of in &class_of.matches {
            matches.extend(self.without_table(of, class));
        }
        // All filters of one priority have the same protocol.
        for (place, is_ipv4, protocol) in [(place, true, "ip"), (place + 1, false, "ipv6")] {
            let words: Vec<String> = matches.iter().flat_map(|of| words(of, is_ipv4)).collect();
            if words.len() > MAX_FILTERS {
                return Err(NoScript::TooLarge);
            }
            for words in words {
                let dev = self.dev;
                let line = format!(
                    "tc filter add dev {dev} parent {parent} protocol {protocol} prio {place} u32 \
                     {words} flowid {flow}"
                );
                self.run(&line, None)?;
            }
        }
        Ok(place + 2)
    }

    /// Assigns all other packets to `flow`.
    pub(super) fn others(
        &mut self,
        parent: &str,
        place: usize,
        flow: &str,
    ) -> Result<(), NoScript> {
        let dev = self.dev;
        let line = format!(
            "tc filter add dev {dev} parent {parent} protocol all prio {place} u32 match u32 0 0 \
             flowid {flow}"
        );
        self.run(&line, None)
    }

    /// A match, with the flows of its table written out; empty if it cannot be a filter.
    pub(super) fn without_table(&mut self, of: &Match, class: &str) -> Vec<Match> {
        if of.interface.is_some() {
            self.leave_out(format!("{class}: the interface that a packet came in at"));
            return Vec::new();
        }
        let Some(name) = &of.table else { return vec![of.clone()] };
        let plain = Match { table: None, ..of.clone() };
        let flows = self.policy.tables.get(name).map(|table| table.flows.as_slice());
        let flows = flows.unwrap_or_default();
        if plain != Match::default() {
            self.leave_out(format!("{class}: a table and something else at once"));
            return Vec::new();
        }
        let found = flows.iter().map(|flow| flow.matches.clone()).collect();
        self.leave_out(format!("{class}: changes of the table {name} while it runs"));
        found
    }
}

/// Whether packets of this family can match.
pub(super) fn is_of(of: &Match, is_ipv4: bool) -> bool {
    let fits = |prefix: Option<IpPrefix>| prefix.is_none_or(|p| p.address().is_ipv4() == is_ipv4);
    fits(of.source) && fits(of.destination)
}

/// The u32 selectors for a match, one for each combination of values.
fn words(of: &Match, is_ipv4: bool) -> Vec<String> {
    if !is_of(of, is_ipv4) {
        return Vec::new();
    }
    let ip = if is_ipv4 { "ip" } else { "ip6" };
    let field = if is_ipv4 { "dsfield" } else { "priority" };
    let mut all = vec![String::new()];
    let mut add = |choices: Vec<String>| {
        if !choices.is_empty() {
            let longer = all
                .iter()
                .flat_map(|so_far| choices.iter().map(move |choice| format!("{so_far} {choice}")));
            all = longer.take(MAX_FILTERS + 1).collect();
        }
    };
    let marks = of.dscp.iter().map(|d| format!("match {ip} {field} {:#04x} 0xfc", d.tos()));
    add(marks.collect());
    let prefix = |end: &str, prefix: Option<IpPrefix>| -> Vec<String> {
        let some = prefix.filter(|prefix| prefix.length() > 0);
        some.map(|prefix| format!("match {ip} {end} {prefix}")).into_iter().collect()
    };
    add(prefix("src", of.source));
    add(prefix("dst", of.destination));
    let protocol = of.protocol.map(|p| format!("match {ip} protocol {} 0xff", p.0));
    add(protocol.into_iter().collect());
    let ports = |end: &str, ports: Option<PortRange>| -> Vec<String> {
        let blocks = ports.map(blocks).unwrap_or_default().into_iter();
        blocks.map(|(value, mask)| format!("match {ip} {end} {value} {mask:#06x}")).collect()
    };
    add(ports("sport", of.source_port));
    add(ports("dport", of.destination_port));
    let any = |words: String| match words.is_empty() {
        true => "match u32 0 0".to_owned(),
        false => words.trim_start().to_owned(),
    };
    all.into_iter().map(any).collect()
}

/// The fewest values with masks that cover a range.
fn blocks(ports: PortRange) -> Vec<(u16, u16)> {
    let (mut from, last) = (u32::from(ports.first), u32::from(ports.last));
    let mut found = Vec::new();
    while from <= last {
        let mut size = if from == 0 { 1 << 16 } else { 1u32 << from.trailing_zeros() };
        while from + size - 1 > last {
            size /= 2;
        }
        let mask = u16::try_from(0x1_0000 - size).unwrap_or(0);
        found.push((u16::try_from(from).unwrap_or(0), mask));
        from += size;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_cover_a_range_exactly(a: u16, b: u16, probe: u16) {
            let range = PortRange { first: a.min(b), last: a.max(b) };
            let blocks = blocks(range);
            prop_assert!(blocks.len() <= 30);
            for port in [probe, range.first, range.last, a.wrapping_sub(1), b.wrapping_add(1)] {
                let hits = blocks.iter().filter(|(value, mask)| port & mask == *value).count();
                prop_assert_eq!(hits, usize::from(range.contains(port)), "{}", port);
            }
        }
    }
}
