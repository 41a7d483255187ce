//! The six precedences as an independent reader finds them on the wire.

use super::{CHANNELS, assert_arrived, namespace, pair, programs, send, wait_until_open};
use std::process::Command;
use testbed::{Cable, Capture, PeerSettings};

/// STANAG 4406 Annex A: the precedence, its level in the heading, P1's priority (non-urgent 1,
/// urgent 2; normal is the default and not sent) and the qualifier (low 0, high 1); with the channel that carries it.
const LEVELS: [(&str, u8, &str, u8, usize); 6] = [
    ("deferred", 0, "1", 0, 0),
    ("routine", 1, "1", 1, 0),
    ("priority", 2, "0", 0, 1),
    ("immediate", 3, "0", 1, 2),
    ("flash", 4, "2", 0, 3),
    ("override", 5, "2", 1, 4),
];

const FIELDS: [&str; 4] =
    ["ip.dsfield.dscp", "p772.PrimaryPrecedence", "p1.priority", "p772.PriorityLevelQualifier"];

#[test]
fn tshark_reads_each_of_the_six_levels() {
    let Some(namespace) = namespace("tshark_reads_each_of_the_six_levels") else { return };
    let cable = Cable::new(namespace).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("six.pcap");
    let capture = Capture::start(&cable.act, &programs(), &file).unwrap();
    let pair = pair(&cable, PeerSettings::per_precedence()).start().unwrap();
    wait_until_open(&pair, 2 * CHANNELS.len());
    for (precedence, ..) in LEVELS {
        let sent = send(&pair.naples, &pair.act, precedence, "1kB");
        assert_arrived(&[sent], &pair.act.receive("OPS", 1).unwrap());
    }
    drop(pair);
    capture.finish().unwrap();

    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&file).args(["-Y", "p1.message_element", "-T", "fields"]);
    for (_, port, _) in CHANNELS {
        tshark.args(["-d", &format!("tcp.port=={port},tpkt")]);
    }
    for field in FIELDS {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().expect("tshark runs (cargo xtask test installs it)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let found: Vec<&str> = text.lines().collect();
    let expected = LEVELS.map(|(_, level, priority, qualifier, channel)| {
        format!("{}\t{level}\t{priority}\t{qualifier}", CHANNELS[channel].2)
    });
    assert_eq!(found, expected, "{}", FIELDS.join(", "));
}
