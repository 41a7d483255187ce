//! `mta clock`: shows whether the daemon trusts the wall clock, and accepts it.

use super::error::RequestError;
use super::output::{Daemon, print, print_error, print_json};
use super::{DONE, PARTLY, WRONG};
use crate::admin::{Answer, Request, ask};
use node::status::ClockStatus;
use serde::Serialize;
use status_text::doubted_clock as describe;
use std::path::Path;

/// Shows whether the wall clock is trusted. After the clock jumped, no message expires until the
/// clock has been steady for a while or an operator accepts it. Exit code 3: the clock is not
/// trusted.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,
    /// `accept`: the clock is correct now; messages expire by it again.
    #[arg(value_parser = ["accept"])]
    decision: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The answer in JSON.
#[derive(Serialize)]
struct ClockAnswer {
    trusted: bool,
    #[serde(flatten)]
    doubt: Option<ClockStatus>,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let Some(socket) = arguments.daemon.socket() else { return WRONG };
    let doubt = match put(&socket, arguments.decision.is_some()) {
        Ok(doubt) => doubt,
        Err(why) => {
            print_error(&why.to_string());
            return why.code();
        }
    };
    let code = if doubt.is_some() { PARTLY } else { DONE };
    if arguments.json {
        print_json(&ClockAnswer { trusted: doubt.is_none(), doubt });
        return code;
    }
    match doubt {
        None => print("the wall clock is trusted\n"),
        Some(doubt) => print(&describe(&doubt)),
    }
    code
}

fn put(socket: &Path, accept: bool) -> Result<Option<ClockStatus>, RequestError> {
    let request = if accept { Request::AcceptClock } else { Request::Status };
    match ask(socket, &request)? {
        Answer::Clock(doubt) => Ok(doubt),
        Answer::Status(status) => Ok(status.clock),
        other => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_sees_what_to_do() {
        let doubt = ClockStatus {
            since: "2026-01-02T08:04:05Z".to_owned(),
            because: "it was set forward by 18000 s".to_owned(),
            expiry_waits_until: "2026-01-02T08:14:05Z".to_owned(),
            believed: "2026-01-02T03:04:05Z".to_owned(),
            late: 50,
        };
        insta::assert_snapshot!(describe(&doubt), @r"
        CLOCK NOT TRUSTED since 2026-01-02T08:04:05Z:
          it was set forward by 18000 s
          by the clock as it was before, it is 2026-01-02T03:04:05Z
          expiry waits until 2026-01-02T08:14:05Z
          messages that would have expired: 50
          if the clock is right: mta clock accept; if not, set it
        ");
        let answer = ClockAnswer { trusted: false, doubt: Some(doubt) };
        let answer = serde_json::to_value(&answer).unwrap();
        assert_eq!((&answer["trusted"], &answer["late"]), (&false.into(), &50.into()));
        let answer = ClockAnswer { trusted: true, doubt: None };
        assert_eq!(serde_json::to_string(&answer).unwrap(), "{\"trusted\":true}");
    }
}
