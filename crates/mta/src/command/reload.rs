//! `mta reload`: makes the daemon read its configuration again.

use super::output::{print, print_error, print_findings, print_json};
use super::{DONE, FAILED, WRONG};
use crate::admin::{Answer, Reloaded, RemovedPeer, Request, Verdict, ask};
use crate::config::problem::{Findings, ProblemJson};
use node::changes::Changes;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Makes the daemon read its configuration and users again. All changes take effect, or none.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The daemon's configuration file.
    #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
    config: PathBuf,
    /// Show the outcome for each channel and for what is queued for removed peers, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The answer in JSON.
#[derive(Serialize)]
struct ReloadAnswer {
    applied: bool,
    file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    problems: Vec<ProblemJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<RemovedPeer>,
}

/// The outcome for a file of which not even the daemon's socket can be read.
fn refused_here(arguments: &Arguments, why: &str, report: &Findings) -> u8 {
    let file = std::path::absolute(&arguments.config).unwrap_or_else(|_| arguments.config.clone());
    if arguments.json {
        print_json(&ReloadAnswer {
            applied: false,
            file,
            refused: Some(why.to_owned()),
            problems: report.to_json(),
            changes: None,
            removed: Vec::new(),
        });
        return WRONG;
    }
    print_findings(report);
    print_refused(&file, why);
    WRONG
}

fn print_refused(file: &Path, why: &str) {
    let file = file.display();
    print_error(&format!("{file}: refused, the running configuration is unchanged: {why}"));
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let paths = match config::load_paths(&arguments.config) {
        Ok((Some(paths), _)) => paths,
        Ok((None, report)) => return refused_here(arguments, "the file has errors", &report),
        Err(error) => return refused_here(arguments, &error.to_string(), &Findings::default()),
    };
    let request = Request::Reload { dry_run: arguments.dry_run };
    let Reloaded { file, verdict, report, changes, removed } =
        match ask(&paths.admin_socket, &request) {
            Ok(Answer::Reloaded(reloaded)) => *reloaded,
            Ok(other) => {
                print_error(&format!("the daemon answers something else: {other:?}"));
                return FAILED;
            }
            Err(error) => {
                print_error(&error.to_string());
                return FAILED;
            }
        };
    let (code, refused) = match verdict {
        Verdict::Applied | Verdict::Planned => (DONE, None),
        Verdict::Wrong(why) => (WRONG, Some(why)),
        Verdict::Failed(why) => (FAILED, Some(why)),
    };
    if arguments.json {
        let problems = report.to_json();
        let applied = refused.is_none() && !arguments.dry_run;
        print_json(&ReloadAnswer { applied, file, refused, problems, changes, removed });
        return code;
    }
    print_findings(&report);
    match refused {
        Some(why) => print_refused(&file, &why),
        None => print(&(changes.unwrap_or_default().to_string() + &left_over(&removed))),
    }
    code
}

/// What is queued for peers that would be removed, in words.
fn left_over(removed: &[RemovedPeer]) -> String {
    let mut text = String::new();
    for RemovedPeer { name, queued } in removed.iter().filter(|peer| !peer.queued.is_empty()) {
        let counts: Vec<String> =
            queued.iter().rev().map(|(level, count)| format!("{count} {level}")).collect();
        let _ = writeln!(text, "queued for {name}: {}", counts.join(", "));
    }
    if !text.is_empty() {
        text +=
            "  routed again by the new routes; where none leads on, the originators get reports\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Precedence::{Flash, Routine};

    #[test]
    fn what_is_queued_for_a_removed_peer_is_counted() {
        let peer = |name: &str, queued: &[_]| RemovedPeer {
            name: name.to_owned(),
            queued: queued.iter().copied().collect(),
        };
        assert_eq!(left_over(&[peer("act", &[])]), "");
        assert_eq!(
            left_over(&[peer("act", &[(Routine, 7), (Flash, 1)]), peer("rome", &[])]),
            "queued for act: 1 flash, 7 routine\n  \
             routed again by the new routes; where none leads on, the originators get reports\n"
        );
    }
}
