//! docs/results is made of what is stored in docs/results/data, and that of the studies as they are.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails, in helpers too")]

use report::Summary;
use std::fs;
use std::path::PathBuf;

fn results() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results"))
}

/// What stands between the marks of this name.
fn part(page: &str, name: &str) -> Option<String> {
    let rest = page.split_once(&format!("<!-- figures: {name} -->\n"))?.1;
    Some(rest.split_once("<!-- end -->\n")?.0.trim().to_owned())
}

/// The stored results with this end of their name: name of the study, and results.
fn stored(end: &str) -> Vec<(String, Summary)> {
    let files = fs::read_dir(results().join("data")).unwrap().map(|file| file.unwrap().path());
    let read = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(end)?.to_owned();
        Some((name, Summary::read(&fs::read_to_string(&path).unwrap()).unwrap()))
    };
    files.filter_map(read).collect()
}

#[test]
fn pages_are_made_of_what_is_stored() {
    for (end, mark) in [(".simulation.json", "printed"), (".testbed.json", "testbed")] {
        for (study, summary) in stored(end) {
            let now = runner::find(&study).unwrap().inputs().unwrap();
            let page = fs::read_to_string(results().join(format!("{study}.md"))).unwrap();
            let is = part(&page, mark).unwrap_or_else(|| panic!("{study}.md has no mark {mark}"));
            let wanted = summary.markdown(&now);
            assert_eq!(
                is,
                wanted.trim(),
                "{study}.md: `cargo xtask results --stored` makes it anew"
            );
        }
    }
}

#[test]
fn what_is_stored_of_the_simulation_is_of_the_studies_as_they_are() {
    let stored = stored(".simulation.json");
    assert_eq!(stored.len(), 3, "each published study");
    for (study, summary) in stored {
        let now = runner::find(&study).unwrap().inputs().unwrap();
        let changed = summary.changed(&now);
        assert!(
            changed.is_empty(),
            "{changed:?} changed since the results of {study}: `cargo xtask results` makes them anew"
        );
    }
}
