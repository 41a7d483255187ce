//! The upper layers against literal octets at the session service, as fielded peers send them.

mod refusals;
mod waits;

use super::upper::{Upper, UpperOutput};
use crate::api::{
    AbortReason, Config, Indication, Problem, RefuseReason, Request, Role, Selectors,
};
use crate::profiles;
use crate::session::service::{
    Accept, Connect, ConnectionReference, Indication as S, Refuse, Request as R, requirements,
};
use base::time::Instant;
use bytes::Bytes;

const NOW: Instant = Instant(1_000_000);
/// A bind element of 7 octets.
const BIND: &[u8] = &[0xa1, 5, 0x80, 3, b'o', b'n', b'e'];

/// Octets written in hexadecimal; `(...)` stands for a length and that many octets, `<...>` for the
/// indefinite form.
fn hex(text: &str) -> Bytes {
    let mut open = vec![Vec::new()];
    let mut digits = text.chars().filter(|c| !c.is_whitespace());
    while let Some(c) = digits.next() {
        match c {
            '(' | '<' => open.push(Vec::new()),
            ')' => {
                let inner: Vec<u8> = open.pop().unwrap();
                let outer = open.last_mut().unwrap();
                match inner.len() {
                    n @ 0..128 => outer.push(n as u8),
                    n @ 128..256 => outer.extend([0x81, n as u8]),
                    n => outer.extend([0x82, (n >> 8) as u8, n as u8]),
                }
                outer.extend(inner);
            }
            '>' => {
                let inner = open.pop().unwrap();
                let outer = open.last_mut().unwrap();
                outer.push(0x80);
                outer.extend(inner);
                outer.extend([0, 0]);
            }
            high => {
                let octet: String = [high, digits.next().unwrap()].iter().collect();
                open.last_mut().unwrap().push(u8::from_str_radix(&octet, 16).unwrap());
            }
        }
    }
    assert_eq!(open.len(), 1, "{text}");
    open.remove(0).into()
}

fn reference() -> ConnectionReference {
    ConnectionReference {
        user: hex("04 01 78"),
        common: Bytes::from_static(b"\x17\x0d260102030405Z"),
        additional: Bytes::new(),
    }
}

fn p1() -> Config {
    profiles::p1(Selectors::default(), Selectors::default(), reference())
}

fn p3() -> Config {
    profiles::p3(Selectors::default(), Selectors::default(), reference())
}

/// The upper layers and what came out of them.
struct Bench {
    upper: Upper,
    down: Vec<R>,
    indicated: Vec<Indication>,
    /// The connection below is to end.
    ended: bool,
}

impl Bench {
    fn new(config: &Config, role: Role) -> Bench {
        Bench {
            upper: Upper::new(config, role),
            down: Vec::new(),
            indicated: Vec::new(),
            ended: false,
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.upper.poll() {
            match output {
                UpperOutput::Session(request) => self.down.push(request),
                UpperOutput::User(indication) => self.indicated.push(indication),
                UpperOutput::End => self.ended = true,
            }
        }
    }

    fn ask(&mut self, request: Request) {
        self.upper.request(NOW, request);
        self.drain();
    }

    fn receive(&mut self, indication: S) {
        self.upper.indication(NOW, indication);
        self.drain();
    }

    fn connect(&mut self, requirements: u16, cp: Bytes) {
        self.receive(S::Connect(Connect {
            calling_selector: None,
            called_selector: None,
            reference: reference(),
            requirements,
            user_data: cp,
        }));
    }

    fn data(&mut self, octets: &str) {
        self.receive(S::Data { bytes: hex(octets), last: true });
    }

    /// All data indicated.
    fn octets(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for indication in &self.indicated {
            if let Indication::Data { bytes, .. } = indication {
                all.extend_from_slice(bytes);
            }
        }
        all
    }

    fn detail(&self) -> String {
        match self.indicated.last() {
            Some(Indication::Aborted { detail, .. }) => detail.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// User data of the last S-U-ABORT.
    fn aborted(&self) -> Bytes {
        match self.down.last() {
            Some(R::Abort { user_data }) => user_data.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// All S-DATA user data.
    fn sent(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for request in &self.down {
            if let R::Data { bytes, .. } = request {
                all.extend_from_slice(bytes);
            }
        }
        all
    }
}

/// The contexts of P1, as two independent agents propose them.
const P1_CONTEXTS: &str = "A4(
    30(020101 06(52010001) 30(06(5101))) 30(020103 06(5600020C) 30(06(5101)))
    30(020105 06(56000207) 30(06(5101))))";

/// AARQ with RTORQ: checkpoint size 64, window 16, two-way alternate, open, bind.
const P1_AARQ: &str = "60(A1(06(56000106)) BE(28(06(5101) 020103 A0(
    B0(800140 810110 820101 A3(A0(B0(A103800178))))))))";

