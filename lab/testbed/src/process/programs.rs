//! Where the programs under test are.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The paths of the daemon, the client, and the program that runs in namespaces.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// `mta`.
    pub mta: PathBuf,
    /// `xuxa`.
    pub xuxa: PathBuf,
    /// `lab`, which captures packets and clears marks in namespaces.
    pub lab: PathBuf,
}

impl Programs {
    /// The programs that `MTA_BIN`, `XUXA_BIN` and `LAB_BIN` name. Otherwise those in the target
    /// directory of the running program: beside it, or one directory up, as for a test program in
    /// `deps/`.
    ///
    /// # Errors
    /// A program is missing; which, and how to build it.
    pub fn find() -> Result<Programs> {
        let own = std::env::current_exe().context("where the running program is")?;
        let near: Vec<&Path> = own.ancestors().skip(1).take(2).collect();
        Ok(Programs {
            mta: find("mta", "MTA_BIN", &near)?,
            xuxa: find("xuxa", "XUXA_BIN", &near)?,
            lab: find("lab", "LAB_BIN", &near)?,
        })
    }

    /// The programs in this directory.
    ///
    /// # Errors
    /// A program is missing; which.
    pub fn in_directory(directory: &Path) -> Result<Programs> {
        Ok(Programs {
            mta: file(directory, "mta")?,
            xuxa: file(directory, "xuxa")?,
            lab: file(directory, "lab")?,
        })
    }
}

fn find(name: &str, variable: &str, near: &[&Path]) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(variable).map(PathBuf::from) {
        if path.is_file() {
            return Ok(path);
        }
        bail!("{variable} names {}, which is not a file", path.display());
    }
    near.iter().find_map(|directory| file(directory, name).ok()).with_context(|| {
        let near: Vec<String> = near.iter().map(|path| path.display().to_string()).collect();
        format!(
            "no program {name} in {}: build it with `cargo build -p mta -p xuxa-cli -p lab` (as \
             `cargo xtask test` does), or name it in {variable}",
            near.join(" or ")
        )
    })
}

fn file(directory: &Path, name: &str) -> Result<PathBuf> {
    let path = directory.join(name);
    if !path.is_file() {
        bail!("no program {}", path.display());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_missing_program_has_the_command_that_builds_it() {
        let directory = tempfile::tempdir().unwrap();
        let error = find("mta", "NO_SUCH_VARIABLE", &[directory.path()]).unwrap_err().to_string();
        assert!(
            error.contains("no program mta") && error.contains("cargo build -p mta"),
            "{error}"
        );
        std::fs::write(directory.path().join("mta"), "").unwrap();
        assert!(find("mta", "NO_SUCH_VARIABLE", &[directory.path()]).is_ok());
        assert!(Programs::in_directory(directory.path()).is_err(), "xuxa is missing");
    }
}
