//! Distribution lists (X.402 7.3; X.411 14.3, list expansion).
//!
//! A list is expanded where its address is. A message for it waits in a queue of the list's own, as one
//! for a mailbox does; [`Engine::expand`] then replaces that copy by copies for the members, so that
//! expansion costs an arrival nothing and survives a crash. Reports about members come to the list, which
//! passes them on by its policy.

pub mod definition;
mod expansion;
mod reporting;
#[cfg(test)]
mod tests;

use crate::Engine;
use crate::lists::definition::{Compiled, List, ListError, Lists};
use crate::onward::route::{RouteTarget, canonical};
use crate::onward::split::Failure;
use crate::record::NextHop;
use crate::subject::{Carried, Subject};
use base::ber::Element;
use p1::extension::number;
use p1::history::dl_expansion_history;
use p1::names::{ORAddress, ORName};
use p1::reason::{Diagnostic, NonDeliveryReason};
use std::sync::Arc;

impl Engine {
    /// Replaces all lists.
    ///
    /// # Errors
    /// A definition is not valid. Nothing is changed.
    pub fn set_lists(&mut self, lists: &[List]) -> Result<(), ListError> {
        self.use_lists(Lists::compile(lists)?);
        Ok(())
    }

    /// The lists of now with this definition of the one with this canonical address; `None` removes it.
    /// Beyond what [`Engine::set_lists`] asks, no owner is a list.
    ///
    /// # Errors
    /// A definition is not valid.
    pub fn lists_with(&self, key: &str, list: Option<&List>) -> Result<Lists, ListError> {
        self.lists.with(key, list)
    }

    /// These are the lists from now on.
    pub fn use_lists(&mut self, lists: Lists) {
        self.lists = lists;
        self.generation += 1;
    }

    /// All lists.
    #[must_use]
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// Whether [`Engine::expand`] is for what waits for this canonical address: it is that of a list, or of
    /// one that was removed and that is nobody's now.
    #[must_use]
    pub fn expands(&self, address: &str) -> bool {
        let is_gone = || self.lists.is_removed(address) && !self.mailboxes.contains(address);
        self.is_list(address) || is_gone()
    }

    /// Whether this canonical address is that of a list here.
    #[must_use]
    pub fn is_list(&self, address: &str) -> bool {
        self.lists.get(address).is_some()
    }

    /// Whether an address could be a list's: it is of this site, and nobody's mailbox.
    ///
    /// # Errors
    /// Why it could not, in words.
    pub fn may_be_list(&self, address: &ORAddress) -> Result<(), ListError> {
        let name = canonical(address);
        if self.mailboxes.contains(&name) {
            return Err(ListError::Mailbox(name));
        }
        match self.routes.look_up(address) {
            Some(RouteTarget::Local) => Ok(()),
            _ => Err(ListError::NotHere(name)),
        }
    }

    /// The failure if this next hop is a list that must not expand the message: the originator
    /// prohibits it, or may not use the list. Who used it is the list expanded last, else the originator.
    pub(crate) fn list_refusal(&self, carried: &Carried, hop: &NextHop) -> Option<Failure> {
        let NextHop::Mailbox(address) = hop else { return None };
        let list = self.lists.get(address)?;
        let subject = carried.subject();
        let failure = |diagnostic, text: &str| {
            let reason = NonDeliveryReason::UNABLE_TO_TRANSFER;
            Some(Failure { reason, diagnostic: Some(diagnostic), text: text.to_owned() })
        };
        if is_prohibited(&subject) {
            return failure(
                Diagnostic::DL_EXPANSION_PROHIBITED,
                "the originator prohibits the expansion of lists",
            );
        }
        let user = user_of(&subject);
        if !list.lets(&user) {
            return failure(
                Diagnostic::NO_DL_SUBMIT_PERMISSION,
                "the originator may not send to this list",
            );
        }
        None
    }

    fn list_of(&self, hop: &NextHop) -> Option<Arc<Compiled>> {
        match hop {
            NextHop::Mailbox(address) => self.lists.get(address).cloned(),
            NextHop::Peer(_) => None,
        }
    }
}

/// Who sends to a list: the list expanded last, else the originator.
fn user_of(subject: &Subject<'_>) -> ORName {
    let last = dl_expansion_history(subject.extensions).ok().and_then(|mut all| all.pop());
    last.map_or_else(|| subject.originator.clone(), |list| list.name)
}

/// dl-expansion-prohibited (X.411 8.2.1.1.1.6).
fn is_prohibited(subject: &Subject<'_>) -> bool {
    let field = subject.extensions.standard(number::DL_EXPANSION_PROHIBITED);
    let value = field.and_then(|field| Element::parse(&field.value).ok()?.integer().ok());
    value == Some(1)
}
