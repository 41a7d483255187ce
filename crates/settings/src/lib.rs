//! What a node is configured with: plain data, checked by the edge before it gets here.

pub mod changes;
pub mod channel_changes;
pub mod configured;
pub mod levels;
pub mod minimize;
pub mod times;

pub use crate::minimize::Minimize;
pub use crate::times::Times;
pub use base::ip_prefix::{NoPrefix, Prefix};
pub use base::numbers::Numbers;
use base::{PeerId, Precedence, Windows};
use dscp::Dscp;
pub use engine::Alerts;
pub use engine::Clearances;
pub use engine::Periods;
pub use guard::Limits;
use guard::Secret;
use osi::api::{Dialogue, Mode, RtseParameters, Selectors};
use osi::session::service::ConnectionReference;
use p1::bind::{Credentials, MtaAuthentication, Password, PasswordForm};
use p1::extension::Form;
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
pub use scheduler::wall::ClockRules;
use scheduler::{ChannelId, ChannelRules};
pub use scheduler::{Hold, Policy as HoldPolicy, Retry};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// A configured listener ([`Listener::id`]).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct ListenerId(pub u32);

/// A whole MTA.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct NodeConfig {
    /// Our name.
    pub mta: MtaName,
    /// Our domain.
    pub domain: GlobalDomainId,
    /// Peers, in configuration order; no two have the same [`PeerId`].
    pub peers: Vec<Peer>,
    /// Where we accept connections.
    pub listeners: Vec<Listener>,
    /// O/R address prefixes and where they lead; the longest match wins.
    pub routes: Vec<Route>,
    /// Canonical addresses of the local mailboxes.
    pub mailboxes: Vec<String>,
    /// Who gets what is for addresses of this site that are nobody's, if the originator allows it.
    pub alternate_recipient: Option<ORName>,
    /// The message store.
    pub store: StoreConfig,
    /// How the precedence of a message is found.
    pub classify: engine::classify::Policy,
    /// What peers and users are cleared for.
    pub clearances: Clearances,
    /// When a higher message holds the lower ones for the same peer.
    pub hold: HoldPolicy,
    /// How long copies may wait: until they are late, and until they are given up.
    pub times: Times,
    /// When only what is urgent goes out.
    pub minimize: Option<Minimize>,
    /// Limits.
    pub limits: Limits,
    /// Seeds backoff jitter.
    pub seed: u64,
    /// Number of this start of the MTA, durable and never used before.
    pub epoch: u32,
    /// At random for each start, below 36^4: in MTS identifiers beside the epoch, which may come again where
    /// its places are lost. 0: none.
    pub salt: u32,
}

/// The message store.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct StoreConfig {
    /// Canonical addresses of those whose messages are delivered into it. Others take deliveries over P3.
    pub users: BTreeSet<String>,
    /// Quotas and rules of retention.
    pub settings: mailbox::Settings,
    /// A copy that finds no room in its mailbox for so long is reported: recipient-unavailable.
    pub full: Duration,
}

impl Default for StoreConfig {
    fn default() -> StoreConfig {
        StoreConfig {
            users: BTreeSet::new(),
            settings: mailbox::Settings::default(),
            full: Duration::from_secs(24 * 3600),
        }
    }
}

/// [`Peer::message_aborts`] where nothing else is configured.
pub const MESSAGE_ABORTS: u32 = 4;

/// A peer MTA.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Peer {
    /// Name in configuration, log and status.
    pub name: String,
    /// The MTA name it must bind with.
    pub mta: MtaName,
    /// The MTA name we bind to it with.
    pub own_name: MtaName,
    /// The password we bind to it with.
    pub own_password: Secret,
    /// Send credentials as OCTET STRING instead of IA5String.
    pub octet_credentials: bool,
    /// Where it may connect from; empty for anywhere.
    pub from: Vec<Prefix>,
    /// Where its channels connect to, as far as those are addresses and not names: with `from`, the
    /// addresses for which places are kept.
    pub addresses: Vec<IpAddr>,
    /// The form of all APDUs it is sent: of their extension fields, of none but the standard ones where the dialect is
    /// that of 1988, and of all else where it is that of 1984; with the priority-level-qualifier, and with members of
    /// the value of their DEFAULT, or without.
    pub form: Form,
    /// How it is called, and may call, in X.410 mode; `None`: in normal mode only.
    pub x410: Option<X410>,
    /// Who asks for the recovery of an association that it opened and we were sending on.
    pub resume: Resume,
    /// Our selectors toward it.
    pub local: Selectors,
    /// How an association with it ends in order.
    pub release: Release,
    /// Its selectors.
    pub remote: Selectors,
    /// Largest TPDU proposed or accepted; `None` for RFC 1006's default.
    pub tpdu_size: Option<u32>,
    /// Most octets of content it takes, where that is known: what is longer is reported at once.
    pub content_max: Option<u64>,
    /// Transfers of one message that the peer may abort for a reason of the message, before it is given
    /// up; 0 for any number.
    pub message_aborts: u32,
    /// Its channels, in configuration order.
    pub channels: Vec<Channel>,
}

