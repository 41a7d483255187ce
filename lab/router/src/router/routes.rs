//! The routing table: the longest matching prefix applies (RFC 1812 5.2.4.3).

use super::RouterSetup;
use crate::packet::PacketHeader;
use crate::policy::{IpPrefix, KeyFault};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A route: packets to these addresses leave by this interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceRoute {
    /// The destination prefix.
    pub to: IpPrefix,
    /// The position of the output interface.
    pub interface: usize,
}

/// Routes by length of prefix, longest first, then by prefix. Few lengths are in use.
#[derive(Debug, Default)]
pub(super) struct RoutingTable {
    v4: Vec<(u32, BTreeMap<u32, usize>)>,
    v6: Vec<(u128, BTreeMap<u128, usize>)>,
}

impl RoutingTable {
    pub(super) fn new(setup: &RouterSetup) -> Result<RoutingTable, KeyFault> {
        let mut by_length: BTreeMap<(u8, IpPrefix), usize> = BTreeMap::new();
        // A directly connected prefix, unless a route replaces it.
        for (place, interface) in setup.interfaces.iter().enumerate() {
            for (address, length) in &interface.addresses {
                let Some(prefix) = IpPrefix::new(*address, *length) else {
                    let path = format!("interfaces.{}.addresses", interface.name);
                    return Err(KeyFault::at(path, format!("{address}/{length} is not a prefix")));
                };
                by_length.entry((*length, prefix)).or_insert(place);
            }
        }
        for route in &setup.routes {
            if route.interface >= setup.interfaces.len() {
                let what = format!("there is no interface number {}", route.interface);
                return Err(KeyFault::at(format!("routes.{}", route.to), what));
            }
            by_length.insert((route.to.length(), route.to), route.interface);
        }
        let mut routes = RoutingTable::default();
        for ((length, prefix), interface) in by_length.into_iter().rev() {
            match prefix.address() {
                IpAddr::V4(address) => {
                    let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                    add(&mut routes.v4, mask, u32::from(address), interface);
                }
                IpAddr::V6(address) => {
                    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                    add(&mut routes.v6, mask, u128::from(address), interface);
                }
            }
        }
        Ok(routes)
    }

    pub(super) fn find(&self, address: IpAddr) -> Option<usize> {
        match address {
            IpAddr::V4(address) => {
                let bits = u32::from(address);
                self.v4.iter().find_map(|(mask, routes)| routes.get(&(bits & mask))).copied()
            }
            IpAddr::V6(address) => {
                let bits = u128::from(address);
                self.v6.iter().find_map(|(mask, routes)| routes.get(&(bits & mask))).copied()
            }
        }
    }
}

/// Whether no router forwards such a packet: the source does not identify a host, or the
/// destination is not an address of a host beyond its link (RFC 1812 5.3.7, RFC 4291 2.5, RFC 3927
/// 7). Multicast is not routed here.
pub(super) fn is_martian(header: &PacketHeader) -> bool {
    match (header.source, header.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let local = |address: Ipv4Addr| {
                address.is_unspecified()
                    || address.is_loopback()
                    || address.is_link_local()
                    || address.is_multicast()
                    || address.is_broadcast()
            };
            local(source) || local(destination)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let local = |address: Ipv6Addr| {
                address.is_unspecified()
                    || address.is_loopback()
                    || address.is_unicast_link_local()
                    || address.is_multicast()
            };
            local(source) || local(destination)
        }
        _ => true,
    }
}

/// Adds a route; routes with the same mask are adjacent.
fn add<A: Ord>(to: &mut Vec<(A, BTreeMap<A, usize>)>, mask: A, address: A, interface: usize) {
    match to.last_mut() {
        Some((last, routes)) if *last == mask => {
            routes.insert(address, interface);
        }
        _ => to.push((mask, BTreeMap::from([(address, interface)]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::InterfaceSetup;
    use proptest::prelude::*;

    fn setup(routes: &[(IpPrefix, usize)]) -> RouterSetup {
        let interface = |name: &str, address: &str| InterfaceSetup {
            name: name.to_owned(),
            addresses: vec![(address.parse().unwrap(), 24)],
            mtu: 1500,
            paced: false,
        };
        RouterSetup {
            interfaces: vec![interface("lan", "10.1.1.1"), interface("wan", "10.1.2.1")],
            routes: routes
                .iter()
                .map(|(to, interface)| InterfaceRoute { to: *to, interface: *interface })
                .collect(),
            ..RouterSetup::default()
        }
    }

    #[test]
    fn connected_prefixes_are_reached_unless_a_route_replaces_them() {
        let default = ("0.0.0.0/0".parse().unwrap(), 1);
        let exception = ("10.1.1.128/25".parse().unwrap(), 1);
        let routes = RoutingTable::new(&setup(&[default, exception])).unwrap();
        for (address, interface) in
            [("10.1.1.7", 0), ("10.1.1.200", 1), ("10.1.2.9", 1), ("8.8.8.8", 1)]
        {
            assert_eq!(routes.find(address.parse().unwrap()), Some(interface), "{address}");
        }
        assert_eq!(routes.find("fd00::1".parse().unwrap()), None);
        let error = RoutingTable::new(&setup(&[("::/0".parse().unwrap(), 2)])).unwrap_err();
        assert_eq!(error.to_string(), "routes.::/0: there is no interface number 2");
    }

    proptest! {
        #[test]
        fn the_longest_prefix_counts(
            prefixes in prop::collection::vec((any::<u32>(), 0u8..=32, any::<bool>(), 0usize..2), 0..20),
            host in any::<u32>(),
            near in any::<prop::sample::Index>(),
        ) {
            let address = |bits: u32, is_v6: bool| -> IpAddr {
                if is_v6 {
                    Ipv6Addr::from(u128::from(bits) << 96).into()
                } else {
                    Ipv4Addr::from(bits).into()
                }
            };
            let list: Vec<(IpPrefix, usize)> = prefixes
                .iter()
                .map(|(bits, length, is_v6, out)| (IpPrefix::new(address(*bits, *is_v6), *length).unwrap(), *out))
                .collect();
            let mut setup = setup(&list);
            setup.interfaces.iter_mut().for_each(|one| one.addresses.clear());
            let routes = RoutingTable::new(&setup).unwrap();
            // Some random address, and one within some prefix.
            let mut asked = vec![address(host, false), address(host, true)];
            if !list.is_empty() {
                asked.push(list[near.index(list.len())].0.address());
            }
            for asked in asked {
                let longest = list.iter().filter(|(prefix, _)| prefix.contains(asked)).map(|(prefix, _)| prefix.length()).max();
                let model = longest.and_then(|longest| {
                    // Of two routes to the same prefix, the later one applies.
                    list.iter().rev().find(|(prefix, _)| prefix.length() == longest && prefix.contains(asked))
                });
                prop_assert_eq!(routes.find(asked), model.map(|(_, out)| *out));
            }
        }
    }
}
