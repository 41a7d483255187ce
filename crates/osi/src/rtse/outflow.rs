//! The octets of one transfer as they are sent: EXTERNAL, APDU, cut into RTTRs at checkpoints.

use crate::api::{Payload, ResumePoint};
use crate::session::service::ExceptionReason;
use base::ber::{Header, Length, Tag, Writer, universal as u};
use bytes::Bytes;
use std::collections::VecDeque;

/// Most octets asked for at once.
pub(crate) const PULL: usize = 64 * 1024;

/// The next piece to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// These octets.
    Ready(Bytes),
    /// Octets of the pulled content.
    Pull {
        /// Offset in the content.
        offset: u64,
        /// Most octets.
        max: usize,
    },
}

/// A unit whose middle is pulled: head, content, tail.
#[derive(Clone, Debug)]
pub(crate) struct Pulled {
    head: Bytes,
    content: u64,
    tail: Bytes,
}

impl Pulled {
    /// `before`, then the payload, then `after`.
    pub(crate) fn new(before: &[u8], payload: &Payload, after: &[u8]) -> Pulled {
        let join = |a: &[u8], b: &[u8]| Bytes::from([a, b].concat());
        Pulled {
            head: join(before, &payload.head),
            content: payload.content_length,
            tail: join(&payload.tail, after),
        }
    }

    /// Octets held: all but the content.
    pub(crate) fn held(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Octets in all.
    pub(crate) fn length(&self) -> u64 {
        self.head.len() as u64 + self.content + self.tail.len() as u64
    }

    /// The octets from `at` on, no further than `end`.
    pub(crate) fn piece(&self, at: u64, end: u64) -> Piece {
        let head = self.head.len() as u64;
        let content_end = head + self.content;
        if at >= head && at < content_end {
            let most = (end.min(content_end) - at).min(PULL as u64);
            return Piece::Pull { offset: at - head, max: usize::try_from(most).unwrap_or(PULL) };
        }
        let (part, from) =
            if at < head { (&self.head, at) } else { (&self.tail, at - content_end) };
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(part.len());
        let most = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        Piece::Ready(part.slice(from..from.saturating_add(most).min(part.len())))
    }
}

/// One transfer being sent.
#[derive(Clone, Debug)]
pub(super) struct Outflow {
    pub(super) activity: i64,
    /// Octets before the APDU: the EXTERNAL's headers.
    frame: u64,
    octets: Pulled,
    /// Offset of the next octet.
    pub(super) next: u64,
    /// End of the RTTR being sent, where one is.
    pub(super) end: Option<u64>,
    /// Octets between checkpoints.
    checkpoint: Option<u64>,
    /// Serial number of the next checkpoint.
    serial: u32,
    /// Checkpoints not confirmed: serial number and offset.
    unconfirmed: VecDeque<(u32, u64)>,
    /// The last confirmed.
    confirmed: Option<(u32, u64)>,
    /// Most octets of the content that was asked for, while it was not answered.
    pub(super) waiting: Option<usize>,
    /// The receiver's exception, with its reason if the report has one.
    pub(super) exception: Option<Option<ExceptionReason>>,
    /// Stop at the next checkpoint.
    pub(super) interrupt: bool,
    /// Send nothing beyond the next checkpoint.
    pub(super) pause: bool,
    /// The pause was indicated to the user.
    pub(super) pause_indicated: bool,
    /// Resumes an earlier activity.
    pub(super) resumed: bool,
    /// Its end was sent (S-ACTIVITY-END).
    pub(super) ended: bool,
}

/// The headers of an EXTERNAL around `length` octets, and what follows them.
fn external(context: i64, length: u64, indefinite: bool) -> (Vec<u8>, Vec<u8>) {
    let mut w = Writer::new();
    if indefinite {
        w.header(u::EXTERNAL, true, Length::Indefinite);
        w.integer(u::INTEGER, context);
        w.header(Tag::context(0), true, Length::Indefinite);
        return (w.into_vec(), vec![0; 4]);
    }
    let mut reference = Writer::new();
    reference.integer(u::INTEGER, context);
    let length = Length::Definite(length);
    let inner = Header::encoded_size(Tag::context(0), length) + reference.as_slice().len();
    let Length::Definite(octets) = length else { return (Vec::new(), Vec::new()) };
    w.header(u::EXTERNAL, true, Length::Definite(inner as u64 + octets));
    w.raw(reference.as_slice());
    w.header(Tag::context(0), true, length);
    (w.into_vec(), Vec::new())
}

impl Outflow {
    /// A transfer under a new activity identifier; `checkpoint` is in octets. Without a `context` the APDU goes
    /// bare, as in X.410 mode.
    pub(super) fn new(
        activity: i64,
        payload: &Payload,
        context: Option<i64>,
        checkpoint: Option<u64>,
        indefinite: bool,
        resume: Option<&ResumePoint>,
    ) -> Outflow {
        let (before, after) = context
            .map(|context| external(context, payload.length(), indefinite))
            .unwrap_or_default();
        let octets = Pulled::new(&before, payload, &after);
        let frame = before.len() as u64;
        let start = resume.map(|r| (r.serial, (frame + r.octets).min(octets.length())));
        Outflow {
            activity,
            frame,
            octets,
            next: start.map_or(0, |(_, offset)| offset),
            end: None,
            checkpoint,
            serial: start.map_or(1, |(serial, _)| serial.saturating_add(1)),
            unconfirmed: VecDeque::new(),
            confirmed: start,
            waiting: None,
            exception: None,
            interrupt: false,
            pause: false,
            pause_indicated: false,
            resumed: resume.is_some(),
            ended: false,
        }
    }

