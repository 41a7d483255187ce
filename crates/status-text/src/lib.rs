//! What an operator sees of an MTA, as tables of text.

mod entry;
mod lists;
mod mailbox;
mod queue;

pub use entry::to_text as entry_to_text;
pub use lists::{in_full as list_to_text, overview as lists_to_text};
pub use mailbox::{in_full as mailbox_to_text, to_text as mailboxes_to_text};
pub use queue::to_text as queue_to_text;

use base::Precedence;
use engine::space::refused_text;
use status::{
    AssociationStatus, ChannelStatus, ClockStatus, DamageStatus, FailureStatus, MinimizeStatus,
    SiteStatus, Status,
};
use std::collections::BTreeMap;
use tables::{Table, age, dash, table, trimmed};

/// What of the store is damaged, on a line.
fn damaged(damage: DamageStatus) -> String {
    let of = [
        (damage.log_parts, "parts of the log"),
        (damage.records, "records"),
        (damage.contents, "contents"),
        (damage.keys, "blocks of remembered keys"),
        (damage.set_aside, "contents without an entry (queue/bodies/*.aside)"),
    ];
    let of = of.iter().filter(|(count, _)| *count > 0);
    let of: Vec<String> = of.map(|(count, what)| format!("{count} {what}")).collect();
    format!("store: damaged or lost: {}; see mta store check\n\n", of.join(", "))
}

/// The node of a site, on a line, with what is not as it is to be.
fn of_node(site: &SiteStatus) -> String {
    let lease = match site.lease_holds {
        true => format!("its lease lasts for {:.1} s", site.lease_left_seconds),
        false => "it has NO LEASE: it takes and sends nothing".to_owned(),
    };
    let drain = match (site.draining, site.drained) {
        (_, true) => ", drained",
        (true, false) => ", being drained",
        _ => "",
    };
    let away = site
        .database_away_seconds
        .map(|away| format!("the database has not answered for {}\n", age(away)));
    let away = away.unwrap_or_default();
    let shards = site.shards.len();
    let of = if shards == 1 { "shard" } else { "shards" };
    format!(
        "node {}{drain}: {lease}; {shards} {of}; mta cluster status shows the site\n{away}\n",
        site.node
    )
}

/// The tables of a status.
#[must_use]
pub fn to_text(status: &Status) -> String {
    let stopping = if status.stopping { ", stopping" } else { "" };
    let mut text = format!("{} at {}{stopping}\n\n", status.mta, status.time);
    if status.reading_queue {
        text.push_str("The queue is being read: the counts below are not complete yet.\n\n");
    }
    if let Some(site) = &status.site {
        text.push_str(&of_node(site));
    }
    if let Some(doubt) = &status.clock {
        text.push_str(&doubted_clock(doubt));
        text.push('\n');
    }
    if let Some(disk) = &status.disk {
        let (free, reserve) = (disk.free >> 20, disk.reserve >> 20);
        let refused = match disk.refused {
            Some(level) => format!(": {}", refused_text(level)),
            None => String::new(),
        };
        let no_room = match disk.no_room_for {
            Some(level) => format!("; the store had no room for a {level} message"),
            None => String::new(),
        };
        text.push_str(&format!(
            "disk: {free} MiB free, reserve {reserve} MiB{refused}{no_room}\n\n"
        ));
    }
    if let Some(damage) = status.damage {
        text.push_str(&damaged(damage));
    }
    let c = &status.counters;
    text.push_str(&format!(
        "messages submitted {}, received {}, transferred {}, delivered {}\n\
         reports made {}, expired {}, overdue {}, duplicates {}\n",
        c.submitted,
        c.received,
        c.transferred,
        c.delivered,
        c.reports_made,
        c.expired,
        c.overdue,
        c.duplicates
    ));

    channel_table(&mut text, status);
    failure_table(&mut text, status);
    level_table(&mut text, status);
    section(&mut text, &minimize_table(&status.minimize));
    association_table(&mut text, status);

    let mut mailboxes = table(["MAILBOX", "QUEUED", "BOUND", "STORED"]);
    for mailbox in &status.mailboxes {
        let (queued, bound) = (queued(&mailbox.queued), mailbox.bound.to_string());
        let stored = mailbox.stored.as_ref().map_or_else(
            || "-".to_owned(),
            |stored| {
                format!(
                    "{}, {} kB",
                    stored.items.values().sum::<u64>(),
                    stored.octets.div_ceil(1_000)
                )
            },
        );
        mailboxes.add_row([mailbox.address.clone(), queued, bound, stored]);
    }
    section(&mut text, &mailboxes);
    text
}

