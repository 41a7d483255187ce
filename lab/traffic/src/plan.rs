//! What is to be sent.

use crate::clock::LoadClock;
use crate::measure::MAX_FLOWS;
use crate::send::pace::MAX_JITTER;
use dscp::Dscp;
use load_header::HEADER;
use router::policy::Span;
use router::time::Rate;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The longest a load lasts.
pub(super) const LONGEST: Duration = Duration::from_secs(3_600);
/// TCP flows of one plan, and flows that are sent back: each has a thread.
pub(super) const MAX_TCP_FLOWS: usize = 64;
/// The longest payload of a packet, in octets.
pub(super) const MAX_PACKET: u32 = 65_000;
/// What Linux takes as the longest payload of a segment, in octets.
pub(super) const SEGMENTS: std::ops::RangeInclusive<u32> = 88..=65_000;
/// The longest block of a stream, in octets.
pub(super) const MAX_BLOCK: u32 = 1 << 20;

/// Flows to be sent together, for a time. In TOML: keys at the top and a table `[[flows]]` for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// The flows that are sent.
    pub flows: Vec<FlowPlan>,
    /// How long, up to an hour; 10 s where absent.
    #[serde(default = "ten_seconds")]
    pub time: Span,
    /// The method by which the sender waits for the time of a packet.
    #[serde(default)]
    pub pacing: Pacing,
    /// The clock of the times in packets.
    #[serde(default)]
    pub clock: LoadClock,
    /// The seed of the jitter.
    #[serde(default)]
    pub seed: u64,
    /// Distinguishes this run from others at the same receiver.
    #[serde(default)]
    pub run: u32,
    /// A sender that is late by up to this catches up; what is beyond is never sent. 100 ms where
    /// absent.
    #[serde(default = "catch_up")]
    pub catch_up: Span,
}

/// One flow, or several that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowPlan {
    /// Address and port of the receiver, IPv4 or IPv6.
    pub to: SocketAddr,
    /// The address that it is sent from; any where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// The transport protocol; UDP where absent.
    #[serde(default)]
    pub transport: Transport,
    /// The rate of each copy of the flow.
    pub rate: Rate,
    /// The octets that the rate counts: of the payload or of whole packets.
    #[serde(default)]
    pub counted: Counted,
    /// Payload of a packet, or length of a block of a stream, in octets: from 40 to 65,000, or to
    /// 1 MiB.
    pub size: u32,
    /// The mark.
    #[serde(default)]
    pub dscp: Dscp,
    /// Each packet is moved by up to so many percent of the interval, 0 to 50.
    #[serde(default)]
    pub jitter: u8,
    /// No more packets than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// It starts so long after the plan.
    #[serde(default)]
    pub start: Span,
    /// The congestion control of a TCP flow; the system's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Most octets of payload in a segment of a TCP flow, 88 to 65,000; as many as the path permits
    /// where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<u32>,
    /// So many flows alike, with a socket each, spread over an interval; 1 where absent.
    #[serde(default = "one")]
    pub copies: usize,
    /// Whether the receiver sends each packet back (`lab load receive --echo`), and the sender
    /// measures the time there and back (UDP only).
    #[serde(default)]
    pub echo: bool,
}

/// The transport protocol of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A packet each time; never waits for the network.
    #[default]
    Udp,
    /// A block each time, as far as the connection takes it.
    Tcp,
}

/// The octets that a rate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// IP packets whole, as routers count. Of a TCP flow the blocks: its segments are the system's.
    #[default]
    Packet,
    /// The payload.
    Payload,
}

/// How the sender waits for the next packet's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// It sleeps: late by some 50 us or more, and leaves the processor to others.
    #[default]
    Sleep,
    /// It looks at the clock again and again: late by a few us, and takes a processor whole.
    Busy,
}

fn ten_seconds() -> Span {
    Span(Duration::from_secs(10))
}

fn catch_up() -> Span {
    Span(Duration::from_millis(100))
}

fn one() -> usize {
    1
}

/// A plan that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct WrongPlan {
    /// The key: `flows[1].size`.
    pub path: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl LoadPlan {
    /// One flow for ten seconds.
    pub fn single(flow: FlowPlan) -> LoadPlan {
        LoadPlan {
            flows: vec![flow],
            time: ten_seconds(),
            pacing: Pacing::Sleep,
            clock: LoadClock::Monotonic,
            seed: 0,
            run: 0,
            catch_up: catch_up(),
        }
    }

    /// The number of flows, copies included.
    pub fn flow_count(&self) -> usize {
        self.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.copies))
    }

    /// Whether it can be carried out.
    ///
    /// # Errors
    /// The first key that is out of range.
    pub fn check(&self) -> Result<(), WrongPlan> {
        let wrong = |path: String, what: String| Err(WrongPlan { path, what });
        if self.time.0.is_zero() || self.time.0 > LONGEST {
            return wrong("time".into(), format!("{}: above 0 and up to an hour", self.time));
        }
        if self.flow_count() == 0 || self.flow_count() > MAX_FLOWS {
            let count = self.flow_count();
            return wrong("flows".into(), format!("{count} flows: 1 to {MAX_FLOWS} with copies"));
        }
        let tcp = self.flows.iter().filter(|flow| flow.transport == Transport::Tcp);
        let tcp: usize = tcp.map(|flow| flow.copies).sum();
        if tcp > MAX_TCP_FLOWS {
            return wrong("flows".into(), format!("{tcp} TCP flows: up to {MAX_TCP_FLOWS}"));
        }
        let echoes: usize =
            self.flows.iter().filter(|flow| flow.echo).map(|flow| flow.copies).sum();
        if echoes > MAX_TCP_FLOWS {
            return wrong("flows".into(), format!("{echoes} echoes: up to {MAX_TCP_FLOWS}"));
        }
        for (number, flow) in self.flows.iter().enumerate() {
            if let Err((key, what)) = flow.check() {
                return wrong(format!("flows[{number}].{key}"), what);
            }
        }
        Ok(())
    }
}

