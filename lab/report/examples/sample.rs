//! Writes a report of made-up measurements, to look at: `cargo run -p report --example sample -- DIR`.

use report::{Machine, StudyReport};
use std::collections::BTreeMap;
use std::path::Path;
use study::measured::{Environment, LoadMeasured, Measured, MessageTimes, PortSeries, PortSteps};
use study::{Library, Planned, Study, judge, plan, rows};

struct Files;

impl Library for Files {
    fn topology(&self, name: &str) -> Result<String, String> {
        match name {
            "nato" => Ok(include_str!("../../../config/lab/topologies/nato.toml").to_owned()),
            _ => Err("there is none".to_owned()),
        }
    }

    fn policy(&self, name: &str) -> Result<String, String> {
        match name {
            "nato-three-queues" => {
                Ok(include_str!("../../../config/lab/policies/nato-three-queues.toml").to_owned())
            }
            _ => Err("there is none".to_owned()),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).unwrap_or("report-sample".to_owned());
    let study: Study = toml::from_str(include_str!("sample.toml"))?;
    let planned = plan(&study, &Files)?;
    let made = planned.iter().filter(|planned| planned.experiment_name() != "pre-emption");
    let measured: Vec<Measured> =
        made.enumerate().map(|(n, planned)| made_up(n, planned)).collect();
    let rows = rows(&study, &planned, &measured);
    let verdicts = judge(&study, &rows);
    let machine = Machine {
        date: "2026-11-22T12:00:00Z".to_owned(),
        command: "lab run sample --scale 10 --json sample.json".to_owned(),
        commit: "0123456789ab".to_owned(),
        kernel: "Linux 6.18".to_owned(),
        cpus: "2 of some make".to_owned(),
        memory: "8 GB".to_owned(),
        more: BTreeMap::from([("how".to_owned(), "made up by a formula".to_owned())]),
    };
    let report = StudyReport {
        study: &study,
        planned: &planned,
        measured: &measured,
        rows: &rows,
        verdicts: &verdicts,
        machine: &machine,
    };
    let written = report.write(Path::new(&directory))?;
    print!("{}", report.text());
    println!("{} with {} pictures", written.html.display(), written.count);
    Ok(())
}

/// Something between 0 and 1 that looks like chance and is none.
fn noise(seed: usize, at: usize) -> f64 {
    let mixed = (seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (at as u64 + 1);
    let mixed = mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ (mixed >> 31)) % 1_000) as f64 / 1_000.0
}

