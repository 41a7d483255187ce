//! `mta try`: one association with a peer, each layer's exchange in words as it happens. For the engineer who connects
//! another system: the daemon need not run, and nothing is kept.

mod advice;
mod answering;
mod binds;
mod calling;
mod exchange;
mod message;
mod story;

use super::output::{load, print_error};
use super::{FAILED, WRONG};
use crate::config::{ChannelSocket, ListenSocket, Site};
use base::PeerId;
use node::config::{Channel, ListenerService, Peer, Release};
use node::{ChannelId, Secret};
use osi::api::Request;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Opens one association with a peer, or waits for one, and explains every layer of it.
///
/// The exchange is as the daemon's: the channel's mark, the selectors, mode, name and password of the configuration.
/// Without --message nothing is transferred. Passwords are not shown. Exit codes: 0 opened and released, 1 refused or
/// failed, 2 wrong usage or configuration.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "docs/foreign-peer.md has an example of each, and docs/refusals.md what the answers mean."
)]
pub(super) struct Arguments {
    /// The peer by its name in the configuration, or PEER/CHANNEL.
    #[arg(value_name = "PEER", required_unless_present = "listen", conflicts_with = "listen")]
    peer: Option<String>,
    /// The channel; default: the peer's first.
    #[arg(long, value_name = "CHANNEL", conflicts_with = "listen")]
    channel: Option<String>,
    /// The configuration file.
    #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
    config: PathBuf,
    /// Transfer a probe, or a short text, to the address of --to. The report goes to --from.
    #[arg(
        long,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "probe",
        requires = "to",
        conflicts_with = "listen"
    )]
    message: Option<message::Kind>,
    /// The recipient of the probe or text, as /C=../ADMD=../S=..
    #[arg(long, value_name = "ADDRESS", requires = "message", value_parser = super::argument::address)]
    to: Option<String>,
    /// Its originator; default: S=POSTMASTER in the domain of this MTA.
    #[arg(long, value_name = "ADDRESS", requires = "message", value_parser = super::argument::address)]
    from: Option<String>,
    /// Wait for one connection of the peer instead, on the address of this channel (PEER/CHANNEL) or on this address
    /// and port. The daemon must not listen there.
    #[arg(long, value_name = "CHANNEL-or-ADDRESS")]
    listen: Option<String>,
    /// Whose connection is expected, where the address of --listen belongs to no channel: PEER or PEER/CHANNEL.
    #[arg(long, value_name = "PEER", requires = "listen")]
    as_responder: Option<String>,
    /// Record the octets as pcapng for Wireshark. The file contains passwords in clear.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Longest time for the whole, such as 90s.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    timeout: Duration,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A time above zero.
fn time(text: &str) -> Result<Duration, String> {
    let time = base::quantity::duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("it must be more than 0".to_owned()) } else { Ok(time) }
}

/// A channel of a peer, and what of the configuration concerns it.
struct Subject<'a> {
    site: &'a Site,
    id: ChannelId,
    peer: &'a Peer,
    channel: &'a Channel,
    socket: &'a ChannelSocket,
    /// The password that the peer must present.
    expected: &'a Secret,
}

impl Subject<'_> {
    fn label(&self) -> String {
        format!("{}/{}", self.peer.name, self.channel.name)
    }

    /// The request that ends the association in order.
    fn end(&self) -> Request {
        match self.peer.release {
            Release::Release => Request::Release,
            Release::Close => Request::Close,
        }
    }
}

