//! A study's file.

mod parameter;

pub use parameter::{Headline, Parameter, ParameterKind};

use crate::StudyError;
use crate::hypothesis::{Distinguish, Hypothesis};
use base::Precedence;
use dscp::Dscp;
use router::Rate;
use router::policy::{Name, OctetSize, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use toml::{Table, Value};

/// Former names of keys and values, and their present names.
const RENAMED: [(&str, &str); 6] = [
    ("ground", "environment"),
    ("further", "optional"),
    ("beyond", "above_scale"),
    ("missed", "no_fit_reason"),
    ("real", "testbed"),
    ("virtual", "simulation"),
];

/// The reader's message about a study file. Where the message is about the former name of a key or a
/// value, it names the present one instead.
pub fn with_new_name(message: &str) -> String {
    let unknown = ["unknown field `", "unknown variant `"];
    let old = unknown.iter().find_map(|what| message.strip_prefix(what)?.split('`').next());
    match RENAMED.iter().find(|(name, _)| Some(*name) == old) {
        Some((old, new)) => format!("`{old}` has a new name: `{new}`"),
        None => message.to_owned(),
    }
}

/// A study: what its authors did, or what we ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a study")]
pub struct Study {
    /// Text to show.
    pub title: String,
    /// The publication that the figures were printed in.
    #[serde(default)]
    pub source: String,
    /// The subject of the study, as text to show.
    #[serde(default)]
    pub about: String,
    /// The network of all experiments.
    pub network: StudyNetwork,
    /// The one setting of messaging and hosts beside all printed values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<Headline>,
    /// The values that the publication leaves open, by name.
    #[serde(default)]
    pub parameters: BTreeMap<Name, Parameter>,
    /// The MTAs and their channels, where messages are sent.
    #[serde(default)]
    pub mail: Option<Mail>,
    /// Rival explanations of what was printed.
    #[serde(rename = "hypothesis", default, skip_serializing_if = "Vec::is_empty")]
    pub hypotheses: Vec<Hypothesis>,
    /// Rows by which they can be distinguished.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub distinguish: Distinguish,
    /// In the order they are shown.
    #[serde(rename = "experiment")]
    pub experiments: Vec<Experiment>,
    /// Pictures of what several runs gave, beside those that every experiment has.
    #[serde(rename = "figure", default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<StudyFigure>,
    /// Pictures of cells, where rows of several runs meet.
    #[serde(rename = "grid", default, skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<StudyGrid>,
    /// Figures that were printed, drawn of ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<LoadFigure>,
}

impl Study {
    /// Gives a parameter a value in all runs but those that vary it. It replaces the value of the
    /// parameter, of experiments and of runs. The parameter's reason then names who set it.
    ///
    /// # Errors
    /// There is no such parameter; with the names of all.
    pub fn set(&mut self, name: &str, value: &Value, by: &str) -> Result<(), StudyError> {
        let Some(parameter) = self.parameters.get_mut(name) else {
            let names: Vec<&str> = self.parameters.keys().map(String::as_str).collect();
            let what = match names.is_empty() {
                true => "the study has no parameters".to_owned(),
                false => format!("there is no such parameter; there are {}", names.join(", ")),
            };
            return Err(StudyError::at(name, what));
        };
        parameter.why = match &parameter.value {
            Some(before) => format!("Set {by}, instead of {before}. {}", parameter.why),
            None => format!("Set {by}. {}", parameter.why),
        };
        parameter.value = Some(value.clone());
        // Whoever sets it tries what the file does not have.
        parameter.range = vec![value.clone()];
        if let Some(headline) = &mut self.headline {
            headline.with.remove(name);
        }
        for experiment in &mut self.experiments {
            experiment.with.remove(name);
            experiment.runs.iter_mut().for_each(|run| {
                run.with.remove(name);
                run.fit.remove(name);
                if run.fit.is_empty() {
                    run.fit_why.clear();
                }
            });
        }
        Ok(())
    }
}

/// A figure that was printed: loads over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a figure")]
pub struct LoadFigure {
    /// Its number.
    pub number: u32,
    /// Text to show.
    pub title: String,
    /// The measure that is drawn.
    pub value: OverTime,
    /// A line each: its name, and `experiment/run/load`.
    pub items: Vec<(String, String)>,
}

/// The measure of a figure over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverTime {
    /// Throughput at the receiver, in kbit/s.
    KbitS,
    /// One-way delay, mean.
    DelayMs,
    /// Jitter, mean.
    JitterMs,
}

/// A network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a network")]
pub struct StudyNetwork {
    /// The name of its topology.
    pub topology: Name,
}

