//! What one association holds is bounded, whatever its peer sends: measured after every input over
//! streams made to grow it.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, reason = "of the module shared by the tests, each uses its part")]

mod pair;

/// The mode of P1's associations.
const MODE: osi::api::Mode = osi::api::Mode::Normal;

use bytes::Bytes;
use osi::api::{Config, Indication, Input, Output, Payload, Request};
use osi::profiles::abstract_syntax::msse;
use osi::stack::Association;
use pair::{A, B, Pair, p1, p3, rtse};
use proptest::prelude::*;

/// The results of a stream: the most octets held, and the octets and indications for one input.
#[derive(Debug, Default)]
struct Measured {
    held: usize,
    sent: usize,
    indicated: usize,
    over: bool,
}

/// Feeds one association and measures it after every input. Its user answers nothing.
struct Probe {
    stack: Association,
    most: usize,
    now: base::Instant,
    seen: Measured,
}

impl Probe {
    /// Takes an end out of a pair.
    fn from_pair(pair: Pair, side: usize, config: &Config) -> Probe {
        let most = Association::most_held(config);
        let now = pair.now;
        let [a, b] = pair.sides;
        let stack = if side == A { a.stack } else { b.stack };
        Probe { stack, most, now, seen: Measured::default() }
    }

    fn receive(&mut self, octets: &[u8]) {
        self.handle(Input::Bytes(octets), octets.len());
    }

    fn handle(&mut self, input: Input<'_>, taken: usize) {
        self.stack.handle(self.now, input);
        let (mut sent, mut indicated) = (0, 0);
        while let Some(output) = self.stack.poll() {
            match output {
                Output::Send(bytes) => sent += bytes.len(),
                Output::Close => self.seen.over = true,
                Output::Indication(i) => {
                    self.seen.over |= matches!(i, Indication::Aborted { .. });
                    indicated += 1;
                }
            }
        }
        let held = self.stack.held();
        assert!(held <= self.most, "{held} octets held, {} is the most", self.most);
        // What is given at once is in proportion to what was taken.
        assert!(sent <= 512 + 16 * taken, "{sent} octets sent for {taken}");
        assert!(indicated <= 16 + taken, "{indicated} indications for {taken} octets");
        self.seen.held = self.seen.held.max(held);
        self.seen.sent += sent;
        self.seen.indicated += indicated;
    }
}

/// A TSDU in one TPDU.
fn tsdu(octets: &[u8]) -> Vec<u8> {
    packet(octets, true)
}

fn packet(octets: &[u8], end: bool) -> Vec<u8> {
    let length = u16::try_from(octets.len() + 7).unwrap().to_be_bytes();
    let eot = if end { 0x80 } else { 0 };
    [&[3, 0, length[0], length[1], 2, 0xF0, eot], octets].concat()
}

fn minor(serial: u32) -> Vec<u8> {
    let digits = serial.to_string();
    let n = digits.len() as u8;
    tsdu(&[&[1, 0, 0x31, n + 2, 0x2A, n], digits.as_bytes()].concat())
}

fn activity(n: u8) -> Vec<u8> {
    tsdu(&[1, 0, 0x2D, 5, 0x29, 3, 2, 1, n])
}

/// P-DATA of one value in this context.
fn data(context: u8, value: &[u8]) -> Vec<u8> {
    let n = value.len() as u8;
    let list = [&[2, 1, context, 0xA0, n], value].concat();
    let list = [&[0x30, list.len() as u8], &list[..]].concat();
    tsdu(&[&[1, 0, 1, 0, 0x61, list.len() as u8], &list[..]].concat())
}

fn transfer_side() -> (Probe, Config) {
    let config = rtse(p1(), |r| r.window = 8);
    (Probe::from_pair(Pair::open(config.clone(), config.clone()), B, &config), config)
}

/// The figures of `docs/refusals.md`.
#[test]
fn the_bounds_are_small() {
    let kib = |config: &Config| Association::most_held(config) / 1024;
    let (transfer, access) = (kib(&p1()), kib(&p3()));
    assert!((160..256).contains(&transfer), "P1: {transfer} KiB");
    assert!((160..512).contains(&access), "P3: {access} KiB");
}

#[test]
fn an_spdu_without_end() {
    let (mut probe, _) = transfer_side();
    let spdu = [&[1, 0, 0x2D, 0xFF, 0xFF, 0xFF][..], &[0; 900]].concat();
    for _ in 0..200 {
        probe.receive(&packet(&spdu, false));
    }
    assert!(probe.seen.over && probe.seen.held > 60_000, "{:?}", probe.seen);
}

