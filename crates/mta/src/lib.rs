//! The daemon: executes the outputs of [`node::Node`], which makes every decision.

pub mod admin;
pub mod advice;
pub mod backup;
pub mod clock;
pub mod command;
pub mod driver;
#[cfg(test)]
mod example;
mod migration;
pub mod pcap;

pub use config;
