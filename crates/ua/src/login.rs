//! Where a user binds, and as whom.

use osi::api::Selectors;
use p1::SecurityLabel;
use p1::bind::Password;
use p1::names::ORName;
use std::time::Duration;

/// Default of the longest wait for an answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// The MTA and the user to bind as.
#[derive(Clone, Debug)]
pub struct Login {
    /// Host and port of the MTA's listener: that of P3 for [`crate::User::bind`], that of P7 for
    /// [`crate::store::Store::bind`].
    pub mta: String,
    /// The user's O/R name.
    pub user: ORName,
    /// Its password.
    pub password: Password,
    /// Selectors of the MTA, if it requires any.
    pub called: Selectors,
    /// Longest wait for an answer once the MTA's TCP has acknowledged the whole request. After
    /// that the association is aborted, and the request ends with [`crate::Lost`].
    pub answer_timeout: Duration,
    /// The edition of P7, of which the bind proposes the application context. P3 does not use it.
    pub edition: Edition,
    /// message-security-label of what is submitted without one.
    pub label: Option<SecurityLabel>,
}

/// The edition of the message store's protocol (X.419 annex C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edition {
    /// 1988, which every store has.
    #[default]
    Of1988,
    /// 1994.
    Of1994,
}
