//! Arguments, results and errors of P7.

use super::p3::same;
use base::ber::{Element, Writer};
use p7::auto_action::AutoAlert;
use p7::matching::{Truth, evaluate};
use p7::operation::{
    AlertArgument, DeleteArgument, DeleteResult, FetchArgument, FetchEvent, FetchItem, FetchResult,
    FetchResultParser, ListArgument, ListResult, ModifyArgument, ModifyResult, RegisterMsArgument,
    RegisterMsResult, SummarizeArgument, SummarizeResult,
};
use p7::{
    EntryInformation, EntryType, Filter, MsBindArgument, MsBindError, MsBindResult, MsError,
    SequenceNumber, attributes,
};

/// An entry with one attribute of each syntax that is compared.
fn entry() -> EntryInformation {
    let priority = attributes::priority(p1::Priority::Urgent);
    let attributes = vec![
        attributes::sequence_number(SequenceNumber(5)),
        attributes::entry_type(EntryType::DELIVERED_MESSAGE),
        attributes::creation_time(base::Utc(1_000_000_000_000_000)),
        attributes::subject("MOVEMENT ORDER"),
        attributes::content(b"content"),
        priority,
    ];
    EntryInformation { sequence_number: SequenceNumber(5), attributes, ..Default::default() }
}

/// A filter and its negation: both fit the attribute types, or neither; and not both match.
fn filtered(filter: &Filter) {
    let entry = entry();
    let truth = evaluate(filter, &entry);
    let negated = evaluate(&Filter::Not(Box::new(filter.clone())), &entry);
    match (truth, negated) {
        (Ok(Truth::Undefined), Ok(negated)) => assert_eq!(negated, Truth::Undefined),
        (Ok(truth), Ok(negated)) => assert_ne!(truth, negated),
        (truth, negated) => assert_eq!(truth, negated),
    }
}

pub(crate) fn arguments(octets: &[u8]) {
    let Ok(e) = Element::parse(octets) else { return };
    same(&e, MsBindArgument::read, MsBindArgument::write);
    same(&e, SummarizeArgument::read, SummarizeArgument::write);
    same(&e, ListArgument::read, ListArgument::write);
    same(&e, FetchArgument::read, FetchArgument::write);
    same(&e, DeleteArgument::read, DeleteArgument::write);
    same(&e, RegisterMsArgument::read, RegisterMsArgument::write);
    same(&e, AlertArgument::read, AlertArgument::write);
    same(&e, ModifyArgument::read, ModifyArgument::write);
    same(&e, AutoAlert::read, AutoAlert::write);
    same(&e, Filter::read, Filter::write);
    let filters = [
        Filter::read(&e).ok(),
        ListArgument::read(&e).ok().and_then(|list| list.selector.filter),
        FetchArgument::read(&e).ok().and_then(|fetch| match fetch.item {
            FetchItem::Search(selector) => selector.filter,
            FetchItem::Precise(_) => None,
        }),
    ];
    filters.iter().flatten().for_each(filtered);
    let Ok(register) = RegisterMsArgument::read(&e) else { return };
    for registration in &register.auto_action_registrations {
        if let Ok(alert) = AutoAlert::from_registration(registration) {
            let again = alert.registration(registration.identifier);
            assert_eq!(AutoAlert::from_registration(&again), Ok(alert));
        }
    }
}

/// The content and the rest of a fetch result, taken in slices of so many octets.
fn taken(octets: &[u8], slice: usize) -> Result<(Vec<u8>, Option<FetchResult>), ()> {
    let mut parser = FetchResultParser::default();
    let (mut content, mut result) = (Vec::new(), None);
    for mut part in octets.chunks(slice.max(1)) {
        while let Some(event) = parser.next(&mut part).map_err(drop)? {
            match event {
                FetchEvent::Content(octets) => content.extend_from_slice(octets),
                FetchEvent::End(end) => result = Some(*end),
            }
        }
    }
    Ok((content, result))
}

/// A result in slices is what it is as a whole, but for its content.
fn fetched(octets: &[u8]) {
    let whole = taken(octets, octets.len());
    assert_eq!(taken(octets, 3), whole);
    let Ok((_, Some(streamed))) = whole else { return };
    let read = Element::parse(octets).and_then(|e| FetchResult::read(&e));
    let Ok(mut read) = read else { return };
    if let Some(entry) = &mut read.entry_information {
        entry.attributes.retain(|of| !attributes::CONTENT.is(&of.attribute_type));
    }
    assert_eq!(streamed, read);
}

pub(crate) fn results(octets: &[u8]) {
    fetched(octets);
    let Ok(e) = Element::parse(octets) else { return };
    same(&e, MsBindResult::read, MsBindResult::write);
    same(&e, MsBindError::read, MsBindError::write);
    same(&e, SummarizeResult::read, SummarizeResult::write);
    same(&e, ListResult::read, ListResult::write);
    same(&e, FetchResult::read, FetchResult::write);
    same(&e, DeleteResult::read, DeleteResult::write);
    same(&e, RegisterMsResult::read, RegisterMsResult::write);
    same(&e, ModifyResult::read, ModifyResult::write);
    for code in 0..36 {
        let Ok(error) = MsError::read(code, Some(&e)) else { continue };
        assert!(!error.name().is_empty() && !error.to_string().is_empty());
        let mut w = Writer::new();
        error.write_parameter(&mut w);
        let parameter = w.into_vec();
        let element = (!parameter.is_empty()).then(|| Element::parse(&parameter));
        let element = element.transpose().expect("what we write");
        assert_eq!(MsError::read(error.code(), element.as_ref()), Ok(error));
    }
}
