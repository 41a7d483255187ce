//! The words of the project: identifiers and prose that docs/lexicon.md replaces. A part of
//! `cargo xtask tidy`.

use crate::checks::source::{is_word, line_of, mask, words};
use crate::workspace::TextFile;

/// Words of identifiers, each line with what takes their place. An identifier is split at `_` and
/// at capitals, so `toldOnce`, `TOLD_ONCE` and `told_once` all have the word `told`.
const IDENTIFIER_WORDS: &[(&[&str], &str)] = &[
    (&["tell", "tells", "told", "telling"], "report, log, notify, show"),
    (&["say", "says", "said", "saying"], "report, state, log, show, output"),
    (&["hear", "hears", "heard", "hearing"], "receive, receiver, observed"),
    (&["ear", "ears", "mouth", "mouths"], "rx, tx, receiver, sender"),
    (&["hush"], "log_rate_limiter"),
    (&["roll"], "connection_table"),
    (&["stray", "strays"], "unrouted"),
    (&["whereabouts"], "state"),
    (
        &["debt", "debts", "owe", "owes", "owed", "pay", "pays", "paid", "paying"],
        "pending_retry, due",
    ),
    (&["blip", "blips"], "transient_loss"),
    (&["licence", "licences", "licensed"], "start_reason"),
    (&["fate", "fates"], "disposition, outcome"),
    (&["newcomer", "newcomers"], "incoming"),
    (&["seat", "seats"], "user"),
    (&["desk"], "threads"),
    (&["impatient"], "forced"),
    (&["mind", "minds"], "check, update, apply"),
    (&["ground", "grounds"], "testbed, simulation, platform"),
];

/// Words that identifiers in `crates/` do not have. In the laboratory a link is a part of a
/// topology.
const IDENTIFIER_WORDS_OF_CRATES: &[(&[&str], &str)] =
    &[(&["link"], "association; connection, line")];

/// Names of other libraries that have such a word.
const FOREIGN_NAMES: &[&str] = &["hard_link", "DataLink"];

/// Two words that follow each other in an identifier, and what takes their place.
const IDENTIFIER_PAIRS: &[(&str, &str, &str)] = &[
    ("see", "to", "check, update, apply"),
    ("under", "way", "in_progress"),
    ("no", "way", "no_route"),
    ("the", "way", "in_transit, path"),
    ("real", "ground", "testbed"),
    ("virtual", "ground", "simulation"),
];

/// Names of types that were private words.
const TYPE_NAMES: &[(&str, &str)] = &[
    ("Hush", "LogRateLimiter"),
    ("Roll", "ConnectionTable"),
    ("Strays", "UnroutedEntries"),
    ("Whereabouts", "ItemState"),
    ("Debt", "PendingRetry"),
    ("Licence", "StartReason"),
    ("Fate", "Disposition"),
    ("Newcomer", "IncomingConnection"),
    ("Seat", "SiteUser"),
    ("DiskDesk", "StoreThreads"),
    ("Impatient", "StopForced"),
    ("Mouth", "TapSender"),
    ("Told", "a word of what it holds"),
    ("Heard", "UserEvent"),
];

/// A phrase of prose, in lower case. `.` stands for the end or the beginning of a clause.
struct Phrase {
    text: &'static str,
    /// It may stand after one of these words,
    after: &'static [&'static str],
    /// and before one of these.
    before: &'static [&'static str],
    better: &'static str,
}

const fn phrase(text: &'static str, better: &'static str) -> Phrase {
    Phrase { text, after: &[], before: &[], better }
}

/// What may follow `is no`.
const AFTER_NO: &[&str] =
    &["longer", "more", "other", "better", "less", "worse", "earlier", "later"];

