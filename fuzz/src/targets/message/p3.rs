//! Arguments, results and errors of P3.

use crate::targets::cut;
use base::ber::{Element, Error, Limits, Writer};
use p1::MtsIdentifier;
use p1::p3::{
    AccessError, ArgumentEvent, ArgumentHead, ArgumentParser, ChangeCredentials, Controls,
    DeliveryResult, MessageDeliveryEnvelope, MessageSubmissionEnvelope, MtsBind, MtsBindError,
    ProbeSubmissionEnvelope, RegisterArgument, ReportDelivery, SubmissionResult, Waiting,
};
use std::fmt::Debug;

type Found<T> = (Option<T>, Vec<u8>, bool);

fn parse<T: ArgumentHead + PartialEq + Debug>(pieces: &[&[u8]]) -> Result<Found<T>, Error> {
    let mut parser = ArgumentParser::<T>::new(Limits::default());
    let (mut head, mut content, mut ended) = (None, Vec::new(), false);
    for piece in pieces {
        let mut rest = *piece;
        while let Some(event) = parser.next(&mut rest)? {
            assert!(!ended, "{event:?} after the end");
            match event {
                ArgumentEvent::Envelope(found) => assert!(head.replace(*found).is_none()),
                ArgumentEvent::Content(octets) => {
                    assert!(!octets.is_empty() && head.is_some());
                    content.extend_from_slice(octets);
                }
                ArgumentEvent::End => ended = true,
            }
        }
        assert!(rest.is_empty() || parser.is_done());
    }
    assert_eq!(ended, parser.is_done());
    Ok((head, content, ended))
}

fn argument<T: ArgumentHead + PartialEq + Debug>(octets: &[u8], head: fn(&T, u64) -> Vec<u8>) {
    let whole = parse::<T>(&[octets]);
    assert_eq!(parse(&cut(octets)), whole);
    let Ok((Some(envelope), content, _)) = whole else { return };
    assert!(content.len() <= octets.len());
    let mut again = head(&envelope, 3);
    again.extend_from_slice(b"abc");
    assert_eq!(parse(&[&again]), Ok((Some(envelope), b"abc".to_vec(), true)));
}

pub(crate) fn submission(octets: &[u8]) {
    argument::<MessageSubmissionEnvelope>(octets, MessageSubmissionEnvelope::argument_head);
}

pub(crate) fn delivery(octets: &[u8]) {
    argument::<MessageDeliveryEnvelope>(octets, MessageDeliveryEnvelope::argument_head);
}

/// What is read is written as octets that are read as the same.
pub(super) fn same<T: PartialEq + Debug>(
    e: &Element<'_>,
    read: impl Fn(&Element<'_>) -> Result<T, Error>,
    write: impl Fn(&T, &mut Writer),
) {
    let Ok(value) = read(e) else { return };
    let mut w = Writer::new();
    write(&value, &mut w);
    let octets = w.into_vec();
    assert_eq!(Element::parse(&octets).and_then(|e| read(&e)), Ok(value));
}

pub(crate) fn operations(octets: &[u8]) {
    let Ok(e) = Element::parse(octets) else { return };
    same(&e, MtsBind::read, MtsBind::write);
    same(&e, MtsBindError::read, |error, w| error.write(w));
    same(&e, ProbeSubmissionEnvelope::read, ProbeSubmissionEnvelope::write);
    same(&e, SubmissionResult::read, SubmissionResult::write);
    same(&e, DeliveryResult::read, DeliveryResult::write);
    same(&e, ReportDelivery::read, ReportDelivery::write);
    same(&e, Controls::read, Controls::write);
    same(&e, ChangeCredentials::read, ChangeCredentials::write);
    same(&e, MtsIdentifier::read, MtsIdentifier::write);
    same(&e, Waiting::read, Waiting::write);
    let _ = RegisterArgument::read(&e);
    for code in 0..18 {
        let Ok(error) = AccessError::read(code, Some(&e)) else { continue };
        assert!(!error.name().is_empty());
        let mut w = Writer::new();
        error.write_parameter(&mut w);
        let parameter = w.into_vec();
        let element = (!parameter.is_empty()).then(|| Element::parse(&parameter));
        let element = element.transpose().expect("what we write");
        assert_eq!(AccessError::read(error.code(), element.as_ref()), Ok(error));
    }
}
