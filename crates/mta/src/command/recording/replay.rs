//! `mta replay`: runs a recording through the node again.

use super::{Recorded, RecordingError};
use crate::command::output::{print, print_error};
use crate::command::status::to_text;
use crate::command::{DONE, FAILED, WRONG};
use base::{Now, Utc, shown};
use node::status::Status;
use record::format::Shown;
use record::player::{PlayError, Played};
use record::{Difference, Header, Names, Player, Record, strip};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Runs a recording of `mta run --record` through the same node, and compares what it gives out with what it gave
/// out in the run. Nothing is sent, written or listened on.
///
/// Exit codes: 0 equal, 1 a step differs or the node panics in it, 2 the file cannot be read, or has no contents.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Arguments {
    /// The recording.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Stop before what came at this time: seconds from the start, such as 12.5 or 2min, or a wall clock in UTC
    /// such as 14:03:20.
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
    /// At this time of the day.
    Clock(Duration),
}

impl Until {
    fn read(text: &str) -> Result<Until, String> {
        if let Some((hours, rest)) = text.split_once(':') {
            let wrong = || format!("{text:?} is not a time such as 14:03:20");
            let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
            let whole = |text: &str, below: u64| {
                text.parse::<u64>().ok().filter(|n| *n < below).ok_or_else(wrong)
            };
            let (hours, minutes) = (whole(hours, 24)?, whole(minutes, 60)?);
            let seconds: f64 = seconds.parse().ok().filter(|s| *s < 60.0).ok_or_else(wrong)?;
            let seconds = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
            return Ok(Until::Clock(Duration::from_secs(hours * 3600 + minutes * 60) + seconds));
        }
        if let Ok(seconds) = text.parse::<f64>() {
            let elapsed = Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?;
            return Ok(Until::Elapsed(elapsed));
        }
        base::quantity::duration(text).map(Until::Elapsed).map_err(|error| error.to_string())
    }

    /// Whether this time is reached.
    fn is_reached(self, began: Now, now: Now) -> bool {
        const DAY: u64 = 86_400_000_000;
        let micros = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX);
        match self {
            Until::Elapsed(elapsed) => now.mono.since(began.mono) >= elapsed,
            Until::Clock(time) => {
                let midnight = began.utc.0 - began.utc.0 % DAY;
                let today = midnight.saturating_add(micros(time));
                // A time before the start is one of the next day.
                let at = if today < began.utc.0 { today.saturating_add(DAY) } else { today };
                now.utc >= Utc(at)
            }
        }
    }
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
    let played = Replay { arguments, header: &header, steps: 0, differences: 0 };
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
}

impl Replay<'_> {
    /// Whether the replay stops before an input of this time.
    fn stops(&self, now: Now) -> bool {
        self.arguments.step.is_some_and(|last| self.steps >= last)
            || self.arguments.until.is_some_and(|until| until.is_reached(self.header.began, now))
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
                self.steps += 1;
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
        if let Err(error) = self.conclude(&player, now, end, first.as_deref()) {
            return Ok(fault(&error));
        }
        match (first, failed) {
            (Some(_), _) => Ok(FAILED),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(DONE),
        }
    }

    /// The end, and that an order to stop earlier came to nothing.
    fn not_reached(&self, end: String) -> String {
        match (self.arguments.until, self.arguments.step) {
            (Some(_), _) => format!("{end}; the time of --until was not reached"),
            (None, Some(_)) => format!("{end}; the step of --step was not reached"),
            (None, None) => end,
        }
    }

    fn conclude(
        &self,
        player: &Player,
        now: Now,
        end: String,
        first: Option<&Difference>,
    ) -> Result<(), PlayError> {
        let state = self.arguments.state.then(|| player.status(now)).transpose()?;
        if self.arguments.json {
            print_line(&EndLine {
                equal: Some(first.is_none()),
                steps: self.steps,
                end,
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
                "stopped as ordered".clone_into(&mut end);
                break;
            }
            self.steps += 1;
            self.print(now, &step);
        }
        if self.arguments.json {
            let (steps, equal, difference, differences, state) =
                (self.steps, None, None, None, None);
            print_line(&EndLine { equal, steps, end, difference, differences, state });
        } else {
            print(&format!("{} steps, nothing was run; {end}\n", self.steps));
        }
        Ok(DONE)
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
        let clock = |ms| Ok(Until::Clock(Duration::from_millis(ms)));
        assert_eq!(Until::read("14:03"), clock((14 * 60 + 3) * 60_000));
        assert_eq!(Until::read("14:03:20.5"), clock((14 * 60 + 3) * 60_000 + 20_500));
        for wrong in ["", "-1", "25:00", "1:60", "1:2:61", "x:1", "soon", "1:2:-3"] {
            assert!(Until::read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_time_of_the_day_before_the_start_is_of_the_next_day() {
        let at = |hours: u64| Now { mono: Instant(hours), utc: Utc(hours * 3_600_000_000) };
        let noon = Until::Clock(Duration::from_secs(12 * 3600));
        assert!(!noon.is_reached(at(10), at(11)) && noon.is_reached(at(10), at(12)));
        assert!(!noon.is_reached(at(13), at(20)) && noon.is_reached(at(13), at(36)));
    }
}
