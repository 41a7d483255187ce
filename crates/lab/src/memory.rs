//! What a process takes of memory.

use anyhow::{Context, Result};

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
    pub fn of(pid: u32) -> Result<Memory> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_peak_is_no_smaller_than_what_we_take() {
        let own = Memory::of(std::process::id()).unwrap();
        assert!(own.resident > 100_000 && own.peak >= own.resident, "{own:?}");
        let text = "Name:\tmta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(Memory::parse(text), Some(Memory { resident: 1 << 20, peak: 2 << 20 }));
        assert_eq!(Memory::parse("VmHWM:\t1 kB\n"), None);
    }
}
