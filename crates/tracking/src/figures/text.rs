//! Figures as text of 80 columns.

use super::{Figures, Row, Spread};
use crate::way;
use base::{Precedence, shown};
use std::fmt::Write as _;
use std::time::Duration;

/// Columns of a peer's name; a longer one is cut.
const PEER: usize = 18;

/// Octets in at most seven columns.
pub(super) fn octets(n: u64) -> String {
    let n = n as f64;
    match n {
        _ if n < 1e4 => format!("{n:.0} B"),
        _ if n < 1e6 => format!("{:.0} kB", n / 1e3),
        _ if n < 1e9 => format!("{:.1} MB", n / 1e6),
        _ => format!("{:.1} GB", n / 1e9),
    }
}

pub(super) fn duration(us: u64) -> String {
    way::duration(Duration::from_micros(us))
}

pub(super) fn precedence(row: &Row) -> &'static str {
    row.precedence.map_or("-", Precedence::name)
}

/// The beginning of a peer's name.
fn peer(row: &Row) -> String {
    let shown = shown::line(&row.peer).into_owned();
    match shown.char_indices().nth(PEER) {
        None => shown,
        Some(_) => shown.chars().take(PEER - 1).chain(['~']).collect(),
    }
}

fn spread(spread: Option<Spread>) -> [String; 3] {
    let text = |us: fn(&Spread) -> u64| {
        spread.as_ref().map_or_else(|| "-".to_owned(), |s| duration(us(s)))
    };
    [text(|s| s.p50_us), text(|s| s.p95_us), text(|s| s.p99_us)]
}

impl Figures {
    /// As text: what was accepted, how long it took to pass it on, and what went wrong.
    pub fn to_text(&self) -> String {
        let mut out = format!("from  {}\nuntil {}\n", self.since, self.until);
        if self.rows.is_empty() {
            out.push_str("\nno message was tracked in this time\n");
            return out;
        }
        self.passed_on_table(&mut out);
        self.other_table(&mut out);
        if self.kills > 0 {
            let _ = writeln!(
                out,
                "\nthe daemon was killed {} times: events before each may be missing",
                self.kills
            );
        }
        if self.lost > 0 {
            let _ =
                writeln!(out, "\n{} events of this time were lost: counts are too low", self.lost);
        }
        out
    }

    fn passed_on_table(&self, out: &mut String) {
        out.push_str("\nAcceptance to a peer's confirm, and to delivery into a mailbox\n");
        let head = ["P50", "P95", "P99"];
        let [a, b, c] = head;
        let _ = writeln!(
            out,
            "{:<10} {:<PEER$} {:>9} {:>8}  {a:>9} {b:>9} {c:>9}",
            "PRECEDENCE", "TO", "MESSAGES", "OCTETS"
        );
        for row in self.rows.iter().filter(|row| row.passed_on > 0) {
            let [a, b, c] = spread(row.took);
            let _ = writeln!(
                out,
                "{:<10} {:<PEER$} {:>9} {:>8}  {a:>9} {b:>9} {c:>9}",
                precedence(row),
                peer(row),
                row.passed_on,
                octets(row.passed_on_octets)
            );
        }
    }

    fn other_table(&self, out: &mut String) {
        out.push_str("\nAccepted, held, expired and rejected\n");
        let _ = writeln!(
            out,
            "{:<10} {:<PEER$} {:>9} {:>7} {:>9} {:>8} {:>8}",
            "PRECEDENCE", "PEER", "ACCEPTED", "HELD", "HELD P95", "EXPIRED", "REJECTED"
        );
        for row in &self.rows {
            let held = row.held.map_or(0, |held| held.count);
            let _ = writeln!(
                out,
                "{:<10} {:<PEER$} {:>9} {held:>7} {:>9} {:>8} {:>8}",
                precedence(row),
                peer(row),
                row.accepted,
                spread(row.held)[1],
                row.expired,
                row.rejected
            );
        }
    }
}
