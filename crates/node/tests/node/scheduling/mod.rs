//! Which message goes when, and on which channel.

mod precedence;
mod rules;
mod schedule;
