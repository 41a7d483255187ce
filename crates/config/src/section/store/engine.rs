//! `[store]` and `[cluster]`: where the queue is, and which node of its site an MTA is.

use crate::problem::Problems;
use crate::section::secret::{self, Source};
use crate::tree::{Bad, Section};
use crate::value;
use node::Secret;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

/// Bounds of a lease: how long a site waits for a node that does not answer.
const LEASES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
const LEASE: Duration = Duration::from_secs(4);

/// Where the queue is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreEngine {
    /// In the data directory.
    #[default]
    Embedded,
    /// In a PostgreSQL database.
    Postgres(Postgres),
}

impl StoreEngine {
    /// The database and the node that an MTA is of a site of several nodes; `None`: it is alone.
    pub fn node(&self) -> Option<(&Postgres, &ClusterNode)> {
        match self {
            StoreEngine::Postgres(database) => Some((database, database.node.as_ref()?)),
            StoreEngine::Embedded => None,
        }
    }
}

/// A PostgreSQL database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Postgres {
    /// The server and the database, as the client library of PostgreSQL has them (`host=… dbname=…`, or
    /// `postgresql://…`), without a password.
    pub url: String,
    /// The password of the role that runs.
    pub password: Option<Secret>,
    /// The schema that has the tables.
    pub schema: String,
    /// Connections for reads.
    pub connections: usize,
    /// Which node of its site the MTA is; absent: it is alone.
    pub node: Option<ClusterNode>,
}

/// A node of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    /// Its name: no two nodes of the site have the same one.
    pub name: String,
    /// How long the site waits for it when it does not answer.
    pub lease: Duration,
}

/// Reads both sections; without them the queue is in the data directory.
pub(crate) fn read(
    top: &mut Section<'_>,
    problems: &mut Problems,
    source: &Source<'_>,
) -> StoreEngine {
    let node = read_node(top, problems);
    let Some(mut section) = top.table(problems, "store") else {
        return without_database(problems, node);
    };
    let words = [("embedded", false), ("postgres", true)];
    let engine = section.optional(problems, "engine", &|v| value::word(v, &words));
    if !engine.is_some_and(Spanned::into_inner) {
        let keys = ["url", "password", "schema", "connections"];
        let Some((key, span)) = keys.iter().find_map(|key| Some((key, section.place(key)?))) else {
            section.finish(problems);
            return without_database(problems, node);
        };
        let wrong = format!("{key} of [store] is of the engine postgres");
        let remedy = "write engine = \"postgres\", or remove the key";
        problems.error(span, wrong, "of no meaning without it", remedy);
        return StoreEngine::Embedded;
    }
    if let Some(span) = section.literal("url") {
        // It may have a password.
        problems.secret(span);
    }
    let remedy = "write url = \"host=127.0.0.1 dbname=mta user=mta_run\"";
    let url = section.required(problems, "url", remedy, &url);
    let password = match section.has("password") {
        true => secret::read(&mut section, problems, "password", source),
        false => None,
    };
    let schema = section.optional(problems, "schema", &value::name);
    let connections = section.optional(problems, "connections", &|v| value::integer(v, 1, 64));
    section.finish(problems);
    let Some(url) = url else { return StoreEngine::Embedded };
    let connections = connections.map_or(4, Spanned::into_inner);
    StoreEngine::Postgres(Postgres {
        url: url.into_inner(),
        password,
        schema: schema.map_or_else(|| "mta".to_owned(), Spanned::into_inner),
        connections: usize::try_from(connections).unwrap_or(4),
        node: node.map(Spanned::into_inner),
    })
}

fn without_database(problems: &mut Problems, node: Option<Spanned<ClusterNode>>) -> StoreEngine {
    if let Some(node) = node {
        let wrong = "[cluster] takes a queue that several nodes can share";
        let remedy = "write [store] with engine = \"postgres\", or remove [cluster]";
        problems.error(node.span(), wrong, "the queue is in the data directory", remedy);
    }
    StoreEngine::Embedded
}

fn read_node(top: &mut Section<'_>, problems: &mut Problems) -> Option<Spanned<ClusterNode>> {
    let mut section = top.table(problems, "cluster")?;
    let span = section.span();
    let name = section.required(problems, "node", "write node = \"n1\"", &node_name);
    let lease = section.optional(problems, "lease", &|v| value::within(v, LEASES.0, LEASES.1));
    section.finish(problems);
    let (name, lease) = (name?.into_inner(), lease.map_or(LEASE, Spanned::into_inner));
    Some(Spanned::new(span, ClusterNode { name, lease }))
}

/// The name of a node, as commands, file names and logs take it: 1 to 32 letters, digits, dots, dashes and underscores.
fn node_name(value: &DeValue<'_>) -> Result<String, Bad> {
    let text = value::name(value)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if text.len() > 32 || !text.chars().all(fits) || text.starts_with('-') {
        return Err(Bad::new(
            format!("invalid name of a node {text:?}"),
            "a node's name has 1 to 32 of A-Z, a-z, 0-9, '.', '-' and '_', and does not begin with '-'",
        ));
    }
    Ok(text)
}

/// A url without a password.
fn url(value: &DeValue<'_>) -> Result<String, Bad> {
    let text = value::text(value)?;
    let words = text.split([' ', '?', '&']).any(|word| word.trim().starts_with("password"));
    let (_, rest) = text.split_once("://").unwrap_or_default();
    let user = rest.split(['/', '?']).next().unwrap_or_default().rsplit_once('@');
    if words || user.is_some_and(|(user, _)| user.contains(':')) {
        return Err(Bad::new(
            "a password does not belong in the configuration",
            "write password = { env = \"NAME\" } or { file = \"path\" } beside the url",
        ));
    }
    Ok(text)
}
