//! What an operator changes of distribution lists. A change is durable before it is answered.

mod editing;
mod value;
pub mod wording;

pub use editing::{ChangedLists, changed};
pub use value::{read_value, value};

use crate::error::EdgeError;
pub use engine::lists::definition::{List, ListError, MAX_MEMBERS, ReportPolicy, SubmitPermission};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of the value in the store that has all lists.
pub const LISTS: &str = "lists";

/// Longest value, octets.
pub const MAX_VALUE: usize = 8 << 20;

/// A change of one list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListChange {
    /// A new list.
    Add(List),
    /// Another definition of a list.
    Change {
        /// Its address.
        address: String,
        /// What changes.
        edit: ListEdit,
    },
    /// The list goes.
    Remove {
        /// Its address.
        address: String,
    },
}

impl ListChange {
    /// The list, as the operator named it.
    #[must_use]
    pub fn address(&self) -> &str {
        match self {
            ListChange::Add(list) => &list.address,
            ListChange::Change { address, .. } | ListChange::Remove { address } => address,
        }
    }
}

/// What changes of a list; the rest stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListEdit {
    /// New members.
    pub add: Vec<String>,
    /// Members no longer.
    pub remove: Vec<String>,
    /// Who may send to it.
    pub submit: Option<SubmitPermission>,
    /// Who gets the reports about members.
    pub reports: Option<ReportPolicy>,
    /// Its owner.
    pub owner: Option<String>,
}

/// No list was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ListsError {
    /// The definition is not valid.
    #[error(transparent)]
    Invalid(#[from] ListError),
    /// There is a list of this address.
    #[error("there is a list {0} already: `mta list change` changes it")]
    Exists(String),
    /// There is none.
    #[error("there is no list {0}: `mta list show` shows them")]
    None(String),
    /// It has no such member.
    #[error("{0} is not a member of it")]
    NoMember(String),
    /// All lists together are too long for the store.
    #[error("all lists together have more than {MAX_VALUE} octets")]
    Large,
    /// Another change is not durable yet.
    #[error("another change of a list is being stored: try again")]
    Busy,
    /// It could not be made durable.
    #[error(transparent)]
    NotStored(EdgeError),
}
