//! When associations are opened, at what rate they carry, and whose fault it is when they end.

mod blame;
mod opening;
mod slow;
