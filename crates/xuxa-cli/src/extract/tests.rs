use super::*;
use crate::inbox::{Inbox, Kept, Taking};
use std::os::unix::fs::{PermissionsExt as _, symlink};

const ID: &str = "[/ADMD=NATO/C=XX/;7]";

/// A directory for files, beside an inbox.
struct Place {
    dir: tempfile::TempDir,
    to: Extraction,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let to = Extraction::open(&dir.path().join("new/out")).unwrap();
        Place { dir, to }
    }

    /// Receives a message with these files; what they are called. `before` is done when all of it has
    /// come, and `killed` after its files have their names.
    fn receive(
        &self,
        id: &str,
        files: &[(Option<&str>, &[u8])],
        before: impl FnOnce(),
        killed: bool,
    ) -> Result<Vec<String>> {
        let mut message = self.to.message("message-1.bin".to_owned());
        let mut inbox = Inbox::open(&self.dir.path().join("inbox"), true)?;
        let mut incoming = inbox.begin(id)?;
        for (name, octets) in files {
            message.begin(*name)?;
            octets.chunks(2).try_for_each(|piece| message.write(piece))?;
            message.end();
            incoming.write(octets)?;
        }
        before();
        let mut paths = Vec::new();
        let kept: Kept = inbox.finish(incoming, id, "content", |taking| {
            paths = message.publish(taking)?;
            match killed {
                true => Err(not_kept(io::ErrorKind::Interrupted.into()).into()),
                false => Ok(()),
            }
        })?;
        assert!(!kept.duplicate);
        let name = |path: &PathBuf| path.strip_prefix(&self.to.dir).unwrap().display().to_string();
        Ok(paths.iter().map(name).collect())
    }

    fn extract(&self, id: &str, files: &[(Option<&str>, &[u8])]) -> Vec<String> {
        self.receive(id, files, || {}, false).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
        let mut all: Vec<_> =
            fs::read_dir(&self.to.dir).unwrap().map(|e| name(e).unwrap()).collect();
        all.sort();
        all
    }
}

