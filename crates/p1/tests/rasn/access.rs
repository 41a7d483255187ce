//! MTABind, MTSBind and the parameters of P3's errors (X.411 annex A, MTAAbstractService and
//! MTSAbstractService, IMPLICIT TAGS): the values that rasn reads in production, then the SETs that it
//! could not read.

use super::{Row, check, check_value, octets};
use base::ber::{Element, Error, Writer};
use p1::p3::{AccessError, ChangeCredentials, MtsBind, MtsBindError, ObjectName, SecurityProblem};
use p1::{Credentials, MtaBindArgument, MtaBindError, MtaName, Password};
use rasn::prelude::*;

/// Simple credentials.
const PASSWORDS: &[Row] = &[
    ("an IA5String", "16 04 73 65 63 72", true, true),
    ("an OCTET STRING", "04 04 73 65 63 72", true, true),
    ("beyond ASCII", "16 04 73 65 63 e4", true, true),
    ("empty", "16 00", true, true),
    ("its length in the long form", "16 82 00 04 73 65 63 72", true, true),
    ("in segments", "36 08 04 02 73 65 04 02 63 72", true, true),
    ("in segments, their length indefinite", "36 80 04 04 73 65 63 72 00 00", true, true),
    ("in segments of segments", "24 08 24 06 04 04 73 65 63 72", true, true),
    ("in no segments", "24 00", true, true),
    ("in segments of its own type", "36 06 16 04 73 65 63 72", true, false),
    ("in segments of another type", "36 06 0c 04 73 65 63 72", false, false),
    ("another string", "0c 04 73 65 63 72", false, false),
    ("an alternative that is unknown", "a2 02 30 00", false, false),
    ("cut off", "16 05 73 65 63 72", false, false),
    ("octets after it", "16 04 73 65 63 72 00", false, true),
    ("nine length octets", "16 89 00 00 00 00 00 00 00 00 01 73", false, true),
];

fn password(e: &Element<'_>) -> Result<Password, Error> {
    match Credentials::read(e)? {
        Credentials::Simple(password) => Ok(password),
        other => panic!("{other:?}"),
    }
}

#[test]
fn passwords_are_read_by_rasn() {
    check_value(PASSWORDS, password);
}

/// Strong and protected credentials, which are kept whole: ours keeps them, rasn writes them.
const KEPT: &[Row] = &[
    ("strong", "a0 02 30 00", true, true),
    ("protected", "a1 02 30 00", true, true),
    ("primitive", "80 01 05", true, true),
    ("malformed inside", "a0 02 30 05", true, true),
    ("of indefinite length", "a0 80 30 00 00 00", true, true),
    ("of indefinite length, with [UNIVERSAL 0] inside", "a0 80 00 01 07 00 00", true, false),
    ("nested deeper than the limit", DEEP, false, true),
    ("octets after it", "a0 02 30 00 00", false, true),
];

/// 40 levels of indefinite length.
const DEEP: &str = "a0 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 \
    30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 \
    30 80 30 80 30 80 30 80 30 80 30 80 30 80 30 80 \
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 \
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 \
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00";

#[test]
fn elements_are_kept_whole_by_ours() {
    check::<Any>(KEPT, |octets| {
        Element::parse(octets).is_ok_and(|e| Credentials::read(&e).is_ok())
    });
}

/// SecurityProblem, an INTEGER. The binds' errors, and the numbers of an operation that is refused and
/// of a queue, are read in the same manner.
const NUMBERS: &[Row] = &[
    ("a number", "02 01 02", true, true),
    ("padded", "02 04 00 00 00 02", true, true),
    ("negative", "02 02 ff ff", true, true),
    ("the longest", "02 08 7f ff ff ff ff ff ff ff", true, true),
    ("the least", "02 08 80 00 00 00 00 00 00 00", true, true),
    ("none", "02 00", false, false),
    ("padded to nine octets", "02 09 00 00 00 00 00 00 00 00 02", false, true),
    ("nine length octets", "02 89 00 00 00 00 00 00 00 00 01 02", false, true),
    ("constructed", "22 03 02 01 02", false, true),
    ("octets after it", "02 01 02 00", false, true),
];

