//! An index of match rules by the header fields that they test (tuple space search, Srinivasan,
//! Suri and Varghese 1999).
//!
//! Rules that test the same fields, with prefixes of the same lengths, form one group. The fields
//! of a packet that a group tests are one key, so one lookup searches the whole group. A search
//! takes one step for each group, and skips a group whose rules all follow the match that it has
//! already found. A range of ports becomes several prefixes of ports, a list of code points becomes
//! single code points. A rule has at most [`MAX_KEYS`] keys; its owner checks the conditions that
//! the keys leave open.

use super::MatchRule;
use super::key_map::{KeyMap, KeyedRule, MatchKey};
use crate::packet::Packet;
use crate::policy::{IpPrefix, PortRange};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Keys of one rule, at most.
const MAX_KEYS: usize = 64;

const DSCP_SHIFT: u32 = 0;
const PROTOCOL_SHIFT: u32 = 8;
const INTERFACE_SHIFT: u32 = 16;
const DSCP: u64 = 0xff << DSCP_SHIFT;
const PROTOCOL: u64 = 0xff << PROTOCOL_SHIFT;
const INTERFACE: u64 = u64::MAX << INTERFACE_SHIFT;

/// The fields that the rules of a group test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct KeyShape {
    /// IP version 4 or 6; 0 for both.
    version: u8,
    /// The packet must have ports, with any values.
    with_ports: bool,
    /// Masks of the fields of a [`MatchKey`].
    source: u128,
    destination: u128,
    ports: u32,
    rest: u64,
}

#[derive(Clone, Debug)]
struct Group {
    shape: KeyShape,
    keys: KeyMap,
    /// The positions of its rules, each with the number of its keys.
    positions: BTreeMap<u64, usize>,
    /// The lowest position.
    first: u64,
}

/// Match rules by the fields that they test.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    groups: Vec<Group>,
    by_shape: BTreeMap<KeyShape, usize>,
}

/// The fields of a packet that rules can test.
struct PacketKey {
    version: u8,
    with_ports: bool,
    key: MatchKey,
}

impl Index {
    /// Adds a rule at a free position. A search returns `value` for it.
    pub(super) fn insert(&mut self, rule: &MatchRule, position: u64, value: usize) {
        let (keys, more) = keys_of(rule);
        for (shape, key) in keys {
            let place = *self.by_shape.entry(shape).or_insert_with(|| {
                self.groups.push(Group {
                    shape,
                    keys: KeyMap::default(),
                    positions: BTreeMap::new(),
                    first: position,
                });
                self.groups.len() - 1
            });
            if let Some(group) = self.groups.get_mut(place) {
                group.keys.insert(key, KeyedRule { position, value, more });
                *group.positions.entry(position).or_default() += 1;
                group.first = group.first.min(position);
            }
        }
    }

    /// Removes the rule that was added at this position.
    pub(super) fn remove(&mut self, rule: &MatchRule, position: u64) {
        for (shape, key) in keys_of(rule).0 {
            let Some(place) = self.by_shape.get(&shape).copied() else {
                continue;
            };
            let Some(group) = self.groups.get_mut(place) else {
                continue;
            };
            group.keys.remove(&key, position);
            if let Some(count) = group.positions.get_mut(&position) {
                *count -= 1;
                if *count == 0 {
                    group.positions.remove(&position);
                }
            }
            match group.positions.first_key_value() {
                Some((first, _)) => group.first = *first,
                None => self.drop_group(place),
            }
        }
    }

    fn drop_group(&mut self, place: usize) {
        let gone = self.groups.swap_remove(place);
        debug_assert!(gone.keys.is_empty(), "a group without positions has no keys");
        self.by_shape.remove(&gone.shape);
        if let Some(moved) = self.groups.get(place) {
            self.by_shape.insert(moved.shape, place);
        }
    }

    /// The value of the first rule that the packet matches. `look` decides for a rule whose keys do
    /// not cover all its conditions.
    #[inline]
    pub(super) fn find(&self, packet: &Packet, look: impl Fn(usize) -> bool) -> Option<usize> {
        let seen = PacketKey::at(packet);
        let (mut best, mut found) = (u64::MAX, None);
        for group in &self.groups {
            let Some(key) = group.shape.key(&seen).filter(|_| group.first < best) else {
                continue;
            };
            let mut items = group.keys.get(&key).iter().take_while(|item| item.position < best);
            if let Some(item) = items.find(|item| !item.more || look(item.value)) {
                (best, found) = (item.position, Some(item.value));
            }
        }
        found
    }
}

impl PacketKey {
    #[inline]
    fn at(packet: &Packet) -> PacketKey {
        let header = packet.header();
        let ports = header
            .ports
            .map(|(source, destination)| u32::from(source) << 16 | u32::from(destination));
        let rest = u64::from(header.dscp.number()) << DSCP_SHIFT
            | u64::from(header.protocol) << PROTOCOL_SHIFT
            | (packet.interface as u64) << INTERFACE_SHIFT;
        PacketKey {
            version: if header.source.is_ipv4() { 4 } else { 6 },
            with_ports: ports.is_some(),
            key: MatchKey {
                source: number(header.source),
                destination: number(header.destination),
                ports: ports.unwrap_or(0),
                rest,
            },
        }
    }
}

