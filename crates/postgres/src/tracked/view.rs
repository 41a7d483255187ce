//! A node's two ends: it tracks and its thread copies; and who asks at it sees the whole site.

use super::{Own, TrackedArchive, TrackedEvents};
use crate::options::Options;
use base::Utc;
use std::io;
use std::path::Path;
use tracking::ship::{Failed, Origin};
use tracking::source::{Asked, Joined, Parts};
use tracking::{Gone, Reader, Source, Tracker};

/// Begins to track into a directory, `limit` octets at most, and to copy it into the tables of a store, which are
/// kept below the same limit. `fresh` is a random number for a directory that has none yet. The database may be
/// away.
///
/// # Errors
/// The directory cannot be written, or the url is none.
pub fn track(
    directory: &Path,
    limit: u64,
    node: &str,
    fresh: u128,
    (url, options): (&str, &Options),
) -> io::Result<Tracker> {
    let origin = Origin::open(directory, node, fresh)?;
    let archive = TrackedArchive::new(url, options).map_err(io::Error::other)?;
    Tracker::start_copied(directory, limit, origin, archive)
}

/// The events of a site as its node `node` sees them, which tracks in this directory; of one node, if `only`
/// names it. Without the database they are the node's own, with a note ([`Source::notes`]).
///
/// # Errors
/// There is no node `only`; or neither the files nor the database can be read.
pub fn site_events(
    directory: &Path,
    node: &str,
    only: Option<&str>,
    (url, options): (&str, &Options),
) -> Result<Joined, Failed> {
    let own = Reader::open(directory).map(|reader| reader.of_node(node));
    let all = {
        let origin = Origin::read(directory, node).unwrap_or_default();
        let from = own.as_ref().ok().and_then(Reader::start);
        let own = origin.zip(from).map(|(origin, from)| Own { origin, from });
        TrackedEvents::open(url, options, own.as_ref(), only)
    };
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    match all {
        Ok(all) => {
            let mut nodes = all.nodes();
            if let Some(only) =
                only.filter(|only| *only != node && !nodes.iter().any(|n| n == only))
            {
                nodes.push(node.to_owned());
                nodes.sort();
                nodes.dedup();
                return Err(format!(
                    "no node {only:?} has tracked anything; there are {}",
                    nodes.join(", ")
                )
                .into());
            }
            sources.push(Box::new(all));
        }
        Err(error) if only.is_some_and(|only| only != node) => return Err(error.into()),
        Err(error) => {
            let note = format!("{error}; this is what {node} alone has tracked");
            sources.push(Box::new(Note(note)));
        }
    }
    match own {
        Ok(own) if only.is_none_or(|only| only == node) => sources.push(Box::new(own)),
        // A node that tracks nothing sees the others.
        Ok(_) => {}
        Err(Gone::Nothing(_)) if !is_note(&sources) => {}
        Err(gone) => return Err(gone.into()),
    }
    Ok(Joined(sources))
}

/// Whether there is a note alone.
fn is_note(sources: &[Box<dyn Source>]) -> bool {
    sources.iter().all(|source| source.since().is_none() && !source.notes().is_empty())
}

/// No events, and why.
struct Note(String);

impl Source for Note {
    fn parts<'a>(&'a self, _: Asked<'a>) -> Parts<'a> {
        Box::new(std::iter::empty())
    }

    fn since(&self) -> Option<Utc> {
        None
    }

    fn notes(&self) -> Vec<String> {
        vec![self.0.clone()]
    }
}
