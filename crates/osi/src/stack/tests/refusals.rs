//! What presentation, ACSE, RTSE and ROSE answer to every kind of fault, and what is logged: the
//! rows of `docs/refusals.md`. The snapshot is the answer octet for octet.

mod x410;

use super::*;
use crate::session::service::ExceptionReason;
use std::fmt::Write as _;

/// A fault: how far the association has come, what is wrong, and how it comes.
type Case = (&'static str, &'static str, fn() -> Bench, fn(&mut Bench));

fn calling() -> Bench {
    let mut bench = Bench::new(&p1(), Role::Initiator);
    bench.ask(Request::Open { bind: BIND.into() });
    bench
}

fn called() -> Bench {
    Bench::new(&p1(), Role::Responder)
}

fn answered(bench: &mut Bench, results: &str, aare: &str) {
    let (responding_selector, requirements) = (None, 0x0249);
    let user_data = cp_of(results, aare);
    bench.receive(S::Accepted(Accept { responding_selector, requirements, user_data }));
}

fn aare(rtoac: &str) -> String {
    let external = format!("28(06(5101) 020103 A0({rtoac}))");
    format!("61(A1(06(56000106)) A2(020100) A3(A1(020100)) BE({external}))")
}

fn aarq(rtorq: &str) -> String {
    format!("60(A1(06(56000106)) BE(28(06(5101) 020103 A0({rtorq}))))")
}

/// As [`p1_responder`], in a monologue.
fn monologue() -> Bench {
    let mut bench = called();
    bench.connect(0x0249, cp_of(P1_CONTEXTS, &aarq("B0(A3(A0(B0(A1(800178)))))")));
    bench.ask(Request::Accept { bind: BIND.into() });
    bench
}

fn receiving() -> Bench {
    let mut bench = p1_responder();
    bench.receive(S::ActivityStart { activity: hex("020101") });
    bench
}

fn sending() -> Bench {
    let mut bench = calling();
    answered(&mut bench, P1_RESULTS, &aare("B1(80013F A2(A0(B1(A1(800178)))))"));
    let payload = crate::api::Payload::whole(hex("A0(0500)"));
    bench.ask(Request::Transfer { payload, resume: None });
    bench
}

fn nested(depth: usize) -> Vec<u8> {
    [[0x30, 0x80].repeat(depth), vec![5, 0]].concat()
}

fn deep_cp(bench: &mut Bench) {
    let mut cp = hex("3180 A003800101 A280 6180").to_vec();
    cp.extend(nested(200));
    bench.connect(0x0249, cp.into());
}

/// A P-DATA of this value in the context of message submission.
fn operation(bench: &mut Bench, apdu: &str) {
    bench.receive(S::Data { bytes: pdv("020105", apdu), last: true });
}

fn invoking() -> Bench {
    let mut bench = p3_responder();
    operation(&mut bench, "A1(020101 020103)");
    bench
}

