//! What the kernel counts at the interfaces of a namespace (proc_net_dev(5)).

use crate::control::status::{Total, TrafficCount};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Read as _, Seek as _};

/// An interface and its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) total: Total,
    /// Packets that were to be sent, and dropped.
    pub(crate) not_sent: u64,
}

/// The file with the counters of this thread's namespace; it stays that namespace's.
pub(crate) fn open() -> Result<File> {
    let path = "/proc/thread-self/net/dev";
    File::open(path).with_context(|| format!("opening {path}"))
}

/// All but the loopback, as they are now.
pub(crate) fn read(file: &mut File) -> Result<Vec<Interface>> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text.lines().filter_map(interface).collect())
}

fn interface(line: &str) -> Option<Interface> {
    let (name, numbers) = line.split_once(':')?;
    let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let name = name.trim();
    if name == "lo" {
        return None;
    }
    let at = |place: usize| numbers.get(place).copied().unwrap_or_default();
    let total = Total {
        came: TrafficCount { bytes: at(0), packets: at(1) },
        went: TrafficCount { bytes: at(8), packets: at(9) },
        dropped: at(3) + at(11),
    };
    Some(Interface { name: name.to_owned(), total, not_sent: at(11) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_an_interface_are_read() {
        let line = "  wan: 1500 2 0 1 0 0 0 0  3000 4 0 5 0 0 0 0";
        let wan = interface(line).unwrap();
        let total = wan.total;
        assert_eq!((wan.name.as_str(), wan.not_sent), ("wan", 5));
        assert_eq!((total.came.packets, total.came.bytes), (2, 1_500));
        assert_eq!((total.went.packets, total.went.bytes, total.dropped), (4, 3_000, 6));
        assert!(interface("    lo: 1 1").is_none());
        assert!(interface("Inter-|   Receive").is_none());
    }
}
