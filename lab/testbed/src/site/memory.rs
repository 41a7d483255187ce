//! Memory and processor time of a process.

use anyhow::{Context, Result};
use std::time::Duration;

/// Resident memory of a process, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Now.
    pub resident: u64,
    /// The largest value since it started.
    pub peak: u64,
}

impl ProcessMemory {
    /// Reads the memory of a process.
    ///
    /// # Errors
    /// The process has ended, or this is not Linux.
    pub fn of_process(pid: u32) -> Result<ProcessMemory> {
        let path = format!("/proc/{pid}/status");
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        ProcessMemory::parse(&text).with_context(|| format!("no VmHWM and VmRSS in {path}"))
    }

    fn parse(status: &str) -> Option<ProcessMemory> {
        let octets = |key: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
            Some(kib * 1_024)
        };
        Some(ProcessMemory { resident: octets("VmRSS:")?, peak: octets("VmHWM:")? })
    }
}

/// Processor time of a process and all its threads so far, user and system, in steps of 10 ms
/// (`/proc/PID/stat`, whose ticks do not depend on the kernel's own rate).
///
/// # Errors
/// The process has ended, or this is not Linux.
pub fn processor_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    parse_ticks(&text).map(|ticks| Duration::from_millis(ticks * 10)).context("no times in stat")
}

fn parse_ticks(stat: &str) -> Option<u64> {
    // The name, in parentheses, may contain anything, so the fields are counted after it. utime and
    // stime are the 14th and 15th field of proc_pid_stat(5); the state is the third.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_after_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 105 0 0 0 12 30 0 0 20 0 1 0 6 1 2";
        assert_eq!(parse_ticks(stat), Some(42));
        assert_eq!(parse_ticks("7 (a) S 1"), None);
        assert!(processor_time(std::process::id()).is_ok());
    }

    #[test]
    fn the_peak_is_at_least_the_resident_memory() {
        let own = ProcessMemory::of_process(std::process::id()).unwrap();
        assert!(own.resident > 100_000 && own.peak >= own.resident, "{own:?}");
        let text = "Name:\tmta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(
            ProcessMemory::parse(text),
            Some(ProcessMemory { resident: 1 << 20, peak: 2 << 20 })
        );
        assert_eq!(ProcessMemory::parse("VmHWM:\t1 kB\n"), None);
    }
}
