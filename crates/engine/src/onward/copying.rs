//! The copies of one message: which recipients share one, and whom else it names.
//!
//! A copy names the recipients that it is for and, with responsibility 0, the others (X.411 14.3.6).
//! There are exceptions, because a name in many copies costs its length so many times:
//!
//! * A copy for a mailbox names the others only if they are disclosed, and if all names in all such
//!   copies are at most [`MAX_DISCLOSED`] octets.
//! * The copies that a list makes name no other members of the list: they were not specified by the
//!   originator (X.411 8.3.1.1.1, other-recipient-names), and each name would be in every copy. They have
//!   at most [`MAX_EXPANDED_COPY`] octets each: a list of thousands becomes several copies for one peer.
//! * Redirections make fields longer than they arrived. Where a copy would be longer than [`MAX_COPY`],
//!   it is divided and names no others.

use crate::Engine;
use crate::onward::split::Way;
use crate::outcome::{Note, NoteKind};
use crate::record::NextHop;
use crate::subject::Carried;
use base::ber::Writer;
use base::steps::step;
use p1::apdu::{MtsApduHead, encode_envelope};
use p1::envelope::PerRecipientFields;
use p1::extension::number;
use p1::flags::PerMessageIndicators;
use p1::trace::OtherActions;
use std::collections::{BTreeMap, BTreeSet};

/// Octets of the recipients' fields in one copy; half of what the store takes as one record.
const MAX_COPY: usize = 8 << 20;

/// Octets of an envelope that a list makes; half of what an MTA takes by default.
pub(crate) const MAX_EXPANDED_COPY: usize = 512 << 10;

/// Octets of other recipients' names in all copies of a message for mailboxes here.
pub(crate) const MAX_DISCLOSED: usize = 4 << 20;

/// What a recipient's fields have beside names and extensions, octets.
const OTHER_FIELDS: usize = 32;

/// A copy that is to be made.
pub(crate) struct PlannedCopy {
    pub way: Way,
    /// Its recipients, by index.
    pub mine: Vec<usize>,
    names_others: bool,
}

/// The copies of a message or probe.
pub(crate) struct Plan {
    pub copies: Vec<PlannedCopy>,
    /// Whom copies of an expanded message name beside their own recipients; `None` for one that no list
    /// expanded, whose copies name all others.
    others: Option<Vec<usize>>,
    /// Octets of all copies' envelopes, about; 0 if they are not bounded here.
    pub octets: usize,
}

/// Plans the copies for these ways.
pub(crate) fn plan(
    carried: &Carried,
    ways: BTreeMap<Way, Vec<usize>>,
    notes: &mut Vec<Note>,
) -> Plan {
    let recipients = carried.subject().recipients;
    let here = ways.keys().filter(|way| matches!(way.hop, NextHop::Mailbox(_))).count();
    let discloses = discloses(carried);
    let is_expanded = is_expanded(carried);
    let others = is_expanded.then(|| originally_specified(recipients));
    let is_bounded =
        is_expanded || (discloses && here > 1) || ways.keys().any(|way| way.redirected);
    if !is_bounded {
        let copy = |(way, mine): (Way, _)| {
            let names_others = discloses || matches!(way.hop, NextHop::Peer(_));
            PlannedCopy { way, mine, names_others }
        };
        return Plan { copies: ways.into_iter().map(copy).collect(), others, octets: 0 };
    }
    let weights: Vec<usize> = recipients.iter().map(weight).collect();
    let of = |indices: &[usize]| indices.iter().filter_map(|i| weights.get(*i)).sum::<usize>();
    let named = others.as_ref().map_or_else(|| weights.iter().sum(), |others| of(others));
    let names_here = discloses && named.saturating_mul(here) <= MAX_DISCLOSED;
    if discloses && here > 0 && !names_here {
        notes.push(not_disclosed(here, named));
    }
    let common = fields_for_all(carried);
    let most = if is_expanded { MAX_EXPANDED_COPY } else { MAX_COPY };
    let mut plan = Plan { copies: Vec::new(), others, octets: 0 };
    for (way, mine) in ways {
        let names_others = match way.hop {
            NextHop::Mailbox(_) => names_here,
            NextHop::Peer(_) if is_expanded => named <= most / 2,
            NextHop::Peer(_) => named <= most,
        };
        let fixed = common + if names_others { named } else { 0 };
        // The names of all include its own.
        let room = if names_others && !is_expanded { usize::MAX } else { most };
        let mut octets = fixed;
        let mut part = Vec::new();
        let mut put = |part: Vec<usize>, octets: usize| {
            plan.octets = plan.octets.saturating_add(octets);
            plan.copies.push(PlannedCopy { way: way.clone(), mine: part, names_others });
        };
        for index in mine {
            let its = weights.get(index).copied().unwrap_or_default();
            if !part.is_empty() && octets.saturating_add(its) > room {
                put(std::mem::take(&mut part), octets);
                octets = fixed;
            }
            octets = octets.saturating_add(its);
            part.push(index);
        }
        put(part, octets);
    }
    plan
}

