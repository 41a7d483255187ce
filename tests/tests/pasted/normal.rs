//! What two outputs of a command have in common: all but times, durations, rates, identifiers and spaces.

/// Patterns and what replaces them, in order. `#` is a digit, `9` one or more, `*` digits and lower case letters,
/// `X` a hexadecimal digit in upper case; no letter or digit adjoins what is found.
const PATTERNS: &[(&str, &str)] = &[
    ("####-##-##T##:##:##.9Z", "TIME"),
    ("####-##-##T##:##:##Z", "TIME"),
    ("####-##-## ##:##:##", "TIME"),
    ("####-##-##", "DATE"),
    ("##:##:##.9", "TIME"),
    ("##:##:##Z", "TIME"),
    ("############Z", "DTG"),
    ("XXXXXXXXXXXXXXXX", "HEX"),
    ("MTA-NAPLES.*.", "MTA-NAPLES.ID."),
    ("MTA-ACT.*.", "MTA-ACT.ID."),
    ("9 h 9 min", "DURATION"),
    ("9.9 min", "DURATION"),
    ("9 min", "DURATION"),
    ("9.9 s", "DURATION"),
    ("9 s", "DURATION"),
    ("9.9 ms", "DURATION"),
    ("9 ms", "DURATION"),
    ("9 us", "DURATION"),
    // The rate of a submission is in the column behind its time.
    ("DURATION  9", "DURATION  RATE"),
    ("9.9 kbit/s", "RATE"),
    ("9 kbit/s", "RATE"),
    ("age_seconds  9.9", "age_seconds  DURATION"),
    ("9 MiB free, reserve 9 MiB", "ROOM"),
    ("9 MiB free", "ROOM free"),
    ("a9", "aN"),
];

/// Spaces before the continuation of a value, at least.
const CONTINUED: &str = "            ";

/// An output with what must differ replaced; a value on several lines is one, columns are two spaces apart.
pub(super) fn normal(output: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in output.trim_end().lines() {
        match lines.last_mut().filter(|last| line.starts_with(CONTINUED) && !last.is_empty()) {
            Some(last) => *last = format!("{last} {}", line.trim()),
            None => lines.push(line.trim_end().to_owned()),
        }
    }
    lines.iter().map(|line| replaced(&spaced(line))).collect()
}

/// Runs of spaces as two.
fn spaced(line: &str) -> String {
    let mut spaced = String::new();
    for c in line.chars() {
        if c != ' ' || !spaced.ends_with("  ") {
            spaced.push(c);
        }
    }
    spaced
}

fn replaced(line: &str) -> String {
    PATTERNS.iter().fold(line.to_owned(), |line, (pattern, with)| replace(&line, pattern, with))
}

fn replace(line: &str, pattern: &str, with: &str) -> String {
    let line: Vec<char> = line.chars().collect();
    let mut made = String::new();
    let mut at = 0;
    while at < line.len() {
        let adjoins = at > 0 && line[at - 1].is_ascii_alphanumeric();
        let length = if adjoins { None } else { found(&line[at..], pattern) };
        match length.filter(|length| ends(&line, at + length)) {
            Some(length) => {
                made.push_str(with);
                at += length;
            }
            None => {
                made.push(line[at]);
                at += 1;
            }
        }
    }
    made
}

/// Whether no letter or digit continues what ends here.
fn ends(line: &[char], at: usize) -> bool {
    let goes_on = line.get(at).is_some_and(char::is_ascii_alphanumeric);
    !goes_on || !line[at - 1].is_ascii_alphanumeric()
}

/// Characters at the beginning that match the pattern.
fn found(text: &[char], pattern: &str) -> Option<usize> {
    let mut at = 0;
    for wanted in pattern.chars() {
        let run = |fits: fn(&char) -> bool| text[at..].iter().take_while(|c| fits(c)).count();
        let length = match wanted {
            '#' => run(char::is_ascii_digit).min(1),
            '9' => run(char::is_ascii_digit),
            '*' => run(|c| c.is_ascii_digit() || c.is_ascii_lowercase()),
            'X' => run(|c| c.is_ascii_digit() || matches!(c, 'A'..='F')).min(1),
            _ => usize::from(text.get(at) == Some(&wanted)),
        };
        if length == 0 {
            return None;
        }
        at += length;
    }
    Some(at)
}

/// The lines of both: common ones after a space, those of the first after `-`, of the second after `+`.
pub(super) fn difference(first: &[String], second: &[String]) -> String {
    let (m, n) = (first.len(), second.len());
    let mut common = vec![vec![0_usize; n + 1]; m + 1];
    for i in (0..m).rev() {
        for j in (0..n).rev() {
            common[i][j] = match first[i] == second[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut text) = (0, 0, String::new());
    while i < m || j < n {
        let (mark, line) = if i < m && j < n && first[i] == second[j] {
            (i, j) = (i + 1, j + 1);
            (' ', &first[i - 1])
        } else if i < m && (j == n || common[i + 1][j] >= common[i][j + 1]) {
            i += 1;
            ('-', &first[i - 1])
        } else {
            j += 1;
            ('+', &second[j - 1])
        };
        text.push_str(&format!("    {mark} {line}\n"));
    }
    text
}

#[test]
fn only_what_must_differ_is_replaced() {
    let is = |output: &str, normalised: &[&str]| assert_eq!(normal(output), normalised);
    is("e1     act  4.2 s  ready\n", &["e1  act  DURATION  ready"]);
    is("until 2026-01-02T03:04:05.678901Z, e12", &["until TIME, e12"]);
    is("[/C=IT/;MTA-NAPLES.3a2ed9.17]", &["[/C=IT/;MTA-NAPLES.ID.17]"]);
    is("a12  act/flash  10s 2 idle", &["aN  act/flash  10s 2 idle"]);
    is("  routine     15 B  1.9 ms     850\n\n", &["  routine  15 B  DURATION  RATE"]);
    is("waits_for   one\n                two", &["waits_for  one two"]);
    is("4 sites, 4s, x4 s", &["4 sites, 4s, x4 s"]);
    is("5E85A49D1590F9ED* 5E85", &["HEX* 5E85"]);
}

#[test]
fn a_difference_shows_both() {
    let of = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(difference(&of("a b c"), &of("a x c")), "      a\n    - b\n    + x\n      c\n");
}
