//! Makes a recording, as octets for whoever writes them.

use crate::fingerprint::{Fingerprint, Fingerprints};
use crate::format::{End, FRAME, RecordRef, append, preamble};
use crate::header::Header;
use crate::mask::{Key, Masks};
use base::{AssociationId, Now};
use node::config::{ListenerService, NodeConfig};
use node::{Input, ListenerId, Output};
use std::collections::BTreeSet;

/// Octets that are kept for the last record.
const ROOM_FOR_END: u64 = 256;

/// Records the inputs of one node from its start.
///
/// Before the node takes an input, [`Recorder::input`]; then [`Recorder::output`] for each output, and
/// [`Recorder::step_ended`]. After each of them [`Recorder::take`] has octets for the file.
#[derive(Debug)]
pub struct Recorder {
    made: Vec<u8>,
    number: u64,
    written: u64,
    limit: u64,
    presented: Masks,
    fingerprints: Fingerprints,
    outputs: Vec<Fingerprint>,
    /// Listeners where users call.
    for_users: BTreeSet<ListenerId>,
    /// The listener of the connection that is admitted next is one of these.
    user_arrives: bool,
    has_stopped: bool,
    ended: Option<End>,
}

impl Recorder {
    /// A recording of the node of this header, of at most `limit` octets. The key masks the passwords that others
    /// present: it is of this recording alone, and nobody keeps it.
    #[must_use]
    pub fn new(header: &Header, limit: u64, key: Key) -> Recorder {
        let made = preamble();
        let mut recorder = Recorder {
            written: made.len() as u64,
            made,
            number: 0,
            limit,
            presented: Masks::of_others(key),
            fingerprints: Fingerprints::default(),
            outputs: Vec::new(),
            for_users: BTreeSet::new(),
            user_arrives: false,
            has_stopped: false,
            ended: None,
        };
        recorder.know(&header.config);
        recorder.put(&RecordRef::Header(header));
        recorder
    }

    /// An input that the node takes next.
    pub fn input(&mut self, now: Now, input: &Input) {
        if self.ended.is_some() {
            return;
        }
        self.fingerprints.input(input);
        match input {
            Input::Bytes { association, bytes } => {
                let masked = self.presented.find(*association, bytes);
                if masked.blanked() > 0 {
                    self.put(&RecordRef::Blanked(masked.blanked()));
                    if self.ended.is_some() {
                        return;
                    }
                }
                let bytes = masked.copy(bytes);
                let masked = Input::Bytes { association: *association, bytes };
                return self.put(&RecordRef::Input(now, &masked));
            }
            Input::Accepted { listener, .. } => {
                self.user_arrives = self.for_users.contains(listener);
            }
            Input::Closed { association, .. } | Input::ConnectFailed { association, .. } => {
                self.presented.forget(*association);
            }
            Input::Configure { config, .. } => self.know(config),
            _ => {}
        }
        self.put(&RecordRef::Input(now, input));
    }

    /// An output of the node.
    pub fn output(&mut self, output: &Output) {
        if self.ended.is_some() {
            return;
        }
        match output {
            Output::Admitted { association: Some(association), .. } => self.admitted(*association),
            Output::Drop { association } => self.presented.forget(*association),
            Output::Stopped => self.has_stopped = true,
            _ => {}
        }
        let fingerprint = self.fingerprints.fingerprint(output);
        self.outputs.push(fingerprint);
    }

    /// The node has no more outputs.
    pub fn step_ended(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        self.put(&RecordRef::Outputs(&outputs));
        outputs.clear();
        self.outputs = outputs;
        if self.has_stopped {
            self.end(End::Stopped);
        }
    }

    /// Ends the recording, if it has not ended.
    pub fn end(&mut self, why: End) {
        if self.ended.is_none() {
            // There is room for it.
            if append(&mut self.made, self.number, &RecordRef::End(&why)).is_ok() {
                self.number += 1;
            }
            self.ended = Some(why);
        }
    }

    /// Why the recording has ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<&End> {
        self.ended.as_ref()
    }

    /// What is to be written: moved behind what is in `to`.
    pub fn take(&mut self, to: &mut Vec<u8>) {
        to.append(&mut self.made);
    }

    fn admitted(&mut self, association: AssociationId) {
        if std::mem::take(&mut self.user_arrives) {
            self.presented.of_user(association);
        }
    }

    fn know(&mut self, config: &NodeConfig) {
        let of_users = config.listeners.iter().filter(|listener| match listener.service {
            ListenerService::P3 { .. } | ListenerService::P7 { .. } => true,
            ListenerService::P1 { .. } => false,
        });
        self.for_users = of_users.map(|listener| listener.id).collect();
    }

    /// Appends a record, unless it would pass the limit.
    fn put(&mut self, record: &RecordRef<'_>) {
        let before = self.made.len();
        if let Err(why) = append(&mut self.made, self.number, record) {
            return self.end(End::Record(why));
        }
        let length = (self.made.len() - before) as u64;
        if self.written + length + ROOM_FOR_END > self.limit.max(FRAME as u64) {
            self.made.truncate(before);
            return self.end(End::Limit(self.limit));
        }
        self.number += 1;
        self.written += length;
    }
}
