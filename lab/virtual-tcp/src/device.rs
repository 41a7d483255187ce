//! The queue between smoltcp and the network: packets in, packets out, no link header.

use smoltcp::phy::{self, Checksum, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use std::collections::VecDeque;

/// The most buffers kept for reuse.
const MAX_SPARE: usize = 256;

/// The packets between smoltcp and the network.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) incoming: VecDeque<Vec<u8>>,
    pub(crate) outgoing: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    mtu: usize,
}

impl Device {
    pub(crate) fn new(mtu: usize) -> Device {
        Device { incoming: VecDeque::new(), outgoing: VecDeque::new(), spare: Vec::new(), mtu }
    }

    /// The longest packet.
    pub(crate) fn mtu(&self) -> usize {
        self.mtu
    }

    /// Takes back the buffer of a packet.
    pub(crate) fn recycle(&mut self, mut octets: Vec<u8>) {
        if self.spare.len() < MAX_SPARE {
            octets.clear();
            self.spare.push(octets);
        }
    }
}

impl phy::Device for Device {
    type RxToken<'a> = Incoming<'a>;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Incoming<'_>, Outgoing<'_>)> {
        let octets = self.incoming.pop_front()?;
        let (outgoing, spare) = (&mut self.outgoing, self.spare.pop().unwrap_or_default());
        Some((Incoming { octets, used: &mut self.spare }, Outgoing { outgoing, spare }))
    }

    fn transmit(&mut self, _: Instant) -> Option<Outgoing<'_>> {
        let spare = self.spare.pop().unwrap_or_default();
        Some(Outgoing { outgoing: &mut self.outgoing, spare })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        // No packet is damaged in virtual time, and `segment::clamp` changes a segment without its checksum.
        capabilities.checksum.tcp = Checksum::Tx;
        capabilities
    }
}

/// A received packet.
pub(crate) struct Incoming<'a> {
    octets: Vec<u8>,
    used: &'a mut Vec<Vec<u8>>,
}

impl phy::RxToken for Incoming<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let result = read(&self.octets);
        if self.used.len() < MAX_SPARE {
            let mut octets = self.octets;
            octets.clear();
            self.used.push(octets);
        }
        result
    }
}

/// Room for a packet to send.
pub(crate) struct Outgoing<'a> {
    outgoing: &'a mut VecDeque<Vec<u8>>,
    spare: Vec<u8>,
}

impl phy::TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut octets = self.spare;
        octets.resize(len, 0);
        let result = write(&mut octets);
        self.outgoing.push_back(octets);
        result
    }
}
