//! Writes a policy as TOML for people, with names of code points.

use dscp::Dscp;
use router::policy::RouterPolicy;
use toml::{Table, Value};

/// The policy, after these lines as comments.
///
/// # Errors
/// A policy that TOML cannot hold; imported policies never cause this.
pub fn to_toml(policy: &RouterPolicy, comments: &[String]) -> anyhow::Result<String> {
    // Written and parsed again, because a tree of values does not accept code points as keys.
    let mut table: Table = toml::to_string(policy)?.parse()?;
    table.retain(|_, value| !value.as_table().is_some_and(Table::is_empty));
    table.iter_mut().for_each(|(_, value)| named(value));
    let mut text = String::new();
    for comment in comments {
        // A comment ends at its line break.
        let clean = |c: char| if base::shown::is_obeyed(c) { ' ' } else { c };
        let comment: String = comment.chars().map(clean).collect();
        text.push_str(format!("# {comment}").trim_end());
        text.push('\n');
    }
    let mut path = Vec::new();
    emit(&table, &mut path, &mut text);
    Ok(text)
}

/// The longest line for a table on one line, in octets.
const WIDTH: usize = 96;
/// Keys that come first, in this order; others follow in alphabetical order.
const FIRST: [&str; 7] = ["about", "kind", "name", "class", "rate", "min", "max"];

/// Whether a value is the default of its key.
fn is_default(key: &str, value: &Value) -> bool {
    match (key, value) {
        ("input" | "output", Value::Array(names)) => names.is_empty(),
        ("share", Value::String(none)) => none == "none",
        ("overhead", Value::Integer(octets)) => *octets == 0,
        ("ecn" | "colour_aware", Value::Boolean(on)) => !on,
        ("green" | "yellow" | "red", Value::String(pass)) => pass == "pass",
        ("dropper", Value::Table(of)) => of.get("kind").and_then(Value::as_str) == Some("tail"),
        _ => false,
    }
}

fn in_order(table: &Table) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = table.iter().filter(|(k, v)| !is_default(k, v)).collect();
    let place = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    entries.sort_by(|(a, _), (b, _)| (place(a), a).cmp(&(place(b), b)));
    entries
}

fn key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !key.is_empty() && key.chars().all(bare) {
        return key.to_owned();
    }
    // A basic string: the only kind of key that can hold any text.
    let mut quoted = String::from("\"");
    for c in key.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if base::shown::is_obeyed(c) => quoted.push_str(&format!("\\U{:08X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

fn inline(value: &Value) -> String {
    match value {
        Value::Table(table) => {
            let entries = in_order(table);
            let each = entries.iter().map(|(k, value)| format!("{} = {}", key(k), inline(value)));
            match entries.is_empty() {
                true => "{}".to_owned(),
                false => format!("{{ {} }}", each.collect::<Vec<_>>().join(", ")),
            }
        }
        Value::Array(array) => {
            format!("[{}]", array.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Writes a table: first values that fit on a line, then tables with a header.
fn emit(table: &Table, path: &mut Vec<String>, text: &mut String) {
    let mut later = Vec::new();
    for (name, value) in in_order(table) {
        let line = format!("{} = {}", key(name), inline(value));
        let is_table = value.is_table();
        let of_tables = value.as_array().is_some_and(|all| all.iter().any(Value::is_table));
        // The parts of the file, and entries with a name, always have a header.
        if (is_table || of_tables) && (path.len() < 2 && is_table || line.len() > WIDTH) {
            later.push((name, value));
        } else {
            text.push_str(&line);
            text.push('\n');
        }
    }
    for (name, value) in later {
        path.push(key(name));
        let (header, tables): (_, Vec<&Value>) = match value {
            Value::Array(array) => (format!("\n[[{}]]\n", path.join(".")), array.iter().collect()),
            _ => (format!("\n[{}]\n", path.join(".")), vec![value]),
        };
        for table in tables.into_iter().filter_map(Value::as_table) {
            let entries = in_order(table);
            // A table that contains only tables needs no header.
            let simple = entries.is_empty() || entries.iter().any(|(_, value)| !value.is_table());
            if simple || path.len() > 2 {
                text.push_str(&header);
            }
            emit(table, path, text);
        }
        path.pop();
    }
}

fn name(value: &Value) -> Option<Value> {
    let number = u8::try_from(value.as_integer()?).ok()?;
    Some(Value::String(Dscp::new(number)?.to_string()))
}

/// Replaces numbers of code points by names, by the keys of the values.
fn named(value: &mut Value) {
    match value {
        Value::Array(array) => array.iter_mut().for_each(named),
        Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                match (key.as_str(), &mut *value) {
                    ("dscp" | "lowest_first", Value::Array(codes)) => {
                        for code in codes {
                            *code = name(code).unwrap_or_else(|| code.clone());
                        }
                    }
                    ("dscp" | "mark", Value::Integer(_)) => {
                        *value = name(value).unwrap_or_else(|| value.clone());
                    }
                    ("lines" | "packets", Value::Table(by_dscp)) => {
                        *by_dscp = std::mem::take(by_dscp)
                            .into_iter()
                            .map(|(key, value)| {
                                let dscp: Option<Dscp> = key.parse().ok();
                                (dscp.map_or(key, |dscp| dscp.to_string()), value)
                            })
                            .collect();
                    }
                    _ => named(value),
                }
            }
        }
        _ => {}
    }
}
