use super::path::FlowPath;
use super::*;
use crate::measured::PortSteps;
use network::Topology;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const PAIR: &str = include_str!("../../../../config/lab/topologies/pair.toml");
const NATO: &str = include_str!("../../../../config/lab/topologies/nato.toml");
const PAGE: &str = include_str!("../../../../docs/studies.md");

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn keys(of: fn(&TcpCell) -> f64) -> Vec<f64> {
    let thousandths = |cell: &TcpCell| (of(cell) * 1e3).round() as u64;
    let all: BTreeSet<u64> = shipped().cells.iter().map(thousandths).collect();
    all.into_iter().map(|value| value as f64 / 1e3).collect()
}

fn lines() -> Vec<f64> {
    keys(|cell| cell.line_kbit_s)
}

fn losses() -> Vec<f64> {
    keys(|cell| cell.loss_percent)
}

fn round_trips() -> Vec<f64> {
    keys(|cell| cell.round_trip_ms)
}

#[test]
fn the_cells_that_come_with_the_program_are_whole() {
    let cells = &shipped().cells;
    assert_eq!(losses(), [0.0, 0.1, 0.3, 1.0, 2.0, 5.0]);
    assert_eq!(round_trips(), [10.0, 30.0, 100.0, 300.0, 600.0]);
    assert_eq!(cells.len(), lines().len() * losses().len() * round_trips().len());
    for cell in cells {
        let factor = cell.linux_kbit_s / cell.simulation_kbit_s;
        assert!((factor - cell.factor).abs() <= 0.006 * factor.max(1.0), "{cell:?}");
    }
}

#[test]
fn the_nearest_cell_is_that_of_the_ratios() {
    let cell = |line, loss, round_trip| {
        let cell = shipped().nearest(line, loss, round_trip).unwrap();
        (cell.line_kbit_s, cell.loss_percent, cell.round_trip_ms)
    };
    assert_eq!(cell(2_000.0, 1.0, 100.0), (2_000.0, 1.0, 100.0));
    assert_eq!(cell(600.0, 0.16, 50.0), (512.0, 0.1, 30.0));
    assert_eq!(cell(1e9, 0.01, 0.0), (10_000.0, 0.0, 10.0));
    assert_eq!(cell(0.0, 70.0, 1e6), (512.0, 5.0, 600.0));
    assert!(!shipped().is_outside(9.0, 1_100.0));
    assert!(shipped().is_outside(11.0, 100.0));
    assert!(shipped().is_outside(1.0, 1_300.0));
    assert_eq!(TcpFactors::default().nearest(1.0, 1.0, 1.0), None);
}

#[test]
fn a_path_leads_through_tunnels() {
    let topology = Topology::read(NATO).unwrap();
    let path = FlowPath::new(&topology, ip("10.10.64.10"), ip("10.10.65.10")).unwrap();
    let names = |way: &[Stretch]| -> Vec<String> {
        way.iter().map(|stretch| stretch.port.clone()).collect()
    };
    let there = names(&path.there);
    assert_eq!(there.first().unwrap(), "naples.lan");
    for port in ["naples-sar.wan", "naples-crypto.black", "naples-uar.wan", "act-crypto.red"] {
        assert!(there.iter().any(|one| one == port), "{port}: {there:?}");
    }
    assert_eq!(there.last().unwrap(), "act-sar.lan");
    assert_eq!(names(&path.back).last().unwrap(), "naples-sar.lan");
    let sum = |way: &[Stretch]| way.iter().map(|stretch| stretch.seconds).sum::<f64>();
    assert!((sum(&path.there) - sum(&path.back)).abs() < 1e-9);
    assert_eq!(FlowPath::new(&topology, ip("10.10.64.10"), ip("203.0.113.1")), None);
}

#[test]
fn only_a_transfer_that_lost_segments_itself_has_a_factor() {
    let count = |dscp, sent, received| TcpCount {
        from: ip("10.0.1.2"),
        to: ip("10.0.2.2"),
        dscp,
        sent,
        received,
    };
    let back = TcpCount { from: ip("10.0.2.2"), to: ip("10.0.1.2"), ..count(0, 100, 0) };
    let counts = [back, count(0, 1_000, 980), count(8, 300, 300)];
    let of = |dscp| Transfer { from: ip("10.0.1.2"), to: ip("10.0.2.2"), dscp, time: (2.0, 8.0) };
    assert!((lost(&counts, &of(0)) - 0.02).abs() < 1e-12);
    // Others of the run, and what came back, are not its own.
    assert_eq!([lost(&counts, &of(8)), lost(&counts, &of(46))], [0.0, 0.0]);

    let topology = Topology::read(PAIR).unwrap();
    let steps = |packets: u64, dropped: u64, waiting: u64| PortSteps {
        octets: vec![packets * 1_500; 10],
        packets: vec![packets; 10],
        dropped: vec![dropped; 10],
        waiting: vec![waiting; 10],
    };
    let series = [PortSeries {
        port: "middle.bob".to_owned(),
        interval: 1.0,
        rows: [(0, steps(49, 1, 7)), (8, steps(100, 0, 0))].into(),
    }];
    let found = |series: &[PortSeries], transfer: &Transfer, loss| {
        let path = FlowPath::new(&topology, transfer.from, transfer.to).unwrap();
        of_path(shipped(), &path, series, transfer, loss)
    };
    // 7 wait where 49 a second leave, so each waits for 143 ms, beside 2.2 ms of line.
    let [(_, factor), (_, loss), (_, round_trip)] = found(&series, &of(0), 0.02).unwrap();
    assert!((loss - 2.0).abs() < 1e-9 && (round_trip - 145.06).abs() < 0.1, "{loss} {round_trip}");
    // What left the port was 149 packets a second, 1.8 Mbit/s.
    let cell = shipped().nearest(2_000.0, 2.0, 100.0).unwrap();
    assert!((factor - cell.factor).abs() < 1e-9);
    // Other packets of its mark were dropped, and none of its own.
    assert_eq!(found(&series, &of(0), 0.0), None);
    // Where nothing waited, the round trip is that of the line.
    let [_, _, (_, round_trip)] = found(&[], &of(0), 0.01).unwrap();
    assert!((round_trip - 2.2).abs() < 0.1, "{round_trip}");
}

/// A table for each rate: a line for each round trip, a column for each loss.
fn tables() -> String {
    let mut text = String::new();
    for line in lines() {
        let _ = writeln!(text, "\nFactors on a line of {line} kbit/s:\n");
        let percents: String = losses().iter().map(|loss| format!(" {loss} % |")).collect();
        let _ = writeln!(text, "| round trip |{percents}\n|--:|{}", "--:|".repeat(losses().len()));
        for round_trip in round_trips() {
            let factor = |loss: &f64| {
                let cell = shipped().nearest(line, *loss, round_trip).unwrap();
                format!(" {:.2} |", cell.factor)
            };
            let factors: String = losses().iter().map(factor).collect();
            let _ = writeln!(text, "| {round_trip} ms |{factors}");
        }
    }
    text
}

#[test]
fn the_page_has_the_factors_that_come_with_the_program() {
    let behind = PAGE.split("<!-- figures: tcp-factor -->\n").nth(1).unwrap_or_default();
    let page = behind.split("<!-- end -->").next().unwrap_or_default();
    assert_eq!(page.trim(), tables().trim(), "put this into docs/studies.md:\n{}", tables());
}
