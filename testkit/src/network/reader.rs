//! A user who reads his mailbox over P7: he binds, lists, fetches each item that he does not have, deletes some, and
//! remembers what he saw of it, in order. Now and then he hangs up while he waits for an answer.

use super::store_user::{Answer, Asked, StoreEvent, StoreUser};
use super::{Delivered, Durable, End, Network};
use crate::build::name;
use crate::sites::P7;
use base::Instant;
use base::ber::Element;
use base::rng::Rng;
use p1::p3::{PerRecipientReportDelivery, SubmissionResult};
use p7::attributes::{self as a, AttributeType};
use p7::operation::{
    FetchArgument, FetchResult, ListArgument, ListResult, SummarizeArgument, SummarizeResult,
};
use p7::{AttributeSelection, EntryInformation, EntryType, Range, Selector, SequenceNumber, Value};
use sim::UserSubmission;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Between two looks: after one that found something new, and at most.
const LOOKS: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(60));

/// One in so many looks is at all items, the others at those after the last one.
const WHOLE: u32 = 4;

/// What is unanswered for so long is given up, with the connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// After one in so many questions he hangs up, before he is answered.
const HANGS_UP: u64 = 40;

/// Most items of a delete.
const MOST: usize = 8;

/// An item as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its sequence number.
    pub number: u32,
    /// Whether it is a report.
    pub is_report: bool,
    /// MTS identifier, of the message or of the subject of the report.
    pub identifier: String,
    /// Octets of content; `None` for a report that returns none.
    pub size: Option<i64>,
    /// retrieval-status.
    pub status: i64,
}

/// What he saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// He is bound.
    Bound,
    /// All items from a number on, and before the next one if there is one.
    Listed {
        /// From.
        from: u32,
        /// The first number that the list left out.
        next: Option<u32>,
        /// The items, in the order of the list.
        items: Vec<Row>,
    },
    /// A summary of all items.
    Counted {
        /// How many.
        count: i64,
        /// The lowest number and the highest.
        span: Option<(u32, u32)>,
        /// How many are messages, and how many are reports.
        kinds: [i64; 2],
    },
    /// An item came whole.
    Fetched {
        /// The item, as a list shows it.
        row: Row,
        /// this-recipient-name of a message.
        recipient: Option<String>,
        /// Octets of its content.
        octets: usize,
    },
    /// A delete of these was confirmed.
    Deleted(Vec<u32>),
    /// A delete of these was not answered.
    Doubted(Vec<u32>),
    /// A delete of these was answered with this error.
    Kept(Vec<u32>, i64),
    /// A fetch of this was answered with this error.
    NotFetched(u32, i64),
    /// A list or a summary was answered with this error.
    Refused(i64),
    /// A result is not what it should be: what, in words.
    Unreadable(String),
    /// Nothing came for a minute.
    GaveUp,
}

/// What is to be done in a look.
#[derive(Clone, Copy, Debug)]
enum Step {
    List(u32),
    Count,
    Fetch(u32),
    Delete,
}

/// What he knows of an item.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    fetched: bool,
    doomed: bool,
}

/// A user of the message store.
pub struct Reader {
    /// Its end of the connection it has now, or had last.
    pub end: End,
    /// What he saw: when, and during which bind.
    pub journal: Vec<(u32, Instant, Seen)>,
    deletes: bool,
    /// Most items of a list.
    page: Option<i64>,
    machine: StoreUser,
    submissions: VecDeque<UserSubmission>,
    steps: VecDeque<Step>,
    known: BTreeMap<u32, Known>,
    /// The highest number that he has seen.
    last: u32,
    looks: u32,
    /// When he connected, or asked last.
    active: Instant,
    next: Instant,
    pause: Duration,
    hangs_up: bool,
    rng: Rng,
}

impl Reader {
    fn note(&mut self, now: Instant, seen: Seen) {
        let End::Store(_, bind) = self.end else { return };
        self.journal.push((bind, now, seen));
    }

