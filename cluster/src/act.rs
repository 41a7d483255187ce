//! Makes the faults, in a thread of its own, and ends each.

mod hold;

use crate::fault::{Draw, Fault, Network};
use crate::ledger::{Acknowledged, Hold};
use crate::message::{Message, PROBE};
use crate::time::Start;
use crate::world::World;
use anyhow::{Context as _, Result, bail};
use hold::Held;
use nix::sys::signal::Signal;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;
use testbed::clock::{Deadline, is_interrupted, pause};

/// Between two faults.
const CALM: Duration = Duration::from_secs(2);
/// Longest time until what was started answers again.
const BACK: Duration = Duration::from_secs(90);
/// Longest submission of the Flash before a kill.
const PROBED: Duration = Duration::from_secs(5);
/// How often the daemons are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A fault that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRecord {
    /// What it was.
    pub text: String,
    /// From when, since the start of the trial.
    pub from: Duration,
    /// Until all was there again.
    pub until: Duration,
}

/// A message that was submitted for a fault: a Flash that was queued at a node when it was killed, or what is held.
#[derive(Clone, Debug)]
pub struct Probe {
    pub(crate) message: Message,
    /// Absent where the node did not answer in time: it is submitted again, and not measured.
    pub(crate) answer: Option<Acknowledged>,
    /// When the node was killed, since the start of the trial; absent for what is held.
    pub(crate) killed: Option<Duration>,
}

/// What the thread reports.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A Flash was queued and its node killed, or what is to be held was submitted.
    Queued(Probe),
    /// What was held is to be released.
    Held(Hold),
    /// A fault is over.
    Fault(FaultRecord),
    /// A daemon ended that nobody had ended: it was started again, as a supervisor does.
    Ended(String),
}

/// Makes faults.
#[derive(Debug)]
pub struct Striker<'a> {
    world: &'a mut World,
    start: Start,
    seed: u64,
    probes: u64,
    events: Sender<Event>,
    ballast: Option<PathBuf>,
    old_primary: Option<usize>,
    /// The nodes that are down on purpose.
    down: Vec<usize>,
    held: Option<Held>,
}

