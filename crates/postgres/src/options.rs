//! How a store is opened.

use std::time::Duration;

/// The schema unless another one is named.
pub const SCHEMA: &str = "mta";

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// The schema with the tables: several stores may be in one database.
    pub schema: String,
    /// Connections for reads, and as many for contents that are being received.
    pub readers: usize,
    /// Octets of contents in memory, all spools together. Beyond it contents go to the database while
    /// they are received; of each of those at most one part of 512 KiB is in memory.
    pub spool_memory: usize,
    /// The longest that the server works on one call, and that a caller waits for it, about.
    pub time_limit: Duration,
    /// The longest that a connection is tried.
    pub connect_limit: Duration,
    /// The password of the role, unless the url has it.
    pub password: Option<bytes::Bytes>,
    /// Several nodes share the store, and this is one of them. `None`: this process is alone.
    pub site: Option<Site>,
}

impl std::fmt::Debug for Options {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("schema", &self.schema)
            .field("readers", &self.readers)
            .field("time_limit", &self.time_limit)
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            schema: SCHEMA.to_owned(),
            readers: 4,
            spool_memory: 64 << 20,
            time_limit: Duration::from_secs(20),
            connect_limit: Duration::from_secs(5),
            password: None,
            site: None,
        }
    }
}

/// A node of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Its name, as given to [`Cluster::join`](store::cluster::Cluster::join) later.
    pub node: String,
    /// Named values that belong to each node: they are kept under the name of the node.
    pub own_values: Vec<String>,
    /// Where the process runs. Without it an earlier process of the name is waited for until its lease is over.
    pub place: Option<Place>,
}

/// Where a process runs, by which processes with one node name are known from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The same for two processes of which one can only run when the other has ended, such as those that lock one
    /// file of one machine. Whoever has the place of a node takes its name at once.
    pub key: String,
    /// The place for people: `host alpha, process 4711, data in /var/lib/mta`.
    pub words: String,
}

impl Site {
    /// The name under which a value is kept.
    pub(crate) fn kept_name(&self, name: &str) -> String {
        if self.own_values.iter().any(|own| own == name) {
            return format!("{}/{name}", self.node);
        }
        name.to_owned()
    }
}
