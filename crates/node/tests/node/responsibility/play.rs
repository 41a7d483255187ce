//! Three nodes and their model, side by side.

use super::model::{ALTERNATE, Duty, Holder, LIST, MEMBERS, Model, Name, REDIRECTED};
use super::planted::{Fault, Planted};
use super::{Act, Op, RECIPIENTS};
use base::{EntryId, Precedence};
use engine::Record;
use node::Input;
use node::config::NodeConfig;
use node::lists::{List, ListChange, ReportPolicy, SubmitPermission};
use node::operator::{self, ActOutcome, Operator};
use p1::apdu::MtsApduHead;
use p1::flags::{PerMessageIndicators, ReportRequest};
use p1::names::ORName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use testkit::{ACT, Death, Delivered, NAPLES, NOTHING, Network, Setup, address};

const LINES: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];
/// Long enough for every retry.
const REST: Duration = Duration::from_secs(900);

fn alternates(config: &mut NodeConfig) {
    if config.mta.0 == "ACT" {
        let address = address(ALTERNATE.0, ALTERNATE.1).parse().expect("an address");
        config.alternate_recipient = Some(ORName { address, directory_name: None });
    }
}

fn alice() -> Operator {
    Operator { uid: 1_000, name: Some("alice".to_owned()) }
}

pub(super) struct Play {
    network: Network<Planted>,
    model: Model,
    users: BTreeMap<Name, usize>,
    /// Messages so far, and their recipients.
    sent: Vec<(usize, Vec<Name>)>,
    /// A process died: what it was handing over may be handed over again.
    died: bool,
}

impl Play {
    pub(super) fn new(seed: u64, fault: Fault) -> Play {
        let stores = (0..3).map(|_| Planted::new(fault)).collect();
        let setup = Setup { node: alternates, ..NOTHING };
        let mut network = Network::with_stores(stores, &LINES, seed, setup);
        let names = (0..3).flat_map(|site| [(site, "OPS"), (site, "LOG")]);
        let users: BTreeMap<Name, usize> =
            names.map(|(site, name)| ((site, name), network.user(site, name, true))).collect();
        for ((site, _), user) in &users {
            network.users[*user].indicators = PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED;
            network.bind(*user, *site);
        }
        network.run_for(Duration::from_secs(1));
        let list = List {
            address: address(LIST.0, LIST.1),
            members: MEMBERS.map(|(site, name)| address(site, name)).to_vec(),
            submit: SubmitPermission::Anyone,
            reports: ReportPolicy::Originator,
            owner: None,
        };
        let change = Box::new(ListChange::Add(list));
        let change = Input::ChangeList { request: 1, change, by: alice(), try_only: false };
        network.feed(NAPLES, change);
        network.run_for(Duration::from_secs(1));
        Play { network, model: Model::default(), users, sent: Vec::new(), died: false }
    }