impl<'a> Striker<'a> {
    pub(crate) fn new(
        world: &'a mut World,
        start: Start,
        seed: u64,
        events: Sender<Event>,
    ) -> Striker<'a> {
        let (ballast, old_primary, down) = (None, None, Vec::new());
        Striker { world, start, seed, probes: 0, events, ballast, old_primary, down, held: None }
    }

    /// Makes these faults first, then those that are drawn until the time is over, and ends the last one.
    ///
    /// # Errors
    /// Something could not be made or ended: a daemon that does not start again, a promotion that fails.
    pub(crate) fn run(
        &mut self,
        first: &[(Fault, Duration)],
        draw: &mut Draw,
        until: Duration,
    ) -> Result<()> {
        self.wait(CALM)?;
        for fault in first {
            self.strike(vec![fault.clone()])?;
            self.wait(CALM)?;
        }
        while self.start.elapsed() < until && !is_interrupted() {
            self.strike(draw.strike())?;
            self.wait(CALM)?;
        }
        Ok(())
    }

    fn strike(&mut self, strike: Vec<(Fault, Duration)>) -> Result<()> {
        let mut begun = Vec::new();
        for (fault, time) in strike {
            let from = self.start.elapsed();
            self.begin(&fault, time).with_context(|| fault.to_string())?;
            begun.push((self.start.elapsed() + time, from, fault));
        }
        // A node cannot start without its database: that is back first.
        begun.sort_by_key(|(ends, _, fault)| (!fault.is_of_database(), *ends));
        for (ends, from, fault) in begun {
            self.wait(ends.saturating_sub(self.start.elapsed()))?;
            self.end(&fault).with_context(|| format!("the end of: {fault}"))?;
            let record = FaultRecord { text: fault.to_string(), from, until: self.start.elapsed() };
            self.report(Event::Fault(record))?;
        }
        Ok(())
    }

    fn report(&self, event: Event) -> Result<()> {
        self.events.send(event).context("the trial is over")
    }

    /// Waits, and starts daemons again that ended by themselves.
    fn wait(&mut self, time: Duration) -> Result<()> {
        let deadline = Deadline::after(time);
        while !deadline.has_passed() && !is_interrupted() {
            for number in 0..self.world.nodes.len() {
                let is_down = self.down.contains(&number);
                if !is_down && !self.world.node(number)?.site.is_running()? {
                    self.revive(number)?;
                }
            }
            pause(LOOK.min(deadline.left()));
        }
        Ok(())
    }

    fn revive(&mut self, number: usize) -> Result<()> {
        let site = &mut self.world.node(number)?.site;
        let log = site.log_tail();
        let last = log.lines().next_back().unwrap_or_default().to_owned();
        // It ended: this only takes it from the list, and its number is free for another.
        let _ = site.kill();
        site.launch()?;
        let at = crate::ledger::seconds(self.start.elapsed());
        self.report(Event::Ended(format!("n{} ended by itself at {at}: {last}", number + 1)))
    }

    fn begin(&mut self, fault: &Fault, time: Duration) -> Result<()> {
        match fault {
            Fault::Kill(number) => self.kill(*number),
            Fault::StoreLost(number) => {
                self.kill(*number)?;
                let store = self.world.node(*number)?.site.path().join("data/queue");
                fs::remove_dir_all(store).context("the store of the node")
            }
            Fault::KillAgain(number) => {
                self.take_down(*number)?;
                let site = &mut self.world.node(*number)?.site;
                site.launch()?;
                pause(time);
                site.kill().or_else(|_| already_over(site))
            }
            Fault::Hold(number) => self.hold(*number),
            Fault::Freeze(number) => self.world.node(*number)?.site.signal(Signal::SIGSTOP),
            Fault::Restart(number) => self.stop(*number),
            Fault::Isolate(number, network) => {
                self.world.node(*number)?.isolate(*network);
                Ok(())
            }
            Fault::CutDatabase(number, network) => {
                self.world.node(*number)?.cut_database(*network);
                Ok(())
            }
            Fault::StandbyLost(which) => {
                let trio = self.world.trio()?;
                let number = trio.others().get(*which).copied().context("a standby")?;
                trio.server(number)?.kill()
            }
            Fault::PrimaryLost => {
                let trio = self.world.trio()?;
                let old = trio.primary_number();
                trio.server(old)?.kill()?;
                trio.promote()?;
                self.old_primary = Some(old);
                Ok(())
            }
            Fault::PrimaryFrozen => {
                self.world.trio()?.primary().freeze();
                Ok(())
            }
            Fault::FullDisk => {
                self.ballast = Some(self.world.trio()?.primary().fill_disk()?);
                Ok(())
            }
        }
    }

    fn end(&mut self, fault: &Fault) -> Result<()> {
        match fault {
            Fault::Kill(number)
            | Fault::KillAgain(number)
            | Fault::Restart(number)
            | Fault::StoreLost(number) => self.take_up(*number),
            Fault::Hold(_) => {
                let Some(held) = self.held.take() else { return Ok(()) };
                self.take_up(held.owner)?;
                self.release(&held)
            }
            Fault::Freeze(number) => {
                self.world.node(*number)?.site.signal(Signal::SIGCONT)?;
                Ok(())
            }
            Fault::Isolate(number, _) => {
                self.world.node(*number)?.join();
                Ok(())
            }
            Fault::CutDatabase(number, _) => {
                self.world.node(*number)?.join_database();
                Ok(())
            }
            Fault::StandbyLost(which) => {
                let trio = self.world.trio()?;
                let number = trio.others().get(*which).copied().context("a standby")?;
                trio.server(number)?.launch()?;
                trio.wait_until_they_follow(2)
            }
            Fault::PrimaryLost => {
                let old = self.old_primary.take().context("an old primary")?;
                self.world.trio()?.rejoin(old)
            }
            Fault::PrimaryFrozen => {
                self.world.trio()?.primary().thaw();
                self.world.trio()?.wait_until_they_follow(2)
            }
            Fault::FullDisk => self.give_room(),
        }
    }

    /// Kills a node with a Flash in its queue. Its network is silent from before the submission, so that the
    /// Flash cannot have left.
    fn kill(&mut self, number: usize) -> Result<()> {
        let message = Message::probe(self.seed, self.probes);
        self.probes += 1;
        self.world.node(number)?.isolate(Network::Silent);
        let mut client = self.world.clients.start(PROBE, number, &message.arguments())?;
        let answered = client.ends_within(PROBED)?;
        self.take_down(number)?;
        let killed = self.start.elapsed();
        self.world.node(number)?.forget();
        self.world.node(number)?.join();
        let answer = if answered { client.accepted(killed)? } else { None };
        self.report(Event::Queued(Probe { message, answer, killed: Some(killed) }))
    }

    fn take_up(&mut self, number: usize) -> Result<()> {
        self.world.node(number)?.site.launch()?;
        self.down.retain(|down| *down != number);
        self.answers(number)
    }

    fn take_down(&mut self, number: usize) -> Result<()> {
        self.down.push(number);
        let site = &mut self.world.node(number)?.site;
        site.kill().or_else(|_| already_over(site))
    }

    fn stop(&mut self, number: usize) -> Result<()> {
        self.down.push(number);
        let status = self.world.node(number)?.site.stop()?;
        if status.code() != Some(0) {
            let text = format!("n{} ended with {status} when it was stopped", number + 1);
            self.report(Event::Ended(text))?;
        }
        Ok(())
    }

    /// Waits until a node answers; one that ends meanwhile is started again.
    fn answers(&mut self, number: usize) -> Result<()> {
        let deadline = Deadline::after(BACK);
        while self.world.node(number)?.site.status().is_err() {
            self.wait(LOOK)?;
            if deadline.has_passed() || is_interrupted() {
                let log = self.world.node(number)?.site.log_tail();
                bail!("n{} does not answer; its log ends:\n{log}", number + 1);
            }
        }
        Ok(())
    }

    /// Removes what fills the disk, and starts the server where it ended for that.
    fn give_room(&mut self) -> Result<()> {
        if let Some(path) = self.ballast.take() {
            fs::remove_file(path)?;
        }
        let trio = self.world.trio()?;
        let primary = trio.primary_number();
        if !trio.server(primary)?.is_running() {
            trio.server(primary)?.launch()?;
        }
        let answer = || Ok(trio.psql("select 1").ok().map(drop));
        Deadline::after(BACK).wait_for("an answer of the primary", answer)?;
        trio.wait_until_they_follow(2)
    }
}

