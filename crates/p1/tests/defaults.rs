//! Members of the value of their DEFAULT: octets written by hand, with and without them, and what is read of both.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends where it fails, in helpers too"
)]

use p1::extension::{CommonName, Defaults, Dialect, Form, Qualifier};
use p1::{ApduParser, Event, Extensions, MtsApduHead, testing};
use proptest::prelude::*;

/// An element with a definite length.
fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match content.len() {
        n @ 0..0x80 => out.push(n as u8),
        n @ 0x80..0x100 => out.extend([0x81, n as u8]),
        n => out.extend([0x82, (n >> 8) as u8, n as u8]),
    }
    out.extend(content);
    out
}

fn domain() -> Vec<u8> {
    tlv(0x63, &[b"\x61\x04\x13\x02IT\x62\x05\x13\x03NET", b"\x13\x03ACT"])
}

fn identifier(local: &[u8]) -> Vec<u8> {
    tlv(0x64, &[&domain(), &tlv(0x16, &[local])])
}

fn name(tag: u8) -> Vec<u8> {
    let attributes: &[u8] = b"\x61\x04\x13\x02IT\x62\x05\x13\x03NET\xa5\x03\x80\x01S";
    tlv(tag, &[&tlv(0x30, &[attributes])])
}

/// What is there only in the explicit form, of an edition that has it.
struct Only {
    since_1984: bool,
    since_1988: bool,
}

const LEFT_OUT: Only = Only { since_1984: false, since_1988: false };
const OF_1984: Only = Only { since_1984: true, since_1988: false };
const EXPLICIT: Only = Only { since_1984: true, since_1988: true };

impl Only {
    fn early<'a>(&self, octets: &'a [u8]) -> &'a [u8] {
        if self.since_1984 { octets } else { &[] }
    }

    fn late<'a>(&self, octets: &'a [u8]) -> &'a [u8] {
        if self.since_1988 { octets } else { &[] }
    }

    /// One element, with other-actions.
    fn trace(&self) -> Vec<u8> {
        tlv(0x69, &[&self.trace_element(&[])])
    }

    fn trace_element(&self, mta: &[u8]) -> Vec<u8> {
        let supplied: [&[u8]; 3] =
            [b"\x80\x0d860814093000Z", &[0x82, 1, 0], self.late(&[0x83, 2, 6, 0])];
        tlv(0x30, &[&domain(), mta, &tlv(0x31, &supplied)])
    }

    /// Extensions of a recipient.
    fn no_extensions(&self, tag: u8) -> Vec<u8> {
        self.late(&[tag, 0]).to_vec()
    }

    fn recipients(&self) -> Vec<u8> {
        let indicators = [0x80, 1, 1, 0x81, 2, 0, 0x90];
        let fields = tlv(0x31, &[&name(0x60), &indicators, &self.no_extensions(0xa3)]);
        tlv(0xa2, &[&fields])
    }

    /// proof-of-delivery-request (22) with all members, recipient-reassignment-prohibited (1) without a value, and
    /// the priority-level-qualifier with criticality alone.
    fn extensions(&self) -> Vec<u8> {
        let null: &[u8] = &[0xa2, 2, 5, 0];
        let all = tlv(0x30, &[&[0x80, 1, 22], &[0x81, 1, 0], &[0xa2, 3, 2, 1, 1]]);
        let none = tlv(0x30, &[&[0x80, 1, 1], self.late(&[0x81, 2, 5, 0]), self.late(null)]);
        let qualifier = b"\x83\x08\x2b\x1a\x00\xa2\x36\x00\x08\x00";
        let private = tlv(0x30, &[qualifier, &[0x81, 2, 5, 0x20], self.late(null)]);
        tlv(0xa3, &[&all, &none, &private])
    }

    fn message(&self, extensions: &[u8]) -> Vec<u8> {
        let flags = [self.early(&[0x47, 1, 0]), self.early(&[0x48, 2, 0, 0])].concat();
        let members = [identifier(b"m1"), name(0x60), vec![0x46, 1, 2], flags, self.trace()];
        let envelope = tlv(0x31, &[&members.concat(), extensions, &self.recipients()]);
        tlv(0xa0, &[&envelope, b"\x04\x02ab"])
    }

    fn probe(&self) -> Vec<u8> {
        let flags = self.early(&[0x48, 2, 0, 0]);
        let members = [identifier(b"p1"), name(0x60), vec![0x46, 1, 2, 0x80, 1, 9]].concat();
        let extensions = self.no_extensions(0xa3);
        tlv(0xa2, &[&members, flags, &self.trace(), &extensions, &self.recipients()])
    }

    fn report(&self) -> Vec<u8> {
        let envelope = [identifier(b"r1"), name(0x60), self.trace(), self.no_extensions(0xa1)];
        let delivered = tlv(0xa0, &[b"\x80\x0d860814093000Z", self.early(&[0x81, 1, 0])]);
        let last = tlv(0xa3, &[b"\x80\x0d860814093000Z", &tlv(0xa1, &[&delivered])]);
        let fields: [&[u8]; 4] =
            [&name(0xa0), &[0x81, 1, 1, 0x82, 2, 0, 0x90], &last, &self.no_extensions(0xa6)];
        let recipients = tlv(0xa0, &[&tlv(0x31, &fields)]);
        let content = [identifier(b"m1"), self.no_extensions(0xa3), recipients];
        tlv(0xa1, &[&tlv(0x31, &[&envelope.concat()]), &tlv(0x31, &[&content.concat()])])
    }
}

