//! Every parameter that a study leaves open.

use super::markup::Markup;
use crate::number;
use crate::view::View;
use std::collections::BTreeMap;
use study::file::Parameter;

/// Most other values of a parameter that are listed.
const MAX_OTHERS: usize = 12;

pub(super) fn write(page: &mut Markup, view: &View<'_>) {
    let parameters = &view.report.study.parameters;
    if parameters.is_empty() {
        return;
    }
    let others = others(view);
    page.within("section", &[("id", "parameters")], |page| {
        page.element("h2", &[], "Parameters");
        page.element(
            "p",
            &[],
            "What was left open, its value here, and what it may have been. An experiment or a run \
             may have another value; the tables above show where and why.",
        );
        page.within("div", &[("class", "scroll")], |page| {
            page.within("table", &[("class", "parameters")], |page| {
                page.within("thead", &[], |page| {
                    page.within("tr", &[], |page| {
                        for head in
                            ["parameter", "kind", "value", "range", "why", "sets", "elsewhere"]
                        {
                            page.element("th", &[("scope", "col")], head);
                        }
                    });
                });
                page.within("tbody", &[], |page| {
                    for (name, parameter) in parameters {
                        row(page, name, parameter, others.get(name.as_str()));
                    }
                });
            });
        });
    });
}

fn row(page: &mut Markup, name: &str, parameter: &Parameter, others: Option<&Vec<String>>) {
    page.within("tr", &[], |page| {
        page.within("th", &[("scope", "row")], |page| page.element("code", &[], name));
        page.element("td", &[], parameter.kind.map_or("", |kind| kind.name()));
        let value = parameter.value.as_ref().map_or("as the files have it".to_owned(), |value| {
            let value = number::setting(value);
            if parameter.unit.is_empty() { value } else { format!("{value} {}", parameter.unit) }
        });
        page.element("td", &[("class", "value")], &value);
        page.element("td", &[("class", "value")], &range(parameter));
        let why = match parameter.fits.as_str() {
            "" => parameter.why.clone(),
            fits => format!("{} Chosen by {fits}.", parameter.why),
        };
        page.element("td", &[("class", "why")], &why);
        page.within("td", &[], |page| {
            for path in &parameter.sets {
                page.element("code", &[("class", "path")], path);
            }
        });
        let others = others.map(Vec::as_slice).unwrap_or_default();
        let mut text = others.iter().take(MAX_OTHERS).cloned().collect::<Vec<_>>().join(", ");
        if others.len() > MAX_OTHERS {
            text.push_str(&format!(", and {} more", others.len() - MAX_OTHERS));
        }
        page.element("td", &[("class", "why")], &text);
    });
}

/// The values it may have had, or that its value is printed.
fn range(parameter: &Parameter) -> String {
    let values: Vec<String> = parameter.range.iter().map(number::setting).collect();
    match (parameter.printed, values.as_slice()) {
        (true, _) => "printed".to_owned(),
        (false, [least, most]) => format!("{least} to {most}"),
        (false, values) => values.join(", "),
    }
}

/// The other values of each parameter in the order of the runs, and in how many.
fn others<'a>(view: &View<'a>) -> BTreeMap<&'a str, Vec<String>> {
    let mut found: BTreeMap<&str, Vec<(String, usize)>> = BTreeMap::new();
    for (name, value) in view.report.planned.iter().flat_map(|planned| &planned.special) {
        let values = found.entry(name).or_default();
        let value = number::setting(value);
        match values.iter_mut().find(|(other, _)| *other == value) {
            Some((_, count)) => *count += 1,
            None => values.push((value, 1)),
        }
    }
    let listed = |values: Vec<(String, usize)>| {
        let values = values.into_iter();
        values.map(|(value, count)| format!("{value} ({})", super::plural(count, "run"))).collect()
    };
    found.into_iter().map(|(name, values)| (name, listed(values))).collect()
}
