//! What peers cannot get in the form that is configured for them, and do not see of the end of an association.

use super::{Advice, Severity};
use node::config::{Peer, Release};
use p1::extension::{CommonName, Dialect, Qualifier};

/// All of a peer.
pub(super) fn look(peer: &Peer) -> Vec<Advice> {
    let all = [dialect_1988(peer), dialect_1984(peer), no_qualifier(peer), no_release(peer)];
    all.into_iter().flatten().collect()
}

/// What P1 of 1984 cannot carry.
fn dialect_1984(peer: &Peer) -> Option<Advice> {
    let Dialect::RedBook1984(common_name) = peer.form.dialect else { return None };
    let names = match common_name {
        CommonName::NoForm => {
            "addresses with a common name are reported too, unless common_name = \"dda\", which its operator \
             must have as well"
        }
        CommonName::DomainDefined => "a common name goes as the domain-defined attribute Common",
    };
    Some(Advice::new(
        Severity::Info,
        &peer.name,
        format!(
            "it has extensions = \"1984\": it gets no extensions, and three precedences instead of six; \
             contents other than P2 (every P772 and P22 message) and what is critical are reported as not \
             delivered (unable-to-downgrade); {names}; reports to it lose content type, histories and newer \
             codes; a loop inside our own domain is not seen through it"
        ),
        "write extensions = \"1988\" or \"modern\" if the peer has P1 of 1988, also in X.410 mode \
         (application_protocol = 12)",
    ))
}

/// What the dialect of 1988 cannot carry.
fn dialect_1988(peer: &Peer) -> Option<Advice> {
    (peer.form.dialect == Dialect::BlueBook1988).then(|| {
        Advice::new(
            Severity::Info,
            &peer.name,
            "it has extensions = \"1988\", which has no form for private extensions: the \
             priority-level-qualifier is left out, so that the peer sees three precedences instead \
             of six (override and flash as urgent, immediate and priority as normal, routine and \
             deferred as non-urgent), and what is critical in a private extension is reported as \
             not delivered",
            "write extensions = \"modern\" if the peer reads X.411 of 1994 and later",
        )
    })
}

/// What a peer does not see without the qualifier; the advice on the older dialects has that.
fn no_qualifier(peer: &Peer) -> Option<Advice> {
    let omits = peer.form.dialect == Dialect::Modern && peer.form.qualifier == Qualifier::Omit;
    omits.then(|| {
        Advice::new(
            Severity::Info,
            &peer.name,
            "it has qualifier = \"omit\": the peer sees three precedences instead of six (override and \
             flash as urgent, immediate and priority as normal, routine and deferred as non-urgent), \
             and a message whose qualifier is critical is reported as not delivered",
            "write qualifier = \"private\" if the peer takes the extension 1.3.26.0.4406.0.8.0",
        )
    })
}

/// What a peer sees where no association ends with a release.
fn no_release(peer: &Peer) -> Option<Advice> {
    (peer.release == Release::Close).then(|| {
        Advice::new(
            Severity::Info,
            &peer.name,
            "it has release = \"close\": we close connections without a release, which the peer cannot \
             distinguish from lost ones: it may log a fault, or ask for the recovery of the association",
            "write release = \"release\" if the peer answers RLRQ and FINISH",
        )
    })
}
