//! `lab export-tc`.

use anyhow::Result;
use router::policy::RouterPolicy;
use std::path::PathBuf;
use std::process::ExitCode;
use text::UsageError;
use translation::policy_file::PolicyFile;
use translation::tc_export::{Qdiscs, script};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The policy
    policy: PathBuf,
    /// Which of its interfaces; needed where it has several with a queueing
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// The device that takes its place; named as the interface where absent
    #[arg(long)]
    dev: Option<String>,
    /// The disciplines that the kernel has; all that can be made use of where absent
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    qdiscs: Option<Vec<String>>,
}

impl Args {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let file = PolicyFile::read(&self.policy);
        let file = file.map_err(|mistake| UsageError::error(mistake.render(false)))?;
        let policy = file.policy();
        // A router would not take it: a script of half of it helps nobody.
        if let Err(wrong) = policy.check(&interfaces(policy)) {
            return Err(UsageError::error(file.mistake(&wrong).render(false)));
        }
        let queued: Vec<&String> = policy
            .interfaces
            .iter()
            .filter_map(|(name, of)| of.queueing.is_some().then_some(name))
            .collect();
        let interface = match (&self.interface, &queued[..]) {
            (Some(name), _) => name,
            (None, [only]) => *only,
            (None, several) => {
                let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(UsageError::error(format!(
                    "--interface, of those with a queueing: {names}"
                )));
            }
        };
        let dev = match (&self.dev, interface.as_str()) {
            (Some(dev), _) => dev.as_str(),
            (None, "*") => return Err(UsageError::error("--dev, for the interface \"*\"")),
            (None, name) => name,
        };
        let kernel = match &self.qdiscs {
            Some(names) => {
                let known = Qdiscs::all();
                if let Some(other) = names.iter().find(|name| !known.has(name)) {
                    return Err(UsageError::error(format!(
                        "--qdiscs: {other:?} is none that is made use of; these are: {known}"
                    )));
                }
                Qdiscs::from_names(names.iter().map(String::as_str))
            }
            None => Qdiscs::all(),
        };
        let script = script(policy, interface, dev, &kernel, None);
        let script = script.map_err(|why| UsageError::error(why.to_string()))?;
        crate::verbs::print(&script.to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The interfaces that a policy speaks of.
fn interfaces(policy: &RouterPolicy) -> Vec<String> {
    let classes = policy.classes.values().flat_map(|class| &class.matches);
    let flows = policy.tables.values().flat_map(|table| &table.flows);
    let matches = classes.chain(flows.map(|flow| &flow.matches));
    let named = matches.filter_map(|of| of.interface.clone());
    let mut all: Vec<String> = policy.interfaces.keys().cloned().chain(named).collect();
    all.sort();
    all.dedup();
    all
}
