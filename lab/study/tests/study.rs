//! A study from its file to its rows.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may")]

use study::measured::{
    CodePointPassed, Environment, LoadMeasured, Measured, MessageTimes, PassedCount, PortSeries,
    PortSteps,
};
use study::{Library, Planned, Scale, Study};

const STUDY: &str = r#"
title = "made up"
network.topology = "two"

[parameters.rate]
value = "1Mbit"
why = "of the line"
sets = ["network.links[b.eth0].rate"]
[parameters.limit]
why = "of the queue"
sets = ["policy.fifo.queueings.q.limit.packets"]
[parameters.mark]
why = "of the load"
sets = ["loads[noise].dscp"]

[mail]
sites = { left = "a", right = "b" }
from = "left"
to = "right"
[[mail.channels]]
name = "all"
precedences = ["routine", "flash"]
dscp = "CS3"
port = 5000

[[experiment]]
name = "alone"
title = "alone"
shows = "alone"
[[experiment.run]]
name = "one"
limit = "100s"
with = { limit = 7 }
why = "a short one"
messages = [{ precedence = "routine", size = "1MB", paper = { seconds = 10.0 } }]

[[experiment]]
name = "both"
title = "both"
shows = "both"
[[experiment.run]]
name = "two"
limit = "100s"
vary = { rate = ["1Mbit", "2Mbit"] }
messages = [
    { precedence = "routine", size = "1MB", start = "2s", base = "alone/one/routine" },
    { precedence = "flash", size = "1kB", start = { after = "routine", delay = "10s" } },
]
loads = [{ name = "noise", from = "a", to = "b", rate = "100kbit" }]
with = { mark = "EF" }
[[experiment.expect]]
what = "half at least"
value = "two[rate=1Mbit]/routine.base_percent"
at_least = 50.0
"#;

const TOPOLOGY: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24"]
[hosts.b.ports.eth0]
addresses = ["10.0.2.2/24"]
[routers.r]
policy = "fifo"
ports.left = { addresses = ["10.0.1.1/24"] }
ports.right = { addresses = ["10.0.2.1/24"] }
[[links]]
ends = ["a.eth0", "r.left"]
[[links]]
ends = ["r.right", "b.eth0"]
delay = "10ms"
"#;

const POLICY: &str = r#"
[queueings.q]
kind = "fifo"
limit = { packets = 100 }
[interfaces."*"]
queueing = "q"
"#;

struct Two;

impl Library for Two {
    fn topology(&self, name: &str) -> Result<String, String> {
        (name == "two").then(|| TOPOLOGY.to_owned()).ok_or_else(|| "there is none".to_owned())
    }

    fn policy(&self, name: &str) -> Result<String, String> {
        (name == "fifo").then(|| POLICY.to_owned()).ok_or_else(|| "there is none".to_owned())
    }
}

fn plan(text: &str) -> Result<Vec<Planned>, study::StudyError> {
    let study: Study = toml::from_str(text).unwrap();
    study::plan(&study, &Two)
}

#[test]
fn runs_have_the_values_of_their_parameters() {
    let planned = plan(STUDY).unwrap();
    let ids: Vec<&str> = planned.iter().map(|planned| planned.id.as_str()).collect();
    assert_eq!(ids, ["alone/one", "both/two[rate=1Mbit]", "both/two[rate=2Mbit]"]);
    let rates = planned.iter().map(|planned| planned.topology.links[1].rate.unwrap().bits());
    assert_eq!(rates.collect::<Vec<_>>(), [1_000_000, 1_000_000, 2_000_000]);
    let limit = |planned: &Planned| {
        toml::Value::try_from(&planned.policies["fifo"].queueings["q"]).unwrap()["limit"]["packets"]
            .as_integer()
    };
    assert_eq!((limit(&planned[0]), limit(&planned[1])), (Some(7), Some(100)));
    assert_eq!(planned[1].loads[0].dscp, dscp::Dscp::EF);
    assert_eq!(planned[0].why, ["a short one"]);
    assert_eq!(planned[0].special.keys().collect::<Vec<_>>(), ["limit"]);
    assert_eq!(planned[1].messages[1].name, "flash");
}

