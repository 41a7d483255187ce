//! What differs between two configurations, and what each difference takes.
//!
//! The configurations are taken apart whole: a new field does not compile before somebody decided
//! here what a change of it takes. That table for operators is in `docs/operating.md`.

use crate::{Channel, Limits, ListenerService, NodeConfig, Peer, Times};
use base::PeerId;
use osi::api::RtseParameters;
use p1::extension::Form;
use scheduler::ChannelId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What a change of a configuration does, for those who asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Keys whose change takes a restart; where there is any, nothing at all is to be changed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub restart: Vec<String>,
    /// Keys of no peer that take effect at once.
    pub keys: Vec<String>,
    /// All peers, in the order of the configuration, then those removed.
    pub peers: Vec<PeerChange>,
}

/// The effect of a changed configuration on a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerChange {
    /// Its name.
    pub name: String,
    /// The effect.
    pub effect: Effect,
    /// Its keys that changed, those of its channels apart.
    pub keys: Vec<String>,
    /// All its channels, in the order of the configuration, then those removed.
    pub channels: Vec<ChannelChange>,
}

/// The effect of a changed configuration on a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelChange {
    /// Its name.
    pub name: String,
    /// The effect.
    pub effect: Effect,
    /// Its keys that changed.
    pub keys: Vec<String>,
}

/// The effect of a changed configuration on a peer or a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing of it changed.
    Kept,
    /// What changed holds at once; its associations stay.
    Changed,
    /// Its associations end after what they have in transfer, and new ones are opened.
    Reopened,
    /// It is new.
    Added,
    /// It is removed: its associations end, a transfer of ours at its next checkpoint.
    Removed,
}

impl Effect {
    /// snake_case name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Kept => "kept",
            Effect::Changed => "changed",
            Effect::Reopened => "reopened",
            Effect::Added => "added",
            Effect::Removed => "removed",
        }
    }
}

/// Keys that changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Their names.
    pub names: Vec<String>,
    /// Whether one of them takes new associations.
    pub reopens: bool,
}

impl Keys {
    /// Notes a key, if it changed, that takes effect at once.
    pub fn at_once(&mut self, key: &str, changed: bool) {
        if changed {
            self.names.push(key.to_owned());
        }
    }

    /// Notes a key, if it changed, that takes new associations.
    pub fn reopens(&mut self, key: &str, changed: bool) {
        self.at_once(key, changed);
        self.reopens |= changed;
    }

    fn and(mut self, more: Option<&Keys>) -> Keys {
        if let Some(more) = more {
            self.names.extend(more.names.iter().cloned());
            self.reopens |= more.reopens;
        }
        self
    }

    fn effect(&self) -> Effect {
        match (self.reopens, self.names.is_empty()) {
            (true, _) => Effect::Reopened,
            (false, false) => Effect::Changed,
            (false, true) => Effect::Kept,
        }
    }
}

/// What changed of that which only the edge has to do with: files, sockets, and the passwords that
/// peers present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeChanges {
    /// Keys whose change takes a restart.
    pub restart: Vec<String>,
    /// Keys of no peer that take effect at once.
    pub keys: Vec<String>,
    /// Keys of peers.
    pub peers: BTreeMap<PeerId, Keys>,
    /// Keys of channels.
    pub channels: BTreeMap<ChannelId, Keys>,
}

impl Changes {
    /// From the configuration that holds to another one. Mailboxes do not count, nor what the edge
    /// gives at a start: seed, epoch and sockets.
    pub fn between(old: &NodeConfig, new: &NodeConfig, edge: &EdgeChanges) -> Changes {
        let NodeConfig {
            mta,
            domain,
            peers: _,
            listeners: _,
            routes,
            mailboxes: _,
            alternate_recipient,
            classify,
            clearances,
            hold,
            times,
            store,
            minimize,
            limits,
            seed: _,
            epoch: _,
            salt: _,
        } = old;
        let mut restart = Keys::default();
        restart.at_once("mta.name", *mta != new.mta);
        restart.at_once("mta.country", domain.country != new.domain.country);
        restart.at_once("mta.admd", domain.admd != new.domain.admd);
        restart.at_once("mta.prmd", domain.prmd != new.domain.prmd);
        let mut keys = Keys::default();
        keys.at_once("route", *routes != new.routes);
        keys.at_once("mta.alternate_recipient", *alternate_recipient != new.alternate_recipient);
        keys.at_once("p3", users_listeners(old) != users_listeners(new));
        keys.at_once("p7", store_listeners(old) != store_listeners(new));
        let same_store = store.settings == new.store.settings && store.full == new.store.full;
        keys.at_once("p7", !same_store);
        let waiting =
            Times { clock: new.times.clock, ..*times } != new.times || *minimize != new.minimize;
        let precedence = *classify != new.classify || *hold != new.hold || waiting;
        keys.at_once("precedence", precedence);
        keys.at_once("clearance", clearances.users != new.clearances.users);
        let opened = clearances.open_contents != new.clearances.open_contents;
        keys.at_once("security.open_contents", opened);
        keys.at_once("clock", times.clock != new.times.clock);
        limit_keys(limits, &new.limits, &mut keys);
        let mut changes = Changes {
            restart: [restart.names, edge.restart.clone()].concat(),
            keys: [keys.names, edge.keys.clone()].concat(),
            peers: new.peers.iter().map(|peer| peer_change(old, new, peer, edge)).collect(),
        };
        let gone = old.peers.iter().filter(|peer| new.peer(peer.id()).is_none());
        changes.peers.extend(gone.map(|peer| {
            let channels =
                peer.channels.iter().map(|c| Keys::default().into_change(c, Effect::Removed));
            PeerChange {
                name: peer.name.clone(),
                effect: Effect::Removed,
                keys: Vec::new(),
                channels: channels.collect(),
            }
        }));
        changes
    }

