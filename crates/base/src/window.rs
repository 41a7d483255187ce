//! Weekly time windows in UTC: hours at which a link exists, or a rule holds.
//!
//! A window is written as `mon-fri 06:00-18:00`: days, then the time from which (inclusive) and
//! until which (exclusive). Days are names, ranges (`fri-mon` runs over the week's end) or both,
//! joined by commas; without any the window is there every day. An end that is not later than
//! the beginning is meant for the day after: `sat 22:00-02:00` ends on Sunday. `24:00` is the end
//! of the day.

use crate::time::Utc;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Most windows in one list.
pub const MAX_WINDOWS: usize = 64;

const DAY: u16 = 24 * 60;
const WEEK: u16 = 7 * DAY;
const NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// What a microsecond count is divided by for minutes.
const MINUTE_US: u64 = 60_000_000;
/// 1970-01-01 was a Thursday, three days into a week.
const EPOCH_DAYS_INTO_WEEK: u64 = 3;

/// Why a text is not a window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Neither `HH:MM-HH:MM` nor `DAYS HH:MM-HH:MM`.
    #[error("{0:?} is not a time window such as \"mon-fri 06:00-18:00\"")]
    Form(String),
    /// Not one of the seven names.
    #[error("{0:?} is not a day: mon, tue, wed, thu, fri, sat or sun")]
    Day(String),
    /// Not a time of the day.
    #[error("{0:?} is not a time of the day from 00:00 to 24:00")]
    Time(String),
    /// It would begin when the day is over.
    #[error("a window cannot begin at 24:00: write 00:00 of the day after")]
    BeginsAtEnd,
    /// It begins when it ends.
    #[error("a window from {0} to the same time is empty: write 00:00-24:00 for a whole day")]
    Empty(String),
    /// A list without any.
    #[error("a list without a window is never open")]
    None,
    /// More than [`MAX_WINDOWS`].
    #[error("{0} windows, more than {MAX_WINDOWS}")]
    TooMany(usize),
}

/// One window, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Window {
    /// Days on which it begins, Monday the lowest bit.
    days: u8,
    /// Minute of the day it begins with, 0 to 1439.
    from: u16,
    /// Minute of the day before which it ends, 1 to 1440; not after `from` means the day after.
    until: u16,
}

impl Window {
    /// Spans of the week in minutes, both ends within 0 to [`WEEK`].
    fn spans(self) -> impl Iterator<Item = (u16, u16)> {
        let length = if self.until > self.from {
            self.until - self.from
        } else {
            DAY - self.from + self.until
        };
        let days = (0u16..7).filter(move |day| self.days >> day & 1 == 1);
        days.flat_map(move |day| {
            let from = day * DAY + self.from;
            let until = from + length;
            let over = until.saturating_sub(WEEK);
            [(from, until.min(WEEK)), (0, over)]
        })
        .filter(|(from, until)| from < until)
    }
}

impl FromStr for Window {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Window, WindowError> {
        let form = || WindowError::Form(text.to_owned());
        let mut words = text.split_whitespace();
        let (days, times) = match (words.next(), words.next(), words.next()) {
            (Some(times), None, None) => (0x7f, times),
            (Some(days), Some(times), None) => (read_days(days)?, times),
            _ => return Err(form()),
        };
        let (from, until) = times.split_once('-').ok_or_else(form)?;
        let window = Window { days, from: read_time(from)?, until: read_time(until)? };
        if window.from == DAY {
            return Err(WindowError::BeginsAtEnd);
        }
        // From 00:00 until 00:00 may have been meant as the whole day, or as nothing.
        if window.from == window.until {
            return Err(WindowError::Empty(from.to_owned()));
        }
        // The end of the day before, in the form that `spans` expects.
        let until = if window.until == 0 { DAY } else { window.until };
        Ok(Window { until, ..window })
    }
}

fn read_days(text: &str) -> Result<u8, WindowError> {
    let day = |name: &str| {
        let found = NAMES.iter().position(|n| n.eq_ignore_ascii_case(name));
        found.ok_or_else(|| WindowError::Day(name.to_owned()))
    };
    let mut days = 0;
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (day(first)?, day(last)?),
            None => (day(part)?, day(part)?),
        };
        let count = (last + 7 - first) % 7;
        for step in 0..=count {
            days |= 1 << ((first + step) % 7);
        }
    }
    Ok(days)
}

