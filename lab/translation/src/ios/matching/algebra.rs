//! Sets of packets as lists of matches: intersection and difference.

use super::work::{TOO_MUCH, WorkBudget};
use dscp::Dscp;
use router::policy::{IpPrefix, Match, PortRange};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Matches of a class, at most; a class with more is not translated.
pub(crate) const MAX_MATCHES: usize = 256;

/// The prefix of all IPv4 or all IPv6 addresses.
pub(crate) fn whole(is_ipv4: bool) -> Option<IpPrefix> {
    let address: IpAddr =
        if is_ipv4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    IpPrefix::new(address, 0)
}

fn common<T: Clone>(
    a: &Option<T>,
    b: &Option<T>,
    both: impl FnOnce(&T, &T) -> Option<T>,
) -> Option<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) => both(a, b).map(Some),
        (one, other) => Some(one.clone().or_else(|| other.clone())),
    }
}

fn narrower(a: &IpPrefix, b: &IpPrefix) -> Option<IpPrefix> {
    let within = |inner: &IpPrefix, outer: &IpPrefix| {
        inner.length() >= outer.length() && outer.contains(inner.address())
    };
    match (within(a, b), within(b, a)) {
        (true, _) => Some(*a),
        (_, true) => Some(*b),
        _ => None,
    }
}

fn same<T: PartialEq + Clone>(a: &T, b: &T) -> Option<T> {
    (a == b).then(|| a.clone())
}

fn overlap(a: &PortRange, b: &PortRange) -> Option<PortRange> {
    let (first, last) = (a.first.max(b.first), a.last.min(b.last));
    (first <= last).then_some(PortRange { first, last })
}

/// The packets that match both; `None` if there are none.
pub(crate) fn intersection(a: &Match, b: &Match) -> Option<Match> {
    let dscp: Vec<Dscp> = match (a.dscp.is_empty(), b.dscp.is_empty()) {
        (true, _) => b.dscp.clone(),
        (_, true) => a.dscp.clone(),
        _ => a.dscp.iter().filter(|dscp| b.dscp.contains(dscp)).copied().collect(),
    };
    if dscp.is_empty() && !(a.dscp.is_empty() && b.dscp.is_empty()) {
        return None;
    }
    let source = common(&a.source, &b.source, narrower)?;
    let destination = common(&a.destination, &b.destination, narrower)?;
    // The addresses of a packet are of one family.
    if source.zip(destination).is_some_and(|(s, d)| s.address().is_ipv4() != d.address().is_ipv4())
    {
        return None;
    }
    Some(Match {
        dscp,
        interface: common(&a.interface, &b.interface, same)?,
        source,
        destination,
        protocol: common(&a.protocol, &b.protocol, same)?,
        source_port: common(&a.source_port, &b.source_port, overlap)?,
        destination_port: common(&a.destination_port, &b.destination_port, overlap)?,
        table: None,
    })
}

/// All code points except these.
pub(crate) fn other_dscps(all: &[Dscp], but: &[Dscp]) -> Vec<Dscp> {
    let every: Vec<Dscp> = (0..64).filter_map(Dscp::new).collect();
    let all = if all.is_empty() { &every } else { all };
    all.iter().filter(|dscp| !but.contains(dscp)).copied().collect()
}

/// The prefixes that cover `outer` (everything if `None`) without `inner`.
fn around(outer: Option<IpPrefix>, inner: IpPrefix) -> Vec<IpPrefix> {
    let is_ipv4 = inner.address().is_ipv4();
    let mut parts = Vec::new();
    if outer.is_none() {
        parts.extend(whole(!is_ipv4));
    }
    let from = outer.map_or(0, IpPrefix::length);
    for length in from..inner.length() {
        // The other half of the prefix of this length that contains `inner`.
        let flipped: IpAddr = match inner.address() {
            IpAddr::V4(v4) => Ipv4Addr::from(u32::from(v4) ^ (1 << (31 - length))).into(),
            IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) ^ (1 << (127 - length))).into(),
        };
        parts.extend(IpPrefix::new(flipped, length + 1));
    }
    parts
}

