//! A user with a mailbox in the message store, whose clients list, fetch, delete and watch over P7 while daemons die. What
//! the store acknowledged to them has to hold ever after.

use nix::sys::signal::Signal;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use testbed::clock::Deadline;
use testbed::{ProgramOutput, RunningClient, Site};

/// The user of each site who has a mailbox.
pub(super) const BOX: &str = "BOX";
/// Longest end of a client that was asked to end.
const SOON: Duration = Duration::from_secs(60);
/// Between two lists.
const PAUSE: Duration = Duration::from_millis(500);
/// Of which precedences an alert is asked for: flash and above.
const ALERTED: [&str; 2] = ["flash", "override"];

/// What is known of an entry.
#[derive(Debug)]
struct Known {
    identifier: String,
    precedence: String,
    /// The lowest status that it may have: what was acknowledged made it so.
    status: Status,
    /// A fetch was begun, acknowledged or not.
    fetch_asked: bool,
    /// SHA-256 of the content.
    content: Option<String>,
    deletion: Deletion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    New,
    Listed,
    Processed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deletion {
    None,
    /// It was asked for, and no answer came.
    InDoubt,
    Acknowledged,
}

/// What the client that runs does.
#[derive(Debug)]
enum Work {
    List,
    Fetch(u32, PathBuf),
    Delete(Vec<u32>),
}

/// A mailbox and its clients.
#[derive(Default)]
pub(super) struct Mailbox {
    name: String,
    known: BTreeMap<u32, Known>,
    client: Option<(Work, RunningClient)>,
    watch: Option<RunningClient>,
    is_begun: bool,
    next_list: Option<Deadline>,
    /// A list was acknowledged since the last fetch or deletion.
    is_settled: bool,
    tries: u32,
}

impl Mailbox {
    /// Looks after the clients, and starts the next one.
    pub(super) fn tend(&mut self, site: &Site) {
        self.name = format!("{BOX} at {}", site.name());
        let ended = self.watch.as_mut().map(|watch| watch.ended().unwrap());
        if ended == Some(true) {
            let run = self.watch.take().unwrap().wait(SOON).unwrap();
            panic!("{}: the watch ended with {}: {}", self.name, run.code, run.stderr);
        }
        self.watch.get_or_insert_with(|| {
            let arguments = ["--json", "watch", "--precedence", ALERTED[0]];
            site.xuxa_beside(BOX, &arguments).unwrap()
        });
        match self.client.as_mut().map(|(_, client)| client.ended().unwrap()) {
            Some(false) => {}
            Some(true) => self.take_result(),
            // Before, a list would make the first entry listed, and the watch begins with what is new.
            None if self.is_begun || self.is_watched() => {
                self.is_begun = true;
                self.begin(site);
            }
            None => {}
        }
    }

    fn begin(&mut self, site: &Site) {
        let unread = self.known.iter().find(|(_, known)| known.content.is_none());
        // A third is deleted, once it is fetched; all others stay until the end.
        let is_due = |(number, known): &(&u32, &Known)| {
            *number % 3 == 0 && known.deletion == Deletion::None && known.content.is_some()
        };
        let due: Vec<u32> = self.known.iter().filter(is_due).map(|(number, _)| *number).collect();
        let is_doubtful = self.known.values().any(|known| known.deletion == Deletion::InDoubt);
        let work = match unread.map(|(number, _)| *number) {
            Some(number) if !is_doubtful => {
                let folder = site.path().join("box");
                fs::create_dir_all(&folder).unwrap();
                self.tries += 1;
                Work::Fetch(number, folder.join(format!("{number}-{}", self.tries)))
            }
            _ if !due.is_empty() && !is_doubtful => Work::Delete(due),
            _ if self.next_list.as_ref().is_none_or(Deadline::has_passed) => {
                self.next_list = Some(Deadline::after(PAUSE));
                Work::List
            }
            _ => return,
        };
        let arguments: Vec<String> = match &work {
            Work::List => ["list", "--limit", "100000"].map(str::to_owned).to_vec(),
            Work::Fetch(number, path) => {
                self.known.get_mut(number).unwrap().fetch_asked = true;
                let path = path.display().to_string();
                vec!["fetch".to_owned(), number.to_string(), "--out".to_owned(), path]
            }
            Work::Delete(numbers) => {
                for number in numbers {
                    self.known.get_mut(number).unwrap().deletion = Deletion::InDoubt;
                }
                ["delete".to_owned()]
                    .into_iter()
                    .chain(numbers.iter().map(u32::to_string))
                    .collect()
            }
        };
        let arguments = ["--json"].into_iter().chain(arguments.iter().map(String::as_str));
        let client = site.xuxa_beside(BOX, &arguments.collect::<Vec<_>>()).unwrap();
        self.is_settled &= matches!(work, Work::List);
        self.client = Some((work, client));
    }

