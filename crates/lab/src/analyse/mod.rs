//! Captures analysed: files and live interfaces into [`analyse::Analysis`], its rows into tables,
//! JSON, CSV and pictures.

mod csv;
mod json;
mod merge;
mod pictures;
mod rows;
mod source;
mod table;

pub use csv::Csv;
pub use json::json;
pub use merge::{Feed, files};
pub use pictures::pictures;
pub use rows::Rows;
pub use source::{Cut, Source};
pub use table::table;

use ::analyse::{Analysis, Frame, Link, Time};
use anyhow::{Context as _, Result};
use std::time::Duration;

use crate::clock::{self, Deadline};
use crate::packet_socket::PacketSocket;

/// How often a live capture looks whether it shall end, and its view is drawn.
const LOOK: Duration = Duration::from_millis(200);

/// Frames of an interface of our namespace, as they pass, until the time is over or the program is
/// interrupted. `look` is called several times a second.
///
/// # Errors
/// The interface is not there or may not be listened to; what `each` or `look` says.
pub fn live(
    interface: &str,
    time: Option<Duration>,
    analysis: &mut Analysis,
    mut each: impl FnMut(&mut Analysis) -> Result<()>,
    mut look: impl FnMut(&Analysis) -> Result<()>,
) -> Result<()> {
    let opened = PacketSocket::open(interface, LOOK);
    let mut socket = opened.with_context(|| {
        format!(
            "listening at {interface} (it takes root, or CAP_NET_RAW; or inside: lab exec HOST)"
        )
    })?;
    let point = analysis.point(interface.to_owned(), link_of(interface));
    let end = time.map(Deadline::after);
    let mut next_look = Deadline::after(LOOK);
    while !clock::is_interrupted() && end.is_none_or(|end| !end.has_passed()) {
        if let Some(octets) = socket.receive()? {
            let now = Time::from(clock::since_1970());
            let original = u32::try_from(octets.len())?;
            analysis.handle(now, Frame { point, original, octets });
            each(analysis)?;
        }
        if next_look.has_passed() {
            look(analysis)?;
            next_look = Deadline::after(LOOK);
        }
    }
    Ok(())
}

/// How frames of an interface begin, by its type (if_arp.h): a TUN device and tunnels have no link
/// header.
fn link_of(interface: &str) -> Link {
    let path = format!("/sys/class/net/{interface}/type");
    let kind = std::fs::read_to_string(path).unwrap_or_default();
    match kind.trim().parse::<u32>() {
        Ok(65_534 | 768 | 769 | 776 | 778 | 823) => Link::Raw,
        _ => Link::Ethernet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Clock, Header};

    #[test]
    fn what_our_load_writes_is_what_an_analysis_reads() {
        for (clock, end) in [(Clock::Monotonic, false), (Clock::Realtime, true)] {
            let (run, flow, sequence, sent, length) = (1, 2, 3 << 40, 4 << 40, 972);
            let header = Header { run, flow, sequence, sent, clock, length, end };
            let read = ::analyse::payload::Header::read(&header.write()).unwrap();
            assert_eq!(
                (read.run, read.flow, read.sequence, read.sent),
                (run, flow, sequence, sent)
            );
            assert_eq!((read.since_1970, read.end), (clock == Clock::Realtime, end));
        }
    }

    #[test]
    fn the_loopback_has_an_ethernet_header() {
        assert_eq!(link_of("lo"), Link::Ethernet);
        assert_eq!(link_of("no such interface"), Link::Ethernet);
    }
}
