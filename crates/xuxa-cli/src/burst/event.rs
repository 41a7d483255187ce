//! A line of an MTA's event log: the fields that a burst uses.

use p1::names::ORAddress;
use serde::Deserialize;

/// The kind of an event of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// Accepted and committed.
    Accepted,
    /// Its transfer to the next MTA began.
    TransferStarted,
    /// The next MTA confirmed it.
    TransferConfirmed,
    /// The next MTA has committed it.
    Received,
    /// A recipient has confirmed it.
    Delivered,
    /// The copy was rerouted: its entry has ended.
    Rerouted,
    /// It will not reach a recipient.
    NonDelivery,
}

/// An event of a message, as a burst uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageEvent {
    /// Microseconds since the Unix epoch, when the MTA handled it.
    pub time_us: u64,
    pub mta: String,
    pub kind: EventKind,
    pub mts_identifier: String,
    /// The queue entry of the copy at this MTA.
    pub entry: Option<String>,
    pub peer: Option<String>,
    /// The recipient of a delivery.
    pub recipient: Option<ORAddress>,
}

#[derive(Deserialize)]
struct EventLine {
    time_us: u64,
    #[serde(default)]
    mta: String,
    event: String,
    mts_id: Option<String>,
    entry: Option<serde_json::Value>,
    peer: Option<String>,
    detail: Option<String>,
    #[serde(default)]
    count: u64,
}

/// The result of reading a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParsedLine {
    Event(MessageEvent),
    /// An event that a burst does not use.
    Other,
    /// The number of lines missing here, which the MTA could not write.
    Lost(u64),
    /// Not a line of an event log.
    Garbage,
}

impl ParsedLine {
    pub(crate) fn from_line(line: &[u8]) -> ParsedLine {
        let Ok(line) = serde_json::from_slice::<EventLine>(line) else {
            return ParsedLine::Garbage;
        };
        let kind = match line.event.as_str() {
            "submitted" => EventKind::Accepted,
            "transfer_started" => EventKind::TransferStarted,
            "transfer_confirmed" => EventKind::TransferConfirmed,
            "received" => EventKind::Received,
            "delivered" => EventKind::Delivered,
            "rerouted" => EventKind::Rerouted,
            "non_delivery" | "expired" | "given_up" => EventKind::NonDelivery,
            "lines_lost" => return ParsedLine::Lost(line.count),
            _ => return ParsedLine::Other,
        };
        let Some(mts_identifier) = line.mts_id else {
            return ParsedLine::Other;
        };
        // The detail of a delivery is "to ADDRESS".
        let to = line.detail.as_deref().and_then(|detail| detail.strip_prefix("to "));
        let recipient = match kind {
            EventKind::Delivered => to.and_then(|address| address.parse().ok()),
            _ => None,
        };
        ParsedLine::Event(MessageEvent {
            recipient,
            time_us: line.time_us,
            mta: line.mta,
            kind,
            mts_identifier,
            entry: line.entry.map(|entry| match entry {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            }),
            peer: line.peer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_far_as_they_matter() {
        let line = br#"{"time":"2026-01-02T03:04:05.000006Z","time_us":1767323045000006,"mta":"MTA-A","event":"transfer_started","mts_id":"[/C=IT/;A.1]","entry":"17","peer":"act","bytes":1234,"new":{"key":[1]}}"#;
        let ParsedLine::Event(event) = ParsedLine::from_line(line) else {
            panic!("{:?}", ParsedLine::from_line(line))
        };
        assert_eq!(event.time_us, 1_767_323_045_000_006);
        assert_eq!((event.mta.as_str(), event.kind), ("MTA-A", EventKind::TransferStarted));
        assert_eq!((event.entry.as_deref(), event.peer.as_deref()), (Some("17"), Some("act")));
        let to = br#"{"time_us":1,"mta":"A","event":"delivered","mts_id":"x","detail":"to /c=it/admd=net/s=a"}"#;
        let address: ORAddress = "/S=A/ADMD=NET/C=IT".parse().unwrap();
        let ParsedLine::Event(event) = ParsedLine::from_line(to) else {
            panic!("{:?}", ParsedLine::from_line(to))
        };
        assert_eq!(event.recipient.unwrap().attributes(), address.attributes());
        let lost = br#"{"time_us":1,"mta":"A","event":"lines_lost","count":7}"#;
        assert_eq!(ParsedLine::from_line(lost), ParsedLine::Lost(7));
        let number = br#"{"time_us":1,"mta":"A","event":"delivered","mts_id":"x","entry":17}"#;
        assert!(
            matches!(ParsedLine::from_line(number), ParsedLine::Event(e) if e.entry.as_deref() == Some("17"))
        );
        for other in [
            &br#"{"time_us":1,"mta":"A","event":"held","mts_id":"x"}"#[..],
            br#"{"time_us":1,"mta":"A","event":"delivered","entry":"3"}"#,
        ] {
            assert_eq!(ParsedLine::from_line(other), ParsedLine::Other);
        }
        for garbage in [&b"{\"time_us\":1,\"event\":\"deliv"[..], b"", b"17", b"\xff\xfe", b"{}"] {
            assert_eq!(ParsedLine::from_line(garbage), ParsedLine::Garbage);
        }
    }
}
