//! How long a mailbox keeps its items, by status and age.

use crate::item::Status;
use base::Utc;
use std::time::Duration;

/// Most rules of a mailbox.
pub const MAX_RULES: usize = 16;

/// Items of this status are deleted at this age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rule {
    /// Their status; any if `None`.
    pub status: Option<Status>,
    /// Their age, from their creation-time.
    pub age: Duration,
}

/// The rules of a mailbox. An item is deleted as soon as one of them gives it up; without rules nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// These rules; `None` if they are more than [`MAX_RULES`].
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Option<Rules> {
        (rules.len() <= MAX_RULES).then_some(Rules(rules))
    }

    /// Whether every item is given up, whatever its age: a clock that went back does not matter.
    #[must_use]
    pub fn give_up_all(&self) -> bool {
        self.0.iter().any(|rule| rule.status.is_none() && rule.age.is_zero())
    }

    /// Whether an item of this status and creation-time is given up at this time. A clock that went back gives
    /// nothing up.
    #[must_use]
    pub fn is_due(&self, now: Utc, status: Status, created: Utc) -> bool {
        if self.give_up_all() {
            return true;
        }
        let fits = |rule: &&Rule| rule.status.is_none_or(|own| own == status);
        let ages = self.0.iter().filter(fits).map(|rule| rule.age);
        ages.min().is_some_and(|age| created <= now && before(now, age) >= created)
    }

    /// The latest creation-time that any rule gives up at this time: what is younger need not be read. `None` without
    /// rules.
    #[must_use]
    pub fn newest(&self, now: Utc) -> Option<Utc> {
        if self.give_up_all() {
            return Some(Utc(u64::MAX));
        }
        self.0.iter().map(|rule| before(now, rule.age)).max()
    }
}

/// The time that was `age` before `now`.
fn before(now: Utc, age: Duration) -> Utc {
    Utc(now.0.saturating_sub(u64::try_from(age.as_micros()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    fn rule(status: Option<Status>, seconds: u64) -> Rule {
        Rule { status, age: Duration::from_secs(seconds) }
    }

    #[test]
    fn an_item_is_due_by_its_status_and_age() {
        let rules = vec![rule(Some(Status::Processed), 10), rule(None, 100)];
        let rules = Rules::new(rules).unwrap();
        assert_eq!(rules.newest(at(50)), Some(at(40)));
        assert!(!rules.is_due(at(9), Status::Processed, at(0)));
        assert!(rules.is_due(at(10), Status::Processed, at(0)));
        assert!(!rules.is_due(at(99), Status::New, at(0)));
        assert!(rules.is_due(at(100), Status::New, at(0)));
        assert!(!rules.is_due(at(5), Status::New, at(200)));
        assert!(!Rules::default().is_due(at(1000), Status::New, at(0)));
        assert_eq!(Rules::new(vec![rule(None, 1); MAX_RULES + 1]), None);
    }
}
