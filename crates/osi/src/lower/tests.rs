//! Two machines back to back, and one against literal octets.

mod activity;
mod ending;
mod literal;
mod refusals;

use super::*;
use crate::api::{Dialogue, RtseParameters, Service};
use crate::session::service::requirements::{DUPLEX, RTSE};
use crate::session::service::{
    Accept, Connect, ConnectionReference, ExceptionReason, Indication, Refuse, Request, Resume,
};
use base::ber::Oid;
use literal::{CN, CR, TRANSFER, answering};
use proptest::prelude::*;

const T0: Instant = Instant(1_000_000);
const SETUP: Duration = Duration::from_secs(30);

fn config(tpdu_size: Option<u32>) -> Config {
    Config {
        mode: crate::api::Mode::Normal,
        local: Selectors {
            transport: Some(Bytes::from_static(b"591")),
            session: Some(Bytes::from_static(b"S")),
            presentation: None,
        },
        remote: Selectors {
            transport: Some(Bytes::from_static(b"591")),
            session: Some(Bytes::from_static(b"S")),
            presentation: None,
        },
        service: Service::Rtse(RtseParameters {
            checkpoint_size: 1,
            window: 3,
            dialogue: Dialogue::TwoWayAlternate,
            indefinite_lengths: false,
            transfer_timeout: SETUP,
            longest_pause: Duration::ZERO,
        }),
        application_contexts: Vec::new(),
        contexts: Vec::new(),
        bind_syntax: Oid::from_arcs(&[2, 6]).unwrap(),
        other_bind_syntaxes: Vec::new(),
        transfer_syntax_owner: Oid::from_arcs(&[2, 6]).unwrap(),
        tpdu_size,
        setup_timeout: SETUP,
        operation_timeout: SETUP,
        reference: ConnectionReference::default(),
        turn_away: false,
    }
}

fn bytes(octets: &[u8]) -> Bytes {
    Bytes::copy_from_slice(octets)
}

fn connect(requirements: u16, user_data: &[u8]) -> Request {
    Request::Connect(Connect {
        calling_selector: Some(bytes(b"S")),
        called_selector: Some(bytes(b"S")),
        reference: ConnectionReference {
            user: bytes(b"\x04\x01a"),
            common: bytes(b"\x17\x0D260102030405Z"),
            additional: Bytes::new(),
        },
        requirements,
        user_data: bytes(user_data),
    })
}

fn accept(requirements: u16) -> Request {
    Request::Accept(Accept {
        responding_selector: None,
        requirements,
        user_data: bytes(b"accepted"),
    })
}

fn data(octets: &[u8]) -> Request {
    Request::Data { bytes: bytes(octets), last: true }
}

/// One end: the machine, its indications (data joined), and the octets for the peer.
struct End {
    lower: Lower,
    indicated: Vec<Indication>,
    wire: Vec<u8>,
    closed: bool,
}

impl End {
    fn new(role: Role, tpdu_size: Option<u32>) -> End {
        let lower = Lower::new(&config(tpdu_size), role);
        End { lower, indicated: Vec::new(), wire: Vec::new(), closed: false }
    }

    fn drain(&mut self) {
        while let Some(output) = self.lower.poll() {
            assert!(!self.closed, "{output:?} after Close");
            match output {
                LowerOutput::Send(octets) => self.wire.extend_from_slice(&octets),
                LowerOutput::Close => self.closed = true,
                LowerOutput::Indication(Indication::Data { bytes, last }) => {
                    if let Some(Indication::Data { bytes: held, last: end @ false }) =
                        self.indicated.last_mut()
                    {
                        *held = [held.as_ref(), bytes.as_ref()].concat().into();
                        *end = last;
                    } else {
                        self.indicated.push(Indication::Data { bytes, last });
                    }
                }
                LowerOutput::Indication(indication) => self.indicated.push(indication),
            }
        }
    }

    fn ask(&mut self, request: Request) {
        self.lower.request(T0, request).unwrap();
        self.drain();
    }

    fn refused(&mut self, request: Request) -> Misuse {
        let error = self.lower.request(T0, request).unwrap_err();
        assert_eq!(self.lower.poll(), None, "a misused request does nothing");
        error
    }

