//! What follows when a user answers a delivery.

use crate::api::event::{Kind, LogLevel};
use crate::association::p3::ArrivingUnit;
use crate::commits::pending::{AfterCommit, PendingAnswer};
use crate::context::Context;
use crate::delivery::Delivery;
use base::ber::Element;
use base::{AssociationId, EntryId, Now};
use engine::{NextHop, Record};
use osi::api::Problem;
use p1::p3::AccessError;

impl Delivery {
    fn delivery_confirmed(&self, cx: &mut Context, now: Now, id: AssociationId) -> Option<EntryId> {
        let sending = cx.associations.get_mut(&id).and_then(|l| l.sending_mut())?;
        sending.confirmed = true;
        let (entry, precedence) = (sending.entry, sending.precedence);
        let record = sending.record.take()?;
        let time = sending.delivery_time.unwrap_or(now.utc);
        // Who it is, for each recipient here has an entry of its own.
        let mailbox = match &record.next_hop {
            NextHop::Mailbox(mailbox) => mailbox.as_str(),
            NextHop::Peer(_) => "",
        };
        let to = if mailbox.is_empty() { String::new() } else { format!("to {mailbox}") };
        cx.event(LogLevel::Info, Kind::Delivered, to)
            .association(id)
            .message(record.message.clone())
            .entry(entry)
            .precedence(precedence)
            .bytes(record.body.map(|_| record.size))
            .ends_at(record.accepted, mailbox);
        let concluded = cx.engine.delivered(now.utc, time, &record);
        self.conclude(cx, id, entry, &record, concluded);
        Some(entry)
    }

    /// Deletes an entry, and queues the reports and redirected copies that follow.
    fn conclude(
        &self,
        cx: &mut Context,
        id: AssociationId,
        entry: EntryId,
        record: &Record,
        concluded: engine::Concluded,
    ) {
        cx.outputs.log_notes(Some(id), None, &record.message, &concluded.notes);
        let (batch, bodies) = cx.queue.replace(entry, record, &concluded);
        let after = AfterCommit::Sent { batch: batch.clone(), bodies };
        let entries = concluded.entries;
        let level = cx.level_of(id, None);
        cx.commit_for(
            level,
            batch,
            PendingAnswer::Commit { association: id, entries, after, charge: None },
        );
    }

    /// The user's error is permanent: the originator gets a report.
    fn delivery_refused(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        code: i64,
        why: &str,
    ) -> Option<EntryId> {
        let (reason, diagnostic) = engine::permanent(code)?;
        let sending = cx.associations.get_mut(&id).and_then(|l| l.sending_mut())?;
        let record = sending.record.take()?;
        sending.confirmed = true;
        let entry = sending.entry;
        cx.event(LogLevel::Warning, Kind::DeliveryFailed, format!("for good: {why}"))
            .association(id)
            .message(record.message.clone())
            .entry(entry)
            .precedence(record.precedence)
            .bytes(record.body.map(|_| record.size));
        let concluded = cx.engine.undeliverable(now.utc, &record, reason, diagnostic, why);
        self.conclude(cx, id, entry, &record, concluded);
        Some(entry)
    }

    /// The user answered a delivery. Gives the entry that is done with, if it is.
    pub(crate) fn delivery_answered(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        unit: ArrivingUnit,
    ) -> Option<EntryId> {
        if let Some(p3) = cx.associations.p3_mut(id) {
            p3.delivery_deadline = None;
        }
        let mine = cx.associations.get(&id).and_then(|l| l.sending()).map(|s| s.invoke);
        match unit {
            ArrivingUnit::Result { invoke, .. } if Some(invoke) == mine => {
                self.delivery_confirmed(cx, now, id)
            }
            ArrivingUnit::Error { invoke, code, octets } if Some(invoke) == mine => {
                let parameter = Element::parse(&octets).ok();
                let name = AccessError::read(code, parameter.as_ref()).map(|e| e.name());
                let text = name.unwrap_or("an error with a malformed parameter");
                let why = format!("error {code}: {text}");
                let refused = self.delivery_refused(cx, now, id, code, &why);
                if refused.is_none() {
                    self.delivery_failed(cx, now, id, &why);
                }
                refused
            }
            _ => None,
        }
    }

    /// The user rejected an invocation of ours, or an APDU without naming one.
    pub(crate) fn delivery_rejected(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        invoke: Option<i64>,
        problem: &Problem,
    ) {
        let sending = cx.associations.get(&id).and_then(|association| association.sending());
        if invoke.is_none() || invoke == sending.map(|sending| sending.invoke) {
            self.delivery_failed(cx, now, id, &format!("rejected: {problem}"));
        }
    }

    pub(crate) fn delivery_failed(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        why: &str,
    ) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let sending = association.end_sending(now.mono);
        if let Some(p3) = association.p3_mut() {
            p3.delivery_deadline = None;
        }
        let Some(sending) = sending else { return };
        let (entry, bytes) = (sending.entry, sending.bytes());
        cx.event(LogLevel::Warning, Kind::DeliveryFailed, why)
            .association(id)
            .message(sending.message)
            .entry(entry)
            .precedence(sending.precedence)
            .bytes(bytes);
        let seed = cx.rng.next_u64();
        cx.queue.scheduler.retry(now.mono, entry, seed);
        self.waits_for_bind(cx, entry);
    }
}
