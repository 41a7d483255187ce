//! The trial of a site of several nodes: real daemons, one database, traffic, faults drawn from a seed, and a ledger of
//! what was acknowledged.
//!
//! A [`World`] is the site `hq` with its nodes and two foreign sites, each on its own loopback address. Between them,
//! and between the nodes and the database, are relays that cut. The [`Traffic`] submits and receives as users do, with
//! real clients. The faults are made in a thread of their own ([`Striker`]). In the end the [`Ledger`] has what was
//! kept, and [`Report`] shows it.

mod act;
mod client;
mod fault;
mod layout;
mod ledger;
mod mailbox;
mod message;
mod report;
mod time;
mod traffic;
mod trial;
mod watcher;
mod world;

pub use act::{FaultRecord, Probe, Striker};
pub use fault::{Draw, Fault};
pub use ledger::{Acknowledged, Copy, Hold, Ledger, Sent, Trouble, Verdict};
pub use report::Report;
pub use traffic::Traffic;
pub use trial::{Plan, run};
pub use world::World;
