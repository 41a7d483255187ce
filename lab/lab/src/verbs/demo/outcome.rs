//! The outcome of the demo's messages, and the marks of their packets.

use comfy_table::{CellAlignment, Table, TableComponent, presets};
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use testbed::CapturedSegment;
use testbed::answer::{DeliveredMessage, ReceiveOutput, SubmittedMessage, elapsed};

/// The canned sizes, decimal.
pub(super) const SIZES: [&str; 5] = ["1kB", "10kB", "100kB", "1MB", "10MB"];
/// Lowest first.
pub(super) const PRECEDENCES: [&str; 6] =
    ["deferred", "routine", "priority", "immediate", "flash", "override"];

/// A channel of the published study, with Override on one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    name: &'static str,
    precedences: &'static [&'static str],
    port: u16,
    /// 0 to 63; class selectors are multiples of 8 (RFC 2474, 4.2.2).
    dscp: u8,
}

/// As `testbed::PeerSettings::per_precedence` and the plan `paper` have them.
pub(super) const CHANNELS: [Channel; 5] = [
    Channel { name: "routine", precedences: &["deferred", "routine"], port: 5000, dscp: 0 },
    Channel { name: "priority", precedences: &["priority"], port: 5001, dscp: 8 },
    Channel { name: "immediate", precedences: &["immediate"], port: 5002, dscp: 16 },
    Channel { name: "flash", precedences: &["flash"], port: 5003, dscp: 24 },
    Channel { name: "override", precedences: &["override"], port: 5004, dscp: 32 },
];

/// The outcome of all messages.
#[derive(Debug, Default, Serialize)]
pub(super) struct Carried {
    messages: Vec<MessageOutcome>,
    /// Accepted but not delivered.
    lost: usize,
    /// Delivered more than once.
    duplicated: usize,
    /// TCP packets of the channels with another mark than their channel's; `None` on loopback.
    unmarked_packets: Option<usize>,
}

/// The outcome of one message.
#[derive(Debug, Serialize)]
struct MessageOutcome {
    precedence: String,
    /// Octets of the body.
    size: u64,
    channel: &'static str,
    port: u16,
    dscp_expected: u8,
    /// On the packets of its channel from the sending to the receiving site, from its submission to
    /// that of the channel's next message; `None` on loopback. The first message of a channel
    /// answers for what is before it, the last for what follows.
    dscp_seen_out: Option<BTreeSet<u8>>,
    /// And on those in return.
    dscp_seen_back: Option<BTreeSet<u8>>,
    #[serde(serialize_with = "in_ms")]
    submit_to_delivered_ms: Option<Duration>,
    content_matches: bool,
    mts_identifier: String,
    #[serde(skip)]
    content_length: u64,
    /// When its submission began, since 1970.
    #[serde(skip)]
    begin: Duration,
}

impl Carried {
    /// One message, whose submission began at `begin`, and what came in answer.
    pub(super) fn add(
        &mut self,
        begin: Duration,
        sent: &SubmittedMessage,
        received: &ReceiveOutput,
    ) {
        let of_it: Vec<&DeliveredMessage> =
            received.messages().filter(|m| m.mts_identifier == sent.mts_identifier).collect();
        let first = of_it.first();
        self.lost += usize::from(first.is_none());
        self.duplicated += of_it.len().saturating_sub(1);
        let mut channels = CHANNELS.iter();
        let channel = channels.find(|c| c.precedences.contains(&sent.precedence.as_str()));
        self.messages.push(MessageOutcome {
            precedence: sent.precedence.clone(),
            size: sent.size,
            channel: channel.map_or("?", |c| c.name),
            port: channel.map_or(0, |c| c.port),
            dscp_expected: channel.map_or(0, |c| c.dscp),
            dscp_seen_out: None,
            dscp_seen_back: None,
            submit_to_delivered_ms: first.and_then(|m| elapsed(&sent.submitted_at, &m.received_at)),
            content_matches: first.is_some_and(|m| {
                m.content_sha256 == sent.content_sha256 && m.content_length == sent.content_length
            }),
            mts_identifier: sent.mts_identifier.clone(),
            content_length: sent.content_length,
            begin,
        });
    }

