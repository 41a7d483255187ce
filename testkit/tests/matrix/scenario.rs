//! The scenario: two sites with real stores, four users, every kind of work that a store does for an MTA. Messages
//! for the users LOG go into their mailboxes in the message store, but for a mutant.
//!
//! Users and peers act as real ones: a submission without an answer is repeated, one that was refused is
//! submitted again, a transfer without a confirm is repeated, and who lost his association binds again.

use crate::orders::{Certainty, SPARE};
use crate::plan::{CANCELLED, DELETED, HELD, LISTED, PLAN, Planned, REDIRECTED, URGENT, USERS};
use base::{EntryId, Utc};
use node::Input;
use node::config::NodeConfig;
use std::collections::BTreeMap;
use std::time::Duration;
use store::queue::for_each_entry;
use testkit::build::content;
use testkit::real::{Fault, Mutant, RealStore};
use testkit::{ACT, Death, NAPLES, NOTHING, Network, Setup, address};

/// Faults of the disk of one site, and what is left out or done wrong at both.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub site: usize,
    pub faults: Vec<(u64, Fault)>,
    pub mutant: Option<Mutant>,
}

impl Case {
    /// Whether messages for the users LOG go into the message store. With a mutant all users take deliveries over P3:
    /// the table of mutants has the operations of such a run.
    pub(crate) fn has_mailboxes(&self) -> bool {
        self.mutant.is_none()
    }

    /// Whether an operator orders more than a hold: as with the mailboxes.
    pub(crate) fn has_orders(&self) -> bool {
        self.mutant.is_none()
    }

    /// Whether the disk changes what is stored, or cannot read it.
    pub(crate) fn rots(&self) -> bool {
        let rots = |fault: &Fault| {
            matches!(fault, Fault::Rot(_) | Fault::UnreadableOnce | Fault::Unreadable(_))
        };
        self.faults.iter().any(|(_, fault)| rots(fault))
    }
}

/// Within the time for which [`Scenario::finish`] waits, and longer than all that comes before.
const DEFERRED_FOR: Duration = Duration::from_secs(1_200);

/// A run.
pub(crate) struct Scenario {
    pub network: Network<RealStore>,
    /// Submissions of each user, by the number that it gave them: the messages of the plan.
    pub submitted: [Vec<usize>; 4],
    /// Answers of each user that were looked at.
    looked_at: [usize; 4],
    /// The held message was delivered while it was held.
    pub held_went: bool,
    /// What an operator ordered of these messages, other than a hold.
    pub ordered: BTreeMap<usize, Certainty>,
    /// Whether there is a distribution list.
    pub has_list: bool,
    /// What is to be sent.
    pub plan: &'static [Planned],
    /// The deferred delivery time of the message that has one.
    pub deferral: Option<base::Instant>,
    pub(crate) request: u64,
    rots: bool,
    /// For which a disk that is full is left so before the urgent message.
    minutes: u64,
}

/// The user LOG has a mailbox in the message store, and the peer is known by a second name, with other channels.
fn store_for_log(config: &mut NodeConfig) {
    let mut spare = config.peers[0].clone();
    spare.name = SPARE.to_owned();
    spare.channels.iter_mut().for_each(|channel| channel.index += 10);
    config.peers.push(spare);
    let stored = config.mailboxes.iter().filter(|address| address.ends_with("s=log"));
    config.store.users = stored.cloned().collect();
}

impl Scenario {
    pub(crate) fn new(case: &Case) -> Scenario {
        let store = |site| {
            let faults = if site == case.site { case.faults.clone() } else { Vec::new() };
            RealStore::new(faults, case.mutant)
        };
        let stores = [NAPLES, ACT].map(store).into();
        let node = if case.has_mailboxes() { store_for_log } else { NOTHING.node };
        let setup = Setup { node, ..NOTHING };
        let mut network = Network::with_stores(stores, &[(NAPLES, ACT)], 1, setup);
        network.latency = Duration::from_millis(1);
        for (site, name) in USERS {
            network.user(site, name, true);
        }
        Scenario {
            network,
            submitted: Default::default(),
            looked_at: [0; 4],
            held_went: false,
            ordered: BTreeMap::new(),
            has_list: false,
            plan: if case.has_orders() { &PLAN } else { &PLAN[..DELETED] },
            deferral: None,
            request: 0,
            rots: case.rots(),
            minutes: case.faults.first().map_or(0, |(n, _)| n % 45),
        }
    }

