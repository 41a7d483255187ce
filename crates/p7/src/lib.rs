//! P7: access of a user to a message store (X.413), in the application contexts of 1988 and 1994.
//! *Store* in this crate is the message store, and *entry* one of its entries.
//!
//! The operations are ROSE invocations. Here are the bind, their arguments, results and errors, each
//! with `read`, which takes one BER element, and `write`, which appends one: a store reads arguments and
//! writes results, a client the reverse. Invocation identifiers and the ROSE frame belong to the layer
//! below. Submission and administration are P3's operations (`p1::p3`).
//!
//! Every `[n]` of MSAbstractService is explicit, but for security-context: its module has no IMPLICIT
//! TAGS. Members that were added in 1994 are optional; in a context of 1988 they are absent.
//! A member that a type does not know is skipped, for nothing here is relayed. Lengths, depths and
//! counts have limits: see [`limits`].
//!
//! No octets of another implementation were at hand. The tags follow the published module of X.413
//! (1999); bounds, matching and attribute syntaxes that come from memory are marked *unproven*.
//! `docs/conformance.md` lists what tshark proves.

pub mod attributes;
pub mod auto_action;
pub mod auto_forward;
pub mod bind;
pub mod entry;
pub mod error;
pub mod extension;
pub mod filter;
pub mod limits;
pub mod matching;
mod named;
pub mod operation;
pub mod registration;
pub mod selector;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod value;
mod wire;

pub use bind::{BindProblem, MsBindArgument, MsBindError, MsBindResult, Restrictions};
pub use entry::{
    Attribute, EntryClass, EntryInformation, EntryType, RetrievalStatus, SequenceNumber,
};
pub use error::{AttributeProblem, AttributeProblemItem, MsError};
pub use extension::MsExtension;
pub use filter::{Filter, FilterItem};
pub use selector::{AttributeSelection, Range, Selector};
pub use value::Value;
