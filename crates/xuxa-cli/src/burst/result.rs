//! What a burst came to, for people and as JSON.

use super::plan::BurstPlan;
use super::run::Run;
use super::summary::{
    Counts, Overtaken, Quantiles, Stretch, Times, of_precedence, overtaken, precedences,
};
use super::tally::{MessageRow, Micros, Submission};
use super::value::Stage;
use crate::show;
use crate::submission::Disposition;
use anyhow::{Context as _, Result};
use base::{Precedence, Utc};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

/// All of it. What nobody observes here is null; what is not known of one message is absent.
#[derive(Debug, Serialize)]
pub(crate) struct BurstResult {
    pub plan: String,
    pub seed: u64,
    pub began_at: String,
    pub elapsed_seconds: f64,
    pub interrupted: bool,
    pub counts: Counts,
    /// Messages whose moments are out of order: clocks were set, or differ between hosts.
    pub out_of_order: u64,
    pub observed: Observed,
    /// The highest first.
    pub precedences: Vec<PrecedenceResult>,
    pub messages: Vec<MessageResult>,
    /// The times themselves, for the histograms.
    #[serde(skip)]
    times: Vec<(Precedence, Stretch, Times)>,
    /// Messages that reached the last observable stage: delivered, else accepted.
    #[serde(skip)]
    arrived: u64,
}

/// What could be observed, and what is missing.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Observed {
    pub event_logs: u64,
    pub recipients: u64,
    /// Of all groups.
    pub deliveries: bool,
    /// Groups whose deliveries are not observed.
    pub unseen_groups: Vec<String>,
    /// Groups that begin with a transfer, where no event of a transfer was observed.
    pub unobserved_starts: Vec<String>,
    pub events: u64,
    pub lines_skipped: u64,
    /// Gaps in the logs: a file was rotated away unread or truncated, or the MTA lost lines.
    pub gaps: u64,
    /// Lines that the MTAs report as lost.
    pub lines_lost: u64,
    /// Events dropped before their message was known.
    pub events_dropped: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct PrecedenceResult {
    pub precedence: Precedence,
    #[serde(flatten)]
    pub counts: Counts,
    pub late_ms: Option<Quantiles>,
    pub acceptance_ms: Option<Quantiles>,
    pub waiting_ms: Option<Quantiles>,
    pub transfer_ms: Option<Quantiles>,
    pub delivery_ms: Option<Quantiles>,
    pub overtaken: Option<Overtaken>,
}

#[derive(Debug, Serialize)]
pub(crate) struct MessageResult {
    pub number: u32,
    pub group: String,
    pub precedence: Precedence,
    pub size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_length: Option<u64>,
    pub content_identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mts_identifier: Option<String>,
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub tries: u32,
    /// Number of starts of its transfer.
    pub transfers: u32,
    /// The moments, each as RFC 3339 in microseconds.
    #[serde(flatten)]
    pub moments: BTreeMap<&'static str, String>,
    /// The stretches between, in milliseconds.
    #[serde(flatten)]
    pub stretches: BTreeMap<&'static str, f64>,
    pub overtaken_by: Option<u64>,
}

fn outcome(row: &MessageRow) -> (&'static str, Option<String>) {
    match &row.submission {
        Submission::Waiting | Submission::InProgress => ("not_sent", None),
        Submission::Failed(disposition, reason) => {
            let disposition = match disposition {
                Disposition::InDoubt => "in_doubt",
                Disposition::Refused => "refused",
                Disposition::NotSent => "not_sent",
            };
            (disposition, Some(reason.clone()))
        }
        Submission::Accepted if row.delivered().is_some() => ("delivered", None),
        Submission::Accepted if row.non_delivery => ("non_delivery", None),
        Submission::Accepted => ("accepted", None),
    }
}

