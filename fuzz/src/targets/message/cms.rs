//! The security labels inside a signed content.

use crate::targets::cut;
use p1::ContentLabels;
use p1::cms::{MAX_LABEL, MAX_LABELS, SignedReader};
use p1::content_type::ContentType;

fn read(pieces: &[&[u8]], content_type: &ContentType) -> ContentLabels {
    let mut reader = SignedReader::default();
    for piece in pieces {
        reader.take(piece);
        assert!(reader.held() <= MAX_LABEL * (MAX_LABELS + 1), "it holds what it passes over");
    }
    reader.labels(content_type)
}

pub(crate) fn run(octets: &[u8]) {
    let signed = "1.2.840.113549.1.9.16.1.6".parse().map(ContentType::Extended);
    for content_type in [Ok(ContentType::P22), signed].into_iter().flatten() {
        let whole = read(&[octets], &content_type);
        assert_eq!(read(&cut(octets), &content_type), whole);
        assert!(whole.labels.len() <= MAX_LABELS);
        for label in &whole.labels {
            let _ = p1::SecurityLabel::parse_ess(label);
            let _ = p1::Clearance::default().admits(&p1::Extensions::default(), &whole);
        }
    }
}