fn ports_around(outer: Option<PortRange>, inner: PortRange) -> Vec<PortRange> {
    let outer = outer.unwrap_or(PortRange { first: 0, last: u16::MAX });
    let below = inner.first.checked_sub(1).map(|last| PortRange { first: outer.first, last });
    let above = inner.last.checked_add(1).map(|first| PortRange { first, last: outer.last });
    below.into_iter().chain(above).filter(|ports| ports.first <= ports.last).collect()
}

/// The packets that match `from` and not `without`, as matches.
///
/// # Errors
/// Matches cannot express the set; the reason.
pub(crate) fn difference(from: &Match, without: &Match) -> Result<Vec<Match>, &'static str> {
    let Some(inner) = intersection(from, without) else { return Ok(vec![from.clone()]) };
    let (mut parts, mut rest) = (Vec::new(), from.clone());
    if rest.interface != inner.interface {
        return Err("a policy cannot express all interfaces but one");
    }
    if rest.protocol != inner.protocol {
        return Err("a policy cannot express all protocols but one");
    }
    if rest.dscp.len() != inner.dscp.len() {
        let dscp = other_dscps(&rest.dscp, &inner.dscp);
        if !dscp.is_empty() {
            parts.push(Match { dscp, ..rest.clone() });
        }
        rest.dscp.clone_from(&inner.dscp);
    }
    if let Some(prefix) = inner.source.filter(|_| rest.source != inner.source) {
        let around = around(rest.source, prefix).into_iter();
        parts.extend(around.map(|source| Match { source: Some(source), ..rest.clone() }));
        rest.source = Some(prefix);
    }
    if let Some(prefix) = inner.destination.filter(|_| rest.destination != inner.destination) {
        let around = around(rest.destination, prefix).into_iter();
        parts.extend(around.map(|to| Match { destination: Some(to), ..rest.clone() }));
        rest.destination = Some(prefix);
    }
    if let Some(ports) = inner.source_port.filter(|_| rest.source_port != inner.source_port) {
        let around = ports_around(rest.source_port, ports).into_iter();
        parts.extend(around.map(|ports| Match { source_port: Some(ports), ..rest.clone() }));
        rest.source_port = Some(ports);
    }
    let port = inner.destination_port.filter(|_| rest.destination_port != inner.destination_port);
    if let Some(ports) = port {
        let around = ports_around(rest.destination_port, ports).into_iter();
        parts.extend(around.map(|ports| Match { destination_port: Some(ports), ..rest.clone() }));
    }
    // Halves of another family than the addresses of `from` are empty.
    parts.retain(|part| intersection(part, from).is_some());
    Ok(parts)
}

/// The packets that match any of `from` and none of `without`.
///
/// # Errors
/// Those of [`difference`], more than [`MAX_MATCHES`] matches, or no work units left.
pub(crate) fn all_without(
    from: &[Match],
    without: &[Match],
    work: &mut WorkBudget,
) -> Result<Vec<Match>, &'static str> {
    let mut rest = from.to_vec();
    for without in without {
        let mut parts = Vec::new();
        for one in &rest {
            if !work.compares(one.dscp.len(), without.dscp.len()) {
                return Err(TOO_MUCH);
            }
            let part = difference(one, without)?;
            if !work.makes(part.len()) {
                return Err(TOO_MUCH);
            }
            parts.extend(part);
        }
        rest = parts;
        if rest.len() > MAX_MATCHES {
            return Err("it would take more than 256 matches");
        }
    }
    Ok(rest)
}

/// The packets that match one of each list.
///
/// # Errors
/// More than [`MAX_MATCHES`] matches, or no work units left.
pub(crate) fn all_common(
    a: &[Match],
    b: &[Match],
    work: &mut WorkBudget,
) -> Result<Vec<Match>, &'static str> {
    let mut both = Vec::new();
    for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (a, b))) {
        if !work.compares(a.dscp.len(), b.dscp.len()) {
            return Err(TOO_MUCH);
        }
        both.extend(intersection(a, b));
        if both.len() > MAX_MATCHES {
            return Err("it would take more than 256 matches");
        }
    }
    Ok(both)
}

