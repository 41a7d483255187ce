//! One server for the tests of a binary, and a schema for each of them.
#![allow(dead_code, unused_imports)]

#[path = "../../../store/tests/common/ops.rs"]
mod ops;

pub(crate) use ops::*;

use database::{Server, server_or_skip};
use engine::journal::{MailboxId, QueueId};
use postgres_store::{Options, PostgresStore, prepare};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::cluster::{Acquired, Cluster};
use store::{BatchId, QueueStore, StoreError};

/// The account that runs.
pub(crate) const RUNS: &str = "runs";

/// The engine of these tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// A process that is alone.
    Postgres,
    /// The one node of a site, which owns all shards that the tests use.
    Node,
}

impl Engine {
    /// Whether a batch that removes what is not there is refused: another node may have removed it.
    pub(crate) fn removes_what_is_there(self) -> bool {
        self == Engine::Node
    }

    pub(crate) fn reopens(self) -> bool {
        true
    }
}

/// The server of this binary; `None` where PostgreSQL is not installed. Its watcher removes it when the
/// binary ends.
pub(crate) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let start = || {
        let options = database::Options::new().set("max_connections", "400");
        let server = server_or_skip("postgres-store", options)?;
        server.role(RUNS).unwrap();
        Some(server)
    };
    SERVER.get_or_init(start).as_ref()
}

/// The place of processes that end before the next one of them begins.
pub(crate) fn place(key: &str) -> postgres_store::Place {
    postgres_store::Place { key: key.to_owned(), words: format!("host {key}, process 1") }
}

/// A name that no other test of this binary has.
pub(crate) fn fresh_schema() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("s{}", LAST.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn options(schema: &str) -> Options {
    let time_limit = Duration::from_secs(10);
    Options { schema: schema.to_owned(), readers: 2, time_limit, ..Options::default() }
}

/// A schema with tables, in which a store is opened again and again.
pub(crate) struct Site {
    pub(crate) options: Options,
    pub(crate) server: Option<&'static Server>,
}

impl Site {
    /// `None` where PostgreSQL is not installed: the test ends then.
    pub(crate) fn if_installed() -> Option<Site> {
        let server = server()?;
        let options = options(&fresh_schema());
        prepare(&server.url("postgres"), RUNS, &options).unwrap();
        Some(Site { options, server: Some(server) })
    }

    pub(crate) fn new(engine: Engine) -> Site {
        let mut site = Site::if_installed().unwrap();
        let place = Some(place("one"));
        let of_node = postgres_store::Site { node: "one".to_owned(), place, ..Default::default() };
        site.options.site = (engine == Engine::Node).then_some(of_node);
        site
    }

    pub(crate) fn with_options(engine: Engine, _: store::Options) -> Site {
        Site::new(engine)
    }

    pub(crate) fn url(&self) -> String {
        self.server.unwrap().url(RUNS)
    }

    pub(crate) fn try_open(&self) -> Result<PostgresStore, StoreError> {
        PostgresStore::open(&self.url(), self.options.clone())
    }

    /// Opens it; an earlier store of this site is used no longer.
    pub(crate) fn open(&mut self) -> Arc<dyn QueueStore> {
        let store = self.try_open().unwrap();
        if let Some(site) = &self.options.site {
            store.join(&site.node, Duration::from_secs(600)).unwrap();
            let items = [3, 4].map(|number| MailboxId(number).queue().0);
            for shard in [0, 1, 6, 7, 8, u64::MAX].into_iter().chain(items) {
                let acquired = store.acquire(QueueId(shard), "a peer", BatchId(0)).unwrap();
                assert!(matches!(acquired, Acquired::Ours(_)));
            }
        }
        Arc::new(store)
    }

    /// What the superuser's statement prints, in the schema.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let text = format!("set search_path = {}; {sql}", self.options.schema);
        self.server.unwrap().psql(&text).unwrap()
    }

    /// Long contents that are stored apart.
    pub(crate) fn body_files(&self) -> usize {
        let count = "select count(*) from body b join content c on c.id = b.content \
                     where c.octets is null";
        self.sql(count).parse().unwrap()
    }
}