#[test]
fn a_tpdu_header_octet_by_octet() {
    let (mut probe, _) = transfer_side();
    for octet in [&[3, 0, 1, 0, 250][..], &[0xF0; 300]].concat() {
        probe.receive(&[octet]);
    }
    assert!(probe.seen.held > 200, "{:?}", probe.seen);
}

/// Checkpoints that our user does not answer, and transfers begun and cut off over and over.
#[test]
fn checkpoints_and_interrupted_transfers() {
    let (mut probe, _) = transfer_side();
    probe.receive(&activity(1));
    for serial in 1..100 {
        probe.receive(&minor(serial));
    }
    assert!(probe.seen.over && probe.seen.held > 200, "{:?}", probe.seen);

    let (mut probe, _) = transfer_side();
    for n in 1..100 {
        probe.receive(&activity(n));
        probe.receive(&data(3, &[0x04, 9, 0x28, 0x80, 2, 1, 5, 0xA0, 0x80, 0x04, 0x7F]));
        for serial in 1..=300 {
            probe.receive(&minor(serial));
            probe.handle(Input::Request(Request::Stored { octets: u64::MAX }), 100);
        }
        // ACTIVITY INTERRUPT.
        probe.receive(&tsdu(&[1, 0, 25, 3, 0x32, 1, 0]));
        assert!(!probe.seen.over, "{n}");
    }
    // Four transfers of 256 confirmed checkpoints.
    assert!(probe.seen.held > 4 * 256 * 12, "{:?}", probe.seen);
}

/// Invocations that are not answered, and APDUs to be rejected while a large one of ours waits for
/// its content.
#[test]
fn operations_that_pile_up() {
    let config = p3();
    let mut probe = Probe::from_pair(Pair::open(p3(), p3()), B, &config);
    for n in 0..2_000u16 {
        let [high, low] = n.to_be_bytes();
        probe.receive(&data(5, &[0xA1, 7, 2, 2, high, low, 2, 1, 3]));
    }
    assert!(!probe.seen.over, "{:?}", probe.seen);
    // And the header of the last DT.
    assert_eq!(probe.seen.held, 256 * 16 + 3);

    let mut pair = Pair::open(p3(), p3());
    pair.sides[B].supplies = false;
    let argument = Payload {
        head: Bytes::from_static(&[4, 0x84, 1, 0, 0, 0]),
        content_length: 1 << 24,
        tail: Bytes::new(),
    };
    pair.ask(B, Request::Invoke { invoke: 1, syntax: msse(), operation: 5, argument });
    let mut probe = Probe::from_pair(pair, B, &config);
    for _ in 0..1_100 {
        probe.receive(&data(5, &[0xA9, 0]));
    }
    assert!(probe.seen.over, "a peer that only errs is left: {:?}", probe.seen);
    assert!(probe.seen.held > 1_000 * 100, "{:?}", probe.seen);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Any of the peer's PDUs and garbage, in any order and division, to either service and role.
    #[test]
    fn any_stream(
        p1_service: bool,
        side in 0usize..2,
        picks in proptest::collection::vec((0usize..9, any::<u8>()), 1..60),
        cut in 1usize..200,
    ) {
        let config = if p1_service { p1() } else { p3() };
        let mut probe = Probe::from_pair(Pair::open(config.clone(), config.clone()), side, &config);
        let mut stream = Vec::new();
        for (kind, octet) in picks {
            stream.extend(match kind {
                0 => activity(octet % 100),
                1 => minor(u32::from(octet % 4)),
                2 => data(3, &[0x24, 0x80, 0x04, 1, octet]),
                3 => data(5, &[0xA1, 6, 2, 1, octet, 2, 1, 3]),
                4 => data(5, &[0xA0 | (octet & 15), 0]),
                5 => packet(&[1, 0, 1, 0, 0x61, 0x80, 0x30, 0x80, 2, 1, 3, 0xA0, 0x80, 0x24, 0x80], false),
                6 => packet(&[octet; 200], false),
                7 => tsdu(&[2, 0, octet, 3, 0x2A, 1, 0x31]),
                _ => tsdu(&[octet, 4, 0xC1, 2, 5, 0]),
            });
        }
        for piece in stream.chunks(cut) {
            probe.receive(piece);
        }
    }
}
