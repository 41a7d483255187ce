//! What the peer of a bench does, and what it has seen.

use base::ber::Writer;
use base::{AssociationId, EntryId, Instant};
use bytes::Bytes;
use osi::api::{AbortReason, Dialogue, RefuseReason, Request};
use p1::bind::{Credentials, MtaAuthentication, MtaBindError, MtaBindResult};
use std::collections::{BTreeMap, VecDeque};

/// the outcome of a connection that the node opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// The peer accepts the association.
    #[default]
    Accept,
    /// Nobody answers, and the connection fails after [`super::CONNECT_TIMEOUT`].
    Nothing,
    /// The connection fails at once.
    NoRoute,
    /// Nobody answers, and the connection never fails.
    Silence,
    /// The connection is there; the test sends what comes on it.
    ByHand,
    /// The peer refuses the bind.
    Refuse(MtaBindError),
    /// The session layer refuses, with this reason.
    Session(u8),
    /// The peer refuses any dialogue mode but this one.
    Only(Dialogue),
}

/// What the peer does with a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disposition {
    /// Confirms it.
    #[default]
    Take,
    /// Confirms it when the test calls: [`super::Bench::confirm`].
    Keep,
    /// Aborts the association at its end.
    Abort(AbortReason),
    /// Refuses it, and the association lives on.
    Refuse(AbortReason),
    /// The connection is lost at its end.
    Cut,
}

/// What the peer does, and what it has seen.
#[derive(Debug, Default)]
pub struct Script {
    /// Its MTA name.
    pub name: String,
    /// the outcome of connections, by channel; the others are accepted.
    pub answers: BTreeMap<u32, Answer>,
    /// the outcome of connections of other channels.
    pub answer: Answer,
    /// The disposition of these entries.
    pub dispositions: BTreeMap<EntryId, Disposition>,
    /// The disposition of all other entries.
    pub others: Disposition,
    /// Octets that its transport is reported to have taken before a cut; 50 more before the next.
    pub taken: Option<u64>,
    /// Dialogue modes that were proposed.
    pub proposed: Vec<Dialogue>,
    /// How often the node asked for a recovery.
    pub recoveries: usize,
    /// The channels of transfers and their checkpoint sizes in octets.
    pub checkpoints: Vec<(u32, Option<u64>)>,
    /// Associations with a transfer that [`Disposition::Keep`] has not confirmed.
    pub unconfirmed: VecDeque<AssociationId>,
    /// Messages that users have taken.
    pub delivered: usize,
    /// Connections that are played [by hand](Answer::ByHand), in order.
    pub by_hand: VecDeque<AssociationId>,
    /// Connections that the node opened: when, and on which channel.
    pub connects: Vec<(Instant, u32)>,
}

impl Script {
    /// the outcome of a connection on a channel.
    pub fn answer(&self, channel: u32) -> Answer {
        self.answers.get(&channel).copied().unwrap_or(self.answer)
    }

    /// When the node opened connections on a channel.
    pub fn connects_of(&self, channel: u32) -> Vec<Instant> {
        let its = self.connects.iter().filter(|(_, of)| *of == channel);
        its.map(|(at, _)| *at).collect()
    }

    pub(super) fn disposition(&self, entry: Option<EntryId>) -> Disposition {
        entry.and_then(|entry| self.dispositions.get(&entry)).copied().unwrap_or(self.others)
    }

    pub(super) fn bind_request(&self, channel: u32, dialogue: Dialogue) -> Request {
        let refusal = match self.answer(channel) {
            Answer::Refuse(error) => Some(error),
            Answer::Only(mode) if mode != dialogue => Some(MtaBindError::UnacceptableDialogueMode),
            _ => None,
        };
        let mut writer = Writer::new();
        match refusal {
            Some(error) => {
                error.write(&mut writer);
                let bind_error = Some(Bytes::from(writer.into_vec()));
                Request::Refuse { reason: RefuseReason::Bind, bind_error }
            }
            None => {
                let password = Credentials::simple("theirs");
                let who = MtaAuthentication::new(self.name.as_str(), password);
                MtaBindResult::Authenticated(who).write(&mut writer);
                Request::Accept { bind: writer.into_vec().into() }
            }
        }
    }

    pub(super) fn recovery_request(&self, channel: u32) -> Request {
        match self.answer(channel) {
            Answer::Refuse(_) => self.bind_request(channel, Dialogue::TwoWayAlternate),
            _ => Request::Refuse { reason: RefuseReason::CannotRecover, bind_error: None },
        }
    }
}

/// TPKT, DT, and RF of this reason with its transport disconnect.
pub(super) fn session_refusal(reason: u8) -> Bytes {
    let rf = [12, 6, 17, 1, 1, 50, 1, reason];
    [&[3, 0, 0, 15, 2, 0xf0, 0x80][..], &rf].concat().into()
}
