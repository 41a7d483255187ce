//! A window on the mailbox: the rows around the selected one, never the whole mailbox.

use crate::model::{Counts, From, Number, Order, Page, Query, Row};

/// Most rows that are kept.
const MAX_ROWS: usize = 600;
/// Rows asked for at once, if the screen has not more.
const PAGE: usize = 100;
/// So many rows before an end of the window, the next page is asked for.
const MARGIN: usize = 30;

/// The list of messages.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    pub(crate) query: Query,
    pub(crate) rows: Vec<Row>,
    pub(crate) selected: usize,
    /// The first row on the screen.
    pub(crate) top: usize,
    pub(crate) at_start: bool,
    pub(crate) at_end: bool,
    /// A page came for this query.
    pub(crate) is_loaded: bool,
    /// A page is asked for.
    pub(crate) is_loading: bool,
    pub(crate) counts: Counts,
    /// Distinguishes pages of this list from those of an earlier one.
    pub(crate) generation: u64,
    keeps_selection: bool,
    /// What arrived since the page was asked for, which may not have it.
    fresh: Vec<Row>,
}

impl Mailbox {
    /// How many rows to ask for on a screen of this height.
    pub(crate) fn page_size(height: usize) -> usize {
        PAGE.max(height * 2).min(MAX_ROWS / 2)
    }

    /// Another list begins; its first page is asked for. The selection stays on its message if wished
    /// and if the page has it.
    pub(crate) fn begin(&mut self, keeps_selection: bool) {
        self.keeps_selection = keeps_selection;
        self.generation += 1;
        self.is_loading = true;
        self.fresh.clear();
    }

    pub(crate) fn selected_row(&self) -> Option<&Row> {
        self.rows.get(self.selected)
    }

    /// The page to ask for next, if the selection is near an end of the window.
    pub(crate) fn wanted(&self, height: usize) -> Option<From> {
        if self.is_loading || !self.is_loaded {
            return None;
        }
        if !self.at_end && self.selected + MARGIN.max(height) >= self.rows.len() {
            return Some(self.rows.last().map_or(From::Top, |row| From::After(row.clone())));
        }
        if !self.at_start && self.selected < MARGIN.max(height) {
            return self.rows.first().map(|row| From::Before(row.clone()));
        }
        None
    }

    /// Takes a page.
    pub(crate) fn apply(&mut self, from: &From, page: Page) {
        (self.is_loading, self.is_loaded) = (false, true);
        let selected = self.selected_row().map(|row| row.number);
        match from {
            From::Top | From::Bottom => {
                let at_bottom = *from == From::Bottom;
                self.rows = page.rows;
                self.at_start = !at_bottom || page.is_last;
                self.at_end = at_bottom || page.is_last;
                let selected = selected.filter(|_| self.keeps_selection);
                let same = self.rows.iter().position(|row| Some(row.number) == selected);
                self.top = 0;
                self.selected = match at_bottom {
                    true => self.rows.len().saturating_sub(1),
                    false => same.unwrap_or(0),
                };
                for row in std::mem::take(&mut self.fresh) {
                    self.insert(row);
                }
            }
            From::After(_) => {
                self.at_end = page.is_last || page.rows.is_empty();
                let last = self.rows.last().cloned();
                let order = self.query.order;
                let is_below =
                    |row: &Row| last.as_ref().is_none_or(|last| order.is_above(last, row));
                self.rows.extend(page.rows.into_iter().filter(is_below));
                let extra = self.rows.len().saturating_sub(MAX_ROWS).min(self.selected);
                if extra > 0 {
                    self.rows.drain(..extra);
                    self.at_start = false;
                    self.selected -= extra;
                    self.top = self.top.saturating_sub(extra);
                }
            }
            From::Before(_) => {
                self.at_start = page.is_last || page.rows.is_empty();
                let (first, order) = (self.rows.first().cloned(), self.query.order);
                let is_above =
                    |row: &Row| first.as_ref().is_none_or(|first| order.is_above(row, first));
                let before: Vec<Row> = page.rows.into_iter().filter(is_above).collect();
                self.selected += before.len();
                self.top += before.len();
                self.rows.splice(..0, before);
                self.cut_end();
            }
        }
    }

    /// Rows beyond the limit go, below the selected one.
    fn cut_end(&mut self) {
        let keep = MAX_ROWS.max(self.selected + 1);
        if self.rows.len() > keep {
            self.rows.truncate(keep);
            self.at_end = false;
        }
    }

    /// A message arrived: it takes its place, and the selection stays on its message.
    pub(crate) fn arrived(&mut self, row: Row) {
        if self.is_loading {
            self.fresh.push(row.clone());
        }
        self.insert(row);
    }

    fn insert(&mut self, row: Row) {
        if !self.query.matches(&row) || self.rows.iter().any(|other| other.number == row.number) {
            return;
        }
        let order = self.query.order;
        let at = self.rows.iter().take_while(|other| order.is_above(other, &row)).count();
        let is_outside = at == 0 && !self.at_start || at == self.rows.len() && !self.at_end;
        if is_outside || !self.is_loaded {
            return;
        }
        let was_empty = self.rows.is_empty();
        self.rows.insert(at, row);
        if at <= self.selected && !was_empty {
            self.selected += 1;
        }
        if at < self.top {
            self.top += 1;
        }
        self.cut_end();
    }

    /// A message is gone.
    pub(crate) fn remove(&mut self, number: Number) {
        self.fresh.retain(|row| row.number != number);
        let Some(at) = self.rows.iter().position(|row| row.number == number) else { return };
        let gone = self.rows.remove(at);
        if at < self.selected {
            self.selected -= 1;
        }
        self.selected = self.selected.min(self.rows.len().saturating_sub(1));
        self.counts.total = self.counts.total.saturating_sub(1);
        if gone.is_unread {
            self.counts.unread = self.counts.unread.saturating_sub(1);
        }
    }

    /// A message was read.
    pub(crate) fn read(&mut self, number: Number) {
        let rows = self.rows.iter_mut().chain(&mut self.fresh);
        let mut was_unread = false;
        for row in rows.filter(|row| row.number == number) {
            was_unread |= std::mem::replace(&mut row.is_unread, false);
        }
        if was_unread {
            self.counts.unread = self.counts.unread.saturating_sub(1);
        }
    }

    pub(crate) fn move_by(&mut self, rows: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(rows).min(last);
    }

    /// Selects the first row of the window.
    pub(crate) fn select_first(&mut self) {
        self.selected = 0;
    }

    pub(crate) fn select_last(&mut self) {
        self.selected = self.rows.len().saturating_sub(1);
    }

    /// Selects a message of the window.
    pub(crate) fn select(&mut self, number: Number) {
        if let Some(at) = self.rows.iter().position(|row| row.number == number) {
            self.selected = at;
        }
    }

    /// Scrolls so that the selected row is on a screen of this height.
    pub(crate) fn scroll(&mut self, height: usize) {
        let height = height.max(1);
        self.top = self.top.min(self.rows.len().saturating_sub(height));
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(height));
    }

    pub(crate) fn toggle_order(&mut self) {
        self.query.order = match self.query.order {
            Order::Precedence => Order::Arrival,
            Order::Arrival => Order::Precedence,
        };
    }
}
