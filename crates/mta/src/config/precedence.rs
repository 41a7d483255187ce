//! `[precedence]`: how the precedence of a message is found, and the plan of code points.

use super::problem::Problems;
use super::tree::Section;
use super::value;
use dscp::Plan;
use engine::classify::Policy;
use toml::Spanned;

/// The section as read.
pub(super) struct ReadPrecedence {
    /// Code points of channels that give none.
    pub(super) plan: Plan,
    /// For the engine.
    pub(super) policy: Policy,
}

/// Reads `[precedence]`, all of which is optional.
pub(super) fn read(top: &mut Section<'_>, problems: &mut Problems) -> ReadPrecedence {
    let mut read = ReadPrecedence { plan: Plan::Paper, policy: Policy::default() };
    let Some(mut section) = top.table(problems, "precedence") else { return read };
    let plans = Plan::ALL.map(|plan| (plan.name(), plan));
    if let Some(plan) = section.optional(problems, "plan", &|v| value::word(v, &plans)) {
        read.plan = plan.into_inner();
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
