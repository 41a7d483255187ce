//! Password checks: of peers in constant time, of users by their hashes, with a limit on parallel
//! hashes, and in the same time for unknown users; and the users that are checked against, read again from a database.

use base::PeerId;
use node::{EdgeError, PasswordProblem, Principal, Secret};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, oneshot};
use users::{Directory, Users, UsersError};

/// The passwords and hashes to check against.
#[derive(Clone)]
pub struct Verifier {
    inner: Arc<Inner>,
}

struct Inner {
    peers: BTreeMap<PeerId, Secret>,
    known: Arc<Mutex<Known>>,
    /// A hash no password has, for unknown users.
    dummy: String,
    turns: Semaphore,
}

/// The users as they are known here.
#[derive(Default)]
struct Known {
    users: Users,
    /// Hashes of passwords that users are changing here: others may receive them before the change is answered.
    changing: BTreeMap<String, String>,
    /// How many passwords were changed here: what was read before a change may be of before.
    changes: u64,
}

/// The users of a database, read by another thread: one reading at a time.
#[derive(Debug)]
pub struct UserReader {
    /// Where they are.
    pub directory: Directory,
    is_reading: bool,
    /// They may have changed since the reading began.
    again: bool,
    /// Operators who wait until changes of theirs are known here.
    asked: Vec<oneshot::Sender<()>>,
}

/// What such a reading gave.
#[derive(Debug)]
pub struct ReadUsers {
    result: Result<Users, UsersError>,
    /// Those of [`Known::changes`] before it began.
    changes: u64,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl UserReader {
    /// Those who are there; none was read yet.
    #[must_use]
    pub fn new(directory: Directory) -> UserReader {
        UserReader { directory, is_reading: false, again: false, asked: Vec::new() }
    }

    /// They may have changed. Gives the reading that is to be done now, if none goes on.
    pub fn changed(
        &mut self,
        verifier: &Verifier,
        asked: Option<oneshot::Sender<()>>,
    ) -> Option<impl FnOnce() -> ReadUsers + Send + 'static> {
        self.asked.extend(asked);
        self.again = self.is_reading;
        if std::mem::replace(&mut self.is_reading, true) {
            return None;
        }
        let (directory, changes) = (self.directory.clone(), verifier.known().changes);
        Some(move || ReadUsers { result: directory.read(), changes })
    }

    /// A reading has ended. Gives the users, unless it was too early.
    pub fn ended(
        &mut self,
        verifier: &Verifier,
        read: ReadUsers,
    ) -> Option<Result<Users, UsersError>> {
        self.is_reading = false;
        let ReadUsers { result, changes } = read;
        if result.is_ok() && verifier.known().changes != changes {
            self.again = true;
            return None;
        }
        Some(result)
    }

    /// Whether another reading is to be done. If none is, those who wait are answered.
    pub fn is_due(&mut self) -> bool {
        if !self.again {
            for asked in self.asked.drain(..) {
                let _ = asked.send(());
            }
        }
        self.again
    }
}

impl Verifier {
    /// A verifier of the peers' passwords and the users. `at_once` limits parallel hashes, each of
    /// which takes 7 MiB and one core; the node requests no more either.
    ///
    /// # Errors
    /// [`UsersError::Hash`].
    pub fn new(
        peers: BTreeMap<PeerId, Secret>,
        users: Users,
        at_once: usize,
    ) -> Result<Verifier, UsersError> {
        let dummy = users::hash(b"nobody")?;
        let turns = Semaphore::new(at_once);
        let known = Arc::new(Mutex::new(Known { users, ..Known::default() }));
        Ok(Verifier { inner: Arc::new(Inner { peers, known, dummy, turns }) })
    }

