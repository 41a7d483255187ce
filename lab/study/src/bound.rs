//! The bound of a message beside other traffic: the time within which a policy can hold it, whatever the
//! others send.
//!
//! A packet that is being sent is not interrupted. So whenever a message has nothing in the queue of a
//! hop, a packet of others may begin, and the message's next one waits for it: for 1,500 octets at
//! 512 kbit/s 23.4 ms. That happens once at the beginning, and once for each round trip in which the
//! sender's window is too small to keep the queue filled. A window is the smaller one of TCP's, which
//! doubles from round trip to round trip at the beginning, and that of RTS. The bound is the time of the
//! message alone, and these waits at each hop, each of a whole packet. On average half of a packet is left,
//! so a message of many waits may well take less. What the policy leaves to others of the line, to starve
//! nobody, is not part of it.

use crate::Planned;
use crate::file::{MIN_SEGMENT, Protocol, StudyBound, StudyLoad, StudyMessage};
use crate::measured::Environment;
use crate::row::{LESS_THAN, Measure, StudyRow};
use router::policy::Queueing;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Octets of the longest IP packet of a message or of TCP.
const LONGEST: u64 = 1_500;
/// Octets that TCP sends before the first acknowledgement: ten segments on Linux (RFC 6928), 2,048 octets in
/// the simulation.
const INITIAL: (u64, u64) = (10 * 1_448, 2_048);

/// How often a message waits for a packet of others at a hop, at most. It has `octets`. `window` is the
/// most that RTS leaves unconfirmed, `initial` what TCP sends first. `path` is what the hop sends in a
/// round trip: a window of more than that keeps its queue filled.
///
/// ```
/// // 10 kB over 512 kbit/s and 60 ms, 3,840 octets: the first 2,048 octets, then 4,096, which are enough.
/// assert_eq!(study::bound::waits(10_000, u64::MAX, 2_048, 3_840), 2);
/// // With 2 kB unconfirmed at most, every round trip waits: 2,048 five times.
/// assert_eq!(study::bound::waits(10_000, 2_048, 2_048, 3_840), 5);
/// ```
pub fn waits(octets: u64, window: u64, initial: u64, path: u64) -> u64 {
    let window = window.max(1);
    let (mut left, mut now) = (octets, initial.clamp(1, window));
    let mut waits = 0;
    loop {
        waits += 1;
        if now >= left || now > path {
            return waits;
        }
        left -= now;
        if now == window {
            // It does not grow again: all other round trips are the same.
            return waits + left.div_ceil(window);
        }
        now = now.saturating_mul(2).min(window);
    }
}

/// The seconds that a hop of this rate, in bits a second, needs for a packet.
///
/// ```
/// assert_eq!(study::bound::packet_seconds(1_500, 512_000), 0.0234375);
/// ```
pub fn packet_seconds(octets: u64, rate: u64) -> f64 {
    octets as f64 * 8.0 / rate.max(1) as f64
}

/// The seconds of waits that a message's bound has beside its base; nothing where it has no bound.
pub(crate) fn waiting(
    planned: &Planned,
    message: &StudyMessage,
    environment: Environment,
) -> Option<f64> {
    let bound = message.bound.as_ref()?;
    let Some(packet) = longest(planned, message) else { return Some(0.0) };
    let window = window(planned).unwrap_or(u64::MAX);
    let initial = match environment {
        Environment::Testbed => INITIAL.0,
        Environment::Simulation => INITIAL.1,
    };
    let each = bound.hops.iter().filter_map(|port| {
        let (rate, overhead) = hop(planned, port)?;
        let path = bound.round_trip.0.as_secs_f64() * rate as f64 / 8.0;
        let waits = waits(message.size.0, window, initial, path as u64);
        Some(waits as f64 * packet_seconds(packet + overhead, rate))
    });
    Some(each.sum())
}

/// The bound of each row that has one, and its seconds in percent of the row's own.
pub(crate) fn add(
    rows: &mut [StudyRow],
    bases: &BTreeMap<String, String>,
    waits: &BTreeMap<String, f64>,
) {
    let seconds =
        |row: &StudyRow| Some(((row.item.clone(), row.environment, row.scale), row.seconds?));
    let seconds: BTreeMap<_, f64> = rows.iter().filter_map(seconds).collect();
    for row in rows {
        let base = bases
            .get(&row.item)
            .and_then(|base| seconds.get(&(base.clone(), row.environment, row.scale)).copied());
        let Some((base, waits)) = base.zip(waits.get(&row.item)) else { continue };
        let bound = base + waits;
        row.more.insert("bound_seconds".to_owned(), bound);
        let name = Measure::BoundPercent.name();
        let percent = |seconds: f64| bound / seconds * 100.0;
        match (row.seconds, row.seconds_more_than) {
            (Some(seconds), _) if seconds > 0.0 => {
                row.more.insert(name.to_owned(), percent(seconds));
                if let Some((low, high)) = row.range.get(Measure::Seconds.name()).copied() {
                    row.range.insert(name.to_owned(), (high.map(percent), low.map(percent)));
                }
            }
            (None, Some(seconds)) if seconds > 0.0 => {
                row.more.insert(format!("{name}{LESS_THAN}"), percent(seconds));
            }
            _ => {}
        }
    }
}