/// Whether some packet matches one of each list; `false` if no work units are left.
pub(crate) fn any_common(a: &[Match], b: &[Match], work: &mut WorkBudget) -> bool {
    let mut pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    pairs.any(|(a, b)| work.compares(a.dscp.len(), b.dscp.len()) && intersection(a, b).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use router::policy::IpProtocol;

    /// The fields of a packet that matches test.
    type Packet = (u8, [u8; 2], [u8; 2], bool, u8, u16, u16);

    fn address(octets: [u8; 2], v4: bool) -> IpAddr {
        if v4 {
            Ipv4Addr::new(10, 0, octets[0], octets[1]).into()
        } else {
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, octets[0].into(), octets[1].into()).into()
        }
    }

    fn meets(of: &Match, packet: &Packet) -> bool {
        let (dscp, source, destination, v4, protocol, from, to) = *packet;
        let prefix =
            |p: Option<IpPrefix>, octets| p.is_none_or(|p| p.contains(address(octets, v4)));
        (of.dscp.is_empty() || of.dscp.iter().any(|d| d.number() == dscp))
            && prefix(of.source, source)
            && prefix(of.destination, destination)
            && of.protocol.is_none_or(|p| p.0 == protocol)
            && of.source_port.is_none_or(|p| p.contains(from))
            && of.destination_port.is_none_or(|p| p.contains(to))
    }

    prop_compose! {
        fn a_prefix()(octets: [u8; 2], v4: bool, less in prop_oneof![0u8..17, Just(40)]) -> Option<IpPrefix> {
            if less == 40 {
                whole(v4)
            } else {
                IpPrefix::new(address(octets.map(|o| o % 4), v4), if v4 { 32 } else { 128 } - less)
            }
        }
    }

    prop_compose! {
        fn some_ports()(a in 0u16..6, b in 0u16..6) -> Option<PortRange> {
            Some(PortRange { first: a.min(b), last: if b == 5 { u16::MAX } else { a.max(b) } })
        }
    }

    prop_compose! {
        fn a_match()(
            dscp in prop::collection::btree_set(0u8..4, 0..3),
            source in prop_oneof![Just(None), a_prefix()],
            destination in prop_oneof![Just(None), a_prefix()],
            protocol in prop_oneof![Just(None), Just(Some(IpProtocol(17)))],
            source_port in prop_oneof![Just(None), some_ports()],
            destination_port in prop_oneof![Just(None), some_ports()],
        ) -> Match {
            let dscp = dscp.into_iter().filter_map(Dscp::new).collect();
            Match { dscp, source, destination, protocol, source_port, destination_port, ..Match::default() }
        }
    }

    prop_compose! {
        fn a_packet()(
            dscp in 0u8..5, source in any::<[u8; 2]>(), destination in any::<[u8; 2]>(), v4: bool,
            protocol in prop_oneof![Just(6u8), Just(17)], from in 0u16..7, to in 0u16..7,
        ) -> Packet {
            (dscp, source.map(|o| o % 8), destination.map(|o| o % 8), v4, protocol, from, to)
        }
    }

    proptest! {
        #[test]
        fn packets_match_as_the_sets_require(
            a in a_match(), b in a_match(), packets in prop::collection::vec(a_packet(), 50),
        ) {
            let both = intersection(&a, &b);
            let rest = difference(&a, &b);
            for packet in &packets {
                let (in_a, in_b) = (meets(&a, packet), meets(&b, packet));
                prop_assert_eq!(both.as_ref().is_some_and(|m| meets(m, packet)), in_a && in_b);
                if let Ok(rest) = &rest {
                    let parts = rest.iter().filter(|m| meets(m, packet)).count();
                    prop_assert_eq!(parts, usize::from(in_a && !in_b), "{:?}", rest);
                }
            }
            if a.protocol == b.protocol {
                prop_assert!(rest.is_ok());
            }
        }
    }
}
