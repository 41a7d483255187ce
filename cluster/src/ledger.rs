//! What was acknowledged, what arrived, and what that means: lost, doubled, altered, overtaken. Pure:
//! it knows no process and no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long around a fault a delivery may be repeated: the confirmation of the user was sent, and the
/// fault kept it from being committed. Longer than any answer may take.
const AROUND: Duration = Duration::from_secs(20);

/// A user as `site/NAME`.
pub(crate) type Address = String;

/// What was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Content identifier, of this message alone.
    pub id: String,
    /// The originator.
    pub from: Address,
    /// The recipients.
    pub to: Vec<Address>,
    /// The precedence.
    pub precedence: &'static str,
}

/// The answer to a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The message-submission identifier.
    pub mts_identifier: String,
    /// SHA-256 of the content that was submitted, in hexadecimal.
    pub sha256: String,
    /// When, from the start of the trial.
    pub at: Duration,
}

/// One copy that a user received and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Its MTS identifier.
    pub mts_identifier: String,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
    /// When, from the start of the trial.
    pub at: Duration,
}

/// A message that an operator held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Its recipient.
    pub user: String,
    /// Its MTS identifier.
    pub mts_identifier: String,
    /// When the order to hold it was acknowledged, from the start of the trial.
    pub from: Duration,
    /// When its release was ordered.
    pub until: Duration,
}

/// From when to when something was wrong, from the start of the trial.
pub type Trouble = (Duration, Duration);

/// All messages.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    sent: BTreeMap<String, (Sent, Option<Acknowledged>)>,
    copies: BTreeMap<Address, Vec<Copy>>,
    /// Deliveries of what the user's program knew already, by user: identifier and time.
    again: BTreeMap<Address, Vec<(String, Duration)>>,
    /// Recipients that a report names as not delivered, by MTS identifier.
    reported: BTreeMap<String, usize>,
    holds: Vec<Hold>,
}

/// What the ledger shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Messages that were acknowledged.
    pub acknowledged: usize,
    /// Copies that had to arrive: one for each recipient of those.
    pub expected: usize,
    /// Of them, those that arrived whole.
    pub delivered: usize,
    /// Of them, those that a report of non-delivery names.
    pub reported: usize,
    /// Messages without an answer.
    pub unanswered: Vec<String>,
    /// Acknowledged, and neither delivered nor reported.
    pub lost: Vec<String>,
    /// Delivered twice, without a fault that explains it.
    pub doubled: Vec<String>,
    /// Delivered with other octets.
    pub altered: Vec<String>,
    /// Delivered, and submitted by nobody.
    pub unknown: Vec<String>,
    /// Repeated deliveries that a fault explains, and that the user's program recognised.
    pub again: usize,
    /// Messages that an operator held.
    pub held: usize,
    /// Of them, those that arrived while they were held.
    pub escaped: Vec<String>,
    /// Pairs of messages that follow each other, of one originator, recipient and precedence.
    pub pairs: usize,
    /// Of them, those that arrived in the other order.
    pub overtaken: usize,
}

impl Verdict {
    /// Whether every promise was kept.
    pub fn is_kept(&self) -> bool {
        let broken = [&self.unanswered, &self.lost, &self.doubled, &self.altered, &self.unknown];
        let broken = broken.into_iter().chain([&self.escaped]);
        broken.into_iter().all(|list| list.is_empty())
    }
}

impl Ledger {
    /// A message is about to be submitted.
    pub fn sends(&mut self, sent: Sent) {
        self.sent.insert(sent.id.clone(), (sent, None));
    }

    /// Its submission was answered.
    pub fn acknowledges(&mut self, id: &str, answer: Acknowledged) {
        if let Some((_, slot)) = self.sent.get_mut(id) {
            *slot = Some(answer);
        }
    }

    /// A user received and kept a copy.
    pub fn delivers(&mut self, to: &str, copy: Copy) {
        self.copies.entry(to.to_owned()).or_default().push(copy);
    }

    /// A user does not have this copy any more, and did not delete it.
    pub fn withdraws(&mut self, to: &str, mts_identifier: &str) {
        if let Some(copies) = self.copies.get_mut(to) {
            copies.retain(|copy| copy.mts_identifier != mts_identifier);
        }
    }

