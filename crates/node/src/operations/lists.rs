//! Distribution lists: kept in one value of the store, changed by an operator, untouched by a
//! configuration that is read again.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::api::lists::{LISTS, List, ListChange, ListEdit, ListsError, MAX_VALUE};
use crate::api::operator::Operator;
use crate::commits::pending::{ListOperation, PendingAnswer};
use crate::context::Context;
use crate::error::CommitError;
use crate::operations::Operations;
use bytes::Bytes;
use engine::canonical;
use engine::journal::Op;
use p1::names::ORAddress;

/// Version of the value, its first octet.
const VERSION: u8 = 1;

impl Operations {
    /// The value of [`LISTS`] found in the store at the start.
    pub(crate) fn recovered_lists(&mut self, cx: &mut Context, value: &[u8]) {
        let read = match value.split_first() {
            Some((&VERSION, rest)) => {
                postcard::from_bytes::<Vec<List>>(rest).map_err(|e| e.to_string())
            }
            Some((version, _)) => Err(format!("version {version} is not known")),
            None => Err("it is empty".to_owned()),
        };
        let set = read.and_then(|lists| {
            cx.engine.set_lists(&lists).map_err(|error| error.to_string())?;
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
        let changed = self.changed(cx, change).and_then(|new| {
            let mut value = vec![VERSION];
            // Plain data into a growing buffer cannot fail.
            value = postcard::to_extend(&new, value).unwrap_or_default();
            if value.len() > MAX_VALUE { Err(ListsError::Large) } else { Ok((new, value)) }
        });
        let (new, value) = match changed {
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
        let what = in_words(change);
        let batch = vec![Op::PutMeta { name: LISTS.to_owned(), value: Bytes::from(value) }];
        cx.commit(batch, PendingAnswer::Lists(ListOperation { request, by, what, new }));
    }

    /// A change is durable, or not. Whether it is.
    pub(crate) fn lists_committed(
        &mut self,
        cx: &mut Context,
        operation: ListOperation,
        result: Result<(), CommitError>,
    ) -> bool {
        self.changing_lists = false;
        let ListOperation { request, by, what, new } = operation;
        let result = match result {
            Err(error) => Err(ListsError::NotStored(error.into())),
            Ok(()) => cx.engine.set_lists(&new).map_err(ListsError::from),
        };
        let done = result.is_ok();
        if done {
            self.lists = new;
            cx.event(LogLevel::Info, Kind::ListChanged, what).by(&by);
        }
        cx.output(Output::ListsChanged { request, result });
        done
    }

    /// The lists after a change.
    fn changed(&self, cx: &Context, change: &ListChange) -> Result<Vec<List>, ListsError> {
        let address = address_of(change.address())?;
        let key = canonical(&address);
        let at = self.lists.iter().position(|list| is_of(list, &key));
        let mut new = self.lists.clone();
        match (change, at) {
            (ListChange::Add(_), Some(_)) => return Err(ListsError::Exists(key)),
            (ListChange::Add(list), None) => {
                cx.engine.may_be_list(&address)?;
                new.push(list.clone());
            }
            (_, None) => return Err(ListsError::None(change.address().to_owned())),
            (ListChange::Remove { .. }, Some(at)) => _ = new.remove(at),
            (ListChange::Change { edit, .. }, Some(at)) => {
                if let Some(list) = new.get_mut(at) {
                    apply(list, edit)?;
                }
            }
        }
        engine::lists::check(&new)?;
        Ok(new)
    }
}

fn address_of(text: &str) -> Result<ORAddress, ListsError> {
    let wrong =
        |error| ListsError::Invalid(crate::api::lists::ListError::Address(text.to_owned(), error));
    text.parse::<ORAddress>().map_err(wrong)
}

fn is_of(list: &List, key: &str) -> bool {
    list.address.parse::<ORAddress>().is_ok_and(|address| canonical(&address) == key)
}

fn apply(list: &mut List, edit: &ListEdit) -> Result<(), ListsError> {
    for member in &edit.remove {
        let gone = canonical(&address_of(member)?);
        let before = list.members.len();
        list.members.retain(|m| address_of(m).is_ok_and(|m| canonical(&m) != gone));
        if list.members.len() == before {
            return Err(ListsError::NoMember(member.clone()));
        }
    }
    for member in &edit.add {
        let new = canonical(&address_of(member)?);
        if !list.members.iter().any(|m| address_of(m).is_ok_and(|m| canonical(&m) == new)) {
            list.members.push(member.clone());
        }
    }
    if let Some(submit) = &edit.submit {
        list.submit = submit.clone();
    }
    if let Some(reports) = edit.reports {
        list.reports = reports;
    }
    if let Some(owner) = &edit.owner {
        list.owner = Some(owner.clone());
    }
    Ok(())
}

/// For the log.
fn in_words(change: &ListChange) -> String {
    match change {
        ListChange::Add(list) => format!("{} with {} members", list.address, list.members.len()),
        ListChange::Remove { address } => format!("{address} removed"),
        ListChange::Change { address, edit } => {
            let (more, fewer) = (edit.add.len(), edit.remove.len());
            format!("{address}: {more} members more, {fewer} fewer")
        }
    }
}