/// A run whose times are near what was "printed", or follow the swept parameters.
fn made_up(number: usize, planned: &Planned) -> Measured {
    let virtually = planned.experiment_name() == "quarter" || planned.run == "routine-1MB";
    let scale = study::Scale::whole(if virtually { 1 } else { 10 });
    let fast = scale.factor();
    let limit = planned.limit.as_secs_f64();
    let mut messages = Vec::new();
    let mut flows: Vec<(u8, f64, f64, f64)> = Vec::new();
    for (place, message) in planned.messages.iter().enumerate() {
        let start = if message.name == "flash" && place > 0 && planned.run == "both" {
            60.0
        } else if planned.loads.is_empty() {
            0.05 * place as f64
        } else {
            30.0
        };
        let printed = message.paper.get("seconds").copied();
        let factor = 0.82 + 0.45 * noise(number, place);
        let swept = || {
            let get = |name: &str| planned.settings.get(name);
            let window = get("window").and_then(toml::Value::as_integer).unwrap_or(3) as f64;
            let kilo = get("checkpoint").and_then(toml::Value::as_str).unwrap_or("2kB");
            let kilo: f64 = kilo.trim_end_matches("kB").parse().unwrap_or(2.0);
            let rate = (window * kilo * 8.0 / 0.09).min(1_880.0);
            message.size.0 as f64 * 8e-3 / rate
        };
        let odd = if planned.run.contains("wred") { 2.6 } else { factor };
        let seconds = printed.map_or_else(swept, |printed| printed * odd);
        let ends = message.paper.contains_key("seconds")
            || planned.loads.is_empty()
            || number.is_multiple_of(7)
            || planned.experiment_name() == "congestion";
        let end = ends.then_some(start + seconds).filter(|end| *end < limit);
        let number = planned.mail.iter().flat_map(|mail| &mail.channels);
        let mut number = number.filter(|channel| channel.precedences.contains(&message.precedence));
        let dscp = number.next().map_or(0, |channel| channel.dscp.number());
        let rate = if ends { message.size.0 as f64 * 8e-3 / seconds } else { 2.0 };
        flows.push((dscp, start, end.unwrap_or(limit), rate));
        messages.push(MessageTimes {
            name: message.name.clone(),
            submitted: Some(start / fast),
            started: Some((start + 0.02) / fast),
            confirmed: end.map(|end| (end - 0.02) / fast),
            delivered: end.map(|end| end / fast),
            transfers: 1,
            ..MessageTimes::default()
        });
    }
    let end = flows.iter().map(|flow| flow.2).fold(0.0, f64::max);
    let busy = flows.iter().map(|flow| flow.3).sum::<f64>();
    let loads = planned.loads.iter().map(|load| {
        let rate = (505.0 - busy).clamp(40.0, 500.0);
        flows.push((load.dscp.number(), 0.0, end, rate));
        LoadMeasured {
            name: load.name.clone(),
            ended: end / fast,
            sent: 1_000,
            received: (rate * 1.0) as u64,
            kbit_s: rate * fast,
            loss_percent: Some((1.0 - rate / 1_000.0) * 100.0),
            delay_ms: Some(920.0 / fast),
            delay_p99_ms: Some(1_310.0 / fast),
            jitter_ms: Some(14.2 / fast),
            ..LoadMeasured::default()
        }
    });
    let loads: Vec<LoadMeasured> = loads.collect();
    Measured {
        id: planned.id.clone(),
        environment: if virtually { Environment::Simulation } else { Environment::Testbed },
        scale,
        how: BTreeMap::from([
            ("data path".to_owned(), if virtually { "sim" } else { "tun" }.to_owned()),
            ("congestion control".to_owned(), "cubic".to_owned()),
        ]),
        seed: 1,
        given_up: messages.iter().any(|message| message.delivered.is_none()),
        messages,
        series: vec![over_time(number, &flows, end, fast, !loads.is_empty())],
        loads,
        seconds: end / fast,
        notes: match planned.run.as_str() {
            "both" => vec![
                "The machine was busy: 3 of 4,100 packets left more than 1 ms late.".to_owned(),
            ],
            _ => Vec::new(),
        },
        ..Measured::default()
    }
}

fn over_time(
    number: usize,
    flows: &[(u8, f64, f64, f64)],
    end: f64,
    fast: f64,
    loaded: bool,
) -> PortSeries {
    let interval = 0.1;
    let steps = ((end / fast / interval).ceil() as usize).clamp(1, 20_000);
    let mut series =
        PortSeries { port: "naples-sar.wan".to_owned(), interval, rows: BTreeMap::new() };
    for (place, (dscp, from, to, rate)) in flows.iter().enumerate() {
        let row = series.rows.entry(*dscp).or_insert_with(|| PortSteps {
            octets: vec![0; steps],
            packets: Vec::new(),
            dropped: vec![0; steps],
            waiting: vec![0; steps],
        });
        for step in 0..steps {
            let at = step as f64 * interval * fast;
            if at < *from || at >= *to {
                continue;
            }
            let chance = noise(number * 31 + place, step);
            let sent = rate * fast * 125.0 * interval * (0.7 + 0.6 * chance);
            let (waits, drops) =
                if loaded { (30.0 + 34.0 * chance, 13.0 * chance) } else { (9.0 * chance, 0.0) };
            add(&mut row.octets, step, sent);
            add(&mut row.waiting, step, waits);
            add(&mut row.dropped, step, drops);
        }
    }
    series
}

fn add(values: &mut [u64], step: usize, value: f64) {
    if let Some(there) = values.get_mut(step) {
        *there += value as u64;
    }
}
