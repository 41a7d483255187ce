//! `mta replay`: runs a recording through the node again.

use super::{Recorded, RecordingError};
use crate::command::output::{print, print_error};
use crate::command::{DONE, FAILED, PARTLY, WRONG};
use base::{Now, Utc, shown};
use node::status::Status;
use record::format::Shown;
use record::player::{PlayError, Played};
use record::{Difference, Header, Names, Player, Record, strip};
use serde::Serialize;
use status_text::to_text;
use std::path::PathBuf;
use std::time::Duration;
use tracking::moment::moment;

/// Runs a recording of `mta run --record` through the same node, and compares what it gives out with what it gave
/// out in the run. Nothing is sent, written or listened on.
///
/// Exit codes: 0 equal, 1 a step differs or the node panics in it, 2 the file cannot be read, or has no contents, 3 equal,
/// and the time of --until or the step of --step is not in it.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Arguments {
    /// The recording.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Stop before the first step at this time: seconds from the start, such as 12.5 or 2min, or a wall clock in UTC
    /// such as 14:03:20 or 2026-01-02T14:03:20.
    #[arg(long, value_name = "TIME", value_parser = Until::read)]
    until: Option<Until>,
    /// Stop after this step.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    step: Option<u64>,
    /// Go on behind a step that differs, and count those that do. What follows a difference may follow from it.
    #[arg(long, conflicts_with = "show")]
    go_on: bool,
    /// Print what mta status shows, as it was where the replay stops.
    #[arg(long)]
    state: bool,
    /// Print no steps.
    #[arg(long, short)]
    quiet: bool,
    /// Print one JSON object a step, and one for the end.
    #[arg(long)]
    json: bool,
    /// Print the inputs and run nothing. The only form for a copy without contents.
    #[arg(long, conflicts_with_all = ["state", "quiet"])]
    show: bool,
}

/// When a replay stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// So long after the start.
    Elapsed(Duration),
    /// At this time of any day, written to this unit: 14:03 is a minute.
    Clock { time: Duration, unit: Duration },
    /// At this date and time.
    Moment { at: Utc, unit: Duration },
}

impl Until {
    fn read(text: &str) -> Result<Until, String> {
        if text.contains(':') {
            let wrong =
                || format!("{text:?} is not a time such as 14:03:20 or 2026-01-02T14:03:20");
            let (date, clock) = text.split_once(['T', ' ']).unzip();
            let (time, unit) =
                clock_of(clock.unwrap_or(text).trim_end_matches('Z')).ok_or_else(wrong)?;
            if date.is_none() {
                return Ok(Until::Clock { time, unit });
            }
            let at = moment(text, Utc(0)).map_err(|_| wrong())?;
            return Ok(Until::Moment { at, unit });
        }
        if let Ok(seconds) = text.parse::<f64>() {
            let elapsed = Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?;
            return Ok(Until::Elapsed(elapsed));
        }
        base::quantity::duration(text).map(Until::Elapsed).map_err(|error| error.to_string())
    }

    /// Whether a step at `now` reaches this time. A wall clock reaches it where it passes from before it to it or
    /// behind it, by itself or because it was set forward, and where it shows it: also after it was set back.
    /// `before` is the wall clock of the step before.
    fn is_reached(self, began: Now, before: Option<Utc>, now: Now) -> bool {
        const DAY: u64 = 86_400_000_000;
        let micros = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX);
        // The start itself is reached by the first step.
        let before = before.map_or(began.utc.0, |before| before.0.saturating_add(1));
        let reaches = |at: u64, unit: Duration| {
            let shown = at..at.saturating_add(micros(unit));
            (before..=now.utc.0).contains(&at) || shown.contains(&now.utc.0)
        };
        match self {
            Until::Elapsed(elapsed) => now.mono.since(began.mono) >= elapsed,
            Until::Moment { at, unit } => reaches(at.0, unit),
            Until::Clock { time, unit } => {
                let on_day_of = |utc: u64| (utc - utc % DAY).saturating_add(micros(time));
                // The first after the step before, and the one of this step's day.
                let next = on_day_of(before);
                let next = if next < before { next.saturating_add(DAY) } else { next };
                reaches(next, unit) || reaches(on_day_of(now.utc.0), unit)
            }
        }
    }
}

