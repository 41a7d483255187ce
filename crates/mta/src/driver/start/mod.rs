//! The start: data directory, store, epoch, and recovery of the queue.

mod epoch;
pub(super) mod reading;

use super::cluster::Joined;
use super::monitoring::event_log::EventLogFile;
use super::recording::{self, Recording, Sink};
use super::socket::ListenError;
use crate::clock::Clock;
use crate::config::section::store::engine::{Postgres, StoreEngine};
use crate::config::{EventLog, Paths, Site};
use crate::pcap::{Pcap, Wanted};
use base::{EntryId, Utc, shown};
use bytes::Bytes;
use engine::journal::{Batch, Op};
use engine::next_epoch;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use node::config::NodeConfig;
use postgres_store::PostgresAccounts;
use record::Header;
use site_view::{HeldPlace, IDENTITY, Identity, OtherSite, PlaceError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use store::cluster::Cluster;
use store::queue::{commit_one, first_entry};
use store::{BatchId, Options, QueueStore, StoreError, migrate};
use tracking::Tracker;
use users::{Directory, Users, UsersError};

/// Memory limits of the store: small compared with many connections.
pub(crate) const STORE: Options = Options {
    spool_memory: 8 << 20,
    cache: 8 << 20,
    many_keys: 512,
    run_keys: 32 << 10,
    segment: 4 << 20,
};

/// The number of the batch that is committed before the committer starts, whose numbers begin at 1.
const FIRST_BATCH: BatchId = BatchId(0);

/// Name of the durable count of starts.
pub(crate) const EPOCH: &str = "epoch";

/// Name of the value that names the MTA whose queue it is.
pub(crate) const SITE: &str = "site";

/// Why the daemon did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The data directory cannot be created.
    #[error("cannot make the data directory {path}: {error}")]
    DataDir {
        /// The directory.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process has the data directory, or it cannot be locked.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The database is another site's.
    #[error(transparent)]
    OtherSite(#[from] OtherSite),
    /// A copy into the queue was begun, and not finished.
    #[error("a copy into this queue is unfinished: run `mta store migrate` again")]
    Unfinished,
    /// The epoch in the store is not a number.
    #[error("the store's epoch is damaged or used up; restore the data directory from a copy")]
    Epoch,
    /// The users file cannot be read.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// A listener cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The listener for Prometheus cannot be opened.
    #[error("cannot listen on {address} for metrics: {error} (listen of [metrics])")]
    Metrics {
        /// The address.
        address: std::net::SocketAddr,
        /// The cause.
        error: io::Error,
    },
    /// The admin socket cannot be opened.
    #[error("cannot open the admin socket {path}: {error}")]
    Admin {
        /// The socket.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The event log cannot be opened.
    #[error("cannot open the event log {path}: {error} (file of [events])")]
    Events {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The file of `--pcap` cannot be written.
    #[error("cannot write {path}: {error} (--pcap)")]
    Pcap {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The file of `--record` cannot be written.
    #[error("cannot write {path}: {error} (--record)")]
    Record {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// Signals cannot be handled.
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
    /// An internal failure of this process.
    #[error("the daemon ends because it cannot go on: {0}")]
    Broken(String),
    /// A second signal came while stopping.
    #[error("stopped at once by a second signal")]
    StopForced,
}

/// Creates the data directory, accessible to its owner only.
pub(super) fn make_data_dir(site: &Site) -> Result<(), DriverError> {
    let path = &site.paths.data_dir;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| DriverError::DataDir { path: path.clone(), error })
}

/// Raises the limit on file descriptors as far as the system permits, and returns how many may be
/// connections: three quarters, as each content being received may need a descriptor as well.
pub(super) fn sockets(site: &Site) -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return usize::MAX };
    let most = if setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft };
    let sockets = usize::try_from(most / 4 * 3).unwrap_or(usize::MAX);
    let associations = site.node.limits.associations;
    if sockets < associations {
        tracing::warn!(
            sockets,
            associations,
            "fewer sockets than limits.associations: raise the limit of open files (ulimit -n)"
        );
    }
    sockets
}

/// Opens the event log, if one is configured.
pub(super) fn open_events(site: &Site, clock: Clock) -> Result<Option<EventLogFile>, DriverError> {
    let open = |log: &EventLog| {
        let mta = &site.node.mta.0;
        EventLogFile::open(log, mta, clock)
            .map_err(|error| DriverError::Events { path: log.path.clone(), error })
    };
    site.events.as_ref().map(open).transpose()
}

/// Begins to track messages, if that is configured. Without it the daemon works on.
pub(super) fn start_tracking(site: &Site) -> Option<Tracker> {
    let directory = site.paths.tracking();
    let limit = site.tracking?;
    let started = match site.engine.node() {
        // The nodes of a site see what all of them track.
        Some((database, node)) => getrandom::u64()
            .and_then(|high| Ok((u128::from(high) << 64) | u128::from(getrandom::u64()?)))
            .map_err(io::Error::from)
            .and_then(|fresh| {
                let place = (&*database.url, &database_options(database));
                postgres_store::track(&directory, limit, &node.name, fresh, place)
            }),
        None => Tracker::start(&directory, limit),
    };
    match started {
        Ok(tracker) => Some(tracker),
        Err(error) => {
            let path = directory.display().to_string();
            tracing::warn!(path = %shown::line(&path), %error, "no message is tracked: mta trace will know none of this run");
            None
        }
    }
}

/// Starts the requested recording. Called after [`open_store`], so that no other daemon uses this
/// data directory.
pub(super) fn open_pcap(wanted: Option<Wanted>, clock: Clock) -> Result<Option<Pcap>, DriverError> {
    let open = |Wanted { path, association }: Wanted| {
        Pcap::create(&path, association, clock).map_err(|error| DriverError::Pcap { path, error })
    };
    wanted.map(open).transpose()
}

/// Makes the file of a recording. Called after [`open_store`], as for [`open_pcap`].
pub(super) fn create_recording(
    wanted: Option<&recording::Wanted>,
    clock: Clock,
) -> Result<Option<Sink>, DriverError> {
    let create = |wanted: &recording::Wanted| {
        let failed = |error| DriverError::Record { path: wanted.path.clone(), error };
        wanted.create(clock).map_err(failed)
    };
    wanted.map(create).transpose()
}

/// Begins a recording with what the node is made of.
pub(super) fn begin_recording(
    sink: Option<Sink>,
    header: &Header,
) -> Result<Option<Recording>, DriverError> {
    let begin = |sink: Sink| {
        let path = sink.path.clone();
        Recording::start(sink, header).map_err(|error| DriverError::Record { path, error })
    };
    sink.map(begin).transpose()
}

/// An open store, and the node of a site that this is.
pub(crate) struct OpenStore {
    pub(super) store: Arc<dyn QueueStore>,
    pub(super) users: Directory,
    pub(super) joined: Option<Joined>,
    /// Held as long as the store is used, where it is a database.
    pub(super) _place: Option<HeldPlace>,
}

/// Where the users are, for a command that runs beside daemons.
pub(crate) fn users_of(paths: &Paths, engine: &StoreEngine) -> Result<Directory, StoreError> {
    Ok(match engine {
        StoreEngine::Embedded => Directory::File(paths.data_dir.clone()),
        StoreEngine::Postgres(database) => {
            let options = database_options(database);
            Directory::Database(Arc::new(PostgresAccounts::open(&database.url, &options)?))
        }
    })
}

/// The users at the start. A file that nobody reads any more is named.
pub(super) fn read_users(site: &Site, users: &Directory) -> Result<Users, UsersError> {
    let data_dir = &site.paths.data_dir;
    let (read, left) = users.read_at_start(data_dir)?;
    if !left.is_empty() {
        let file = data_dir.join(users::FILE).display().to_string();
        tracing::warn!(
            file = %shown::line(&file),
            users = left.len(),
            "users of this file are not in the database and cannot bind: mta user import adds them"
        );
    }
    Ok(read)
}

/// Opens the store that is configured, joins the site where there is one, and logs what it had to repair.
pub(crate) fn open_store(site: &Site) -> Result<OpenStore, DriverError> {
    let opened = match &site.engine {
        StoreEngine::Embedded => {
            let store = store::open(&site.paths.data_dir.join("queue"), STORE)?;
            check_finished(&*store)?;
            let users = Directory::File(site.paths.data_dir.clone());
            OpenStore { store, users, joined: None, _place: None }
        }
        StoreEngine::Postgres(database) => open_database(site, database)?,
    };
    log_sweep(&*opened.store);
    Ok(opened)
}

/// A queue of which a part was copied is not worked with.
fn check_finished(store: &dyn QueueStore) -> Result<(), DriverError> {
    match store.meta(migrate::MARK)? {
        Some(mark) if migrate::is_unfinished(&mark) => Err(DriverError::Unfinished),
        _ => Ok(()),
    }
}

/// Named values that are each node's own.
pub(crate) const OWN_VALUES: [&str; 3] = [EPOCH, node::SENDING, node::wall::CLOCK];

fn open_database(site: &Site, database: &Postgres) -> Result<OpenStore, DriverError> {
    let place = HeldPlace::take(&site.paths.data_dir)?;
    let identity = identity_of(site);
    let site = database.node.as_ref().map(|node| postgres_store::Site {
        node: node.name.clone(),
        own_values: OWN_VALUES.map(str::to_owned).to_vec(),
        place: place.place().cloned(),
    });
    let store = Arc::new(postgres_store::PostgresStore::open(
        &database.url,
        postgres_store::Options { site, ..database_options(database) },
    )?);
    check_finished(&*store)?;
    let joined = match &database.node {
        Some(node) => {
            let own = identity.to_string();
            identity.compare(&store.value_or_put(IDENTITY, own.as_bytes())?)?;
            let epoch = store.join(&node.name, node.lease)?;
            tracing::info!(node = node.name, %epoch, "joined the site");
            Some(Joined {
                cluster: Arc::clone(&store) as Arc<dyn Cluster>,
                store: Arc::clone(&store) as Arc<dyn QueueStore>,
                node: node.clone(),
                epoch,
            })
        }
        None => None,
    };
    for sentence in store.durability()?.sentences() {
        tracing::info!("the database: {sentence}");
    }
    let users = Directory::Database(Arc::new(store.users()));
    Ok(OpenStore { store, users, joined, _place: Some(place) })
}

/// What the nodes of a site have to share.
pub(crate) fn identity_of(site: &Site) -> Identity {
    Identity { mta: site.node.mta.0.clone(), domain: site.node.domain.to_string() }
}

/// How a database is opened that a configuration names.
pub(crate) fn database_options(database: &Postgres) -> postgres_store::Options {
    postgres_store::Options {
        schema: database.schema.clone(),
        readers: database.connections,
        spool_memory: STORE.spool_memory,
        password: database.password.as_ref().map(|password| password.0.clone()),
        ..postgres_store::Options::default()
    }
}

fn log_sweep(store: &dyn QueueStore) {
    let sweep = store.sweep();
    if sweep.removed > 0 {
        tracing::info!(files = sweep.removed, "removed what interrupted transfers left");
    }
    if sweep.set_aside > 0 {
        tracing::error!(
            files = sweep.set_aside,
            "contents without a queue entry were set aside: queue/bodies/*.aside"
        );
    }
    if sweep.lost > 0 {
        tracing::error!(
            changes = sweep.lost,
            "the queue is damaged and changes of it are lost; restore it, or ask the originators"
        );
    }
    for body in &sweep.missing {
        tracing::error!(%body, "a stored content is missing or damaged: its originator gets a report");
    }
}

/// The epoch that a data directory keeps beside the store.
pub(crate) fn epoch_file(data_dir: &std::path::Path) -> Option<u32> {
    epoch::read(&data_dir.join(EPOCH))
}

/// The count of starts in the store; `None` where it is damaged.
fn epoch_of(store: &dyn QueueStore) -> Result<Option<u32>, DriverError> {
    let Some(value) = store.meta(EPOCH)? else { return Ok(Some(0)) };
    let epoch = value.as_ref().try_into().ok().map(u32::from_be_bytes);
    if epoch.is_none() {
        tracing::error!("the count of starts in the store is damaged");
    }
    Ok(epoch)
}

/// What a node is made of: with a durable epoch that was never used before, and the number of its first entry.
pub(super) fn configure_node(
    site: &Site,
    users: &Users,
    OpenStore { store, joined, .. }: &OpenStore,
    utc: Utc,
) -> Result<(NodeConfig, Option<EntryId>), DriverError> {
    let store = &**store;
    let mut batch = Vec::new();
    let epoch = match joined {
        // The store gives each start of each node its own.
        Some(joined) => joined.epoch.0,
        None => next_epoch_of(site, store, utc, &mut batch)?,
    };
    let own = Bytes::copy_from_slice(site.node.mta.0.as_bytes());
    if let Some(found) = store.meta(SITE)?.filter(|found| *found != own) {
        let found = String::from_utf8_lossy(&found);
        tracing::warn!(%found, "the queue is that of another MTA name: its messages are sent from here");
    }
    batch.push(Op::PutMeta { name: SITE.to_owned(), value: own });
    if joined.is_none() && site.engine != StoreEngine::Embedded {
        // A site may get another name while it has no nodes.
        let value = Bytes::from(identity_of(site).to_string());
        batch.push(Op::PutMeta { name: IDENTITY.to_owned(), value });
    }
    commit_one(store, FIRST_BATCH, batch)?;
    let mut config = site.node.clone();
    config.mailboxes = users.addresses();
    config.store.users = users.stored();
    config.epoch = epoch;
    config.limits.sockets = sockets(site);
    let random = || getrandom::u64().map_err(|e| DriverError::Broken(e.to_string()));
    config.seed = random()?;
    config.salt = u32::try_from(1 + random()? % (36 * 36 * 36 * 36 - 1)).unwrap_or(1);
    // Several nodes number their entries by their epochs.
    let first = if joined.is_some() { None } else { first_entry(store)? };
    Ok((config, first))
}

/// An epoch that was never used before, and the change that makes it durable.
fn next_epoch_of(
    site: &Site,
    store: &dyn QueueStore,
    utc: Utc,
    batch: &mut Batch,
) -> Result<u32, DriverError> {
    let file = site.paths.data_dir.join(EPOCH);
    let (stored, kept) = (epoch_of(store)?, epoch::read(&file));
    if stored == Some(0) && kept.is_some() {
        tracing::error!(
            "the queue is new, but this data directory was used before: the queue is lost, or the disk that has \
             it is not mounted; stop the daemon and restore it, or go on without it"
        );
    }
    let epoch = next_epoch(stored, kept, utc).ok_or(DriverError::Epoch)?;
    if let Err(error) = epoch::write(&file, epoch) {
        // On a full disk, perhaps: the store has it too.
        let path = file.display().to_string();
        tracing::warn!(path = %shown::line(&path), %error, "cannot keep the count of starts a second time");
    }
    let value = Bytes::copy_from_slice(&epoch.to_be_bytes());
    batch.push(Op::PutMeta { name: EPOCH.to_owned(), value });
    Ok(epoch)
}
