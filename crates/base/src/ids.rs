//! Small identifiers that several crates exchange. All are local to one MTA.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $int);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }
    };
}

id!(
    /// One association (and the transport connection below it), unique while the MTA runs.
    AssociationId(u64),
    "a"
);
id!(
    /// A configured peer MTA: derived from its name ([`PeerId::of_name`]), because queue entries
    /// outlive the order of a configuration file.
    PeerId(u32),
    "p"
);
id!(
    /// One copy of a message, probe or report in the durable queue: unique for the store's life.
    EntryId(u64),
    "e"
);
id!(
    /// One stored content, shared by the copies made of it: unique for the store's life.
    BodyId(u64),
    "b"
);

impl PeerId {
    /// The identifier of the peer of this name: the 32-bit FNV-1a hash. A configuration in which
    /// two names have the same one is refused.
    pub fn of_name(name: &str) -> PeerId {
        let step = |hash: u32, octet: u8| (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193);
        PeerId(name.bytes().fold(0x811c_9dc5, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_identifiers_are_those_of_fnv_1a() {
        // Vectors published with the algorithm.
        assert_eq!(PeerId::of_name(""), PeerId(0x811c_9dc5));
        assert_eq!(PeerId::of_name("a"), PeerId(0xe40c_292c));
        assert_eq!(PeerId::of_name("foobar"), PeerId(0xbf9c_f968));
    }
}
