//! Mixed traffic both ways, submitted and received by real clients that do not know that a
//! daemon will die.

use super::mailbox::{BOX, Mailbox};
use base::rng::Rng;
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use testbed::answer::{SendOutput, SubmittedMessage};
use testbed::clock::Deadline;
use testbed::{Pair, ProgramOutput, RunningClient, Site};

/// The users of each site: the first one submits, both receive.
pub(super) const USERS: [&str; 2] = ["OPS", "LOG"];
/// Clients that submit at the same time, for each site.
const PARALLEL: usize = 3;
/// Longest end of a client that was asked to end.
const SOON: Duration = Duration::from_secs(60);

const PRECEDENCES: [&str; 6] =
    ["override", "flash", "immediate", "priority", "routine", "deferred"];

/// A message and what is known of it.
pub(super) struct Planned {
    /// Content identifier: ours alone, so the content is, too.
    id: String,
    from: usize,
    /// Sites and users.
    pub(super) to: Vec<(usize, &'static str)>,
    size: &'static str,
    precedence: &'static str,
    /// `xuxa` submits again by itself; else another one has to.
    retries: bool,
    /// A report of each delivery is asked for.
    reports: bool,
    /// How often a client ended in doubt of it.
    pub(super) doubts: u32,
    pub(super) answer: Option<SubmittedMessage>,
}

impl Planned {
    fn new(seed: u64, number: u64) -> Planned {
        let mut rng = Rng::new(seed.rotate_left(32) ^ number);
        let from = rng.below(2) as usize;
        // To the other site or, now and then, at home; every seventh one to all users there.
        let site = if rng.below(6) == 0 { from } else { 1 - from };
        let to = match rng.below(7) {
            0 => [USERS[0], USERS[1], BOX].map(|user| (site, user)).to_vec(),
            1 | 2 => vec![(site, BOX)],
            n => vec![(site, USERS[n as usize % 2])],
        };
        // Few that have a file for their body (more than 1 MiB), and those in every run.
        let size = match (number % 32, rng.below(20)) {
            (9, _) => "10MB",
            (3 | 15 | 27, _) => "1200kB",
            (_, 0) => "1MB",
            (_, 1..3) => "300kB",
            (_, 3..7) => "40kB",
            (_, 7..11) => "9kB",
            _ => "1kB",
        };
        Planned {
            id: format!("{seed:X}-{number}"),
            from,
            to,
            size,
            precedence: PRECEDENCES[rng.below(6) as usize],
            retries: rng.below(2) == 0,
            reports: rng.below(4) == 0,
            doubts: 0,
            answer: None,
        }
    }

    /// A Flash at home for the user who has a mailbox, whose alert shows that the watch there has begun.
    fn first(seed: u64, number: u64) -> Planned {
        let site = number as usize;
        let to = vec![(site, BOX)];
        let planned = Planned::new(seed, number);
        Planned { from: site, to, size: "1kB", precedence: "flash", reports: false, ..planned }
    }

    fn submit(&self, sites: &[Site; 2]) -> RunningClient {
        let mut arguments = vec!["--json", "send", "--precedence", self.precedence];
        let to: Vec<String> = self.to.iter().map(|(s, user)| sites[*s].address(user)).collect();
        arguments.extend(to.iter().flat_map(|to| ["--to", to]));
        arguments.extend(["--size", self.size, "--dtg", "260504030201Z"]);
        arguments.extend(["--content-identifier", &self.id]);
        arguments.extend(["--report", if self.reports { "delivery" } else { "non-delivery" }]);
        arguments.extend(["--retry-for", if self.retries { "60s" } else { "0s" }]);
        sites[self.from].xuxa_beside(USERS[0], &arguments).unwrap()
    }

