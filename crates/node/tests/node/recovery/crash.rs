//! A process crashes after each of its outputs, in one run for each: no message is lost or delivered
//! twice, and nothing is left in a store.

use base::Precedence;
use osi::api::Dialogue;
use p1::flags::ReportRequest;
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::build::content;
use testkit::{ACT, Death, Delivered, NAPLES, NOTHING, Network, Setup, Strike, address};

/// The latency of a fast line.
const FAST: Duration = Duration::from_millis(1);

/// One message of the scenario, submitted by OPS in Naples.
struct Planned {
    to: &'static [(usize, &'static str)],
    size: usize,
    precedence: Precedence,
    report: ReportRequest,
}

/// Two recipients of one site that share a content, with reports; a transfer of several checkpoints; a
/// message that is also delivered at its own site; a message to an unknown user.
const PLAN: [Planned; 4] = [
    Planned {
        to: &[(ACT, "OPS"), (ACT, "LOG")],
        size: 60,
        precedence: Precedence::Flash,
        report: ReportRequest::Report,
    },
    Planned {
        to: &[(ACT, "LOG")],
        size: 9_000,
        precedence: Precedence::Routine,
        report: ReportRequest::None,
    },
    Planned {
        to: &[(NAPLES, "OPS"), (ACT, "OPS")],
        size: 2_000,
        precedence: Precedence::Priority,
        report: ReportRequest::NonDelivery,
    },
    Planned {
        to: &[(ACT, "NOBODY")],
        size: 300,
        precedence: Precedence::Immediate,
        report: ReportRequest::NonDelivery,
    },
];

struct Scenario {
    network: Network,
    /// Its users, with their sites and names; the first one submits.
    users: Vec<(usize, usize, &'static str)>,
}

impl Scenario {
    fn new(setup: Setup, latency: Duration) -> Scenario {
        let mut network = Network::pair(1, setup);
        network.latency = latency;
        let users = [(NAPLES, "OPS"), (ACT, "OPS"), (ACT, "LOG")]
            .map(|(site, name)| (network.user(site, name, true), site, name));
        for (n, planned) in PLAN.iter().enumerate() {
            let to: Vec<String> = planned.to.iter().map(|(s, name)| address(*s, name)).collect();
            let text = content(n, planned.size);
            let id = format!("MESSAGE {n}");
            network.submit(users[0].0, &to, planned.precedence, &text, &id, planned.report);
        }
        Scenario { network, users: users.to_vec() }
    }

    /// All submissions are answered, and all messages are delivered and deleted.
    fn is_over(&self) -> bool {
        let over = |s: &testkit::Site| {
            let store = &s.store;
            store.entries.is_empty() && store.bodies.is_empty()
        };
        self.network.users[0].answers.len() == PLAN.len() && self.network.sites.iter().all(over)
    }

    /// Runs to the end. Users without an association bind again.
    fn run(&mut self) {
        for pause in [1, 1, 1, 1, 10, 30, 120, 120, 400, 700] {
            if self.is_over() {
                // A second delivery would come when users bind or sites connect again. A crash that
                // is still pending happens then, too.
                self.network.cut();
                self.network.run_for(Duration::from_secs(10));
                if self.network.sites.iter().all(|s| s.strikes.is_empty()) {
                    break;
                }
            }
            for &(user, site, _) in &self.users {
                if !self.network.is_bound(user) {
                    self.network.bind(user, site);
                }
            }
            self.network.run_for(Duration::from_secs(pause));
        }
    }