const PRESENTATION: &[Case] = &[
    ("CP", "malformed: no BER", called, |b| b.connect(0x0249, hex("FF"))),
    ("CP", "malformed: mode-selector", called, |b| b.connect(0x0249, hex("31(A0(800105))"))),
    ("CP", "refused: X.410 mode", called, |b| b.connect(0x0249, hex("31(A0(800100))"))),
    ("CP", "refused: version", called, |b| {
        b.connect(0x0249, hex("31(A0(800101) A2(80020640))"));
    }),
    ("CP", "refused: default context", called, |b| {
        b.connect(0x0249, cp_of(&format!("A6(80025101 81025101) {P1_CONTEXTS}"), P1_AARQ));
    }),
    (
        "CP",
        "refused: called selector",
        || {
            let mut config = p1();
            config.local.presentation = Some(hex("4142"));
            Bench::new(&config, Role::Responder)
        },
        |b| b.connect(0x0249, cp_of(&format!("82(43) {P1_CONTEXTS}"), P1_AARQ)),
    ),
    ("CP", "refused: no context of ours", called, |b| {
        b.connect(0x0249, cp_of("A4(30(020101 06(52010001) 30(06(5101))))", P1_AARQ));
    }),
    ("CP", "refused: session units", called, |b| b.connect(2, cp_of(P1_CONTEXTS, P1_AARQ))),
    ("CP", "malformed: User-data", called, |b| {
        b.connect(0x0249, hex(&format!("31(A0(800101) A2({P1_CONTEXTS} 61(3005)))")));
    }),
    ("CP", "too large: contexts", called, |b| {
        let one: String =
            (0..65).map(|n| format!("30(0201{n:02X} 06(5101) 30(06(5101)))")).collect();
        b.connect(0x0249, cp_of(&format!("A4({one})"), P1_AARQ));
    }),
    ("CP", "too deep", called, deep_cp),
    ("awaiting CPA", "malformed", calling, |b| answered(b, "A5(30(0500))", "6100")),
    ("awaiting CPA", "malformed: results", calling, |b| {
        answered(b, "A5(30(800100))", &aare("B1()"));
    }),
    ("awaiting CPA", "refused: a context we need", calling, |b| {
        let results = P1_RESULTS.replacen("800100", "800102", 2);
        answered(b, &results, &aare("B1()"));
    }),
    ("awaiting CPA", "out of order: data", calling, |b| b.data("61(30(020101 A0(0500)))")),
    ("awaiting CPA", "out of order: release", calling, |b| {
        b.receive(S::Release { user_data: Bytes::new() });
    }),
    (
        "awaiting the user",
        "out of order: data",
        || {
            let mut bench = called();
            bench.connect(0x0249, cp_of(P1_CONTEXTS, P1_AARQ));
            bench
        },
        |b| b.data("61(30(020103 A0(0500)))"),
    ),
    ("open", "malformed: User-data", receiving, |b| b.data("6200")),
    ("open", "malformed: wrong context", receiving, |b| b.data("61(30(020109 A0(0400)))")),
    ("open", "malformed: cut short", receiving, |b| {
        b.data("610A3008020103A0");
        b.receive(S::ActivityEnd { serial: 1 });
    }),
    ("open", "malformed: no User-data", receiving, |b| b.data("")),
    ("open", "too large: a length of 2^63", receiving, |b| b.data("6188 7FFFFFFFFFFFFFFF 30")),
    ("open", "too deep", receiving, |b| {
        let mut data = hex("6180 3080 020103 A180").to_vec();
        data.extend([0x24, 0x80].repeat(200));
        b.receive(S::Data { bytes: data.into(), last: true });
    }),
];

const ACSE: &[Case] = &[
    ("CP", "malformed: no AARQ", called, |b| b.connect(0x0249, cp_of(P1_CONTEXTS, "62(800100)"))),
    ("CP", "malformed: AARQ", called, |b| b.connect(0x0249, cp_of(P1_CONTEXTS, "60()"))),
    ("CP", "refused: version", called, |b| {
        b.connect(0x0249, cp_of(P1_CONTEXTS, "60(80020640 A1(06(56000106)))"));
    }),
    ("CP", "refused: application context", called, |b| {
        b.connect(0x0249, cp_of(P1_CONTEXTS, "60(A1(06(56000100)))"));
    }),
    ("awaiting AARE", "malformed: none", calling, |b| answered(b, P1_RESULTS, "62(800100)")),
    ("awaiting AARE", "malformed: result", calling, |b| {
        answered(b, P1_RESULTS, "61(A1(06(56000106)) A2(020101) A3(A1(020100)))");
    }),
    ("awaiting AARE", "refused: another application context", calling, |b| {
        answered(b, P1_RESULTS, "61(A1(06(56000100)) A2(020100) A3(A1(020100)))");
    }),
    ("open", "malformed: RLRQ", receiving, |b| {
        b.receive(S::Release { user_data: pdv("020101", "61()") });
    }),
];

