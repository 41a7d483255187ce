//! The rows of the tables: a message or a load of a run, beside what was printed.

mod fit;

pub use fit::Fit;

use crate::bound;
use crate::during::{self, Asked};
use crate::file::{self, Study};
use crate::measured::{Environment, LoadMeasured, Measured, MessageTimes, PassedCount};
use crate::repeat::{Range, combined};
use crate::skew::Skew;
use crate::tcp_factor::{self, Transfer};
use crate::{Planned, Scale};
use router::policy::Name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// The duration of a message's transfer or delivery, in seconds.
    Seconds,
    /// Of a message its content a second, of a load what arrived of it.
    KbitS,
    /// Its rate in percent of that of its base.
    BasePercent,
    /// The seconds of its bound in percent of its own: see [`crate::bound`].
    BoundPercent,
    /// Lost of a load.
    LossPercent,
    /// One-way delay of a load, the median.
    DelayMs,
    /// Its 99th percentile.
    DelayP99Ms,
    /// Of the delays of neighbours.
    JitterMs,
    /// There and back of an echo, the median.
    RoundTripMs,
    /// Its 99th percentile.
    RoundTripP99Ms,
}

impl Measure {
    /// All, as in files and JSON.
    pub const NAMES: [&str; 10] = [
        "seconds",
        "kbit_s",
        "base_percent",
        "bound_percent",
        "loss_percent",
        "delay_ms",
        "delay_p99_ms",
        "jitter_ms",
        "round_trip_ms",
        "round_trip_p99_ms",
    ];
    const ALL: [Measure; 10] = [
        Measure::Seconds,
        Measure::KbitS,
        Measure::BasePercent,
        Measure::BoundPercent,
        Measure::LossPercent,
        Measure::DelayMs,
        Measure::DelayP99Ms,
        Measure::JitterMs,
        Measure::RoundTripMs,
        Measure::RoundTripP99Ms,
    ];

    /// By its name.
    pub fn from_name(name: &str) -> Option<Measure> {
        let place = Measure::NAMES.iter().position(|other| *other == name)?;
        Measure::ALL.get(place).copied()
    }

    /// By the name of a printed value: its own, or with `_more_than` or `_less_than` behind it.
    pub fn of_paper(name: &str) -> Option<Measure> {
        let stem = name.strip_suffix(MORE_THAN).or(name.strip_suffix(LESS_THAN));
        Measure::from_name(stem.unwrap_or(name))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let place = Measure::ALL.iter().position(|other| *other == self);
        place.and_then(|place| Measure::NAMES.get(place)).copied().unwrap_or_default()
    }
}

/// Behind the name of a value of which only a bound is known, or was printed.
pub(crate) const MORE_THAN: &str = "_more_than";
/// The same for the other side.
pub(crate) const LESS_THAN: &str = "_less_than";

/// A row of a table. Times and rates are as at the study's own rates: where the network was faster by
/// `scale`, seconds are times it and rates divided by it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StudyRow {
    /// The table.
    pub table: Name,
    /// What it is: the run and, where it has several, the message or load.
    pub row: String,
    /// `experiment/run/item`.
    pub item: String,
    /// Of a message.
    pub precedence: Option<String>,
    /// Its mark.
    pub dscp: u8,
    /// Its mark's name.
    pub dscp_name: String,
    /// Octets of a message's body.
    pub size: Option<u64>,
    /// The printed duration of a message, in seconds.
    pub paper_seconds: Option<f64>,
    /// How long it took; absent where it did not end.
    pub seconds: Option<f64>,
    /// It was given up after so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_more_than: Option<f64>,
    /// See [`Measure::KbitS`].
    pub kbit_s: Option<f64>,
    /// Of what was given up: it was slower than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kbit_s_less_than: Option<f64>,
    /// `seconds` divided by what was printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Of a UDP load, the TOS octet its packets were sent with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tos_sent: Option<u8>,
    /// The TOS octets they arrived with, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tos_received: Vec<u8>,
    /// The TOS octets that were printed as received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paper_tos: Vec<u8>,
    /// Further values, by their names.
    #[serde(flatten)]
    pub more: BTreeMap<String, f64>,
    /// Of how many runs the values are medians; nothing where it was made once.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeats: u32,
    /// In how many of these it was given up.
    #[serde(skip_serializing_if = "is_zero")]
    pub given_up: u32,
    /// The lowest and the highest of each value, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub range: BTreeMap<String, Range>,
    /// What the receiver's clock did beside the sender's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<Skew>,
    /// Its packets were made, and taken off, in the process of the routers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
    /// All that was printed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub paper: BTreeMap<Name, f64>,
    /// Why it is not near what was printed, where that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub no_fit_reason: String,
    /// The environment in which the run was made.
    pub environment: Environment,
    /// The factor by which the network was faster than the study's.
    pub scale: Scale,
    /// Parameters that are others than elsewhere.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<Name, toml::Value>,
    /// What it has with settings that were chosen to fit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// The reasons for which these parameters differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl StudyRow {
    /// A value of it, where it has it.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Seconds => self.seconds,
            Measure::KbitS => self.kbit_s,
            other => self.more.get(other.name()).copied(),
        }
    }
}

