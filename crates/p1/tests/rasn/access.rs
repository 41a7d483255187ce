//! MTABind, MTSBind and the parameters of P3's errors (X.411 annex A, MTAAbstractService and
//! MTSAbstractService, IMPLICIT TAGS).

use super::{Row, check, octets};
use base::ber::Element;
use p1::p3::{AccessError, MtsBind, MtsBindError};
use p1::{MtaBindArgument, MtaBindError};
use rasn::prelude::*;

/// MTABindArgument and MTABindResult.
#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(choice)]
enum TheirMtaBind {
    Unauthenticated(()),
    #[rasn(tag(1))]
    Authenticated(Authenticated),
}

/// Marked extensible, as the 1999 edition has it.
#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(set)]
#[non_exhaustive]
struct Authenticated {
    #[rasn(tag(0))]
    name: Ia5String,
    #[rasn(tag(explicit(1)))]
    credentials: TheirCredentials,
    #[rasn(tag(2))]
    security_context: Option<SetOf<Any>>,
}

#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(choice)]
#[non_exhaustive]
enum TheirCredentials {
    Ia5(Ia5String),
    Octets(OctetString),
    #[rasn(tag(0))]
    Strong(Strong),
}

#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(set)]
struct Strong {
    #[rasn(tag(0))]
    bind_token: Option<Any>,
}

fn mta_bind(octets: &[u8]) -> bool {
    Element::parse(octets).is_ok_and(|e| MtaBindArgument::read(&e).is_ok())
}

const MTA_BIND: &[Row] = &[
    ("unauthenticated", "05 00", true, true),
    ("a password", "a1 0e 80 04 4d 54 41 31 a1 06 16 04 73 65 63 72", true, true),
    ("its other form", "a1 0e 80 04 4d 54 41 31 a1 06 04 04 73 65 63 72", true, true),
    ("another order", "a1 0e a1 06 16 04 73 65 63 72 80 04 4d 54 41 31", true, true),
    (
        "indefinite lengths",
        "a1 80 80 04 4d 54 41 31 a1 80 16 04 73 65 63 72 00 00 00 00",
        true,
        true,
    ),
    ("a constructed name", "a1 10 a0 06 04 04 4d 54 41 31 a1 06 16 04 73 65 63 72", true, true),
    ("a constructed password", "a1 10 80 04 4d 54 41 31 a1 08 36 06 04 04 73 65 63 72", true, true),
    (
        "a member that is unknown",
        "a1 13 80 04 4d 54 41 31 a1 06 16 04 73 65 63 72 83 03 02 01 05",
        true,
        false,
    ),
    (
        "one before those that are known",
        "a1 13 83 03 02 01 05 80 04 4d 54 41 31 a1 06 16 04 73 65 63 72",
        true,
        false,
    ),
    ("protected credentials", "a1 0c a1 04 a1 02 30 00 80 04 4d 54 41 31", true, false),
    ("a strong token of any type", "a1 0c a1 04 a0 02 30 00 80 04 4d 54 41 31", true, false),
    ("a password beyond ASCII", "a1 0e 80 04 4d 54 41 31 a1 06 16 04 73 65 63 e4", true, false),
    ("a name beyond ASCII", "a1 0e 80 04 4d 54 41 e4 a1 06 16 04 73 65 63 72", false, false),
    ("a control in the name", "a1 0e 80 04 4d 54 41 07 a1 06 16 04 73 65 63 72", false, true),
    (
        "two names",
        "a1 14 80 04 4d 54 41 31 80 04 4d 54 41 32 a1 06 16 04 73 65 63 72",
        false,
        false,
    ),
    ("no name", "a1 08 a1 06 16 04 73 65 63 72", false, false),
    ("no credentials", "a1 06 80 04 4d 54 41 31", false, false),
    ("octets after it", "05 00 05 00", false, true),
];