    pub(super) fn step(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Submit { from, to, size, millis } => {
                self.submit(from, to, size);
                self.run(Duration::from_millis(millis), Duration::from_millis(3))
            }
            Op::Crash { site, power, durable, millis } => {
                let death = if power { Death::Power } else { Death::Process };
                self.died = true;
                self.network.crash_as(site, death, if durable { usize::MAX } else { 0 });
                self.account("after a crash")?;
                self.run(Duration::from_millis(millis), Duration::from_millis(3))
            }
            Op::Cut { line, millis } => {
                self.network.cut_between(LINES[line].0, LINES[line].1, None);
                self.run(Duration::from_millis(millis), Duration::from_millis(3))
            }
            Op::Line { line, up } => {
                self.rest()?;
                if up {
                    self.network.lines_down.remove(&LINES[line]);
                    self.model.down.remove(&LINES[line]);
                } else {
                    self.network.lines_down.insert(LINES[line]);
                    self.network.cut_between(LINES[line].0, LINES[line].1, None);
                    self.model.down.insert(LINES[line]);
                }
                Ok(())
            }
            Op::User { site, bound } => {
                self.rest()?;
                if bound {
                    self.model.away.remove(&(site, "LOG"));
                } else {
                    self.model.away.insert((site, "LOG"));
                    let end = self.network.users[self.users[&(site, "LOG")]].end;
                    self.network.close(end);
                }
                Ok(())
            }
            Op::Operate { site, entry, act } => {
                self.rest()?;
                self.operate(site, entry, act)
            }
        }
    }

    fn submit(&mut self, from: usize, to: u8, size: usize) {
        let chosen = RECIPIENTS.into_iter().enumerate().filter(|(n, _)| to & 1 << n != 0);
        let to: Vec<Name> = chosen.map(|(_, name)| name).collect();
        let message = self.sent.len();
        self.sent.push((from, to.clone()));
        self.model.submitted(message, from, &to);
        let addresses: Vec<String> = to.iter().map(|(site, name)| address(*site, name)).collect();
        let mut text = format!("{message} ").into_bytes();
        text.resize(size, b'.');
        let user = self.users[&(from, "OPS")];
        let id = message.to_string();
        let report = ReportRequest::NonDelivery;
        self.network.submit(user, &addresses, Precedence::Routine, &text, &id, report);
    }

    fn operate(&mut self, site: usize, entry: usize, act: Act) -> Result<(), String> {
        let entries: Vec<EntryId> = self.entries(site).into_keys().collect();
        let Some(id) = entries.get(entry % entries.len().max(1)).copied() else { return Ok(()) };
        let duties = self.entries(site).remove(&id).unwrap_or_default();
        let reroutes = |d: &Duty| site == NAPLES && d.recipient.0 == ACT && !d.is_report;
        let ordered = match act {
            Act::Delete => operator::Act::Delete,
            Act::Expire => operator::Act::Expire,
            Act::Reroute if !duties.iter().all(reroutes) => return Ok(()),
            Act::Reroute if self.rests_at_mailbox(site, &duties) => return Ok(()),
            Act::Reroute => operator::Act::Reroute { to: Some("relay".to_owned()) },
        };
        let entries = vec![id];
        self.network.feed(site, Input::Operate { request: 9, entries, act: ordered, by: alice() });
        self.network.run_for(Duration::from_millis(100));
        let answer = self.network.sites[site].operated.pop().expect("an answer").1;
        match answer.map_err(|e| e.to_string())?.pop() {
            Some((_, ActOutcome::Done | ActOutcome::Silent | ActOutcome::Doubted)) => {}
            Some((_, ActOutcome::Became(_))) => {}
            other => return Err(format!("the operator was answered {other:?} of {duties:?}")),
        }
        for duty in duties {
            match act {
                Act::Delete => self.model.deleted(duty),
                Act::Expire => self.model.given_up(duty, site),
                Act::Reroute => self.model.rerouted(duty, 2),
            }
        }
        Ok(())
    }

    /// Whether an entry waits for a user of its own site.
    fn rests_at_mailbox(&self, site: usize, duties: &[Duty]) -> bool {
        duties.iter().any(|duty| duty.recipient.0 == site)
    }

    /// Runs for so long, and looks at each step whether somebody has everything.
    fn run(&mut self, time: Duration, step: Duration) -> Result<(), String> {
        let end = self.network.now + time;
        while self.network.now < end {
            self.network.run_for(step.min(end.since(self.network.now)));
            self.account("in between")?;
        }
        Ok(())
    }

    /// Runs until nothing moves any more, and compares.
    pub(super) fn rest(&mut self) -> Result<(), String> {
        for second in 0..8 {
            for ((site, name), user) in &self.users {
                let there = !self.model.away.contains(&(*site, name));
                if there && !self.network.is_bound(*user) {
                    self.network.bind(*user, *site);
                }
            }
            let step = if second == 0 { Duration::from_millis(10) } else { Duration::from_secs(1) };
            self.run(Duration::from_secs(1), step)?;
        }
        self.run(REST, Duration::from_secs(300))?;
        self.model.settle();
        self.compare()
    }
}

// What is there.
impl Play {
    /// The duties of each entry that is durable at a site.
    fn entries(&self, site: usize) -> BTreeMap<EntryId, Vec<Duty>> {
        let entries = self.network.sites[site].store.store.entries.iter();
        entries.map(|((_, id), record)| (*id, duties(record))).collect()
    }

    /// Who has what by now, durably; each as often as somebody has it.
    fn held(&self) -> Vec<(Duty, Holder)> {
        let mut held = Vec::new();
        for site in 0..3 {
            let duties = self.entries(site).into_values().flatten();
            held.extend(duties.map(|duty| (duty, Holder::Mta(site))));
        }
        for (name, user) in &self.users {
            let user = &self.network.users[*user];
            let mut reported = user.reported.iter();
            for delivered in &user.delivered {
                let about = reported.next().cloned().flatten();
                let duty = match delivered {
                    Delivered::Message { content, .. } => {
                        Duty { message: number(content), recipient: *name, is_report: false }
                    }
                    Delivered::Report { subject, .. } => {
                        let at = user.answers.iter().position(|a| a.as_ref() == Ok(subject));
                        let tag = at.map(|at| user.answered[at]);
                        let message = tag.and_then(|tag| self.nth_of(name.0, tag));
                        Duty {
                            message: message.unwrap_or(usize::MAX),
                            recipient: named(&about.unwrap_or_default()),
                            is_report: true,
                        }
                    }
                };
                held.push((duty, Holder::User));
            }
        }
        held
    }

