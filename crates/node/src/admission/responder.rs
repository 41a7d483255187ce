//! P1 associations a peer opens: who may bind, and recovery.

use crate::admission::Admission;
use crate::admission::credentials::CredentialsError;
use crate::admission::refusals::BindRefusal;
use crate::api::event::{Kind, LogLevel};
use crate::association::Association;
use crate::commits::pending::VerifiedBind;
use crate::context::Context;
use base::ber::Element;
use base::ip_prefix::Origin;
use base::{AssociationId, Now, PeerId};
use guard::NameDigest;
use guard::Secret;
use guard::access::PeerBind;
use osi::api::Request;
use p1::bind::{MtaBindArgument, MtaBindResult};
use scheduler::ChannelId;

impl Admission {
    /// The address and name that a bind on this association is counted for.
    pub(crate) fn who_binds(&self, cx: &Context, id: AssociationId) -> (Origin, NameDigest) {
        let association = cx.associations.get(&id);
        let name =
            association.and_then(|l| l.p1()?.presented).unwrap_or_else(|| NameDigest::new(""));
        (association.and_then(|l| l.connection.origin).unwrap_or(Origin::Others), name)
    }

    pub(crate) fn check_origin(
        &self,
        cx: &Context,
        id: AssociationId,
        peer: PeerId,
    ) -> Result<(), CredentialsError> {
        let remote = cx.associations.get(&id).and_then(|l| l.connection.remote);
        match (cx.config.peer(peer), remote) {
            (Some(p), Some(remote))
                if !p.from.is_empty() && !p.from.iter().any(|prefix| prefix.contains(remote)) =>
            {
                Err(CredentialsError::Origin { remote, peer: p.name.clone() })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn mark_open(&self, cx: &mut Context, now: Now, id: AssociationId, detail: &str) {
        let channel = cx.associations.get(&id).and_then(Association::channel);
        if let Some(association) = cx.associations.get_mut(&id) {
            association.open(now.mono);
        }
        match channel {
            Some(channel) => cx.associations.peer_bound(id, channel),
            None => self.note_user(cx, id),
        }
        cx.event(LogLevel::Info, Kind::AssociationOpened, detail).association(id).channel(channel);
        self.compare_marks(cx, id);
    }

    /// A peer's password is checked after those that came before it under that name from there.
    pub(crate) fn queue_peer(&mut self, cx: &mut Context, now: Now, bind: PeerBind) {
        cx.associations.checking(bind.association);
        let (origin, name) = self.who_binds(cx, bind.association);
        let next = self.access.peer_waits(origin, name, bind);
        self.check_peers(cx, now, origin, name, next);
    }

    /// Has this password checked; if its association is gone or refused, the next one.
    pub(crate) fn check_peers(
        &mut self,
        cx: &mut Context,
        now: Now,
        origin: Origin,
        name: NameDigest,
        mut next: Option<PeerBind>,
    ) {
        while let Some(PeerBind { association: id, channel, presented, password }) = next {
            if cx.associations.get(&id).is_some_and(|l| l.is_binding()) {
                if self.access.may_try(now.mono, origin, name) {
                    let digest = NameDigest::from_octets(&password.0);
                    let bind = VerifiedBind::Initiator { origin, name, password: digest };
                    return self.verify_peer(cx, id, channel, password, bind);
                }
                // Those before it failed.
                self.refuse_bind(cx, now, id, BindRefusal::TooMany(presented));
            }
            next = self.access.next_peer(origin, name);
        }
    }

    pub(crate) fn check_initiator(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        bind: &[u8],
    ) -> Result<(String, Secret), BindRefusal> {
        let argument = Element::parse(bind)
            .and_then(|e| MtaBindArgument::read(&e))
            .map_err(|e| BindRefusal::Wrong(format!("MTABindArgument: {e}")))?;
        let presented = match &argument {
            MtaBindArgument::Unauthenticated => String::new(),
            MtaBindArgument::Authenticated(who) => who.name.0.clone(),
        };
        let name = NameDigest::new(&presented);
        let origin = cx.associations.get_mut(&id).and_then(|association| {
            association.p1_mut()?.presented = Some(name);
            association.connection.origin
        });
        if let Some(origin) = origin
            && !self.access.may_try(now.mono, origin, name)
        {
            return Err(BindRefusal::TooMany(presented));
        }
        self.check_origin(cx, id, channel.peer)?;
        match argument {
            MtaBindArgument::Unauthenticated => {
                Err(BindRefusal::Wrong("no credentials (MTABindArgument: NULL)".to_owned()))
            }
            MtaBindArgument::Authenticated(who) => {
                let password = self.peer_password(cx, channel, &who)?;
                let context = who.security_context.as_deref();
                let context = context.map(|of| cx.engine.peer_context(channel.peer, of));
                if let Some(association) = cx.associations.get_mut(&id) {
                    association.set_context(context);
                }
                Ok((presented, password))
            }
        }
    }

    /// The peer's password is right. Gives whether it is bound now.
    pub(crate) fn responder_open(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
    ) -> bool {
        // After the password: nobody else learns what the peer is cleared for.
        if let Some(why) = cx.associations.get(&id).and_then(Association::context_refused) {
            self.refuse_bind(cx, now, id, BindRefusal::Context(why.to_owned()));
            return false;
        }
        if let Some(why) = cx.disabled(channel) {
            self.refuse_bind(cx, now, id, BindRefusal::Disabled(why));
            return false;
        }
        if let Some(limit) = self.is_one_too_many(cx, channel) {
            self.refuse_bind(cx, now, id, BindRefusal::Full(limit));
            return false;
        }
        if let Some(why) = lacks_space(cx, id, channel) {
            self.refuse_bind(cx, now, id, BindRefusal::NoSpace(why));
            return false;
        }
        let Some((peer, _)) = cx.peer_and_channel(channel) else { return false };
        let result = MtaBindResult::Authenticated(crate::config::authentication(peer));
        let mut writer = base::ber::Writer::new();
        result.write(&mut writer);
        cx.request(id, Request::Accept { bind: writer.into_vec().into() });
        self.mark_open(cx, now, id, "as responder");
        cx.recovery.bound_afresh(now.mono, channel);
        true
    }
}

/// Why nothing that could come on an association is taken, for the room that is left on the disk. On a
/// two-way one our own messages go out, and free room.
fn lacks_space(cx: &Context, id: AssociationId, channel: ChannelId) -> Option<String> {
    if cx.associations.get(&id)?.p1()?.turn.two_way {
        return None;
    }
    let (_, channel) = cx.peer_and_channel(channel)?;
    let highest = channel.precedences.iter().chain(&channel.fallback).max()?;
    cx.disk.refusal(*highest)
}
