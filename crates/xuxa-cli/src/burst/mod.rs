//! `xuxa burst`: scripted load, and when each message was where.

mod event;
mod follow;
mod live;
mod plan;
mod receive;
mod result;
mod run;
mod schedule;
mod summary;
mod tally;
mod value;

use crate::profile::{self, Profile, Wrong};
use crate::show;
use crate::terminal;
use anyhow::{Context as _, Result};
use clap::Args;
use live::Live;
use plan::BurstPlan;
use result::BurstResult;
use run::{Run, Setup};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use tokio::task::LocalSet;
use ua::{Clock, Interrupted};

#[derive(Debug, Args)]
pub(crate) struct BurstArgs {
    /// The plan: which messages are submitted when; docs/xuxa.md has its keys
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// Check the plan and the profiles it names, and submit nothing
    #[arg(long, conflicts_with = "list")]
    check: bool,
    /// List the messages of the plan, and submit nothing
    #[arg(long)]
    list: bool,
    /// Write what --json prints to this file, besides the tables
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the times of each precedence to this directory, as HdrHistogram's .hgrm files
    #[arg(long, value_name = "DIRECTORY")]
    histograms: Option<PathBuf>,
}

/// The source of profiles.
pub(crate) struct Profiles<'a> {
    pub file: Option<&'a Path>,
    /// The one named on the command line.
    pub name: Option<&'a str>,
}

/// Checks, lists or runs a burst.
pub(crate) async fn burst(
    args: &BurstArgs,
    profiles: &Profiles<'_>,
    json: bool,
    is_terminal: bool,
    interrupted: Interrupted,
) -> ExitCode {
    let setup = match prepare(args, profiles, interrupted) {
        Ok(Some(setup)) => setup,
        Ok(None) => return list(&args.plan, json),
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            return ExitCode::from(2);
        }
    };
    if args.check {
        return check(&setup, json);
    }
    match make(args, setup, json, is_terminal).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            ExitCode::from(if error.is::<Wrong>() { 2 } else { 1 })
        }
    }
}

/// Reads the plan and the profiles that it names; `None` with `--list`.
fn prepare(
    args: &BurstArgs,
    profiles: &Profiles<'_>,
    interrupted: Interrupted,
) -> Result<Option<Setup>> {
    let plan = BurstPlan::load(&args.plan)?;
    let planned = schedule::messages(&plan)?;
    if args.list {
        return Ok(None);
    }
    let mut known: BTreeMap<Option<String>, Rc<Profile>> = BTreeMap::new();
    let mut profile = |name: Option<&str>| -> Result<Rc<Profile>> {
        let key = name.map(str::to_owned);
        if let Some(profile) = known.get(&key) {
            return Ok(Rc::clone(profile));
        }
        let profile = Rc::new(profile::load(profiles.file, name.or(profiles.name))?);
        // Errors that would prevent a bind are reported before the burst.
        profile.login().with_context(|| format!("profile {:?}", profile.name))?;
        known.insert(key, Rc::clone(&profile));
        Ok(profile)
    };
    let mut from = Vec::new();
    for group in &plan.groups {
        let names = group.from.iter().map(|name| Some(name.as_str()));
        let names: Vec<_> = if group.from.is_empty() { vec![None] } else { names.collect() };
        from.push(names.into_iter().map(&mut profile).collect::<Result<Vec<_>>>()?);
    }
    let receive = plan.receive.iter().map(|name| profile(Some(name))).collect::<Result<_>>()?;
    let setup = Setup { plan, planned, from, receive, clock: Clock::start(), interrupted };
    setup.check().with_context(|| Wrong(format!("in {}", args.plan.display())))?;
    Ok(Some(setup))
}

fn list(path: &Path, json: bool) -> ExitCode {
    // Read a moment ago without an error.
    let read = BurstPlan::load(path).and_then(|plan| Ok((schedule::messages(&plan)?, plan)));
    let (messages, plan) = match read {
        Ok(read) => read,
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            return ExitCode::from(2);
        }
    };
    let group = |index: usize| plan.groups.get(index).map_or("", |group| group.name.as_str());
    if json {
        let lines = messages.iter().map(|message| {
            let mut line = serde_json::json!(message);
            if let Some(line) = line.as_object_mut() {
                line.insert("group".to_owned(), group(message.group).into());
            }
            line
        });
        let lines: Vec<_> = lines.collect();
        terminal::print_json(&serde_json::json!({ "seed": plan.seed, "messages": lines }));
        return ExitCode::SUCCESS;
    }
    let mut table = show::table(&["number", "group", "precedence", "size", "start"], &[0, 3, 4]);
    for message in &messages {
        table.add_row([
            message.number.to_string(),
            group(message.group).to_owned(),
            message.precedence.to_string(),
            show::size(message.size),
            message.start.map_or_else(
                || "when accepted".to_owned(),
                |start| format!("{:.3} s", start.as_secs_f64()),
            ),
        ]);
    }
    terminal::print(&table.to_string());
    ExitCode::SUCCESS
}

fn check(setup: &Setup, json: bool) -> ExitCode {
    let octets: u64 = setup.planned.iter().map(|message| message.size).sum();
    let associations: u64 = setup.plan.groups.iter().map(|group| group.associations).sum();
    let messages = setup.planned.len();
    if json {
        let plan = serde_json::json!({
            "messages": messages,
            "size": octets,
            "groups": setup.plan.groups.len(),
            "associations": associations,
            "event_logs": setup.plan.events.len(),
            "recipients": setup.plan.receive.len(),
        });
        terminal::print_json(&plan);
        return ExitCode::SUCCESS;
    }
    terminal::print(&format!(
        "{messages} messages in {} groups, {} in all, on {associations} associations; {} event \
         logs, {} receiving users",
        setup.plan.groups.len(),
        show::size(octets),
        setup.plan.events.len(),
        setup.receive.len()
    ));
    for log in setup.plan.events.iter().filter(|log| !log.exists()) {
        terminal::report_error(&format!(
            "{} does not exist yet: xuxa looks for it during the burst",
            log.display()
        ));
    }
    ExitCode::SUCCESS
}

async fn make(args: &BurstArgs, setup: Setup, json: bool, is_terminal: bool) -> Result<u8> {
    // Opened before anything is submitted, so that an error costs no run.
    let output = match &args.output {
        None => None,
        Some(path) => {
            let file = std::fs::File::create(path);
            Some(file.with_context(|| format!("cannot write {}", path.display()))?)
        }
    };
    let clock = setup.clock;
    let live = Live::new(is_terminal);
    let above_table = live.clone();
    let run = Run::new(setup, Box::new(move |what| above_table.print_line(what)))?;
    let begin = clock.now();
    let elapsed = move || clock.now().since(begin);
    let done = LocalSet::new()
        .run_until(async {
            let shown = tokio::task::spawn_local(live.clone().show(Rc::clone(&run), elapsed));
            let done = run::run(&run).await;
            shown.abort();
            done
        })
        .await;
    live.clear();
    done?;
    let report = BurstResult::from_run(&run, &args.plan, elapsed());
    if json {
        terminal::print_json(&report);
    } else {
        terminal::print(&report.tables());
    }
    for line in report.remarks() {
        terminal::report_error(&line);
    }
    if let Some(mut file) = output {
        let text = serde_json::to_string(&report).context("the output")?;
        file.write_all(base::shown::json(&text).as_bytes()).context("the output")?;
    }
    if let Some(directory) = &args.histograms {
        report.write_histograms(directory)?;
    }
    Ok(report.exit_code())
}
