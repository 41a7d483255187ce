//! Inputs and outputs in words, without contents and passwords.

use crate::names::Names;
use base::shown;
use engine::NextHop;
use engine::journal::{BodySource, Op};
use node::event::LogEvent;
use node::shards::ShardChange;
use node::{Input, Output};
use scheduler::Scope;

/// Longest text that is shown of a value from outside, characters.
const MAX_TEXT: usize = 400;

/// A text from outside, as it is shown.
fn text(text: &str) -> String {
    shown::line(text).chars().take(MAX_TEXT).collect()
}

fn octets(count: usize) -> String {
    if count == 1 { "1 octet".to_owned() } else { format!("{count} octets") }
}

/// A result whose value does not matter.
fn ended<T, E: std::fmt::Display>(result: &Result<T, E>) -> String {
    result.as_ref().map_or_else(|error| text(&error.to_string()), |_| "done".to_owned())
}

/// An input in words.
#[must_use]
pub fn input(input: &Input, names: &Names) -> String {
    match input {
        Input::RecoveredHolds(value) => format!("RecoveredHolds: {}", octets(value.len())),
        Input::RecoveredMinimize(value) => {
            format!("RecoveredMinimize: {}", octets(value.len()))
        }
        Input::RecoveredAcceptance(value) => {
            format!("RecoveredAcceptance: {}", octets(value.len()))
        }
        Input::RecoveredDisabled(value) => format!("RecoveredDisabled: {}", octets(value.len())),
        Input::RecoveredClock(value) => format!("RecoveredClock: {}", octets(value.len())),
        Input::RecoveredMailboxes(value) => format!("RecoveredMailboxes: {}", octets(value.len())),
        Input::RecoveredRegistration { mailbox, value } => {
            format!("RecoveredRegistration of {}: {}", text(mailbox), octets(value.len()))
        }
        Input::RecoveredSends(value) => format!("RecoveredSends: {}", octets(value.len())),
        Input::RecoveredReception { spool, length, notes } => {
            format!("RecoveredReception spool {}: {length} octets, {} notes", spool.0, notes.len())
        }
        Input::RecoveredLists(value) => format!("RecoveredLists: {}", octets(value.len())),
        Input::Recovered { precedence, id, record } => {
            format!("Recovered entry {id}, {precedence}: {}", octets(record.len()))
        }
        Input::RecoveredBodies(bodies) => format!("RecoveredBodies: {}", bodies.len()),
        Input::DiskSpace(space) => format!("DiskSpace: {space}"),
        Input::Damaged { records, contents } => {
            format!("Damaged: {} records, {} contents", records.len(), contents.len())
        }
        Input::Shard(change) => shard(change, names),
        Input::Serve => "Serve".to_owned(),
        Input::Started => "Started".to_owned(),
        Input::Tick => "Tick".to_owned(),
        Input::Stop => "Stop".to_owned(),
        Input::PeerBoundElsewhere(peer) => format!("PeerBoundElsewhere {peer}"),
        Input::OpenMailboxes => "OpenMailboxes".to_owned(),
        _ => of_association(input, names)
            .or_else(|| answer(input))
            .unwrap_or_else(|| order(input, names)),
    }
}

/// An input about a connection.
fn of_association(input: &Input, names: &Names) -> Option<String> {
    Some(match input {
        Input::Connected { association } => format!("Connected {association}"),
        Input::ConnectFailed { association, error } => {
            format!("ConnectFailed {association}: {}", text(error))
        }
        Input::Accepted { connection, listener, remote } => {
            let listener = names.listener(*listener);
            format!("Accepted connection {connection} on listener {listener} from {remote}")
        }
        Input::MarkSeen { association, dscp } => format!("MarkSeen {association}: {dscp}"),
        Input::Bytes { association, bytes } => {
            format!("Bytes {association}: {}", octets(bytes.len()))
        }
        Input::Taken { association, octets } => format!("Taken {association}: {octets} octets"),
        Input::Closed { association, error } => {
            let error = error.as_deref().map_or_else(|| "in order".to_owned(), text);
            format!("Closed {association}: {error}")
        }
        _ => return None,
    })
}

