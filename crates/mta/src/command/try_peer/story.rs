//! What happened, step by step: printed at once, or kept for one JSON object.

use super::super::output::{print, print_json};
use super::super::{DONE, FAILED};
use crate::clock::stopwatch;
use explain::{Direction, Layer, Line, Trouble};
use serde::Serialize;
use std::time::Duration;
use tables::wrapped;

/// Characters of a line.
const WIDTH: usize = 80;
/// Where texts and their parameters begin.
const TEXT: usize = 16;
const DETAIL: usize = 18;
/// Most lines of one text.
const LINES: usize = 12;

/// One step.
#[derive(Serialize)]
struct Step {
    /// Milliseconds since the start.
    after_ms: u64,
    layer: &'static str,
    /// `sent`, `received`, or `here` for what concerns no octets.
    direction: &'static str,
    text: String,
    details: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    octets: Option<String>,
}

/// Why it failed.
#[derive(Serialize)]
pub(super) struct Failure {
    /// The layer.
    pub(super) layer: &'static str,
    /// What happened, in words.
    pub(super) reason: String,
    /// The octets that came, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) octets: Option<String>,
    /// Standard and clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clause: Option<&'static str>,
    /// What to change, here or there.
    pub(super) change: Vec<String>,
}

/// All of it in JSON.
#[derive(Serialize)]
struct Whole<'a> {
    channel: &'a str,
    role: &'static str,
    ok: bool,
    result: &'a str,
    steps: &'a [Step],
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a Failure>,
}

/// Something that prevents the association, with its layer and sender.
pub(super) struct Found {
    pub(super) direction: Direction,
    pub(super) layer: Layer,
    pub(super) text: String,
    pub(super) trouble: Trouble,
}

/// The story of one association.
pub(super) struct Story {
    json: bool,
    channel: String,
    role: &'static str,
    elapsed: Box<dyn Fn() -> Duration>,
    steps: Vec<Step>,
    /// What prevents the association, in order.
    found: Vec<Found>,
    /// The last PDU of each end.
    pub(super) sent: Option<String>,
    pub(super) received: Option<String>,
    /// Our FINISH is out.
    releasing: bool,
}

impl Story {
    pub(super) fn new(json: bool, channel: String, role: &'static str) -> Story {
        Story {
            json,
            channel,
            role,
            elapsed: Box::new(stopwatch()),
            steps: Vec::new(),
            found: Vec::new(),
            sent: None,
            received: None,
            releasing: false,
        }
    }

    /// A step that concerns no octets.
    pub(super) fn here(&mut self, layer: &'static str, text: String, details: Vec<String>) {
        self.step("here", layer, text, details, None);
    }

    /// A line of the explanation, with what a bind has.
    pub(super) fn line(&mut self, line: Line, more: Vec<String>) {
        let sent = line.direction == Direction::Sent;
        let named = format!("{} ({})", line.text, line.layer.name());
        self.releasing |= sent && line.text.starts_with("FINISH");
        match sent {
            true => self.sent = Some(named),
            false => self.received = Some(named),
        }
        let octets = line.trouble.as_ref().map(|trouble| trouble.octets.clone());
        let details = [line.details, more].concat();
        let direction = if sent { "sent" } else { "received" };
        self.step(direction, line.layer.name(), line.text.clone(), details, octets);
        if let Some(trouble) = line.trouble {
            let Line { direction, layer, text, .. } = line;
            self.found.push(Found { direction, layer, text, trouble });
        }
    }

    fn step(
        &mut self,
        direction: &'static str,
        layer: &'static str,
        text: String,
        details: Vec<String>,
        octets: Option<String>,
    ) {
        let after_ms = u64::try_from((self.elapsed)().as_millis()).unwrap_or(u64::MAX);
        let step = Step { after_ms, layer, direction, text, details, octets };
        match self.json {
            true => self.steps.push(step),
            false => print(&in_words(&step)),
        }
    }

    /// The deepest cause of those that the first end to refuse has sent.
    pub(super) fn cause(&self) -> Option<&Found> {
        let first = self.found.first()?;
        let of_it = self.found.iter().filter(|found| found.direction == first.direction);
        of_it.max_by_key(|found| found.layer)
    }

    /// Whether our FINISH is out, and nothing came that refuses or aborts.
    pub(super) fn releases(&self) -> bool {
        self.releasing && self.found.iter().all(|found| found.direction == Direction::Sent)
    }

    /// The end; gives the exit code.
    pub(super) fn end(&self, result: &str, failure: Option<&Failure>) -> u8 {
        let ok = failure.is_none();
        if self.json {
            let (channel, role, steps) = (&self.channel, self.role, &self.steps);
            print_json(&Whole { channel, role, ok, result, steps, failure });
        } else {
            print(&conclusion(&self.channel, result, failure));
        }
        if ok { DONE } else { FAILED }
    }
}

fn in_words(step: &Step) -> String {
    let arrow = match step.direction {
        "sent" => "->",
        "received" => "<-",
        _ => "",
    };
    let mut text = String::new();
    for (number, line) in wrapped(&step.text, WIDTH, TEXT, LINES).into_iter().enumerate() {
        let line = match number {
            0 => format!("{:<13}{arrow:<3}{}", step.layer, line.trim_start()),
            _ => line,
        };
        text.push_str(&line);
        text.push('\n');
    }
    let octets = step.octets.iter().cloned();
    for detail in step.details.iter().cloned().chain(octets) {
        for (number, line) in wrapped(&detail, WIDTH - 2, DETAIL, LINES).into_iter().enumerate() {
            let begin = if number == 0 { "" } else { "  " };
            text.push_str(&format!("{begin}{line}\n"));
        }
    }
    text
}

fn conclusion(channel: &str, result: &str, failure: Option<&Failure>) -> String {
    let mut text = format!("\n{channel}: {result}\n");
    let Some(failure) = failure else { return text };
    let mut put = |name: &str, value: &str| {
        for (number, line) in wrapped(value, WIDTH, TEXT, LINES).into_iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            text.push_str(&format!("  {name:<14}{}\n", line.trim_start()));
        }
    };
    put("layer", failure.layer);
    put("reason", &failure.reason);
    if let Some(octets) = &failure.octets {
        put("octets", octets.trim_start_matches("octets "));
    }
    if let Some(clause) = failure.clause {
        put("clause", clause);
    }
    for change in &failure.change {
        put("change", change);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_eighty_characters_at_most() {
        let step = Step {
            after_ms: 0,
            layer: "presentation",
            direction: "received",
            text: "word ".repeat(40),
            details: vec!["detail ".repeat(30)],
            octets: Some("octets ".to_owned() + &"0A ".repeat(64)),
        };
        let text = in_words(&step);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.starts_with("presentation <- word word"), "{text}");
        let failure = Failure {
            layer: "session",
            reason: "word ".repeat(40),
            octets: Some("octets 0C 09".to_owned()),
            clause: Some("X.225 8.3.5"),
            change: vec!["ask ".repeat(40)],
        };
        let text = conclusion("act/flash", "refused", Some(&failure));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("\n  octets        0C 09\n"), "{text}");
    }
}
