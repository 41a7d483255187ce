//! A shell in namespaces of its own, with a copy of what a checkout has.

use super::How;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use testbed::Programs;

/// Longest run of a session; the shell is killed then.
const MAX: &str = "150";

/// Stands for cargo: what it would build is there, and its programs' options are read.
const CARGO: &str = r#"#!/bin/sh
set -eu
verb=$1; shift
case "$verb" in
    build|test|bench|run)
        mkdir -p "$CHECKOUT/target"; ln -sfn "$BUILT" "$CHECKOUT/target/release"
        while [ $# -gt 0 ]; do
            case "$1" in
                -p|--package) package=$2
                    grep -qxF "$2" "$CHECKOUT/.members" || { echo "no package $2" >&2; exit 101; }
                    shift ;;
                --) break ;;
            esac
            shift
        done
        case "$verb ${package-}" in "run bench") shift; exec "$BUILT/bench" "$@" ;; esac ;;
    xtask) CARGO=cargo CARGO_MANIFEST_DIR=$CHECKOUT/xtask exec "$BUILT/xtask" "$@" ;;
    *) echo "cargo $verb is not known to this test" >&2; exit 101 ;;
esac
"#;

pub(super) struct Session {
    script: String,
    directory: TempDir,
    /// The program that makes the namespaces, with its options.
    unshare: Vec<&'static str>,
}

impl Session {
    /// One that begins in a copy of the checkout; `None`, with a note, where namespaces are not
    /// permitted.
    pub(super) fn new(checkout: &Path, test: &str) -> Option<Session> {
        let mut unshare = vec!["unshare", "-n", "-m", "-p", "-f", "--kill-child", "--mount-proc"];
        if !nix::unistd::geteuid().is_root() {
            unshare.insert(1, "-r");
        }
        let tried = Command::new(unshare[0]).args(&unshare[1..]).arg("true").output();
        if !tried.is_ok_and(|tried| tried.status.success()) {
            let mut err = std::io::stderr().lock();
            let _ = writeln!(err, "    SKIPPED {test}: nobody may make namespaces here");
            return None;
        }
        // Beside the programs: the namespaces have a /tmp of their own.
        let built = Programs::find().unwrap().mta.parent().unwrap().to_owned();
        let directory = TempDir::new_in(&built).unwrap();
        let here = directory.path();
        for wanted in ["config", "docs"] {
            let from = checkout.join(wanted);
            let copied = Command::new("cp").arg("-r").arg(from).arg(here).status().unwrap();
            assert!(copied.success());
        }
        let folders = ["crates", "lab", "bench"].into_iter();
        let members = folders.flat_map(|folder| std::fs::read_dir(checkout.join(folder)).unwrap());
        let mut members: String = members
            .map(|member| std::fs::read_to_string(member.unwrap().path().join("Cargo.toml")))
            .filter_map(|manifest| Some(name(&manifest.ok()?)? + "\n"))
            .collect();
        members.push_str("bench\nexplore\nfuzz\nhunt\ntests\nxtask\n");
        std::fs::write(here.join(".members"), members).unwrap();
        std::fs::create_dir(here.join("bin")).unwrap();
        std::fs::write(here.join("bin/cargo"), CARGO).unwrap();
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(here.join("bin/cargo"), runs).unwrap();
        let mut session = Session { script: String::new(), directory, unshare };
        session.script.push_str(
            "mount -t tmpfs tmpfs /tmp\nip link set lo up\nexport HOME=/tmp/home; mkdir $HOME\n\
             pasted() { local code=$?; [ $code = $1 ] || { echo \"exit code $code, not $1\" >&2; \
             exit 1; }; }\n\
             ended() { local code=$?; case $code in 0|124|130) ;; *) \
             echo \"exit code $code\" >&2; exit 1;; esac; }\n",
        );
        Some(session)
    }

    /// What the reader has done before.
    pub(super) fn quietly(&mut self, script: &str) {
        self.script.push_str(script);
        self.script.push('\n');
    }

    /// A file that the page has the reader write.
    pub(super) fn file(&mut self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    /// Both shipped sites with their users, as docs/operating.md starts them.
    pub(super) fn two_sites(&mut self) {
        self.quietly(
            "export PATH=\"$BUILT:$PATH\" MTA_PASSWORD_NAPLES=vesuvio MTA_PASSWORD_ACT=etna\n\
             echo 'a password' | mta user add --config config/sites/naples.toml \
             /C=IT/ADMD=NET/PRMD=NAPLES/S=OPS\n\
             echo another | mta user add --config config/sites/act.toml /C=IT/ADMD=NET/PRMD=ACT/S=OPS\n\
             for site in naples act; do mta run --config config/sites/$site.toml & done\n\
             for site in naples act; do for i in $(seq 100); do \
             mta status --config config/sites/$site.toml >/dev/null 2>&1 && break; sleep 0.1; \
             done; done",
        );
    }

    /// A line of a page.
    pub(super) fn line(&mut self, page: &str, line: &str, how: Option<How>) {
        let shown = format!("{page}: {line}").replace('\'', "'\\''");
        let _ = writeln!(self.script, "echo '+ {shown}' >&2");
        let quoted = line.replace('\'', "'\\''");
        let command = line.split(" #").next().unwrap_or(line).trim_end();
        match how {
            None => self.quietly(&format!("{line}\npasted 0")),
            Some(How::Ends(code)) => self.quietly(&format!("{line}\npasted {code}")),
            Some(How::Interrupted) => {
                let bash = format!("timeout -s INT 1 bash -c 'exec {quoted}'\nended");
                self.quietly(&bash);
            }
            Some(How::OwnTerminal) => self.quietly(&format!("{command} >/dev/null &")),
            Some(How::Read) => self.quietly(&format!("{command} --help >/dev/null\npasted 0")),
            Some(How::Not) => {}
        }
    }

    /// The copy of the checkout, in which it begins.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Runs all of it.
    pub(super) fn run(&self) {
        let here = self.directory.path();
        let built = here.parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("timeout");
        command
            .args(["-s", "KILL", MAX])
            .args(&self.unshare)
            .args(["bash", "-c", &self.script])
            .current_dir(here)
            .env("CHECKOUT", here)
            .env("BUILT", built)
            .env("PATH", format!("{}/bin:{path}:/usr/sbin:/sbin", here.display()))
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{}\n--- stdout\n{out}\n--- stderr\n{err}", output.status);
    }
}

/// The package's name in its manifest.
fn name(manifest: &str) -> Option<String> {
    let line = manifest.lines().find(|line| line.starts_with("name = "))?;
    Some(line.split('"').nth(1)?.to_owned())
}
