//! `[[peer.channel]]`: one of several independent channels to a peer.

use crate::problem::Problems;
use crate::section::site::{ChannelSocket, Tcp};
use crate::section::window;
use crate::tree::Section;
use crate::value::{self, Remote};
use base::Precedence;
use dscp::Plan;
use node::config::{Channel, Connection, Reopen};
use osi::api::{Dialogue, RtseParameters};
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;

/// A channel as read, with the positions that checks across channels need.
pub(crate) struct ReadChannel {
    /// For the node.
    pub(crate) node: Channel,
    /// For the socket that connects.
    pub(crate) socket: ChannelSocket,
    /// The addresses on which it listens for the peer.
    pub(crate) listen: Vec<Spanned<SocketAddr>>,
    /// Position of its name.
    pub(crate) name_span: Range<usize>,
    /// Position of `remote`.
    pub(crate) remote_span: Range<usize>,
}

/// Defaults.
mod default {
    use std::time::Duration;
    pub(crate) const MAX_ASSOCIATIONS: u32 = 1;
    pub(crate) const GROW_AT: u32 = 8;
    pub(crate) const ASSOCIATIONS_KEEP: Duration = Duration::from_secs(10);
    pub(crate) const IDLE_CLOSE: Duration = Duration::from_secs(300);
    pub(crate) const CONNECT: Duration = Duration::from_secs(10);
    pub(crate) const SETUP: Duration = Duration::from_secs(30);
    pub(crate) const TRANSFER: Duration = Duration::from_secs(120);
    pub(crate) const DEAD_AFTER: Duration = Duration::from_secs(60);
}

/// Default socket options.
pub(crate) fn default_tcp(dscp: dscp::Dscp) -> Tcp {
    Tcp {
        dscp,
        congestion: None,
        user_timeout: default::DEAD_AFTER,
        keepalive: default::DEAD_AFTER / 2,
    }
}

/// Its keys, and what holds without them.
pub(crate) fn defaults() -> Vec<(&'static str, String)> {
    let words = |key, text: &str| (key, text.to_owned());
    let time = |key, time: Duration| (key, format!("{time:?}"));
    let reopen = Reopen::default();
    vec![
        words("name", "-"),
        words("precedences", "-"),
        words("fallback", "none"),
        words("remote", "-"),
        words("listen", "none"),
        words("dscp", "that of the plan"),
        words("congestion", "that of the system"),
        words("connection", "permanent"),
        time("idle_close", default::IDLE_CLOSE),
        words("windows", "none"),
        words("minimize", "none"),
        time("reopen.first", reopen.first),
        time("reopen.longest", reopen.longest),
        time("reopen.refused", reopen.refused),
        ("associations.max", default::MAX_ASSOCIATIONS.to_string()),
        ("associations.grow_at", default::GROW_AT.to_string()),
        time("associations.keep", default::ASSOCIATIONS_KEEP),
        time("timeouts.connect", default::CONNECT),
        time("timeouts.setup", default::SETUP),
        time("timeouts.transfer", default::TRANSFER),
        time("timeouts.dead_after", default::DEAD_AFTER),
        words("timeouts.unacknowledged", "dead_after"),
        words("timeouts.keepalive", "half of dead_after"),
        words("rts.checkpoint", "auto"),
        words("rts.window", "16"),
        words("rts.dialogue", "two-way-alternate"),
        words("rts.indefinite", "false"),
    ]
}

