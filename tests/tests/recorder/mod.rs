//! Daemons that record their inputs: the recordings run again and give the same, have no passwords, and end where
//! they shall.

mod traffic;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::Site;

/// The recordings of a site, the oldest first.
fn recordings(site: &Site) -> Vec<PathBuf> {
    let files = fs::read_dir(site.path().join("records")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// A new directory for the recordings of a site that is not started yet; the argument that names it.
fn record(site: &Site) -> String {
    let directory = site.path().join("records");
    fs::create_dir_all(&directory).unwrap();
    directory.display().to_string()
}

/// What `mta replay` prints of a recording whose replay equals the run.
fn replayed(site: &Site, file: &Path, arguments: &[&str]) -> String {
    let file = file.display().to_string();
    let (code, printed) = mta(site, &[&["replay", &file][..], arguments].concat());
    assert_eq!(code, Some(0), "{printed}");
    printed
}

/// Runs a verb of `mta` that needs no configuration; gives its exit code and what it printed.
fn mta(site: &Site, arguments: &[&str]) -> (Option<i32>, String) {
    let program = site.xuxa_program().with_file_name("mta");
    let output = Command::new(program).args(arguments).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).unwrap())
}

/// Each recording of a site equals its run, is for its owner only, and has no password of these sites.
fn assert_recorded(site: &Site, secrets: &[String], count: usize) {
    let files = recordings(site);
    assert_eq!(files.len(), count, "{files:?}");
    for file in files {
        let verdict = replayed(site, &file, &["--quiet"]);
        assert!(verdict.starts_with("replay equals the run: "), "{verdict}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let octets = fs::read(&file).unwrap();
        let shown = replayed(site, &file, &["--state"]);
        for secret in secrets {
            assert!(!contains(&octets, secret.as_bytes()), "{secret} in {}", file.display());
            assert!(!shown.contains(secret.as_str()));
        }
    }
}

fn contains(octets: &[u8], part: &[u8]) -> bool {
    octets.windows(part.len()).any(|window| window == part)
}