/// An input that answers an output.
fn answer(input: &Input) -> Option<String> {
    Some(match input {
        Input::Synced { spool, token, result } => {
            let result =
                result.as_ref().map_or_else(ToString::to_string, |n| format!("{n} octets"));
            format!("Synced spool {}, token {}: {}", spool.0, token.0, text(&result))
        }
        Input::SpoolFailed { spool, error } => format!("SpoolFailed {}: {}", spool.0, text(error)),
        Input::Committed { token, result } => {
            format!("Committed token {}: {}", token.0, ended(result))
        }
        Input::Loaded { token, result } => {
            let found = |record: &Option<bytes::Bytes>| {
                record.as_ref().map_or_else(|| "none".to_owned(), |record| octets(record.len()))
            };
            let result = result.as_ref().map_or_else(ToString::to_string, found);
            format!("Loaded token {}: {}", token.0, text(&result))
        }
        Input::LookedUp { token, result } => {
            let found = |of: &Vec<Option<bytes::Bytes>>| {
                format!("{} of {} known", of.iter().flatten().count(), of.len())
            };
            let result = result.as_ref().map_or_else(ToString::to_string, found);
            format!("LookedUp token {}: {}", token.0, text(&result))
        }
        Input::Forgot { token, result } => format!("Forgot token {}: {}", token.0, ended(result)),
        Input::Content { token, result } => {
            let result = result.as_ref().map_or_else(ToString::to_string, |o| octets(o.len()));
            format!("Content token {}: {}", token.0, text(&result))
        }
        Input::MailboxRead { token, found } => {
            use node::mailbox::machine::Found;
            let found = match found {
                Found::Opened { counts, .. } => format!("{} items", counts.iter().sum::<u64>()),
                Found::Items(rows) => format!("{} records", rows.len()),
                Found::Failed(why) => text(why),
            };
            format!("MailboxRead token {}: {found}", token.0)
        }
        Input::PasswordChanged { token, mailbox, result } => {
            format!("PasswordChanged token {} of {}: {}", token.0, text(mailbox), ended(result))
        }
        Input::Verified { token, right } => {
            format!("Verified token {}: {}", token.0, if *right { "right" } else { "wrong" })
        }
        _ => return None,
    })
}

/// An operator's order, or another configuration. None of these has contents or passwords.
/// A shard by the name that people know.
fn shard_name(shard: &NextHop, names: &Names) -> String {
    match shard {
        NextHop::Peer(peer) => names.peer(*peer),
        NextHop::Mailbox(address) => text(address),
    }
}

fn shard(change: &ShardChange, names: &Names) -> String {
    match change {
        ShardChange::Several => "Shard: one of several nodes".to_owned(),
        ShardChange::Gained(shard) => format!("Shard gained: {}", shard_name(shard, names)),
        ShardChange::Lost(shard) => format!("Shard lost: {}", shard_name(shard, names)),
        ShardChange::Leave(shard) => format!("Shard to be left: {}", shard_name(shard, names)),
        ShardChange::Lease(true) => "Shard: the lease holds".to_owned(),
        ShardChange::Lease(false) => "Shard: the lease has ended".to_owned(),
    }
}

fn order(input: &Input, names: &Names) -> String {
    match input {
        Input::Mailboxes { addresses, stored, changed } => format!(
            "Mailboxes: {}, {} of the message store, {} changed",
            addresses.len(),
            stored.len(),
            changed.len()
        ),
        Input::Configure { config, edge } => format!(
            "Configure: {} peers, {} listeners, {} keys of the edge",
            config.peers.len(),
            config.listeners.len(),
            edge.keys.len()
        ),
        Input::Operate { request, entries, act, by } => {
            let of = entries.len();
            format!(
                "Operate request {request}: {} of {of} entries by {}",
                act.name(),
                text(&by.to_string())
            )
        }
        Input::AcceptClock { by } => format!("AcceptClock by {}", text(&by.to_string())),
        Input::Minimize { scope, floor, until, by } => {
            let scope = match scope {
                Scope::Mta => "all peers".to_owned(),
                Scope::Peer(peer) => names.peer(*peer),
                Scope::Channel(channel) => names.channel(*channel),
            };
            let floor = floor.map_or("none", |floor| floor.name());
            let until = until.map(|until| format!(" until {until}"));
            let by = by.to_string();
            format!("Minimize {scope}: {floor}{} by {}", until.unwrap_or_default(), text(&by))
        }
        Input::ConnectChannel { request, channel } => {
            format!("ConnectChannel request {request}: {}", names.channel(*channel))
        }
        Input::OrderChannel { request, channel, order, at_once, by } => format!(
            "OrderChannel request {request}: {} {}{} by {}",
            names.channel(*channel),
            text(&format!("{order:?}")),
            if *at_once { " at once" } else { "" },
            text(&by.to_string())
        ),
        other => text(&format!("{other:?}")),
    }
}

