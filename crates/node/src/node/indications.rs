//! What the stack of an association indicates, given to the machine that it is for.

use crate::api::event::{Kind, LogLevel};
use crate::arrivals::submission::Invoked;
use crate::association::Protocol;
use crate::association::p1::{Opener, P1};
use crate::association::p3::ArrivingUnit;
use crate::association::p3::DELIVERY_TIMEOUT;
use crate::commits::pending::Cancelling;
use crate::node::Node;
use crate::operations::cancelling::Cancelled;
use base::{AssociationId, Now};
use bytes::Bytes;
use osi::api::{AbortReason, Indication};
use scheduler::ChannelId;

/// Most octets kept of the result or error with which a user answers a delivery.
const MAX_RESULT: usize = 64 << 10;

impl Node {
    pub(crate) fn indication(&mut self, now: Now, id: AssociationId, indication: Indication) {
        let Some(association) = self.cx.associations.get(&id) else { return };
        match &association.protocol {
            Protocol::P1(P1 { channel, opener: Opener::Us, .. }) => {
                self.initiator_indication(now, id, *channel, indication);
            }
            Protocol::P1(P1 { channel, opener: Opener::Peer(_), .. }) => {
                self.responder_indication(now, id, *channel, indication);
            }
            Protocol::P3(_) => self.user_indication(now, id, indication),
        }
    }

    fn user_indication(&mut self, now: Now, id: AssociationId, indication: Indication) {
        match indication {
            Indication::Open { bind, application_context, syntaxes, .. } => {
                let is_1994 =
                    application_context == osi::profiles::application_context::ms_access_94();
                if let Some(store) =
                    self.cx.associations.p3_mut(id).and_then(|p3| p3.store.as_mut())
                {
                    store.access.is_1994 = is_1994;
                }
                self.admission.user_bind(&mut self.cx, now, id, &bind, &syntaxes);
            }
            Indication::Invoked { invoke, operation } => {
                self.arrivals.invoked(&mut self.cx, now, id, invoke, operation);
            }
            Indication::Returned { invoke } => {
                self.stores.alert_answered(&mut self.cx, id, invoke);
                self.arrivals.set_unit(
                    &mut self.cx,
                    id,
                    ArrivingUnit::Result { invoke, octets: Vec::new() },
                );
            }
            Indication::ReturnedError { invoke, error } => {
                self.stores.alert_answered(&mut self.cx, id, invoke);
                self.arrivals.set_unit(
                    &mut self.cx,
                    id,
                    ArrivingUnit::Error { invoke, code: error, octets: Vec::new() },
                );
            }
            Indication::Data { bytes, last } => self.user_data(now, id, &bytes, last),
            Indication::Rejected { invoke, problem } => {
                if let Some(invoke) = invoke {
                    self.stores.alert_answered(&mut self.cx, id, invoke);
                }
                self.delivery.delivery_rejected(&mut self.cx, now, id, invoke, &problem);
            }
            Indication::NeedContent { offset, max }
                if self.stores.need_content(&mut self.cx, id, offset, max) => {}
            Indication::NeedContent { offset, max } => {
                if let Some(p3) = self.cx.associations.p3_mut(id) {
                    p3.delivery_deadline = Some(now.mono + DELIVERY_TIMEOUT);
                }
                self.cx.need_content(id, offset, max);
            }
            // The stack sent a reject. APDUs come one after the other, so it is about the one that was
            // arriving, which breaks off.
            Indication::Faulty { detail, .. } => {
                self.break_off(now, id);
                self.cx.event(LogLevel::Warning, Kind::ReceiveFailed, detail).association(id);
            }
            Indication::Released => {
                self.association_over(now, id, Kind::AssociationReleased, "unbound");
            }
            Indication::Aborted { detail, .. } => {
                self.association_over(now, id, Kind::AssociationLost, &detail);
            }
            _ => {}
        }
    }

    fn user_data(&mut self, now: Now, id: AssociationId, bytes: &Bytes, last: bool) {
        let Some(association) = self.cx.associations.get_mut(&id) else { return };
        let Some(p3) = association.p3_mut() else { return };
        match &mut p3.unit {
            ArrivingUnit::None => {}
            ArrivingUnit::Invocation => {
                self.arrivals.arrival_data(&mut self.cx, id, bytes);
                self.arrivals.set_pace(&mut self.cx, now, id, last);
                if last {
                    self.arrivals.set_unit(&mut self.cx, id, ArrivingUnit::None);
                    let rest = self.arrivals.invocation_complete(&mut self.cx, now, id);
                    self.operate_elsewhere(now, id, rest);
                }
            }
            ArrivingUnit::Result { octets, .. } | ArrivingUnit::Error { octets, .. } => {
                if octets.len() + bytes.len() <= MAX_RESULT {
                    octets.extend_from_slice(bytes);
                }
                if last {
                    let unit = std::mem::take(&mut p3.unit);
                    if let Some(entry) =
                        self.delivery.delivery_answered(&mut self.cx, now, id, unit)
                    {
                        self.outbound.blame.forget(entry);
                    }
                }
            }
        }
    }

