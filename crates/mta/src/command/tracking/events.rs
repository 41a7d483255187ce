//! `mta events`: what happened, event by event.

use super::{Source, is_period, print_notes, time};
use crate::command::output::{print, print_json_line};
use crate::command::{DONE, WRONG};
use base::Utc;
use std::ops::ControlFlow;
use tracking::lines;

/// Shows events of messages and what operators ordered, in the order of their times; of a site those of all
/// its nodes.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// From then: a UTC time such as 2026-01-02T03:04, or how long ago, such as 2h or 7d.
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Utc,
    /// Until then [default: now].
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Utc>,
    /// Only what operators ordered, and who.
    #[arg(long)]
    orders: bool,
    /// Print a JSON object for each event.
    #[arg(long)]
    json: bool,
}

pub(in crate::command) fn run(arguments: &Arguments) -> u8 {
    if !is_period(Some(arguments.since), arguments.until) {
        return WRONG;
    }
    let events = match arguments.source.open() {
        Ok(events) => events,
        Err(code) => return code,
    };
    let times = (arguments.since, arguments.until.unwrap_or(Utc(u64::MAX)));
    events.scan(times, &mut |event| {
        if !arguments.orders || event.operator.is_some() {
            match arguments.json {
                true => print_json_line(&lines::Line::new(&event)),
                false => print(&lines::text(&event)),
            }
        }
        ControlFlow::Continue(())
    });
    print_notes(&*events);
    DONE
}
