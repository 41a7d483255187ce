//! The connection of commits, and the outcome of a commit whose answer was lost.
//!
//! A commit writes its number into the row of this run (`run.last`), and is refused unless it comes by the
//! connection that the row names. After a lost answer the store connects anew and names the new connection
//! in the row. That update waits for a commit that is still running, and refuses one that still comes; so
//! the number it finds there is the truth, and stays it. One row for each run is enough, since no commit is
//! made before the end of the last one is known: a row for each batch would have to be removed again.
//!
//! The update is a commit too, so it waits for the standbys as every commit does. If the server ended the
//! wait of a commit (of which a warning is the only sign), that commit counts as made once such an update went
//! through without a warning: the standbys have all before it then.

use crate::connection::client::Connection;
use crate::connection::edge::{Edge, now};
use crate::connection::failure::{Failure, StoreKind};
use crate::connection::target::Target;
use crate::group::Call;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a commit looks at most for its end if its answer was lost; [`store::QueueStore::outcome`] looks
/// further. With a shorter time limit it is an eighth of that.
const LOOKING: Duration = Duration::from_secs(2);
/// The first pause between two attempts to connect, and the longest.
const PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// Attempts of one commit that passing conflicts and lost connections may cost.
const ATTEMPTS: u32 = 4;

/// The end of a commit.
#[derive(Debug)]
pub(crate) enum Ended {
    Made,
    /// Nothing of it was made: the server refuses it, or is away.
    NotMade(Failure),
    /// [`Lane::decided`] may know the end of the commit of this number later.
    Unknown(Failure, i64),
}

/// The connection of commits.
#[derive(Debug)]
pub(crate) struct Lane {
    edge: Arc<Edge>,
    target: Arc<Target>,
    /// The node that this is, where others may have the store at the same time.
    node: Option<String>,
    pub(crate) epoch: i64,
    client: Option<Arc<Connection>>,
    connection: i64,
    /// The number of the last commit.
    group: i64,
    /// That one's end is not known.
    doubt: bool,
    /// The number of a commit that was in doubt, and whether it is made; until it is taken.
    decided: BTreeMap<i64, bool>,
    /// The server's process of the last connection, and its start.
    process: Option<(i32, String)>,
    failed: Option<(Instant, Failure)>,
    over: bool,
}

impl Lane {
    /// Connects, locks the store, and begins a run.
    pub(crate) fn open(
        edge: &Arc<Edge>,
        target: &Arc<Target>,
        node: Option<&str>,
    ) -> Result<Lane, Failure> {
        let mut lane = Lane {
            edge: Arc::clone(edge),
            target: Arc::clone(target),
            node: node.map(str::to_owned),
            epoch: 0,
            client: None,
            connection: 0,
            group: 0,
            doubt: false,
            decided: BTreeMap::new(),
            process: None,
            failed: None,
            over: false,
        };
        let client = lane.connect()?;
        lane.lock(&client)?;
        let node = node.map(str::to_owned);
        let ours = Arc::clone(&client);
        let begun = lane.run(async move { ours.row("SELECT begin_run($1)", &[&node]).await });
        let row = begun.map_err(|failure| match failure.code() {
            "MT007" => Failure::Ours(Box::new(StoreKind::Locked)),
            _ => failure,
        })?;
        lane.epoch = row.map_or(0, |row| row.get(0));
        lane.client = Some(client);
        Ok(lane)
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        self.edge.run(self.target.time_limit + Duration::from_secs(1), work)
    }

    fn looking(&self) -> Duration {
        (self.target.time_limit / 8).min(LOOKING)
    }

    fn connect(&mut self) -> Result<Arc<Connection>, Failure> {
        let target = Arc::clone(&self.target);
        let (client, pid, start) = self.run(async move {
            let client = Connection::open(&target).await?.0;
            let sql = "SELECT pid, backend_start::text FROM pg_stat_activity \
                       WHERE pid = pg_backend_pid()";
            let row = client.row(sql, &[]).await?;
            let (pid, start) = row.map_or((0, String::new()), |row| (row.get(0), row.get(1)));
            Ok((client, pid, start))
        })?;
        // The one before may have the lock still.
        if let Some((old, old_start)) = self.process.replace((pid, start)) {
            let ours = Arc::clone(&client);
            self.run(async move {
                let sql = "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity \
                           WHERE pid = $1 AND backend_start::text = $2";
                ours.rows(sql, &[&old, &old_start]).await
            })?;
        }
        Ok(client)
    }

    /// One process has the store, or the nodes of one site have: the server keeps that lock as long as the
    /// connection lasts.
    fn lock(&self, client: &Arc<Connection>) -> Result<(), Failure> {
        let sql = match self.node.is_some() {
            true => {
                "SELECT pg_try_advisory_lock_shared(1836343600, (oid::bigint & 2147483647)::integer) \
                     FROM pg_namespace WHERE nspname = current_schema()"
            }
            false => {
                "SELECT pg_try_advisory_lock(1836343600, (oid::bigint & 2147483647)::integer) \
                      FROM pg_namespace WHERE nspname = current_schema()"
            }
        };
        // A process that was killed a moment ago may have a commit that the server still makes.
        let began = now();
        loop {
            let ours = Arc::clone(client);
            let row = self.run(async move { ours.row(sql, &[]).await })?;
            if row.is_some_and(|row| row.get(0)) {
                return Ok(());
            }
            if now().saturating_duration_since(began) > self.looking() {
                return Err(Failure::Ours(Box::new(StoreKind::Locked)));
            }
            self.edge.pause(PAUSE);
        }
    }

