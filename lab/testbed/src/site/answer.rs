//! The output of `xuxa --json` and `mta status --json`, as far as tests and the demo read it.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// `xuxa send --json`.
#[derive(Clone, Debug, Deserialize)]
pub struct SendOutput {
    /// Accepted, in order of submission.
    pub messages: Vec<SubmittedMessage>,
    /// Sent completely, and not answered.
    pub in_doubt: Vec<UnsentMessage>,
    /// Answered with an error.
    pub refused: Vec<UnsentMessage>,
    /// Not sent completely.
    pub not_sent: Vec<UnsentMessage>,
}

/// A message that was not accepted, or whose acceptance the client does not know.
#[derive(Clone, Debug, Deserialize)]
pub struct UnsentMessage {
    /// Content identifier.
    pub content_identifier: String,
    /// Date-time group, as `xuxa send --dtg` takes it.
    pub dtg: String,
    /// Precedence.
    pub precedence: String,
    /// Octets of the body.
    pub size: u64,
    /// The number of times it was submitted.
    pub tries: u32,
    /// The reason for which it was not accepted.
    pub reason: String,
}

/// A message the MTA accepted.
#[derive(Clone, Debug, Deserialize)]
pub struct SubmittedMessage {
    /// MTS identifier.
    pub mts_identifier: String,
    /// Content identifier.
    pub content_identifier: String,
    /// Precedence.
    pub precedence: String,
    /// Octets of the body.
    pub size: u64,
    /// Octets of the content.
    pub content_length: u64,
    /// Of the content, in hexadecimal.
    pub content_sha256: String,
    /// When its first octet was sent, RFC 3339.
    pub submitted_at: String,
    /// From its first octet to the answer, in milliseconds.
    pub submit_ms: f64,
    /// The number of times it was submitted.
    pub tries: u32,
}

/// `xuxa receive --json`.
#[derive(Clone, Debug, Deserialize)]
pub struct ReceiveOutput {
    /// In order of delivery.
    pub deliveries: Vec<DeliveredItem>,
}

/// A message or a report.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum DeliveredItem {
    /// A message.
    Message(Box<DeliveredMessage>),
    /// A report.
    Report(DeliveryReport),
}

/// A delivered message.
#[derive(Clone, Debug, Deserialize)]
pub struct DeliveredMessage {
    /// MTS identifier.
    pub mts_identifier: String,
    /// O/R address.
    pub originator: String,
    /// From the heading.
    pub precedence: Option<String>,
    /// The priority of P1.
    pub priority: String,
    /// `P772` or `P22`.
    pub content_type: String,
    /// Content identifier.
    pub content_identifier: Option<String>,
    /// Subject.
    pub subject: Option<String>,
    /// Recipients for action.
    #[serde(default)]
    pub to: Vec<String>,
    /// Date-time group of the heading.
    pub dtg: Option<String>,
    /// Subject indicator codes.
    pub sics: Vec<String>,
    /// `exercise`, `operation`, `project` or `drill`, with its name after `=`.
    pub message_type: Option<String>,
    /// Octets of the body.
    pub size: u64,
    /// Octets of the content.
    pub content_length: u64,
    /// Of the content, in hexadecimal.
    pub content_sha256: String,
    /// When the client had received and kept it, RFC 3339.
    pub received_at: String,
    /// Whether it was delivered before.
    pub duplicate: bool,
    /// The beginning of the text.
    pub text: Option<String>,
    /// Whether another content was delivered under the same identifier.
    #[serde(default)]
    pub identifier_reused: bool,
    /// The file of the content.
    pub file: Option<String>,
    /// The files extracted from it.
    #[serde(default)]
    pub extracted: Vec<String>,
}

/// A delivered report.
#[derive(Clone, Debug, Deserialize)]
pub struct DeliveryReport {
    /// MTS identifier of the subject.
    pub mts_identifier: String,
    /// Content identifier of the subject.
    pub content_identifier: Option<String>,
    /// One element for each recipient.
    pub recipients: Vec<ReportedRecipient>,
}

