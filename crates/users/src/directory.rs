//! Where the users of an MTA are: in the file of its data directory, or, where several nodes share a database, there.

use crate::{DeliveryWay, FILE, User, Users, UsersError, hash};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::accounts::{Account, Accounts};

/// Where the users are.
#[derive(Clone, Debug)]
pub enum Directory {
    /// In [`FILE`] of this data directory.
    File(PathBuf),
    /// In a database.
    Database(Arc<dyn Accounts>),
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// How many users were added.
    pub added: usize,
    /// Those who were there with another password or way of delivery, which they keep.
    pub kept: Vec<String>,
}

impl Directory {
    /// All users.
    ///
    /// # Errors
    /// Those of the file; [`UsersError::Store`]; [`UsersError::Row`].
    pub fn read(&self) -> Result<Users, UsersError> {
        match self {
            Directory::File(data_dir) => Users::read(data_dir),
            Directory::Database(accounts) => Users::of_accounts(accounts.accounts()?),
        }
    }

    /// The users of an MTA that starts, and those of the file in its data directory who are not among them: nobody
    /// reads that file where a database has the users.
    ///
    /// # Errors
    /// As [`Directory::read`]; [`UsersError::NotImported`] if the database has no users and the file has some.
    pub fn read_at_start(&self, data_dir: &Path) -> Result<(Users, Vec<String>), UsersError> {
        let users = self.read()?;
        if matches!(self, Directory::File(_)) {
            return Ok((users, Vec::new()));
        }
        let mut left = Users::read(data_dir)?.addresses();
        if users.0.is_empty() && !left.is_empty() {
            return Err(UsersError::NotImported { path: data_dir.join(FILE), count: left.len() });
        }
        left.retain(|address| !users.0.contains_key(address));
        Ok((users, left))
    }

    /// Adds a user, or sets the password of one who is there, and the way of delivery if one is given. Gives whether
    /// the user is new.
    ///
    /// # Errors
    /// [`UsersError::Password`], [`UsersError::Hash`]; those of the file; [`UsersError::Store`].
    pub fn add(
        &self,
        address: &str,
        password: &[u8],
        delivery: Option<DeliveryWay>,
    ) -> Result<bool, UsersError> {
        match self {
            Directory::File(data_dir) => Users::change(data_dir, |users| {
                let new = users.add(address, password)?;
                delivery.map_or(Ok(()), |delivery| users.set_delivery(address, delivery))?;
                Ok(new)
            }),
            Directory::Database(accounts) => {
                let is_stored = delivery.map(|delivery| delivery == DeliveryWay::Store);
                Ok(accounts.put_account(address, &hash(password)?, is_stored)?)
            }
        }
    }

    /// Replaces the password of a user by that with the hash `new`, if its hash is `before` still.
    ///
    /// # Errors
    /// [`UsersError::Changed`]; those of the file; [`UsersError::Store`].
    pub fn replace_hash(&self, address: &str, before: &str, new: &str) -> Result<(), UsersError> {
        let is_changed = match self {
            Directory::File(data_dir) => Users::change(data_dir, |users| {
                let user = users.0.get_mut(address).filter(|user| user.hash == before);
                Ok(user.map(|user| user.hash = new.to_owned()).is_some())
            })?,
            Directory::Database(accounts) => accounts.replace_hash(address, before, new)?,
        };
        if is_changed { Ok(()) } else { Err(UsersError::Changed(address.to_owned())) }
    }

    /// Sets how a user gets his messages from now on.
    ///
    /// # Errors
    /// [`UsersError::Unknown`]; those of the file; [`UsersError::Store`].
    pub fn set_delivery(&self, address: &str, delivery: DeliveryWay) -> Result<(), UsersError> {
        match self {
            Directory::File(data_dir) => {
                Users::change(data_dir, |users| users.set_delivery(address, delivery))
            }
            Directory::Database(accounts) => {
                known(address, accounts.set_stored(address, delivery == DeliveryWay::Store)?)
            }
        }
    }

