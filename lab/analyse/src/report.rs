//! What was found, as plain data. Sizes are in octets, times in nanoseconds.

use crate::tcp::TcpCounts;
use crate::{LinkType, Mean, Received, Series, Summary, Time};
use base::Precedence;
use dscp::Dscp;
use std::net::IpAddr;

/// Where packets were captured: an interface of a file, or a live one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// As the caller named it.
    pub name: String,
    /// The header that each frame begins with.
    pub link: LinkType,
    /// The first and the last packet.
    pub span: Option<(Time, Time)>,
    /// Frames of any kind.
    pub frames: u64,
}

/// Packets, and their octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Their octets from the IP header on.
    pub octets: u64,
    /// Octets of their frames: with link headers.
    pub frame_octets: u64,
}

impl Volume {
    pub(crate) fn push(&mut self, octets: u32, frame: u32) {
        self.packets += 1;
        self.octets += u64::from(octets);
        self.frame_octets += u64::from(frame);
    }
}

/// What a behaviour aggregate had in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Packets.
    pub packets: u64,
    /// Octets from the IP header on.
    pub octets: u64,
    /// Segments of TCP sent again.
    pub retransmissions: u64,
    /// Round-trip times, in nanoseconds.
    pub round_trip: Mean,
}

impl crate::series::Bin for Interval {
    fn add(&mut self, other: &Interval) {
        self.packets += other.packets;
        self.octets += other.octets;
        self.retransmissions += other.retransmissions;
        crate::series::Bin::add(&mut self.round_trip, &other.round_trip);
    }
}

/// All packets with one code point at one point.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// The code point.
    pub dscp: Dscp,
    /// Packets and octets.
    pub volume: Volume,
    /// The first and the last packet.
    pub span: (Time, Time),
    /// Directions of flows that began with this code point.
    pub flows: u64,
    /// Of TCP; retransmissions and the like, without what is only known at a flow's end.
    pub tcp: TcpCounts,
    /// From here to the receiver and back.
    pub round_trip: Summary,
    /// Numbered packets of `lab load` that passed, and that should have.
    pub numbered: (u64, u64),
    /// By interval.
    pub series: Series<Interval>,
}

/// What a flow carries, as far as it was recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Application {
    /// Something else.
    #[default]
    Unknown,
    /// TPKT with something unknown on it.
    Tpkt,
    /// Message transfer.
    P1,
    /// Submission and delivery.
    P3,
    /// Access to a message store.
    P7,
    /// Load of `lab load`.
    Load,
}

impl Application {
    /// A short name; none of what was not recognised.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Application::Unknown => None,
            Application::Tpkt => Some("tpkt"),
            Application::P1 => Some("p1"),
            Application::P3 => Some("p3"),
            Application::P7 => Some("p7"),
            Application::Load => Some("lab-load"),
        }
    }
}

/// Why a flow's row is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// TCP closed or reset it.
    Closed,
    /// Its ports were used again.
    Replaced,
    /// There were too many flows, and it had been idle for longest.
    Evicted,
    /// The capture ended.
    Capture,
}

impl Over {
    /// A word.
    pub fn name(self) -> &'static str {
        match self {
            Over::Closed => "closed",
            Over::Replaced => "replaced",
            Over::Evicted => "evicted",
            Over::Capture => "capture",
        }
    }
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The address.
    pub address: IpAddr,
    /// The port, where the protocol has ports.
    pub port: Option<u16>,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.address, self.port) {
            (address, None) => write!(f, "{address}"),
            (IpAddr::V4(address), Some(port)) => write!(f, "{address}:{port}"),
            (IpAddr::V6(address), Some(port)) => write!(f, "[{address}]:{port}"),
        }
    }
}

/// One direction of a flow at one point.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its point's place.
    pub point: usize,
    /// The transport protocol.
    pub protocol: u8,
    /// Address and port of the sender.
    pub source: Endpoint,
    /// Address and port of the receiver.
    pub destination: Endpoint,
    /// The application protocol that was recognised.
    pub application: Application,
    /// The first and the last packet.
    pub span: (Time, Time),
    /// Packets and octets.
    pub volume: Volume,
    /// Octets behind the headers of TCP and UDP.
    pub payload_octets: u64,
    /// Its code points, and the packets of each.
    pub marks: Vec<(Dscp, u64)>,
    /// Of TCP.
    pub tcp: Option<TcpCounts>,
    /// Of TCP: from here to the receiver and back.
    pub round_trip: Summary,
    /// Of `lab load`.
    pub numbered: Option<Received>,
    /// Of `lab load` with `--clock realtime`: from the sender's clock to this point's.
    pub delay: Summary,
    /// The event that completed the row.
    pub over: Over,
    /// Octets from the IP header on, by interval.
    pub series: Series<u64>,
}

