//! Looks at the room on the disk of the data directory.

use crate::clock::since_boot;
use crate::config::Site;
use base::Precedence;
use disk_room::quota::Quotas;
use nix::sys::statvfs::statvfs;
use node::DiskSpace;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// How often the daemon looks.
pub(in crate::driver) const INTERVAL: Duration = Duration::from_secs(1);

/// The reserve, unless one is configured: a twentieth of the disk, within these.
const MIN_RESERVE: u64 = 16 << 20;
const MAX_RESERVE: u64 = 1 << 30;

/// With fewer free inodes than this no file can be made for long, whatever room there is.
const MIN_INODES: u64 = 8;

/// What found no room is shown for so long.
const SHOWN: Duration = Duration::from_secs(60);

/// The highest precedence for which the store had no room in the last minute: a message may be larger than the
/// room.
#[derive(Debug, Default)]
pub(in crate::driver) struct NoRoom {
    /// The precedence, as a number from 1 on; 0 while there is none.
    level: AtomicU8,
    /// When that was last found, in milliseconds since the system's start.
    at: AtomicU64,
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn number(level: Precedence) -> u8 {
    level.number() + 1
}

impl NoRoom {
    /// The store had no room for a message of this precedence.
    pub(in crate::driver) fn found_none(&self, level: Precedence) {
        self.level.fetch_max(number(level), Ordering::Relaxed);
        self.at.store(milliseconds(since_boot()), Ordering::Relaxed);
    }

    /// The highest precedence, at this time since the system's start.
    fn highest(&self, now: Duration) -> Option<Precedence> {
        let number = self.level.load(Ordering::Relaxed).checked_sub(1)?;
        let since = milliseconds(now).saturating_sub(self.at.load(Ordering::Relaxed));
        if since >= milliseconds(SHOWN) {
            self.level.store(0, Ordering::Relaxed);
            return None;
        }
        Precedence::from_number(number.into())
    }
}

/// The room as it is now; `None` where the system does not know it.
pub(in crate::driver) fn look(site: &Site, quotas: &Quotas, no_room: &NoRoom) -> Option<DiskSpace> {
    let found = statvfs(&site.paths.data_dir).ok()?;
    let unit = found.fragment_size();
    let total = found.blocks().saturating_mul(unit);
    let has_inodes = found.files() == 0 || found.files_available() >= MIN_INODES;
    let free = if has_inodes { found.blocks_available().saturating_mul(unit) } else { 0 };
    let free = free.min(quotas.left().unwrap_or(u64::MAX));
    let default = (total / 20).clamp(MIN_RESERVE, MAX_RESERVE);
    Some(DiskSpace {
        free,
        reserve: site.disk_reserve.unwrap_or(default),
        no_room_for: no_room.highest(since_boot()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_found_no_room_is_known_for_a_minute() {
        use Precedence::{Flash, Routine};
        let room = NoRoom::default();
        let now = || since_boot();
        assert_eq!(room.highest(now()), None);
        for level in [Routine, Flash, Routine] {
            room.found_none(level);
        }
        assert_eq!(room.highest(now()), Some(Flash));
        assert_eq!(room.highest(now() + SHOWN), None, "that is long ago");
        assert_eq!(room.highest(now()), None);
    }
}
