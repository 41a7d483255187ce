//! What a sender and a receiver came to, as a table, as JSON and as CSV.

use crate::measure::spread::Summary;
use crate::measure::{Counts, FlowKey, FlowMeasured, Measured, TrafficRow};
use crate::receive::Received;
use crate::send::{Sent, SentFlow};
use comfy_table::presets;
use dscp::Dscp;
use serde_json::{Value, json};
use std::fmt::Write as _;
use text::TextTable;

/// Nanoseconds as milliseconds.
fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn spread(of: &Summary) -> Value {
    if of.count == 0 {
        return Value::Null;
    }
    json!({
        "count": of.count,
        "min_ms": ms(of.min),
        "mean_ms": ms(of.mean),
        "p50_ms": ms(of.p50),
        "p90_ms": ms(of.p90),
        "p99_ms": ms(of.p99),
        "p999_ms": ms(of.p999),
        "max_ms": ms(of.max),
    })
}

/// Keys that flows and the whole have in common.
fn numbers(counts: &Counts, nanos: u64, rates: [f64; 2], times: [&Summary; 2]) -> Value {
    let ([payload_kbit_s, ip_kbit_s], [delay, jitter]) = (rates, times);
    json!({
        "sent": counts.sent,
        "received": counts.received,
        "lost": counts.lost,
        "loss_percent": counts.loss_percent(),
        "duplicates": counts.duplicates,
        "reordered": counts.reordered,
        "stale": counts.stale,
        "payload_size": counts.payload_octets,
        "ip_size": counts.ip_octets,
        "duration_ms": ms(nanos),
        "payload_kbit_s": payload_kbit_s,
        "ip_kbit_s": ip_kbit_s,
        "delay": spread(delay),
        "jitter": spread(jitter),
    })
}

fn with(mut value: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut value, more) {
        object.extend(more);
    }
    value
}

fn name(dscp: u8) -> String {
    Dscp::new(dscp).map_or_else(|| dscp.to_string(), |dscp| dscp.to_string())
}

fn flow_json(flow: &FlowMeasured) -> Value {
    let seen = flow.dscp.iter().map(
        |(dscp, packets)| json!({ "dscp": dscp, "dscp_name": name(*dscp), "packets": packets }),
    );
    let octets = flow.tos.iter();
    let octets = octets.map(|(tos, packets)| json!({ "tos": tos, "packets": packets }));
    let more = json!({
        "run": flow.key.run,
        "flow": flow.key.flow,
        "source": flow.key.source,
        "ended": flow.ended,
        "negative_delays": flow.negative_delays,
        "dscp_seen": seen.collect::<Vec<_>>(),
        "tos_seen": octets.collect::<Vec<_>>(),
        "intervals": flow.rows.iter().map(interval_json).collect::<Vec<_>>(),
    });
    let times = [&flow.delay, &flow.jitter];
    with(numbers(&flow.counts, flow.duration(), flow.kbit_s(), times), more)
}

/// The results of the receiver, as one JSON object.
pub fn received_json(received: &Received) -> Value {
    let Received { measured, clock, ending, dropped_here } = received;
    let times = [&measured.delay, &measured.jitter];
    let whole = numbers(&measured.counts, measured.duration, measured.kbit_s(), times);
    let more = json!({
        "clock": clock.name(),
        "ending": ending,
        "dropped_at_receiver": dropped_here,
        "foreign": measured.foreign,
        "began_ns": measured.began,
        "interval_ms": ms(measured.interval),
        "intervals_left_out": measured.rows_left_out,
        "flows": measured.flows.iter().map(flow_json).collect::<Vec<_>>(),
    });
    with(whole, more)
}

fn table(header: &[&str]) -> TextTable {
    let mut table = TextTable::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    table
}

