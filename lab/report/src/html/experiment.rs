//! An experiment: what it shows, its table, what was expected, and its pictures.

use super::markup::Markup;
use super::{Left, MAX_RUN_FIGURES, picture, plural, table};
use crate::figures::{over_time, sweep};
use crate::number;
use crate::text::bounds;
use crate::view::{Experiment, Run};
use study::file::Environments;
use study::{Planned, Verdict};

/// Rows of a table that stand open; a longer one is opened by a click.
const MAX_ROWS_OPEN: usize = 40;
/// The same where they are drawn.
const MAX_SWEPT_OPEN: usize = 8;
/// Runs that are listed; where there are more, the list is opened by a click.
const MAX_RUNS_OPEN: usize = 8;
/// Most notes of a run.
const MAX_NOTES: usize = 20;

pub(super) fn write(page: &mut Markup, number: usize, of: &Experiment<'_>, left: &mut Left) {
    let id = format!("e{number}");
    page.within("section", &[("id", &id)], |page| {
        page.element("h2", &[], &of.file.title);
        tags(page, of);
        page.element("p", &[], &of.file.shows);
        if of.rows.is_empty() {
            page.element("p", &[("class", "quiet")], "Nothing has been measured.");
        } else {
            // The pictures of a sweep show more than its rows.
            let swept = sweeps(page, of, left);
            table::write(page, of, if swept { MAX_SWEPT_OPEN } else { MAX_ROWS_OPEN }, left);
        }
        verdicts(page, of, left);
        runs(page, of, left);
    });
}

fn tags(page: &mut Markup, of: &Experiment<'_>) {
    let made = of.runs.iter().filter(|run| run.measured.is_some()).count();
    let environment = match of.file.environment {
        Environments::Any => None,
        Environments::Testbed => Some("testbed only".to_owned()),
        Environments::Simulation => Some("simulation only".to_owned()),
    };
    let table = of.file.table.as_ref().filter(|table| **table != of.file.name);
    let tags = [
        Some(of.file.name.clone()),
        table.map(|table| format!("table {table}")),
        Some(format!("{made} of {} made", plural(of.runs.len(), "run"))),
        environment,
        of.file.optional.then(|| "optional".to_owned()),
    ];
    let tags: Vec<String> = tags.into_iter().flatten().collect();
    page.element("p", &[("class", "quiet")], &tags.join(" · "));
}

fn verdicts(page: &mut Markup, of: &Experiment<'_>, left: &mut Left) {
    if of.verdicts.is_empty() {
        return;
    }
    page.element("h3", &[], "Expectations");
    let shown = of.verdicts.len().min(left.expectations);
    left.expectations -= shown;
    page.within("ul", &[("class", "verdicts")], |page| {
        of.verdicts.iter().take(shown).for_each(|of| verdict(page, of, None));
    });
    if shown < of.verdicts.len() {
        let more = format!("{} more stand in results.json.", of.verdicts.len() - shown);
        page.element("p", &[("class", "quiet")], &more);
    }
}

/// An expectation and its result. `whose` names the experiment where the page has not named it.
pub(super) fn verdict(page: &mut Markup, verdict: &Verdict, whose: Option<&str>) {
    let (class, words) = match verdict.holds {
        Some(true) => ("good", "✓ holds"),
        Some(false) => ("bad", "✗ does not hold"),
        None => ("open", "? not known"),
    };
    page.within("li", &[("class", class)], |page| {
        page.element("b", &[], words);
        page.text(" ");
        if let Some(whose) = whose {
            page.element("small", &[], whose);
            page.text(" ");
        }
        page.text(&verdict.what);
        page.element("small", &[], &format!(" ({})", bounds(verdict)));
    });
}

/// The pictures of what is varied; whether there are any.
fn sweeps(page: &mut Markup, of: &Experiment<'_>, left: &mut Left) -> bool {
    let sweeps = sweep::sweeps(of);
    for sweep in &sweeps {
        page.within("figure", &[], |page| {
            picture(page, left, "figure", &sweep.figure.title, || sweep.figure.svg());
            if !sweep.notes.is_empty() {
                page.element("figcaption", &[], &sweep.notes.join(" "));
            }
        });
    }
    !sweeps.is_empty()
}

