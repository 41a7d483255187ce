//! `mta check --show PEER`: what each key of a peer is, and from where.

use crate::command::output::{print, print_error, print_json, table, trimmed};
use crate::command::{DONE, WRONG};
use crate::config::resolved::{self, ResolvedKey};
use serde::Serialize;
use std::path::Path;

/// The answer in JSON.
#[derive(Serialize)]
struct Shown<'a> {
    peer: &'a str,
    keys: &'a [ResolvedKey],
}

/// Shows the keys of a peer of this file, which is valid.
pub(super) fn show(path: &Path, peer: &str, json: bool) -> u8 {
    match resolved::resolve(path, peer) {
        Ok(keys) if json => print_json(&Shown { peer, keys: &keys }),
        Ok(keys) => print(&to_text(&keys)),
        Err(why) => {
            print_error(&why);
            return WRONG;
        }
    }
    DONE
}

fn to_text(keys: &[ResolvedKey]) -> String {
    let mut rows = table(["ON", "KEY", "VALUE", "FROM"]);
    for key in keys {
        rows.add_row([key.on.clone(), key.key.clone(), key.value.clone(), key.from.clone()]);
    }
    trimmed(&rows)
}
