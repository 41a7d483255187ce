//! Each key of a peer and of its channels with its value and where that comes from: the configuration, the profile, or
//! the program.

use crate::profile;
use crate::section::channel;
use serde::Serialize;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys of a peer, and what holds without them.
const OF_PEER: [(&str, &str); 26] = [
    ("name", "-"),
    ("mta_name", "-"),
    ("own_name", "name of [mta]"),
    ("profile", "modern"),
    ("mode", "normal"),
    ("application_protocol", "12, in X.410 mode"),
    ("byte_swapped", "false, in X.410 mode"),
    ("extensions", "modern"),
    ("common_name", "none, with extensions of 1984"),
    ("qualifier", "private, with extensions of modern; else omit"),
    ("explicit_defaults", "true"),
    ("release", "release"),
    ("credentials", "ia5"),
    ("password", "-"),
    ("expect", "-"),
    ("from", "anywhere"),
    ("tsel", "none is called"),
    ("ssel", "none is called"),
    ("psel", "none is called"),
    ("own_tsel", "any is taken"),
    ("own_ssel", "any is taken"),
    ("own_psel", "any is taken"),
    ("tpdu_size", "not stated: 65531"),
    ("content_max", "any length"),
    ("resume", "initiator"),
    ("clearance", "none"),
];

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResolvedKey {
    /// `peer`, or the channel's name.
    pub on: String,
    /// The key; `rts.window` is one inside a table.
    pub key: String,
    /// The value as the file has it, or in words.
    pub value: String,
    /// `peer`, `channel`, `profile NAME` or `default`.
    pub from: String,
}

/// A text and a table of it.
struct Source<'a> {
    text: &'a str,
    table: Option<&'a DeTable<'a>>,
    name: String,
}

impl Source<'_> {
    /// The value of a key, or of one in a table under it.
    fn value(&self, key: &str) -> Option<String> {
        let table = self.table?;
        let (first, inner) = key.split_once('.').unwrap_or((key, ""));
        let mut value = table.get(first)?;
        if !inner.is_empty() {
            value = value.get_ref().as_table()?.get(inner)?;
        }
        if matches!(key, "password" | "expect") && value.get_ref().is_str() {
            return Some("not shown".to_owned());
        }
        let words = self.text.get(value.span())?.split_whitespace();
        Some(words.collect::<Vec<_>>().join(" "))
    }
}

/// All keys of a peer of a configuration that is valid.
///
/// # Errors
/// The file or the profile cannot be read, or there is no such peer.
pub fn resolve(path: &Path, peer: &str) -> Result<Vec<ResolvedKey>, String> {
    let text = crate::read_text(path).map_err(|error| error.to_string())?;
    resolve_text(&text, path.parent().unwrap_or(Path::new(".")), peer)
}

fn resolve_text(text: &str, base: &Path, peer: &str) -> Result<Vec<ResolvedKey>, String> {
    let root = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
    let peers = root.get_ref().get("peer").and_then(|peers| peers.get_ref().as_array());
    let tables = peers.into_iter().flat_map(|all| all.iter());
    let tables = tables.filter_map(|table| table.get_ref().as_table());
    let word = |table: &DeTable<'_>, key: &str| {
        table.get(key).and_then(|value| value.get_ref().as_str()).map(str::to_owned)
    };
    let all: Vec<_> = tables.collect();
    let found = all.iter().find(|table| word(table, "name").as_deref() == Some(peer));
    let Some(table) = found else {
        let names: Vec<String> = all.iter().filter_map(|table| word(table, "name")).collect();
        return Err(format!("there is no peer {peer:?}: {}", names.join(", ")));
    };
    let profile = word(table, "profile").unwrap_or_else(|| "modern".to_owned());
    let of_profile = profile::text_of(&profile, base)?;
    let parsed = DeTable::parse(&of_profile).map_err(|error| error.message().to_owned())?;
    let name = format!("profile {profile}");
    let shared = Source { text: &of_profile, table: Some(parsed.get_ref()), name: name.clone() };
    let own = Source { text, table: Some(table), name: "peer".to_owned() };
    let defaults = OF_PEER.iter().map(|(key, value)| (*key, (*value).to_owned()));
    let aborts = ("message_aborts", node::config::MESSAGE_ABORTS.to_string());
    let mut keys = rows("peer", defaults.chain([aborts]), [&own, &shared]);
    let of_channels = parsed.get_ref().get("channel").and_then(|c| c.get_ref().as_table());
    let shared = Source { text: &of_profile, table: of_channels, name };
    let channels = table.get("channel").and_then(|channels| channels.get_ref().as_array());
    for channel in channels.into_iter().flat_map(|all| all.iter()).map(Spanned::get_ref) {
        let DeValue::Table(table) = channel else { continue };
        let own = Source { text, table: Some(table), name: "channel".to_owned() };
        let on = word(table, "name").unwrap_or_default();
        keys.extend(rows(&on, channel::defaults().into_iter(), [&own, &shared]));
    }
    Ok(keys)
}

