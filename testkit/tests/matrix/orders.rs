//! What an operator orders of messages while the line is down: delete, expire, reroute, retry. The list that
//! he makes. And the message that its originator cancels.

use crate::plan::{CANCELLED, DELETED, EXPIRED, LISTED, REDIRECTED, REROUTED};
use crate::scenario::Scenario;
use base::EntryId;
use engine::Record;
use node::Input;
use node::lists::{List, ListChange, ListsError, ReportPolicy, SubmitPermission};
use node::operator::{Act, ActOutcome, Operator};
use p1::apdu::MtsApduHead;
use store::queue::for_each_entry;
use testkit::{NAPLES, address};

/// The second name of the peer.
pub(crate) const SPARE: &str = "spare";

/// Whether an order was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The answer was so.
    Done,
    /// The operator was not answered, or too late: what is in the store decides.
    Open,
}

impl Scenario {
    /// Three messages wait for a line, and an operator orders something of each. Then all are tried again.
    pub(crate) fn order(&mut self) {
        if self.plan.len() <= REROUTED {
            return;
        }
        self.network.line_up = false;
        self.network.cut();
        [DELETED, EXPIRED, REROUTED].into_iter().for_each(|n| self.submit(n));
        self.run(300);
        self.have(DELETED, &Act::Delete);
        self.have(EXPIRED, &Act::Expire);
        self.have(REROUTED, &Act::Reroute { to: Some(SPARE.to_owned()) });
        self.network.line_up = true;
        let all = self.queued(NAPLES);
        self.ask(all, Act::Retry);
        self.run(1_000);
    }

    /// A message waits for its time. One goes to a list, their site is restarted at once, and one goes to an
    /// alternate. Then the one that waits is cancelled.
    pub(crate) fn expand(&mut self) {
        if self.plan.len() <= CANCELLED {
            return;
        }
        self.submit(CANCELLED);
        self.run(300);
        self.has_list = self.make_list();
        if self.has_list {
            self.submit(LISTED);
            self.run(20);
            self.network.restart(NAPLES);
        }
        self.submit(REDIRECTED);
        self.run(1_000);
        self.cancel();
    }

    /// The originator cancels what waits, and repeats it after an error. Where nobody answers, his agent
    /// repeats it when it has bound again.
    fn cancel(&mut self) {
        self.ordered.insert(CANCELLED, Certainty::Open);
        let user = self.plan[CANCELLED].from;
        let mut asked = 0;
        for _ in 0..5 {
            if self.network.users[user].cancelled.len() == asked
                && let Some(identifier) = self.identifier(CANCELLED)
            {
                self.network.cancel(user, &identifier);
                asked += 1;
            }
            self.run(1_000);
            if self.network.users[user].cancelled.iter().any(|(_, answer)| answer.is_ok()) {
                self.ordered.insert(CANCELLED, Certainty::Done);
                return;
            }
        }
    }

    /// The MTS identifier with which a message was accepted.
    fn identifier(&self, n: usize) -> Option<String> {
        let user = self.plan[n].from;
        let u = &self.network.users[user];
        let mut answers = u.answered.iter().zip(&u.answers);
        let (_, answer) =
            answers.find(|(tag, answer)| self.submitted[user][**tag] == n && answer.is_ok())?;
        answer.clone().ok()
    }

    /// An operator repeats what nobody answers. One who finds it made has made it.
    fn make_list(&mut self) -> bool {
        let list = List {
            address: address(NAPLES, "STAFF"),
            members: self.plan[LISTED].to.iter().map(|(site, name)| address(*site, name)).collect(),
            submit: SubmitPermission::Anyone,
            reports: ReportPolicy::Originator,
            owner: None,
        };
        for _ in 0..5 {
            self.request += 1;
            let (request, change) = (self.request, Box::new(ListChange::Add(list.clone())));
            let by = Operator::default();
            let input = Input::ChangeList { request, change, by, try_only: false };
            self.network.feed(NAPLES, input);
            self.run(200);
            let mut answers = self.network.sites[NAPLES].lists_changed.iter();
            match answers.find(|(to, _)| *to == request) {
                Some((_, Ok(()) | Err(ListsError::Exists(_)))) => return true,
                _ => self.run(2_000),
            }
        }
        false
    }

    /// Has something done with a message. An operator repeats an order that nobody answers.
    fn have(&mut self, n: usize, act: &Act) {
        self.ordered.insert(n, Certainty::Open);
        for _ in 0..3 {
            let entries = self.entries_of(n);
            if entries.is_empty() {
                return;
            }
            if let Some(outcomes) = self.ask(entries, act.clone()) {
                let done = |outcome| matches!(outcome, &ActOutcome::Done | &ActOutcome::Became(_));
                if outcomes.iter().all(|(_, outcome)| done(outcome)) {
                    self.ordered.insert(n, Certainty::Done);
                }
                return;
            }
            self.run(2_000);
        }
    }

    /// Orders something of entries in Naples.
    fn ask(&mut self, entries: Vec<EntryId>, act: Act) -> Option<Vec<(EntryId, ActOutcome)>> {
        self.request += 1;
        let (request, by) = (self.request, Operator::default());
        self.network.feed(NAPLES, Input::Operate { request, entries, act, by });
        self.run(200);
        let mut answers = self.network.sites[NAPLES].operated.iter();
        let (_, result) = answers.find(|(to, _)| *to == request)?;
        result.clone().ok()
    }

    /// The copies of a message in the store at Naples.
    fn entries_of(&self, n: usize) -> Vec<EntryId> {
        let mut entries = Vec::new();
        let Some(store) = self.network.sites[NAPLES].store.opened() else { return entries };
        let name = format!("MESSAGE {n}");
        let _ = for_each_entry(store, |entry| {
            let head = Record::decode(&entry.record).map(|record| record.head);
            if let Ok(MtsApduHead::Message(envelope)) = head
                && envelope.content_identifier.as_deref() == Some(name.as_str())
            {
                entries.push(entry.id);
            }
        });
        entries
    }
}
