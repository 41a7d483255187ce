//! Files that are not captures, are truncated, or are empty; and the files that are written.

use crate::support::{As, text};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, TsResolution};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

fn analyse(arguments: &[&Path]) -> Output {
    let mut command = As::Own.command();
    command.arg("analyse").args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

/// Echo requests with CS3, one a millisecond.
fn capture(packets: u32, link: DataLink) -> Vec<u8> {
    let header = PcapHeader {
        datalink: link,
        ts_resolution: TsResolution::NanoSecond,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for n in 0..packets {
        let mut octets = vec![0x45, 0x60, 0, 28, 0, n as u8, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1];
        octets.extend([10, 0, 0, 2, 8, 0, 0, 0, 0, 1, 0, n as u8]);
        let at = Duration::from_millis(1_700_000_000_000 + u64::from(n));
        writer.write_packet(&PcapPacket::new(at, 28, &octets)).unwrap();
    }
    writer.into_writer()
}

#[test]
fn what_is_no_capture_is_refused_with_2_and_what_is_cut_off_is_read_in_part() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str, octets: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, octets).unwrap();
        path
    };
    let whole = capture(20, DataLink::RAW);
    let fifo = directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut damaged = whole.clone();
    // The length of the third packet.
    damaged[24 + 2 * 44 + 8..][..4].copy_from_slice(&[0x7f; 4]);
    let cases: [(&Path, i32, &str); 10] = [
        (&at("empty", &[]), 2, "empty"),
        (&at("text", b"no capture at all, but long enough to be one"), 2, "magic number"),
        (&at("packed", &[0x1f, 0x8b, 8, 0, 0, 0]), 2, "gzip"),
        (&at("head", &whole[..20]), 2, "cut off"),
        (&at("cut", &whole[..whole.len() - 1]), 3, "cut off"),
        (&at("damaged", &damaged), 3, "at octet 112: a packet of"),
        (&at("wireless", &capture(3, DataLink::IEEE802_11)), 3, "link type"),
        (&at("none", &capture(0, DataLink::RAW)), 0, "0 IP packets"),
        (&fifo, 2, "no file"),
        (directory.path(), 2, "directory"),
    ];
    for (path, code, word) in cases {
        let output = analyse(&[path]);
        let output_text = text(&output);
        assert_eq!(output.status.code(), Some(code), "{}: {output_text}", path.display());
        assert!(output_text.contains(word), "{}: {output_text}", path.display());
    }
    let output = analyse(&[Path::new("/nonexistent/x.pcap")]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert_eq!(analyse(&[]).status.code(), Some(2));
}

#[test]
fn tables_values_and_pictures_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.pcap");
    std::fs::write(&file, capture(500, DataLink::RAW)).unwrap();
    let (csv, plots) = (directory.path().join("csv"), directory.path().join("plots"));
    let output = analyse(&[&file, Path::new("--csv"), &csv, Path::new("--plots"), &plots]);
    let output_text = text(&output);
    assert!(output.status.success(), "{output_text}");
    assert!(output_text.contains("CS3") && output_text.contains("14.0 kB"), "{output_text}");
    let lines = |name: &str| std::fs::read_to_string(csv.join(name)).unwrap().lines().count();
    assert_eq!((lines("dscp.csv"), lines("flows.csv"), lines("messages.csv")), (2, 2, 1));
    assert!(lines("dscp-intervals.csv") > 4);
    let svg = std::fs::read_to_string(plots.join("throughput.svg")).unwrap();
    assert!(svg.contains("CS3") && svg.contains("Throughput"));
    let png = std::fs::read(plots.join("throughput.png")).unwrap();
    assert_eq!(png[..4], [0x89, b'P', b'N', b'G']);
}

#[test]
fn standard_input_is_read_as_it_comes() {
    let mut command = As::Own.command();
    command.args(["analyse", "-", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let octets = capture(300, DataLink::RAW);
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &octets).unwrap();
    let output = child.wait_with_output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["totals"]["ip_packets"], 300);
    assert_eq!(
        (&found["dscp"][0]["dscp"], &found["dscp"][0]["ip_size"]),
        (&24.into(), &8_400.into())
    );
}
