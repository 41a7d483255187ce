//! Binds of users.

use crate::admission::Admission;
use crate::admission::refusals::BindRefusal;
use crate::api::Output;
use crate::commits::pending::{PendingAnswer, VerifiedBind};
use crate::context::Context;
use crate::ids::Principal;
use base::ber::{Element, Writer};
use base::ip_prefix::Origin;
use base::{AssociationId, Now};
use bytes::Bytes;
use guard::Limit;
use guard::NameDigest;
use guard::Secret;
use guard::access::WaitingBind;
use osi::api::{AbortReason, Request};
use osi::profiles::abstract_syntax;
use p1::bind::Credentials;
use p1::p3::{MessagesWaiting, MtsBind, ObjectName};
use p7::MsBindArgument;

impl Admission {
    pub(crate) fn user_bind(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        bind: &[u8],
        syntaxes: &[base::ber::Oid],
    ) {
        if cx.associations.get(&id).is_some_and(|a| a.store().is_some()) {
            return self.store_bind(cx, now, id, bind);
        }
        let takes_deliveries = syntaxes.contains(&abstract_syntax::mdse_88());
        let parsed = Element::parse(bind).and_then(|e| MtsBind::read(&e));
        let wrong = match parsed {
            Err(error) => format!("MTSBindArgument: {error}"),
            Ok(bind) => match (bind.name, bind.credentials) {
                (
                    ObjectName::UserAgent(name) | ObjectName::MessageStore(name),
                    Credentials::Simple(password),
                ) => {
                    let context = bind.security_context.as_deref();
                    let context = context.map(|of| cx.engine.user_context(&name.address, of));
                    if let Some(association) = cx.associations.get_mut(&id) {
                        association.set_context(context);
                    }
                    let password = Secret(Bytes::copy_from_slice(password.octets()));
                    let mailbox = engine::canonical(&name.address);
                    return self.queue_verification(
                        cx,
                        now,
                        id,
                        takes_deliveries,
                        mailbox,
                        password,
                    );
                }
                (ObjectName::Mta(name), _) => {
                    format!("initiator-name: MTA {:?} binds over P1, not over P3", name.0)
                }
                _ => "initiator-credentials: only simple ones are supported".to_owned(),
            },
        };
        self.refuse_user(cx, now, id, BindRefusal::Wrong(wrong));
    }

    /// A user binds to the message store (X.413 7.1).
    fn store_bind(&mut self, cx: &mut Context, now: Now, id: AssociationId, bind: &[u8]) {
        let parsed = Element::parse(bind).and_then(|e| MsBindArgument::read(&e));
        let wrong = match parsed {
            Err(error) => format!("MSBindArgument: {error}"),
            Ok(bind) if bind.security_context.is_some() => {
                let why = "a security-context, which the message store does not hold to";
                return self.refuse_user(cx, now, id, BindRefusal::Context(why.to_owned()));
            }
            Ok(bind) => match bind.initiator_credentials {
                Credentials::Simple(password) => {
                    if let Some(store) = cx.associations.p3_mut(id).and_then(|p| p.store.as_mut()) {
                        store.access.restrictions = bind.fetch_restrictions.unwrap_or_default();
                        store.wants_configuration = bind.ms_configuration_request;
                    }
                    let password = Secret(Bytes::copy_from_slice(password.octets()));
                    let mailbox = engine::canonical(&bind.initiator_name.address);
                    return self.queue_verification(cx, now, id, false, mailbox, password);
                }
                _ => "initiator-credentials: only simple ones are supported".to_owned(),
            },
        };
        self.refuse_user(cx, now, id, BindRefusal::Wrong(wrong));
    }

    /// A user's password is checked in its turn, unless too many were wrong.
    fn queue_verification(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        takes_deliveries: bool,
        mailbox: String,
        password: Secret,
    ) {
        if let Some(why) = cx.life.without_lease() {
            return self.refuse_user(cx, now, id, BindRefusal::Disabled(why.to_owned()));
        }
        let Some(association) = cx.associations.get_mut(&id) else { return };
        if let Some(p3) = association.p3_mut() {
            p3.takes_deliveries = takes_deliveries;
        }
        let origin = association.connection.origin.unwrap_or(Origin::Others);
        if !self.access.may_try(now.mono, origin, NameDigest::new(&mailbox)) {
            return self.refuse_user(cx, now, id, BindRefusal::TooMany(mailbox));
        }
        // What waits for all others may have to make room.
        if self.access.wait(now.mono, origin, WaitingBind { association: id, mailbox, password }) {
            cx.associations.checking(id);
        }
        self.verify_waiting(cx, now);
    }

