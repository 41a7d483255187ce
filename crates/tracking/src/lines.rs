//! Events one by one, as lines.

use crate::event::{Event, Parties};
use crate::way::{Step, date_and_time, words};
use base::{Precedence, shown};
use serde::Serialize;

/// Most recipients in a line.
const MAX_RECIPIENTS: usize = 10;

/// An event as a line of JSON, in the words of the event log (`file` of `[events]`), and its node.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    #[serde(flatten)]
    step: Step<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mts_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    precedence: Option<Precedence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    originator: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    recipients: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_id: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// That of an event.
    pub fn new(event: &'a Event) -> Line<'a> {
        // What only counts copies names nobody.
        let parties = event.parties.as_ref().filter(|parties: &&Parties| parties.count > 0);
        let recipients = parties.map_or(&[][..], |parties| &parties.recipients);
        Line {
            step: Step::new(event),
            mts_id: event.message.as_deref(),
            precedence: event.precedence,
            originator: parties.and_then(|parties| parties.originator.as_deref()),
            recipients: recipients.get(..MAX_RECIPIENTS).unwrap_or(recipients),
            recipient_count: parties.map(|parties| parties.count),
            content_id: parties.and_then(|parties| parties.content_id.as_deref()),
        }
    }
}

/// An event as a line of text: time, node where there is a site, what happened, and to which message.
pub fn text(event: &Event) -> String {
    let (date, time) = date_and_time(event.time);
    let node = event.node.as_ref().map_or_else(String::new, |node| format!("{node}  "));
    let message = event.message.as_ref().map_or_else(String::new, |id| format!("  {id}"));
    let line = format!("{date} {time}  {node}{}{message}", words(event));
    format!("{}\n", shown::line(&line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Utc;

    #[test]
    fn an_event_is_one_line_with_its_node() {
        let event = Event {
            time: Utc(1_767_323_045_250_000),
            kind: "operator_held".into(),
            message: Some("[/C=IT/;1\n2]".to_owned()),
            entry: Some(42),
            operator: Some("alice (1000)".to_owned()),
            detail: "until noon".to_owned(),
            node: Some("n2".into()),
            ..Event::default()
        };
        let entry = base::EntryId(42);
        let expected = format!(
            "2026-01-02 03:04:05.250  n2  operator held  {entry} by alice (1000): until noon  [/C=IT/;1\\n2]\n"
        );
        assert_eq!(text(&event), expected);
        let json = serde_json::to_value(Line::new(&event)).unwrap();
        assert_eq!((&json["node"], &json["operator"]), (&"n2".into(), &"alice (1000)".into()));
        assert_eq!(
            (&json["event"], &json["mts_id"]),
            (&"operator_held".into(), &"[/C=IT/;1\n2]".into())
        );
        assert!(json.get("recipients").is_none() && json["time"] == "2026-01-02T03:04:05.250000Z");
    }
}