/// A CP or CPA of normal mode around these contexts and this APDU of ACSE.
fn cp_of(contexts: &str, apdu: &str) -> Bytes {
    hex(&format!("31(A0(800101) A2({contexts} 61(30(020101 A0({apdu})))))"))
}

fn pdv(context: &str, value: &str) -> Bytes {
    hex(&format!("61(30({context} A0({value})))"))
}

#[test]
fn our_cp_is_the_standards_form() {
    let mut bench = Bench::new(&p1(), Role::Initiator);
    bench.ask(Request::Open { bind: hex("A1(800178)") });
    let [R::Connect(connect)] = &bench.down[..] else { panic!("{:?}", bench.down) };
    assert_eq!(connect.requirements, 0x0249);
    assert_eq!(connect.user_data, cp_of(P1_CONTEXTS, P1_AARQ));
}

fn p1_responder() -> Bench {
    let mut bench = Bench::new(&p1(), Role::Responder);
    bench.connect(0x0249, cp_of(P1_CONTEXTS, P1_AARQ));
    assert!(matches!(bench.indicated[..], [Indication::Open { .. }]), "{:?}", bench.indicated);
    bench.ask(Request::Accept { bind: BIND.into() });
    bench
}

const P1_RESULTS: &str = "A5(30(800100 81(5101)) 30(800100 81(5101)) 30(800100 81(5101)))";

#[test]
fn our_cpa_is_the_standards_form() {
    let bench = p1_responder();
    let [R::Accept(Accept { user_data, requirements, .. })] = &bench.down[..] else {
        panic!("{:?}", bench.down)
    };
    assert_eq!(*requirements, 0x0249);
    let aare = "61(A1(06(56000106)) A2(020100) A3(A1(020100)) BE(28(06(5101) 020103 A0(
        B1(800140 810110 A2(A0(B1(A1(80036F6E65)))))))))";
    assert_eq!(*user_data, cp_of(P1_RESULTS, aare));
}

/// A CP with indefinite lengths everywhere, its members in another order, a descriptor in the
/// EXTERNAL and unknown members, as fielded agents send it.
#[test]
fn an_indefinite_cp_in_any_order() {
    let cp = hex(&format!(
        "31<A2<{P1_CONTEXTS} 88020600 81(4142) 80020780
           61<30<020101 A0<
             60<80020780 A1(06(56000106)) BE<28<020103 070178 A0<
               B0<A3<A0<B0<A1<80036F6E65>>>> 80013F 9F210105>>>>>>>>
           > A0(800101) >"
    ));
    let mut bench = Bench::new(&p1(), Role::Responder);
    bench.connect(0x0249, cp);
    let [Indication::Open { bind, calling, .. }] = &bench.indicated[..] else {
        panic!("{:?}", bench.indicated)
    };
    assert_eq!(*bind, hex("A1<80036F6E65>"));
    assert_eq!(calling.presentation.as_deref(), Some(&b"AB"[..]));
    bench.ask(Request::Accept { bind: BIND.into() });
    let Some(R::Accept(accept)) = bench.down.last() else { panic!("{:?}", bench.down) };
    // Checkpoint size 63 was proposed and the window defaulted: 63 is written, 3 left out.
    let rtoac = hex("B1(80013F A2(A0(B1(A1(80036F6E65)))))");
    assert!(accept.user_data.ends_with(&rtoac), "{:02x?}", accept.user_data);
}

