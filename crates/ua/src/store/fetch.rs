//! One entry: its attributes, and its content as it arrives.

use super::call::Call;
use super::entry::{self, Entry};
use super::{BadAnswer, Store, StoreError};
use base::ber::{Element, Error, Limits, Writer, universal as u};
use bytes::Bytes;
use p1::p3::{ArgumentEvent, DeliveryParser, MessageDeliveryEnvelope, ReportDelivery};
use p7::attributes::{self as a, AttributeType};
use p7::operation::{FETCH, FetchArgument, FetchEvent, FetchResult, FetchResultParser};
use p7::{AttributeSelection, EntryInformation, SequenceNumber, Value};
use std::io::Write;

/// Octets of a result beside its content that are taken.
const MAX_BESIDE: u64 = 2 << 20;

/// An entry that was fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Its fields.
    pub entry: Entry,
    /// The envelope of its delivery; `None` for a report, and where it cannot be read.
    pub envelope: Option<Box<MessageDeliveryEnvelope>>,
    /// The envelope as the store has it: of a message a SEQUENCE, of a report a SET.
    pub envelope_octets: Option<Bytes>,
    /// The report, if it is one and can be read.
    pub report: Option<Box<ReportDelivery>>,
    /// Octets of content that were written.
    pub octets: u64,
}

impl Store {
    /// Fetches these attributes of an entry, which becomes processed. Those that the entry does not have are not in the
    /// result. The content is not among them: it may be of any size.
    ///
    /// # Errors
    /// [`StoreError::Operation`] (there is no such entry, or no such attribute type), or what ended the association.
    pub async fn attributes(
        &mut self,
        number: u32,
        kinds: &[AttributeType],
    ) -> Result<EntryInformation, StoreError> {
        let kinds = kinds.iter().filter(|kind| **kind != a::CONTENT);
        let selection = kinds.map(|kind| AttributeSelection::new(kind.oid())).collect();
        let (information, _) = self.converse(number, selection, &mut std::io::sink(), 0).await?;
        Ok(information)
    }

    /// Fetches all of an entry but its content. It becomes processed.
    ///
    /// # Errors
    /// [`StoreError::Operation`], or what ended the association.
    pub async fn open(&mut self, number: u32) -> Result<Fetched, StoreError> {
        let selection = self.whole(false);
        let answer = self.converse(number, selection, &mut std::io::sink(), 0).await?;
        Ok(fetched(&answer.0, answer.1))
    }

    /// Fetches an entry, and writes its content to `to` as it arrives; a report has none. It becomes processed. Of a
    /// content with more than `most` octets the fetch fails once they have arrived.
    ///
    /// # Errors
    /// [`StoreError::Operation`], [`StoreError::Write`], or what ended the association. What was written before is then
    /// a part of the content.
    pub async fn fetch(
        &mut self,
        number: u32,
        to: &mut (dyn Write + Send),
        most: u64,
    ) -> Result<Fetched, StoreError> {
        let selection = self.whole(true);
        let (information, octets) = self.converse(number, selection, to, most).await?;
        Ok(fetched(&information, octets))
    }

    /// Everything that [`Fetched`] has.
    fn whole(&self, content: bool) -> Vec<AttributeSelection> {
        let mut selection = entry::selection(|oid| self.has(oid));
        let more = [
            a::MESSAGE_DELIVERY_ENVELOPE,
            a::REPORT_DELIVERY_ENVELOPE,
            a::PER_RECIPIENT_REPORT_DELIVERY_FIELDS,
        ];
        let more = more.iter().chain(content.then_some(&a::CONTENT)).map(AttributeType::oid);
        selection.extend(more.filter(|oid| self.has(oid)).map(AttributeSelection::new));
        selection
    }

    async fn converse(
        &mut self,
        number: u32,
        selection: Vec<AttributeSelection>,
        to: &mut (dyn Write + Send),
        most: u64,
    ) -> Result<(EntryInformation, u64), StoreError> {
        let argument = FetchArgument::precise(SequenceNumber(number), selection);
        let call = Call::retrieval("fetch", FETCH, |w| argument.write(w));
        let mut taking = Taking::new(to, most);
        self.call_with(call, &mut |piece| taking.take(piece)).await?;
        let octets = taking.octets;
        let information = taking.result.and_then(|result| result.entry_information);
        match information {
            Some(information) if information.sequence_number.0 == number => {
                Ok((information, octets))
            }
            other => {
                let got = other.map(|information| information.sequence_number.0);
                Err(BadAnswer::OtherEntry { asked: number, got }.into())
            }
        }
    }
}

/// A result of fetch as it arrives.
struct Taking<'a> {
    parser: FetchResultParser,
    to: &'a mut (dyn Write + Send),
    most: u64,
    octets: u64,
    result: Option<Box<FetchResult>>,
}

impl Taking<'_> {
    fn new(to: &mut (dyn Write + Send), most: u64) -> Taking<'_> {
        let limits = Limits { octets: most.saturating_add(MAX_BESIDE), ..Limits::default() };
        Taking { parser: FetchResultParser::new(limits), to, most, octets: 0, result: None }
    }

    fn take(&mut self, mut piece: &[u8]) -> Result<(), StoreError> {
        while let Some(event) =
            self.parser.next(&mut piece).map_err(StoreError::malformed("fetch"))?
        {
            match event {
                FetchEvent::Content(octets) => {
                    self.octets += octets.len() as u64;
                    if self.octets > self.most {
                        let limit = self.most;
                        return Err(BadAnswer::TooLong { operation: "content", limit }.into());
                    }
                    self.to.write_all(octets).map_err(StoreError::Write)?;
                }
                FetchEvent::End(result) => self.result = Some(result),
            }
        }
        Ok(())
    }
}

