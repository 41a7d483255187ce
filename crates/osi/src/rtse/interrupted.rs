use super::inflow::Inflow;
use crate::session::service::ConnectionReference;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most names kept of one transfer.
const MAX_NAMES: usize = 4;

/// First octet of [`InterruptedReceive::encode`]. Without it, what an earlier release wrote began with a count up to
/// [`MAX_NAMES`], and could have been read as something else.
const FORM: u8 = 0x20;

/// What a receiver keeps of a transfer that was cut off, so that it can go on in the same
/// association or in a recovered one (X.228 7.8.1, 7.8.3).
///
/// Opaque: keep it under [`InterruptedReceive::reference`] and hand it back with
/// [`crate::api::Request::AcceptRecover`] when the peer recovers that association, or with
/// [`crate::api::Request::Recover`] where the association is ours to recover.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InterruptedReceive {
    pub(super) names: Names,
    /// Confirmed checkpoints, the latest last. Several, because the sender may not have received the
    /// latest confirms.
    pub(super) confirmed: VecDeque<Confirmed>,
    pub(super) inflow: Inflow,
    /// The end of the activity was confirmed, but the sender may not have received the confirm.
    pub(super) completed: bool,
}

/// A checkpoint that was confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Confirmed {
    pub(super) serial: u32,
    /// Offset in the transfer.
    pub(super) offset: u64,
    /// Sum of the octets before it.
    pub(super) sum: u32,
}

/// The names a transfer has had: association and activity identifier of each attempt. The first is
/// the one its sender is most likely to use: a sender goes on under the name of the attempt in
/// which a checkpoint was last confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Names {
    all: Vec<(ConnectionReference, i64)>,
    /// The last is of an attempt in which nothing was confirmed yet.
    unsettled: bool,
}

impl Names {
    pub(super) fn new(reference: ConnectionReference, activity: i64) -> Names {
        Names { all: vec![(reference, activity)], unsettled: false }
    }

    /// A further attempt.
    pub(super) fn add(&mut self, reference: ConnectionReference, activity: i64) {
        if self.all.len() >= MAX_NAMES {
            self.all.pop();
        }
        self.all.push((reference, activity));
        self.unsettled = true;
    }

    /// A checkpoint was confirmed in the latest attempt.
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.unsettled) {
            self.all.rotate_right(1);
        }
    }

    /// Octets held besides its fixed size.
    pub(super) fn held(&self) -> usize {
        let one = |r: &ConnectionReference| r.user.len() + r.common.len() + r.additional.len();
        self.all.iter().map(|(reference, activity)| size_of_val(activity) + one(reference)).sum()
    }

    /// Most octets [`Names::held`] gives: what a session connection reference may hold, and the
    /// headers that normalizing adds.
    pub(super) const MAX_HELD: usize = MAX_NAMES * (8 + (64 + 64 + 4) + 3 * 4);

    pub(super) fn contains(&self, reference: &ConnectionReference, activity: i64) -> bool {
        self.all.iter().any(|(r, a)| r == reference && *a == activity)
    }
}

impl InterruptedReceive {
    /// The association the peer will name when it goes on.
    pub fn reference(&self) -> ConnectionReference {
        self.names.all.first().map(|(reference, _)| reference.clone()).unwrap_or_default()
    }

    /// Whether the peer may name it by this association: it may not have received the
    /// confirm that gave the transfer its latest name.
    pub fn is_known_by(&self, reference: &ConnectionReference) -> bool {
        self.names.all.iter().any(|(r, _)| r == reference)
    }

    /// Activity identifier in that association.
    pub fn activity(&self) -> i64 {
        self.names.all.first().map_or(0, |(_, activity)| *activity)
    }

    /// Serial number of the last confirmed checkpoint; 0 where there is none.
    pub fn serial(&self) -> u32 {
        self.confirmed.back().map_or(0, |checkpoint| checkpoint.serial)
    }

    /// Octets of the APDU the user was given.
    pub fn octets(&self) -> u64 {
        self.inflow.user_octets()
    }

    /// Whether the transfer was secured, only the peer may not know.
    pub fn is_completed(&self) -> bool {
        self.completed
    }

    /// The user secured the transfer after its association was lost.
    pub fn complete(&mut self) {
        self.completed = true;
    }

    /// Its octets, for a store.
    pub fn encode(&self) -> Vec<u8> {
        // Plain data into a growing buffer cannot fail.
        let state = postcard::to_stdvec(self).unwrap_or_default();
        [&[FORM], &state[..]].concat()
    }

    /// Reads one back; `None` where the octets are not those of one, or those of another release.
    pub fn decode(octets: &[u8]) -> Option<InterruptedReceive> {
        let state = octets.strip_prefix(&[FORM])?;
        let (state, rest) = postcard::take_from_bytes::<InterruptedReceive>(state).ok()?;
        let in_order = state.confirmed.iter().map(|checkpoint| checkpoint.serial).is_sorted();
        let is_one = rest.is_empty()
            && in_order
            && (1..=MAX_NAMES).contains(&state.names.all.len())
            && state.confirmed.len() <= super::receiver::MAX_CONFIRMED;
        is_one.then_some(state)
    }

    /// Octets held besides its fixed size.
    pub(super) fn held(&self) -> usize {
        self.names.held() + self.confirmed.len() * size_of::<Confirmed>()
    }

    /// The confirmed checkpoint of this serial number.
    pub(super) fn checkpoint(&self, serial: u32) -> Option<Confirmed> {
        self.confirmed.iter().find(|checkpoint| checkpoint.serial == serial).copied()
    }
}

impl PartialEq for InterruptedReceive {
    fn eq(&self, other: &InterruptedReceive) -> bool {
        self.names == other.names
            && self.confirmed == other.confirmed
            && self.completed == other.completed
            && self.inflow.received() == other.inflow.received()
    }
}

impl Eq for InterruptedReceive {}
