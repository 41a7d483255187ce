//! The record of what was sent: one JSON object a line, appended durably, and what reports and
//! notifications have since stated about each message.
//!
//! A client sees submissions, reports and notifications. Whether a message was transferred from one
//! MTA to the next cannot be seen over P3, nor that it was delivered where no report was asked for:
//! then the state stays `accepted`.

use crate::form::show_ipm;
use crate::message::Message;
use base::{Precedence, Utc, shown};
use p1::flags::ReportRequest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A message as it was submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// MTS identifier; empty while the message is in doubt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mts_identifier: String,
    /// IPM identifier, as [`show_ipm`] writes it.
    pub ipm: String,
    /// Content identifier.
    pub content_identifier: String,
    /// Date-time group, UTCTime.
    pub dtg: String,
    /// Subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Recipients of this submission: O/R addresses.
    pub recipients: Vec<String>,
    /// Precedence, by its name.
    pub precedence: String,
    /// Octets of the body parts.
    pub size: u64,
    /// When it was submitted, RFC 3339.
    #[serde(default)]
    pub time: String,
    /// What was asked for: `report`, `rn`, `nrn`, `reply`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// Not to be delivered before, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred_until: Option<String>,
    /// This is a probe: nothing was sent but the question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probe: bool,
}

impl Submitted {
    /// The record of a message, before its submission.
    pub fn new(message: &Message) -> Submitted {
        let mut requests: Vec<String> = Vec::new();
        let mut add = |name: &str| {
            if !requests.iter().any(|known| known == name) {
                requests.push(name.to_owned());
            }
        };
        for recipient in message.recipients() {
            if recipient.requests.report.unwrap_or(message.report) == ReportRequest::Report {
                add("report");
            }
            recipient.requests.names().iter().for_each(|name| add(name));
        }
        let address = |r: &&crate::Recipient| r.name.address.to_string();
        Submitted {
            mts_identifier: String::new(),
            ipm: show_ipm(&message.ipm()),
            content_identifier: message.content_identifier.clone(),
            dtg: message.authorised_at.to_utc_time(),
            subject: message.subject.clone(),
            recipients: message.recipients().iter().map(address).collect(),
            precedence: message.precedence.to_string(),
            size: message.size(),
            time: String::new(),
            requests,
            deferred_until: message.options.deferred_until.map(|at| at.to_string()),
            probe: false,
        }
    }

