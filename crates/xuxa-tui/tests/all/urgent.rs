//! What was urgent before the start or without an association, the pane beside the list, and acknowledgements.

use base::Precedence;
use ratatui::crossterm::event::KeyCode;
use xuxa_tui::model::Row;
use xuxa_tui::{Connection, Effect, Event, Palette};

use crate::behaviour::{SIZE, harness, line, selected, shows};
use crate::harness::{Harness, row, stored};

#[test]
fn what_interrupts_and_was_unread_before_the_start_is_in_the_banner() {
    let mut harness = Harness::unbound(SIZE, Palette::FULL);
    let deliver = |harness: &Harness, precedence, subject: &str, is_unread| {
        let row = Row { is_unread, ..row(precedence, "x", subject, 5) };
        harness.memory.deliver(row, stored("/S=X", subject, "TEXT"))
    };
    deliver(&harness, Precedence::Flash, "OLD UNREAD", true);
    deliver(&harness, Precedence::Override, "OLD READ", false);
    deliver(&harness, Precedence::Immediate, "LOWER", true);
    harness.bind();
    assert!(line(&harness, "Ctrl-G").contains("FLASH from x: OLD UNREAD"));
    assert!(!line(&harness, "Ctrl-G").contains("(+"), "{}", harness.screen());
    assert_eq!(harness.bells, 1);
    // What was put away does not come back with the association.
    harness.control('x');
    harness.memory.set_away(true);
    let lost = Connection::Lost { reason: "lost".to_owned(), retry_in: 1 };
    harness.event(Event::Connection(lost));
    harness.memory.set_away(false);
    harness.bind();
    assert!(!shows(&harness, "Ctrl-G") && harness.bells == 1);
}

#[test]
fn what_came_while_the_list_was_scrolled_and_unbound_interrupts() {
    let mut harness = Harness::unbound(SIZE, Palette::FULL);
    for number in 0..900 {
        let row =
            Row { is_unread: false, ..row(Precedence::Routine, "x", &format!("N{number:03}"), 5) };
        harness.memory.deliver(row, stored("/S=X", "a", "b"));
    }
    harness.bind();
    harness.key(KeyCode::End);
    let before = selected(&harness);
    harness.memory.set_away(true);
    let lost = Connection::Lost { reason: "lost".to_owned(), retry_in: 1 };
    harness.event(Event::Connection(lost));
    harness.memory.deliver(row(Precedence::Flash, "x", "MEANWHILE", 0), stored("/S=X", "a", "b"));
    harness.memory.set_away(false);
    harness.bind();
    assert!(line(&harness, "Ctrl-G").contains("MEANWHILE") && harness.bells == 1);
    assert_eq!(selected(&harness), before, "the list keeps its place");
}

#[test]
fn the_pane_beside_the_list_shows_the_selected_message_or_none() {
    let mut harness = Harness::new((150, 40), Palette::FULL);
    harness.keys("j\n");
    assert!(shows(&harness, "orders.pdf") && selected(&harness).unwrap().contains("SITREP 005"));
    harness.keys("q");
    assert!(shows(&harness, "orders.pdf"));
    harness.keys("j");
    let screen = harness.screen();
    assert!(!screen.contains("orders.pdf") && screen.contains("Enter shows"), "{screen}");
    harness.keys("k");
    assert!(shows(&harness, "orders.pdf"), "it was fetched already");
    // The keys move on before the message comes.
    harness.is_held = true;
    harness.keys("j\nj");
    harness.is_held = false;
    while harness.perform_one() {}
    assert!(selected(&harness).unwrap().contains("SITREP 004"), "{}", harness.screen());
}

#[test]
fn an_acknowledgement_is_asked_for_once() {
    let mut harness = harness();
    harness.keys("j\n");
    harness.is_held = true;
    harness.keys("aa");
    let sent = harness.held.iter().filter(|effect| matches!(effect, Effect::Acknowledge(..)));
    assert_eq!(sent.count(), 1);
    assert!(shows(&harness, "is being sent"));
    harness.is_held = false;
    while harness.perform_one() {}
    harness.keys("na");
    assert!(shows(&harness, "did not ask"));
    harness.keys("pa");
    assert!(shows(&harness, "acknowledged already"), "after it was opened again");
    // A report asks for nothing, and has no originator.
    harness.keys("q/007\n\na");
    assert!(shows(&harness, "only a message is acknowledged"));
}
