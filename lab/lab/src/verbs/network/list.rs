//! `lab list`: the networks that are up, and the studies.

use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, presets};
use router::policy::Span;
use runner::FoundStudy;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use text::TextTable;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A study: its experiments, what each shows and how long it takes
    study: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        match &self.study {
            Some(study) => self.experiments(&runner::find(study)?)?,
            None => self.all()?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn all(&self) -> Result<()> {
        let networks = emulator::client::names()?;
        let studies = runner::names().into_iter().map(runner::find).collect::<Result<Vec<_>>>()?;
        if self.json {
            let studies = studies.iter().map(|found| {
                json!({ "name": found.name, "title": found.study.title, "source": found.study.source })
            });
            let studies: Vec<Value> = studies.collect();
            let all = json!({ "networks": networks, "studies": studies });
            return crate::verbs::print(&format!("{}\n", base::shown::json(&all.to_string())));
        }
        let mut text = match networks.is_empty() {
            true => "no network is up (lab up TOPOLOGY)\n".to_owned(),
            false => format!("networks that are up: {}\n", networks.join(", ")),
        };
        text += "studies (lab list STUDY, lab run STUDY):\n";
        for found in &studies {
            text += &format!("  {:<20} {}\n", found.name, found.study.title);
        }
        crate::verbs::print(&text)
    }

    fn experiments(&self, found: &FoundStudy) -> Result<()> {
        let planned = found.plan()?;
        let of = |number: usize| planned.iter().filter(move |p| p.experiment == number);
        let time = |number: usize| {
            of(number).map(|p| runner::expected(p).time * p.repeat).sum::<Duration>()
        };
        // Of these only their limits are known.
        let at_most = |number: usize| of(number).any(|planned| runner::expected(planned).at_most);
        let experiments = found.study.experiments.iter().enumerate();
        if self.json {
            let experiments = experiments.map(|(number, experiment)| {
                json!({
                    "name": experiment.name,
                    "title": experiment.title,
                    "shows": experiment.shows,
                    "environment": experiment.environment,
                    "optional": experiment.optional,
                    "expected_seconds": time(number).as_secs_f64(),
                    "expected_at_most": at_most(number),
                    "runs": of(number).map(|planned| &planned.id).collect::<Vec<_>>(),
                })
            });
            let experiments: Vec<Value> = experiments.collect();
            let all = json!({ "study": found.name, "experiments": experiments });
            return crate::verbs::print(&format!("{}\n", base::shown::json(&all.to_string())));
        }
        let mut table = TextTable::new();
        table.load_preset(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        // Where nobody looks at a terminal, as wide as most are.
        if table.width().is_none() {
            table.set_width(110);
        }
        table.set_header(["experiment", "shows", "runs", "takes", "environment"]);
        for (number, experiment) in experiments {
            let environment = format!("{:?}", experiment.environment).to_lowercase();
            let optional = if experiment.optional { ", if named" } else { "" };
            table.add_row([
                experiment.name.clone(),
                format!("{}. {}", experiment.title, experiment.shows),
                of(number).count().to_string(),
                format!(
                    "{}{}",
                    if at_most(number) { "at most " } else { "" },
                    Span(Duration::from_secs(time(number).as_secs()))
                ),
                format!("{environment}{optional}"),
            ]);
        }
        for column in table.column_iter_mut().skip(2).take(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        crate::verbs::print(&format!(
            "{}: {}\n{table}\nThe times are those of one run after the other at the study's own \
             rates; `--scale 10` takes a tenth.\n",
            found.study.title, found.study.source
        ))
    }
}
