//! Contents written and read, against octets set down by hand.

use crate::*;
use base::ber::{Element, Writer};
use base::{Precedence, Utc};
use p1::{ORAddress, ORName};
use proptest::prelude::*;

fn name(organization: &str) -> ORName {
    let address = ORAddress { organization: Some(organization.to_owned()), ..ORAddress::default() };
    ORName { address, directory_name: None }
}

/// Octets of hexadecimal digits, blanks ignored; text in quotes stands for itself.
fn hex(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (n, part) in text.split('"').enumerate() {
        if n % 2 == 1 {
            out.extend_from_slice(part.as_bytes());
            continue;
        }
        let digits: Vec<u8> = part.bytes().filter(u8::is_ascii_hexdigit).collect();
        for pair in digits.chunks(2) {
            let pair = std::str::from_utf8(pair).unwrap();
            out.push(u8::from_str_radix(pair, 16).unwrap());
        }
    }
    out
}

/// A military message as a peer may send it: indefinite lengths, constructed strings, members in
/// another order than ours, an extension of unknown type and one of a value that makes no sense.
fn foreign() -> Vec<u8> {
    hex(r#"A0 80
             31 80
               AF 80
                 30 0D 06 08 2B 1A 00 A2 36 00 02 00  02 01 04
                 30 0D 06 08 2B 1A 00 A2 36 00 02 01  02 01 01
                 30 80 06 08 2B 1A 00 A2 36 00 02 06  31 80 A0 80 13 03 "ABC" 13 04 "DEFG" 00 00 00 00 00 00
                 30 19 06 08 2B 1A 00 A2 36 00 02 05  17 0D "261120220000Z"
                 30 16 06 08 2B 1A 00 A2 36 00 02 02  31 0A 80 01 03 81 05 "TIDE1"
                 30 0C 06 08 2B 1A 00 A2 36 00 02 09  05 00
                 30 05 06 03 55 04 03
               00 00
               A8 80 14 05 "HELLO" 00 00
               A2 80 31 11 A0 0B 60 09 30 07 83 05 "BRAVO" 81 02 05 60 00 00
               A0 0B 60 09 30 07 83 05 "ALPHA"
               6B 08 13 06 "MSG-01"
             00 00
             30 80
               A0 80 31 03 80 01 05 36 80 04 05 "hello" 24 04 04 02 0D0A 00 00 00 00
               AE 80 04 02 01 02 04 01 03 00 00
               AF 80 A0 13 06 04 56 01 0B 0B A0 0B 31 09 02 01 01 02 01 06 02 01 64
                     28 0F 06 04 56 01 04 0B A0 80 1B 03 E6 F8 E5 00 00 00 00
               A9 80 30 80 05 00 00 00 00 00
               AF 0E 28 0C 06 03 55 04 04 81 05 01 02 03 04 05
             00 00
           00 00"#)
}

/// What the data of one body part add up to.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Heading(Box<Heading>),
    Notification(Vec<u8>),
    Part(PartKind, Vec<u8>),
    End,
}

fn read(pieces: &[&[u8]]) -> Result<Vec<Seen>, base::ber::Error> {
    let mut parser = ContentParser::new();
    let (mut seen, mut open) = (Vec::new(), None);
    for piece in pieces {
        let mut input = *piece;
        while let Some(event) = parser.next(&mut input)? {
            match event {
                ContentEvent::Heading(heading) => seen.push(Seen::Heading(heading)),
                ContentEvent::Notification(octets) => seen.push(Seen::Notification(octets)),
                ContentEvent::PartBegin(kind) => {
                    assert!(open.replace((kind, Vec::new())).is_none());
                }
                ContentEvent::Data(data) => {
                    assert!(!data.is_empty());
                    open.as_mut().unwrap().1.extend_from_slice(&data);
                }
                ContentEvent::PartEnd => {
                    let (kind, data) = open.take().unwrap();
                    seen.push(Seen::Part(kind, data));
                }
                ContentEvent::End => seen.push(Seen::End),
            }
        }
        assert!(input.is_empty() || parser.is_done());
    }
    Ok(seen)
}

