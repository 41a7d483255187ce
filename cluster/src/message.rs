//! The messages of a trial, drawn from its seed.

use crate::ledger::Sent;
use crate::mailbox::BOX;
use base::rng::Rng;

/// A site of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The site of several nodes.
    Hq,
    /// A foreign site.
    East,
    /// The other foreign site.
    West,
}

impl Place {
    /// All, the site of several nodes first.
    pub(crate) const ALL: [Place; 3] = [Place::Hq, Place::East, Place::West];

    /// Its name, in configurations and addresses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::Hq => "hq",
            Place::East => "east",
            Place::West => "west",
        }
    }
}

/// A user of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct User {
    pub(crate) place: Place,
    pub(crate) name: &'static str,
}

/// Users at each site who submit and receive.
pub(crate) const USERS: [&str; 2] = ["OPS", "LOG"];
/// The user of `hq` who submits a Flash at the moment of a fault, and the users who wait for it.
pub(crate) const PROBE: User = User { place: Place::Hq, name: "PROBE" };
/// The users at the foreign sites who wait for it.
pub(crate) const WATCH: &str = "WATCH";

impl User {
    pub(crate) fn new(place: Place, name: &'static str) -> User {
        User { place, name }
    }

    /// His O/R address, as [`testbed::Site`] makes those of its users.
    pub(crate) fn address(self) -> String {
        let prmd = self.place.name().to_uppercase();
        format!("/C=IT/ADMD=NET/PRMD={prmd}/S={}", self.name)
    }

    /// Who he is in the ledger.
    pub(crate) fn shown(self) -> String {
        format!("{}/{}", self.place.name(), self.name)
    }

    /// All who receive.
    pub(crate) fn receivers() -> Vec<User> {
        let mut all = User::submitters();
        all.extend([Place::East, Place::West].map(|place| User::new(place, WATCH)));
        all
    }

    /// All who submit, but for the probe.
    pub(crate) fn submitters() -> Vec<User> {
        let of = |place| USERS.map(|name| User::new(place, name));
        Place::ALL.into_iter().flat_map(of).collect()
    }
}

/// One of these, drawn; there is always one, so `otherwise` is never taken.
fn pick<T, const N: usize>(rng: &mut Rng, from: [T; N], otherwise: T) -> T {
    let index = usize::try_from(rng.below(N as u64)).unwrap_or(0);
    from.into_iter().nth(index).unwrap_or(otherwise)
}

/// A message before it is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Content identifier: ours alone, so the content is, too.
    pub(crate) id: String,
    pub(crate) from: User,
    pub(crate) to: Vec<User>,
    /// As `xuxa send --size` takes it.
    pub(crate) size: &'static str,
    pub(crate) precedence: &'static str,
}

impl Message {
    /// The message of this number, by this user; to the mailbox of the message store only if there is one.
    pub(crate) fn draw(seed: u64, number: u64, from: User, mailbox: bool) -> Message {
        let mut rng = Rng::new(seed.rotate_left(32) ^ number);
        // From abroad to the site of several nodes; from there abroad or, often enough, within.
        let place = match (from.place, rng.below(8)) {
            (Place::Hq, 0..3) => Place::Hq,
            (Place::Hq, _) => pick(&mut rng, [Place::East, Place::West], Place::East),
            _ => Place::Hq,
        };
        let users = USERS.map(|name| User::new(place, name));
        let to = match rng.below(8) {
            0 => users.to_vec(),
            1 | 2 if mailbox && place == Place::Hq => vec![BOX],
            3 if mailbox && place == Place::Hq => vec![User::new(place, USERS[0]), BOX],
            _ => vec![pick(&mut rng, users, User::new(place, USERS[0]))],
        };
        let size = match rng.below(40) {
            0 => "3MB",
            1 | 2 => "1200kB",
            3..7 => "300kB",
            7..14 => "40kB",
            14..24 => "9kB",
            _ => "1kB",
        };
        let precedences = ["override", "flash", "immediate", "priority", "routine", "deferred"];
        let precedence = pick(&mut rng, precedences, "routine");
        Message { id: format!("{seed:X}-{number}"), from, to, size, precedence }
    }

    /// The Flash that is queued at the moment of a fault.
    pub(crate) fn probe(seed: u64, number: u64) -> Message {
        let place = if number.is_multiple_of(2) { Place::East } else { Place::West };
        let to = vec![User::new(place, WATCH)];
        let id = format!("{seed:X}-P{number}");
        Message { id, from: PROBE, to, size: "1kB", precedence: "flash" }
    }

    /// What an operator holds.
    pub(crate) fn held(seed: u64, number: u64) -> Message {
        Message { precedence: "routine", ..Message::probe(seed, number) }
    }

    /// What the ledger keeps of it.
    pub(crate) fn sent(&self) -> Sent {
        let to = self.to.iter().map(|user| user.shown()).collect();
        let from = self.from.shown();
        Sent { id: self.id.clone(), from, to, precedence: self.precedence }
    }

    /// The arguments of `xuxa` that submit it: always the same content.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut all = ["--json", "send", "--dtg", "260504030201Z", "--retry-for", "0s"].to_vec();
        all.extend(["--answer-timeout", "30s", "--precedence", self.precedence]);
        all.extend(["--content-identifier", &self.id, "--size", self.size]);
        let mut all: Vec<String> = all.into_iter().map(str::to_owned).collect();
        all.extend(self.to.iter().flat_map(|user| ["--to".to_owned(), user.address()]));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_and_from_the_site_and_within_it() {
        let mut places = std::collections::BTreeSet::new();
        for number in 0..200 {
            for from in User::submitters() {
                let message = Message::draw(7, number, from, true);
                assert_eq!(message, Message::draw(7, number, from, true));
                assert!(!Message::draw(7, number, from, false).to.contains(&BOX));
                let to = message.to[0].place;
                assert!(from.place == Place::Hq || to == Place::Hq);
                assert!(message.id.len() <= 16, "a content identifier has at most 16 characters");
                places.insert((from.place, to));
            }
        }
        assert_eq!(places.len(), 5, "{places:?}");
    }
}