/// `experiment/run/item`, where the experiment may have been left out.
pub(crate) fn whole(experiment: &str, reference: &str) -> String {
    match reference.matches('/').count() {
        1 => format!("{experiment}/{reference}"),
        _ => reference.to_owned(),
    }
}

/// `experiment/run/item`, the run as in the file, without the values of what it varies.
pub fn plain_item(item: &str) -> String {
    match (item.find('['), item.rfind("]/")) {
        (Some(from), Some(to)) if from < to => {
            let (before, after) = (item.get(..from), item.get(to + 1..));
            [before, after].into_iter().flatten().collect()
        }
        _ => item.to_owned(),
    }
}

/// The rows of what was measured, in the order of the study; of runs that were made several times, their
/// medians.
pub fn rows(study: &Study, planned: &[Planned], measured: &[Measured]) -> Vec<StudyRow> {
    let mut by_id: BTreeMap<&str, Vec<&Measured>> = BTreeMap::new();
    for measured in measured {
        by_id.entry(measured.id.as_str()).or_default().push(measured);
    }
    let asked = during::asked(study);
    let mut bases = BTreeMap::new();
    let mut waits = BTreeMap::new();
    let (mut rows, mut fitted) = (Vec::new(), Vec::new());
    for planned in planned {
        let Some(measured) = by_id.get(planned.id.as_str()) else { continue };
        let makers =
            measured.iter().map(|measured| Maker { asked: &asked, study, planned, measured });
        let makers: Vec<Maker<'_>> = makers.collect();
        let messages = planned.messages.iter().enumerate().map(|(place, message)| {
            let times = makers.iter().filter_map(|maker| {
                Some(maker.message(message, maker.measured.messages.get(place)?))
            });
            (times.collect::<Vec<_>>(), &message.base, Some(message))
        });
        let loads = planned.loads.iter().enumerate().map(|(place, load)| {
            let loads = makers
                .iter()
                .filter_map(|maker| Some(maker.load(load, maker.measured.loads.get(place)?)));
            (loads.collect(), &load.base, None)
        });
        for (repeated, base, message) in messages.chain(loads) {
            let Some(row) = combined(&repeated) else { continue };
            if let Some(base) = base {
                let base = whole(planned.experiment_name(), base);
                let fitting = fitting(&base).filter(|_| !planned.fitted.is_empty());
                let fitting = fitting.filter(|item| is_measured(item, &by_id));
                bases.insert(row.item.clone(), fitting.unwrap_or(base));
            }
            let seconds = message.and_then(|of| bound::waiting(planned, of, row.environment));
            waits.extend(seconds.map(|seconds| (row.item.clone(), seconds)));
            fitted.push(planned.fitted.clone());
            rows.push(row);
        }
        for row in code_points(&makers) {
            fitted.push(planned.fitted.clone());
            rows.push(row);
        }
    }
    percentages(&mut rows, &bases);
    bound::add(&mut rows, &bases, &waits);
    let mut rows = fit::joined(rows.into_iter().zip(fitted).collect());
    crate::printed::add(study, planned, &mut rows);
    rows
}

/// The item of the run that was made to fit beside the one of this item.
fn fitting(item: &str) -> Option<String> {
    let (run, item) = item.rsplit_once('/')?;
    Some(format!("{}/{item}", crate::plan::with_fit(run)))
}

fn is_measured(item: &str, measured: &BTreeMap<&str, Vec<&Measured>>) -> bool {
    item.rsplit_once('/').is_some_and(|(run, _)| measured.contains_key(run))
}

/// Behind these, a row has the name of a code point: what an analysis of captured packets found of it, and
/// what the router counted.
const CODE_POINT_ROWS: [&str; 2] = ["analysed-", "counted-"];