fn security_problem(e: &Element<'_>) -> Result<SecurityProblem, Error> {
    match AccessError::read(12, Some(e))? {
        AccessError::Security(problem) => Ok(problem),
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_are_read_by_rasn_in_the_forms_that_x690_has() {
    check_value(NUMBERS, security_problem);
    check::<i64>(NUMBERS, |octets| {
        let parsed = Element::parse(octets);
        let read = parsed.as_ref().is_ok_and(|e| MtaBindError::read(e).is_ok());
        assert_eq!(parsed.as_ref().is_ok_and(|e| MtsBindError::read(e).is_ok()), read);
        read
    });
    // Why a check is in front: the header within is taken for the two high octets of the number.
    assert_eq!(rasn::ber::decode::<i64>(&octets("22 03 02 01 02")).unwrap(), 0x02_01_02);
    // Of another type: the tag of a bind error is checked, those of the others are not.
    let other = octets("0a 01 02");
    let other = Element::parse(&other).unwrap();
    assert!(MtaBindError::read(&other).is_err());
    assert!(MtsBindError::read(&other).is_err());
    assert_eq!(security_problem(&other), Ok(SecurityProblem(2)));
    // [UNIVERSAL 0] is refused by rasn under whichever length.
    let reserved = Element::parse(&[0, 1, 2]).unwrap();
    assert_eq!(security_problem(&reserved), Ok(SecurityProblem(2)));
    assert!(rasn::ber::decode::<Any>(&[0, 1, 2]).is_err());
}

/// Octets that are read and written come back the same, members in an order that DER does not have too.
#[test]
fn what_rasn_writes_is_in_the_order_of_ours() {
    fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut w = Writer::new();
        write(&mut w);
        w.into_vec()
    }
    let user = "30 10 61 04 13 02 49 54 62 03 13 01 20 83 03 4a 46 43";
    let password = "06 16 04 73 65 63 72";
    for hex in [
        // An MTA with a queue of each priority, a context, and an unknown member with a tag below theirs.
        format!(
            "31 2d 80 02 4d 31 a1 18 31 16 a0 06 80 01 01 81 01 02 a1 03 80 01 00 a2 07 80 01 03 81 02 03 e8 \
             a2 {password} a3 02 31 00 43 01 07"
        ),
        format!("31 1c 60 12 {user} a2 {password}"),
        // A message store's name has a tag above those of the members behind it.
        format!("31 1c a4 12 {user} a2 {password}"),
        "31 0a 80 02 4d 31 a2 04 a0 02 30 00".to_owned(),
    ] {
        let octets = octets(&hex);
        let bind = MtsBind::read(&Element::parse(&octets).unwrap()).unwrap();
        assert_eq!(written(|w| bind.write(w)), octets, "{hex}");
    }
    for hex in [
        format!("a1 16 80 04 4d 54 41 31 a1 {password} a2 02 31 00 83 00 42 00"),
        format!("a1 0e 80 04 4d 54 41 31 a1 {password}"),
        "05 00".to_owned(),
    ] {
        let octets = octets(&hex);
        let bind = MtaBindArgument::read(&Element::parse(&octets).unwrap()).unwrap();
        assert_eq!(written(|w| bind.write(w)), octets, "{hex}");
    }
    let change = octets(&format!("31 10 a0 {password} a1 {password}"));
    let read = ChangeCredentials::read(&Element::parse(&change).unwrap()).unwrap();
    assert_eq!(written(|w| read.write(w)), change);
    for (code, hex) in [
        (1, "05 00"),
        (3, "30 00"),
        (12, "02 02 00 ff"),
        (16, "31 06 81 01 05 82 01 02"),
        (16, "31 07 83 02 01 05 82 01 02"),
        (99, "30 80 00 00"),
    ] {
        let octets = octets(hex);
        let error = AccessError::read(code, Some(&Element::parse(&octets).unwrap())).unwrap();
        assert_eq!(written(|w| error.write_parameter(w)), octets, "{code}: {hex}");
    }
    let none = AccessError::Other { code: 99, parameter: None };
    assert!(written(|w| none.write_parameter(w)).is_empty());
    // What a writer holds already stays in front.
    let after = written(|w| {
        w.raw(&[0x30, 0]);
        MtsBindError::Busy.write(w);
    });
    assert_eq!(after, [0x30, 0, 2, 1, 0]);
    let name = ObjectName::Mta(MtaName::from("M1"));
    assert!(!format!("{:?}", MtsBind::new(name, Credentials::simple("geheim"))).contains("geheim"));
}

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
    ("unauthenticated, with contents", "05 01 00", true, false),
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
        "a password in segments of its own type",
        "a1 10 80 04 4d 54 41 31 a1 08 36 06 16 04 73 65 63 72",
        true,
        false,
    ),
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
fn mta_bind_has_members_that_rasn_does_not_skip() {
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