#[test]
fn a_t61_recover_is_refused_before_an_open() {
    let recover = "60(A1(06(56000106)) BE(28(06(5101) 020103 A0(
        B0(A3(A1(14(79) 17(323630313032303330345A))))))))";
    let mut bench = Bench::new(&p1(), Role::Responder);
    bench.connect(0x0249, cp_of(P1_CONTEXTS, recover));
    let [Indication::RecoverAsked { reference, .. }] = &bench.indicated[..] else {
        panic!("{:?}", bench.indicated)
    };
    assert_eq!(reference.user, hex("04(79)"));
    bench.ask(Request::Refuse { reason: RefuseReason::CannotRecover, bind_error: None });
    let Some(R::Refuse(Refuse { reason: 2, user_data })) = bench.down.last() else {
        panic!("{:?}", bench.down)
    };
    let aare = "61(A1(06(56000106)) A2(020101) A3(A1(020101)) BE(28(06(5101) 020103 A0(B200))))";
    let cpr = format!("30({P1_RESULTS} 61(30(020101 A0({aare}))))");
    assert_eq!(*user_data, hex(&cpr));
}

/// The captured refusal: CPR, AARE rejected-permanent, RTORJ with a bind error.
#[test]
fn a_captured_refusal() {
    for (rtorj, expected, error) in [
        ("B2(A1(B2(020102)))", RefuseReason::Bind, Some(hex("020102"))),
        ("B2(A1(B2(020100)))", RefuseReason::Bind, Some(hex("020100"))),
        ("B2<800100>", RefuseReason::Busy, None),
        ("B2<800101>", RefuseReason::CannotRecover, None),
        ("B2<800102>", RefuseReason::ValidationFailure, None),
        ("B2<800103>", RefuseReason::DialogueMode, None),
        // A foreign MTA leaves the bind error's tag out.
        ("B2(A1(020102))", RefuseReason::Bind, Some(hex("020102"))),
        ("B2(A1(020100))", RefuseReason::Bind, Some(hex("020100"))),
        ("B2()", RefuseReason::Unspecified, None),
    ] {
        let mut bench = Bench::new(&p1(), Role::Initiator);
        bench.ask(Request::Open { bind: BIND.into() });
        let user_data = hex(&format!(
            "30(61(30(020101 A0(61(A1(06(56000106)) A2(020101) A3(A1(020101))
                BE(28(06(5101) 020103 A0({rtorj}))))))))"
        ));
        bench.receive(S::Refused(Refuse { reason: 2, user_data }));
        let [Indication::Refused { reason, bind_error, .. }] = &bench.indicated[..] else {
            panic!("{:?}", bench.indicated)
        };
        assert_eq!((*reason, bind_error), (expected, &error), "{rtorj}");
    }
}

#[test]
fn what_cannot_be_read_of_a_refusal_is_shown() {
    for (rtorj, expected) in [
        ("B2(A1(1A04 62757379))", "bind error [18]: unexpected [UNIVERSAL 26]: text \"busy\""),
        (
            "B2(A1(A3(020102)))",
            "bind error [18]: unexpected [3]: octets B2 07 A1 05 A3 03 02 01 02",
        ),
        ("020102", "RTORJ: unexpected [UNIVERSAL 2]: octets 02 01 02"),
    ] {
        let mut bench = Bench::new(&p1(), Role::Initiator);
        bench.ask(Request::Open { bind: BIND.into() });
        let aare = format!(
            "61(A1(06(56000106)) A2(020101) A3(A1(020101)) BE(28(06(5101) 020103 A0({rtorj}))))"
        );
        let user_data = hex(&format!("30(61(30(020101 A0({aare}))))"));
        bench.receive(S::Refused(Refuse { reason: 2, user_data }));
        let [Indication::Refused { bind_error: None, detail, .. }] = &bench.indicated[..] else {
            panic!("{:?}", bench.indicated)
        };
        assert!(detail.ends_with(expected), "{detail}");
    }
}

