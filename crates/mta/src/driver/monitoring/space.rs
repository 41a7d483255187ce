//! Looks at the room on the disk of the data directory.

use crate::config::Site;
use nix::sys::statvfs::statvfs;
use node::DiskSpace;
use std::time::Duration;

/// How often.
pub(in crate::driver) const INTERVAL: Duration = Duration::from_secs(1);

/// The reserve, unless one is configured: a twentieth of the disk, within these.
const LEAST: u64 = 16 << 20;
const MOST: u64 = 1 << 30;

/// The room as it is now; `None` where the system does not know it.
pub(in crate::driver) fn look(site: &Site) -> Option<DiskSpace> {
    let found = statvfs(&site.paths.data_dir).ok()?;
    let unit = found.fragment_size();
    let total = found.blocks().saturating_mul(unit);
    Some(DiskSpace {
        free: found.blocks_available().saturating_mul(unit),
        reserve: site.disk_reserve.unwrap_or_else(|| (total / 20).clamp(LEAST, MOST)),
    })
}
