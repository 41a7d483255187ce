//! Setting a value inside a tree of TOML by its path: `network.links[naples-uar.wan].delay`.
//!
//! Keys are divided by dots. In brackets behind a key of a list stands the number of an element, or a
//! text that one of its elements has under `name` or `class` or among its `ends`; behind a key of a
//! table it is a further key, which may have dots.

use toml::Value;
use toml::map::{Entry, Map};

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Chosen(String),
}

/// Sets the value at `path`. Tables on the way are made where they are missing; elements of lists
/// are not.
///
/// # Errors
/// The path is no path, or leads through something that is neither table nor list, or to an element
/// that is not there; said with as much of the path as could be followed.
pub(crate) fn set(tree: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let steps = steps(path).ok_or_else(|| format!("{path:?} is no path of keys"))?;
    let mut at = tree;
    for (number, step) in steps.iter().enumerate() {
        let last = number + 1 == steps.len();
        let said = || said(steps.get(..=number).unwrap_or_default());
        let next = match (at, step) {
            (Value::Table(table), Step::Key(key) | Step::Chosen(key)) => entry(table, key, last),
            (Value::Array(list), Step::Chosen(which)) => {
                let place = place(list, which);
                let place = place.ok_or_else(|| format!("{}: there is none", said()))?;
                list.get_mut(place).ok_or_else(|| format!("{}: there is none", said()))?
            }
            (Value::Array(_), Step::Key(_)) => {
                return Err(format!("{}: a list, so say which as in [0]", said()));
            }
            _ => return Err(format!("{}: neither table nor list", said())),
        };
        at = next;
    }
    *at = value;
    Ok(())
}

fn entry<'a>(table: &'a mut Map<String, Value>, key: &str, last: bool) -> &'a mut Value {
    match table.entry(key.to_owned()) {
        Entry::Occupied(there) => there.into_mut(),
        // What is set in the end takes this place.
        Entry::Vacant(free) if last => free.insert(Value::Boolean(false)),
        Entry::Vacant(free) => free.insert(Value::Table(Map::new())),
    }
}

fn place(list: &[Value], which: &str) -> Option<usize> {
    if let Ok(number) = which.parse() {
        return Some(number);
    }
    list.iter().position(|element| {
        let is = |key: &str| element.get(key).and_then(Value::as_str) == Some(which);
        let ends = element.get("ends").and_then(Value::as_array);
        let ends = ends.is_some_and(|ends| ends.iter().any(|end| end.as_str() == Some(which)));
        is("name") || is("class") || ends
    })
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (key, after) = rest.split_at_checked(end)?;
        if key.is_empty() {
            return None;
        }
        steps.push(Step::Key(key.to_owned()));
        rest = after;
        while let Some(inside) = rest.strip_prefix('[') {
            let (which, after) = inside.split_once(']')?;
            steps.push(Step::Chosen(which.to_owned()));
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None => return rest.is_empty().then_some(steps),
        }
    }
}

fn said(steps: &[Step]) -> String {
    steps.iter().fold(String::new(), |said, step| match step {
        Step::Key(key) if said.is_empty() => key.clone(),
        Step::Key(key) => format!("{said}.{key}"),
        Step::Chosen(which) => format!("{said}[{which}]"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Value {
        let text = r#"
            [network.hosts.a]
            [[network.links]]
            ends = ["a.lan", "r.lan"]
            [[network.links]]
            ends = ["r.wan", "b.lan"]
            delay = "5ms"
            [[branches]]
            class = "cs1"
        "#;
        Value::Table(toml::from_str(text).unwrap())
    }

    #[test]
    fn a_value_is_set_by_its_path() {
        let mut it = tree();
        for path in [
            "network.links[b.lan].delay",
            "network.links[0].delay",
            "network.hosts.a.sysctls[net.ipv4.tcp_sack]",
            "branches[cs1].queueing.limit.packets",
            "mta.precedence.preempt",
        ] {
            set(&mut it, path, Value::Integer(7)).unwrap();
        }
        let links = it["network"]["links"].as_array().unwrap();
        assert_eq!((&links[0]["delay"], &links[1]["delay"]), (&7.into(), &7.into()));
        assert_eq!(it["network"]["hosts"]["a"]["sysctls"]["net.ipv4.tcp_sack"], 7.into());
        assert_eq!(it["branches"][0]["queueing"]["limit"]["packets"], 7.into());
        assert_eq!(it["mta"]["precedence"]["preempt"], 7.into());
    }

    #[test]
    fn a_path_that_leads_nowhere_is_refused_where_it_ends() {
        let cases = [
            ("network.links[c.lan].delay", "network.links[c.lan]: there is none"),
            ("network.links.delay", "network.links.delay: a list"),
            ("network.links[1].delay.x", "network.links[1].delay.x: neither"),
            ("network.links[9].delay", "network.links[9]: there is none"),
            ("network..links", "no path"),
            ("network.links[1", "no path"),
            ("", "no path"),
        ];
        for (path, what) in cases {
            let error = set(&mut tree(), path, Value::Boolean(true)).unwrap_err();
            assert!(error.contains(what), "{path}: {error}");
        }
    }
}