/// Minutes since the day began, 0 to 1440.
fn read_time(text: &str) -> Result<u16, WindowError> {
    let bad = || WindowError::Time(text.to_owned());
    let two_digits = |part: &str| {
        let fits = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        if fits { part.parse::<u16>().ok() } else { None }
    };
    let (hours, minutes) = text.split_once(':').ok_or_else(bad)?;
    let (hours, minutes) =
        (two_digits(hours).ok_or_else(bad)?, two_digits(minutes).ok_or_else(bad)?);
    let time = hours * 60 + minutes;
    if minutes > 59 || time > DAY { Err(bad()) } else { Ok(time) }
}

/// As it is read: `mon-fri 06:00-18:00`.
impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.days != 0x7f {
            let mut separator = "";
            for (first, last) in runs(self.days) {
                f.write_str(separator)?;
                separator = ",";
                f.write_str(first)?;
                if first != last {
                    write!(f, "-{last}")?;
                }
            }
            f.write_str(" ")?;
        }
        let (from, until) = (self.from, self.until);
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, until / 60, until % 60)
    }
}

/// First and last day of each run of days from Monday on.
fn runs(days: u8) -> Vec<(&'static str, &'static str)> {
    let mut runs: Vec<(&str, &str)> = Vec::new();
    let mut before = false;
    for (name, bit) in NAMES.into_iter().zip(0..) {
        let has = days >> bit & 1 == 1;
        match (has, before, runs.last_mut()) {
            (true, true, Some(run)) => run.1 = name,
            (true, ..) => runs.push((name, name)),
            _ => {}
        }
        before = has;
    }
    runs
}

/// A list of windows: open while any of them is.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Windows {
    written: Vec<Window>,
    /// Minutes of the week, in order, apart from each other.
    spans: Vec<(u16, u16)>,
}

impl Windows {
    /// All of these together.
    ///
    /// # Errors
    ///
    /// None, or more than [`MAX_WINDOWS`].
    pub fn new(written: Vec<Window>) -> Result<Windows, WindowError> {
        if written.is_empty() {
            return Err(WindowError::None);
        }
        if written.len() > MAX_WINDOWS {
            return Err(WindowError::TooMany(written.len()));
        }
        let mut parts: Vec<(u16, u16)> = written.iter().flat_map(|w| w.spans()).collect();
        parts.sort_unstable();
        let mut spans: Vec<(u16, u16)> = Vec::new();
        for (from, until) in parts {
            match spans.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => spans.push((from, until)),
            }
        }
        Ok(Windows { written, spans })
    }

    /// Whether one of them is open.
    pub fn is_open(&self, at: Utc) -> bool {
        let minute = minute_of_week(at);
        let next = self.spans.partition_point(|(from, _)| *from <= minute);
        let last_begun = next.checked_sub(1).and_then(|n| self.spans.get(n));
        last_begun.is_some_and(|(_, until)| minute < *until)
    }

    /// The first moment after `at` at which [`Windows::is_open`] differs from `at`; `None`
    /// if they are always open.
    pub fn next_change(&self, at: Utc) -> Option<Utc> {
        let minute = minute_of_week(at);
        // Open until the week's end and from its beginning on: no change there.
        let joined = self.spans.first().is_some_and(|(from, _)| *from == 0)
            && self.spans.last().is_some_and(|(_, until)| *until == WEEK);
        let ends = self.spans.iter().flat_map(|(from, until)| [*from, *until]);
        let changes = ends.filter(|end| !(joined && (*end == 0 || *end == WEEK)));
        let waits = changes.map(|end| match end % WEEK {
            later if later > minute => later - minute,
            earlier => WEEK - minute + earlier,
        });
        let wait = Duration::from_secs(u64::from(waits.min()?) * 60);
        Some(Utc(at.0 - at.0 % MINUTE_US) + wait)
    }
}

/// Minutes since the week began, on Monday 00:00.
fn minute_of_week(at: Utc) -> u16 {
    let minutes = at.0 / MINUTE_US + EPOCH_DAYS_INTO_WEEK * u64::from(DAY);
    u16::try_from(minutes % u64::from(WEEK)).unwrap_or(0)
}

/// Windows apart from each other by semicolons.
impl FromStr for Windows {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Windows, WindowError> {
        Windows::new(text.split(';').map(str::parse).collect::<Result<_, _>>()?)
    }
}

