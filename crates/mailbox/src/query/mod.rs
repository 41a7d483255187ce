//! The operations on a mailbox, as machines that ask for what they read.
//!
//! ```text
//!  Query::list, fetch, delete, summarize, retain, recount
//!        │
//!        ▼            ┌──────────────── Answer ───────────────┐
//!  query.step(Start) ─┤ Ask: items of a level, or of numbers  ├─▶ Done(Outcome) or Error
//!                     └ Commit: statuses, deletions, totals ──┘
//! ```
//!
//! A step takes one answer, which has at most [`PAGE`] items, and returns; so whoever drives several queries gives
//! each its turn after a page. A scan reads each level of precedence in the order of its numbers and merges them,
//! reads no level that a filter of primary-precedence leaves out, and only the numbers of its range. It ends at the
//! last number that was used when it began: what is delivered meanwhile is not in it.
//!
//! One query at a time changes a mailbox ([`Query::is_changing`]): between its reading of an item and its commit,
//! no other query deletes the item or writes its status. Deliveries and other queries may run meanwhile.

mod delete;
mod fetch;
mod list;
mod narrow;
mod recount;
mod scan;
mod select;
mod summarize;

pub use delete::MAX_DELETED;
pub use fetch::{Fetched, MAX_FOUND};
pub use list::{MAX_LIST_OCTETS, MAX_LISTED};
pub use summarize::MAX_SUMMARY_OCTETS;

pub(crate) use narrow::check as check_filter;

use crate::attributes::Selected;
use crate::delivery::Mailbox;
use crate::item::Status;
use crate::item::{Brief, put, with_status};
use crate::registrations::Registrations;
use crate::retention::Rules;
use base::{EntryId, Precedence, Utc};
use bytes::Bytes;
use delete::Delete;
use engine::journal::{Batch, ItemId, MailboxId, Op};
use fetch::Fetch;
use list::List;
use p7::error::ServiceProblem;
use p7::operation::{
    DeleteArgument, DeleteResult, FetchArgument, ListArgument, ListResult, SummarizeArgument,
    SummarizeResult,
};
use p7::{AttributeSelection, MsError};
use recount::Recount;
use summarize::Summarize;

/// Most items that a query asks for at once.
pub const PAGE: usize = 128;

/// What a query asks of the store.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Ask {
    /// The items of one level after a number, in order: at most `limit`, and at least one if any is left.
    Items {
        /// The mailbox.
        mailbox: MailboxId,
        /// The level.
        precedence: Precedence,
        /// The number after which they are.
        after: u32,
        /// Most items.
        limit: usize,
    },
    /// These items, at most [`PAGE`] of them, each at the level that has it: those that exist, in this order.
    Find(Vec<ItemId>),
}

/// An item as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Row {
    /// Its level.
    pub precedence: Precedence,
    /// Its number.
    pub number: u32,
    /// Its record.
    pub record: Bytes,
}

impl Row {
    /// From an entry of the store; `None` if it is not of a mailbox.
    #[must_use]
    pub fn new(precedence: Precedence, id: EntryId, record: Bytes) -> Option<Row> {
        let number = ItemId::of_entry(id)?.number;
        Some(Row { precedence, number, record })
    }
}

/// The answer to the last step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The first step.
    Start,
    /// The items that were asked for.
    Rows(Vec<Row>),
    /// The batch is durable.
    Committed,
    /// Nothing of the batch was made.
    NotCommitted,
    /// The store could not read what was asked for.
    Failed,
}

/// What a query needs, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It reads: answered by [`Answer::Rows`] or [`Answer::Failed`].
    Ask(Ask),
    /// It changes the store: answered by [`Answer::Committed`] or [`Answer::NotCommitted`].
    Commit(Batch),
    /// It ends with this result.
    Done(Outcome),
    /// It ends with this error.
    Error(MsError),
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Of a list.
    Listed(ListResult),
    /// Of a fetch.
    Fetched(Box<Fetched>),
    /// Of a delete.
    Deleted(DeleteResult),
    /// Of a summarize.
    Summarized(SummarizeResult),
    /// Of the retention: how many items were deleted.
    Retained(u64),
    /// Of a recount: the totals are corrected.
    Recounted,
}

/// What the association determines of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Its application context is of 1994, not of 1988.
    pub is_1994: bool,
    /// The fetch-restrictions of its bind.
    pub restrictions: p7::Restrictions,
}

/// One operation on a mailbox.
#[derive(Debug)]
pub struct Query(State);

