//! summarize: how many entries there are, and how many with each value of some attributes.

use crate::entry::{EntryClass, SequenceNumber};
use crate::extension::{self, MsExtension};
use crate::limits::{MAX_SUMMARIES, MAX_SUMMARY_VALUES};
use crate::registration::number;
use crate::selector::Selector;
use crate::value::Value;
use crate::wire::{self, explicit, require};
use base::ber::{Element, Error, Fault, Field, Member, Oid, Tag, Writer, read_set, universal as u};

/// SummarizeArgument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummarizeArgument {
    /// entry-class.
    pub entry_class: EntryClass,
    /// selector.
    pub selector: Selector,
    /// summary-requests: attributes whose values are counted.
    pub summary_requests: Vec<Oid>,
    /// summarize-extensions (1994).
    pub extensions: Vec<MsExtension>,
}

/// Span: the lowest and the highest number of the selected entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// lowest.
    pub lowest: SequenceNumber,
    /// highest.
    pub highest: SequenceNumber,
}

/// Summary: what one summary request found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// absent: entries without the attribute; `None` for none.
    pub absent: Option<i64>,
    /// present: one for each value.
    pub present: Vec<SummaryValue>,
}

/// How many entries have a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryValue {
    /// type.
    pub attribute_type: Oid,
    /// value.
    pub value: Value,
    /// count, 1 or more.
    pub count: i64,
}

/// SummarizeResult.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummarizeResult {
    /// next: the first entry beyond the limit of the selector.
    pub next: Option<SequenceNumber>,
    /// count of the selected entries.
    pub count: i64,
    /// span; absent where the count is 0.
    pub span: Option<Span>,
    /// summaries, in the order of the requests.
    pub summaries: Vec<Summary>,
    /// summarize-result-extensions (1994).
    pub extensions: Vec<MsExtension>,
}

const SELECTOR: Tag = Tag::context(1);
const COUNT: Tag = Tag::context(1);
const LOWEST: Tag = Tag::context(0);
const HIGHEST: Tag = Tag::context(1);

impl SummarizeArgument {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no selector; the field is named.
    pub fn read(e: &Element<'_>) -> Result<SummarizeArgument, Error> {
        let (mut class, mut selector) = (Member::new("entry-class"), Member::new("selector"));
        let mut requests = Member::new("summary-requests");
        let mut extensions = Member::new("summarize-extensions");
        let set = require(e, u::SET).field("SummarizeArgument")?;
        let members = read_set(set, |m| match number(m) {
            0 => class.once(m, EntryClass::read_inner),
            1 => selector.once(m, Selector::read_inner),
            2 => requests.once(m, |m| wire::list(m, u::SEQUENCE, MAX_SUMMARIES, wire::bare_oid)),
            3 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("SummarizeArgument")?;
        Ok(SummarizeArgument {
            entry_class: class.or_default(),
            selector: selector.required(SELECTOR)?,
            summary_requests: requests.or_default(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.entry_class.write_default(w);
            explicit(w, 1, |w| self.selector.write(w));
            wire::write_oids(w, 2, u::SEQUENCE, &self.summary_requests);
            extension::write_all(w, 3, &self.extensions);
        });
    }
}

impl Span {
    fn read(e: &Element<'_>) -> Result<Span, Error> {
        let mut members = wire::inner(e, u::SEQUENCE)?.children()?;
        let lowest = members.require(LOWEST).and_then(|e| SequenceNumber::read_inner(&e));
        let lowest = lowest.field("lowest")?;
        let highest = members.require(HIGHEST).and_then(|e| SequenceNumber::read_inner(&e));
        let highest = highest.field("highest")?;
        members.finish()?;
        Ok(Span { lowest, highest })
    }

    fn write(self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            self.lowest.write_as(w, 0);
            self.highest.write_as(w, 1);
        });
    }
}

impl Summary {
    fn read(e: &Element<'_>) -> Result<Summary, Error> {
        let (mut absent, mut present) = (Member::new("absent"), Member::new("present"));
        read_set(require(e, u::SET)?, |m| match number(m) {
            0 => absent.once(m, wire::integer),
            1 => present.once(m, |m| wire::list(m, u::SET, MAX_SUMMARY_VALUES, SummaryValue::read)),
            _ => Ok(false),
        })?;
        Ok(Summary { absent: absent.optional(), present: present.or_default() })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if let Some(absent) = self.absent {
                wire::write_integer(w, 0, absent);
            }
            wire::write_some(w, 1, u::SET, &self.present, SummaryValue::write);
        });
    }
}

impl SummaryValue {
    fn read(e: &Element<'_>) -> Result<SummaryValue, Error> {
        let mut members = require(e, u::SEQUENCE)?.children()?;
        let attribute_type = members.require(u::OID).and_then(|e| e.oid()).field("type")?;
        let value = members.next().field("value")?.ok_or(Fault::Truncated).field("value")?;
        let value = Value::keep(&value)?;
        let count = members.require(u::INTEGER).and_then(|e| e.integer()).field("count")?;
        members.finish()?;
        Ok(SummaryValue { attribute_type, value, count })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            w.oid(u::OID, &self.attribute_type);
            self.value.write(w);
            w.integer(u::INTEGER, self.count);
        });
    }
}

impl SummarizeResult {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no count; the field is named.
    pub fn read(e: &Element<'_>) -> Result<SummarizeResult, Error> {
        let (mut next, mut count) = (Member::new("next"), Member::new("count"));
        let (mut span, mut summaries) = (Member::new("span"), Member::new("summaries"));
        let mut extensions = Member::new("summarize-result-extensions");
        let set = require(e, u::SET).field("SummarizeResult")?;
        let members = read_set(set, |m| match number(m) {
            0 => next.once(m, SequenceNumber::read_inner),
            1 => count.once(m, wire::integer),
            2 => span.once(m, Span::read),
            3 => summaries.once(m, |m| wire::list(m, u::SEQUENCE, MAX_SUMMARIES, Summary::read)),
            4 => extensions.once(m, extension::read_all),
            _ => Ok(false),
        });
        members.field("SummarizeResult")?;
        Ok(SummarizeResult {
            next: next.optional(),
            count: count.required(COUNT)?,
            span: span.optional(),
            summaries: summaries.or_default(),
            extensions: extensions.or_default(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            SequenceNumber::write_option(self.next, w, 0);
            wire::write_integer(w, 1, self.count);
            if let Some(span) = self.span {
                explicit(w, 2, |w| span.write(w));
            }
            wire::write_some(w, 3, u::SEQUENCE, &self.summaries, Summary::write);
            extension::write_all(w, 4, &self.extensions);
        });
    }
}
