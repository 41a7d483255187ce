//! What is known of a message's end.

use crate::event::Event;
use base::Utc;
use std::collections::BTreeMap;
use std::fmt;

/// How far the copies of a message came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Peers that confirmed a copy, with the time.
    pub transferred: Vec<(String, Utc)>,
    /// Mailboxes that got it, with the time.
    pub delivered: Vec<(String, Utc)>,
    /// Copies and recipients that came to another end: the kind of event, and its words: the operator who ordered
    /// it, the details.
    pub ended: Vec<(String, String)>,
    /// How many copies wait here; `None` where that is not known.
    pub waiting: Option<u64>,
    /// The last event of a copy that waits.
    pub last: Option<(String, Utc)>,
    /// When it was accepted.
    pub accepted: Option<Utc>,
    /// Reports on it that are known here.
    pub reports: usize,
    /// One of them, of a peer, has a recipient to whom it was not delivered.
    pub negative: bool,
}

/// Whether an event is the end of its copy here.
fn ends(step: &Event) -> bool {
    let kind = &*step.kind;
    // Of a delivery that failed the details have whether it is tried again.
    let for_good = kind == "delivery_failed" && step.detail.starts_with("for good");
    for_good
        || matches!(
            kind,
            "transfer_confirmed"
                | "delivered"
                | "expired"
                | "given_up"
                | "cancelled"
                | "rerouted"
                | "expanded"
        )
        || ["_expired", "_deleted", "_rerouted", "_redirected"]
            .iter()
            .any(|end| kind.ends_with(end))
}

/// Whether a copy that ends so goes on as others.
fn becomes_others(kind: &str) -> bool {
    kind.ends_with("rerouted") || kind.ends_with("redirected") || kind == "expanded"
}

impl Outcome {
    /// That of a message of which these events are known, in their order.
    pub(super) fn from_steps(steps: &[Event]) -> Outcome {
        let begun = steps.iter().find(|step| step.begins());
        let mut outcome = Outcome { accepted: begun.map(|step| step.time), ..Outcome::default() };
        let mut copies = begun.and_then(|step| step.parties.as_ref()?.copies);
        let mut latest: BTreeMap<u64, &Event> = BTreeMap::new();
        for step in steps {
            if let Some(entry) = step.entry {
                let ended = latest.get(&entry).is_some_and(|last| ends(last));
                if !ended || ends(step) {
                    latest.insert(entry, step);
                }
            } else if matches!(&*step.kind, "non_delivery" | "discarded") {
                outcome.ended.push((step.kind.to_string(), step.why()));
            }
        }
        let mut gone = 0;
        let mut is_rerouted = false;
        for step in latest.values() {
            match &*step.kind {
                "transfer_confirmed" => {
                    let peer = step.peer.clone().unwrap_or_else(|| "a peer".to_owned());
                    outcome.transferred.push((peer, step.time));
                }
                "delivered" => {
                    let to = step.parties.as_ref().and_then(|p| p.recipients.first());
                    let to = to.cloned().unwrap_or_else(|| step.detail.clone());
                    outcome.delivered.push((to, step.time));
                }
                kind if becomes_others(kind) => {
                    let others = step.parties.as_ref().and_then(|p| p.copies);
                    copies = copies.zip(others).map(|(copies, others)| copies + others);
                    is_rerouted = true;
                }
                kind if ends(step) => outcome.ended.push((kind.to_owned(), step.why())),
                _ => {
                    outcome.last = Some((step.words(), step.time));
                    continue;
                }
            }
            gone += 1;
        }
        let known = (latest.len() as u64).saturating_sub(gone);
        outcome.waiting = copies.map(|copies| copies.saturating_sub(gone).max(known));
        // Of a report that was made here the copies are those seen. What a rerouted copy became may not have
        // been seen yet.
        if outcome.waiting.is_none() && !latest.is_empty() && (known > 0 || !is_rerouted) {
            outcome.waiting = Some(known);
        }
        outcome
    }

    /// Whether all copies came to an end.
    pub fn is_known(&self) -> bool {
        self.waiting == Some(0)
    }

