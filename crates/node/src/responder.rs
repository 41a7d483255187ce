//! P1 associations a peer opens: who may bind, and recovery.

use crate::access::{Name, PeerBind};
use crate::address_prefix::Origin;
use crate::admission::refused;
use crate::api::{ChannelId, Secret};
use crate::association::{Association, Phase};
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::limits::Limit;
use crate::log_rate::{Repeated, Why};
use crate::machines::Admission;
use crate::machines::Outbound;
use crate::node::Node;
use crate::pending::VerifiedBind;
use base::ber::Element;
use base::{AssociationId, Now, PeerId};
use bytes::Bytes;
use osi::api::{Indication, RefuseReason, Request};
use p1::bind::{MtaBindArgument, MtaBindError, MtaBindResult};

impl Node {
    pub(crate) fn responder_indication(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        indication: Indication,
    ) {
        match indication {
            Indication::Open { bind, reference, dialogue, .. } => {
                if let Some(link) = self.cx.associations.get_mut(&id) {
                    link.reference = reference;
                    link.two_way = dialogue == osi::api::Dialogue::TwoWayAlternate;
                }
                match self.admission.check_initiator(&mut self.cx, now, id, channel, &bind) {
                    Ok((presented, password)) => {
                        let bind = PeerBind { link: id, channel, presented, password };
                        self.admission.queue_peer(&mut self.cx, now, bind);
                    }
                    Err(refusal) => {
                        if matches!(refusal, Refusal::Wrong(_)) {
                            let (origin, name) = self.cx.who_binds(id);
                            self.admission.access.failed(now.mono, origin, name, false);
                        }
                        self.cx.refuse_bind(now, id, refusal);
                    }
                }
            }
            Indication::RecoverAsked { reference, association, dialogue } => {
                if let Some(link) = self.cx.associations.get_mut(&id) {
                    link.reference = association;
                    link.two_way = dialogue == osi::api::Dialogue::TwoWayAlternate;
                }
                self.recover_asked(now, id, channel, reference);
            }
            other => self.transfer_indication(now, id, channel, other),
        }
    }

    /// A peer's password was checked.
    pub(crate) fn peer_verified(
        &mut self,
        now: Now,
        id: AssociationId,
        (origin, name, password): (Origin, Name, Name),
        right: bool,
    ) {
        match right {
            true => self.admission.access.succeeded(now.mono, origin, name),
            false => self.admission.access.peer_failed(now.mono, origin, name, password),
        }
        let link = self.cx.associations.get(&id).filter(|link| link.phase == Phase::Opening);
        match (link.and_then(Association::channel), right) {
            (Some(channel), true) => self.outbound.responder_open(&mut self.cx, now, id, channel),
            (Some(_), false) => {
                let wrong = "initiator-credentials: wrong password".to_owned();
                self.cx.refuse_bind(now, id, Refusal::Wrong(wrong));
            }
            (None, _) => {}
        }
        let next = self.admission.access.next_peer(origin, name);
        self.admission.check_peers(&mut self.cx, now, origin, name, next);
    }
}

impl Context {
    /// Whom a bind on this association is counted against.
    pub(crate) fn who_binds(&self, id: AssociationId) -> (Origin, Name) {
        let link = self.associations.get(&id);
        let name = link.and_then(|l| l.presented).unwrap_or_else(|| Name::of(""));
        (link.and_then(|l| l.origin).unwrap_or(Origin::Others), name)
    }

