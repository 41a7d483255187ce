//! Receptions that survive the end of the process: notes beside the content, from which the next run of
//! the node takes them up.
//!
//! A transfer to us that is long, or takes long, gets a note at each checkpoint, and the checkpoint is
//! confirmed once the note is durable. What peer and association it came on is in it, as a recovery carries
//! no credentials.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::arrivals::Arrivals;
use crate::arrivals::arrival::{ArrivalHead, OpenArrival, Parsing};
use crate::arrivals::recovery::RECEIVE_KEPT;
use crate::association::lost::{HeldPart, LostReceive};
use crate::association::recovery::{NOTED_AFTER, NOTED_BEYOND};
use crate::config::levels;
use crate::context::Context;
use base::{AssociationId, Now, PeerId, Precedence, Utc};
use bytes::Bytes;
use engine::ContentState;
use engine::journal::SpoolId;
use guard::memory::{MemoryCharge, Payer};
use osi::rtse::InterruptedReceive;
use osi::session::service::ConnectionReference;
use p1::ApduParser;
use p1::apdu::{MtsApduHead, decode_envelope, encode_envelope};
use scheduler::ChannelId;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The first octet of a note.
const VERSION: u8 = 4; // 4: the form in which the content of a transfer comes

/// What a note holds, behind its version.
#[derive(Debug, Serialize, Deserialize)]
struct ReceptionNote {
    peer: PeerId,
    /// The channel's name: its number may change with the configuration.
    channel: String,
    remote: Option<IpAddr>,
    ours: bool,
    /// The association it comes on.
    reference: ConnectionReference,
    at: Utc,
    /// [`InterruptedReceive::encode`].
    state: Vec<u8>,
    parser: ApduParser,
    /// The envelope: in the first note only.
    envelope: Option<Vec<u8>>,
    /// What is new of the content's front since the note before.
    front: Vec<u8>,
    /// How far the content has come.
    content: ContentState,
}

impl ReceptionNote {
    fn encode(&self) -> Bytes {
        // Plain data into a growing buffer cannot fail.
        postcard::to_extend(self, vec![VERSION]).unwrap_or_default().into()
    }

    fn decode(octets: &[u8]) -> Option<ReceptionNote> {
        let fields = octets.strip_prefix(&[VERSION])?;
        let (note, rest) = postcard::take_from_bytes(fields).ok()?;
        rest.is_empty().then_some(note)
    }
}

/// What the notes of a reception come to.
struct TakenUp {
    last: ReceptionNote,
    state: InterruptedReceive,
    envelope: MtsApduHead,
    front: Vec<u8>,
}

impl TakenUp {
    /// Reads the notes of a content of this length.
    fn read(notes: &[Bytes], length: u64) -> Result<TakenUp, &'static str> {
        let (mut front, mut envelope, mut last) = (Vec::new(), None, None);
        for note in notes {
            let mut note = ReceptionNote::decode(note).ok_or("a note of another release")?;
            front.append(&mut note.front);
            envelope = envelope.or(note.envelope.take());
            last = Some(note);
        }
        let (last, envelope) = last.zip(envelope).ok_or("no envelope")?;
        if last.content.length() != length {
            return Err("a content of another length");
        }
        let envelope = decode_envelope(&envelope).map_err(|_| "a malformed envelope")?;
        let state = InterruptedReceive::decode(&last.state).ok_or("a state of another release")?;
        let envelope = MtsApduHead::Message(Box::new(envelope));
        Ok(TakenUp { last, state, envelope, front })
    }
}

impl Arrivals {
    /// Notes how far a reception has come at a checkpoint, if it is long or has taken long.
    pub(crate) fn note_reception(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        octets: u64,
    ) {
        let Some(association) = cx.associations.get(&id) else { return };
        let Some(p1) = association.p1() else { return };
        let Some(arrival) = association.receiving().and_then(|spool| self.open.get_mut(&spool))
        else {
            return;
        };
        let is_due = arrival.noted.is_some()
            || arrival.notes.length() > NOTED_BEYOND
            || now.mono.since(arrival.began) >= NOTED_AFTER;
        if !is_due || !arrival.spool_open || arrival.context.is_some() {
            return;
        }
        let (Parsing::Transfer(parser), Some(ArrivalHead::Transfer(head))) =
            (&arrival.parsing, &arrival.head)
        else {
            return;
        };
        let (MtsApduHead::Message(envelope), Some((_, channel)), Some(state)) =
            (&**head, cx.config.channel(p1.channel), association.stack.at_checkpoint(octets))
        else {
            return;
        };
        let front = arrival.notes.front();
        let noted = arrival.noted.replace(front.len());
        let note = ReceptionNote {
            peer: p1.channel.peer,
            channel: channel.name.clone(),
            remote: association.connection.remote,
            ours: association.is_initiator(),
            reference: p1.reference.clone(),
            at: now.utc,
            state: state.encode(),
            parser: parser.clone(),
            envelope: noted.is_none().then(|| encode_envelope(envelope)),
            front: front.get(noted.unwrap_or(0)..).unwrap_or_default().to_vec(),
            content: arrival.notes.state(),
        };
        let (spool, note) = (arrival.spool, note.encode());
        cx.output(Output::SpoolNote { spool, association: id, note });
    }

