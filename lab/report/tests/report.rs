//! Reports of a small study that is made up, as are all its figures.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails, in helpers too")]

use report::{MAX_RUN_FIGURES, Machine, StudyReport};
use std::collections::BTreeMap;
use study::measured::{
    Environment, LoadMeasured, Measured, MessageTimes, PortSeries, PortSteps, TcpCount,
};
use study::{Library, Planned, Study, StudyRow, Verdict, judge, plan, rows};

const SCRIPT: &str = "<script>alert(1)</script>";

struct Pair;

impl Library for Pair {
    fn topology(&self, _: &str) -> Result<String, String> {
        Ok(include_str!("../../../config/lab/topologies/pair.toml").to_owned())
    }

    fn policy(&self, _: &str) -> Result<String, String> {
        Ok(include_str!("../../../config/lab/policies/plain.toml").to_owned())
    }
}

/// All that a report is of.
struct Made {
    study: Study,
    planned: Vec<Planned>,
    measured: Vec<Measured>,
    rows: Vec<StudyRow>,
    verdicts: Vec<Verdict>,
    machine: Machine,
}

impl Made {
    /// With what each run gave; those without anything were not made.
    fn new(give: impl Fn(usize, &Planned) -> Option<Measured>) -> Made {
        let study: Study = toml::from_str(include_str!("made-up.toml")).unwrap();
        let planned = plan(&study, &Pair).unwrap();
        let measured: Vec<Measured> =
            planned.iter().enumerate().filter_map(|(place, of)| give(place, of)).collect();
        let rows = rows(&study, &planned, &measured);
        let verdicts = judge(&study, &rows);
        Made { study, planned, measured, rows, verdicts, machine: machine() }
    }

    fn usual() -> Made {
        Made::new(|place, planned| (planned.run != "never").then(|| usual(place, planned)))
    }

    fn report(&self) -> StudyReport<'_> {
        StudyReport {
            study: &self.study,
            planned: &self.planned,
            measured: &self.measured,
            rows: &self.rows,
            verdicts: &self.verdicts,
            machine: &self.machine,
        }
    }
}

fn machine() -> Machine {
    Machine {
        date: "2007-11-01T00:00:00Z".to_owned(),
        command: format!("lab run made-up --note '{SCRIPT}'"),
        kernel: "Linux & others".to_owned(),
        more: BTreeMap::from([("path".to_owned(), SCRIPT.to_owned())]),
        ..Machine::default()
    }
}

fn usual(place: usize, planned: &Planned) -> Measured {
    let ends = planned.run != "endless";
    let end = 1.0 + place as f64;
    let message = |message: &study::file::StudyMessage| MessageTimes {
        name: message.name.clone(),
        submitted: Some(0.1),
        started: Some(0.2),
        confirmed: ends.then_some(end - 0.1),
        delivered: ends.then_some(end),
        ..MessageTimes::default()
    };
    let load = |load: &study::file::StudyLoad| LoadMeasured {
        name: load.name.clone(),
        ended: end,
        kbit_s: 800.0 + place as f64,
        loss_percent: Some(place as f64),
        ..LoadMeasured::default()
    };
    let steps = PortSteps {
        octets: vec![1_000; 40],
        packets: vec![10; 40],
        dropped: vec![1; 40],
        waiting: vec![2; 40],
    };
    Measured {
        id: planned.id.clone(),
        environment: if planned.experiment_name() == "sweep" {
            Environment::Simulation
        } else {
            Environment::Testbed
        },
        scale: study::Scale::whole(if place < 2 { 2 } else { 1 }),
        how: BTreeMap::from([("data path".to_owned(), format!("tun {SCRIPT}"))]),
        seed: 7,
        messages: planned.messages.iter().map(message).collect(),
        loads: planned.loads.iter().map(load).collect(),
        series: vec![PortSeries {
            port: "middle.bob".to_owned(),
            interval: 0.1,
            rows: BTreeMap::from([(0, steps.clone()), (24, steps)]),
        }],
        tcp: vec![TcpCount {
            from: "10.0.1.2".parse().unwrap(),
            to: "10.0.2.2".parse().unwrap(),
            dscp: 0,
            sent: 1_100,
            received: 1_000,
        }],
        seconds: if ends { end } else { 60.0 },
        given_up: !ends,
        notes: vec![format!("a note {SCRIPT}")],
        ..Measured::default()
    }
}

