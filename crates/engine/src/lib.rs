//! What an MTA does with a message: accept, trace, loop check, route, split, deliver, report.
//!
//! The engine is pure. A submission ([`Engine::submit`]) or an arrival ([`Engine::accept`])
//! becomes an [`Accepted`]: queue entries, one for each next hop, and keys to remember, which
//! [`batch`] turns into one durable change. Nothing is answered before that change is committed.
//! Later each entry's [`Record`] is transferred ([`Engine::transfer_payload`]), delivered
//! ([`Engine::delivery_argument`], then [`Engine::delivered`]), given up
//! ([`Engine::undeliverable`]) or expired ([`Engine::expire`]), which may produce reports; or its
//! peer is removed and it is rerouted ([`Engine::reroute`]).
//!
//! The content itself does not pass through the engine: an entry names a body in the store.
//!
//! A message for a distribution list waits for the list, whose expansion replaces it
//! ([`Engine::expand`]).
//!
//! Not supported, and so reported if an extension makes it critical (see [`critical`]): conversion,
//! proofs, physical delivery. A list expanded by another MTA gets the reports of its members (X.411
//! 14.3.3, reporting to the list).

pub mod arrival;
mod copies;
mod expire;
mod ids;
mod items;
pub mod journal;
pub mod lists;
mod onward;
mod outcome;
mod record;
pub mod registered;
mod report;
mod returned;
pub mod space;
mod subject;

#[cfg(test)]
mod testing;

pub use arrival::accept::keys;
pub use arrival::content::{ContentNotes, ContentState, content_type};
pub use arrival::dedupe::{REMEMBERED, arrival_keys, submission_key};
pub use arrival::prepare::Preparation;
pub use arrival::reservations::KeyReservations;
pub use arrival::{classify, critical};
pub use copies::ContentCopies;
pub use expire::{Alerts, Periods};
pub use ids::{next_epoch, numbers};
pub use items::ItemSource;
pub use onward::clearance::Clearances;
pub use onward::deliver::{Delivery, permanent, report_argument};
pub use onward::delivered::delivery_keys;
pub use onward::route::{Route, RouteTarget, RoutingTable, canonical};
pub use onward::transfer::Payload;
pub use outcome::{
    Accepted, Arrival, Concluded, NewEntry, Note, NoteKind, Seen, SubmitError, Submitted, batch,
    put_entries, put_seen,
};
pub use record::{Brief, NextHop, Record, RecordError, RecordKind};
pub use subject::TRACE_MARGIN;

use crate::lists::definition::Lists;
use base::{EntryId, PeerId, Utc};
use bytes::Bytes;
use p1::ContentLabels;
use p1::extension::Form;
use p1::names::{GlobalDomainId, MtaName, ORName};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The configuration of the engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our MTA name.
    pub mta: MtaName,
    /// Our domain.
    pub domain: GlobalDomainId,
    /// The routing table's lines.
    pub routes: Vec<Route>,
    /// Canonical addresses of the local mailboxes (see [`canonical`]).
    pub mailboxes: BTreeSet<String>,
    /// Who gets what is for addresses of this site that are nobody's, if the originator allows it
    /// (alternate-recipient-allowed, X.411 8.2.1.1.1.3).
    pub alternate_recipient: Option<ORName>,
    /// Most octets of content a peer accepts, where a limit is known.
    pub content_max: BTreeMap<PeerId, u64>,
    /// Most octets of a content that this MTA accepts: a probe of more fails.
    pub accepted_max: u64,
    /// Most octets of a content that a report of ours returns.
    pub returned_max: u64,
    /// The form of APDUs for each peer; the usual one for peers not named.
    pub forms: BTreeMap<PeerId, Form>,
    /// How long copies may wait. It also limits how old a trace time may be and still be accepted
    /// (see [`TRACE_MARGIN`]).
    pub expire: Periods,
    /// How the precedence of a message is determined.
    pub classify: classify::Policy,
    /// What peers and users are cleared for.
    pub clearances: Clearances,
    /// Number of this start of the MTA, durable and never used before.
    pub epoch: u32,
    /// Beside it in MTS identifiers, below 36^4; 0: none.
    pub salt: u32,
}

