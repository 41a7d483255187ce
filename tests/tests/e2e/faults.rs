//! What is accepted arrives exactly once, whatever stops, dies or breaks.

use super::proxy::{Disposition, Proxy};
use super::{SOON, assert_arrived};
use nix::sys::signal::Signal;
use std::net::TcpListener;
use std::time::Duration;
use testbed::answer::SendOutput;
use testbed::clock::Deadline;
use testbed::{Pair, PeerSettings, Site, clock};

/// The octet at which the proxy stops: in the middle of 10 MB, past many checkpoints.
const MIDDLE: u64 = 5_000_000;

/// A pair whose associations from Naples to ACT go over a proxy, and a message of 10 MB on it.
fn stopped_in_the_middle(
    disposition: Disposition,
    peer: &PeerSettings,
) -> (Pair, Proxy, SendOutput) {
    let builder = Pair::builder(peer.clone().on_demand("300s")).unwrap();
    let proxy = Proxy::start(builder.act_listens()[0], disposition);
    let pair = builder
        .naples_connects(vec![proxy.address])
        .each(|site| site.set("mta.stop_timeout", "3s"))
        .start()
        .unwrap();
    let to = pair.act.address("OPS");
    let sent = pair.naples.send("OPS", &["--to", &to, "--size", "10MB"]).unwrap();
    proxy.wait_until_struck(SOON);
    (pair, proxy, sent)
}