/// A time of the day such as 14:03, 14:03:20 or 14:03:20.5, and the unit to which it is written.
fn clock_of(text: &str) -> Option<(Duration, Duration)> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':').map_or((rest, None), |(m, s)| (m, Some(s)));
    let whole = |text: &str, below: u64| text.parse::<u64>().ok().filter(|n| *n < below);
    let minutes = Duration::from_secs(whole(hours, 24)? * 3600 + whole(minutes, 60)? * 60);
    let Some(seconds) = seconds else { return Some((minutes, Duration::from_secs(60))) };
    let digits = seconds.split_once('.').map_or(0, |(_, fraction)| fraction.len().min(6));
    let unit = Duration::from_micros(10_u64.pow(6 - u32::try_from(digits).ok()?));
    let seconds: f64 = seconds.parse().ok().filter(|s| *s < 60.0)?;
    Some((minutes + Duration::try_from_secs_f64(seconds).ok()?, unit))
}

/// A step as JSON.
#[derive(Serialize)]
struct StepLine<'a> {
    step: u64,
    seconds: f64,
    time: String,
    input: &'a str,
    outputs: &'a [String],
    events: &'a [String],
}

/// A step that differs, as JSON.
#[derive(Serialize)]
struct DifferenceLine {
    step: u64,
    difference: String,
}

/// The end as JSON.
#[derive(Serialize)]
struct EndLine {
    /// Whether the replay equals the run; absent where nothing was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    equal: Option<bool>,
    steps: u64,
    end: String,
    /// Whether the time of --until or the step of --step was reached; absent without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    reached: Option<bool>,
    /// The first step that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
    /// Steps that differ: without --go-on one at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Status>,
}

pub(in crate::command) fn run(arguments: &Arguments) -> u8 {
    match replay(arguments) {
        Ok(code) => code,
        Err(error) => {
            print_error(&error.to_string());
            WRONG
        }
    }
}

fn replay(arguments: &Arguments) -> Result<u8, RecordingError> {
    let (recorded, header) = Recorded::open(&arguments.file)?;
    let version = env!("CARGO_PKG_VERSION");
    if header.version != version {
        let made = shown::line(&header.version);
        print_error(&format!("warning: made by release {made}, and this is {version}"));
    }
    let played =
        Replay { arguments, header: &header, steps: 0, differences: 0, clock: None, clocks: None };
    if arguments.show {
        return played.show(recorded);
    }
    match Player::new(&header) {
        Ok(player) => played.run(recorded, player),
        Err(error) => {
            print_error(&format!("{error}; mta replay --show prints it"));
            Ok(WRONG)
        }
    }
}

struct Replay<'a> {
    arguments: &'a Arguments,
    header: &'a Header,
    steps: u64,
    /// Steps that differ.
    differences: u64,
    /// The wall clock of the last step.
    clock: Option<Utc>,
    /// The earliest and the latest wall clock of a step.
    clocks: Option<(Utc, Utc)>,
}