/// An output in words.
#[must_use]
pub fn output(output: &Output, names: &Names) -> String {
    match output {
        Output::Connect { association, channel } => {
            format!("Connect {association}, {}", names.channel(*channel))
        }
        Output::Admitted { connection, association: Some(association) } => {
            format!("Admitted connection {connection} as {association}")
        }
        Output::Admitted { connection, association: None } => {
            format!("Admitted connection {connection}: no")
        }
        Output::Write { association, bytes } => {
            format!("Write {association}: {}", octets(bytes.len()))
        }
        Output::Measure { association } => format!("Measure {association}"),
        Output::Close { association } => format!("Close {association}"),
        Output::Drop { association } => format!("Drop {association}"),
        Output::SpoolOpen { spool } => format!("SpoolOpen {}", spool.0),
        Output::SpoolAppend { spool, bytes, .. } => {
            format!("SpoolAppend {}: {}", spool.0, octets(bytes.len()))
        }
        Output::SpoolNote { spool, note, .. } => {
            format!("SpoolNote {}: {}", spool.0, octets(note.len()))
        }
        Output::SpoolSync { spool, token, .. } => {
            format!("SpoolSync {}, token {}", spool.0, token.0)
        }
        Output::SpoolDiscard { spool } => format!("SpoolDiscard {}", spool.0),
        Output::Commit { token, precedence, batch } => {
            let changes: Vec<String> = batch.iter().map(change).collect();
            format!("Commit token {}, {precedence}: {}", token.0, text(&changes.join(", ")))
        }
        Output::Load { token, precedence, id } => {
            format!("Load token {}, entry {id}, {precedence}", token.0)
        }
        Output::LookUp { token, precedence, keys } => {
            format!("LookUp token {}, {precedence}: {} keys", token.0, keys.len())
        }
        Output::ForgetSeen { token, before, most } => {
            format!("ForgetSeen token {}: {most} before {before}", token.0)
        }
        Output::ReadContent { token, association, body, offset, len } => {
            format!("ReadContent token {}, {association}, body {body}: {len} at {offset}", token.0)
        }
        Output::ReadFront { token, precedence, body, offset, len } => {
            format!("ReadFront token {}, {precedence}, body {body}: {len} at {offset}", token.0)
        }
        Output::ReadMailbox { token, precedence, read } => {
            format!("ReadMailbox token {}, {precedence}: {}", token.0, text(&format!("{read:?}")))
        }
        Output::ChangePassword { token, mailbox, .. } => {
            format!("ChangePassword token {} of {}", token.0, text(mailbox))
        }
        Output::Verify { token, principal, .. } => {
            format!("Verify token {}: {}", token.0, text(&format!("{principal:?}")))
        }
        Output::Operated { request, result } => {
            format!("Operated request {request}: {}", ended(result))
        }
        Output::Purged { request, result } => {
            format!("Purged request {request}: {}", ended(result))
        }
        Output::ListsChanged { request, result } => {
            format!("ListsChanged request {request}: {}", ended(result))
        }
        Output::ChannelConnected { request, outcome } => {
            format!("ChannelConnected request {request}: {}", text(&format!("{outcome:?}")))
        }
        Output::ChannelOrdered { request, result } => {
            format!("ChannelOrdered request {request}: {}", ended(result))
        }
        Output::Event(event) => of_event(event, names),
        Output::ShardLeft { shard, stays } => {
            format!("ShardLeft {}{}", shard_name(shard, names), if *stays { ": stays" } else { "" })
        }
        Output::Stopped => "Stopped".to_owned(),
    }
}

/// An event: what it is, what it is about, who ordered it, and details.
fn of_event(event: &LogEvent, names: &Names) -> String {
    let about = [
        event.association.map(|id| format!("[{id}]")),
        event.channel.map(|id| names.channel(id)),
        event.message.as_deref().map(text),
        event.entry.map(|id| format!("entry {id}")),
        event.operator.as_ref().map(|by| format!("by {}", text(&by.0))),
    ];
    let about: String = about.into_iter().flatten().map(|part| format!(" {part}")).collect();
    format!("{}{about}: {}", event.kind.name(), text(&event.detail))
}

/// A durable change in words.
fn change(op: &Op) -> String {
    match op {
        Op::PutEntry { precedence, id, .. } => format!("entry {id} put at {precedence}"),
        Op::DeleteEntry { id, .. } => format!("entry {id} deleted"),
        Op::PutBody { id, source } => match source {
            BodySource::Spool(spool) => format!("body {id} of spool {}", spool.0),
            BodySource::Octets(octets) => format!("body {id} of {} octets", octets.len()),
            BodySource::Body(body) | BodySource::Framed { body, .. } => {
                format!("body {id} of body {body}")
            }
        },
        Op::DeleteBody { id } => format!("body {id} deleted"),
        Op::PutSeen { .. } => "a key remembered".to_owned(),
        Op::ForgetSeen { .. } => "keys forgotten".to_owned(),
        Op::PutMeta { name, .. } | Op::ReplaceMeta { name, .. } => {
            format!("value {} put", text(name))
        }
    }
}