fn channel_table(text: &mut String, status: &Status) {
    let mut channels = table([
        "PEER",
        "CHANNEL",
        "DSCP",
        "STATE",
        "QUEUED",
        "BYTES",
        "OLDEST",
        "HELD",
        "LINE",
        "LAST ERROR",
    ]);
    for peer in &status.peers {
        for channel in &peer.channels {
            channels.add_row([
                peer.name.clone(),
                channel.name.clone(),
                channel.dscp_name.clone(),
                states(channel),
                queued(&channel.queued),
                channel.queued_bytes.to_string(),
                channel.oldest_age_seconds.map_or_else(dash, age),
                held(channel),
                channel.line_kbit_s.map_or_else(dash, rate),
                last_error(channel),
            ]);
        }
    }
    section(text, &channels);
}

/// The last error of a channel, or the transfer on it that stalls; of one that has a row in the table of failures, what that begins with.
fn last_error(channel: &ChannelStatus) -> String {
    let stalled = channel.associations.iter().find_map(|a| Some((a, a.stalled_since.as_ref()?)));
    match (&channel.closed, stalled, &channel.failure) {
        (Some(closed), ..) => closed.clone(),
        (None, Some((association, since)), _) => {
            let entry = association.entry.as_deref().unwrap_or("a transfer");
            format!("{entry} stalled on {} since {}", association.id, clock(since))
        }
        (None, None, Some(failure)) => format!("{} at {}: see below", part(failure), failure.layer),
        (None, None, None) => channel.last_error.clone().unwrap_or_else(dash),
    }
}

/// Whose part a failure is, in words.
fn part(failure: &FailureStatus) -> String {
    failure.part.replace('_', " ")
}

/// A row for each channel of which no association could be opened, or the last one was lost.
fn failure_table(text: &mut String, status: &Status) {
    let mut failures = table(["NOT OPEN", "WHO", "LAYER", "FAILED", "NEXT TRY", "REASON"]);
    for (peer, channel) in status.peers.iter().flat_map(|p| p.channels.iter().map(move |c| (p, c)))
    {
        let Some(failure) = &channel.failure else { continue };
        let next = match (&failure.next_try, failure.next_try_seconds) {
            (Some(at), Some(left)) => format!("{}, in {}", clock(at), age(left)),
            _ => "now".to_owned(),
        };
        failures.add_row([
            format!("{}/{}", peer.name, channel.name),
            part(failure),
            failure.layer.clone(),
            clock(&failure.at),
            next,
            failure.reason.clone(),
        ]);
    }
    section(text, &failures);
}

/// The time of day of an RFC 3339 time.
#[must_use]
pub fn clock(time: &str) -> String {
    time.get(11..19).map_or_else(|| time.to_owned(), |time| format!("{time}Z"))
}

/// A row for each precedence that has any messages.
fn level_table(text: &mut String, status: &Status) {
    let mut levels = table([
        "ON",
        "PRECEDENCE",
        "QUEUED",
        "BYTES",
        "OLDEST",
        "HELD",
        "DELAYED",
        "IN TRANSFER",
        "OVERDUE",
        "HELD BECAUSE",
    ]);
    for (peer, channel) in status.peers.iter().flat_map(|p| p.channels.iter().map(move |c| (p, c)))
    {
        for level in &channel.levels {
            if level.queued == 0 && level.in_transfer == 0 {
                continue;
            }
            let mut why = level.held_because.clone().unwrap_or_else(dash);
            if let Some(message) = &level.held_by_mts_id {
                why = format!("{why} {message}");
            }
            let held = level.held + level.minimized + level.held_by_operator;
            levels.add_row([
                format!("{}/{}", peer.name, channel.name),
                level.precedence.to_string(),
                level.queued.to_string(),
                level.queued_bytes.to_string(),
                level.oldest_age_seconds.map_or_else(dash, age),
                held.to_string(),
                level.delayed.to_string(),
                level.in_transfer.to_string(),
                level.overdue.to_string(),
                why,
            ]);
        }
    }
    section(text, &levels);
}

/// A rate, with one decimal where it is low.
#[must_use]
pub fn rate(kbit_s: f64) -> String {
    if kbit_s < 10.0 { format!("{kbit_s:.1} kbit/s") } else { format!("{kbit_s:.0} kbit/s") }
}

/// The number of held messages, and why the oldest is held.
fn held(channel: &ChannelStatus) -> String {
    match &channel.held_because {
        Some(why) => format!("{}: {why}", channel.held.values().sum::<u64>()),
        None => dash(),
    }
}

