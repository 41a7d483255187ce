//! What passes, drawn anew each second in place on a terminal, or as a line a second.
//!
//! By hand: one table is all there is to draw, and a terminal that understands four sequences is
//! enough. A library of widgets would bring more code than it would save.

use crate::control::status::{NetworkStatus, PartStatus, RowStatus, Total};
use comfy_table::{CellAlignment, presets};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use text::TextTable;

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
    pub(crate) fn draw(&mut self, before: &NetworkStatus, now: &NetworkStatus) {
        let mut out = std::io::stderr().lock();
        let text = match &mut self.how {
            How::Nothing => return,
            How::Lines => format!("{}\n", base::shown::line(&line(before, now))),
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
                let table = table(Some(before), now);
                let table = format!("{title}\n{table}\n\nCtrl-C ends it\n");
                let table = base::shown::text(&table);
                let height = terminal_size::terminal_size().map_or(24, |(_, height)| height.0);
                let whole = fit(&table, height.into()).join(&format!("{CLEAR_LINE}\r\n"));
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

/// What a screen of this height has room for, and how much it has not.
fn fit(text: &str, height: usize) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.len() > height {
        let kept = height.saturating_sub(1);
        let more = lines.len() - kept;
        lines.truncate(kept);
        lines.push(format!("... {more} more lines; `lab status` has all"));
    }
    lines
}

fn seconds(before: &NetworkStatus, now: &NetworkStatus) -> f64 {
    (now.uptime_seconds - before.uptime_seconds).max(1e-3)
}

/// All of it in a line.
fn line(before: &NetworkStatus, now: &NetworkStatus) -> String {
    let time = seconds(before, now);
    let packets = now.carried.to_hosts.packets.saturating_sub(before.carried.to_hosts.packets);
    let bytes = now.carried.to_hosts.bytes.saturating_sub(before.carried.to_hosts.bytes);
    let all = |status: &NetworkStatus| -> (u64, u64) {
        let parts = status.nodes.iter().flat_map(|router| &router.parts);
        parts.fold((0, 0), |(waiting, dropped), part| {
            let drops: u64 = part.rows.iter().map(drops).sum();
            let of_interface = part.total.map_or(0, |total| total.dropped);
            (waiting + part.queue.packets, dropped + drops + of_interface)
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
pub fn table(before: Option<&NetworkStatus>, now: &NetworkStatus) -> String {
    let time = before.map(|before| seconds(before, now));
    let mut earlier: BTreeMap<(&str, &str, u8), &RowStatus> = BTreeMap::new();
    let mut totals: BTreeMap<(&str, &str), Total> = BTreeMap::new();
    for router in before.iter().flat_map(|before| &before.nodes) {
        for part in &router.parts {
            let total = part.total.map(|total| ((router.name.as_str(), part.part.as_str()), total));
            totals.extend(total);
            let rows = part.rows.iter();
            earlier.extend(
                rows.map(|row| ((router.name.as_str(), part.part.as_str(), row.dscp), row)),
            );
        }
    }
    let mut table = TextTable::new();
    table.load_preset(presets::NOTHING);
    let amount = |now: u64, then: u64| {
        let bytes = now.saturating_sub(then) as f64;
        time.map_or(bytes / 1e3, |time| bytes * 8.0 / 1e3 / time)
    };
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
                let then = totals.get(&(router.name.as_str(), part.part.as_str()));
                let rate = amount(total.went.bytes, then.map_or(0, |then| then.went.bytes));
                table.add_row(shown([
                    "all".to_owned(),
                    total.went.packets.to_string(),
                    format!("{rate:.1}"),
                    total.dropped.to_string(),
                    String::new(),
                ]));
            }
            for row in &part.rows {
                let then = earlier.get(&(router.name.as_str(), part.part.as_str(), row.dscp));
                let rate = amount(row.went.bytes, then.map_or(0, |then| then.went.bytes));
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
    use super::*;
    use crate::DataPathKind;
    use crate::control::status::{CarriedTraffic, NodeStatus, TrafficCount};

    fn status(uptime_seconds: f64, packets: u64) -> NetworkStatus {
        let row = RowStatus {
            dscp: 46,
            dscp_name: "EF".to_owned(),
            came: TrafficCount::default(),
            went: TrafficCount { packets, bytes: packets * 1_000 },
            taken: TrafficCount::default(),
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
            queue: TrafficCount { packets: 3, bytes: 3_000 },
            queue_most: 4,
            queue_average: 1.0,
            rows: vec![row],
            total: None,
        };
        let nodes = vec![NodeStatus { name: "sar".to_owned(), parts: vec![part] }];
        NetworkStatus {
            name: "n".to_owned(),
            path: DataPathKind::Tun,
            uptime_seconds,
            carried: CarriedTraffic::default(),
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
    #[test]
    fn interfaces_of_the_kernel_have_rates_too() {
        let of = |uptime: f64, packets: u64| {
            let mut status = status(uptime, 0);
            let went = TrafficCount { packets, bytes: packets * 1_000 };
            let part = &mut status.nodes[0].parts[0];
            part.rows.clear();
            part.kind = "interface".to_owned();
            part.total = Some(Total { came: TrafficCount::default(), went, dropped: packets / 10 });
            status
        };
        let (before, now) = (of(10.0, 100), of(12.0, 200));
        let shown = table(Some(&before), &now);
        let row: Vec<&str> = shown.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(row, ["sar", "wan/queueing", "interface", "3", "all", "200", "400.0", "20"]);
        assert!(line(&before, &now).ends_with("3 waiting, 10 dropped"));
    }

    #[test]
    fn rows_without_room_are_counted() {
        assert_eq!(fit("a\nb\nc", 3), ["a", "b", "c"]);
        let shown = fit("a\nb\nc\nd", 3);
        assert_eq!(shown, ["a", "b", "... 2 more lines; `lab status` has all"]);
    }
}
