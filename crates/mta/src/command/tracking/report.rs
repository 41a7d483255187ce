//! `mta report`: how long messages took.

use super::{Source, is_period, print_notes, time};
use crate::command::output::{load_name, print, print_error, print_json};
use crate::command::{DONE, FAILED, WRONG};
use base::Utc;
use std::path::PathBuf;
use tracking::figures::Figures;

/// Shows messages and octets by precedence and peer, and how long they took from acceptance to confirm or
/// delivery.
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
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Write a page with pictures to this file; it needs no other file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(in crate::command) fn run(arguments: &Arguments) -> u8 {
    if !is_period(Some(arguments.since), arguments.until) {
        return WRONG;
    }
    let events = match arguments.source.open() {
        Ok(events) => events,
        Err(code) => return code,
    };
    let until = arguments.until.unwrap_or(Utc(u64::MAX));
    let figures = Figures::read(&*events, (arguments.since, until));
    print_notes(&*events);
    if let Some(file) = &arguments.html {
        let name = arguments.source.config.as_deref().and_then(load_name);
        let page = figures.to_html(name.as_deref().unwrap_or("this MTA"));
        if let Err(error) = std::fs::write(file, page) {
            print_error(&format!("cannot write {}: {error}", file.display()));
            return FAILED;
        }
    }
    match arguments.json {
        true => print_json(&figures),
        false => print(&figures.to_text()),
    }
    DONE
}
