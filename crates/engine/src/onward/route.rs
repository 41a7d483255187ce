//! The routing table: longest match of O/R addresses (X.411 14.3.5, routing decision).

use crate::Engine;
use crate::onward::split::Failure;
use crate::record::NextHop;
use base::PeerId;
use p1::names::{Attribute, ORAddress};
use p1::reason::{Diagnostic, NonDeliveryReason};
use std::fmt::Write as _;

/// One line of a routing table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The recipient must have every attribute given here.
    pub prefix: ORAddress,
    /// The target.
    pub to: RouteTarget,
}

/// The target of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteTarget {
    /// A peer.
    Peer(PeerId),
    /// This MTA: the recipient must have a local mailbox.
    Local,
}

/// Prefixes of O/R addresses with their targets.
///
/// Of the matching prefixes the one with most attributes applies; of several, the one whose
/// attributes are higher in the hierarchy (country, ADMD, PRMD, organization, units, names); of
/// equal ones, the first configured.
#[derive(Clone, Debug, Default)]
pub struct RoutingTable {
    lines: Prefixes<RouteTarget>,
}

/// Prefixes of O/R addresses, each with a value; see [`RoutingTable`] for which applies.
#[derive(Clone, Debug)]
pub(crate) struct Prefixes<T> {
    /// Most specific first, so that the first match applies.
    lines: Vec<(Vec<(Attribute, String)>, T)>,
}

impl<T> Default for Prefixes<T> {
    fn default() -> Prefixes<T> {
        Prefixes { lines: Vec::new() }
    }
}

impl<T> Prefixes<T> {
    /// These prefixes.
    pub(crate) fn new<'a>(lines: impl IntoIterator<Item = (&'a ORAddress, T)>) -> Prefixes<T> {
        let mut lines: Vec<_> =
            lines.into_iter().map(|(p, value)| (p.attributes(), value)).collect();
        lines.sort_by(|(a, _), (b, _)| {
            let kinds = |line: &[(Attribute, String)]| -> Vec<Attribute> {
                line.iter().map(|(attribute, _)| attribute.clone()).collect()
            };
            b.len().cmp(&a.len()).then_with(|| kinds(a).cmp(&kinds(b)))
        });
        Prefixes { lines }
    }

    /// What applies to an address with these attributes, if anything.
    pub(crate) fn look_up(&self, attributes: &[(Attribute, String)]) -> Option<&T> {
        let has = |wanted: &(Attribute, String)| attributes.binary_search(wanted).is_ok();
        self.lines.iter().find(|(prefix, _)| prefix.iter().all(has)).map(|(_, value)| value)
    }

    /// Whether nothing applies to anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl RoutingTable {
    /// A table of these lines.
    pub fn new(routes: impl IntoIterator<Item = Route>) -> RoutingTable {
        let routes: Vec<Route> = routes.into_iter().collect();
        RoutingTable { lines: Prefixes::new(routes.iter().map(|r| (&r.prefix, r.to))) }
    }

    /// The target of this address, if any.
    pub fn look_up(&self, address: &ORAddress) -> Option<RouteTarget> {
        self.look_up_by(&address.attributes())
    }

    fn look_up_by(&self, attributes: &[(Attribute, String)]) -> Option<RouteTarget> {
        self.lines.look_up(attributes).copied()
    }
}

/// The name of a mailbox: the attributes of its address in normal form and in the order of the
/// hierarchy. All spellings of an address give the same text, and the text reads back as that
/// address.
pub fn canonical(address: &ORAddress) -> String {
    text_of(&address.attributes())
}

/// See [`canonical`].
pub(crate) fn text_of(attributes: &[(Attribute, String)]) -> String {
    let mut out = String::new();
    for (attribute, value) in attributes {
        let _ = match attribute {
            Attribute::Country => write!(out, "/c="),
            Attribute::Admd => write!(out, "/admd="),
            Attribute::Prmd => write!(out, "/prmd="),
            Attribute::Organization => write!(out, "/o="),
            Attribute::OrganizationalUnit(n) => write!(out, "/ou{}=", n + 1),
            Attribute::Surname => write!(out, "/s="),
            Attribute::GivenName => write!(out, "/g="),
            Attribute::Initials => write!(out, "/i="),
            Attribute::GenerationQualifier => write!(out, "/q="),
            Attribute::CommonName => write!(out, "/cn="),
            Attribute::NetworkAddress => write!(out, "/x.121="),
            Attribute::TerminalIdentifier => write!(out, "/t-id="),
            Attribute::NumericUserIdentifier => write!(out, "/n-id="),
            Attribute::DomainDefined(kind) => write!(out, "/dda:{}=", escaped(kind)),
            // The text form cannot express these; they only have to be distinct.
            Attribute::Extension(number) => write!(out, "/ext{number}="),
        };
        out.push_str(&escaped(value));
    }
    out
}

/// Escapes separators with a backslash.
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '/' | ';' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

impl Engine {
    /// The next hop of a recipient, or why there is none.
    pub(crate) fn resolve(&self, address: &ORAddress) -> Result<NextHop, Failure> {
        self.resolve_by(&address.attributes())
    }

