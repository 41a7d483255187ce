//! What must hold in the end: what was acknowledged is delivered or reported, once and unaltered; nothing is left.

use super::Played;
use super::play::{Play, address_of, content};
use base::Instant;
use node::event::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use testkit::Delivered;

/// Checks what was played.
pub(super) fn check(play: &mut Play<'_>, story: bool) -> Played {
    let mut broken = std::mem::take(&mut play.database.borrow_mut().broken);
    let accepted = accepted(play, &mut broken);
    let delivered = deliveries(play, &accepted, &mut broken);
    reports(play, &accepted, &mut broken);
    if !play.is_over {
        broken.push("not all is done: something is queued, or was never answered".to_owned());
    }
    left_over(play, &mut broken);
    let count = |kind: Kind| {
        let events = play.network.sites.iter().flat_map(|site| &site.events);
        events.filter(|(_, event)| event.kind == kind).count()
    };
    let repeated = count(Kind::DuplicateDropped);
    let mut played =
        Played { broken, acknowledged: accepted.len(), delivered, repeated, ..Played::default() };
    for site in &mut play.network.sites {
        if let Some(member) = site.store.member() {
            played.gained += member.gained;
            played.doubted += member.doubted;
            played.fenced += member.fenced;
        }
    }
    played.held = play.database.borrow().holds.count;
    if story {
        played.story = show(play);
    }
    played
}

/// The identifiers of the messages that were accepted, each once.
fn accepted(play: &Play<'_>, broken: &mut Vec<String>) -> BTreeMap<String, usize> {
    let mut accepted = BTreeMap::new();
    let mut ids: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for (user, submitted) in play.submitted.iter().enumerate() {
        let u = &play.network.users[user];
        for (tag, answer) in u.answered.iter().zip(&u.answers) {
            if let Ok(id) = answer {
                accepted.insert(id.clone(), submitted[*tag]);
                ids.entry(submitted[*tag]).or_default().insert(id.clone());
            }
        }
    }
    for (number, ids) in ids.into_iter().filter(|(_, ids)| ids.len() > 1) {
        broken.push(format!("message {number} was accepted as {ids:?}"));
    }
    accepted
}

/// What each recipient took. Gives the number of copies.
fn deliveries(
    play: &Play<'_>,
    accepted: &BTreeMap<String, usize>,
    broken: &mut Vec<String>,
) -> usize {
    let mut came: BTreeMap<(usize, usize), Vec<(String, u32)>> = BTreeMap::new();
    for (user, u) in play.network.users.iter().enumerate() {
        for (delivered, (bind, _)) in u.delivered.iter().zip(&u.took) {
            let Delivered::Message { identifier, content: octets } = delivered else { continue };
            let all = play.world.messages.iter().enumerate();
            let found = all.filter(|(number, m)| *octets == content(*number, m.size));
            match found.map(|(number, _)| number).next() {
                Some(number) => {
                    came.entry((number, user)).or_default().push((identifier.clone(), *bind));
                }
                None => broken.push(format!("user {user} takes {identifier}, which is altered")),
            }
        }
    }
    let is_accepted: BTreeSet<usize> = accepted.values().copied().collect();
    for (number, message) in play.world.messages.iter().enumerate() {
        for user in &message.to {
            let copies = came.get(&(number, *user)).map_or(&[][..], Vec::as_slice);
            let ids: BTreeSet<&String> = copies.iter().map(|(id, _)| id).collect();
            let binds: BTreeSet<u32> = copies.iter().map(|(_, bind)| *bind).collect();
            if copies.is_empty() && is_accepted.contains(&number) {
                broken.push(format!("message {number} is lost for user {user}"));
            }
            // A delivery whose answer was lost comes again when the user binds again.
            if ids.len() > 1 || binds.len() < copies.len() {
                broken.push(format!("message {number} is doubled for user {user}: {copies:?}"));
            }
        }
    }
    let meant = |(number, user): &(usize, usize)| play.world.messages[*number].to.contains(user);
    for (number, user) in came.keys().filter(|key| !meant(key)) {
        broken.push(format!("message {number} came to user {user}"));
    }
    came.values().map(Vec::len).sum()
}

/// Each originator learns of each recipient who is unknown, and of all if he wants to; once each, and of no other.
fn reports(play: &Play<'_>, accepted: &BTreeMap<String, usize>, broken: &mut Vec<String>) {
    let mut came: BTreeMap<(usize, String), Vec<u32>> = BTreeMap::new();
    for (user, u) in play.network.users.iter().enumerate() {
        for ((delivered, (bind, _)), about) in u.delivered.iter().zip(&u.took).zip(&u.reported) {
            let Delivered::Report { subject, .. } = delivered else { continue };
            let about = about.clone().unwrap_or_default();
            match accepted.get(subject) {
                Some(number) if play.world.messages[*number].from == user => {
                    came.entry((*number, about)).or_default().push(*bind);
                }
                _ => broken.push(format!("user {user} gets a report on {subject}")),
            }
        }
    }
    for number in accepted.values().collect::<BTreeSet<_>>() {
        let message = &play.world.messages[*number];
        let about: Vec<_> =
            came.range((*number, String::new())..(*number + 1, String::new())).collect();
        let delivered = if message.reports { message.to.len() } else { 0 };
        let expected = usize::from(message.unknown_at.is_some()) + delivered;
        if about.len() != expected {
            broken
                .push(format!("message {number}: {expected} reports are due, and {about:?} came"));
        }
        for ((_, who), binds) in about {
            if binds.iter().collect::<BTreeSet<_>>().len() < binds.len() {
                broken.push(format!("message {number}: a report about {who} is doubled"));
            }
        }
    }
}

fn left_over(play: &Play<'_>, broken: &mut Vec<String>) {
    let database = play.database.borrow();
    if play.is_over && !database.stored.bodies.is_empty() {
        let left: Vec<u64> = database.stored.bodies.keys().map(|body| body.0).collect();
        broken.push(format!("contents {left:?} are left, and nothing is queued"));
    }
}

/// What happened, in order.
fn show(play: &mut Play<'_>) -> String {
    let mut lines: Vec<(Instant, String)> = Vec::new();
    lines.extend(play.done.iter().map(|(at, what)| (*at, format!("--- {what}"))));
    for site in 0..play.network.sites.len() {
        let name = play.name(site);
        let s = &mut play.network.sites[site];
        for (at, event) in &s.events {
            let entry = event.entry.map(|entry| format!(" entry {}", entry.0)).unwrap_or_default();
            let message = event.message.as_deref().unwrap_or_default();
            let kind = event.kind.name();
            lines.push((*at, format!("{name}: {kind}{entry} {message} {}", event.detail)));
        }
        if let Some(member) = s.store.member() {
            lines.extend(member.notes.iter().map(|(at, what)| (*at, format!("{name}: {what}"))));
        }
    }
    for (user, u) in play.network.users.iter().enumerate() {
        for (delivered, (bind, at)) in u.delivered.iter().zip(&u.took) {
            let what = match delivered {
                Delivered::Message { identifier, .. } => identifier.clone(),
                Delivered::Report { subject, delivered } => {
                    format!("a report about {subject}: {delivered}")
                }
            };
            let who = address_of(user);
            lines.push((*at, format!("{who} (user {user}, bind {bind}) takes {what}")));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    let mut story = String::new();
    for (at, line) in lines {
        let _ = writeln!(story, "{:>12.6} {line}", at.0 as f64 / 1e6);
    }
    story
}
