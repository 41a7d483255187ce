//! Claims of the documentation about rival explanations: each names the figures that carry it, and these
//! are those of the stored numbers.
//!
//! `<!-- claim: NAME KEY=NUMBER ... -->` stands beside a claim. NAME is a hypothesis; a KEY is one of its
//! counts (`rows_near`), or a row as `experiment/run/item`, of which the seconds are meant. `>` in place of
//! `=`: ours was given up after so long.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may")]

use serde_json::Value;

const STORED: &str = include_str!("../../docs/results/data/isode-nato-2007.hypotheses.json");
const PAGE: &str = include_str!("../../docs/studies.md");

/// The claims of a page, and whether their numbers are the stored ones: complaints where not.
fn wrong(page: &str, stored: &Value) -> (usize, Vec<String>) {
    let mut count = 0;
    let mut complaints = Vec::new();
    for text in page.split("<!-- claim: ").skip(1) {
        let text = text.split("-->").next().unwrap_or_default();
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
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

fn compare(rival: &Value, word: &str) -> Result<(), String> {
    let at = word.rfind(['=', '>']).ok_or("neither = nor >")?;
    let (key, number) = (word.get(..at).unwrap(), word.get(at + 1..).unwrap());
    let stored = if key.contains('/') {
        let key = format!("{key}.seconds");
        let of = ["items", "predicts"].map(|kind| &rival[kind][&key]);
        let of = of.into_iter().find(|value| value.is_object()).ok_or("no such row")?;
        let is_bound = word.get(at..=at) == Some(">");
        &of[if is_bound { "ours_more_than" } else { "ours" }]
    } else {
        &rival[key]
    };
    let stored = stored.as_f64().ok_or("there is no such number")?;
    // To the digits of the claim.
    let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
    let shown = format!("{stored:.digits$}");
    if shown == number { Ok(()) } else { Err(format!("it is {shown}")) }
}

#[test]
fn every_claim_about_a_hypothesis_has_the_stored_figures() {
    let stored: Value = serde_json::from_str(STORED).unwrap();
    let (count, complaints) = wrong(PAGE, &stored);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(count >= 10, "{count} figures in the claims of docs/studies.md");
}

#[test]
fn a_claim_that_is_not_so_is_found() {
    let stored = serde_json::json!({ "hypotheses": [{
        "name": "rts[window=2]", "rows_near": 20, "off_by": 1.234,
        "items": { "a/b/c.seconds": { "ours": 22.46 } },
        "predicts": { "a/b/d.seconds": { "ours_more_than": 300.0 } },
    }]});
    let of = |claim: &str| wrong(&format!("text\n<!-- claim: {claim} -->\n"), &stored).1;
    assert!(of("rts[window=2] rows_near=20 off_by=1.23 a/b/c=22.5 a/b/d>300").is_empty());
    for claim in [
        "rts rows_near=20",
        "rts[window=2] rows_near=21",
        "rts[window=2] a/b/c=22.4",
        "rts[window=2] a/b/d=300",
        "rts[window=2] a/b/e=300",
        "rts[window=2] far=1",
    ] {
        assert_eq!(of(claim).len(), 1, "{claim}");
    }
}
