//! Text made fit for a terminal, and its width there.
//!
//! What a terminal would obey is written out ([`base::shown`]). Beyond that the widths have to be right,
//! or a row would move its neighbours: a cluster of characters that terminals draw with different widths
//! (joined emoji, skin tones) is taken apart, and a base character carries at most `MAX_MARKS` marks.

use base::shown;
use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Most characters without a width of their own after one that has.
const MAX_MARKS: usize = 4;
/// Most columns of one cluster, and so the least that a line can be wrapped to.
const MAX_CLUSTER: usize = 4;

/// One line, fit to be shown: line ends are written out.
pub fn line(text: &str) -> String {
    settle(&shown::line(text))
}

/// Text of several lines: line ends stay, tabulators become blanks up to the next multiple of 8.
pub fn lines(text: &str) -> Vec<String> {
    let shown = shown::text(text);
    shown.split('\n').map(|line| settle(&expanded(line))).collect()
}

/// Columns that a text takes, of which nothing has to be escaped any more.
pub fn width(text: &str) -> usize {
    text.graphemes(true).map(|cluster| cluster.width()).sum()
}

fn expanded(line: &str) -> Cow<'_, str> {
    if !line.contains('\t') {
        return line.into();
    }
    let mut out = String::with_capacity(line.len() + 8);
    for (number, piece) in line.split('\t').enumerate() {
        if number > 0 {
            let blanks = 8 - width(&out) % 8;
            out.extend(std::iter::repeat_n(' ', blanks));
        }
        out.push_str(piece);
    }
    out.into()
}

/// Takes clusters apart whose width is not the sum of their characters', and limits marks.
fn settle(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for cluster in text.graphemes(true) {
        let sum: usize = cluster.chars().map(|c| c.width().unwrap_or(0)).sum();
        let is_odd = cluster.width() != sum || sum == 0 || sum > MAX_CLUSTER;
        let mut marks = 0;
        for (at, c) in cluster.chars().enumerate() {
            marks = if c.width() == Some(0) { marks + 1 } else { 0 };
            match (at > 0 || sum == 0) && is_odd || marks > MAX_MARKS {
                true => out.extend(c.escape_unicode()),
                false => out.push(c),
            }
        }
    }
    out
}

/// The text in at most `columns` columns: a longer one is cut, and `mark` (one column) ends it.
pub fn fit(text: &str, columns: usize, mark: char) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for cluster in text.graphemes(true) {
        let wide = cluster.width();
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        out.push_str(cluster);
    }
    if columns > 0 {
        out.push(mark);
    }
    out
}

/// The text in exactly `columns` columns: cut, or filled with blanks behind it.
pub fn cell(text: &str, columns: usize, mark: char) -> String {
    let mut out = fit(text, columns, mark);
    out.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(&out))));
    out
}

/// A line in parts of at most `columns` columns (4 the least), divided at blanks where there are any.
pub fn wrap(line: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(MAX_CLUSTER);
    let mut parts = Vec::new();
    let (mut part, mut used) = (String::new(), 0);
    for word in line.split_word_bounds() {
        let wide = width(word);
        if used + wide <= columns {
            part.push_str(word);
            used += wide;
            continue;
        }
        if word.trim().is_empty() {
            // Blanks at the end of a part are not carried over.
            parts.push(std::mem::take(&mut part));
            used = 0;
            continue;
        }
        if used > 0 && wide <= columns {
            parts.push(std::mem::take(&mut part).trim_end().to_owned());
            used = 0;
        }
        for cluster in word.graphemes(true) {
            let wide = cluster.width();
            if used + wide > columns {
                parts.push(std::mem::take(&mut part));
                used = 0;
            }
            part.push_str(cluster);
            used += wide;
        }
    }
    if !part.is_empty() || parts.is_empty() {
        parts.push(part);
    }
    parts
}

/// A size in octets, in at most 6 columns: `950 B`, `1.2 kB`, `10 MB`.
pub fn size(octets: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let (mut unit, mut scale) = (0, 1_u64);
    while octets / scale >= 1_000 && unit + 1 < UNITS.len() {
        (unit, scale) = (unit + 1, scale * 1_000);
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    let (whole, tenths) = (octets / scale, octets % scale * 10 / scale);
    match unit > 0 && whole < 10 && tenths > 0 {
        true => format!("{whole}.{tenths} {name}"),
        false => format!("{whole} {name}"),
    }
}

/// A date-time group: `271129Z NOV 26`.
pub fn dtg(time: base::Utc) -> String {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let civil = time.civil();
    let month = MONTHS.get((civil.month as usize).wrapping_sub(1)).copied().unwrap_or_default();
    let (day, hour, minute) = (civil.day, civil.hour, civil.minute);
    format!("{day:02}{hour:02}{minute:02}Z {month} {:02}", civil.year % 100)
}

/// A number with a comma before each three digits.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn clusters_that_terminals_draw_differently_are_taken_apart() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        assert_eq!(line(family), "\u{1f468}\\u{200d}\\u{1f469}\\u{200d}\\u{1f467}");
        assert_eq!(line("\u{1f44d}\u{1f3fd}"), "\u{1f44d}\\u{1f3fd}");
        for kept in ["Tromsø e\u{301}", "日本", "نص لا", "नमस्ते", "می\u{200c}خواهم", "😀"]
        {
            assert_eq!(line(kept), kept);
        }
    }

    #[test]
    fn a_base_carries_few_marks() {
        let zalgo = format!("e{}x", "\u{301}".repeat(1_000));
        let shown = line(&zalgo);
        assert!(shown.starts_with("e\u{301}\u{301}\u{301}\u{301}\\u{301}"), "{shown}");
        assert_eq!(width("e\u{301}\u{301}"), 1);
    }

    #[test]
    fn a_wide_character_is_never_cut_in_half() {
        assert_eq!(fit("日本語", 5, '~'), "日本~");
        assert_eq!(fit("日本語", 4, '~'), "日~");
        assert_eq!(cell("日本語", 4, '~'), "日~ ");
        assert_eq!(cell("ab", 4, '~'), "ab  ");
        assert_eq!(fit("abc", 0, '~'), "");
    }

    #[test]
    fn long_lines_are_divided_at_blanks() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh", 4), ["abcd", "efgh"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("日本語", 5), ["日本", "語"]);
    }

    #[test]
    fn tabulators_reach_the_next_column_of_eight() {
        assert_eq!(lines("a\tb\n\tc\r\nd\u{1b}"), ["a       b", "        c", "d\\u{1b}"]);
    }

    #[test]
    fn sizes_times_and_counts_are_short() {
        let shown = [0, 999, 1_000, 1_250, 10_400, 10_000_000, 999_999].map(size);
        assert_eq!(shown, ["0 B", "999 B", "1 kB", "1.2 kB", "10 kB", "10 MB", "999 kB"]);
        assert_eq!(dtg(base::Utc(1_795_778_961_000_000)), "271129Z NOV 26");
        assert_eq!(
            [0, 999, 1_000, 500_000, 1_234_567].map(count),
            ["0", "999", "1,000", "500,000", "1,234,567"]
        );
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_its_columns_or_obeyed(text in any::<String>(), columns in 0..40_usize) {
            let shown = line(&text);
            prop_assert!(!shown.chars().any(shown::is_obeyed));
            prop_assert_eq!(width(&cell(&shown, columns, '~')), columns);
            for part in lines(&text).iter().flat_map(|line| wrap(line, columns)) {
                prop_assert!(width(&part) <= columns.max(MAX_CLUSTER));
                prop_assert!(!part.chars().any(shown::is_obeyed));
            }
        }
    }
}