fn association_table(text: &mut String, status: &Status) {
    let mut associations = table([
        "ASSOCIATION",
        "ON",
        "ROLE",
        "STATE",
        "DSCP",
        "SEEN",
        "CHECKPOINT",
        "BYTES DONE",
        "RATE",
        "MESSAGE",
    ]);
    associations.keep_together(3);
    let mut mismatch = false;
    for peer in &status.peers {
        for channel in &peer.channels {
            let mut its: Vec<&AssociationStatus> = channel.associations.iter().collect();
            its.sort_by_key(|a| &a.role);
            for a in its {
                let differs = a.dscp_seen.is_some_and(|seen| seen != a.dscp_expected);
                mismatch |= differs;
                let seen = a.dscp_seen_name.clone().unwrap_or_else(dash);
                associations.add_row([
                    a.id.clone(),
                    format!("{}/{}", peer.name, channel.name),
                    a.role.clone(),
                    if a.draining {
                        format!("{}, draining", state(a))
                    } else {
                        state(a).to_owned()
                    },
                    a.dscp_expected_name.clone(),
                    if differs { seen + " !" } else { seen },
                    a.checkpoint_bytes.map_or_else(dash, |octets| format!("{} KiB", octets >> 10)),
                    progress(a),
                    a.rate_kbit_s.map_or_else(dash, rate),
                    a.message.clone().unwrap_or_else(dash),
                ]);
            }
        }
    }
    section(text, &associations);
    if mismatch {
        text.push_str(
            "! the peer's handshake arrived with another mark: a router on the path changes it, or \
             the peer's channel is configured with another; CS0 also from a peer that marks nothing\n",
        );
    }
}

/// Appends a table, if it has rows.
fn section(text: &mut String, table: &Table) {
    if table.row_count() > 0 {
        text.push('\n');
        text.push_str(&trimmed(table));
    }
}

/// The state of an association.
fn state(association: &AssociationStatus) -> &str {
    if association.stalled_since.is_some() { "stalled" } else { &association.state }
}

/// The states of a channel's associations with their counts.
fn states(channel: &ChannelStatus) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for association in &channel.associations {
        let state = if association.draining { "draining" } else { state(association) };
        *counts.entry(state).or_default() += 1;
    }
    let shown = counts.iter().map(|(state, n)| match n {
        1 => (*state).to_owned(),
        n => format!("{n} {state}"),
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "closed".to_owned() } else { shown.join(", ") }
}

/// Waiting messages by precedence, highest first.
fn queued(queued: &BTreeMap<Precedence, u64>) -> String {
    let waiting = queued.iter().rev().filter(|(_, n)| **n > 0);
    let shown: Vec<String> = waiting.map(|(p, n)| format!("{n} {p}")).collect();
    if shown.is_empty() { dash() } else { shown.join(", ") }
}

fn progress(association: &AssociationStatus) -> String {
    match (association.bytes_done, association.bytes_total) {
        (Some(done), Some(total)) => format!("{done} of {total}"),
        (Some(done), None) => done.to_string(),
        (None, _) => dash(),
    }
}

/// Lines for an operator; `mta status` shows them too.
#[must_use]
pub fn doubted_clock(doubt: &ClockStatus) -> String {
    let ClockStatus { since, because, expiry_waits_until, believed, late } = doubt;
    format!(
        "CLOCK NOT TRUSTED since {since}:\n  {because}\n  \
         by the clock as it was before, it is {believed}\n  \
         expiry waits until {expiry_waits_until}\n  \
         messages that would have expired: {late}\n  \
         if the clock is right: mta clock accept; if not, set it\n"
    )
}

