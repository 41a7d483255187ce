//! What of the database an operator has to know at once: each change is one line, however long it lasts.

use postgres_store::{Durability, Settings, Survey};
use std::collections::BTreeSet;
use std::time::Duration;

/// How much an operator should care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It is as it is to be again.
    Info,
    /// Something is missing.
    Warning,
    /// Nothing is acknowledged.
    Error,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How much an operator should care.
    pub level: Level,
    /// The line.
    pub text: String,
}

/// What a look found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The settings that decide what is kept.
    pub settings: Settings,
    /// Standbys that follow and that a commit may wait for.
    pub following: BTreeSet<String>,
    /// Commits wait for so many of them.
    pub needed: usize,
    /// Commits that wait for standbys.
    pub waiting: u32,
    /// For how long the first of them waits.
    pub waits: Duration,
}

impl Observed {
    /// What matters of a look.
    #[must_use]
    pub fn new(survey: &Survey) -> Observed {
        let (needed, names) = survey.settings.waited_for();
        let is_waited =
            |name: &str| names.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(name));
        let standbys = survey.settings.standbys.iter();
        let following = standbys.filter(|s| s.streams != Some(false) && is_waited(&s.name));
        Observed {
            settings: survey.settings.clone(),
            following: following.map(|standby| standby.name.clone()).collect(),
            needed,
            waiting: survey.waiting,
            waits: survey.waits,
        }
    }

    /// What the settings come to.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.settings.durability()
    }
}

/// Commits that wait for longer are reported.
const WAITING: Duration = Duration::from_secs(2);

/// What was found so far.
#[derive(Clone, Debug, Default)]
pub struct Alarms {
    last: Option<Observed>,
    /// Since when no look was answered.
    away: Option<Duration>,
    stands_still: bool,
    waits: bool,
}

impl Alarms {
    /// Since when the database does not answer.
    #[must_use]
    pub fn away_since(&self) -> Option<Duration> {
        self.away
    }

    /// A look at this time was answered, or was not for a reason. Gives what is new.
    pub fn observe(&mut self, now: Duration, found: Result<Observed, String>) -> Vec<Line> {
        let mut lines = Vec::new();
        let found = match found {
            Ok(found) => found,
            Err(why) => {
                if self.away.is_none() {
                    self.away = Some(now);
                    let text = format!("the database does not answer: {why}");
                    lines.push(Line { level: Level::Error, text });
                }
                return lines;
            }
        };
        let mut add = |level, text| lines.push(Line { level, text });
        if let Some(since) = self.away.take() {
            let for_long = now.saturating_sub(since).as_secs_f64();
            add(Level::Info, format!("the database answers again, after {for_long:.1} s"));
        }
        if let Some(last) = &self.last {
            changed_settings(last, &found, &mut add);
            changed_standbys(last, &found, &mut add);
        }
        self.commits(&found, &mut add);
        self.last = Some(found);
        lines
    }

    /// Whether commits go on.
    fn commits(&mut self, found: &Observed, add: &mut impl FnMut(Level, String)) {
        let stands_still = found.following.len() < found.needed;
        if stands_still && !self.stands_still {
            add(
                Level::Error,
                format!(
                    "commits wait for {} standbys and {} follow: nothing is acknowledged until they do",
                    found.needed,
                    found.following.len()
                ),
            );
        }
        if !stands_still && self.stands_still {
            add(Level::Info, "standbys enough follow again: commits go on".to_owned());
        }
        self.stands_still = stands_still;
        // While the standbys are away that was the reason, and was reported.
        let waits = !stands_still && found.waiting > 0 && found.waits >= WAITING;
        if waits && !self.waits {
            let seconds = found.waits.as_secs_f64();
            add(
                Level::Error,
                format!(
                    "{} commits wait for the standbys, the first for {seconds:.1} s: see whether they hang",
                    found.waiting
                ),
            );
        }
        if !waits && self.waits && !stands_still {
            add(Level::Info, "no commit waits long for the standbys any more".to_owned());
        }
        self.waits = waits;
    }
}

fn changed_settings(last: &Observed, found: &Observed, add: &mut impl FnMut(Level, String)) {
    let (old, new) = (&last.settings, &found.settings);
    let on = |is_on: bool| if is_on { "on" } else { "off" };
    let all = [
        (
            "synchronous_standby_names",
            &*old.synchronous_standby_names,
            &*new.synchronous_standby_names,
        ),
        ("synchronous_commit", &*old.synchronous_commit, &*new.synchronous_commit),
        ("fsync", on(old.fsync), on(new.fsync)),
        ("full_page_writes", on(old.full_page_writes), on(new.full_page_writes)),
    ];
    let mut is_any = false;
    for (name, old, new) in all.into_iter().filter(|(_, old, new)| old != new) {
        is_any = true;
        add(Level::Warning, format!("the database has another {name}: {new:?}, it was {old:?}"));
    }
    if is_any {
        for sentence in found.durability().sentences() {
            add(Level::Warning, format!("the database: {sentence}"));
        }
    }
}