    /// Begins a look, at all items or at the new ones.
    fn begin(&mut self, now: Instant, whole: bool) {
        self.looks += 1;
        self.steps.clear();
        if whole || self.looks.is_multiple_of(WHOLE) {
            self.steps.extend([Step::List(1), Step::Count]);
        } else {
            self.steps.push_back(Step::List(self.last.saturating_add(1)));
        }
        (self.next, self.pause) = (now + self.pause, (self.pause * 2).min(LOOKS.1));
    }

    /// Asks the next thing, if he may; whether he did.
    fn go_on(&mut self, now: Instant) -> bool {
        if !self.machine.is_bound() || !self.machine.is_idle() {
            return false;
        }
        let asked = match (self.submissions.pop_front(), self.steps.pop_front()) {
            (Some(submission), step) => {
                step.into_iter().for_each(|step| self.steps.push_front(step));
                Some(Asked::Submit(submission))
            }
            (None, Some(step)) => self.asked(step),
            (None, None) => return false,
        };
        if let Some(asked) = asked {
            (self.active, self.hangs_up) = (now, self.rng.below(HANGS_UP) == 0);
            self.machine.ask(now, asked);
        }
        true
    }

    fn asked(&mut self, step: Step) -> Option<Asked> {
        Some(match step {
            Step::List(from) => {
                let range = Range::SequenceNumber { from: Some(SequenceNumber(from)), to: None };
                let range = (from > 1).then_some(range);
                let selector = Selector { range, limit: self.page, ..Selector::default() };
                let requested_attributes = Some(selected(ROW));
                Asked::List(ListArgument { selector, requested_attributes, ..<_>::default() })
            }
            Step::Count => Asked::Summarize(SummarizeArgument {
                summary_requests: vec![a::ENTRY_TYPE.oid()],
                ..<_>::default()
            }),
            Step::Fetch(number) => {
                let others = [a::PRIORITY, a::THIS_RECIPIENT_NAME, FIELDS, a::CONTENT];
                let wanted = [ROW, &others].concat();
                Asked::Fetch(FetchArgument::precise(SequenceNumber(number), selected(&wanted)))
            }
            Step::Delete => {
                let due = self.known.iter().filter(|(_, known)| known.fetched && known.doomed);
                let numbers: Vec<u32> = due.map(|(number, _)| *number).take(MOST).collect();
                if numbers.is_empty() {
                    return None;
                }
                Asked::Delete(numbers)
            }
        })
    }

    fn listed(&mut self, now: Instant, argument: &ListArgument, result: &ListResult) {
        let from = match argument.selector.range {
            Some(Range::SequenceNumber { from: Some(from), .. }) => from.0,
            _ => 1,
        };
        let items: Vec<Row> = match result.requested.iter().map(row).collect() {
            Some(items) => items,
            None => return self.note(now, Seen::Unreadable("an item of a list".to_owned())),
        };
        let next = result.next.map(|next| next.0);
        let end = next.unwrap_or(u32::MAX);
        self.known.retain(|number, _| {
            !(from..end).contains(number) || items.iter().any(|item| item.number == *number)
        });
        for item in &items {
            if item.number > self.last {
                (self.last, self.pause) = (item.number, LOOKS.0);
                self.next = now + self.pause;
            }
            self.known.entry(item.number).or_default();
        }
        match next {
            Some(next) => self.steps.push_front(Step::List(next)),
            None => {
                let missing = self.known.iter().filter(|(_, known)| !known.fetched);
                self.steps.extend(missing.map(|(number, _)| Step::Fetch(*number)));
                self.steps.push_back(Step::Delete);
            }
        }
        self.note(now, Seen::Listed { from, next, items });
    }

    fn counted(&mut self, now: Instant, result: &SummarizeResult) {
        let values = result.summaries.iter().flat_map(|summary| &summary.present);
        let mut kinds = [0; 2];
        for value in values {
            match value.value.integer().map(EntryType) {
                Ok(EntryType::DELIVERED_MESSAGE) => kinds[0] += value.count,
                Ok(EntryType::DELIVERED_REPORT) => kinds[1] += value.count,
                _ => {}
            }
        }
        let span = result.span.map(|span| (span.lowest.0, span.highest.0));
        self.note(now, Seen::Counted { count: result.count, span, kinds });
    }