/// The table of orders and windows in force.
#[must_use]
pub fn minimize_table(minimize: &[MinimizeStatus]) -> Table {
    let mut rows = table(["MINIMIZE ON", "FLOOR", "BY", "UNTIL"]);
    for row in minimize {
        rows.add_row([
            row.on.clone(),
            row.floor.map_or_else(dash, |floor| floor.to_string()),
            row.by.clone(),
            row.until.clone().unwrap_or_else(dash),
        ]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use dscp::Dscp;
    use status::{DiskStatus, LevelStatus, MailboxStatus, MinimizeStatus, PeerStatus};

    #[test]
    fn trouble_with_the_disk_is_on_top() {
        let lines = |refused, no_room_for, damage| {
            let disk = DiskStatus { free: 3 << 20, reserve: 16 << 20, refused, no_room_for };
            let status = Status { disk: Some(disk), damage, ..Status::default() };
            let text = to_text(&status);
            text.lines().filter(|line| line.contains(": ")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(None, None, None), ["disk: 3 MiB free, reserve 16 MiB"]);
        let damage = DamageStatus { records: 2, set_aside: 1, ..DamageStatus::default() };
        assert_eq!(
            lines(Some(Precedence::Immediate), Some(Precedence::Flash), Some(damage)),
            [
                "disk: 3 MiB free, reserve 16 MiB: immediate and lower are refused; \
                 the store had no room for a flash message",
                "store: damaged or lost: 2 records, \
                 1 contents without an entry (queue/bodies/*.aside); see mta store check"
            ]
        );
    }

    #[test]
    fn a_stalled_transfer_is_in_the_line_of_its_channel() {
        let association = AssociationStatus {
            id: "a7".to_owned(),
            state: "sending".to_owned(),
            entry: Some("e5".to_owned()),
            stalled_since: Some("2026-01-02T03:04:05.678901Z".to_owned()),
            ..AssociationStatus::default()
        };
        let channel = ChannelStatus { associations: vec![association], ..ChannelStatus::default() };
        assert_eq!(states(&channel), "stalled");
        assert_eq!(last_error(&channel), "e5 stalled on a7 since 03:04:05Z");
    }

    #[test]
    fn tables_are_aligned() {
        let association = |id: &str, state: &str| AssociationStatus {
            id: id.to_owned(),
            role: "initiator".to_owned(),
            state: state.to_owned(),
            dscp_expected: Dscp::CS3,
            dscp_expected_name: "CS3".to_owned(),
            ..AssociationStatus::default()
        };
        let sending = AssociationStatus {
            message: Some("[/C=IT/ADMD=NET/PRMD=NAPLES/;000001]".to_owned()),
            bytes_done: Some(65_536),
            bytes_total: Some(1_000_000),
            rate_kbit_s: Some(511.6),
            checkpoint_bytes: Some(65_536),
            ..association("a7", "sending")
        };
        let seen = |dscp: Dscp| AssociationStatus {
            role: "responder".to_owned(),
            draining: dscp == Dscp::CS0,
            dscp_seen: Some(dscp),
            dscp_seen_name: Some(dscp.to_string()),
            ..association("a8", "idle")
        };
        let level = LevelStatus {
            precedence: Precedence::Flash,
            queued: 2,
            queued_bytes: 2_000,
            oldest_age_seconds: Some(4_000.0),
            held: 2,
            minimized: 0,
            held_by_operator: 0,
            delayed: 0,
            held_because: Some("override e7 is in transfer".to_owned()),
            held_by_entry: Some("e7".to_owned()),
            held_by_mts_id: Some("[/C=IT/;000001]".to_owned()),
            in_transfer: 0,
            paused: 0,
            overdue: 1,
        };
        let flash = ChannelStatus {
            name: "flash".to_owned(),
            dscp: Dscp::CS3,
            dscp_name: "CS3".to_owned(),
            associations: vec![sending, seen(Dscp::CS3), seen(Dscp::CS0)],
            queued: [(Precedence::Flash, 2), (Precedence::Override, 1)].into(),
            queued_bytes: 1_002_000,
            levels: vec![level],
            held: [(Precedence::Flash, 2)].into(),
            held_because: Some("override e7 is in transfer".to_owned()),
            oldest_age_seconds: Some(12.34),
            ..ChannelStatus::default()
        };
        let routine = ChannelStatus {
            name: "routine".to_owned(),
            dscp_name: "CS0".to_owned(),
            last_error: Some("127.0.0.1:5100: connection refused".to_owned()),
            line_kbit_s: Some(2.36),
            ..ChannelStatus::default()
        };
        let refused = ChannelStatus {
            name: "priority".to_owned(),
            dscp_name: "CS1".to_owned(),
            last_error: Some("refused: authentication-error".to_owned()),
            failure: Some(FailureStatus {
                part: "they_refused".to_owned(),
                layer: "bind".to_owned(),
                reason: "MTABindError authentication-error (2)".to_owned(),
                at: "2026-01-02T03:00:05.678901Z".to_owned(),
                failures: 2,
                next_try: Some("2026-01-02T03:07:35.678901Z".to_owned()),
                next_try_seconds: Some(210.0),
            }),
            ..ChannelStatus::default()
        };
        let status = Status {
            mta: "MTA-NAPLES".to_owned(),
            time: "2026-01-02T03:04:05.678901Z".to_owned(),
            peers: vec![PeerStatus {
                name: "act".to_owned(),
                owner: None,
                channels: vec![routine, refused, flash],
            }],
            minimize: vec![MinimizeStatus {
                on: "all peers".to_owned(),
                floor: Some(Precedence::Immediate),
                by: "operator".to_owned(),
                ordered_by: Some("ops (uid 1000)".to_owned()),
                until: Some("2026-01-02T05:04:05.000000Z".to_owned()),
            }],
            mailboxes: vec![MailboxStatus {
                address: "/c=it/admd=net/prmd=naples/s=rossi".to_owned(),
                queued: [(Precedence::Routine, 3)].into(),
                bound: 1,
                stored: None,
                ..MailboxStatus::default()
            }],
            ..Status::default()
        };
        insta::assert_snapshot!(to_text(&status));
        insta::assert_snapshot!("idle", to_text(&Status::default()));
    }
}
