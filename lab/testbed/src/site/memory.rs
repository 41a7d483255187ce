//! What a process takes of memory and of the processors.

use anyhow::{Context, Result};
use std::time::Duration;

/// Resident memory of a process, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Now.
    pub resident: u64,
    /// The most since it started.
    pub peak: u64,
}

impl Memory {
    /// Reads that of a process.
    ///
    /// # Errors
    /// The process is gone, or this is no Linux.
    pub fn of_process(pid: u32) -> Result<Memory> {
        let path = format!("/proc/{pid}/status");
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        Memory::parse(&text).with_context(|| format!("no VmHWM and VmRSS in {path}"))
    }

    fn parse(status: &str) -> Option<Memory> {
        let octets = |key: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
            Some(kib * 1_024)
        };
        Some(Memory { resident: octets("VmRSS:")?, peak: octets("VmHWM:")? })
    }
}

/// Processor time of a process and all its threads so far, user and system, to a hundredth of a
/// second (`/proc/PID/stat`; Linux counts it in ticks of 10 ms whatever the kernel's own rate).
///
/// # Errors
/// The process is gone, or this is no Linux.
pub fn processor_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    parse_ticks(&text).map(|ticks| Duration::from_millis(ticks * 10)).context("no times in stat")
}

fn parse_ticks(stat: &str) -> Option<u64> {
    // The name, in parentheses, may hold anything: what follows it counts. Then utime and stime are
    // the 14th and 15th field of proc_pid_stat(5), the state being the third.
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
    fn ticks_are_read_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 105 0 0 0 12 30 0 0 20 0 1 0 6 1 2";
        assert_eq!(parse_ticks(stat), Some(42));
        assert_eq!(parse_ticks("7 (a) S 1"), None);
        assert!(processor_time(std::process::id()).is_ok());
    }

    #[test]
    fn our_own_peak_is_no_smaller_than_what_we_take() {
        let own = Memory::of_process(std::process::id()).unwrap();
        assert!(own.resident > 100_000 && own.peak >= own.resident, "{own:?}");
        let text = "Name:\tmta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(Memory::parse(text), Some(Memory { resident: 1 << 20, peak: 2 << 20 }));
        assert_eq!(Memory::parse("VmHWM:\t1 kB\n"), None);
    }
}
