//! The end of an association, in order or not.

use crate::failed::Failure;
use crate::{Association, AssociationState};
use base::ip_prefix::Origin;
use base::{Instant, Now};
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
    /// Whose part it was, and at which layer.
    pub failure: Failure,
    /// Its channel is tried again at once.
    pub at_once: bool,
}

impl EndedAssociation {
    /// Whether it was lost. Then a transfer on it may be resumed; that of a scheduled channel in its next
    /// hours, if they are near.
    pub fn is_lost(&self) -> bool {
        self.leaving || self.kind != Kind::AssociationReleased
    }

    /// How loud its event is.
    pub fn level(&self) -> LogLevel {
        match self.kind {
            Kind::AssociationReleased => LogLevel::Info,
            _ if self.given_up.is_some() => LogLevel::Error,
            _ => LogLevel::Warning,
        }
    }

    /// Whether it is one of ours that did not open: what follows is decided before it is logged.
    pub fn did_not_open(&self) -> bool {
        self.is_initiator
            && !self.was_open
            && !self.drained
            && !self.leaving
            && self.kind != Kind::AssociationReleased
    }

    /// Its event, where it did not open: the reason, whose part it was, and the next try.
    pub fn failed(&self, now: Now, until: Option<Instant>) -> (LogLevel, Kind, String) {
        let kind = if self.given_up.is_some() { Kind::AssociationRefused } else { self.kind };
        let why = self.given_up.as_ref().unwrap_or(&self.detail);
        (self.level(), kind, format!("{why}; {}", self.failure.with_wait(now, until)))
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
        let given_up = self.end.given_up.take();
        let why = given_up.as_deref().unwrap_or(detail);
        let failure = self.end.refused.take().unwrap_or_else(|| Failure::from_text(why));
        Some(EndedAssociation {
            kind,
            failure,
            at_once: self.end.at_once,
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
            given_up,
        })
    }
}