fn row(
    first: [String; 3],
    counts: &Counts,
    ip_kbit_s: f64,
    [delay, jitter]: [&Summary; 2],
) -> [String; 13] {
    let [flow, from, marks] = first;
    let time = |nanos: u64| format!("{:.3}", ms(nanos));
    [
        flow,
        from,
        marks,
        counts.sent.to_string(),
        counts.received.to_string(),
        format!("{} ({:.2} %)", counts.lost, counts.loss_percent()),
        counts.duplicates.to_string(),
        counts.reordered.to_string(),
        format!("{ip_kbit_s:.1}"),
        time(delay.mean),
        time(delay.p99),
        time(delay.max),
        time(jitter.mean),
    ]
}

/// The results of the receiver, as a table for people.
pub fn received_table(received: &Received) -> String {
    let measured = &received.measured;
    let mut table = table(&[
        "flow",
        "from",
        "DSCP",
        "sent",
        "received",
        "lost",
        "again",
        "late",
        "kbit/s",
        "delay ms",
        "99 %",
        "most",
        "jitter ms",
    ]);
    for flow in &measured.flows {
        let marks: Vec<String> = flow.dscp.keys().map(|dscp| name(*dscp)).collect();
        let label = match flow.ended {
            true => flow.key.flow.to_string(),
            false => format!("{} (no end)", flow.key.flow),
        };
        let times = [&flow.delay, &flow.jitter];
        let [_, ip_kbit_s] = flow.kbit_s();
        let first = [label, flow.key.source.to_string(), marks.join(" ")];
        table.add_row(row(first, &flow.counts, ip_kbit_s, times));
    }
    if measured.flows.len() != 1 {
        let times = [&measured.delay, &measured.jitter];
        let [_, ip_kbit_s] = measured.kbit_s();
        let first = ["all".into(), String::new(), String::new()];
        table.add_row(row(first, &measured.counts, ip_kbit_s, times));
    }
    let mut text = format!("{table}\n");
    let clock = received.clock.name();
    let _ = writeln!(text, "kbit/s of IP packets (TCP: of blocks); delays by the {clock} clock");
    if received.dropped_here > 0 {
        let dropped = received.dropped_here;
        let _ = writeln!(text, "{dropped} packets were lost at the receiver, which was too slow");
    }
    if measured.rows_left_out > 0 {
        let without = measured.rows_left_out;
        let _ = writeln!(text, "{without} arrivals or empty intervals have no row");
    }
    if measured.foreign > 0 {
        let _ = writeln!(text, "{} packets or connections were none of ours", measured.foreign);
    }
    text
}

/// A sum of nanoseconds as a mean of milliseconds; none of nothing.
fn mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| ms(sum) / count as f64)
}

fn interval_json(row: &TrafficRow) -> Value {
    let [payload_kbit_s, ip_kbit_s] = row.kbit_s().map_or([None; 2], |rates| rates.map(Some));
    let delayed = row.received > 0;
    let jittered = row.jitter_count > 0;
    json!({
        "from_ms": ms(row.from),
        "length_ms": ms(row.length),
        "received": row.received,
        "payload_kbit_s": payload_kbit_s,
        "ip_kbit_s": ip_kbit_s,
        "skipped": row.skipped,
        "reordered": row.reordered,
        "duplicates": row.duplicates,
        "delay_mean_ms": mean(row.delay_sum, row.received),
        "delay_max_ms": delayed.then(|| ms(row.delay_max)),
        "transit_mean_ms": delayed.then(|| row.transit_sum as f64 / 1e6 / row.received as f64),
        "jitter_mean_ms": mean(row.jitter_sum, row.jitter_count),
        "jitter_max_ms": jittered.then(|| ms(row.jitter_max)),
    })
}

