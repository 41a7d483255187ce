//! How it came out, before all else.

use super::markup::Markup;
use super::{Left, experiment, picture, plural};
use crate::closeness::Closeness;
use crate::figures::ratios;
use crate::outside::{Outside, ScoreDetail};
use crate::view::{View, count};
use study::measured::Environment;

pub(super) fn write(page: &mut Markup, view: &View<'_>, left: &mut Left) {
    page.within("section", &[("id", "summary")], |page| {
        page.element("h2", &[], "Summary");
        let detail = ScoreDetail::from_report(view.report);
        tiles(page, view, &detail);
        outside(page, &detail.outside);
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

fn tiles(page: &mut Markup, view: &View<'_>, detail: &ScoreDetail) {
    let rows = view.report.rows;
    let score = detail.score;
    let [hold, fail, open] = count(view.report.verdicts.iter());
    let simulated = rows.iter().filter(|row| row.environment == Environment::Simulation).count();
    page.within("div", &[("class", "tiles")], |page| {
        tile(page, "good", hold, "✓ expectations of our own results hold");
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
    if score.printed > 0 {
        page.element("p", &[], &format!("Expectations {}.", score.expected()));
    }
    headline(page, view, detail);
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

/// The one setting of all rows, and what was fitted.
fn headline(page: &mut Markup, view: &View<'_>, detail: &ScoreDetail) {
    if let Some(headline) = &view.report.study.headline {
        let with = match headline.with.is_empty() {
            true => "none".to_owned(),
            false => crate::number::settings(&headline.with),
        };
        page.within("p", &[], |page| {
            page.text("One setting of messaging and hosts for all rows with printed values: ");
            page.element("code", &[], &with);
            page.text(". ");
            page.text(&headline.why);
        });
    }
    for line in crate::text::fitted_words(detail).lines() {
        page.element("p", &[], line);
    }
    if !detail.by_kind.is_empty() {
        let kind = |(name, one): (&String, &crate::KindScore)| {
            format!("{} {} of {}", name.replace('_', " "), one.near, one.printed)
        };
        let kinds: Vec<String> = detail.by_kind.iter().map(kind).collect();
        page.element("p", &[], &format!("Within 15 %, by kind of value: {}.", kinds.join("; ")));
    }
}

/// Most printed values outside that the first screen lists.
const MAX_OUTSIDE: usize = 100;

/// The printed values that ours are not near: expectations that derive from the print.
fn outside(page: &mut Markup, outside: &[Outside]) {
    if outside.is_empty() {
        return;
    }
    page.element("h3", &[], "Outside 15 % of what was printed, or outside its bound");
    page.within("div", &[("class", "scroll")], |page| {
        page.within("table", &[], |page| {
            page.within("thead", &[], |page| {
                page.within("tr", &[], |page| {
                    for head in ["row", "value", "printed", "ours", "ratio", "reason"] {
                        page.element("th", &[("scope", "col")], head);
                    }
                });
            });
            page.within("tbody", &[], |page| {
                for one in outside.iter().take(MAX_OUTSIDE) {
                    outside_row(page, one);
                }
            });
        });
    });
    if outside.len() > MAX_OUTSIDE {
        let more = format!("{} more stand in results.json.", outside.len() - MAX_OUTSIDE);
        page.element("p", &[("class", "quiet")], &more);
    }
}

fn outside_row(page: &mut Markup, one: &Outside) {
    page.within("tr", &[], |page| {
        page.element("th", &[("scope", "row")], &format!("{} {}", one.table, one.row));
        page.element("td", &[], &one.kind.replace('_', " "));
        page.element("td", &[("class", "number")], &one.printed);
        page.element("td", &[("class", "number ours")], &one.ours);
        let class = format!("number ratio {}", one.closeness);
        let ratio = format!("{} {}", one.ratio, one.sign());
        page.element("td", &[("class", class.as_str())], &ratio);
        page.element("td", &[("class", "why")], &one.reason);
    });
}

/// The expectations of our own results that do not hold.
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
