//! What tshark finds in a capture.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Packets, octets from the IP header on, octets of frames.
pub(crate) type Volumes = BTreeMap<u64, (u64, u64, u64)>;

/// What is compared, by code point.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) volumes: Volumes,
    pub(crate) retransmissions: BTreeMap<u64, u64>,
    pub(crate) out_of_order: BTreeMap<u64, u64>,
}

impl Found {
    /// Segments of a code point that came again.
    pub(crate) fn retransmitted(&self, dscp: u64) -> u64 {
        self.retransmissions.get(&dscp).copied().unwrap_or_default()
    }

    /// Segments that are reported as out of order.
    pub(crate) fn either(&self, dscp: u64) -> u64 {
        self.retransmitted(dscp) + self.out_of_order.get(&dscp).copied().unwrap_or_default()
    }
}

/// Whether it is there.
pub(crate) fn is_there() -> bool {
    let mut command = Command::new("tshark");
    let output = command.arg("--version").stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}

/// What it finds in a file.
pub(crate) fn ask(file: &Path) -> Found {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]);
    let fields = [
        "ip.dsfield.dscp",
        "ipv6.tclass.dscp",
        "ip.len",
        "ipv6.plen",
        "frame.len",
        "tcp.analysis.retransmission",
        "tcp.analysis.out_of_order",
    ];
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = Found::default();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let cells: Vec<&str> = line.split('|').collect();
        let number = |at: usize| cells[at].parse::<u64>().ok();
        let (Some(dscp), Some(octets)) =
            (number(0).or(number(1)), number(2).or(number(3).map(|payload| payload + 40)))
        else {
            continue;
        };
        let volume = found.volumes.entry(dscp).or_default();
        volume.0 += 1;
        volume.1 += octets;
        volume.2 += number(4).unwrap();
        *found.retransmissions.entry(dscp).or_default() += u64::from(!cells[5].is_empty());
        *found.out_of_order.entry(dscp).or_default() += u64::from(!cells[6].is_empty());
    }
    found
}
