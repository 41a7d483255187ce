//! `lab export-tc`.

use anyhow::Result;
use lab::Usage;
use lab::policy_file::PolicyFile;
use lab::tc_export::{Qdiscs, script};
use std::path::PathBuf;
use std::process::ExitCode;

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
        let file = file.map_err(|mistake| Usage::error(mistake.render(false)))?;
        let policy = file.policy();
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
                return Err(Usage::error(format!(
                    "--interface, of those with a queueing: {names}"
                )));
            }
        };
        let dev = match (&self.dev, interface.as_str()) {
            (Some(dev), _) => dev.as_str(),
            (None, "*") => return Err(Usage::error("--dev, for the interface \"*\"")),
            (None, name) => name,
        };
        let kernel = match &self.qdiscs {
            Some(names) => Qdiscs::of(names.iter().map(String::as_str)),
            None => Qdiscs::all(),
        };
        let script = script(policy, interface, dev, &kernel, None);
        print!("{}", script.map_err(|why| Usage::error(why.to_string()))?);
        Ok(ExitCode::SUCCESS)
    }
}