    fn delete_answered(&mut self, now: Instant, numbers: Vec<u32>, answer: &Answer) {
        let seen = match answer {
            Answer::Result(_) => {
                self.known.retain(|number, _| !numbers.contains(number));
                self.steps.push_back(Step::Delete);
                Seen::Deleted(numbers)
            }
            Answer::Error(code) => Seen::Kept(numbers, *code),
            Answer::Lost => Seen::Doubted(numbers),
        };
        self.note(now, seen);
    }
}

const FIELDS: AttributeType = a::PER_RECIPIENT_REPORT_DELIVERY_FIELDS;

const ROW: &[AttributeType] = &[
    a::ENTRY_TYPE,
    a::MESSAGE_IDENTIFIER,
    a::SUBJECT_SUBMISSION_IDENTIFIER,
    a::CONTENT_LENGTH,
    a::RETRIEVAL_STATUS,
];

fn selected(kinds: &[AttributeType]) -> Vec<AttributeSelection> {
    kinds.iter().map(|kind| AttributeSelection::new(kind.oid())).collect()
}

fn values<'a>(entry: &'a EntryInformation, kind: &AttributeType) -> &'a [Value] {
    entry.attribute(&kind.oid()).map_or(&[], |attribute| &attribute.values)
}

/// An item; `None` if what every item has is not there.
fn row(entry: &EntryInformation) -> Option<Row> {
    let integer = |kind: &AttributeType| values(entry, kind).first()?.integer().ok();
    let is_report = match EntryType(integer(&a::ENTRY_TYPE)?) {
        EntryType::DELIVERED_MESSAGE => false,
        EntryType::DELIVERED_REPORT => true,
        _ => return None,
    };
    let kind = if is_report { a::SUBJECT_SUBMISSION_IDENTIFIER } else { a::MESSAGE_IDENTIFIER };
    let identifier = values(entry, &kind).first()?.mts_identifier().ok()?.to_string();
    Some(Row {
        number: entry.sequence_number.0,
        is_report,
        identifier,
        size: integer(&a::CONTENT_LENGTH),
        status: integer(&a::RETRIEVAL_STATUS)?,
    })
}

/// What a fetch shows of an item beside its row.
struct Item {
    row: Row,
    recipient: Option<String>,
    priority: Option<p1::Priority>,
    fields: Vec<PerRecipientReportDelivery>,
    content: Vec<u8>,
}

fn item(octets: &[u8]) -> Option<Item> {
    let result = FetchResult::read(&Element::parse(octets).ok()?).ok()?;
    let entry = result.entry_information?;
    let row = row(&entry)?;
    let first = |kind: &AttributeType| values(&entry, kind).first();
    let content = match first(&a::CONTENT) {
        Some(content) => content.octet_string().ok()?.to_vec(),
        None if row.is_report => Vec::new(),
        None => return None,
    };
    let recipient = first(&a::THIS_RECIPIENT_NAME).map(Value::or_name).transpose().ok()?;
    let priority = first(&a::PRIORITY);
    let priority = priority.map(|value| p1::Priority::read(&value.element()?));
    let fields = values(&entry, &FIELDS).iter();
    let fields = fields.map(|value| PerRecipientReportDelivery::read(&value.element()?));
    Some(Item {
        row,
        recipient: recipient.map(|name| name.to_string()),
        priority: priority.transpose().ok()?,
        fields: fields.collect::<Result<_, _>>().ok()?,
        content,
    })
}