const PHRASES: &[Phrase] = &[
    Phrase { text: "is no", after: &["there"], before: AFTER_NO, better: "`is not a`, `invalid`" },
    Phrase { text: "are no", after: &["there"], before: AFTER_NO, better: "`are not`, `invalid`" },
    Phrase { text: "was no", after: &["there"], before: AFTER_NO, better: "`was not a`" },
    Phrase { text: "were no", after: &["there"], before: AFTER_NO, better: "`were not`" },
    Phrase { text: "another way", after: &["in"], before: &[], better: "`another route`, `path`" },
    phrase("no way leads", "`no route`, `no path`"),
    phrase("on its way", "`in transit`, `on its path`"),
    phrase("on their way", "`in transit`, `on their path`"),
    phrase("give way", "`yield`, `be replaced`, `be dropped first`"),
    phrase("gives way", "`yields`, `is replaced`, `is dropped first`"),
    phrase("mind the", "`check`, `update`, `apply`"),
    phrase("minds the", "`checks`, `updates`, `applies`"),
    phrase("see to", "`check`, `update`, `apply`"),
    phrase("sees to", "`checks`, `updates`, `applies`"),
    phrase("no more .", "`no longer`, `not ... again`"),
    phrase("of what has", "name the thing"),
    phrase("as who", "name the actor"),
    phrase("who has them", "name the actor"),
    phrase("real ground", "`testbed`"),
    phrase("virtual ground", "`simulation`"),
    phrase("under way", "`in progress`"),
    phrase("on the way", "`in transit`, `on the path`"),
    phrase("became of", "`the outcome of`"),
    phrase("becomes of", "`the outcome of`"),
    phrase("came of", "`the outcome of`, `the result of`"),
    phrase("comes of it", "`the outcome`"),
    phrase("go on with", "`continue`, `resume`"),
    phrase("goes on with", "`continues`, `resumes`"),
    phrase("gone on with", "`continued`, `resumed`"),
    phrase("for want of", "`without`"),
    phrase("in vain", "`without success`"),
    phrase("as ever", "leave it out"),
    phrase("as always", "leave it out"),
    phrase("does well to", "`should`"),
    phrase("do well to", "`should`"),
    phrase("still to come", "`not yet received`, `pending`"),
    phrase("by and by", "`gradually`"),
    phrase("to and fro", "`in both directions`"),
    phrase("and none other", "`only`"),
];

/// Words of prose, each line with what takes their place.
const PROSE_WORDS: &[(&[&str], &str)] = &[
    (&["tell", "tells", "told", "telling"], "report, log, notify, show, distinguish"),
    (&["say", "says", "said", "saying"], "state, report, log, name"),
    (&["hear", "hears", "heard", "hearing"], "receive, is notified"),
    (&["mouth", "mouths", "ear", "ears"], "sender, receiver"),
    (&["hush"], "log rate limiter"),
    (&["whereabouts"], "state"),
    (&["debt", "debts", "owe", "owes", "owed", "owing"], "pending retry; must still send"),
    (&["blip", "blips"], "transient loss"),
    (&["fate", "fates"], "disposition, outcome"),
    (&["newcomer", "newcomers"], "incoming connection"),
    (&["seat", "seats"], "user"),
    (&["stray", "strays"], "unrouted entry"),
    (&["desk", "desks"], "threads"),
    (&["impatient", "impatiently"], "forced"),
    (&["forthwith", "thereof", "whereof", "thereupon", "lest", "albeit"], "plain English"),
];

/// The vocabulary itself, which must name what it refuses.
const VOCABULARY: &[&str] = &["xtask/src/checks/wording.rs", "docs/lexicon.md"];

/// A word that is not the project's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wording {
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// The word, and what to write.
    pub(crate) text: String,
}

impl Wording {
    fn new(line: usize, found: &str, better: &str) -> Wording {
        Wording { line, text: format!("`{found}`: write {better} (docs/lexicon.md)") }
    }
}

/// Words of a file that docs/lexicon.md replaces.
pub(crate) fn wording(file: &TextFile) -> Vec<Wording> {
    let is_page = file.path.ends_with(".md") || file.path.ends_with(".toml");
    if VOCABULARY.contains(&file.path.as_str()) || !(file.is_rust() || is_page) {
        return Vec::new();
    }
    let mut found = Vec::new();
    if file.is_rust() {
        let code = mask(&file.text);
        found.extend(type_names(&code));
        found.extend(identifiers(&code, file.path.starts_with("crates/")));
        found.extend(prose(&only_prose(&file.text, &code)));
    } else {
        found.extend(prose(&file.text));
    }
    found.sort_by_key(|wording| wording.line);
    found
}

fn type_names(code: &str) -> Vec<Wording> {
    let found = |(name, better): &(&str, &str)| {
        words(code, name)
            .map(|at| Wording::new(line_of(code, at), name, better))
            .collect::<Vec<_>>()
    };
    TYPE_NAMES.iter().flat_map(found).collect()
}

/// Identifiers of masked source with words that are not the field's.
fn identifiers(code: &str, in_crates: bool) -> Vec<Wording> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        for name in line.split(|c| !is_word(c)) {
            if let Some(better) = better_name(name, in_crates) {
                found.push(Wording::new(number + 1, name, better));
            }
        }
        if line.contains("fn of(") || line.contains("fn of<") {
            found.push(Wording::new(number + 1, "fn of", "new, from_x, or what it returns"));
        }
    }
    found
}

