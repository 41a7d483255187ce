//! Addresses and ports that nobody else has.

use crate::net::cable::End;
use crate::net::ns::Entrance;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// The first port given out in a namespace, where all are free.
const FIRST_PORT: u16 = 5010;

/// Where one site is.
///
/// All of 127/8 is this machine. With an address of its own a site does not compete for ports with
/// the source ports of connections, which are on 127.0.0.1, nor with the sites of other tests.
#[derive(Clone, Debug)]
pub struct Place {
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

impl Place {
    /// A loopback address that no other site of this process has, and of another process hardly
    /// ever.
    pub fn new() -> Place {
        // From 127.64.0.0 on: 15 bits of the process, 7 of the site.
        let site = NEXT.fetch_add(1, Ordering::Relaxed) & 0x7f;
        let number = (std::process::id() << 7 | site) & 0x3f_ffff;
        Place { ip: Ipv4Addr::from(0x7f40_0000 | number).into(), inside: None }
    }

    /// At the end of a cable; the site's programs run in its namespace.
    pub fn at(end: &End) -> Place {
        let next_port = Arc::new(AtomicU16::new(FIRST_PORT));
        let inside = Inside { entrance: end.namespace().entrance().clone(), next_port };
        Place { ip: end.addresses().v4.into(), inside: Some(inside) }
    }

    /// In a host of a network that is up, at one of its addresses.
    pub fn in_host(ip: IpAddr, entrance: Entrance) -> Place {
        let next_port = Arc::new(AtomicU16::new(FIRST_PORT));
        Place { ip, inside: Some(Inside { entrance, next_port }) }
    }

    /// The address.
    pub fn ip(&self) -> IpAddr {
        self.ip
    }

    /// A port on it that is free.
    ///
    /// # Errors
    /// There is none, or the address cannot be used here.
    pub fn free_port(&self) -> Result<SocketAddr> {
        if let Some(inside) = &self.inside {
            let port = inside.next_port.fetch_add(1, Ordering::Relaxed);
            return Ok(SocketAddr::new(self.ip, port));
        }
        // Each once, and below those that the system gives to whoever connects.
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let first = 12_000 + u16::try_from(std::process::id() % 16_000).unwrap_or(0);
        let candidates = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed));
        candidates
            .take(4_000)
            .map(|port| SocketAddr::new(self.ip, port))
            .find(|address| TcpListener::bind(address).is_ok())
            .with_context(|| format!("there is no free port on {}", self.ip))
    }

    /// The program, to be started there.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match &self.inside {
            Some(inside) => inside.entrance.command(program),
            None => Command::new(program),
        }
    }
}

impl Default for Place {
    fn default() -> Place {
        Place::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_have_addresses_of_their_own_and_free_ports() {
        let (a, b) = (Place::new(), Place::new());
        assert_ne!(a.ip, b.ip);
        let port = a.free_port().unwrap();
        assert!(port.ip().is_loopback() && port.port() != 0);
        TcpListener::bind(port).unwrap();
    }
}
