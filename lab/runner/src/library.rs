//! Studies, topologies and policies by their names: from files beside the study, and those that are part
//! of the program.

use anyhow::Result;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use study::file::with_new_name;
use study::{Library, Study};
use text::UsageError;
use text::toml_file::{TomlFile, read_bounded};

/// Longest topology or policy, in octets.
const MAX_TEXT: u64 = 4 << 20;

/// Files that are part of the program: name and text.
type Shipped = &'static [(&'static str, &'static str)];

/// `shipped!("directory": "name", ...)`: the files of config/lab of these names.
macro_rules! shipped {
    ($directory:literal: $($name:literal),* $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("../../../config/lab/", $directory, "/", $name, ".toml")),
        )),*]
    };
}

const STUDIES: Shipped = shipped!("studies": "bern-2002", "degeb-2007", "isode-nato-2007", "recommended-matrix", "tcp-models");
const TOPOLOGIES: Shipped = shipped!("topologies": "bern", "degeb", "nato", "pair");
const POLICIES: Shipped = shipped!(
    "policies": "bern-ef-af", "bern-interior", "degeb-core", "degeb-edge",
    "nato-flow-limit", "nato-router-limit", "nato-single-queue-ordered", "nato-single-queue-wred",
    "nato-three-queues", "plain",
);
const RECOMMENDED: Shipped = shipped!(".": "recommended");

/// A study, and where the files that it names are looked for.
#[derive(Debug)]
pub struct FoundStudy {
    /// Its name: that of its file.
    pub name: String,
    /// The study.
    pub study: Study,
    /// Its file, for the places of mistakes.
    file: TomlFile<()>,
    /// Where topologies and policies are looked for before those of the program.
    beside: Option<PathBuf>,
}

/// The names of the studies that are part of the program.
pub fn names() -> Vec<&'static str> {
    STUDIES.iter().map(|(name, _)| *name).collect()
}

/// The topologies that are part of the program: name and text.
pub fn topologies() -> &'static [(&'static str, &'static str)] {
    TOPOLOGIES
}

/// The policies that they name.
pub fn policies() -> &'static [(&'static str, &'static str)] {
    POLICIES
}

/// A study by its name, or by its file.
///
/// # Errors
/// There is none, or its file is invalid: with file, line and column ([`text::UsageError`]).
pub fn find(name_or_file: &str) -> Result<FoundStudy> {
    let shipped = STUDIES.iter().find(|(name, _)| *name == name_or_file);
    let (file, beside) = match shipped {
        Some((name, text)) => (TomlFile::<Study>::parse(&format!("{name}.toml"), text), None),
        None => {
            let path = Path::new(name_or_file);
            if !name_or_file.contains(['/', '.']) && !path.exists() {
                return Err(UsageError::error(format!(
                    "no study {name_or_file}: name a file, or one of {}",
                    names().join(", ")
                )));
            }
            (TomlFile::<Study>::read(path), Some(path.parent().unwrap_or(Path::new("."))))
        }
    };
    let file = file.map_err(|mut mistake| {
        mistake.message = with_new_name(&mistake.message);
        UsageError::error(mistake.to_string())
    })?;
    let name = Path::new(name_or_file).file_stem().unwrap_or_default().to_string_lossy();
    let (study, file) = file.split();
    Ok(FoundStudy { name: name.into_owned(), study, file, beside: beside.map(Path::to_path_buf) })
}

impl FoundStudy {
    /// Gives a parameter a value in all runs that do not vary it: `NAME=VALUE`, the value as in TOML, or
    /// a bare word for a text.
    ///
    /// # Errors
    /// It is not of that form, or there is no such parameter ([`text::UsageError`]).
    pub fn set(&mut self, given: &str) -> Result<()> {
        let wrong = |what: &str| UsageError::error(format!("--set {given}: {what}"));
        let (name, text) = given.split_once('=').ok_or_else(|| wrong("write NAME=VALUE"))?;
        let (name, text) = (name.trim(), text.trim());
        if text.is_empty() {
            return Err(wrong("there is no value"));
        }
        let read = toml::from_str::<toml::Table>(&format!("value = {text}")).ok();
        let read = read.filter(|table| table.len() == 1).and_then(|mut one| one.remove("value"));
        let value = match read {
            Some(value) => value,
            None if text.contains(['"', '\'', '{', '[', '\n']) => {
                return Err(wrong(
                    "invalid TOML value; a text of more than one bare word needs quotes",
                ));
            }
            None => toml::Value::String(text.to_owned()),
        };
        self.study
            .set(name, &value, "on the command line")
            .map_err(|error| UsageError::error(format!("{}: --set {error}", self.name)))
    }

    /// Its runs.
    ///
    /// # Errors
    /// The study is invalid: with file, line and column ([`text::UsageError`]).
    pub fn plan(&self) -> Result<Vec<study::Planned>> {
        study::plan(&self.study, self).map_err(|wrong| self.wrong(&wrong))
    }

    /// Its rival explanations.
    ///
    /// # Errors
    /// As above.
    pub fn rivals(&self) -> Result<Vec<study::Rival>> {
        self.study.rivals().map_err(|wrong| self.wrong(&wrong))
    }