/// A page without its style, and with pictures as their labels only.
fn without_pictures(html: &str) -> String {
    let (head, rest) = html.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let mut text = head.to_owned();
    for (place, part) in rest.split("<svg ").enumerate() {
        if place == 0 {
            text.push_str(part);
            continue;
        }
        let (picture, after) = part.split_once("</svg>").unwrap();
        let label = picture.split_once("aria-label=\"").unwrap().1.split('"').next().unwrap();
        text.push_str(&format!("[picture: {label}]"));
        text.push_str(after);
    }
    text
}

/// Elements that are opened and not closed, or closed and not opened.
fn unbalanced(html: &str) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut wrong = Vec::new();
    let (_, html) = html.split_once("</style>").unwrap();
    for part in html.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        if tag.starts_with('/') {
            if open.last() == Some(&name) {
                open.pop();
            } else {
                wrong.push(name.to_owned());
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    // The head and the page were opened before.
    wrong.retain(|name| !["head", "html"].contains(&name.as_str()));
    wrong.extend(open.into_iter().map(str::to_owned));
    wrong
}

#[test]
fn a_page_shows_everything() {
    let made = Made::usual();
    let html = made.report().html();
    assert_eq!(unbalanced(&html), Vec::<String>::new());
    insta::assert_snapshot!(without_pictures(&html));
}

#[test]
fn a_page_stands_alone() {
    let html = Made::usual().report().html();
    for word in ["src=", "@import", "url(", "<link", "<script", "<iframe", "javascript:"] {
        let found = html.match_indices(word).filter(|(at, _)| {
            // Texts may have what they like.
            !html.get(..*at).unwrap().ends_with("&lt;img ")
        });
        assert_eq!(found.count(), 0, "{word}");
    }
    let addresses: Vec<_> = html.match_indices("http").collect();
    let names = html.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
    assert_eq!(addresses.len(), names, "only the name of SVG");
    assert!(names >= 8, "{names} pictures");
}

#[test]
fn whatever_texts_are_made_of_they_stay_texts() {
    let html = Made::usual().report().html();
    let escaped = "&lt;script&gt;alert(1)&lt;/script&gt;";
    assert!(html.matches(escaped).count() >= 5, "notes, settings, machine, command");
    assert!(html.contains("&lt;script&gt;alert(&#39;title&#39;)&lt;/script&gt;"));
    assert!(html.contains("Alone &lt;/h2&gt;&lt;script&gt;"));
    assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;"));
    for raw in ["<script", "<img", "<b>round", "<i>five"] {
        assert!(!html.contains(raw), "{raw}");
    }
}

#[test]
fn json_has_every_number() {
    let made = Made::usual();
    let json: serde_json::Value = serde_json::from_str(&made.report().json().unwrap()).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["machine", "measured", "rows", "score", "study", "verdicts"]);
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), made.rows.len());
    let first = &rows[0];
    assert_eq!(
        (&first["table"], &first["row"], &first["precedence"], &first["dscp"], &first["size"]),
        (&"t1".into(), &"small".into(), &"routine".into(), &0.into(), &1_000.into())
    );
    assert_eq!((&first["paper_seconds"], &first["seconds"]), (&2.0.into(), &1.8.into()));
    assert_eq!((&first["environment"], &first["scale"]), (&"testbed".into(), &2.into()));
    let steps = &json["measured"][0]["series"][0]["rows"]["24"]["octets"];
    assert_eq!(steps.as_array().unwrap().len(), 40);
    assert_eq!(json["machine"]["kernel"], "Linux & others");
    assert_eq!(json["verdicts"][1]["holds"], false);
    assert_eq!((&json["score"]["printed"], &json["score"]["far"]), (&12.into(), &2.into()));
}

#[test]
fn every_printed_value_has_a_row_of_markdown() {
    let made = Made::usual();
    insta::assert_snapshot!(made.report().markdown());
}

#[test]
fn the_short_table_is_aligned_and_shows_what_does_not_hold() {
    let mut made = Made::usual();
    made.rows[0].row = "small \u{1b}[31m".to_owned();
    insta::assert_snapshot!(made.report().text());
}

