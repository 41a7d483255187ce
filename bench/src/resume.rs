//! `cargo xtask bench resume`: what a long transfer that is cut off near its end costs, by who opened
//! the association it was on.

use super::figures::{aligned, markdown, thousands};
use super::{Programs, build, close};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use testbed::clock;
use testbed::{Pair, PeerSettings, Site};

/// Octets of the message's text.
const SIZE: u64 = 10_000_000;
/// The transfer is cut off when so much of it, in percent, has passed.
const CUT_AT: u64 = 90;
/// A proxy that cuts still counts what the sender had sent: until nothing came for so long.
const DRAIN: Duration = Duration::from_millis(300);
/// Longest wait for each step.
const LIMIT: Duration = Duration::from_secs(120);
/// Octets on the wire for a hundred of content, at most, and of what opens an association.
const FRAMING: (u64, u64) = (102, 8_192);

/// Carries 10 MB between two sites on loopback through a proxy, once whole and once cut off at 90
/// percent, on an association that the sender opened and on one that the receiver opened. Takes some
/// 20 seconds.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of a table
    #[arg(long)]
    json: bool,
    /// Writes the table into docs/performance.md
    #[arg(long)]
    write: bool,
    /// The programs as they are built, from this directory, instead of building them
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

/// All that was measured.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ResumeResults {
    /// Octets of the message's text.
    size: u64,
    /// Octets between checkpoints, and how many may be unconfirmed.
    checkpoint: u64,
    window: u64,
    rows: Vec<ResumeRow>,
}

/// One way to open the association.
#[derive(Debug, Deserialize, Serialize)]
struct ResumeRow {
    opened_by: String,
    /// Octets on the wire from the sender, without a cut.
    whole: u64,
    /// After so many it was cut off.
    cut_after: u64,
    /// Octets on the wire from the sender, over all connections.
    sent: u64,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        let programs = build(workspace, self.programs.as_deref())?;
        ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
        let report = measure(&programs)?;
        if self.write {
            super::all::write_part(workspace, "resume", &report.markdown())?;
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            print!("{}", report.text());
        }
        Ok(Outcome::from_passed(report.is_sound()))
    }
}

pub(super) fn measure(programs: &Programs) -> Result<ResumeResults> {
    let peer = PeerSettings::default();
    let mut rows = Vec::new();
    for opener in [Opener::Sender, Opener::Receiver] {
        eprintln!("10 MB on an association that the {} opened", opener.name());
        let whole = carry(programs, opener, None)?;
        let cut_after = whole * CUT_AT / 100;
        let sent = carry(programs, opener, Some(cut_after))?;
        rows.push(ResumeRow { opened_by: opener.name().to_owned(), whole, cut_after, sent });
    }
    Ok(ResumeResults { size: SIZE, checkpoint: peer.checkpoint, window: peer.window.into(), rows })
}

/// Who opened the association; Naples always does, so it is who sends that differs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opener {
    Sender,
    Receiver,
}

impl Opener {
    fn name(self) -> &'static str {
        match self {
            Opener::Sender => "sender",
            Opener::Receiver => "receiver",
        }
    }
}

/// Carries one message; gives the octets its sender sent.
fn carry(programs: &Programs, opener: Opener, cut_after: Option<u64>) -> Result<u64> {
    let peer = PeerSettings { associations: Some((1, 1)), ..PeerSettings::default() };
    let builder = Pair::builder(peer)?.programs(&programs.site);
    let Some(&server) = builder.act_listens().first() else { bail!("a peer without a channel") };
    let from_client = opener == Opener::Sender;
    let proxy = Proxy::start(server, from_client, cut_after)?;
    // Nobody listens there: ACT opens nothing.
    let nowhere = TcpListener::bind((server.ip(), 0))?.local_addr()?;
    let builder = builder.naples_connects(vec![proxy.address]).act_connects(vec![nowhere]);
    let mut pair = builder.start()?;
    let carried = carry_one(&pair, opener, &proxy);
    close(&mut pair, carried)?;
    if cut_after.is_some() && !proxy.counts.is_cut.load(Ordering::Relaxed) {
        bail!("the transfer was not cut off");
    }
    Ok(proxy.counts.sent.load(Ordering::Relaxed))
}

fn carry_one(pair: &Pair, opener: Opener, proxy: &Proxy) -> Result<()> {
    let (sender, receiver) = match opener {
        Opener::Sender => (&pair.naples, &pair.act),
        Opener::Receiver => (&pair.act, &pair.naples),
    };
    let open = |site: &Site| {
        site.wait_until("an association", LIMIT, |status| {
            status.associations().any(|a| a.state == "idle")
        })
    };
    open(sender)?;
    open(receiver)?;
    proxy.counts.sent.store(0, Ordering::Relaxed);
    proxy.counts.armed.store(true, Ordering::Relaxed);
    let to = receiver.address("OPS");
    sender.send("OPS", &["--to", &to, "--size", &SIZE.to_string()])?;
    receiver.wait_until("the message", LIMIT, |status| status.waiting() == 1)?;
    sender.wait_until("nothing left to send", LIMIT, |status| status.queued() == 0)?;
    Ok(())
}