    /// The runs by which a rival is judged.
    ///
    /// # Errors
    /// As above.
    pub fn plan_rival(&self, rival: &study::Rival) -> Result<Vec<study::Planned>> {
        study::plan_rival(&self.study, rival, self).map_err(|wrong| self.wrong(&wrong))
    }

    fn wrong(&self, wrong: &study::StudyError) -> anyhow::Error {
        UsageError::error(self.file.mistake_at(&wrong.path, &wrong.what).to_string())
    }

    /// Digests of all that decides the rows. By the name of the study's file: of the rows with printed values
    /// and what is shown beside them, which are the runs with their networks and policies, what is printed,
    /// the headline, and what was fitted. By `FILE: EXPERIMENT`: of the other runs of an experiment and what is
    /// expected. Comments and layout have no part in them.
    ///
    /// # Errors
    /// The study is invalid: see [`FoundStudy::plan`].
    pub fn inputs(&self) -> Result<BTreeMap<String, String>> {
        let mut planned = self.plan()?;
        planned.iter_mut().for_each(|run| run.experiment = 0);
        let (printed, others): (Vec<_>, Vec<_>) = planned.into_iter().partition(|run| {
            run.messages.iter().any(|message| !message.paper.is_empty())
                || run.loads.iter().any(|load| !load.paper.is_empty() || !load.paper_tos.is_empty())
        });
        // Of a parameter that such a run leaves alone nothing is shown.
        let used = |name: &&String| printed.iter().any(|run| run.settings.contains_key(*name));
        let fits = self.study.parameters.iter().filter(|(name, _)| used(name));
        let fits: Vec<_> = fits.map(|(name, parameter)| (name, &parameter.fits)).collect();
        let headline = self.study.headline.as_ref().map(|headline| (&headline.with, &headline.why));
        let relations: Vec<_> = self.study.experiments.iter().map(|one| &one.printed).collect();
        let relations: Vec<_> = relations.into_iter().flatten().collect();
        let file = format!("{}.toml", self.name);
        let mut inputs =
            BTreeMap::from([(file.clone(), digest(&(&printed, fits, headline, relations))?)]);
        for experiment in &self.study.experiments {
            let is_its = |run: &&study::Planned| run.experiment_name() == experiment.name;
            let runs: Vec<_> = others.iter().filter(is_its).collect();
            let digest = digest(&(runs, &experiment.expect))?;
            inputs.insert(format!("{file}: {}", experiment.name), digest);
        }
        Ok(inputs)
    }

    /// A digest of all that decides what rival explanations predict, by the name of the study's file.
    ///
    /// # Errors
    /// As above.
    pub fn hypotheses_inputs(&self) -> Result<BTreeMap<String, String>> {
        let rivals = self.rivals()?;
        let planned: Vec<_> =
            rivals.iter().map(|rival| self.plan_rival(rival)).collect::<Result<_>>()?;
        let digest = digest(&(&self.study.hypotheses, &self.study.distinguish, planned))?;
        Ok(BTreeMap::from([(format!("{}.toml", self.name), digest)]))
    }

    fn text(&self, kind: &str, name: &str, shipped: &[Shipped]) -> Result<String, String> {
        // A name does not lead out of the directories.
        if name.contains(['/', '\\']) || name.starts_with('.') {
            return Err("invalid file name".to_owned());
        }
        let file = format!("{name}.toml");
        let beside = self.beside.iter().flat_map(|directory| {
            ["", kind, &format!("../{kind}"), ".."].map(|place| directory.join(place).join(&file))
        });
        if let Some(path) = beside.into_iter().find(|path| path.is_file()) {
            let octets = read_bounded(&path, MAX_TEXT)?;
            return String::from_utf8(octets).map_err(|error| error.to_string());
        }
        let shipped = shipped.iter().copied().flatten().find(|(other, _)| *other == name);
        shipped
            .map(|(_, text)| (*text).to_owned())
            .ok_or_else(|| format!("no file {file} beside the study, in {kind}/ or in ../{kind}/"))
    }
}

/// The first 8 octets of SHA-256, hexadecimal.
fn digest(of: &impl serde::Serialize) -> Result<String> {
    let digest = Sha256::digest(serde_json::to_vec(of)?);
    Ok(digest.iter().take(8).map(|octet| format!("{octet:02x}")).collect())
}

impl Library for FoundStudy {
    fn topology(&self, name: &str) -> Result<String, String> {
        self.text("topologies", name, &[TOPOLOGIES])
    }

