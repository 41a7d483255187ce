//! Distribution lists: kept in one value of the store, changed by an operator, untouched by a
//! configuration that is read again.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::api::lists::{self, LISTS, List, ListChange, ListsError, MAX_VALUE};
use crate::api::operator::Operator;
use crate::commits::pending::{ListOperation, PendingAnswer};
use crate::context::Context;
use crate::error::CommitError;
use crate::operations::Operations;
use bytes::Bytes;
use engine::journal::KnownValue;

impl Operations {
    /// The value of [`LISTS`] found in the store at the start.
    pub(crate) fn recovered_lists(&mut self, cx: &mut Context, value: &[u8]) {
        self.known_lists = KnownValue::from_octets(value);
        if value.is_empty() {
            return; // there is none, and was none
        }
        let set = lists::read_value(value).and_then(|(lists, removed)| {
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
        let changed = lists::changed(&cx.engine, &self.lists, change).and_then(|changed| {
            let value = lists::value(&changed.lists, changed.read.removed());
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
        let batch = vec![self.known_lists.replace(LISTS, Bytes::from(value))];
        let change = Box::new(change.clone());
        cx.commit(batch, PendingAnswer::Lists(ListOperation { request, by, change, changed }));
    }

    /// Another node has changed the lists meanwhile, which are known by now: the same change of these.
    pub(crate) fn change_lists_again(&mut self, cx: &mut Context, operation: ListOperation) {
        self.changing_lists = false;
        let ListOperation { request, by, change, .. } = operation;
        self.change_list(cx, request, &change, by, false);
    }

    /// A change is durable, or not. If it is, gives the canonical address of the list.
    pub(crate) fn lists_committed(
        &mut self,
        cx: &mut Context,
        operation: ListOperation,
        result: Result<(), CommitError>,
    ) -> Option<String> {
        self.changing_lists = false;
        let ListOperation { request, by, changed, .. } = operation;
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
}
