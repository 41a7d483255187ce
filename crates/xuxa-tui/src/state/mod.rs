//! The state of the interface, and what events do to it.

pub(crate) mod answers;
pub(crate) mod compose;
pub(crate) mod dialog;
pub(crate) mod editor;
mod keys;
mod keys_compose;
mod keys_dialog;
pub(crate) mod mailbox;
pub(crate) mod reading;

use base::rng::Rng;
use base::{Precedence, Utc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::draft::Draft;
use crate::draw::layout::Layout;
use crate::draw::style::Palette;
use crate::event::{Connection, Effect, Event, Token};
use crate::model::{BookEntry, From, Number, Query, Row, Sent, Who};
use crate::text;
use compose::Compose;
use dialog::Dialog;
use mailbox::Mailbox;
use reading::Reading;

/// Messages of this precedence and above interrupt: a banner and the bell.
const INTERRUPTS: Precedence = Precedence::Flash;
/// Most alerts that wait for attention.
const MAX_ALERTS: usize = 100;
/// So many messages that have interrupted are remembered.
const MAX_INTERRUPTED: usize = 10_000;
/// Sent items that are read at once.
pub(crate) const SENT_ITEMS: usize = 500;

/// What the screen shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Mailbox,
    Reading,
    Compose,
    Sent,
    Book,
}

/// What happens once a message is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Show,
    Answer { to_all: bool },
    Forward,
    Extract,
    Acknowledge,
}

/// An effect without its answer.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    List { from: From, generation: u64 },
    Urgent,
    Count,
    Open(Number, Then),
    Extract,
    Delete(Number),
    Check(Box<Draft>),
    Submit(Box<Compose>),
    Acknowledge(Number),
    Sent,
    Book,
}

/// A line for the user, until the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// A list with a selected line, of which all is in memory.
#[derive(Debug)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    pub(crate) selected: usize,
    pub(crate) top: usize,
    pub(crate) is_loaded: bool,
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List { items: Vec::new(), selected: 0, top: 0, is_loaded: false }
    }
}

impl<T> List<T> {
    pub(crate) fn set(&mut self, items: Vec<T>) {
        (self.items, self.is_loaded) = (items, true);
        self.move_by(0);
    }

    pub(crate) fn move_by(&mut self, lines: isize) {
        let last = self.items.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(lines).min(last);
    }

    pub(crate) fn chosen(&self) -> Option<&T> {
        self.items.get(self.selected)
    }

    fn scroll(&mut self, height: usize) {
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(height));
    }
}

/// The interface as one value: [`App::handle`] changes it, [`App::draw`] shows it.
#[derive(Debug)]
pub struct App {
    pub(crate) who: Who,
    pub(crate) palette: Palette,
    pub(crate) size: (u16, u16),
    pub(crate) now: Utc,
    pub(crate) view: View,
    pub(crate) back: Vec<View>,
    pub(crate) connection: Connection,
    /// When it became so.
    pub(crate) connection_since: Utc,
    pub(crate) mailbox: Mailbox,
    pub(crate) reading: Option<Reading>,
    pub(crate) compose: Option<Compose>,
    /// Drafts that were put aside, or could not be sent.
    pub(crate) kept: Vec<Compose>,
    pub(crate) sent: List<Sent>,
    pub(crate) book: List<BookEntry>,
    pub(crate) dialog: Option<Dialog>,
    /// Messages that interrupt and were not looked at yet, the most urgent first.
    pub(crate) alerts: VecDeque<Row>,
    /// Messages that have interrupted, if they were put away too.
    interrupted: BTreeSet<Number>,
    pub(crate) notice: Option<Notice>,
    /// What is asked for, with the time since when.
    pub(crate) pending: BTreeMap<Token, (Asked, Utc)>,
    /// The directory of the last extraction.
    pub(crate) directory: String,
    next: Token,
    rng: Rng,
    effects: Vec<Effect>,
}

