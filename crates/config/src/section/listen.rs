//! Listeners of channels and of P3, with a check for duplicate addresses.

use crate::problem::Problems;
use crate::section::channel::{ReadChannel, default_tcp};
use crate::section::peer::selectors;
use crate::section::site::{ListenSocket, Numbering, Tcp};
use crate::tree::Section;
use crate::value;
use dscp::Dscp;
use node::config::{Listener, ListenerService, Numbers};
use node::{ChannelId, ListenerId};
use std::net::SocketAddr;
use std::ops::Range;
use toml::Spanned;

/// Listeners found so far.
pub(crate) struct Listeners<'n> {
    /// For the node.
    pub(crate) node: Vec<Listener>,
    /// For the edge, in the same order.
    pub(crate) sockets: Vec<ListenSocket>,
    /// Their numbers, and those of the running site.
    pub(crate) numbers: Numbers<(SocketAddr, Tcp)>,
    before: &'n Numbering,
    spans: Vec<Range<usize>>,
}

impl<'n> Listeners<'n> {
    pub(crate) fn after(before: &'n Numbering) -> Listeners<'n> {
        Listeners {
            node: Vec::new(),
            sockets: Vec::new(),
            numbers: Numbers::after(&before.listeners),
            before,
            spans: Vec::new(),
        }
    }

    /// The listener that already occupies this address, and its position.
    pub(crate) fn taken(&self, at: SocketAddr) -> Option<(&str, Range<usize>)> {
        let (socket, span) =
            self.sockets.iter().zip(&self.spans).find(|(s, _)| clash(s.address, at))?;
        Some((&socket.label, span.clone()))
    }

    pub(crate) fn add(
        &mut self,
        problems: &mut Problems,
        address: &Spanned<SocketAddr>,
        tcp: Tcp,
        label: String,
        service: ListenerService,
    ) {
        let at = *address.get_ref();
        if let Some((taken_by, place)) = self.taken(at) {
            let message = format!("{at} is listened on twice");
            let remedy = "a listener serves one channel: give each its own port";
            problems.error(address.span(), message, "again", remedy);
            problems.see_also(place, format!("taken by {taken_by}"));
            return;
        }
        let id = ListenerId(self.numbers.give(&self.before.listeners, (at, tcp.clone())));
        self.node.push(Listener { id, service });
        self.sockets.push(ListenSocket { id, address: at, tcp, label });
        self.spans.push(address.span());
    }

    /// The listeners of a channel.
    pub(crate) fn add_channel(
        &mut self,
        problems: &mut Problems,
        id: ChannelId,
        channel: &ReadChannel,
    ) {
        for address in &channel.listen {
            let service = ListenerService::P1 { peer: id.peer, channel: id.index };
            let (tcp, label) = (channel.socket.tcp.clone(), channel.socket.label.clone());
            self.add(problems, address, tcp, label, service);
        }
    }
}

/// Whether both cannot be bound: one port, one family, and equal addresses or a wildcard.
pub fn clash(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port()
        && a.is_ipv4() == b.is_ipv4()
        && (a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified())
}

/// `[p3]`: where users bind. Returns its position, if present.
pub(crate) fn read_p3(
    top: &mut Section<'_>,
    problems: &mut Problems,
    listeners: &mut Listeners<'_>,
) -> Option<Range<usize>> {
    let mut section = top.table(problems, "p3")?;
    let place = section.span();
    let present = section.has("listen");
    let addresses = section.list(problems, "listen", &value::socket);
    let local = selectors(&mut section, problems, ["tsel", "ssel", "psel"]);
    let dscp = section.optional(problems, "dscp", &value::dscp);
    let tcp = default_tcp(dscp.map_or(Dscp::CS0, Spanned::into_inner));
    if !present || addresses.as_ref().is_some_and(|list| list.get_ref().is_empty()) {
        let span = addresses.as_ref().map_or(section.span(), Spanned::span);
        let remedy = "write listen = \"127.0.0.1:5010\", or remove [p3]";
        problems.error(span, "[p3] listens nowhere", "no address", remedy);
    }
    section.finish(problems);
    for address in addresses.map(Spanned::into_inner).unwrap_or_default() {
        let service = ListenerService::P3 { local: local.clone() };
        listeners.add(problems, &address, tcp.clone(), "p3".to_owned(), service);
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_clash_within_their_family() {
        let c = |a: &str, b: &str| clash(a.parse().unwrap(), b.parse().unwrap());
        assert!(c("127.0.0.1:5000", "127.0.0.1:5000"));
        assert!(c("0.0.0.0:5000", "127.0.0.1:5000"));
        assert!(!c("127.0.0.2:5000", "127.0.0.1:5000"));
        assert!(!c("127.0.0.1:5001", "127.0.0.1:5000"));
        assert!(!c("[::]:5000", "0.0.0.0:5000"), "v6 listeners are v6 only");
    }
}
