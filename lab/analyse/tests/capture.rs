//! A capture of two daemons on a line of their own: `flash.pcap` has the associations of the channel
//! for Flash, and two messages on it, as `cargo xtask demo` sends them.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use analyse::file::{DecodeStep, FileDecoder};
use analyse::report::{Application, TransferOutcome};
use analyse::{Analysis, Flow, Frame, Limits, Message, Output};
use base::Precedence;
use dscp::Dscp;

const CAPTURE: &[u8] = include_bytes!("flash.pcap");

/// Its flows and messages, of packets cut off behind this many octets.
fn analysed(snap: usize) -> (Analysis, Vec<Flow>, Vec<Message>) {
    let (mut decoder, mut analysis) = (FileDecoder::default(), Analysis::new(Limits::default()));
    let (mut at, mut flows, mut messages) = (0, Vec::new(), Vec::new());
    let mut drain = |analysis: &mut Analysis| {
        while let Some(output) = analysis.poll() {
            match output {
                Output::Flow(flow) => flows.push(*flow),
                Output::Message(message) => messages.push(*message),
            }
        }
    };
    loop {
        match decoder.next(&CAPTURE[at..]).unwrap() {
            DecodeStep::Need(_) => break,
            DecodeStep::Passed(size) => {
                at += size;
                analysis.point("x".to_owned(), decoder.interfaces()[0].link);
            }
            DecodeStep::Packet { size, packet } => {
                at += size;
                let octets = &packet.octets[..packet.octets.len().min(snap)];
                let frame = Frame { point: 0, original: packet.original, octets };
                analysis.handle(packet.time.unwrap(), frame);
                drain(&mut analysis);
            }
        }
    }
    assert_eq!(at, CAPTURE.len());
    analysis.finish();
    drain(&mut analysis);
    (analysis, flows, messages)
}

#[test]
fn messages_of_real_daemons_are_found_with_the_fields_of_their_envelopes() {
    let (analysis, flows, messages) = analysed(usize::MAX);
    let notified: Vec<_> = messages
        .iter()
        .map(|of| {
            let envelope = of.envelope.as_ref().unwrap();
            let tail = envelope.identifier.rsplit(';').next().unwrap();
            (tail, envelope.precedence, of.octets, of.outcome, of.gaps)
        })
        .collect();
    let flash = Some(Precedence::Flash);
    assert_eq!(
        notified,
        [
            ("MTA-NAPLES.1.15]", flash, 1_512, TransferOutcome::Confirmed, false),
            ("MTA-NAPLES.1.16]", flash, 10_513, TransferOutcome::Confirmed, false),
        ]
    );
    assert!(messages.iter().all(|of| of.marks == [Dscp::CS3]));
    let p1 = flows.iter().filter(|of| of.application == Application::P1).count();
    assert_eq!((flows.len(), p1), (6, 4));
    let (_, aggregate) = analysis.aggregates().next().unwrap();
    assert_eq!((aggregate.dscp, aggregate.volume.packets), (Dscp::CS3, 41));
}

#[test]
fn with_headers_alone_the_numbers_are_the_same_and_messages_are_none() {
    let (whole, flows, _) = analysed(usize::MAX);
    let (cut, cut_flows, messages) = analysed(66);
    assert!(messages.iter().all(|of| of.gaps));
    assert!(cut.totals().truncated > 0);
    let sums = |analysis: &Analysis| {
        let all = analysis.aggregates();
        all.map(|(_, of)| (of.volume, of.tcp, of.round_trip.clone())).collect::<Vec<_>>()
    };
    assert_eq!(sums(&whole), sums(&cut));
    let payloads = |flows: &[Flow]| flows.iter().map(|of| of.payload_octets).sum::<u64>();
    assert_eq!(payloads(&flows), payloads(&cut_flows));
}
