//! `[[route]]`: prefixes of O/R addresses and their targets.

use crate::address;
use crate::problem::Problems;
use crate::tree::{Section, nearest};
use crate::value;
use base::PeerId;
use engine::{RouteTarget, RoutingTable};
use node::config::{Route, Target};
use p1::names::ORAddress;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// The target that means this MTA.
pub(crate) const LOCAL: &str = "local";

/// The routes of a configuration file.
#[derive(Clone, Debug)]
pub struct Routes(pub(crate) Vec<Route>);

impl Routes {
    /// The routing table, as the engine uses it.
    pub fn table(&self) -> RoutingTable {
        RoutingTable::new(self.0.iter().map(|route| engine::Route {
            prefix: route.prefix.clone(),
            to: match route.to {
                Target::Peer(peer) => RouteTarget::Peer(peer),
                Target::Local => RouteTarget::Local,
            },
        }))
    }

    /// The prefixes with this MTA's mailboxes as target, as text.
    pub fn local(&self) -> Vec<String> {
        let local = self.0.iter().filter(|route| route.to == Target::Local);
        local.map(|route| route.prefix.to_string()).collect()
    }
}

/// Warns of users who can have no mailbox, and of peers without a route.
pub(crate) fn unreached(
    problems: &mut Problems,
    routes: &[Route],
    p3: Option<Range<usize>>,
    peers: &[Option<Spanned<String>>],
) {
    if let Some(p3) = p3.filter(|_| !routes.iter().any(|route| route.to == Target::Local)) {
        let remedy = "add a [[route]] via = \"local\" with the address that the mailboxes of this MTA \
                      are below, or remove [p3]";
        let message = "[p3] serves users, but no route is local: nobody can have a mailbox here";
        problems.warning(p3, message, "here", remedy);
    }
    for name in peers.iter().flatten() {
        let peer = Target::Peer(PeerId::of_name(name.get_ref()));
        if name.get_ref() == LOCAL || routes.iter().any(|route| route.to == peer) {
            continue;
        }
        let message =
            format!("no route leads to the peer {:?}: it is sent nothing", name.get_ref());
        let remedy = format!(
            "add a [[route]] via = {:?} with the addresses it serves, unless it only sends to us",
            name.get_ref()
        );
        problems.warning(name.span(), message, "here", remedy);
    }
}

/// Refuses an alternate recipient to whom no route leads: what is for nobody would be reported all the
/// same.
pub(crate) fn check_alternate(
    problems: &mut Problems,
    routes: &[Route],
    alternate: Option<&Spanned<ORAddress>>,
) {
    let Some(alternate) = alternate else { return };
    let reaches = |route: &Route| alternate.get_ref().matches(&route.prefix).is_some();
    if !routes.iter().any(reaches) {
        let message = format!("no route leads to alternate_recipient {}", alternate.get_ref());
        let remedy = "write the address of a mailbox of this MTA, or of a recipient that a [[route]] \
                      leads to";
        problems.error(alternate.span(), message, "here", remedy);
    }
}

/// Reads the routes to these peers (by number; a peer without a usable name is `None`).
pub(crate) fn read(
    top: &mut Section<'_>,
    problems: &mut Problems,
    peers: &[Option<Spanned<String>>],
) -> Vec<Route> {
    let mut routes = Vec::new();
    let mut first = BTreeMap::new();
    for mut section in top.tables(problems, "route") {
        let remedy = "write address = \"/C=IT/ADMD=…/PRMD=…\"";
        let prefix = section.required(problems, "address", remedy, &address::or_address);
        let remedy = "write via = \"local\" or the name of a peer";
        let via = section.required(problems, "via", remedy, &value::name);
        section.finish(problems);
        let target = via.and_then(|via| target(problems, &via, peers));
        let Some(prefix) = prefix else { continue };
        if let Some(earlier) = first.insert(prefix.get_ref().clone(), prefix.span()) {
            let message = format!("two routes for {}", prefix.get_ref());
            problems.error(prefix.span(), message, "again", "remove one of them");
            problems.see_also(earlier, "first here");
        }
        if let Some(to) = target {
            routes.push(Route { prefix: prefix.into_inner(), to });
        }
    }
    routes
}

fn target(
    problems: &mut Problems,
    via: &Spanned<String>,
    peers: &[Option<Spanned<String>>],
) -> Option<Target> {
    let text = via.get_ref().as_str();
    if text == LOCAL {
        return Some(Target::Local);
    }
    let mut names: Vec<&str> =
        peers.iter().filter_map(|name| Some(name.as_ref()?.get_ref().as_str())).collect();
    if names.contains(&text) {
        return Some(Target::Peer(PeerId::of_name(text)));
    }
    names.retain(|name| *name != LOCAL);
    names.push(LOCAL);
    let remedy = match nearest(text, &names) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("known: {}", names.join(", ")),
    };
    problems.error(via.span(), format!("a route via the unknown peer {text:?}"), "here", remedy);
    None
}