    /// A connection by which a commit can be made. The end of the last one is known then.
    fn ensure(&mut self) -> Result<Arc<Connection>, Failure> {
        if self.over {
            return Err(self.taken_over(String::new()));
        }
        let held = self.client.take().filter(|client| !client.is_closed());
        if let Some(client) = &held
            && !self.doubt
        {
            self.client.clone_from(&held);
            return Ok(Arc::clone(client));
        }
        if let Some((at, failure)) = &self.failed
            && now().saturating_duration_since(*at) < PAUSE
        {
            return Err(failure.clone());
        }
        let ended = self.take_over(held);
        self.failed = ended.as_ref().err().map(|failure| (now(), failure.clone()));
        self.client = ended.as_ref().ok().map(Arc::clone);
        ended
    }

    /// Whether another process has the store. Where it had at the last attempt, another one is made: who cannot commit has
    /// nothing to commit, and would never learn that the lock is free.
    pub(crate) fn is_locked_out(&mut self) -> bool {
        let locked = |kind: &StoreKind| matches!(kind, StoreKind::Locked);
        let is_locked =
            |lane: &Lane| matches!(&lane.failed, Some((_, Failure::Ours(kind))) if locked(kind));
        is_locked(self) && self.ensure().is_err() && is_locked(self)
    }

    /// Another run has taken over, which runs there.
    pub(crate) fn taken_over(&mut self, by: String) -> Failure {
        self.over = true;
        Failure::Ours(Box::new(StoreKind::Over { node: self.node.clone(), by }))
    }

    /// Names a connection in the row of the run, and looks what is there.
    fn take_over(&mut self, held: Option<Arc<Connection>>) -> Result<Arc<Connection>, Failure> {
        let (client, is_new) = match held {
            Some(client) => (client, false),
            None => (self.connect()?, true),
        };
        let (ours, epoch, before) = (Arc::clone(&client), self.epoch, client.warnings());
        let row = self.run(async move {
            let sql = "UPDATE run SET connection = connection + 1 WHERE epoch = $1 \
                       RETURNING connection, last";
            ours.row(sql, &[&epoch]).await
        })?;
        let Some(row) = row else {
            return Err(self.taken_over(String::new()));
        };
        if client.warnings() != before {
            let reason = "it no longer waits for its standbys, which may not have what it has";
            return Err(Failure::Lost(reason.to_owned()));
        }
        self.connection = row.get(0);
        if std::mem::take(&mut self.doubt) {
            let last: i64 = row.get(1);
            self.decided.insert(self.group, last >= self.group);
        }
        if is_new {
            self.lock(&client)?;
        }
        Ok(client)
    }

    /// Looks for the end of the last commit, if it is not known. Does not wait for a server that is away.
    pub(crate) fn look(&mut self) -> Result<(), Failure> {
        if !self.doubt {
            return Ok(());
        }
        self.ensure().map(drop)
    }

    /// Whether a commit that was in doubt is made, once it is known.
    pub(crate) fn decided(&mut self, group: i64) -> Option<bool> {
        self.decided.remove(&group)
    }

    /// Commits. The end of all earlier ones is known before.
    pub(crate) fn commit(&mut self, call: &Arc<Call>) -> Ended {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let client = match self.ensure() {
                Ok(client) => client,
                Err(failure) => return Ended::NotMade(failure),
            };
            self.group += 1;
            let numbers = (self.epoch, self.connection, self.group);
            let (ours, its, before) = (Arc::clone(&client), Arc::clone(call), client.warnings());
            let ended = self.run(async move { its.make(&ours, numbers).await });
            let failure = match ended {
                Ok(()) if client.warnings() == before => return Ended::Made,
                // The connection is good: the next call on it shows when the standbys have it.
                Ok(()) => Failure::Lost("it did not wait for its standbys".to_owned()),
                Err(failure) => {
                    if matches!(failure, Failure::Lost(_)) {
                        self.client = None;
                    }
                    failure
                }
            };
            match &failure {
                Failure::Lost(_) => match self.find_end() {
                    Some(true) => return Ended::Made,
                    Some(false) if attempts < ATTEMPTS => {}
                    Some(false) => return Ended::NotMade(failure),
                    None => return Ended::Unknown(failure, self.group),
                },
                // Another connection of this run, or another run: the next look shows.
                Failure::Refused { code, .. } if code == "MT006" && attempts < ATTEMPTS => {
                    self.client = None;
                }
                other if other.is_passing() && attempts < ATTEMPTS => {}
                _ => return Ended::NotMade(failure),
            }
        }
    }

    /// The last commit lost its answer: looks for its end for a while.
    fn find_end(&mut self) -> Option<bool> {
        self.doubt = true;
        let (began, mut pause) = (now(), PAUSE);
        loop {
            let found = self.ensure();
            if let Some(made) = self.decided.remove(&self.group) {
                return Some(made);
            }
            if found.is_ok() || self.over || now().saturating_duration_since(began) > self.looking()
            {
                return None;
            }
            self.edge.pause(pause);
            pause = (2 * pause).min(MAX_PAUSE);
        }
    }

    /// Makes a call of the site by this connection.
    pub(crate) fn call<T, F>(
        &mut self,
        work: impl FnOnce(Arc<Connection>) -> F,
    ) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let client = self.ensure()?;
        let ended = self.run(work(client));
        if matches!(ended, Err(Failure::Lost(_))) {
            self.client = None;
        }
        ended
    }

    pub(crate) fn close(&mut self) {
        self.client = None;
        self.over = true;
    }
}
