//! Whole conversations of peers and users with an MTA, made of valid PDUs: the input is a programme that decides which comes
//! when, on which connection, and what is left out, repeated, damaged or cut. So what is found lies behind the decoders.

use super::{Site, packets, serves};
use crate::seeds;
use base::AssociationId;
use std::sync::OnceLock;
use std::time::Duration;

/// Octets of a step: what, and two more that it takes.
const STEP: usize = 3;

/// Most steps, and connections at the same time.
const STEPS: usize = 96;
const CONNECTIONS: usize = 4;

/// The packets of a valid conversation, and the listener that it is for.
struct Valid {
    listener: u32,
    packets: Vec<Vec<u8>>,
}

/// Everything that a step may send.
fn valid() -> &'static [Valid] {
    static VALID: OnceLock<Vec<Valid>> = OnceLock::new();
    VALID.get_or_init(|| {
        let of = |listener: u32, target: &str| {
            let conversation = move |(_, octets): seeds::Seed| {
                let packets = packets(&octets).into_iter().map(<[u8]>::to_vec).collect();
                Valid { listener, packets }
            };
            seeds::of_target(target).into_iter().map(conversation)
        };
        let all = of(0, "node-p1").chain(of(1, "node-p3")).chain(of(2, "node-p7"));
        // Each SPDU alone: aborts, interrupts, tokens, checkpoints.
        let spdus = seeds::of_target("session").into_iter().filter_map(|(_, spdu)| {
            let [high, low] = u16::try_from(spdu.len() + 7).ok()?.to_be_bytes();
            Some([&[3, 0, high, low, 2, 0xF0, 0x80], &spdu[..]].concat())
        });
        all.chain([Valid { listener: 0, packets: spdus.collect() }]).collect()
    })
}

/// A connection: its conversation, and what of it comes next.
struct Connection {
    association: AssociationId,
    conversation: usize,
    next: usize,
}

/// A programme that is run.
struct Talk {
    site: Site,
    connections: Vec<Connection>,
    /// On which connection the next step is.
    at: usize,
}

impl Talk {
    fn open(&mut self, conversation: u8) {
        let valid = valid();
        let conversation = usize::from(conversation) % valid.len();
        let Some(Valid { listener, .. }) = valid.get(conversation) else { return };
        let association = self.site.accept(*listener);
        if self.connections.len() == CONNECTIONS {
            let oldest = self.connections.remove(0);
            self.site.hang_up(oldest.association);
        }
        self.connections.push(Connection { association, conversation, next: 0 });
        self.at = self.connections.len() - 1;
    }

    fn send(&mut self, packet: &[u8]) {
        if let Some(connection) = self.connections.get(self.at) {
            self.site.bytes(connection.association, packet);
        }
    }

    /// The packet so far behind the next one of this conversation, and it goes on behind that.
    fn packet(&mut self, ahead: usize) -> Option<&'static [u8]> {
        let connection = self.connections.get_mut(self.at)?;
        let all = &valid().get(connection.conversation)?.packets;
        let at = connection.next + ahead;
        connection.next = (at + 1).min(all.len());
        all.get(at).map(Vec::as_slice)
    }

    fn step(&mut self, [what, one, two]: [u8; STEP]) {
        let (first, second) = (usize::from(one), usize::from(two));
        match what % 16 {
            0 => self.open(one),
            1 => self.at = first % self.connections.len().max(1),
            // In order: one, or several.
            2..7 => {
                for _ in 0..=first % 8 {
                    let Some(packet) = self.packet(0) else { break };
                    self.send(packet);
                }
            }
            7 => {
                // Some are left out.
                if let Some(packet) = self.packet(1 + first % 4) {
                    self.send(packet);
                }
            }
            8 => {
                // What came before comes again.
                if let Some(connection) = self.connections.get_mut(self.at) {
                    connection.next = connection.next.saturating_sub(1 + first % 4);
                }
            }
            9 | 10 => {
                // One of another conversation.
                let other = valid().get(first % valid().len()).map_or(&[][..], |v| &v.packets);
                if let Some(packet) = other.get(second % other.len().max(1)) {
                    self.send(packet);
                }
            }
            11 | 12 => {
                // An octet is another one.
                let Some(packet) = self.packet(0) else { return };
                let mut changed = packet.to_vec();
                let at = 4 + first * changed.len().saturating_sub(4) / 256;
                if let Some(octet) = changed.get_mut(at) {
                    *octet ^= two.max(1);
                }
                self.send(&changed);
            }
            13 => {
                // Half of one, and the connection is gone.
                let Some(packet) = self.packet(0) else { return };
                self.send(packet.get(..first * packet.len() / 256).unwrap_or(packet));
                self.hang_up();
            }
            14 => self.hang_up(),
            _ => self.site.wait(Duration::from_secs(first as u64 * (1 + second as u64 % 8))),
        }
    }

    fn hang_up(&mut self) {
        if let Some(connection) = self.connections.get(self.at) {
            self.site.hang_up(connection.association);
        }
    }
}

pub(in crate::targets) fn run(octets: &[u8]) {
    let mut talk = Talk { site: Site::new(), connections: Vec::new(), at: 0 };
    for step in octets.as_chunks::<STEP>().0.iter().take(STEPS) {
        talk.step(*step);
    }
    for connection in &talk.connections {
        talk.site.hang_up(connection.association);
    }
    serves(&mut talk.site);
    talk.site.wait(Duration::from_secs(3_600));
    assert_eq!(talk.site.spools(), 0, "spools are left");
    let held = talk.site.holds();
    assert_eq!((held.arrivals, held.pending), (0, 0), "{held:?}");
}

/// Programmes: each conversation as it is, with a resumption, with two connections at once.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for conversation in 0..valid().len() {
        let [number, ..] = conversation.to_le_bytes();
        let open = [0, number, 0];
        let some = [2, 7, 0];
        all.push((format!("whole-{number:02}"), [open, some, some, some, some, some].concat()));
        let cut = [open, some, [13, 128, 0], open, some, [15, 60, 0], some].concat();
        all.push((format!("cut-{number:02}"), cut));
        let two = [open, some, [0, 0, 0], some, [1, 0, 0], some, [1, 1, 0], some, [14, 0, 0]];
        all.push((format!("two-{number:02}"), two.concat()));
    }
    let spdus = valid().len() - 1;
    for spdu in 0..valid().last().map_or(0, |spdus| spdus.packets.len()) {
        let ([last, ..], [spdu, ..]) = (spdus.to_le_bytes(), spdu.to_le_bytes());
        let within = [[0, 2, 0], [2, 5, 0], [9, last, spdu], [2, 7, 0]].concat();
        all.push((format!("within-{spdu:02}"), within));
    }
    all
}
