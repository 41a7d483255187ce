//! A P3 user agent as a library: it binds to an MTA, submits messages and accepts deliveries. The
//! client `xuxa` and the load generator `load` use it.
//!
//! Everything runs in one thread of a tokio runtime, so that any number of users can be bound in
//! one process. Contents are streamed in both directions; canned ones take no memory of their
//! size.

pub mod book;
mod clock;
mod content;
pub mod country;
pub mod diagnose;
pub mod form;
pub mod heading;
mod interrupt;
mod message;
pub mod receipt;
pub mod sent;
mod submit;
mod user;

pub use clock::Clock;
pub use content::{Content, Source};
pub use interrupt::Interrupted;
pub use message::{BodyPart, EnvelopeOptions, Message, Recipient};
pub use submit::{Attempt, NotAccepted, submit};
pub use user::{ANSWER_TIMEOUT, INTERRUPTED, Login, Lost, Refused, Services, User, describe};