    /// Whether all was sent.
    pub(super) fn is_sent(&self) -> bool {
        self.end.is_none() && self.next >= self.octets.length()
    }

    /// Whether it pauses here: between two RTTRs, behind a checkpoint that is confirmed, with
    /// something left to send.
    pub(super) fn holds(&self) -> bool {
        let behind = self.end.is_none() && self.unconfirmed.is_empty() && self.confirmed.is_some();
        self.pause && !self.interrupt && behind && !self.is_sent()
    }

    /// Begins an RTTR; gives its length in octets.
    pub(super) fn begin(&mut self) -> u64 {
        let left = self.octets.length().saturating_sub(self.next);
        let length = self.checkpoint.map_or(left, |c| c.min(left));
        self.end = Some(self.next + length);
        length
    }

    /// The next piece of the RTTR.
    pub(super) fn piece(&self) -> Piece {
        self.octets.piece(self.next, self.end.unwrap_or(self.next))
    }

    /// Octets left in the RTTR.
    pub(super) fn left(&self) -> u64 {
        self.end.map_or(0, |end| end.saturating_sub(self.next))
    }

    /// So many octets went out; whether they end the RTTR.
    pub(super) fn sent(&mut self, octets: usize) -> bool {
        self.next += octets as u64;
        let ended = self.end.is_some_and(|end| self.next >= end);
        if ended {
            self.end = None;
        }
        ended
    }

    /// A checkpoint was set after what was sent.
    pub(super) fn checkpoint_set(&mut self) {
        self.unconfirmed.push_back((self.serial, self.next));
        self.serial = self.serial.saturating_add(1);
    }

    /// Checkpoints not confirmed.
    pub(super) fn outstanding(&self) -> usize {
        self.unconfirmed.len()
    }

    /// This checkpoint and all earlier are confirmed; false where it is none of ours.
    pub(super) fn confirm(&mut self, serial: u32) -> bool {
        if !self.unconfirmed.iter().any(|(s, _)| *s == serial) {
            return false;
        }
        while let Some(first) = self.unconfirmed.front().copied() {
            if first.0 > serial {
                break;
            }
            self.confirmed = Some(first);
            self.unconfirmed.pop_front();
        }
        true
    }

    /// The last confirmed checkpoint: serial number and octets of the APDU before it.
    pub(super) fn confirmed(&self) -> Option<(u32, u64)> {
        self.confirmed.map(|(serial, offset)| (serial, offset.saturating_sub(self.frame)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole stream, its content made of the offsets' low octets.
    fn stream(mut outflow: Outflow) -> (Vec<u8>, Vec<usize>) {
        let (mut all, mut lengths) = (Vec::new(), Vec::new());
        while !outflow.is_sent() {
            let length = outflow.begin();
            lengths.push(length as usize);
            loop {
                let piece = match outflow.piece() {
                    Piece::Ready(bytes) => bytes.to_vec(),
                    Piece::Pull { offset, max } => {
                        (offset..offset + max as u64).map(|o| o as u8).collect()
                    }
                };
                assert!(!piece.is_empty());
                all.extend(&piece);
                if outflow.sent(piece.len()) {
                    break;
                }
            }
        }
        (all, lengths)
    }

    fn payload(content: u64) -> Payload {
        Payload {
            head: Bytes::from_static(b"head"),
            content_length: content,
            tail: Bytes::from_static(b"tail!"),
        }
    }

    #[test]
    fn chunks_make_the_external_whatever_their_size() {
        let whole = stream(Outflow::new(1, &payload(5000), Some(5), None, false, None));
        assert_eq!(whole.1, [whole.0.len()]);
        assert_eq!(whole.0[..11], [0x28, 0x82, 0x13, 0x98, 2, 1, 5, 0xa0, 0x82, 0x13, 0x91]);
        assert_eq!(whole.0[11..15], *b"head");
        assert!(whole.0.ends_with(b"tail!"));
        let cut = stream(Outflow::new(1, &payload(5000), Some(5), Some(1024), false, None));
        assert_eq!(cut.0, whole.0);
        assert_eq!(cut.1, [1024, 1024, 1024, 1024, 924]);
    }

    #[test]
    fn a_resumed_stream_is_the_rest() {
        let (whole, _) = stream(Outflow::new(1, &payload(5000), Some(5), None, true, None));
        let reference = crate::session::service::ConnectionReference::default();
        let resume = ResumePoint { reference, activity: 1, serial: 2, octets: 2048 - 7 };
        let (rest, _) =
            stream(Outflow::new(2, &payload(5000), Some(5), Some(1024), true, Some(&resume)));
        assert_eq!(rest, whole[2048..]);
    }

    #[test]
    fn one_confirm_covers_the_earlier_checkpoints() {
        let mut outflow = Outflow::new(1, &payload(5000), Some(5), Some(1024), false, None);
        for _ in 0..3 {
            let length = outflow.begin() as usize;
            assert!(outflow.sent(length));
            outflow.checkpoint_set();
        }
        assert!(!outflow.confirm(4) && outflow.outstanding() == 3);
        assert!(outflow.confirm(2));
        assert_eq!((outflow.outstanding(), outflow.confirmed()), (1, Some((2, 2048 - 11))));
        assert!(!outflow.confirm(1));
    }
}
