//! A network kept up: hosts in namespaces of their own, and routers between them.

mod kind;

pub use kind::Kind;
