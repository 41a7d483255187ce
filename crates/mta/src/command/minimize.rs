//! `mta minimize`: orders MINIMIZE, or shows what is in force.

use super::error::{ArgumentError, RequestError};
use super::output::{Daemon, print, print_error, print_json, trimmed};
use super::{DONE, WRONG};
use crate::admin::{Answer, Request, ask};
use crate::config::value::duration_of;
use base::Precedence;
use node::minimize::MinimizeOrder;
use node::status::MinimizeStatus;
use status_text::minimize_table;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// Orders MINIMIZE: no message below FLOOR starts, until the order is withdrawn. It outlives a restart, and holds on all
/// nodes of a site. Without FLOOR, shows the orders and configured windows in force.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,
    /// The lowest precedence that may start: routine, priority, immediate, flash or override.
    /// `off` withdraws the order. `off --for TIME` also suspends the MINIMIZE windows of the
    /// configuration for that time.
    floor: Option<Floor>,
    /// Apply the order to this peer only.
    #[arg(long, value_name = "NAME", requires = "floor", conflicts_with = "channel")]
    peer: Option<String>,
    /// Apply the order to this channel only.
    #[arg(long, value_name = "PEER/CHANNEL", requires = "floor")]
    channel: Option<String>,
    /// End the order after this time: 90s, 30min or 2h; at most 8784h.
    #[arg(long = "for", value_name = "TIME", requires = "floor", value_parser = time)]
    time: Option<Duration>,
    /// Print one JSON array.
    #[arg(long)]
    json: bool,
}

/// The floor of an order; `None` withdraws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Floor(Option<Precedence>);

impl FromStr for Floor {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Floor, ArgumentError> {
        match text {
            "off" => Ok(Floor(None)),
            _ => {
                let floor: Precedence = text.parse().map_err(|_| ArgumentError::Floor)?;
                if floor == Precedence::Deferred {
                    // It lets everything start.
                    return Err(ArgumentError::Floor);
                }
                Ok(Floor(Some(floor)))
            }
        }
    }
}

fn time(text: &str) -> Result<Duration, ArgumentError> {
    match duration_of(text) {
        Ok(time) if (1..=8_784 * 3_600).contains(&time.as_secs()) => Ok(time),
        Ok(_) => Err(ArgumentError::TimeOutOfRange),
        Err(bad) => Err(ArgumentError::Time(bad)),
    }
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let Some(socket) = arguments.daemon.socket() else { return WRONG };
    match put(&socket, arguments) {
        Ok(minimize) if arguments.json => print_json(&minimize),
        Ok(minimize) if minimize.is_empty() => print("MINIMIZE is not in force\n"),
        Ok(minimize) => print(&trimmed(&minimize_table(&minimize))),
        Err(why) => {
            print_error(&why.to_string());
            return why.code();
        }
    }
    DONE
}

fn put(socket: &Path, arguments: &Arguments) -> Result<Vec<MinimizeStatus>, RequestError> {
    let request = match arguments.floor {
        None => Request::Status,
        Some(Floor(floor)) => {
            let (peer, channel) = (arguments.peer.clone(), arguments.channel.clone());
            let seconds = arguments.time.map(|time| time.as_secs());
            Request::Minimize { order: MinimizeOrder { peer, channel, floor, seconds } }
        }
    };
    match ask(socket, &request)? {
        Answer::Minimized(minimize) => Ok(minimize),
        Answer::Status(status) => Ok(status.minimize),
        other => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_a_precedence_or_off() {
        assert_eq!("off".parse(), Ok(Floor(None)));
        assert_eq!("flash".parse(), Ok(Floor(Some(Precedence::Flash))));
        assert!("urgent".parse::<Floor>().unwrap_err().to_string().contains("or off"));
        assert_eq!(time("2h"), Ok(Duration::from_secs(7_200)));
        for wrong in ["2", "0s", "500ms", "9000h", "ever"] {
            assert!(time(wrong).unwrap_err().to_string().starts_with("write a "), "{wrong}");
        }
    }
}