    /// Removes a user.
    ///
    /// # Errors
    /// [`UsersError::Unknown`]; those of the file; [`UsersError::Store`].
    pub fn remove(&self, address: &str) -> Result<(), UsersError> {
        match self {
            Directory::File(data_dir) => Users::change(data_dir, |users| users.remove(address)),
            Directory::Database(accounts) => known(address, accounts.remove_account(address)?),
        }
    }

    /// Adds those of `users` who are not there, all or none.
    ///
    /// # Errors
    /// Those of the file; [`UsersError::Store`]; [`UsersError::Row`].
    pub fn import(&self, users: &Users) -> Result<Imported, UsersError> {
        let added = match self {
            Directory::File(data_dir) => Users::change(data_dir, |ours| {
                let before = ours.0.len();
                for (address, user) in &users.0 {
                    ours.0.entry(address.clone()).or_insert_with(|| user.clone());
                }
                Ok(ours.0.len() - before)
            })?,
            Directory::Database(accounts) => accounts.add_missing(&users.accounts())?,
        };
        let ours = self.read()?;
        let differs = |(address, user): &(&String, &User)| {
            ours.0.get(*address).is_some_and(|our| our != *user)
        };
        let kept = users.0.iter().filter(differs).map(|(address, _)| address.clone()).collect();
        Ok(Imported { added, kept })
    }
}

fn known(address: &str, is_known: bool) -> Result<(), UsersError> {
    if is_known { Ok(()) } else { Err(UsersError::Unknown(address.to_owned())) }
}

impl Users {
    fn of_accounts(accounts: Vec<Account>) -> Result<Users, UsersError> {
        let mut users = Users::default();
        for Account { address, hash, is_stored } in accounts {
            if let Err(error) = argon2::PasswordHash::new(&hash) {
                return Err(UsersError::Row { address, error });
            }
            let delivery = if is_stored { DeliveryWay::Store } else { DeliveryWay::P3 };
            users.0.insert(address, User { hash, delivery });
        }
        Ok(users)
    }

    /// One row for each.
    #[must_use]
    pub fn accounts(&self) -> Vec<Account> {
        let account = |(address, user): (&String, &User)| Account {
            address: address.clone(),
            hash: user.hash.clone(),
            is_stored: user.delivery == DeliveryWay::Store,
        };
        self.0.iter().map(account).collect()
    }