/// The names of a run's rows by code point, as far as is known before it is made: those of what is sent.
pub(crate) fn code_point_rows(planned: &Planned) -> Vec<Name> {
    if planned.analysed.is_none() {
        return Vec::new();
    }
    let messages = planned.messages.iter();
    let messages = messages.map(|message| mark(planned.mail.as_ref(), message.precedence));
    let marks: BTreeSet<dscp::Dscp> =
        messages.chain(planned.loads.iter().map(|load| load.dscp)).collect();
    let names = marks.iter().flat_map(|dscp| CODE_POINT_ROWS.map(|kind| format!("{kind}{dscp}")));
    names.collect()
}

/// Two rows of each code point that passed the ports that are analysed.
fn code_points(makers: &[Maker<'_>]) -> Vec<StudyRow> {
    let all = makers.iter().flat_map(|maker| &maker.measured.passed);
    let all: BTreeSet<u8> = all.map(|passed| passed.dscp).collect();
    let mut rows = Vec::new();
    for dscp in all.into_iter().filter_map(dscp::Dscp::new) {
        for (place, kind) in CODE_POINT_ROWS.iter().enumerate() {
            let made = makers.iter().filter_map(|maker| {
                let mut passed = maker.measured.passed.iter();
                let passed = passed.find(|passed| passed.dscp == dscp.number())?;
                let count = if place == 0 { passed.analysed } else { passed.counted };
                Some(maker.passed(&format!("{kind}{dscp}"), dscp, count))
            });
            rows.extend(combined(&made.collect::<Vec<_>>()));
        }
    }
    rows
}

/// Each rate in percent of the rate of its base. If it or its base was given up, only a bound is known.
fn percentages(rows: &mut [StudyRow], bases: &BTreeMap<String, String>) {
    // Rates of another environment, or of a faster network, do not compare.
    type Made = (String, Environment, Scale);
    let rate = |row: &StudyRow| {
        let made: Made = (row.item.clone(), row.environment, row.scale);
        Some((made, (row.kbit_s, row.kbit_s.or(row.kbit_s_less_than)?)))
    };
    let rates: BTreeMap<Made, (Option<f64>, f64)> = rows.iter().filter_map(rate).collect();
    for row in rows {
        let base = bases.get(&row.item).map(|base| (base.clone(), row.environment, row.scale));
        let Some((exactly, most)) = base.and_then(|base| rates.get(&base)).copied() else {
            continue;
        };
        let name = Measure::BasePercent.name();
        let percent = |rate: f64| rate / most * 100.0;
        match (row.kbit_s, exactly, row.kbit_s_less_than) {
            (Some(rate), Some(_), _) => {
                row.more.insert(name.to_owned(), percent(rate));
                if let Some((low, high)) = row.range.get(Measure::KbitS.name()).copied() {
                    row.range.insert(name.to_owned(), (low.map(percent), high.map(percent)));
                }
            }
            (Some(rate), None, _) => {
                row.more.insert(format!("{name}{MORE_THAN}"), percent(rate));
            }
            (None, Some(_), Some(bound)) => {
                row.more.insert(format!("{name}{LESS_THAN}"), percent(bound));
            }
            (None, _, _) => {}
        }
    }
}

/// The mark of a message: that of the channel which its precedence may use.
pub(crate) fn mark(mail: Option<&file::Mail>, precedence: base::Precedence) -> dscp::Dscp {
    let mut channels = mail.into_iter().flat_map(|mail| &mail.channels);
    let channel = channels.find(|channel| channel.precedences.contains(&precedence));
    channel.map_or(dscp::Dscp::CS0, |channel| channel.dscp)
}

/// The TOS octet of a code point, with nothing in the two bits of ECN (RFC 2474 3).
pub(crate) fn tos(dscp: u8) -> u8 {
    dscp << 2
}

struct Maker<'a> {
    asked: &'a Asked,
    study: &'a Study,
    planned: &'a Planned,
    measured: &'a Measured,
}

