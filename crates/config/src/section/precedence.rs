//! `[precedence]`: classification, the scheduler's policy, times, and the DSCP plan.

use crate::problem::Problems;
use crate::tree::Section;
use crate::value;
use base::window::Windows;
use base::{PerPrecedence, Precedence};
use dscp::Plan;
use engine::classify::Policy;
use node::config::{Hold, HoldPolicy, Minimize, Times};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;

/// The section as read.
pub(crate) struct ReadPrecedence {
    /// Code points of channels without their own.
    pub(crate) plan: Plan,
    /// For the engine.
    pub(crate) policy: Policy,
    /// For the scheduler.
    pub(crate) hold: HoldPolicy,
    /// How long a receiver waits for a sender that pauses; zero if no sender pauses.
    pub(crate) longest_pause: Duration,
    /// The times that messages of each precedence may wait.
    pub(crate) times: Times,
    /// MINIMIZE of the whole MTA.
    pub(crate) minimize: Option<Minimize>,
}

/// Longest `expire`: duplicates are recognised for ten days.
const MAX_EXPIRE: Duration = Duration::from_hours(9 * 24);
/// Longest `alert` and `retry`.
const MAX_ALERT: Duration = Duration::from_hours(7 * 24);
/// Default of `pause_max`: on most links a transfer that pauses others is done by then.
const DEFAULT_PAUSE: Duration = Duration::from_mins(15);
/// Longest `pause_max`.
const MAX_PAUSE: Duration = Duration::from_hours(24);
const SECOND: Duration = Duration::from_secs(1);

/// Reads `[precedence]`, all of which is optional.
pub(crate) fn read(top: &mut Section<'_>, problems: &mut Problems) -> ReadPrecedence {
    let mut read = ReadPrecedence {
        plan: Plan::Paper,
        policy: Policy::default(),
        hold: HoldPolicy::default(),
        longest_pause: Duration::ZERO,
        times: Times::default(),
        minimize: None,
    };
    let Some(mut section) = top.table(problems, "precedence") else { return read };
    let plans = Plan::ALL.map(|plan| (plan.name(), plan));
    if let Some(plan) = section.optional(problems, "plan", &|v| value::word(v, &plans)) {
        read.plan = plan.into_inner();
    }
    let words = [("off", Hold::Off), ("conserving", Hold::Conserving), ("strict", Hold::Strict)];
    if let Some(hold) = section.optional(problems, "hold", &|v| value::word(v, &words)) {
        read.hold.hold = hold.into_inner();
    }
    if let Some(stall) = section.optional(problems, "stall", &value::duration) {
        read.hold.stall = stall.into_inner();
    }
    let share = section.optional(problems, "minimum_share", &|v| value::integer(v, 0, 50));
    let share = share.and_then(|share| u8::try_from(share.into_inner()).ok());
    read.hold.share = share.filter(|percent| *percent > 0);
    if let Some(preempt) = section.optional(problems, "preempt", &value::boolean) {
        read.hold.preempt = preempt.into_inner();
    }
    let pause_max =
        section.optional(problems, "pause_max", &|v| value::within(v, SECOND, MAX_PAUSE));
    if read.hold.preempt {
        read.longest_pause = pause_max.map_or(DEFAULT_PAUSE, Spanned::into_inner);
    }
    read_retry(&mut section, problems, &mut read.hold);
    let Times { expire, alert, clock: _ } = &mut read.times;
    let expires = read_times(&mut section, problems, "expire", MAX_EXPIRE, &mut expire.0);
    let alerts = read_times(&mut section, problems, "alert", MAX_ALERT, &mut alert.0);
    alerts_before_the_end(problems, &read.times, &expires, &alerts);
    read.minimize = read_minimize(&mut section, problems);
    if let Some(report) = section.optional(problems, "report_precedence", &value::precedence) {
        read.policy.report_precedence = report.into_inner();
    }
    if let Some(peek) = section.optional(problems, "peek_content", &value::boolean) {
        read.policy.peek_content = peek.into_inner();
    }
    if let Some(mut table) = section.table(problems, "no_qualifier") {
        for (key, field) in [
            ("urgent", &mut read.policy.no_qualifier.urgent),
            ("normal", &mut read.policy.no_qualifier.normal),
            ("non-urgent", &mut read.policy.no_qualifier.non_urgent),
        ] {
            if let Some(level) = table.optional(problems, key, &value::precedence) {
                *field = Spanned::into_inner(level);
            }
        }
        table.finish(problems);
    }
    section.finish(problems);
    read
}

