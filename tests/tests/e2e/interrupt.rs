//! Ctrl-C at a client, once and twice.

use super::SOON;
use super::proxy::{Disposition, Proxy};
use nix::sys::signal::Signal;
use std::time::Duration;
use testbed::answer::{ReceiveOutput, SendOutput};
use testbed::clock::{Deadline, pause};
use testbed::{RunningClient, Site};

/// More than a busy machine can send before it is interrupted.
const SIZE: &str = "2GB";
/// When it is interrupted: in the middle of it.
const BEGUN: u64 = 3_000_000;

/// A site, and a large submission to it that has passed `BEGUN` octets.
fn submission_in_progress(disposition: Disposition) -> (Site, Proxy, RunningClient) {
    let mut site = Site::builder("naples").run_with(&["--log-format", "json"]).build().unwrap();
    site.start().unwrap();
    let proxy = Proxy::start(site.p3(), disposition);
    let profiles = std::fs::read_to_string(site.profiles()).unwrap();
    let over_proxy = profiles.replace(&site.p3().to_string(), &proxy.address.to_string());
    std::fs::write(site.profiles(), over_proxy).unwrap();
    let to = site.address("OPS");
    let sizes = format!("{SIZE},1kB");
    let client = site.xuxa_beside("OPS", &["--json", "send", "--to", &to, "--size", &sizes]);
    (site, proxy, client.unwrap())
}

/// The client ends soon, and reports both messages as not sent; the MTA has neither.
fn assert_not_sent(site: &Site, client: RunningClient) {
    let run = client.wait(SOON).unwrap();
    let sent: SendOutput = run.json_anyway().unwrap();
    let counts = [sent.messages.len(), sent.in_doubt.len(), sent.refused.len()];
    assert_eq!((run.code, counts, sent.not_sent.len()), (1, [0; 3], 2), "{}", run.stderr);
    assert!(sent.not_sent.iter().all(|m| m.reason.contains("interrupted")), "{:?}", sent.not_sent);
    let status = site.status().unwrap();
    assert_eq!((status.counters.submitted, status.waiting()), (0, 0));
}

#[test]
fn a_submission_interrupted_in_the_middle_was_not_sent() {
    let (site, proxy, mut client) = submission_in_progress(Disposition::Cut(u64::MAX));
    let begun = || Ok((proxy.to_server() > BEGUN).then_some(()));
    Deadline::after(SOON).wait_for("the middle of the submission", begun).unwrap();
    client.signal(Signal::SIGINT).unwrap();
    assert_not_sent(&site, client);
    let lost = || {
        let is_lost = site.events()?.iter().any(|e| e.event == "association_lost");
        Ok(is_lost.then_some(()))
    };
    Deadline::after(SOON).wait_for("the MTA to log it", lost).unwrap();
}

#[test]
fn a_submission_interrupted_while_the_mta_takes_nothing_was_not_sent() {
    let (site, proxy, mut client) = submission_in_progress(Disposition::Hold(BEGUN));
    proxy.wait_until_struck(SOON);
    proxy.wait_until_quiet(SOON);
    client.signal(Signal::SIGINT).unwrap();
    assert_not_sent(&site, client);
}

/// A receiver over this proxy, interrupted at this moment: its exit code, and what it received.
fn receiver_interrupted(
    site: &Site,
    disposition: Disposition,
    options: &[&str],
    moment: fn(&Proxy) -> bool,
) -> (i32, usize) {
    let proxy = Proxy::start(site.p3(), disposition);
    let profiles = std::fs::read_to_string(site.profiles()).unwrap();
    let over_proxy = profiles.replace(&site.p3().to_string(), &proxy.address.to_string());
    std::fs::write(site.profiles(), over_proxy).unwrap();
    let arguments = [&["--json", "receive"][..], options].concat();
    let mut client = site.xuxa_beside("OPS", &arguments).unwrap();
    let reached = || Ok(moment(&proxy).then_some(()));
    Deadline::after(SOON).wait_for("the moment of the interrupt", reached).unwrap();
    client.signal(Signal::SIGINT).unwrap();
    let run = client.wait(SOON).unwrap();
    std::fs::write(site.profiles(), profiles).unwrap();
    (run.code, run.json_anyway::<ReceiveOutput>().unwrap().deliveries.len())
}

#[test]
fn a_receiver_ends_with_the_same_code_at_whatever_moment_it_is_interrupted() {
    let mut site = Site::builder("naples").run_with(&["--log-format", "json"]).build().unwrap();
    site.start().unwrap();
    for options in [&[][..], &["--wait"], &["--count", "2"]] {
        let asked = |proxy: &Proxy| proxy.to_server() > 0;
        let in_bind = receiver_interrupted(&site, Disposition::HoldAnswers(1), options, asked);
        assert_eq!(in_bind, (130, 0), "without an answer to the bind: {options:?}");
    }
    let answered = |proxy: &Proxy| proxy.to_client() > 0;
    let idle = receiver_interrupted(&site, Disposition::Cut(u64::MAX), &["--wait"], answered);
    assert_eq!(idle, (130, 0), "between deliveries");
    site.send("OPS", &["--to", &site.address("OPS"), "--size", "200MB"]).unwrap();
    for options in [&[][..], &["--wait"], &["--count", "1"]] {
        let begun = |proxy: &Proxy| proxy.to_client() > BEGUN;
        let within = receiver_interrupted(&site, Disposition::Cut(u64::MAX), options, begun);
        assert_eq!(within, (130, 0), "within a delivery: {options:?}");
    }
    assert_eq!(site.receive("OPS", 1).unwrap().deliveries.len(), 1, "it stayed at the MTA");
}

#[test]
fn interrupted_twice_a_client_waits_for_nothing() {
    let mut site = Site::builder("naples").run_with(&["--log-format", "json"]).build().unwrap();
    site.start().unwrap();
    let mut client = site.xuxa_beside("OPS", &["receive", "--wait"]).unwrap();
    let bound = || {
        let is_bound = site.events()?.iter().any(|e| e.event == "association_opened");
        Ok(is_bound.then_some(()))
    };
    Deadline::after(SOON).wait_for("the bind", bound).unwrap();
    // An MTA that does not answer: unbinding takes its time.
    site.signal(Signal::SIGSTOP).unwrap();
    while !client.ended().unwrap() {
        let _ = client.signal(Signal::SIGINT);
        pause(Duration::from_millis(100));
    }
    site.signal(Signal::SIGCONT).unwrap();
    assert_eq!(client.wait(SOON).unwrap().code, 130);
}
