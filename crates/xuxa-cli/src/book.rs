//! `xuxa book`: the address book.

use crate::profile::Profile;
use crate::{show, terminal};
use clap::{Args, Subcommand};
use serde_json::json;
use std::process::ExitCode;
use ua::book::{self, Book, BookError, Entry};

#[derive(Debug, Args)]
pub(crate) struct BookArgs {
    #[command(subcommand)]
    verb: BookVerb,
}

#[derive(Debug, Subcommand)]
enum BookVerb {
    /// Show all names and groups
    List,
    /// Add a name for an address, or a group of names and addresses
    Add {
        /// The name: letters, digits, `.`, `_` and `-`
        name: String,
        /// An O/R address, or several addresses and names, which make a group
        #[arg(required = true, value_name = "ADDRESS")]
        members: Vec<String>,
        /// A group, also of one member
        #[arg(long)]
        group: bool,
    },
    /// Remove a name or group
    Remove {
        /// The name
        name: String,
    },
    /// Check every entry
    Check,
}

/// Runs `xuxa book`.
pub(crate) fn run(profile: &Profile, args: &BookArgs, json: bool) -> ExitCode {
    match act(profile, args, json) {
        Ok(code) => code,
        Err(error) => {
            terminal::report_error(&error_text(&error));
            ExitCode::from(2)
        }
    }
}

fn error_text(error: &BookError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn act(profile: &Profile, args: &BookArgs, json: bool) -> Result<ExitCode, BookError> {
    let path = profile.book();
    match &args.verb {
        BookVerb::List => list(&Book::read(&path)?, json),
        BookVerb::Add { name, members, group } => book::add(&path, name, members, *group)?,
        BookVerb::Remove { name } => book::remove(&path, name)?,
        BookVerb::Check => {
            let faults = Book::read(&path)?.faults();
            if json {
                let all: Vec<_> =
                    faults.iter().map(|(n, f)| json!({ "name": n, "fault": f })).collect();
                terminal::print_json(&json!({ "faults": all }));
            } else if faults.is_empty() {
                terminal::print("every entry is right");
            }
            for (name, fault) in &faults {
                terminal::report_error(&format!("{name}: {fault}"));
            }
            if !faults.is_empty() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(book: &Book, json: bool) {
    let members = |entry: &Entry| match entry {
        Entry::Address(address) => vec![address.clone()],
        Entry::Group(members) => members.clone(),
    };
    if json {
        let all: Vec<_> = book
            .entries()
            .map(|(name, entry)| {
                let kind = if matches!(entry, Entry::Group(_)) { "group" } else { "address" };
                json!({ "name": name, "kind": kind, "members": members(entry) })
            })
            .collect();
        terminal::print_json(&json!({ "entries": all }));
        return;
    }
    if book.is_empty() {
        terminal::print("the address book is empty: xuxa book add NAME ADDRESS");
        return;
    }
    let mut table = show::table(&["name", "address, or members of the group"], &[]);
    for (name, entry) in book.entries() {
        table.add_row([name.to_owned(), members(entry).join("; ")]);
    }
    terminal::print(&table.to_string());
}