    fn receive(&mut self, octets: &[u8]) {
        self.lower.bytes(T0, octets);
        self.drain();
    }

    fn sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.wire)
    }

    fn indicated(&mut self) -> Vec<Indication> {
        std::mem::take(&mut self.indicated)
    }
}

fn carry(from: &mut End, to: &mut End, cuts: &mut impl Iterator<Item = usize>) {
    let wire = from.sent();
    let mut rest = &wire[..];
    while !rest.is_empty() {
        let cut = cuts.next().unwrap().clamp(1, rest.len());
        let (now, later) = rest.split_at(cut);
        to.receive(now);
        rest = later;
    }
}

/// Two ends on a pipe that cuts the stream into pieces of the given sizes, over and over.
struct Pair {
    a: End,
    b: End,
    cuts: Vec<usize>,
}

impl Pair {
    fn new(sizes: [Option<u32>; 2], cuts: &[usize]) -> Pair {
        Pair {
            a: End::new(Role::Initiator, sizes[0]),
            b: End::new(Role::Responder, sizes[1]),
            cuts: cuts.to_vec(),
        }
    }

    /// Carries octets until nothing is in transit.
    fn run(&mut self) {
        let mut cuts = self.cuts.clone().into_iter().cycle();
        while !(self.a.wire.is_empty() && self.b.wire.is_empty()) {
            carry(&mut self.a, &mut self.b, &mut cuts);
            carry(&mut self.b, &mut self.a, &mut cuts);
        }
        let (a, b) = (self.a.closed, self.b.closed);
        for (end, other) in [(&mut self.a, b), (&mut self.b, a)] {
            if other && !end.closed {
                end.lower.eof(T0);
                end.drain();
            }
        }
    }

    fn connected(sizes: [Option<u32>; 2], cuts: &[usize], units: u16) -> Pair {
        let mut pair = Pair::new(sizes, cuts);
        pair.a.ask(connect(units, b"hello"));
        pair.run();
        let indicated = pair.b.indicated();
        assert!(matches!(&indicated[..], [Indication::Connect(c)] if c.user_data == b"hello"[..]));
        pair.b.ask(accept(units));
        pair.run();
        let indicated = pair.a.indicated();
        assert!(
            matches!(&indicated[..], [Indication::Accepted(c)] if c.user_data == b"accepted"[..]
            && c.requirements == units)
        );
        pair
    }

    fn rtse() -> Pair {
        Pair::connected([None, None], &[usize::MAX], RTSE)
    }

    fn a_then_b(&mut self, request: Request) -> Vec<Indication> {
        self.a.ask(request);
        self.run();
        self.b.indicated()
    }

    fn b_then_a(&mut self, request: Request) -> Vec<Indication> {
        self.b.ask(request);
        self.run();
        self.a.indicated()
    }

    fn over(&self) -> bool {
        self.a.closed && self.b.closed
    }
}

fn activity() -> Bytes {
    bytes(&[2, 1, 1])
}

