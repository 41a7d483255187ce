//! `lab import-ios`.

use anyhow::{Context as _, Result};
use comfy_table::{ContentArrangement, presets};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use text::TextTable;
use text::UsageError;
use text::toml_file::{MAX_FILE as MAX_POLICY, read_bounded};
use translation::ios::{Imported, Renamed, import, to_toml};

/// Some lines could not be mapped.
const IN_PART: u8 = 3;
/// The longest file that is read, in octets.
const MAX_FILE: u64 = 16 << 20;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The configuration, as `show running-config` prints it
    file: PathBuf,
    /// Where the policy goes; to standard output where absent
    #[arg(short, long, value_name = "POLICY.toml")]
    output: Option<PathBuf>,
    /// The port of a topology's router that stands for an interface; may be given several times
    #[arg(long = "interface", value_name = "IOS-NAME=PORT")]
    interfaces: Vec<Renamed>,
    /// As one JSON object: the policy, and what could not be mapped
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let shown = self.file.display().to_string();
        let unreadable = |what: String| UsageError::error(format!("{shown}: {what}"));
        let text = read_bounded(&self.file, MAX_FILE).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&text);
        let mut imported =
            import(&shown, &text).map_err(|not| UsageError::error(not.to_string()))?;
        imported.rename(&self.interfaces).map_err(unreadable)?;
        let without_port = imported.without_port();
        let unmapped = &imported.unmapped;
        let mut comments = vec![format!("Made by `lab import-ios` from {shown}.")];
        if !without_port.is_empty() {
            let names = without_port.join(", ");
            comments
                .push(format!("Not yet ports of a router (give --interface NAME=PORT): {names}"));
        }
        if !unmapped.is_empty() {
            comments.push("Not mapped, or not as IOS does it:".to_owned());
        }
        for one in unmapped {
            comments.push(format!("  line {}: {}: {}", one.line, one.text, one.reason));
        }
        let toml = to_toml(&imported.policy, &comments)?;
        if toml.len() as u64 > MAX_POLICY {
            return Err(unreadable(format!(
                "its policy would have {} octets, and no file of a policy may have more than \
                 {MAX_POLICY}: import it in parts",
                toml.len()
            )));
        }
        if let Some(path) = &self.output {
            std::fs::write(path, &toml).with_context(|| path.display().to_string())?;
        }
        if self.json {
            let object = json!({ "policy": imported.policy, "unmapped": unmapped });
            crate::verbs::print_json(&object)?;
        } else if self.output.is_none() {
            crate::verbs::print(&toml)?;
        }
        if !unmapped.is_empty() {
            crate::verbs::note(&table(&imported).to_string());
        }
        Ok(ExitCode::from(if unmapped.is_empty() { 0 } else { IN_PART }))
    }
}

fn table(imported: &Imported) -> TextTable {
    let mut table = TextTable::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["place", "not mapped", "because"]);
    for one in &imported.unmapped {
        let place = format!("{}:{}", one.file, one.line);
        table.add_row([&place, &one.text, &one.reason]);
    }
    table
}
