//! Binds: what follows once a password was checked.

use crate::admission::refusals::BindRefusal;
use crate::association::Association;
use crate::commits::pending::{PendingAnswer, VerifiedBind};
use crate::ids::Token;
use crate::node::Node;
use base::ip_prefix::Origin;
use base::{AssociationId, Now};
use engine::NextHop;
use guard::NameDigest;
use guard::access::PeerBind;
use osi::api::Indication;
use scheduler::ChannelId;

impl Node {
    pub(crate) fn responder_indication(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        indication: Indication,
    ) {
        match indication {
            Indication::Open { bind, reference, dialogue, mode, .. } => {
                if let Err(why) = self.cx.config.takes(channel.peer, mode) {
                    let why = BindRefusal::Wrong(why);
                    return self.admission.refuse_bind(&mut self.cx, now, id, why);
                }
                if let Some(p1) = self.cx.associations.p1_mut(id) {
                    p1.proposed(reference, dialogue);
                }
                match self.admission.check_initiator(&mut self.cx, now, id, channel, &bind) {
                    Ok((presented, password)) => {
                        let bind = PeerBind { association: id, channel, presented, password };
                        self.admission.queue_peer(&mut self.cx, now, bind);
                    }
                    Err(refusal) => {
                        if matches!(refusal, BindRefusal::Wrong(_)) {
                            let (origin, name) = self.admission.who_binds(&self.cx, id);
                            self.admission.access.failed(now.mono, origin, name, false);
                        }
                        self.admission.refuse_bind(&mut self.cx, now, id, refusal);
                    }
                }
            }
            Indication::RecoverAsked { reference, association, dialogue } => {
                if let Some(p1) = self.cx.associations.p1_mut(id) {
                    p1.proposed(association, dialogue);
                }
                self.recover_asked(now, id, channel, reference);
            }
            other => self.transfer_indication(now, id, channel, other),
        }
    }

    /// A peer's password was checked.
    fn peer_verified(
        &mut self,
        now: Now,
        id: AssociationId,
        (origin, name, password): (Origin, NameDigest, NameDigest),
        right: bool,
    ) {
        match right {
            true => self.admission.access.succeeded(now.mono, origin, name),
            false => self.admission.access.peer_failed(now.mono, origin, name, password),
        }
        let association = self.cx.associations.get(&id).filter(|a| a.is_binding());
        match (association.and_then(Association::channel), right) {
            (Some(channel), true) => {
                if self.admission.responder_open(&mut self.cx, now, id, channel) {
                    self.outbound.peer_has_bound(&mut self.cx, now, channel.peer, "us");
                }
            }
            (Some(_), false) => {
                let wrong = "initiator-credentials: wrong password".to_owned();
                self.admission.refuse_bind(&mut self.cx, now, id, BindRefusal::Wrong(wrong));
            }
            (None, _) => {}
        }
        let next = self.admission.access.next_peer(origin, name);
        self.admission.check_peers(&mut self.cx, now, origin, name, next);
    }

    /// A user's password was checked.
    fn user_verified(
        &mut self,
        now: Now,
        id: AssociationId,
        mailbox: &str,
        origin: Origin,
        right: bool,
    ) {
        self.admission.access.ended();
        let name = NameDigest::new(mailbox);
        match right {
            true => self.admission.access.succeeded(now.mono, origin, name),
            false => self.admission.access.failed(now.mono, origin, name, true),
        }
        if self.cx.associations.get(&id).is_some_and(|a| a.is_binding()) {
            let context = self.cx.associations.get(&id).and_then(Association::context_refused);
            if let Some(why) = context.filter(|_| right).map(str::to_owned) {
                self.admission.refuse_user(&mut self.cx, now, id, BindRefusal::Context(why));
            } else if right && !self.cx.queue.owns(&NextHop::Mailbox(mailbox.to_owned())) {
                let why = "another node of the site has this mailbox, with somebody bound to it";
                let refusal = BindRefusal::Disabled(why.to_owned());
                self.admission.refuse_user(&mut self.cx, now, id, refusal);
            } else if right {
                let number = self.cx.queue.mailbox(mailbox);
                let is_store = self.cx.associations.get(&id).is_some_and(|a| a.store().is_some());
                let binding = self.stores.mailboxes.binding(mailbox).count();
                let has_room =
                    self.admission.user_has_room(&mut self.cx, now, id, (number, binding));
                if has_room && is_store {
                    self.stores.bind(&mut self.cx, now, id, mailbox);
                } else if has_room {
                    let waiting = self.delivery.user_binds(&mut self.cx, now, id, number);
                    self.admission.user_open(&mut self.cx, now, id, mailbox, waiting);
                }
            } else {
                let wrong = format!("wrong password, or no such user: {mailbox}");
                self.admission.refuse_user(&mut self.cx, now, id, BindRefusal::Wrong(wrong));
            }
        }
        self.admission.verify_waiting(&mut self.cx, now);
    }

    pub(crate) fn verified(&mut self, now: Now, token: Token, right: bool) {
        let Some(PendingAnswer::Verify { association: id, bind }) = self.cx.commits.take(token)
        else {
            return;
        };
        match bind {
            VerifiedBind::User { mailbox, origin, stale } => {
                return self.user_verified(now, id, &mailbox, origin, right && !stale);
            }
            VerifiedBind::Initiator { origin, name, password } => {
                return self.peer_verified(now, id, (origin, name, password), right);
            }
            VerifiedBind::Responder => {}
        }
        let association = self.cx.associations.get(&id).filter(|a| a.is_binding());
        let Some(association) = association else { return };
        match (association.channel(), right) {
            (Some(channel), true) => self.outbound.initiator_open(&mut self.cx, now, id, channel),
            (Some(_), false) => {
                let why = "the peer's password is wrong: compare it with `expect`";
                self.admission.refuse_responder(&mut self.cx, id, why);
            }
            (None, _) => {}
        }
    }
}
