//! summarize: how many items are selected, and how many have each value of some attributes.

use super::select::{Selected as Next, Selection, check_class};
use super::{Access, Answer, Outcome, Row, Step, unavailable};
use crate::attributes::{Attributes, available, unavailable as unavailable_type};
use crate::delivery::Mailbox;
use p7::attributes::{AttributeType, CONTENT};
use p7::error::ServiceProblem;
use p7::limits::MAX_SUMMARY_VALUES;
use p7::operation::{Span, SummarizeArgument, SummarizeResult, Summary, SummaryValue};
use p7::{MsError, SequenceNumber, Value};
use std::collections::BTreeMap;

/// Most octets of the distinct values that a summary counts.
pub const MAX_SUMMARY_OCTETS: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Summarize {
    selection: Selection,
    requests: Vec<Request>,
    count: usize,
    span: Option<Span>,
    /// Octets of all values that are counted.
    octets: usize,
    values: usize,
}

#[derive(Debug)]
struct Request {
    kind: &'static AttributeType,
    absent: i64,
    present: BTreeMap<Vec<u8>, (Value, i64)>,
}

impl Summarize {
    pub(super) fn new(
        mailbox: &Mailbox,
        access: &Access,
        argument: &SummarizeArgument,
    ) -> Result<Summarize, MsError> {
        check_class(argument.entry_class, access)?;
        let mut requests = Vec::new();
        for oid in &argument.summary_requests {
            let kind = available(oid).filter(|kind| **kind != CONTENT);
            let kind = kind.ok_or_else(|| unavailable_type(oid))?;
            requests.push(Request { kind, absent: 0, present: BTreeMap::new() });
        }
        Ok(Summarize {
            selection: Selection::new(mailbox, access, &argument.selector, None)?,
            requests,
            count: 0,
            span: None,
            octets: 0,
            values: 0,
        })
    }

    pub(super) fn step(&mut self, answer: Answer) -> Step {
        if !self.selection.take(answer) {
            return unavailable();
        }
        loop {
            match self.selection.next() {
                Err(error) => return Step::Error(error),
                Ok(Next::Ask(ask)) => return Step::Ask(ask),
                Ok(Next::End) => return self.done(None),
                Ok(Next::Row(row)) => {
                    if self.selection.limit.is_some_and(|limit| self.count >= limit) {
                        return self.done(Some(SequenceNumber(row.number)));
                    }
                    self.add(&row);
                    if self.octets > MAX_SUMMARY_OCTETS || self.values > MAX_SUMMARY_VALUES {
                        return Step::Error(MsError::service(ServiceProblem::UNWILLING_TO_PERFORM));
                    }
                }
            }
        }
    }

    fn add(&mut self, row: &Row) {
        let Ok(item) = Attributes::new(row.number, row.precedence, &row.record) else { return };
        let highest = SequenceNumber(row.number);
        let lowest = self.span.map_or(highest, |span| span.lowest);
        self.span = Some(Span { lowest, highest });
        self.count += 1;
        for request in &mut self.requests {
            let values = item.values(request.kind);
            if values.is_empty() {
                request.absent += 1;
            }
            for value in values {
                if let Some((_, count)) = request.present.get_mut(value.octets().as_ref()) {
                    *count += 1;
                    continue;
                }
                self.values += 1;
                self.octets += value.octets().len();
                request.present.insert(value.octets().to_vec(), (value, 1));
            }
        }
    }

    fn done(&mut self, next: Option<SequenceNumber>) -> Step {
        Step::Done(Outcome::Summarized(SummarizeResult {
            next,
            count: i64::try_from(self.count).unwrap_or(i64::MAX),
            span: self.span,
            summaries: std::mem::take(&mut self.requests).into_iter().map(summary).collect(),
            extensions: Vec::new(),
        }))
    }
}

fn summary(request: Request) -> Summary {
    let attribute_type = request.kind.oid();
    let value = |(value, count)| {
        let attribute_type = attribute_type.clone();
        SummaryValue { attribute_type, value, count }
    };
    let present = request.present.into_values().map(value).collect();
    Summary { absent: (request.absent > 0).then_some(request.absent), present }
}