    /// A message has arrived whole: what is left of an earlier transfer of it from the same peer is given up.
    /// Its sender began again.
    pub(crate) fn drop_begun_before(
        &mut self,
        cx: &mut Context,
        channel: Option<ChannelId>,
        message: &str,
    ) {
        let Some(channel) = channel else { return };
        let is_it = |spool| match self.open.get(&spool).and_then(|arrival| arrival.head.as_ref()) {
            Some(ArrivalHead::Transfer(head)) => match &**head {
                MtsApduHead::Message(envelope) => {
                    envelope.message_identifier.to_string() == message
                }
                MtsApduHead::Probe(_) | MtsApduHead::Report(_) => false,
            },
            _ => false,
        };
        // Some wait on an association that was recovered: their sender did not go on.
        let of_peer = cx
            .associations
            .values()
            .filter(|association| association.channel().is_some_and(|of| of.peer == channel.peer));
        let suspended = of_peer.filter_map(|of| Some((of.id, of.p1()?.suspended?)));
        let suspended: Vec<_> = suspended.filter(|(_, spool)| is_it(*spool)).collect();
        let mut left = cx.recovery.let_go_parts(channel.peer, is_it);
        for (id, spool) in suspended {
            if let Some(p1) = cx.associations.p1_mut(id) {
                p1.suspended = None;
            }
            left.push(spool);
        }
        for spool in left {
            self.drop_arrival(cx, spool);
        }
    }

    /// Takes up a reception of an earlier run: it waits for the recovery of its association.
    pub(crate) fn recovered_reception(
        &mut self,
        cx: &mut Context,
        now: Now,
        spool: SpoolId,
        length: u64,
        notes: &[Bytes],
    ) {
        cx.issued.use_spools_after(spool);
        let taken = TakenUp::read(notes, length).and_then(|up| self.take_up(cx, now, spool, up));
        if let Err(why) = taken {
            cx.output(Output::SpoolDiscard { spool });
            let detail = format!(
                "{length} octets of a content that an earlier run was receiving are given up: {why}"
            );
            cx.event(LogLevel::Warning, Kind::ReceiveFailed, detail);
        }
    }

    fn take_up(
        &mut self,
        cx: &mut Context,
        now: Now,
        spool: SpoolId,
        up: TakenUp,
    ) -> Result<(), &'static str> {
        let TakenUp { last, state, envelope, front } = up;
        if now.utc.since(last.at) > RECEIVE_KEPT {
            return Err("it is too old");
        }
        let peer = cx.config.peer(last.peer).ok_or("its peer is not configured")?;
        let channel = peer.channels.iter().find(|channel| channel.name == last.channel);
        let index = channel.ok_or("its channel is not configured")?.index;
        let channel = ChannelId { peer: last.peer, index };
        // No association has this number.
        let none = AssociationId(0);
        let mut arrival =
            OpenArrival::new(none, Some(channel), Parsing::Transfer(last.parser), spool);
        let length = last.content.length();
        arrival.take_up(envelope, cx.engine.resumed_notes(last.content, front)?);
        let level = self.classify(cx, &arrival);
        arrival.level = level;
        let least = cx.peer_and_channel(channel).and_then(|(_, of)| levels::least_of_channel(of));
        let least = least.unwrap_or(Precedence::Deferred);
        arrival.held = Some(MemoryCharge::new(Payer::Peer(channel.peer), least));
        let octets = arrival.parsed_size();
        self.open.insert(spool, arrival);
        if self.hold(cx, spool, octets).is_err() {
            self.open.remove(&spool);
            return Err("the envelope finds no memory");
        }
        let until = self.receive_kept_until(cx, now, channel);
        if let Some(arrival) = self.open.get_mut(&spool) {
            arrival.kept_until = Some(until);
        }
        let detail = format!(
            "{} octets of content that an earlier run received wait up to {} s for the recovery of their \
             association (X.228 7.8.3)",
            length,
            until.since(now.mono).as_secs()
        );
        cx.event(LogLevel::Info, Kind::Held, detail)
            .channel(Some(channel))
            .precedence(level.unwrap_or(least));
        let replaced = cx.recovery.keep_receive(LostReceive {
            channel,
            state,
            held: HeldPart::Part(spool),
            remote: last.remote,
            ours: last.ours,
            lost_on: last.reference,
            until,
            asked: 0,
        });
        if let Some(replaced) = replaced {
            self.drop_arrival(cx, replaced);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_another_release_are_not_read() {
        assert!(ReceptionNote::decode(&[]).is_none());
        assert!(ReceptionNote::decode(&[VERSION]).is_none());
        assert!(ReceptionNote::decode(&[VERSION + 1, 0, 0]).is_none());
        assert_eq!(TakenUp::read(&[], 0).err(), Some("no envelope"));
    }
}
