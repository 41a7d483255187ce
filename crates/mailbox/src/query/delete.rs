//! delete, by numbers or by selector, and the deletions of the retention.

use super::scan::{Bounds, Next as InScan, Scan};
use super::select::{Selected as Next, Selection, check_class};
use super::{Access, Answer, Ask, Outcome, PAGE, Row, Step, unavailable};
use crate::delivery::Mailbox;
use crate::item::{Brief, counted};
use crate::retention::Rules;
use base::{Precedence, Utc};
use engine::journal::{Batch, ItemId, MailboxId};
use p7::error::{SequenceNumberProblem, ServiceProblem};
use p7::limits::{MAX_PROBLEMS, MAX_SEQUENCE_NUMBERS};
use p7::operation::{DeleteArgument, DeleteItems, DeleteResult};
use p7::{MsError, SequenceNumber};

/// Most items of one commit.
pub const MAX_DELETED: usize = 512;

/// An item that is deleted.
#[derive(Clone, Copy, Debug)]
struct Doomed {
    precedence: Precedence,
    number: u32,
    octets: u64,
}

#[derive(Debug)]
pub(super) struct Delete {
    mailbox: MailboxId,
    is_1994: bool,
    what: What,
    /// To be committed.
    doomed: Vec<Doomed>,
    /// In the commit that is not answered.
    committing: Vec<Doomed>,
    /// How many are chosen so far.
    chosen: usize,
    deleted: Vec<SequenceNumber>,
    count: u64,
}

#[derive(Debug)]
enum What {
    /// These, in ascending order; of them `asked` in the last question, and the first `found` before it.
    Numbers { all: Vec<u32>, found: usize, asked: usize, missing: Vec<u32> },
    /// The selected ones.
    Selected(Selection),
    /// What the rules give up at this time; only counted if it is a trial.
    Rules { scan: Scan, rules: Rules, now: Utc, is_trial: bool },
}

impl Delete {
    pub(super) fn new(
        mailbox: &Mailbox,
        access: &Access,
        argument: &DeleteArgument,
    ) -> Result<Delete, MsError> {
        check_class(argument.entry_class, access)?;
        let what = match &argument.items {
            DeleteItems::Selector(selector) => {
                What::Selected(Selection::new(mailbox, access, selector, None)?)
            }
            DeleteItems::SequenceNumbers(numbers) => {
                let mut all: Vec<u32> = numbers.iter().map(|number| number.0).collect();
                all.sort_unstable();
                all.dedup();
                What::Numbers { all, found: 0, asked: 0, missing: Vec::new() }
            }
        };
        Ok(Delete::from_what(mailbox, access.is_1994, what))
    }

    pub(super) fn of_rules(mailbox: &Mailbox, rules: Rules, now: Utc, is_trial: bool) -> Delete {
        let until = rules.newest(now);
        let bounds = Bounds { until, ..Bounds::default() };
        let levels = if until.is_some() { &Precedence::ALL[..] } else { &[] };
        let scan = Scan::new(mailbox, bounds, levels, None);
        Delete::from_what(mailbox, false, What::Rules { scan, rules, now, is_trial })
    }

    fn from_what(mailbox: &Mailbox, is_1994: bool, what: What) -> Delete {
        Delete {
            mailbox: mailbox.id(),
            is_1994,
            what,
            doomed: Vec::new(),
            committing: Vec::new(),
            chosen: 0,
            deleted: Vec::new(),
            count: 0,
        }
    }

    pub(super) fn step(&mut self, mailbox: &mut Mailbox, answer: Answer) -> Step {
        match answer {
            Answer::Committed => self.committed(),
            Answer::NotCommitted => return self.not_committed(mailbox),
            Answer::Failed => return unavailable(),
            Answer::Start => {}
            Answer::Rows(rows) => self.take(rows),
        }
        if self.doomed.len() >= MAX_DELETED && self.is_sure() {
            return self.commit(mailbox);
        }
        match self.choose() {
            Err(error) => Step::Error(error),
            Ok(Some(ask)) => Step::Ask(ask),
            Ok(None) if self.doomed.is_empty() => self.done(),
            Ok(None) => self.commit(mailbox),
        }
    }

    /// Whether what is chosen is deleted whatever follows: of numbers all must exist first.
    fn is_sure(&self) -> bool {
        match &self.what {
            What::Numbers { all, found, .. } => *found == all.len(),
            What::Selected(_) | What::Rules { .. } => true,
        }
    }

    fn take(&mut self, rows: Vec<Row>) {
        match &mut self.what {
            What::Selected(selection) => drop(selection.take(Answer::Rows(rows))),
            What::Rules { scan, .. } => scan.take(rows),
            What::Numbers { all, found, asked, missing } => {
                let end = *found + *asked;
                let wanted = all.get(*found..end).unwrap_or_default();
                for number in wanted {
                    match rows.iter().find(|row| row.number == *number) {
                        Some(row) => self.doomed.push(Doomed::new(row)),
                        None => missing.push(*number),
                    }
                }
                (*found, *asked) = (end, 0);
            }
        }
    }