#[test]
fn what_is_set_goes_before_all_but_what_is_varied() {
    let mut study: Study = toml::from_str(STUDY).unwrap();
    let set = [("limit", 9.into()), ("rate", "5Mbit".into()), ("mark", "AF11".into())];
    for (name, value) in set {
        study.set(name, &value, "by a test").unwrap();
    }
    let planned = study::plan(&study, &Two).unwrap();
    let limits = planned.iter().map(|planned| planned.settings["limit"].as_integer());
    assert_eq!(limits.collect::<Vec<_>>(), [Some(9); 3]);
    let rates = planned.iter().map(|planned| planned.topology.links[1].rate.unwrap().bits());
    assert_eq!(rates.collect::<Vec<_>>(), [5_000_000, 1_000_000, 2_000_000]);
    assert_eq!(planned[1].loads[0].dscp, dscp::Dscp::AF11);
    let why = &study.parameters["rate"].why;
    assert_eq!(why, "Set by a test, instead of \"1Mbit\". of the line");
    let wrong = study.set("limits", &9.into(), "by a test").unwrap_err();
    assert!(wrong.what.contains("limit, mark, rate"), "{wrong}");
}

#[test]
fn a_faster_network_is_faster_in_all_its_rates_and_delays() {
    let planned = plan(STUDY).unwrap().swap_remove(1);
    let faster = planned.faster(Scale::whole(10)).unwrap();
    let link = &faster.topology.links[1];
    assert_eq!(link.rate.unwrap().bits(), 10_000_000);
    assert_eq!(link.delay.0.as_millis(), 1);
    assert_eq!(faster.loads[0].rate.unwrap().bits(), 1_000_000);
    let starts: Vec<String> = faster.messages.iter().map(|m| format!("{:?}", m.start)).collect();
    assert!(starts[0].contains("200ms") && starts[1].contains("delay: Span(1s)"), "{starts:?}");
    assert_eq!(planned.faster(Scale::ONE).unwrap(), planned);
    assert!(planned.faster(Scale::MAX).is_ok());
}

#[test]
fn what_cannot_be_is_refused_where_it_stands() {
    let cases = [
        ("topology = \"two\"", "topology = \"one\"", "network.topology", "one: there is none"),
        ("[b.eth0].rate", "[c.eth0].rate", "parameters.rate.sets", "c.eth0"),
        ("fifo.queueings.q.", "fife.queueings.q.", "experiment[0].run[0].with", "no router has"),
        ("with = { limit = 7 }", "with = { limits = 7 }", "experiment[0].run[0].with", "limits"),
        ("with = { limit = 7 }", "with = { limit = \"x\" }", "experiment[0].run[0]", "usize"),
        ("name = \"both\"", "name = \"alone\"", "experiment[1].name", "another"),
        ("name = \"two\"", "name = \"t/w\"", "experiment[1].run[0].name", "no name"),
        ("after = \"routine\"", "after = \"flash\"", "experiment[1].run[0].messages[1]", "flash"),
        ("to = \"b\", rate", "to = \"c\", rate", "experiment[1].run[0].loads[0]", "no host c"),
        (
            "base = \"alone/one/routine\"",
            "base = \"alone/one/x\"",
            "experiment[1].run[0].messages[0].base",
            "none",
        ),
        ("/routine.base_percent", "/routine.percent", "experiment[1].expect[0]", "percent"),
        ("at_least = 50.0", "at_least = nan", "experiment[1].expect[0]", "a number"),
        ("at_least = 50.0", "", "experiment[1].expect[0]", "a number"),
        ("[\"1Mbit\", \"2Mbit\"]", "[\"1Mbit\", \"1Mbit\"]", "experiment[1].run[0].vary", "same"),
        ("precedences = [\"routine\", \"flash\"]", "precedences = [\"flash\"]", "mail", "routine"),
        ("paper = { seconds", "paper = { second", "experiment[0].run[0].messages[0]", "second"),
        (
            "network.links[b.eth0]",
            "netwrk.links[b.eth0]",
            "parameters.rate.sets",
            "netwrk is none of",
        ),
        ("seconds = 10.0", "seconds = nan", "experiment[0].run[0].messages[0]", "from 0 on"),
        ("seconds = 10.0", "seconds = -1.0", "experiment[0].run[0].messages[0]", "from 0 on"),
        (
            "seconds = 10.0",
            "seconds = 10.0, seconds_less_than = 12.0",
            "experiment[0].run[0].messages[0]",
            "a value, or its bounds",
        ),
        (
            "seconds = 10.0",
            "seconds_more_than = 20.0, seconds_less_than = 3.0",
            "experiment[0].run[0].messages[0]",
            "nothing is more than",
        ),
        (
            "size = \"1MB\", paper",
            "size = \"0B\", paper",
            "experiment[0].run[0].messages[0]",
            "octet",
        ),
        (
            "size = \"1MB\", start",
            "bound = { hops = [], round_trip = \"1ms\" }, size = \"1MB\", start",
            "experiment[1].run[0].messages[0]",
            "bound.hops",
        ),
        (
            "size = \"1kB\", start",
            "bound = { hops = [\"x.y\"], round_trip = \"1ms\" }, size = \"1kB\", start",
            "experiment[1].run[0].messages[1]",
            "of a base",
        ),
    ];
    for (from, to, path, what) in cases {
        assert!(STUDY.contains(from), "{from}");
        let wrong = plan(&STUDY.replacen(from, to, 1)).unwrap_err();
        assert!(wrong.path.contains(path) && wrong.what.contains(what), "{to}: {wrong}");
    }
}

