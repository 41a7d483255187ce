//! One connection.

use crate::connection::failure::Failure;
use crate::connection::target::Target;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Row, Statement};

/// What of a connection's settings is not the server's default. All look-ups are by key, and no statistics
/// of a moment may make a plan of them that reads a whole table.
const SETTINGS: &str = "SET client_min_messages = warning; SET jit = off; \
    SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; \
    SET default_transaction_isolation = 'read committed'";

/// A connection with the store's settings.
pub(crate) struct Connection {
    client: Client,
    statements: Mutex<BTreeMap<&'static str, Statement>>,
    warnings: Arc<AtomicU64>,
    task: AbortHandle,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("closed", &self.is_closed()).finish()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A notice of another connection.
#[derive(Clone, Debug)]
pub(crate) struct News {
    pub(crate) what: String,
}

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of several servers the next is tried too after this time without an answer.
const AFTER: Duration = Duration::from_millis(200);

impl Connection {
    /// Connects, in the time that is given for it: a server that hangs takes a connection too. What others
    /// notify goes to the receiver, after LISTEN.
    pub(crate) async fn open(
        target: &Target,
    ) -> Result<(Arc<Connection>, UnboundedReceiver<News>), Failure> {
        let limit = target.connect_limit;
        // Servers are tried beside each other: one that hangs takes the connection and does not answer.
        let mut trials = JoinSet::new();
        for (config, n) in target.each_host().into_iter().zip(0u32..) {
            let target = target.clone();
            trials.spawn(async move {
                tokio::time::sleep(AFTER * n).await;
                tokio::time::timeout(limit, Connection::connect(&target, &config))
                    .await
                    .unwrap_or_else(|_| Err(Failure::Lost(format!("no connection in {limit:?}"))))
            });
        }
        let mut failed = Failure::Lost("no server is named".to_owned());
        while let Some(ended) = trials.join_next().await {
            match ended {
                Ok(Ok(opened)) => return Ok(opened),
                // A server that does not let the account in is there, whichever others are away.
                Ok(Err(_)) if matches!(failed, Failure::Denied(_) | Failure::Untrusted(_)) => {}
                Ok(Err(failure)) => failed = failure,
                Err(error) => failed = Failure::Lost(error.to_string()),
            }
        }
        Err(failed)
    }

    /// Connects to one server, in the time that is given for it.
    pub(crate) async fn open_at(
        target: &Target,
        config: &Config,
    ) -> Result<Arc<Connection>, Failure> {
        let limit = target.connect_limit;
        match tokio::time::timeout(limit, Connection::connect(target, config)).await {
            Ok(opened) => Ok(opened?.0),
            Err(_) => Err(Failure::Lost(format!("no connection in {limit:?}"))),
        }
    }

    async fn connect(
        target: &Target,
        config: &Config,
    ) -> Result<(Arc<Connection>, UnboundedReceiver<News>), Failure> {
        let warnings = Arc::<AtomicU64>::default();
        let (news, receiver) = unbounded_channel();
        let (client, task) = match target.tls.clone() {
            Some(tls) => {
                let (client, connection) = config.connect(tls).await?;
                let task = tokio::spawn(drive(connection, Arc::clone(&warnings), news));
                (client, task.abort_handle())
            }
            None => {
                let (client, connection) = config.connect(NoTls).await?;
                let task = tokio::spawn(drive(connection, Arc::clone(&warnings), news));
                (client, task.abort_handle())
            }
        };
        let client = Connection { client, statements: Mutex::default(), warnings, task };
        let limit = target.time_limit.as_millis();
        let own = format!(
            "{SETTINGS}; SET statement_timeout = {limit}; SET lock_timeout = {}; \
             SET idle_in_transaction_session_timeout = {limit}; SET search_path = {}, pg_temp",
            limit / 2,
            target.quoted_schema(),
        );
        client.client.batch_execute(&own).await?;
        Ok((Arc::new(client), receiver))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Warnings of the server so far.
    pub(crate) fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Acquire)
    }

    /// Several statements without results.
    pub(crate) async fn script(&self, text: &str) -> Result<(), Failure> {
        Ok(self.client.batch_execute(text).await?)
    }

    /// One statement, prepared at its first use. Ends when its transaction has.
    pub(crate) async fn rows(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        let known = lock(&self.statements).get(sql).cloned();
        let statement = match known {
            Some(statement) => statement,
            None => {
                let statement = self.client.prepare(sql).await?;
                lock(&self.statements).insert(sql, statement.clone());
                statement
            }
        };
        Ok(self.client.query(&statement, parameters).await?)
    }

    /// The first row of a statement.
    pub(crate) async fn row(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Failure> {
        Ok(self.rows(sql, parameters).await?.into_iter().next())
    }
}

/// Reads and writes until the connection ends.
async fn drive<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    warnings: Arc<AtomicU64>,
    news: UnboundedSender<News>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            // Only warnings come (client_min_messages). The one that matters is that a commit no longer
            // waits for the standbys; its words depend on the server's language.
            AsyncMessage::Notice(notice) => {
                warnings.fetch_add(1, Ordering::AcqRel);
                tracing::warn!(
                    code = notice.code().code(),
                    notice = notice.message(),
                    "the database warns"
                );
            }
            AsyncMessage::Notification(notice) => {
                let _ = news.send(News { what: notice.payload().to_owned() });
            }
            _ => {}
        }
    }
}
