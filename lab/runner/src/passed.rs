//! What passes a router, captured at two of its ports and analysed by code point as `lab analyse` does.

use analyse::file::{CapturedPacket, DecodeStep, FileDecoder};
use analyse::{Analysis, Frame, Limits, LinkType, Time};
use anyhow::Result;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use study::file::RouterPath;
use study::measured::{CodePointPassed, PassedCount};

/// The nanoseconds that a packet may wait in the router: in the queue of a class that starves, many seconds.
const WINDOW: u64 = 120_000_000_000;
/// Octets that are read at once.
const CHUNK: usize = 64 << 10;

/// An end of the path through a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathEnd {
    /// Where packets come in.
    From,
    /// Where they leave.
    To,
}

/// An analysis of the packets that come in at one port and leave at the other.
#[derive(Debug)]
pub(crate) struct PassedAnalysis {
    analysis: Analysis,
    /// The points of both ends.
    points: [usize; 2],
}

impl PassedAnalysis {
    pub(crate) fn new(path: &RouterPath) -> PassedAnalysis {
        let mut analysis = Analysis::new(Limits { window: WINDOW, ..Limits::default() });
        let points = [&path.from, &path.to].map(|port| analysis.point(port.clone(), LinkType::Raw));
        PassedAnalysis { analysis, points }
    }

    /// A packet, from its IP header on, passed an end in the direction of the path.
    pub(crate) fn packet(&mut self, end: PathEnd, at: Time, octets: &[u8]) {
        let [from, to] = self.points;
        let point = if end == PathEnd::From { from } else { to };
        let original = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        self.analysis.handle(at, Frame { point, original, octets });
        // Rows of flows and messages are for others.
        while self.analysis.poll().is_some() {}
    }

    /// The results, beside what the router has counted.
    pub(crate) fn finish(mut self, counted: &BTreeMap<u8, PassedCount>) -> Vec<CodePointPassed> {
        self.analysis.finish();
        while self.analysis.poll().is_some() {}
        let [from, to] = self.points;
        let mut rows: BTreeMap<u8, CodePointPassed> = BTreeMap::new();
        let new = |dscp: u8| CodePointPassed { dscp, ..CodePointPassed::default() };
        for (_, aggregate) in self.analysis.aggregates().filter(|(point, _)| *point == to) {
            let dscp = aggregate.dscp.number();
            let row = rows.entry(dscp).or_insert_with(|| new(dscp));
            row.analysed.packets = aggregate.volume.packets;
            row.analysed.octets = aggregate.volume.octets;
        }
        for hop in self.analysis.hops().iter().filter(|hop| (hop.from, hop.to) == (from, to)) {
            let dscp = hop.dscp.number();
            rows.entry(dscp).or_insert_with(|| new(dscp)).analysed.lost = hop.lost;
        }
        for (dscp, count) in counted {
            rows.entry(*dscp).or_insert_with(|| new(*dscp)).counted = *count;
        }
        rows.into_values().collect()
    }
}

/// Reads a capture to its end, packet by packet.
///
/// # Errors
/// It is damaged.
pub(crate) fn read(mut from: impl Read, mut each: impl FnMut(&CapturedPacket<'_>)) -> Result<()> {
    let mut decoder = FileDecoder::default();
    let (mut waiting, mut chunk) = (Vec::new(), vec![0; CHUNK]);
    loop {
        let mut done = 0;
        loop {
            match decoder.next(waiting.get(done..).unwrap_or_default())? {
                DecodeStep::Need(_) => break,
                DecodeStep::Passed(size) => done += size,
                DecodeStep::Packet { size, packet } => {
                    each(&packet);
                    done += size;
                }
            }
        }
        waiting.drain(..done.min(waiting.len()));
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => waiting.extend_from_slice(chunk.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dscp::Dscp;
    use router::packet::{HeaderFields, datagram};

    fn packet(number: u64, dscp: Dscp, ttl: u8) -> Vec<u8> {
        let fields = HeaderFields {
            source: "10.0.0.1".parse().unwrap(),
            destination: "10.0.1.1".parse().unwrap(),
            protocol: 17,
            dscp,
            ecn: 0,
            ttl,
        };
        datagram(&fields, (4_000, 5_000), &number.to_be_bytes()).unwrap()
    }

    #[test]
    fn what_leaves_and_what_is_lost_is_found_by_code_point() {
        let path = RouterPath { from: "r.lan".to_owned(), to: "r.wan".to_owned() };
        let mut passed = PassedAnalysis::new(&path);
        for number in 0..100 {
            let at = Time(number * 1_000_000);
            let dscp = if number % 2 == 0 { Dscp::CS1 } else { Dscp::CS2 };
            passed.packet(PathEnd::From, at, &packet(number, dscp, 64));
            // Of each ten one is lost.
            if number % 10 != 4 {
                passed.packet(PathEnd::To, Time(at.0 + 500), &packet(number, dscp, 63));
            }
        }
        let counted = PassedCount { packets: 40, octets: 40 * 36, lost: 10 };
        let rows = passed.finish(&[(8, counted)].into());
        let none = PassedCount::default();
        let cs2 = PassedCount { packets: 50, octets: 50 * 36, lost: 0 };
        assert_eq!(
            rows,
            [
                CodePointPassed { dscp: 8, analysed: counted, counted },
                CodePointPassed { dscp: 16, analysed: cs2, counted: none },
            ]
        );
    }
}