    /// Takes what the client did. Where it failed, nothing is known of what it asked for.
    fn take_result(&mut self) {
        let Some((work, client)) = self.client.take() else { return };
        let run = client.wait(SOON).unwrap();
        if run.code != 0 {
            assert!(
                !run.stderr.contains("has no entry"),
                "{}: {work:?}: {}",
                self.name,
                run.stderr
            );
            return;
        }
        match work {
            Work::List => self.list(&run),
            Work::Fetch(number, path) => {
                let hash = Sha256::digest(fs::read(&path).unwrap());
                let hash: String = hash.iter().map(|octet| format!("{octet:02x}")).collect();
                fs::remove_file(path).unwrap();
                let known = self.known.get_mut(&number).unwrap();
                known.content = Some(hash);
                known.status = Status::Processed;
            }
            Work::Delete(numbers) => {
                for number in numbers {
                    self.known.get_mut(&number).unwrap().deletion = Deletion::Acknowledged;
                }
            }
        }
    }

    /// A whole list against all that is known.
    fn list(&mut self, run: &ProgramOutput) {
        let list: Value = run.json().unwrap();
        assert_eq!(list["more"], false);
        let entries = list["entries"].as_array().unwrap();
        let mut listed = BTreeSet::new();
        for entry in entries {
            let number = u32::try_from(entry["number"].as_u64().unwrap()).unwrap();
            let at = format!("{}, entry {number}", self.name);
            assert!(listed.insert(number), "{at}: twice in a list");
            let status = match entry["status"].as_str().unwrap() {
                "new" => Status::New,
                "listed" => Status::Listed,
                "processed" => Status::Processed,
                other => panic!("{at}: status {other}"),
            };
            let identifier = entry["mts_identifier"].as_str().unwrap();
            let is_another =
                |(n, known): (&u32, &Known)| *n != number && known.identifier == identifier;
            assert!(!self.known.iter().any(is_another), "{at}: {identifier} is there twice");
            let known = self.known.entry(number).or_insert_with(|| Known {
                identifier: identifier.to_owned(),
                precedence: entry["precedence"].as_str().unwrap().to_owned(),
                status: Status::New,
                fetch_asked: false,
                content: None,
                deletion: Deletion::None,
            });
            assert_eq!(known.identifier, identifier, "{at}: the number was given twice");
            assert_ne!(known.deletion, Deletion::Acknowledged, "{at}: deleted, and there again");
            assert!(status >= known.status, "{at}: {status:?} after {known:?}");
            assert!(
                known.fetch_asked || status < Status::Processed,
                "{at}: never fetched: {known:?}"
            );
            known.status = status.max(Status::Listed);
            // What was in doubt did not happen.
            known.deletion = Deletion::None;
        }
        for (number, known) in &mut self.known {
            if !listed.contains(number) {
                assert_ne!(known.deletion, Deletion::None, "{}: entry {number} is lost", self.name);
                known.deletion = Deletion::Acknowledged;
            }
        }
        self.is_settled = true;
    }

    /// Kills the client that runs.
    pub(super) fn kill_client(&mut self) {
        if let Some((_, client)) = &mut self.client {
            let _ = client.signal(Signal::SIGKILL);
        }
    }

