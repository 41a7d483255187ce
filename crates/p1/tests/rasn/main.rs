//! What rasn 0.30 makes of binds, of P3's errors and of the APDUs around them, as data: what it reads
//! in production, and what is ours in front of it.
//!
//! rasn reads passwords and the numbers of errors and queues, and writes binds, the change of credentials
//! and the parameters of errors whole. `access.rs` has who accepts which octets, value by value.
//!
//! SETs, and the APDUs of `upper.rs`, are not read by it. A member that the type does not know is refused, in
//! a type marked extensible too: X.411 wants it passed over, and ours keeps it. A SET with an untagged
//! CHOICE is refused whole, and a DEFAULT member of a SET is mandatory. An INTEGER may be constructed, and octets
//! may follow the value.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends where it fails, in helpers too"
)]

mod access;
mod upper;

use base::ber::{Element, Error};
use rasn::Decode;
use std::fmt::Debug;

/// Octets and who accepts them: what they show, the octets in hexadecimal, ours, rasn.
type Row = (&'static str, &'static str, bool, bool);

fn octets(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect()
}

/// Checks rows against our reader and rasn's of the type `T`.
fn check<T: Decode>(rows: &[Row], ours: impl Fn(&[u8]) -> bool) {
    for (what, hex, our, their) in rows {
        let octets = octets(hex);
        let found = (ours(&octets), rasn::ber::decode::<T>(&octets).is_ok());
        assert_eq!(found, (*our, *their), "{what}: ours, rasn");
    }
}

/// Checks rows against our reader of a type that rasn reads: what both accept is the same value.
fn check_value<T: Decode + PartialEq + Debug>(
    rows: &[Row],
    ours: impl Fn(&Element<'_>) -> Result<T, Error>,
) {
    check::<T>(rows, |octets| Element::parse(octets).and_then(|e| ours(&e)).is_ok());
    for (what, hex, ..) in rows.iter().filter(|(_, _, our, their)| *our && *their) {
        let octets = octets(hex);
        let our = Element::parse(&octets).and_then(|e| ours(&e));
        assert_eq!(our, Ok(rasn::ber::decode(&octets).unwrap()), "{what}");
    }
}
