//! `xuxa watch`: what arrives at or above a precedence, at once.
//!
//! The store raises an alert for each new entry that the registered filter matches, on this association. What came
//! while there was none is listed once it is there again, so that nothing is missed.

mod command;
mod seen;

use super::line::Line;
use crate::profile::Wrong;
use crate::submission::MtaAccess;
use crate::{INTERRUPTED, terminal};
use anyhow::Result;
use base::Precedence;
use clap::Args;
use command::Commands;
use seen::Seen;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use ua::Interrupted;
use ua::store::{BindRefused, Entry, Find, Order, Pages, Status, Store, StoreError};

/// How often an idle store is asked whether it is there, and the registration renewed: another watch that ends
/// removes the one they share.
const RENEWAL: Duration = Duration::from_secs(60);
/// Waits between two binds: the first, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Registrations of watches: this and the number of the precedence, at most [`p7::limits::MAX_ALERT_IDENTIFIER`].
const REGISTRATION: i64 = 110;
const _: () = assert!(REGISTRATION + 5 <= p7::limits::MAX_ALERT_IDENTIFIER);

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The lowest precedence of which to alert
    #[arg(long, short, default_value = "flash")]
    precedence: Precedence,
    /// Run this program for each, without a shell and without arguments; XUXA_NUMBER, XUXA_PRECEDENCE,
    /// XUXA_ORIGINATOR, XUXA_SUBJECT and others are in its environment
    #[arg(long, value_name = "PROGRAM")]
    exec: Option<PathBuf>,
    /// End after so many
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Do not begin with what is new in the mailbox already
    #[arg(long)]
    only_later: bool,
}

/// A watch.
struct Watch<'a> {
    access: &'a MtaAccess<'a>,
    args: &'a WatchArgs,
    json: bool,
    seen: Seen,
    /// The highest number that this watch knows of.
    known: Option<u32>,
    commands: Commands,
    shown: u64,
}

/// Runs `xuxa watch`.
pub(super) async fn watch(access: &MtaAccess<'_>, args: &WatchArgs, json: bool) -> Result<u8> {
    if let Some(program) = &args.exec {
        command::check(program)?;
    }
    let mut watch = Watch {
        access,
        args,
        json,
        seen: Seen::default(),
        known: None,
        commands: Commands::new(args.exec.clone()),
        shown: 0,
    };
    let mut store = watch.bind().await?;
    if let Err(error) = watch.begin(&mut store, args.only_later).await {
        // What ended the association is over at the next one. What the store refused, it refuses again.
        if !matches!(error, StoreError::Lost(_)) {
            return Err(error.into());
        }
        match watch.lost(store, &error).await? {
            Some(again) => store = again,
            None => return Ok(INTERRUPTED),
        }
    }
    if !json {
        let precedence = args.precedence;
        terminal::report_error(&format!("watching for {precedence} and above; Ctrl-C ends it"));
    }
    let code = watch.until_the_end(store).await?;
    watch.commands.finish(&access.interrupted).await;
    Ok(code)
}