/// X.410 (1984) mode with a peer: it is called in it, and may call in it or in normal mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct X410 {
    /// applicationProtocol (X.228 9): 12 is P1 of 1988, 1 is P1 of 1984, and what is expected where a call has none.
    pub protocol: i64,
    /// A call may have the two octets of the number the other way round (3072, 256), as some stacks send it.
    pub swapped: bool,
}

impl X410 {
    /// Whether a call with this applicationProtocol is one of the peer's.
    pub fn fits(self, protocol: Option<i64>) -> bool {
        let protocol = protocol.unwrap_or(Mode::P1_1984);
        let swapped =
            || u16::try_from(self.protocol).is_ok_and(|p| protocol == i64::from(p.swap_bytes()));
        protocol == self.protocol || self.swapped && swapped()
    }
}

/// How we end an association with a peer in order, where nothing is in flight on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Release {
    /// RT-CLOSE: RLRQ in a FINISH (X.228 7.2, X.227 7.2, X.225 8.3.9), or an abort where the turn, and with it the right
    /// to release, is the peer's.
    #[default]
    Release,
    /// We close the transport connection, and the peer gets nothing.
    Close,
}

/// Who may ask for the recovery of an association on which a transfer was cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Resume {
    /// Who opened it, as X.228 7.8.3 has it.
    #[default]
    Initiator,
    /// Who opened it, and after a while the sender too.
    Either,
}

impl Peer {
    /// Its identifier, which follows from its name.
    pub fn id(&self) -> PeerId {
        PeerId::of_name(&self.name)
    }

    /// The mode in which it is called, and the other one that it may call in.
    pub fn mode(&self) -> Mode {
        self.x410.map_or(Mode::Normal, |x410| Mode::X410 { protocol: Some(x410.protocol) })
    }