fn changed_standbys(last: &Observed, found: &Observed, add: &mut impl FnMut(Level, String)) {
    let left = found.following.len();
    for name in last.following.difference(&found.following) {
        let needed = found.needed;
        add(
            Level::Warning,
            format!(
                "the standby {name} follows no longer: {left} follow, commits wait for {needed}"
            ),
        );
    }
    for name in found.following.difference(&last.following) {
        add(Level::Info, format!("the standby {name} follows: {left} do"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postgres_store::Standby;

    fn found(names: &str, standbys: &[&str], waits: u64) -> Result<Observed, String> {
        let standby = |name: &&str| Standby { name: (*name).to_owned(), streams: Some(true) };
        let settings = Settings {
            synchronous_commit: "on".to_owned(),
            synchronous_standby_names: names.to_owned(),
            fsync: true,
            full_page_writes: true,
            standbys: standbys.iter().map(standby).collect(),
        };
        let waits = Duration::from_secs(waits);
        let survey =
            Survey { settings, waiting: u32::from(!waits.is_zero()), waits, ..Survey::default() };
        Ok(Observed::new(&survey))
    }

    fn texts(alarms: &mut Alarms, at: u64, found: Result<Observed, String>) -> Vec<String> {
        let lines = alarms.observe(Duration::from_secs(at), found);
        lines.into_iter().map(|line| line.text).collect()
    }

    const BOTH: &str = "ANY 1 (s1, s2)";

    #[test]
    fn each_change_is_a_line_and_what_lasts_is_none() {
        let mut alarms = Alarms::default();
        let all = &["s1", "s2"];
        assert_eq!(texts(&mut alarms, 0, found(BOTH, all, 0)), [""; 0]);
        let away = || Err("refused".to_owned());
        assert_eq!(texts(&mut alarms, 1, away()), ["the database does not answer: refused"]);
        assert_eq!(texts(&mut alarms, 2, away()), [""; 0]);
        assert_eq!(alarms.away_since(), Some(Duration::from_secs(1)));
        let back = texts(&mut alarms, 11, found(BOTH, all, 0));
        assert_eq!(back, ["the database answers again, after 10.0 s"]);
        let one = texts(&mut alarms, 12, found(BOTH, &["s2"], 0));
        assert_eq!(one, ["the standby s1 follows no longer: 1 follow, commits wait for 1"]);
        let none = texts(&mut alarms, 13, found(BOTH, &[], 0));
        assert!(none[0].contains("s2 follows no longer: 0"), "{none:?}");
        assert!(none[1].contains("nothing is acknowledged"), "{none:?}");
        assert_eq!(texts(&mut alarms, 14, found(BOTH, &[], 5)), [""; 0], "it was reported");
        let again = texts(&mut alarms, 15, found(BOTH, &["s1"], 0));
        assert_eq!(
            again,
            ["the standby s1 follows: 1 do", "standbys enough follow again: commits go on"]
        );
    }

    #[test]
    fn a_standby_that_hangs_is_seen_by_what_waits_for_it() {
        let mut alarms = Alarms::default();
        assert_eq!(texts(&mut alarms, 0, found("s1", &["s1"], 1)), [""; 0]);
        let waits = texts(&mut alarms, 1, found("s1", &["s1"], 3));
        assert!(waits.len() == 1 && waits[0].contains("the first for 3.0 s"), "{waits:?}");
        assert_eq!(texts(&mut alarms, 2, found("s1", &["s1"], 4)), [""; 0]);
        assert_eq!(texts(&mut alarms, 3, found("s1", &["s1"], 0)).len(), 1);
    }

    #[test]
    fn other_settings_are_reported_with_what_they_come_to() {
        let mut alarms = Alarms::default();
        texts(&mut alarms, 0, found(BOTH, &["s1", "s2"], 0));
        let lines = texts(&mut alarms, 1, found("", &["s1", "s2"], 0));
        assert_eq!(
            lines[0],
            "the database has another synchronous_standby_names: \"\", it was \"ANY 1 (s1, s2)\""
        );
        assert!(lines[1].contains("no server may be lost"), "{lines:?}");
        assert!(texts(&mut alarms, 2, found("", &["s1", "s2"], 0)).is_empty());
    }
}
