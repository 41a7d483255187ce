//! fetch: one item, which becomes processed. Its content is not in the result but streamed from the store.

use super::select::{Selected as Next, Selection, check_class};
use super::{Access, Answer, Ask, Outcome, Row, Step, raise, unavailable};
use crate::attributes::{Attributes, Selected};
use crate::delivery::Mailbox;
use crate::item::{Kind, Status};
use base::BodyId;
use base::ber::{Element, Header, Length, Tag, Writer, universal as u};
use engine::Payload;
use engine::journal::{ItemId, MailboxId, Op};
use p7::attributes::{CONTENT, content_type_oid};
use p7::error::{FetchRestriction, FetchRestrictionItem};
use p7::operation::{FetchArgument, FetchItem, FetchResult};
use p7::selector::OverrideRestrictions;
use p7::{EntryInformation, MsError, Restrictions, SequenceNumber};

/// Most numbers in the list of a fetch; the result names the next.
pub const MAX_FOUND: usize = 1_024;

/// The result of a fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The result without the attribute content.
    pub result: FetchResult,
    /// The body of the attribute content and its length in octets, if content was requested and the item has one.
    pub content: Option<(BodyId, u64)>,
}

#[derive(Debug)]
pub(super) struct Fetch {
    mailbox: MailboxId,
    what: What,
    selected: Vec<Selected>,
    with_content: bool,
    access: Access,
    overridden: OverrideRestrictions,
    fetched: Fetched,
    /// What makes the item processed.
    processed: Option<Op>,
    is_committing: bool,
}

#[derive(Debug)]
enum What {
    Number(SequenceNumber),
    Search(Selection),
}

impl Fetch {
    pub(super) fn new(
        mailbox: &Mailbox,
        access: &Access,
        argument: &FetchArgument,
        mut selected: Vec<Selected>,
    ) -> Result<Fetch, MsError> {
        check_class(argument.entry_class, access)?;
        let is_content = |selected: &Selected| *selected.kind == CONTENT;
        let with_content = selected.iter().any(|s| is_content(s) && s.skip == 0 && s.count > 0);
        selected.retain(|selected| !is_content(selected));
        let (what, overridden) = match &argument.item {
            FetchItem::Precise(number) => (What::Number(*number), None),
            FetchItem::Search(selector) => {
                let selection = Selection::new(mailbox, access, selector, Some(MAX_FOUND))?;
                (What::Search(selection), selector.override_restrictions)
            }
        };
        Ok(Fetch {
            mailbox: mailbox.id(),
            what,
            selected,
            with_content,
            access: access.clone(),
            overridden: overridden.unwrap_or_default(),
            fetched: Fetched::default(),
            processed: None,
            is_committing: false,
        })
    }

    pub(super) fn step(&mut self, answer: Answer) -> Step {
        if self.is_committing {
            // An item that could not be made processed keeps its status; a fetch does not depend on it.
            return self.done();
        }
        match &self.what {
            What::Number(number) => self.find(*number, answer),
            What::Search(_) => self.search(answer),
        }
    }

    fn find(&mut self, number: SequenceNumber, answer: Answer) -> Step {
        match answer {
            Answer::Start => {
                Step::Ask(Ask::Find(vec![ItemId { mailbox: self.mailbox, number: number.0 }]))
            }
            Answer::Rows(rows) => match rows.iter().find(|row| row.number == number.0) {
                None => Step::Error(MsError::no_such_entry(number)),
                Some(row) => self.add(row).map_or_else(Step::Error, |()| self.end()),
            },
            _ => unavailable(),
        }
    }

    fn search(&mut self, answer: Answer) -> Step {
        let What::Search(selection) = &mut self.what else { return unavailable() };
        if !selection.take(answer) {
            return unavailable();
        }
        loop {
            let What::Search(selection) = &mut self.what else { return unavailable() };
            let limit = selection.limit.unwrap_or(MAX_FOUND).min(MAX_FOUND);
            let row = match selection.next() {
                Err(error) => return Step::Error(error),
                Ok(Next::Ask(ask)) => return Step::Ask(ask),
                Ok(Next::End) => return self.end(),
                Ok(Next::Row(row)) => row,
            };
            let number = SequenceNumber(row.number);
            let result = &mut self.fetched.result;
            if result.entry_information.is_none() {
                if let Err(error) = self.add(&row) {
                    return Step::Error(error);
                }
            } else if result.list.len() + 1 < limit {
                result.list.push(number);
            } else {
                result.next = Some(number);
                return self.end();
            }
        }
    }

    /// Takes the item that is fetched.
    fn add(&mut self, row: &Row) -> Result<(), MsError> {
        let unreadable = |_| MsError::service(p7::error::ServiceProblem::UNAVAILABLE);
        let item = Attributes::new(row.number, row.precedence, &row.record).map_err(unreadable)?;
        let entry = item.select(&self.selected, self.access.is_1994);
        // Of a report: the content that it returns.
        let has_content = item.brief().kind == Kind::Message || item.brief().size > 0;
        if self.with_content && has_content {
            let id = ItemId { mailbox: self.mailbox, number: row.number };
            self.fetched.content = Some((id.body(), item.brief().size));
        }
        self.check(&item, &entry)?;
        self.processed = raise(self.mailbox, row, item.brief(), Status::Processed);
        self.fetched.result.entry_information = Some(entry);
        Ok(())
    }

