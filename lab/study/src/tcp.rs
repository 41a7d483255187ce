//! What a study may set of the hosts' TCP.

use crate::StudyError;
use network::Topology;
use network::topology::Setting;
use router::policy::{OctetSize, Span};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Octets of a buffer, at least and at most: as the simulation takes them.
const BUFFER: (u64, u64) = (4 << 10, 16 << 20);
/// RFC 1122 4.2.3.2: an acknowledgement waits less than half a second.
const MAX_DELAYED_ACK: Duration = Duration::from_millis(500);

/// The hosts' TCP; what is absent is as the environment has it. Parameters set it, below `tcp`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of the hosts' TCP")]
pub struct PlannedTcp {
    /// Nagle's algorithm; in simulation only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nagle: Option<bool>,
    /// How long an acknowledgement may wait for another segment, `0s`: it does not; in simulation only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<Span>,
    /// Segments that a new connection sends at first: 2, as every simulation does; in simulation only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Octets that may wait or be unacknowledged. Linux counts its own structures in them, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<OctetSize>,
    /// Octets that may arrive before they are read; as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<OctetSize>,
}

impl PlannedTcp {
    /// Whether all is as the environment has it.
    pub fn is_unset(&self) -> bool {
        *self == PlannedTcp::default()
    }

    /// The first setting that sockets of the kernel cannot have.
    pub fn simulated_only(&self) -> Option<&'static str> {
        let set = [
            ("nagle", self.nagle.is_some()),
            ("delayed_ack", self.delayed_ack.is_some()),
            ("initial_window", self.initial_window.is_some()),
        ];
        set.into_iter().find(|(_, is_set)| *is_set).map(|(name, _)| name)
    }

    /// Gives the buffers to all hosts, as settings of their namespaces: both environments read these.
    pub(crate) fn apply(&self, topology: &mut Topology) {
        let buffers =
            [("net.ipv4.tcp_wmem", self.send_buffer), ("net.ipv4.tcp_rmem", self.receive_buffer)];
        for (name, octets) in buffers {
            let Some(OctetSize(octets)) = octets else { continue };
            let setting = Setting(format!("{} {octets} {octets}", BUFFER.0));
            for host in topology.hosts.values_mut() {
                host.sysctls.insert(name.to_owned(), setting.clone());
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), StudyError> {
        let buffers = [("send_buffer", self.send_buffer), ("receive_buffer", self.receive_buffer)];
        for (name, octets) in buffers {
            if octets.is_some_and(|octets| !(BUFFER.0..=BUFFER.1).contains(&octets.0)) {
                return Err(StudyError::at(format!("tcp.{name}"), "from 4 KiB to 16 MiB"));
            }
        }
        if self.delayed_ack.is_some_and(|delay| delay.0 >= MAX_DELAYED_ACK) {
            return Err(StudyError::at("tcp.delayed_ack", "less than 500ms"));
        }
        match self.initial_window {
            None | Some(2) => Ok(()),
            Some(_) => {
                let what = "the simulation's is fixed: 2 segments, 2,048 octets";
                Err(StudyError::at("tcp.initial_window", what))
            }
        }
    }
}
