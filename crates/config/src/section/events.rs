//! `[events]`: the event log of messages.

use crate::problem::Problems;
use crate::section::site::{EventLog, Paths};
use crate::tree::{Bad, Section};
use crate::value;
use toml::Spanned;

/// Reads the section; without it there is no event log.
pub(crate) fn read(
    top: &mut Section<'_>,
    problems: &mut Problems,
    paths: Option<&Paths>,
) -> Option<EventLog> {
    let mut section = top.table(problems, "events")?;
    let file = section.optional(problems, "file", &value::name);
    let size = section.optional(problems, "size", &|v| match value::size(v)? {
        size if (64 << 10..=1 << 40).contains(&size) => Ok(size),
        size => {
            Err(Bad::new(format!("a file of {size} octets"), "write a size from 64 KiB to 1 TiB"))
        }
    });
    let keep = section.optional(problems, "keep", &|v| value::integer(v, 1, 1_000));
    section.finish(problems);
    let paths = paths?;
    let name = file.as_ref().map_or("events.jsonl", |file| file.get_ref());
    let path = paths.data_dir.join(name);
    if let Some(file) = &file
        && (path == paths.users_file()
            || path == paths.admin_socket
            || path.starts_with(paths.tracking())
            || path.starts_with(paths.data_dir.join("queue")))
    {
        let remedy = "write file = \"events.jsonl\"";
        problems.error(file.span(), "file of [events] is the daemon's own", "here", remedy);
    }
    Some(EventLog {
        path,
        size: size.map_or(64 << 20, Spanned::into_inner),
        keep: keep.map_or(4, Spanned::into_inner),
    })
}
