//! Names and content types that have a form, or none.

use super::*;
use p1::red_book::{self, NoForm};
use p1::{ContentType, ORName};

/// The name of an address in text form.
fn named(address: &str) -> ORName {
    ORName::from(address.parse::<p1::ORAddress>().unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn an_address_has_a_form_or_is_refused() {
    let (no, dda) = (CommonName::NoForm, CommonName::DomainDefined);
    let form = |address: &str, common| red_book::names::has_form(&named(address), common);
    assert_eq!(form("C=IT;ADMD=NET;PRMD=ACT;O=HQ;OU1=G6;S=Smith;DDA:fax=12", no), Ok(()));
    assert_eq!(form("C=IT;ADMD=NET;N-ID=12", no), Ok(()));
    assert_eq!(form("C=IT;ADMD=NET;PRMD=ACT;N-ID=12", dda), Err(NoForm::NumericInPrivateDomain));
    assert_eq!(form("C=IT;ADMD=NET;PRMD=ACT;CN=Duty", no), Err(NoForm::CommonName));
    assert_eq!(form("C=IT;ADMD=NET;PRMD=ACT;CN=Duty", dda), Ok(()));
    // The attribute is there already, or there are four.
    assert_eq!(form("C=IT;ADMD=NET;CN=Duty;DDA:common=x", dda), Err(NoForm::CommonName));
    let four = "C=IT;ADMD=NET;CN=Duty;DDA:a=1;DDA:b=2;DDA:c=3;DDA:d=4";
    assert_eq!(form(four, dda), Err(NoForm::CommonName));
    // A name that a PrintableString cannot have.
    assert_eq!(form("C=IT;ADMD=NET;CN=a@b", dda), Err(NoForm::CommonName));
    let empty = ORName { directory_name: Some(vec![0x30, 0].into()), ..ORName::default() };
    assert_eq!(red_book::names::has_form(&empty, dda), Err(NoForm::NoAddress));

    let with = |address: &str, number: i64| {
        let mut name = named(address);
        let value = bytes::Bytes::from_static(&[0x14, 1, b'x']);
        name.address.extensions.push(p1::names::ExtensionAttribute { number, value });
        red_book::names::has_form(&name, no)
    };
    // A postal code; the organization in teletex characters, alone and beside the built-in form.
    assert_eq!(with("C=IT;ADMD=NET;S=Smith", 9), Err(NoForm::Attribute(9)));
    assert_eq!(with("C=IT;ADMD=NET;S=Smith", 3), Err(NoForm::Attribute(3)));
    assert_eq!(with("C=IT;ADMD=NET;S=Smith;O=HQ", 3), Ok(()));
    assert_eq!(with("C=IT;ADMD=NET;S=Smith", 24), Err(NoForm::Attribute(24)));
}

#[test]
fn only_p2_has_a_form() {
    let form = red_book::content_type_has_form;
    assert_eq!(form(&ContentType::P2), Ok(()));
    for other in [ContentType::P22, ContentType::UNIDENTIFIED, ContentType::p772()] {
        assert_eq!(form(&other), Err(NoForm::ContentType(other)));
    }
    assert_eq!(NoForm::ContentType(ContentType::P22).to_string(), "content type 22");
}

#[test]
fn the_attribute_common_is_a_common_name_where_that_is_agreed() {
    let octets = {
        let duty = name(0x60, b"NAPLES", b"Duty", &common(b"Duty officer"));
        let envelope = tlv(
            0x31,
            &[
                &identifier(b"1"),
                &name(0x60, b"ACT", b"Smith", &common(b"Chief")),
                &[0x46, 1, 2],
                &trace(&[]),
                &tlv(0xa2, &[&recipient(&duty, 0xd0, &[])]),
            ],
        );
        tlv(0xa0, &[&envelope, b"\x04\x00"])
    };
    let (head, _) = read(&octets);
    for dialect in [Dialect::Modern, Dialect::BlueBook1988, OF_1984] {
        let mut same = head.clone();
        same.restore_common_names(dialect);
        assert_eq!(same, head);
    }
    let mut restored = head.clone();
    restored.restore_common_names(WITH_COMMON);
    let MtsApduHead::Message(e) = &restored else { panic!() };
    assert_eq!(e.originator.address.common_name().as_deref(), Some("Chief"));
    assert_eq!(e.recipients[0].recipient.address.common_name().as_deref(), Some("Duty officer"));
    assert!(e.recipients[0].recipient.address.domain_defined.is_empty());
    restored.set_form(WITH_COMMON.into());
    assert_eq!(restored, head);
    // Twice, it does not stand for one.
    let MtsApduHead::Message(mut e) = head else { panic!() };
    let pair = e.originator.address.domain_defined[0].clone();
    e.originator.address.domain_defined.push(pair);
    let mut twice = MtsApduHead::Message(e);
    let before = twice.clone();
    twice.restore_common_names(WITH_COMMON);
    let (MtsApduHead::Message(now), MtsApduHead::Message(before)) = (twice, before) else {
        panic!()
    };
    assert_eq!(now.originator, before.originator);
}
