//! Looks at the room on the disk of the data directory.

use crate::config::Site;
use base::Precedence;
use nix::sys::statvfs::statvfs;
use node::DiskSpace;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// How often.
pub(in crate::driver) const INTERVAL: Duration = Duration::from_secs(1);

/// The reserve, unless one is configured: a twentieth of the disk, within these.
const LEAST: u64 = 16 << 20;
const MOST: u64 = 1 << 30;

/// The highest precedence for which the store had no room, until it has room for that one.
#[derive(Debug, Default)]
pub(in crate::driver) struct NoRoom(AtomicU8);

impl NoRoom {
    /// Stands for a precedence; 0 for none.
    fn number(level: Precedence) -> u8 {
        level.number() + 1
    }

    /// There was none for this one.
    pub(in crate::driver) fn found_none(&self, level: Precedence) {
        self.0.fetch_max(NoRoom::number(level), Ordering::Relaxed);
    }

    /// There was room for this one.
    pub(in crate::driver) fn found(&self, level: Precedence) {
        let end = |highest| (1..=NoRoom::number(level)).contains(&highest).then_some(0);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end);
    }

    /// Which.
    fn highest(&self, space: &DiskSpace) -> Option<Precedence> {
        let number = self.0.load(Ordering::Relaxed).checked_sub(1)?;
        if space.free >= (space.reserve / 2).max(LEAST) {
            // Nobody need try it first.
            self.0.store(0, Ordering::Relaxed);
            return None;
        }
        Precedence::from_number(number.into())
    }
}

/// The room as it is now; `None` where the system does not know it.
pub(in crate::driver) fn look(site: &Site, no_room: &NoRoom) -> Option<DiskSpace> {
    let found = statvfs(&site.paths.data_dir).ok()?;
    let unit = found.fragment_size();
    let total = found.blocks().saturating_mul(unit);
    let space = DiskSpace {
        no_room_for: None,
        free: found.blocks_available().saturating_mul(unit),
        reserve: site.disk_reserve.unwrap_or_else(|| (total / 20).clamp(LEAST, MOST)),
    };
    Some(DiskSpace { no_room_for: no_room.highest(&space), ..space })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_found_no_room_is_known_until_it_finds_some() {
        use Precedence::{Flash, Override, Routine};
        let space = |free| DiskSpace { free, reserve: 64 << 20, no_room_for: None };
        let room = NoRoom::default();
        assert_eq!(room.highest(&space(0)), None);
        for level in [Routine, Flash, Routine] {
            room.found_none(level);
        }
        assert_eq!(room.highest(&space(0)), Some(Flash));
        room.found(Routine);
        assert_eq!(room.highest(&space(0)), Some(Flash), "that is about lower ones");
        room.found(Override);
        assert_eq!(room.highest(&space(0)), None);
        room.found_none(Flash);
        assert_eq!(room.highest(&space(33 << 20)), None, "there is room again");
        assert_eq!(room.highest(&space(0)), None);
    }
}
