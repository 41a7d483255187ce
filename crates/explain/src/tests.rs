use super::Direction::{Received, Sent};
use super::*;
use proptest::prelude::*;

/// Octets from hexadecimal; `"text"` is its octets.
fn octets(text: &str) -> Vec<u8> {
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        match word.strip_prefix('\'') {
            Some(letters) => all.extend_from_slice(letters.as_bytes()),
            None => all.push(u8::from_str_radix(word, 16).unwrap()),
        }
    }
    all
}

/// A TPDU in its TPKT.
fn tpkt(tpdu: &[u8]) -> Vec<u8> {
    [&osi::tpkt::header(tpdu.len())[..], tpdu].concat()
}

/// A TSDU in one DT.
fn dt(tsdu: &[u8]) -> Vec<u8> {
    tpkt(&[&[2, 0xF0, 0x80], tsdu].concat())
}

fn explainer() -> Explainer {
    Explainer::new([Bytes::from_static(b"harbour"), Bytes::from_static(b"lantern")])
}

fn lines(pieces: &[(Direction, Vec<u8>)]) -> Vec<Line> {
    let mut explainer = explainer();
    let mut lines = Vec::new();
    for (direction, octets) in pieces {
        explainer.octets(*direction, octets);
        lines.extend(std::iter::from_fn(|| explainer.poll()));
    }
    lines
}

/// Every line in one, with its details.
fn shown(lines: &[Line]) -> String {
    let one = |line: &Line| {
        let arrow = if line.direction == Sent { "->" } else { "<-" };
        let trouble = line.trouble.as_ref();
        let trouble = trouble.map(|t| format!(" !{:?} ({})", t.cause, t.clause));
        let details: String = line.details.iter().map(|d| format!("\n  {d}")).collect();
        let (layer, trouble) = (line.layer.name(), trouble.unwrap_or_default());
        format!("{layer} {arrow} {}{trouble}{details}\n", line.text)
    };
    lines.iter().map(one).collect()
}

fn causes(lines: &[Line]) -> Vec<Cause> {
    lines.iter().filter_map(|line| Some(line.trouble.as_ref()?.cause)).collect()
}

/// The CONNECT of a foreign MTA in X.410 mode, as it was captured.
fn x410_call() -> Vec<u8> {
    let cp = octets(
        "31 28 A0 03 80 01 00 A1 21 80 01 3F 82 01 01 A3 15 A0 13 A1 11 80 04 'MTA1 A1 09 04 07 'harbour \
         84 02 0C 00",
    );
    let before = octets(
        "01 17 0A 04 14 02 'vm 0B 0F 17 0D '260101000000Z 05 0F 13 01 00 15 04 07 F9 07 F9 16 01 03 \
         1A 01 00 14 02 02 49",
    );
    let user_data = [&[0xC1, u8::try_from(cp.len()).unwrap()][..], &cp].concat();
    let parameters = [before, user_data].concat();
    [&[0x0D, u8::try_from(parameters.len()).unwrap()][..], &parameters].concat()
}

const NORMAL_CP: &str = "31 3F A0 03 80 01 01 A2 38 81 01 'a 82 01 'b A4 30 \
    30 0F 02 01 01 06 04 52 01 00 01 30 04 06 02 51 01 \
    30 0F 02 01 03 06 04 56 00 02 0C 30 04 06 02 51 01 \
    30 0C 02 01 05 06 01 2A 30 04 06 02 51 01";

fn connect(cp: &str) -> Vec<u8> {
    let cp = octets(cp);
    let parameters = [&octets("14 02 02 49")[..], &[0xC1, u8::try_from(cp.len()).unwrap()], &cp];
    let parameters = parameters.concat();
    dt(&[&[0x0D, u8::try_from(parameters.len()).unwrap()][..], &parameters].concat())
}

