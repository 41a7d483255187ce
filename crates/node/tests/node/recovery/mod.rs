//! What follows a crash or a lost connection.

mod crash;
mod forget;
mod resume;
