use super::*;
use std::fs::{OpenOptions, remove_file};
use std::io::Write as _;

struct Log {
    dir: tempfile::TempDir,
}

impl Log {
    fn new() -> Log {
        Log { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, generation: u32) -> PathBuf {
        match generation {
            0 => self.dir.path().join("events.jsonl"),
            n => self.dir.path().join(format!("events.jsonl.{n}")),
        }
    }

    fn write(&self, text: &str) {
        self.write_to(0, text);
    }

    fn write_to(&self, generation: u32, text: &str) {
        let path = self.path(generation);
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// As the daemon does it: the oldest goes, the others move on.
    #[expect(clippy::disallowed_methods, reason = "files of a test need not be durable")]
    fn rotate(&self, keep: u32) {
        let _ = remove_file(self.path(keep));
        for generation in (0..keep).rev() {
            let _ = std::fs::rename(self.path(generation), self.path(generation + 1));
        }
    }

    fn follow(&self) -> Follower {
        Follower::start(&self.path(0)).unwrap()
    }
}

fn line(number: u32) -> String {
    format!(
        r#"{{"time_us":{number},"mta":"A","event":"delivered","mts_id":"m{number}","entry":"1"}}"#
    ) + "\n"
}

fn poll(follower: &mut Follower) -> Vec<u64> {
    let mut numbers = Vec::new();
    follower.poll(|event| numbers.push(event.time_us)).unwrap();
    numbers
}

#[test]
fn reading_begins_at_the_end_and_goes_on_with_what_comes() {
    let log = Log::new();
    log.write(&line(1));
    let mut follower = log.follow();
    assert!(poll(&mut follower).is_empty(), "what was there before is not of this run");
    log.write(&(line(2) + &line(3)));
    assert_eq!(poll(&mut follower), [2, 3]);
    assert!(poll(&mut follower).is_empty());
    assert_eq!(follower.counts, Counts { events: 2, skipped: 0, ..Counts::default() });
}

#[test]
fn a_log_that_appears_later_is_read_from_its_beginning() {
    let log = Log::new();
    let mut follower = log.follow();
    assert!(poll(&mut follower).is_empty());
    log.write(&line(1));
    assert_eq!(poll(&mut follower), [1]);
}

#[test]
fn a_line_is_read_when_it_is_whole_wherever_it_was_cut() {
    let log = Log::new();
    let mut follower = log.follow();
    let (whole, mut read) = (line(1) + &line(2), Vec::new());
    for octet in whole.as_bytes().chunks(1) {
        log.write(std::str::from_utf8(octet).unwrap());
        read.extend(poll(&mut follower));
    }
    assert_eq!(read, [1, 2]);
    assert_eq!(follower.counts.skipped, 0);
}

#[test]
fn garbage_is_counted_and_passed_over() {
    let log = Log::new();
    let mut follower = log.follow();
    log.write(&format!("garbage\n\n{}\n{}", "x".repeat(3 * MAX_LINE), line(1)));
    assert_eq!(poll(&mut follower), [1]);
    assert_eq!(follower.counts, Counts { events: 1, skipped: 3, ..Counts::default() });
}

#[test]
fn rotation_loses_nothing_however_often_it_happened() {
    let log = Log::new();
    log.write(&line(1));
    let mut follower = log.follow();
    log.write(&line(2));
    // Before the next look: what was added to the old file, a whole file, and one half written.
    log.rotate(4);
    log.write_to(1, &line(3));
    log.write(&line(4));
    log.rotate(4);
    log.write(&(line(5) + "{\"time_us\":6,"));
    assert_eq!(poll(&mut follower), [2, 3, 4, 5]);
    log.write("\"mta\":\"A\",\"event\":\"delivered\",\"mts_id\":\"x\"}\n");
    assert_eq!(poll(&mut follower), [6]);
    assert_eq!(follower.counts, Counts { events: 5, skipped: 0, ..Counts::default() });
}

#[test]
fn between_two_files_nothing_is_lost() {
    let log = Log::new();
    log.write(&line(1));
    let mut follower = log.follow();
    log.rotate(4);
    log.write_to(1, &line(2));
    assert_eq!(poll(&mut follower), [2], "the new one is not there yet");
    log.write_to(1, &line(3));
    log.write(&line(4));
    assert_eq!(poll(&mut follower), [3, 4]);
    assert_eq!(follower.counts.gaps, 0);
}

#[test]
fn a_file_removed_unread_is_counted() {
    let log = Log::new();
    log.write(&line(1));
    let mut follower = log.follow();
    for number in 2..=6 {
        log.write(&line(number));
        log.rotate(2);
    }
    // The file that was open is gone but can still be read; of those after it two are left.
    assert_eq!(poll(&mut follower), [2]);
    log.write(&line(7));
    assert_eq!(poll(&mut follower), [5, 6, 7]);
    assert_eq!(follower.counts, Counts { events: 4, skipped: 0, gaps: 1, lost: 0 });
}

#[test]
fn a_torn_last_line_of_a_rotated_file_is_no_part_of_the_next() {
    let log = Log::new();
    log.write("");
    let mut follower = log.follow();
    log.write(&(line(1) + "{\"time_us\":2,\"mta\":\"A\""));
    log.rotate(4);
    log.write(&line(3));
    assert_eq!(poll(&mut follower), [1, 3]);
    assert_eq!(follower.counts, Counts { events: 2, skipped: 1, ..Counts::default() });
}

#[test]
fn a_log_emptied_in_place_is_read_again_from_its_beginning() {
    let log = Log::new();
    log.write(&(line(1) + &line(2)));
    let mut follower = log.follow();
    assert!(poll(&mut follower).is_empty());
    OpenOptions::new().write(true).open(log.path(0)).unwrap().set_len(0).unwrap();
    log.write(&line(3));
    assert_eq!(poll(&mut follower), [3]);
    assert_eq!(follower.counts.gaps, 1);
}

#[test]
fn a_log_that_lost_its_end_goes_on_from_there() {
    let log = Log::new();
    log.write(&line(1));
    let mut follower = log.follow();
    let length = std::fs::metadata(log.path(0)).unwrap().len();
    // As where the disk was full in the middle of a write: a part, taken back.
    log.write("{\"time_us\":2,\"mta\":\"A\"");
    assert!(poll(&mut follower).is_empty());
    OpenOptions::new().write(true).open(log.path(0)).unwrap().set_len(length).unwrap();
    assert!(poll(&mut follower).is_empty(), "what was there is not read again");
    let lost = "{\"time_us\":3,\"mta\":\"A\",\"event\":\"lines_lost\",\"count\":4}\n";
    log.write(&(lost.to_owned() + &line(5)));
    assert_eq!(poll(&mut follower), [5]);
    assert_eq!(follower.counts, Counts { events: 1, skipped: 1, gaps: 2, lost: 4 });
}
