//! The controls of users over their deliveries (X.411 8.3.1.3): what they hold back waits in the queue.
//!
//! A user has one set of controls, whichever of his associations set them. They last as long as that
//! association; then his registered default-delivery-controls are in force again, if he is bound on another.

use crate::context::Context;
use crate::delivery::Delivery;
use crate::delivery::controlled::{Controlled, deliverable};
use base::{AssociationId, EntryId, Now};
use engine::Record;
use engine::registered::{DeliveryControls, HeldBy, Registration};
use node_api::api::mailbox_view::ControlsView;
use p1::apdu::MtsApduHead;
use p1::p3::{AccessError, Controls, Waiting};
use scheduler::Item;
use std::collections::BTreeSet;

impl Delivery {
    /// A user binds: his registered default controls are in force, unless others are.
    pub(crate) fn begin_controls(&mut self, cx: &mut Context, mailbox: u32, id: AssociationId) {
        if self.controlled.contains_key(&mailbox) {
            return;
        }
        let controls =
            DeliveryControls::from_registration(&registration(cx, mailbox)).unwrap_or_default();
        if !controls.is_none() {
            let controlled = Controlled { by: id, controls, withheld: BTreeSet::new() };
            self.controlled.insert(mailbox, controlled);
        }
    }

    /// An association of a user has ended, and with it the controls that he set on it.
    pub(crate) fn end_controls(&mut self, cx: &mut Context, now: Now, id: AssociationId) {
        let mailbox = cx.associations.get(&id).and_then(|a| a.mailbox());
        let Some(mailbox) = mailbox.and_then(|name| cx.queue.mailbox_number(name)) else { return };
        let Some(controlled) = self.controlled.get(&mailbox) else { return };
        let (by, controls) = (controlled.by, controlled.controls.clone());
        let has_context = cx.associations.get(&id).is_some_and(|a| a.security_context().is_some());
        if by != id && !has_context {
            return;
        }
        self.lift(cx, now, mailbox);
        if by != id {
            let controlled = Controlled { by, controls, withheld: BTreeSet::new() };
            self.controlled.insert(mailbox, controlled);
            return;
        }
        let other = cx.associations.connections().users(mailbox).find(|other| *other != id);
        if let Some(other) = other {
            self.begin_controls(cx, mailbox, other);
        }
    }

    /// Nothing is held back any more.
    fn lift(&mut self, cx: &mut Context, now: Now, mailbox: u32) {
        let Some(controlled) = self.controlled.remove(&mailbox) else { return };
        for entry in controlled.withheld {
            // What an operator holds too stays held.
            if !cx.queue.held.contains(&entry) {
                cx.queue.scheduler.release(now.mono, entry);
            }
        }
    }

    /// delivery-control: the result, which has what is held back.
    pub(crate) fn control(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        argument: &Controls,
    ) -> Result<Waiting, AccessError> {
        let name =
            cx.associations.get(&id).and_then(|a| a.mailbox()).unwrap_or_default().to_owned();
        let mailbox = cx.queue.mailbox(&name);
        let registration = registration(cx, mailbox);
        let before = self.controlled.get(&mailbox).map(|controlled| controlled.controls.clone());
        let mut controls = before.unwrap_or_default();
        controls.update(argument, &registration)?;
        self.lift(cx, now, mailbox);
        if !controls.is_none() {
            let controlled = Controlled { by: id, controls, withheld: BTreeSet::new() };
            self.controlled.insert(mailbox, controlled);
        }
        Ok(self.hold_back(cx, now, mailbox))
    }

    /// Holds back all that could start now and may not.
    fn hold_back(&mut self, cx: &mut Context, now: Now, mailbox: u32) -> Waiting {
        let mut waiting = Waiting::default();
        let Some(controlled) = self.controlled.get_mut(&mailbox) else { return waiting };
        cx.queue.scheduler.tick(now.mono);
        for entry in cx.queue.scheduler.ready_for_mailbox(mailbox) {
            let Some(item) = cx.queue.get(entry) else { continue };
            let what = deliverable(&item, None);
            if controlled.controls.holds(&what).is_some() {
                controlled.controls.note(&what, &mut waiting);
                controlled.withhold(cx, entry);
            }
        }
        waiting
    }

