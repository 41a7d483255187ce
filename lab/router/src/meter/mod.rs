//! Meters (RFC 2475 2.3.3.1): they colour a packet by the traffic before it. All buckets start
//! full.

mod bucket;

pub use bucket::Bucket;

use crate::packet::{Colour, Packet};
use crate::policy::{self, KeyFault};
use crate::time::Time;

/// A meter of one of three kinds.
#[derive(Clone, Debug)]
pub enum ColourMeter {
    /// A token bucket: green or red.
    TokenBucket(Bucket),
    /// The single rate three color marker (RFC 2697).
    SingleRate {
        /// Fills at the committed information rate up to the committed burst size.
        committed: Bucket,
        /// Fills with the tokens that exceed the other bucket, up to the excess burst size.
        excess: Bucket,
        /// Colour-aware mode: the packet's previous colour counts.
        colour_aware: bool,
    },
    /// The two rate three color marker (RFC 2698).
    TwoRate {
        /// Fills at the committed information rate up to the committed burst size.
        committed: Bucket,
        /// Fills at the peak information rate up to the peak burst size.
        peak: Bucket,
        /// Colour-aware mode: the packet's previous colour counts.
        colour_aware: bool,
    },
}

impl ColourMeter {
    /// The meter that a policy describes. `path` names it in messages.
    ///
    /// # Errors
    /// Buckets that no packet can pass, or a peak rate below the committed rate.
    pub fn new(policy: &policy::MeterProfile, path: &str) -> Result<ColourMeter, KeyFault> {
        let wrong = |key: &str, what: String| Err(KeyFault::at(format!("{path}.{key}"), what));
        match *policy {
            policy::MeterProfile::TokenBucket { rate, burst } => {
                if burst.0 == 0 {
                    return wrong("burst", "0 octets let nothing pass: at least a packet".into());
                }
                Ok(ColourMeter::TokenBucket(Bucket::new(rate, burst.0)))
            }
            policy::MeterProfile::SingleRate { cir, cbs, ebs, colour_aware } => {
                if cbs.0 == 0 && ebs.0 == 0 {
                    return wrong("cbs", "cbs or ebs must be above 0 octets (RFC 2697 2)".into());
                }
                let committed = Bucket::new(cir, cbs.0);
                Ok(ColourMeter::SingleRate {
                    committed,
                    excess: Bucket::new(cir, ebs.0),
                    colour_aware,
                })
            }
            policy::MeterProfile::TwoRate { cir, cbs, pir, pbs, colour_aware } => {
                if pir < cir {
                    return wrong("pir", format!("{pir} is below cir, {cir} (RFC 2698 2)"));
                }
                for (key, octets) in [("cbs", cbs), ("pbs", pbs)] {
                    if octets.0 == 0 {
                        return wrong(key, "must be above 0 octets (RFC 2698 2)".into());
                    }
                }
                let committed = Bucket::new(cir, cbs.0);
                Ok(ColourMeter::TwoRate { committed, peak: Bucket::new(pir, pbs.0), colour_aware })
            }
        }
    }

    /// The colour of a packet of `octets` octets that has the previous colour `came`. Removes the
    /// tokens of the packet.
    #[inline]
    pub fn colour(&mut self, now: Time, octets: u64, came: Colour) -> Colour {
        match self {
            ColourMeter::TokenBucket(bucket) => match bucket.take(now, octets) {
                true => Colour::Green,
                false => Colour::Red,
            },
            // RFC 2697 3.
            ColourMeter::SingleRate { committed, excess, colour_aware } => {
                let came = if *colour_aware { came } else { Colour::Green };
                committed.refill_over(now, excess);
                if came == Colour::Green && committed.has(octets) {
                    committed.decrement(octets);
                    Colour::Green
                } else if came != Colour::Red && excess.has(octets) {
                    excess.decrement(octets);
                    Colour::Yellow
                } else {
                    Colour::Red
                }
            }
            // RFC 2698 3.
            ColourMeter::TwoRate { committed, peak, colour_aware } => {
                let came = if *colour_aware { came } else { Colour::Green };
                committed.refill(now);
                peak.refill(now);
                if came == Colour::Red || !peak.has(octets) {
                    return Colour::Red;
                }
                peak.decrement(octets);
                if came == Colour::Yellow || !committed.has(octets) {
                    return Colour::Yellow;
                }
                committed.decrement(octets);
                Colour::Green
            }
        }
    }
}

/// The colour of a packet before metering: that of an earlier meter, else that of its AF drop
/// precedence (RFC 2597 2), else green.
pub fn came_with(packet: &Packet) -> Colour {
    packet.colour.unwrap_or_else(|| match assured(packet) {
        Some((_, 2)) => Colour::Yellow,
        Some((_, 3)) => Colour::Red,
        _ => Colour::Green,
    })
}

/// The AF class and drop precedence of a packet (RFC 2597 6).
pub fn assured(packet: &Packet) -> Option<(u8, u8)> {
    let number = packet.dscp().number();
    let (class, drop) = (number >> 3, (number & 7) >> 1);
    let is = (1..=4).contains(&class) && (1..=3).contains(&drop) && number & 1 == 0;
    is.then_some((class, drop))
}

/// The drop precedence for a colour: 1, 2 and 3 for green, yellow and red.
pub fn drop_precedence(colour: Colour) -> u8 {
    match colour {
        Colour::Green => 1,
        Colour::Yellow => 2,
        Colour::Red => 3,
    }
}

#[cfg(test)]
mod tests;
