//! A node of a site by hand: what its node is given, and when.

use base::{EntryId, Instant, PeerId, Precedence};
use bytes::Bytes;
use engine::NextHop;
use engine::journal::{Entry, QueueId};
use membership::rows::{Changes, ShardPage};
use membership::{Acquired, Answer, Call, Fence, NodeEpoch, NodeRow, Renewal, Settings, ShardRow};
use node_api::api::Input as NodeInput;
use node_api::api::shards::{PeerAssociations, ShardChange};
use node_api::ids::Token;
use ownership::{BatchEnd, EntryChange, Input, Output, Ownership};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(4);
const WEST: QueueId = QueueId(3);
const SECOND: Duration = Duration::from_secs(1);

struct Played {
    machine: Ownership,
    now: Instant,
}

/// What the node is given, in short, and what is to be read.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Shard(ShardChange),
    Recovered(u64),
    Tick,
    Verified(u64),
    Read(QueueId, Fence),
    Registered(String, Bytes),
    Value(String),
    Registrations,
    AfterBatches(QueueId, Fence),
    News(Vec<QueueId>),
    Announced(QueueId),
    BoundElsewhere(PeerId),
}

impl Played {
    fn new() -> Played {
        let now = Instant(10_000_000_000);
        let peers = [(WEST, "west".to_owned())].into();
        let settings = Settings { name: "n1".to_owned(), lease: LEASE, peers };
        let mut machine = Ownership::joined(settings, now, NodeEpoch(1));
        assert_eq!(machine.deadline(), None);
        machine.handle(now, Input::Begin);
        Played { machine, now }
    }

    fn after(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn give(&mut self, input: Input) -> Vec<Wanted> {
        self.machine.handle(self.now, input);
        self.wanted()
    }

    /// All that it wants; calls are answered as a store does where it is the only node.
    fn wanted(&mut self) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Call(call) => self.call(&call),
                Output::Node(NodeInput::Shard(change)) => wanted.push(Wanted::Shard(change)),
                Output::Node(NodeInput::Recovered { id, .. }) => {
                    wanted.push(Wanted::Recovered(id.0));
                }
                Output::Node(NodeInput::Tick) => wanted.push(Wanted::Tick),
                Output::Node(NodeInput::Verified { token, .. }) => {
                    wanted.push(Wanted::Verified(token.0));
                }
                Output::Node(NodeInput::RecoveredRegistration { mailbox, value }) => {
                    wanted.push(Wanted::Registered(mailbox, value));
                }
                Output::Read { shard, fence, value, .. } => {
                    wanted.extend(value.map(Wanted::Value));
                    wanted.push(Wanted::Read(shard, fence));
                }
                Output::ReadRegistrations(Some(name)) => wanted.push(Wanted::Value(name)),
                Output::ReadRegistrations(None) => wanted.push(Wanted::Registrations),
                Output::AfterBatches(shard, fence) => {
                    wanted.push(Wanted::AfterBatches(shard, fence));
                }
                Output::LookForNews(places) => {
                    wanted.push(Wanted::News(places.iter().map(|(shard, _)| *shard).collect()));
                }
                Output::Announce(shard) => wanted.push(Wanted::Announced(shard)),
                Output::Node(NodeInput::PeerBoundElsewhere(peer)) => {
                    wanted.push(Wanted::BoundElsewhere(peer));
                }
                Output::Noted(_)
                | Output::Drained
                | Output::Node(_)
                | Output::ReadValue(_)
                | Output::ReadUsers => {}
            }
        }
        wanted
    }

    fn call(&mut self, call: &Call) {
        let node = NodeRow {
            epoch: self.machine.membership().epoch().unwrap_or_default(),
            name: "n1".to_owned(),
            lease_left: LEASE,
            draining: false,
        };
        let input = match call {
            Call::Look => Input::Ended(Answer::Looked { nodes: vec![node], shards: Vec::new() }),
            Call::Acquire { .. } => {
                let fence = Fence(self.now.0 / 1_000_000);
                Input::Ended(Answer::Acquired(Acquired::Ours(fence)))
            }
            Call::Renew { .. } => return,
            Call::Join => Input::OfLease(Answer::Joined(NodeEpoch(2))),
            _ => Input::Ended(Answer::Done),
        };
        self.machine.handle(self.now, input);
    }
}