impl Replay<'_> {
    /// Whether the replay stops before an input of this time; if not, it is a step.
    fn stops(&mut self, now: Now) -> bool {
        let Replay { arguments, header, clock, .. } = self;
        let is_reached = |until: Until| until.is_reached(header.began, *clock, now);
        let stops = arguments.step.is_some_and(|last| self.steps >= last)
            || arguments.until.is_some_and(is_reached);
        if !stops {
            self.steps += 1;
            self.clock = Some(now.utc);
            let (first, last) = self.clocks.unwrap_or((now.utc, now.utc));
            self.clocks = Some((first.min(now.utc), last.max(now.utc)));
        }
        stops
    }

    /// Whether an order to stop was given.
    fn shall_stop(&self) -> bool {
        self.arguments.until.is_some() || self.arguments.step.is_some()
    }

    fn run(mut self, mut recorded: Recorded, mut player: Player) -> Result<u8, RecordingError> {
        let mut now = self.header.began;
        let (mut failed, mut first, mut stopped) = (None, None, false);
        loop {
            // What was read before a fault was run, and is judged.
            let record = match recorded.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            if let Record::Input(at, _) = &record {
                if self.stops(*at) {
                    stopped = true;
                    break;
                }
                now = *at;
            }
            match player.record(record) {
                Ok(Played::Step(step)) => {
                    self.print(step.now, &strip::shown(&step, player.names()));
                }
                Ok(Played::Differs(difference)) => {
                    self.differences += 1;
                    self.print_difference(&difference);
                    first.get_or_insert(difference);
                    if !self.arguments.go_on {
                        break;
                    }
                }
                Ok(Played::Equal | Played::Ended) => {}
                Err(error) => return Ok(fault(&error)),
            }
        }
        let end = match (stopped, &failed) {
            _ if first.is_some() && !self.arguments.go_on => {
                "stopped at the step that differs".to_owned()
            }
            (true, _) => "stopped as ordered".to_owned(),
            (false, Some(error)) => error.to_string(),
            (false, None) => self.not_reached(how_it_ended(&recorded, &player, self.steps)),
        };
        if let Err(error) = self.conclude(&player, now, end, stopped, first.as_deref()) {
            return Ok(fault(&error));
        }
        match (first, failed) {
            (Some(_), _) => Ok(FAILED),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(self.code(stopped)),
        }
    }

    /// The exit code of a replay that equals the run.
    fn code(&self, stopped: bool) -> u8 {
        if self.shall_stop() && !stopped { PARTLY } else { DONE }
    }

    /// The end, and that an order to stop earlier had no effect.
    fn not_reached(&self, end: String) -> String {
        match (self.arguments.until, self.arguments.step) {
            (Some(Until::Clock { .. } | Until::Moment { .. }), _) => {
                let clocks = self.clocks.map_or_else(String::new, |(first, last)| {
                    format!(
                        ": the steps have wall clocks from {} to {}",
                        second(first),
                        second(last)
                    )
                });
                format!("{end}; the time of --until was not reached{clocks}")
            }
            (Some(Until::Elapsed(_)), _) => format!("{end}; the time of --until was not reached"),
            (None, Some(_)) => format!("{end}; the step of --step was not reached"),
            (None, None) => end,
        }
    }

    fn conclude(
        &self,
        player: &Player,
        now: Now,
        end: String,
        stopped: bool,
        first: Option<&Difference>,
    ) -> Result<(), PlayError> {
        let state = self.arguments.state.then(|| player.status(now)).transpose()?;
        if self.arguments.json {
            print_line(&EndLine {
                equal: Some(first.is_none()),
                steps: self.steps,
                end,
                reached: self.shall_stop().then_some(stopped),
                difference: first.map(ToString::to_string),
                differences: Some(self.differences),
                state,
            });
            return Ok(());
        }
        if let Some(state) = state {
            print(&to_text(&state));
            print("\n");
        }
        let steps = self.steps;
        print(&match first {
            None => format!("replay equals the run: {steps} steps; {end}\n"),
            Some(first) if self.arguments.go_on => format!(
                "the replay differs from the run in {} of {steps} steps; {end}\nthe first: {first}\n",
                self.differences
            ),
            Some(first) => format!(
                "the replay differs from the run: {first}\nnothing behind this step was run: see mta replay --go-on and --show. \
                 After a bind that cannot be read, or a changed password, the masks are the likely cause\n"
            ),
        });
        Ok(())
    }

    /// Prints a step that differs, where the replay goes on.
    fn print_difference(&self, difference: &Difference) {
        if self.arguments.quiet || !self.arguments.go_on {
            return;
        }
        if self.arguments.json {
            let (step, difference) = (difference.step, difference.to_string());
            return print_line(&DifferenceLine { step, difference });
        }
        print(&format!("{:37}~ differs: {}\n", "", shown::line(&difference.to_string())));
    }

    /// Prints the inputs, and runs nothing.
    fn show(mut self, mut recorded: Recorded) -> Result<u8, RecordingError> {
        let mut end = "the recording was cut off".to_owned();
        let mut stopped = false;
        let mut names = Names::from_config(&self.header.config);
        while let Some(record) = recorded.next()? {
            let (now, step) = match record {
                Record::Input(now, input) => {
                    names.input(&input);
                    let input = record::words::input(&input, &names);
                    (now, Shown { input, ..Shown::default() })
                }
                Record::Shown(now, step) => (now, step),
                Record::End(why) => {
                    end = format!("the recording ends: {why}");
                    continue;
                }
                Record::Outputs(_) | Record::Header(_) | Record::Blanked(_) => continue,
            };
            if self.stops(now) {
                stopped = true;
                break;
            }
            self.print(now, &step);
        }
        let end = if stopped { "stopped as ordered".to_owned() } else { self.not_reached(end) };
        if self.arguments.json {
            let (steps, equal, difference, differences, state) =
                (self.steps, None, None, None, None);
            let reached = self.shall_stop().then_some(stopped);
            print_line(&EndLine { equal, steps, end, reached, difference, differences, state });
        } else {
            print(&format!("{} steps, nothing was run; {end}\n", self.steps));
        }
        Ok(self.code(stopped))
    }

    fn print(&self, now: Now, step: &Shown) {
        if self.arguments.quiet {
            return;
        }
        let seconds = now.mono.since(self.header.began.mono).as_secs_f64();
        let Shown { input, outputs, events } = step;
        if self.arguments.json {
            let (step, time) = (self.steps, now.utc.to_string());
            return print_line(&StepLine { step, seconds, time, input, outputs, events });
        }
        let time = now.utc.to_string();
        let clock = time.split_once('T').map_or(time.as_str(), |(_, clock)| clock);
        let mut text =
            format!("{:>7} {seconds:>11.6} {clock}  {}\n", self.steps, shown::line(input));
        for output in outputs {
            text.push_str(&format!("{:37}> {}\n", "", shown::line(output)));
        }
        for event in events {
            text.push_str(&format!("{:37}! {}\n", "", shown::line(event)));
        }
        print(&text);
    }
}

