//! Peers and their habits: the rows of that table in `docs/refusals.md`. Two MTAs in virtual time, of which one has
//! the habit, or a wire between them that has it for both. Each row in normal and in X.410 mode, with the association
//! opened by either end and the long transfer from either end. In the end every message was delivered once, its
//! content unaltered, and nothing is left; where a transfer is resumed, at most a window was sent twice.

mod middle;
mod rows;

use base::Precedence;
use middle::middle;
use node::changes::EdgeChanges;
use node::config::{Connection, NodeConfig, X410};
use osi::api::Dialogue;
use p1::flags::ReportRequest;
use std::time::Duration;
use testkit::build::content;
use testkit::{ACT, Delivered, Events, NAPLES, NOTHING, Network, address};

/// Octets between checkpoints, checkpoints in the window, and the most that is sent twice for one loss.
const CHECKPOINT: u64 = 4 * 1024;
const WINDOW: u64 = 3;
const AGAIN: u64 = (WINDOW + 1) * CHECKPOINT;
/// Octets of the long message, and of each short one.
const LONG: usize = 200_000;
const SHORT: usize = 3_000;

/// Who opened the association and who sends the long message, in which mode.
#[derive(Clone, Copy, Debug)]
struct Roles {
    opener: usize,
    sender: usize,
    is_x410: bool,
}

/// A row of the table.
struct Row {
    /// Changes the configuration of a site.
    node: fn(&mut NodeConfig, site: usize, roles: Roles),
    /// What happens, with half of the long message sent.
    then: fn(&mut Case),
    /// Whether both sites may open associations; otherwise the opener alone.
    both_open: bool,
    /// Whether the long transfer is resumed; otherwise it begins again, or was not cut off.
    resumes: bool,
    /// In the log of one of the sites.
    log: &'static str,
}

/// Two sites with users, and the long message in transfer.
struct Case {
    network: Network,
    roles: Roles,
    /// One at each site that submits, one that reads.
    writers: [usize; 2],
    readers: [usize; 2],
    /// What was submitted at each site.
    sent: [Vec<Vec<u8>>; 2],
}

fn configured(config: &mut NodeConfig, roles: Roles) {
    let peer = &mut config.peers[0];
    peer.addresses = vec!["192.0.2.1".parse().unwrap()];
    peer.x410 = roles.is_x410.then_some(X410 { protocol: 12, swapped: false });
    let channel = &mut peer.channels[0];
    channel.connection = Connection::OnDemand { idle_close: Duration::from_secs(5) };
    channel.associations_max = 1;
    channel.rts.dialogue = Dialogue::TwoWayAlternate;
}

impl Case {
    fn new(row: &Row, roles: Roles) -> Case {
        middle::behave(|_| middle::Outcome::Carried, 0);
        let mut network = Network::pair(9, NOTHING);
        network.wire = middle;
        for site in [NAPLES, ACT] {
            let change = |config: &mut NodeConfig| {
                configured(config, roles);
                (row.node)(config, site, roles);
            };
            network.configure(site, change, EdgeChanges::default());
        }
        for (number, site) in network.sites.iter_mut().enumerate() {
            site.may_connect = row.both_open || number == roles.opener;
        }
        network.run_for(Duration::from_millis(100));
        network.cut();
        let writers = [NAPLES, ACT].map(|site| network.user(site, "LOG", false));
        let readers = [NAPLES, ACT].map(|site| network.user(site, "OPS", true));
        writers.iter().zip([NAPLES, ACT]).for_each(|(user, site)| network.bind(*user, site));
        network.run_for(Duration::from_secs(1));
        let sent = [Vec::new(), Vec::new()];
        let mut case = Case { network, roles, writers, readers, sent };
        // The opener's message brings the association about.
        case.submit(roles.opener, SHORT);
        case.run_until(|case| case.network.queued(1 - roles.opener) > 0);
        let before = case.octets_read();
        case.submit(roles.sender, LONG);
        case.run_until(|case| case.octets_read() - before >= LONG as u64 / 2);
        case
    }

    /// A message of this length from the writer at this site.
    fn submit(&mut self, site: usize, length: usize) {
        let number = 1 + site + 2 * self.sent[site].len();
        let text = content(number, length);
        let (to, id) = ([address(1 - site, "OPS")], format!("MESSAGE {number}"));
        let writer = self.writers[site];
        let report = ReportRequest::None;
        self.network.submit(writer, &to, Precedence::Routine, &text, &id, report);
        self.sent[site].push(text);
    }

    /// Octets of content that the sender's store has given.
    fn octets_read(&self) -> u64 {
        self.network.sites[self.roles.sender].store.octets_read
    }

    fn run_until(&mut self, is_so: impl Fn(&Case) -> bool) {
        for _ in 0..200_000 {
            if is_so(self) {
                return;
            }
            self.network.run_for(Duration::from_millis(1));
        }
        panic!("it does not come to that\n{}", self.log());
    }

    /// A second round of short messages, then the end. The number of octets of the long one sent again.
    fn finish(&mut self) -> u64 {
        self.network.run_for(Duration::from_secs(120));
        for site in [NAPLES, ACT] {
            self.network.bind(self.writers[site], site);
            self.submit(site, SHORT);
        }
        self.network.run_for(Duration::from_secs(120));
        let all: usize = self.sent[self.roles.sender].iter().map(Vec::len).sum();
        let again = self.octets_read() - all as u64;
        for site in [NAPLES, ACT] {
            let reader = self.readers[site];
            self.network.bind(reader, site);
            self.network.run_for(Duration::from_secs(20));
            let delivered = self.network.users[reader].delivered.iter().map(|it| match it {
                Delivered::Message { content, .. } => content.clone(),
                report @ Delivered::Report { .. } => panic!("{report:?}"),
            });
            let mut delivered: Vec<Vec<u8>> = delivered.collect();
            let mut sent = self.sent[1 - site].clone();
            delivered.sort();
            sent.sort();
            let lengths = |all: &[Vec<u8>]| all.iter().map(Vec::len).collect::<Vec<_>>();
            assert!(
                delivered == sent,
                "{:?} for {:?}\n{}",
                lengths(&delivered),
                lengths(&sent),
                self.log()
            );
        }
        self.network.run_for(Duration::from_secs(700));
        self.network.assert_empty();
        again
    }

    fn log(&self) -> String {
        let mut all: Vec<String> = Vec::new();
        for (site, name) in [(NAPLES, "naples"), (ACT, "act")] {
            for (at, event) in self.network.sites[site].all() {
                let what = format!("{:?} {:?}", event.kind, event.detail);
                all.push(format!("{:>12.6} {name:6} {what}", at.0 as f64 / 1e6));
            }
        }
        all.sort();
        format!("{:?}\n{}", self.roles, all.join("\n"))
    }
}

/// Plays a row in every role and mode.
fn play(row: &Row) {
    for is_x410 in [false, true] {
        for (opener, sender) in [(NAPLES, NAPLES), (NAPLES, ACT), (ACT, NAPLES), (ACT, ACT)] {
            let mut case = Case::new(row, Roles { opener, sender, is_x410 });
            (row.then)(&mut case);
            let again = case.finish();
            let log = case.log();
            assert_eq!(middle::left(), 0, "the peer did not show its habit\n{log}");
            assert!(log.contains(row.log), "no {:?} in\n{log}", row.log);
            let most = if row.resumes { AGAIN } else { LONG as u64 };
            assert!(again <= most, "{again} octets again\n{log}");
            assert_eq!(log.contains("resumed after"), row.resumes, "{log}");
        }
    }
}