fn west() -> NextHop {
    NextHop::Peer(PeerId(3))
}

fn page(ids: &[u64]) -> ShardPage {
    let entry =
        |id: &u64| Entry { precedence: Precedence::Flash, id: EntryId(*id), record: Bytes::new() };
    ShardPage { entries: ids.iter().map(entry).collect(), ..ShardPage::default() }
}

fn page_of(shard: QueueId, fence: Fence, ids: &[u64]) -> Input {
    Input::Page { shard, fence, value: None, page: Some(page(ids)) }
}

#[test]
fn the_node_begins_with_nothing_and_gets_a_shard_with_its_entries() {
    let mut played = Played::new();
    let fence = Fence(10_000);
    let gained = [
        Wanted::Shard(ShardChange::Several),
        Wanted::Shard(ShardChange::Lease(true)),
        Wanted::Shard(ShardChange::Gained(west())),
        Wanted::Read(WEST, fence),
    ];
    assert_eq!(played.wanted(), gained);
    let entries = [Wanted::Recovered(1), Wanted::Recovered(2), Wanted::Tick];
    assert_eq!(played.give(page_of(WEST, fence, &[1, 2])), entries);
    // Its own: it knows it already.
    played.give(Input::Committing(Token(7), vec![EntryChange::Put(WEST, EntryId(3))]));
    played.give(Input::Committed(Token(7), BatchEnd::Durable));
    let changes = Changes { shards: vec![WEST], ..Changes::default() };
    assert_eq!(played.give(Input::Changed(changes)), [Wanted::Read(WEST, fence)]);
    let entries = [Wanted::Recovered(4), Wanted::Tick];
    assert_eq!(played.give(page_of(WEST, fence, &[2, 3, 4])), entries);
}

/// The node gains the shard while its own batch is not answered: the batch was made before it was owned, or before the
/// node knew.
fn gained_during_a_batch(is_owned: bool) -> (Played, Fence) {
    let mut played = Played::new();
    let made = || Input::Committing(Token(7), vec![EntryChange::Put(WEST, EntryId(3))]);
    if !is_owned {
        played.machine.handle(played.now, made());
    }
    while let Some(output) = played.machine.poll() {
        let Output::Call(call) = output else { continue };
        played.call(&call);
        if is_owned && matches!(call, Call::Acquire { .. }) {
            played.machine.handle(played.now, made());
        }
    }
    (played, Fence(10_000))
}

/// Its commit does not queue it: the owner of before may have sent it meanwhile.
#[test]
fn what_was_put_before_a_shard_was_gained_comes_with_a_page() {
    let (mut played, fence) = gained_during_a_batch(true);
    let entries = [Wanted::Recovered(3), Wanted::Tick];
    assert_eq!(played.give(page_of(WEST, fence, &[3])), entries, "durable, and not answered yet");
    // Once more: it may have come after the page.
    let answered = played.give(Input::Committed(Token(7), BatchEnd::Durable));
    assert_eq!(answered, [Wanted::Read(WEST, fence)]);
    assert_eq!(played.give(page_of(WEST, fence, &[3])), []);
    // What is put from now on comes with its commit.
    played.give(Input::Committing(Token(8), vec![EntryChange::Put(WEST, EntryId(4))]));
    played.give(Input::Changed(Changes { shards: vec![WEST], ..Changes::default() }));
    assert_eq!(played.give(page_of(WEST, fence, &[3, 4])), []);
    assert_eq!(played.give(Input::Committed(Token(8), BatchEnd::Durable)), []);
}

