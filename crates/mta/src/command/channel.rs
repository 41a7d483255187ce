//! `mta channel`: opens a channel now, ends its associations, disables and enables it.

use super::error::RequestError;
use super::output::{Daemon, print, print_error, print_json};
use super::{DONE, FAILED, PARTLY, WRONG};
use crate::admin::{Answer, Request, ask};
use node::channel_order::{ChannelOrder, ChannelOutcome, TransferInProgress};
use node::connect::ConnectOutcome;
use node::status::{ChannelStatus, Status};
use serde::Serialize;
use status_text::clock;
use std::fmt::Write as _;
use std::path::Path;

/// Controls one channel.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: ChannelAction,
}

#[derive(Debug, clap::Subcommand)]
enum ChannelAction {
    /// Ends the wait of a channel and opens it now, outside its hours too (for 15 minutes); retries the
    /// messages delayed by failures on it.
    Connect(Named),
    /// Ends the associations of a channel. It opens again as configured, after the first wait of
    /// `reopen`.
    Disconnect(Ending),
    /// Ends the associations of a channel and keeps it closed until it is enabled, across restarts too. Binds of
    /// the peer on it are refused as busy.
    Disable(Ending),
    /// Opens a disabled channel again, as configured.
    Enable(Named),
}

#[derive(Debug, clap::Args)]
struct Named {
    #[command(flatten)]
    daemon: Daemon,
    /// The channel, as `mta status` names it, for example act/flash.
    #[arg(value_name = "PEER/CHANNEL")]
    channel: String,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Ending {
    #[command(flatten)]
    named: Named,
    /// Abort the associations, also where a transfer stalls. Without this a transfer of ours is interrupted at its
    /// next checkpoint, and one of the peer ends first. Either is resumed later.
    #[arg(long)]
    now: bool,
}

/// The result of `connect` in JSON.
#[derive(Serialize)]
struct Shown<'a> {
    channel: &'a str,
    #[serde(flatten)]
    connected: &'a ConnectOutcome,
}

/// The result of an order in JSON.
#[derive(Serialize)]
struct Ordered<'a> {
    channel: &'a str,
    order: &'static str,
    dry_run: bool,
    #[serde(flatten)]
    outcome: &'a ChannelOutcome,
}

/// What `connect --dry-run` shows.
#[derive(Serialize)]
struct WouldConnect<'a> {
    channel: &'a str,
    dry_run: bool,
    associations: usize,
    closed: Option<&'a str>,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let (named, order) = match &arguments.action {
        ChannelAction::Connect(named) => (named, None),
        ChannelAction::Disconnect(Ending { named, now }) => {
            (named, Some((ChannelOrder::Disconnect, *now)))
        }
        ChannelAction::Disable(Ending { named, now }) => {
            (named, Some((ChannelOrder::Disable, *now)))
        }
        ChannelAction::Enable(named) => (named, Some((ChannelOrder::Enable, false))),
    };
    let Some(socket) = named.daemon.socket() else { return WRONG };
    let done = match order {
        None if named.dry_run => would_connect(&socket, named),
        None => connect(&socket, named),
        Some((order, now)) => give(&socket, named, order, now),
    };
    done.unwrap_or_else(|why| {
        print_error(&why.to_string());
        why.code()
    })
}

fn connect(socket: &Path, named: &Named) -> Result<u8, RequestError> {
    let channel = named.channel.as_str();
    match ask(socket, &Request::Connect { channel: channel.to_owned() })? {
        Answer::Connected(connected) => {
            match named.json {
                true => print_json(&Shown { channel, connected: &connected }),
                false => print(&describe(channel, &connected)),
            }
            Ok(code(&connected))
        }
        other => Err(other.into()),
    }
}

fn would_connect(socket: &Path, named: &Named) -> Result<u8, RequestError> {
    let channel = named.channel.as_str();
    let status = match ask(socket, &Request::Status)? {
        Answer::Status(status) => status,
        other => return Err(other.into()),
    };
    let Some(found) = find(&status, channel) else {
        return Err(RequestError::Refused(format!("there is no channel {channel:?}")));
    };
    let ours = |a: &&node::status::AssociationStatus| a.role == "initiator";
    let associations = found.associations.iter().filter(ours).count();
    let closed = found.closed.as_deref();
    match (named.json, associations, closed) {
        (true, ..) => print_json(&WouldConnect { channel, dry_run: true, associations, closed }),
        (_, 0, Some(closed)) => print(&format!("{channel} is closed: {closed}\n")),
        (_, 0, None) => print(&format!("{channel} would be opened\n")),
        _ => print(&format!("{channel} is open already\n")),
    }
    Ok(DONE)
}

