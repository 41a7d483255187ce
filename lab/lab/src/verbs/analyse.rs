//! `lab analyse`.

use crate::analyse::{Csv, Cut, Feed, Rows, Source, files, json, live, pictures, table};
use ::analyse::{Analysis, Limits};
use anyhow::Result;
use router::policy::Span;
use std::cell::RefCell;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use testbed::clock;
use text::UsageError;

/// A file was cut off, or has frames that are not read.
const IN_PART: u8 = 3;
/// Most files at once.
const MAX_FILES: usize = 64;
/// Flows in JSON, and those of which the largest are shown.
const FLOWS_KEPT: usize = 1_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Captures (pcap, pcapng) of one or several points; - is standard input
    #[arg(required_unless_present = "live", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Listen at this interface instead, until Ctrl-C
    #[arg(long, value_name = "INTERFACE", conflicts_with = "files")]
    live: Option<String>,
    /// With --live: how long, as in 90s
    #[arg(long = "for", value_name = "DURATION", requires = "live")]
    time: Option<Span>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
    /// Write tables of comma-separated values into this directory
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Draw pictures (SVG and PNG) into this directory
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// How many flows are shown
    #[arg(long, default_value_t = 20)]
    top: usize,
    /// Length of an interval, to begin with: longer captures have longer ones
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    interval: Span,
    /// How long a packet may take from the first to the last point, the difference of their clocks
    /// included
    #[arg(long, value_name = "TIME", default_value = "10s")]
    window: Span,
    /// How many flows are kept at once
    #[arg(long, default_value_t = Limits::default().flows, value_parser = bounded)]
    flows: usize,
}

fn bounded(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(flows @ 1..=1_000_000) => Ok(flows),
        _ => Err("1 to 1000000".to_owned()),
    }
}

impl Args {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let nanos = |span: &Span| u64::try_from(span.0.as_nanos()).unwrap_or(u64::MAX);
        if nanos(&self.interval) == 0 {
            return Err(UsageError::error("--interval 0: an interval takes time"));
        }
        let limits = Limits {
            interval: nanos(&self.interval),
            window: nanos(&self.window),
            flows: self.flows,
            ..Limits::default()
        };
        let mut sources = self.open()?;
        let _ = ctrlc::set_handler(clock::interrupt);
        let mut csv = self.csv.as_deref().map(Csv::create).transpose()?;
        let rows = RefCell::new(Rows::new(FLOWS_KEPT.max(self.top)));
        let mut analysis = Analysis::new(limits);
        let mut each = |analysis: &mut Analysis| -> Result<()> {
            while let Some(output) = analysis.poll() {
                if let Some(csv) = &mut csv {
                    csv.push(analysis, &output)?;
                }
                rows.borrow_mut().push(output);
            }
            Ok(())
        };
        let mut missed = 0;
        let feed = match &self.live {
            Some(interface) => {
                let look = |analysis: &Analysis| self.view(analysis, &rows.borrow());
                let time = self.time.map(|time| time.0);
                missed = live(interface, time, &mut analysis, &mut each, look)?;
                Feed::default()
            }
            None => files(&mut sources, &mut analysis, &mut each, progress)?,
        };
        analysis.finish();
        each(&mut analysis)?;
        let rows = rows.into_inner();
        if let Some(csv) = csv {
            csv.finish(&analysis)?;
        }
        if let Some(directory) = &self.plots {
            for path in pictures(&analysis, &rows, directory)? {
                super::note(&format!("lab: {}", path.display()));
            }
        }
        let cuts: Vec<Cut> = sources.iter().filter_map(|of| of.cut().cloned()).collect();
        let text = match self.json {
            true => {
                let all = format!("{:#}\n", json(&analysis, &rows, &feed, &cuts));
                base::shown::json(&all).into_owned()
            }
            false => table(&analysis, &rows, &cuts, self.top),
        };
        print(&base::shown::text(&text))?;
        for cut in &cuts {
            super::note(&format!("lab: {}: {}", cut.file, cut.reason));
        }
        if missed > 0 {
            eprintln!("lab: {missed} frames missed: they came faster than they can be read");
        }
        let in_part = !cuts.is_empty() || missed > 0 || analysis.totals().unknown_link > 0;
        Ok(ExitCode::from(if in_part { IN_PART } else { 0 }))
    }

    fn open(&self) -> Result<Vec<Source>> {
        if self.files.len() > MAX_FILES {
            return Err(UsageError::error(format!("more than {MAX_FILES} files")));
        }
        let open = |path: &PathBuf| match path.to_str() {
            Some("-") => Source::standard_input(),
            _ => Source::open(path),
        };
        self.files.iter().map(open).collect()
    }

    /// The tables so far, where a person looks on.
    fn view(&self, analysis: &Analysis, rows: &Rows) -> Result<()> {
        if !self.json && std::io::stdout().is_terminal() {
            let table = table(analysis, rows, &[], self.top);
            print(&format!("\x1b[H\x1b[J{}", base::shown::text(&table)))?;
        }
        Ok(())
    }
}

/// Who reads may have had enough.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// How much was read so far, where a person looks on.
fn progress(feed: &Feed) -> Result<()> {
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        write!(stderr, "\r{} packets, {} MB ", feed.packets, feed.octets / 1_000_000)?;
    }
    Ok(())
}