    /// Entries so far, those that are deleted too.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    /// Whether all of these came, were fetched, and what alerts are asked for was shown.
    pub(super) fn has_all(&self, identifiers: &BTreeSet<String>) -> bool {
        let known: BTreeSet<&String> = self.known.values().map(|known| &known.identifier).collect();
        let alerts = self.alerts();
        let is_whole = |(number, known): (&u32, &Known)| {
            let is_shown = !is_alerted(known) || alerts.iter().any(|(shown, _)| shown == number);
            known.content.is_some() && known.deletion != Deletion::InDoubt && is_shown
        };
        self.is_settled
            && identifiers.iter().all(|identifier| known.contains(identifier))
            && self.known.iter().all(is_whole)
    }

    /// Whether the watch has shown an entry: from then on it misses none.
    pub(super) fn is_watched(&self) -> bool {
        !self.alerts().is_empty()
    }

    /// Numbers and identifiers of what the watch has shown.
    fn alerts(&self) -> Vec<(u32, String)> {
        let Some(watch) = &self.watch else { return Vec::new() };
        let text = watch.printed().unwrap();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let shown = whole.map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let number = u32::try_from(line["number"].as_u64().unwrap()).unwrap();
            let precedence = line["precedence"].as_str().unwrap();
            assert!(ALERTED.contains(&precedence), "{}: an alert of {line}", self.name);
            (number, line["mts_identifier"].as_str().unwrap().to_owned())
        });
        shown.collect()
    }

    /// Ends the clients in order.
    pub(super) fn stop(&mut self) {
        if let Some((_, client)) = self.client.take() {
            client.wait(SOON).unwrap();
        }
    }

    /// All that must hold in the end; how many alerts there were. The mailbox is empty afterwards.
    pub(super) fn check(
        &mut self,
        site: &Site,
        (identifiers, contents): (BTreeSet<String>, BTreeMap<String, String>),
    ) -> usize {
        let alerts = self.alerts();
        let mut watch = self.watch.take().unwrap();
        watch.signal(Signal::SIGINT).unwrap();
        assert_eq!(watch.wait(SOON).unwrap().code, 130);
        let got: BTreeSet<String> = self.known.values().map(|k| k.identifier.clone()).collect();
        let lost: Vec<_> = identifiers.difference(&got).collect();
        let more: Vec<_> = got.difference(&identifiers).collect();
        assert!(lost.is_empty(), "{}: lost {lost:#?}", self.name);
        assert!(more.is_empty(), "{}: nobody knows {more:#?}", self.name);
        let fetched: BTreeSet<&String> =
            self.known.values().map(|known| known.content.as_ref().unwrap()).collect();
        assert_eq!(fetched, contents.keys().collect(), "{}: octets", self.name);
        let shown: BTreeMap<u32, &String> = alerts.iter().map(|(n, id)| (*n, id)).collect();
        assert_eq!(shown.len(), alerts.len(), "{}: an alert is shown once", self.name);
        for (number, identifier) in &shown {
            let known = self.known.get(number).unwrap();
            assert_eq!(*identifier, &known.identifier, "{}: the alert of {number}", self.name);
        }
        for (number, known) in self.known.iter().filter(|(_, known)| is_alerted(known)) {
            // One that was deleted before the watch was bound again cannot be shown.
            let is_shown = shown.contains_key(number) || known.deletion == Deletion::Acknowledged;
            assert!(is_shown, "{}: no alert of {number}: {known:?}", self.name);
        }
        let left = self.known.iter().filter(|(_, known)| known.deletion == Deletion::None);
        let left: Vec<String> = left.map(|(number, _)| number.to_string()).collect();
        let delete = ["--json", "delete"].into_iter().chain(left.iter().map(String::as_str));
        let run = site.xuxa(BOX, &delete.collect::<Vec<_>>()).unwrap();
        assert_eq!(run.code, 0, "{}: {}", self.name, run.stderr);
        let list: Value = site.xuxa(BOX, &["--json", "list"]).unwrap().json().unwrap();
        assert_eq!(list["entries"].as_array().unwrap().len(), 0, "{}: {list}", self.name);
        alerts.len()
    }
}

fn is_alerted(known: &Known) -> bool {
    ALERTED.contains(&known.precedence.as_str()) && known.deletion == Deletion::None
}
