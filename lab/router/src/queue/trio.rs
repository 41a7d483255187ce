//! RED with three drop functions, one for each colour (the Bern study's TRIO; with two equal
//! functions, RIO of Clark and Fang 1998). The queue is FIFO.
//!
//! Each arriving packet of any colour updates three average queues: green's counts the waiting
//! green packets, yellow's the green and yellow ones, red's all. A packet meets the average queue
//! of its own colour, so worse packets never cause drops of better ones. Its colour is that of the
//! last meter, else of its AF drop precedence, else green.
//! last meter, else its AF drop precedence, else green.

use super::average::{Average, IdleTime, ONE};
use super::early::EarlyVerdict;
use super::red::DropFunction;
use crate::count::PacketCounters;
use crate::meter::came_with;
use crate::packet::{Colour, Packet};
use crate::policy::Curve;
use crate::time::Time;
use base::rng::Rng;

/// A drop function and its average queue.
#[derive(Debug)]
struct ColourState {
    average: Average,
    function: DropFunction,
    /// Waiting packets of this colour.
    waiting: usize,
}

/// The highest probability of a curve, as numerator and denominator.
fn most(curve: &Curve) -> (u64, u64) {
    const PARTS: u64 = 65_536;
    match (curve.most * PARTS as f64).round() as u64 {
        parts if parts >= PARTS => (1, 1),
        parts => (parts.max(1), PARTS),
    }
}

/// TRIO: three drop functions.
#[derive(Debug)]
pub(crate) struct Trio {
    /// For green, yellow and red packets.
    colours: [ColourState; 3],
    idle: IdleTime,
    ecn: bool,
    rng: Rng,
}

impl Trio {
    /// The percentages of the curves (green, yellow, red) refer to `limit` packets.
    pub(crate) fn new(
        curves: [&Curve; 3],
        limit: usize,
        exponent: u8,
        ecn: bool,
        rng: Rng,
    ) -> Trio {
        let at = |percent: f64| (percent / 100.0 * limit as f64 * ONE as f64) as u64;
        let colours = curves.map(|curve| ColourState {
            average: Average::new(exponent),
            function: DropFunction::new(at(curve.from), at(curve.all), most(curve)),
            waiting: 0,
        });
        Trio { colours, idle: IdleTime::default(), ecn, rng }
    }

    fn state(&mut self, packet: &Packet) -> &mut ColourState {
        let [green, yellow, red] = &mut self.colours;
        match came_with(packet) {
            Colour::Green => green,
            Colour::Yellow => yellow,
            Colour::Red => red,
        }
    }

