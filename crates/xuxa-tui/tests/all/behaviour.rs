//! What keys, alerts and a slow or lost store do.

use base::Precedence;
use ratatui::crossterm::event::KeyCode;
use xuxa_tui::model::{Order, Row};
use xuxa_tui::{Answer, App, Backend as _, Connection, Effect, Event, Palette};

use crate::harness::{Harness, NOW, row, stored};

pub(crate) const SIZE: (u16, u16) = (80, 24);

pub(crate) fn harness() -> Harness {
    Harness::new(SIZE, Palette::FULL)
}

/// The screen's line that has this text.
pub(crate) fn line(harness: &Harness, text: &str) -> String {
    let screen = harness.screen();
    let found = screen.lines().find(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("no line has {text:?} in\n{screen}")).to_owned()
}

pub(crate) fn shows(harness: &Harness, text: &str) -> bool {
    harness.screen().contains(text)
}

#[test]
fn a_flash_interrupts_and_takes_its_place_on_top() {
    let mut harness = harness();
    harness.key(KeyCode::Down);
    harness.key(KeyCode::Down);
    let selected = line(&harness, "> ");
    let before = harness.screen();
    let place = before.lines().position(|line| line.contains(" !! FLASH")).unwrap();
    harness.arrive(
        row(Precedence::Flash, "act-ops", "CONTACT", 0),
        stored("/S=X", "CONTACT", "SHIPS"),
    );
    assert_eq!(harness.bells, 1);
    assert!(harness.screen().lines().nth(1).unwrap().contains("!! FLASH from act-ops: CONTACT"));
    // One row lower for the banner: it stands above the older Flash, below Override.
    let at = harness
        .screen()
        .lines()
        .position(|line| {
            line.contains(" !! FLASH") && line.contains("CONTACT") && !line.contains("from")
        })
        .unwrap();
    assert_eq!(at, place + 1);
    assert_eq!(line(&harness, "> "), selected, "the selection stays on its message");

    harness.control('g');
    assert!(shows(&harness, "SHIPS") && !shows(&harness, "Ctrl-G read"));
    harness.keys("q");
    harness.keys("o");
    harness.arrive(row(Precedence::Routine, "act-log", "STORES", 0), stored("/S=X", "STORES", "S"));
    assert_eq!(harness.bells, 1, "only what interrupts rings");
    let screen = harness.screen();
    assert!(
        screen.lines().nth(3).unwrap().contains("STORES"),
        "by arrival the newest is on top\n{screen}"
    );
    assert!(shows(&harness, "New: ROUTINE from act-log: STORES"));
}

#[test]
fn the_most_urgent_alert_is_in_the_banner_and_writing_goes_on_behind_it() {
    let mut harness = harness();
    harness.keys("cact-ops");
    for (precedence, subject) in [(Precedence::Flash, "ONE"), (Precedence::Override, "TWO")] {
        harness.arrive(row(precedence, "x", subject, 0), stored("/S=X", subject, "TEXT OF IT"));
    }
    assert!(line(&harness, "Ctrl-G").contains("OVERRIDE from x: TWO"));
    assert!(line(&harness, "Ctrl-G").contains("(+1)"));
    harness.control('g');
    assert!(shows(&harness, "TEXT OF IT"));
    harness.keys("q");
    assert!(shows(&harness, "Write a message") && shows(&harness, "act-ops"));
    harness.control('x');
    assert!(!shows(&harness, "Ctrl-G"));
}

#[test]
fn a_message_is_read_answered_forwarded_extracted_acknowledged_and_deleted() {
    let mut harness = harness();
    assert!(shows(&harness, "8 messages, 5 unread"));
    harness.keys("j\n");
    assert!(shows(&harness, "ALL UNITS REPORT READY") && shows(&harness, "orders.pdf (2 MB)"));
    harness.keys("r");
    let screen = harness.screen();
    assert!(
        screen.contains("Answer to message 5") && screen.contains("Re: SITREP 005"),
        "{screen}"
    );
    assert!(screen.contains("!! FLASH") && screen.contains("PRMD=ACT"), "{screen}");
    harness.keys("WILCO");
    harness.control('s');
    assert!(shows(&harness, "the MTA accepted the message: Re: SITREP 005"));
    harness.keys("f");
    assert!(shows(&harness, "Forward message 5"));
    harness.keys("me");
    harness.control('s');
    harness.alerts();
    harness.control('x');
    assert!(shows(&harness, "the MTA accepted") || shows(&harness, "SITREP 005"));
    harness.keys("a");
    assert!(shows(&harness, "gets a notification"));
    harness.keys("a");
    assert!(shows(&harness, "acknowledged already"));

    let dir = tempfile::tempdir().unwrap();
    harness.keys("x");
    assert!(shows(&harness, "Write 2 files into this directory"));
    harness.control('u');
    harness.keys(&format!("{}\n", dir.path().join("out").display()));
    assert!(shows(&harness, "2 files written"));
    assert_eq!(std::fs::read_dir(dir.path().join("out")).unwrap().count(), 2);
    harness.keys("x\n");
    assert!(shows(&harness, "cannot write"), "nothing is overwritten");

    harness.keys("d");
    assert!(shows(&harness, "Delete this message?"));
    harness.keys("n");
    assert!(shows(&harness, "orders.pdf"), "it is still there");
    harness.keys("dy");
    assert!(shows(&harness, "deleted") && shows(&harness, "Mailbox by precedence"));
    assert!(!harness.screen().lines().any(|l| l.contains("FLASH") && l.contains("  SITREP 005")));
}

