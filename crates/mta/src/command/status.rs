//! `mta status`: shows the daemon's status, once or periodically.

use super::error::RequestError;
use super::output::{Daemon, print, print_error, print_json};
use super::watch::{self, Every};
use super::{DONE, FAILED, PARTLY, WRONG};
use crate::admin::{Answer, Request, ask};
use node::status::Status;
use status_text::to_text;
use std::path::Path;

/// Shows what the daemon is doing.
///
/// Exit codes: 0 shown, 1 no daemon answers, 2 wrong usage or configuration, 3 it is a node of a site and has no lease: it
/// takes and sends nothing.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,
    /// Print one JSON object; with --watch, one object per line.
    #[arg(long)]
    json: bool,
    /// Repeat every SECONDS, 0.1 to 3600, until Ctrl-C: in place on a terminal, otherwise as
    /// consecutive blocks.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2")]
    watch: Option<Every>,
    /// End after N repetitions.
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let Some(socket) = arguments.daemon.socket() else { return WRONG };
    if let Some(every) = arguments.watch {
        let json = arguments.json;
        let look = move || {
            let status = status(&socket)?;
            Ok(if json { one_line(&status) } else { to_text(&status) })
        };
        return watch::run(every, arguments.count, arguments.json, look);
    }
    match status(&socket) {
        Ok(status) => {
            match arguments.json {
                true => print_json(&status),
                false => print(&to_text(&status)),
            }
            let has_lease = status.site.as_ref().is_none_or(|site| site.lease_holds);
            if has_lease { DONE } else { PARTLY }
        }
        Err(error) => {
            print_error(&error.to_string());
            FAILED
        }
    }
}

fn status(socket: &Path) -> Result<Box<Status>, RequestError> {
    match ask(socket, &Request::Status)? {
        Answer::Status(status) => Ok(status),
        Answer::Error(why) => Err(RequestError::RefusedOn { socket: socket.to_owned(), why }),
        other => Err(other.into()),
    }
}

fn one_line(status: &Status) -> String {
    serde_json::to_string(status)
        .map_or_else(|error| error.to_string(), |line| base::shown::json(&line).into_owned() + "\n")
}
