//! An MTA on its host: what the daemon's driver does, in virtual time. Its users are bound to it by
//! pipes inside the host.

mod slots;
pub(crate) mod store;
pub(crate) mod user;

use crate::scenario::{ScenarioError, SimulatedSite};
use crate::sim::simulated_hosts::{Listening, Owner, ScheduledEvent, SimulatedHosts};
use crate::station::store::{Store, Unsound};
use crate::station::user::{SimulatedUser, UserEvent};
use base::AssociationId;
use bytes::Bytes;
use dscp::Dscp;
use node::config::ListenerService;
use node::{Input, ListenerId, Node, Output, Token};
use p1::names::ORName;
use router::Time;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use virtual_tcp::{ConnectionId, HostEvent, MAX_UNSENT};

/// What octets take through the pipe between a user and the MTA on the same host.
const PIPE: Duration = Duration::from_micros(50);
/// The duration of a password check.
const VERIFY: Duration = Duration::from_millis(1);
/// The least time until a node is woken again.
const TICK: Duration = Duration::from_micros(1);

/// A user's place.
struct UserSlot {
    user: SimulatedUser,
    association: Option<AssociationId>,
}

/// The origin of an incoming association: a peer's connection, or a user by his place.
#[derive(Clone, Copy, Debug)]
enum Arriving {
    Peer(ConnectionId),
    User(usize),
}

/// An event of a station about messages.
#[derive(Debug)]
pub(crate) enum StationEvent {
    /// An event of the node.
    Event(node::event::LogEvent),
    /// An event of a user that is not about the connection.
    UserEvent { user: usize, received_event: UserEvent },
}

/// Requested content that waits until the connection can take more.
#[derive(Debug)]
struct Wanted {
    token: Token,
    body: base::BodyId,
    offset: u64,
    len: usize,
}

/// A site that runs.
pub(crate) struct Station {
    place: usize,
    host: usize,
    address: IpAddr,
    node: Node,
    store: Store,
    disk: Duration,
    connects: BTreeMap<node::ChannelId, (SocketAddr, Dscp)>,
    p3: Option<ListenerId>,
    connections: BTreeMap<AssociationId, ConnectionId>,
    wanted: BTreeMap<AssociationId, VecDeque<Wanted>>,
    slots: Vec<UserSlot>,
    /// What connects at this moment, and its association.
    arriving: Option<Arriving>,
    admitted: Option<AssociationId>,
    events: VecDeque<(usize, StationEvent)>,
    due: Option<Time>,
    unsound: Option<Unsound>,
}

/// The MTA of a site. What it checks of itself after each input in a debug build is its own tests'
/// affair, and a quarter of the time here.
fn node(site: &SimulatedSite) -> Node {
    #[cfg_attr(not(debug_assertions), expect(unused_mut, reason = "changed in debug builds"))]
    let mut node = Node::new(site.config.clone());
    #[cfg(debug_assertions)]
    node.leave_unchecked();
    node
}

impl Station {
    /// A site that was checked, on this host.
    pub(crate) fn new(
        place: usize,
        site: &SimulatedSite,
        names: &[ORName],
        host: usize,
        disk: Duration,
    ) -> Station {
        let marks = |id: &node::ChannelId| {
            site.config.channel(*id).map_or(Dscp::CS0, |(_, channel)| channel.dscp)
        };
        let p3 = site.config.listeners.iter().find_map(|listener| match listener.service {
            ListenerService::P3 { .. } => Some(listener.id),
            ListenerService::P1 { .. } | ListenerService::P7 { .. } => None,
        });
        let slots = site.users.iter().zip(names).map(|(slot, name)| UserSlot {
            user: SimulatedUser::new(name.clone(), Bytes::from_static(b"secret"), slot.delivery),
            association: None,
        });
        Station {
            place,
            host,
            address: site.address,
            node: node(site),
            store: Store::default(),
            disk,
            connects: site.connects.iter().map(|(id, to)| (*id, (*to, marks(id)))).collect(),
            p3,
            connections: BTreeMap::new(),
            wanted: BTreeMap::new(),
            slots: slots.collect(),
            arriving: None,
            admitted: None,
            events: VecDeque::new(),
            due: None,
            unsound: None,
        }
    }