/// The study above with an echo in place of its load, two more expectations and a figure.
const MORE: &str = r#"
[[experiment.expect]]
what = "marked as it was sent"
value = "two[rate=1Mbit]/noise"
arrives = ["EF"]
[[experiment.expect]]
what = "hardly later"
value = "two[rate=2Mbit]/noise.round_trip_ms"
minus = "two[rate=1Mbit]/noise.round_trip_ms"
at_most = 1.0
[[figure]]
name = "by-rate"
title = "by rate"
x = "rate"
[[figure.panel]]
label = "ms"
y = "round_trip_ms"
lines = [{ name = "noise", of = "both/two/noise" }]
"#;

fn echo() -> String {
    let ends = "source = \"10.0.1.2\", destination = \"10.0.2.2\", paper_tos = [184]";
    let echo = format!("{ends}, protocol = \"echo\", rate = \"100kbit\"");
    format!("{}{MORE}", STUDY.replace("rate = \"100kbit\"", &echo))
}

#[test]
fn an_echo_has_its_round_trip_and_the_code_points_it_came_back_with() {
    let planned = plan(&echo()).unwrap();
    let study: Study = toml::from_str(&echo()).unwrap();
    let measured = ["1Mbit", "2Mbit"].map(|rate| Measured {
        id: format!("both/two[rate={rate}]"),
        scale: Scale::whole(10),
        loads: vec![LoadMeasured {
            round_trip_ms: Some(if rate == "1Mbit" { 0.5 } else { 0.7 }),
            dscp_seen: [(46, 3)].into(),
            ..LoadMeasured::default()
        }],
        ..Measured::default()
    });
    let rows = study::rows(&study, &planned, &measured);
    let noise: Vec<&study::StudyRow> =
        rows.iter().filter(|row| row.row.ends_with("noise")).collect();
    assert_eq!(noise.len(), 2);
    assert!((noise[0].more["round_trip_ms"] - 5.0).abs() < 1e-9, "{noise:?}");
    assert_eq!((noise[0].tos_sent, &noise[0].tos_received), (Some(184), &vec![184]));
    assert_eq!(noise[0].paper_tos, [184]);
    let mut marked = measured;
    // The code point is the same, the octet is not.
    marked[0].loads[0].tos_seen = [(184, 2), (185, 1)].into();
    let holds = study::judge(&study, &study::rows(&study, &planned, &marked))[1].holds;
    assert_eq!(holds, Some(false));
    let verdicts = study::judge(&study, &rows);
    let holds: Vec<_> = verdicts.iter().map(|verdict| verdict.holds).collect();
    // Of the first, nothing was measured here; the last are 2 ms apart.
    assert_eq!(holds, [None, Some(true), Some(false)]);
}

#[test]
fn echoes_and_figures_that_cannot_be_are_refused() {
    let cases = [
        ("source = \"10.0.1.2\"", "source = \"10.0.1.3\"", "loads[0]", "no such address"),
        ("= \"10.0.2.2\", paper", "= \"10.0.1.2\", paper", "loads[0]", "b has no such"),
        ("protocol = \"echo\"", "protocol = \"echo\", flows = 2", "loads[0]", "one flow"),
        ("protocol = \"echo\"", "protocol = \"tcp\"", "loads[0]", "first address"),
        ("minus = ", "to = \"two[rate=1Mbit]/noise.kbit_s\"\nminus = ", "expect[2]", "not both"),
        ("arrives = [\"EF\"]", "arrives = [\"EF\"]\nat_most = 1.0", "expect[1]", "goes without"),
        ("1Mbit]/noise\"\narr", "1Mbit]/none\"\narr", "expect[1]", ": no `run/item` has this name"),
        ("x = \"rate\"", "x = \"rates\"", "figure[0].x", "no parameter rates"),
        ("y = \"round_trip_ms\"", "y = \"round_trip\"", "figure[0].panel[0].y", "one of"),
        (
            "of = \"both/two/noise\"",
            "of = \"both/two/x\"",
            "panel[0].lines",
            "no `experiment/run/item`",
        ),
        ("\"both/two/noise\"", "\"both/two/noise\", colour = 8", "panel[0].lines", "0 to 7"),
        ("name = \"by-rate\"", "name = \"by/rate\"", "figure[0].name", "no name"),
    ];
    for (from, to, path, what) in cases {
        assert!(echo().contains(from), "{from}");
        let wrong = plan(&echo().replacen(from, to, 1)).unwrap_err();
        assert!(wrong.path.contains(path) && wrong.what.contains(what), "{to}: {wrong}");
    }
}