/// It became durable after the page was read, and nobody notifies a node of its own commits.
#[test]
fn what_was_put_before_a_shard_was_gained_is_read_after_its_commit() {
    for is_owned in [false, true] {
        let (mut played, fence) = gained_during_a_batch(is_owned);
        assert_eq!(played.give(page_of(WEST, fence, &[])), []);
        let answered = played.give(Input::Committed(Token(7), BatchEnd::Durable));
        assert_eq!(answered, [Wanted::Read(WEST, fence)]);
        let entries = [Wanted::Recovered(3), Wanted::Tick];
        assert_eq!(played.give(page_of(WEST, fence, &[3])), entries);
    }
}

/// A process that was stopped for longer than its lease: what has come meanwhile is not acted on.
#[test]
fn a_lease_that_is_over_is_noticed_before_a_page_is_taken() {
    let mut played = Played::new();
    played.wanted();
    played.after(LEASE);
    let lost = [Wanted::Shard(ShardChange::Lease(false)), Wanted::Shard(ShardChange::Lost(west()))];
    assert_eq!(played.give(page_of(WEST, Fence(10_000), &[1])), lost);
}

/// The shard was another node's in between, which may have sent what the page has.
#[test]
fn a_page_of_an_earlier_ownership_is_not_taken() {
    let mut played = Played::new();
    played.wanted();
    played.after(LEASE);
    let again = played.give(Input::OfLease(Answer::Renewed(Renewal::Dead)));
    let fence = Fence(10_004);
    assert_eq!(again.last(), Some(&Wanted::Read(WEST, fence)), "{again:?}");
    assert_eq!(played.give(page_of(WEST, Fence(10_000), &[1])), []);
    let entries = [Wanted::Recovered(2), Wanted::Tick];
    assert_eq!(played.give(page_of(WEST, fence, &[2])), entries);
}

#[test]
fn a_shard_is_left_once_the_batches_before_have_ended() {
    let mut played = Played::new();
    played.wanted();
    let fence = Fence(10_000);
    let left = played.give(Input::ShardLeft { shard: west(), stays: false });
    assert_eq!(left, [Wanted::AfterBatches(WEST, fence)]);
    played.give(Input::BatchesEnded(WEST, fence));
    assert_eq!(played.give(page_of(WEST, fence, &[1])), []);
}

#[test]
fn a_user_waits_for_his_mailbox_for_five_seconds_at_most() {
    let mut played = Played::new();
    played.wanted();
    let address = "/c=it/admd=net/s=ops";
    let mailbox = NextHop::Mailbox(address.to_owned());
    let shards = vec![ShardRow {
        shard: mailbox.queue(),
        name: address.to_owned(),
        owner: Some((NodeEpoch(9), Fence(1))),
        since: Duration::ZERO,
        asked_by: None,
        waits: None,
    }];
    played.machine.handle(played.now, Input::User { token: Token(5), mailbox: address.to_owned() });
    while let Some(output) = played.machine.poll() {
        if let Output::Call(Call::Look) = output {
            let looked = Answer::Looked { nodes: Vec::new(), shards: shards.clone() };
            played.machine.handle(played.now, Input::Ended(looked));
        }
    }
    for _ in 0..4 {
        played.after(Duration::from_secs(1));
        let wanted = played.give(Input::OfLease(Answer::Renewed(Renewal::Renewed)));
        assert!(!wanted.contains(&Wanted::Verified(5)), "{wanted:?}");
    }
    played.after(Duration::from_secs(1));
    let deadline = played.machine.deadline();
    assert!(deadline.is_some_and(|deadline| deadline <= played.now));
    assert!(played.give(Input::Tick).contains(&Wanted::Verified(5)));
}

