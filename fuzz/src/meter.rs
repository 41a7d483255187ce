//! Time and memory of this process: the only place of this crate that reads a clock.

use std::time::Instant;

/// Now.
#[expect(clippy::disallowed_methods, reason = "measures executions; the targets see no clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Peak of resident memory in KiB, as the system counts it; 0 where it does not.
pub(crate) fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}
