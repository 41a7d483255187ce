//! Reads a capture file back, also with tshark as an independent reader.

use super::*;
use pcap_file::pcapng::{Block, PcapNgReader};
use proptest::prelude::*;
use std::process::Command;

const V4: CapturedConnection = CapturedConnection {
    local: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 40_000),
    remote: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 5_003),
    opener: Opener::Local,
    tos: 0x60,
};

fn v6() -> CapturedConnection {
    CapturedConnection {
        local: "[fd00::1]:5003".parse().unwrap(),
        remote: "[fd00::2]:40001".parse().unwrap(),
        opener: Opener::Remote,
        tos: 0x80,
    }
}

fn frames(file: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            frames.push(packet.data.into_owned());
        }
    }
    frames
}

fn capture(connection: CapturedConnection, moves: &[(bool, Vec<u8>)]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    let time = Utc(1_700_000_000_123_456);
    writer.sent(time, b"before any connection").unwrap();
    writer.connection(time, connection).unwrap();
    for (out, octets) in moves {
        if *out { writer.sent(time, octets) } else { writer.received(time, octets) }.unwrap();
    }
    writer.closed(time).unwrap();
    writer.closed(time).unwrap();
    writer.into_inner()
}

/// The Internet checksum over everything is zero if the checksum inside is valid.
fn folds_to_zero(parts: &[&[u8]]) -> bool {
    let all: Vec<u8> = parts.concat();
    let sum: u32 =
        all.chunks(2).map(|c| u32::from(c[0]) << 8 | c.get(1).copied().map_or(0, u32::from)).sum();
    let once = (sum & 0xffff) + (sum >> 16);
    (once & 0xffff) + (once >> 16) == 0xffff
}

proptest! {
    #[test]
    fn every_octet_stands_once_in_order(
        six in any::<bool>(),
        moves in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..5_000)), 0..6),
    ) {
        let connection = if six { v6() } else { V4 };
        let (mut out, mut back) = (Vec::new(), Vec::new());
        let file = capture(connection, &moves);
        let ip = if six { 40 } else { 20 };
        for frame in frames(&file) {
            let tcp = &frame[14 + ip..];
            let addresses = if six { &frame[22..54] } else { &frame[26..34] };
            let length = (tcp.len() as u16).to_be_bytes();
            prop_assert!(folds_to_zero(&[addresses, &[0, 6], &length, tcp]));
            prop_assert!(six || folds_to_zero(&[&frame[14..34]]));
            prop_assert!(frame.len() <= 1_514);
            let from_us = tcp[..2] == connection.local.port().to_be_bytes();
            if from_us { &mut out } else { &mut back }.extend_from_slice(&tcp[20..]);
        }
        let moved = |ours: bool| -> Vec<u8> {
            moves.iter().filter(|(o, _)| *o == ours).flat_map(|(_, b)| b.clone()).collect()
        };
        prop_assert_eq!(out, moved(true));
        prop_assert_eq!(back, moved(false));
    }
}

/// A TPKT with a COTP data unit (RFC 1006 section 6, X.224 class 0) of `length` octets in all.
fn tpkt(length: u16) -> Vec<u8> {
    let mut unit = vec![3, 0];
    unit.extend(length.to_be_bytes());
    unit.extend([2, 0xf0, 0]);
    unit.resize(usize::from(length), 0x55);
    unit
}

#[test]
fn tshark_sees_whole_units_and_nothing_to_remark() {
    for connection in [V4, v6()] {
        let moves = [(true, tpkt(60_000)), (false, tpkt(9)), (true, [tpkt(100), tpkt(7)].concat())];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), capture(connection, &moves)).unwrap();
        let ask = |fields: &[&str]| {
            let output = Command::new("tshark")
                .args(["-r", &file.path().display().to_string(), "-d", "tcp.port==5003,tpkt"])
                .args(["-o", "tcp.check_checksum:TRUE"])
                .args(fields)
                .output()
                .expect("this test needs tshark: install the package of that name");
            String::from_utf8(output.stdout).unwrap()
        };
        let lengths = ask(&["-Y", "tpkt", "-T", "fields", "-e", "tpkt.length"]);
        let lengths: Vec<&str> = lengths.split([',', '\n']).filter(|l| !l.is_empty()).collect();
        assert_eq!(lengths, ["60000", "9", "100", "7"]);
        let marks = "tcp.analysis.flags || tcp.checksum.status == 0 || _ws.malformed";
        assert_eq!(ask(&["-Y", marks]), "");
        let marked = ask(&["-Y", "ip.dsfield.dscp == 24 || ipv6.tclass.dscp == 32"]);
        assert_eq!(marked.lines().count(), ask(&[]).lines().count());
    }
}
