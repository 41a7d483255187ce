//! The figures, for machines and for people.

use super::disk::Disk;
use super::figures::{aligned, markdown, thousands};
use load::{Outcome, Summary};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::time::Duration;

/// All that was measured.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct RelayResults {
    /// The disk, before the table by size and after it.
    pub(super) disk_before: Option<Disk>,
    pub(super) disk_after: Option<Disk>,
    pub(super) sizes: Vec<RelayRow>,
    /// 1 kB and 64 submitters, by the most associations.
    pub(super) curve: Vec<RelayRow>,
    pub(super) idle: Option<Idle>,
    pub(super) large: Option<Large>,
}

/// A rate.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RelayRow {
    size: usize,
    submitters: usize,
    associations_max: u32,
    /// The most that were seen to carry a message at once.
    associations_used: usize,
    messages: u64,
    lost: u64,
    delivered_again: u64,
    messages_per_s: f64,
    /// Of content, in millions of octets.
    mb_per_s: f64,
    accepted_per_s: f64,
    accepted_ms: Summary,
    delivered_ms: Summary,
    /// Processor time a message, in microseconds.
    cpu_us_submitting_mta: f64,
    cpu_us_receiving_mta: f64,
    cpu_us_load: f64,
}

/// The latency of a message when nothing else is there.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Idle {
    messages: u64,
    accepted_ms: Summary,
    delivered_ms: Summary,
}

/// Many large ones at once.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Large {
    /// The most that were seen to be transferred at once.
    at_once: usize,
    messages: u64,
    lost: u64,
    mb_per_s: f64,
    /// Resident memory in octets: submitting MTA, receiving MTA.
    idle: [u64; 2],
    peak: [u64; 2],
}

impl RelayRow {
    pub(super) fn new(
        (size, submitters): (usize, usize),
        (associations_max, associations_used): (u32, usize),
        outcome: &Outcome,
        cpu: [Duration; 2],
    ) -> RelayRow {
        let messages = outcome.delivered as f64;
        let rate = messages / outcome.seconds.max(1e-6);
        let each = |spent: f64| spent * 1e6 / messages.max(1.0);
        let [naples, act] = cpu.map(|spent| each(spent.as_secs_f64()));
        RelayRow {
            size,
            submitters,
            associations_max,
            associations_used,
            messages: outcome.delivered,
            lost: outcome.accepted.saturating_sub(outcome.delivered),
            delivered_again: outcome.again,
            messages_per_s: rate,
            mb_per_s: rate * outcome.content_length as f64 / 1e6,
            accepted_per_s: outcome.accepted as f64 / outcome.accepting_seconds.max(1e-6),
            accepted_ms: outcome.accepted_ms,
            delivered_ms: outcome.delivered_ms,
            cpu_us_submitting_mta: naples,
            cpu_us_receiving_mta: act,
            cpu_us_load: each(outcome.processor_seconds),
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            thousands(self.size as u64),
            self.submitters.to_string(),
            format!("{} of {}", self.associations_used, self.associations_max),
            thousands(self.messages),
            thousands(self.messages_per_s as u64),
            format!("{:.1}", self.mb_per_s),
            thousands(self.accepted_per_s as u64),
            format!("{:.1}", self.accepted_ms.median),
            format!("{:.1}", self.delivered_ms.median),
            format!("{:.1}", self.delivered_ms.p99),
            format!("{:.0}", self.cpu_us_submitting_mta),
            format!("{:.0}", self.cpu_us_receiving_mta),
            format!("{:.0}", self.cpu_us_load),
        ]
    }
}

/// The headings of the tables.
const HEADER: [&str; 13] = [
    "octets",
    "submitters",
    "associations used",
    "messages",
    "messages/s",
    "MB/s",
    "accepted/s",
    "accepted, ms",
    "delivered, ms",
    "p99",
    "CPU A, us",
    "CPU B, us",
    "CPU load, us",
];

/// The parts of docs/performance.md that [`RelayResults::parts`] gives.
#[cfg(test)]
pub(super) const PARTS: [&str; 5] = ["disk", "sizes", "curve", "idle", "memory"];

