//! Identifiers that the node gives out.

use base::AssociationId;
use engine::journal::SpoolId;

/// The last of each kind that was given out.
#[derive(Debug, Default)]
pub(crate) struct Issued {
    pub(crate) token: u64,
    pub(crate) association: u64,
    pub(crate) spool: u64,
    pub(crate) reference: u64,
}

impl Issued {
    /// An identifier for a new association.
    pub(crate) fn next_association(&mut self) -> AssociationId {
        self.association += 1;
        AssociationId(self.association)
    }

    /// A number for a transfer, unlike that of any token.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.token += 1;
        self.token
    }

    pub(crate) fn next_spool(&mut self) -> SpoolId {
        self.spool += 1;
        SpoolId(self.spool)
    }

    /// A number for a session connection reference, unique with the epoch.
    pub(crate) fn next_reference(&mut self) -> u64 {
        self.reference += 1;
        self.reference
    }
}
