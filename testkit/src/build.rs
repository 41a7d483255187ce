//! Builders of configurations, envelopes and contents.

use base::{Precedence, Utc};
use bytes::Bytes;
use node::config::{
    Channel, Connection, HoldPolicy, Limits, Listener, ListenerService, NodeConfig, Peer, Reopen,
};
use node::{ListenerId, Secret};
use osi::api::{Dialogue, RtseParameters, Selectors};
use p1::flags::{Priority, ReportRequest};
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use std::time::Duration;

/// Octets of a content: another one for each number up to 255 and each length.
pub fn content(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|n| (n.wrapping_mul(31) ^ number.wrapping_mul(7)) as u8).collect()
}

/// The number of a content that [`content`] has made, up to 255.
///
/// # Panics
/// The content is empty, or not whole.
pub fn number_of(octets: &[u8]) -> usize {
    let first = octets.first().expect("a content has a number if it has octets");
    let number = (0..256).find(|n: &usize| n.wrapping_mul(7) as u8 == *first).unwrap_or_default();
    assert!(*octets == content(number, octets.len())[..], "the content {number} is not whole");
    number
}

/// An O/R name.
pub fn name(address: &str) -> ORName {
    ORName::from(address.parse::<ORAddress>().expect("an address"))
}

/// The canonical text of an address.
pub fn canonical(address: &str) -> String {
    engine::canonical(&address.parse().expect("an address"))
}

/// A channel for these precedences: four checkpoints of 4 KiB, opened by traffic, one association.
pub fn channel(index: u32, name: &str, precedences: &[Precedence]) -> Channel {
    Channel {
        index,
        name: name.to_owned(),
        precedences: precedences.to_vec(),
        fallback: Vec::new(),
        dscp: dscp::Dscp::CS3,
        connection: Connection::OnDemand { idle_close: Duration::from_secs(60) },
        reopen: Reopen::default(),
        associations_max: 1,
        grow_at: 1,
        associations_keep: Duration::from_secs(10),
        minimize: None,
        rts: rts(),
        checkpoint_adapts: false,
        setup_timeout: Duration::from_secs(10),
    }
}

/// The same, kept open by the node, in turns.
pub fn permanent(index: u32, precedences: &[Precedence]) -> Channel {
    let mut channel = channel(index, &format!("channel-{index}"), precedences);
    channel.connection = Connection::Permanent;
    channel.rts.dialogue = Dialogue::TwoWayAlternate;
    channel.dscp = dscp::Dscp::CS0;
    channel
}

fn rts() -> RtseParameters {
    RtseParameters {
        checkpoint_size: 4,
        window: 3,
        dialogue: Dialogue::Monologue,
        indefinite_lengths: false,
        transfer_timeout: Duration::from_secs(30),
        longest_pause: Duration::ZERO,
    }
}

/// A peer: MTA `mta` to the MTA `own`, which has this password.
pub fn peer(name: &str, mta: &str, own: &str, password: &str, channels: Vec<Channel>) -> Peer {
    Peer {
        name: name.to_owned(),
        mta: MtaName(mta.to_owned()),
        own_name: MtaName(own.to_owned()),
        own_password: Secret(Bytes::from(password.to_owned())),
        octet_credentials: false,
        from: Vec::new(),
        addresses: Vec::new(),
        form: p1::Form::default(),
        x410: None,
        local: Selectors::default(),
        remote: Selectors::default(),
        tpdu_size: None,
        resume: node::config::Resume::Initiator,
        release: node::config::Release::Release,
        content_max: None,
        message_aborts: node::config::MESSAGE_ABORTS,
        channels,
    }
}

/// A node of this MTA name in this PRMD, with these peers, without listeners, routes or mailboxes.
pub fn node(mta: &str, prmd: &str, peers: Vec<Peer>) -> NodeConfig {
    NodeConfig {
        mta: MtaName(mta.to_owned()),
        domain: GlobalDomainId::new("XX", "NATO", Some(prmd)),
        peers,
        listeners: Vec::new(),
        routes: Vec::new(),
        mailboxes: Vec::new(),
        alternate_recipient: None,
        store: node::config::StoreConfig::default(),
        classify: engine::classify::Policy::default(),
        clearances: Default::default(),
        hold: HoldPolicy::default(),
        times: Default::default(),
        minimize: None,
        limits: Limits::default(),
        seed: 7,
        salt: 0,
        epoch: 1,
    }
}

/// A listener for users.
pub fn p3_listener(id: ListenerId) -> Listener {
    Listener { id, service: ListenerService::P3 { local: Selectors::default() } }
}

/// A listener for users of the message store.
pub fn p7_listener(id: ListenerId) -> Listener {
    Listener { id, service: ListenerService::P7 { local: Selectors::default() } }
}

/// A listener for a channel of a peer.
pub fn p1_listener(id: ListenerId, peer: &str, channel: u32) -> Listener {
    let peer = base::PeerId::of_name(peer);
    Listener { id, service: ListenerService::P1 { peer, channel } }
}

/// A submission of a user.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Address of the originator.
    pub from: String,
    /// Addresses of the recipients.
    pub to: Vec<String>,
    /// Its priority.
    pub priority: Priority,
    /// Which reports the originator wants.
    pub report: ReportRequest,
    /// deferred-delivery-time.
    pub deferred: Option<Utc>,
    /// content-identifier.
    pub identifier: Option<String>,
}

impl Submission {
    /// From one address to others, of normal priority, with the reports that X.411 has by default.
    pub fn new(from: &str, to: impl IntoIterator<Item = String>) -> Submission {
        Submission {
            from: from.to_owned(),
            to: to.into_iter().collect(),
            priority: Priority::Normal,
            report: PerRecipientSubmissionFields::default().report_request,
            deferred: None,
            identifier: None,
        }
    }

    /// Its envelope, of an IPM.
    pub fn envelope(&self) -> MessageSubmissionEnvelope {
        let recipients = self.to.iter().map(|to| PerRecipientSubmissionFields {
            recipient: name(to),
            report_request: self.report,
            ..Default::default()
        });
        MessageSubmissionEnvelope {
            originator: name(&self.from),
            original_eits: None,
            content_type: p1::ContentType::P22,
            content_identifier: self.identifier.clone(),
            priority: self.priority,
            indicators: Default::default(),
            deferred_delivery_time: self.deferred.map(p1::time::Time::from),
            recipients: recipients.collect(),
            extensions: Default::default(),
            unknown: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_shows_its_number() {
        for number in 0..256 {
            assert_eq!(number_of(&content(number, 1 + number)), number);
        }
    }

    #[test]
    #[should_panic(expected = "not whole")]
    fn a_content_with_another_octet_is_not_whole() {
        let mut octets = content(9, 100);
        octets[50] ^= 1;
        number_of(&octets);
    }
}
