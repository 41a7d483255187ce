//! Who gets in, and what others make a node hold and do.

mod access;
#[cfg(debug_assertions)]
mod cost;
mod hoard;
mod slices;
