//! The users with a mailbox on this MTA, with password hashes: `users.toml` in the data directory, or rows of the
//! database that the nodes of a site share ([`Directory`]).
//!
//! The file is replaced as a whole and durably. The daemon reads it at start and on a reload of
//! the users.

mod directory;

pub use directory::{Directory, Imported};

use argon2::{Algorithm, Argon2, Params, PasswordHash, PasswordHasher, PasswordVerifier, Version};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use store::{Disk, RealDisk, StoreError};

/// The file in the data directory.
pub const FILE: &str = "users.toml";
/// Its name while it is being written.
const UNFINISHED: &str = "users.toml.new";

const HEAD: &str =
    "# Users with a mailbox here. Written by `mta user`; passwords are argon2 hashes.\n";

/// Longest password (X.411, ub-password-length), in octets.
pub const MAX_PASSWORD: usize = 62;

/// Errors of the users file.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// The operating system refused access.
    #[error("{path}: {error}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The content is not valid.
    #[error(
        "{path}: {reason}; put the file of a backup there, or mend it (a [[user]] table for each, \
         with address and password), or remove it and add all users again with `mta user add`: \
         messages wait in their mailboxes"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is not valid.
        reason: UsersTextError,
    },
    /// The data directory cannot be locked, or the database does not give or take the users.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row of the database is not valid.
    #[error(
        "the password of {address} in the database has no hash: {error}; set it again with `mta user add`"
    )]
    Row {
        /// The user's canonical address.
        address: String,
        /// The cause.
        error: argon2::password_hash::phc::Error,
    },
    /// The database has no users, and a file that nobody reads has some.
    #[error(
        "the users are in the database, which has none, and {path} has {count}: run `mta user import \
         --config FILE`, or move the file away"
    )]
    NotImported {
        /// The file.
        path: PathBuf,
        /// Users in it.
        count: usize,
    },
    /// The user is gone, or has another password than the one that was to be replaced.
    #[error("{0} has another password by now, or is gone")]
    Changed(String),
    /// The password is not valid.
    #[error("a password has 1 to {MAX_PASSWORD} ASCII characters")]
    Password,
    /// The password hash failed.
    #[error("the password cannot be hashed: {0}")]
    Hash(String),
    /// The user does not exist.
    #[error("no user {0}: `mta user list` shows them")]
    Unknown(String),
}

/// Why a text does not list users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsersTextError {
    /// Not TOML, or not `[[user]]` tables.
    #[error("{}", .0.message())]
    Toml(toml::de::Error),
    /// A hash is not a PHC string.
    #[error("the hash of {address}: {error}")]
    Hash {
        /// The user's canonical address.
        address: String,
        /// The cause.
        error: argon2::password_hash::phc::Error,
    },
}

/// The users by canonical address.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Users(BTreeMap<String, User>);

/// A user.
#[derive(Clone, PartialEq, Eq)]
struct User {
    /// The hash of his password, a PHC string.
    hash: String,
    delivery: DeliveryWay,
}

/// How a user gets his messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryWay {
    /// They wait in the queue until he is bound over P3 and takes them.
    #[default]
    P3,
    /// They go into his mailbox in the message store, which he reads over P7.
    Store,
}

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    user: Vec<UserLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UserLine {
    address: String,
    password: String,
    #[serde(default)]
    delivery: DeliveryWay,
}

impl Users {
    /// Reads the users of a data directory; empty where there is no file.
    ///
    /// # Errors
    /// [`UsersError::Io`], [`UsersError::Malformed`].
    pub fn read(data_dir: &Path) -> Result<Users, UsersError> {
        Users::read_file(&data_dir.join(FILE))
    }

