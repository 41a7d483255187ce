//! MTS-APDUs and the MTA bind.

use crate::targets::cut;
use base::ber::{Element, Error, Writer};
use p1::apdu::{
    decode_envelope, encode_envelope, encode_message_head, encode_probe, encode_report,
};
use p1::bind::{MtaBindArgument, MtaBindError, MtaBindResult};
use p1::{
    ApduParser, Clearance, CommonName, ContentLabels, Dialect, Event, Extensions, MtsApduHead,
    SecurityContext,
};

/// The head, the content and whether the end was seen.
type Found = (Option<MtsApduHead>, Vec<u8>, bool);

fn parse(pieces: &[&[u8]]) -> Result<Found, Error> {
    let mut parser = ApduParser::new(1 << 20);
    let (mut head, mut content, mut ended) = (None, Vec::new(), false);
    for piece in pieces {
        parser.push(piece, &mut |event| {
            assert!(!ended, "something after the end");
            match event {
                Event::Head(found) => assert!(head.replace(found).is_none(), "two heads"),
                Event::Content(octets) => {
                    assert!(!octets.is_empty() && head.is_some());
                    content.extend_from_slice(octets);
                }
                Event::End => ended = true,
            }
        })?;
    }
    assert_eq!(ended, parser.is_done());
    Ok((head, content, ended))
}

pub(crate) fn apdu(octets: &[u8]) {
    let whole = parse(&[octets]);
    assert_eq!(parse(&cut(octets)), whole);
    let Ok((Some(head), content, _)) = whole else { return };
    assert!(content.len() <= octets.len());
    rewritten(&head);
    downgraded(&head);
    // Names of recipients have a text form that reads as the same address, or none.
    if let MtsApduHead::Message(envelope) = &head {
        for recipient in &envelope.recipients {
            let _ = engine::canonical(&recipient.recipient.address);
        }
        assert_eq!(decode_envelope(&encode_envelope(envelope)).as_ref(), Ok(&**envelope));
    }
}

/// The form of 1984 is read too, and has the form of 1984.
fn downgraded(head: &MtsApduHead) {
    for common_name in [CommonName::NoForm, CommonName::DomainDefined] {
        let dialect = Dialect::RedBook1984(common_name);
        let mut earlier = head.clone();
        earlier.set_form(dialect.into());
        let named = match &earlier {
            MtsApduHead::Message(envelope) => !envelope.recipients.is_empty(),
            MtsApduHead::Probe(envelope) => !envelope.recipients.is_empty(),
            MtsApduHead::Report(_) => true,
        };
        if named {
            rewritten(&earlier);
        }
        let mut again = earlier.clone();
        assert_eq!((again.set_form(dialect.into()), &again), (0, &earlier));
        earlier.restore_common_names(dialect);
    }
}

/// A head that was read is written as octets that read as the same head.
pub(crate) fn rewritten(head: &MtsApduHead) {
    let mut octets = match head {
        MtsApduHead::Message(envelope) => encode_message_head(envelope, 3),
        MtsApduHead::Probe(envelope) => encode_probe(envelope),
        MtsApduHead::Report(report) => encode_report(report),
    };
    let content: &[u8] = if matches!(head, MtsApduHead::Message(_)) { b"abc" } else { b"" };
    octets.extend_from_slice(content);
    // Written, an envelope at the very limit may be a few octets longer: members that were left to
    // their defaults or lengths that were indefinite.
    let (again, found, ended) = parse(&[&octets]).expect("what we write");
    assert_eq!((again.as_ref(), found.as_slice(), ended), (Some(head), content, true));
}

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec()
}

pub(crate) fn mta_bind(octets: &[u8]) {
    let Ok(e) = Element::parse(octets) else { return };
    if let Ok(value) = MtaBindArgument::read(&e) {
        let again = written(|w| value.write(w));
        if let MtaBindArgument::Authenticated(who) = &value
            && let Some(Ok(context)) = who.security_context.as_deref().map(SecurityContext::parse)
        {
            // It has a label: nobody without a clearance has it, and it admits what is like it.
            assert!(context.is_within(&Clearance::default()).is_err());
            let _ = context.admits(&Extensions::default(), &ContentLabels::default());
        }
        assert_eq!(Element::parse(&again).and_then(|e| MtaBindArgument::read(&e)), Ok(value));
    }
    if let Ok(value) = MtaBindResult::read(&e) {
        let again = written(|w| value.write(w));
        assert_eq!(Element::parse(&again).and_then(|e| MtaBindResult::read(&e)), Ok(value));
    }
    if let Ok(value) = MtaBindError::read(&e) {
        let again = written(|w| value.write(w));
        assert_eq!(Element::parse(&again).and_then(|e| MtaBindError::read(&e)), Ok(value));
        assert!(!value.to_string().is_empty());
    }
}
