//! What is kept of an output: its kind, and a digest of all that is in it.

use crate::mask::Masks;
use base::AssociationId;
use node::{Input, Output};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// What is kept of an output. Two are equal if the outputs are, but for passwords: those count by their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Its kind.
    pub kind: OutputKind,
    /// A digest of all that is in it.
    pub digest: u32,
}

/// The variants of [`Output`].
#[expect(missing_docs, reason = "they have the names of the outputs")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputKind {
    Connect,
    Admitted,
    Write,
    Measure,
    Close,
    Drop,
    SpoolOpen,
    SpoolAppend,
    SpoolNote,
    SpoolSync,
    SpoolDiscard,
    Commit,
    Load,
    LookUp,
    ForgetSeen,
    ReadContent,
    ReadFront,
    ReadMailbox,
    ChangePassword,
    Verify,
    Operated,
    Purged,
    ListsChanged,
    ChannelConnected,
    ChannelOrdered,
    Event,
    ShardLeft,
    Stopped,
}

/// Makes fingerprints of the outputs of one node.
#[derive(Debug)]
pub struct Fingerprints {
    /// Our passwords in what is written to others.
    written: Masks,
    scratch: Vec<u8>,
}

impl Default for Fingerprints {
    fn default() -> Fingerprints {
        Fingerprints { written: Masks::of_ours(), scratch: Vec::new() }
    }
}

impl Fingerprints {
    /// Takes note of an input, before the node takes it.
    pub fn input(&mut self, input: &Input) {
        if let Input::Closed { association, .. } | Input::ConnectFailed { association, .. } = input
        {
            self.written.forget(*association);
        }
    }

    /// That of the next output.
    pub fn fingerprint(&mut self, output: &Output) -> Fingerprint {
        if let Output::Drop { association } = output {
            self.written.forget(*association);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let (kind, scratch) = self.encode(output, scratch);
        // The lower half: the rest would double the file, and one in four milliards goes unnoticed.
        let digest = (xxh3_64(&scratch) & u64::from(u32::MAX)) as u32;
        self.scratch = scratch;
        Fingerprint { kind, digest }
    }

    fn encode(&mut self, output: &Output, to: Vec<u8>) -> (OutputKind, Vec<u8>) {
        use OutputKind as Kind;
        match output {
            Output::Connect { association, channel } => {
                (Kind::Connect, put(to, &(association, channel)))
            }
            Output::Admitted { connection, association } => {
                (Kind::Admitted, put(to, &(connection, association)))
            }
            Output::Write { association, bytes } => {
                (Kind::Write, self.write(to, *association, bytes))
            }
            Output::Measure { association } => (Kind::Measure, put(to, association)),
            Output::Close { association } => (Kind::Close, put(to, association)),
            Output::Drop { association } => (Kind::Drop, put(to, association)),
            Output::SpoolOpen { spool } => (Kind::SpoolOpen, put(to, spool)),
            Output::SpoolAppend { spool, association, bytes } => {
                (Kind::SpoolAppend, put(to, &(spool, association, bytes)))
            }
            Output::SpoolNote { spool, association, note } => {
                (Kind::SpoolNote, put(to, &(spool, association, note)))
            }
            Output::SpoolSync { spool, association, token } => {
                (Kind::SpoolSync, put(to, &(spool, association, token)))
            }
            Output::SpoolDiscard { spool } => (Kind::SpoolDiscard, put(to, spool)),
            Output::Commit { token, precedence, batch } => {
                (Kind::Commit, put(to, &(token, precedence, batch)))
            }
            Output::Load { token, precedence, id } => {
                (Kind::Load, put(to, &(token, precedence, id)))
            }
            Output::LookUp { token, precedence, keys } => {
                (Kind::LookUp, put(to, &(token, precedence, keys)))
            }
            Output::ForgetSeen { token, before, most } => {
                (Kind::ForgetSeen, put(to, &(token, before, most)))
            }
            Output::ReadContent { token, association, body, offset, len } => {
                (Kind::ReadContent, put(to, &(token, association, body, offset, len)))
            }
            Output::ReadFront { token, precedence, body, offset, len } => {
                (Kind::ReadFront, put(to, &(token, precedence, body, offset, len)))
            }
            Output::ReadMailbox { token, precedence, read } => {
                (Kind::ReadMailbox, put(to, &(token, precedence, read)))
            }
            // A secret is serialised as a mask of its length.
            Output::ChangePassword { token, mailbox, old, new } => {
                (Kind::ChangePassword, put(to, &(token, mailbox, old, new)))
            }
            Output::Verify { token, principal, password } => {
                (Kind::Verify, put(to, &(token, principal, password)))
            }
            Output::Operated { request, result } => (Kind::Operated, put_rare(to, request, result)),
            Output::Purged { request, result } => (Kind::Purged, put_rare(to, request, result)),
            Output::ListsChanged { request, result } => {
                (Kind::ListsChanged, put_rare(to, request, result))
            }
            Output::ChannelConnected { request, outcome } => {
                (Kind::ChannelConnected, put_rare(to, request, outcome))
            }
            Output::ChannelOrdered { request, result } => {
                (Kind::ChannelOrdered, put_rare(to, request, result))
            }
            Output::Event(event) => (Kind::Event, put(to, event)),
            Output::ShardLeft { shard, stays } => (Kind::ShardLeft, put(to, &(shard, stays))),
            Output::Stopped => (Kind::Stopped, to),
        }
    }

    fn write(&mut self, to: Vec<u8>, association: AssociationId, octets: &[u8]) -> Vec<u8> {
        let mut to = put(to, &association);
        let from = to.len();
        to.extend_from_slice(octets);
        self.written.find(association, octets).put_into(&mut to, from);
        to
    }
}

/// Appends a value. One that cannot be encoded, which none is, counts as none: in the run and in its replay.
fn put(to: Vec<u8>, value: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(value, to).unwrap_or_default()
}

/// Appends the answer to an operator.
fn put_rare(to: Vec<u8>, request: &u64, answer: &impl std::fmt::Debug) -> Vec<u8> {
    put(to, &(request, format!("{answer:?}")))
}
