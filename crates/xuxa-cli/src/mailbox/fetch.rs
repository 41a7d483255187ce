//! `xuxa fetch`: the content of a message, or the one that a report returns, octet for octet, streamed into a file.

use super::with_store;
use crate::part::{Part, sweep, sync_dir};
use crate::profile::Wrong;
use crate::show;
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use ua::store::Kind;

/// Prefix of contents that are being fetched.
const PREFIX: &str = ".xuxa-fetch";

#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// Its number in `xuxa list`
    number: u32,
    /// Into this file, which must not exist, or - for standard output [default: NUMBER.content]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What was written.
#[derive(Debug, Serialize)]
struct Done {
    number: u32,
    content_length: u64,
    content_sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// A file or standard output, and the hash of what goes there.
struct Hashed<'a> {
    to: &'a mut (dyn Write + Send),
    hasher: Sha256,
}

impl Write for Hashed<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let written = self.to.write(octets)?;
        self.hasher.update(octets.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Runs `xuxa fetch`.
pub(super) async fn fetch(access: &MtaAccess<'_>, args: &FetchArgs, json: bool) -> Result<u8> {
    let default = || PathBuf::from(format!("{}.content", args.number));
    let path = args.out.clone().unwrap_or_else(default);
    if path == Path::new("-") {
        if json {
            bail!(Wrong("--json and --out - both write to standard output".to_owned()));
        }
        let done = content(access, args.number, &mut io::stdout()).await?;
        terminal::report_error(&format!("{} of content", show::size(done.content_length)));
        return Ok(0);
    }
    if path.symlink_metadata().is_ok() {
        bail!(taken(&path));
    }
    let dir = match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    };
    let cannot = || format!("cannot write into {}", dir.display());
    sweep(dir, PREFIX).with_context(cannot)?;
    let mut part = Part::create(dir, PREFIX).with_context(cannot)?;
    let mut done = content(access, args.number, &mut part).await?;
    part.sync().with_context(cannot)?;
    if !part.publish(&path).with_context(cannot)? {
        bail!(taken(&path));
    }
    sync_dir(dir).with_context(cannot)?;
    done.file = Some(path.display().to_string());
    if json {
        terminal::print_json(&done);
    } else {
        let size = show::size(done.content_length);
        terminal::print(&format!("{size} of content in {}", path.display()));
    }
    Ok(0)
}

fn taken(path: &Path) -> Wrong {
    Wrong(format!("{} exists, and is not overwritten: give another --out", path.display()))
}

async fn content(access: &MtaAccess<'_>, number: u32, to: &mut (dyn Write + Send)) -> Result<Done> {
    let mut hashed = Hashed { to, hasher: Sha256::new() };
    let fetched =
        with_store(access, async |store| Ok(store.fetch(number, &mut hashed, u64::MAX).await?))
            .await?;
    hashed.flush()?;
    if fetched.entry.kind == Kind::Report && fetched.octets == 0 {
        bail!(Wrong(format!(
            "entry {number} is a report that returns no content: xuxa read {number}"
        )));
    }
    Ok(Done {
        number,
        content_length: fetched.octets,
        content_sha256: show::hex(&hashed.hasher.finalize()),
        file: None,
    })
}
