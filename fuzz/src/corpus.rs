//! Where inputs are kept: `corpus/<target>/` and `regressions/<target>/`, as hexadecimal text
//! (`.hex`) or as they are (`.bin`). `reached/<target>/` has what `cargo xtask guided` has kept.

use crate::{Target, hex, seeds};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The directory of this crate.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All inputs of a directory, by file name; none where there is no directory.
///
/// # Errors
/// A file that cannot be read, or is neither `.hex` nor `.bin`.
pub fn load(directory: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut inputs = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let octets = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let octets = match path.extension().and_then(|e| e.to_str()) {
            Some("bin") => octets,
            Some("hex") => {
                let text = String::from_utf8_lossy(&octets);
                hex::decode(&text).with_context(|| format!("{}: bad digits", path.display()))?
            }
            _ => bail!("{}: neither .hex nor .bin", path.display()),
        };
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
        inputs.push((name.unwrap_or_default(), octets));
    }
    inputs.sort();
    Ok(inputs)
}

/// Corpus and regressions of a target, and what libFuzzer has found to reach more code.
///
/// # Errors
/// As [`load`].
pub fn inputs(target: &Target) -> Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = load(&root().join("corpus").join(target.name))?;
    inputs.extend(load(&root().join("regressions").join(target.name))?);
    inputs.extend(load(&root().join("reached").join(target.name))?);
    Ok(inputs)
}

/// Writes the seeds of a target into its corpus, and removes what is there and no seed any more;
/// gives how many there are.
///
/// # Errors
/// A file or directory that cannot be written.
pub fn make(target: &Target) -> Result<usize> {
    let directory = root().join("corpus").join(target.name);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    let seeds = seeds::of_target(target.name);
    for (name, octets) in &seeds {
        let path = directory.join(format!("{name}.hex"));
        std::fs::write(&path, hex::encode(octets)).with_context(|| path.display().to_string())?;
    }
    Ok(seeds.len())
}
