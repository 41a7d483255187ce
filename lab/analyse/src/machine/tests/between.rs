//! The same packets at several points.

use super::*;

/// A payload with a number in it.
fn payload(number: u32) -> [u8; 32] {
    let mut payload = [0; 32];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    payload
}

#[test]
fn delay_loss_jitter_and_marks_on_the_path() {
    let mut bench = Bench::new(Limits::default(), 3);
    for n in 0..100u32 {
        let at = u64::from(n) * 10 * MS;
        let octets = payload(n);
        let sent = Sent { dscp: Dscp::EF, identification: n as u16, payload: &octets, ..UDP };
        bench.packet(at, 0, &sent);
        if n % 10 == 5 {
            continue;
        }
        // Every second one takes 2 ms longer; the second router bleaches.
        bench.packet(at + 3 * MS + u64::from(n % 2) * 2 * MS, 1, &Sent { ttl: 63, ..sent });
        if n % 20 == 8 {
            continue;
        }
        let dscp = if n < 50 { Dscp::CS0 } else { Dscp::EF };
        bench.packet(at + 9 * MS, 2, &Sent { ttl: 62, dscp, ..sent });
    }
    bench.finish();
    let hops = bench.analysis.hops();
    let ends: Vec<_> = hops.iter().map(|of| (of.from, of.to, of.packets, of.lost)).collect();
    assert_eq!(ends, [(0, 1, 90, 10), (0, 2, 85, 15), (1, 2, 85, 5)]);
    assert_eq!((hops[0].delay.least(), hops[0].delay.most()), (Some(3_000_000), Some(5_000_000)));
    let (mean, most) = hops[0].jitter.unwrap();
    assert!(mean > 1.2e6 && most < 2e6, "{mean} {most}");
    assert_eq!((hops[0].bleached(), hops[1].bleached(), hops[2].bleached()), (0, 42, 42));
    assert_eq!(hops[2].remarked, [(Dscp::CS0, 42)]);
    let whole: u64 = hops[1].series.iter().map(|(_, mean)| mean.count).sum();
    assert_eq!(whole, 85);
}

#[test]
fn clocks_that_differ_leave_the_path_known_by_the_time_to_live() {
    let mut bench = Bench::new(Limits::default(), 2);
    for n in 0..10u32 {
        let octets = payload(n);
        let sent = Sent { identification: n as u16, payload: &octets, ..UDP };
        // The second point's clock is 50 ms behind.
        let at = 1_000 * MS + u64::from(n) * 100 * MS;
        bench.packet(at - 46 * MS, 1, &Sent { ttl: 63, ..sent });
        bench.packet(at, 0, &sent);
    }
    bench.finish();
    let hops = bench.analysis.hops();
    assert_eq!((hops.len(), hops[0].from, hops[0].to), (1, 0, 1));
    assert_eq!(hops[0].delay.least(), Some(-46_000_000));
    assert_eq!(hops[0].delay.percentile(0.5), None);
}

#[test]
fn packets_of_flows_that_go_elsewhere_are_not_lost() {
    let mut bench = Bench::new(Limits::default(), 2);
    for n in 0..20u32 {
        let octets = payload(n);
        let at = u64::from(n) * MS;
        let through = Sent { identification: n as u16, payload: &octets, ..UDP };
        let local = Sent { destination: 77, ..through };
        bench.packet(at, 0, &through);
        bench.packet(at, 0, &local);
        // Before the first and behind the last that both saw, nobody knows.
        if (5..15).contains(&n) {
            bench.packet(at + 100, 1, &Sent { ttl: 63, ..through });
        }
    }
    bench.finish();
    let hops = bench.analysis.hops();
    assert_eq!((hops.len(), hops[0].packets, hops[0].lost), (1, 10, 0));
}

#[test]
fn packets_in_transit_are_bounded_in_time_and_number() {
    let limits = Limits { sightings: 16, window: 5 * MS, ..Limits::default() };
    let mut bench = Bench::new(limits, 2);
    for n in 0..100u32 {
        let octets = payload(n);
        let sent = Sent { identification: n as u16, payload: &octets, ..UDP };
        bench.packet(1_000 + u64::from(n), 0, &sent);
    }
    assert_eq!(bench.analysis.totals().sightings_evicted, 84);
    // Within the number, but too late.
    let octets = payload(99);
    let late = Sent { identification: 99, payload: &octets, ttl: 63, ..UDP };
    bench.packet(2_000 + 6 * MS, 1, &late);
    bench.finish();
    assert!(bench.analysis.hops().is_empty());
}
