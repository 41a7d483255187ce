//! AARQ (X.227), RTORQ (X.228) and CP (X.226): octets as peers send them.
//!
//! No reader of ours is here: these belong to the stack, which reads every row, and passes over
//! the members it does not know.

use super::octets;
use rasn::prelude::*;

/// AARQ-apdu, with the members that peers of X.400 send. X.227 has it extensible.
#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(tag(application, 0))]
#[non_exhaustive]
struct Aarq {
    #[rasn(tag(0))]
    protocol_version: Option<BitString>,
    #[rasn(tag(explicit(1)))]
    application_context_name: ObjectIdentifier,
    #[rasn(tag(30))]
    user_information: Option<SequenceOf<Any>>,
}

/// RTORQapdu: a SET with three DEFAULTs.
#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(set, tag(16))]
struct Rtorq {
    #[rasn(tag(0), default = "ten")]
    checkpoint_size: i64,
    #[rasn(tag(1), default = "three")]
    window_size: i64,
    #[rasn(tag(2), default = "monologue")]
    dialogue_mode: i64,
    #[rasn(tag(explicit(3)))]
    connection_data: Any,
}

fn ten() -> i64 {
    10
}

fn three() -> i64 {
    3
}

fn monologue() -> i64 {
    0
}

/// CP-type: a SET of a mode and one of two kinds of parameters.
#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(set)]
struct Cp {
    #[rasn(tag(0))]
    mode_selector: Mode,
    #[rasn(tag(2))]
    normal_mode: Option<NormalMode>,
}

#[derive(AsnType, Decode, Encode, Debug)]
#[rasn(set)]
struct Mode {
    #[rasn(tag(0))]
    number: i64,
}

#[derive(AsnType, Decode, Encode, Debug)]
struct NormalMode {
    #[rasn(tag(1))]
    calling_selector: Option<OctetString>,
    #[rasn(tag(4))]
    contexts: Option<SequenceOf<Any>>,
}

/// That rasn refuses the octets, and how it puts it.
fn refused<T: Decode + std::fmt::Debug>(hex: &str, why: &str) {
    let message = rasn::ber::decode::<T>(&octets(hex)).unwrap_err().to_string();
    assert!(message.starts_with(why), "{hex}: {message}");
}

#[test]
fn an_aarq_with_members_that_are_unknown() {
    // The application context mts-transfer alone, and with user information.
    for hex in ["60 08 a1 06 06 04 56 00 01 06", "60 0c a1 06 06 04 56 00 01 06 be 02 28 00"] {
        assert!(rasn::ber::decode::<Aarq>(&octets(hex)).is_ok(), "{hex}");
    }
    let extra = "Unexpected extra data found";
    // A called AP title [2], which this type does not list.
    refused::<Aarq>("60 12 a1 06 06 04 56 00 01 06 a2 04 06 02 51 01 be 02 28 00", extra);
    // A member of a later edition, at the end.
    refused::<Aarq>("60 0d a1 06 06 04 56 00 01 06 bf 3f 02 05 00", extra);
}

#[test]
fn an_rtorq_with_defaults() {
    // Every member is there; with a DEFAULT left out the SET is refused.
    let all = "b0 0d 80 01 3f 81 01 05 82 01 01 a3 02 a0 00";
    let Rtorq { checkpoint_size, window_size, dialogue_mode, connection_data } =
        rasn::ber::decode(&octets(all)).unwrap();
    assert_eq!((checkpoint_size, window_size, dialogue_mode), (63, 5, 1));
    assert_eq!(connection_data.as_bytes(), [0xa0, 0]);
    // As the vector bind-ia5 has it: the window and the dialogue mode are the defaults.
    refused::<Rtorq>("b0 07 80 01 3f a3 02 a0 00", "Missing field `window_size`");
    refused::<Rtorq>("b0 07 a3 02 a0 00 80 01 3f", "Missing field `window_size`");
    refused::<Rtorq>("b0 04 a3 02 a0 00", "Missing field `checkpoint_size`");
    // A member that is unknown.
    let unknown = "b0 10 80 01 3f 81 01 05 82 01 01 a3 02 a0 00 84 01 0c";
    refused::<Rtorq>(unknown, "No valid choice for `RtorqFields`");
}

#[test]
fn a_cp_with_members_that_are_unknown() {
    // In either order.
    for hex in
        ["31 0c a0 03 80 01 01 a2 05 81 03 41 42 43", "31 0c a2 05 81 03 41 42 43 a0 03 80 01 01"]
    {
        let cp: Cp = rasn::ber::decode(&octets(hex)).unwrap();
        let normal = cp.normal_mode.unwrap();
        assert_eq!((cp.mode_selector.number, normal.contexts), (1, None));
        assert_eq!(normal.calling_selector.unwrap().as_ref(), b"ABC");
    }
    // A member that is unknown: of the SET, of the mode, of the parameters first and last.
    let set = "31 0f a0 03 80 01 01 a2 05 81 03 41 42 43 83 01 00";
    refused::<Cp>(set, "No valid choice for `CpFields`");
    let mode = "31 0f a0 06 80 01 01 81 01 00 a2 05 81 03 41 42 43";
    refused::<Cp>(mode, "No valid choice for `ModeFields`");
    for parameters in [
        "31 0d a0 03 80 01 01 a2 06 80 01 00 81 01 41",
        "31 0f a0 03 80 01 01 a2 08 81 03 41 42 43 88 01 00",
    ] {
        refused::<Cp>(parameters, "Unexpected extra data found");
    }
}
