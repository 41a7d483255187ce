//! Drops an arriving packet while the queue is at or above the threshold of its code point.

use super::early::EarlyVerdict;
use crate::count::Cause;
use crate::packet::Packet;
use dscp::Dscp;
use std::collections::BTreeMap;

/// A threshold for each code point.
#[derive(Debug)]
pub(crate) struct Thresholds([usize; 64]);

impl Thresholds {
    /// Thresholds in packets, by code point; `others` applies to all that are not named.
    pub(crate) fn new(packets: &BTreeMap<Dscp, usize>, others: usize) -> Thresholds {
        let mut thresholds = [others; 64];
        for (dscp, packets) in packets {
            if let Some(threshold) = thresholds.get_mut(usize::from(dscp.number())) {
                *threshold = *packets;
            }
        }
        Thresholds(thresholds)
    }

    /// The disposition of a packet that arrives while `waiting` packets wait.
    pub(crate) fn judge(&self, packet: &Packet, waiting: usize) -> EarlyVerdict {
        match self.0.get(usize::from(packet.dscp().number())) {
            Some(threshold) if waiting >= *threshold => EarlyVerdict::Drop(Cause::Threshold),
            _ => EarlyVerdict::Keep,
        }
    }
}