/// Transfers as RTSE does, over any division of the stream.
fn exchange(mut pair: Pair) {
    assert!(pair.a.lower.owns_tokens() && !pair.b.lower.owns_tokens());
    assert_eq!(
        pair.a_then_b(Request::ActivityStart { activity: activity() }),
        [Indication::ActivityStart { activity: activity() }]
    );
    let ssdu: Vec<u8> = (0..5_000u32).map(|n| n as u8).collect();
    for serial in 1..=3 {
        // In pieces from the sender, whole to the receiver.
        for piece in ssdu.chunks(701) {
            pair.a.ask(Request::Data { bytes: bytes(piece), last: false });
        }
        pair.a.ask(Request::Data { bytes: Bytes::new(), last: true });
        pair.run();
        assert_eq!(pair.b.indicated(), [Indication::Data { bytes: bytes(&ssdu), last: true }]);
        assert_eq!(pair.a_then_b(Request::MinorSync), [Indication::MinorSync { serial }]);
    }
    // The second confirmation covers the first; the third point is confirmed by the end.
    assert_eq!(
        pair.b_then_a(Request::MinorSyncResponse { serial: 2 }),
        [Indication::MinorSyncConfirm { serial: 2 }]
    );
    assert_eq!(
        pair.b.refused(Request::MinorSyncResponse { serial: 1 }).request,
        "S-SYNC-MINOR.response"
    );
    assert_eq!(pair.a_then_b(Request::ActivityEnd), [Indication::ActivityEnd { serial: 4 }]);
    assert_eq!(pair.b_then_a(Request::ActivityEndResponse), [Indication::ActivityEndConfirm]);

    assert_eq!(
        pair.b_then_a(Request::PleaseTokens { user_data: bytes(&[2, 1, 0]) }),
        [Indication::TokensPlease { user_data: bytes(&[2, 1, 0]) }]
    );
    assert_eq!(pair.a_then_b(Request::GiveControl), [Indication::ControlGiven]);
    assert!(!pair.a.lower.owns_tokens() && pair.b.lower.owns_tokens());
    assert_eq!(
        pair.b_then_a(Request::ActivityStart { activity: activity() }),
        [Indication::ActivityStart { activity: activity() }]
    );
    assert_eq!(
        pair.b_then_a(data(b"back")),
        [Indication::Data { bytes: bytes(b"back"), last: true }]
    );
    assert_eq!(pair.b_then_a(Request::ActivityEnd), [Indication::ActivityEnd { serial: 1 }]);
    assert_eq!(pair.a_then_b(Request::ActivityEndResponse), [Indication::ActivityEndConfirm]);
    assert_eq!(pair.b_then_a(Request::GiveTokens), [Indication::TokensGiven { all: true }]);

    assert_eq!(
        pair.a_then_b(Request::Release { user_data: bytes(b"bye") }),
        [Indication::Release { user_data: bytes(b"bye") }]
    );
    assert_eq!(
        pair.b_then_a(Request::ReleaseResponse { user_data: bytes(b"so long") }),
        [Indication::Released { user_data: bytes(b"so long") }]
    );
    assert!(pair.over());
    assert_eq!(
        (pair.b.indicated(), pair.a.lower.deadline(), pair.b.lower.deadline()),
        (vec![], None, None)
    );
}

#[test]
fn an_exchange_as_rtse_makes_it() {
    exchange(Pair::rtse());
}

#[test]
fn an_exchange_with_the_smallest_tpdu_and_octet_by_octet() {
    exchange(Pair::connected([Some(128), Some(8192)], &[1], RTSE));
    exchange(Pair::connected([None, Some(128)], &[7, 1, 300], RTSE));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn an_exchange_over_any_division(
        cuts in proptest::collection::vec(1usize..400, 1..20),
        sizes in any::<[Option<u8>; 2]>(),
    ) {
        let sizes = sizes.map(|size| size.map(|size| 1 << (7 + size % 7)));
        exchange(Pair::connected(sizes, &cuts, RTSE));
    }
}

#[test]
fn a_tsdu_over_many_small_tpdus_is_split_as_negotiated() {
    let mut pair = Pair::connected([Some(128), None], &[usize::MAX], DUPLEX);
    pair.a.ask(data(&[7; 1000]));
    // 1,004 octets of TSDU in DTs of 125.
    let wire = pair.a.wire.clone();
    let mut rest = &wire[..];
    let mut sizes = Vec::new();
    while let [3, 0, high, low, 2, 0xF0, end, ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        sizes.push(length - 7);
        assert_eq!(*end == 0x80, rest.len() == length);
        rest = &rest[length..];
    }
    assert_eq!(sizes, [125, 125, 125, 125, 125, 125, 125, 125, 4]);
    pair.run();
    assert_eq!(pair.b.indicated(), [Indication::Data { bytes: bytes(&[7; 1000]), last: true }]);
}

#[test]
fn duplex_sends_both_ways_and_releases_from_either_end() {
    let mut pair = Pair::connected([None, None], &[5], DUPLEX);
    pair.a.ask(data(b"ping"));
    pair.b.ask(data(b"pong"));
    pair.run();
    assert_eq!(pair.b.indicated(), [Indication::Data { bytes: bytes(b"ping"), last: true }]);
    assert_eq!(pair.a.indicated(), [Indication::Data { bytes: bytes(b"pong"), last: true }]);
    assert_eq!(
        pair.b_then_a(Request::Release { user_data: Bytes::new() }),
        [Indication::Release { user_data: Bytes::new() }]
    );
    // Data that remain may be sent before the answer.
    assert_eq!(pair.a_then_b(data(b"x")), [Indication::Data { bytes: bytes(b"x"), last: true }]);
    assert_eq!(
        pair.a_then_b(Request::ReleaseResponse { user_data: Bytes::new() }),
        [Indication::Released { user_data: Bytes::new() }]
    );
    assert!(pair.over());
}

