//! Password checks: of peers in constant time, of users by their hashes, with a limit on parallel
//! hashes, and in the same time for unknown users.

use base::PeerId;
use node::{EdgeError, PasswordProblem, Principal, Secret};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use users::{Users, UsersError};

/// The passwords and hashes to check against.
#[derive(Clone)]
pub(crate) struct Verifier {
    inner: Arc<Inner>,
}

struct Inner {
    peers: BTreeMap<PeerId, Secret>,
    users: Mutex<Users>,
    /// A hash no password has, for unknown users.
    dummy: String,
    turns: Semaphore,
}

impl Verifier {
    /// A verifier of the peers' passwords and the users. `at_once` limits parallel hashes, each of
    /// which takes 7 MiB and one core; the node requests no more either.
    pub(crate) fn new(
        peers: BTreeMap<PeerId, Secret>,
        users: Users,
        at_once: usize,
    ) -> Result<Verifier, UsersError> {
        let dummy = users::hash(b"nobody")?;
        let turns = Semaphore::new(at_once);
        let inner = Inner { peers, users: Mutex::new(users), dummy, turns };
        Ok(Verifier { inner: Arc::new(inner) })
    }

    /// The same users with other passwords of peers and another limit on hashes.
    pub(crate) fn renewed(&self, peers: BTreeMap<PeerId, Secret>, at_once: usize) -> Verifier {
        let users = Mutex::new(self.users().clone());
        let (dummy, turns) = (self.inner.dummy.clone(), Semaphore::new(at_once));
        Verifier { inner: Arc::new(Inner { peers, users, dummy, turns }) }
    }

    fn users(&self) -> MutexGuard<'_, Users> {
        self.inner.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The canonical addresses of the users.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.users().addresses()
    }

    /// Replaces the users; returns those removed and those whose password changed.
    pub(crate) fn set_users(&self, users: Users) -> Vec<String> {
        let mut current = self.users();
        let mut changed = current.addresses();
        changed.retain(|address| current.hash_of(address) != users.hash_of(address));
        *current = users;
        changed
    }

    /// Changes the password of a user, durably; from then on it is his.
    pub(crate) async fn change(
        &self,
        data_dir: &Path,
        mailbox: &str,
        old: Secret,
        new: Secret,
    ) -> Result<(), PasswordProblem> {
        if !self.verify(Principal::User(mailbox.to_owned()), old).await {
            return Err(PasswordProblem::Old);
        }
        let (data_dir, address) = (data_dir.to_owned(), mailbox.to_owned());
        let write = move || {
            Users::change(&data_dir, |users| {
                if users.hash_of(&address).is_none() {
                    return Err(UsersError::Unknown(address.clone()));
                }
                users.add(&address, &new.0)?;
                Ok(users.clone())
            })
        };
        let failed = |why: String| PasswordProblem::Failed(EdgeError(why));
        let written = tokio::task::spawn_blocking(write).await;
        match written.map_err(|error| failed(error.to_string()))? {
            Ok(users) => {
                self.set_users(users);
                Ok(())
            }
            Err(error @ UsersError::Password) => Err(PasswordProblem::New(error.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Whether this is the password of that principal.
    pub(crate) async fn verify(&self, principal: Principal, password: Secret) -> bool {
        match principal {
            Principal::Peer(peer) => {
                let expected = self.inner.peers.get(&peer);
                expected.is_some_and(|expected| same(&expected.0, &password.0))
            }
            Principal::User(address) => {
                let known = self.users().hash_of(&address).map(str::to_owned);
                let exists = known.is_some();
                let hash = known.unwrap_or_else(|| self.inner.dummy.clone());
                let Ok(_turn) = self.inner.turns.acquire().await else { return false };
                let check = move || users::verify(&password.0, &hash);
                tokio::task::spawn_blocking(check).await.unwrap_or(false) && exists
            }
        }
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
        let same = verifier.users().clone();
        assert!(verifier.set_users(same).is_empty());
        assert_eq!(verifier.set_users(Users::default()), ["/c=it/s=a"]);
        assert!(!verifier.verify(user("/c=it/s=a"), Secret("vesuvio".into())).await);
    }
}
