//! Rival explanations: every run with printed values under each rival's settings, in simulation.

use super::keep::Keep;
use super::progress::Progress;
use super::{Job, RunnerOptions, check, is_interrupted, job, make_all};
use crate::FoundStudy;
use anyhow::Result;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use study::measured::Environment;
use study::{Measured, Planned, Rival, StudyRow};
use text::UsageError;

/// What all rivals gave.
#[derive(Debug)]
pub struct Contest {
    /// In the study's order.
    pub tried: Vec<Tried>,
    /// Runs that could not be made, and why.
    pub failed: Vec<(String, String)>,
    /// Whether the user stopped it before the end.
    pub interrupted: bool,
}

/// A rival and what it gave.
#[derive(Debug)]
pub struct Tried {
    /// The rival.
    pub rival: Rival,
    /// Its runs.
    pub planned: Vec<Planned>,
    /// The rows of those that were made.
    pub rows: Vec<StudyRow>,
}

/// Makes the runs by which a study's rivals are judged. Runs that are made of the same are made once,
/// and all are kept; so a contest that was stopped continues. No names: all rivals.
///
/// # Errors
/// The study is invalid, or has none of these rivals ([`UsageError`]); the directory cannot be written.
pub fn compete(found: &FoundStudy, names: &[String], options: &RunnerOptions) -> Result<Contest> {
    // Faults of the study itself first, with their lines.
    found.plan()?;
    let rivals = named(found, names)?;
    let options = RunnerOptions { environment: Environment::Simulation, ..options.clone() };
    let keep = Keep::of_rivals(&options.directory)?;
    let mut jobs: Vec<Job> = Vec::new();
    let mut places = BTreeMap::new();
    // Of each rival, its runs and the places of their jobs.
    let mut wanted = Vec::new();
    for rival in rivals {
        let planned = found.plan_rival(&rival)?;
        let planned: Vec<Planned> = planned
            .into_iter()
            .map(|one| Planned { repeat: options.repeat.unwrap_or(one.repeat), ..one })
            .collect();
        let mut of_rival = Vec::new();
        for one in &planned {
            for time in 1..=one.repeat {
                let job = job(one, time, &options)?;
                let key =
                    keep.key(&job).unwrap_or_else(|| format!("{} {}", rival.name, job.name()));
                of_rival.push(*places.entry(key).or_insert_with(|| {
                    jobs.push(job);
                    jobs.len() - 1
                }));
            }
        }
        wanted.push((rival, planned, of_rival));
    }
    let kept = jobs.iter().map(|job| if options.again { None } else { keep.find(job) });
    let mut measured: Vec<Option<Measured>> = kept.collect();
    let left = left(&wanted, &jobs, &measured);
    for job in left.iter().filter_map(|place| jobs.get(*place)) {
        check(job).map_err(|wrong| UsageError::error(format!("{}: {wrong:#}", job.planned.id)))?;
    }
    let progress = Progress::new(&jobs, &measured, &options);
    let results = make_all(&jobs, &left, &keep, &progress, &options)?;
    drop(progress);
    let mut failed = Vec::new();
    for (place, result) in results {
        match (result, measured.get_mut(place), jobs.get(place)) {
            (Ok(made), Some(slot), _) => *slot = Some(made),
            (Err(error), _, Some(job)) if !is_interrupted() => {
                failed.push((job.name(), format!("{error:#}")));
            }
            _ => {}
        }
    }
    let tried = wanted.into_iter().map(|(rival, planned, places)| {
        let of_rival = places.iter().filter_map(|place| measured.get(*place)?.clone());
        let rows = study::rows(&found.study, &planned, &of_rival.collect::<Vec<_>>());
        Tried { rival, planned, rows }
    });
    Ok(Contest { tried: tried.collect(), failed, interrupted: is_interrupted() })
}

/// The rivals of these names.
fn named(found: &FoundStudy, names: &[String]) -> Result<Vec<Rival>> {
    let mut rivals = found.rivals()?;
    let unknown = names.iter().find(|name| !rivals.iter().any(|rival| rival.is_named(name)));
    if unknown.is_some() || rivals.is_empty() {
        let all: Vec<&str> = rivals.iter().map(|rival| rival.name.as_str()).collect();
        let what = match (unknown, all.is_empty()) {
            (_, true) => format!("{} has no hypotheses", found.name),
            (name, _) => format!(
                "{} has no hypothesis {}; there are {}",
                found.name,
                name.map_or("", String::as_str),
                all.join(", ")
            ),
        };
        return Err(UsageError::error(what));
    }
    rivals.retain(|rival| names.is_empty() || names.iter().any(|name| rival.is_named(name)));
    Ok(rivals)
}