    /// Takes the result of a client; whether the submission is answered.
    fn receive(&mut self, run: &ProgramOutput, may_refuse: bool) -> bool {
        let sent: SendOutput = run.json_anyway().unwrap();
        if may_refuse && sent.refused.len() == 1 {
            assert_eq!(run.code, 1, "{}", run.stderr);
            return false;
        }
        match (&sent.messages[..], &sent.in_doubt[..], &sent.not_sent[..]) {
            ([answer], [], []) => {
                assert_eq!(run.code, 0, "{}", run.stderr);
                self.answer = Some(answer.clone());
                return true;
            }
            ([], [doubt], []) => {
                assert_eq!((run.code, &doubt.content_identifier), (4, &self.id));
                self.doubts += 1;
            }
            ([], [], [_]) => assert_eq!(run.code, 1, "{}", run.stderr),
            _ => panic!("{}: {}", run.stdout, run.stderr),
        }
        false
    }
}

/// All clients, and all messages so far.
pub(super) struct Traffic {
    seed: u64,
    pub(super) planned: Vec<Planned>,
    submitting: Vec<(usize, RunningClient)>,
    /// Not sent, or in doubt: to be submitted again as they were.
    again: VecDeque<usize>,
    receiving: BTreeMap<(usize, &'static str), RunningClient>,
    /// One at each site.
    pub(super) mailboxes: [Mailbox; 2],
    /// A disk is full now and then: a submission may be refused, and is repeated.
    pub(super) may_refuse: bool,
    /// Files of bodies seen at each site.
    pub(super) bodies: [BTreeSet<OsString>; 2],
}

impl Traffic {
    pub(super) fn new(seed: u64) -> Traffic {
        Traffic {
            seed,
            planned: Vec::new(),
            submitting: Vec::new(),
            again: VecDeque::new(),
            receiving: BTreeMap::new(),
            mailboxes: Default::default(),
            may_refuse: false,
            bodies: Default::default(),
        }
    }

    /// The watches of both mailboxes begin, with a message in each.
    pub(super) fn begin(&mut self, sites: &[Site; 2]) {
        self.planned = (0..2).map(|number| Planned::first(self.seed, number)).collect();
        self.again.extend(0..2);
        let begun = || {
            self.tend(sites, false);
            Ok(self.mailboxes.iter().all(Mailbox::is_watched).then_some(()))
        };
        Deadline::after(SOON).wait_for("the first alerts", begun).unwrap();
    }

    /// Looks after all clients; whether any of what was planned is not answered yet. Where
    /// `more`, new messages are submitted, too.
    pub(super) fn tend(&mut self, sites: &[Site; 2], more: bool) -> bool {
        for (site, seen) in sites.iter().zip(&mut self.bodies) {
            // Not there before the first start.
            let files = fs::read_dir(bodies(site)).into_iter().flatten().flatten();
            seen.extend(files.map(|file| file.file_name()));
        }
        let mut index = 0;
        while index < self.submitting.len() {
            if self.submitting[index].1.ended().unwrap() {
                let (number, client) = self.submitting.swap_remove(index);
                let run = client.wait(SOON).unwrap();
                if !self.planned[number].receive(&run, self.may_refuse) {
                    self.again.push_back(number);
                }
            } else {
                index += 1;
            }
        }
        while self.submitting.len() < 2 * PARALLEL {
            let number = match self.again.pop_front() {
                Some(number) => number,
                None if more => {
                    self.planned.push(Planned::new(self.seed, self.planned.len() as u64));
                    self.planned.len() - 1
                }
                None => break,
            };
            self.submitting.push((number, self.planned[number].submit(sites)));
        }
        for (mailbox, site) in self.mailboxes.iter_mut().zip(sites) {
            mailbox.tend(site);
        }
        for (index, site) in sites.iter().enumerate() {
            for user in USERS {
                let ended = self.receiving.get_mut(&(index, user)).map(|c| c.ended().unwrap());
                if ended != Some(false) {
                    let client = site.xuxa_beside(user, &["--json", "receive", "--wait"]).unwrap();
                    self.receiving.insert((index, user), client);
                }
            }
        }
        !self.submitting.is_empty()
    }