#[test]
fn a_median_has_its_range_and_a_row_that_nothing_fits_its_reason() {
    let mut made = Made::usual();
    let row = &mut made.rows[0];
    (row.repeats, row.given_up) = (5, 1);
    row.range.insert("seconds".to_owned(), (Some(1.25), None));
    // A row that is near shows no reason.
    row.no_fit_reason = "never shown".to_owned();
    made.rows[1].no_fit_reason = format!("chance {SCRIPT}");
    let report = made.report();
    let (html, text) = (report.html(), report.text());
    assert!(html.contains("1.80<small> (1.25–given up)</small>"), "{html}");
    assert!(html.contains("median of 5 (lowest–highest)"));
    assert!(html.contains("not near: chance &lt;script&gt;"));
    assert_eq!(unbalanced(&html), Vec::<String>::new());
    assert!(text.contains("1.80 (1.25–given up)"), "{text}");
    assert!(
        text.contains("near what was printed, and why:\n  t1 large: chance <script>"),
        "{text}"
    );
    assert!(!text.contains("never shown"));
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["rows"][0]["range"]["seconds"], serde_json::json!([1.25, null]));
}

#[test]
fn a_row_that_lost_packets_in_the_simulation_has_the_factor_of_its_tcp() {
    let mut made = Made::usual();
    made.rows.iter_mut().for_each(|row| row.more.retain(|name, _| !name.starts_with("tcp_")));
    let everywhere = |made: &Made| {
        let report = made.report();
        [report.text(), report.markdown(), report.html()]
    };
    for text in everywhere(&made) {
        assert!(!text.contains("TCP factor"), "{text}");
    }
    let place = made.rows.iter().position(|row| !row.paper.is_empty()).unwrap();
    let values = [("tcp_factor", 2.345), ("tcp_loss_percent", 1.0), ("tcp_round_trip_ms", 50.0)];
    made.rows[place].more.extend(values.map(|(name, value)| (name.to_owned(), value)));
    for text in everywhere(&made) {
        let note = text.find("TCP factor: ").unwrap();
        assert!(text[note..].contains("as long in the simulation as on Linux"), "{text}");
        let table = &text[..note];
        assert!(table.contains("TCP factor") && table.contains("2.35") && !table.contains('†'));
    }
    // Beyond what was measured.
    made.rows[place].more.insert("tcp_loss_percent".to_owned(), 50.0);
    for text in everywhere(&made) {
        assert!(text.contains("2.35 †"), "{text}");
    }
}

#[test]
fn nothing_at_all_is_a_report_too() {
    let made = Made::new(|_, _| None);
    let html = made.report().html();
    assert!(html.contains("No row with a printed figure has been measured."));
    assert!(html.contains("0 rows from 0 of 10 runs"));
    assert!(html.contains("Nothing has been measured."));
    assert_eq!(unbalanced(&html), Vec::<String>::new());
    assert!(made.report().pictures().is_empty());
    assert!(made.report().text().contains("that hold: 0; that do not: 0; not known: 3"));

    let mut bare = made;
    bare.study.experiments.clear();
    bare.study.parameters.clear();
    (bare.planned, bare.verdicts, bare.machine) = (Vec::new(), Vec::new(), Machine::default());
    let html = bare.report().html();
    assert!(html.contains("The command was not given.") && !html.contains("id=\"parameters\""));
}

#[test]
fn numbers_that_are_none_do_no_harm() {
    let made = Made::new(|place, planned| {
        let mut measured = usual(place, planned);
        measured.seconds = f64::NAN;
        for message in &mut measured.messages {
            message.delivered = Some(f64::INFINITY);
        }
        for load in &mut measured.loads {
            (load.kbit_s, load.loss_percent) = (f64::NAN, Some(f64::NEG_INFINITY));
        }
        for series in &mut measured.series {
            series.interval = [f64::NAN, 0.0, -1.0, f64::INFINITY][place % 4];
        }
        Some(measured)
    });
    let html = made.report().html();
    assert!(!html.contains("NaN") && !html.contains(">inf"), "{html}");
    assert!(made.report().json().is_ok());
    assert!(made.report().pictures().iter().all(|picture| picture.svg().is_ok()));
}

