//! The machine.

use crate::batches::{BatchEnd, Batches, EntryChange};
use crate::callers::Callers;
use crate::reading::Reading;
use crate::users::Users;
use base::{EntryId, Instant, PeerId};
use bytes::Bytes;
use engine::NextHop;
use engine::journal::{Entry, QueueId};
use engine::registered::{REGISTERED, Registration};
use membership::rows::{Changes, Place, ShardPage};
use membership::{Answer, Call, Fence, Membership, NodeEpoch, Settings};
use node_api::api::Input as NodeInput;
use node_api::api::shards::{PeerAssociations, ShardChange};
use node_api::api::{channel_order, lists, operator, site_orders};
use node_api::ids::Token;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// How long a user waits for his mailbox to come from another node.
const MAILBOX_WAIT: Duration = Duration::from_secs(5);

/// An input of the node with a value.
type Taking = fn(Bytes) -> NodeInput;

/// Values that all nodes of a site share, and what the node takes them with.
const SITE_VALUES: [(&str, Taking); 6] = [
    (operator::HELD, NodeInput::RecoveredHolds),
    (channel_order::DISABLED, NodeInput::RecoveredDisabled),
    (lists::LISTS, NodeInput::RecoveredLists),
    (site_orders::MINIMIZED, NodeInput::RecoveredMinimize),
    (site_orders::ACCEPTED, NodeInput::RecoveredAcceptance),
    (mailbox::machine::NAMES, NodeInput::RecoveredMailboxes),
];

/// All values that the nodes share, as `read` finds them, for the node: another node has changed one that it was to
/// replace. One that is not there is an empty one.
///
/// # Errors
/// One cannot be read.
pub fn site_values<E>(
    read: impl Fn(&str) -> Result<Option<Bytes>, E>,
) -> Result<Vec<NodeInput>, E> {
    let mut inputs = Vec::new();
    for (name, input) in SITE_VALUES {
        match read(name)? {
            // Numbers of mailboxes cannot be read from an empty value.
            None if name == mailbox::machine::NAMES => {}
            value => inputs.push(input(value.unwrap_or_default())),
        }
    }
    Ok(inputs)
}

