//! Profiles of peers: what a peer of a certain kind needs, as a file of its own (`config/peers`). A peer names one and
//! has what it lacks from there.

use crate::problem::Problems;
use crate::tree::nearest;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Those that are in the program: name and text.
const BUILT_IN: [(&str, &str); 4] = [
    ("modern", include_str!("../../../config/peers/modern.toml")),
    ("stanag-4406", include_str!("../../../config/peers/stanag-4406.toml")),
    ("x400-1988", include_str!("../../../config/peers/x400-1988.toml")),
    ("x410-1984", include_str!("../../../config/peers/x410-1984.toml")),
];

/// What is one peer's alone: a profile of several cannot have it.
const OWN: [&str; 10] = [
    "name",
    "mta_name",
    "own_name",
    "password",
    "expect",
    "from",
    "clearance",
    "profile",
    "remote",
    "listen",
];

/// Longest file.
const MAX_FILE: u64 = 64 << 10;

/// Texts of profiles, by the name that a peer has.
#[derive(Default)]
pub(crate) struct Texts(BTreeMap<String, Result<String, String>>);

impl Texts {
    /// Those that the peers of a configuration name; paths are relative to `base`.
    pub(crate) fn load(text: &str, base: &Path) -> Texts {
        let (root, _) = DeTable::parse_recoverable(text);
        let mut texts = BTreeMap::new();
        if let Some(DeValue::Array(peers)) = root.get_ref().get("peer").map(Spanned::get_ref) {
            for peer in peers.iter() {
                let DeValue::Table(peer) = peer.get_ref() else { continue };
                let Some(DeValue::String(name)) = peer.get("profile").map(Spanned::get_ref) else {
                    continue;
                };
                let read = || text_of(name, base);
                texts.entry(name.to_string()).or_insert_with(read);
            }
        }
        Texts(texts)
    }

    /// Gives each peer of `root` what it lacks of its profile.
    pub(crate) fn apply<'a>(&'a self, root: &mut DeTable<'a>, problems: &mut Problems) {
        let Some(peers) = root.get_mut("peer") else { return };
        let DeValue::Array(peers) = peers.get_mut() else { return };
        for peer in peers.iter_mut() {
            let DeValue::Table(peer) = peer.get_mut() else { continue };
            let Some(key) = peer.get("profile") else { continue };
            let (at, DeValue::String(name)) = (key.span(), key.get_ref()) else { continue };
            let name = name.to_string();
            match self.0.get(&name) {
                Some(Ok(text)) => match read(text) {
                    Ok((profile, own)) => {
                        own.iter().for_each(|why| wrong(problems, &at, &name, why));
                        // Its other faults are found where its keys are read.
                        complete(peer, profile, &at);
                    }
                    Err(why) => wrong(problems, &at, &name, &why),
                },
                Some(Err(why)) => wrong(problems, &at, &name, why),
                None => {}
            }
        }
    }
}

fn wrong(problems: &mut Problems, at: &Range<usize>, name: &str, why: &str) {
    let names = BUILT_IN.map(|(name, _)| name);
    let remedy = match nearest(name, &names) {
        Some(near) => format!("did you mean {near}?"),
        None => format!(
            "write one of {}, or the path of a file, as \"peers/ours.toml\"",
            names.join(", ")
        ),
    };
    problems.error(at.clone(), format!("profile {name:?}: {why}"), "here", remedy);
}

/// One in the program, or a file.
pub(crate) fn text_of(name: &str, base: &Path) -> Result<String, String> {
    if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Ok((*text).to_owned());
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        return Err("there is no profile of this name".to_owned());
    }
    let path = base.join(name);
    let length = std::fs::metadata(&path).map_err(|error| error.to_string())?.len();
    if length > MAX_FILE {
        return Err(format!("the file is larger than {MAX_FILE} octets"));
    }
    std::fs::read_to_string(&path).map_err(|error| error.to_string())
}

/// The table of a profile without what belongs to one peer, and a text on each of that.
fn read(text: &str) -> Result<(DeTable<'_>, Vec<String>), String> {
    let line = |at: usize| 1 + text.get(..at).unwrap_or_default().matches('\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        let at = line(error.span().map_or(0, |span| span.start));
        format!("line {at}: not TOML: {}", error.message().lines().next().unwrap_or_default())
    })?;
    let mut table = table.into_inner();
    let mut own = take_own(&mut table);
    if let Some(DeValue::Table(channel)) = table.get_mut("channel").map(Spanned::get_mut) {
        own.extend(take_own(channel));
    }
    own.sort_unstable();
    let texts = own
        .into_iter()
        .map(|(at, key)| format!("line {}: {key} belongs to one peer, not to a profile", line(at)));
    Ok((table, texts.collect()))
}

/// Takes out what belongs to one peer: position and key.
fn take_own(table: &mut DeTable<'_>) -> Vec<(usize, String)> {
    let keys = table.keys().filter(|key| OWN.contains(&key.get_ref().as_ref()));
    let own: Vec<_> = keys.map(|key| (key.span().start, key.get_ref().to_string())).collect();
    for (_, key) in &own {
        table.remove(key.as_str());
    }
    own
}

/// Adds what the peer lacks; all of it is where the peer names its profile.
fn complete<'a>(peer: &mut DeTable<'a>, mut profile: DeTable<'a>, at: &Range<usize>) {
    let of_channels = profile.remove("channel").map(Spanned::into_inner);
    add(peer, profile, at);
    let Some(DeValue::Table(of_channels)) = of_channels else { return };
    let Some(channels) = peer.get_mut("channel") else { return };
    let DeValue::Array(channels) = channels.get_mut() else { return };
    for channel in channels.iter_mut() {
        if let DeValue::Table(channel) = channel.get_mut() {
            add(channel, of_channels.clone(), at);
        }
    }
}

/// Adds the keys that `table` lacks; of a table that both have, the keys inside.
fn add<'a>(table: &mut DeTable<'a>, defaults: DeTable<'a>, at: &Range<usize>) {
    for (key, mut value) in defaults {
        match (table.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut), value.get_mut()) {
            (Some(DeValue::Table(own)), DeValue::Table(more)) => {
                add(own, std::mem::take(more), at);
            }
            (Some(_), _) => {}
            (None, _) => {
                place(&mut value, at);
                table.insert(Spanned::new(at.clone(), key.into_inner()), value);
            }
        }
    }
}

/// Puts a value, and what is in it, at this place of the configuration.
fn place(value: &mut Spanned<DeValue<'_>>, at: &Range<usize>) {
    let taken = std::mem::replace(value, Spanned::new(at.clone(), DeValue::Boolean(false)));
    let mut inner = taken.into_inner();
    match &mut inner {
        DeValue::Array(items) => items.iter_mut().for_each(|item| place(item, at)),
        DeValue::Table(table) => {
            for (key, mut item) in std::mem::take(table) {
                place(&mut item, at);
                table.insert(Spanned::new(at.clone(), key.into_inner()), item);
            }
        }
        _ => {}
    }
    *value = Spanned::new(at.clone(), inner);
}