#[test]
fn ten_thousand_runs_are_within_bounds() {
    let mut made = Made::usual();
    let (planned, measured) = (made.planned[0].clone(), made.measured[0].clone());
    let steps = PortSteps {
        octets: vec![900; 5_000],
        packets: vec![1; 5_000],
        dropped: vec![3; 5_000],
        waiting: vec![9; 5_000],
    };
    let series = PortSeries {
        port: "middle.bob".to_owned(),
        interval: 0.1,
        rows: (0..16).map(|dscp| (dscp, steps.clone())).collect(),
    };
    made.planned =
        (0..10_000).map(|n| Planned { id: format!("alone/{n}"), ..planned.clone() }).collect();
    let long = |n: usize| Measured {
        id: format!("alone/{n}"),
        series: if n < 200 { vec![series.clone()] } else { Vec::new() },
        notes: vec!["a note".repeat(20); 30],
        ..measured.clone()
    };
    made.measured = (0..10_000).map(long).collect();
    let (one, other) = (made.rows[0].clone(), made.rows[4].clone());
    made.rows = [vec![one; 3_000], vec![other; 7_000]].concat();
    made.verdicts = vec![made.verdicts[0].clone(); 10_000];
    let html = made.report().html();
    assert!(html.len() < 25_000_000, "{} octets", html.len());
    // Of both tables together, MAX_ROWS are shown.
    assert!(html.contains("6000 rows more stand in results.json."));
    assert!(html.contains("8000 more stand in results.json."));
    assert!(html.contains("more are not drawn here: the page would be too long."));
    assert_eq!(made.report().pictures().len(), MAX_RUN_FIGURES + 1);
    assert!(made.report().text().lines().count() < 1_010);
}

/// The figures of a report by the names of their files.
fn figures(made: &Made) -> BTreeMap<String, plot::Figure> {
    let figure = |picture: report::Picture| match picture.drawn {
        report::Drawn::Figure(figure) => Some((picture.name, figure)),
        report::Drawn::Dots(_) | report::Drawn::Grid(_) => None,
    };
    made.report().pictures().into_iter().filter_map(figure).collect()
}

#[test]
fn a_sweep_is_drawn_over_the_parameter_with_the_most_values() {
    let figures = figures(&Made::usual());
    let sweep = &figures["sweep-sweep-1"];
    assert_eq!(sweep.time_label, "window");
    let ticks = [(0.0, "1".to_owned()), (1.0, "2".to_owned()), (4.0, "16".to_owned())];
    assert_eq!(sweep.ticks, ticks);
    let names = |panel: usize| -> Vec<&str> {
        sweep.panels[panel].series.iter().map(|series| series.name.as_str()).collect()
    };
    let items = ["routine, delay 1ms", "load, delay 1ms", "routine, delay 5ms", "load, delay 5ms"];
    assert_eq!(names(0), items);
    assert_eq!(sweep.panels[1].label, "loss, %");
    assert_eq!(names(1), [items[1], items[3]]);
    let colour = |panel: usize, place: usize| sweep.panels[panel].series[place].colour;
    assert_eq!((colour(1, 0), colour(1, 1)), (colour(0, 1), colour(0, 3)));
    // 900 kbit/s were printed of the load, whatever is varied.
    let levels = sweep.panels.iter().map(|panel| {
        let levels = panel.levels.iter();
        levels.map(|of| (of.value, of.name.as_str())).collect::<Vec<_>>()
    });
    let printed = vec![(900.0, "paper, load, delay 1ms, load, delay 5ms: 900")];
    assert_eq!(levels.collect::<Vec<_>>(), [printed, vec![]]);
    // 100 kB in 4.9 s.
    let first = sweep.panels[0].series[0].points[0];
    assert!(first.0 == 0.0 && (first.1 - 800.0 / 4.9).abs() < 1e-9, "{first:?}");
}