const RTSE: &[Case] = &[
    ("AARQ", "malformed: no RTORQ", called, |b| {
        b.connect(0x0249, cp_of(P1_CONTEXTS, "60(A1(06(56000106)))"));
    }),
    ("AARQ", "malformed: RTORQ", called, |b| {
        b.connect(0x0249, cp_of(P1_CONTEXTS, &aarq("B0()")));
    }),
    ("AARQ", "refused: dialogueMode", called, |b| {
        let rtorq = "B0(820107 A3(A0(B0(A1(800178)))))";
        b.connect(0x0249, cp_of(P1_CONTEXTS, &aarq(rtorq)));
    }),
    ("AARQ", "malformed: checkpointSize", called, |b| {
        let rtorq = "B0(8001FF A3(A0(B0(A1(800178)))))";
        b.connect(0x0249, cp_of(P1_CONTEXTS, &aarq(rtorq)));
    }),
    ("AARQ", "malformed: windowSize", called, |b| {
        let rtorq = "B0(810100 A3(A0(B0(A1(800178)))))";
        b.connect(0x0249, cp_of(P1_CONTEXTS, &aarq(rtorq)));
    }),
    ("AARQ", "malformed: checkpointSize twice", called, |b| {
        let rtorq = "B0(800101 800101 A3(A0(B0(A1(800178)))))";
        b.connect(0x0249, cp_of(P1_CONTEXTS, &aarq(rtorq)));
    }),
    ("awaiting RTOAC", "malformed: windowSize twice", calling, |b| {
        answered(b, P1_RESULTS, &aare("B1(810103 810103 A2(A0(B1(A1(800178)))))"));
    }),
    ("awaiting RTOAC", "malformed: windowSize", calling, |b| {
        answered(b, P1_RESULTS, &aare("B1(80013F 810100 A2(A0(B1(A1(800178)))))"));
    }),
    ("awaiting RTOAC", "too large: windowSize", calling, |b| {
        answered(b, P1_RESULTS, &aare("B1(80013F 810163 A2(A0(B1(A1(800178)))))"));
    }),
    ("awaiting RTOAC", "malformed: none", calling, |b| {
        answered(b, P1_RESULTS, "61(A1(06(56000106)) A2(020100) A3(A1(020100)))");
    }),
    ("awaiting RTOAC", "malformed: connectionDataAC", calling, |b| {
        answered(b, P1_RESULTS, &aare("B1(800140)"));
    }),
    ("awaiting RTOAC", "too large: checkpointSize", calling, |b| {
        answered(b, P1_RESULTS, &aare("B1(800141 A2(A0(B1(A1(800178)))))"));
    }),
    ("awaiting RTOAC", "out of order: recover", calling, |b| {
        let rtoac = "B1(A2(A1(04(78) 17(323630313032303330345A))))";
        answered(b, P1_RESULTS, &aare(rtoac));
    }),
    ("idle", "out of order: data", p1_responder, |b| {
        b.receive(S::Data { bytes: pdv("020103", "0400"), last: true });
    }),
    ("idle", "out of order: activity end", p1_responder, |b| {
        b.receive(S::ActivityEnd { serial: 1 });
    }),
    ("idle", "out of order: the turn in a monologue", monologue, |b| b.receive(S::ControlGiven)),
    ("idle", "out of order: some tokens in a monologue", monologue, |b| {
        b.receive(S::TokensGiven { all: false });
    }),
    ("idle", "out of order: some tokens of the turn", p1_responder, |b| {
        b.receive(S::TokensGiven { all: false });
    }),
    ("idle", "too late: an unknown activity resumed", p1_responder, |b| {
        b.receive(S::ActivityResume(crate::session::service::Resume {
            activity: hex("020102"),
            old_activity: hex("020101"),
            serial: 5,
            old_reference: None,
        }));
    }),
    ("receiving", "out of order: another activity", receiving, |b| {
        b.receive(S::ActivityStart { activity: hex("020102") });
    }),
    ("receiving", "out of order: a confirm", receiving, |b| b.receive(S::ActivityEndConfirm)),
    ("receiving", "malformed: RTTR", receiving, |b| {
        b.receive(S::Data { bytes: pdv("020103", "020100"), last: true });
    }),
    ("receiving", "malformed: two RTTRs in a value", receiving, |b| {
        b.receive(S::Data { bytes: pdv("020103", "040128 040100"), last: true });
    }),
    ("receiving", "malformed: EXTERNAL", receiving, |b| {
        b.receive(S::Data { bytes: pdv("020103", "04(3000)"), last: true });
    }),
    ("receiving", "malformed: ended within", receiving, |b| {
        b.receive(S::Data { bytes: pdv("020103", "04(2805)"), last: true });
        b.receive(S::ActivityEnd { serial: 1 });
    }),
    ("receiving", "too large: checkpoints", receiving, |b| {
        for serial in 1..100 {
            if !b.indicated.iter().any(|i| matches!(i, Indication::Aborted { .. })) {
                b.receive(S::MinorSync { serial });
            }
        }
    }),
    ("sending", "out of order: an activity", sending, |b| {
        b.receive(S::ActivityStart { activity: hex("020101") });
    }),
    ("sending", "out of order: a confirm of no checkpoint", sending, |b| {
        b.receive(S::MinorSyncConfirm { serial: 9 });
    }),
    ("sending", "malformed: RTTP", sending, |b| {
        b.receive(S::TokensPlease { user_data: pdv("020103", "0400") });
    }),
];

