//! `xuxa receive --extract DIR`: files that came in messages, under the names they were sent with.
//!
//! A name from the wire is a wish. It loses its directories and what a terminal or a shell would
//! obey; nothing is overwritten, no link is followed, and no file leaves the directory.

mod names;

use crate::inbox::{NotKept, Taking};
use crate::part::{Part, make_dir, sweep, sync_dir};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What files are called while they come: no name from the wire keeps a dot before it.
const PREFIX: &str = ".xuxa-extract";
/// Most files of one message: each is open until all are there.
const MAX_FILES: usize = 256;
/// How often names are chosen anew because others took them meanwhile.
const MAX_TRIES: usize = 100;

/// Where files go.
#[derive(Debug)]
pub(crate) struct Extraction {
    dir: PathBuf,
}

/// The files of one message. They go unless they are published.
pub(crate) struct Files<'a> {
    to: &'a Extraction,
    /// What a file is called that has no name.
    otherwise: String,
    files: Vec<(Part, String)>,
    /// The last of them is being written.
    is_open: bool,
    /// Files for which there was no room.
    pub left_out: u64,
}

fn not_kept(error: io::Error) -> NotKept {
    NotKept("write into the directory of --extract".to_owned(), error)
}

impl Extraction {
    /// Opens or makes the directory.
    pub(crate) fn open(dir: &Path) -> Result<Extraction> {
        let shown = dir.display();
        make_dir(dir).with_context(|| format!("cannot make the directory {shown}"))?;
        sweep(dir, PREFIX).with_context(|| format!("cannot read the directory {shown}"))?;
        Ok(Extraction { dir: dir.to_owned() })
    }

    /// Begins a message, whose files without a name are called `otherwise`.
    pub(crate) fn message(&self, otherwise: String) -> Files<'_> {
        Files { to: self, otherwise, files: Vec::new(), is_open: false, left_out: 0 }
    }
}

impl Files<'_> {
    /// A file begins.
    pub(crate) fn begin(&mut self, name: Option<&str>) -> Result<()> {
        self.is_open = self.files.len() < MAX_FILES;
        if !self.is_open {
            self.left_out += 1;
            return Ok(());
        }
        let name =
            names::harmless(name.unwrap_or_default()).unwrap_or_else(|| self.otherwise.clone());
        self.files.push((Part::create(&self.to.dir, PREFIX).map_err(not_kept)?, name));
        Ok(())
    }

    /// Its next octets, if one has begun.
    pub(crate) fn write(&mut self, octets: &[u8]) -> Result<()> {
        match self.files.last_mut().filter(|_| self.is_open) {
            Some((part, _)) => Ok(part.write(octets).map_err(not_kept)?),
            None => Ok(()),
        }
    }

    /// It is whole.
    pub(crate) fn end(&mut self) {
        self.is_open = false;
    }

    /// Gives all that are whole their names, durably; where they are. The names are recorded before a
    /// file has one: of a message that comes again, for this was cut off or failed, the files that are
    /// there are known for its own.
    pub(crate) fn publish(mut self, taking: &mut Taking<'_>) -> Result<Vec<PathBuf>> {
        if self.is_open {
            self.files.pop();
        }
        for (part, _) in &self.files {
            part.sync().map_err(not_kept)?;
        }
        for _ in 0..MAX_TRIES {
            let before = taking.names().to_vec();
            let plan = self.plan(taking, &before).map_err(not_kept)?;
            let names: Vec<String> = plan.iter().map(|chosen| chosen.name.clone()).collect();
            if names != before {
                taking.record(names.clone())?;
            }
            if self.place(&plan).map_err(not_kept)? {
                return Ok(names.iter().map(|name| self.to.dir.join(name)).collect());
            }
        }
        Err(not_kept(io::ErrorKind::AlreadyExists.into()).into())
    }

    /// A name for each file: the one recorded before, where it is free or the file is there; else the
    /// first that is free.
    fn plan(&self, taking: &Taking<'_>, before: &[String]) -> io::Result<Vec<Chosen>> {
        let (mut plan, mut used) = (Vec::new(), BTreeSet::new());
        for (number, (part, wish)) in self.files.iter().enumerate() {
            let recorded = before.get(number).filter(|name| is_plain(name));
            let mut chosen = match recorded.filter(|name| !used.contains(*name)) {
                Some(name) => self.as_recorded(part, name)?,
                None => None,
            };
            if chosen.is_none() {
                for name in names::candidates(wish, &taking.mark(number)) {
                    // What was recorded may be another file of the message.
                    let is_ours = used.contains(&name) || before.contains(&name);
                    if !is_ours && self.is_free(&name)? {
                        chosen = Some(Chosen { name, is_there: false });
                        break;
                    }
                }
            }
            let chosen = chosen.ok_or(io::ErrorKind::AlreadyExists)?;
            used.insert(chosen.name.clone());
            plan.push(chosen);
        }
        Ok(plan)
    }

    /// The name that was recorded for a file, unless another file has it.
    fn as_recorded(&self, part: &Part, name: &str) -> io::Result<Option<Chosen>> {
        let chosen = |is_there| Some(Chosen { name: name.to_owned(), is_there });
        let path = self.to.dir.join(name);
        if self.is_free(name)? {
            return Ok(chosen(false));
        }
        if part.is_same_as(&path)? {
            return Ok(chosen(true));
        }
        let found = path.symlink_metadata()?;
        if found.is_file() && found.len() == 0 {
            // On a file system without links a name is taken first, and what is cut off there is empty.
            fs::remove_file(&path)?;
            return Ok(chosen(false));
        }
        Ok(None)
    }

    fn is_free(&self, name: &str) -> io::Result<bool> {
        match self.to.dir.join(name).symlink_metadata() {
            Ok(_) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Gives the files their names; `false` where something has taken one meanwhile.
    fn place(&self, plan: &[Chosen]) -> io::Result<bool> {
        for ((part, _), chosen) in self.files.iter().zip(plan) {
            if !chosen.is_there && !part.publish(&self.to.dir.join(&chosen.name))? {
                return Ok(false);
            }
        }
        if !plan.is_empty() {
            sync_dir(&self.to.dir)?;
        }
        Ok(true)
    }
}

/// The name of a file, and whether it has that already.
struct Chosen {
    name: String,
    is_there: bool,
}

/// Whether this names something in the directory itself.
fn is_plain(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file| file == name)
}

#[cfg(test)]
mod tests;