/// The intervals of all flows, with a line of names. A field is empty where there is nothing to
/// report: the delay of no packet, the rate of an interval that is not whole and has only one.
pub fn csv(measured: &Measured) -> String {
    let mut text = String::from(
        "run,flow,source,from_ms,length_ms,received,payload_kbit_s,ip_kbit_s,skipped,reordered,\
         duplicates,delay_mean_ms,delay_max_ms,jitter_mean_ms,jitter_max_ms\n",
    );
    let field = |value: Option<f64>, digits: usize| {
        value.map_or_else(String::new, |value| format!("{value:.digits$}"))
    };
    for flow in &measured.flows {
        let FlowKey { run, flow: number, source } = flow.key;
        for row in &flow.rows {
            let TrafficRow { received, skipped, reordered, duplicates, .. } = row;
            let (from, length) = (ms(row.from), ms(row.length));
            let rates = row.kbit_s().map_or([None; 2], |rates| rates.map(Some));
            let [payload, ip] = rates.map(|rate| field(rate, 3));
            let times = [
                mean(row.delay_sum, *received),
                (*received > 0).then(|| ms(row.delay_max)),
                mean(row.jitter_sum, row.jitter_count),
                (row.jitter_count > 0).then(|| ms(row.jitter_max)),
            ];
            let times = times.map(|time| field(time, 6)).join(",");
            let _ = writeln!(
                text,
                "{run},{number},{source},{from},{length},{received},{payload},{ip},{skipped},\
                 {reordered},{duplicates},{times}",
            );
        }
    }
    text
}

/// What came back, with the keys of what is received; its delays are `round_trip`.
fn back_json(back: &Measured) -> Value {
    let renamed = |mut value: Value| {
        if let Value::Object(object) = &mut value {
            let times = object.remove("delay").unwrap_or_default();
            object.insert("round_trip".to_owned(), times);
        }
        value
    };
    let times = [&back.delay, &back.jitter];
    let whole = numbers(&back.counts, back.duration, back.kbit_s(), times);
    let more = json!({
        "foreign": back.foreign,
        "interval_ms": ms(back.interval),
        "flows": back.flows.iter().map(|flow| renamed(flow_json(flow))).collect::<Vec<_>>(),
    });
    with(renamed(whole), more)
}

/// The results of the sender, as one JSON object.
pub fn sent_json(sent: &Sent) -> Value {
    let one = |flow: &SentFlow| {
        json!({
            "sent": flow.sent,
            "payload_size": flow.payload_octets,
            "payload_kbit_s": flow.kbit_s(),
            "errors": flow.errors,
            "given_up_ms": ms(flow.given_up),
            "cut_ms": ms(flow.cut),
            "latest_ms": ms(flow.latest),
        })
    };
    let sum = |of: fn(&SentFlow) -> u64| sent.flows.iter().map(of).sum::<u64>();
    let back = sent.back.as_ref().map(back_json);
    json!({
        "back": back,
        "run": sent.run,
        "sent": sum(|flow| flow.sent),
        "payload_size": sum(|flow| flow.payload_octets),
        "duration_ms": ms(sent.duration),
        "payload_kbit_s": sent.kbit_s(),
        "flows": sent.flows.iter().map(one).collect::<Vec<_>>(),
    })
}

/// The results of the sender, as a table for people.
pub fn sent_table(sent: &Sent) -> String {
    let header = ["flow", "sent", "payload kbit/s", "latest ms", "given up ms", "cut ms", "errors"];
    let mut table = table(&header);
    for (number, flow) in sent.flows.iter().enumerate() {
        let errors: Vec<String> =
            flow.errors.iter().map(|(name, count)| format!("{name} {count}")).collect();
        table.add_row([
            number.to_string(),
            flow.sent.to_string(),
            format!("{:.1}", flow.kbit_s()),
            format!("{:.3}", ms(flow.latest)),
            format!("{:.1}", ms(flow.given_up)),
            format!("{:.1}", ms(flow.cut)),
            errors.join(", "),
        ]);
    }
    let mut text = format!("{table}\n");
    if let Some(back) = &sent.back {
        let _ = writeln!(text, "{}", back_table(back));
    }
    text
}

