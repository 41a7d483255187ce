//! All that was found as one JSON object (keys as DESIGN section 11 has them: `_ms`, `kbit_s`,
//! `_size` in octets).

use super::{Cut, Feed, Rows};
use ::analyse::report::{Aggregate, Hop, TransferKind};
use ::analyse::{Analysis, Flow, Message, Received, Summary, TcpCounts, Time};
use base::time::Utc;
use dscp::Dscp;
use serde_json::{Map, Value, json};

pub(super) fn ms(nanos: f64) -> f64 {
    nanos / 1e6
}

pub(super) fn signed_ms(nanos: i64) -> f64 {
    ms(nanos as f64)
}

/// Octets in so many nanoseconds as kbit/s; none where no time passed.
pub(super) fn kbit_s(octets: u64, nanos: u64) -> Option<f64> {
    (nanos > 0).then(|| octets as f64 * 8e6 / nanos as f64)
}

/// RFC 3339.
pub(super) fn utc(time: Time) -> String {
    Utc(time.0 / 1_000).to_string()
}

/// A part of a whole in percent; none of nothing.
pub(super) fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

fn summary(of: &Summary) -> Value {
    let (Some(least), Some(mean), Some(most)) = (of.least(), of.mean(), of.most()) else {
        return Value::Null;
    };
    let mut object = Map::new();
    object.insert("count".into(), of.count().into());
    object.insert("min_ms".into(), signed_ms(least).into());
    object.insert("mean_ms".into(), ms(mean).into());
    for (name, part) in [("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99)] {
        if let Some(value) = of.percentile(part) {
            object.insert(name.into(), ms(value).into());
        }
    }
    object.insert("max_ms".into(), signed_ms(most).into());
    Value::Object(object)
}

fn tcp(of: &TcpCounts) -> Value {
    json!({
        "segments": of.segments,
        "retransmissions": of.retransmissions,
        "retransmission_percent": percent(of.retransmissions, of.segments),
        "retransmitted_size": of.retransmitted_octets,
        "lost_before_point": of.lost_before,
        "spurious": of.spurious,
        "out_of_order": of.out_of_order,
        "missing_size": of.missing_octets,
        "duplicate_acks": of.duplicate_acks,
        "probes": of.probes,
        "zero_windows": of.zero_windows,
    })
}

fn numbered(of: &Received) -> Value {
    json!({
        "received": of.packets,
        "expected": of.expected,
        "lost": of.expected.saturating_sub(of.packets),
        "loss_percent": percent(of.expected.saturating_sub(of.packets), of.expected),
        "duplicates": of.duplicates,
        "reordered": of.reordered,
        "jitter_ms": of.jitter.map(|(end, _)| ms(end)),
        "jitter_mean_ms": of.jitter.map(|(_, mean)| ms(mean)),
    })
}

fn names(marks: impl Iterator<Item = (Dscp, u64)>) -> Value {
    let of = |(dscp, packets): (Dscp, u64)| json!({ "dscp": dscp.number(), "dscp_name": dscp.to_string(), "packets": packets });
    marks.map(of).collect()
}

fn aggregate(analysis: &Analysis, point: usize, of: &Aggregate) -> Value {
    let nanos = of.span.1.since(of.span.0);
    let width = of.series.width();
    let intervals: Vec<Value> = of
        .series
        .iter()
        .map(|(begin, bin)| {
            json!({
                "at": utc(begin),
                "packets": bin.packets,
                "ip_size": bin.octets,
                "ip_kbit_s": kbit_s(bin.octets, width),
                "retransmissions": bin.retransmissions,
                "round_trip_ms": bin.round_trip.mean().map(ms),
            })
        })
        .collect();
    let (received, expected) = of.numbered;
    let mut value = json!({
        "point": name(analysis, point),
        "dscp": of.dscp.number(),
        "dscp_name": of.dscp.to_string(),
        "packets": of.volume.packets,
        "ip_size": of.volume.octets,
        "frame_size": of.volume.frame_octets,
        "begin": utc(of.span.0),
        "end": utc(of.span.1),
        "ip_kbit_s": kbit_s(of.volume.octets, nanos),
        "flows": of.flows,
        "tcp": tcp(&of.tcp),
        "round_trip": summary(&of.round_trip),
        "interval_ms": ms(width as f64),
        "intervals": intervals,
    });
    if let (true, Value::Object(object)) = (expected > 0, &mut value) {
        let lost = expected.saturating_sub(received);
        object.insert(
            "numbered".into(),
            json!({ "received": received, "expected": expected, "lost": lost }),
        );
    }
    value
}

fn name(analysis: &Analysis, point: usize) -> Value {
    analysis.points().get(point).map_or(Value::Null, |point| point.name.clone().into())
}

fn series<'a>(of: impl Iterator<Item = (Time, &'a u64)>, width: u64) -> Value {
    of.map(|(at, octets)| json!({ "at": utc(at), "kbit_s": kbit_s(*octets, width) })).collect()
}

