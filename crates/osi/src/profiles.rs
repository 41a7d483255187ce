//! Object identifiers, and how associations of the message transfer system are set up (X.411,
//! X.419).

use crate::api::{Config, Context, Dialogue, Mode, RtseParameters, Selectors, Service};
use crate::session::service::ConnectionReference;
use base::ber::Oid;
use std::time::Duration;

/// An object identifier of constant arcs.
#[expect(clippy::expect_used, reason = "the arcs are constants of this crate, each in a test")]
pub(crate) fn oid(arcs: &[u64]) -> Oid {
    Oid::from_arcs(arcs).expect("two arcs or more")
}

/// The association control protocol's abstract syntax, version 1 (X.227 9.1).
pub fn acse() -> Oid {
    oid(&[2, 2, 1, 0, 1])
}

/// The basic encoding rules (X.690).
pub fn ber() -> Oid {
    oid(&[2, 1, 1])
}

/// Application contexts of X.419, `{joint-iso-ccitt mhs(6) protocols(0) ac(1) n}`.
pub mod application_context {
    use super::{Oid, oid};

    /// P3: mts-access.
    pub fn mts_access() -> Oid {
        oid(&[2, 6, 0, 1, 0])
    }

    /// P1: mts-transfer.
    pub fn mts_transfer() -> Oid {
        oid(&[2, 6, 0, 1, 6])
    }

    /// P7: ms-access, 1988.
    pub fn ms_access_88() -> Oid {
        oid(&[2, 6, 0, 1, 4])
    }

    /// P7: ms-access, 1994.
    pub fn ms_access_94() -> Oid {
        oid(&[2, 6, 0, 1, 11])
    }
}

/// Abstract syntaxes of X.419, `{joint-iso-ccitt mhs(6) protocols(0) as(2) n}`.
pub mod abstract_syntax {
    use super::{Oid, oid};

    /// Message submission operations (probe, submission control and others) of P3.
    pub fn msse() -> Oid {
        oid(&[2, 6, 0, 2, 1])
    }

    /// Message delivery operations of P3, 1988.
    pub fn mdse_88() -> Oid {
        oid(&[2, 6, 0, 2, 2])
    }

    /// Message retrieval operations of P7, 1988.
    pub fn mrse_88() -> Oid {
        oid(&[2, 6, 0, 2, 5])
    }

    /// P7: the bind operation, 1988.
    pub fn ms_88() -> Oid {
        oid(&[2, 6, 0, 2, 9])
    }

    /// P7: submission with the options of a store, 1994. The arcs of 1994 are *unproven*: no octets of another
    /// implementation were at hand.
    pub fn ms_msse() -> Oid {
        oid(&[2, 6, 0, 2, 13])
    }

    /// Message retrieval operations of P7, 1994: those of 1988, and modify.
    pub fn mrse_94() -> Oid {
        oid(&[2, 6, 0, 2, 15])
    }

    /// Message administration operations of P7, 1994.
    pub fn mase_94() -> Oid {
        oid(&[2, 6, 0, 2, 16])
    }

    /// P7: the bind operation, 1994.
    pub fn ms_94() -> Oid {
        oid(&[2, 6, 0, 2, 17])
    }

    /// Message administration operations of P3 and P7, 1988.
    pub fn mase_88() -> Oid {
        oid(&[2, 6, 0, 2, 6])
    }

    /// P1: message transfer, what RTTR carries.
    pub fn mtse() -> Oid {
        oid(&[2, 6, 0, 2, 7])
    }

    /// P3: the bind operation.
    pub fn mts() -> Oid {
        oid(&[2, 6, 0, 2, 11])
    }

    /// P1: the bind operation over RTSE.
    pub fn mta_rtse() -> Oid {
        oid(&[2, 6, 0, 2, 12])
    }
}

fn contexts(syntaxes: &[Oid]) -> Vec<Context> {
    let ids = (0..).map(|n| 2 * n + 1);
    ids.zip(syntaxes).map(|(id, s)| Context { id, abstract_syntax: s.clone() }).collect()
}

/// A P1 association (mts-transfer): RTSE with checkpoints of 64 KiB, a window of 16, two-way
/// alternate. Contexts 1 ACSE, 3 mta-rtse, 5 mtse, as fielded agents number them.
pub fn p1(local: Selectors, remote: Selectors, reference: ConnectionReference) -> Config {
    use abstract_syntax as s;
    Config {
        local,
        remote,
        mode: Mode::Normal,
        service: Service::Rtse(RtseParameters {
            checkpoint_size: 64,
            window: 16,
            dialogue: Dialogue::TwoWayAlternate,
            indefinite_lengths: false,
            transfer_timeout: Duration::from_secs(120),
            longest_pause: Duration::ZERO,
        }),
        application_contexts: vec![application_context::mts_transfer()],
        contexts: contexts(&[acse(), s::mta_rtse(), s::mtse()]),
        bind_syntax: s::mta_rtse(),
        other_bind_syntaxes: Vec::new(),
        transfer_syntax_owner: s::mtse(),
        tpdu_size: None,
        setup_timeout: Duration::from_secs(30),
        operation_timeout: Duration::from_secs(600),
        reference,
        turn_away: false,
    }
}