fn find<'a>(status: &'a Status, name: &str) -> Option<&'a ChannelStatus> {
    let (peer, channel) = name.split_once('/')?;
    let peer = status.peers.iter().find(|p| p.name == peer)?;
    peer.channels.iter().find(|c| c.name == channel)
}

fn give(
    socket: &Path,
    named: &Named,
    order: ChannelOrder,
    at_once: bool,
) -> Result<u8, RequestError> {
    let Named { channel, dry_run, json, .. } = named;
    let request = Request::Order { channel: channel.clone(), order, at_once, dry_run: *dry_run };
    match ask(socket, &request)? {
        Answer::Ordered(outcome) => {
            match json {
                true => print_json(&Ordered {
                    channel,
                    order: order.name(),
                    dry_run: *dry_run,
                    outcome: &outcome,
                }),
                false => print(&ordered(channel, order, *dry_run, at_once, &outcome)),
            }
            Ok(DONE)
        }
        other => Err(other.into()),
    }
}

/// An order in words.
fn ordered(
    channel: &str,
    order: ChannelOrder,
    dry_run: bool,
    at_once: bool,
    outcome: &ChannelOutcome,
) -> String {
    let waits = !at_once && outcome.in_transfer > 0;
    let done = match (order, outcome.changed, dry_run) {
        (ChannelOrder::Disable, true, false) => "is disabled",
        (ChannelOrder::Disable, true, true) => "would be disabled",
        (ChannelOrder::Disable, false, _) => "was disabled already",
        (ChannelOrder::Enable, true, false) => "is enabled",
        (ChannelOrder::Enable, true, true) => "would be enabled",
        (ChannelOrder::Enable, false, _) => "was not disabled",
        (ChannelOrder::Disconnect, true, false) if waits => {
            "is not disconnected yet: it is once its transfers have ended"
        }
        (ChannelOrder::Disconnect, true, false) => "is disconnected",
        (ChannelOrder::Disconnect, true, true) => "would be disconnected",
        (ChannelOrder::Disconnect, false, _) => "had no association",
    };
    let mut text = format!("{channel} {done}\n");
    if outcome.changed && outcome.ending > 0 {
        let how = if at_once { "aborted" } else { "ended in order" };
        let _ = writeln!(text, "  associations {how}: {}", outcome.ending);
    }
    if outcome.changed && outcome.in_transfer > 0 {
        let how = if at_once { "cut off" } else { "interrupted or ended first" };
        let _ = writeln!(text, "  transfers {how}, resumed later: {}", outcome.in_transfer);
    }
    for transfer in outcome.transfers.iter().filter(|_| outcome.changed && waits) {
        text.push_str(&in_progress(transfer));
    }
    if outcome.changed && waits {
        let _ = writeln!(
            text,
            "  `mta channel {} {channel} --now` cuts them: what we send is tried again at once where another \
             association may carry it, behind the last checkpoint where it may be resumed",
            order.name()
        );
    }
    for (precedence, count) in outcome.queued.iter().rev() {
        let way = match outcome.elsewhere.get(precedence) {
            Some(names) => format!("take {}", names.join(", ")),
            None => "wait".to_owned(),
        };
        let _ = match order {
            ChannelOrder::Enable => writeln!(text, "  queued, {precedence}: {count}"),
            _ => writeln!(text, "  queued, {precedence}: {count} {way}"),
        };
    }
    text
}

/// A transfer that an association ends with.
fn in_progress(transfer: &TransferInProgress) -> String {
    let association = &transfer.association;
    let stalled = transfer.stalled_since.as_deref();
    let stalled = stalled.map(|at| format!(", stalled since {}", clock(at))).unwrap_or_default();
    match &transfer.entry {
        Some(entry) => format!(
            "  {entry} is in transfer on {association}{stalled}: {association} ends with it, or at its next \
             checkpoint\n"
        ),
        None => format!("  {association} receives: it ends with that transfer\n"),
    }
}