#[derive(Debug)]
enum State {
    List(List),
    Fetch(Box<Fetch>),
    Delete(Delete),
    Summarize(Summarize),
    Recount(Recount),
}

impl Query {
    /// list (X.413 8.3): the selected items in ascending order of their numbers. Those that are new become listed.
    ///
    /// # Errors
    /// The argument asks for what this store does not have.
    pub fn list(
        mailbox: &Mailbox,
        registrations: &Registrations,
        access: &Access,
        argument: &ListArgument,
    ) -> Result<Query, MsError> {
        let requested = argument.requested_attributes.as_deref();
        let selected = requested_or(requested, registrations.list_defaults())?;
        List::new(mailbox, access, argument, selected).map(|list| Query(State::List(list)))
    }

    /// fetch (X.413 8.4): one item, by its number or the first that is selected. It becomes processed.
    ///
    /// # Errors
    /// The argument asks for what this store does not have.
    pub fn fetch(
        mailbox: &Mailbox,
        registrations: &Registrations,
        access: &Access,
        argument: &FetchArgument,
    ) -> Result<Query, MsError> {
        let requested = argument.requested_attributes.as_deref();
        let selected = requested_or(requested, registrations.fetch_defaults())?;
        let fetch = Fetch::new(mailbox, access, argument, selected)?;
        Ok(Query(State::Fetch(Box::new(fetch))))
    }

    /// delete (X.413 8.5): by numbers, all of which must exist, or those that are selected. It commits some hundred
    /// items at a time.
    ///
    /// # Errors
    /// The argument asks for what this store does not have.
    pub fn delete(
        mailbox: &Mailbox,
        access: &Access,
        argument: &DeleteArgument,
    ) -> Result<Query, MsError> {
        Delete::new(mailbox, access, argument).map(|delete| Query(State::Delete(delete)))
    }

    /// summarize (X.413 8.2): the number of the selected items, and of those with each value of some attributes.
    ///
    /// # Errors
    /// The argument asks for what this store does not have.
    pub fn summarize(
        mailbox: &Mailbox,
        access: &Access,
        argument: &SummarizeArgument,
    ) -> Result<Query, MsError> {
        Summarize::new(mailbox, access, argument).map(|query| Query(State::Summarize(query)))
    }

    /// Deletes what the rules of retention give up at this time.
    #[must_use]
    pub fn retain(mailbox: &Mailbox, rules: Rules, now: Utc) -> Query {
        Query(State::Delete(Delete::of_rules(mailbox, rules, now, false)))
    }

    /// Counts what [`Query::retain`] would delete.
    #[must_use]
    pub fn count_due(mailbox: &Mailbox, rules: Rules, now: Utc) -> Query {
        Query(State::Delete(Delete::of_rules(mailbox, rules, now, true)))
    }

    /// Counts the items, and corrects the totals of the mailbox.
    #[must_use]
    pub fn recount(mailbox: &Mailbox) -> Query {
        Query(State::Recount(Recount::new(mailbox)))
    }

    /// Whether it changes items or totals: one of these at a time for a mailbox.
    #[must_use]
    pub fn is_changing(&self) -> bool {
        !matches!(self.0, State::Summarize(_))
    }

    /// The next step, after the answer to the last one. After [`Step::Done`] or [`Step::Error`] there is none.
    /// `mailbox` is the one that it began with.
    pub fn step(&mut self, mailbox: &mut Mailbox, answer: Answer) -> Step {
        match &mut self.0 {
            State::List(list) => list.step(answer),
            State::Fetch(fetch) => fetch.step(answer),
            State::Delete(delete) => delete.step(mailbox, answer),
            State::Summarize(summarize) => summarize.step(answer),
            State::Recount(recount) => recount.step(mailbox, answer),
        }
    }
}

/// What is requested, else the registered defaults.
fn requested_or(
    requested: Option<&[AttributeSelection]>,
    defaults: Vec<Selected>,
) -> Result<Vec<Selected>, MsError> {
    match requested {
        Some(selection) => Selected::all(selection).map_err(MsError::Attribute),
        None => Ok(defaults),
    }
}

/// The store could not read.
fn unavailable() -> Step {
    Step::Error(MsError::service(ServiceProblem::UNAVAILABLE))
}

/// The change that raises the status of an item to this one; `None` if it is not lower, or the record is damaged.
fn raise(mailbox: MailboxId, row: &Row, brief: &Brief<'_>, to: Status) -> Option<Op> {
    if brief.status >= to {
        return None;
    }
    let record = with_status(&row.record, to).ok()?;
    Some(put(ItemId { mailbox, number: row.number }, row.precedence, record))
}
