//! Mailboxes: a table of all, and one in full.

use base::Precedence;
use base::shown::line;
use node_api::api::mailbox_view::{MailboxView, RegisteredView};
use status::Status;
use std::collections::BTreeMap;
use tables::{dash, table, trimmed};

/// A line for each mailbox.
#[must_use]
pub fn to_text(status: &Status) -> String {
    if status.mailboxes.is_empty() {
        return "no mailbox holds anything here: `mta user list` shows the users, `mta user add` adds one\n".to_owned();
    }
    let mut rows = table(["MAILBOX", "WAITS", "ITEMS", "OCTETS", "BOUND"]);
    for mailbox in &status.mailboxes {
        let (items, octets) = match (&mailbox.stored, mailbox.unopened) {
            (Some(stored), _) => {
                (stored.items.values().sum::<u64>().to_string(), stored.octets.to_string())
            }
            (None, true) => ("unread".to_owned(), "unread".to_owned()),
            (None, false) => (dash(), dash()),
        };
        let user = if mailbox.former { " (removed)" } else { "" };
        rows.add_row([
            format!("{}{user}", mailbox.address),
            mailbox.queued.values().sum::<u64>().to_string(),
            items,
            octets,
            mailbox.bound.to_string(),
        ]);
    }
    let mut text = trimmed(&rows);
    if status.mailboxes.iter().any(|mailbox| mailbox.unopened) {
        text.push_str("unread: the store has not opened it; see the log\n");
    }
    text
}

/// Columns of a line.
const WIDTH: usize = 80;

/// Columns before a value.
const BEFORE: usize = 14;

/// One fact a line. What does not fit goes on below.
#[must_use]
pub fn in_full(view: &MailboxView) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: &str| {
        let mut rest: Vec<char> = line(value).chars().collect();
        let mut name = name;
        loop {
            let mut end = rest.len().min(WIDTH - BEFORE);
            if end < rest.len() {
                // At a space, where there is one.
                let space = rest.iter().take(end).rposition(|c| *c == ' ');
                end = space.map_or(end, |space| space + 1);
            }
            let next = rest.split_off(end);
            let value: String = rest.into_iter().collect();
            text.push_str(&format!("{name:<BEFORE$}{}\n", value.trim_end()));
            (name, rest) = ("", next);
            if rest.is_empty() {
                break;
            }
        }
    };
    let by_precedence = |counts: &BTreeMap<Precedence, u64>| {
        let counts = counts.iter().rev().filter(|(_, count)| **count > 0);
        let counts = counts.map(|(precedence, count)| format!("{count} {precedence}"));
        match counts.collect::<Vec<_>>() {
            none if none.is_empty() => "nothing".to_owned(),
            some => some.join(", "),
        }
    };
    let status = &view.status;
    let removed = if status.former { " (removed)" } else { "" };
    put("mailbox", &format!("{}{removed}", status.address));
    put("bound", &status.bound.to_string());
    put("waits", &by_precedence(&status.queued));
    match &status.stored {
        Some(stored) => {
            put("stored", &by_precedence(&stored.items));
            put("", &format!("{} octets", stored.octets));
        }
        None if status.unopened => {
            put("stored", "unread: the store has not opened it; see the log");
        }
        None => {}
    }
    if let Some(controls) = &view.controls {
        let from = if controls.registered { "registered" } else { "delivery-control" };
        for what in &controls.holds_back {
            put("holds now", &format!("{what} ({from})"));
        }
    }
    let registered = &view.registered;
    if *registered == RegisteredView::default() {
        put("registered", "nothing");
    }
    if let Some(to) = &registered.redirected_to {
        put("redirected to", to);
    }
    if let Some(most) = registered.max_content_length {
        put("takes", &format!("contents up to {most} octets; longer ones are reported"));
    }
    if let Some(types) = &registered.content_types {
        put("takes", &format!("content types {}; others are reported", types.join(", ")));
    }
    for what in &registered.holds_back {
        put("registered", &format!("from each bind on he holds back {what}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_api::api::mailbox_view::ControlsView;
    use status::{MailboxStatus, StoredStatus};

    #[test]
    fn a_mailbox_in_full_fits_80_columns() {
        let address =
            "/c=it/admd=net/prmd=naples/o=headquarters/ou1=communications/s=watchkeeper/g=giovanna";
        let view = MailboxView {
            status: MailboxStatus {
                address: address.to_owned(),
                queued: [(Precedence::Routine, 12), (Precedence::Flash, 1)].into(),
                bound: 1,
                stored: Some(StoredStatus {
                    items: [(Precedence::Routine, 3)].into(),
                    octets: 4_096,
                }),
                ..MailboxStatus::default()
            },
            registered: RegisteredView {
                redirected_to: Some("/S=LOG/PRMD=NAPLES/ADMD=NET/C=IT".to_owned()),
                max_content_length: Some(1_000_000),
                content_types: Some(vec!["22".to_owned(), "1.3.26.0.4406.0.4.1".to_owned()]),
                holds_back: vec!["what is below normal".to_owned()],
            },
            controls: Some(ControlsView {
                registered: false,
                holds_back: vec!["what is below urgent".to_owned(), "reports".to_owned()],
            }),
        };
        let text = in_full(&view);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let (first, rest) = address.split_at(WIDTH - BEFORE);
        for line in [
            &format!("mailbox       {first}\n{:BEFORE$}{rest}\n", ""),
            "\nbound         1\n",
            "\nwaits         1 flash, 12 routine\n",
            "\nstored        3 routine\n              4096 octets\n",
            "\nholds now     what is below urgent (delivery-control)\n",
            "\nholds now     reports (delivery-control)\n",
            "\nredirected to /S=LOG/PRMD=NAPLES/ADMD=NET/C=IT\n",
            "\ntakes         contents up to 1000000 octets; longer ones are reported\n",
            "\nregistered    from each bind on he holds back what is below normal\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(in_full(&MailboxView::default()).contains("registered    nothing\n"));
    }

    #[test]
    fn mailboxes_as_text() {
        let items = [(Precedence::Flash, 2), (Precedence::Routine, 40)];
        let stored = Some(StoredStatus { items: items.into(), octets: 81_920 });
        let mailbox = |address: &str| MailboxStatus {
            address: format!("/c=it/admd=net/prmd=naples/s={address}"),
            ..MailboxStatus::default()
        };
        let status = Status {
            mailboxes: vec![
                MailboxStatus {
                    queued: [(Precedence::Routine, 12)].into(),
                    bound: 1,
                    ..mailbox("ops")
                },
                MailboxStatus { stored, ..mailbox("log") },
                MailboxStatus { unopened: true, former: true, ..mailbox("old") },
            ],
            ..Status::default()
        };
        insta::assert_snapshot!(to_text(&status));
        assert!(to_text(&Status::default()).contains("mta user add"));
    }
}