    /// Sets the hash of a user's password, if there is such a user.
    pub fn set_hash(&mut self, address: &str, hash: String) {
        if let Some(user) = self.0.get_mut(address) {
            user.hash = hash;
        }
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use store::StoreError;

    const ANNA: &str = "/c=it/s=anna";
    const BEA: &str = "/c=it/s=bea";

    /// A table in memory. That of the database has its tests in `crates/postgres`.
    #[derive(Debug, Default)]
    struct Table(Mutex<BTreeMap<String, Account>>);

    impl Accounts for Table {
        fn accounts(&self) -> Result<Vec<Account>, StoreError> {
            Ok(self.0.lock().unwrap().values().cloned().collect())
        }

        fn put_account(
            &self,
            address: &str,
            hash: &str,
            stored: Option<bool>,
        ) -> Result<bool, StoreError> {
            let mut rows = self.0.lock().unwrap();
            let before = rows.get(address).map(|row| row.is_stored);
            let is_stored = stored.or(before).unwrap_or_default();
            let row = Account { address: address.to_owned(), hash: hash.to_owned(), is_stored };
            rows.insert(address.to_owned(), row);
            Ok(before.is_none())
        }

        fn replace_hash(&self, address: &str, before: &str, new: &str) -> Result<bool, StoreError> {
            let mut rows = self.0.lock().unwrap();
            let row = rows.get_mut(address).filter(|row| row.hash == before);
            Ok(row.map(|row| row.hash = new.to_owned()).is_some())
        }

        fn set_stored(&self, address: &str, is_stored: bool) -> Result<bool, StoreError> {
            let mut rows = self.0.lock().unwrap();
            Ok(rows.get_mut(address).map(|row| row.is_stored = is_stored).is_some())
        }

        fn remove_account(&self, address: &str) -> Result<bool, StoreError> {
            Ok(self.0.lock().unwrap().remove(address).is_some())
        }

        fn add_missing(&self, accounts: &[Account]) -> Result<usize, StoreError> {
            let mut rows = self.0.lock().unwrap();
            let before = rows.len();
            for account in accounts {
                rows.entry(account.address.clone()).or_insert_with(|| account.clone());
            }
            Ok(rows.len() - before)
        }
    }

    fn both(data_dir: &Path) -> [Directory; 2] {
        [Directory::File(data_dir.to_owned()), Directory::Database(Arc::new(Table::default()))]
    }

    #[test]
    fn file_and_database_do_the_same() {
        let dir = tempfile::tempdir().unwrap();
        for users in both(dir.path()) {
            assert!(users.add(ANNA, b"vesuvio", Some(DeliveryWay::Store)).unwrap());
            assert!(users.add(BEA, b"etna", None).unwrap());
            assert!(!users.add(ANNA, b"stromboli", None).unwrap());
            assert!(matches!(users.add(ANNA, b"", None), Err(UsersError::Password)));
            let read = users.read().unwrap();
            assert_eq!(read.stored().into_iter().collect::<Vec<_>>(), [ANNA]);
            let before = read.hash_of(ANNA).unwrap().to_owned();
            assert!(verify(b"stromboli", &before));
            users.set_delivery(BEA, DeliveryWay::Store).unwrap();
            // Of two changes of one password the second is refused.
            let [new, newer] = [&b"vulcano"[..], b"lipari"].map(|password| hash(password).unwrap());
            users.replace_hash(ANNA, &before, &new).unwrap();
            let twice = users.replace_hash(ANNA, &before, &newer);
            assert!(matches!(twice, Err(UsersError::Changed(_))), "{twice:?}");
            let read = users.read().unwrap();
            assert_eq!(read.hash_of(ANNA), Some(&*new));
            assert_eq!(read.stored().len(), 2);
            users.remove(ANNA).unwrap();
            for unknown in [users.remove(ANNA), users.set_delivery(ANNA, DeliveryWay::P3)] {
                assert!(matches!(unknown, Err(UsersError::Unknown(_))), "{unknown:?}");
            }
            let gone = users.replace_hash(ANNA, &new, &newer);
            assert!(matches!(gone, Err(UsersError::Changed(_))), "{gone:?}");
            assert_eq!(users.read().unwrap().addresses(), [BEA]);
        }
    }

    #[test]
    fn a_file_that_nobody_would_read_is_imported() {
        let dir = tempfile::tempdir().unwrap();
        let [file, database] = both(dir.path());
        // Neither has users.
        let (users, left) = database.read_at_start(dir.path()).unwrap();
        assert!(users.is_empty() && left.is_empty());
        file.add(ANNA, b"vesuvio", Some(DeliveryWay::Store)).unwrap();
        file.add(BEA, b"etna", None).unwrap();
        let error = database.read_at_start(dir.path()).unwrap_err().to_string();
        assert!(error.contains("users.toml has 2: run `mta user import"), "{error}");

        database.add(BEA, b"stromboli", None).unwrap();
        let (users, left) = database.read_at_start(dir.path()).unwrap();
        assert_eq!((users.addresses(), left), (vec![BEA.to_owned()], vec![ANNA.to_owned()]));
        let ours = file.read().unwrap();
        let imported = Imported { added: 1, kept: vec![BEA.to_owned()] };
        assert_eq!(database.import(&ours).unwrap(), imported);
        let theirs = database.read().unwrap();
        assert_eq!(theirs.hash_of(ANNA), ours.hash_of(ANNA));
        assert_eq!(theirs.stored(), ours.stored());
        assert!(verify(b"stromboli", theirs.hash_of(BEA).unwrap()));
        assert_eq!(database.read_at_start(dir.path()).unwrap(), (theirs, Vec::new()));
        assert_eq!(file.read_at_start(dir.path()).unwrap(), (ours, Vec::new()));
    }

    #[test]
    fn a_row_with_something_else_than_a_hash_is_named() {
        let table = Table::default();
        table.put_account(ANNA, "plain", None).unwrap();
        let error = Directory::Database(Arc::new(table)).read().unwrap_err().to_string();
        assert!(error.contains(ANNA) && error.contains("mta user add"), "{error}");
    }
}
