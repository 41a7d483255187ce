//! What happened in a world, as a time line.

use crate::play::Play;
use crate::world::SITES;
use base::Instant;
use std::fmt::Write as _;
use testkit::{Delivered, Seen};

/// The time line of a world that was played.
pub(crate) fn story(play: &Play<'_>) -> String {
    let mut lines: Vec<(Instant, String)> = Vec::new();
    lines.extend(play.done.iter().map(|(at, what)| (*at, format!("--- {what}"))));
    for message in &play.world.messages {
        let (who, number) = (play.world.user_name(message.from), message.number);
        lines.push((Instant(0) + message.at, format!("{who} submits message {number}")));
    }
    for (name, site) in SITES.iter().zip(&play.network.sites) {
        lines.extend(site.deaths.iter().map(|at| (*at, format!("{name}: the process has ended"))));
        for (at, event) in &site.events {
            lines.push((*at, format!("{name}: {}", in_words(event))));
        }
    }
    for (number, user) in play.network.users.iter().enumerate() {
        let who = play.world.user_name(number);
        for ((delivered, (bind, at)), about) in
            user.delivered.iter().zip(&user.took).zip(&user.reported)
        {
            let what = match delivered {
                Delivered::Message { identifier, content } => {
                    format!("message {identifier}, {} octets", content.len())
                }
                Delivered::Report { subject, delivered } => {
                    let about = about.as_deref().unwrap_or_default();
                    format!("report about {subject}, {about}: delivered {delivered}")
                }
            };
            lines.push((*at, format!("{who} (bind {bind}) takes {what}")));
        }
    }
    for (number, user) in play.network.users.iter().enumerate() {
        let who = play.world.user_name(number);
        let journal = user.reader.iter().flat_map(|reader| &reader.journal);
        lines.extend(journal.map(|(bind, at, seen)| {
            (*at, format!("{who} (bind {bind} over P7) {}", looked(seen)))
        }));
    }
    lines.sort_by_key(|(at, _)| *at);
    let mut story = String::new();
    for (at, line) in lines {
        let _ = writeln!(story, "{:>12.6} {line}", at.0 as f64 / 1e6);
    }
    story
}

/// What a reader saw.
fn looked(seen: &Seen) -> String {
    let numbers =
        |items: &[testkit::Row]| -> Vec<u32> { items.iter().map(|row| row.number).collect() };
    match seen {
        Seen::Bound => "is bound".to_owned(),
        Seen::Listed { from, next: None, items } => {
            format!("lists from {from} on: {:?}", numbers(items))
        }
        Seen::Listed { from, next: Some(next), items } => {
            format!("lists from {from} on: {:?}, next {next}", numbers(items))
        }
        Seen::Counted { count, .. } => format!("counts {count} items"),
        Seen::Fetched { row, .. } => format!("fetches item {}", row.number),
        Seen::Deleted(items) => format!("deleted {items:?}"),
        Seen::Doubted(items) => format!("is not answered whether {items:?} are deleted"),
        Seen::Kept(items, code) => format!("cannot delete {items:?}: error {code}"),
        Seen::NotFetched(item, code) => format!("cannot fetch item {item}: error {code}"),
        Seen::Refused(code) => format!("cannot list: error {code}"),
        Seen::Unreadable(what) => format!("cannot read {what}"),
        Seen::GaveUp => "gives up".to_owned(),
    }
}

fn in_words(event: &node::event::LogEvent) -> String {
    let mut words = event.kind.name().to_owned();
    let mut add = |what: Option<String>| words.extend(what.map(|what| format!(" {what}")));
    add(event.entry.map(|entry| format!("entry {}", entry.0)));
    add(event.association.map(|association| format!("association {}", association.0)));
    add(event.precedence.map(|precedence| precedence.to_string()));
    add(event.message.clone());
    add(event.related.as_ref().map(|related| format!("({related})")));
    add((!event.detail.is_empty()).then(|| format!("- {}", event.detail)));
    words
}
