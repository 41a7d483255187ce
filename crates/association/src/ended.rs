//! The end of an association, in order or not.

use crate::{Association, AssociationState};
use base::Now;
use base::ip_prefix::Origin;
use scheduler::ChannelId;
use status::event::{Kind, LogLevel};
use std::net::IpAddr;
use std::time::Duration;

/// An association that lived so long was of use.
const LONG_LIVED: Duration = Duration::from_secs(10);

/// An association that has ended.
#[derive(Debug)]
pub struct EndedAssociation {
    /// The event that it is logged as.
    pub kind: Kind,
    /// How it ended, with the error where there is one.
    pub detail: String,
    /// The error, else how it ended.
    pub reason: String,
    /// Its channel, where it is P1.
    pub channel: Option<ChannelId>,
    /// Whether we opened it.
    pub is_initiator: bool,
    /// Where it came from, if somebody else opened it.
    pub remote: Option<IpAddr>,
    /// The address that it is counted for, where somebody else opened it.
    pub origin: Option<Origin>,
    /// Whether it was open once.
    pub was_open: bool,
    /// It was open for as long as an association that is of use.
    pub long_lived: bool,
    /// We refused it; the log has that already.
    pub refused: bool,
    /// It ended because the configuration changed.
    pub drained: bool,
    /// It ended with the hours of its channel, or made room.
    pub leaving: bool,
    /// Why we give the peer up for a while.
    pub given_up: Option<String>,
}

impl EndedAssociation {
    /// Whether it was lost. Then a transfer on it may be resumed; that of a scheduled channel in its next
    /// hours, if they are near.
    pub fn is_lost(&self) -> bool {
        self.leaving || self.kind != Kind::AssociationReleased
    }

    /// How loud its event is.
    pub fn level(&self) -> LogLevel {
        if self.kind == Kind::AssociationReleased { LogLevel::Info } else { LogLevel::Warning }
    }

    /// Whether somebody connected and went without a bind.
    pub fn had_no_bind(&self) -> bool {
        self.origin.is_some() && !self.was_open && !self.refused
    }
}

impl Association {
    /// It is over: only the end of its connection is awaited. `None` if it was over already.
    pub fn end(
        &mut self,
        now: Now,
        kind: Kind,
        detail: &str,
        stopping: bool,
    ) -> Option<EndedAssociation> {
        let opened = match self.state {
            AssociationState::Over => return None,
            AssociationState::Open { since } | AssociationState::Releasing { since } => Some(since),
            AssociationState::Connecting
            | AssociationState::Opening { .. }
            | AssociationState::Refusing => None,
        };
        let refused = self.state == AssociationState::Refusing;
        let releasing = matches!(self.state, AssociationState::Releasing { .. });
        let drained = self.end.drain.is_some();
        let ending = (stopping || drained) && releasing;
        // Perhaps the peer drains it too, and was first.
        let finished = drained && self.sending.as_ref().is_none_or(|s| s.confirmed);
        // An association that we ended ourselves is not lost.
        let kind = match kind {
            Kind::AssociationLost if ending || finished || self.end.leaving => {
                Kind::AssociationReleased
            }
            kind => kind,
        };
        self.state = AssociationState::Over;
        self.requests.clear();
        let error = self.connection.error.take();
        Some(EndedAssociation {
            kind,
            reason: error.clone().unwrap_or_else(|| detail.to_owned()),
            detail: match error {
                Some(error) => format!("{detail}: {error}"),
                None => detail.to_owned(),
            },
            channel: self.channel(),
            is_initiator: self.is_initiator(),
            remote: self.connection.remote,
            origin: self.connection.origin,
            was_open: opened.is_some(),
            long_lived: opened.is_some_and(|at| at + LONG_LIVED <= now.mono),
            refused,
            drained,
            leaving: self.end.leaving,
            given_up: self.end.given_up.take(),
        })
    }
}
