//! The terminal interface of `xuxa`: mailbox by precedence, reading, composing, sent items, alerts and
//! the address book.
//!
//! The core ([`App`]) is pure: [`App::handle`] takes an [`Event`] and returns the [`Effect`]s that it
//! asks for, [`App::draw`] draws a frame of the state. It has no clock, terminal or task, so tests run
//! it on a buffer. The edge ([`run`]) is thin: it reads the terminal, performs effects on a [`Backend`],
//! and hands the answers in.
//!
//! Nothing from the wire reaches the terminal as it came: every string passes through [`text`].

pub mod backend;
pub mod draft;
mod draw;
mod edge;
mod event;
pub mod memory;
pub mod model;
mod state;
pub mod text;

pub use backend::{Backend, BackendError};
pub use draw::style::Palette;
pub use edge::{RunError, run};
pub use event::{Answer, Connection, Effect, Event, Token};
pub use state::App;