/// The positions of times, by precedence.
type Places = BTreeMap<Precedence, Range<usize>>;

/// Warns if a message would expire before its alert.
fn alerts_before_the_end(
    problems: &mut Problems,
    times: &Times,
    expires: &Places,
    alerts: &Places,
) {
    for precedence in Precedence::ALL {
        let (expire, alert) = (times.expire.0.get(precedence), times.alert.0.get(precedence));
        let place = alerts.get(&precedence).or_else(|| expires.get(&precedence));
        let Some(place) = place.filter(|_| alert > expire) else { continue };
        let (name, alert, expire) = (precedence.name(), alert.as_secs_f64(), expire.as_secs_f64());
        let message =
            format!("alert of {name} is {alert} s, but the message expires after {expire} s");
        let remedy = format!(
            "write an alert for {name} that is shorter than its expire: as it is, no {name} \
             message is ever reported as overdue"
        );
        problems.warning(place.clone(), message, "here", remedy);
    }
}

/// `expire` and `alert`: a duration for each precedence with another value than the default.
/// Returns their positions.
fn read_times(
    section: &mut Section<'_>,
    problems: &mut Problems,
    key: &'static str,
    most: Duration,
    times: &mut PerPrecedence<Duration>,
) -> Places {
    let mut places = Places::new();
    let Some(mut table) = section.table(problems, key) else { return places };
    for precedence in Precedence::ALL {
        let time = table.optional(problems, precedence.name(), &|v| value::within(v, SECOND, most));
        if let Some(time) = time {
            places.insert(precedence, time.span());
            *times.get_mut(precedence) = time.into_inner();
        }
    }
    table.finish(problems);
    places
}

/// `retry`: for each precedence the first delay and the longest.
fn read_retry(section: &mut Section<'_>, problems: &mut Problems, hold: &mut HoldPolicy) {
    let Some(mut table) = section.table(problems, "retry") else { return };
    for (precedence, retry) in Precedence::ALL.into_iter().zip(&mut hold.retry) {
        let Some(mut delays) = table.table(problems, precedence.name()) else { continue };
        for (key, field) in [("first", &mut retry.first), ("longest", &mut retry.longest)] {
            if let Some(time) =
                delays.optional(problems, key, &|v| value::within(v, SECOND, MAX_ALERT))
            {
                *field = time.into_inner();
            }
        }
        if retry.first > retry.longest {
            let message = format!("{}: first is longer than longest", delays.name());
            let remedy = "write a first delay that is no longer than the longest";
            problems.error(delays.span(), message, "these delays", remedy);
        }
        delays.finish(problems);
    }
    table.finish(problems);
}

/// `minimize`: the floor and its hours.
pub(crate) fn read_minimize(
    section: &mut Section<'_>,
    problems: &mut Problems,
) -> Option<Minimize> {
    let mut table = section.table(problems, "minimize")?;
    let remedy = "write floor = \"priority\": the lowest precedence that goes out";
    let floor = table.required(problems, "floor", remedy, &value::precedence);
    let span = table.span();
    let given = table.has("windows");
    let windows = table.list(problems, "windows", &value::window);
    table.finish(problems);
    if given && windows.is_none() {
        return None;
    }
    let windows = windows.map(Spanned::into_inner).unwrap_or_default();
    let windows = windows.into_iter().map(Spanned::into_inner).collect();
    match Windows::new(windows) {
        Ok(windows) => Some(Minimize { floor: floor?.into_inner(), windows }),
        Err(wrong) => {
            let remedy = "write windows = [\"mon-fri 22:00-06:00\"]: days and times in UTC";
            problems.error(span, format!("minimize: {wrong}"), "here", remedy);
            None
        }
    }
}