impl FlowPlan {
    /// A UDP flow without jitter, unmarked, at a rate of whole packets.
    pub fn udp(to: SocketAddr, rate: Rate, size: u32) -> FlowPlan {
        FlowPlan {
            to,
            from: None,
            transport: Transport::Udp,
            rate,
            counted: Counted::Packet,
            size,
            dscp: Dscp::CS0,
            jitter: 0,
            packets: None,
            start: Span::default(),
            congestion: None,
            segment: None,
            copies: 1,
            echo: false,
        }
    }

    /// Octets that the rate counts for each packet or block.
    pub fn counted_octets(&self) -> u64 {
        let headers = match (self.counted, self.transport) {
            (Counted::Packet, Transport::Udp) => udp_overhead(self.to.is_ipv4()),
            _ => 0,
        };
        u64::from(self.size) + u64::from(headers)
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let longest = match self.transport {
            Transport::Udp => MAX_PACKET,
            Transport::Tcp => MAX_BLOCK,
        };
        if (self.size as usize) < HEADER || self.size > longest {
            return Err(("size", format!("{}: {HEADER} to {longest} octets", self.size)));
        }
        if self.jitter > MAX_JITTER {
            return Err(("jitter", format!("{}: 0 to {MAX_JITTER} percent", self.jitter)));
        }
        if self.to.port() == 0 {
            return Err(("to", format!("{}: it needs a port", self.to)));
        }
        if self.from.is_some_and(|from| from.is_ipv4() != self.to.is_ipv4()) {
            return Err(("from", format!("an address of the other family than {}", self.to)));
        }
        if self.copies == 0 {
            return Err(("copies", "0: at least 1".into()));
        }
        if self.congestion.is_some() && self.transport == Transport::Udp {
            return Err(("congestion", "UDP has none".into()));
        }
        if self.segment.is_some_and(|octets| !SEGMENTS.contains(&octets)) {
            return Err(("segment", format!("{} to {} octets", SEGMENTS.start(), SEGMENTS.end())));
        }
        if self.segment.is_some() && self.transport == Transport::Udp {
            return Err(("segment", "UDP has none".into()));
        }
        if self.echo && self.transport == Transport::Tcp {
            return Err(("echo", "only UDP is sent back".into()));
        }
        Ok(())
    }
}

/// Octets of the IP and UDP headers, options aside.
pub(super) fn udp_overhead(is_ipv4: bool) -> u32 {
    if is_ipv4 { 28 } else { 48 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use text::toml_file::TomlFile;

    const TEXT: &str = "time = '2s'\npacing = 'busy'\n[[flows]]\nto = '10.0.0.2:5000'\n\
        rate = '1Mbit'\nsize = 972\ndscp = 'CS1'\njitter = 20\ncopies = 3\n[[flows]]\n\
        to = '[fd00::2]:5000'\ntransport = 'tcp'\nrate = '100kbit'\nsize = 2000\ncongestion = 'reno'\n";

    #[test]
    fn a_plan_is_read_from_toml() {
        let plan = TomlFile::<LoadPlan>::parse("p", TEXT).unwrap().value;
        assert_eq!(plan.check(), Ok(()));
        assert_eq!((plan.flow_count(), plan.flows[0].counted_octets()), (4, 1000));
        assert_eq!(plan.flows[1].counted_octets(), 2000);
        let wrong = TomlFile::<LoadPlan>::parse("p", &TEXT.replace("size", "sise")).unwrap_err();
        assert_eq!((wrong.line, wrong.column), (6, 1), "{wrong}");
    }

    #[test]
    fn what_cannot_be_sent_is_refused_by_its_key() {
        let cases = [
            ("size = 972", "size = 39", "flows[0].size"),
            ("size = 2000", "size = 1048577", "flows[1].size"),
            ("jitter = 20", "jitter = 51", "flows[0].jitter"),
            ("10.0.0.2:5000", "10.0.0.2:0", "flows[0].to"),
            ("copies = 3", "copies = 1024", "flows"),
            ("copies = 3", "copies = 0", "flows[0].copies"),
            ("copies = 3", "congestion = 'reno'", "flows[0].congestion"),
            ("copies = 3", "from = '::1'", "flows[0].from"),
            ("size = 2000", "size = 2000\ncopies = 65", "flows"),
            ("size = 2000", "size = 2000\necho = true", "flows[1].echo"),
            ("copies = 3", "copies = 65\necho = true", "flows"),
            ("'2s'", "'0s'", "time"),
        ];
        for (from, to, path) in cases {
            let text = TEXT.replace(from, to);
            let plan = TomlFile::<LoadPlan>::parse("p", &text).unwrap().value;
            assert_eq!(plan.check().unwrap_err().path, path, "{to}");
        }
    }
}
