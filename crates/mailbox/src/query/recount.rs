//! Counts the items of a mailbox, and corrects its totals.

use super::scan::{Bounds, Next, Scan};
use super::{Answer, Outcome, Step, unavailable};
use crate::delivery::Mailbox;
use crate::item::{Brief, counted};
use crate::totals::Totals;
use p7::MsError;
use p7::error::ServiceProblem;

#[derive(Debug)]
pub(super) struct Recount {
    scan: Scan,
    /// The totals when it began: what was delivered since is added to what it counts.
    before: Totals,
    counted: Totals,
}

impl Recount {
    pub(super) fn new(mailbox: &Mailbox) -> Recount {
        Recount {
            // The totals are in doubt, so a level that they have without items is read too.
            scan: Scan::of_all(mailbox, Bounds::default()),
            before: *mailbox.totals(),
            counted: Totals::default(),
        }
    }

    pub(super) fn step(&mut self, mailbox: &mut Mailbox, answer: Answer) -> Step {
        match answer {
            Answer::Start => {}
            Answer::Rows(rows) => self.scan.take(rows),
            Answer::Committed => return Step::Done(Outcome::Recounted),
            Answer::NotCommitted => {
                return Step::Error(MsError::service(ServiceProblem::BUSY));
            }
            Answer::Failed => return unavailable(),
        }
        loop {
            match self.scan.next() {
                Next::Ask(ask) => return Step::Ask(ask),
                Next::Row(row) => {
                    let size = Brief::read(&row.record).map_or(0, |brief| brief.size);
                    self.counted.add(row.precedence, counted(size, &row.record));
                }
                Next::End => {
                    mailbox.totals_mut().correct(&self.before, &self.counted);
                    return Step::Commit(vec![mailbox.put_totals()]);
                }
            }
        }
    }
}