/// The node concluded it and has forgotten it: if another owner did not, it is still there.
#[test]
fn what_a_batch_did_not_remove_is_read_again() {
    let mut played = Played::new();
    played.wanted();
    let fence = Fence(10_000);
    played.give(page_of(WEST, fence, &[1, 2]));
    played.give(Input::Committing(Token(7), vec![EntryChange::Delete(EntryId(1))]));
    let wanted = played.give(Input::Committed(Token(7), BatchEnd::NotDone));
    assert_eq!(wanted, [Wanted::Read(WEST, fence)]);
    let entries = [Wanted::Recovered(1), Wanted::Tick];
    assert_eq!(played.give(page_of(WEST, fence, &[1, 2])), entries);
}

/// The first attempt failed, and the page was read before the second one was durable.
#[test]
fn what_the_second_attempt_removed_does_not_come_back_with_a_page() {
    let mut played = Played::new();
    played.wanted();
    let fence = Fence(10_000);
    let delete = vec![EntryChange::Delete(EntryId(1))];
    played.give(page_of(WEST, fence, &[1, 2]));
    played.give(Input::Committing(Token(7), delete.clone()));
    let wanted = played.give(Input::Committed(Token(7), BatchEnd::NotDone));
    assert_eq!(wanted, [Wanted::Read(WEST, fence)]);
    played.give(Input::Committing(Token(8), delete));
    assert_eq!(played.give(Input::Committed(Token(8), BatchEnd::Durable)), []);
    assert_eq!(played.give(page_of(WEST, fence, &[1, 2])), []);
}

/// One question for all shards: a node has thousands of mailboxes, and most have nothing new.
#[test]
fn a_look_without_a_notice_reads_the_shards_with_news_alone() {
    let mut played = Played::new();
    played.wanted();
    let fence = Fence(10_000);
    let look = |played: &mut Played| played.give(Input::Changed(Changes::default()));
    let mut shards = Vec::new();
    for n in 0..4 {
        let mailbox = format!("/c=it/s={n}");
        played.give(Input::User { token: Token(n), mailbox: mailbox.clone() });
        shards.push(NextHop::Mailbox(mailbox).queue());
    }
    assert_eq!(look(&mut played), [], "first pages are being read");
    shards.iter().for_each(|shard| _ = played.give(page_of(*shard, fence, &[])));
    shards.sort();
    assert_eq!(look(&mut played), [Wanted::News(shards.clone())]);
    assert_eq!(look(&mut played), [], "it is asked already");
    let one = shards[1];
    assert_eq!(played.give(Input::News(Some(vec![one]))), [Wanted::Read(one, fence)]);
    played.give(page_of(one, fence, &[1]));
    assert_eq!(look(&mut played), [Wanted::News(shards.clone())]);
    // Nothing is known: the next look asks again. A page that could not be read is read anyway.
    assert_eq!(played.give(Input::News(None)), []);
    played.give(Input::Changed(Changes { shards: vec![one], ..Changes::default() }));
    played.give(Input::Page { shard: one, fence, value: None, page: None });
    shards.remove(1);
    assert_eq!(look(&mut played), [Wanted::Read(one, fence), Wanted::News(shards)]);
}

/// An entry may be put into another shard, as by an operator who reroutes it.
#[test]
fn what_was_removed_comes_back_if_another_node_puts_it_there() {
    let mut played = Played::new();
    played.wanted();
    let fence = Fence(10_000);
    played.give(page_of(WEST, fence, &[1, 2]));
    for (token, change) in
        [(7, EntryChange::Delete(EntryId(1))), (8, EntryChange::Delete(EntryId(9)))]
    {
        played.give(Input::Committing(Token(token), vec![change]));
        assert_eq!(played.give(Input::Committed(Token(token), BatchEnd::Durable)), []);
    }
    played.give(Input::Changed(Changes { shards: vec![WEST], ..Changes::default() }));
    let entries = [Wanted::Recovered(1), Wanted::Tick];
    assert_eq!(played.give(page_of(WEST, fence, &[1, 2])), entries);
}