impl Watch<'_> {
    fn registration(&self) -> i64 {
        REGISTRATION + i64::from(self.args.precedence.number())
    }

    fn find(&self) -> Find {
        Find::new().at_least(self.args.precedence)
    }

    fn is_enough(&self) -> bool {
        self.args.count.is_some_and(|count| self.shown >= count)
    }

    /// Binds without the flag of Ctrl-C, so that it can deregister and unbind afterwards.
    async fn bind(&self) -> Result<Store> {
        let login = self.access.profile.store_login()?;
        let bound =
            Store::bind(&login, self.access.pcap, self.access.clock, Interrupted::default());
        tokio::select! {
            bound = bound => Ok(bound?),
            () = self.access.interrupted.wait() => Err(StoreError::Interrupted.into()),
        }
    }

    /// Registers, then shows what is new, and after a lost association what came since, whoever has listed it: what
    /// comes in between is in both, and shown once.
    async fn begin(&mut self, store: &mut Store, only_later: bool) -> Result<(), StoreError> {
        store.register_alert(self.registration(), self.find().filter()).await?;
        let highest = store.highest().await?;
        let mut pages = match self.known {
            Some(known) => {
                let pages = Pages::new(&self.find(), Order::Precedence, 100);
                pages.from(known.saturating_add(1))
            }
            None => Pages::new(&self.find().status(Status::New), Order::Precedence, 100),
        };
        loop {
            let page = store.next_page(&mut pages).await?;
            if page.is_empty() || self.access.is_interrupted() {
                self.known = self.known.max(Some(highest));
                return Ok(());
            }
            for entry in &page {
                match only_later {
                    true => _ = self.seen.is_first(entry.number),
                    false => self.show(entry),
                }
            }
        }
    }

    /// Shows alerts, binding again whenever the association is lost.
    async fn until_the_end(&mut self, mut store: Store) -> Result<u8> {
        loop {
            match self.alerts(&mut store).await {
                Ok(code) => {
                    let _ = store.deregister_alert(self.registration()).await;
                    let _ = store.unbind().await;
                    return Ok(code);
                }
                Err(error) => match self.lost(store, &error).await? {
                    Some(again) => store = again,
                    None => return Ok(INTERRUPTED),
                },
            }
        }
    }

    /// Shows alerts until Ctrl-C or enough; an error if the association is lost.
    async fn alerts(&mut self, store: &mut Store) -> Result<u8, StoreError> {
        let interrupted = self.access.interrupted.clone();
        let mut renewal = Instant::now() + RENEWAL;
        loop {
            if self.is_enough() {
                return Ok(0);
            }
            tokio::select! {
                biased;
                () = interrupted.wait() => return Ok(INTERRUPTED),
                alert = store.alert(None) => {
                    let first = alert?;
                    // Those that came with it, the highest first.
                    let mut entries: Vec<Entry> = first.and_then(|alert| alert.entry).into_iter().collect();
                    entries.extend(store.take_alerts().into_iter().filter_map(|alert| alert.entry));
                    entries.sort_by_key(|entry| std::cmp::Reverse(entry.precedence));
                    for entry in &entries {
                        if self.is_wanted(entry) && !self.is_enough() {
                            self.show(entry);
                        }
                    }
                }
                () = self.commands.ended() => {}
                () = sleep_until(renewal) => {
                    store.register_alert(self.registration(), self.find().filter()).await?;
                    renewal = Instant::now() + RENEWAL;
                }
            }
        }
    }

    /// Another registration of this user may be for less.
    fn is_wanted(&self, entry: &Entry) -> bool {
        entry.precedence.is_none_or(|precedence| precedence >= self.args.precedence)
    }

    fn show(&mut self, entry: &Entry) {
        self.known = self.known.max(Some(entry.number));
        if !self.seen.is_first(entry.number) {
            return;
        }
        self.shown += 1;
        let line = Line::from(entry);
        if self.json {
            terminal::print_json(&line);
        } else {
            terminal::print(&in_words(&line));
        }
        self.commands.push(entry.precedence, line);
    }

    /// Binds again in place of this association; `None` after Ctrl-C.
    async fn lost(&mut self, store: Store, error: &StoreError) -> Result<Option<Store>> {
        store.abort().await;
        terminal::report_error(&format!("{error}; binding again"));
        self.bind_again().await
    }

    /// Binds until it succeeds; `None` after Ctrl-C.
    async fn bind_again(&mut self) -> Result<Option<Store>> {
        let mut pause = FIRST_PAUSE;
        loop {
            if timeout(pause, self.access.interrupted.wait()).await.is_ok() {
                return Ok(None);
            }
            pause = (pause * 2).min(MAX_PAUSE);
            let error = match self.bind().await {
                Ok(mut store) => match self.begin(&mut store, false).await {
                    Ok(()) => {
                        terminal::report_error("bound again");
                        return Ok(Some(store));
                    }
                    Err(error) => error.into(),
                },
                Err(error) => error,
            };
            match error.downcast_ref::<StoreError>() {
                Some(StoreError::Interrupted) => return Ok(None),
                Some(StoreError::Refused(BindRefused::Credentials)) => return Err(error),
                _ if error.is::<Wrong>() => return Err(error),
                _ => {}
            }
        }
    }
}

/// One line: when, what, from whom.
fn in_words(line: &Line) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let precedence = line.precedence.map(|p| p.to_string().to_uppercase()).unwrap_or_default();
    let what = match line.originator.as_ref() {
        Some(from) => format!("from {from}: {}", text(&line.subject)),
        None => format!("{} on {}", line.kind, text(&line.mts_identifier)),
    };
    let shown = format!("{}  {precedence}  {}  {what}", line.time(), line.number);
    base::shown::line(&shown).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_one_line_and_nothing_in_it_is_obeyed() {
        let line = Line {
            number: 7,
            kind: "message".to_owned(),
            precedence: Some(Precedence::Flash),
            originator: Some("/C=XX/S=Ops".to_owned()),
            subject: Some("Fire\u{1b}[2J\nforged".to_owned()),
            ..Line::default()
        };
        let shown = in_words(&line);
        assert!(shown.contains("FLASH  7  from /C=XX/S=Ops: Fire"), "{shown}");
        assert!(!shown.contains('\n') && !shown.contains('\u{1b}'), "{shown}");
    }
}
