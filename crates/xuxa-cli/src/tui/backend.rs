//! The mailbox as the interface needs it.

use super::draft::{self, Original};
use super::pages::{self, Listing};
use super::show;
use super::stores::Stores;
use crate::extract::Extraction;
use crate::mailbox::acknowledge;
use crate::mailbox::content::Reader;
use crate::mailbox::extract::Extracting;
use crate::mailbox::forward::{Inner, labels};
use crate::submission::MtaAccess;
use anyhow::Result;
use base::{Precedence, Utc};
use p1::content_type::ContentType;
use p1::names::ORName;
use p7::attributes as a;
use p772::Forwarded;
use std::cell::Cell;
use std::path::PathBuf;
use ua::book::{Book, Entry as BookItem};
use ua::sent::{Entry as LogEntry, SentLog, SentMessage, State, Submitted};
use ua::store::{Entry, Fetched, Filter, Find, Status, Store};
use xuxa_tui::draft::{About, Draft};
use xuxa_tui::model::{
    BookEntry, Counts, From, Number, Opened, Page, Query, Receipt, Row, Sent, SentState, Who,
};
use xuxa_tui::{Backend, BackendError};

/// A user's mailbox in a message store, and the MTA behind it.
pub(super) struct Mailbox {
    who: Who,
    user: ORName,
    stores: Stores,
    book: Book,
    /// The addresses of the profiles, whose domains are known.
    known: Vec<ORName>,
    /// The highest number that is known to be used.
    highest: Cell<u32>,
    /// The record of what was sent.
    log: SentLog,
}

impl Mailbox {
    /// Reads profile and address book; nothing is bound.
    ///
    /// # Errors
    /// One of them is wrong.
    pub(super) fn open(access: &MtaAccess<'_>) -> Result<Mailbox> {
        let profile = access.profile;
        let login = profile.store_login()?;
        let user = profile.user()?;
        let who = Who {
            profile: profile.name.clone(),
            user: user.address.to_string(),
            server: login.mta.clone(),
        };
        let pcap = access.pcap.map(PathBuf::from);
        let stores = Stores::new(login, pcap, access.clock, access.interrupted.clone());
        let book = Book::read(&profile.book())?;
        let known = profile.known.iter();
        let known = known.filter_map(|text| ua::form::address(text).ok()).collect();
        let log = SentLog::new(profile.sent_log());
        Ok(Mailbox { who, user, stores, book, known, highest: Cell::new(0), log })
    }

    fn name(&self, name: &ORName) -> Option<String> {
        self.book.name_of(&name.address).map(str::to_owned)
    }

    fn row(&self, entry: &Entry) -> Row {
        self.highest.set(self.highest.get().max(entry.number));
        show::row(entry, |name| self.name(name))
    }

    /// The conditions of a query. An originator cannot be searched for in a part: those of the book whose name or
    /// address has the text are compared whole.
    fn find(&self, query: &Query) -> Find {
        let mut find = Find::new();
        if query.unread_only {
            let read = Find::new().status(Status::Processed).filter();
            find = read.into_iter().fold(find, |find, read| find.and(Filter::Not(Box::new(read))));
        }
        if query.search.is_empty() {
            return find;
        }
        let mut any: Vec<Filter> =
            Find::new().subject(&query.search).filter().into_iter().collect();
        let wanted = query.search.to_lowercase();
        for (name, entry) in self.book.entries() {
            let BookItem::Address(address) = entry else { continue };
            if name.contains(&wanted) || address.to_lowercase().contains(&wanted) {
                let names = self.book.resolve(name).unwrap_or_default();
                any.extend(names.iter().filter_map(|name| Find::new().originator(name).filter()));
            }
        }
        find.and(Filter::Or(any))
    }

    /// What a draft answers or passes on, as it is needed for the message.
    async fn original(&self, about: About) -> Result<Original, BackendError> {
        let (About::Answer(number) | About::Forward(number)) = about else {
            return Ok(Original::default());
        };
        let entry = entry_number(number)?;
        if matches!(about, About::Answer(_)) {
            let mut reader = Reader::default();
            let work = async |store: &mut Store| store.fetch(entry, &mut reader, u64::MAX).await;
            self.stores.slow(Some(number), work).await?;
            let answered = reader.heading.map(|heading| heading.this_ipm);
            return Ok(Original { answered, ..Original::default() });
        }
        let failed = |error: anyhow::Error| BackendError::Failed(format!("{error:#}"));
        let mut inner = Inner::create().map_err(failed)?;
        let work = async |store: &mut Store| store.fetch(entry, &mut inner, u64::MAX).await;
        let fetched = self.stores.slow(Some(number), work).await?;
        let is_civil =
            fetched.envelope.as_ref().is_some_and(|e| e.content_type == ContentType::P22);
        let delivery = fetched.envelope_octets.as_ref().map(|octets| octets.to_vec());
        let forwarded = Forwarded { military: !is_civil, delivery };
        let source = inner.source().map_err(failed)?;
        let labels = fetched.envelope.as_deref().map(labels).unwrap_or_default();
        Ok(Original { answered: None, forwarded: Some((forwarded, source)), labels })
    }