    /// A user was given again what his program had kept already.
    pub fn repeats(&mut self, to: &str, mts_identifier: &str, at: Duration) {
        let of_user = self.again.entry(to.to_owned()).or_default();
        of_user.push((mts_identifier.to_owned(), at));
    }

    /// A report names a recipient of this message as not delivered.
    pub fn reports(&mut self, mts_identifier: &str) {
        *self.reported.entry(mts_identifier.to_owned()).or_default() += 1;
    }

    /// An operator held a message.
    pub fn holds(&mut self, hold: Hold) {
        self.holds.push(hold);
    }

    /// Messages so far, and copies received.
    pub fn counts(&self) -> (usize, usize) {
        (self.sent.len(), self.copies.values().map(Vec::len).sum())
    }

    /// The copy of this message that a user has.
    pub fn arrival(&self, to: &str, mts_identifier: &str) -> Option<Duration> {
        let copies = self.copies.get(to)?;
        let copy = copies.iter().find(|copy| copy.mts_identifier == mts_identifier);
        copy.map(|copy| copy.at)
    }

    /// Whether something acknowledged has neither arrived nor been reported.
    pub fn is_waiting(&self) -> bool {
        let acknowledged =
            self.sent.values().filter_map(|(sent, answer)| Some((sent, answer.as_ref()?)));
        acknowledged.into_iter().any(|(sent, answer)| {
            let reported = self.reported.get(&answer.mts_identifier).copied().unwrap_or(0);
            let arrived = |to: &&Address| self.arrival(to, &answer.mts_identifier).is_some();
            sent.to.iter().filter(arrived).count() + reported < sent.to.len()
        })
    }

    /// What it shows, where things were wrong at these times.
    pub fn verdict(&self, troubles: &[Trouble]) -> Verdict {
        let mut verdict = Verdict::default();
        for (id, (sent, answer)) in &self.sent {
            let Some(answer) = answer else {
                verdict.unanswered.push(id.clone());
                continue;
            };
            self.account(sent, answer, &mut verdict);
        }
        self.find_strangers(&mut verdict);
        self.find_repeated(troubles, &mut verdict);
        self.find_overtaken(&mut verdict);
        self.find_escaped(&mut verdict);
        verdict
    }

    /// What arrived before its release was ordered.
    fn find_escaped(&self, verdict: &mut Verdict) {
        verdict.held = self.holds.len();
        for Hold { user, mts_identifier, from, until } in &self.holds {
            if let Some(arrival) = self.arrival(user, mts_identifier).filter(|at| at < until) {
                let [arrival, from, until] = [arrival, *from, *until].map(seconds);
                verdict.escaped.push(format!(
                    "{mts_identifier} to {user}: delivered at {arrival}, held from {from} to {until}"
                ));
            }
        }
    }

    /// What arrived of one message.
    fn account(&self, sent: &Sent, answer: &Acknowledged, verdict: &mut Verdict) {
        let Sent { id, to, precedence, .. } = sent;
        verdict.acknowledged += 1;
        verdict.expected += to.len();
        let mut missing = Vec::new();
        for user in to {
            // By both: a message that was accepted twice has two identifiers and one content.
            let is_of_it = |copy: &&Copy| {
                copy.mts_identifier == answer.mts_identifier || copy.sha256 == answer.sha256
            };
            let copies = self.copies.get(user).into_iter().flatten();
            let copies: Vec<&Copy> = copies.filter(is_of_it).collect();
            let line = |text: &str| format!("{id} ({precedence}) to {user}: {text}");
            match copies.as_slice() {
                [] => missing.push(line(&format!(
                    "acknowledged at {} as {}, not delivered",
                    seconds(answer.at),
                    answer.mts_identifier
                ))),
                [_] => {}
                more => verdict.doubled.push(line(&format!("kept {} times", more.len()))),
            }
            if let Some(other) = copies.iter().find(|copy| copy.sha256 != answer.sha256) {
                let what = format!("submitted as {}, delivered as {}", answer.sha256, other.sha256);
                verdict.altered.push(line(&what));
            } else if !copies.is_empty() {
                verdict.delivered += 1;
            }
        }
        // A report does not name whom here: it accounts for as many as it has lines.
        let reported = self.reported.get(&answer.mts_identifier).copied().unwrap_or(0);
        verdict.reported += reported.min(missing.len());
        verdict.lost.extend(missing.into_iter().skip(reported));
    }

