//! A plan: which messages are submitted when. Unknown keys are refused, and everything is bounded.

use super::value::{After, Names, Precedences, Size, Spacing, Stage, Time, Weights};
use crate::profile::{Wrong, address};
use anyhow::{Context as _, Result};
use base::Precedence;
use p1::names::ORName;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// Bounds of a plan: messages, and octets of text of one message and of all.
pub(crate) const MAX_MESSAGES: u64 = 100_000;
pub(crate) const MAX_SIZE: u64 = 1_000_000_000;
pub(crate) const MAX_OCTETS: u64 = 100_000_000_000;
/// Bounds: groups, associations of all groups, recipients of one message.
const MAX_GROUPS: usize = 64;
const MAX_ASSOCIATIONS: u64 = 256;
const MAX_RECIPIENTS: usize = 64;
/// Bounds: event logs, and profiles that receive.
const MAX_LOGS: usize = 32;
const MAX_RECEIVERS: usize = 64;
/// The last start of a plan, counted from its group's begin.
pub(crate) const LAST_START: Duration = Duration::from_hours(24);
/// Default wait for deliveries after the last submission.
const DEADLINE: Duration = Duration::from_secs(120);
/// Default time during which a submission without an answer is repeated.
const RETRY_FOR: Duration = Duration::from_secs(60);

/// A checked plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BurstPlan {
    /// Seed of all random values.
    pub seed: u64,
    /// Profiles that bind as recipients.
    pub receive: Vec<String>,
    /// Event logs of the MTAs on the path.
    pub events: Vec<PathBuf>,
    /// Wait for deliveries after the last submission.
    pub deadline: Duration,
    /// Time during which a submission without an answer is repeated.
    pub retry_for: Duration,
    /// How long the answer to a submission may take.
    pub answer_timeout: Duration,
    pub groups: Vec<Group>,
}

/// Messages with the same rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub name: String,
    /// Profiles that submit, assigned to the associations in turn; empty: the command line's.
    pub from: Vec<String>,
    /// Recipients of each message.
    pub to: Vec<ORName>,
    pub precedence: Weights<Precedence>,
    pub size: Size,
    pub count: u64,
    pub start: Duration,
    pub spacing: Spacing,
    /// Number of messages that start at the same moment.
    pub parallel: u64,
    /// Number of concurrent submissions.
    pub associations: u64,
    /// The index of the group it waits for, and the stage which that must reach.
    pub after: Option<(usize, Stage)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    #[serde(default = "one")]
    seed: u64,
    #[serde(default)]
    from: Names,
    #[serde(default)]
    to: Names,
    #[serde(default)]
    receive: Names,
    #[serde(default)]
    events: Names,
    deadline: Option<Time>,
    retry_for: Option<Time>,
    answer_timeout: Option<Time>,
    #[serde(default)]
    group: Vec<Spanned<RawGroup>>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGroup {
    name: Spanned<String>,
    from: Option<Names>,
    to: Option<Spanned<Names>>,
    precedence: Precedences,
    size: Spanned<Size>,
    #[serde(default = "one_here")]
    count: Spanned<u64>,
    start: Option<Time>,
    spacing: Option<Spacing>,
    #[serde(default = "one_here")]
    parallel: Spanned<u64>,
    associations: Option<Spanned<u64>>,
    after: Option<Spanned<After>>,
}

fn one() -> u64 {
    1
}

fn one_here() -> Spanned<u64> {
    Spanned::new(0..0, 1)
}

impl BurstPlan {
    /// Reads a plan; relative paths in it are relative to its file.
    ///
    /// # Errors
    /// [`Wrong`]: the file, the line, the error, and what to write instead.
    pub(crate) fn load(path: &Path) -> Result<BurstPlan> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| Wrong(format!("cannot read the plan {shown}")))?;
        let mut plan = BurstPlan::read(&text).with_context(|| Wrong(format!("in {shown}")))?;
        let base = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        for log in &mut plan.events {
            *log = base.join(&log);
        }
        Ok(plan)
    }

    /// Reads a plan from its text.
    ///
    /// # Errors
    /// [`Wrong`] or toml's, with the line.
    pub(crate) fn read(text: &str) -> Result<BurstPlan> {
        let raw: RawPlan = toml::from_str(text)?;
        let reader = Reader { text };
        reader.plan(raw)
    }

    /// Messages in all.
    pub(crate) fn count(&self) -> u64 {
        self.groups.iter().map(|group| group.count).sum()
    }
}

