//! The figures of sites of several nodes.

use super::model::{Costs, Limit, Machines, limit};
use super::world::{Spent, Store};
use crate::figures::{aligned, thousands};
use load::Outcome;
use serde::Serialize;

/// The part of each machine that the model uses.
pub(super) const LOAD: f64 = 0.7;
/// The numbers of nodes of the model.
const NODES: [u32; 5] = [1, 2, 4, 8, 16];

/// What one run gave, for each message where it is a cost.
#[derive(Clone, Debug, Serialize)]
struct Run {
    messages: u64,
    lost: u64,
    delivered_again: u64,
    messages_per_s: f64,
    accepted_ms_median: f64,
    delivered_ms_p99: f64,
    nodes_us: f64,
    primary_us: f64,
    standby_us: f64,
    log_octets: Option<f64>,
    transactions: Option<f64>,
}

/// The runs of one setup.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    setup: String,
    runs: Vec<Run>,
}

/// What the model gives for a number of nodes.
#[derive(Clone, Debug, Serialize)]
struct Predicted {
    nodes: u32,
    messages_per_s: f64,
    first: Limit,
}

/// All that was measured, and what follows from it.
#[derive(Debug, Serialize)]
pub(super) struct NodesResults {
    rows: Vec<Row>,
    /// Of the site of several nodes.
    costs: Option<Costs>,
    machines: Machines,
    predicted: Vec<Predicted>,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

impl Row {
    pub(super) fn new(store: Store, nodes: usize) -> Row {
        let plural = if nodes == 1 { "node" } else { "nodes" };
        let on = match store {
            Store::Embedded => "its own files",
            Store::Database => "PostgreSQL, no standby waited for",
            Store::Quorum => "PostgreSQL, one of two standbys",
        };
        Row { setup: format!("{nodes} {plural}, {on}"), runs: Vec::new() }
    }

    pub(super) fn name(&self) -> String {
        self.setup.clone()
    }

    /// `written`: octets of the log and transactions.
    pub(super) fn add(
        &mut self,
        outcome: &Outcome,
        before: Spent,
        after: Spent,
        written: Option<(f64, f64)>,
    ) {
        let messages = (outcome.delivered as f64).max(1.0);
        let each = |before: f64, after: f64| (after - before) * 1e6 / messages;
        self.runs.push(Run {
            messages: outcome.delivered,
            lost: outcome.accepted.saturating_sub(outcome.delivered),
            delivered_again: outcome.again,
            messages_per_s: outcome.delivered as f64 / outcome.seconds.max(1e-6),
            accepted_ms_median: outcome.accepted_ms.median,
            delivered_ms_p99: outcome.delivered_ms.p99,
            nodes_us: each(before.nodes, after.nodes),
            primary_us: each(before.primary, after.primary),
            standby_us: each(before.standbys, after.standbys) / 2.0,
            log_octets: written.map(|(octets, _)| octets / messages),
            transactions: written.map(|(_, transactions)| transactions / messages),
        });
    }

    fn median_of(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        median(self.runs.iter().map(figure).collect())
    }

    fn rate(&self) -> f64 {
        self.median_of(|run| run.messages_per_s)
    }

    fn costs(&self) -> Costs {
        Costs {
            nodes_us: self.median_of(|run| run.nodes_us),
            primary_us: self.median_of(|run| run.primary_us),
            standby_us: self.median_of(|run| run.standby_us),
            log_octets: self.median_of(|run| run.log_octets.unwrap_or_default()),
        }
    }

    fn cells(&self, first: f64) -> Vec<String> {
        let rates = self.runs.iter().map(|run| run.messages_per_s);
        let [least, most] = [rates.clone().fold(f64::MAX, f64::min), rates.fold(0.0, f64::max)];
        let costs = self.costs();
        let is_shared = self.runs.iter().all(|run| run.log_octets.is_some());
        let shared = |text: String| if is_shared { text } else { "-".to_owned() };
        vec![
            self.setup.clone(),
            thousands(self.rate() as u64),
            format!("{} to {}", thousands(least as u64), thousands(most as u64)),
            format!("{:.2}", self.rate() / first.max(1e-6)),
            format!("{:.1}", self.median_of(|run| run.accepted_ms_median)),
            format!("{:.0}", self.median_of(|run| run.delivered_ms_p99)),
            format!("{:.0}", costs.nodes_us),
            shared(format!("{:.0}", costs.primary_us)),
            shared(format!("{:.0}", costs.standby_us)),
            shared(thousands(costs.log_octets as u64)),
            shared(format!("{:.2}", self.median_of(|run| run.transactions.unwrap_or_default()))),
        ]
    }
}

impl NodesResults {
    /// The last row is that of the site of several nodes.
    pub(super) fn new(rows: Vec<Row>, machines: Machines) -> NodesResults {
        let costs = rows.last().map(Row::costs);
        let predict = |nodes: u32| {
            let (messages_per_s, first) = limit(&costs?, &machines, nodes);
            Some(Predicted { nodes, messages_per_s, first })
        };
        let predicted = NODES.into_iter().filter_map(predict).collect();
        NodesResults { rows, costs, machines, predicted }
    }

    /// Nothing was lost.
    pub(super) fn is_sound(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.runs).all(|run| run.lost == 0 && run.messages > 0)
    }

    pub(super) fn text(&self) -> String {
        let header = [
            "setup",
            "messages/s",
            "from, to",
            "ratio",
            "accepted ms",
            "p99 ms",
            "nodes us",
            "primary us",
            "standby us",
            "log octets",
            "transactions",
        ];
        let first = self.rows.first().map_or(0.0, Row::rate);
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.cells(first)).collect();
        let machines = &self.machines;
        let predicted: Vec<Vec<String>> = self
            .predicted
            .iter()
            .map(|p| {
                let rate = thousands(p.messages_per_s as u64);
                vec![p.nodes.to_string(), rate, p.first.words().to_owned()]
            })
            .collect();
        format!(
            "{}\nThe model: machines of {} processors, {:.0} Mbit/s to the standbys, disks of {:.0} MB/s, each used for \
             {:.0} %.\n\n{}",
            aligned(&header, &rows),
            machines.processors,
            machines.network * 8.0 / 1e6,
            machines.disk / 1e6,
            machines.load * 100.0,
            aligned(&["nodes", "messages/s", "used up first"], &predicted),
        )
    }
}
