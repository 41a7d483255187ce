//! What a flood came to, for people and machines.

use super::super::figures::{aligned, markdown, thousands};
use super::super::stages::Stage;
use anyhow::Result;
use load::Summary;
use serde::{Deserialize, Serialize};
use xtask::marks::replace;

/// Parts of docs/performance.md.
pub(in super::super) const PARTS: [&str; 2] = ["flood", "flood-stages"];

/// What else is there while the Flashes pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Load {
    /// Nothing.
    Idle,
    /// Routine, 70 % of what can be relayed.
    Paced,
    /// Routine, as fast as it is accepted.
    Saturated,
}

impl Load {
    pub(super) const ALL: [Load; 3] = [Load::Idle, Load::Paced, Load::Saturated];
    /// The phases of a round.
    pub(super) const ROUND: [Load; 4] = [Load::Idle, Load::Paced, Load::Idle, Load::Saturated];

    pub(super) fn name(self) -> &'static str {
        match self {
            Load::Idle => "idle",
            Load::Paced => "70 %",
            Load::Saturated => "saturated",
        }
    }

    pub(super) fn place(self) -> usize {
        Load::ALL.iter().position(|load| *load == self).unwrap_or_default()
    }
}

/// All that was measured.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(in super::super) struct FloodResults {
    pub(super) rows: Vec<FloodRow>,
}

/// One `mta`, one size, one kind of flood.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct FloodRow {
    /// `now`, or `before`.
    mta: String,
    load: Load,
    /// Octets of text of a Routine.
    size: usize,
    /// Messages a second each way at which the relay is at its limit.
    saturation_per_s: f64,
    /// Of the medians from submission to delivery.
    ratio: f64,
    /// Of those that 95 of 100 do not exceed.
    ratio_p95: f64,
    idle: Times,
    flood: Times,
}

/// The Flashes under one kind of load.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Times {
    /// The number of Flash messages.
    flashes: usize,
    /// Routine delivered a second meanwhile, both ways together.
    routine_per_s: f64,
    accepted_ms: Summary,
    delivered_ms: Summary,
    stages: Vec<Stage>,
}

impl Times {
    /// Of times in microseconds.
    pub(super) fn new(
        accepted: Vec<u64>,
        delivered: Vec<u64>,
        stages: Vec<Stage>,
        routine_per_s: f64,
    ) -> Times {
        Times {
            flashes: delivered.len(),
            routine_per_s: if routine_per_s.is_finite() { routine_per_s } else { 0.0 },
            accepted_ms: Summary::from_micros(accepted),
            delivered_ms: Summary::from_micros(delivered),
            stages,
        }
    }

    /// The medians of all stages, with their names: the first and the last by the users' clock.
    fn medians(&self) -> Vec<(String, f64)> {
        let mut all = vec![("submission, to committed at A".to_owned(), self.accepted_ms.median)];
        all.extend(self.stages.iter().map(|stage| (stage.name.clone(), stage.ms.median)));
        all.push(("submission, to delivery".to_owned(), self.delivered_ms.median));
        all
    }
}

const HEADER: [&str; 11] = [
    "Routine, octets",
    "flood",
    "mta",
    "Routine/s",
    "Flashes",
    "idle, ms",
    "p95",
    "flood, ms",
    "p95",
    "ratio",
    "of p95",
];

const STAGES: [&str; 5] = ["Routine, octets", "flood", "mta", "median of", "idle / flood, ms"];

impl FloodRow {
    pub(super) fn new(
        mta: &str,
        load: Load,
        (size, saturation_per_s): (usize, f64),
        idle: Times,
        flood: Times,
    ) -> FloodRow {
        let ratio =
            |of: fn(&Summary) -> f64| of(&flood.delivered_ms) / of(&idle.delivered_ms).max(1e-6);
        FloodRow {
            mta: mta.to_owned(),
            load,
            size,
            saturation_per_s,
            ratio: ratio(|s| s.median),
            ratio_p95: ratio(|s| s.p95),
            idle,
            flood,
        }
    }

    fn what(&self) -> Vec<String> {
        let size = thousands(u64::try_from(self.size).unwrap_or(u64::MAX));
        vec![size, self.load.name().to_owned(), self.mta.clone()]
    }

    fn cells(&self) -> Vec<String> {
        let ms = |ms: f64| format!("{ms:.2}");
        let (idle, flood) = (&self.idle.delivered_ms, &self.flood.delivered_ms);
        let mut cells = self.what();
        cells.extend([
            thousands(self.flood.routine_per_s as u64),
            self.flood.flashes.to_string(),
            ms(idle.median),
            ms(idle.p95),
            ms(flood.median),
            ms(flood.p95),
            ms(self.ratio),
            ms(self.ratio_p95),
        ]);
        cells
    }

    fn stages(&self) -> Vec<Vec<String>> {
        let both = self.idle.medians().into_iter().zip(self.flood.medians());
        let line = |((name, idle), (_, flood)): ((String, f64), (String, f64))| {
            let mut cells = self.what();
            cells.extend([name, format!("{idle:.2} / {flood:.2}")]);
            cells
        };
        both.map(line).collect()
    }
}

impl FloodResults {
    fn tables(&self) -> [Vec<Vec<String>>; 2] {
        let cells = self.rows.iter().map(FloodRow::cells).collect();
        [cells, self.rows.iter().flat_map(FloodRow::stages).collect()]
    }

    /// For people.
    pub(in super::super) fn text(&self) -> String {
        let [rows, stages] = self.tables();
        format!(
            "a Flash of 1 kB, submission to delivery, idle and in a flood of Routine\n{}\n{}",
            aligned(&HEADER, &rows),
            aligned(&STAGES, &stages)
        )
    }

    /// The page with these figures between its marks.
    pub(in super::super) fn put_into(&self, page: &str) -> Result<String> {
        let [rows, stages] = self.tables();
        let page = replace(page, PARTS[0], &markdown(&HEADER, &rows))?;
        replace(&page, PARTS[1], &markdown(&STAGES, &stages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_ratios_and_a_line_for_each_stage() {
        let stage =
            |ms: u64| vec![Stage { name: "x".to_owned(), ms: Summary::from_micros(vec![ms]) }];
        let idle = Times::new(vec![1_000], vec![2_000], stage(500), f64::NAN);
        let flood = Times::new(vec![3_000], vec![5_000, 6_000, 9_000], stage(700), 1_234.5);
        let row = FloodRow::new("now", Load::Paced, (1_000_000, 99.0), idle, flood);
        let cells = "1,000,000|70 %|now|1,234|3|2.00|2.00|6.00|9.00|3.00|4.50";
        assert_eq!(row.cells().join("|"), cells);
        let stages = row.stages();
        let of = |at: usize| (stages[at][3].as_str(), stages[at][4].as_str());
        assert_eq!((of(0).1, of(1), of(2).1), ("1.00 / 3.00", ("x", "0.50 / 0.70"), "2.00 / 6.00"));
        let report = FloodResults { rows: vec![row] };
        let page =
            "<!-- figures: flood -->\n<!-- end -->\n<!-- figures: flood-stages -->\n<!-- end -->\n";
        let page = report.put_into(page).unwrap();
        assert!(page.contains(&cells.replace('|', " | ")) && report.text().contains("4.50"));
    }
}
