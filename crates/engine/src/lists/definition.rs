//! The definition of a list, as an operator gives it and the store keeps it.

use crate::onward::route::canonical;
use base::ber::Error;
use p1::names::{AddressError, Attribute, ORAddress, ORName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most lists of a site.
pub const MAX_LISTS: usize = 1_000;

/// Most members of a list. One with more is divided: a list may be a member.
pub const MAX_MEMBERS: usize = 5_000;

/// Most members of all lists together.
pub const MAX_ALL_MEMBERS: usize = 50_000;

/// Most entries of a submit permission.
pub const MAX_PERMITTED: usize = 1_000;

/// Longest address in a definition, octets.
const MAX_ADDRESS: usize = 1_024;

/// A distribution list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// Its O/R address, which is of this site.
    pub address: String,
    /// The O/R addresses of its members: users or lists, here or elsewhere.
    pub members: Vec<String>,
    /// Who may send to it.
    #[serde(default)]
    pub submit: SubmitPermission,
    /// Who gets the reports about its members.
    #[serde(default)]
    pub reports: ReportPolicy,
    /// The O/R address of its owner.
    #[serde(default)]
    pub owner: Option<String>,
}

/// Who may send to a list (X.402, DL submit permission).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubmitPermission {
    /// Anybody.
    #[default]
    Anyone,
    /// Its members.
    Members,
    /// Who has all attributes of one of these addresses.
    Only(Vec<String>),
}

/// Who gets the reports about the members (X.411 14.3, the list's reporting policy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportPolicy {
    /// The originator, as if he had named the members.
    #[default]
    Originator,
    /// The owner gets non-delivery reports; the originator one report, of the expansion, if he asked for
    /// a delivery report.
    Owner,
    /// Both.
    Both,
    /// Nobody; the originator as for the owner.
    Nobody,
}

impl ReportPolicy {
    /// Whether the originator gets the reports about members.
    pub(crate) fn reaches_originator(self) -> bool {
        matches!(self, ReportPolicy::Originator | ReportPolicy::Both)
    }

    /// Whether the owner does.
    pub(crate) fn reaches_owner(self) -> bool {
        matches!(self, ReportPolicy::Owner | ReportPolicy::Both)
    }
}

/// A definition that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// An address of it is not valid.
    #[error("{0:?} is not an O/R address: {1}")]
    Address(String, AddressError),
    /// An address has attributes beyond their bounds.
    #[error("{0:?} is not an O/R address: {1}")]
    Bounds(String, Error),
    /// An address is too long.
    #[error("an address has more than {MAX_ADDRESS} octets")]
    Long,
    /// It has no members.
    #[error("list {0} has no member")]
    Empty(String),
    /// It has too many members.
    #[error("list {0} has more than {MAX_MEMBERS} members: divide it, a list may be a member")]
    Members(String),
    /// All of them have too many.
    #[error("all lists together have more than {MAX_ALL_MEMBERS} members")]
    AllMembers,
    /// Its permission is too long.
    #[error("list {0} names more than {MAX_PERMITTED} who may send to it")]
    Permitted(String),
    /// There are too many.
    #[error("more than {MAX_LISTS} lists")]
    Lists,
    /// Two have one address.
    #[error("there are two lists {0}")]
    Twice(String),
    /// Its reports go to the owner, and it has none.
    #[error("list {0} has reports for its owner, and no owner: write --owner ADDRESS")]
    NoOwner(String),
    /// Its owner is a list: it would pass reports to a list, which may pass them back.
    #[error("the owner of list {0} is list {1}: an owner is a user")]
    OwnerIsList(String, String),
    /// Its address is that of a mailbox.
    #[error("{0} is the address of a user: a list has an address of its own")]
    Mailbox(String),
    /// Its address has no route that leads here.
    #[error("{0} is not an address of this MTA: its route must lead here (via = \"local\")")]
    NotHere(String),
}

/// A definition with its addresses read.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub name: ORName,
    /// Canonical addresses, each once, with the names as they were given.
    pub members: BTreeMap<String, ORName>,
    pub owner: Option<ORName>,
    pub reports: ReportPolicy,
    submit: Permission,
}

#[derive(Clone, Debug)]
enum Permission {
    Anyone,
    Members,
    Only(Vec<Vec<(Attribute, String)>>),
}

