//! `lab list`: the networks that are up.

use serde_json::json;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let names = lab::client::names()?;
        if self.json {
            println!("{}", json!({ "networks": names }));
        } else {
            names.iter().for_each(|name| println!("{name}"));
        }
        Ok(ExitCode::SUCCESS)
    }
}
