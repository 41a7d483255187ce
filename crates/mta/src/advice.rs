//! Advice on a valid configuration: settings that defeat each other or do not fit this system.
//!
//! `mta check` prints the advice and the daemon logs it at start. The system's settings are read
//! once, into [`Facts`]; the rest is computed from them.

mod facts;
mod forms;
mod places;

pub use facts::Facts;

use crate::config::{ChannelSocket, Site};
use base::Precedence;
use dscp::Dscp;
use node::config::{Channel, ListenerService, Peer};
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Severity of a piece of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information.
    Info,
    /// Something will not work as configured.
    Warning,
}

/// One piece of advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Its severity.
    pub severity: Severity,
    /// Subject: `peer/channel`, `p3`, or `system`.
    pub about: String,
    /// The finding.
    pub message: String,
    /// The operator's remedy, as a sentence.
    pub remedy: String,
}

impl Advice {
    fn new(
        severity: Severity,
        about: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Advice {
        let (about, message, remedy) = (about.into(), message.into(), remedy.into());
        Advice { severity, about, message, remedy }
    }

    /// Writes it to the log.
    pub fn log(&self) {
        let Advice { severity, about, message, remedy } = self;
        match severity {
            Severity::Info => tracing::info!(about, remedy, "{message}"),
            Severity::Warning => tracing::warn!(about, remedy, "{message}"),
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Info => "note",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}: {}\n  {}", self.about, self.message, self.remedy)
    }
}

/// All advice for a site, in a fixed order.
pub fn give(site: &Site, facts: &Facts) -> Vec<Advice> {
    let mut all = Vec::new();
    all.extend(reflection(site, facts));
    all.extend(slow_start(facts));
    all.extend(low_ports(site, facts));
    all.extend(unassigned_addresses(site, facts));
    all.extend(connects_to_self(site));
    all.extend(places::look(site));
    all.extend(congestion(site, facts));
    for peer in &site.node.peers {
        all.extend(from_anywhere(site, peer));
        all.extend(forms::look(peer));
        all.extend(inverted(peer));
        all.extend(shared(peer));
    }
    all
}

/// All advice for a site, for people: what is the same of several subjects is one.
pub fn give_once(site: &Site, facts: &Facts) -> Vec<Advice> {
    merged(give(site, facts))
}

/// What is the same of several subjects as one piece of advice, where the first was.
fn merged(all: Vec<Advice>) -> Vec<Advice> {
    let mut groups: Vec<(Advice, Vec<String>)> = Vec::new();
    for advice in all {
        let is_like = |first: &Advice| {
            (first.severity, &first.message, &first.remedy)
                == (advice.severity, &advice.message, &advice.remedy)
        };
        match groups.iter_mut().find(|(first, _)| is_like(first)) {
            Some((_, about)) => about.push(advice.about),
            None => groups.push((advice.clone(), vec![advice.about])),
        }
    }
    let one = |(mut advice, about): (Advice, Vec<String>)| {
        if about.len() > 1 {
            advice.about = format!("each of {}", about.join(", "));
        }
        advice
    };
    groups.into_iter().map(one).collect()
}

fn reflection(site: &Site, facts: &Facts) -> Option<Advice> {
    (facts.reflect_tos == Some(true) && !site.listeners.is_empty()).then(|| {
        Advice::new(
            Severity::Warning,
            "system",
            "net.ipv4.tcp_reflect_tos is on: what listeners answer carries the mark of whoever \
             connects, not the channel's",
            "sysctl -w net.ipv4.tcp_reflect_tos=0",
        )
    })
}

fn from_anywhere(site: &Site, peer: &Peer) -> Option<Advice> {
    let id = peer.id();
    let listens = site
        .node
        .listeners
        .iter()
        .any(|l| matches!(&l.service, ListenerService::P1 { peer, .. } if *peer == id));
    (listens && peer.from.is_empty()).then(|| {
        Advice::new(
            Severity::Info,
            &peer.name,
            "it has no `from`: whoever knows its password may bind as this peer from anywhere",
            "write from = [\"192.0.2.0/24\"] with the addresses it connects from",
        )
    })
}

fn slow_start(facts: &Facts) -> Option<Advice> {
    (facts.slow_start_after_idle == Some(true)).then(|| {
        Advice::new(
            Severity::Info,
            "system",
            "net.ipv4.tcp_slow_start_after_idle is on: a channel that was idle begins slowly again",
            "sysctl -w net.ipv4.tcp_slow_start_after_idle=0 suits precedence channels better",
        )
    })
}

fn low_ports(site: &Site, facts: &Facts) -> Vec<Advice> {
    let first_free = facts.unprivileged_port_start.unwrap_or(1_024);
    if facts.may_bind_low != Some(false) {
        return Vec::new();
    }
    let low = site.listeners.iter().filter(|l| (1..first_free).contains(&l.address.port()));
    low.map(|listener| {
        Advice::new(
            Severity::Warning,
            &listener.label,
            format!(
                "to listen on a port below {first_free} needs CAP_NET_BIND_SERVICE, which this user does \
                 not have"
            ),
            format!(
                "give it to the daemon (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE), or \
                 listen on a port from {first_free}"
            ),
        )
    })
    .collect()
}

/// Listeners on addresses that no interface of this machine has.
fn unassigned_addresses(site: &Site, facts: &Facts) -> Vec<Advice> {
    let Some(own) = &facts.addresses else { return Vec::new() };
    let is_own = |ip: IpAddr| ip.is_unspecified() || ip.is_loopback() || own.contains(&ip);
    let strange = site.listeners.iter().filter(|listener| {
        let any = match listener.address {
            SocketAddr::V4(_) => facts.nonlocal_v4,
            SocketAddr::V6(_) => facts.nonlocal_v6,
        };
        any != Some(true) && !is_own(listener.address.ip())
    });
    strange
        .map(|listener| {
            Advice::new(
                Severity::Warning,
                &listener.label,
                format!(
                    "it listens on {}, which is not an address of this machine: the daemon will not \
                     start",
                    listener.address.ip()
                ),
                "write an address that `ip address` shows, or give it to an interface before the \
                 daemon starts",
            )
        })
        .collect()
}

/// Channels that connect to a listener of this MTA itself.
fn connects_to_self(site: &Site) -> Vec<Advice> {
    let one = |channel: &ChannelSocket| {
        let places = channel
            .remotes()
            .filter_map(|remote| Some(SocketAddr::new(remote.host.parse().ok()?, remote.port)));
        let mut ours = places.filter_map(|at| {
            Some((at, site.listeners.iter().find(|listener| listener.address == at)?))
        });
        let (at, ours) = ours.next()?;
        Some(Advice::new(
            Severity::Warning,
            &channel.label,
            format!("it connects to {at}, where this MTA itself listens ({})", ours.label),
            "write the address and port of the peer's listener as remote",
        ))
    };
    site.channels.values().filter_map(one).collect()
}

fn congestion(site: &Site, facts: &Facts) -> Vec<Advice> {
    let (Some(available), Some(allowed)) = (&facts.available, &facts.allowed) else {
        return Vec::new();
    };
    let one = |label: &str, name: &String| {
        let (message, remedy) = if !available.contains(name) {
            let loaded = available.join(" ");
            (
                format!("this system has no congestion control {name:?}: its own is used"),
                format!("modprobe tcp_{name}, or take one of: {loaded}"),
            )
        } else if !allowed.contains(name) && facts.may_administer != Some(true) {
            (
                format!("congestion control {name:?} is not permitted: the system's is used"),
                format!(
                    "add it to net.ipv4.tcp_allowed_congestion_control, which has: {}",
                    allowed.join(" ")
                ),
            )
        } else {
            return None;
        };
        Some(Advice::new(Severity::Warning, label, message, remedy))
    };
    let channels = site.channels.values();
    channels.filter_map(|c| one(&c.label, c.tcp.congestion.as_ref()?)).collect()
}

/// How equipment configured after RFC 4594 serves a code point, compared with best effort: LE (RFC
/// 8622) and CS1 (RFC 4594 section 4.10) are below it. All others count as equal to it.
fn rank(dscp: Dscp) -> u8 {
    match dscp {
        Dscp::LE => 0,
        Dscp::CS1 => 1,
        _ => 2,
    }
}

fn highest(channel: &Channel) -> Option<Precedence> {
    channel.precedences.iter().max().copied()
}

/// Channels whose mark is served below that of a channel of lower precedence.
fn inverted(peer: &Peer) -> Vec<Advice> {
    let below = |channel: &&Channel| {
        let own = highest(channel);
        let lower = peer.channels.iter().find(|other| {
            let lowest = other.precedences.iter().min().copied();
            lowest.is_some() && lowest < own && rank(channel.dscp) < rank(other.dscp)
        });
        lower.map(|other| {
            Advice::new(
                Severity::Warning,
                format!("{}/{}", peer.name, channel.name),
                format!(
                    "it is marked {}, which routers that follow RFC 4594 serve below {} of channel \
                     {}, whose precedence is lower",
                    channel.dscp, other.dscp, other.name
                ),
                "write plan = \"rfc4594\" under [precedence] or another dscp, unless every router \
                 on the path is configured for these marks",
            )
        })
    };
    peer.channels.iter().filter_map(|channel| below(&channel)).collect()
}

/// Channels of different precedence that have the same mark.
fn shared(peer: &Peer) -> Vec<Advice> {
    let mut all = Vec::new();
    for (n, channel) in peer.channels.iter().enumerate() {
        let before = peer.channels.iter().take(n);
        let mut same = before.filter(|other| other.dscp == channel.dscp);
        if let Some(other) = same.find(|other| other.precedences != channel.precedences) {
            all.push(Advice::new(
                Severity::Info,
                format!("{}/{}", peer.name, channel.name),
                format!(
                    "it has the same mark as channel {}, {}: routers cannot separate their \
                     precedences",
                    other.name, channel.dscp
                ),
                "give each its own dscp where routers are to serve one before the other",
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::example_site;
    use node::config::Release;
    use p1::extension::{CommonName, Dialect, Form, Qualifier};

    /// A system that has no effect on the advice.
    fn kind() -> Facts {
        Facts {
            reflect_tos: Some(false),
            slow_start_after_idle: Some(false),
            unprivileged_port_start: Some(1_024),
            may_bind_low: Some(true),
            may_administer: Some(false),
            available: Some(vec!["reno".to_owned(), "cubic".to_owned(), "bbr".to_owned()]),
            allowed: Some(vec!["reno".to_owned(), "cubic".to_owned()]),
            addresses: Some(vec!["192.0.2.1".parse().unwrap()]),
            nonlocal_v4: Some(false),
            nonlocal_v6: Some(false),
        }
    }

    fn text(site: &Site, facts: &Facts) -> String {
        give(site, facts).iter().map(|advice| format!("{advice}\n")).collect()
    }

    /// The shipped site with the marks of the plan `rfc4594`.
    fn rfc4594() -> Site {
        let mut site = example_site();
        for peer in &mut site.node.peers {
            for channel in &mut peer.channels {
                let highest = highest(channel).unwrap();
                channel.dscp = dscp::Plan::Rfc4594.dscp(highest);
            }
        }
        site
    }

    #[test]
    fn the_paper_s_plan_serves_priority_below_routine_and_rfc4594_does_not() {
        insta::assert_snapshot!(text(&example_site(), &kind()));
        assert_eq!(text(&rfc4594(), &kind()), "");
    }

    #[test]
    fn what_the_system_does_against_it() {
        let facts = Facts {
            reflect_tos: Some(true),
            slow_start_after_idle: Some(true),
            may_bind_low: Some(false),
            ..kind()
        };
        let mut site = rfc4594();
        site.listeners[0].address.set_port(102);
        site.listeners[1].address.set_port(1_024);
        let names = ["bbr", "vegas", "cubic"].map(str::to_owned);
        for (channel, name) in site.channels.values_mut().zip(names) {
            channel.tcp.congestion = Some(name);
        }
        insta::assert_snapshot!(text(&site, &facts));

        let root = Facts { may_administer: Some(true), may_bind_low: Some(true), ..kind() };
        let about: Vec<String> = give(&site, &root).into_iter().map(|a| a.message).collect();
        assert_eq!(about.len(), 1, "only what is not there: {about:?}");
    }

    #[test]
    fn the_cost_of_the_dialect_of_1988_is_shown() {
        let mut site = rfc4594();
        site.node.peers[0].form.dialect = Dialect::BlueBook1988;
        insta::assert_snapshot!(text(&site, &kind()));
    }

    #[test]
    fn the_cost_of_p1_of_1984_is_shown() {
        let mut site = rfc4594();
        site.node.peers[0].form.dialect = Dialect::RedBook1984(CommonName::NoForm);
        insta::assert_snapshot!(text(&site, &kind()));
        site.node.peers[0].form.dialect = Dialect::RedBook1984(CommonName::DomainDefined);
        assert!(text(&site, &kind()).contains("attribute Common"));
    }

    #[test]
    fn the_cost_of_what_a_peer_is_spared_is_shown() {
        let mut site = rfc4594();
        site.node.peers[0].form =
            Form { qualifier: Qualifier::Omit, explicit_defaults: false, dialect: Dialect::Modern };
        site.node.peers[0].release = Release::Close;
        insta::assert_snapshot!(text(&site, &kind()));
    }

    #[test]
    fn what_is_unknown_is_not_complained_of() {
        let mut site = rfc4594();
        site.listeners[0].address.set_port(102);
        for channel in site.channels.values_mut() {
            channel.tcp.congestion = Some("bbr".to_owned());
        }
        assert_eq!(give(&site, &Facts::default()), []);
    }

    #[test]
    fn addresses_of_other_machines_and_a_channel_to_ourselves() {
        let mut site = rfc4594();
        for (listener, at) in site.listeners.iter_mut().zip(["192.0.2.1", "192.0.2.2", "0.0.0.0"]) {
            listener.address.set_ip(at.parse().unwrap());
        }
        site.listeners[3].address.set_ip("2001:db8::1".parse().unwrap());
        let own = site.listeners[4].address;
        let channel = site.channels.values_mut().next().unwrap();
        (channel.remote.host, channel.remote.port) = (own.ip().to_string(), own.port());
        insta::assert_snapshot!(text(&site, &kind()));

        let facts = Facts { nonlocal_v4: Some(true), nonlocal_v6: Some(true), ..kind() };
        assert_eq!(give(&site, &facts).len(), 1, "the kernel lets it listen on any address");
    }

    #[test]
    fn advice_on_channels_that_are_alike_is_given_once() {
        let mut site = rfc4594();
        for listener in &mut site.listeners {
            listener.address.set_ip("192.0.2.2".parse().unwrap());
        }
        for channel in site.channels.values_mut() {
            channel.tcp.congestion = Some("vegas".to_owned());
        }
        assert!(give(&site, &kind()).len() > 9, "each, for a program");
        let all = give_once(&site, &kind());
        let [listens, vegas] = all.as_slice() else { panic!("{all:?}") };
        let channels = "act/routine, act/priority, act/immediate, act/flash, act/override";
        assert_eq!(listens.about, format!("each of p3, p7, {channels}"));
        assert_eq!(vegas.about, format!("each of {channels}"));
        let begins = format!("warning: each of {channels}: this system has no congestion control");
        assert!(vegas.to_string().starts_with(&begins), "{vegas}");
    }

    #[test]
    fn one_mark_for_two_precedences_is_noted() {
        let mut site = rfc4594();
        for channel in site.node.peers[0].channels.iter_mut().skip(3) {
            channel.dscp = Dscp::EF;
        }
        insta::assert_snapshot!(text(&site, &kind()));
    }
}
