//! `xuxa receive --extract DIR` and `xuxa extract`: the files in messages, under the names they were sent with.
//!
//! A name from the wire is a proposal. Directories and characters with a meaning to terminals and
//! shells are removed; no file is overwritten, no link is followed, no file leaves the directory.

mod names;

use crate::inbox::NotKept;
use crate::part::{Naming, Part, make_dir, sweep, sync_dir};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Prefix of files that are being received: no name from the wire keeps a leading dot.
const PREFIX: &str = ".xuxa-extract";
/// Bound of the files of one message: each is open until all are complete.
const MAX_FILES: usize = 256;
/// Attempts to choose names that other processes do not take at the same time.
const MAX_TRIES: usize = 100;

/// The directory for files.
#[derive(Debug)]
pub(crate) struct Extraction {
    dir: PathBuf,
}

/// The files of one message. They are removed unless published.
pub(crate) struct Files<'a> {
    to: &'a Extraction,
    /// Name of a file without one.
    otherwise: String,
    files: Vec<(Part, String)>,
    /// The last file is being written.
    is_open: bool,
    /// Files beyond [`MAX_FILES`].
    pub left_out: u64,
}

fn not_kept(error: io::Error) -> NotKept {
    NotKept("write into the directory for the files".to_owned(), error)
}

impl Extraction {
    /// Opens or creates the directory.
    pub(crate) fn open(dir: &Path) -> Result<Extraction> {
        let shown = dir.display();
        make_dir(dir).with_context(|| format!("cannot create the directory {shown}"))?;
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

    /// The next octets of the current file, if any.
    pub(crate) fn write(&mut self, octets: &[u8]) -> Result<()> {
        match self.files.last_mut().filter(|_| self.is_open) {
            Some((part, _)) => Ok(part.write(octets).map_err(not_kept)?),
            None => Ok(()),
        }
    }

    /// The current file is complete.
    pub(crate) fn end(&mut self) {
        self.is_open = false;
    }

    /// Gives all complete files their names, durably; returns their paths. The names are recorded
    /// first, so that a repeated delivery after a failure recognises its own files.
    pub(crate) fn publish(mut self, taking: &mut impl Naming) -> Result<Vec<PathBuf>> {
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

    /// A name for each file: the recorded one, if it is free or the file exists; else the first free
    /// one.
    fn plan(&self, taking: &impl Naming, before: &[String]) -> io::Result<Vec<Chosen>> {
        let (mut plan, mut used) = (Vec::new(), BTreeSet::new());
        for (number, (part, wish)) in self.files.iter().enumerate() {
            let recorded = before.get(number).filter(|name| is_plain(name));
            let mut chosen = match recorded.filter(|name| !used.contains(*name)) {
                Some(name) => self.as_recorded(part, name)?,
                None => None,
            };
            if chosen.is_none() {
                for name in names::candidates(wish, &taking.mark(number)) {
                    // A recorded name may belong to another file of the message.
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
            // Without links, a name is taken by an empty file first; a crash may leave it.
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

    /// Gives the files their names; `false` if another process has taken one.
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

/// The name of a file, and whether it has it already.
struct Chosen {
    name: String,
    is_there: bool,
}

/// Whether the name is one of the directory itself.
fn is_plain(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file| file == name)
}

#[cfg(test)]
mod tests;
