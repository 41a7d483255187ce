//! Decoders of addresses, messages and stored records.

pub(crate) mod address;
pub(crate) mod cms;
pub(crate) mod mailbox;
pub(crate) mod p1;
pub(crate) mod p3;
pub(crate) mod p7;
pub(crate) mod p772;
pub(crate) mod record;
pub(crate) mod recording;
