//! The log: the node's events as structured lines, and their destination.

use crate::driver::monitoring::labels::Labels;
use base::shown;
use node::event::{LogEvent, LogLevel};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Readable text.
    Text,
}

/// Sends log lines to standard error. `RUST_LOG` selects the level; the default is `info`, or
/// `debug` if `verbose`.
pub fn start(format: LogFormat, verbose: bool) {
    let default = if verbose { "debug" } else { "info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let color = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(color);
    // Without standard error, an internal error message would panic.
    let lines = lines.with_writer(std::io::stderr).log_internal_errors(false);
    // Takes effect once per process; a second call changes nothing.
    let _ = match format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Text => lines.try_init(),
    };
}

/// Logs one event.
pub(in crate::driver) fn event(labels: &Labels, event: &LogEvent) {
    // The field is not named `message`: the subscriber writes that one unescaped.
    let mts_id = event.message.as_deref().map(shown::line);
    let detail = (!event.detail.is_empty()).then(|| shown::line(&event.detail));
    macro_rules! log {
        ($level:ident) => {
            tracing::$level!(
                target: "mta::event",
                event = event.kind.name(),
                association = event.association.map(|a| a.to_string()),
                channel = event.channel.map(|c| labels.channel(c)),
                mts_id = mts_id.as_deref(),
                entry = event.entry.map(|e| e.to_string()),
                precedence = event.precedence.map(|p| p.name()),
                bytes = event.bytes,
                detail = detail.as_deref(),
            )
        };
    }
    match event.level {
        LogLevel::Info => log!(info),
        LogLevel::Warning => log!(warn),
        LogLevel::Error => log!(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::event::Kind;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(octets)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_peer_writes_makes_no_line_of_its_own() {
        let event = LogEvent {
            level: LogLevel::Info,
            kind: Kind::Received,
            association: None,
            channel: None,
            message: Some("[/PRMD=A/C=XX;a\n2026 ERROR forged\u{1b}[2J\u{85}]".to_owned()),
            entry: None,
            precedence: None,
            bytes: None,
            detail: "sent \"a\"\r\nERROR \u{9b}2J".to_owned(),
        };
        for json in [false, true] {
            let lines = Lines::default();
            let to = lines.clone();
            let text = tracing_subscriber::fmt().with_ansi(false).with_writer(move || to.clone());
            let log = || super::event(&Labels::default(), &event);
            match json {
                false => tracing::subscriber::with_default(text.finish(), log),
                true => {
                    let text = text.json().flatten_event(true);
                    tracing::subscriber::with_default(text.finish(), log);
                }
            }
            let output = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
            let line = output.strip_suffix('\n').unwrap();
            assert!(!line.contains(char::is_control), "{line:?}");
            assert!(line.contains("mts_id") && line.contains("2026 ERROR forged"), "{line}");
            if json {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(
                    value["mts_id"],
                    "[/PRMD=A/C=XX;a\\n2026 ERROR forged\\u{1b}[2J\\u{85}]"
                );
                assert_eq!(value["detail"], "sent \"a\"\\r\\nERROR \\u{9b}2J");
            }
        }
    }
}