/// The result for one recipient.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedRecipient {
    /// O/R address.
    pub recipient: String,
    /// Delivered or not.
    pub delivered: bool,
    /// The time of delivery, RFC 3339.
    pub delivery_time: Option<String>,
    /// Reason code of a non-delivery.
    pub reason: Option<String>,
    /// Diagnostic code of a non-delivery.
    pub diagnostic: Option<String>,
}

impl ReceiveOutput {
    /// The messages.
    pub fn messages(&self) -> impl Iterator<Item = &DeliveredMessage> {
        self.deliveries.iter().filter_map(|delivery| match delivery {
            DeliveredItem::Message(message) => Some(&**message),
            DeliveredItem::Report(_) => None,
        })
    }

    /// The reports.
    pub fn reports(&self) -> impl Iterator<Item = &DeliveryReport> {
        self.deliveries.iter().filter_map(|delivery| match delivery {
            DeliveredItem::Report(report) => Some(report),
            DeliveredItem::Message(_) => None,
        })
    }
}

/// `mta status --json`.
#[derive(Clone, Debug, Deserialize)]
pub struct MtaStatus {
    /// MTA name.
    pub mta: String,
    /// Whether it is still reading its queue after the start.
    #[serde(default)]
    pub reading_queue: bool,
    /// Whether it was asked to stop.
    pub stopping: bool,
    /// Room on the disk of its data directory.
    #[serde(default)]
    pub disk: Option<DiskStatus>,
    /// Peers.
    pub peers: Vec<PeerStatus>,
    /// Mailboxes with waiting deliveries or bound users.
    pub mailboxes: Vec<MailboxStatus>,
    /// Counters since the start.
    pub counters: MtaCounters,
}

/// Room on the disk of a data directory.
#[derive(Clone, Debug, Deserialize)]
pub struct DiskStatus {
    /// The highest precedence that is refused for lack of room.
    #[serde(default)]
    pub refused: Option<String>,
    /// The highest precedence for which the store had no room.
    #[serde(default)]
    pub no_room_for: Option<String>,
}

/// A peer.
#[derive(Clone, Debug, Deserialize)]
pub struct PeerStatus {
    /// Name.
    pub name: String,
    /// Channels.
    pub channels: Vec<ChannelStatus>,
}

/// A channel.
#[derive(Clone, Debug, Deserialize)]
pub struct ChannelStatus {
    /// Name.
    pub name: String,
    /// Associations.
    pub associations: Vec<AssociationStatus>,
    /// Number of waiting messages by precedence.
    pub queued: BTreeMap<String, u64>,
    /// What there is of each precedence.
    #[serde(default)]
    pub levels: Vec<LevelStatus>,
    /// Why the last association was not opened, or was lost.
    pub last_error: Option<String>,
}

/// What there is of one precedence for a channel.
#[derive(Clone, Debug, Deserialize)]
pub struct LevelStatus {
    /// How many are in transfer, or were when their association was lost and wait for its recovery.
    pub in_transfer: u64,
}

/// An association.
#[derive(Clone, Debug, Deserialize)]
pub struct AssociationStatus {
    /// Identifier in the log.
    pub id: String,
    /// `initiator` or `responder`.
    pub role: String,
    /// `connecting`, `opening`, `idle`, `sending`, `receiving`, `releasing`.
    pub state: String,
    /// The DSCP of its channel.
    #[serde(default)]
    pub dscp_expected: Option<u8>,
    /// The DSCP with which the peer's TCP handshake arrived, where that can be observed.
    #[serde(default)]
    pub dscp_seen: Option<u8>,
    /// Octets of content transferred so far.
    pub bytes_done: Option<u64>,
    /// MTS identifier of the message in transfer.
    #[serde(default)]
    pub message: Option<String>,
    /// Octets the peer confirmed of it, envelope included.
    #[serde(default)]
    pub bytes_confirmed: Option<u64>,
}

