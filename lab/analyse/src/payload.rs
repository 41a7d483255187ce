//! What `lab load` writes at the front of its packets: `traffic::payload` has the layout.

/// What is read of such a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Tells the runs of senders apart.
    pub run: u32,
    /// The flow's number in its plan.
    pub flow: u32,
    /// From 0, by one for each; of the packet that ends the flow how many were before it.
    pub sequence: u64,
    /// When it was sent, in nanoseconds of the sender's clock.
    pub sent: u64,
    /// Whether that clock counts from 1970.
    pub since_1970: bool,
    /// The flow ends here.
    pub end: bool,
}

/// Octets of the header.
const SIZE: usize = 40;

impl Header {
    /// The header at the front of a payload; `None` where it is none of `lab load`.
    pub fn read(octets: &[u8]) -> Option<Header> {
        let [b'X', b'L', b'O', b'D', 1, flags, ..] = *octets.first_chunk::<SIZE>()? else {
            return None;
        };
        let u32_at =
            |at: usize| octets.get(at..)?.first_chunk().map(|four| u32::from_be_bytes(*four));
        let u64_at =
            |at: usize| octets.get(at..)?.first_chunk().map(|eight| u64::from_be_bytes(*eight));
        (u32_at(32)? as usize >= SIZE).then_some(Header {
            run: u32_at(8)?,
            flow: u32_at(12)?,
            sequence: u64_at(16)?,
            sent: u64_at(24)?,
            since_1970: flags & 2 != 0,
            end: flags & 1 != 0,
        })
    }
}
