//! `mta mailbox`: what waits for users, and what their mailboxes in the message store hold.

use super::error::RequestError;
use super::output::{Daemon, agrees, dash, print, print_error, print_json, table, trimmed};
use super::{DONE, FAILED, WRONG, argument};
use crate::admin::{Answer, ItemStatus, Request, ask};
use base::shown::line;
use base::{Precedence, quantity};
use node::mailbox_view::{MailboxView, RegisteredView};
use node::status::Status;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Lists mailboxes, and deletes what they hold. A user has one of two kinds: what waits for a user of P3 is in
/// the queue (`mta queue list --recipient ADDRESS`); what comes for a user of P7 is in the message store.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Lists all mailboxes: what waits in the queue, what the message store holds. Also those of users who
    /// were removed.
    List,
    /// Shows all that is known of a mailbox: what waits and what is stored, who is bound, what its user has
    /// registered, and what he holds back now.
    Show {
        /// The user's O/R address.
        #[arg(value_name = "ADDRESS", value_parser = argument::address)]
        address: String,
    },
    /// Deletes items of a mailbox in the message store. Nobody gets a report. Asks first.
    Purge {
        /// The user's O/R address, also of one who was removed.
        #[arg(value_name = "ADDRESS", value_parser = argument::address)]
        address: String,
        /// Only items of this status.
        #[arg(long, value_enum)]
        status: Option<ItemStatus>,
        /// Only items that are there for this time or longer: 90s, 30min, 2h or 7d.
        #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
        older: Option<Duration>,
        /// Only count them.
        #[arg(long)]
        dry_run: bool,
        /// Ask nothing.
        #[arg(long)]
        yes: bool,
    },
    /// Removes what a user has registered over P3: redirection, limits and holds of deliveries.
    Unregister {
        /// The user's O/R address.
        #[arg(value_name = "ADDRESS", value_parser = argument::address)]
        address: String,
    },
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let Some(socket) = arguments.daemon.socket() else { return WRONG };
    let json = arguments.json;
    let done = match &arguments.action {
        Action::List => list(&socket, json),
        Action::Show { address } => show_one(&socket, address, json),
        Action::Purge { address, status, older, dry_run, yes } => {
            let what = Items { address, status: *status, older: older.unwrap_or_default() };
            purge(&socket, &what, *dry_run, *yes, json)
        }
        Action::Unregister { address } => unregister(&socket, address, json),
    };
    done.unwrap_or_else(|error| {
        print_error(&error.to_string());
        FAILED
    })
}

// ----- list ------------------------------------------------------------------------------------------------

fn list(socket: &Path, json: bool) -> Result<u8, RequestError> {
    let status = match ask(socket, &Request::Mailboxes)? {
        Answer::Status(status) => status,
        other => return Err(other.into()),
    };
    if json {
        print_json(&serde_json::json!({ "mailboxes": status.mailboxes }));
    } else {
        print(&to_text(&status));
    }
    Ok(DONE)
}

fn to_text(status: &Status) -> String {
    if status.mailboxes.is_empty() {
        return "there is no mailbox: `mta user add` adds one\n".to_owned();
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

// ----- show ------------------------------------------------------------------------------------------------

fn show_one(socket: &Path, address: &str, json: bool) -> Result<u8, RequestError> {
    match ask(socket, &Request::Mailbox { mailbox: address.to_owned() })? {
        Answer::Mailbox(view) if json => print_json(&*view),
        Answer::Mailbox(view) => print(&in_full(&view)),
        other => return Err(other.into()),
    }
    Ok(DONE)
}

/// Columns of a line.
const WIDTH: usize = 80;

/// Columns before a value.
const BEFORE: usize = 14;

/// One fact a line. What does not fit goes on below.
fn in_full(view: &MailboxView) -> String {
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

// ----- purge -----------------------------------------------------------------------------------------------

struct Items<'a> {
    address: &'a str,
    status: Option<ItemStatus>,
    older: Duration,
}

impl Items<'_> {
    fn request(&self, try_only: bool) -> Request {
        Request::Purge {
            mailbox: self.address.to_owned(),
            status: self.status,
            older: self.older.as_secs(),
            try_only,
        }
    }
}

fn asked(socket: &Path, request: &Request) -> Result<Option<u64>, RequestError> {
    match ask(socket, request)? {
        Answer::Purged(count) => Ok(count),
        other => Err(other.into()),
    }
}

fn purge(
    socket: &Path,
    what: &Items<'_>,
    dry_run: bool,
    yes: bool,
    json: bool,
) -> Result<u8, RequestError> {
    if dry_run || !yes {
        let count = asked(socket, &what.request(true))?;
        if dry_run {
            return Ok(show(what, count, true, json));
        }
        if !agreed(what, count) {
            return Ok(WRONG);
        }
    }
    let count = asked(socket, &what.request(false))?;
    Ok(show(what, count, false, json))
}

fn items(count: Option<u64>) -> String {
    match count {
        Some(1) => "1 item".to_owned(),
        Some(count) => format!("{count} items"),
        None => "items".to_owned(),
    }
}

/// Asks whether it is meant. Who cannot be asked has to write --yes.
fn agreed(what: &Items<'_>, count: Option<u64>) -> bool {
    let what = format!("{} of {} to be deleted", items(count), what.address);
    agrees(
        &format!("{what}, and nobody gets a report."),
        &format!("{what}: write --yes (--dry-run counts them)"),
    )
}

fn show(what: &Items<'_>, count: Option<u64>, dry_run: bool, json: bool) -> u8 {
    if json {
        print_json(&serde_json::json!({
            "mailbox": what.address, "items": count, "dry_run": dry_run,
        }));
        return DONE;
    }
    print(&match (count, dry_run) {
        (Some(_), true) => format!("{} would be deleted; nothing was (--dry-run)\n", items(count)),
        (Some(_), false) => format!("{} deleted\n", items(count)),
        (None, true) => "they are being counted still: ask again later\n".to_owned(),
        (None, false) => {
            "they are being deleted: `mta mailbox list` shows how many are left\n".to_owned()
        }
    });
    DONE
}

// ----- unregister ------------------------------------------------------------------------------------------

fn unregister(socket: &Path, address: &str, json: bool) -> Result<u8, RequestError> {
    match ask(socket, &Request::Unregister { mailbox: address.to_owned() })? {
        Answer::Operated(_) if json => print_json(&serde_json::json!({ "mailbox": address })),
        Answer::Operated(_) => print(&format!("nothing is registered for {address} now\n")),
        other => return Err(other.into()),
    }
    Ok(DONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::mailbox_view::ControlsView;
    use node::status::{MailboxStatus, StoredStatus};

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