/// The MTAs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of the mail settings")]
pub struct Mail {
    /// By name, the host each is on.
    pub sites: BTreeMap<Name, Name>,
    /// The site that submits.
    pub from: Name,
    /// The site of the recipient.
    pub to: Name,
    /// From when to when a message's seconds count.
    #[serde(default)]
    pub measured: MessageMeasure,
    /// Keys of the MTAs' configuration.
    #[serde(default)]
    pub mta: Table,
    /// Keys of each channel's configuration, where it has none of its own.
    #[serde(default)]
    pub channel: Table,
    /// The channels between the two.
    pub channels: Vec<StudyChannel>,
}

/// A P1 channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a channel")]
pub struct StudyChannel {
    /// Its name.
    pub name: Name,
    /// The precedences that may use the channel.
    pub precedences: Vec<Precedence>,
    /// The mark of its connections.
    pub dscp: Dscp,
    /// The TCP port at which the other side listens, 1 to 65535.
    pub port: u16,
    /// Further keys of its configuration.
    #[serde(default)]
    pub keys: Table,
}

/// The stretch that a message's seconds cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageMeasure {
    /// From the submission's first octet to the delivery.
    #[default]
    SubmittedToDelivered,
    /// From the start of the transfer to its confirm.
    StartedToConfirmed,
}

/// Runs that show one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of an experiment")]
pub struct Experiment {
    /// Its name, unlike any other.
    pub name: Name,
    /// The table its rows belong to; its name where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Name>,
    /// Text to show.
    pub title: String,
    /// The result that the experiment shows, as text.
    pub shows: String,
    /// The environments in which it can be run.
    #[serde(default)]
    pub environment: Environments,
    /// Values of parameters for all its runs.
    #[serde(default)]
    pub with: BTreeMap<Name, Value>,
    /// Why they are others than elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Whether its runs have the setting of the headline; where absent, those with printed values have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<bool>,
    /// Whether `lab run` leaves it out, unless the command line names it or has `--all`.
    #[serde(default)]
    pub optional: bool,
    /// Its runs.
    #[serde(rename = "run")]
    pub runs: Vec<StudyRun>,
    /// Printed values that are of two rows, or a part of something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<PrintedRelation>,
    /// The expectations: conditions that its results must meet.
    #[serde(default)]
    pub expect: Vec<Expect>,
}

/// A printed value that is of two rows: how much more one has than another, or what percentage; or
/// what percentage of a number. It is a row of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a printed relation")]
pub struct PrintedRelation {
    /// Its name, unlike any other of its experiment.
    pub name: Name,
    /// In words.
    pub what: String,
    /// `run/item.value` of this experiment, or `experiment/run/item.value`.
    pub value: String,
    /// The value that is 100 percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The value that is taken from it, in place of `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minus: Option<String>,
    /// The number that is 100 percent, in place of `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent_of: Option<f64>,
    /// What was printed, by the name of the measure; `base_percent` of a percentage.
    pub paper: BTreeMap<Name, f64>,
    /// Why the measured value does not fit the printed one, where that is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub no_fit_reason: String,
}

/// The environments in which an experiment can run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Environments {
    /// The one that the command line selects.
    #[default]
    Any,
    /// The testbed only.
    Testbed,
    /// The simulation only: the experiment takes too long otherwise, or has many runs.
    Simulation,
}

/// A network brought up, and what passes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a run")]
pub struct StudyRun {
    /// Its name, unlike any other of its experiment.
    pub name: Name,
    /// Values of parameters.
    #[serde(default)]
    pub with: BTreeMap<Name, Value>,
    /// Why they are others than elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Parameters that take each of these values: a run for each combination.
    #[serde(default)]
    pub vary: BTreeMap<Name, Vec<Value>>,
    /// Only so many of the combinations: a covering array, in which each pair of values comes first, and
    /// then as many triples as there is room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<usize>,
    /// Values of parameters that fit what is printed of this run: a second run beside it, marked, that
    /// counts for nothing. It is made in simulation, where the command line has `--fits` or `--all`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fit: BTreeMap<Name, Value>,
    /// Why these fit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fit_why: String,
    /// What is submitted, in this order where the moment is the same.
    #[serde(default)]
    pub messages: Vec<StudyMessage>,
    /// The loads that are sent beside the messages.
    #[serde(default)]
    pub loads: Vec<StudyLoad>,
    /// The time after which the run is given up.
    pub limit: Span,
    /// How often it is made, each time with the next seed: rows have medians.
    #[serde(default = "once")]
    pub repeat: u32,
    /// The highest `--scale` of this run: above it, the time that programs take hides what the network does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_most: Option<u32>,
    /// What happens when `--scale` is above `scale_most`.
    #[serde(default)]
    pub above_scale: AboveScale,
    /// What passes these ports is captured, and analysed by code point: a further two rows of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysed: Option<RouterPath>,
}