fn fetched(information: &EntryInformation, octets: u64) -> Fetched {
    let mut entry = Entry::read(information);
    let mut unreadable = |kind: &AttributeType| entry.unreadable.push(kind.name);
    let first = |kind: &AttributeType| information.attribute(&kind.oid())?.values.first();
    let envelope =
        first(&a::MESSAGE_DELIVERY_ENVELOPE).map(|value| delivery_envelope(value.octets()));
    if matches!(envelope, Some(None)) {
        unreadable(&a::MESSAGE_DELIVERY_ENVELOPE);
    }
    let recipients = information.attribute(&a::PER_RECIPIENT_REPORT_DELIVERY_FIELDS.oid());
    let recipients = recipients.map(|fields| &fields.values[..]).unwrap_or_default();
    let report = first(&a::REPORT_DELIVERY_ENVELOPE);
    let report = report.map(|envelope| report_delivery(envelope, recipients).ok());
    if matches!(report, Some(None)) {
        unreadable(&a::REPORT_DELIVERY_ENVELOPE);
    }
    let kept = first(&a::MESSAGE_DELIVERY_ENVELOPE).or(first(&a::REPORT_DELIVERY_ENVELOPE));
    Fetched {
        envelope_octets: kept.map(|value| value.octets().clone()),
        envelope: envelope.flatten(),
        report: report.flatten().map(Box::new),
        entry,
        octets,
    }
}

/// Reads the value of the attribute message-delivery-envelope (X.413 6.2.3.1). P3 has it before the content in one
/// SEQUENCE.
pub fn delivery_envelope(value: &[u8]) -> Option<Box<MessageDeliveryEnvelope>> {
    let envelope = Element::parse(value).ok().filter(|element| element.tag == u::SEQUENCE)?;
    let mut members = envelope.children().ok()?;
    let mut w = Writer::new();
    w.constructed(u::SEQUENCE, |w| {
        while let Ok(Some(member)) = members.next() {
            w.raw(member.raw);
        }
        w.string(u::OCTET_STRING, []);
    });
    let argument = w.into_vec();
    match DeliveryParser::default().next(&mut argument.as_slice()) {
        Ok(Some(ArgumentEvent::Envelope(envelope))) => Some(envelope),
        _ => None,
    }
}

/// A report of its envelope. A store may keep the fields of its recipients in an attribute of their own only.
fn report_delivery(envelope: &Value, recipients: &[Value]) -> Result<ReportDelivery, Error> {
    let element = envelope.element()?;
    if let Ok(report) = ReportDelivery::read(&element) {
        return Ok(report);
    }
    let mut members = element.children()?;
    let mut w = Writer::new();
    w.constructed(u::SET, |w| {
        while let Ok(Some(member)) = members.next() {
            w.raw(member.raw);
        }
        w.constructed(u::SEQUENCE, |w| recipients.iter().for_each(|fields| fields.write(w)));
    });
    ReportDelivery::read(&Element::parse(w.as_slice())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p7::operation::FetchResult;

    fn result(content: usize) -> Vec<u8> {
        let entry_information =
            Some(EntryInformation { sequence_number: SequenceNumber(4), ..Default::default() });
        let result = FetchResult { entry_information, ..FetchResult::default() };
        [result.head(content as u64), vec![7; content]].concat()
    }

    #[test]
    fn a_content_goes_to_the_writer_and_more_than_allowed_does_not() {
        for (most, fits) in [(1_000, true), (999, false)] {
            let mut content = Vec::new();
            let mut taking = Taking::new(&mut content, most);
            let octets = result(1_000);
            let taken = octets.chunks(300).try_for_each(|piece| taking.take(piece));
            match taken {
                Ok(()) => assert!(fits && taking.octets == 1_000 && taking.result.is_some()),
                Err(error) => {
                    let expected = BadAnswer::TooLong { operation: "content", limit: 999 };
                    assert!(!fits && matches!(error, StoreError::Answer(e) if e == expected));
                }
            }
        }
    }

    #[test]
    fn a_disk_that_is_full_is_an_error_of_ours() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let error = Taking::new(&mut Full, 9).take(&result(5)).unwrap_err();
        assert!(matches!(&error, StoreError::Write(_)) && !error.is_final(), "{error}");
    }

    #[test]
    fn malformed_attributes_are_named() {
        let attributes = vec![
            a::MESSAGE_DELIVERY_ENVELOPE.single(Value::from_boolean(true)),
            a::REPORT_DELIVERY_ENVELOPE.single(Value::from_octets(&[0x31, 0][..]).unwrap()),
        ];
        let fetched = fetched(&EntryInformation { attributes, ..Default::default() }, 0);
        let names = ["message-delivery-envelope", "report-delivery-envelope"];
        assert_eq!(fetched.entry.unreadable, names);
        assert_eq!((fetched.envelope, fetched.report), (None, None));
    }
}