#[test]
fn transport_is_explained_with_what_a_fielded_mta_leaves_out() {
    let request = tpkt(&octets("14 E0 00 00 00 01 00 C0 01 0D C1 02 'P1 C2 05 'X4-88"));
    let confirm = tpkt(&octets("06 D0 00 01 00 02 00"));
    assert_eq!(
        shown(&lines(&[(Sent, request), (Received, confirm)])),
        "transport -> connect request (CR), class 0\n  called TSEL \"X4-88\"\n  \
         calling TSEL \"P1\"\n  TPDU size 8,192 octets\n\
         transport <- connect confirm (CC), class 0\n  called TSEL absent\n  \
         calling TSEL absent\n  TPDU size not stated: 65,531 octets (RFC 1006)\n"
    );
}

#[test]
fn a_selector_that_is_unknown_is_a_trouble_but_not_after_the_release() {
    let refused = tpkt(&octets("0E 80 00 01 00 00 03 E0 06 'wrong 20"));
    let all = lines(&[(Received, refused.clone())]);
    assert_eq!(causes(&all), [Cause::TransportAddress]);
    assert!(shown(&all).contains("reason 3: address unknown !"), "{}", shown(&all));
    let finish = dt(&octets("09 03 11 01 01"));
    assert_eq!(causes(&lines(&[(Sent, finish), (Received, refused)])), []);
}

#[test]
fn a_call_in_x410_mode_is_explained_without_its_password() {
    let all = lines(&[(Received, dt(&x410_call()))]);
    assert_eq!(
        shown(&all),
        "session <- CONNECT\n  called SSEL absent\n  calling SSEL absent\n  versions 1 and 2\n  \
         functional units 0249: half-duplex, minor sync, activities, exceptions\n  \
         TSDU size 2041 from, 2041 to the initiator (0: no limit)\n\
         presentation <- CP: X.410 (1984) mode\n\
         rtse <- RTORQ: asks for the association\n  \
         checkpoint size 63 (units of 1,024 octets)\n  window 3\n  \
         dialogue mode two-way-alternate (1)\n  \
         applicationProtocol 3072: 12, P1 of 1988, with its octets swapped\n\
         bind <- MTABindArgument\n"
    );
    let Some(Bind::Argument(bind)) = &all.last().unwrap().bind else { panic!() };
    assert_eq!(bind[..2], [0xA1, 0x11]);
    assert!(!format!("{all:?}").contains("harbour"));
}

#[test]
fn a_refusal_of_x410_mode_with_the_tag_of_normal_mode_is_explained_as_x410_mode() {
    let refuse = octets("0C 0B 11 01 01 32 06 02 B2 03 80 01 02");
    let call = (Sent, dt(&x410_call()));
    let all = lines(&[call, (Received, dt(&refuse))]);
    let text = shown(&all);
    let answer = text.split_once("session <-").unwrap().1;
    assert_eq!(
        answer,
        " REFUSE, reason 2: by the called SS-user !SessionUser (X.225 8.3.5)\n\
         presentation <- CPR: X.410 (1984) mode\n  tagged [18]; X.228 9 has a SET\n\
         rtse <- RTORJ: refuses, validationFailure (2) !RtseRefused(2) (X.228 9)\n"
    );
}

#[test]
fn an_answer_without_a_mode_selector_is_in_the_mode_of_the_call() {
    let cpa =
        octets("31 1F A1 1D 80 01 3F 81 01 03 A2 15 A0 13 A1 11 80 04 'MTA2 A1 09 04 07 'lantern");
    let before = octets("05 06 13 01 00 16 01 01 14 02 02 49");
    let user_data = [&[0xC1, u8::try_from(cpa.len()).unwrap()][..], &cpa].concat();
    let parameters = [before, user_data].concat();
    let accept = [&[0x0E, u8::try_from(parameters.len()).unwrap()][..], &parameters].concat();
    let all = lines(&[(Sent, dt(&x410_call())), (Received, dt(&accept))]);
    let text = shown(&all);
    let answer = "presentation <- CPA: X.410 (1984) mode\n  \
                  mode-selector absent: the mode is that of the call\n\
                  rtse <- RTOAC: accepts\n  checkpoint size 63 (units of 1,024 octets)\n  \
                  window 3\nbind <- MTABindResult\n";
    assert!(text.ends_with(answer), "{text}");
    assert!(matches!(all.last().unwrap().bind, Some(Bind::Result(_))));
    // The mode of a call without one is not known.
    let alone = shown(&lines(&[(Received, dt(&accept))]));
    assert!(alone.contains("no mode-selector"), "{alone}");
}

