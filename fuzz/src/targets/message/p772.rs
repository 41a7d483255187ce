//! Contents, and the precedence in them.

use crate::targets::cut;
use base::ber::{Element, Error, Writer};
use p772::{
    Acp127Response, ContentBuilder, ContentEvent, ContentParser, Heading, Notification,
    NotificationOutcome, PEEK_OCTETS, PartKind, peek_precedence,
};

#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Heading(Box<Heading>),
    Notification(Vec<u8>),
    /// A body part, its data, and whether it ended.
    Part(PartKind, Vec<u8>, bool),
    End,
}

fn read(pieces: &[&[u8]]) -> (Vec<Seen>, Option<Error>) {
    let mut parser = ContentParser::new();
    let mut seen = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        loop {
            let event = match parser.next(&mut rest) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(e) => return (seen, Some(e)),
            };
            assert!(!matches!(seen.last(), Some(Seen::End | Seen::Notification(_))));
            match (event, seen.last_mut()) {
                (ContentEvent::Heading(heading), None) => seen.push(Seen::Heading(heading)),
                (ContentEvent::Notification(octets), None) => seen.push(Seen::Notification(octets)),
                (ContentEvent::Data(data), Some(Seen::Part(_, held, false))) => {
                    assert!(!data.is_empty());
                    held.extend_from_slice(&data);
                }
                (ContentEvent::PartEnd, Some(Seen::Part(_, _, ended))) if !*ended => *ended = true,
                (
                    ContentEvent::PartBegin(kind),
                    Some(Seen::Heading(_) | Seen::Part(_, _, true)),
                ) => {
                    seen.push(Seen::Part(kind, Vec::new(), false));
                }
                (ContentEvent::End, Some(Seen::Heading(_) | Seen::Part(_, _, true))) => {
                    seen.push(Seen::End);
                }
                (event, last) => panic!("{event:?} after {last:?}"),
            }
        }
        assert!(rest.is_empty() || parser.is_done());
    }
    let ended = matches!(seen.last(), Some(Seen::End | Seen::Notification(_)));
    assert_eq!(parser.is_done(), ended);
    (seen, None)
}

pub(crate) fn content(octets: &[u8]) {
    let whole = read(&[octets]);
    assert_eq!(read(&cut(octets)), whole);
    for part in &whole.0 {
        match part {
            Seen::Heading(heading) => rewritten(heading),
            Seen::Part(PartKind::Text(charset), data, _) => {
                let text = charset.decode(data);
                assert!(text.chars().count() <= data.len());
            }
            Seen::Notification(octets) => {
                assert!(Element::parse(octets).is_ok());
                notification(octets);
            }
            _ => {}
        }
    }
}

/// A notification that was read is written as octets that read as the same.
fn notification(octets: &[u8]) {
    if let Ok(read) = Notification::parse(octets) {
        assert_eq!(Notification::parse(&read.encode()).as_ref(), Ok(&read));
        let _ = read.validate();
        if let NotificationOutcome::Other(fields) = &read.outcome {
            let _ = fields.iter().filter_map(Acp127Response::from_extension).count();
        }
    }
}

/// A heading that was read is written as octets that read as the same, and can be sent where it
/// keeps to the bounds.
fn rewritten(heading: &Heading) {
    let mut w = Writer::new();
    heading.encode(&mut w);
    let octets = w.into_vec();
    let again = Element::parse(&octets).and_then(|e| Heading::decode(&e));
    assert_eq!(again.as_ref(), Ok(heading));
    if let Ok(builder) = ContentBuilder::new(heading) {
        let content = builder.text("text").finish();
        let (seen, error) = read(&[&content]);
        assert_eq!((seen.len(), error), (3, None));
    }
}

pub(crate) fn peek(octets: &[u8]) {
    let found = peek_precedence(octets);
    // More octets never take away what was found.
    for size in [octets.len() / 2, octets.len() * 3 / 4] {
        let part = peek_precedence(octets.get(..size).unwrap_or_default());
        if let Some(part) = part {
            let whole = found.unwrap_or_default();
            assert!(part.primary.is_none() || part.primary == whole.primary);
            assert!(part.copy.is_none() || part.copy == whole.copy);
        }
    }
    if octets.len() < PEEK_OCTETS
        && let (seen, None) = read(&[octets])
        && let Some(Seen::Heading(heading)) = seen.first()
    {
        let found = found.unwrap_or_default();
        let military = &heading.military;
        if let Some(precedence) = military.primary_precedence {
            assert_eq!(found.primary, Some(precedence), "peeked otherwise than read");
        }
    }
}