#[test]
fn a_value_that_could_not_be_read_is_read_again() {
    let mut played = Played::new();
    played.wanted();
    let reads = |played: &mut Played, values: Vec<String>| {
        played.machine.handle(played.now, Input::Changed(Changes { values, ..Changes::default() }));
        let outputs = std::iter::from_fn(|| played.machine.poll());
        outputs.filter(|output| matches!(output, Output::ReadValue(_))).count()
    };
    assert_eq!(reads(&mut played, vec!["lists".to_owned()]), 1);
    assert_eq!(reads(&mut played, Vec::new()), 0);
    let name = node_api::api::lists::LISTS;
    played.machine.handle(played.now, Input::ValueUnread(name));
    assert_eq!(reads(&mut played, Vec::new()), 1);
}

/// Nobody notifies the node of it again.
#[test]
fn users_and_registrations_that_could_not_be_read_are_read_again() {
    let mut played = Played::new();
    played.wanted();
    let mut look = |input: Option<Input>| {
        input.into_iter().for_each(|input| played.machine.handle(played.now, input));
        played.machine.handle(played.now, Input::Changed(Changes::default()));
        let outputs = std::iter::from_fn(|| played.machine.poll());
        let reads = outputs.filter_map(|output| match output {
            Output::ReadUsers => Some("users".to_owned()),
            Output::ReadRegistrations(name) => Some(name.unwrap_or_else(|| "all".to_owned())),
            _ => None,
        });
        reads.collect::<Vec<String>>()
    };
    assert_eq!(look(None), [] as [&str; 0]);
    assert_eq!(look(Some(Input::UsersUnread)), ["users"]);
    assert_eq!(look(None), [] as [&str; 0]);
    let name = "registered//c=it/s=ops".to_owned();
    assert_eq!(look(Some(Input::RegistrationsUnread(name.clone()))), [name]);
    let all = engine::registered::REGISTERED.to_owned();
    assert_eq!(look(Some(Input::RegistrationsUnread(all))), ["all"]);
    assert_eq!(look(None), [] as [&str; 0]);
}

/// A user registers at one node, and then binds to another one: what he registered holds there before he is served.
#[test]
fn what_a_user_registered_elsewhere_is_known_before_he_is_served() {
    let mut played = Played::new();
    played.wanted();
    let address = "/c=it/admd=net/s=ops";
    let shard = NextHop::Mailbox(address.to_owned()).queue();
    let fence = Fence(10_000);
    let bind = |token| Input::User { token: Token(token), mailbox: address.to_owned() };
    let gained = Wanted::Shard(ShardChange::Gained(NextHop::Mailbox(address.to_owned())));
    let registered = Wanted::Value(format!("registered/{address}"));
    let wanted = played.give(bind(5));
    let expected = [gained, registered, Wanted::Read(shard, fence)];
    assert!(wanted.ends_with(&expected), "{wanted:?}");
    // It is owned, and not known yet.
    assert_eq!(played.give(bind(6)), []);
    let value = Bytes::from_static(b"registered");
    let is_known = Wanted::Registered(address.to_owned(), value.clone());
    let page = Input::Page { shard, fence, value: Some(value), page: Some(page(&[1])) };
    let served =
        [is_known, Wanted::Recovered(1), Wanted::Tick, Wanted::Verified(5), Wanted::Verified(6)];
    assert_eq!(played.give(page), served);
    assert_eq!(played.give(bind(7)), [Wanted::Verified(7)]);
    // A later look reads the entries alone.
    let changes = Changes { shards: vec![shard], ..Changes::default() };
    assert_eq!(played.give(Input::Changed(changes)), [Wanted::Read(shard, fence)]);
}

/// Any node takes what comes for a user, and looks at what he registered.
#[test]
fn every_node_takes_what_users_register() {
    let mut played = Played::new();
    played.wanted();
    let name = "registered//c=it/s=ops";
    let changes = Changes { values: vec![name.to_owned()], ..Changes::default() };
    assert_eq!(played.give(Input::Changed(changes)), [Wanted::Value(name.to_owned())]);
    let value = Bytes::from_static(b"registered");
    let taken = Wanted::Registered("/c=it/s=ops".to_owned(), value.clone());
    assert_eq!(played.give(Input::Registered(name.to_owned(), value)), [taken]);
    let all = Changes { all: true, ..Changes::default() };
    assert!(played.give(Input::Changed(all)).contains(&Wanted::Registrations));
}

