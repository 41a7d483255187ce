//! A change is made to a list.

use super::{List, ListChange, ListEdit, ListError, ListsError, wording};
use base::steps::step;
use engine::lists::definition::Lists;
use engine::{Engine, canonical};
use p1::names::ORAddress;
use std::collections::BTreeSet;

/// Distribution lists after a change.
#[derive(Debug)]
pub struct ChangedLists {
    /// The canonical address of the list that changes.
    pub key: String,
    /// The change, for the log.
    pub what: String,
    /// All lists as they are stored.
    pub lists: Vec<List>,
    /// And as they are used.
    pub read: Lists,
}

/// All lists after a change. Only the list that changes is read again.
///
/// # Errors
/// The change cannot be made.
pub fn changed(
    engine: &Engine,
    now: &[List],
    change: &ListChange,
) -> Result<ChangedLists, ListsError> {
    let address = address_of(change.address())?;
    let key = canonical(&address);
    let at = now.iter().position(|list| is_of(list, &key));
    let mut lists = now.to_vec();
    let (what, list) = match (change, at) {
        (ListChange::Add(_), Some(_)) => return Err(ListsError::Exists(key)),
        (ListChange::Add(list), None) => {
            engine.may_be_list(&address)?;
            lists.push(list.clone());
            (wording::added(list), lists.last())
        }
        (_, None) => return Err(ListsError::None(change.address().to_owned())),
        (ListChange::Remove { address }, Some(at)) => {
            lists.remove(at);
            (format!("{address} removed"), None)
        }
        (ListChange::Change { edit, .. }, Some(at)) => {
            let list = lists.get_mut(at);
            let what = list.map(|list| edit.apply(list)).transpose()?.unwrap_or_default();
            (what, lists.get(at))
        }
    };
    let read = engine.lists_with(&key, list)?;
    Ok(ChangedLists { key, what, lists, read })
}

impl ListEdit {
    /// Changes a list, with one look at each of its members. Gives the change in words.
    ///
    /// # Errors
    /// An address is not valid, or who is to leave is not a member. The list is of no use then.
    pub fn apply(&self, list: &mut List) -> Result<String, ListsError> {
        let before = List { members: Vec::new(), ..list.clone() };
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        let members = std::mem::take(&mut list.members);
        let known = members.iter().map(|m| Ok((canonical(&address_of(m)?), m.clone())));
        let mut members: Vec<(String, String)> = known.collect::<Result<_, ListsError>>()?;
        let mut keys: BTreeSet<String> = members.iter().map(|(key, _)| key.clone()).collect();
        for member in &self.remove {
            if !keys.remove(&canonical(&address_of(member)?)) {
                return Err(ListsError::NoMember(member.clone()));
            }
            gone.push(member.as_str());
        }
        members.retain(|(key, _)| keys.contains(key));
        for member in &self.add {
            let key = canonical(&address_of(member)?);
            if keys.insert(key.clone()) {
                members.push((key, member.clone()));
                new.push(member.as_str());
            }
        }
        list.members = members.into_iter().map(|(_, member)| member).collect();
        if let Some(submit) = &self.submit {
            list.submit = submit.clone();
        }
        if let Some(reports) = self.reports {
            list.reports = reports;
        }
        if let Some(owner) = &self.owner {
            list.owner = Some(owner.clone());
        }
        Ok(wording::changed(&before, list, &new, &gone))
    }
}

/// An O/R address that an operator wrote.
fn address_of(text: &str) -> Result<ORAddress, ListsError> {
    step();
    let wrong = |error| ListsError::Invalid(ListError::Address(text.to_owned(), error));
    text.parse::<ORAddress>().map_err(wrong)
}

/// Whether a list has this canonical address.
fn is_of(list: &List, key: &str) -> bool {
    list.address.parse::<ORAddress>().is_ok_and(|address| canonical(&address) == key)
}
