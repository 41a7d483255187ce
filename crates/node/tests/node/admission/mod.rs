//! Which connections and binds are accepted, and how much memory and work others can cause.

mod access;
#[cfg(debug_assertions)]
mod cost;
mod memory;
mod slices;