fn runs(page: &mut Markup, of: &Experiment<'_>, left: &mut Left) {
    let made: Vec<&Run<'_>> = of.runs.iter().filter(|run| run.measured.is_some()).collect();
    if made.is_empty() {
        return;
    }
    page.element("h3", &[], "Over time");
    if made.len() <= MAX_RUNS_OPEN {
        listed(page, &made, "paper", left);
        return;
    }
    page.within("details", &[], |page| {
        page.element("summary", &[], &plural(made.len(), "run"));
        listed(page, &made, "", left);
    });
}

/// Each run with its picture; one of them stands open: where most happens, and of those the longest.
/// On paper, where nothing is opened, those of the class `paper` are.
fn listed(page: &mut Markup, made: &[&Run<'_>], class: &'static str, left: &mut Left) {
    let weight = |run: &Run<'_>| {
        let Planned { messages, loads, .. } = run.planned;
        let seconds = run.measured.map(|measured| measured.seconds).unwrap_or_default();
        (messages.len() + loads.len(), seconds)
    };
    let by_weight = |one: &&&Run<'_>, other: &&&Run<'_>| {
        let (one, other) = (weight(one), weight(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    };
    let plain = made.iter().filter(|run| !run.varied);
    let open = plain.max_by(by_weight).map(|run| run.planned.id.as_str());
    let mut without = 0;
    for run in made {
        // Those of a sweep leave room for the others.
        let room = left.figures.saturating_sub(if run.varied { MAX_RUN_FIGURES / 2 } else { 0 });
        let notes = run.measured.map_or(0, |measured| measured.notes.len());
        if room == 0 && (notes == 0 || left.notes == 0) {
            without += 1;
            continue;
        }
        let is_open = open == Some(run.planned.id.as_str());
        let attributes = [("class", if run.varied { "" } else { class }), ("open", "")];
        let attributes = attributes.get(..if is_open { 2 } else { 1 }).unwrap_or_default();
        page.within("details", attributes, |page| one(page, run, room > 0, left));
    }
    if without > 0 {
        let text = format!("{} more are not drawn here: the page would be too long.", without);
        page.element("p", &[("class", "quiet")], &text);
    }
}

fn one(page: &mut Markup, run: &Run<'_>, drawn: bool, left: &mut Left) {
    let Some(measured) = run.measured else { return };
    let scale = measured.scale.factor();
    page.within("summary", &[], |page| {
        page.element("b", &[], &run.planned.run);
        page.text(" ");
        let how = if measured.scale != study::Scale::ONE {
            format!("{}, {} times as fast", measured.environment.name(), measured.scale)
        } else {
            measured.environment.name().to_owned()
        };
        let took = number::short(measured.seconds * scale);
        let end = if measured.given_up { "given up after" } else { "took" };
        page.element("small", &[], &format!("{how}; {end} {took} s"));
    });
    let figure = over_time::over_time(run.planned, measured).filter(|_| drawn);
    match figure {
        Some(over_time::OverTime { figure, notes }) => {
            left.figures -= 1;
            page.within("figure", &[], |page| {
                picture(page, left, "figure", &figure.title, || figure.svg());
                page.element("figcaption", &[], &notes.join(" "));
            });
        }
        None if drawn => {
            page.element(
                "p",
                &[("class", "quiet")],
                "There is nothing to draw: too few steps, or none, were measured over time.",
            );
        }
        None => {}
    }
    let shown = measured.notes.len().min(MAX_NOTES).min(left.notes);
    left.notes -= shown;
    if !measured.notes.is_empty() {
        page.within("ul", &[("class", "notes")], |page| {
            for note in measured.notes.iter().take(shown) {
                page.element("li", &[], note);
            }
        });
        let more = measured.notes.len() - shown;
        if more > 0 {
            let text = format!("and {} more", plural(more, "note"));
            page.element("p", &[("class", "quiet")], &text);
        }
    }
}
