//! Demotion within an AF class (RFC 2597 2, with the limits of DEGEB's Table 4-1).

use super::mark;
use crate::classify::FlowTables;
use crate::conditioner::{Conditioner, PacketVerdict};
use crate::count::{Cause, PacketCounters, PartCounters};
use crate::meter::{Bucket, assured};
use crate::packet::Packet;
use crate::policy::{Demotion, KeyFault};
use crate::time::Time;
use dscp::Dscp;

/// A bucket for each drop precedence, with the code point of the packets that conform to it.
#[derive(Debug)]
pub(super) struct Demote {
    af_class: u8,
    shares: [(Bucket, Dscp); 3],
    counters: PacketCounters,
}

impl Demote {
    pub(super) fn new(demotion: &Demotion, path: &str) -> Result<Demote, KeyFault> {
        let class = demotion.af_class;
        let points = [1, 2, 3].map(|drop| Dscp::assured(class, drop));
        let [Some(low), Some(medium), Some(high)] = points else {
            return Err(KeyFault::at(format!("{path}.af_class"), format!("{class} is not 1 to 4")));
        };
        if demotion.burst.0 == 0 {
            let what = "0 octets let nothing pass: at least a packet";
            return Err(KeyFault::at(format!("{path}.burst"), what));
        }
        let [first, second, third] = demotion.rates.map(|rate| Bucket::new(rate, demotion.burst.0));
        let shares = [(first, low), (second, medium), (third, high)];
        Ok(Demote { af_class: class, shares, counters: PacketCounters::default() })
    }
}

impl Conditioner for Demote {
    fn take(&mut self, now: Time, mut packet: Packet, _tables: &FlowTables) -> PacketVerdict {
        let drop = match assured(&packet) {
            Some((class, drop)) if class == self.af_class => drop,
            _ => return PacketVerdict::Pass(packet),
        };
        let length = packet.length();
        self.counters.came(packet.dscp(), length);
        let own = usize::from(drop.saturating_sub(1));
        let mut shares = self.shares.iter_mut().skip(own);
        let taken =
            shares.find_map(|(bucket, dscp)| bucket.take(now, length as u64).then_some(*dscp));
        let Some(dscp) = taken else {
            self.counters.dropped(packet.dscp(), length, Cause::Policed);
            return PacketVerdict::Drop(packet, Cause::Policed);
        };
        mark(&mut self.counters, &mut packet, dscp);
        self.counters.went(packet.dscp(), length);
        PacketVerdict::Pass(packet)
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters { path: path.to_owned(), kind: "demote", counters: &self.counters });
    }
}