impl Idle {
    pub(super) fn new(outcome: &Outcome) -> Idle {
        Idle {
            messages: outcome.delivered,
            accepted_ms: outcome.accepted_ms,
            delivered_ms: outcome.delivered_ms,
        }
    }
}

impl Large {
    pub(super) fn new(at_once: usize, outcome: &Outcome, idle: [u64; 2], peak: [u64; 2]) -> Large {
        let octets = outcome.delivered as f64 * outcome.content_length as f64;
        Large {
            at_once,
            messages: outcome.delivered,
            lost: outcome.accepted.saturating_sub(outcome.delivered),
            mb_per_s: octets / 1e6 / outcome.seconds.max(1e-6),
            idle,
            peak,
        }
    }
}

impl RelayResults {
    /// Whether nothing was lost and nothing came twice: else no figure counts.
    pub(super) fn is_sound(&self) -> bool {
        let rows = self.sizes.iter().chain(&self.curve);
        let large = self.large.iter().all(|large| large.lost == 0);
        large && rows.into_iter().all(|row| row.lost == 0 && row.delivered_again == 0)
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let disks = [("before", &self.disk_before), ("after", &self.disk_after)];
        for (when, disk) in disks {
            if let Some(disk) = disk {
                let _ = writeln!(text, "the disk {when}: {}", disk.line());
            }
        }
        for (title, rows) in [
            ("by size and parallel submitters", &self.sizes),
            ("by the most associations of the channel", &self.curve),
        ] {
            if !rows.is_empty() {
                let rows: Vec<_> = rows.iter().map(RelayRow::cells).collect();
                let _ = write!(text, "\n{title}\n{}", aligned(&HEADER, &rows));
            }
        }
        if let Some(Idle { messages, accepted_ms: a, delivered_ms: d }) = &self.idle {
            let _ = writeln!(text, "\n{messages} messages of 1 kB, one at a time");
            let _ = writeln!(text, "  submission to answer    {}", times(a));
            let _ = writeln!(text, "  submission to delivery  {}", times(d));
        }
        if let Some(large) = &self.large {
            let _ = writeln!(text, "\n{}", large.line());
        }
        text
    }

    /// For the page, by the names of its parts.
    pub(super) fn parts(&self) -> Vec<(&'static str, String)> {
        let table = |rows: &[RelayRow]| {
            markdown(&HEADER, &rows.iter().map(RelayRow::cells).collect::<Vec<_>>())
        };
        let disk = |disk: &Option<Disk>| disk.as_ref().map(Disk::line).unwrap_or_default();
        let disks =
            format!("Before: {}. After: {}.\n", disk(&self.disk_before), disk(&self.disk_after));
        let idle = self.idle.as_ref().map_or_else(String::new, |idle| {
            format!(
                "{} messages of 1 kB, one after the other: submission to answer {}; submission to \
                 delivery {}.\n",
                idle.messages,
                times(&idle.accepted_ms),
                times(&idle.delivered_ms)
            )
        });
        let large = self.large.as_ref().map_or_else(String::new, |large| large.line() + ".\n");
        vec![
            ("disk", disks),
            ("sizes", table(&self.sizes)),
            ("curve", table(&self.curve)),
            ("idle", idle),
            ("memory", large),
        ]
    }
}

impl Large {
    fn line(&self) -> String {
        let mb = |octets: u64| octets as f64 / 1e6;
        let ([idle_a, idle_b], [peak_a, peak_b]) = (self.idle.map(mb), self.peak.map(mb));
        format!(
            "{} messages of 10 MB, up to {} transfers at once, {:.0} MB/s: peak memory {peak_a:.0} + \
             {peak_b:.0} = {:.0} MB (idle {idle_a:.0} + {idle_b:.0} MB)",
            self.messages,
            self.at_once,
            self.mb_per_s,
            peak_a + peak_b
        )
    }
}

fn times(summary: &Summary) -> String {
    let Summary { median, p99, max, .. } = summary;
    format!("median {median:.2} ms, p99 {p99:.2} ms, longest {max:.2} ms")
}
