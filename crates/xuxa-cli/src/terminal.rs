//! The way to standard output and standard error. Names, subjects and texts are what others chose:
//! no terminal obeys what is in them.

use base::shown;
use serde::Serialize;
use std::io::Write as _;

/// Prints lines to standard output; a closed pipe is no matter.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{}", shown::text(text));
}

/// Prints one JSON object.
pub(crate) fn print_json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => _ = writeln!(std::io::stdout().lock(), "{}", shown::json(&text)),
        Err(error) => complain(&format!("this cannot be shown as JSON: {error}")),
    }
}

/// Prints to standard error.
pub(crate) fn complain(text: &str) {
    note(&format!("xuxa: {text}"));
}

/// Prints to standard error what is no complaint.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", shown::text(text));
}