impl AssociationStatus {
    /// The message that it sends, and how much of it the peer has confirmed.
    pub fn confirmed(&self) -> Option<(&str, u64)> {
        Some((self.message.as_deref()?, self.bytes_confirmed?))
    }
}

/// A mailbox.
#[derive(Clone, Debug, Deserialize)]
pub struct MailboxStatus {
    /// O/R address.
    pub address: String,
    /// Number of waiting deliveries by precedence.
    pub queued: BTreeMap<String, u64>,
    /// Users bound now.
    pub bound: u64,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct MtaCounters {
    /// Submitted by users.
    pub submitted: u64,
    /// Received over P1.
    pub received: u64,
    /// Confirmed by peers.
    pub transferred: u64,
    /// Confirmed by users.
    pub delivered: u64,
    /// Reports made.
    pub reports_made: u64,
    /// Duplicates dropped.
    pub duplicates: u64,
}

impl MtaStatus {
    /// All associations with peers.
    pub fn associations(&self) -> impl Iterator<Item = &AssociationStatus> {
        self.peers.iter().flat_map(|peer| &peer.channels).flat_map(|channel| &channel.associations)
    }

    /// Messages that wait for peers.
    pub fn queued(&self) -> u64 {
        let channels = self.peers.iter().flat_map(|peer| &peer.channels);
        channels.flat_map(|channel| channel.queued.values()).sum()
    }

    /// Messages in transfer to peers, and those that wait for the recovery of their association.
    pub fn in_transfer(&self) -> u64 {
        let channels = self.peers.iter().flat_map(|peer| &peer.channels);
        channels.flat_map(|channel| &channel.levels).map(|level| level.in_transfer).sum()
    }

    /// Messages that wait for users.
    pub fn waiting(&self) -> u64 {
        self.mailboxes.iter().flat_map(|mailbox| mailbox.queued.values()).sum()
    }

    /// Users bound now.
    pub fn bound(&self) -> u64 {
        self.mailboxes.iter().map(|mailbox| mailbox.bound).sum()
    }
}

/// The time from `from` to `to`, which is later and less than a day apart. Both have the form that the
/// programs write (`2026-05-04T03:02:01.000123Z`); otherwise `None`.
pub fn elapsed(from: &str, to: &str) -> Option<Duration> {
    const DAY: u64 = 86_400_000_000;
    let of_day = |text: &str| -> Option<u64> {
        let (_, time) = text.strip_suffix('Z')?.split_once('T')?;
        let (clock, fraction) = time.split_once('.')?;
        let mut seconds = 0u64;
        for part in clock.split(':') {
            seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
        }
        let micros: u64 = fraction.parse().ok().filter(|_| fraction.len() == 6)?;
        seconds.checked_mul(1_000_000)?.checked_add(micros)
    };
    let (from, to) = (of_day(from)?, of_day(to)?);
    Some(Duration::from_micros((to + DAY).checked_sub(from)? % DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_midnight() {
        let ms = |from: &str, to: &str| elapsed(from, to).map(|d| d.as_micros());
        let (a, b) = ("2026-05-04T03:02:01.000123Z", "2026-05-04T03:02:03.000124Z");
        assert_eq!(ms(a, b), Some(2_000_001));
        let (a, b) = ("2026-05-04T23:59:59.999999Z", "2026-05-05T00:00:00.000001Z");
        assert_eq!(ms(a, b), Some(2));
        assert_eq!(ms("soon", b), None);
    }

    #[test]
    fn messages_and_reports_are_distinguished() {
        let json = r#"{"deliveries":[{"kind":"report","mts_identifier":"x","recipients":
            [{"recipient":"/S=A","delivered":false,"reason":"unable-to-transfer"}]}]}"#;
        let received: ReceiveOutput = serde_json::from_str(json).unwrap();
        assert_eq!((received.messages().count(), received.reports().count()), (0, 1));
    }
}