fn describe(channel: &str, connected: &ConnectOutcome) -> String {
    match connected {
        ConnectOutcome::Opened => format!("{channel} is open\n"),
        ConnectOutcome::Open { associations: 1 } => {
            format!("{channel} was open already, with 1 association\n")
        }
        ConnectOutcome::Open { associations } => {
            format!("{channel} was open already, with {associations} associations\n")
        }
        ConnectOutcome::Opening => {
            format!("{channel} is being opened: mta status and the log show how that ends\n")
        }
        ConnectOutcome::Failed { reason } => {
            format!("{channel} could not be opened, and is tried again later: {reason}\n")
        }
    }
}

fn code(connected: &ConnectOutcome) -> u8 {
    match connected {
        ConnectOutcome::Opened | ConnectOutcome::Open { .. } => DONE,
        ConnectOutcome::Failed { .. } => FAILED,
        ConnectOutcome::Opening => PARTLY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_shows_what_ends_and_what_waits() {
        use base::Precedence::{Flash, Routine};
        let mut outcome = ChannelOutcome {
            changed: true,
            ending: 2,
            in_transfer: 1,
            transfers: vec![TransferInProgress {
                association: "a7".to_owned(),
                entry: Some("e5".to_owned()),
                stalled_since: Some("2026-01-02T03:04:05.678901Z".to_owned()),
            }],
            queued: [(Routine, 7), (Flash, 1)].into(),
            elsewhere: [(Flash, vec!["normal".to_owned()])].into(),
            disabled: None,
        };
        assert_eq!(
            ordered("act/flash", ChannelOrder::Disable, true, false, &outcome),
            "act/flash would be disabled\n  associations ended in order: 2\n  \
             transfers interrupted or ended first, resumed later: 1\n  \
             e5 is in transfer on a7, stalled since 03:04:05Z: a7 ends with it, or at its next checkpoint\n  \
             `mta channel disable act/flash --now` cuts them: what we send is tried again at once where \
             another association may carry it, behind the last checkpoint where it may be resumed\n  \
             queued, flash: 1 take normal\n  queued, routine: 7 wait\n"
        );
        outcome.queued.clear();
        assert_eq!(
            ordered("act/flash", ChannelOrder::Disconnect, false, true, &outcome),
            "act/flash is disconnected\n  associations aborted: 2\n  \
             transfers cut off, resumed later: 1\n"
        );
        let waits = ordered("act/flash", ChannelOrder::Disconnect, false, false, &outcome);
        assert!(
            waits.starts_with(
                "act/flash is not disconnected yet: it is once its transfers have ended\n"
            ) && waits
                .contains("  e5 is in transfer on a7, stalled since 03:04:05Z: a7 ends with it")
                && waits.contains("`mta channel disconnect act/flash --now` cuts them"),
            "{waits}"
        );
        outcome.changed = false;
        assert_eq!(
            ordered("act/flash", ChannelOrder::Enable, false, false, &outcome),
            "act/flash was not disabled\n"
        );
    }

    #[test]
    fn each_outcome_has_its_words_its_code_and_its_json() {
        let reason = "refused: authentication-error".to_owned();
        let shown: Vec<(String, u8, String)> = [
            ConnectOutcome::Opened,
            ConnectOutcome::Open { associations: 2 },
            ConnectOutcome::Opening,
            ConnectOutcome::Failed { reason },
        ]
        .iter()
        .map(|connected| {
            let json = serde_json::to_string(&Shown { channel: "act/flash", connected }).unwrap();
            (describe("act/flash", connected), code(connected), json)
        })
        .collect();
        assert_eq!(shown[0].0, "act/flash is open\n");
        assert_eq!(shown[1].0, "act/flash was open already, with 2 associations\n");
        assert_eq!(
            shown[3].0,
            "act/flash could not be opened, and is tried again later: refused: authentication-error\n"
        );
        assert_eq!(shown.iter().map(|(_, code, _)| *code).collect::<Vec<_>>(), [0, 0, 3, 1]);
        assert_eq!(
            shown[1].2,
            "{\"channel\":\"act/flash\",\"outcome\":\"open\",\"associations\":2}"
        );
        assert_eq!(shown[2].2, "{\"channel\":\"act/flash\",\"outcome\":\"opening\"}");
    }
}
