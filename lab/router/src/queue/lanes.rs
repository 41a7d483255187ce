//! Several queues (lanes) in one memory, which grows to the highest number of packets that waited
//! in all of them together. Each packet has a key; keys rise within a lane.

use super::tournament::Tournament;
use crate::packet::Packet;

/// No slot.
const NONE: usize = usize::MAX;

#[derive(Debug)]
struct Slot {
    key: u128,
    packet: Option<Packet>,
    /// The slot of the previous packet of its lane.
    before: usize,
    /// The slot of the next packet of its lane; in a free slot, the next free slot.
    behind: usize,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    front: usize,
    back: usize,
}

/// Lanes of packets. Packets are removed from the front of the lane whose front has the lowest key,
/// or from the back of any lane.
#[derive(Debug)]
pub(crate) struct Lanes {
    slots: Vec<Slot>,
    free: usize,
    lanes: Vec<Lane>,
    fronts: Tournament,
}

impl Lanes {
    /// Empty lanes.
    pub(crate) fn new(lanes: usize) -> Lanes {
        Lanes {
            slots: Vec::new(),
            free: NONE,
            lanes: vec![Lane { front: NONE, back: NONE }; lanes],
            fronts: Tournament::new(lanes),
        }
    }

    /// Appends a packet to its lane. Its key is not below that of the last packet. `lane` must
    /// exist; else the packet is lost.
    pub(crate) fn push(&mut self, lane: usize, key: u128, packet: Packet) {
        let Some(Lane { front, back }) = self.lanes.get_mut(lane) else { return };
        let slot = Slot { key, packet: Some(packet), before: *back, behind: NONE };
        let at = match self.slots.get_mut(self.free) {
            Some(free) => {
                let at = std::mem::replace(&mut self.free, free.behind);
                *free = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        match self.slots.get_mut(*back) {
            Some(before) => before.behind = at,
            None => {
                *front = at;
                self.fronts.set(lane, Some(key));
            }
        }
        *back = at;
    }

    /// The lane whose front has the lowest key.
    pub(crate) fn next(&self) -> Option<usize> {
        self.fronts.least()
    }

    /// The packet at the front of a lane.
    pub(crate) fn front(&self, lane: usize) -> Option<&Packet> {
        self.slots.get(self.lanes.get(lane)?.front)?.packet.as_ref()
    }

    /// The key of the packet at the back of a lane.
    pub(crate) fn back_key(&self, lane: usize) -> Option<u128> {
        Some(self.slots.get(self.lanes.get(lane)?.back)?.key)
    }

    /// Removes the packet at the front of a lane, and returns it with its key.
    pub(crate) fn take_front(&mut self, lane: usize) -> Option<(u128, Packet)> {
        let ends = self.lanes.get_mut(lane)?;
        let at = ends.front;
        let slot = self.slots.get_mut(at)?;
        let taken = (slot.key, slot.packet.take()?);
        ends.front = std::mem::replace(&mut slot.behind, self.free);
        self.free = at;
        match self.slots.get_mut(ends.front) {
            Some(next) => {
                next.before = NONE;
                self.fronts.set(lane, Some(next.key));
            }
            None => {
                ends.back = NONE;
                self.fronts.set(lane, None);
            }
        }
        Some(taken)
    }

    /// Removes the packet at the back of a lane, and returns it with its key.
    pub(crate) fn take_back(&mut self, lane: usize) -> Option<(u128, Packet)> {
        let ends = self.lanes.get_mut(lane)?;
        if ends.front == ends.back {
            return self.take_front(lane);
        }
        let at = ends.back;
        let slot = self.slots.get_mut(at)?;
        let taken = (slot.key, slot.packet.take()?);
        slot.behind = self.free;
        self.free = at;
        ends.back = slot.before;
        if let Some(last) = self.slots.get_mut(ends.back) {
            last.behind = NONE;
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{number, packet};
    use dscp::Dscp;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Push(usize),
        Next,
        Back(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            3 => (0_usize..5).prop_map(Op::Push),
            2 => Just(Op::Next),
            1 => (0_usize..5).prop_map(Op::Back),
        ]
    }

    proptest! {
        #[test]
        fn they_are_queues_in_bounded_memory(ops in prop::collection::vec(op(), 0..200)) {
            let mut lanes = Lanes::new(5);
            let mut model = vec![VecDeque::new(); 5];
            let (mut made, mut most) = (0_u64, 0);
            for op in ops {
                match op {
                    Op::Push(lane) => {
                        made += 1;
                        lanes.push(lane, u128::from(made), packet(Dscp::CS0, 40, 1, made));
                        model[lane].push_back(made);
                    }
                    Op::Next => {
                        let heads = model.iter().enumerate();
                        let heads = heads.filter_map(|(n, lane)| Some((*lane.front()?, n)));
                        let lane = heads.min().map(|(_, lane)| lane);
                        prop_assert_eq!(lanes.next(), lane);
                        if let Some(lane) = lane {
                            let expected = model[lane].pop_front().unwrap();
                            prop_assert_eq!(number(lanes.front(lane).unwrap()), expected);
                            let (key, packet) = lanes.take_front(lane).unwrap();
                            prop_assert_eq!((key, number(&packet)), (expected.into(), expected));
                        }
                    }
                    Op::Back(lane) => {
                        let expected = model[lane].pop_back();
                        prop_assert_eq!(lanes.back_key(lane), expected.map(u128::from));
                        let taken = lanes.take_back(lane).map(|(_, packet)| number(&packet));
                        prop_assert_eq!(taken, expected);
                    }
                }
                most = most.max(model.iter().map(VecDeque::len).sum());
                prop_assert!(lanes.slots.len() <= most, "slots are used again");
            }
        }
    }
}
