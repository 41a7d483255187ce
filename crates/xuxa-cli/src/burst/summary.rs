//! Summary of the rows by precedence: counts, times and order.

use super::tally::{MessageRow, Micros, Submission};
use crate::submission::Disposition;
use base::Precedence;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Significant decimal digits of the histograms: percentiles are exact to 0.1 %.
const DIGITS: u8 = 3;
/// Steps for each halving of the rest, in an exported histogram.
const STEPS: u32 = 5;

/// The time between two moments of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stretch {
    /// From when it was to start to its first octet.
    Late,
    /// From its first octet to the MTA's answer.
    Acceptance,
    /// From the MTA's commit to the start of its transfer.
    Waiting,
    /// From there to the next MTA's confirm.
    Transfer,
    /// From its first octet to the last recipient's confirm.
    Delivery,
}

impl Stretch {
    pub(crate) const ALL: [Stretch; 5] = [
        Stretch::Late,
        Stretch::Acceptance,
        Stretch::Waiting,
        Stretch::Transfer,
        Stretch::Delivery,
    ];

    /// Its name in JSON and in file names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stretch::Late => "late",
            Stretch::Acceptance => "acceptance",
            Stretch::Waiting => "waiting",
            Stretch::Transfer => "transfer",
            Stretch::Delivery => "delivery",
        }
    }

    /// Its duration, if both moments are known and in order.
    pub(crate) fn duration(self, row: &MessageRow) -> Option<Micros> {
        let (from, to) = match self {
            Stretch::Late => (row.due, row.submitted),
            Stretch::Acceptance => (row.submitted, row.answered),
            Stretch::Waiting => (row.accepted, row.started()),
            Stretch::Transfer => (row.started(), row.confirmed()),
            Stretch::Delivery => (row.submitted, row.delivered()),
        };
        to?.checked_sub(from?)
    }
}

/// Times of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    histogram: Option<Histogram<u64>>,
    max: Micros,
}

/// Times in milliseconds, and their count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Quantiles {
    pub count: u64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

impl Times {
    pub(crate) fn from_micros(times: impl Iterator<Item = Micros>) -> Times {
        let mut histogram = Histogram::new(DIGITS).ok();
        if let Some(histogram) = &mut histogram {
            // It resizes, so that no value is out of range.
            histogram.auto(true);
        }
        let mut all = Times { histogram, max: 0 };
        times.for_each(|time| all.record(time));
        all
    }

    pub(crate) fn record(&mut self, time: Micros) {
        self.max = self.max.max(time);
        if let Some(histogram) = &mut self.histogram {
            let _ = histogram.record(time);
        }
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        let Some(histogram) = self.histogram.as_ref().filter(|h| !h.is_empty()) else {
            return Quantiles::default();
        };
        let ms = |micros: u64| micros.min(self.max) as f64 / 1e3;
        let at = |quantile: f64| ms(histogram.value_at_quantile(quantile));
        Quantiles {
            count: histogram.len(),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            max: ms(self.max),
        }
    }

    /// Writes it in HdrHistogram's text form (.hgrm), values in milliseconds.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{:>12} {:>14} {:>10} {:>14}",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        )?;
        let Some(histogram) = &self.histogram else {
            return Ok(());
        };
        let mut total = 0;
        for step in histogram.iter_quantiles(STEPS) {
            total += step.count_since_last_iteration();
            let value = step.value_iterated_to().min(self.max) as f64 / 1e3;
            let quantile = step.quantile_iterated_to();
            write!(out, "{value:12.3} {quantile:14.12} {total:>10}")?;
            match quantile < 1.0 {
                true => writeln!(out, " {:14.2}", 1.0 / (1.0 - quantile))?,
                false => writeln!(out)?,
            }
        }
        writeln!(out, "#[Max = {:.3}, Total count = {}]", self.max as f64 / 1e3, histogram.len())
    }
}

/// Lower ones that started between a higher one's acceptance and its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Overtaken {
    /// Messages that were overtaken.
    pub messages: u64,
    /// Starts that overtook one, and the largest number for one message.
    pub starts: u64,
    pub most: u64,
}

/// Messages of one precedence, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub planned: u64,
    pub submitted: u64,
    pub accepted: u64,
    pub in_doubt: u64,
    pub refused: u64,
    pub not_sent: u64,
    /// Started and not confirmed by the next MTA.
    pub in_transfer: u64,
    pub delivered: u64,
    /// Not delivered to a recipient.
    pub non_delivery: u64,
    /// Repeated deliveries to our own users, and deliveries of changed contents.
    pub delivered_again: u64,
    pub altered: u64,
}

impl Counts {
    pub(crate) fn from_rows<'a>(rows: impl Iterator<Item = &'a MessageRow>) -> Counts {
        let mut counts = Counts::default();
        for row in rows {
            counts.planned += 1;
            counts.submitted += u64::from(row.submitted.is_some());
            match &row.submission {
                Submission::Waiting | Submission::InProgress => {}
                Submission::Accepted => counts.accepted += 1,
                Submission::Failed(Disposition::InDoubt, _) => counts.in_doubt += 1,
                Submission::Failed(Disposition::Refused, _) => counts.refused += 1,
                Submission::Failed(Disposition::NotSent, _) => counts.not_sent += 1,
            }
            counts.in_transfer += u64::from(row.is_in_transfer());
            counts.delivered += u64::from(row.delivered().is_some());
            counts.non_delivery += u64::from(row.non_delivery);
            counts.delivered_again += u64::from(row.again);
            counts.altered += u64::from(row.altered);
        }
        counts
    }
}

/// The precedences there are, the highest first.
pub(crate) fn precedences(rows: &[MessageRow]) -> Vec<Precedence> {
    let there = |p: &Precedence| rows.iter().any(|row| row.planned.precedence == *p);
    Precedence::ALL.into_iter().rev().filter(there).collect()
}

/// The rows of one precedence.
pub(crate) fn of_precedence(
    rows: &[MessageRow],
    precedence: Precedence,
) -> impl Iterator<Item = &MessageRow> {
    rows.iter().filter(move |row| row.planned.precedence == precedence)
}

/// For each row, the lower ones to the same peer that started between its acceptance and its start.
pub(crate) fn overtaken(rows: &[MessageRow]) -> Vec<u64> {
    let mut starts: BTreeMap<_, BTreeMap<Precedence, Vec<Micros>>> = BTreeMap::new();
    for row in rows {
        if let (Some(ends), Some(started)) = (row.sender_and_peer(), row.started()) {
            let of_ends = starts.entry(ends).or_default();
            of_ends.entry(row.planned.precedence).or_default().push(started);
        }
    }
    for times in starts.values_mut().flat_map(BTreeMap::values_mut) {
        times.sort_unstable();
    }
    let between = |times: &Vec<Micros>, from: Micros, to: Micros| {
        let before = |at: Micros| times.partition_point(|time| *time < at);
        before(to).saturating_sub(before(from)) as u64
    };
    let of = |row: &MessageRow| -> Option<u64> {
        let (from, to) = (row.accepted?, row.started()?);
        let lower = starts.get(&row.sender_and_peer()?)?.range(..row.planned.precedence);
        Some(lower.map(|(_, times)| between(times, from, to)).sum())
    };
    rows.iter().map(|row| of(row).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests;
