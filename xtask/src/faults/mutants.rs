//! `cargo xtask mutants`: faults that are planted one at a time into a copy of the source, and hunted.
//!
//! The mutants are data (`hunt/mutants.toml`): a file, a text in it that occurs once, and the text that replaces it, in
//! which `$ON` is true while the mutant is switched on. All of them are compiled into one program, and a variable of the
//! environment switches on one. The source that is shipped has nothing of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use crate::ci::timed;
use crate::workspace::Workspace;
use crate::{Outcome, command::Cmd};

mod survivors;

/// Plants the faults of hunt/mutants.toml one at a time, and hunts each until a world breaks or its time is over. Each that
/// is expected to be found must be found. The log has a line for each.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Minutes for one mutant, on two processors
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Only the mutants whose name has this in it
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Only so many of them, chosen by --seed
    #[arg(long, value_name = "COUNT")]
    sample: Option<usize>,
    /// The first world of each hunt, and which mutants a sample has
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Build without optimisation, as the tests are built
    #[arg(long)]
    debug: bool,
    /// Instead of hunting: whether the test that each names which the hunt does not find fails with it, and passes without
    #[arg(long)]
    survivors: bool,
    /// Where the outcome of each is written
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// The mutants.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    mutant: Vec<Mutant>,
}

/// One of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    /// What is wrong, in words.
    name: String,
    /// The file, from the root of the workspace.
    file: String,
    /// A text that occurs once in it.
    from: String,
    /// What stands there instead.
    to: String,
    /// Why the hunt does not find it.
    #[serde(default)]
    survives: Option<String>,
    /// The test that does: its package and its name, `osi: recovery::a_recovery_refused`.
    #[serde(default)]
    test: Option<String>,
}

impl Mutant {
    /// The test that finds it, where the hunt does not: its package and its name.
    fn test(&self) -> Option<(&str, &str)> {
        self.test.as_deref()?.split_once(": ")
    }
}

/// The switch, in a crate that all others stand on.
const SWITCH: &str = "//! Which mutant is switched on.\n\
    static ON: std::sync::OnceLock<u32> = std::sync::OnceLock::new();\n\
    /// Whether this one is.\n\
    pub fn on(number: u32) -> bool {\n\
    *ON.get_or_init(|| std::env::var(\"PLANTED\").ok().and_then(|n| n.parse().ok()).unwrap_or(0)) == number\n\
    }\n";

/// The name of the program with all mutants in it.
const PROGRAM: &str = "planted";

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let table = read(workspace)?;
        let chosen = self.chosen(&table);
        ensure!(!chosen.is_empty(), "no mutant has {:?} in its name", self.only);
        if self.survivors {
            return survivors::check(workspace, &table, &chosen);
        }
        let program = self.build(workspace, &table)?;
        let (mut wrong, mut log) = (Vec::new(), String::from(HEADER));
        for (number, mutant) in &chosen {
            let (found, time) = timed(|| self.hunt(workspace, &program, *number));
            let found = found?;
            let expected = mutant.survives.is_none();
            if expected != found.is_some() {
                wrong.push(mutant.name.clone());
            }
            let by = found.clone().unwrap_or_else(|| "survives".to_owned());
            println!("{number:3} {:60} {:6.1} s  {by}", mutant.name, time.as_secs_f64());
            line(&mut log, mutant, time, &by);
            if let Some(file) = &self.log {
                fs::write(file, &log).with_context(|| format!("{}", file.display()))?;
            }
            std::io::stdout().flush()?;
        }
        println!("{} mutants, {} not as expected", chosen.len(), wrong.len());
        for name in &wrong {
            println!("not as expected: {name}");
        }
        Ok(Outcome::from_passed(wrong.is_empty()))
    }

    /// The mutants that are hunted, with their numbers from 1 on.
    fn chosen(&self, table: &Table) -> Vec<(u32, Mutant)> {
        let all = (1..).zip(table.mutant.iter().cloned());
        let mut chosen: Vec<(u32, Mutant)> =
            all.filter(|(_, mutant)| mutant.name.contains(&self.only)).collect();
        if let Some(count) = self.sample {
            // One that survives takes all its time.
            chosen.retain(|(_, mutant)| mutant.survives.is_none());
            let step = (chosen.len() / count.max(1)).max(1);
            let first = usize::try_from(self.seed).unwrap_or(0) % step;
            chosen = chosen.into_iter().skip(first).step_by(step).take(count).collect();
        }
        chosen
    }

    /// The program with all mutants.
    fn build(&self, workspace: &Workspace, table: &Table) -> anyhow::Result<PathBuf> {
        let folder = folder(workspace)?;
        let tree = folder.join("tree");
        plant(workspace, table, &tree)?;
        let (arguments, target, built) = match self.debug {
            true => {
                let built = workspace.built("debug")?;
                (DEBUG, built.parent().context("no target directory")?.to_owned(), built)
            }
            false => {
                let target = folder.join("built");
                (RELEASE, target.clone(), target.join("release"))
            }
        };
        let build = workspace.cargo(arguments).directory(&tree);
        build.env("CARGO_TARGET_DIR", &target.to_string_lossy()).run()?;
        Ok(built.join(PROGRAM))
    }

    /// Hunts a mutant: what it breaks, and in which world.
    fn hunt(
        &self,
        workspace: &Workspace,
        program: &Path,
        number: u32,
    ) -> anyhow::Result<Option<String>> {
        let (minutes, from) = (self.minutes.to_string(), self.seed.to_string());
        let arguments =
            ["--minutes", &minutes, "--from", &from, "--first", "hunt/worlds", "--brief"];
        let hunt = Cmd::new(&program.to_string_lossy(), &arguments).directory(workspace.root());
        let (held, output) = hunt.env("PLANTED", &number.to_string()).result()?;
        if held {
            return Ok(None);
        }
        let mut lines = output.lines();
        let seed = lines.find(|line| line.starts_with("seed "));
        let how = lines.next().unwrap_or_default().trim();
        let seed = seed.and_then(|line| line.split(':').next());
        let seed = seed.with_context(|| format!("the hunt ended without a verdict: {output}"))?;
        Ok(Some(format!("{seed}, {how}")))
    }
}

