//! The mutants: what is left out or done wrong at both sites, one thing at a time.
//!
//! `mutants.txt` names for each the place of the matrix where a checker notices it, and that checker; or
//! why none does. `FIND=1` searches the matrix for these places and prints the file anew; `FIND=name` does
//! for one mutant, `ONLY=variant/variant` in these, `STEP=n` at each `n`th operation.

use crate::check::Broken;
use crate::run::run;
use crate::scenario::Case;
use crate::variants::{Place, VARIANTS};
use store::safeguard::Safeguard;
use testkit::real::Lie;
use testkit::real::Mutant::{self, Lies, NoSync, Without};
use testkit::real::SyncOf::{Files, Names};
use testkit::real::When::{Always, Opening, Running};

/// The seeds with which what is left to chance is tried.
const SEEDS: u64 = 5;

/// All of them.
pub(crate) const MUTANTS: &[(&str, Mutant)] = &[
    ("no sync of the log", NoSync(Files(".segment"), Running)),
    ("no sync of the log while it opens", NoSync(Files(".segment"), Opening)),
    ("no sync of contents in files", NoSync(Files(".body"), Always)),
    ("no sync of runs of keys", NoSync(Files(".new"), Running)),
    ("no sync of the epoch in its file", NoSync(Files("epoch.new"), Always)),
    ("no sync of the names of segments", NoSync(Names("log"), Running)),
    ("no sync of the names of segments while it opens", NoSync(Names("log"), Opening)),
    ("no sync of the names of contents", NoSync(Names("bodies"), Running)),
    ("no sync of the names of contents while it opens", NoSync(Names("bodies"), Opening)),
    ("no sync of the names of runs", NoSync(Names("keys"), Running)),
    ("no sync of the names of runs while it opens", NoSync(Names("keys"), Opening)),
    ("no sync of the names of directories", NoSync(Names(""), Always)),
    ("no sync of the name of the epoch", NoSync(Names("site"), Always)),
    ("no checksum of frames", Without(Safeguard::FrameSum)),
    ("no checksum of records", Without(Safeguard::RecordSum)),
    ("no checksum of contents in the log", Without(Safeguard::ContentSum)),
    ("no checksums of contents in files", Without(Safeguard::BlockSums)),
    ("no checksums of footers", Without(Safeguard::FooterSums)),
    ("no checksums of runs", Without(Safeguard::RunSums)),
    ("batches without their data", Without(Safeguard::WholeGroups)),
    ("frames are numbered on after an open", Without(Safeguard::FreshNumbers)),
    ("segments that were given up are read", Without(Safeguard::GivenUp)),
    ("no reserve of segments", Without(Safeguard::Reserve)),
    ("deletes take no reserve", Without(Safeguard::RoomToDelete)),
    ("the highest precedences take no reserve", Without(Safeguard::RoomForUrgent)),
    ("no check that keys are absent", Without(Safeguard::Conflicts)),
    ("no sweep of contents", Without(Safeguard::Sweep)),
    ("contents whose sync failed are committed", Without(Safeguard::FailedContent)),
    ("the store goes on after a failed write", Without(Safeguard::Stop)),
    ("commits are answered before they are made", Lies(Lie::AnswersEarly)),
    ("what is unknown is taken for not made", Lies(Lie::UnknownIsNotDone)),
    ("what is unknown is taken for durable", Lies(Lie::UnknownIsDurable)),
    ("what is not made is taken for durable", Lies(Lie::NotDoneIsDurable)),
    ("no key is found", Lies(Lie::FindsNoKey)),
    ("the same epoch at each start", Lies(Lie::SameEpoch)),
    ("holds are not handed over at a start", Lies(Lie::ForgetsHolds)),
    ("only the first entries are read", Lies(Lie::ReadsFirstEntries)),
    ("no contents are handed over at a start", Lies(Lie::ReadsNoContents)),
    ("the changes of a batch are made one by one", Lies(Lie::SplitsBatches)),
    ("no deletes", Lies(Lie::DropsDeletes)),
    ("no deletes of contents", Lies(Lie::DropsContentDeletes)),
    ("no keys are remembered", Lies(Lie::RemembersNothing)),
    ("failed writes of contents are ignored", Lies(Lie::IgnoresFailedWrites)),
    ("the memory is believed after a failed sync", Lies(Lie::KeepsCached)),
];

/// The rows of the file: name, place, and checker; or name and why no checker notices it.
const TABLE: &str = include_str!("mutants.txt");

/// A row of the file.
pub(crate) struct Row {
    pub name: &'static str,
    pub mutant: Mutant,
    /// Where it is noticed, and by which checker.
    pub noticed: Option<(Place, String)>,
}

/// All rows.
pub(crate) fn rows() -> Vec<Row> {
    let lines = || TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let row = |(name, mutant): &(&'static str, Mutant)| {
        let line = lines().find(|line| line.split(" | ").next() == Some(*name));
        let words: Vec<&str> =
            line.unwrap_or_else(|| panic!("no row {name}")).split(" | ").collect();
        let noticed = match words[1] {
            "survives" => None,
            place => Some((place.parse().unwrap(), words[2].to_owned())),
        };
        Row { name, mutant: *mutant, noticed }
    };
    assert_eq!(lines().count(), MUTANTS.len(), "a row for each mutant");
    MUTANTS.iter().map(row).collect()
}

/// What the checkers notice of a mutant at a place.
fn noticed(mutant: Mutant, place: &Place) -> Option<Broken> {
    let mut case = place.case();
    case.mutant = Some(mutant);
    run(&case).failures.first().map(|(broken, _)| *broken)
}

/// The operations before and after a place that are tried too, and the seeds at each.
const NEAR: u64 = 12;
const NEAR_SEEDS: u64 = 3;

/// A place where a mutant is noticed, this one or one near it.
pub(crate) fn find_near(mutant: Mutant, place: Place) -> Option<(Place, Broken)> {
    let others = (1..=NEAR).flat_map(|far| [place.n + far, place.n.saturating_sub(far).max(1)]);
    let others = others.flat_map(|n| {
        (0..NEAR_SEEDS).map(move |seed| Place { n, seed: place.seed + seed, ..place })
    });
    std::iter::once(place)
        .chain(others)
        .find_map(|place| noticed(mutant, &place).map(|broken| (place, broken)))
}

/// Whether a variant is among those that `ONLY` names, with `/` between them.
fn is_asked_for(name: &str) -> bool {
    std::env::var("ONLY").map_or(true, |only| only.split('/').any(|of| of == name))
}

/// The first place of the matrix where a mutant is noticed, among each `step`th operation.
pub(crate) fn find(mutant: Mutant, counts: [u64; 2], step: usize) -> Option<(Place, Broken)> {
    let plain = Case { site: 0, faults: Vec::new(), mutant: Some(mutant) };
    if let Some((broken, _)) = run(&plain).failures.first() {
        return Some((Place::NOWHERE, *broken));
    }
    let places = (0..SEEDS).flat_map(|seed| {
        let variants = VARIANTS.iter().filter(|variant| is_asked_for(variant.name));
        let variants = variants.filter(move |variant| seed == 0 || variant.is_seeded);
        variants.flat_map(move |variant| {
            (0..2).flat_map(move |site| {
                let all = (1..=counts[site]).step_by(step);
                all.map(move |n| Place { variant: Some(variant.name), site, n, seed })
            })
        })
    });
    places.into_iter().find_map(|place| noticed(mutant, &place).map(|broken| (place, broken)))
}