#[test]
fn a_figure_that_is_asked_for_has_a_line_for_each_of_its_items() {
    let mut made = Made::usual();
    let text = r#"
        name = "asked"
        title = "asked for"
        x = "window"
        [[panel]]
        label = "kbit/s"
        y = "kbit_s"
        lines = [
            { name = "near", of = "sweep/vary/load", with = { delay = "1ms" } },
            { name = "far", of = "sweep/vary/load", with = { delay = "5ms" }, colour = 0, dashed = true },
            { name = "never", of = "sweep/other/load" },
        ]
        [[panel]]
        label = "nothing"
        y = "round_trip_ms"
        lines = [{ name = "near", of = "sweep/vary/load" }]
    "#;
    made.study.figures = vec![toml::from_str(text).unwrap()];
    let asked = &figures(&made)["asked"];
    assert_eq!((asked.panels.len(), asked.ticks.len()), (1, 3));
    let lines = asked.panels[0].series.iter().map(|series| {
        let values: Vec<f64> = series.points.iter().map(|(_, y)| *y).collect();
        (series.name.as_str(), series.colour, values)
    });
    let wanted =
        [("near", Some(0), vec![804.0, 805.0, 806.0]), ("far", Some(8), vec![807.0, 808.0, 809.0])];
    assert_eq!(lines.collect::<Vec<_>>(), wanted);
    let html = made.report().html();
    assert!(html.contains("id=\"figures\"") && unbalanced(&html).is_empty());
}

#[test]
fn a_figure_of_loads_over_time_has_what_was_printed_of_them() {
    let mut made = Made::new(|place, planned| {
        let mut measured = usual(place, planned);
        for load in &mut measured.loads {
            (load.over_time, load.interval) = (vec![700.0, 900.0], 0.5);
            load.delay_over_time = vec![Some(1.0), None];
        }
        Some(measured)
    });
    let text = |value: &str| {
        let item = "sweep/vary[delay=1ms,window=1]/load";
        format!(
            "number = 7\ntitle = \"loads\"\nvalue = \"{value}\"\nitems = [[\"flow\", \"{item}\"]]"
        )
    };
    let levels = |made: &Made| -> Vec<(f64, String)> {
        let panel = figures(made)["figure-07"].panels[0].clone();
        assert_eq!(panel.series.len(), 1);
        panel.levels.into_iter().map(|of| (of.value, of.name)).collect()
    };
    made.study.over_time = vec![toml::from_str(&text("kbit_s")).unwrap()];
    assert_eq!(levels(&made), [(900.0, "paper: 900".to_owned())]);
    made.study.over_time = vec![toml::from_str(&text("delay_ms")).unwrap()];
    assert!(levels(&made).is_empty(), "no delay was printed of it");
}

#[test]
fn the_ratios_have_both_values_that_they_are_made_of() {
    let pictures = Made::usual().report().pictures();
    let report::Drawn::Dots(dots) = &pictures[0].drawn else { panic!("{}", pictures[0].name) };
    let parts: Vec<_> = dots.rows.iter().map(|row| row.parts.as_str()).collect();
    assert_eq!(parts[1..3], ["1.80 (2)", "4.44 (4)"]);
    assert!(parts.contains(&"> 59.90 (> 50)"), "{parts:?}");
}

#[test]
fn a_run_is_drawn_at_the_rates_of_the_study() {
    let figures = figures(&Made::usual());
    // Twice as fast: 1,000 octets in 0.1 s are 80 kbit/s there, and 40 in the study.
    let small = &figures["alone-small"];
    assert_eq!(small.span, Some((0.0, 2.0)));
    let throughput = &small.panels[0];
    assert_eq!((throughput.series.len(), throughput.series[0].name.as_str()), (2, "CS0 routine"));
    let point = throughput.series[0].points[0];
    assert!((point.0 - 0.1).abs() < 1e-9 && (point.1 - 40.0).abs() < 1e-9, "{point:?}");
    assert_eq!(throughput.level.as_ref().unwrap(), &(10_000.0, "line 10,000 kbit/s".to_owned()));
    assert_eq!(small.panels[2].label, "dropped in 0.200 s");
    let marks: Vec<_> = small.marks.iter().map(|mark| (mark.at, mark.label.as_str())).collect();
    assert_eq!(marks, [(0.2, "▶ routine"), (2.0, "■ routine")]);
    // What was given up began and did not end.
    let labels: Vec<_> = figures["alone-endless"].marks.iter().map(|mark| &mark.label).collect();
    assert_eq!(labels, ["▶ flash"]);
}