/// The rate of a hop, and what is counted beside each packet: those of its shaper, or of its link.
fn hop(planned: &Planned, port: &str) -> Option<(u64, u64)> {
    if let Some(Queueing::Shaper { rate, overhead, .. }) = planned.queueing(port) {
        return Some((rate.bits(), u64::from(*overhead)));
    }
    let mut links = planned.topology.links.iter();
    let link = links.find(|link| link.ends.iter().any(|end| end == port))?;
    Some((link.rate?.bits(), u64::from(link.overhead)))
}

/// Whether a bound can be computed.
///
/// # Errors
/// There is no hop, or one without a rate; or no round trip.
pub(crate) fn check(planned: &Planned, bound: &StudyBound) -> Result<(), String> {
    if bound.hops.is_empty() {
        return Err("bound.hops: the ports of routers where it waits".to_owned());
    }
    if bound.round_trip.0.is_zero() {
        return Err("bound.round_trip: more than no time".to_owned());
    }
    match bound.hops.iter().find(|port| hop(planned, port).is_none()) {
        None => Ok(()),
        Some(port) => {
            Err(format!("bound.hops: {port:?} is not a router's port with a shaper or a rate"))
        }
    }
}

/// Octets of the longest packet of all others of its run.
fn longest(planned: &Planned, message: &StudyMessage) -> Option<u64> {
    let others = planned.messages.iter().filter(|other| other.name != message.name);
    let loads = planned.loads.iter().map(|load| packet(planned, load));
    others.map(|_| LONGEST).chain(loads).max()
}

/// Octets of a load's IP packets.
fn packet(planned: &Planned, load: &StudyLoad) -> u64 {
    let own = planned.topology.hosts.get(&load.to).into_iter();
    let mut own = own.flat_map(|host| host.ports.values()).flat_map(|port| &port.addresses);
    let to = load.destination.or_else(|| own.next().map(|address| address.ip()));
    let ip = if to.is_some_and(|to: IpAddr| to.is_ipv6()) { 40 } else { 20 };
    match load.protocol {
        // With the options of timestamps, which count as payload of the segment.
        Protocol::Tcp => load
            .segment
            .map_or(LONGEST, |most| (u64::from(most.max(MIN_SEGMENT)) + ip + 20).min(LONGEST)),
        Protocol::Udp | Protocol::Echo => u64::from(load.payload) + ip + 8,
    }
}

/// Octets that RTS leaves unconfirmed, where the study states them; our own default adapts to the line,
/// and is more than a path of these holds.
fn window(planned: &Planned) -> Option<u64> {
    let rts = planned.mail.as_ref()?.channel.get("rts")?;
    let number = |key: &str| u64::try_from(rts.get(key)?.as_integer()?).ok();
    number("checkpoint")?.checked_mul(number("window")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_fills_the_path_waits_once() {
        // By hand: 100,000 octets, ten segments at once, 3,840 octets on the path.
        assert_eq!(waits(100_000, u64::MAX, 14_480, 3_840), 1);
        // 2,048, then 4,096 of which the path holds less.
        assert_eq!(waits(100_000, u64::MAX, 2_048, 3_840), 2);
        // 2,048, 4,096, 8,192 on a path of 5,000.
        assert_eq!(waits(100_000, u64::MAX, 2_048, 5_000), 3);
        // All of it is in the first window.
        assert_eq!(waits(1_000, u64::MAX, 2_048, 3_840), 1);
        assert_eq!(waits(0, 0, 0, 0), 1);
    }

    #[test]
    fn a_small_window_waits_at_every_round_trip() {
        // 10,000,000 / 2,048 = 4,882.8.
        assert_eq!(waits(10_000_000, 2_048, 14_480, 3_840), 4_883);
        // 2,048, then 3,072 each: 1 + 7,952 / 3,072.
        assert_eq!(waits(10_000, 3_072, 2_048, 3_840), 4);
        // 2,048, then 4,096, which fill the path.
        assert_eq!(waits(10_000, 4_096, 2_048, 3_840), 2);
        assert_eq!(waits(10_000, 6_144, 14_480, 3_840), 1);
    }

    #[test]
    fn a_packet_takes_its_bits_at_the_rate() {
        assert!((packet_seconds(1_500, 512_000) - 0.023_437_5).abs() < 1e-12);
        assert!((packet_seconds(92, 512_000) - 0.001_437_5).abs() < 1e-12);
        assert!(packet_seconds(1_500, 0).is_finite());
    }
}