    /// Reads the users of a file; empty where there is none.
    ///
    /// # Errors
    /// [`UsersError::Io`], [`UsersError::Malformed`].
    pub fn read_file(path: &Path) -> Result<Users, UsersError> {
        let path = path.to_owned();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Users::default()),
            Err(error) => return Err(UsersError::Io { path, error }),
        };
        Users::parse(&text).map_err(|reason| UsersError::Malformed { path, reason })
    }

    /// Reads the text of a users' file.
    ///
    /// # Errors
    /// [`UsersTextError`].
    pub fn parse(text: &str) -> Result<Users, UsersTextError> {
        let file: File = toml::from_str(text).map_err(UsersTextError::Toml)?;
        let mut users = Users::default();
        for line in file.user {
            if let Err(error) = PasswordHash::new(&line.password) {
                return Err(UsersTextError::Hash { address: line.address, error });
            }
            let user = User { hash: line.password, delivery: line.delivery };
            users.0.insert(line.address, user);
        }
        Ok(users)
    }

    /// Changes the users of a data directory, which is created if absent. A concurrent change is
    /// refused; readers see the file before or after the change.
    ///
    /// # Errors
    /// All of [`UsersError`].
    pub fn change<T>(
        data_dir: &Path,
        change: impl FnOnce(&mut Users) -> Result<T, UsersError>,
    ) -> Result<T, UsersError> {
        let io = |error| UsersError::Io { path: data_dir.to_owned(), error };
        if let Some(parent) = data_dir.parent() {
            std::fs::create_dir_all(parent).map_err(io)?;
        }
        let disk = RealDisk::open(data_dir)?;
        let mut users = Users::read(data_dir)?;
        let done = change(&mut users)?;
        users.write(&disk).map_err(io)?;
        Ok(done)
    }

    /// Writes and syncs a new file, renames it over the old one, then syncs the directory.
    fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        let line = |(address, user): (&String, &User)| UserLine {
            address: address.clone(),
            password: user.hash.clone(),
            delivery: user.delivery,
        };
        let file = File { user: self.0.iter().map(line).collect() };
        let text = toml::to_string(&file).map_err(io::Error::other)?;
        match disk.unlink(Path::new(UNFINISHED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut unfinished = disk.create(Path::new(UNFINISHED))?;
        unfinished.append(HEAD.as_bytes())?;
        unfinished.append(text.as_bytes())?;
        unfinished.sync()?;
        disk.rename(Path::new(UNFINISHED), Path::new(FILE))?;
        disk.sync_dir(Path::new(""))
    }

    /// Adds a user, or changes a user's password. Returns whether the user is new.
    ///
    /// # Errors
    /// [`UsersError::Password`], [`UsersError::Hash`].
    pub fn add(&mut self, address: &str, password: &[u8]) -> Result<bool, UsersError> {
        let hash = hash(password)?;
        let delivery = self.0.get(address).map(|user| user.delivery);
        let user = User { hash, delivery: delivery.unwrap_or_default() };
        self.0.insert(address.to_owned(), user);
        Ok(delivery.is_none())
    }

    /// Sets how a user gets his messages from now on.
    ///
    /// # Errors
    /// [`UsersError::Unknown`].
    pub fn set_delivery(&mut self, address: &str, delivery: DeliveryWay) -> Result<(), UsersError> {
        let user = self.0.get_mut(address);
        let user = user.ok_or_else(|| UsersError::Unknown(address.to_owned()))?;
        user.delivery = delivery;
        Ok(())
    }

    /// How a user gets his messages.
    pub fn delivery_of(&self, address: &str) -> Option<DeliveryWay> {
        self.0.get(address).map(|user| user.delivery)
    }

    /// Those whose messages go into the message store.
    pub fn stored(&self) -> BTreeSet<String> {
        let stored = self.0.iter().filter(|(_, user)| user.delivery == DeliveryWay::Store);
        stored.map(|(address, _)| address.clone()).collect()
    }

    /// Removes a user.
    ///
    /// # Errors
    /// [`UsersError::Unknown`].
    pub fn remove(&mut self, address: &str) -> Result<(), UsersError> {
        self.0.remove(address).map(drop).ok_or_else(|| UsersError::Unknown(address.to_owned()))
    }

    /// Their canonical addresses, sorted.
    pub fn addresses(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// The PHC string of a user.
    pub fn hash_of(&self, address: &str) -> Option<&str> {
        self.0.get(address).map(|user| user.hash.as_str())
    }
}

/// Argon2id with 7 MiB and 5 passes: of the equivalent recommended settings, the one that uses
/// least memory beside large transfers.
fn argon2() -> Result<Argon2<'static>, UsersError> {
    let params = Params::new(7 << 10, 5, 1, None).map_err(|e| UsersError::Hash(e.to_string()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// The PHC string of a password, with its own salt. Slow by design.
///
/// # Errors
/// [`UsersError::Password`], [`UsersError::Hash`].
pub fn hash(password: &[u8]) -> Result<String, UsersError> {
    if password.is_empty() || password.len() > MAX_PASSWORD || !password.is_ascii() {
        return Err(UsersError::Password);
    }
    let hash = argon2()?.hash_password(password);
    hash.map(|h| h.to_string()).map_err(|e| UsersError::Hash(e.to_string()))
}

/// Whether a password has this hash. Slow by design.
pub fn verify(password: &[u8], hash: &str) -> bool {
    let (Ok(argon2), Ok(hash)) = (argon2(), PasswordHash::new(hash)) else { return false };
    argon2.verify_password(password, &hash).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn users_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("deep/data");
        assert_eq!(Users::read(&data).unwrap(), Users::default());
        assert!(Users::change(&data, |u| u.add("/c=it/s=a", b"vesuvio")).unwrap());
        assert!(Users::change(&data, |u| u.add("/c=it/s=b", b"etna")).unwrap());
        assert!(!Users::change(&data, |u| u.add("/c=it/s=a", b"stromboli")).unwrap());
        let users = Users::read(&data).unwrap();
        assert_eq!(users.addresses(), ["/c=it/s=a", "/c=it/s=b"]);
        let hash = users.hash_of("/c=it/s=a").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=7168,t=5,p=1$"), "{hash}");
        assert!(verify(b"stromboli", hash) && !verify(b"vesuvio", hash) && !verify(b"", hash));

        let path = data.join(FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("stromboli") && !text.contains("etna"));

        Users::change(&data, |u| u.remove("/c=it/s=a")).unwrap();
        let error = Users::change(&data, |u| u.remove("/c=it/s=a")).unwrap_err();
        assert!(matches!(error, UsersError::Unknown(_)), "{error}");
        assert_eq!(Users::read(&data).unwrap().addresses(), ["/c=it/s=b"]);
    }

    #[test]
    fn a_change_that_fails_or_was_cut_short_leaves_the_file() {
        let dir = tempfile::tempdir().unwrap();
        Users::change(dir.path(), |u| u.add("/c=it/s=a", b"vesuvio")).unwrap();
        let before = std::fs::read(dir.path().join(FILE)).unwrap();
        std::fs::write(dir.path().join(UNFINISHED), "half a f").unwrap();
        for password in [&b""[..], &[b'x'; 63], "é".as_bytes()] {
            assert!(Users::change(dir.path(), |u| u.add("/c=it/s=b", password)).is_err());
        }
        assert_eq!(std::fs::read(dir.path().join(FILE)).unwrap(), before);
        Users::change(dir.path(), |u| u.add("/c=it/s=b", b"etna")).unwrap();
        assert!(!dir.path().join(UNFINISHED).exists());
        assert_eq!(Users::read(dir.path()).unwrap().addresses().len(), 2);
    }

    #[test]
    fn two_writers_do_not_mix() {
        let dir = tempfile::tempdir().unwrap();
        let nested = Users::change(dir.path(), |_| Users::change(dir.path(), |_| Ok(())));
        assert!(matches!(nested, Err(UsersError::Store(StoreError::Locked { .. }))));
    }

    #[test]
    fn a_file_of_other_make_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["[[user]]\naddress = 'a'\npassword = 'plain'", "[[user]]\nname = 'a'", "x"] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            assert!(matches!(Users::read(dir.path()), Err(UsersError::Malformed { .. })), "{text}");
        }
    }
}
