//! What the interface needs of a message store and an MTA.

use std::path::PathBuf;

use crate::draft::Draft;
use crate::model::{BookEntry, Counts, From, Number, Opened, Page, Query, Row, Sent, Who};

/// Why an operation failed. Each text is complete: what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// No association: the interface binds again by itself.
    #[error("the connection is lost ({0}); it is tried again")]
    Lost(String),
    /// The bind was refused for good: another attempt cannot succeed.
    #[error("{0}")]
    Refused(String),
    /// The entry is not in the mailbox: deleted by another client, or by a rule.
    #[error("message {0} is no longer in the mailbox; press F5 to list it again")]
    Gone(Number),
    /// All of the message was sent and the answer was lost: the MTA has it or not. Sending the same
    /// draft again is harmless.
    #[error(
        "IN DOUBT: the answer was lost ({0}). Send the same message again: the MTA accepts it once"
    )]
    InDoubt(String),
    /// This one operation failed.
    #[error("{0}")]
    Failed(String),
}

/// A message store and an MTA, as one user. All calls may be in progress at once; an implementation
/// orders them on its associations. None is called before [`Backend::connect`] succeeded once, except
/// [`Backend::who`], [`Backend::book`] and [`Backend::sent`].
#[expect(async_fn_in_trait, reason = "everything runs in one thread: no future has to be Send")]
pub trait Backend: 'static {
    /// Whose mailbox it is.
    fn who(&self) -> Who;

    /// Binds, or does nothing where it is bound.
    ///
    /// # Errors
    /// [`BackendError::Lost`] or [`BackendError::Refused`].
    async fn connect(&self) -> Result<(), BackendError>;

    /// Up to `count` rows of those that match.
    ///
    /// # Errors
    /// The store cannot be reached, or refuses.
    async fn list(&self, query: Query, from: From, count: usize) -> Result<Page, BackendError>;

    /// How many messages there are.
    ///
    /// # Errors
    /// The store cannot be reached, or refuses.
    async fn counts(&self) -> Result<Counts, BackendError>;

    /// Fetches a message; its status is processed from now on.
    ///
    /// # Errors
    /// [`BackendError::Gone`] and others.
    async fn open(&self, number: Number) -> Result<Opened, BackendError>;

    /// Writes the files of a message into a directory, under names that are safe here, and overwrites
    /// nothing. Returns the paths.
    ///
    /// # Errors
    /// [`BackendError::Gone`], a file that cannot be written, and others.
    async fn extract(&self, number: Number, to: PathBuf) -> Result<Vec<PathBuf>, BackendError>;

    /// Deletes an entry.
    ///
    /// # Errors
    /// [`BackendError::Gone`] and others.
    async fn delete(&self, number: Number) -> Result<(), BackendError>;

    /// What the user should know before the draft is submitted (that nobody knows a domain, for instance), one
    /// line each.
    ///
    /// # Errors
    /// It cannot be submitted as it is: [`BackendError::Failed`] names what to change.
    async fn check(&self, draft: &Draft) -> Result<Vec<String>, BackendError>;

    /// Submits, and returns once the MTA has accepted it.
    ///
    /// # Errors
    /// [`BackendError::InDoubt`] and others.
    async fn submit(&self, draft: Draft) -> Result<(), BackendError>;

    /// Sends the notification of receipt that the originator asked for.
    ///
    /// # Errors
    /// [`BackendError::Gone`] and others.
    async fn acknowledge(&self, number: Number) -> Result<(), BackendError>;

    /// The latest messages sent, the newest first, up to `count`.
    ///
    /// # Errors
    /// They cannot be read.
    async fn sent(&self, count: usize) -> Result<Vec<Sent>, BackendError>;

    /// The address book.
    ///
    /// # Errors
    /// It cannot be read.
    async fn book(&self) -> Result<Vec<BookEntry>, BackendError>;

    /// Waits for the next entry that arrives.
    ///
    /// # Errors
    /// [`BackendError::Lost`] when the association ends.
    async fn alert(&self) -> Result<Row, BackendError>;

    /// Ends the associations.
    async fn close(&self);
}
