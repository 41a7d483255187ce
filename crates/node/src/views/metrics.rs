//! What is measured, as plain data: names and units by the Prometheus convention, values of one
//! moment. The edge writes them out.

use crate::log::tally::{BOUNDS, Durations, EventCount};
use crate::node::Node;
use base::{Now, Precedence};
use scheduler::ChannelId;
use status::{ChannelStatus, LevelStatus, Status};
use std::collections::BTreeMap;

/// Metrics of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name; that of a counter without `_total`.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// One for each set of labels.
    pub samples: Vec<Sample>,
}

/// One value with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Names and values.
    pub labels: Vec<(&'static str, String)>,
    /// What was measured.
    pub value: Value,
}

/// A value; all of a family are of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Counted since the start.
    Counter(u64),
    /// As it stands.
    Gauge(f64),
    /// How often a duration was in a class.
    Histogram {
        /// Seconds of all together.
        sum: f64,
        /// For each upper bound in seconds, those above the one before; the last is without end.
        classes: Vec<(f64, u64)>,
    },
}

/// The labels of a counter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Nothing,
    Precedence,
    Channel,
    ChannelAndPrecedence,
}

/// Counters of events: metric, event, labels, help.
const COUNTERS: &[(&str, &str, By, &str)] = &[
    (
        "mta_messages_submitted",
        "submitted",
        By::Precedence,
        "Messages and probes submitted by users and accepted",
    ),
    (
        "mta_messages_received",
        "received",
        By::ChannelAndPrecedence,
        "Messages, probes and reports taken from a peer",
    ),
    (
        "mta_messages_transferred",
        "transfer_confirmed",
        By::ChannelAndPrecedence,
        "Transfers that a peer confirmed",
    ),
    ("mta_transfers_started", "transfer_started", By::ChannelAndPrecedence, "Transfers begun"),
    (
        "mta_transfers_failed",
        "transfer_failed",
        By::ChannelAndPrecedence,
        "Transfers that failed or were interrupted",
    ),
    ("mta_messages_delivered", "delivered", By::Precedence, "Deliveries that a user confirmed"),
    (
        "mta_messages_expired",
        "expired",
        By::Precedence,
        "Copies given up because their time was over",
    ),
    (
        "mta_messages_overdue",
        "overdue",
        By::Precedence,
        "Copies that waited for longer than their precedence allows",
    ),
    ("mta_reports_made", "report_made", By::Nothing, "Reports made here"),
    ("mta_non_deliveries", "non_delivery", By::Nothing, "Messages with recipients not served"),
    ("mta_duplicates_dropped", "duplicate_dropped", By::Nothing, "Repetitions dropped"),
    ("mta_submissions_refused", "submission_refused", By::Nothing, "Submissions refused"),
    ("mta_arrivals_failed", "receive_failed", By::Channel, "Arrivals that could not be taken"),
    ("mta_associations_opened", "association_opened", By::Channel, "Associations opened"),
    (
        "mta_associations_lost",
        "association_lost",
        By::Channel,
        "Associations aborted, lost or not made",
    ),
    ("mta_associations_refused", "association_refused", By::Channel, "Associations refused"),
    ("mta_mark_mismatches", "mark_mismatch", By::Channel, "Times another mark began to come"),
    ("mta_store_failures", "store_failed", By::Nothing, "Failures of the store"),
];

/// A gauge of the queue: metric, help, value.
type OfLevel = (&'static str, &'static str, fn(&LevelStatus) -> Option<f64>);

// Counts and octets are far below 2^53.
const OF_LEVELS: &[OfLevel] = &[
    ("mta_queue_messages", "Copies that wait, for whatever reason", |l| Some(l.queued as f64)),
    ("mta_queue_bytes", "Octets of content that wait", |l| Some(l.queued_bytes as f64)),
    ("mta_queue_oldest_age_seconds", "Age of the oldest copy that waits", |l| l.oldest_age_seconds),
    ("mta_queue_delayed_messages", "Copies deferred, or to be tried again", |l| {
        Some(l.delayed as f64)
    }),
    ("mta_queue_overdue_messages", "Copies overdue now, waiting or in transfer", |l| {
        Some(l.overdue as f64)
    }),
    ("mta_transfers", "Copies in transfer now", |l| Some(l.in_transfer as f64)),
    ("mta_transfers_paused", "Copies in transfer that are paused for a higher one", |l| {
        Some(l.paused as f64)
    }),
];

type LabelKey = (Option<ChannelId>, Option<Precedence>);

