//! A disk without room: submissions are refused, the daemon lives, and goes on when there is room.

use super::{SOON, assert_arrived, say};
use lab::Site;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A small file system of its own.
struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    /// `None` where we may not mount.
    fn mount(megabytes: u32) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(directory.path())
            .output();
        mount.is_ok_and(|output| output.status.success()).then_some(SmallDisk { directory })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Takes all the room that is left.
    fn fill(&self) -> PathBuf {
        use std::io::Write as _;
        let path = self.path().join("ballast");
        let mut file = fs::File::create(&path).unwrap();
        for size in [1 << 20, 4 << 10, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.directory.path()).status();
    }
}

#[test]
fn a_full_disk_refuses_submissions_and_nothing_else_happens() {
    let Some(disk) = SmallDisk::mount(48) else {
        say("    SKIPPED a_full_disk_refuses_submissions: mounting a small disk needs root");
        return;
    };
    let data = disk.path().join("data").display().to_string();
    let mut site = Site::builder("naples").set("mta.data_dir", data).build().unwrap();
    site.start().unwrap();
    let to = site.address("OPS");
    let send = |size: &str| site.xuxa("OPS", &["--json", "send", "--to", &to, "--size", size]);

    // Larger than the disk.
    let run = send("100MB").unwrap();
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("refused") || run.stderr.contains("in doubt"), "{}", run.stderr);
    let before = site.send("OPS", &["--to", &to, "--size", "1kB,2MB"]).unwrap();

    // No room at all, for a large message or for a small one.
    let ballast = disk.fill();
    for size in ["2MB", "100kB"] {
        let run = send(size).unwrap();
        assert_eq!(run.code, 1, "{size} with no room left: {}{}", run.stdout, run.stderr);
    }
    site.status().expect("the daemon answers without room");

    fs::remove_file(ballast).unwrap();
    let after = site.send("OPS", &["--to", &to, "--size", "1kB,2MB"]).unwrap();
    let sent = [before.messages, after.messages].concat();
    assert_arrived(&sent, &site.receive("OPS", sent.len()).unwrap());
    site.wait_until("nothing left", SOON, |status| status.waiting() == 0).unwrap();
    assert_eq!(site.stop().unwrap().code(), Some(0));
}
