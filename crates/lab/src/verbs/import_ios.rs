//! `lab import-ios`.

use anyhow::{Context as _, Result};
use comfy_table::{ContentArrangement, Table, presets};
use lab::Usage;
use lab::ios::{Imported, import, to_toml};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Some lines could not be mapped.
const IN_PART: u8 = 3;
/// The longest file that is read, in octets.
const FILE_MAX: u64 = 16 << 20;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The configuration, as `show running-config` prints it
    file: PathBuf,
    /// Where the policy goes; to standard output where absent
    #[arg(short, long, value_name = "POLICY.toml")]
    output: Option<PathBuf>,
    /// As one JSON object: the policy, and what could not be mapped
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let shown = self.file.display().to_string();
        let unreadable = |what: String| Usage::error(format!("{shown}: {what}"));
        let size = std::fs::metadata(&self.file).map_err(|e| unreadable(e.to_string()))?.len();
        if size > FILE_MAX {
            return Err(unreadable(format!("{size} octets long; {FILE_MAX} are allowed")));
        }
        let text = std::fs::read(&self.file).map_err(|e| unreadable(e.to_string()))?;
        let text = String::from_utf8_lossy(&text);
        let imported = import(&shown, &text).map_err(|not| Usage::error(not.to_string()))?;
        let unmapped = &imported.unmapped;
        let mut comments = vec![format!("Made by `lab import-ios` from {shown}.")];
        if !unmapped.is_empty() {
            comments.push("Not mapped, or not as IOS does it:".to_owned());
        }
        for one in unmapped {
            comments.push(format!("  line {}: {}: {}", one.line, one.text, one.reason));
        }
        let toml = to_toml(&imported.policy, &comments)?;
        if let Some(path) = &self.output {
            std::fs::write(path, &toml).with_context(|| path.display().to_string())?;
        }
        if self.json {
            let object = json!({ "policy": imported.policy, "unmapped": unmapped });
            println!("{}", serde_json::to_string_pretty(&object)?);
        } else if self.output.is_none() {
            print!("{toml}");
        }
        if !unmapped.is_empty() {
            eprintln!("{}", table(&imported));
        }
        Ok(ExitCode::from(if unmapped.is_empty() { 0 } else { IN_PART }))
    }
}

fn table(imported: &Imported) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["place", "not mapped", "because"]);
    for one in &imported.unmapped {
        let place = format!("{}:{}", one.file, one.line);
        table.add_row([&place, &one.text, &one.reason]);
    }
    table
}
