//! The first record of a recording: what a node is made of.

use base::{EntryId, Now};
use node::Node;
use node::config::NodeConfig;
use serde::{Deserialize, Serialize};

/// What a node is made of, and where the recording comes from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The version of the program that made it.
    pub version: String,
    /// What made it, in words: a daemon, or a world of the simulator with its seed.
    pub origin: String,
    /// The clocks when it began.
    pub began: Now,
    /// The configuration with seed, epoch and salt. Passwords in it are masks.
    pub config: NodeConfig,
    /// From where on the entries of this start are numbered.
    pub first_entry: Option<EntryId>,
    /// Whether contents are left out: for reading only.
    pub stripped: bool,
}

impl Header {
    /// That of a node about to be made.
    #[must_use]
    pub fn new(
        origin: String,
        began: Now,
        config: NodeConfig,
        first_entry: Option<EntryId>,
    ) -> Header {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Header { version, origin, began, config, first_entry, stripped: false }
    }

    /// The node, before its first input.
    #[must_use]
    pub fn node(&self) -> Node {
        Node::new(self.config.clone()).numbering_entries(self.first_entry)
    }
}
