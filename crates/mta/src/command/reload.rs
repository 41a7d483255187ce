//! `mta reload`: makes the daemon read its configuration again.

use super::output::{load_paths, print, print_error, print_findings, print_json};
use super::{DONE, FAILED, WRONG};
use crate::admin::{Answer, Reloaded, Request, Verdict, ask};
use crate::config::problem::ProblemJson;
use node::changes::Changes;
use serde::Serialize;
use std::path::PathBuf;

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

pub(super) fn run(arguments: &Arguments) -> u8 {
    let Some(paths) = load_paths(&arguments.config) else {
        print_error("the file was not sent to a daemon: a running one keeps its configuration");
        return WRONG;
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
        Some(why) => print_error(&format!(
            "{}: refused, the running configuration is unchanged: {why}",
            file.display()
        )),
        None => print(&changes.unwrap_or_default().to_string()),
    }
    code
}
