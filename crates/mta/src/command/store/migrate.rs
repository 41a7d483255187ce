//! `mta store migrate`: a queue is copied from one engine to another one.

use super::is_running;
use crate::command::output::{load, print, print_error, print_json, progress, table, trimmed};
use crate::command::{DONE, FAILED, WRONG};
use crate::migration::{Copied, Error, migrate};
use serde::Serialize;
use std::path::Path;

/// One line of the result.
#[derive(Serialize)]
struct Line {
    what: &'static str,
    count: u64,
    octets: u64,
    /// 16 digits: the same on both sides.
    digest: String,
}

pub(super) fn run(from: &Path, to: &Path, json: bool) -> u8 {
    let (Some(from), Some(to)) = (load(from), load(to)) else { return WRONG };
    for site in [&from, &to] {
        match is_running(&site.paths.admin_socket) {
            Ok(false) => {}
            Ok(true) => {
                print_error("the daemon is running: stop it first");
                return FAILED;
            }
            Err(error) => {
                print_error(&error.to_string());
                return FAILED;
            }
        }
    }
    let (mut octets, mut shown) = (0_u64, 0);
    let ended = migrate(&from, &to, &mut |more| {
        octets += more;
        if octets / 1_000_000 != shown {
            shown = octets / 1_000_000;
            progress(Some(&format!("{shown} MB copied and compared")));
        }
    });
    progress(None);
    match ended {
        Ok(copied) if json => print_json(&lines(&copied)),
        Ok(copied) => print(&text(&copied)),
        Err(error) => {
            print_error(&error.to_string());
            return if matches!(error, Error::OtherMta { .. }) { WRONG } else { FAILED };
        }
    }
    DONE
}

fn lines(copied: &Copied) -> Vec<Line> {
    let line = |(what, sum): (&'static str, store::migrate::Sum)| Line {
        what,
        count: sum.count,
        octets: sum.octets,
        digest: format!("{:016x}", sum.digest),
    };
    copied.all().into_iter().map(line).collect()
}

fn text(copied: &Copied) -> String {
    let mut rows = table(["COPIED", "COUNT", "OCTETS", "DIGEST"]);
    for Line { what, count, octets, digest } in lines(copied) {
        rows.add_row([what.to_owned(), count.to_string(), octets.to_string(), digest]);
    }
    trimmed(&rows) + "both are equal; start no daemon on the source again\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::migrate::{Sum, Sums};

    #[test]
    fn the_result_is_a_table() {
        let entries = Sum { count: 3, octets: 1200, digest: 0xabc };
        let users = Sum { count: 2, octets: 200, digest: 0xdef };
        let shown = text(&Copied { queue: Sums { entries, ..Sums::default() }, users });
        assert!(shown.contains("queue entries"), "{shown}");
        assert!(shown.contains("0000000000000abc"), "{shown}");
        assert!(shown.contains("0000000000000def"), "{shown}");
        assert!(shown.ends_with("on the source again\n"), "{shown}");
    }
}
