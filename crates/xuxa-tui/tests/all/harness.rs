//! The interface without its edge: effects are performed at once on the mailbox in memory.

use base::{Precedence, Utc};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use std::collections::VecDeque;
use tokio::runtime::Runtime;
use xuxa_tui::memory::{Memory, Stored};
use xuxa_tui::model::{BookEntry, Kind, Number, Row, Who};
use xuxa_tui::{Answer, App, Backend as _, Connection, Effect, Event, Palette, Token};

/// 27 November 2026, 11:29 UTC.
pub(crate) const NOW: Utc = Utc(1_795_778_961_000_000);

fn now() -> Utc {
    NOW
}

/// The interface, its mailbox, and what was asked for and not performed yet.
pub(crate) struct Harness {
    pub(crate) app: App,
    pub(crate) memory: Memory,
    pub(crate) held: VecDeque<Effect>,
    /// Effects are not performed by themselves.
    pub(crate) is_held: bool,
    pub(crate) bells: usize,
    pub(crate) has_quit: bool,
    runtime: Runtime,
    size: (u16, u16),
}

pub(crate) fn stored(from: &str, subject: &str, text: &str) -> Stored {
    let fields = [
        ("From", from),
        ("To", "/C=IT/ADMD=NET/PRMD=HQ/S=OPS"),
        ("Info", "/C=IT/ADMD=NET/PRMD=NAPLES/S=OPS\n/C=IT/ADMD=NET/PRMD=ACT/O=STAFF/S=LOG"),
        ("Subject", subject),
        ("SIC", "ABC, DEF"),
        ("Message type", "exercise STEADY"),
    ];
    Stored {
        fields: fields.map(|(label, value)| (label.to_owned(), value.to_owned())).into(),
        text: text.to_owned(),
        files: Vec::new(),
        answer_to: vec![from.to_owned()],
        wants_receipt: false,
    }
}

pub(crate) fn row(precedence: Precedence, from: &str, subject: &str, minutes: u64) -> Row {
    Row {
        number: 0,
        kind: Kind::Message,
        precedence,
        is_unread: true,
        from: from.to_owned(),
        subject: subject.to_owned(),
        time: Utc(NOW.0 - minutes * 60_000_000),
        size: 1_200,
    }
}

impl Harness {
    /// An interface that is not yet bound, with an address book.
    pub(crate) fn unbound(size: (u16, u16), palette: Palette) -> Harness {
        let who = Who {
            profile: "hq".to_owned(),
            user: "/C=IT/ADMD=NET/PRMD=HQ/S=OPS".to_owned(),
            server: "127.0.0.1:5017".to_owned(),
        };
        let mut memory = Memory::new(who.clone(), now);
        let entry = |name: &str, addresses: &[&str]| BookEntry {
            name: name.to_owned(),
            addresses: addresses.iter().map(|&address| address.to_owned()).collect(),
            is_group: addresses.len() > 1,
        };
        memory.book = vec![
            entry("act-ops", &["/C=IT/ADMD=NET/PRMD=ACT/S=OPS"]),
            entry("all-ops", &["act-ops", "naples-ops"]),
            entry("me", &["/C=IT/ADMD=NET/PRMD=HQ/S=OPS"]),
            entry("naples-ops", &["/C=IT/ADMD=NET/PRMD=NAPLES/S=OPS"]),
        ];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Harness {
            app: App::new(who, palette, size, NOW, 7),
            memory,
            held: VecDeque::new(),
            is_held: false,
            bells: 0,
            has_quit: false,
            runtime,
            size,
        }
    }

    /// One that is bound to a mailbox with a message of each precedence, and some more.
    pub(crate) fn new(size: (u16, u16), palette: Palette) -> Harness {
        let mut harness = Harness::unbound(size, palette);
        let text = "1. ALL UNITS REPORT READY.\n2. THE WEATHER IS FAIR, AND IT WILL STAY SO UNTIL THE CONVOY HAS PASSED THE STRAIT.\n\n3. ACKNOWLEDGE.";
        for (at, precedence) in Precedence::ALL.into_iter().cycle().take(8).enumerate() {
            let subject = format!("SITREP {:03}", at + 1);
            let from = "/C=IT/ADMD=NET/PRMD=ACT/S=OPS";
            let mut stored = stored(from, &subject, text);
            let mut row = row(precedence, "act-ops", &subject, 90 - at as u64 * 7);
            row.is_unread = at % 3 != 1;
            if at == 4 {
                stored.files = vec![
                    ("chart.png".to_owned(), vec![1; 12_345]),
                    ("orders.pdf".to_owned(), vec![2; 2_000_000]),
                ];
                stored.wants_receipt = true;
            }
            if at == 6 {
                (row.kind, stored.answer_to) = (Kind::NonDelivery, Vec::new());
            }
            harness.memory.deliver(row, stored);
        }
        harness.bind();
        // The Override that was unread before the start.
        harness.control('x');
        harness.bells = 0;
        harness
    }