#[test]
fn the_text_of_an_abort_is_shown() {
    let abrt = |user: &str| format!("A0(61(30(020101 A0({user}))))");
    for (user_data, reason, expected) in [
        // RTAB: invalidParameter, the bits of the parameter, words.
        (
            abrt("64(800100 BE(28(020103 A0(B6(800101 810200F0 A2(1A04 6E6F7065))))))"),
            Some(AbortReason::InvalidParameter),
            "rtse: the peer sent RTAB, InvalidParameter, reflectedParameter octets F0, \
             text \"nope\" (X.228 7.9); acse: ABRT, source acse-service-user (X.227 7.3.3)",
        ),
        // The provider's, with words; words without an EXTERNAL; an EXTERNAL of another type.
        (
            abrt("64(800101 BE(28(020103 81(676F2061776179))))"),
            None,
            "acse: ABRT, source acse-service-provider (X.227 7.3.3), text \"go away\"",
        ),
        (
            abrt("64(800100 BE(1A07 676F2061776179))"),
            None,
            "(X.227 7.3.3), RTAB: unexpected [UNIVERSAL 26]: text \"go away\"",
        ),
        (
            abrt("64(800100 BE(28(020103 A0(020105))))"),
            None,
            "(X.227 7.3.3), RTAB: unexpected [UNIVERSAL 2]: octets 02 01 05",
        ),
        // Octets that are not an ABRT.
        (abrt("6B00"), None, "ACSE APDU: unexpected [APPLICATION 11]: octets 6B 00"),
        ("FF".to_owned(), None, ": octets FF"),
    ] {
        let mut bench = p1_responder();
        bench.receive(S::UserAbort { user_data: hex(&user_data) });
        let [.., Indication::Aborted { reason: indicated, detail }] = &bench.indicated[..] else {
            panic!("{:?}", bench.indicated)
        };
        assert_eq!(*indicated, reason, "{detail}");
        assert!(detail.ends_with(expected), "{detail}");
    }
    // Over ROSE an ABRT has whatever the peer's user puts there.
    let mut bench = p3_responder();
    let user_data = hex(&abrt("64(800100 BE(28(020105 A0(1A07 676F2061776179))))"));
    bench.receive(S::UserAbort { user_data });
    assert!(bench.detail().ends_with(", text \"go away\""), "{}", bench.detail());
}

#[test]
fn a_provider_refusal_is_indicated_with_its_reason() {
    for (reason, user_data, expected) in [
        (129, Bytes::new(), "reason 129"),
        (2, hex("30(8A0103)"), "provider-reason 3"),
        (2, hex("31(800100)"), "a CPR of X.410 mode, octets 31 03 80 01 00"),
        (2, hex("FF"), "CPR PPDU"),
    ] {
        let mut bench = Bench::new(&p1(), Role::Initiator);
        bench.ask(Request::Open { bind: BIND.into() });
        bench.receive(S::Refused(Refuse { reason, user_data }));
        let [Indication::Refused { reason: RefuseReason::Unspecified, detail, .. }] =
            &bench.indicated[..]
        else {
            panic!("{:?}", bench.indicated)
        };
        assert!(detail.contains(expected), "{detail}");
    }
}

#[test]
fn congestion_below_is_busy() {
    for (reason, user_data) in [(1, Bytes::new()), (131, Bytes::new()), (2, hex("30(8A0101)"))] {
        let mut bench = Bench::new(&p1(), Role::Initiator);
        bench.ask(Request::Open { bind: BIND.into() });
        bench.receive(S::Refused(Refuse { reason, user_data }));
        let [Indication::Refused { reason: RefuseReason::Busy, .. }] = &bench.indicated[..] else {
            panic!("{:?}", bench.indicated)
        };
    }
}

#[test]
fn x410_mode_is_refused_with_its_reason() {
    let mut bench = Bench::new(&p1(), Role::Responder);
    bench.connect(0x0249, hex("31(A0(800100) A1(800101))"));
    assert!(bench.detail().contains("X.410 mode"), "{}", bench.detail());
    let [R::Refuse(Refuse { reason: 2, user_data })] = &bench.down[..] else {
        panic!("{:?}", bench.down)
    };
    assert_eq!(*user_data, hex("31(800102)"));
}

