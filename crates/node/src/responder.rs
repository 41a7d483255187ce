//! P1 associations a peer opens: who may bind, and recovery.

use crate::api::{ChannelId, ListenerId, Output};
use crate::config::ListenerService;
use crate::event::{Kind, Level};
use crate::link::{Link, Phase, Purpose};
use crate::node::Node;
use crate::pending::VerifiedBind;
use base::ber::Element;
use base::{AssociationId, Now, PeerId};
use bytes::Bytes;
use osi::api::{Indication, RefuseReason, Request, Role};
use osi::stack::Association;
use p1::bind::{MtaBindArgument, MtaBindError, MtaBindResult};
use std::net::IpAddr;

/// Most associations a peer may open on one channel.
const MOST_ON_CHANNEL: usize = 64;

impl Node {
    pub(crate) fn accepted(
        &mut self,
        now: Now,
        id: AssociationId,
        listener: ListenerId,
        remote: IpAddr,
    ) {
        let service = usize::try_from(listener.0)
            .ok()
            .and_then(|n| self.config.listeners.get(n))
            .map(|l| l.service.clone());
        let full = service.as_ref().is_some_and(|s| self.is_full(s));
        let made = match &service {
            _ if full || self.stopping => None,
            Some(ListenerService::P1 { peer, channel }) => {
                let channel = ChannelId { peer: *peer, index: *channel };
                self.peer_and_channel(channel).map(|(peer, config)| {
                    let config = crate::config::association_config(peer, config, <_>::default());
                    let purpose = Purpose::Responder { listener, channel };
                    (Association::new(config, Role::Responder), purpose)
                })
            }
            Some(ListenerService::P3 { local }) => {
                let config = crate::config::access_config(local, &self.config.limits);
                Some((
                    Association::new(config, Role::Responder),
                    Purpose::User { mailbox: None, takes_deliveries: false },
                ))
            }
            None => None,
        };
        let Some((stack, purpose)) = made else {
            let why = if full { "too many associations" } else { "not accepting" };
            self.event(Level::Warning, Kind::AssociationRefused, format!("{remote}: {why}"))
                .association(id);
            self.output(Output::Close { association: id });
            return;
        };
        let mut link = Link::new(id, stack, purpose, now.mono);
        link.remote = Some(remote);
        link.bind_deadline = Some(now.mono + self.config.limits.bind_timeout);
        self.links.insert(id, link);
        self.touch(id);
    }

    /// Whether another association would be one too many. Users, of whom some are not known yet,
    /// cannot take what peers need, nor one channel what the others need.
    fn is_full(&self, service: &ListenerService) -> bool {
        let most = self.config.limits.associations;
        let share = match service {
            ListenerService::P3 { .. } => {
                let users = self.links.values().filter(|l| l.channel().is_none()).count();
                users >= most - most / 4
            }
            ListenerService::P1 { peer, channel } => {
                let id = ChannelId { peer: *peer, index: *channel };
                let theirs = |l: &&Link| l.channel() == Some(id) && !l.is_initiator();
                self.links.values().filter(theirs).count() >= MOST_ON_CHANNEL
            }
        };
        share || self.links.len() >= most
    }

    pub(crate) fn responder_indication(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        indication: Indication,
    ) {
        match indication {
            Indication::Open { bind, reference, dialogue, .. } => {
                if let Some(link) = self.links.get_mut(&id) {
                    link.reference = reference;
                    link.two_way = dialogue == osi::api::Dialogue::TwoWayAlternate;
                }
                match self.check_initiator(id, channel, &bind) {
                    Ok(password) => {
                        self.verify_peer(id, channel, password, VerifiedBind::Initiator);
                    }
                    Err(why) => self.refuse_bind(id, &why),
                }
            }
            Indication::RecoverAsked { reference } => {
                self.recover_asked(now, id, channel, reference);
            }
            other => self.transfer_indication(now, id, channel, other),
        }
    }

