//! What a node would meet at its database, before it starts.

use crate::fault::DatabaseFault;
use crate::identity::{IDENTITY, Identity};
use crate::place::key_of;
use postgres_store::Surveyor;
use std::path::Path;
use store::StoreError;

/// What a node would meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// What the database promises, in sentences.
    pub promises: Vec<String>,
    /// Why a node would not start, with what is to be done.
    pub error: Option<String>,
    /// What kind of an error that is; `None` for one that has nothing to do with the database itself.
    pub fault: Option<DatabaseFault>,
}

impl Examined {
    /// Nothing could be asked.
    #[must_use]
    pub fn failed(error: &StoreError) -> Examined {
        let fault = Some(DatabaseFault::from_error(error));
        Examined { error: Some(error.to_string()), fault, ..Examined::default() }
    }
}

/// Asks a database, as a node of this name with this data directory, or as a process that is alone.
#[must_use]
pub fn examine(surveyor: &Surveyor, own: &Identity, node: Option<(&str, &Path)>) -> Examined {
    let promises = match surveyor.durability() {
        Ok(promises) => promises.sentences(),
        Err(error) => return Examined::failed(&error),
    };
    let found = ask(surveyor, own, node);
    let failed = found.map_or_else(
        |error| Examined::failed(&error),
        |error| Examined { error, ..Examined::default() },
    );
    Examined { promises, ..failed }
}

fn ask(
    surveyor: &Surveyor,
    own: &Identity,
    node: Option<(&str, &Path)>,
) -> Result<Option<String>, StoreError> {
    surveyor.check()?;
    // A process that is alone gives the site its name.
    let Some((node, data_dir)) = node else { return Ok(None) };
    if let Some(recorded) = surveyor.value(IDENTITY)?
        && let Err(other) = own.compare(&recorded)
    {
        return Ok(Some(other.to_string()));
    }
    let holder = surveyor.holder(node)?;
    let elsewhere = holder.filter(|holder| holder.key.is_none() || holder.key != key_of(data_dir));
    Ok(elsewhere.map(|holder| {
        format!(
            "node {node} runs already ({}), and its lease lasts: give this one another name (node of [cluster])",
            holder.words
        )
    }))
}