fn read(octets: &[u8]) -> MtsApduHead {
    let (mut parser, mut head) = (ApduParser::default(), None);
    let pushed = parser.push(octets, &mut |event| {
        if let Event::Head(found) = event {
            head = Some(found);
        }
    });
    assert_eq!((pushed, parser.is_done()), (Ok(()), true));
    head.unwrap()
}

fn written(head: &MtsApduHead, defaults: Defaults) -> Vec<u8> {
    let is_message = matches!(head, MtsApduHead::Message(_));
    let mut octets = head.encode(is_message.then_some(2), defaults);
    octets.extend(b"ab".iter().filter(|_| is_message));
    octets
}

/// All extensions as they are, whatever the octets that they came in.
fn without_octets(mut head: MtsApduHead) -> MtsApduHead {
    let clear = |extensions: &mut Extensions| {
        extensions.0.iter_mut().for_each(|field| field.raw = None);
    };
    match &mut head {
        MtsApduHead::Message(envelope) => {
            clear(&mut envelope.extensions);
            envelope.recipients.iter_mut().for_each(|r| clear(&mut r.extensions));
        }
        MtsApduHead::Probe(envelope) => {
            clear(&mut envelope.extensions);
            envelope.recipients.iter_mut().for_each(|r| clear(&mut r.extensions));
        }
        MtsApduHead::Report(report) => {
            clear(&mut report.envelope.extensions);
            clear(&mut report.content.extensions);
            report.content.recipients.iter_mut().for_each(|r| clear(&mut r.extensions));
        }
    }
    head
}

#[test]
fn each_member_of_the_value_of_its_default_is_written_or_not() {
    let forms = [
        (Defaults::LeftOut, LEFT_OUT),
        (Defaults::Of1984, OF_1984),
        (Defaults::Explicit, EXPLICIT),
    ];
    let all = |only: &Only| {
        let plain = only.message(&only.no_extensions(0xa3));
        [plain, only.message(&only.extensions()), only.probe(), only.report()]
    };
    let left_out = all(&LEFT_OUT).map(|octets| read(&octets));
    let explicit = all(&EXPLICIT);
    for (defaults, only) in forms {
        for ((octets, plain), explicit) in all(&only).iter().zip(&left_out).zip(&explicit) {
            assert_eq!(written(plain, defaults), *octets, "{defaults:?}");
            // The peer reads the same, and passes it on in either form.
            let came = read(octets);
            assert_eq!(without_octets(came.clone()), without_octets(plain.clone()));
            assert_eq!(written(&came, Defaults::Explicit), *explicit, "{defaults:?}");
            let again = written(&without_octets(came), Defaults::LeftOut);
            assert_eq!(again, written(&without_octets(plain.clone()), Defaults::LeftOut));
        }
    }
}