impl<S: Durable> Network<S> {
    /// A user reads the mailbox that he has at his site, in lists of so many items, and deletes some of what he has.
    /// What he fetches is among what he took.
    pub fn read_over_p7(&mut self, user: usize, deletes: bool, page: Option<i64>) {
        let u = &mut self.users[user];
        u.reader = Some(Reader {
            end: End::Store(user, 0),
            journal: Vec::new(),
            deletes,
            page,
            machine: StoreUser::new(name(&u.address), u.password),
            submissions: VecDeque::new(),
            steps: VecDeque::new(),
            known: BTreeMap::new(),
            last: 0,
            looks: 0,
            active: Instant(0),
            next: Instant(0),
            pause: LOOKS.0,
            hangs_up: false,
            rng: Rng::new(user as u64 + 1),
        });
    }

    /// A user who reads over P7 looks into his mailbox at a site, if it is time; he binds where he is not bound.
    pub fn read_mailbox(&mut self, user: usize, site: usize) {
        let (now, is_down) = (self.now, self.sites[site].is_down);
        let Some(reader) = &mut self.users[user].reader else { return };
        let waits = now.0.saturating_sub(reader.active.0);
        let is_patient = waits < PATIENCE.as_micros() as u64;
        let is_connected = self.ends.contains_key(&reader.end);
        match (reader.machine.is_bound(), reader.machine.is_idle()) {
            (true, true) if reader.next <= now => {
                reader.begin(now, false);
                self.reader_drain(user);
            }
            (true, true) => {}
            (true, false) if is_patient => {}
            (false, _) if is_down || is_connected && is_patient => {}
            _ => {
                if is_connected {
                    reader.note(now, Seen::GaveUp);
                }
                self.bind_to_store(user, site);
            }
        }
    }

    fn bind_to_store(&mut self, user: usize, site: usize) {
        let Some(reader) = &mut self.users[user].reader else { return };
        let old = reader.end;
        reader.machine.closed();
        self.reader_drain(user);
        let Some(reader) = &mut self.users[user].reader else { return };
        if let End::Store(_, binds) = &mut reader.end {
            *binds += 1;
        }
        (reader.active, reader.pause) = (self.now, LOOKS.0);
        let end = reader.end;
        self.close(old);
        self.open(end, site, P7, None);
    }

    /// Queues what a user submits through the message store.
    pub(super) fn submit_to_store(&mut self, user: usize, submission: UserSubmission) {
        if let Some(reader) = &mut self.users[user].reader {
            reader.submissions.push_back(submission);
        }
        self.reader_drain(user);
    }

    /// The reader whose end this is, unless he has bound again since.
    fn reader_at(&mut self, end: End) -> Option<(usize, &mut Reader)> {
        let End::Store(user, _) = end else { return None };
        let reader = self.users[user].reader.as_mut().filter(|reader| reader.end == end);
        reader.map(|reader| (user, reader))
    }

    pub(super) fn reader_connected(&mut self, end: End) {
        let now = self.now;
        let Some((user, reader)) = self.reader_at(end) else { return };
        reader.machine.connected(now);
        self.reader_drain(user);
    }

    pub(super) fn reader_octets(&mut self, end: End, octets: &[u8]) {
        let now = self.now;
        let Some((user, reader)) = self.reader_at(end) else { return };
        reader.machine.bytes(now, octets);
        self.reader_drain(user);
    }

    pub(super) fn reader_closed(&mut self, end: End) {
        let Some((user, reader)) = self.reader_at(end) else { return };
        reader.machine.closed();
        self.reader_drain(user);
    }

    fn reader_drain(&mut self, user: usize) {
        let now = self.now;
        while let Some(reader) = &mut self.users[user].reader {
            let end = reader.end;
            match reader.machine.poll() {
                Some(StoreEvent::Write(octets)) => self.send(end, octets),
                Some(StoreEvent::Close) => self.close(end),
                Some(StoreEvent::Bound) => {
                    reader.note(now, Seen::Bound);
                    reader.begin(now, true);
                }
                Some(StoreEvent::NeedContent { tag, offset, max }) => {
                    let content = &self.users[user].contents[tag];
                    let start = offset as usize;
                    let piece = content.slice(start..(start + max).min(content.len()));
                    let reader = self.users[user].reader.as_mut().expect("a reader");
                    reader.machine.content(now, piece);
                }
                Some(StoreEvent::Answered(asked, answer)) => self.answered(user, asked, answer),
                None if std::mem::take(&mut reader.hangs_up) => return self.close(end),
                None if reader.go_on(now) => {}
                None => return,
            }
        }
    }