    fn append(&self, entries: &[LogEntry]) -> Result<(), BackendError> {
        self.log.append(entries).map_err(|error| {
            let path = self.log.path().display();
            BackendError::Failed(format!(
                "the record of sent messages {path} cannot be written: {error}"
            ))
        })
    }

    /// Records what a report or a notification states about messages of ours.
    fn record_outcomes(&self, fetched: &Fetched, reader: &Reader) {
        let entries = crate::mailbox::sent::outcomes(fetched, reader);
        // The message is shown in any case; opening it again records it again.
        if !entries.is_empty() {
            let _ = self.append(&entries);
        }
    }
}

/// A message of the record as the interface shows it.
fn sent_item(message: &SentMessage) -> Sent {
    let submitted = &message.submitted;
    let state = |state: &State| match state {
        State::InDoubt => SentState::InDoubt,
        State::Accepted => SentState::Accepted,
        State::Delivered(_) => SentState::Delivered,
        State::Read(_) => SentState::Read,
        failed @ (State::NotSent(_) | State::NotDelivered(_) | State::NotRead(_)) => {
            SentState::Failed(failed.to_string())
        }
        State::Cancelled => SentState::Failed(State::Cancelled.to_string()),
    };
    Sent {
        identifier: submitted.content_identifier.clone(),
        precedence: submitted.precedence.parse().unwrap_or(Precedence::Routine),
        subject: submitted.subject.clone().unwrap_or_default(),
        time: Utc::from_utc_time(submitted.dtg.as_bytes()).unwrap_or_default(),
        size: submitted.size,
        recipients: message.recipients.iter().map(|(name, s)| (name.clone(), state(s))).collect(),
    }
}

fn entry_number(number: Number) -> Result<u32, BackendError> {
    u32::try_from(number).map_err(|_| BackendError::Gone(number))
}

impl Backend for Mailbox {
    fn who(&self) -> Who {
        self.who.clone()
    }

    async fn connect(&self) -> Result<(), BackendError> {
        self.stores.connect().await
    }

    async fn list(&self, query: Query, from: From, count: usize) -> Result<Page, BackendError> {
        if self.highest.get() == 0 {
            self.counts().await?;
        }
        let (find, highest) = (self.find(&query), self.highest.get());
        let work = async |store: &mut Store| {
            let mut listing = Listing { store, find, least: query.least, is_sparing: false };
            pages::page(&mut listing, query.order, &from, count, highest).await
        };
        let (entries, is_last) = self.stores.quick(None, work).await?;
        Ok(Page { rows: entries.iter().map(|entry| self.row(entry)).collect(), is_last })
    }

    async fn counts(&self) -> Result<Counts, BackendError> {
        let kinds = [a::RETRIEVAL_STATUS];
        let work = async |store: &mut Store| store.summarize(&Find::new(), &kinds).await;
        let summary = self.stores.quick(None, work).await?;
        if let Some((_, highest)) = summary.span {
            self.highest.set(self.highest.get().max(highest));
        }
        let present = summary.attributes.first().map(|counted| counted.present.as_slice());
        let read = present
            .unwrap_or_default()
            .iter()
            .filter(|(status, _)| status.integer().is_ok_and(|status| status == 2));
        let read: u64 = read.map(|(_, count)| count).sum();
        let unread = summary.count.saturating_sub(read);
        Ok(Counts { total: summary.count, unread, unread_by_precedence: None })
    }

    async fn open(&self, number: Number) -> Result<Opened, BackendError> {
        let entry = entry_number(number)?;
        let mut reader = Reader::default();
        let work = async |store: &mut Store| store.fetch(entry, &mut reader, u64::MAX).await;
        let fetched = self.stores.slow(Some(number), work).await?;
        self.record_outcomes(&fetched, &reader);
        let mut opened = show::opened(&fetched, &reader, &self.user, |name| self.name(name));
        if opened.receipt == Receipt::Asked && acknowledge::is_done(&self.log, &fetched) {
            opened.receipt = Receipt::Sent;
        }
        Ok(opened)
    }

