//! The connections of a bench: those that the node opens, and those of others to it.

use super::client::Client;
use super::script::Answer;
use super::{Bench, CONNECT_TIMEOUT};
use crate::edge;
use crate::wire::{Wire, WireArrival, WireMoment};
use base::{AssociationId, EntryId};
use bytes::Bytes;
use node::{Input, ListenerId, Output};
use std::time::Duration;

/// A connection of the node.
pub(super) struct Connection {
    /// Carries what the node writes.
    pub(super) wire: Box<dyn Wire>,
    /// Who is at the other end, if it is a stack.
    pub(super) client: Option<Client>,
    /// Content that is read once the wire has room.
    pub(super) wanted: Option<Output>,
    /// The entry in transfer.
    pub(super) entry: Option<EntryId>,
    /// The channel for which the node opened it.
    pub(super) channel: Option<u32>,
    /// The connection is closed.
    pub(super) gone: bool,
}

impl Bench {
    pub(super) fn open_connection(&mut self, association: AssociationId, channel: u32) {
        self.script.connects.push((self.now, channel));
        self.opening.insert(association);
        self.most_opening = self.most_opening.max(self.opening.len());
        match self.script.answer(channel) {
            Answer::Silence => {}
            Answer::Nothing => {
                self.silent.insert(association, self.now + CONNECT_TIMEOUT);
            }
            Answer::NoRoute => {
                let error = "no route".to_owned();
                self.inputs.push_back(Input::ConnectFailed { association, error });
            }
            Answer::ByHand => {
                self.join(association, None, Some(channel));
                self.script.by_hand.push_back(association);
                self.inputs.push_back(Input::Connected { association });
            }
            _ => {
                self.join(association, Some(Client::responder()), Some(channel));
                self.inputs.push_back(Input::Connected { association });
            }
        }
    }

    fn join(&mut self, id: AssociationId, client: Option<Client>, channel: Option<u32>) {
        let wire = (self.wire)();
        self.written.insert(id, Vec::new());
        let connection =
            Connection { wire, client, wanted: None, entry: None, channel, gone: false };
        self.connections.insert(id, connection);
    }

    /// A connection is closed; whether it was there. A client that connected stays, for the outcome
    /// of it.
    pub(super) fn forget(&mut self, id: AssociationId) -> bool {
        let failed = self.silent.remove(&id).is_some();
        match self.connections.get_mut(&id) {
            Some(connection) if connection.channel.is_none() => {
                !std::mem::replace(&mut connection.gone, true)
            }
            _ => self.connections.remove(&id).is_some_and(|c| !c.gone) || failed,
        }
    }

    pub(super) fn write(&mut self, id: AssociationId, bytes: Bytes) {
        let written = self.written.get_mut(&id).expect("a connection that was made");
        written.extend_from_slice(&bytes);
        if let Some(connection) = self.connections.get_mut(&id) {
            let (now, latency) = (self.now, Duration::ZERO);
            connection.wire.write(WireMoment { now, latency, rng: &mut self.rng }, bytes);
            self.busy.push_back(id);
        }
    }

    /// Hands the other end what has arrived by now.
    pub(super) fn arrive(&mut self, id: AssociationId) {
        while let Some(connection) = self.connections.get_mut(&id).filter(|c| !c.gone) {
            let Some(WireArrival::Octets(octets)) = connection.wire.poll(self.now) else { return };
            if let Some(client) = &mut connection.client {
                client.stack.handle(self.now, osi::api::Input::Bytes(&octets));
            }
            let wanted = connection.wanted.take_if(|_| !connection.wire.is_full());
            self.drain_client(id);
            if let Some(output) = wanted {
                self.carry_out(output);
            }
        }
    }

    /// Offers the node a connection to a listener; `None` if it has no socket left.
    pub fn admit(&mut self, listener: ListenerId, from: &str) -> Option<AssociationId> {
        let (now, remote) = (self.clock(), from.parse().expect("an address"));
        let (admitted, events) =
            edge::accept(&mut self.node, self.tape.as_mut(), now, listener, remote);
        events.into_iter().for_each(|event| self.carry_out(Output::Event(Box::new(event))));
        if let Some(id) = admitted {
            self.join(id, None, None);
        }
        self.drain();
        self.settle();
        admitted
    }

    /// Connects to a listener and sends nothing.
    pub fn connect(&mut self, listener: ListenerId, from: &str) -> AssociationId {
        self.admit(listener, from).expect("a socket")
    }

    /// Octets come on a connection; what the node answers.
    pub fn send(&mut self, association: AssociationId, octets: &[u8]) -> Vec<u8> {
        let before = self.written.get(&association).map_or(0, Vec::len);
        self.feed(Input::Bytes { association, bytes: Bytes::copy_from_slice(octets) });
        self.written.get(&association).map(|w| w[before..].to_vec()).unwrap_or_default()
    }

    /// Takes what the node wrote to a connection since this was called last.
    pub fn take_written(&mut self, association: AssociationId) -> Vec<u8> {
        self.written.get_mut(&association).map(std::mem::take).unwrap_or_default()
    }

    /// The other end closes a connection.
    pub fn close(&mut self, association: AssociationId) {
        self.forget(association);
        self.feed(Input::Closed { association, error: None });
    }

    /// Whether a connection is there.
    pub fn is_connected(&self, association: AssociationId) -> bool {
        self.connections.get(&association).is_some_and(|connection| !connection.gone)
    }

    /// The connections that the node opened and that are there, with their channels.
    pub fn opened(&self) -> impl Iterator<Item = (AssociationId, u32)> {
        let there = self.connections.iter().filter(|(_, connection)| !connection.gone);
        there.filter_map(|(id, connection)| Some((*id, connection.channel?)))
    }

    /// Every connection of a channel is lost.
    pub fn cut(&mut self, channel: u32) {
        let its = self.opened().filter(|(_, of)| *of == channel).map(|(id, _)| id);
        for association in its.collect::<Vec<_>>() {
            self.forget(association);
            let error = Some("connection reset".to_owned());
            self.feed(Input::Closed { association, error });
        }
    }
}
