//! A way as text of 80 columns.

use super::{Way, entry_text};
use crate::event::Event;
use base::{Utc, shown};
use std::fmt::Write as _;
use std::time::Duration;

/// Columns of a line.
const WIDTH: usize = 80;

/// Columns before the words of a step: time, duration, and the spaces behind each.
const BEFORE: usize = 12 + 2 + 9 + 2;

/// Most recipients that are named.
const MAX_NAMED: usize = 20;

/// A duration as people read it, in at most nine columns.
pub(crate) fn duration(d: Duration) -> String {
    let us = d.as_micros();
    let s = d.as_secs();
    match us {
        0..1_000 => format!("{us} us"),
        1_000..10_000 => format!("{:.1} ms", us as f64 / 1e3),
        10_000..1_000_000 => format!("{} ms", us / 1_000),
        1_000_000..60_000_000 => format!("{:.1} s", d.as_secs_f64()),
        _ if s < 3_600 => format!("{}m {:02}s", s / 60, s % 60),
        _ if s < 86_400 => format!("{}h {:02}m", s / 3_600, s / 60 % 60),
        _ => format!("{}d {:02}h", s / 86_400, s / 3_600 % 24),
    }
}

/// Date, and time of day in milliseconds.
pub(crate) fn date_and_time(at: Utc) -> (String, String) {
    let text = at.to_string();
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    (date.to_owned(), time.get(..12).unwrap_or(time).to_owned())
}

/// Appends text in lines of [`WIDTH`], what is from outside escaped; lines after the first begin with
/// `indent` spaces. The cursor is at column `at`.
pub(super) fn wrapped(out: &mut String, at: usize, indent: usize, text: &str) {
    let text = shown::line(text);
    let mut column = at;
    for (number, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 && column + 1 + length > WIDTH && column > indent {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if number > 0 {
            out.push(' ');
            column += 1;
        }
        for c in word.chars() {
            // A word longer than a line, as an address may be.
            if column >= WIDTH {
                let _ = write!(out, "\n{:indent$}", "");
                column = indent;
            }
            out.push(c);
            column += 1;
        }
    }
    out.push('\n');
}

fn field(out: &mut String, name: &str, text: &str) {
    let _ = write!(out, "  {name:<10} ");
    wrapped(out, 13, 13, text);
}

/// A step in words.
pub(crate) fn words(step: &Event) -> String {
    let mut words = step.kind.replace('_', " ");
    if let Some(entry) = step.entry {
        let _ = write!(words, "  {}", entry_text(entry));
    }
    match (&step.peer, &step.channel) {
        (Some(peer), Some(channel)) => {
            let _ = write!(words, " on {peer}/{channel}");
        }
        (Some(peer), None) => {
            let _ = write!(words, " on {peer}");
        }
        _ => {}
    }
    if let Some(copies) = step.parties.as_ref().and_then(|p| p.copies).filter(|copies| *copies != 1)
    {
        let _ = write!(words, ", {copies} copies");
    }
    if let Some(operator) = &step.operator {
        let _ = write!(words, " by {operator}");
    }
    if !step.detail.is_empty() {
        let _ = write!(words, ": {}", step.detail);
    }
    words
}

impl Way {
    /// As text: who and what, its steps with the time between them, its reports, and its outcome in the
    /// last line.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.head(&mut out, "message");
        self.table(&mut out);
        for report in &self.reports {
            out.push('\n');
            report.head(&mut out, "report");
            report.table(&mut out);
        }
        out.push('\n');
        let outcome = self.outcome();
        let gap = match outcome.waiting.is_some_and(|waiting| waiting > 0) && !self.gaps.is_empty()
        {
            true => "; or its end is among the missing events: see mta queue list",
            false => "",
        };
        wrapped(&mut out, 0, 2, &format!("Known here: {outcome}{gap}."));
        out
    }

    fn head(&self, out: &mut String, what: &str) {
        let what = if self.subject.is_some() { "report" } else { what };
        let _ = write!(out, "{what} ");
        wrapped(out, what.len() + 1, 2, &self.message);
        if let Some(subject) = &self.subject {
            field(out, "subject", subject);
        }
        let accepted = self.accepted();
        if let Some(parties) = accepted.and_then(|event| event.parties.as_ref()) {
            if let Some(originator) = &parties.originator {
                field(out, "from", originator);
            }
            for recipient in parties.recipients.iter().take(MAX_NAMED) {
                field(out, "to", recipient);
            }
            let named = parties.recipients.len().min(MAX_NAMED) as u64;
            if parties.count > named {
                field(out, "to", &format!("{} more", parties.count - named));
            }
            if let Some(id) = &parties.content_id {
                field(out, "content id", id);
            }
        }
        let mut is = Vec::new();
        is.extend(self.precedence().map(|p| p.name().to_owned()));
        is.extend(self.bytes().map(|bytes| format!("{bytes} octets")));
        if !is.is_empty() {
            field(out, "is", &is.join(", "));
        }
        for gap in &self.gaps {
            let (date, time) = date_and_time(gap.before);
            let of = gap.node.as_ref().map_or_else(String::new, |node| format!("of {node} "));
            let what = match gap.count {
                0 => format!("events {of}may be missing: the daemon was killed"),
                count => format!("{count} events {of}were lost"),
            };
            field(out, "gap", &format!("{what} before {date} {time}"));
        }
    }

    fn table(&self, out: &mut String) {
        // The column of the nodes is as wide as the longest name, where there is a site.
        let names = self.steps.iter().filter_map(|step| step.node.as_deref());
        let width = names.map(|name| name.chars().count().max(4) + 2).max().unwrap_or(0);
        let head = if width > 0 { format!("{:<width$}", "NODE") } else { String::new() };
        let mut before: Option<Utc> = None;
        let mut day = String::new();
        for step in &self.steps {
            let (date, time) = date_and_time(step.time);
            if date != day {
                let _ = match before {
                    None => writeln!(out, "{date} UTC        AFTER  {head}EVENT"),
                    Some(_) => writeln!(out, "{date} UTC"),
                };
                day = date;
            }
            let after = before.map_or_else(String::new, |last| duration(step.time.since(last)));
            let node = step.node.as_deref().unwrap_or_default();
            let _ = write!(out, "{time}  {after:>9}  {node:<width$}");
            wrapped(out, BEFORE + width, BEFORE + width, &words(step));
            before = Some(step.time);
        }
    }
}
