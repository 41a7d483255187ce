//! What arrives over P1 (X.411 14.3, 14.4).

use crate::dedupe::{REMEMBERED, arrival_keys};
use crate::outcome::{Accepted, Arrival, Note, NoteKind, Seen};
use crate::split::Origin;
use crate::subject::Carried;
use crate::{Content, Engine};
use base::Utc;
use bytes::Bytes;
use p1::apdu::{MtsApduHead, Report};

impl Engine {
    /// Takes what a peer transferred. `seen` says for each of [`arrival_keys`] whether it is
    /// remembered; what is remembered is dropped, the rest goes its way.
    ///
    /// A message that has looped comes with a longer trace and so with another key than its first
    /// visit had: it is not dropped as a duplicate but reported as a loop.
    pub fn accept(
        &mut self,
        now: Utc,
        head: MtsApduHead,
        content: &Content,
        seen: &[bool],
    ) -> Arrival {
        let keys = arrival_keys(&head);
        let is_new = |n: usize| !seen.get(n).copied().unwrap_or(false);
        let remembered = keys.iter().enumerate().filter(|(n, _)| is_new(*n)).map(|(_, key)| Seen {
            key: *key,
            until: now + REMEMBERED,
            record: Bytes::new(),
        });
        let remembered: Vec<Seen> = remembered.collect();
        let mut notes = Vec::new();
        let repeated = keys.len() - remembered.len();
        if repeated > 0 {
            let text = format!("{repeated} of {} taken before", keys.len());
            notes.push(Note::new(NoteKind::Duplicate, text));
        }
        let (message, mut accepted) = match head {
            MtsApduHead::Message(e) => {
                let message = e.message_identifier.to_string();
                let carried = without_seen(Carried::Message(e), seen);
                (message, self.take(now, carried, Some(content), &mut notes))
            }
            MtsApduHead::Probe(e) => {
                let message = e.probe_identifier.to_string();
                let carried = without_seen(Carried::Probe(e), seen);
                (message, self.take(now, carried, None, &mut notes))
            }
            MtsApduHead::Report(report) => {
                let message = report.envelope.report_identifier.to_string();
                (message, self.take_report(now, *report, !is_new(0), &mut notes))
            }
        };
        accepted.seen = remembered;
        Arrival { accepted, message, notes }
    }

    fn take(
        &mut self,
        now: Utc,
        carried: Carried,
        content: Option<&Content>,
        notes: &mut Vec<Note>,
    ) -> Accepted {
        if !carried.subject().recipients.iter().any(|r| r.indicators.responsible()) {
            return Accepted::default();
        }
        self.distribute(now, carried, content, Origin::Transfer, notes)
    }

    fn take_report(
        &mut self,
        now: Utc,
        report: Report,
        repeated: bool,
        notes: &mut Vec<Note>,
    ) -> Accepted {
        if repeated {
            return Accepted::default();
        }
        let level = self.policy.relayed_report();
        let entry = self.forward_report(now, report, level, notes);
        Accepted { entries: entry.into_iter().collect(), ..Accepted::default() }
    }
}

/// Takes responsibility away for what was accepted before.
fn without_seen(mut carried: Carried, seen: &[bool]) -> Carried {
    let responsible = carried.recipients_mut().iter_mut().filter(|r| r.indicators.responsible());
    for (recipient, seen) in responsible.zip(seen) {
        if *seen {
            recipient.indicators = recipient.indicators.with_responsibility(false);
        }
    }
    carried
}