    /// The number of the message that a site's user submitted as its nth.
    fn nth_of(&self, site: usize, nth: usize) -> Option<usize> {
        let its = self.sent.iter().enumerate().filter(|(_, (from, _))| *from == site);
        its.map(|(number, _)| number).nth(nth)
    }

    /// At rest: each is with him of whom the model knows it, and with nobody else.
    fn compare(&self) -> Result<(), String> {
        let mut held = self.held();
        if self.died {
            // A user may have taken twice what his MTA had not noted as delivered.
            held.sort_unstable();
            held.dedup_by(|a, b| a == b && a.1 == Holder::User);
        }
        let mut expected: Vec<(Duty, Holder)> = self.model.holders.clone().into_iter().collect();
        expected.retain(|(_, holder)| *holder != Holder::Nobody);
        held.sort_unstable();
        expected.sort_unstable();
        if held == expected {
            return Ok(());
        }
        let (is, should): (BTreeSet<_>, BTreeSet<_>) =
            (held.iter().copied().collect(), expected.into_iter().collect());
        let more: Vec<_> = is.difference(&should).collect();
        let less: Vec<_> = should.difference(&is).collect();
        Err(format!("the nodes have {more:?}, the model {less:?}; in all {held:?}"))
    }

    /// At any time: of what an MTA has acknowledged, somebody has every recipient durably.
    fn account(&self, when: &str) -> Result<(), String> {
        let held: BTreeSet<Duty> = self.held().into_iter().map(|(duty, _)| duty).collect();
        for (message, (from, to)) in self.sent.iter().enumerate() {
            let user = &self.network.users[self.users[&(*from, "OPS")]];
            let answers = user.answered.iter().zip(&user.answers);
            let mut accepted = answers.filter(|(tag, answer)| {
                answer.is_ok() && self.nth_of(*from, **tag) == Some(message)
            });
            if accepted.next().is_none() {
                continue;
            }
            for recipient in to {
                if !self.has(&held, message, *recipient) {
                    return Err(format!(
                        "{when}: nobody has {message} for {recipient:?}: {held:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn has(&self, held: &BTreeSet<Duty>, message: usize, recipient: Name) -> bool {
        let of = |is_report| Duty { message, recipient, is_report };
        let gone = |duty| self.model.holders.get(&duty) == Some(&Holder::Nobody);
        let becomes: &[Name] = match recipient {
            LIST => &MEMBERS,
            REDIRECTED => &[ALTERNATE],
            _ => &[],
        };
        [of(false), of(true)].into_iter().any(|duty| held.contains(&duty) || gone(duty))
            || !becomes.is_empty() && becomes.iter().all(|name| self.has(held, message, *name))
    }

    /// Nothing is left in any queue.
    pub(super) fn is_over(&self) -> Result<(), String> {
        let left: Vec<_> = (0..3).map(|site| self.entries(site)).collect();
        let none = left.iter().all(BTreeMap::is_empty);
        if none { Ok(()) } else { Err(format!("left: {left:?}")) }
    }
}

/// The message and recipients that a record makes its MTA responsible for.
fn duties(record: &[u8]) -> Vec<Duty> {
    let record = Record::decode(record).expect("a record");
    match &record.head {
        MtsApduHead::Message(envelope) => {
            let message = envelope.content_identifier.as_deref().unwrap_or_default();
            let message = message.parse().expect("a number");
            let mine = envelope.recipients.iter().filter(|r| r.indicators.responsible());
            mine.map(|r| Duty {
                message,
                recipient: named(&r.recipient.to_string()),
                is_report: false,
            })
            .collect()
        }
        MtsApduHead::Report(report) => {
            let message = report.content.content_identifier.as_deref().unwrap_or_default();
            let message = message.parse().expect("a number");
            let about = report.content.recipients.iter();
            about
                .map(|r| Duty {
                    message,
                    recipient: named(&r.actual_recipient.to_string()),
                    is_report: true,
                })
                .collect()
        }
        MtsApduHead::Probe(_) => Vec::new(),
    }
}

/// The site and surname of an address.
fn named(of: &str) -> Name {
    let names = RECIPIENTS.into_iter().chain(MEMBERS).chain([ALTERNATE]);
    let mut found = names.filter(|(site, name)| {
        let wanted = address(*site, name);
        let parsed: p1::names::ORAddress = wanted.parse().expect("an address");
        of == wanted || of == parsed.to_string()
    });
    found.next().unwrap_or_else(|| panic!("nobody of the model: {of}"))
}

/// The number that a content begins with.
fn number(content: &[u8]) -> usize {
    let text = String::from_utf8_lossy(content);
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}