#[test]
fn a_cp_that_cannot_be_taken_up_is_refused() {
    for (requirements, cp, expected) in [
        (0x0002, cp_of(P1_CONTEXTS, P1_AARQ), "session requirements lack 0x0249"),
        (0x0249, cp_of("A400", P1_AARQ), "was not proposed"),
        (0x0249, cp_of(&P1_CONTEXTS.replace("5101", "5102"), P1_AARQ), "was not proposed with BER"),
        (0x0249, cp_of(&P1_CONTEXTS.replace("020103", "020101"), P1_AARQ), "used twice"),
        (0x0249, hex("31()"), "mode-selector"),
        (0x0249, hex("31(A0(800101))"), "normal-mode-parameters"),
        (0x0249, hex("31(A0(800101) A2(80020640))"), "protocol-version"),
        (0x0249, hex("FF"), "CP PPDU"),
        (0x0249, Bytes::new(), "CP PPDU"),
    ] {
        let mut bench = Bench::new(&p1(), Role::Responder);
        bench.connect(requirements, cp);
        assert!(bench.detail().contains(expected), "{}", bench.detail());
        assert!(matches!(bench.down[..], [R::Refuse(_)]), "{:?}", bench.down);
    }
    for (aarq, expected) in [
        ("60()", "application-context-name"),
        ("62(800100)", "no AARQ"),
        ("60(A1(06(56000106)))", "no RTORQ"),
        ("60(A1(06(56000106)) BE(28(020103 A0(B0()))))", "connectionDataRQ"),
        ("60(A1(06(56000106)) BE(28(020103 A0(B0(A3(A0(B1(0500))))))))", "bind argument"),
    ] {
        let mut bench = Bench::new(&p1(), Role::Responder);
        bench.connect(0x0249, cp_of(P1_CONTEXTS, aarq));
        let expected = if expected == "bind argument" { "open" } else { expected };
        assert!(bench.detail().contains(expected), "{}", bench.detail());
        assert!(matches!(bench.down[..], [R::Abort { .. }]), "{:?}", bench.down);
    }
}

/// One transfer as captured: RTTR constructed and indefinite around an EXTERNAL of indefinite
/// length; then with the value octet-aligned, in one piece and in two.
#[test]
fn a_captured_transfer() {
    let rttr = "24<04820008 28800201 05A080A0 04(80318005000000) 04(00) 04(0000000000)>";
    for p_data in [
        format!("61<30<020103 A0<{rttr}>>>"),
        format!("61(30(06(5101) 020103 81({rttr})))"),
        "61<30<020103 A1<04(24 80 04 82 00 08 28 80 02 01)
            04(05A080A0 04(80318005000000) 04(00) 04(0000000000) 0000)>>>"
            .to_owned(),
    ] {
        let mut bench = p1_responder();
        bench.receive(S::ActivityStart { activity: hex("020101") });
        bench.data(&p_data);
        bench.receive(S::ActivityEnd { serial: 1 });
        let ended = matches!(bench.indicated.last(), Some(Indication::TransferEnd));
        assert!(ended, "{p_data}: {:?}", bench.indicated);
        assert_eq!(bench.octets(), hex("A0<31<0500>>")[..], "{p_data}");
        bench.ask(Request::TransferSecured);
        assert_eq!(bench.down.last(), Some(&R::ActivityEndResponse));
    }
}

/// Several PDV-lists in one P-DATA, a primitive RTTR in each.
#[test]
fn two_values_in_one_p_data() {
    let mut bench = p1_responder();
    bench.receive(S::ActivityStart { activity: hex("020107") });
    bench.data("61(30(020103 A0(04(280B020105A00680))) 30(020103 A0(04(0401020304))))");
    bench.receive(S::ActivityEnd { serial: 1 });
    assert_eq!(bench.octets(), hex("800401020304")[..]);
    assert!(
        matches!(bench.indicated.last(), Some(Indication::TransferEnd)),
        "{:?}",
        bench.indicated
    );
}

