//! The queue and the users of an MTA copied from one engine to another one: which stores these are, what their mailboxes
//! and named values are in the other one, and the epochs.

use crate::config::Site;
use crate::config::section::store::engine::{Postgres, StoreEngine};
use crate::driver::{EPOCH, OWN_VALUES, SITE, STORE, database_options, epoch_file};
use bytes::Bytes;
use engine::journal::{MailboxId, Op};
use node::mailbox::machine::{NAMES, shared_names};
use node::mailbox::{Mailboxes, ValueError};
use postgres_store::PostgresStore;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use store::accounts::Account;
use store::migrate::{MigrateError, Migration, Plan, Sum, Sums, sum_of};
use store::queue::{commit_one, for_each_value};
use store::{BatchId, QueueStore, StoreError};
use users::{Directory, Users, UsersError};

/// Epochs are below this number: entries have them above 40 bits of a counter, and below items.
const EPOCHS: u32 = 1 << 23;
const COUNTER_BITS: u32 = 40;

/// The batch with the epoch: the copy numbers its own from 1.
const EPOCH_BATCH: BatchId = BatchId(0);

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("these are two MTAs, {from} and {to}: a queue is copied to the same one")]
    OtherMta { from: String, to: String },
    #[error("there is no queue in {0}")]
    NoQueue(PathBuf),
    #[error("cannot make the data directory {path}: {error}")]
    DataDir { path: PathBuf, error: io::Error },
    #[error("the queue is that of {found}, and this configuration is {own}: nothing was copied")]
    OtherSite { found: String, own: String },
    #[error("the numbers of the mailboxes cannot be read: {0}")]
    Mailboxes(#[from] ValueError),
    #[error(
        "the source's epoch is damaged or used up: start a daemon on it once, or restore it from a copy"
    )]
    Epoch,
    #[error("the source: {0}")]
    From(StoreError),
    #[error("the target: {0}")]
    To(StoreError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error("the users of the source: {0}")]
    UsersFrom(UsersError),
    #[error("the users of the target: {0}")]
    UsersTo(UsersError),
}

/// What was copied, and is equal on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) queue: Sums,
    pub(crate) users: Sum,
}

impl Copied {
    /// Each with its name.
    pub(crate) fn all(&self) -> [(&'static str, Sum); 6] {
        let [entries, bodies, items, keys, values] = self.queue.all();
        [entries, bodies, items, keys, values, ("users", self.users)]
    }
}

/// An open store, which this process alone has.
struct Opened {
    store: Arc<dyn QueueStore>,
    database: Option<Arc<PostgresStore>>,
    users: Directory,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.store.close();
    }
}

/// A database of a site is opened alone too: that is refused while a node has a lease, and names values as
/// they are kept.
fn open_database(database: &Postgres) -> Result<Opened, StoreError> {
    let store = Arc::new(PostgresStore::open(&database.url, database_options(database))?);
    let users = Directory::Database(Arc::new(store.users()));
    Ok(Opened { store: Arc::clone(&store) as Arc<dyn QueueStore>, database: Some(store), users })
}

fn open_from(site: &Site) -> Result<Opened, Error> {
    match &site.engine {
        StoreEngine::Embedded => {
            let directory = site.paths.data_dir.join("queue");
            if !directory.is_dir() {
                return Err(Error::NoQueue(site.paths.data_dir.clone()));
            }
            let store = store::open(&directory, STORE).map_err(Error::From)?;
            let users = Directory::File(site.paths.data_dir.clone());
            Ok(Opened { store, database: None, users })
        }
        StoreEngine::Postgres(database) => open_database(database).map_err(Error::From),
    }
}

