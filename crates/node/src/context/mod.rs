//! What the machines of a node share.

pub(crate) mod associations;
pub(crate) mod clock;
pub(crate) mod committing;
pub(crate) mod level;
pub(crate) mod looks;
pub(crate) mod sending;

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::association::kept_sends::KeptSends;
use crate::association::recovery::Recovery;
use crate::association::table::AssociationTable;
use crate::commits::Commits;
use crate::commits::pending::PendingAnswer;
use crate::config::NodeConfig;
use crate::config::configured::Configured;
use crate::ids::Token;
use crate::log::draft::EventDraft;
use crate::log::outputs::Outputs;
use crate::queue::EntryQueue;
use base::AssociationId;
use base::rng::Rng;
use engine::Engine;
use engine::space::DiskRoom;
use node_api::issued::Issued;
use node_api::lifecycle::Lifecycle;
use node_api::shared_orders::{ClosedChannels, FloorOrders};
use node_api::steps::WorkSteps;
use osi::api as stack;

/// What the machines share. Each field has one owner type, and changes only by its methods.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: Configured,
    pub(crate) engine: Engine,
    pub(crate) queue: EntryQueue,
    pub(crate) associations: AssociationTable,
    /// Transfers in either direction that were cut off and wait for the recovery of their
    /// association.
    pub(crate) recovery: Recovery,
    /// Where our transfers may be resumed, as the store has it.
    pub(crate) kept_sends: KeptSends,
    pub(crate) commits: Commits,
    /// Channels that operators disabled, as the store has it.
    pub(crate) closed: ClosedChannels,
    pub(crate) floor_orders: FloorOrders,
    /// Long work of which a part is done.
    pub(crate) steps: WorkSteps,
    /// Room on the disk.
    pub(crate) disk: DiskRoom,
    pub(crate) life: Lifecycle,
    pub(crate) issued: Issued,
    pub(crate) outputs: Outputs,
    pub(crate) rng: Rng,
}

impl Context {
    pub(crate) fn new(config: NodeConfig) -> Context {
        Context {
            engine: Engine::new(crate::config::engine_config(&config)),
            queue: EntryQueue::new(crate::config::channel_rules(&config), config.hold),
            associations: AssociationTable::default(),
            recovery: Recovery::default(),
            kept_sends: KeptSends::default(),
            commits: Commits::default(),
            closed: ClosedChannels::default(),
            floor_orders: FloorOrders::default(),
            steps: WorkSteps::default(),
            disk: DiskRoom::default(),
            life: Lifecycle::default(),
            issued: Issued::default(),
            outputs: Outputs::default(),
            rng: Rng::new(config.seed),
            config: Configured::new(config),
        }
    }

    /// Whether deliveries to this mailbox of the queue go into the message store.
    pub(crate) fn is_stored(&self, mailbox: u32) -> bool {
        let name = self.queue.mailbox_name(mailbox);
        name.is_some_and(|name| self.config.store.users.contains(name))
    }

    /// Whether this queue of the mailboxes is a distribution list's, or was.
    pub(crate) fn is_list(&self, mailbox: u32) -> bool {
        self.queue.mailbox_name(mailbox).is_some_and(|name| self.engine.expands(name))
    }

    pub(crate) fn output(&mut self, output: Output) {
        self.outputs.push(output);
    }

    /// A token for a question to the edge, whose answer continues with `pending`.
    pub(crate) fn token(&mut self, pending: PendingAnswer) -> Token {
        let token = self.issued.next_token();
        self.commits.expect(token, pending);
        token
    }

    pub(crate) fn event(
        &mut self,
        level: LogLevel,
        kind: Kind,
        detail: impl Into<String>,
    ) -> EventDraft<'_> {
        self.outputs.event(level, kind, detail)
    }

    /// Queues a request for an association's stack.
    pub(crate) fn request(&mut self, id: AssociationId, request: stack::Request) {
        self.associations.request(id, request);
    }

    /// How much was given out so far, and how many associations have requests for their stacks.
    #[cfg(debug_assertions)]
    pub(crate) fn progress(&self) -> (usize, (u64, u64), usize) {
        (self.outputs.waiting(), self.issued.last(), self.associations.touched_count())
    }
}
