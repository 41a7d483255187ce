//! The durable queue and the mailboxes: redb and large-body files behind a small trait.
