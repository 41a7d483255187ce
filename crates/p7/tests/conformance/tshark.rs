//! What tshark finds in associations. It knows P7 in the presentation contexts of 1988 alone.

use base::Utc;
use bytes::Bytes;
use capture::{CaptureWriter, CapturedConnection, Opener};
use std::collections::BTreeMap;
use std::process::Command;

const PORT: u16 = 5_007;
/// The severity from which on tshark does not understand; below are its notes.
pub(crate) const WARNING: u64 = 0x0060_0000;

/// What tshark shows where it does not understand.
const BAD: &[&str] = &["_ws.malformed", "ros.unknown_ros_pdu", "ros.dissector_oid_not_implemented"];

/// What tshark shows of one packet.
pub(crate) struct Row {
    /// What TCP carries, in hexadecimal digits.
    pub(crate) payload: String,
    /// The worst severity of its expert marks.
    pub(crate) severity: u64,
    /// Their messages.
    pub(crate) messages: String,
    /// Values of the fields that were asked for, joined with commas.
    pub(crate) fields: BTreeMap<String, String>,
}

/// The packets of associations, in their order: each has a connection of its own.
pub(crate) fn rows(associations: &[Vec<(bool, Bytes)>], fields: &[String]) -> Vec<Row> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p7.pcapng");
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    let time = Utc(1_700_000_000_000_000);
    let address = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    for (port, passed) in (40_000..).zip(associations) {
        let (local, remote) = (address(port), address(PORT));
        let connection = CapturedConnection { local, remote, opener: Opener::Local, tos: 0 };
        writer.connection(time, connection).unwrap();
        for (ours, octets) in passed {
            if *ours { writer.sent(time, octets) } else { writer.received(time, octets) }.unwrap();
        }
    }
    std::fs::write(&path, writer.into_inner()).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(&path).args(["-d", &format!("tcp.port=={PORT},tpkt")]);
    command.args(["-T", "fields", "-E", "occurrence=a", "-E", "separator=;", "-E", "aggregator=,"]);
    let own = ["tcp.payload", "_ws.expert.severity", "_ws.expert.message"];
    for field in own.into_iter().chain(fields.iter().map(String::as_str)) {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark runs: `cargo xtask test` installs it");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| {
        let mut cells = line.split(';').map(str::to_owned);
        let [payload, severities, messages] = [(); 3].map(|()| cells.next().unwrap());
        let severities = severities.split(',').filter_map(|s| s.parse::<u64>().ok());
        let severity = severities.max().unwrap_or(0);
        Row { payload, severity, messages, fields: fields.iter().cloned().zip(cells).collect() }
    };
    text.lines().map(row).collect()
}

/// Values of fields, joined with commas, that tshark finds in an association.
pub(crate) fn values(passed: &[(bool, Bytes)], fields: &[&str]) -> Vec<String> {
    let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
    let rows = rows(&[passed.to_vec()], &fields);
    let column = |field: &String| {
        let cells = rows.iter().map(|row| row.fields[field].as_str());
        cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(",")
    };
    fields.iter().map(column).collect()
}

/// The fields in which tshark shows what it does not understand.
pub(crate) fn bad_fields() -> Vec<String> {
    let available = Command::new("tshark").args(["-G", "fields"]).output().unwrap();
    let available = String::from_utf8_lossy(&available.stdout).into_owned();
    let names = available.lines().filter_map(|line| line.split('\t').nth(2));
    let bad = names.filter(|name| {
        BAD.contains(name) || name.starts_with("ber.error.") || name.starts_with("ber.unknown")
    });
    let bad: Vec<String> = bad.map(str::to_owned).collect();
    assert!(bad.len() > 5);
    bad
}

/// Fails where tshark complains.
pub(crate) fn without_complaint(passed: &[(bool, Bytes)]) {
    let bad = bad_fields();
    for row in rows(&[passed.to_vec()], &bad) {
        let marked: Vec<_> = row.fields.iter().filter(|(_, value)| !value.is_empty()).collect();
        assert!(marked.is_empty() && row.severity < WARNING, "{marked:?}: {}", row.messages);
    }
}
