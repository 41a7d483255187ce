//! Addresses and ports that nobody else has.

use anyhow::{Context, Result};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// A loopback address for one site.
///
/// All of 127/8 is this machine. With an address of its own a site does not compete for ports with
/// the source ports of connections, which are on 127.0.0.1, nor with the sites of other tests.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    ip: Ipv4Addr,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Place {
    /// One that no other site of this process has, and of another process hardly ever.
    pub fn new() -> Place {
        // From 127.64.0.0 on: 15 bits of the process, 7 of the site.
        let site = NEXT.fetch_add(1, Ordering::Relaxed) & 0x7f;
        let number = (std::process::id() << 7 | site) & 0x3f_ffff;
        Place { ip: Ipv4Addr::from(0x7f40_0000 | number) }
    }

    /// A port on it that is free.
    ///
    /// # Errors
    /// There is none, or the address cannot be used here.
    pub fn free_port(&self) -> Result<SocketAddr> {
        let listener = TcpListener::bind((self.ip, 0))
            .with_context(|| format!("looking for a free port on {}", self.ip))?;
        listener.local_addr().context("the port that was found")
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
