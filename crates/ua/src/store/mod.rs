//! A user of a message store (X.413): a P7 association over one TCP connection, in the context of 1988.
//!
//! [`Store::bind`] opens it. Then one operation at a time: [`Store::list`] and [`Store::next_page`],
//! [`Store::open`] and [`Store::fetch`], [`Store::delete`], [`Store::summarize`], [`Store::register_alert`] and
//! others, [`Store::submit`], [`Store::probe`] and [`Store::cancel`]. Alerts arrive between any two of them, and
//! while [`Store::alert`] waits; none is lost.
//!
//! Dropping the future of an operation abandons it: its answer is skipped when it comes, and the association
//! continues, unless a content was being submitted, which ends it.
//!
//! ```no_run
//! use ua::store::{Find, Order, Pages, Store, StoreError};
//!
//! # async fn f(login: ua::Login) -> Result<(), StoreError> {
//! let mut store = Store::bind(&login, None, ua::Clock::start(), ua::Interrupted::default()).await?;
//! let mut pages = Pages::new(&Find::new(), Order::Precedence, 50);
//! for entry in store.next_page(&mut pages).await? {
//!     println!("{} {:?} {:?}", entry.number, entry.precedence, entry.subject);
//!     let mut content = Vec::new();
//!     store.fetch(entry.number, &mut content, 10 << 20).await?;
//! }
//! store.unbind().await?;
//! # Ok(())
//! # }
//! ```

mod alert;
mod call;
mod entry;
mod error;
mod fetch;
mod find;
mod forward;
mod operations;
mod pages;
mod submission;

pub use alert::Alert;
pub use entry::{Entry, Kind, Status};
pub use error::{BadAnswer, BindRefused, StoreError};
pub use fetch::{Fetched, delivery_envelope};
pub use find::Find;
pub use operations::{Counted, Summary};
pub use p7::{Filter, MsError, Selector};
pub use pages::{Listed, Order, Pages};
pub use submission::NotSubmitted;

use crate::clock::Clock;
use crate::connection::{Connection, Target, reference};
use crate::interrupt::Interrupted;
use crate::login::{Edition, Login};
use base::ber::{Element, Oid, Writer};
use bytes::Bytes;
use call::Incoming;
use osi::api::{Indication, RefuseReason, Selectors};
use osi::profiles;
use p1::SecurityLabel;
use p1::bind::Credentials;
use p1::names::ORName;
use p7::bind::BindProblem;
use p7::{MsBindArgument, MsBindError, MsBindResult};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

/// A user bound to its mailbox.
pub struct Store {
    connection: Connection,
    name: ORName,
    edition: Edition,
    label: Option<SecurityLabel>,
    bound: MsBindResult,
    /// The last invocation.
    invoked: i64,
    /// Invocations without an answer: the one in progress, and those that were abandoned.
    unanswered: BTreeSet<i64>,
    /// The APDU that is arriving.
    incoming: Incoming,
    alerts: VecDeque<Alert>,
}

impl Store {
    /// Connects, opens the association and binds. Setting `interrupted` ends every later wait of this user.
    /// `pcap` is a file for a capture of the connection, which has the password and all contents in it.
    ///
    /// # Errors
    /// No connection, [`StoreError::Refused`], or what ended the association.
    pub async fn bind(
        login: &Login,
        pcap: Option<&Path>,
        clock: Clock,
        interrupted: Interrupted,
    ) -> Result<Store, StoreError> {
        let credentials = Credentials::Simple(login.password.clone());
        let argument = MsBindArgument {
            ms_configuration_request: true,
            ..MsBindArgument::new(login.user.clone(), credentials.clone())
        };
        let mut w = Writer::new();
        argument.write(&mut w);
        let profile = match login.edition {
            Edition::Of1988 => profiles::p7,
            Edition::Of1994 => profiles::p7_94,
        };
        let mut config = profile(Selectors::default(), login.called.clone(), reference());
        config.operation_timeout = login.answer_timeout;
        let target = Target { login, protocol: "P7", config, bind: w.into_vec().into() };
        let connection = Connection::open(target, pcap, clock, interrupted).await?;
        let mut store = Store {
            connection,
            name: login.user.clone(),
            edition: login.edition,
            label: login.label.clone(),
            bound: MsBindResult::new(credentials),
            invoked: 0,
            unanswered: BTreeSet::new(),
            incoming: Incoming::None,
            alerts: VecDeque::new(),
        };
        store.bound = store.await_bind().await?;
        Ok(store)
    }

    async fn await_bind(&mut self) -> Result<MsBindResult, StoreError> {
        match self.connection.next(None).await? {
            Some(Indication::Opened { bind, .. }) => {
                let element = Element::parse(&bind).map_err(StoreError::malformed("bind"))?;
                MsBindResult::read(&element).map_err(StoreError::malformed("bind"))
            }
            Some(Indication::Refused { reason, bind_error, detail }) => {
                Err(refused(reason, bind_error.as_ref(), detail).into())
            }
            None => Err(StoreError::Interrupted),
            other => Err(StoreError::Lost(self.connection.why_not_opened(other.as_ref()))),
        }
    }

    /// Our own name, as bound.
    pub fn name(&self) -> &ORName {
        &self.name
    }

    /// Whether an alert was raised while no association was there to take it, since the last one ended.
    pub fn was_alerted(&self) -> bool {
        self.bound.alert_indication
    }

    /// The store's bind result: what it states of itself.
    pub fn bound(&self) -> &MsBindResult {
        &self.bound
    }

    /// Whether the connection is closed or accepts no more output: every operation would end with
    /// [`StoreError::Lost`].
    pub fn is_over(&self) -> bool {
        self.connection.is_over()
    }

    /// Whether the store has attributes of this type, as far as it states which it has.
    pub(super) fn has(&self, attribute_type: &Oid) -> bool {
        let stated = &self.bound.available_attribute_types;
        stated.is_empty() || stated.contains(attribute_type)
    }

    /// Unbinds in order; the wait for a store that does not answer is short. Alerts that were not taken are lost.
    /// While an abandoned operation is without an answer, the association is aborted instead.
    ///
    /// # Errors
    /// The association ended otherwise, or the capture cannot be written.
    pub async fn unbind(self) -> Result<(), StoreError> {
        if !self.unanswered.is_empty() {
            self.connection.abort().await;
            return Ok(());
        }
        Ok(self.connection.unbind().await?)
    }

    /// Aborts the association, so that the store knows that the end is intended.
    pub async fn abort(self) {
        self.connection.abort().await;
    }
}

fn refused(reason: RefuseReason, error: Option<&Bytes>, detail: String) -> BindRefused {
    let error = error.and_then(|octets| Element::parse(octets).ok());
    let error = error.and_then(|element| MsBindError::read(&element).ok());
    match error.as_ref().map(|error| (error.problem(), error)) {
        Some((BindProblem::AUTHENTICATION_ERROR, _)) => BindRefused::Credentials,
        Some((BindProblem::UNABLE_TO_ESTABLISH_ASSOCIATION, _)) => BindRefused::Busy,
        Some((BindProblem::UNACCEPTABLE_SECURITY_CONTEXT, _)) => BindRefused::SecurityContext,
        Some((_, error)) => BindRefused::Other(error.to_string()),
        None if reason == RefuseReason::Busy => BindRefused::Busy,
        None => BindRefused::Other(detail),
    }
}