    /// Whether anything differs.
    pub fn any(&self) -> bool {
        !self.restart.is_empty()
            || !self.keys.is_empty()
            || self.peers.iter().any(|peer| {
                peer.effect != Effect::Kept
                    || peer.channels.iter().any(|channel| channel.effect != Effect::Kept)
            })
    }
}

/// A line for each key, peer and channel.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.any() {
            return f.write_str("nothing has changed\n");
        }
        let mut lines: Vec<(String, Effect, String)> =
            self.keys.iter().map(|key| (key.clone(), Effect::Changed, String::new())).collect();
        for peer in &self.peers {
            lines.push((peer.name.clone(), peer.effect, peer.keys.join(", ")));
            lines.extend(peer.channels.iter().map(|channel| {
                let name = format!("{}/{}", peer.name, channel.name);
                (name, channel.effect, channel.keys.join(", "))
            }));
        }
        let width = lines.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        for (name, effect, keys) in lines {
            let line = format!("{name:width$}  {:8}  {keys}", effect.name());
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

impl Keys {
    fn into_change(self, channel: &Channel, effect: Effect) -> ChannelChange {
        ChannelChange { name: channel.name.clone(), effect, keys: self.names }
    }
}

fn peer_change(old: &NodeConfig, new: &NodeConfig, peer: &Peer, edge: &EdgeChanges) -> PeerChange {
    let before = old.peer(peer.id());
    let mut keys = before.map(|before| peer_keys(before, peer, edge)).unwrap_or_default();
    let cleared = |config: &NodeConfig| config.clearances.peers.get(&peer.id()).cloned();
    keys.at_once("clearance", before.is_some() && cleared(old) != cleared(new));
    let effect = if before.is_some() { keys.effect() } else { Effect::Added };
    let stays = peer.channels().map(|(id, channel)| match old.channel(id) {
        Some((_, before)) => {
            let own = channel_keys((old, before), (new, channel), id, edge);
            let effect = if keys.reopens { Effect::Reopened } else { own.effect() };
            own.into_change(channel, effect)
        }
        None => Keys::default().into_change(channel, Effect::Added),
    });
    let gone = before.into_iter().flat_map(Peer::channels);
    let gone = gone.filter(|(id, _)| new.channel(*id).is_none());
    let gone = gone.map(|(_, channel)| Keys::default().into_change(channel, Effect::Removed));
    let channels = stays.chain(gone).collect();
    PeerChange { name: peer.name.clone(), effect, keys: keys.names, channels }
}

/// What changed of a peer, its channels apart.
pub fn peer_keys(old: &Peer, new: &Peer, edge: &EdgeChanges) -> Keys {
    let Peer {
        name: _,
        mta,
        own_name,
        own_password,
        octet_credentials,
        from,
        addresses: _, // of the channels' `remote`
        form,
        x410,
        resume,
        local,
        release,
        remote,
        tpdu_size,
        content_max,
        message_aborts,
        channels: _,
    } = old;
    let mut keys = Keys::default();
    keys.reopens("mta_name", *mta != new.mta);
    keys.reopens("own_name", *own_name != new.own_name);
    keys.reopens("password", *own_password != new.own_password);
    keys.reopens("credentials", *octet_credentials != new.octet_credentials);
    keys.reopens("from", *from != new.from);
    keys.reopens("mode, application_protocol, byte_swapped", *x410 != new.x410);
    let Form { dialect, qualifier, explicit_defaults } = form;
    let edition = std::mem::discriminant(dialect) != std::mem::discriminant(&new.form.dialect);
    keys.at_once("extensions", edition);
    keys.at_once("common_name", *dialect != new.form.dialect && !edition);
    keys.at_once("qualifier", *qualifier != new.form.qualifier);
    keys.at_once("explicit_defaults", *explicit_defaults != new.form.explicit_defaults);
    keys.at_once("release", *release != new.release);
    keys.at_once("resume", *resume != new.resume);
    keys.reopens("own_tsel, own_ssel, own_psel", *local != new.local);
    keys.reopens("tsel, ssel, psel", *remote != new.remote);
    keys.reopens("tpdu_size", *tpdu_size != new.tpdu_size);
    keys.at_once("content_max", *content_max != new.content_max);
    keys.at_once("message_aborts", *message_aborts != new.message_aborts);
    keys.and(edge.peers.get(&old.id()))
}

/// What changed of a channel.
pub fn channel_keys(
    (old_config, old): (&NodeConfig, &Channel),
    (new_config, new): (&NodeConfig, &Channel),
    id: ChannelId,
    edge: &EdgeChanges,
) -> Keys {
    let Channel {
        index: _,
        name: _,
        precedences,
        fallback,
        dscp,
        connection,
        reopen,
        associations_max,
        grow_at,
        associations_keep,
        minimize,
        rts,
        checkpoint_adapts,
        setup_timeout,
    } = old;
    let RtseParameters {
        checkpoint_size,
        window,
        dialogue,
        indefinite_lengths,
        transfer_timeout,
        longest_pause,
    } = rts;
    let mut keys = Keys::default();
    keys.at_once("precedences", *precedences != new.precedences);
    keys.at_once("fallback", *fallback != new.fallback);
    keys.reopens("dscp", *dscp != new.dscp);
    keys.at_once("connection", *connection != new.connection);
    keys.at_once("reopen", *reopen != new.reopen);
    keys.at_once("associations.max", *associations_max != new.associations_max);
    keys.at_once("associations.grow_at", *grow_at != new.grow_at);
    keys.at_once("associations.keep", *associations_keep != new.associations_keep);
    keys.at_once("minimize", *minimize != new.minimize);
    let checkpoints = (*checkpoint_size, *checkpoint_adapts);
    let new_checkpoints = (new.rts.checkpoint_size, new.checkpoint_adapts);
    keys.reopens("rts.checkpoint", checkpoints != new_checkpoints);
    keys.reopens("rts.window", *window != new.rts.window);
    keys.reopens("rts.dialogue", *dialogue != new.rts.dialogue);
    keys.reopens("rts.indefinite", *indefinite_lengths != new.rts.indefinite_lengths);
    keys.reopens("timeouts.transfer", *transfer_timeout != new.rts.transfer_timeout);
    keys.reopens("precedence.pause_max", *longest_pause != new.rts.longest_pause);
    keys.reopens("timeouts.setup", *setup_timeout != new.setup_timeout);
    // What came by a listener that is gone ends; what the others brought, and ours, stays.
    keys.at_once("listen", listeners_of(old_config, id) != listeners_of(new_config, id));
    keys.and(edge.channels.get(&id))
}

fn listeners_of(config: &NodeConfig, id: ChannelId) -> BTreeSet<u32> {
    let its = |service: &ListenerService| match service {
        ListenerService::P1 { peer, channel } => id == ChannelId { peer: *peer, index: *channel },
        ListenerService::P3 { .. } | ListenerService::P7 { .. } => false,
    };
    config.listeners.iter().filter(|l| its(&l.service)).map(|l| l.id.0).collect()
}

fn users_listeners(config: &NodeConfig) -> Vec<(u32, &osi::api::Selectors)> {
    let of_users = config.listeners.iter().filter_map(|l| match &l.service {
        ListenerService::P3 { local } => Some((l.id.0, local)),
        ListenerService::P1 { .. } | ListenerService::P7 { .. } => None,
    });
    of_users.collect()
}

fn store_listeners(config: &NodeConfig) -> Vec<(u32, &osi::api::Selectors)> {
    let of_store = config.listeners.iter().filter_map(|l| match &l.service {
        ListenerService::P7 { local } => Some((l.id.0, local)),
        ListenerService::P1 { .. } | ListenerService::P3 { .. } => None,
    });
    of_store.collect()
}

fn limit_keys(old: &Limits, new: &Limits, keys: &mut Keys) {
    let Limits {
        envelope,
        content,
        returned_content,
        associations,
        associations_per_peer,
        associations_per_channel,
        associations_per_user,
        associations_per_address,
        half_open,
        half_open_per_address,
        bind_timeout,
        memory,
        memory_per_peer,
        failures,
        failure_refill,
        verifications,
        opening,
        sockets: _,
    } = old;
    let mut limit = |key: &str, changed| keys.at_once(&format!("limits.{key}"), changed);
    limit("envelope", *envelope != new.envelope);
    limit("content", *content != new.content);
    limit("returned_content", *returned_content != new.returned_content);
    limit("associations", *associations != new.associations);
    limit("associations_per_peer", *associations_per_peer != new.associations_per_peer);
    limit("associations_per_channel", *associations_per_channel != new.associations_per_channel);
    limit("associations_per_user", *associations_per_user != new.associations_per_user);
    limit("associations_per_address", *associations_per_address != new.associations_per_address);
    limit("half_open", *half_open != new.half_open);
    limit("half_open_per_address", *half_open_per_address != new.half_open_per_address);
    limit("bind_timeout", *bind_timeout != new.bind_timeout);
    limit("memory", *memory != new.memory);
    limit("memory_per_peer", *memory_per_peer != new.memory_per_peer);
    limit("failures", *failures != new.failures);
    limit("failure_refill", *failure_refill != new.failure_refill);
    limit("verifications", *verifications != new.verifications);
    limit("opening", *opening != new.opening);
}
