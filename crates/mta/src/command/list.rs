//! `mta list`: distribution lists.

use super::error::RequestError;
use super::output::{Daemon, print, print_error, print_json, progress};
use super::{DONE, FAILED, PARTLY, WRONG, argument};
use crate::admin::{Answer, Request, ask};
use crate::config::canonical_address;
use node::lists::{
    List, ListChange, ListEdit, ListError, MAX_MEMBERS, ReportPolicy, SubmitPermission,
};
use status_text::{list_to_text, lists_to_text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Octets of addresses in one request.
const MAX_REQUEST: usize = 32 << 10;

/// Shows, adds, changes and removes distribution lists. They are kept with the queue, and hold across
/// restarts and reloads.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: ListAction,
}

#[derive(Debug, clap::Subcommand)]
enum ListAction {
    /// Shows all lists, or all that is known of some.
    Show {
        /// Addresses of lists.
        #[arg(value_name = "ADDRESS", value_parser = argument::address)]
        addresses: Vec<String>,
    },
    /// Adds a list.
    Add {
        /// The list's O/R address, which must be of this MTA and nobody's.
        #[arg(value_name = "ADDRESS", value_parser = argument::address)]
        address: String,
        /// A member: the O/R address of a user or a list, here or elsewhere.
        #[arg(long = "member", value_name = "ADDRESS", value_parser = argument::address)]
        members: Vec<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Changes a list. What is not named stays.
    Change {
        /// The list's O/R address.
        #[arg(value_name = "ADDRESS", value_parser = argument::address)]
        address: String,
        /// A new member.
        #[arg(long = "add", value_name = "ADDRESS", value_parser = argument::address)]
        add: Vec<String>,
        /// A member that leaves.
        #[arg(long = "remove", value_name = "ADDRESS", value_parser = argument::address)]
        remove: Vec<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Removes a list. Who writes to it afterwards gets a non-delivery report.
    Remove {
        /// The list's O/R address.
        #[arg(value_name = "ADDRESS", value_parser = argument::address)]
        address: String,
        /// Only check whether that can be done.
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Settings {
    /// A file with further members, one address a line.
    #[arg(long, value_name = "FILE")]
    members_file: Option<PathBuf>,
    /// Who may send to it: `anyone`, `members`, or an O/R address (who has all its attributes); may be
    /// given several times.
    #[arg(long, value_name = "WHO", value_parser = who)]
    submit: Vec<String>,
    /// Who gets the reports about members: the originator, the owner (non-delivery only), both or nobody.
    #[arg(long, value_name = "WHO", value_parser = policy)]
    reports: Option<ReportPolicy>,
    /// Its owner's O/R address.
    #[arg(long, value_name = "ADDRESS", value_parser = argument::address)]
    owner: Option<String>,
    /// Only check whether that can be done.
    #[arg(long)]
    dry_run: bool,
}

fn who(text: &str) -> Result<String, String> {
    match text {
        "anyone" | "members" => Ok(text.to_owned()),
        text => argument::address(text),
    }
}

fn policy(text: &str) -> Result<ReportPolicy, String> {
    Ok(match text {
        "originator" => ReportPolicy::Originator,
        "owner" => ReportPolicy::Owner,
        "both" => ReportPolicy::Both,
        "nobody" => ReportPolicy::Nobody,
        _ => return Err("write originator, owner, both or nobody".to_owned()),
    })
}

impl Settings {
    fn submit(&self) -> Option<SubmitPermission> {
        Some(match &self.submit[..] {
            [] => return None,
            [one] if one == "anyone" => SubmitPermission::Anyone,
            [one] if one == "members" => SubmitPermission::Members,
            all => SubmitPermission::Only(all.to_vec()),
        })
    }

    /// The members named, and those of the file; `None` after printing why it cannot be read.
    fn members(&self, named: &[String]) -> Option<Vec<String>> {
        let mut all = named.to_vec();
        if let Some(file) = &self.members_file {
            match std::fs::read_to_string(file) {
                Ok(text) => {
                    let lines = text.lines().map(str::trim);
                    all.extend(
                        lines.filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::to_owned),
                    );
                }
                Err(error) => {
                    print_error(&format!("{}: {error}", file.display()));
                    return None;
                }
            }
        }
        Some(all)
    }
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let Some(socket) = arguments.daemon.socket() else { return WRONG };
    let json = arguments.json;
    match &arguments.action {
        ListAction::Show { addresses } => show(&socket, addresses, json),
        ListAction::Add { address, members, settings } => {
            let Some(members) = settings.members(members) else { return WRONG };
            if let Err(why) = check(address, &members) {
                print_error(&why);
                return WRONG;
            }
            let mut parts = parts(members).into_iter();
            let list = List {
                address: address.clone(),
                members: parts.next().unwrap_or_default(),
                submit: settings.submit().unwrap_or_default(),
                reports: settings.reports.unwrap_or_default(),
                owner: settings.owner.clone(),
            };
            let more = |add| ListChange::Change {
                address: address.clone(),
                edit: ListEdit { add, ..ListEdit::default() },
            };
            let changes = std::iter::once(ListChange::Add(list)).chain(parts.map(more));
            carry_out(&socket, &changes.collect::<Vec<_>>(), settings.dry_run, json)
        }
        ListAction::Change { address, add, remove, settings } => {
            let Some(add) = settings.members(add) else { return WRONG };
            if let Err(why) = check(address, &add) {
                print_error(&why);
                return WRONG;
            }
            let mut parts = parts(add).into_iter();
            let edit = ListEdit {
                add: parts.next().unwrap_or_default(),
                remove: remove.clone(),
                submit: settings.submit(),
                reports: settings.reports,
                owner: settings.owner.clone(),
            };
            if edit == ListEdit::default() {
                print_error(
                    "nothing to change: write --add, --remove, --submit, --reports or --owner",
                );
                return WRONG;
            }
            let change = |edit| ListChange::Change { address: address.clone(), edit };
            let more = |add| change(ListEdit { add, ..ListEdit::default() });
            let changes = std::iter::once(change(edit)).chain(parts.map(more));
            carry_out(&socket, &changes.collect::<Vec<_>>(), settings.dry_run, json)
        }
        ListAction::Remove { address, dry_run } => {
            let change = ListChange::Remove { address: address.clone() };
            carry_out(&socket, &[change], *dry_run, json)
        }
    }
}

/// What can be seen to be wrong with a list's new members before the first part of them is sent.
fn check(address: &str, members: &[String]) -> Result<(), String> {
    let mut all = BTreeSet::new();
    for member in members {
        all.insert(canonical_address(member).map_err(|why| format!("{member}: {why}"))?);
    }
    match all.len() > MAX_MEMBERS {
        true => Err(ListError::Members(address.to_owned()).to_string()),
        false => Ok(()),
    }
}

/// Members by request: none is longer than the daemon takes.
fn parts(members: Vec<String>) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut octets = MAX_REQUEST;
    for member in members {
        octets += member.len();
        if octets > MAX_REQUEST {
            octets = member.len();
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(member);
        }
    }
    parts
}

/// Has changes made, in order; of a trial, only the first can be checked.
fn carry_out(socket: &Path, changes: &[ListChange], try_only: bool, json: bool) -> u8 {
    let changes = if try_only { changes.get(..1).unwrap_or_default() } else { changes };
    for (number, change) in changes.iter().enumerate() {
        if changes.len() > 1 {
            progress(Some(&format!("{number} of {} parts", changes.len())));
        }
        let request = Request::ChangeList { change: Box::new(change.clone()), try_only };
        let error = match ask(socket, &request) {
            Ok(Answer::Lists(lists)) if number + 1 == changes.len() => {
                progress(None);
                return done(&lists, change, try_only, json);
            }
            Ok(Answer::Lists(_)) => continue,
            Ok(other) => RequestError::from(other),
            Err(error) => RequestError::from(error),
        };
        progress(None);
        print_error(&error.to_string());
        if number == 0 {
            return error.code();
        }
        let there = match ask(socket, &Request::Lists) {
            Ok(Answer::Lists(lists)) => Some(lists),
            _ => None,
        };
        print_error(&cut_short(change.address(), number, changes.len(), there.as_deref()));
        return PARTLY;
    }
    DONE
}

fn done(lists: &[List], change: &ListChange, try_only: bool, json: bool) -> u8 {
    let address = change.address();
    let list = lists.iter().find(|list| is_same(&list.address, address));
    if json {
        print_json(&serde_json::json!({ "list": list, "dry_run": try_only }));
        return DONE;
    }
    print(&match (change, list) {
        _ if try_only => format!("{address}: this can be done; nothing was (--dry-run)\n"),
        (ListChange::Remove { .. }, _) => format!("{address} is removed\n"),
        (_, Some(list)) if list.members.len() == 1 => format!("{address} has 1 member\n"),
        (_, Some(list)) => format!("{address} has {} members\n", list.members.len()),
        (_, None) => format!("{address} is changed\n"),
    });
    DONE
}

/// What there is after so many parts of a change.
fn cut_short(address: &str, done: usize, all: usize, lists: Option<&[List]>) -> String {
    let list = lists.map(|lists| lists.iter().find(|list| is_same(&list.address, address)));
    let there = match list {
        Some(Some(list)) => format!("{address} has {} members now", list.members.len()),
        Some(None) => format!("list {address} is gone"),
        None => format!("`mta list show {address:?}` shows what there is"),
    };
    format!(
        "only {done} of {all} parts are done: {there}. `mta list change {address:?} --members-file FILE` \
         with all members adds those that are missing"
    )
}

fn is_same(a: &str, b: &str) -> bool {
    a == b || canonical_address(a).ok().zip(canonical_address(b).ok()).is_some_and(|(a, b)| a == b)
}

fn show(socket: &Path, addresses: &[String], json: bool) -> u8 {
    let lists = match ask(socket, &Request::Lists) {
        Ok(Answer::Lists(lists)) => lists,
        Ok(other) => {
            print_error(&RequestError::from(other).to_string());
            return FAILED;
        }
        Err(error) => {
            print_error(&error.to_string());
            return FAILED;
        }
    };
    let mut found = Vec::new();
    for address in addresses {
        match lists.iter().find(|list| is_same(&list.address, address)) {
            Some(list) => found.push(list.clone()),
            None => print_error(&format!("there is no list {address}: `mta list show` shows them")),
        }
    }
    let shown = if addresses.is_empty() { &lists } else { &found };
    if json {
        print_json(&serde_json::json!({ "lists": shown }));
    } else if addresses.is_empty() {
        print(&lists_to_text(&lists));
    } else {
        shown.iter().for_each(|list| print(&list_to_text(list)));
    }
    match found.len() {
        0 if !addresses.is_empty() => FAILED,
        count if count < addresses.len() => PARTLY,
        _ => DONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_found_before_the_first_part_and_what_is_there_is_shown_after_a_later_one() {
        let of = |count: usize| -> Vec<String> {
            (0..count).map(|n| format!("C=IT;ADMD=;S=User{n}")).collect()
        };
        assert_eq!(check("C=IT;CN=staff", &[of(5_000), of(9)].concat()), Ok(()), "some are twice");
        assert!(check("C=IT;CN=staff", &of(5_001)).unwrap_err().contains("more than 5000"));
        assert!(check("C=IT;CN=staff", &["nobody".to_owned()]).unwrap_err().contains("nobody: "));
        let list = List {
            address: "C=IT;ADMD=;CN=staff".to_owned(),
            members: of(700),
            submit: SubmitPermission::Anyone,
            reports: ReportPolicy::Originator,
            owner: None,
        };
        let text = cut_short("C=it;CN=STAFF;ADMD=", 1, 9, Some(&[list]));
        assert!(
            text.starts_with("only 1 of 9 parts are done: C=it;CN=STAFF;ADMD= has 700 members"),
            "{text}"
        );
        assert!(cut_short("C=IT;CN=staff", 1, 9, Some(&[])).contains("is gone"));
        assert!(
            cut_short("C=IT;CN=staff", 1, 9, None).contains("`mta list show \"C=IT;CN=staff\"`")
        );
    }

    #[test]
    fn members_are_divided_by_octets_and_none_is_left_out() {
        let members: Vec<String> = (0..5_000).map(|n| format!("/C=IT/ADMD=/S=User{n}/")).collect();
        let parts = parts(members.clone());
        assert!(parts.len() > 1);
        assert!(parts.iter().all(|p| p.iter().map(String::len).sum::<usize>() <= MAX_REQUEST));
        assert_eq!(parts.concat(), members);
        assert!(super::parts(Vec::new()).is_empty());
    }
}