/// Reads one channel of the peer `peer`.
pub(crate) fn read(
    mut section: Section<'_>,
    problems: &mut Problems,
    peer: &str,
    plan: Plan,
) -> Option<ReadChannel> {
    let name = section.required(problems, "name", "write name = \"flash\"", &value::name);
    if let Some(name) = &name {
        section.rename(format!("channel {:?} of peer {peer:?}", name.get_ref()));
    }
    let precedences = read_precedences(&mut section, problems);
    let fallback = read_fallback(&mut section, problems, precedences.as_deref());
    let remote_remedy = "write remote = \"host:port\": where this channel connects";
    let remote = read_remotes(&mut section, problems, remote_remedy);
    let listen = section.list(problems, "listen", &value::socket);
    let dscp = section.optional(problems, "dscp", &value::dscp);
    let congestion = section.optional(problems, "congestion", &value::name);
    let connection = read_connection(&mut section, problems);
    let reopen = read_reopen(&mut section, problems);
    let growth = read_associations(&mut section, problems);
    let minimize = super::precedence::read_minimize(&mut section, problems);
    let timeouts = read_timeouts(&mut section, problems);
    let (rts, checkpoint_adapts) = read_rts(&mut section, problems, timeouts.transfer);
    section.finish(problems);

    let (name, precedences, remote) = (name?, precedences?, remote?);
    let highest = precedences.iter().max().copied().unwrap_or(Precedence::Routine);
    let tcp = Tcp {
        dscp: dscp.map_or(plan.dscp(highest), Spanned::into_inner),
        congestion: congestion.map(Spanned::into_inner),
        user_timeout: timeouts.user,
        keepalive: timeouts.keepalive,
    };
    let (name_span, remote_span) = (name.span(), remote.span());
    let name = name.into_inner();
    let (remote, others) = remote.into_inner();
    let mark = tcp.dscp;
    Some(ReadChannel {
        socket: ChannelSocket {
            remote,
            others,
            tcp,
            connect_timeout: timeouts.connect,
            label: format!("{peer}/{name}"),
        },
        node: Channel {
            index: 0, // its number is given where it is known which it had before
            name,
            precedences,
            fallback,
            dscp: mark,
            connection,
            reopen,
            associations_max: growth.max,
            grow_at: growth.grow_at,
            associations_keep: growth.keep,
            minimize,
            rts,
            checkpoint_adapts,
            setup_timeout: timeouts.setup,
        },
        listen: listen.map(Spanned::into_inner).unwrap_or_default(),
        name_span,
        remote_span,
    })
}

/// Most places of one peer.
const REMOTES: usize = 16;

/// Where a channel connects: the first place, and others.
fn read_remotes(
    section: &mut Section<'_>,
    problems: &mut Problems,
    remedy: &'static str,
) -> Option<Spanned<(Remote, Vec<Remote>)>> {
    if !section.has("remote") {
        let remote = section.required(problems, "remote", remedy, &value::remote)?;
        return Some(Spanned::new(remote.span(), (remote.into_inner(), Vec::new())));
    }
    let list = section.list(problems, "remote", &value::remote)?;
    let span = list.span();
    let all: Vec<Remote> = list.into_inner().into_iter().map(Spanned::into_inner).collect();
    let mut seen = std::collections::BTreeSet::new();
    let wrong = match all.iter().find(|remote| !seen.insert(*remote)) {
        Some(twice) => Some((format!("remote names {twice} twice"), "name each place once")),
        None if all.len() > REMOTES => Some((format!("{} places", all.len()), "name at most 16")),
        None => None,
    };
    if let Some((wrong, remedy)) = wrong {
        problems.error(span, wrong, "here", remedy);
        return None;
    }
    let mut all = all.into_iter();
    let Some(first) = all.next() else {
        problems.error(span, "remote names no place", "an empty list", remedy);
        return None;
    };
    Some(Spanned::new(span, (first, all.collect())))
}

fn read_precedences(section: &mut Section<'_>, problems: &mut Problems) -> Option<Vec<Precedence>> {
    const REMEDY: &str = "write precedences = [\"flash\"]: which messages may use this channel";
    let present = section.has("precedences");
    let list = section.list(problems, "precedences", &value::precedence);
    if !present {
        let message = format!("{} lacks precedences", section.name());
        problems.error(section.span(), message, "precedences is missing here", REMEDY);
    }
    let list = list?;
    if list.get_ref().is_empty() {
        let message = format!("{} carries no precedence", section.name());
        problems.error(list.span(), message, "an empty list", REMEDY);
        return None;
    }
    let mut precedences: Vec<Precedence> =
        list.into_inner().into_iter().map(Spanned::into_inner).collect();
    precedences.sort_unstable();
    precedences.dedup();
    Some(precedences)
}

/// Precedences of other channels that this one may carry while those are down.
fn read_fallback(
    section: &mut Section<'_>,
    problems: &mut Problems,
    own: Option<&[Precedence]>,
) -> Vec<Precedence> {
    let list = section.list(problems, "fallback", &value::precedence);
    let mut fallback = Vec::new();
    for precedence in list.map(Spanned::into_inner).unwrap_or_default() {
        if own.is_some_and(|own| own.contains(precedence.get_ref())) {
            let message =
                format!("{} is its own fallback for {}", section.name(), precedence.get_ref());
            let remedy = "remove it: the channel carries this precedence at all times";
            problems.warning(precedence.span(), message, "it is in precedences", remedy);
            problems.about(section.name());
        } else {
            fallback.push(precedence.into_inner());
        }
    }
    fallback.sort_unstable();
    fallback.dedup();
    fallback
}