impl Compiled {
    fn new(list: &List) -> Result<(String, Compiled), ListError> {
        let name = read(&list.address)?;
        let key = canonical(&name.address);
        match list.members.len() {
            0 => return Err(ListError::Empty(list.address.clone())),
            count if count > MAX_MEMBERS => return Err(ListError::Members(list.address.clone())),
            _ => {}
        }
        let members = list.members.iter().map(|member| {
            let name = read(member)?;
            Ok((canonical(&name.address), name))
        });
        let submit = match &list.submit {
            SubmitPermission::Anyone => Permission::Anyone,
            SubmitPermission::Members => Permission::Members,
            SubmitPermission::Only(all) if all.len() > MAX_PERMITTED => {
                return Err(ListError::Permitted(list.address.clone()));
            }
            SubmitPermission::Only(all) => Permission::Only(
                all.iter()
                    .map(|text| Ok(read(text)?.address.attributes()))
                    .collect::<Result<_, ListError>>()?,
            ),
        };
        let owner = list.owner.as_deref().map(read).transpose()?;
        if owner.is_none() && list.reports.reaches_owner() {
            return Err(ListError::NoOwner(list.address.clone()));
        }
        let members = members.collect::<Result<_, ListError>>()?;
        Ok((key, Compiled { name, members, owner, reports: list.reports, submit }))
    }

    /// Whether somebody may send to it.
    pub(crate) fn lets(&self, user: &ORName) -> bool {
        match &self.submit {
            Permission::Anyone => true,
            Permission::Members => self.members.contains_key(&canonical(&user.address)),
            Permission::Only(all) => {
                let his = user.address.attributes();
                let has = |wanted: &(Attribute, String)| his.binary_search(wanted).is_ok();
                all.iter().any(|wanted| wanted.iter().all(has))
            }
        }
    }
}

fn read(text: &str) -> Result<ORName, ListError> {
    if text.len() > MAX_ADDRESS {
        return Err(ListError::Long);
    }
    let address: ORAddress =
        text.parse().map_err(|error| ListError::Address(text.to_owned(), error))?;
    Ok(ORName::from(address))
}

/// All lists, read.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// By canonical address.
    all: BTreeMap<String, Arc<Compiled>>,
    /// Canonical addresses of lists that are gone, the last one last. Something may wait for them still.
    removed: Vec<String>,
}

impl Lists {
    pub(crate) fn compile(lists: &[List]) -> Result<Lists, ListError> {
        let mut all = Lists::default();
        for list in lists {
            let (key, compiled) = Compiled::new(list)?;
            if all.all.insert(key, Arc::new(compiled)).is_some() {
                return Err(ListError::Twice(list.address.clone()));
            }
        }
        all.check_numbers()?;
        Ok(all)
    }

    /// These with another definition, or none, of one list. Only that one is read.
    pub(crate) fn with(&self, key: &str, list: Option<&List>) -> Result<Lists, ListError> {
        let mut new = self.clone();
        new.removed.retain(|removed| removed != key);
        match list.map(Compiled::new).transpose()? {
            Some((_, compiled)) => _ = new.all.insert(key.to_owned(), Arc::new(compiled)),
            None => {
                new.all.remove(key);
                new.removed.push(key.to_owned());
                let surplus = new.removed.len().saturating_sub(MAX_LISTS);
                new.removed.drain(..surplus);
            }
        }
        new.check_numbers()?;
        new.check_owners()?;
        Ok(new)
    }

    fn check_numbers(&self) -> Result<(), ListError> {
        if self.all.len() > MAX_LISTS {
            return Err(ListError::Lists);
        }
        match self.all.values().map(|list| list.members.len()).sum::<usize>() > MAX_ALL_MEMBERS {
            true => Err(ListError::AllMembers),
            false => Ok(()),
        }
    }

    /// No owner is a list.
    fn check_owners(&self) -> Result<(), ListError> {
        for list in self.all.values() {
            let owner = list.owner.as_ref().map(|owner| canonical(&owner.address));
            if let Some(owner) = owner.and_then(|owner| self.all.get(&owner)) {
                let (list, owner) = (list.name.to_string(), owner.name.to_string());
                return Err(ListError::OwnerIsList(list, owner));
            }
        }
        Ok(())
    }

    /// Canonical addresses of lists that were removed: what waits for them is routed again.
    #[must_use]
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// The same with these, which were removed before the start.
    #[must_use]
    pub fn with_removed(mut self, mut removed: Vec<String>) -> Lists {
        removed.retain(|key| !self.all.contains_key(key));
        removed.truncate(MAX_LISTS);
        self.removed = removed;
        self
    }

    pub(crate) fn is_removed(&self, address: &str) -> bool {
        self.removed.iter().any(|removed| removed == address)
    }

    pub(crate) fn get(&self, address: &str) -> Option<&Arc<Compiled>> {
        self.all.get(address)
    }
}