    /// What must hold in the end, if each site crashed this number of times.
    fn check(&self, deaths: [u32; 2]) {
        let network = &self.network;
        let answers: Vec<&String> =
            network.users[0].answers.iter().map(|a| a.as_ref().expect("accepted")).collect();
        assert_eq!(answers.len(), PLAN.len(), "every submission was answered");
        for &(user, site, name) in &self.users {
            let mut got: BTreeMap<&str, u32> = BTreeMap::new();
            let mut reports: BTreeMap<(&str, bool), u32> = BTreeMap::new();
            for delivered in &network.users[user].delivered {
                match delivered {
                    Delivered::Message { identifier, content: octets } => {
                        *got.entry(identifier).or_default() += 1;
                        let n = answers.iter().position(|a| *a == identifier);
                        let n = n.expect("an identifier that was the answer to a submission");
                        assert!(*octets == content(n, PLAN[n].size), "{n} is complete");
                    }
                    Delivered::Report { subject, delivered } => {
                        *reports.entry((subject, *delivered)).or_default() += 1;
                    }
                }
            }
            // P3 has no duplicate key: a delivery whose confirm was lost is repeated, once for each
            // crash.
            let once = 1..=1 + deaths[site];
            let meant = |p: &&Planned| p.to.contains(&(site, name));
            assert_eq!(got.len(), PLAN.iter().filter(meant).count(), "{name} at {site}: {got:?}");
            assert!(got.values().all(|times| once.contains(times)), "{name} at {site}: {got:?}");
            let expected: &[_] = if user == 0 { &[(0, true, 2), (3, false, 1)] } else { &[] };
            assert_eq!(reports.len(), expected.len(), "{name} at {site}: {reports:?}");
            for &(n, delivered, least) in expected {
                let times = reports.get(&(answers[n].as_str(), delivered)).copied().unwrap_or(0);
                assert!((least..=least + deaths[site]).contains(&times), "{n}: {reports:?}");
            }
        }
        network.assert_empty();
        assert!(network.sites.iter().all(|s| s.strikes.is_empty()), "each planned crash happened");
    }
}

/// The number of outputs of each site in a run without crashes.
fn outputs(setup: Setup, latency: Duration) -> [u64; 2] {
    let mut scenario = Scenario::new(setup, latency);
    scenario.run();
    scenario.check([0, 0]);
    [NAPLES, ACT].map(|site| scenario.network.sites[site].outputs)
}

/// Each site crashes after each of its outputs (or every `step`th), in each kind of crash; with `again`,
/// it crashes again after that number of outputs.
fn sweep(setup: Setup, step: usize, again: Option<u64>) {
    sweep_at(setup, FAST, step, again);
}

fn sweep_at(setup: Setup, latency: Duration, step: usize, again: Option<u64>) {
    let counts = outputs(setup, latency);
    let mut failed = Vec::new();
    for site in [NAPLES, ACT] {
        for after in (1..=counts[site]).step_by(step) {
            for death in [Death::Power, Death::Process] {
                for commits in [false, true] {
                    let strike = Strike { after, death, commits };
                    let mut strikes = vec![strike];
                    strikes.extend(again.map(|more| Strike { after: after + more, ..strike }));
                    let run = std::panic::AssertUnwindSafe(|| {
                        let mut scenario = Scenario::new(setup, latency);
                        scenario.network.sites[site].strikes = strikes.clone().into();
                        scenario.run();
                        let mut deaths = [0; 2];
                        deaths[site] = strikes.len() as u32;
                        scenario.check(deaths);
                    });
                    if std::panic::catch_unwind(run).is_err() {
                        failed.push((site, strikes));
                    }
                }
            }
        }
    }
    // Each failed run has printed its reason.
    assert!(failed.is_empty(), "of outputs {counts:?} at each site, these: {failed:#?}");
}

#[test]
fn a_crash_after_any_output_loses_and_doubles_nothing() {
    sweep(NOTHING, 1, None);
}

#[test]
fn a_second_crash_during_the_start_loses_and_doubles_nothing() {
    for more in [1, 2] {
        sweep(NOTHING, 3, Some(more));
    }
}

/// The line is so slow that what is received, and how far a transfer has come, survives the crash.
#[test]
fn a_crash_of_a_long_transfer_loses_and_doubles_nothing() {
    let slow = Duration::from_millis(600);
    sweep_at(NOTHING, slow, 3, None);
    sweep_at(NOTHING, slow, 5, Some(2));
}

#[test]
fn a_crash_loses_and_doubles_nothing_without_checkpoints_or_two_way_alternate() {
    sweep(Setup { rts: |rts| rts.checkpoint_size = 0, ..NOTHING }, 3, None);
    sweep(Setup { rts: |rts| rts.dialogue = Dialogue::TwoWayAlternate, ..NOTHING }, 3, None);
}
