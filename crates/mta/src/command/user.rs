//! `mta user`: manages the users who have a mailbox on this MTA.

use super::output::{load_places, load_routes, print, print_error, print_json};
use super::{DONE, FAILED, PARTLY, WRONG};
use crate::admin::{AskError, Request, ask};
use crate::config::{Paths, Routes, canonical_address};
use crate::driver::users_of;
use clap::Subcommand;
use engine::RouteTarget;
use p1::names::ORAddress;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use users::{DeliveryWay, Directory, Imported, Users, UsersError};

/// The environment variable a password is read from.
const PASSWORD: &str = "XUXA_PASSWORD";

/// Largest password file, in octets.
const MAX_PASSWORD_FILE: u64 = 4 << 10;

/// Adds, removes or lists the users who have a mailbox on this MTA.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Adds a user, or changes a user's password. The password is read from --password-file, else
    /// from the environment variable XUXA_PASSWORD, else from the first line of standard input.
    Add {
        /// The user's O/R address.
        address: String,
        /// The configuration file.
        #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
        config: PathBuf,
        /// A file whose first line is the password. No other user may read it (mode 0600).
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        /// How the user gets messages: they wait until he takes them over P3, or go into his mailbox in the
        /// message store, which he reads over P7 [default: p3, or as it is]
        #[arg(long, value_enum)]
        delivery: Option<DeliveryWay>,
    },
    /// Sets how a user gets messages from now on; also what waits in the queue. What is in his mailbox stays there.
    Delivery {
        /// The user's O/R address.
        address: String,
        /// Over P3, or into the message store.
        #[arg(value_enum)]
        delivery: DeliveryWay,
        /// The configuration file.
        #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
        config: PathBuf,
    },
    /// Removes a user. Messages in the mailbox stay for a user who is added again with this address.
    Remove {
        /// The user's O/R address.
        address: String,
        /// The configuration file.
        #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
        config: PathBuf,
    },
    /// Copies the users of a users.toml into the database that the configuration names ([store] with engine =
    /// "postgres"). Who is in the database already stays as he is there.
    Import {
        /// The file [default: users.toml in data_dir]
        file: Option<PathBuf>,
        /// The configuration file.
        #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
        config: PathBuf,
    },
    /// Lists the users.
    List {
        /// The configuration file.
        #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
        config: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    match &arguments.verb {
        Verb::Add { address, config, password_file, delivery } => {
            with(config, address, |users, address| {
                belongs_here(config, address)?;
                let password = password(password_file.as_deref())?;
                let new = users.add(address, &password, *delivery)?;
                let done = if new { "added" } else { "password set" };
                print(&format!("{address}: {done}\n"));
                Ok(())
            })
        }
        Verb::Delivery { address, delivery, config } => with(config, address, |users, address| {
            users.set_delivery(address, *delivery)?;
            print(&format!("{address}: {}\n", way(*delivery)));
            Ok(())
        }),
        Verb::Remove { address, config } => with(config, address, |users, address| {
            users.remove(address)?;
            print(&format!("{address}: removed\n"));
            Ok(())
        }),
        Verb::Import { file, config } => change(config, |users, paths| {
            let file = file.clone().unwrap_or_else(|| paths.data_dir.join(users::FILE));
            import(users, &file, config)
        }),
        Verb::List { config, json } => list(config, *json),
    }
}

/// Changes a user.
fn with(
    config: &Path,
    address: &str,
    changes: impl FnOnce(&Directory, &str) -> Result<(), UserError>,
) -> u8 {
    match canonical_address(address) {
        Ok(address) => change(config, |users, _| changes(users, &address)),
        Err(error) => {
            print_error(&format!("invalid O/R address: {error}"));
            WRONG
        }
    }
}

/// Changes the users, then notifies a running daemon.
fn change(config: &Path, change: impl FnOnce(&Directory, &Paths) -> Result<(), UserError>) -> u8 {
    let Some((paths, engine)) = load_places(config) else { return WRONG };
    let users = match users_of(&paths, &engine) {
        Ok(users) => users,
        Err(error) => {
            print_error(&error.to_string());
            return FAILED;
        }
    };
    if let Err(error) = change(&users, &paths) {
        if !matches!(error, UserError::AlreadyReported) {
            print_error(&error.to_string());
        }
        return error.code();
    }
    match ask(&paths.admin_socket, &Request::ReloadUsers) {
        Ok(_) => DONE,
        Err(AskError::NoDaemon { .. }) => {
            let directory = paths.data_dir.display();
            print_error(&match &users {
                Directory::File(_) => {
                    format!("no daemon runs on {directory}: the next `mta run` reads it")
                }
                Directory::Database(_) => format!(
                    "no daemon runs on {directory}: nodes of the site that run know it from the database"
                ),
            });
            DONE
        }
        Err(error) => {
            print_error(&format!("done, but the running daemon was not notified: {error}"));
            FAILED
        }
    }
}

