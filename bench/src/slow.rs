//! `cargo xtask bench slow`: messages over lines of 2.4, 9.6 and 64 kbit/s, beside what the line needs
//! by itself. In simulated time: the same tree gives the same figures on any machine.

use super::all::write_part;
use super::figures::{aligned, markdown, thousands};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// The mark in docs/performance.md.
pub(super) const PART: &str = "slow";

const HEADER: [&str; 7] = [
    "kbit/s",
    "octets",
    "line, s",
    "delivered, s",
    "times the line",
    "octets sent, TCP",
    "sent again, TCP",
];

/// Sends one message of 1 kB, 36 kB and 100 kB over each line, on an association that is opened for it,
/// with whole MTAs in simulated time (the example `slow` of the crate `sim`).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of a table
    #[arg(long)]
    json: bool,
    /// Writes the table into docs/performance.md
    #[arg(long)]
    write: bool,
}

/// All that was measured.
#[derive(Debug, Deserialize, Serialize)]
struct SlowResults {
    rows: Vec<SlowRow>,
}

/// One message.
#[derive(Debug, Deserialize, Serialize)]
struct SlowRow {
    bit_s: u64,
    octets: u64,
    /// What the content alone takes on the line.
    line_s: f64,
    /// From its submission; none where it did not come.
    delivered_s: Option<f64>,
    intact: bool,
    /// The number of transfers that began.
    transfers: u64,
    /// Octets of payload that the sender's TCP sent once, and again.
    sent_octets: u64,
    resent_octets: u64,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        let printed = workspace.cargo(&["run", "-q", "-p", "sim", "--example", "slow"]).output()?;
        let report = SlowResults::read(&printed)?;
        if self.write {
            write_part(workspace, PART, &report.markdown())?;
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else if !self.write {
            print!("{}", aligned(&HEADER, &report.cells()));
        }
        Ok(Outcome::from_passed(report.is_sound()))
    }
}

impl SlowResults {
    /// From an object a line.
    fn read(printed: &str) -> Result<SlowResults> {
        let row = |line: &str| {
            serde_json::from_str(line).with_context(|| format!("{line:?} is not a measurement"))
        };
        Ok(SlowResults { rows: printed.lines().map(row).collect::<Result<_>>()? })
    }

    /// Whether each came once, whole and at the first try.
    fn is_sound(&self) -> bool {
        let sound = |row: &SlowRow| row.intact && row.transfers == 1 && row.delivered_s.is_some();
        !self.rows.is_empty() && self.rows.iter().all(sound)
    }

    fn cells(&self) -> Vec<Vec<String>> {
        self.rows.iter().map(SlowRow::cells).collect()
    }

    fn markdown(&self) -> String {
        let verdict = match self.is_sound() {
            true => "Each arrived whole, once, at the first try.",
            false => "Not all arrived at the first try.",
        };
        format!("{}\n{verdict}\n", markdown(&HEADER, &self.cells()))
    }
}

impl SlowRow {
    fn cells(&self) -> Vec<String> {
        let dash = || "-".to_owned();
        vec![
            // Far below 2^53.
            format!("{}", self.bit_s as f64 / 1_000.0),
            thousands(self.octets),
            format!("{:.1}", self.line_s),
            self.delivered_s.map_or_else(dash, |seconds| format!("{seconds:.1}")),
            self.delivered_s.map_or_else(dash, |seconds| format!("{:.2}", seconds / self.line_s)),
            thousands(self.sent_octets),
            thousands(self.resent_octets),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = r#"{"bit_s":2400,"octets":36000,"line_s":120,"delivered_s":150,"intact":true,"transfers":1,"sent_octets":38000,"resent_octets":1448}
{"bit_s":64000,"octets":1000,"line_s":0.125,"delivered_s":null,"intact":false,"transfers":4,"sent_octets":2000,"resent_octets":0}"#;

    #[test]
    fn a_message_that_did_not_come_at_the_first_try_is_a_failure() {
        let mut report = SlowResults::read(PRINTED).unwrap();
        let expected = ["2.4", "36,000", "120.0", "150.0", "1.25", "38,000", "1,448"];
        assert_eq!(report.rows[0].cells(), expected);
        assert_eq!(report.rows[1].cells()[3..5], ["-", "-"]);
        assert!(!report.is_sound() && report.markdown().contains("Not all"));
        report.rows.pop();
        assert!(report.is_sound());
        report.rows[0].transfers = 2;
        assert!(!report.is_sound());
        report.rows.clear();
        assert!(!report.is_sound(), "nothing was measured");
        assert!(SlowResults::read("error").is_err());
    }
}
