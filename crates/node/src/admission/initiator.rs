//! Binds of ours to a peer.

use crate::admission::Admission;
use crate::admission::credentials::CredentialsError;
use crate::admission::refusals::short;
use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::{PendingAnswer, VerifiedBind};
use crate::context::Context;
use crate::ids::Principal;
use base::ber::Element;
use base::{AssociationId, Now};
use bytes::Bytes;
use dscp::Dscp;
use guard::Secret;
use osi::api::Request;
use p1::bind::{Credentials, MtaAuthentication, MtaBindArgument, MtaBindResult};
use scheduler::ChannelId;

impl Admission {
    pub(crate) fn connected(&self, cx: &mut Context, now: Now, id: AssociationId) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let Some(channel) = association.channel() else { return };
        // One deadline for all the answers together.
        association.connected(now.mono + cx.config.limits.bind_timeout);
        let request = match cx.recovery.offer(channel, id) {
            Some((reference, received)) => Request::Recover { reference, received },
            None => Request::Open { bind: self.bind_argument(cx, channel) },
        };
        cx.request(id, request);
    }

    /// Takes note of the mark a peer's handshake arrived with. Whether somebody who connected is the
    /// peer is known once he has bound.
    pub(crate) fn mark_seen(&self, cx: &mut Context, id: AssociationId, seen: Dscp) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let is_first = association.connection.dscp_seen.replace(seen).is_none();
        if is_first && (association.is_initiator() || association.is_open()) {
            self.compare_marks(cx, id);
        }
    }

    /// Compares the mark a peer's handshake arrived with to its channel's. A user's has none to be
    /// compared to.
    pub(crate) fn compare_marks(&self, cx: &mut Context, id: AssociationId) {
        let Some(association) = cx.associations.get(&id) else { return };
        let (Some(p1), Some(seen)) = (association.p1(), association.connection.dscp_seen) else {
            return;
        };
        let (channel, expected) = (p1.channel, p1.mark);
        if let Some(detail) = cx.outputs.another_mark(channel, expected, seen) {
            cx.event(LogLevel::Warning, Kind::MarkMismatch, detail)
                .association(id)
                .channel(Some(channel));
        }
    }

    /// Our MTABindArgument toward a channel's peer.
    fn bind_argument(&self, cx: &Context, channel: ChannelId) -> Bytes {
        let Some((peer, _)) = cx.peer_and_channel(channel) else { return Bytes::new() };
        let argument = MtaBindArgument::Authenticated(crate::config::authentication(peer));
        let mut writer = base::ber::Writer::new();
        argument.write(&mut writer);
        writer.into_vec().into()
    }

    /// Checks who answered: the name must be the peer's, the password is verified by the edge.
    pub(crate) fn check_responder(
        &self,
        cx: &mut Context,
        id: AssociationId,
        channel: ChannelId,
        bind: &[u8],
    ) {
        let wrong = match Element::parse(bind).and_then(|e| MtaBindResult::read(&e)) {
            Err(error) => format!("MTABindResult: {error}"),
            Ok(MtaBindResult::Unauthenticated) => "MTABindResult: NULL, no credentials".to_owned(),
            Ok(MtaBindResult::Authenticated(who)) => match self.peer_password(cx, channel, &who) {
                Ok(password) => {
                    return self.verify_peer(cx, id, channel, password, VerifiedBind::Responder);
                }
                Err(wrong) => wrong.to_string(),
            },
        };
        self.refuse_responder(cx, id, &cx.shown_of(channel, &wrong));
    }

    /// The password in a peer's authentication, if its name is the one configured.
    pub(crate) fn peer_password(
        &self,
        cx: &Context,
        channel: ChannelId,
        who: &MtaAuthentication,
    ) -> Result<Secret, CredentialsError> {
        let Some((peer, _)) = cx.peer_and_channel(channel) else {
            return Err(CredentialsError::NoPeer);
        };
        if who.name != peer.mta {
            let whose = cx.config.peers.iter().find(|p| p.mta == who.name);
            let whose = whose.map(|p| format!("; it is peer {}'s", p.name)).unwrap_or_default();
            return Err(CredentialsError::Name {
                presented: short(&who.name.0),
                peer: peer.name.clone(),
                name: peer.mta.0.clone(),
                whose,
            });
        }
        match &who.credentials {
            Credentials::Simple(password) => Ok(Secret(Bytes::copy_from_slice(password.octets()))),
            Credentials::Strong(_) => Err(CredentialsError::Strong),
            Credentials::Protected(_) => Err(CredentialsError::Protected),
        }
    }

    pub(crate) fn verify_peer(
        &self,
        cx: &mut Context,
        id: AssociationId,
        channel: ChannelId,
        password: Secret,
        bind: VerifiedBind,
    ) {
        let token = cx.token(PendingAnswer::Verify { association: id, bind });
        cx.output(Output::Verify { token, principal: Principal::Peer(channel.peer), password });
    }

    pub(crate) fn refuse_responder(&self, cx: &mut Context, id: AssociationId, why: &str) {
        if let Some(association) = cx.associations.get_mut(&id) {
            association.give_up(format!("invalid bind result of the peer: {why}"));
        }
        cx.request(id, Request::Abort(osi::api::AbortReason::PermanentProblem));
    }
}
