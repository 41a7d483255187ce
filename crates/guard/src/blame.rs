//! Whose fault it is that an association ended under a transfer: the connection's, the message's or
//! the channel's.
//!
//! An abort with a reason of the message (RTAB with invalidParameter, protocolError or userError, X.228
//! 7.9), or an exception report with unrecoverable procedural error (X.228 7.6), is charged to the
//! **message**: it alone is delayed, and ends in a report after `message_aborts` of them. All other
//! failures are the **connection**'s. But a message that is lost at the very place where it was lost
//! before is a **suspect**: it alone is delayed, too, so that others get past it, but nothing is charged. The
//! fault may not be the message's, and the peer may even have it: it stays until it expires.
//!
//! Failures of different messages with no transfer in between that succeeded are the **channel**'s:
//! charges made since its last success are taken back, and it backs off. If only one message is there,
//! a fault of the message looks like a peer that aborts everything. So none is given up before another
//! one got through on the channel after its first charge, and only at an abort that follows. So a peer that aborts everything
//! makes no reports, however often it does.
//!
//! The charges are in memory: a restart forgets them, which only delays the report.

use base::{EntryId, Instant, Precedence};
use osi::api::AbortReason;
use scheduler::ChannelId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;

/// So many different messages are tried at once on a channel that backs off for aborts; beyond that
/// only one above all that failed.
const MAX_TRIALS: usize = 16;

/// How far a transfer had come when it failed: at the peer's side, as far as we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferPlace {
    /// Octets the peer had confirmed.
    pub confirmed: u64,
    /// Octets its transport had taken on that association since the transfer began or went on there;
    /// 0 where it was not asked.
    pub taken: u64,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferFault {
    /// Nobody's that is known: the transport connection's.
    Connection,
    /// Nobody's that is known, but the message failed at the same place again.
    Suspect,
    /// The message's: so often now. Whether it is to be given up.
    Message {
        /// Charges so far.
        charges: u32,
        /// It is to be given up.
        give_up: bool,
    },
    /// The channel's: so many different messages failed since the last that got through.
    Channel {
        /// How many.
        messages: usize,
    },
}

/// Whether an abort with this reason is about what was being transferred.
pub fn is_about_the_message(reason: Option<AbortReason>) -> bool {
    matches!(
        reason,
        Some(AbortReason::InvalidParameter | AbortReason::ProtocolError | AbortReason::UserError)
    )
}

/// What is remembered of a message that failed.
#[derive(Debug)]
struct Charged {
    channel: ChannelId,
    place: TransferPlace,
    charges: u32,
    /// Another message got through since the first charge.
    others_passed: bool,
}

/// A message that failed since the last one got through.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    precedence: Precedence,
    /// Charges since then.
    charges: u32,
    /// It waits for the channel's next try.
    waits: bool,
    /// How often it was the one to be tried then.
    tries: u32,
}

/// What failed on a channel since the last transfer that succeeded there.
#[derive(Debug, Default)]
struct Streak {
    suspects: BTreeMap<EntryId, Suspect>,
    at_fault: bool,
    /// Waits of the channel, and until when the last of them is.
    rounds: u32,
    until: Option<Instant>,
    /// The one that is tried after this wait.
    trial: Option<EntryId>,
    /// Suspects of an earlier streak, which are tried one after each success: together they would
    /// be taken for the channel's fault again.
    cleared: BTreeSet<(Reverse<Precedence>, EntryId)>,
}

/// What failed, and whose fault it was.
#[derive(Debug, Default)]
pub struct Blame {
    messages: BTreeMap<EntryId, Charged>,
    streaks: BTreeMap<ChannelId, Streak>,
    /// All that ever failed: of these alone anything is held, on whatever channel.
    known: BTreeSet<EntryId>,
    /// Lost once with their association: they went again at once.
    put_back: BTreeSet<EntryId>,
}

