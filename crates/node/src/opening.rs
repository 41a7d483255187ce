//! How associations are opened, and the marks that handshakes arrive with.

use crate::api::{ChannelId, Output};
use crate::event::{Kind, Level};
use crate::link::{Link, Phase, Purpose};
use crate::node::Node;
use base::ber::{Writer, universal};
use base::{AssociationId, Now, Utc};
use bytes::Bytes;
use dscp::Dscp;
use osi::api::{Dialogue, Request, Role};
use osi::session::service::ConnectionReference;
use osi::stack::Association;

impl Node {
    pub(crate) fn open_wanted(&mut self, now: Now) {
        let mut wanted: Vec<ChannelId> =
            self.queue.scheduler.wanted(now.mono).map(|open| open.channel).collect();
        let recovering = self.channels.keys().copied().filter(|id| self.recovery.has_send(*id));
        for channel in recovering {
            let any = self.links_of(channel).any(|l| l.is_initiator() && l.phase != Phase::Over);
            if !any && !wanted.contains(&channel) {
                wanted.push(channel);
            }
        }
        for channel in wanted {
            let Some(state) = self.channels.get_mut(&channel) else { continue };
            if state.not_before.is_none_or(|at| at <= now.mono) {
                state.not_before = None;
                self.open(now, channel);
            }
        }
    }

    fn open(&mut self, now: Now, channel: ChannelId) {
        let id = self.next_association();
        let reference = self.new_reference(now.utc);
        let Some((peer, config)) = self.peer_and_channel(channel) else { return };
        let stack = Association::new(
            crate::config::association_config(peer, config, &self.config.hold, reference),
            Role::Initiator,
        );
        let mut link = Link::new(id, stack, Purpose::Initiator { channel }, now.mono);
        link.phase = Phase::Connecting;
        link.two_way = config.rts.dialogue == Dialogue::TwoWayAlternate;
        link.mark = Some(config.dscp);
        self.links.insert(id, link);
        self.roll.on_channel(id, channel);
        self.output(Output::Connect { association: id, channel });
    }

    /// A session connection reference that no other association has had or will have, and that
    /// others do not guess: epoch, number and 64 random bits in the user part, the time in the
    /// common part (X.228 7.1.1.6).
    fn new_reference(&mut self, utc: Utc) -> ConnectionReference {
        let number = self.next_reference();
        let secret = self.rng.next_u64();
        let user = format!("{:x}-{number:x}-{secret:016x}", self.config.epoch);
        let element = |tag, text: String| {
            let mut writer = Writer::new();
            writer.string(tag, text);
            Bytes::from(writer.into_vec())
        };
        ConnectionReference {
            user: element(universal::OCTET_STRING, user),
            common: element(universal::UTC_TIME, utc.to_utc_time()),
            additional: Bytes::new(),
        }
    }

    pub(crate) fn connected(&mut self, now: Now, id: AssociationId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(channel) = link.channel() else { return };
        link.phase = Phase::Opening;
        // One deadline for all the answers together.
        link.bind_deadline = Some(now.mono + self.config.limits.bind_timeout);
        let request = match self.recovery.offer(channel, id) {
            Some(reference) => Request::Recover(reference),
            None => Request::Open { bind: self.bind_argument(channel) },
        };
        self.request(id, request);
    }

    pub(crate) fn connect_failed(&mut self, now: Now, id: AssociationId, error: &str) {
        self.association_over(now, id, Kind::AssociationLost, &format!("no connection: {error}"));
        self.remove_link(id);
    }

    /// Takes note of the mark a peer's handshake arrived with. Whether somebody who connected is the
    /// peer is known once he has bound.
    pub(crate) fn mark_seen(&mut self, id: AssociationId, seen: Dscp) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let is_first = link.dscp_seen.replace(seen).is_none();
        if is_first && (link.is_initiator() || link.phase == Phase::Open) {
            self.compare_marks(id);
        }
    }

    /// Compares the mark a peer's handshake arrived with to its channel's. A user's has none to be
    /// compared to.
    pub(crate) fn compare_marks(&mut self, id: AssociationId) {
        let Some(link) = self.links.get(&id) else { return };
        let (Some(channel), Some(seen)) = (link.channel(), link.dscp_seen) else { return };
        if let Some(expected) = link.mark.filter(|expected| *expected != seen) {
            let detail = format!("the peer's handshake came with {seen}, not with {expected}");
            self.event(Level::Warning, Kind::MarkMismatch, detail)
                .association(id)
                .channel(Some(channel));
        }
    }
}