fn back_table(back: &Measured) -> TextTable {
    let header = ["flow", "from", "DSCP", "came back", "lost", "there and back ms", "99 %", "most"];
    let mut table = table(&header);
    for flow in &back.flows {
        let marks: Vec<String> = flow.dscp.keys().map(|dscp| name(*dscp)).collect();
        let time = |nanos: u64| format!("{:.3}", ms(nanos));
        table.add_row([
            flow.key.flow.to_string(),
            flow.key.source.to_string(),
            marks.join(" "),
            flow.counts.received.to_string(),
            format!("{} ({:.2} %)", flow.counts.lost, flow.counts.loss_percent()),
            time(flow.delay.p50),
            time(flow.delay.p99),
            time(flow.delay.max),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LoadClock;
    use crate::measure::{Arrival, Meter};
    use crate::receive::Ending;

    fn received() -> Received {
        let mut meter = Meter::new(100_000_000);
        for sequence in [0u64, 1, 3] {
            meter.take(&Arrival {
                flow: FlowKey { run: 9, flow: 2, source: "10.0.1.2:40000".parse().unwrap() },
                sequence,
                sent: sequence * 100_000_000,
                received: sequence * 100_000_000 + 1_500_000,
                octets: 972,
                overhead: 28,
                tos: Some(0x20),
            });
        }
        let measured = meter.measured();
        let ending = Ending::TimeOver;
        Received { measured, clock: LoadClock::Monotonic, ending, dropped_here: 4 }
    }

    #[test]
    fn the_csv_has_a_line_an_interval() {
        let text = csv(&received().measured);
        let lines: Vec<_> = text.lines().collect();
        let from = "9,2,10.0.1.2:40000";
        // 1,000 octets each 100 ms, but for the third; the last interval has not begun to last.
        assert_eq!(
            lines[2],
            format!("{from},100,100,1,77.760,80.000,0,0,0,1.500000,1.500000,0.000000,0.000000")
        );
        assert_eq!(lines[3], format!("{from},200,100,0,0.000,0.000,0,0,0,,,,"));
        assert_eq!(lines[4], format!("{from},300,0,1,,,1,0,0,1.500000,1.500000,0.000000,0.000000"));
        assert_eq!(lines.len(), 5);
        let columns = |line: &str| line.split(',').count();
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])));
    }

    #[test]
    fn what_a_late_sender_left_out_is_reported() {
        let (given_up, cut) = (20_500_000, 3_250_000);
        let flow = SentFlow { sent: 7, given_up, cut, ..SentFlow::default() };
        let sent = Sent { run: 1, flows: vec![flow], duration: 0, back: None };
        let json = sent_json(&sent);
        let flow = &json["flows"][0];
        assert_eq!((&flow["given_up_ms"], &flow["cut_ms"]), (&json!(20.5), &json!(3.25)));
        let table = sent_table(&sent);
        assert!(table.contains("20.5") && table.contains("3.2"), "{table}");
    }

    #[test]
    fn json_and_table_have_the_same_numbers() {
        let json = received_json(&received());
        assert_eq!(json["lost"], 1);
        assert_eq!(json["loss_percent"], 25.0);
        assert_eq!(json["ip_kbit_s"], 2_000.0 * 8.0 / 300.0);
        assert_eq!(json["delay"]["p99_ms"], 1.5);
        assert_eq!(json["flows"][0]["dscp_seen"][0]["dscp_name"], "CS1");
        assert_eq!(json["flows"][0]["ended"], false);
        let intervals = &json["flows"][0]["intervals"];
        assert_eq!(intervals.as_array().map(Vec::len), Some(4));
        assert_eq!(
            (&intervals[1]["ip_kbit_s"], &intervals[2]["ip_kbit_s"]),
            (&json!(80.0), &json!(0.0))
        );
        assert_eq!(
            (&intervals[2]["delay_mean_ms"], &intervals[3]["ip_kbit_s"]),
            (&Value::Null, &Value::Null)
        );
        let table = received_table(&received());
        for part in [
            "2 (no end)",
            "CS1",
            "1 (25.00 %)",
            "53.3",
            "10.0.1.2:40000",
            "1.500",
            "4 packets were lost",
        ] {
            assert!(table.contains(part), "{part}: {table}");
        }
    }
}
