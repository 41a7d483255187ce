//! Link headers: what is before the IP header of a captured frame.

/// How a frame begins, as capture files number it (tcpdump's list of link-layer header types).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkType {
    /// LINKTYPE_ETHERNET, 1.
    Ethernet,
    /// LINKTYPE_RAW, 101 (and 12 and 14 of some systems): the IP header.
    Raw,
    /// LINKTYPE_IPV4, 228.
    Ipv4,
    /// LINKTYPE_IPV6, 229.
    Ipv6,
    /// LINKTYPE_LINUX_SLL, 113: Linux "any", version 1.
    Sll,
    /// LINKTYPE_LINUX_SLL2, 276: Linux "any", version 2, with the interface.
    Sll2,
    /// LINKTYPE_NULL, 0: loopback of BSD, the family in the order of the machine that captured.
    Null,
    /// LINKTYPE_LOOP, 108: loopback of OpenBSD, the family in network order.
    Loop,
    /// One that is not read.
    Other(u32),
}

impl From<u32> for LinkType {
    fn from(number: u32) -> LinkType {
        match number {
            0 => LinkType::Null,
            1 => LinkType::Ethernet,
            12 | 14 | 101 => LinkType::Raw,
            108 => LinkType::Loop,
            113 => LinkType::Sll,
            228 => LinkType::Ipv4,
            229 => LinkType::Ipv6,
            276 => LinkType::Sll2,
            other => LinkType::Other(other),
        }
    }
}

/// The packet that a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried<'a> {
    /// From the IP header on.
    pub octets: &'a [u8],
    /// The interface, where the frame has it (SLL2).
    pub interface: Option<u32>,
    /// Octets before the IP header.
    pub header: usize,
}

/// Why a frame counts as no IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Passed {
    /// Something else: ARP, LLDP, spanning tree, ...
    NotIp,
    /// Cut off within the link header.
    Short,
    /// A link type that is not read.
    Link(u32),
}

/// Most VLAN tags, and most MPLS labels, that are walked.
const MAX_TAGS: usize = 8;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// The IP packet in a frame.
///
/// # Errors
/// [`Passed`]: there is none.
pub fn carried(link: LinkType, frame: &[u8]) -> Result<Carried<'_>, Passed> {
    let mut interface = None;
    let octets = match (link, frame) {
        (LinkType::Ethernet, [_, _, _, _, _, _, _, _, _, _, _, _, t0, t1, rest @ ..]) => {
            typed(u16::from_be_bytes([*t0, *t1]), rest)?
        }
        (LinkType::Raw | LinkType::Ipv4 | LinkType::Ipv6, [_, ..]) => frame,
        (LinkType::Sll, [_, _, _, _, _, _, _, _, _, _, _, _, _, _, t0, t1, rest @ ..]) => {
            typed(u16::from_be_bytes([*t0, *t1]), rest)?
        }
        (LinkType::Sll2, [t0, t1, _, _, i0, i1, i2, i3, rest @ ..]) => {
            interface = Some(u32::from_be_bytes([*i0, *i1, *i2, *i3]));
            let rest = rest.get(12..).ok_or(Passed::Short)?;
            typed(u16::from_be_bytes([*t0, *t1]), rest)?
        }
        (LinkType::Null, [f0, f1, f2, f3, rest @ ..]) => {
            let (little, big) = (u32::from_le_bytes([*f0, *f1, *f2, *f3]), [*f0, *f1, *f2, *f3]);
            family(little.min(u32::from_be_bytes(big)), rest)?
        }
        (LinkType::Loop, [f0, f1, f2, f3, rest @ ..]) => {
            family(u32::from_be_bytes([*f0, *f1, *f2, *f3]), rest)?
        }
        (LinkType::Other(number), _) => return Err(Passed::Link(number)),
        _ => return Err(Passed::Short),
    };
    Ok(Carried { octets, interface, header: frame.len() - octets.len() })
}

/// AF_INET is 2 everywhere; AF_INET6 is 10, 24, 28 or 30.
fn family(family: u32, rest: &[u8]) -> Result<&[u8], Passed> {
    match family {
        2 | 10 | 24 | 28 | 30 => Ok(rest),
        _ => Err(Passed::NotIp),
    }
}

