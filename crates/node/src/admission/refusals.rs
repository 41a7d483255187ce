//! Binds that are refused: the answer to the peer, and the log line.

use crate::admission::Admission;
use crate::api::event::{Kind, LogLevel};
use crate::context::Context;
use crate::log::rate::{RefusalCause, RepeatedEvent};
use base::ber::Writer;
use base::{AssociationId, Now};
use bytes::Bytes;
use guard::Limit;
use osi::api::{RefuseReason, Request};
use p1::bind::MtaBindError;
use p1::p3::MtsBindError;
use p7::{BindProblem, MsBindError};
use scheduler::ChannelId;

/// Why a bind is refused.
#[derive(Debug)]
pub(crate) enum BindRefusal {
    /// authentication-error; the text is for the log only.
    Wrong(String),
    /// unacceptable-security-context: there is one, and why it cannot be had.
    Context(String),
    /// busy: too many binds under this name failed from there.
    TooMany(String),
    /// busy: over a limit.
    Full(Limit),
    /// busy: an operator disabled the channel.
    Disabled(String),
    /// busy: the disk has no room for what could come.
    NoSpace(String),
}

/// What strangers wrote, cut to a length fit for a log.
pub(crate) fn short(text: &str) -> String {
    const MAX: usize = 200;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A line on a refusal.
pub(crate) fn refused(channel: Option<ChannelId>, detail: String) -> RepeatedEvent {
    RepeatedEvent { level: LogLevel::Warning, kind: Kind::AssociationRefused, channel, detail }
}

impl Admission {
    /// Refuses a peer's bind, as X.411 12.1.1 has it: authentication-error, whatever of name,
    /// password and address was wrong, or where the argument cannot be read (credentials not
    /// acceptable, or improperly specified: there is no error for the form alone);
    /// unacceptable-security-context for one that the clearance of who binds does not have; or busy. The log has
    /// the cause.
    pub(crate) fn refuse_bind(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        refusal: BindRefusal,
    ) {
        let Some(association) = cx.associations.get(&id) else { return };
        let (channel, origin) = (association.channel(), association.connection.origin);
        let from = association.connection.remote.map(|r| format!(" from {r}")).unwrap_or_default();
        let error = match refusal {
            BindRefusal::Wrong(_) => MtaBindError::AuthenticationError,
            BindRefusal::Context(_) => MtaBindError::UnacceptableSecurityContext,
            BindRefusal::TooMany(_)
            | BindRefusal::Full(_)
            | BindRefusal::Disabled(_)
            | BindRefusal::NoSpace(_) => MtaBindError::Busy,
        };
        let (why, text) = self.log_refusal(cx, refusal);
        let line = refused(channel, format!("bind{from}: {error} (X.411 12.1.1): {text}"));
        cx.outputs.limited_event(now, why, origin, Some(id), &text, line);
        self.refuse(cx, id, error);
    }

    /// A refusal in words, of a length whoever binds does not choose.
    fn log_refusal(&self, cx: &Context, refusal: BindRefusal) -> (RefusalCause, String) {
        let limits = &cx.config.limits;
        match refusal {
            BindRefusal::Wrong(why) | BindRefusal::Context(why) => {
                (RefusalCause::Bind, short(&why))
            }
            BindRefusal::TooMany(name) => {
                let text = format!(
                    "as {:?}, where {} binds failed lately: not looked at \
                     (limits.failures, one more every {:?})",
                    short(&name),
                    limits.failures,
                    limits.failure_refill
                );
                (RefusalCause::Busy, text)
            }
            BindRefusal::Full(limit) => (RefusalCause::Limit(limit), limits.describe(limit)),
            BindRefusal::NoSpace(why) | BindRefusal::Disabled(why) => (RefusalCause::Busy, why),
        }
    }

    fn refuse(&self, cx: &mut Context, id: AssociationId, error: MtaBindError) {
        let mut writer = Writer::new();
        error.write(&mut writer);
        self.begin_refusing(cx, id);
        let bind_error = Some(Bytes::from(writer.into_vec()));
        cx.request(id, Request::Refuse { reason: association::refused::reason(error), bind_error });
    }

    /// It was refused: nothing more is expected of it, and it may have to make room.
    fn begin_refusing(&self, cx: &mut Context, id: AssociationId) {
        cx.associations.not_checking(id);
        if let Some(association) = cx.associations.get_mut(&id) {
            association.refuse();
        }
    }

    pub(crate) fn refuse_recovery(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        reason: RefuseReason,
        why: &str,
    ) {
        let Some(association) = cx.associations.get(&id) else { return };
        let (channel, origin) = (association.channel(), association.connection.origin);
        let from = association.connection.remote.map(|r| format!(" from {r}")).unwrap_or_default();
        let detail = format!("recover{from} (X.228 7.8): {why}");
        let line = RepeatedEvent { level: LogLevel::Info, ..refused(channel, detail) };
        cx.outputs.limited_event(now, RefusalCause::Bind, origin, Some(id), why, line);
        self.begin_refusing(cx, id);
        cx.request(id, Request::Refuse { reason, bind_error: None });
    }

    /// Refuses a user's bind (X.411 8.1.1), with the errors of `refuse_bind`; one to the message store with those of
    /// X.413 7.1.5, which have no busy: unable-to-establish-association.
    pub(crate) fn refuse_user(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        refusal: BindRefusal,
    ) {
        let Some(association) = cx.associations.get(&id) else { return };
        let (origin, remote) = (association.connection.origin, association.connection.remote);
        let association_is_store = association.store().is_some();
        let from = remote.map(|r| format!(" from {r}")).unwrap_or_default();
        let error = match refusal {
            BindRefusal::Wrong(_) => MtsBindError::AuthenticationError,
            BindRefusal::Context(_) => MtsBindError::UnacceptableSecurityContext,
            BindRefusal::TooMany(_)
            | BindRefusal::Full(_)
            | BindRefusal::Disabled(_)
            | BindRefusal::NoSpace(_) => MtsBindError::Busy,
        };
        let (why, text) = self.log_refusal(cx, refusal);
        let mut writer = Writer::new();
        let shown = if association_is_store {
            let error = store_error(error);
            error.write(&mut writer);
            format!("{error} (X.413 7.1.5)")
        } else {
            error.write(&mut writer);
            format!("{error} (X.411 8.1.1)")
        };
        let line = refused(None, format!("bind{from}: {shown}: {text}"));
        cx.outputs.limited_event(now, why, origin, Some(id), &text, line);
        self.begin_refusing(cx, id);
        let bind_error = Some(Bytes::from(writer.into_vec()));
        cx.request(id, Request::Refuse { reason: RefuseReason::Bind, bind_error });
    }
}

/// The error of MS-bind for one of MTS-bind.
fn store_error(error: MtsBindError) -> MsBindError {
    MsBindError::Unqualified(match error {
        MtsBindError::AuthenticationError => BindProblem::AUTHENTICATION_ERROR,
        MtsBindError::UnacceptableSecurityContext => BindProblem::UNACCEPTABLE_SECURITY_CONTEXT,
        _ => BindProblem::UNABLE_TO_ESTABLISH_ASSOCIATION,
    })
}