/// Passes connections on to a server, counts what the sender sends, and cuts once.
struct Proxy {
    address: SocketAddr,
    counts: Arc<Counts>,
}

struct Counts {
    /// Octets from the sender, over all connections.
    sent: AtomicU64,
    /// Whether what passes counts: the association is open.
    armed: AtomicBool,
    is_cut: AtomicBool,
    cut_after: Option<u64>,
}

impl Proxy {
    fn start(server: SocketAddr, from_client: bool, cut_after: Option<u64>) -> Result<Proxy> {
        let listener = TcpListener::bind((server.ip(), 0)).context("a port for the proxy")?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts {
            sent: AtomicU64::new(0),
            armed: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            cut_after,
        });
        let shared = Arc::clone(&counts);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is away refuses: the client sees its connection end.
                if let Ok(server) = TcpStream::connect(server) {
                    let _ = shared.join(&client, &server, from_client);
                }
            }
        });
        Ok(Proxy { address, counts })
    }
}

impl Counts {
    fn join(
        self: &Arc<Self>,
        client: &TcpStream,
        server: &TcpStream,
        from_client: bool,
    ) -> std::io::Result<()> {
        for (from, to, counts) in [(client, server, from_client), (server, client, !from_client)] {
            let (from, to) = (from.try_clone()?, to.try_clone()?);
            let shared = Arc::clone(self);
            thread::spawn(move || {
                let _ = shared.copy(&from, &to, counts);
                let _ = to.shutdown(Shutdown::Write);
            });
        }
        Ok(())
    }

    fn copy(&self, mut from: &TcpStream, mut to: &TcpStream, counts: bool) -> std::io::Result<()> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let octets = from.read(&mut buffer)?;
            if octets == 0 {
                return Ok(());
            }
            if counts && self.is_cut_by(octets) {
                return self.cut(from, to);
            }
            to.write_all(buffer.get(..octets).unwrap_or_default())?;
        }
    }

    /// Counts what passes; whether the connection is cut here.
    fn is_cut_by(&self, octets: usize) -> bool {
        let sent = self.sent.fetch_add(octets as u64, Ordering::Relaxed) + octets as u64;
        let due = self.cut_after.is_some_and(|after| sent > after);
        due && self.armed.load(Ordering::Relaxed) && !self.is_cut.swap(true, Ordering::Relaxed)
    }

    /// Nothing passes any more; what the sender goes on sending, until its window is full, is
    /// counted, and lost.
    fn cut(&self, mut from: &TcpStream, to: &TcpStream) -> std::io::Result<()> {
        from.set_read_timeout(Some(DRAIN))?;
        let mut buffer = vec![0; 16 << 10];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(octets) => _ = self.sent.fetch_add(octets as u64, Ordering::Relaxed),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let ended = from.shutdown(Shutdown::Both);
        to.shutdown(Shutdown::Both).and(ended)
    }
}

/// The headings of the table.
const HEADER: [&str; 5] = [
    "association opened by the",
    "octets sent without a cut",
    "cut off after",
    "octets sent with it",
    "sent again",
];

impl ResumeResults {
    /// The most that may be sent again.
    fn most(&self) -> u64 {
        (self.window + 1) * self.checkpoint
    }

    /// Whether no more was sent again than that.
    fn is_sound(&self) -> bool {
        let most = self.most() * FRAMING.0 / 100 + FRAMING.1;
        self.rows.iter().all(|row| row.again() <= most)
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(ResumeRow::cells).collect();
        format!("{}{}", aligned(&HEADER, &rows), self.bound())
    }

    /// For the page.
    pub(super) fn markdown(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(ResumeRow::cells).collect();
        format!("{}\n{}", markdown(&HEADER, &rows), self.bound())
    }

    fn bound(&self) -> String {
        format!(
            "A message of {} octets. At most {} may be sent again: a window of {} and one more \
             checkpoint of {} octets.\n",
            thousands(self.size),
            thousands(self.most()),
            self.window,
            thousands(self.checkpoint)
        )
    }
}

impl ResumeRow {
    fn again(&self) -> u64 {
        self.sent.saturating_sub(self.whole)
    }

    fn cells(&self) -> Vec<String> {
        let counts = [self.whole, self.cut_after, self.sent, self.again()];
        let counts = counts.into_iter().map(thousands);
        [self.opened_by.clone()].into_iter().chain(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_again_is_held_against_the_window() {
        let row = |sent| ResumeRow {
            opened_by: "sender".to_owned(),
            whole: 10_100_000,
            cut_after: 9_000_000,
            sent,
        };
        let report = |sent| ResumeResults {
            size: SIZE,
            checkpoint: 65_536,
            window: 16,
            rows: vec![row(sent)],
        };
        assert!(report(11_200_000).is_sound());
        assert!(!report(15_300_000).is_sound(), "it began again");
        let text = report(11_200_000).markdown();
        assert!(
            text.contains("| sender | 10,100,000 | 9,000,000 | 11,200,000 | 1,100,000 |"),
            "{text}"
        );
        assert!(text.contains("At most 1,114,112 may be sent again"), "{text}");
    }
}