    /// Copies that belong to nothing that was submitted to their user.
    fn find_strangers(&self, verdict: &mut Verdict) {
        let mut known: BTreeSet<(&str, &str)> = BTreeSet::new();
        for (sent, answer) in self.sent.values() {
            for (user, answer) in sent.to.iter().zip(answer.iter().cycle()) {
                known.extend([(user.as_str(), answer.mts_identifier.as_str())]);
                known.extend([(user.as_str(), answer.sha256.as_str())]);
            }
        }
        for (user, copies) in &self.copies {
            for Copy { mts_identifier, sha256, .. } in copies {
                let by =
                    [mts_identifier, sha256].map(|name| known.contains(&(user, name.as_str())));
                if by == [false, false] {
                    let what = format!("{mts_identifier} at {user}: submitted to him by nobody");
                    verdict.unknown.push(what);
                }
            }
        }
    }

    /// A delivery may be repeated where a fault came between it and the commit of its confirmation.
    fn find_repeated(&self, troubles: &[Trouble], verdict: &mut Verdict) {
        for (user, repeated) in &self.again {
            for (identifier, at) in repeated {
                let first = self.arrival(user, identifier).unwrap_or(*at);
                let explains = |(from, to): &Trouble| {
                    first + AROUND >= *from && first <= *to + AROUND && *from <= *at
                };
                if troubles.iter().any(explains) {
                    verdict.again += 1;
                } else {
                    let (first, again) = (seconds(first), seconds(*at));
                    verdict.doubled.push(format!(
                        "{identifier} to {user}: delivered at {first} and again at {again}, without a fault"
                    ));
                }
            }
        }
    }

    /// Who submits one after the other expects to be read in this order.
    fn find_overtaken(&self, verdict: &mut Verdict) {
        type Sequence<'a> = (&'a str, &'a str, &'a str);
        let mut sequences: BTreeMap<Sequence<'_>, Vec<(Duration, Duration)>> = BTreeMap::new();
        for (sent, answer) in self.sent.values() {
            let Some(answer) = answer else { continue };
            for user in &sent.to {
                if let Some(arrival) = self.arrival(user, &answer.mts_identifier) {
                    let sequence = (sent.from.as_str(), user.as_str(), sent.precedence);
                    sequences.entry(sequence).or_default().push((answer.at, arrival));
                }
            }
        }
        for sequence in sequences.values_mut() {
            sequence.sort();
            let pairs = sequence.iter().zip(sequence.iter().skip(1));
            verdict.pairs += sequence.len() - 1;
            verdict.overtaken += pairs.filter(|((_, one), (_, next))| next < one).count();
        }
    }
}