/// The way through a router: packets come in at one of its ports and leave at another, which has a queueing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of two ports")]
pub struct RouterPath {
    /// Where they come in: `router.port`.
    pub from: String,
    /// Where they leave: `router.port`.
    pub to: String,
}

impl StudyRun {
    /// Whether anything was printed of it.
    pub fn is_printed(&self) -> bool {
        self.messages.iter().any(|message| !message.paper.is_empty())
            || self.loads.iter().any(|load| !load.paper.is_empty() || !load.paper_tos.is_empty())
    }
}

/// What happens to a run when `--scale` is above its `scale_most`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AboveScale {
    /// It runs at `scale_most`.
    #[default]
    Slower,
    /// It runs in the simulation.
    Simulation,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a message")]
pub struct StudyMessage {
    /// Its name, unlike any other of its run; that of its precedence where absent.
    #[serde(default)]
    pub name: Name,
    /// Its precedence.
    pub precedence: Precedence,
    /// Octets of its body.
    pub size: OctetSize,
    /// Whether it is sent, for a parameter.
    #[serde(default = "is_sent", skip_serializing_if = "is_true")]
    pub sent: bool,
    /// The time or the event after which it is submitted.
    #[serde(default)]
    pub start: StudyStart,
    /// The message whose rate is 100 percent of its own: `experiment/run/message`. `{NAME}` in it is the
    /// value of a parameter here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Where it waits for packets of others, for its bound: see [`crate::bound`]. It needs a base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<StudyBound>,
    /// What was printed, by the names of a row's values, or those with `_more_than` or `_less_than`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paper: BTreeMap<Name, f64>,
    /// Why the measured values do not fit the printed ones, where that is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub no_fit_reason: String,
}

fn is_sent() -> bool {
    true
}

fn is_true(is: &bool) -> bool {
    *is
}

/// What the bound of a message is computed from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a bound")]
pub struct StudyBound {
    /// The ports at which it waits, each named as `router.port`.
    pub hops: Vec<String>,
    /// From when a full packet begins at a hop until what it sets free arrives there, on the idle path.
    pub round_trip: Span,
}

/// A moment of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StudyStart {
    /// From its beginning.
    At(Span),
    /// Once a message has come so far.
    After(StartAfter),
}

/// After another message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a start")]
pub struct StartAfter {
    /// The name of the other message of the run.
    pub after: Name,
    /// The stage that the other message must have reached.
    #[serde(default)]
    pub stage: StudyStage,
    /// So long after that.
    #[serde(default)]
    pub delay: Span,
}

impl Default for StudyStart {
    fn default() -> StudyStart {
        StudyStart::At(Span::default())
    }
}

/// A stage in the life of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyStage {
    /// Its MTA has it.
    Accepted,
    /// Its transfer has begun.
    #[default]
    Started,
    /// Its recipient has it.
    Delivered,
}

/// Packets beside the messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a load")]
pub struct StudyLoad {
    /// Its name, unlike any other of its run.
    pub name: Name,
    /// The host that sends.
    pub from: Name,
    /// The host that receives.
    pub to: Name,
    /// The protocol of the load.
    #[serde(default)]
    pub protocol: Protocol,
    /// The address it is sent from, one of `from`'s; the first one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// The address it is sent to, one of `to`'s; the first one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<IpAddr>,
    /// Bits a second of IP packets; of TCP as fast as it goes where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Octets of a packet's payload, or of one write.
    #[serde(default = "payload")]
    pub payload: u16,
    /// Most octets of payload in a segment, of TCP: what is below [`MIN_SEGMENT`] is that. UDP has
    /// `payload`, so that a parameter can set both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<u16>,
    /// Its mark.
    #[serde(default = "best_effort")]
    pub dscp: Dscp,
    /// So many at once, which share the rate.
    #[serde(default = "one")]
    pub flows: u16,
    /// Chance in the time between two packets, in percent of it: against their falling into step.
    #[serde(default)]
    pub jitter_percent: u8,
    /// When it starts, from the run's beginning.
    #[serde(default)]
    pub start: Span,
    /// How long it lasts; to the end of the run where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Before anything else of the run begins, its path is probed for so long, and what its receiver's
    /// clock does beside the sender's is found and taken off its delays. Times of the run count from
    /// the end of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probing: Option<Span>,
    /// What its receiver's clock is made to do beside the sender's (UDP only): to see that it is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<StudyClock>,
    /// Where it is received; a port that no other has, where absent. Further flows have those behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// On the testbed its packets are made in the process of the routers, as if they had come over
    /// its host's link, and are counted and taken off before they come to the other host (UDP only):
    /// sockets would take more of the machine than the routers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
    /// Octets of payload after which it ends (TCP only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octets: Option<OctetSize>,
    /// The load or message whose rate is 100 percent of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The printed values, by the name of the measure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paper: BTreeMap<Name, f64>,
    /// The TOS octets with which it arrived, as printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paper_tos: Vec<u8>,
    /// Why the measured values do not fit the printed ones, where that is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub no_fit_reason: String,
}

