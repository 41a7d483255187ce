//! A mailbox over a store, with whoever drives its queries.
#![allow(dead_code, reason = "each test uses a part of it")]

use base::{Precedence, Utc};
use bytes::Bytes;
use engine::journal::{ItemId, MailboxId, Op};
use mailbox::testing::{Copies, Copy, at};
use mailbox::{
    Access, Answer, Ask, Delivered, Fetched, Mailbox, NotDelivered, Outcome, Query, Quota,
    Registrations, Row, Step, Totals,
};
use p7::operation::{
    DeleteArgument, DeleteResult, FetchArgument, ListArgument, ListResult, SummarizeArgument,
    SummarizeResult,
};
use p7::{Filter, MsError, Selector};
use std::sync::Arc;
use store::queue::commit_one;
use store::{BatchId, QueueStore};

/// The mailbox of the tests.
pub(crate) const ID: MailboxId = MailboxId(5);

/// A mailbox over a store.
pub(crate) struct World {
    pub(crate) store: Arc<dyn QueueStore>,
    pub(crate) mailbox: Mailbox,
    pub(crate) registrations: Registrations,
    pub(crate) access: Access,
    pub(crate) copies: Copies,
    batches: u64,
    /// Seconds.
    pub(crate) now: u64,
    /// Items that were read.
    pub(crate) read: usize,
    /// Steps of queries.
    pub(crate) steps: usize,
}

/// What the store has of the mailbox.
pub(crate) fn open(store: &dyn QueueStore, quota: Quota) -> Mailbox {
    let value = store.meta(&Totals::name(ID)).unwrap();
    Mailbox::open(ID, value.as_deref(), quota).unwrap()
}

/// The items of each level that the store counts.
pub(crate) fn counts(store: &dyn QueueStore) -> [u64; 6] {
    Precedence::ALL.map(|level| store.item_count(ID, level).unwrap())
}

fn find(store: &dyn QueueStore, id: ItemId) -> Option<Row> {
    Precedence::ALL.iter().rev().find_map(|level| {
        let record = store.entry((*level, id.entry())).unwrap()?;
        Row::new(*level, id.entry(), record)
    })
}

/// Answers a question.
pub(crate) fn answer(store: &dyn QueueStore, ask: Ask) -> Answer {
    Answer::Rows(match ask {
        Ask::Items { mailbox, precedence, after, limit } => {
            let entries = store.items(mailbox, precedence, after, limit).unwrap();
            let row = |e: store::Entry| Row::new(e.precedence, e.id, e.record).unwrap();
            entries.into_iter().map(row).collect()
        }
        Ask::Find(ids) => ids.into_iter().filter_map(|id| find(store, id)).collect(),
    })
}

impl World {
    pub(crate) fn new(store: Arc<dyn QueueStore>) -> World {
        World {
            mailbox: open(&*store, Quota::default()),
            registrations: Registrations::default(),
            access: Access { is_1994: true, ..Access::default() },
            copies: Copies::default(),
            batches: 0,
            now: 0,
            read: 0,
            steps: 0,
            store,
        }
    }

    pub(crate) fn now(&self) -> Utc {
        at(self.now)
    }

    pub(crate) fn commit(&mut self, batch: Vec<Op>) {
        self.batches += 1;
        commit_one(&*self.store, BatchId(self.batches), batch).unwrap();
    }

    /// A message that waits in the queue.
    pub(crate) fn copy(&mut self, level: Precedence, subject: &str, octets: usize) -> Copy {
        let copy = self.copies.message(at(self.now), level, subject, octets).unwrap();
        self.commit(copy.put());
        copy
    }

    pub(crate) fn deliver_copy(&mut self, copy: &Copy) -> Result<Delivered, NotDelivered> {
        let delivered = self.mailbox.deliver(at(self.now), &copy.arriving())?;
        let mut batch = delivered.batch.clone();
        batch.extend(copy.record.body.map(|id| Op::DeleteBody { id }));
        self.commit(batch);
        Ok(delivered)
    }

    /// Delivers a message, and returns its number.
    pub(crate) fn deliver(&mut self, level: Precedence, subject: &str, octets: usize) -> u32 {
        let copy = self.copy(level, subject, octets);
        self.deliver_copy(&copy).unwrap().item.id.number
    }

    /// Runs a query to its end.
    pub(crate) fn run(&mut self, query: Result<Query, MsError>) -> Result<Outcome, MsError> {
        let mut query = query?;
        let mut next = Answer::Start;
        loop {
            self.steps += 1;
            next = match query.step(&mut self.mailbox, next) {
                Step::Ask(ask) => answer(&*self.store, ask),
                Step::Commit(batch) => {
                    self.commit(batch);
                    Answer::Committed
                }
                Step::Done(outcome) => return Ok(outcome),
                Step::Error(error) => return Err(error),
            };
            if let Answer::Rows(rows) = &next {
                assert!(rows.len() <= mailbox::query::PAGE);
                self.read += rows.len();
            }
        }
    }

    pub(crate) fn list(&mut self, argument: &ListArgument) -> Result<ListResult, MsError> {
        let query = Query::list(&self.mailbox, &self.registrations, &self.access, argument);
        match self.run(query)? {
            Outcome::Listed(result) => Ok(result),
            other => panic!("{other:?}"),
        }
    }

    /// The numbers that a selector lists, and the next.
    pub(crate) fn numbers(&mut self, selector: Selector) -> (Vec<u32>, Option<u32>) {
        let argument = ListArgument { selector, ..ListArgument::default() };
        let result = self.list(&argument).unwrap();
        let numbers = result.requested.iter().map(|entry| entry.sequence_number.0).collect();
        (numbers, result.next.map(|next| next.0))
    }

    pub(crate) fn fetch(&mut self, argument: &FetchArgument) -> Result<Fetched, MsError> {
        let query = Query::fetch(&self.mailbox, &self.registrations, &self.access, argument);
        match self.run(query)? {
            Outcome::Fetched(fetched) => Ok(*fetched),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn delete(&mut self, argument: &DeleteArgument) -> Result<Vec<u32>, MsError> {
        let query = Query::delete(&self.mailbox, &self.access, argument);
        match self.run(query)? {
            Outcome::Deleted(DeleteResult::Of1994 { entries_deleted, .. }) => {
                Ok(entries_deleted.iter().map(|number| number.0).collect())
            }
            Outcome::Deleted(DeleteResult::Of1988) => Ok(Vec::new()),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn summarize(
        &mut self,
        argument: &SummarizeArgument,
    ) -> Result<SummarizeResult, MsError> {
        let query = Query::summarize(&self.mailbox, &self.access, argument);
        match self.run(query)? {
            Outcome::Summarized(result) => Ok(result),
            other => panic!("{other:?}"),
        }
    }

    /// The octets that a fetch sends, with the content from the store in parts.
    pub(crate) fn octets(&self, fetched: &Fetched) -> Vec<u8> {
        let payload = fetched.payload();
        let mut octets = payload.head.to_vec();
        if let Some((body, length)) = fetched.content {
            assert_eq!(payload.content_length, length);
            let mut offset = 0;
            while offset < length {
                let part: Bytes = self.store.body(body, offset, 1000).unwrap().unwrap();
                assert!(!part.is_empty());
                offset += part.len() as u64;
                octets.extend_from_slice(&part);
            }
        }
        octets.extend_from_slice(&payload.tail);
        octets
    }
}

/// A selector of this filter.
pub(crate) fn filtered(filter: Filter) -> Selector {
    Selector { filter: Some(filter), ..Selector::default() }
}