fn message_result(row: &MessageRow, overtaken_by: Option<u64>, plan: &BurstPlan) -> MessageResult {
    let moments: [(&str, Option<Micros>); 8] = [
        ("planned_at", row.due),
        ("submission_at", row.submitted),
        ("answered_at", row.answered),
        ("accepted_at", row.accepted),
        ("transfer_started_at", row.started()),
        ("received_at", row.received),
        ("transfer_confirmed_at", row.confirmed()),
        ("delivered_at", row.delivered()),
    ];
    let moments = moments.into_iter().filter_map(|(name, at)| Some((name, Utc(at?).to_string())));
    let stretches = [
        ("late_ms", Stretch::Late),
        ("acceptance_ms", Stretch::Acceptance),
        ("waiting_ms", Stretch::Waiting),
        ("transfer_ms", Stretch::Transfer),
        ("delivery_ms", Stretch::Delivery),
    ];
    let stretches = stretches
        .into_iter()
        .filter_map(|(name, stretch)| Some((name, stretch.duration(row)? as f64 / 1e3)));
    let (outcome, reason) = outcome(row);
    MessageResult {
        number: row.planned.number,
        group: plan.groups.get(row.planned.group).map(|g| g.name.clone()).unwrap_or_default(),
        precedence: row.planned.precedence,
        size: row.planned.size,
        content_length: (row.content_length > 0).then_some(row.content_length),
        content_identifier: row.content_identifier.clone(),
        mts_identifier: row.mts_identifier.clone(),
        outcome,
        reason,
        tries: row.tries,
        transfers: row.transfers.iter().map(|transfer| transfer.starts).sum(),
        moments: moments.collect(),
        stretches: stretches.collect(),
        overtaken_by,
    }
}

impl BurstResult {
    pub(crate) fn from_run(run: &Run, path: &Path, elapsed: Duration) -> BurstResult {
        let tally = run.tally.borrow();
        let (rows, plan) = (&tally.rows, run.plan());
        // An event log without an event of these messages shows nothing.
        let sees_transfers = rows.iter().any(|row| row.started().is_some());
        let by = overtaken(rows);
        let sees = run.sees_deliveries();
        let sees_any = sees.contains(&true);
        let is_seen = |row: &&MessageRow| sees.get(row.planned.group) == Some(&true);
        let unseen = plan.groups.iter().zip(&sees).filter(|(_, sees)| !**sees);
        let has_arrived = |row: &&MessageRow| match is_seen(row) {
            true => row.delivered().is_some(),
            false => row.submission == Submission::Accepted,
        };
        let mut times = Vec::new();
        let mut summaries = Vec::new();
        for precedence in precedences(rows) {
            let mut quantiles = Stretch::ALL.map(|stretch| {
                let all = Times::from_micros(
                    of_precedence(rows, precedence).filter_map(|row| stretch.duration(row)),
                );
                let is_seen = match stretch {
                    Stretch::Late | Stretch::Acceptance => true,
                    Stretch::Waiting | Stretch::Transfer => sees_transfers,
                    Stretch::Delivery => sees_any,
                };
                let quantiles = is_seen.then(|| all.quantiles());
                times.push((precedence, stretch, all));
                quantiles
            });
            let mut overtaken = Overtaken::default();
            for (row, by) in rows.iter().zip(&by).filter(|(_, by)| **by > 0) {
                if row.planned.precedence == precedence {
                    overtaken.messages += 1;
                    overtaken.starts += by;
                    overtaken.most = overtaken.most.max(*by);
                }
            }
            let [late, acceptance, waiting, transfer, delivery] =
                quantiles.each_mut().map(Option::take);
            summaries.push(PrecedenceResult {
                precedence,
                counts: Counts::from_rows(of_precedence(rows, precedence)),
                late_ms: late,
                acceptance_ms: acceptance,
                waiting_ms: waiting,
                transfer_ms: transfer,
                delivery_ms: delivery,
                overtaken: sees_transfers.then_some(overtaken),
            });
        }
        let counts = run.counts.get();
        let messages = rows
            .iter()
            .zip(by)
            .map(|(row, by)| message_result(row, sees_transfers.then_some(by), plan));
        BurstResult {
            plan: path.display().to_string(),
            seed: plan.seed,
            began_at: run.dtg.to_string(),
            elapsed_seconds: elapsed.as_secs_f64(),
            interrupted: run.is_interrupted(),
            counts: Counts::from_rows(rows.iter()),
            out_of_order: rows.iter().filter(|row| row.is_out_of_order()).count() as u64,
            observed: Observed {
                event_logs: plan.events.len() as u64,
                recipients: plan.receive.len() as u64,
                deliveries: !sees.contains(&false),
                unseen_groups: unseen.map(|(group, _)| group.name.clone()).collect(),
                unobserved_starts: plan
                    .groups
                    .iter()
                    .filter(|group| {
                        !sees_transfers && matches!(group.after, Some((_, Stage::Started)))
                    })
                    .map(|group| group.name.clone())
                    .collect(),
                events: counts.events,
                lines_skipped: counts.skipped,
                gaps: counts.gaps,
                lines_lost: counts.lost,
                events_dropped: tally.dropped,
            },
            precedences: summaries,
            messages: messages.collect(),
            times,
            arrived: rows.iter().filter(has_arrived).count() as u64,
        }
    }