const ROSE: &[Case] = &[
    (
        "AARQ",
        "malformed: no bind",
        || Bench::new(&p3(), Role::Responder),
        |b| {
            let contexts =
                "A4(30(020101 06(52010001) 30(06(5101))) 30(020103 06(5600020B) 30(06(5101))))";
            b.connect(requirements::DUPLEX, cp_of(contexts, "60(A1(06(56000100)))"));
        },
    ),
    ("open", "malformed: APDU", p3_responder, |b| operation(b, "A900")),
    ("open", "malformed: ROIV", p3_responder, |b| operation(b, "A1(020104)")),
    ("open", "malformed: invoke identifier", p3_responder, |b| {
        operation(b, "A1(0209010101010101010101 020103)");
    }),
    ("open", "unknown: operation by object identifier", p3_responder, |b| {
        operation(b, "A1(020104 06(5101))");
    }),
    ("open", "out of order: a duplicate invocation", invoking, |b| {
        operation(b, "A1(020101 020103)");
    }),
    ("open", "out of order: a linked invocation", p3_responder, |b| {
        operation(b, "A1(020104 800102 020103)");
    }),
    ("open", "out of order: a result to nothing", p3_responder, |b| operation(b, "A2(020104)")),
    ("open", "out of order: an error to nothing", p3_responder, |b| {
        operation(b, "A3(020104 020101)");
    }),
    ("open", "too large: invocations", p3_responder, |b| {
        for invoke in 0..256u16 {
            operation(b, &format!("A1(0202{invoke:04X} 020103)"));
        }
        operation(b, "A1(02020100 020103)");
    }),
    ("open", "out of order: P-DATA of ACSE", p3_responder, |b| b.data("61(30(020101 A0(0500)))")),
    ("open", "out of order: an activity", p3_responder, |b| {
        b.receive(S::ActivityStart { activity: hex("020101") });
    }),
];

fn shown(octets: &[u8]) -> String {
    octets.iter().map(|o| format!("{o:02X}")).collect()
}

/// What went to the peer because of the fault.
fn wire(down: &[R]) -> String {
    let mut data = Vec::new();
    let mut all = Vec::new();
    for request in down {
        match request {
            R::Data { bytes, .. } => data.extend_from_slice(bytes),
            R::Abort { user_data } => all.push(format!("S-U-ABORT {}", shown(user_data))),
            R::Refuse(refuse) => {
                all.push(format!(
                    "S-CONNECT refused({}) {}",
                    refuse.reason,
                    shown(&refuse.user_data)
                ));
            }
            other => all.push(format!("{other:?}")),
        }
    }
    if !data.is_empty() {
        all.push(format!("S-DATA {}", shown(&data)));
    }
    all.join("; ")
}

/// P-DATA of these octets as one RTTR.
fn rttr(wire: &[u8]) -> S {
    let mut data = hex("6180 3080 020103 A080 0482").to_vec();
    data.extend((wire.len() as u16).to_be_bytes());
    data.extend(wire);
    data.extend([0; 6]);
    S::Data { bytes: data.into(), last: true }
}