/// What is still to be made: rival by rival, so that what is stopped has some of them whole, the longest
/// runs of each first.
fn left(
    wanted: &[(Rival, Vec<Planned>, Vec<usize>)],
    jobs: &[Job],
    measured: &[Option<Measured>],
) -> Vec<usize> {
    let (mut left, mut known) = (Vec::new(), BTreeSet::new());
    for (_, _, places) in wanted {
        let is_missing = |place: &&usize| measured.get(**place).is_some_and(Option::is_none);
        let mut own: Vec<usize> = places.iter().filter(is_missing).copied().collect();
        own.retain(|place| known.insert(*place));
        own.sort_by_key(|place| jobs.get(*place).map(|job| Reverse(job.expected)));
        left.extend(own);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const STUDY: &str = r#"
title = "A load, and how much of it passes"
network.topology = "pair"
[parameters.line]
value = "10Mbit"
why = "the rate of the line"
sets = ["network.links[bob.eth0].rate"]
[parameters.mark]
why = "decides nothing"
sets = ["loads[udp].dscp"]
[[experiment]]
name = "load"
title = "load"
shows = "load"
[[experiment.run]]
name = "half"
limit = "10s"
with = { line = "8Mbit" }
loads = [{ name = "udp", from = "alice", to = "bob", rate = "9Mbit", time = "500ms", paper = { kbit_s = 4500 } }]
[[experiment.run]]
name = "whole"
limit = "10s"
loads = [{ name = "udp", from = "alice", to = "bob", rate = "3Mbit", time = "500ms" }]
[[experiment.run]]
name = "other"
limit = "10s"
loads = [{ name = "udp", from = "alice", to = "bob", rate = "3Mbit", time = "500ms" }]
[[hypothesis]]
name = "slow"
what = "a slow line"
with = { line = "5Mbit" }
[[hypothesis]]
name = "marked"
what = "a slow line, and a mark"
base = "slow"
vary = { mark = ["CS0", "EF"] }
[[hypothesis]]
name = "fast"
what = "a fast line"
with = { line = "9.5Mbit" }
[distinguish]
items = ["load/whole/udp"]
"#;

    fn found(directory: &Path, text: &str) -> FoundStudy {
        let file = directory.join("study.toml");
        std::fs::write(&file, text).unwrap();
        crate::find(file.to_str().unwrap()).unwrap()
    }

    fn options(directory: &Path) -> RunnerOptions {
        RunnerOptions {
            only: Vec::new(),
            all: false,
            fits: false,
            environment: Environment::Testbed,
            scale: study::Scale::ONE,
            seed: 7,
            repeat: None,
            parallel: 2,
            path: None,
            directory: directory.join("out"),
            again: false,
            quiet: true,
        }
    }

    #[test]
    fn each_rival_has_the_runs_that_decide_and_no_run_is_made_twice() {
        let directory = tempfile::tempdir().unwrap();
        let found = found(directory.path(), STUDY);
        let options = options(directory.path());
        let contest = compete(&found, &[], &options).unwrap();
        let names: Vec<&str> = contest.tried.iter().map(|one| one.rival.name.as_str()).collect();
        assert_eq!(names, ["slow", "marked[mark=CS0]", "marked[mark=EF]", "fast"]);
        let items: Vec<Vec<&str>> = contest
            .tried
            .iter()
            .map(|one| one.rows.iter().map(|row| row.item.as_str()).collect())
            .collect();
        assert_eq!(items, vec![vec!["load/half/udp", "load/whole/udp"]; 4]);
        // The rival's line is that of the run, too, which has its own otherwise.
        let rates: Vec<f64> =
            contest.tried.iter().map(|one| one.rows.first().unwrap().kbit_s.unwrap()).collect();
        let [slow, zero, marked, fast] = rates.as_slice() else { panic!("four") };
        assert!(*slow < 5_100.0 && *fast > 8_000.0, "{rates:?}");
        assert!((slow - zero).abs() + (slow - marked).abs() < 1.0, "{rates:?}");
        // The load without the mark is made for slow and marked[mark=CS0], once for both.
        let files = || std::fs::read_dir(options.directory.join("runs")).unwrap().count();
        assert_eq!(files(), 6);
        // Nothing is left to make.
        let again = compete(&found, &["marked".to_owned()], &options).unwrap();
        assert_eq!(again.tried.len(), 2);
        assert_eq!(again.tried.first().unwrap().rows, contest.tried.get(1).unwrap().rows);
        assert_eq!(files(), 6);
    }

    #[test]
    fn what_is_wrong_with_a_hypothesis_has_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let options = options(directory.path());
        for (from, to, error) in [
            ("base = \"slow\"", "base = \"fast\"", "no hypothesis before it is fast"),
            ("name = \"marked\"", "name = \"slow\"", "another hypothesis has this name"),
            ("{ line = \"9.5", "{ lime = \"9.5", "there is no parameter lime"),
            ("load/whole/udp", "load/all/udp", "\"load/all/udp\": there is none"),
            ("links[bob.eth0].rate", "links[bob.eth1].rate", "no such element"),
        ] {
            let found = found(directory.path(), &STUDY.replacen(from, to, 1));
            let wrong = compete(&found, &[], &options).unwrap_err();
            assert!(wrong.is::<UsageError>(), "{wrong:?}");
            let wrong = wrong.to_string();
            assert!(wrong.contains(error) && wrong.contains("study.toml:"), "{wrong}");
        }
        let found = found(directory.path(), STUDY);
        let wrong = compete(&found, &["quick".to_owned()], &options).unwrap_err().to_string();
        assert!(wrong.contains("no hypothesis quick; there are slow, marked"), "{wrong}");
    }

    const TCP: &str = r#"
title = "A transfer, and what its hosts' TCP makes of it"
network.topology = "pair"
[parameters.delay]
value = "20ms"
why = "so that a window counts"
sets = ["network.links[bob.eth0].delay"]
[parameters.buffer]
why = "a rival"
sets = ["tcp.send_buffer"]
[parameters.nagle]
why = "a rival"
sets = ["tcp.nagle"]
[parameters.first]
why = "a rival"
sets = ["tcp.initial_window"]
[[experiment]]
name = "bulk"
title = "bulk"
shows = "bulk"
[[experiment.run]]
name = "tcp"
limit = "60s"
loads = [{ name = "tcp", from = "alice", to = "bob", protocol = "tcp", octets = "200kB", paper = { kbit_s = 800 } }]
[[hypothesis]]
name = "buffer"
what = "a small send buffer"
vary = { buffer = [4096, 65536] }
[[hypothesis]]
name = "first"
what = "an initial window of two"
with = { buffer = 4096, first = 2 }
[[hypothesis]]
name = "nagle"
what = "Nagle's algorithm"
with = { nagle = true }
"#;

    #[test]
    fn a_small_send_buffer_is_a_window() {
        let directory = tempfile::tempdir().unwrap();
        let (found, names) = (found(directory.path(), TCP), ["buffer", "first"].map(str::to_owned));
        let contest = compete(&found, &names, &options(directory.path())).unwrap();
        let rates: Vec<f64> =
            contest.tried.iter().map(|one| one.rows.first().unwrap().kbit_s.unwrap()).collect();
        let [small, large, first] = rates.as_slice() else { panic!("three") };
        // 4,096 octets each 40 ms.
        assert!((400.0..900.0).contains(small) && *large > 2.0 * small, "{rates:?}");
        assert!(
            (first - small).abs() < 0.1,
            "every simulation begins with two segments: {rates:?}"
        );
    }

    #[test]
    fn settings_of_the_simulation_alone_are_refused_on_the_testbed() {
        let directory = tempfile::tempdir().unwrap();
        for (set, error) in [
            ("nagle=true", "tcp.nagle: in simulation only"),
            ("first=2", "tcp.initial_window: in simulation only"),
            ("first=10", "the simulation's is fixed"),
            ("buffer=1024", "from 4 KiB"),
        ] {
            let mut found = found(directory.path(), TCP);
            found.set(set).unwrap();
            let wrong = crate::run(&found, &options(directory.path())).unwrap_err();
            assert!(wrong.is::<UsageError>() && wrong.to_string().contains(error), "{wrong:?}");
        }
    }
}