/// Copies a file into a database.
fn import(users: &Directory, file: &Path, config: &Path) -> Result<(), UserError> {
    if matches!(users, Directory::File(_)) {
        return Err(UserError::NoDatabase);
    }
    let mut theirs = Users::read_file(file)?;
    if theirs.is_empty() {
        return Err(UserError::NoUsers(file.to_owned()));
    }
    let mut others = Vec::new();
    let routes = load_routes(config).ok_or(UserError::AlreadyReported)?;
    for address in theirs.addresses() {
        if !is_local(&routes, &address) {
            theirs.remove(&address)?;
            others.push(address);
        }
    }
    let Imported { added, kept } = users.import(&theirs)?;
    let there = theirs.addresses().len() - added;
    print(&format!("added {added} of {} users; {there} were there\n", added + there));
    if !kept.is_empty() {
        print_error(&format!(
            "another password or way of delivery is in the database, and stays: {}",
            kept.join(" ")
        ));
    }
    match others.is_empty() {
        true => Ok(()),
        false => Err(UserError::Others { addresses: others.join(" "), local: routes.local() }),
    }
}

#[derive(Debug, thiserror::Error)]
enum UserError {
    #[error(transparent)]
    Users(#[from] UsersError),
    #[error("cannot read the password: {0}")]
    Password(#[from] std::io::Error),
    #[error(
        "{address}: no local route leads here, so that nothing would be delivered; {}",
        remedy(.local)
    )]
    NotLocal { address: String, local: Vec<String> },
    #[error("not added, as no local route leads there: {addresses}; {}", remedy(.local))]
    Others { addresses: String, local: Vec<String> },
    #[error(
        "the users are in the data directory: [store] with engine = \"postgres\" names no database"
    )]
    NoDatabase,
    #[error("there are no users in {0}")]
    NoUsers(PathBuf),
    #[error("the configuration is wrong, as reported")]
    AlreadyReported,
}

impl UserError {
    fn code(&self) -> u8 {
        match self {
            UserError::Users(UsersError::Password) => WRONG,
            UserError::Users(_) => FAILED,
            UserError::Others { .. } => PARTLY,
            UserError::Password(_)
            | UserError::NotLocal { .. }
            | UserError::NoDatabase
            | UserError::NoUsers(_)
            | UserError::AlreadyReported => WRONG,
        }
    }
}

fn remedy(local: &[String]) -> String {
    let add = "add a [[route]] with via = \"local\" for it";
    if local.is_empty() {
        return format!("{add}: there is none at all");
    }
    format!("choose an address below {}, or {add}", local.join(" or "))
}

fn is_local(routes: &Routes, address: &str) -> bool {
    let parsed = address.parse::<ORAddress>().ok();
    let target = parsed.and_then(|parsed| routes.table().look_up(&parsed));
    target == Some(RouteTarget::Local)
}

/// Checks that an address belongs to this MTA: its longest matching route is local.
fn belongs_here(config: &Path, address: &str) -> Result<(), UserError> {
    let routes = load_routes(config).ok_or(UserError::AlreadyReported)?;
    if is_local(&routes, address) {
        return Ok(());
    }
    Err(UserError::NotLocal { address: address.to_owned(), local: routes.local() })
}

/// The first line of the file, else the environment variable, else the first line of standard
/// input. Never an argument: process lists show arguments.
fn password(file: Option<&Path>) -> Result<Vec<u8>, std::io::Error> {
    let first_line = |read: &mut dyn BufRead| {
        let mut line = Vec::new();
        read.take(MAX_PASSWORD_FILE).read_until(b'\n', &mut line)?;
        while line.last().is_some_and(|b| b"\r\n".contains(b)) {
            line.pop();
        }
        Ok(line)
    };
    if let Some(path) = file {
        let file = std::fs::File::open(path)?;
        let metadata = file.metadata()?;
        let mode = metadata.permissions().mode();
        if metadata.is_file() && mode & 0o077 != 0 {
            let mode = mode & 0o7777;
            return Err(std::io::Error::other(format!(
                "others may read {}, whose mode is {mode:04o}: chmod 600 it, and take another \
                 password if others have been here",
                path.display()
            )));
        }
        return first_line(&mut std::io::BufReader::new(file));
    }
    if let Some(value) = std::env::var_os(PASSWORD) {
        return Ok(value.into_encoded_bytes());
    }
    let input = std::io::stdin();
    if input.is_terminal() {
        let hint =
            format!("a password would show on the terminal: use --password-file, {PASSWORD}");
        return Err(std::io::Error::other(format!("{hint} or a pipe")));
    }
    first_line(&mut input.lock())
}

#[derive(Serialize)]
struct Listed {
    users: Vec<String>,
    /// Those whose messages go into the message store.
    stored: BTreeSet<String>,
}

/// How messages get to a user, in words.
fn way(delivery: DeliveryWay) -> &'static str {
    match delivery {
        DeliveryWay::P3 => "messages wait until he takes them over P3",
        DeliveryWay::Store => "messages go into his mailbox, which he reads over P7",
    }
}

fn line(users: &Users, address: &str) -> String {
    match users.delivery_of(address) {
        Some(DeliveryWay::Store) => format!("{address} (message store)\n"),
        _ => format!("{address}\n"),
    }
}

fn list(config: &Path, json: bool) -> u8 {
    let Some((paths, engine)) = load_places(config) else { return WRONG };
    let users = users_of(&paths, &engine).map_err(UsersError::from);
    match users.and_then(|users| users.read()) {
        Ok(users) if json => {
            print_json(&Listed { users: users.addresses(), stored: users.stored() });
        }
        Ok(users) => {
            print(&users.addresses().iter().map(|a| line(&users, a)).collect::<String>());
        }
        Err(error) => {
            print_error(&error.to_string());
            return FAILED;
        }
    }
    DONE
}
