//! Rows that are kept for a table, JSON and pictures; all others only count.

use ::analyse::{Flow, Message, Output};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most messages that are kept.
const MAX_MESSAGES: usize = 10_000;

/// The flows with most octets, and the messages.
#[derive(Debug)]
pub(crate) struct Rows {
    most: usize,
    flows: BTreeMap<(Reverse<u64>, u64), Flow>,
    messages: Vec<Message>,
    number: u64,
    /// Flows that were not kept.
    pub flows_left_out: u64,
    /// Messages that were not kept.
    pub messages_left_out: u64,
}

impl Rows {
    /// For so many flows.
    pub(crate) fn new(most: usize) -> Rows {
        Rows {
            most,
            flows: BTreeMap::new(),
            messages: Vec::new(),
            number: 0,
            flows_left_out: 0,
            messages_left_out: 0,
        }
    }

    /// Takes a row.
    pub(crate) fn push(&mut self, output: Output) {
        match output {
            Output::Flow(flow) => {
                self.number += 1;
                self.flows.insert((Reverse(flow.volume.octets), self.number), *flow);
                if self.flows.len() > self.most {
                    self.flows.pop_last();
                    self.flows_left_out += 1;
                }
            }
            Output::Message(message) if self.messages.len() < MAX_MESSAGES => {
                self.messages.push(*message);
            }
            Output::Message(_) => self.messages_left_out += 1,
        }
    }

    /// The flows, those with most octets first.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.flows.values()
    }

    /// The messages, as they ended.
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }
}
