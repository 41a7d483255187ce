//! How it came out, before all else.

use super::markup::Markup;
use super::{Left, experiment, picture, plural};
use crate::closeness::Closeness;
use crate::figures::ratios;
use crate::score::Score;
use crate::view::{View, count};
use study::measured::Environment;

pub(super) fn write(page: &mut Markup, view: &View<'_>, left: &mut Left) {
    page.within("section", &[("id", "summary")], |page| {
        page.element("h2", &[], "Summary");
        tiles(page, view);
        failing(page, view);
        let label = "ours divided by the printed figure, for each row";
        if let Some((wide, narrow)) =
            ratios::figure(view, ratios::WIDE).zip(ratios::figure(view, ratios::NARROW))
        {
            page.within("figure", &[("class", "screen")], |page| {
                picture(page, left, "ratios", label, || wide.svg());
            });
            page.within("figure", &[("class", "phone")], |page| {
                picture(page, left, "ratios", label, || narrow.svg());
            });
            page.element(
                "p",
                &[("class", "quiet")],
                "Left of 1 ours took less time, right of it more; of a rate, left is slower. An arrow: \
                 one of the two was given up, so only a bound is known.",
            );
        } else {
            page.element("p", &[], "No row with a printed figure has been measured.");
        }
        contents(page, view);
    });
}

fn tile(page: &mut Markup, class: &str, number: usize, words: &str) {
    let class = format!("tile {class}");
    page.within("div", &[("class", class.as_str())], |page| {
        page.element("b", &[], &number.to_string());
        page.element("span", &[], words);
    });
}

fn tiles(page: &mut Markup, view: &View<'_>) {
    let rows = view.report.rows;
    let score = Score::from_report(view.report);
    let [hold, fail, open] = count(view.report.verdicts.iter());
    let simulated = rows.iter().filter(|row| row.environment == Environment::Simulation).count();
    page.within("div", &[("class", "tiles")], |page| {
        tile(page, "good", hold, "✓ expectations hold");
        tile(page, if fail > 0 { "bad" } else { "" }, fail, "✗ do not hold");
        tile(page, "", open, "? not known");
        for closeness in Closeness::ALL {
            let words = format!("{} printed values: {}", closeness.sign(), closeness.words());
            tile(page, closeness.class(), score.count(closeness), &words);
        }
        tile(page, "unknown", score.missing, "printed values: not measured");
        tile(page, "", score.own_settings, "* rows with settings of their own");
    });
    page.within("p", &[], |page| {
        page.format(format_args!(
            "Every printed value counts, of whatever kind: {} in {}, and in runs that have not been \
             made. {} of these rows were made with settings other than the study's: they are marked \
             with *, and their tables show which and why.",
            score.printed,
            plural(score.rows, "row"),
            score.own_settings
        ));
    });
    page.within("p", &[], |page| {
        page.format(format_args!(
            "{} from {} of {}: {} on the testbed, {simulated} in the simulation.",
            plural(rows.len(), "row"),
            view.made(),
            plural(view.report.planned.len(), "run"),
            rows.len() - simulated
        ));
    });
}

/// The expectations that do not hold.
fn failing(page: &mut Markup, view: &View<'_>) {
    let failing = view.report.verdicts.iter().filter(|verdict| verdict.holds == Some(false));
    let failing: Vec<_> = failing.collect();
    if failing.is_empty() {
        return;
    }
    page.element("h3", &[], "What does not hold");
    page.within("ul", &[("class", "verdicts")], |page| {
        for verdict in failing.iter().take(50) {
            experiment::verdict(page, verdict, Some(&verdict.experiment));
        }
    });
    if failing.len() > 50 {
        page.element("p", &[("class", "quiet")], "The others stand with their experiments.");
    }
}

fn contents(page: &mut Markup, view: &View<'_>) {
    page.within("nav", &[], |page| {
        page.element("h3", &[], "Experiments");
        page.within("ol", &[], |page| {
            for (number, experiment) in view.experiments.iter().enumerate() {
                page.within("li", &[], |page| {
                    let target = format!("#e{number}");
                    page.element("a", &[("href", &target)], &experiment.file.title);
                    let [hold, fail, open] = experiment.verdicts();
                    let marks = [(hold, '✓'), (fail, '✗'), (open, '?')];
                    let marks = marks.into_iter().filter(|(count, _)| *count > 0);
                    let marks: Vec<String> =
                        marks.map(|(count, sign)| format!("{sign} {count}")).collect();
                    if !marks.is_empty() {
                        page.element("small", &[], &format!(" {}", marks.join("  ")));
                    }
                });
            }
        });
        page.within("p", &[], |page| {
            page.element("a", &[("href", "#parameters")], "Parameters");
            page.text(" · ");
            page.element("a", &[("href", "#repeat")], "How to repeat this");
        });
    });
}
