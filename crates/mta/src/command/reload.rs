//! `mta reload`: makes the daemon read its configuration again.

use super::output::{print, print_error, print_findings, print_json};
use super::{DONE, FAILED, WRONG};
use crate::admin::{Answer, Reloaded, Request, Verdict, ask};
use crate::config::problem::{Findings, ProblemJson};
use node::changes::Changes;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Makes the daemon read its configuration and users again. All changes take effect, or none.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The daemon's configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
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
    let Reloaded { file, verdict, report, changes } =
        match ask(&paths.admin_socket, &Request::Reload) {
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
        Verdict::Applied => (DONE, None),
        Verdict::Wrong(why) => (WRONG, Some(why)),
        Verdict::Failed(why) => (FAILED, Some(why)),
    };
    if arguments.json {
        let problems = report.to_json();
        print_json(&ReloadAnswer { applied: refused.is_none(), file, refused, problems, changes });
        return code;
    }
    print_findings(&report);
    match refused {
        Some(why) => print_refused(&file, &why),
        None => print(&changes.unwrap_or_default().to_string()),
    }
    code
}