#[test]
fn contexts_are_named_and_each_has_its_result() {
    let answer = octets(
        "0E 35 05 06 13 01 00 16 01 02 14 02 02 49 C1 27 31 25 A0 03 80 01 01 A2 1E A5 1C \
         30 07 80 01 00 81 02 51 01 30 07 80 01 00 81 02 51 01 30 08 80 01 02 82 01 01 99 00",
    );
    let all = lines(&[(Sent, connect(NORMAL_CP)), (Received, dt(&answer))]);
    let text = shown(&all);
    assert!(text.contains("context 3: 2.6.0.2.12 (mta-rtse), in 2.1.1 (BER)"), "{text}");
    assert!(text.contains("context 3 (mta-rtse): accepted, in 2.1.1 (BER)"), "{text}");
    assert!(text.contains("context 5 (1.2): refused: abstract-syntax-not-supported (1)"), "{text}");
    assert!(text.contains("called PSEL \"b\"\n  calling PSEL \"a\""), "{text}");
    assert_eq!(causes(&all), [Cause::ContextRefused(1)]);
}

#[test]
fn refusals_have_their_layer_and_their_cause() {
    let session = octets("0C 09 11 01 01 16 01 02 32 01 81");
    let presentation = octets("0C 0F 11 01 01 14 02 02 49 32 06 02 30 03 8A 01 03");
    let bind = octets(
        "0C 32 11 01 01 32 2D 02 30 2A 61 28 30 26 02 01 01 A0 21 61 1F A1 06 06 04 56 00 01 06 \
         A2 03 02 01 01 A3 05 A1 03 02 01 01 BE 09 28 07 A0 05 B2 03 02 01 02",
    );
    // The user information above has an RTORJ that is a bare bind error; the form of the standard:
    let standard = octets("A1 05 B2 03 02 01 02");
    let standard = [&octets("B2 07")[..], &standard].concat();
    let x410 = octets("0C 0C 11 01 01 32 07 02 31 04 80 02 00 02");
    for (tsdu, expected) in [
        (session, vec![Cause::SessionAddress]),
        (presentation, vec![Cause::SessionUser, Cause::PresentationAddress]),
        (x410, vec![Cause::SessionUser, Cause::AnswersInX410, Cause::RtseRefused(2)]),
    ] {
        let all = lines(&[(Sent, connect(NORMAL_CP)), (Received, dt(&tsdu))]);
        assert_eq!(causes(&all), expected, "{}", shown(&all));
    }
    let all = lines(&[(Received, dt(&bind))]);
    assert!(causes(&all).contains(&Cause::AcseRejected(1)), "{}", shown(&all));
    assert!(causes(&all).contains(&Cause::BindError(2)), "{}", shown(&all));
    let mut known = Known::default();
    let masks = Masks(Vec::new());
    let mut out = Out { direction: Received, masks: &masks, known: &mut known, lines: Vec::new() };
    rtse::data(&base::ber::Element::parse(&standard).unwrap(), &mut out).unwrap();
    assert_eq!(causes(&out.lines), [Cause::BindError(2)]);
}