/// What is known of a message's content when its envelope is processed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Octets.
    pub length: u64,
    /// SHA-256 of the octets.
    pub digest: [u8; 32],
    /// The first octets, where [`classify::Policy::peek_content`] asks for them, at most
    /// [`p772::PEEK_OCTETS`]; may be empty.
    pub prefix: Bytes,
    /// The security labels inside it, where contents are opened ([`Clearances::open_contents`]).
    pub labels: ContentLabels,
}

/// The decisions of an MTA. See the crate's documentation.
#[derive(Clone, Debug)]
pub struct Engine {
    mta: MtaName,
    domain: GlobalDomainId,
    routes: RoutingTable,
    mailboxes: BTreeSet<String>,
    lists: Lists,
    alternate_recipient: Option<ORName>,
    /// Alternates of users, by mailbox.
    redirections: BTreeMap<String, ORName>,
    /// What users have registered, by mailbox.
    registrations: BTreeMap<String, registered::Registration>,
    content_max: BTreeMap<PeerId, u64>,
    accepted_max: u64,
    returned_max: u64,
    forms: BTreeMap<PeerId, Form>,
    expire: Periods,
    policy: classify::Policy,
    cleared: onward::clearance::Cleared,
    ids: ids::Source,
    /// Counts the changes of tables that decide the routing of recipients.
    generation: u64,
    /// How far the wall clock may be ahead.
    ahead: Duration,
}

impl Engine {
    /// An engine of this configuration.
    pub fn new(config: Config) -> Engine {
        Engine {
            ids: ids::Source::new(&config.mta, config.epoch, config.salt),
            mta: config.mta,
            domain: config.domain,
            routes: RoutingTable::new(config.routes),
            mailboxes: config.mailboxes,
            lists: Lists::default(),
            alternate_recipient: config.alternate_recipient,
            redirections: BTreeMap::new(),
            registrations: BTreeMap::new(),
            content_max: config.content_max,
            accepted_max: config.accepted_max,
            returned_max: config.returned_max,
            forms: config.forms,
            expire: config.expire,
            policy: config.classify,
            cleared: config.clearances.into(),
            generation: 0,
            ahead: Duration::ZERO,
        }
    }

    /// Identifiers of bodies given out since the start are not below this number, all earlier ones are.
    pub fn first_number(&self) -> u64 {
        self.ids.first_number()
    }

    /// Entries have numbers from here on ([`numbers::first_entry`]); without this call, in the long form.
    pub fn number_entries(&mut self, first: EntryId) {
        self.ids.entries = numbers::Numbers::from(first.0);
    }

    /// Entries given out since the start are not below this number, all earlier ones are.
    pub fn first_entry(&self) -> u64 {
        self.ids.entries.first()
    }

    /// Adds to a batch with entries what makes sure that their numbers do not come again.
    pub fn keep_numbers(&mut self, batch: &mut journal::Batch) {
        self.ids.entries.mark(batch);
    }

    /// Replaces the configuration, except name, domain and epoch, which never change. Queued
    /// entries keep their next hop.
    pub fn configure(&mut self, config: Config) {
        let Config {
            mta: _,
            domain: _,
            routes,
            mailboxes,
            alternate_recipient,
            content_max,
            accepted_max,
            returned_max,
            forms,
            expire,
            classify,
            clearances,
            epoch: _,
            salt: _,
        } = config;
        self.routes = RoutingTable::new(routes);
        self.mailboxes = mailboxes;
        self.alternate_recipient = alternate_recipient;
        self.content_max = content_max;
        self.accepted_max = accepted_max;
        self.returned_max = returned_max;
        self.forms = forms;
        self.expire = expire;
        self.policy = classify;
        self.cleared = clearances.into();
        self.generation += 1;
    }

    /// The wall clock may be ahead by this much from now on: a message deferred until a time
    /// within that is still held. Zero if the clock is trusted.
    pub fn clock_may_be_ahead(&mut self, by: Duration) {
        self.ahead = by;
    }

    /// The earliest time it may be.
    fn earliest(&self, now: Utc) -> Utc {
        let ahead = u64::try_from(self.ahead.as_micros()).unwrap_or(u64::MAX);
        Utc(now.0.saturating_sub(ahead))
    }

    /// Replaces the local mailboxes. Entries queued for a removed one stay queued.
    pub fn set_mailboxes(&mut self, mailboxes: BTreeSet<String>) {
        self.mailboxes = mailboxes;
        self.generation += 1;
    }
}
