//! The users of a site: the rows of `account` (`migrations/0004_site.sql`).
//!
//! This needs no run of a store: commands use it beside daemons. Each call is one statement and may be made twice.

use crate::connection::client::Connection;
use crate::connection::edge::Edge;
use crate::connection::failure::{Failure, StoreKind};
use crate::connection::pool::Pool;
use crate::connection::target::Target;
use crate::options::Options;
use crate::prepare;
use crate::queue::PostgresStore;
use std::sync::Arc;
use store::StoreError;
use store::accounts::{Account, Accounts};

/// The table of users of a database, over a connection of its own.
#[derive(Debug)]
pub struct PostgresAccounts {
    pool: Pool,
}

impl PostgresAccounts {
    /// The users of a database, whose tables [`prepare`](crate::prepare()) made. The url is that of the account that
    /// runs. Other processes may have the store.
    ///
    /// # Errors
    /// [`StoreError::NotPrepared`]; [`StoreError::Newer`]; [`StoreError::Away`]; [`StoreError::Refused`].
    pub fn open(url: &str, options: &Options) -> Result<PostgresAccounts, StoreError> {
        let target = Arc::new(Target::parse(url, options)?);
        let io = |e| StoreError::Io { doing: "opening the users", source: Arc::new(e) };
        let edge = Arc::new(Edge::start().map_err(io)?);
        prepare::check(&edge, &target)?;
        Ok(PostgresAccounts { pool: Pool::new(&edge, &target, 1) })
    }
}

impl PostgresStore {
    /// The users of the same database.
    #[must_use]
    pub fn users(&self) -> PostgresAccounts {
        PostgresAccounts { pool: Pool::new(&self.edge, &self.target, 1) }
    }
}

/// Refuses addresses whose mailboxes would have the number of another user's. The index refuses too whoever comes at the
/// same time, and names nobody.
async fn refuse_second_number(client: &Connection, addresses: &[&str]) -> Result<(), Failure> {
    // By groups: a join of thousands with themselves takes longer than a statement may.
    let sql = "WITH given AS MATERIALIZED \
                 (SELECT DISTINCT a, mailbox_number(a) n FROM unnest($1::text[]) a), \
               known AS MATERIALIZED (SELECT a, n FROM given UNION \
                 SELECT address, mailbox_number(address) FROM account \
                   WHERE mailbox_number(address) IN (SELECT n FROM given)), \
               twice AS MATERIALIZED \
                 (SELECT n FROM known GROUP BY n HAVING count(*) > 1 ORDER BY n LIMIT 1) \
               SELECT given.a, known.a FROM twice JOIN given USING (n) JOIN known USING (n) \
                 WHERE given.a <> known.a ORDER BY 1 LIMIT 1";
    match client.row(sql, &[&addresses]).await? {
        Some(row) => Err(Failure::Ours(Box::new(StoreKind::NumberTaken {
            address: row.get(0),
            by: row.get(1),
        }))),
        None => Ok(()),
    }
}

impl Accounts for PostgresAccounts {
    fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        let rows = self.pool.call("reading the users", |client| async move {
            client.rows("SELECT address, hash, is_stored FROM account ORDER BY address", &[]).await
        })?;
        let account = |row: &tokio_postgres::Row| Account {
            address: row.get(0),
            hash: row.get(1),
            is_stored: row.get(2),
        };
        Ok(rows.iter().map(account).collect())
    }

    fn put_account(
        &self,
        address: &str,
        hash: &str,
        is_stored: Option<bool>,
    ) -> Result<bool, StoreError> {
        let given = Arc::new((address.to_owned(), hash.to_owned()));
        let row = self.pool.call("adding a user", move |client| {
            let given = Arc::clone(&given);
            async move {
                refuse_second_number(&client, &[&given.0]).await?;
                // xmax is 0 where the row is new.
                let sql = "INSERT INTO account (address, hash, is_stored) \
                             VALUES ($1, $2, coalesce($3, false)) \
                           ON CONFLICT (address) DO UPDATE SET hash = excluded.hash, \
                             is_stored = coalesce($3, account.is_stored), \
                             changed = clock_timestamp() \
                           RETURNING xmax = 0";
                client.row(sql, &[&given.0, &given.1, &is_stored]).await
            }
        })?;
        Ok(row.is_some_and(|row| row.get(0)))
    }

    fn replace_hash(&self, address: &str, before: &str, hash: &str) -> Result<bool, StoreError> {
        let given = Arc::new([address, before, hash].map(str::to_owned));
        let rows = self.pool.call("changing a password", move |client| {
            let given = Arc::clone(&given);
            async move {
                let [address, before, hash] = &*given;
                // The new one, too: the same call may come twice.
                let sql = "UPDATE account SET hash = $3, changed = clock_timestamp() \
                           WHERE address = $1 AND hash IN ($2, $3) RETURNING address";
                client.rows(sql, &[address, before, hash]).await
            }
        })?;
        Ok(!rows.is_empty())
    }

    fn set_stored(&self, address: &str, is_stored: bool) -> Result<bool, StoreError> {
        let address = Arc::new(address.to_owned());
        let rows = self.pool.call("setting the delivery of a user", move |client| {
            let address = Arc::clone(&address);
            async move {
                let sql = "UPDATE account SET is_stored = $2, changed = clock_timestamp() \
                           WHERE address = $1 RETURNING address";
                client.rows(sql, &[&*address, &is_stored]).await
            }
        })?;
        Ok(!rows.is_empty())
    }

    fn remove_account(&self, address: &str) -> Result<bool, StoreError> {
        let address = Arc::new(address.to_owned());
        let rows = self.pool.call("removing a user", move |client| {
            let address = Arc::clone(&address);
            async move {
                let sql = "DELETE FROM account WHERE address = $1 RETURNING address";
                client.rows(sql, &[&*address]).await
            }
        })?;
        Ok(!rows.is_empty())
    }

    fn add_missing(&self, accounts: &[Account]) -> Result<usize, StoreError> {
        let accounts = Arc::new(accounts.to_vec());
        let rows = self.pool.call("adding users", move |client| {
            let accounts = Arc::clone(&accounts);
            async move {
                let texts = |text: fn(&Account) -> &str| -> Vec<&str> {
                    accounts.iter().map(text).collect()
                };
                let stored: Vec<bool> = accounts.iter().map(|account| account.is_stored).collect();
                let sql = "INSERT INTO account (address, hash, is_stored) \
                           SELECT * FROM unnest($1::text[], $2::text[], $3::boolean[]) \
                           ON CONFLICT (address) DO NOTHING RETURNING address";
                let (addresses, hashes) = (texts(|a| &a.address), texts(|a| &a.hash));
                refuse_second_number(&client, &addresses).await?;
                client.rows(sql, &[&addresses, &hashes, &stored]).await
            }
        })?;
        Ok(rows.len())
    }
}
