//! A case: what a hostile end sends, what it must be answered, what the log must name; and what must
//! hold after every one of them.

use super::answer::Answers;
use super::octets;
use base::AssociationId;
use fuzz::seeds;
use fuzz::targets::checked::CheckedAssociation;
use fuzz::targets::node::{self, Site};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A step of the hostile end.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Sends.
    Send(Vec<u8>),
    /// Sends octet by octet, with so long between two.
    Trickle(Vec<u8>, Duration),
    /// Waits.
    Wait(Duration),
    /// Closes the connection.
    HangUp,
}

/// Who is hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hostile {
    /// A peer that opened an association.
    Peer,
    /// A user that opened one.
    User,
    /// A user of the message store that opened one.
    Reader,
    /// A peer that was called.
    Called,
}

pub(crate) struct Case {
    pub(crate) name: String,
    hostile: Hostile,
    steps: Vec<Step>,
    answer: &'static str,
    log: &'static str,
}

impl Case {
    fn new(name: impl Into<String>, hostile: Hostile) -> Case {
        Case { name: name.into(), hostile, steps: Vec::new(), answer: "", log: "" }
    }

    /// A peer that connects, and has sent nothing yet.
    pub(crate) fn peer(name: impl Into<String>) -> Case {
        Case::new(name, Hostile::Peer)
    }

    /// A peer with an open association.
    pub(crate) fn open(name: impl Into<String>) -> Case {
        Case::peer(name).sends_all(octets::p1_opening())
    }

    /// A user with an open association.
    pub(crate) fn user(name: impl Into<String>) -> Case {
        Case::new(name, Hostile::User).sends_all(super::user::opening())
    }

    /// Somebody that connects to the message store, and has sent nothing yet.
    pub(crate) fn store(name: impl Into<String>) -> Case {
        Case::new(name, Hostile::Reader)
    }

    /// A user of the message store with an open association, and an item in his mailbox.
    pub(crate) fn reader(name: impl Into<String>) -> Case {
        Case::store(name).sends_all(super::store::opening())
    }

    /// A peer that the node called to transfer a message.
    pub(crate) fn called(name: impl Into<String>) -> Case {
        Case::new(name, Hostile::Called)
    }

    pub(crate) fn sends(mut self, octets: Vec<u8>) -> Case {
        self.steps.push(Step::Send(octets));
        self
    }

    pub(crate) fn sends_all(mut self, all: Vec<Vec<u8>>) -> Case {
        self.steps.extend(all.into_iter().map(Step::Send));
        self
    }

    pub(crate) fn trickles(mut self, octets: Vec<u8>, pause: Duration) -> Case {
        self.steps.push(Step::Trickle(octets, pause));
        self
    }

    pub(crate) fn waits(mut self, seconds: u64) -> Case {
        self.steps.push(Step::Wait(Duration::from_secs(seconds)));
        self
    }

    pub(crate) fn hangs_up(mut self) -> Case {
        self.steps.push(Step::HangUp);
        self
    }

    /// All that is answered, in the words of [`Answers`], and `closed` where our side closes; and
    /// what the log names: the clause or the field.
    pub(crate) fn must(mut self, answer: &'static str, log: &'static str) -> Case {
        (self.answer, self.log) = (answer, log);
        self
    }

    /// What is done, by whom: what makes it another case than the others.
    pub(crate) fn deeds(&self) -> (Hostile, &[Step]) {
        (self.hostile, &self.steps)
    }

    /// What it sends, where that is all it does, and what it must be answered.
    pub(crate) fn exchange(&self) -> Option<(Vec<u8>, &'static str)> {
        let sent = self.steps.iter().map(|step| match step {
            Step::Send(octets) => Some(octets.clone()),
            _ => None,
        });
        Some((sent.collect::<Option<Vec<_>>>()?.concat(), self.answer))
    }

    /// Plays it against a site of its own; gives what is wrong.
    fn play(&self) -> Option<String> {
        let played = catch_unwind(AssertUnwindSafe(|| {
            let mut encounter = Encounter::new(self.hostile);
            encounter.play(&self.steps);
            // A peer with a reason does not always close: then our side does.
            encounter.play(&[Step::Wait(Duration::from_secs(40))]);
            let (answer, log) = (encounter.answered(), encounter.logged());
            encounter.must_go_on();
            (answer, log)
        }));
        match played {
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                Some(format!("{}: {}", self.name, text.unwrap_or_default()))
            }
            Ok((answer, log)) => {
                let named = log.contains(self.log) && (self.log.is_empty() == log.is_empty());
                let right = answer == self.answer && named;
                (!right).then(|| {
                    format!(
                        "{}:\n  answered {answer:?}\n  expected {:?}\n  logged   {log:?}\n  expected {:?}",
                        self.name, self.answer, self.log
                    )
                })
            }
        }
    }
}

