//! The status an operator asks for.

use crate::association::{Association, AssociationState};
use crate::config::{Channel, Peer};
use crate::node::Node;
use base::{EntryId, Now, Precedence};
use dscp::Dscp;
use scheduler::wall::step;
use scheduler::{ChannelId, QueueStatus, Reason, Shift};
use status::{
    AssociationStatus, ChannelStatus, ClockStatus, DiskStatus, Holds, LevelStatus, MailboxStatus,
    PeerStatus, Status, StoredStatus,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn by_precedence(counts: &[u64; 6]) -> BTreeMap<Precedence, u64> {
    Precedence::ALL
        .into_iter()
        .map(|p| (p, counts.get(usize::from(p.number())).copied().unwrap_or(0)))
        .filter(|(_, n)| *n > 0)
        .collect()
}

impl Node {
    /// The state of the node, as plain data.
    pub fn status(&self, now: Now) -> Status {
        // Channels that are no more stand here as long as an association of theirs does.
        let gone =
            self.cx.config.former().iter().filter(|peer| self.cx.config.peer(peer.id()).is_none());
        let mut peers: Vec<PeerStatus> = Vec::new();
        for config in self.cx.config.peers.iter().chain(gone) {
            if peers.iter().any(|peer| peer.name == config.name) {
                continue;
            }
            let former = self.cx.config.former().iter().filter(|f| f.id() == config.id());
            let configured = self.cx.config.peer(config.id());
            let channels = configured.into_iter().chain(former).flat_map(Peer::channels);
            let name = config.name.clone();
            let channels = channels.map(|(id, c)| self.channel_status(now, id, c)).collect();
            peers.push(PeerStatus { name, channels, owner: None });
        }
        let users: BTreeSet<&str> = self.cx.config.mailboxes.iter().map(String::as_str).collect();
        let mailboxes = self.cx.queue.mailboxes();
        // A list has no mailbox, only a queue of its own.
        let mailboxes = mailboxes.filter(|(number, _)| !self.cx.is_list(*number));
        let mailboxes = mailboxes.map(|(number, address)| MailboxStatus {
            address: address.to_owned(),
            queued: by_precedence(&self.cx.queue.scheduler.mailbox_status(number).queued()),
            bound: self.cx.associations.values().filter(|l| l.mailbox() == Some(address)).count()
                as u64,
            stored: self.stored(address),
            unopened: self.is_unopened(address),
            former: !users.contains(address),
        });
        // Mailboxes of the message store, of users for whom nothing waits here or who were removed.
        let known: BTreeSet<&str> = self.cx.queue.mailboxes().map(|(_, address)| address).collect();
        let others = self.stores.mailboxes.addresses();
        let others =
            others.filter(|address| !known.contains(&**address)).map(|address| MailboxStatus {
                stored: self.stored(&address),
                unopened: self.is_unopened(&address),
                former: !users.contains(&*address),
                address,
                ..MailboxStatus::default()
            });
        Status {
            clock: self.clock_status(now),
            mta: self.cx.config.mta.0.clone(),
            time: now.utc.to_string(),
            started: self.cx.life.started_at().map(|at| at.to_string()),
            disk: self.cx.disk.space().map(|space| DiskStatus {
                free: space.free,
                reserve: space.reserve,
                refused: self.cx.disk.refused(),
                no_room_for: self.cx.disk.no_room_for(),
            }),
            reading_queue: self.is_reading_queue(),
            stopping: self.cx.life.is_stopping(),
            peers,
            minimize: self.minimize_status(now),
            mailboxes: mailboxes.chain(others).collect(),
            counters: self.cx.outputs.tally().counters(),
            damage: None,
            events_lost: None,
            site: None,
        }
    }

    fn stored(&self, address: &str) -> Option<StoredStatus> {
        self.stores.mailboxes.totals(address).map(|totals| StoredStatus {
            items: by_precedence(&Precedence::ALL.map(|level| totals.level(level).items)),
            octets: totals.all().octets,
        })
    }

    fn is_unopened(&self, address: &str) -> bool {
        let mailboxes = &self.stores.mailboxes;
        mailboxes.number(address).is_some() && mailboxes.totals(address).is_none()
    }

    /// Whether the queue is still being read after the start.
    pub(crate) fn is_reading_queue(&self) -> bool {
        self.cx.life.is_started() && !self.cx.queue.copies.is_complete()
    }

    /// How much is held in memory for work in progress; all zero at rest.
    pub fn holds(&self) -> Holds {
        Holds {
            arrivals: self.arrivals.open_count(),
            pending: self.cx.commits.pending_count(),
            keys: self.cx.commits.keys.count(),
            associations: self.cx.associations.len(),
            octets: self.arrivals.held_octets(),
        }
    }

    fn channel_status(&self, now: Now, id: ChannelId, config: &Channel) -> ChannelStatus {
        let queue = self.cx.queue.scheduler.status(id);
        let floor = self.cx.queue.scheduler.floor_on(id);
        ChannelStatus {
            name: config.name.clone(),
            dscp: config.dscp,
            dscp_name: config.dscp.to_string(),
            associations: self
                .cx
                .associations
                .values()
                .filter(|l| l.channel() == Some(id))
                .map(|l| self.association_status(now, l, config.dscp))
                .collect(),
            levels: self.levels(now, config, &queue),
            minimize: floor.map(|floor| floor.lowest),
            minimize_because: floor.map(|floor| floor.to_string()),
            queued: by_precedence(&queue.queued()),
            queued_bytes: queue.bytes(),
            held: by_precedence(&queue.held()),
            held_because: queue.first_held().map(|(_, reason)| reason.to_string()),
            oldest_age_seconds: queue.oldest().map(|at| now.utc.since(at).as_secs_f64()),
            // Far below 2^53.
            line_kbit_s: self
                .outbound
                .channels
                .get(&id)
                .and_then(|c| c.line.bit_s())
                .map(|bit_s| bit_s as f64 / 1_000.0),
            checkpoint_bytes: u64::from(self.outbound.checkpoint_size(id, config)) << 10,
            closed: self.outbound.channels.get(&id).and_then(|c| c.schedule.describe()),
            last_error: self.outbound.channels.get(&id).and_then(|c| c.last_error.clone()),
            failure: self.outbound.channels.get(&id).and_then(|c| c.failure(now)),
        }
    }

    fn levels(&self, now: Now, config: &Channel, queue: &QueueStatus) -> Vec<LevelStatus> {
        let carried = Precedence::ALL.into_iter().rev().filter(|p| config.precedences.contains(p));
        let level = |precedence| {
            let level = queue.level(precedence);
            let reason = level.first_held.map(|(_, _, reason)| reason);
            let holder = match reason {
                Some(Reason::Waiting(_, id) | Reason::InTransfer(_, id)) => Some(id),
                Some(Reason::Operator | Reason::Minimize(_)) | None => None,
            };
            LevelStatus {
                precedence,
                queued: level.queued,
                queued_bytes: level.bytes,
                oldest_age_seconds: level.oldest.map(|at| now.utc.since(at).as_secs_f64()),
                held: level.held,
                minimized: level.minimized,
                held_by_operator: level.operator,
                delayed: level.delayed,
                held_because: reason.map(|reason| reason.to_string()),
                held_by_entry: holder.map(|id| id.to_string()),
                held_by_mts_id: holder.and_then(|id| self.message_in_transfer(id)),
                in_transfer: level.in_transfer,
                paused: level.paused,
                overdue: level.overdue,
            }
        };
        carried.map(level).collect()
    }

    /// The MTS identifier of an entry, which is known here while it is in transfer only.
    fn message_in_transfer(&self, id: EntryId) -> Option<String> {
        let mut sending =
            self.cx.associations.values().filter_map(|association| association.sending());
        let found = sending.find(|sending| sending.entry == id)?;
        Some(base::shown::line(&found.message).into_owned()).filter(|message| !message.is_empty())
    }

    fn association_status(
        &self,
        now: Now,
        association: &Association,
        dscp: Dscp,
    ) -> AssociationStatus {
        let arrival = association.receiving().and_then(|spool| self.arrivals.get(spool));
        let state = match association.state() {
            AssociationState::Connecting => "connecting",
            AssociationState::Opening { .. } => "opening",
            AssociationState::Open { .. } if association.sending().is_some() => "sending",
            AssociationState::Open { .. } if association.receiving().is_some() => "receiving",
            AssociationState::Open { .. } => "idle",
            AssociationState::Releasing { .. }
            | AssociationState::Refusing
            | AssociationState::Over => "releasing",
        };
        let mark = association.p1().map_or(dscp, |p1| p1.mark);
        AssociationStatus {
            id: association.id.to_string(),
            role: if association.is_initiator() { "initiator" } else { "responder" }.to_owned(),
            state: state.to_owned(),
            draining: association.drained().is_some(),
            dscp_expected: mark,
            dscp_expected_name: mark.to_string(),
            dscp_seen: association.connection.dscp_seen,
            dscp_seen_name: association.connection.dscp_seen.map(|seen| seen.to_string()),
            message: association.sending().map(|s| s.message.clone()).filter(|m| !m.is_empty()),
            precedence: association.sending().map(|s| s.precedence),
            entry: association.sending().map(|s| s.entry.to_string()),
            stalled_since: association
                .sending()
                .filter(|_| association.channel().is_some())
                .and_then(|s| self.cx.stalled_since_utc(now, s.entry)),
            bytes_confirmed: association.sending().and_then(|s| s.meter.octets()),
            rate_kbit_s: association.sending().and_then(|s| s.meter.kbit_s(now.mono)),
            checkpoint_bytes: association.stack.checkpoint(),
            bytes_done: association
                .sending()
                .map(|s| s.handed_out)
                .or(arrival.map(|a| a.notes.length())),
            bytes_total: association.sending().map(|s| s.content_length),
        }
    }

    /// The status of a clock that is not trusted.
    pub fn clock_status(&self, now: Now) -> Option<ClockStatus> {
        let wall = &self.cx.queue.wall;
        let doubt = wall.doubt.as_ref()?;
        let left = wall
            .trusted_at(self.cx.config.times.clock.steady)
            .map_or(Duration::ZERO, |at| at.since(now.mono));
        // By the clock as it is, which the queue may not follow yet.
        let by = match wall.at.map(|at| step(at, now)) {
            Some(Shift::Sooner(by)) => now.mono + by,
            _ => now.mono,
        };
        Some(ClockStatus {
            since: doubt.since.to_string(),
            because: doubt.because.clone(),
            expiry_waits_until: (now.utc + left).to_string(),
            believed: wall.believed(now.mono).unwrap_or(now.utc).to_string(),
            late: self.cx.queue.scheduler.late_count(by) as u64,
        })
    }
}