/// What to write in place of an identifier, if anything.
fn better_name(name: &str, in_crates: bool) -> Option<&'static str> {
    let parts = parts(name);
    let of_crates = match in_crates && !FOREIGN_NAMES.contains(&name) {
        true => IDENTIFIER_WORDS_OF_CRATES,
        false => &[],
    };
    let replaced = |part: &String| {
        let mut entries = IDENTIFIER_WORDS.iter().chain(of_crates);
        let entry = entries.find(|(words, _)| words.contains(&part.as_str()));
        entry.map(|(_, better)| *better)
    };
    let pair = || {
        let is_pair = |(first, second, _): &&(&str, &str, &str)| {
            parts.windows(2).any(|pair| pair == [*first, *second])
        };
        IDENTIFIER_PAIRS.iter().find(is_pair).map(|(_, _, better)| *better)
    };
    let bound = || {
        let constant = parts.len() > 1 && !name.contains(|c: char| c.is_lowercase());
        let last = parts.last().map(String::as_str);
        let first = parts.first().map(String::as_str);
        let misplaced = matches!(first, Some("most" | "longest" | "least"))
            || matches!(last, Some("most" | "max" | "min"));
        (constant && misplaced).then_some("MAX_x or MIN_x")
    };
    parts.iter().find_map(replaced).or_else(pair).or_else(bound)
}

/// The words of an identifier, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for section in name.split('_').filter(|section| !section.is_empty()) {
        let mut was_lower = true;
        let mut first = true;
        for c in section.chars() {
            match parts.last_mut().filter(|_| !(first || c.is_uppercase() && was_lower)) {
                Some(part) => part.extend(c.to_lowercase()),
                None => parts.push(c.to_lowercase().collect()),
            }
            (was_lower, first) = (!c.is_uppercase(), false);
        }
    }
    parts
}

/// Comments and literals of source, with the code blanked. `code` is the masked source.
fn only_prose(text: &str, code: &str) -> String {
    let pairs = text.chars().zip(code.chars());
    pairs.map(|(c, masked)| if c == masked && c != '\n' { ' ' } else { c }).collect()
}

/// A word of prose, or `None` at the end of a clause.
type Token<'a> = (usize, Option<&'a str>);

/// Words and clauses of prose. What stands between back quotes is code, and no prose.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut quoted = false;
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let bare = line.trim_start_matches(['/', '!', '#']).trim_start();
        if bare.starts_with("```") {
            fenced = !fenced;
            found.push((number + 1, None));
            continue;
        }
        if bare.is_empty() || line.starts_with('#') || line.starts_with('|') {
            quoted = false;
            found.push((number + 1, None));
        }
        if fenced {
            continue;
        }
        let is_inner = |c: char| is_word(c) || matches!(c, '\'' | '-');
        let mut rest = bare;
        while let Some(c) = rest.chars().next() {
            let length = if is_inner(c) {
                let length = rest.find(|c| !is_inner(c)).unwrap_or(rest.len());
                if !quoted {
                    found.push((number + 1, rest.get(..length)));
                }
                length
            } else {
                if c == '`' {
                    quoted = !quoted;
                }
                if !c.is_whitespace() {
                    found.push((number + 1, None));
                }
                c.len_utf8()
            };
            rest = rest.get(length..).unwrap_or_default();
        }
    }
    found
}

