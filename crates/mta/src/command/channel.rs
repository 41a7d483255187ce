//! `mta channel connect`: opens a channel now.

use super::error::RequestError;
use super::output::{Daemon, print, print_error, print_json};
use super::{DONE, FAILED, PARTLY, WRONG};
use crate::admin::{Answer, Request, ask};
use node::connect::ConnectOutcome;
use serde::Serialize;

/// Controls one channel.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: ChannelAction,
}

#[derive(Debug, clap::Subcommand)]
enum ChannelAction {
    /// Ends the wait of a channel and opens it now; retries the messages delayed by failures on
    /// it.
    Connect(Connect),
}

/// Ends the wait of a channel and opens it now.
#[derive(Debug, clap::Args)]
struct Connect {
    #[command(flatten)]
    daemon: Daemon,
    /// The channel, as `mta status` names it, for example act/flash.
    #[arg(value_name = "PEER/CHANNEL")]
    channel: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The result in JSON.
#[derive(Serialize)]
struct Shown<'a> {
    channel: &'a str,
    #[serde(flatten)]
    connected: &'a ConnectOutcome,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let ChannelAction::Connect(connect) = &arguments.action;
    let Some(socket) = connect.daemon.socket() else { return WRONG };
    let channel = connect.channel.as_str();
    let why = match ask(&socket, &Request::Connect { channel: channel.to_owned() }) {
        Ok(Answer::Connected(connected)) => {
            if connect.json {
                print_json(&Shown { channel, connected: &connected });
            } else {
                print(&describe(channel, &connected));
            }
            return code(&connected);
        }
        Ok(other) => RequestError::from(other),
        Err(error) => RequestError::from(error),
    };
    print_error(&why.to_string());
    FAILED
}

fn describe(channel: &str, connected: &ConnectOutcome) -> String {
    match connected {
        ConnectOutcome::Opened => format!("{channel} is open\n"),
        ConnectOutcome::Open { associations: 1 } => {
            format!("{channel} was open already, with 1 association\n")
        }
        ConnectOutcome::Open { associations } => {
            format!("{channel} was open already, with {associations} associations\n")
        }
        ConnectOutcome::Opening => {
            format!("{channel} is being opened: mta status and the log show how that ends\n")
        }
        ConnectOutcome::Failed { reason } => {
            format!("{channel} could not be opened, and is tried again later: {reason}\n")
        }
    }
}

fn code(connected: &ConnectOutcome) -> u8 {
    match connected {
        ConnectOutcome::Opened | ConnectOutcome::Open { .. } => DONE,
        ConnectOutcome::Failed { .. } => FAILED,
        ConnectOutcome::Opening => PARTLY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_words_its_code_and_its_json() {
        let reason = "refused: authentication-error".to_owned();
        let shown: Vec<(String, u8, String)> = [
            ConnectOutcome::Opened,
            ConnectOutcome::Open { associations: 2 },
            ConnectOutcome::Opening,
            ConnectOutcome::Failed { reason },
        ]
        .iter()
        .map(|connected| {
            let json = serde_json::to_string(&Shown { channel: "act/flash", connected }).unwrap();
            (describe("act/flash", connected), code(connected), json)
        })
        .collect();
        assert_eq!(shown[0].0, "act/flash is open\n");
        assert_eq!(shown[1].0, "act/flash was open already, with 2 associations\n");
        assert_eq!(
            shown[3].0,
            "act/flash could not be opened, and is tried again later: refused: authentication-error\n"
        );
        assert_eq!(shown.iter().map(|(_, code, _)| *code).collect::<Vec<_>>(), [0, 0, 3, 1]);
        assert_eq!(
            shown[1].2,
            "{\"channel\":\"act/flash\",\"outcome\":\"open\",\"associations\":2}"
        );
        assert_eq!(shown[2].2, "{\"channel\":\"act/flash\",\"outcome\":\"opening\"}");
    }
}
