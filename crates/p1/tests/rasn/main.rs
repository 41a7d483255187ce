//! What rasn 0.30 makes of binds, of P3's errors and of the APDUs around them, as data: the reason
//! why their readers are ours.
//!
//! Four things stand against it. A member that the type does not know is refused, in a type marked
//! extensible too: X.411 wants it passed over, and ours keeps it. A SET with an untagged CHOICE is
//! refused whole. A DEFAULT member of a SET is mandatory to it. And an INTEGER may be constructed, and octets
//! may follow the value. A check in front that finds unknown members, puts strings together and
//! names fields has read all there is; nothing is left for a second decoder to do.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails, in helpers too")]

mod access;
mod upper;

use rasn::Decode;

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