/// A commit was refused because of one of them: the node makes its change again on what they are now.
#[test]
fn values_of_the_site_that_are_not_there_are_empty_ones() {
    let held = Bytes::from_static(b"\0\0\0\0\0\0\0\x07");
    let read = |name: &str| match name {
        "held" => Ok::<_, String>(Some(held.clone())),
        _ => Ok(None),
    };
    let values = ownership::site_values(read).unwrap();
    let is_held = |v: &NodeInput| matches!(v, NodeInput::RecoveredHolds(value) if *value == held);
    assert_eq!(values.iter().filter(|value| is_held(value)).count(), 1);
    let is_none = |v: &NodeInput| matches!(v, NodeInput::RecoveredLists(value) | NodeInput::RecoveredMinimize(value) if value.is_empty());
    assert_eq!(values.iter().filter(|value| is_none(value)).count(), 2);
    let numbers = values.iter().any(|v| matches!(v, NodeInput::RecoveredMailboxes(_)));
    assert!(!numbers, "an empty value has no numbers of mailboxes");
    assert!(ownership::site_values(|_| Err::<_, String>("away".to_owned())).is_err());
}

/// The associations of the node, where this peer has called it.
fn called(peer: PeerId, opened: Instant) -> Input {
    let open = [peer].into();
    Input::Associations(PeerAssociations {
        called: [(peer, opened)].into(),
        open,
        ..PeerAssociations::default()
    })
}

#[test]
fn a_peer_that_calls_is_announced_unless_it_is_the_node_s_own() {
    let mut played = Played::new();
    played.wanted();
    let (east, now) = (PeerId(4), played.now);
    let is_announced = |wanted: &[Wanted]| wanted.contains(&Wanted::Announced(QueueId(4)));
    assert_eq!(played.give(called(PeerId(3), now)), [], "this node has west");
    assert!(is_announced(&played.give(called(east, now))));
    played.after(SECOND * 2);
    assert!(!is_announced(&played.give(called(east, now))), "it is the same association");
    // It hangs up and calls again.
    assert!(!is_announced(&played.give(Input::Associations(PeerAssociations::default()))));
    assert!(is_announced(&played.give(called(east, played.now))));
}

#[test]
fn a_peer_that_calls_a_thousand_times_a_second_is_announced_once_a_second() {
    let mut played = Played::new();
    played.wanted();
    let mut announced = 0;
    for _ in 0..3_500 {
        played.after(Duration::from_millis(1));
        let wanted = played.give(called(PeerId(4), played.now));
        announced += wanted.iter().filter(|one| matches!(one, Wanted::Announced(_))).count();
    }
    assert_eq!(announced, 4);
    // The last bind is not forgotten.
    let due = played.machine.deadline().expect("one is due");
    assert!(due.since(played.now) <= SECOND);
    played.now = due;
    let wanted = played.give(Input::Tick);
    assert!(wanted.contains(&Wanted::Announced(QueueId(4))), "{wanted:?}");
}

#[test]
fn the_owner_of_a_peer_learns_that_it_has_called_another_node() {
    let mut played = Played::new();
    played.wanted();
    let bound = |shard, node| {
        let bound = vec![(shard, NodeEpoch(node))];
        Input::Changed(Changes { bound, ..Changes::default() })
    };
    assert_eq!(played.give(bound(WEST, 2)), [Wanted::BoundElsewhere(PeerId(3))]);
    assert_eq!(played.give(bound(QueueId(4), 2)), [], "another node has it");
    assert_eq!(played.give(bound(WEST, 1)), [], "it was this node that announced it");
}