fn gauges(
    name: &'static str,
    help: &'static str,
    of: impl IntoIterator<Item = (Vec<(&'static str, String)>, f64)>,
) -> Family {
    // A channel that is being drained may stand beside a new one of its name.
    let mut sums: BTreeMap<Vec<(&'static str, String)>, f64> = BTreeMap::new();
    for (labels, value) in of {
        *sums.entry(labels).or_default() += value;
    }
    let sample = |(labels, value)| Sample { labels, value: Value::Gauge(value) };
    Family { name, help, samples: sums.into_iter().map(sample).collect() }
}

fn channels(status: &Status) -> impl Iterator<Item = (&str, &ChannelStatus)> {
    status.peers.iter().flat_map(|p| p.channels.iter().map(move |c| (p.name.as_str(), c)))
}

fn levels(status: &Status) -> impl Iterator<Item = (Vec<(&'static str, String)>, &LevelStatus)> {
    channels(status).flat_map(|(peer, channel)| {
        channel.levels.iter().map(move |level| {
            let precedence = level.precedence.name().to_owned();
            let labels = vec![
                ("peer", peer.to_owned()),
                ("channel", channel.name.clone()),
                ("precedence", precedence),
            ];
            (labels, level)
        })
    })
}

fn queue(status: &Status) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for (name, help, value) in OF_LEVELS {
        let values = levels(status).filter_map(|(labels, level)| Some((labels, value(level)?)));
        families.push(gauges(name, help, values));
    }
    let held = levels(status).flat_map(|(labels, level)| {
        let by = [
            ("precedence", level.held),
            ("minimize", level.minimized),
            ("operator", level.held_by_operator),
        ];
        by.map(|(reason, count)| {
            let mut labels = labels.clone();
            labels.push(("reason", reason.to_owned()));
            (labels, count as f64)
        })
    });
    let help = "Copies that wait because a higher one, MINIMIZE or an operator holds them";
    families.push(gauges("mta_queue_held_messages", help, held));
    families
}

fn disk(status: &Status) -> Vec<Family> {
    let Some(disk) = &status.disk else { return Vec::new() };
    let refused = disk.refused;
    let no_room = Precedence::ALL.map(|level| {
        let had_none = disk.no_room_for == Some(level);
        (vec![("precedence", level.name().to_owned())], f64::from(u8::from(had_none)))
    });
    let levels = Precedence::ALL.map(|level| {
        let is_refused = refused.is_some_and(|highest| level <= highest);
        (vec![("precedence", level.name().to_owned())], f64::from(u8::from(is_refused)))
    });
    let one = |value: u64| [(Vec::new(), value as f64)];
    vec![
        gauges("mta_disk_free_bytes", "Free on the disk of data_dir", one(disk.free)),
        gauges("mta_disk_reserve_bytes", "The disk_reserve that holds", one(disk.reserve)),
        gauges("mta_disk_refused", "1 while the precedence is refused for lack of room", levels),
        gauges(
            "mta_disk_no_room",
            "1 for the highest precedence that found no room lately",
            no_room,
        ),
    ]
}

fn associations(status: &Status) -> Family {
    let mut counts: BTreeMap<(&str, &str, &str), u32> = BTreeMap::new();
    for (peer, channel) in channels(status) {
        for association in &channel.associations {
            *counts.entry((peer, &channel.name, &association.state)).or_default() += 1;
        }
    }
    let of = counts.into_iter().map(|((peer, channel, state), count)| {
        let labels = [("peer", peer), ("channel", channel), ("state", state)];
        (labels.map(|(name, value)| (name, value.to_owned())).to_vec(), f64::from(count))
    });
    gauges("mta_associations", "Associations with peers", of)
}

fn users(status: &Status) -> [Family; 4] {
    let mut waiting: BTreeMap<Precedence, u64> = Precedence::ALL.map(|p| (p, 0)).into();
    for mailbox in &status.mailboxes {
        for (precedence, count) in &mailbox.queued {
            *waiting.entry(*precedence).or_default() += count;
        }
    }
    let waiting = waiting.into_iter().map(|(precedence, count)| {
        (vec![("precedence", precedence.name().to_owned())], count as f64)
    });
    let bound: u64 = status.mailboxes.iter().map(|mailbox| mailbox.bound).sum();
    let stored = || status.mailboxes.iter().filter_map(|mailbox| mailbox.stored.as_ref());
    let octets = [(vec![], stored().map(|stored| stored.octets).sum::<u64>() as f64)];
    let items = Precedence::ALL.map(|level| {
        let items = stored().filter_map(|stored| stored.items.get(&level)).sum::<u64>();
        (vec![("precedence", level.name().to_owned())], items as f64)
    });
    let help = "Users bound to a mailbox for which there was something";
    [
        gauges("mta_mailbox_messages", "Copies that wait for users", waiting),
        gauges("mta_users_bound", help, [(vec![], bound as f64)]),
        gauges("mta_store_items", "Items in open mailboxes of the message store", items),
        gauges("mta_store_octets", "Octets in open mailboxes of the message store", octets),
    ]
}

impl Node {
    /// All that is measured, at one moment: queue and associations are those of `status`.
    pub fn metrics(&self, now: Now) -> Vec<Family> {
        let status = self.status(now);
        let mut families = Vec::new();
        if let Some(at) = self.cx.life.started_at() {
            let seconds = at.0 as f64 / 1e6;
            let help = "When the daemon was ready, since 1970";
            families.push(gauges("process_start_time_seconds", help, [(vec![], seconds)]));
        }
        families.extend(queue(&status));
        families.extend(disk(&status));
        families.push(associations(&status));
        families.extend(users(&status));
        families.extend(COUNTERS.iter().map(|(name, event, by, help)| {
            let counted = self.counted(event, *by);
            let counted = counted.into_iter().map(|(key, count)| (key, count.events));
            Family { name, help, samples: self.counters(*by, counted) }
        }));
        families.push(self.transferred_bytes());
        families.push(self.durations());
        families
    }

    fn counted(&self, event: &str, by: By) -> BTreeMap<LabelKey, EventCount> {
        let mut counts: BTreeMap<LabelKey, EventCount> = BTreeMap::new();
        // What never happened is shown as 0 where that is few lines.
        match by {
            By::Nothing => drop(counts.insert((None, None), EventCount::default())),
            By::Precedence => {
                counts.extend(Precedence::ALL.map(|p| ((None, Some(p)), EventCount::default())));
            }
            By::Channel | By::ChannelAndPrecedence => {}
        }
        for (channel, precedence, count) in self.cx.outputs.tally().counts(event) {
            let key = match by {
                By::Nothing => (None, None),
                By::Precedence => (None, precedence),
                By::Channel => (channel, None),
                By::ChannelAndPrecedence => (channel, precedence),
            };
            let sum = counts.entry(key).or_default();
            sum.events += count.events;
            sum.bytes = sum.bytes.saturating_add(count.bytes);
        }
        counts
    }

    /// What has none of what a label names has the label empty, which is as if it had it not.
    fn labels(&self, by: By, (channel, precedence): LabelKey) -> Vec<(&'static str, String)> {
        let mut labels = Vec::new();
        if matches!(by, By::Channel | By::ChannelAndPrecedence) {
            let named = |id| self.cx.outputs.tally().former(id).or_else(|| self.cx.place(id));
            let place = channel.and_then(named).unwrap_or_default();
            labels.push(("peer", place.0.to_owned()));
            labels.push(("channel", place.1.to_owned()));
        }
        if matches!(by, By::Precedence | By::ChannelAndPrecedence) {
            labels.push(("precedence", precedence.map_or("", |p| p.name()).to_owned()));
        }
        labels
    }

    fn transferred_bytes(&self) -> Family {
        let by = By::ChannelAndPrecedence;
        let counted = self.counted("transfer_confirmed", by).into_iter();
        Family {
            name: "mta_transfer_bytes",
            help: "Octets of content that peers confirmed",
            samples: self.counters(by, counted.map(|(key, count)| (key, count.bytes))),
        }
    }

    /// One for each set of labels: a channel that was removed and came back counts on.
    fn counters(&self, by: By, counted: impl Iterator<Item = (LabelKey, u64)>) -> Vec<Sample> {
        let mut sums: BTreeMap<Vec<(&'static str, String)>, u64> = BTreeMap::new();
        for (key, count) in counted {
            *sums.entry(self.labels(by, key)).or_default() += count;
        }
        let sample = |(labels, sum)| Sample { labels, value: Value::Counter(sum) };
        sums.into_iter().map(sample).collect()
    }

    fn durations(&self) -> Family {
        let sample = |(precedence, durations): (Precedence, &Durations)| {
            let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
            Sample {
                labels: vec![("precedence", precedence.name().to_owned())],
                value: Value::Histogram {
                    sum: durations.seconds,
                    classes: bounds.zip(durations.classes).collect(),
                },
            }
        };
        Family {
            name: "mta_transfer_duration_seconds",
            help: "From the start of a transfer to the peer's confirm",
            samples: self.cx.outputs.tally().durations().map(sample).collect(),
        }
    }
}