/// Where the copy is, and what is built of it.
fn folder(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let built = workspace.built("debug")?;
    Ok(built.parent().context("no target directory")?.join("mutants"))
}

const RELEASE: &[&str] = &["build", "-p", "hunt", "--release"];
/// In the directory of the workspace, with the features that its dependencies have there: that of all packages and of their
/// tests. So what is not of the workspace is not compiled again.
const DEBUG: &[&str] = &["build", "--workspace", "--bin", PROGRAM, "--test", "worlds"];

/// Where the outcome of each is.
const LOG: &str = "docs/results/mutants.tsv";
/// How many [`sample`] hunts, which of them, in seconds of a processor, and for how many minutes at most.
const SAMPLE: usize = 3;
const QUICK: f64 = 5.0;
const MINUTES: f64 = 2.0;

/// Hunts a few that are found soon, others for another seed, with a program built as the tests are. Gives how many were
/// found, and how many not.
pub(crate) fn sample(workspace: &Workspace, seed: u64) -> anyhow::Result<(u64, u64)> {
    let table = read(workspace)?;
    let log = fs::read_to_string(workspace.root().join(LOG)).context(LOG)?;
    let quick: BTreeSet<&str> = log.lines().filter_map(quick).collect();
    let quick: Vec<(u32, &Mutant)> =
        (1..).zip(&table.mutant).filter(|(_, mutant)| quick.contains(&*mutant.name)).collect();
    ensure!(quick.len() >= SAMPLE, "{LOG} has only {} that are found soon", quick.len());
    let args = Args {
        minutes: MINUTES,
        only: String::new(),
        sample: None,
        seed: 1,
        debug: true,
        survivors: false,
        log: None,
    };
    let program = args.build(workspace, &table)?;
    let first = usize::try_from(seed % quick.len() as u64)?;
    let (mut found, mut missed) = (0, 0);
    for (number, mutant) in
        quick.iter().cycle().skip(first).step_by(quick.len() / SAMPLE).take(SAMPLE)
    {
        let (by, time) = timed(|| args.hunt(workspace, &program, *number));
        let by = by?;
        found += u64::from(by.is_some());
        missed += u64::from(by.is_none());
        let by = by.unwrap_or_else(|| "NOT FOUND".to_owned());
        println!("{number:3} {:60} {:6.1} s  {by}", mutant.name, time.as_secs_f64());
    }
    Ok((found, missed))
}

/// The name in a line of the log, if the mutant was found soon.
fn quick(line: &str) -> Option<&str> {
    let mut columns = line.split('\t');
    let (name, seconds, by) = (columns.next()?, columns.next()?, columns.next()?);
    let is_quick = seconds.parse::<f64>().is_ok_and(|seconds| seconds <= QUICK);
    (is_quick && !by.starts_with("survives")).then_some(name)
}

const HEADER: &str = "mutant\tprocessor-seconds\tfound by\n";

fn line(log: &mut String, mutant: &Mutant, time: Duration, by: &str) {
    let by: String = by.chars().take(120).collect();
    let by = by.replace(['\t', '\n'], " ");
    let mut why = mutant.survives.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    if let Some(test) = &mutant.test {
        let _ = write!(why, "; found by {test}");
    }
    let _ = writeln!(log, "{}\t{:.0}\t{by}{why}", mutant.name, 2.0 * time.as_secs_f64());
}