impl Blame {
    /// An association ended under the transfer of this message. `deliberate` is the
    /// result of [`is_about_the_message`]; `most` is the peer's `message_aborts`.
    pub fn failed(
        &mut self,
        channel: ChannelId,
        (entry, precedence): (EntryId, Precedence),
        place: TransferPlace,
        deliberate: bool,
        most: u32,
    ) -> TransferFault {
        self.known.insert(entry);
        let fresh = Charged { channel, place, charges: 0, others_passed: false };
        let again = self.messages.get(&entry).is_some_and(|known| known.place == place);
        let message = self.messages.entry(entry).or_insert(fresh);
        (message.channel, message.place) = (channel, place);
        let streak = self.streaks.entry(channel).or_default();
        streak.cleared.remove(&(Reverse(precedence), entry));
        let new = Suspect { precedence, charges: 0, waits: false, tries: 0 };
        streak.suspects.entry(entry).or_insert(new);
        let messages = streak.suspects.len();
        // From then on nothing is charged before one gets through.
        if messages > 1 && !streak.at_fault {
            streak.at_fault = true;
            for (id, suspect) in &mut streak.suspects {
                let taken_back = std::mem::take(&mut suspect.charges);
                if let Some(message) = self.messages.get_mut(id) {
                    message.charges = message.charges.saturating_sub(taken_back);
                }
            }
        }
        let suspect = streak.suspects.get_mut(&entry);
        if !deliberate && !again {
            return TransferFault::Connection;
        }
        if streak.at_fault {
            if let Some(suspect) = suspect {
                suspect.waits = true;
            }
            return TransferFault::Channel { messages };
        }
        if !deliberate {
            return TransferFault::Suspect;
        }
        if let Some(suspect) = suspect {
            suspect.charges += 1;
        }
        let Some(message) = self.messages.get_mut(&entry) else { return TransferFault::Connection };
        message.charges = message.charges.saturating_add(1);
        let give_up = most > 0 && message.charges >= most && message.others_passed;
        TransferFault::Message { charges: message.charges, give_up }
    }

    /// A message got through on this channel.
    pub fn succeeded(&mut self, channel: ChannelId, entry: EntryId) {
        self.forget(entry);
        let Some(streak) = self.streaks.get_mut(&channel) else { return };
        for (id, suspect) in std::mem::take(&mut streak.suspects) {
            if let Some(message) = self.messages.get_mut(&id).filter(|m| m.charges > 0) {
                message.others_passed = true;
            }
            if suspect.waits {
                streak.cleared.insert((Reverse(suspect.precedence), id));
            }
        }
        (streak.at_fault, streak.rounds) = (false, 0);
        (streak.until, streak.trial) = (None, None);
    }

    /// The next of those that waited for the channel and may go again now that it works.
    pub fn next_cleared(&mut self, channel: ChannelId) -> Option<EntryId> {
        let streak = self.streaks.get_mut(&channel)?;
        let next = streak.cleared.pop_first().map(|(_, id)| id);
        if next.is_none() && streak.suspects.is_empty() {
            self.streaks.remove(&channel);
        }
        next
    }

    /// Begins another wait of a channel that is at fault. Gives how many there were; or, if a wait is in
    /// progress, its end.
    pub fn next_round(&mut self, now: Instant, channel: ChannelId) -> Result<u32, Instant> {
        let streak = self.streaks.entry(channel).or_default();
        match streak.until.filter(|until| *until > now) {
            Some(until) => Err(until),
            None => {
                streak.rounds = streak.rounds.saturating_add(1);
                Ok(streak.rounds)
            }
        }
    }

    /// The channel waits until then.
    pub fn backs_off_until(&mut self, channel: ChannelId, until: Instant) {
        self.streaks.entry(channel).or_default().until = Some(until);
    }

    /// The wait of a channel that is at fault.
    pub fn backs_off(&self, channel: ChannelId) -> Option<Instant> {
        self.streaks.get(&channel)?.until
    }

