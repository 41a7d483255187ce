//! `mta trace`: a message's way.

use super::{Events, Source, is_period, print_notes, time};
use crate::command::output::{print, print_error, print_json};
use crate::command::{DONE, FAILED, WRONG, argument};
use crate::config::canonical_address;
use base::Utc;
use tracking::way::{Listed, Wanted, Way, list};

/// Shows a message's way with the time of each step, its reports, and what is known of its end; or lists
/// messages.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// MTS identifier, content identifier or queue entry (e42) of the message.
    #[arg(
        value_name = "ID",
        conflicts_with_all = ["originator", "recipient", "since", "until"],
        required_unless_present_any = ["originator", "recipient", "since", "until", "limit"],
        value_parser = argument::text,
    )]
    id: Option<String>,
    /// Messages from this O/R address.
    #[arg(long, value_name = "ADDRESS", value_parser = argument::address)]
    originator: Option<String>,
    /// Messages to this O/R address.
    #[arg(long, value_name = "ADDRESS", value_parser = argument::address)]
    recipient: Option<String>,
    /// Accepted from then on: a UTC time such as 2026-01-02T03:04, or how long ago, such as 2h or 7d.
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Utc>,
    /// Accepted until then.
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Utc>,
    /// List this many messages at most, the newest.
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Print JSON: one object of a message with ID, else one array of messages.
    #[arg(long)]
    json: bool,
}

pub(in crate::command) fn run(arguments: Arguments) -> u8 {
    let canonical = |address: Option<&String>| {
        address.map(|address| canonical_address(address)).transpose().map_err(|_| WRONG)
    };
    let asked = || -> Result<(Box<dyn Events>, Wanted), u8> {
        let wanted = Wanted {
            originator: canonical(arguments.originator.as_ref())?,
            recipient: canonical(arguments.recipient.as_ref())?,
            id: arguments.id,
            since: arguments.since,
            until: arguments.until,
            limit: usize::try_from(arguments.limit).unwrap_or(usize::MAX),
        };
        Ok((arguments.source.open()?, wanted))
    };
    let (events, wanted) = match asked() {
        Ok(asked) => asked,
        Err(code) => return code,
    };
    if !is_period(wanted.since, wanted.until) {
        return WRONG;
    }
    let found = list(&*events, &wanted);
    let mut ways: Vec<Way> = Way::read_all(&*events, &found.messages);
    if wanted.id.is_some() {
        with_their_reports(&mut ways);
    }
    print_notes(&*events);
    let single = wanted.id.is_some() && ways.len() == 1;
    match (ways.first(), arguments.json) {
        (None, true) if wanted.id.is_none() => print("[]\n"),
        (None, _) => {
            print_error(&unknown(&*events, wanted.id.is_some()));
            return FAILED;
        }
        (Some(way), true) if single => print_json(way),
        (Some(way), false) if single => print(&way.to_text()),
        (Some(_), true) => print_json(&ways.iter().map(Listed::new).collect::<Vec<_>>()),
        (Some(_), false) => print(&Listed::to_text(&ways)),
    }
    if found.more {
        print_error("there are older messages: --limit N shows N, --until TIME the older ones");
    }
    DONE
}

/// Leaves out reports that a message among them shows: a report has the content identifier of its subject.
fn with_their_reports(ways: &mut Vec<Way>) {
    let messages: Vec<String> = ways.iter().map(|way| way.message.clone()).collect();
    ways.retain(|way| way.subject.as_ref().is_none_or(|subject| !messages.contains(subject)));
}

/// What to do where nothing was found.
fn unknown(events: &dyn Events, by_identifier: bool) -> String {
    let since = match events.since() {
        Some(since) => format!("messages are tracked here since {since}"),
        None => "no message was tracked here yet".to_owned(),
    };
    match by_identifier {
        true => format!(
            "nothing is known of it; {since}. Write the MTS identifier as the log shows it, with its \
             brackets, in quotes; or look for it with --originator, --recipient or --since"
        ),
        false => format!(
            "no such message is known; {since}. `mta trace --since 7d` lists all of that time; \
             --originator and --recipient take whole addresses"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_shown_with_its_subject() {
        let way = |message: &str, subject: Option<&str>| Way {
            message: message.to_owned(),
            subject: subject.map(str::to_owned),
            steps: vec![],
            reports: vec![],
            gaps: vec![],
        };
        let mut ways = vec![way("m1", None), way("r1", Some("m1")), way("r2", Some("m2"))];
        with_their_reports(&mut ways);
        let left: Vec<&str> = ways.iter().map(|way| way.message.as_str()).collect();
        assert_eq!(left, ["m1", "r2"]);
    }
}
