//! One mailbox, with what its user wants.

use crate::node::Node;
use base::Now;
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
        let number = self.cx.queue.mailbox_number(address);
        Some(MailboxView {
            status: status.unwrap_or_else(nothing_yet),
            registered: registration.map(RegisteredView::new).unwrap_or_default(),
            controls: number.and_then(|number| self.delivery.controls_in_words(&self.cx, number)),
        })
    }
}