    /// What still came after all were delivered.
    pub(super) fn add_late<'a>(&mut self, messages: impl Iterator<Item = &'a DeliveredMessage>) {
        let known: BTreeSet<&str> =
            self.messages.iter().map(|line| line.mts_identifier.as_str()).collect();
        let again = messages.filter(|m| known.contains(m.mts_identifier.as_str())).count();
        self.duplicated += again;
    }

    /// The marks of all packets, those from the sending site apart from those in return.
    pub(super) fn add_marks(&mut self, packets: &[CapturedSegment], sender: IpAddr) {
        for line in &mut self.messages {
            line.dscp_seen_out = Some(BTreeSet::new());
            line.dscp_seen_back = Some(BTreeSet::new());
        }
        let mut unmarked = 0;
        for packet in packets {
            let segment = &packet.segment;
            let ports = [segment.source.port(), segment.destination.port()];
            let Some(channel) = CHANNELS.iter().find(|c| ports.contains(&c.port)) else { continue };
            unmarked += usize::from(segment.dscp != channel.dscp);
            let of_it = || self.messages.iter().enumerate().filter(|(_, l)| l.port == channel.port);
            let latest = of_it().take_while(|(_, line)| line.begin <= packet.at).last();
            let Some((at, _)) = latest.or_else(|| of_it().next()) else { continue };
            let Some(line) = self.messages.get_mut(at) else { continue };
            let is_out = segment.source.ip() == sender;
            let seen = if is_out { &mut line.dscp_seen_out } else { &mut line.dscp_seen_back };
            seen.get_or_insert_default().insert(segment.dscp);
        }
        self.unmarked_packets = Some(unmarked);
    }

    /// Whether all came once and unchanged, and each packet that was seen was marked.
    pub(super) fn is_well(&self) -> bool {
        let identifiers: BTreeSet<&str> =
            self.messages.iter().map(|line| line.mts_identifier.as_str()).collect();
        let count = PRECEDENCES.len() * SIZES.len();
        let is_marked = |line: &MessageOutcome| {
            let seen = [&line.dscp_seen_out, &line.dscp_seen_back];
            seen.into_iter().flatten().all(|seen| *seen == BTreeSet::from([line.dscp_expected]))
        };
        self.lost == 0
            && self.duplicated == 0
            && self.unmarked_packets.unwrap_or(0) == 0
            && self.messages.len() == count
            && identifiers.len() == count
            && self.messages.iter().all(|line| line.content_matches && is_marked(line))
    }

    /// For people.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.remove_style(TableComponent::HorizontalLines);
        table.remove_style(TableComponent::MiddleIntersections);
        table.set_header([
            "precedence",
            "size",
            "channel",
            "port",
            "mark",
            "out",
            "back",
            "delivered ms",
            "kbit/s",
            "hash",
            "MTS identifier",
        ]);
        for line in &self.messages {
            let ms = line.submit_to_delivered_ms.map(|d| d.as_secs_f64() * 1e3);
            let kbit_s = ms.map(|ms| line.content_length as f64 * 8.0 / ms.max(1e-3));
            let number = |n: Option<f64>, digits: usize| {
                n.map_or_else(|| "-".to_owned(), |n| format!("{n:.digits$}"))
            };
            table.add_row([
                line.precedence.clone(),
                decimal(line.size),
                line.channel.to_owned(),
                line.port.to_string(),
                mark(line.dscp_expected),
                marks(line.dscp_seen_out.as_ref()),
                marks(line.dscp_seen_back.as_ref()),
                number(ms, 1),
                number(kbit_s, 0),
                if line.content_matches { "ok" } else { "DIFFERS" }.to_owned(),
                line.mts_identifier.clone(),
            ]);
        }
        for column in [1, 3, 7, 8] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    /// One sentence.
    pub(super) fn verdict(&self) -> String {
        let (all, lost, again) = (self.messages.len(), self.lost, self.duplicated);
        let marks = match self.unmarked_packets {
            Some(unmarked) => format!("{unmarked} packets without their mark"),
            None => "marks not seen (no namespaces here)".to_owned(),
        };
        format!("{all} messages: {lost} lost, {again} delivered twice, {marks}")
    }
}

/// Milliseconds with microseconds, `null` for none.
fn in_ms<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|d| d.as_micros() as f64 / 1e3).serialize(serializer)
}

/// A class selector by its name.
fn mark(dscp: u8) -> String {
    if dscp.is_multiple_of(8) { format!("CS{}", dscp / 8) } else { dscp.to_string() }
}

fn marks(seen: Option<&BTreeSet<u8>>) -> String {
    match seen {
        None => "-".to_owned(),
        Some(seen) if seen.is_empty() => "none".to_owned(),
        Some(seen) => seen.iter().map(|dscp| mark(*dscp)).collect::<Vec<_>>().join(" "),
    }
}

