//! Misspelt lines: most of a configuration is not about classes and queues and is passed over, but a line that means
//! something here and is written wrongly must not vanish with it.

use super::Notes;
use super::lines::ConfigLine;

/// What begins a line that is followed here.
const FOLLOWED: [&str; 7] = [
    "access-list",
    "bandwidth",
    "class-map",
    "interface",
    "max-reserved-bandwidth",
    "policy-map",
    "service-policy",
];

/// What follows on `ip`, `ipv6` and `no` there.
const SECOND: [&str; 6] =
    ["access-group", "access-list", "class-map", "policy-map", "service-policy", "traffic-filter"];

/// Commands of IOS that differ by little from one that is followed.
const OTHERS: [&str; 4] = ["service", "class", "policy", "access"];

/// Notes a line whose command is a misspelt or shortened one of those that are followed.
pub(super) fn misspelled(line: &ConfigLine, words: &[&str], notes: &mut Notes) {
    let (word, among) = match words {
        ["ip" | "ipv6" | "no", word, ..] => (*word, &SECOND[..]),
        [word, ..] => (*word, &FOLLOWED[..]),
        [] => return,
    };
    let meant = nearest(word, among).or_else(|| divided(words));
    if let Some(meant) = meant {
        notes.add(line.number, format!("not known: did you mean {meant}?"));
    }
}

/// The command of which the first two words are the parts, or one with more or less before `policy`.
fn divided(words: &[&str]) -> Option<&'static str> {
    let words = match words {
        ["ip" | "ipv6" | "no", rest @ ..] => rest,
        all => all,
    };
    match words {
        ["policy" | "qos-policy", "input" | "output", ..] => Some("service-policy"),
        [first, second, ..] => {
            let joined = format!("{first}-{second}");
            FOLLOWED.into_iter().find(|one| *one == joined)
        }
        _ => None,
    }
}

/// The command within two letters, or whose beginning the word is.
fn nearest(word: &str, among: &[&'static str]) -> Option<&'static str> {
    if among.contains(&word) || OTHERS.contains(&word) || word.len() < 3 {
        return None;
    }
    let near = |one: &&&str| one.starts_with(word) || strsim::damerau_levenshtein(word, one) <= 2;
    among.iter().find(near).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_meant_and_what_is_known_is_not_misspelt() {
        for (word, meant) in [
            ("polcy-map", Some("policy-map")),
            ("servce-policy", Some("service-policy")),
            ("sevice-policy", Some("service-policy")),
            ("acces-list", Some("access-list")),
            ("int", Some("interface")),
            ("bandwith", Some("bandwidth")),
            ("service", None),
            ("interface", None),
            ("duplex", None),
            ("shutdown", None),
            ("description", None),
        ] {
            assert_eq!(nearest(word, &FOLLOWED), meant, "{word}");
        }
        assert_eq!(divided(&["service", "policy", "output", "wan"]), Some("service-policy"));
        assert_eq!(divided(&["no", "policy", "map", "x"]), Some("policy-map"));
        assert_eq!(divided(&["policy", "output", "wan"]), Some("service-policy"));
        assert_eq!(divided(&["qos-policy", "output", "wan"]), Some("service-policy"));
        assert_eq!(divided(&["service", "password-encryption"]), None);
        assert_eq!(divided(&["policy", "route", "x"]), None);
    }
}