/// A row for each key: the first that has it, else what holds without it.
fn rows<'k>(
    on: &str,
    keys: impl Iterator<Item = (&'k str, String)>,
    sources: [&Source<'_>; 2],
) -> Vec<ResolvedKey> {
    let row = |(key, default): (&str, String)| {
        let mut found = sources.iter().filter_map(|source| Some((source.value(key)?, source)));
        let (value, from) = match found.next() {
            Some((value, source)) => (value, source.name.clone()),
            None => (default, "default".to_owned()),
        };
        ResolvedKey { on: on.to_owned(), key: key.to_owned(), value, from }
    };
    keys.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Tables whose keys are listed one by one.
    const TABLES: [&str; 4] = ["rts", "timeouts", "reopen", "associations"];

    /// The keys, tables as one.
    fn known(keys: impl Iterator<Item = String>) -> BTreeSet<String> {
        let one = |key: String| match key.split_once('.') {
            Some((table, _)) if TABLES.contains(&table) => table.to_owned(),
            _ => key,
        };
        keys.map(one).collect()
    }

    const FILE: &str = "[[peer]]\nname = \"rome\"\nprofile = \"x410-1984\"\nexpect = \"x\"\n\
        password = { file = \"p\" }\nextensions = \"modern\"\n[[peer.channel]]\nname = \"all\"\n\
        precedences = [\"flash\",\n  \"routine\"]\nrts = { window = 9 }\n";

    fn row<'a>(rows: &'a [ResolvedKey], on: &str, key: &str) -> (&'a str, &'a str) {
        let found = rows.iter().find(|row| row.on == on && row.key == key).unwrap();
        (&found.value, &found.from)
    }

    #[test]
    fn each_key_has_its_value_and_its_source() {
        let rows = resolve_text(FILE, Path::new("."), "rome").unwrap();
        let of_profile = "profile x410-1984";
        assert_eq!(row(&rows, "peer", "mode"), ("\"x410-1984\"", of_profile));
        assert_eq!(row(&rows, "peer", "extensions"), ("\"modern\"", "peer"));
        assert_eq!(row(&rows, "peer", "password"), ("{ file = \"p\" }", "peer"));
        assert_eq!(row(&rows, "peer", "expect"), ("not shown", "peer"));
        assert_eq!(row(&rows, "peer", "tsel"), ("none is called", "default"));
        assert_eq!(row(&rows, "all", "precedences"), ("[\"flash\", \"routine\"]", "channel"));
        assert_eq!(row(&rows, "all", "rts.window"), ("9", "channel"));
        assert_eq!(row(&rows, "all", "rts.checkpoint"), ("\"auto\"", of_profile));
        assert_eq!(row(&rows, "all", "timeouts.setup"), ("\"60s\"", of_profile));
        assert_eq!(row(&rows, "all", "reopen.refused"), ("600s", "default"));
        let absent = resolve_text(FILE, Path::new("."), "oslo").unwrap_err();
        assert_eq!(absent, "there is no peer \"oslo\": rome");
    }

    /// The reader names the keys that it knows where one is unknown.
    #[test]
    fn no_key_is_missing() {
        let file = "[mta]\nname = \"A\"\n[[peer]]\nname = \"b\"\nzzzzzzzzzzzz = 1\n\
                    [[peer.channel]]\nname = \"c\"\nyyyyyyyyyyyy = 1\n";
        let (_, findings) = crate::read("a", file, Path::new("."), &|_| None);
        let remedies = |key: &str| {
            let found = findings.problems.iter().find(|p| p.message.contains(key)).unwrap();
            let names = found.remedy.strip_prefix("known here: ").unwrap();
            names.split(", ").map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let mut of_peer = remedies("zzzz");
        assert!(of_peer.remove("channel"));
        let listed = OF_PEER.iter().map(|(key, _)| (*key).to_owned());
        assert_eq!(known(listed.chain(["message_aborts".to_owned()])), of_peer);
        let listed = channel::defaults().into_iter().map(|(key, _)| key.to_owned());
        assert_eq!(known(listed), remedies("yyyy"));
    }
}