    /// The record of an acknowledgement is that of its notification's message: see
    /// [`Entry::Acknowledged`]. This is that of a probe.
    pub fn probe(content_identifier: &str, recipients: Vec<String>, at: Utc) -> Submitted {
        Submitted {
            content_identifier: content_identifier.to_owned(),
            dtg: at.to_utc_time(),
            recipients,
            precedence: Precedence::Routine.to_string(),
            probe: true,
            requests: vec!["report".to_owned()],
            ..Submitted::default()
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// A submission begins: without another line the message is in doubt.
    Begun(Submitted),
    /// The MTA has answered with an MTS identifier.
    Accepted(Submitted),
    /// The submission ended without acceptance.
    Ended {
        /// Content identifier.
        content_identifier: String,
        /// IPM identifier.
        ipm: String,
        /// `refused` or `not_sent`.
        outcome: String,
        /// Why.
        reason: String,
    },
    /// A report on one recipient.
    Reported {
        /// MTS identifier of the message.
        mts_identifier: String,
        /// The recipient's address.
        recipient: String,
        /// Whether it was delivered.
        delivered: bool,
        /// When, or why not.
        detail: String,
    },
    /// A notification of one recipient.
    Notified {
        /// IPM identifier of the message.
        ipm: String,
        /// The recipient's address.
        recipient: String,
        /// Whether it is one of receipt.
        read: bool,
        /// What it states, in words.
        detail: String,
    },
    /// The MTA has cancelled a deferred delivery.
    Cancelled {
        /// MTS identifier of the message.
        mts_identifier: String,
    },
    /// We are about to acknowledge a message that we received: a notification that is submitted again after a lost
    /// answer has the same identifier and time.
    Acknowledging {
        /// MTS identifier of the delivery.
        mts_identifier: String,
        /// Content identifier of the notification.
        content_identifier: String,
        /// The receipt time in it, UTCTime.
        time: String,
    },
    /// We have acknowledged a message that we received.
    Acknowledged {
        /// MTS identifier of the delivery.
        mts_identifier: String,
        /// IPM identifier of that message.
        ipm: String,
        /// MTS identifier of the notification.
        notification: String,
    },
}

/// What is known of a message and one recipient, in the order in which it comes about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The submission was not answered: the MTA may have accepted it or not.
    InDoubt,
    /// The MTA did not accept it, or never received all of it.
    NotSent(String),
    /// The MTA has it; nothing more is known.
    Accepted,
    /// Its deferred delivery was cancelled.
    Cancelled,
    /// A report states delivery.
    Delivered(String),
    /// A report states non-delivery.
    NotDelivered(String),
    /// A notification states that it will not be read.
    NotRead(String),
    /// A notification states that it was read.
    Read(String),
}

/// In words.
impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            State::InDoubt => f.write_str("in doubt: the submission was not answered"),
            State::NotSent(why) => write!(f, "not sent: {why}"),
            State::Accepted => f.write_str("accepted"),
            State::Cancelled => f.write_str("cancelled before delivery"),
            State::Delivered(at) => write!(f, "delivered {at}"),
            State::NotDelivered(why) => write!(f, "not delivered: {why}"),
            State::NotRead(why) => write!(f, "not read: {why}"),
            State::Read(how) => f.write_str(how),
        }
    }
}

/// A message of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// As it was submitted.
    pub submitted: Submitted,
    /// The state for each recipient, in the order of the submission; recipients that only reports or
    /// notifications name, such as members of a list, follow.
    pub recipients: Vec<(String, State)>,
}

impl SentMessage {
    fn set(&mut self, recipient: &str, state: State) {
        let is_it = |known: &(String, State)| is_same(&known.0, recipient);
        match self.recipients.iter_mut().find(|known| is_it(known)) {
            // A report that comes after the notification does not take it back.
            Some((_, known)) => *known = std::cmp::max(known.clone(), state),
            None => self.recipients.push((recipient.to_owned(), state)),
        }
    }

    fn set_all(&mut self, state: &State) {
        self.recipients.iter_mut().for_each(|(_, known)| *known = state.clone());
    }