    /// Listens, starts the node, and lets the users bind.
    pub(crate) fn start(&mut self, simulated: &mut SimulatedHosts, site: &SimulatedSite) {
        for (listener, port) in &site.listens {
            let channel = site.config.listener(*listener).and_then(|l| match l.service {
                ListenerService::P1 { peer, channel } => {
                    site.config.channel(node::ChannelId { peer, index: channel })
                }
                ListenerService::P3 { .. } | ListenerService::P7 { .. } => None,
            });
            let Some((_, channel)) = channel else { continue };
            let listening = Listening::Site { site: self.place, listener: *listener };
            simulated.listening.insert((self.host, *port), listening);
            if let Some(host) = simulated.host(self.host) {
                host.listen(*port, channel.dscp);
            }
        }
        self.feed(simulated, Input::Started);
        for user in 0..self.slots.len() {
            simulated.later(Duration::ZERO, ScheduledEvent::Bind { site: self.place, user });
        }
    }

    /// When the node or a user wants to be woken.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// The next event; `None` once nothing is left.
    pub(crate) fn poll_event(&mut self) -> Option<(usize, StationEvent)> {
        self.events.pop_front()
    }

    /// Whether its node asked for what makes no sense.
    ///
    /// # Errors
    /// It did.
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        match &self.unsound {
            None => Ok(()),
            Some(what) => Err(ScenarioError::Broken { site: self.place, what: what.to_string() }),
        }
    }

    /// How much of the messages that it transfers now the next MTAs have confirmed, by identifier.
    pub(crate) fn transferred(&self, simulated: &SimulatedHosts) -> BTreeMap<String, u64> {
        let status = self.node.status(simulated.clock());
        let channels = status.peers.into_iter().flat_map(|peer| peer.channels);
        let associations = channels.flat_map(|channel| channel.associations);
        let sends = associations.filter_map(|one| Some((one.message?, one.bytes_confirmed?)));
        sends.collect()
    }

    /// Its deadline has passed.
    pub(crate) fn tick(&mut self, simulated: &mut SimulatedHosts) {
        let now = simulated.clock().mono;
        for place in 0..self.slots.len() {
            let slot = self.slots.get_mut(place);
            if let Some(slot) = slot.filter(|slot| slot.user.deadline().is_some_and(|at| at <= now))
            {
                slot.user.tick(now);
                self.drain_user(simulated, place);
            }
        }
        if self.node.deadline().is_some_and(|at| at <= now) {
            self.feed(simulated, Input::Tick);
        } else {
            self.set_due(simulated);
        }
    }

    fn set_due(&mut self, simulated: &SimulatedHosts) {
        let users = self.slots.iter().filter_map(|slot| slot.user.deadline());
        let next = users.chain(self.node.deadline()).min();
        self.due = next.map(|at| Time(at.0.saturating_mul(1_000)).max(simulated.now + TICK));
    }

    /// Hands the node an input and does what it wants.
    pub(crate) fn feed(&mut self, simulated: &mut SimulatedHosts, input: Input) {
        self.node.handle(simulated.clock(), input);
        self.drain(simulated);
    }

    fn drain(&mut self, simulated: &mut SimulatedHosts) {
        while let Some(output) = self.node.poll() {
            if let Err(unsound) = self.perform(simulated, output) {
                self.unsound.get_or_insert(unsound);
            }
        }
        self.set_due(simulated);
    }

    /// The disk has made a commit.
    pub(crate) fn commit(
        &mut self,
        simulated: &mut SimulatedHosts,
        token: Token,
        batch: engine::journal::Batch,
    ) {
        if let Err(unsound) = self.store.apply(batch) {
            self.unsound.get_or_insert(unsound);
        }
        self.feed(simulated, Input::Committed { token, result: Ok(()) });
    }

    fn answer(&self, simulated: &mut SimulatedHosts, delay: Duration, input: Input) {
        simulated.later(delay, ScheduledEvent::Answer { site: self.place, input });
    }

    fn perform(&mut self, simulated: &mut SimulatedHosts, output: Output) -> Result<(), Unsound> {
        let site = self.place;
        match output {
            Output::Connect { association, channel } => {
                self.connect(simulated, association, channel);
            }
            Output::Admitted { connection: _, association } => self.admit(simulated, association),
            Output::Write { association, bytes } => self.write(simulated, association, bytes),
            Output::Measure { association } => self.measure(simulated, association),
            Output::Close { association } => self.close(simulated, association),
            Output::Drop { association } => self.drop_now(simulated, association),
            Output::SpoolOpen { spool } => self.store.open(spool)?,
            Output::SpoolAppend { spool, bytes, .. } => self.store.append(spool, &bytes)?,
            Output::SpoolNote { spool, note, .. } => self.store.note(spool, note)?,
            Output::SpoolSync { spool, token, .. } => {
                let result = Ok(self.store.sync(spool)?);
                self.answer(simulated, self.disk, Input::Synced { spool, token, result });
            }
            Output::SpoolDiscard { spool } => {
                // One that a commit used up meanwhile is fine.
                let _ = self.store.discard(spool);
            }
            Output::Commit { token, batch, .. } => {
                simulated.later(self.disk, ScheduledEvent::Commit { site, token, batch });
            }
            Output::Load { token, precedence, id } => {
                let record = self.store.entries.get(&(precedence, id)).cloned();
                self.answer(simulated, Duration::ZERO, Input::Loaded { token, result: Ok(record) });
            }
            Output::LookUp { token, keys, .. } => {
                let found = self.store.look_up(&keys, simulated.clock().utc);
                self.answer(
                    simulated,
                    Duration::ZERO,
                    Input::LookedUp { token, result: Ok(found) },
                );
            }
            Output::ForgetSeen { token, before, most } => {
                let forget = vec![engine::journal::Op::ForgetSeen { before, most }];
                self.store.apply(forget)?;
                let result = Ok(self.store.has_expired_keys(before));
                self.answer(simulated, self.disk, Input::Forgot { token, result });
            }
            Output::ReadContent { token, association, body, offset, len } => {
                let wanted = Wanted { token, body, offset, len };
                self.wanted.entry(association).or_default().push_back(wanted);
                self.give_content(simulated, association)?;
            }
            Output::ReadFront { token, body, offset, len, .. } => {
                let result = Ok(self.store.read(body, offset, len)?);
                self.answer(simulated, Duration::ZERO, Input::Content { token, result });
            }
            Output::ReadMailbox { token, read, .. } => {
                let found = node::mailbox::machine::answer(&self.store, &read);
                self.answer(simulated, Duration::ZERO, Input::MailboxRead { token, found });
            }
            Output::ChangePassword { token, mailbox, .. } => {
                let changed = Input::PasswordChanged { token, mailbox, result: Ok(()) };
                self.answer(simulated, VERIFY, changed);
            }
            Output::Verify { token, .. } => {
                self.answer(simulated, VERIFY, Input::Verified { token, right: true });
            }
            Output::Event(event) => self.events.push_back((site, StationEvent::Event(*event))),
            Output::Operated { .. }
            | Output::Purged { .. }
            | Output::ListsChanged { .. }
            | Output::ChannelConnected { .. }
            | Output::ChannelOrdered { .. }
            | Output::ShardLeft { .. }
            | Output::Stopped => {}
        }
        Ok(())
    }

    /// Answers what content was asked for, while the connection can take it.
    fn give_content(
        &mut self,
        simulated: &mut SimulatedHosts,
        association: AssociationId,
    ) -> Result<(), Unsound> {
        if let Some(id) = self.connections.get(&association).copied() {
            let now = simulated.now;
            let Some(host) = simulated.host(self.host) else { return Ok(()) };
            if host.waiting(id) >= MAX_UNSENT {
                host.want_room(now, id, MAX_UNSENT);
                return Ok(());
            }
        }
        for Wanted { token, body, offset, len } in
            self.wanted.remove(&association).unwrap_or_default()
        {
            let result = Ok(self.store.read(body, offset, len)?);
            self.answer(simulated, Duration::ZERO, Input::Content { token, result });
        }
        Ok(())
    }

    fn connect(
        &mut self,
        simulated: &mut SimulatedHosts,
        association: AssociationId,
        channel: node::ChannelId,
    ) {
        let Some((remote, dscp)) = self.connects.get(&channel).copied() else {
            let error = "no address to connect to".to_owned();
            return self.answer(simulated, PIPE, Input::ConnectFailed { association, error });
        };
        let (now, address) = (simulated.now, self.address);
        let Some(host) = simulated.host(self.host) else { return };
        let id = host.connect(now, address, remote, dscp);
        self.own(simulated, association, id);
    }

    fn own(
        &mut self,
        simulated: &mut SimulatedHosts,
        association: AssociationId,
        id: ConnectionId,
    ) {
        self.connections.insert(association, id);
        simulated.owners.insert((self.host, id), Owner::Site { site: self.place, association });
    }

    /// The node gave what arrives an association, or none.
    fn admit(&mut self, simulated: &mut SimulatedHosts, admitted: Option<AssociationId>) {
        self.admitted = admitted;
        match (self.arriving.take(), admitted) {
            (Some(Arriving::Peer(id)), Some(association)) => self.own(simulated, association, id),
            (Some(Arriving::User(user)), Some(association)) => {
                if let Some(slot) = self.slots.get_mut(user) {
                    slot.association = Some(association);
                }
            }
            (_, None) | (None, _) => {}
        }
    }

    fn disown(
        &mut self,
        simulated: &mut SimulatedHosts,
        association: AssociationId,
    ) -> Option<ConnectionId> {
        self.wanted.remove(&association);
        let id = self.connections.remove(&association)?;
        simulated.owners.remove(&(self.host, id));
        Some(id)
    }

    fn write(&mut self, simulated: &mut SimulatedHosts, association: AssociationId, bytes: Bytes) {
        let (site, now) = (self.place, simulated.now);
        match self.connections.get(&association) {
            Some(id) => {
                if let Some(host) = simulated.host(self.host) {
                    host.write(now, *id, bytes);
                }
            }
            None => simulated.later(PIPE, ScheduledEvent::ToUser { site, association, bytes }),
        }
    }

    /// Reports how many octets the other end's TCP has acknowledged.
    fn measure(&mut self, simulated: &mut SimulatedHosts, association: AssociationId) {
        let Some(id) = self.connections.get(&association).copied() else { return };
        let octets = simulated.host(self.host).and_then(|host| host.taken(id));
        if let Some(octets) = octets {
            self.answer(simulated, Duration::ZERO, Input::Taken { association, octets });
        }
    }

    fn close(&mut self, simulated: &mut SimulatedHosts, association: AssociationId) {
        let (site, now) = (self.place, simulated.now);
        match self.connections.get(&association) {
            Some(id) => {
                if let Some(host) = simulated.host(self.host) {
                    host.close(now, *id);
                }
            }
            None => simulated.later(PIPE, ScheduledEvent::Unplugged { site, association }),
        }
    }

    fn drop_now(&mut self, simulated: &mut SimulatedHosts, association: AssociationId) {
        let now = simulated.now;
        match self.disown(simulated, association) {
            Some(id) => {
                if let Some(host) = simulated.host(self.host) {
                    host.drop_now(now, id);
                }
            }
            None => self.lose_user(simulated, association),
        }
    }

    /// Something happened to a connection of the node.
    pub(crate) fn connection(
        &mut self,
        simulated: &mut SimulatedHosts,
        association: AssociationId,
        event: HostEvent,
    ) {
        match event {
            HostEvent::Connected { seen, .. } => {
                self.feed(simulated, Input::Connected { association });
                self.mark_seen(simulated, association, seen);
            }
            HostEvent::Failed { error, .. } => {
                self.disown(simulated, association);
                self.feed(simulated, Input::ConnectFailed { association, error });
            }
            HostEvent::Bytes { bytes, .. } => {
                self.feed(simulated, Input::Bytes { association, bytes });
            }
            HostEvent::Room { .. } => {
                if let Err(unsound) = self.give_content(simulated, association) {
                    self.unsound.get_or_insert(unsound);
                }
            }
            HostEvent::Closed { error, .. } => {
                self.disown(simulated, association);
                self.feed(simulated, Input::Closed { association, error });
            }
            HostEvent::Accepted { .. } => {} // has no association yet
        }
    }

    /// A peer connected.
    pub(crate) fn accepted(
        &mut self,
        simulated: &mut SimulatedHosts,
        id: ConnectionId,
        listener: ListenerId,
        remote: IpAddr,
        seen: Option<Dscp>,
    ) {
        self.arriving = Some(Arriving::Peer(id));
        self.feed(simulated, Input::Accepted { connection: id.0, listener, remote });
        match self.admitted.take() {
            Some(association) => self.mark_seen(simulated, association, seen),
            None => {
                let now = simulated.now;
                if let Some(host) = simulated.host(self.host) {
                    host.drop_now(now, id);
                }
            }
        }
    }

    fn mark_seen(
        &mut self,
        simulated: &mut SimulatedHosts,
        association: AssociationId,
        seen: Option<Dscp>,
    ) {
        if let Some(dscp) = seen {
            self.feed(simulated, Input::MarkSeen { association, dscp });
        }
    }
}