/// As they are read: `mon-fri 06:00-18:00; sat 08:00-12:00`.
impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, window) in self.written.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { "; " })?;
            window.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Civil;
    use proptest::prelude::*;

    fn windows(text: &str) -> Windows {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// A day of the week that began on Monday, 16 November 2026.
    fn at(day: u32, hour: u32, minute: u32) -> Utc {
        let civil = Civil { year: 2026, month: 11, day: 16 + day, hour, minute, second: 0 };
        Utc::from_civil(civil).unwrap()
    }

    #[test]
    fn a_working_week() {
        let w = windows("mon-fri 06:00-18:00");
        assert!(!w.is_open(at(0, 5, 59)));
        assert!(w.is_open(at(0, 6, 0)), "the beginning is within");
        assert!(w.is_open(Utc(at(4, 18, 0).0 - 1)));
        assert!(!w.is_open(at(4, 18, 0)), "the end is not");
        assert_eq!(w.next_change(at(0, 6, 0)), Some(at(0, 18, 0)));
        assert_eq!(w.next_change(at(4, 18, 0)), Some(at(7, 6, 0)), "over the weekend");
        let within_a_minute = Utc(at(0, 17, 59).0 + 59_999_999);
        assert_eq!(w.next_change(within_a_minute), Some(at(0, 18, 0)));
    }

    #[test]
    fn over_midnight_and_over_the_end_of_the_week() {
        let w = windows("sun 22:00-02:00");
        assert!(w.is_open(at(6, 23, 59)) && w.is_open(at(0, 1, 59)) && !w.is_open(at(0, 2, 0)));
        assert_eq!(w.next_change(at(6, 22, 0)), Some(at(7, 2, 0)), "midnight changes nothing");
        let every_day = windows("22:00-02:00");
        assert_eq!(every_day.next_change(at(3, 23, 0)), Some(at(4, 2, 0)));
        assert_eq!(every_day.next_change(at(4, 2, 0)), Some(at(4, 22, 0)));
        let over = windows("sat-mon 00:00-24:00");
        assert_eq!(over.next_change(at(0, 0, 0)), Some(at(1, 0, 0)));
        assert_eq!(over.next_change(at(1, 0, 0)), Some(at(5, 0, 0)));
        assert_eq!(over.next_change(at(5, 0, 0)), Some(at(8, 0, 0)));
    }

    #[test]
    fn overlapping_adjoining_and_always() {
        let w = windows("06:00-10:00; 09:00-12:00; 12:00-13:00");
        assert_eq!(w.next_change(at(2, 6, 0)), Some(at(2, 13, 0)));
        for always in
            ["00:00-24:00", "00:00-00:01; 00:01-00:00", "mon-wed 00:00-24:00;thu-sun 00:00-24:00"]
        {
            let w = windows(always);
            assert!(w.is_open(at(6, 23, 59)) && w.is_open(at(0, 0, 0)), "{always}");
            assert_eq!(w.next_change(at(3, 12, 0)), None, "{always}");
        }
    }

    #[test]
    fn errors_name_the_invalid_part() {
        let why = |text: &str| text.parse::<Windows>().unwrap_err().to_string();
        same(&[
            (why(""), "\"\" is not a time window such as \"mon-fri 06:00-18:00\""),
            (why("mon"), "\"mon\" is not a time window such as \"mon-fri 06:00-18:00\""),
            (
                why("mon 06:00 - 18:00"),
                "\"mon 06:00 - 18:00\" is not a time window such as \"mon-fri 06:00-18:00\"",
            ),
            (why("mo 06:00-18:00"), "\"mo\" is not a day: mon, tue, wed, thu, fri, sat or sun"),
            (why("mon,,tue 06:00-18:00"), "\"\" is not a day: mon, tue, wed, thu, fri, sat or sun"),
            (why("6:00-18:00"), "\"6:00\" is not a time of the day from 00:00 to 24:00"),
            (why("06:60-18:00"), "\"06:60\" is not a time of the day from 00:00 to 24:00"),
            (why("06:00-24:01"), "\"24:01\" is not a time of the day from 00:00 to 24:00"),
            (why("06:00-+8:00"), "\"+8:00\" is not a time of the day from 00:00 to 24:00"),
            (why("24:00-06:00"), "a window cannot begin at 24:00: write 00:00 of the day after"),
            (
                why("06:00-06:00"),
                "a window from 06:00 to the same time is empty: write 00:00-24:00 for a whole day",
            ),
        ]);
        assert_eq!(Windows::new(Vec::new()), Err(WindowError::None));
        let one: Window = "06:00-18:00".parse().unwrap();
        assert!(Windows::new(vec![one; MAX_WINDOWS]).is_ok());
        assert_eq!(Windows::new(vec![one; MAX_WINDOWS + 1]), Err(WindowError::TooMany(65)));
    }

    fn same(pairs: &[(String, &str)]) {
        for (is, should) in pairs {
            assert_eq!(is, should);
        }
    }

    #[test]
    fn shown_as_written() {
        for text in ["mon-wed,fri,sun 06:00-18:00; 22:00-02:00", "sat-sun 00:00-24:00"] {
            assert_eq!(windows(text).to_string(), text);
        }
        assert_eq!(windows("SUN,Sat,fri-mon 20:00-00:00").to_string(), "mon,fri-sun 20:00-24:00");
    }

    /// Days, minutes from and until.
    type Naive = (Vec<usize>, usize, usize);

    /// Every minute of a week, whether it is open: each window painted minute by minute.
    fn paint(list: &[Naive]) -> Vec<bool> {
        let mut week = vec![false; 10_080];
        for (days, from, until) in list {
            for day in days {
                let mut minute = *from;
                loop {
                    week[(day * 1_440 + minute) % 10_080] = true;
                    minute += 1;
                    if minute % 1_440 == until % 1_440 {
                        break;
                    }
                }
            }
        }
        week
    }

    fn arb_window() -> impl Strategy<Value = Naive> {
        // Full hours are met often, so that windows adjoin.
        let time = prop_oneof![(0usize..24).prop_map(|h| h * 60), 0usize..1440];
        let days = prop_oneof![
            2 => proptest::sample::subsequence((0..7).collect::<Vec<usize>>(), 1..=7),
            1 => Just((0..7).collect::<Vec<usize>>()),
        ];
        (days, time.clone(), prop_oneof![4 => time, 1 => Just(1440)])
            .prop_filter("empty", |(_, from, until)| from != until)
    }

    fn text_of(list: &[Naive]) -> String {
        let one = |(days, from, until): &Naive| {
            let names: Vec<&str> = days.iter().map(|d| NAMES[*d]).collect();
            let time = |t: usize| format!("{:02}:{:02}", t / 60, t % 60);
            format!("{} {}-{}", names.join(","), time(*from), time(*until))
        };
        list.iter().map(one).collect::<Vec<_>>().join(";")
    }

    proptest! {
        #[test]
        fn agrees_with_minute_by_minute(
            list in proptest::collection::vec(arb_window(), 1..6),
            weeks in 0u64..3_000,
            within in 0u64..60_000_000,
            step in 1usize..200,
        ) {
            let w = windows(&text_of(&list));
            prop_assert_eq!(&windows(&w.to_string()), &w, "read back from its display");
            let week = paint(&list);
            // 1970-01-05 was the first Monday.
            let monday = (weeks * 7 + 4) * 1_440;
            // Backwards, so that the next change is known; beginning with what comes after.
            let mut changes = [None; 10_080];
            let mut next = None;
            for m in (0..2 * 10_080).rev() {
                if week[m % 10_080] != week[(m + 1) % 10_080] {
                    next = Some(m + 1);
                }
                if m < 10_080 {
                    changes[m] = next;
                }
            }
            let near = |m: &usize| week[*m] != week[(m + 1) % 10_080] || week[*m] != week[(m + 10_079) % 10_080];
            let some = (0..10_080).filter(|m| m % step == 0 || near(m));
            for m in some {
                let at = Utc((monday + m as u64) * 60_000_000 + within);
                prop_assert_eq!(w.is_open(at), week[m], "minute {}", m);
                let expected = changes[m].map(|c| Utc((monday + c as u64) * 60_000_000));
                prop_assert_eq!(w.next_change(at), expected, "minute {}", m);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-z0-9:, ;-]{0,30}|\\PC{0,30}") {
            if let Ok(w) = text.parse::<Windows>() {
                prop_assert_eq!(&w.to_string().parse::<Windows>().unwrap(), &w);
            }
        }

        #[test]
        fn no_time_is_out_of_range(us in any::<u64>()) {
            let w = windows("fri 22:00-02:00");
            let change = w.next_change(Utc(us));
            prop_assert!(change.is_some_and(|c| c.0 > us || c.0 == u64::MAX));
        }
    }
}
