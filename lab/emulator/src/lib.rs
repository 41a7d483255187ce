//! A network kept up: hosts in namespaces of their own, and routers between them.
//!
//! ```text
//!  ping, ssh, ...                                 one process, `lab up`
//!  ┌─ host's namespace ─┐   TUN, or   ┌──────────────────────────────────────┐
//!  │ kernel ── eth0 ────┼── a packet ─┤ driver ── network: lines, routers,   ├── other hosts
//!  └────────────────────┘   socket    │           gateways; no clock in it   │
//!                                     └──────────────────────────────────────┘
//! ```
//!
//! Only descriptors of this process hold what it makes, so everything ends with it.

mod carrier;
mod control;
mod files;
pub mod inside;
mod origin;
mod view;

pub use carrier::flood::{FloodAsk, FloodStatus};
pub use carrier::kind::DataPathKind;
pub use control::ask::FlowAsk;
pub use control::client::{self, ControlClient};
pub use control::status::{
    CarriedTraffic, DelayStatus, NetworkStatus, NodeStatus, PartStatus, RowStatus, Total,
    TrafficCount,
};
pub use origin::TimeOrigin;
pub use view::table;

use anyhow::{Context, Result};
use carrier::driver::Driver;
use carrier::hosts::Hosts;
use carrier::kernel::Kernel;
use carrier::path::DataPath;
use carrier::ports::{PacketPorts, TunPorts};
use control::ask::{Ask, Asker, Questions, Reply, questions};
use control::{About, Control};
use files::Files;
use network::NetworkMachine;
use nix::sys::signal::{SigSet, Signal};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use testbed::clock::{self, Deadline};
use testbed::netns::Rights;
use testbed::probe::MachineProbe;
use view::View;

/// The interval at which the view is redrawn.
const VIEW: Duration = Duration::from_secs(1);

/// Texts that are part of the program, by their names.
pub type Shipped = &'static [(&'static str, &'static str)];

/// The network to keep up, and its options.
#[derive(Clone, Debug, Default)]
pub struct NetworkOptions {
    /// The topology's file, or the name of one in `topologies`.
    pub topology: PathBuf,
    /// Topologies that need no file.
    pub topologies: Shipped,
    /// Files of policies by their names; others are looked for beside the topology, those of a topology without a file
    /// in `shipped_policies`.
    pub policies: Vec<(String, PathBuf)>,
    /// Policies that need no file.
    pub shipped_policies: Shipped,
    /// The network's name; that of the topology's file where absent.
    pub name: Option<String>,
    /// The data path; the first that works where absent.
    pub path: Option<DataPathKind>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// How long; without a limit where absent.
    pub time: Option<Duration>,
    /// Whether to show nothing while it is up.
    pub quiet: bool,
    /// Whether it ends once standard input does, and so with the process that started it at the latest.
    pub with_input: bool,
}

