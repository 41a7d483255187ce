//! Every view at 80 by 24 and 160 by 50, with its styles; the same text without colour.

use base::Precedence;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::{Color, Modifier};
use xuxa_tui::{Connection, Event, Palette};

use crate::harness::{Harness, lines, row, stored, styles};

const SIZES: [(u16, u16); 2] = [(80, 24), (160, 50)];
const PLAIN: Palette = Palette { has_colour: false, has_attributes: true, has_unicode: true };
const DUMB: Palette = Palette { has_colour: false, has_attributes: false, has_unicode: false };

/// A view, and how to come there.
type Scene = (&'static str, fn(&mut Harness));

const SCENES: [Scene; 13] = [
    ("mailbox", |_| {}),
    ("arrival", |h| {
        h.keys("o");
        h.key(KeyCode::Down);
    }),
    ("reading", |h| {
        h.keys("j\n");
    }),
    ("alert", |h| {
        let stored = stored("/C=IT/ADMD=NET/PRMD=ACT/S=OPS", "CONTACT", "TWO SHIPS.");
        h.arrive(row(Precedence::Flash, "act-ops", "CONTACT", 0), stored);
    }),
    ("compose", |h| {
        h.keys("cact\t, nap");
    }),
    ("compose_text", |h| {
        h.keys("cact-ops\n\n");
        h.keys("f\nFUEL STATE\nABC\n\n\n\n");
        h.keys("1. FUEL FOR THREE DAYS.\n2. THIS LINE IS LONGER THAN THE SCREEN IS WIDE, AND SO IT IS WRAPPED AT A BLANK.");
    }),
    ("answer", |h| h.keys("j\nR")),
    ("leave", |h| h.keys("cx\u{1b}")),
    ("delete", |h| h.keys("d")),
    ("sent", |h| {
        h.keys("cact-ops, me\n\nf\nFUEL STATE\n\n\n\n\n1. THREE DAYS.");
        h.control('s');
        h.alerts();
        h.control('x');
        h.keys("2");
    }),
    ("book", |h| h.keys("3j")),
    ("help", |h| h.keys("?")),
    ("search", |h| h.keys("/003\n")),
];

#[test]
fn each_view_looks_as_in_its_snapshot() {
    for size in SIZES {
        for (name, come) in SCENES {
            let mut harness = Harness::new(size, Palette::FULL);
            come(&mut harness);
            let buffer = harness.buffer();
            let shown = format!("{}\n{}", lines(&buffer), styles(&buffer));
            insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), shown);
            });
        }
    }
}

#[test]
fn an_association_that_is_lost_or_refused_is_shown() {
    let lost = Connection::Lost {
        reason: "cannot reach 127.0.0.1:5017: connection refused. Is the MTA running?".to_owned(),
        retry_in: 8,
    };
    let refused = Connection::Refused(
        "the store refused the bind: authentication error. Correct `password` of the profile \"hq\", and start again"
            .to_owned(),
    );
    for (name, connection) in [("lost", lost), ("refused", refused)] {
        let mut harness = Harness::unbound(SIZES[0], Palette::FULL);
        harness.event(Event::Connection(connection));
        let buffer = harness.buffer();
        let shown = format!("{}\n{}", lines(&buffer), styles(&buffer));
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, shown);
        });
    }
}

#[test]
fn without_colour_the_text_is_the_same() {
    for size in SIZES {
        for (name, come) in SCENES {
            let of_palette = |palette| {
                let mut harness = Harness::new(size, palette);
                come(&mut harness);
                harness.buffer()
            };
            let full = of_palette(Palette::FULL);
            let plain = of_palette(PLAIN);
            assert_eq!(lines(&full), lines(&plain), "{name}");
            assert!(
                plain.content.iter().all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset))
            );
            assert!(!styles(&plain).is_empty(), "bold and reversed stay: {name}");
            let dumb = of_palette(DUMB);
            assert_eq!(styles(&dumb), "", "{name}");
            assert!(lines(&dumb).is_ascii(), "{name}");
            assert!(dumb.content.iter().all(|cell| cell.modifier == Modifier::empty()));
        }
    }
}

#[test]
fn letters_and_marks_carry_the_meaning_on_a_dumb_terminal() {
    let harness = Harness::new((80, 24), DUMB);
    let screen = harness.screen();
    let line = |text: &str| screen.lines().find(|line| line.contains(text)).unwrap().to_owned();
    assert!(line("OVERRIDE").starts_with("> * !!! OVERRIDE"), "selected and unread: {screen}");
    assert!(line("FLASH").contains("!! FLASH"));
    assert!(
        line("IMMEDIATE").starts_with("      ! IMMEDIATE")
            || line("IMMEDIATE").starts_with("  *   ! IMMEDIATE")
    );
}

#[test]
fn every_size_is_drawn() {
    for (_, come) in SCENES {
        let mut harness = Harness::new((80, 24), Palette::FULL);
        come(&mut harness);
        for size in [
            (1, 1),
            (2, 3),
            (10, 4),
            (20, 5),
            (40, 10),
            (79, 23),
            (139, 12),
            (140, 50),
            (300, 100),
            (500, 2),
        ] {
            harness.resize(size);
            harness.buffer();
        }
    }
}
