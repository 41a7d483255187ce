//! docs/results is made of what is stored in docs/results/data, and that of the studies as they are.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails, in helpers too")]

use report::Summary;
use std::fs;
use std::path::PathBuf;

fn results() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results"))
}

/// Each mark of a page, and what stands below it.
fn parts(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("<!-- figures: ").skip(1);
    parts
        .map(|part| {
            let (mark, rest) = part.split_once(" -->\n").unwrap();
            (mark, rest.split_once("<!-- end -->\n").unwrap().0.trim())
        })
        .collect()
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
    let (simulated, made) = (stored(".simulation.json"), stored(".testbed.json"));
    assert_eq!((simulated.len(), made.len()), (4, 4), "each study with a page");
    for (study, simulated) in simulated {
        let now = runner::find(&study).unwrap().inputs().unwrap();
        let made = &made.iter().find(|(name, _)| *name == study).unwrap().1;
        let both = [simulated.clone(), made.clone()];
        let page = fs::read_to_string(results().join(format!("{study}.md"))).unwrap();
        let mut found = Vec::new();
        for (mark, is) in parts(&page) {
            let mut words = mark.split(' ');
            let wanted = match words.next() {
                Some("printed") => simulated.markdown(&now),
                Some("testbed") => made.markdown(&now),
                Some("beside") => {
                    let experiments: Vec<String> = words.map(str::to_owned).collect();
                    report::side_by_side(&both, &experiments, &now).unwrap()
                }
                Some("by") => {
                    let of = if words.next() == Some("simulation") { &both[0] } else { &both[1] };
                    let (parameter, experiment) = (words.next().unwrap(), words.next().unwrap());
                    report::groups(of, experiment, parameter).unwrap()
                }
                _ => panic!("{study}.md: {mark}"),
            };
            assert_eq!(is, wanted.trim(), "{study}.md: cargo xtask results --stored");
            found.push(mark);
        }
        let wanted = match study.as_str() {
            "recommended-matrix" => ["by simulation window matrix", "by testbed window real"],
            _ => ["printed", "testbed"],
        };
        assert!(wanted.iter().all(|mark| found.contains(mark)), "{study}.md: {found:?}");
    }
}

#[test]
fn stored_scores_are_those_of_the_stored_rows() {
    for end in [".simulation.json", ".testbed.json"] {
        for (study, summary) in stored(end) {
            let score = summary.score.score;
            let counted = report::Score::of_rows(&summary.rows);
            let of = |score: report::Score| (score.near, score.factor, score.far, score.unknown);
            assert_eq!(of(counted), of(score), "{study}{end}");
            let missing = score.printed - counted.printed;
            assert_eq!(counted.missing + missing, score.missing, "{study}{end}");
        }
    }
}

#[test]
fn what_is_stored_of_the_simulation_is_of_the_studies_as_they_are() {
    for (study, summary) in stored(".simulation.json") {
        let now = runner::find(&study).unwrap().inputs().unwrap();
        let changed = summary.changed(&now);
        assert!(
            changed.is_empty(),
            "{changed:?} changed since the results of {study}: `cargo xtask results` makes them anew"
        );
    }
}

#[test]
fn what_is_stored_of_rival_explanations_is_of_the_study_as_it_is() {
    let name = "isode-nato-2007";
    let stored = results().join(format!("data/{name}.hypotheses.json"));
    let stored: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(stored).unwrap()).unwrap();
    let now = runner::find(name).unwrap().hypotheses_inputs().unwrap();
    assert_eq!(
        stored["inputs"],
        serde_json::to_value(now).unwrap(),
        "`cargo xtask results --hypotheses` makes them anew, and docs/studies.md has their figures"
    );
}

#[test]
fn lab_report_shows_stored_results_of_any_study() {
    let data = results().join("data");
    let lab = |arguments: &[&str]| {
        let mut lab = std::process::Command::new(env!("CARGO_BIN_EXE_lab"));
        lab.current_dir(&data).arg("report").args(arguments).output().unwrap()
    };
    let of = |output: &std::process::Output| {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let both = ["bern-2002.simulation.json", "bern-2002.testbed.json"];
    let (code, text, _) = of(&lab(&[both[0], both[1], "--experiment=ef-udp"]));
    assert!(code == Some(0) && text.starts_with("ef-udp:\n\n| row | "), "{code:?} {text}");
    let matrix = ["recommended-matrix.simulation.json", "--experiment=matrix", "--by=window"];
    let (code, text, _) = of(&lab(&matrix));
    assert!(code == Some(0) && text.contains("\n| ours | 29 | "), "{code:?} {text}");
    for (wrong, what) in [
        (&both[..], "--experiment"),
        (&[both[0], "degeb-2007.simulation.json", "--experiment=x"], "of two studies"),
        (&[both[0], "--experiment=nothing"], "\"nothing\""),
        (&[both[0], "--experiment=ef-udp", "--by=window"], "ef-udp has a bound"),
        (&[both[0], both[1], "--experiment=ef-udp", "--by=window"], "one file"),
        (&["tcp-factor.json"], "not what `lab run --summary` writes"),
    ] {
        let (code, _, error) = of(&lab(wrong));
        assert!(code == Some(2) && error.contains(what), "{wrong:?}: {code:?} {error}");
    }
    // One that does not come with the program.
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("own.json");
    let text = fs::read_to_string(data.join(both[0])).unwrap();
    fs::write(&own, text.replace("\"study\": \"bern-2002\"", "\"study\": \"my-own\"")).unwrap();
    let (code, text, note) = of(&lab(&[own.to_str().unwrap()]));
    assert!(code == Some(0) && text.contains("| ef-udp |"), "{code:?} {text}");
    assert!(note.contains("my-own does not come with the program"), "{note}");
    assert!(!text.contains("older than"), "{text}");
}