/// Phrases and words of prose that a reader would have to guess.
fn prose(text: &str) -> Vec<Wording> {
    let tokens: Vec<(usize, Option<String>)> =
        tokens(text).into_iter().map(|(line, word)| (line, word.map(str::to_lowercase))).collect();
    let word = |at: usize| tokens.get(at).and_then(|(_, word)| word.as_deref());
    let mut found = Vec::new();
    for (at, (line, first)) in tokens.iter().enumerate() {
        let Some(first) = first.as_deref() else { continue };
        if let Some((_, better)) = PROSE_WORDS.iter().find(|(words, _)| words.contains(&first)) {
            found.push(Wording::new(*line, first, better));
        }
        for phrase in PHRASES {
            let mut end = at;
            let matches = phrase.text.split(' ').all(|wanted| {
                let same =
                    if wanted == "." { word(end).is_none() } else { word(end) == Some(wanted) };
                end += 1;
                same
            });
            let before = at.checked_sub(1).and_then(word);
            let excused = before.is_some_and(|word| phrase.after.contains(&word))
                || word(end).is_some_and(|word| phrase.before.contains(&word));
            if matches && !excused {
                found.push(Wording::new(*line, phrase.text, phrase.better));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let file = TextFile { path: path.into(), text: text.into() };
        let word = |w: Wording| (w.line, w.text.split('`').nth(1).unwrap_or_default().to_owned());
        wording(&file).into_iter().map(word).collect()
    }

    fn names(text: &str) -> Vec<String> {
        found("crates/read/src/x.rs", text).into_iter().map(|(_, word)| word).collect()
    }

    #[test]
    fn identifiers_are_split_into_words() {
        assert_eq!(parts("told_once"), ["told", "once"]);
        assert_eq!(parts("ToldOnce2"), ["told", "once2"]);
        assert_eq!(parts("MAX_IO"), ["max", "io"]);
        assert_eq!(parts("_x"), ["x"]);
    }

    #[test]
    fn words_of_identifiers_are_refused_and_longer_words_are_not() {
        let refused = [
            "let told = 1;",
            "fn user_hears() {}",
            "struct SeatOf;",
            "x.see_to_late();",
            "const MOST_FILES: u8 = 1;",
            "const WINDOW_MAX: u8 = 1;",
            "const STEPS_MIN: u8 = 1;",
            "const LONGEST_WAIT: u8 = 1;",
            "const LEAST_WAIT: u8 = 1;",
            "let under_way = 1;",
            "fn of(x: u8) {}",
            "fn of<T>(x: T) {}",
            "enum Fate {}",
            "fn pay() {}",
        ];
        for text in refused {
            assert!(!names(text).is_empty(), "{text}");
        }
        let kept = [
            "let payload = essay;",
            "fn offset(&self) {}",
            "let near = clear + search;",
            "const MAX_FILES: u8 = 1;",
            "const MIN_FILES: u8 = 1;",
            "let longest_wait = least_wait;",
            "let at_most = u8::MAX;",
            "let two_way = see;",
            "let x = \"Toldo\".len(); // fn of(",
            "fn payment_of() {}",
        ];
        for text in kept {
            assert_eq!(names(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_link_is_refused_in_crates_only() {
        let text = "let link_up = Link::new();";
        assert_eq!(names(text), ["link_up", "Link"]);
        for path in ["lab/network/src/x.rs", "testkit/src/x.rs"] {
            assert_eq!(found(path, text), []);
        }
        let kept = "fs::hard_link(a, b); symlink(a, b); DataLink::ETHERNET; linked + unlink;";
        assert_eq!(names(kept), [""; 0]);
    }

    #[test]
    fn phrases_are_refused_in_comments_literals_and_pages() {
        let refused = [
            "// Text that is no DSCP.",
            "/// A peer that is configured no more.",
            "// A transfer is\n// under way.",
            "let x = \"{text} is no code point\";",
            "//! What became of it.",
            "// It is told once.",
            "// Delivered already, by another way.",
            "// The oldest gives way.",
            "// The thread sees to the disk.",
            "// A stray entry.",
        ];
        for text in refused {
            assert_eq!(names(text).len(), 1, "{text}");
        }
        assert_eq!(
            found("README.md", "# Of lines\n\nLost on\nthe way.\n"),
            [(3, "on the way".into())]
        );
        assert_eq!(found("config/sites/x.toml", "# It is no mark.\n"), [(1, "is no".into())]);
    }

    #[test]
    fn plain_sentences_code_and_the_vocabulary_pass() {
        let kept = [
            "// There is no mark here, and it is no longer needed: no more than one.",
            "// `told` is\n// a word; no clause. More follows.",
            "// This is: no. Under. Way.",
            "// The sum is computed in another way, as one can see too.",
        ];
        for text in kept {
            assert_eq!(names(text), [""; 0], "{text}");
        }
        assert_eq!(found("README.md", "```\nit is told\n```\n\nIt is not.\n"), []);
        assert_eq!(found("docs/lexicon.md", "told\n"), []);
        assert_eq!(found("crates/read/x.snap", "told\n"), []);
    }

    #[test]
    fn type_names_are_refused() {
        assert_eq!(names("struct DiskDesk;"), ["DiskDesk", "DiskDesk"]);
        assert_eq!(names("struct Heard;"), ["Heard", "Heard"]);
        assert_eq!(names("struct UserEvent;"), [""; 0]);
    }

    #[test]
    fn the_lexicon_names_each_word() {
        let lexicon = include_str!("../../../docs/lexicon.md");
        let (_, table) = lexicon.split_once("## Words to avoid").unwrap();
        for (names, _) in IDENTIFIER_WORDS.iter().chain(IDENTIFIER_WORDS_OF_CRATES) {
            assert!(names.iter().any(|name| words(table, name).next().is_some()), "{names:?}");
        }
    }
}
