//! A line on which a checkpoint takes longer than the transfer timer: what is sent arrives at the first
//! try, over the kernel's own TCP. With `cargo xtask test --long` at 2.4, 9.6 and 64 kbit/s with the
//! daemon's timers; else once, with a timer as short as the line is fast.

use super::{assert_arrived, namespace, pair, send};
use std::time::Duration;
use testbed::{Cable, DaemonEvent, PeerSettings};

/// A message of this size over a line of this rate, with this transfer timer.
fn goes_through(cable: &Cable, bit_s: u64, size: &str, octets: u64, timer: Option<&str>) {
    cable.naples.shape(bit_s).unwrap();
    let peer = PeerSettings {
        monologue: true,
        transfer_timeout: timer.map(str::to_owned),
        ..PeerSettings::default()
    };
    let pair = pair(cable, peer.on_demand("300s")).start().unwrap();
    let naples = &pair.naples;
    let sent = send(naples, &pair.act, "routine", size);
    // Twice what the line needs, and some time to open.
    let most = Duration::from_secs(60 + 2 * octets * 8 / bit_s);
    let confirmed = |events: &[DaemonEvent]| {
        events.iter().position(|e| e.is("transfer_confirmed", &sent.mts_identifier))
    };
    naples.wait_for_events("the confirm", most, confirmed).unwrap();
    let events = naples.events().unwrap();
    let of = |event: &str| events.iter().filter(|e| e.event == event).count();
    assert_eq!((of("transfer_started"), of("transfer_failed")), (1, 0), "{bit_s}: {events:?}");
    assert_eq!(of("association_lost"), 0, "{bit_s}: {events:?}");
    cable.naples.unshape().unwrap();
    assert_arrived(&[sent], &pair.act.receive("OPS", 1).unwrap());
}

#[test]
fn what_takes_longer_than_the_timer_arrives_at_the_first_try() {
    let test = "what_takes_longer_than_the_timer_arrives_at_the_first_try";
    let Some(namespace) = namespace(test) else { return };
    let cable = Cable::new(namespace).unwrap();
    if std::env::var_os("LONG").is_none() {
        // 4.5 s and the headers; a checkpoint of 64 KiB would take 8 s.
        return goes_through(&cable, 64_000, "36kB", 36_000, Some("2s"));
    }
    goes_through(&cable, 2_400, "1kB", 1_000, None);
    goes_through(&cable, 2_400, "100kB", 100_000, None);
    goes_through(&cable, 9_600, "200kB", 200_000, None);
    goes_through(&cable, 64_000, "1MB", 1_000_000, None);
}