    /// Kills a receiver, if it runs, and a client of the mailbox there.
    pub(super) fn kill_receiver(&mut self, (site, user): (usize, usize)) {
        self.mailboxes[site].kill_client();
        if let Some(client) = self.receiving.get_mut(&(site, USERS[user])) {
            let _ = client.signal(Signal::SIGKILL);
        }
    }

    /// Ends the receivers in order.
    pub(super) fn stop_receiving(&mut self) {
        self.mailboxes.iter_mut().for_each(Mailbox::stop);
        for ((site, user), mut client) in std::mem::take(&mut self.receiving) {
            client.signal(Signal::SIGINT).unwrap();
            let run = client.wait(SOON).unwrap();
            // In the middle of a message too, which is given back.
            assert_eq!(run.code, 130, "{user} at {site}: {}", run.stderr);
        }
    }

    /// Whether all that was acknowledged stands in the inboxes of this site's users.
    pub(super) fn has_arrived(&self, site: &Site, index: usize) -> bool {
        let in_mailbox = self.mailboxes[index].has_all(&self.expected(index, BOX).0);
        in_mailbox
            && USERS.iter().all(|user| {
                let (messages, reports) = received(site, user);
                let of =
                    |subject: &String| reports.iter().filter(|report| *report == subject).count();
                self.expected(index, user).0.is_subset(&messages.into_iter().collect())
                    && self.expected_reports(index, user).iter().all(|(id, n)| of(id) >= *n)
            })
    }

    /// Reports each user has to have in the end, by their subject: one for each of its recipients.
    pub(super) fn expected_reports(&self, site: usize, user: &str) -> BTreeMap<String, usize> {
        let asked = |p: &&Planned| p.reports && p.from == site && user == USERS[0];
        let subject = |p: &Planned| p.answer.as_ref().unwrap().mts_identifier.clone();
        self.planned.iter().filter(asked).map(|p| (subject(p), p.to.len())).collect()
    }

    /// What each user has to have in the end: MTS identifiers, and contents by their hash.
    pub(super) fn expected(
        &self,
        site: usize,
        user: &str,
    ) -> (BTreeSet<String>, BTreeMap<String, String>) {
        let of_it = self.planned.iter().filter(|p| p.to.contains(&(site, user)));
        let answers: Vec<&SubmittedMessage> = of_it.map(|p| p.answer.as_ref().unwrap()).collect();
        let identifiers: BTreeSet<String> =
            answers.iter().map(|a| a.mts_identifier.clone()).collect();
        assert_eq!(identifiers.len(), answers.len(), "an identifier for each message");
        let contents: BTreeMap<String, String> = answers
            .iter()
            .map(|a| (a.content_sha256.clone(), a.content_identifier.clone()))
            .collect();
        assert_eq!(contents.len(), answers.len(), "no two contents are the same");
        (identifiers, contents)
    }
}

/// Where bodies have their files.
pub(super) fn bodies(site: &Site) -> PathBuf {
    site.path().join("data/queue/bodies")
}

/// Where this user's messages are kept.
pub(super) fn inbox(site: &Site, user: &str) -> PathBuf {
    site.path().join(format!("inbox-{user}"))
}

/// What a user's inbox remembers: MTS identifiers of messages, and those that reports are about.
pub(super) fn received(site: &Site, user: &str) -> (Vec<String>, Vec<String>) {
    let log = fs::read_to_string(inbox(site, user).join("received.log")).unwrap_or_default();
    let (mut messages, mut reports) = (Vec::new(), Vec::new());
    for line in log.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = line["id"].as_str().unwrap();
        // report HASH on IDENTIFIER
        match id.strip_prefix("report ").and_then(|rest| rest.split_once(" on ")) {
            Some((_, subject)) => reports.push(subject.to_owned()),
            None => messages.push(id.to_owned()),
        }
    }
    (messages, reports)
}

/// The two sites by number.
pub(super) fn sites(pair: Pair) -> [Site; 2] {
    [pair.naples, pair.act]
}