    /// Checks the fetch-restrictions of the bind.
    fn check(&self, item: &Attributes<'_>, entry: &EntryInformation) -> Result<(), MsError> {
        let Restrictions { allowed_content_types, allowed_eits, maximum_attribute_length } =
            &self.access.restrictions;
        let mut problems = Vec::new();
        let is_checked = |which| !self.overridden.contains(which);
        let content_type = item.content_type().as_ref().and_then(content_type_oid);
        if let Some(oid) = content_type
            && is_checked(OverrideRestrictions::CONTENT_TYPES)
            && !allowed_content_types.is_empty()
            && !allowed_content_types.contains(&oid)
        {
            let restriction = FetchRestriction::ContentType(oid);
            problems.push(FetchRestrictionItem { problem: 1, restriction });
        }
        if !allowed_eits.is_empty() && is_checked(OverrideRestrictions::EITS) {
            let mut others = item.delivered_eits();
            others.retain(|oid| !allowed_eits.contains(oid));
            if !others.is_empty() {
                let restriction = FetchRestriction::Eits(others);
                problems.push(FetchRestrictionItem { problem: 2, restriction });
            }
        }
        if let Some(most) = *maximum_attribute_length
            && is_checked(OverrideRestrictions::ATTRIBUTE_LENGTH)
        {
            let values = entry.attributes.iter().flat_map(|attribute| &attribute.values);
            let lengths = values.map(|value| value.octets().len() as u64);
            let content = self.fetched.content.map(|(_, length)| length);
            let longest = lengths.chain(content).max().unwrap_or_default();
            let longest = i64::try_from(longest).unwrap_or(i64::MAX);
            if longest > most {
                let restriction = FetchRestriction::AttributeLength(longest);
                problems.push(FetchRestrictionItem { problem: 3, restriction });
            }
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(MsError::FetchRestriction(problems)),
        }
    }

    fn end(&mut self) -> Step {
        match self.processed.take() {
            None => self.done(),
            Some(op) => {
                self.is_committing = true;
                Step::Commit(vec![op])
            }
        }
    }

    fn done(&mut self) -> Step {
        Step::Done(Outcome::Fetched(Box::new(std::mem::take(&mut self.fetched))))
    }
}

impl Fetched {
    /// The result as octets around the content, which is pulled from the store. All lengths are definite.
    #[must_use]
    pub fn payload(&self) -> Payload {
        match (self.content, &self.result.entry_information) {
            (Some((_, length)), Some(entry)) => self.around(entry, length),
            _ => {
                let mut w = Writer::new();
                self.result.write(&mut w);
                Payload { head: w.into_vec().into(), ..Payload::default() }
            }
        }
    }

    /// The content is the last attribute, and entry-information the last member of the result.
    fn around(&self, entry: &EntryInformation, length: u64) -> Payload {
        let mut frame = Frame { head: Vec::new(), length, tail: Vec::new() };
        frame.wrap(u::OCTET_STRING, false);
        frame.wrap(u::SEQUENCE, true);
        frame.precede(|w| w.oid(u::OID, &CONTENT.oid()));
        frame.wrap(u::SEQUENCE, true);
        frame.precede(|w| entry.attributes.iter().for_each(|attribute| attribute.write(w)));
        frame.wrap(u::SET, true);
        frame.precede(|w| entry.sequence_number.write(w));
        let counts = EntryInformation { attributes: Vec::new(), ..entry.clone() };
        let counts = encoded(|w| counts.write(w));
        frame.tail.extend_from_slice(members_after(&counts, 1));
        frame.wrap(u::SEQUENCE, true);
        frame.wrap(Tag::context(0), true);
        let rest = FetchResult { entry_information: None, ..self.result.clone() };
        let rest = encoded(|w| rest.write(w));
        frame.precede(|w| w.raw(members_after(&rest, 0)));
        frame.wrap(u::SET, true);
        Payload {
            head: frame.head.into(),
            content_length: length,
            tail: frame.tail.into(),
            ..Payload::default()
        }
    }
}

/// Octets before and after a content of this length, from the innermost element outwards.
struct Frame {
    head: Vec<u8>,
    length: u64,
    tail: Vec<u8>,
}

impl Frame {
    /// Puts all so far into one element.
    fn wrap(&mut self, tag: Tag, constructed: bool) {
        let around = (self.head.len() + self.tail.len()) as u64;
        let length = Length::Definite(self.length.saturating_add(around));
        let mut head = Vec::with_capacity(self.head.len() + 12);
        Header::write(tag, constructed, length, &mut head);
        head.append(&mut self.head);
        self.head = head;
    }

    /// Puts elements before all so far.
    fn precede(&mut self, write: impl FnOnce(&mut Writer)) {
        let mut head = encoded(write);
        head.append(&mut self.head);
        self.head = head;
    }
}

fn encoded(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec()
}

/// The members of an element after the first `skipped`.
fn members_after(element: &[u8], skipped: usize) -> &[u8] {
    let members = || {
        let mut members = Element::parse_accepted(element).ok()?.children().ok()?;
        for _ in 0..skipped {
            members.next().ok()?;
        }
        Some(members.rest())
    };
    members().unwrap_or_default()
}
