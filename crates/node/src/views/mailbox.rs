//! One mailbox, with what its user wants.

use crate::node::Node;
use base::Now;
use engine::registered::DeliveryControls;
use node_api::api::mailbox_view::{MailboxView, RegisteredView};
use status::MailboxStatus;

impl Node {
    /// The mailbox of this canonical address; `None` where it is nobody's, and nothing is there.
    pub fn mailbox_view(&self, now: Now, address: &str) -> Option<MailboxView> {
        let status = self.status(now).mailboxes.into_iter().find(|m| m.address == address);
        let registration = self.cx.engine.registration(address);
        let is_user = self.cx.config.mailboxes.iter().any(|user| user == address);
        if status.is_none() && registration.is_none() && !is_user {
            return None;
        }
        let nothing_yet =
            || MailboxStatus { address: address.to_owned(), ..MailboxStatus::default() };
        let registered = registration.map(|registration| RegisteredView {
            redirected_to: registration.alternate.as_ref().map(|name| name.address.to_string()),
            max_content_length: registration.max_content_length,
            content_types: registration
                .content_types
                .as_ref()
                .map(|types| types.iter().map(ToString::to_string).collect()),
            holds_back: DeliveryControls::from_registration(registration)
                .map(|controls| controls.in_words())
                .unwrap_or_default(),
        });
        let number = self.cx.queue.mailbox_number(address);
        Some(MailboxView {
            status: status.unwrap_or_else(nothing_yet),
            registered: registered.unwrap_or_default(),
            controls: number.and_then(|number| self.delivery.controls_in_words(&self.cx, number)),
        })
    }
}