#[test]
fn our_transfer_and_release_are_the_standards_form() {
    let mut bench = Bench::new(&p1(), Role::Initiator);
    bench.ask(Request::Open { bind: BIND.into() });
    let aare = "61(A1(06(56000106)) A2(020100) A3(A1(020100)) BE(28(06(5101) 020103 A0(
        B1(80013F A2(A0(B1(A1(800178)))))))))";
    let user_data = cp_of(P1_RESULTS, aare);
    let (responding_selector, requirements) = (None, 0x0249);
    bench.receive(S::Accepted(Accept { responding_selector, requirements, user_data }));
    let [Indication::Opened { bind, .. }] = &bench.indicated[..] else {
        panic!("{:?}", bench.indicated)
    };
    assert_eq!(*bind, hex("A1(800178)"));
    bench.down.clear();
    let payload = crate::api::Payload::whole(hex("A0(0500)"));
    bench.ask(Request::Transfer { payload, resume: None });
    assert_eq!(bench.down.first(), Some(&R::ActivityStart { activity: hex("020101") }));
    assert_eq!(bench.down.last(), Some(&R::ActivityEnd));
    assert_eq!(bench.sent(), pdv("020103", "04(28(020105 A0(A0(0500))))"));
    bench.receive(S::ActivityEndConfirm);
    bench.ask(Request::Release);
    let rlrq = hex("610C300A020101A00562 03 80 01 00");
    assert_eq!(bench.down.last(), Some(&R::Release { user_data: rlrq }));
    bench.receive(S::Released { user_data: pdv("020101", "63(800100)") });
    assert!(matches!(bench.indicated.last(), Some(Indication::Released)));
}

#[test]
fn turn_please_carries_rttp() {
    let mut bench = p1_responder();
    bench.ask(Request::TurnPlease(2));
    let user_data = hex("61(30(020103 A0(020102)))");
    assert_eq!(bench.down.last(), Some(&R::PleaseTokens { user_data }));
    bench.receive(S::ControlGiven);
    bench.receive(S::TokensPlease { user_data: hex("61(30(020103 A0(020105)))") });
    assert!(
        matches!(bench.indicated.last(), Some(Indication::TurnPlease(5))),
        "{:?}",
        bench.indicated
    );
    bench.receive(S::TokensPlease { user_data: Bytes::new() });
    assert!(
        matches!(bench.indicated.last(), Some(Indication::TurnPlease(0))),
        "{:?}",
        bench.indicated
    );
}

/// RTAB in ABRT in ARU, and in an ARU without an ABRT.
#[test]
fn an_rtab_of_the_peer() {
    for user_data in [
        "A0(A0(30(020101 06(5101))) 61(30(020101 A0(64(800100 BE(28(020103 A0(
            B6(800103 A2(0500))))))))))",
        "A0<61<30<020103 A0<B6(800103)>>>>",
    ] {
        let mut bench = p1_responder();
        bench.receive(S::UserAbort { user_data: hex(user_data) });
        let Some(Indication::Aborted { reason, detail }) = bench.indicated.last() else {
            panic!("{:?}", bench.indicated)
        };
        assert_eq!(*reason, Some(AbortReason::TemporaryProblem), "{detail}");
    }
    for (user_data, expected) in
        [("30(800102)", "ARP"), ("A0()", "ARU"), ("", "ARU"), ("FF", "ARU or ARP")]
    {
        let mut bench = p1_responder();
        bench.receive(S::UserAbort { user_data: hex(user_data) });
        assert!(bench.detail().contains(expected), "{}", bench.detail());
    }
}

#[test]
fn our_rtab_is_in_an_abrt_in_an_aru() {
    let mut bench = p1_responder();
    bench.ask(Request::Abort(AbortReason::UserError));
    let abrt = "64(800100 BE(28(06(5101) 020103 A0(B6(800106)))))";
    let aru = format!("A0(A0(30(020101 06(5101))) 61(30(020101 A0({abrt}))))");
    assert_eq!(bench.aborted(), hex(&aru));
}