fn open_to(site: &Site) -> Result<Opened, Error> {
    match &site.engine {
        StoreEngine::Embedded => {
            let path = &site.paths.data_dir;
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(|error| Error::DataDir { path: path.clone(), error })?;
            let store = store::open(&path.join("queue"), STORE).map_err(Error::To)?;
            let users = Directory::File(site.paths.data_dir.clone());
            Ok(Opened { store, database: None, users })
        }
        StoreEngine::Postgres(database) => open_database(database).map_err(Error::To),
    }
}

/// What names a source, in the mark of an unfinished copy.
fn name_of(site: &Site) -> String {
    let mta = &site.node.mta.0;
    match &site.engine {
        StoreEngine::Embedded => {
            let path = &site.paths.data_dir;
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            format!("{mta} in {}", path.display())
        }
        StoreEngine::Postgres(Postgres { url, schema, .. }) => {
            format!("{mta} in schema {schema} of {url}")
        }
    }
}

/// Whether a named value is a process's own: in a database of a site it comes after the name of its node.
fn is_own(name: &str) -> bool {
    let is_own = |name: &str| OWN_VALUES.contains(&name);
    is_own(name) || name.split_once('/').is_some_and(|(_, name)| is_own(name))
}

/// The value under the number that its mailbox has in the target.
fn renamed(name: &str, numbers: &BTreeMap<MailboxId, MailboxId>) -> Option<String> {
    let (number, what) = name.strip_prefix("mailbox/")?.split_once('/')?;
    let number = numbers.get(&MailboxId(number.parse().ok()?))?;
    Some(format!("mailbox/{}/{what}", number.0))
}

/// Copies the queue of `from` to that of `to`, or continues it. `goes_on` is called with octets that were
/// read.
pub(crate) fn migrate(
    from: &Site,
    to: &Site,
    goes_on: &mut dyn FnMut(u64),
) -> Result<Copied, Error> {
    let own = &from.node.mta.0;
    if *own != to.node.mta.0 {
        return Err(Error::OtherMta { from: own.clone(), to: to.node.mta.0.clone() });
    }
    let (source, target) = (open_from(from)?, open_to(to)?);
    if let Some(found) = source.store.meta(SITE).map_err(Error::From)?
        && found != own.as_bytes()
    {
        let found = String::from_utf8_lossy(&found).into_owned();
        return Err(Error::OtherSite { found, own: own.clone() });
    }
    let is_site = matches!(&to.engine, StoreEngine::Postgres(database) if database.node.is_some());
    let names = source.store.meta(NAMES).map_err(Error::From)?;
    let (names, mailboxes) = mailboxes(names, is_site)?;
    let value = |name: &str, value: &Bytes| match name {
        name if is_own(name) => None,
        NAMES => Some((NAMES.to_owned(), names.clone().unwrap_or_else(|| value.clone()))),
        name => {
            let renamed = renamed(name, &mailboxes);
            Some((renamed.unwrap_or_else(|| name.to_owned()), value.clone()))
        }
    };
    let epoch = epoch_of(&source, from)?;
    let name = name_of(from);
    copy_users(&source.users, &target.users, true)?;
    let migration = Migration::begin(Plan {
        from: &*source.store,
        to: &*target.store,
        source: &name,
        mailboxes: &mailboxes,
        item_queue: MailboxId::queue,
        value: &value,
        written_at_start: SITE,
    })?;
    pass_epochs(&target, to, epoch)?;
    // The mark keeps daemons from starting meanwhile.
    let users = copy_users(&source.users, &target.users, false)?;
    let queue = migration.run(goes_on)?.ok_or(Error::To(StoreError::Closed))?;
    Ok(Copied { queue, users })
}