impl Engine {
    /// The envelope of a planned copy. It notes a redirection in its traces.
    pub(crate) fn head_of(
        &self,
        carried: &Carried,
        plan: &Plan,
        copy: &PlannedCopy,
    ) -> MtsApduHead {
        let mut made = copy_for(carried, plan, copy);
        if copy.way.redirected {
            let (trace, extensions) = made.traces_mut();
            self.note_action(OtherActions::REDIRECTED, trace, extensions);
        }
        made.into_head()
    }
}

/// A copy with responsibility for its recipients only.
///
/// Recipients that are not named are not even read: otherwise a message for a thousand local users takes
/// seconds.
fn copy_for(carried: &Carried, plan: &Plan, copy: &PlannedCopy) -> Carried {
    let all = carried.subject().recipients;
    let with = |recipient: &PerRecipientFields, responsible| {
        step();
        let indicators = recipient.indicators.with_responsibility(responsible);
        PerRecipientFields { indicators, ..recipient.clone() }
    };
    let own = |index: usize| copy.mine.binary_search(&index).is_ok();
    let recipients = match &plan.others {
        _ if !copy.names_others => {
            copy.mine.iter().filter_map(|index| all.get(*index)).map(|r| with(r, true)).collect()
        }
        Some(others) => {
            let mut named = [&others[..], &copy.mine].concat();
            named.sort_unstable();
            named
                .iter()
                .filter_map(|i| Some((*i, all.get(*i)?)))
                .map(|(i, r)| with(r, own(i)))
                .collect()
        }
        None => all.iter().enumerate().map(|(index, r)| with(r, own(index))).collect(),
    };
    carried.with_recipients(recipients)
}

fn discloses(carried: &Carried) -> bool {
    let disclosed = PerMessageIndicators::DISCLOSURE_OF_OTHER_RECIPIENTS;
    matches!(carried, Carried::Message(_)) && carried.indicators().contains(disclosed)
}

fn is_expanded(carried: &Carried) -> bool {
    let history = number::DL_EXPANSION_HISTORY;
    matches!(carried, Carried::Message(_))
        && carried.subject().extensions.standard(history).is_some()
}

/// Recipients of an expanded message that are not members of its list: others are responsible for them, and
/// their numbers are not the list's.
fn originally_specified(recipients: &[PerRecipientFields]) -> Vec<usize> {
    let ours = recipients.iter().filter(|r| r.indicators.responsible());
    let numbers: BTreeSet<u32> = ours.map(|r| r.number).collect();
    let others = recipients.iter().enumerate();
    others.filter(|(_, r)| !numbers.contains(&r.number)).map(|(index, _)| index).collect()
}

/// Octets of a recipient's fields, about.
fn weight(recipient: &PerRecipientFields) -> usize {
    let mut name = Writer::new();
    recipient.recipient.write(&mut name);
    let of_field = |field: &p1::extension::ExtensionField| {
        OTHER_FIELDS + field.raw.as_ref().map_or(0, |raw| raw.len()).max(field.value.len())
    };
    let extensions: usize = recipient.extensions.0.iter().map(of_field).sum();
    let unknown: usize = recipient.unknown.iter().map(|element| element.len()).sum();
    OTHER_FIELDS + name.into_vec().len() + extensions + unknown
}

/// Octets of the fields that all copies have.
fn fields_for_all(carried: &Carried) -> usize {
    match carried.with_recipients(Vec::new()) {
        Carried::Message(e) => encode_envelope(&e).len(),
        Carried::Probe(_) => 0,
    }
}

fn not_disclosed(here: usize, named: usize) -> Note {
    let text = format!(
        "its copies for {here} mailboxes here do not name the other recipients: {named} octets of names \
         in each are more than {MAX_DISCLOSED} in all"
    );
    Note::new(NoteKind::NotDisclosed, text)
}