    pub(crate) fn bind(&mut self) {
        self.runtime.block_on(self.memory.connect()).unwrap();
        self.event(Event::Connection(Connection::Bound));
    }

    /// The event, and all that follows from it.
    pub(crate) fn event(&mut self, event: Event) {
        let effects = self.app.handle(event);
        self.held.extend(effects);
        while !self.is_held && self.perform_one() {}
    }

    /// Performs the effect that was asked for first.
    pub(crate) fn perform_one(&mut self) -> bool {
        let Some(effect) = self.held.pop_front() else { return false };
        if let Some((token, answer)) = self.performed(effect) {
            let effects = self.app.handle(Event::Answered(token, answer));
            self.held.extend(effects);
        }
        true
    }

    fn performed(
        &mut self,
        effect: Effect,
    ) -> Option<(Token, Result<Answer, xuxa_tui::BackendError>)> {
        let memory = &self.memory;
        let answer = async {
            Some(match effect {
                Effect::List(token, query, from, count) => {
                    (token, memory.list(query, from, count).await.map(Answer::Page))
                }
                Effect::Count(token) => (token, memory.counts().await.map(Answer::Counts)),
                Effect::Open(token, number) => {
                    (token, memory.open(number).await.map(|o| Answer::Opened(Box::new(o))))
                }
                Effect::Extract(token, number, to) => {
                    (token, memory.extract(number, to).await.map(Answer::Extracted))
                }
                Effect::Delete(token, number) => {
                    (token, memory.delete(number).await.map(|()| Answer::Deleted))
                }
                Effect::Check(token, draft) => {
                    (token, memory.check(&draft).await.map(Answer::Checked))
                }
                Effect::Submit(token, draft) => {
                    (token, memory.submit(*draft).await.map(|()| Answer::Submitted))
                }
                Effect::Acknowledge(token, number) => {
                    (token, memory.acknowledge(number).await.map(|()| Answer::Acknowledged))
                }
                Effect::Sent(token, count) => (token, memory.sent(count).await.map(Answer::Sent)),
                Effect::Book(token) => (token, memory.book().await.map(Answer::Book)),
                Effect::Bell => {
                    self.bells += 1;
                    return None;
                }
                Effect::Quit => {
                    self.has_quit = true;
                    return None;
                }
                Effect::Redraw => return None,
            })
        };
        self.runtime.block_on(answer)
    }

    /// A message arrives, and its alert.
    pub(crate) fn arrive(&mut self, row: Row, stored: Stored) -> Number {
        let number = self.memory.deliver(row, stored);
        self.alerts();
        number
    }

    /// All alerts that the mailbox has.
    pub(crate) fn alerts(&mut self) {
        let wait = std::time::Duration::from_millis(1);
        while let Ok(Ok(row)) = {
            let alert = async { tokio::time::timeout(wait, self.memory.alert()).await };
            self.runtime.block_on(alert)
        } {
            self.event(Event::Alert(row));
        }
    }

    /// Types characters; `\n` is Enter, `\t` Tab, `\u{1b}` Escape.
    pub(crate) fn keys(&mut self, text: &str) {
        for c in text.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{1b}' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            self.key(code);
        }
    }

    pub(crate) fn key(&mut self, code: KeyCode) {
        self.event(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    pub(crate) fn control(&mut self, c: char) {
        self.event(Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)));
    }

    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.event(Event::Resized(size.0, size.1));
    }

    /// The screen.
    pub(crate) fn buffer(&self) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(self.size.0, self.size.1)).unwrap();
        terminal.draw(|frame| self.app.draw(frame)).unwrap();
        terminal.backend().buffer().clone()
    }

    /// The lines of the screen, without blanks at their ends.
    pub(crate) fn screen(&self) -> String {
        lines(&self.buffer())
    }
}

/// The lines of a buffer, without blanks at their ends.
pub(crate) fn lines(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..buffer.area.width {
            if skip == 0 {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                skip = xuxa_tui::text::width(symbol).saturating_sub(1);
            } else {
                skip -= 1;
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Where a buffer has another style than plain: `row columns style`.
pub(crate) fn styles(buffer: &Buffer) -> String {
    let style = |x: u16, y: u16| {
        let cell = &buffer[(x, y)];
        let mut parts = Vec::new();
        if cell.fg != Color::Reset {
            parts.push(cell.fg.to_string());
        }
        if cell.bg != Color::Reset {
            parts.push(format!("on {}", cell.bg));
        }
        if cell.modifier != Modifier::empty() {
            parts.push(format!("{:?}", cell.modifier).to_lowercase());
        }
        parts.join(" ")
    };
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut x = 0;
        while x < buffer.area.width {
            let first = x;
            let own = style(x, y);
            while x < buffer.area.width && style(x, y) == own {
                x += 1;
            }
            if !own.is_empty() {
                out.push_str(&format!("{y:>2} {first:>3}-{:<3} {own}\n", x - 1));
            }
        }
    }
    out
}