#[test]
fn nothing_is_overwritten_and_no_symlink_followed() {
    let place = Place::new();
    let (to, dir) = (&place.to, &place.dir);
    assert_eq!(fs::metadata(&to.dir).unwrap().permissions().mode() & 0o777, 0o700);
    let elsewhere = dir.path().join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    fs::write(to.dir.join("a.bin"), "there").unwrap();
    symlink(&elsewhere, to.dir.join("b.bin")).unwrap();
    symlink(dir.path().join("dangling"), to.dir.join("c.bin")).unwrap();
    fs::create_dir(to.dir.join("d")).unwrap();
    let octets: &[u8] = &[0, 255, 10, 13, 26];
    let names = place.extract(
        ID,
        &[
            (Some("a.bin"), octets),
            (Some("a.bin"), b"2"),
            (Some("b.bin"), b"b"),
            (Some("c.bin"), b"c"),
            (Some("d"), b"d"),
            (None, b""),
        ],
    );
    assert_eq!(names, ["a-1.bin", "a-2.bin", "b-1.bin", "c-1.bin", "d-1", "message-1.bin"]);
    assert_eq!(fs::read(to.dir.join("a-1.bin")).unwrap(), octets);
    assert_eq!(fs::read(to.dir.join("a.bin")).unwrap(), b"there");
    assert_eq!(fs::read(&elsewhere).unwrap(), b"mine");
    assert!(!dir.path().join("dangling").exists());
    let mode = fs::metadata(to.dir.join("a-1.bin")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The files, and what was there before: no part of ours.
    assert_eq!(place.names().len(), 10);
    // Another message with the same files has files of its own.
    assert_eq!(place.extract("[/C=XX/;8]", &[(Some("a.bin"), octets)]), ["a-3.bin"]);
}

#[test]
fn one_killed_before_it_was_remembered_is_not_taken_apart_again() {
    let place = Place::new();
    fs::write(place.to.dir.join("x.bin"), "there").unwrap();
    let files: &[(Option<&str>, &[u8])] =
        &[(Some("x.bin"), b"one"), (Some("x.bin"), b"one"), (Some("y"), b""), (None, b"two")];
    for _ in 0..3 {
        place.receive(ID, files, || {}, true).unwrap_err();
        // Its names are its own, even if better ones are free meanwhile.
        let _ = fs::remove_file(place.to.dir.join("x.bin"));
    }
    let all = ["message-1.bin", "x-1.bin", "x-2.bin", "y"];
    assert_eq!(place.names(), all);
    assert_eq!(place.extract(ID, files), ["x-1.bin", "x-2.bin", "y", "message-1.bin"]);
    assert_eq!(place.names(), all);
    for (name, octets) in [("x-1.bin", "one"), ("x-2.bin", "one"), ("y", ""), (all[0], "two")] {
        assert_eq!(fs::read_to_string(place.to.dir.join(name)).unwrap(), octets);
    }
}

#[test]
fn one_of_which_a_file_was_changed_meanwhile_takes_another_name() {
    let place = Place::new();
    let files: &[(Option<&str>, &[u8])] = &[(Some("a"), b"one"), (Some("b"), b"two")];
    place.receive(ID, files, || {}, true).unwrap_err();
    fs::write(place.to.dir.join("a"), "edited").unwrap();
    fs::remove_file(place.to.dir.join("b")).unwrap();
    assert_eq!(place.extract(ID, files), ["a-1", "b"]);
    assert_eq!(fs::read(place.to.dir.join("a")).unwrap(), b"edited");
}

#[test]
fn one_whose_second_file_cannot_be_placed_leaves_no_copies() {
    let place = Place::new();
    let files: &[(Option<&str>, &[u8])] = &[(Some("a"), b"one"), (Some("b"), b"two")];
    let parts = || place.names().into_iter().filter(|n| n.ends_with(".part")).collect::<Vec<_>>();
    for _ in 0..3 {
        let lose = || {
            let mut parts = parts();
            parts
                .sort_by_key(|name| fs::metadata(place.to.dir.join(name)).unwrap().modified().ok());
            fs::remove_file(place.to.dir.join(parts.last().unwrap())).unwrap();
        };
        place.receive(ID, files, lose, false).unwrap_err();
        // Nor is there an empty file under the name of the second.
        assert_eq!(place.names(), ["a"]);
    }
    assert_eq!(place.extract(ID, files), ["a", "b"]);
    assert_eq!(place.names(), ["a", "b"]);
}

#[test]
fn what_is_there_already_costs_few_looks() {
    let place = Place::new();
    for number in 0..30 {
        fs::write(place.to.dir.join(names::candidates("a", "").nth(number % 10).unwrap()), "")
            .unwrap();
    }
    let names = place.extract(ID, &[(Some("a"), b"1"), (Some("a"), b"2")]);
    assert_ne!(names[0], names[1]);
    for name in names {
        // A mark of 16 digits, which is this file's alone.
        assert_eq!(name.len(), "a-".len() + 16, "{name}");
    }
}

#[test]
fn a_part_is_never_taken_for_one_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sweeping = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                sweep(dir.path(), PREFIX).unwrap();
            }
        });
        let placed = (0..5_000).all(|number| {
            let part = Part::create(dir.path(), PREFIX).unwrap();
            part.publish(&dir.path().join(number.to_string())).is_ok_and(|placed| placed)
                && fs::remove_file(dir.path().join(number.to_string())).is_ok()
        });
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        sweeping.join().unwrap();
        assert!(placed);
    });
}

#[test]
fn what_is_not_published_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let to = Extraction::open(dir.path()).unwrap();
    let count = || fs::read_dir(dir.path()).unwrap().count();
    let mut message = to.message("m".to_owned());
    message.begin(Some("a")).unwrap();
    message.write(b"1").unwrap();
    assert_eq!(count(), 1, "the part");
    // One that is being written stays, whoever opens the directory.
    Extraction::open(dir.path()).unwrap();
    assert_eq!(count(), 1, "the part");
    drop(message);
    assert_eq!(count(), 0);
    fs::write(dir.path().join(".xuxa-extract.1-1.part"), "left behind").unwrap();
    fs::write(dir.path().join("other.part"), "of somebody else").unwrap();
    Extraction::open(dir.path()).unwrap();
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["other.part"]);
}

#[test]
fn of_a_message_cut_off_in_the_middle_of_a_file_only_whole_ones_count() {
    let place = Place::new();
    let mut inbox = Inbox::open(&place.dir.path().join("inbox"), true).unwrap();
    let incoming = inbox.begin(ID).unwrap();
    let mut message = place.to.message("m".to_owned());
    for name in ["a", "b"] {
        message.end();
        message.begin(Some(name)).unwrap();
    }
    let publish = |taking: &mut Taking<'_>| {
        assert_eq!(message.publish(taking)?, [place.to.dir.join("a")]);
        Ok(())
    };
    inbox.finish(incoming, ID, "content", publish).unwrap();
    assert_eq!(place.names(), ["a"]);
}
