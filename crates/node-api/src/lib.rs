//! What stands between a node and its edge: the inputs and outputs ([`api`]), the names ([`ids`]) and
//! errors ([`error`]) in them, and how a node puts its outputs and events in order ([`log`]); the rows of the queue ([`queue`]),
//! how far a node has come ([`lifecycle`]), and its long work ([`steps`]).

pub mod api;
pub mod error;
pub mod hold_marks;
pub mod ids;
pub mod issued;
pub mod lifecycle;
pub mod log;
pub mod queue;
pub mod removals;
pub mod shared_orders;
pub mod steps;