/// A P3 association (mts-access): ROSE on ACSE. Contexts 1 ACSE, 3 mts, 5 msse, 7 mdse, 9 mase.
pub fn p3(local: Selectors, remote: Selectors, reference: ConnectionReference) -> Config {
    use abstract_syntax as s;
    Config {
        local,
        remote,
        mode: Mode::Normal,
        service: Service::Rose,
        application_contexts: vec![application_context::mts_access()],
        contexts: contexts(&[acse(), s::mts(), s::msse(), s::mdse_88(), s::mase_88()]),
        bind_syntax: s::mts(),
        other_bind_syntaxes: Vec::new(),
        transfer_syntax_owner: s::mts(),
        tpdu_size: None,
        setup_timeout: Duration::from_secs(30),
        operation_timeout: Duration::from_secs(600),
        reference,
        turn_away: false,
    }
}

/// A P7 association of 1988 (ms-access): ROSE on ACSE. Contexts 1 ACSE, 3 ms, 5 msse, 7 mrse, 9 mase.
pub fn p7(local: Selectors, remote: Selectors, reference: ConnectionReference) -> Config {
    use abstract_syntax as s;
    Config {
        application_contexts: vec![application_context::ms_access_88()],
        contexts: contexts(&[acse(), s::ms_88(), s::msse(), s::mrse_88(), s::mase_88()]),
        bind_syntax: s::ms_88(),
        transfer_syntax_owner: s::ms_88(),
        ..p3(local, remote, reference)
    }
}

/// A P7 association of 1994 (ms-access): contexts 1 ACSE, 3 ms, 5 ms-msse, 7 mrse, 9 mase.
pub fn p7_94(local: Selectors, remote: Selectors, reference: ConnectionReference) -> Config {
    use abstract_syntax as s;
    Config {
        application_contexts: vec![application_context::ms_access_94()],
        contexts: contexts(&[acse(), s::ms_94(), s::ms_msse(), s::mrse_94(), s::mase_94()]),
        bind_syntax: s::ms_94(),
        transfer_syntax_owner: s::ms_94(),
        ..p3(local, remote, reference)
    }
}

/// A P7 association as its responder: of 1988 or of 1994, as the initiator chooses.
pub fn p7_responder(local: Selectors) -> Config {
    let (remote, reference) = (Selectors::default(), ConnectionReference::default());
    let later = p7_94(local.clone(), remote.clone(), reference.clone());
    let mut config = p7(local, remote, reference);
    config.application_contexts.extend(later.application_contexts);
    config.contexts.extend(later.contexts.into_iter().skip(1));
    config.other_bind_syntaxes.push(later.bind_syntax);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arcs_are_the_standards() {
        let p1 = p1(Selectors::default(), Selectors::default(), ConnectionReference::default());
        let names: Vec<String> =
            p1.contexts.iter().map(|c| format!("{} {}", c.id, c.abstract_syntax)).collect();
        assert_eq!(names, ["1 2.2.1.0.1", "3 2.6.0.2.12", "5 2.6.0.2.7"]);
        assert_eq!(p1.application_contexts[0].content(), [0x56, 0, 1, 6]);
        let p3 = p3(Selectors::default(), Selectors::default(), ConnectionReference::default());
        let names: Vec<String> =
            p3.contexts.iter().map(|c| format!("{} {}", c.id, c.abstract_syntax)).collect();
        let expected = ["1 2.2.1.0.1", "3 2.6.0.2.11", "5 2.6.0.2.1", "7 2.6.0.2.2", "9 2.6.0.2.6"];
        assert_eq!(names, expected);
        assert_eq!(p3.application_contexts[0].to_string(), "2.6.0.1.0");
        let p7 = p7(Selectors::default(), Selectors::default(), ConnectionReference::default());
        let names: Vec<String> =
            p7.contexts.iter().map(|c| format!("{} {}", c.id, c.abstract_syntax)).collect();
        let expected = ["1 2.2.1.0.1", "3 2.6.0.2.9", "5 2.6.0.2.1", "7 2.6.0.2.5", "9 2.6.0.2.6"];
        assert_eq!(names, expected);
        assert_eq!(p7.application_contexts[0].to_string(), "2.6.0.1.4");
        let p7 = p7_94(Selectors::default(), Selectors::default(), ConnectionReference::default());
        let names: Vec<String> =
            p7.contexts.iter().map(|c| format!("{} {}", c.id, c.abstract_syntax)).collect();
        let expected =
            ["1 2.2.1.0.1", "3 2.6.0.2.17", "5 2.6.0.2.13", "7 2.6.0.2.15", "9 2.6.0.2.16"];
        assert_eq!(names, expected);
        assert_eq!(p7.application_contexts[0].to_string(), "2.6.0.1.11");
        let both = p7_responder(Selectors::default());
        assert_eq!((both.application_contexts.len(), both.contexts.len()), (2, 9));
        assert_eq!(ber().content(), [0x51, 1]);
    }
}
