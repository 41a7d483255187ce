//! Who may connect: the limits on associations and on half-open ones, and the answer to a connection
//! beyond them.
//!
//! If all half-open places are taken, the **oldest** half-open connection of the address that holds
//! most of them makes room for a new connection. An honest peer binds within a round trip or two, so
//! it leaves its place before it is the oldest. If new connections were refused instead, an attacker
//! could keep everybody out for the price of one connection each `bind_timeout`. A connection whose
//! password is being checked never makes room. A quarter of the places is for addresses that the
//! configuration names, and strangers never displace those.

use crate::admission::refusals::refused;
use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::association::p1::{Opener, P1};
use crate::association::p3::{P3, StoreSession};
use crate::association::{Association, AssociationState, Protocol};
use crate::config::ListenerService;
use crate::config::levels;
use crate::ids::ListenerId;
use crate::log::rate::RefusalCause;
use crate::node::Node;
use base::ip_prefix::Origin;
use base::{AssociationId, Now, Precedence};
use guard::Limit;
use osi::api::Role;
use osi::stack::Association as Stack;
use scheduler::ChannelId;
use std::net::IpAddr;
use std::time::Duration;

/// How long such a connection has for its connect request, and then for closing.
const TURN_AWAY: Duration = Duration::from_secs(5);

impl Node {
    /// Answers a connection that the edge accepted: with an association, or without one if no socket
    /// is free. The edge then closes the connection without an answer; it costs only a line in the log.
    pub(crate) fn admit(
        &mut self,
        now: Now,
        connection: u64,
        listener: ListenerId,
        remote: IpAddr,
    ) {
        let is_free = self.cx.associations.len() < self.cx.config.limits.sockets;
        let association = is_free.then(|| self.cx.issued.next_association());
        self.cx.output(Output::Admitted { connection, association });
        if let Some(association) = association {
            return self.accepted(now, association, listener, remote);
        }
        let why = self.cx.config.limits.describe(Limit::Sockets);
        let line = refused(None, format!("{remote}: closed at once: {why}"));
        self.cx.outputs.limited_event(
            now,
            RefusalCause::Limit(Limit::Sockets),
            Some(remote.into()),
            None,
            "",
            line,
        );
    }

    fn accepted(&mut self, now: Now, id: AssociationId, listener: ListenerId, remote: IpAddr) {
        let service = self.cx.config.listener(listener).map(|l| l.service.clone());
        let made = match &service {
            _ if self.cx.life.is_stopping() => None,
            Some(ListenerService::P1 { peer, channel }) => {
                let channel = ChannelId { peer: *peer, index: *channel };
                self.cx.config.channel(channel).map(|(peer, config)| {
                    let dialogue = config.rts.dialogue;
                    let reference = <_>::default();
                    let checkpoint = self.outbound.checkpoint_size(channel, config);
                    let stack = crate::config::association_config(
                        peer, config, dialogue, checkpoint, reference,
                    );
                    let p1 = P1::new(channel, Opener::Peer(listener), config.dscp);
                    (stack, Protocol::P1(p1))
                })
            }
            Some(ListenerService::P3 { local }) => Some((
                crate::config::access_config(local, &self.cx.config.limits),
                Protocol::P3(P3::new(listener, None)),
            )),
            Some(ListenerService::P7 { local }) => Some((
                crate::config::store_config(local, &self.cx.config.limits),
                Protocol::P3(P3::new(listener, Some(StoreSession::default()))),
            )),
            None => None,
        };
        let Some((config, protocol)) = made else {
            let detail = format!("{remote}: not accepting");
            self.cx.event(LogLevel::Warning, Kind::AssociationRefused, detail).association(id);
            self.cx.output(Output::Close { association: id });
            return;
        };
        let remote = remote.to_canonical();
        let (origin, known) = self.admission.whose(&self.cx, remote);
        let limits = self.cx.config.limits;
        let channel = match &protocol {
            Protocol::P1(p1) => Some(p1.channel),
            Protocol::P3(_) => None,
        };
        let level = channel
            .and_then(|c| self.cx.peer_and_channel(c))
            .map(|(_, channel)| levels::of_channel(channel).unwrap_or(Precedence::Deferred));
        if let Err(limit) = self.make_room(now, origin, known, level) {
            let detail = format!("{remote}: congestion (X.224 6.6): {}", limits.describe(limit));
            let line = refused(channel, detail);
            self.cx.outputs.limited_event(
                now,
                RefusalCause::Limit(limit),
                Some(origin),
                Some(id),
                "",
                line,
            );
            self.turn_away(now, id, listener, config);
            return;
        }
        let state = AssociationState::Opening { until: Some(now.mono + limits.bind_timeout) };
        let stack = Stack::new(config, Role::Responder);
        let mut association = Association::new(id, stack, protocol, state, now.mono);
        (association.connection.remote, association.connection.origin) =
            (Some(remote), Some(origin));
        self.cx.associations.insert_incoming(association, origin, known);
    }

    /// Makes room for one more, if there can be: nobody makes room for one that is turned away.
    fn make_room(
        &mut self,
        now: Now,
        origin: Origin,
        known: bool,
        level: Option<Precedence>,
    ) -> Result<(), Limit> {
        match self.admission.find_room(&self.cx, origin, known, level)? {
            None => {}
            Some(oldest) => self.give_way(now, oldest.id, oldest.origin, oldest.limit),
        }
        Ok(())
    }

    /// A half-open connection makes room: closed at once, whatever is in progress.
    fn give_way(&mut self, now: Now, id: AssociationId, origin: Origin, limit: Limit) {
        let Some(association) = self.remove_association(id) else { return };
        self.cx.output(Output::Drop { association: id });
        let reason = self.cx.config.limits.describe(limit);
        let detail = format!(
            "{origin}: no bind after {:.1} s, made room for another: {reason}",
            now.mono.since(association.connection.accepted).as_secs_f64(),
        );
        let line = refused(association.channel(), detail);
        self.cx.outputs.limited_event(
            now,
            RefusalCause::MadeRoom,
            Some(origin),
            Some(id),
            &reason,
            line,
        );
    }

    /// There is no room: its connect request will be answered with a disconnect request, reason
    /// congestion (X.224 13.5.3).
    fn turn_away(
        &mut self,
        now: Now,
        id: AssociationId,
        listener: ListenerId,
        config: osi::api::Config,
    ) {
        if let Some(oldest) = self.admission.makes_room_to_turn_away() {
            self.remove_association(oldest);
            self.cx.output(Output::Drop { association: oldest });
        }
        let config = osi::api::Config { turn_away: true, setup_timeout: TURN_AWAY, ..config };
        let protocol = Protocol::P3(P3::new(listener, None));
        let stack = Stack::new(config, Role::Responder);
        let association =
            Association::new(id, stack, protocol, AssociationState::Refusing, now.mono);
        self.cx.associations.insert_turned_away(association);
        self.admission.turns_away(id);
    }
}