/// What happens to the machine.
#[derive(Debug)]
pub enum Input {
    /// The node knows the values of the site: it begins as one of several. Comes once, before all others but
    /// [`Input::Tick`].
    Begin,
    /// [`Ownership::deadline`] has come.
    Tick,
    /// The call about the lease ended.
    OfLease(Answer),
    /// The other call ended.
    Ended(Answer),
    /// Something changed in the store, perhaps. Nothing named: it is the look from time to time.
    Changed(Changes),
    /// Entries of a shard were read, as [`Output::Read`] asked with this fence, or could not be.
    Page {
        /// The shard.
        shard: QueueId,
        /// Of the ownership for which they were asked.
        fence: Fence,
        /// The value that was asked for with them, if it is there.
        value: Option<Bytes>,
        /// The entries; `None` if they, or the value, could not be read.
        page: Option<ShardPage>,
    },
    /// What users have registered was read, as [`Output::ReadRegistrations`] asked: the name of a value, and the value.
    Registered(String, Bytes),
    /// The shards that have news, as [`Output::LookForNews`] asked; `None` if that is not known.
    News(Option<Vec<QueueId>>),
    /// A value of the site was read, as [`Output::ReadValue`] asked.
    Value(&'static str, Bytes),
    /// It could not be read.
    ValueUnread(&'static str),
    /// What users have registered could not be read: the name that was asked for, or [`REGISTERED`] for all.
    RegistrationsUnread(String),
    /// The users could not be read, as [`Output::ReadUsers`] asked.
    UsersUnread,
    /// A batch of the node is handed over for its commit.
    Committing(Token, Vec<EntryChange>),
    /// That batch has ended. Comes before the node takes the same.
    Committed(Token, BatchEnd),
    /// The node has left a shard or keeps it: `Output::ShardLeft` of the node.
    ShardLeft {
        /// The shard.
        shard: NextHop,
        /// The node keeps it for now.
        stays: bool,
    },
    /// The batches have ended that [`Output::AfterBatches`] waits for.
    BatchesEnded(QueueId, Fence),
    /// A user has the right password: he is served once his mailbox is here.
    User {
        /// Of the node's question.
        token: Token,
        /// His address.
        mailbox: String,
    },
    /// The peers of another configuration, by shard.
    Peers(BTreeMap<QueueId, String>),
    /// The node is to give all its shards away.
    Drain,
    /// The node is to take shards again.
    Undrain,
    /// The peers with open associations at the node: to be given after each step that has changed them.
    Associations(PeerAssociations),
}

/// What the machine wants done.
#[derive(Debug)]
pub enum Output {
    /// A call of the store: at most one about the lease and one other are in progress.
    Call(Call),
    /// Entries of a shard are to be read; answered by [`Input::Page`].
    Read {
        /// The shard.
        shard: QueueId,
        /// Of this ownership: the answer has it.
        fence: Fence,
        /// Those after this place.
        after: Place,
        /// The name of a value that is to be read before them: what the user of the mailbox has registered.
        value: Option<String>,
    },
    /// Of these shards those are to be found that have entries after the place; answered by [`Input::News`]. One is asked
    /// for at a time.
    LookForNews(Vec<(QueueId, Place)>),
    /// What users have registered is to be read: the value of this name, or all whose names begin with [`REGISTERED`].
    /// Each that is there comes as an [`Input::Registered`].
    ReadRegistrations(Option<String>),
    /// A value of the site is to be read; answered by [`Input::Value`] if it is there, by [`Input::ValueUnread`] if
    /// that is not known.
    ReadValue(&'static str),
    /// The users of the site are to be read again. What they are now is the node's affair, and not answered here.
    ReadUsers,
    /// The other nodes are to know that the peer of this shard has called this node. Not answered.
    Announce(QueueId),
    /// Answered by [`Input::BatchesEnded`] once all batches that were handed over before have ended.
    AfterBatches(QueueId, Fence),
    /// An input for the node.
    Node(NodeInput),
    /// The node owns nothing, because it gave all away as [`Input::Drain`] asked.
    Drained,
    /// Something that an operator may want to know.
    Noted(Notice),
}

/// What an operator may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The process is a node of the site, with this number.
    Joined(NodeEpoch),
    /// It owns a shard of this name.
    Gained(String, Fence),
    /// It owns this one no longer.
    Lost(NextHop),
    /// A shard has no name, so nobody can be served with it.
    Nameless(QueueId),
    /// Its lease has ended.
    LeaseEnded,
}

/// A shard that the node owns.
#[derive(Debug)]
struct Shard {
    hop: NextHop,
    fence: Fence,
    reading: Reading,
    /// Its entries were read once, and what the user of the mailbox has registered.
    is_known: bool,
}

/// What a node of a site owns.
#[derive(Debug)]
pub struct Ownership {
    membership: Membership,
    has_begun: bool,
    shards: BTreeMap<QueueId, Shard>,
    /// The shards of the entries that the node has.
    entries: BTreeMap<EntryId, QueueId>,
    batches: Batches,
    /// [`Output::LookForNews`] is not answered.
    is_looking: bool,
    users: Users,
    callers: Callers,
    /// Values that could not be read.
    unread: BTreeSet<&'static str>,
    /// Registrations that could not be read, and whether the users could not be.
    unregistered: BTreeSet<String>,
    users_unread: bool,
    outputs: VecDeque<Output>,
}

/// The next hop of a shard. Mailboxes have their addresses for names.
fn hop(shard: QueueId, name: &str) -> Option<NextHop> {
    if shard.is_of_mailbox() {
        return (!name.is_empty()).then(|| NextHop::Mailbox(name.to_owned()));
    }
    u32::try_from(shard.0).ok().map(|peer| NextHop::Peer(PeerId(peer)))
}

impl Ownership {
    /// A node that has joined with this number, by a call that was made at `asked` or later.
    #[must_use]
    pub fn joined(settings: Settings, asked: Instant, epoch: NodeEpoch) -> Ownership {
        let mut membership = Membership::new(settings);
        membership.handle(asked, membership::Input::Tick);
        while membership.poll().is_some() {}
        membership.handle(asked, membership::Input::OfLease(Answer::Joined(epoch)));
        Ownership {
            membership,
            has_begun: false,
            shards: BTreeMap::new(),
            entries: BTreeMap::new(),
            batches: Batches::default(),
            is_looking: false,
            users: Users::default(),
            callers: Callers::default(),
            unread: BTreeSet::new(),
            unregistered: BTreeSet::new(),
            users_unread: false,
            outputs: VecDeque::new(),
        }
    }

    /// When the next [`Input::Tick`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let deadlines =
            [self.users.deadline(), self.callers.deadline(), self.membership.deadline()];
        deadlines.into_iter().flatten().min().filter(|_| self.has_begun)
    }

    /// What is wanted next. Unlike other machines it may take an input before this gives `None`: what that causes
    /// comes behind all that is wanted already.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The lease, and what this node and the others own as far as it knows.
    #[must_use]
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Takes an input. A lease that is over is given up before anything else.
    pub fn handle(&mut self, now: Instant, input: Input) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.tick(now);
        }
        match input {
            Input::Begin => {
                self.has_begun = true;
                self.node(NodeInput::Shard(ShardChange::Several));
                self.member(now, membership::Input::Tick);
            }
            Input::Tick => {}
            Input::OfLease(answer) => self.member(now, membership::Input::OfLease(answer)),
            Input::Ended(answer) => self.member(now, membership::Input::Ended(answer)),
            Input::Changed(changes) => self.changed(now, &changes),
            Input::Page { shard, fence, value, page } => {
                self.page(now, (shard, fence), value, page);
            }
            Input::News(found) => {
                self.is_looking = false;
                found.unwrap_or_default().into_iter().for_each(|shard| self.read(shard));
            }
            Input::Registered(name, value) => {
                if let Some(mailbox) = name.strip_prefix(REGISTERED) {
                    self.registered(mailbox.to_owned(), value);
                }
            }
            Input::Value(name, value) => {
                let known = SITE_VALUES.iter().find(|(known, _)| *known == name);
                if let Some((_, input)) = known {
                    self.node(input(value));
                }
            }
            Input::Committing(token, changes) => self.committing(token, changes),
            Input::ValueUnread(name) => _ = self.unread.insert(name),
            Input::RegistrationsUnread(name) => _ = self.unregistered.insert(name),
            Input::UsersUnread => self.users_unread = true,
            Input::Committed(token, end) => self.committed(now, token, end),
            Input::ShardLeft { shard, stays } => self.left(now, shard.queue(), stays),
            Input::BatchesEnded(shard, fence) => {
                // Otherwise it is another ownership by now.
                if self.membership.fence(shard) == Some(fence) {
                    self.forget(shard);
                    self.member(now, membership::Input::Left(shard));
                }
            }
            Input::User { token, mailbox } => self.user(now, token, mailbox),
            Input::Peers(peers) => self.member(now, membership::Input::Peers(peers)),
            Input::Drain => self.member(now, membership::Input::Drain),
            Input::Undrain => self.member(now, membership::Input::Undrain),
            Input::Associations(found) => self.with_peers(now, &found),
        }
    }

    fn with_peers(&mut self, now: Instant, found: &PeerAssociations) {
        let membership = &self.membership;
        self.callers.changed(now, found, |shard| !membership.owns(shard));
        let shards = |peers: &BTreeSet<PeerId>| {
            peers.iter().map(|peer| NextHop::Peer(*peer).queue()).collect()
        };
        let (open, held) = (shards(&found.open), shards(&found.held));
        self.member(now, membership::Input::Associations { open, held });
        self.announce(now);
    }

    /// Other nodes wait less long for a peer that has called this one.
    fn announce(&mut self, now: Instant) {
        self.outputs.extend(self.callers.take_due(now).into_iter().map(Output::Announce));
    }

    /// Peers have called other nodes.
    fn bound_elsewhere(&mut self, now: Instant, bound: &[(QueueId, NodeEpoch)]) {
        let own = self.membership.epoch();
        for (shard, _) in bound.iter().filter(|(_, node)| Some(*node) != own) {
            self.member(now, membership::Input::CalledElsewhere(*shard));
            if let Some(Shard { hop: NextHop::Peer(peer), .. }) = self.shards.get(shard) {
                self.node(NodeInput::PeerBoundElsewhere(*peer));
            }
        }
    }

    fn tick(&mut self, now: Instant) {
        let overdue = self.users.take_overdue(now);
        self.serve(now, overdue);
        self.announce(now);
        self.member(now, membership::Input::Tick);
    }

    fn node(&mut self, input: NodeInput) {
        self.outputs.push_back(Output::Node(input));
    }

    fn member(&mut self, now: Instant, input: membership::Input) {
        self.membership.handle(now, input);
        while let Some(output) = self.membership.poll() {
            self.member_wants(now, output);
        }
    }

    fn member_wants(&mut self, now: Instant, output: membership::Output) {
        use membership::Output as Wants;
        match output {
            Wants::Call(call) => self.outputs.push_back(Output::Call(call)),
            Wants::Joined(epoch) => self.noted(Notice::Joined(epoch)),
            Wants::Gained(shard, name, fence) => self.gained(shard, name, fence),
            Wants::Lost(shard) => {
                if let Some(Shard { hop, .. }) = self.forget(shard) {
                    self.noted(Notice::Lost(hop.clone()));
                    self.node(NodeInput::Shard(ShardChange::Lost(hop)));
                }
            }
            Wants::Leave(shard) => match self.shards.get(&shard) {
                Some(Shard { hop, .. }) => {
                    self.node(NodeInput::Shard(ShardChange::Leave(hop.clone())));
                }
                None => self.membership.handle(now, membership::Input::Left(shard)),
            },
            Wants::Drained => self.outputs.push_back(Output::Drained),
            Wants::Lease(holds) => {
                if !holds {
                    self.noted(Notice::LeaseEnded);
                }
                self.node(NodeInput::Shard(ShardChange::Lease(holds)));
            }
        }
    }

    fn noted(&mut self, notice: Notice) {
        self.outputs.push_back(Output::Noted(notice));
    }

    fn gained(&mut self, shard: QueueId, name: String, fence: Fence) {
        let Some(hop) = hop(shard, &name) else { return self.noted(Notice::Nameless(shard)) };
        self.noted(Notice::Gained(name, fence));
        self.node(NodeInput::Shard(ShardChange::Gained(hop.clone())));
        self.forget(shard);
        self.shards
            .insert(shard, Shard { hop, fence, reading: Reading::default(), is_known: false });
        self.read(shard);
    }

    /// A shard is the node's no longer.
    fn forget(&mut self, shard: QueueId) -> Option<Shard> {
        let forgotten = self.shards.remove(&shard)?;
        for id in forgotten.reading.known() {
            self.entries.remove(&id);
        }
        Some(forgotten)
    }

    /// The node has an entry of a shard. It may have been in another one before.
    fn has(&mut self, id: EntryId, shard: QueueId) {
        let before = self.entries.insert(id, shard).filter(|before| *before != shard);
        if let Some(owned) = before.and_then(|before| self.shards.get_mut(&before)) {
            owned.reading.delete(id);
        }
    }

    fn read(&mut self, shard: QueueId) {
        if let Some(Shard { hop, fence, reading, is_known }) = self.shards.get_mut(&shard)
            && let Some(after) = reading.changed()
        {
            let value = match hop {
                NextHop::Mailbox(address) if !*is_known => Some(Registration::name(address)),
                _ => None,
            };
            self.outputs.push_back(Output::Read { shard, fence: *fence, after, value });
        }
    }

    fn registered(&mut self, mailbox: String, value: Bytes) {
        self.node(NodeInput::RecoveredRegistration { mailbox, value });
    }

    fn changed(&mut self, now: Instant, changes: &Changes) {
        let is_named = !changes.shards.is_empty()
            || !changes.values.is_empty()
            || !changes.bound.is_empty()
            || changes.users;
        self.bound_elsewhere(now, &changes.bound);
        changes.shards.iter().for_each(|shard| self.read(*shard));
        if changes.all || !is_named {
            self.look_at_shards(changes.all);
            self.read_unread(changes.all);
        }
        for (name, _) in SITE_VALUES {
            let is_unread = self.unread.remove(name);
            if is_unread || changes.all || changes.values.iter().any(|changed| changed == name) {
                self.outputs.push_back(Output::ReadValue(name));
            }
        }
        if changes.all {
            self.outputs.push_back(Output::ReadRegistrations(None));
        }
        let registered = changes.values.iter().filter(|name| name.starts_with(REGISTERED));
        let registered = registered.filter(|_| !changes.all).cloned();
        self.outputs.extend(registered.map(|name| Output::ReadRegistrations(Some(name))));
        if changes.users || changes.all {
            self.outputs.push_back(Output::ReadUsers);
        }
        if changes.members || changes.all {
            self.member(now, membership::Input::Changed);
        }
    }

    /// Looks at all shards: in one question, as most have nothing new. Notices may be `missed`.
    fn look_at_shards(&mut self, missed: bool) {
        let (mut idle, mut others) = (Vec::new(), Vec::new());
        for (shard, owned) in &self.shards {
            match owned.reading.idle() {
                Some(place) => idle.push((*shard, place)),
                None if missed || owned.reading.is_due() => others.push(*shard),
                // A page of it is being read: it is looked at the next time.
                None => {}
            }
        }
        others.into_iter().for_each(|shard| self.read(shard));
        if !idle.is_empty() && !std::mem::replace(&mut self.is_looking, true) {
            self.outputs.push_back(Output::LookForNews(idle));
        }
    }

    /// What could not be read is read again, unless all is.
    fn read_unread(&mut self, all: bool) {
        let names = std::mem::take(&mut self.unregistered);
        let users = std::mem::take(&mut self.users_unread);
        if all {
            return;
        }
        match names.contains(REGISTERED) {
            true => self.outputs.push_back(Output::ReadRegistrations(None)),
            false => {
                let reads = names.into_iter().map(|name| Output::ReadRegistrations(Some(name)));
                self.outputs.extend(reads);
            }
        }
        if users {
            self.outputs.push_back(Output::ReadUsers);
        }
    }

    fn page(
        &mut self,
        now: Instant,
        (shard, fence): (QueueId, Fence),
        value: Option<Bytes>,
        page: Option<ShardPage>,
    ) {
        // A page of an earlier ownership has what another owner has sent since.
        let owned = self.shards.get_mut(&shard).filter(|owned| owned.fence == fence);
        let Some(Shard { hop, reading, is_known, .. }) = owned else { return };
        let Some(page) = page else { return reading.failed() };
        *is_known = true;
        let (entries, more) = reading.page(page, &self.batches.puts(shard, fence));
        if let (NextHop::Mailbox(address), Some(value)) = (hop, value) {
            // Before what it decides on: the user may have registered it at another node.
            let mailbox = address.clone();
            self.registered(mailbox, value);
        }
        if more {
            self.read(shard);
        }
        let is_any = !entries.is_empty();
        for Entry { precedence, id, record } in entries {
            self.has(id, shard);
            self.node(NodeInput::Recovered { precedence, id, record });
        }
        if is_any {
            self.node(NodeInput::Tick);
        }
        // Who binds now gets what waits.
        let waiting = self.users.take_those_for(shard);
        self.serve(now, waiting);
    }

    fn committed(&mut self, now: Instant, token: Token, end: BatchEnd) {
        for (change, begun) in self.batches.end(token) {
            match change {
                EntryChange::Put(shard, id) => self.put(shard, id, begun, end),
                EntryChange::Delete(id) if end == BatchEnd::Durable => {
                    self.deleted(id);
                }
                // The node knows whether it removes it later. Else it takes it up again.
                EntryChange::Delete(id) => self.read_again(id),
            }
        }
        match end {
            BatchEnd::Durable | BatchEnd::NotDone => {}
            BatchEnd::NoLease => self.member(now, membership::Input::Refused),
            BatchEnd::Fenced => self.member(now, membership::Input::Changed),
        }
    }

    /// An entry is deleted durably. Where an earlier attempt failed, the node may have forgotten its shard: a page that is
    /// being read may have it.
    fn deleted(&mut self, id: EntryId) {
        match self.entries.remove(&id) {
            Some(shard) => {
                self.shards.get_mut(&shard).into_iter().for_each(|owned| owned.reading.delete(id));
            }
            None => self.shards.values_mut().for_each(|owned| owned.reading.delete(id)),
        }
    }

    /// A batch is handed over. A shard that the node does not know to have yet is not its own.
    fn committing(&mut self, token: Token, changes: Vec<EntryChange>) {
        let Ownership { batches, shards, outputs, .. } = self;
        let is_untold = |hop: &NextHop| {
            let gains = |output: &Output| match output {
                Output::Node(NodeInput::Shard(ShardChange::Gained(gained))) => gained == hop,
                _ => false,
            };
            outputs.iter().any(gains)
        };
        batches.begin(token, changes, |shard| {
            let owned = shards.get(&shard)?;
            (!is_untold(&owned.hop)).then_some(owned.fence)
        });
    }

    /// What a batch was to put into a shard is there, or not. What it put there before the node gained the shard is
    /// read, if it is there still: the owner of before may have sent it.
    fn put(&mut self, shard: QueueId, id: EntryId, begun: Option<Fence>, end: BatchEnd) {
        let Some(owned) = self.shards.get_mut(&shard) else { return };
        let is_same = begun == Some(owned.fence);
        let reads = match (is_same, end) {
            (true, BatchEnd::Durable) => {
                owned.reading.put(id);
                self.has(id, shard);
                false
            }
            (true, _) => owned.reading.not_put(id),
            (false, end) => end == BatchEnd::Durable,
        };
        if reads {
            self.read(shard);
        }
    }

    /// An entry that a batch was to remove is still there, perhaps: the node gets it once more.
    fn read_again(&mut self, id: EntryId) {
        let Some(shard) = self.entries.remove(&id) else { return };
        if self.shards.get_mut(&shard).is_some_and(|owned| owned.reading.forget(id)) {
            self.read(shard);
        }
    }

    /// The node has left a shard, but for batches that are being committed.
    fn left(&mut self, now: Instant, shard: QueueId, stays: bool) {
        if stays {
            return self.member(now, membership::Input::Stays(shard));
        }
        if let Some(fence) = self.membership.fence(shard) {
            self.outputs.push_back(Output::AfterBatches(shard, fence));
        }
    }

    fn user(&mut self, now: Instant, token: Token, mailbox: String) {
        let shard = NextHop::Mailbox(mailbox.clone()).queue();
        let is_ours = self.membership.owns(shard);
        if is_ours && self.shards.get(&shard).is_some_and(|owned| owned.is_known) {
            return self.node(NodeInput::Verified { token, right: true });
        }
        self.users.wait(token, shard, now + MAILBOX_WAIT);
        if !is_ours {
            self.member(now, membership::Input::Wanted(shard, mailbox));
        }
    }

    /// Serves users who waited. Those whose mailbox is elsewhere are refused by the node.
    fn serve(&mut self, now: Instant, users: Vec<(Token, QueueId)>) {
        for (token, shard) in users {
            if !self.users.wants(shard) {
                self.member(now, membership::Input::NotWanted(shard));
            }
            self.node(NodeInput::Verified { token, right: true });
        }
    }
}