/// A clock beside another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a clock")]
pub struct StudyClock {
    /// So far ahead when the run begins.
    #[serde(default)]
    pub ahead_ms: f64,
    /// What it gains: 1 is a microsecond a second.
    #[serde(default)]
    pub drift_ppm: f64,
}

fn is_empty(distinguishing: &Distinguish) -> bool {
    distinguishing.items.is_empty()
}

/// The shortest limit of a segment that Linux takes.
pub const MIN_SEGMENT: u16 = 88;

fn payload() -> u16 {
    1_000
}

fn once() -> u32 {
    1
}

fn best_effort() -> Dscp {
    Dscp::CS0
}

fn one() -> u16 {
    1
}

/// The protocol of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// At its rate, without regard to losses.
    #[default]
    Udp,
    /// With the congestion control of its host.
    Tcp,
    /// UDP at its rate that is sent back, each packet with the mark it came with: measured where it
    /// was sent, there and back.
    Echo,
}

/// What must be so: a value, or its ratio to or difference from another, between bounds; or the code points a load
/// arrived with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of an expectation")]
pub struct Expect {
    /// In words.
    pub what: String,
    /// `run/item.value` of this experiment, or `experiment/run/item.value`; `run/*.seconds` is the sum of
    /// all messages of a run; without `.value` where `arrives` is given.
    pub value: String,
    /// Of a message's rate, only while this message of its run was in transfer: what left the port with
    /// the policy of its code point, in IP packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<Name>,
    /// Of all combinations of a run that varies parameters, those with these values: the value that is
    /// furthest from what it must be. The reference names the run without values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<BTreeMap<Name, Value>>,
    /// The value it is divided by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The value that is taken from it, in place of `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minus: Option<String>,
    /// At least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// At most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Of a load: these code points arrived, and no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrives: Vec<Dscp>,
    /// The only environment on which it must.
    #[serde(default)]
    pub environment: Environments,
}

/// A picture of values over a parameter that is varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a figure")]
pub struct StudyFigure {
    /// Its name, unlike any other: that of its file.
    pub name: Name,
    /// Text to show.
    pub title: String,
    /// The result that the figure shows, as text.
    #[serde(default)]
    pub about: String,
    /// The parameter along the axis.
    pub x: Name,
    /// From above to below.
    #[serde(rename = "panel")]
    pub panels: Vec<FigurePanel>,
}

/// A picture of cells: the lowest of a value among the rows that meet in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a grid")]
pub struct StudyGrid {
    /// Its name, unlike any other: that of its file.
    pub name: Name,
    /// Text to show.
    pub title: String,
    /// The result that the grid shows, as text.
    #[serde(default)]
    pub about: String,
    /// The value of a row.
    pub value: Name,
    /// `experiment/run/item`, each run as in the file, without the values of what it varies.
    pub of: Vec<String>,
    /// The parameters whose values are the rows of cells.
    pub down: Vec<Name>,
    /// Those whose values are the columns.
    pub across: Vec<Name>,
    /// A value of at least this is as it should be.
    pub good: f64,
    /// One of at least this nearly is.
    pub fair: f64,
}

/// Lines with one axis of values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a panel")]
pub struct FigurePanel {
    /// At the axis, with the unit.
    pub label: String,
    /// The value of a row that is drawn.
    pub y: Name,
    /// The lines.
    pub lines: Vec<FigureLine>,
}

/// A line: an item of the runs that differ in the parameter along the axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a line")]
pub struct FigureLine {
    /// In the legend.
    pub name: String,
    /// `experiment/run/item`, the run as in the file, without the values of what it varies.
    pub of: String,
    /// Values of other parameters that the run varies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<Name, Value>,
    /// Its place among the eight colours, 0 to 7; where absent, that of its name among those of the
    /// figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<u8>,
    /// Whether it is dashed.
    #[serde(default)]
    pub dashed: bool,
}

impl FigureLine {
    /// Whether a point of it is of this run: one of those its run in the file stands for, with the
    /// values that are asked for.
    pub fn is_of(&self, planned: &crate::Planned) -> bool {
        let id = planned.id.split('[').next().unwrap_or_default();
        let run = self.of.rsplit_once('/').map(|(run, _)| run);
        let is = |(name, value): (&Name, &Value)| planned.settings.get(name) == Some(value);
        run == Some(id) && self.with.iter().all(is)
    }

    /// Whether an item, `experiment/run[...]/item`, is the one of its run.
    pub fn is_item(&self, item: &str) -> bool {
        let last = |text: &str| text.rsplit('/').next().map(str::to_owned);
        last(item) == last(&self.of)
    }
}
