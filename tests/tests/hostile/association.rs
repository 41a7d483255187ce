//! Presentation, ACSE and the RTSE's open: contexts, syntaxes, binds that are wrong.

use super::case::{Case, play};
use super::octets::*;

fn connects(name: &str, change: impl FnOnce(&mut Connect)) -> Case {
    Case::peer(name).sends_all(vec![cr(), connect(change)])
}

pub(super) fn cases() -> Vec<Case> {
    [ppdus(), contexts(), aarqs(), binds()].into_iter().flatten().collect()
}

fn ppdus() -> Vec<Case> {
    let with = |name: &str, ppdu: Vec<u8>| {
        Case::peer(name).sends_all(vec![cr(), Connect::default().with(&ppdu)])
    };
    let Connect { mode, .. } = Connect::default();
    let cp = Connect::default().cp();
    let normal = |more: &[u8]| {
        let definitions = tlv(0xa4, &[&Connect::default().contexts.concat()]);
        let user = user_data(1, &Connect::default().aarq());
        tlv(0xa2, &[more, &definitions, &user])
    };
    let parameters = |more: &[u8]| tlv(0x31, &[&mode, &normal(more)]);
    vec![
        with("cp: X.410 mode", [tlv(0x31, &[&[0xa0, 3, 0x80, 1, 0]])].concat()).must(
            "CC, RF(2), closed",
            "CP asks for X.410 mode, which is not configured for this peer (X.226 6.2.5.1)",
        ),
        with("cp: mode 9", tlv(0x31, &[&[0xa0, 3, 0x80, 1, 9], &normal(&[])])).must(
            "CC, RF(2) CPR(0), closed",
            "mode-selector: invalid x410-1984-mode(0) or normal-mode(1)",
        ),
        with("cp: no mode", tlv(0x31, &[&normal(&[])]))
            .must("CC, RF(2) CPR(0), closed", "mode-selector: missing [0]"),
        with("cp: mode twice", tlv(0x31, &[&mode, &mode, &normal(&[])]))
            .must("CC, RF(2) CPR(0), closed", "CP PPDU: unexpected [0]"),
        with("cp: parameters twice", tlv(0x31, &[&mode, &normal(&[]), &normal(&[])]))
            .must("CC, RF(2) CPR(0), closed", "CP PPDU: unexpected [2]"),
        with(
            "cp: mode as INTEGER of 8 octets, padded",
            tlv(0x31, &[&[0xa0, 10, 0x80, 8, 0, 0, 0, 0, 0, 0, 0, 1], &normal(&[])]),
        )
        .must("open", ""),
        with(
            "cp: mode as INTEGER of 9 octets",
            tlv(0x31, &[&[0xa0, 11, 0x80, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1], &normal(&[])]),
        )
        .must("CC, RF(2) CPR(0), closed", "mode-selector: invalid INTEGER (X.690 8.3)"),
        with("cp: mode as INTEGER of no octets", tlv(0x31, &[&[0xa0, 2, 0x80, 0], &normal(&[])]))
            .must("CC, RF(2) CPR(0), closed", "mode-selector: invalid INTEGER (X.690 8.3)"),
        with("cp: no parameters", tlv(0x31, &[&mode]))
            .must("CC, RF(2) CPR(0), closed", "normal-mode-parameters: missing [2]"),
        with("cp: a SEQUENCE", [&[0x30], &cp[1..]].concat())
            .must("CC, RF(2) CPR(0), closed", "CP PPDU: unexpected [UNIVERSAL 16]"),
        with("cp: cut in the middle", cp[..cp.len() / 2].to_vec()).must(
            "CC, RF(2) CPR(0), closed",
            "CP PPDU: truncated: the element is longer than what holds it",
        ),
        with("cp: octets behind it", [&cp[..], &[0; 8]].concat())
            .must("CC, RF(2) CPR(0), closed", "CP PPDU: trailing octets"),
        with("cp: a length of 2^31", [&[0x31, 0x84, 0x80, 0, 0, 0][..], &cp[2..]].concat()).must(
            "CC, RF(2) CPR(0), closed",
            "CP PPDU: truncated: the element is longer than what holds it",
        ),
        with(
            "cp: a length of 2^63",
            [&[0x31, 0x88, 0x80, 0, 0, 0, 0, 0, 0, 0][..], &cp[2..]].concat(),
        )
        .must(
            "CC, RF(2) CPR(0), closed",
            "CP PPDU: truncated: the element is longer than what holds it",
        ),
        with("cp: a length of 126 octets", [&[0x31, 0xfe][..], &[0; 126], &cp[2..]].concat())
            .must("CC, RF(2) CPR(0), closed", "CP PPDU: malformed length (X.690 8.1.3.5)"),
        with("cp: the reserved length", [&[0x31, 0xff][..], &cp[2..]].concat())
            .must("CC, RF(2) CPR(0), closed", "CP PPDU: malformed length (X.690 8.1.3.5)"),
        with("cp: indefinite without an end", [&[0x31, 0x80][..], &mode].concat()).must(
            "CC, RF(2) CPR(0), closed",
            "CP PPDU: truncated: the element is longer than what holds it",
        ),
        with("cp: indefinite and primitive", vec![0x80, 0x80, 1, 2, 0, 0]).must(
            "CC, RF(2) CPR(0), closed",
            "CP PPDU: indefinite length on a primitive element (X.690",
        ),
        with("cp: 2,000 levels of SET", nested_indefinite(0x31, 2_000, &[], true))
            .must("CC, RF(2) CPR(2), closed", "CP PPDU: nested deeper than the limit of 32"),
        with("cp: 4,000 levels of SET without end", nested_indefinite(0x31, 4_000, &[], false))
            .must("CC, RF(2) CPR(2), closed", "CP PPDU: nested deeper than the limit of 32"),
        with("cp: 400 levels around the mode", tlv(0x31, &[&nested(0xa0, 400, &[0x80, 1, 1])]))
            .must("CC, RF(2) CPR(0), closed", "mode-selector: invalid INTEGER (X.690 8.3)"),
        with("cp: a tag of 100 octets", [&[0x3f][..], &[0x81; 100], &[0x01, 0]].concat())
            .must("CC, RF(2) CPR(0), closed", "CP PPDU: malformed tag (X.690 8.1.2.4)"),
        with("cp: end-of-contents at the top", vec![0, 0, 0, 0])
            .must("CC, RF(2) CPR(0), closed", "CP PPDU: unexpected end-of-contents (X.690 8.1.5)"),
        with("cp: an ARP instead", tlv(0x30, &[&[0x80, 1, 1]]))
            .must("CC, RF(2) CPR(0), closed", "CP PPDU: unexpected [UNIVERSAL 16]"),
        with("cp: protocol version 2 alone", parameters(&[0x80, 2, 6, 0x40]))
            .must("CC, RF(2) CPR(4), closed", "protocol-version lacks version 1"),
        with("cp: a called selector where we have none", parameters(b"\x82\x05OTHER"))
            .must("open", ""),
        with("cp: a selector of 400 octets", parameters(&tlv(0x82, &[&[b'P'; 400]])))
            .must("open", ""),
        with("cp: context management asked for", parameters(&[0x88, 2, 6, 0x80])).must("open", ""),
        with(
            "cp: a default context",
            parameters(&tlv(0xa6, &[&tlv(0x80, &[&ACSE]), &tlv(0x81, &[&BER])])),
        )
        .must("CC, RF(2) CPR(5), closed", "default-context-name is not supported"),
    ]
}

