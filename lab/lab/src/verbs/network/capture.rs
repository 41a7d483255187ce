//! `lab capture`: packets of a port, as they pass.

use anyhow::{Context as _, Result};
use emulator::client::ControlClient;
use router::policy::Span;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write};
use std::process::ExitCode;
use std::time::Duration;
use testbed::clock::{self, Deadline};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Node and interface: sar.wan
    port: String,
    /// The pcapng file that is written; standard output where it is - or absent
    #[arg(default_value = "-")]
    file: String,
    /// How long, as in 90s; else until Ctrl-C
    #[arg(long = "for", value_name = "DURATION")]
    time: Option<Span>,
    /// How many packets, at most
    #[arg(long)]
    count: Option<u64>,
    /// The network; may be left out where one is up
    #[arg(long)]
    lab: Option<String>,
}

/// How often it is looked whether it shall end.
const LOOK: Duration = Duration::from_millis(100);
/// The type of a block that is a packet (pcapng 4.3).
const PACKET: u32 = 6;
/// The longest block: a packet and what stands around it.
const MAX_BLOCK: usize = 1 << 20;

impl Args {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        ctrlc::set_handler(clock::interrupt).context("signals")?;
        let client = ControlClient::find(self.lab.as_deref())?;
        let mut stream = client.capture(&self.port)?;
        let mut out: Box<dyn Write> = match self.file.as_str() {
            "-" => Box::new(std::io::stdout().lock()),
            file => Box::new(File::create(file).with_context(|| format!("creating {file}"))?),
        };
        eprintln!("lab: capturing at {}", self.port);
        let end = self.time.map(|time| Deadline::after(time.0));
        let over = || clock::is_interrupted() || end.is_some_and(|end| end.has_passed());
        stream.get_ref().set_read_timeout(Some(LOOK))?;
        let mut waiting = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        let mut packets = 0;
        // Whole blocks only: a file that is cut off is none.
        while !over() && self.count.is_none_or(|count| packets < count) {
            match stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => waiting.extend_from_slice(chunk.get(..length).unwrap_or_default()),
                Err(error) if is_patience(error.kind()) => continue,
                Err(error) => return Err(error).context("the network"),
            }
            let mut whole = 0;
            while let Some((kind, length)) = block(waiting.get(whole..).unwrap_or_default()) {
                if kind == PACKET && self.count.is_some_and(|count| packets >= count) {
                    break;
                }
                packets += u64::from(kind == PACKET);
                whole += length;
            }
            let written = out.write_all(waiting.get(..whole).unwrap_or_default());
            match written.and_then(|()| out.flush()) {
                // Who reads has had enough.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                other => other.context("writing the capture")?,
            }
            waiting.drain(..whole);
            if waiting.len() > MAX_BLOCK {
                anyhow::bail!("the network does not send pcapng");
            }
        }
        eprintln!("lab: {packets} packets");
        Ok(ExitCode::SUCCESS)
    }
}

fn is_patience(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Type and length of the block at the beginning, if it is there whole. Both programs run on this
/// machine: numbers have its order.
fn block(octets: &[u8]) -> Option<(u32, usize)> {
    let (kind, rest) = octets.split_first_chunk()?;
    let (length, _) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_ne_bytes(*length)).ok()?;
    (length >= 12 && octets.len() >= length).then_some((u32::from_ne_bytes(*kind), length))
}
