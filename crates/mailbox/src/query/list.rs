//! list: attributes of the selected items, which become listed.

use super::select::{Selected as Next, Selection, check_class};
use super::{Access, Answer, Outcome, Row, Step, raise, unavailable};
use crate::attributes::{Attributes, Selected};
use crate::delivery::Mailbox;
use crate::item::Status;
use engine::journal::{Batch, MailboxId};
use p7::attributes::CONTENT;
use p7::error::{AttributeProblem, AttributeProblemItem};
use p7::operation::{ListArgument, ListResult};
use p7::{EntryInformation, MsError, SequenceNumber};

/// Most items of one list, whatever its selector allows; the result names the next.
pub const MAX_LISTED: usize = 1_024;
/// Most octets of one list: values of attributes, and records that are written with their new status. One item is
/// listed in any case.
pub const MAX_LIST_OCTETS: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct List {
    mailbox: MailboxId,
    selection: Selection,
    selected: Vec<Selected>,
    is_1994: bool,
    result: ListResult,
    /// Octets in the result and in the batch, about.
    octets: usize,
    batch: Batch,
    is_committing: bool,
}

impl List {
    pub(super) fn new(
        mailbox: &Mailbox,
        access: &Access,
        argument: &ListArgument,
        selected: Vec<Selected>,
    ) -> Result<List, MsError> {
        check_class(argument.entry_class, access)?;
        if selected.iter().any(|selected| *selected.kind == CONTENT) {
            // It may be of any size: fetch streams it.
            let problem = AttributeProblem::INAPPROPRIATE_FOR_OPERATION;
            let attribute_type = CONTENT.oid();
            return Err(AttributeProblemItem { problem, attribute_type, value: None }.into());
        }
        Ok(List {
            mailbox: mailbox.id(),
            selection: Selection::new(mailbox, access, &argument.selector, Some(MAX_LISTED))?,
            selected,
            is_1994: access.is_1994,
            result: ListResult::default(),
            octets: 0,
            batch: Batch::new(),
            is_committing: false,
        })
    }

    pub(super) fn step(&mut self, answer: Answer) -> Step {
        if self.is_committing {
            // An item that could not be made listed stays new; a list does not depend on it.
            return self.done();
        }
        if !self.selection.take(answer) {
            return unavailable();
        }
        loop {
            match self.selection.next() {
                Err(error) => return Step::Error(error),
                Ok(Next::Ask(ask)) => return Step::Ask(ask),
                Ok(Next::End) => return self.end(),
                Ok(Next::Row(row)) => {
                    if self.is_full() {
                        self.result.next = Some(SequenceNumber(row.number));
                        return self.end();
                    }
                    self.add(&row);
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        let limit = self.selection.limit.unwrap_or(MAX_LISTED).min(MAX_LISTED);
        self.result.requested.len() >= limit || self.octets >= MAX_LIST_OCTETS
    }

    fn add(&mut self, row: &Row) {
        let Ok(item) = Attributes::new(row.number, row.precedence, &row.record) else { return };
        let entry = item.select(&self.selected, self.is_1994);
        self.octets += octets(&entry);
        self.result.requested.push(entry);
        if let Some(op) = raise(self.mailbox, row, item.brief(), Status::Listed) {
            self.octets += row.record.len();
            self.batch.push(op);
        }
    }

    fn end(&mut self) -> Step {
        if self.batch.is_empty() {
            return self.done();
        }
        self.is_committing = true;
        Step::Commit(std::mem::take(&mut self.batch))
    }

    fn done(&mut self) -> Step {
        Step::Done(Outcome::Listed(std::mem::take(&mut self.result)))
    }
}

/// Octets of the values, about.
fn octets(entry: &EntryInformation) -> usize {
    let values = entry.attributes.iter().flat_map(|attribute| &attribute.values);
    values.map(|value| value.octets().len() + 16).sum()
}
