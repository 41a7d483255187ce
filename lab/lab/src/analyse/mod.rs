//! Captures analysed: files and live interfaces into [`analyse::Analysis`], its rows into tables,
//! JSON, CSV and pictures.

mod csv;
mod json;
mod merge;
mod pictures;
mod rows;
mod source;
mod table;

pub(crate) use csv::Csv;
pub(crate) use json::json;
pub(crate) use merge::{Feed, files};
pub(crate) use pictures::pictures;
pub(crate) use rows::Rows;
pub(crate) use source::{Cut, Source};
pub(crate) use table::table;

use ::analyse::{Analysis, Frame, LinkType, Time};
use anyhow::{Context as _, Result};
use std::time::Duration;

use testbed::clock::{self, Deadline};
use testbed::packet_socket::PacketSocket;
use text::UsageError;

/// How often a live capture looks whether it shall end, and its view is drawn.
const LOOK: Duration = Duration::from_millis(200);

/// Frames of an interface of our namespace, as they pass, until the time is over or the program is
/// interrupted. `look` is called several times a second. Gives how many frames there was no room for.
///
/// # Errors
/// The interface does not exist or cannot be captured, or the error of `each` or `look`.
pub(crate) fn live(
    interface: &str,
    time: Option<Duration>,
    analysis: &mut Analysis,
    mut each: impl FnMut(&mut Analysis) -> Result<()>,
    mut look: impl FnMut(&Analysis) -> Result<()>,
) -> Result<u64> {
    if nix::net::if_::if_nametoindex(interface).is_err() {
        return Err(UsageError::error(format!(
            "there is no interface {interface} here: `ip link` lists those there are; those of a \
             lab's host are seen from inside, with `lab exec HOST lab analyse --live ...`"
        )));
    }
    let mut socket = PacketSocket::open(interface, LOOK).with_context(|| {
        format!("listening at {interface} (it takes root or CAP_NET_RAW; in a host: lab exec)")
    })?;
    let end = time.map(Deadline::after);
    let mut next_look = Deadline::after(LOOK);
    let (mut frame, mut point) = (vec![0; 1 << 16], None);
    while !clock::is_interrupted() && end.is_none_or(|end| !end.has_passed()) {
        if let Some((octets, inbound)) = socket.receive_either()? {
            let now = Time::from(clock::since_1970());
            frame.clear();
            frame.extend_from_slice(octets);
            let hardware = socket.hardware();
            // At the loopback, what goes out comes in.
            if inbound || hardware != Some(LOOPBACK) {
                let link = link_of(hardware);
                let point =
                    *point.get_or_insert_with(|| analysis.point(interface.to_owned(), link));
                let original = u32::try_from(frame.len())?;
                analysis.handle(now, Frame { point, original, octets: &frame });
                each(analysis)?;
            }
        }
        if next_look.has_passed() {
            look(analysis)?;
            next_look = Deadline::after(LOOK);
        }
    }
    Ok(socket.dropped()?)
}

/// The type of a loopback (if_arp.h).
const LOOPBACK: u16 = 772;

/// How frames of an interface begin, by its type: TUN devices and tunnels have no link header.
fn link_of(hardware: Option<u16>) -> LinkType {
    match hardware {
        Some(65_534 | 768 | 769 | 776 | 778 | 823) => LinkType::Raw,
        _ => LinkType::Ethernet,
    }
}
