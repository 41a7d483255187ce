//! Users of the message store, at the other end of a connection of a bench.

use super::client::{Spoken, reference};
use super::{Bench, P7, user_address};
use crate::build::{Submission, name};
use base::ber::{Element, Writer};
use base::{AssociationId, Instant, Precedence};
use osi::api::Selectors;
use osi::profiles::{self, abstract_syntax};
use p1::bind::Credentials;
use p1::flags::ReportRequest;
use p1::p3::MessageSubmissionEnvelope;
use p7::operation::{
    AlertArgument, DELETE, DeleteArgument, FETCH, FetchArgument, FetchResult, LIST, ListArgument,
    ListResult, REGISTER_MS, RegisterMsArgument, SUMMARIZE, SummarizeArgument, SummarizeResult,
};
use p7::{AttributeSelection, MsBindArgument, MsBindResult, SequenceNumber, attributes};

/// Where users of the message store connect from.
const READER: &str = "192.0.2.77";

/// The envelope of a message of this precedence between users of these surnames, with a report if it is not delivered.
pub fn envelope(from: &str, to: &[&str], precedence: Precedence) -> MessageSubmissionEnvelope {
    let (priority, qualifier) = p1::grade::split(precedence);
    let to = to.iter().map(|name| user_address(name));
    let report = ReportRequest::NonDelivery;
    let submission = Submission { priority, report, ..Submission::new(&user_address(from), to) };
    let mut envelope = submission.envelope();
    let qualifier = qualifier.extension(p1::Dialect::Modern);
    envelope.extensions = p1::Extensions(qualifier.into_iter().collect());
    envelope
}

impl Bench {
    /// A user of this surname connects and binds to the message store.
    pub fn reader(&mut self, surname: &str) -> AssociationId {
        self.reader_with(surname, "secret", |_| {})
    }

    /// The same with another password, and a change of the bind argument.
    pub fn reader_with(
        &mut self,
        surname: &str,
        password: &'static str,
        change: impl FnOnce(&mut MsBindArgument),
    ) -> AssociationId {
        let id = self.connect(P7, READER);
        let credentials = Credentials::simple(password);
        let mut bind = MsBindArgument::new(name(&user_address(surname)), credentials);
        change(&mut bind);
        let mut w = Writer::new();
        bind.write(&mut w);
        let config = profiles::p7(Selectors::default(), Selectors::default(), reference());
        self.open(id, config, w.into_vec().into(), Spoken::P7);
        id
    }

    /// The bind result of a user of the message store.
    pub fn store_bound(&self, id: AssociationId) -> MsBindResult {
        let bound = Element::parse(&self.client(id).bound).expect("BER");
        MsBindResult::read(&bound).expect("a bind result")
    }

    /// Invokes an operation of the retrieval port. Gives its invoke identifier.
    pub fn retrieve(
        &mut self,
        id: AssociationId,
        operation: i64,
        argument: impl FnOnce(&mut Writer),
    ) -> i64 {
        let mut w = Writer::new();
        argument(&mut w);
        self.invoke(id, (abstract_syntax::mrse_88(), operation), w.into_vec())
    }

    /// Invokes message-submission. Gives its invoke identifier.
    pub fn submit_whole(
        &mut self,
        id: AssociationId,
        envelope: &MessageSubmissionEnvelope,
        content: &[u8],
    ) -> i64 {
        let mut argument = envelope.argument_head(content.len() as u64);
        argument.extend_from_slice(content);
        let operation = p1::p3::operation::MESSAGE_SUBMISSION;
        self.invoke(id, (abstract_syntax::msse(), operation), argument)
    }

    /// A result, or the parameter of an error, once it has come whole.
    pub fn result_of(&self, id: AssociationId, invoke: i64) -> Option<&[u8]> {
        self.client(id).returned.get(&invoke).map(Vec::as_slice)
    }

    /// Invokes list of all items with their status and this besides.
    pub fn list(&mut self, id: AssociationId) -> i64 {
        let status = AttributeSelection::new(attributes::RETRIEVAL_STATUS.oid());
        let argument = ListArgument { requested_attributes: Some(vec![status]), ..<_>::default() };
        self.retrieve(id, LIST, |w| argument.write(w))
    }

    /// The numbers and states of a list that has come.
    pub fn listed(&self, id: AssociationId, invoke: i64) -> Vec<(u32, i64)> {
        let octets = self.result_of(id, invoke).expect("a whole result");
        let result = ListResult::read(&Element::parse(octets).expect("BER")).expect("a list");
        let status = attributes::RETRIEVAL_STATUS.oid();
        let row = |entry: &p7::EntryInformation| {
            let status = entry.attribute(&status).and_then(|a| a.values.first()?.integer().ok());
            (entry.sequence_number.0, status.unwrap_or(-1))
        };
        result.requested.iter().map(row).collect()
    }

    /// Lists all items; the states before that are what is listed.
    pub fn states(&mut self, id: AssociationId) -> Vec<(u32, i64)> {
        let invoke = self.list(id);
        self.listed(id, invoke)
    }

    /// Invokes summarize. Gives the number of items.
    pub fn summarized(&mut self, id: AssociationId) -> i64 {
        let invoke = self.retrieve(id, SUMMARIZE, |w| SummarizeArgument::default().write(w));
        let octets = self.result_of(id, invoke).expect("a whole result");
        let result = SummarizeResult::read(&Element::parse(octets).expect("BER"));
        result.expect("a summary").count
    }

    /// Invokes a fetch of the content of an item.
    pub fn fetch(&mut self, id: AssociationId, number: u32) -> i64 {
        let content = AttributeSelection::new(attributes::CONTENT.oid());
        let argument = FetchArgument::precise(SequenceNumber(number), vec![content]);
        self.retrieve(id, FETCH, |w| argument.write(w))
    }

    /// The content of a fetch that has come.
    pub fn fetched(&self, id: AssociationId, invoke: i64) -> Option<Vec<u8>> {
        let octets = self.result_of(id, invoke)?;
        let result = FetchResult::read(&Element::parse(octets).expect("BER")).expect("a fetch");
        let entry = result.entry_information.expect("an entry");
        let content = entry.attribute(&attributes::CONTENT.oid())?.values.first()?.clone();
        Some(content.octet_string().expect("a content").to_vec())
    }

    /// Invokes delete.
    pub fn delete(&mut self, id: AssociationId, numbers: &[u32]) -> i64 {
        let argument = DeleteArgument::new(numbers.iter().copied().map(SequenceNumber).collect());
        self.retrieve(id, DELETE, |w| argument.write(w))
    }

    /// Invokes register-MS.
    pub fn register(&mut self, id: AssociationId, argument: &RegisterMsArgument) -> i64 {
        self.retrieve(id, REGISTER_MS, |w| argument.write(w))
    }

    /// The alerts of a user: when, of which registration, about which item.
    pub fn alerts(&self, id: AssociationId) -> Vec<(Instant, i64, Option<u32>)> {
        let read = |(at, octets): &(Instant, Vec<u8>)| {
            let alert = AlertArgument::read(&Element::parse(octets).expect("BER"));
            let alert = alert.expect("an alert");
            let entry = alert.new_entry.map(|entry| entry.sequence_number.0);
            (*at, alert.registration_identifier, entry)
        };
        self.client(id).alerts.iter().map(read).collect()
    }
}
