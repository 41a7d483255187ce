//! The page.

mod experiment;
mod figures;
mod head;
mod hypotheses;
mod markup;
mod parameters;
mod summary;
mod table;

use crate::StudyReport;
use crate::figures::loads;
use crate::hypotheses::Hypotheses;
use crate::view::View;
use markup::Markup;

/// Most rows of all tables of the page; the JSON has all.
pub const MAX_ROWS: usize = 4_000;
/// Most pictures of runs over time: of those that vary nothing first.
pub const MAX_RUN_FIGURES: usize = 150;
/// Most octets of all pictures of the page.
pub const MAX_PICTURES_BYTES: usize = 16_000_000;
/// Most expectations that are listed.
pub const MAX_EXPECTATIONS: usize = 2_000;

/// Most notes of runs.
const MAX_NOTES: usize = 2_000;

/// What is left of the bounds.
struct Left {
    rows: usize,
    figures: usize,
    bytes: usize,
    expectations: usize,
    notes: usize,
}

/// A page of a report.
pub(crate) fn page(report: &StudyReport<'_>) -> String {
    let view = View::new(report);
    let mut left = Left {
        rows: MAX_ROWS,
        figures: MAX_RUN_FIGURES,
        bytes: MAX_PICTURES_BYTES,
        expectations: MAX_EXPECTATIONS,
        notes: MAX_NOTES,
    };
    whole(&view, |page| {
        summary::write(page, &view, &mut left);
        printed(page, report, &mut left);
        figures::write(page, &view, &mut left);
        for (number, experiment) in view.experiments.iter().enumerate() {
            experiment::write(page, number, experiment, &mut left);
        }
        parameters::write(page, &view);
        repeat(page, report);
    })
}

/// A page of rivals alone.
pub(crate) fn rivals(report: &StudyReport<'_>, rivals: &Hypotheses) -> String {
    let view = View::new(report);
    whole(&view, |page| {
        hypotheses::write(page, rivals);
        parameters::write(page, &view);
        repeat(page, report);
    })
}

fn whole(view: &View<'_>, main: impl FnOnce(&mut Markup)) -> String {
    let mut page = Markup::default();
    page.open("!DOCTYPE html", &[]);
    page.within("html", &[("lang", "en")], |page| {
        page.within("head", &[], |page| {
            page.open("meta", &[("charset", "utf-8")]);
            page.open(
                "meta",
                &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")],
            );
            page.open("meta", &[("name", "color-scheme"), ("content", "light dark")]);
            page.element("title", &[], &view.report.study.title);
            page.style(include_str!("style.css"));
        });
        page.within("body", &[], |page| {
            page.within("header", &[], |page| head::write(page, view));
            page.within("main", &[], main);
        });
    });
    page.done()
}

/// Figures that were printed, of ours.
fn printed(page: &mut Markup, report: &StudyReport<'_>, left: &mut Left) {
    let figures = loads::figures(report);
    if figures.is_empty() {
        return;
    }
    page.within("section", &[("id", "printed-figures")], |page| {
        page.element("h2", &[], "The figures of the paper, of ours");
        for (_, figure) in &figures {
            page.within("figure", &[], |page| {
                picture(page, left, "figure", &figure.title, || figure.svg());
            });
        }
    });
}

/// How to get these figures again.
fn repeat(page: &mut Markup, report: &StudyReport<'_>) {
    page.within("section", &[("id", "repeat")], |page| {
        page.element("h2", &[], "How to repeat this");
        match report.machine.command.as_str() {
            "" => page.element("p", &[], "The command was not given."),
            command => page.element("pre", &[], command),
        }
        page.within("p", &[], |page| {
            page.format(format_args!(
                "results.json beside this page has all numbers; pictures/ has every picture as SVG and \
                 PNG (at most {MAX_RUN_FIGURES} of runs over time). With the seeds and settings above, \
                 the simulation gives the same figures again, the testbed nearly the same."
            ));
        });
    });
}

/// Draws a picture into the page; a sentence where it cannot be. After the first for which there is no
/// room, none is drawn: that takes time too.
fn picture(
    page: &mut Markup,
    left: &mut Left,
    class: &'static str,
    label: &str,
    draw: impl FnOnce() -> Result<String, plot::Error>,
) {
    let svg = if left.bytes > 0 { draw() } else { Ok(String::new()) };
    match svg {
        Ok(svg) if svg.len() < left.bytes => {
            left.bytes -= svg.len();
            page.within("div", &[("class", "scroll")], |page| page.svg(class, label, &svg));
        }
        Ok(_) => {
            left.bytes = 0;
            let text = "Not drawn here: the page would be too long.";
            page.element("p", &[("class", "quiet")], text);
        }
        Err(error) => {
            page.element("p", &[("class", "quiet")], &format!("There is no picture: {error}."));
        }
    }
}

/// `1 row`, `2 rows`.
fn plural(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_first_picture_without_room_none_is_drawn() {
        let mut left = Left { rows: 0, figures: 0, bytes: 30, expectations: 0, notes: 0 };
        let mut page = Markup::default();
        let svg = "<svg x=\"1\"></svg>";
        let mut drawn = 0;
        for _ in 0..4 {
            picture(&mut page, &mut left, "figure", "one", || {
                drawn += 1;
                Ok(svg.to_owned())
            });
        }
        let html = page.done();
        assert_eq!((drawn, html.matches("<svg").count()), (2, 1), "{html}");
        assert_eq!(html.matches("Not drawn here").count(), 3);
        left.bytes = 30;
        let mut page = Markup::default();
        picture(&mut page, &mut left, "figure", "one", || Err(plot::Error::Panels(9)));
        assert!(page.done().contains("There is no picture: a figure of 9 panels"));
    }
}
