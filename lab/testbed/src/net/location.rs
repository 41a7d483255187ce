//! Addresses and ports of sites; no two sites share one.

use crate::net::cable::CableEnd;
use crate::net::ns::Entrance;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// The first port allocated in a namespace, where all are free.
const FIRST_PORT: u16 = 5010;

/// The address of a site, and the namespace that its programs run in.
///
/// All of 127/8 is this machine. A site with an address of its own does not compete for ports with
/// outgoing connections, whose source address is 127.0.0.1, nor with the sites of other tests.
#[derive(Clone, Debug)]
pub struct SiteLocation {
    ip: IpAddr,
    inside: Option<Inside>,
}

/// A namespace, as the programs of a site see it.
#[derive(Clone, Debug)]
struct Inside {
    entrance: Entrance,
    next_port: Arc<AtomicU16>,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl SiteLocation {
    /// A loopback address that no other site of this process has. A site of another process has the
    /// same address only if their process ids agree modulo 32768.
    pub fn new() -> SiteLocation {
        // From 127.64.0.0 on: 15 bits of the process, 7 of the site.
        let site = NEXT.fetch_add(1, Ordering::Relaxed) & 0x7f;
        let number = (std::process::id() << 7 | site) & 0x3f_ffff;
        SiteLocation { ip: Ipv4Addr::from(0x7f40_0000 | number).into(), inside: None }
    }

    /// At the end of a cable; the programs of the site run in its namespace.
    pub fn at(end: &CableEnd) -> SiteLocation {
        let next_port = Arc::new(AtomicU16::new(FIRST_PORT));
        let inside = Inside { entrance: end.namespace().entrance().clone(), next_port };
        SiteLocation { ip: end.addresses().v4.into(), inside: Some(inside) }
    }

    /// In a host of a network that is up, at one of its addresses.
    pub fn in_host(ip: IpAddr, entrance: Entrance) -> SiteLocation {
        let next_port = Arc::new(AtomicU16::new(FIRST_PORT));
        SiteLocation { ip, inside: Some(Inside { entrance, next_port }) }
    }

    /// The address.
    pub fn ip(&self) -> IpAddr {
        self.ip
    }

    /// A free port on the address.
    ///
    /// # Errors
    /// No port is free, or this machine does not have the address.
    pub fn free_port(&self) -> Result<SocketAddr> {
        if let Some(inside) = &self.inside {
            let port = inside.next_port.fetch_add(1, Ordering::Relaxed);
            return Ok(SocketAddr::new(self.ip, port));
        }
        // Each port once, and below the range of source ports of connections.
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let first = 12_000 + u16::try_from(std::process::id() % 16_000).unwrap_or(0);
        let candidates = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed));
        candidates
            .take(4_000)
            .map(|port| SocketAddr::new(self.ip, port))
            .find(|address| TcpListener::bind(address).is_ok())
            .with_context(|| format!("there is no free port on {}", self.ip))
    }

    /// A command that runs this program at the location.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match &self.inside {
            Some(inside) => inside.entrance.command(program),
            None => Command::new(program),
        }
    }
}

impl Default for SiteLocation {
    fn default() -> SiteLocation {
        SiteLocation::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Deadline;
    use std::time::Duration;

    #[test]
    fn sites_have_addresses_of_their_own_and_free_ports() {
        let (a, b) = (SiteLocation::new(), SiteLocation::new());
        assert_ne!(a.ip, b.ip);
        let port = a.free_port().unwrap();
        assert!(port.ip().is_loopback() && port.port() != 0);
        // A process that another test starts has a copy of the socket that tried the port, until it runs its
        // program.
        let bound = Deadline::after(Duration::from_secs(20))
            .wait_for("the port", || Ok(TcpListener::bind(port).ok()));
        bound.unwrap();
    }
}
