//! PostgreSQL servers for tests and trials, each with its own directory, account, port and end.
//!
//! A [`Server`] is one of them, a [`Trio`] is a primary with two quorum standbys, and a [`Relay`] is
//! the network in front of one. Crashes, freezes, full disks and cut connections are made by calls.
//! Nothing is left when the program ends, however it ends: a watcher of its own removes the server.

mod files;
mod options;
mod process;

mod programs;
mod relay;
mod server;
mod times;
mod trio;

pub use options::Options;
pub use programs::{Missing, Programs};
pub use relay::Relay;
pub use server::Server;
pub use trio::{Member, PROMOTE, Trio};

/// The programs of PostgreSQL for the test of this name; `None`, after one line that states it, where
/// they are not installed.
///
/// # Panics
/// They are not installed, and the environment variable `CI` is set: there nothing may be left out.
#[expect(clippy::panic, reason = "a helper of tests")]
pub fn programs_or_skip(test: &str) -> Option<Programs> {
    match Programs::find() {
        Ok(programs) => Some(programs),
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{test}: {missing}"),
        Err(missing) => {
            use std::io::Write as _;
            // Not eprintln: a test that passes shows its lines too.
            let _ = writeln!(std::io::stderr().lock(), "    SKIPPED {test}: {missing}");
            None
        }
    }
}

/// A server for the test of this name, as [`programs_or_skip`].
///
/// # Panics
/// As [`programs_or_skip`]; or it does not start.
#[expect(clippy::panic, reason = "a helper of tests")]
pub fn server_or_skip(test: &str, options: Options) -> Option<Server> {
    let programs = programs_or_skip(test)?;
    match Server::start(options.programs(programs)) {
        Ok(server) => Some(server),
        Err(error) => panic!("{test}: {error:#}"),
    }
}