fn assert_arrives_once(pair: &Pair, sent: &SendOutput) {
    assert_arrived(&sent.messages, &pair.act.receive("OPS", 1).unwrap());
    pair.naples.wait_until("nothing left to send", SOON, |s| s.queued() == 0).unwrap();
    pair.act.wait_until("nothing left to deliver", SOON, |s| s.waiting() == 0).unwrap();
    assert_eq!(pair.act.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
}

#[test]
fn a_transfer_cut_in_the_middle_goes_on_from_its_last_confirmed_checkpoint() {
    let (pair, proxy, sent) =
        stopped_in_the_middle(Disposition::Cut(MIDDLE), &PeerSettings::default());
    assert_arrives_once(&pair, &sent);
    // 10 MB, and again what was sent beyond the last confirm: at most 16 checkpoints of 64 KiB,
    // and what the cut took from the network.
    let carried = proxy.to_server();
    assert!((10_000_000..12_500_000).contains(&carried), "{carried} octets for 10 MB");
}

#[test]
fn nor_is_it_sent_again_on_an_association_that_the_receiver_opened() {
    let builder = Pair::builder(PeerSettings::default()).unwrap();
    let proxy = Proxy::start(builder.act_listens()[0], Disposition::CutAnswers(MIDDLE));
    // Nobody listens there: ACT sends on what Naples opened.
    let nowhere = TcpListener::bind((proxy.address.ip(), 0)).unwrap().local_addr().unwrap();
    let builder = builder.naples_connects(vec![proxy.address]).act_connects(vec![nowhere]);
    let pair = builder.start().unwrap();
    let to = pair.naples.address("OPS");
    let sent = pair.act.send("OPS", &["--to", &to, "--size", "10MB"]).unwrap();
    proxy.wait_until_struck(SOON);
    assert_arrived(&sent.messages, &pair.naples.receive("OPS", 1).unwrap());
    pair.act.wait_until("nothing left to send", SOON, |s| s.queued() == 0).unwrap();
    assert_eq!(pair.naples.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
    let carried = proxy.to_client();
    assert!((10_000_000..12_500_000).contains(&carried), "{carried} octets for 10 MB");
}

#[test]
fn a_transfer_without_checkpoints_cut_in_the_middle_is_sent_again() {
    let peer = PeerSettings { checkpoint: 0, ..PeerSettings::default() };
    let (pair, proxy, sent) = stopped_in_the_middle(Disposition::Cut(MIDDLE), &peer);
    assert_arrives_once(&pair, &sent);
    let carried = proxy.to_server();
    assert!((15_000_000..15_500_000).contains(&carried), "{carried} octets for 5 MB and 10 MB");
}

#[test]
fn sigterm_in_the_middle_of_a_message_is_bounded_and_loses_nothing() {
    for peer in [PeerSettings::default(), PeerSettings { checkpoint: 0, ..PeerSettings::default() }]
    {
        let (mut pair, proxy, sent) = stopped_in_the_middle(Disposition::Hold(MIDDLE), &peer);
        // Nothing moves, so neither can finish nor reach a checkpoint: only the bound ends them.
        for site in [&mut pair.naples, &mut pair.act] {
            let (status, took) = clock::timed(|| site.stop().unwrap());
            assert_eq!(status.code(), Some(0), "{}", site.name());
            assert!(took < Duration::from_secs(20), "{} took {took:?} to stop", site.name());
        }
        proxy.release();
        pair.act.start().unwrap();
        pair.naples.start().unwrap();
        assert_arrives_once(&pair, &sent);
    }
}

#[test]
fn a_receiver_that_is_killed_gets_the_message_once_when_it_is_back() {
    let (mut pair, proxy, sent) =
        stopped_in_the_middle(Disposition::Hold(MIDDLE), &PeerSettings::default());
    pair.act.kill().unwrap();
    proxy.release();
    pair.act.start().unwrap();
    assert_arrives_once(&pair, &sent);
}

#[test]
fn a_sender_that_is_killed_sends_the_message_once_when_it_is_back() {
    let (mut pair, proxy, sent) =
        stopped_in_the_middle(Disposition::Hold(MIDDLE), &PeerSettings::default());
    pair.naples.kill().unwrap();
    proxy.release();
    pair.naples.start().unwrap();
    assert_arrives_once(&pair, &sent);
}

#[test]
fn what_waits_outlives_both_daemons() {
    let mut pair = Pair::builder(PeerSettings::default()).unwrap().build().unwrap();
    pair.naples.start().unwrap();
    let to = pair.act.address("OPS");
    let sent = pair.naples.send("OPS", &["--to", &to, "--size", "1kB,1MB,10MB"]).unwrap();
    pair.naples.kill().unwrap();
    pair.act.start().unwrap();
    pair.naples.start().unwrap();
    pair.act.wait_until("all three to wait", SOON, |s| s.waiting() == 3).unwrap();
    pair.act.kill().unwrap();
    pair.act.start().unwrap();
    assert_arrived(&sent.messages, &pair.act.receive("OPS", 3).unwrap());
    assert_eq!(pair.act.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
}

/// A site whose user `OPS` reaches it over a proxy, and that user's profiles without it.
fn behind_a_proxy(disposition: Disposition) -> (Site, Proxy, String) {
    let builder = Site::builder("naples").run_with(&["--log-format", "json"]);
    let mut site = builder.build().unwrap();
    site.start().unwrap();
    let proxy = Proxy::start(site.p3(), disposition);
    let profiles = std::fs::read_to_string(site.profiles()).unwrap();
    let over_proxy = profiles.replace(&site.p3().to_string(), &proxy.address.to_string());
    assert_ne!(over_proxy, profiles);
    std::fs::write(site.profiles(), over_proxy).unwrap();
    (site, proxy, profiles)
}

#[test]
fn a_submission_whose_answer_is_lost_makes_one_message() {
    let (site, proxy, profiles) = behind_a_proxy(Disposition::LoseAnswer(5_000));
    let sent = site.send("OPS", &["--to", &site.address("OPS"), "--size", "10kB"]).unwrap();
    proxy.wait_until_struck(SOON);
    assert_eq!(sent.messages[0].tries, 2, "the first answer was lost");
    std::fs::write(site.profiles(), profiles).unwrap();
    assert_arrived(&sent.messages, &site.receive("OPS", 1).unwrap());
    assert_eq!(site.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
    assert_eq!(site.status().unwrap().counters.duplicates, 1);
}

#[test]
fn a_submission_in_doubt_is_settled_by_a_second_command_after_a_kill() {
    let (mut site, proxy, profiles) = behind_a_proxy(Disposition::LoseAnswer(5_000));
    let address = site.address("OPS");
    let same = ["--json", "send", "--to", &address, "--size", "10kB", "--retry-for", "0s"];
    let run = site.xuxa("OPS", &same).unwrap();
    proxy.wait_until_struck(SOON);
    assert_eq!(run.code, 4, "in doubt: {}", run.stderr);
    let first: SendOutput = run.json_anyway().unwrap();
    let [doubt] = &first.in_doubt[..] else { panic!("{first:?}") };
    assert_eq!((doubt.tries, doubt.size, first.messages.len()), (1, 10_000, 0));
    let again = [&same[..], &["--content-id", &doubt.content_identifier, "--dtg", &doubt.dtg]];
    assert!(run.stderr.contains(&again[1].join(" ").replace("-id ", "-identifier ")));
    std::fs::write(site.profiles(), profiles).unwrap();
    site.kill().unwrap();
    site.start().unwrap();

    // Delivered before it is settled, or after: the identifier is the first one's.
    let received = site.receive("OPS", 1).unwrap();
    let second: SendOutput = site.xuxa("OPS", &again.concat()).unwrap().json().unwrap();
    assert_arrived(&second.messages, &received);
    assert_eq!(site.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
    assert_eq!(site.status().unwrap().counters.duplicates, 1);
}

#[test]
fn a_submission_killed_between_its_commit_and_its_answer_is_one_message() {
    // Within the store, and in a file of its own.
    for size in ["10kB", "1200kB"] {
        let (mut site, proxy, profiles) = behind_a_proxy(Disposition::HoldAnswers(5_000));
        let address = site.address("OPS");
        let same = ["--json", "send", "--to", &address, "--size", size];
        let known = ["--content-identifier", "HELD", "--dtg", "260504030201Z"];
        let again = [&same[..], &known].concat();
        let mut client = site.xuxa_beside("OPS", &again).unwrap();
        proxy.wait_until_struck(SOON);
        let submitted = || {
            let event = site.events()?.into_iter().find(|e| e.event == "submitted");
            Ok(event.and_then(|e| e.mts_id))
        };
        let committed = Deadline::after(SOON).wait_for("the commit", submitted).unwrap();
        site.kill().unwrap();
        // It had sent all of it, so giving up leaves a doubt.
        assert!(!client.ended().unwrap(), "no answer passed");
        client.signal(Signal::SIGINT).unwrap();
        let run = client.wait(SOON).unwrap();
        let first: SendOutput = run.json_anyway().unwrap();
        assert_eq!((run.code, first.in_doubt.len()), (4, 1), "{}", run.stderr);

        std::fs::write(site.profiles(), profiles).unwrap();
        site.start().unwrap();
        let second: SendOutput = site.xuxa("OPS", &again).unwrap().json().unwrap();
        assert_eq!(second.messages[0].mts_identifier, committed);
        assert_eq!(site.status().unwrap().counters.duplicates, 1);
        assert_arrived(&second.messages, &site.receive("OPS", 1).unwrap());
        assert_eq!(site.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
    }
}

#[test]
fn what_the_mta_never_had_whole_or_does_not_take_is_not_in_doubt() {
    let (mut site, proxy, profiles) = behind_a_proxy(Disposition::Cut(50_000));
    let address = site.address("OPS");
    let sizes = |sizes| ["--json", "send", "--to", &address, "--size", sizes, "--retry-for", "0s"];
    // More than the networks on the path hold.
    let run = site.xuxa("OPS", &sizes("30MB,1kB")).unwrap();
    proxy.wait_until_struck(SOON);
    let sent: SendOutput = run.json_anyway().unwrap();
    let counts =
        |s: &SendOutput| [s.messages.len(), s.in_doubt.len(), s.refused.len(), s.not_sent.len()];
    assert_eq!((run.code, counts(&sent)), (1, [0, 0, 0, 2]), "{}", run.stderr);
    assert_eq!([sent.not_sent[0].tries, sent.not_sent[1].tries], [1, 0]);

    // Beyond a limit: the MTA answers with an error, and takes the other message.
    std::fs::write(site.profiles(), profiles).unwrap();
    site.stop().unwrap();
    let config = std::fs::read_to_string(site.config()).unwrap();
    std::fs::write(site.config(), format!("{config}\n[limits]\ncontent = \"100kB\"\n")).unwrap();
    site.start().unwrap();
    let run = site.xuxa("OPS", &sizes("1MB,1kB")).unwrap();
    let sent: SendOutput = run.json_anyway().unwrap();
    assert_eq!((run.code, counts(&sent)), (3, [1, 0, 1, 0]), "{}", run.stderr);
    assert!(sent.refused[0].reason.contains("control-violated"), "{:?}", sent.refused);
    assert_arrived(&sent.messages, &site.receive("OPS", 1).unwrap());
}
