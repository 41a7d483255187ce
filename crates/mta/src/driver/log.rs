//! The node's events as structured log lines, and where lines go.

use super::labels::Labels;
use node::event::{Event, Level};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For reading.
    Text,
}

/// Sends log lines to standard error. `RUST_LOG` chooses; without it `info`, or `debug`.
pub fn start(format: LogFormat, verbose: bool) {
    let default = if verbose { "debug" } else { "info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let color = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(color);
    // Where standard error is gone, to complain there would be a panic.
    let lines = lines.with_writer(std::io::stderr).log_internal_errors(false);
    // Once a process: a second call changes nothing.
    let _ = match format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Text => lines.try_init(),
    };
}

/// Logs one event.
pub(super) fn event(labels: &Labels, event: &Event) {
    macro_rules! log {
        ($level:ident) => {
            tracing::$level!(
                target: "mta::event",
                event = event.kind.name(),
                association = event.association.map(|a| a.to_string()),
                channel = event.channel.map(|c| labels.channel(c)),
                message = event.message.as_deref(),
                entry = event.entry.map(|e| e.to_string()),
                precedence = event.precedence.map(|p| p.name()),
                detail = (!event.detail.is_empty()).then_some(event.detail.as_str()),
            )
        };
    }
    match event.level {
        Level::Info => log!(info),
        Level::Warning => log!(warn),
        Level::Error => log!(error),
    }
}
