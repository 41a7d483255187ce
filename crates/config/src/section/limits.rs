//! `[limits]`: limits on the resources that others can occupy.

use crate::problem::Problems;
use crate::tree::{Bad, Section};
use crate::value;
use node::config::Limits;
use toml::Spanned;
use toml::de::DeValue;

/// Upper bound of limits that count connections.
const COUNT: u64 = 100_000;

/// Reads the section; absent keys have their defaults.
pub(crate) fn read(top: &mut Section<'_>, problems: &mut Problems) -> Limits {
    let mut limits = Limits::default();
    let Some(mut section) = top.table(problems, "limits") else { return limits };
    let mut last_size = None;
    for (key, field, least, most) in [
        ("envelope", &mut limits.envelope, 16 << 10, 64 << 20),
        ("memory", &mut limits.memory, 1 << 20, 1 << 40),
        ("memory_per_peer", &mut limits.memory_per_peer, 1 << 20, 1 << 40),
    ] {
        let size = section.optional(problems, key, &|v| octets(v, least, most));
        last_size = size.as_ref().map(Spanned::span).or(last_size);
        if let Some(size) = size.and_then(|s| usize::try_from(s.into_inner()).ok()) {
            *field = size;
        }
    }
    // The error is shown at the last of these keys. Without any of them the defaults apply, which fit.
    if let Some(span) = last_size {
        let Limits { envelope, memory, memory_per_peer, .. } = limits;
        for (key, size) in [("memory_per_peer", memory_per_peer), ("memory", memory)] {
            if size < envelope {
                let wrong = format!("{key} of limits, {size} octets, is less than envelope");
                let remedy = format!("make {key} {envelope} octets or more, or envelope smaller");
                problems.error(span.clone(), wrong, "an envelope as large would not fit", remedy);
            }
        }
    }
    if let Some(size) = section.optional(problems, "content", &|v| octets(v, 1 << 10, 1 << 40)) {
        limits.content = size.into_inner();
    }
    if let Some(size) = section.optional(problems, "returned_content", &|v| octets(v, 0, 1 << 40)) {
        limits.returned_content = size.into_inner();
    }
    let mut last_count = None;
    for (key, field, most) in [
        ("associations", &mut limits.associations, COUNT),
        ("associations_per_peer", &mut limits.associations_per_peer, COUNT),
        ("associations_per_channel", &mut limits.associations_per_channel, COUNT),
        ("associations_per_user", &mut limits.associations_per_user, COUNT),
        ("associations_per_address", &mut limits.associations_per_address, COUNT),
        ("half_open", &mut limits.half_open, COUNT),
        ("half_open_per_address", &mut limits.half_open_per_address, COUNT),
        ("verifications", &mut limits.verifications, 64),
        ("opening", &mut limits.opening, 1_000),
    ] {
        let count = section.optional(problems, key, &|v| value::integer(v, 1, most));
        if let Some(count) = &count
            && ["associations", "half_open"].contains(&key)
        {
            last_count = Some(count.span());
        }
        if let Some(count) = count.and_then(|c| usize::try_from(c.into_inner()).ok()) {
            *field = count;
        }
    }
    // Established associations need room that half-open connections cannot occupy.
    if let Some(span) = last_count.filter(|_| limits.half_open > limits.associations / 2) {
        let (half_open, associations) = (limits.half_open, limits.associations);
        let message = format!("half_open of limits: {half_open} of {associations} associations");
        let remedy = format!("write half_open = {}, or less", (associations / 2).max(1));
        problems.warning(span, message, "connections without a bind may take most places", remedy);
    }
    let failures = section.optional(problems, "failures", &|v| value::integer(v, 1, 1_000));
    if let Some(count) = failures.and_then(|c| u32::try_from(c.into_inner()).ok()) {
        limits.failures = count;
    }
    for (key, field) in
        [("bind_timeout", &mut limits.bind_timeout), ("failure_refill", &mut limits.failure_refill)]
    {
        if let Some(time) = section.optional(problems, key, &value::duration) {
            *field = time.into_inner();
        }
    }
    section.finish(problems);
    limits
}

fn octets(v: &DeValue<'_>, least: u64, most: u64) -> Result<u64, Bad> {
    match value::size(v)? {
        size if (least..=most).contains(&size) => Ok(size),
        size => Err(Bad::new(
            format!("a limit of {size} octets"),
            format!("write a size from {least} to {most} octets"),
        )),
    }
}
