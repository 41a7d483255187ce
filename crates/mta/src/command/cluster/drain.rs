//! `mta drain`: a node gives its shards to the others, in order, and ends.

use super::of_site;
use crate::admin::{Answer, AskError, DrainOrder, Request, ask};
use crate::command::error::RequestError;
use crate::command::output::{Daemon, print, print_error};
use crate::command::{DONE, FAILED, PARTLY, WRONG};
use base::quantity;
use node::status::SiteStatus;
use std::path::Path;
use std::thread::park_timeout;
use std::time::Duration;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);

/// How long the end of the daemon is waited for besides.
const ENDING: Duration = Duration::from_mins(2);

/// Names of shards in a line.
const SHOWN: usize = 5;

/// Gives the shards of this node to the others, in order, and then ends the daemon: transfers come to their end, others
/// take the peers and mailboxes. From the order on this node accepts no connection, so that clients go to the others.
/// SIGTERM ends it at once.
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not all was given away in time.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,
    /// Stay without shards, until `mta drain --undo` or a stop.
    #[arg(long, conflicts_with = "undo")]
    stay: bool,
    /// Take shards again.
    #[arg(long)]
    undo: bool,
    /// The longest wait for transfers, and for users who are bound: then the daemon ends as on SIGTERM, or with --stay
    /// the command does.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::duration)]
    wait: Duration,
}

pub(in crate::command) fn run(arguments: &Arguments) -> u8 {
    let Some(socket) = arguments.daemon.socket() else { return WRONG };
    let order = match arguments.undo {
        true => DrainOrder::Undo,
        false => DrainOrder::Drain { stay: arguments.stay },
    };
    match ask(&socket, &Request::Drain { order }).map_err(RequestError::from) {
        Ok(Answer::Done(_)) if arguments.undo => {
            print("this node takes shards again: they come to it one after the other\n");
            DONE
        }
        Ok(Answer::Done(_)) => follow(&socket, arguments),
        Ok(Answer::Error(why)) => failed(&why),
        Ok(other) => failed(&RequestError::from(other).to_string()),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> u8 {
    print_error(why);
    FAILED
}

/// Shows what is left until nothing is.
fn follow(socket: &Path, arguments: &Arguments) -> u8 {
    let (mut waited, mut last, mut name) = (Duration::ZERO, None, String::new());
    loop {
        match of_site(socket) {
            Ok((site, _)) if site.drained && arguments.stay => {
                let node = &site.node;
                print(&format!(
                    "node {node} has no shard left and takes none: mta drain --undo ends that\n"
                ));
                return DONE;
            }
            Ok((site, true)) => return ends(socket, &site.node),
            Ok((site, false)) => {
                name.clone_from(&site.node);
                if last.as_ref() != Some(&site.shards) {
                    print(&left(&site));
                    last = Some(site.shards.clone());
                }
                if waited >= arguments.wait {
                    return in_vain(socket, arguments, &site);
                }
            }
            Err(error) if is_over(&error) => return ended(&name),
            Err(error) => return failed(&error.to_string()),
        }
        park_timeout(LOOK);
        waited += LOOK;
    }
}

fn left(site: &SiteStatus) -> String {
    let node = &site.node;
    let shown: Vec<&str> = site.shards.iter().take(SHOWN).map(String::as_str).collect();
    match site.shards.len() {
        0 => format!("node {node}: no shard is left\n"),
        count if count > SHOWN => {
            format!("node {node}: {count} shards are left: {} and others\n", shown.join(", "))
        }
        1 => format!("node {node}: 1 shard is left: {}\n", shown.join(", ")),
        count => format!("node {node}: {count} shards are left: {}\n", shown.join(", ")),
    }
}

/// Not all was given away in time.
fn in_vain(socket: &Path, arguments: &Arguments, site: &SiteStatus) -> u8 {
    let seconds = arguments.wait.as_secs();
    print_error(&format!(
        "not all is given away after {seconds} s, but users are bound or transfers go on: {}",
        left(site).trim_end()
    ));
    if let Some(why) = &site.no_commits {
        print_error(&format!(
            "{why}: the others can take nothing now. The node goes on giving its shards away, and ends when it can: `mta \
             drain --undo` ends that, SIGTERM ends the node at once"
        ));
        return PARTLY;
    }
    if arguments.stay {
        print_error("the node goes on giving them away: mta drain --undo ends that");
        return PARTLY;
    }
    match ask(socket, &Request::Stop).map_err(RequestError::from) {
        Ok(_) => match ends(socket, &site.node) {
            DONE => PARTLY,
            other => other,
        },
        Err(error) if is_over(&error) => ended(&site.node),
        Err(error) => failed(&error.to_string()),
    }
}

/// The daemon ends: waits until it has.
fn ends(socket: &Path, node: &str) -> u8 {
    print(&format!("node {node} ends\n"));
    let mut waited = Duration::ZERO;
    while waited < ENDING {
        match of_site(socket) {
            Err(error) if is_over(&error) => return ended(node),
            _ => park_timeout(LOOK),
        }
        waited += LOOK;
    }
    failed(&format!("node {node} has not ended after {} s: see its log", ENDING.as_secs()))
}

fn ended(node: &str) -> u8 {
    print(&format!("node {node} has ended\n"));
    DONE
}

/// Whether nobody answers any more.
fn is_over(error: &RequestError) -> bool {
    matches!(error, RequestError::Ask(AskError::NoDaemon { .. } | AskError::Closed { .. }))
}
