//! Text from the wire that tries to do more than to be read.

use base::Precedence;
use proptest::prelude::*;
use xuxa_tui::Palette;
use xuxa_tui::model::{Kind, SentState};

use crate::harness::{Harness, row, stored};

/// Texts that a terminal would obey, or that are wider or narrower than they seem.
const HOSTILE: &[&str] = &[
    "\u{1b}[2J\u{1b}[31mOWNED",
    "\u{1b}]0;title\u{7}\u{9b}2J\u{9d}x\u{9c}",
    "a\rb\nc\td\u{0}\u{8}\u{7f}",
    "\u{202e}evil\u{202c} \u{2066}x\u{2069}",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{1f44d}\u{1f3fd} \u{1f1e9}\u{1f1ea}",
    "日本語日本語日本語日本語日本語日本語日本語日本語",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    "\u{301}\u{301}leading marks",
    "\u{feff}\u{200b}\u{2060}invisible\u{e0041}",
    "عربي עברית نص لا",
    "\u{1100}\u{1161}\u{11a8} \u{0e33}\u{fdfd}",
];

/// No cell has anything that a terminal obeys, and no row is wider than the screen.
fn assert_harmless(harness: &Harness) {
    let buffer = harness.buffer();
    for cell in &buffer.content {
        assert!(!cell.symbol().chars().any(base::shown::is_obeyed), "{:?}", cell.symbol());
        assert!(cell.symbol().chars().count() <= 16, "{:?}", cell.symbol());
    }
    for line in harness.screen().lines() {
        let width = xuxa_tui::text::width(line);
        assert!(width <= usize::from(buffer.area.width), "{width}: {line}");
    }
}

fn show_everywhere(text: &str, size: (u16, u16)) {
    let mut harness = Harness::new(size, Palette::FULL);
    let mut hostile = stored(text, text, &format!("{text}\n{text}"));
    hostile.fields =
        vec![(text.to_owned(), text.to_owned()), ("Subject".to_owned(), text.repeat(20))];
    hostile.files = vec![(text.to_owned(), vec![1])];
    let number = harness.arrive(row(Precedence::Override, text, text, 0), hostile);
    assert!(number > 0);
    assert_harmless(&harness);
    harness.control('g');
    assert_harmless(&harness);
    harness.keys("x");
    assert_harmless(&harness);
    harness.keys("\u{1b}R");
    assert_harmless(&harness);
    harness.event(xuxa_tui::Event::Paste(text.to_owned()));
    assert_harmless(&harness);
    harness.control('s');
    assert_harmless(&harness);
    harness.keys("\u{1b}k");
    harness.keys("\u{1b}\u{1b}d");
    assert_harmless(&harness);
    harness.keys("n/");
    harness.event(xuxa_tui::Event::Paste(text.to_owned()));
    harness.keys("\n");
    assert_harmless(&harness);
}

#[test]
fn nothing_from_the_wire_is_obeyed() {
    for text in HOSTILE {
        for size in [(80, 24), (160, 50), (33, 9)] {
            show_everywhere(text, size);
        }
    }
}

#[test]
fn the_columns_behind_a_hostile_subject_stay_where_they_are() {
    let mut harness = Harness::new((80, 24), Palette::FULL);
    let size_at = |harness: &Harness, subject: &str| {
        let screen = harness.screen();
        let line = screen
            .lines()
            .find(|l| l.contains(subject) && l.contains("1.2 kB"))
            .unwrap_or_else(|| panic!("{subject} in\n{screen}"))
            .to_owned();
        let at = line.find("1.2 kB").unwrap_or_else(|| panic!("{line}"));
        xuxa_tui::text::width(&line[..at])
    };
    let expected = size_at(&harness, "SITREP 001");
    for text in HOSTILE {
        let mut row = row(Precedence::Override, text, &format!("ZZ{text}"), 0);
        row.kind = Kind::Message;
        let number = harness.arrive(row, stored("x", "y", "z"));
        assert_eq!(size_at(&harness, "ZZ"), expected, "{text:?}");
        harness.keys("g");
        harness.keys("dy");
        assert!(number > 0);
    }
}

#[test]
fn states_of_sent_items_have_words_of_their_own() {
    let words = [SentState::Accepted, SentState::InDoubt, SentState::Failed("x".to_owned())];
    assert_eq!(words.map(|state| state.word()), ["accepted", "IN DOUBT", "FAILED"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_text_is_harmless(text in any::<String>(), columns in 5..170_u16, rows in 3..50_u16) {
        show_everywhere(&text, (columns, rows));
    }
}