#[test]
fn of_several_ports_the_one_is_drawn_where_most_waited() {
    let made = Made::new(|place, planned| {
        let mut measured = usual(place, planned);
        let mut other = measured.series[0].clone();
        other.port = "middle.alice".to_owned();
        for steps in other.rows.values_mut() {
            steps.octets.fill(9_999);
            steps.waiting.fill(0);
        }
        measured.series.push(other);
        Some(measured)
    });
    assert!(made.report().html().contains("What left middle.bob."));
    assert!(!made.report().html().contains("What left middle.alice."));
}

#[test]
fn a_run_of_hardly_any_steps_is_not_drawn() {
    let of_steps = |steps: usize| {
        let made = Made::new(|place, planned| {
            let mut measured = usual(place, planned);
            let rows = measured.series.iter_mut().flat_map(|series| series.rows.values_mut());
            for row in rows {
                row.octets.truncate(steps);
            }
            Some(measured)
        });
        figures(&made).contains_key("alone-small")
    };
    assert_eq!([0, 3, 4].map(of_steps), [false, false, true]);
}

#[test]
fn without_a_port_the_loads_are_drawn() {
    let made = Made::new(|place, planned| {
        let mut measured = usual(place, planned);
        measured.series.clear();
        for load in &mut measured.loads {
            (load.over_time, load.interval, load.started) = (vec![700.0, 900.0], 0.5, 1.0);
        }
        Some(measured)
    });
    let figures = figures(&made);
    let name = "sweep-vary-delay-1ms-window-1";
    assert_eq!(figures.keys().collect::<Vec<_>>().len(), 7, "six of loads and a sweep");
    let panel = &figures[name].panels[0];
    assert_eq!(panel.label, "received, kbit/s");
    assert_eq!(panel.series[0].points, [(1.25, 700.0), (1.75, 900.0)]);
}

#[test]
fn each_message_and_load_has_a_line_of_its_own() {
    let made = Made::new(|place, planned| {
        let mut measured = usual(place, planned);
        for message in &mut measured.messages {
            message.content = Some(1_000);
            for n in 1..=10_u32 {
                message.progress.seen(0.2 + f64::from(n) / 20.0, u64::from(n) * 100);
            }
        }
        for load in &mut measured.loads {
            (load.over_time, load.interval, load.started) = (vec![700.0, 900.0], 0.5, 1.0);
        }
        Some(measured)
    });
    let figures = figures(&made);
    // At the study's own rates: 100 octets in 0.05 s, which are 0.1 s there, are 8 kbit/s.
    let panel = &figures["alone-small"].panels[1];
    assert_eq!((panel.label.as_str(), panel.series.len()), ("received, kbit/s", 1));
    assert_eq!((panel.series[0].name.as_str(), panel.series[0].colour), ("routine, CS0", Some(0)));
    assert!((panel.series[0].points[1].1 - 8.0).abs() < 1e-6, "{:?}", panel.series[0].points);
    let printed = (panel.levels[0].value, panel.levels[0].name.as_str());
    assert_eq!(printed, (4.0, "paper: 4"));
    // Of a single flow without a printed rate there is only what left the port.
    assert_eq!(figures["alone-large"].panels[1].label, "waiting, packets");
    let both = &figures["sweep-vary-delay-1ms-window-1"].panels[1];
    let names: Vec<_> = both.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["routine, CS0", "load, AF11"]);
    assert!(made.report().html().contains("octets that the next MTA has confirmed"));
}

#[test]
fn the_files_of_a_report_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().join("new/one");
    let made = Made::usual();
    let written = made.report().write(&into).unwrap();
    assert_eq!(std::fs::read_to_string(&written.html).unwrap(), made.report().html());
    assert!(std::fs::read_to_string(&written.json).unwrap().starts_with("{\"study\""));
    let mut names: Vec<String> = std::fs::read_dir(&written.pictures)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!((names.len(), written.count, written.missing.len()), (22, 11, 0));
    assert_eq!(names[..2], ["alone-endless.png", "alone-endless.svg"]);
    let error = made.report().write(&written.html).unwrap_err();
    assert!(error.to_string().contains("report.html"), "{error}");
}
