//! `xuxa tui`: the terminal interface on a mailbox in a message store.

mod backend;
mod draft;
pub(crate) mod pages;
pub(crate) mod show;
mod stores;

use crate::submission::MtaAccess;
use crate::terminal;
use backend::Mailbox;
use std::process::ExitCode;
use std::rc::Rc;
use ua::Clock;
use xuxa_tui::{Palette, RunError};

/// Runs the interface until the user quits.
pub(crate) async fn run(access: &MtaAccess<'_>) -> ExitCode {
    let mailbox = match Mailbox::open(access) {
        Ok(mailbox) => Rc::new(mailbox),
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            return ExitCode::from(2);
        }
    };
    let palette = Palette::from_environment(|name| std::env::var(name).ok());
    let seed = Clock::utc().0 ^ u64::from(std::process::id()) << 44;
    let stop = access.interrupted.wait();
    match xuxa_tui::run(Rc::clone(&mailbox), palette, Clock::utc, seed, stop).await {
        Ok(()) if access.is_interrupted() => ExitCode::from(crate::INTERRUPTED),
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ RunError::NoTerminal) => {
            terminal::report_error(&error.to_string());
            ExitCode::from(2)
        }
        Err(error) => {
            terminal::report_error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