/// Behind an EtherType: VLAN tags (802.1Q, 802.1ad), PPPoE and MPLS are walked.
fn typed(mut ether_type: u16, mut rest: &[u8]) -> Result<&[u8], Passed> {
    for _ in 0..MAX_TAGS {
        match (ether_type, rest) {
            (IPV4 | IPV6, _) => return Ok(rest),
            (0x8100 | 0x88a8 | 0x9100 | 0x9200, [_, _, t0, t1, behind @ ..]) => {
                ether_type = u16::from_be_bytes([*t0, *t1]);
                rest = behind;
            }
            // PPPoE session (RFC 2516 4): six octets, then PPP's protocol.
            (0x8864, [_, _, _, _, _, _, p0, p1, behind @ ..]) => {
                return match u16::from_be_bytes([*p0, *p1]) {
                    0x0021 | 0x0057 => Ok(behind),
                    _ => Err(Passed::NotIp),
                };
            }
            (0x8847 | 0x8848, _) => return labelled(rest),
            (0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x8864, _) => return Err(Passed::Short),
            _ => return Err(Passed::NotIp),
        }
    }
    Err(Passed::NotIp)
}

/// After MPLS labels (RFC 3032 2.1). No field names the protocol, so the IP version decides.
fn labelled(mut rest: &[u8]) -> Result<&[u8], Passed> {
    for _ in 0..MAX_TAGS {
        let [_, _, bottom, _, behind @ ..] = rest else { return Err(Passed::Short) };
        rest = behind;
        if bottom & 1 != 0 {
            return match rest.first().map(|first| first >> 4) {
                Some(4 | 6) => Ok(rest),
                Some(_) => Err(Passed::NotIp),
                None => Err(Passed::Short),
            };
        }
    }
    Err(Passed::NotIp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(link: LinkType, head: &[u8]) -> Result<usize, Passed> {
        let frame = [head, &[0x45, 0, 0, 20]].concat();
        carried(link, &frame).map(|carried| {
            assert_eq!(carried.octets, [0x45, 0, 0, 20]);
            carried.header
        })
    }

    #[test]
    fn every_link_header_is_walked() {
        let macs = [0u8; 12];
        let ethernet = |rest: &[u8]| [&macs[..], rest].concat();
        assert_eq!(behind(LinkType::Ethernet, &ethernet(&[8, 0])), Ok(14));
        assert_eq!(behind(LinkType::Ethernet, &ethernet(&[0x81, 0, 0, 5, 8, 0])), Ok(18));
        let two = [0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x86, 0xdd];
        assert_eq!(behind(LinkType::Ethernet, &ethernet(&two)), Ok(22));
        let pppoe = [0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0, 0x21];
        assert_eq!(behind(LinkType::Ethernet, &ethernet(&pppoe)), Ok(22));
        let mpls = [0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64];
        assert_eq!(behind(LinkType::Ethernet, &ethernet(&mpls)), Ok(22));
        assert_eq!(behind(LinkType::Raw, &[]), Ok(0));
        let sll = [0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0];
        assert_eq!(behind(LinkType::Sll, &sll), Ok(16));
        let sll2 = [8, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0];
        assert_eq!(behind(LinkType::Sll2, &sll2), Ok(20));
        let frame = [&sll2[..], &[0x45]].concat();
        assert_eq!(carried(LinkType::Sll2, &frame).unwrap().interface, Some(7));
        assert_eq!(behind(LinkType::Null, &[2, 0, 0, 0]), Ok(4));
        assert_eq!(behind(LinkType::Null, &[0, 0, 0, 30]), Ok(4));
        assert_eq!(behind(LinkType::Loop, &[0, 0, 0, 24]), Ok(4));
    }

    #[test]
    fn frames_without_ip_have_a_reason() {
        let arp = [&[0u8; 12][..], &[8, 6, 0, 1]].concat();
        assert_eq!(carried(LinkType::Ethernet, &arp), Err(Passed::NotIp));
        assert_eq!(carried(LinkType::Ethernet, &[0; 13]), Err(Passed::Short));
        let cut = [&[0u8; 12][..], &[0x81, 0, 0]].concat();
        assert_eq!(carried(LinkType::Ethernet, &cut), Err(Passed::Short));
        let tags = [&[0u8; 12][..], &[0x81, 0, 0x81, 0].repeat(40)].concat();
        assert_eq!(carried(LinkType::Ethernet, &tags), Err(Passed::NotIp));
        assert_eq!(carried(LinkType::from(105), &[0; 90]), Err(Passed::Link(105)));
        assert_eq!(carried(LinkType::Null, &[9, 9, 9, 9, 0]), Err(Passed::NotIp));
        assert_eq!(carried(LinkType::Raw, &[]), Err(Passed::Short));
    }
}
