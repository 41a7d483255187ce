//! `[precedence]`: how the precedence of a message is found, what it holds, and the plan of code
//! points.

use super::problem::Problems;
use super::tree::Section;
use super::value;
use dscp::Plan;
use engine::classify::Policy;
use node::config::{Hold, HoldPolicy};
use toml::Spanned;

/// The section as read.
pub(super) struct ReadPrecedence {
    /// Code points of channels that give none.
    pub(super) plan: Plan,
    /// For the engine.
    pub(super) policy: Policy,
    /// For the scheduler.
    pub(super) hold: HoldPolicy,
}

/// Reads `[precedence]`, all of which is optional.
pub(super) fn read(top: &mut Section<'_>, problems: &mut Problems) -> ReadPrecedence {
    let mut read = ReadPrecedence {
        plan: Plan::Paper,
        policy: Policy::default(),
        hold: HoldPolicy::default(),
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
