//! Rows of the queue.

use crate::clock;
use node_api::queue::page::QueuePage;
use node_api::queue::row::QueueRow;
use tables::{age, dash, table, trimmed};

/// Rows of the queue as a table.
#[must_use]
pub fn to_text(page: &QueuePage) -> String {
    let mut rows = table([
        "ENTRY",
        "TO",
        "PRECEDENCE",
        "BYTES",
        "AGE",
        "STATE",
        "ORIGINATOR",
        "MTS IDENTIFIER",
    ]);
    rows.keep_together(2);
    for row in &page.entries {
        rows.add_row([
            row.entry.clone(),
            next_hop(row),
            row.precedence.to_string(),
            row.size.to_string(),
            age(row.age_seconds) + if row.overdue { " !" } else { "" },
            state(row),
            row.originator.clone().unwrap_or_else(dash),
            row.mts_id.clone().unwrap_or_else(dash),
        ]);
    }
    let mut text = match (page.entries.is_empty(), page.reading_queue) {
        (true, true) => String::new(),
        (true, false) => "nothing waits\n".to_owned(),
        (false, _) => trimmed(&rows),
    };
    if page.reading_queue {
        text.push_str("the queue is still being read: entries are missing here\n");
    }
    if page.next.is_some() || page.more {
        text.push_str("there is more: --limit N shows N entries, --peer and --precedence choose\n");
    }
    if page.entries.iter().any(|row| row.overdue) {
        text.push_str("! waits for longer than its precedence allows\n");
    }
    text
}

/// Next hop of the entry.
fn next_hop(row: &QueueRow) -> String {
    let to = row.peer.clone().or_else(|| row.mailbox.clone()).unwrap_or_else(dash);
    if row.removed { to + " (removed)" } else { to }
}

/// State, with its cause or progress.
fn state(row: &QueueRow) -> String {
    if let Some(node) = &row.node {
        return format!("at node {node}");
    }
    let words = row.state.replace('_', " ");
    if let Some(why) = &row.held_because {
        return format!("{words}: {why}");
    }
    if let Some(until) = &row.delayed_until {
        // Whole seconds: a row is not to be wider than a terminal.
        let seconds = until.split_once('.').map_or(until.as_str(), |(seconds, _)| seconds);
        return format!("{words} until {}Z", seconds.trim_end_matches('Z'));
    }
    if row.state == "stalled"
        && let Some(at) = &row.last_progress
    {
        let on = row.channel.as_ref().map(|channel| format!(" on {channel}")).unwrap_or_default();
        let confirmed = row.bytes_confirmed.unwrap_or(0);
        return format!("stalled{on} since {}, {confirmed} confirmed", clock(at));
    }
    let rate = row.rate_kbit_s.map(|kbit_s| format!(", {}", crate::rate(kbit_s)));
    match (&row.channel, row.bytes_confirmed) {
        (Some(channel), Some(done)) => {
            format!("{words} on {channel}, {done} confirmed{}", rate.unwrap_or_default())
        }
        (Some(channel), None) => format!("{words} on {channel}"),
        (None, _) => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Precedence;

    fn row(entry: &str, state: &str) -> QueueRow {
        let fields = serde_json::json!({
            "entry": entry, "state": state, "peer": "act", "precedence": "routine", "size": 10_000,
            "mts_id": "[/C=IT/ADMD=NET/PRMD=NAPLES/;1.42]",
            "originator": "/C=IT/ADMD=NET/PRMD=NAPLES/S=OPS/",
            "accepted": "", "age_seconds": 12.34, "failures": 0, "overdue": false,
        });
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_page_as_text() {
        let held = QueueRow {
            held_because: Some("flash e7 is in transfer".to_owned()),
            overdue: true,
            ..row("e8", "held")
        };
        let until = Some("2026-01-02T03:04:05.000000Z".to_owned());
        let delayed =
            QueueRow { delayed_until: until, age_seconds: 7_260.0, ..row("e9", "delayed") };
        let sending = QueueRow {
            precedence: Precedence::Flash,
            channel: Some("flash".to_owned()),
            bytes_confirmed: Some(65_536),
            rate_kbit_s: Some(511.6),
            ..row("e7", "in_transfer")
        };
        let stalled = QueueRow {
            precedence: Precedence::Override,
            channel: Some("flash".to_owned()),
            bytes_confirmed: Some(0),
            last_progress: Some("2026-01-02T03:04:05.678901Z".to_owned()),
            ..row("e6", "stalled")
        };
        let bare = QueueRow { mts_id: None, originator: None, ..row("e10", "held_by_operator") };
        let mut page = QueuePage {
            entries: vec![stalled, sending, held, delayed, bare],
            ..QueuePage::default()
        };
        insta::assert_snapshot!(to_text(&page));
        page.entries.clear();
        assert_eq!(to_text(&page), "nothing waits\n");
        page.reading_queue = true;
        assert_eq!(to_text(&page), "the queue is still being read: entries are missing here\n");
    }
}