/// A size as people write it, decimal.
fn decimal(octets: u64) -> String {
    match octets {
        1_000_000.. if octets.is_multiple_of(1_000_000) => format!("{} MB", octets / 1_000_000),
        1_000.. if octets.is_multiple_of(1_000) => format!("{} kB", octets / 1_000),
        _ => format!("{octets} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testbed::TcpSegment;

    fn submitted(number: usize, precedence: &str) -> SubmittedMessage {
        serde_json::from_value(serde_json::json!({
            "mts_identifier": format!("id-{number}"), "content_identifier": "c",
            "precedence": precedence, "size": 1_000, "content_length": 1_100,
            "content_sha256": "ab", "submitted_at": "2026-05-04T03:02:01.000000Z",
            "submit_ms": 1.5, "tries": 1,
        }))
        .unwrap()
    }

    fn received(number: usize, sha256: &str, times: usize) -> ReceiveOutput {
        let one = serde_json::json!({
            "kind": "message", "mts_identifier": format!("id-{number}"), "originator": "/S=A",
            "priority": "urgent", "content_type": "P772", "sics": [], "size": 1_000,
            "content_length": 1_100, "content_sha256": sha256,
            "received_at": "2026-05-04T03:02:01.004000Z", "duplicate": false,
        });
        serde_json::from_value(serde_json::json!({ "deliveries": vec![one; times] })).unwrap()
    }

    /// Message n begins in second n.
    fn all(sha256: &str, times: usize) -> Carried {
        let mut carried = Carried::default();
        let names = PRECEDENCES.iter().flat_map(|precedence| [*precedence; SIZES.len()]);
        for (number, precedence) in names.enumerate() {
            let begin = Duration::from_secs(number as u64);
            carried.add(begin, &submitted(number, precedence), &received(number, sha256, times));
        }
        carried
    }

    const SENDER: [u8; 4] = [10, 0, 0, 1];

    fn packet(at: f64, (port, is_out): (u16, bool), dscp: u8) -> CapturedSegment {
        let (here, there) = ((SENDER, 40_000).into(), ([10, 0, 0, 2], port).into());
        let (source, destination) = if is_out { (here, there) } else { (there, here) };
        let segment = TcpSegment { source, destination, dscp, flags: 0, length: 0 };
        CapturedSegment { at: Duration::from_secs_f64(at), segment }
    }

    /// Half a second into each message, one packet each way.
    fn packets() -> Vec<CapturedSegment> {
        let carried = all("ab", 1);
        let lines = carried.messages.iter();
        lines
            .flat_map(|line| {
                let at = line.begin.as_secs_f64() + 0.5;
                [true, false].map(|out| packet(at, (line.port, out), line.dscp_expected))
            })
            .collect()
    }

    #[test]
    fn all_is_well_only_if_each_came_once_and_unchanged() {
        let well = all("ab", 1);
        assert!(well.is_well());
        assert_eq!(well.messages[0].submit_to_delivered_ms, Some(Duration::from_millis(4)));
        assert!(!all("cd", 1).is_well(), "changed");
        assert_eq!(all("ab", 0).lost, 30);
        assert!(!all("ab", 0).is_well(), "lost");
        assert_eq!(all("ab", 2).duplicated, 30);
        let mut late = all("ab", 1);
        late.add_late(received(3, "ab", 1).messages());
        assert!(!late.is_well() && late.verdict().contains("0 lost, 1 delivered twice"));
    }

    #[test]
    fn every_packet_counts_for_the_latest_message_of_its_channel() {
        let with = |extra: &[CapturedSegment]| {
            let mut carried = all("ab", 1);
            carried.add_marks(&[packets(), extra.to_vec()].concat(), SENDER.into());
            carried
        };
        assert!(with(&[]).is_well() && with(&[]).unmarked_packets == Some(0));
        // The handshake of Flash, before any message; its end, after all; and one in the middle of
        // its third message (the 23rd).
        for (at, message) in [(0.1, 20), (99.0, 24), (22.9, 22)] {
            let carried = with(&[packet(at, (5003, false), 8)]);
            assert!(!carried.is_well());
            assert_eq!(carried.unmarked_packets, Some(1));
            let line = &carried.messages[message];
            assert_eq!(line.dscp_seen_back, Some(BTreeSet::from([8, 24])), "{at}");
            assert_eq!(line.dscp_seen_out, Some(BTreeSet::from([24])));
        }
        // Packets on other ports do not count.
        assert!(with(&[packet(3.0, (5010, true), 63)]).is_well());
        let mut silent = all("ab", 1);
        silent.add_marks(&packets()[1..], SENDER.into());
        assert!(!silent.is_well(), "a message without a packet was not seen to be marked");
    }

    #[test]
    fn the_object_has_these_members_and_no_others() {
        let mut carried = all("ab", 1);
        let object = |carried: &Carried| serde_json::to_value(carried).unwrap();
        let before = object(&carried);
        assert!(before["messages"][0]["dscp_seen_out"].is_null());
        assert!(before["unmarked_packets"].is_null());
        carried.add_marks(&packets(), SENDER.into());
        let after = object(&carried);
        let keys = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(keys(&after), ["duplicated", "lost", "messages", "unmarked_packets"]);
        assert_eq!(
            after["messages"][29],
            serde_json::json!({
                "precedence": "override", "size": 1_000, "channel": "override", "port": 5004,
                "dscp_expected": 32, "dscp_seen_out": [32], "dscp_seen_back": [32],
                "submit_to_delivered_ms": 4.0, "content_matches": true, "mts_identifier": "id-29",
            })
        );
    }

    #[test]
    fn sizes_are_decimal_and_marks_have_names() {
        assert_eq!([1_000, 10_000_000, 1_024].map(decimal), ["1 kB", "10 MB", "1024 B"]);
        assert_eq!([0, 24, 46].map(mark), ["CS0", "CS3", "46"]);
        assert_eq!(marks(Some(&BTreeSet::from([0, 8]))), "CS0 CS1");
    }
}