impl App {
    /// The state at the start; `seed` makes content identifiers that nobody else makes.
    pub fn new(who: Who, palette: Palette, size: (u16, u16), now: Utc, seed: u64) -> App {
        App {
            who,
            palette,
            size,
            now,
            view: View::Mailbox,
            back: Vec::new(),
            connection: Connection::Connecting,
            connection_since: now,
            mailbox: Mailbox::default(),
            reading: None,
            compose: None,
            kept: Vec::new(),
            sent: List::default(),
            book: List::default(),
            dialog: None,
            alerts: VecDeque::new(),
            interrupted: BTreeSet::new(),
            notice: None,
            pending: BTreeMap::new(),
            directory: ".".to_owned(),
            next: 1,
            rng: Rng::new(seed),
            effects: Vec::new(),
        }
    }

    /// Takes an event; returns what is to be done, in order.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(key) => self.key(key),
            Event::Paste(text) => self.paste(&text),
            Event::Resized(columns, rows) => self.size = (columns, rows),
            Event::Tick(now) => self.now = now,
            Event::Connection(connection) => self.connection_changed(connection),
            Event::Alert(row) => self.alert(row),
            Event::Answered(token, answer) => self.answered(token, answer),
            Event::Stop => self.effects.push(Effect::Quit),
        }
        self.settle();
        std::mem::take(&mut self.effects)
    }

    /// Draws the whole screen.
    pub fn draw(&self, frame: &mut ratatui::Frame<'_>) {
        crate::draw::draw(self, frame);
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self)
    }

    /// Scrolls what is shown to its selection, lays texts out for their width, asks for more rows.
    fn settle(&mut self) {
        let layout = self.layout();
        let height = layout.list_rows();
        self.mailbox.scroll(height);
        self.sent.scroll(layout.sent_rows());
        self.book.scroll(layout.book_rows());
        if let Some(reading) = &mut self.reading {
            reading.fit(usize::from(layout.reading.width), usize::from(layout.reading.height));
        }
        if let Some(compose) = &mut self.compose {
            let area = layout.text;
            compose.text.scroll(usize::from(area.width), usize::from(area.height));
        }
        if self.connection == Connection::Bound
            && let Some(from) = self.mailbox.wanted(height)
        {
            self.list(from);
        }
    }

    fn ask(&mut self, asked: Asked, effect: impl FnOnce(Token) -> Effect) {
        let token = self.next;
        self.next += 1;
        self.pending.insert(token, (asked, self.now));
        self.effects.push(effect(token));
    }

    /// Asks for a page; a first one replaces the list.
    fn list(&mut self, from: From) {
        if matches!(from, From::Top | From::Bottom) {
            self.mailbox.begin(false);
        }
        self.ask_page(from);
    }

    fn ask_page(&mut self, from: From) {
        self.mailbox.is_loading = true;
        let (query, generation) = (self.mailbox.query.clone(), self.mailbox.generation);
        let count = Mailbox::page_size(self.layout().list_rows());
        let asked = Asked::List { from: from.clone(), generation };
        self.ask(asked, |token| Effect::List(token, query, from, count));
    }

    /// Lists from the top, and counts anew; the selection stays on its message.
    fn refresh(&mut self) {
        self.mailbox.begin(true);
        self.ask_page(From::Top);
        self.ask(Asked::Count, Effect::Count);
    }

    fn connection_changed(&mut self, connection: Connection) {
        let was_bound = self.connection == Connection::Bound;
        if let Connection::Refused(reason) = &connection {
            self.error(reason.clone());
        }
        let is_bound = connection == Connection::Bound;
        (self.connection, self.connection_since) = (connection, self.now);
        if is_bound && !was_bound {
            // A list that was scrolled keeps its place; its top comes anew when it is reached.
            match self.mailbox.is_loaded && !self.mailbox.at_start {
                true => self.ask(Asked::Count, Effect::Count),
                false => self.refresh(),
            }
            if !self.book.is_loaded {
                self.ask(Asked::Book, Effect::Book);
            }
            self.ask_urgent();
        }
    }

    /// Asks for what interrupts and is unread, wherever the list is: it came before the start, or while there was no
    /// association.
    fn ask_urgent(&mut self) {
        let least = Some(INTERRUPTS);
        let query = Query { unread_only: true, least, ..Query::default() };
        self.ask(Asked::Urgent, |token| Effect::List(token, query, From::Top, MAX_ALERTS));
    }

    /// A message arrived. What interrupts rings, and stays in the banner until it is read or put away.
    fn alert(&mut self, row: Row) {
        self.mailbox.counts.total += 1;
        self.mailbox.counts.unread += u64::from(row.is_unread);
        self.mailbox.arrived(row.clone());
        if row.precedence < INTERRUPTS {
            let name = crate::draw::style::name(row.precedence);
            let (from, subject) = (text::line(&row.from), text::line(&row.subject));
            self.notice.get_or_insert(Notice {
                text: format!("New: {name} from {from}: {subject}"),
                is_error: false,
            });
            return;
        }
        self.interrupt(row);
    }

    /// What interrupts and is unread was listed: what is not known yet interrupts as an alert does, with one ring.
    fn listed_urgent(&mut self, rows: Vec<Row>) {
        let is_read = |row: &Row| {
            self.reading.as_ref().is_some_and(|reading| reading.opened.row.number == row.number)
        };
        let is_known = |row: &Row| self.interrupted.contains(&row.number) || is_read(row);
        let new: Vec<Row> = rows.into_iter().filter(|row| !is_known(row)).collect();
        if !new.is_empty() {
            self.effects.push(Effect::Bell);
        }
        for row in new {
            self.mailbox.arrived(row.clone());
            self.put_in_banner(row);
        }
    }

    fn interrupt(&mut self, row: Row) {
        if !self.interrupted.contains(&row.number) {
            self.effects.push(Effect::Bell);
            self.put_in_banner(row);
        }
    }

    fn put_in_banner(&mut self, row: Row) {
        self.interrupted.insert(row.number);
        if self.interrupted.len() > MAX_INTERRUPTED {
            self.interrupted.pop_first();
        }
        let at = self.alerts.iter().take_while(|other| other.precedence >= row.precedence).count();
        self.alerts.insert(at, row);
        self.alerts.truncate(MAX_ALERTS);
    }

    /// The message that the reading pane shows: beside the list it is the selected one, or none.
    pub(crate) fn shown_reading(&self) -> Option<&Reading> {
        let selected = self.mailbox.selected_row().map(|row| row.number);
        let is_shown =
            |of: &&Reading| self.view == View::Reading || Some(of.opened.row.number) == selected;
        self.reading.as_ref().filter(is_shown)
    }

    pub(crate) fn info(&mut self, text: String) {
        self.notice = Some(Notice { text, is_error: false });
    }

    pub(crate) fn error(&mut self, text: String) {
        self.notice = Some(Notice { text, is_error: true });
    }

    /// Shows a view; [`App::leave`] comes back.
    pub(crate) fn enter(&mut self, view: View) {
        if self.view != view {
            self.back.retain(|other| *other != view);
            self.back.push(self.view);
            self.view = view;
        }
    }

    /// Back to the view before.
    pub(crate) fn leave(&mut self) {
        self.view = self.back.pop().unwrap_or(View::Mailbox);
        if self.view == View::Compose && self.compose.is_none() {
            self.leave();
        }
    }

    /// An empty form, with an identifier of its own.
    fn new_compose(&mut self) -> Compose {
        Compose::new(format!("{:016X}", self.rng.next_u64()), self.now)
    }

    /// Shows a form; one that was open is put aside.
    fn open_compose(&mut self, compose: Compose) {
        if let Some(other) = self.compose.replace(compose)
            && other.has_content()
        {
            self.kept.push(other);
        }
        self.enter(View::Compose);
    }

    /// Messages that are being submitted.
    pub(crate) fn outgoing(&self) -> usize {
        self.pending.values().filter(|(asked, _)| matches!(asked, Asked::Submit(_))).count()
    }

    /// Drafts that would be lost by ending.
    pub(crate) fn drafts(&self) -> usize {
        let open = self.compose.as_ref().filter(|compose| compose.has_content());
        self.kept.len() + usize::from(open.is_some())
    }
}
