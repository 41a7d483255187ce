//! The user's end of P3: a user agent as a library. It binds to an MTA, submits messages and takes
//! deliveries; the client `xuxa` and the load generator `load` stand on it.
//!
//! Everything runs in one thread of a tokio runtime, so that any number of users can be bound in
//! one process. Contents are streamed both ways; canned ones take no memory of their size.

mod clock;
mod content;
mod interrupt;
mod message;
mod submit;
mod user;

pub use clock::Clock;
pub use content::{Content, Source};
pub use interrupt::Interrupted;
pub use message::Message;
pub use submit::{Attempt, NotAccepted, submit};
pub use user::{ANSWER_TIMEOUT, INTERRUPTED, Login, Lost, Refused, Services, User, describe};
