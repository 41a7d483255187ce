//! The messages of a run: MTAs in their hosts, `xuxa burst` that submits, `xuxa receive` that takes.

use super::transfers::{AllProgress, Transfers};
use super::up::Network;
use super::{Moment, PATIENCE, TestbedRunner};
use crate::sites::{Sites, USER};
use anyhow::{Context as _, Result, bail};
use nix::sys::signal::Signal;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use study::Planned;
use study::file::{StudyStage, StudyStart};
use study::measured::MessageTimes;
use testbed::SiteLocation;
use testbed::clock::{Deadline, is_interrupted, pause};
use testbed::config::secret_file;
use testbed::{RunningClient, Site, password};
use toml::{Table, Value};

/// How long `xuxa burst` may take after the run for its report.
const REPORT: Duration = Duration::from_secs(30);

/// The MTAs, and the clients once something is submitted.
#[derive(Debug)]
pub(super) struct MailSites {
    sites: BTreeMap<String, Site>,
    plan: PathBuf,
    report: PathBuf,
    burst: Option<RunningClient>,
    receiver: Option<RunningClient>,
    transfers: Option<Transfers>,
}

impl MailSites {
    /// Starts the MTAs and waits until their permanent channels are open. None where the run has no
    /// messages.
    ///
    /// # Errors
    /// One does not start, or a channel is not opened.
    pub(super) fn start(
        runner: &TestbedRunner,
        network: &Network,
        planned: &Planned,
    ) -> Result<Option<MailSites>> {
        let Some(sites) = Sites::from_planned(planned)? else { return Ok(None) };
        let secret = |from: &str, to: &str| {
            let mut table = Table::new();
            table.insert("file".to_owned(), secret_file(from, to).into());
            table
        };
        let mut secrets: BTreeMap<(String, String), String> = BTreeMap::new();
        for (from, ..) in sites.all() {
            for (to, ..) in sites.all().filter(|(to, ..)| *to != from) {
                let word = password(&format!("{from}-to-{to}"))?;
                secrets.insert((from.to_owned(), to.to_owned()), word);
            }
        }
        let mut built = BTreeMap::new();
        for (name, host, ip) in sites.all() {
            let place = SiteLocation::in_host(ip, network.entrance(host));
            let mut builder = Site::builder(name)
                .programs(runner.programs.clone())
                .place_at(place)
                .users(&[USER])
                .below(network.directory())
                .set("events.file", "events.jsonl");
            for (path, value) in sites.keys(name, &secret)? {
                builder = builder.set(&path, value);
            }
            for ((from, to), word) in &secrets {
                if from == name || to == name {
                    builder = builder.secret(secret_file(from, to), word.clone());
                }
            }
            let mut site = builder.build()?;
            site.start()?;
            built.insert(name.to_owned(), site);
        }
        let directory = network.directory();
        let mut mail_sites = MailSites {
            sites: built,
            plan: directory.join("burst.toml"),
            report: directory.join("burst.json"),
            burst: None,
            receiver: None,
            transfers: None,
        };
        mail_sites.open(&sites)?;
        mail_sites.write(planned)?;
        Ok(Some(mail_sites))
    }

    fn open(&self, sites: &Sites<'_>) -> Result<()> {
        for site in self.sites.values() {
            let wanted = sites.permanent() * (self.sites.len() - 1);
            site.wait_until("its permanent channels", PATIENCE, |status| {
                let channels = status.peers.iter().flat_map(|peer| &peer.channels);
                let open = |channel: &&testbed::answer::ChannelStatus| {
                    let mut ours = channel.associations.iter();
                    ours.any(|a| a.role == "initiator" && matches!(a.state.as_str(), "idle"))
                };
                channels.filter(open).count() >= wanted
            })?;
        }
        Ok(())
    }

    fn site(&self, name: &str) -> Result<&Site> {
        self.sites.get(name).with_context(|| format!("no site {name}"))
    }

    /// The plan of `xuxa burst`.
    fn write(&mut self, planned: &Planned) -> Result<()> {
        let mail = planned.mail.as_ref().context("messages without mail")?;
        let mut plan = Table::new();
        let mut put = |key: &str, value: Value| plan.insert(key.to_owned(), value);
        put("from", USER.into());
        put("to", self.site(&mail.to)?.address(USER).into());
        let logs = [&mail.from, &mail.to].map(|name| {
            let log = self.site(name).map(|site| site.path().join("data/events.jsonl"));
            log.map(|log| Value::from(log.display().to_string()))
        });
        put("events", Value::Array(logs.into_iter().collect::<Result<_>>()?));
        put("deadline", format!("{}ms", planned.limit.as_millis()).into());
        let groups = planned.messages.iter().map(|message| {
            let mut group = Table::new();
            let mut put = |key: &str, value: Value| group.insert(key.to_owned(), value);
            put("name", message.name.as_str().into());
            put("precedence", message.precedence.name().into());
            put("size", format!("{}B", message.size.0).into());
            let (start, after) = match &message.start {
                StudyStart::At(at) => (at.0, None),
                StudyStart::After(after) => (after.delay.0, Some(after)),
            };
            put("start", format!("{}ms", start.as_millis()).into());
            if let Some(after) = after {
                let mut table = Table::new();
                table.insert("group".to_owned(), after.after.as_str().into());
                table.insert("stage".to_owned(), stage(after.stage).into());
                put("after", Value::Table(table));
            }
            Value::Table(group)
        });
        let groups = groups.collect();
        plan.insert("group".to_owned(), Value::Array(groups));
        std::fs::write(&self.plan, toml::to_string(&plan)?).context("the plan of the burst")
    }