#[test]
fn leaving_a_draft_asks_and_a_kept_one_comes_back() {
    let mut harness = harness();
    harness.keys("cact-ops\n\n\nFUEL");
    harness.keys("\u{1b}");
    assert!(shows(&harness, "This message was not sent."));
    harness.keys("\u{1b}");
    assert!(shows(&harness, "Write a message"));
    harness.keys("\u{1b}k");
    assert!(shows(&harness, "1 draft (c)"));
    harness.keys("q");
    assert!(shows(&harness, "1 message is not sent, and lost if you quit.") && !harness.has_quit);
    harness.keys("n");
    harness.control('c');
    harness.control('c');
    assert!(!harness.has_quit, "a second Ctrl-C does not lose it either");
    harness.keys("\u{1b}c");
    assert!(shows(&harness, "FUEL"));
    harness.keys("\u{1b}d");
    assert!(!shows(&harness, "draft (c)"));
    harness.keys("q");
    assert!(harness.has_quit);
}

#[test]
fn an_untouched_form_is_left_without_a_question() {
    let mut harness = harness();
    harness.keys("c\u{1b}");
    assert!(shows(&harness, "Mailbox by precedence"));
    harness.control('c');
    assert!(harness.has_quit);
}

#[test]
fn what_could_not_be_sent_comes_back_with_the_same_identifier() {
    let mut harness = harness();
    harness.keys("c");
    harness.control('s');
    assert!(shows(&harness, "no recipient"));
    harness.keys("nobody");
    harness.control('s');
    assert!(shows(&harness, "recipient \"nobody\": neither an O/R address"));
    harness.control('u');
    harness.keys("act-ops\n\n\nFUEL");
    harness.memory.set_away(true);
    harness.is_held = true;
    harness.control('s');
    assert!(harness.perform_one(), "the check");
    let identifier = match &harness.held[0] {
        Effect::Submit(_, draft) => draft.identifier.clone(),
        other => panic!("{other:?}"),
    };
    assert!(shows(&harness, "Mailbox by precedence"), "the form is out of the way");
    harness.control('c');
    assert!(shows(&harness, "1 message is being submitted") && !harness.has_quit);
    harness.keys("n");
    harness.is_held = false;
    while harness.perform_one() {}
    assert!(shows(&harness, "NOT SENT") && shows(&harness, "FUEL"));
    harness.memory.set_away(false);
    harness.bind();
    harness.is_held = true;
    harness.control('s');
    harness.perform_one();
    let again = harness.held.iter().find_map(|effect| match effect {
        Effect::Submit(_, draft) => Some(draft.identifier.clone()),
        _ => None,
    });
    assert_eq!(again, Some(identifier));
}

#[test]
fn a_domain_without_a_route_is_a_question() {
    let mut harness = harness();
    harness.keys("c/C=XX/ADMD=A/S=B");
    harness.control('s');
    assert!(shows(&harness, "no route to the domain"));
    harness.keys("n");
    assert!(shows(&harness, "Write a message"));
    harness.control('s');
    harness.keys("y");
    assert!(shows(&harness, "the MTA accepted the message"));
}

#[test]
fn a_list_is_searched_and_filtered() {
    let mut harness = harness();
    harness.keys("/sitrep 003\n");
    assert!(shows(&harness, "SITREP 003") && !shows(&harness, "SITREP 004"));
    assert!(shows(&harness, "with \"sitrep 003\""));
    harness.keys("/");
    harness.control('u');
    harness.keys("nothing has it\n");
    assert!(shows(&harness, "No message has this text."));
    harness.keys("\u{1b}");
    assert!(shows(&harness, "SITREP 004") && shows(&harness, "SITREP 002"));
    harness.keys("u");
    assert!(!shows(&harness, "SITREP 002"), "it was read");
}

/// Numbers of the rows that the list has, and the one that is selected.
pub(crate) fn selected(harness: &Harness) -> Option<String> {
    let screen = harness.screen();
    screen.lines().find(|line| line.starts_with('>')).map(str::to_owned)
}