    fn check_initiator(
        &self,
        id: AssociationId,
        channel: ChannelId,
        bind: &[u8],
    ) -> Result<crate::api::Secret, String> {
        self.check_origin(id, channel.peer)?;
        let argument = Element::parse(bind)
            .and_then(|e| MtaBindArgument::read(&e))
            .map_err(|e| format!("MTABindArgument: {e}"))?;
        match argument {
            MtaBindArgument::Unauthenticated => Ok(crate::api::Secret::default()),
            MtaBindArgument::Authenticated(who) => self.peer_password(channel, &who),
        }
    }

    fn check_origin(&self, id: AssociationId, peer: PeerId) -> Result<(), String> {
        let remote = self.links.get(&id).and_then(|l| l.remote);
        let from = self.config.peer(peer);
        match (from, remote) {
            (Some(p), Some(remote)) if !p.from.is_empty() && !p.from.contains(&remote) => {
                Err(format!("{remote} is not an address of peer {}", p.name))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn refuse_bind(&mut self, id: AssociationId, why: &str) {
        let channel = self.links.get(&id).and_then(Link::channel);
        let remote = self.links.get(&id).and_then(|l| l.remote);
        let from = remote.map(|r| format!(" from {r}")).unwrap_or_default();
        self.event(Level::Warning, Kind::AssociationRefused, format!("bind{from}: {why}"))
            .association(id)
            .channel(channel);
        self.refuse(id, MtaBindError::AuthenticationError);
    }

    fn refuse(&mut self, id: AssociationId, error: MtaBindError) {
        let mut writer = base::ber::Writer::new();
        error.write(&mut writer);
        let bind_error = Some(Bytes::from(writer.into_vec()));
        if let Some(link) = self.links.get_mut(&id) {
            link.bind_deadline = None;
            link.phase = Phase::Refusing;
        }
        self.request(id, Request::Refuse { reason: RefuseReason::Bind, bind_error });
    }

    /// The peer's password is right.
    pub(crate) fn responder_open(&mut self, now: Now, id: AssociationId, channel: ChannelId) {
        let Some((peer, _)) = self.peer_and_channel(channel) else { return };
        let result = MtaBindResult::Authenticated(crate::config::authentication(peer));
        let mut writer = base::ber::Writer::new();
        result.write(&mut writer);
        self.request(id, Request::Accept { bind: writer.into_vec().into() });
        self.mark_open(now, id, "as responder");
    }

    pub(crate) fn mark_open(&mut self, now: Now, id: AssociationId, detail: &str) {
        let channel = self.links.get(&id).and_then(Link::channel);
        if let Some(link) = self.links.get_mut(&id) {
            link.phase = Phase::Open;
            link.bind_deadline = None;
            link.idle_since = now.mono;
        }
        self.event(Level::Info, Kind::AssociationOpened, detail).association(id).channel(channel);
    }

    fn recover_asked(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        reference: osi::session::service::ConnectionReference,
    ) {
        // A recovery carries no credentials: it must come from where the lost association came
        // from, and name it; the names we give are not to be guessed.
        let remote = self.links.get(&id).and_then(|l| l.remote);
        let found = match self.check_origin(id, channel.peer) {
            Ok(()) => self.recovery.take_receive(channel, remote, &reference),
            Err(_) => None,
        };
        let Some(lost) = found else {
            self.event(Level::Info, Kind::AssociationRefused, "recover: no such association here")
                .association(id)
                .channel(Some(channel));
            if let Some(link) = self.links.get_mut(&id) {
                link.bind_deadline = None;
                link.phase = Phase::Refusing;
            }
            let refuse = Request::Refuse { reason: RefuseReason::CannotRecover, bind_error: None };
            self.request(id, refuse);
            return;
        };
        if let Some(arrival) = self.arrivals.get_mut(&lost.spool) {
            arrival.link = id;
        }
        if let Some(link) = self.links.get_mut(&id) {
            link.reference = reference;
            link.suspended = Some(lost.spool);
            link.two_way = lost.two_way;
        }
        self.request(id, Request::AcceptRecover(Some(lost.state)));
        self.mark_open(now, id, "as responder, recovered");
    }
}
