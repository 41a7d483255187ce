//! What was done, where and when.

use super::markup::Markup;
use super::plural;
use crate::view::View;
use std::collections::BTreeMap;

/// The most values of a setting that are listed.
const MAX_VALUES: usize = 5;

pub(super) fn write(page: &mut Markup, view: &View<'_>) {
    let (study, machine) = (view.report.study, view.report.machine);
    page.element("h1", &[], &study.title);
    if !study.source.is_empty() {
        page.element("p", &[("class", "source")], &study.source);
    }
    if !study.about.is_empty() {
        page.element("p", &[], &study.about);
    }
    page.within("dl", &[("class", "facts")], |page| {
        if !machine.date.is_empty() {
            fact(page, "date", &machine.date);
        }
        for (name, value) in machine.facts() {
            fact(page, name, value);
        }
        fact(page, "network", &study.network.topology);
        for (name, values) in settings(view) {
            fact(page, &name, &values);
        }
    });
}

fn fact(page: &mut Markup, name: &str, value: &str) {
    page.within("div", &[], |page| {
        page.element("dt", &[], name);
        page.element("dd", &[], value);
    });
}

/// What the runs were made with, and how many with which.
fn settings(view: &View<'_>) -> Vec<(String, String)> {
    let mut found: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    let mut order = vec!["environment", "scale", "seed"];
    for measured in view.report.measured {
        let mut add = |name, value: String| {
            *found.entry(name).or_default().entry(value).or_default() += 1;
        };
        add("environment", measured.environment.name().to_owned());
        add("scale", measured.scale.to_string());
        add("seed", measured.seed.to_string());
        for (name, value) in &measured.how {
            add(name.as_str(), value.clone());
        }
    }
    let others: Vec<&str> = found.keys().copied().filter(|name| !order.contains(name)).collect();
    order.extend(others);
    let printed = order.into_iter().filter_map(|name| {
        let values = found.get(name)?;
        Some((name.to_owned(), counted(values)))
    });
    printed.collect()
}

fn counted(values: &BTreeMap<String, usize>) -> String {
    if let (1, Some(value)) = (values.len(), values.keys().next()) {
        return value.clone();
    }
    let mut all: Vec<(&String, &usize)> = values.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown = all.iter().take(MAX_VALUES);
    let shown = shown.map(|(value, count)| format!("{value} ({})", plural(**count, "run")));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if all.len() > MAX_VALUES {
        text.push_str(&format!(", and {} more", all.len() - MAX_VALUES));
    }
    text
}