    fn policy(&self, name: &str) -> Result<String, String> {
        self.text("policies", name, &[POLICIES, RECOMMENDED])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_come_with_the_program() {
        let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab");
        let kinds = [
            ("studies", STUDIES),
            ("topologies", TOPOLOGIES),
            ("policies", POLICIES),
            (".", RECOMMENDED),
        ];
        for (directory, shipped) in kinds {
            let files = std::fs::read_dir(lab.join(directory)).unwrap();
            let files = files.map(|entry| entry.unwrap().path());
            let files = files.filter(|path| path.extension().is_some_and(|is| is == "toml"));
            let mut files: Vec<String> = files
                .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
                .collect();
            files.sort();
            let names: Vec<&str> = shipped.iter().map(|(name, _)| *name).collect();
            assert_eq!(files, names, "{directory}");
        }
    }

    #[test]
    fn a_parameter_can_be_set_from_outside() {
        let value = |given: &str, name: &str| {
            let mut found = find("isode-nato-2007").unwrap();
            found.set(given).map(|()| found.study.parameters[name].value.clone().unwrap())
        };
        assert_eq!(value("delay=20ms", "delay").unwrap(), "20ms".into());
        assert_eq!(value(" queue_limit = 7", "queue_limit").unwrap(), 7.into());
        assert_eq!(value("preempt=true", "preempt").unwrap(), true.into());
        let table = value("default_share={ percent = 2.5 }", "default_share").unwrap();
        assert_eq!(table["percent"], 2.5.into());
        for wrong in ["delay", "delay=", "dropper={ kind", "=1", "delays=1ms"] {
            assert!(value(wrong, "delay").unwrap_err().is::<UsageError>(), "{wrong}");
        }
        let error = value("delays=1ms", "delay").unwrap_err().to_string();
        assert!(
            error.contains("delays") && error.contains("delay, delayed_ack, dropper"),
            "{error}"
        );
        // It decides about the runs.
        let mut found = find("isode-nato-2007").unwrap();
        let before = found.plan().unwrap();
        found.set("delay=20ms").unwrap();
        assert_ne!(found.plan().unwrap().first(), before.first());
    }

    #[test]
    fn the_study_of_the_manual_can_be_run_as_it_stands_there() {
        let manual = include_str!("../../../docs/lab.md");
        let directory = tempfile::tempdir().unwrap();
        let mut blocks = manual.split("```toml\n").skip(1);
        for name in ["voice-first.toml", "voice.toml"] {
            assert!(manual.contains(&format!("`{name}`")));
            let text = blocks.next().and_then(|block| block.split("```").next()).unwrap();
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let found = find(directory.path().join("voice.toml").to_str().unwrap()).unwrap();
        let planned = found.plan().unwrap();
        assert_eq!(planned.len(), 6);
        assert!(planned.iter().any(|run| run.policies.contains_key("voice-first")));
    }

    #[test]
    fn a_mistake_of_any_kind_has_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("study.toml");
        let text = include_str!("../../../config/lab/studies/degeb-2007.toml");
        for (from, to) in [
            ("topology = \"degeb\"", "topology = \"deg\""),
            ("at_least = 9700.0\n", "at_least = nan\n"),
            ("name = \"table-4-1\"", "name = \"table 4-1\""),
        ] {
            let at = text.find(from).unwrap();
            std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let found = find(path.to_str().unwrap());
            let error = found.and_then(|found| found.plan()).unwrap_err().to_string();
            let line = text[..at].matches('\n').count() + 1;
            // That of the key, or of the table that it is in.
            let mut places = (line - 4..=line + 1).map(|line| format!("study.toml:{line}:"));
            assert!(places.any(|place| error.contains(&place)), "{to}: {error}");
        }
    }

    #[test]
    fn what_is_beside_a_study_goes_before_what_comes_with_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let study = directory.path().join("mine.toml");
        let text = include_str!("../../../config/lab/studies/isode-nato-2007.toml");
        std::fs::write(&study, text).unwrap();
        let found = find(study.to_str().unwrap()).unwrap();
        assert_eq!(found.name, "mine");
        assert!(found.policy("plain").unwrap().contains("No DiffServ"));
        std::fs::write(directory.path().join("plain.toml"), "about = 'mine'").unwrap();
        assert_eq!(found.policy("plain").unwrap(), "about = 'mine'");
        for name in ["../plain", ".", "none", "/etc/passwd"] {
            assert!(found.policy(name).is_err(), "{name}");
        }
    }

    #[test]
    fn former_names_of_keys_are_refused_with_the_present_ones() {
        let text = include_str!("../../../config/lab/studies/isode-nato-2007.toml");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("study.toml");
        for (now, former) in [
            ("environment = \"simulation\"", "ground = \"virtual\""),
            ("environment = \"simulation\"", "environment = \"virtual\""),
            ("environment = \"testbed\"", "environment = \"real\""),
            ("optional = true", "further = true"),
            ("above_scale = \"simulation\"", "beyond = \"virtual\""),
            ("no_fit_reason = ", "missed = "),
        ] {
            assert!(text.contains(now), "{now}");
            std::fs::write(&path, text.replacen(now, former, 1)).unwrap();
            let error = find(path.to_str().unwrap()).unwrap_err().to_string();
            let words = |text: &str| {
                text.split([' ', '=', '"']).map(str::to_owned).collect::<Vec<String>>()
            };
            let (old, new) =
                words(former).into_iter().zip(words(now)).find(|(old, new)| old != new).unwrap();
            assert!(error.contains(&format!("`{old}` has a new name: `{new}`")), "{error}");
            assert!(error.contains("study.toml:"), "{error}");
        }
    }
}
