//! When a message starts, and on which channel.

mod precedence;
mod rules;
mod schedule;
mod stalled;