/// Nobody here knows what its DEFAULTs would mean to its reader.
#[test]
fn an_extension_that_is_not_known_is_passed_on_as_it_came() {
    for kind in [&b"\x83\x02\x51\x01"[..], &[0x80, 1, 99], &[0xa0, 3, 2, 1, 99]] {
        let field = tlv(0xa3, &[&tlv(0x30, &[kind, &[0x81, 2, 5, 0x20]])]);
        let head = read(&EXPLICIT.message(&field));
        assert_eq!(written(&head, Defaults::Explicit), EXPLICIT.message(&field), "{kind:?}");
    }
}

#[test]
fn other_actions_of_the_internal_trace_are_written() {
    let field = |only: &Only, criticality: &[u8]| {
        let list = tlv(0x30, &[&only.trace_element(b"\x16\x03ACT")]);
        tlv(0xa3, &[&tlv(0x30, &[&[0x80, 1, 38], criticality, &tlv(0xa2, &[&list])])])
    };
    let plain = LEFT_OUT.message(&field(&LEFT_OUT, &[]));
    let explicit = EXPLICIT.message(&field(&EXPLICIT, &[0x81, 2, 5, 0]));
    // Before it is stored and after: a transfer that is resumed has the same octets.
    let stored = read(&plain);
    for head in [without_octets(stored.clone()), stored] {
        assert_eq!(written(&head, Defaults::LeftOut), plain);
        assert_eq!(written(&head, Defaults::Explicit), explicit);
    }
}

#[test]
fn which_are_written_is_in_the_form_of_a_peer() {
    let of_1984 = Dialect::RedBook1984(CommonName::NoForm);
    for (dialect, defaults) in [
        (Dialect::Modern, Defaults::Explicit),
        (Dialect::BlueBook1988, Defaults::Explicit),
        (of_1984, Defaults::Of1984),
    ] {
        assert_eq!(Form::from(dialect).defaults(), defaults);
        let form = Form { explicit_defaults: false, ..dialect.into() };
        assert_eq!(form.defaults(), Defaults::LeftOut);
    }
}

#[test]
fn the_qualifier_alone_is_left_out() {
    let private = |last: u8| {
        let oid = [0x83, 8, 0x2b, 26, 0, 0xa2, 0x36, 0, 8, last];
        tlv(0x30, &[&oid, &[0x81, 2, 5, 0], &[0xa2, 3, 2, 1, 1]])
    };
    let (qualifier, other) = (private(0), private(1));
    let both = read(&LEFT_OUT.message(&tlv(0xa3, &[&qualifier, &other])));
    let through = |qualifier| {
        let mut head = both.clone();
        let form = Form { qualifier, ..Form::default() };
        (head.set_form(form), written(&head, Defaults::LeftOut), form.has_qualifier())
    };
    let unchanged = written(&both, Defaults::LeftOut);
    assert_eq!(through(Qualifier::Private), (0, unchanged, true));
    let without = LEFT_OUT.message(&tlv(0xa3, &[&other]));
    assert_eq!(through(Qualifier::Omit), (1, without, false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_read_is_the_same_with_and_without_them(
        message in testing::message(),
        probe in testing::probe(),
        report in testing::report(),
    ) {
        for head in [
            MtsApduHead::Message(Box::new(message)),
            MtsApduHead::Probe(Box::new(probe)),
            MtsApduHead::Report(Box::new(report)),
        ] {
            let plain = without_octets(read(&written(&head, Defaults::LeftOut)));
            for defaults in [Defaults::Of1984, Defaults::Explicit] {
                let octets = written(&head, defaults);
                let found = read(&octets);
                prop_assert_eq!(without_octets(found.clone()), plain.clone());
                prop_assert_eq!(written(&found, defaults), octets);
            }
        }
    }
}
