//! Whatever is written is read again; wherever the octets are cut; and no octets make it panic.

use p1::apdu::{encode_message_head, encode_probe, encode_report, encode_report_head};
use p1::names::ORAddress;
use p1::{ApduParser, Event, MtsApduHead, StringType, testing};
use proptest::prelude::*;

type Found = (Vec<MtsApduHead>, Vec<u8>, bool);

fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Found, base::ber::Error> {
    parse_with(ApduParser::default(), pieces)
}

fn parse_with<'a>(
    mut parser: ApduParser,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Found, base::ber::Error> {
    let (mut heads, mut content) = (Vec::new(), Vec::new());
    for piece in pieces {
        parser.push(piece, &mut |event| match event {
            Event::Head(head) => heads.push(head),
            Event::Content(octets) => content.extend_from_slice(octets),
            Event::End => {}
        })?;
    }
    Ok((heads, content, parser.is_done()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_round_trip(
        envelope in testing::message(),
        content in proptest::collection::vec(any::<u8>(), 0..300),
        size in 1usize..200,
    ) {
        let mut octets = encode_message_head(&envelope, content.len() as u64);
        octets.extend_from_slice(&content);
        let (heads, found, done) = parse(octets.chunks(size)).unwrap();
        prop_assert!(done);
        prop_assert_eq!(found, content);
        prop_assert_eq!(heads, vec![MtsApduHead::Message(Box::new(envelope.clone()))]);
        for extension in &envelope.extensions.0 {
            let raw = extension.raw.as_ref().unwrap();
            prop_assert!(octets.windows(raw.len()).any(|w| w == raw));
        }
    }

    #[test]
    fn probes_round_trip(envelope in testing::probe(), size in 1usize..200) {
        let (heads, _, done) = parse(encode_probe(&envelope).chunks(size)).unwrap();
        prop_assert!(done);
        prop_assert_eq!(heads, vec![MtsApduHead::Probe(Box::new(envelope))]);
    }

    #[test]
    fn reports_round_trip(report in testing::report(), size in 1usize..200) {
        let (heads, _, done) = parse(encode_report(&report).chunks(size)).unwrap();
        prop_assert!(done);
        prop_assert_eq!(heads, vec![MtsApduHead::Report(Box::new(report))]);
    }

    /// A returned content that is handed on is the same, and so is the rest of the report.
    #[test]
    fn returned_contents_are_split_off(
        mut report in testing::report(),
        content in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300)),
        size in 1usize..200,
    ) {
        report.content.returned_content = content.clone().map(Into::into);
        let whole = encode_report(&report);
        let parser = || ApduParser::default().split_reports();
        let (heads, found, done) = parse_with(parser(), whole.chunks(size)).unwrap();
        prop_assert!(done);
        prop_assert_eq!(&found, &content.clone().unwrap_or_default());
        let mut rest = report;
        rest.content.returned_content = content.as_ref().map(|_| bytes::Bytes::new());
        prop_assert_eq!(heads, vec![MtsApduHead::Report(Box::new(rest.clone()))]);
        if let Some(content) = content {
            // Written before the content that is pulled from elsewhere, it is the whole again.
            let mut octets = encode_report_head(&rest, content.len() as u64);
            octets.extend_from_slice(&content);
            prop_assert_eq!(octets, whole);
        }
    }

    #[test]
    fn internal_traces_round_trip(
        elements in proptest::collection::vec(testing::internal_trace_element(), 1..4)
    ) {
        let mut extensions = p1::Extensions::default();
        for element in &elements {
            p1::trace::add_internal_trace(&mut extensions, element.clone()).unwrap();
        }
        prop_assert_eq!(p1::trace::internal_trace(&extensions).unwrap(), elements);
    }

    #[test]
    fn addresses_read_as_they_are_shown(address in testing::address()) {
        let again: ORAddress = match address.to_string().parse() {
            Ok(again) => again,
            // Teletex domain names have no text form.
            Err(e) => {
                let teletex = |t: &Option<p1::Text>| {
                    t.as_ref().is_some_and(|t| t.kind == StringType::Teletex)
                };
                prop_assert!(
                    [&address.country, &address.admd, &address.prmd].into_iter().any(teletex),
                    "{e}: {address}"
                );
                return Ok(());
            }
        };
        prop_assert!(again.same_as(&address), "{again} {address}");
        // But for the country, which is written in capitals.
        let mut capitals = address.clone();
        if let Some(country) = &mut capitals.country {
            country.value.make_ascii_uppercase();
        }
        prop_assert_eq!(again.to_string(), capitals.to_string());
        prop_assert_eq!(again.matches(&address), Some(address.attributes().len()));
    }

    #[test]
    fn any_octets_are_answered(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse([&octets[..]]);
    }

    #[test]
    fn damaged_messages_are_answered_alike_at_any_cut(
        envelope in testing::message(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        size in 1usize..200,
    ) {
        let mut octets = encode_message_head(&envelope, 10);
        octets.extend_from_slice(b"0123456789");
        for (at, octet) in damage {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        prop_assert_eq!(parse([&octets[..]]), parse(octets.chunks(size)));
    }
}

/// Every single place to cut, in every form of BER the tokenizer has to carry across the cut.
#[test]
fn every_cut_of_one_message_is_the_same() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let envelope = testing::message().new_tree(&mut runner).unwrap().current();
    let envelope = p1::apdu::encode_envelope(&envelope);
    let mut octets = vec![0xa0, 0x80];
    octets.extend_from_slice(&envelope);
    octets.extend_from_slice(b"\x24\x80\x04\x03abc\x24\x80\x04\x81\x02de\0\0\x04\0\0\0\0\0");
    let whole = parse([&octets[..]]).unwrap();
    assert!(whole.2);
    assert_eq!(whole.1, b"abcde");
    for cut in 0..=octets.len() {
        let (a, b) = octets.split_at(cut);
        assert_eq!(parse([a, b]).unwrap(), whole, "cut at {cut}");
    }
}
