//! A user of the site whose deliveries go into a mailbox of the message store: he lists and fetches over P7, at any
//! node, and leaves everything there.

use crate::client::{Clients, Running};
use crate::ledger::{Copy, Ledger};
use crate::message::{Place, User};
use anyhow::{Context as _, Result};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The user.
pub(crate) const BOX: User = User { place: Place::Hq, name: "BOX" };
/// Between two lists while nothing is new.
const PAUSE: Duration = Duration::from_secs(2);

/// `xuxa list --json`.
#[derive(Debug, Deserialize)]
struct List {
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    number: u32,
    mts_identifier: String,
}

/// What a client does.
#[derive(Debug)]
enum Work {
    List,
    Fetch((u32, String), PathBuf),
}

/// An item of the mailbox.
#[derive(Debug)]
struct Item {
    /// When it was first listed; items of one list are in the order of their numbers.
    at: Duration,
    is_fetched: bool,
}

/// The mailbox, as its user knows it.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    /// By number and MTS identifier: a number that is given twice is two items.
    items: BTreeMap<(u32, String), Item>,
    client: Option<(Work, Running)>,
    node: usize,
    due: Duration,
    tries: u32,
    last_tried: Option<(u32, String)>,
    /// Items that the last list did not have any more.
    missing: Vec<(u32, String)>,
}

impl Mailbox {
    /// Looks after the client, and starts the next one.
    pub(crate) fn tend(
        &mut self,
        clients: &Clients,
        now: Duration,
        ledger: &mut Ledger,
    ) -> Result<()> {
        if let Some((work, mut client)) = self.client.take() {
            if !client.ended()? {
                self.client = Some((work, client));
                return Ok(());
            }
            self.take_result(work, client, now, ledger)?;
        }
        let work = match self.next_unread() {
            Some(item) => {
                (self.tries, self.last_tried) = (self.tries + 1, Some(item.clone()));
                let path = clients.home(Place::Hq).join(format!("item-{}", self.tries));
                Work::Fetch(item, path)
            }
            None if now >= self.due => Work::List,
            None => return Ok(()),
        };
        let mut arguments: Vec<String> = match &work {
            Work::List => ["--json", "list", "--limit", "100000"].map(str::to_owned).to_vec(),
            Work::Fetch((number, _), path) => {
                let (number, path) = (number.to_string(), path.display().to_string());
                ["--json", "fetch", &number, "--out", &path].map(str::to_owned).to_vec()
            }
        };
        arguments.extend(["--answer-timeout", "20s"].map(str::to_owned));
        self.client = Some((work, clients.start(BOX, self.node, &arguments)?));
        Ok(())
    }

    /// The next item to fetch: one that cannot be read must not keep him from the others, nor from lists.
    fn next_unread(&self) -> Option<(u32, String)> {
        let is_next = |key: &(u32, String)| self.last_tried.as_ref().is_none_or(|last| key > last);
        let unread = self.items.iter().filter(|(_, item)| !item.is_fetched);
        unread.map(|(key, _)| key).find(|key| is_next(key)).cloned()
    }

    fn take_result(
        &mut self,
        work: Work,
        client: Running,
        now: Duration,
        ledger: &mut Ledger,
    ) -> Result<()> {
        self.due = now + PAUSE;
        match work {
            Work::List => match client.output::<List>()?.0 {
                Some(list) => {
                    self.list(&list, now);
                    self.last_tried = None;
                }
                None => self.node = self.node.wrapping_add(1),
            },
            Work::Fetch(key, path) => {
                let (output, _complaint) = client.output::<serde_json::Value>()?;
                // The file is there before the answer is printed, and may be in part without one.
                if output.is_none() {
                    let _ = fs::remove_file(&path);
                    self.node = self.node.wrapping_add(1);
                    return Ok(());
                }
                let octets = fs::read(&path).context("a fetched item")?;
                fs::remove_file(&path)?;
                let sha256: String =
                    Sha256::digest(&octets).iter().map(|octet| format!("{octet:02x}")).collect();
                let item = self.items.get_mut(&key).context("an item that was asked for")?;
                item.is_fetched = true;
                let mts_identifier = key.1;
                ledger.delivers(&BOX.shown(), Copy { mts_identifier, sha256, at: item.at });
            }
        }
        Ok(())
    }

    fn list(&mut self, list: &List, now: Duration) {
        let key = |entry: &Entry| (entry.number, entry.mts_identifier.clone());
        let listed: BTreeSet<(u32, String)> = list.entries.iter().map(key).collect();
        for (number, mts_identifier) in &listed {
            let at = now + Duration::from_micros(u64::from(*number));
            let key = (*number, mts_identifier.clone());
            self.items.entry(key).or_insert(Item { at, is_fetched: false });
        }
        // Nobody deletes here, so what was there once is there in each later list.
        self.missing = self.items.keys().filter(|key| !listed.contains(*key)).cloned().collect();
    }

    /// Waits for the client, and takes back what the mailbox did not keep.
    pub(crate) fn stop(&mut self, now: Duration, ledger: &mut Ledger) -> Result<()> {
        if let Some((work, mut client)) = self.client.take() {
            client.stop();
            self.take_result(work, client, now, ledger)?;
        }
        for (_, mts_identifier) in &self.missing {
            ledger.withdraws(&BOX.shown(), mts_identifier);
        }
        Ok(())
    }
}