    /// 0: all reached the last observable stage; 3: a part; 1: none; 4: a submission is in doubt.
    pub(crate) fn exit_code(&self) -> u8 {
        let Counts { planned, accepted, in_doubt, altered, .. } = self.counts;
        match () {
            () if in_doubt > 0 => 4,
            () if self.arrived == planned && altered == 0 => {
                // The plan asks for a start that nobody observed: it was not carried out.
                if self.observed.unobserved_starts.is_empty() { 0 } else { 3 }
            }
            () if accepted > 0 => 3,
            () => 1,
        }
    }

    /// Counts, and times in milliseconds.
    pub(crate) fn tables(&self) -> String {
        let header = [
            "precedence",
            "planned",
            "accepted",
            "in doubt",
            "refused",
            "not sent",
            "delivered",
            "not delivered",
            "overtaken",
        ];
        let mut counts = show::table(&header, &[1, 2, 3, 4, 5, 6, 7, 8]);
        for line in &self.precedences {
            let c = &line.counts;
            let lost = c.accepted.saturating_sub(c.delivered);
            let seen = |n: u64| match line.delivery_ms {
                Some(_) => n.to_string(),
                None => "-".to_owned(),
            };
            let overtaken = line.overtaken.map_or_else(
                || "-".to_owned(),
                |o| match o.messages {
                    0 => "0".to_owned(),
                    n => format!("{n} (by up to {})", o.most),
                },
            );
            counts.add_row([
                line.precedence.to_string(),
                c.planned.to_string(),
                c.accepted.to_string(),
                c.in_doubt.to_string(),
                c.refused.to_string(),
                c.not_sent.to_string(),
                seen(c.delivered),
                seen(lost),
                overtaken,
            ]);
        }
        format!("{counts}\n\n{}", self.times_table())
    }

    fn times_table(&self) -> show::Table {
        let header = ["precedence", "times in ms", "count", "p50", "p90", "p99", "max"];
        let mut table = show::table(&header, &[2, 3, 4, 5, 6]);
        for line in &self.precedences {
            let stretches = [
                ("late", &line.late_ms),
                ("acceptance", &line.acceptance_ms),
                ("waiting", &line.waiting_ms),
                ("transfer", &line.transfer_ms),
                ("submit to delivered", &line.delivery_ms),
            ];
            for (name, quantiles) in stretches {
                let Some(q) = quantiles.filter(|q| q.count > 0) else {
                    continue;
                };
                let mut cells =
                    vec![line.precedence.to_string(), name.to_owned(), q.count.to_string()];
                cells.extend([q.p50, q.p90, q.p99, q.max].map(|ms| show::ms(Some(ms))));
                table.add_row(cells);
            }
        }
        table
    }

