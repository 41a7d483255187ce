//! `lab load send` and `lab load receive`.

use anyhow::{Context as _, Result};
use clap::Subcommand;
use dscp::Dscp;
use router::policy::Span;
use router::time::Rate;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use text::UsageError;
use text::toml_file::TomlFile;
use traffic::{
    Ahead, Counted, FlowPlan, LoadClock, LoadPlan, Pacing, Receiver, Reception, Sender, Transport,
    csv, received_json, received_table, sent_json, sent_table,
};

/// Something could not be done, and something was.
const IN_PART: u8 = 3;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// End once standard input ends, at the latest with whoever started this
    #[arg(long)]
    with_input: bool,
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Send UDP at a constant bit rate, or TCP limited to a rate
    Send(Box<SendArgs>),
    /// Receive, and measure throughput, loss, reordering, one-way delay and jitter
    Receive(ReceiveArgs),
}

#[derive(clap::Args)]
struct SendArgs {
    /// Where to: `ADDRESS:PORT` or `[ADDRESS]:PORT`
    #[arg(required_unless_present = "plan")]
    to: Option<SocketAddr>,
    /// Several flows, from a TOML file: `[[flows]]` with to, rate, size, dscp, ...
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "rate", "size", "tcp", "flows"])]
    plan: Option<PathBuf>,
    /// Each flow's rate: 512kbit, 2Mbit
    #[arg(long, default_value = "1Mbit")]
    rate: Rate,
    /// What the rate counts
    #[arg(long, value_enum, default_value_t = Counted::Packet)]
    counted: Counted,
    /// Octets of payload in a packet, or of a block over TCP
    #[arg(long, default_value_t = 972)]
    size: u32,
    /// The mark: CS1, EF, AF11, 46
    #[arg(long, default_value = "CS0")]
    dscp: Dscp,
    /// How many flows alike, each with a socket of its own
    #[arg(long, default_value_t = 1)]
    flows: usize,
    /// How long: 10s, 500ms, up to 60min
    #[arg(long = "for", value_name = "TIME")]
    time: Option<Span>,
    /// No more packets than this, each flow
    #[arg(long)]
    packets: Option<u64>,
    /// Move each packet by up to so many percent of the interval, up to 50
    #[arg(long, default_value_t = 0, value_name = "PERCENT")]
    jitter: u8,
    /// The seed of the jitter
    #[arg(long)]
    seed: Option<u64>,
    /// Wait by sleeping, or by looking at the clock all the time
    #[arg(long, value_enum)]
    pacing: Option<Pacing>,
    /// The clock of the times in packets: monotonic on one machine, realtime between two
    #[arg(long, value_enum)]
    clock: Option<LoadClock>,
    /// Over TCP
    #[arg(long)]
    tcp: bool,
    /// Measure the time there and back, at a receiver with --echo
    #[arg(long, conflicts_with_all = ["tcp", "plan"])]
    echo: bool,
    /// TCP's congestion control
    #[arg(long, requires = "tcp")]
    congestion: Option<String>,
    /// Most octets of payload in a segment of TCP
    #[arg(long, requires = "tcp", value_name = "OCTETS")]
    segment: Option<u32>,
    /// From this address
    #[arg(long, value_name = "ADDRESS")]
    from: Option<IpAddr>,
    /// Distinguishes this run from others at the same receiver
    #[arg(long)]
    run: Option<u32>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct ReceiveArgs {
    /// Where: `PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`; UDP and TCP, all addresses where none is given
    listen: String,
    /// How long at most: 15s, up to 60min
    #[arg(long = "for", value_name = "TIME", default_value = "20s")]
    time: Span,
    /// Send each UDP packet back, with the mark it came with
    #[arg(long)]
    echo: bool,
    /// End earlier, once so many flows have ended
    #[arg(long, default_value_t = 1)]
    flows: usize,
    /// Write a line for each flow and interval to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// The length of an interval
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    interval: Span,
    /// So many nanoseconds this machine's clock is ahead of the senders', which are taken off
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0, allow_hyphen_values = true)]
    ahead: i64,
    /// Nanoseconds a second that it gains on theirs, taken off too
    #[arg(long, value_name = "PPB", default_value_t = 0, allow_hyphen_values = true)]
    drift: i64,
    /// The time of this machine's clock at which it is --ahead, in nanoseconds
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0)]
    since: u64,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        // Ctrl-C ends a load early; the measurements so far are still reported.
        let _ = ctrlc::set_handler(testbed::clock::interrupt);
        if self.with_input {
            super::end_with_standard_input();
        }
        match self.role {
            Role::Send(args) => args.run(),
            Role::Receive(args) => args.run(),
        }
    }
}