fn contexts() -> Vec<Case> {
    let all = Connect::default().contexts;
    let with = |name: &str, contexts: Vec<Vec<u8>>| connects(name, |c| c.contexts = contexts);
    let [a, r, m] = [&all[0], &all[1], &all[2]].map(Clone::clone);
    vec![
        with("contexts: none", vec![]).must(
            "CC, RF(2) CPR(0), closed",
            "abstract syntax 2.2.1.0.1 was not proposed with BER",
        ),
        with("contexts: no ACSE", vec![r.clone(), m.clone()]).must(
            "CC, RF(2) CPR(0), closed",
            "abstract syntax 2.2.1.0.1 was not proposed with BER",
        ),
        with("contexts: no mta-rtse", vec![a.clone(), m.clone()]).must(
            "CC, RF(2) CPR(0), closed",
            "abstract syntax 2.6.0.2.12 was not proposed with BER",
        ),
        with("contexts: no mtse", vec![a.clone(), r.clone()]).must(
            "CC, RF(2) CPR(0), closed",
            "abstract syntax 2.6.0.2.7 was not proposed with BER",
        ),
        with(
            "contexts: one identifier for two",
            vec![a.clone(), r.clone(), context(&[3], &MTSE, &BER)],
        )
        .must("CC, RF(2) CPR(0), closed", "presentation-context-definition-list: invalid"),
        with(
            "contexts: an even identifier, which is ours to give",
            vec![a.clone(), r.clone(), context(&[6], &MTSE, &BER)],
        )
        .must("open", ""),
        with(
            "contexts: a negative identifier",
            vec![a.clone(), r.clone(), context(&[0xff], &MTSE, &BER)],
        )
        .must("open", ""),
        with(
            "contexts: an identifier of 9 octets",
            vec![a.clone(), r.clone(), context(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &MTSE, &BER)],
        )
        .must(
            "CC, RF(2) CPR(0), closed",
            "presentation-context-identifier: invalid INTEGER (X.690 8.3)",
        ),
        with(
            "contexts: an abstract syntax nobody knows",
            vec![a.clone(), r.clone(), context(&[5], &[0x2a, 3, 4], &BER)],
        )
        .must(
            "CC, RF(2) CPR(0) context 3(1), closed",
            "abstract syntax 2.6.0.2.7 was not proposed with BER",
        ),
        with(
            "contexts: PER instead of BER",
            vec![a.clone(), r.clone(), context(&[5], &MTSE, &[0x51, 3, 0, 0])],
        )
        .must(
            "CC, RF(2) CPR(0) context 3(2), closed",
            "abstract syntax 2.6.0.2.7 was not proposed with BER",
        ),
        with(
            "contexts: PER for everything",
            vec![
                context(&[1], &ACSE, &[0x51, 3, 0, 0]),
                context(&[3], &MTA_RTSE, &[0x51, 3, 0, 0]),
                context(&[5], &MTSE, &[0x51, 3, 0, 0]),
            ],
        )
        .must(
            "CC, RF(2) CPR(0) context 1(2) context 2(2) context 3(2), closed",
            "abstract syntax 2.2.1.0.1 was not proposed with BER",
        ),
        with(
            "contexts: no transfer syntax",
            vec![a.clone(), r.clone(), tlv(0x30, &[&[2, 1, 5], &tlv(6, &[&MTSE]), &[0x30, 0]])],
        )
        .must(
            "CC, RF(2) CPR(0) context 3(2), closed",
            "abstract syntax 2.6.0.2.7 was not proposed with BER",
        ),
        with(
            "contexts: an object identifier of no octets",
            vec![a.clone(), r.clone(), context(&[5], &[], &BER)],
        )
        .must(
            "CC, RF(2) CPR(0), closed",
            "abstract-syntax-name: invalid OBJECT IDENTIFIER (X.690 8.19)",
        ),
        with(
            "contexts: an object identifier that never ends",
            vec![a.clone(), r.clone(), context(&[5], &[0x88; 30], &BER)],
        )
        .must(
            "CC, RF(2) CPR(0), closed",
            "abstract-syntax-name: invalid OBJECT IDENTIFIER (X.690 8.19)",
        ),
        with(
            "contexts: three hundred",
            [
                vec![a, r, m],
                (0..300)
                    .map(|n| context(&[1, n as u8 | 1], &[0x2a, n as u8 & 0x7f], &BER))
                    .collect(),
            ]
            .concat(),
        )
        .must("CC, RF(2) CPR(0), closed", "presentation-context-definition-list: invalid"),
        connects("contexts: AARQ in the context of mtse", |c| c.acse = 5)
            .must("CC, AB(user) ARU ABRT(1), closed", "no AARQ in the CP"),
        connects("contexts: AARQ in an undefined context", |c| c.acse = 9)
            .must("CC, AB(user) ARU ABRT(1), closed", "no AARQ in the CP"),
        connects("contexts: RTORQ in the context of mtse", |c| c.rtse = 5)
            .must("CC, AB(user) ARU ABRT(0) RTAB(4), closed", "no RTORQ in the AARQ"),
        connects("contexts: RTORQ in an undefined context", |c| c.rtse = 99)
            .must("CC, AB(user) ARU ABRT(0) RTAB(4), closed", "no RTORQ in the AARQ"),
        Case::open("contexts: data in an undefined one")
            .sends_all(vec![activity_start(1), data(&user_data(9, &[4, 2, 0x28, 0]))])
            .must(
                "open, AB(user) ARP(6, 7), closed",
                "presentation-context-identifier: invalid a context not defined",
            ),
        Case::open("contexts: RTTR in the context of ACSE")
            .sends_all(vec![activity_start(1), data(&user_data(1, &[4, 2, 0x28, 0]))])
            .must("open, AB(user) ARU ABRT(0) RTAB(4), closed", "P-DATA in context 1, not RTSE's"),
    ]
}

