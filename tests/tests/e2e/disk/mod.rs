//! A disk without room: the daemon refuses submissions, and a user deliveries; both go on when there
//! is room.

mod filled;

use super::{SOON, assert_arrived, print_line};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use testbed::answer::{MtaStatus, ReceiveOutput};
use testbed::{DaemonEvent, Site};

/// A small file system of its own.
pub(crate) struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    /// `None` where we may not mount.
    pub(crate) fn mount(megabytes: u32) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(directory.path())
            .output();
        mount.is_ok_and(|output| output.status.success()).then_some(SmallDisk { directory })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Takes all the room that is left.
    pub(crate) fn fill(&self) -> PathBuf {
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
        print_line("    SKIPPED a_full_disk_refuses_submissions: mounting a small disk needs root");
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
    // The daemon looks once a second.
    let wait = |site: &Site, is_refused: bool| {
        let seen = |status: &MtaStatus| {
            status.disk.as_ref().is_some_and(|disk| disk.refused.is_some() == is_refused)
        };
        site.wait_until("the room is seen", SOON, seen).unwrap();
    };
    wait(&site, false);
    let before = site.send("OPS", &["--to", &to, "--size", "1kB,2MB"]).unwrap();

    // No room at all, for a large message or for a small one.
    let ballast = disk.fill();
    wait(&site, true);
    for size in ["2MB", "100kB"] {
        let run = send(size).unwrap();
        assert_eq!(run.code, 1, "{size} with no room left: {}{}", run.stdout, run.stderr);
    }
    site.status().expect("the daemon answers without room");

    fs::remove_file(ballast).unwrap();
    wait(&site, false);
    let after = site.send("OPS", &["--to", &to, "--size", "1kB,2MB"]).unwrap();
    let sent = [before.messages, after.messages].concat();
    assert_arrived(&sent, &site.receive("OPS", sent.len()).unwrap());
    site.wait_until("nothing left", SOON, |status| status.waiting() == 0).unwrap();
    assert_eq!(site.stop().unwrap().code(), Some(0));
}

#[test]
fn a_full_inbox_leaves_the_message_at_the_mta_and_nothing_behind() {
    let Some(disk) = SmallDisk::mount(8) else {
        print_line("    SKIPPED a_full_inbox_leaves_the_message: mounting a small disk needs root");
        return;
    };
    let builder = Site::builder("naples").run_with(&["--log-format", "json"]);
    let mut site = builder.build().unwrap();
    std::os::unix::fs::symlink(disk.path(), site.path().join("inbox-OPS")).unwrap();
    site.start().unwrap();
    let sent = site.send("OPS", &["--to", &site.address("OPS"), "--size", "2MB"]).unwrap();

    let ballast = disk.fill();
    let run = site.xuxa("OPS", &["--json", "receive"]).unwrap();
    assert_eq!(run.code, 3, "{}", run.stderr);
    let why = "1 messages still wait at the MTA: cannot write the inbox";
    assert!(run.stderr.contains(why), "{}", run.stderr);
    let names = || {
        let entries = fs::read_dir(disk.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["ballast", "received.log", "sent.log"]);
    // resource-limitation.
    let is_why = |e: &DaemonEvent| {
        let detail = e.detail.as_deref().unwrap_or_default();
        e.event == "delivery_failed" && detail.contains("InvokeProblem resourceLimitation")
    };
    let events = site.events().unwrap();
    assert!(events.iter().any(is_why), "{events:#?}");

    // Who binds again is there for what he could not take.
    fs::remove_file(ballast).unwrap();
    let run = site.xuxa("OPS", &["--json", "receive"]).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let received: ReceiveOutput = run.json_anyway().unwrap();
    assert_arrived(&sent.messages, &received);
    assert_eq!(site.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
    assert_eq!(names().len(), 3, "{:?}", names());
}
