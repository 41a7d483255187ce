//! The pictures that a study asks for.

use super::markup::Markup;
use super::{Left, picture};
use crate::figures::{grid, varied};
use crate::view::View;

pub(super) fn write(page: &mut Markup, view: &View<'_>, left: &mut Left) {
    let asked = view.report.study.figures.iter();
    let drawn: Vec<_> =
        asked.filter_map(|asked| Some((asked, varied::figure(view, asked)?))).collect();
    let asked = view.report.study.grids.iter();
    let grids: Vec<_> = asked.filter_map(|of| Some((of, grid::figure(view, of)?))).collect();
    if drawn.is_empty() && grids.is_empty() {
        return;
    }
    page.within("section", &[("id", "figures")], |page| {
        page.element("h2", &[], "Figures");
        for (asked, figure) in drawn {
            page.within("figure", &[], |page| {
                picture(page, left, "figure", &figure.title, || figure.svg());
                if !asked.about.is_empty() {
                    page.element("figcaption", &[], &asked.about);
                }
            });
        }
        for (asked, grid) in grids {
            page.within("figure", &[], |page| {
                picture(page, left, "figure", &grid.title, || grid.svg());
                if !asked.about.is_empty() {
                    page.element("figcaption", &[], &asked.about);
                }
            });
        }
    });
}
