//! Joins the matches of a class that differ in one field only. A class takes the packets of any of
//! its matches, so the result has the same packets.

use super::algebra::whole;
use dscp::Dscp;
use router::policy::Match;

/// Code points that there are.
const ALL: usize = 64;

/// The matches, with those joined that differ in their code points only, or in the address family
/// only. An access list has one code point in an entry and one family, so a class made from lists
/// has many such matches.
pub(crate) fn merged(matches: &[Match]) -> Vec<Match> {
    let mut joined: Vec<Match> = Vec::new();
    for of in matches {
        let dscp = in_order(&of.dscp);
        match joined.iter_mut().find(|other| same_fields(other, of) && other.source == of.source) {
            // Without code points it matches all of them.
            Some(other) if other.dscp.is_empty() || dscp.is_empty() => other.dscp.clear(),
            Some(other) => other.dscp = in_order(&[&other.dscp[..], &dscp].concat()),
            None => joined.push(Match { dscp, ..of.clone() }),
        }
    }
    for of in std::mem::take(&mut joined) {
        let Some(is_ipv4) = family_alone(&of) else {
            joined.push(of);
            continue;
        };
        let source = whole(!is_ipv4);
        let is_rest = |other: &Match| {
            other.source == source && other.dscp == of.dscp && same_fields(other, &of)
        };
        match joined.iter_mut().find(|other| is_rest(other)) {
            Some(other) => other.source = None,
            None => joined.push(of),
        }
    }
    joined
}

/// Whether all but the code points and the source are the same.
fn same_fields(a: &Match, b: &Match) -> bool {
    a.destination == b.destination
        && a.protocol == b.protocol
        && a.source_port == b.source_port
        && a.destination_port == b.destination_port
        && a.interface == b.interface
        && a.table == b.table
}

/// The family, if that is all that a match requires of the addresses.
fn family_alone(of: &Match) -> Option<bool> {
    let source = of.source.filter(|source| source.length() == 0 && of.destination.is_none())?;
    Some(source.address().is_ipv4())
}

/// The code points by number, each once; none if these are all that there are.
pub(crate) fn in_order(dscp: &[Dscp]) -> Vec<Dscp> {
    let mut dscp = dscp.to_vec();
    dscp.sort();
    dscp.dedup();
    if dscp.len() == ALL { Vec::new() } else { dscp }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(toml: &str) -> Vec<Match> {
        let class: router::policy::PacketClass =
            toml::from_str(&format!("match = [{toml}]")).unwrap();
        class.matches
    }

    #[test]
    fn what_differs_in_code_points_or_family_only_is_one_match() {
        for (split, joined) in [
            ("{ dscp = ['EF'] }, { dscp = ['CS1', 'EF'] }", "{ dscp = ['CS1', 'EF'] }"),
            ("{ dscp = ['EF'] }, {}", "{}"),
            ("{ source = '0.0.0.0/0' }, { source = '::/0' }", "{}"),
            (
                "{ source = '0.0.0.0/0', dscp = ['EF'], protocol = 'tcp' },
                 { source = '0.0.0.0/0', dscp = ['CS1'], protocol = 'tcp' },
                 { source = '::/0', dscp = ['CS1'], protocol = 'tcp' },
                 { source = '::/0', dscp = ['EF'], protocol = 'tcp' }",
                "{ dscp = ['CS1', 'EF'], protocol = 'tcp' }",
            ),
        ] {
            assert_eq!(merged(&matches(split)), matches(joined), "{split}");
        }
        for apart in [
            "{ source = '0.0.0.0/0', dscp = ['EF'] }, { source = '::/0', dscp = ['CS1'] }",
            "{ source = '0.0.0.0/0', destination = '10.0.0.0/8' }, { source = '::/0' }",
            "{ source = '10.0.0.0/8' }, { source = '10.0.0.0/9' }",
            "{ destination_port = 1 }, { destination_port = 2 }",
        ] {
            assert_eq!(merged(&matches(apart)), matches(apart), "{apart}");
        }
    }
}
