//! Events of the daemon's log, where it is written with `--log-format json`.

use serde::Deserialize;

/// One event of a daemon.
#[derive(Clone, Debug, Deserialize)]
pub struct DaemonEvent {
    /// RFC 3339, UTC.
    pub timestamp: String,
    /// `INFO`, `WARN` or `ERROR`.
    pub level: String,
    /// The name of the event, as in `transfer_started`.
    pub event: String,
    /// Association.
    pub association: Option<String>,
    /// Peer and channel, as in `act/flash`.
    pub channel: Option<String>,
    /// MTS identifier.
    pub mts_id: Option<String>,
    /// Queue entry.
    pub entry: Option<String>,
    /// Precedence.
    pub precedence: Option<String>,
    /// Further information.
    pub detail: Option<String>,
}

impl DaemonEvent {
    /// The events of a log, in order; other lines are skipped.
    pub fn from_log(log: &str) -> Vec<DaemonEvent> {
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Whether it is an event of this name about this message.
    pub fn is(&self, event: &str, message: &str) -> bool {
        self.event == event && self.mts_id.as_deref() == Some(message)
    }

    /// Whether it is an event of this name on this channel; `channel` is without the peer's name.
    pub fn is_on(&self, event: &str, channel: &str) -> bool {
        let own = self.channel.as_deref().and_then(|name| name.split_once('/'));
        self.event == event && own.is_some_and(|(_, name)| name == channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_among_other_lines() {
        let log = r#"{"timestamp":"2026-05-04T03:02:01.000123Z","level":"INFO","event":"transfer_started","association":"a7","channel":"act/flash","mts_id":"id-1","precedence":"flash","target":"mta::event"}
mta: something else
{"timestamp":"2026-05-04T03:02:01.000123Z","level":"INFO","message":"not an event"}
"#;
        let events = DaemonEvent::from_log(log);
        assert_eq!(events.len(), 1);
        assert!(events[0].is("transfer_started", "id-1") && !events[0].is("received", "id-1"));
        assert!(events[0].is_on("transfer_started", "flash"));
        assert!(!events[0].is_on("transfer_started", "act"));
    }
}
