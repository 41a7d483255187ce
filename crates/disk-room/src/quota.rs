//! The quotas of the daemon's user and group on the disk of the data directory, which `statvfs` does not show.

use nix::sys::quota::{Dqblk, QuotaType, quotactl_get};
use nix::unistd::{Gid, Uid};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Octets of a block of a quota (QIF_DQBLKSIZE of Linux).
const BLOCK: u64 = 1024;

/// Where the quotas are looked up.
#[derive(Debug, Default)]
pub struct Quotas {
    /// The block device of the data directory's file system; `None` where there is none, or this user is root,
    /// whom quotas do not limit.
    device: Option<PathBuf>,
}

impl Quotas {
    /// Those for this directory.
    pub fn new(data_dir: &Path) -> Quotas {
        if Uid::effective().is_root() {
            return Quotas::default();
        }
        let find = || {
            let device = data_dir.metadata().ok()?.dev();
            let number = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
            device_in(&std::fs::read_to_string("/proc/self/mountinfo").ok()?, number)
        };
        Quotas { device: find() }
    }

    /// Octets that may still be allocated; `None` without a quota.
    pub fn left(&self) -> Option<u64> {
        let device = self.device.as_deref()?;
        let user = i32::try_from(Uid::effective().as_raw()).ok()?;
        let group = i32::try_from(Gid::effective().as_raw()).ok()?;
        // Without quotas on this file system the kernel refuses, which costs little.
        let of =
            |kind, id| quotactl_get(kind, device, id).ok().and_then(|of| Quota::from(of).left());
        let user = of(QuotaType::USRQUOTA, user);
        user.into_iter().chain(of(QuotaType::GRPQUOTA, group)).min()
    }
}

/// Limits and what is used; a limit of 0 is none.
#[derive(Clone, Copy, Debug, Default)]
struct Quota {
    blocks: u64,
    octets_used: u64,
    inodes: u64,
    inodes_used: u64,
}

impl From<Dqblk> for Quota {
    fn from(of: Dqblk) -> Quota {
        Quota {
            blocks: of.blocks_hard_limit().unwrap_or(0),
            octets_used: of.occupied_space().unwrap_or(0),
            inodes: of.inodes_hard_limit().unwrap_or(0),
            inodes_used: of.allocated_inodes().unwrap_or(0),
        }
    }
}

impl Quota {
    /// What it leaves, octets; nothing where its inodes are used up. `None` if it has no limit.
    fn left(self) -> Option<u64> {
        if self.inodes > 0 && self.inodes_used >= self.inodes {
            return Some(0);
        }
        let most = self.blocks.saturating_mul(BLOCK);
        (most > 0).then(|| most.saturating_sub(self.octets_used))
    }
}

/// The block device of this number in `/proc/self/mountinfo`, whose rows are `ID PARENT MAJOR:MINOR ROOT MOUNT
/// OPTIONS [FIELDS] - TYPE SOURCE OPTIONS`.
fn device_in(mountinfo: &str, (major, minor): (u64, u64)) -> Option<PathBuf> {
    let number = format!("{major}:{minor}");
    let source = mountinfo.lines().find_map(|row| {
        let (mount, of) = row.split_once(" - ")?;
        let is_it = mount.split(' ').nth(2) == Some(&number);
        is_it.then(|| of.split(' ').nth(1)).flatten()
    });
    source.filter(|source| source.starts_with('/')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:24 / /tmp rw - tmpfs tmpfs rw,size=64m
36 22 8:17 /data /srv rw,noatime shared:7 master:2 - xfs /dev/sdb1 rw,usrquota
";

    #[test]
    fn the_device_of_a_file_system_is_found() {
        assert_eq!(device_in(ROWS, (254, 0)), Some("/dev/vda".into()));
        assert_eq!(device_in(ROWS, (8, 17)), Some("/dev/sdb1".into()));
        assert_eq!(device_in(ROWS, (0, 24)), None, "no block device");
        assert_eq!(device_in(ROWS, (8, 1)), None);
    }

    #[test]
    fn without_quotas_nothing_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let quotas = Quotas::new(directory.path());
        assert_eq!(quotas.left(), None);
        assert_eq!(Quota::from(Dqblk::default()).left(), None);
    }

    #[test]
    fn a_quota_leaves_what_is_not_used() {
        let quota = Quota { blocks: 64, octets_used: 60 << 10, inodes: 9, inodes_used: 8 };
        assert_eq!(quota.left(), Some(4 << 10));
        assert_eq!(Quota { octets_used: 70 << 10, ..quota }.left(), Some(0));
        assert_eq!(Quota { inodes_used: 9, ..quota }.left(), Some(0));
        assert_eq!(Quota { blocks: 0, ..quota }.left(), None);
    }
}
