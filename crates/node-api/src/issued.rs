//! Identifiers that the node gives out.

use crate::ids::Token;
use base::AssociationId;
use engine::journal::SpoolId;

/// The last identifier of each kind that was given out.
#[derive(Debug, Default)]
pub struct Issued {
    token: u64,
    association: u64,
    spool: u64,
    reference: u64,
}

impl Issued {
    /// An identifier for a new association.
    pub fn next_association(&mut self) -> AssociationId {
        self.association += 1;
        AssociationId(self.association)
    }

    /// A token for a question.
    pub fn next_token(&mut self) -> Token {
        Token(self.next_number())
    }

    /// A number for a transfer, different from that of any token.
    pub fn next_number(&mut self) -> u64 {
        self.token += 1;
        self.token
    }

    /// An identifier for a new spool.
    pub fn next_spool(&mut self) -> SpoolId {
        self.spool += 1;
        SpoolId(self.spool)
    }

    /// Spools of an earlier run have the numbers up to this one.
    pub fn use_spools_after(&mut self, last: SpoolId) {
        self.spool = self.spool.max(last.0);
    }

    /// A number for a session connection reference, unique with the epoch.
    pub fn next_reference(&mut self) -> u64 {
        self.reference += 1;
        self.reference
    }

    /// The last token and association.
    #[cfg(debug_assertions)]
    pub fn last(&self) -> (u64, u64) {
        (self.token, self.association)
    }
}
