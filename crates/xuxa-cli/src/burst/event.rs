//! A line of an MTA's event log, as far as a burst looks at it.

use p1::names::ORAddress;
use serde::Deserialize;

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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
    /// It goes another way: this copy is no more.
    Rerouted,
    /// It will not reach a recipient.
    NonDelivery,
}

/// One event that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Microseconds since the Unix epoch, when the MTA handled it.
    pub time_us: u64,
    pub mta: String,
    pub kind: Kind,
    pub mts_identifier: String,
    /// The copy it is about, within the MTA.
    pub entry: Option<String>,
    pub peer: Option<String>,
    /// Who was delivered to.
    pub recipient: Option<ORAddress>,
}

#[derive(Deserialize)]
struct Line {
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

/// What a line turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Event(Event),
    /// An event of no matter here.
    Other,
    /// So many lines are missing here: the MTA could not write them.
    Lost(u64),
    /// No line of an event log.
    Garbage,
}

impl Read {
    pub(crate) fn of(line: &[u8]) -> Read {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            return Read::Garbage;
        };
        let kind = match line.event.as_str() {
            "submitted" => Kind::Accepted,
            "transfer_started" => Kind::TransferStarted,
            "transfer_confirmed" => Kind::TransferConfirmed,
            "received" => Kind::Received,
            "delivered" => Kind::Delivered,
            "rerouted" => Kind::Rerouted,
            "non_delivery" | "expired" | "given_up" => Kind::NonDelivery,
            "lines_lost" => return Read::Lost(line.count),
            _ => return Read::Other,
        };
        let Some(mts_identifier) = line.mts_id else {
            return Read::Other;
        };
        // The detail of a delivery is "to ADDRESS".
        let to = line.detail.as_deref().and_then(|detail| detail.strip_prefix("to "));
        let recipient = match kind {
            Kind::Delivered => to.and_then(|address| address.parse().ok()),
            _ => None,
        };
        Read::Event(Event {
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
        let Read::Event(event) = Read::of(line) else { panic!("{:?}", Read::of(line)) };
        assert_eq!(event.time_us, 1_767_323_045_000_006);
        assert_eq!((event.mta.as_str(), event.kind), ("MTA-A", Kind::TransferStarted));
        assert_eq!((event.entry.as_deref(), event.peer.as_deref()), (Some("17"), Some("act")));
        let to = br#"{"time_us":1,"mta":"A","event":"delivered","mts_id":"x","detail":"to /c=it/admd=net/s=a"}"#;
        let address: ORAddress = "/S=A/ADMD=NET/C=IT".parse().unwrap();
        let Read::Event(event) = Read::of(to) else { panic!("{:?}", Read::of(to)) };
        assert_eq!(event.recipient.unwrap().attributes(), address.attributes());
        let lost = br#"{"time_us":1,"mta":"A","event":"lines_lost","count":7}"#;
        assert_eq!(Read::of(lost), Read::Lost(7));
        let number = br#"{"time_us":1,"mta":"A","event":"delivered","mts_id":"x","entry":17}"#;
        assert!(matches!(Read::of(number), Read::Event(e) if e.entry.as_deref() == Some("17")));
        for other in [
            &br#"{"time_us":1,"mta":"A","event":"held","mts_id":"x"}"#[..],
            br#"{"time_us":1,"mta":"A","event":"delivered","entry":"3"}"#,
        ] {
            assert_eq!(Read::of(other), Read::Other);
        }
        for garbage in [&b"{\"time_us\":1,\"event\":\"deliv"[..], b"", b"17", b"\xff\xfe", b"{}"] {
            assert_eq!(Read::of(garbage), Read::Garbage);
        }
    }
}
