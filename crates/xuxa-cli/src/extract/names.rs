//! Names of extracted files.

/// Longest name, in octets, with the number.
const MAX_NAME: usize = 200;
/// Longest extension that is kept when a name is cut.
const MAX_ENDING: usize = 16;
/// Highest number added to a name.
const MAX_NUMBER: u32 = 9;

/// The names for a file, best first: `chart.bin`, `chart-1.bin` and so on to 9, then ones with its
/// mark, which is specific to the file. So the number of attempts is small however many files exist.
pub(super) fn candidates(name: &str, mark: &str) -> impl Iterator<Item = String> {
    let first = (0..=MAX_NUMBER).map(|number| match number {
        0 => String::new(),
        number => format!("-{number}"),
    });
    let marked = (0..=MAX_NUMBER).map(move |number| match number {
        0 => format!("-{mark}"),
        number => format!("-{mark}-{number}"),
    });
    first.chain(marked).map(|middle| with(name, &middle))
}

/// The name with `middle` before its extension, cut to the longest name.
fn with(name: &str, middle: &str) -> String {
    let (stem, ending) = split(name);
    let room = MAX_NAME.saturating_sub(ending.len() + middle.len());
    format!("{}{middle}{ending}", cut(stem, room))
}

/// A name, and its extension with the dot, if that is short.
fn split(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at @ 1..) if name.len() - at <= MAX_ENDING => name.split_at(at),
        _ => (name, ""),
    }
}

/// The beginning of a name, cut between characters.
fn cut(name: &str, most: usize) -> &str {
    let end = (0..=name.len().min(most)).rev().find(|end| name.is_char_boundary(*end));
    name.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// The last component of a path of any system, without control characters, and without characters with
/// a meaning at its ends: a dot hides a file, a dash is an option, a space is invisible.
pub(super) fn harmless(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).find(|part| !part.trim_matches(['.', ' ']).is_empty())?;
    let visible = |c: char| if base::shown::is_obeyed(c) { '_' } else { c };
    let name: String = last.chars().map(visible).collect();
    let name = name.trim_start_matches(|c: char| c.is_whitespace() || ".-~".contains(c));
    let name = name.trim_end_matches(|c: char| c.is_whitespace() || c == '.');
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_the_wire_do_no_harm() {
        for (wish, name) in [
            ("chart.bin", "chart.bin"),
            ("Lageplan Tromsø (2).pdf", "Lageplan Tromsø (2).pdf"),
            ("../../etc/passwd", "passwd"),
            ("/etc/cron.d/x", "x"),
            ("C:\\Temp\\a.txt", "a.txt"),
            ("x/..", "x"),
            ("dir/", "dir"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("~root", "root"),
            ("a\u{1b}[2J\nb\u{0}c\u{7}", "a_[2J_b_c_"),
            ("cod\u{202e}fdp.exe", "cod_fdp.exe"),
            ("  a. ", "a"),
        ] {
            assert_eq!(harmless(wish).as_deref(), Some(name), "{wish:?}");
        }
        for none in ["", ".", "..", "../..", "/", "--", " . "] {
            assert_eq!(harmless(none), None, "{none:?}");
        }
        let long = format!("{}.pdf", "ø".repeat(300));
        let cut = with(&long, "-7");
        assert!(cut.len() <= MAX_NAME && cut.ends_with("ø-7.pdf"), "{cut}");
        assert_eq!(with("a.tar.gz", "-1"), "a.tar-1.gz");
        assert_eq!(with("bashrc", "-1"), "bashrc-1");
    }

    #[test]
    fn the_names_for_a_file_are_few_and_end_with_its_own() {
        let all: Vec<String> = candidates("a.bin", "0123").collect();
        assert_eq!(all[..3], ["a.bin", "a-1.bin", "a-2.bin"]);
        assert_eq!(all[9..12], ["a-9.bin", "a-0123.bin", "a-0123-1.bin"]);
        assert_eq!(all.len(), 20);
    }
}
