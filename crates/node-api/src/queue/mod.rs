//! Rows of the queue as an operator sees them, and which of them he wants.

pub mod filter;
pub mod page;
pub mod row;