fn aarqs() -> Vec<Case> {
    let raw = |name: &str, apdu: Vec<u8>| {
        let definitions = tlv(0xa4, &[&Connect::default().contexts.concat()]);
        let ppdu =
            tlv(0x31, &[&[0xa0, 3, 0x80, 1, 1], &tlv(0xa2, &[&definitions, &user_data(1, &apdu)])]);
        Case::peer(name).sends_all(vec![cr(), Connect::default().with(&ppdu)])
    };
    let aarq = Connect::default().aarq();
    vec![
        connects("aarq: application context of P3", |c| c.application = vec![0x56, 0, 1, 0]).must(
            "CC, RF(2) CPR AARE(1, user 2), closed",
            "application context 2.6.0.1.0 (X.227 7.1.3.2)",
        ),
        connects("aarq: application context nobody knows", |c| c.application = vec![0x2a, 3, 4])
            .must(
                "CC, RF(2) CPR AARE(1, user 2), closed",
                "application context 1.2.3.4 (X.227 7.1.3.2)",
            ),
        connects("aarq: application context of no octets", |c| c.application = vec![]).must(
            "CC, AB(user) ARU ABRT(1), closed",
            "application-context-name: invalid OBJECT IDENTIFIER (X.690 8.",
        ),
        connects("aarq: protocol version 2 alone", |c| c.more = vec![0x80, 2, 6, 0x40])
            .must("CC, RF(2) CPR AARE(1, provider 2), closed", "no common version (X.227 7.1.3.2)"),
        connects("aarq: user information twice", |c| c.more = tlv(0xbe, &[&[0x28, 0]]))
            .must("CC, AB(user) ARU ABRT(1), closed", "indirect-reference: missing [UNIVERSAL 2]"),
        connects("aarq: 9,000 octets of implementation information", |c| {
            c.more = tlv(&[0x9d][..], &[&[b'x'; 9_000]]);
        })
        .must("open", ""),
        raw("aarq: empty", tlv(0x60, &[]))
            .must("CC, AB(user) ARU ABRT(1), closed", "application-context-name: missing [1]"),
        raw(
            "aarq: without user information",
            tlv(0x60, &[&tlv(0xa1, &[&tlv(6, &[&[0x56, 0, 1, 6]])])]),
        )
        .must("CC, AB(user) ARU ABRT(0) RTAB(4), closed", "no RTORQ in the AARQ"),
        raw("aarq: an AARE instead", [&[0x61], &aarq[1..]].concat())
            .must("CC, AB(user) ARU ABRT(1), closed", "result: missing [2]"),
        raw("aarq: an RLRQ instead", vec![0x62, 3, 0x80, 1, 0])
            .must("CC, AB(user) ARU ABRT(1), closed", "no AARQ in the CP"),
        raw("aarq: an OCTET STRING instead", vec![4, 1, 0])
            .must("CC, AB(user) ARU ABRT(1), closed", "ACSE APDU: unexpected [UNIVERSAL 4]"),
        raw(
            "aarq: 64 levels in its user information",
            tlv(
                0x60,
                &[
                    &tlv(0xa1, &[&tlv(6, &[&[0x56, 0, 1, 6]])]),
                    &tlv(0xbe, &[&nested(0x28, 64, &[2, 1, 3])]),
                ],
            ),
        )
        .must("CC, AB(user) ARU ABRT(1), closed", "indirect-reference: unexpected [UNIVERSAL 8]"),
    ]
}

