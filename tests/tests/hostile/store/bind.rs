//! The bind of P7 that goes wrong, and what comes before it.

use super::super::case::Case;
use super::super::octets::*;
use super::{ALL, LIST, invoke};

pub(super) fn cases() -> Vec<Case> {
    [binds(), before_the_bind()].into_iter().flatten().collect()
}

/// What a P7 CONNECT consists of.
struct Bind {
    /// Abstract syntaxes of the contexts 1, 3, 5, ...
    syntaxes: Vec<Vec<u8>>,
    /// Application context.
    application: Vec<u8>,
    /// Members of the MSBindArgument.
    members: Vec<Vec<u8>>,
    /// Instead of the argument made of them.
    argument: Option<Vec<u8>>,
}

fn credentials() -> Vec<u8> {
    tlv(0xa2, &[&tlv(0x16, &[b"secret"])])
}

impl Default for Bind {
    fn default() -> Bind {
        let syntax = |last: u8| vec![0x56, 0, 2, last];
        Bind {
            syntaxes: vec![ACSE.to_vec(), syntax(9), syntax(1), syntax(5), syntax(6)],
            application: vec![0x56, 0, 1, 4],
            members: vec![name_of(b"HERE", b"STORED"), credentials()],
            argument: None,
        }
    }
}

/// The CN with a change.
fn bind(change: impl FnOnce(&mut Bind)) -> Vec<u8> {
    let mut bind = Bind::default();
    change(&mut bind);
    let members: Vec<&[u8]> = bind.members.iter().map(Vec::as_slice).collect();
    let argument = bind.argument.unwrap_or_else(|| tlv(0x31, &members));
    let external =
        tlv(0x28, &[&tlv(6, &[&BER]), &[2, 1, 3], &tlv(0xa0, &[&tlv(0xb0, &[&argument])])]);
    let application = tlv(0xa1, &[&tlv(6, &[&bind.application])]);
    let aarq = tlv(0x60, &[&application, &tlv(0xbe, &[&external])]);
    let numbered = (0u8..).map(|n| 2 * n + 1).zip(&bind.syntaxes);
    let contexts: Vec<u8> =
        numbered.flat_map(|(id, syntax)| context(&[id], syntax, &BER)).collect();
    let parameters = tlv(0xa2, &[&tlv(0xa4, &[&contexts]), &user_data(1, &aarq)]);
    let cp = tlv(0x31, &[&[0xa0, 3, 0x80, 1, 1], &parameters]);
    // Kernel and duplex.
    let session = [reference(), accept_item(2, 0), vec![0x14, 2, 0, 2]].concat();
    Connect { parameters: session, ..Connect::default() }.with(&cp)
}