impl Maker<'_> {
    fn row(&self, name: &str, dscp: dscp::Dscp, paper: &BTreeMap<Name, f64>) -> StudyRow {
        let alone = self.planned.messages.len() + self.planned.loads.len() == 1;
        let run = &self.planned.run;
        StudyRow {
            table: self.planned.table.clone(),
            row: if alone { run.clone() } else { format!("{run}/{name}") },
            item: format!("{}/{name}", self.planned.id),
            dscp: dscp.number(),
            dscp_name: dscp.to_string(),
            paper_seconds: paper.get(Measure::Seconds.name()).copied(),
            paper: paper.clone(),
            environment: self.measured.environment,
            scale: self.measured.scale,
            with: self.planned.special.clone(),
            why: self.planned.why.clone(),
            ..StudyRow::default()
        }
    }

    fn tcp_factor(&self, transfer: Option<Transfer>) -> BTreeMap<String, f64> {
        let values = |of| tcp_factor::values(self.planned, self.measured, &of);
        transfer.map(values).unwrap_or_default()
    }

    fn message(&self, message: &file::StudyMessage, times: &MessageTimes) -> StudyRow {
        let mail = self.planned.mail.as_ref().or(self.study.mail.as_ref());
        let dscp = mark(mail, message.precedence);
        let mut row = self.row(&message.name, dscp, &message.paper);
        row.precedence = Some(message.precedence.name().to_owned());
        row.size = Some(message.size.0);
        row.no_fit_reason.clone_from(&message.no_fit_reason);
        let end = times.confirmed.unwrap_or(self.measured.seconds);
        let transfer = mail.zip(times.started).and_then(|(mail, started)| {
            Transfer::of_message(self.planned, mail, dscp.number(), (started, end))
        });
        row.more.extend(self.tcp_factor(transfer));
        for during in self.asked.get(&row.item).into_iter().flatten() {
            let rate = during::kbit_s(self.planned, self.measured, dscp.number(), during);
            row.more.extend(rate.map(|rate| (during::name(during), rate)));
        }
        let scale = self.measured.scale.factor();
        let (from, to) = match mail.map(|mail| mail.measured).unwrap_or_default() {
            file::MessageMeasure::SubmittedToDelivered => (times.submitted, times.delivered),
            file::MessageMeasure::StartedToConfirmed => (times.started, times.confirmed),
        };
        match (from, to) {
            (Some(from), Some(to)) => {
                let seconds = (to - from).max(0.0) * scale;
                row.seconds = Some(seconds);
                row.kbit_s = (seconds > 0.0).then(|| message.size.0 as f64 * 8e-3 / seconds);
                row.ratio = row.paper_seconds.map(|paper| seconds / paper);
            }
            (from, None) => {
                let since = from.or(times.submitted).unwrap_or_default();
                // On a faster network a run lasts longer than its limit, so that the programs can start.
                let end = (self.measured.seconds * scale).min(self.planned.limit.as_secs_f64());
                let seconds = (end - since * scale).max(0.0);
                row.seconds_more_than = Some(seconds);
                row.kbit_s_less_than =
                    (seconds > 0.0).then(|| message.size.0 as f64 * 8e-3 / seconds);
            }
            (None, _) => {}
        }
        row
    }

    fn passed(&self, name: &str, dscp: dscp::Dscp, count: PassedCount) -> StudyRow {
        let mut row = self.row(name, dscp, &BTreeMap::new());
        row.row = format!("{}/{name}", self.planned.run);
        let seconds = self.measured.seconds * self.measured.scale.factor();
        row.kbit_s = (seconds > 0.0).then(|| count.octets as f64 * 8e-3 / seconds);
        let loss = count.loss_percent();
        row.more.extend(loss.map(|loss| (Measure::LossPercent.name().to_owned(), loss)));
        row
    }

    fn load(&self, load: &file::StudyLoad, measured: &LoadMeasured) -> StudyRow {
        let mut row = self.row(&load.name, load.dscp, &load.paper);
        row.no_fit_reason.clone_from(&load.no_fit_reason);
        let time = (measured.started, measured.ended);
        row.more.extend(self.tcp_factor(Transfer::of_load(self.planned, load, time)));
        let scale = self.measured.scale.factor();
        row.kbit_s = Some(measured.kbit_s / scale);
        row.skew = measured.skew;
        row.inside = measured.inside;
        let more = [
            (Measure::LossPercent, measured.loss_percent),
            (Measure::DelayMs, measured.delay_ms.map(|ms| ms * scale)),
            (Measure::DelayP99Ms, measured.delay_p99_ms.map(|ms| ms * scale)),
            (Measure::JitterMs, measured.jitter_ms.map(|ms| ms * scale)),
            (Measure::RoundTripMs, measured.round_trip_ms.map(|ms| ms * scale)),
            (Measure::RoundTripP99Ms, measured.round_trip_p99_ms.map(|ms| ms * scale)),
        ];
        let more = more.into_iter().filter_map(|(measure, value)| Some((measure, value?)));
        row.more.extend(more.map(|(measure, value)| (measure.name().to_owned(), value)));
        if load.protocol != file::Protocol::Tcp {
            row.tos_sent = Some(tos(load.dscp.number()));
            let code_points = measured.dscp_seen.keys().map(|dscp| tos(*dscp));
            row.tos_received = match measured.tos_seen.is_empty() {
                true => code_points.collect(),
                false => measured.tos_seen.keys().copied().collect(),
            };
        }
        row.paper_tos = load.paper_tos.clone();
        row
    }
}
