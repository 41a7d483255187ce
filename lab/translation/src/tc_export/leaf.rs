//! Queues and their droppers.

use super::{NoScript, ScriptBuilder};
use router::policy::{Dropper, QueueLimit, Queueing, WredLine};

/// Octets assumed for a packet, for disciplines that count octets.
const PACKET: u64 = 1_000;
/// The default limit of a queue, in packets.
const QUEUE: usize = 100;

impl ScriptBuilder<'_> {
    /// Adds a queue at `place`: `root`, or `parent` and a class.
    pub(super) fn leaf(
        &mut self,
        queueing: &Queueing,
        place: &str,
        rate: u64,
    ) -> Result<(), NoScript> {
        let verb = if place == "root" { "replace" } else { "add" };
        let start = format!("tc qdisc {verb} dev {} {place}", self.dev);
        match queueing {
            Queueing::FairFlows { limit, by_precedence, dropper, .. } => {
                let packets = limit.unwrap_or(64);
                if *dropper != (Dropper::Tail {}) {
                    self.leave_out("early drops over all flows of a fair queueing");
                }
                if !self.kernel.has("sfq") {
                    self.leave_out("the kernel has no sfq: flows share one queue");
                    return self.run(&format!("{start} pfifo limit {packets}"), None);
                }
                if by_precedence.unwrap_or(true) {
                    self.leave_out("weights of flows by their precedence: sfq's are all alike");
                }
                let packets = packets.clamp(2, 65_535);
                self.run(&format!("{start} sfq limit {packets} perturb 10"), Some("fair flows"))
            }
            Queueing::Fifo { limit, dropper } => self.queue(&start, limit, dropper, rate),
            _ => Ok(()),
        }
    }

    fn queue(
        &mut self,
        start: &str,
        limit: &QueueLimit,
        dropper: &Dropper,
        rate: u64,
    ) -> Result<(), NoScript> {
        let packets = packets(limit);
        let tail = match packets {
            Some(packets) => format!("{start} pfifo limit {packets}"),
            None => format!("{start} bfifo limit {}", octets(limit).unwrap_or(PACKET * 100)),
        };
        if packets.is_some() && octets(limit).is_some() {
            self.leave_out("a queue limited in packets and in octets: in packets only");
        }
        let packets = packets.unwrap_or(QUEUE);
        match dropper {
            Dropper::Tail {} => self.run(&tail, None),
            Dropper::Thresholds { .. } | Dropper::PushOut(_) => {
                self.leave_out("ordered dropping by code point: the kernel drops what comes last");
                self.run(&tail, Some("ordered dropping"))
            }
            Dropper::Red { line, ecn, .. } if self.kernel.has("red") => {
                let (sizes, ecn) = (sizes(line), if *ecn { " ecn" } else { "" });
                let limit = packets as u64 * PACKET;
                let line = format!("{start} red limit {limit} {sizes} bandwidth {rate}bit{ecn}");
                self.run(&line, Some("RED in octets, a packet taken for 1000"))
            }
            Dropper::Wred { lines, others, .. } if self.kernel.has("gred") && lines.len() < 15 => {
                let named = lines.iter().map(|(dscp, line)| (dscp.to_string(), *line));
                let all = named.chain(others.iter().map(|line| ("others".to_owned(), *line)));
                // Lines of one priority share one average queue, that of the whole queue.
                self.gred(
                    start,
                    &all.map(|(name, line)| (name, line, 1)).collect::<Vec<_>>(),
                    packets,
                )
            }
            Dropper::Trio { green, yellow, red, .. } if self.kernel.has("gred") => {
                let line = |name: &str, curve: &router::policy::Curve, prio| {
                    let of = |percent: f64| (packets as f64 * percent / 100.0).round() as u32;
                    let (min, max) = (of(curve.from), of(curve.all));
                    let denominator = (1.0 / curve.most.max(1e-4)).round() as u32;
                    (name.to_owned(), WredLine { min, max, denominator }, prio)
                };
                let all = [line("green", green, 1), line("yellow", yellow, 2), line("red", red, 3)];
                self.gred(start, &all, packets)
            }
            Dropper::Red { .. } | Dropper::Wred { .. } | Dropper::Trio { .. } => {
                self.leave_out(
                    "early drops: the kernel has no red or gred for them, the tail drops",
                );
                self.run(&tail, Some("early drops"))
            }
        }
    }

    /// Adds a gred line with its priority for each drop precedence. In mode `grio`, gred uses for a
    /// line the packets of its own and all lower priorities; lines of equal priority use all
    /// packets.
    fn gred(
        &mut self,
        start: &str,
        lines: &[(String, WredLine, u8)],
        packets: usize,
    ) -> Result<(), NoScript> {
        self.leave_out(
            "which packet has which drop precedence of gred: it is read from tc_index, which since \
             Linux 6.3 only an eBPF filter sets",
        );
        let handle = format!("{:x}:", 0x8000 + self.number()?);
        let (count, default) = (lines.len().max(1), unclassified(lines));
        let line = format!("{start} handle {handle} gred setup DPs {count} default {default} grio");
        self.run(&line, None)?;
        let (place, limit) = (start.replace("qdisc add", "qdisc change"), packets as u64 * PACKET);
        let place = place.replace("qdisc replace", "qdisc change");
        for (number, (name, line, prio)) in lines.iter().enumerate() {
            let about = format!("the line of {name}, in octets, a packet taken for 1000");
            let line = format!(
                "{place} handle {handle} gred limit {limit} {} bandwidth 100Mbit DP {number} \
                 prio {prio}",
                sizes(line)
            );
            self.run(&line, Some(&about))?;
        }
        Ok(())
    }
}

/// The number of the line for packets without a drop precedence: that of all other packets, that of
/// best effort, or the strictest.
fn unclassified(lines: &[(String, WredLine, u8)]) -> usize {
    let named = |wanted: &str| lines.iter().position(|(name, ..)| name == wanted);
    let strictest = || {
        let numbered = lines.iter().enumerate();
        let strictest = numbered.min_by_key(|(_, (_, line, _))| (line.max, line.min));
        strictest.map_or(0, |(number, _)| number)
    };
    named("others").or_else(|| named("CS0")).unwrap_or_else(strictest)
}

fn octets(limit: &QueueLimit) -> Option<u64> {
    let delay = limit
        .delay
        .map(|(span, rate)| rate.octets_in(u64::try_from(span.0.as_nanos()).unwrap_or(u64::MAX)));
    limit.octets.map(|octets| octets.0).into_iter().chain(delay).min()
}

fn packets(limit: &QueueLimit) -> Option<usize> {
    limit.packets.or_else(|| octets(limit).is_none().then_some(QUEUE))
}

/// The parameters that red and gred share.
fn sizes(line: &WredLine) -> String {
    let (min, max) = (u64::from(line.min.max(1)), u64::from(line.max.max(2)));
    let max = max.max(min + 1);
    // The recommendation of tc(8): (2 min + max) / 3, in packets.
    let burst = (2 * min + max).div_ceil(3).max(min + 1);
    let probability = 1.0 / f64::from(line.denominator.max(1));
    format!(
        "min {} max {} avpkt {PACKET} burst {burst} probability {probability:.4}",
        min * PACKET,
        max * PACKET
    )
}
