//! Contents of P772 and P22.

use super::{Seed, hex, named};
use base::Precedence;
use p772::{ContentBuilder, Heading, PartForm, RecipientSpecifier};

/// See the module.
pub fn contents() -> Vec<Seed> {
    let name = |text: &str| p1::ORName::from(super::p1::address(text));
    let mut heading = Heading::default();
    heading.this_ipm.local = "MSG-01".to_owned();
    heading.subject = Some("HELLO".to_owned());
    heading.originator = Some(name("/C=XX/ADMD=NATO/PRMD=P/S=OPS").into());
    let recipient = name("/C=XX/ADMD=NATO/PRMD=Q/S=OPS").into();
    heading.primary_recipients = vec![RecipientSpecifier { recipient, ..Default::default() }];
    let plain = heading.clone();
    let military = &mut heading.military;
    military.primary_precedence = Some(Precedence::Flash.into());
    military.copy_precedence = Some(Precedence::Routine.into());
    military.distribution_codes.sics = vec!["ABC".to_owned(), "DEFG".to_owned()];
    military.handling_instructions = vec!["BY HAND".to_owned()];
    military.originator_reference = Some("REF 1".to_owned());
    military.codress = Some(3);
    military.pilot_forwarding = vec![p772::PilotInformation {
        precedence: Some(Precedence::Flash.into()),
        recipients: vec![name("/C=XX/S=P").into()],
        label: "1.3.26.0.4406.0.5.1/secret/MARK".parse().ok(),
        handling: vec!["BY HAND".to_owned()],
    }];
    heading.languages = vec!["en".to_owned()];
    heading.incomplete_copy = true;
    let build = |heading: &Heading| ContentBuilder::new(heading).expect("a heading within bounds");
    let mixed = build(&heading).text("Grüße").part(&PartForm::Binary, &[0, 1, 2, 3]);
    let file = PartForm::File { name: Some("A.BIN".to_owned()) };
    named(&[
        ("p22", build(&plain).text("hello").finish()),
        ("p772", mixed.finish()),
        ("file", build(&plain).part(&file, &[0, 255]).finish()),
        ("empty-body", build(&heading).finish()),
        ("notification", hex("a1 80 31 04 80 02 01 02 00 00")),
        ("receipt", hex(RECEIPT)),
        ("non-receipt", hex(NON_RECEIPT)),
        ("acp127-response", hex(ACP127_RESPONSE)),
        ("foreign", hex(FOREIGN)),
    ])
}

/// Signed contents (CMS), with a label and without.
pub fn signed() -> Vec<Seed> {
    named(&[
        ("verified", hex(include_str!("../../../crates/p1/src/cms/verified.hex"))),
        ("streamed", hex(include_str!("../../../crates/p1/src/cms/streamed.hex"))),
        ("indefinite", hex(INDEFINITE)),
    ])
}

/// Every constructed element of the indefinite form, two signers with a label each.
const INDEFINITE: &str = r#"
30 80 06 09 2a 86 48 86 f7 0d 01 07 02 a0 80 30 80
  02 01 03 31 80 30 80 06 01 2a 00 00 00 00
  30 80 06 09 2a 86 48 86 f7 0d 01 07 01 a0 80 24 80 04 02 "ab" 24 80 04 01 "c" 00 00 00 00 00 00 00 00
  31 80
    30 80 02 01 03 a0 80 04 01 01 00 00 30 80 06 01 2a 00 00
      a0 80 30 80 06 0b 2a 86 48 86 f7 0d 01 09 10 02 02 31 80
        31 80 06 02 2a 03 02 01 04 00 00 00 00 00 00 00 00
      30 80 06 01 2a 00 00 04 01 00 00 00
    30 80 02 01 03 80 01 01 30 80 06 01 2a 00 00
      a0 80 30 80 06 0b 2a 86 48 86 f7 0d 01 09 10 02 02 31 80
        31 80 06 02 2a 04 02 01 02 00 00 00 00 00 00 00 00
      30 80 06 01 2a 00 00 04 01 00 00 00
  00 00
00 00 00 00 00 00"#;

/// A receipt notification.
const RECEIPT: &str = r#"a1 2d 6b 08 13 06 "MSG-01" a1 0b 60 09 30 07 83 05 "BRAVO"
    a0 14 a1 12 80 0d "260504030201Z" 81 01 00"#;

/// One of non-receipt, which returns the message.
const NON_RECEIPT: &str = r#"a1 80 6b 08 13 06 "MSG-01" a0 80 a0 80 80 01 00 81 01 01 82 02 "OK"
    a3 80 31 04 6b 02 13 00 30 00 00 00 00 00 00 00 00 00"#;

/// The answer of a gateway to ACP 127.
const ACP127_RESPONSE: &str = r#"a1 80 6b 08 13 06 "MSG-01" a0 80 a2 80 30 80
    06 08 2b 1a 00 a2 36 00 02 10 31 80 80 02 05 40 81 0d "260504030201Z" 83 02 "RX" 00 00
    00 00 00 00 00 00 00 00"#;

/// As a peer may send it: indefinite lengths, constructed strings, members in another order than
/// ours, an extension of unknown type and one of a value that makes no sense.
const FOREIGN: &str = r#"
a0 80
  31 80
    af 80
      30 0d 06 08 2b 1a 00 a2 36 00 02 00  02 01 04
      30 0d 06 08 2b 1a 00 a2 36 00 02 01  02 01 01
      30 80 06 08 2b 1a 00 a2 36 00 02 06  31 80 a0 80 13 03 "ABC" 13 04 "DEFG" 00 00 00 00 00 00
      30 19 06 08 2b 1a 00 a2 36 00 02 05  17 0d "261120220000Z"
      30 16 06 08 2b 1a 00 a2 36 00 02 02  31 0a 80 01 03 81 05 "TIDE1"
      30 0c 06 08 2b 1a 00 a2 36 00 02 09  05 00
      30 05 06 03 55 04 03
    00 00
    a8 80 14 05 "HELLO" 00 00
    a2 80 31 11 a0 0b 60 09 30 07 83 05 "BRAVO" 81 02 05 60 00 00
    a0 0b 60 09 30 07 83 05 "ALPHA"
    6b 08 13 06 "MSG-01"
  00 00
  30 80
    a0 80 31 03 80 01 05 36 80 04 05 "hello" 24 04 04 02 0d0a 00 00 00 00
    ae 80 04 02 01 02 04 01 03 00 00
    af 80 a0 13 06 04 56 01 0b 0b a0 0b 31 09 02 01 01 02 01 06 02 01 64
          28 0f 06 04 56 01 04 0b a0 80 1b 03 e6 f8 e5 00 00 00 00
    a9 80 30 80 05 00 00 00 00 00
    af 0e 28 0c 06 03 55 04 04 81 05 01 02 03 04 05
  00 00
00 00"#;