    /// An operation that is not of arrivals.
    fn operate_elsewhere(&mut self, now: Now, id: AssociationId, invoked: Option<Invoked>) {
        let Some(Invoked { invoke, operation, argument }) = invoked else { return };
        match operation {
            p1::p3::operation::CHANGE_CREDENTIALS => {
                self.credentials_invoked(id, invoke, &argument);
            }
            p1::p3::operation::REGISTER => self.register_invoked(id, invoke, &argument),
            p1::p3::operation::DELIVERY_CONTROL => {
                self.control_invoked(now, id, invoke, &argument);
            }
            p1::p3::operation::CANCEL_DEFERRED_DELIVERY => {
                match self.operations.cancel(&mut self.cx, now, id, invoke, &argument) {
                    Cancelled::Mistyped => {
                        let reason = AbortReason::InvalidParameter;
                        self.arrivals.refuse_malformed(&mut self.cx, id, invoke, reason);
                    }
                    end => self.answer_cancel(end),
                }
            }
            _ => self.stores.invoked(&mut self.cx, now, id, (invoke, operation), &argument),
        }
    }

    /// Answers cancel-deferred-delivery.
    pub(crate) fn answer_cancel(&mut self, end: Cancelled) {
        match end {
            Cancelled::Done(Cancelling { association: id, invoke, .. }) => {
                let operation = p1::p3::operation::CANCEL_DEFERRED_DELIVERY;
                let empty = Bytes::from_static(&p7::operation::EMPTY_RESULT);
                self.arrivals.answer(&mut self.cx, id, invoke, operation, empty);
            }
            Cancelled::Refused(id, invoke, error) => {
                self.arrivals.answer_error(&mut self.cx, id, invoke, &error);
            }
            Cancelled::Asked | Cancelled::Mistyped => {}
        }
    }

    /// The unit that was arriving is not completed. An argument is forgotten; an answer of the user
    /// counts as a failed delivery.
    fn break_off(&mut self, now: Now, id: AssociationId) {
        let Some(association) = self.cx.associations.get_mut(&id) else { return };
        let Some(p3) = association.p3_mut() else { return };
        p3.argument_deadline = None;
        match std::mem::take(&mut p3.unit) {
            ArrivingUnit::None => {}
            ArrivingUnit::Invocation => {
                let Some(spool) = association.take_receiving() else { return };
                // An argument that was refused as it arrived is answered already.
                if self.arrivals.is_sound(spool) {
                    self.arrivals.answered(&mut self.cx, id);
                }
                self.arrivals.drop_arrival(&mut self.cx, spool);
            }
            ArrivingUnit::Result { .. } | ArrivingUnit::Error { .. } => {
                self.delivery.delivery_failed(
                    &mut self.cx,
                    now,
                    id,
                    "the answer broke off (X.229 7.5.1)",
                );
            }
        }
    }

    fn initiator_indication(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        indication: Indication,
    ) {
        match indication {
            Indication::Opened { bind, reference } => {
                if let Some(p1) = self.cx.associations.p1_mut(id) {
                    p1.reference = reference;
                }
                if self.cx.recovery.is_offered(id) {
                    self.association_recovered(now, id, channel);
                } else {
                    self.admission.check_responder(&mut self.cx, id, channel, &bind);
                }
            }
            Indication::Refused { reason, bind_error, detail } => {
                self.refused(now, id, channel, reason, bind_error.as_deref(), &detail);
            }
            other => self.transfer_indication(now, id, channel, other),
        }
    }

    /// What the stack indicates to an initiator and a responder alike once open: either may send in its
    /// turn.
    pub(crate) fn transfer_indication(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        indication: Indication,
    ) {
        match indication {
            Indication::NeedContent { offset, max } => self.cx.need_content(id, offset, max),
            Indication::Progress(point) => {
                self.outbound.transfer_progressed(&mut self.cx, now, id, point);
            }
            Indication::Paused => self.outbound.paused(&mut self.cx, id),
            Indication::TransferConfirmed => {
                self.outbound.transfer_confirmed(&mut self.cx, now, id, channel);
            }
            Indication::TransferFailed { resume, refused, in_doubt, detail } => {
                if in_doubt {
                    self.cx.note_in_doubt(id);
                }
                let detail = self.cx.shown_of(channel, &detail);
                self.outbound.transfer_failed(&mut self.cx, now, id, resume, refused, &detail);
            }
            Indication::TurnPlease(_) => {
                if let Some(p1) = self.cx.associations.p1_mut(id) {
                    p1.turn.asked = true;
                }
            }
            Indication::TurnGiven => self.outbound.turn_given(&mut self.cx, now, id),
            Indication::Released => {
                self.association_over(now, id, Kind::AssociationReleased, "released");
            }
            Indication::Aborted { reason, detail } => {
                if let Some(p1) = self.cx.associations.p1_mut(id) {
                    p1.abort = reason;
                }
                let detail = self.cx.shown_of(channel, &detail);
                self.association_over(now, id, Kind::AssociationLost, &detail);
            }
            other => self.arrivals.receive_indication(&mut self.cx, now, id, channel, other),
        }
    }
}
