//! A router's machine alone: the results of criterion's bench `pipeline`.

use super::paths::SIZES;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;

/// Packets of one iteration of the bench `pipeline`.
const BATCH: f64 = 32.0;

/// A router's machine alone, on one core.
#[derive(Debug, Serialize)]
pub(super) struct Pipeline {
    pub(super) policy: String,
    pub(super) size: u64,
    pub(super) packets_per_second: f64,
}

/// Results of criterion's bench for a router alone.
pub(super) fn measure(workspace: &Workspace) -> Result<Vec<Pipeline>> {
    let bench = ["bench", "-p", "router", "--bench", "pipeline", "--", "--noplot"];
    workspace.cargo(&bench).run_aside()?;
    let release = workspace.built("release")?;
    let criterion = release.parent().context("the target directory")?.join("criterion/pipeline");
    let mut measured = Vec::new();
    for policy in ["plain", "classes", "congested"] {
        for (size, _) in SIZES {
            let file = criterion.join(format!("{policy}_{size}/new/estimates.json"));
            let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
            let estimates: Value = serde_json::from_slice(&text)?;
            let nanos = estimates.pointer("/median/point_estimate").and_then(Value::as_f64);
            let nanos = nanos.with_context(|| format!("no median in {}", file.display()))?;
            measured.push(Pipeline {
                policy: policy.to_owned(),
                size,
                packets_per_second: BATCH * 1e9 / nanos,
            });
        }
    }
    Ok(measured)
}