/// Finds the line of a key.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    /// The error for a value, with its line; without a line for a default.
    fn wrong(&self, span: Range<usize>, what: &str) -> anyhow::Error {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        match span.is_empty() {
            true => Wrong(what.to_owned()).into(),
            false => Wrong(format!("line {line}: {what}")).into(),
        }
    }

    fn plan(&self, raw: RawPlan) -> Result<BurstPlan> {
        let limits: [(&str, usize, usize); 3] = [
            ("groups", raw.group.len(), MAX_GROUPS),
            ("files in events", raw.events.0.len(), MAX_LOGS),
            ("profiles in receive", raw.receive.0.len(), MAX_RECEIVERS),
        ];
        for (what, count, most) in limits {
            if count > most {
                return Err(Wrong(format!("{count} {what}: at most {most}")).into());
            }
        }
        if raw.group.is_empty() {
            let what = "it has no group: add [[group]] with name, precedence, size and count";
            return Err(Wrong(what.to_owned()).into());
        }
        let names: Vec<String> =
            raw.group.iter().map(|g| g.as_ref().name.as_ref().clone()).collect();
        let mut groups = Vec::new();
        for (index, group) in raw.group.iter().enumerate() {
            groups.push(self.group(index, group, &raw.from, &raw.to, &names)?);
        }
        let receive: BTreeSet<&String> = raw.receive.0.iter().collect();
        if receive.len() < raw.receive.0.len() {
            return Err(Wrong("receive names the same profile twice".to_owned()).into());
        }
        let plan = BurstPlan {
            seed: raw.seed,
            receive: raw.receive.0,
            events: raw.events.0.into_iter().map(PathBuf::from).collect(),
            deadline: raw.deadline.map_or(DEADLINE, |time| time.0),
            retry_for: raw.retry_for.map_or(RETRY_FOR, |time| time.0),
            answer_timeout: raw.answer_timeout.map_or(ua::ANSWER_TIMEOUT, |time| time.0),
            groups,
        };
        self.totals(&plan, &raw.group)?;
        Ok(plan)
    }

    fn group(
        &self,
        index: usize,
        there: &Spanned<RawGroup>,
        from: &Names,
        to: &Names,
        names: &[String],
    ) -> Result<Group> {
        let raw = there.as_ref();
        let name = raw.name.as_ref().clone();
        if name.is_empty() || names.iter().position(|n| *n == name) != Some(index) {
            return Err(self.wrong(raw.name.span(), "two groups have the same name"));
        }
        let recipients = raw.to.as_ref().map_or(to, Spanned::as_ref);
        if recipients.0.is_empty() || recipients.0.len() > MAX_RECIPIENTS {
            let what = format!(
                "group {name:?} has {} recipients: give to = \"/C=...\" here or above the groups, \
                 1 to {MAX_RECIPIENTS} of them",
                recipients.0.len()
            );
            let span = raw.to.as_ref().map_or(raw.name.span(), Spanned::span);
            return Err(self.wrong(span, &what));
        }
        let to = recipients.0.iter().map(|text| address("recipient", text));
        let to = to
            .collect::<Result<Vec<_>>>()
            .map_err(|error| self.wrong(raw.name.span(), &format!("group {name:?}: {error:#}")))?;
        let (count, parallel) = (*raw.count.as_ref(), *raw.parallel.as_ref());
        if !(1..=MAX_MESSAGES).contains(&count) {
            let what = format!("count is 1 to {MAX_MESSAGES}");
            return Err(self.wrong(raw.count.span(), &what));
        }
        let associations = raw.associations.as_ref().unwrap_or(&raw.parallel);
        if parallel == 0 || parallel > *associations.as_ref() {
            let what = "parallel is at least 1, and at most associations";
            return Err(self.wrong(raw.parallel.span(), what));
        }
        if *associations.as_ref() > MAX_ASSOCIATIONS {
            let what = format!("at most {MAX_ASSOCIATIONS} associations");
            return Err(self.wrong(associations.span(), &what));
        }
        let largest = match raw.size.as_ref() {
            Size::OneOf(sizes) => sizes.choices().max().unwrap_or(0),
            Size::Range { to, .. } => *to,
        };
        if largest > MAX_SIZE {
            let what = format!("a message has at most {} MB", MAX_SIZE / 1_000_000);
            return Err(self.wrong(raw.size.span(), &what));
        }
        Ok(Group {
            from: raw.from.as_ref().unwrap_or(from).0.clone(),
            to,
            precedence: raw.precedence.0.clone(),
            size: raw.size.as_ref().clone(),
            count,
            start: raw.start.map_or(Duration::ZERO, |time| time.0),
            spacing: raw.spacing.unwrap_or(Spacing::None),
            parallel,
            associations: *associations.as_ref(),
            after: self.after(index, raw, names)?,
            name,
        })
    }

    /// The group that a group waits for: an earlier one, so that there is no cycle.
    fn after(
        &self,
        index: usize,
        raw: &RawGroup,
        names: &[String],
    ) -> Result<Option<(usize, Stage)>> {
        let Some(there) = &raw.after else {
            return Ok(None);
        };
        let After { group, stage } = there.as_ref();
        match names.iter().position(|name| name == group) {
            Some(other) if other < index => Ok(Some((other, *stage))),
            Some(_) => {
                Err(self
                    .wrong(there.span(), &format!("{group:?} must be defined before this group")))
            }
            None => {
                let what = format!("there is no group {group:?}: there are {}", names.join(", "));
                Err(self.wrong(there.span(), &what))
            }
        }
    }

    /// Checks the sums over all groups.
    fn totals(&self, plan: &BurstPlan, raw: &[Spanned<RawGroup>]) -> Result<()> {
        let wrong = |what: String| Err(Wrong(what).into());
        if plan.count() > MAX_MESSAGES {
            return wrong(format!("{} messages in all: at most {MAX_MESSAGES}", plan.count()));
        }
        let associations: u64 = plan.groups.iter().map(|group| group.associations).sum();
        if associations > MAX_ASSOCIATIONS {
            return wrong(format!(
                "{associations} associations in all: at most {MAX_ASSOCIATIONS}; lower parallel \
                 or associations"
            ));
        }
        for (group, there) in plan.groups.iter().zip(raw) {
            if let Some((other, stage)) = group.after {
                let watched = !plan.events.is_empty()
                    || stage == Stage::Accepted
                    || (stage == Stage::Delivered && !plan.receive.is_empty());
                if !watched {
                    let other = plan.groups.get(other).map_or("", |group| group.name.as_str());
                    let what = format!(
                        "nothing can observe when {other:?} reaches this stage: name the MTAs' event logs in \
                         events{}",
                        if stage == Stage::Delivered {
                            ", or the recipients in receive"
                        } else {
                            ""
                        }
                    );
                    let after = there.as_ref().after.as_ref();
                    return Err(match after {
                        Some(after) => self.wrong(after.span(), &what),
                        None => Wrong(what).into(),
                    });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