fn heading_of(content: &[u8]) -> Heading {
    match read(&[content]).unwrap().swap_remove(0) {
        Seen::Heading(heading) => *heading,
        other => panic!("no heading but {other:?}"),
    }
}

#[test]
fn a_foreign_military_message_is_understood() {
    let seen = read(&[&foreign()]).unwrap();
    let heading = heading_of(&foreign());
    assert_eq!(heading.this_ipm.local, "MSG-01");
    assert_eq!(heading.subject.as_deref(), Some("HELLO"));
    assert_eq!(heading.originator, Some(name("ALPHA").into()));
    assert_eq!(heading.primary_recipients.len(), 1);
    let asked = heading.primary_recipients[0].notification_requests;
    assert!(!asked.receipt && asked.non_receipt && asked.return_content);
    let military = &heading.military;
    assert_eq!(military.primary_precedence, Some(Precedence::Flash.into()));
    assert_eq!(military.copy_precedence, Some(Precedence::Routine.into()));
    assert_eq!(military.distribution_codes.sics, ["ABC", "DEFG"]);
    assert_eq!(military.authorised_at, Utc::from_utc_time(b"261120220000Z"));
    let drill = MessageType { kind: MessageType::DRILL, identifier: Some("TIDE1".into()) };
    assert_eq!(military.message_type, Some(drill));
    // A codress that is not an INTEGER, and an unknown type: both are kept.
    let raw: Vec<_> = heading.extensions.iter().map(|e| (e.kind.to_string(), &e.value)).collect();
    assert_eq!(raw, [("1.3.26.0.4406.0.2.9".into(), &Some(vec![5, 0])), ("2.5.4.3".into(), &None)]);

    let parts: Vec<_> = seen[1..6].iter().collect();
    assert_eq!(parts[0], &Seen::Part(PartKind::Text(Charset::Ascii), b"hello\r\n".to_vec()));
    assert_eq!(parts[1], &Seen::Part(PartKind::Binary, vec![1, 2, 3]));
    assert_eq!(parts[2], &Seen::Part(PartKind::Text(Charset::Latin1), vec![0xe6, 0xf8, 0xe5]));
    let Seen::Part(PartKind::Other { header }, data) = parts[3] else { panic!("{:?}", parts[3]) };
    assert_eq!((header.tag.number, data), (9, &hex("30 80 05 00 00 00")));
    let Seen::Part(PartKind::Extended { data: kind, parameters: None }, data) = parts[4] else {
        panic!("{:?}", parts[4])
    };
    assert_eq!((kind.to_string().as_str(), data), ("2.5.4.4", &vec![1, 2, 3, 4, 5]));
    assert_eq!(seen[6..], [Seen::End]);
}

#[test]
fn every_cut_gives_the_same_events() {
    let content = foreign();
    let whole = read(&[&content]).unwrap();
    for cut in 0..=content.len() {
        assert_eq!(read(&[&content[..cut], &content[cut..]]).unwrap(), whole, "cut at {cut}");
    }
    let octets: Vec<&[u8]> = content.chunks(1).collect();
    assert_eq!(read(&octets).unwrap(), whole);
}

#[test]
fn a_content_cut_short_never_ends() {
    let content = foreign();
    for cut in 0..content.len() {
        assert!(!read(&[&content[..cut]]).unwrap().contains(&Seen::End), "cut at {cut}");
    }
}

#[test]
fn segments_of_a_body_part_are_strings() {
    // Another type in place of the OCTET STRING in the text "hello".
    let content = foreign();
    let at = content.windows(4).position(|w| w == [0x36, 0x80, 0x04, 0x05]).unwrap() + 2;
    for (tag, taken) in [(0x04, true), (0x16, true), (0x02, false), (0x03, false), (0x80, false)] {
        let mut content = content.clone();
        content[at] = tag;
        assert_eq!(read(&[&content]).is_ok(), taken, "{tag:02X}");
    }
}

