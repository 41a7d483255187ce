//! Namespaces joined by veth pairs: addresses, rates, and a device between them.

use crate::net::ns::Namespace;
use crate::process::programs::Programs;
use crate::process::tool::LabTool;
use anyhow::{Context, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The interface of a site.
pub(crate) const INTERFACE: &str = "eth0";
/// The interface of the device between the sites that leads to the second one.
const BEYOND: &str = "eth1";
/// Packets that wait for a shaped link, at most.
const QUEUE: u32 = 50;

/// The two addresses of a site on the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub v4: Ipv4Addr,
    /// IPv6.
    pub v6: Ipv6Addr,
}

impl Addresses {
    const fn for_site(site: u8) -> Addresses {
        Addresses {
            v4: Ipv4Addr::new(10, 20, 0, site),
            v6: Ipv6Addr::new(0xfd20, 0, 0, 0, 0, 0, 0, site as u16),
        }
    }

    /// As addresses of either kind.
    pub fn all(self) -> [IpAddr; 2] {
        [self.v4.into(), self.v6.into()]
    }
}

/// One end of a [`Cable`]: a namespace with one interface beside its loopback.
#[derive(Debug)]
pub struct CableEnd {
    namespace: Namespace,
    addresses: Addresses,
}

impl CableEnd {
    /// Its namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Its addresses.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Limits what leaves to a rate (htb, link headers counted); at most 50 packets wait.
    ///
    /// # Errors
    /// The kernel lacks htb.
    pub fn shape(&self, bits_per_second: u64) -> Result<()> {
        let rate = format!("{bits_per_second}bit");
        let limit = QUEUE.to_string();
        let tc = |arguments: &[&str]| self.namespace.entrance().run("tc", arguments);
        tc(&["qdisc", "replace", "dev", INTERFACE, "root", "handle", "1:", "htb", "default", "1"])?;
        let (parent, class) = (["dev", INTERFACE, "parent"], ["classid", "1:1", "htb"]);
        tc(&[&["class", "replace"], &parent[..], &["1:"], &class, &["rate", &rate]].concat())?;
        tc(&[&["qdisc", "replace"], &parent[..], &["1:1", "pfifo", "limit", &limit]].concat())?;
        Ok(())
    }

    /// Changes the rate; at no time more than the larger of the two rates leaves.
    ///
    /// # Errors
    /// It was not shaped.
    pub fn reshape(&self, bits_per_second: u64) -> Result<()> {
        let rate = format!("{bits_per_second}bit");
        let class = ["dev", INTERFACE, "parent", "1:", "classid", "1:1", "htb", "rate", &rate];
        self.namespace.entrance().run("tc", &[&["class", "change"], &class[..]].concat())?;
        Ok(())
    }

    /// Removes the rate limit.
    ///
    /// # Errors
    /// It was not shaped.
    pub fn unshape(&self) -> Result<()> {
        self.namespace.entrance().run("tc", &["qdisc", "delete", "dev", INTERFACE, "root"])?;
        Ok(())
    }

    /// Takes the interface down, or up again. The other side is not notified: its packets are
    /// dropped silently.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_up(&self, up: bool) -> Result<()> {
        let state = if up { "up" } else { "down" };
        self.namespace.entrance().run("ip", &["link", "set", INTERFACE, state]).map(drop)
    }

    fn configure(&self) -> Result<()> {
        let ip = |arguments: &[&str]| self.namespace.entrance().run("ip", arguments);
        let Addresses { v4, v6 } = self.addresses;
        let (v4, v6) = (format!("{v4}/24"), format!("{v6}/64"));
        bring_up(&self.namespace, INTERFACE)?;
        ip(&["address", "add", &v4, "dev", INTERFACE])?;
        ip(&["-6", "address", "add", &v6, "dev", INTERFACE, "nodad"]).context("IPv6")?;
        Ok(())
    }
}

/// Two namespaces joined by a veth pair, or by two pairs with a device between them.
#[derive(Debug)]
pub struct Cable {
    /// The first end.
    pub naples: CableEnd,
    /// The second end.
    pub act: CableEnd,
    middle: Option<(LabTool, Namespace)>,
}

impl Cable {
    /// Joins two namespaces.
    ///
    /// # Errors
    /// As [`Namespace::another`], or an interface cannot be made.
    pub fn new(first: Namespace) -> Result<Cable> {
        let second = first.another()?;
        join((&first, INTERFACE), (&second, INTERFACE))?;
        Cable::between(first, second, None)
    }

    /// Joins two namespaces over a third, which forwards everything and clears the DSCP of every
    /// packet, as some networks do.
    ///
    /// # Errors
    /// As [`Cable::new`], or the program that does it cannot be started.
    pub fn bleached(first: Namespace, programs: &Programs) -> Result<Cable> {
        let (second, middle) = (first.another()?, first.another()?);
        join((&first, INTERFACE), (&middle, INTERFACE))?;
        join((&middle, BEYOND), (&second, INTERFACE))?;
        // It only forwards frames; its kernel must send nothing of its own.
        middle.entrance().set("ipv6/conf/all/disable_ipv6", "1")?;
        for interface in [INTERFACE, BEYOND] {
            bring_up(&middle, interface)?;
        }
        let tool = LabTool::start(&middle, programs, &["bleach", INTERFACE, BEYOND])?;
        Cable::between(first, second, Some((tool, middle)))
    }

    fn between(
        first: Namespace,
        second: Namespace,
        middle: Option<(LabTool, Namespace)>,
    ) -> Result<Cable> {
        let naples = CableEnd { namespace: first, addresses: Addresses::for_site(1) };
        let act = CableEnd { namespace: second, addresses: Addresses::for_site(2) };
        naples.configure()?;
        act.configure()?;
        Ok(Cable { naples, act, middle })
    }

    /// Whether a device stands between the two.
    pub fn has_middle(&self) -> bool {
        self.middle.is_some()
    }
}

fn join(a: (&Namespace, &str), b: (&Namespace, &str)) -> Result<()> {
    let there = b.0.holder().to_string();
    let arguments = ["link", "add", a.1, "type", "veth", "peer", "name", b.1, "netns", &there];
    a.0.entrance().run("ip", &arguments).map(drop)
}

/// Brings an interface up, without segmentation offload: each captured packet is a sent packet.
fn bring_up(namespace: &Namespace, interface: &str) -> Result<()> {
    let arguments = ["link", "set", interface, "gso_max_segs", "1", "up"];
    namespace.entrance().run("ip", &arguments).map(drop)
}