impl KeyShape {
    /// The key of the packet for the rules of this shape; `None` if no rule of the shape can match
    /// it.
    #[inline]
    fn key(&self, seen: &PacketKey) -> Option<MatchKey> {
        let fits = (self.version == 0 || self.version == seen.version)
            && (!self.with_ports || seen.with_ports);
        fits.then_some(MatchKey {
            source: seen.key.source & self.source,
            destination: seen.key.destination & self.destination,
            ports: seen.key.ports & self.ports,
            rest: seen.key.rest & self.rest,
        })
    }

    /// Adds a prefix to the shape; `None` if its IP version differs.
    fn narrow(&mut self, prefix: IpPrefix) -> Option<(u128, u128)> {
        let (version, width) = if prefix.address().is_ipv4() { (4, 32) } else { (6, 128) };
        if self.version != 0 && self.version != version {
            return None;
        }
        self.version = version;
        let free = width - u32::from(prefix.length()).min(width);
        let mask = u128::MAX.checked_shl(free).unwrap_or(0);
        let mask = if width == 32 { mask & u128::from(u32::MAX) } else { mask };
        Some((mask, number(prefix.address()) & mask))
    }
}

#[inline]
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

/// The keys of a rule, and whether they leave conditions open. No keys for a rule that matches
/// nothing.
fn keys_of(rule: &MatchRule) -> (Vec<(KeyShape, MatchKey)>, bool) {
    let what = &rule.what;
    let (mut shape, mut key) = (KeyShape::default(), MatchKey::default());
    if let Some(prefix) = what.source {
        let Some((mask, bits)) = shape.narrow(prefix) else {
            return (Vec::new(), false);
        };
        (shape.source, key.source) = (mask, bits);
    }
    if let Some(prefix) = what.destination {
        let Some((mask, bits)) = shape.narrow(prefix) else {
            return (Vec::new(), false);
        };
        (shape.destination, key.destination) = (mask, bits);
    }
    if let Some(protocol) = what.protocol {
        shape.rest |= PROTOCOL;
        key.rest |= u64::from(protocol.0) << PROTOCOL_SHIFT;
    }
    if let Some(interface) = rule.interface {
        shape.rest |= INTERFACE;
        key.rest |= (interface as u64) << INTERFACE_SHIFT;
    }
    shape.with_ports = what.source_port.is_some() || what.destination_port.is_some();
    let mut keys = vec![(shape, key)];
    let mut more = rule.table.is_some();
    let ranges = [(what.source_port, 16), (what.destination_port, 0)];
    let mut ranges: Vec<_> =
        ranges.into_iter().filter_map(|(range, shift)| Some((range?, shift))).collect();
    // The narrower range distinguishes more rules, so it takes its keys first.
    ranges.sort_by_key(|(range, _)| range.last.saturating_sub(range.first));
    for (range, shift) in ranges {
        let prefixes = port_prefixes(range);
        more |= !multiply(&mut keys, &prefixes, |shape, key, (mask, bits)| {
            shape.ports |= u32::from(mask) << shift;
            key.ports |= u32::from(bits) << shift;
        });
    }
    if !what.dscp.is_empty() {
        let mut points: Vec<_> = what.dscp.iter().map(|dscp| dscp.number()).collect();
        points.sort_unstable();
        points.dedup();
        more |= !multiply(&mut keys, &points, |shape, key, point| {
            shape.rest |= DSCP;
            key.rest |= u64::from(point) << DSCP_SHIFT;
        });
    }
    (keys, more)
}

/// Replaces each key by one for each alternative. `false`, and no change, above [`MAX_KEYS`].
fn multiply<A: Copy>(
    keys: &mut Vec<(KeyShape, MatchKey)>,
    alternatives: &[A],
    fix: impl Fn(&mut KeyShape, &mut MatchKey, A),
) -> bool {
    if keys.len() * alternatives.len() > MAX_KEYS {
        return false;
    }
    let fixed = keys.iter().flat_map(|one| alternatives.iter().map(move |with| (*one, *with)));
    *keys = fixed
        .map(|((mut shape, mut key), with)| {
            fix(&mut shape, &mut key, with);
            (shape, key)
        })
        .collect();
    true
}

/// A range of ports as prefixes: masks and values, at most 30.
fn port_prefixes(range: PortRange) -> Vec<(u16, u16)> {
    let (mut first, last) = (u32::from(range.first), u32::from(range.last));
    let mut prefixes = Vec::new();
    while first <= last {
        // The largest block that begins here and does not exceed the range.
        let mut size = if first == 0 { 1 << 16 } else { 1 << first.trailing_zeros() };
        while first + size - 1 > last {
            size /= 2;
        }
        prefixes.push((!(size - 1) as u16, first as u16));
        first += size;
    }
    prefixes
}
