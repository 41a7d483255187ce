//! What passes, drawn anew each second in place on a terminal, or as a line a second.
//!
//! By hand: one table is all there is to draw, and a terminal that understands four sequences is
//! enough. A library of widgets would bring more code than it would save.

use super::status::{PartStatus, RowStatus, Status};
use comfy_table::{CellAlignment, Table, presets};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};

/// Another screen, no cursor, no wrapping of long lines.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// Where and how it is drawn.
pub(crate) struct View {
    name: String,
    how: How,
}

#[derive(PartialEq)]
enum How {
    Nothing,
    Lines,
    Screen { entered: bool },
}

impl View {
    pub(crate) fn new(name: &str, quiet: bool) -> View {
        let how = match () {
            () if quiet => How::Nothing,
            () if std::io::stderr().is_terminal() => How::Screen { entered: false },
            () => How::Lines,
        };
        View { name: name.to_owned(), how }
    }

    /// Shows what happened between two moments.
    pub(crate) fn draw(&mut self, before: &Status, now: &Status) {
        let mut out = std::io::stderr().lock();
        let text = match &mut self.how {
            How::Nothing => return,
            How::Lines => format!("{}\n", line(before, now)),
            How::Screen { entered } => {
                let enter = if *entered { "" } else { ENTER };
                *entered = true;
                let title = format!(
                    "{}   data path {}   up {:.0} s   {}\n",
                    self.name,
                    now.path,
                    now.uptime_seconds,
                    line(before, now)
                );
                let table = format!("{title}\n{}\n\nCtrl-C ends it\n", table(Some(before), now));
                let height = terminal_size::terminal_size().map_or(24, |(_, height)| height.0);
                let lines: Vec<&str> = table.lines().take(usize::from(height)).collect();
                let whole = lines.join(&format!("{CLEAR_LINE}\r\n"));
                format!("{enter}{HOME}{whole}{CLEAR_LINE}{CLEAR_BELOW}")
            }
        };
        // Nobody may be looking any more.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// Gives the terminal back.
    pub(crate) fn end(&mut self) {
        if self.how == (How::Screen { entered: true }) {
            let mut out = std::io::stderr().lock();
            let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
        }
        self.how = How::Nothing;
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.end();
    }
}

fn seconds(before: &Status, now: &Status) -> f64 {
    (now.uptime_seconds - before.uptime_seconds).max(1e-3)
}

/// All of it in a line.
fn line(before: &Status, now: &Status) -> String {
    let time = seconds(before, now);
    let packets = now.carried.to_hosts.packets.saturating_sub(before.carried.to_hosts.packets);
    let bytes = now.carried.to_hosts.bytes.saturating_sub(before.carried.to_hosts.bytes);
    let all = |status: &Status| -> (u64, u64) {
        let parts = status.nodes.iter().flat_map(|router| &router.parts);
        parts.fold((0, 0), |(waiting, dropped), part| {
            let drops: u64 = part.rows.iter().map(drops).sum();
            (waiting + part.queue.packets, dropped + drops)
        })
    };
    let (waiting, dropped) = all(now);
    let dropped = dropped.saturating_sub(all(before).1);
    format!(
        "{:.0} kbit/s, {:.0} packets/s delivered; {waiting} waiting, {dropped} dropped",
        bytes as f64 * 8.0 / 1e3 / time,
        packets as f64 / time
    )
}

fn drops(row: &RowStatus) -> u64 {
    row.dropped.values().sum()
}

/// A row for each code point at each part that holds or drops packets, and at each interface; with
/// the rate since `before` where that is given, else in all.
pub fn table(before: Option<&Status>, now: &Status) -> String {
    let time = before.map(|before| seconds(before, now));
    let mut earlier: BTreeMap<(&str, &str, u8), &RowStatus> = BTreeMap::new();
    for router in before.iter().flat_map(|before| &before.nodes) {
        for part in &router.parts {
            let rows = part.rows.iter();
            earlier.extend(
                rows.map(|row| ((router.name.as_str(), part.part.as_str(), row.dscp), row)),
            );
        }
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let rate = if time.is_some() { "kbit/s" } else { "kB" };
    table.set_header([
        "node", "part", "kind", "queue", "DSCP", "packets", rate, "dropped", "delay ms",
    ]);
    for router in &now.nodes {
        for part in router.parts.iter().filter(|part| is_shown(part)) {
            let shown = |texts: [String; 5]| {
                let first = [
                    router.name.clone(),
                    part.part.clone(),
                    part.kind.clone(),
                    part.queue.packets.to_string(),
                ];
                first.into_iter().chain(texts).collect::<Vec<_>>()
            };
            if let Some(total) = part.total {
                let bytes = total.went.bytes as f64 / 1e3;
                table.add_row(shown([
                    "all".to_owned(),
                    total.went.packets.to_string(),
                    format!("{bytes:.0}"),
                    total.dropped.to_string(),
                    String::new(),
                ]));
            }
            for row in &part.rows {
                let then = earlier.get(&(router.name.as_str(), part.part.as_str(), row.dscp));
                let bytes = row.went.bytes.saturating_sub(then.map_or(0, |then| then.went.bytes));
                let rate = match time {
                    Some(time) => bytes as f64 * 8.0 / 1e3 / time,
                    None => bytes as f64 / 1e3,
                };
                let delay = row.delay.as_ref().map(|delay| format!("{:.2}", delay.mean_ms));
                table.add_row(shown([
                    row.dscp_name.clone(),
                    row.went.packets.to_string(),
                    format!("{rate:.1}"),
                    drops(row).to_string(),
                    delay.unwrap_or_default(),
                ]));
            }
        }
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// Interfaces, what holds packets, and what has dropped any; a line holds some at all times.
fn is_shown(part: &PartStatus) -> bool {
    let is_line = part.part.ends_with("line");
    part.kind == "interface"
        || (part.queue_most > 0 && !is_line)
        || part.rows.iter().any(|row| drops(row) > 0)
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::status::{Carried, Count, NodeStatus};
    use super::*;

    fn status(uptime_seconds: f64, packets: u64) -> Status {
        let row = RowStatus {
            dscp: 46,
            dscp_name: "EF".to_owned(),
            came: Count::default(),
            went: Count { packets, bytes: packets * 1_000 },
            taken: Count::default(),
            queue: None,
            queue_average: None,
            marked: 0,
            congestion_marked: 0,
            dropped: [("tail".to_owned(), 7)].into(),
            delay: None,
        };
        let part = PartStatus {
            part: "wan/queueing".to_owned(),
            kind: "fifo".to_owned(),
            queue: Count { packets: 3, bytes: 3_000 },
            queue_most: 4,
            queue_average: 1.0,
            rows: vec![row],
            total: None,
        };
        let nodes = vec![NodeStatus { name: "sar".to_owned(), parts: vec![part] }];
        Status {
            name: "n".to_owned(),
            path: Kind::Tun,
            uptime_seconds,
            carried: Carried::default(),
            nodes,
        }
    }

    #[test]
    fn rates_are_those_between_two_moments() {
        let (before, now) = (status(10.0, 100), status(12.0, 200));
        let words = |text: &str| -> Vec<String> {
            let row = text.lines().last().unwrap_or_default();
            row.split_whitespace().map(str::to_owned).collect()
        };
        let shown = words(&table(Some(&before), &now));
        assert_eq!(shown, ["sar", "wan/queueing", "fifo", "3", "EF", "200", "400.0", "7"]);
        let whole = words(&table(None, &now));
        assert_eq!(whole[6], "200.0");
        assert!(line(&before, &now).ends_with("3 waiting, 0 dropped"));
    }
}
