//! A site of several nodes over a model of the database that they share: whole nodes, their users and foreign MTAs in
//! virtual time, from one seed each. Nodes hang, are killed, drained and cut off; commits and calls come late, or their
//! answers are lost; clocks drift.
//!
//! ```text
//!  users ── Network ── node n1 ── Ownership ──┐ calls, pages, commits: late, lost, in doubt
//!             │        node n2 ── Ownership ──┼──────────────▶ Database
//!  foreign ───┘        node n3 ── Ownership ──┘
//! ```

mod check;
mod database;
mod draw;
mod holds;
mod lane;
mod member;
mod play;
mod store;

pub use draw::SiteWorld;

/// Faults that the play has to find: each leaves something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A commit is made whoever owns the shards of its entries.
    FenceNotChecked,
    /// A key that has to be absent is not looked up in the commit.
    KeyNotChecked,
    /// Neither fence nor lease is looked at in the commit.
    RightsNotChecked,
    /// A node takes its lease for twice as long as it is.
    LongLease,
    /// The node does not learn that a shard is lost, and keeps its entries.
    LostNotForgotten,
    /// What was deleted while a page was read comes back with it.
    PageBringsBack,
    /// A node does not learn what others hold.
    HoldsNotTaken,
    /// A hold overwrites those that other nodes have ordered meanwhile.
    HoldsOverwritten,
}

/// What was played.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// What is broken, in words; nothing if all was kept.
    pub broken: Vec<String>,
    /// What happened, in order; empty if it was not asked for.
    pub story: String,
    /// Messages that were acknowledged.
    pub acknowledged: usize,
    /// Copies that users took.
    pub delivered: usize,
    /// Transfers that came again, and were recognised.
    pub repeated: usize,
    /// How often a node gained a shard.
    pub gained: usize,
    /// Commits whose answers were lost.
    pub doubted: usize,
    /// Commits that were fenced.
    pub fenced: usize,
    /// Holds that were acknowledged.
    pub held: usize,
}

/// Plays the world of a seed.
#[must_use]
pub fn play(world: &SiteWorld, mutant: Option<Mutant>, story: bool) -> Played {
    let mut play = play::Play::new(world, mutant);
    play.run();
    check::check(&mut play, story)
}
