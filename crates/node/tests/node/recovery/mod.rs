//! What follows a crash or a cut.

mod crash;
mod forget;
mod resume;