/// Keeps a network up until its time is over, a signal, or `lab down`. Returns its counters.
///
/// This process must have one thread only: it may have to move into a user namespace.
///
/// # Errors
/// A file is wrong, with the place ([`text::UsageError`]; nothing has been made then); the network's
/// name is taken; this machine cannot do it, with the reason as `lab doctor` shows it.
pub fn run(options: &NetworkOptions) -> Result<NetworkStatus> {
    // Until the handler is installed these signals stay pending. Otherwise SIGINT would be lost where
    // the program was started with it ignored, as shells start commands in the background.
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    signals.thread_block().context("signals")?;
    let files = Files::read(options)?;
    let network = files.network(options.seed)?;
    let control = Control::bind(&files.name)?;
    let rights = Rights::acquire().context("making namespaces (see `lab doctor`)")?;
    let (mut asker, mut questions) = questions()?;
    let (ending, ended) = channel::<()>();
    let mut waker = asker.another()?;
    let ending_too = ending.clone();
    ctrlc::set_handler(move || {
        clock::interrupt();
        waker.wake();
        let _ = ending.send(());
    })
    .context("signals")?;
    signals.thread_unblock().context("signals")?;
    if options.with_input {
        let mut waker = asker.another()?;
        let reader = std::thread::Builder::new().name("input".to_owned());
        reader.spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            clock::interrupt();
            waker.wake();
            let _ = ending_too.send(());
        })?;
    }
    let kind = DataPathKind::choose(options.path, &MachineProbe::with(Ok(rights)))?;
    let hosts = Hosts::new(network.plan(), &files.topology().hosts)?;
    let about = about(&files, &network, &hosts, rights);
    let mut path = make(kind, network, &hosts, &files)?;
    control.serve(about, &asker)?;
    let carrier = std::thread::Builder::new().name("carrier".to_owned());
    let carrier = carrier.spawn(move || {
        let done = carry(path.as_mut(), &mut questions);
        // Whatever ended it, `show` must not wait any longer.
        clock::interrupt();
        drop(questions);
        done
    })?;
    if !options.quiet {
        eprintln!("{} is up: data path {kind}, as {}", files.name, rights.name());
    }
    let shown = show(options, &files.name, &mut asker, &ended);
    clock::interrupt();
    asker.wake();
    let carried = carrier.join().unwrap_or_else(|_| anyhow::bail!("the carrier ended early"));
    drop(hosts);
    let last = carried?;
    shown?;
    Ok(NetworkStatus { name: files.name, ..last })
}

/// Carries packets until the end; returns the last counters.
fn carry(path: &mut dyn DataPath, questions: &mut Questions) -> Result<NetworkStatus> {
    path.run(questions).context("carrying packets")?;
    path.status()
}

fn about(files: &Files, network: &NetworkMachine, hosts: &Hosts, rights: Rights) -> About {
    let of = |(place, node): (usize, &network::plan::PlanNode)| {
        Some((node.name.clone(), hosts.namespace(place)?.path()))
    };
    let user = format!("/proc/{}/ns/user", std::process::id());
    About {
        name: files.name.clone(),
        hosts: network.plan().hosts().filter_map(of).collect(),
        user: (rights == Rights::User).then_some(user),
    }
}

fn make(
    kind: DataPathKind,
    network: NetworkMachine,
    hosts: &Hosts,
    files: &Files,
) -> Result<Box<dyn DataPath>> {
    let ports = Hosts::ports(network.plan());
    Ok(match kind {
        DataPathKind::Tun => {
            let devices = TunPorts::new(network.plan(), hosts, &ports)?;
            Box::new(Driver::new(kind, network, devices, ports))
        }
        DataPathKind::Packet => {
            let sockets = PacketPorts::new(network.plan(), hosts, &ports)?;
            Box::new(Driver::new(kind, network, sockets, ports))
        }
        DataPathKind::Tc => Box::new(Kernel::new(network.plan(), hosts, files)?),
    })
}

/// Shows the traffic until the end.
fn show(
    options: &NetworkOptions,
    name: &str,
    asker: &mut Asker,
    ended: &std::sync::mpsc::Receiver<()>,
) -> Result<()> {
    let end = options.time.map(Deadline::after);
    let mut view = View::new(name, options.quiet);
    let mut last = match status(asker, name) {
        // `lab down` and a signal may come before the first look.
        Err(_) if clock::is_interrupted() => return Ok(()),
        first => first?,
    };
    loop {
        let left = end.map_or(VIEW, |end| end.left().min(VIEW));
        match ended.recv_timeout(left) {
            Err(RecvTimeoutError::Timeout) if !clock::is_interrupted() => {}
            _ => break,
        }
        // The driver may have ended already.
        let Ok(now) = status(asker, name) else { break };
        view.draw(&last, &now);
        last = now;
        if end.is_some_and(|end| end.has_passed()) {
            break;
        }
    }
    view.end();
    Ok(())
}

fn status(asker: &mut Asker, name: &str) -> Result<NetworkStatus> {
    match asker.ask(Ask::Status) {
        Ok(Reply::Status(mut status)) => {
            name.clone_into(&mut status.name);
            Ok(*status)
        }
        Ok(other) => anyhow::bail!("not an answer to this question: {other:?}"),
        Err(why) => anyhow::bail!("{why}"),
    }
}