#[test]
fn what_is_not_rfc_1006_ends_the_explanation() {
    let all = lines(&[(Received, b"HTTP/1.1 400 Bad Request\r\n".to_vec())]);
    assert_eq!(causes(&all), [Cause::NotTpkt]);
    assert!(all[0].text.ends_with("version 72, not 3"), "{}", all[0].text);
    let short =
        lines(&[(Received, vec![3, 0, 0, 4, 9]), (Received, vec![3, 0, 0, 7, 2, 0xF0, 0x80])]);
    assert_eq!(causes(&short), [Cause::NotTpkt]);
    assert_eq!(short.len(), 1);
}

#[test]
fn the_unknown_is_shown_and_the_rest_is_read() {
    let all = lines(&[
        (Received, tpkt(&octets("03 55 01 02"))),
        (Received, dt(&octets("63 01 07"))),
        (Received, dt(&octets("0D 09 05"))),
        (Received, dt(&octets("09 00"))),
    ]);
    let text = shown(&all);
    assert!(text.contains("unknown TPDU 55"), "{text}");
    assert!(text.contains("unknown SPDU 99\n  octets 63 01 07"), "{text}");
    assert_eq!(causes(&all), [Cause::Malformed]);
    assert!(text.ends_with("session <- FINISH: asks for the release\n"), "{text}");
}

#[test]
fn no_secret_is_shown_wherever_it_comes() {
    let everywhere = [
        tpkt(&octets("0F 80 00 01 00 00 03 E0 07 'harbour")),
        tpkt(&octets("10 E0 00 00 00 01 00 C2 07 'lantern C9 01 'x")),
        dt(&octets("63 08 'lantern 01")),
        b"harbour harbour".to_vec(),
    ];
    for octets in everywhere {
        let all = lines(&[(Received, octets)]);
        let text = format!("{all:?}");
        let hex = ["68 61 72", "6C 61 6E"];
        assert!(!text.contains("harbour") && !text.contains("lantern"), "{text}");
        assert!(hex.iter().all(|hex| !text.contains(hex)), "{text}");
    }
}

#[test]
fn the_credentials_of_a_stranger_are_not_shown_either() {
    // A CONNECT that cannot be read, whose password is neither a text nor a secret that is known here.
    let broken = octets("0D 0C C1 20 A1 06 04 04 81 92 A3 B4 00 00");
    let all = lines(&[(Received, dt(&broken))]);
    assert_eq!(causes(&all), [Cause::Malformed]);
    let shown = &all[0].trouble.as_ref().unwrap().octets;
    assert_eq!(shown, "octets 0D 0C C1 20 A1 06 04 04 .. .. .. .. 00 00");
}

#[test]
fn any_division_gives_the_same_lines() {
    let stream = [tpkt(&octets("06 D0 00 01 00 02 00")), dt(&x410_call())].concat();
    let whole = lines(&[(Received, stream.clone())]);
    for cut in 0..stream.len() {
        let (a, b) = stream.split_at(cut);
        assert_eq!(lines(&[(Received, a.to_vec()), (Received, b.to_vec())]), whole, "{cut}");
    }
}

#[test]
fn a_flood_has_a_bounded_number_of_lines() {
    let flood = tpkt(&octets("03 55 01 02")).repeat(10 * MAX_LINES);
    assert_eq!(lines(&[(Received, flood)]).len(), MAX_LINES);
    let mut explainer = explainer();
    for _ in 0..1_000 {
        explainer.octets(Received, &tpkt(&[&[2, 0xF0, 0][..], &[1; 1_000]].concat()));
    }
    assert!(explainer.streams[1].tsdu.len() <= MAX_TSDU);
}

proptest! {
    #[test]
    fn garbage_never_panics(garbage in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..100) {
        lines(&[(Received, garbage.clone()), (Sent, dt(&garbage))]);
        // A good call with some octets replaced.
        let mut call = x410_call();
        for (old, new) in call.iter_mut().skip(at).zip(&garbage).take(3) {
            *old = *new;
        }
        lines(&[(Received, dt(&call)), (Sent, dt(&garbage))]);
    }
}