fn binds() -> Vec<Case> {
    let rtorq = |name: &str, members: &[u8]| connects(name, |c| c.rtorq = members.to_vec());
    let bind = |name: &str, data: Vec<u8>| connects(name, |c| c.bind = data);
    let argument = |argument: &[u8]| tlv(0xa0, &[&tlv(0xb0, &[argument])]);
    vec![
        rtorq("rtorq: checkpoint size -1", &[0x80, 1, 0xff])
            .must("CC, AB(user) ARU ABRT(0) RTAB(1), closed", "checkpointSize: invalid a size"),
        rtorq("rtorq: checkpoint size of 9 octets", &[0x80, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0]).must(
            "CC, AB(user) ARU ABRT(0) RTAB(1), closed",
            "checkpointSize: invalid INTEGER (X.690 8.3)",
        ),
        rtorq("rtorq: checkpoint size 2^40", &[0x80, 6, 1, 0, 0, 0, 0, 0])
            .must("CC, AB(user) ARU ABRT(0) RTAB(1), closed", "checkpointSize: invalid a size"),
        rtorq("rtorq: window 0", &[0x81, 1, 0]).must(
            "CC, AB(user) ARU ABRT(0) RTAB(1), closed",
            "windowSize: invalid a window of 1 or more",
        ),
        rtorq("rtorq: window 2^32", &[0x81, 5, 1, 0, 0, 0, 0])
            .must("CC, AB(user) ARU ABRT(0) RTAB(1), closed", "windowSize: invalid a window"),
        rtorq("rtorq: window 2^31", &[0x81, 5, 0, 0x80, 0, 0, 0]).must("open", ""),
        rtorq("rtorq: dialogue mode 7", &[0x82, 1, 7]).must(
            "CC, AB(user) ARU ABRT(0) RTAB(1), closed",
            "dialogueMode: invalid monologue(0) or twa(1)",
        ),
        rtorq("rtorq: window twice", &[0x81, 1, 3, 0x81, 1, 4])
            .must("CC, AB(user) ARU ABRT(0) RTAB(1), closed", "windowSize: unexpected [1]"),
        rtorq("rtorq: dialogue mode twice", &[0x82, 1, 0, 0x82, 1, 0])
            .must("CC, AB(user) ARU ABRT(0) RTAB(1), closed", "dialogueMode: unexpected [2]"),
        rtorq("rtorq: a universal INTEGER is not a dialogue mode", &[2, 1, 7]).must("open", ""),
        rtorq("rtorq: an unknown member", &[0x8a, 1, 3]).must("open", ""),
        bind("bind: no connection data", vec![]).must(
            "CC, AB(user) ARU ABRT(0) RTAB(1), closed",
            "connectionDataRQ: truncated: the element is longer than what h",
        ),
        bind("bind: connection data of an unknown kind", tlv(0xa7, &[&[5, 0]]))
            .must("CC, AB(user) ARU ABRT(0) RTAB(1), closed", "connectionDataRQ: unexpected [7]"),
        bind(
            "bind: recovery of what never was",
            tlv(0xa1, &[&[4, 4], b"lost", b"\x17\x0d260101000000Z"]),
        )
        .must("CC, RF(2) CPR AARE(1, user 1) RTORJ, closed", "no such association here"),
        bind("bind: recovery with empty references", tlv(0xa1, &[&[4, 0, 0x17, 0]]))
            .must("CC, RF(2) CPR AARE(1, user 1) RTORJ, closed", "no such association here"),
        bind("bind: argument empty", argument(&[])).must(
            "CC, AB(user) ARU ABRT(0) RTAB(1), closed",
            "open: truncated: the element is longer than what holds it (X.6",
        ),
        bind("bind: argument NULL", argument(&[5, 0])).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "no credentials (MTABindArgument: NULL)",
        ),
        bind("bind: argument a SEQUENCE", argument(&[0x30, 0])).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "MTABindArgument: mta-bind: unexpected [UNIVERSAL 16]",
        ),
        bind("bind: no name", argument(&tlv(0xa1, &[&tlv(0xa1, &[b"\x16\x06secret"])]))).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "MTABindArgument: mta-name: missing [0]",
        ),
        bind("bind: no credentials", argument(&tlv(0xa1, &[b"\x80\x05THERE"]))).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "MTABindArgument: credentials: missing [1]",
        ),
        bind(
            "bind: name twice",
            argument(&tlv(
                0xa1,
                &[b"\x80\x05THERE", b"\x80\x05THERE", &tlv(0xa1, &[b"\x16\x06secret"])],
            )),
        )
        .must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "MTABindArgument: mta-name: unexpected [0]",
        ),
        bind(
            "bind: credentials twice",
            argument(&tlv(
                0xa1,
                &[
                    b"\x80\x05THERE",
                    &tlv(0xa1, &[b"\x16\x06secret"]),
                    &tlv(0xa1, &[b"\x16\x06secret"]),
                ],
            )),
        )
        .must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "MTABindArgument: credentials: unexpected [1]",
        ),
        bind("bind: an unknown MTA", mta_bind(b"NOBODY", b"secret")).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "mta-name: \"NOBODY\" is not peer there's \"TH",
        ),
        bind("bind: a name of no octets", mta_bind(b"", b"secret")).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "mta-name: \"\" is not peer there's \"THERE\"",
        ),
        bind("bind: a name of 9,000 octets", mta_bind(&[b'N'; 9_000], b"secret")).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "mta-name: it has 9000 characters instead of 0 to 32",
        ),
        bind("bind: a name with control characters", mta_bind(b"THERE\n\x1b[31m", b"secret")).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "mta-name: it holds the character 0x0A, which it must not",
        ),
        bind(
            "bind: a security context",
            argument(&tlv(
                0xa1,
                &[
                    b"\x80\x05THERE",
                    &tlv(0xa1, &[b"\x16\x06secret"]),
                    &tlv(0xa2, &[&[0x31, 3, 2, 1, 1]]),
                ],
            )),
        )
        .must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 4), closed",
            "unacceptable-security-context (X.411 12.1.1)",
        ),
        // The edge checks passwords; the one of these tests accepts any.
        bind(
            "bind: a password of 9,000 octets, which the edge takes",
            mta_bind(b"THERE", &[b'p'; 9_000]),
        )
        .must("open", ""),
        bind(
            "bind: strong credentials",
            argument(&tlv(0xa1, &[b"\x80\x05THERE", &tlv(0xa1, &[&tlv(0xa0, &[&[0x30, 0]])])])),
        )
        .must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ(bind error 2), closed",
            "credentials: strong ones are not supported",
        ),
        bind(
            "bind: 4,500 unknown members",
            argument(&tlv(
                0xa1,
                &[
                    b"\x80\x05THERE",
                    &tlv(0xa1, &[b"\x16\x06secret"]),
                    &[0x9e, 0].repeat(5_000)[..9_000],
                ],
            )),
        )
        .must("open", ""),
    ]
}

#[test]
fn ppdus_and_binds() {
    play(&cases());
}
