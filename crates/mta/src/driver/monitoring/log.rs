//! The log: the node's events as structured lines, and their destination.

use crate::driver::monitoring::labels::Labels;
use base::shown;
use node::event::{LogEvent, LogLevel};
use std::io::IsTerminal;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Readable text.
    Text,
}

/// Sends log lines to standard error. `RUST_LOG` selects the level, of all (`debug`) or by target
/// (`warn,mta=debug`); the default is `info`, or `debug` if `verbose`.
pub fn start(format: LogFormat, verbose: bool) {
    let default = if verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let (filter, invalid) = filter(std::env::var("RUST_LOG").ok().as_deref(), default);
    let color = std::io::stderr().is_terminal();
    // Without standard error, an internal error message would panic.
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(color)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let lines = match format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        LogFormat::Text => lines.boxed(),
    };
    // Takes effect once per process; a second call changes nothing.
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
    if let Some(error) = invalid {
        tracing::warn!(target: "mta", "invalid RUST_LOG, ignored: {error}");
    }
}

/// The filter that `RUST_LOG` describes, or the default one, and what is wrong with the text.
fn filter(text: Option<&str>, default: LevelFilter) -> (Targets, Option<String>) {
    match text.filter(|text| !text.is_empty()).map(str::parse::<Targets>) {
        // A misspelt level reads as a target, and a filter of targets alone shows nothing.
        Some(Ok(targets)) if !targets.would_enable("mta::event", &tracing::Level::ERROR) => {
            let invalid = "it names no level for mta, as in `debug` or `warn,mta=debug`";
            (Targets::new().with_default(default), Some(invalid.to_owned()))
        }
        Some(Ok(targets)) => (targets, None),
        Some(Err(error)) => (Targets::new().with_default(default), Some(error.to_string())),
        None => (Targets::new().with_default(default), None),
    }
}

/// Logs one event.
pub(in crate::driver) fn event(labels: &Labels, event: &LogEvent) {
    // The field is not named `message`: the subscriber writes that one unescaped.
    let mts_id = event.message.as_deref().map(shown::line);
    let operator = event.operator.as_ref().map(|by| shown::line(&by.0));
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
                operator = operator.as_deref(),
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
            message: Some("[/PRMD=A/C=XX;a\n2026 ERROR forged\u{1b}[2J\u{85}]".to_owned()),
            detail: "sent \"a\"\r\nERROR \u{9b}2J".to_owned(),
            ..LogEvent::new(LogLevel::Info, Kind::Received)
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

    #[test]
    fn rust_log_selects_by_target_and_an_invalid_one_changes_nothing() {
        let shows =
            |text, target, level| filter(text, LevelFilter::INFO).0.would_enable(target, &level);
        assert!(shows(None, "mta::event", tracing::Level::INFO));
        assert!(!shows(None, "mta::event", tracing::Level::DEBUG));
        assert!(shows(Some("warn,mta=debug"), "mta::event", tracing::Level::DEBUG));
        assert!(!shows(Some("warn,mta=debug"), "store", tracing::Level::INFO));
        assert!(shows(Some("mta=loud"), "mta::event", tracing::Level::INFO));
        assert!(filter(Some("mta=loud"), LevelFilter::INFO).1.is_some());
        assert!(filter(Some(""), LevelFilter::INFO).1.is_none());
        for text in ["warning", "info,", "verbose", "[", "store=debug"] {
            assert!(shows(Some(text), "mta::event", tracing::Level::ERROR), "{text}");
        }
        assert!(filter(Some("warning"), LevelFilter::INFO).1.is_some());
    }
}