#[test]
fn mta_bind_has_members_that_rasn_does_not_pass_over() {
    check::<TheirMtaBind>(MTA_BIND, mta_bind);
}

/// ObjectName: a CHOICE without a tag of its own, in a SET.
#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(choice)]
enum TheirObjectName {
    #[rasn(tag(application, 0))]
    UserAgent(SequenceOf<Any>),
    #[rasn(tag(0))]
    Mta(Ia5String),
}

#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(set)]
struct TheirMtsBind {
    name: TheirObjectName,
    #[rasn(tag(explicit(2)))]
    credentials: TheirCredentials,
}

const MTS_BIND: &[Row] = &[
    ("of an MTA", "31 0c 80 02 4d 31 a2 06 16 04 73 65 63 72", true, false),
    ("in another order", "31 0c a2 06 16 04 73 65 63 72 80 02 4d 31", true, false),
    (
        "of a user",
        "31 1c 60 12 30 10 61 04 13 02 49 54 62 03 13 01 20 83 03 4a 46 43 a2 06 16 04 73 65 63 72",
        true,
        false,
    ),
    ("without a name", "31 08 a2 06 16 04 73 65 63 72", false, false),
];

#[test]
fn mts_bind_has_a_choice_in_a_set() {
    check::<TheirMtsBind>(MTS_BIND, |octets| {
        Element::parse(octets).is_ok_and(|e| MtsBind::read(&e).is_ok())
    });
}

/// RefusedOperation, of which refused-argument is a CHOICE without a tag of its own.
#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(set)]
struct RefusedOperation {
    argument: RefusedArgument,
    #[rasn(tag(2))]
    reason: i64,
}

#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(choice)]
enum RefusedArgument {
    #[rasn(tag(1))]
    BuiltIn(i64),
    Standard(i64),
}

const REFUSED: &[Row] = &[
    ("a built-in argument", "31 06 81 01 05 82 01 02", true, false),
    ("in another order", "31 06 82 01 02 81 01 05", true, false),
    ("an extension", "31 06 02 01 05 82 01 02", true, false),
    ("no argument", "31 03 82 01 02", false, false),
];

#[test]
fn operation_refused_has_a_choice_in_a_set() {
    check::<RefusedOperation>(REFUSED, |octets| {
        Element::parse(octets).is_ok_and(|e| AccessError::read(16, Some(&e)).is_ok())
    });
}

/// MTABindError, as an INTEGER; MTSBindError and SecurityProblem read the same contents.
const NUMBERS: &[Row] = &[
    ("a number", "02 01 02", true, true),
    ("padded", "02 04 00 00 00 02", true, true),
    ("negative", "02 02 ff ff", true, true),
    ("the longest", "02 08 7f ff ff ff ff ff ff ff", true, true),
    ("none", "02 00", false, false),
    ("padded to nine octets", "02 09 00 00 00 00 00 00 00 00 02", false, true),
    ("nine length octets", "02 89 00 00 00 00 00 00 00 00 01 02", false, true),
    ("constructed", "22 03 02 01 02", false, true),
    ("octets after it", "02 01 02 00", false, true),
    ("another type", "0a 01 02", false, false),
];

#[test]
fn numbers_of_errors_are_taken_in_forms_that_x690_does_not_have() {
    check::<i64>(NUMBERS, |octets| {
        let parsed = Element::parse(octets);
        let read = parsed.as_ref().is_ok_and(|e| MtaBindError::read(e).is_ok());
        let same = parsed.as_ref().is_ok_and(|e| {
            e.tag != base::ber::universal::INTEGER
                || (MtsBindError::read(e).is_ok() == read
                    && AccessError::read(12, Some(e)).is_ok() == read)
        });
        assert!(same || parsed.is_err());
        read
    });
    // The header within is taken for the two high octets of the number.
    assert_eq!(rasn::ber::decode::<i64>(&octets("22 03 02 01 02")).unwrap(), 0x02_01_02);
}
