//! the testbed: processes, and the kernel's TCP.

mod loads;
mod mail;
mod passed;
mod transfers;
mod up;
mod watch;

use anyhow::{Result, bail};
use emulator::DataPathKind;
use emulator::TimeOrigin;
use loads::{Loads, PathSkews};
use mail::MailSites;
use passed::Captures;
use std::time::Duration;
use study::measured::Environment;
use study::{Measured, Planned, Scale};
use testbed::Programs;
use testbed::answer::elapsed;
use testbed::clock::{Deadline, is_interrupted};
use up::Network;
use watch::Watch;

/// Called with each stage of a run.
pub(crate) type OnStage<'a> = &'a (dyn Fn(&str) + Sync);

/// Makes runs on the testbed, with what all of them have in common.
#[derive(Clone, Debug)]
pub(crate) struct TestbedRunner {
    pub(crate) programs: Programs,
    pub(crate) path: Option<DataPathKind>,
    pub(crate) seed: u64,
}

impl TestbedRunner {
    /// Makes a run on a network of its own, which ends with it.
    ///
    /// # Errors
    /// Something could not be started, or ended before its time.
    pub(crate) fn measure(
        &self,
        planned: &Planned,
        scale: Scale,
        on_stage: OnStage<'_>,
    ) -> Result<Measured> {
        on_stage("starting");
        let network = Network::up(self, planned)?;
        let captures = Captures::start(&network, planned)?;
        let mut mail_sites = MailSites::start(self, &network, planned)?;
        if planned.probing() > Duration::ZERO {
            on_stage("probing");
        }
        let found = PathSkews::probe(self, &network, planned)?;
        let origin = Moment::now();
        let watch = Watch::start(&network, planned, origin)?;
        let loads = Loads::start(self, &network, planned, scale, found, origin)?;
        if let Some(mail_sites) = &mut mail_sites {
            mail_sites.submit(planned, origin)?;
        }
        on_stage("running");
        let end = Deadline::after(planned.limit);
        let messages = match mail_sites {
            Some(mail_sites) => mail_sites.wait(planned, end, origin)?,
            None => {
                loads.wait(end, origin)?;
                Vec::new()
            }
        };
        let seconds = origin.seconds();
        let is_late = end.has_passed();
        let (loads, mut notes) = loads.end(origin)?;
        if is_interrupted() {
            bail!("interrupted");
        }
        let seen = watch.end();
        let passed = captures.map(|captures| captures.end(&seen.counted)).transpose()?;
        if passed.is_some() && seen.missed > 0 {
            notes.push(format!("{} packets passed that were not captured", seen.missed));
        }
        notes.extend(match (&seen.path, seen.lost) {
            (None, _) => Some(
                "the network did not report what passed: there is nothing over time".to_owned(),
            ),
            (Some(_), Some(after)) => {
                Some(format!("after {after:.1} s the network no longer reported what passed"))
            }
            (Some(_), None) => None,
        });
        let unfinished = messages.iter().any(|message| message.delivered.is_none());
        Ok(Measured {
            id: planned.id.clone(),
            environment: Environment::Testbed,
            scale,
            how: network
                .how(planned)
                .into_iter()
                .chain(seen.path.map(|path| ("path".to_owned(), path)))
                .collect(),
            seed: self.seed,
            messages,
            loads,
            series: seen.series,
            passed: passed.unwrap_or_default(),
            tcp: Vec::new(),
            seconds,
            given_up: unfinished || (planned.messages.is_empty() && is_late),
            notes,
        })
    }
}

/// The beginning of a run, on the clocks that its parts have.
#[derive(Clone, Copy, Debug)]
struct Moment {
    origin: TimeOrigin,
}

impl Moment {
    fn now() -> Moment {
        Moment { origin: TimeOrigin::now() }
    }

    /// Seconds since then.
    fn seconds(self) -> f64 {
        self.origin.time().0 as f64 / 1e9
    }

    /// From then to a time as the programs write it; negative where it was before.
    fn to(self, time: &str) -> Option<f64> {
        const DAY: f64 = 86_400.0;
        let micros = self.origin.since_1970(router::Time::ZERO) / 1_000;
        let zero = base::Utc(micros).to_string();
        let seconds = elapsed(&zero, time)?.as_secs_f64();
        Some(if seconds > DAY / 2.0 { seconds - DAY } else { seconds })
    }
}

/// The longest time for anything but the run itself.
const PATIENCE: Duration = Duration::from_secs(60);
