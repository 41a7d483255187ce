//! The system settings that affect channels.

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use std::fs;
use std::net::IpAddr;

/// Bits of a capability set (capability.h).
const CAP_NET_BIND_SERVICE: u32 = 10;
const CAP_NET_ADMIN: u32 = 12;

/// The settings; `None` where they cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// `net.ipv4.tcp_reflect_tos`.
    pub reflect_tos: Option<bool>,
    /// `net.ipv4.tcp_slow_start_after_idle`.
    pub slow_start_after_idle: Option<bool>,
    /// `net.ipv4.ip_unprivileged_port_start`: the first port any user may listen on.
    pub unprivileged_port_start: Option<u16>,
    /// Whether this process may listen on lower ports.
    pub may_bind_low: Option<bool>,
    /// Whether this process may use congestion controls outside the permitted list.
    pub may_administer: Option<bool>,
    /// `net.ipv4.tcp_available_congestion_control`.
    pub available: Option<Vec<String>>,
    /// `net.ipv4.tcp_allowed_congestion_control`.
    pub allowed: Option<Vec<String>>,
    /// The addresses of all interfaces.
    pub addresses: Option<Vec<IpAddr>>,
    /// `net.ipv4.ip_nonlocal_bind`: sockets may listen on addresses that no interface has.
    pub nonlocal_v4: Option<bool>,
    /// The same for IPv6.
    pub nonlocal_v6: Option<bool>,
}

impl Facts {
    /// Reads the settings for this process's user and network namespace.
    pub fn read() -> Facts {
        let setting = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok();
        let is_on = |name: &str| setting(name).map(|value| value.trim() != "0");
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
        let capabilities = fs::read_to_string("/proc/self/status").ok();
        let capabilities = capabilities.as_deref().and_then(effective);
        let has = |bit: u32| capabilities.map(|set| set >> bit & 1 == 1);
        Facts {
            reflect_tos: is_on("tcp_reflect_tos"),
            slow_start_after_idle: is_on("tcp_slow_start_after_idle"),
            unprivileged_port_start: setting("ip_unprivileged_port_start")
                .and_then(|value| value.trim().parse().ok()),
            may_bind_low: has(CAP_NET_BIND_SERVICE),
            may_administer: has(CAP_NET_ADMIN),
            available: setting("tcp_available_congestion_control").map(words),
            allowed: setting("tcp_allowed_congestion_control").map(words),
            addresses: addresses(),
            nonlocal_v4: is_on("ip_nonlocal_bind"),
            nonlocal_v6: is_on("../ipv6/ip_nonlocal_bind"),
        }
    }
}

fn addresses() -> Option<Vec<IpAddr>> {
    let ip = |address: SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    };
    Some(getifaddrs().ok()?.filter_map(|interface| ip(interface.address?)).collect())
}

/// The effective capability set in `/proc/self/status` (proc(5): `CapEff`, hexadecimal).
fn effective(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(value.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_is_found() {
        let status = "Name:\tmta\nCapPrm:\t0000000000000000\nCapEff:\t0000000000001400\n";
        assert_eq!(effective(status), Some(1 << CAP_NET_BIND_SERVICE | 1 << CAP_NET_ADMIN));
        assert_eq!(effective("CapEff:\tx\n"), None);
        assert_eq!(effective(""), None);
    }

    #[test]
    fn this_system_can_be_read() {
        let facts = Facts::read();
        assert!(facts.may_bind_low.is_some());
        let loopback = std::net::Ipv4Addr::LOCALHOST.into();
        assert!(facts.addresses.is_none_or(|own| own.is_empty() || own.contains(&loopback)));
        assert!(facts.available.is_none_or(|names| names.contains(&"reno".to_owned())));
    }
}
