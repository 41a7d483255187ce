//! Distribution lists: kept in one value of the store, changed by an operator, untouched by a
//! configuration that is read again.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::api::lists::{LISTS, List, ListChange, ListEdit, ListsError, MAX_VALUE};
use crate::api::operator::Operator;
use crate::commits::pending::{ChangedLists, ListOperation, PendingAnswer};
use crate::context::Context;
use crate::error::CommitError;
use crate::operations::{Operations, wording};
use base::steps::step;
use bytes::Bytes;
use engine::canonical;
use engine::journal::Op;
use p1::names::ORAddress;
use std::collections::BTreeSet;

/// Version of the value, its first octet.
const VERSION: u8 = 1;

impl Operations {
    /// The value of [`LISTS`] found in the store at the start.
    pub(crate) fn recovered_lists(&mut self, cx: &mut Context, value: &[u8]) {
        let read = match value.split_first() {
            Some((&VERSION, rest)) => read(rest).map_err(|e| e.to_string()),
            Some((version, _)) => Err(format!("version {version} is not known")),
            None => Err("it is empty".to_owned()),
        };
        let set = read.and_then(|(lists, removed)| {
            cx.engine.set_lists(&lists).map_err(|error| error.to_string())?;
            let with_removed = cx.engine.lists().clone().with_removed(removed);
            cx.engine.use_lists(with_removed);
            Ok(lists)
        });
        match set {
            Ok(lists) => self.lists = lists,
            Err(error) => {
                let detail = format!("the distribution lists in the store cannot be read: {error}");
                cx.event(LogLevel::Error, Kind::StoreFailed, detail);
            }
        }
    }

    /// All lists.
    pub(crate) fn lists(&self) -> &[List] {
        &self.lists
    }

    /// An operator changes a list, or with `try_only` asks whether that could be done.
    pub(crate) fn change_list(
        &mut self,
        cx: &mut Context,
        request: u64,
        change: &ListChange,
        by: Operator,
        try_only: bool,
    ) {
        let changed = self.changed(cx, change).and_then(|changed| {
            let value = value_of(&changed);
            if value.len() > MAX_VALUE { Err(ListsError::Large) } else { Ok((changed, value)) }
        });
        let (changed, value) = match changed {
            Ok(changed) => changed,
            Err(error) => return cx.output(Output::ListsChanged { request, result: Err(error) }),
        };
        if try_only {
            return cx.output(Output::ListsChanged { request, result: Ok(()) });
        }
        if self.changing_lists {
            let result = Err(ListsError::Busy);
            return cx.output(Output::ListsChanged { request, result });
        }
        self.changing_lists = true;
        let batch = vec![Op::PutMeta { name: LISTS.to_owned(), value: Bytes::from(value) }];
        cx.commit(batch, PendingAnswer::Lists(ListOperation { request, by, changed }));
    }

    /// A change is durable, or not. If it is, gives the canonical address of the list.
    pub(crate) fn lists_committed(
        &mut self,
        cx: &mut Context,
        operation: ListOperation,
        result: Result<(), CommitError>,
    ) -> Option<String> {
        self.changing_lists = false;
        let ListOperation { request, by, changed } = operation;
        let result = result.map_err(|error| ListsError::NotStored(error.into()));
        let done = result.is_ok().then(|| {
            self.lists = changed.lists;
            cx.engine.use_lists(changed.read);
            cx.event(LogLevel::Info, Kind::ListChanged, changed.what).by(&by);
            changed.key
        });
        cx.output(Output::ListsChanged { request, result });
        done
    }

    /// The lists after a change. Only the list that changes is read again.
    fn changed(&self, cx: &Context, change: &ListChange) -> Result<ChangedLists, ListsError> {
        let address = address_of(change.address())?;
        let key = canonical(&address);
        let at = self.lists.iter().position(|list| is_of(list, &key));
        let mut lists = self.lists.clone();
        let (what, list) = match (change, at) {
            (ListChange::Add(_), Some(_)) => return Err(ListsError::Exists(key)),
            (ListChange::Add(list), None) => {
                cx.engine.may_be_list(&address)?;
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
                let what = list.map(|list| apply(list, edit)).transpose()?.unwrap_or_default();
                (what, lists.get(at))
            }
        };
        let read = cx.engine.lists_with(&key, list)?;
        Ok(ChangedLists { key, what, lists, read })
    }
}

/// All lists, and the addresses of those that were removed, which an earlier value does not have.
fn read(value: &[u8]) -> postcard::Result<(Vec<List>, Vec<String>)> {
    let (lists, rest) = postcard::take_from_bytes(value)?;
    let removed = if rest.is_empty() { Vec::new() } else { postcard::from_bytes(rest)? };
    Ok((lists, removed))
}

fn value_of(changed: &ChangedLists) -> Vec<u8> {
    // Plain data into a growing buffer cannot fail.
    postcard::to_extend(&(&changed.lists, changed.read.removed()), vec![VERSION])
        .unwrap_or_default()
}

fn address_of(text: &str) -> Result<ORAddress, ListsError> {
    step();
    let wrong =
        |error| ListsError::Invalid(crate::api::lists::ListError::Address(text.to_owned(), error));
    text.parse::<ORAddress>().map_err(wrong)
}

fn is_of(list: &List, key: &str) -> bool {
    list.address.parse::<ORAddress>().is_ok_and(|address| canonical(&address) == key)
}

/// Changes a list, with one look at each of its members. Gives the change in words.
fn apply(list: &mut List, edit: &ListEdit) -> Result<String, ListsError> {
    let before = List { members: Vec::new(), ..list.clone() };
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    let members = std::mem::take(&mut list.members);
    let known = members.iter().map(|m| Ok((canonical(&address_of(m)?), m.clone())));
    let mut members: Vec<(String, String)> = known.collect::<Result<_, ListsError>>()?;
    let mut keys: BTreeSet<String> = members.iter().map(|(key, _)| key.clone()).collect();
    for member in &edit.remove {
        if !keys.remove(&canonical(&address_of(member)?)) {
            return Err(ListsError::NoMember(member.clone()));
        }
        gone.push(member.as_str());
    }
    members.retain(|(key, _)| keys.contains(key));
    for member in &edit.add {
        let key = canonical(&address_of(member)?);
        if keys.insert(key.clone()) {
            members.push((key, member.clone()));
            new.push(member.as_str());
        }
    }
    list.members = members.into_iter().map(|(_, member)| member).collect();
    if let Some(submit) = &edit.submit {
        list.submit = submit.clone();
    }
    if let Some(reports) = edit.reports {
        list.reports = reports;
    }
    if let Some(owner) = &edit.owner {
        list.owner = Some(owner.clone());
    }
    Ok(wording::changed(&before, list, &new, &gone))
}
