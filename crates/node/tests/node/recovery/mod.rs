//! What follows a crash or a lost connection.

mod crash;
mod damage;
mod forget;
mod resume;
mod space;
