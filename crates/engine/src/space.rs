//! Room on the disk of the store: as it becomes less, lower precedences are refused first.
//!
//! | Refused | Below this share of the reserve |
//! |---|---|
//! | Deferred | all of it |
//! | Routine | three quarters |
//! | Priority | a half |
//! | Immediate | a quarter |
//!
//! Flash and Override are taken until the store itself has no room. A precedence is taken again once there
//! is a sixteenth of the reserve more than where it was refused. What the store itself had no room for is
//! shown, and not refused here: the next message may be smaller.

use base::Precedence;
use std::fmt;

/// Room on the disk of the store, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DiskSpace {
    /// What a process of this user may still allocate.
    pub free: u64,
    /// What is kept for higher precedences.
    pub reserve: u64,
    /// The highest precedence for which the store itself had no room lately.
    pub no_room_for: Option<Precedence>,
}

impl fmt::Display for DiskSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (free, reserve) = (self.free >> 20, self.reserve >> 20);
        write!(f, "{free} MiB free on the disk of data_dir, disk_reserve is {reserve} MiB")
    }
}

/// The sixteenths of the reserve that must be free.
const THRESHOLDS: [(Precedence, u64); 4] = [
    (Precedence::Deferred, 16),
    (Precedence::Routine, 12),
    (Precedence::Priority, 8),
    (Precedence::Immediate, 4),
];

/// What is refused, in words.
#[must_use]
pub fn refused_text(highest: Precedence) -> String {
    match highest {
        Precedence::Deferred => "deferred is refused".to_owned(),
        _ => format!("{highest} and lower are refused"),
    }
}

/// The room as it was reported last, and what is refused for it.
#[derive(Debug, Default)]
pub struct DiskRoom {
    space: Option<DiskSpace>,
    /// Octets of contents that were taken since.
    taken: u64,
    /// The highest precedence below its threshold.
    refused: Option<Precedence>,
    /// The same when the edge looked last.
    shown: Option<Precedence>,
}

impl DiskRoom {
    /// The room as it was reported last.
    pub fn space(&self) -> Option<DiskSpace> {
        self.space
    }

    /// The highest precedence that is refused.
    pub fn refused(&self) -> Option<Precedence> {
        self.refused
    }

    /// The highest precedence for which the store itself had no room.
    pub fn no_room_for(&self) -> Option<Precedence> {
        self.space.and_then(|space| space.no_room_for)
    }

    /// Why this precedence is refused; `None` where it is taken.
    pub fn refusal(&self, precedence: Precedence) -> Option<String> {
        let space = self.space.filter(|_| self.refuses(precedence))?;
        Some(format!("{precedence} is not taken with {space}"))
    }

    /// Whether this precedence is refused.
    pub fn refuses(&self, precedence: Precedence) -> bool {
        self.refused.is_some_and(|highest| precedence <= highest)
    }

    /// So many octets of contents were taken since the edge looked last: until it looks again, they are not
    /// free.
    pub fn took(&mut self, octets: u64) {
        self.taken = self.taken.saturating_add(octets);
        self.compare();
    }

    /// Takes what the edge found; whether that changes what is refused, or what the store had no room for.
    pub fn update(&mut self, space: DiskSpace) -> bool {
        let before = (self.shown, self.no_room_for());
        (self.space, self.taken) = (Some(space), 0);
        self.compare();
        self.shown = self.refused;
        (self.shown, self.no_room_for()) != before
    }

    fn compare(&mut self) {
        let Some(space) = self.space else { return };
        let free = space.free.saturating_sub(self.taken);
        let is_below = |(level, sixteenths): &(Precedence, u64)| {
            let more = u64::from(self.refuses(*level));
            free < (space.reserve / 16).saturating_mul(sixteenths + more)
        };
        self.refused =
            THRESHOLDS.iter().filter(|mark| is_below(mark)).map(|(level, _)| *level).max();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_precedences_are_refused_first_and_taken_again_with_some_room_more() {
        use Precedence::{Deferred, Flash, Immediate, Priority, Routine};
        let mut room = DiskRoom::default();
        assert!(!room.refuses(Deferred), "nothing is known yet");
        let mut refused = |free| {
            let changed = room.update(DiskSpace { free, reserve: 1600, no_room_for: None });
            (changed, room.refused())
        };
        assert_eq!(refused(1600), (false, None));
        assert_eq!(refused(1599), (true, Some(Deferred)));
        assert_eq!(refused(1200), (false, Some(Deferred)));
        assert_eq!(refused(1199), (true, Some(Routine)));
        assert_eq!(refused(399), (true, Some(Immediate)));
        assert_eq!(refused(499), (false, Some(Immediate)));
        assert_eq!(refused(500), (true, Some(Priority)));
        assert_eq!(refused(1699), (true, Some(Deferred)));
        assert_eq!(refused(1700), (true, None));
        assert_eq!(refused(0), (true, Some(Immediate)));
        assert!(room.refuses(Routine) && !room.refuses(Flash));
        assert!(room.update(DiskSpace { free: 0, reserve: 1600, no_room_for: Some(Flash) }));
        assert_eq!((room.refused(), room.no_room_for()), (Some(Immediate), Some(Flash)));
        assert!(!room.refuses(Flash), "and is asked again");
        room.update(DiskSpace { free: 1600, reserve: 1600, no_room_for: None });
        room.update(DiskSpace { free: 1700, reserve: 1600, no_room_for: None });
        room.took(400);
        assert!(!room.refuses(Routine) && room.refuses(Deferred), "what came since the last look");
        room.took(200);
        assert!(room.refuses(Routine));
        room.update(DiskSpace { free: 0, reserve: 0, no_room_for: None });
        assert!(!room.refuses(Deferred), "no reserve");
        assert!(room.update(DiskSpace { free: 0, reserve: 0, no_room_for: Some(Routine) }));
        assert_eq!((room.refused(), room.no_room_for()), (None, Some(Routine)));
        assert_eq!(refused_text(Deferred), "deferred is refused");
        assert_eq!(refused_text(Priority), "priority and lower are refused");
    }
}
