//! Passwords of peers: read from the environment or a file, never from the configuration itself.

use crate::Unfit;
use crate::problem::Problems;
use crate::tree::{Bad, Section};
use bytes::Bytes;
use node::Secret;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::DeValue;

/// Longest password (X.411, ub-password-length), in octets.
const MAX_PASSWORD: usize = 62;

const REMEDY: &str = "write { env = \"NAME\" } or { file = \"path\" }";

/// The source of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Environment(String),
    File(PathBuf),
}

fn place(value: &DeValue<'_>) -> Result<Place, Bad> {
    if value.is_str() {
        return Err(Bad::new("a password does not belong in the configuration", REMEDY));
    }
    let table = value.as_table().filter(|table| table.len() == 1);
    let (key, what) = table
        .and_then(|table| table.iter().next())
        .and_then(|(key, value)| Some((key.get_ref(), value.get_ref().as_str()?)))
        .filter(|(_, what)| !what.is_empty())
        .ok_or_else(|| Bad::new("this names no secret", REMEDY))?;
    match key.as_ref() {
        "env" => Ok(Place::Environment(what.to_owned())),
        "file" => Ok(Place::File(PathBuf::from(what))),
        other => Err(Bad::new(format!("unknown key {other:?}"), REMEDY)),
    }
}

/// Access to data outside the configuration file.
pub(crate) struct Source<'s> {
    /// Directory that relative file names are relative to.
    pub(crate) base: &'s Path,
    /// Reads an environment variable.
    pub(crate) environment: &'s dyn Fn(&str) -> Option<String>,
    /// Returns why a directory cannot hold the daemon's files.
    pub(crate) directory: &'s dyn Fn(&Path) -> Option<Unfit>,
}

/// Reads the secret under `key`; `None` after adding an error.
pub(crate) fn read(
    section: &mut Section<'_>,
    problems: &mut Problems,
    key: &'static str,
    source: &Source<'_>,
) -> Option<Secret> {
    if let Some(span) = section.literal(key) {
        problems.secret(span);
    }
    let found = section.required(problems, key, REMEDY, &place)?;
    let octets = match found.get_ref() {
        Place::Environment(name) => match (source.environment)(name) {
            Some(value) => value.into_bytes(),
            None => {
                let message = format!("{key} of {}: {name} is not set", section.name());
                let remedy = format!("set {name} in the daemon's environment");
                problems.error(found.span(), message, "environment variable", remedy);
                return None;
            }
        },
        Place::File(path) => from_file(section, problems, key, &found, &source.base.join(path))?,
    };
    if octets.is_empty() || octets.len() > MAX_PASSWORD || !octets.iter().all(u8::is_ascii) {
        let message = format!("{key} of {}: this secret cannot be sent", section.name());
        let remedy = format!("a password has 1 to {MAX_PASSWORD} ASCII characters");
        problems.error(found.span(), message, "the secret found here", remedy);
        return None;
    }
    Some(Secret(Bytes::from(octets)))
}

/// The first line of a file, which must have no other.
fn from_file(
    section: &Section<'_>,
    problems: &mut Problems,
    key: &str,
    found: &Spanned<Place>,
    path: &Path,
) -> Option<Vec<u8>> {
    let read = || -> io::Result<(u32, Vec<u8>)> {
        Ok((std::fs::metadata(path)?.permissions().mode(), std::fs::read(path)?))
    };
    match read() {
        Ok((mode, mut octets)) => {
            if mode & 0o077 != 0 {
                let message =
                    format!("{key} of {}: others may read the secret file", section.name());
                let label = format!("its mode is {:04o}", mode & 0o7777);
                problems.error(found.span(), message, label, "chmod 600 the file");
                return None;
            }
            while octets.last().is_some_and(|b| b"\r\n".contains(b)) {
                octets.pop();
            }
            Some(octets)
        }
        Err(error) => {
            let message = format!("{key} of {}: the secret cannot be read", section.name());
            let remedy = "the file must exist and be readable by the daemon's user";
            problems.error(found.span(), message, reason(&error), remedy);
            None
        }
    }
}

/// An I/O error as text that does not depend on the system.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
