//! Time and memory of this process: the only place of this crate that reads a clock.

use std::time::{Duration, Instant};

/// Now.
#[expect(clippy::disallowed_methods, reason = "measures executions; the targets see no clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A line of `/proc/self/status` in KiB; 0 where the system has none.
fn status(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix(line));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

/// Peak of resident memory in KiB, as the system counts it; 0 where it does not.
pub(crate) fn peak_kib() -> u64 {
    status("VmHWM:")
}

/// Resident memory in KiB, without what is mapped from files; 0 if the system does not show it.
pub(crate) fn live_kib() -> u64 {
    status("RssAnon:")
}

/// Time this process has had of the processors, in all its threads; zero if the system does not
/// show it. `/proc/self/stat` counts in hundredths of a second.
pub(crate) fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may contain anything; utime and stime are fields 14 and 15.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|f| f.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// The same of this thread, in nanoseconds.
pub(crate) fn cpu_of_thread() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(stat.split_whitespace().next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_seen() {
        let (cpu_before, thread) = (cpu(), cpu_of_thread().unwrap());
        let live = live_kib();
        let begin = now();
        let mut held = Vec::new();
        while cpu() < cpu_before + Duration::from_millis(50) || held.len() < 64 {
            held.push(vec![1_u8; 1 << 20]);
            held.truncate(64);
            assert!(begin.elapsed() < Duration::from_secs(60), "no time passes");
        }
        assert!(live_kib() >= live + 32 * 1024, "{live} KiB, then {}", live_kib());
        assert!(peak_kib() >= 32 * 1024);
        assert!(cpu_of_thread().unwrap() > thread);
    }
}
