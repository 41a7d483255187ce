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
    /// A configured peer MTA: its index in the configuration.
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
