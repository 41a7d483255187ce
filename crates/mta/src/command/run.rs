//! `mta run`: the daemon.

use super::output::{complain, load};
use super::{DONE, FAILED, WRONG};
use crate::clock::Clock;
use crate::driver;
use crate::driver::log::LogFormat;
use crate::pcap::Wanted;
use std::path::PathBuf;
use std::time::Duration;

/// Threads for the disk and password hashes.
const BLOCKING_THREADS: usize = 64;

/// Wait for threads that still do something when all else is done.
const LEFT_OVER: Duration = Duration::from_secs(1);

/// Runs the daemon until SIGTERM or SIGINT; SIGHUP reads configuration and users again.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// How log lines on standard error look.
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
    /// Log more; RUST_LOG chooses finer.
    #[arg(long, short)]
    verbose: bool,
    /// Record one association's traffic as pcapng for Wireshark: passwords and contents in clear.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Which to record: PEER/CHANNEL or p3; default: the first P1 association.
    #[arg(long, value_name = "NAME", requires = "pcap")]
    pcap_association: Option<String>,
}

pub(super) fn run(arguments: Arguments) -> u8 {
    let Some(site) = load(&arguments.config) else { return WRONG };
    driver::log::start(arguments.log_format, arguments.verbose);
    let clock = Clock::start();
    let pcap = arguments.pcap.map(|path| Wanted { path, association: arguments.pcap_association });
    if let Some(wanted) = &pcap {
        let labels = site.channels.values().map(|socket| socket.label.as_str());
        if let Err(error) = wanted.check(labels) {
            complain(&error);
            return WRONG;
        }
        let path = wanted.path.display();
        complain(&format!("warning: {path} will hold passwords and contents in clear"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("cannot start threads: {error}"));
            return FAILED;
        }
    };
    let ended = runtime.block_on(driver::run(site, arguments.config, clock, pcap));
    // What still runs (a password being checked) has a moment to end; what may take long (a name
    // being resolved) is not waited for.
    runtime.shutdown_timeout(LEFT_OVER);
    match ended {
        Ok(()) => DONE,
        Err(error) => {
            tracing::error!(%error, "ended");
            FAILED
        }
    }
}