    /// The same users with other passwords of peers and another limit on hashes.
    #[must_use]
    pub fn renewed(&self, peers: BTreeMap<PeerId, Secret>, at_once: usize) -> Verifier {
        let known = Arc::clone(&self.inner.known);
        let (dummy, turns) = (self.inner.dummy.clone(), Semaphore::new(at_once));
        Verifier { inner: Arc::new(Inner { peers, known, dummy, turns }) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The canonical addresses of the users.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.known().users.addresses()
    }

    /// Whether the users are these.
    #[must_use]
    pub fn has(&self, users: &Users) -> bool {
        self.known().users == *users
    }

    /// Replaces the users; returns those removed and those whose password was changed elsewhere.
    pub fn set_users(&self, users: Users) -> Vec<String> {
        let mut known = self.known();
        let mut changed = known.users.addresses();
        changed.retain(|address| {
            let hash = users.hash_of(address);
            known.users.hash_of(address) != hash
                && (hash.is_none() || known.changing.get(address).map(String::as_str) != hash)
        });
        known.users = users;
        changed
    }

    /// Changes the password of a user, durably; from then on it is his.
    ///
    /// # Errors
    /// The old password is wrong, or is his no longer; the new one is none; it could not be made durable.
    pub async fn change(
        &self,
        users: &Directory,
        mailbox: &str,
        old: Secret,
        new: Secret,
    ) -> Result<(), PasswordProblem> {
        let Some(before) = self.hash_of_right(mailbox, old).await else {
            return Err(PasswordProblem::Old);
        };
        let (users, address, known) = (users.clone(), mailbox.to_owned(), self.clone());
        let write = move || {
            let hash = users::hash(&new.0)?;
            known.known().changing.insert(address.clone(), hash.clone());
            let written = users.replace_hash(&address, &before, &hash);
            let mut known = known.known();
            known.changing.remove(&address);
            if written.is_ok() {
                known.users.set_hash(&address, hash);
                known.changes += 1;
            }
            written
        };
        let failed = |why: String| PasswordProblem::Failed(EdgeError(why));
        let written = tokio::task::spawn_blocking(write).await;
        match written.map_err(|error| failed(error.to_string()))? {
            Ok(()) => Ok(()),
            Err(error @ UsersError::Password) => Err(PasswordProblem::New(error.to_string())),
            // Another node, or an operator, was faster: it is not his password any more.
            Err(UsersError::Changed(_)) => Err(PasswordProblem::Old),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Whether this is the password of that principal.
    pub async fn verify(&self, principal: Principal, password: Secret) -> bool {
        match principal {
            Principal::Peer(peer) => {
                let expected = self.inner.peers.get(&peer);
                expected.is_some_and(|expected| same(&expected.0, &password.0))
            }
            Principal::User(address) => self.hash_of_right(&address, password).await.is_some(),
        }
    }

    /// The hash of a user's password, if this is the password.
    async fn hash_of_right(&self, address: &str, password: Secret) -> Option<String> {
        let known = self.known().users.hash_of(address).map(str::to_owned);
        let hash = known.clone().unwrap_or_else(|| self.inner.dummy.clone());
        let _turn = self.inner.turns.acquire().await.ok()?;
        let check = move || users::verify(&password.0, &hash);
        let is_right = tokio::task::spawn_blocking(check).await.unwrap_or(false);
        known.filter(|_| is_right)
    }
}

/// Compares digests over their whole length, so that the time does not depend on where they
/// differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    let (a, b) = (Sha256::digest(a), Sha256::digest(b));
    std::hint::black_box(a.iter().zip(b.iter()).fold(0, |all, (x, y)| all | (x ^ y))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    #[tokio::test]
    async fn passwords_are_those_of_their_principals() {
        let mut users = Users::default();
        users.add("/c=it/s=a", b"vesuvio").unwrap();
        let named = [("act", "etna"), ("naples", "stromboli")];
        let peers = named.map(|(n, p)| (PeerId::of_name(n), Secret(p.into()))).into();
        let verifier = Verifier::new(peers, users, 2).unwrap();
        let peer = |n| Principal::Peer(PeerId::of_name(n));
        let user = |a: &str| Principal::User(a.to_owned());
        for (principal, password, right) in [
            (peer("act"), "etna", true),
            (peer("naples"), "etna", false),
            (peer("naples"), "stromboli", true),
            (peer("rome"), "", false),
            (user("/c=it/s=a"), "vesuvio", true),
            (user("/c=it/s=a"), "etna", false),
            (user("/c=it/s=b"), "vesuvio", false),
            (user("/c=it/s=b"), "nobody", false),
        ] {
            let verified = verifier.verify(principal.clone(), Secret(password.into())).await;
            assert_eq!(verified, right, "{principal:?} {password}");
        }
        let same = verifier.known().users.clone();
        assert!(verifier.set_users(same).is_empty());
        assert_eq!(verifier.set_users(Users::default()), ["/c=it/s=a"]);
        assert!(!verifier.verify(user("/c=it/s=a"), Secret("vesuvio".into())).await);
    }

    #[tokio::test]
    async fn whoever_changes_a_password_stays_bound() {
        let directory = tempfile::tempdir().unwrap();
        let users = Directory::File(directory.path().to_owned());
        for address in ["/c=it/s=a", "/c=it/s=b"] {
            users.add(address, b"vesuvio", None).unwrap();
        }
        let verifier = Verifier::new(BTreeMap::new(), users.read().unwrap(), 2).unwrap();
        let mut reader = UserReader::new(users.clone());
        let early = reader.changed(&verifier, None).unwrap()();
        let secret = |text: &'static str| Secret(text.into());
        let change = |old, new| verifier.change(&users, "/c=it/s=a", secret(old), secret(new));
        change("vesuvio", "etna").await.unwrap();
        // What was read before is not taken.
        assert!(reader.ended(&verifier, early).is_none() && reader.is_due());
        let read = reader.changed(&verifier, None).unwrap()();
        let users_now = reader.ended(&verifier, read).unwrap().unwrap();
        assert!(!reader.is_due());
        assert_eq!(verifier.set_users(users_now), [""; 0]);
        // Another node was faster, and it is not known here yet.
        users.add("/c=it/s=a", b"stromboli", None).unwrap();
        assert!(matches!(change("etna", "lipari").await, Err(PasswordProblem::Old)));
        assert_eq!(verifier.set_users(users.read().unwrap()), ["/c=it/s=a"]);
        assert!(matches!(change("stromboli", "").await, Err(PasswordProblem::New(_))));
        change("stromboli", "lipari").await.unwrap();
    }

    #[test]
    fn one_reading_goes_on_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let verifier = Verifier::new(BTreeMap::new(), Users::default(), 1).unwrap();
        let mut reader = UserReader::new(Directory::File(directory.path().to_owned()));
        let ask = || oneshot::channel();
        let (first, mut first_done) = ask();
        let read = reader.changed(&verifier, Some(first)).unwrap();
        let (second, mut second_done) = ask();
        assert!(reader.changed(&verifier, Some(second)).is_none());
        assert!(reader.ended(&verifier, read()).unwrap().is_ok());
        assert!(reader.is_due() && second_done.try_recv().is_err());
        let read = reader.changed(&verifier, None).unwrap();
        assert!(reader.ended(&verifier, read()).unwrap().is_ok() && !reader.is_due());
        assert!(first_done.try_recv().is_ok() && second_done.try_recv().is_ok());
    }
}