#[test]
fn a_mailbox_of_half_a_million_is_never_read_whole() {
    let mut harness = Harness::unbound(SIZE, Palette::FULL);
    let total = 500_000;
    for number in 1..=total {
        let mut row = row(Precedence::ALL[number as usize % 6], "x", &format!("N{number:06}"), 0);
        row.is_unread = false;
        let empty = xuxa_tui::memory::Stored {
            fields: Vec::new(),
            text: String::new(),
            files: Vec::new(),
            answer_to: Vec::new(),
            wants_receipt: false,
        };
        harness.memory.deliver(row, empty);
    }
    harness.bind();
    assert!(shows(&harness, "500,000 messages, 0 unread"));
    assert!(selected(&harness).unwrap().contains("N499997"), "{:?}", selected(&harness));
    harness.keys("o");
    assert!(selected(&harness).unwrap().contains("N500000"));
    for step in 1..=700 {
        harness.key(KeyCode::Down);
        let expected = format!("N{:06}", total - step);
        assert!(selected(&harness).unwrap().contains(&expected), "{step}");
    }
    for step in (0..700).rev() {
        harness.key(KeyCode::Up);
        assert!(selected(&harness).unwrap().contains(&format!("N{:06}", total - step)));
    }
    harness.key(KeyCode::End);
    assert!(selected(&harness).unwrap().contains("N000001"));
    harness.key(KeyCode::PageUp);
    harness.key(KeyCode::Home);
    assert!(selected(&harness).unwrap().contains("N500000"));
    assert!(harness.memory.largest_page() <= 300, "{}", harness.memory.largest_page());
}

#[test]
fn a_slow_store_never_stops_the_keys() {
    let mut harness = harness();
    harness.is_held = true;
    harness.keys("\n");
    assert!(shows(&harness, "Mailbox by precedence"));
    harness.event(Event::Tick(base::Utc(NOW.0 + 7_000_000)));
    assert!(shows(&harness, "waiting for an answer, 7 s"));
    harness.keys("j");
    assert!(selected(&harness).unwrap().contains("SITREP 005"));
    harness.keys("c");
    harness.keys("act-ops");
    assert!(shows(&harness, "Write a message"));
    harness.keys("\u{1b}d");
    // Another message is asked for: the answer to the first one comes late, and is not shown.
    harness.keys("\n");
    harness.is_held = false;
    while harness.perform_one() {}
    assert!(line(&harness, "Subject").contains("SITREP 005"), "{}", harness.screen());
}

#[test]
fn a_lost_association_is_shown_and_bound_again() {
    let mut harness = harness();
    harness.memory.set_away(true);
    harness.event(Event::Connection(Connection::Lost {
        reason: "the store closed the connection".to_owned(),
        retry_in: 8,
    }));
    assert!(shows(&harness, "NOT BOUND, tried again in 8 s") && shows(&harness, "SITREP 001"));
    harness.event(Event::Tick(base::Utc(NOW.0 + 3_000_000)));
    assert!(shows(&harness, "tried again in 5 s"));
    harness.keys("\n");
    assert!(shows(&harness, "no association with the message store"));
    // Meanwhile something arrives; the list has it once it is bound again.
    harness
        .memory
        .deliver(row(Precedence::Override, "x", "MEANWHILE", 0), stored("/S=X", "a", "b"));
    harness.memory.set_away(false);
    harness.bind();
    assert!(shows(&harness, "MEANWHILE") && shows(&harness, "bound to"));
    // It interrupts as an alert does.
    assert!(shows(&harness, "OVERRIDE from x: MEANWHILE"), "{}", harness.screen());
}

#[test]
fn a_message_that_is_gone_leaves_the_list() {
    let mut harness = harness();
    let other = async { harness.memory.delete(6).await };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(other)
        .unwrap();
    assert!(selected(&harness).unwrap().contains("SITREP 006"));
    harness.keys("\n");
    assert!(shows(&harness, "message 6 is no longer in the mailbox"));
    assert!(!selected(&harness).unwrap().contains("SITREP 006"));
}

#[test]
fn what_arrives_while_a_page_is_asked_for_is_not_lost() {
    let mut harness = harness();
    harness.is_held = true;
    harness.keys("o");
    let page = harness.held.pop_front().unwrap();
    let Effect::List(token, query, from, count) = page else { panic!("{page:?}") };
    assert_eq!(query.order, Order::Arrival);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let page = runtime.block_on(harness.memory.list(query, from, count)).unwrap();
    harness.arrive(row(Precedence::Flash, "x", "BETWEEN", 0), stored("/S=X", "a", "b"));
    harness.event(Event::Answered(token, Ok(Answer::Page(page))));
    assert!(
        harness.screen().lines().any(|l| l.contains("BETWEEN") && l.contains("1.2 kB")),
        "{}",
        harness.screen()
    );
}

#[test]
fn an_answer_that_nobody_waits_for_changes_nothing() {
    let mut app = App::new(Default::default(), Palette::FULL, SIZE, NOW, 1);
    let row: Row = row(Precedence::Flash, "x", "y", 0);
    let page = xuxa_tui::model::Page { rows: vec![row], is_last: true };
    assert!(app.handle(Event::Answered(99, Ok(Answer::Page(page)))).is_empty());
}

#[test]
fn a_signal_ends_without_a_question() {
    let mut harness = harness();
    harness.keys("cact-ops");
    harness.event(Event::Stop);
    assert!(harness.has_quit);
}