    /// Whether it may call in this mode.
    ///
    /// # Errors
    /// Why not, and what to configure.
    pub fn takes(&self, mode: Mode) -> Result<(), String> {
        match (mode, self.x410) {
            (Mode::X410 { protocol }, Some(x410)) if !x410.fits(protocol) => {
                let came = protocol.map_or("none (1)".to_owned(), |protocol| protocol.to_string());
                Err(format!(
                    "applicationProtocol of the RTORQ: {came}, where {} is configured \
                     (application_protocol, byte_swapped)",
                    x410.protocol
                ))
            }
            (Mode::X410 { .. }, None) => {
                Err("it calls in X.410 mode, and mode = \"x410-1984\" is not configured".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Peer {
    /// A text that it sent, without our password: a peer may send back what it got.
    pub fn without_password(&self, text: &str) -> String {
        let octets = &self.own_password.0;
        let hex: Vec<String> = octets.iter().map(|octet| format!("{octet:02X}")).collect();
        let hex = hex.join(" ");
        let forms = [String::from_utf8_lossy(octets).into_owned(), hex.to_lowercase(), hex];
        // What is shorter stands in many words.
        let shown = forms.iter().filter(|form| form.len() > 3);
        shown.fold(text.to_owned(), |text, form| text.replace(form.as_str(), "(our password)"))
    }

    /// Its channels with their identifiers.
    pub fn channels(&self) -> impl Iterator<Item = (ChannelId, &Channel)> {
        let peer = self.id();
        self.channels.iter().map(move |c| (ChannelId { peer, index: c.index }, c))
    }
}

impl NodeConfig {
    /// The peer of this identifier.
    pub fn peer(&self, id: PeerId) -> Option<&Peer> {
        self.peers.iter().find(|p| p.id() == id)
    }

    /// Whether this peer may call in this mode.
    ///
    /// # Errors
    /// As [`Peer::takes`].
    pub fn takes(&self, peer: PeerId, mode: Mode) -> Result<(), String> {
        self.peer(peer).map_or(Ok(()), |peer| peer.takes(mode))
    }

    /// The channel of this identifier, with its peer.
    pub fn channel(&self, id: ChannelId) -> Option<(&Peer, &Channel)> {
        let peer = self.peer(id.peer)?;
        Some((peer, peer.channels.iter().find(|c| c.index == id.index)?))
    }

    /// The listener of this identifier.
    pub fn listener(&self, id: ListenerId) -> Option<&Listener> {
        self.listeners.iter().find(|l| l.id == id)
    }
}

/// One of several independent channels to the same peer.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Channel {
    /// Its number, which no other channel of this peer has or had before it: a reference to a
    /// channel stays valid when the configuration changes.
    pub index: u32,
    /// Name in configuration, log and status.
    pub name: String,
    /// Which precedences may use it.
    pub precedences: Vec<Precedence>,
    /// Precedences it may carry while every channel of theirs is down.
    pub fallback: Vec<Precedence>,
    /// The mark of its connections in both directions, which the edge sets.
    pub dscp: Dscp,
    /// Kept open, opened by traffic, or open at certain hours.
    pub connection: Connection,
    /// How long to wait before opening again.
    pub reopen: Reopen,
    /// Most associations we open on it.
    pub associations_max: u32,
    /// A further one is opened only when so many of equal precedence wait, 1 or more.
    pub grow_at: u32,
    /// One of several is released once one was free for so long without a break.
    pub associations_keep: Duration,
    /// When only what is urgent goes out on it.
    pub minimize: Option<Minimize>,
    /// Checkpoints, window, dialogue mode.
    pub rts: RtseParameters,
    /// Whether the checkpoint follows the rate that was measured on the channel: then that of `rts`
    /// is the largest, and holds until something was measured.
    pub checkpoint_adapts: bool,
    /// Wait for each answer while opening and releasing.
    pub setup_timeout: Duration,
}

/// How long to wait before an association that was lost or could not be opened is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Reopen {
    /// After the first failure; doubled with each that follows.
    pub first: Duration,
    /// Longest wait after a failure.
    pub longest: Duration,
    /// Where the peer refused our name or password, or we refused its: somebody has to change a
    /// configuration first.
    pub refused: Duration,
}

impl Default for Reopen {
    fn default() -> Reopen {
        Reopen {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            refused: Duration::from_secs(600),
        }
    }
}

impl Reopen {
    /// The wait before the next try after so many failures in a row, 1 or more: doubled each time, and between half
    /// and the whole of that, so that peers do not come back in step.
    pub fn wait(&self, failures: u32, seed: u64) -> Duration {
        let doubled = self.first.saturating_mul(2u32.saturating_pow(failures.clamp(1, 32) - 1));
        jittered(doubled.min(self.longest), seed)
    }

    /// The wait after a refusal that trying again does not change.
    pub fn wait_refused(&self, seed: u64) -> Duration {
        jittered(self.refused, seed)
    }
}

/// Between half and the whole of a wait.
fn jittered(wait: Duration, seed: u64) -> Duration {
    let half = wait / 2;
    let span = u64::try_from(half.as_micros()).unwrap_or(u64::MAX);
    half + Duration::from_micros(base::rng::Rng::new(seed).below(span.saturating_add(1)))
}

/// When a channel's associations exist.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Connection {
    /// Always; reopened when lost.
    Permanent,
    /// Opened by traffic.
    OnDemand {
        /// Released after so long without a transfer.
        idle_close: Duration,
    },
    /// As permanent within these hours; outside them we open none, and the channel counts as down.
    Scheduled {
        /// The hours.
        windows: Windows,
    },
}

impl Connection {
    /// Whether it is kept open without traffic, at least at certain hours.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Connection::OnDemand { .. })
    }
}

/// Where connections arrive.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Listener {
    /// Its number, which no other listener has or had before it.
    pub id: ListenerId,
    /// What is spoken there.
    pub service: ListenerService,
}

/// What is spoken on a listener.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub enum ListenerService {
    /// P1 with one peer on one channel.
    P1 {
        /// The peer.
        peer: PeerId,
        /// [`Channel::index`] of the channel.
        channel: u32,
    },
    /// P3 with any user.
    P3 {
        /// Our selectors.
        local: Selectors,
    },
    /// P7 with any user.
    P7 {
        /// Our selectors.
        local: Selectors,
    },
}