    /// The channels of these for which messages wait until their next try.
    pub fn channels(
        &self,
        of: impl RangeBounds<ChannelId>,
    ) -> impl Iterator<Item = ChannelId> + '_ {
        self.streaks.range(of).filter(|(_, streak)| streak.at_fault).map(|(id, _)| *id)
    }

    /// Messages that wait for the channel's next try.
    pub fn waiting(&self, channel: ChannelId) -> impl Iterator<Item = EntryId> + '_ {
        let streak = self.streaks.get(&channel).into_iter();
        let waits = |(id, suspect): (&EntryId, &Suspect)| suspect.waits.then_some(*id);
        streak.flat_map(|s| &s.suspects).filter_map(waits)
    }

    /// What is to be delayed after this one failed: all that wait, where a wait of the channel
    /// begins; within it they are delayed already.
    pub fn that_wait(&mut self, channel: ChannelId, failed: EntryId, begins: bool) -> Vec<EntryId> {
        if let Some(streak) = self.streaks.get_mut(&channel) {
            streak.trial.take_if(|trial| begins || *trial == failed);
        }
        if begins { self.waiting(channel).collect() } else { vec![failed] }
    }

    /// Of those that wait the one to be tried next: in turn, the highest first. One for each wait.
    pub fn next_to_try(&mut self, channel: ChannelId) -> Option<EntryId> {
        let streak = self.streaks.get_mut(&channel)?;
        if streak.trial.is_some() {
            return None;
        }
        let waiting = streak.suspects.iter_mut().filter(|(_, suspect)| suspect.waits);
        let least = |(id, s): &(&EntryId, &mut Suspect)| (s.tries, Reverse(s.precedence), **id);
        let (id, suspect) = waiting.min_by_key(least)?;
        suspect.tries += 1;
        streak.trial = Some(*id);
        Some(*id)
    }

    /// Whether this message is to be tried although the channel backs off: nothing is known against
    /// it.
    pub fn may_try(&self, channel: ChannelId, entry: EntryId, precedence: Precedence) -> bool {
        let Some(streak) = self.streaks.get(&channel) else { return false };
        let above_all = || streak.suspects.values().all(|suspect| precedence > suspect.precedence);
        !streak.suspects.contains_key(&entry) && (streak.suspects.len() < MAX_TRIALS || above_all())
    }

    /// Whether the message was lost with its association before; it was now.
    pub fn was_put_back(&mut self, entry: EntryId) -> bool {
        !self.put_back.insert(entry)
    }

    /// The configuration was read again: all that is held against a channel and its messages is
    /// forgotten. Gives those that were delayed for it.
    pub fn begin_anew(&mut self, channel: ChannelId) -> BTreeSet<EntryId> {
        let messages = self.messages.extract_if(.., |_, message| message.channel == channel);
        let mut delayed: BTreeSet<EntryId> = messages.map(|(id, _)| id).collect();
        if let Some(streak) = self.streaks.remove(&channel) {
            delayed.extend(streak.suspects.keys());
            delayed.extend(streak.cleared.iter().map(|(_, id)| *id));
        }
        delayed
    }

    /// An operator has what failed tried again, and nothing is known to have changed: the waits end, the counts go
    /// on. Gives those that were delayed.
    pub fn try_again(&mut self, channel: ChannelId) -> BTreeSet<EntryId> {
        let failed = self.messages.iter().filter(|(_, message)| message.channel == channel);
        let mut delayed: BTreeSet<EntryId> = failed.map(|(id, _)| *id).collect();
        if let Some(streak) = self.streaks.get_mut(&channel) {
            delayed.extend(streak.suspects.keys());
            let cleared = std::mem::take(&mut streak.cleared);
            delayed.extend(cleared.into_iter().map(|(_, id)| id));
            streak.suspects.values_mut().for_each(|suspect| suspect.waits = false);
            (streak.rounds, streak.until, streak.trial) = (0, None, None);
        }
        delayed
    }

    /// The message is gone, or got through.
    pub fn forget(&mut self, entry: EntryId) {
        self.put_back.remove(&entry);
        self.messages.remove(&entry);
        if !self.known.remove(&entry) {
            return;
        }
        for streak in self.streaks.values_mut() {
            streak.suspects.remove(&entry);
            streak.trial.take_if(|trial| *trial == entry);
            for precedence in Precedence::ALL {
                streak.cleared.remove(&(Reverse(precedence), entry));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::PeerId;

    const C: ChannelId = ChannelId { peer: PeerId(1), index: 0 };
    const MAX: u32 = 3;

    fn at(taken: u64) -> TransferPlace {
        TransferPlace { confirmed: 0, taken }
    }

    fn fails(blame: &mut Blame, entry: u64, deliberate: bool) -> TransferFault {
        let about = (EntryId(entry), Precedence::Routine);
        blame.failed(C, about, at(entry), deliberate, MAX)
    }

    fn aborted(blame: &mut Blame, entry: u64) -> TransferFault {
        fails(blame, entry, true)
    }

    fn charged(charges: u32) -> TransferFault {
        TransferFault::Message { charges, give_up: false }
    }

    #[test]
    fn one_bad_message_among_others_is_given_up_in_the_end() {
        let mut blame = Blame::default();
        for charges in 1..MAX {
            assert_eq!(aborted(&mut blame, 1), charged(charges));
            blame.succeeded(C, EntryId(2));
        }
        assert_eq!(aborted(&mut blame, 1), TransferFault::Message { charges: MAX, give_up: true });
    }

    #[test]
    fn a_message_alone_is_never_given_up_before_another_got_through() {
        let mut blame = Blame::default();
        for charges in 1..100 {
            assert_eq!(aborted(&mut blame, 1), charged(charges));
        }
        blame.succeeded(C, EntryId(2));
        assert_eq!(aborted(&mut blame, 1), TransferFault::Message { charges: 100, give_up: true });
    }

    #[test]
    fn aborts_of_different_messages_are_the_channel_s() {
        let mut blame = Blame::default();
        assert_eq!(aborted(&mut blame, 1), charged(1));
        assert_eq!(aborted(&mut blame, 1), charged(2));
        assert_eq!(aborted(&mut blame, 2), TransferFault::Channel { messages: 2 });
        for _ in 0..100 {
            assert_eq!(aborted(&mut blame, 1), TransferFault::Channel { messages: 2 });
        }
        // What was charged is taken back.
        blame.succeeded(C, EntryId(3));
        assert_eq!(aborted(&mut blame, 1), charged(1));
        // But not what was charged before: others had got through since.
        blame.succeeded(C, EntryId(4));
        assert_eq!(aborted(&mut blame, 1), charged(2));
        assert_eq!(aborted(&mut blame, 2), TransferFault::Channel { messages: 2 });
        blame.succeeded(C, EntryId(5));
        assert_eq!(aborted(&mut blame, 1), charged(2));
    }

    #[test]
    fn a_message_lost_at_the_same_place_again_is_a_suspect_and_charged_with_nothing() {
        let mut blame = Blame::default();
        assert_eq!(fails(&mut blame, 1, false), TransferFault::Connection);
        assert_eq!(fails(&mut blame, 1, false), TransferFault::Suspect);
        let about = (EntryId(1), Precedence::Routine);
        assert_eq!(
            blame.failed(C, about, at(7), false, MAX),
            TransferFault::Connection,
            "elsewhere"
        );
        for _ in 0..100 {
            assert_eq!(blame.failed(C, about, at(7), false, MAX), TransferFault::Suspect);
            blame.succeeded(C, EntryId(3));
        }
        assert_eq!(aborted(&mut blame, 1), charged(1), "the first with a reason of the message");
        // If several messages are lost at the same places again, the fault is the channel's.
        assert_eq!(fails(&mut blame, 2, false), TransferFault::Connection);
        assert_eq!(fails(&mut blame, 2, false), TransferFault::Channel { messages: 2 });
    }

    #[test]
    fn what_waited_for_the_channel_goes_again_one_after_each_success() {
        let mut blame = Blame::default();
        let about = |id, precedence| (EntryId(id), precedence);
        let levels = [Precedence::Routine, Precedence::Flash, Precedence::Routine];
        for (id, level) in (1..).zip(levels) {
            blame.failed(C, about(id, level), at(0), true, MAX);
            blame.failed(C, about(id, level), at(0), true, MAX);
        }
        let waiting: Vec<u64> = blame.waiting(C).map(|id| id.0).collect();
        assert_eq!(waiting, [2, 3], "the first was charged before there was a second");
        assert_eq!(blame.next_to_try(C), Some(EntryId(2)));
        assert_eq!(blame.next_to_try(C), None, "one for each wait");
        assert_eq!(blame.that_wait(C, EntryId(2), true).len(), 2);
        assert_eq!(blame.next_to_try(C), Some(EntryId(3)), "in turn");
        assert!(!blame.may_try(C, EntryId(2), Precedence::Flash));
        assert!(blame.may_try(C, EntryId(9), Precedence::Routine));
        blame.succeeded(C, EntryId(9));
        assert_eq!(blame.next_cleared(C), Some(EntryId(2)));
        assert_eq!(aborted(&mut blame, 2), charged(1), "on its own");
        assert_eq!(blame.next_cleared(C), Some(EntryId(3)));
        assert_eq!(blame.next_cleared(C), None);
        assert_eq!(blame.begin_anew(C).len(), 3);
        assert!(blame.messages.is_empty() && blame.streaks.is_empty());
    }

    #[test]
    fn what_got_through_is_a_suspect_of_no_channel() {
        const B: ChannelId = ChannelId { peer: PeerId(1), index: 1 };
        let mut blame = Blame::default();
        assert_eq!(aborted(&mut blame, 1), charged(1));
        blame.failed(B, (EntryId(1), Precedence::Routine), at(1), true, MAX);
        // An operator opens the other one, and it gets through there.
        assert_eq!(blame.begin_anew(B), BTreeSet::from([EntryId(1)]));
        blame.succeeded(B, EntryId(1));
        assert_eq!(aborted(&mut blame, 2), charged(1), "alone");
        assert_eq!(blame.next_to_try(C), None, "what is gone");
    }

    #[test]
    fn within_one_wait_each_that_fails_is_delayed_once() {
        let mut blame = Blame::default();
        let (mut delayed, all) = (0, 1_000);
        for id in 0..all {
            if let TransferFault::Channel { .. } = aborted(&mut blame, id) {
                let begins = blame.next_round(Instant(0), C).is_ok();
                blame.backs_off_until(C, Instant(9));
                delayed += blame.that_wait(C, EntryId(id), begins).len() as u64;
            }
        }
        assert_eq!(delayed, all - 1, "the first was charged before there was a second");
        assert_eq!(blame.waiting(C).count() as u64, delayed);
        assert_eq!(blame.next_round(Instant(9), C), Ok(2));
        let failed = EntryId(7);
        assert_eq!(blame.that_wait(C, failed, true).len() as u64, delayed, "the next wait");
        assert_eq!(blame.that_wait(C, failed, false), [failed]);
    }

    #[test]
    fn trials_are_bounded_but_for_what_is_higher() {
        let mut blame = Blame::default();
        for id in 0..MAX_TRIALS as u64 {
            assert!(blame.may_try(C, EntryId(id), Precedence::Routine) || id == 0);
            aborted(&mut blame, id);
        }
        assert!(!blame.may_try(C, EntryId(99), Precedence::Routine));
        assert!(blame.may_try(C, EntryId(99), Precedence::Flash));
        assert_eq!(blame.next_round(Instant(0), C), Ok(1));
        blame.backs_off_until(C, Instant(9));
        assert_eq!(blame.next_round(Instant(8), C), Err(Instant(9)));
        assert_eq!(blame.next_round(Instant(9), C), Ok(2));
        for id in 0..MAX_TRIALS as u64 {
            blame.forget(EntryId(id));
        }
        assert!(blame.messages.is_empty());
    }
}