/// The values of `connection`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Permanent,
    OnDemand,
    Scheduled,
}

fn read_connection(section: &mut Section<'_>, problems: &mut Problems) -> Connection {
    let words = [
        ("permanent", Kept::Permanent),
        ("on-demand", Kept::OnDemand),
        ("scheduled", Kept::Scheduled),
    ];
    let word = section.optional(problems, "connection", &|v| value::word(v, &words));
    let place = word.as_ref().map(Spanned::span);
    let kept = word.map_or(Kept::Permanent, Spanned::into_inner);
    let idle_close = section.optional(problems, "idle_close", &value::duration);
    let has_windows = section.has("windows");
    let windows = window::windows(section, problems, "windows");
    if let Some(idle) = idle_close.as_ref().filter(|_| kept != Kept::OnDemand) {
        let message = format!("idle_close of {} has no effect", section.name());
        let remedy = "remove it, or write connection = \"on-demand\"";
        let kept = if kept == Kept::Permanent { "permanent" } else { "scheduled" };
        problems.warning(idle.span(), message, format!("the channel is {kept}"), remedy);
        problems.about(section.name());
    }
    if let Some(windows) = windows.as_ref().filter(|_| kept != Kept::Scheduled) {
        let message = format!("windows of {} without connection = \"scheduled\"", section.name());
        let remedy = "write connection = \"scheduled\", or remove the windows";
        problems.error(windows.span(), message, "here", remedy);
    }
    match kept {
        Kept::Permanent => Connection::Permanent,
        Kept::OnDemand => Connection::OnDemand {
            idle_close: idle_close.map_or(default::IDLE_CLOSE, Spanned::into_inner),
        },
        Kept::Scheduled => match windows {
            Some(windows) => Connection::Scheduled { windows: windows.into_inner() },
            None => {
                if !has_windows {
                    let message = format!("{} is scheduled but lacks windows", section.name());
                    let remedy = "write windows = [\"mon-fri 06:00-18:00\"] (UTC): the hours at \
                                  which its link exists";
                    let place = place.unwrap_or_else(|| section.span());
                    problems.error(place, message, "windows is missing", remedy);
                }
                Connection::Permanent
            }
        },
    }
}

fn read_reopen(section: &mut Section<'_>, problems: &mut Problems) -> Reopen {
    let mut reopen = Reopen::default();
    let Some(mut table) = section.table(problems, "reopen") else { return reopen };
    let mut place = table.span();
    for (key, field) in [
        ("first", &mut reopen.first),
        ("longest", &mut reopen.longest),
        ("refused", &mut reopen.refused),
    ] {
        if let Some(wait) = table.optional(problems, key, &value::duration) {
            place = wait.span();
            *field = wait.into_inner();
        }
    }
    if reopen.first > reopen.longest {
        let message = format!("first of {} is longer than longest", table.name());
        let remedy = format!("write first = \"{}ms\" or less", reopen.longest.as_millis());
        problems.error(place, message, "no wait can grow from it", remedy);
    }
    table.finish(problems);
    reopen
}

/// When a channel opens and closes further associations.
struct Growth {
    max: u32,
    grow_at: u32,
    keep: Duration,
}

fn read_associations(section: &mut Section<'_>, problems: &mut Problems) -> Growth {
    let Some(mut table) = section.table(problems, "associations") else {
        let (max, grow_at) = (default::MAX_ASSOCIATIONS, default::GROW_AT);
        return Growth { max, grow_at, keep: default::ASSOCIATIONS_KEEP };
    };
    let mut one = |key, most, default| {
        let number = table.optional(problems, key, &|v| value::integer(v, 1, most));
        number.and_then(|n| u32::try_from(n.into_inner()).ok()).unwrap_or(default)
    };
    let max = one("max", 64, default::MAX_ASSOCIATIONS);
    let grow_at = one("grow_at", 1_000_000, default::GROW_AT);
    let keep = table.optional(problems, "keep", &value::duration).map(Spanned::into_inner);
    table.finish(problems);
    Growth { max, grow_at, keep: keep.unwrap_or(default::ASSOCIATIONS_KEEP) }
}

