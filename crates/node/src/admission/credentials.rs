//! Errors in the name and credentials that a peer presents.

use crate::admission::refusals::BindRefusal;
use std::net::IpAddr;
use thiserror::Error;

/// The name, address or form of credentials of a peer is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum CredentialsError {
    #[error("no such peer")]
    NoPeer,
    #[error("mta-name: {presented:?} is not peer {peer}'s {name:?}{whose}")]
    Name {
        presented: String,
        peer: String,
        name: String,
        /// Whose it is, in words.
        whose: String,
    },
    #[error("credentials: strong ones are not supported")]
    Strong,
    #[error("credentials: protected ones are not supported")]
    Protected,
    #[error("{remote} is not where peer {peer} connects from (peer.from)")]
    Origin { remote: IpAddr, peer: String },
}

impl From<CredentialsError> for BindRefusal {
    fn from(error: CredentialsError) -> BindRefusal {
        BindRefusal::Wrong(error.to_string())
    }
}