    /// Chooses items until there are enough for a commit; what is asked for before there are, `None` if there are
    /// or no more are left.
    fn choose(&mut self) -> Result<Option<Ask>, MsError> {
        loop {
            if self.doomed.len() >= MAX_DELETED && self.is_sure() {
                return Ok(None);
            }
            let row = match &mut self.what {
                What::Numbers { all, found, asked, missing } => {
                    return ask_for(self.mailbox, all, *found, asked, missing);
                }
                What::Selected(selection) => {
                    if selection.limit.is_some_and(|limit| self.chosen >= limit) {
                        return Ok(None);
                    }
                    match selection.next()? {
                        Next::Ask(ask) => return Ok(Some(ask)),
                        Next::End => return Ok(None),
                        Next::Row(row) => row,
                    }
                }
                What::Rules { scan, rules, now, is_trial } => match scan.next() {
                    InScan::Ask(ask) => return Ok(Some(ask)),
                    InScan::End => return Ok(None),
                    InScan::Row(row) if !is_due(rules, *now, &row) => continue,
                    InScan::Row(_) if *is_trial => {
                        self.count += 1;
                        continue;
                    }
                    InScan::Row(row) => row,
                },
            };
            self.chosen += 1;
            self.doomed.push(Doomed::new(&row));
        }
    }

    fn commit(&mut self, mailbox: &mut Mailbox) -> Step {
        let rest = self.doomed.split_off(self.doomed.len().min(MAX_DELETED));
        self.committing = std::mem::replace(&mut self.doomed, rest);
        let mut batch = Batch::new();
        for doomed in &self.committing {
            mailbox.totals_mut().remove(doomed.precedence, doomed.octets);
            batch.extend(mailbox.delete(doomed.precedence, doomed.number));
        }
        batch.push(mailbox.put_totals());
        Step::Commit(batch)
    }

    fn committed(&mut self) {
        for doomed in self.committing.drain(..) {
            self.count += 1;
            if self.is_1994 && self.deleted.len() < MAX_SEQUENCE_NUMBERS {
                self.deleted.push(SequenceNumber(doomed.number));
            }
        }
    }

    /// The items are still there.
    fn not_committed(&mut self, mailbox: &mut Mailbox) -> Step {
        for doomed in self.committing.drain(..) {
            mailbox.totals_mut().add(doomed.precedence, doomed.octets);
        }
        let busy = MsError::service(ServiceProblem::BUSY);
        match self.deleted.is_empty() {
            true => Step::Error(busy),
            // What was deleted before is stated where the edition has room for it.
            false => Step::Error(MsError::Delete {
                problems: Vec::new(),
                entries_deleted: std::mem::take(&mut self.deleted),
            }),
        }
    }

    fn done(&mut self) -> Step {
        let entries_deleted = std::mem::take(&mut self.deleted);
        Step::Done(match (&self.what, self.is_1994) {
            (What::Rules { .. }, _) => Outcome::Retained(self.count),
            (_, false) => Outcome::Deleted(DeleteResult::Of1988),
            (_, true) => {
                let extensions = Vec::new();
                Outcome::Deleted(DeleteResult::Of1994 { entries_deleted, extensions })
            }
        })
    }
}

impl Doomed {
    /// An item whose record cannot be read counts its record alone; a recount corrects the totals.
    fn new(row: &Row) -> Doomed {
        let size = Brief::read(&row.record).map_or(0, |brief| brief.size);
        let octets = counted(size, &row.record);
        Doomed { precedence: row.precedence, number: row.number, octets }
    }
}

/// The next numbers that are looked for; an error once all were and some are missing.
fn ask_for(
    mailbox: MailboxId,
    all: &[u32],
    found: usize,
    asked: &mut usize,
    missing: &[u32],
) -> Result<Option<Ask>, MsError> {
    let next = all.get(found..).unwrap_or_default();
    let next: Vec<_> =
        next.iter().take(PAGE).map(|number| ItemId { mailbox, number: *number }).collect();
    *asked = next.len();
    if !next.is_empty() {
        return Ok(Some(Ask::Find(next)));
    }
    if missing.is_empty() {
        return Ok(None);
    }
    let problem = |number: &u32| (SequenceNumberProblem::NO_SUCH_ENTRY, SequenceNumber(*number));
    Err(MsError::SequenceNumber(missing.iter().take(MAX_PROBLEMS).map(problem).collect()))
}

/// An item that cannot be read is due where all are.
fn is_due(rules: &Rules, now: Utc, row: &Row) -> bool {
    match Brief::read(&row.record) {
        Ok(brief) => rules.is_due(now, brief.status, brief.created),
        Err(_) => rules.give_up_all(),
    }
}