    /// The state of the whole: that of its recipients where they agree, else how many are where.
    pub fn summary(&self) -> String {
        let mut states = self.recipients.iter().map(|(_, state)| state);
        let Some(first) = states.next() else { return State::Accepted.to_string() };
        if states.all(|state| state == first) {
            return first.to_string();
        }
        let total = self.recipients.len();
        let count = |what: &str, is: fn(&State) -> bool| {
            let n = self.recipients.iter().filter(|(_, state)| is(state)).count();
            (n > 0).then(|| format!("{what} {n} of {total}"))
        };
        let parts = [
            count("read", |s| matches!(s, State::Read(_))),
            count("delivered", |s| matches!(s, State::Delivered(_))),
            count("not delivered", |s| matches!(s, State::NotDelivered(_))),
            count("not read", |s| matches!(s, State::NotRead(_))),
            count("accepted", |s| matches!(s, State::Accepted)),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Whether two texts are the same address.
fn is_same(a: &str, b: &str) -> bool {
    use crate::form::address;
    a == b || matches!((address(a), address(b)), (Ok(a), Ok(b)) if a.address.same_as(&b.address))
}

/// The record, read.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// The messages, oldest first.
    pub messages: Vec<SentMessage>,
    /// MTS identifiers of deliveries that we have acknowledged.
    pub acknowledged: Vec<String>,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// Content identifier and time of the notification of each delivery of which one was begun.
    acknowledging: BTreeMap<String, (String, String)>,
    by_key: BTreeMap<(String, String), usize>,
    by_mts: BTreeMap<String, usize>,
    by_ipm: BTreeMap<String, Vec<usize>>,
}

impl Sent {
    /// The message with this MTS identifier.
    pub fn by_mts(&self, identifier: &str) -> Option<&SentMessage> {
        self.by_mts.get(identifier).and_then(|at| self.messages.get(*at))
    }

    /// The messages with this IPM identifier: several, where there were blind copies.
    pub fn by_ipm(&self, ipm: &str) -> impl Iterator<Item = &SentMessage> {
        let at = self.by_ipm.get(ipm).map(Vec::as_slice).unwrap_or_default();
        at.iter().filter_map(|at| self.messages.get(*at))
    }

    fn message(&mut self, submitted: Submitted) -> Option<&mut SentMessage> {
        let key = (submitted.content_identifier.clone(), submitted.ipm.clone());
        let next = self.messages.len();
        let at = *self.by_key.entry(key).or_insert(next);
        if at == next {
            if !submitted.ipm.is_empty() {
                self.by_ipm.entry(submitted.ipm.clone()).or_default().push(at);
            }
            let recipients = submitted.recipients.iter().cloned();
            let recipients = recipients.map(|r| (r, State::InDoubt)).collect();
            self.messages.push(SentMessage { submitted, recipients });
        } else if let Some(known) = self.messages.get_mut(at)
            && !submitted.mts_identifier.is_empty()
        {
            known.submitted = submitted;
        }
        self.messages.get_mut(at)
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Begun(submitted) => _ = self.message(submitted),
            Entry::Accepted(submitted) => {
                let identifier = submitted.mts_identifier.clone();
                if let Some(message) = self.message(submitted) {
                    let doubtful = |s: &State| matches!(s, State::InDoubt | State::NotSent(_));
                    for (_, state) in &mut message.recipients {
                        if doubtful(state) {
                            *state = State::Accepted;
                        }
                    }
                }
                let at =
                    self.messages.iter().rposition(|m| m.submitted.mts_identifier == identifier);
                self.by_mts.extend(at.map(|at| (identifier, at)));
            }
            Entry::Ended { content_identifier, ipm, outcome, reason } => {
                let at = self.by_key.get(&(content_identifier, ipm)).copied();
                if let Some(message) = at.and_then(|at| self.messages.get_mut(at))
                    && message.submitted.mts_identifier.is_empty()
                {
                    // The state is "not sent" in any case.
                    let why = match outcome.as_str() {
                        "not_sent" => reason,
                        _ => format!("{outcome}: {reason}"),
                    };
                    message.set_all(&State::NotSent(why));
                }
            }
            Entry::Reported { mts_identifier, recipient, delivered, detail } => {
                let state = match delivered {
                    true => State::Delivered(detail),
                    false => State::NotDelivered(detail),
                };
                let at = self.by_mts.get(&mts_identifier).copied();
                if let Some(message) = at.and_then(|at| self.messages.get_mut(at)) {
                    message.set(&recipient, state);
                }
            }
            Entry::Notified { ipm, recipient, read, detail } => {
                let state = if read { State::Read(detail) } else { State::NotRead(detail) };
                let all = self.by_ipm.get(&ipm).cloned().unwrap_or_default();
                // The copy that went to this recipient, else the first: it may be a member of a list.
                let has = |at: &&usize| {
                    self.messages.get(**at).is_some_and(|message| {
                        message.recipients.iter().any(|(name, _)| is_same(name, &recipient))
                    })
                };
                let at = all.iter().find(has).or(all.first()).copied();
                if let Some(message) = at.and_then(|at| self.messages.get_mut(at)) {
                    message.set(&recipient, state);
                }
            }
            Entry::Cancelled { mts_identifier } => {
                let at = self.by_mts.get(&mts_identifier).copied();
                if let Some(message) = at.and_then(|at| self.messages.get_mut(at)) {
                    message.set_all(&State::Cancelled);
                }
            }
            Entry::Acknowledging { mts_identifier, content_identifier, time } => {
                // The first one counts: the MTA may have it already.
                self.acknowledging.entry(mts_identifier).or_insert((content_identifier, time));
            }
            Entry::Acknowledged { mts_identifier, .. } => self.acknowledged.push(mts_identifier),
        }
    }
}

/// The log. Several processes may use it at once.
#[derive(Clone, Debug)]
pub struct SentLog {
    path: PathBuf,
}

impl SentLog {
    /// The log in this file, which need not exist.
    pub fn new(path: PathBuf) -> SentLog {
        SentLog { path }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines: all of them or, after an error, none. They are on the disk afterwards.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&self, entries: &[Entry]) -> io::Result<()> {
        let directory = self.path.parent().filter(|p| !p.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let mut lines = String::new();
        for entry in entries {
            let line = serde_json::to_string(entry).map_err(io::Error::other)?;
            // Escaped, so that a terminal shows the log as it is.
            lines.push_str(&shown::json(&line));
            lines.push('\n');
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path)?;
        file.lock()?;
        // Another process may have been killed in the middle of a line.
        let end = whole_lines(&mut file)?;
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        let written = file.write_all(lines.as_bytes()).and_then(|()| file.sync_all());
        if written.is_err() {
            let _ = file.set_len(end);
        } else if end == 0 {
            File::open(directory)?.sync_all()?;
        }
        written
    }

    /// Begins the acknowledgement of a delivery, with this content identifier if none was begun: returns the content
    /// identifier and the time that its notification has to have. `None`: the delivery is acknowledged already.
    ///
    /// # Errors
    /// The record cannot be read or written: nothing should be sent then, for it might be sent twice.
    pub fn acknowledge(
        &self,
        delivery: &str,
        content_identifier: &str,
        now: Utc,
    ) -> io::Result<Option<(String, Utc)>> {
        let begun = |sent: &Sent| {
            let (identifier, time) = sent.acknowledging.get(delivery)?;
            Some((identifier.clone(), Utc::from_utc_time(time.as_bytes())?))
        };
        let sent = self.read()?;
        if sent.acknowledged.iter().any(|done| done == delivery) {
            return Ok(None);
        }
        if let Some(begun) = begun(&sent) {
            return Ok(Some(begun));
        }
        self.append(&[Entry::Acknowledging {
            mts_identifier: delivery.to_owned(),
            content_identifier: content_identifier.to_owned(),
            time: now.to_utc_time(),
        }])?;
        // Another process may have been first.
        Ok(begun(&self.read()?).or_else(|| Some((content_identifier.to_owned(), now))))
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// The file cannot be read; one that does not exist is empty.
    pub fn read(&self) -> io::Result<Sent> {
        let mut text = Vec::new();
        match File::open(&self.path) {
            Ok(mut file) => {
                file.lock_shared()?;
                file.read_to_end(&mut text)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut sent = Sent::default();
        for line in text.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(entry) => sent.take(entry),
                Err(_) => sent.unreadable += 1,
            }
        }
        Ok(sent)
    }
}

/// Where the last whole line ends.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = vec![0; 4096];
    while end > 0 {
        let size = usize::try_from(end).unwrap_or(usize::MAX).min(block.len());
        file.seek(SeekFrom::Start(end - size as u64))?;
        let block = block.get_mut(..size).unwrap_or_default();
        file.read_exact(block)?;
        match block.iter().rposition(|octet| *octet == b'\n') {
            Some(at) => return Ok(end - size as u64 + at as u64 + 1),
            None => end -= size as u64,
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests;