fn flow(analysis: &Analysis, of: &Flow) -> Value {
    let nanos = of.span.1.since(of.span.0);
    let mut value = json!({
        "point": name(analysis, of.point),
        "protocol": of.protocol,
        "source": of.source.to_string(),
        "destination": of.destination.to_string(),
        "begin": utc(of.span.0),
        "end": utc(of.span.1),
        "packets": of.volume.packets,
        "ip_size": of.volume.octets,
        "frame_size": of.volume.frame_octets,
        "payload_size": of.payload_octets,
        "ip_kbit_s": kbit_s(of.volume.octets, nanos),
        "marks": names(of.marks.iter().copied()),
        "over": of.over.name(),
        "interval_ms": ms(of.series.width() as f64),
        "intervals": series(of.series.iter(), of.series.width()),
    });
    if let Value::Object(object) = &mut value {
        let application = of.application.name().map(Value::from);
        object.extend(application.map(|value| ("application".to_owned(), value)));
        object.extend(of.tcp.as_ref().map(|counts| ("tcp".to_owned(), tcp(counts))));
        object.extend(of.numbered.as_ref().map(|of| ("numbered".to_owned(), numbered(of))));
        for (key, of) in [("round_trip", &of.round_trip), ("delay", &of.delay)] {
            object.extend((of.count() > 0).then(|| (key.to_owned(), summary(of))));
        }
    }
    value
}

fn message(analysis: &Analysis, of: &Message) -> Value {
    let nanos = of.span.1.since(of.span.0);
    let mut value = json!({
        "point": name(analysis, of.point),
        "source": of.source.to_string(),
        "destination": of.destination.to_string(),
        "begin": utc(of.span.0),
        "end": utc(of.span.1),
        "duration_ms": ms(nanos as f64),
        "size": of.octets,
        "kbit_s": kbit_s(of.octets, nanos),
        "marks": of.marks.iter().map(|dscp| dscp.number()).collect::<Vec<u8>>(),
        "retransmissions": of.retransmissions,
        "checkpoints": of.checkpoints,
        "resumed": of.resumed,
        "gaps": of.gaps,
        "outcome": of.outcome.name(),
        "interval_ms": ms(of.series.width() as f64),
        "intervals": series(of.series.iter(), of.series.width()),
    });
    if let Value::Object(object) = &mut value {
        if let [dscp] = of.marks.as_slice() {
            object.insert("dscp".into(), dscp.number().into());
            object.insert("dscp_name".into(), dscp.to_string().into());
        }
        object.extend(of.sent.map(|at| ("sent".to_owned(), Value::from(utc(at)))));
        if let Some(envelope) = &of.envelope {
            let kind = match envelope.kind {
                TransferKind::Message => "message",
                TransferKind::Probe => "probe",
                TransferKind::Report => "report",
            };
            object.insert("kind".into(), kind.into());
            object.insert("mts_identifier".into(), envelope.identifier.as_str().into());
            let precedence = envelope.precedence.map(|of| Value::from(of.name()));
            object.extend(precedence.map(|of| ("precedence".to_owned(), of)));
            let priority = envelope.priority.map(Value::from);
            object.extend(priority.map(|of| ("priority".to_owned(), of)));
        }
    }
    value
}

fn hop(analysis: &Analysis, of: &Hop) -> Value {
    let width = of.series.width();
    let delays = of.series.iter().filter(|(_, mean)| mean.count > 0);
    let intervals: Vec<Value> = delays
        .map(|(at, mean)| {
            json!({ "at": utc(at), "packets": mean.count, "delay_ms": mean.mean().map(ms) })
        })
        .collect();
    json!({
        "from": name(analysis, of.from),
        "to": name(analysis, of.to),
        "dscp": of.dscp.number(),
        "dscp_name": of.dscp.to_string(),
        "packets": of.packets,
        "lost": of.lost,
        "loss_percent": percent(of.lost, of.packets + of.lost),
        "delay": summary(&of.delay),
        "jitter_mean_ms": of.jitter.map(|(mean, _)| ms(mean)),
        "jitter_max_ms": of.jitter.map(|(_, most)| ms(most)),
        "remarked": names(of.remarked.iter().copied()),
        "bleached": of.bleached(),
        "interval_ms": ms(width as f64),
        "intervals": intervals,
    })
}

/// Everything.
pub(crate) fn json(analysis: &Analysis, rows: &Rows, feed: &Feed, cuts: &[Cut]) -> Value {
    let totals = analysis.totals();
    let points: Vec<Value> = analysis
        .points()
        .iter()
        .map(|point| {
            json!({
                "name": point.name,
                "frames": point.frames,
                "begin": point.span.map(|span| utc(span.0)),
                "end": point.span.map(|span| utc(span.1)),
            })
        })
        .collect();
    let cuts: Vec<Value> =
        cuts.iter().map(|cut| json!({ "file": cut.file, "reason": cut.reason })).collect();
    json!({
        "points": points,
        "totals": {
            "file_size": feed.octets,
            "frames": totals.frames,
            "ip_packets": totals.packets,
            "not_ip": totals.not_ip,
            "cut_frames": totals.cut,
            "unknown_link": totals.unknown_link,
            "broken": totals.broken,
            "truncated": totals.truncated,
            "flows": totals.flows,
            "flows_evicted": totals.flows_evicted,
            "flows_left_out": rows.flows_left_out,
            "messages": totals.messages,
            "messages_left_out": rows.messages_left_out,
            "associations_passed": totals.associations_passed,
            "sightings_evicted": totals.sightings_evicted,
            "points_passed": totals.points_passed,
        },
        "cut": cuts,
        "dscp": analysis.aggregates().map(|(point, of)| aggregate(analysis, point, of)).collect::<Vec<_>>(),
        "flows": rows.flows().map(|of| flow(analysis, of)).collect::<Vec<_>>(),
        "messages": rows.messages().iter().map(|of| message(analysis, of)).collect::<Vec<_>>(),
        "hops": analysis.hops().iter().map(|of| hop(analysis, of)).collect::<Vec<_>>(),
    })
}
