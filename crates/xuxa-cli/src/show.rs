//! What a person reads: aligned tables; and the forms shared with JSON.

use crate::receive::Received;
use crate::send::{Outcome, Sent};
use comfy_table::{CellAlignment, Table, presets};
use p1::content_type::ContentType;
use p1::flags::Priority;
use p772::MessageType;
use std::time::Duration;

/// Lower-case hexadecimal.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|b| format!("{b:02x}")).collect()
}

/// Thousands of bits of content a second.
pub(crate) fn kbit_s(octets: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64().max(1e-6);
    octets as f64 * 8.0 / 1e3 / seconds
}

pub(crate) fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::NonUrgent => "non-urgent",
        Priority::Normal => "normal",
        Priority::Urgent => "urgent",
    }
}

pub(crate) fn content_type(kind: &ContentType) -> String {
    match kind {
        _ if *kind == ContentType::p772() => "P772".to_owned(),
        ContentType::BuiltIn(2) => "P2".to_owned(),
        ContentType::BuiltIn(22) => "P22".to_owned(),
        ContentType::BuiltIn(number) => number.to_string(),
        ContentType::Extended(oid) => oid.to_string(),
    }
}

/// As `xuxa send --message-type` takes it; kinds without a word are numbers.
pub(crate) fn message_type(message_type: &MessageType) -> String {
    let kind = match message_type.kind {
        MessageType::EXERCISE => "exercise".to_owned(),
        MessageType::OPERATION => "operation".to_owned(),
        MessageType::PROJECT => "project".to_owned(),
        MessageType::DRILL => "drill".to_owned(),
        other => other.to_string(),
    };
    match &message_type.identifier {
        Some(name) => format!("{kind}={name}"),
        None => kind,
    }
}

/// A size as people write it, decimal.
pub(crate) fn size(octets: u64) -> String {
    for (unit, factor) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)] {
        if octets >= factor {
            return format!("{:.3}", octets as f64 / factor as f64)
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
                + " "
                + unit;
        }
    }
    format!("{octets} B")
}

/// A time in milliseconds, or a dash where there is none.
pub(crate) fn ms(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))
}

/// An aligned table; these columns to the right.
pub(crate) fn table(header: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The messages accepted.
pub(crate) fn sent(lines: &[Sent]) -> Table {
    let mut table = table(&["MTS identifier", "precedence", "size", "time", "kbit/s"], &[2, 3, 4]);
    for line in lines {
        table.add_row([
            line.mts_identifier.clone(),
            line.precedence.to_string(),
            size(line.size),
            format!("{:.1} ms", line.submit_ms),
            format!("{:.0}", line.kbit_s),
        ]);
    }
    table
}

/// A line for each message that was not accepted, what to do about it, and how many there are.
pub(crate) fn unsent(outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for m in &outcome.in_doubt {
        let (id, dtg, reason) = (&m.content_identifier, &m.dtg, &m.reason);
        lines.push(format!(
            "in doubt: no answer to submission {id} ({reason}); send the same again with \
             --content-identifier {id} --dtg {dtg}"
        ));
    }
    for (what, messages) in [("refused", &outcome.refused), ("not sent", &outcome.not_sent)] {
        lines.extend(
            messages.iter().map(|m| {
                format!("{what}: {}, {}: {}", m.content_identifier, size(m.size), m.reason)
            }),
        );
    }
    if !lines.is_empty() {
        lines.push(format!(
            "{} accepted, {} in doubt, {} refused, {} not sent",
            outcome.messages.len(),
            outcome.in_doubt.len(),
            outcome.refused.len(),
            outcome.not_sent.len()
        ));
    }
    lines.extend(outcome.unbind.iter().map(|error| format!("after the last answer: {error}")));
    lines
}

/// The beginnings of short texts, under their identifiers.
pub(crate) fn texts(lines: &[Received]) -> String {
    let mut out = String::new();
    for line in lines {
        if let Received::Message(m) = line
            && let Some(text) =
                m.text.as_deref().filter(|t| !t.is_empty() && t.len() as u64 == m.size)
        {
            out.push_str(&format!(
                "\n{}\n  {}\n",
                m.mts_identifier,
                text.trim_end().replace('\n', "\n  ")
            ));
        }
    }
    out
}

/// The messages and reports received.
pub(crate) fn received(lines: &[Received]) -> Table {
    let header =
        ["what", "from, or about", "precedence", "size", "time", "kbit/s", "subject, or outcome"];
    let mut table = table(&header, &[3, 4, 5]);
    for line in lines {
        match line {
            Received::Message(m) => {
                let what = if m.duplicate { "message (again)" } else { "message" };
                table.add_row([
                    what.to_owned(),
                    m.originator.clone(),
                    m.precedence.map_or_else(|| m.priority.clone(), |p| p.to_string()),
                    size(m.size),
                    format!("{:.1} ms", m.receive_ms),
                    format!("{:.0}", m.kbit_s),
                    m.subject.clone().unwrap_or_default(),
                ]);
            }
            Received::Report(r) => {
                for line in &r.recipients {
                    let outcome = if line.delivered {
                        "delivered".to_owned()
                    } else {
                        let reason = line.reason.clone().unwrap_or_default();
                        let diagnostic = line.diagnostic.clone().unwrap_or_default();
                        format!("not delivered: {reason}, {diagnostic}")
                    };
                    table.add_row([
                        "report".to_owned(),
                        line.recipient.clone(),
                        String::new(),
                        String::new(),
                        String::new(),
                        String::new(),
                        outcome,
                    ]);
                }
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates_read_well() {
        assert_eq!(size(10_000_000), "10 MB");
        assert_eq!(size(1_500), "1.5 kB");
        assert_eq!(size(999), "999 B");
        assert!((kbit_s(1_000, Duration::from_secs(1)) - 8.0).abs() < 1e-9);
        assert_eq!(hex(&[0, 0xab]), "00ab");
        let exercise = MessageType { kind: 0, identifier: Some("STEADY".to_owned()) };
        assert_eq!(message_type(&exercise), "exercise=STEADY");
        assert_eq!(message_type(&MessageType { kind: 130, identifier: None }), "130");
    }
}
