//! `mta run`: runs the daemon.

use super::output::{load, print_error};
use super::{DONE, FAILED, WRONG};
use crate::clock::Clock;
use crate::driver::monitoring::log::LogFormat;
use crate::driver::{self, Files, WantedRecording};
use crate::pcap::Wanted;
use clap::builder::{OsStringValueParser, TypedValueParser};
use std::path::PathBuf;
use std::time::Duration;

/// Threads for disk access and password hashes.
const BLOCKING_THREADS: usize = 64;

/// Longest wait for these threads when the daemon has ended.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// Runs the daemon until SIGTERM or SIGINT; SIGHUP reads configuration and users again.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
    config: PathBuf,
    /// Format of log lines on standard error.
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
    /// Log debug messages; the variable RUST_LOG selects more precisely.
    #[arg(long, short)]
    verbose: bool,
    /// Record one association as pcapng for Wireshark. The file contains passwords and contents in
    /// clear.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// The association to record: PEER/CHANNEL or p3. Default: the first P1 association.
    #[arg(long, value_name = "NAME", requires = "pcap")]
    pcap_association: Option<String>,
    /// Record every input of the node from the start on, for `mta replay`. FILE must not exist; in a directory a
    /// new file is named by the time. It has contents in clear, and passwords masked.
    #[arg(long, value_name = "FILE", env = "MTA_RECORD", value_parser = maybe_path())]
    record: Option<PathBuf>,
    /// Longest recording, such as 500MB: then it ends, and the daemon continues.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = octets)]
    record_limit: u64,
}

/// A path, which may be empty: a variable that is empty counts as unset.
fn maybe_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

fn octets(text: &str) -> Result<u64, String> {
    base::quantity::octets(text).map_err(|error| error.to_string())
}

pub(super) fn run(arguments: Arguments) -> u8 {
    let Some(site) = load(&arguments.config) else { return WRONG };
    driver::monitoring::log::start(arguments.log_format, arguments.verbose);
    let clock = Clock::start();
    let pcap = arguments.pcap.map(|path| Wanted { path, association: arguments.pcap_association });
    if let Some(wanted) = &pcap {
        let labels = site.channels.values().map(|socket| socket.label.as_str());
        if let Err(error) = wanted.check(labels) {
            print_error(&error.to_string());
            return WRONG;
        }
        let path = wanted.path.display();
        print_error(&format!("warning: {path} will hold passwords and contents in clear"));
    }
    let limit = arguments.record_limit;
    let record = arguments.record.filter(|path| !path.as_os_str().is_empty());
    let record = record.map(|path| WantedRecording { path, limit });
    if let Some(WantedRecording { path, .. }) = &record {
        print_error(&format!("warning: {} will hold contents in clear", path.display()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            print_error(&format!("cannot start threads: {error}"));
            return FAILED;
        }
    };
    let files = Files { pcap, record };
    let ended = runtime.block_on(driver::run(site, arguments.config, clock, files));
    // Short work (a password check) may finish; long work (a name lookup) is abandoned.
    runtime.shutdown_timeout(SHUTDOWN_GRACE);
    match ended {
        Ok(()) => DONE,
        Err(error) => {
            tracing::error!(%error, "ended");
            FAILED
        }
    }
}
