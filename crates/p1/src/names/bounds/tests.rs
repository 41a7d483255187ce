use super::super::{MtaName, MtsIdentifier};
use super::*;
use base::ber::{Writer, universal};

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec()
}

fn identifier(local: &str) -> Result<MtsIdentifier, String> {
    let domain = GlobalDomainId::new("XX", "NATO", Some("ACT"));
    let id = MtsIdentifier { domain, local: local.to_owned() };
    let octets = written(|w| id.write(w));
    MtsIdentifier::read(&Element::parse(&octets).unwrap()).map_err(|e| e.to_string())
}

#[test]
fn an_identifier_is_1_to_32_printable_characters() {
    for local in ["1", "A.1-2/3 <x@y>;~", &"x".repeat(32)] {
        assert_eq!(identifier(local).unwrap().local, local);
    }
    for local in ["x]\n[/PRMD=A/C=XX/;VICTIM", "\u{1b}[2J", "a\0", "\u{7f}", "\u{9b}", "\u{e9}"] {
        let error = identifier(local).unwrap_err();
        assert!(error.starts_with("mts-identifier.local-identifier: it holds"), "{error}");
    }
    assert_eq!(
        identifier("x\ny").unwrap_err(),
        "mts-identifier.local-identifier: it holds the character 0x0A, which it must not \
         (X.411 annex A LocalIdentifier, annex B ub-local-id-length)"
    );
    for (local, length) in [(String::new(), 0), ("x".repeat(33), 33)] {
        let error = identifier(&local).unwrap_err();
        let wanted = format!("it has {length} characters instead of 1 to 32");
        assert!(error.contains(&wanted), "{error}");
    }
}

#[test]
fn domains_and_mta_names_have_no_control_characters() {
    let domain = |country: &str, admd: &str, prmd: &str| {
        let octets = written(|w| GlobalDomainId::new(country, admd, Some(prmd)).write(w));
        GlobalDomainId::read(&Element::parse(&octets).unwrap()).map_err(|e| e.to_string())
    };
    domain("XX", " ", "N\u{c4}POLI").unwrap();
    for (country, admd, prmd, field) in [
        ("X\n", "A", "P", "country-name"),
        ("XX", "A\u{1b}[2J", "P", "administration-domain-name"),
        ("XX", "A", "P\u{9b}2J", "private-domain-identifier"),
        ("XX", "A", "12345678901234567", "private-domain-identifier"),
        ("XXXX", "A", "P", "country-name"),
    ] {
        let error = domain(country, admd, prmd).unwrap_err();
        assert!(error.starts_with(&format!("global-domain-identifier.{field}: ")), "{error}");
    }
    let name = |name: &str| {
        let octets = written(|w| MtaName::from(name).write_as(w, universal::IA5_STRING));
        MtaName::read(&Element::parse(&octets).unwrap()).map_err(|e| e.to_string())
    };
    name("MTA-NAPLES 1").unwrap();
    assert!(name("MTA\rB").unwrap_err().starts_with("mta-name: it holds the character 0x0D"));
    assert!(name(&"M".repeat(33)).unwrap_err().contains("0 to 32"));
}

#[test]
fn attributes_have_no_control_characters_and_may_be_somewhat_long() {
    let read = |address: &ORAddress| {
        let octets = written(|w| address.write_as(w, universal::SEQUENCE));
        ORAddress::read(&Element::parse(&octets).unwrap()).map_err(|e| e.to_string())
    };
    let mut long = ORAddress { organization: Some("O".repeat(200)), ..ORAddress::default() };
    read(&long).unwrap();
    long.organization = Some("O".repeat(257));
    assert!(read(&long).unwrap_err().starts_with("organization-name: it has 257"));
    let mut common = ORAddress::default();
    common.set_common_name("DUTY OFFICER");
    read(&common).unwrap();
    let mut w = Writer::new();
    w.primitive(universal::PRINTABLE_STRING, b"A\nB");
    common.extensions[0].value = w.into_vec().into();
    let person = PersonalName { surname: "OPS\n".to_owned(), ..PersonalName::default() };
    for (field, bad) in [
        ("common-name", common),
        ("personal-name", ORAddress { personal_name: Some(person), ..ORAddress::default() }),
        ("private-domain-name", ORAddress { prmd: Some("A\0".into()), ..ORAddress::default() }),
        (
            "organizational-unit-names",
            ORAddress { organizational_units: vec!["\u{7}".into()], ..ORAddress::default() },
        ),
    ] {
        let error = read(&bad).unwrap_err();
        assert!(error.starts_with(&format!("{field}: it holds the character")), "{error}");
    }
}