fn binds() -> Vec<Case> {
    let with =
        |name: &str, change: &dyn Fn(&mut Bind)| Case::store(name).sends(cr()).sends(bind(change));
    let argument = |name: &str, octets: &[u8]| with(name, &|b| b.argument = Some(octets.to_vec()));
    let restricted = |name: &str, members: &[u8]| {
        with(name, &|b| b.members.push(tlv(0xa4, &[&tlv(0x31, &[members])])))
    };
    let many = [6, 1, 0x51].repeat(1_025);
    vec![
        with("store bind: a good one", &|_| {}).must("open", ""),
        argument("store bind: no argument", &[]).must(
            "CC, AB(user) ARU ABRT(0), closed",
            "rose: Invalid in Sta00 (X.227 7.3.3.1): bind argument [16]: truncated:",
        ),
        argument("store bind: NULL", &[5, 0]).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument: MSBindArgument:",
        ),
        argument("store bind: an INTEGER", &[2, 1, 7]).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument: MSBindArgument:",
        ),
        argument("store bind: an empty SET", &[0x31, 0]).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument: initiator-name:",
        ),
        argument("store bind: longer than what holds it", &[0x31, 0x7f, 1, 1, 1]).must(
            "CC, AB(user) ARU ABRT(0), closed",
            "rose: Invalid in Sta00 (X.227 7.3.3.1): bind argument [16]: truncated:",
        ),
        argument("store bind: a length of 2^63", &[0x31, 0x88, 0x80, 0, 0, 0, 0, 0, 0, 0]).must(
            "CC, AB(user) ARU ABRT(0), closed",
            "rose: Invalid in Sta00 (X.227 7.3.3.1): bind argument [16]: truncated:",
        ),
        argument("store bind: 2,000 levels of SET", &nested(0x31, 2_000, &[5, 0])).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument: initiator-name:",
        ),
        with("store bind: no credentials", &|b| drop(b.members.pop())).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument:",
        ),
        with("store bind: no name", &|b| drop(b.members.remove(0))).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument: initiator-name:",
        ),
        with("store bind: two names", &|b| b.members.push(name(b"HERE"))).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument: MSBindArgument:",
        ),
        with("store bind: credentials twice", &|b| b.members.push(credentials())).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument: MSBindArgument:",
        ),
        with("store bind: strong credentials", &|b| {
            b.members[1] = tlv(0xa2, &[&tlv(0xa0, &[&[0x31, 0]])]);
        })
        .must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): initiator-credentials: only simple",
        ),
        with("store bind: a password of 5,000 octets", &|b| {
            b.members[1] = tlv(0xa2, &[&tlv(0x16, &[&[b'p'; 5_000]])]);
        })
        .must("open", ""),
        with("store bind: a surname of 5,000 octets", &|b| {
            b.members[0] = name_of(b"HERE", &[b'S'; 5_000]);
        })
        .must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument: personal-name: it",
        ),
        with("store bind: a name that is not an address", &|b| {
            b.members[0] = vec![0x60, 2, 0x30, 0];
        })
        .must("open", ""),
        with("store bind: a security-context", &|b| {
            b.members.push(vec![0xa3, 5, 0x31, 3, 6, 1, 42]);
        })
        .must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "unacceptable-security-context (X.413 7.1.5): a security-context, which",
        ),
        restricted("store bind: 1,025 content types", &tlv(0xa0, &[&tlv(0x31, &[&many])])).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument:",
        ),
        restricted(
            "store bind: an attribute length of 9 octets",
            &[0xa2, 11, 2, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        )
        .must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument:",
        ),
        restricted("store bind: a restriction twice", &[0xa2, 3, 2, 1, 9].repeat(2)).must(
            "CC, RF(2) CPR AARE(1, user 1) RTORJ, closed",
            "authentication-error (X.413 7.1.5): MSBindArgument: fetch-restrictions:",
        ),
        with("store bind: 15,000 members nobody knows", &|b| {
            b.members.push([0x9f, 0x63, 0].repeat(15_000));
        })
        .must(
            "CC, RF(134), closed",
            "session: refused, reason 134: rejection by the SPM, implementation",
        ),
        with("store bind: the application context of P3", &|b| b.application[3] = 0).must(
            "CC, RF(2) CPR AARE(1, user 2), closed",
            "acse: refused: application context 2.6.0.1.0 (X.227 7.1.3.2)",
        ),
        with("store bind: the application context of P1", &|b| b.application[3] = 6).must(
            "CC, RF(2) CPR AARE(1, user 2), closed",
            "acse: refused: application context 2.6.0.1.6 (X.227 7.1.3.2)",
        ),
        with("store bind: no context of the bind", &|b| b.syntaxes[1] = vec![0x56, 0, 2, 11]).must(
            "CC, RF(2) CPR(0) context 2(1), closed",
            "presentation: refused: abstract syntax 2.6.0.2.9 was not proposed with",
        ),
        with("store bind: no context of anything else", &|b| b.syntaxes.truncate(2))
            .sends(invoke(1, LIST, &ALL))
            .must(
                "open, AB(user) ARP(6, 7), closed",
                "presentation: Td: presentation-context-identifier: invalid a context",
            ),
        with("store bind: twice", &|_| {}).sends(bind(|_| {})).must(
            "open, AB(protocol error), closed",
            "session: protocol error: unexpected Cn in Sta713 (X.225 A.4.1.2)",
        ),
        Case::store("store bind: of a peer").sends_all(p1_opening()).must(
            "CC, RF(2) CPR(0) context 2(1) context 3(1), closed",
            "presentation: refused: abstract syntax 2.6.0.2.9 was not proposed with",
        ),
        Case::store("store bind: of a user of P3").sends_all(super::super::user::opening()).must(
            "CC, RF(2) CPR(0) context 2(1) context 4(1), closed",
            "presentation: refused: abstract syntax 2.6.0.2.9 was not proposed with",
        ),
        Case::user("store bind: at the listener of P3, in the data phase")
            .sends(bind(|_| {}))
            .must(
                "open, AB(protocol error), closed",
                "session: protocol error: unexpected Cn in Sta713 (X.225 A.4.1.2)",
            ),
    ]
}

fn before_the_bind() -> Vec<Case> {
    vec![
        Case::store("store: silence")
            .waits(120)
            .must("closed", "transport: a CR did not come within the setup timeout (X.224 6.5)"),
        Case::store("store: a list before the connection")
            .sends(invoke(1, LIST, &ALL))
            .must("ER(2), closed", "transport: TPDU out of place: Dt in Closed (X.224 6.22)"),
        Case::store("store: a list before the bind").sends(cr()).sends(invoke(1, LIST, &ALL)).must(
            "CC, closed",
            "session: protocol error: Dt where a CONNECT is due (X.225 A.4.1.2)",
        ),
        Case::store("store: a list behind the bind, in the same octets")
            .sends(cr())
            .sends([bind(|_| {}), invoke(1, LIST, &ALL)].concat())
            .must(
                "CC, AB(protocol error), closed",
                "session: protocol error: unexpected Dt in Sta08 (X.225 A.4.1.2)",
            ),
    ]
}