/// How the transfer of a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferOutcome {
    /// The receiver has confirmed it.
    Confirmed,
    /// The sender has ended it; no confirm was seen.
    Sent,
    /// Interrupted, to be resumed.
    Interrupted,
    /// Given up.
    Discarded,
    /// The association, the flow or the capture ended within it, or what was captured has a gap that
    /// hides its end.
    Broken,
}

impl TransferOutcome {
    /// A word.
    pub fn name(self) -> &'static str {
        match self {
            TransferOutcome::Confirmed => "confirmed",
            TransferOutcome::Sent => "sent",
            TransferOutcome::Interrupted => "interrupted",
            TransferOutcome::Discarded => "discarded",
            TransferOutcome::Broken => "broken",
        }
    }
}

/// The kind of an MTS-APDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// A message.
    Message,
    /// A probe.
    Probe,
    /// A report.
    Report,
}

/// The fields of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Message, probe or report.
    pub kind: TransferKind,
    /// The MTS identifier.
    pub identifier: String,
    /// The precedence, where the envelope has a qualifier beside its priority.
    pub precedence: Option<Precedence>,
    /// The priority of a message: non-urgent, normal, urgent.
    pub priority: Option<&'static str>,
}

/// The transfer of one message: an activity of a session.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its point's place.
    pub point: usize,
    /// Address and port of the sender.
    pub source: Endpoint,
    /// Address and port of the receiver.
    pub destination: Endpoint,
    /// From its start to its confirm (or what else ended it).
    pub span: (Time, Time),
    /// The time at which the sender's last octet passed.
    pub sent: Option<Time>,
    /// Octets transferred: envelope and content.
    pub octets: u64,
    /// The code points of its packets.
    pub marks: Vec<Dscp>,
    /// Segments sent again meanwhile in its direction.
    pub retransmissions: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Whether it resumes an interrupted activity.
    pub resumed: bool,
    /// Whether octets are missing that were not captured.
    pub gaps: bool,
    /// The end of the transfer, as far as it was captured.
    pub outcome: TransferOutcome,
    /// The fields of the envelope, where it could be read.
    pub envelope: Option<Envelope>,
    /// Octets transferred, by interval.
    pub series: Series<u64>,
}

/// Packets with one code point between two points that both captured them.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The point that comes first on their path.
    pub from: usize,
    /// The next one that captured them.
    pub to: usize,
    /// Their code point at the first.
    pub dscp: Dscp,
    /// The number of packets that were seen at both points.
    pub packets: u64,
    /// How many of the same flows were seen at the first alone, between ones that were seen at both.
    pub lost: u64,
    /// From the one to the other, by the clocks of both.
    pub delay: Summary,
    /// Interarrival jitter (RFC 3550) between the two: mean and most, in nanoseconds.
    pub jitter: Option<(f64, f64)>,
    /// Other code points that they had at the second, and how many.
    pub remarked: Vec<(Dscp, u64)>,
    /// Delay by interval.
    pub series: Series<Mean>,
}

impl Hop {
    /// How many had their code point set to 0 on the path.
    pub fn bleached(&self) -> u64 {
        let to_zero = self.remarked.iter().filter(|(to, _)| to.number() == 0);
        to_zero.map(|(_, packets)| packets).sum()
    }
}

/// What was counted of the capture as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames of any kind.
    pub frames: u64,
    /// IP packets.
    pub packets: u64,
    /// Frames without an IP packet.
    pub not_ip: u64,
    /// Frames whose link header is cut off.
    pub cut: u64,
    /// Frames of a link type that is not read.
    pub unknown_link: u64,
    /// IP headers that are cut off or contradict themselves.
    pub broken: u64,
    /// Packets of which not all octets were captured.
    pub truncated: u64,
    /// Directions of flows whose rows were complete.
    pub flows: u64,
    /// Flows that were evicted before they ended.
    pub flows_evicted: u64,
    /// Messages whose rows were complete.
    pub messages: u64,
    /// TPKT connections that were not followed, as too many were.
    pub associations_passed: u64,
    /// Packets that were forgotten before the other points could show them, as too many were in transit.
    pub sightings_evicted: u64,
    /// Points beyond those that are distinguished.
    pub points_passed: u64,
}