#[test]
fn what_is_wrong_with_p_data_is_named_and_answered_with_arp() {
    for (data, expected) in [
        ("6000", "simply-encoded-data"),
        ("6200", "User-data"),
        ("61(30(020109 A0(0400)))", "presentation-context-identifier"),
        ("61(30(A0(0400)))", "presentation-context-identifier"),
        ("61(30(020103)) 00", "PDV-list"),
        ("61(30(020103 A0(0400))) 00", "trailing"),
        ("61(30(020103 A0(0402)))", "presentation-data-values"),
        ("61(30(020103 A3(0400)))", "unexpected [3]"),
    ] {
        let mut bench = p1_responder();
        bench.receive(S::ActivityStart { activity: hex("020101") });
        bench.data(data);
        let detail = bench.detail();
        assert!(detail.contains(expected) && detail.contains("X.226"), "{data}: {detail}");
        assert_eq!(bench.aborted(), hex("30(800106 810107)"), "{data}");
    }
    // Cut short, and then something that does not end the activity.
    let mut bench = p1_responder();
    bench.receive(S::ActivityStart { activity: hex("020101") });
    bench.data("610A3008020103A0");
    bench.receive(S::ActivityEnd { serial: 1 });
    assert!(bench.detail().contains("truncated"), "{}", bench.detail());
}

#[test]
fn what_is_wrong_with_a_transfer_is_named_and_answered_with_rtab() {
    for (value, expected) in [
        ("020100", "RTTR: unexpected [UNIVERSAL 2]"),
        ("04(3000)", "EXTERNAL: unexpected [UNIVERSAL 16]"),
        ("04(28(020107))", "indirect-reference"),
        ("04(2805)", "ended within its EXTERNAL"),
        ("24(0500)", "RTTR: unexpected [UNIVERSAL 5]"),
    ] {
        let mut bench = p1_responder();
        bench.receive(S::ActivityStart { activity: hex("020101") });
        bench.receive(S::Data { bytes: pdv("020103", value), last: true });
        if expected.contains("ended") {
            bench.receive(S::ActivityEnd { serial: 1 });
        }
        let detail = bench.detail();
        assert!(detail.contains(expected) && detail.contains("X.228"), "{value}: {detail}");
        assert!(bench.aborted().ends_with(&hex("B6(800101)")), "{:02x?}", bench.aborted());
    }
    let mut bench = p1_responder();
    bench.receive(S::ActivityStart { activity: hex("020101") });
    bench.receive(S::ActivityStart { activity: hex("020102") });
    assert!(bench.detail().contains("ActivityStart in Sta30"), "{}", bench.detail());
    assert!(bench.aborted().ends_with(&hex("B6(800104)")), "{:02x?}", bench.aborted());
}

/// Peers whose window counts one more than ours are borne with; a flood of checkpoints is not.
#[test]
fn checkpoints_beyond_the_window() {
    let mut bench = p1_responder();
    bench.receive(S::ActivityStart { activity: hex("020101") });
    for serial in 1..=17 {
        bench.receive(S::MinorSync { serial });
    }
    assert!(!bench.indicated.iter().any(|i| matches!(i, Indication::Aborted { .. })));
    for serial in 18..100 {
        bench.receive(S::MinorSync { serial });
    }
    assert!(bench.detail().contains("checkpoints"), "{}", bench.detail());
}

/// A P3 responder after a bind by a peer that proposes the bind's context and one more.
fn p3_responder() -> Bench {
    let mut bench = Bench::new(&p3(), Role::Responder);
    let contexts = "A4(30(020101 06(52010001) 30(06(5101))) 30(020103 06(5600020B) 30(06(5101)))
        30(020105 06(56000201) 30(06(5101))))";
    let aarq = "60(A1(06(56000100)) BE(28(06(5101) 020103 A0(B0(31(A2(1600)))))))";
    bench.connect(requirements::DUPLEX, cp_of(contexts, aarq));
    let [Indication::Open { bind, .. }] = &bench.indicated[..] else {
        panic!("{:?}", bench.indicated)
    };
    assert_eq!(*bind, hex("31(A2(1600))"));
    bench.ask(Request::Accept { bind: hex("3100") });
    let Some(R::Accept(accept)) = bench.down.last() else { panic!("{:?}", bench.down) };
    assert!(accept.user_data.ends_with(&hex("BE(28(06(5101) 020103 A0(B1(3100))))")));
    bench
}