    async fn extract(&self, number: Number, to: PathBuf) -> Result<Vec<PathBuf>, BackendError> {
        let entry = entry_number(number)?;
        let failed = |error: anyhow::Error| BackendError::Failed(format!("{error:#}"));
        let extraction = Extraction::open(&to).map_err(failed)?;
        let mut extracting = Extracting::begin(&extraction, entry);
        let work = async |store: &mut Store| store.fetch(entry, &mut extracting, u64::MAX).await;
        self.stores.slow(Some(number), work).await?;
        let (paths, left_out) = extracting.finish(entry).map_err(failed)?;
        match left_out {
            0 => Ok(paths),
            left_out => Err(BackendError::Failed(format!(
                "{} files written; {left_out} more are in the content only: `xuxa fetch {number}` writes all of it",
                paths.len()
            ))),
        }
    }

    async fn delete(&self, number: Number) -> Result<(), BackendError> {
        let entry = entry_number(number)?;
        self.stores.quick(Some(number), async |store| store.delete(&[entry]).await).await
    }

    async fn check(&self, draft: &Draft) -> Result<Vec<String>, BackendError> {
        let message = draft::message(draft, &self.user, &self.book, None)?;
        message.head().map_err(|error| BackendError::Failed(format!("{error:#}")))?;
        let names: Vec<ORName> =
            message.to.iter().chain(&message.copy).map(|to| to.name.clone()).collect();
        Ok(self.book.doubts(&names, &self.known))
    }

    async fn submit(&self, draft: Draft) -> Result<(), BackendError> {
        let original = self.original(draft.about).await?;
        let message = draft::message(&draft, &self.user, &self.book, original.answered)?;
        let mut envelope = message.envelope();
        envelope.extensions.0.extend(original.labels);
        let mut record = Submitted::new(&message);
        record.time = draft.time.to_string();
        let content = draft::content(message, original.forwarded)?;
        self.append(&[LogEntry::Begun(record.clone())])?;
        let answer =
            self.stores.submit(async |store| store.submit(&envelope, &content).await).await;
        match answer {
            Ok(result) => {
                record.mts_identifier = result.identifier.to_string();
                // The MTA has it: an error of the record must not make anybody send it again.
                let _ = self.append(&[LogEntry::Accepted(record)]);
                Ok(())
            }
            Err(error @ BackendError::InDoubt(_)) => Err(error),
            Err(error) => {
                let outcome =
                    if matches!(error, BackendError::Failed(_)) { "refused" } else { "not_sent" };
                let _ = self.append(&[LogEntry::Ended {
                    content_identifier: record.content_identifier,
                    ipm: record.ipm,
                    outcome: outcome.to_owned(),
                    reason: error.to_string(),
                }]);
                Err(error)
            }
        }
    }

    async fn acknowledge(&self, number: Number) -> Result<(), BackendError> {
        let entry = entry_number(number)?;
        let failed = |error: anyhow::Error| BackendError::Failed(format!("{error:#}"));
        let mut reader = Reader::default();
        let work = async |store: &mut Store| store.fetch(entry, &mut reader, u64::MAX).await;
        let fetched = self.stores.slow(Some(number), work).await?;
        let begun = acknowledge::begin(&self.log, &self.user, &fetched, &reader).map_err(failed)?;
        // Another client of this user was first.
        let Some(begun) = begun else { return Ok(()) };
        let (envelope, content) = (&begun.made.envelope, &begun.made.content);
        let submit = async |store: &mut Store| store.submit(envelope, content).await;
        let result = self.stores.submit(submit).await?;
        // The MTA has it, and knows it again: an error of the record makes nobody get a second one.
        let _ = self.append(&[begun.done(result.identifier.to_string())]);
        Ok(())
    }

    async fn sent(&self, count: usize) -> Result<Vec<Sent>, BackendError> {
        let sent = self.log.read().map_err(|error| {
            let path = self.log.path().display();
            BackendError::Failed(format!(
                "the record of sent messages {path} cannot be read: {error}"
            ))
        })?;
        Ok(sent.messages.iter().rev().take(count).map(sent_item).collect())
    }

    async fn book(&self) -> Result<Vec<BookEntry>, BackendError> {
        let entry = |(name, entry): (&str, &BookItem)| {
            let (addresses, is_group) = match entry {
                BookItem::Address(address) => (vec![address.clone()], false),
                BookItem::Group(members) => (members.clone(), true),
            };
            BookEntry { name: name.to_owned(), addresses, is_group }
        };
        Ok(self.book.entries().map(entry).collect())
    }

    async fn alert(&self) -> Result<Row, BackendError> {
        loop {
            if let Some(entry) = self.stores.alert().await?.entry {
                return Ok(self.row(&entry));
            }
        }
    }

    async fn close(&self) {
        self.stores.close().await;
    }
}
