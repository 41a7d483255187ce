//! Claims of the documentation about rival explanations: each names the figures that carry it, and these
//! are those of the stored numbers.
//!
//! `<!-- claim: NAME KEY=NUMBER ... -->` stands beside a claim. NAME is a hypothesis; a KEY is one of its
//! counts (`rows_near`), or a row as `experiment/run/item`, of which the seconds are meant. `>` in place of
//! `=`: ours was given up after so long. Where NAME is `simulation` or `testbed`, a KEY is a row of these
//! stored results, or a value of a row, `experiment/run/item:kbit_s`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may")]

use serde_json::Value;

const STORED: &str = include_str!("../../docs/results/data/isode-nato-2007.hypotheses.json");
const SIMULATION: &str = include_str!("../../docs/results/data/isode-nato-2007.simulation.json");
const TESTBED: &str = include_str!("../../docs/results/data/isode-nato-2007.testbed.json");
const PAGE: &str = include_str!("../../docs/studies.md");

/// All that is stored, as one: rival explanations, and the rows of both environments.
fn stored() -> Value {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let mut all = read(STORED);
    all["simulation"] = read(SIMULATION)["rows"].take();
    all["testbed"] = read(TESTBED)["rows"].take();
    all
}

/// The claims of a page, and whether their numbers are the stored ones: complaints where not.
fn wrong(page: &str, stored: &Value) -> (usize, Vec<String>) {
    let mut count = 0;
    let mut complaints = Vec::new();
    for text in page.split("<!-- claim: ").skip(1) {
        let text = text.split("-->").next().unwrap_or_default();
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        if let Some(rows) = stored[name].as_array() {
            for word in words {
                count += 1;
                if let Err(what) = compare_row(rows, word) {
                    complaints.push(format!("{name}: {word}: {what}"));
                }
            }
            continue;
        }
        let all = stored["hypotheses"].as_array().unwrap();
        let Some(rival) = all.iter().find(|rival| rival["name"] == name) else {
            complaints.push(format!("{name}: no such hypothesis"));
            continue;
        };
        for word in words {
            count += 1;
            if let Err(what) = compare(rival, word) {
                complaints.push(format!("{name}: {word}: {what}"));
            }
        }
    }
    (count, complaints)
}

/// The key, the sign and the number of a figure.
fn parts(word: &str) -> Result<(&str, &str, &str), String> {
    let at = word.rfind(['=', '>']).ok_or("neither = nor >")?;
    Ok((word.get(..at).unwrap(), word.get(at..=at).unwrap(), word.get(at + 1..).unwrap()))
}

fn compare_row(rows: &[Value], word: &str) -> Result<(), String> {
    let (key, sign, number) = parts(word)?;
    let (item, value) = key.rsplit_once(':').unwrap_or((key, "seconds"));
    let row = rows.iter().find(|row| row["item"] == item).ok_or("no such row")?;
    let name = if sign == ">" { format!("{value}_more_than") } else { value.to_owned() };
    shown(&row[name], number)
}

fn compare(rival: &Value, word: &str) -> Result<(), String> {
    let (key, sign, number) = parts(word)?;
    let stored = if key.contains('/') {
        let key = format!("{key}.seconds");
        let of = ["items", "predicts"].map(|kind| &rival[kind][&key]);
        let of = of.into_iter().find(|value| value.is_object()).ok_or("no such row")?;
        &of[if sign == ">" { "ours_more_than" } else { "ours" }]
    } else {
        &rival[key]
    };
    shown(stored, number)
}

/// Whether a stored number is shown so.
fn shown(stored: &Value, number: &str) -> Result<(), String> {
    let stored = stored.as_f64().ok_or("there is no such number")?;
    // To the digits of the claim.
    let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
    let shown = format!("{stored:.digits$}");
    if shown == number { Ok(()) } else { Err(format!("it is {shown}")) }
}

#[test]
fn every_claim_about_a_hypothesis_has_the_stored_figures() {
    let (count, complaints) = wrong(PAGE, &stored());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(count >= 60, "{count} figures in the claims of docs/studies.md");
}

/// A number with three digits that count.
fn digits(number: &Value) -> String {
    match number.as_f64() {
        Some(number) if number >= 100.0 => format!("{number:.0}"),
        Some(number) if number >= 10.0 => format!("{number:.1}"),
        Some(number) if number >= 1.0 => format!("{number:.2}"),
        Some(number) => format!("{number:.3}"),
        None => "–".to_owned(),
    }
}

/// The rivals as the page has them, the best first.
fn table(stored: &Value) -> String {
    let mut rivals: Vec<&Value> = stored["hypotheses"].as_array().unwrap().iter().collect();
    let count = |of: &Value, key: &str| of[key].as_u64().unwrap();
    let off_by = |of: &Value| of["off_by"].as_f64().unwrap_or(f64::INFINITY);
    rivals.sort_by(|one, other| {
        let order = |of| (count(of, "rows_near"), count(of, "near"));
        order(other).cmp(&order(one)).then(off_by(one).total_cmp(&off_by(other)))
    });
    let rows = [
        "round2-baseline/1MB/routine",
        "round2-single/1MB/routine",
        "round1-single/10kB/flash",
        "round2-overlap/overlap/flash",
    ];
    let mut text = "| Hypothesis | Rows within 15 % | within a factor of 2 | beyond | Printed values within 15 % | \
        Off by | Baseline | One queue | 10 kB | Overlap |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for of in rivals {
        let counts = ["rows_near", "rows_factor", "rows_far"].map(|key| count(of, key).to_string());
        let predicts = rows.map(|row| digits(&of["predicts"][format!("{row}.seconds")]["ours"]));
        text.push_str(&format!(
            "| `{}` | {} | {} of {} | {} | {} |\n",
            of["name"].as_str().unwrap(),
            counts.join(" | "),
            count(of, "near"),
            count(of, "printed"),
            digits(&of["off_by"]),
            predicts.join(" | ")
        ));
    }
    text + "| *printed* | | | | | | 22.25 | 17.2 | 0.109 | 25.84 |\n"
}

#[test]
fn the_table_of_rivals_is_that_of_what_is_stored() {
    let wanted = table(&stored());
    let is = xtask::marks::between(PAGE, "hypotheses").unwrap();
    assert_eq!(is.trim(), wanted.trim(), "put this into docs/studies.md:\n{wanted}");
}

#[test]
fn a_claim_that_is_not_so_is_found() {
    let stored = serde_json::json!({ "hypotheses": [{
        "name": "rts[window=2]", "rows_near": 20, "off_by": 1.234,
        "items": { "a/b/c.seconds": { "ours": 22.46 } },
        "predicts": { "a/b/d.seconds": { "ours_more_than": 300.0 } },
    }], "simulation": [{ "item": "a/b/c", "seconds": 3.21, "kbit_s": 99.6 }] });
    let of = |claim: &str| wrong(&format!("text\n<!-- claim: {claim} -->\n"), &stored).1;
    assert!(of("rts[window=2] rows_near=20 off_by=1.23 a/b/c=22.5 a/b/d>300").is_empty());
    assert!(of("simulation a/b/c=3.2 a/b/c:kbit_s=100").is_empty());
    for claim in [
        "rts rows_near=20",
        "rts[window=2] rows_near=21",
        "rts[window=2] a/b/c=22.4",
        "rts[window=2] a/b/d=300",
        "rts[window=2] a/b/e=300",
        "rts[window=2] far=1",
        "simulation a/b/c=3.3",
        "simulation a/b/c>3",
        "simulation a/b/d=3.2",
    ] {
        assert_eq!(of(claim).len(), 1, "{claim}");
    }
}