fn read_rts(
    section: &mut Section<'_>,
    problems: &mut Problems,
    transfer_timeout: Duration,
) -> (RtseParameters, bool) {
    let mut rts = RtseParameters {
        checkpoint_size: 64,
        window: 16,
        dialogue: Dialogue::TwoWayAlternate,
        indefinite_lengths: false,
        transfer_timeout,
        longest_pause: Duration::ZERO,
    };
    let Some(mut table) = section.table(problems, "rts") else { return (rts, true) };
    let units = table.optional(problems, "checkpoint", &value::checkpoint);
    if let Some(units) = &units {
        warn_of_slow_lines(problems, table.name(), units, transfer_timeout);
    }
    let units = units.and_then(Spanned::into_inner);
    rts.checkpoint_size = units.unwrap_or(rts.checkpoint_size);
    let window = table.optional(problems, "window", &|v| value::integer(v, 1, 255));
    if let Some(window) = window.and_then(|w| u32::try_from(w.into_inner()).ok()) {
        rts.window = window;
    }
    let words =
        [("monologue", Dialogue::Monologue), ("two-way-alternate", Dialogue::TwoWayAlternate)];
    if let Some(dialogue) = table.optional(problems, "dialogue", &|v| value::word(v, &words)) {
        rts.dialogue = dialogue.into_inner();
    }
    if let Some(indefinite) = table.optional(problems, "indefinite", &value::boolean) {
        rts.indefinite_lengths = indefinite.into_inner();
    }
    table.finish(problems);
    (rts, units.is_none())
}

/// Warns of a checkpoint that a line of 2,400 bit/s cannot carry within the transfer timeout.
fn warn_of_slow_lines(
    problems: &mut Problems,
    name: &str,
    units: &Spanned<Option<u32>>,
    transfer_timeout: Duration,
) {
    /// The slowest line considered, in bit/s.
    const SLOWEST: u128 = 2_400;
    let Some(size) = *units.get_ref() else { return };
    let milliseconds = transfer_timeout.as_millis().max(1);
    let needs = (u128::from(size) * 1_024 * 8_000).div_ceil(milliseconds);
    if needs <= SLOWEST {
        return;
    }
    let message = format!(
        "checkpoint of {name}: on a line slower than {}.{} kbit/s no checkpoint is confirmed within \
         timeouts.transfer ({transfer_timeout:?})",
        needs.div_ceil(100) / 10,
        needs.div_ceil(100) % 10,
    );
    let fits = SLOWEST * milliseconds / 8_000 / 1_024;
    let remedy = format!(
        "write checkpoint = \"auto\" (the default), which follows the rate that is measured; or, for \
         lines down to 2.4 kbit/s, checkpoint = \"{}KiB\" or transfer = \"{}s\". A peer that counts \
         confirmed checkpoints alone gives up on a slower line, and each loss costs one of them",
        fits.max(1),
        (u128::from(size) * 1_024 * 8).div_ceil(SLOWEST),
    );
    problems.warning(units.span(), message, format!("{size} KiB"), remedy);
    problems.about(name);
}

struct Timeouts {
    connect: Duration,
    setup: Duration,
    transfer: Duration,
    user: Duration,
    keepalive: Duration,
}

fn read_timeouts(section: &mut Section<'_>, problems: &mut Problems) -> Timeouts {
    let mut timeouts = Timeouts {
        connect: default::CONNECT,
        setup: default::SETUP,
        transfer: default::TRANSFER,
        user: default::DEAD_AFTER,
        keepalive: default::DEAD_AFTER / 2,
    };
    let Some(mut table) = section.table(problems, "timeouts") else { return timeouts };
    if let Some(dead_after) = table.optional(problems, "dead_after", &value::duration) {
        timeouts.user = dead_after.into_inner();
        timeouts.keepalive = timeouts.user / 2;
    }
    for (key, field) in [
        ("connect", &mut timeouts.connect),
        ("setup", &mut timeouts.setup),
        ("transfer", &mut timeouts.transfer),
        ("unacknowledged", &mut timeouts.user),
        ("keepalive", &mut timeouts.keepalive),
    ] {
        if let Some(duration) = table.optional(problems, key, &value::duration) {
            *field = duration.into_inner();
        }
    }
    table.finish(problems);
    timeouts
}
