//! The topology and its policies, read and checked before anything is made.

use crate::NetworkOptions;
use crate::control::protocol::{MAX_NAME, is_name};
use anyhow::Result;
use network::{NetworkMachine, Topology};
use router::policy::{KeyFault, Name, RouterPolicy};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use text::UsageError;
use text::toml_file::{Mistake, TomlFile};
use translation::policy_file::PolicyFile;

/// All that was read.
#[derive(Debug)]
pub(crate) struct Files {
    /// The network's name.
    pub(crate) name: String,
    topology: TomlFile<Topology>,
    pub(crate) policies: BTreeMap<Name, RouterPolicy>,
    policy_files: BTreeMap<Name, PolicyFile>,
}

impl Files {
    /// Reads the topology, and the policies its routers name.
    ///
    /// # Errors
    /// A file cannot be read or has a mistake; with file, line and column.
    pub(crate) fn read(options: &NetworkOptions) -> Result<Files> {
        let file = &options.topology;
        let shipped = shipped(options)?;
        let topology = match shipped {
            Some((name, text)) => TomlFile::<Topology>::parse(&format!("{name}.toml"), text),
            None => TomlFile::<Topology>::read(file),
        };
        let topology = topology.map_err(|mistake| refused(&mistake))?;
        let name = match &options.name {
            Some(name) => name.clone(),
            None => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        if !is_name(&name) {
            return Err(UsageError::error(format!(
                "invalid name of a network: {name:?} (1 to {MAX_NAME} letters, digits, `-`, `_`, \
                 `.`): give one with --name"
            )));
        }
        let mut policy_files = BTreeMap::new();
        let mut policies = BTreeMap::new();
        let given: BTreeMap<&str, &Path> =
            options.policies.iter().map(|(name, file)| (name.as_str(), file.as_path())).collect();
        let named = topology
            .value
            .routers
            .iter()
            .filter_map(|(router, is)| Some((router, is.policy.as_ref()?)));
        for (router, policy) in named {
            if policies.contains_key(policy) {
                continue;
            }
            let by_name = || {
                let of_program = shipped.and(Some(options.shipped_policies));
                let found = of_program.and_then(|all| named_in(all, policy.as_str()));
                found.map(|(name, text)| PolicyFile::parse(&format!("{name}.toml"), text))
            };
            let read = match given.get(policy.as_str()) {
                Some(file) => PolicyFile::read(file),
                None => by_name()
                    .or_else(|| beside(file, policy).map(|file| PolicyFile::read(&file)))
                    .ok_or_else(|| {
                        let what = format!(
                            "no file {policy}.toml beside it, in policies/ or \
                         in ../policies/; give its path with --policy {policy}=FILE"
                        );
                        refused(&topology.mistake_at(&format!("routers.{router}.policy"), &what))
                    })?,
            };
            let read = read.map_err(|mistake| refused(&mistake))?;
            for warning in read.policy().warnings() {
                let shown = read.mistake(&warning).render(false);
                eprintln!("warning: {}", base::shown::text(shown.trim_end()));
            }
            policies.insert(policy.clone(), read.policy().clone());
            policy_files.insert(policy.clone(), read);
        }
        if let Some(unused) = given.keys().find(|name| !policies.contains_key(**name)) {
            let what = format!("no router has the policy {unused} that --policy gives");
            return Err(mistake(file, &what));
        }
        Ok(Files { name, topology, policies, policy_files })
    }

    /// The machine.
    ///
    /// # Errors
    /// The files do not fit together: with file and key.
    pub(crate) fn network(&self, seed: u64) -> Result<NetworkMachine> {
        NetworkMachine::new(self.topology(), &self.policies, seed).map_err(|wrong| {
            // `policies.NAME (of routers.ROUTER): KEY`.
            let inside = wrong.path.strip_prefix("policies.").and_then(|rest| {
                let (name, rest) = rest.split_once(" (of ")?;
                let (_, key) = rest.split_once("): ")?;
                Some((self.policy_files.get(name)?, key))
            });
            refused(&match inside {
                Some((file, key)) => file.mistake(&KeyFault::at(key, wrong.what)),
                None => self.topology.mistake_at(&wrong.path, &wrong.what),
            })
        })
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology.value
    }
}

fn refused(mistake: &Mistake) -> anyhow::Error {
    UsageError::error(mistake.to_string())
}

fn mistake(file: &Path, what: &str) -> anyhow::Error {
    UsageError::error(format!("{}: {what}", file.display()))
}

/// The topology that is part of the program, if it is named; a file of that name goes first.
///
/// # Errors
/// Neither is there.
fn shipped(options: &NetworkOptions) -> Result<Option<(&'static str, &'static str)>> {
    let file = &options.topology;
    let name = file.to_str().filter(|name| !name.contains(['/', '\\', '.']));
    let Some(name) = name.filter(|_| !file.exists()) else { return Ok(None) };
    let names: Vec<&str> = options.topologies.iter().map(|(name, _)| *name).collect();
    match named_in(options.topologies, name) {
        Some(found) => Ok(Some(found)),
        None if names.is_empty() => Ok(None),
        None => {
            let what = format!("no file, and none of the topologies here: {}", names.join(", "));
            Err(mistake(file, &what))
        }
    }
}

fn named_in(all: crate::Shipped, name: &str) -> Option<(&'static str, &'static str)> {
    all.iter().find(|(other, _)| *other == name).copied()
}

/// Where a policy is looked for.
fn beside(topology: &Path, policy: &str) -> Option<PathBuf> {
    // A name must not lead out of these directories.
    if policy.contains(['/', '\\']) || policy.starts_with('.') {
        return None;
    }
    let directory = topology.parent()?;
    let file = format!("{policy}.toml");
    let places = ["", "policies", "../policies"];
    places.iter().map(|place| directory.join(place).join(&file)).find(|file| file.is_file())
}
