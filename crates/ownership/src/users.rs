//! Users with the right password whose mailbox is not here yet.

use base::Instant;
use engine::journal::QueueId;
use node_api::ids::Token;

struct WaitingUser {
    token: Token,
    shard: QueueId,
    until: Instant,
}

/// The users who wait.
#[derive(Default)]
pub(crate) struct Users(Vec<WaitingUser>);

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|user| (user.token, user.shard))).finish()
    }
}

impl Users {
    pub(crate) fn wait(&mut self, token: Token, shard: QueueId, until: Instant) {
        self.0.push(WaitingUser { token, shard, until });
    }

    /// When the first has waited long enough.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.iter().map(|user| user.until).min()
    }

    /// Whether somebody waits for this mailbox.
    pub(crate) fn wants(&self, shard: QueueId) -> bool {
        self.0.iter().any(|user| user.shard == shard)
    }

    /// Those who wait no longer: their mailbox is here.
    pub(crate) fn take_those_for(&mut self, shard: QueueId) -> Vec<(Token, QueueId)> {
        self.take(|user| user.shard == shard)
    }

    /// Those who have waited long enough.
    pub(crate) fn take_overdue(&mut self, now: Instant) -> Vec<(Token, QueueId)> {
        self.take(|user| user.until <= now)
    }

    fn take(&mut self, is_taken: impl Fn(&WaitingUser) -> bool) -> Vec<(Token, QueueId)> {
        let (taken, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.0).into_iter().partition(is_taken);
        self.0 = waiting;
        taken.into_iter().map(|user| (user.token, user.shard)).collect()
    }
}
