//! Messages over slow lines, in virtual time: a JSON object a line, for `cargo xtask bench slow`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement ends by panicking"
)]

#[path = "../tests/sim/setting/mod.rs"]
mod setting;

use base::Precedence;
use node::config::Connection;
use node::event::Kind;
use setting::{message, pair, seconds, sites};
use sim::{ChannelSetup, SubmissionStart, run};

fn main() {
    for bit_s in [2_400, 9_600, 64_000] {
        for octets in [1_000, 36_000, 100_000] {
            measure(bit_s, octets);
        }
    }
}

/// One message on an association that is opened for it; the line delays by 20 ms and has a queue of
/// 100 packets.
fn measure(bit_s: u64, octets: u64) {
    let mut scenario = pair(&format!("{bit_s}bit"), 20);
    scenario.sites = sites(&ChannelSetup {
        connection: Connection::OnDemand { idle_close: seconds(300) },
        ..ChannelSetup::default()
    });
    scenario.messages.push(message(Precedence::Routine, octets, SubmissionStart::At(seconds(2))));
    scenario.until = seconds(6 * 3_600);
    let outcome = run(&scenario).unwrap();
    let times = &outcome.messages[0];
    let begun = outcome.events.iter().filter(|(_, _, event)| event.kind == Kind::TransferStarted);
    let took = times.delivered.map(|at| (at - times.submitted.unwrap()).as_secs_f64());
    let took = took.map_or_else(|| "null".to_owned(), |seconds| format!("{seconds:.3}"));
    let (new, again) = outcome
        .tcp
        .iter()
        .filter(|one| one.initiator)
        .fold((0, 0), |sum, one| (sum.0 + one.sent.octets, sum.1 + one.sent.resent_octets));
    println!(
        "{{\"bit_s\":{bit_s},\"octets\":{octets},\"line_s\":{:.3},\"delivered_s\":{took},\
         \"intact\":{},\"transfers\":{},\"sent_octets\":{new},\"resent_octets\":{again}}}",
        octets as f64 * 8.0 / bit_s as f64,
        times.intact && times.deliveries == 1,
        begun.count(),
    );
}