#[test]
fn no_form_of_an_attribute_has_control_characters() {
    let read = |address: &ORAddress| {
        let octets = written(|w| address.write_as(w, universal::SEQUENCE));
        let strict = ORAddress::read(&Element::parse(&octets).unwrap());
        // What was accepted once is read whatever it holds.
        let accepted = ORAddress::read(&Element::parse_accepted(&octets).unwrap());
        assert_eq!(accepted.as_ref(), Ok(address));
        strict.map(drop).map_err(|e| e.to_string())
    };
    let organization =
        |text: &str| ORAddress { organization: Some(text.to_owned()), ..ORAddress::default() };
    read(&organization("\u{a0}\u{e9}\u{ff}")).unwrap();
    for control in ["\u{1b}", "\u{7f}", "\u{80}", "\u{9b}2J"] {
        let error = read(&organization(control)).unwrap_err();
        assert!(error.starts_with("organization-name: it holds the character"), "{error}");
    }
    let admd = |octets: &[u8]| {
        let value = octets.iter().copied().map(char::from).collect();
        let admd = Some(Text { kind: StringType::Other(12), value });
        read(&ORAddress { admd, ..ORAddress::default() })
    };
    admd("\u{c4}\u{65e5}".as_bytes()).unwrap();
    assert!(admd("\u{9b}".as_bytes()).unwrap_err().contains("0x9B"));
    let extension = |number, octets: &[u8]| {
        let extensions = vec![ExtensionAttribute { number, value: octets.to_vec().into() }];
        read(&ORAddress { extensions, ..ORAddress::default() })
    };
    for (number, good, bad) in [
        (2, &[0x14, 4, b'A', 0xc4, 0x1b, b'-'][..], &[0x14, 2, b'A', b'\n'][..]),
        (2, &[0x34, 4, 4, 2, b'A', 0xc4], &[0x34, 4, 4, 2, b'A', 0x9b]),
        (4, &[0x31, 3, 0x80, 1, 0x1b], &[0x31, 3, 0x80, 1, 0x9b]),
        (5, &[0x30, 6, 0x14, 1, b'A', 0x14, 1, b'B'], &[0x30, 6, 0x14, 1, b'A', 0x14, 1, 7]),
        (6, &[0x30, 5, 0x30, 3, 0x14, 1, b'A'], &[0x30, 5, 0x30, 3, 0x14, 1, b'\n']),
        (24, &[0x31, 4, 0x1e, 2, 0x1b, 0x9b], &[0x31, 4, 0x1e, 2, 0, 0x9b]),
        (24, &[0x31, 6, 0x1c, 4, 0, 0, 1, 7], &[0x31, 6, 0x1c, 4, 0, 0, 0, 7]),
        (25, &[0x31, 3, 0x0c, 1, b'A'], &[0x31, 3, 0x0c, 1, 7]),
        (22, &[0x30, 3, 0x80, 1, 7], &[0x30, 3, 0x13, 1, 7]),
    ] {
        assert_eq!(extension(number, good), Ok(()), "{number}: {good:02x?}");
        let error = extension(number, bad).expect_err(&format!("{number}: {bad:02x?}"));
        assert!(error.starts_with("extension-attributes: it holds the"), "{error}");
    }
    // No BER: handed through.
    assert_eq!(extension(30, &[0x31, 2, 0x14, 9]), Ok(()));
    // Of whatever kind, it has a bound.
    let long = |length: usize| {
        written(|w| {
            w.primitive(universal::PRINTABLE_STRING, &vec![b'A'; length - 4]);
        })
    };
    for number in [2, 22, 99] {
        assert_eq!(extension(number, &long(MAX_EXTENSION_ATTRIBUTE)), Ok(()));
        let error = extension(number, &long(MAX_EXTENSION_ATTRIBUTE + 1)).unwrap_err();
        assert!(error.starts_with("extension-attributes: it has 2049"), "{error}");
    }
}

#[test]
fn content_identifiers_and_information_are_bounded() {
    let string = |text: &str| {
        let mut w = Writer::new();
        w.primitive(universal::PRINTABLE_STRING, text.as_bytes());
        w.into_vec()
    };
    let content = |text: &str| {
        content_identifier(&Element::parse(&string(text)).unwrap()).map_err(|e| e.to_string())
    };
    assert_eq!(content("0123456789ABCDEF+").unwrap(), "0123456789ABCDEF+");
    assert!(content("A\nB").unwrap_err().starts_with("content-identifier: it holds"));
    assert!(content(&"x".repeat(65)).unwrap_err().contains("65 characters"));
    let long = string(&"x".repeat(1_025));
    let error = supplementary_information(&Element::parse(&long).unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("supplementary-information: it has 1025"), "{error}");
}

#[test]
fn an_address_has_few_parts() {
    let read = |address: &ORAddress| {
        let octets = written(|w| address.write_as(w, universal::SEQUENCE));
        ORAddress::read(&Element::parse(&octets).unwrap()).map(drop).map_err(|e| e.to_string())
    };
    let pair =
        || super::super::DomainDefinedAttribute { kind: "K".to_owned(), value: "V".to_owned() };
    let pairs = |n| ORAddress {
        domain_defined: std::iter::repeat_with(pair).take(n).collect(),
        ..ORAddress::default()
    };
    let units =
        |n| ORAddress { organizational_units: vec!["U".to_owned(); n], ..ORAddress::default() };
    assert_eq!((read(&pairs(MAX_PARTS)), read(&units(MAX_PARTS))), (Ok(()), Ok(())));
    let error = read(&pairs(MAX_PARTS + 1)).unwrap_err();
    assert!(error.contains("domain-defined-attributes"), "{error}");
    assert!(read(&units(MAX_PARTS + 1)).is_err());
}
