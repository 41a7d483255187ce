//! `lab export-ios`.

use anyhow::{Context as _, Result};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use text::UsageError;
use text::toml_file::Mistake;
use translation::ios::{InterfaceNames, Named, export};
use translation::policy_file::PolicyFile;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The policy
    policy: PathBuf,
    /// Where the configuration goes; to standard output where absent
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The interface in IOS that a port of the policy is; may be given several times
    #[arg(long = "interface", value_name = "PORT=IOS-NAME")]
    interfaces: Vec<Named>,
    /// As one JSON object: the configuration and the ports without a name of IOS, or what IOS has not
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let shown = self.policy.display().to_string();
        let refused = |what: String| UsageError::error(format!("{shown}: {what}"));
        let file = PolicyFile::read(&self.policy);
        let file = file.map_err(|mistake| UsageError::error(mistake.render(false)))?;
        let policy = file.policy();
        let names = InterfaceNames::new(policy, &self.interfaces).map_err(refused)?;
        if self.output.as_deref().is_some_and(|output| is_same(output, &self.policy)) {
            return Err(refused("the policy would be written over: name another file".to_owned()));
        }
        let text = match export(policy, &shown, &names) {
            Ok(text) => text,
            Err(faults) => {
                let mut mistakes: Vec<Mistake> =
                    faults.iter().map(|fault| file.mistake(fault)).collect();
                mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
                return self.refuse(&mistakes);
            }
        };
        let unnamed = names.unnamed(policy);
        if let Some(path) = &self.output {
            std::fs::write(path, &text).with_context(|| path.display().to_string())?;
        }
        if self.json {
            crate::verbs::print_json(&json!({ "configuration": text, "unnamed": unnamed }))?;
        } else if self.output.is_none() {
            crate::verbs::print(&text)?;
        }
        if !unnamed.is_empty() {
            let note = format!(
                "lab: not yet names of IOS (give --interface PORT=IOS-NAME): {}",
                unnamed.join(", ")
            );
            crate::verbs::note(&note);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Shows all that IOS has not. Nothing is written: a part of a policy helps nobody.
    fn refuse(&self, mistakes: &[Mistake]) -> Result<ExitCode> {
        if self.json {
            let fault = |of: &Mistake| json!({ "file": of.file, "line": of.line, "column": of.column, "what": of.message });
            let faults: Vec<_> = mistakes.iter().map(fault).collect();
            crate::verbs::print_json(&json!({ "faults": faults }))?;
        }
        let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let count = match lines.len() {
            1 => "1 part of it is".to_owned(),
            more => format!("{more} parts of it are"),
        };
        Err(UsageError::error(format!("{count} not for IOS\n{}", lines.join("\n"))))
    }
}

/// Whether both are one file.
fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    real(a).is_some_and(|a| Some(a) == real(b))
}