    /// The same for an address with these attributes.
    pub(crate) fn resolve_by(
        &self,
        attributes: &[(Attribute, String)],
    ) -> Result<NextHop, Failure> {
        let unable = |text: &str| Failure {
            reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
            diagnostic: Some(Diagnostic::UNRECOGNISED_OR_NAME),
            text: text.to_owned(),
        };
        match self.routes.look_up_by(attributes) {
            Some(RouteTarget::Peer(peer)) => Ok(NextHop::Peer(peer)),
            Some(RouteTarget::Local) => {
                let mailbox = text_of(attributes);
                if self.mailboxes.contains(&mailbox) || self.is_list(&mailbox) {
                    Ok(NextHop::Mailbox(mailbox))
                } else {
                    Err(unable("no such recipient here"))
                }
            }
            None => Err(unable("no route to this address")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::address;
    use proptest::prelude::*;

    fn table(lines: &[(&str, RouteTarget)]) -> RoutingTable {
        let route = |(prefix, to): &(&str, RouteTarget)| Route { prefix: address(prefix), to: *to };
        RoutingTable::new(lines.iter().map(route))
    }

    #[test]
    fn the_longest_prefix_wins_then_the_higher_one() {
        let t = table(&[
            ("C=XX", RouteTarget::Peer(PeerId(0))),
            ("C=XX;P=ALPHA", RouteTarget::Peer(PeerId(1))),
            ("C=XX;O=Staff", RouteTarget::Peer(PeerId(2))),
            ("C=XX;P=ALPHA;O=Staff", RouteTarget::Local),
        ]);
        let to = |text: &str| t.look_up(&address(text));
        assert_eq!(to("C=XX;P=Alpha;O=STAFF;S=Smith"), Some(RouteTarget::Local));
        assert_eq!(to("C=XX;P=alpha;S=Smith"), Some(RouteTarget::Peer(PeerId(1))));
        assert_eq!(to("C=XX;P=beta;O=staff;S=Smith"), Some(RouteTarget::Peer(PeerId(2))));
        assert_eq!(to("C=XX;S=Smith"), Some(RouteTarget::Peer(PeerId(0))));
        assert_eq!(to("C=YY;P=Alpha;O=Staff"), None);
        // As many attributes: the PRMD is above the organization.
        let t = table(&[
            ("C=XX;O=Staff", RouteTarget::Peer(PeerId(2))),
            ("C=XX;P=ALPHA", RouteTarget::Peer(PeerId(1))),
        ]);
        let both = address("C=XX;P=alpha;O=staff;S=Smith");
        assert_eq!(t.look_up(&both), Some(RouteTarget::Peer(PeerId(1))));
    }

    #[test]
    fn an_empty_prefix_is_a_default_route() {
        let t = table(&[("", RouteTarget::Peer(PeerId(9))), ("C=XX", RouteTarget::Local)]);
        assert_eq!(t.look_up(&address("C=YY;S=A")), Some(RouteTarget::Peer(PeerId(9))));
        assert_eq!(t.look_up(&address("C=XX;S=A")), Some(RouteTarget::Local));
    }

    #[test]
    fn canonical_text_is_one_for_all_spellings() {
        let a = canonical(&address("C=XX;A= ;P=Alpha;O=Head  Office;S=Smith;G=John"));
        assert_eq!(a, "/c=xx/prmd=alpha/o=head office/s=smith/g=john");
        assert_eq!(canonical(&address(&a)), a);
        assert_eq!(canonical(&address("S=SMITH;G=john;O=head office;P=ALPHA;C=xx")), a);
        // A value cannot imitate two attributes.
        assert_ne!(canonical(&address("C=XX;O=a\\/s=b")), canonical(&address("C=XX;O=a;S=b")));
    }

    fn arbitrary_address() -> impl Strategy<Value = ORAddress> {
        let part = |name: &'static str| {
            proptest::option::of(prop_oneof![Just("a"), Just("B"), Just("c d")])
                .prop_map(move |v| v.map_or_else(String::new, |v| format!("{name}={v};")))
        };
        let parts = (part("C"), part("A"), part("P"), part("O"), part("OU1"), part("S"));
        parts.prop_map(|(c, a, p, o, u, s)| address(&format!("{c}{a}{p}{o}{u}{s}")))
    }

    proptest! {
        /// Compared with a model that tries every line.
        #[test]
        fn agrees_with_a_naive_model(
            prefixes in proptest::collection::vec(arbitrary_address(), 0..12),
            target in arbitrary_address(),
        ) {
            let route = |(n, prefix): (usize, &ORAddress)| Route {
                prefix: prefix.clone(),
                to: RouteTarget::Peer(PeerId(n as u32)),
            };
            let table = RoutingTable::new(prefixes.iter().enumerate().map(route));
            let mut best: Option<(usize, Vec<Attribute>, usize)> = None;
            for (n, prefix) in prefixes.iter().enumerate() {
                let Some(count) = target.matches(prefix) else { continue };
                let kinds: Vec<Attribute> = prefix.attributes().into_iter().map(|a| a.0).collect();
                let better = best.as_ref().is_none_or(|(most, higher, _)| {
                    count > *most || (count == *most && kinds < *higher)
                });
                if better {
                    best = Some((count, kinds, n));
                }
            }
            let expected = best.map(|(_, _, n)| RouteTarget::Peer(PeerId(n as u32)));
            prop_assert_eq!(table.look_up(&target), expected);
        }
    }
}
