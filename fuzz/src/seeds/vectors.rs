//! The vectors of the end-to-end tests, as streams of a peer: octets set down by hand, each annotated
//! there.

use super::Seed;
use std::path::{Path, PathBuf};

/// Where the vectors are.
fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors")
}

/// All that the peer sends in a case; `None` where something depends on what it was sent.
fn sent(case: &str) -> Option<Vec<u8>> {
    let entries = std::fs::read_dir(directory().join(case)).ok()?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut out = Vec::new();
    for path in paths {
        if path.to_string_lossy().ends_with("-send.hex") {
            let text = std::fs::read_to_string(path).ok()?;
            // Any time will do.
            out.extend(crate::hex::decode(&text.replace("{utc}", "\"260101000000Z\""))?);
        }
    }
    (!out.is_empty()).then_some(out)
}

fn cases(prefixes: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<String> = std::fs::read_dir(directory())
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    names.sort();
    names.into_iter().filter_map(|name| Some((name.clone(), sent(&name)?))).collect()
}

/// The vectors of P7 that are of these kinds.
pub fn p7(kinds: &[&str]) -> Vec<Seed> {
    let folder = directory().join("p7");
    let mut paths: Vec<PathBuf> = (std::fs::read_dir(folder).into_iter().flatten())
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    let seed = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        let kind = text.lines().find_map(|line| line.strip_prefix("# kind: "))?;
        let is_wanted = kinds.iter().any(|of| kind.split(' ').any(|word| word == *of));
        let name = format!("vector-{}", path.file_stem()?.to_str()?);
        is_wanted.then(|| Some((name, crate::hex::decode(&text)?)))?
    };
    paths.into_iter().filter_map(seed).collect()
}

/// Bind, one transfer or another end, release.
pub fn p1_responder() -> Vec<Seed> {
    let bind = sent("bind-ia5").unwrap_or_default();
    let release = sent("release").unwrap_or_default();
    let ends = cases(&["abort", "disconnect", "transfer"]).into_iter().map(|(name, octets)| {
        (format!("vector-{name}"), [bind.as_slice(), &octets, &release].concat())
    });
    let binds = cases(&["bind", "recover"]).into_iter();
    ends.chain(binds.map(|(name, octets)| (format!("vector-{name}"), octets))).collect()
}

/// Answers to a bind and to transfers.
pub fn p1_initiator() -> Vec<Seed> {
    let answers = cases(&["answer"]).into_iter();
    answers.map(|(name, octets)| (format!("vector-{name}"), octets)).collect()
}

/// As [`p1_responder`]: the node's peer has another name, which is for the mutations to find.
pub fn node() -> Vec<Seed> {
    let wanted = ["vector-transfer-p772", "vector-transfer-checkpoints", "vector-recover"];
    p1_responder().into_iter().filter(|(name, _)| wanted.contains(&name.as_str())).collect()
}