/// A wall clock to the second.
fn second(utc: Utc) -> String {
    let time = utc.to_string();
    time.split_once('.').map_or(time.clone(), |(second, _)| format!("{second}Z"))
}

/// Prints why a replay goes no further; gives the exit code.
fn fault(error: &PlayError) -> u8 {
    print_error(&error.to_string());
    match error {
        PlayError::Panic(..) => FAILED,
        PlayError::Stripped | PlayError::Order(_) | PlayError::Header(_) => WRONG,
    }
}

/// A JSON object on a line.
fn print_line(value: &impl Serialize) {
    let line = serde_json::to_string(value);
    print(&line.map_or_else(|e| e.to_string(), |line| shown::json(&line).into_owned() + "\n"));
}

fn how_it_ended(recorded: &Recorded, player: &Player, steps: u64) -> String {
    match (player.end(), recorded.torn(), player.is_within_step()) {
        (Some(end), ..) => format!("the recording ends: {end}"),
        (None, _, true) => {
            format!("the recording was cut off while the node took the input of step {steps}")
        }
        (None, 0, false) => {
            "the recording was not ended: the process was killed, or still runs".to_owned()
        }
        (None, torn, false) => {
            format!("the recording was cut off within a record: {torn} octets of it are left")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Instant;

    #[test]
    fn a_time_is_one_since_the_start_or_of_the_day() {
        let elapsed = |ms| Ok(Until::Elapsed(Duration::from_millis(ms)));
        assert_eq!(Until::read("12.5"), elapsed(12_500));
        assert_eq!(Until::read("2min"), elapsed(120_000));
        let unit = Duration::from_micros;
        let clock = |ms, us| Ok(Until::Clock { time: Duration::from_millis(ms), unit: unit(us) });
        assert_eq!(Until::read("14:03"), clock((14 * 60 + 3) * 60_000, 60_000_000));
        assert_eq!(Until::read("14:03:20"), clock((14 * 60 + 3) * 60_000 + 20_000, 1_000_000));
        assert_eq!(Until::read("14:03:20.5"), clock((14 * 60 + 3) * 60_000 + 20_500, 100_000));
        let at = Utc(1_767_323_000_000_000);
        for (text, us) in [("2026-01-02T03:03:20Z", 1_000_000), ("2026-01-02 03:03:20.00", 10_000)]
        {
            assert_eq!(Until::read(text), Ok(Until::Moment { at, unit: unit(us) }));
        }
        let wrong =
            ["", "-1", "25:00", "1:60", "1:2:61", "x:1", "soon", "1:2:-3", "2026-02-30T12:00"];
        for wrong in wrong {
            assert!(Until::read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_time_of_the_day_is_reached_where_the_clock_passes_or_shows_it() {
        const HOUR: u64 = 3_600_000_000;
        let at = |hours: u64| Now { mono: Instant(0), utc: Utc(hours * HOUR) };
        let noon = Until::read("12:00").unwrap();
        let reached = |began, before: Option<u64>, now| {
            noon.is_reached(at(began), before.map(|hours| at(hours).utc), at(now))
        };
        assert!(!reached(10, None, 11) && reached(10, None, 12) && reached(10, None, 13));
        assert!(!reached(10, Some(12), 13) && reached(10, Some(11), 13));
        // On the next day, also over midnight.
        assert!(!reached(13, None, 20) && !reached(13, Some(20), 35) && reached(13, Some(20), 36));
        assert!(reached(13, Some(20), 90));
        // Set back: over it is not to it; then it comes again.
        assert!(!reached(10, Some(13), 11) && reached(10, Some(11), 12));
        assert!(reached(10, Some(13), 12), "the clock shows it");
        assert!(reached(12, None, 13), "the start");
    }

    #[test]
    fn a_date_and_time_is_reached_once() {
        let at = |hours: u64| Now { mono: Instant(0), utc: Utc(hours * 3_600_000_000) };
        let noon = Until::read("1970-01-02T12:00").unwrap();
        let reached = |before: u64, now| noon.is_reached(at(0), Some(at(before).utc), at(now));
        assert!(!reached(11, 12) && reached(35, 36) && reached(11, 40) && !reached(36, 60));
        assert!(reached(37, 36) && !reached(37, 35));
    }
}
