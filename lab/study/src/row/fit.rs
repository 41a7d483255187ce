//! The second column: what a row has with values that were chosen to fit it.

use crate::plan::without_fit;
use crate::row::{Measure, StudyRow};
use router::policy::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A row's values in a second run, with settings that were chosen to fit what is printed of it. They
/// count for nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Its values, by the names of [`Measure`].
    pub values: BTreeMap<String, f64>,
    /// The settings that were chosen.
    pub with: BTreeMap<Name, toml::Value>,
    /// Why these.
    pub why: String,
}

/// Puts each row that fits into the row that it stands beside. One without such a row stays, and has
/// nothing to be compared with.
pub(crate) fn joined(rows: Vec<(StudyRow, BTreeMap<Name, toml::Value>)>) -> Vec<StudyRow> {
    let (fitting, plain): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(_, fitted)| !fitted.is_empty());
    let mut rows: Vec<StudyRow> = plain.into_iter().map(|(row, _)| row).collect();
    for (row, with) in fitting {
        let item = without_fit(&row.item);
        match rows.iter_mut().find(|plain| plain.item == item) {
            Some(plain) => plain.fit = Some(Fit::from_row(&row, with)),
            None => {
                let alone = StudyRow {
                    paper: BTreeMap::new(),
                    paper_seconds: None,
                    paper_tos: Vec::new(),
                    ratio: None,
                    ..row
                };
                rows.push(alone);
            }
        }
    }
    rows
}

impl Fit {
    fn from_row(row: &StudyRow, with: BTreeMap<Name, toml::Value>) -> Fit {
        let measures = Measure::NAMES.into_iter().filter_map(Measure::from_name);
        let values = measures.filter_map(|of| Some((of.name().to_owned(), row.value(of)?)));
        let why = row.why.last().cloned().unwrap_or_default();
        Fit { values: values.collect(), with, why }
    }
}