impl SendArgs {
    fn plan(&self) -> Result<LoadPlan> {
        let mut plan = match (&self.plan, self.to) {
            (Some(path), _) => {
                TomlFile::<LoadPlan>::read(path)
                    .map_err(|mistake| UsageError::error(mistake.render(false)))?
                    .value
            }
            (None, Some(to)) => LoadPlan::single(FlowPlan {
                from: self.from,
                transport: if self.tcp { Transport::Tcp } else { Transport::Udp },
                counted: self.counted,
                dscp: self.dscp,
                jitter: self.jitter,
                packets: self.packets,
                congestion: self.congestion.clone(),
                segment: self.segment,
                copies: self.flows,
                echo: self.echo,
                ..FlowPlan::udp(to, self.rate, self.size)
            }),
            (None, None) => return Err(UsageError::error("an address, or --plan FILE")),
        };
        plan.time = self.time.unwrap_or(plan.time);
        plan.pacing = self.pacing.unwrap_or(plan.pacing);
        plan.clock = self.clock.unwrap_or(plan.clock);
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan.run = self.run.unwrap_or(plan.run);
        plan.check().map_err(|wrong| UsageError::error(wrong.to_string()))?;
        Ok(plan)
    }

    fn run(&self) -> Result<ExitCode> {
        let sent = Sender::new(self.plan()?)?.run()?;
        match self.json {
            true => super::print_json(&sent_json(&sent))?,
            false => super::print(&sent_table(&sent))?,
        }
        let whole = sent.flows.iter().all(|flow| flow.errors.is_empty() && flow.given_up == 0);
        Ok(if sent.flows.iter().all(|flow| flow.sent == 0) {
            ExitCode::FAILURE
        } else if whole {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(IN_PART)
        })
    }
}

impl ReceiveArgs {
    fn listen(&self) -> Result<SocketAddr> {
        let port = self.listen.parse().map(|port| (Ipv6Addr::UNSPECIFIED, port).into());
        port.or_else(|_| self.listen.parse()).map_err(|_| {
            UsageError::error(format!("{:?}: PORT, ADDRESS:PORT or [ADDRESS]:PORT", self.listen))
        })
    }

    fn run(&self) -> Result<ExitCode> {
        let (limit, interval) = (self.time.0, self.interval.0);
        let ahead = Ahead { nanos: self.ahead, since: self.since, drift_ppb: self.drift };
        let (flows, echo) = (self.flows, self.echo);
        let setup = Reception { listen: self.listen()?, limit, flows, interval, echo, ahead };
        let receiver = Receiver::bind(setup)?;
        eprintln!("listening at {} for {}", receiver.address(), self.time);
        let received = receiver.run()?;
        if let Some(path) = &self.csv {
            let text = csv(&received.measured);
            std::fs::write(path, text).with_context(|| path.display().to_string())?;
        }
        match self.json {
            true => super::print_json(&received_json(&received))?,
            false => super::print(&received_table(&received))?,
        }
        let any = received.measured.counts.received > 0;
        Ok(if any { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn plan(text: &str) -> Result<LoadPlan> {
        let words = ["lab", "send"].into_iter().chain(text.split_whitespace());
        match Cli::try_parse_from(words)?.args.role {
            Role::Send(args) => args.plan(),
            Role::Receive(_) => panic!("a sender"),
        }
    }

    #[test]
    fn a_sender_s_words_are_its_plan() {
        let text = "[fd00::1]:5000 --rate 2Mbit --size 200 --dscp EF --flows 3 --for 2s --jitter 20 \
             --pacing busy --clock realtime --seed 7 --run 4 --packets 9";
        let plan = plan(text).unwrap();
        let flow = &plan.flows[0];
        assert_eq!((flow.rate.bits(), flow.size, flow.copies), (2_000_000, 200, 3));
        assert_eq!((flow.dscp, flow.jitter, flow.packets), (Dscp::EF, 20, Some(9)));
        assert_eq!((plan.pacing, plan.clock), (Pacing::Busy, LoadClock::Realtime));
        assert_eq!((plan.seed, plan.run, plan.time.to_string().as_str()), (7, 4, "2s"));
    }

    #[test]
    fn wrong_words_are_a_usage_error() {
        for wrong in ["127.0.0.1:5000 --size 20", "127.0.0.1:5000 --for 0s", "--plan /nonexistent"]
        {
            let error = plan(wrong).unwrap_err();
            assert!(error.is::<UsageError>(), "{wrong}: {error}");
        }
        for wrong in ["", "localhost", "127.0.0.1:1 --dscp CS9", "127.0.0.1:1 --congestion reno"] {
            assert!(plan(wrong).is_err(), "{wrong}");
        }
    }
}