    /// Plays it to the end.
    pub(crate) fn play(&mut self) {
        self.run(100);
        (0..3).for_each(|n| self.submit(n));
        self.cut_the_long_one();
        self.run(800);
        (3..5).for_each(|n| self.submit(n));
        self.run(1_000);
        self.network.restart(ACT);
        self.run(3_000);
        self.hold();
        self.order();
        self.expand();
        self.wait_while_full();
        self.submit(URGENT);
        self.finish();
        if self.rots {
            // Without an end in order, a damaged last frame is one of an interrupted write.
            for site in [NAPLES, ACT] {
                self.network.restart(site);
            }
            self.run(3_000);
        }
        self.lose_power();
        self.repeat();
        self.finish();
        self.settle();
    }

    /// A site may have started a moment ago, and wait for its first commits.
    fn settle(&mut self) {
        for _ in 0..50 {
            let sites = &self.network.sites;
            if !sites.iter().any(|site| !site.is_down && site.node.holds().pending > 0) {
                return;
            }
            self.network.run_for(Duration::from_millis(100));
        }
    }

    /// A user submits a message of the plan.
    pub(crate) fn submit(&mut self, n: usize) {
        let planned = &self.plan[n];
        let to = planned.address.as_ref().map_or(planned.to, std::slice::from_ref);
        let to: Vec<String> = to.iter().map(|(site, name)| address(*site, name)).collect();
        let alternate = (n == REDIRECTED).then(|| address(planned.to[0].0, planned.to[0].1));
        self.network.users[planned.from].alternate = alternate;
        self.network.users[planned.from].deferred = (n == CANCELLED).then(|| {
            // A UTCTime has whole seconds.
            let at = (self.network.now + DEFERRED_FOR).0.next_multiple_of(1_000_000);
            let at = *self.deferral.get_or_insert(base::Instant(at));
            Utc(testkit::NEW_YEAR + at.0)
        });
        let (text, id) = (content(n, planned.size), format!("MESSAGE {n}"));
        self.submitted[planned.from].push(n);
        self.network.submit(planned.from, &to, planned.precedence, &text, &id, planned.report);
    }

    /// Runs for so many milliseconds. Users do meanwhile what users do.
    pub(crate) fn run(&mut self, milliseconds: u64) {
        let mut left = milliseconds;
        while left > 0 {
            self.attend();
            let step = left.min(500);
            self.network.run_for(Duration::from_millis(step));
            left -= step;
        }
        self.attend();
    }

    fn attend(&mut self) {
        for (user, (site, _)) in USERS.into_iter().enumerate() {
            if !self.network.is_bound(user) && !self.network.sites[site].is_down {
                self.network.bind(user, site);
            }
            let answers = &self.network.users[user].answers;
            let new = self.looked_at[user]..answers.len();
            self.looked_at[user] = answers.len();
            let refused = new.filter(|at| answers[*at].is_err());
            let tags: Vec<usize> =
                refused.map(|at| self.network.users[user].answered[at]).collect();
            for tag in tags {
                self.submit(self.submitted[user][tag]);
            }
        }
    }

    /// The messages that are to be sent: one to a list if it could be made.
    pub(crate) fn meant(&self) -> impl Iterator<Item = usize> + use<> {
        let has_list = self.has_list;
        (0..self.plan.len()).filter(move |n| *n != LISTED || has_list)
    }

    /// Cuts the connection while the long message is in transit.
    fn cut_the_long_one(&mut self) {
        for _ in 0..200 {
            self.network.run_for(Duration::from_millis(5));
            if self.network.carried > 30_000 {
                break;
            }
        }
        self.network.cut();
    }

