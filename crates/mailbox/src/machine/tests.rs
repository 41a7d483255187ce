//! The machine over a store in memory.