/// The channel of this name, PEER/CHANNEL, or the first of PEER.
fn subject<'a>(site: &'a Site, name: &str, channel: Option<&str>) -> Result<Subject<'a>, String> {
    let all = || site.node.peers.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
    let whole = site.node.peers.iter().find(|peer| peer.name == name);
    let (peer, channel) = match (whole, name.rsplit_once('/')) {
        (Some(peer), _) => (peer, channel),
        (None, Some((peer, of_name))) if channel.is_none_or(|channel| channel == of_name) => {
            let found = site.node.peers.iter().find(|p| p.name == peer);
            (found.ok_or_else(|| format!("there is no peer {peer:?}: {}", all()))?, Some(of_name))
        }
        _ => return Err(format!("there is no peer {name:?}: {}", all())),
    };
    let found = peer.channels().find(|(_, c)| channel.is_none_or(|name| c.name == name));
    let Some((id, found)) = found else {
        let names: Vec<&str> = peer.channels.iter().map(|c| c.name.as_str()).collect();
        let channel = channel.unwrap_or_default();
        return Err(format!("{} has no channel {channel:?}: {}", peer.name, names.join(", ")));
    };
    of_channel(site, id).ok_or_else(|| format!("{}/{} is incomplete", peer.name, found.name))
}

fn of_channel(site: &Site, id: ChannelId) -> Option<Subject<'_>> {
    let (peer, channel) = site.node.channel(id)?;
    let (socket, expected) = (site.channels.get(&id)?, site.expected.get(&id.peer)?);
    Some(Subject { site, id, peer, channel, socket, expected })
}

/// Where to wait, and for whom.
fn listener<'a>(
    site: &'a Site,
    wanted: &str,
    whose: Option<&str>,
) -> Result<(Subject<'a>, ListenSocket), String> {
    let of = |service: &ListenerService| match service {
        ListenerService::P1 { peer, channel } => Some(ChannelId { peer: *peer, index: *channel }),
        ListenerService::P3 { .. } | ListenerService::P7 { .. } => None,
    };
    let configured = site.node.listeners.iter().filter_map(|l| Some((of(&l.service)?, l.id)));
    let mut configured = configured.filter_map(|(id, l)| Some((id, site.listener(l)?)));
    let whose = whose.map(|whose| subject(site, whose, None)).transpose()?;
    if let Ok(address) = wanted.parse::<SocketAddr>() {
        let found = configured.find(|(_, socket)| socket.address == address);
        let subject = match (whose, &found) {
            (Some(whose), _) => whose,
            (None, Some((id, _))) => of_channel(site, *id).ok_or("the channel is incomplete")?,
            (None, None) => {
                return Err(format!("{address} belongs to no channel: add --as-responder PEER"));
            }
        };
        let id = found.map_or_else(|| node::ListenerId(0), |(_, socket)| socket.id);
        let (tcp, label) = (subject.socket.tcp.clone(), subject.label());
        return Ok((subject, ListenSocket { id, address, tcp, label }));
    }
    let subject = subject(site, wanted, None)?;
    let found = configured.find(|(id, _)| *id == subject.id);
    let (_, socket) = found.ok_or_else(|| format!("{wanted} has no listen address"))?;
    let subject = whose.unwrap_or(subject);
    Ok((subject, socket.clone()))
}

/// The name of a peer by its number.
fn peer_of(site: &Site, id: PeerId) -> &str {
    site.node.peer(id).map_or("", |peer| peer.name.as_str())
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let Some(site) = load(&arguments.config) else { return WRONG };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            print_error(&format!("cannot start threads: {error}"));
            return FAILED;
        }
    };
    let done = match (&arguments.listen, &arguments.peer) {
        (Some(wanted), _) => {
            let found = listener(&site, wanted, arguments.as_responder.as_deref());
            found.map(|(subject, socket)| {
                runtime.block_on(answering::run(arguments, &subject, &socket))
            })
        }
        (None, peer) => {
            let name = peer.as_deref().unwrap_or_default();
            let found = subject(&site, name, arguments.channel.as_deref());
            found.map(|subject| runtime.block_on(calling::run(arguments, &subject)))
        }
    };
    // A look-up of a name may still wait.
    runtime.shutdown_background();
    done.flatten().unwrap_or_else(|why| {
        print_error(&why);
        WRONG
    })
}