#[test]
fn no_file_makes_more_runs_than_can_be_made() {
    let many = format!("[{}]", (1..=200).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let text = STUDY.replace(
        "vary = { rate = [\"1Mbit\", \"2Mbit\"] }",
        &format!("vary = {{ rate = {many}, limit = {many}, mark = {many} }}"),
    );
    let wrong = plan(&text).unwrap_err();
    assert!(wrong.what.contains("more than 10000 runs"), "{wrong}");
}

fn times(name: &str, submitted: f64, delivered: Option<f64>) -> MessageTimes {
    let name = name.to_owned();
    MessageTimes { name, submitted: Some(submitted), delivered, ..MessageTimes::default() }
}

#[test]
fn a_rate_may_be_asked_for_while_another_message_is_in_transfer() {
    let asked = r#"
[[experiment.expect]]
what = "the Routine goes on"
value = "two[rate=1Mbit]/routine.kbit_s"
during = "flash"
at_least = 5.0
"#;
    // The Flash has a channel and a code point of its own.
    let apart = STUDY.replace("\"routine\", \"flash\"]", "\"routine\"]").replace(
        "port = 5000\n",
        "port = 5000\n[[mail.channels]]\nname = \"flash\"\nprecedences = [\"flash\"]\ndscp = \"CS4\"\nport = 5001\n",
    );
    let text = format!("{apart}{asked}");
    let planned = plan(&text).unwrap();
    let study: Study = toml::from_str(&text).unwrap();
    let mut flash = times("flash", 1.0, Some(4.0));
    (flash.started, flash.confirmed) = (Some(1.5), Some(3.5));
    let steps = |octets: &[u64]| PortSteps { octets: octets.to_vec(), ..PortSteps::default() };
    let series = |port: &str, octets: &[u64]| PortSeries {
        port: port.to_owned(),
        interval: 1.0,
        rows: [(24, steps(octets)), (32, steps(&[9_000; 5]))].into(),
    };
    let measured = Measured {
        id: "both/two[rate=1Mbit]".to_owned(),
        scale: Scale::whole(2),
        messages: vec![times("routine", 0.2, Some(5.0)), flash],
        loads: vec![LoadMeasured::default()],
        // The first is not a port with the policy.
        series: vec![
            series("b.eth0", &[9_999; 5]),
            series("r.right", &[7_000, 1_000, 2_000, 3_000]),
        ],
        seconds: 5.0,
        ..Measured::default()
    };
    let rows = study::rows(&study, &planned, &[measured]);
    // Half of 1,000, 2,000 and half of 3,000 octets in 2 s, on a network twice as fast.
    assert_eq!(rows[0].more["kbit_s_during_flash"], 8.0);
    assert_eq!(study::judge(&study, &rows)[1].holds, Some(true));
    let refused = [
        ("during = \"flash\"", "during = \"none\"", "no such message"),
        ("routine.kbit_s\"\nduring", "routine.seconds\"\nduring", "only kbit_s"),
        ("dscp = \"CS4\"", "dscp = \"CS3\"", "distinguished"),
    ];
    for (from, to, what) in refused {
        assert!(text.contains(from), "{from}");
        let wrong = plan(&text.replace(from, to)).unwrap_err();
        assert!(wrong.path.contains("expect[1]") && wrong.what.contains(what), "{wrong}");
    }
}

#[test]
fn what_passes_two_ports_has_two_rows_of_each_code_point() {
    let asked = r#"
[[experiment.expect]]
what = "as much as was counted"
value = "two[rate=1Mbit]/analysed-EF.kbit_s"
to = "two[rate=1Mbit]/counted-EF.kbit_s"
at_least = 0.99
"#;
    let path = "analysed = { from = \"r.left\", to = \"r.right\" }\nloads = [{ name";
    let text = format!("{}{asked}", STUDY.replace("loads = [{ name", path));
    let planned = plan(&text).unwrap();
    let study: Study = toml::from_str(&text).unwrap();
    let count = |octets, lost| PassedCount { packets: 90, octets, lost };
    let measured = Measured {
        id: "both/two[rate=1Mbit]".to_owned(),
        scale: Scale::whole(2),
        messages: vec![times("routine", 0.2, Some(5.0)), times("flash", 1.0, Some(4.0))],
        loads: vec![LoadMeasured::default()],
        passed: vec![CodePointPassed {
            dscp: 46,
            analysed: count(99_500, 10),
            counted: count(100_000, 0),
        }],
        seconds: 5.0,
        ..Measured::default()
    };
    let rows = study::rows(&study, &planned, &[measured]);
    let of = |item: &str| rows.iter().find(|row| row.item.ends_with(item)).unwrap();
    // 100,000 octets in 5 s of a network twice as fast.
    assert_eq!(of("]/counted-EF").kbit_s, Some(80.0));
    assert_eq!(of("]/counted-EF").more["loss_percent"], 0.0);
    assert_eq!(of("]/analysed-EF").more["loss_percent"], 10.0);
    assert_eq!(of("]/analysed-EF").row, "two[rate=1Mbit]/analysed-EF");
    assert_eq!(study::judge(&study, &rows)[1].holds, Some(true));
    let refused = [
        ("from = \"r.left\"", "from = \"r.middle\"", "r.middle: no router"),
        ("from = \"r.left\"", "from = \"a.eth0\"", "a.eth0: no router"),
        ("to = \"r.right\" }", "to = \"r.left\" }", "two ports"),
        ("analysed-EF", "analysed-AF11", "has this name"),
    ];
    for (from, to, what) in refused {
        let wrong = plan(&text.replace(from, to)).unwrap_err();
        assert!(wrong.to_string().contains(what), "{wrong}");
    }
}

#[test]
fn rows_are_shown_at_the_studys_own_rates() {
    let study: Study = toml::from_str(STUDY).unwrap();
    let planned = plan(STUDY).unwrap();
    let alone = Measured {
        id: "alone/one".to_owned(),
        scale: Scale::whole(10),
        messages: vec![times("routine", 0.5, Some(1.3))],
        seconds: 2.0,
        ..Measured::default()
    };
    let both = Measured {
        id: "both/two[rate=1Mbit]".to_owned(),
        scale: Scale::whole(10),
        messages: vec![times("routine", 0.2, Some(1.8)), times("flash", 1.0, None)],
        loads: vec![LoadMeasured { kbit_s: 900.0, delay_ms: Some(3.0), ..LoadMeasured::default() }],
        seconds: 11.0,
        given_up: true,
        ..Measured::default()
    };
    let elsewhere = Measured { environment: Environment::Simulation, ..alone.clone() };
    let apart = study::rows(&study, &planned, &[elsewhere, both.clone()]);
    assert!(apart[1].more.is_empty(), "a percentage of another environment: {:?}", apart[1].more);
    let rows = study::rows(&study, &planned, &[alone.clone(), both.clone()]);
    let items: Vec<&str> = rows.iter().map(|row| row.item.as_str()).collect();
    let two = "both/two[rate=1Mbit]";
    let wanted = [
        "alone/one/routine".to_owned(),
        format!("{two}/routine"),
        format!("{two}/flash"),
        format!("{two}/noise"),
    ];
    assert_eq!(items, wanted);
    let near = |value: Option<f64>, wanted: f64| {
        assert!((value.unwrap() - wanted).abs() < 1e-9, "{value:?}, not {wanted}");
    };
    near(rows[0].seconds, 8.0);
    near(rows[0].kbit_s, 1_000.0);
    near(rows[0].ratio, 0.8);
    near(rows[1].seconds, 16.0);
    near(rows[1].more.get("base_percent").copied(), 50.0);
    assert_eq!(rows[2].seconds, None);
    near(rows[2].seconds_more_than, 90.0);
    near(rows[2].kbit_s_less_than, 0.08 / 0.9);
    // The run lasts longer than its limit, so that programs can start.
    let later = Measured { seconds: 13.0, ..both.clone() };
    let later = study::rows(&study, &planned, &[later]);
    near(later[1].seconds_more_than, 90.0);
    near(rows[3].kbit_s, 90.0);
    near(rows[3].more.get("delay_ms").copied(), 30.0);
    assert_eq!(
        (rows[0].environment, rows[0].scale, rows[0].dscp),
        (Environment::Testbed, Scale::whole(10), 24)
    );
    let verdicts = study::judge(&study, &rows);
    assert_eq!(verdicts[0].holds, Some(true));
    // Where the base was given up, its rate is known to be less than something.
    let mut endless = alone;
    endless.messages[0].delivered = None;
    endless.seconds = 10.0;
    let rows = study::rows(&study, &planned, &[endless, both]);
    near(rows[0].kbit_s_less_than, 8_000.0 / 95.0);
    near(rows[1].more.get("base_percent_more_than").copied(), 500.0 / 8_000.0 * 95.0 * 100.0);
    assert_eq!(study::judge(&study, &rows)[0].holds, Some(true));
}

/// The study above with a headline, and what a run that fits would have.
fn with_headline(run: &str) -> String {
    let head = r#"
[headline]
with = { window = 2 }
why = "one for all"
[parameters.window]
kind = "messaging"
range = [1, 4]
why = "not printed"
sets = ["mail.channel.rts.window"]
"#;
    let text = STUDY
        .replace("[parameters.rate]\n", "[parameters.rate]\nkind = \"network\"\nprinted = true\n")
        .replace("[parameters.limit]\n", "[parameters.limit]\nkind = \"router\"\nrange = [1, 99]\n")
        .replace("[parameters.mark]\n", "[parameters.mark]\nkind = \"load\"\nprinted = true\n")
        .replace("with = { limit = 7 }\nwhy", &format!("with = {{ limit = 7 }}\n{run}\nwhy"));
    text.replace("[mail]\n", &format!("{head}\n[mail]\n"))
}

#[test]
fn runs_with_printed_values_have_the_setting_of_the_headline() {
    let planned = plan(&with_headline("")).unwrap();
    let windows: Vec<_> = planned.iter().map(|one| one.settings.get("window")).collect();
    assert_eq!(windows, [Some(&2.into()), None, None]);
    assert!(!planned[0].special.contains_key("window"), "it is not a setting of its own");
    let rts = planned[0].mail.as_ref().unwrap().channel.get("rts").unwrap();
    assert_eq!(rts.get("window"), Some(&2.into()));
}

#[test]
fn what_fits_a_row_is_a_run_of_its_own() {
    let run = "fit = { window = 4 }\nfit_why = \"it would be near\"";
    let planned = plan(&with_headline(run)).unwrap();
    let ids: Vec<&str> = planned.iter().map(|planned| planned.id.as_str()).collect();
    assert_eq!(ids.get(..2).unwrap(), ["alone/one", "alone/one[fit]"]);
    assert_eq!(planned[1].settings.get("window"), Some(&4.into()));
    let study: Study = toml::from_str(&with_headline(run)).unwrap();
    let took = |id: &str, seconds: f64| Measured {
        id: id.to_owned(),
        environment: Environment::Simulation,
        messages: vec![MessageTimes {
            name: "routine".to_owned(),
            submitted: Some(0.0),
            delivered: Some(seconds),
            ..MessageTimes::default()
        }],
        ..Measured::default()
    };
    let both = [took("alone/one", 20.0), took("alone/one[fit]", 11.0)];
    let rows = study::rows(&study, &planned, &both);
    assert_eq!(rows.len(), 1, "a column, not a row");
    assert_eq!(rows[0].seconds, Some(20.0));
    let fit = rows[0].fit.as_ref().unwrap();
    assert_eq!(fit.values.get("seconds"), Some(&11.0));
    assert_eq!((fit.with.len(), fit.why.as_str()), (1, "it would be near"));
    // Made alone it has nothing to be compared with.
    let alone = study::rows(&study, &planned, &both[1..]);
    assert!(alone.len() == 1 && alone[0].paper.is_empty() && alone[0].paper_seconds.is_none());
}

#[test]
fn no_row_with_printed_values_has_a_messaging_setting_of_its_own() {
    let refused = |run: &str| plan(&with_headline(run)).unwrap_err().to_string();
    let error = plan(&with_headline("").replace("with = { limit = 7 }", "with = { window = 3 }"));
    let error = error.unwrap_err();
    assert_eq!(error.path, "experiment[0].run[0].with.window");
    assert!(error.what.contains("goes into `fit`"), "{error}");
    assert!(refused("fit = { window = 4 }").contains("fit and fit_why go together"));
    assert!(refused("fit = { no = 4 }\nfit_why = \"x\"").contains("there is no parameter no"));
    let text = with_headline("").replace("range = [1, 4]\n", "");
    assert!(plan(&text).unwrap_err().to_string().contains("parameters.window: its value is not"));
    let text = with_headline("").replace("range = [1, 99]\n", "range = [1, 99]\nvalue = 100\n");
    assert!(plan(&text).unwrap_err().to_string().contains("outside its range of 1 to 99"));
    for (range, what) in
        [("[99, 1]", "lower value comes first"), ("[1, \"9x\"]", "and \"9x\" is not")]
    {
        let text = with_headline("").replace("range = [1, 99]", &format!("range = {range}"));
        let error = plan(&text).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    // Whoever sets a value tries another one; what fitted a row by it is gone.
    let fit = with_headline("fit = { window = 4 }\nfit_why = \"it would be near\"");
    let mut study: Study = toml::from_str(&fit).unwrap();
    study.set("window", &9.into(), "by a test").unwrap();
    let planned = study::plan(&study, &Two).unwrap();
    assert_eq!(planned[0].settings.get("window"), Some(&9.into()));
    assert!(planned.iter().all(|planned| planned.fitted.is_empty()));
    let text = with_headline("").replace("with = { window = 2 }", "with = { limit = 2 }");
    assert_eq!(plan(&text).unwrap_err().path, "headline.with");
}

#[test]
fn a_printed_difference_is_a_row() {
    let relation = r#"
[[experiment.printed]]
name = "grows"
what = "more at 1 Mbit/s"
value = "two[rate=1Mbit]/noise.kbit_s"
minus = "two[rate=2Mbit]/noise.kbit_s"
paper = { kbit_s = 5.0 }
[[experiment.printed]]
name = "part"
what = "of the line"
value = "two[rate=1Mbit]/noise.kbit_s"
percent_of = 1000.0
paper = { base_percent_less_than = 12.0 }
"#;
    let text = format!("{STUDY}{relation}");
    let planned = plan(&text).unwrap();
    let study: Study = toml::from_str(&text).unwrap();
    let measured: Vec<Measured> = [("1Mbit", 90.0), ("2Mbit", 84.0)]
        .map(|(rate, kbit_s)| Measured {
            id: format!("both/two[rate={rate}]"),
            loads: vec![LoadMeasured { kbit_s, ..LoadMeasured::default() }],
            ..Measured::default()
        })
        .into();
    let rows = study::rows(&study, &planned, &measured);
    let find = |name: &str| rows.iter().find(|row| row.item.ends_with(name)).unwrap();
    assert_eq!(find("both/printed/grows").kbit_s, Some(6.0));
    assert_eq!(find("both/printed/part").more.get("base_percent"), Some(&9.0));
    assert_eq!(study::rows(&study, &planned, &measured[..1]).len(), rows.len() - 2);
    let wrong = text.replace("paper = { kbit_s = 5.0 }", "paper = { seconds = 5.0 }");
    assert_eq!(plan(&wrong).unwrap_err().path, "experiment[1].printed[0].paper.seconds");
    let wrong = text.replace("minus = \"two[rate=2Mbit]/", "minus = \"none/");
    assert_eq!(plan(&wrong).unwrap_err().path, "experiment[1].printed[0].minus");
}

/// The study above, and a Flash with a bound in some cells of two windows, two packets and a Routine or not.
const CELLS: &str = r#"
[parameters.window]
value = "ours"
why = "of RTS"
sets = ["mail.channel.rts"]
values = { ours = {}, small = { window = 2, checkpoint = 1024 } }
[parameters.packet]
value = 972
why = "of the flood"
sets = ["loads[flood].payload", "loads[flood].segment"]
[parameters.protocol]
value = "udp"
why = "of the flood"
sets = ["loads[flood].protocol"]
[parameters.routine]
value = false
why = "beside it"
sets = ["messages[routine].sent"]

[[experiment]]
name = "cells"
title = "cells"
shows = "cells"
[[experiment.run]]
name = "alone"
limit = "100s"
vary = { window = ["ours", "small"] }
messages = [{ precedence = "flash", size = "10kB" }]
[[experiment.run]]
name = "flood"
limit = "100s"
cells = 5
vary = { window = ["ours", "small"], packet = [72, 972], routine = [false, true], protocol = ["udp", "tcp"] }
loads = [{ name = "flood", from = "a", to = "b", rate = "2Mbit" }]
[[experiment.run.messages]]
name = "routine"
precedence = "routine"
size = "1MB"
[[experiment.run.messages]]
precedence = "flash"
size = "10kB"
base = "alone[window={window}]/flash"
bound = { hops = ["r.right"], round_trip = "20ms" }
[[experiment.expect]]
what = "ours has 90 percent of its bound"
value = "flood/flash.bound_percent"
each = { window = "ours" }
at_least = 90.0
[[grid]]
name = "cells"
title = "cells"
value = "bound_percent"
of = ["cells/flood/flash"]
down = ["window"]
across = ["packet", "routine"]
good = 95
fair = 80
"#;

fn cells() -> String {
    let (parameters, experiments) = CELLS.split_once("\n\n[[experiment]]").unwrap();
    let with = STUDY.replace("\n[mail]\n", &format!("{parameters}\n[mail]\n"));
    format!("{with}\n[[experiment]]{experiments}")
}

#[test]
fn some_combinations_are_chosen_and_each_names_its_base() {
    let planned = plan(&cells()).unwrap();
    let flood: Vec<&Planned> = planned.iter().filter(|of| of.id.contains("flood[")).collect();
    assert_eq!(flood.len(), 5);
    for of in flood {
        let window = of.settings["window"].as_str().unwrap();
        let rts = of.mail.as_ref().unwrap().channel["rts"].as_table().unwrap();
        assert_eq!(rts.is_empty(), window == "ours", "a name stands for its value");
        let flash = of.messages.last().unwrap();
        assert_eq!(flash.base.as_deref().unwrap(), format!("alone[window={window}]/flash"));
        assert_eq!(of.messages.len() == 2, of.settings["routine"].as_bool().unwrap(), "{}", of.id);
        assert_eq!(Some(of.loads[0].payload), of.loads[0].segment);
    }
    let cases = [
        ("cells = 5", "cells = 0", "run[1].cells", "at least one"),
        ("cells = 5", "cells = 20000", "run[1].vary", "more than"),
        ("{window}", "{windows}", "run[1].messages[", "none"),
        ("[\"r.right\"]", "[\"r.wrong\"]", "run[1].messages[", "not a router's port"),
        ("each = { window = \"ours\" }", "each = { window = \"x\" }", "expect[0]", "these values"),
        ("at_least = 90.0", "at_least = 90.0\nat_most = 99.0", "expect[0]", "either"),
        ("value = \"bound_percent\"", "value = \"bound\"", "grid[0].value", "one of"),
        ("down = [\"window\"]", "down = [\"windows\"]", "grid[0].down", "windows"),
        ("of = [\"cells/flood/flash\"]", "of = [\"cells/x/flash\"]", "grid[0].of", "cells/x"),
    ];
    for (from, to, path, what) in cases {
        let wrong = plan(&cells().replacen(from, to, 1)).unwrap_err();
        assert!(wrong.path.contains(path) && wrong.what.contains(what), "{to}: {wrong}");
    }
}

#[test]
fn a_row_has_its_bound_and_the_worst_of_each_is_judged() {
    let study: Study = toml::from_str(&cells()).unwrap();
    let planned = study::plan(&study, &Two).unwrap();
    let measured = planned.iter().filter(|of| of.id.starts_with("cells/")).map(|of| {
        let took = if of.id.contains("flood") { 1.3 } else { 1.0 };
        let message = |message: &study::file::StudyMessage| MessageTimes {
            name: message.name.clone(),
            submitted: Some(0.0),
            delivered: Some(took),
            ..MessageTimes::default()
        };
        Measured {
            id: of.id.clone(),
            environment: Environment::Simulation,
            messages: of.messages.iter().map(message).collect(),
            ..Measured::default()
        }
    });
    let rows = study::rows(&study, &planned, &measured.collect::<Vec<_>>());
    let mut bounds: Vec<f64> = Vec::new();
    for (of, row) in planned.iter().filter_map(|of| {
        let item = format!("{}/flash", of.id);
        Some((of, rows.iter().find(|row| row.item == item)?))
    }) {
        let Some(bound) = row.more.get("bound_seconds") else {
            assert!(of.run.starts_with("alone"), "{}", of.run);
            continue;
        };
        // By hand, at 1 Mbit/s: the Routine's 1,500 octets, else 28 with UDP and 40 with TCP beside its 88
        // at least. The path holds 2,500 octets: 2,048 do not fill it, 4,096 do.
        let packet = match (of.messages.len(), of.loads[0].protocol, of.loads[0].payload) {
            (2, _, _) => 1_500.0,
            (_, study::file::Protocol::Udp, payload) => f64::from(payload) + 28.0,
            (_, _, payload) => f64::from(payload.max(88)) + 40.0,
        };
        let waits = if of.settings["window"].as_str() == Some("small") { 5.0 } else { 2.0 };
        let wanted = 1.0 + waits * packet * 8e-6;
        assert!((bound - wanted).abs() < 1e-9, "{}: {bound}, not {wanted}", of.id);
        assert!((row.more["bound_percent"] - wanted / 1.3 * 100.0).abs() < 1e-9);
        if of.settings["window"].as_str() == Some("ours") {
            bounds.push(row.more["bound_percent"]);
        }
    }
    let verdicts = study::judge(&study, &rows);
    let verdict = verdicts.last().unwrap();
    let worst = bounds.into_iter().fold(f64::INFINITY, f64::min);
    assert_eq!((verdict.value, verdict.holds), (Some(worst), Some(false)));
}
