//! The pictures that a study asks for.

use super::markup::Markup;
use super::{Left, picture};
use crate::figures::varied;
use crate::view::View;

pub(super) fn write(page: &mut Markup, view: &View<'_>, left: &mut Left) {
    let asked = view.report.study.figures.iter();
    let drawn: Vec<_> =
        asked.filter_map(|asked| Some((asked, varied::figure(view, asked)?))).collect();
    if drawn.is_empty() {
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
    });
}