/// Plays the cases; each that fails is named, with what was expected.
pub(crate) fn play(cases: &[Case]) {
    let wrong: Vec<String> = cases.iter().filter_map(Case::play).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// A site that serves a good peer while somebody is hostile.
pub(crate) struct Encounter {
    hostile: Hostile,
    pub(crate) site: Site,
    good: (AssociationId, CheckedAssociation),
    association: AssociationId,
    answers: Answers,
    /// Entries of the log before the hostile end did anything.
    before: usize,
}

impl Encounter {
    pub(crate) fn new(hostile: Hostile) -> Encounter {
        let (mut site, called) = match hostile {
            Hostile::Called => {
                let (site, called) = node::calling();
                (site, Some(called))
            }
            Hostile::Reader => (node::with_items(), None),
            Hostile::Peer | Hostile::User => (Site::new(), None),
        };
        let mut driver = node::one_way_peer();
        let good = site.accept(0);
        site.carry(good, &mut driver);
        assert!(driver.is_open(), "{:?}", driver.observed);
        let before = site.events().len();
        let listener = match hostile {
            Hostile::Peer | Hostile::Called => 0,
            Hostile::User => 1,
            Hostile::Reader => 2,
        };
        let association = called.unwrap_or_else(|| site.accept(listener));
        Encounter {
            hostile,
            site,
            good: (good, driver),
            association,
            answers: Answers::default(),
            before,
        }
    }

    /// Another connection of the same kind takes the hostile one's place.
    pub(crate) fn accept(&mut self, listener: u32) -> AssociationId {
        self.association = self.site.accept(listener);
        self.association
    }

    pub(crate) fn play(&mut self, steps: &[Step]) {
        self.receive();
        for step in steps {
            match step {
                Step::Send(octets) => self.send(octets),
                Step::Trickle(octets, pause) => {
                    for octet in octets {
                        self.site.bytes(self.association, &[*octet]);
                        self.site.wait(*pause);
                    }
                }
                Step::Wait(time) => self.site.wait(*time),
                Step::HangUp => {
                    self.receive();
                    self.site.hang_up(self.association);
                }
            }
            self.receive();
        }
    }

    pub(crate) fn send(&mut self, octets: &[u8]) {
        // TCP divides as it likes.
        for piece in octets.chunks(50_000) {
            self.site.bytes(self.association, piece);
        }
    }

    /// A TPKT at a time, as from a peer that waits for answers; the last may be cut.
    pub(crate) fn send_by_packet(&mut self, mut octets: &[u8]) {
        while let [3, _, high, low, ..] = octets {
            let length = usize::from(u16::from_be_bytes([*high, *low])).min(octets.len());
            let (packet, rest) = octets.split_at(length);
            self.send(packet);
            octets = rest;
        }
        self.send(octets);
    }

    pub(crate) fn hang_up(&mut self) {
        self.site.hang_up(self.association);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.site.is_closed(self.association)
    }

    fn receive(&mut self) {
        let octets = self.site.take(self.association);
        self.answers.take(&octets);
    }

    fn answered(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        for same in self.answers.words.chunk_by(|a, b| a == b) {
            let word = same.first().cloned().unwrap_or_default();
            words.push(if same.len() > 3 {
                format!("{word} x{}", same.len())
            } else {
                same.join(", ")
            });
        }
        if self.site.is_closed(self.association) {
            words.push("closed".to_owned());
        }
        // The opening of an association is one word.
        let words = words.join(", ");
        match words.strip_prefix("CC, AC AARE(0) RTOAC") {
            Some(rest) => format!("open{rest}"),
            None => words,
        }
    }

    /// What was logged of the hostile association; without its opening.
    pub(crate) fn logged(&self) -> String {
        let events = self.site.events().skip(self.before);
        let theirs = events.filter(|event| event.association == Some(self.association));
        let lines = theirs.filter(|event| event.kind != ::node::event::Kind::AssociationOpened);
        let lines: Vec<String> =
            lines.map(|event| format!("{}: {}", event.kind.name(), event.detail)).collect();
        lines.join("; ")
    }

    /// The good peer's association is still open and takes a message; a user submits one; one of the message store reads
    /// his mailbox, where the hostile end is such a user; then, when all is over, nothing is left of the hostile end.
    pub(crate) fn must_go_on(mut self) {
        let (association, mut good) = self.good;
        good.push(0, seeds::p1::message(45));
        self.site.carry(association, &mut good);
        assert_eq!(good.count("TransferConfirmed"), 1, "the good peer: {:?}", good.observed);
        let unit = seeds::p3::good_submission();
        let mut user = node::user(&[(p1::p3::operation::MESSAGE_SUBMISSION, unit)]);
        self.site.converse(1, &mut user);
        assert_eq!(user.count("Returned"), 1, "the good user: {:?}", user.observed);
        if self.hostile == Hostile::Reader {
            let all = seeds::p7::summarize_all();
            let mut reader = node::reader(&[(p7::operation::SUMMARIZE, all)]);
            self.site.converse(2, &mut reader);
            assert_eq!(reader.count("Returned"), 1, "the good reader: {:?}", reader.observed);
        }
        good.release();
        self.site.carry(association, &mut good);
        assert_eq!(good.count("Released"), 1, "the good peer: {:?}", good.observed);
        self.site.hang_up(association);
        self.site.hang_up(self.association);
        if self.hostile == Hostile::Called {
            // The message that the hostile peer was to get is not lost.
            self.site.deliver_all(Duration::from_secs(3_600));
        }
        self.site.wait(Duration::from_secs(3_600));
        assert_eq!(self.site.spools(), 0, "spools are left");
        let holds = self.site.holds();
        assert_eq!(
            (holds.arrivals, holds.pending, holds.keys, holds.associations),
            (0, 0, 0, 0),
            "something is left"
        );
    }

    /// Whether the message with this local identifier came to the mailbox; how often.
    pub(crate) fn taken(&self, identifier: &str) -> usize {
        let records = self.site.records();
        records.iter().filter(|record| record.message.contains(identifier)).count()
    }
}
