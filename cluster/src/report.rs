//! What a trial shows: an aligned table for people, JSON for programs.

use crate::act::FaultRecord;
use crate::ledger::{Verdict, seconds};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// How long Flashes took whose node was killed while they were queued.
#[derive(Clone, Debug, Default)]
pub struct Takeover {
    /// Flashes that were acknowledged before a kill and had not left.
    pub queued: usize,
    /// Flashes that had left before the kill: another node owned their peer.
    pub elsewhere: usize,
    /// From the kill to the reception at the foreign site, ascending, of those that arrived.
    pub delays: Vec<Duration>,
}

impl Takeover {
    /// The delay that so many percent do not exceed, by nearest rank.
    pub fn percentile(&self, percent: usize) -> Option<Duration> {
        let rank = (self.delays.len() * percent).div_ceil(100).max(1);
        self.delays.get(rank - 1).copied()
    }
}

/// The outcome of a trial.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Nodes of the site.
    pub nodes: usize,
    /// Whether it was one node on the embedded store.
    pub embedded: bool,
    /// How the foreign sites reach the nodes.
    pub entrance: &'static str,
    /// Its time in seconds, without the preparation.
    pub seconds: f64,
    /// From the end of the last fault until all had arrived; absent where something did not.
    pub settled: Option<Duration>,
    /// What was kept.
    pub verdict: Verdict,
    /// The takeovers.
    pub takeover: Takeover,
    /// Transfers that the foreign sites recognised as repeated.
    pub duplicates_dropped: usize,
    /// Submissions that users repeated.
    pub resubmitted: u64,
    /// Octets of the contents that were acknowledged.
    pub octets: u64,
    /// The faults, in the order of their end.
    pub faults: Vec<FaultRecord>,
    /// Daemons that ended by themselves, or not with 0.
    pub ended: Vec<String>,
    /// Directories that are left.
    pub kept: Vec<PathBuf>,
}

fn milliseconds(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{:.0} ms", time.as_secs_f64() * 1e3))
}

impl Report {
    /// The table, with what is broken below it.
    pub fn table(&self) -> String {
        let verdict = &self.verdict;
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let mut row = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        let site = if self.embedded { "one node, embedded store" } else { "nodes on PostgreSQL" };
        row("site", if self.embedded { site.to_owned() } else { format!("{} {site}", self.nodes) });
        row("peers connect to", self.entrance.to_owned());
        row("seed", self.seed.to_string());
        row("time", format!("{:.0} s", self.seconds));
        row("faults", self.faults.len().to_string());
        row(
            "acknowledged",
            format!("{} messages, {} kB", verdict.acknowledged, self.octets / 1000),
        );
        row("copies delivered", format!("{} of {}", verdict.delivered, verdict.expected));
        row("reported", verdict.reported.to_string());
        row("lost", verdict.lost.len().to_string());
        row("doubled", verdict.doubled.len().to_string());
        row("altered", verdict.altered.len().to_string());
        row("of unknown origin", verdict.unknown.len().to_string());
        row("without an answer", verdict.unanswered.len().to_string());
        row("overtaken", format!("{} of {} pairs", verdict.overtaken, verdict.pairs));
        row("held", format!("{}, {} arrived too early", verdict.held, verdict.escaped.len()));
        row("submitted again", self.resubmitted.to_string());
        row("delivered again", format!("{} (after a fault, recognised)", verdict.again));
        row("transferred again", format!("{} (recognised)", self.duplicates_dropped));
        let settled = self.settled.map_or_else(|| "not in time".to_owned(), seconds);
        row("all arrived after", settled);
        let Takeover { queued, elsewhere, delays } = &self.takeover;
        let arrived = delays.len();
        row("Flashes at a kill", format!("{queued}, {arrived} arrived; {elsewhere} more had left"));
        row("delay, median", milliseconds(self.takeover.percentile(50)));
        row("delay, p99", milliseconds(self.takeover.percentile(99)));
        row("delay, longest", milliseconds(delays.last().copied()));
        row("ended by itself", self.ended.len().to_string());
        let mut text: String = table.lines().map(|line| format!("{}\n", line.trim())).collect();
        self.add_what_is_broken(&mut text);
        text
    }

    fn add_what_is_broken(&self, text: &mut String) {
        let verdict = &self.verdict;
        let lists = [
            ("lost", &verdict.lost),
            ("doubled", &verdict.doubled),
            ("altered", &verdict.altered),
            ("of unknown origin", &verdict.unknown),
            ("without an answer", &verdict.unanswered),
            ("arrived while it was held", &verdict.escaped),
            ("ended by itself", &self.ended),
        ];
        for (name, list) in lists {
            for line in list.iter().take(20) {
                let _ = writeln!(text, "{name}: {line}");
            }
            if list.len() > 20 {
                let _ = writeln!(text, "{name}: and {} more", list.len() - 20);
            }
        }
        if !verdict.is_kept() {
            text.push_str(&self.story());
        }
        for path in &self.kept {
            let _ = writeln!(text, "kept: {}", path.display());
        }
    }

    /// The faults with their times, a line each.
    pub fn story(&self) -> String {
        let line = |fault: &FaultRecord| {
            format!("{:>9} to {:>9}  {}\n", seconds(fault.from), seconds(fault.until), fault.text)
        };
        self.faults.iter().map(line).collect()
    }

    /// The same for programs; times in seconds.
    pub fn json(&self) -> Value {
        let verdict = &self.verdict;
        let fault = |fault: &FaultRecord| {
            let (from, until) = (fault.from.as_secs_f64(), fault.until.as_secs_f64());
            json!({ "what": fault.text, "from": from, "until": until })
        };
        let percentile =
            |percent| self.takeover.percentile(percent).map(|delay| delay.as_secs_f64());
        json!({
            "seed": self.seed,
            "nodes": self.nodes,
            "embedded": self.embedded,
            "entrance": self.entrance,
            "seconds": self.seconds,
            "kept": verdict.is_kept(),
            "acknowledged": verdict.acknowledged,
            "octets": self.octets,
            "copies": verdict.expected,
            "delivered": verdict.delivered,
            "reported": verdict.reported,
            "lost": verdict.lost,
            "doubled": verdict.doubled,
            "altered": verdict.altered,
            "unknown": verdict.unknown,
            "unanswered": verdict.unanswered,
            "held": verdict.held,
            "escaped": verdict.escaped,
            "pairs": verdict.pairs,
            "overtaken": verdict.overtaken,
            "submitted_again": self.resubmitted,
            "delivered_again": verdict.again,
            "transferred_again": self.duplicates_dropped,
            "settled": self.settled.map(|time| time.as_secs_f64()),
            "takeover": {
                "queued": self.takeover.queued,
                "elsewhere": self.takeover.elsewhere,
                "arrived": self.takeover.delays.len(),
                "median": percentile(50),
                "p99": percentile(99),
                "longest": percentile(100),
            },
            "ended": self.ended,
            "faults": self.faults.iter().map(fault).collect::<Vec<_>>(),
            "directories": self.kept,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let delays = (1..=200).map(Duration::from_millis).collect();
        let takeover = Takeover { queued: 200, elsewhere: 0, delays };
        let of = |percent| takeover.percentile(percent).map(|delay| delay.as_millis());
        assert_eq!((of(50), of(99), of(100)), (Some(100), Some(198), Some(200)));
        assert_eq!(Takeover::default().percentile(50), None);
    }
}
