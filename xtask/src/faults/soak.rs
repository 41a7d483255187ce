//! `cargo xtask soak`: daemons killed some hundred times while messages go both ways, in rounds that a log
//! keeps, so that a run that was stopped is continued.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::ci::timed;
use crate::test::COMPILED;
use crate::workspace::Workspace;
use crate::{Outcome, tools};

/// Kills two daemons at random moments while messages of every size and precedence go both ways between
/// them, to users who receive over P3 and to mailboxes that are read over P7, and checks after each round that nothing
/// acknowledged is lost, doubled or altered. Each round that
/// held is a line of the log; those that are there are not repeated. About half a minute for 30 kills.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Kills of daemons, together with those in the log
    #[arg(long, default_value_t = 500)]
    kills: u64,
    /// The first round's seed; each round has the next one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the rounds are kept
    #[arg(long, value_name = "FILE", default_value = "docs/soak.tsv")]
    log: PathBuf,
}

/// Moments of a round, at each of which a daemon is killed once, twice or three times.
const MOMENTS: &str = "24";

/// What one round, or one half of it, did: the line that the test writes.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
struct Round {
    kills: u64,
    messages: u64,
    in_doubt: u64,
    retried: u64,
    repetitions_known: u64,
    delivered_again: u64,
    body_files: u64,
    in_mailboxes: u64,
    alerts: u64,
}

/// The headings of the log.
const HEADER: &str = "seed\tkills\tmessages\tin doubt\tretried\trepetitions known\tdelivered again\t\
                      body files\tlost\tdoubled\taltered\tseconds\tcommit\tin mailboxes\talerts";

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        tools::ensure(workspace)?;
        workspace.cargo(COMPILED).run()?;
        let commit = workspace.command("git", &["rev-parse", "--short=10", "HEAD"]).output();
        let commit = commit.unwrap_or_default();
        let mut done = read(&self.log)?;
        let mut seed = self.seed;
        loop {
            let kills: u64 = done.iter().map(|(_, kills)| kills).sum();
            println!("{kills} of {} kills", self.kills);
            if kills >= self.kills {
                return Ok(Outcome::from_passed(true));
            }
            if done.iter().any(|(of, _)| *of == seed) {
                seed += 1;
                continue;
            }
            let (made, took) = timed(|| round(workspace, seed));
            let made = made?;
            append(&self.log, &made.line(seed, took.as_secs(), commit.trim()))?;
            done.push((seed, made.kills));
        }
    }
}

/// Rounds for about so long, each with a seed of its own from this one on; how many held. An error names
/// the round that did not.
pub(crate) fn rounds_for(workspace: &Workspace, seed: u64, time: Duration) -> anyhow::Result<u64> {
    let (mut held, mut took) = (0u64, Duration::ZERO);
    while took < time {
        let (made, of_round) = timed(|| round(workspace, seed.wrapping_add(held)));
        let Round { kills, messages, .. } = made?;
        println!("{kills} kills, {messages} messages: nothing lost, doubled or altered");
        held += 1;
        took += of_round;
    }
    Ok(held)
}

fn round(workspace: &Workspace, seed: u64) -> anyhow::Result<Round> {
    let report = workspace.built("debug")?.join("soak.jsonl");
    let _ = fs::remove_file(&report);
    let test = ["test", "-q", "--workspace", "--test", "all", "--", "kill::"];
    let test = workspace.cargo(&test).env("PATH", &tools::search_path());
    let test = test.env("KILL_SEED", &seed.to_string()).env("KILL_MOMENTS", MOMENTS);
    let test = test.env("KILL_REPORT", &report.to_string_lossy());
    if !test.succeeds()? {
        bail!(
            "the round with seed {seed} failed: KILL_SEED={seed} KILL_MOMENTS={MOMENTS} repeats it"
        );
    }
    let text = fs::read_to_string(&report).context("the report")?;
    let mut made = Round::default();
    text.lines().try_for_each(|line| made.add(line))?;
    if made.kills == 0 {
        bail!("the test did not show what it did");
    }
    Ok(made)
}

impl Round {
    /// Adds the counts of a line.
    fn add(&mut self, line: &str) -> anyhow::Result<()> {
        let half = serde_json::from_str::<Round>(line).context("a line of the report")?;
        self.kills += half.kills;
        self.messages += half.messages;
        self.in_doubt += half.in_doubt;
        self.retried += half.retried;
        self.repetitions_known += half.repetitions_known;
        self.delivered_again += half.delivered_again;
        self.body_files += half.body_files;
        self.in_mailboxes += half.in_mailboxes;
        self.alerts += half.alerts;
        Ok(())
    }

    fn line(&self, seed: u64, seconds: u64, commit: &str) -> String {
        let Round { kills, messages, in_doubt, retried, repetitions_known: known, .. } = self;
        let (again, files) = (self.delivered_again, self.body_files);
        let (stored, alerts) = (self.in_mailboxes, self.alerts);
        // The test fails where one of these is not 0, and then there is no line.
        let wrong = "0\t0\t0";
        format!(
            "{seed}\t{kills}\t{messages}\t{in_doubt}\t{retried}\t{known}\t{again}\t{files}\t{wrong}\t\
             {seconds}\t{commit}\t{stored}\t{alerts}"
        )
    }
}

/// Seeds and kills of the rounds in a log.
fn read(log: &Path) -> anyhow::Result<Vec<(u64, u64)>> {
    let Ok(text) = fs::read_to_string(log) else { return Ok(Vec::new()) };
    let row = |line: &str| {
        let mut cells = line.split('\t').map(str::parse::<u64>);
        match (cells.next(), cells.next()) {
            (Some(Ok(seed)), Some(Ok(kills))) => Ok((seed, kills)),
            _ => bail!("{}: not a line of a soak: {line}", log.display()),
        }
    };
    text.lines().skip(1).map(row).collect()
}

fn append(log: &Path, line: &str) -> anyhow::Result<()> {
    let is_new = !log.exists();
    let doing = || log.display().to_string();
    let mut file =
        fs::OpenOptions::new().create(true).append(true).open(log).with_context(doing)?;
    if is_new {
        writeln!(file, "{HEADER}").with_context(doing)?;
    }
    writeln!(file, "{line}").with_context(doing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("soak.tsv");
        assert_eq!(read(&log).unwrap(), []);
        let mut round = Round::default();
        let half = "{\"kills\":21,\"messages\":90,\"in_doubt\":1,\"retried\":2,\"repetitions_known\":3,\
                    \"delivered_again\":4,\"body_files\":5,\"in_mailboxes\":6,\"alerts\":7}";
        round.add(half).unwrap();
        round.add(half).unwrap();
        round.add("test kill::x ... ok").unwrap_err();
        append(&log, &round.line(7, 20, "abc")).unwrap();
        append(&log, &Round { kills: 5, ..Round::default() }.line(8, 20, "abc")).unwrap();
        assert_eq!(read(&log).unwrap(), [(7, 42), (8, 5)]);
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.contains("7\t42\t180\t2\t4\t6\t8\t10\t0\t0\t0\t20\tabc\t12\t14\n"), "{text}");
        let columns = |line: &str| line.split('\t').count();
        assert_eq!(text.lines().map(columns).collect::<Vec<_>>(), [15, 15, 15]);
        fs::write(&log, "seed\nno number\n").unwrap();
        read(&log).unwrap_err();
    }
}