    /// In one word or two.
    pub fn short(&self) -> String {
        let parts = [
            (self.delivered.len() as u64, "delivered"),
            (self.transferred.len() as u64, "transferred"),
            (self.waiting.unwrap_or(0), "waiting"),
        ];
        let mut words: Vec<(u64, String)> = parts
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, word)| (*n, (*word).to_owned()))
            .collect();
        for (kind, _) in &self.ended {
            let word = kind.replace('_', " ");
            match words.iter_mut().find(|(_, known)| *known == word) {
                Some((n, _)) => *n += 1,
                None => words.push((1, word)),
            }
        }
        let end = match words.as_slice() {
            [] => "accepted".to_owned(),
            [(1, word)] => word.clone(),
            words => {
                let words: Vec<String> =
                    words.iter().map(|(n, word)| format!("{n} {word}")).collect();
                words.join(", ")
            }
        };
        if self.negative { format!("{end}, reported as not delivered") } else { end }
    }
}

impl Event {
    /// Its kind and details in words.
    pub(super) fn words(&self) -> String {
        ended(&self.kind, &self.why())
    }

    /// By which operator, and the details.
    fn why(&self) -> String {
        let by = self.operator.as_ref().map(|by| format!("by {by}"));
        let detail = Some(self.detail.clone()).filter(|detail| !detail.is_empty());
        by.into_iter().chain(detail).collect::<Vec<_>>().join(": ")
    }
}

/// An end in words: the kind of event, and why, if that is known. An operator is named once.
fn ended(kind: &str, why: &str) -> String {
    let kind = kind.strip_prefix("operator_").filter(|_| why.starts_with("by ")).unwrap_or(kind);
    let kind = kind.replace('_', " ");
    match why {
        "" => kind,
        by if by.starts_with("by ") => format!("{kind} {by}"),
        why => format!("{kind}: {why}"),
    }
}

/// The names in a list, the first few of them.
fn named(list: &[(String, Utc)]) -> String {
    let names: Vec<&str> = list.iter().take(3).map(|(name, _)| name.as_str()).collect();
    let more = if list.len() > 3 { format!(" and {} more", list.len() - 3) } else { String::new() };
    format!("{}{more}", names.join(", "))
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = |list: &[(String, Utc)]| {
            let last = list.iter().map(|(_, at)| *at).max();
            let took = last.zip(self.accepted).map(|(last, from)| last.since(from));
            took.map_or_else(String::new, |took| {
                format!(", {} after it was accepted", super::text::duration(took))
            })
        };
        let mut parts = Vec::new();
        if !self.delivered.is_empty() {
            parts.push(format!(
                "delivered to {}{}",
                named(&self.delivered),
                after(&self.delivered)
            ));
        }
        if !self.transferred.is_empty() {
            let peers = named(&self.transferred);
            parts.push(format!("confirmed by {peers}{}", after(&self.transferred)));
        }
        parts.extend(self.ended.iter().take(3).map(|(kind, why)| ended(kind, why)));
        if self.ended.len() > 3 {
            parts.push(format!("{} more ends", self.ended.len() - 3));
        }
        match (self.waiting, &self.last) {
            (Some(0), _) => {}
            (Some(1), Some((words, _))) => parts.push(format!("waits here; last {words}")),
            (Some(1), None) => parts.push("waits here".to_owned()),
            (Some(n), _) => parts.push(format!("{n} copies wait here")),
            (None, _) if parts.is_empty() => parts.push("its end is not known here".to_owned()),
            (None, _) => {}
        }
        if parts.is_empty() {
            parts.push("accepted; no copy was queued".to_owned());
        }
        match (self.reports, self.negative) {
            (0, _) => {}
            (_, true) => parts.push("reported as not delivered".to_owned()),
            (1, false) => parts.push("reported".to_owned()),
            (n, false) => parts.push(format!("{n} reports")),
        }
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_names_the_operator_and_has_no_colon_without_details() {
        let step = |kind: &'static str, operator: Option<&str>, detail: &str| Event {
            kind: kind.into(),
            entry: Some(7),
            operator: operator.map(str::to_owned),
            detail: detail.to_owned(),
            ..Event::default()
        };
        let words = |step: Event| {
            let begun = Event { kind: "submitted".into(), ..Event::default() };
            Outcome::from_steps(&[begun, step]).to_string()
        };
        assert_eq!(words(step("operator_deleted", Some("alice"), "")), "deleted by alice");
        assert_eq!(
            words(step("operator_expired", Some("alice"), "late")),
            "expired by alice: late"
        );
        assert_eq!(words(step("operator_deleted", None, "")), "operator deleted");
        assert_eq!(words(step("expired", None, "")), "expired");
        assert_eq!(words(step("expired", None, "its time is over")), "expired: its time is over");
        let failed = |detail: &str| words(step("delivery_failed", None, detail));
        assert_eq!(failed("for good: not cleared"), "delivery failed: for good: not cleared");
        assert_eq!(failed("error 5"), "waits here; last delivery failed: error 5");
    }
}
