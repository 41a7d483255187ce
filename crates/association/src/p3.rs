//! The data of an association of a user: P3, or P7 with a message store.

use base::{BodyId, Instant};
use mailbox::machine::Response;
use node_api::ids::ListenerId;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Longest wait for a user to take more of a delivery, or to answer it: another association of the
/// user may be waiting for the message. What his transport takes starts it anew.
pub const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);

/// What an association has that speaks P3 or P7.
#[derive(Debug)]
pub struct P3 {
    /// Where it was accepted.
    pub listener: ListenerId,
    /// Known once bound.
    pub mailbox: Option<String>,
    /// Whether the user takes deliveries on this association (message delivery was proposed).
    pub takes_deliveries: bool,
    /// What data now arriving belongs to.
    pub unit: ArrivingUnit,
    /// How many invocations wait for our answer.
    pub unanswered: u32,
    /// The number of our next invocation.
    pub next_invoke: i64,
    /// When the association ends if its user does not answer a delivery.
    pub delivery_deadline: Option<Instant>,
    /// When the association ends if its user does not continue an argument.
    pub argument_deadline: Option<Instant>,
    /// What P7 needs, where it is spoken.
    pub store: Option<StoreSession>,
}

/// What P7 needs.
#[derive(Debug, Default)]
pub struct StoreSession {
    /// The edition, from the application context, and the fetch-restrictions of the bind.
    pub access: mailbox::Access,
    /// ms-configuration-request of the bind.
    pub wants_configuration: bool,
    /// The content in the result that is being sent, if it has one.
    pub fetch: Option<FetchedContent>,
    /// Responses behind it, in their order. Their operations are unanswered: what a user who does not read makes us
    /// hold is bounded.
    pub waiting: VecDeque<QueuedResponse>,
    /// Invoke identifiers of alerts that are not answered.
    pub alerts: BTreeSet<i64>,
}

/// The content in the result of a fetch.
#[derive(Clone, Copy, Debug)]
pub struct FetchedContent {
    /// The content.
    pub body: BodyId,
    /// Octets.
    pub length: u64,
    /// Octets handed to the stack.
    pub handed: u64,
}

/// The response to an operation, which waits to be sent.
#[derive(Debug)]
pub struct QueuedResponse {
    /// The number of the invocation.
    pub invoke: i64,
    /// The operation.
    pub operation: i64,
    /// What answers it.
    pub response: Response,
}

impl P3 {
    /// One that was accepted here.
    pub fn new(listener: ListenerId, store: Option<StoreSession>) -> P3 {
        P3 {
            listener,
            mailbox: None,
            takes_deliveries: false,
            unit: ArrivingUnit::None,
            unanswered: 0,
            next_invoke: 1,
            delivery_deadline: None,
            argument_deadline: None,
            store,
        }
    }
}

/// What data now arriving on an association belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ArrivingUnit {
    /// Nothing expected, or refused.
    #[default]
    None,
    /// An invocation of the user's: it is the association's arrival.
    Invocation,
    /// The result of our delivery.
    Result {
        /// The number of the invocation.
        invoke: i64,
        /// The result.
        octets: Vec<u8>,
    },
    /// The error our delivery met.
    Error {
        /// The number of the invocation.
        invoke: i64,
        /// The error.
        code: i64,
        /// Its parameter.
        octets: Vec<u8>,
    },
}