    pub(crate) fn check_origin(&self, id: AssociationId, peer: PeerId) -> Result<(), String> {
        let remote = self.associations.get(&id).and_then(|l| l.remote);
        match (self.config.peer(peer), remote) {
            (Some(p), Some(remote))
                if !p.from.is_empty() && !p.from.iter().any(|prefix| prefix.contains(remote)) =>
            {
                Err(format!("{remote} is not where peer {} connects from (peer.from)", p.name))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a peer's bind, as X.411 12.1.1 has it: authentication-error, whatever of name,
    /// password and address was wrong, or where the argument cannot be read (credentials not
    /// acceptable, or improperly specified: there is no error for the form alone);
    /// unacceptable-security-context for any security-context, since we hold no association to one;
    /// or busy. The log says what it was.
    pub(crate) fn refuse_bind(&mut self, now: Now, id: AssociationId, refusal: Refusal) {
        let Some(link) = self.associations.get(&id) else { return };
        let (channel, origin) = (link.channel(), link.origin);
        let from = link.remote.map(|r| format!(" from {r}")).unwrap_or_default();
        let error = match refusal {
            Refusal::Wrong(_) => MtaBindError::AuthenticationError,
            Refusal::Context => MtaBindError::UnacceptableSecurityContext,
            Refusal::TooMany(_) | Refusal::Full(_) => MtaBindError::Busy,
        };
        let (why, told) = self.log_refusal(refusal);
        let line = refused(channel, format!("bind{from}: {error} (X.411 12.1.1): {told}"));
        self.hushed(now, why, origin, Some(id), &told, line);
        self.refuse(id, error);
    }

    /// A refusal in words, of a length whoever binds does not choose.
    pub(crate) fn log_refusal(&self, refusal: Refusal) -> (Why, String) {
        let limits = &self.config.limits;
        match refusal {
            Refusal::Wrong(why) => (Why::Bind, short(&why)),
            Refusal::Context => (
                Why::Bind,
                "security-context: none can be held to, none may be asked for".to_owned(),
            ),
            Refusal::TooMany(name) => {
                let told = format!(
                    "as {:?}, where {} binds failed lately: not looked at \
                     (limits.failures, one more every {:?})",
                    short(&name),
                    limits.failures,
                    limits.failure_refill
                );
                (Why::Busy, told)
            }
            Refusal::Full(limit) => (Why::Limit(limit), limits.describe(limit)),
        }
    }

    pub(crate) fn refuse(&mut self, id: AssociationId, error: MtaBindError) {
        let mut writer = base::ber::Writer::new();
        error.write(&mut writer);
        self.begin_refusing(id);
        let bind_error = Some(Bytes::from(writer.into_vec()));
        self.request(id, Request::Refuse { reason: RefuseReason::Bind, bind_error });
    }

    /// It was refused: nothing more is expected of it, and it may have to make room.
    pub(crate) fn begin_refusing(&mut self, id: AssociationId) {
        self.connections.checked(id);
        if let Some(link) = self.associations.get_mut(&id) {
            link.bind_deadline = None;
            link.phase = Phase::Refusing;
        }
    }

    pub(crate) fn mark_open(&mut self, now: Now, id: AssociationId, detail: &str) {
        let channel = self.associations.get(&id).and_then(Association::channel);
        if let Some(link) = self.associations.get_mut(&id) {
            link.phase = Phase::Open;
            link.bind_deadline = None;
            link.idle_since = now.mono;
        }
        match channel {
            Some(channel) => self.connections.on_channel(id, channel),
            None => self.note_user(id),
        }
        self.event(Level::Info, Kind::AssociationOpened, detail).association(id).channel(channel);
        self.compare_marks(id);
    }

    pub(crate) fn refuse_recovery(
        &mut self,
        now: Now,
        id: AssociationId,
        reason: RefuseReason,
        why: &str,
    ) {
        let Some(link) = self.associations.get(&id) else { return };
        let (channel, origin) = (link.channel(), link.origin);
        let from = link.remote.map(|r| format!(" from {r}")).unwrap_or_default();
        let detail = format!("recover{from} (X.228 7.8): {why}");
        let line = Repeated { level: Level::Info, ..refused(channel, detail) };
        self.hushed(now, Why::Bind, origin, Some(id), why, line);
        self.begin_refusing(id);
        self.request(id, Request::Refuse { reason, bind_error: None });
    }
}

impl Admission {
    /// A peer's password is checked after those that came before it under that name from there.
    pub(crate) fn queue_peer(&mut self, cx: &mut Context, now: Now, bind: PeerBind) {
        cx.connections.checking(bind.link);
        let (origin, name) = cx.who_binds(bind.link);
        let next = self.access.peer_waits(origin, name, bind);
        self.check_peers(cx, now, origin, name, next);
    }

    /// Has this password checked, or the next one where that is not worth it.
    pub(crate) fn check_peers(
        &mut self,
        cx: &mut Context,
        now: Now,
        origin: Origin,
        name: Name,
        mut next: Option<PeerBind>,
    ) {
        while let Some(PeerBind { link, channel, presented, password }) = next {
            if cx.associations.get(&link).is_some_and(|l| l.phase == Phase::Opening) {
                if self.access.may_try(now.mono, origin, name) {
                    let digest = Name::of_octets(&password.0);
                    let bind = VerifiedBind::Initiator { origin, name, password: digest };
                    return cx.verify_peer(link, channel, password, bind);
                }
                // Those before it failed.
                cx.refuse_bind(now, link, Refusal::TooMany(presented));
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
    ) -> Result<(String, Secret), Refusal> {
        let argument = Element::parse(bind)
            .and_then(|e| MtaBindArgument::read(&e))
            .map_err(|e| Refusal::Wrong(format!("MTABindArgument: {e}")))?;
        let presented = match &argument {
            MtaBindArgument::Unauthenticated => String::new(),
            MtaBindArgument::Authenticated(who) => who.name.0.clone(),
        };
        let name = Name::of(&presented);
        let origin = cx.associations.get_mut(&id).and_then(|link| {
            link.presented = Some(name);
            link.origin
        });
        if let Some(origin) = origin
            && !self.access.may_try(now.mono, origin, name)
        {
            return Err(Refusal::TooMany(presented));
        }
        // Before all that is secret: the answer tells nothing of it.
        if matches!(&argument, MtaBindArgument::Authenticated(who) if who.security_context.is_some())
        {
            return Err(Refusal::Context);
        }
        cx.check_origin(id, channel.peer).map_err(Refusal::Wrong)?;
        match argument {
            MtaBindArgument::Unauthenticated => {
                Err(Refusal::Wrong("no credentials (MTABindArgument: NULL)".to_owned()))
            }
            MtaBindArgument::Authenticated(who) => {
                let password = cx.peer_password(channel, &who).map_err(Refusal::Wrong)?;
                Ok((presented, password))
            }
        }
    }
}

impl Outbound {
    /// The peer's password is right.
    pub(crate) fn responder_open(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
    ) {
        if let Some(limit) = cx.is_one_too_many(channel) {
            return cx.refuse_bind(now, id, Refusal::Full(limit));
        }
        let Some((peer, _)) = cx.peer_and_channel(channel) else { return };
        let result = MtaBindResult::Authenticated(crate::config::authentication(peer));
        let mut writer = base::ber::Writer::new();
        result.write(&mut writer);
        cx.request(id, Request::Accept { bind: writer.into_vec().into() });
        cx.mark_open(now, id, "as responder");
        self.peer_has_bound(cx, now, channel.peer);
    }
}

/// Why a bind is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// authentication-error; the text is for the log only.
    Wrong(String),
    /// unacceptable-security-context: there is one.
    Context,
    /// busy: too many binds under this name failed from there.
    TooMany(String),
    /// busy: over a limit.
    Full(Limit),
}

/// What strangers wrote, cut to a length fit for a log.
pub(crate) fn short(text: &str) -> String {
    const MAX: usize = 200;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