    /// Has the next passwords checked, as many at once as may be.
    pub(crate) fn verify_waiting(&mut self, cx: &mut Context, now: Now) {
        loop {
            let associations = &cx.associations;
            let is_there =
                |id: AssociationId| associations.get(&id).is_some_and(|l| l.is_binding());
            let next = self.access.next(now.mono, is_there);
            for put_last in self.access.take_put_last() {
                cx.associations.not_checking(put_last);
            }
            let Some((origin, WaitingBind { association: id, mailbox, password })) = next else {
                return;
            };
            cx.associations.checking(id);
            if !self.access.may_try(now.mono, origin, NameDigest::new(&mailbox)) {
                // Those before it failed.
                self.access.ended();
                self.refuse_user(cx, now, id, BindRefusal::TooMany(mailbox));
                continue;
            }
            let bind = VerifiedBind::User { mailbox: mailbox.clone(), origin, stale: false };
            let token = cx.token(PendingAnswer::Verify { association: id, bind });
            let principal = Principal::User(mailbox);
            cx.output(Output::Verify { token, principal, password });
        }
    }

    /// These mailboxes are gone, or have another password: who bound with the old one is aborted,
    /// and nobody binds with it any more; `binding` wait for a mailbox to be open.
    pub(crate) fn end_users(
        &mut self,
        cx: &mut Context,
        changed: &[String],
        binding: Vec<AssociationId>,
    ) {
        if changed.is_empty() {
            return;
        }
        let names: Vec<NameDigest> =
            changed.iter().map(|mailbox| NameDigest::new(mailbox)).collect();
        self.access.unprove(&names);
        cx.commits.doubt_verifications(changed);
        let numbers = changed.iter().filter_map(|mailbox| cx.queue.mailbox_number(mailbox));
        let bound = numbers.flat_map(|n| cx.associations.connections().users(n));
        let ids: Vec<AssociationId> = bound.chain(binding).collect();
        for id in &ids {
            if let Some(association) = cx.associations.get_mut(id) {
                association.connection.error =
                    Some("the user is gone, or has another password".to_owned());
            }
        }
        for id in ids {
            cx.request(id, Request::Abort(AbortReason::PermanentProblem));
        }
    }

    /// A user has bound.
    pub(crate) fn note_user(&self, cx: &mut Context, id: AssociationId) {
        let mailbox = cx.associations.get(&id).and_then(|l| l.mailbox().map(str::to_owned));
        if let Some(mailbox) = mailbox {
            let number = cx.queue.mailbox(&mailbox);
            cx.associations.user_bound(id, number);
        }
    }

    /// Whether one more association of this mailbox may be bound; else it is refused. So many wait for the mailbox to be
    /// open.
    pub(crate) fn user_has_room(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        (mailbox, binding): (u32, usize),
    ) -> bool {
        let most = cx.config.limits.associations_per_user;
        let bound = cx.associations.connections().users(mailbox).count();
        let has_room = bound.saturating_add(binding) < most;
        if !has_room {
            self.refuse_user(cx, now, id, BindRefusal::Full(Limit::PerUser));
        }
        has_room
    }

    /// The user's password is right.
    pub(crate) fn user_open(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        mailbox: &str,
        waiting: MessagesWaiting,
    ) {
        // responder-credentials must be there; users authenticate us by the connection they made.
        let name = ObjectName::Mta(cx.config.mta.clone());
        let mut result = MtsBind::new(name, Credentials::simple(""));
        result.messages_waiting = Some(waiting);
        let mut writer = Writer::new();
        result.write(&mut writer);
        if let Some(p3) = cx.associations.p3_mut(id) {
            p3.mailbox = Some(mailbox.to_owned());
        }
        cx.request(id, Request::Accept { bind: writer.into_vec().into() });
        self.mark_open(cx, now, id, &format!("user {mailbox}"));
    }
}