/// One line of the routing table.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Route {
    /// Every attribute given here must be the recipient's.
    pub prefix: ORAddress,
    /// Where to.
    pub to: Target,
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Target {
    /// A peer.
    Peer(PeerId),
    /// This MTA: the recipient must have a mailbox here.
    Local,
}

/// What the scheduler needs of it.
pub fn channel_rules(config: &NodeConfig) -> Vec<ChannelRules> {
    let rules = |peer: &Peer, id: ChannelId, channel: &Channel| {
        // A message without any channel would wait for ever: the first stands in, though the
        // configuration was checked to have one for each.
        let covered = |p: &Precedence| peer.channels.iter().any(|c| c.precedences.contains(p));
        let is_first = peer.channels.first().is_some_and(|first| first.index == id.index);
        let bare = Precedence::ALL.into_iter().filter(|p| is_first && !covered(p));
        ChannelRules {
            id,
            precedences: channel.precedences.iter().copied().chain(bare).collect(),
            fallback: channel.fallback.clone(),
            permanent: channel.connection.is_kept(),
            max: channel.associations_max.max(1),
            grow_at: channel.grow_at.max(1),
            keep: channel.associations_keep,
        }
    };
    let of_peer =
        |peer: &Peer| peer.channels().map(|(id, c)| rules(peer, id, c)).collect::<Vec<_>>();
    config.peers.iter().flat_map(of_peer).collect()
}

/// What the engine needs of it.
pub fn engine_config(config: &NodeConfig) -> engine::Config {
    let routes = config.routes.iter().map(|route| engine::Route {
        prefix: route.prefix.clone(),
        to: match route.to {
            Target::Peer(peer) => engine::RouteTarget::Peer(peer),
            Target::Local => engine::RouteTarget::Local,
        },
    });
    engine::Config {
        mta: config.mta.clone(),
        domain: config.domain.clone(),
        routes: routes.collect(),
        mailboxes: config.mailboxes.iter().cloned().collect(),
        alternate_recipient: config.alternate_recipient.clone(),
        content_max: config
            .peers
            .iter()
            .filter_map(|peer| Some((peer.id(), peer.content_max?)))
            .collect(),
        accepted_max: config.limits.content,
        returned_max: config.limits.returned_content,
        forms: config.peers.iter().map(|peer| (peer.id(), peer.form)).collect(),
        expire: config.times.expire,
        classify: config.classify,
        clearances: config.clearances.clone(),
        epoch: config.epoch,
        salt: config.salt,
    }
}

/// Our name and password toward a peer, in an argument and in a result alike.
pub fn authentication(peer: &Peer) -> MtaAuthentication {
    let form = if peer.octet_credentials { PasswordForm::Octets } else { PasswordForm::Ia5 };
    MtaAuthentication {
        name: peer.own_name.clone(),
        credentials: Credentials::Simple(Password::new(peer.own_password.0.clone(), form)),
        security_context: None,
        unknown: Vec::new(),
    }
}

/// The stack of a P1 association with a peer, either role, with this checkpoint size.
pub fn association_config(
    peer: &Peer,
    channel: &Channel,
    dialogue: Dialogue,
    checkpoint_size: u32,
    reference: ConnectionReference,
) -> osi::api::Config {
    let rts = RtseParameters { dialogue, checkpoint_size, ..channel.rts.clone() };
    osi::api::Config {
        service: osi::api::Service::Rtse(rts),
        mode: peer.mode(),
        tpdu_size: peer.tpdu_size,
        setup_timeout: channel.setup_timeout,
        ..osi::profiles::p1(peer.local.clone(), peer.remote.clone(), reference)
    }
}

/// The stack of a P3 association, as its responder.
pub fn access_config(local: &Selectors, limits: &Limits) -> osi::api::Config {
    osi::api::Config {
        setup_timeout: limits.bind_timeout,
        ..osi::profiles::p3(local.clone(), Selectors::default(), ConnectionReference::default())
    }
}

/// The stack of a P7 association, as its responder.
pub fn store_config(local: &Selectors, limits: &Limits) -> osi::api::Config {
    osi::api::Config {
        setup_timeout: limits.bind_timeout,
        ..osi::profiles::p7_responder(local.clone())
    }
}
