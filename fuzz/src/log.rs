//! The log of a run: a Markdown table, a row for each target, written as each ends. A later run
//! with the same log skips what is in it.

use crate::worker::RunOutcome;
use anyhow::{Context, Result};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

const HEADS: [&str; 12] = [
    "target",
    "seed",
    "seconds",
    "executions",
    "exec/s",
    "wall s",
    "CPU s",
    "peak MiB",
    "first tenth MiB",
    "last tenth MiB",
    "commit",
    "findings",
];

/// A row of the table, a cell for each of [`HEADS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogRow(pub(crate) Vec<String>);

impl LogRow {
    /// The row of a target's outcome.
    pub(crate) fn from_outcome(
        target: &str,
        seed: u64,
        seconds: u64,
        outcome: &RunOutcome,
    ) -> LogRow {
        let mib = |kib: u64| format!("{:.1}", kib as f64 / 1024.0);
        let output: Vec<String> =
            outcome.findings.iter().map(|finding| finding.to_string()).collect();
        LogRow(vec![
            target.to_owned(),
            seed.to_string(),
            seconds.to_string(),
            outcome.executions.to_string(),
            format!("{:.0}", outcome.executions as f64 / outcome.time.as_secs_f64().max(0.001)),
            format!("{:.1}", outcome.time.as_secs_f64()),
            format!("{:.1}", outcome.cpu.as_secs_f64()),
            mib(outcome.peak_kib),
            mib(outcome.first_kib),
            mib(outcome.last_kib),
            commit(),
            findings(&output),
        ])
    }

    /// A target whose process did not survive.
    pub(crate) fn lost(target: &str, seed: u64, seconds: u64, what: &str) -> LogRow {
        let mut cells = vec![target.to_owned(), seed.to_string(), seconds.to_string()];
        cells.resize(HEADS.len() - 2, String::new());
        cells.push(commit());
        cells.push(findings(&[what.to_owned()]));
        LogRow(cells)
    }

    /// Reads a line; `None` if it is not a row.
    pub(crate) fn read(line: &str) -> Option<LogRow> {
        let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        let cells: Vec<String> = inner.split('|').map(|cell| cell.trim().to_owned()).collect();
        (cells.len() == HEADS.len()).then_some(LogRow(cells))
    }

    /// Whether it is about this target, seed and time.
    pub(crate) fn is_of(&self, target: &str, seed: u64, seconds: u64) -> bool {
        self.0.iter().take(3).eq([target.to_owned(), seed.to_string(), seconds.to_string()].iter())
    }

    /// Whether nothing was found.
    pub(crate) fn is_clean(&self) -> bool {
        self.0.last().is_some_and(|findings| findings == "0")
    }
}

impl std::fmt::Display for LogRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let widths = HEADS.iter().map(|head| head.len());
        write!(f, "|")?;
        for (n, (cell, width)) in self.0.iter().zip(widths).enumerate() {
            match n {
                0 => write!(f, " {cell:16} |")?,
                _ => write!(f, " {cell:>width$} |")?,
            }
        }
        Ok(())
    }
}

/// Number of findings, and what they are, on one line without the table's own sign.
fn findings(output: &[String]) -> String {
    let text = output.iter().map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "));
    let text = text.collect::<Vec<_>>().join("; ").replace('|', "/");
    if output.is_empty() { "0".to_owned() } else { format!("{}: {text}", output.len()) }
}

/// The two lines above the rows.
pub(crate) fn heads() -> String {
    let heads = LogRow(HEADS.iter().map(|head| (*head).to_owned()).collect()).to_string();
    let rule: Vec<String> = (0..HEADS.len())
        .map(|n| if n == 0 { "---".to_owned() } else { "--:".to_owned() })
        .collect();
    format!("{heads}\n| {} |", rule.join(" | "))
}

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Log(Option<File>);

impl Log {
    /// Opens it, with its head if it is new; without a path nothing is kept.
    pub(crate) fn open(path: Option<&Path>, what: &str) -> Result<Log> {
        let Some(path) = path else { return Ok(Log(None)) };
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.with_context(|| path.display().to_string())?;
        if file.metadata()?.len() == 0 {
            writeln!(file, "# Fuzzing: `{what}`\n\n{}\n\n{}", machine(), heads())?;
        }
        Ok(Log(Some(file)))
    }

    /// The rows it has by now.
    pub(crate) fn rows(path: Option<&Path>) -> Vec<LogRow> {
        let text = path.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        text.lines().filter_map(LogRow::read).collect()
    }

    /// Adds a row, at once.
    pub(crate) fn add(&mut self, row: &LogRow) -> Result<()> {
        if let Some(file) = &mut self.0 {
            writeln!(file, "{row}")?;
            file.sync_data()?;
        }
        Ok(())
    }
}

/// What it runs on.
fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown", |(_, model)| model.trim());
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!(
        "A {build} build, begun at commit {} (each row names its own), on {processors} processors ({model}, {}).",
        commit(),
        std::env::consts::OS
    )
}

/// The commit of the sources, with `+` where they differ from it.
fn commit() -> String {
    let directory = env!("CARGO_MANIFEST_DIR");
    let args = ["-C", directory, "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+"];
    let output = Command::new("git").args(args).output().ok().filter(|o| o.status.success());
    output.map_or_else(
        || "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_row_is_read_as_it_was_written_and_other_lines_are_none() {
        let outcome = RunOutcome {
            executions: 1_200,
            time: Duration::from_secs(60),
            cpu: Duration::from_millis(31_500),
            peak_kib: 10_240,
            first_kib: 5_120,
            last_kib: 5_200,
            findings: Vec::new(),
        };
        let row = LogRow::from_outcome("ber", 4, 60, &outcome);
        assert_eq!(LogRow::read(&row.to_string()), Some(row.clone()));
        assert_eq!(row.0.get(3..7), Some(&["1200", "20", "60.0", "31.5"].map(str::to_owned)[..]));
        assert!(row.is_of("ber", 4, 60) && row.is_clean());
        assert!(!row.is_of("ber", 4, 61) && !row.is_of("tpkt", 4, 60));
        let lost = LogRow::lost("ber", 4, 60, "killed by signal 6 | at input 7\nagain with x");
        assert_eq!(LogRow::read(&lost.to_string()), Some(lost.clone()));
        assert!(!lost.is_clean());
        for line in ["", "# Fuzzing", "| --- | --: |", "| a | b |"] {
            assert_eq!(LogRow::read(line), None, "{line}");
        }
    }

    #[test]
    fn a_log_goes_on_where_it_ended() {
        let path = std::env::temp_dir().join(format!("fuzz-log-{}.md", std::process::id()));
        for name in ["ber", "tpkt"] {
            let mut log = Log::open(Some(&path), "fuzz all").unwrap();
            log.add(&LogRow::lost(name, 1, 2, "x")).unwrap();
        }
        let rows = Log::rows(Some(&path));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(rows.iter().any(|row| row.is_of("ber", 1, 2)));
        assert!(rows.iter().any(|row| row.is_of("tpkt", 1, 2)));
        assert_eq!(text.matches("# Fuzzing: `fuzz all`").count(), 1, "{text}");
        assert_eq!(Log::rows(None), []);
    }
}
