//! The operations of the retrieval port: local codes, arguments and results (X.413 clause 8, X.419).

mod alert;
mod delete;
mod fetch;
mod fetch_parser;
mod list;
mod modify;
mod register;
mod summarize;

pub use alert::AlertArgument;
pub use delete::{DeleteArgument, DeleteItems, DeleteResult};
pub use fetch::{FetchArgument, FetchItem, FetchResult};
pub use fetch_parser::{FetchEvent, FetchResultParser};
pub use list::{ListArgument, ListResult};
pub use modify::{
    EntryModification, Modification, ModifiedEntries, ModifyArgument, ModifyResult,
    OrderedAttribute, OrderedValue,
};
pub use register::{RegisterMsArgument, RegisterMsResult, RegisteredInformation};
pub use summarize::{Span, SummarizeArgument, SummarizeResult, Summary, SummaryValue};

use crate::entry::SequenceNumber;
use crate::limits::MAX_SEQUENCE_NUMBERS;
use crate::wire;
use base::ber::{Element, Error, Tag, Writer};

/// The name of an operation of the retrieval port.
#[must_use]
pub fn name(code: i64) -> &'static str {
    match code {
        SUMMARIZE => "summarize",
        LIST => "list",
        FETCH => "fetch",
        DELETE => "delete",
        REGISTER_MS => "register-MS",
        ALERT => "alert",
        MODIFY => "modify",
        _ => "an operation of P7",
    }
}

/// summarize, invoked by the user.
pub const SUMMARIZE: i64 = 20;
/// list, invoked by the user.
pub const LIST: i64 = 21;
/// fetch, invoked by the user.
pub const FETCH: i64 = 22;
/// delete, invoked by the user.
pub const DELETE: i64 = 23;
/// register-MS, invoked by the user.
pub const REGISTER_MS: i64 = 24;
/// alert, invoked by the store. Its result is NULL.
pub const ALERT: i64 = 25;
/// modify, invoked by the user (1994).
pub const MODIFY: i64 = 26;

/// The result of an operation that returns nothing but success: NULL. That of alert, and in a context
/// of 1988 those of delete and register-MS.
pub const EMPTY_RESULT: [u8; 2] = [5, 0];

/// `[n]` of a SET OF or SEQUENCE OF SequenceNumber.
pub(crate) fn numbers(e: &Element<'_>, tag: Tag) -> Result<Vec<SequenceNumber>, Error> {
    wire::list(e, tag, MAX_SEQUENCE_NUMBERS, SequenceNumber::read)
}

/// Writes `[n]` of a list of SequenceNumber, unless it is empty.
pub(crate) fn write_numbers(w: &mut Writer, n: u32, tag: Tag, all: &[SequenceNumber]) {
    wire::write_some(w, n, tag, all, SequenceNumber::write);
}