#[test]
fn notifications_are_handed_on_whole() {
    let ipn = hex(r#"A1 12 6B 08 13 06 "MSG-01" A0 06 A0 04 80 02 01 00 00 00"#);
    let ipn = &ipn[..ipn.len() - 2];
    for cut in 0..=ipn.len() {
        let seen = read(&[&ipn[..cut], &ipn[cut..]]).unwrap();
        assert_eq!(seen, [Seen::Notification(ipn.to_vec())]);
    }
}

#[test]
fn what_is_no_content_is_refused_by_name() {
    for (content, message) in [
        ("04 00", "InformationObject: unexpected [UNIVERSAL 4]"),
        ("80 01 00", "InformationObject: unexpected [0]"),
        ("A0 00", "heading: truncated"),
        ("A0 02 30 00", "InformationObject: unexpected [UNIVERSAL 16]"),
        ("A0 02 31 00", "this-IPM: missing [APPLICATION 11]"),
        ("A0 06 31 04 6B 02 13 00", "body: truncated"),
        ("A0 0A 31 04 6B 02 13 00 30 00 05 00", "InformationObject: unexpected [UNIVERSAL 5]"),
        ("A0 80 31 04 6B 02 13 00 30 80 A0 02 31 00", "body part: truncated"),
        ("A0 80 31 04 6B 02 13 00 30 80 AF 02 31 00", "extended body part: unexpected"),
        ("A0 80 31 04 6B 02 13 00 30 80 AF 80 28 80 A0 80", "direct-reference: invalid"),
        ("A0 80 31 04 6B 02 13 00 30 80 A0 80 36 00 36 00", "body part: unexpected"),
        ("A0 80 31 06 6B 02 13 00 8C 00", "importance: invalid INTEGER"),
    ] {
        let error = read(&[&hex(content)]).map(|seen| format!("{content}: {seen:?}")).unwrap_err();
        assert!(error.to_string().starts_with(message), "{content}: {error}");
    }
}

#[test]
fn a_heading_beyond_the_limit_is_refused() {
    let mut content = hex(r#"A0 80 31 84 00 20 00 00 9F 81 00 84 00 1F FF 00"#);
    content.resize(content.len() + MAX_HEADING + 1, 0);
    let error = read(&[&content]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("heading: longer than the limit of {MAX_HEADING} octets")
    );
}

#[test]
fn a_list_beyond_the_limit_is_refused() {
    let users = [0x31, 0].repeat(MAX_LIST + 1);
    let mut w = Writer::new();
    w.constructed(base::ber::universal::SET, |w| {
        w.constructed(base::ber::Tag::context(1), |w| w.raw(&users));
    });
    let error = Heading::decode(&Element::parse(w.as_slice()).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "authorizing-users: more than the limit of 32767 elements");
}

/// A military message with every field we write.
fn full_heading() -> Heading {
    let dtg = Utc::from_utc_time(b"261120220000Z");
    let military = Military {
        primary_precedence: Some(Precedence::Immediate.into()),
        copy_precedence: Some(Precedence::Priority.into()),
        message_type: Some(MessageType {
            kind: MessageType::EXERCISE,
            identifier: Some("COLD STORM".into()),
        }),
        address_lists: vec![AddressListDesignator {
            addressing: Addressing::Copy,
            list: name("AIG 7").into(),
            notification_request: Some(0),
            reply_request: Some(2),
        }],
        exempted_addresses: vec![name("CHARLIE").into()],
        authorised_at: dtg,
        distribution_codes: DistributionCodes {
            sics: vec!["ABC".into(), "XYZ1".into()],
            extensions: vec![hex("30 05 06 03 55 04 03")],
        },
        handling_instructions: vec!["BY HAND".into()],
        message_instructions: vec!["ZNR".into(), "ZOV".into()],
        codress: Some(1),
        originator_reference: Some("OPS/14".into()),
        other_recipients: vec![OtherRecipient {
            addressing: Addressing::Primary,
            designator: "DELTA".into(),
        }],
        acp127_message_identifier: Some("RXAAAA 0001 3242200".into()),
        originator_plad: Some("CINC NORTH".into()),
        pilot_forwarding: vec![
            PilotInformation {
                precedence: Some(Precedence::Flash.into()),
                recipients: vec![name("ECHO").into(), name("FOXTROT").into()],
                label: Some("1.3.26.0.4406.0.5.1/secret".parse().unwrap()),
                handling: vec!["BY HAND".into()],
            },
            PilotInformation::default(),
        ],
        information_labels: Some(InformationLabels {
            content: "/restricted/MARK".parse().unwrap(),
            heading: Some("2.5.4.3/7".parse().unwrap()),
            body_parts: vec![BodyPartLabel {
                label: "/unmarked".parse().unwrap(),
                number: Some(1),
            }],
        }),
    };
    let ipm = |local: &str| IpmIdentifier { user: Some(name("ALPHA")), local: local.into() };
    Heading {
        this_ipm: ipm("MSG-02"),
        originator: Some(OrDescriptor {
            formal_name: Some(name("ALPHA")),
            free_form_name: Some("Tromsø".into()),
            telephone_number: Some("555 1234".into()),
        }),
        authorizing_users: vec![name("ALPHA").into()],
        primary_recipients: vec![RecipientSpecifier {
            recipient: name("BRAVO").into(),
            notification_requests: NotificationRequests {
                receipt: true,
                non_receipt: true,
                return_content: false,
            },
            reply_requested: true,
            acp127_request: Some(Acp127Notifications {
                negative: true,
                positive: false,
                transfer: true,
            }),
            extensions: vec![RawExtension {
                kind: "2.6.1.3.1".parse().unwrap(),
                value: Some(vec![2, 1, 7]),
            }],
        }],
        copy_recipients: vec![name("CHARLIE").into(), name("DELTA").into()],
        blind_copy_recipients: vec![name("ECHO").into()],
        replied_to: Some(ipm("MSG-01")),
        obsoleted: vec![ipm("MSG-00")],
        related: vec![IpmIdentifier { user: None, local: "X".into() }],
        subject: Some("Øvelse".into()),
        expiry_time: dtg,
        reply_time: dtg,
        reply_recipients: vec![name("ALPHA").into()],
        importance: Importance::High,
        sensitivity: Some(Sensitivity::Private),
        auto_forwarded: true,
        incomplete_copy: true,
        languages: vec!["en".into(), "it".into()],
        auto_submitted: Some(AutoSubmitted::Replied),
        military,
        extensions: vec![RawExtension { kind: "2.5.4.3".parse().unwrap(), value: None }],
        unknown: vec![hex("9F 63 01 00")],
    }
}

#[test]
fn every_field_of_a_heading_comes_back() {
    let heading = full_heading();
    let content = ContentBuilder::new(&heading).unwrap().text("hello").finish();
    assert_eq!(heading_of(&content), heading);
}

#[test]
fn a_small_military_message_is_these_octets() {
    let military = Military {
        primary_precedence: Some(Precedence::Flash.into()),
        distribution_codes: DistributionCodes { sics: vec!["ABC".into()], extensions: vec![] },
        ..Military::default()
    };
    let heading = Heading {
        this_ipm: IpmIdentifier { user: None, local: "MSG-01".into() },
        primary_recipients: vec![name("BRAVO").into()],
        subject: Some("HELLO".into()),
        military,
        ..Heading::default()
    };
    let content =
        ContentBuilder::new(&heading).unwrap().text("hello").part(&PartForm::Binary, &[1, 2]);
    assert_eq!(content.finish(), small_message());
}

fn small_message() -> Vec<u8> {
    hex(r#"A0 5D
             31 4A
               6B 08 13 06 "MSG-01"
               A2 0F 31 0D A0 0B 60 09 30 07 83 05 "BRAVO"
               A8 07 14 05 "HELLO"
               AF 24
                 30 0D 06 08 2B 1A 00 A2 36 00 02 00  02 01 04
                 30 13 06 08 2B 1A 00 A2 36 00 02 06  31 07 A0 05 13 03 "ABC"
             30 0F
               A0 09 31 00 16 05 "hello"
               8E 02 01 02"#)
}

#[test]
fn general_text_is_these_octets() {
    let heading =
        Heading { this_ipm: IpmIdentifier { user: None, local: "M".into() }, ..Heading::default() };
    let content = ContentBuilder::new(&heading).unwrap().text("æøå").finish();
    let expected = hex(r#"A0 2F 31 05 6B 03 13 01 "M" 30 26
             AF 24 A0 13 06 04 56 01 0B 0B A0 0B 31 09 02 01 01 02 01 06 02 01 64
                   28 0D 06 04 56 01 04 0B A0 05 1B 03 E6 F8 E5"#);
    assert_eq!(content, expected);
    let seen = read(&[&content]).unwrap();
    assert_eq!(seen[1], Seen::Part(PartKind::Text(Charset::Latin1), vec![0xe6, 0xf8, 0xe5]));
}

#[test]
fn a_file_is_these_octets() {
    let heading =
        Heading { this_ipm: IpmIdentifier { user: None, local: "M".into() }, ..Heading::default() };
    let content = |name: Option<&str>| {
        let form = PartForm::File { name: name.map(str::to_owned) };
        ContentBuilder::new(&heading).unwrap().part(&form, &[0, 255, 10]).finish()
    };
    let expected = hex(r#"A0 3C 31 05 6B 03 13 01 "M" 30 33
             AF 31 A0 15 06 04 56 01 0B 0C A0 0D 30 0B A4 09 A0 07 19 05 "A.BIN"
                   28 18 06 04 56 01 04 0C A0 10 30 0E 28 0C 06 05 28 C2 7B 02 04 81 03 00 FF 0A"#);
    assert_eq!(content(Some("A.BIN")), expected);
    let long = "ø".repeat(200);
    for (name, read_as) in [
        (Some("A.BIN"), Some("A.BIN")),
        (Some("Tromsø ✓.txt"), Some("Tromsø ✓.txt")),
        (Some("../x\n"), Some("../x\n")),
        (Some(long.as_str()), long.get(..254)),
        (Some(""), None),
        (None, None),
    ] {
        let name = content(name);
        let pieces: Vec<&[u8]> = name.chunks(1).collect();
        for seen in [read(&[&name]).unwrap(), read(&pieces).unwrap()] {
            let kind = PartKind::File { name: read_as.map(str::to_owned) };
            assert_eq!(seen[1], Seen::Part(kind, vec![0, 255, 10]));
            assert_eq!(seen[2], Seen::End);
        }
    }
}

#[test]
fn a_file_of_another_writer_is_read() {
    // Indefinite lengths, another syntax, octets in segments, in two EXTERNALs of both encodings; a
    // related file and the complete pathname before and in the attributes.
    let seen = read(&[&hex(r#"A0 80 31 05 6B 03 13 01 "M" 30 80
             AF 80 A0 80 06 04 56 01 0B 0C A0 80 30 80 A0 00 A4 80 B7 80 19 03 "tmp" 19 01 "f" 00 00
                      00 00 00 00 00 00 00 00
                   28 80 06 04 56 01 04 0C A0 80 30 80
                     28 80 06 02 2A 03 02 01 05 A1 80 04 01 01 24 80 04 01 02 00 00 00 00 00 00
                     28 80 A0 03 04 01 03 00 00
                   00 00 00 00 00 00 00 00
             AF 1A 28 18 06 04 56 01 04 0C A0 10 30 0E 28 0C 06 05 28 C2 7B 02 04 81 03 04 05 06
             00 00 00 00"#)])
    .unwrap();
    let name = Some("f".to_owned());
    assert_eq!(seen[1], Seen::Part(PartKind::File { name }, vec![1, 2, 3]));
    // Without parameters.
    assert_eq!(seen[2], Seen::Part(PartKind::File { name: None }, vec![4, 5, 6]));
    assert_eq!(seen[3..], [Seen::End]);
}

#[test]
fn several_parts_whose_data_come_from_elsewhere_are_one_content() {
    let file = PartForm::File { name: Some("A.BIN".into()) };
    let builder = || ContentBuilder::new(&full_heading()).unwrap();
    let text = PartForm::Text(Charset::Ascii);
    let whole = builder().part(&text, b"hello").part(&file, &[0, 255]).finish();
    let heads = builder().finish_with_all(&[(text, 5), (file, 2)]);
    assert_eq!([&heads[0][..], b"hello", &heads[1], &[0, 255]].concat(), whole);
    assert_eq!(builder().finish_with_all(&[]), [builder().finish()]);
}

#[test]
fn a_gigabyte_passes_in_pieces() {
    let heading = full_heading();
    let length = 1_000_000_000u64;
    let builder = ContentBuilder::new(&heading).unwrap().text("with this comes a file");
    let framing = builder.finish_with(&PartForm::Binary, length);
    assert_eq!(framing.content_length(), framing.head.len() as u64 + length);
    let mut parser = ContentParser::new();
    let (piece, mut sent, mut received) = (vec![0u8; 1_000_000], 0, 0);
    let mut input = framing.head.as_slice();
    loop {
        match parser.next(&mut input).unwrap() {
            Some(ContentEvent::End) => break,
            Some(ContentEvent::Data(data)) => received += data.len() as u64,
            Some(_) => {}
            None => {
                assert!(sent < length);
                sent += piece.len() as u64;
                input = &piece;
            }
        }
    }
    assert_eq!((sent, received, input.len()), (length, length + 22, 0));
}

#[test]
fn precedences_are_found_in_a_prefix_as_soon_as_they_are_there() {
    let content = foreign();
    let whole = peek_precedence(&content).unwrap();
    assert_eq!(whole.level(), Some(Precedence::Flash));
    assert_eq!(whole.copy, Some(Precedence::Routine.into()));
    // primary-precedence ends at octet 21, copy-precedence 15 later.
    for cut in 0..content.len() {
        let found = peek_precedence(&content[..cut]);
        match cut {
            0..21 => assert_eq!(found, None, "cut at {cut}"),
            21..36 => assert_eq!(found.map(|f| (f.primary, f.copy)), Some((whole.primary, None))),
            _ => assert_eq!(found, Some(whole), "cut at {cut}"),
        }
    }
}

#[test]
fn only_the_heading_of_a_message_is_looked_at() {
    let precedence = |w: &mut Writer| {
        w.raw(&hex("30 0D 06 08 2B 1A 00 A2 36 00 02 00 02 01 04"));
    };
    let inside = |outer: &[u8], tag| {
        let mut w = Writer::new();
        w.raw(outer);
        w.constructed(base::ber::Tag::context(tag), precedence);
        w.into_vec()
    };
    // In a notification, in another member, in a body: no.
    for prefix in ["A1 80 31 80", "A0 80 30 80", "A0 80 31 00 30 80 31 80"] {
        assert_eq!(peek_precedence(&inside(&hex(prefix), 15)), None, "{prefix}");
    }
    assert_eq!(peek_precedence(&inside(&hex("A0 80 31 80"), 2)), None);
    assert!(peek_precedence(&inside(&hex("A0 80 31 80"), 15)).is_some());
    // A copy precedence alone decides; a national value has no level.
    let copy = hex("A0 80 31 80 AF 80 30 0D 06 08 2B 1A 00 A2 36 00 02 01 02 01 05");
    assert_eq!(peek_precedence(&copy).unwrap().level(), Some(Precedence::Override));
    let national = hex("A0 80 31 80 AF 80 30 0D 06 08 2B 1A 00 A2 36 00 02 00 02 01 10");
    let found = peek_precedence(&national).unwrap();
    assert_eq!((found.level(), found.primary.map(MmhsPrecedence::value)), (None, Some(16)));
}

#[test]
fn a_sender_keeps_to_the_bounds() {
    let refused = |change: fn(&mut Heading)| {
        let mut heading = full_heading();
        change(&mut heading);
        ContentBuilder::new(&heading).unwrap_err().to_string()
    };
    assert_eq!(
        refused(|h| h.military.distribution_codes.sics = vec!["AB".into()]),
        "subject indicator code: 3 to 8 printable characters are allowed"
    );
    assert!(refused(|h| h.this_ipm.local.clear()).starts_with("this-IPM"));
    assert!(refused(|h| h.subject = Some("x".repeat(129))).starts_with("subject"));
    assert!(
        refused(|h| h.military.originator_plad = Some("a_b".into())).starts_with("originator-plad")
    );
    assert!(
        refused(|h| h.military.distribution_codes.sics = vec!["ABC".into(); 9]).contains("codes")
    );
    let long = || vec!["x".repeat(70)];
    let mut heading = full_heading();
    heading.military.message_instructions = long();
    assert!(heading.validate().is_err());
}

fn text_field() -> impl Strategy<Value = String> {
    "[A-Za-z0-9 '()+,./:=?-]{1,30}"
}

prop_compose! {
    fn arbitrary_heading()(
        local in text_field(),
        subject in proptest::option::of("\\PC{0,60}"),
        primary in proptest::option::of(0i64..32),
        copy in proptest::option::of(0i64..32),
        sics in proptest::collection::vec("[A-Z0-9]{3,8}", 0..8),
        instructions in proptest::collection::vec(text_field(), 0..4),
        recipients in proptest::collection::vec(text_field(), 0..6),
        dtg in proptest::option::of(0u64..2_000_000_000),
    ) -> Heading {
        Heading {
            this_ipm: IpmIdentifier { user: None, local },
            subject,
            primary_recipients: recipients.iter().map(|r| name(r).into()).collect(),
            military: Military {
                primary_precedence: primary.and_then(MmhsPrecedence::new),
                copy_precedence: copy.and_then(MmhsPrecedence::new),
                distribution_codes: DistributionCodes { sics, extensions: vec![] },
                message_instructions: instructions,
                authorised_at: dtg.map(|s| Utc(s * 1_000_000)),
                ..Military::default()
            },
            ..Heading::default()
        }
    }
}

proptest! {
    #[test]
    fn contents_round_trip_at_any_cut(
        heading in arbitrary_heading(),
        texts in proptest::collection::vec("\\PC{0,40}", 0..3),
        data in proptest::collection::vec(any::<u8>(), 0..300),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut builder = ContentBuilder::new(&heading).unwrap();
        for text in &texts {
            builder = builder.text(text);
        }
        let framing = builder.finish_with(&PartForm::Binary, data.len() as u64);
        let content = [framing.head.clone(), data.clone()].concat();
        prop_assert_eq!(content.len() as u64, framing.content_length());

        let cut = cut.index(content.len() + 1);
        let seen = read(&[&content[..cut], &content[cut..]]).unwrap();
        prop_assert_eq!(&seen[0], &Seen::Heading(Box::new(heading.clone())));
        for (text, part) in texts.iter().zip(&seen[1..]) {
            let Seen::Part(PartKind::Text(charset), octets) = part else { panic!("{part:?}") };
            prop_assert_eq!(&charset.decode(octets), text);
        }
        prop_assert_eq!(&seen[texts.len() + 1..], &[Seen::Part(PartKind::Binary, data), Seen::End]);

        let found = peek_precedence(&content).unwrap_or_default();
        prop_assert_eq!(found.primary, heading.military.primary_precedence);
        prop_assert_eq!(found.copy, heading.military.copy_precedence);
    }

    #[test]
    fn damaged_contents_are_answered_alike_at_any_cut(
        at in any::<prop::sample::Index>(), octet: u8, cut in any::<prop::sample::Index>(),
    ) {
        let mut content = foreign();
        let at = at.index(content.len());
        content[at] = octet;
        let cut = cut.index(content.len());
        let _ = peek_precedence(&content);
        let (whole, pieces) = (read(&[&content]), read(&[&content[..cut], &content[cut..]]));
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn any_octets_are_answered(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&[&octets]);
        let _ = peek_precedence(&octets);
        if let Ok(element) = Element::parse(&octets) {
            let _ = Heading::decode(&element);
        }
    }
}