/// All users at once, into a target that has none. Both are compared. `only_looks`: nothing is copied.
fn copy_users(from: &Directory, to: &Directory, only_looks: bool) -> Result<Sum, Error> {
    let sum = |users: &Users| {
        let line = |user: Account| {
            let way = if user.is_stored { "store" } else { "p3" };
            (user.address.into_bytes(), format!("{way} {}", user.hash).into_bytes())
        };
        let lines: Vec<_> = users.accounts().into_iter().map(line).collect();
        sum_of(lines.iter().map(|(address, line)| (&address[..], &line[..])))
    };
    let theirs = from.read().map_err(Error::UsersFrom)?;
    let ours = to.read().map_err(Error::UsersTo)?;
    if ours.is_empty() && !theirs.is_empty() {
        if only_looks {
            return Ok(Sum::default());
        }
        to.import(&theirs).map_err(Error::UsersTo)?;
    }
    let (theirs, ours) = (sum(&theirs), sum(&to.read().map_err(Error::UsersTo)?));
    if ours != theirs {
        let what = "users who are not those of the source".to_owned();
        return Err(MigrateError::NotEmpty(what).into());
    }
    Ok(ours)
}

/// The value with the numbers of all mailboxes in the target, and these by the numbers in the source. The nodes of a site
/// compute the number of a mailbox, and the queue of its items, from its address alone.
fn mailboxes(
    names: Option<Bytes>,
    is_site: bool,
) -> Result<(Option<Bytes>, BTreeMap<MailboxId, MailboxId>), Error> {
    let Some(names) = names else { return Ok((None, BTreeMap::new())) };
    if is_site {
        let (names, numbers) = shared_names(&names)?;
        return Ok((Some(names), numbers));
    }
    let mut mailboxes = Mailboxes::default();
    mailboxes.recovered(&names)?;
    let numbers = mailboxes.numbers().map(|id| (id, id)).collect();
    Ok((Some(names), numbers))
}

/// The highest epoch that the source used: that of its starts or nodes, as far as it is kept, and that of its
/// highest entry.
fn epoch_of(source: &Opened, site: &Site) -> Result<u32, Error> {
    let mut epochs = vec![Some(epoch_file(&site.paths.data_dir).unwrap_or(0))];
    let added = for_each_value(&*source.store, |name, value| {
        let is_epoch = name == EPOCH || name.split_once('/').is_some_and(|(_, name)| name == EPOCH);
        if is_epoch {
            epochs.push(value.as_ref().try_into().ok().map(u32::from_be_bytes));
        }
    });
    added.map_err(Error::From)?;
    let highest = source.store.highest_entry().map_err(Error::From)?;
    epochs.push(highest.map_or(Some(0), |id| u32::try_from(id.0 >> COUNTER_BITS).ok()));
    if let Some(database) = &source.database {
        epochs.push(Some(database.last_epoch().map_err(Error::From)?));
    }
    let epochs: Option<Vec<u32>> = epochs.into_iter().collect();
    let highest = epochs.and_then(|epochs| epochs.into_iter().max());
    highest.filter(|epoch| *epoch < EPOCHS - 1).ok_or(Error::Epoch)
}

/// Epochs are in the numbers of entries and contents and in the identifiers of messages, so none may be used twice:
/// a node of a site numbers its entries by its epoch, which is the next one of the database's sequence, and a
/// process that is alone takes one more than the value in its store. Both are raised over all that the
/// source used. The small numbers of a process that is alone are below those of any epoch, and its marks,
/// which are copied, are above all that it gave out.
fn pass_epochs(target: &Opened, site: &Site, used: u32) -> Result<(), Error> {
    if let Some(database) = &target.database {
        database.pass_epochs(used).map_err(Error::To)?;
    }
    let kept = target.store.meta(EPOCH).map_err(Error::To)?;
    let kept = kept.and_then(|value| value.as_ref().try_into().ok().map(u32::from_be_bytes));
    let last = used.max(kept.unwrap_or(0)).max(epoch_file(&site.paths.data_dir).unwrap_or(0));
    let value = Bytes::copy_from_slice(&last.to_be_bytes());
    let batch = vec![Op::PutMeta { name: EPOCH.to_owned(), value }];
    commit_one(&*target.store, EPOCH_BATCH, batch).map_err(Error::To)
}

#[cfg(test)]
mod tests;