/// A daemon that had ended by itself is down as well.
fn already_over(site: &mut testbed::Site) -> Result<()> {
    if site.is_running()? { bail!("{} cannot be killed", site.name()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Clients;
    use database::{Options, Trio, programs_or_skip};
    use std::path::Path;

    /// Each fault of the database ends with three servers that work, and with all that was committed.
    #[test]
    fn the_database_survives_each_of_its_faults() {
        let Some(programs) = programs_or_skip("the_database_survives") else { return };
        let is_root = nix::unistd::geteuid().is_root();
        let mut options = Options::new().programs(programs);
        if is_root {
            options = options.disk(400).set("max_wal_size", "96MB").set("wal_keep_size", "64MB");
        }
        let trio = Trio::start(options).unwrap();
        trio.psql("create table kept (number integer)").unwrap();
        let clients = Clients::new(Path::new("xuxa"), Path::new("."), 1);
        let (nodes, foreign, fronts) = (Vec::new(), Vec::new(), Vec::new());
        let mut world = World { nodes, foreign, trio: Some(trio), clients, fronts };
        let (sender, events) = std::sync::mpsc::channel();
        let mut striker = Striker::new(&mut world, Start::now(), 1, sender);
        let mut faults = vec![
            Fault::StandbyLost(0),
            Fault::StandbyLost(1),
            Fault::PrimaryLost,
            Fault::PrimaryFrozen,
            Fault::PrimaryLost,
        ];
        faults.extend(is_root.then_some(Fault::FullDisk));
        let count = faults.len();
        for (number, fault) in faults.into_iter().enumerate() {
            striker.strike(vec![(fault, Duration::from_millis(300))]).unwrap();
            let trio = striker.world.trio().unwrap();
            trio.psql(&format!("insert into kept values ({number})")).unwrap();
            let numbers = trio.psql("select count(*) from kept").unwrap();
            assert_eq!(numbers, (number + 1).to_string());
            trio.wait_until_they_follow(2).unwrap();
        }
        assert_eq!(events.try_iter().count(), count);
    }
}
