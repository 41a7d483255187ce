//! Text that others chose, made fit to be shown: what a terminal would obey is written out.
//!
//! Whatever prints, logs or tables a value from the wire, from a file of another program or from
//! another's configuration passes it through here, and nothing else has a rule of its own. A control
//! character appears as `\n`, `\u{1b}` and so on; the characters of every script stay.

use std::borrow::Cow;

/// Whether a terminal or a reader of lines obeys this character instead of showing it, or it changes
/// how others are shown: C0 and C1 controls with DEL (so ESC, CSI, OSC, BEL, CR and NUL), line and
/// paragraph separators, bidirectional marks, embeddings, overrides and isolates (UAX #9), and
/// characters without any appearance.
pub fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || has_no_appearance(c)
}

/// What Unicode calls Default_Ignorable_Code_Point (soft hyphen, zero width space, word joiner,
/// bidirectional controls, variation selectors, fillers, tags), controls of annotations, notes and
/// hieroglyphs, and the blanks that are letters or symbols by their category. The joiners that Indic
/// and Arabic scripts are written with (U+200C, U+200D) only join their neighbours, and stay.
fn has_no_appearance(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// For one line, as of a log, or one cell of a table: one line stays one line.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

/// For text of several lines: line ends stay, of either kind (LF, CR LF), and tabulators.
pub fn text(text: &str) -> Cow<'_, str> {
    let text = match text.contains("\r\n") {
        true => Cow::Owned(text.replace("\r\n", "\n")),
        false => Cow::Borrowed(text),
    };
    let bad = |c| is_obeyed(c) && c != '\n' && c != '\t';
    match text {
        Cow::Borrowed(text) => escaped(text, bad),
        Cow::Owned(text) => Cow::Owned(escaped(&text, bad).into_owned()),
    }
}

/// Text of several lines that may have colours of our own: as [`text`], but sequences
/// that select a graphic rendition (`ESC [ digits ; m`) stay. They colour, and do nothing else.
pub fn coloured(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, from) = rest.split_at(at);
        out.push_str(&self::text(before));
        let length = rendition(from);
        let (sequence, after) = from.split_at(length.unwrap_or(1));
        match length {
            Some(_) => out.push_str(sequence),
            None => out.push_str(&self::text(sequence)),
        }
        rest = after;
    }
    out.push_str(&self::text(rest));
    out
}

/// The length of the sequence at the front, where it selects a graphic rendition.
fn rendition(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("\u{1b}[")?;
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    digits.get(end..)?.starts_with('m').then_some("\u{1b}[".len() + end + 1)
}

/// For JSON that is written already: the same value, with `\u....` for what a terminal would obey.
/// JSON itself escapes only the characters below U+0020, so all others stand within its strings.
pub fn json(text: &str) -> Cow<'_, str> {
    let bad = |c: char| is_obeyed(c) && c >= ' ';
    if !text.contains(bad) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match bad(c) {
            true => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            false => out.push(c),
        }
    }
    out.into()
}

fn escaped(text: &str, bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&bad) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match bad(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal or a reader obeys, and what is shown for it.
    const OBEYED: &[(&str, &str)] = &[
        ("\u{1b}[2J", "\\u{1b}[2J"),
        ("\u{1b}]52;c;cm0gLXJm\u{7}", "\\u{1b}]52;c;cm0gLXJm\\u{7}"),
        ("\u{9b}31m\u{9d}0;title\u{9c}", "\\u{9b}31m\\u{9d}0;title\\u{9c}"),
        ("a\rb", "a\\rb"),
        ("\u{0}\u{8}\u{7f}\u{85}", "\\u{0}\\u{8}\\u{7f}\\u{85}"),
        ("\u{202e}exe.\u{202c}", "\\u{202e}exe.\\u{202c}"),
        ("\u{2066}x\u{2069}\u{200f}\u{61c}", "\\u{2066}x\\u{2069}\\u{200f}\\u{61c}"),
        ("\u{2028}\u{200b}\u{feff}\u{e0041}", "\\u{2028}\\u{200b}\\u{feff}\\u{e0041}"),
    ];

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        for (raw, shown) in OBEYED {
            assert_eq!(line(raw), *shown);
            assert_eq!(text(raw), *shown);
            assert_eq!(coloured(raw), *shown);
        }
        assert_eq!(line("a\nb\tc"), "a\\nb\\tc");
        assert_eq!(text("a\r\nb\n\tc\rd"), "a\nb\n\tc\\rd");
        let harmless = "Tromsø, Łódź, عربي, 日本, नमस्ते, می\u{200c}خواهم — 😀 \\n";
        for shown in [line(harmless), text(harmless), json(harmless)] {
            assert_eq!(shown, harmless);
        }
    }

    #[test]
    fn characters_without_appearance_are_written_out() {
        let ranges = [
            (0xad, 0xad),
            (0x34f, 0x34f),
            (0x61c, 0x61c),
            (0x115f, 0x1160),
            (0x17b4, 0x17b5),
            (0x180b, 0x180f),
            (0x200b, 0x200b),
            (0x200e, 0x200f),
            (0x2028, 0x202e),
            (0x2060, 0x206f),
            (0x2800, 0x2800),
            (0x3164, 0x3164),
            (0xfe00, 0xfe0f),
            (0xfeff, 0xfeff),
            (0xffa0, 0xffa0),
            (0xfff0, 0xfffb),
            (0x1bca0, 0x1bca3),
            (0x1d173, 0x1d17a),
            (0xe0000, 0xe0fff),
        ];
        for c in ranges.into_iter().flat_map(|(first, last)| first..=last).map(char::from_u32) {
            let c = c.unwrap();
            assert_eq!(line(&format!("a{c}b")), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
        // What stands beside them is seen.
        for c in "\u{1161}\u{17b6}\u{1810}\u{200c}\u{200d}\u{2801}\u{3165}\u{fe10}\u{ff9f}".chars()
        {
            assert!(!is_obeyed(c), "{c:?}");
        }
    }

    #[test]
    fn our_own_colours_stay_and_no_other_sequence() {
        assert_eq!(coloured("\u{1b}[1;31merror\u{1b}[0m\n"), "\u{1b}[1;31merror\u{1b}[0m\n");
        for (text, shown) in [
            ("\u{1b}[2J\u{1b}[m", "\\u{1b}[2J\u{1b}[m"),
            ("\u{1b}[31\u{1b}[31m", "\\u{1b}[31\u{1b}[31m"),
            ("\u{1b}", "\\u{1b}"),
            ("\u{1b}[", "\\u{1b}["),
            ("\u{1b}[?25lm", "\\u{1b}[?25lm"),
        ] {
            assert_eq!(coloured(text), shown);
        }
    }

    #[test]
    fn json_stays_the_same_value() {
        // What `serde_json` makes of DEL, C1, an override and a tag: the characters themselves.
        let written = "{\n  \"a\": \"\\u001b[2J \u{7f}\u{9b}2J \u{202e} \u{e0041} ø\"\n}";
        let shown = json(written);
        assert_eq!(
            shown,
            "{\n  \"a\": \"\\u001b[2J \\u007f\\u009b2J \\u202e \\udb40\\udc41 ø\"\n}"
        );
    }
}
