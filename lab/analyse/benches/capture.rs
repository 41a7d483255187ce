//! How fast captures are taken apart: a pcapng file of 1 GB, made as it is read.
//!
//! `cargo bench -p analyse`; `ANALYSE_BENCH_MB=100` makes it smaller.

#![expect(clippy::disallowed_methods, reason = "time is what is measured")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench")]

use analyse::file::{DecodeStep, FileDecoder};
use analyse::{Analysis, Frame, Limits};
use std::time::{Duration, Instant};

/// Octets of the file that are made at once.
const CHUNK: usize = 4 << 20;

/// Makes the file: TCP with acknowledgements, some of it lost and sent again, and small packets of
/// UDP; eight code points.
struct Made {
    packet: u64,
    flows: u32,
    sequences: Vec<u32>,
}

impl Made {
    fn head(interfaces: u32) -> Vec<u8> {
        let mut file = Vec::new();
        block(&mut file, 0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0], &[0xff; 8]]);
        for _ in 0..interfaces {
            block(&mut file, 1, &[&[101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]]);
        }
        file
    }

    /// Appends a packet's block; seen at each of `points`, a millisecond apart.
    fn append(&mut self, file: &mut Vec<u8>, points: u32) {
        let n = self.packet;
        self.packet += 1;
        let flow = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % self.flows;
        let (kind, dscp) = (n % 4, (flow % 8 * 8) as u8);
        let payload = [1_448usize, 1_448, 0, 160][kind as usize];
        let transport = if kind == 3 { 8 } else { 20 };
        let length = (20 + transport + payload) as u16;
        let mut head = Vec::with_capacity(60);
        head.extend([0x45, dscp << 2]);
        head.extend(length.to_be_bytes());
        head.extend((n as u16).to_be_bytes());
        head.extend([0x40, 0, 64, if kind == 3 { 17 } else { 6 }, 0, 0]);
        let (a, b) = ([10, 1, (flow >> 8) as u8, flow as u8], [10, 2, 0, 1]);
        let (from, to) = if kind == 2 { (b, a) } else { (a, b) };
        head.extend(from.into_iter().chain(to));
        let ports = [(40_000u16, 5_000u16), (5_000, 40_000)][usize::from(kind == 2)];
        head.extend(ports.0.to_be_bytes().into_iter().chain(ports.1.to_be_bytes()));
        let sequence = &mut self.sequences[flow as usize];
        match kind {
            3 => {
                head.extend(((transport + payload) as u16).to_be_bytes().into_iter().chain([0, 0]));
            }
            2 => {
                head.extend([0, 0, 0, 1]);
                head.extend(sequence.to_be_bytes());
                head.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
            }
            _ => {
                // One of a hundred is sent again.
                let again = if n % 100 == 1 { 1_448 } else { 0 };
                head.extend(sequence.wrapping_sub(again).to_be_bytes());
                head.extend([0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
                *sequence = sequence.wrapping_add(1_448 - again);
            }
        }
        let size = head.len() + payload;
        for point in 0..points {
            let at = 1_700_000_000_000_000_000 + n * 10_000 + u64::from(point) * 1_000_000;
            let mut meta = Vec::with_capacity(20);
            meta.extend(point.to_le_bytes());
            meta.extend(((at >> 32) as u32).to_le_bytes());
            meta.extend((at as u32).to_le_bytes());
            meta.extend((size as u32).to_le_bytes());
            meta.extend((size as u32).to_le_bytes());
            block(file, 6, &[&meta, &head, &[0x5a; 1_448][..payload]]);
        }
    }
}

fn block(file: &mut Vec<u8>, kind: u32, parts: &[&[u8]]) {
    let size = parts.iter().map(|part| part.len()).sum::<usize>().next_multiple_of(4) + 12;
    file.extend(kind.to_le_bytes());
    file.extend((size as u32).to_le_bytes());
    let end = file.len() + size - 12;
    for part in parts {
        file.extend(*part);
    }
    file.resize(end, 0);
    file.extend((size as u32).to_le_bytes());
}

fn run(what: &str, octets: usize, flows: u32, points: u32) {
    let mut made = Made { packet: 0, flows, sequences: vec![0; flows as usize] };
    let (mut decoder, mut analysis) = (FileDecoder::default(), Analysis::new(Limits::default()));
    let (mut buffer, mut spent, mut rows, mut done) = (Made::head(points), Duration::ZERO, 0u64, 0);
    while done < octets {
        while buffer.len() < CHUNK {
            made.append(&mut buffer, points);
        }
        let begin = Instant::now();
        let mut at = 0;
        loop {
            match decoder.next(&buffer[at..]).unwrap() {
                DecodeStep::Need(_) => break,
                DecodeStep::Passed(size) => {
                    at += size;
                    while analysis.points().len() < decoder.interfaces().len() {
                        analysis.point("p".to_owned(), decoder.interfaces()[0].link);
                    }
                }
                DecodeStep::Packet { size, packet } => {
                    let frame = Frame {
                        point: packet.interface,
                        original: packet.original,
                        octets: packet.octets,
                    };
                    analysis.handle(packet.time.unwrap_or_default(), frame);
                    while analysis.poll().is_some() {
                        rows += 1;
                    }
                    at += size;
                }
            }
        }
        spent += begin.elapsed();
        done += at;
        buffer.drain(..at);
    }
    let begin = Instant::now();
    analysis.finish();
    while analysis.poll().is_some() {
        rows += 1;
    }
    spent += begin.elapsed();
    let (packets, seconds) = (analysis.totals().packets, spent.as_secs_f64());
    println!(
        "{what:<38} {:>6.0} MB  {:>6.0} MB/s  {:>6.0} thousand packets/s  {rows} rows",
        done as f64 / 1e6,
        done as f64 / 1e6 / seconds,
        packets as f64 / 1e3 / seconds
    );
}

fn main() {
    let megabytes = std::env::var("ANALYSE_BENCH_MB").ok().and_then(|text| text.parse().ok());
    let octets = megabytes.unwrap_or(1_000usize) * 1_000_000;
    run("1 point, 1,000 flows", octets, 1_000, 1);
    run("1 point, 60,000 flows (3 x the limit)", octets, 60_000, 1);
    run("2 points, 1,000 flows", octets, 1_000, 2);
}
