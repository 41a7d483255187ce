//! Rival explanations, scored over all rows.

use super::markup::Markup;
use crate::hypotheses::{Hypotheses, Table};

pub(super) fn write(page: &mut Markup, hypotheses: &Hypotheses) {
    page.within("section", &[("id", "hypotheses")], |page| {
        page.element("h2", &[], "Hypotheses");
        page.element(
            "p",
            &[],
            "Rival explanations of what was printed. Each had all runs with printed values, in simulation, \
             under its own settings in place of the study's: how many rows and printed values it brings \
             within 15 percent and within a factor of 2. Off by: the mean factor between ours and the \
             printed value, over all rows.",
        );
        table(page, &hypotheses.scores());
        page.element("h3", &[], "Seconds that each predicts");
        page.within("ul", &[], |page| {
            for (letter, item) in hypotheses.letters() {
                page.element("li", &[], &format!("{letter}: {}", hypotheses.with_printed(item)));
            }
        });
        table(page, &hypotheses.predictions());
        page.element("h3", &[], "What each is, and what speaks against it");
        page.within("ul", &[], |page| {
            for (name, what) in hypotheses.meanings() {
                page.element("li", &[], &format!("{name}: {what}"));
            }
            for (name, against) in hypotheses.objections() {
                page.element("li", &[], &format!("Against {name}: {against}"));
            }
        });
    });
}

fn table(page: &mut Markup, table: &Table) {
    page.within("div", &[("class", "scroll")], |page| {
        page.within("table", &[], |page| {
            page.within("thead", &[], |page| {
                page.within("tr", &[], |page| {
                    for head in &table.head {
                        page.element("th", &[("scope", "col")], head);
                    }
                });
            });
            page.within("tbody", &[], |page| {
                for line in &table.lines {
                    page.within("tr", &[], |page| {
                        for cell in line {
                            page.element("td", &[], cell);
                        }
                    });
                }
            });
        });
    });
}
