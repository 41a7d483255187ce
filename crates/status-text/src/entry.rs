//! One row of the queue, with all that is known of it.

use base::shown::line;
use node_api::queue::row::QueueRow;
use serde_json::Value;
use tables::{width, wrapped};

/// One field per line, with the names of the JSON; of a list one value per line.
#[must_use]
pub fn to_text(row: &QueueRow) -> String {
    let mut text = String::new();
    let width = width().unwrap_or(usize::MAX);
    let mut put = |name: &str, value: &str| {
        let lines = wrapped(&line(value), width, 18, usize::MAX);
        for (number, line) in lines.iter().enumerate() {
            match number {
                0 => text.push_str(&format!("{name:<17} {}\n", line.trim_start())),
                _ => text.push_str(&format!("{line}\n")),
            }
        }
    };
    let fields = serde_json::to_value(row).unwrap_or_default();
    for (name, value) in fields.as_object().into_iter().flatten() {
        match value {
            Value::Array(values) => {
                for (number, value) in values.iter().enumerate() {
                    put(if number == 0 { name } else { "" }, &of_list(value));
                }
            }
            Value::String(value) => put(name, value),
            value => put(name, &value.to_string()),
        }
    }
    text.push('\n');
    text
}

/// A value of a list: a text, or an address with its state.
fn of_list(value: &Value) -> String {
    let field = |name: &str| value.get(name).and_then(Value::as_str);
    match (value.as_str(), field("address"), field("state")) {
        (Some(text), _, _) => text.to_owned(),
        (None, Some(address), Some(state)) => format!("{address} ({state})"),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_api::queue::row::RowRecipient;

    #[test]
    fn an_entry_as_text() {
        let fields = serde_json::json!({
            "entry": "e8", "state": "ready", "peer": "act", "precedence": "flash", "size": 1_000,
            "mts_id": "[/C=IT/ADMD=NET/PRMD=NAPLES/;1.42]", "kind": "message",
            "originator": "/C=IT/ADMD=NET/PRMD=NAPLES/S=OPS/",
            "accepted": "2026-01-02T03:04:05.000000Z", "age_seconds": 12.5, "failures": 2,
            "overdue": false, "other_recipients": 1, "content_id": "ref 1",
            "waits_for": ["channel flash: refused: wrong password, since 10:02", "and\nmore"],
            "last_error": "the association ended", "last_error_at": "2026-01-02T03:04:09.000000Z",
        });
        let mut row: QueueRow = serde_json::from_value(fields).unwrap();
        let recipient = |name: &str| RowRecipient {
            address: format!("/C=BE/ADMD=NET/S={name}/"),
            state: "waiting".to_owned(),
        };
        row.recipients = ["ONE", "TWO"].map(recipient).to_vec();
        insta::assert_snapshot!(to_text(&row));
    }
}
