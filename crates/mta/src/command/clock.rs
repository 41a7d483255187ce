//! `mta clock`: whether the daemon trusts the machine's wall clock, and an operator's word on it.

use super::output::{Daemon, complain, print, print_json};
use super::{DONE, FAILED, PARTLY, WRONG};
use crate::admin::{Answer, Request, ask};
use node::status::ClockStatus;
use serde::Serialize;
use std::path::Path;

/// Shows whether the wall clock is trusted. After it jumped, nothing expires until it was steady for
/// a while, or `accept` says that it is right. Exit code 3: it is not trusted.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,
    /// `accept`: the clock is right as it is now; what has expired by it does so.
    #[arg(value_parser = ["accept"])]
    word: Option<String>,
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
    let doubt = match put(&socket, arguments.word.is_some()) {
        Ok(doubt) => doubt,
        Err(why) => {
            complain(&why);
            return FAILED;
        }
    };
    let code = if doubt.is_some() { PARTLY } else { DONE };
    if arguments.json {
        print_json(&ClockAnswer { trusted: doubt.is_none(), doubt });
        return code;
    }
    match doubt {
        None => print("the wall clock is trusted\n"),
        Some(doubt) => print(&in_words(&doubt)),
    }
    code
}

fn put(socket: &Path, accept: bool) -> Result<Option<ClockStatus>, String> {
    let request = if accept { Request::AcceptClock } else { Request::Status };
    match ask(socket, &request) {
        Ok(Answer::Clock(doubt)) => Ok(doubt),
        Ok(Answer::Status(status)) => Ok(status.clock),
        Ok(Answer::Error(why)) => Err(why),
        Ok(other) => Err(format!("the daemon answered {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Lines for an operator, in the status too.
pub(super) fn in_words(doubt: &ClockStatus) -> String {
    let ClockStatus { since, because, expiry_waits_until, believed, late } = doubt;
    format!(
        "CLOCK NOT TRUSTED since {since}: {because}\n\
         expiry waits until {expiry_waits_until}; {late} messages would have expired; by the clock \
         as it was before it is {believed}\n\
         if the clock is right: mta clock accept; if not, set it\n"
    )
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
        insta::assert_snapshot!(in_words(&doubt), @r"
        CLOCK NOT TRUSTED since 2026-01-02T08:04:05Z: it was set forward by 18000 s
        expiry waits until 2026-01-02T08:14:05Z; 50 messages would have expired; by the clock as it was before it is 2026-01-02T03:04:05Z
        if the clock is right: mta clock accept; if not, set it
        ");
        let told = ClockAnswer { trusted: false, doubt: Some(doubt) };
        let told = serde_json::to_value(&told).unwrap();
        assert_eq!((&told["trusted"], &told["late"]), (&false.into(), &50.into()));
        let told = ClockAnswer { trusted: true, doubt: None };
        assert_eq!(serde_json::to_string(&told).unwrap(), "{\"trusted\":true}");
    }
}