/// What may be refused is one transfer, and what nests too deep is the user's to refuse: the
/// association goes on.
#[test]
fn what_nests_too_deep_costs_its_transfer_alone() {
    // An APDU that nests deep goes to the user, octet for octet.
    let apdu = [[0x30, 0x80].repeat(200), [0, 0].repeat(200)].concat();
    let mut bench = receiving();
    bench.receive(rttr(&[&hex("28 80 020105 A080")[..], &apdu, &[0; 4]].concat()));
    let data = |i: &Indication| match i {
        Indication::Data { bytes, .. } => bytes.to_vec(),
        _ => Vec::new(),
    };
    assert_eq!(bench.indicated.iter().flat_map(data).collect::<Vec<u8>>(), apdu);
    // So does an argument over ROSE.
    let mut bench = p3_responder();
    let mut invoke = hex("6180 3080 020105 A080 A180 020101 020103").to_vec();
    invoke.extend(&apdu);
    invoke.extend([0; 8]);
    bench.receive(S::Data { bytes: invoke.into(), last: true });
    assert_eq!(bench.indicated.iter().flat_map(data).collect::<Vec<u8>>(), apdu);

    // Segments of an RTTR, and of the EXTERNAL's octet-aligned encoding.
    let segments = [0x24, 0x80].repeat(200);
    let deep_rttr = [&hex("6180 3080 020103 A080")[..], &segments].concat();
    let cut = S::Data { bytes: deep_rttr.into(), last: true };
    let aligned = rttr(&[&hex("28 80 020105 A180")[..], &segments].concat());
    for (deep, field) in [(cut, "RTTR"), (aligned, "EXTERNAL")] {
        let mut bench = receiving();
        bench.indicated.clear();
        bench.receive(deep);
        let [Indication::TransferFaulty { detail }] = &bench.indicated[..] else {
            panic!("{field}: {:?}", bench.indicated)
        };
        let limit = "nested deeper than the limit of 32 (X.228 7.6.1)";
        assert_eq!(*detail, format!("rtse: {field}: {limit}"));
        bench.ask(Request::TransferRefused(AbortReason::PermanentProblem));
        let last = bench.down.last();
        let refused = R::ExceptionReport(ExceptionReason::Unrecoverable);
        assert_eq!(last, Some(&refused), "{field}");
        bench.indicated.clear();
        bench.receive(S::ActivityDiscard(ExceptionReason::Unrecoverable));
        bench.receive(S::ActivityStart { activity: hex("020102") });
        let indicated: Vec<_> = bench.indicated.iter().map(Indication::name).collect();
        assert_eq!(indicated, ["TransferStopped", "TransferStart"], "{field}");
    }
}

#[test]
fn every_fault_is_answered_and_named() {
    let mut text = String::new();
    let layers = [
        ("presentation", PRESENTATION),
        ("acse", ACSE),
        ("rtse", RTSE),
        ("rose", ROSE),
        ("x410 mode", x410::X410),
    ];
    for (layer, cases) in layers {
        for (at, fault, start, go) in cases {
            let mut bench = start();
            bench.down.clear();
            bench.indicated.clear();
            go(&mut bench);
            let place = format!("{layer}, {at}, {fault}");
            let (log, over) = match bench.indicated.last() {
                Some(Indication::Aborted { detail, .. }) => (detail.clone(), true),
                Some(Indication::Faulty { detail, .. }) => (detail.clone(), false),
                other => panic!("{place}: {other:?}"),
            };
            let named = ["presentation", "acse", "rtse", "rose", "x410 mode", "session"];
            let named = named.iter().any(|layer| log.starts_with(layer));
            assert!(named, "{place}: {log}");
            assert!(log.contains("X.2"), "{place}: {log}");
            let wire = wire(&bench.down);
            assert!(!wire.is_empty(), "{place}: no answer");
            writeln!(text, "{place}\n  {log}\n  {wire}").unwrap();
            // Over is over; a rejected operation harms nothing else.
            bench.down.clear();
            bench.indicated.clear();
            if over {
                bench.data("61(30(020103 A0(0400)))");
                bench.receive(S::ActivityStart { activity: hex("020101") });
                assert!(
                    bench.indicated.is_empty() && bench.down.is_empty(),
                    "{place}: {:?}",
                    bench.down
                );
                assert_eq!(bench.upper.deadline(), None, "{place}");
            } else if *fault != "too large: invocations" {
                operation(&mut bench, "A1(020177 020103)");
                assert!(
                    matches!(bench.indicated[0], Indication::Invoked { invoke: 0x77, .. }),
                    "{place}"
                );
            }
        }
    }
    insta::assert_snapshot!("upper_refusals", text);
}
