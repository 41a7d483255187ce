//! Rows of the queue as an operator sees them, which of them he wants, and his orders for them.

pub mod filter;
pub mod orders;
pub mod page;
pub mod reroutes;
pub mod row;
