//! The faults of X.410 mode, where RTSE stands on session alone.

use super::*;
use crate::api::Mode;

fn x410() -> Config {
    Config { mode: Mode::X410 { protocol: Some(Mode::P1_1988) }, ..p1() }
}

fn called() -> Bench {
    Bench::new(&x410(), Role::Responder)
}

fn calling() -> Bench {
    let mut bench = Bench::new(&x410(), Role::Initiator);
    bench.ask(Request::Open { bind: BIND.into() });
    bench
}

/// A PConnect of these x410-mode-parameters.
fn pconnect(parameters: &str) -> Bytes {
    hex(&format!("31(A0(800100) A1({parameters}))"))
}

fn answered(bench: &mut Bench, requirements: u16, user_data: Bytes) {
    let responding_selector = None;
    bench.receive(S::Accepted(Accept { responding_selector, requirements, user_data }));
}

fn open() -> Bench {
    let mut bench = called();
    bench.connect(0x0249, pconnect("820101 A3(A0(A1(800178))) 84010C"));
    bench.ask(Request::Accept { bind: BIND.into() });
    bench
}

pub(super) fn receiving() -> Bench {
    let mut bench = open();
    bench.receive(S::ActivityStart { activity: hex("020101") });
    bench
}

pub(super) const X410: &[Case] = &[
    ("CP", "malformed: none", called, |b| b.connect(0x0249, Bytes::new())),
    ("CP", "malformed: no BER", called, |b| b.connect(0x0249, hex("FF"))),
    ("CP", "malformed: no SET", called, |b| b.connect(0x0249, hex("30(A0(800100))"))),
    ("CP", "malformed: cut short", called, |b| b.connect(0x0249, hex("3120 A003800100 A110"))),
    ("CP", "malformed: no parameters", called, |b| b.connect(0x0249, hex("31(A0(800100))"))),
    ("CP", "malformed: no connectionDataRQ", called, |b| b.connect(0x0249, pconnect("80013F"))),
    ("CP", "malformed: checkpointSize twice", called, |b| {
        b.connect(0x0249, pconnect("800101 800101 A3(A0(A1(800178)))"));
    }),
    ("CP", "malformed: windowSize", called, |b| {
        b.connect(0x0249, pconnect("810100 A3(A0(A1(800178)))"));
    }),
    ("CP", "refused: dialogueMode", called, |b| {
        b.connect(0x0249, pconnect("820107 A3(A0(A1(800178)))"));
    }),
    ("CP", "refused: session units", called, |b| {
        b.connect(2, pconnect("A3(A0(A1(800178)))"));
    }),
    ("awaiting CPA", "malformed: none", calling, |b| answered(b, 0x0249, Bytes::new())),
    ("awaiting CPA", "malformed: no parameters", calling, |b| {
        answered(b, 0x0249, hex("31(A0(800100))"));
    }),
    ("awaiting CPA", "malformed: connectionDataAC", calling, |b| {
        answered(b, 0x0249, pconnect("800140"));
    }),
    ("awaiting CPA", "too large: windowSize", calling, |b| {
        answered(b, 0x0249, pconnect("80013F 810163 A2(A0(A1(800178)))"));
    }),
    ("awaiting CPA", "refused: session units", calling, |b| {
        answered(b, 2, pconnect("A2(A0(A1(800178)))"));
    }),
    ("idle", "out of order: data", open, |b| b.data("A0(0500)")),
    ("receiving", "malformed: APDU", receiving, |b| b.data("020100")),
    ("receiving", "malformed: two APDUs", receiving, |b| b.data("A0(0500) A0(0500)")),
    ("receiving", "malformed: RTTR of no OCTET STRING", receiving, |b| {
        b.data("0401A0");
        b.data("A0(0500)");
    }),
    ("receiving", "malformed: RTTR cut short", receiving, |b| b.data("0405A000")),
    ("receiving", "malformed: ended within", receiving, |b| {
        b.data("A0050500");
        b.receive(S::ActivityEnd { serial: 1 });
    }),
    ("receiving", "out of order: another activity", receiving, |b| {
        b.receive(S::ActivityStart { activity: hex("020102") });
    }),
];

/// The selector distinguishes the modes wherever it stands, also where the rest is malformed.
#[test]
fn a_call_of_normal_mode_is_answered_in_normal_mode() {
    let cp = cp_of(P1_CONTEXTS, P1_AARQ);
    for (cp, taken_up) in
        [(cp.clone(), true), (cp.slice(..40), false), (hex("31(A0(800101))"), false)]
    {
        let mut bench = called();
        bench.connect(0x0249, cp);
        if taken_up {
            let opened = bench.indicated.first();
            let Some(Indication::Open { mode: Mode::Normal, .. }) = opened else {
                panic!("{opened:?}")
            };
            continue;
        }
        let [R::Refuse(Refuse { user_data, .. })] = &bench.down[..] else {
            panic!("{:?}", bench.down)
        };
        assert_eq!(user_data[0], 0x30, "the CPR of normal mode: {user_data:02x?}");
    }
    for pconnect in ["31(A1(A3(A0(A1(800178)))) A0(800100))", "31(A1(A3(A0(A1(800178)))))"] {
        let mut bench = called();
        bench.connect(0x0249, hex(pconnect));
        let opened = bench.indicated.first();
        let Some(Indication::Open { mode: Mode::X410 { .. }, .. }) = opened else {
            panic!("{opened:?}")
        };
    }
}

/// An S-DATA of no octets holds nothing, wherever it comes.
#[test]
fn an_s_data_of_no_octets_is_taken() {
    for pieces in [&["", "A0(0500)"][..], &["A0", "", "020500", ""], &["", "", "0404A0020500", ""]]
    {
        let mut bench = receiving();
        for piece in pieces {
            bench.data(piece);
        }
        bench.receive(S::ActivityEnd { serial: 1 });
        assert_eq!(bench.octets(), hex("A0(0500)"), "{pieces:?}");
        assert!(matches!(bench.indicated.last(), Some(Indication::TransferEnd)), "{pieces:?}");
    }
}