/// A time of the trial, as people read it.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    fn copy(number: u64, sha256: &str) -> Copy {
        Copy {
            mts_identifier: format!("mts-{number}"),
            sha256: sha256.to_owned(),
            at: at(number + 1),
        }
    }

    /// Three messages from a to b, all acknowledged.
    fn three() -> Ledger {
        let mut ledger = Ledger::default();
        for number in 0..3 {
            let id = format!("id-{number}");
            let (from, to) = ("east/a".to_owned(), vec!["west/b".to_owned()]);
            ledger.sends(Sent { id: id.clone(), from, to, precedence: "flash" });
            let sha256 = format!("sha-{number}");
            let mts_identifier = format!("mts-{number}");
            ledger.acknowledges(&id, Acknowledged { mts_identifier, sha256, at: at(number) });
        }
        ledger
    }

    fn delivered(numbers: &[u64]) -> Ledger {
        let mut ledger = three();
        for number in numbers {
            ledger.delivers("west/b", copy(*number, &format!("sha-{number}")));
        }
        ledger
    }

    #[test]
    fn all_kept() {
        let ledger = delivered(&[0, 1, 2]);
        let verdict = ledger.verdict(&[]);
        assert!(verdict.is_kept() && !ledger.is_waiting(), "{verdict:?}");
        assert_eq!((verdict.expected, verdict.delivered, verdict.pairs), (3, 3, 2));
        assert_eq!(verdict.overtaken, 0);
    }

    #[test]
    fn a_lost_message_is_found_unless_it_is_reported() {
        let mut ledger = delivered(&[0, 2]);
        assert!(ledger.is_waiting());
        let verdict = ledger.verdict(&[]);
        assert_eq!((verdict.lost.len(), verdict.delivered, verdict.is_kept()), (1, 2, false));
        assert!(verdict.lost[0].starts_with("id-1 (flash) to west/b"), "{:?}", verdict.lost);
        ledger.reports("mts-1");
        assert!(!ledger.is_waiting());
        let verdict = ledger.verdict(&[]);
        assert_eq!((verdict.reported, verdict.is_kept()), (1, true));
    }

    #[test]
    fn a_doubled_message_is_found_under_the_same_and_under_another_identifier() {
        let mut ledger = delivered(&[0, 1, 2]);
        ledger.delivers("west/b", copy(1, "sha-1"));
        assert_eq!(ledger.verdict(&[]).doubled, ["id-1 (flash) to west/b: kept 2 times"]);
        let mut ledger = delivered(&[0, 1, 2]);
        ledger.delivers("west/b", copy(7, "sha-1"));
        assert_eq!(ledger.verdict(&[]).doubled, ["id-1 (flash) to west/b: kept 2 times"]);
    }

    #[test]
    fn a_repeated_delivery_is_a_doubled_one_unless_a_fault_explains_it() {
        let mut ledger = delivered(&[0, 1, 2]);
        ledger.repeats("west/b", "mts-1", at(60));
        assert_eq!(ledger.verdict(&[]).doubled.len(), 1);
        assert_eq!(ledger.verdict(&[(at(40), at(41))]).doubled.len(), 1, "long after the first");
        assert_eq!(ledger.verdict(&[(at(61), at(62))]).doubled.len(), 1, "after both");
        let verdict = ledger.verdict(&[(at(3), at(4))]);
        assert_eq!((verdict.again, verdict.is_kept()), (1, true));
    }

    #[test]
    fn what_arrives_while_it_is_held_is_found() {
        let mut ledger = delivered(&[0, 1, 2]);
        let hold = |until| Hold {
            user: "west/b".to_owned(),
            mts_identifier: "mts-1".to_owned(),
            from: at(1),
            until: at(until),
        };
        ledger.holds(hold(2));
        let verdict = ledger.verdict(&[]);
        assert_eq!((verdict.held, verdict.is_kept()), (1, true), "it arrived at 2 s");
        ledger.holds(hold(3));
        let verdict = ledger.verdict(&[]);
        assert_eq!((verdict.escaped.len(), verdict.is_kept()), (1, false), "{verdict:?}");
    }

    #[test]
    fn an_altered_message_and_a_strange_one_are_found() {
        let mut ledger = delivered(&[0, 2]);
        ledger.delivers("west/b", copy(1, "other"));
        let verdict = ledger.verdict(&[]);
        assert_eq!((verdict.altered.len(), verdict.lost.len(), verdict.doubled.len()), (1, 0, 0));
        let mut ledger = delivered(&[0, 1, 2]);
        ledger.delivers("west/b", copy(9, "sha-9"));
        assert_eq!(ledger.verdict(&[]).unknown.len(), 1);
    }

    #[test]
    fn an_unanswered_message_and_an_overtaken_one_are_found() {
        let mut ledger = three();
        for number in [1, 0, 2] {
            let mut copy = copy(number, &format!("sha-{number}"));
            copy.at = at([5, 4, 6][usize::try_from(number).unwrap()]);
            ledger.delivers("west/b", copy);
        }
        let verdict = ledger.verdict(&[]);
        assert_eq!((verdict.pairs, verdict.overtaken, verdict.is_kept()), (2, 1, true));
        let to = vec!["west/b".to_owned()];
        ledger.sends(Sent { id: "x".to_owned(), from: "a".to_owned(), to, precedence: "flash" });
        assert_eq!(ledger.verdict(&[]).unanswered, ["x"]);
    }
}
