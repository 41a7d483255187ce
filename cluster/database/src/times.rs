//! The processor time of a process and its children.

use anyhow::{Context as _, Result};
use std::fs;
use std::time::Duration;

/// The fields of proc_pid_stat(5) that count.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// In hundredths of a second.
    own: u64,
    /// Of children that have ended.
    ended: u64,
}

fn parse(stat: &str) -> Option<Stat> {
    // The name, in parentheses, may contain anything: the fields are counted after it, from the third.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own: ticks(11)? + ticks(12)?,
        ended: ticks(13)? + ticks(14)?,
    })
}

/// Of a process, of its children, and of those children that have ended.
pub(crate) fn time_of_all(process: u32) -> Result<Duration> {
    let stat = |process: &str| {
        fs::read_to_string(format!("/proc/{process}/stat")).ok().and_then(|text| parse(&text))
    };
    let first = stat(&process.to_string()).context("the process does not run")?;
    let mut ticks = first.own + first.ended;
    for entry in fs::read_dir("/proc").context("reading /proc")? {
        let name = entry?.file_name();
        let Some(name) = name.to_str().filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        else {
            continue;
        };
        if let Some(child) = stat(name).filter(|stat| stat.parent == process) {
            ticks += child.own + child.ended;
        }
    }
    Ok(Duration::from_millis(ticks * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_after_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 105 0 0 0 12 30 5 6 20 0 1 0 6 1 2";
        assert_eq!(parse(stat), Some(Stat { parent: 1, own: 42, ended: 11 }));
        assert_eq!(parse("7 (a) S 1"), None);
        assert!(time_of_all(std::process::id()).is_ok());
    }
}
