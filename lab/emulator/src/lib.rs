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
//! Everything it makes is held by descriptors of this process alone, and ends with it.

mod carrier;
mod control;
mod files;
pub mod inside;
mod origin;
mod view;

pub use carrier::flood::{FloodAsk, FloodStatus};
pub use carrier::kind::Kind;
pub use control::ask::FlowAsk;
pub use control::client::{self, Client};
pub use control::status::{
    Carried, Count, DelayStatus, NodeStatus, PartStatus, RowStatus, Status, Total,
};
pub use origin::Origin;
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
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use testbed::clock::{self, Deadline};
use testbed::netns::Rights;
use testbed::probe::Probe;
use view::View;

/// How often the view is drawn anew.
const VIEW: Duration = Duration::from_secs(1);

/// What is kept up, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The topology's file.
    pub topology: PathBuf,
    /// Files of policies by their names; others are looked for beside the topology.
    pub policies: Vec<(String, PathBuf)>,
    /// The network's name; that of the topology's file where absent.
    pub name: Option<String>,
    /// The data path; the first that works where absent.
    pub path: Option<Kind>,
    /// For all dice.
    pub seed: u64,
    /// How long; until told to end where absent.
    pub time: Option<Duration>,
    /// Nothing is shown while it is up.
    pub quiet: bool,
    /// It ends once standard input does, at the latest with whoever started it.
    pub with_input: bool,
}

/// Keeps a network up until its time is over, or someone ends it. Gives what it counted.
///
/// This process must have one thread only: it may have to move into a user namespace.
///
/// # Errors
/// A file is wrong, with the place ([`text::Usage`]; nothing has been made then); the network's
/// name is taken; this machine cannot do it, with what `lab doctor` would say.
pub fn run(options: &Options) -> Result<Status> {
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
    let kind = Kind::choose(options.path, &Probe::with(Ok(rights)))?;
    let hosts = Hosts::new(network.plan(), &files.topology().hosts)?;
    let about = about(&files, &network, &hosts, rights);
    let mut path = make(kind, network, &hosts, &files)?;
    control.serve(about, &asker)?;
    let carrier = std::thread::Builder::new().name("carrier".to_owned());
    let carrier = carrier.spawn(move || {
        let done = carry(path.as_mut(), &mut questions);
        // Whatever ended it, there is nothing to wait for any more.
        clock::interrupt();
        drop(questions);
        done
    })?;
    if !options.quiet {
        eprintln!("{} is up: data path {kind}, as {}", files.name, rights.name());
    }
    let last = show(options, &files.name, &mut asker, &ended);
    clock::interrupt();
    asker.wake();
    let carried = carrier.join().unwrap_or_else(|_| anyhow::bail!("the carrier ended early"));
    drop(hosts);
    carried?;
    last
}

/// Carries until the end; errors tell what they are about.
fn carry(path: &mut dyn DataPath, questions: &mut Questions) -> Result<()> {
    path.run(questions).context("carrying packets")
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
    kind: Kind,
    network: NetworkMachine,
    hosts: &Hosts,
    files: &Files,
) -> Result<Box<dyn DataPath>> {
    let ports = Hosts::ports(network.plan());
    Ok(match kind {
        Kind::Tun => {
            let devices = TunPorts::new(network.plan(), hosts, &ports)?;
            Box::new(Driver::new(kind, network, devices, ports))
        }
        Kind::Packet => {
            let sockets = PacketPorts::new(network.plan(), hosts, &ports)?;
            Box::new(Driver::new(kind, network, sockets, ports))
        }
        Kind::Tc => Box::new(Kernel::new(network.plan(), hosts, files)?),
    })
}

/// Shows what passes until the end; gives the last counters.
fn show(
    options: &Options,
    name: &str,
    asker: &mut Asker,
    ended: &std::sync::mpsc::Receiver<()>,
) -> Result<Status> {
    let end = options.time.map(Deadline::after);
    let mut view = View::new(name, options.quiet);
    let mut last = status(asker, name)?;
    loop {
        let left = end.map_or(VIEW, |end| end.left().min(VIEW));
        match ended.recv_timeout(left) {
            Err(RecvTimeoutError::Timeout) if !clock::is_interrupted() => {}
            _ => break,
        }
        // Who ends the network may have been first.
        let Ok(now) = status(asker, name) else { break };
        view.draw(&last, &now);
        last = now;
        if end.is_some_and(|end| end.has_passed()) {
            break;
        }
    }
    view.end();
    Ok(status(asker, name).unwrap_or(last))
}

fn status(asker: &mut Asker, name: &str) -> Result<Status> {
    match asker.ask(Ask::Status) {
        Ok(Reply::Status(mut status)) => {
            name.clone_into(&mut status.name);
            Ok(*status)
        }
        Ok(other) => anyhow::bail!("another answer than asked for: {other:?}"),
        Err(why) => anyhow::bail!("{why}"),
    }
}