#[test]
fn operations_from_literal_octets() {
    let mut bench = p3_responder();
    bench.receive(S::Data { bytes: pdv("020105", "A1(020101 020103 300100)"), last: true });
    assert_eq!(bench.octets(), hex("300100")[..], "the user rejects contents that are not BER");
    assert!(!bench.ended, "{:?}", bench.down);

    let mut bench = p3_responder();
    bench.receive(S::Data { bytes: pdv("020105", "A1<020101 020103 30<0500>>"), last: true });
    let invoked = matches!(bench.indicated[1], Indication::Invoked { invoke: 1, operation: 3 });
    assert!(invoked, "{:?}", bench.indicated);
    assert_eq!(bench.octets(), hex("30<0500>")[..]);
    let result = crate::api::Payload::whole(hex("3100"));
    bench.ask(Request::Result { invoke: 1, operation: 3, result });
    assert_eq!(bench.sent(), pdv("020105", "A2(020101 30(020103 3100))"));
}

#[test]
fn faulty_apdus_are_rejected_with_the_right_problem() {
    let cases = [
        // Unknown APDU; ROIV without operation value; a result, an error to no invocation; an
        // operation named by an object identifier.
        ("A900", "A4(0500 800100)"),
        ("A1(020104)", "A4(020104 800101)"),
        ("A2(020104)", "A4(020104 820100)"),
        ("A3(020104 020101)", "A4(020104 830100)"),
        ("A1(020104 06(5101))", "A4(020104 810101)"),
        // An invocation linked to one of ours, of which there is none.
        ("A1(020104 800102 020103)", "A4(020104 810105)"),
    ];
    for (apdu, rorj) in cases {
        let mut bench = p3_responder();
        bench.receive(S::Data { bytes: pdv("020105", apdu), last: true });
        assert_eq!(bench.sent(), pdv("020105", rorj), "{apdu}");
        let [_, Indication::Faulty { problem, detail, .. }] = &bench.indicated[..] else {
            panic!("{apdu}: {:?}", bench.indicated)
        };
        assert!(rorj.contains(&format!("8{}01{:02}", problem.kind, problem.value)), "{detail}");
    }
    // The same identifier twice: the first stays answerable.
    let mut bench = p3_responder();
    for _ in 0..2 {
        bench.receive(S::Data { bytes: pdv("020105", "A1(020101 020103)"), last: true });
    }
    assert_eq!(bench.sent(), pdv("020105", "A4(020101 810100)"));
    bench.ask(Request::Reject { invoke: Some(1), problem: Problem { kind: 1, value: 1 } });
    assert!(bench.sent().ends_with(&hex("A4(020101 810101)")));
    bench.receive(S::Data { bytes: pdv("020105", "A4(020109 810104)"), last: true });
    let Some(Indication::Rejected { invoke: Some(9), problem }) = bench.indicated.last() else {
        panic!("{:?}", bench.indicated)
    };
    assert_eq!(*problem, Problem { kind: 1, value: 4 });
}

#[test]
fn more_invocations_than_can_be_kept_are_rejected() {
    let mut bench = p3_responder();
    for invoke in 0..300u16 {
        let apdu = format!("A1(0202{invoke:04X} 020103)");
        bench.receive(S::Data { bytes: pdv("020105", &apdu), last: true });
    }
    let invoked =
        bench.indicated.iter().filter(|i| matches!(i, Indication::Invoked { .. })).count();
    assert_eq!(invoked, 256);
    assert!(bench.sent().ends_with(&hex("A4(0202012B 810103)")));
}