    /// Starts the next delivery to a mailbox that its controls permit.
    pub(crate) fn next_permitted(
        &mut self,
        cx: &mut Context,
        now: Now,
        mailbox: u32,
    ) -> Option<EntryId> {
        if let Some(controlled) = self.controlled.get_mut(&mailbox) {
            loop {
                let first = cx.queue.scheduler.first_for_mailbox(now.mono, mailbox)?;
                let item = cx.queue.get(first)?;
                if controlled.controls.holds(&deliverable(&item, None)).is_none() {
                    break;
                }
                controlled.withhold(cx, first);
            }
        }
        cx.queue.scheduler.next_for_mailbox(now.mono, mailbox)
    }

    /// Content type and labels of what is about to be delivered are known only now: whether it waits instead.
    pub(crate) fn waits_by_envelope(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        record: &Record,
    ) -> bool {
        let Some(entry) = cx.associations.get(&id).and_then(|a| a.sending()).map(|s| s.entry)
        else {
            return false;
        };
        let (Some(item), MtsApduHead::Message(e)) = (cx.queue.get(entry), &record.head) else {
            return false;
        };
        let scheduler::Destination::Mailbox(mailbox) = item.destination else { return false };
        let what = deliverable(&item, Some(&e.content_type));
        let by_type = |Controlled { controls, .. }: &Controlled| {
            controls.look_at_types() && controls.holds(&what).is_some()
        };
        let context = cx.associations.get(&id).and_then(|a| a.security_context());
        let is_outside = context
            .is_some_and(|context| context.admits(&e.extensions, &record.content_labels).is_err());
        if !is_outside && !self.controlled.get(&mailbox).is_some_and(by_type) {
            return false;
        }
        if let Some(association) = cx.associations.get_mut(&id) {
            association.take_sending();
        }
        cx.queue.scheduler.put_back(now.mono, entry);
        let none = || Controlled {
            by: id,
            controls: DeliveryControls::default(),
            withheld: BTreeSet::new(),
        };
        self.controlled.entry(mailbox).or_insert_with(none).withhold(cx, entry);
        true
    }

    /// Why a user's controls hold this entry back, if they do.
    pub(crate) fn held_by(&self, item: &Item) -> Option<HeldBy> {
        let scheduler::Destination::Mailbox(mailbox) = item.destination else { return None };
        let controlled = self.controlled.get(&mailbox)?;
        let by = controlled.controls.holds(&deliverable(item, None));
        let late = match controlled.controls.look_at_types() {
            true => HeldBy::ContentType,
            false => HeldBy::Context,
        };
        by.or_else(|| controlled.withheld.contains(&item.id).then_some(late))
    }

    /// The same in words, with where the control comes from.
    pub(crate) fn held_in_words(&self, cx: &Context, item: &Item) -> Option<String> {
        let by = self.held_by(item)?;
        let registered = held_at_bind(cx, item) == Some(by);
        Some(format!("{by} ({})", if registered { "registered" } else { "delivery-control" }))
    }

    /// What the controls in force for a mailbox hold back, in words, and where they come from.
    pub(crate) fn controls_in_words(&self, cx: &Context, mailbox: u32) -> Option<ControlsView> {
        let controlled = self.controlled.get(&mailbox)?;
        let registered = DeliveryControls::from_registration(&registration(cx, mailbox));
        Some(ControlsView {
            registered: registered.is_ok_and(|registered| registered == controlled.controls),
            holds_back: controlled.controls.in_words(),
        })
    }

    /// How many messages of a mailbox its user holds back, by precedence.
    pub(crate) fn withheld<'a>(
        &'a self,
        cx: &'a Context,
        mailbox: u32,
    ) -> impl Iterator<Item = base::Precedence> + 'a {
        let controlled = self.controlled.get(&mailbox);
        let entries = controlled.into_iter().flat_map(|controlled| &controlled.withheld);
        let entries = entries.filter(|entry| !cx.queue.held.contains(entry));
        entries.filter_map(|entry| Some(cx.queue.get(*entry)?.precedence))
    }
}

/// Which of the controls that its user has registered will hold an entry back when he binds.
pub(crate) fn held_at_bind(cx: &Context, item: &Item) -> Option<HeldBy> {
    let scheduler::Destination::Mailbox(mailbox) = item.destination else { return None };
    let controls = DeliveryControls::from_registration(&registration(cx, mailbox)).ok()?;
    controls.holds(&deliverable(item, None))
}

/// What the user of this mailbox has registered.
fn registration(cx: &Context, mailbox: u32) -> Registration {
    let name = cx.queue.mailbox_name(mailbox).unwrap_or_default();
    cx.engine.registration(name).cloned().unwrap_or_default()
}