    /// Remarks beside the tables.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let reasons = self.messages.iter().filter_map(|m| Some((m.outcome, m.reason.as_ref()?)));
        let mut by_reason: BTreeMap<(&str, &String), u64> = BTreeMap::new();
        reasons.for_each(|reason| *by_reason.entry(reason).or_default() += 1);
        for ((outcome, reason), count) in by_reason.into_iter().take(MAX_REASONS) {
            lines.push(format!("{count} {}: {reason}", outcome.replace('_', " ")));
        }
        let o = &self.observed;
        if o.event_logs == 0 {
            lines.push(
                "no event logs: waiting and transfer are not measured; name the MTAs' logs in events"
                    .to_owned(),
            );
        }
        if o.event_logs > 0 && o.events == 0 {
            lines.push(
                "the event logs have no event: is [events] set in the MTAs' configuration, \
                 and are these its files?"
                    .to_owned(),
            );
        }
        if !o.unobserved_starts.is_empty() {
            lines.push(format!(
                "no transfer was observed: {} did not wait for one",
                o.unobserved_starts.join(", ")
            ));
        }
        if !o.deliveries {
            lines.push(format!(
                "the deliveries of {} are not observed: name the event logs of the MTAs that deliver in \
                 events, or all recipients in receive",
                o.unseen_groups.join(", ")
            ));
        }
        let counted = [
            (self.counts.altered, "contents differ from what was submitted"),
            (self.counts.delivered_again, "repeated deliveries"),
            (self.counts.non_delivery, "messages with a non-delivery"),
            (
                self.out_of_order,
                "messages with times out of order: are the hosts' clocks the same?",
            ),
            (o.lines_skipped, "lines of event logs that cannot be read"),
            (
                o.gaps,
                "gaps in event logs: rotated away unread (set a larger size or keep), or lost",
            ),
            (o.lines_lost, "lines that MTAs could not write to their event logs"),
            (
                o.events_dropped,
                "events dropped because the answer to their submission came too late",
            ),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        lines.extend(counted.map(|(count, what)| format!("{count} {what}")));
        lines
    }

    /// Writes a file for each precedence and stretch that has times, `routine-delivery.hgrm`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write_histograms(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        for (precedence, stretch, times) in &self.times {
            if times.quantiles().count > 0 {
                let path = directory.join(format!("{precedence}-{}.hgrm", stretch.name()));
                let file = File::create(&path);
                let written = file.and_then(|file| {
                    let mut out = BufWriter::new(file);
                    times.write(&mut out)?;
                    out.flush()
                });
                written.with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// Bound of the reasons shown beside the table; JSON has all.
const MAX_REASONS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::event::{EventKind, MessageEvent};
    use crate::burst::run::Setup;
    use crate::burst::schedule::messages;
    use ua::{Clock, Interrupted};

    #[test]
    fn overtaken_by_is_null_until_a_transfer_is_observed() {
        let text = "to = \"/C=IT/ADMD=NET/S=A\"\n[[group]]\nname = \"a\"\n\
                    precedence = \"routine\"\nsize = \"1kB\"\n";
        let plan = BurstPlan::read(text).unwrap();
        let planned = messages(&plan).unwrap();
        let (from, receive) = (Vec::new(), Vec::new());
        let (clock, interrupted) = (Clock::start(), Interrupted::default());
        let setup = Setup { plan, planned, from, receive, clock, interrupted };
        let run = Run::new(setup, Box::new(|_| {})).unwrap();
        run.tally.borrow_mut().begins(0, 100, 1_200);
        run.tally.borrow_mut().accepted(0, 120, "m0", 1);
        let json =
            || serde_json::json!(BurstResult::from_run(&run, Path::new("p.toml"), Duration::ZERO));
        let null = serde_json::Value::Null;
        let message = &json()["messages"][0];
        assert_eq!(message.get("overtaken_by"), Some(&null), "present, and not observed");
        assert_eq!(json()["precedences"][0].get("overtaken"), Some(&null));
        for (kind, time_us) in [(EventKind::Accepted, 110), (EventKind::TransferStarted, 130)] {
            run.tally.borrow_mut().event(MessageEvent {
                time_us,
                mta: "A".to_owned(),
                kind,
                mts_identifier: "m0".to_owned(),
                entry: Some("1".to_owned()),
                peer: Some("act".to_owned()),
                recipient: None,
            });
        }
        assert_eq!(json()["messages"][0]["overtaken_by"], 0);
    }
}