    fn answered(&mut self, user: usize, asked: Asked, answer: Answer) {
        let (now, u) = (self.now, &mut self.users[user]);
        let Some(reader) = &mut u.reader else { return };
        if answer == Answer::Lost {
            reader.steps.clear();
        }
        match (asked, answer) {
            (Asked::Submit(submission), Answer::Lost) => reader.submissions.push_front(submission),
            (Asked::Submit(submission), answer) => {
                let read =
                    |octets: &[u8]| SubmissionResult::read(&Element::parse(octets).ok()?).ok();
                let result = match answer {
                    Answer::Result(octets) => match read(&octets) {
                        Some(result) => Ok(result.identifier),
                        None => {
                            let what = "the result of a submission".to_owned();
                            return reader.note(now, Seen::Unreadable(what));
                        }
                    },
                    Answer::Error(code) => Err(code),
                    Answer::Lost => return,
                };
                u.identifiers.extend(result.clone());
                u.answers.push(result.map(|identifier| identifier.to_string()));
                u.answered.push(submission.tag);
            }
            (Asked::Delete(numbers), answer) => reader.delete_answered(now, numbers, &answer),
            (Asked::Fetch(fetch), answer) => self.fetched(user, &fetch, &answer),
            (_, Answer::Lost) => {}
            (_, Answer::Error(code)) => {
                reader.steps.clear();
                reader.note(now, Seen::Refused(code));
            }
            (Asked::List(argument), Answer::Result(octets)) => {
                match Element::parse(&octets).and_then(|e| ListResult::read(&e)) {
                    Ok(result) => reader.listed(now, &argument, &result),
                    Err(error) => reader.note(now, Seen::Unreadable(format!("a list: {error}"))),
                }
            }
            (Asked::Summarize(_), Answer::Result(octets)) => {
                match Element::parse(&octets).and_then(|e| SummarizeResult::read(&e)) {
                    Ok(result) => reader.counted(now, &result),
                    Err(error) => reader.note(now, Seen::Unreadable(format!("a summary: {error}"))),
                }
            }
        }
    }

    /// An item that he fetched is one that he took, as over P3.
    fn fetched(&mut self, user: usize, fetch: &FetchArgument, answer: &Answer) {
        let (now, u) = (self.now, &mut self.users[user]);
        let Some(reader) = &mut u.reader else { return };
        let p7::operation::FetchItem::Precise(SequenceNumber(number)) = fetch.item else { return };
        let octets = match answer {
            Answer::Result(octets) => octets,
            Answer::Error(code) => return reader.note(now, Seen::NotFetched(number, *code)),
            Answer::Lost => return,
        };
        let Some(Item { row, recipient, priority, fields, content }) = item(octets) else {
            return reader.note(now, Seen::Unreadable(format!("the fetch of item {number}")));
        };
        let doomed = reader.deletes && reader.rng.below(2) == 0;
        reader.known.insert(number, Known { fetched: true, doomed });
        let (identifier, is_report) = (row.identifier.clone(), row.is_report);
        reader.note(now, Seen::Fetched { row, recipient, octets: content.len() });
        let End::Store(_, bind) = reader.end else { return };
        if !is_report {
            u.delivered.push(Delivered::Message { identifier, content });
            u.took.push((bind, now));
            u.reported.push(None);
            u.priorities.push(priority);
            return;
        }
        for r in &fields {
            let delivered = matches!(r.report, p1::ReportType::Delivery { .. });
            u.delivered.push(Delivered::Report { subject: identifier.clone(), delivered });
            u.took.push((bind, now));
            u.reported.push(Some(r.actual_recipient.to_string()));
            u.priorities.push(None);
        }
    }
}
