//! Where the time of a message goes, by the logs of both MTAs: one clock, to the microsecond.

use anyhow::Result;
use load::Summary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use testbed::{DaemonEvent, Site, answer::elapsed};

/// What passes between two events of a message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Stage {
    /// From what to what.
    pub(super) name: String,
    /// The duration of the stage, in ms.
    pub(super) ms: Summary,
}

/// An event at one of the two sites, by its number.
type At = (usize, &'static str);

/// Each with the event it begins and the one it ends with.
const STAGES: [(&str, At, At); 4] = [
    ("committed at A, to its transfer", (0, "submitted"), (0, "transfer_started")),
    ("transfer begun, to committed at B", (0, "transfer_started"), (1, "received")),
    ("committed at B, to its confirm at A", (1, "received"), (0, "transfer_confirmed")),
    ("committed at B, to delivered", (1, "received"), (1, "delivered")),
];

/// The messages of one precedence that passed between two sites, in order of their transfers.
pub(super) struct Passages {
    /// When each event was, by its site and name; the first of each.
    all: Vec<BTreeMap<(usize, String), String>>,
}

impl Passages {
    /// Reads both logs, which are in JSON.
    ///
    /// # Errors
    /// One cannot be read.
    pub(super) fn read(sites: [&Site; 2], precedence: &str) -> Result<Passages> {
        Ok(Passages::from_logs(&[sites[0].events()?, sites[1].events()?], precedence))
    }

    fn from_logs(logs: &[Vec<DaemonEvent>], precedence: &str) -> Passages {
        let first = logs.iter().take(1).flatten();
        let begun = first.filter(|e| {
            e.event == "transfer_started" && e.precedence.as_deref() == Some(precedence)
        });
        let order: Vec<&str> = begun.filter_map(|e| e.mts_id.as_deref()).collect();
        let mut times: BTreeMap<&str, BTreeMap<(usize, String), String>> =
            order.iter().map(|id| (*id, BTreeMap::new())).collect();
        for (site, log) in logs.iter().enumerate() {
            for event in log {
                let of_it = event.mts_id.as_deref().and_then(|id| times.get_mut(id));
                if let Some(of_it) = of_it {
                    let key = (site, event.event.clone());
                    of_it.entry(key).or_insert_with(|| event.timestamp.clone());
                }
            }
        }
        Passages { all: order.iter().filter_map(|id| times.remove(id)).collect() }
    }

    /// The stages of those whose place in the order is wanted.
    pub(super) fn stages(&self, wanted: impl Fn(usize) -> bool) -> Vec<Stage> {
        let some: Vec<_> =
            self.all.iter().enumerate().filter(|(at, _)| wanted(*at)).map(|(_, t)| t).collect();
        let stage = |(name, from, to): &(&str, At, At)| {
            let at = |times: &BTreeMap<(usize, String), String>, (site, event): &At| {
                times.get(&(*site, (*event).to_owned())).cloned()
            };
            let micros = some.iter().filter_map(|times| {
                let passed = elapsed(&at(times, from)?, &at(times, to)?)?;
                u64::try_from(passed.as_micros()).ok()
            });
            Stage { name: (*name).to_owned(), ms: Summary::from_micros(micros.collect()) }
        };
        STAGES.iter().map(stage).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_between_the_events_of_one_message() {
        let log = |lines: &[(&str, &str, u32)]| {
            let line = |(event, id, micros): &(&str, &str, u32)| {
                format!(
                    r#"{{"timestamp":"2026-05-04T03:02:01.{micros:06}Z","level":"INFO","event":"{event}","mts_id":"{id}","precedence":"flash"}}"#
                )
            };
            DaemonEvent::from_log(&lines.iter().map(line).collect::<Vec<_>>().join("\n"))
        };
        let a = log(&[
            ("submitted", "1", 0),
            ("submitted", "2", 50),
            ("transfer_started", "2", 60),
            ("transfer_started", "1", 1_000),
            ("transfer_confirmed", "2", 90),
        ]);
        let b = log(&[("received", "2", 80), ("delivered", "2", 200), ("received", "1", 1_500)]);
        let passages = Passages::from_logs(&[a, b], "flash");
        let median = |wanted: usize| -> Vec<f64> {
            passages.stages(|at| at == wanted).iter().map(|stage| stage.ms.median).collect()
        };
        assert_eq!(median(0), [0.01, 0.02, 0.01, 0.12], "the second was transferred first");
        assert_eq!(median(1), [1.0, 0.5, 0.0, 0.0]);
    }
}
