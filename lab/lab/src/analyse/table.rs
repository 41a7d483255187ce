//! What was found as tables for people.

use super::json::{kbit_s, ms, percent, signed_ms, utc};
use super::{Cut, Rows};
use ::analyse::packet::protocol;
use ::analyse::report::{Aggregate, Flow, Hop, Message, TransferKind};
use ::analyse::{Analysis, Summary, Totals};
use comfy_table::{CellAlignment, presets};
use std::fmt::Write as _;
use text::TextTable;

/// Stands for an absent value.
const NONE: &str = "-";

/// A table: names of columns, of which the first `left` are text.
fn new(header: &[&str], left: usize) -> TextTable {
    let mut table = TextTable::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn number(value: Option<f64>) -> String {
    match value {
        None => NONE.to_owned(),
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

fn share(part: u64, whole: u64) -> String {
    percent(part, whole).map_or(NONE.to_owned(), |percent| format!("{percent:.2}"))
}

/// Octets with a decimal unit.
fn size(octets: u64) -> String {
    match octets {
        0..10_000 => format!("{octets} B"),
        10_000..10_000_000 => format!("{:.1} kB", octets as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", octets as f64 / 1e6),
        _ => format!("{:.1} GB", octets as f64 / 1e9),
    }
}

fn trip(of: &Summary) -> [String; 2] {
    [of.percentile(0.5), of.percentile(0.95)].map(|value| number(value.map(ms)))
}

/// The tables, with at most `most` flows.
pub(crate) fn table(analysis: &Analysis, rows: &Rows, cuts: &[Cut], most: usize) -> String {
    let mut text = String::new();
    let mut part = |title: &str, table: &TextTable| {
        let _ = writeln!(text, "{title}\n{}\n", table.trim_fmt());
    };
    let several = analysis.points().len() > 1;
    if several {
        part("POINTS", &points(analysis));
    }
    part("CODE POINTS", &aggregates(analysis, several));
    if rows.flows().next().is_some() && most > 0 {
        let title = format!("FLOWS (those with most octets, of {})", analysis.totals().flows);
        part(&title, &flows(analysis, rows, several, most));
    }
    if !rows.messages().is_empty() {
        part("MESSAGES", &messages(analysis, rows, several));
    }
    let hops = analysis.hops();
    if !hops.is_empty() {
        part("BETWEEN POINTS", &between(analysis, &hops));
    }
    for line in notes(&analysis.totals(), rows, &hops, cuts) {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn point(analysis: &Analysis, place: usize) -> String {
    analysis.points().get(place).map_or(NONE.to_owned(), |point| point.name.clone())
}

fn points(analysis: &Analysis) -> TextTable {
    let mut table = new(&["point", "begin", "end", "frames"], 3);
    for point in analysis.points() {
        let [begin, end] = match point.span {
            Some((begin, end)) => [utc(begin), utc(end)],
            None => [NONE, NONE].map(str::to_owned),
        };
        table.add_row([point.name.clone(), begin, end, point.frames.to_string()]);
    }
    table
}

fn with_point(several: bool, point: String, cells: Vec<String>) -> Vec<String> {
    several.then_some(point).into_iter().chain(cells).collect()
}

fn aggregates(analysis: &Analysis, several: bool) -> TextTable {
    let columns = [
        "dscp", "packets", "octets", "share %", "kbit/s", "peak", "flows", "retrans", "%", "ooo",
        "lost", "%", "rtt p50", "p95 ms",
    ];
    let header: Vec<&str> = several.then_some("point").into_iter().chain(columns).collect();
    let mut table = new(&header, 1 + usize::from(several));
    let all = |place| {
        let of = analysis.aggregates().filter(move |(at, _)| *at == place);
        of.map(|(_, of)| of.volume.octets).sum::<u64>()
    };
    for (place, of) in analysis.aggregates() {
        let span = analysis.points().get(place).and_then(|point| point.span);
        let nanos = span.map_or(0, |(begin, end)| end.since(begin));
        let [median, most] = trip(&of.round_trip);
        let cells = vec![
            of.dscp.to_string(),
            of.volume.packets.to_string(),
            size(of.volume.octets),
            share(of.volume.octets, all(place)),
            number(kbit_s(of.volume.octets, nanos)),
            number(peak(of)),
            of.flows.to_string(),
            of.tcp.retransmissions.to_string(),
            share(of.tcp.retransmissions, of.tcp.segments),
            of.tcp.out_of_order.to_string(),
            lost(of.numbered).map_or(NONE.to_owned(), |lost| lost.to_string()),
            lost(of.numbered).map_or(NONE.to_owned(), |lost| share(lost, of.numbered.1)),
            median,
            most,
        ];
        table.add_row(with_point(several, point(analysis, place), cells));
    }
    table
}

fn lost((received, expected): (u64, u64)) -> Option<u64> {
    (expected > 0).then(|| expected.saturating_sub(received))
}

/// The highest rate of an interval, in kbit/s.
fn peak(of: &Aggregate) -> Option<f64> {
    let most = of.series.iter().map(|(_, bin)| bin.octets).max()?;
    kbit_s(most, of.series.width())
}

fn flows(analysis: &Analysis, rows: &Rows, several: bool, most: usize) -> TextTable {
    let columns = [
        "source",
        "destination",
        "kind",
        "dscp",
        "packets",
        "octets",
        "seconds",
        "kbit/s",
        "retrans",
        "%",
        "lost",
        "%",
        "jitter",
        "rtt p50",
        "p95 ms",
    ];
    let header: Vec<&str> = several.then_some("point").into_iter().chain(columns).collect();
    let mut table = new(&header, 4 + usize::from(several));
    for of in rows.flows().take(most) {
        let nanos = of.span.1.since(of.span.0);
        let tcp = of.tcp.unwrap_or_default();
        let lost = of.numbered.and_then(|of| lost((of.packets, of.expected)));
        let expected = of.numbered.map_or(0, |of| of.expected);
        let jitter = of.numbered.and_then(|of| of.jitter).map(|(_, mean)| ms(mean));
        let [median, high] = trip(&of.round_trip);
        let if_tcp = |text: String| if of.tcp.is_some() { text } else { NONE.to_owned() };
        let cells = vec![
            of.source.to_string(),
            of.destination.to_string(),
            kind(of),
            marks(of),
            of.volume.packets.to_string(),
            size(of.volume.octets),
            number(Some(nanos as f64 / 1e9)),
            number(kbit_s(of.volume.octets, nanos)),
            if_tcp(tcp.retransmissions.to_string()),
            if_tcp(share(tcp.retransmissions, tcp.segments)),
            lost.map_or(NONE.to_owned(), |lost| lost.to_string()),
            lost.map_or(NONE.to_owned(), |lost| share(lost, expected)),
            number(jitter),
            median,
            high,
        ];
        table.add_row(with_point(several, point(analysis, of.point), cells));
    }
    table
}

/// What it carries, or else its protocol.
fn kind(of: &Flow) -> String {
    match (of.application.name(), of.protocol) {
        (Some(name), _) => name.to_owned(),
        (None, protocol::TCP) => "tcp".to_owned(),
        (None, protocol::UDP) => "udp".to_owned(),
        (None, protocol::ICMP | protocol::ICMPV6) => "icmp".to_owned(),
        (None, other) => format!("ip {other}"),
    }
}

/// The code point with most packets; a star where there are others.
fn marks(of: &Flow) -> String {
    let most = of.marks.iter().max_by_key(|(_, packets)| *packets);
    let star = if of.marks.len() > 1 { "*" } else { "" };
    most.map_or(NONE.to_owned(), |(dscp, _)| format!("{dscp}{star}"))
}

fn messages(analysis: &Analysis, rows: &Rows, several: bool) -> TextTable {
    let columns = [
        "message",
        "precedence",
        "dscp",
        "outcome",
        "to",
        "begin",
        "seconds",
        "octets",
        "kbit/s",
        "retrans",
    ];
    let header: Vec<&str> = several.then_some("point").into_iter().chain(columns).collect();
    let mut table = new(&header, 5 + usize::from(several));
    let origin = analysis.points().iter().filter_map(|point| Some(point.span?.0)).min();
    for of in rows.messages() {
        let nanos = of.span.1.since(of.span.0);
        let begin = origin.map(|origin| of.span.0.since(origin) as f64 / 1e9);
        let cells = vec![
            identifier(of),
            precedence(of),
            of.marks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            format!("{}{}", of.outcome.name(), if of.gaps { " (gaps)" } else { "" }),
            of.destination.to_string(),
            begin.map_or(NONE.to_owned(), |begin| format!("{begin:.3}")),
            format!("{:.3}", nanos as f64 / 1e9),
            size(of.octets),
            number(kbit_s(of.octets, nanos)),
            of.retransmissions.to_string(),
        ];
        table.add_row(with_point(several, point(analysis, of.point), cells));
    }
    table
}

fn identifier(of: &Message) -> String {
    let Some(envelope) = &of.envelope else {
        return if of.resumed { "(resumed)".to_owned() } else { NONE.to_owned() };
    };
    match envelope.kind {
        TransferKind::Message => envelope.identifier.clone(),
        TransferKind::Probe => format!("probe {}", envelope.identifier),
        TransferKind::Report => format!("report {}", envelope.identifier),
    }
}

/// The precedence; where the envelope has none, its priority.
fn precedence(of: &Message) -> String {
    let envelope = of.envelope.as_ref();
    let precedence = envelope.and_then(|of| of.precedence).map(|of| of.name());
    let priority = envelope.and_then(|of| of.priority);
    precedence.or(priority).unwrap_or(NONE).to_owned()
}

fn between(analysis: &Analysis, hops: &[Hop]) -> TextTable {
    let columns = [
        "from",
        "to",
        "dscp",
        "packets",
        "lost",
        "%",
        "delay min",
        "p50",
        "p95",
        "max ms",
        "jitter",
        "remarked",
    ];
    let mut table = new(&columns, 3);
    for of in hops {
        let at = |part| number(of.delay.percentile(part).map(ms));
        let exact = |nanos: Option<i64>| number(nanos.map(signed_ms));
        let remarked: Vec<String> =
            of.remarked.iter().map(|(to, packets)| format!("{packets} to {to}")).collect();
        table.add_row([
            point(analysis, of.from),
            point(analysis, of.to),
            of.dscp.to_string(),
            of.packets.to_string(),
            of.lost.to_string(),
            share(of.lost, of.lost + of.packets),
            exact(of.delay.least()),
            at(0.5),
            at(0.95),
            exact(of.delay.most()),
            number(of.jitter.map(|(mean, _)| ms(mean))),
            if remarked.is_empty() { NONE.to_owned() } else { remarked.join(", ") },
        ]);
    }
    table
}

/// Notes below the tables.
fn notes(totals: &Totals, rows: &Rows, hops: &[Hop], cuts: &[Cut]) -> Vec<String> {
    let mut notes = vec![format!(
        "{} frames, {} IP packets, {} flows, {} messages",
        totals.frames, totals.packets, totals.flows, totals.messages
    )];
    let mut count_note = |count: u64, what: &str| {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    };
    count_note(totals.not_ip, "frames without IP");
    count_note(totals.unknown_link, "frames of a link type that is not read");
    count_note(
        totals.cut + totals.broken,
        "frames with a header that is cut off or contradicts itself",
    );
    count_note(totals.truncated, "packets of which the capture has not all octets");
    count_note(
        totals.flows_evicted,
        "flows split into two rows or more, as too many were there at once",
    );
    count_note(totals.associations_passed, "connections with TPKT not followed, as too many were");
    count_note(totals.sightings_evicted, "packets forgotten before another point could show them");
    count_note(totals.points_passed, "interfaces not distinguished, as there are too many");
    count_note(rows.messages_left_out, "messages left out here; --csv has all");
    let bleached: u64 = hops.iter().map(Hop::bleached).sum();
    count_note(bleached, "packets BLEACHED: marked at one point, CS0 at the next");
    if hops.iter().any(|of| of.delay.least().is_some_and(|least| least < 0)) {
        notes.push("delays below zero: the clocks of two points differ".to_owned());
    }
    notes.extend(cuts.iter().map(|cut| format!("{}: {}", cut.file, cut.reason)));
    notes
}