fn read(workspace: &Workspace) -> anyhow::Result<Table> {
    let file = "hunt/mutants.toml";
    let text = fs::read_to_string(workspace.root().join(file)).context(file)?;
    toml::from_str(&text).context(file)
}

/// Copies the workspace, with all mutants in it. Files that are the same stay, so that little is compiled again.
fn plant(workspace: &Workspace, table: &Table, tree: &Path) -> anyhow::Result<()> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for file in workspace.files()? {
        files.insert(file.path, file.text);
    }
    for (number, mutant) in (1u32..).zip(&table.mutant) {
        let text = files.get_mut(&mutant.file);
        let text = text.with_context(|| format!("{}: no file {}", mutant.name, mutant.file))?;
        let times = text.matches(&mutant.from).count();
        if times != 1 {
            bail!("{}: its text occurs {times} times in {}", mutant.name, mutant.file);
        }
        let on = match mutant.file.starts_with("crates/base/") {
            true => format!("crate::planted::on({number})"),
            false => format!("base::planted::on({number})"),
        };
        *text = text.replacen(&mutant.from, &mutant.to.replace("$ON", &on), 1);
    }
    let mut change = |file: &str, change: &dyn Fn(&str) -> String| -> anyhow::Result<()> {
        let text = files.get_mut(file).with_context(|| format!("no file {file}"))?;
        *text = change(text);
        Ok(())
    };
    change("crates/base/src/lib.rs", &|text| format!("{text}\npub mod planted;\n"))?;
    // Where both are built in one directory, each would else take the packages of the other for its own.
    change("Cargo.toml", &|text| {
        text.replacen("\nversion = \"0.1.0\"\n", "\nversion = \"0.1.0-planted\"\n", 1)
    })?;
    change("hunt/Cargo.toml", &|text| {
        let bin = format!("\n[[bin]]\nname = \"{PROGRAM}\"\npath = \"src/main.rs\"\n");
        text.replacen("[package]\n", "[package]\nautobins = false\n", 1) + &bin
    })?;
    files.insert("crates/base/src/planted.rs".to_owned(), SWITCH.to_owned());
    for (path, text) in files {
        let path = tree.join(path);
        if fs::read_to_string(&path).is_ok_and(|there| there == text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text).with_context(|| format!("{}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is planted where its table has it, and no two in the same place.
    #[test]
    fn every_mutant_has_its_place() {
        let workspace = Workspace::find().unwrap();
        let table = read(&workspace).unwrap();
        let tree = tempfile::tempdir().unwrap();
        plant(&workspace, &table, tree.path()).unwrap();
        let names: BTreeSet<&String> = table.mutant.iter().map(|mutant| &mutant.name).collect();
        assert_eq!(names.len(), table.mutant.len(), "names are not unique");
        for mutant in &table.mutant {
            assert!(mutant.to.contains("$ON"), "{}: it is never switched off", mutant.name);
        }
    }

    /// Else two workspaces would be built into one directory, each over the other.
    #[test]
    fn the_copy_has_another_version() {
        let workspace = Workspace::find().unwrap();
        let tree = tempfile::tempdir().unwrap();
        plant(&workspace, &read(&workspace).unwrap(), tree.path()).unwrap();
        let copied = fs::read_to_string(tree.path().join("Cargo.toml")).unwrap();
        assert_eq!(copied.matches("version = \"0.1.0-planted\"\n").count(), 1);
    }

    #[test]
    fn a_line_of_the_log_is_read() {
        assert_eq!(quick("engine: a\t3\tseed 2, Twice: message 9"), Some("engine: a"));
        assert_eq!(quick("engine: a\t6\tseed 2, Twice: message 9"), None);
        assert_eq!(quick("engine: a\t3\tsurvives: it is small"), None);
        assert_eq!(quick(HEADER.trim()), None);
    }

    /// What the hunt does not find, a test that is there does.
    #[test]
    fn every_survivor_has_its_test() {
        let workspace = Workspace::find().unwrap();
        let files = workspace.files().unwrap();
        for mutant in read(&workspace).unwrap().mutant {
            assert_eq!(mutant.survives.is_some(), mutant.test.is_some(), "{}", mutant.name);
            if mutant.test.is_none() {
                continue;
            }
            let (package, test) = mutant.test().expect("a package and a test");
            let is_named =
                |path: &str| path.split('/').any(|part| part == package) && path.ends_with(".rs");
            let called = format!("fn {}(", test.rsplit("::").next().unwrap());
            let is_there = files.iter().any(|f| is_named(&f.path) && f.text.contains(&called));
            assert!(is_there, "{}: no test {test} in {package}", mutant.name);
        }
    }
}