    /// Starts who takes, and who submits.
    ///
    /// # Errors
    /// They cannot be started.
    pub(super) fn submit(&mut self, planned: &Planned, origin: Moment) -> Result<()> {
        let mail = planned.mail.as_ref().context("messages without mail")?;
        let count = planned.messages.len().to_string();
        let longest = (planned.limit + PATIENCE).as_secs().to_string();
        let arguments = ["--json", "receive", "--count", &count, "--timeout", &longest];
        self.receiver = Some(self.site(&mail.to)?.xuxa_beside(USER, &arguments)?);
        let (plan, report) = (self.plan.display().to_string(), self.report.display().to_string());
        let arguments = ["--json", "burst", &plan, "--output", &report];
        self.burst = Some(self.site(&mail.from)?.xuxa_beside(USER, &arguments)?);
        let sender = self.site(&mail.from)?.status_reader();
        self.transfers = Some(Transfers::start(sender, planned.limit, origin)?);
        Ok(())
    }

    /// Waits until all messages are delivered or the time is over. Returns the times of each.
    ///
    /// # Errors
    /// The client ended without a report; with its output and that of the MTAs.
    pub(super) fn wait(
        mut self,
        planned: &Planned,
        end: Deadline,
        origin: Moment,
    ) -> Result<Vec<MessageTimes>> {
        let mut burst = self.burst.take().context("nothing was submitted")?;
        while !burst.ended()? && !end.has_passed() && !is_interrupted() {
            pause(Duration::from_millis(20));
        }
        if !burst.ended()? {
            // It then reports what it has seen so far.
            burst.signal(Signal::SIGINT)?;
        }
        let progress = self.transfers.take().map(Transfers::end).unwrap_or_default();
        let run = burst.wait(REPORT).with_context(|| self.logs())?;
        let report = std::fs::read_to_string(&self.report).unwrap_or(run.stdout);
        let report: BurstReport = serde_json::from_str(&report).with_context(|| {
            format!("xuxa burst ended with {}: {}\n{}", run.code, run.stderr.trim(), self.logs())
        })?;
        let times = |message| self.times(message, &report, &progress, origin);
        planned.messages.iter().map(times).collect()
    }

    fn times(
        &self,
        message: &study::file::StudyMessage,
        report: &BurstReport,
        progress: &AllProgress,
        origin: Moment,
    ) -> Result<MessageTimes> {
        let name = message.name.as_str();
        let Some(of) = report.messages.iter().find(|of| of.group == name) else {
            return Ok(MessageTimes { name: name.to_owned(), ..MessageTimes::default() });
        };
        if matches!(of.outcome.as_str(), "refused" | "non_delivery") {
            let why = of.reason.clone().unwrap_or_default();
            bail!("{name} was not delivered: {} {why}\n{}", of.outcome, self.logs());
        }
        let at = |time: &Option<String>| origin.to(time.as_deref()?);
        Ok(MessageTimes {
            name: name.to_owned(),
            content: of.content_length,
            submitted: at(&of.submission_at),
            accepted: at(&of.accepted_at),
            started: at(&of.transfer_started_at),
            confirmed: at(&of.transfer_confirmed_at),
            delivered: at(&of.delivered_at),
            transferred: None,
            transfers: of.transfers,
            progress: of
                .mts_identifier
                .as_ref()
                .and_then(|id| progress.get(id))
                .cloned()
                .unwrap_or_default(),
        })
    }

    fn logs(&self) -> String {
        let each = self
            .sites
            .iter()
            .map(|(name, site)| format!("--- the log of {name} ends:\n{}", site.log_tail()));
        each.collect::<Vec<_>>().join("\n")
    }
}

fn stage(stage: StudyStage) -> &'static str {
    match stage {
        StudyStage::Accepted => "accepted",
        StudyStage::Started => "started",
        StudyStage::Delivered => "delivered",
    }
}

/// `xuxa burst --json`, as far as it matters.
#[derive(Debug, Deserialize)]
struct BurstReport {
    messages: Vec<OfMessage>,
}

#[derive(Debug, Deserialize)]
struct OfMessage {
    group: String,
    outcome: String,
    reason: Option<String>,
    content_length: Option<u64>,
    mts_identifier: Option<String>,
    transfers: u32,
    submission_at: Option<String>,
    accepted_at: Option<String>,
    transfer_started_at: Option<String>,
    transfer_confirmed_at: Option<String>,
    delivered_at: Option<String>,
}
