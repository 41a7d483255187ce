//! A user agent as a library. Over P3 it binds to an MTA, submits messages and accepts deliveries
//! ([`User`]); over P7 it works on a mailbox in a message store, and submits too ([`store::Store`]). The
//! client `xuxa` and the load generator `load` use it.
//!
//! Everything runs in one thread of a tokio runtime, so that any number of users can be bound in
//! one process. Contents are streamed in both directions; canned ones take no memory of their
//! size.

pub mod book;
mod clock;
mod connection;
mod content;
pub mod diagnose;
pub mod form;
pub mod heading;
mod interrupt;
mod login;
mod message;
pub mod receipt;
mod registration;
pub mod sent;
pub mod store;
mod submit;
mod user;

pub use clock::Clock;
pub use connection::{INTERRUPTED, NotConnected, describe};
pub use content::{Content, Source};
pub use interrupt::Interrupted;
pub use login::{ANSWER_TIMEOUT, Edition, Login};
pub use message::{BodyPart, EnvelopeOptions, Message, Recipient, label};
pub use submit::{Attempt, NotAccepted, submit};
pub use user::{Lost, Refused, Services, User};
