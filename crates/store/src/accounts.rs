//! The users of an MTA in a database that several nodes share: one row each.
//!
//! Each call is one change of one row, so of two changes at once neither is lost: whoever sets a password leaves the
//! way of delivery, and the other way round.

use crate::error::StoreError;

/// A user.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The canonical address.
    pub address: String,
    /// The hash of the password, a PHC string.
    pub hash: String,
    /// Messages go into the mailbox of the message store; otherwise they wait for the user.
    pub is_stored: bool,
}

impl std::fmt::Debug for Account {
    /// Without the hash.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Account").field(&self.address).finish()
    }
}

/// The table of users. All calls block on the database, and each has a time limit. Whoever changes a row notifies the
/// nodes of the site.
pub trait Accounts: Send + Sync + std::fmt::Debug {
    /// All users.
    ///
    /// # Errors
    /// Those of the engine.
    fn accounts(&self) -> Result<Vec<Account>, StoreError>;

    /// Adds a user, or sets the password of one who is there, and the way of delivery if one is given: it stays as it
    /// is otherwise, and is not the mailbox for a new user. Gives whether the user is new.
    ///
    /// # Errors
    /// Those of the engine.
    fn put_account(
        &self,
        address: &str,
        hash: &str,
        is_stored: Option<bool>,
    ) -> Result<bool, StoreError>;

    /// Replaces a password, if its hash is `before` still. Gives whether it was.
    ///
    /// # Errors
    /// Those of the engine: it may have been replaced or not.
    fn replace_hash(&self, address: &str, before: &str, hash: &str) -> Result<bool, StoreError>;

    /// Sets the way of delivery. Gives whether there is such a user.
    ///
    /// # Errors
    /// Those of the engine.
    fn set_stored(&self, address: &str, is_stored: bool) -> Result<bool, StoreError>;

    /// Removes a user. Gives whether there was one.
    ///
    /// # Errors
    /// Those of the engine.
    fn remove_account(&self, address: &str) -> Result<bool, StoreError>;

    /// Adds those who are not there, all or none, and leaves the others as they are. Gives how many were added.
    ///
    /// # Errors
    /// Those of the engine.
    fn add_missing(&self, accounts: &[Account]) -> Result<usize, StoreError>;
}
