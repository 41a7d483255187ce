//! `[tracking]`: what `mta trace` and `mta report` read.

use crate::problem::Problems;
use crate::tree::{Bad, Section};
use crate::value;
use toml::Spanned;

/// Some 200 octets an event with its index: twenty million.
const DEFAULT: u64 = 4 << 30;

/// Reads the section; without it messages are tracked, with the default limit. Gives the limit in octets,
/// or `None` where nothing is tracked.
pub(crate) fn read(top: &mut Section<'_>, problems: &mut Problems) -> Option<u64> {
    let Some(mut section) = top.table(problems, "tracking") else { return Some(DEFAULT) };
    let enabled = section.optional(problems, "enabled", &value::boolean);
    let size = section.optional(problems, "max_size", &|v| match value::size(v)? {
        size if (16 << 20..=256 << 30).contains(&size) => Ok(size),
        size => Err(Bad::new(
            format!("{size} octets of tracked events"),
            "write a size from 16 MiB to 256 GiB, or enabled = false",
        )),
    });
    section.finish(problems);
    let is_enabled = enabled.is_none_or(Spanned::into_inner);
    is_enabled.then(|| size.map_or(DEFAULT, Spanned::into_inner))
}
