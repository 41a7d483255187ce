//! `mta mailbox`: what waits for users, and what their mailboxes in the message store hold.

use super::error::RequestError;
use super::output::{Daemon, agrees, print, print_error, print_json};
use super::{DONE, WRONG, argument};
use crate::admin::{Answer, ItemStatus, Request, ask};
use base::quantity;
use status_text::{mailbox_to_text, mailboxes_to_text};
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
        error.code()
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
        print(&mailboxes_to_text(&status));
    }
    Ok(DONE)
}

// ----- show ------------------------------------------------------------------------------------------------

fn show_one(socket: &Path, address: &str, json: bool) -> Result<u8, RequestError> {
    match ask(socket, &Request::Mailbox { mailbox: address.to_owned() })? {
        Answer::Mailbox(view) if json => print_json(&*view),
        Answer::Mailbox(view) => print(&mailbox_to_text(&view)),
        other => return Err(other.into()),
    }
    Ok(DONE)
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