    /// A packet arrives while `waiting` packets wait.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        packet: &Packet,
        waiting: usize,
        counters: &mut PacketCounters,
    ) -> EarlyVerdict {
        let idle = (waiting == 0).then(|| self.idle.ended(now));
        let mut sum = 0;
        for (place, state) in self.colours.iter_mut().enumerate() {
            sum += state.waiting;
            match idle {
                Some(packets) => state.average.idle(packets),
                None => state.average.meet(sum),
            }
            counters.set_average(place, state.average.packets());
        }
        let mut rng = self.rng.clone();
        let state = self.state(packet);
        let drawn = state.function.draw(state.average.value(), &mut rng);
        self.rng = rng;
        EarlyVerdict::from_draw(drawn, packet, self.ecn)
    }

    pub(crate) fn kept(&mut self, packet: &Packet) {
        self.state(packet).waiting += 1;
    }

    pub(crate) fn went(&mut self, now: Time, packet: &Packet, left: usize) {
        self.lost(packet);
        self.idle.went(now, left);
    }

    pub(crate) fn lost(&mut self, packet: &Packet) {
        let state = self.state(packet);
        state.waiting = state.waiting.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;
    use dscp::Dscp;

    /// The Bern study's curves: red is dropped from 0 on, all of it from 20 % of 200 packets; green
    /// from 80 to 100 %.
    fn bern() -> Trio {
        let curve = |from, all| Curve { from, all, most: 1.0 };
        let curves = [&curve(80.0, 100.0), &curve(20.0, 80.0), &curve(0.0, 20.0)];
        Trio::new(curves, 200, 4, false, Rng::new(5))
    }

    fn packet_of(colour: Colour) -> Packet {
        Packet { colour: Some(colour), ..packet(Dscp::CS0, 100, 1, 0) }
    }

    /// Makes `packets` packets of a colour wait, and brings the average queues to it.
    fn fill(trio: &mut Trio, colour: Colour, packets: usize) {
        for _ in 0..packets {
            trio.kept(&packet_of(colour));
        }
        let waiting = trio.colours.iter().map(|state| state.waiting).sum();
        for _ in 0..500 {
            trio.judge(Time::ZERO, &packet_of(colour), waiting, &mut PacketCounters::default());
        }
    }

    fn share_dropped(trio: &mut Trio, colour: Colour) -> f64 {
        let waiting = trio.colours.iter().map(|state| state.waiting).sum();
        let packet = packet_of(colour);
        let mut one = |_| {
            trio.judge(Time::ZERO, &packet, waiting, &mut PacketCounters::default())
                != EarlyVerdict::Keep
        };
        (0..20_000).filter(|n| one(*n)).count() as f64 / 20_000.0
    }

    #[test]
    fn worse_packets_do_not_make_better_ones_be_dropped() {
        let mut trio = bern();
        fill(&mut trio, Colour::Red, 150);
        assert_eq!(share_dropped(&mut trio, Colour::Green), 0.0);
        assert_eq!(share_dropped(&mut trio, Colour::Yellow), 0.0);
        assert_eq!(share_dropped(&mut trio, Colour::Red), 1.0);
    }

    #[test]
    fn better_packets_count_for_worse_ones() {
        let mut trio = bern();
        fill(&mut trio, Colour::Green, 100);
        assert_eq!(share_dropped(&mut trio, Colour::Green), 0.0);
        let yellow = share_dropped(&mut trio, Colour::Yellow);
        assert!((yellow - 0.5).abs() < 0.02, "halfway from 40 to 160: {yellow}");
        assert_eq!(share_dropped(&mut trio, Colour::Red), 1.0);
        fill(&mut trio, Colour::Green, 80);
        let green = share_dropped(&mut trio, Colour::Green);
        assert!((green - 0.5).abs() < 0.02, "halfway from 160 to 200: {green}");
    }

    #[test]
    fn a_curve_may_end_below_certainty_and_mark() {
        // RIO: in-profile packets to 2 %, out-of-profile packets to 50 %.
        let curves = [
            &Curve { from: 40.0, all: 70.0, most: 0.02 },
            &Curve { from: 10.0, all: 60.0, most: 0.5 },
            &Curve { from: 10.0, all: 60.0, most: 0.5 },
        ];
        let mut rio = Trio::new(curves, 200, 4, true, Rng::new(5));
        fill(&mut rio, Colour::Green, 110);
        let [green, yellow] =
            [Colour::Green, Colour::Yellow].map(|colour| share_dropped(&mut rio, colour));
        assert!((green - 0.01).abs() < 0.002, "half of 2 %: {green}");
        assert!((yellow - 0.45).abs() < 0.02, "nine tenths of 50 %: {yellow}");
        let capable = Packet {
            colour: Some(Colour::Yellow),
            ..crate::testing::with_ecn(Dscp::CS0, 100, 1, 0, 1)
        };
        let mut dispositions =
            (0..100).map(|_| rio.judge(Time::ZERO, &capable, 110, &mut PacketCounters::default()));
        assert!(dispositions.any(|disposition| disposition == EarlyVerdict::Mark));
        assert!(
            dispositions
                .all(|disposition| matches!(disposition, EarlyVerdict::Mark | EarlyVerdict::Keep))
        );
    }

    #[test]
    fn what_goes_is_taken_off_its_colour() {
        let mut trio = bern();
        let red = Packet { colour: None, ..packet(Dscp::AF13, 100, 1, 0) };
        trio.kept(&red);
        assert_eq!(trio.colours[2].waiting, 1, "AF13 is red");
        trio.went(Time(1), &red, 0);
        assert!(trio.colours.iter().all(|state| state.waiting == 0));
    }
}