#[test]
fn user_data_up_to_10240_octets_opens_a_connection() {
    let mut pair = Pair::new([None, None], &[999]);
    pair.a.ask(connect(RTSE, &[5; 10_240]));
    pair.run();
    assert!(
        matches!(&pair.b.indicated()[..], [Indication::Connect(c)] if c.user_data.len() == 10_240)
    );
    let mut pair = Pair::new([None, None], &[999]);
    assert_eq!(pair.a.refused(connect(RTSE, &[5; 10_241])).clause, "X.225 8.3");
}

/// Large pieces leave as they came in, not copied.
#[test]
fn large_data_is_not_copied() {
    let mut pair = Pair::connected([None, None], &[usize::MAX], DUPLEX);
    let content = Bytes::from(vec![1; 200_000]);
    pair.a.lower.request(T0, Request::Data { bytes: content.clone(), last: true }).unwrap();
    let mut from = 0;
    while let Some(LowerOutput::Send(sent)) = pair.a.lower.poll() {
        if sent.len() > 16 {
            assert_eq!(sent.as_ptr(), content[from..].as_ptr());
            from += sent.len();
        }
    }
    assert_eq!(from, content.len());
}

proptest! {
    #[test]
    fn garbage_never_panics(
        octets in proptest::collection::vec(any::<u8>(), 0..200),
        after in 0usize..4,
        cut in 0usize..200,
    ) {
        let mut end = match after {
            0 => End::new(Role::Responder, None),
            1 => {
                let mut end = End::new(Role::Initiator, None);
                end.ask(connect(RTSE, b""));
                end
            }
            _ => answering(),
        };
        if after == 3 {
            end.receive(&TRANSFER[..16]);
        }
        let (a, b) = octets.split_at(cut.min(octets.len()));
        end.receive(a);
        end.receive(b);
        // As the payload of a well-formed packet, to get beyond TPKT and COTP.
        let mut packet = crate::tpkt::header(octets.len() + 3).to_vec();
        packet.extend_from_slice(&[2, 0xF0, 0x80]);
        packet.extend_from_slice(&octets);
        let mut end = answering();
        end.receive(&packet);
        end.lower.tick(T0 + SETUP);
        end.lower.eof(T0);
        end.drain();
        prop_assert!(end.closed);
    }

    /// Any sequence of well-formed SPDUs in a session connection: indicated, discarded or aborted, and the
    /// same for every division.
    #[test]
    fn any_spdus_in_any_order(picks in proptest::collection::vec(0usize..12, 1..12), cut in any::<u16>()) {
        let spdus: [&[u8]; 12] = [
            &[1, 0, 0x2D, 5, 0x29, 3, 2, 1, 1],
            &[1, 0, 1, 0, 7, 7],
            &[1, 0, 0x31, 3, 0x2A, 1, 0x31],
            &[1, 0, 0x29, 3, 0x2A, 1, 0x32],
            &[2, 0, 0x32, 3, 0x2A, 1, 0x31],
            &[1, 0, 0x19, 0],
            &[1, 0, 0x39, 0],
            &[2, 0, 0x1A, 0],
            &[0x15, 0],
            &[1, 3, 0x10, 1, 0x15],
            &[2, 0, 0x30, 3, 0x32, 1, 1],
            &[0x09, 0],
        ];
        let mut stream = Vec::new();
        for pick in picks {
            stream.extend_from_slice(&crate::tpkt::header(spdus[pick].len() + 3));
            stream.extend_from_slice(&[2, 0xF0, 0x80]);
            stream.extend_from_slice(spdus[pick]);
        }
        let mut whole = answering();
        whole.receive(&stream);
        let mut parts = answering();
        let (a, b) = stream.split_at(usize::from(cut) % stream.len());
        parts.receive(a);
        parts.receive(b);
        prop_assert_eq!(whole.indicated(), parts.indicated());
        prop_assert_eq!(whole.sent(), parts.sent());
    }
}
