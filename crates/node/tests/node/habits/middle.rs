//! A wire that reads the TSDUs of an association and gives its end another peer than the one that is there.

use std::cell::Cell;
use testkit::{Delayed, Wire, WireArrival, WireMoment};

/// What a TSDU is, by its first SPDU that is not the prefix of category 0 (X.225 8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// CONNECT with the bind of an MTA.
    Connect,
    /// CONNECT that recovers: it has no credentials.
    Recovery,
    Accept,
    Finish,
    /// DATA TRANSFER.
    Data,
    MinorSync,
    MinorSyncAck,
    ActivityEnd,
    ActivityEndAck,
    /// PLEASE TOKENS by itself.
    PleaseTokens,
    Other,
}

/// The outcome of a TSDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Carried,
    /// It does not arrive.
    Lost,
    /// The connection ends instead, in both directions.
    Closed,
    /// ABORT by the session provider comes instead, and the end of the connection.
    ProviderAbort,
    /// ABORT by the user without user data comes instead, and the end of the connection.
    UserAbort,
}

thread_local! {
    static RULE: Cell<fn(Seen) -> Outcome> = const { Cell::new(|_| Outcome::Carried) };
    /// How often the rule strikes.
    static LEFT: Cell<u32> = const { Cell::new(0) };
}

/// From now on the peers behave like this, so many times.
pub(crate) fn behave(rule: fn(Seen) -> Outcome, times: u32) {
    RULE.set(rule);
    LEFT.set(times);
}

/// How often they still have to.
pub(crate) fn left() -> u32 {
    LEFT.get()
}

/// The wire of a network.
pub(crate) fn middle() -> Box<dyn Wire> {
    Box::new(Middle::default())
}

#[derive(Debug, Default)]
struct Middle {
    inner: Delayed,
    /// A TPKT that is not whole.
    begun: Vec<u8>,
    /// The first TPKT of a TSDU was carried.
    within: bool,
    /// It carries RTSE: session requirements of a half-duplex connection with activities.
    is_p1: bool,
    /// The connection has ended.
    over: Option<WireArrival>,
}

impl Middle {
    fn tpkt(&mut self, mut moment: WireMoment<'_>, tpkt: Vec<u8>) {
        let [_, _, _, _, _, 0xF0, eot, tsdu @ ..] = &tpkt[..] else {
            return self.carry(&mut moment, tpkt);
        };
        let first = !std::mem::replace(&mut self.within, *eot == 0);
        self.is_p1 |= first && matches!(tsdu[0], 13 | 14) && has(tsdu, b"\x14\x02\x02\x49");
        let outcome = match (first && self.is_p1, LEFT.get()) {
            (false, _) | (_, 0) => Outcome::Carried,
            _ => RULE.get()(seen(tsdu)),
        };
        if outcome != Outcome::Carried {
            LEFT.set(LEFT.get() - 1);
        }
        match outcome {
            Outcome::Carried => self.carry(&mut moment, tpkt),
            // The rules concern TSDUs of one TPKT.
            Outcome::Lost => {}
            Outcome::Closed => self.over = Some(WireArrival::Lost),
            Outcome::ProviderAbort => self.abort(&mut moment, 5),
            Outcome::UserAbort => self.abort(&mut moment, 3),
        }
    }

    fn abort(&mut self, moment: &mut WireMoment<'_>, disconnect: u8) {
        let tpkt = vec![3, 0, 0, 12, 2, 0xF0, 0x80, 0x19, 3, 0x11, 1, disconnect];
        self.carry(moment, tpkt);
        self.over = Some(WireArrival::End);
    }

    fn carry(&mut self, moment: &mut WireMoment<'_>, tpkt: Vec<u8>) {
        let moment = WireMoment { now: moment.now, latency: moment.latency, rng: moment.rng };
        self.inner.write(moment, tpkt.into());
    }
}

fn has(octets: &[u8], part: &[u8]) -> bool {
    octets.windows(part.len()).any(|window| window == part)
}

fn seen(tsdu: &[u8]) -> Seen {
    let spdu = match tsdu {
        [1 | 2, 0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    match spdu[0] {
        13 if has(spdu, b"from-") => Seen::Connect,
        13 => Seen::Recovery,
        14 => Seen::Accept,
        9 => Seen::Finish,
        1 => Seen::Data,
        0x31 => Seen::MinorSync,
        0x32 => Seen::MinorSyncAck,
        0x29 => Seen::ActivityEnd,
        0x2A => Seen::ActivityEndAck,
        2 => Seen::PleaseTokens,
        _ => Seen::Other,
    }
}

impl Wire for Middle {
    fn write(&mut self, moment: WireMoment<'_>, octets: bytes::Bytes) {
        let WireMoment { now, latency, rng } = moment;
        self.begun.extend_from_slice(&octets);
        while self.over.is_none() && self.begun.len() >= 4 {
            let length = usize::from(u16::from_be_bytes([self.begun[2], self.begun[3]]));
            if self.begun.len() < length {
                break;
            }
            let rest = self.begun.split_off(length);
            let tpkt = std::mem::replace(&mut self.begun, rest);
            self.tpkt(WireMoment { now, latency, rng }, tpkt);
        }
        if let Some(WireArrival::Lost | WireArrival::End) = self.over {
            let moment = WireMoment { now, latency, rng };
            self.inner.close(moment);
        }
    }

    fn close(&mut self, moment: WireMoment<'_>) {
        if self.over.is_none() {
            self.inner.close(moment);
        }
    }

    fn deadline(&self) -> Option<base::Instant> {
        self.inner.deadline()
    }

    fn poll(&mut self, now: base::Instant) -> Option<WireArrival> {
        match (self.inner.poll(now)?, &self.over) {
            (WireArrival::End, Some(over)) => Some(over.clone()),
            (arrival, _) => Some(arrival),
        }
    }
}
