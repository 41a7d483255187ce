//! Options of `xuxa receive`, and its run.

use super::matching::Matching;
use super::{StillWaiting, To, Until, receive};
use crate::extract;
use crate::inbox;
use crate::profile;
use crate::show;
use crate::submission::MtaAccess;
use crate::{INTERRUPTED, terminal};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct ReceiveArgs {
    /// Stay bound and take new deliveries, until --count, --timeout or Ctrl-C (exit code 130)
    #[arg(long)]
    wait: bool,
    /// Stop after this number of deliveries; waits for them
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop after this number of seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Keep no contents, only their identifiers and digests
    #[arg(long)]
    discard: bool,
    /// Put the files in messages into this directory, under their names; if a name is taken, a
    /// number is added
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
    /// Send the receipt notifications that originators asked for
    #[arg(long)]
    acknowledge: bool,
}

/// Runs `xuxa receive`.
pub(crate) async fn run(access: &MtaAccess<'_>, args: &ReceiveArgs, json: bool) -> ExitCode {
    let opened = || {
        let inbox = inbox::Inbox::open(&access.profile.inbox(), !args.discard)?;
        let files = args.extract.as_deref().map(extract::Extraction::open).transpose()?;
        anyhow::Ok((inbox, files))
    };
    let (mut inbox, files) = match opened() {
        Ok(opened) => opened,
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            return ExitCode::from(2);
        }
    };
    if inbox.unreadable_lines() > 0 {
        terminal::report_error(&format!(
            "warning: {} lines of received.log in {} cannot be read: messages that they named are kept again \
             if the MTA repeats their delivery",
            inbox.unreadable_lines(),
            access.profile.inbox().display()
        ));
    }
    let until = Until {
        wait: args.wait,
        count: args.count,
        timeout: args.timeout.map(Duration::from_secs),
        reported: None,
    };
    let mut lines = Vec::new();
    let mut to =
        To { inbox: &mut inbox, files: files.as_ref(), asked: args.acknowledge.then(Vec::new) };
    let mut record = Matching::new(access);
    let outcome = receive(access, &mut to, until, |line| {
        let line = &record.matched(line);
        if let Some(warning) = show::warning(line) {
            terminal::report_error(&warning);
        }
        if !json && args.wait {
            let line = std::slice::from_ref(line);
            terminal::print(&format!("{}\n{}", show::received(line), show::details(line)));
        }
        lines.push(line.clone());
    })
    .await;
    let asked = to.asked.take().unwrap_or_default();
    let unacknowledged = super::acknowledge::acknowledge(access, asked).await;
    if json {
        terminal::print_json(&serde_json::json!({ "deliveries": lines }));
    } else if !args.wait {
        if lines.is_empty() && matches!(outcome, Ok(0)) {
            terminal::print("no delivery waits");
        } else if !lines.is_empty() {
            terminal::print(&format!("{}\n{}", show::received(&lines), show::details(&lines)));
        }
    }
    let code = match received_code(args, lines.len(), outcome) {
        code if code == ExitCode::SUCCESS && unacknowledged > 0 => ExitCode::from(3),
        code => code,
    };
    // One code at whatever moment Ctrl-C came: in a bind, between deliveries or within one.
    if access.is_interrupted() { ExitCode::from(INTERRUPTED) } else { code }
}

/// Reports what is missing of the deliveries; returns the exit code.
fn received_code(args: &ReceiveArgs, received: usize, outcome: Result<u64>) -> ExitCode {
    let wanted = args.count.filter(|wanted| (received as u64) < *wanted);
    match outcome {
        Ok(left) => {
            if let Some(wanted) = wanted {
                terminal::report_error(&format!("received {received} of {wanted} deliveries"));
                ExitCode::from(if received == 0 { 1 } else { 3 })
            } else if left > 0 {
                terminal::report_error(&format!(
                    "{left} messages still wait: the MTA has not delivered them, try again later"
                ));
                ExitCode::from(3)
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            ExitCode::from(match received > 0 || error.is::<StillWaiting>() {
                true => 3,
                false if error.is::<profile::Wrong>() => 2,
                false => 1,
            })
        }
    }
}