    /// An operator holds a message, the site is restarted, and the operator releases the message.
    fn hold(&mut self) {
        self.network.line_up = false;
        self.network.cut();
        self.submit(HELD);
        self.run(300);
        let held = self.operate(NAPLES, true);
        self.network.line_up = true;
        let before = self.has_held();
        self.run(1_000);
        self.network.restart(NAPLES);
        self.run(5_000);
        self.held_went = held && !before && self.has_held();
        self.operate(NAPLES, false);
        self.run(1_000);
    }

    /// Lets the disk be full for some minutes, during which the node writes small values.
    fn wait_while_full(&mut self) {
        if self.is_failing() {
            self.run_slowly(60 * self.minutes);
        }
    }

    fn is_failing(&self) -> bool {
        self.network.sites.iter().any(|site| site.store.healed().is_none())
    }

    /// Whether the message that is held was delivered.
    fn has_held(&self) -> bool {
        let length = self.plan[HELD].size;
        self.network.users[1].delivered.iter().any(|delivered| {
            matches!(delivered, testkit::Delivered::Message { content, .. } if content.len() == length)
        })
    }

    /// Has all that is queued at a site held or released; whether that was done, and it was anything. An
    /// operator repeats an order that nobody answers.
    fn operate(&mut self, site: usize, hold: bool) -> bool {
        for _ in 0..3 {
            let entries = self.queued(site);
            if entries.is_empty() {
                return false;
            }
            self.request += 1;
            let request = self.request;
            self.network.feed(
                site,
                Input::Operate {
                    request,
                    entries,
                    act: node::operator::Act::holding(hold),
                    by: node::operator::Operator::default(),
                },
            );
            self.run(200);
            let answers = &self.network.sites[site].operated;
            if answers.iter().any(|(to, result)| *to == request && result.is_ok()) {
                return true;
            }
            self.run(2_000);
        }
        false
    }

    pub(crate) fn queued(&self, site: usize) -> Vec<EntryId> {
        let mut entries = Vec::new();
        if let Some(store) = self.network.sites[site].store.opened() {
            let _ = for_each_entry(store, |entry| entries.push(entry.id));
        }
        entries
    }

    /// All submissions are answered, and nothing is queued.
    fn is_over(&self) -> bool {
        let answered = |user: usize| {
            let u = &self.network.users[user];
            let accepted = |tag: usize| {
                (u.answered.iter().zip(&u.answers)).any(|(to, answer)| *to == tag && answer.is_ok())
            };
            self.meant().filter(|n| self.plan[*n].from == user).all(|n| {
                let mut tags =
                    (0..self.submitted[user].len()).filter(|t| self.submitted[user][*t] == n);
                tags.any(accepted)
            })
        };
        (0..USERS.len()).all(answered)
            && [NAPLES, ACT].into_iter().all(|site| {
                let s = &self.network.sites[site];
                !s.is_down && s.store.healed().is_some() && self.queued(site).is_empty()
            })
    }

    /// Runs until everything is delivered, or no more is to be expected.
    fn finish(&mut self) {
        for pause in [1, 2, 2, 5, 10, 30, 120, 120, 400, 700, 2_800] {
            if self.is_over() || pause > 700 && !self.is_failing() {
                return;
            }
            self.run_slowly(pause);
            for site in [NAPLES, ACT] {
                // An operator releases what is held still.
                let (request, entries) = (0, self.queued(site));
                if !entries.is_empty() {
                    self.network.feed(
                        site,
                        Input::Operate {
                            request,
                            entries,
                            act: node::operator::Act::Release,
                            by: node::operator::Operator::default(),
                        },
                    );
                }
            }
        }
    }

    fn run_slowly(&mut self, seconds: u64) {
        for _ in 0..seconds.div_ceil(10) {
            self.attend();
            self.network.run_for(Duration::from_secs(seconds.min(10)));
        }
        self.attend();
    }

    /// Both sites lose what is not synced, and users bind again: what was deleted stays deleted.
    fn lose_power(&mut self) {
        for site in [NAPLES, ACT] {
            if !self.network.sites[site].is_down {
                self.network.crash_as(site, Death::Power, 0);
            }
        }
        self.run(5_000);
    }

    /// Each user repeats what was accepted, as if the answer had been lost.
    fn repeat(&mut self) {
        self.meant().for_each(|n| self.submit(n));
        self.run(4_000);
    }
}
