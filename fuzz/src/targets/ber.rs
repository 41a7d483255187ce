//! Reader and tokenizer on the same octets.

use super::cut;
use base::ber::{
    Class, Element, Error, Header, Length, Limits, Oid, Reader, Token, Tokenizer, Writer, universal,
};

/// One step of an encoding, as either of the two finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Begin(Class, u32, bool, usize),
    Data(Vec<u8>),
    End(usize),
}

pub(super) fn run(octets: &[u8]) {
    let whole = tokens(&[octets]);
    assert_eq!(tokens(&cut(octets)), whole, "the cuts change the tokens");
    let mut reader = Reader::new(octets);
    let read = reader.next().and_then(|element| {
        let mut steps = Vec::new();
        if let Some(element) = &element {
            walk(element, 0, &mut steps)?;
        }
        Ok(steps)
    });
    match (whole, read) {
        (Ok((tokens, true, taken)), Ok(steps)) => {
            assert_eq!(tokens, steps);
            assert_eq!(taken as usize, octets.len() - reader.rest().len(), "octets taken");
        }
        (Ok((_, false, _)), Ok(steps)) => {
            assert!(octets.is_empty() && steps.is_empty(), "unfinished, {steps:?}");
        }
        (Ok((_, true, _)), Err(e)) => panic!("the reader refuses what the tokenizer takes: {e}"),
        (Err(e), Ok(_)) => panic!("the tokenizer refuses what the reader takes: {e}"),
        (Ok((_, false, _)) | Err(_), Err(_)) => {}
    }
    header(octets);
}

type Tokens = (Vec<Step>, bool, u64);

fn tokens(pieces: &[&[u8]]) -> Result<Tokens, Error> {
    let mut tokenizer = Tokenizer::new(Limits::default());
    let mut steps: Vec<Step> = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while let Some(token) = tokenizer.next(&mut rest)? {
            match (token, steps.last_mut()) {
                (Token::Data(data), Some(Step::Data(held))) => held.extend_from_slice(data),
                (Token::Data(data), _) => steps.push(Step::Data(data.to_vec())),
                (Token::Begin { header: h, depth }, _) => {
                    steps.push(Step::Begin(h.tag.class, h.tag.number, h.constructed, depth));
                }
                (Token::End { depth }, _) => steps.push(Step::End(depth)),
            }
        }
        assert!(rest.is_empty() || tokenizer.is_done());
    }
    Ok((steps, tokenizer.is_done(), tokenizer.offset()))
}

fn walk(e: &Element<'_>, depth: usize, steps: &mut Vec<Step>) -> Result<(), Error> {
    assert!(depth < base::ber::MAX_DEPTH);
    steps.push(Step::Begin(e.tag.class, e.tag.number, e.constructed, depth));
    values(e);
    if e.constructed {
        let mut children = e.children()?;
        while let Some(child) = children.next()? {
            walk(&child, depth + 1, steps)?;
        }
    } else if !e.content.is_empty() {
        steps.push(Step::Data(e.content.to_vec()));
    }
    steps.push(Step::End(depth));
    Ok(())
}

/// What every typed reading of an element must satisfy: the value, written, is read as itself.
fn values(e: &Element<'_>) {
    if let Ok(value) = e.integer() {
        let written = write(|w| w.integer(universal::INTEGER, value));
        assert_eq!(Element::parse(&written).and_then(|e| e.integer()), Ok(value));
        assert!(written.len() <= 10);
    }
    if let Ok(bits) = e.bits() {
        let written = write(|w| w.bits(universal::BIT_STRING, &bits.octets, bits.unused));
        assert_eq!(
            Element::parse(&written).and_then(|e| e.bits().map(|b| b.len())),
            Ok(bits.len())
        );
        assert!(!bits.get(bits.len()));
    }
    if let Ok(oid) = e.oid() {
        let text = oid.to_string();
        let arcs: Option<Vec<u64>> = text.split('.').map(|arc| arc.parse().ok()).collect();
        if let Some(again) = arcs.and_then(|arcs| Oid::from_arcs(&arcs)) {
            assert_eq!(again.to_string(), text);
        }
    }
    if let Ok(octets) = e.octets() {
        assert!(octets.len() <= e.content.len());
        assert_eq!(e.constructed, matches!(octets, std::borrow::Cow::Owned(_)));
    }
    let _ = (e.text(), e.boolean(), e.utc_time(), e.only_child());
}

fn write(body: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    body(&mut w);
    w.into_vec()
}

/// A header, written, is read as itself and is no longer than it was.
fn header(octets: &[u8]) {
    let Ok(Some(h)) = Header::parse(octets) else { return };
    let mut out = Vec::new();
    let size = Header::write(h.tag, h.constructed, h.length, &mut out);
    assert_eq!((size, Header::encoded_size(h.tag, h.length)), (out.len(), out.len()));
    assert!(size <= h.size, "{h:?} grew to {size}");
    let again = Header::parse(&out);
    assert_eq!(again, Ok(Some(Header { size, ..h })));
    assert!(h.constructed || h.length != Length::Indefinite);
}
