//! The numbers of a policy, each refused outside its range.

use crate::policy::{Curve, KeyFault, OctetSize, QueueLimit, Span, WredLine};
use crate::queue::{MAX_OCTETS, MAX_PACKETS, QueueRoom};
use crate::time::Rate;
use dscp::Dscp;

/// Accepts a number from `least` to `most`.
pub(super) fn within(
    number: u64,
    least: u64,
    most: u64,
    unit: &str,
    path: &str,
) -> Result<(), KeyFault> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    Err(KeyFault::at(path, format!("{number}{unit}: must be {least} to {most}")))
}

/// The limit of a queue in packets.
pub(super) fn packets(packets: usize, path: &str) -> Result<usize, KeyFault> {
    within(packets as u64, 1, MAX_PACKETS as u64, "packets", path)?;
    Ok(packets)
}

/// An interval in nanoseconds, above 0.
pub(super) fn nanos(span: Span, path: &str) -> Result<u64, KeyFault> {
    match u64::try_from(span.0.as_nanos()) {
        Ok(nanos) if nanos > 0 => Ok(nanos),
        _ => {
            let what = "must be above 0; leave it out for tokens that come continuously";
            Err(KeyFault::at(path, what))
        }
    }
}

/// Accepts a burst of a shaper with an interval: 0, or at least the octets that an interval grants,
/// which can leave at once anyway.
pub(super) fn grant(
    rate: Rate,
    burst: OctetSize,
    interval: Option<u64>,
    path: &str,
) -> Result<(), KeyFault> {
    let grant = interval.map_or(0, |interval| rate.octets_in(interval));
    if burst.0 == 0 || burst.0 >= grant {
        return Ok(());
    }
    let what = format!("{} octets: an interval grants {grant} at once; write 0, or that", burst.0);
    Err(KeyFault::at(path, what))
}

/// The limits of a queue in packets and octets.
pub(super) fn room(limit: &QueueLimit, path: &str) -> Result<QueueRoom, KeyFault> {
    let most = match limit.packets {
        None if limit.octets.is_none() && limit.delay.is_none() => 100,
        None => MAX_PACKETS,
        Some(given) => packets(given, &format!("{path}.packets"))?,
    };
    let by_delay = limit.delay.map(|(span, rate)| {
        (rate.octets_in(u64::try_from(span.0.as_nanos()).unwrap_or(u64::MAX)), "delay")
    });
    let by_octets = limit.octets.map(|OctetSize(octets)| (octets, "octets"));
    let mut octets = MAX_OCTETS;
    for (limit, key) in by_delay.into_iter().chain(by_octets) {
        within(limit, 1, MAX_OCTETS, "octets", &format!("{path}.{key}"))?;
        octets = octets.min(limit);
    }
    Ok(QueueRoom { packets: most, octets: usize::try_from(octets).unwrap_or(usize::MAX) })
}

/// Checks a drop function of RED or WRED.
pub(super) fn line(line: &WredLine, path: &str) -> Result<(), KeyFault> {
    let most = MAX_PACKETS as u64;
    within(line.denominator.into(), 1, 65_536, "", &format!("{path}.denominator"))?;
    within(line.max.into(), 1, most, "packets", &format!("{path}.max"))?;
    within(line.min.into(), 0, line.max.into(), "packets", &format!("{path}.min"))
}

/// Checks a drop function of TRIO.
pub(super) fn curve(curve: &Curve, path: &str) -> Result<(), KeyFault> {
    let Curve { from, all, most } = *curve;
    if !(most > 0.0 && most <= 1.0) {
        let what = format!("{most}: must be above 0, up to 1");
        return Err(KeyFault::at(format!("{path}.most"), what));
    }
    if 0.0 <= from && from <= all && all <= 100.0 {
        return Ok(());
    }
    let what = format!("from {from} to {all} percent: must be 0 <= from <= all <= 100");
    Err(KeyFault::at(path, what))
}

/// Refuses a code point that is listed twice.
pub(super) fn distinct(dscps: &[Dscp], path: &str) -> Result<(), KeyFault> {
    let twice =
        dscps.iter().enumerate().find(|(n, dscp)| dscps.iter().take(*n).any(|d| d == *dscp));
    match twice {
        None => Ok(()),
        Some((_, dscp)) => Err(KeyFault::at(path, format!("{dscp} stands there twice"))),
    }
}
