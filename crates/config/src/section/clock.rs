//! `[clock]`: when a wall clock that was set is trusted.

use crate::problem::Problems;
use crate::tree::Section;
use crate::value;
use node::config::ClockRules;
use std::time::Duration;
use toml::Spanned;

/// Bounds of the step that is followed at once. Clocks differ by less without a step.
const STEP: (Duration, Duration) = (Duration::from_secs(3), Duration::from_hours(24));
/// Bounds of the time for which a clock must be steady.
const STEADY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_hours(24 * 7));

/// Reads the section; absent keys have their defaults.
pub(crate) fn read(top: &mut Section<'_>, problems: &mut Problems) -> ClockRules {
    let mut rules = ClockRules::default();
    let Some(mut section) = top.table(problems, "clock") else { return rules };
    for (key, (least, most), field) in
        [("step", STEP, &mut rules.step), ("steady", STEADY, &mut rules.steady)]
    {
        let time = section.optional(problems, key, &|v| value::within(v, least, most));
        if let Some(time) = time {
            *field = Spanned::into_inner(time);
        }
    }
    section.finish(problems);
    rules
}
