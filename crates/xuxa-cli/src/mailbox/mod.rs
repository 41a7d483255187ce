//! The verbs on a mailbox in a message store, over P7. One file a verb; here is what they share.

pub(crate) mod acknowledge;

mod compose;
pub(crate) mod content;
mod delete;
mod export;
pub(crate) mod extract;
mod fetch;
pub(crate) mod forward;
mod import;
mod line;
mod list;
mod password;
pub(crate) mod read;
mod reply;
pub(crate) mod sent;
mod watch;

use crate::profile::Wrong;
use crate::submission::MtaAccess;
use crate::{INTERRUPTED, terminal};
use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;
use ua::store::{MsError, Store, StoreError};

/// A verb on the mailbox.
#[derive(Debug, Subcommand)]
pub(crate) enum MailboxVerb {
    /// List the mailbox in the message store; nothing is taken out of it
    List(list::ListArgs),
    /// Search the mailbox: subject, originator, precedence, SIC
    Search(list::SearchArgs),
    /// Show a message with its heading, or a report in words; it stays in the mailbox
    Read(read::ReadArgs),
    /// Write the content of a message into a file, octet for octet
    Fetch(fetch::FetchArgs),
    /// Put the files of a message into a directory, as they went in
    Extract(extract::ExtractArgs),
    /// Reply to a message: to whom it asks for replies, else to its originator
    Reply(reply::ReplyArgs),
    /// Send the notification of receipt that the originator of a message asked for, once
    Acknowledge(acknowledge::AcknowledgeArgs),
    /// Forward a message, whole, as a body part of a new one
    Forward(forward::ForwardArgs),
    /// Let the message store forward what comes, by itself; or no longer
    AutoForward(forward::AutoForwardArgs),
    /// Delete messages and reports
    Delete(delete::DeleteArgs),
    /// Stay bound, and print what arrives at or above a precedence, at once
    Watch(watch::WatchArgs),
    /// Write the whole mailbox into a directory, to keep it, or as a maildir to read it
    ///
    /// An export fetches every entry, and so makes every entry processed, as if it was read: P7 has no way to fetch a
    /// content that leaves the status as it is. The index of the export has the status of each entry before.
    Export(export::ExportArgs),
    #[command(about = "Check an exported mailbox, or submit its messages anew")]
    Import(import::ImportArgs),
    /// Change the password
    Password(password::PasswordArgs),
}

/// Runs a verb.
pub(crate) async fn run(access: &MtaAccess<'_>, verb: &MailboxVerb, json: bool) -> ExitCode {
    let outcome = match verb {
        MailboxVerb::List(args) => list::list(access, args, json).await,
        MailboxVerb::Search(args) => list::search(access, args, json).await,
        MailboxVerb::Read(args) => read::read(access, args, json).await,
        MailboxVerb::Fetch(args) => fetch::fetch(access, args, json).await,
        MailboxVerb::Extract(args) => extract::extract(access, args, json).await,
        MailboxVerb::Reply(args) => reply::reply(access, args, json).await,
        MailboxVerb::Acknowledge(args) => acknowledge::acknowledge(access, args, json).await,
        MailboxVerb::Forward(args) => forward::forward(access, args, json).await,
        MailboxVerb::AutoForward(args) => forward::auto_forward(access, args, json).await,
        MailboxVerb::Delete(args) => delete::delete(access, args, json).await,
        MailboxVerb::Watch(args) => watch::watch(access, args, json).await,
        MailboxVerb::Export(args) => export::export(access, args, json).await,
        MailboxVerb::Import(args) => import::import(access, args, json).await,
        MailboxVerb::Password(args) => password::password(access, args, json).await,
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let code = code(&error);
            if code != INTERRUPTED {
                terminal::report_error(&in_words(&error));
            }
            ExitCode::from(code)
        }
    }
}

/// Something was done before an error: the exit code is 3.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct InPart(String);

fn code(error: &anyhow::Error) -> u8 {
    let store = error.downcast_ref::<StoreError>();
    match () {
        () if error.is::<compose::InDoubt>() => 4,
        () if matches!(store, Some(StoreError::Interrupted)) => INTERRUPTED,
        () if error.is::<InPart>() => 3,
        () if error.is::<Wrong>() => 2,
        () => 1,
    }
}

/// The error in words, with what to do next where there is something.
fn in_words(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    match error.downcast_ref::<StoreError>() {
        Some(StoreError::Operation(MsError::SequenceNumber(problems))) => {
            let numbers: Vec<String> = problems.iter().map(|(_, n)| n.to_string()).collect();
            format!("the mailbox has no entry {}: `xuxa list` has the numbers", numbers.join(", "))
        }
        _ => text,
    }
}

/// Binds to the store.
async fn bind(access: &MtaAccess<'_>) -> Result<Store> {
    let login = access.profile.store_login()?;
    let interrupted = access.interrupted.clone();
    Ok(Store::bind(&login, access.pcap, access.clock, interrupted).await?)
}

/// Binds, works, and unbinds.
async fn with_store<T>(
    access: &MtaAccess<'_>,
    work: impl AsyncFnOnce(&mut Store) -> Result<T>,
) -> Result<T> {
    let mut store = bind(access).await?;
    match work(&mut store).await {
        Ok(done) => {
            // What was asked for is done.
            if let Err(error) = store.unbind().await {
                terminal::report_error(&format!("after the last answer: {error}"));
            }
            Ok(done)
        }
        Err(error) => {
            match error.downcast_ref::<StoreError>() {
                Some(refused) if !refused.is_final() => _ = store.unbind().await,
                _ => store.abort().await,
            }
            Err(error)
        }
    }
}
