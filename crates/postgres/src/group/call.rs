//! The call of `commit_group`: a plan as arrays.

use crate::connection::client::Connection;
use crate::connection::failure::Failure;
use crate::group::Content;
use crate::group::plan::{EntryChange, Plan};
use crate::group::staged::Source;
use crate::numbers::signed;
use bytes::Bytes;
use tokio_postgres::types::ToSql;

const SQL: &str = "SELECT commit_group($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, \
    $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, \
    $34, $35, $36, $37, $38, $39)";

/// The same for a plan that replaces values which other nodes may have changed.
const SQL_OVER: &str = "SELECT commit_over($40, $41, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, \
    $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, \
    $32, $33, $34, $35, $36, $37, $38, $39)";

/// The node by whose rights a commit is made: without a cluster there are none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) node: Option<i64>,
}

/// What commits brought until version 7 of the tables: the shards of the node, with their fences.
const NO_SHARDS: [i64; 0] = [];

/// The arguments of one call. They are kept while its end is not known.
#[derive(Debug, Default)]
pub(crate) struct Call {
    standing: Standing,
    needed: Vec<i64>,
    copies: (Vec<i64>, Vec<i64>),
    inline: (Vec<i64>, Vec<i32>, Vec<Bytes>, Vec<Vec<u8>>),
    stored: (Vec<i64>, Vec<i32>, Vec<i64>),
    bodies: (Vec<i64>, Vec<i64>),
    dropped: Vec<i64>,
    entries: Entries,
    gone: (Vec<i16>, Vec<i64>),
    batch: Vec<i64>,
    new: (Vec<Vec<u8>>, Vec<i64>, Vec<Bytes>),
    seen: (Vec<Vec<u8>>, Vec<i64>, Vec<Bytes>, Vec<i32>),
    forgets: (Vec<i64>, Vec<i64>),
    meta: (Vec<String>, Vec<Bytes>),
    over: (Vec<String>, Vec<Vec<u8>>),
}

#[derive(Debug, Default)]
struct Entries {
    rank: Vec<i16>,
    id: Vec<i64>,
    queue: Vec<i64>,
    body: Vec<Option<i64>>,
    record: Vec<Bytes>,
}

/// The batch of a change for `check_rights`: below zero if the entry has to be there.
fn numbered(change: &EntryChange) -> i64 {
    if change.removes { -1 - change.batch } else { change.batch }
}

impl Call {
    pub(crate) fn from_plan(plan: &Plan, standing: Standing) -> Call {
        let mut call =
            Call { standing, needed: plan.needed.iter().copied().collect(), ..Call::default() };
        call.add_contents(plan);
        call.add_entries(plan);
        call.add_seen(plan);
        (call.forgets.0, call.forgets.1) = plan.forgets.iter().copied().unzip();
        (call.meta.0, call.meta.1) = plan.meta.clone().into_iter().unzip();
        let over = plan.over.iter().map(|(name, over)| (name.clone(), over.to_vec()));
        (call.over.0, call.over.1) = over.unzip();
        call
    }

    fn add_contents(&mut self, plan: &Plan) {
        for (id, (content, refs)) in plan.bound() {
            match content {
                Content::Inline { octets, sums, .. } => {
                    self.inline.0.push(id);
                    self.inline.1.push(refs);
                    self.inline.2.push(octets.clone());
                    self.inline.3.push(sums.to_vec());
                }
                Content::Stored { length, .. } => {
                    self.stored.0.push(id);
                    self.stored.1.push(refs);
                    self.stored.2.push(signed(*length));
                }
            }
        }
        for (id, source) in &plan.bodies {
            match source {
                Some(Source::Content(content)) => {
                    self.bodies.0.push(*id);
                    self.bodies.1.push(content.id());
                }
                Some(Source::Copy(from)) => {
                    self.copies.0.push(*id);
                    self.copies.1.push(*from);
                }
                None => self.dropped.push(*id),
            }
        }
    }

    fn add_entries(&mut self, plan: &Plan) {
        let mut gone = Vec::new();
        for ((rank, id), change) in &plan.entries {
            let Some(row) = &change.entry else {
                self.gone.0.push(*rank);
                self.gone.1.push(*id);
                gone.push(numbered(change));
                continue;
            };
            self.entries.rank.push(*rank);
            self.entries.id.push(*id);
            self.entries.queue.push(row.queue);
            self.entries.body.push(row.body);
            self.entries.record.push(row.record.clone());
            self.batch.push(numbered(change));
        }
        self.batch.extend(gone);
    }

    fn add_seen(&mut self, plan: &Plan) {
        let forgets = !plan.forgets.is_empty();
        for key in &plan.absent {
            self.new.0.push(key.to_vec());
            // What is forgotten in the same batch is not what was just claimed: the claim lasts, and the
            // value comes in its turn.
            let row = plan.seen.get(&(0, *key)).filter(|_| !forgets);
            self.new.1.push(row.map_or(i64::MAX, |row| row.until));
            self.new.2.push(row.map_or_else(Bytes::new, |row| row.record.clone()));
        }
        for ((step, key), row) in &plan.seen {
            if forgets || !plan.absent.contains(key) {
                self.seen.0.push(key.to_vec());
                self.seen.1.push(row.until);
                self.seen.2.push(row.record.clone());
                self.seen.3.push(*step);
            }
        }
    }

    /// Makes the call: it ends when its transaction has.
    pub(crate) async fn make(
        &self,
        client: &Connection,
        (epoch, connection, group): (i64, i64, i64),
    ) -> Result<(), Failure> {
        let slices = |octets: &'_ [Bytes]| -> Vec<Vec<u8>> {
            octets.iter().map(|octets| octets.to_vec()).collect()
        };
        let octets: Vec<&[u8]> = self.inline.2.iter().map(|octets| &octets[..]).collect();
        let records: Vec<&[u8]> = self.entries.record.iter().map(|octets| &octets[..]).collect();
        let (new, seen, values) = (slices(&self.new.2), slices(&self.seen.2), slices(&self.meta.1));
        let standing = &self.standing;
        let entries = &self.entries;
        let parameters: [&(dyn ToSql + Sync); 41] = [
            &epoch,
            &connection,
            &group,
            &standing.node,
            &&NO_SHARDS[..],
            &&NO_SHARDS[..],
            &&NO_SHARDS[..],
            &self.needed,
            &self.copies.0,
            &self.copies.1,
            &self.inline.0,
            &self.inline.1,
            &octets,
            &self.inline.3,
            &self.stored.0,
            &self.stored.1,
            &self.stored.2,
            &self.bodies.0,
            &self.bodies.1,
            &self.dropped,
            &entries.rank,
            &entries.id,
            &entries.queue,
            &entries.body,
            &records,
            &self.gone.0,
            &self.gone.1,
            &self.batch,
            &self.new.0,
            &self.new.1,
            &new,
            &self.seen.0,
            &self.seen.1,
            &seen,
            &self.seen.3,
            &self.forgets.0,
            &self.forgets.1,
            &self.meta.0,
            &values,
            &self.over.0,
            &self.over.1,
        ];
        if self.over.0.is_empty() {
            let [plain @ .., _, _] = &parameters;
            return client.rows(SQL, plain).await.map(drop);
        }
        client.rows(SQL_OVER, &parameters).await.map(drop)
    }
}
